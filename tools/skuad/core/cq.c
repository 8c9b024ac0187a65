// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion queues: writing CQEs, and telling the host (manual: CQEs, arming).
 */
#include <stdlib.h>

#include "core/copy.h"
#include "core/qp.h"

int cmd_create_cq(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	const struct skua_cmd_create_cq *in = &dev->cmdq.cmd.create_cq;
	struct eq *eq = numtab_get(&dev->eqs, le32toh(in->eqn));
	struct cq *cq;
	int status;

	if (!eq)
		return SKUA_CMD_BAD_OBJECT;
	if (eq->type != SKUA_EQ_COMP || in->log_size > LIMIT_LOG_CQE || le32toh(in->db_page) >= LIMIT_DB_PAGES ||
	    le64toh(in->dbr_addr) % 64 ||
	    ring_check(&in->ring, sizeof(struct skua_cqe) << in->log_size, sizeof(struct skua_cqe)))
		return SKUA_CMD_BAD_PARAM;
	if (eq->ncq == eq->size || numtab_full(&dev->cqs))
		return SKUA_CMD_NO_RESOURCE;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return SKUA_CMD_NO_RESOURCE;
	cq->eq = eq;
	cq->size = 1u << in->log_size;
	cq->db_page = le32toh(in->db_page);
	cq->handle = le64toh(in->cq_handle);
	cq->dbr.iova = le64toh(in->dbr_addr);
	status = pages_reserve(dev, &cq->ring, &in->ring);
	if (status)
		goto free_cq;
	status = SKUA_CMD_BAD_ADDRESS;
	if (!mem_ref_at(&dev->mem, &cq->dbr, sizeof(struct skua_cq_dbr), false))
		goto free_ring;
	status = ring_load(dev, &cq->ring, &in->ring, (uint64_t)cq->size * sizeof(struct skua_cqe));
	if (status)
		goto free_ring;
	status = SKUA_CMD_NO_RESOURCE;
	cq->number = numtab_add(&dev->cqs, cq);
	if (!cq->number)
		goto free_ring;
	eq->ncq++;
	cpl->number = htole32(cq->number);
	return SKUA_CMD_OK;

free_ring:
	pages_release(dev, &cq->ring);
free_cq:
	free(cq);
	return status;
}

static void cq_free(struct skua_dev *dev, struct cq *cq)
{
	async_event_forget(dev, &cq->error_event);
	cq->eq->ncq--;
	numtab_del(&dev->cqs, cq->number);
	pages_release(dev, &cq->ring);
	free(cq);
}

int cmd_destroy_cq(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	struct cq *cq = numtab_get(&dev->cqs, le32toh(dev->cmdq.cmd.object.number));

	(void)cpl;
	if (!cq)
		return SKUA_CMD_BAD_OBJECT;
	if (cq->refs)
		return SKUA_CMD_BUSY;
	cq_free(dev, cq);
	return SKUA_CMD_OK;
}

void cq_free_all(struct skua_dev *dev)
{
	struct cq *cq;

	while ((cq = numtab_any(&dev->cqs)))
		cq_free(dev, cq);
}

/* Nothing can be written into it any more: its QPs are of no use. */
void cq_fail(struct skua_dev *dev, struct cq *cq)
{
	struct skua_qp *qp;
	uint32_t i = 0;

	cq->error = true;
	STAT_INC(dev, cq_overflows);
	async_event(dev, &cq->error_event, SKUA_EVENT_CQ_ERR, cq->number, cq->handle);
	while ((qp = numtab_next(&dev->qps, &i)))
		if (qp->scq == cq || qp->rcq == cq)
			qp_fatal(qp);
}

/* Does the host wait for what has been written? */
static void cq_notify(struct skua_dev *dev, struct cq *cq, struct skua_cq_dbr *dbr)
{
	uint64_t arm = host_load64(&dbr->arm);
	uint32_t type = SKUA_CQ_ARM_GET_TYPE(arm);
	uint32_t from = SKUA_CQ_ARM_GET_CI(arm);
	bool due;

	if (cq->error || type == SKUA_CQ_ARM_NONE || SKUA_CQ_ARM_GET_SEQ(arm) == cq->fired_seq)
		return;
	if (type == SKUA_CQ_ARM_SOLICITED)
		due = cq->solicited_news && (int32_t)(cq->solicited_pi - from) > 0;
	else
		due = cq->news && (int32_t)(cq->pi - from) > 0;
	if (!due)
		return;
	cq->fired_seq = SKUA_CQ_ARM_GET_SEQ(arm);
	cq->news = cq->solicited_news = false;
	if (!eq_post_comp(dev, cq))
		cq_fail(dev, cq);
}

void cq_post(struct skua_dev *dev, struct cq *cq, struct skua_cqe *cqe)
{
	struct skua_cq_dbr *dbr;
	uint8_t *p;

	if (cq->error || !dev_running(dev))
		return;
	dbr = mem_ref_at(&dev->mem, &cq->dbr, sizeof(*dbr), false);
	p = pages_at(&cq->ring, &dev->mem, (uint64_t)(cq->pi & (cq->size - 1)) * sizeof(*cqe),
		     sizeof(*cqe), true);
	if (dbr && cq->pi - cq->ci >= cq->size)
		cq->ci = host_load32(&dbr->ci);
	/* Never over what the host has not consumed, nor believe that it consumed more. */
	if (!dbr || !p || cq->pi - cq->ci >= cq->size) {
		cq_fail(dev, cq);
		return;
	}
	if (cqe->status != SKUA_CQE_SUCCESS)
		STAT_INC(dev, cqe_errors);
	if (!(cq->pi & cq->size))
		cqe->flags |= SKUA_CQE_PHASE;
	cqe->timestamp = htole64(engine_now(dev->engine));
	copy_entry(p, cqe, sizeof(*cqe));
	cq->pi++;
	cq->news = true;
	if (cqe->flags & SKUA_CQE_SOLICITED || cqe->status != SKUA_CQE_SUCCESS) {
		cq->solicited_pi = cq->pi;
		cq->solicited_news = true;
	}
	host_full_barrier();
	cq_notify(dev, cq, dbr);
}

void cq_arm_doorbell(struct skua_dev *dev, uint32_t cqn, uint32_t db_page)
{
	struct cq *cq = numtab_get(&dev->cqs, cqn);
	struct skua_cq_dbr *dbr;

	if (!cq || cq->db_page != db_page) {
		STAT_INC(dev, bad_doorbells);
		return;
	}
	dbr = mem_ref_at(&dev->mem, &cq->dbr, sizeof(*dbr), false);
	if (dbr)
		cq_notify(dev, cq, dbr);
}
