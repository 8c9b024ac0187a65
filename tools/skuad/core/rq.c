// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Receive queues. They are never rung: the device looks at the record when it needs a
 * receive.
 */
#include <string.h>

#include "base/copy.h"
#include "core/qp.h"

static enum rq_result rq_dead(struct skua_qp *qp)
{
	qp->dead_rq = true;
	qp_fatal(qp);
	return RQ_FATAL;
}

enum rq_result rq_peek(struct skua_qp *qp, struct recv_wqe *wqe, uint8_t *vendor_err)
{
	struct skua_dbr *dbr;
	uint8_t raw[1 << SKUA_RQE_MAX_LOG_STRIDE];
	uint32_t stride = 1u << qp->rq_log_stride, n;
	struct skua_rqe head;
	const uint8_t *p;

	if (!qp->rq_size)
		return RQ_EMPTY;
	if (qp->dead_rq)
		return RQ_FATAL;
	dbr = mem_ref_at(&qp->dev->mem, &qp->rq_dbr, sizeof(*dbr), false);
	if (!dbr)
		return rq_dead(qp);
	n = host_load32(&dbr->pi) - qp->rq_ci;
	if (!n)
		return RQ_EMPTY;
	if (n > qp->rq_size)
		return rq_dead(qp);
	p = pages_at(&qp->rq, &qp->dev->mem,
		     (uint64_t)(qp->rq_ci & (qp->rq_size - 1)) << qp->rq_log_stride, stride,
		     false);
	if (!p)
		return rq_dead(qp);
	copy_from_host(raw, p, stride);
	memcpy(&head, raw, sizeof(head));
	wqe->cookie = le32toh(head.cookie);
	wqe->num_sge = head.num_sge;
	wqe->length = 0;
	*vendor_err = SKUA_VENDOR_ERR_SGE_COUNT;
	if (head.num_sge > LIMIT_SGE ||
	    sizeof(head) + head.num_sge * sizeof(struct skua_sge) > stride)
		return RQ_BAD;
	*vendor_err = SKUA_VENDOR_ERR_WQE_FORMAT;
	for (unsigned int i = 0; i < sizeof(head.rsvd); i++)
		if (head.rsvd[i])
			return RQ_BAD;
	for (unsigned int i = 0; i < head.num_sge; i++) {
		struct skua_sge sge;

		memcpy(&sge, raw + sizeof(head) + i * sizeof(sge), sizeof(sge));
		wqe->sge[i] = (struct sge){ le64toh(sge.addr), le32toh(sge.length),
					    le32toh(sge.lkey) };
		wqe->length += wqe->sge[i].length;
	}
	return RQ_OK;
}

void rq_take(struct skua_qp *qp)
{
	qp->rq_ci++;
}

int rq_payload(struct skua_qp *qp, const struct recv_wqe *wqe, uint64_t offset, uint32_t len,
	       struct seglist *segs)
{
	struct mem_access access = { qp->pd, qp->privileged, SKUA_ACCESS_LOCAL_WRITE };

	for (unsigned int i = 0; i < wqe->num_sge && len; i++) {
		const struct sge *sge = &wqe->sge[i];
		uint32_t n;
		int err;

		if (offset >= sge->length) {
			offset -= sge->length;
			continue;
		}
		n = sge->length - (uint32_t)offset;
		if (n > len)
			n = len;
		err = mr_segs(qp->dev, &access, sge->lkey, sge->addr + offset, n, segs);
		if (err)
			return err;
		len -= n;
		offset = 0;
	}
	return SKUA_VENDOR_ERR_NONE;
}

void rq_complete(struct skua_qp *qp, struct skua_cqe *cqe)
{
	cqe->qp_handle = htole64(qp->handle);
	cqe->qpn = htole32(qp->number);
	if (!cq_post(qp->dev, qp->rcq, cqe))
		qp_fatal(qp);
}

bool rq_flush(struct skua_qp *qp, int32_t *budget)
{
	struct recv_wqe wqe;
	uint8_t vendor_err;
	bool any = false;

	while (*budget > 0) {
		enum rq_result r = rq_peek(qp, &wqe, &vendor_err);
		struct skua_cqe cqe = {
			.opcode = SKUA_CQE_RECV,
			.status = SKUA_CQE_WR_FLUSH_ERR,
		};

		if (r != RQ_OK && r != RQ_BAD)
			break;
		*budget -= MESSAGE_COST;
		cqe.cookie = htole32(wqe.cookie);
		rq_take(qp);
		rq_complete(qp, &cqe);
		any = true;
	}
	return any;
}
