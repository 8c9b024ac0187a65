// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Shared receive queues.
 *
 * QPs complete entries in any order. What frees a slot of the ring is the count of completions
 * (SRQ-5); what tells entries apart are cookies, which are kept in a list of their own.
 */
#include <linux/atomic.h>
#include <linux/log2.h>
#include <linux/slab.h>

#include <linux/skua/command.h>
#include <linux/skua/memory.h>
#include <rdma/skua-abi.h>

#include "cq.h"
#include "pd.h"
#include "skua_ib.h"
#include "srq.h"
#include "ucontext.h"
#include "xrcd.h"

static void skua_ib_srq_event(struct skua_obj_watch *watch, u8 type)
{
	struct skua_ib_srq *srq = container_of(watch, struct skua_ib_srq, watch);
	struct ib_event event = {
		.device = srq->ibsrq.device,
		.event = type == SKUA_EVENT_SRQ_LIMIT ? IB_EVENT_SRQ_LIMIT_REACHED :
							IB_EVENT_SRQ_ERR,
		.element.srq = &srq->ibsrq,
	};

	if (srq->ibsrq.event_handler)
		srq->ibsrq.event_handler(&event, srq->ibsrq.srq_context);
}

/* Create it in the device, and let its events come. */
static int skua_ib_srq_start(struct skua_dev *dev, struct skua_ib_srq *srq,
			     struct skua_srq_params *params)
{
	struct skua_pagelist_builder ring;
	int err;

	err = skua_ib_qmem_describe(dev, &srq->mem, &ring);
	if (err)
		return err;
	params->ring = &ring.list;
	params->dbr = srq->mem.dbr_dma;
	err = skua_cmd_create_srq(dev, params, &srq->watch.number);
	skua_pagelist_free(dev, &ring);
	if (err)
		return err;
	srq->watch.event = skua_ib_srq_event;
	err = skua_srq_watch(dev, &srq->watch);
	if (err)
		skua_cmd_destroy_srq(dev, srq->watch.number);
	return err;
}

static void skua_ib_srq_stop(struct skua_dev *dev, struct skua_ib_srq *srq)
{
	skua_cmd_destroy_srq(dev, srq->watch.number);
	skua_srq_unwatch(dev, &srq->watch);
}

/* Programs' */

/* A ring of so many entries, that a program says is at @addr. */
static struct ib_umem *skua_ib_user_srq_ring(struct skua_ib_dev *dev, u64 addr, u32 log_size,
					     u8 log_stride, u32 max_wr)
{
	if (log_size >= 32 || BIT_ULL(log_size) > dev->dev->limits.max_srq_entries ||
	    max_wr > BIT_ULL(log_size))
		return ERR_PTR(-EINVAL);
	return skua_ib_umem_queue(dev, NULL, 0, addr, BIT_ULL(log_size) << log_stride,
				  BIT(log_stride));
}

static int skua_ib_user_srq_take(struct skua_ib_dev *dev, struct skua_ib_srq *srq, u32 max_wr,
				 struct skua_srq_params *params, struct ib_udata *udata)
{
	struct skua_ib_ucontext *ucontext =
		rdma_udata_to_drv_context(udata, struct skua_ib_ucontext, ibucontext);
	struct skua_create_srq_req req;
	int err;

	err = ib_copy_validate_udata_in_cm(udata, req, comp_mask, 0);
	if (err)
		return err;
	if (req.log_stride < SKUA_RQE_MIN_LOG_STRIDE || req.log_stride > SKUA_RQE_MAX_LOG_STRIDE ||
	    memchr_inv(req.reserved, 0, sizeof(req.reserved)))
		return -EINVAL;
	srq->log_stride = req.log_stride;
	params->handle = req.srq_handle;
	params->log_size = req.log_size;
	return skua_ib_qmem_take(ucontext, &srq->mem,
				 skua_ib_user_srq_ring(dev, req.buf_addr, req.log_size,
						       req.log_stride, max_wr),
				 req.dbr_addr);
}

/* The kernel's */

/*
 * The last one that was given to an XRC SRQ. None is 0, and none is given twice. It is no address,
 * because the device need not know where the kernel has its memory.
 */
static atomic64_t skua_ib_srq_handle;

static void skua_ib_srq_free_cookies(struct skua_ib_srq *srq, u32 first)
{
	u32 i;

	for (i = first; i < srq->num_wrs; i++)
		srq->wrs[i].next = i + 1;
	srq->free = first;
}

static int skua_ib_srq_alloc(struct skua_dev *dev, struct skua_ib_srq *srq,
			     struct skua_srq_params *params)
{
	size_t stride = sizeof(struct skua_rqe) + srq->max_sge * sizeof(struct skua_sge);
	struct skua_rq *rq = &srq->rq;
	int err;

	srq->log_stride = order_base_2(stride);
	srq->num_wrs = roundup_pow_of_two(srq->max_wr);
	srq->wrs = kvcalloc(srq->num_wrs, sizeof(*srq->wrs), GFP_KERNEL);
	if (!srq->wrs)
		return -ENOMEM;
	skua_ib_srq_free_cookies(srq, 0);
	err = skua_ib_qmem_alloc(dev, &srq->mem, (size_t)srq->num_wrs << srq->log_stride);
	if (err)
		return err;
	*rq = (struct skua_rq) {
		.buf = srq->mem.ring.va,
		.dbr = srq->mem.dbr,
		.size = srq->num_wrs,
		.log_stride = srq->log_stride,
	};
	if (ib_srq_has_cq(srq->ibsrq.srq_type))
		srq->handle = atomic64_inc_return(&skua_ib_srq_handle);
	params->handle = srq->handle;
	params->privileged = true;
	params->log_size = ilog2(rq->size);
	return 0;
}

static void skua_ib_srq_free(struct skua_dev *dev, struct skua_ib_srq *srq)
{
	skua_ib_qmem_free(dev, &srq->mem);
	kvfree(srq->wrs);
}

static int skua_ib_check_srq_attr(struct skua_dev *dev, const struct ib_srq_attr *attr)
{
	if (!attr->max_wr || attr->max_wr > dev->limits.max_srq_entries ||
	    attr->max_sge > dev->limits.max_recv_sge || attr->srq_limit > attr->max_wr)
		return -EINVAL;
	return 0;
}

static int skua_ib_srq_respond(struct skua_ib_srq *srq, struct ib_udata *udata)
{
	struct skua_create_srq_resp resp = { .srqn = srq->watch.number };

	return ib_respond_udata(udata, resp);
}

/*
 * In the kernel a send cannot name an SRQ of the peer: an XRC SRQ receives from programs. No verb
 * adds a tag there, so an SRQ with tags is for programs.
 */
static int skua_ib_set_srq_type(struct ib_srq *ibsrq, const struct ib_srq_init_attr *attr,
				struct skua_srq_params *params, struct ib_udata *udata)
{
	struct skua_dev *dev = to_skua_dev(ibsrq->device);
	struct ib_xrcd *ibxrcd = attr->ext.xrc.xrcd;

	switch (attr->srq_type) {
	case IB_SRQT_BASIC:
		return 0;
	case IB_SRQT_XRC:
		if (!skua_ib_has_xrc(dev))
			return -EOPNOTSUPP;
		/* The core lets a consumer in the kernel name none, or that of another device. */
		if (!ibxrcd || ibxrcd->device != ibsrq->device)
			return -EINVAL;
		params->xrcdn = to_skua_ib_xrcd(ibxrcd)->xrcdn;
		break;
	case IB_SRQT_TM:
		if (!skua_ib_has_tags(dev) || !udata)
			return -EOPNOTSUPP;
		params->tags = attr->ext.tag_matching.max_num_tags;
		if (!params->tags || params->tags > dev->limits.max_tags)
			return -EINVAL;
		break;
	default:
		return -EOPNOTSUPP;
	}
	params->cqn = to_skua_ib_cq(attr->ext.cq)->watch.cqn;
	return 0;
}

/*
 * Without a limit, which verbs set by modify_srq() only. So there is no event before the core knows
 * that the SRQ is made: one of an SRQ that is not would stay in its program's list of events.
 */
int skua_ib_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *attr,
		       struct ib_udata *udata)
{
	struct skua_ib_dev *dev = to_skua_ib_dev(ibsrq->device);
	struct skua_ib_srq *srq = to_skua_ib_srq(ibsrq);
	struct skua_srq_params params = {
		.pdn = to_skua_ib_pd(ibsrq->pd)->pdn,
	};
	int err;

	err = skua_ib_set_srq_type(ibsrq, attr, &params, udata);
	if (err)
		return err;
	err = skua_ib_check_srq_attr(dev->dev, &attr->attr);
	if (err)
		return err;
	mutex_init(&srq->modify_lock);
	spin_lock_init(&srq->lock);
	srq->max_wr = attr->attr.max_wr;
	srq->max_sge = max(attr->attr.max_sge, 1U);
	err = udata ? skua_ib_user_srq_take(dev, srq, srq->max_wr, &params, udata) :
		      skua_ib_srq_alloc(dev->dev, srq, &params);
	if (err)
		goto err_mem;
	params.log_stride = srq->log_stride;
	err = skua_ib_srq_start(dev->dev, srq, &params);
	if (err)
		goto err_mem;
	err = udata ? skua_ib_srq_respond(srq, udata) : 0;
	if (err)
		goto err_stop;
	if (params.xrcdn)
		ibsrq->ext.xrc.srq_num = srq->watch.number;
	if (srq->handle)
		skua_ib_cq_add_srq(to_skua_ib_cq(attr->ext.cq), srq);
	return 0;

err_stop:
	skua_ib_srq_stop(dev->dev, srq);
err_mem:
	skua_ib_srq_free(dev->dev, srq);
	return err;
}

static void skua_ib_srq_leave_cq(struct skua_ib_dev *dev, struct skua_ib_srq *srq)
{
	/* No handler is called on its behalf any more: its CQ may go next. */
	mutex_lock(&dev->lock);
	skua_ib_cq_remove_srq(to_skua_ib_cq(srq->ibsrq.ext.cq), srq);
	mutex_unlock(&dev->lock);
}

int skua_ib_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct skua_ib_dev *dev = to_skua_ib_dev(ibsrq->device);
	struct skua_ib_srq *srq = to_skua_ib_srq(ibsrq);

	skua_ib_srq_stop(dev->dev, srq);
	if (srq->handle)
		skua_ib_srq_leave_cq(dev, srq);
	skua_ib_srq_free(dev->dev, srq);
	return 0;
}

/* Modify and query */

/* In the device. @mem: the new ring, or NULL. */
static int skua_ib_srq_change(struct skua_dev *dev, struct skua_ib_srq *srq,
			      const struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
			      const struct skua_ib_qmem *mem, u8 log_size)
{
	u32 hw_mask = mask & IB_SRQ_LIMIT ? SKUA_SRQ_SET_LIMIT : 0;
	struct skua_pagelist_builder ring = {};
	int err;

	if (mem) {
		hw_mask |= SKUA_SRQ_SET_RING;
		err = skua_ib_qmem_describe(dev, mem, &ring);
		if (err)
			return err;
	}
	err = skua_cmd_modify_srq(dev, srq->watch.number, hw_mask,
				  mask & IB_SRQ_LIMIT ? attr->srq_limit : 0, log_size, &ring.list);
	if (mem)
		skua_pagelist_free(dev, &ring);
	return err;
}

/* The program has copied its entries, and posts none meanwhile. */
static int skua_ib_user_srq_resize(struct skua_ib_dev *dev, struct skua_ib_srq *srq,
				   const struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
				   struct ib_udata *udata)
{
	struct skua_ib_qmem other = srq->mem;
	struct skua_modify_srq_req req;
	struct ib_umem *umem;
	int err;

	err = ib_copy_validate_udata_in_cm(udata, req, comp_mask, 0);
	if (err)
		return err;
	umem = skua_ib_user_srq_ring(dev, req.buf_addr, req.log_size, srq->log_stride,
				     attr->max_wr);
	if (IS_ERR(umem))
		return PTR_ERR(umem);
	other.umem = umem;
	err = skua_ib_srq_change(dev->dev, srq, attr, mask, &other, req.log_size);
	if (err) {
		ib_umem_release(umem);
		return err;
	}
	ib_umem_release(srq->mem.umem);
	srq->mem.umem = umem;
	srq->max_wr = attr->max_wr;
	return ib_respond_empty_udata(udata);
}

static void *skua_ib_srq_slot(const struct skua_rq *rq, u32 index)
{
	return rq->buf + ((size_t)(index & (rq->size - 1)) << rq->log_stride);
}

/* From now on what is posted goes to both rings. */
static int skua_ib_srq_begin_resize(struct skua_ib_srq *srq, const struct skua_rq *other,
				    struct skua_ib_srq_wr *wrs, u32 num_wrs,
				    struct skua_ib_srq_wr **old)
{
	unsigned long irq;
	int err = 0;
	u32 i;

	spin_lock_irqsave(&srq->lock, irq);
	if (srq->rq.pi - srq->rq.ci > other->size) {
		err = -EINVAL;
		goto out;
	}
	srq->other = *other;
	for (i = srq->rq.ci; i != srq->rq.pi; i++)
		memcpy(skua_ib_srq_slot(other, i), skua_ib_srq_slot(&srq->rq, i),
		       BIT(srq->log_stride));
	if (num_wrs > srq->num_wrs) {
		u32 first = srq->num_wrs, last_free = srq->free;

		memcpy(wrs, srq->wrs, srq->num_wrs * sizeof(*wrs));
		*old = srq->wrs;
		srq->wrs = wrs;
		srq->num_wrs = num_wrs;
		/* The end of the list of those before leads to the new ones. */
		skua_ib_srq_free_cookies(srq, first);
		if (last_free != first)
			srq->free = last_free;
	}
out:
	spin_unlock_irqrestore(&srq->lock, irq);
	return err;
}

static void skua_ib_srq_end_resize(struct skua_ib_srq *srq, bool done, u32 max_wr)
{
	unsigned long irq;

	spin_lock_irqsave(&srq->lock, irq);
	if (done) {
		srq->rq.buf = srq->other.buf;
		srq->rq.size = srq->other.size;
		srq->max_wr = max_wr;
	}
	srq->other.size = 0;
	spin_unlock_irqrestore(&srq->lock, irq);
}

static int skua_ib_srq_resize(struct skua_dev *dev, struct skua_ib_srq *srq,
			      const struct ib_srq_attr *attr, enum ib_srq_attr_mask mask)
{
	u32 size = roundup_pow_of_two(attr->max_wr);
	struct skua_ib_qmem mem = srq->mem;
	struct skua_ib_srq_wr *wrs, *old;
	struct skua_rq other = srq->rq;
	int err;

	wrs = kvcalloc(size, sizeof(*wrs), GFP_KERNEL);
	if (!wrs)
		return -ENOMEM;
	old = wrs;
	err = skua_mem_alloc_large(dev, &mem.ring, (size_t)size << srq->log_stride);
	if (err)
		goto out_wrs;
	other.buf = mem.ring.va;
	other.size = size;
	err = skua_ib_srq_begin_resize(srq, &other, wrs, size, &old);
	if (err)
		goto out_ring;
	err = skua_ib_srq_change(dev, srq, attr, mask, &mem, ilog2(size));
	skua_ib_srq_end_resize(srq, !err, attr->max_wr);
	if (!err)
		swap(srq->mem.ring, mem.ring);
out_ring:
	skua_mem_free(dev, &mem.ring);
out_wrs:
	kvfree(old);
	return err;
}

int skua_ib_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		       enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	struct skua_ib_dev *dev = to_skua_ib_dev(ibsrq->device);
	struct skua_ib_srq *srq = to_skua_ib_srq(ibsrq);
	u32 max_wr;
	int err;

	if (mask & ~(IB_SRQ_MAX_WR | IB_SRQ_LIMIT))
		return -EINVAL;
	mutex_lock(&srq->modify_lock);
	max_wr = mask & IB_SRQ_MAX_WR ? attr->max_wr : srq->max_wr;
	if (!max_wr || max_wr > dev->dev->limits.max_srq_entries ||
	    (mask & IB_SRQ_LIMIT && attr->srq_limit > max_wr))
		err = -EINVAL;
	else if (!(mask & IB_SRQ_MAX_WR))
		err = ib_no_udata_io(udata) ?:
		      skua_ib_srq_change(dev->dev, srq, attr, mask, NULL, 0);
	else if (udata)
		err = skua_ib_user_srq_resize(dev, srq, attr, mask, udata);
	else
		err = skua_ib_srq_resize(dev->dev, srq, attr, mask);
	mutex_unlock(&srq->modify_lock);
	return err;
}

int skua_ib_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	struct skua_ib_srq *srq = to_skua_ib_srq(ibsrq);
	struct skua_srq_attr hw;
	int err;

	err = skua_cmd_query_srq(to_skua_dev(ibsrq->device), srq->watch.number, &hw);
	if (err)
		return err;
	attr->max_wr = srq->max_wr;
	attr->max_sge = srq->max_sge;
	attr->srq_limit = le32_to_cpu(hw.limit);
	return 0;
}

/* Posting and completing */

static void skua_ib_srq_post_one(struct skua_ib_srq *srq, const struct ib_recv_wr *wr)
{
	struct skua_ib_srq_wr *posted = &srq->wrs[srq->free];
	struct skua_rqe *rqe = skua_rq_entry(&srq->rq);
	int i;

	rqe->cookie = cpu_to_le32(srq->free);
	for (i = 0; i < wr->num_sge; i++)
		skua_rqe_add_sge(rqe, wr->sg_list[i].addr, wr->sg_list[i].length,
				 wr->sg_list[i].lkey);
	if (unlikely(srq->other.size))
		memcpy(skua_ib_srq_slot(&srq->other, srq->rq.pi), rqe, BIT(srq->log_stride));
	srq->free = posted->next;
	posted->wr_id = wr->wr_id;
	posted->posted = true;
	srq->rq.pi++;
}

static bool skua_ib_srq_has_room(const struct skua_ib_srq *srq)
{
	u32 room = srq->max_wr;

	if (unlikely(srq->other.size))
		room = min(room, srq->other.size);
	return srq->rq.pi - srq->rq.ci < room;
}

int skua_ib_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
			  const struct ib_recv_wr **bad_wr)
{
	struct skua_ib_srq *srq = to_skua_ib_srq(ibsrq);
	unsigned long irq;
	int err = 0;

	spin_lock_irqsave(&srq->lock, irq);
	for (; wr; wr = wr->next) {
		if (wr->num_sge < 0 || wr->num_sge > srq->max_sge)
			err = -EINVAL;
		else if (!skua_ib_srq_has_room(srq))
			err = -ENOMEM;
		if (err)
			break;
		skua_ib_srq_post_one(srq, wr);
	}
	skua_dbr_publish(srq->rq.dbr, srq->rq.pi);
	spin_unlock_irqrestore(&srq->lock, irq);
	if (err)
		*bad_wr = wr;
	return err;
}

bool skua_ib_srq_complete(struct skua_ib_srq *srq, const struct skua_cqe *cqe, u64 *wr_id)
{
	u32 cookie = le32_to_cpu(cqe->cookie);
	struct skua_ib_srq_wr *wr;

	lockdep_assert_held(&srq->lock);
	if (cookie >= srq->num_wrs || !srq->wrs[cookie].posted)
		return false;
	wr = &srq->wrs[cookie];
	*wr_id = wr->wr_id;
	wr->posted = false;
	wr->next = srq->free;
	srq->free = cookie;
	srq->rq.ci++;
	return true;
}
