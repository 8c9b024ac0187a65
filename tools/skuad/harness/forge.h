/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Forging packets; for test_forged.c.
 *
 * A forged packet begins as one that the device would take, with an effect: a WRITE to memory that may
 * be written, a SEND with the PSN that is expected. Then one thing of it is made wrong, and the
 * checksums right again.
 */
#ifndef SKUAD_HARNESS_FORGE_H
#define SKUAD_HARNESS_FORGE_H

#include "core/qp.h"
#include "harness/datagram.h"

#define FORGE_ROOM	8192		/* bytes of the longest frame, and more */
#define FORGE_PMTU	1024		/* of all QPs */

/* QPs of the victim. Those in front have a peer that they hear from in between. */
enum target {
	RC_IPV4, RC_IPV6, UC, UD,
	XRC,				/* a target: only the peer sends */
	NUM_PAIRS,
	RC_INIT = NUM_PAIRS, RC_RTR,
	RC_BUSY,			/* has requests that nobody answers */
	ETH, NUM_TARGETS
};

struct scene {
	struct world *w;
	struct node *peer, *victim;
	struct queues pairs[NUM_PAIRS][2];	/* of the peer and of the victim */
	struct queues busy[2];
	struct skua_qp *qp[NUM_TARGETS];
	struct roce_path path[NUM_TARGETS];	/* from the peer */
	uint8_t second_address[16];		/* of the victim */
	uint8_t group[16];			/* that UD is attached to, IPv4; 4 is none's last byte */
	uint32_t stale_key, foreign_key, local_key;
	uint32_t srqn, foreign_srqn;	/* of XRC's domain, and of none */
	uint32_t other_key;		/* good for what is read in between, which had another */
	bool odd;			/* every second batch of a kind */
	uint64_t random;
};

struct forge {
	struct scene *s;
	struct train t;
	struct roce_path path;
	struct seglist payload;
	uint8_t frame[FORGE_ROOM];
	uint32_t len;
	uint8_t *ip, *udp, *bth;
	bool host;			/* no RDMA packet of ours */
	bool answered;			/* by one packet */
};

/* What each kind is counted as. */
struct kind {
	const char *name;
	void (*forge)(struct forge *f);
	size_t cause;			/* offset in struct device_stats; NO_CAUSE: none */
	uint8_t event;			/* 0, or: the QP @target goes to ERR, for this reason */
	enum target target;		/* RC_IPV4 or XRC */
	bool one_nak;			/* of all, PSN sequence error */
};
#define NO_CAUSE	SIZE_MAX

extern const struct kind forge_kinds[];
extern const size_t forge_num_kinds;

uint64_t forge_random(struct scene *s);

#endif /* SKUAD_HARNESS_FORGE_H */
