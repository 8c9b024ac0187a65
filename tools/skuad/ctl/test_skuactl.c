// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * skuactl as people and scripts use it: the program that stands beside this test, run
 * against a server in this process.
 */
#include "ctl/test_double.h"

#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>

#include <json-c/json.h>

#include "base/log.h"
#include "ctl/client.h"

static char program[512];
static char output[65536];	/* of the last run */

static const char *last_line(const char *text)
{
	const char *end = text + strlen(text);

	if (end > text)
		end--;
	while (end > text && end[-1] != '\n')
		end--;
	return end;
}

/* Runs skuactl with @args through the shell; gives its exit status, keeps its output. */
static int run(const char *args)
{
	char command[1024];
	size_t n;
	FILE *f;
	int rc;

	snprintf(command, sizeof(command), "SKUA_SOCKET=%s %s %s", path, program, args);
	f = popen(command, "r");
	assert_non_null(f);
	n = fread(output, 1, sizeof(output) - 1, f);
	output[n] = '\0';
	rc = pclose(f);
	assert_true(WIFEXITED(rc));
	return WEXITSTATUS(rc);
}

static void assert_says(const char *part)
{
	if (!strstr(output, part))
		print_message("'%s' does not say '%s'\n", output, part);
	assert_non_null(strstr(output, part));
}

static void devices_are_a_table(void **state)
{
	(void)state;
	assert_int_equal(run("devices"), 0);
	assert_string_equal(output,
		"DEVICE  MAC                LINK    UP   STATE    HEALTH   MTU  ROCE  PD  CQ  QP"
		"  MR  EQ  CAPTURE\n"
		"skua0   52:54:00:00:00:01  wire:a  yes  enabled  ok      1500  yes    4   5   2"
		"   7   3  no     \n"
		"skua1   52:54:00:00:00:02  wire:a  yes  enabled  ok      1500  yes    4   5   1"
		"   7   3  no     \n");
}

static void qps_are_a_table(void **state)
{
	(void)state;
	assert_int_equal(run("qps skua1"), 0);
	assert_string_equal(output,
		"DEVICE   QPN  TYPE  STATE  PEER   MTU  Q-KEY  SQ-PSN  UNACKED  RQ-PSN  WAITING  RETRIES  RNR"
		"  PD  SEND-CQ  RECV-CQ\n"
		"skua1   8192  RC    RTS      77  1024  -          10        9       8        3        1    2"
		"   4        5        6\n");
}

static void cqs_are_a_table(void **state)
{
	(void)state;
	assert_int_equal(run("cqs"), 0);
	assert_string_equal(output,
		"DEVICE  CQN  STATE  EQ  SIZE  WRITTEN  CONSUMED  QUEUES\n"
		"skua0     5  ok      2   256     1000       990       2\n"
		"skua1     5  error   2   256     1000       990       2\n");
}

static void mrs_are_a_table(void **state)
{
	(void)state;
	assert_int_equal(run("mrs skua0"), 0);
	assert_string_equal(output,
		"DEVICE  KEY  TYPE     VALID  PD  ACCESS  IOVA  LENGTH  PAGES    OF\n"
		"skua0   257  regular  yes     4  l-r---  4096    5000      2  4096\n"
		"skua0   514  phys     yes     4  lwrabf     -       -      -     -\n");
}

/* The double's counters stand still; test_rates has those that do not. */
static void rates_and_top_end_after_their_rounds(void **state)
{
	(void)state;
	assert_int_equal(run("rates skua1 -i 0.01 -n 2 | grep -c '^tx_frames *0$'"), 0);
	assert_string_equal(output, "2\n");
	assert_int_equal(run("top -i 0.01 -n 3 | grep -c '^skua[01] *enabled'"), 0);
	assert_string_equal(output, "6\n");
	assert_int_equal(run("top skua1 -i 0.01 -n 1 | tail -n 1 | tr -s ' '"), 0);
	assert_string_equal(output, "skua1 8192 RTS 77 0 0 3 1 2\n");
}

static void counters_are_a_table_with_a_column_for_each_device(void **state)
{
	(void)state;
	assert_int_equal(run("counters | grep tx_bytes"), 0);
	assert_string_equal(output, "tx_bytes                101    201\n"
				    "rdma_tx_bytes           107    207\n");
	assert_int_equal(run("counters skua1 | head -n 2 | tr -s ' '"), 0);
	assert_string_equal(output, " skua1\ntx_frames 200\n");
}

static void json_is_for_scripts(void **state)
{
	static const char *const commands[] = {
		"devices --json", "--json qps", "counters skua0 --json", "link skua0 up -j",
		"-j cqs", "-j mrs skua1", "-j rates -i 0.01", "-j top -i 0.01 -n 1",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		struct json_object *o;

		assert_int_equal(run(commands[i]), 0);
		o = json_tokener_parse(output);
		assert_true(json_object_is_type(o, json_type_object));
		json_object_put(o);
	}
}

static void link_plugs_the_wire(void **state)
{
	(void)state;
	assert_int_equal(run("link skua0 down"), 0);
	assert_string_equal(output, "");
	assert_false(devs[0].link_up);
	assert_int_equal(run("link skua0 up"), 0);
	assert_true(devs[0].link_up);
}

static void a_fault_may_have_a_number(void **state)
{
	(void)state;
	assert_int_equal(run("inject skua1 qp-fatal 0x11"), 0);
	assert_string_equal(output, "");
	assert_ptr_equal(injected.dev, &devs[1]);
	assert_int_equal(injected.fault, SKUA_FAULT_QP_FATAL);
	assert_int_equal(injected.number, 0x11);
	assert_int_equal(run("inject skua0 command-timeout"), 0);
	assert_int_equal(injected.fault, SKUA_FAULT_COMMAND_TIMEOUT);
	assert_int_equal(injected.number, 1);
	assert_int_equal(run("inject skua0 gone --json"), 0);
	assert_string_equal(output, "{\n  \"ok\": true\n}\n");
}

/* A guest's port, by a terminal: what goes in and out of it, goes out of and into a socket. */
struct port {
	int master;
	struct ctl_client socket;
	char name[64];
	_Atomic bool stop;
	pthread_t thread;
};

static void *carry(void *arg)
{
	struct port *port = arg;

	while (!port->stop) {
		struct pollfd pfd[2] = {
			{ .fd = port->master, .events = POLLIN },
			{ .fd = port->socket.fd, .events = POLLIN },
		};
		char buf[4096];

		if (poll(pfd, 2, 20) <= 0)
			continue;
		for (int i = 0; i < 2; i++) {
			ssize_t n = pfd[i].revents & POLLIN ? read(pfd[i].fd, buf, sizeof(buf)) : 0;

			if (n > 0 && write(pfd[!i].fd, buf, n) != n)
				abort();
		}
	}
	return NULL;
}

static void port_open(struct port *port)
{
	static const char half[] = "{\"cmd\":\"dev";
	static const char late[] = "true,\"id\":6}\n{\"ok\":true,\"id\":7}\n";
	struct termios raw;
	int slave;

	*port = (struct port){ .master = posix_openpt(O_RDWR | O_NOCTTY) };
	assert_true(port->master >= 0 && !grantpt(port->master) && !unlockpt(port->master));
	assert_int_equal(ptsname_r(port->master, port->name, sizeof(port->name)), 0);
	/* Stays open, so that the other end is there between two users, as a port's is. */
	slave = open(port->name, O_RDWR | O_NOCTTY);
	assert_int_equal(tcgetattr(slave, &raw), 0);
	cfmakeraw(&raw);
	assert_int_equal(tcsetattr(slave, TCSANOW, &raw), 0);
	assert_true(ctl_client_connect(&port->socket, path));
	/* What was left by those who were killed: half a request, the rest of an answer, and one. */
	assert_int_equal(write(slave, half, strlen(half)), strlen(half));
	assert_int_equal(write(port->master, late, strlen(late)), strlen(late));
	assert_int_equal(pthread_create(&port->thread, NULL, carry, port), 0);
}

static void port_close(struct port *port)
{
	port->stop = true;
	pthread_join(port->thread, NULL);
	ctl_client_close(&port->socket);
	close(port->master);
}

static void in_a_guest_the_socket_is_a_port(void **state)
{
	static struct port port;
	char args[128];

	(void)state;
	port_open(&port);
	for (int i = 0; i < 3; i++) {
		snprintf(args, sizeof(args), "-s %s qps skua1 | tail -n 1 | tr -s ' '", port.name);
		assert_int_equal(run(args), 0);
		assert_string_equal(output, "skua1 8192 RC RTS 77 1024 - 10 9 8 3 1 2 4 5 6\n");
	}
	snprintf(args, sizeof(args), "-s %s inject skua0 fatal", port.name);
	assert_int_equal(run(args), 0);
	assert_int_equal(injected.fault, SKUA_FAULT_FATAL);
	snprintf(args, sizeof(args), "-s %s capture skua0 -w /dev/null 2>&1", port.name);
	assert_int_equal(run(args), 1);
	assert_says("works on the host only");
	port_close(&port);
}

static void every_error_is_one_line_and_a_status(void **state)
{
	static const struct {
		const char *args;
		int status;
		const char *says;
	} bad[] = {
		{ "", 2, "no command" },
		{ "explode", 2, "no such command: 'explode'" },
		{ "--bad devices", 2, "bad option '--bad'" },
		{ "--socket", 2, "bad option '--socket'" },
		{ "devices skua0", 2, "usage: skuactl devices" },
		{ "link skua0", 2, "usage: skuactl link DEVICE up|down" },
		{ "link skua0 sideways", 2, "'up' or 'down', not 'sideways'" },
		{ "-w x devices", 2, "-w is for capture only" },
		{ "-i 1 devices", 2, "-i and -n are for rates and top only" },
		{ "rates -i never", 2, "want 0.001 to 86400 seconds, not 'never'" },
		{ "rates -i 0", 2, "want 0.001 to 86400 seconds, not '0'" },
		{ "top -n x", 2, "-n: not a number: 'x'" },
		{ "a b c d e f g h i j k l m n o p q r s t", 2, "too many arguments: 't'" },
		{ "inject skua0", 2, "usage: skuactl inject DEVICE FAULT [NUMBER]" },
		{ "inject skua0 qp-fatal x", 2, "not a number: 'x'" },
		{ "inject skua0 explode", 1, "no such fault: 'explode'; the faults are none, command-" },
		{ "inject skua0 qp-fatal", 1, "qp-fatal needs the number of a QP" },
		{ "qps skua7", 1, "no such device: 'skua7'" },
		{ "capture skua7 -w /dev/null", 1, "no such device: 'skua7'" },
		{ "capture skua0 -w /nowhere/x", 1, "/nowhere/x: No such file" },
		{ "-s /nowhere/socket devices", 1, "is skuad running?" },
		{ "-s /tmp devices", 1, "/tmp: Connection refused" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char args[128];

		snprintf(args, sizeof(args), "%s 2>&1", bad[i].args);
		assert_int_equal(run(args), bad[i].status);
		assert_says("skuactl: ");
		assert_says(bad[i].says);
		if (last_line(output) != output)
			fail_msg("'%s' says more than one line: %s", bad[i].args, output);
	}
}

static void help_is_help(void **state)
{
	(void)state;
	assert_int_equal(run("--help"), 0);
	assert_says("capture DEVICE");
}

static pid_t start(const char *file)
{
	pid_t pid = fork();

	if (!pid) {
		freopen("/dev/null", "w", stderr);
		execl(program, program, "--socket", path, "capture", "skua0", "-w", file, NULL);
		_exit(127);
	}
	return pid;
}

static void a_capture_ends_when_interrupted(void **state)
{
	char file[64];
	struct stat st;
	int signals[] = { SIGINT, SIGTERM, SIGHUP }, rc;

	(void)state;
	snprintf(file, sizeof(file), "%s/cap", dir);
	for (int i = 0; i < 3; i++) {
		pid_t pid = start(file);

		assert_true(capture_becomes(&devs[0], true));
		usleep(50000);
		kill(pid, signals[i]);
		assert_int_equal(waitpid(pid, &rc, 0), pid);
		assert_true(WIFEXITED(rc) && !WEXITSTATUS(rc));
		assert_null(devs[0].capture);
		assert_int_equal(stat(file, &st), 0);
		assert_true(st.st_size > 100);
		unlink(file);
	}
}

static void a_capture_ends_when_skuactl_is_killed(void **state)
{
	char file[64];
	pid_t pid;

	(void)state;
	snprintf(file, sizeof(file), "%s/cap", dir);
	pid = start(file);
	assert_true(capture_becomes(&devs[0], true));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_true(capture_becomes(&devs[0], false));
	unlink(file);
}

static void a_capture_ends_when_its_reader_has_seen_enough(void **state)
{
	char err[64], args[256];
	FILE *f;

	(void)state;
	snprintf(err, sizeof(err), "%s/err", dir);
	snprintf(args, sizeof(args), "capture skua0 2>%s | head -c 28 >/dev/null; wait", err);
	assert_int_equal(run(args), 0);
	f = fopen(err, "r");
	output[fread(output, 1, sizeof(output) - 1, f)] = '\0';
	fclose(f);
	unlink(err);
	assert_says("skua0: 0 packets, 0 lost\n");
	assert_true(capture_becomes(&devs[0], false));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(devices_are_a_table),
		cmocka_unit_test(qps_are_a_table),
		cmocka_unit_test(cqs_are_a_table),
		cmocka_unit_test(mrs_are_a_table),
		cmocka_unit_test(rates_and_top_end_after_their_rounds),
		cmocka_unit_test(counters_are_a_table_with_a_column_for_each_device),
		cmocka_unit_test(json_is_for_scripts),
		cmocka_unit_test(link_plugs_the_wire),
		cmocka_unit_test(a_fault_may_have_a_number),
		cmocka_unit_test(in_a_guest_the_socket_is_a_port),
		cmocka_unit_test(every_error_is_one_line_and_a_status),
		cmocka_unit_test(help_is_help),
		cmocka_unit_test(a_capture_ends_when_interrupted),
		cmocka_unit_test(a_capture_ends_when_skuactl_is_killed),
		cmocka_unit_test(a_capture_ends_when_its_reader_has_seen_enough),
	};

	(void)argc;
	snprintf(program, sizeof(program), "%s/skuactl", dirname(argv[0]));
	log_set_level(LOG_LEVEL_ERR);
	return cmocka_run_group_tests(tests, start_server, stop_server);
}
