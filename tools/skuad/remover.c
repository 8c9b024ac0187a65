// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Theory of operation
 *
 * A process that may remove its sockets may remove other files, too. So skuad, which talks to guests, gives that right
 * up. A process that talks to nobody keeps it, and gives up what it does not need (confine.h): it is forked with a list
 * of paths, and waits at a socket of which skuad has the other end. When that is closed, skuad has ended or is about
 * to. A file that is not the socket that was there at the start is somebody else's.
 *
 * Through that socket skuad hands over a copy of each connection to QEMU. While there is a copy, the kernel does not
 * end the connection of a skuad that was killed, so that it can be ended in order (base/farewell.h). One that has ended
 * before is hung up, and its copy goes.
 */
#include "remover.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/farewell.h"
#include "confine.h"

static struct {
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path) + 1];
	dev_t dev;
	ino_t ino;
} sockets[REMOVER_MAX];

static unsigned int nsockets;
static pid_t remover = -1;
static int alive[2] = { -1, -1 };

/* In that process: the socket, and connections. */
static struct pollfd fds[1 + REMOVER_CONNECTIONS];
static unsigned int nfds = 1;

void remover_add(const char *path)
{
	if (nsockets < REMOVER_MAX)
		strncpy(sockets[nsockets++].path, path, sizeof(sockets[0].path) - 1);
}

static void remove_all(void)
{
	for (unsigned int i = 0; i < nsockets; i++) {
		struct stat st;

		if (!lstat(sockets[i].path, &st) && S_ISSOCK(st.st_mode) && st.st_dev == sockets[i].dev &&
		    st.st_ino == sockets[i].ino)
			unlink(sockets[i].path);
	}
}

/* A byte with a descriptor. */
union message {
	struct cmsghdr align;
	char control[CMSG_SPACE(sizeof(int))];
};

/* False: skuad has ended. */
static bool take_connection(void)
{
	union message m;
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr hdr = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &m, .msg_controllen = sizeof(m) };
	ssize_t n = recvmsg(0, &hdr, 0);
	struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&hdr) : NULL;
	int fd;

	if (c && c->cmsg_type == SCM_RIGHTS) {
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
		if (nfds <= REMOVER_CONNECTIONS)
			fds[nfds++] = (struct pollfd){ .fd = fd };
		else
			close(fd);
	}
	return n > 0 || (n < 0 && errno == EINTR);
}

static void drop_ended(void)
{
	for (unsigned int i = nfds - 1; i; i--) {
		if (fds[i].revents) {
			close(fds[i].fd);
			fds[i] = fds[--nfds];
		}
	}
}

/* The signals that end skuad are not for this one. */
static _Noreturn void run(void)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	dup2(alive[0], 0);
	closefrom(1);
	/* Where this fails, it fails for skuad, too, which ends then. Its files have to go all the same. */
	if (CONFINED)
		(void)confine_remover();
	fds[0].events = POLLIN;
	do {
		poll(fds, nfds, -1);
		drop_ended();
	} while (!fds[0].revents || take_connection());
	/* All of this first: what a client has sent may be slow to go. */
	for (unsigned int i = 1; i < nfds; i++)
		shutdown(fds[i].fd, SHUT_RDWR);
	remove_all();
	while (--nfds)
		farewell(fds[nfds].fd);
	_exit(0);
}

bool remover_start(void)
{
	for (unsigned int i = 0; i < nsockets; i++) {
		struct stat st;

		if (lstat(sockets[i].path, &st))
			return false;
		sockets[i].dev = st.st_dev;
		sockets[i].ino = st.st_ino;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, alive))
		return false;
	remover = fork();
	if (!remover)
		run();
	close(alive[0]);
	return remover > 0;
}

void remover_keep(int fd)
{
	union message m = { .align = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct iovec iov = { "", 1 };
	struct msghdr hdr = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &m, .msg_controllen = sizeof(m) };

	memcpy(CMSG_DATA(&m.align), &fd, sizeof(fd));
	/* Without it skuad serves as well. */
	if (sendmsg(alive[1], &hdr, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return;
}

void remover_finish(void)
{
	if (remover < 0)
		return;
	close(alive[1]);
	while (waitpid(remover, NULL, 0) < 0 && errno == EINTR)
		;
	remover = -1;
}
