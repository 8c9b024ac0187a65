/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The end of a wire that leaves this process: a socket or a TAP. It belongs to the engine of
 * the wire's devices, and never blocks it.
 *
 * What is to be sent waits as bytes in a bounded buffer, each frame behind its length; when that
 * is full, senders are told so (PORT_BUSY), and the engine hears when there is room again. Without
 * a peer, what is sent is lost, and counted.
 *
 * The peer of a unix socket may send descriptors with its frames, and their close() may take as long as it likes. So
 * such a link receives them and hands them to its closer. Sockets in which there may be some that nobody has received
 * are closed by it, too. While it is full, the link reads nothing.
 */
#ifndef SKUAD_LINK_UPLINK_H
#define SKUAD_LINK_UPLINK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/closer.h"
#include "base/engine.h"
#include "link/port.h"
#include "link/spec.h"

#define UPLINK_FRAME_MAX	(9000 + 18)	/* bytes; longer ones are dropped */
#define UPLINK_TX_BYTES		(256u << 10)
#define UPLINK_LEN		4		/* of a length, big endian, in front of each frame */
#define UPLINK_FULL_REST_NS	1000000		/* between looks at a socket while the closer is full */

struct wire;
struct uplink;

/* One for each kind of link. */
struct uplink_ops {
	/* Send of what waits as much as can be; sets blocked if the rest must wait. */
	void (*flush)(struct uplink *up);
	/* Hand over more of what was received; clears held when nothing is left. */
	void (*take)(struct uplink *up);
	void (*close)(struct uplink *up);
};

/* The first member of what a kind of link keeps. */
struct uplink {
	const struct uplink_ops *ops;
	struct engine *engine;
	struct wire *wire;
	struct closer *closer;		/* NULL: no unix socket */
	const char *name;		/* the link's text */
	uint8_t *tx;			/* UPLINK_TX_BYTES, those from tx_head to tx_tail wait */
	uint32_t tx_head, tx_tail;
	bool carrier;			/* there is somebody to send to */
	bool blocked;			/* flush() again when the engine says so */
	bool held;			/* the turn was over before all that was received had been handed over */
	struct uplink_stats {
		uint64_t tx_frames, tx_bytes, tx_lost;
		uint64_t rx_frames, rx_bytes, rx_lost;
	} stats;
};

/* NULL with errno set, when it has said what is wrong. */
struct uplink *uplink_open(struct engine *engine, struct wire *wire, const struct link_spec *spec,
			   const char *name);
void uplink_close(struct uplink *up);

/* Could @bytes be sent now, lengths included? */
bool uplink_has_room(struct uplink *up, uint64_t bytes);
enum port_result uplink_send_train(struct uplink *up, const struct train *t);
enum port_result uplink_send_frame(struct uplink *up, const struct seglist *frame);

/* Send what still waits for company. True if there was anything. */
static inline bool uplink_run(struct uplink *up)
{
	if (up->tx_head == up->tx_tail || up->blocked)
		return false;
	up->ops->flush(up);
	return true;
}

/* The same for what was blocked, whether there is room by now or not. True if frames went. */
static inline bool uplink_retry(struct uplink *up)
{
	uint32_t waiting = up->tx_tail - up->tx_head;

	if (!up->blocked)
		return false;
	up->ops->flush(up);
	return up->tx_tail - up->tx_head != waiting;
}

/* Take what was received and had to wait for a turn. True if there was anything. */
static inline bool uplink_take(struct uplink *up)
{
	if (!up->held)
		return false;
	up->ops->take(up);
	return true;
}

/* For the kinds of links: */

/*
 * @fds: descriptors that its peer and its end may hand to the closer between two looks at whether that is full; 0:
 * there is no closer. False: there is no memory.
 */
bool uplink_init(struct uplink *up, const struct uplink_ops *ops, struct engine *engine, unsigned int fds);
void uplink_free(struct uplink *up);

/* Nothing may be read. */
static inline bool uplink_is_full(const struct uplink *up)
{
	return up->closer && closer_is_full(up->closer);
}

/* The control buffer of a receive at a unix socket. */
union uplink_control {
	struct cmsghdr hdr;
	char bytes[CMSG_SPACE(CLOSER_MSG_FDS * sizeof(int))];
};

/* The closer takes over what came with @hdr. */
void uplink_close_received(struct uplink *up, struct msghdr *hdr);
/* It takes over a socket of the link, if there is a closer. Else the socket is closed. */
void uplink_close_socket(struct uplink *up, int fd);

/* The frame at @offset behind those that were sent; NULL: none. *@len: its bytes. */
const uint8_t *uplink_peek(const struct uplink *up, uint32_t offset, uint32_t *len);
/* @bytes from tx_head on are done with: lengths and frames. */
void uplink_sent(struct uplink *up, uint32_t bytes);
/* Nobody is there: what waits is lost. */
void uplink_drop_tx(struct uplink *up);
/* A frame has come (switch.c). It takes from the turn of the engine, and more where it has many receivers. */
void uplink_received(struct uplink *up, uint8_t *frame, uint32_t len);

struct uplink *stream_open(struct engine *engine, const struct link_spec *spec, const char *name);
struct uplink *dgram_open(struct engine *engine, const struct link_spec *spec, const char *name);
struct uplink *tap_open(struct engine *engine, const struct link_spec *spec, const char *name);

#endif /* SKUAD_LINK_UPLINK_H */
