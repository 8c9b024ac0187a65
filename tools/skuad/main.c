// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * skuad: an emulated Skua NIC for each --device, served to one QEMU each over vfio-user.
 *
 * This thread reads options, makes engines and devices, starts a thread for each engine, and
 * then serves the control socket until a signal ends it. Everything is made before the
 * first engine runs and destroyed after the last has stopped, in reverse order. Before the first
 * engine runs, the process gives up the system calls that it needs no more.
 *
 * Exit status: 0; 1 if something could not be made; 2 for bad options.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/engine.h"
#include "base/log.h"
#include "config.h"
#include "confine.h"
#include "ctl/server.h"
#include "nic/dev.h"
#include "pci/vfio_user.h"
#include "remover.h"
#include "skua/regs.h"

#define MAX_THREADS	64
#define NICE		(-10)
#define STR2(x)		#x
#define STR(x)		STR2(x)

struct options {
	struct config config;
	const char *control;		/* NULL: the default path, if it can be had */
	unsigned int threads;		/* 0: as the machine has CPUs */
	int ready_fd;			/* -1: none */
};

/* All that runs. */
struct skuad {
	struct engine *engine[MAX_THREADS];
	pthread_t thread[MAX_THREADS];
	unsigned int nengines, nthreads;
	struct vfu *vfu[CONFIG_MAX_DEVICES];
	struct ctl_device device[CONFIG_MAX_DEVICES];
	unsigned int ndevices;
	struct ctl *ctl;
	int signal_fd;
};

static struct options options = { .ready_fd = -1 };
static struct skuad skuad = { .signal_fd = -1 };

static const char usage[] =
	"Usage: skuad [OPTION...] --device KEY=VALUE,... [--device ...]\n"
	"Emulates Skua NICs, and serves each to one QEMU over vfio-user.\n"
	"\n"
	"  --device KEY=VALUE,...  add a NIC; may be repeated:\n"
	"                            name=NAME        its name in logs, captures and skuactl\n"
	"                            socket=PATH      the unix socket that QEMU connects to\n"
	"                            link=LINK        wire:NAME in this process, or stream:,\n"
	"                                             dgram:, udp:, tap: (see skuad(8));\n"
	"                                             devices with equal links reach each other\n"
	"                            mac=MAC          its MAC; default: derived from the name\n"
	"                            spoof=on         let its guest use other MACs; default: off\n"
	"                            persistent=on    its guest's memory survives a loss of power; default: off\n"
	"                            max_pages=N      its quota of memory; default: " STR(SKUA_DEV_MAX_PAGES) "\n"
	"  --config FILE           read NICs from FILE: [device NAME], then lines KEY = VALUE\n"
	"  --control PATH          control socket for skuactl; default: " CTL_DEFAULT_PATH ",\n"
	"                          if skuad can create it\n"
	"  --threads N             number of engine threads, 1 to " STR(MAX_THREADS)
	"; default: half the CPUs\n"
	"  --ready-fd N            write a byte to descriptor N when all sockets listen\n"
	"  --verbose               log details for developers of skuad or of a driver\n"
	"  --help                  print this help\n"
	"  --version               print the version\n";

static bool parse_number(const char *text, unsigned int max, unsigned int *value)
{
	unsigned long v;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	v = strtoul(text, &end, 10);
	*value = v;
	return !*end && !errno && v <= max;
}

static bool bad(const char *fmt, const char *arg)
	__attribute__((format(printf, 1, 0)));

static bool bad(const char *fmt, const char *arg)
{
	char text[300];

	snprintf(text, sizeof(text), fmt, arg);
	log_err(NULL, "%s", text);
	return false;
}

enum { OPT_DEVICE = 1, OPT_CONFIG, OPT_CONTROL, OPT_THREADS, OPT_READY_FD, OPT_VERBOSE, OPT_HELP,
       OPT_VERSION };

static bool take_option(struct options *o, int opt, const char *arg)
{
	struct config_error err;
	unsigned int number;

	switch (opt) {
	case OPT_DEVICE:
		return config_add_option(&o->config, arg, &err) || bad("%s", err.text);
	case OPT_CONFIG:
		return config_add_file(&o->config, arg, &err) || bad("%s", err.text);
	case OPT_CONTROL:
		o->control = arg;
		return true;
	case OPT_THREADS:
		if (!parse_number(arg, MAX_THREADS, &o->threads) || !o->threads)
			return bad("--threads: want 1 to " STR(MAX_THREADS) ", not '%.40s'", arg);
		return true;
	case OPT_READY_FD:
		if (!parse_number(arg, 1 << 20, &number))
			return bad("--ready-fd: not a descriptor: '%.40s'", arg);
		o->ready_fd = number;
		return true;
	case OPT_VERBOSE:
		log_set_level(LOG_LEVEL_DEBUG);
		return true;
	case OPT_HELP:
		fputs(usage, stdout);
		exit(0);
	case OPT_VERSION:
		printf("skuad, hardware interface %d.%d\n", SKUA_VERSION_MAJOR,
		       SKUA_VERSION_MINOR);
		exit(0);
	}
	return bad("unhandled option with value '%.40s'", arg);
}

static bool parse_options(struct options *o, int argc, char **argv)
{
	static const struct option longs[] = {
		{ "device", required_argument, NULL, OPT_DEVICE },
		{ "config", required_argument, NULL, OPT_CONFIG },
		{ "control", required_argument, NULL, OPT_CONTROL },
		{ "threads", required_argument, NULL, OPT_THREADS },
		{ "ready-fd", required_argument, NULL, OPT_READY_FD },
		{ "verbose", no_argument, NULL, OPT_VERBOSE },
		{ "help", no_argument, NULL, OPT_HELP },
		{ "version", no_argument, NULL, OPT_VERSION },
		{ 0 },
	};
	struct config_error err;
	int opt;

	opterr = 0;
	for (;;) {
		int at = optind;

		opt = getopt_long(argc, argv, "+:", longs, NULL);
		if (opt < 0)
			break;
		if (opt == ':')
			return bad("option '%.60s' needs a value", argv[at]);
		if (opt == '?')
			return bad("bad option '%.60s' (see --help)", argv[at]);
		if (!take_option(o, opt, optarg))
			return false;
	}
	if (optind < argc)
		return bad("unexpected argument '%.60s' (see --help)", argv[optind]);
	return config_finish(&o->config, &err) || bad("%s", err.text);
}

/* One thread where there is no core to spare, else up to half of them; more than devices
 * would have nothing to do. */
static unsigned int count_threads(const struct options *o)
{
	unsigned int n = o->threads;
	cpu_set_t set;

	if (!n) {
		n = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set) / 2;
		if (!n)
			n = 1;
		if (n > MAX_THREADS)
			n = MAX_THREADS;
	}
	return n < o->config.n ? n : o->config.n;
}

static bool create_engines(struct skuad *s, unsigned int n)
{
	while (s->nengines < n) {
		s->engine[s->nengines] = engine_create(false);
		if (!s->engine[s->nengines]) {
			log_err(NULL, "cannot create an engine: %m");
			return false;
		}
		s->nengines++;
	}
	return true;
}

/* Devices go round the engines; but those with one link share an engine, if it leaves this
 * process. */
static struct engine *engine_for(const struct skuad *s, const struct config *config)
{
	const char *link = config->device[s->ndevices].link;

	for (unsigned int i = 0; strncmp(link, "wire:", 5) && i < s->ndevices; i++)
		if (!strcmp(link, config->device[i].link))
			return s->device[i].engine;
	return s->engine[s->ndevices % s->nengines];
}

/* vfu_create() logs what fails. */
static bool create_devices(struct skuad *s, const struct config *config)
{
	for (; s->ndevices < config->n; s->ndevices++) {
		const struct config_device *d = &config->device[s->ndevices];
		struct skua_dev_config dev = { .name = d->name, .link = d->link, .spoof = d->spoof,
					       .persistent = d->persistent, .max_pages = d->max_pages };
		struct engine *engine = engine_for(s, config);
		struct vfu *v;

		memcpy(dev.mac, d->mac, sizeof(dev.mac));
		v = vfu_create(engine, d->socket, &dev);
		if (!v)
			return false;
		s->vfu[s->ndevices] = v;
		s->device[s->ndevices] = (struct ctl_device){ d->name, engine, vfu_dev(v) };
	}
	return true;
}

/* The default path may belong to another skuad, or to root: that is no reason to fail. */
static bool create_control(struct skuad *s, const char *path)
{
	const char *at = path ? path : CTL_DEFAULT_PATH;

	s->ctl = ctl_create(at, s->device, s->ndevices);
	if (s->ctl)
		return true;
	if (path) {
		log_err(NULL, "cannot create the control socket %s: %m", at);
		return false;
	}
	log_info(NULL, "no control socket at %s: %m (see --control)", at);
	return true;
}

static void *run_engine(void *engine)
{
	engine_run(engine);
	return NULL;
}

/* Threads inherit the mask: signals are for this one alone, by its descriptor. */
static bool take_signals(struct skuad *s)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC);
	if (s->signal_fd < 0)
		log_err(NULL, "cannot create a signalfd: %m");
	return s->signal_fd >= 0;
}

/* All sockets that listen, or receive, are there by now. */
static bool start_remover(const struct skuad *s, const struct options *o)
{
	for (unsigned int i = 0; i < o->config.n; i++) {
		const struct config_device *d = &o->config.device[i];
		char path[CONFIG_PATH_MAX];

		remover_add(d->socket);
		if (link_socket_path(d->link, path))
			remover_add(path);
	}
	if (s->ctl)
		remover_add(o->control ? o->control : CTL_DEFAULT_PATH);
	if (!remover_start()) {
		log_err(NULL, "cannot start the process that removes sockets: %m");
		return false;
	}
	vfu_show_connections(remover_keep);
	return true;
}

static bool give_up_rights(const struct config *config)
{
	bool connects = false;

	if (!CONFINED) {
		log_info(NULL, "built with sanitizers: system calls are not confined");
		return true;
	}
	for (unsigned int i = 0; i < config->n; i++)
		connects |= link_connects(config->device[i].link);
	if (!confine(connects)) {
		log_err(NULL, "cannot give up rights: %m");
		return false;
	}
	return true;
}

static bool start_threads(struct skuad *s)
{
	while (s->nthreads < s->nengines) {
		int err = pthread_create(&s->thread[s->nthreads], NULL, run_engine,
					 s->engine[s->nthreads]);

		if (err) {
			log_err(NULL, "cannot start an engine thread: %s", strerror(err));
			return false;
		}
		s->nthreads++;
	}
	return true;
}

static bool tell_ready(int fd)
{
	if (fd >= 0) {
		if (write(fd, "\n", 1) != 1) {
			log_err(NULL, "--ready-fd %d: %m", fd);
			return false;
		}
		close(fd);
	}
	log_info(NULL, "ready");
	return true;
}

static void serve(struct skuad *s)
{
	struct pollfd pfd[2] = {
		{ .fd = s->signal_fd, .events = POLLIN },
		{ .fd = s->ctl ? ctl_fd(s->ctl) : -1, .events = POLLIN },
	};

	while (!pfd[0].revents) {
		if (poll(pfd, 2, -1) < 0)
			continue;
		if (pfd[1].revents)
			ctl_serve(s->ctl);
	}
}

/* NICs with all their vectors need some 70 each. The usual soft limit is low for the sake of select(). */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static bool start(struct skuad *s, const struct options *o)
{
	/* Wake-ups come sooner; not everybody may, and nothing depends on it. */
	setpriority(PRIO_PROCESS, 0, NICE);
	raise_descriptor_limit();
	return take_signals(s) && create_engines(s, count_threads(o)) &&
	       create_devices(s, &o->config) && create_control(s, o->control) &&
	       start_remover(s, o) && give_up_rights(&o->config) && start_threads(s) && tell_ready(o->ready_fd);
}

/*
 * Whatever start() got to. Captures end while engines still answer. All clients read their end before any device is
 * destroyed, which may wait a second for what some client or peer has sent.
 */
static void stop(struct skuad *s)
{
	if (s->ctl)
		ctl_destroy(s->ctl);
	for (unsigned int i = 0; i < s->nthreads; i++)
		engine_stop(s->engine[i]);
	for (unsigned int i = 0; i < s->nthreads; i++)
		pthread_join(s->thread[i], NULL);
	for (unsigned int i = 0; i < s->ndevices; i++)
		vfu_disconnect(s->vfu[i]);
	while (s->ndevices)
		vfu_destroy(s->vfu[--s->ndevices]);
	while (s->nengines)
		engine_destroy(s->engine[--s->nengines]);
	if (s->signal_fd >= 0)
		close(s->signal_fd);
	remover_finish();
}

/*
 * The C library keeps small blocks apart when they are freed, and gives large ones back to the kernel when there are
 * many. Who frees the next one does that for all: an engine would take milliseconds when a guest with many objects is
 * reset.
 */
static void tune_malloc(void)
{
	mallopt(M_MXFAST, 0);
	mallopt(M_TRIM_THRESHOLD, INT_MAX);
}

int main(int argc, char **argv)
{
	bool started;

	tune_malloc();
	if (!parse_options(&options, argc, argv))
		return 2;
	started = start(&skuad, &options);
	if (started) {
		serve(&skuad);
		log_info(NULL, "ending");
	}
	stop(&skuad);
	return !started;
}
