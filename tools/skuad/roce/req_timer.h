/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The timer of the requester.
 */
#ifndef SKUAD_ROCE_REQ_TIMER_H
#define SKUAD_ROCE_REQ_TIMER_H

#include "roce/rtt.h"

void req_timer_fire(struct timer *timer);
/* Set the timer to the next of its times, unless it fires before. */
void req_timer_move(struct skua_qp *qp);

/* Set the timer, if anything is outstanding. A timer that fires too early looks again: that is cheaper than to move it
 * with every ACK. */
static inline void req_timer_set(struct skua_qp *qp)
{
	const struct loss *l = &rc_of(qp)->req.loss;
	const struct timer *timer = &rc_of(qp)->timer;

	if (sent_is_empty(&rc_of(qp)->req.sent))
		return;
	if (!timer->pos || timer->deadline > l->pto_start + GRANULARITY_NS || l->loss_time != TIMER_NEVER)
		req_timer_move(qp);
}

#endif /* SKUAD_ROCE_REQ_TIMER_H */
