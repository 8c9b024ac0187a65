// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * READs and atomics that the responder has accepted: a queue of those to be answered, and a memory of the last ones,
 * for requests that come again.
 *
 * Requests that came again stand in the queue before new ones. The requester needs their responses first.
 */
#include <assert.h>
#include <stdlib.h>

#include "core/fault.h"
#include "core/persist.h"
#include "roce/resp_ack.h"
#include "roce/resp_jobs.h"

/* What the quota counts for each READ or atomic that there is room for, in blocks of 64 bytes (PL-10). */
#define RD_COST	4
static_assert(2 * sizeof(struct read_job) + sizeof(struct served) <= 64 * RD_COST, "cost of a READ");

void resp_jobs_free(struct skua_qp *qp)
{
	struct roce_resp *resp = &rc_of(qp)->resp;

	free(resp->jobs);
	free(resp->served);
	qp->dev->pages_used -= RD_COST * resp->jobs_size;
	resp->jobs_size = 0;
}

/* What is there goes to where there is more room. */
static void move_jobs(struct roce_resp *to, const struct roce_resp *from)
{
	for (uint32_t i = from->jobs_tail; i != from->jobs_head; i++)
		*resp_job_at(to, i) = *resp_job_at(from, i);
	for (uint32_t i = 1; i <= from->jobs_size && i <= from->num_served; i++)
		*resp_served_at(to, from->num_served - i) = *resp_served_at(from, from->num_served - i);
}

int resp_jobs_reserve(struct skua_qp *qp, uint32_t max_dest_rd)
{
	struct roce_resp *resp = &rc_of(qp)->resp, larger = *resp;

	/* A power of two, as indices run free. */
	larger.jobs_size = max_dest_rd ? 1 : 0;
	while (larger.jobs_size < max_dest_rd)
		larger.jobs_size *= 2;
	if (larger.jobs_size <= resp->jobs_size)
		return SKUA_CMD_OK;
	if (!pages_charge(qp->dev, RD_COST * larger.jobs_size))
		return SKUA_CMD_NO_RESOURCE;
	larger.jobs = calloc(2 * larger.jobs_size, sizeof(*larger.jobs));
	larger.served = calloc(larger.jobs_size, sizeof(*larger.served));
	if (!larger.jobs || !larger.served) {
		free(larger.jobs);
		free(larger.served);
		qp->dev->pages_used -= RD_COST * larger.jobs_size;
		return SKUA_CMD_NO_RESOURCE;
	}
	move_jobs(&larger, resp);
	resp_jobs_free(qp);
	*resp = larger;
	return SKUA_CMD_OK;
}

void resp_job_forget(struct skua_qp *qp)
{
	struct roce_resp *resp = &rc_of(qp)->resp;

	if (resp->persisting)
		persist_drop(qp->dev->persist, resp->persisting);
	resp->persisting = NULL;
}

void resp_jobs_drop(struct skua_qp *qp)
{
	struct roce_resp *resp = &rc_of(qp)->resp;

	resp_job_forget(qp);
	resp->jobs_tail = resp->jobs_head;
	resp->jobs_new = 0;
	resp->jobs_again = 0;
}

bool resp_job_wait(struct skua_qp *qp)
{
	struct roce_resp *resp = &rc_of(qp)->resp;
	bool known = fault_is_waiting(qp, SKUA_PAGE_FAULT_RESPONDER);

	/* The page faults of a QP end when it goes to ERR (ODP-13), so no new one begins there. */
	resp->job_waits = qp->state != SKUA_QPS_ERR && fault_wait(qp, SKUA_PAGE_FAULT_RESPONDER);
	if (!known)
		resp_job_at(resp, resp->jobs_tail)->wait_due = resp->job_waits;
	return resp->job_waits;
}

void resp_job_fill(struct skua_qp *qp, struct read_job *job, const struct train *t)
{
	uint32_t length = t->op == TRAIN_READ_REQ ? t->msg_len : 0;

	*job = (struct read_job){
		.psn = t->psn, .npkts = qp_packets(qp, length), .rkey = t->rkey,
		.raddr = t->raddr, .length = length, .msn = rc_of(qp)->resp.msn, .op = t->op,
		.swap_add = t->swap_add, .compare = t->compare,
		.pd = qp->pd, .privileged = qp->privileged, .srqn = t->srqn,
	};
	if (t->op == TRAIN_FLUSH) {
		job->flush = t->flush;
		job->flush_left = t->msg_len;
	} else {
		job->swap_add_mask = t->swap_add_mask;
		job->compare_mask = t->compare_mask;
	}
	qp_activate(qp);
}

/*
 * A FLUSH is not remembered (FLU-11): some peers do not count theirs, so that any number of them may be outstanding, and
 * READs and atomics would be forgotten.
 */
static void remember(struct roce_resp *resp, struct read_job *job, const struct train *t)
{
	if (t->op == TRAIN_FLUSH)
		return;
	job->served_index = resp->num_served++;
	*resp_served_at(resp, job->served_index) = (struct served){
		.op = t->op, .psn = t->psn, .npkts = job->npkts, .accepted = resp->accepted, .rkey = t->rkey,
		.raddr = t->raddr, .length = job->length, .done = t->op == TRAIN_ATOMIC_WRITE,
	};
}

void resp_job_add(struct skua_qp *qp, const struct train *t)
{
	struct roce_resp *resp = &rc_of(qp)->resp;
	struct read_job *job;

	resp->msn = psn_add(resp->msn, 1);
	resp->nak_sent = false;
	job = resp_job_at(resp, resp->jobs_head++);
	resp_job_fill(qp, job, t);
	remember(resp, job, t);
	resp->jobs_new++;
	qp->epsn = psn_add(qp->epsn, job->npkts);
}

void resp_job_no_room(struct skua_qp *qp, const struct train *t)
{
	struct roce_resp *resp = &rc_of(qp)->resp;
	bool flushes = t->op == TRAIN_FLUSH;

	for (uint32_t i = resp->jobs_tail; i != resp->jobs_head; i++)
		flushes |= resp_job_at(resp, i)->op == TRAIN_FLUSH;
	if (flushes && qp->max_dest_rd)
		resp->nak_sent = false;		/* it is expected still */
	else
		resp_refuse_invalid(qp);
}

bool resp_job_is_queued(const struct roce_resp *resp, uint32_t psn, uint32_t npkts)
{
	for (uint32_t i = resp->jobs_tail; i != resp->jobs_head; i++) {
		const struct read_job *job = resp_job_at(resp, i);
		uint32_t from = psn_add(job->psn, job->npkts_sent), at = psn_add(psn, -from);

		if (at < job->npkts - job->npkts_sent && npkts <= job->npkts - job->npkts_sent - at)
			return true;
	}
	return false;
}

void resp_job_add_again(struct skua_qp *qp, const struct train *t, uint64_t value)
{
	struct roce_resp *resp = &rc_of(qp)->resp;
	struct read_job *job, *next;
	uint32_t at;

	if (resp->jobs_again >= qp->max_dest_rd)
		return;
	resp->jobs_again++;
	for (at = --resp->jobs_tail; at + 1 != resp->jobs_head; at++) {
		next = resp_job_at(resp, at + 1);
		if (!next->duplicate || psn_diff(psn_add(next->psn, next->npkts_sent), t->psn) > 0)
			break;
		*resp_job_at(resp, at) = *next;
	}
	job = resp_job_at(resp, at);
	resp_job_fill(qp, job, t);
	job->duplicate = true;
	job->wait_due = true;
	job->atomic_done = true;
	job->swap_add = value;
}
