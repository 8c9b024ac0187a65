// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * When the device died: programs learn it from their information page, everybody by the event,
 * and the kernel's consumers get a flushed completion, made here, for every work request that
 * the device left undone or that is still posted.
 *
 * Consumers may sleep until their CQ has an event. None will come from the device, so all CQs
 * are given one when it dies, and again after each later post or arming.
 */
#include "skua_ib.h"

static void skua_ib_flush_work(struct work_struct *work)
{
	struct skua_ib_dev *dev = container_of(work, struct skua_ib_dev, flush);
	struct skua_ib_cq *cq;
	unsigned long irq;

	mutex_lock(&dev->lock);
	list_for_each_entry(cq, &dev->cqs, node) {
		/* As in an interrupt, which is what handlers expect. */
		local_irq_save(irq);
		cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
		local_irq_restore(irq);
	}
	mutex_unlock(&dev->lock);
}

void skua_ib_flush_init(struct skua_ib_dev *dev)
{
	INIT_WORK(&dev->flush, skua_ib_flush_work);
}

void skua_ib_flush_kick(struct skua_ib_dev *dev)
{
	schedule_work(&dev->flush);
}

static void skua_ib_flush_wc(struct skua_ib_qp *qp, u64 wr_id, enum ib_wc_opcode opcode,
			     struct ib_wc *wc)
{
	memset(wc, 0, sizeof(*wc));
	wc->wr_id = wr_id;
	wc->status = IB_WC_WR_FLUSH_ERR;
	wc->opcode = opcode;
	wc->qp = &qp->ibqp;
}

static int skua_ib_flush_sends(struct skua_ib_qp *qp, int num_entries, struct ib_wc *wc)
{
	unsigned long irq;
	int polled = 0;

	spin_lock_irqsave(&qp->sq_lock, irq);
	while (polled < num_entries && qp->sq.ci != qp->sq.pi) {
		struct skua_ib_wr *wr = &qp->sq_wrs[qp->sq.ci & (qp->sq.blocks - 1)];

		skua_ib_flush_wc(qp, wr->wr_id, IB_WC_SEND, &wc[polled++]);
		skua_sq_retire(&qp->sq, qp->sq.ci + wr->nblocks);
	}
	spin_unlock_irqrestore(&qp->sq_lock, irq);
	return polled;
}

static int skua_ib_flush_recvs(struct skua_ib_qp *qp, int num_entries, struct ib_wc *wc)
{
	unsigned long irq;
	int polled = 0;

	spin_lock_irqsave(&qp->rq_lock, irq);
	for (; polled < num_entries && qp->rq.ci != qp->rq.pi; qp->rq.ci++)
		skua_ib_flush_wc(qp, qp->rq_wr_ids[qp->rq.ci & (qp->rq.size - 1)], IB_WC_RECV,
				 &wc[polled++]);
	spin_unlock_irqrestore(&qp->rq_lock, irq);
	return polled;
}

int skua_ib_flush_poll(struct skua_ib_cq *cq, int num_entries, struct ib_wc *wc)
{
	struct skua_ib_qp *qp;
	int polled = 0;

	lockdep_assert_held(&cq->lock);
	list_for_each_entry(qp, &cq->send_qps, send_node)
		polled += skua_ib_flush_sends(qp, num_entries - polled, wc + polled);
	list_for_each_entry(qp, &cq->recv_qps, recv_node)
		polled += skua_ib_flush_recvs(qp, num_entries - polled, wc + polled);
	return polled;
}

void skua_ib_dead(struct skua_ib_dev *dev)
{
	struct ib_event event = {
		.device = &dev->ibdev,
		.event = IB_EVENT_DEVICE_FATAL,
		.element.port_num = 1,
	};
	struct skua_ib_ucontext *ucontext;

	mutex_lock(&dev->lock);
	list_for_each_entry(ucontext, &dev->ucontexts, node)
		skua_ib_ucontext_dead(ucontext);
	if (dev->registered)
		ib_dispatch_event(&event);
	mutex_unlock(&dev->lock);
	skua_ib_flush_kick(dev);
}
