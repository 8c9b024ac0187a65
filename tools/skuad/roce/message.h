/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The message that comes in, of QPs with one peer: where its packets go, and the receive that it takes. What a fault
 * means for the QP and its peer, the service knows.
 */
#ifndef SKUAD_ROCE_MESSAGE_H
#define SKUAD_ROCE_MESSAGE_H

#include "core/qp.h"

struct message {
	bool under_way;
	enum train_op op;
	uint32_t offset;		/* bytes received */
	uint64_t raddr;			/* WRITE: where it goes */
	uint32_t rkey, length;
	bool have_recv;			/* taken from the RQ: */
	uint8_t vendor_err;		/* of a fault: enum skua_vendor_err */
	struct recv_wqe recv;		/* of a SEND, or of a WRITE with immediate */
};

enum message_fault {
	MESSAGE_OK,
	MESSAGE_INVALID,		/* its lengths do not fit */
	MESSAGE_TOO_LONG,		/* for its receive */
	MESSAGE_BAD_RECV,		/* the memory of its receive may not be written */
	MESSAGE_BAD_MEMORY,		/* the memory that the peer named may not be */
};

static inline bool message_is_send(enum train_op op)
{
	return op <= TRAIN_SEND_INV;
}

/* May packets of @t belong to a message of @qp, and to the one under way if they do not begin one? */
static inline bool message_fits(const struct skua_qp *qp, const struct message *msg, const struct train *t)
{
	return t->pmtu == qp->pmtu && train_is_full(t) &&
	       (t->first || message_is_send(t->op) == message_is_send(msg->op));
}

/* A receive for it: the one that it has, or the next. As qp_peek_recv(), but it is taken. */
enum rq_result message_get_recv(struct skua_qp *qp, struct message *msg, uint8_t *vendor_err);
/* @t begins a WRITE. */
enum message_fault message_begin_write(struct skua_qp *qp, struct message *msg, const struct train *t);
/* Where the payload of @t goes, in @dst; it is under way then. */
enum message_fault message_place(struct skua_qp *qp, struct message *msg, const struct train *t, struct seglist *dst);
/* The completion of its receive, which it does not have any more; it has come whole, with @t. */
void message_complete(struct message *msg, const struct train *t, struct skua_cqe *cqe);
/* The same if it has failed. */
void message_use_recv(struct message *msg, struct skua_cqe *cqe);

/* It has come whole, with @t. */
static inline void message_end(struct skua_qp *qp, struct message *msg, const struct train *t)
{
	msg->under_way = false;
	if (message_is_send(t->op))
		STAT_INC(qp->dev, rdma_rx_send);
	else
		STAT_INC(qp->dev, rdma_rx_write);
}

#endif /* SKUAD_ROCE_MESSAGE_H */
