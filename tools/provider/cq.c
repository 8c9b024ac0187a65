// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Completion queues: making, changing, arming and destroying them. Polling is in poll.c. */
#include <errno.h>
#include <stdlib.h>

#include <ccan/minmax.h>
#include <util/util.h>

#include "skua.h"
#include "skua-abi.h"
#include "tm.h"

static int skua_cq_alloc_ring(struct skua_context *ctx, struct skua_cq *cq, uint32_t cqe)
{
	struct skua_cq_ring *ring = &cq->ring;
	size_t cqes_size;
	int err;

	skua_cq_set_size(ring, roundup_pow_of_two(cqe));
	cqes_size = (size_t)ring->size * sizeof(*ring->cqes);
	err = skua_buf_alloc(ctx, cq->domain, &cq->buf, cqes_size + sizeof(*ring->dbr));
	if (err)
		return err;

	ring->cqes = cq->buf.addr;
	ring->dbr = (void *)((char *)cq->buf.addr + cqes_size);
	return 0;
}

static int skua_cq_cmd_create(struct ibv_context *ibv_ctx, struct skua_cq *cq,
			      struct ibv_comp_channel *channel, int comp_vector)
{
	struct skua_cmd_create_cq_resp resp = {};
	struct skua_cmd_create_cq cmd = {};
	int err;

	cmd.buf_addr = (uintptr_t)cq->ring.cqes;
	cmd.dbr_addr = (uintptr_t)cq->ring.dbr;
	cmd.log_size = __builtin_ctz(cq->ring.size);
	err = ibv_cmd_create_cq(ibv_ctx, cq->ring.size, channel, comp_vector, &cq->vcq.cq,
				&cmd.ibv_cmd, sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	if (err)
		return err;

	cq->cqn = resp.cqn;
	cq->vcq.cq.cqe = cq->ring.size;
	return 0;
}

static struct skua_cq *skua_cq_create(struct ibv_context *ibv_ctx, uint32_t cqe,
				      struct ibv_comp_channel *channel, int comp_vector,
				      struct skua_pd *domain, bool needs_lock)
{
	struct skua_context *ctx = to_skua_context(ibv_ctx);
	struct skua_cq *cq;
	int err;

	if (!cqe || cqe > ctx->caps.max_cqe) {
		errno = EINVAL;
		return NULL;
	}
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;
	cq->info = ctx->info;
	cq->domain = domain;
	cq->ring.locked_is_full = ctx->locked_is_full;

	skua_lock_init(&cq->lock, needs_lock);
	skua_lock_init(&cq->poll_lock, needs_lock);
	skua_lock_init(&cq->arm_lock, true);
	err = skua_cq_alloc_ring(ctx, cq, cqe);
	if (err)
		goto err_free;
	err = skua_cq_cmd_create(ibv_ctx, cq, channel, comp_vector);
	if (err)
		goto err_buf;

	if (domain)
		skua_pd_hold(domain);
	return cq;

err_buf:
	skua_buf_free(&cq->buf);
err_free:
	free(cq);
	errno = err;
	return NULL;
}

struct ibv_cq *skua_create_cq(struct ibv_context *ibv_ctx, int cqe,
			      struct ibv_comp_channel *channel, int comp_vector)
{
	struct skua_cq *cq;

	if (cqe < 0) {
		errno = EINVAL;
		return NULL;
	}
	cq = skua_cq_create(ibv_ctx, cqe, channel, comp_vector, NULL, true);
	return cq ? &cq->vcq.cq : NULL;
}

#define SKUA_CQ_WC_FLAGS (IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | \
			  IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK | IBV_WC_EX_WITH_FLOW_TAG)

static uint64_t skua_cq_wc_flags(const struct skua_context *ctx)
{
	return SKUA_CQ_WC_FLAGS | (skua_has_tags(ctx) ? IBV_WC_EX_WITH_TM_INFO : 0) |
	       (skua_has_strip_cvlan(ctx) ? IBV_WC_EX_WITH_CVLAN : 0);
}

/*
 * A program that ignores overruns promises that none comes. The device never writes over a CQE that was not polled, so
 * that flag needs nothing: if the promise is broken, the CQ fails all the same (CQ-3).
 */
#define SKUA_CQ_FLAGS	(IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN)

struct ibv_cq_ex *skua_create_cq_ex(struct ibv_context *ibv_ctx,
				    struct ibv_cq_init_attr_ex *attr)
{
	struct skua_pd *domain = NULL;
	bool single = false;
	struct skua_cq *cq;

	if (attr->comp_mask & ~(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD) ||
	    attr->wc_flags & ~skua_cq_wc_flags(to_skua_context(ibv_ctx))) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) {
		if (attr->flags & ~SKUA_CQ_FLAGS) {
			errno = EOPNOTSUPP;
			return NULL;
		}
		single = attr->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	}
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) {
		domain = attr->parent_domain ? to_skua_pd(attr->parent_domain) : NULL;
		if (!domain || domain->ibv_pd.context != ibv_ctx || !domain->contained) {
			errno = EINVAL;
			return NULL;
		}
		single |= domain->td != NULL;
	}

	cq = skua_cq_create(ibv_ctx, attr->cqe, attr->channel, attr->comp_vector, domain, !single);
	if (!cq)
		return NULL;

	skua_cq_fill_ex_ops(&cq->vcq.cq_ex, attr->wc_flags);
	return &cq->vcq.cq_ex;
}

/*
 * The CQEs of a ring for @cqe of them. It takes whole pages, so fewer CQEs than fill one save nothing, and those of
 * WQEs that are not complete yet, which the device cannot count, are likely to have room.
 */
static uint32_t skua_cq_resized(struct skua_context *ctx, uint32_t cqe)
{
	uint32_t page = to_skua_device(ctx->vctx.context.device)->page_size / sizeof(struct skua_cqe);

	return roundup_pow_of_two(max(cqe, min(page, ctx->caps.max_cqe)));
}

/* With the locks held: nobody polls or arms, and the device may begin to write to the new ring at any index. */
static int skua_cq_resize(struct skua_cq *cq, uint32_t cqe)
{
	struct skua_context *ctx = to_skua_context(cq->vcq.cq.context);
	struct skua_cmd_resize_cq_resp resp = {};
	struct skua_cmd_resize_cq cmd = {};
	struct skua_cq_ring ring = {};
	struct skua_buf buf;
	int err;

	skua_cq_set_size(&ring, skua_cq_resized(ctx, cqe));
	err = skua_buf_alloc(ctx, cq->domain, &buf, (size_t)ring.size * sizeof(*ring.cqes));
	if (err)
		return err;
	ring.cqes = buf.addr;
	skua_cq_prepare(&cq->ring, &ring);
	cmd.buf_addr = (uintptr_t)buf.addr;
	cmd.log_size = __builtin_ctz(ring.size);
	err = ibv_cmd_resize_cq(&cq->vcq.cq, ring.size, &cmd.ibv_cmd, sizeof(cmd), &resp.ibv_resp,
				sizeof(resp));
	if (err) {
		skua_buf_free(&buf);
		return err;
	}
	skua_cq_move(&cq->ring, &ring, resp.index);
	/* The record stays where it is, behind the first ring. */
	if (cq->other_buf.addr)
		skua_buf_free(&cq->other_buf);
	cq->other_buf = buf;
	return 0;
}

int skua_resize_cq(struct ibv_cq *ibv_cq, int cqe)
{
	struct skua_cq *cq = to_skua_cq(ibv_cq);
	int err;

	if (cqe <= 0 || (uint32_t)cqe > to_skua_context(ibv_cq->context)->caps.max_cqe)
		return EINVAL;
	skua_lock(&cq->lock);
	skua_lock(&cq->arm_lock);
	err = skua_cq_resize(cq, cqe);
	skua_unlock(&cq->arm_lock);
	skua_unlock(&cq->lock);
	return err;
}

int skua_modify_cq(struct ibv_cq *ibv_cq, struct ibv_modify_cq_attr *attr)
{
	struct ibv_modify_cq cmd = {};

	return ibv_cmd_modify_cq(ibv_cq, attr, &cmd, sizeof(cmd));
}

int skua_destroy_cq(struct ibv_cq *ibv_cq)
{
	struct skua_cq *cq = to_skua_cq(ibv_cq);
	int err;

	err = ibv_cmd_destroy_cq(ibv_cq);
	if (err)
		return err;

	if (cq->other_buf.addr)
		skua_buf_free(&cq->other_buf);
	skua_buf_free(&cq->buf);
	if (cq->domain)
		skua_pd_put(cq->domain);
	free(cq);
	return 0;
}

/* A QP that goes. */
struct skua_leaver {
	uint32_t qpn;
	struct skua_srq *srq;		/* that it has, or NULL */
};

/*
 * A receive of an SRQ is complete all the same (SRQ-7). That of an XRC SRQ stays (XRC-12): the number is then that of a
 * target QP, which may be gone since, and the number in use again. What a tag received stays, too (TAG-14).
 */
static bool skua_cqe_of_qp(const struct skua_cqe *cqe, const void *arg)
{
	const struct skua_leaver *qp = arg;
	uint32_t cookie = le32toh(cqe->cookie);

	if (le32toh(cqe->qpn) != qp->qpn)
		return false;
	if (!(cqe->flags & SKUA_CQE_FROM_SRQ))
		return true;
	if (!qp->srq || le64toh(cqe->qp_handle) != (uintptr_t)qp->srq || skua_cqe_is_of_list(cqe))
		return false;
	if (cqe->opcode == SKUA_CQE_TAG_UNEXPECTED)
		skua_tm_lose(qp->srq);
	if (cookie < qp->srq->cookies)
		skua_srq_complete(qp->srq, cookie);
	return true;
}

/*
 * A thread may get here between its ibv_start_poll() and ibv_end_poll(), as when it destroys a QP
 * whose failure it has just read, and so may others that hold other CQs: none waits for a poll_lock.
 */
void skua_cq_purge(struct skua_cq *cq, uint32_t qpn, struct skua_srq *srq)
{
	const struct skua_leaver qp = { .qpn = qpn, .srq = srq };

	skua_lock(&cq->lock);
	/* Entries of the SRQ are free when the places of their CQEs are: who posts finds one for its CQE. */
	if (srq)
		skua_lock(&srq->lock);
	skua_cq_remove(&cq->ring, skua_cqe_of_qp, &qp);
	if (srq)
		skua_unlock(&srq->lock);
	skua_unlock(&cq->lock);
}

static bool skua_cqe_of_srq(const struct skua_cqe *cqe, const void *arg)
{
	return cqe->flags & SKUA_CQE_FROM_SRQ && le64toh(cqe->qp_handle) == (uintptr_t)arg;
}

void skua_cq_purge_srq(struct skua_cq *cq, const struct skua_srq *srq)
{
	skua_lock(&cq->lock);
	skua_cq_remove(&cq->ring, skua_cqe_of_srq, srq);
	skua_unlock(&cq->lock);
}

int skua_req_notify_cq(struct ibv_cq *ibv_cq, int solicited_only)
{
	struct skua_context *ctx = to_skua_context(ibv_cq->context);
	struct skua_cq *cq = to_skua_cq(ibv_cq);
	uint32_t ci;

	skua_lock(&cq->arm_lock);
	if (skua_cq_arm(&cq->ring, solicited_only, ctx->event_idx, &ci))
		skua_ring(ctx->db, SKUA_DB_CQ_ARM, cq->cqn, ci);
	skua_unlock(&cq->arm_lock);
	return 0;
}

/* The program took an event of this CQ (ibv_get_cq_event()). */
void skua_cq_event(struct ibv_cq *ibv_cq)
{
	struct skua_cq *cq = to_skua_cq(ibv_cq);

	skua_lock(&cq->arm_lock);
	skua_cq_disarm(&cq->ring);
	skua_unlock(&cq->arm_lock);
}
