// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The timer of the requester. A QP has one for the loss time, the probe timeout, the Local ACK Timeout and the wait
 * after an RNR NAK.
 *
 * Theory of operation. If nothing arrives, nothing is known to be lost. So whenever packets are outstanding, the probe
 * timeout runs (RFC 9002, section 6.2): when it fires, the oldest packet is retransmitted and asks for an answer. A
 * probe says nothing about what was lost; the answer does. The timeout doubles with each probe.
 *
 * Above that stands the Local ACK Timeout of IBTA. Its time without progress, and without a response that comes early,
 * is a retry: all that is outstanding counts as lost. More than retry_cnt retries end the QP.
 */
#include "core/fault.h"
#include "roce/congestion.h"
#include "roce/dcqcn.h"
#include "roce/loss.h"
#include "roce/req_complete.h"
#include "roce/req_send.h"
#include "roce/req_timer.h"
#include "roce/roce.h"
#include "roce/rtt.h"

#define PTO_COUNT_MAX		20

void req_timer_move(struct skua_qp *qp)
{
	const struct loss *l = &rc_of(qp)->req.loss;
	uint64_t at = l->pto_start + rtt_pto_ns(qp);

	if (l->loss_time < at)
		at = l->loss_time;
	if (qp->attr.timeout && l->ack_timeout_start + rtt_ack_timeout_ns(qp) < at)
		at = l->ack_timeout_start + rtt_ack_timeout_ns(qp);
	if (!rc_of(qp)->timer.pos || rc_of(qp)->timer.deadline > at)
		timer_set(&qp->dev->engine->timers, &rc_of(qp)->timer, at);
}

/* Forget all reports of held packets: the peer may have dropped them (REP-5), or the reports were forged. */
static void hold_nothing(struct skua_qp *qp)
{
	struct roce_req *req = &rc_of(qp)->req;
	struct sent_run *run;

	sent_charge(qp->dev, &req->sent);
	TAILQ_FOREACH(run, &req->sent.runs, entry)
		if (run->state == SENT_WAITING || run->state == SENT_ARRIVING ||
		    (run->state == SENT_HELD && !run->response && psn_diff(run->psn, req->accepted_psn) >= 0))
			sent_set_state(&req->sent, run, SENT_IN_FLIGHT);
}

/* RFC 9002, section 6.2.4. */
static void probe(struct skua_qp *qp)
{
	struct loss *l = &rc_of(qp)->req.loss;

	l->pto_start = now_of(qp);
	/* The last probe was not sent yet, because the line had no room. */
	if (rc_of(qp)->req.probe_due)
		return;
	if (l->pto_count < PTO_COUNT_MAX)
		l->pto_count++;
	if (l->probes < UINT8_MAX)
		l->probes++;
	if (l->pto_count > 1)
		hold_nothing(qp);
	repeat_agreed(qp);
	rc_of(qp)->req.probe_due = true;
	qp_activate(qp);
}

/* The Local ACK Timeout has passed. */
static void retry(struct skua_qp *qp)
{
	struct loss *l = &rc_of(qp)->req.loss;

	loss_restart(qp);
	/* Nothing was sent since the last retry: the QP waits for the line, or the peer reports that it holds all. */
	if (!l->sent_since_retry) {
		probe(qp);
		return;
	}
	QP_STAT_INC(qp, ack_timeouts);
	if (l->retries >= qp->attr.retry_cnt) {
		req_fail(qp, SKUA_CQE_RETRY_EXC_ERR, SKUA_VENDOR_ERR_TIMEOUT);
		return;
	}
	l->retries++;
	l->sent_since_retry = false;
	l->nak_taken = false;
	hold_nothing(qp);
	loss_lose_all(qp, 0);
	congestion_persistent(qp);
	rc_of(qp)->req.rnr_probing = false;
	l->min_rtt_at = 0;
	/* The estimate is so long that no probe comes before a retry. It may be wrong (RFC 6298, section 5). */
	if (l->retries > 1 && !l->pto_count)
		l->smoothed_rtt = 0;
	qp_activate(qp);
}

/*
 * No answer is on its way: no packet that asks for one was sent yet, or all such packets are lost. But one will be sent
 * when the QP has its turn, its rate allows it, and the line has room.
 */
static bool is_about_to_ask(const struct skua_qp *qp)
{
	const struct roce_req *req = &rc_of(qp)->req;
	bool waits = qp->sq.busy || pacer_paused(qp);

	if (req_is_asked(req))
		return waits && req->sent.npkts[SENT_LOST] && !sent_in_flight(&req->sent);
	/* New packets wait for the peers of other QPs. A probe, which was sent before, does not. */
	if (sent_is_scarce(qp->dev))
		return false;
	return waits || (req->npkts_since_ack_req && req_room(qp));
}

static void run_timers(struct skua_qp *qp)
{
	struct loss *l = &rc_of(qp)->req.loss;
	uint64_t now = now_of(qp);

	if (sent_is_empty(&rc_of(qp)->req.sent))
		return;
	/* While the QP waits for the host, time is not counted against the peer. req_resumed() looks for losses. */
	if (fault_is_waiting(qp, SKUA_PAGE_FAULT_REQUESTER)) {
		l->loss_time = TIMER_NEVER;
		loss_restart(qp);
		req_timer_set(qp);
		return;
	}
	/* Another engine of this process has not taken the oldest packet from the port yet: it is not lost. */
	if (!port_passed(&sq_wqe(qp, qp->sq.una)->mark))
		loss_restart(qp);
	if (is_about_to_ask(qp)) {
		rc_of(qp)->req.request_ack = true;
		loss_restart(qp);
		qp_activate(qp);
	}
	if (now >= l->loss_time)
		loss_detect(qp);
	if (qp->attr.timeout && now >= l->ack_timeout_start + rtt_ack_timeout_ns(qp))
		retry(qp);
	else if (now >= l->pto_start + rtt_pto_ns(qp))
		probe(qp);
	if (qp_can_send(qp))
		req_timer_set(qp);
}

void req_timer_fire(struct timer *timer)
{
	struct skua_qp *qp = (void *)((char *)timer - offsetof(struct rc_qp, timer));
	struct roce_req *req = &rc_of(qp)->req;

	if (!qp_can_send(qp) || !dev_running(qp->dev))
		return;
	if (!req->rnr_waiting)
		run_timers(qp);
	else if (now_of(qp) < req->rnr_until)
		timer_set(&qp->dev->engine->timers, timer, req->rnr_until);
	else
		qp_activate(qp);
}
