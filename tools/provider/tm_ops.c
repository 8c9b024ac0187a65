// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tag matching: posting operations on the list, and polling what completes them and the tags.
 *
 * An operation has a CQE if the program asks for it, if the number of its tag is free only then (TAG_DEL), or if the
 * SQ needs one to get its blocks back (CQE-5). The program does not see those that it did not ask for, unless they
 * tell of an error; that a tag was not in the list any more is none.
 */
#include <errno.h>

#include "skua.h"
#include "tm.h"

static_assert(SKUA_CQE_TM_ERR == (int)IBV_WC_TM_ERR && SKUA_CQE_TM_RNDV_INCOMPLETE == (int)IBV_WC_TM_RNDV_INCOMPLETE,
	      "a CQE's status is verbs' status");
static_assert(sizeof(struct skua_wqe_ctrl) + sizeof(struct skua_wqe_tag) == SKUA_WQE_BLOCK,
	      "an operation is one block, which the end of the ring does not cut");

void skua_tm_free_numbers(struct skua_tm *tm)
{
	uint32_t i;

	for (i = 0; i < tm->max_tags; i++)
		tm->tags[i].next = i + 1;
	tm->free = 0;
}

static uint32_t skua_tm_handle(const struct skua_tm *tm, uint32_t number)
{
	return (uint32_t)tm->tags[number].generation << 16 | number;
}

/* The tag with this handle, or NULL if there is none any more. */
static struct skua_tm_tag *skua_tm_find(const struct skua_tm *tm, uint32_t handle)
{
	uint32_t number = handle & SKUA_TAG_NUMBER;

	if (number >= tm->max_tags || !tm->tags[number].used || skua_tm_handle(tm, number) != handle)
		return NULL;
	return &tm->tags[number];
}

/* The number of the tag with this handle is free. */
static void skua_tm_retire_tag(struct skua_tm *tm, uint32_t handle)
{
	struct skua_tm_tag *tag = skua_tm_find(tm, handle);

	if (!tag)
		return;
	tag->used = false;
	tag->generation++;
	tag->next = tm->free;
	tm->free = handle & SKUA_TAG_NUMBER;
}

/* Has the next operation to have a CQE? In each half of the ring there is one that has. */
static bool skua_tm_is_signaled(struct skua_tm *tm, uint8_t opcode, bool asked)
{
	tm->silent++;
	if (!asked && opcode != SKUA_WQE_TAG_DEL && 2 * tm->silent < tm->qp->sq.max_wr)
		return false;
	tm->silent = 0;
	return true;
}

/* Build an operation, in an SQ that is not full. */
static struct skua_wqe_tag *skua_tm_add_op(struct skua_tm *tm, const struct ibv_ops_wr *op, uint8_t opcode,
					   uint32_t handle)
{
	bool asked = op->flags & IBV_OPS_SIGNALED, count = op->flags & IBV_OPS_TM_SYNC;
	struct skua_sq *sq = &tm->qp->sq;
	struct skua_wqe_tag *seg;
	struct skua_wqe wqe;

	tm->ops[sq->pi & sq->mask] = (struct skua_tm_op) { .handle = handle, .asked = asked };
	skua_wqe_begin(sq, &wqe, op->wr_id, opcode, skua_tm_is_signaled(tm, opcode, asked) ? SKUA_WQE_SIGNALED : 0);
	seg = skua_wqe_add_header(&wqe, sizeof(*seg));
	*seg = (struct skua_wqe_tag) {
		.handle = htole32(handle),
		.unexpected = htole32(count ? op->tm.unexpected_cnt + tm->lost : 0),
		.flags = htole32(count ? SKUA_TAG_COUNT : 0),
	};
	skua_wqe_end(sq, &wqe, 0, 0);
	return seg;
}

static int skua_tm_add(struct skua_tm *tm, struct ibv_ops_wr *op)
{
	const struct ibv_sge *sge = op->tm.add.sg_list;
	uint32_t number = tm->free;
	struct skua_wqe_tag *seg;
	struct skua_tm_tag *tag;

	if ((uint32_t)op->tm.add.num_sge > 1)
		return EINVAL;
	if (number == tm->max_tags)
		return ENOMEM;
	tag = &tm->tags[number];
	tm->free = tag->next;
	tag->used = true;
	tag->wr_id = op->tm.add.recv_wr_id;
	op->tm.handle = skua_tm_handle(tm, number);

	seg = skua_tm_add_op(tm, op, SKUA_WQE_TAG_ADD, op->tm.handle);
	seg->tag = htole64(op->tm.add.tag);
	seg->mask = htole64(op->tm.add.mask);
	if (op->tm.add.num_sge)
		skua_sge_set(&seg->sge, sge->addr, sge->length, sge->lkey);
	return 0;
}

static int skua_tm_build(struct skua_tm *tm, struct ibv_ops_wr *op)
{
	if (tm->stopped || op->flags & ~(IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC))
		return EINVAL;
	if (skua_sq_full(&tm->qp->sq))
		return ENOMEM;
	switch (op->opcode) {
	case IBV_WR_TAG_ADD:
		return skua_tm_add(tm, op);
	case IBV_WR_TAG_DEL:
		if (!skua_tm_find(tm, op->tm.handle))
			return EINVAL;
		skua_tm_add_op(tm, op, SKUA_WQE_TAG_DEL, op->tm.handle);
		return 0;
	case IBV_WR_TAG_SYNC:
		skua_tm_add_op(tm, op, SKUA_WQE_TAG_SYNC, 0);
		return 0;
	default:
		return EINVAL;
	}
}

int skua_post_srq_ops(struct ibv_srq *ibv_srq, struct ibv_ops_wr *op, struct ibv_ops_wr **bad_op)
{
	struct skua_srq *srq = to_skua_srq(ibv_srq);
	struct skua_tm *tm = srq->tm;
	int err = 0;

	if (!tm) {
		*bad_op = op;
		return EINVAL;
	}
	skua_lock(&srq->lock);
	for (; op; op = op->next) {
		err = skua_tm_build(tm, op);
		if (err) {
			*bad_op = op;
			break;
		}
	}
	if (!tm->stopped)
		skua_sq_commit(tm->qp);
	skua_unlock(&srq->lock);
	return err;
}

static struct skua_srq *skua_tm_srq(const struct skua_cqe *cqe)
{
	return (void *)(uintptr_t)le64toh(cqe->qp_handle);
}

static uint32_t skua_tm_slot(const struct skua_tm *tm, const struct skua_cqe *cqe)
{
	return le32toh(cqe->cookie) & tm->qp->sq.mask;
}

/* With the SRQ's lock held. A tag that was not added, or was taken out, has no CQE of its own. */
static uint64_t skua_tm_retire_op(struct skua_tm *tm, const struct skua_cqe *cqe)
{
	uint32_t i = skua_tm_slot(tm, cqe);
	const struct skua_sq_slot *slot = &tm->qp->sq.slots[i];
	uint64_t wr_id = slot->wr_id;

	if ((cqe->opcode == SKUA_CQE_TAG_ADD && cqe->status) || (cqe->opcode == SKUA_CQE_TAG_DEL && !cqe->status))
		skua_tm_retire_tag(tm, tm->ops[i].handle);
	skua_sq_retire(&tm->qp->sq, slot);
	return wr_id;
}

/* With the SRQ's lock held. There may be another CQE of it, but not after an error. */
static uint64_t skua_tm_complete_tag(struct skua_tm *tm, const struct skua_cqe *cqe)
{
	uint32_t handle = le32toh(cqe->cookie);
	const struct skua_tm_tag *tag = skua_tm_find(tm, handle);
	uint64_t wr_id = tag ? tag->wr_id : 0;

	if (cqe->status || cqe->flags & SKUA_CQE_TAG_DATA)
		skua_tm_retire_tag(tm, handle);
	return wr_id;
}

uint64_t skua_tm_take(struct skua_cq *cq, const struct skua_cqe *next)
{
	const struct skua_cqe cqe = *next;
	struct skua_srq *srq = skua_tm_srq(&cqe);
	uint64_t wr_id;

	skua_cq_consume(&cq->ring);
	if (!skua_cqe_is_of_list(&cqe))
		return skua_srq_retire(srq, le32toh(cqe.cookie));
	skua_lock(&srq->lock);
	if (skua_cqe_is_tm_op(&cqe))
		wr_id = skua_tm_retire_op(srq->tm, &cqe);
	else
		wr_id = skua_tm_complete_tag(srq->tm, &cqe);
	skua_unlock(&srq->lock);
	return wr_id;
}

bool skua_tm_swallow(struct skua_cq *cq, const struct skua_cqe *cqe)
{
	const struct skua_tm *tm;

	if (!skua_cqe_is_tm_op(cqe) || (cqe->status && cqe->status != SKUA_CQE_TM_ERR))
		return false;
	/* Written before the device could know of the operation, whose place it keeps. */
	tm = skua_tm_srq(cqe)->tm;
	if (tm->ops[skua_tm_slot(tm, cqe)].asked)
		return false;
	skua_tm_take(cq, cqe);
	return true;
}
