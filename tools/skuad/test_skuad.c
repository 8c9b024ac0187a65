// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The program skuad that stands beside this test: how it starts, refuses to, and ends.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/capability.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <json-c/json.h>

#include "confine.h"
#include "ctl/client.h"
#include "harness/slow.h"

#define MAX_ARGS	16

static char program[512];
static char dir[32];

struct run {
	pid_t pid;
	int ready_fd;		/* gives a byte when it is ready */
	int log_fd;
	char log[4096];
};

/* Starts skuad in the test's directory with @args, separated by single spaces. */
static void start(struct run *r, const char *args)
{
	char copy[2048], ready[16], *argv[MAX_ARGS + 4] = { program }, *rest = copy, *arg;
	int argc = 1, ready_pipe[2], log_pipe[2];

	assert_true(strlen(args) < sizeof(copy));
	strcpy(copy, args);
	while ((arg = strsep(&rest, " ")) && argc < MAX_ARGS) {
		if (*arg)
			argv[argc++] = arg;
	}
	assert_int_equal(pipe2(ready_pipe, O_CLOEXEC), 0);
	assert_int_equal(pipe2(log_pipe, O_CLOEXEC), 0);
	snprintf(ready, sizeof(ready), "%d", ready_pipe[1]);
	argv[argc++] = "--ready-fd";
	argv[argc++] = ready;
	argv[argc] = NULL;

	r->pid = fork();
	if (!r->pid) {
		fcntl(ready_pipe[1], F_SETFD, 0);
		dup2(log_pipe[1], STDERR_FILENO);
		if (!chdir(dir))
			execv(program, argv);
		_exit(127);
	}
	close(ready_pipe[1]);
	close(log_pipe[1]);
	r->ready_fd = ready_pipe[0];
	r->log_fd = log_pipe[0];
}

static bool becomes_ready(struct run *r)
{
	char c;

	return read(r->ready_fd, &c, 1) == 1;
}

/* Waits for the end; gives the exit status, or 128 and the signal. */
static int finish(struct run *r)
{
	size_t len = 0;
	ssize_t n;
	int rc;

	while ((n = read(r->log_fd, r->log + len, sizeof(r->log) - 1 - len)) > 0)
		len += n;
	r->log[len] = '\0';
	close(r->log_fd);
	close(r->ready_fd);
	assert_int_equal(waitpid(r->pid, &rc, 0), r->pid);
	return WIFEXITED(rc) ? WEXITSTATUS(rc) : 128 + WTERMSIG(rc);
}

static int end(struct run *r, int sig)
{
	kill(r->pid, sig);
	return finish(r);
}

static void assert_logged(const struct run *r, const char *part)
{
	if (!strstr(r->log, part))
		print_message("'%s' does not say '%s'\n", r->log, part);
	assert_non_null(strstr(r->log, part));
}

static bool exists(const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return !access(path, F_OK);
}

#define TWO	"--device name=skua0,socket=s0,link=wire:a --device name=skua1,socket=s1,link=wire:a "

static void it_says_when_its_sockets_listen_and_leaves_none(void **state)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP };
	struct run r;

	(void)state;
	for (int i = 0; i < 3; i++) {
		start(&r, TWO "--control ctl");
		assert_true(becomes_ready(&r));
		assert_true(exists("s0") && exists("s1") && exists("ctl"));
		assert_int_equal(end(&r, signals[i]), 0);
		assert_logged(&r, "skuad: ready\n");
		assert_false(exists("s0") || exists("s1") || exists("ctl"));
	}
}

static int connect_to(const char *name)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s", dir, name);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

/* One that is killed with messages unread, too: a reset connection would end QEMU. */
static void its_connections_are_closed_and_not_reset(void **state)
{
	static const int signals[] = { SIGTERM, SIGSEGV, SIGKILL };
	static const uint32_t version[] = { 0x00010007, 20, 0, 0, 0 };
	struct run r;

	(void)state;
	for (int i = 0; i < 3; i++) {
		char reply[4096];
		int fd, gone;

		start(&r, TWO "--control ctl");
		assert_true(becomes_ready(&r));
		gone = connect_to("s0");
		assert_int_equal(send(gone, version, sizeof(version), 0), sizeof(version));
		assert_true(recv(gone, reply, sizeof(reply), 0) > 0);
		close(gone);
		fd = connect_to("s1");
		assert_int_equal(send(fd, version, sizeof(version), 0), sizeof(version));
		assert_true(recv(fd, reply, sizeof(reply), 0) > 0);
		kill(r.pid, SIGSTOP);
		/* Half a message. */
		assert_int_equal(send(fd, version, 10, 0), 10);
		kill(r.pid, signals[i]);
		kill(r.pid, SIGCONT);
		assert_int_equal(recv(fd, reply, sizeof(reply), 0), 0);
		close(fd);
		/* It may do all that it has to do, which the filter of its system calls knows. */
		assert_true(!finish(&r) || signals[i] != SIGTERM);
		/* The other process may end later. */
		for (int ms = 0; ms < 5000 && (exists("s0") || exists("s1") || exists("ctl")); ms++)
			usleep(1000);
	}
}

/* Sends what the kernel closes with the message that nobody reads. */
static void send_fd(int c, int fd)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control = { .align = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct iovec iov = { "", 1 };
	struct msghdr hdr = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control),
	};

	memcpy(CMSG_DATA(&control.align), &fd, sizeof(fd));
	assert_int_equal(sendmsg(c, &hdr, 0), 1);
}

/* However long a descriptor takes that one of them has sent. */
static void all_of_its_connections_are_closed_when_it_is_killed(void **state)
{
	static const uint32_t version[] = { 0x00010007, 20, 0, 0, 0 };
	struct pollfd closed = { .events = POLLIN };
	int slow, peer, fds[2];
	char reply[4096];
	struct run r;

	(void)state;
	/* Whichever connection is the last in a list. */
	for (unsigned int hostile = 0; hostile < 2; hostile++) {
		start(&r, TWO "--control ctl");
		assert_true(becomes_ready(&r));
		for (unsigned int i = 0; i < 2; i++) {
			fds[i] = connect_to(i ? "s1" : "s0");
			assert_int_equal(send(fds[i], version, sizeof(version), 0), sizeof(version));
			assert_true(recv(fds[i], reply, sizeof(reply), 0) > 0);
		}
		kill(r.pid, SIGSTOP);
		slow = slow_socket(&peer);
		send_fd(fds[hostile], slow);
		close(slow);
		kill(r.pid, SIGKILL);
		closed.fd = fds[!hostile];
		assert_int_equal(poll(&closed, 1, 5000), 1);
		assert_int_equal(recv(closed.fd, reply, sizeof(reply), 0), 0);
		for (int ms = 0; ms < 5000 && (exists("s0") || exists("s1") || exists("ctl")); ms++)
			usleep(1000);
		assert_false(exists("s0") || exists("s1") || exists("ctl"));
		close(peer);
		close(fds[0]);
		close(fds[1]);
		finish(&r);
	}
}

/* So do those who have not been accepted yet. */
static void a_peer_that_waits_for_its_turn_does_not_keep_it_from_ending(void **state)
{
	static const uint32_t version[] = { 0x00010007, 20, 0, 0, 0 };
	int client, first, second;
	char reply[4096];
	struct slow s;
	struct run r;

	(void)state;
	start(&r, "--device name=a,socket=s0,link=wire:a --device name=b,socket=s1,link=stream:listen:./l1 --control ctl");
	assert_true(becomes_ready(&r));
	client = connect_to("s0");
	assert_int_equal(send(client, version, sizeof(version), 0), sizeof(version));
	assert_true(recv(client, reply, sizeof(reply), 0) > 0);
	first = connect_to("l1");
	second = connect_to("l1");
	slow_start(&s);
	send_fd(second, s.fd);
	close(s.fd);
	kill(r.pid, SIGTERM);
	assert_int_equal(recv(client, reply, sizeof(reply), 0), 0);
	assert_int_equal(finish(&r), 0);
	slow_end(&s);
	close(second);
	close(first);
	close(client);
}

/* Also of one that is killed; but not the file of somebody else. */
static void its_sockets_go_however_it_ends(void **state)
{
	static const char options[] = "--device name=a,socket=s0,link=dgram:./l0:./r0 "
		"--device name=b,socket=s1,link=stream:listen:./l1 --control ctl";
	char path[64];
	struct run r;
	FILE *f;

	(void)state;
	start(&r, options);
	assert_true(becomes_ready(&r));
	assert_true(exists("s0") && exists("s1") && exists("l0") && exists("l1") && exists("ctl"));
	assert_int_equal(end(&r, SIGTERM), 0);
	assert_false(exists("s0") || exists("s1") || exists("l0") || exists("l1") || exists("ctl"));

	start(&r, options);
	assert_true(becomes_ready(&r));
	snprintf(path, sizeof(path), "%s/s1", dir);
	assert_int_equal(unlink(path), 0);
	f = fopen(path, "w");
	fclose(f);
	end(&r, SIGKILL);
	for (int i = 0; i < 1000 && (exists("s0") || exists("l0") || exists("l1") || exists("ctl")); i++)
		usleep(10000);
	assert_false(exists("s0") || exists("l0") || exists("l1") || exists("ctl"));
	assert_true(exists("s1"));
	assert_int_equal(unlink(path), 0);
}

static void it_may_end_at_once(void **state)
{
	struct run r;

	(void)state;
	for (int i = 0; i < 10; i++) {
		start(&r, TWO "--control ctl --threads 2");
		assert_true(becomes_ready(&r));
		assert_int_equal(end(&r, SIGTERM), 0);
	}
}

static void it_answers_on_its_control_socket(void **state)
{
	struct json_object *request, *answer, *list;
	struct ctl_client c;
	char path[64];
	struct run r;

	(void)state;
	snprintf(path, sizeof(path), "%s/ctl", dir);
	for (int threads = 1; threads <= 2; threads++) {
		start(&r, threads == 1 ? TWO "--control ctl --threads 1" :
					 TWO "--control ctl --threads 2");
		assert_true(becomes_ready(&r));
		assert_true(ctl_client_connect(&c, path));
		request = json_tokener_parse("{\"cmd\":\"devices\"}");
		assert_true(ctl_client_send(&c, request, -1));
		json_object_put(request);
		answer = ctl_client_receive(&c);
		assert_true(json_object_object_get_ex(answer, "devices", &list));
		assert_int_equal(json_object_array_length(list), 2);
		json_object_put(answer);
		ctl_client_close(&c);
		assert_int_equal(end(&r, SIGTERM), 0);
	}
}

#if CONFINED
/* The value of @field in /proc/@pid/task/@tid/status. */
static unsigned long long status_of(pid_t pid, const char *tid, const char *field)
{
	unsigned long long value = ~0ull;
	char name[300], line[256];
	FILE *file;

	snprintf(name, sizeof(name), "/proc/%d/task/%s/status", (int)pid, tid);
	file = fopen(name, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		if (!strncmp(line, field, strlen(field)) && line[strlen(field)] == ':')
			value = strtoull(line + strlen(field) + 1, NULL, 16);
	}
	fclose(file);
	return value;
}

/* Threads share their memory, so one that is not confined is enough for an attacker. */
static void every_thread_is_confined(void **state)
{
	struct dirent *task;
	unsigned int n = 0;
	char path[64];
	struct run r;
	DIR *tasks;

	(void)state;
	start(&r, "--device name=skua0,socket=s0,link=wire:a,persistent=on --control ctl");
	assert_true(becomes_ready(&r));
	snprintf(path, sizeof(path), "/proc/%d/task", (int)r.pid);
	tasks = opendir(path);
	assert_non_null(tasks);
	while ((task = readdir(tasks))) {
		if (task->d_name[0] == '.')
			continue;
		n++;
		assert_int_equal(status_of(r.pid, task->d_name, "Seccomp"), 2);
		assert_int_equal(status_of(r.pid, task->d_name, "NoNewPrivs"), 1);
		assert_int_equal(status_of(r.pid, task->d_name, "CapPrm"), 0);
		assert_int_equal(status_of(r.pid, task->d_name, "CapEff"), 0);
	}
	closedir(tasks);
	assert_true(n >= 2);
	assert_int_equal(end(&r, SIGTERM), 0);
}

/* The process that removes its sockets, too. That it can do so then is what its_sockets_go_however_it_ends() tests. */
static void its_helper_is_confined(void **state)
{
	const unsigned long long files = 1u << CAP_DAC_OVERRIDE | 1u << CAP_FOWNER;
	char path[64], tid[16];
	FILE *children;
	struct run r;
	int pid;

	(void)state;
	start(&r, "--device name=skua0,socket=s0,link=wire:a --control ctl");
	assert_true(becomes_ready(&r));
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)r.pid, (int)r.pid);
	children = fopen(path, "r");
	assert_non_null(children);
	assert_int_equal(fscanf(children, "%d", &pid), 1);
	fclose(children);
	snprintf(tid, sizeof(tid), "%d", pid);
	/* It may be confined a little later than skuad is ready. */
	for (int i = 0; i < 1000 && status_of(pid, tid, "Seccomp") != 2; i++)
		usleep(10000);
	assert_int_equal(status_of(pid, tid, "Seccomp"), 2);
	assert_int_equal(status_of(pid, tid, "NoNewPrivs"), 1);
	assert_int_equal(status_of(pid, tid, "CapPrm") & ~files, 0);
	assert_int_equal(status_of(pid, tid, "CapEff") & ~files, 0);
	assert_int_equal(end(&r, SIGTERM), 0);
}
#endif

/* The soft limit is too low for many NICs with all their vectors. */
static void it_may_have_as_many_descriptors_as_there_are(void **state)
{
	unsigned long soft = 0, hard = 1;
	struct rlimit limit, low;
	char text[200];
	struct run r;
	FILE *file;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	low = (struct rlimit){ 256, limit.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	start(&r, TWO "--control ctl");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_true(becomes_ready(&r));
	snprintf(text, sizeof(text), "/proc/%d/limits", (int)r.pid);
	file = fopen(text, "r");
	assert_non_null(file);
	while (fgets(text, sizeof(text), file) && sscanf(text, "Max open files %lu %lu", &soft, &hard) != 2)
		;
	fclose(file);
	assert_int_equal(soft, hard);
	assert_int_equal(end(&r, SIGTERM), 0);
}

static void it_takes_a_file(void **state)
{
	char path[64];
	struct run r;
	FILE *f;

	(void)state;
	snprintf(path, sizeof(path), "%s/conf", dir);
	f = fopen(path, "w");
	fputs("[device skua0]\nsocket = s0\nlink = wire:a\n", f);
	fclose(f);
	start(&r, "--config conf --control ctl");
	assert_true(becomes_ready(&r));
	assert_true(exists("s0"));
	assert_int_equal(end(&r, SIGTERM), 0);
	unlink(path);
}

static void every_bad_option_is_one_line(void **state)
{
	static const struct {
		const char *args, *says;
	} bad[] = {
		{ "", "no device" },
		{ "--devcie x", "bad option '--devcie'" },
		{ "-x", "bad option '-x'" },
		{ "extra", "unexpected argument 'extra'" },
		{ "--verbose=3", "bad option '--verbose=3'" },
		{ "--device name=a", "no socket" },
		{ "--device name=a,socket=s,link=wifi:x", "bad link" },
		{ "--config nowhere", "nowhere: No such file" },
		{ TWO "--threads 0", "--threads: want 1 to 64" },
		{ TWO "--threads 65", "--threads: want 1 to 64" },
		{ TWO "--threads -1", "--threads: want 1 to 64" },
		{ TWO "--threads 1x", "--threads: want 1 to 64" },
		{ TWO "--ready-fd x", "--ready-fd: not a descriptor" },
		{ TWO "--device name=skua0,socket=s2,link=wire:a", "two devices are named" },
	};
	struct run r;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		start(&r, bad[i].args);
		assert_int_equal(finish(&r), 2);
		assert_logged(&r, "skuad: ");
		assert_logged(&r, bad[i].says);
		assert_ptr_equal(strchr(r.log, '\n'), r.log + strlen(r.log) - 1);
	}
}

static void what_cannot_be_made_is_one_line(void **state)
{
	struct run first, r;

	(void)state;
	start(&r, "--device name=a,socket=/nowhere/s,link=wire:a --control ctl");
	assert_int_equal(finish(&r), 1);
	assert_ptr_equal(strchr(r.log, '\n'), r.log + strlen(r.log) - 1);
	assert_logged(&r, "/nowhere/s");

	start(&r, "--device name=a,socket=s0,link=wire:a --control /nowhere/c");
	assert_int_equal(finish(&r), 1);
	assert_ptr_equal(strchr(r.log, '\n'), r.log + strlen(r.log) - 1);
	assert_logged(&r, "control socket /nowhere/c: No such file");
	assert_false(exists("s0"));

	/* The sockets of one that runs are not taken away from it. */
	start(&first, "--device name=a,socket=s0,link=wire:a --control ctl");
	assert_true(becomes_ready(&first));
	start(&r, "--device name=b,socket=s0,link=wire:a --control ctl2");
	assert_int_equal(finish(&r), 1);
	assert_true(exists("s0") && !exists("ctl2"));
	assert_int_equal(end(&first, SIGTERM), 0);
}

static void help_and_version_are_answers(void **state)
{
	char command[600];

	(void)state;
	snprintf(command, sizeof(command), "%s --help | grep -q -- --device", program);
	assert_int_equal(system(command), 0);
	snprintf(command, sizeof(command), "%s --version | grep -q 'skuad, hardware interface'",
		 program);
	assert_int_equal(system(command), 0);
}

static int make_dir(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/skuad-test-XXXXXX");
	return !mkdtemp(dir);
}

static int remove_dir(void **state)
{
	(void)state;
	return rmdir(dir);
}

#define placed(test)	cmocka_unit_test_setup_teardown(test, make_dir, remove_dir)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		placed(it_says_when_its_sockets_listen_and_leaves_none),
		placed(its_sockets_go_however_it_ends),
		placed(its_connections_are_closed_and_not_reset),
		placed(all_of_its_connections_are_closed_when_it_is_killed),
		placed(a_peer_that_waits_for_its_turn_does_not_keep_it_from_ending),
		placed(it_may_end_at_once),
		placed(it_answers_on_its_control_socket),
#if CONFINED
		placed(every_thread_is_confined),
		placed(its_helper_is_confined),
#endif
		placed(it_may_have_as_many_descriptors_as_there_are),
		placed(it_takes_a_file),
		placed(every_bad_option_is_one_line),
		placed(what_cannot_be_made_is_one_line),
		placed(help_and_version_are_answers),
	};

	(void)argc;
	snprintf(program, sizeof(program), "%s/skuad", dirname(argv[0]));
	if (*program != '/') {
		char *absolute = realpath(program, NULL);

		if (absolute)
			snprintf(program, sizeof(program), "%s", absolute);
		free(absolute);
	}
	if (access(program, X_OK)) {
		print_message("%s is not built\n", program);
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
