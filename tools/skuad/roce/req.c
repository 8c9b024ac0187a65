// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The requester of RC.
 *
 * Theory of operation. WQEs pass through a window: they are taken from the ring at its tail,
 * sent at nxt, and completed at una, strictly in order. A message gets its PSNs when it is begun,
 * and keeps them when packets of it are retransmitted. What was sent and is not acknowledged stands in
 * a table (sent.c); loss.c finds out what of it is lost, and retransmit.c retransmits that before
 * anything new is sent. READs count as acknowledged as far as their responses have come in order, atomics
 * when theirs has.
 *
 * A long READ is requested in parts of up to READ_PART packets, and no more than the congestion window has
 * room for. Each part is a READ of its own to the peer.
 *
 * A WQE that is wrong is held until all before it have completed; then it completes with its
 * error, and the QP goes to ERR, where the rest is flushed.
 */
#include <stdlib.h>

#include "base/copy.h"
#include "roce/req.h"
#include "roce/roce.h"

#define LOSSY_NS	1000000000	/* after a loss others are expected for so long */
#define READ_PART	1024	/* packets of a READ that are requested at a time, at most */
#define ACK_EVERY	(1u << 20)	/* ask for an ACK in the middle of long messages, bytes */

/* RNR timer codes in units of 10 us (IBTA table of RNR NAK timers). */
static const uint32_t rnr_10us[32] = {
	65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024,
	1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

static const enum train_op train_ops[] = {
	[SKUA_WQE_SEND]		= TRAIN_SEND,
	[SKUA_WQE_SEND_IMM]	= TRAIN_SEND_IMM,
	[SKUA_WQE_SEND_INV]	= TRAIN_SEND_INV,
	[SKUA_WQE_WRITE]	= TRAIN_WRITE,
	[SKUA_WQE_WRITE_IMM]	= TRAIN_WRITE_IMM,
	[SKUA_WQE_READ]		= TRAIN_READ_REQ,
	[SKUA_WQE_CMP_SWAP]	= TRAIN_CMP_SWAP,
	[SKUA_WQE_FETCH_ADD]	= TRAIN_FETCH_ADD,
};

void roce_req_reset(struct skua_qp *qp)
{
	sent_clear(qp->dev, &rc_of(qp)->req.sent);
	reorder_free(qp->dev, &rc_of(qp)->req.early);
	rc_of(qp)->req = (struct roce_req){ 0 };
	sent_init(&rc_of(qp)->req.sent);
	loss_init(&rc_of(qp)->req.loss);
	congestion_init(&rc_of(qp)->req.congestion);
}

/* To RTS. */
void roce_req_start(struct skua_qp *qp)
{
	struct roce_req *req = &rc_of(qp)->req;

	req->una_psn = req->acked_psn = req->sent_psn = req->asked_psn = qp->sq.psn;
}

static bool is_atomic(const struct send_wqe *wqe)
{
	return wqe->opcode == SKUA_WQE_CMP_SWAP || wqe->opcode == SKUA_WQE_FETCH_ADD;
}

/* Is it done when the peer's data have come? */
static bool has_response(const struct send_wqe *wqe)
{
	return wqe->opcode == SKUA_WQE_READ || is_atomic(wqe);
}

static bool acked(const struct roce_req *req, const struct send_wqe *wqe)
{
	if (!wqe->npsn || has_response(wqe))
		return wqe->done;
	return psn_diff(req->una_psn, psn_add(wqe->psn, wqe->npsn)) >= 0;
}

/* The oldest WQE that the peer has not answered; the tail: there is none. Those before it may
 * still wait for their trains to be over. */
static uint32_t oldest_unacked(const struct skua_qp *qp)
{
	const struct roce_req *req = &rc_of(qp)->req;
	uint32_t i = qp->sq.una;

	while (i != qp->sq.tail && acked(req, sq_wqe(qp, i)))
		i++;
	return i;
}

/* Those before it succeed as soon as no train refers to them any more; all behind it are flushed. */
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
		STAT_INC(qp->dev, rdma_tx_read);
	else if (is_atomic(wqe))
		STAT_INC(qp->dev, rdma_tx_atomic);
	else if (wqe->npsn && train_ops[wqe->opcode] <= TRAIN_SEND_INV)
		STAT_INC(qp->dev, rdma_tx_send);
	else if (wqe->npsn)
		STAT_INC(qp->dev, rdma_tx_write);
	sq_complete(qp, wqe, SKUA_CQE_SUCCESS, SKUA_VENDOR_ERR_NONE);
}

/* Complete what can be, in order. */
static void complete_acked(struct skua_qp *qp)
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
		qp->sq.una++;
	}
}

void roce_timer(struct timer *timer)
{
	struct skua_qp *qp = (void *)((char *)timer - offsetof(struct rc_qp, timer));
	struct roce_req *req = &rc_of(qp)->req;

	if (!qp_can_send(qp) || !dev_running(qp->dev))
		return;
	if (!req->rnr_wait)
		loss_timer(qp);
	else if (now_of(qp) < req->rnr_until)
		timer_set(&qp->dev->engine->timers, timer, req->rnr_until);
	else
		qp_activate(qp);
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

/* A WQE that sends nothing is carried out here, when all before it have completed. */
static bool run_local(struct skua_qp *qp, struct send_wqe *wqe)
{
	struct sq *sq = &qp->sq;
	int err;

	if (wqe->opcode == SKUA_WQE_LOCAL_INV) {
		if (sq->una != sq->nxt)
			return false;
		err = wqe->begun ? 0 : mr_invalidate(qp->dev, qp->pd, wqe->imm);
		if (err) {
			req_fail(qp, SKUA_CQE_LOC_QP_OP_ERR, (uint8_t)err);
			return true;
		}
		/* It is a fence: trains of any QP may still refer to the region. */
		if (!wqe->begun)
			wqe->ticket = port_ticket(qp->dev->port);
		wqe->begun = true;
		sq->busy = !port_drained(qp->dev->port, wqe->ticket);
		if (sq->busy)
			return false;
	}
	wqe->done = true;
	next_wqe(&qp->sq);
	complete_acked(qp);
	return true;
}

/* False: the wire has no room. Loss detection takes care of what is lost on the way. */
static bool transmit(struct skua_qp *qp, struct send_wqe *wqe, struct train *t)
{
	struct roce_req *req = &rc_of(qp)->req;
	int32_t again = psn_diff(req->sent_psn, t->psn);

	if (roce_send(qp, t, &wqe->mark) == PORT_BUSY) {
		qp->sq.busy = true;
		return false;
	}
	if (again > 0)
		STAT_ADD(qp->dev, retransmits, t->npkts);
	req->unasked += t->npkts;
	if (t->ack_req) {
		req->unasked = 0;
		loss_asked(qp, psn_add(t->psn, t->npkts));
	}
	return true;
}

/* @npkts PSNs from @psn on are outstanding, for the first time. */
static void now_outstanding(struct skua_qp *qp, uint32_t psn, uint32_t npkts, bool response)
{
	struct roce_req *req = &rc_of(qp)->req;

	loss_sent(qp);
	sent_add(qp->dev, &req->sent, psn, npkts, response, now_of(qp));
	req->sent_psn = psn_add(psn, npkts);
}

uint32_t req_room(const struct skua_qp *qp)
{
	const struct roce_req *req = &rc_of(qp)->req;
	uint32_t ahead = psn_add(req->sent_psn, -req->una_psn), room = congestion_room(qp);
	uint32_t limit = PSN_WINDOW;

	/* Receivers hold packets behind a gap only so far. */
	if (req->loss.lost_at && now_of(qp) - req->loss.lost_at < LOSSY_NS)
		limit = REPEAT_WINDOW;

	if (ahead >= limit)
		return 0;
	return room < limit - ahead ? room : limit - ahead;
}

bool req_must_ask(const struct skua_qp *qp, uint32_t npkts)
{
	const struct roce_req *req = &rc_of(qp)->req;
	uint32_t most = (conn_of(qp)->dcqcn ? DCQCN_BURST : ACK_EVERY) >> qp->log_pmtu;

	/* In time for the window to move on. */
	if (most > req->congestion.window / 2)
		most = req->congestion.window / 2;
	return req->ask || !req->loss.smoothed_rtt || req->unasked + npkts >= most || sent_is_scarce(qp->dev);
}

/* Can what the peer answers be stored? An atomic is carried out once: its place is looked up, too. */
static bool check_response(struct skua_qp *qp, struct send_wqe *wqe)
{
	struct seglist *dst = &qp->dev->engine->dst;
	int err = sq_check(qp, wqe, SKUA_ACCESS_LOCAL_WRITE);

	dst->n = 0;
	dst->bytes = 0;
	if (!err && is_atomic(wqe))
		err = sq_payload(qp, wqe, 0, 8, SKUA_ACCESS_LOCAL_WRITE, dst);
	if (err) {
		wqe->status = SKUA_CQE_LOC_PROT_ERR;
		wqe->vendor_err = (uint8_t)err;
	}
	return !err;
}

bool req_send_request(struct skua_qp *qp, struct send_wqe *wqe, uint32_t pkt, uint32_t npkts)
{
	uint32_t off = pkt * qp->pmtu;
	struct train t = train_blank;

	t.op = train_ops[wqe->opcode];
	t.first = t.last = true;
	t.ack_req = true;
	t.npkts = 1;
	/* For a READ of nothing rdma_rxe remembers the rkey 0, and drops the repeat of one that has another. */
	t.rkey = wqe->length ? wqe->rkey : 0;
	t.raddr = wqe->raddr + off;
	t.psn = psn_add(wqe->psn, pkt);
	if (is_atomic(wqe)) {
		t.swap_add = wqe->swap_add;
		t.compare = wqe->compare;
	} else {
		t.msg_len = pkt + npkts < wqe->npsn ? npkts * qp->pmtu : wqe->length - off;
	}
	return transmit(qp, wqe, &t);
}

/* An atomic, or the next part of a READ. */
static bool send_request(struct skua_qp *qp, struct send_wqe *wqe)
{
	struct roce_req *req = &rc_of(qp)->req;
	uint32_t npkts, room;

	if (!qp->max_rd) {
		wqe->status = SKUA_CQE_LOC_QP_OP_ERR;
		wqe->vendor_err = SKUA_VENDOR_ERR_WQE_OPCODE;
		return true;
	}
	if (req->reads >= qp->max_rd)
		return false;
	if (!qp->sq.nxt_pkt && !check_response(qp, wqe))
		return true;
	assign_psn(qp, wqe);
	npkts = wqe->npsn - qp->sq.nxt_pkt;
	if (npkts > READ_PART)
		npkts = READ_PART;
	room = req_room(qp);
	/* In large parts: the peer accepts few at a time. */
	if (npkts > room) {
		if (!room || (room < req->congestion.window / 2 && !sent_is_empty(&req->sent)))
			return false;
		npkts = room;
	}
	if (!sent_reserve(qp->dev, &rc_of(qp)->req.sent)) {
		qp->sq.busy = true;
		return false;
	}
	if (!req_send_request(qp, wqe, qp->sq.nxt_pkt, npkts))
		return false;
	now_outstanding(qp, psn_add(wqe->psn, qp->sq.nxt_pkt), npkts, true);
	req->reads++;
	qp->sq.nxt_pkt += npkts;
	if (qp->sq.nxt_pkt == wqe->npsn)
		next_wqe(&qp->sq);
	return true;
}

bool req_send_packets(struct skua_qp *qp, struct send_wqe *wqe, uint32_t pkt,
		      uint32_t npkts, bool ack_req)
{
	struct seglist *src = &qp->dev->engine->src;
	uint32_t offset = pkt * qp->pmtu, len = wqe->length - offset;
	struct train t = train_blank;
	int err;

	if (len > npkts * qp->pmtu)
		len = npkts * qp->pmtu;
	src->n = 0;
	src->bytes = 0;
	err = sq_payload(qp, wqe, offset, len, 0, src);
	if (err) {
		wqe->status = SKUA_CQE_LOC_PROT_ERR;
		wqe->vendor_err = (uint8_t)err;
		return true;
	}
	t.op = train_ops[wqe->opcode];
	t.imm = wqe->imm;
	t.rkey = wqe->rkey;
	t.raddr = wqe->raddr;
	t.msg_len = wqe->length;
	t.npkts = npkts;
	t.psn = psn_add(wqe->psn, pkt);
	t.first = pkt == 0;
	t.last = pkt + npkts == wqe->npsn;
	t.solicited = wqe->flags & SKUA_WQE_SOLICITED;
	t.ack_req = t.last || ack_req;
	t.payload = src;
	return transmit(qp, wqe, &t);
}

/* How many of @npkts new packets, for which there is @room, go as one train. */
static uint32_t train_of(const struct skua_qp *qp, uint32_t npkts, uint32_t room)
{
	uint32_t burst;

	/* The first packet asks for an ACK by itself: that measures a round trip before the line is full. */
	if (npkts == 1 || (!rc_of(qp)->req.loss.smoothed_rtt && sent_is_empty(&rc_of(qp)->req.sent)))
		return 1;
	burst = qp_burst(qp) >> qp->log_pmtu;
	if (npkts > burst)
		npkts = burst;
	return npkts < room ? npkts : room;
}

/* One train of a SEND or WRITE. */
static bool send_payload(struct skua_qp *qp, struct send_wqe *wqe, int32_t *budget)
{
	struct sq *sq = &qp->sq;
	uint32_t offset = sq->nxt_pkt * qp->pmtu, len, npkts, room = req_room(qp);

	if (!room || qp_must_wait(qp))
		return false;
	assign_psn(qp, wqe);
	npkts = train_of(qp, wqe->npsn - sq->nxt_pkt, room);
	if (!sent_reserve(qp->dev, &rc_of(qp)->req.sent)) {
		sq->busy = true;
		return false;
	}
	/* The last packet of a message asks in any case. */
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
	if (wqe->flags & SKUA_WQE_FENCE && req->reads)
		return false;
	*budget -= MESSAGE_COST;
	if (wqe->opcode == SKUA_WQE_NOP || wqe->opcode == SKUA_WQE_LOCAL_INV)
		return run_local(qp, wqe);
	if (has_response(wqe))
		return send_request(qp, wqe);
	return send_payload(qp, wqe, budget);
}

/* May the WQE at nxt be gone on with? In SQD only if it was begun before. */
static bool next_ready(struct skua_qp *qp)
{
	struct sq *sq = &qp->sq;
	const struct send_wqe *wqe = sq_wqe(qp, sq->nxt);

	if (qp->state == SKUA_QPS_SQD)
		return sq->nxt != sq->tail && (wqe->npsn || wqe->begun);
	return qp->state == SKUA_QPS_RTS && (sq->nxt != sq->tail || sq_fetch(qp));
}

bool roce_req_run(struct skua_qp *qp, int32_t *budget)
{
	struct roce_req *req = &rc_of(qp)->req;
	int32_t before = *budget;
	bool any = false, again;

	qp->sq.busy = false;
	complete_acked(qp);
	if (req->rnr_wait) {
		if (now_of(qp) < req->rnr_until)
			return false;
		/* The oldest packet goes alone, as a probe. The others follow when the peer has taken it. */
		req->rnr_wait = false;
		req->rnr_trying = true;
		req->probe = true;
		loss_restart(qp);
	}
	if ((req->probe || req->sent.npkts[SENT_LOST]) && !retransmit_run(qp, budget)) {
		loss_set_timer(qp);
		return *budget != before;
	}
	again = *budget != before;
	while (*budget > 0 && next_ready(qp)) {
		if (req->rnr_trying || !send_step(qp, sq_wqe(qp, qp->sq.nxt), budget))
			break;
		any = true;
	}
	loss_set_timer(qp);
	if (qp->draining && qp->sq.una == qp->sq.nxt && !next_ready(qp))
		qp_drained(qp);
	return any || again;
}

bool roce_req_pending(const struct skua_qp *qp)
{
	return qp->sq.busy || (qp->state == SKUA_QPS_ERR && qp->sq.una != qp->sq.tail);
}

void roce_req_flush(struct skua_qp *qp)
{
	struct roce_req *req = &rc_of(qp)->req;

	sent_clear(qp->dev, &req->sent);
	reorder_free(qp->dev, &req->early);
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

/* The oldest READ or atomic without all of its responses, of those that were begun; or NULL. */
static struct send_wqe *oldest_read(const struct skua_qp *qp)
{
	for (uint32_t i = qp->sq.una; i != qp->sq.tail; i++) {
		struct send_wqe *wqe = sq_wqe(qp, i);

		if (wqe->npsn && has_response(wqe) && !wqe->done)
			return wqe;
	}
	return NULL;
}

/* PSN of the response that @read waits for. */
static uint32_t next_response(const struct skua_qp *qp, const struct send_wqe *read)
{
	return psn_add(read->psn, read->read_off >> qp->log_pmtu);
}

/* All before @psn is accepted, and its responses have come. */
static void done_up_to(struct skua_qp *qp, uint32_t psn)
{
	struct roce_req *req = &rc_of(qp)->req;

	if (psn_diff(psn, req->una_psn) <= 0)
		return;
	req->una_psn = psn;
	req->rnr_retries = 0;
	req->rnr_wait = false;
	req->rnr_trying = false;
	loss_acked(qp, psn);
	complete_acked(qp);
}

/* The peer has accepted all before @psn. It counts as acknowledged as far as responses have come. */
static void ack_up_to(struct skua_qp *qp, uint32_t psn)
{
	struct roce_req *req = &rc_of(qp)->req;
	const struct send_wqe *read = req->reads ? oldest_read(qp) : NULL;
	bool accepted = psn_diff(psn, req->acked_psn) > 0;
	uint32_t done;

	if (accepted)
		req->acked_psn = psn;
	done = req->acked_psn;
	if (read && psn_diff(done, next_response(qp, read)) > 0)
		done = next_response(qp, read);
	done_up_to(qp, done);
	if (accepted && done != req->acked_psn)
		loss_accepted(qp, req->acked_psn);
}

/* The responses before @psn have come, the last of them now. */
static void responses_up_to(struct skua_qp *qp, uint32_t psn)
{
	if (psn_diff(rc_of(qp)->req.acked_psn, psn) > 0) {
		ack_up_to(qp, psn);	/* perhaps WRITEs or SENDs behind them are done with, too */
		return;
	}
	rc_of(qp)->req.acked_psn = psn;
	done_up_to(qp, psn);
}

static void rnr_nak(struct skua_qp *qp, uint8_t code)
{
	struct roce_req *req = &rc_of(qp)->req;

	STAT_INC(qp->dev, rnr_nak_received);
	if (qp->attr.rnr_retry != 7 && req->rnr_retries >= qp->attr.rnr_retry) {
		req_fail(qp, SKUA_CQE_RNR_RETRY_EXC_ERR, SKUA_VENDOR_ERR_PEER_NAK);
		return;
	}
	if (qp->attr.rnr_retry != 7)
		req->rnr_retries++;
	loss_rnr_nak(qp);
	req->rnr_wait = true;
	req->rnr_until = now_of(qp) + rnr_10us[code & 31] * 10000ull;
	timer_set(&qp->dev->engine->timers, &rc_of(qp)->timer, req->rnr_until);
}

static void rx_ack(struct skua_qp *qp, const struct train *t)
{
	struct roce_req *req = &rc_of(qp)->req;
	uint8_t status;

	if (psn_diff(t->psn, req->una_psn) < 0 || psn_diff(t->psn, req->sent_psn) >= 0)
		return;
	if (AETH_TYPE(t->syndrome) == 0) {
		ack_up_to(qp, psn_add(t->psn, 1));
		return;
	}
	ack_up_to(qp, t->psn);
	if (t->syndrome == AETH_NAK_SEQ) {
		STAT_INC(qp->dev, seq_nak_received);
		if (req->acked_psn == t->psn)
			loss_nak(qp, t->psn);
		return;
	}
	/* Responses before it were lost. The peer repeats this NAK when they have come. */
	if (req->una_psn != t->psn)
		return;
	if (AETH_TYPE(t->syndrome) == AETH_RNR) {
		rnr_nak(qp, t->syndrome & 31);
		return;
	}
	switch (t->syndrome) {
	case AETH_NAK_INV_REQ:
		status = SKUA_CQE_REM_INV_REQ_ERR;
		break;
	case AETH_NAK_ACCESS:
		status = SKUA_CQE_REM_ACCESS_ERR;
		break;
	case AETH_NAK_OP:
		status = SKUA_CQE_REM_OP_ERR;
		break;
	default:
		STAT_INC(qp->dev, rdma_rx_bad_packet);
		return;
	}
	req_fail(qp, status, SKUA_VENDOR_ERR_PEER_NAK);
}

/*
 * A response that comes early tells that the peer has accepted all requests before it. But anybody may have
 * guessed its PSN, so it counts as news only, and completes nothing.
 */
static void rx_early_response(struct skua_qp *qp, const struct train *t)
{
	struct roce_req *req = &rc_of(qp)->req;
	const struct sent_run *run = sent_find(&req->sent, t->psn);

	if (!run || !run->response)
		return;
	if (reorder_has(req->early, t->psn)) {
		loss_response_twice(qp);
		return;
	}
	loss_response_early(qp, t->psn, t->npkts,
			    reorder_hold(qp->dev, &req->early, req->una_psn, t));
	loss_accepted(qp, t->psn);
}

/* @wqe is the oldest that has one to come. */
static bool is_next_response(struct skua_qp *qp, const struct send_wqe *wqe, const struct train *t)
{
	int32_t ahead = wqe ? psn_diff(t->psn, next_response(qp, wqe)) : -1;

	if (ahead > 0)
		rx_early_response(qp, t);
	else if (ahead < 0)
		loss_response_twice(qp);
	else if (t->psn != rc_of(qp)->req.una_psn)
		ack_up_to(qp, t->psn);
	return !ahead;
}

/* The response does not fit the request. If it was held, it may have been forged: drop it. */
static void refuse_response(struct skua_qp *qp, const struct train *t)
{
	if (rc_of(qp)->req.from_held)
		loss_response_refused(qp, t->psn);
	else
		req_fail(qp, SKUA_CQE_BAD_RESP_ERR, SKUA_VENDOR_ERR_PEER_RESPONSE);
}

static void rx_read_resp(struct skua_qp *qp, const struct train *t)
{
	struct send_wqe *wqe = oldest_read(qp);
	struct seglist *dst = &qp->dev->engine->dst;
	uint32_t bytes = t->payload ? t->payload->bytes : 0;
	bool end;
	int err;

	if (!is_next_response(qp, wqe, t))
		return;
	/*
	 * A peer that cuts them otherwise, or has no end where the bytes end, would give them
	 * other PSNs than we have set aside.
	 */
	end = wqe->read_off + bytes == wqe->length;
	if (wqe->opcode != SKUA_WQE_READ || t->npkts != qp_packets(qp, bytes) ||
	    bytes > wqe->length - wqe->read_off || (end && !t->last) ||
	    (!end && bytes != t->npkts * qp->pmtu)) {
		refuse_response(qp, t);
		return;
	}
	dst->n = 0;
	dst->bytes = 0;
	err = sq_payload(qp, wqe, wqe->read_off, bytes, SKUA_ACCESS_LOCAL_WRITE, dst);
	if (err) {
		req_fail(qp, SKUA_CQE_LOC_PROT_ERR, (uint8_t)err);
		return;
	}
	if (bytes)
		copy_segs(dst, t->payload);
	wqe->read_off += bytes;
	wqe->done = end;
	responses_up_to(qp, psn_add(t->psn, t->npkts));
}

static void rx_atomic_resp(struct skua_qp *qp, const struct train *t)
{
	struct send_wqe *wqe = oldest_read(qp);
	struct seglist *dst = &qp->dev->engine->dst, *src = &qp->dev->engine->src;
	uint64_t value = htole64(t->swap_add);
	int err;

	if (!is_next_response(qp, wqe, t))
		return;
	if (!is_atomic(wqe)) {
		refuse_response(qp, t);
		return;
	}
	dst->n = 0;
	dst->bytes = 0;
	err = sq_payload(qp, wqe, 0, sizeof(value), SKUA_ACCESS_LOCAL_WRITE, dst);
	if (err) {
		req_fail(qp, SKUA_CQE_LOC_PROT_ERR, (uint8_t)err);
		return;
	}
	src->n = 1;
	src->bytes = sizeof(value);
	src->seg[0] = (struct seg){ (uint8_t *)&value, sizeof(value) };
	copy_segs(dst, src);
	wqe->done = true;
	responses_up_to(qp, psn_add(t->psn, 1));
}

static void rx(struct skua_qp *qp, const struct train *t)
{
	if (t->op == TRAIN_ACK)
		rx_ack(qp, t);
	else if (t->op == TRAIN_ATOMIC_RESP)
		rx_atomic_resp(qp, t);
	else
		rx_read_resp(qp, t);
}

/* The next response, if it came before its time. */
static struct train *take_held(struct skua_qp *qp)
{
	const struct send_wqe *wqe = qp_can_send(qp) ? oldest_read(qp) : NULL;

	return wqe ? reorder_take(qp->dev, &rc_of(qp)->req.early, next_response(qp, wqe)) : NULL;
}

static void rx_held(struct skua_qp *qp)
{
	struct roce_req *req = &rc_of(qp)->req;
	struct train *held;

	req->from_held = true;
	while ((held = take_held(qp))) {
		rx(qp, held);
		free(held);
	}
	req->from_held = false;
	if (!reorder_empty(req->early) && psn_diff(req->una_psn, reorder_end(req->early)) >= 0)
		reorder_free(qp->dev, &req->early);	/* it came in a train besides */
}

void roce_req_missing(struct skua_qp *qp, const struct repeat_frame *f)
{
	loss_missing(qp, f);
	qp_activate(qp);
}

void roce_req_rx(struct skua_qp *qp, const struct train *t)
{
	rx(qp, t);
	if (!reorder_empty(rc_of(qp)->req.early))
		rx_held(qp);
	qp_activate(qp);
}
