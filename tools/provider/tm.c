// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Tag matching: making and destroying SRQs with tags, and the QP that brings the operations on the list. */
#include <errno.h>
#include <stdlib.h>

#include "skua.h"
#include "tm.h"

bool skua_tm_takes_qp(const struct ibv_qp_init_attr *attr)
{
	if (!attr->srq || !to_skua_srq(attr->srq)->tm)
		return true;
	return attr->qp_type == IBV_QPT_RC && !attr->cap.max_send_wr;
}

static struct skua_tm *skua_tm_of(struct ibv_srq *ibv_srq)
{
	return ibv_srq ? to_skua_srq(ibv_srq)->tm : NULL;
}

void skua_tm_hold(struct ibv_srq *ibv_srq)
{
	struct skua_tm *tm = skua_tm_of(ibv_srq);

	if (tm)
		__atomic_add_fetch(&tm->users, 1, __ATOMIC_RELAXED);
}

void skua_tm_put(struct ibv_srq *ibv_srq)
{
	struct skua_tm *tm = skua_tm_of(ibv_srq);

	if (tm)
		__atomic_sub_fetch(&tm->users, 1, __ATOMIC_RELAXED);
}

/* From RESET to RTS. It sends no datagrams, and takes none. */
static int skua_tm_start_qp(struct ibv_qp *ibv_qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	int err;

	err = skua_modify_qp(ibv_qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	if (err)
		return err;
	attr.qp_state = IBV_QPS_RTR;
	err = skua_modify_qp(ibv_qp, &attr, IBV_QP_STATE);
	if (err)
		return err;
	attr.qp_state = IBV_QPS_RTS;
	return skua_modify_qp(ibv_qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

/* 0 or an errno. What is there of it after an error is the caller's to stop and to delete. */
static int skua_tm_make_qp(struct skua_tm *tm, struct skua_srq *srq, const struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_qp_init_attr qp_attr = {
		.send_cq = attr->cq, .recv_cq = attr->cq, .srq = &srq->vsrq.srq, .qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = attr->tm_cap.max_ops },
	};

	tm->qp = skua_qp_create(attr->pd, &qp_attr, &(struct skua_qp_extras) {});
	if (!tm->qp)
		return errno;
	/* The ring may have more room, but the program has a CQ for so many. */
	tm->qp->sq.max_wr = attr->tm_cap.max_ops;
	tm->stopped = false;
	tm->ops = calloc(tm->qp->sq.blocks, sizeof(*tm->ops));
	return tm->ops ? skua_tm_start_qp(&tm->qp->vqp.qp) : ENOMEM;
}

static struct skua_tm *skua_tm_new(uint32_t max_tags)
{
	struct skua_tm *tm;

	tm = calloc(1, sizeof(*tm));
	if (!tm)
		return NULL;
	tm->tags = calloc(max_tags, sizeof(*tm->tags));
	if (!tm->tags) {
		free(tm);
		return NULL;
	}
	tm->stopped = true;
	tm->max_tags = max_tags;
	skua_tm_free_numbers(tm);
	return tm;
}

/*
 * The kernel says whether the SRQ is in use, but the QP of the list has to go first, without which a program
 * cannot go on.
 */
int skua_tm_stop(struct skua_tm *tm)
{
	int err;

	if (__atomic_load_n(&tm->users, __ATOMIC_RELAXED))
		return EBUSY;
	if (tm->stopped)
		return 0;
	err = ibv_cmd_destroy_qp(&tm->qp->vqp.qp);
	if (!err)
		tm->stopped = true;
	return err;
}

/* Who polls the CQ may have used the QP and the operations until now. */
void skua_tm_delete(struct skua_tm *tm)
{
	if (!tm)
		return;
	if (tm->qp)
		skua_qp_delete(tm->qp);
	free(tm->ops);
	free(tm->tags);
	free(tm);
}

#define SKUA_TM_SRQ_NEEDS	(IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_CQ | \
				 IBV_SRQ_INIT_ATTR_TM)

static int skua_tm_check_attr(const struct skua_context *ctx, const struct ibv_srq_init_attr_ex *attr)
{
	const struct ibv_tm_cap *cap = &attr->tm_cap;

	if (!skua_has_tags(ctx) || attr->comp_mask & ~SKUA_TM_SRQ_NEEDS)
		return EOPNOTSUPP;
	if (attr->comp_mask != SKUA_TM_SRQ_NEEDS || !cap->max_num_tags || cap->max_num_tags > SKUA_TM_MAX_TAGS ||
	    !cap->max_ops || cap->max_ops > ctx->caps.max_qp_wr)
		return EINVAL;
	return 0;
}

/* 0 or an errno; then the SRQ is as one without tags, and may be destroyed so. */
static int skua_tm_add_list(struct skua_srq *srq, const struct ibv_srq_init_attr_ex *attr)
{
	struct skua_tm *tm;
	int err;

	tm = skua_tm_new(attr->tm_cap.max_num_tags);
	if (!tm)
		return ENOMEM;
	err = skua_tm_make_qp(tm, srq, attr);
	if (err) {
		skua_tm_stop(tm);
		skua_tm_delete(tm);
		return err;
	}
	srq->tm = tm;
	return 0;
}

struct ibv_srq *skua_create_tm_srq(struct ibv_context *ibv_ctx, struct ibv_srq_init_attr_ex *attr)
{
	struct skua_srq *srq;
	int err;

	err = skua_tm_check_attr(to_skua_context(ibv_ctx), attr);
	if (err) {
		errno = err;
		return NULL;
	}
	/* Who has no use for unexpected messages may ask for no entries. */
	if (!attr->attr.max_wr)
		attr->attr.max_wr = 1;
	srq = skua_srq_create_ex(attr);
	if (!srq)
		return NULL;
	err = skua_tm_add_list(srq, attr);
	if (err) {
		skua_destroy_srq(&srq->vsrq.srq);
		errno = err;
		return NULL;
	}
	return &srq->vsrq.srq;
}
