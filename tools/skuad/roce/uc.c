// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * UC: messages of a connection without acknowledgements (manual: unreliable services).
 *
 * Theory of operation. Messages are sent as trains, as those of RC are, and never retransmitted. The responder follows
 * one message at a time. Any fault ends the message: its later packets are dropped, until a packet begins another
 * message. A receive that was taken for a message which never ended is used for the next one.
 */
#include "base/copy.h"
#include "core/fault.h"
#include "roce/cnp.h"
#include "roce/dcqcn.h"
#include "roce/roce.h"
#include "roce/send.h"

struct uc_qp {
	struct roce_conn conn;
	bool dropping;			/* the rest of a message that ended badly is dropped */
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

static void sent(struct skua_qp *qp, const struct train *t)
{
	struct sq *sq = &qp->sq;

	sq->psn = psn_add(sq->psn, t->npkts);
	sq->nxt_pkt += t->npkts;
	if (!t->last)
		return;
	sq->nxt++;
	sq->nxt_pkt = 0;
	if (message_is_send(t->op))
		QP_STAT_INC(qp, rdma_tx_send);
	else
		QP_STAT_INC(qp, rdma_tx_write);
}

static bool uc_send(struct skua_qp *qp, struct send_wqe *wqe, int32_t *budget)
{
	struct sq *sq = &qp->sq;
	struct seglist *src = &qp->dev->engine->src;
	uint32_t offset = sq->nxt_pkt * qp->pmtu, len = wqe->length - offset;
	uint32_t left = qp_packets(qp, len), npkts = qp_train(qp, left);
	struct train t = {
		.op = op_of(wqe), .transport = TRANSPORT_UC, .first = !sq->nxt_pkt,
		.last = npkts == left, .npkts = npkts, .solicited = wqe_is_solicited(wqe), .psn = sq->psn,
		.imm = wqe->imm, .rkey = wqe->rkey, .raddr = wqe->raddr, .msg_len = wqe->length,
		.payload = src,
	};
	int err;

	if (len && qp_must_wait(qp))
		return false;
	if (!t.last)
		len = npkts * qp->pmtu;
	src->n = 0;
	src->bytes = 0;
	err = sq_payload(qp, wqe, offset, len, 0, src);
	if (err == SKUA_VENDOR_ERR_NOT_PRESENT && fault_wait(qp, SKUA_PAGE_FAULT_REQUESTER))
		return false;
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
	QP_STAT_INC(qp, rdma_rx_incomplete);
	drop(qp);
}

static void no_receive(struct skua_qp *qp)
{
	QP_STAT_INC(qp, rdma_rx_no_receive);
	drop(qp);
}

/* A fault of the host, which is not reported to the peer. */
static void fail_recv(struct skua_qp *qp, uint8_t status, uint8_t vendor_err)
{
	struct skua_cqe cqe = {
		.opcode = SKUA_CQE_RECV, .status = status, .vendor_err = vendor_err,
	};

	drop(qp);
	message_use_recv(&conn_of(qp)->message, &cqe);
	qp_complete_recv(qp, &cqe);
	qp_to_err(qp);
}

/* A receive for the message: the one that the last did not use up, or the next. */
static bool get_recv(struct skua_qp *qp)
{
	uint8_t err;
	enum rq_result r = message_get_recv(qp, &conn_of(qp)->message, &err);

	if (r == RQ_BAD)
		fail_recv(qp, SKUA_CQE_LOC_QP_OP_ERR, err);
	else if (r != RQ_OK)
		no_receive(qp);
	return r == RQ_OK;
}

/* False: the message has a fault, and has ended. */
static bool accept(struct skua_qp *qp, enum message_fault fault)
{
	/* The message is lost, but the next one may find the page. */
	if ((fault == MESSAGE_BAD_RECV || fault == MESSAGE_BAD_MEMORY) &&
	    conn_of(qp)->message.vendor_err == SKUA_VENDOR_ERR_NOT_PRESENT &&
	    fault_wait(qp, SKUA_PAGE_FAULT_RESPONDER))
		no_receive(qp);
	else if (fault == MESSAGE_TOO_LONG)
		no_receive(qp);
	else if (fault == MESSAGE_BAD_RECV)
		fail_recv(qp, SKUA_CQE_LOC_PROT_ERR, conn_of(qp)->message.vendor_err);
	else if (fault)
		incomplete(qp);
	else
		fault_over(qp, SKUA_PAGE_FAULT_RESPONDER);
	return !fault;
}

static bool begin(struct skua_qp *qp, const struct train *t)
{
	if (message_is_send(t->op))
		return get_recv(qp);
	return accept(qp, message_begin_write(qp, &conn_of(qp)->message, t));
}

static void finish(struct skua_qp *qp, const struct train *t)
{
	struct message *msg = &conn_of(qp)->message;
	struct skua_cqe cqe;

	message_end(qp, msg, t);
	/* A WRITE leaves the receive of a message that never ended. */
	if (t->op == TRAIN_WRITE)
		return;
	message_complete(msg, t, &cqe);
	qp_complete_recv(qp, &cqe);
}

/* Packets that begin a message, or continue the one under way. */
static void take(struct skua_qp *qp, const struct train *t)
{
	struct message *msg = &conn_of(qp)->message;
	struct seglist *dst = &qp->dev->engine->dst;
	uint32_t bytes = t->payload ? t->payload->bytes : 0;

	if (!message_fits(qp, msg, t)) {
		incomplete(qp);
		return;
	}
	if ((t->first && !begin(qp, t)) || !accept(qp, message_place(qp, msg, t, dst)))
		return;
	/* The immediate needs a receive. */
	if (t->op == TRAIN_WRITE_IMM && t->last && !get_recv(qp))
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
	struct message *msg = &conn_of(qp)->message;

	/* Packets were lost, or the peer has given up its message. */
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

	return (cnp_is_due(qp) && cnp_send(qp)) || any;
}

static bool uc_is_pending(const struct skua_qp *qp)
{
	return cnp_is_due(qp) || unacked_is_pending(qp);
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
	message_reset(qp, &conn_of(qp)->message);
	uc_of(qp)->dropping = false;
}

const struct transport_ops uc_ops = {
	.features = 1ull << SKUA_F_UC,
	.roce = true,
	.srq = true,
	.service = TRANSPORT_UC,
	.qp_size = sizeof(struct uc_qp),
	.reset = uc_reset,
	.run = uc_run,
	.is_pending = uc_is_pending,
	.send = uc_send,
	.rx = uc_rx,
	.flush = uc_flush,
	.stop = dcqcn_reset,
};
