// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Shared receive queues (manual: shared receive queues).
 *
 * The ring is an RQ like any other. What is different is that a QP may give back an entry that it has taken. The ring
 * cannot go back, because other QPs have taken later entries, so the device's own copies of such entries stand before
 * the ring.
 */
#include <stdlib.h>

#include "base/copy.h"
#include "core/tags.h"
#include "core/xrcd.h"

/* An entry that a QP has given back. */
struct srq_entry {
	STAILQ_ENTRY(srq_entry) next;
	struct recv_wqe wqe;
};

static void fail(struct srq *srq)
{
	if (srq->error)
		return;
	srq->error = true;
	async_event(srq->rq.dev, &srq->error_event, SKUA_EVENT_SRQ_ERR, srq->number, srq->handle);
}

/* Entries that are published and not taken; those of the ring alone. False: the record or the ring is no good. */
static bool in_ring(struct srq *srq, uint32_t *n)
{
	struct skua_dbr *dbr = mem_ref_at(&srq->rq.dev->mem, &srq->rq.dbr, sizeof(*dbr), false);

	if (dbr)
		*n = host_load32(&dbr->pi) - srq->rq.ci;
	return dbr && *n <= srq->rq.size;
}

/* SRQ-8 */
static void look_at_limit(struct srq *srq)
{
	uint32_t n;

	if (!srq->limit || srq->error)
		return;
	if (!in_ring(srq, &n)) {
		fail(srq);
	} else if (n + srq->num_returned < srq->limit) {
		srq->limit = 0;
		async_event(srq->rq.dev, &srq->limit_event, SKUA_EVENT_SRQ_LIMIT, srq->number, srq->handle);
	}
}

enum rq_result srq_peek(struct srq *srq, struct recv_wqe *wqe, uint8_t *vendor_err)
{
	struct srq_entry *first = STAILQ_FIRST(&srq->returned);
	enum rq_result r;

	if (srq->error)
		return RQ_FATAL;
	if (first) {
		*wqe = first->wqe;
		*vendor_err = wqe->bad;
		return wqe->bad ? RQ_BAD : RQ_OK;
	}
	r = rq_peek(&srq->rq, wqe, vendor_err);
	wqe->bad = r == RQ_BAD ? *vendor_err : 0;
	if (r == RQ_FATAL)
		fail(srq);
	return r;
}

static void forget_first(struct srq *srq)
{
	struct srq_entry *first = STAILQ_FIRST(&srq->returned);

	STAILQ_REMOVE_HEAD(&srq->returned, next);
	srq->num_returned--;
	free(first);
}

void srq_take(struct srq *srq)
{
	if (srq->num_returned)
		forget_first(srq);
	else
		srq->rq.ci++;
	look_at_limit(srq);
}

void srq_return(struct srq *srq, const struct recv_wqe *wqe)
{
	struct srq_entry *entry = malloc(sizeof(*entry));

	/* Without it the host's count of free slots would be wrong for ever. */
	if (!entry) {
		fail(srq);
		return;
	}
	entry->wqe = *wqe;
	STAILQ_INSERT_HEAD(&srq->returned, entry, next);
	srq->num_returned++;
}

static bool bad_ring(const struct skua_pagelist *ring, uint8_t log_size, uint8_t log_stride)
{
	return log_size > LIMIT_LOG_SRQ || ring_check(ring, 1ull << (log_size + log_stride), 1u << log_stride);
}

/* As far as the @budget lasts; true when none is left. */
static bool forget_returned(struct srq *srq, int32_t *budget)
{
	while (srq->num_returned && *budget > 0) {
		forget_first(srq);
		*budget -= FREE_COST;
	}
	return !srq->num_returned;
}

static void unmake(struct skua_dev *dev, void *object)
{
	struct srq *srq = object;

	async_event_forget(dev, &srq->error_event);
	async_event_forget(dev, &srq->limit_event);
	pages_release(dev, &srq->rq.ring);
	if (srq->tags)
		dev->pages_used -= TAG_BLOCKS * srq->tags->size;
	free(srq->tags);
	free(srq);
}

static int reserve_tags(struct skua_dev *dev, struct srq *srq, uint32_t n)
{
	if (!n)
		return SKUA_CMD_OK;
	if (!pages_charge(dev, TAG_BLOCKS * n))
		return SKUA_CMD_NO_RESOURCE;
	srq->tags = tags_create(n);
	if (srq->tags)
		return SKUA_CMD_OK;
	dev->pages_used -= TAG_BLOCKS * n;
	return SKUA_CMD_NO_RESOURCE;
}

/* Fields that are there with a domain or with tags only, or may not be there together. */
static bool bad_kind(const struct skua_dev *dev, const struct skua_cmd_create_srq *in)
{
	if (in->tags)
		return in->xrcdn || !dev_has(dev, SKUA_F_TAG_MATCHING) || le32toh(in->tags) > LIMIT_TAGS;
	return in->xrcdn ? !dev_has(dev, SKUA_F_XRC) : in->cqn;
}

/* The first step of CREATE_SRQ. */
static int make(struct skua_dev *dev)
{
	const struct skua_cmd_create_srq *in = &dev->cmdq.cmd.create_srq;
	struct pd *pd = numtab_get(&dev->pds, le32toh(in->pdn));
	struct xrcd *xrcd = numtab_get(&dev->xrcds, le32toh(in->xrcdn));
	struct cq *cq = numtab_get(&dev->cqs, le32toh(in->cqn));
	struct srq *srq;
	int status;

	if (bad_kind(dev, in))
		return SKUA_CMD_BAD_PARAM;
	if (!pd || (in->xrcdn && !xrcd) || ((in->xrcdn || in->tags) && !cq))
		return SKUA_CMD_BAD_OBJECT;
	if (le32toh(in->flags) & ~(uint32_t)SKUA_SRQ_FLAGS || in->log_stride < SKUA_RQE_MIN_LOG_STRIDE ||
	    in->log_stride > SKUA_RQE_MAX_LOG_STRIDE || le64toh(in->dbr_addr) % 64 ||
	    bad_ring(&in->ring, in->log_size, in->log_stride) || le32toh(in->limit) > 1u << in->log_size)
		return SKUA_CMD_BAD_PARAM;
	if (numtab_full(&dev->srqs))
		return SKUA_CMD_NO_RESOURCE;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return SKUA_CMD_NO_RESOURCE;
	cmd_makes(dev, srq, unmake);
	STAILQ_INIT(&srq->returned);
	srq->handle = le64toh(in->srq_handle);
	srq->limit = le32toh(in->limit);
	srq->xrcd = xrcd;
	srq->cq = cq;
	srq->rq = (struct rq){
		.dev = dev, .pd = pd, .privileged = le32toh(in->flags) & SKUA_SRQ_PRIVILEGED,
		.size = 1u << in->log_size, .log_stride = in->log_stride,
		.dbr.iova = le64toh(in->dbr_addr),
	};
	status = pages_reserve(dev, &srq->rq.ring, &in->ring);
	if (!status)
		status = reserve_tags(dev, srq, le32toh(in->tags));
	if (status)
		return status;
	return mem_ref_at(&dev->mem, &srq->rq.dbr, sizeof(struct skua_dbr), false) ? SKUA_CMD_OK :
										     SKUA_CMD_BAD_ADDRESS;
}

int cmd_create_srq(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	const struct skua_cmd_create_srq *in = &dev->cmdq.cmd.create_srq;
	int status = dev->cmdq.making ? SKUA_CMD_OK : make(dev);
	struct srq *srq = dev->cmdq.making;

	if (!status)
		status = list_load(dev, &srq->rq.ring, &in->ring, (uint64_t)srq->rq.size << srq->rq.log_stride, false);
	if (status)
		return status;
	srq->number = numtab_add(&dev->srqs, srq);
	if (!srq->number)
		return SKUA_CMD_NO_RESOURCE;
	srq->rq.pd->refs++;
	if (srq->xrcd)
		srq->xrcd->srqs++;
	if (srq->cq)
		srq->cq->refs++;
	cpl->number = htole32(srq->number);
	look_at_limit(srq);
	return SKUA_CMD_OK;
}

/* Does a ring of so many entries hold those that are published and not taken? */
static bool srq_fits(struct srq *srq, uint32_t size)
{
	uint32_t n;

	return !srq->error && in_ring(srq, &n) && n <= size;
}

/* The first step of MODIFY_SRQ. */
static int begin_modify(struct skua_dev *dev, struct srq *srq)
{
	const struct skua_cmd_modify_srq *in = &dev->cmdq.cmd.modify_srq;
	uint32_t mask = le32toh(in->mask), size = srq->rq.size;
	bool other_ring = mask & SKUA_SRQ_SET_RING;

	if (mask & ~(uint32_t)SKUA_SRQ_SET_MASK)
		return SKUA_CMD_BAD_PARAM;
	if (other_ring ? bad_ring(&in->ring, in->log_size, srq->rq.log_stride) :
			 in->log_size || !pagelist_empty(&in->ring))
		return SKUA_CMD_BAD_PARAM;
	if (other_ring)
		size = 1u << in->log_size;
	if (le32toh(in->limit) > (mask & SKUA_SRQ_SET_LIMIT ? size : 0))
		return SKUA_CMD_BAD_PARAM;
	if (other_ring ? !srq_fits(srq, size) : srq->error)
		return SKUA_CMD_BAD_STATE;
	return other_ring ? list_begin(dev, &in->ring) : SKUA_CMD_OK;
}

int cmd_modify_srq(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	const struct skua_cmd_modify_srq *in = &dev->cmdq.cmd.modify_srq;
	struct srq *srq = numtab_get(&dev->srqs, le32toh(in->srqn));
	int status;

	(void)cpl;
	if (!srq)
		return SKUA_CMD_BAD_OBJECT;
	status = dev->cmdq.making ? SKUA_CMD_OK : begin_modify(dev, srq);
	if (!status && dev->cmdq.making)
		status = list_load(dev, dev->cmdq.making, &in->ring, 1ull << (in->log_size + srq->rq.log_stride),
				   false);
	/* More entries may have been published since the first step. */
	if (!status && dev->cmdq.making && !srq_fits(srq, 1u << in->log_size))
		status = SKUA_CMD_BAD_STATE;
	if (status)
		return status;
	if (dev->cmdq.making) {
		list_replace(dev, &srq->rq.ring);
		srq->rq.size = 1u << in->log_size;
	}
	if (le32toh(in->mask) & SKUA_SRQ_SET_LIMIT)
		srq->limit = le32toh(in->limit);
	look_at_limit(srq);
	return SKUA_CMD_OK;
}

int cmd_query_srq(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	struct srq *srq = numtab_get(&dev->srqs, le32toh(dev->cmdq.cmd.object.number));
	struct skua_srq_attr out = { 0 };

	if (!srq)
		return SKUA_CMD_BAD_OBJECT;
	out.limit = htole32(srq->limit);
	out.log_size = (uint8_t)__builtin_ctz(srq->rq.size);
	out.error = srq->error;
	return cmd_output(dev, cpl, &out, sizeof(out));
}

static void srq_free(struct skua_dev *dev, struct srq *srq)
{
	srq->rq.pd->refs--;
	if (srq->xrcd)
		srq->xrcd->srqs--;
	if (srq->cq)
		srq->cq->refs--;
	numtab_del(&dev->srqs, srq->number);
	unmake(dev, srq);
}

int cmd_destroy_srq(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	struct srq *srq = numtab_get(&dev->srqs, le32toh(dev->cmdq.cmd.object.number));
	int32_t budget = STEP_COST;

	(void)cpl;
	if (!srq)
		return SKUA_CMD_BAD_OBJECT;
	if (srq->refs)
		return SKUA_CMD_BUSY;
	if (srq->xrcd && !xrcd_forget_srq(srq))
		return -1;
	if (!forget_returned(srq, &budget))
		return -1;
	srq_free(dev, srq);
	return SKUA_CMD_OK;
}

bool srq_free_all(struct skua_dev *dev, int32_t *budget)
{
	struct srq *srq;

	while ((srq = numtab_any(&dev->srqs, budget)) && forget_returned(srq, budget)) {
		srq_free(dev, srq);
		*budget -= FREE_COST;
	}
	return !dev->srqs.count;
}
