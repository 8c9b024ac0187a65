// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * XRC (manual: extended reliable connections).
 *
 * Theory of operation. A QP of type XRC_INI is an RC QP without a responder, and one of type XRC_TGT is an RC QP without
 * a requester. The responder of RC uses the PD, the RQ and the receive CQ of its QP. Those of an XRC_TGT QP are set from
 * the SRQ that a request names, before the request is executed: the PD for each request, the others when a message
 * begins, since a READ can name another SRQ than the message under way. READs and atomics are answered later, so each
 * keeps its PD.
 */
#include "core/xrcd.h"
#include "roce/req_rx.h"
#include "roce/resp.h"
#include "roce/resp_ack.h"
#include "roce/resp_atomic.h"
#include "roce/resp_jobs.h"
#include "roce/resp_recv.h"
#include "roce/xrc.h"

static void wrong_way(struct skua_qp *qp, const struct train *t)
{
	QP_STAT_ADD(qp, rdma_rx_bad_opcode, t->npkts);
}

void xrc_ini_rx(struct skua_qp *qp, const struct train *t)
{
	if (!train_is_response(t->op))
		wrong_way(qp, t);
	else if (req_take_held(qp))
		req_rx(qp, t);
}

static bool is_message(enum train_op op)
{
	return op != TRAIN_READ_REQ && !train_is_atomic(op);
}

static void use_memory_of(struct skua_qp *qp, const struct srq *srq)
{
	qp->pd = srq->rq.pd;
	qp->privileged = srq->rq.privileged;
}

bool xrc_select_srq(struct skua_qp *qp, const struct train *t)
{
	struct srq *srq = xrcd_srq(qp->dev, qp->xrcd, t->srqn);
	bool under_way = conn_of(qp)->message.under_way;

	if (!srq) {
		resp_refuse(qp, AETH_NAK_INV_REQ, SKUA_EVENT_QP_ACCESS_ERR);
		return false;
	}
	use_memory_of(qp, srq);
	if (!is_message(t->op))
		return true;
	if (!under_way)
		qp_use_srq(qp, srq);
	else if (qp->rq.srq != srq)
		resp_refuse_invalid(qp);
	return qp->rq.srq == srq;
}

/* Requests that were held go first. They may name other SRQs than @t does. */
void xrc_tgt_rx(struct skua_qp *qp, const struct train *t)
{
	int32_t ahead;

	if (!resp_take_held(qp))
		return;
	ahead = psn_diff(t->psn, qp->epsn);
	if (train_is_response(t->op)) {
		wrong_way(qp, t);
	} else if (ahead < 0 && t->op == TRAIN_READ_REQ) {
		/* It is executed again, if the SRQ is still there. */
		struct srq *srq = xrcd_srq(qp->dev, qp->xrcd, t->srqn);

		if (!srq)
			return;
		use_memory_of(qp, srq);
		resp_rx(qp, t);
	} else if (ahead > 0 || psn_diff(psn_add(t->psn, t->npkts), qp->epsn) <= 0 || xrc_select_srq(qp, t)) {
		/* It comes early, or is all known, or the SRQ that it names is a good one. */
		resp_rx(qp, t);
	}
}

void xrc_forget_srq(struct skua_qp *qp, const struct srq *srq)
{
	struct roce_resp *resp = &rc_of(qp)->resp;

	for (uint32_t i = resp->jobs_tail; i != resp->jobs_head; i++) {
		struct read_job *job = resp_job_at(resp, i);

		if (job->srqn == srq->number)
			job->pd = NULL;
	}
	resp_forget_srq(qp, srq);
	if (qp->rq.srq == srq)
		qp_use_srq(qp, NULL);
	qp->pd = NULL;
}
