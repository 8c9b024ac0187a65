// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The services RC and XRC: a QP has a requester (req.c) and a responder (resp.c), which do not call each other. QPs of
 * XRC use one of them only (xrc.c).
 */
#include "roce/cnp.h"
#include "roce/dcqcn.h"
#include "roce/rc.h"
#include "roce/req.h"
#include "roce/req_complete.h"
#include "roce/req_rx.h"
#include "roce/req_timer.h"
#include "roce/resp.h"
#include "roce/resp_jobs.h"
#include "roce/resp_recv.h"
#include "roce/roce.h"
#include "roce/xrc.h"

static void init(struct skua_qp *qp)
{
	rc_of(qp)->timer.fire = req_timer_fire;
	STAILQ_INIT(&rc_of(qp)->resp.held_cqes);
}

static void reset(struct skua_qp *qp)
{
	req_reset(qp);
	resp_reset(qp);
}

/* Go on with packets that were held. False: they have used up the turn. */
static bool take_held(struct skua_qp *qp)
{
	req_take_held(qp);
	resp_take_held(qp);
	return qp->dev->engine->turn > 0;
}

/* ROC-27: the one that sends first fills the line, so requester and responder take turns. */
static bool run(struct skua_qp *qp, int32_t *budget)
{
	struct rc_qp *rc = rc_of(qp);
	bool any, responses_first;

	/* An ACK that left out some of them would make the peer take those for lost. */
	if (!take_held(qp))
		return true;
	responses_first = rc->responses_first || !qp_can_send(qp);
	any = responses_first ? resp_run(qp, budget) : req_run(qp, budget);
	if (any)
		rc->responses_first = !responses_first;
	if (!responses_first)
		any |= resp_run(qp, budget);
	else if (qp_can_send(qp))
		any |= req_run(qp, budget);
	return (cnp_is_due(qp) && cnp_send(qp)) || any;
}

static bool is_pending(const struct skua_qp *qp)
{
	return cnp_is_due(qp) || resp_is_pending(qp) || req_is_pending(qp);
}

static void resumed(struct skua_qp *qp, enum skua_page_fault_side side)
{
	if (side == SKUA_PAGE_FAULT_REQUESTER)
		req_resumed(qp);
}

/*
 * Packets that were held go first, so that @t is seldom early. When they have used up the turn, the links deliver no
 * more packets in this round.
 */
static void rx(struct skua_qp *qp, const struct train *t)
{
	if (!train_is_response(t->op)) {
		if (resp_take_held(qp))
			resp_rx(qp, t);
	} else if (req_take_held(qp)) {
		req_rx(qp, t);
	}
}

static bool flush(struct skua_qp *qp)
{
	req_flush(qp);
	resp_flush(qp);
	return !resp_holds_cqes(qp);
}

/* There is no RQ: what it has not taken from SRQs is not its own. */
static bool xrc_flush(struct skua_qp *qp)
{
	flush(qp);
	return false;
}

static void stop(struct skua_qp *qp)
{
	dcqcn_reset(qp);
	timer_cancel(&qp->dev->engine->timers, &rc_of(qp)->timer);
}

static void progress(const struct skua_qp *qp, struct transport_progress *p)
{
	const struct roce_req *req = &rc_of(qp)->req;

	p->una_psn = req->oldest_unacked_psn;
	p->retries = req->loss.retries;
	p->rnr_retries = req->rnr_retries;
}

#define RC_OPS \
	.roce = true, .qp_size = sizeof(struct rc_qp), .init = init, .reset = reset, .start = req_start, .run = run, \
	.is_pending = is_pending, .stop_responding = resp_jobs_drop, .retire = resp_retire, .stop = stop, \
	.resumed = resumed, .progress = progress

const struct transport_ops rc_ops = {
	RC_OPS,
	.features = 1ull << SKUA_F_RC,
	.srq = true,
	.service = TRANSPORT_RC,
	.reserve = resp_jobs_reserve,
	.rx = rx,
	.flush = flush,
};

const struct transport_ops xrc_ini_ops = {
	RC_OPS,
	.features = 1ull << SKUA_F_XRC,
	.no_recv = true,
	.service = TRANSPORT_XRC,
	.rx = xrc_ini_rx,
	.flush = xrc_flush,
};

const struct transport_ops xrc_tgt_ops = {
	RC_OPS,
	.features = 1ull << SKUA_F_XRC,
	.target = true,
	.service = TRANSPORT_XRC,
	.reserve = resp_jobs_reserve,
	.rx = xrc_tgt_rx,
	.rx_held = xrc_select_srq,
	.forget_srq = xrc_forget_srq,
	.flush = xrc_flush,
};
