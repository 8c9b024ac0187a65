// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * When the device died: programs learn it from their information page and by an event of each CQ,
 * everybody by the event DEVICE_FATAL, and the kernel's consumers get a flushed completion, made
 * here, for every work request that the device left undone or that is posted later.
 *
 * None of this happens before the device is fenced (health.c). Until then it may still use what
 * was posted, and write CQEs; after that no CQE comes, and what a ring still holds is complete.
 *
 * A handler is called as the device would have called it: once for each arming, when there is a
 * completion. An armed CQ of the kernel's is looked at when the device dies, and after each later
 * post. Arming tells of what is there already.
 */
#include <linux/skua/queue.h>

#include "cq.h"
#include "flush.h"
#include "qp.h"
#include "skua_ib.h"
#include "ucontext.h"

static bool skua_ib_flush_has_sends(struct skua_ib_qp *qp)
{
	bool has;

	/* Under the lock: who posts after this look sees that the device is dead. */
	spin_lock(&qp->sq_lock);
	has = qp->sq.ci != qp->sq.pi;
	spin_unlock(&qp->sq_lock);
	return has;
}

static bool skua_ib_flush_has_recvs(struct skua_ib_qp *qp)
{
	bool has;

	spin_lock(&qp->rq_lock);
	has = qp->rq.ci != qp->rq.pi;
	spin_unlock(&qp->rq_lock);
	return has;
}

bool skua_ib_flush_due(struct skua_ib_cq *cq)
{
	struct skua_ib_qp *qp;

	lockdep_assert_held(&cq->lock);
	list_for_each_entry(qp, &cq->send_qps, send_node)
		if (skua_ib_flush_has_sends(qp))
			return true;
	list_for_each_entry(qp, &cq->recv_qps, recv_node)
		if (skua_ib_flush_has_recvs(qp))
			return true;
	return false;
}

/* Interrupts are off, as handlers expect. */
static void skua_ib_flush_call(struct skua_ib_cq *cq)
{
	unsigned long irq;

	local_irq_save(irq);
	cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
	local_irq_restore(irq);
}

/*
 * What is there or due is of a QP or an XRC SRQ of this CQ, and none of them is destroyed while the
 * device's lock is held. So the consumer has not begun to destroy the CQ, and takes the call.
 */
static void skua_ib_flush_notify(struct skua_ib_cq *cq)
{
	unsigned long irq;
	bool due;

	spin_lock_irqsave(&cq->lock, irq);
	due = cq->armed != SKUA_CQ_ARM_NONE &&
	      (skua_cq_at(&cq->ring, cq->ring.ci) || skua_ib_flush_due(cq));
	/* The arming is answered. */
	if (due)
		cq->armed = SKUA_CQ_ARM_NONE;
	spin_unlock_irqrestore(&cq->lock, irq);
	if (due)
		skua_ib_flush_call(cq);
}

/*
 * The next QP of the CQ, behind @qp, with an SRQ that was not told that it completes no more
 * receives.
 */
static struct skua_ib_qp *skua_ib_flush_untold(struct skua_ib_cq *cq, struct skua_ib_qp *qp)
{
	struct skua_ib_qp *found = NULL;
	unsigned long irq;

	spin_lock_irqsave(&cq->lock, irq);
	qp = list_prepare_entry(qp, &cq->recv_qps, recv_node);
	list_for_each_entry_continue(qp, &cq->recv_qps, recv_node) {
		if (qp->ibqp.srq && !READ_ONCE(qp->last_wqe_told)) {
			found = qp;
			break;
		}
	}
	spin_unlock_irqrestore(&cq->lock, irq);
	return found;
}

/*
 * Entries of an SRQ are not flushed: they belong to no QP. Consumers wait for this event of each QP
 * instead. The QPs stay while the device's lock is held.
 */
static void skua_ib_flush_tell_last_wqe(struct skua_ib_cq *cq)
{
	struct skua_ib_qp *qp = NULL;

	while ((qp = skua_ib_flush_untold(cq, qp)))
		qp->watch.event(&qp->watch, SKUA_EVENT_LAST_WQE_REACHED);
}

static void skua_ib_flush_work(struct work_struct *work)
{
	struct skua_ib_dev *dev = container_of(work, struct skua_ib_dev, flush);
	struct skua_ib_cq *cq;

	mutex_lock(&dev->lock);
	list_for_each_entry(cq, &dev->cqs, node)
		if (!cq->mem.umem)
			skua_ib_flush_notify(cq);
	list_for_each_entry(cq, &dev->cqs, node)
		if (!cq->mem.umem)
			skua_ib_flush_tell_last_wqe(cq);
	mutex_unlock(&dev->lock);
}

void skua_ib_flush_init(struct skua_ib_dev *dev)
{
	INIT_WORK(&dev->flush, skua_ib_flush_work);
}

/* Storage waits for flushed work, and memory for storage. */
void skua_ib_flush_kick(struct skua_ib_dev *dev)
{
	skua_queue_work(&dev->flush);
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
		skua_sq_retire(&qp->sq, skua_sq_next(&qp->sq, qp->sq.ci));
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
	struct skua_ib_cq *cq;

	mutex_lock(&dev->lock);
	/* Release: who sees this sees all CQEs that there will ever be. */
	smp_store_release(&dev->dead, true);
	list_for_each_entry(ucontext, &dev->ucontexts, node)
		skua_ib_ucontext_dead(ucontext);
	/* Whether a program has armed its CQ only the device knew: each has one event. */
	list_for_each_entry(cq, &dev->cqs, node)
		if (cq->mem.umem)
			skua_ib_flush_call(cq);
	if (dev->registered)
		ib_dispatch_event(&event);
	mutex_unlock(&dev->lock);
	skua_ib_flush_kick(dev);
}
