// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * SENDs and WRITEs at the responder: a receive is taken, memory is checked, and the payload is placed.
 */
#include "base/copy.h"
#include "core/fault.h"
#include "core/tags.h"
#include "roce/resp_ack.h"
#include "roce/resp_payload.h"
#include "roce/resp_recv.h"
#include "roce/resp_tag.h"

/* Take a receive for a message that begins, or for a WRITE with immediate that ends. */
static bool get_recv(struct skua_qp *qp)
{
	struct roce_resp *resp = &rc_of(qp)->resp;
	uint8_t err;

	switch (message_get_recv(qp, &conn_of(qp)->message, &err)) {
	case RQ_OK:
		return true;
	case RQ_EMPTY:
		if (!resp->nak_sent)
			resp_not_ready(qp);
		return false;
	case RQ_BAD:
		resp_fail_recv(qp, SKUA_CQE_LOC_QP_OP_ERR, err);
		resp_refuse(qp, AETH_NAK_OP, 0);
		return false;
	default:
		resp_refuse(qp, AETH_NAK_OP, SKUA_EVENT_QP_FATAL);
		return false;
	}
}

/*
 * A WRITE may not write to the memory that it names. If the packet has the immediate, its receive completes with the
 * error; any other packet takes no receive.
 */
static void bad_write(struct skua_qp *qp, const struct train *t, int err)
{
	struct message *msg = &conn_of(qp)->message;
	bool imm = t->op == TRAIN_WRITE_IMM && t->last && !(t->first && t->npkts > 1);
	uint8_t bad;

	if (imm && !msg->have_recv && message_peek_recv(qp, msg, &bad) == RQ_OK) {
		rq_take(&qp->rq);
		msg->have_recv = true;
	}
	if (!imm || !msg->have_recv || err == SKUA_VENDOR_ERR_UNREACHABLE) {
		resp_refuse_memory(qp, err);
		return;
	}
	resp_fail_recv(qp, SKUA_CQE_LOC_ACCESS_ERR, (uint8_t)err);
	resp_refuse(qp, AETH_NAK_ACCESS, 0);
}

/* Refuse a message with a fault. */
static void refuse_message(struct skua_qp *qp, const struct train *t, enum message_fault fault)
{
	uint8_t err = conn_of(qp)->message.vendor_err;

	if ((fault == MESSAGE_BAD_RECV || fault == MESSAGE_BAD_MEMORY) && err == SKUA_VENDOR_ERR_NOT_PRESENT &&
	    fault_wait(qp, SKUA_PAGE_FAULT_RESPONDER)) {
		message_undo(qp, &conn_of(qp)->message, t);
		resp_not_ready(qp);
		return;
	}
	switch (fault) {
	case MESSAGE_TOO_LONG:
		resp_fail_recv(qp, SKUA_CQE_LOC_LEN_ERR, SKUA_VENDOR_ERR_MSG_TOO_LONG);
		resp_refuse(qp, AETH_NAK_INV_REQ, 0);
		break;
	case MESSAGE_BAD_RECV:
		resp_fail_recv(qp, SKUA_CQE_LOC_PROT_ERR, err);
		resp_refuse(qp, AETH_NAK_OP, 0);
		break;
	case MESSAGE_BAD_MEMORY:
		bad_write(qp, t, err);
		break;
	default:
		resp_refuse_invalid(qp);
	}
}

static bool begin(struct skua_qp *qp, const struct train *t)
{
	enum message_fault fault;

	if (message_is_send(t->op))
		return (tags_of(qp) && resp_tag_begin(qp, &conn_of(qp)->message, t)) || get_recv(qp);
	fault = message_begin_write(qp, &conn_of(qp)->message, t);
	if (fault)
		refuse_message(qp, t, fault);
	return !fault;
}

/*
 * False: the key may not be invalidated. Then the receive of the SEND completes with an error. The peer's WQE completes
 * with success (IBTA's responder class J), but the QP goes to ERR.
 */
static bool invalidate(struct skua_qp *qp, const struct train *t)
{
	int err = mr_invalidate(qp, t->imm, true);

	if (!err)
		return true;
	if (rc_of(qp)->resp.request_was_held)
		return false;
	resp_fail_recv(qp, SKUA_CQE_REM_INV_REQ_ERR, (uint8_t)err);
	qp->epsn = psn_add(qp->epsn, t->npkts);
	rc_of(qp)->resp.msn = psn_add(rc_of(qp)->resp.msn, 1);
	resp_owe_ack(qp);
	qp_to_err(qp);
	return false;
}

/* A message has come whole. */
static void finish(struct skua_qp *qp, const struct train *t)
{
	struct roce_resp *resp = &rc_of(qp)->resp;
	struct message *msg = &conn_of(qp)->message;
	struct skua_cqe cqe;

	message_end(qp, msg, t);
	resp->msn = psn_add(resp->msn, 1);
	if (!msg->have_recv)
		return;
	if (msg->tag) {
		resp_tag_end(qp, msg, t);
		return;
	}
	if (message_is_send(t->op) && msg->kind == MESSAGE_UNEXPECTED)
		tags_of(qp)->unexpected++;
	message_complete(msg, t, &cqe);
	if (t->op != TRAIN_SEND_INV || !resp_hold_invalidation(qp, &cqe))
		resp_complete_recv(qp, &cqe);
}

void resp_rx_payload(struct skua_qp *qp, const struct train *t)
{
	struct roce_resp *resp = &rc_of(qp)->resp;
	struct message *msg = &conn_of(qp)->message;
	struct seglist *dst = &qp->dev->engine->dst;
	enum message_fault fault;
	struct seglist rest;
	struct train part;
	uint32_t bytes;

	if (!message_fits(qp, msg, t) || t->first == msg->under_way ||
	    (t->op == TRAIN_SEND_INV && t->last && (!dev_has(qp->dev, SKUA_F_INVALIDATE) || tags_of(qp)))) {
		resp_refuse_invalid(qp);
		return;
	}
	if (t->first && !begin(qp, t))
		return;
	/* The immediate needs a receive. Without one, nothing of this train is placed. */
	if (t->op == TRAIN_WRITE_IMM && t->last && !get_recv(qp))
		return;
	if (msg->tag)
		t = resp_tag_part(msg, t, &part, &rest);
	fault = message_place(qp, msg, t, dst);
	if (fault) {
		refuse_message(qp, t, fault);
		return;
	}
	bytes = t->payload ? t->payload->bytes : 0;
	if (bytes)
		copy_segs(dst, t->payload);
	if (t->op == TRAIN_SEND_INV && t->last && !invalidate(qp, t))
		return;
	resp->nak_sent = false;
	msg->offset += bytes;
	qp->epsn = psn_add(qp->epsn, t->npkts);
	if (t->first && tags_of(qp) && message_is_send(t->op))
		resp_tag_take(qp, msg, t);
	if (t->last)
		finish(qp, t);
	if (t->ack_req)
		resp_owe_ack(qp);
}
