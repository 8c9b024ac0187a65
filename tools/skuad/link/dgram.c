// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * dgram: one frame a datagram, as QEMU's -netdev dgram has it; and udp: the same behind a VXLAN
 * header (RFC 7348), which routers and the VXLAN interfaces of other hosts understand.
 *
 * Unix datagrams are sent through a socket of their own, connected to the peer's: that one can
 * be waited for when the peer's queue is full, and any peer may send to the other one, which is
 * bound. (So a peer must not connect() its own: it would hear nobody else.) A peer that is not
 * there yet is tried again whenever there is something to send. VXLAN comes from any port of the
 * peer; other datagrams must come from the port that ours go to.
 *
 * Frames of one length that follow each other, as those in the middle of a message do, go
 * through the kernel's UDP as one run: it cuts that as late as it can (UDP_SEGMENT), and hands
 * over together what came together (UDP_GRO). On the line each is a datagram of its own.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/engine_priv.h"
#include "base/log.h"
#include "base/socket.h"
#include "link/uplink.h"

#define TX_FRAMES	128		/* a call */
#define UNIX_FRAMES	11		/* what the queue of a unix socket takes: net.unix.max_dgram_qlen, and one */
#define RUN_FRAMES	64		/* UDP_MAX_SEGMENTS of Linux */
#define RUN_BYTES	65000		/* what a datagram has room for behind its headers */
#define RX_MESSAGES	16		/* a call */
#define UNIX_MESSAGES	4		/* the same at a unix socket: each may bring CLOSER_MSG_FDS descriptors */
#define RX_FRAMES	128		/* before others have their turn */
#define RX_BYTES	(65536 + 65 * 64)	/* a message and more: not all at one place of a cache */
#define SOCKET_BYTES	(4 << 20)
#define VXLAN_LEN	8

/* What the closer has to take after it was asked: what comes of a call, and the socket. */
#define CLOSER_ROOM	(UNIX_MESSAGES * CLOSER_MSG_FDS + 1)

/* What the kernel is told of a message: the length of its datagrams. */
union control {
	struct cmsghdr hdr;
	char bytes[CMSG_SPACE(sizeof(int))];
};

/* Datagrams of one length, but for the last, which may be shorter: a message. */
struct run {
	uint32_t frames, len, bytes;
	union control control;
};

struct dgram {
	struct uplink up;
	struct engine_fd rx;
	struct engine_fd tx;		/* fd -1: the same */
	struct link_addr local, remote;
	bool vxlan;
	uint32_t run_len;		/* longer datagrams go singly: to unix sockets all do */
	int num_msgs, next_msg;		/* received; the first that was not handed over, or not all of it */
	uint32_t msg_start;		/* of next_msg: bytes that were handed over */
	struct mmsghdr msgs[RX_MESSAGES];
	struct iovec iov[RX_MESSAGES];
	struct sockaddr_storage from[RX_MESSAGES];
	union uplink_control control[RX_MESSAGES];
	uint8_t buf[RX_MESSAGES][RX_BYTES];
};

/* A call's worth of frames. */
struct outbox {
	unsigned int n;
	struct mmsghdr msgs[TX_FRAMES];
	struct run runs[TX_FRAMES];
	struct iovec iov[2 * TX_FRAMES];
};

#define dgram_of(p, member) \
	((struct dgram *)(void *)((char *)(p) - offsetof(struct dgram, member)))

/* "This VNI is good", and the VNI 1. */
static const uint8_t vxlan_header[VXLAN_LEN] = { [0] = 0x08, [6] = 1 };

static struct engine_fd *tx_fd(struct dgram *d)
{
	return d->tx.fd >= 0 ? &d->tx : &d->rx;
}

static void set_blocked(struct dgram *d, bool blocked)
{
	int events = (d->tx.fd < 0 ? POLLIN : 0) | (blocked ? POLLOUT : 0);

	/* Without memory for that it is tried again and again. */
	if (d->up.blocked != blocked && !engine_fd_watch(d->up.engine, tx_fd(d), events))
		d->up.blocked = blocked;
}

/* Does a datagram of @len bytes go on with run @r? */
static bool goes_on(const struct dgram *d, const struct run *r, uint32_t len)
{
	return r->len <= d->run_len && len <= r->len && r->bytes == r->frames * r->len &&
	       r->frames < RUN_FRAMES && r->bytes + len <= RUN_BYTES;
}

static void tell_length(struct msghdr *hdr, struct run *r)
{
	uint16_t len = (uint16_t)r->len;

	hdr->msg_control = &r->control;
	hdr->msg_controllen = CMSG_SPACE(sizeof(len));
	r->control.hdr = (struct cmsghdr){
		.cmsg_level = SOL_UDP, .cmsg_type = UDP_SEGMENT, .cmsg_len = CMSG_LEN(sizeof(len)),
	};
	memcpy(CMSG_DATA(&r->control.hdr), &len, sizeof(len));
}

/* The next frames that wait. False: there are none. */
static bool gather(struct dgram *d, struct outbox *out)
{
	uint32_t max = d->tx.fd < 0 ? TX_FRAMES : UNIX_FRAMES, offset = 0, len;
	struct iovec *iov = out->iov;
	struct msghdr *hdr = NULL;
	struct run *r = NULL;
	const uint8_t *p;

	out->n = 0;
	for (uint32_t i = 0; i < max && (p = uplink_peek(&d->up, offset, &len)); i++) {
		uint32_t bytes = len + (d->vxlan ? VXLAN_LEN : 0);

		if (r && goes_on(d, r, bytes)) {
			tell_length(hdr, r);
		} else {
			r = &out->runs[out->n];
			*r = (struct run){ .len = bytes };
			hdr = &out->msgs[out->n++].msg_hdr;
			*hdr = (struct msghdr){ .msg_iov = iov };
			if (d->vxlan) {
				hdr->msg_name = &d->remote.sa;
				hdr->msg_namelen = d->remote.len;
			}
		}
		if (d->vxlan)
			*iov++ = (struct iovec){ (void *)vxlan_header, VXLAN_LEN };
		*iov++ = (struct iovec){ (void *)p, len };
		hdr->msg_iovlen = (size_t)(iov - hdr->msg_iov);
		r->frames++;
		r->bytes += bytes;
		offset += UPLINK_LEN + len;
	}
	return out->n;
}

/* The frames of the first @n messages are on their way. */
static void take_off(struct dgram *d, const struct outbox *out, unsigned int n)
{
	uint32_t len;

	for (unsigned int i = 0; i < n; i++) {
		for (uint32_t frames = out->runs[i].frames; frames; frames--) {
			uplink_peek(&d->up, 0, &len);
			uplink_sent(&d->up, UPLINK_LEN + len);
		}
	}
}

/* The peer of a unix socket may come and go. */
static bool find_peer(struct dgram *d)
{
	return !connect(d->tx.fd, &d->remote.sa, d->remote.len);
}

/*
 * The first frame cannot be sent: too long, no memory, no route, ICMP errors. In a run it may be
 * that it has to go singly: where the line takes it in fragments, or has no checksums of its own.
 */
static void refused(struct dgram *d, const struct run *r)
{
	uint32_t len;

	if (r->frames > 1 && (errno == EINVAL || errno == EMSGSIZE || errno == EIO)) {
		d->run_len = r->len - 1;
		return;
	}
	d->up.stats.tx_lost++;
	uplink_peek(&d->up, 0, &len);
	uplink_sent(&d->up, UPLINK_LEN + len);
}

static void dgram_flush(struct uplink *up)
{
	struct dgram *d = dgram_of(up, up);
	bool tried = false, full;
	struct outbox out;
	int sent;

	while (gather(d, &out)) {
		sent = sendmmsg(tx_fd(d)->fd, out.msgs, out.n, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent > 0)
			take_off(d, &out, (unsigned int)sent);
		/* Some went, then no more: if there was another reason than room, the next try tells. */
		full = sent < 0 ? errno == EAGAIN : (unsigned int)sent < out.n;
		/* To find out whether a queue takes still more, costs a frame's copy. */
		if (d->tx.fd >= 0 && sent == UNIX_FRAMES)
			full = up->tx_head != up->tx_tail;
		if (full) {
			set_blocked(d, true);
			return;
		}
		if (sent > 0 || errno == EINTR)
			continue;
		if (d->tx.fd < 0 || errno == EMSGSIZE || errno == ENOBUFS) {
			refused(d, &out.runs[0]);
			continue;
		}
		/* ENOTCONN, ECONNREFUSED: not there any more, or not yet. */
		if (tried || !find_peer(d)) {
			uplink_drop_tx(up);
			break;
		}
		tried = true;
	}
	set_blocked(d, false);
}

static bool same_host(const struct link_addr *a, const struct sockaddr_storage *from)
{
	const struct sockaddr_in6 *in6 = (const void *)from;
	const struct sockaddr_in *in = (const void *)from;

	if (a->sa.sa_family != from->ss_family)
		return false;
	if (a->sa.sa_family == AF_INET)
		return a->in.sin_addr.s_addr == in->sin_addr.s_addr;
	return !memcmp(&a->in6.sin6_addr, &in6->sin6_addr, sizeof(in6->sin6_addr));
}

static void received(struct dgram *d, const struct sockaddr_storage *from, uint8_t *p, uint32_t len)
{
	if (d->vxlan) {
		if (len < VXLAN_LEN || !same_host(&d->remote, from) ||
		    !(p[0] & vxlan_header[0]) || memcmp(p + 4, vxlan_header + 4, 3)) {
			d->up.stats.rx_lost++;
			return;
		}
		p += VXLAN_LEN;
		len -= VXLAN_LEN;
	}
	uplink_received(&d->up, p, len);
}

/* The length of the datagrams in a message; 0: there is one. */
static uint32_t told_length(struct msghdr *hdr)
{
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(hdr);
	int len = 0;

	if (cmsg && cmsg->cmsg_level == SOL_UDP && cmsg->cmsg_type == UDP_GRO)
		memcpy(&len, CMSG_DATA(cmsg), sizeof(len));
	return (uint32_t)len;
}

/* Hand over the next message, as far as the turn lasts. How many frames that were. */
static unsigned int take_run(struct dgram *d)
{
	struct mmsghdr *msg = &d->msgs[d->next_msg];
	uint32_t each = told_length(&msg->msg_hdr);
	unsigned int frames = 0;

	do {
		uint32_t left = msg->msg_len - d->msg_start;
		uint32_t len = each && each < left ? each : left;

		received(d, &d->from[d->next_msg], d->buf[d->next_msg] + d->msg_start, len);
		d->msg_start += len;
		frames++;
	} while (d->msg_start < msg->msg_len && d->up.engine->turn > 0);
	if (d->msg_start == msg->msg_len) {
		d->msg_start = 0;
		d->next_msg++;
	}
	return frames;
}

static unsigned int take(struct dgram *d)
{
	unsigned int frames = 0;

	while (d->next_msg < d->num_msgs && d->up.engine->turn > 0)
		frames += take_run(d);
	d->up.held = d->next_msg < d->num_msgs;
	return frames;
}

static void dgram_take(struct uplink *up)
{
	take(dgram_of(up, up));
}

/* From a unix socket nothing else comes beside the frames. */
static void close_descriptors(struct dgram *d)
{
	for (int i = 0; i < d->num_msgs; i++)
		if (d->msgs[i].msg_hdr.msg_controllen)
			uplink_close_received(&d->up, &d->msgs[i].msg_hdr);
}

static bool rx_look(struct engine_fd *efd)
{
	struct dgram *d = dgram_of(efd, rx);
	bool any = d->tx.fd < 0 && uplink_retry(&d->up), more = true;
	unsigned int frames, most = d->up.closer ? UNIX_MESSAGES : RX_MESSAGES;

	d->up.engine->turn = TURN_COST;
	frames = take(d);
	while (more && !d->up.held && frames < RX_FRAMES) {
		if (uplink_is_full(&d->up)) {
			engine_fd_rest(d->up.engine, efd, UPLINK_FULL_REST_NS);
			break;
		}
		for (unsigned int i = 0; i < most; i++) {
			struct msghdr *hdr = &d->msgs[i].msg_hdr;

			hdr->msg_controllen = sizeof(d->control[i]);
			hdr->msg_namelen = sizeof(d->from[i]);
		}
		d->num_msgs = recvmmsg(efd->fd, d->msgs, most, MSG_DONTWAIT | MSG_CMSG_CLOEXEC, NULL);
		d->next_msg = 0;
		if (d->up.closer)
			close_descriptors(d);
		more = d->num_msgs == (int)most;
		frames += take(d);
	}
	return frames || any;
}

static bool tx_look(struct engine_fd *efd)
{
	struct pollfd room = { .fd = efd->fd, .events = POLLOUT };
	struct dgram *d = dgram_of(efd, tx);

	return d->up.blocked && poll(&room, 1, 0) > 0 && uplink_retry(&d->up);
}

static void dgram_close(struct uplink *up)
{
	struct dgram *d = dgram_of(up, up);

	if (d->rx.fd >= 0) {
		engine_fd_del(up->engine, &d->rx);
		uplink_close_socket(up, d->rx.fd);
	}
	if (d->tx.fd >= 0) {
		engine_fd_del(up->engine, &d->tx);
		close(d->tx.fd);
	}
	if (d->local.sa.sa_family == AF_UNIX)
		unlink(d->local.un.sun_path);
	uplink_free(up);
}

static const struct uplink_ops dgram_ops = { dgram_flush, dgram_take, dgram_close };

static void tune(int fd, int family)
{
	int bytes = SOCKET_BYTES, fragment = IP_PMTUDISC_DONT, on = 1;

	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	/* Frames longer than what the way carries arrive in fragments. */
	if (family == AF_INET)
		setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &fragment, sizeof(fragment));
	else if (family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &fragment, sizeof(fragment));
	if (family != AF_UNIX)
		setsockopt(fd, SOL_UDP, UDP_GRO, &on, sizeof(on));
}

/* 0 or -errno. */
static int open_sockets(struct dgram *d, const struct link_spec *spec)
{
	int family = spec->local.sa.sa_family, type = SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
	int fd = socket(family, type, 0), err;

	if (fd < 0)
		return -errno;
	err = socket_bind(fd, &spec->local.sa, spec->local.len);
	if (!err && family != AF_UNIX && !d->vxlan &&
	    connect(fd, &spec->remote.sa, spec->remote.len))
		err = -errno;
	if (err) {
		close(fd);
		return err;
	}
	tune(fd, family);
	d->local = spec->local;
	d->rx.fd = fd;
	err = engine_fd_add(d->up.engine, &d->rx);
	if (err || family != AF_UNIX)
		return err;
	fd = socket(family, type, 0);
	if (fd < 0)
		return -errno;
	tune(fd, family);
	d->tx.fd = fd;
	return 0;
}

struct uplink *dgram_open(struct engine *engine, const struct link_spec *spec, const char *name)
{
	bool is_unix = spec->local.sa.sa_family == AF_UNIX;
	struct dgram *d = calloc(1, sizeof(*d));
	int err;

	if (!d || !uplink_init(&d->up, &dgram_ops, engine, is_unix ? CLOSER_ROOM : 0)) {
		free(d);
		errno = ENOMEM;
		return NULL;
	}
	d->up.name = name;
	d->rx = (struct engine_fd){ .fd = -1, .look = rx_look };
	d->tx = (struct engine_fd){ .fd = -1, .look = tx_look };
	d->remote = spec->remote;
	d->vxlan = spec->kind == LINK_UDP;
	d->run_len = is_unix ? 0 : RUN_BYTES;
	d->up.carrier = true;
	for (unsigned int i = 0; i < RX_MESSAGES; i++) {
		d->iov[i] = (struct iovec){ d->buf[i], RX_BYTES };
		d->msgs[i].msg_hdr = (struct msghdr){
			.msg_iov = &d->iov[i], .msg_iovlen = 1,
			.msg_name = d->vxlan ? &d->from[i] : NULL,
			.msg_control = &d->control[i],
		};
	}
	err = open_sockets(d, spec);
	if (err) {
		dgram_close(&d->up);
		errno = -err;
		return NULL;
	}
	return &d->up;
}
