/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * skua_ib.ko: what software completes when the device is dead.
 */
#ifndef SKUA_IB_FLUSH_H
#define SKUA_IB_FLUSH_H

#include <rdma/ib_verbs.h>

struct skua_ib_cq;
struct skua_ib_dev;

void skua_ib_flush_init(struct skua_ib_dev *dev);
/* Call handlers of armed CQs of a dead device that have completions. Any context. */
void skua_ib_flush_kick(struct skua_ib_dev *dev);
/* Would skua_ib_flush_poll() make a completion? The CQ's lock is held. */
bool skua_ib_flush_due(struct skua_ib_cq *cq);
/* Make completions for what the dead device left undone. The CQ's lock is held. */
int skua_ib_flush_poll(struct skua_ib_cq *cq, int num_entries, struct ib_wc *wc);
/* The device died, and is fenced. */
void skua_ib_dead(struct skua_ib_dev *dev);

#endif /* SKUA_IB_FLUSH_H */
