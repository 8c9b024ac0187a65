// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * FLUSH at the responder. It is answered when all that the QP's peer has written before is where the FLUSH wants it.
 *
 * WRITEs and ATOMIC WRITEs are in host memory before the next packet is looked at, so a barrier makes them globally
 * visible. That holds for any range. Only the answer is queued, behind those of earlier READs.
 *
 * Where memory is persistent, a FLUSH to that finds out in steps which memory it is for, when its answer is the next. A
 * thread writes that to its medium (core/persist.h). Meanwhile the QP receives, but answers nothing. A peer that
 * retransmits in this time is told to wait.
 */
#include "base/copy.h"
#include "core/persist.h"
#include "roce/resp_ack.h"
#include "roce/resp_flush.h"
#include "roce/resp_jobs.h"
#include "roce/resp_read.h"

#define RUNS_OF_STEP	256	/* look-ups of pages, some 10 us */

/* May the peer flush there? enum skua_vendor_err. */
static int check(struct skua_qp *qp, const struct train *t)
{
	struct mem_access access = { qp->pd, qp->privileged, flush_rights(t->flush), qp };

	if (access.need & ~qp->access)
		return SKUA_VENDOR_ERR_RIGHTS;
	if (t->flush & SKUA_FLUSH_MR)
		return mr_check_key(qp->dev, &access, t->rkey);
	return mr_check(qp->dev, &access, t->rkey, t->raddr, t->msg_len);
}

void resp_rx_flush(struct skua_qp *qp, const struct train *t)
{
	int err;

	if (conn_of(qp)->message.under_way || !flush_valid(t->flush) || !dev_has(qp->dev, SKUA_F_FLUSH)) {
		resp_refuse_invalid(qp);
		return;
	}
	if (!resp_job_has_room(qp)) {
		resp_job_no_room(qp, t);
		return;
	}
	err = check(qp, t);
	if (err) {
		resp_refuse_memory(qp, err);
		return;
	}
	host_full_barrier();
	QP_STAT_INC(qp, rdma_rx_flush);
	resp_job_add(qp, t);
}

static void refuse(struct skua_qp *qp, const struct read_job *job, int err)
{
	uint32_t psn = job->psn;

	resp_jobs_drop(qp);
	qp->epsn = psn;
	resp_refuse_memory(qp, err);
}

/* The first step: all of the MR may be meant. enum skua_vendor_err. */
static int begin(struct skua_qp *qp, struct read_job *job)
{
	if (job->flush & SKUA_FLUSH_MR)
		mr_range(qp->dev, job->rkey, &job->raddr, &job->flush_left);
	rc_of(qp)->resp.persisting = persist_new(qp);
	return rc_of(qp)->resp.persisting ? SKUA_VENDOR_ERR_NONE : SKUA_VENDOR_ERR_UNREACHABLE;
}

/* Find some of the memory; enum skua_vendor_err. */
static int find_some(struct skua_qp *qp, struct read_job *job)
{
	struct mem_access access = { job->pd, job->privileged, SKUA_ACCESS_FLUSH_PERSISTENT, qp };
	uint8_t *at;
	uint64_t run;
	int err;

	for (unsigned int i = 0; i < RUNS_OF_STEP && job->flush_left; i++) {
		err = mr_run(qp->dev, &access, job->rkey, job->raddr, job->flush_left, &at, &run);
		if (err)
			return err;
		persist_add(rc_of(qp)->resp.persisting, at, run);
		job->raddr += run;
		job->flush_left -= run;
	}
	return SKUA_VENDOR_ERR_NONE;
}

/* A step that makes memory persistent; enum skua_vendor_err. What the medium could not write is out of reach. */
static int persist(struct skua_qp *qp, struct read_job *job)
{
	struct roce_resp *resp = &rc_of(qp)->resp;
	int err = resp->persisting ? SKUA_VENDOR_ERR_NONE : begin(qp, job);

	if (!err && !resp->persisting->started) {
		err = find_some(qp, job);
		if (!err && !job->flush_left)
			persist_start(qp->dev->persist, resp->persisting);
	} else if (!err && resp->persisting->done) {
		err = resp->persisting->error ? SKUA_VENDOR_ERR_UNREACHABLE : SKUA_VENDOR_ERR_NONE;
		resp_job_forget(qp);
		job->flush = 0;
	}
	return err;
}

bool resp_send_flush(struct skua_qp *qp, struct read_job *job, int32_t *budget)
{
	int err;

	if (!(job->flush & SKUA_FLUSH_PERSISTENT) || job->duplicate)
		return resp_send_read(qp, job, budget);
	*budget -= STEP_COST / 4;
	err = persist(qp, job);
	if (err) {
		refuse(qp, job, err);
		return true;
	}
	rc_of(qp)->resp.job_waits = job->flush && !job->flush_left;
	return !rc_of(qp)->resp.job_waits;
}
