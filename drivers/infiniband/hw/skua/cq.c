// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion queues: making and destroying them, arming, and their events. Polling is in poll.c.
 */
#include <linux/log2.h>

#include <linux/skua/command.h>
#include <linux/skua/memory.h>
#include <linux/skua/queue.h>
#include <rdma/skua-abi.h>

#include "cq.h"
#include "flush.h"
#include "qp.h"
#include "skua_ib.h"
#include "srq.h"
#include "ucontext.h"

static void skua_ib_cq_comp(struct skua_cq_watch *watch)
{
	struct skua_ib_cq *cq = container_of(watch, struct skua_ib_cq, watch);

	cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
}

/*
 * Of the kernel's CQs. The event may be that of an earlier arming: the consumer polled the CQE
 * and armed again while the event waited in the EQ. The last arming is answered if there has
 * been a CQE since.
 */
static void skua_ib_kernel_cq_comp(struct skua_cq_watch *watch)
{
	struct skua_ib_cq *cq = container_of(watch, struct skua_ib_cq, watch);
	unsigned long irq;

	spin_lock_irqsave(&cq->lock, irq);
	if (cq->ring.ci != cq->armed_ci || skua_cq_at(&cq->ring, cq->ring.ci))
		cq->armed = SKUA_CQ_ARM_NONE;
	spin_unlock_irqrestore(&cq->lock, irq);
	skua_ib_cq_comp(watch);
}

static void skua_ib_cq_error(struct skua_cq_watch *watch)
{
	struct skua_ib_cq *cq = container_of(watch, struct skua_ib_cq, watch);
	struct ib_event event = {
		.device = cq->ibcq.device,
		.event = IB_EVENT_CQ_ERR,
		.element.cq = &cq->ibcq,
	};

	if (cq->ibcq.event_handler)
		cq->ibcq.event_handler(&event, cq->ibcq.cq_context);
}

/* Create it in the device, and let its events come. */
static int skua_ib_cq_start(struct skua_ib_dev *dev, struct skua_ib_cq *cq,
			    const struct ib_cq_init_attr *attr, u32 log_size, u32 db_page)
{
	struct skua_pagelist_builder ring;
	struct skua_cq_params params = {
		.vector = attr->comp_vector % dev->dev->num_comp_vectors,
		.log_size = log_size,
		.db_page = db_page,
		.dbr = cq->mem.dbr_dma,
		.ring = &ring.list,
	};
	int err;

	err = skua_ib_qmem_describe(dev->dev, &cq->mem, &ring);
	if (err)
		return err;
	err = skua_cmd_create_cq(dev->dev, &params, &cq->watch.cqn);
	skua_pagelist_free(dev->dev, &ring);
	if (err)
		return err;
	cq->ibcq.cqe = BIT(log_size);
	cq->watch.error = skua_ib_cq_error;
	err = skua_cq_watch(dev->dev, &cq->watch);
	if (err) {
		skua_cmd_destroy_cq(dev->dev, cq->watch.cqn);
		return err;
	}
	INIT_LIST_HEAD(&cq->node);
	return 0;
}

/*
 * The CQ is its consumer's from here on. Not before: the event of the device's death comes once, to
 * those CQs that are there, and nobody takes back what is told of a CQ that is not created.
 */
static int skua_ib_cq_publish(struct skua_ib_dev *dev, struct skua_ib_cq *cq)
{
	int err = 0;

	mutex_lock(&dev->lock);
	if (dev->dead)
		err = -EIO;
	else
		list_add(&cq->node, &dev->cqs);
	mutex_unlock(&dev->lock);
	return err;
}

static void skua_ib_cq_stop(struct skua_ib_dev *dev, struct skua_ib_cq *cq)
{
	skua_cmd_destroy_cq(dev->dev, cq->watch.cqn);
	skua_cq_unwatch(dev->dev, &cq->watch);
	mutex_lock(&dev->lock);
	list_del(&cq->node);
	mutex_unlock(&dev->lock);
}

int skua_ib_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		      struct uverbs_attr_bundle *attrs)
{
	struct skua_ib_dev *dev = to_skua_ib_dev(ibcq->device);
	struct skua_ib_cq *cq = to_skua_ib_cq(ibcq);
	int err;

	if (attr->flags)
		return -EOPNOTSUPP;
	if (!attr->cqe || attr->cqe > dev->dev->limits.max_cqe)
		return -EINVAL;

	spin_lock_init(&cq->lock);
	INIT_LIST_HEAD(&cq->send_qps);
	INIT_LIST_HEAD(&cq->recv_qps);
	INIT_LIST_HEAD(&cq->srqs);
	cq->watch.comp = skua_ib_kernel_cq_comp;
	cq->ring.size = roundup_pow_of_two(attr->cqe);
	err = skua_ib_qmem_alloc(dev->dev, &cq->mem,
				 (size_t)cq->ring.size * sizeof(struct skua_cqe));
	if (err)
		return err;
	cq->ring.buf = cq->mem.ring.va;
	cq->ring.dbr = cq->mem.dbr;
	err = skua_ib_cq_start(dev, cq, attr, ilog2(cq->ring.size), 0);
	if (err)
		goto err_mem;
	err = skua_ib_cq_publish(dev, cq);
	if (err)
		goto err_stop;
	return 0;

err_stop:
	skua_ib_cq_stop(dev, cq);
err_mem:
	skua_ib_qmem_free(dev->dev, &cq->mem);
	return err;
}

int skua_ib_create_user_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
			   struct uverbs_attr_bundle *attrs)
{
	struct ib_udata *udata = &attrs->driver_udata;
	struct skua_ib_dev *dev = to_skua_ib_dev(ibcq->device);
	struct skua_ib_ucontext *ucontext =
		rdma_udata_to_drv_context(udata, struct skua_ib_ucontext, ibucontext);
	struct skua_ib_cq *cq = to_skua_ib_cq(ibcq);
	struct skua_create_cq_resp resp = {};
	struct skua_create_cq_req req;
	struct ib_umem *umem;
	int err;

	/* All completions have a time, and who ignores overruns promises that none comes. */
	if (attr->flags & ~(IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION |
			    IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN))
		return -EOPNOTSUPP;
	err = ib_copy_validate_udata_in_cm(udata, req, comp_mask, 0);
	if (err)
		return err;
	if (req.log_size >= 32 || BIT_ULL(req.log_size) > dev->dev->limits.max_cqe ||
	    !attr->cqe || attr->cqe > BIT_ULL(req.log_size))
		return -EINVAL;

	umem = ib_umem_get_cq_buf_or_va(ibcq->device, attrs, req.buf_addr,
					BIT_ULL(req.log_size) * sizeof(struct skua_cqe),
					IB_ACCESS_LOCAL_WRITE);
	umem = skua_ib_umem_check_queue(umem, BIT_ULL(req.log_size) * sizeof(struct skua_cqe),
					sizeof(struct skua_cqe));
	err = skua_ib_qmem_take(ucontext, &cq->mem, umem, req.dbr_addr);
	if (err)
		return err;
	mutex_init(&cq->resize_lock);
	cq->watch.comp = skua_ib_cq_comp;
	err = skua_ib_cq_start(dev, cq, attr, req.log_size, ucontext->db.index);
	if (err)
		goto err_mem;

	resp.cqn = cq->watch.cqn;
	err = ib_respond_udata(udata, resp);
	if (err)
		goto err_stop;
	err = skua_ib_cq_publish(dev, cq);
	if (err)
		goto err_stop;
	return 0;

err_stop:
	skua_ib_cq_stop(dev, cq);
err_mem:
	skua_ib_qmem_free(dev->dev, &cq->mem);
	return err;
}

/* In the device. From @index on CQEs are in the ring of @mem. */
static int skua_ib_cq_change(struct skua_dev *dev, struct skua_ib_cq *cq,
			     const struct skua_ib_qmem *mem, u8 log_size, u32 *index)
{
	struct skua_pagelist_builder ring;
	int err;

	err = skua_ib_qmem_describe(dev, mem, &ring);
	if (err)
		return err;
	err = skua_cmd_resize_cq(dev, cq->watch.cqn, log_size, &ring.list, index);
	skua_pagelist_free(dev, &ring);
	return err;
}

/* The program polls none meanwhile, and then copies what is left in the ring of before (CQ-6). */
int skua_ib_resize_user_cq(struct ib_cq *ibcq, unsigned int cqe, struct ib_udata *udata)
{
	struct skua_ib_dev *dev = to_skua_ib_dev(ibcq->device);
	struct skua_ib_cq *cq = to_skua_ib_cq(ibcq);
	struct skua_resize_cq_resp resp = {};
	struct skua_resize_cq_req req;
	struct skua_ib_qmem other;
	struct ib_umem *umem;
	int err;

	err = ib_copy_validate_udata_in_cm(udata, req, comp_mask, 0);
	if (err)
		return err;
	if (req.log_size >= 32 || BIT_ULL(req.log_size) > dev->dev->limits.max_cqe || !cqe ||
	    cqe > BIT_ULL(req.log_size))
		return -EINVAL;
	umem = skua_ib_umem_queue(dev, NULL, 0, req.buf_addr,
				  BIT_ULL(req.log_size) * sizeof(struct skua_cqe),
				  sizeof(struct skua_cqe));
	if (IS_ERR(umem))
		return PTR_ERR(umem);
	mutex_lock(&cq->resize_lock);
	other = cq->mem;
	other.umem = umem;
	err = skua_ib_cq_change(dev->dev, cq, &other, req.log_size, &resp.index);
	if (!err) {
		swap(cq->mem.umem, umem);
		ibcq->cqe = BIT(req.log_size);
	}
	mutex_unlock(&cq->resize_lock);
	ib_umem_release(umem);
	return err ?: ib_respond_udata(udata, resp);
}

int skua_ib_modify_cq(struct ib_cq *ibcq, u16 count, u16 period)
{
	return skua_cmd_modify_cq(to_skua_dev(ibcq->device), to_skua_ib_cq(ibcq)->watch.cqn, count,
				  period);
}

int skua_ib_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct skua_ib_dev *dev = to_skua_ib_dev(ibcq->device);
	struct skua_ib_cq *cq = to_skua_ib_cq(ibcq);

	skua_ib_cq_stop(dev, cq);
	skua_ib_qmem_free(dev->dev, &cq->mem);
	return 0;
}

/*
 * A CQ of a kernel consumer goes in two steps. Between them the core cancels its work, which no
 * event may queue again.
 */
int skua_ib_pre_destroy_cq(struct ib_cq *ibcq)
{
	skua_ib_cq_stop(to_skua_ib_dev(ibcq->device), to_skua_ib_cq(ibcq));
	return 0;
}

void skua_ib_post_destroy_cq(struct ib_cq *ibcq)
{
	skua_ib_qmem_free(to_skua_dev(ibcq->device), &to_skua_ib_cq(ibcq)->mem);
}

int skua_ib_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct skua_ib_cq *cq = to_skua_ib_cq(ibcq);
	struct skua_ib_dev *dev = to_skua_ib_dev(ibcq->device);
	enum skua_cq_arm_type type = SKUA_CQ_ARM_NEXT;
	unsigned long irq;
	bool there;

	if ((flags & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED)
		type = SKUA_CQ_ARM_SOLICITED;

	spin_lock_irqsave(&cq->lock, irq);
	/* A request for any completion is not weakened by a later one for solicited ones. */
	type = max(type, cq->armed);
	cq->armed = type;
	cq->armed_ci = cq->ring.ci;
	there = skua_cq_arm(dev->dev, &cq->ring, cq->watch.cqn, type);
	if (unlikely(READ_ONCE(dev->dead)))
		there = there || skua_ib_flush_due(cq);
	spin_unlock_irqrestore(&cq->lock, irq);
	return there && flags & IB_CQ_REPORT_MISSED_EVENTS;
}

/*
 * Is it of this QP? Then it goes. An entry of an SRQ that it is for is complete with it (SRQ-7). A
 * CQE of an XRC SRQ stays: its target QP may be gone, and the number in use again (XRC-12).
 */
static bool skua_ib_cqe_goes(const struct skua_cqe *cqe, void *arg)
{
	struct skua_ib_qp *qp = arg;
	u64 wr_id;

	if (le32_to_cpu(cqe->qpn) != qp->watch.number || skua_ib_is_of_xrc_srq(cqe))
		return false;
	if (qp->ibqp.srq && cqe->opcode & SKUA_CQE_OPCODE_RECV)
		skua_ib_srq_complete(to_skua_ib_srq(qp->ibqp.srq), cqe, &wr_id);
	return true;
}

/* The entries of its SRQ are free when their CQEs' places are: who posts has one for its CQE. */
static void skua_ib_cq_remove_shared(struct skua_ib_cq *cq, struct skua_ib_qp *qp)
{
	struct skua_ib_srq *srq = to_skua_ib_srq(qp->ibqp.srq);

	spin_lock(&srq->lock);
	skua_cq_remove(&cq->ring, skua_cq_end(&cq->ring), skua_ib_cqe_goes, qp);
	spin_unlock(&srq->lock);
}

void skua_ib_cq_remove_qp(struct skua_ib_cq *cq, struct skua_ib_qp *qp)
{
	unsigned long irq;

	spin_lock_irqsave(&cq->lock, irq);
	if (qp->ibqp.srq)
		skua_ib_cq_remove_shared(cq, qp);
	else
		skua_cq_remove(&cq->ring, skua_cq_end(&cq->ring), skua_ib_cqe_goes, qp);
	spin_unlock_irqrestore(&cq->lock, irq);
}

void skua_ib_cq_add_srq(struct skua_ib_cq *cq, struct skua_ib_srq *srq)
{
	spin_lock_irq(&cq->lock);
	list_add_tail(&srq->cq_node, &cq->srqs);
	spin_unlock_irq(&cq->lock);
}

static bool skua_ib_cqe_is_of_srq(const struct skua_cqe *cqe, void *arg)
{
	struct skua_ib_srq *srq = arg;

	return skua_ib_is_of_xrc_srq(cqe) && le64_to_cpu(cqe->qp_handle) == srq->handle;
}

void skua_ib_cq_remove_srq(struct skua_ib_cq *cq, struct skua_ib_srq *srq)
{
	spin_lock_irq(&cq->lock);
	list_del(&srq->cq_node);
	skua_cq_remove(&cq->ring, skua_cq_end(&cq->ring), skua_ib_cqe_is_of_srq, srq);
	spin_unlock_irq(&cq->lock);
}

struct skua_ib_srq *skua_ib_cq_find_srq(struct skua_ib_cq *cq, u64 handle)
{
	struct skua_ib_srq *srq;

	lockdep_assert_held(&cq->lock);
	list_for_each_entry(srq, &cq->srqs, cq_node)
		if (srq->handle == handle)
			return srq;
	return NULL;
}
