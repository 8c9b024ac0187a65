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
#define REPEAT_PEERS	64	/* offers that are remembered, by MAC */
#define REPEAT_ASKED	16	/* and at least so many peers that were asked, and offer nothing */
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
	uint32_t psn;			/* the PSN that is expected */
	uint8_t held[REPEAT_WINDOW / 8]; /* bit i: psn + 1 + i has come */
};

/* Does the frame say that packet @psn is held, which is ahead of f->psn? */
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

/* Is the Ethernet frame one of selective repeat, well formed or not? */
bool repeat_is_frame(const uint8_t *frame, size_t len);

/* Read the frame. False: it is malformed. */
bool repeat_parse(struct repeat_frame *f, const uint8_t *frame, size_t len);

/* Send the frame, if the port may send. False: there is no room on the wire. */
bool repeat_send(struct skua_dev *dev, const struct repeat_frame *f);

/* A peer that offers selective repeat, or was asked whether it does. */
struct repeat_peer {
	uint8_t mac[6];
	uint64_t offered_until;		/* when the offer ends */
	uint64_t next_ask_at;		/* when it may be asked again */
	uint64_t ask_interval;		/* from one question to the next; 0: the entry is free */
	uint64_t last_used_at;		/* when the entry was last looked up */
};

/*
 * Does the peer of the QP offer selective repeat? Called where packets have been lost: a HELLO is sent to a peer that
 * did not offer it lately.
 */
bool repeat_agreed(struct skua_qp *qp);

/* The same, but no HELLO is sent. */
bool repeat_offered(struct skua_qp *qp);

/* A HELLO has come. */
void repeat_hello(struct skua_dev *dev, const struct repeat_frame *f);

#endif /* SKUAD_ROCE_REPEAT_H */
