// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Posting to the kernel's queues: from work request to WQE.
 */
#include <linux/log2.h>

#include <linux/skua/queue.h>

#include "ah.h"
#include "flush.h"
#include "mr.h"
#include "qp.h"
#include "skua_ib.h"

/**
 * struct skua_ib_op - how a verbs opcode is sent
 * @wqe: opcode of the WQE
 * @feature: that it needs
 * @types: bits of enum ib_qp_type: QPs that serve it
 * @rdma: with the address at the peer
 * @imm: with immediate data
 * @inv: with a key to invalidate
 * @read: the SGEs are written to, so that it is never inline
 * @atomic: with the operands of an atomic operation
 * @masked: and with their masks
 * @reg: with a region to register
 */
struct skua_ib_op {
	u8 wqe;
	u8 feature;
	u8 types;
	bool rdma;
	bool imm;
	bool inv;
	bool read;
	bool atomic;
	bool masked;
	bool reg;
};

#define SKUA_IB_RC	BIT(IB_QPT_RC)
#define SKUA_IB_RC_UC	(SKUA_IB_RC | BIT(IB_QPT_UC))
#define SKUA_IB_ALL	(SKUA_IB_RC_UC | BIT(IB_QPT_UD) | BIT(IB_QPT_GSI))

static const struct skua_ib_op skua_ib_ops_table[] = {
	[IB_WR_SEND]			= { SKUA_WQE_SEND, SKUA_F_RC, SKUA_IB_ALL },
	[IB_WR_SEND_WITH_IMM]		= { SKUA_WQE_SEND_IMM, SKUA_F_RC, SKUA_IB_ALL,
					    .imm = true },
	[IB_WR_SEND_WITH_INV]		= { SKUA_WQE_SEND_INV, SKUA_F_INVALIDATE, SKUA_IB_RC,
					    .inv = true },
	[IB_WR_RDMA_WRITE]		= { SKUA_WQE_WRITE, SKUA_F_RC, SKUA_IB_RC_UC,
					    .rdma = true },
	[IB_WR_RDMA_WRITE_WITH_IMM]	= { SKUA_WQE_WRITE_IMM, SKUA_F_RC, SKUA_IB_RC_UC,
					    .rdma = true, .imm = true },
	[IB_WR_RDMA_READ]		= { SKUA_WQE_READ, SKUA_F_RC, SKUA_IB_RC,
					    .rdma = true, .read = true },
	[IB_WR_ATOMIC_CMP_AND_SWP]	= { SKUA_WQE_CMP_SWAP, SKUA_F_ATOMIC, SKUA_IB_RC,
					    .atomic = true, .read = true },
	[IB_WR_ATOMIC_FETCH_AND_ADD]	= { SKUA_WQE_FETCH_ADD, SKUA_F_ATOMIC, SKUA_IB_RC,
					    .atomic = true, .read = true },
	[IB_WR_MASKED_ATOMIC_CMP_AND_SWP] = { SKUA_WQE_MASKED_CMP_SWAP, SKUA_F_MASKED_ATOMIC,
					      SKUA_IB_RC, .atomic = true, .masked = true,
					      .read = true },
	[IB_WR_MASKED_ATOMIC_FETCH_AND_ADD] = { SKUA_WQE_MASKED_FETCH_ADD, SKUA_F_MASKED_ATOMIC,
						SKUA_IB_RC, .atomic = true, .masked = true,
						.read = true },
	[IB_WR_LOCAL_INV]		= { SKUA_WQE_LOCAL_INV, SKUA_F_INVALIDATE, SKUA_IB_RC_UC,
					    .inv = true },
	[IB_WR_REG_MR]			= { SKUA_WQE_REG_MR, SKUA_F_FAST_REG, SKUA_IB_RC_UC,
					    .reg = true },
};

/* It sends nothing, and has no SGEs whatever the work request says. */
static bool skua_ib_is_local(const struct skua_ib_op *op)
{
	return op->wqe == SKUA_WQE_LOCAL_INV || op->reg;
}

/* IB_SEND_IP_CSUM among others is not offered. */
#define SKUA_IB_SEND_FLAGS	(IB_SEND_FENCE | IB_SEND_SIGNALED | IB_SEND_SOLICITED | \
				 IB_SEND_INLINE)

static const struct skua_ib_op *skua_ib_op(struct skua_dev *dev, const struct ib_qp *ibqp,
					   enum ib_wr_opcode opcode)
{
	const struct skua_ib_op *op;

	if (opcode >= ARRAY_SIZE(skua_ib_ops_table))
		return NULL;
	op = &skua_ib_ops_table[opcode];
	return op->types & BIT(ibqp->qp_type) && skua_has(dev, op->feature) ? op : NULL;
}

static u8 skua_ib_wqe_flags(const struct skua_ib_qp *qp, int send_flags)
{
	u8 flags = 0;

	if (send_flags & IB_SEND_SIGNALED || qp->sig_all)
		flags |= SKUA_WQE_SIGNALED;
	if (send_flags & IB_SEND_SOLICITED)
		flags |= SKUA_WQE_SOLICITED;
	if (send_flags & IB_SEND_FENCE)
		flags |= SKUA_WQE_FENCE;
	if (send_flags & IB_SEND_INLINE)
		flags |= SKUA_WQE_INLINE;
	return flags;
}

static u32 skua_ib_inline_size(const struct ib_send_wr *wr)
{
	u64 size = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++)
		size += wr->sg_list[i].length;
	return min_t(u64, size, U32_MAX);
}

/*
 * Work requests between ci and pi. Their blocks do not count: rounding up the ring, and WQEs that
 * are shorter than the longest, leave room for more than max_send_wr, which consumers take for
 * the limit when they size their CQ.
 */
static u32 skua_ib_sq_outstanding(const struct skua_ib_qp *qp)
{
	/* Acquire: pairs with skua_sq_retire(); the bookkeeping of free blocks was read before. */
	u32 ci = smp_load_acquire(&qp->sq.ci);

	if (ci == qp->sq.pi)
		return 0;
	return qp->sq_posted - qp->sq_wrs[ci & (qp->sq.blocks - 1)].number;
}

/* 0, or why the work request cannot be posted. */
static int skua_ib_check_send(struct skua_ib_qp *qp, const struct skua_ib_op *op,
			      const struct ib_send_wr *wr)
{
	bool inl = wr->send_flags & IB_SEND_INLINE;

	if (!op || wr->num_sge < 0 || wr->num_sge > qp->cap.max_send_sge ||
	    wr->send_flags & ~SKUA_IB_SEND_FLAGS)
		return -EINVAL;
	/* One SGE and no more: the queue has room for such atomics, however few SGEs the QP has. */
	if (op->atomic && wr->num_sge != 1)
		return -EINVAL;
	if (inl && (op->read || skua_ib_inline_size(wr) > qp->cap.max_inline_data))
		return -EINVAL;
	/* The ring has blocks for so many of the longest WQEs, so there is room for this one. */
	return skua_ib_sq_outstanding(qp) >= qp->cap.max_send_wr ? -ENOMEM : 0;
}

static void skua_ib_add_rdma(struct skua_wqe_builder *wqe, const struct ib_rdma_wr *wr)
{
	struct skua_wqe_rdma *rdma = skua_wqe_segment(wqe);

	rdma->raddr = cpu_to_le64(wr->remote_addr);
	rdma->rkey = cpu_to_le32(wr->rkey);
	rdma->flush = 0;
}

/* Two segments, or three with masks, always in one block with the control segment. */
static void skua_ib_add_atomic(struct skua_wqe_builder *wqe, const struct skua_ib_op *op,
			       const struct ib_atomic_wr *wr)
{
	bool add = op->wqe == SKUA_WQE_FETCH_ADD || op->wqe == SKUA_WQE_MASKED_FETCH_ADD;
	/* It begins as struct skua_wqe_atomic does. */
	struct skua_wqe_masked_atomic *atomic = skua_wqe_segment(wqe);

	atomic->raddr = cpu_to_le64(wr->remote_addr);
	atomic->rkey = cpu_to_le32(wr->rkey);
	atomic->rsvd = 0;
	atomic->swap_add = cpu_to_le64(add ? wr->compare_add : wr->swap);
	atomic->compare = cpu_to_le64(add ? 0 : wr->compare_add);
	wqe->size += sizeof(struct skua_wqe_atomic) - SKUA_WQE_SEG;
	if (!op->masked)
		return;
	atomic->swap_add_mask = cpu_to_le64(add ? wr->compare_add_mask : wr->swap_mask);
	atomic->compare_mask = cpu_to_le64(add ? 0 : wr->compare_add_mask);
	wqe->size += sizeof(*atomic) - sizeof(struct skua_wqe_atomic);
}

/* Three segments, always in one block with the control segment. */
static void skua_ib_add_reg(struct skua_wqe_builder *wqe, struct skua_dev *dev,
			    const struct ib_reg_wr *wr)
{
	const struct skua_ib_mr *mr = to_skua_ib_mr(wr->mr);
	struct skua_wqe_reg_mr *reg = skua_wqe_segment(wqe);
	u32 page_size = mr->ibmr.page_size;

	wqe->size += sizeof(*reg) - SKUA_WQE_SEG;
	*reg = (struct skua_wqe_reg_mr) {
		.key = cpu_to_le32(wr->key),
		.access = cpu_to_le32(skua_ib_kernel_access(dev, wr->access)),
		.iova = cpu_to_le64(mr->ibmr.iova),
		.length = cpu_to_le64(mr->ibmr.length),
		.list = cpu_to_le64(mr->list_dma),
		.npages = cpu_to_le32(mr->npages),
	};
	if (skua_ib_is_gapped(wr->mr))
		return;
	reg->offset = cpu_to_le32(mr->ibmr.iova & (page_size - 1));
	reg->log_page = ilog2(page_size);
}

/*
 * Three segments, always in one block with the control segment. A Q_Key with its top bit means the
 * QP's own, in verbs and in WQEs.
 */
static void skua_ib_add_ud(struct skua_wqe_builder *wqe, const struct ib_ud_wr *wr)
{
	struct skua_wqe_ud *ud = skua_wqe_segment(wqe);

	wqe->size += sizeof(*ud) - SKUA_WQE_SEG;
	*ud = (struct skua_wqe_ud) {
		.av = to_skua_ib_ah(wr->ah)->av,
		.dest_qpn = cpu_to_le32(wr->remote_qpn),
		.qkey = cpu_to_le32(wr->remote_qkey),
	};
}

/* Inline data is a string of bytes, which the ring's end may cut. */
static void skua_ib_add_inline(struct skua_wqe_builder *wqe, const void *data, u32 length)
{
	size_t ring = (size_t)wqe->sq->blocks * SKUA_WQE_BLOCK;
	size_t at = ((size_t)wqe->sq->pi * SKUA_WQE_BLOCK + wqe->size) & (ring - 1);
	size_t first = min_t(size_t, length, ring - at);

	memcpy(wqe->sq->buf + at, data, first);
	memcpy(wqe->sq->buf, data + first, length - first);
	wqe->size += length;
	le32_add_cpu(&wqe->ctrl->length, length);
}

static void skua_ib_build_send(struct skua_dev *dev, struct skua_ib_qp *qp,
			       const struct skua_ib_op *op, const struct ib_send_wr *wr)
{
	struct skua_ib_wr *posted = &qp->sq_wrs[skua_sq_slot(&qp->sq)];
	struct skua_wqe_builder wqe;
	int i;

	skua_wqe_begin(&qp->sq, &wqe, op->wqe, skua_ib_wqe_flags(qp, wr->send_flags));
	if (skua_ib_is_datagram(&qp->ibqp))
		skua_ib_add_ud(&wqe, ud_wr(wr));
	else if (op->rdma)
		skua_ib_add_rdma(&wqe, rdma_wr(wr));
	else if (op->atomic)
		skua_ib_add_atomic(&wqe, op, atomic_wr(wr));
	else if (op->reg)
		skua_ib_add_reg(&wqe, dev, reg_wr(wr));
	if (op->imm)
		wqe.ctrl->imm_data = wr->ex.imm_data;
	if (op->inv)
		wqe.ctrl->inv_key = cpu_to_le32(wr->ex.invalidate_rkey);

	for (i = 0; !skua_ib_is_local(op) && i < wr->num_sge; i++) {
		const struct ib_sge *sge = &wr->sg_list[i];

		/* Inline data of the kernel is given by virtual address. */
		if (wr->send_flags & IB_SEND_INLINE)
			skua_ib_add_inline(&wqe, (void *)(uintptr_t)sge->addr, sge->length);
		else
			skua_wqe_add_sge(&wqe, sge->addr, sge->length, sge->lkey);
	}
	skua_wqe_end(&wqe);
	posted->wr_id = wr->wr_id;
	posted->number = qp->sq_posted++;
}

int skua_ib_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		      const struct ib_send_wr **bad_wr)
{
	struct skua_ib_dev *dev = to_skua_ib_dev(ibqp->device);
	struct skua_ib_qp *qp = to_skua_ib_qp(ibqp);
	unsigned long irq;
	int err = 0;

	spin_lock_irqsave(&qp->sq_lock, irq);
	if (qp->state < IB_QPS_RTS)
		err = -EINVAL;
	for (; wr && !err; wr = wr->next) {
		const struct skua_ib_op *op = skua_ib_op(dev->dev, ibqp, wr->opcode);

		err = skua_ib_check_send(qp, op, wr);
		if (err)
			break;
		skua_ib_build_send(dev->dev, qp, op, wr);
	}
	skua_sq_publish(dev->dev, &qp->sq, qp->watch.number);
	spin_unlock_irqrestore(&qp->sq_lock, irq);

	if (err)
		*bad_wr = wr;
	/*
	 * A dead device completes nothing: have software do it. This is read after the lock was
	 * held, which skua_ib_flush_due() takes, too: one of the two sees what the other did.
	 */
	if (unlikely(READ_ONCE(dev->dead)))
		skua_ib_flush_kick(dev);
	return err;
}

static int skua_ib_check_recv(struct skua_ib_qp *qp, const struct ib_recv_wr *wr)
{
	if (wr->num_sge < 0 || wr->num_sge > qp->cap.max_recv_sge)
		return -EINVAL;
	/* Acquire: pairs with the release in poll_cq, which has read the slot. */
	return qp->rq.pi - smp_load_acquire(&qp->rq.ci) >= qp->cap.max_recv_wr ? -ENOMEM : 0;
}

int skua_ib_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad_wr)
{
	struct skua_ib_dev *dev = to_skua_ib_dev(ibqp->device);
	struct skua_ib_qp *qp = to_skua_ib_qp(ibqp);
	struct skua_rqe *rqe;
	unsigned long irq;
	int err = 0;
	int i;

	spin_lock_irqsave(&qp->rq_lock, irq);
	if (qp->state == IB_QPS_RESET || !qp->rq.size)
		err = -EINVAL;
	for (; wr && !err; wr = wr->next) {
		err = skua_ib_check_recv(qp, wr);
		if (err)
			break;
		qp->rq_wr_ids[skua_rq_slot(&qp->rq)] = wr->wr_id;
		rqe = skua_rq_entry(&qp->rq);
		for (i = 0; i < wr->num_sge; i++)
			skua_rqe_add_sge(rqe, wr->sg_list[i].addr, wr->sg_list[i].length,
					 wr->sg_list[i].lkey);
		/* Polling reads it without the lock. */
		WRITE_ONCE(qp->rq.pi, qp->rq.pi + 1);
	}
	if (qp->rq.dbr)
		skua_dbr_publish(qp->rq.dbr, qp->rq.pi);
	spin_unlock_irqrestore(&qp->rq_lock, irq);

	if (err)
		*bad_wr = wr;
	if (unlikely(READ_ONCE(dev->dead)))
		skua_ib_flush_kick(dev);
	return err;
}
