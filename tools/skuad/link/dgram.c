// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * dgram: one frame a datagram, as QEMU's -netdev dgram has it; and udp: the same behind a VXLAN
 * header (RFC 7348), which routers and the VXLAN interfaces of other hosts understand.
 *
 * Unix datagrams are sent through a socket of their own, connected to the peer's: that one can
 * be waited for when the peer's queue is full, and any peer may send to the other one, which is
 * bound. (So a peer must not connect() its own: it would hear nobody else.) A peer that is not there yet is tried again whenever there is something to send. VXLAN
 * comes from any port of the peer; other datagrams must come from the port that ours go to.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/engine_priv.h"
#include "core/log.h"
#include "link/uplink.h"

#define BATCH		32
#define BATCHES		4		/* before others have their turn */
#define UNIX_BATCH	11		/* what the queue of a unix socket takes: net.unix.max_dgram_qlen, and one */
#define SOCKET_BYTES	(4 << 20)
#define VXLAN_LEN	8
#define SLOT		(UPLINK_FRAME_MAX + VXLAN_LEN + 6)	/* a multiple of 8 */

struct dgram {
	struct uplink up;
	struct engine_fd rx;
	struct engine_fd tx;		/* fd -1: the same */
	struct link_addr local, remote;
	bool vxlan;
	struct mmsghdr msgs[BATCH];
	struct iovec iov[BATCH];
	struct sockaddr_storage from[BATCH];
	uint8_t buf[BATCH][SLOT];
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

/* The next frames that wait, up to a batch. Returns how many. */
static unsigned int gather(struct dgram *d, struct mmsghdr *msgs, struct iovec (*iov)[2])
{
	uint32_t offset = 0, len;
	const uint8_t *p;
	unsigned int max = d->tx.fd < 0 ? BATCH : UNIX_BATCH, n;

	for (n = 0; n < max && (p = uplink_peek(&d->up, offset, &len)); n++) {
		iov[n][0] = (struct iovec){ (void *)vxlan_header, VXLAN_LEN };
		iov[n][1] = (struct iovec){ (void *)p, len };
		msgs[n] = (struct mmsghdr){ .msg_hdr = {
			.msg_iov = d->vxlan ? &iov[n][0] : &iov[n][1],
			.msg_iovlen = d->vxlan ? 2 : 1,
			.msg_name = d->vxlan ? &d->remote.sa : NULL,
			.msg_namelen = d->vxlan ? d->remote.len : 0,
		} };
		offset += UPLINK_LEN + len;
	}
	return n;
}

static void take_off(struct dgram *d, unsigned int n)
{
	uint32_t len;

	while (n-- && uplink_peek(&d->up, 0, &len))
		uplink_sent(&d->up, UPLINK_LEN + len);
}

/* The peer of a unix socket may come and go. */
static bool find_peer(struct dgram *d)
{
	return !connect(d->tx.fd, &d->remote.sa, d->remote.len);
}

static void dgram_flush(struct uplink *up)
{
	struct dgram *d = dgram_of(up, up);
	struct iovec iov[BATCH][2];
	struct mmsghdr msgs[BATCH];
	bool tried = false, full;
	unsigned int n;
	int sent;

	while ((n = gather(d, msgs, iov))) {
		sent = sendmmsg(tx_fd(d)->fd, msgs, n, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent > 0)
			take_off(d, (unsigned int)sent);
		/* Some went, then no more: if there was another reason than room, the next try tells. */
		full = sent < 0 ? errno == EAGAIN : sent < (int)n;
		/* To find out whether a queue takes still more, costs a frame's copy. */
		if (d->tx.fd >= 0 && sent == UNIX_BATCH)
			full = up->tx_head != up->tx_tail;
		if (full) {
			set_blocked(d, true);
			return;
		}
		if (sent > 0)
			continue;
		if (d->tx.fd >= 0 && errno != EMSGSIZE && errno != ENOBUFS && errno != EINTR) {
			/* ENOTCONN, ECONNREFUSED: not there any more, or not yet. */
			if (tried || !find_peer(d)) {
				uplink_drop_tx(up);
				break;
			}
			tried = true;
		} else if (errno != EINTR) {
			/* What cannot be sent is lost: too long, no memory, no route, ICMP errors. */
			up->stats.tx_lost++;
			take_off(d, 1);
		}
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

static void received(struct dgram *d, unsigned int i)
{
	const struct msghdr *hdr = &d->msgs[i].msg_hdr;
	uint32_t len = d->msgs[i].msg_len;
	uint8_t *p = d->buf[i];

	if (hdr->msg_flags & MSG_TRUNC) {
		d->up.stats.rx_lost++;
		return;
	}
	if (d->vxlan) {
		if (len < VXLAN_LEN || !same_host(&d->remote, &d->from[i]) ||
		    !(p[0] & vxlan_header[0]) || memcmp(p + 4, vxlan_header + 4, 3)) {
			d->up.stats.rx_lost++;
			return;
		}
		p += VXLAN_LEN;
		len -= VXLAN_LEN;
	}
	uplink_received(&d->up, p, len);
}

static bool rx_look(struct engine_fd *efd)
{
	struct dgram *d = dgram_of(efd, rx);
	bool any = d->tx.fd < 0 && uplink_retry(&d->up);
	int n = BATCH;

	for (int batch = 0; batch < BATCHES && n == BATCH; batch++) {
		for (unsigned int i = 0; d->vxlan && i < BATCH; i++)
			d->msgs[i].msg_hdr.msg_namelen = sizeof(d->from[i]);
		n = recvmmsg(efd->fd, d->msgs, BATCH, MSG_DONTWAIT, NULL);
		for (int i = 0; i < n; i++)
			received(d, (unsigned int)i);
		any |= n > 0;
	}
	return any;
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
		close(d->rx.fd);
	}
	if (d->tx.fd >= 0) {
		engine_fd_del(up->engine, &d->tx);
		close(d->tx.fd);
	}
	if (d->local.sa.sa_family == AF_UNIX)
		unlink(d->local.un.sun_path);
	uplink_free(up);
}

static const struct uplink_ops dgram_ops = { dgram_flush, dgram_close };

static void tune(int fd, int family)
{
	int bytes = SOCKET_BYTES, fragment = IP_PMTUDISC_DONT;

	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	/* Frames longer than what the way carries arrive in fragments. */
	if (family == AF_INET)
		setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &fragment, sizeof(fragment));
	else if (family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &fragment, sizeof(fragment));
}

/* 0 or -errno. */
static int open_sockets(struct dgram *d, const struct link_spec *spec)
{
	int family = spec->local.sa.sa_family, type = SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
	int fd = socket(family, type, 0), err;

	if (fd < 0)
		return -errno;
	err = uplink_bind(fd, &spec->local);
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
	struct dgram *d = calloc(1, sizeof(*d));
	int err;

	if (!d || !uplink_init(&d->up, &dgram_ops, engine)) {
		free(d);
		errno = ENOMEM;
		return NULL;
	}
	d->up.name = name;
	d->rx = (struct engine_fd){ .fd = -1, .look = rx_look };
	d->tx = (struct engine_fd){ .fd = -1, .look = tx_look };
	d->remote = spec->remote;
	d->vxlan = spec->kind == LINK_UDP;
	d->up.carrier = true;
	for (unsigned int i = 0; i < BATCH; i++) {
		d->iov[i] = (struct iovec){ d->buf[i], SLOT };
		d->msgs[i].msg_hdr = (struct msghdr){
			.msg_iov = &d->iov[i], .msg_iovlen = 1,
			.msg_name = d->vxlan ? &d->from[i] : NULL,
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
