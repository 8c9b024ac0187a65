/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Completions of the responder's receives.
 */
#ifndef SKUAD_ROCE_RESP_RECV_H
#define SKUAD_ROCE_RESP_RECV_H

#include "roce/rc.h"

/* Complete a receive with @cqe, behind those that are held back. */
void resp_complete_recv(struct skua_qp *qp, struct skua_cqe *cqe);
/*
 * The message of @cqe has invalidated a region, and the CQE says that no train refers to it any more. True: some may,
 * so the CQE is held back until they are over. False: it may be written now.
 */
bool resp_hold_invalidation(struct skua_qp *qp, struct skua_cqe *cqe);
/* The receive that the message under way has taken, if any, completes with an error. */
void resp_fail_recv(struct skua_qp *qp, uint8_t status, uint8_t vendor_err);
/* Forget all CQEs that are held back. Their receives return to the SRQ, if they are from one. */
void resp_drop_cqes(struct skua_qp *qp);
/* XRC_TGT: the SRQ goes, and its receives do. */
void resp_forget_srq(struct skua_qp *qp, const struct srq *srq);

/* Are CQEs held back? They come before those of a flush. */
static inline bool resp_holds_cqes(const struct skua_qp *qp)
{
	return !STAILQ_EMPTY(&rc_of(qp)->resp.held_cqes);
}

bool resp_release_held_cqes(struct skua_qp *qp, int32_t *budget);

/* Write the CQEs whose trains are over. True: there were some. */
static inline bool resp_release_cqes(struct skua_qp *qp, int32_t *budget)
{
	return resp_holds_cqes(qp) && resp_release_held_cqes(qp, budget);
}

#endif /* SKUAD_ROCE_RESP_RECV_H */
