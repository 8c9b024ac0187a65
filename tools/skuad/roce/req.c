// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The requester of RC.
 *
 * Theory of operation. WQEs pass through a window: they are taken from the ring at its tail,
 * sent at nxt, and completed at una, strictly in order. PSNs are given out when a message is
 * begun, and are kept when it is sent again: after a NAK, an RNR wait or a timeout, nxt goes
 * back to una and everything from the oldest unacknowledged packet on is sent again
 * (go-back-N); what may be done sooner or with less is recover.c's. READs count as acknowledged
 * as far as their responses have come, atomics when theirs has.
 *
 * A WQE that is wrong is held until all before it have completed; then it completes with its
 * error, and the QP goes to ERR, where the rest is flushed.
 */
#include <stdlib.h>

#include "core/copy.h"
#include "roce/req.h"

#define ACK_EVERY	(1u << 20)	/* ask for an ACK in the middle of long messages, bytes */
#define TIMEOUT_MIN	13	/* 34 ms: on a slow line many packets of others may come first */

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
	recover_reset(qp);
	qp->req = (struct roce_req){
		.ack_deadline = TIMER_NEVER, .early_deadline = TIMER_NEVER,
		.window = WINDOW_START,
	};
}

/* To RTS. */
void roce_req_start(struct skua_qp *qp, uint32_t psn)
{
	struct roce_req *req = &qp->req;

	req->psn = req->una_psn = req->acked_psn = req->sent_psn = req->asked_psn = psn;
	req->resp_asked = req->resp_seen = req->cut_psn = psn;
}

static void set_timer(struct skua_qp *qp, uint64_t deadline)
{
	/* One that fires too early looks again: cheaper than moving it with every ACK. */
	if (!qp->timer.pos || qp->timer.deadline > deadline)
		timer_set(&qp->dev->engine->timers, &qp->timer, deadline);
}

/* Packets that may be sent before one asks for an ACK; few do: to answer is dear for a peer in software. */
static uint32_t ack_packets(const struct roce_req *req)
{
	return req->window / 4 * 3;
}

bool req_waiting(const struct roce_req *req)
{
	/* The window may have shrunk after these packets were sent, so none of them need carry AckReq. */
	return psn_diff(req->asked_psn, req->una_psn) > 0 ||
	       (req->window_full && req->sent_psn != req->una_psn);
}

static uint64_t next_deadline(const struct roce_req *req)
{
	return req->early_deadline < req->ack_deadline ? req->early_deadline : req->ack_deadline;
}

static uint64_t ack_timeout_ns(const struct skua_qp *qp)
{
	return 4096ull << (qp->attr.timeout < TIMEOUT_MIN ? TIMEOUT_MIN : qp->attr.timeout);
}

/* From now on an answer is waited for, if one is due. */
static void start_ack_timer(struct skua_qp *qp)
{
	struct roce_req *req = &qp->req;

	req->ack_deadline = TIMER_NEVER;
	req->early_deadline = TIMER_NEVER;
	if (!qp->attr.timeout || !req_waiting(req))
		return;
	req->ack_deadline = engine_now(qp->dev->engine) + ack_timeout_ns(qp);
	recover_start_timer(qp);
	set_timer(qp, next_deadline(req));
}

bool req_is_atomic(const struct send_wqe *wqe)
{
	return wqe->opcode == SKUA_WQE_CMP_SWAP || wqe->opcode == SKUA_WQE_FETCH_ADD;
}

bool req_has_response(const struct send_wqe *wqe)
{
	return wqe->opcode == SKUA_WQE_READ || req_is_atomic(wqe);
}

static bool acked(const struct roce_req *req, const struct send_wqe *wqe)
{
	if (!wqe->npsn || req_has_response(wqe))
		return wqe->done;
	return psn_diff(req->una_psn, psn_add(wqe->psn, wqe->npsn)) >= 0;
}

/* The oldest WQE that the peer has not answered; the tail: there is none. Those before it may
 * still wait for their trains to be over. */
static uint32_t oldest_unacked(const struct skua_qp *qp)
{
	const struct roce_req *req = &qp->req;
	uint32_t i = req->una;

	while (i != req->tail && acked(req, sq_wqe(qp, i)))
		i++;
	return i;
}

/*
 * The oldest WQE that is not acknowledged ends with @status, all behind it flushed. Those before
 * it succeed as soon as no train refers to them any more.
 */
static void fail(struct skua_qp *qp, uint8_t status, uint8_t vendor_err)
{
	struct roce_req *req = &qp->req;
	struct send_wqe *wqe = sq_wqe(qp, oldest_unacked(qp));

	wqe->status = status;
	wqe->vendor_err = vendor_err;
	req->failing = true;
	qp_to_err(qp);
}

static void succeed(struct skua_qp *qp, const struct send_wqe *wqe)
{
	if (wqe->opcode == SKUA_WQE_READ)
		STAT_INC(qp->dev, rdma_tx_read);
	else if (req_is_atomic(wqe))
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
	struct roce_req *req = &qp->req;

	while (req->una != req->nxt) {
		struct send_wqe *wqe = sq_wqe(qp, req->una);

		if (!acked(req, wqe))
			return;
		if (!port_passed(&wqe->mark)) {
			req->busy = true;
			return;
		}
		succeed(qp, wqe);
		req->una++;
	}
}

void req_rewind(struct skua_qp *qp)
{
	struct roce_req *req = &qp->req;
	const struct send_wqe *wqe;

	req->nxt = oldest_unacked(qp);
	req->nxt_pkt = 0;
	req->reads = 0;
	recover_rewound(qp);
	wqe = sq_wqe(qp, req->nxt);
	if (req->nxt != req->tail && wqe->npsn && !req_has_response(wqe))
		req->nxt_pkt = (uint32_t)psn_diff(req->una_psn, wqe->psn);
	qp_activate(qp);
}

/* Without progress once more, perhaps once too often: then @vendor_err says why. */
static void retry(struct skua_qp *qp, uint8_t vendor_err)
{
	struct roce_req *req = &qp->req;

	if (req->retries >= qp->attr.retry_cnt) {
		fail(qp, SKUA_CQE_RETRY_EXC_ERR, vendor_err);
		return;
	}
	req->retries++;
	recover_lost(qp);
}

uint32_t req_next_psn(const struct skua_qp *qp)
{
	const struct roce_req *req = &qp->req;
	const struct send_wqe *wqe = sq_wqe(qp, req->nxt);

	return req->nxt != req->tail && wqe->npsn ? psn_add(wqe->psn, req->nxt_pkt) : req->psn;
}

void roce_timer(struct timer *timer)
{
	struct skua_qp *qp = (void *)((char *)timer - offsetof(struct skua_qp, timer));
	struct roce_req *req = &qp->req;
	uint64_t now = engine_now(qp->dev->engine);

	if (!qp_can_send(qp))
		return;
	if (req->rnr_wait) {
		if (now < req->rnr_until)
			set_timer(qp, req->rnr_until);
		else
			qp_activate(qp);
		return;
	}
	if (req->ack_deadline == TIMER_NEVER)
		return;
	if (now < req->ack_deadline) {
		if (now >= req->early_deadline)
			recover_timer(qp);
		set_timer(qp, next_deadline(req));
		return;
	}
	req->ack_deadline = TIMER_NEVER;
	if (!req_waiting(req))
		return;
	STAT_INC(qp->dev, ack_timeouts);
	req->window = 0;	/* as few as can be: it may be busy with what was sent before */
	retry(qp, SKUA_VENDOR_ERR_TIMEOUT);
}

/* Give the message its PSNs, when it is begun for the first time. */
static void assign_psn(struct skua_qp *qp, struct send_wqe *wqe)
{
	struct roce_req *req = &qp->req;

	if (wqe->npsn)
		return;
	wqe->psn = req->psn;
	wqe->npsn = qp_packets(qp, wqe->length);
	req->psn = psn_add(req->psn, wqe->npsn);
}

static void next_wqe(struct roce_req *req)
{
	req->nxt++;
	req->nxt_pkt = 0;
}

/* A WQE that sends nothing is carried out here, when all before it have completed. */
static bool run_local(struct skua_qp *qp, struct send_wqe *wqe)
{
	struct roce_req *req = &qp->req;
	int err;

	if (wqe->opcode == SKUA_WQE_LOCAL_INV) {
		if (req->una != req->nxt)
			return false;
		err = wqe->begun ? 0 : mr_invalidate(qp->dev, qp->pd, wqe->imm);
		if (err) {
			fail(qp, SKUA_CQE_LOC_QP_OP_ERR, (uint8_t)err);
			return true;
		}
		/* It is a fence: trains of any QP may still refer to the region. */
		if (!wqe->begun)
			wqe->ticket = port_ticket(qp->dev->port);
		wqe->begun = true;
		req->busy = !port_drained(qp->dev->port, wqe->ticket);
		if (req->busy)
			return false;
	}
	wqe->done = true;
	next_wqe(req);
	complete_acked(qp);
	return true;
}

/* @npsn: PSNs that it takes, which those of a READ's request are not. What is lost on the way is
 * the timer's. */
static bool transmit(struct skua_qp *qp, struct send_wqe *wqe, struct train *t, uint32_t npsn)
{
	struct roce_req *req = &qp->req;
	struct port_mark mark;
	int32_t again = psn_diff(req->sent_psn, t->psn);
	uint32_t end = psn_add(t->psn, npsn);

	if (roce_send(qp, t, &mark) == PORT_BUSY) {
		req->busy = true;
		return false;
	}
	if (mark.ring)
		wqe->mark = mark;
	if (again > 0)
		STAT_ADD(qp->dev, retransmits, t->npkts < (uint32_t)again ? t->npkts : (uint32_t)again);
	recover_sent(qp, t, again > 0);
	if ((int32_t)npsn > again)
		req->sent_psn = end;
	if (t->ack_req && psn_diff(end, req->asked_psn) > 0)
		req->asked_psn = end;
	return true;
}

/* Can what the peer answers be stored? An atomic is carried out once: its place is looked up, too. */
static bool check_response(struct skua_qp *qp, struct send_wqe *wqe)
{
	struct seglist *dst = &qp->dev->engine->dst;
	int err = sq_check(qp, wqe, SKUA_ACCESS_LOCAL_WRITE);

	dst->n = 0;
	dst->bytes = 0;
	if (!err && req_is_atomic(wqe))
		err = sq_payload(qp, wqe, 0, 8, SKUA_ACCESS_LOCAL_WRITE, dst);
	if (err) {
		wqe->status = SKUA_CQE_LOC_PROT_ERR;
		wqe->vendor_err = (uint8_t)err;
	}
	return !err;
}

bool req_send_request(struct skua_qp *qp, struct send_wqe *wqe, uint32_t pkt, uint32_t n)
{
	uint32_t off = pkt * qp->pmtu;
	struct train t = train_blank;

	t.op = train_ops[wqe->opcode];
	t.first = t.last = true;
	t.ack_req = true;
	t.npkts = 1;
	t.rkey = wqe->rkey;
	t.raddr = wqe->raddr + off;
	t.psn = psn_add(wqe->psn, pkt);
	if (req_is_atomic(wqe)) {
		t.swap_add = wqe->swap_add;
		t.compare = wqe->compare;
	} else {
		t.msg_len = pkt + n < wqe->npsn ? n * qp->pmtu : wqe->length - off;
	}
	return transmit(qp, wqe, &t, n);
}

/* A READ, what is left of it, or an atomic. */
static bool send_request(struct skua_qp *qp, struct send_wqe *wqe)
{
	struct roce_req *req = &qp->req;
	uint32_t pkts = wqe->read_off >> qp->log_pmtu;

	if (wqe->done) {
		next_wqe(req);
		return true;
	}
	if (!qp->max_rd) {
		wqe->status = SKUA_CQE_LOC_QP_OP_ERR;
		wqe->vendor_err = SKUA_VENDOR_ERR_WQE_OPCODE;
		return true;
	}
	if (req->reads >= qp->max_rd)
		return false;
	if (!check_response(qp, wqe))
		return true;
	assign_psn(qp, wqe);
	/* One that is longer than the window goes alone. */
	if (psn_add(wqe->psn, pkts) != req->una_psn &&
	    psn_add(wqe->psn, wqe->npsn - req->una_psn) > req->window) {
		req->window_full = true;
		return false;
	}
	if (!req_send_request(qp, wqe, pkts, wqe->npsn - pkts))
		return false;
	req->reads++;
	next_wqe(req);
	return true;
}

bool req_send_packets(struct skua_qp *qp, struct send_wqe *wqe, uint32_t pkt, uint32_t n,
		      bool ack_req)
{
	struct seglist *src = &qp->dev->engine->src;
	uint32_t offset = pkt * qp->pmtu, len = wqe->length - offset;
	struct train t = train_blank;
	int err;

	if (len > n * qp->pmtu)
		len = n * qp->pmtu;
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
	t.npkts = n;
	t.psn = psn_add(wqe->psn, pkt);
	t.first = pkt == 0;
	t.last = pkt + n == wqe->npsn;
	t.solicited = wqe->flags & SKUA_WQE_SOLICITED;
	t.ack_req = t.last || ack_req;
	t.payload = src;
	return transmit(qp, wqe, &t, n);
}

/* Bytes from one request for an ACK to the next, a power of two. */
static uint32_t ack_every(const struct skua_qp *qp)
{
	uint32_t every = qp->congestion ? CONGESTION_BURST : ACK_EVERY;

	/* In time for the window to move on while packets are on their way. */
	while (every > qp->pmtu && every >> qp->log_pmtu > ack_packets(&qp->req))
		every /= 2;
	return every;
}

/* One train of a SEND or WRITE. */
static bool send_payload(struct skua_qp *qp, struct send_wqe *wqe, int32_t *budget)
{
	struct roce_req *req = &qp->req;
	uint32_t every = ack_every(qp);
	uint32_t burst = qp_burst(qp), max = (every < burst ? every : burst) >> qp->log_pmtu;
	uint32_t offset = req->nxt_pkt * qp->pmtu, len, n;

	if (qp_must_wait(qp))
		return false;
	assign_psn(qp, wqe);
	n = wqe->npsn - req->nxt_pkt;
	if (n > max)
		n = max;
	if (psn_add(wqe->psn, req->nxt_pkt + n - req->una_psn) > req->window) {
		req->window_full = true;
		return false;
	}
	len = n * qp->pmtu;
	/* Across a multiple of it, which is a power of two. */
	if (!req_send_packets(qp, wqe, req->nxt_pkt, n, (offset ^ (offset + len)) >= every))
		return false;
	if (wqe->status)
		return true;
	*budget -= (int32_t)(len < wqe->length - offset ? len : wqe->length - offset);
	req->nxt_pkt += n;
	if (req->nxt_pkt == wqe->npsn)
		next_wqe(req);
	return true;
}

/* Do a step of the WQE at nxt. False: it has to wait. */
static bool send_step(struct skua_qp *qp, struct send_wqe *wqe, int32_t *budget)
{
	struct roce_req *req = &qp->req;

	if (wqe->status) {
		if (req->una != req->nxt)
			return false;
		fail(qp, wqe->status, wqe->vendor_err);
		return true;
	}
	if (wqe->flags & SKUA_WQE_FENCE && req->reads)
		return false;
	*budget -= MESSAGE_COST;
	if (wqe->opcode == SKUA_WQE_NOP || wqe->opcode == SKUA_WQE_LOCAL_INV)
		return run_local(qp, wqe);
	if (req_has_response(wqe))
		return send_request(qp, wqe);
	return send_payload(qp, wqe, budget);
}

/* May the WQE at nxt be gone on with? In SQD only if it was begun before. */
static bool next_ready(struct skua_qp *qp)
{
	struct roce_req *req = &qp->req;
	const struct send_wqe *wqe = sq_wqe(qp, req->nxt);

	if (qp->state == SKUA_QPS_SQD)
		return req->nxt != req->tail && (wqe->npsn || wqe->begun);
	return qp->state == SKUA_QPS_RTS && (req->nxt != req->tail || sq_fetch(qp));
}

void roce_drained(struct skua_qp *qp)
{
	qp->draining = false;
	if (qp->drained_wanted)
		async_event(qp->dev, &qp->drained_event, SKUA_EVENT_SQ_DRAINED, qp->number, qp->handle);
}

bool roce_req_run(struct skua_qp *qp, int32_t *budget)
{
	struct roce_req *req = &qp->req;
	int32_t before = *budget;
	bool any = false, again;

	req->busy = false;
	req->window_full = false;
	complete_acked(qp);
	if (req->rnr_wait) {
		if (engine_now(qp->dev->engine) < req->rnr_until)
			return false;
		req->rnr_wait = false;
	}
	if (!recover_run(qp, budget))
		return *budget != before;
	again = *budget != before;
	while (*budget > 0 && next_ready(qp)) {
		if (!send_step(qp, sq_wqe(qp, req->nxt), budget))
			break;
		any = true;
	}
	if (req->ack_deadline == TIMER_NEVER)
		start_ack_timer(qp);
	if (qp->draining && req->una == req->nxt && !next_ready(qp))
		roce_drained(qp);
	return any || again;
}

bool roce_req_pending(const struct skua_qp *qp)
{
	return qp->req.busy || (qp->state == SKUA_QPS_ERR && qp->req.una != qp->req.tail);
}

void roce_req_flush(struct skua_qp *qp)
{
	struct roce_req *req = &qp->req;

	while (req->una != req->tail) {
		struct send_wqe *wqe = sq_wqe(qp, req->una);

		if (!port_passed(&wqe->mark))
			return;
		req->una++;
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
	req->nxt = req->una;
	req->busy = false;
}

struct send_wqe *req_oldest_read(const struct skua_qp *qp)
{
	for (uint32_t i = qp->req.una; i != qp->req.tail; i++) {
		struct send_wqe *wqe = sq_wqe(qp, i);

		if (wqe->npsn && req_has_response(wqe) && !wqe->done)
			return wqe;
	}
	return NULL;
}

/* What was to be sent again, and is acknowledged by now, is not. */
static void skip_acked(struct skua_qp *qp)
{
	struct roce_req *req = &qp->req;
	const struct send_wqe *wqe = sq_wqe(qp, req->nxt);
	int32_t pkts;

	while (req->nxt != req->tail && acked(req, wqe)) {
		next_wqe(req);
		wqe = sq_wqe(qp, req->nxt);
	}
	if (req->nxt == req->tail || !wqe->npsn || req_has_response(wqe))
		return;
	pkts = psn_diff(req->una_psn, wqe->psn);
	if (pkts > (int32_t)req->nxt_pkt)
		req->nxt_pkt = (uint32_t)pkts;
}

/*
 * All packets before @psn have arrived, but READs only as far as their responses came: those,
 * too, that are about to be sent again.
 */
static void ack_up_to(struct skua_qp *qp, uint32_t psn)
{
	struct roce_req *req = &qp->req;
	const struct send_wqe *read = req_oldest_read(qp);
	uint32_t limit;

	if (psn_diff(psn, req->acked_psn) > 0)
		req->acked_psn = psn;
	psn = req->acked_psn;
	if (read) {
		limit = psn_add(read->psn, read->read_off >> qp->log_pmtu);
		if (psn_diff(psn, limit) > 0)
			psn = limit;
	}
	if (psn_diff(psn, req->una_psn) <= 0)
		return;
	recover_progress(qp, psn);
	req->una_psn = psn;
	req->retries = 0;
	req->rnr_retries = 0;
	req->rnr_wait = false;
	skip_acked(qp);
	complete_acked(qp);
	start_ack_timer(qp);
}

static void rnr_nak(struct skua_qp *qp, uint8_t code)
{
	struct roce_req *req = &qp->req;

	STAT_INC(qp->dev, rnr_nak_received);
	if (qp->attr.rnr_retry != 7 && req->rnr_retries >= qp->attr.rnr_retry) {
		fail(qp, SKUA_CQE_RNR_RETRY_EXC_ERR, SKUA_VENDOR_ERR_PEER_NAK);
		return;
	}
	if (qp->attr.rnr_retry != 7)
		req->rnr_retries++;
	req_rewind(qp);
	if (sq_wqe(qp, req->nxt)->status)
		return;		/* it ends by a fault of its own, and waits for nobody */
	req->rnr_wait = true;
	req->rnr_until = engine_now(qp->dev->engine) + rnr_10us[code & 31] * 10000ull;
	req->ack_deadline = TIMER_NEVER;
	set_timer(qp, req->rnr_until);
}

static void rx_ack(struct skua_qp *qp, const struct train *t)
{
	struct roce_req *req = &qp->req;
	uint8_t status;

	if (psn_diff(t->psn, req->una_psn) < 0 || psn_diff(t->psn, req->sent_psn) >= 0)
		return;
	if (AETH_TYPE(t->syndrome) == 0) {
		ack_up_to(qp, psn_add(t->psn, 1));
		if (psn_diff(req->una_psn, t->psn) <= 0)
			recover_responses(qp, t->psn, NULL);
		return;
	}
	ack_up_to(qp, t->psn);
	if (psn_diff(req->una_psn, t->psn) < 0)
		recover_responses(qp, t->psn, NULL);
	if (req->una_psn != t->psn)
		return;
	if (AETH_TYPE(t->syndrome) == AETH_RNR) {
		rnr_nak(qp, t->syndrome & 31);
		return;
	}
	switch (t->syndrome) {
	case AETH_NAK_SEQ:
		STAT_INC(qp->dev, seq_nak_received);
		retry(qp, SKUA_VENDOR_ERR_PEER_NAK);
		req->backoff = 0;
		return;
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
	fail(qp, status, SKUA_VENDOR_ERR_PEER_NAK);
}

/* All of it has come, perhaps just when it was about to be sent again. */
static void response_done(struct skua_qp *qp, struct send_wqe *wqe)
{
	wqe->done = true;
	if (psn_diff(req_next_psn(qp), wqe->psn) > 0)
		qp->req.reads--;
}

/* @wqe is the oldest that has one to come. What comes after the next says that this was lost. */
static bool is_next_response(struct skua_qp *qp, const struct send_wqe *wqe, const struct train *t)
{
	uint32_t next = wqe ? psn_add(wqe->psn, wqe->read_off >> qp->log_pmtu) : t->psn;

	if (psn_diff(t->psn, next) > 0 && psn_diff(t->psn, qp->req.sent_psn) < 0)
		recover_responses(qp, t->psn, t);
	else if (psn_diff(t->psn, next) < 0 && wqe)
		recover_start_timer(qp);	/* the peer is at work: it was asked too often */
	return wqe && t->psn == next;
}

static void rx_read_resp(struct skua_qp *qp, const struct train *t)
{
	struct send_wqe *wqe = req_oldest_read(qp);
	struct seglist *dst = &qp->dev->engine->dst;
	uint32_t bytes = t->payload ? t->payload->bytes : 0;
	bool end;
	int err;

	if (!is_next_response(qp, wqe, t))
		return;
	ack_up_to(qp, wqe->psn);
	/*
	 * A peer that cuts them otherwise, or has no end where the bytes end, would give them
	 * other PSNs than we have set aside.
	 */
	end = wqe->read_off + bytes == wqe->length;
	if (wqe->opcode != SKUA_WQE_READ || t->npkts != qp_packets(qp, bytes) ||
	    bytes > wqe->length - wqe->read_off || (end ? !t->last : t->last && !wqe->parts) ||
	    (!end && bytes != t->npkts * qp->pmtu)) {
		fail(qp, SKUA_CQE_BAD_RESP_ERR, SKUA_VENDOR_ERR_PEER_RESPONSE);
		return;
	}
	dst->n = 0;
	dst->bytes = 0;
	err = sq_payload(qp, wqe, wqe->read_off, bytes, SKUA_ACCESS_LOCAL_WRITE, dst);
	if (err) {
		fail(qp, SKUA_CQE_LOC_PROT_ERR, (uint8_t)err);
		return;
	}
	if (bytes)
		copy_segs(dst, t->payload);
	wqe->read_off += bytes;
	if (end)
		response_done(qp, wqe);
	ack_up_to(qp, psn_add(t->psn, t->npkts));
}

static void rx_atomic_resp(struct skua_qp *qp, const struct train *t)
{
	struct send_wqe *wqe = req_oldest_read(qp);
	struct seglist *dst = &qp->dev->engine->dst, *src = &qp->dev->engine->src;
	uint64_t value = htole64(t->swap_add);
	int err;

	if (!is_next_response(qp, wqe, t))
		return;
	ack_up_to(qp, wqe->psn);
	if (!req_is_atomic(wqe)) {
		fail(qp, SKUA_CQE_BAD_RESP_ERR, SKUA_VENDOR_ERR_PEER_RESPONSE);
		return;
	}
	dst->n = 0;
	dst->bytes = 0;
	err = sq_payload(qp, wqe, 0, sizeof(value), SKUA_ACCESS_LOCAL_WRITE, dst);
	if (err) {
		fail(qp, SKUA_CQE_LOC_PROT_ERR, (uint8_t)err);
		return;
	}
	src->n = 1;
	src->bytes = sizeof(value);
	src->seg[0] = (struct seg){ (uint8_t *)&value, sizeof(value) };
	copy_segs(dst, src);
	response_done(qp, wqe);
	ack_up_to(qp, psn_add(t->psn, 1));
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
	const struct send_wqe *wqe = qp_can_send(qp) ? req_oldest_read(qp) : NULL;

	return wqe ? reorder_take(qp->dev, qp->req.early_resp,
				  psn_add(wqe->psn, wqe->read_off >> qp->log_pmtu)) : NULL;
}

static void rx_held(struct skua_qp *qp)
{
	struct roce_req *req = &qp->req;
	struct train *held;

	while ((held = take_held(qp))) {
		rx(qp, held);
		free(held);
	}
	if (!reorder_empty(req->early_resp) &&
	    psn_diff(req->una_psn, reorder_end(req->early_resp)) >= 0)
		reorder_drop(qp->dev, req->early_resp);	/* it came in a train besides */
}

void roce_req_rx(struct skua_qp *qp, const struct train *t)
{
	rx(qp, t);
	if (!reorder_empty(qp->req.early_resp))
		rx_held(qp);
	qp_activate(qp);
}
