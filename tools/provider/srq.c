// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Shared receive queues: making, changing and destroying them, posting to them.
 *
 * QPs complete entries in any order. What frees a slot of the ring is the count of completions
 * (SRQ-5); what tells entries apart are cookies, which are kept in a list of their own.
 */
#include <errno.h>
#include <stdlib.h>

#include <util/util.h>

#include "skua.h"
#include "skua-abi.h"

static int skua_srq_size(const struct skua_alloc_ucontext_resp *caps, struct skua_srq *srq,
			 const struct ibv_srq_attr *asked)
{
	uint32_t sges = asked->max_sge ? asked->max_sge : 1;
	uint32_t stride;

	if (!caps->max_srq_wr)
		return EOPNOTSUPP;
	if (!asked->max_wr || asked->max_wr > caps->max_srq_wr || asked->max_sge > caps->max_recv_sge)
		return EINVAL;
	stride = roundup_pow_of_two(sizeof(struct skua_rqe) + sges * sizeof(struct skua_sge));
	srq->log_stride = __builtin_ctz(stride);
	srq->size = roundup_pow_of_two(asked->max_wr);
	srq->max_sge = (stride - sizeof(struct skua_rqe)) / sizeof(struct skua_sge);
	if (srq->max_sge > caps->max_recv_sge)
		srq->max_sge = caps->max_recv_sge;
	return 0;
}

/* Room for @size entries: the cookies from @first on are free, and lead to @next. */
static void skua_srq_free_cookies(struct skua_srq *srq, uint32_t first, uint32_t size, uint32_t next)
{
	uint32_t i;

	for (i = first; i < size; i++)
		srq->wrs[i].next = i + 1;
	srq->wrs[size - 1].next = next;
	srq->free = first;
	srq->cookies = size;
}

static int skua_srq_alloc(struct skua_context *ctx, struct skua_srq *srq, struct skua_pd *pd)
{
	int err;

	srq->wrs = calloc(srq->size, sizeof(*srq->wrs));
	if (!srq->wrs)
		return ENOMEM;
	skua_srq_free_cookies(srq, 0, srq->size, 0);
	err = skua_buf_alloc(ctx, pd, &srq->ring, (size_t)srq->size << srq->log_stride);
	if (err)
		goto err_wrs;
	/* Apart from the ring, in whose place another may come. */
	err = skua_buf_alloc(ctx, pd, &srq->record, sizeof(*srq->dbr));
	if (err)
		goto err_ring;
	srq->dbr = srq->record.addr;
	return 0;

err_ring:
	skua_buf_free(&srq->ring);
err_wrs:
	free(srq->wrs);
	return err;
}

static void skua_srq_free(struct skua_srq *srq)
{
	skua_buf_free(&srq->record);
	skua_buf_free(&srq->ring);
	free(srq->wrs);
}

static int skua_srq_cmd_create(struct ibv_pd *ibv_pd, struct skua_srq *srq,
			       struct ibv_srq_init_attr *attr)
{
	struct skua_cmd_create_srq_resp resp = {};
	struct skua_cmd_create_srq cmd = {};

	cmd.buf_addr = (uintptr_t)srq->ring.addr;
	cmd.dbr_addr = (uintptr_t)srq->dbr;
	cmd.srq_handle = (uintptr_t)srq;
	cmd.log_size = __builtin_ctz(srq->size);
	cmd.log_stride = srq->log_stride;
	return ibv_cmd_create_srq(ibv_pd, &srq->vsrq.srq, attr, &cmd.ibv_cmd, sizeof(cmd),
				  &resp.ibv_resp, sizeof(resp));
}

struct ibv_srq *skua_create_srq(struct ibv_pd *ibv_pd, struct ibv_srq_init_attr *attr)
{
	struct skua_context *ctx = to_skua_context(ibv_pd->context);
	struct skua_pd *pd = to_skua_pd(ibv_pd);
	struct ibv_srq_init_attr made = *attr;
	struct skua_srq *srq;
	int err;

	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;
	err = skua_srq_size(&ctx->caps, srq, &attr->attr);
	if (err)
		goto err_free;
	skua_lock_init(&srq->lock, !pd->td);
	err = skua_srq_alloc(ctx, srq, pd);
	if (err)
		goto err_free;
	made.attr.max_wr = srq->size;
	made.attr.max_sge = srq->max_sge;
	err = skua_srq_cmd_create(ibv_pd, srq, &made);
	if (err)
		goto err_queue;

	srq->pd = pd;
	skua_pd_hold(pd);
	attr->attr = made.attr;
	return &srq->vsrq.srq;

err_queue:
	skua_srq_free(srq);
err_free:
	free(srq);
	errno = err;
	return NULL;
}

int skua_destroy_srq(struct ibv_srq *ibv_srq)
{
	struct skua_srq *srq = to_skua_srq(ibv_srq);
	int err;

	err = ibv_cmd_destroy_srq(ibv_srq);
	if (err)
		return err;
	skua_srq_free(srq);
	skua_pd_put(srq->pd);
	free(srq);
	return 0;
}

int skua_query_srq(struct ibv_srq *ibv_srq, struct ibv_srq_attr *attr)
{
	struct ibv_query_srq cmd = {};

	return ibv_cmd_query_srq(ibv_srq, attr, &cmd, sizeof(cmd));
}

/* Cookies for @size entries, if there are fewer. 0 or an errno. */
static int skua_srq_grow_cookies(struct skua_srq *srq, uint32_t size)
{
	uint32_t first = srq->cookies, next = srq->free;
	struct skua_srq_wr *wrs;

	if (size <= first)
		return 0;
	wrs = realloc(srq->wrs, size * sizeof(*wrs));
	if (!wrs)
		return ENOMEM;
	srq->wrs = wrs;
	skua_srq_free_cookies(srq, first, size, next);
	return 0;
}

/* The entries that the device may not have taken go to the same indices of the new ring. */
static void skua_srq_copy(const struct skua_srq *srq, char *ring, uint32_t size)
{
	uint32_t i;

	for (i = srq->ci; i != srq->pi; i++)
		memcpy(ring + ((size_t)(i & (size - 1)) << srq->log_stride),
		       skua_srq_slot(srq, i), (size_t)1 << srq->log_stride);
}

/* With the lock held: nobody posts, and the device may begin to read there at any entry. */
static int skua_srq_resize(struct skua_srq *srq, struct ibv_srq_attr *attr, int attr_mask)
{
	struct skua_context *ctx = to_skua_context(srq->vsrq.srq.context);
	uint32_t size = roundup_pow_of_two(attr->max_wr);
	struct skua_cmd_modify_srq cmd = {};
	struct ibv_srq_attr made = *attr;
	struct skua_buf ring;
	int err;

	if (srq->pi - srq->ci > size)
		return EINVAL;
	err = skua_srq_grow_cookies(srq, size);
	if (err)
		return err;
	err = skua_buf_alloc(ctx, srq->pd, &ring, (size_t)size << srq->log_stride);
	if (err)
		return err;
	skua_srq_copy(srq, ring.addr, size);
	made.max_wr = size;
	cmd.buf_addr = (uintptr_t)ring.addr;
	cmd.log_size = __builtin_ctz(size);
	err = ibv_cmd_modify_srq(&srq->vsrq.srq, &made, attr_mask, &cmd.ibv_cmd, sizeof(cmd));
	if (err) {
		skua_buf_free(&ring);
		return err;
	}
	skua_buf_free(&srq->ring);
	srq->ring = ring;
	srq->size = size;
	return 0;
}

int skua_modify_srq(struct ibv_srq *ibv_srq, struct ibv_srq_attr *attr, int attr_mask)
{
	struct skua_srq *srq = to_skua_srq(ibv_srq);
	struct ibv_modify_srq cmd = {};
	int err;

	if (!(attr_mask & IBV_SRQ_MAX_WR))
		return ibv_cmd_modify_srq(ibv_srq, attr, attr_mask, &cmd, sizeof(cmd));
	if (!attr->max_wr || attr->max_wr > to_skua_context(ibv_srq->context)->caps.max_srq_wr)
		return EINVAL;
	skua_lock(&srq->lock);
	err = skua_srq_resize(srq, attr, attr_mask);
	skua_unlock(&srq->lock);
	return err;
}

static inline int skua_srq_build(struct skua_srq *srq, const struct ibv_recv_wr *wr)
{
	uint32_t num_sge = wr->num_sge;
	struct skua_sge *sge;
	uint32_t i;

	if (unlikely(num_sge > srq->max_sge))
		return EINVAL;
	if (unlikely(srq->pi - srq->ci >= srq->size))
		return ENOMEM;

	sge = skua_srq_begin(srq, wr->wr_id, num_sge);
	for (i = 0; i < num_sge; i++)
		skua_sge_set(&sge[i], wr->sg_list[i].addr, wr->sg_list[i].length,
			     wr->sg_list[i].lkey);
	return 0;
}

int skua_post_srq_recv(struct ibv_srq *ibv_srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct skua_srq *srq = to_skua_srq(ibv_srq);
	int err = 0;

	skua_lock(&srq->lock);
	for (; wr; wr = wr->next) {
		err = skua_srq_build(srq, wr);
		if (unlikely(err)) {
			*bad_wr = wr;
			break;
		}
	}
	skua_dbr_publish(srq->dbr, srq->pi);
	skua_unlock(&srq->lock);
	return err;
}
