// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Messages that come in: SENDs, and WRITEs.
 */
#include "roce/message.h"

bool message_fits(const struct skua_qp *qp, const struct message *msg, const struct train *t)
{
	return t->pmtu == qp->pmtu && train_is_full(t) &&
	       (t->first || message_is_send(t->op) == message_is_send(msg->op));
}

enum rq_result message_get_recv(struct skua_qp *qp, struct message *msg, uint8_t *vendor_err)
{
	enum rq_result r;

	if (msg->have_recv)
		return RQ_OK;
	r = qp_peek_recv(qp, &msg->recv, vendor_err);
	if (r == RQ_OK || r == RQ_BAD) {
		rq_take(&qp->rq);
		msg->have_recv = true;
	}
	return r;
}

struct message_result message_begin_write(struct skua_qp *qp, struct message *msg, const struct train *t)
{
	struct mem_access access = { qp->pd, qp->privileged, SKUA_ACCESS_REMOTE_WRITE };
	int err = SKUA_VENDOR_ERR_NONE;

	if (t->msg_len > LIMIT_MSG)
		return (struct message_result){ MESSAGE_INVALID, 0 };
	if (!(qp->access & SKUA_ACCESS_REMOTE_WRITE))
		err = SKUA_VENDOR_ERR_RIGHTS;
	else if (t->msg_len)
		err = mr_check(qp->dev, &access, t->rkey, t->raddr, t->msg_len);
	if (err)
		return (struct message_result){ MESSAGE_BAD_MEMORY, (uint8_t)err };
	msg->raddr = t->raddr;
	msg->rkey = t->rkey;
	msg->length = t->msg_len;
	return (struct message_result){ MESSAGE_OK, 0 };
}

static struct message_result place_send(struct skua_qp *qp, const struct message *msg, uint32_t bytes,
					struct seglist *dst)
{
	int err;

	if (msg->offset + (uint64_t)bytes > msg->recv.length)
		return (struct message_result){ MESSAGE_TOO_LONG, 0 };
	err = rq_payload(&qp->rq, &msg->recv, msg->offset, bytes, dst);
	return (struct message_result){ err ? MESSAGE_BAD_RECV : MESSAGE_OK, (uint8_t)err };
}

static struct message_result place_write(struct skua_qp *qp, const struct message *msg, bool last, uint32_t bytes,
					 struct seglist *dst)
{
	struct mem_access access = { qp->pd, qp->privileged, SKUA_ACCESS_REMOTE_WRITE };
	int err = SKUA_VENDOR_ERR_NONE;

	if (bytes > msg->length - msg->offset || (last && msg->offset + bytes != msg->length))
		return (struct message_result){ MESSAGE_INVALID, 0 };
	if (bytes)
		err = mr_segs(qp->dev, &access, msg->rkey, msg->raddr + msg->offset, bytes, dst);
	return (struct message_result){ err ? MESSAGE_BAD_MEMORY : MESSAGE_OK, (uint8_t)err };
}

struct message_result message_place(struct skua_qp *qp, struct message *msg, const struct train *t,
				    struct seglist *dst)
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

void message_end(struct skua_qp *qp, struct message *msg, const struct train *t, struct skua_cqe *cqe)
{
	bool send = message_is_send(t->op);

	*cqe = (struct skua_cqe){
		.opcode = send ? SKUA_CQE_RECV : SKUA_CQE_RECV_WRITE_IMM,
		.byte_len = htole32(msg->offset),
		.flags = t->solicited ? SKUA_CQE_SOLICITED : 0,
	};
	msg->under_way = false;
	if (send)
		STAT_INC(qp->dev, rdma_rx_send);
	else
		STAT_INC(qp->dev, rdma_rx_write);
	if (t->op == TRAIN_SEND_IMM || t->op == TRAIN_WRITE_IMM) {
		cqe->imm_data = t->imm;
		cqe->flags |= SKUA_CQE_WITH_IMM;
	} else if (t->op == TRAIN_SEND_INV) {
		cqe->inv_key = htole32(t->imm);
		cqe->flags |= SKUA_CQE_WITH_INV;
	}
}

void message_use_recv(struct message *msg, struct skua_cqe *cqe)
{
	cqe->cookie = htole32(msg->recv.cookie);
	msg->have_recv = false;
}
