// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * skuactl: asks a running skuad, over its control socket, and shows the answer as a table or
 * as JSON. A command is a row of a table.
 *
 * Exit status: 0; 1 if skuad refused or is not there; 2 for bad usage.
 */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include <json-c/json.h>

#include "ctl/client.h"
#include "ctl/rates.h"
#include "ctl/server.h"
#include "ctl/table.h"

#define MAX_ARGS	18	/* of a command: a device, rules, a seed */
#define USAGE		2
#define TOP_QPS		20	/* lines */

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

struct options {
	const char *socket;
	const char *file;		/* -w */
	const char *interval, *rounds;	/* -i, -n */
	bool json;
	const char *command;
	const char *arg[MAX_ARGS];
	int nargs;
};

static void die(int status, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), noreturn));

static void die(int status, const char *fmt, ...)
{
	va_list ap;

	fputs("skuactl: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(status);
}

static struct json_object *receive(struct ctl_client *c, const struct options *o)
{
	struct json_object *answer = ctl_client_receive(c);

	if (answer)
		return answer;
	if (errno == ECONNRESET)
		die(1, "%s: skuad has ended", o->socket);
	die(1, "%s: %m", o->socket);
}

static bool answers(struct json_object *answer, int64_t id)
{
	struct json_object *v;

	return json_object_object_get_ex(answer, "id", &v) && json_object_get_int64(v) == id;
}

/* An answer; what is not "ok" ends the program. */
static struct json_object *ask(struct ctl_client *c, const struct options *o,
			       struct json_object *request, int pass_fd)
{
	struct json_object *answer, *v;
	struct timespec now;
	char error[400];
	int64_t id;

	/* On a port, answers to whoever had it before may come first. */
	clock_gettime(CLOCK_MONOTONIC, &now);
	id = now.tv_sec * 1000000000LL + now.tv_nsec;
	json_object_object_add(request, "id", json_object_new_int64(id));
	if (!ctl_client_send(c, request, pass_fd)) {
		if (errno == EOPNOTSUPP)
			die(1, "%s: this is a guest; the command works on the host only", o->socket);
		die(1, "%s: %m", o->socket);
	}
	json_object_put(request);
	answer = receive(c, o);
	while (!answers(answer, id)) {
		json_object_put(answer);
		answer = receive(c, o);
	}
	json_object_object_del(answer, "id");
	if (json_object_object_get_ex(answer, "ok", &v) && json_object_get_boolean(v))
		return answer;
	if (!json_object_object_get_ex(answer, "error", &v))
		die(1, "%s: cannot understand the answer", o->socket);
	snprintf(error, sizeof(error), "%s", json_object_get_string(v));
	json_object_put(answer);
	die(1, "%s", error);
}

static struct json_object *request_for(const char *cmd, const char *device)
{
	struct json_object *request = json_object_new_object();

	json_object_object_add(request, "cmd", json_object_new_string(cmd));
	if (device)
		json_object_object_add(request, "device", json_object_new_string(device));
	return request;
}

static void print_json(FILE *f, struct json_object *o)
{
	fprintf(f, "%s\n", json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY |
							  JSON_C_TO_STRING_SPACED |
							  JSON_C_TO_STRING_NOSLASHESCAPE));
}

/* Prints member @key of @answer, an array, with @columns. */
static void show(const struct options *o, struct json_object *answer, const char *key,
		 const struct column *columns, size_t n)
{
	struct json_object *rows;

	if (o->json)
		print_json(stdout, answer);
	else if (json_object_object_get_ex(answer, key, &rows))
		table_print(stdout, rows, columns, n);
	json_object_put(answer);
}

static int do_devices(struct ctl_client *c, const struct options *o)
{
	static const struct column columns[] = {
		{ "DEVICE", "name" }, { "MAC", "mac" }, { "LINK", "link" }, { "UP", "link_up" },
		{ "STATE", "state" }, { "HEALTH", "health" }, { "MTU", "mtu" },
		{ "ROCE", "roce" }, { "PD", "pds" }, { "CQ", "cqs" }, { "QP", "qps" },
		{ "MR", "mrs" }, { "EQ", "eqs" }, { "CAPTURE", "capture" },
	};

	show(o, ask(c, o, request_for("devices", NULL), -1), "devices", columns,
	     ARRAY_SIZE(columns));
	return 0;
}

static int do_qps(struct ctl_client *c, const struct options *o)
{
	static const struct column columns[] = {
		{ "DEVICE", "device" }, { "QPN", "qpn" }, { "TYPE", "type" },
		{ "STATE", "state" }, { "PEER", "dest_qpn" }, { "MTU", "path_mtu" },
		{ "Q-KEY", "qkey" }, { "SQ-PSN", "sq_psn" }, { "UNACKED", "una_psn" }, { "RQ-PSN", "rq_psn" },
		{ "WAITING", "waiting" }, { "RETRIES", "retries" }, { "RNR", "rnr_retries" },
		{ "PD", "pdn" }, { "SEND-CQ", "scqn" }, { "RECV-CQ", "rcqn" },
	};

	show(o, ask(c, o, request_for("qps", o->arg[0]), -1), "qps", columns,
	     ARRAY_SIZE(columns));
	return 0;
}

static int do_cqs(struct ctl_client *c, const struct options *o)
{
	static const struct column columns[] = {
		{ "DEVICE", "device" }, { "CQN", "cqn" }, { "STATE", "state" }, { "EQ", "eqn" },
		{ "SIZE", "size" }, { "WRITTEN", "pi" }, { "CONSUMED", "ci" },
		{ "QUEUES", "queues" },
	};

	show(o, ask(c, o, request_for("cqs", o->arg[0]), -1), "cqs", columns,
	     ARRAY_SIZE(columns));
	return 0;
}

static int do_mrs(struct ctl_client *c, const struct options *o)
{
	static const struct column columns[] = {
		{ "DEVICE", "device" }, { "KEY", "key" }, { "TYPE", "type" }, { "VALID", "valid" },
		{ "PD", "pdn" }, { "ACCESS", "access" }, { "IOVA", "iova" },
		{ "LENGTH", "length" }, { "PAGES", "pages" }, { "OF", "page_size" },
	};

	show(o, ask(c, o, request_for("mrs", o->arg[0]), -1), "mrs", columns,
	     ARRAY_SIZE(columns));
	return 0;
}

static int do_counters(struct ctl_client *c, const struct options *o)
{
	struct json_object *answer = ask(c, o, request_for("counters", o->arg[0]), -1);
	struct json_object *counters;

	if (o->json)
		print_json(stdout, answer);
	else if (json_object_object_get_ex(answer, "counters", &counters))
		table_print_columns(stdout, counters);
	json_object_put(answer);
	return 0;
}

/* rates, top */

static unsigned long parse_number(const char *text, const char *what)
{
	unsigned long number;
	char *end;

	errno = 0;
	number = strtoul(text, &end, 0);
	if (*text < '0' || *text > '9' || *end || errno)
		die(USAGE, "%s: not a number: '%s'", what, text);
	return number;
}

/* Seconds, perhaps with a fraction. */
static struct timespec parse_interval(const struct options *o)
{
	double s = 1;
	char *end;

	if (o->interval) {
		s = strtod(o->interval, &end);
		if (end == o->interval || *end || !(s >= 0.001 && s <= 86400))
			die(USAGE, "-i: want 0.001 to 86400 seconds, not '%s'", o->interval);
	}
	return (struct timespec){ (time_t)s, (long)((s - (double)(time_t)s) * 1e9) };
}

static struct json_object *after(struct ctl_client *c, const struct options *o,
				 const char *request)
{
	struct timespec left = parse_interval(o);

	while (nanosleep(&left, &left) && errno == EINTR)
		;
	return ask(c, o, request_for(request, o->arg[0]), -1);
}

static int do_rates(struct ctl_client *c, const struct options *o)
{
	unsigned long rounds = o->rounds ? parse_number(o->rounds, "-n") : 1;
	struct json_object *was = ask(c, o, request_for("counters", o->arg[0]), -1);

	while (rounds--) {
		struct json_object *now = after(c, o, "counters");
		struct json_object *rates = rates_of(was, now);

		if (o->json)
			print_json(stdout, rates);
		else
			table_print_columns(stdout, rates);
		fflush(stdout);
		json_object_put(rates);
		json_object_put(was);
		was = now;
	}
	json_object_put(was);
	return 0;
}

/* What top shows, at one time. */
struct sample {
	struct json_object *counters, *qps;
};

static void put_sample(struct sample *s)
{
	json_object_put(s->counters);
	json_object_put(s->qps);
}

static void print_top(const struct options *o, struct json_object *devices,
		      struct json_object *qps)
{
	static const struct column device_columns[] = {
		{ "DEVICE", "name" }, { "STATE", "state" }, { "UP", "link_up" }, { "QPS", "qps" },
		{ "SENT/s", "rdma_tx_packets" }, { "BYTES/s", "rdma_tx_bytes" },
		{ "RECEIVED/s", "rdma_rx_packets" }, { "BYTES/s", "rdma_rx_bytes" },
		{ "FRAMES-OUT/s", "tx_frames" }, { "IN/s", "rx_frames" },
		{ "RETRANSMITS/s", "retransmits" }, { "ERRORS/s", "cqe_errors" },
		{ "CMDS/s", "commands" }, { "IRQS/s", "interrupts" },
	};
	static const struct column qp_columns[] = {
		{ "DEVICE", "device" }, { "QPN", "qpn" }, { "STATE", "state" },
		{ "PEER", "dest_qpn" }, { "SENT/s", "sent" }, { "RECEIVED/s", "received" },
		{ "WAITING", "waiting" }, { "RETRIES", "retries" }, { "RNR", "rnr_retries" },
	};

	if (o->json) {
		struct json_object *both = json_object_new_object();

		json_object_object_add(both, "devices", json_object_get(devices));
		json_object_object_add(both, "qps", json_object_get(qps));
		print_json(stdout, both);
		json_object_put(both);
	} else {
		if (isatty(STDOUT_FILENO))
			fputs("\033[H\033[J", stdout);
		table_print(stdout, devices, device_columns, ARRAY_SIZE(device_columns));
		fputc('\n', stdout);
		table_print(stdout, qps, qp_columns, ARRAY_SIZE(qp_columns));
	}
	fflush(stdout);
}

static int do_top(struct ctl_client *c, const struct options *o)
{
	unsigned long rounds = o->rounds ? parse_number(o->rounds, "-n") : ULONG_MAX;
	struct sample was = {
		ask(c, o, request_for("counters", o->arg[0]), -1),
		ask(c, o, request_for("qps", o->arg[0]), -1),
	};

	while (rounds--) {
		struct sample now = { .counters = after(c, o, "counters") };
		struct json_object *answer = ask(c, o, request_for("devices", NULL), -1);
		struct json_object *rates, *devices, *qps;

		now.qps = ask(c, o, request_for("qps", o->arg[0]), -1);
		rates = rates_of(was.counters, now.counters);
		devices = rates_devices(rates, answer);
		qps = rates_qps(was.counters, now.counters, was.qps, now.qps, TOP_QPS);
		print_top(o, devices, qps);
		json_object_put(answer);
		json_object_put(rates);
		json_object_put(devices);
		json_object_put(qps);
		put_sample(&was);
		was = now;
	}
	put_sample(&was);
	return 0;
}

static int do_link(struct ctl_client *c, const struct options *o)
{
	struct json_object *request, *answer;
	bool up = !strcmp(o->arg[1], "up");

	if (!up && strcmp(o->arg[1], "down"))
		die(USAGE, "link %s: want 'up' or 'down', not '%s'", o->arg[0], o->arg[1]);
	request = request_for("link", o->arg[0]);
	json_object_object_add(request, "up", json_object_new_boolean(up));
	answer = ask(c, o, request, -1);
	if (o->json)
		print_json(stdout, answer);
	json_object_put(answer);
	return 0;
}

static int do_inject(struct ctl_client *c, const struct options *o)
{
	struct json_object *request = request_for("inject", o->arg[0]), *answer;

	json_object_object_add(request, "fault", json_object_new_string(o->arg[1]));
	if (o->arg[2])
		json_object_object_add(request, "number",
				       json_object_new_int64(parse_number(o->arg[2], "inject")));
	answer = ask(c, o, request, -1);
	if (o->json)
		print_json(stdout, answer);
	json_object_put(answer);
	return 0;
}

static int do_impair(struct ctl_client *c, const struct options *o)
{
	static const struct column columns[] = {
		{ "RULE", "rule" }, { "SEEN", "seen" }, { "DONE", "done" },
	};
	struct json_object *request = request_for("impair", o->arg[0]), *rules;
	bool none = o->nargs == 2 && !strcmp(o->arg[1], "none");

	if (o->nargs > 1) {
		rules = json_object_new_array();
		for (int i = 1; i < o->nargs && !none; i++)
			json_object_array_add(rules, json_object_new_string(o->arg[i]));
		json_object_object_add(request, "rules", rules);
	}
	show(o, ask(c, o, request, -1), "rules", columns, ARRAY_SIZE(columns));
	return 0;
}

/* capture */

/* The signals that end a capture, as a descriptor; SIGPIPE is the reader's end, not ours. */
static int ending_signals(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	if (fd < 0)
		die(1, "cannot create a signalfd: %m");
	return fd;
}

static int open_output(const struct options *o)
{
	int fd;

	if (o->file && strcmp(o->file, "-")) {
		fd = open(o->file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		if (fd < 0)
			die(1, "%s: %m", o->file);
		return fd;
	}
	if (isatty(STDOUT_FILENO))
		die(USAGE, "capture: standard output is a terminal; use -w FILE or a pipe");
	return STDOUT_FILENO;
}

static uint64_t number(struct json_object *o, const char *key)
{
	struct json_object *v;

	return json_object_object_get_ex(o, key, &v) ? json_object_get_uint64(v) : 0;
}

/* How the capture ended, in the answer to capture-stop or in the event. */
static int report(const struct options *o, struct json_object *end)
{
	struct json_object *error = NULL;
	int status = 0;

	/* A reader that has seen enough is an end like any other. */
	if (json_object_object_get_ex(end, "error", &error) &&
	    strcmp(json_object_get_string(error), strerror(EPIPE)))
		status = 1;
	if (o->json)
		print_json(stderr, end);
	else
		fprintf(stderr, "skuactl: %s: %llu packets, %llu lost%s%s\n", o->arg[0],
			(unsigned long long)number(end, "written"),
			(unsigned long long)number(end, "lost"), status ? ": " : "",
			status ? json_object_get_string(error) : "");
	json_object_put(end);
	return status;
}

static int do_capture(struct ctl_client *c, const struct options *o)
{
	struct pollfd pfd[2] = { { .events = POLLIN }, { .events = POLLIN } };
	struct json_object *end;
	int fd = open_output(o);

	pfd[0].fd = c->fd;
	pfd[1].fd = ending_signals();
	json_object_put(ask(c, o, request_for("capture", o->arg[0]), fd));
	close(fd);	/* so that the reader of a pipe sees its end when skuad closes it */
	if (!o->json)
		fprintf(stderr, "skuactl: capturing %s\n", o->arg[0]);

	while (poll(pfd, 2, -1) < 0 && errno == EINTR)
		;
	if (pfd[0].revents)
		end = receive(c, o);
	else
		end = ask(c, o, request_for("capture-stop", o->arg[0]), -1);
	close(pfd[1].fd);
	return report(o, end);
}

/* The commands, and how they are called. */

static const struct command {
	const char *name, *args;
	int min, max;
	int (*run)(struct ctl_client *c, const struct options *o);
} commands[] = {
	{ "devices", "", 0, 0, do_devices },
	{ "qps", " [DEVICE]", 0, 1, do_qps },
	{ "cqs", " [DEVICE]", 0, 1, do_cqs },
	{ "mrs", " [DEVICE]", 0, 1, do_mrs },
	{ "counters", " [DEVICE]", 0, 1, do_counters },
	{ "rates", " [DEVICE] [-i SECONDS] [-n ROUNDS]", 0, 1, do_rates },
	{ "top", " [DEVICE] [-i SECONDS] [-n ROUNDS]", 0, 1, do_top },
	{ "capture", " DEVICE [-w FILE]", 1, 1, do_capture },
	{ "link", " DEVICE up|down", 2, 2, do_link },
	{ "inject", " DEVICE FAULT [NUMBER]", 2, 3, do_inject },
	{ "impair", " DEVICE [none | RULE...]", 1, MAX_ARGS, do_impair },
};

static const struct argp_option argp_options[] = {
	{ "socket", 's', "PATH", 0,
	  "skuad's control socket; default: $SKUA_SOCKET, or " CTL_DEFAULT_PATH, 0 },
	{ "json", 'j', NULL, 0, "print JSON instead of tables", 0 },
	{ "write", 'w', "FILE", 0, "capture: write to FILE; default: '-', standard output", 0 },
	{ "interval", 'i', "SECONDS", 0, "rates, top: measure over SECONDS; default: 1", 0 },
	{ "rounds", 'n', "ROUNDS", 0, "rates, top: end after ROUNDS measurements", 0 },
	{ "help", '?', NULL, 0, "print this help", 0 },
	{ 0 },
};

static const char argp_doc[] =
	"Inspects and controls a running skuad, the emulated Skua NIC.\v"
	"Commands:\n"
	"  devices                 show the NICs and their state\n"
	"  qps [DEVICE]            show queue pairs with their states and PSNs\n"
	"  cqs [DEVICE]            show completion queues\n"
	"  mrs [DEVICE]            show memory regions and windows\n"
	"  counters [DEVICE]       show counters, with the names of the programming manual\n"
	"  rates [DEVICE]          show the growth of the counters per second\n"
	"  top [DEVICE]            show the main rates and the busiest QPs continuously\n"
	"  capture DEVICE          write packets as pcapng, until interrupted\n"
	"  link DEVICE up|down     connect or disconnect the wire\n"
	"  impair DEVICE RULE...   drop, delay or change packets: drop=1%, delay=1ms, ...\n"
	"  impair DEVICE [none]    show the impairments, or remove them\n"
	"  inject DEVICE FAULT [NUMBER]\n"
	"      none                end the faults that last\n"
	"      command-timeout     never answer the next command, or the next NUMBER\n"
	"      command-error       fail the next command, or the NUMBERth from now on\n"
	"      read-timeout        let the next read of a register, or the next NUMBER, time out\n"
	"      fatal               the device dies, and reports it\n"
	"      gone                the device dies, and reads as all ones\n"
	"      cq-error            CQ NUMBER goes into error\n"
	"      qp-fatal, qp-request-error, qp-access-error\n"
	"                          QP NUMBER goes to ERR with this event\n"
	"      stray-completion    CQ NUMBER gets a completion of a QP that does not exist\n"
	"      stray-receive       QP NUMBER completes its next receive, posted or not\n"
	"      eq-overflow         raise more asynchronous events than the EQ holds\n"
	"      stray-events        raise events of an unknown type, and of objects that do not exist\n"
	"      other-signature, other-version, no-limits, no-mrs\n"
	"                          become a device that drivers decline, in whole or for RDMA\n"
	"      new-features        offer features that nobody knows\n"
	"      go-back-n           stop offering selective repeat\n\n"
	"  skuactl capture skua0 | tshark -r -";

static error_t parse_option(int key, char *arg, struct argp_state *state);

static const struct argp argp = {
	argp_options, parse_option, "COMMAND [ARGUMENTS]", argp_doc, NULL, NULL, NULL
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case 's':
		o->socket = arg;
		return 0;
	case 'j':
		o->json = true;
		return 0;
	case 'w':
		o->file = arg;
		return 0;
	case 'i':
		o->interval = arg;
		return 0;
	case 'n':
		o->rounds = arg;
		return 0;
	case '?':
		argp_help(&argp, stdout, ARGP_HELP_STD_HELP & ~ARGP_HELP_EXIT_OK,
			  program_invocation_short_name);
		exit(0);
	case ARGP_KEY_ARG:
		if (!o->command)
			o->command = arg;
		else if (o->nargs < MAX_ARGS)
			o->arg[o->nargs++] = arg;
		else
			die(USAGE, "too many arguments: '%s'", arg);
		return 0;
	case ARGP_KEY_ERROR:
		die(USAGE, "bad option '%s', or its value is missing (see --help)",
		    state->argv[state->next > 1 ? state->next - 1 : 1]);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct command *find_command(const struct options *o)
{
	const struct command *cmd = NULL;

	if (!o->command)
		die(USAGE, "no command (see --help)");
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (!strcmp(commands[i].name, o->command))
			cmd = &commands[i];
	}
	if (!cmd)
		die(USAGE, "no such command: '%s' (see --help)", o->command);
	if (o->nargs < cmd->min || o->nargs > cmd->max)
		die(USAGE, "usage: skuactl %s%s", cmd->name, cmd->args);
	if (o->file && cmd->run != do_capture)
		die(USAGE, "-w is for capture only");
	if ((o->interval || o->rounds) && cmd->run != do_rates && cmd->run != do_top)
		die(USAGE, "-i and -n are for rates and top only");
	return cmd;
}

int main(int argc, char **argv)
{
	struct options o = { .socket = getenv("SKUA_SOCKET") };
	const struct command *cmd;
	struct ctl_client client;
	int status;

	if (!o.socket || !*o.socket)
		o.socket = CTL_DEFAULT_PATH;
	/* argp's own messages are of two lines. */
	if (argp_parse(&argp, argc, argv, ARGP_NO_ERRS | ARGP_NO_HELP, NULL, &o))
		die(USAGE, "bad options (see --help)");
	cmd = find_command(&o);
	if (!ctl_client_connect(&client, o.socket))
		die(1, "%s: %m%s", o.socket,
		    errno == ENOENT || errno == ECONNREFUSED ? " (is skuad running?)" : "");
	status = cmd->run(&client, &o);
	ctl_client_close(&client);
	if (fflush(stdout) && cmd->run != do_capture)
		die(1, "standard output: %m");
	return status;
}
