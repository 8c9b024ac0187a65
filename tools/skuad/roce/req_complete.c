// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How WQEs of the requester end: they complete or fail strictly in order.
 *
 * An acknowledged WQE completes when no train in a ring between engines refers to its payload any more. A WQE that
 * fails waits until all before it have completed. Then it completes with its error, and the QP goes to ERR, where the
 * rest is flushed.
 */
#include "roce/reorder.h"
#include "roce/req_complete.h"

static bool acked(const struct roce_req *req, const struct send_wqe *wqe)
{
	if (!wqe->npsn || wqe_has_response(wqe))
		return wqe->done;
	return psn_diff(req->oldest_unacked_psn, psn_add(wqe->psn, wqe->npsn)) >= 0;
}

/*
 * The index of the oldest WQE that the peer has not answered; the tail: there is none. WQEs before it may still wait
 * for their trains to be over.
 */
static uint32_t oldest_unacked(const struct skua_qp *qp)
{
	const struct roce_req *req = &rc_of(qp)->req;
	uint32_t i = qp->sq.una;

	while (i != qp->sq.tail && acked(req, sq_wqe(qp, i)))
		i++;
	return i;
}

/* WQEs before the oldest without an answer succeed as soon as no train refers to them any more. */
void req_fail(struct skua_qp *qp, uint8_t status, uint8_t vendor_err)
{
	struct roce_req *req = &rc_of(qp)->req;
	struct send_wqe *wqe = sq_wqe(qp, oldest_unacked(qp));

	wqe->status = status;
	wqe->vendor_err = vendor_err;
	req->failing = true;
	qp_to_err(qp);
}

void req_fail_oldest(struct skua_qp *qp, const struct send_wqe *wqe)
{
	if (wqe == sq_wqe(qp, oldest_unacked(qp)))
		req_fail(qp, wqe->status, wqe->vendor_err);
}

static void succeed(struct skua_qp *qp, const struct send_wqe *wqe)
{
	if (wqe->opcode == SKUA_WQE_READ)
		QP_STAT_INC(qp, rdma_tx_read);
	else if (wqe_is_atomic(wqe))
		QP_STAT_INC(qp, rdma_tx_atomic);
	else if (wqe->opcode == SKUA_WQE_FLUSH)
		QP_STAT_INC(qp, rdma_tx_flush);
	else if (wqe->opcode == SKUA_WQE_ATOMIC_WRITE)
		QP_STAT_INC(qp, rdma_tx_atomic_write);
	else if (wqe->npsn && wqe->opcode <= SKUA_WQE_SEND_INV)
		QP_STAT_INC(qp, rdma_tx_send);
	else if (wqe->npsn)
		QP_STAT_INC(qp, rdma_tx_write);
	sq_complete(qp, wqe, SKUA_CQE_SUCCESS, SKUA_VENDOR_ERR_NONE);
}

/* Complete what can be, in order. */
void req_complete_acked(struct skua_qp *qp)
{
	struct roce_req *req = &rc_of(qp)->req;

	while (qp->sq.una != qp->sq.nxt) {
		struct send_wqe *wqe = sq_wqe(qp, qp->sq.una);

		if (!acked(req, wqe))
			return;
		if (!port_passed(&wqe->mark)) {
			qp->sq.busy = true;
			return;
		}
		succeed(qp, wqe);
		qp->dev->engine->turn -= LOOK_COST;	/* one ACK may be of all that were posted */
		qp->sq.una++;
	}
}

void req_flush(struct skua_qp *qp)
{
	struct roce_req *req = &rc_of(qp)->req;

	sent_clear(qp->dev, &req->sent);
	reorder_free(qp->dev, &req->early_responses);
	while (qp->sq.una != qp->sq.tail) {
		struct send_wqe *wqe = sq_wqe(qp, qp->sq.una);

		if (!port_passed(&wqe->mark))
			return;
		qp->sq.una++;
		if (!req->flushing && acked(req, wqe)) {
			succeed(qp, wqe);
			continue;
		}
		if (!req->flushing && req->failing)
			sq_complete(qp, wqe, wqe->status, wqe->vendor_err);
		else
			sq_complete(qp, wqe, SKUA_CQE_WR_FLUSH_ERR, SKUA_VENDOR_ERR_NONE);
		req->flushing = true;
	}
	qp->sq.nxt = qp->sq.una;
	qp->sq.busy = false;
}
