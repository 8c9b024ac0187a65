// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completions of the responder's receives, in the order of their messages.
 *
 * A CQE is held back while trains may still refer to the region that its message invalidated. The CQEs behind it wait,
 * too.
 */
#include <stdlib.h>

#include "core/srq.h"
#include "roce/resp_recv.h"
#include "roce/resp_tag.h"
#include "roce/roce.h"

/* The first one. */
static void drop_held_cqe(struct skua_qp *qp)
{
	struct held_recv *held = STAILQ_FIRST(&rc_of(qp)->resp.held_cqes);

	STAILQ_REMOVE_HEAD(&rc_of(qp)->resp.held_cqes, entry);
	qp->dev->roce->held_bytes -= sizeof(*held);
	free(held);
}

/*
 * A QP never holds more CQEs than its RQ has entries, because the host posts no entry again before its CQE. Packets
 * that QPs hold may take only half of the limit here, because a CQE cannot be dropped.
 */
static void hold_cqe(struct skua_qp *qp, const struct skua_cqe *cqe, uint64_t ticket)
{
	struct held_recv *held = qp->dev->roce->held_bytes < 2 * HELD_MAX ? malloc(sizeof(*held)) : NULL;

	if (!held) {
		/* The receive gives no CQE, so it returns to its SRQ (SRQ-5), or is the next of the RQ again (CQE-2). */
		if (qp->rq.srq)
			srq_return(qp->rq.srq, conn_of(qp)->message.recv);
		else
			qp->rq.ci--;
		qp_fatal(qp);
		return;
	}
	qp->dev->roce->held_bytes += sizeof(*held);
	held->cqe = *cqe;
	qp_fill_recv(qp, &held->cqe);
	held->cq = qp->rcq;
	held->srq = qp->rq.srq;
	if (held->srq)
		held->recv = *conn_of(qp)->message.recv;
	held->ticket = ticket;
	STAILQ_INSERT_TAIL(&rc_of(qp)->resp.held_cqes, held, entry);
	qp_activate(qp);
}

bool resp_release_held_cqes(struct skua_qp *qp, int32_t *budget)
{
	struct held_recv *held;
	bool any = false;

	while (*budget > 0 && (held = STAILQ_FIRST(&rc_of(qp)->resp.held_cqes)) &&
	       port_drained(qp->dev->port, held->ticket)) {
		*budget -= MESSAGE_COST;
		if (!cq_post(qp->dev, held->cq, &held->cqe))
			qp_fatal(qp);
		drop_held_cqe(qp);
		any = true;
	}
	return any;
}

void resp_complete_recv(struct skua_qp *qp, struct skua_cqe *cqe)
{
	if (resp_holds_cqes(qp))
		hold_cqe(qp, cqe, 0);
	else
		qp_complete_recv(qp, cqe);
}

bool resp_hold_invalidation(struct skua_qp *qp, struct skua_cqe *cqe)
{
	uint64_t ticket = port_ticket(qp->dev->port);

	if (port_drained(qp->dev->port, ticket))
		return false;
	hold_cqe(qp, cqe, ticket);
	return true;
}

void resp_fail_recv(struct skua_qp *qp, uint8_t status, uint8_t vendor_err)
{
	struct skua_cqe cqe = {
		.opcode = SKUA_CQE_RECV, .status = status, .vendor_err = vendor_err,
	};
	struct message *msg = &conn_of(qp)->message;

	if (!msg->have_recv || rc_of(qp)->resp.request_was_held)
		return;
	if (msg->tag) {
		resp_tag_fail(qp, msg, status, vendor_err);
		return;
	}
	message_use_recv(msg, &cqe);
	resp_complete_recv(qp, &cqe);
}

void resp_drop_cqes(struct skua_qp *qp)
{
	struct held_recv *held;

	while ((held = STAILQ_FIRST(&rc_of(qp)->resp.held_cqes))) {
		if (held->srq)
			srq_return(held->srq, &held->recv);
		drop_held_cqe(qp);
	}
}

void resp_forget_srq(struct skua_qp *qp, const struct srq *srq)
{
	struct roce_resp *resp = &rc_of(qp)->resp;
	STAILQ_HEAD(, held_recv) kept = STAILQ_HEAD_INITIALIZER(kept);
	struct held_recv *held;

	while ((held = STAILQ_FIRST(&resp->held_cqes))) {
		if (held->srq == srq) {
			drop_held_cqe(qp);
			continue;
		}
		STAILQ_REMOVE_HEAD(&resp->held_cqes, entry);
		STAILQ_INSERT_TAIL(&kept, held, entry);
	}
	STAILQ_CONCAT(&resp->held_cqes, &kept);
	if (qp->rq.srq == srq)
		conn_of(qp)->message.have_recv = false;
}
