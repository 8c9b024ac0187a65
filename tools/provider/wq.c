// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Work queues, and QPs that spread frames over them. A WQ is the receive side of a QP: its CQEs carry the
 * address of that, so that who polls does not know WQs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compat.h"
#include "skua.h"
#include "skua-abi.h"

struct skua_wq {
	struct ibv_wq ibv_wq;
	struct skua_qp *qp;		/* its receive side alone is used */
};

static struct skua_wq *to_skua_wq(struct ibv_wq *ibv_wq)
{
	return container_of(ibv_wq, struct skua_wq, ibv_wq);
}

static int skua_post_wq_recv(struct ibv_wq *ibv_wq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct skua_qp *qp = to_skua_wq(ibv_wq)->qp;
	int err = EINVAL;

	skua_lock(&qp->rq_lock);
	if (ibv_wq->state != IBV_WQS_RESET)
		err = skua_qp_post_recv(qp, wr, bad_wr);
	else
		*bad_wr = wr;
	skua_unlock(&qp->rq_lock);
	return err;
}

static int skua_wq_cmd_create(struct ibv_context *ibv_ctx, struct skua_wq *wq, struct ibv_wq_init_attr *attr)
{
	struct skua_qp *qp = wq->qp;
	struct skua_cmd_create_wq_resp resp = {};
	struct skua_cmd_create_wq cmd = {
		.rq_addr = (uintptr_t)qp->rq.buf,
		.rq_dbr_addr = (uintptr_t)qp->rq.dbr,
		.wq_handle = (uintptr_t)qp,
		.log_rq_size = __builtin_ctz(qp->rq.size),
		.log_rq_stride = qp->rq.log_stride,
	};

	return ibv_cmd_create_wq(ibv_ctx, attr, &wq->ibv_wq, &cmd.ibv_cmd, sizeof(cmd), &resp.ibv_resp, sizeof(resp));
}

struct ibv_wq *skua_create_wq(struct ibv_context *ibv_ctx, struct ibv_wq_init_attr *attr)
{
	struct skua_context *ctx = to_skua_context(ibv_ctx);
	struct skua_pd *pd = to_skua_pd(attr->pd);
	struct ibv_qp_cap cap = { .max_recv_wr = attr->max_wr, .max_recv_sge = attr->max_sge };
	struct skua_wq *wq;
	int err;

	if (!attr->max_wr) {
		errno = EINVAL;
		return NULL;
	}
	wq = calloc(1, sizeof(*wq));
	if (!wq)
		return NULL;
	wq->qp = skua_qp_new();
	err = wq->qp ? skua_qp_size_rq(&ctx->caps, wq->qp, &cap) : errno;
	if (err)
		goto err_free;
	skua_qp_init_locks(wq->qp, !pd->td);
	err = skua_qp_alloc_rings(ctx, wq->qp, pd);
	if (err)
		goto err_free;
	err = skua_wq_cmd_create(ibv_ctx, wq, attr);
	if (err)
		goto err_rings;

	wq->qp->pd = pd;
	skua_pd_hold(pd);
	wq->ibv_wq.post_recv = skua_post_wq_recv;
	attr->max_wr = wq->qp->cap.max_recv_wr;
	attr->max_sge = wq->qp->cap.max_recv_sge;
	return &wq->ibv_wq;

err_rings:
	skua_qp_free_rings(wq->qp);
err_free:
	free(wq->qp);
	free(wq);
	errno = err;
	return NULL;
}

int skua_modify_wq(struct ibv_wq *ibv_wq, struct ibv_wq_attr *attr)
{
	struct skua_qp *qp = to_skua_wq(ibv_wq)->qp;
	struct ibv_modify_wq cmd = {};
	int err;

	err = ibv_cmd_modify_wq(ibv_wq, attr, &cmd, sizeof(cmd));
	if (err)
		return err;

	if (attr->attr_mask & IBV_WQ_ATTR_STATE && attr->wq_state == IBV_WQS_RESET) {
		skua_cq_purge(to_skua_cq(ibv_wq->cq), ibv_wq->wq_num, NULL);
		/* From here on nobody posts: the command has set the WQ's state. */
		skua_lock(&qp->rq_lock);
		skua_rq_reset(&qp->rq);
		skua_unlock(&qp->rq_lock);
	}
	return 0;
}

int skua_destroy_wq(struct ibv_wq *ibv_wq)
{
	struct skua_wq *wq = to_skua_wq(ibv_wq);
	int err;

	err = ibv_cmd_destroy_wq(ibv_wq);
	if (err)
		return err;

	skua_cq_purge(to_skua_cq(ibv_wq->cq), ibv_wq->wq_num, NULL);
	skua_qp_free_rings(wq->qp);
	skua_pd_put(wq->qp->pd);
	free(wq->qp);
	free(wq);
	return 0;
}

struct ibv_rwq_ind_table *skua_create_rwq_ind_table(struct ibv_context *ibv_ctx,
						    struct ibv_rwq_ind_table_init_attr *attr)
{
	struct ib_uverbs_ex_create_rwq_ind_table_resp resp = {};
	struct ibv_rwq_ind_table *table;
	int err;

	table = calloc(1, sizeof(*table));
	if (!table)
		return NULL;
	err = ibv_cmd_create_rwq_ind_table(ibv_ctx, attr, table, &resp, sizeof(resp));
	if (err) {
		free(table);
		errno = err;
		return NULL;
	}
	return table;
}

int skua_destroy_rwq_ind_table(struct ibv_rwq_ind_table *table)
{
	int err;

	err = ibv_cmd_destroy_rwq_ind_table(table);
	if (!err)
		free(table);
	return err;
}

/* It has no queues: as an XRC_RECV QP, but that its kind of creation is another one. */
struct ibv_qp *skua_create_rss_qp(struct ibv_context *ibv_ctx, struct ibv_qp_init_attr_ex *attr)
{
	const struct ibv_rx_hash_conf *conf = &attr->rx_hash_conf;
	struct ib_uverbs_ex_create_qp_resp resp = {};
	struct skua_cmd_create_rss_qp cmd = {
		.fields = conf->rx_hash_fields_mask,
		.function = conf->rx_hash_function,
		.key_len = conf->rx_hash_key_len,
	};
	struct skua_qp *qp;
	int err;

	if (conf->rx_hash_key_len != sizeof(cmd.key)) {
		errno = EINVAL;
		return NULL;
	}
	memcpy(cmd.key, conf->rx_hash_key, sizeof(cmd.key));
	qp = skua_qp_new();
	if (!qp)
		return NULL;
	skua_qp_init_locks(qp, true);
	err = skua_cmd_create_qp_ex2(ibv_ctx, &qp->vqp, attr, &cmd.ibv_cmd, sizeof(cmd), &resp,
				     sizeof(resp));
	if (err) {
		free(qp);
		errno = err;
		return NULL;
	}
	return &qp->vqp.qp;
}
