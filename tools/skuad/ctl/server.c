// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The control socket. Theory of operation: one epoll descriptor holds the listener, the
 * clients and the captures that run. A request is a line; a client's next request is read
 * only when it has taken the answer to the one before, so that a client costs no more memory
 * than one request and one answer, and never anybody's time. A descriptor may come with a
 * request (SCM_RIGHTS); it belongs to the first request that is complete after it.
 *
 * Captures end when their client asks, when it goes, or when their reader does; in the last
 * case the client gets an "event" line.
 */
#include "ctl/server.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <json-c/json.h>

#include "base/log.h"
#include "base/socket.h"
#include "ctl/requests.h"
#include "link/capture.h"

#define MAX_CLIENTS	32
#define MAX_EVENTS	16

/* What an epoll event is about. */
enum source_type { SOURCE_LISTENER, SOURCE_CLIENT, SOURCE_CAPTURE };

struct source {
	enum source_type type;
	unsigned int i;		/* of the client or the device */
};

struct client {
	struct source source;
	int fd;			/* -1: free */
	int passed_fd;		/* came with a request; -1: none */
	bool dead;		/* to be dropped at the end of this round */
	size_t in_len;
	char in[CTL_MAX_LINE];
	char *out;		/* what is still to be sent, or NULL */
	size_t out_len, out_done;
};

struct ctl {
	struct sockaddr_un addr;
	int listener, epoll;
	struct ctl_state state;
	struct source listener_source;
	struct source *capture_source;	/* one for each device */
	bool *watched;			/* is its capture in the epoll? */
	struct client client[MAX_CLIENTS];
};

static int watch(struct ctl *ctl, int op, int fd, uint32_t events, struct source *source)
{
	struct epoll_event ev = { .events = events, .data.ptr = source };

	return epoll_ctl(ctl->epoll, op, fd, &ev);
}

static void drop_client(struct ctl *ctl, struct client *c)
{
	uint64_t written, lost;

	for (unsigned int i = 0; i < ctl->state.n; i++) {
		if (ctl->state.captures[i].client != c)
			continue;
		ctl_end_capture(&ctl->state, i, &written, &lost);
		ctl->watched[i] = false;
		log_info(ctl->state.devices[i].name, "capture ended: %llu packets, %llu lost",
			 (unsigned long long)written, (unsigned long long)lost);
	}
	if (c->passed_fd >= 0)
		close(c->passed_fd);
	close(c->fd);
	free(c->out);
	memset(c, 0, sizeof(*c));
	c->fd = c->passed_fd = -1;
}

static void accept_client(struct ctl *ctl)
{
	int fd = accept4(ctl->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	unsigned int i = 0;

	if (fd < 0) {
		/* It stays readable: do not spin while there are no descriptors left. */
		if (errno == EMFILE || errno == ENFILE)
			usleep(10000);
		return;
	}
	while (i < MAX_CLIENTS && ctl->client[i].fd >= 0)
		i++;
	if (i < MAX_CLIENTS) {
		ctl->client[i].source = (struct source){ SOURCE_CLIENT, i };
		if (!watch(ctl, EPOLL_CTL_ADD, fd, EPOLLIN, &ctl->client[i].source)) {
			ctl->client[i].fd = fd;
			return;
		}
	} else {
		static const char busy[] = "{\"ok\":false,\"error\":\"too many clients\"}\n";

		send(fd, busy, sizeof(busy) - 1, MSG_NOSIGNAL);
	}
	close(fd);
}

static void flush_client(struct ctl *ctl, struct client *c)
{
	ssize_t n = 0;

	while (c->out && !c->dead) {
		n = send(c->fd, c->out + c->out_done, c->out_len - c->out_done, MSG_NOSIGNAL);
		if (n < 0)
			break;
		c->out_done += n;
		if (c->out_done == c->out_len) {
			free(c->out);
			c->out = NULL;
			c->out_len = c->out_done = 0;
		}
	}
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		c->dead = true;
	/* Either it takes the answer or it is asked for the next request. */
	if (!c->dead)
		watch(ctl, EPOLL_CTL_MOD, c->fd, c->out ? EPOLLOUT : EPOLLIN, &c->source);
}

/* Adds @answer, which is used up, to what the client is to be sent. */
static void answer(struct client *c, struct json_object *object)
{
	const char *text = NULL;
	size_t len = 0;
	char *p = NULL;

	if (object)
		text = json_object_to_json_string_length(object, JSON_C_TO_STRING_PLAIN, &len);
	if (text)
		p = realloc(c->out, c->out_len + len + 1);
	if (p) {
		memcpy(p + c->out_len, text, len);
		p[c->out_len + len] = '\n';
		c->out = p;
		c->out_len += len + 1;
	} else {
		c->dead = true;
	}
	json_object_put(object);
}

/* The captures that began or ended with a request: watch them, or forget. */
static void watch_captures(struct ctl *ctl)
{
	for (unsigned int i = 0; i < ctl->state.n; i++) {
		struct capture *cap = ctl->state.captures[i].cap;

		if (cap && !ctl->watched[i])
			watch(ctl, EPOLL_CTL_ADD, capture_event_fd(cap), EPOLLIN,
			      &ctl->capture_source[i]);
		/* One that ended has closed its descriptor, and so left the epoll. */
		ctl->watched[i] = cap;
	}
}

/* Carries out requests as long as the answers are taken. */
static void serve_lines(struct ctl *ctl, struct client *c)
{
	char *end;

	while (!c->out && !c->dead && (end = memchr(c->in, '\n', c->in_len))) {
		size_t len = end - c->in;

		answer(c, ctl_request(&ctl->state, c, c->in, len, &c->passed_fd));
		if (c->passed_fd >= 0)
			close(c->passed_fd);
		c->passed_fd = -1;
		watch_captures(ctl);
		c->in_len -= len + 1;
		memmove(c->in, end + 1, c->in_len);
		flush_client(ctl, c);
	}
	if (c->in_len == sizeof(c->in) && !c->out)
		c->dead = true;		/* too long for any request */
}

/* Takes the first descriptor of @msg, and closes others. */
static void take_fds(struct client *c, struct msghdr *msg)
{
	for (struct cmsghdr *h = CMSG_FIRSTHDR(msg); h; h = CMSG_NXTHDR(msg, h)) {
		size_t n = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		int fd;

		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			memcpy(&fd, CMSG_DATA(h) + i * sizeof(fd), sizeof(fd));
			if (c->passed_fd < 0)
				c->passed_fd = fd;
			else
				close(fd);
		}
	}
}

static void read_client(struct ctl *ctl, struct client *c)
{
	union {
		char buf[CMSG_SPACE(4 * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { c->in + c->in_len, sizeof(c->in) - c->in_len };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control.buf, .msg_controllen = sizeof(control.buf),
	};
	ssize_t n = recvmsg(c->fd, &msg, MSG_CMSG_CLOEXEC);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		c->dead = true;
		return;
	}
	take_fds(c, &msg);
	c->in_len += n;
	serve_lines(ctl, c);
	if (c->dead && c->in_len == sizeof(c->in)) {
		static const char text[] = "{\"ok\":false,\"error\":\"request too long\"}\n";

		send(c->fd, text, sizeof(text) - 1, MSG_NOSIGNAL);
	}
}

static void serve_client(struct ctl *ctl, struct client *c, uint32_t events)
{
	if (c->fd < 0)
		return;
	if (events & EPOLLOUT) {
		flush_client(ctl, c);
		serve_lines(ctl, c);	/* those that came while it was busy */
	} else if (events & EPOLLIN) {
		read_client(ctl, c);
	} else if (events & (EPOLLHUP | EPOLLERR)) {
		c->dead = true;
	}
	if (c->dead)
		drop_client(ctl, c);
}

/* A capture ended by itself. */
static void serve_capture(struct ctl *ctl, unsigned int i)
{
	struct client *c = NULL;
	struct json_object *news;

	if (!ctl->state.captures[i].cap || !capture_error(ctl->state.captures[i].cap))
		return;
	for (unsigned int k = 0; k < MAX_CLIENTS; k++) {
		if (ctl->state.captures[i].client == &ctl->client[k])
			c = &ctl->client[k];
	}
	log_info(ctl->state.devices[i].name, "capture ended: %s",
		 strerror(capture_error(ctl->state.captures[i].cap)));
	news = ctl_capture_news(&ctl->state, i);
	ctl->watched[i] = false;
	if (!c) {
		json_object_put(news);
		return;
	}
	answer(c, news);
	flush_client(ctl, c);
	if (c->dead)
		drop_client(ctl, c);
}

void ctl_serve(struct ctl *ctl)
{
	struct epoll_event ev[MAX_EVENTS];
	int n = epoll_wait(ctl->epoll, ev, MAX_EVENTS, 0);

	for (int i = 0; i < n; i++) {
		const struct source *source = ev[i].data.ptr;

		switch (source->type) {
		case SOURCE_LISTENER:
			accept_client(ctl);
			break;
		case SOURCE_CLIENT:
			serve_client(ctl, &ctl->client[source->i], ev[i].events);
			break;
		case SOURCE_CAPTURE:
			serve_capture(ctl, source->i);
			break;
		}
	}
}

int ctl_fd(const struct ctl *ctl)
{
	return ctl->epoll;
}

static int listen_at(struct sockaddr_un *addr, const char *path)
{
	const struct sockaddr *sa = (const struct sockaddr *)addr;
	int fd, err;

	if (!*path || strlen(path) >= sizeof(addr->sun_path)) {
		errno = *path ? ENAMETOOLONG : EINVAL;
		return -1;
	}
	addr->sun_family = AF_UNIX;
	strcpy(addr->sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	/* The mode of the socket is that of its file from the moment there is one. */
	if (fchmod(fd, 0600))
		goto fail;
	err = socket_bind(fd, sa, sizeof(*addr));
	if (err) {
		errno = -err;
		goto fail;
	}
	if (!listen(fd, MAX_CLIENTS))
		return fd;
	err = errno;
	unlink(path);
	errno = err;
fail:
	err = errno;
	close(fd);
	errno = err;
	return -1;
}

static bool allocate(struct ctl *ctl, unsigned int n)
{
	ctl->state.captures = calloc(n, sizeof(*ctl->state.captures));
	ctl->capture_source = calloc(n, sizeof(*ctl->capture_source));
	ctl->watched = calloc(n, sizeof(*ctl->watched));
	for (unsigned int i = 0; ctl->capture_source && i < n; i++)
		ctl->capture_source[i] = (struct source){ SOURCE_CAPTURE, i };
	return ctl->state.captures && ctl->capture_source && ctl->watched;
}

static void release(struct ctl *ctl)
{
	free(ctl->watched);
	free(ctl->capture_source);
	free(ctl->state.captures);
	free(ctl);
}

struct ctl *ctl_create(const char *path, const struct ctl_device *devices, unsigned int n)
{
	struct ctl *ctl = calloc(1, sizeof(*ctl));
	int err;

	if (!ctl)
		return NULL;
	ctl->state.devices = devices;
	ctl->state.n = n;
	for (unsigned int i = 0; i < MAX_CLIENTS; i++)
		ctl->client[i].fd = ctl->client[i].passed_fd = -1;
	if (!allocate(ctl, n)) {
		err = ENOMEM;
		goto free_ctl;
	}
	ctl->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (ctl->epoll < 0) {
		err = errno;
		goto free_ctl;
	}
	ctl->listener = listen_at(&ctl->addr, path);
	if (ctl->listener < 0) {
		err = errno;
		goto close_epoll;
	}
	ctl->listener_source.type = SOURCE_LISTENER;
	if (watch(ctl, EPOLL_CTL_ADD, ctl->listener, EPOLLIN, &ctl->listener_source)) {
		err = errno;
		goto close_listener;
	}
	return ctl;

close_listener:
	close(ctl->listener);
	unlink(ctl->addr.sun_path);
close_epoll:
	close(ctl->epoll);
free_ctl:
	release(ctl);
	errno = err;
	return NULL;
}

void ctl_destroy(struct ctl *ctl)
{
	for (unsigned int i = 0; i < MAX_CLIENTS; i++) {
		if (ctl->client[i].fd >= 0)
			drop_client(ctl, &ctl->client[i]);
	}
	close(ctl->listener);
	unlink(ctl->addr.sun_path);
	close(ctl->epoll);
	release(ctl);
}
