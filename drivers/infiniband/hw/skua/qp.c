// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Queue pairs: making and destroying them, their states and attributes, their events. Posting
 * is in post.c.
 */
#include <linux/log2.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>

#include <linux/skua/command.h>
#include <linux/skua/memory.h>
#include <linux/skua/queue.h>
#include <rdma/skua-abi.h>

#include "ah.h"
#include "cq.h"
#include "flush.h"
#include "mr.h"
#include "pd.h"
#include "qp.h"
#include "rate.h"
#include "rss.h"
#include "skua_ib.h"
#include "srq.h"
#include "ucontext.h"
#include "xrcd.h"

/*
 * What a QP may grant its peer. A right to an operation that the device does not have grants
 * nothing, and other drivers take it without a word, so that programs ask for all of them. That
 * memory is on demand is said of regions, but programs use the flags of a region here, too.
 */
#define SKUA_IB_QP_ACCESS (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |	\
			   IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC |	\
			   IB_ACCESS_MW_BIND | IB_ACCESS_FLUSH_GLOBAL |		\
			   IB_ACCESS_FLUSH_PERSISTENT | IB_ACCESS_ON_DEMAND |	\
			   IB_ACCESS_OPTIONAL)

/* The numbers of states are those of Linux. */
static_assert((int)SKUA_QPS_RESET == (int)IB_QPS_RESET);
static_assert((int)SKUA_QPS_RTS == (int)IB_QPS_RTS);
static_assert((int)SKUA_QPS_ERR == (int)IB_QPS_ERR);

/* Types that verbs and device both have; where the feature is missing, the type is. */
static const struct {
	enum skua_qp_type hw;
	u8 feature;
} skua_ib_qp_types[] = {
	[IB_QPT_RC]	= { SKUA_QPT_RC, SKUA_F_RC },
	[IB_QPT_UC]	= { SKUA_QPT_UC, SKUA_F_UC },
	[IB_QPT_UD]	= { SKUA_QPT_UD, SKUA_F_UD },
	[IB_QPT_GSI]	= { SKUA_QPT_GSI, SKUA_F_UD },
	[IB_QPT_XRC_INI] = { SKUA_QPT_XRC_INI, SKUA_F_XRC },
	[IB_QPT_XRC_TGT] = { SKUA_QPT_XRC_TGT, SKUA_F_XRC },
	[IB_QPT_RAW_PACKET] = { SKUA_QPT_ETH, SKUA_F_RAW_PACKET },
};

bool skua_ib_has_type(const struct skua_dev *dev, enum ib_qp_type type)
{
	return type < ARRAY_SIZE(skua_ib_qp_types) && skua_ib_qp_types[type].hw &&
	       skua_has(dev, skua_ib_qp_types[type].feature);
}

static void skua_ib_qp_event(struct skua_obj_watch *watch, u8 type)
{
	static const enum ib_event_type events[] = {
		[SKUA_EVENT_QP_FATAL]		= IB_EVENT_QP_FATAL,
		[SKUA_EVENT_QP_REQ_ERR]		= IB_EVENT_QP_REQ_ERR,
		[SKUA_EVENT_QP_ACCESS_ERR]	= IB_EVENT_QP_ACCESS_ERR,
		[SKUA_EVENT_COMM_EST]		= IB_EVENT_COMM_EST,
		[SKUA_EVENT_SQ_DRAINED]		= IB_EVENT_SQ_DRAINED,
		[SKUA_EVENT_LAST_WQE_REACHED]	= IB_EVENT_QP_LAST_WQE_REACHED,
	};
	struct skua_ib_qp *qp = container_of(watch, struct skua_ib_qp, watch);
	struct ib_event event = {
		.device = qp->ibqp.device,
		.event = events[type],
		.element.qp = &qp->ibqp,
	};

	if (type == SKUA_EVENT_LAST_WQE_REACHED)
		WRITE_ONCE(qp->last_wqe_told, true);
	if (qp->ibqp.event_handler)
		qp->ibqp.event_handler(&event, qp->ibqp.qp_context);
}

/*
 * The device sends for a QP that receives messages with tags, so its program cannot. A UD QP brings
 * the operations on the list (TAG-2).
 */
static int skua_ib_check_tags(const struct ib_pd *pd, const struct ib_qp_init_attr *attr)
{
	const struct ib_srq *srq = attr->srq;

	if (!srq || srq->srq_type != IB_SRQT_TM)
		return 0;
	if (attr->recv_cq != srq->ext.cq)
		return -EINVAL;
	switch (attr->qp_type) {
	case IB_QPT_RC:
		return attr->cap.max_send_wr ? -EINVAL : 0;
	case IB_QPT_UD:
		return pd != srq->pd || attr->send_cq != srq->ext.cq ? -EINVAL : 0;
	default:
		return -EINVAL;
	}
}

/* Flags that a QP of this type may be created with: IB_QP_CREATE_*. */
static u32 skua_ib_create_flags(const struct skua_dev *dev, enum ib_qp_type type)
{
	return type == IB_QPT_RAW_PACKET && skua_ib_has_strip_cvlan(dev) ?
	       IB_QP_CREATE_CVLAN_STRIPPING : 0;
}

static int skua_ib_check_create(struct skua_dev *dev, const struct ib_pd *pd,
				const struct ib_qp_init_attr *attr, bool user)
{
	const struct skua_limits *limits = &dev->limits;
	const struct ib_qp_cap *cap = &attr->cap;

	if (!skua_ib_has_type(dev, attr->qp_type) ||
	    attr->create_flags & ~skua_ib_create_flags(dev, attr->qp_type))
		return -EOPNOTSUPP;
	if (attr->srq && (attr->qp_type == IB_QPT_GSI || attr->qp_type == IB_QPT_RAW_PACKET))
		return -EOPNOTSUPP;
	/* In the kernel the frames are the network stack's. */
	if (attr->qp_type == IB_QPT_RAW_PACKET && !(user && skua_ib_has_raw_packet(dev)))
		return -EOPNOTSUPP;
	/* In the kernel a send cannot name an SRQ of the peer. */
	if (attr->qp_type == IB_QPT_XRC_INI && !(user && skua_ib_has_xrc(dev)))
		return -EOPNOTSUPP;
	if (attr->qp_type == IB_QPT_XRC_TGT && !skua_ib_has_xrc(dev))
		return -EOPNOTSUPP;
	if (cap->max_send_wr > skua_ib_max_qp_wr(dev) ||
	    cap->max_recv_wr > skua_ib_max_qp_wr(dev) ||
	    cap->max_send_sge > limits->max_send_sge ||
	    cap->max_recv_sge > limits->max_recv_sge ||
	    cap->max_inline_data > limits->max_inline)
		return -EINVAL;
	return skua_ib_check_tags(pd, attr);
}

/* Their page lists are needed only for the command. */
int skua_ib_queues_start(struct skua_dev *dev, struct skua_obj_watch *watch,
			 const struct skua_ib_qmem *sq_mem, const struct skua_ib_qmem *rq_mem,
			 struct skua_qp_params *params)
{
	struct skua_pagelist_builder sq, rq;
	int err;

	err = skua_ib_qmem_describe(dev, sq_mem, &sq);
	if (err)
		return err;
	err = skua_ib_qmem_describe(dev, rq_mem, &rq);
	if (err)
		goto out_sq;
	params->sq = &sq.list;
	params->sq_dbr = sq_mem->dbr_dma;
	params->rq = &rq.list;
	params->rq_dbr = rq_mem->dbr_dma;
	err = skua_cmd_create_qp(dev, params, &watch->number);
	skua_pagelist_free(dev, &rq);
out_sq:
	skua_pagelist_free(dev, &sq);
	if (err)
		return err;

	err = skua_qp_watch(dev, watch);
	if (err)
		skua_cmd_destroy_qp(dev, watch->number);
	return err;
}

void skua_ib_queues_stop(struct skua_dev *dev, struct skua_obj_watch *watch)
{
	skua_cmd_destroy_qp(dev, watch->number);
	skua_qp_unwatch(dev, watch);
}

static int skua_ib_qp_start(struct skua_dev *dev, struct skua_ib_qp *qp,
			    struct skua_qp_params *params)
{
	int err;

	qp->watch.event = skua_ib_qp_event;
	err = skua_ib_queues_start(dev, &qp->watch, &qp->sq_mem, &qp->rq_mem, params);
	if (!err)
		qp->ibqp.qp_num = qp->watch.number;
	return err;
}

/* Programs' queues */

static int skua_ib_user_sq_take(struct skua_ib_dev *dev, struct skua_ib_ucontext *ucontext,
				struct skua_ib_qp *qp, const struct skua_create_qp_req *req,
				const struct uverbs_attr_bundle *attrs)
{
	struct ib_umem *umem;

	if (req->flags & SKUA_CREATE_QP_NO_SQ)
		return req->sq_addr || req->sq_dbr_addr || req->log_sq_blocks ||
		       uverbs_attr_is_valid(attrs, UVERBS_ATTR_CREATE_QP_SQ_BUF_UMEM) ?
		       -EINVAL : 0;
	if (req->log_sq_blocks >= 32 ||
	    BIT_ULL(req->log_sq_blocks) > dev->dev->limits.max_sq_blocks)
		return -EINVAL;

	umem = skua_ib_umem_queue(dev, attrs, UVERBS_ATTR_CREATE_QP_SQ_BUF_UMEM, req->sq_addr,
				  BIT_ULL(req->log_sq_blocks) * SKUA_WQE_BLOCK, SKUA_WQE_BLOCK);
	return skua_ib_qmem_take(ucontext, &qp->sq_mem, umem, req->sq_dbr_addr);
}

int skua_ib_user_rq_take(struct skua_ib_dev *dev, struct skua_ib_ucontext *ucontext,
			 const struct uverbs_attr_bundle *attrs, struct skua_ib_qmem *mem,
			 u64 addr, u64 dbr_addr, u8 log_size, u8 log_stride)
{
	struct ib_umem *umem;

	if (log_size >= 32 || BIT_ULL(log_size) > dev->dev->limits.max_rq_entries ||
	    log_stride < SKUA_RQE_MIN_LOG_STRIDE || log_stride > SKUA_RQE_MAX_LOG_STRIDE)
		return -EINVAL;

	umem = skua_ib_umem_queue(dev, attrs, UVERBS_ATTR_CREATE_QP_RQ_BUF_UMEM, addr,
				  BIT_ULL(log_size) << log_stride, BIT(log_stride));
	return skua_ib_qmem_take(ucontext, mem, umem, dbr_addr);
}

static int skua_ib_qp_rq_take(struct skua_ib_dev *dev, struct skua_ib_ucontext *ucontext,
			      struct skua_ib_qp *qp, const struct skua_create_qp_req *req,
			      const struct uverbs_attr_bundle *attrs)
{
	if (qp->ibqp.srq && !(req->flags & SKUA_CREATE_QP_NO_RQ))
		return -EINVAL;
	if (req->flags & SKUA_CREATE_QP_NO_RQ)
		return req->rq_addr || req->rq_dbr_addr || req->log_rq_size ||
		       req->log_rq_stride ||
		       uverbs_attr_is_valid(attrs, UVERBS_ATTR_CREATE_QP_RQ_BUF_UMEM) ?
		       -EINVAL : 0;
	return skua_ib_user_rq_take(dev, ucontext, attrs, &qp->rq_mem, req->rq_addr,
				    req->rq_dbr_addr, req->log_rq_size, req->log_rq_stride);
}

static int skua_ib_user_queues_take(struct skua_ib_dev *dev, struct skua_ib_qp *qp,
				    struct skua_qp_params *params, struct ib_udata *udata)
{
	struct skua_ib_ucontext *ucontext =
		rdma_udata_to_drv_context(udata, struct skua_ib_ucontext, ibucontext);
	struct uverbs_attr_bundle *attrs = rdma_udata_to_uverbs_attr_bundle(udata);
	struct skua_create_qp_req req;
	int err;

	err = ib_copy_validate_udata_in_cm(udata, req, comp_mask, 0);
	if (err)
		return err;
	/* SQ and RQ have buffers of their own. */
	if (uverbs_attr_is_valid(attrs, UVERBS_ATTR_CREATE_QP_BUF_UMEM))
		return -EOPNOTSUPP;
	if (req.flags & ~(SKUA_CREATE_QP_NO_SQ | SKUA_CREATE_QP_NO_RQ))
		return -EINVAL;
	err = skua_ib_user_sq_take(dev, ucontext, qp, &req, attrs);
	if (err)
		return err;
	err = skua_ib_qp_rq_take(dev, ucontext, qp, &req, attrs);
	if (err)
		return err;

	params->db_page = ucontext->db.index;
	params->handle = req.qp_handle;
	params->log_sq_blocks = req.log_sq_blocks;
	params->log_rq_size = req.log_rq_size;
	params->log_rq_stride = req.log_rq_stride;
	return 0;
}

/* The kernel's queues */

/* 64-byte blocks of the longest WQE. */
static u32 skua_ib_wqe_blocks(struct skua_dev *dev, const struct skua_ib_qp *qp)
{
	u32 header = skua_ib_is_datagram(&qp->ibqp) ? sizeof(struct skua_wqe_ud) :
						      sizeof(struct skua_wqe_rdma);
	u32 data = max_t(u32, qp->cap.max_send_sge * sizeof(struct skua_sge),
			 qp->cap.max_inline_data);
	u32 size = header + data;

	/* A masked atomic, which has one SGE, is longer than a WRITE with two. */
	if (qp->ibqp.qp_type == IB_QPT_RC && skua_has(dev, SKUA_F_MASKED_ATOMIC))
		size = max_t(u32, size, sizeof(struct skua_wqe_masked_atomic) +
					sizeof(struct skua_sge));
	return DIV_ROUND_UP(sizeof(struct skua_wqe_ctrl) + size, SKUA_WQE_BLOCK);
}

static int skua_ib_sq_alloc(struct skua_dev *dev, struct skua_ib_qp *qp,
			    struct skua_qp_params *params)
{
	int err;

	if (!qp->cap.max_send_wr)
		return 0;
	qp->sq.blocks = roundup_pow_of_two(qp->cap.max_send_wr * skua_ib_wqe_blocks(dev, qp));
	qp->sq_wrs = kvcalloc(qp->sq.blocks, sizeof(*qp->sq_wrs), GFP_KERNEL);
	qp->sq.nblocks = kvcalloc(qp->sq.blocks, sizeof(*qp->sq.nblocks), GFP_KERNEL);
	if (!qp->sq_wrs || !qp->sq.nblocks)
		return -ENOMEM;
	err = skua_ib_qmem_alloc(dev, &qp->sq_mem, (size_t)qp->sq.blocks * SKUA_WQE_BLOCK);
	if (err)
		return err;
	qp->sq.buf = qp->sq_mem.ring.va;
	qp->sq.dbr = qp->sq_mem.dbr;
	params->log_sq_blocks = ilog2(qp->sq.blocks);
	return 0;
}

static int skua_ib_rq_alloc(struct skua_dev *dev, struct skua_ib_qp *qp,
			    struct skua_qp_params *params)
{
	size_t stride = sizeof(struct skua_rqe) +
			max(qp->cap.max_recv_sge, 1U) * sizeof(struct skua_sge);
	int err;

	if (!qp->cap.max_recv_wr)
		return 0;
	qp->rq.size = roundup_pow_of_two(qp->cap.max_recv_wr);
	/* The whole ring: who fills what it asked for may then find room for ib_drain_rq(). */
	qp->cap.max_recv_wr = qp->rq.size;
	qp->rq.log_stride = order_base_2(stride);
	qp->rq_wr_ids = kvcalloc(qp->rq.size, sizeof(*qp->rq_wr_ids), GFP_KERNEL);
	if (!qp->rq_wr_ids)
		return -ENOMEM;
	err = skua_ib_qmem_alloc(dev, &qp->rq_mem, (size_t)qp->rq.size << qp->rq.log_stride);
	if (err)
		return err;
	qp->rq.buf = qp->rq_mem.ring.va;
	qp->rq.dbr = qp->rq_mem.dbr;
	params->log_rq_size = ilog2(qp->rq.size);
	params->log_rq_stride = qp->rq.log_stride;
	return 0;
}

static int skua_ib_kernel_queues_alloc(struct skua_dev *dev, struct skua_ib_qp *qp,
				       struct skua_qp_params *params)
{
	int err;

	params->privileged = true;
	err = skua_ib_sq_alloc(dev, qp, params);
	return err ?: skua_ib_rq_alloc(dev, qp, params);
}

/* From now on pollers find the QP, and its CQs know whom to flush. */
static int skua_ib_qp_publish(struct skua_ib_dev *dev, struct skua_ib_qp *qp,
			      struct skua_ib_cq *send_cq, struct skua_ib_cq *recv_cq)
{
	int err;

	err = xa_insert(&dev->qps, qp->watch.number, qp, GFP_KERNEL);
	if (err)
		return err;
	spin_lock_irq(&send_cq->lock);
	list_add_tail(&qp->send_node, &send_cq->send_qps);
	spin_unlock_irq(&send_cq->lock);
	spin_lock_irq(&recv_cq->lock);
	list_add_tail(&qp->recv_node, &recv_cq->recv_qps);
	spin_unlock_irq(&recv_cq->lock);
	/* The device may have died meanwhile: with an SRQ the QP is told of its last receive. */
	if (READ_ONCE(dev->dead))
		skua_ib_flush_kick(dev);
	return 0;
}

/* The device writes no more CQEs: take those that are there out of the CQs. */
static void skua_ib_qp_remove_cqes(struct skua_ib_qp *qp)
{
	struct skua_ib_cq *send_cq = to_skua_ib_cq(qp->ibqp.send_cq);
	struct skua_ib_cq *recv_cq = to_skua_ib_cq(qp->ibqp.recv_cq);

	skua_ib_cq_remove_qp(send_cq, qp);
	if (recv_cq != send_cq)
		skua_ib_cq_remove_qp(recv_cq, qp);
}

static void skua_ib_qp_withdraw(struct skua_ib_dev *dev, struct skua_ib_qp *qp)
{
	struct skua_ib_cq *send_cq = to_skua_ib_cq(qp->ibqp.send_cq);
	struct skua_ib_cq *recv_cq = to_skua_ib_cq(qp->ibqp.recv_cq);

	/* No handler is called on its behalf any more: its CQs may go next. */
	mutex_lock(&dev->lock);
	spin_lock_irq(&recv_cq->lock);
	list_del(&qp->recv_node);
	spin_unlock_irq(&recv_cq->lock);
	spin_lock_irq(&send_cq->lock);
	list_del(&qp->send_node);
	spin_unlock_irq(&send_cq->lock);
	skua_ib_qp_remove_cqes(qp);
	mutex_unlock(&dev->lock);
	xa_erase(&dev->qps, qp->watch.number);
}

/* Whoever's they are; what taking or allocating them left when it failed, too. */
static void skua_ib_queues_free(struct skua_dev *dev, struct skua_ib_qp *qp)
{
	skua_ib_qmem_free(dev, &qp->rq_mem);
	skua_ib_qmem_free(dev, &qp->sq_mem);
	kvfree(qp->rq_wr_ids);
	kvfree(qp->sq.nblocks);
	kvfree(qp->sq_wrs);
}

static int skua_ib_qp_respond(struct skua_ib_qp *qp, struct ib_udata *udata)
{
	struct skua_create_qp_resp resp = { .qpn = qp->watch.number };

	return ib_respond_udata(udata, resp);
}

static u32 skua_ib_cqn(struct ib_cq *ibcq)
{
	return ibcq ? to_skua_ib_cq(ibcq)->watch.cqn : 0;
}

/* What the QP is made of. An XRC_TGT QP has a domain, and nothing of a process: others use it. */
static void skua_ib_name_parts(struct ib_qp *ibqp, const struct ib_qp_init_attr *attr,
			       struct skua_qp_params *params)
{
	*params = (struct skua_qp_params) { .type = skua_ib_qp_types[attr->qp_type].hw };
	if (skua_ib_has_no_queues(ibqp)) {
		params->xrcdn = to_skua_ib_xrcd(attr->xrcd)->xrcdn;
		return;
	}
	params->pdn = to_skua_ib_pd(ibqp->pd)->pdn;
	params->send_cqn = skua_ib_cqn(attr->send_cq);
	params->recv_cqn = skua_ib_cqn(attr->recv_cq);
	params->srqn = attr->srq ? to_skua_ib_srq(attr->srq)->watch.number : 0;
}

static int skua_ib_queues_get(struct skua_ib_dev *dev, struct skua_ib_qp *qp,
			      struct skua_qp_params *params, struct ib_udata *udata)
{
	if (skua_ib_has_no_queues(&qp->ibqp))
		return 0;
	return udata ? skua_ib_user_queues_take(dev, qp, params, udata) :
		       skua_ib_kernel_queues_alloc(dev->dev, qp, params);
}

int skua_ib_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	struct skua_ib_dev *dev = to_skua_ib_dev(ibqp->device);
	struct skua_ib_qp *qp = to_skua_ib_qp(ibqp);
	struct skua_qp_params params;
	int err;

	if (skua_ib_is_rss(ibqp))
		return skua_ib_create_rss_qp(ibqp, attr, udata);
	/* With an SRQ, what is asked for of a receive queue is ignored. */
	if (attr->srq) {
		attr->cap.max_recv_wr = 0;
		attr->cap.max_recv_sge = 0;
	}
	if (skua_ib_has_no_queues(ibqp))
		attr->cap = (struct ib_qp_cap) {};
	err = skua_ib_check_create(dev->dev, ibqp->pd, attr, udata);
	if (err)
		return err;
	skua_ib_name_parts(ibqp, attr, &params);
	qp->send_cqn = params.send_cqn;
	qp->recv_cqn = params.recv_cqn;
	mutex_init(&qp->modify_lock);
	spin_lock_init(&qp->sq_lock);
	spin_lock_init(&qp->rq_lock);
	qp->state = IB_QPS_RESET;
	qp->cap = attr->cap;
	qp->sig_all = attr->sq_sig_type == IB_SIGNAL_ALL_WR;
	qp->strip_cvlan = attr->create_flags & IB_QP_CREATE_CVLAN_STRIPPING;

	err = skua_ib_queues_get(dev, qp, &params, udata);
	if (err)
		goto err_queues;
	attr->cap = qp->cap;
	err = skua_ib_qp_start(dev->dev, qp, &params);
	if (err)
		goto err_queues;
	/* What a target QP has taken from an XRC SRQ of the kernel's completes in the SRQ's CQ. */
	if (skua_ib_has_no_queues(ibqp))
		err = xa_insert_irq(&dev->targets, qp->watch.number, qp, GFP_KERNEL);
	else if (udata)
		err = skua_ib_qp_respond(qp, udata);
	else
		err = skua_ib_qp_publish(dev, qp, to_skua_ib_cq(attr->send_cq),
					 to_skua_ib_cq(attr->recv_cq));
	if (err)
		goto err_stop;
	return 0;

err_stop:
	skua_ib_queues_stop(dev->dev, &qp->watch);
err_queues:
	skua_ib_queues_free(dev->dev, qp);
	return err;
}

int skua_ib_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct skua_ib_dev *dev = to_skua_ib_dev(ibqp->device);
	struct skua_ib_qp *qp = to_skua_ib_qp(ibqp);

	if (skua_ib_is_rss(ibqp)) {
		skua_ib_destroy_rss_qp(ibqp);
		return 0;
	}
	skua_ib_queues_stop(dev->dev, &qp->watch);
	if (skua_ib_has_no_queues(ibqp))
		xa_erase_irq(&dev->targets, qp->watch.number);
	else if (!udata)
		skua_ib_qp_withdraw(dev, qp);
	skua_ib_queues_free(dev->dev, qp);
	return 0;
}

/* Modify and query */

static u32 skua_ib_qp_access_to_hw(struct skua_dev *dev, int access)
{
	u32 rights = 0;

	if (access & IB_ACCESS_REMOTE_WRITE)
		rights |= SKUA_ACCESS_REMOTE_WRITE;
	if (access & IB_ACCESS_REMOTE_READ)
		rights |= SKUA_ACCESS_REMOTE_READ;
	if (access & IB_ACCESS_REMOTE_ATOMIC && skua_has(dev, SKUA_F_ATOMIC))
		rights |= SKUA_ACCESS_REMOTE_ATOMIC;
	return rights | skua_ib_flush_rights(dev, access);
}

static int skua_ib_qp_access_to_ib(u32 rights)
{
	int access = 0;

	if (rights & SKUA_ACCESS_REMOTE_WRITE)
		access |= IB_ACCESS_REMOTE_WRITE;
	if (rights & SKUA_ACCESS_REMOTE_READ)
		access |= IB_ACCESS_REMOTE_READ;
	if (rights & SKUA_ACCESS_REMOTE_ATOMIC)
		access |= IB_ACCESS_REMOTE_ATOMIC;
	if (rights & SKUA_ACCESS_FLUSH_GLOBAL)
		access |= IB_ACCESS_FLUSH_GLOBAL;
	if (rights & SKUA_ACCESS_FLUSH_PERSISTENT)
		access |= IB_ACCESS_FLUSH_PERSISTENT;
	return access;
}

/* Bits of verbs that name an attribute of the device by the same meaning. */
static const struct {
	int ib;
	u32 hw;
} skua_ib_attrs[] = {
	{ IB_QP_STATE,			SKUA_QP_ATTR_STATE },
	{ IB_QP_CUR_STATE,		SKUA_QP_ATTR_CUR_STATE },
	{ IB_QP_ACCESS_FLAGS,		SKUA_QP_ATTR_ACCESS },
	{ IB_QP_AV,			SKUA_QP_ATTR_AV },
	{ IB_QP_PATH_MTU,		SKUA_QP_ATTR_PATH_MTU },
	{ IB_QP_TIMEOUT,		SKUA_QP_ATTR_TIMEOUT },
	{ IB_QP_RETRY_CNT,		SKUA_QP_ATTR_RETRY_CNT },
	{ IB_QP_RNR_RETRY,		SKUA_QP_ATTR_RNR_RETRY },
	{ IB_QP_RQ_PSN,			SKUA_QP_ATTR_RQ_PSN },
	{ IB_QP_SQ_PSN,			SKUA_QP_ATTR_SQ_PSN },
	{ IB_QP_MAX_QP_RD_ATOMIC,	SKUA_QP_ATTR_MAX_RD_ATOMIC },
	{ IB_QP_MAX_DEST_RD_ATOMIC,	SKUA_QP_ATTR_MAX_DEST_RD_ATOMIC },
	{ IB_QP_MIN_RNR_TIMER,		SKUA_QP_ATTR_MIN_RNR_TIMER },
	{ IB_QP_DEST_QPN,		SKUA_QP_ATTR_DEST_QPN },
	{ IB_QP_PKEY_INDEX,		SKUA_QP_ATTR_PKEY_INDEX },
	{ IB_QP_QKEY,			SKUA_QP_ATTR_QKEY },
};

/* Fill in what @mask names. Returns the device's mask, or an errno. */
static int skua_ib_qp_attr_to_hw(struct skua_dev *dev, const struct ib_qp_attr *attr, int mask,
				 struct skua_qp_attr *hw)
{
	/* The port is always 1. For rates see rate.c. */
	int rest = mask & ~(IB_QP_PORT | IB_QP_RATE_LIMIT);
	u32 hw_mask = 0;
	unsigned int i;
	int err;

	for (i = 0; i < ARRAY_SIZE(skua_ib_attrs); i++) {
		if (mask & skua_ib_attrs[i].ib)
			hw_mask |= skua_ib_attrs[i].hw;
		rest &= ~skua_ib_attrs[i].ib;
	}
	if (mask & IB_QP_EN_SQD_ASYNC_NOTIFY && attr->en_sqd_async_notify)
		hw_mask |= SKUA_QP_ATTR_SQD_EVENT;
	rest &= ~IB_QP_EN_SQD_ASYNC_NOTIFY;
	/* Alternate paths and the like. */
	if (rest)
		return -EOPNOTSUPP;
	if (mask & IB_QP_ACCESS_FLAGS && attr->qp_access_flags & ~SKUA_IB_QP_ACCESS)
		return -EOPNOTSUPP;

	hw->state = attr->qp_state;
	hw->cur_state = attr->cur_qp_state;
	hw->path_mtu = attr->path_mtu;
	hw->timeout = attr->timeout;
	hw->retry_cnt = attr->retry_cnt;
	hw->rnr_retry = attr->rnr_retry;
	hw->min_rnr_timer = attr->min_rnr_timer;
	hw->access = cpu_to_le32(skua_ib_qp_access_to_hw(dev, attr->qp_access_flags));
	hw->dest_qpn = cpu_to_le32(attr->dest_qp_num);
	hw->rq_psn = cpu_to_le32(attr->rq_psn);
	hw->sq_psn = cpu_to_le32(attr->sq_psn);
	hw->max_rd_atomic = cpu_to_le16(attr->max_rd_atomic);
	hw->max_dest_rd_atomic = cpu_to_le16(attr->max_dest_rd_atomic);
	hw->pkey_index = cpu_to_le16(attr->pkey_index);
	hw->qkey = cpu_to_le32(attr->qkey);
	if (mask & IB_QP_AV) {
		err = skua_ib_set_av(&hw->av, &attr->ah_attr);
		if (err)
			return err;
	}
	return hw_mask;
}

/* The device is at zero, and looks at no record before INIT (DBR-7). */
static void skua_ib_qp_reset_queues(struct skua_ib_qp *qp)
{
	skua_ib_qp_remove_cqes(qp);
	spin_lock_irq(&qp->sq_lock);
	skua_sq_reset(&qp->sq);
	spin_unlock_irq(&qp->sq_lock);
	spin_lock_irq(&qp->rq_lock);
	skua_rq_reset(&qp->rq);
	spin_unlock_irq(&qp->rq_lock);
}

/* Whoever posts looks at the state under the lock of its queue. */
static void skua_ib_qp_set_state(struct skua_ib_qp *qp, enum ib_qp_state state)
{
	spin_lock_irq(&qp->sq_lock);
	spin_lock(&qp->rq_lock);
	qp->state = state;
	spin_unlock(&qp->rq_lock);
	spin_unlock_irq(&qp->sq_lock);
}

static int skua_ib_modify_locked(struct ib_qp *ibqp, const struct ib_qp_attr *attr, int mask,
				 const struct skua_modify_qp_req *req)
{
	struct skua_dev *dev = to_skua_dev(ibqp->device);
	struct skua_ib_qp *qp = to_skua_ib_qp(ibqp);
	enum ib_qp_state was = qp->state;
	enum ib_qp_state cur, next;
	struct skua_qp_attr hw = {};
	int hw_mask, options;
	int err;

	lockdep_assert_held(&qp->modify_lock);
	cur = mask & IB_QP_CUR_STATE ? attr->cur_qp_state : was;
	next = mask & IB_QP_STATE ? attr->qp_state : cur;
	/* 6.12 knows rates of raw packet QPs only. */
	if (!ib_modify_qp_is_ok(cur, next, ibqp->qp_type, mask & ~IB_QP_RATE_LIMIT))
		return -EINVAL;
	hw_mask = skua_ib_qp_attr_to_hw(dev, attr, mask, &hw);
	if (hw_mask < 0)
		return hw_mask;
	options = skua_ib_qp_options_to_hw(ibqp, attr, mask, req, &hw);
	if (options < 0)
		return options;
	/* The device forgets it in RESET. */
	if (qp->strip_cvlan && next == IB_QPS_RTR) {
		hw.strip_cvlan = 1;
		options |= SKUA_QP_ATTR_STRIP_CVLAN;
	}

	/* Nothing is posted any more to a queue that is about to be emptied. */
	if (next == IB_QPS_RESET)
		skua_ib_qp_set_state(qp, IB_QPS_RESET);
	err = skua_cmd_modify_qp(dev, qp->watch.number, hw_mask | options, &hw);
	if (err) {
		skua_ib_qp_set_state(qp, was);
		return err;
	}

	/* Not in RESET: the event of an earlier transition to ERR may still be on its way. */
	if (next == IB_QPS_INIT)
		WRITE_ONCE(qp->last_wqe_told, false);
	if (next == IB_QPS_RESET && !ibqp->uobject && !skua_ib_has_no_queues(ibqp))
		skua_ib_qp_reset_queues(qp);
	if (mask & IB_QP_DEST_QPN)
		qp->dest_qpn = attr->dest_qp_num;
	skua_ib_qp_set_state(qp, next);
	return 0;
}

int skua_ib_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		      struct ib_udata *udata)
{
	struct skua_ib_qp *qp = to_skua_ib_qp(ibqp);
	struct skua_modify_qp_req req = {};
	int err = 0;

	if (udata && udata->inlen)
		err = ib_copy_validate_udata_in_cm(udata, req, comp_mask, 0);
	err = err ?: ib_respond_empty_udata(udata);
	if (err)
		return err;
	if (mask & ~(IB_QP_ATTR_STANDARD_BITS | IB_QP_RATE_LIMIT) || skua_ib_is_rss(ibqp))
		return -EOPNOTSUPP;
	mutex_lock(&qp->modify_lock);
	err = skua_ib_modify_locked(ibqp, attr, mask, &req);
	mutex_unlock(&qp->modify_lock);
	return err;
}

int skua_ib_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		     struct ib_qp_init_attr *init_attr)
{
	struct skua_ib_qp *qp = to_skua_ib_qp(ibqp);
	struct skua_qp_attr hw;
	int err;

	if (skua_ib_is_rss(ibqp))
		return -EOPNOTSUPP;
	err = skua_cmd_query_qp(to_skua_dev(ibqp->device), qp->watch.number, &hw);
	if (err)
		return err;

	memset(attr, 0, sizeof(*attr));
	memset(init_attr, 0, sizeof(*init_attr));
	attr->qp_state = hw.state;
	attr->cur_qp_state = hw.state;
	attr->path_mtu = hw.path_mtu;
	attr->path_mig_state = IB_MIG_MIGRATED;
	attr->qkey = le32_to_cpu(hw.qkey);
	attr->rq_psn = le32_to_cpu(hw.rq_psn);
	attr->sq_psn = le32_to_cpu(hw.sq_psn);
	attr->dest_qp_num = le32_to_cpu(hw.dest_qpn);
	attr->qp_access_flags = skua_ib_qp_access_to_ib(le32_to_cpu(hw.access));
	attr->cap = qp->cap;
	attr->pkey_index = le16_to_cpu(hw.pkey_index);
	attr->sq_draining = hw.sq_draining;
	attr->max_rd_atomic = le16_to_cpu(hw.max_rd_atomic);
	attr->max_dest_rd_atomic = le16_to_cpu(hw.max_dest_rd_atomic);
	attr->min_rnr_timer = hw.min_rnr_timer;
	attr->port_num = 1;
	attr->timeout = hw.timeout;
	attr->retry_cnt = hw.retry_cnt;
	attr->rnr_retry = hw.rnr_retry;
	attr->rate_limit = le32_to_cpu(hw.rate_limit);
	/* There is an address from RTR on; what else is not set is zero. */
	if (hw.path_mtu)
		skua_ib_get_av(&attr->ah_attr, &hw.av);

	init_attr->send_cq = ibqp->send_cq;
	init_attr->recv_cq = ibqp->recv_cq;
	init_attr->srq = ibqp->srq;
	init_attr->cap = qp->cap;
	init_attr->sq_sig_type = qp->sig_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR;
	init_attr->qp_type = ibqp->qp_type;
	return 0;
}
