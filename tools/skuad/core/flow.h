/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Flows: which received frames go to which QP (manual: raw packets). Frames are compared in eth/steer.c.
 */
#ifndef SKUAD_CORE_FLOW_H
#define SKUAD_CORE_FLOW_H

#include "core/qp.h"

/* A QP in the table of an RSS object. It may be destroyed, and its number given to another one. */
struct rss_entry {
	uint32_t qpn;
	uint64_t serial;		/* of the QP */
};

struct rss_object {
	uint32_t number;
	uint32_t refs;			/* flows to it */
	uint32_t fields;		/* SKUA_HASH_* */
	uint32_t mask;			/* entries of the table - 1 */
	uint8_t key[SKUA_RSS_KEY_LEN];
	struct rss_entry entry[1 << SKUA_RSS_MAX_LOG];
};

#define FLOW_WORDS	(sizeof(struct skua_flow_key) / sizeof(uint64_t))

/* The bytes of a key, as words that are compared at once. */
union flow_key {
	struct skua_flow_key key;
	uint64_t word[FLOW_WORDS];
};

struct flow {
	TAILQ_ENTRY(flow) entry;	/* of dev->sniffers or dev->flows */
	LIST_ENTRY(flow) of_qp;		/* if it has one */
	uint32_t number;
	uint8_t type;			/* enum skua_flow_type */
	uint16_t priority;
	uint32_t tag;			/* for CQEs */
	struct skua_qp *qp;		/* the target: this, or */
	struct rss_object *rss;
	union flow_key value, mask;
};

/* The QP for frames with this hash, or NULL. */
struct skua_qp *rss_target(const struct skua_dev *dev, const struct rss_object *rss, uint32_t hash);

/* The first of @flow and those behind it that matches; NULL: none. A look at each is charged to the turn. */
struct flow *flow_match(struct skua_dev *dev, struct flow *flow, const union flow_key *key);

#endif /* SKUAD_CORE_FLOW_H */
