/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The message that comes in, of an RC or UC QP: where its packets are placed, and the receive that it takes. The
 * service decides what a fault means for the QP and its peer.
 */
#ifndef SKUAD_ROCE_MESSAGE_H
#define SKUAD_ROCE_MESSAGE_H

#include "core/qp.h"

/* Of a SEND to an SRQ with tags, what its header says; those behind UNEXPECTED may match a tag. */
enum message_kind {
	MESSAGE_PLAIN,			/* another message */
	MESSAGE_NO_TAG,
	MESSAGE_UNEXPECTED,
	MESSAGE_EAGER,
	MESSAGE_RNDV,
	MESSAGE_RNDV_INCOMPLETE,	/* its payload does not fit in the buffer of the tag */
};

struct message {
	bool under_way;
	enum message_kind kind;
	struct tag *tag;		/* that has matched, whose buffer is its receive; or NULL */
	struct tag_list *list;		/* where it is unexpected, and under way; or NULL */
	enum train_op op;
	uint32_t offset;		/* bytes received */
	uint64_t raddr;			/* WRITE: where the message is placed */
	uint32_t rkey, length;
	bool have_recv;			/* taken from the RQ: */
	uint8_t vendor_err;		/* of a fault: enum skua_vendor_err */
	struct recv_wqe *recv;		/* of a SEND or WRITE with immediate; NULL: there was none since RESET */
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

/*
 * May packets of @t belong to a message of @qp, and to the one under way if they do not begin one? A single packet does
 * not show what the sender takes for the path MTU.
 */
static inline bool message_fits(const struct skua_qp *qp, const struct message *msg, const struct train *t)
{
	return (t->npkts == 1 || t->pmtu == qp->pmtu) && train_is_full(t, qp->pmtu) &&
	       (t->first || message_is_send(t->op) == message_is_send(msg->op));
}

/* Is there room for a receive? If not, the QP is in error. */
bool message_make_room(struct skua_qp *qp, struct message *msg);
/* Look at the next receive of the QP, which need not become the message's. */
enum rq_result message_peek_recv(struct skua_qp *qp, struct message *msg, uint8_t *vendor_err);
/* Take a receive for the message, unless it has one. As qp_peek_recv(), but the receive leaves the RQ. */
enum rq_result message_get_recv(struct skua_qp *qp, struct message *msg, uint8_t *vendor_err);
/* @t begins a WRITE. */
enum message_fault message_begin_write(struct skua_qp *qp, struct message *msg, const struct train *t);
/* Find where the payload of @t is placed, in @dst. The message is under way then. */
enum message_fault message_place(struct skua_qp *qp, struct message *msg, const struct train *t, struct seglist *dst);
/* The message has come whole, with @t: fill in the completion of its receive. The message has no receive any more. */
void message_complete(struct message *msg, const struct train *t, struct skua_cqe *cqe);
/* The same for a message that has failed: only the receive is filled in. */
void message_use_recv(struct message *msg, struct skua_cqe *cqe);

/*
 * @t is as if it had not come: it found a page that is not present. If it begins a message, the receive that it has taken
 * is the next one of the queue again.
 */
void message_undo(struct skua_qp *qp, struct message *msg, const struct train *t);

/* There is no message, and no memory of one. A receive that it has taken goes as with the next. */
void message_reset(struct skua_qp *qp, struct message *msg);
/* The message goes without a completion. The receive that it has taken returns to the SRQ, if it is from one. */
void message_give_back(struct skua_qp *qp, struct message *msg);

/* The message has come whole, with @t. */
static inline void message_end(struct skua_qp *qp, struct message *msg, const struct train *t)
{
	msg->under_way = false;
	if (message_is_send(t->op))
		QP_STAT_INC(qp, rdma_rx_send);
	else
		QP_STAT_INC(qp, rdma_rx_write);
}

#endif /* SKUAD_ROCE_MESSAGE_H */
