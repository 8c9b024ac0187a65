// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Sockets with a name.
 */
#include "base/socket.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Is it the file of a unix socket of the type of @fd, and nobody listens? A symbolic link is somebody's. 1, 0, or
 * -errno. */
static int is_stale(int fd, const struct sockaddr *addr, socklen_t len)
{
	int probe, type;
	socklen_t type_len = sizeof(type);
	struct stat st;
	bool stale;

	if (lstat(((const struct sockaddr_un *)addr)->sun_path, &st) || !S_ISSOCK(st.st_mode) ||
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len))
		return 0;
	probe = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (probe < 0)
		return -errno;
	stale = connect(probe, addr, len) && errno == ECONNREFUSED;
	close(probe);
	return stale;
}

int socket_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	int stale;

	if (!bind(fd, addr, len))
		return 0;
	if (errno != EADDRINUSE || addr->sa_family != AF_UNIX)
		return -errno;
	stale = is_stale(fd, addr, len);
	if (stale <= 0)
		return stale ? stale : -EADDRINUSE;
	if (unlink(((const struct sockaddr_un *)addr)->sun_path) || bind(fd, addr, len))
		return -errno;
	return 0;
}
