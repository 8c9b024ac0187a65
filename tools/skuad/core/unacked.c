// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The send side of the services without acknowledgements.
 *
 * WQEs pass through the same window as those of RC: they are sent at nxt and completed at una, in
 * order, as soon as no train refers to their memory. One that is wrong waits until all before it
 * have completed, and moves the QP to SQE, where all behind it are flushed (manual: QPS-12).
 */
#include "core/fault.h"
#include "core/transport.h"

static bool complete_passed(struct skua_qp *qp)
{
	struct sq *sq = &qp->sq;
	bool any = false;

	for (; sq->una != sq->nxt; sq->una++) {
		struct send_wqe *wqe = sq_wqe(qp, sq->una);

		if (!port_passed(&wqe->mark)) {
			sq->busy = true;
			break;
		}
		sq_complete(qp, wqe, SKUA_CQE_SUCCESS, SKUA_VENDOR_ERR_NONE);
		any = true;
	}
	return any;
}

/* The WQE at nxt is no good. False: it has to wait for those before it. */
static bool fail(struct skua_qp *qp, const struct send_wqe *wqe)
{
	struct sq *sq = &qp->sq;

	if (sq->una != sq->nxt || !port_passed(&wqe->mark)) {
		sq->busy = true;
		return false;
	}
	sq->una++;
	sq->nxt++;
	sq->nxt_pkt = 0;
	if (qp_can_send(qp)) {
		qp->state = SKUA_QPS_SQE;
		qp->draining = false;
	}
	sq_complete(qp, wqe, wqe->status, wqe->vendor_err);
	return true;
}

/* May the WQE at nxt be gone on with? In SQD only if it was begun before. */
static bool next_ready(struct skua_qp *qp)
{
	struct sq *sq = &qp->sq;

	if (qp->state == SKUA_QPS_SQD)
		return sq->nxt != sq->tail && (sq->nxt_pkt || sq_wqe(qp, sq->nxt)->begun);
	return qp->state == SKUA_QPS_RTS && (sq->nxt != sq->tail || sq_fetch(qp));
}

/* Do a step of the WQE at nxt. False: it has to wait. */
static bool step(struct skua_qp *qp, struct send_wqe *wqe, int32_t *budget)
{
	if (!wqe->local) {
		if (!qp->ops->send(qp, wqe, budget))
			return false;
		fault_over(qp, SKUA_PAGE_FAULT_REQUESTER);
		return true;
	}
	if (!sq_run_local(qp, wqe, budget))
		return false;
	if (!wqe->status)
		qp->sq.nxt++;
	return true;
}

bool unacked_run(struct skua_qp *qp, int32_t *budget)
{
	struct sq *sq = &qp->sq;
	bool any;

	if (!qp_can_send(qp))
		return false;
	sq->busy = false;
	any = complete_passed(qp);
	while (*budget > 0 && next_ready(qp)) {
		struct send_wqe *wqe = sq_wqe(qp, sq->nxt);

		*budget -= MESSAGE_COST;
		if (!wqe->status && !step(qp, wqe, budget))
			break;
		if (wqe->status && !fail(qp, wqe))
			break;
		complete_passed(qp);
		any = true;
	}
	if (qp->draining && sq->una == sq->nxt && !next_ready(qp))
		qp_drained(qp);
	return any;
}

bool unacked_flush(struct skua_qp *qp)
{
	struct sq *sq = &qp->sq;

	while (sq->una != sq->tail) {
		struct send_wqe *wqe = sq_wqe(qp, sq->una);
		bool sent = (int32_t)(sq->nxt - sq->una) > 0;

		if (!port_passed(&wqe->mark))
			return true;
		sq->una++;
		sq_complete(qp, wqe, sent ? SKUA_CQE_SUCCESS : SKUA_CQE_WR_FLUSH_ERR,
			    SKUA_VENDOR_ERR_NONE);
	}
	sq->nxt = sq->una;
	sq->nxt_pkt = 0;
	sq->busy = false;
	return true;
}

bool unacked_is_pending(const struct skua_qp *qp)
{
	return qp->sq.busy || (qp->state == SKUA_QPS_ERR && qp->sq.una != qp->sq.tail);
}
