// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Theory of operation
 *
 * When all files are open, all sockets listen and all memory of the engines is there, a seccomp
 * filter takes away every system call that serving does not need, and the process has no
 * capabilities any more. What the filter leaves works on descriptors that are there already, or that a
 * client sends; no file can be opened, made or removed (remover.c does that), no socket
 * made, no program started, no memory made executable. Paths remain in calls that only say whether a
 * file is there. Only a link that looks for its peer again and again needs new sockets, of the kinds that
 * links have, and connects them.
 *
 * A call that is not in the table is a fault of ours, or somebody else's code: the kernel does not
 * carry it out and sends SIGSYS, whose handler says so and lets the signal do what it does by
 * default.
 */
#include "confine.h"

#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *const allowed[] = {
	/* Descriptors: sockets, eventfds, signalfd, guests' files, captures, the log. */
	"read", "write", "close", "fstat", "fcntl", "lseek", "ftruncate",
	"stat", "statx", "newfstatat",
	"recvmsg", "recvfrom", "sendmsg", "sendto", "accept4", "eventfd2",
	"recvmmsg", "sendmmsg", "setsockopt", "getsockopt",
	"shutdown", "poll", "ppoll", "epoll_wait", "epoll_pwait", "epoll_ctl",
	/* Is it an eventfd? /proc/self/fd says so. */
	"readlink", "readlinkat",
	/* The load of the machine. */
	"pread64", "getrusage",
	/* Memory: guests', and malloc's. */
	"munmap", "mremap", "madvise", "brk", "msync",
	/* Threads: engines, closers, the writer of a capture, and those that make memory persistent. */
	"futex", "set_robust_list", "rseq", "sched_getaffinity", "exit", "rt_sigprocmask",
	/* Signals: lost guest memory; and abort(). */
	"rt_sigaction", "rt_sigreturn", "getpid", "gettid", "tgkill",
	"clock_gettime", "clock_nanosleep", "restart_syscall", "getrandom",
	/* The end: another process removes the sockets. */
	"wait4", "exit_group",
};

/* The same, for links that connect. */
static const struct {
	const char *name;
	int domain;			/* of socket(); -1: any argument */
} connecting[] = {
	{ "socket", AF_UNIX }, { "socket", AF_INET }, { "socket", AF_INET6 }, { "connect", -1 },
};

/* All that the process needs that removes the sockets. */
static const char *const removing[] = {
	"poll", "ppoll", "restart_syscall", "recvmsg", "recvfrom", "shutdown", "close",
	"lstat", "newfstatat", "unlink", "unlinkat", "exit_group",
};

/* What fails as if there were no such file, or no such call: libc asks, and can do without. */
static const struct {
	const char *name;
	int error;
} refused[] = {
	{ "open", EACCES }, { "openat", EACCES },
	{ "unlink", EACCES }, { "unlinkat", EACCES },
	/* Its flags stand in memory, where no filter sees them; clone's do not. */
	{ "clone3", ENOSYS },
};

/* Allowed if the bits of @mask in argument @arg are @value. */
static const struct {
	const char *name;
	unsigned int arg;
	uint64_t mask, value;
} allowed_with[] = {
	{ "mmap", 2, PROT_EXEC, 0 },
	{ "mprotect", 2, PROT_EXEC, 0 },
	{ "clone", 0, CLONE_THREAD, CLONE_THREAD },
};

#define COUNT(table)	(sizeof(table) / sizeof((table)[0]))

/* 0, or a negative errno. A call that this architecture does not have is nothing to allow. */
static int allow(scmp_filter_ctx filter, const char *const *names, size_t n)
{
	int ret = 0;

	for (size_t i = 0; i < n && !ret; i++) {
		int nr = seccomp_syscall_resolve_name(names[i]);

		if (nr != __NR_SCMP_ERROR)
			ret = seccomp_rule_add(filter, SCMP_ACT_ALLOW, nr, 0);
	}
	return ret;
}

static int add_rules(scmp_filter_ctx filter, bool connects)
{
	int ret = allow(filter, allowed, COUNT(allowed));

	for (size_t i = 0; i < COUNT(refused) && !ret; i++) {
		int nr = seccomp_syscall_resolve_name(refused[i].name);

		if (nr != __NR_SCMP_ERROR)
			ret = seccomp_rule_add(filter, SCMP_ACT_ERRNO(refused[i].error), nr, 0);
	}
	for (size_t i = 0; i < COUNT(allowed_with) && !ret; i++) {
		int nr = seccomp_syscall_resolve_name(allowed_with[i].name);

		ret = seccomp_rule_add(filter, SCMP_ACT_ALLOW, nr, 1,
				       SCMP_CMP(allowed_with[i].arg, SCMP_CMP_MASKED_EQ,
						allowed_with[i].mask, allowed_with[i].value));
	}
	for (size_t i = 0; connects && i < COUNT(connecting) && !ret; i++) {
		int nr = seccomp_syscall_resolve_name(connecting[i].name);

		ret = connecting[i].domain < 0 ?
		      seccomp_rule_add(filter, SCMP_ACT_ALLOW, nr, 0) :
		      seccomp_rule_add(filter, SCMP_ACT_ALLOW, nr, 1,
				       SCMP_CMP(0, SCMP_CMP_EQ, (scmp_datum_t)connecting[i].domain, 0));
	}
	return ret;
}

/* Digits of @n at the end of @text, from @end backwards. */
static char *put_number(char *end, unsigned int n)
{
	do
		*--end = (char)('0' + n % 10);
	while (n /= 10);
	return end;
}

static void on_sigsys(int sig, siginfo_t *si, void *context)
{
	static const char before[] = "skuad: system call ";
	static const char after[] = " is forbidden: skuad ends\n";
	char line[sizeof(before) + 10 + sizeof(after)], digits[10];
	char *number = put_number(digits + sizeof(digits), (unsigned int)si->si_syscall);
	size_t n = (size_t)(digits + sizeof(digits) - number), len = sizeof(before) - 1;

	(void)context;
	memcpy(line, before, len);
	memcpy(line + len, number, n);
	memcpy(line + len + n, after, sizeof(after));
	/* The handler was for this once; as it returns the signal kills. */
	if (write(STDERR_FILENO, line, len + n + sizeof(after) - 1) < 0 || raise(sig))
		_exit(1);
}

/*
 * All but those of the bits @keep, of root's as well, and for good: the filter makes execve() impossible, and it alone
 * could give them back.
 */
static int drop_capabilities(uint32_t keep)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct has[_LINUX_CAPABILITY_U32S_3], left[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	if (syscall(SYS_capget, &header, has))
		return -errno;
	left[0].permitted = has[0].permitted & keep;
	left[0].effective = has[0].effective & keep;
	return syscall(SYS_capset, &header, left) ? -errno : 0;
}

bool confine(bool connects)
{
	struct sigaction sa = {
		.sa_sigaction = on_sigsys,
		.sa_flags = SA_SIGINFO | (int)SA_RESETHAND,
	};
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_TRAP);
	int ret = filter ? add_rules(filter, connects) : -ENOMEM;

	if (!ret)
		ret = drop_capabilities(0);
	if (!ret)
		ret = sigaction(SIGSYS, &sa, NULL) ? -errno : seccomp_load(filter);
	seccomp_release(filter);
	errno = -ret;
	return !ret;
}

bool confine_remover(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
	int ret = filter ? allow(filter, removing, COUNT(removing)) : -ENOMEM;

	if (!ret)
		ret = drop_capabilities(1U << CAP_DAC_OVERRIDE | 1U << CAP_FOWNER);
	if (!ret)
		ret = seccomp_load(filter);
	seccomp_release(filter);
	errno = -ret;
	return !ret;
}
