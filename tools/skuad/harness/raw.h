/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Raw packet QPs, their flows, and frames. For test_raw.c, test_rss.c and test_strip.c.
 */
#ifndef SKUAD_HARNESS_RAW_H
#define SKUAD_HARNESS_RAW_H

#include "harness/harness.h"

#define SLOT		16384u	/* of the memory region, for one received frame */
#define FRAME		100u	/* bytes of most frames */

extern const uint8_t nobody[6], group[6];

/* Receives of @q, in slots 1 and up. */
struct queues with_receives(struct node *n, struct queues q, unsigned int count);

struct skua_cmd flow_cmd(uint32_t qpn, uint8_t type);
/* To this MAC. */
struct skua_cmd mac_flow(uint32_t qpn, const uint8_t *dmac);

/* A frame in the first slot, which is returned. */
uint8_t *make_frame(struct node *n, const uint8_t *to, const uint8_t *from, uint32_t len);
/* The frame in the first slot goes out by @q. */
void send_from(struct world *w, struct node *n, struct queues *q, uint32_t len);
/* A frame of FRAME bytes to this MAC. */
void send_to(struct world *w, struct node *n, struct queues *q, const uint8_t *to);

/* The next CQE is a frame of @len bytes that @q received. */
struct skua_cqe *expect_by(struct world *w, struct node *n, struct queues q, uint32_t len);

/* Frames, and what flows find in them by RAW-3: written down, not computed. */
struct raw_frame {
	const char *name;
	uint8_t len, bytes[90];
	struct skua_flow_key key;
};
extern const struct raw_frame raw_frames[];
extern const unsigned int num_raw_frames;

/* Bits that a mask may have: by RAW-6. */
extern const struct skua_flow_key raw_key_bits;

#endif /* SKUAD_HARNESS_RAW_H */
