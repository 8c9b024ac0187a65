/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The timer of the requester.
 */
#ifndef SKUAD_ROCE_REQ_TIMER_H
#define SKUAD_ROCE_REQ_TIMER_H

#include "roce/rc.h"

/* Set the timer, if anything is outstanding. */
void req_timer_set(struct skua_qp *qp);
void req_timer_fire(struct timer *timer);

#endif /* SKUAD_ROCE_REQ_TIMER_H */
