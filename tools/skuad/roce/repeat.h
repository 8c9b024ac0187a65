/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Selective repeat between two ends that both offer it (manual: "Selective repeat on the
 * wire"): who offers it, and the frames.
 */
#ifndef SKUAD_ROCE_REPEAT_H
#define SKUAD_ROCE_REPEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "packet/train.h"

#define REPEAT_WINDOW	512	/* packets ahead of the expected one that are held, at most */
#define REPEAT_PEERS	64	/* MACs that are remembered */
#define REPEAT_FRAME	160	/* bytes of the longest frame, and more */

struct skua_dev;
struct skua_qp;

enum repeat_type {
	REPEAT_HELLO = 1,
	REPEAT_MISSING = 2,
};

struct repeat_frame {
	enum repeat_type type;
	struct roce_path path;		/* HELLO: only MACs and VLAN */
	bool answer;			/* HELLO: one in return is wanted */
	bool duplicate;			/* MISSING: a request came twice */
	uint32_t dest_qpn;		/* MISSING */
	uint32_t psn;			/* the one that is expected */
	uint8_t held[REPEAT_WINDOW / 8]; /* bit i: psn + 1 + i has come */
};

/* Is packet @psn held, which is ahead of f->psn? */
static inline bool repeat_holds(const struct repeat_frame *f, uint32_t psn)
{
	uint32_t i = psn_add(psn, -f->psn - 1);

	return i < REPEAT_WINDOW && f->held[i / 8] >> (i % 8) & 1;
}

/* Has @psn come, by what the frame says? */
static inline bool repeat_has(const struct repeat_frame *f, uint32_t psn)
{
	return psn_diff(psn, f->psn) < 0 || repeat_holds(f, psn);
}

/* PSN behind the last that has come. */
uint32_t repeat_end(const struct repeat_frame *f);

/* Write the frame to @buf, of REPEAT_FRAME bytes; returns its length. */
size_t repeat_build(uint8_t *buf, const struct repeat_frame *f);

/* The checksum of a frame of @len bytes, its own included. */
void repeat_seal(uint8_t *frame, size_t len);

/* Is the Ethernet frame one of these, good or bad? */
bool repeat_is_frame(const uint8_t *frame, size_t len);

/* What it says; false: it is no good. */
bool repeat_parse(struct repeat_frame *f, const uint8_t *frame, size_t len);

/* Send it, if the port may send. False: no room now. */
bool repeat_send(struct skua_dev *dev, const struct repeat_frame *f);

/* Somebody who offers selective repeat, or was asked whether it does. */
struct repeat_peer {
	uint8_t mac[6];
	uint64_t until;			/* the offer holds */
	uint64_t ask_at;		/* not before */
	uint64_t wait;			/* between this question and the next; 0: a free entry */
	uint64_t used;			/* last asked for or heard */
};

/*
 * Does the peer of the QP offer it? To be asked where packets have been lost: for a peer that has
 * not said so, or not lately, a HELLO goes out.
 */
bool repeat_agreed(struct skua_qp *qp);

/* The same, without a question. */
bool repeat_offered(struct skua_qp *qp);

/* A HELLO has come to us. */
void repeat_hello(struct skua_dev *dev, const struct repeat_frame *f);

#endif /* SKUAD_ROCE_REPEAT_H */
