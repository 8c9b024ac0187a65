// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Theory of operation
 *
 * A process that may remove its sockets may remove other files, too. So skuad, which talks to
 * guests, gives that right up, and a process that talks to nobody keeps it: it is forked with a list
 * of paths, and reads a pipe of which skuad has the other end. When that is closed, skuad has ended or
 * is about to. A file that is not the socket that was there at the start is somebody else's.
 */
#include "remover.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path) + 1];
	dev_t dev;
	ino_t ino;
} sockets[REMOVER_MAX];

static unsigned int nsockets;
static pid_t remover = -1;
static int alive[2];

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

/* The signals that end skuad are not for this one. */
static _Noreturn void run(void)
{
	sigset_t all;
	char byte;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	dup2(alive[0], 0);
	closefrom(1);
	while (read(0, &byte, 1) < 0 && errno == EINTR)
		;
	remove_all();
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
	if (pipe(alive))
		return false;
	remover = fork();
	if (!remover)
		run();
	close(alive[0]);
	return remover > 0;
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
