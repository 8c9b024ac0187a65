// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Client of the control socket; blocking.
 */
#include "ctl/client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <json-c/json.h>

bool ctl_client_connect(struct ctl_client *c, const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int err;

	*c = (struct ctl_client){ .fd = -1 };
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

/* The descriptor goes with the first byte. */
static bool send_all(int fd, const char *text, size_t len, int pass_fd)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };

	while (len) {
		struct iovec iov = { (void *)text, len };
		struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
		ssize_t n;

		if (pass_fd >= 0) {
			control.align.cmsg_level = SOL_SOCKET;
			control.align.cmsg_type = SCM_RIGHTS;
			control.align.cmsg_len = CMSG_LEN(sizeof(int));
			memcpy(CMSG_DATA(&control.align), &pass_fd, sizeof(int));
			msg.msg_control = control.buf;
			msg.msg_controllen = sizeof(control.buf);
		}
		n = sendmsg(fd, &msg, MSG_NOSIGNAL);
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

bool ctl_client_send(struct ctl_client *c, struct json_object *request, int pass_fd)
{
	const char *text = json_object_to_json_string_ext(request, JSON_C_TO_STRING_PLAIN);

	return send_all(c->fd, text, strlen(text), pass_fd) && send_all(c->fd, "\n", 1, -1);
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

struct json_object *ctl_client_receive(struct ctl_client *c)
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
