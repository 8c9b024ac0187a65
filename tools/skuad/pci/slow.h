/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* For tests: a descriptor that is slow to close. */
#ifndef SKUAD_PCI_SLOW_H
#define SKUAD_PCI_SLOW_H

#include <errno.h>
#include <netinet/in.h>
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

#endif /* SKUAD_PCI_SLOW_H */
