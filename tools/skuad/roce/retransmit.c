// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Retransmission: lost packets are retransmitted in the order of their PSNs, as far as the congestion
 * window has room; a probe goes at once.
 *
 * The peer executes a request once, in order. So the request of a READ or an atomic that may be lost is
 * retransmitted as it was. Once the peer has accepted a READ, a partial request brings just the missing
 * packets: IBTA lets a duplicate READ ask for a part. Peers limit how many such requests they keep, and some
 * forget what lies before the last one. So a peer without selective repeat is asked for the oldest gap only.
 */
#include "roce/congestion.h"
#include "roce/dcqcn.h"
#include "roce/loss.h"
#include "roce/req_complete.h"
#include "roce/req_send.h"
#include "roce/retransmit.h"

/* The WQE that a packet which was sent belongs to. */
static struct send_wqe *wqe_of(const struct skua_qp *qp, uint32_t psn)
{
	for (uint32_t i = qp->sq.una; i != qp->sq.tail; i++) {
		struct send_wqe *wqe = sq_wqe(qp, i);

		if (wqe->npsn && psn_add(psn, -wqe->psn) < wqe->npsn)
			return wqe;
	}
	return NULL;
}

/* Are these responses of a READ that the peer has accepted? */
static bool is_part(const struct skua_qp *qp, const struct sent_run *run)
{
	return run->response && req_is_accepted(&rc_of(qp)->req, run);
}

/* How many partial requests are in flight? */
static uint32_t parts_asked(const struct skua_qp *qp)
{
	const struct sent_run *run;
	uint32_t n = 0;

	TAILQ_FOREACH(run, &rc_of(qp)->req.sent.runs, entry)
		n += run->is_partial && run->state == SENT_IN_FLIGHT;
	return n;
}

/* May the run be retransmitted, with @parts partial requests in flight? @oldest: no response before it is missing. */
static bool may_ask(struct skua_qp *qp, const struct sent_run *run, uint32_t parts, bool oldest)
{
	if (!is_part(qp, run))
		return true;
	if (repeat_offered(qp))
		return parts < qp->max_rd;
	return oldest;
}

/* Can all of these responses be held while earlier ones are missing? @oldest: none is. */
static bool has_place(const struct roce_req *req, const struct sent_run *run, bool oldest)
{
	return !run->response || psn_diff(psn_add(run->psn, run->npkts), req->oldest_unacked_psn) <= REPEAT_WINDOW ||
	       oldest;
}

/*
 * Retransmit the first @npkts of @run. Returns the run that has them now, or NULL: there is no room on the
 * wire, or the payload cannot be read any more.
 */
static struct sent_run *send_again(struct skua_qp *qp, struct sent_run *run, uint32_t npkts,
				   bool ack_req, int32_t *budget)
{
	struct roce_req *req = &rc_of(qp)->req;
	struct send_wqe *wqe = wqe_of(qp, run->psn);
	uint32_t pkt = psn_add(run->psn, -wqe->psn);
	bool sent = false, part;

	if (npkts > wqe->npsn - pkt)
		npkts = wqe->npsn - pkt;
	/* Perhaps a later part of its message could not be sent. */
	if (!wqe->status && run->response)
		sent = req_send_request(qp, wqe, pkt, npkts);
	else if (!wqe->status)
		sent = req_send_packets(qp, wqe, pkt, npkts, ack_req || npkts == req->sent.npkts[SENT_LOST]);
	if (wqe->status)
		req_fail_oldest(qp, wqe);
	if (wqe->status || !sent)
		return NULL;
	*budget -= run->response ? MESSAGE_COST : (int32_t)(npkts << qp->log_pmtu);
	loss_sent(qp);
	part = is_part(qp, run);
	run = sent_again(qp->dev, &req->sent, run, npkts, now_of(qp));
	run->is_partial = part;
	return run;
}

static bool send_probe(struct skua_qp *qp, int32_t *budget)
{
	struct roce_req *req = &rc_of(qp)->req;
	struct sent_run *run = TAILQ_FIRST(&req->sent.runs);

	if (run && !send_again(qp, run, run->response && !is_part(qp, run) ? run->npkts : 1, true, budget))
		return false;
	req->probe_due = false;
	req->loss.probe_order = req->sent.next_order;
	return true;
}

/* How many packets of @run may be sent as one train, or be requested? */
static uint32_t how_many(const struct skua_qp *qp, const struct sent_run *run)
{
	uint32_t max = congestion_room(qp), npkts = run->npkts > max ? max : run->npkts;

	if (run->response)
		return is_part(qp, run) ? npkts : run->npkts;
	return qp_train(qp, npkts);
}

bool retransmit_run(struct skua_qp *qp, int32_t *budget)
{
	struct roce_req *req = &rc_of(qp)->req;
	struct sent_run *run;
	uint32_t npkts, parts;
	bool missing = false;

	if (req->probe_due && !send_probe(qp, budget))
		return false;
	if (req->rnr_probing)
		return true;
	parts = parts_asked(qp);
	for (run = TAILQ_FIRST(&req->sent.runs); run; run = TAILQ_NEXT(run, entry)) {
		bool oldest = !missing;

		/* A SEND or WRITE before it need not be acknowledged. */
		missing |= run->response && run->state != SENT_HELD;
		if (run->state != SENT_LOST || !may_ask(qp, run, parts, oldest) || !has_place(req, run, oldest))
			continue;
		if (*budget <= 0 || !congestion_room(qp) || req_must_wait(qp, wqe_of(qp, run->psn)))
			return false;
		npkts = how_many(qp, run);
		run = send_again(qp, run, npkts, req_must_ask(qp, npkts), budget);
		if (!run)
			return false;
		parts += run->is_partial;
	}
	return true;
}
