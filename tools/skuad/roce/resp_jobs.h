/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * READs and atomics that the responder has accepted.
 */
#ifndef SKUAD_ROCE_RESP_JOBS_H
#define SKUAD_ROCE_RESP_JOBS_H

#include "roce/rc.h"

/* Make room for so many READs and atomics of the peer; enum skua_cmd_status. */
int resp_jobs_reserve(struct skua_qp *qp, uint32_t max_dest_rd);
void resp_jobs_free(struct skua_qp *qp);
/* What the first of them waits for does not matter any more. */
void resp_job_forget(struct skua_qp *qp);
/* Answer none of them any more. */
void resp_jobs_drop(struct skua_qp *qp);

/* Is there room for a new one? */
static inline bool resp_job_has_room(const struct skua_qp *qp)
{
	return rc_of(qp)->resp.jobs_new < qp->max_dest_rd;
}

/*
 * There is no room for @t. The peer has sent too many, so @t is refused. But some peers do not count FLUSHes. So if @t is
 * one, or FLUSHes take the room, @t is dropped as if it was lost, and the peer retransmits it.
 */
void resp_job_no_room(struct skua_qp *qp, const struct train *t);
/* Accept a new READ or atomic, and remember it. */
void resp_job_add(struct skua_qp *qp, const struct train *t);
/*
 * Queue a request that came again: before all new ones, and before others that came again and have later responses to
 * send. The requester cannot use those without the earlier ones. There may be as many of them as new ones. The
 * requester asks for any others again. @value: what an atomic fetched.
 */
void resp_job_add_again(struct skua_qp *qp, const struct train *t, uint64_t value);
/*
 * Are all of the @npkts responses from @psn on still to be sent, the first time or again? Then a request for them adds
 * nothing. It must not be answered before the first one: the requester would think that the READ or atomic is over, and
 * send more new ones than there is room for.
 */
bool resp_job_is_queued(const struct roce_resp *resp, uint32_t psn, uint32_t npkts);
/*
 * The first job has found that a page is missing. True: it waits for the page, and the peer is told so, now and whenever
 * it asks again. So the peer does not count the time as one without an answer.
 */
bool resp_job_wait(struct skua_qp *qp);
/* @job is what @t asks for. */
void resp_job_fill(struct skua_qp *qp, struct read_job *job, const struct train *t);
static inline struct read_job *resp_job_at(const struct roce_resp *resp, uint32_t i)
{
	return &resp->jobs[i & (2 * resp->jobs_size - 1)];
}

/* What is remembered of the READ or atomic that was the @i-th. */
static inline struct served *resp_served_at(const struct roce_resp *resp, uint64_t i)
{
	return &resp->served[i & (resp->jobs_size - 1)];
}

/* @job, the first, has been answered. */
static inline void resp_job_over(struct roce_resp *resp, const struct read_job *job)
{
	if (job->duplicate)
		resp->jobs_again--;
	else
		resp->jobs_new--;
	resp->jobs_tail++;
}

/* Are READs or atomics to be answered? */
static inline bool resp_has_jobs(const struct skua_qp *qp)
{
	return rc_of(qp)->resp.jobs_tail != rc_of(qp)->resp.jobs_head;
}

#endif /* SKUAD_ROCE_RESP_JOBS_H */
