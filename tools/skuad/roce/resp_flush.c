// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * FLUSH at the responder. It is answered when all that the QP's peer has written before is where the FLUSH wants it.
 *
 * WRITEs and ATOMIC WRITEs are in host memory before the next packet is looked at, so a barrier makes them globally
 * visible. That holds for any range. Only the answer is queued, behind those of earlier READs.
 */
#include "base/copy.h"
#include "roce/resp_ack.h"
#include "roce/resp_flush.h"
#include "roce/resp_jobs.h"

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
