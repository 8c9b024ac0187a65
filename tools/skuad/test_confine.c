// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The system calls that are taken away: each in a process of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "confine.h"

#define PAGE	4096

static char log_text[4096], file_path[64];

/* Runs @fn, confined, in a process of its own; its wait status, and what it logged. */
static bool connects;

static int run(int (*fn)(void))
{
	int log[2], status;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe(log), 0);
	pid = fork();
	if (!pid) {
		dup2(log[1], STDERR_FILENO);
		if (!confine(connects))
			_exit(99);
		/* Sanitizers would do more at the end than was left to us. */
		syscall(SYS_exit_group, fn());
	}
	close(log[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	n = read(log[0], log_text, sizeof(log_text) - 1);
	log_text[n < 0 ? 0 : n] = '\0';
	close(log[0]);
	return status;
}

/* It was killed, with one line that names the call. */
static void assert_killed(int (*fn)(void), long nr)
{
	int status = run(fn);
	char line[100];

	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSYS);
	snprintf(line, sizeof(line),
		 "skuad: system call %ld is forbidden: skuad ends\n", nr);
	assert_string_equal(log_text, line);
}

static void assert_done(int (*fn)(void))
{
	int status = run(fn);

	assert_string_equal(log_text, "");
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static int do_exec(void)
{
	return (int)syscall(SYS_execve, "/bin/true", NULL, NULL);
}

static int do_socket(void)
{
	return (int)syscall(SYS_socket, AF_INET, SOCK_STREAM, 0);
}

static int do_fork(void)
{
	return (int)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static int do_ptrace(void)
{
	return (int)syscall(SYS_ptrace, 0, 0, 0, 0);
}

static int do_executable(void)
{
	return (int)syscall(SYS_mmap, NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
}

static void calls_that_serving_does_not_need_kill(void **state)
{
	(void)state;
	assert_killed(do_exec, SYS_execve);
	assert_killed(do_socket, SYS_socket);
	assert_killed(do_fork, SYS_clone);
	assert_killed(do_ptrace, SYS_ptrace);
	assert_killed(do_executable, SYS_mmap);
}

static int do_open(void)
{
	return !(open("/proc/self/status", O_RDONLY) < 0 && errno == EACCES);
}

static int do_unlink(void)
{
	return !(unlink(file_path) < 0 && errno == EACCES);
}

static void no_file_can_be_opened_or_removed(void **state)
{
	int fd = mkstemp(strcpy(file_path, "/tmp/skuad-confine-XXXXXX"));

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	assert_done(do_open);
	assert_done(do_unlink);
	assert_int_equal(unlink(file_path), 0);
}

/* Of this process: bits. */
static unsigned long long effective(pid_t pid)
{
	unsigned long long caps = ~0ull;
	char name[32], line[100];
	FILE *file;

	snprintf(name, sizeof(name), "/proc/%d/status", (int)pid);
	file = fopen(name, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file) && sscanf(line, "CapEff: %llx", &caps) != 1)
		;
	fclose(file);
	return caps;
}

static void no_capability_is_left(void **state)
{
	char byte;
	int up[2];
	pid_t pid;

	(void)state;
	if (!effective(getpid()))
		skip();			/* nobody but root has any */
	assert_int_equal(pipe(up), 0);
	pid = fork();
	if (!pid) {
		if (!confine(false))
			_exit(99);
		if (write(up[1], "", 1) == 1)
			poll(NULL, 0, 60000);
		syscall(SYS_exit_group, 0);
	}
	assert_int_equal(read(up[0], &byte, 1), 1);
	assert_int_equal(effective(pid), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(up[0]);
	close(up[1]);
}

static int do_memory(void)
{
	void *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED || madvise(p, PAGE, MADV_DONTDUMP) || munmap(p, PAGE);
}

static int do_descriptors(void)
{
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	char path[32], target[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, target, sizeof(target)) < 0 || fcntl(fd, F_GETFL) < 0 ||
	       eventfd_write(fd, 1) || close(fd);
}

static void *nothing(void *arg)
{
	return arg;
}

static int do_thread(void)
{
	pthread_t thread;

	return pthread_create(&thread, NULL, nothing, NULL) || pthread_join(thread, NULL);
}

static void calls_of_serving_are_made(void **state)
{
	(void)state;
	assert_done(do_memory);
	assert_done(do_descriptors);
#if CONFINED
	assert_done(do_thread);		/* sanitizers do more for a thread */
#else
	(void)do_thread;
#endif
}

static int make_a_socket(void)
{
	return socket(AF_UNIX, SOCK_STREAM, 0) < 0;
}

static int make_a_packet_socket(void)
{
	return socket(AF_NETLINK, SOCK_RAW, 0) < 0;
}

static void only_links_that_connect_make_sockets(void **state)
{
	(void)state;
	assert_killed(make_a_socket, SYS_socket);
	connects = true;
	assert_done(make_a_socket);
	assert_killed(make_a_packet_socket, SYS_socket);
	connects = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_that_serving_does_not_need_kill),
		cmocka_unit_test(no_file_can_be_opened_or_removed),
		cmocka_unit_test(no_capability_is_left),
		cmocka_unit_test(calls_of_serving_are_made),
		cmocka_unit_test(only_links_that_connect_make_sockets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
