// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The requester of RC.
 *
 * Theory of operation. WQEs pass through a window: they are taken from the ring at its tail, sent at nxt, and completed
 * at una, strictly in order. A message gets its PSNs when it is begun, and keeps them when packets of it are
 * retransmitted. What was sent and is not acknowledged stands in a table (sent.c). loss.c finds out what of it is lost,
 * and retransmit.c retransmits that before anything new is sent.
 *
 * A long READ is requested in parts of up to READ_PART packets, and no more than the congestion window has room for.
 * Each part is a READ of its own to the peer.
 *
 * Three ways lead into the requester: a turn of the QP (req.c, which calls retransmit.c and req_send.c), what the peer
 * answers (req_rx.c, which calls arrival.c), and the timer (req_timer.c). Only a turn sends packets. The others note in
 * the state of the QP what is to be sent.
 */
#include "core/fault.h"
#include "roce/congestion.h"
#include "roce/dcqcn.h"
#include "roce/loss.h"
#include "roce/reorder.h"
#include "roce/req.h"
#include "roce/req_complete.h"
#include "roce/req_send.h"
#include "roce/req_timer.h"
#include "roce/retransmit.h"

#define READ_PART	1024	/* packets of a READ that are requested at a time, at most */

void req_reset(struct skua_qp *qp)
{
	sent_clear(qp->dev, &rc_of(qp)->req.sent);
	reorder_free(qp->dev, &rc_of(qp)->req.early_responses);
	rc_of(qp)->req = (struct roce_req){ 0 };
	sent_init(&rc_of(qp)->req.sent);
	loss_init(&rc_of(qp)->req.loss);
	congestion_init(&rc_of(qp)->req.congestion);
}

/* To RTS. */
void req_start(struct skua_qp *qp)
{
	struct roce_req *req = &rc_of(qp)->req;

	req->oldest_unacked_psn = req->accepted_psn = req->next_psn = req->ack_requested_psn = qp->sq.psn;
}

void req_resumed(struct skua_qp *qp)
{
	struct roce_req *req = &rc_of(qp)->req;

	if (req->npkts_dropped) {
		loss_response_dropped(qp, req->npkts_dropped);
		/* After an RNR NAK, a lost packet goes only as a probe. */
		req->probe_due |= req->rnr_probing;
	}
	req->npkts_dropped = 0;
	if (sent_is_empty(&req->sent))
		return;
	loss_restart(qp);
	loss_detect(qp);
}

/* Give the message its PSNs, when it is begun for the first time. */
static void assign_psn(struct skua_qp *qp, struct send_wqe *wqe)
{
	struct sq *sq = &qp->sq;

	if (wqe->npsn)
		return;
	wqe->psn = sq->psn;
	wqe->npsn = qp_packets(qp, wqe->length);
	sq->psn = psn_add(sq->psn, wqe->npsn);
}

static void next_wqe(struct sq *sq)
{
	sq->nxt++;
	sq->nxt_pkt = 0;
}

static bool run_local(struct skua_qp *qp, struct send_wqe *wqe, int32_t *budget)
{
	if (!sq_run_local(qp, wqe, budget))
		return false;
	if (wqe->status)
		return true;
	wqe->done = true;
	next_wqe(&qp->sq);
	req_complete_acked(qp);
	return true;
}

/* @npkts PSNs from @psn on are outstanding, for the first time. */
static void now_outstanding(struct skua_qp *qp, uint32_t psn, uint32_t npkts, bool response)
{
	struct roce_req *req = &rc_of(qp)->req;

	loss_sent(qp);
	fault_over(qp, SKUA_PAGE_FAULT_REQUESTER);
	sent_add(qp->dev, &req->sent, psn, npkts, response, now_of(qp));
	req->next_psn = psn_add(psn, npkts);
}

/*
 * Can the answer of the peer be stored? An atomic is carried out only once, so its place is looked up, too. False: it
 * cannot, and the WQE has a status; or not yet.
 */
static bool check_response(struct skua_qp *qp, struct send_wqe *wqe)
{
	struct seglist *dst = &qp->dev->engine->dst;
	int err;

	if (wqe->opcode == SKUA_WQE_FLUSH || wqe->opcode == SKUA_WQE_ATOMIC_WRITE)
		return true;	/* it brings nothing */
	err = sq_check(qp, wqe, SKUA_ACCESS_LOCAL_WRITE);
	dst->n = 0;
	dst->bytes = 0;
	if (!err && wqe_is_atomic(wqe))
		err = sq_payload(qp, wqe, 0, 8, SKUA_ACCESS_LOCAL_WRITE, dst);
	if (err == SKUA_VENDOR_ERR_NOT_PRESENT && fault_wait(qp, SKUA_PAGE_FAULT_REQUESTER))
		return false;
	if (err) {
		wqe->status = SKUA_CQE_LOC_PROT_ERR;
		wqe->vendor_err = (uint8_t)err;
	}
	return !err;
}

/* The next part of a READ, or any other request with a response. */
static bool send_request(struct skua_qp *qp, struct send_wqe *wqe)
{
	struct roce_req *req = &rc_of(qp)->req;
	uint32_t npkts, room;

	if (!qp->max_rd) {
		wqe->status = SKUA_CQE_LOC_QP_OP_ERR;
		wqe->vendor_err = SKUA_VENDOR_ERR_WQE_OPCODE;
		return true;
	}
	if (req->reads_outstanding >= qp->max_rd || req_must_wait(qp, wqe))
		return false;
	if (!qp->sq.nxt_pkt && !check_response(qp, wqe))
		return wqe->status;
	assign_psn(qp, wqe);
	npkts = wqe->npsn - qp->sq.nxt_pkt;
	if (npkts > READ_PART)
		npkts = READ_PART;
	room = req_room(qp);
	/* A part is large, because the peer accepts few READs at a time. */
	if (npkts > room) {
		if (!room || (room < req->congestion.window / 2 && !sent_is_empty(&req->sent)))
			return false;
		npkts = room;
	}
	if (!sent_reserve(qp->dev, &rc_of(qp)->req.sent)) {
		qp->sq.busy = !sent_is_full(&rc_of(qp)->req.sent);
		return false;
	}
	if (!req_send_request(qp, wqe, qp->sq.nxt_pkt, npkts))
		return false;
	if (wqe->status)
		return true;
	now_outstanding(qp, psn_add(wqe->psn, qp->sq.nxt_pkt), npkts, true);
	req->reads_outstanding++;
	qp->sq.nxt_pkt += npkts;
	if (qp->sq.nxt_pkt == wqe->npsn)
		next_wqe(&qp->sq);
	return true;
}

/* How many of @npkts new packets, for which there is @room, go as one train. */
static uint32_t train_of(const struct skua_qp *qp, uint32_t npkts, uint32_t room)
{
	/* The first packet is sent alone and asks for an ACK: it measures a round trip before the line is full. */
	if (npkts == 1 || (!rc_of(qp)->req.loss.smoothed_rtt && sent_is_empty(&rc_of(qp)->req.sent)))
		return 1;
	return qp_train(qp, npkts < room ? npkts : room);
}

/* One train of a SEND or WRITE. */
static bool send_payload(struct skua_qp *qp, struct send_wqe *wqe, int32_t *budget)
{
	struct sq *sq = &qp->sq;
	uint32_t offset = sq->nxt_pkt * qp->pmtu, len, npkts, room = req_room(qp);

	if (!room || req_must_wait(qp, wqe))
		return false;
	assign_psn(qp, wqe);
	npkts = train_of(qp, wqe->npsn - sq->nxt_pkt, room);
	if (!sent_reserve(qp->dev, &rc_of(qp)->req.sent)) {
		sq->busy = !sent_is_full(&rc_of(qp)->req.sent);
		return false;
	}
	/* The last packet of a message asks for an ACK in any case. */
	if (!req_send_packets(qp, wqe, sq->nxt_pkt, npkts,
			      sq->nxt_pkt + npkts != wqe->npsn && req_must_ask(qp, npkts)))
		return false;
	if (wqe->status)
		return true;
	now_outstanding(qp, psn_add(wqe->psn, sq->nxt_pkt), npkts, false);
	len = npkts * qp->pmtu;
	*budget -= (int32_t)(len < wqe->length - offset ? len : wqe->length - offset);
	sq->nxt_pkt += npkts;
	if (sq->nxt_pkt == wqe->npsn)
		next_wqe(sq);
	return true;
}

/* Do a step of the WQE at nxt. False: it has to wait. */
static bool send_step(struct skua_qp *qp, struct send_wqe *wqe, int32_t *budget)
{
	struct roce_req *req = &rc_of(qp)->req;

	if (wqe->status) {
		if (qp->sq.una != qp->sq.nxt)
			return false;
		req_fail(qp, wqe->status, wqe->vendor_err);
		return true;
	}
	/* The parts of a READ do not wait for each other. */
	if (wqe->flags & SKUA_WQE_FENCE && req->reads_outstanding && !qp->sq.nxt_pkt)
		return false;
	*budget -= MESSAGE_COST;
	if (wqe->local)
		return run_local(qp, wqe, budget);
	if (wqe_has_response(wqe))
		return send_request(qp, wqe);
	return send_payload(qp, wqe, budget);
}

/* Is there a WQE at nxt to send from? In SQD only one that was begun before. A QP need not have an SQ. */
static bool next_ready(struct skua_qp *qp)
{
	const struct sq *sq = &qp->sq;

	if (qp->state == SKUA_QPS_SQD)
		return sq->nxt != sq->tail && (sq_wqe(qp, sq->nxt)->npsn || sq_wqe(qp, sq->nxt)->begun);
	return qp->state == SKUA_QPS_RTS && (sq->nxt != sq->tail || sq_fetch(qp));
}

bool req_run(struct skua_qp *qp, int32_t *budget)
{
	struct roce_req *req = &rc_of(qp)->req;
	bool any = false;

	qp->sq.busy = false;
	qp->sq.waits = true;
	req_complete_acked(qp);
	if (req->rnr_waiting) {
		/* The rate counts, too: packets that are sent again after a short time would use it up for long. */
		if (now_of(qp) < req->rnr_until || req_must_wait(qp, sq_wqe(qp, qp->sq.una)))
			return false;
		/* The oldest packet is sent alone. The others follow when the peer has accepted it. */
		req->rnr_waiting = false;
		req->rnr_probing = true;
		req->probe_due = true;
		loss_restart(qp);
	}
	if (req->probe_due || req->sent.npkts[SENT_LOST]) {
		int32_t before = *budget;
		bool all = retransmit_run(qp, budget);

		any = *budget != before;
		/* Not before them: some go in each turn, however many runs there are. */
		sent_charge(qp->dev, &req->sent);
		if (!all) {
			req_timer_set(qp);
			return any;
		}
	}
	qp->sq.waits = false;
	/*
	 * Completions or the charge may have used up the turn. What is behind them comes in the next one. The charge is no
	 * work, or timers would wait for QPs that can do none.
	 */
	if (*budget <= 0 && !req->rnr_probing && next_ready(qp))
		qp->sq.busy = true;
	while (*budget > 0 && next_ready(qp)) {
		if (req->rnr_probing || !send_step(qp, sq_wqe(qp, qp->sq.nxt), budget))
			break;
		any = true;
	}
	req_timer_set(qp);
	if (qp->draining && qp->sq.una == qp->sq.nxt && !next_ready(qp))
		qp_drained(qp);
	return any;
}

bool req_is_pending(const struct skua_qp *qp)
{
	return qp->sq.busy || (qp->state == SKUA_QPS_ERR && qp->sq.una != qp->sq.tail);
}
