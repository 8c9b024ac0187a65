/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Flows: which received frames go to which QP (manual: raw packets). Frames are compared in eth/steer.c.
 */
#ifndef SKUAD_CORE_FLOW_H
#define SKUAD_CORE_FLOW_H

#include "core/qp.h"

#define FLOW_WORDS	(sizeof(struct skua_flow_key) / sizeof(uint64_t))

/* The bytes of a key, as words that are compared at once. */
union flow_key {
	struct skua_flow_key key;
	uint64_t word[FLOW_WORDS];
};

struct flow {
	TAILQ_ENTRY(flow) entry;	/* of dev->sniffers or dev->flows */
	LIST_ENTRY(flow) of_qp;
	uint32_t number;
	uint8_t type;			/* enum skua_flow_type */
	uint16_t priority;
	struct skua_qp *qp;
	union flow_key value, mask;
};

/* The first of @flow and those behind it that matches; NULL: none. A look at each is charged to the turn. */
struct flow *flow_match(struct skua_dev *dev, struct flow *flow, const union flow_key *key);

#endif /* SKUAD_CORE_FLOW_H */
