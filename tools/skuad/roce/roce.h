/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * RoCEv2 for a device: what all its QPs share, and its transports.
 */
#ifndef SKUAD_ROCE_ROCE_H
#define SKUAD_ROCE_ROCE_H

#include "core/transport.h"
#include "roce/repeat.h"
#include "roce/sent.h"

#define HELD_MAX	(32u << 20)	/* bytes of held packets, and one more packet; twice that with CQEs */

struct roce_dev {
	struct repeat_peer peers[REPEAT_PEERS + REPEAT_ASKED];
	uint64_t held_bytes;		/* of packets that came too early, and of CQEs that wait; see HELD_MAX */
	struct free_runs free_runs;	/* for tables of sent packets */
	uint32_t used_runs;		/* in use */
};

/* Is memory for sent packets scarce? Then only a QP with nothing outstanding gets some. */
static inline bool sent_is_scarce(const struct skua_dev *dev)
{
	return dev->roce->used_runs >= SENT_RUNS_MAX;
}

extern const struct transport_ops rc_ops, uc_ops, ud_ops, gsi_ops, xrc_ini_ops, xrc_tgt_ops;

/* dev->roce, in the state after reset. False: no memory. */
bool roce_create(struct skua_dev *dev);
void roce_reset(struct skua_dev *dev);
void roce_destroy(struct skua_dev *dev);	/* after sent_free_all() */

#endif /* SKUAD_ROCE_ROCE_H */
