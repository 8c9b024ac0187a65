// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The responder of RC.
 *
 * Theory of operation. Packets are executed in the order of their PSNs. What comes early waits or is refused
 * (resp_early.c). What comes again is acknowledged again; a READ or an atomic is answered again (resp_replay.c). What
 * is expected goes to the file of its class: SEND and WRITE (resp_payload.c), READ (resp_read.c), atomics
 * and ATOMIC WRITEs (resp_atomic.c), FLUSH (resp_flush.c).
 *
 * What the responder owes is noted, and sent when the QP has its turn: responses of READs and atomics first, in order,
 * then one ACK or NAK for all that has come.
 *
 * A fault is reported to the peer, completes the receive that it touched, and puts the QP in ERR.
 */
#include <stdlib.h>

#include "base/copy.h"
#include "core/fault.h"
#include "roce/dcqcn.h"
#include "roce/resp.h"
#include "roce/resp_ack.h"
#include "roce/resp_atomic.h"
#include "roce/resp_early.h"
#include "roce/resp_flush.h"
#include "roce/resp_jobs.h"
#include "roce/resp_payload.h"
#include "roce/resp_read.h"
#include "roce/resp_recv.h"
#include "roce/resp_replay.h"

void resp_reset(struct skua_qp *qp)
{
	struct roce_resp *resp = &rc_of(qp)->resp;

	resp_job_forget(qp);
	resp_jobs_free(qp);
	reorder_free(qp->dev, &resp->early_requests);
	message_reset(qp, &conn_of(qp)->message);
	resp_drop_cqes(qp);
	*resp = (struct roce_resp){ .held_cqes = STAILQ_HEAD_INITIALIZER(resp->held_cqes) };
}

/* @t begins before the expected PSN: the peer did not get our answer. */
static void rx_duplicate(struct skua_qp *qp, const struct train *t)
{
	uint32_t behind = (uint32_t)psn_diff(qp->epsn, t->psn);
	struct seglist rest;
	struct train tail = *t;

	QP_STAT_ADD(qp, duplicates, t->npkts < behind ? t->npkts : behind);
	if (t->op == TRAIN_READ_REQ) {
		resp_replay_read(qp, t);
		return;
	}
	if (t->op > TRAIN_READ_REQ) {
		resp_replay_result(qp, t);
		return;
	}
	if (t->npkts <= behind) {
		if (t->ack_req)
			resp_owe_ack(qp);
		if (behind <= REPEAT_WINDOW)
			resp_tell_duplicate(qp);
		return;
	}
	/* The later packets of the train are new. */
	tail.first = false;
	tail.psn = qp->epsn;
	tail.npkts -= behind;
	if (t->payload && behind * t->pmtu <= t->payload->bytes) {
		seglist_behind(&rest, t->payload, behind * t->pmtu);
		tail.payload = &rest;
	}
	resp_rx_payload(qp, &tail);
}

/* The expected request, of a kind that has a response. */
static void rx_request(struct skua_qp *qp, const struct train *t)
{
	switch (t->op) {
	case TRAIN_READ_REQ:
		resp_rx_read(qp, t);
		break;
	case TRAIN_FLUSH:
		resp_rx_flush(qp, t);
		break;
	case TRAIN_ATOMIC_WRITE:
		resp_rx_atomic_write(qp, t);
		break;
	default:
		resp_rx_atomic(qp, t);
	}
}

static void rx(struct skua_qp *qp, const struct train *t)
{
	struct roce_resp *resp = &rc_of(qp)->resp;
	uint32_t epsn = qp->epsn;
	int32_t ahead = psn_diff(t->psn, epsn);

	if (ahead > 0) {
		resp_rx_early(qp, t);
	} else if (ahead < 0) {
		rx_duplicate(qp, t);
	} else if (t->op >= TRAIN_READ_REQ) {
		rx_request(qp, t);
	} else {
		/* The peer retransmits what was refused: it may be refused again. */
		resp->nak_sent = false;
		resp_rx_payload(qp, t);
	}
	if (qp->epsn != epsn) {
		resp->accepted += psn_add(qp->epsn, -epsn);
		fault_over(qp, SKUA_PAGE_FAULT_RESPONDER);
		qp_established(qp);
	}
}

/* A packet that was held has its turn. If it is refused, the state is as if it had not come. */
static void rx_one_held(struct skua_qp *qp, const struct train *t)
{
	struct roce_resp *resp = &rc_of(qp)->resp;
	struct message *msg = &conn_of(qp)->message;
	const enum train_op op = msg->op;
	const enum message_kind kind = msg->kind;
	struct tag *const tag = msg->tag;
	const bool in_message = msg->under_way, have_recv = msg->have_recv;
	const uint32_t offset = msg->offset, rkey = msg->rkey, length = msg->length;
	const uint32_t epsn = qp->epsn, rq_ci = qp->rq.ci;
	const uint64_t raddr = msg->raddr;

	resp->request_was_held = true;
	if (!qp->ops->rx_held || qp->ops->rx_held(qp, t))
		rx(qp, t);
	resp->request_was_held = false;
	if (qp->epsn != epsn)
		return;
	if (!have_recv)
		message_give_back(qp, msg);
	msg->op = op;
	msg->kind = kind;
	msg->tag = tag;
	msg->under_way = in_message;
	msg->have_recv = have_recv;
	msg->offset = offset;
	msg->raddr = raddr;
	msg->rkey = rkey;
	msg->length = length;
	qp->rq.ci = rq_ci;
}

/*
 * A gap was filled: what was held behind it comes now, as far as the turn lasts. The rest comes in the QP's next turn,
 * or before the next request (rc.c).
 */
static void rx_held(struct skua_qp *qp)
{
	struct roce_resp *resp = &rc_of(qp)->resp;
	struct train *t;

	while (qp->dev->engine->turn > 0 && (t = reorder_take(qp->dev, &resp->early_requests, qp->epsn))) {
		rx_one_held(qp, t);
		free(t);
		/* It was refused, perhaps only for now. The peer retransmits it, and what is behind it. */
		if (resp->nak_sent || !qp_can_receive(qp)) {
			reorder_free(qp->dev, &resp->early_requests);
			return;
		}
	}
	if (reorder_empty(resp->early_requests))
		return;
	if (reorder_has(resp->early_requests, qp->epsn))
		qp_activate(qp);
	else if (psn_diff(qp->epsn, reorder_end(resp->early_requests)) >= 0)
		reorder_free(qp->dev, &resp->early_requests);	/* the rest came in a train besides */
	else
		resp_owe_missing(qp, true);
}

bool resp_place_held(struct skua_qp *qp)
{
	if (qp_can_receive(qp) && reorder_has(rc_of(qp)->resp.early_requests, qp->epsn))
		rx_held(qp);
	return qp_can_receive(qp);
}

void resp_rx(struct skua_qp *qp, const struct train *t)
{
	uint32_t epsn = qp->epsn;

	rx(qp, t);
	if (reorder_empty(rc_of(qp)->resp.early_requests))
		return;
	if (qp->epsn != epsn)
		rx_held(qp);
	else if (t->ack_req)
		resp_owe_missing(qp, true);
}

/* The first job. False: it has to wait. */
static bool answer(struct skua_qp *qp, struct read_job *job, int32_t *budget)
{
	if (job->op == TRAIN_FLUSH)
		return resp_send_flush(qp, job, budget);
	if (train_is_atomic(job->op))
		return resp_send_atomic(qp, job, budget);
	return resp_send_read(qp, job, budget);
}

/*
 * A MISSING is sent before an ACK: after the ACK alone, the peer would take what is held behind it for lost. But an ACK
 * that found no room after a MISSING goes before the next one.
 */
bool resp_run(struct skua_qp *qp, int32_t *budget)
{
	struct roce_resp *resp = &rc_of(qp)->resp;
	bool any = resp_release_cqes(qp, budget), owes = resp_has_jobs(qp) || resp->ack_due;

	resp->job_waits = false;
	if (resp->missing_due && !(owes && resp->missing_last) && resp_send_missing(qp)) {
		resp->missing_last = owes;
		any = true;
	}
	while (resp_has_jobs(qp)) {
		struct read_job *job = resp_job_at(resp, resp->jobs_tail);

		if (*budget <= 0 || !answer(qp, job, budget)) {
			if (resp->job_waits && job->wait_due && resp_send_wait(qp, psn_add(job->psn, job->npkts_sent))) {
				job->wait_due = false;
				any = true;
			}
			return any;
		}
		any = true;
	}
	if (resp->ack_due && (!resp->missing_due || resp->missing_last))
		any |= resp_send_ack(qp);
	return any;
}

void resp_retire(struct skua_qp *qp)
{
	if (qp_can_receive(qp) && rc_of(qp)->resp.ack_due && !resp_has_jobs(qp))
		resp_send_ack(qp);
}

bool resp_is_pending(const struct skua_qp *qp)
{
	const struct roce_resp *resp = &rc_of(qp)->resp;

	/* What is owed besides is sent behind the job that waits, for the host or for its rate. A MISSING may go before. */
	if (resp->job_waits)
		return (resp_has_jobs(qp) && resp_job_at(resp, resp->jobs_tail)->wait_due) || resp_holds_cqes(qp);
	if (resp_has_jobs(qp) && resp_job_at(resp, resp->jobs_tail)->length && pacer_paused(qp))
		return (resp->missing_due && !resp->missing_last) || resp_holds_cqes(qp);
	return resp_has_jobs(qp) || resp->ack_due || resp->missing_due || resp_holds_cqes(qp);
}

void resp_flush(struct skua_qp *qp)
{
	reorder_free(qp->dev, &rc_of(qp)->resp.early_requests);
	resp_fail_recv(qp, SKUA_CQE_WR_FLUSH_ERR, SKUA_VENDOR_ERR_NONE);
}
