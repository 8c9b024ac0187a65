/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A storm: somebody who is not the peer sends packets from the peer's address, to both ends of an RC or XRC
 * connection, while they work. For test_neighbour.c and test_xrc.c.
 *
 * PSNs are relative to what the ends have outstanding. What RC takes for the peer's own is left out: a request
 * with the expected PSN, a response or an ACK within the PSNs outstanding, or a CNP. A request ahead of the
 * expected one is of that kind, too, where the receiver holds it (REP-5).
 */
#ifndef SKUAD_HARNESS_STORM_H
#define SKUAD_HARNESS_STORM_H

#include "harness/verify.h"

enum storm_kind {
	STORM_PAST_REQUEST,		/* SEND or WRITE before the oldest PSN that the peer has outstanding */
	STORM_PAST_READ,		/* the same, responses and all */
	STORM_PAST_ATOMIC,
	STORM_AGAIN_REQUEST,		/* SEND or WRITE that was carried out, and perhaps not acknowledged yet */
	STORM_AGAIN_READ,		/* the same, of other memory or another length than the peer's */
	STORM_AGAIN_ATOMIC,
	STORM_AHEAD,			/* any request at most REPEAT_WINDOW ahead */
	STORM_FAR,			/* farther */
	STORM_WRONG_RKEY,		/* past or far */
	STORM_WRONG_QPN,		/* with the right PSN */
	STORM_ACK,			/* past, or beyond what was sent */
	STORM_NAK,			/* the same, of each syndrome */
	STORM_RNR,			/* the same */
	STORM_READ_RESP,		/* the same */
	STORM_ATOMIC_RESP,		/* the same */
	STORM_HELLO,			/* from the peer's MAC, and from others */
	STORM_MISSING,			/* any PSN around those outstanding, any map */
	STORM_REPLAY_REQUEST,		/* copies of packets that the peer has sent */
	STORM_REPLAY_RESPONSE,		/* ACKs and responses; no NAKs */
	STORM_REPLAY_NAK,
	STORM_REPLAY_FRAME,		/* HELLO and MISSING */
	STORM_KINDS
};
#define STORM_ALL	((1u << STORM_KINDS) - 1)

extern const char *const storm_names[STORM_KINDS];

struct storm;

/*
 * Packets of the kinds in @kinds begin to arrive, @pps to a virtual second to each end, chosen by @seed. No kind:
 * nothing arrives, but time passes as it does in a storm.
 */
struct storm *storm_create(struct world *w, uint32_t kinds, unsigned int pps, unsigned int seed);
void storm_destroy(struct storm *s);
/* The connection is one of XRC, and the SRQ one of the target's. */
void storm_use_xrc(struct storm *s, uint32_t srqn);
/* Go on to the next event or the next packet of the storm. */
void storm_turn(struct storm *s);
/* Packets that arrived, of each kind. */
const uint64_t *storm_arrived(const struct storm *s);

#endif /* SKUAD_HARNESS_STORM_H */
