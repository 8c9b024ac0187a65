/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the peer answers.
 */
#ifndef SKUAD_ROCE_REQ_RX_H
#define SKUAD_ROCE_REQ_RX_H

#include "roce/rc.h"
#include "roce/reorder.h"

void req_rx(struct skua_qp *qp, const struct train *t);
/* For req_take_held(). */
bool req_place_held(struct skua_qp *qp);
/* Go on with responses that were held, if the turn before did not last for all. False: the QP sends nothing more. */
static inline bool req_take_held(struct skua_qp *qp)
{
	return reorder_empty(rc_of(qp)->req.early_responses) || req_place_held(qp);
}
void req_rx_missing(struct skua_qp *qp, const struct repeat_frame *f);

#endif /* SKUAD_ROCE_REQ_RX_H */
