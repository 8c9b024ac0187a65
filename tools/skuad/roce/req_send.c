// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Packets of a WQE, sent for the first time or again: how many may be sent, and whether they ask for an ACK.
 */
#include "core/fault.h"
#include "roce/congestion.h"
#include "roce/dcqcn.h"
#include "roce/loss.h"
#include "roce/req_complete.h"
#include "roce/req_send.h"
#include "roce/roce.h"
#include "roce/send.h"

#define LOSSY_NS	1000000000	/* more losses are expected so long after a loss */
#define ACK_EVERY	(1u << 20)	/* ask for an ACK in the middle of long messages, bytes */

static const enum train_op train_ops[] = {
	[SKUA_WQE_SEND]		= TRAIN_SEND,
	[SKUA_WQE_SEND_IMM]	= TRAIN_SEND_IMM,
	[SKUA_WQE_SEND_INV]	= TRAIN_SEND_INV,
	[SKUA_WQE_WRITE]	= TRAIN_WRITE,
	[SKUA_WQE_WRITE_IMM]	= TRAIN_WRITE_IMM,
	[SKUA_WQE_READ]		= TRAIN_READ_REQ,
	[SKUA_WQE_CMP_SWAP]	= TRAIN_CMP_SWAP,
	[SKUA_WQE_FETCH_ADD]	= TRAIN_FETCH_ADD,
	[SKUA_WQE_FLUSH]	= TRAIN_FLUSH,
	[SKUA_WQE_ATOMIC_WRITE]	= TRAIN_ATOMIC_WRITE,
	[SKUA_WQE_MASKED_CMP_SWAP]  = TRAIN_MASKED_CMP_SWAP,
	[SKUA_WQE_MASKED_FETCH_ADD] = TRAIN_MASKED_FETCH_ADD,
};

/* How many PSNs ahead of the oldest outstanding one may new packets be? */
static uint32_t psns_ahead(const struct skua_qp *qp)
{
	const struct loss *l = &rc_of(qp)->req.loss;

	/* Receivers hold packets behind a gap only within this window. */
	return l->last_loss_at && now_of(qp) - l->last_loss_at < LOSSY_NS ? REPEAT_WINDOW : PSN_WINDOW;
}

uint32_t req_room(const struct skua_qp *qp)
{
	const struct roce_req *req = &rc_of(qp)->req;
	uint32_t ahead = psn_add(req->next_psn, -req->oldest_unacked_psn), room = congestion_room(qp);
	uint32_t limit = psns_ahead(qp);

	if (ahead >= limit)
		return 0;
	return room < limit - ahead ? room : limit - ahead;
}

bool req_must_ask(const struct skua_qp *qp, uint32_t npkts)
{
	const struct roce_req *req = &rc_of(qp)->req;
	uint32_t most = (qp->pacer ? pacer_burst(qp) : ACK_EVERY) >> qp->log_pmtu;

	/* The answer has to come before there is no room. */
	if (most > req->congestion.window / 2)
		most = req->congestion.window / 2;
	if (most > psns_ahead(qp) / 2)
		most = psns_ahead(qp) / 2;
	return req->request_ack || !req->loss.smoothed_rtt || req->npkts_since_ack_req + npkts >= most ||
	       sent_is_scarce(qp->dev);
}

/* False: there is no room on the wire. A train that is lost counts as sent: loss detection takes care of it. */
static bool transmit(struct skua_qp *qp, struct send_wqe *wqe, struct train *t)
{
	struct roce_req *req = &rc_of(qp)->req;
	int32_t again = psn_diff(req->next_psn, t->psn);

	t->transport = qp->ops->service;
	if (roce_send(qp, t, &wqe->mark) == PORT_BUSY) {
		qp->sq.busy = true;
		return false;
	}
	if (again > 0)
		QP_STAT_ADD(qp, retransmits, t->npkts);
	req->npkts_since_ack_req += t->npkts;
	if (t->ack_req) {
		req->npkts_since_ack_req = 0;
		/* A READ asks for all of its responses. */
		loss_asked(qp, psn_add(t->psn, t->op == TRAIN_READ_REQ ? qp_packets(qp, t->msg_len) : t->npkts));
	}
	return true;
}

/*
 * @t carries @len bytes of the WQE's message from @offset on. False: they may not be read, and the WQE has a status; or
 * they cannot be read yet.
 */
static bool take_payload(struct skua_qp *qp, struct send_wqe *wqe, uint32_t offset, uint32_t len, struct train *t)
{
	struct seglist *src = &qp->dev->engine->src;
	int err;

	src->n = 0;
	src->bytes = 0;
	err = sq_payload(qp, wqe, offset, len, 0, src);
	if (err == SKUA_VENDOR_ERR_NOT_PRESENT && fault_wait(qp, SKUA_PAGE_FAULT_REQUESTER))
		return false;
	if (err) {
		wqe->status = SKUA_CQE_LOC_PROT_ERR;
		wqe->vendor_err = (uint8_t)err;
		return false;
	}
	t->payload = src;
	t->msg_len = wqe->length;
	return true;
}

bool req_send_request(struct skua_qp *qp, struct send_wqe *wqe, uint32_t pkt, uint32_t npkts)
{
	uint32_t off = pkt * qp->pmtu;
	struct train t = train_blank;

	t.op = train_ops[wqe->opcode];
	t.first = t.last = true;
	t.ack_req = true;
	t.npkts = 1;
	/* For a READ of no bytes rdma_rxe remembers the rkey 0, and drops a retransmission that has another. */
	t.rkey = wqe->length || wqe->opcode != SKUA_WQE_READ ? wqe->rkey : 0;
	t.raddr = wqe->raddr + off;
	t.srqn = wqe->srqn;
	t.psn = psn_add(wqe->psn, pkt);
	if (wqe->opcode == SKUA_WQE_READ) {
		t.msg_len = pkt + npkts < wqe->npsn ? npkts * qp->pmtu : wqe->length - off;
	} else if (wqe_is_atomic(wqe)) {
		t.swap_add = wqe->swap_add;
		t.compare = wqe->compare;
		if (wqe->masked) {
			t.swap_add_mask = le64toh(wqe->masked->swap_add_mask);
			t.compare_mask = le64toh(wqe->masked->compare_mask);
		}
	} else if (wqe->opcode == SKUA_WQE_FLUSH) {
		t.flush = wqe->flush;
		t.msg_len = wqe->flush_length;
	} else if (!take_payload(qp, wqe, 0, wqe->length, &t)) {
		return wqe->status;
	}
	return transmit(qp, wqe, &t);
}

bool req_send_packets(struct skua_qp *qp, struct send_wqe *wqe, uint32_t pkt,
		      uint32_t npkts, bool ack_req)
{
	uint32_t offset = pkt * qp->pmtu, len = wqe->length - offset;
	struct train t = train_blank;

	if (len > npkts * qp->pmtu)
		len = npkts * qp->pmtu;
	if (!take_payload(qp, wqe, offset, len, &t))
		return wqe->status;
	t.op = train_ops[wqe->opcode];
	t.imm = wqe->imm;
	t.srqn = wqe->srqn;
	t.rkey = wqe->rkey;
	t.raddr = wqe->raddr;
	t.npkts = npkts;
	t.psn = psn_add(wqe->psn, pkt);
	t.first = pkt == 0;
	t.last = pkt + npkts == wqe->npsn;
	t.solicited = wqe_is_solicited(wqe);
	t.ack_req = t.last || ack_req;
	return transmit(qp, wqe, &t);
}
