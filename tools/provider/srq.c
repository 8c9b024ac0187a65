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
#include "tm.h"

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

static void skua_srq_fill_req(const struct skua_srq *srq, struct skua_create_srq_req *req)
{
	req->buf_addr = (uintptr_t)srq->ring.addr;
	req->dbr_addr = (uintptr_t)srq->dbr;
	req->srq_handle = (uintptr_t)srq;
	req->log_size = __builtin_ctz(srq->size);
	req->log_stride = srq->log_stride;
}

static int skua_srq_cmd_create(struct ibv_pd *ibv_pd, struct skua_srq *srq,
			       struct ibv_srq_init_attr *attr)
{
	struct skua_cmd_create_srq_resp resp = {};
	struct skua_cmd_create_srq cmd = {};

	skua_srq_fill_req(srq, &cmd.drv_payload);
	return ibv_cmd_create_srq(ibv_pd, &srq->vsrq.srq, attr, &cmd.ibv_cmd, sizeof(cmd),
				  &resp.ibv_resp, sizeof(resp));
}

static struct skua_srq *skua_srq_new(struct ibv_pd *ibv_pd, const struct ibv_srq_attr *asked)
{
	struct skua_context *ctx = to_skua_context(ibv_pd->context);
	struct skua_pd *pd = to_skua_pd(ibv_pd);
	struct skua_srq *srq;
	int err;

	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;
	err = skua_srq_size(&ctx->caps, srq, asked);
	if (err)
		goto err_free;
	/* Also in a thread domain: whoever polls a CQ outside of it retires entries. */
	skua_lock_init(&srq->lock, true);
	err = skua_srq_alloc(ctx, srq, pd);
	if (err)
		goto err_free;
	srq->pd = pd;
	skua_pd_hold(pd);
	return srq;

err_free:
	free(srq);
	errno = err;
	return NULL;
}

static void skua_srq_delete(struct skua_srq *srq)
{
	skua_tm_delete(srq->tm);
	skua_srq_free(srq);
	skua_pd_put(srq->pd);
	free(srq);
}

struct ibv_srq *skua_create_srq(struct ibv_pd *ibv_pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr made = *attr;
	struct skua_srq *srq;
	int err;

	srq = skua_srq_new(ibv_pd, &attr->attr);
	if (!srq)
		return NULL;
	made.attr.max_wr = srq->size;
	made.attr.max_sge = srq->max_sge;
	made.attr.srq_limit = 0;	/* of no meaning here: a program may leave anything there */
	err = skua_srq_cmd_create(ibv_pd, srq, &made);
	if (err) {
		skua_srq_delete(srq);
		errno = err;
		return NULL;
	}
	attr->attr.max_wr = made.attr.max_wr;
	attr->attr.max_sge = made.attr.max_sge;
	return &srq->vsrq.srq;
}

static int skua_srq_cmd_create_ex(struct skua_srq *srq, struct ibv_srq_init_attr_ex *attr)
{
	struct skua_cmd_create_xsrq_resp resp = {};
	struct skua_cmd_create_xsrq cmd = {};

	skua_srq_fill_req(srq, &cmd.drv_payload);
	return ibv_cmd_create_srq_ex(attr->pd->context, &srq->vsrq, attr, &cmd.ibv_cmd, sizeof(cmd), &resp.ibv_resp,
				     sizeof(resp));
}

struct skua_srq *skua_srq_create_ex(struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq_init_attr_ex made = *attr;
	struct skua_srq *srq;
	int err;

	srq = skua_srq_new(attr->pd, &attr->attr);
	if (!srq)
		return NULL;
	made.attr.max_wr = srq->size;
	made.attr.max_sge = srq->max_sge;
	made.attr.srq_limit = 0;	/* of no meaning here: a program may leave anything there */
	err = skua_srq_cmd_create_ex(srq, &made);
	if (err) {
		skua_srq_delete(srq);
		errno = err;
		return NULL;
	}
	srq->vsrq.srq.srq_context = attr->srq_context;
	srq->vsrq.srq.pd = attr->pd;
	attr->attr.max_wr = made.attr.max_wr;
	attr->attr.max_sge = made.attr.max_sge;
	return srq;
}

#define SKUA_XRC_SRQ_NEEDS	(IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD | \
				 IBV_SRQ_INIT_ATTR_CQ)

/* libibverbs makes SRQs of the basic type by skua_create_srq(), if nothing but a PD comes with them. */
struct ibv_srq *skua_create_srq_ex(struct ibv_context *ibv_ctx, struct ibv_srq_init_attr_ex *attr)
{
	struct skua_srq *srq;

	if (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && attr->srq_type == IBV_SRQT_TM)
		return skua_create_tm_srq(ibv_ctx, attr);
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) || attr->srq_type != IBV_SRQT_XRC ||
	    attr->comp_mask & ~SKUA_XRC_SRQ_NEEDS || !skua_has_xrc(to_skua_context(ibv_ctx))) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (attr->comp_mask != SKUA_XRC_SRQ_NEEDS) {
		errno = EINVAL;
		return NULL;
	}
	srq = skua_srq_create_ex(attr);
	return srq ? &srq->vsrq.srq : NULL;
}

int skua_get_srq_num(struct ibv_srq *ibv_srq, uint32_t *srq_num)
{
	const struct skua_srq *srq = to_skua_srq(ibv_srq);

	if (srq->vsrq.srq_type != IBV_SRQT_XRC)
		return EOPNOTSUPP;
	*srq_num = srq->vsrq.srq_num;
	return 0;
}

int skua_destroy_srq(struct ibv_srq *ibv_srq)
{
	struct skua_srq *srq = to_skua_srq(ibv_srq);
	int err;

	if (srq->tm) {
		err = skua_tm_stop(srq->tm);
		if (err)
			return err;
	}
	err = ibv_cmd_destroy_srq(ibv_srq);
	if (err)
		return err;
	/* The device writes no more of them. CQEs of a basic SRQ go with its QPs, which went before. */
	if (srq->vsrq.cq)
		skua_cq_purge_srq(to_skua_cq(srq->vsrq.cq), srq);
	skua_srq_delete(srq);
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
