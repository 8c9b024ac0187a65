// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * READs at the responder: a request is checked and queued; its responses are sent when the QP has its turn.
 */
#include "core/fault.h"
#include "core/odp.h"
#include "roce/dcqcn.h"
#include "roce/resp_ack.h"
#include "roce/resp_jobs.h"
#include "roce/resp_read.h"

int resp_check_read(struct skua_qp *qp, uint32_t rkey, uint64_t raddr, uint32_t len, bool present)
{
	struct mem_access access = { qp->pd, qp->privileged, SKUA_ACCESS_REMOTE_READ, qp };
	uint32_t looks = LOOKS_AHEAD;
	int err;

	if (!(qp->access & SKUA_ACCESS_REMOTE_READ))
		return SKUA_VENDOR_ERR_RIGHTS;
	if (!len)
		return SKUA_VENDOR_ERR_NONE;
	if (!present)
		return mr_check(qp->dev, &access, rkey, raddr, len);
	err = mr_check_present(qp->dev, &access, rkey, raddr, len, &looks);
	qp->dev->engine->turn -= (int32_t)(LOOKS_AHEAD - looks) * PAGE_COST;
	return err;
}

void resp_rx_read(struct skua_qp *qp, const struct train *t)
{
	int err;

	if (conn_of(qp)->message.under_way || t->msg_len > LIMIT_MSG) {
		resp_refuse_invalid(qp);
		return;
	}
	if (!resp_job_has_room(qp)) {
		resp_job_no_room(qp, t);
		return;
	}
	err = resp_check_read(qp, t->rkey, t->raddr, t->msg_len, true);
	if (err) {
		resp_wait_or_refuse(qp, err);
		return;
	}
	QP_STAT_INC(qp, rdma_rx_read);
	resp_job_add(qp, t);
}

bool resp_send_read(struct skua_qp *qp, struct read_job *job, int32_t *budget)
{
	struct mem_access access = { job->pd, job->privileged, SKUA_ACCESS_REMOTE_READ, qp };
	struct roce_resp *resp = &rc_of(qp)->resp;
	struct seglist *src = &qp->dev->engine->src;
	uint32_t offset = job->npkts_sent * qp->pmtu, len = job->length - offset;
	uint32_t n = job->npkts - job->npkts_sent;
	struct train t = train_blank;
	int err = 0;

	if (job->length && qp_must_wait(qp))
		return false;
	n = qp_train(qp, n);
	if (n < job->npkts - job->npkts_sent)
		len = n * qp->pmtu;
	src->n = 0;
	src->bytes = 0;
	if (len)
		err = mr_segs(qp->dev, &access, job->rkey, job->raddr + offset, len, src);
	if (err == SKUA_VENDOR_ERR_NOT_PRESENT) {
		odp_miss_up_to(qp->dev, job->raddr + job->length);
		if (resp_job_wait(qp))
			return false;
	}
	if (err && job->duplicate) {
		/* A READ that came again is not answered if its memory may not be read any more. */
		resp_job_over(resp, job);
		return true;
	}
	if (err) {
		resp_jobs_drop(qp);
		qp->epsn = psn_add(job->psn, job->npkts_sent);
		resp_refuse_memory(qp, err);
		return true;
	}
	t.op = TRAIN_READ_RESP;
	t.syndrome = AETH_ACK;
	t.msn = job->msn;
	t.psn = psn_add(job->psn, job->npkts_sent);
	t.npkts = n;
	t.first = job->npkts_sent == 0;
	t.last = job->npkts_sent + n == job->npkts;
	t.payload = len ? src : NULL;
	if (!resp_transmit(qp, &t))
		return false;
	fault_over(qp, SKUA_PAGE_FAULT_RESPONDER);
	*budget -= (int32_t)len + 64;
	job->npkts_sent += n;
	if (t.last)
		resp_job_over(resp, job);
	return true;
}
