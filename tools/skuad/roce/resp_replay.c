// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * READs and other requests with responses that come again: the requester did not get all responses. A READ is carried
 * out again. An atomic is answered with what it fetched the first time; FLUSH and ATOMIC WRITE fetch nothing.
 */
#include "roce/resp_jobs.h"
#include "roce/resp_read.h"
#include "roce/resp_replay.h"

#define PSN_HALF	(1u << 23)	/* requests so far behind do not come again; their PSNs do, for other requests */

/* What is remembered of the READ or atomic that has this PSN; or NULL. */
static const struct served *served_at(const struct skua_qp *qp, uint32_t psn)
{
	const struct roce_resp *resp = &rc_of(qp)->resp;

	for (uint32_t i = 1; i <= qp->max_dest_rd && i <= resp->num_served; i++) {
		const struct served *s = resp_served_at(resp, resp->num_served - i);

		if (resp->accepted - s->accepted >= PSN_HALF)
			break;
		if (psn_add(psn, -s->psn) < s->npkts)
			return s;
	}
	return NULL;
}

/* The same if @t is that READ or atomic, as far as it says. */
static const struct served *find_served(const struct skua_qp *qp, const struct train *t)
{
	const struct served *s = served_at(qp, t->psn);

	return s && s->op == t->op && s->rkey == t->rkey ? s : NULL;
}

/* No FLUSH is remembered, but what is remembered was none (FLU-11). */
static bool may_be_flush(const struct skua_qp *qp, const struct train *t)
{
	return t->op == TRAIN_FLUSH && dev_has(qp->dev, SKUA_F_FLUSH) && !served_at(qp, t->psn);
}

/*
 * @t came again while the first job waits. If that is a FLUSH that waits for its medium, only a peer that repeats the
 * FLUSH is told to wait (FLU-13).
 */
static void ask_to_wait(struct skua_qp *qp, const struct train *t)
{
	struct roce_resp *resp = &rc_of(qp)->resp;
	struct read_job *job;

	if (!resp->job_waits || !resp_has_jobs(qp))
		return;
	job = resp_job_at(resp, resp->jobs_tail);
	if (job->op == TRAIN_FLUSH && (t->op != TRAIN_FLUSH || t->psn != job->psn))
		return;
	job->wait_due = true;
	qp_activate(qp);
}

void resp_replay_result(struct skua_qp *qp, const struct train *t)
{
	const struct served *s = find_served(qp, t);

	ask_to_wait(qp, t);
	if ((s ? s->done : may_be_flush(qp, t)) && !resp_job_is_queued(&rc_of(qp)->resp, t->psn, 1))
		resp_job_add_again(qp, t, s ? s->value : 0);
}

/*
 * The READ @s, if it has responses still to be sent for the first time. Since it was asked for again, its job may not
 * have the first ones any more.
 */
static struct read_job *job_of(const struct roce_resp *resp, const struct served *s)
{
	for (uint32_t i = resp->jobs_tail; i != resp->jobs_head; i++) {
		struct read_job *job = resp_job_at(resp, i);

		if (!job->duplicate && job->op == TRAIN_READ_REQ && resp_served_at(resp, job->served_index) == s)
			return job;
	}
	return NULL;
}

/*
 * @t asks for responses of @job again. While @job still has some of them to send, they may not be sent twice: the peer
 * would think that the READ is over, and send more new ones than there is room for.
 */
static void restart(struct skua_qp *qp, struct read_job *job, const struct train *t)
{
	uint32_t sent = psn_add(job->psn, job->npkts_sent), end = psn_add(t->psn, qp_packets(qp, t->msg_len));
	uint64_t served = job->served_index;
	bool wait_due = job->wait_due;

	if (psn_diff(end, sent) <= 0) {
		resp_job_add_again(qp, t, 0);
	} else if (psn_diff(t->psn, sent) < 0 && end == psn_add(job->psn, job->npkts)) {
		resp_job_fill(qp, job, t);
		job->served_index = served;
		job->wait_due = wait_due;
	}
}

/* Does @t ask for a part of the READ @s, in whole packets, with their PSN and their address? */
static bool is_part_of(const struct skua_qp *qp, const struct train *t, const struct served *s)
{
	uint64_t offset = (uint64_t)psn_add(t->psn, -s->psn) << qp->log_pmtu;
	uint64_t end = offset + t->msg_len;

	return t->raddr == s->raddr + offset && (t->msg_len || !s->length) &&
	       (end == s->length || (end < s->length && !(end & (qp->pmtu - 1))));
}

/* A READ is carried out again, if its memory may still be read. */
void resp_replay_read(struct skua_qp *qp, const struct train *t)
{
	const struct served *s = find_served(qp, t);
	struct read_job *job;

	ask_to_wait(qp, t);
	if (!s || !is_part_of(qp, t, s) || resp_check_read(qp, t->rkey, t->raddr, t->msg_len, false))
		return;
	if (resp_job_is_queued(&rc_of(qp)->resp, t->psn, qp_packets(qp, t->msg_len)))
		return;
	job = job_of(&rc_of(qp)->resp, s);
	if (job)
		restart(qp, job, t);
	else
		resp_job_add_again(qp, t, 0);
}
