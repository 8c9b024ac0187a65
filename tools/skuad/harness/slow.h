/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* For tests: a descriptor that is slow to close. */
#ifndef SKUAD_HARNESS_SLOW_H
#define SKUAD_HARNESS_SLOW_H

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* A TCP socket whose last close() waits until @peer reads, which is its other end, or is closed. */
static inline int slow_socket(int *peer)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct linger linger = { 1, 1000000 };
	static const char data[65536];
	socklen_t len = sizeof(addr);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;

	assert_return_code(bind(listener, (struct sockaddr *)&addr, len), errno);
	assert_return_code(listen(listener, 1), errno);
	assert_return_code(getsockname(listener, (struct sockaddr *)&addr, &len), errno);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_return_code(connect(fd, (struct sockaddr *)&addr, len), errno);
	*peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	close(listener);
	assert_return_code(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), errno);
	while (send(fd, data, sizeof(data), MSG_DONTWAIT) > 0)
		;
	return fd;
}

/*
 * A slow socket. A test that waits for it, too, is freed after a while by a thread, which prints where everybody is,
 * and fails.
 */
struct slow {
	int fd, peer;
	int over[2];			/* a pipe */
	pthread_t watchdog;
	bool waited;
};

static inline void *slow_watch(void *arg)
{
	struct pollfd pfd = { .events = POLLIN };
	struct slow *s = arg;

	pfd.fd = s->over[0];
	s->waited = !poll(&pfd, 1, 10000);
	if (s->waited && system("ps -eLo pid,ppid,tid,stat,wchan:32,args"))
		print_message("ps has failed\n");
	close(s->peer);
	return NULL;
}

static inline void slow_start(struct slow *s)
{
	s->fd = slow_socket(&s->peer);
	assert_return_code(pipe(s->over), errno);
	assert_int_equal(pthread_create(&s->watchdog, NULL, slow_watch, s), 0);
}

/* From now on it is closed at once. */
static inline void slow_end(struct slow *s)
{
	close(s->over[1]);
	pthread_join(s->watchdog, NULL);
	close(s->over[0]);
	assert_false(s->waited);
}

#endif /* SKUAD_HARNESS_SLOW_H */
