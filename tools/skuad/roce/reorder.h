/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Packets that came before their time: single ones, copied, up to REPEAT_WINDOW ahead of the expected one.
 */
#ifndef SKUAD_ROCE_REORDER_H
#define SKUAD_ROCE_REORDER_H

#include "roce/repeat.h"

struct reorder;

/* Hold a copy of @t. False: it cannot be held. */
bool reorder_hold(struct skua_dev *dev, struct reorder **r, uint32_t expected,
		  const struct train *t);
bool reorder_has(const struct reorder *r, uint32_t psn);
/* PSN behind the last packet that is held; @r holds some. */
uint32_t reorder_end(const struct reorder *r);
static inline bool reorder_empty(const struct reorder *r)
{
	return !r;
}
/* Take the packet with this PSN out, and charge the turn for it; the caller frees it. NULL: it is not held. */
struct train *reorder_take(struct skua_dev *dev, struct reorder **r, uint32_t psn);
/* Drop all packets, and free the memory. */
void reorder_free(struct skua_dev *dev, struct reorder **r);

#endif /* SKUAD_ROCE_REORDER_H */
