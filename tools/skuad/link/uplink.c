// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What all uplinks do alike: the bytes that wait to be sent.
 *
 * Frames of one round of the engine wait for each other, up to FLUSH_BYTES: one system call for
 * many of them is what makes a socket fast.
 */
#include "link/uplink.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/copy.h"
#include "base/engine_priv.h"
#include "packet/packet.h"

#define FLUSH_BYTES	(48u << 10)

bool uplink_init(struct uplink *up, const struct uplink_ops *ops, struct engine *engine, unsigned int fds)
{
	up->ops = ops;
	up->engine = engine;
	up->tx = malloc(UPLINK_TX_BYTES);
	if (!up->tx)
		return false;
	up->closer = fds ? closer_create(fds) : NULL;
	if (fds && !up->closer) {
		free(up->tx);
		return false;
	}
	return true;
}

void uplink_free(struct uplink *up)
{
	if (up->closer)
		closer_destroy(up->closer);
	free(up->tx);
	free(up);
}

struct uplink *uplink_open(struct engine *engine, struct wire *wire, const struct link_spec *spec,
			   const char *name)
{
	struct uplink *up;

	if (spec->kind == LINK_STREAM)
		up = stream_open(engine, spec, name);
	else if (spec->kind == LINK_TAP)
		up = tap_open(engine, spec, name);
	else
		up = dgram_open(engine, spec, name);
	if (up) {
		up->wire = wire;
		up->name = name;
	}
	return up;
}

void uplink_close(struct uplink *up)
{
	up->ops->close(up);
}

void uplink_close_received(struct uplink *up, struct msghdr *hdr)
{
	int fd;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(hdr); c; c = CMSG_NXTHDR(hdr, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = CMSG_LEN(0); at < c->cmsg_len; at += sizeof(fd)) {
			memcpy(&fd, (const char *)c + at, sizeof(fd));
			closer_fd(up->closer, fd);
		}
	}
}

void uplink_close_socket(struct uplink *up, int fd)
{
	if (up->closer)
		closer_connection(up->closer, fd);
	else
		close(fd);
}

/* Is there room for @bytes, lengths included? */
static bool room(struct uplink *up, uint64_t bytes)
{
	uint32_t waiting = up->tx_tail - up->tx_head;

	if (bytes <= UPLINK_TX_BYTES - up->tx_tail)
		return true;
	/* Moving less than is gained: else it would be moved again and again. */
	if (waiting > up->tx_head || bytes > UPLINK_TX_BYTES - waiting)
		return false;
	memmove(up->tx, up->tx + up->tx_head, waiting);
	up->tx_head = 0;
	up->tx_tail = waiting;
	return true;
}

bool uplink_has_room(struct uplink *up, uint64_t bytes)
{
	if (room(up, bytes))
		return true;
	uplink_run(up);
	return room(up, bytes);
}

/* A frame of @len bytes stands behind its length at the tail. */
static void append(struct uplink *up, uint32_t len)
{
	put32(up->tx + up->tx_tail, len);
	up->tx_tail += UPLINK_LEN + len;
	up->stats.tx_frames++;
	up->stats.tx_bytes += len;
}

static void appended(struct uplink *up)
{
	if (up->tx_tail - up->tx_head >= FLUSH_BYTES)
		uplink_run(up);
}

enum port_result uplink_send_train(struct uplink *up, const struct train *t)
{
	uint64_t bytes;
	uint32_t longest;

	if (!up->carrier) {
		up->stats.tx_lost += t->npkts;
		return PORT_LOST;
	}
	bytes = roce_train_bytes(t, &longest) + (uint64_t)t->npkts * UPLINK_LEN;
	if (!uplink_has_room(up, bytes))
		return PORT_BUSY;
	for (uint32_t i = 0; i < t->npkts; i++)
		append(up, (uint32_t)roce_packet_build(up->tx + up->tx_tail + UPLINK_LEN, t, i));
	appended(up);
	return PORT_SENT;
}

enum port_result uplink_send_frame(struct uplink *up, const struct seglist *frame)
{
	uint8_t *p;

	if (!up->carrier || frame->bytes > UPLINK_FRAME_MAX) {
		up->stats.tx_lost++;
		return PORT_LOST;
	}
	if (!uplink_has_room(up, frame->bytes + UPLINK_LEN))
		return PORT_BUSY;
	p = up->tx + up->tx_tail + UPLINK_LEN;
	for (unsigned int s = 0; s < frame->n; s++) {
		memcpy(p, frame->seg[s].p, frame->seg[s].len);
		p += frame->seg[s].len;
	}
	append(up, frame->bytes);
	appended(up);
	return PORT_SENT;
}

const uint8_t *uplink_peek(const struct uplink *up, uint32_t offset, uint32_t *len)
{
	const uint8_t *p = up->tx + up->tx_head + offset;

	if (up->tx_head + offset == up->tx_tail)
		return NULL;
	*len = get32(p);
	return p + UPLINK_LEN;
}

void uplink_sent(struct uplink *up, uint32_t bytes)
{
	up->tx_head += bytes;
	if (up->tx_head == up->tx_tail)
		up->tx_head = up->tx_tail = 0;
}

void uplink_drop_tx(struct uplink *up)
{
	uint32_t len;

	while (uplink_peek(up, 0, &len)) {
		up->stats.tx_lost++;
		uplink_sent(up, UPLINK_LEN + len);
	}
}
