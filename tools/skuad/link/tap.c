// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * tap: a TAP interface of this host, and so all that its kernel can bridge or route to. The
 * interface is made if it is not there, which needs CAP_NET_ADMIN; one that is there and belongs
 * to the user does not. Its addresses, MTU and state are the host's business; while it is down,
 * frames are lost. When it is deleted, the link has no peer any more.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/engine_priv.h"
#include "base/log.h"
#include "link/uplink.h"

#define FRAMES	64		/* before others have their turn */

struct tap {
	struct uplink up;
	struct engine_fd efd;
	uint8_t buf[UPLINK_FRAME_MAX + 1];	/* what fills it all is too long */
};

#define tap_of(p, member)	((struct tap *)(void *)((char *)(p) - offsetof(struct tap, member)))

static void set_blocked(struct tap *t, bool blocked)
{
	if (t->up.blocked != blocked &&
	    !engine_fd_watch(t->up.engine, &t->efd, blocked ? POLLIN | POLLOUT : POLLIN))
		t->up.blocked = blocked;
}

static void tap_flush(struct uplink *up)
{
	struct tap *t = tap_of(up, up);
	const uint8_t *p;
	uint32_t len;

	set_blocked(t, false);
	while ((p = uplink_peek(up, 0, &len))) {
		if (write(t->efd.fd, p, len) < 0) {
			if (errno == EAGAIN) {
				set_blocked(t, true);
				return;
			}
			up->stats.tx_lost++;
		}
		uplink_sent(up, UPLINK_LEN + len);
	}
}

/* The interface was deleted, or its network namespace. Its descriptor tells so for ever. */
static void gone(struct tap *t, const char *why)
{
	log_err(NULL, "link %s: the interface is gone: %s", t->up.name, why);
	engine_fd_del(t->up.engine, &t->efd);
	t->up.carrier = false;
	t->up.blocked = false;
	uplink_drop_tx(&t->up);
}

static void tap_ready(struct engine_fd *efd)
{
	struct tap *t = tap_of(efd, efd);
	ssize_t n;

	if (t->up.blocked)
		tap_flush(&t->up);
	t->up.engine->turn = TURN_COST;
	for (int i = 0; i < FRAMES && t->up.engine->turn > 0; i++) {
		n = read(efd->fd, t->buf, sizeof(t->buf));
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			gone(t, n ? strerror(errno) : "end of file");
			return;
		}
		uplink_received(&t->up, t->buf, (uint32_t)n);
	}
}

static void tap_close(struct uplink *up)
{
	struct tap *t = tap_of(up, up);

	if (t->efd.fd >= 0) {
		engine_fd_del(up->engine, &t->efd);
		close(t->efd.fd);
	}
	uplink_free(up);
}

static const struct uplink_ops tap_ops = { .flush = tap_flush, .close = tap_close };

struct uplink *tap_open(struct engine *engine, const struct link_spec *spec, const char *name)
{
	struct tap *t = calloc(1, sizeof(*t));
	struct ifreq ifr = { .ifr_flags = IFF_TAP | IFF_NO_PI };
	int err = 0;

	if (!t || !uplink_init(&t->up, &tap_ops, engine, 0)) {
		free(t);
		errno = ENOMEM;
		return NULL;
	}
	t->up.name = name;
	t->up.carrier = true;
	t->efd = (struct engine_fd){ .ready = tap_ready };
	strcpy(ifr.ifr_name, spec->name);
	t->efd.fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (t->efd.fd < 0 || ioctl(t->efd.fd, TUNSETIFF, &ifr))
		err = errno;
	if (!err)
		err = -engine_fd_add(engine, &t->efd);
	if (err) {
		tap_close(&t->up);
		errno = err;
		return NULL;
	}
	return &t->up;
}
