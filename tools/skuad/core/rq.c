// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Receive queues. They are never rung: the device looks at the record when it needs a
 * receive.
 */
#include <string.h>

#include "base/copy.h"
#include "core/odp.h"
#include "core/srq.h"

static enum rq_result dead(struct rq *rq)
{
	rq->dead = true;
	return RQ_FATAL;
}

enum rq_result rq_peek(struct rq *rq, struct recv_wqe *wqe, uint8_t *vendor_err)
{
	static const struct skua_rqe zero;
	struct skua_dbr *dbr;
	uint8_t raw[1 << SKUA_RQE_MAX_LOG_STRIDE];
	uint32_t stride = 1u << rq->log_stride, n;
	struct skua_rqe head;
	const uint8_t *p;

	if (!rq->size)
		return rq->srq ? srq_peek(rq->srq, wqe, vendor_err) : RQ_EMPTY;
	if (rq->dead)
		return RQ_FATAL;
	dbr = mem_ref_at(&rq->dev->mem, &rq->dbr, sizeof(*dbr), false);
	if (!dbr)
		return dead(rq);
	n = host_load32(&dbr->pi) - rq->ci;
	if (!n)
		return RQ_EMPTY;
	if (n > rq->size)
		return dead(rq);
	p = pages_at(&rq->ring, &rq->dev->mem,
		     (uint64_t)(rq->ci & (rq->size - 1)) << rq->log_stride, stride,
		     false);
	if (!p)
		return dead(rq);
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
	if (memcmp(head.rsvd, zero.rsvd, sizeof(head.rsvd)))
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

int rq_payload(const struct rq *rq, const struct recv_wqe *wqe, uint64_t offset, uint32_t len,
	       struct seglist *segs)
{
	struct mem_access access = { rq->pd, rq->privileged, SKUA_ACCESS_LOCAL_WRITE, NULL };

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
		err = mr_segs(rq->dev, &access, sge->lkey, sge->addr + offset, n, segs);
		if (err == SKUA_VENDOR_ERR_NOT_PRESENT)
			odp_miss_up_to(rq->dev, sge->addr + sge->length);
		if (err)
			return err;
		len -= n;
		offset = 0;
	}
	return SKUA_VENDOR_ERR_NONE;
}
