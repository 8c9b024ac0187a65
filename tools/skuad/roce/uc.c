// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * UC: messages of a connection without acknowledgements (manual: unreliable services).
 *
 * Theory of operation. Messages go out as trains, as those of RC do, and are never sent again. The
 * responder follows one message at a time. Whatever is wrong with it ends it: what comes of it later
 * is dropped, until a packet begins another one. A receive that was taken for a message that
 * never ended is the next one's.
 */
#include "base/copy.h"
#include "roce/conn.h"
#include "roce/roce.h"

struct uc_qp {
	struct roce_conn conn;
	bool dropping;			/* what is left of a message that ended badly */
};

static struct uc_qp *uc_of(struct skua_qp *qp)
{
	return (struct uc_qp *)qp;
}

static enum train_op op_of(const struct send_wqe *wqe)
{
	switch (wqe->opcode) {
	case SKUA_WQE_SEND:
		return TRAIN_SEND;
	case SKUA_WQE_SEND_IMM:
		return TRAIN_SEND_IMM;
	case SKUA_WQE_WRITE:
		return TRAIN_WRITE;
	default:
		return TRAIN_WRITE_IMM;
	}
}

static bool is_send(enum train_op op)
{
	return op <= TRAIN_SEND_IMM;
}

static void sent(struct skua_qp *qp, const struct train *t)
{
	struct sq *sq = &qp->sq;

	sq->psn = psn_add(sq->psn, t->npkts);
	sq->nxt_pkt += t->npkts;
	if (!t->last)
		return;
	sq->nxt++;
	sq->nxt_pkt = 0;
	if (is_send(t->op))
		STAT_INC(qp->dev, rdma_tx_send);
	else
		STAT_INC(qp->dev, rdma_tx_write);
}

static bool uc_send(struct skua_qp *qp, struct send_wqe *wqe, int32_t *budget)
{
	struct sq *sq = &qp->sq;
	struct seglist *src = &qp->dev->engine->src;
	uint32_t offset = sq->nxt_pkt * qp->pmtu, len = wqe->length - offset;
	uint32_t most = qp_burst(qp) & -qp->pmtu;
	struct train t = {
		.op = op_of(wqe), .transport = TRANSPORT_UC, .first = !sq->nxt_pkt,
		.last = len <= most, .solicited = wqe->flags & SKUA_WQE_SOLICITED, .psn = sq->psn,
		.imm = wqe->imm, .rkey = wqe->rkey, .raddr = wqe->raddr, .msg_len = wqe->length,
		.payload = src,
	};
	int err;

	if (qp_must_wait(qp))
		return false;
	if (!t.last)
		len = most;
	t.npkts = qp_packets(qp, len);
	src->n = 0;
	src->bytes = 0;
	err = sq_payload(qp, wqe, offset, len, 0, src);
	if (err) {
		wqe->status = SKUA_CQE_LOC_PROT_ERR;
		wqe->vendor_err = (uint8_t)err;
		return true;
	}
	if (roce_send(qp, &t, &wqe->mark) == PORT_BUSY) {
		sq->busy = true;
		return false;
	}
	*budget -= (int32_t)len;
	sent(qp, &t);
	return true;
}

/* The message under way has ended badly. */
static void drop(struct skua_qp *qp)
{
	conn_of(qp)->message.under_way = false;
	uc_of(qp)->dropping = true;
}

static void incomplete(struct skua_qp *qp)
{
	STAT_INC(qp->dev, rdma_rx_incomplete);
	drop(qp);
}

static void no_receive(struct skua_qp *qp)
{
	STAT_INC(qp->dev, rdma_rx_no_receive);
	drop(qp);
}

static void complete_recv(struct skua_qp *qp, struct skua_cqe *cqe)
{
	cqe->cookie = htole32(conn_of(qp)->message.recv.cookie);
	conn_of(qp)->message.have_recv = false;
	qp_complete_recv(qp, cqe);
}

/* The host's own fault, of which the peer learns nothing. */
static void fail_recv(struct skua_qp *qp, uint8_t status, uint8_t vendor_err)
{
	struct skua_cqe cqe = {
		.opcode = SKUA_CQE_RECV, .status = status, .vendor_err = vendor_err,
	};

	drop(qp);
	complete_recv(qp, &cqe);
	qp_to_err(qp);
}

/* A receive for the message: the one that the last did not use up, or the next. */
static bool get_recv(struct skua_qp *qp)
{
	struct roce_message *msg = &conn_of(qp)->message;
	enum rq_result r = RQ_OK;
	uint8_t err;

	if (msg->have_recv)
		return true;
	r = qp_peek_recv(qp, &msg->recv, &err);
	if (r == RQ_OK || r == RQ_BAD) {
		rq_take(&qp->rq);
		msg->have_recv = true;
	}
	if (r == RQ_BAD)
		fail_recv(qp, SKUA_CQE_LOC_QP_OP_ERR, err);
	else if (r != RQ_OK)
		no_receive(qp);
	return r == RQ_OK;
}

static bool begin_write(struct skua_qp *qp, const struct train *t)
{
	struct mem_access access = { qp->pd, qp->privileged, SKUA_ACCESS_REMOTE_WRITE };
	struct roce_message *msg = &conn_of(qp)->message;

	if (t->msg_len > LIMIT_MSG || !(qp->access & SKUA_ACCESS_REMOTE_WRITE) ||
	    (t->msg_len && mr_check(qp->dev, &access, t->rkey, t->raddr, t->msg_len))) {
		incomplete(qp);
		return false;
	}
	msg->raddr = t->raddr;
	msg->rkey = t->rkey;
	msg->length = t->msg_len;
	return true;
}

/* Where the payload goes, in @dst. False: the message has ended. */
static bool place_send(struct skua_qp *qp, uint32_t bytes, struct seglist *dst)
{
	struct roce_message *msg = &conn_of(qp)->message;
	int err;

	if (msg->offset + (uint64_t)bytes > msg->recv.length) {
		no_receive(qp);
		return false;
	}
	err = rq_payload(&qp->rq, &msg->recv, msg->offset, bytes, dst);
	if (err)
		fail_recv(qp, SKUA_CQE_LOC_PROT_ERR, (uint8_t)err);
	return !err;
}

static bool place_write(struct skua_qp *qp, const struct train *t, uint32_t bytes,
			struct seglist *dst)
{
	struct mem_access access = { qp->pd, qp->privileged, SKUA_ACCESS_REMOTE_WRITE };
	struct roce_message *msg = &conn_of(qp)->message;

	if (bytes > msg->length - msg->offset ||
	    (t->last && msg->offset + bytes != msg->length) ||
	    (bytes && mr_segs(qp->dev, &access, msg->rkey, msg->raddr + msg->offset, bytes,
			      dst))) {
		incomplete(qp);
		return false;
	}
	/* The immediate needs a receive. */
	return t->op != TRAIN_WRITE_IMM || !t->last || get_recv(qp);
}

static void finish(struct skua_qp *qp, const struct train *t)
{
	struct roce_message *msg = &conn_of(qp)->message;
	bool write = !is_send(t->op), imm = t->op == TRAIN_SEND_IMM || t->op == TRAIN_WRITE_IMM;
	struct skua_cqe cqe = {
		.opcode = write ? SKUA_CQE_RECV_WRITE_IMM : SKUA_CQE_RECV,
		.byte_len = htole32(msg->offset),
		.imm_data = imm ? t->imm : 0,
		.flags = (t->solicited ? SKUA_CQE_SOLICITED : 0) | (imm ? SKUA_CQE_WITH_IMM : 0),
	};

	msg->under_way = false;
	if (write)
		STAT_INC(qp->dev, rdma_rx_write);
	else
		STAT_INC(qp->dev, rdma_rx_send);
	if (t->op != TRAIN_WRITE)
		complete_recv(qp, &cqe);
}

/* Packets that begin a message, or go on with the one under way. */
static void take(struct skua_qp *qp, const struct train *t)
{
	struct roce_message *msg = &conn_of(qp)->message;
	struct seglist *dst = &qp->dev->engine->dst;
	uint32_t bytes = t->payload ? t->payload->bytes : 0;

	if (t->pmtu != qp->pmtu || !train_is_full(t) ||
	    (!t->first && is_send(t->op) != is_send(msg->op))) {
		incomplete(qp);
		return;
	}
	if (t->first && !(is_send(t->op) ? get_recv(qp) : begin_write(qp, t)))
		return;
	if (t->first)
		msg->offset = 0;
	msg->op = t->op;
	msg->under_way = true;
	dst->n = 0;
	dst->bytes = 0;
	if (!(is_send(t->op) ? place_send(qp, bytes, dst) : place_write(qp, t, bytes, dst)))
		return;
	if (bytes)
		copy_segs(dst, t->payload);
	msg->offset += bytes;
	if (t->last)
		finish(qp, t);
	qp_established(qp);
}

static void uc_rx(struct skua_qp *qp, const struct train *t)
{
	struct roce_message *msg = &conn_of(qp)->message;

	/* Something was lost, or the peer has given its message up. */
	if (msg->under_way && (t->psn != qp->epsn || t->first))
		incomplete(qp);
	qp->epsn = psn_add(t->psn, t->npkts);
	if (t->first)
		uc_of(qp)->dropping = false;
	else if (!msg->under_way && !uc_of(qp)->dropping)
		incomplete(qp);
	if (!uc_of(qp)->dropping)
		take(qp, t);
	if (t->last)
		uc_of(qp)->dropping = false;
}

static bool uc_run(struct skua_qp *qp, int32_t *budget)
{
	bool any = unacked_run(qp, budget);

	return dcqcn_notify(qp) || any;
}

static bool uc_is_pending(const struct skua_qp *qp)
{
	return dcqcn_is_due(qp) || unacked_is_pending(qp);
}

static bool uc_flush(struct skua_qp *qp)
{
	unacked_flush(qp);
	if (conn_of(qp)->message.have_recv)
		fail_recv(qp, SKUA_CQE_WR_FLUSH_ERR, SKUA_VENDOR_ERR_NONE);
	return true;
}

static void uc_reset(struct skua_qp *qp)
{
	conn_of(qp)->message = (struct roce_message){ 0 };
	uc_of(qp)->dropping = false;
}

static void uc_progress(const struct skua_qp *qp, struct transport_progress *p)
{
	p->rate = dcqcn_rate(qp);
}

const struct transport_ops uc_ops = {
	.feature = SKUA_F_UC,
	.roce = true,
	.service = TRANSPORT_UC,
	.qp_size = sizeof(struct uc_qp),
	.reset = uc_reset,
	.run = uc_run,
	.is_pending = uc_is_pending,
	.send = uc_send,
	.rx = uc_rx,
	.flush = uc_flush,
	.stop = dcqcn_reset,
	.progress = uc_progress,
};
