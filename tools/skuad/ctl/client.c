// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Client of the control socket; blocking.
 */
#include "ctl/client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <json-c/json.h>

#define PORT_TRIES	500
#define PORT_WAIT_US	10000

/* The descriptor goes with the first byte. */
static ssize_t send_some(int fd, const char *text, size_t len, int pass_fd)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { (void *)text, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (pass_fd >= 0) {
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.align), &pass_fd, sizeof(int));
		msg.msg_control = control.buf;
		msg.msg_controllen = sizeof(control.buf);
	}
	return sendmsg(fd, &msg, MSG_NOSIGNAL);
}

static bool send_all(struct ctl_client *c, const char *text, size_t len, int pass_fd)
{
	if (c->port && pass_fd >= 0) {
		errno = EOPNOTSUPP;
		return false;
	}
	while (len) {
		ssize_t n = c->port ? write(c->fd, text, len) :
			    send_some(c->fd, text, len, pass_fd);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		pass_fd = -1;
		text += n;
		len -= n;
	}
	return true;
}

/* A port serves one at a time: others wait for a while. */
static bool open_port(struct ctl_client *c, const char *path)
{
	for (int tries = 0; tries < PORT_TRIES; tries++) {
		c->fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY);
		if (c->fd >= 0 || errno != EBUSY)
			break;
		usleep(PORT_WAIT_US);
	}
	c->port = true;
	/* What the last user did not finish is no part of what comes now. */
	return c->fd >= 0 && send_all(c, "\n", 1, -1);
}

bool ctl_client_connect(struct ctl_client *c, const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct stat st;
	int err;

	*c = (struct ctl_client){ .fd = -1 };
	if (!stat(path, &st) && S_ISCHR(st.st_mode))
		return open_port(c, path);
	if (strlen(path) >= sizeof(addr.sun_path)) {
		errno = ENAMETOOLONG;
		return false;
	}
	strcpy(addr.sun_path, path);
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		return false;
	if (!connect(c->fd, (const struct sockaddr *)&addr, sizeof(addr)))
		return true;
	err = errno;
	close(c->fd);
	c->fd = -1;
	errno = err;
	return false;
}

void ctl_client_close(struct ctl_client *c)
{
	close(c->fd);
	free(c->buf);
	*c = (struct ctl_client){ .fd = -1 };
}

bool ctl_client_send(struct ctl_client *c, struct json_object *request, int pass_fd)
{
	const char *text = json_object_to_json_string_ext(request, JSON_C_TO_STRING_PLAIN);

	return send_all(c, text, strlen(text), pass_fd) && send_all(c, "\n", 1, -1);
}

static bool read_more(struct ctl_client *c)
{
	ssize_t n;

	if (c->len == c->room) {
		size_t room = c->room ? 2 * c->room : 4096;
		char *p = realloc(c->buf, room);

		if (!p)
			return false;
		c->buf = p;
		c->room = room;
	}
	do {
		n = read(c->fd, c->buf + c->len, c->room - c->len);
	} while (n < 0 && errno == EINTR);
	if (!n)
		errno = ECONNRESET;
	if (n > 0)
		c->len += n;
	return n > 0;
}

static struct json_object *receive_line(struct ctl_client *c)
{
	struct json_object *o;
	size_t looked = 0, len;
	char *end;

	while (!c->len || !(end = memchr(c->buf + looked, '\n', c->len - looked))) {
		looked = c->len;
		if (!read_more(c))
			return NULL;
	}
	*end = '\0';
	o = json_tokener_parse(c->buf);
	len = end + 1 - c->buf;
	c->len -= len;
	memmove(c->buf, end + 1, c->len);
	if (!json_object_is_type(o, json_type_object)) {
		json_object_put(o);
		errno = EBADMSG;
		return NULL;
	}
	return o;
}

/* The rest of an answer may stand in a port, whose user was killed in the midst of it. */
struct json_object *ctl_client_receive(struct ctl_client *c)
{
	struct json_object *o;

	do {
		o = receive_line(c);
	} while (!o && c->port && errno == EBADMSG);
	return o;
}
