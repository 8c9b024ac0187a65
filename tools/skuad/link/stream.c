// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * stream: frames behind their lengths, 32 bits big endian, over a stream socket, as QEMU's
 * -netdev stream has it.
 *
 * One end listens, the other connects, and tries again when it was refused or cut off. There is
 * one peer at a time; others wait in the listener's backlog until it has gone. A peer that
 * sends what cannot be a length is cut off.
 */
#include <endian.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/engine_priv.h"
#include "base/log.h"
#include "base/socket.h"
#include "link/uplink.h"

#define RETRY_NS	100000000	/* between two attempts to connect */
#define REST_NS		1000000000	/* of a listener that cannot accept */
#define LEN_MAX		(68u << 10)	/* more than QEMU ever sends */
#define READ_BYTES	(96u << 10)	/* at once: a train of any path MTU */
#define RX_BYTES	(LEN_MAX + 2 * READ_BYTES)

/* What the closer has to take after it was asked: what comes of a call, and sockets. */
#define CLOSER_ROOM	(CLOSER_MSG_FDS + 4)

#define READS		4		/* before others have their turn */

/* Of a peer by TCP whose host is gone without a word. Idle connections are probed. */
#define IDLE_S		4		/* without a sign of life, then there are probes */
#define PROBE_S		2		/* between probes */
#define PROBES		3		/* without an answer, then it is gone */

struct stream {
	struct uplink up;
	struct engine_fd conn;		/* fd -1: none */
	struct engine_fd listener;	/* fd -1: we connect */
	struct timer retry;
	struct link_addr addr;
	bool connecting;
	bool told;			/* that there is nobody */
	uint32_t skip;			/* bytes at tx_head that are out already */
	uint32_t start, end;		/* of what was received */
	uint8_t rx[RX_BYTES];
};

#define stream_of(p, member) \
	((struct stream *)(void *)((char *)(p) - offsetof(struct stream, member)))

static void retry_later(struct stream *s)
{
	if (s->listener.fd < 0)
		timer_set(&s->up.engine->timers, &s->retry, engine_now(s->up.engine) + RETRY_NS);
}

/* @why: NULL or what the log is told. */
static void disconnect(struct stream *s, const char *why)
{
	if (why)
		log_info(NULL, "link %s: %s", s->up.name, why);
	engine_fd_del(s->up.engine, &s->conn);
	/* Nothing has come where nobody had connected. */
	if (s->up.carrier)
		uplink_close_socket(&s->up, s->conn.fd);
	else
		close(s->conn.fd);
	s->conn.fd = -1;
	s->connecting = false;
	s->up.carrier = false;
	s->up.blocked = false;
	s->skip = 0;
	s->start = s->end = 0;
	s->up.held = false;
	uplink_drop_tx(&s->up);
	if (s->listener.fd >= 0)
		engine_fd_add(s->up.engine, &s->listener);
	else
		retry_later(s);
}

/*
 * Of one end that has died the kernel would keep the other for hours, and no other peer would be served. There is no
 * TCP_USER_TIMEOUT: it would also end the connection of a peer that reads nothing for a while.
 */
static void tune_tcp(int fd)
{
	static const struct {
		int level, name, value;
	} options[] = {
		{ IPPROTO_TCP, TCP_NODELAY, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, IDLE_S },
		{ IPPROTO_TCP, TCP_KEEPINTVL, PROBE_S },
		{ IPPROTO_TCP, TCP_KEEPCNT, PROBES },
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
	};

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(options[i].value));
}

static void connected(struct stream *s)
{
	if (s->addr.sa.sa_family != AF_UNIX)
		tune_tcp(s->conn.fd);
	s->connecting = false;
	s->told = false;
	s->up.carrier = true;
	log_info(NULL, "link %s: the peer has connected", s->up.name);
}

static void set_blocked(struct stream *s, bool blocked)
{
	int events = blocked ? POLLIN | POLLOUT : POLLIN;

	/* Without memory for that it is tried again and again. */
	if (s->up.blocked != blocked && !engine_fd_watch(s->up.engine, &s->conn, events))
		s->up.blocked = blocked;
}

/*
 * While the closer is full nothing is read, and the end of the connection would be told again and again. So nothing is
 * watched, but looked at now and then.
 */
static bool must_rest(struct stream *s)
{
	if (!uplink_is_full(&s->up))
		return false;
	engine_fd_rest(s->up.engine, &s->conn, UPLINK_FULL_REST_NS);
	return true;
}

static void stream_flush(struct uplink *up)
{
	struct stream *s = stream_of(up, up);
	uint32_t len;
	ssize_t n;

	if (!up->carrier)
		return;
	n = send(s->conn.fd, up->tx + up->tx_head + s->skip, up->tx_tail - up->tx_head - s->skip,
		 MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n > 0)
		s->skip += (uint32_t)n;
	/*
	 * Nothing can be sent any more, but the peer may stay connected. The caller relies on the link, so the receive
	 * path disconnects: it reads the end of file that this causes.
	 */
	else if (n < 0 && errno != EAGAIN && errno != EINTR && errno != ENOBUFS)
		shutdown(s->conn.fd, SHUT_RDWR);
	while (uplink_peek(up, 0, &len) && s->skip >= UPLINK_LEN + len) {
		s->skip -= UPLINK_LEN + len;
		uplink_sent(up, UPLINK_LEN + len);
	}
	set_blocked(s, up->tx_head != up->tx_tail);
}

/* Deliver what is whole, as far as the turn lasts. False: it was no frame, and the peer is cut off. */
static bool deliver(struct stream *s)
{
	uint32_t len;

	while (s->end - s->start >= UPLINK_LEN && s->up.engine->turn > 0) {
		memcpy(&len, s->rx + s->start, UPLINK_LEN);
		len = be32toh(len);
		if (len > LEN_MAX - UPLINK_LEN) {
			disconnect(s, "the peer has sent something that is not a frame");
			return false;
		}
		if (s->end - s->start - UPLINK_LEN < len)
			break;
		uplink_received(&s->up, s->rx + s->start + UPLINK_LEN, len);
		s->start += UPLINK_LEN + len;
	}
	s->up.held = s->start != s->end && s->up.engine->turn <= 0;
	if (s->up.held)
		return true;
	if (s->start == s->end) {
		s->start = s->end = 0;
	} else if (s->end > RX_BYTES - READ_BYTES) {
		/* A frame that is cut is no longer than LEN_MAX. */
		memmove(s->rx, s->rx + s->start, s->end - s->start);
		s->end -= s->start;
		s->start = 0;
	}
	return true;
}

static void stream_take(struct uplink *up)
{
	deliver(stream_of(up, up));
}

/* Bytes, 0 at the end, or -1 with errno set. */
static ssize_t receive_some(struct stream *s)
{
	struct iovec iov = { s->rx + s->end, READ_BYTES };
	union uplink_control control;
	struct msghdr hdr = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control),
	};
	ssize_t n;

	if (!s->up.closer)
		return recv(s->conn.fd, iov.iov_base, iov.iov_len, MSG_DONTWAIT);
	n = recvmsg(s->conn.fd, &hdr, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n >= 0 && hdr.msg_controllen)
		uplink_close_received(&s->up, &hdr);
	return n;
}

/* True if anything came, or was found out. */
static bool receive(struct stream *s)
{
	bool any;

	s->up.engine->turn = TURN_COST;
	any = uplink_take(&s->up);
	for (int i = 0; i < READS && s->up.carrier && !s->up.held && !must_rest(s); i++) {
		ssize_t n = receive_some(s);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return any;
		if (n <= 0) {
			disconnect(s, n ? strerror(errno) : "the peer has disconnected");
			return true;
		}
		s->end += (uint32_t)n;
		any = true;
		if (!deliver(s) || n < (ssize_t)READ_BYTES)
			break;
	}
	return any;
}

/* It failed; the log is told once. */
static void refused(struct stream *s, int err)
{
	if (!s->told)
		log_info(NULL, "link %s: no peer yet: %s", s->up.name, strerror(err));
	s->told = true;
	if (s->conn.fd >= 0)
		disconnect(s, NULL);
	else
		retry_later(s);
}

/* What tells of a connection that is being made is epoll: it is not hot before. */
static bool conn_look(struct engine_fd *efd)
{
	struct stream *s = stream_of(efd, conn);
	socklen_t len = sizeof(int);
	bool any;
	int err;

	if (s->connecting) {
		if (getsockopt(efd->fd, SOL_SOCKET, SO_ERROR, &err, &len))
			err = errno;
		if (err) {
			refused(s, err);
			return true;
		}
		engine_fd_watch(s->up.engine, &s->conn, POLLIN);
		connected(s);
		return true;
	}
	any = uplink_retry(&s->up);
	return receive(s) || any;
}

static void listener_ready(struct engine_fd *efd)
{
	struct stream *s = stream_of(efd, listener);
	int fd;

	if (uplink_is_full(&s->up)) {
		engine_fd_rest(s->up.engine, efd, UPLINK_FULL_REST_NS);
		return;
	}
	fd = accept4(efd->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0) {
		/* It stays readable: do not spin while there are no descriptors left. */
		if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) {
			log_err(NULL, "link %s: a peer cannot be accepted: %s", s->up.name, strerror(errno));
			engine_fd_rest(s->up.engine, efd, REST_NS);
		}
		return;
	}
	s->conn.fd = fd;
	if (engine_fd_add(s->up.engine, &s->conn)) {
		uplink_close_socket(&s->up, fd);
		s->conn.fd = -1;
		return;
	}
	engine_fd_del(s->up.engine, &s->listener);
	connected(s);
}

static void try_connect(struct timer *timer)
{
	struct stream *s = stream_of(timer, retry);
	int err = 0;

	if (uplink_is_full(&s->up)) {
		retry_later(s);
		return;
	}
	s->conn.fd = socket(s->addr.sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (s->conn.fd < 0 || engine_fd_add(s->up.engine, &s->conn)) {
		if (s->conn.fd >= 0)
			close(s->conn.fd);
		s->conn.fd = -1;
		refused(s, ENOMEM);
		return;
	}
	if (connect(s->conn.fd, &s->addr.sa, s->addr.len))
		err = errno;
	if (!err) {
		connected(s);
	} else if (err == EINPROGRESS) {
		s->connecting = true;
		engine_fd_watch(s->up.engine, &s->conn, POLLIN | POLLOUT);
	} else {
		refused(s, err);
	}
}

static void stream_close(struct uplink *up)
{
	struct stream *s = stream_of(up, up);

	timer_cancel(&up->engine->timers, &s->retry);
	if (s->conn.fd >= 0) {
		engine_fd_del(up->engine, &s->conn);
		uplink_close_socket(up, s->conn.fd);
	}
	if (s->listener.fd >= 0) {
		if (s->conn.fd < 0)
			engine_fd_del(up->engine, &s->listener);
		uplink_close_socket(up, s->listener.fd);
		if (s->addr.sa.sa_family == AF_UNIX)
			unlink(s->addr.un.sun_path);
	}
	uplink_free(up);
}

static const struct uplink_ops stream_ops = { stream_flush, stream_take, stream_close };

/* 0 or -errno. */
static int start_listening(struct stream *s)
{
	int fd = socket(s->addr.sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int one = 1, err;

	if (fd < 0)
		return -errno;
	if (s->addr.sa.sa_family != AF_UNIX)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	err = socket_bind(fd, &s->addr.sa, s->addr.len);
	if (!err && listen(fd, 8))
		err = -errno;
	if (err) {
		close(fd);
		return err;
	}
	s->listener.fd = fd;
	return engine_fd_add(s->up.engine, &s->listener);
}

struct uplink *stream_open(struct engine *engine, const struct link_spec *spec, const char *name)
{
	const struct link_addr *addr = spec->listen ? &spec->local : &spec->remote;
	struct stream *s = calloc(1, sizeof(*s));
	int err;

	if (!s || !uplink_init(&s->up, &stream_ops, engine, addr->sa.sa_family == AF_UNIX ? CLOSER_ROOM : 0)) {
		free(s);
		errno = ENOMEM;
		return NULL;
	}
	s->up.name = name;
	s->conn = (struct engine_fd){ .fd = -1, .look = conn_look };
	s->listener = (struct engine_fd){ .fd = -1, .ready = listener_ready };
	s->retry.fire = try_connect;
	s->addr = *addr;
	if (spec->listen) {
		err = start_listening(s);
		if (err) {
			stream_close(&s->up);
			errno = -err;
			return NULL;
		}
	} else {
		try_connect(&s->retry);
	}
	return &s->up;
}
