// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Messages that come in to an RC or UC QP: SENDs and WRITEs.
 */
#include <stdlib.h>

#include "core/odp.h"
#include "core/srq.h"
#include "core/tags.h"
#include "roce/message.h"

/* Many QPs are connected and take no message: room for a receive is made with the first. */
bool message_make_room(struct skua_qp *qp, struct message *msg)
{
	if (!msg->recv)
		msg->recv = malloc(sizeof(*msg->recv));
	if (!msg->recv)
		qp_fatal(qp);
	return msg->recv;
}

enum rq_result message_peek_recv(struct skua_qp *qp, struct message *msg, uint8_t *vendor_err)
{
	return message_make_room(qp, msg) ? qp_peek_recv(qp, msg->recv, vendor_err) : RQ_FATAL;
}

enum rq_result message_get_recv(struct skua_qp *qp, struct message *msg, uint8_t *vendor_err)
{
	enum rq_result r;

	if (msg->have_recv)
		return RQ_OK;
	r = message_peek_recv(qp, msg, vendor_err);
	if (r == RQ_OK || r == RQ_BAD) {
		rq_take(&qp->rq);
		msg->have_recv = true;
	}
	return r;
}

static enum message_fault fault(struct message *msg, enum message_fault what, int vendor_err)
{
	msg->vendor_err = (uint8_t)vendor_err;
	return what;
}

enum message_fault message_begin_write(struct skua_qp *qp, struct message *msg, const struct train *t)
{
	struct mem_access access = { qp->pd, qp->privileged, SKUA_ACCESS_REMOTE_WRITE, qp };
	int err = SKUA_VENDOR_ERR_NONE;

	if (t->msg_len > LIMIT_MSG)
		return MESSAGE_INVALID;
	if (!(qp->access & SKUA_ACCESS_REMOTE_WRITE))
		err = SKUA_VENDOR_ERR_RIGHTS;
	else if (t->msg_len)
		err = mr_check(qp->dev, &access, t->rkey, t->raddr, t->msg_len);
	if (err)
		return fault(msg, MESSAGE_BAD_MEMORY, err);
	msg->raddr = t->raddr;
	msg->rkey = t->rkey;
	msg->length = t->msg_len;
	return MESSAGE_OK;
}

static enum message_fault place_send(struct skua_qp *qp, struct message *msg, uint32_t bytes, struct seglist *dst)
{
	int err;

	if (msg->offset + (uint64_t)bytes > msg->recv->length)
		return MESSAGE_TOO_LONG;
	if (msg->offset + bytes > LIMIT_MSG)
		return MESSAGE_INVALID;
	err = rq_payload(&qp->rq, msg->recv, msg->offset, bytes, dst);
	return err ? fault(msg, MESSAGE_BAD_RECV, err) : MESSAGE_OK;
}

static enum message_fault place_write(struct skua_qp *qp, struct message *msg, bool last, uint32_t bytes,
				      struct seglist *dst)
{
	struct mem_access access = { qp->pd, qp->privileged, SKUA_ACCESS_REMOTE_WRITE, qp };
	int err = SKUA_VENDOR_ERR_NONE;

	if (bytes > msg->length - msg->offset || (last && msg->offset + bytes != msg->length))
		return MESSAGE_INVALID;
	if (bytes)
		err = mr_segs(qp->dev, &access, msg->rkey, msg->raddr + msg->offset, bytes, dst);
	if (err == SKUA_VENDOR_ERR_NOT_PRESENT)
		odp_miss_up_to(qp->dev, msg->raddr + msg->length);
	return err ? fault(msg, MESSAGE_BAD_MEMORY, err) : MESSAGE_OK;
}

enum message_fault message_place(struct skua_qp *qp, struct message *msg, const struct train *t, struct seglist *dst)
{
	uint32_t bytes = t->payload ? t->payload->bytes : 0;

	if (t->first)
		msg->offset = 0;
	msg->op = t->op;
	msg->under_way = true;
	dst->n = 0;
	dst->bytes = 0;
	return message_is_send(t->op) ? place_send(qp, msg, bytes, dst) : place_write(qp, msg, t->last, bytes, dst);
}

/* An unexpected message ends, or begins anew. */
static void leave_list(struct message *msg)
{
	if (msg->list)
		msg->list->under_way--;
	msg->list = NULL;
}

void message_use_recv(struct message *msg, struct skua_cqe *cqe)
{
	leave_list(msg);
	cqe->cookie = htole32(msg->recv->cookie);
	msg->have_recv = false;
}

void message_give_back(struct skua_qp *qp, struct message *msg)
{
	if (msg->have_recv && qp->rq.srq && !msg->tag)
		srq_return(qp->rq.srq, msg->recv);
	leave_list(msg);
	msg->have_recv = false;
	msg->tag = NULL;
}

void message_reset(struct skua_qp *qp, struct message *msg)
{
	message_give_back(qp, msg);
	free(msg->recv);
	*msg = (struct message){ 0 };
}

void message_undo(struct skua_qp *qp, struct message *msg, const struct train *t)
{
	if (!t->first)
		return;
	msg->under_way = false;
	if (msg->have_recv && !qp->rq.srq)
		qp->rq.ci--;
	message_give_back(qp, msg);
}

static uint8_t send_opcode(const struct message *msg)
{
	switch (msg->kind) {
	case MESSAGE_NO_TAG:
		return SKUA_CQE_TAG_NONE;
	case MESSAGE_UNEXPECTED:
		return SKUA_CQE_TAG_UNEXPECTED;
	default:
		return SKUA_CQE_RECV;
	}
}

void message_complete(struct message *msg, const struct train *t, struct skua_cqe *cqe)
{
	*cqe = (struct skua_cqe){
		.opcode = message_is_send(t->op) ? send_opcode(msg) : SKUA_CQE_RECV_WRITE_IMM,
		.byte_len = htole32(msg->offset),
		.flags = t->solicited ? SKUA_CQE_SOLICITED : 0,
	};
	if (t->op == TRAIN_SEND_IMM || t->op == TRAIN_WRITE_IMM) {
		cqe->imm_data = t->imm;
		cqe->flags |= SKUA_CQE_WITH_IMM;
	} else if (t->op == TRAIN_SEND_INV) {
		cqe->inv_key = htole32(t->imm);
		cqe->flags |= SKUA_CQE_WITH_INV;
	}
	message_use_recv(msg, cqe);
}
