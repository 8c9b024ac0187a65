/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The responder of RC.
 */
#ifndef SKUAD_ROCE_RESP_H
#define SKUAD_ROCE_RESP_H

#include "roce/rc.h"
#include "roce/reorder.h"

void resp_reset(struct skua_qp *qp);
void resp_rx(struct skua_qp *qp, const struct train *t);
/* For resp_take_held(). */
bool resp_place_held(struct skua_qp *qp);
/* Go on with packets that were held, if the turn before did not last for all. False: the QP receives nothing more. */
static inline bool resp_take_held(struct skua_qp *qp)
{
	return reorder_empty(rc_of(qp)->resp.early_requests) || resp_place_held(qp);
}
/* A turn: send what is owed. True: something was done. */
bool resp_run(struct skua_qp *qp, int32_t *budget);
/* Would a turn do anything? */
bool resp_is_pending(const struct skua_qp *qp);
/* Send the ACK that is due, if it may go before responses. */
void resp_retire(struct skua_qp *qp);
/* In ERR: flush the receive of the message under way. */
void resp_flush(struct skua_qp *qp);

#endif /* SKUAD_ROCE_RESP_H */
