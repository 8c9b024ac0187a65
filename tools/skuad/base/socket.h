/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef SKUAD_BASE_SOCKET_H
#define SKUAD_BASE_SOCKET_H

#include <sys/socket.h>

/* Bind @fd to @addr, in place of a unix socket that its owner left behind. 0 or -errno. */
int socket_bind(int fd, const struct sockaddr *addr, socklen_t len);

#endif /* SKUAD_BASE_SOCKET_H */
