// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Polling of the kernel's CQs: from CQE to work completion.
 *
 * The QP of a CQE is looked up by number. It is there: destroying a QP takes its CQEs out of its
 * CQs, under the lock that polling holds, before it is taken out of the table. A device that
 * completes what is not outstanding has lost track of its work, and is dead.
 *
 * A receive from an XRC SRQ is different: the CQ is that of the SRQ, and the CQE may outlive the
 * target QP that took the entry (XRC-12). Its SRQ is looked up by handle among those of the CQ.
 */
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>

#include <linux/skua/queue.h>
#include <skua/cmd.h>

#include "cq.h"
#include "flush.h"
#include "qp.h"
#include "skua_ib.h"
#include "srq.h"

static const u8 skua_ib_wc_opcodes[] = {
	[SKUA_CQE_SEND]			= IB_WC_SEND,
	[SKUA_CQE_WRITE]		= IB_WC_RDMA_WRITE,
	[SKUA_CQE_READ]			= IB_WC_RDMA_READ,
	[SKUA_CQE_LOCAL_INV]		= IB_WC_LOCAL_INV,
	[SKUA_CQE_NOP]			= IB_WC_SEND,
	[SKUA_CQE_CMP_SWAP]		= IB_WC_COMP_SWAP,
	[SKUA_CQE_FETCH_ADD]		= IB_WC_FETCH_ADD,
	[SKUA_CQE_REG_MR]		= IB_WC_REG_MR,
	[SKUA_CQE_MASKED_CMP_SWAP]	= IB_WC_MASKED_COMP_SWAP,
	[SKUA_CQE_MASKED_FETCH_ADD]	= IB_WC_MASKED_FETCH_ADD,
};

/* The numbers of status are those of Linux. */
static_assert((int)SKUA_CQE_LOC_LEN_ERR == (int)IB_WC_LOC_LEN_ERR);
static_assert((int)SKUA_CQE_WR_FLUSH_ERR == (int)IB_WC_WR_FLUSH_ERR);
static_assert((int)SKUA_CQE_REM_ACCESS_ERR == (int)IB_WC_REM_ACCESS_ERR);
static_assert((int)SKUA_CQE_RNR_RETRY_EXC_ERR == (int)IB_WC_RNR_RETRY_EXC_ERR);
static_assert((int)SKUA_CQE_GENERAL_ERR == (int)IB_WC_GENERAL_ERR);

/* False if the CQE is impossible. */
static bool skua_ib_poll_send(struct skua_ib_qp *qp, const struct skua_cqe *cqe, struct ib_wc *wc)
{
	if (unlikely(!skua_sq_expects(&qp->sq, qp->sq.ci, cqe)))
		return false;
	wc->opcode = cqe->opcode < ARRAY_SIZE(skua_ib_wc_opcodes) ?
		     skua_ib_wc_opcodes[cqe->opcode] : IB_WC_SEND;
	wc->byte_len = le32_to_cpu(cqe->byte_len);
	wc->wr_id = qp->sq_wrs[le32_to_cpu(cqe->cookie) & (qp->sq.blocks - 1)].wr_id;
	/* The WQE's bookkeeping was read: its blocks may be used again. */
	skua_sq_retire(&qp->sq, le32_to_cpu(cqe->sq_ci));
	return true;
}

/* Where a datagram came from. */
static void skua_ib_poll_source(const struct skua_cqe *cqe, struct ib_wc *wc)
{
	u16 vlan = le16_to_cpu(cqe->vlan);

	wc->src_qp = le32_to_cpu(cqe->src_qpn);
	ether_addr_copy(wc->smac, cqe->smac);
	wc->network_hdr_type = cqe->ip_version == 4 ? RDMA_NETWORK_IPV4 : RDMA_NETWORK_IPV6;
	wc->wc_flags |= IB_WC_GRH | IB_WC_WITH_SMAC | IB_WC_WITH_NETWORK_HDR_TYPE;
	if (vlan == SKUA_VLAN_NONE)
		return;
	wc->sl = vlan >> VLAN_PRIO_SHIFT;
	wc->vlan_id = vlan & VLAN_VID_MASK;
	wc->wc_flags |= IB_WC_WITH_VLAN;
}

/* What every receive has. */
static void skua_ib_fill_recv(const struct skua_cqe *cqe, struct ib_wc *wc)
{
	wc->opcode = IB_WC_RECV;
	if (cqe->opcode == SKUA_CQE_RECV_WRITE_IMM)
		wc->opcode = IB_WC_RECV_RDMA_WITH_IMM;
	wc->byte_len = le32_to_cpu(cqe->byte_len);
	if (cqe->flags & SKUA_CQE_WITH_IMM) {
		wc->wc_flags |= IB_WC_WITH_IMM;
		wc->ex.imm_data = cqe->imm_data;
	} else if (cqe->flags & SKUA_CQE_WITH_INV) {
		wc->wc_flags |= IB_WC_WITH_INVALIDATE;
		wc->ex.invalidate_rkey = le32_to_cpu(cqe->inv_key);
	}
}

/* False if the CQE is impossible. */
static bool skua_ib_poll_srq(struct skua_ib_srq *srq, const struct skua_cqe *cqe, struct ib_wc *wc)
{
	bool expected;

	spin_lock(&srq->lock);
	expected = skua_ib_srq_complete(srq, cqe, &wc->wr_id);
	spin_unlock(&srq->lock);
	return expected;
}

/*
 * A target QP may be destroyed before its completions are polled. They then name no QP, but still
 * tell the consumer which receives came back. The table's lock keeps the QP while it is read.
 */
static void skua_ib_poll_target(struct skua_ib_dev *dev, u32 qpn, struct ib_wc *wc)
{
	struct skua_ib_qp *qp;

	xa_lock(&dev->targets);
	qp = xa_load(&dev->targets, qpn);
	if (likely(qp)) {
		wc->qp = &qp->ibqp;
		wc->src_qp = qp->dest_qpn;
	}
	xa_unlock(&dev->targets);
}

/* False if the CQE is impossible. */
static bool skua_ib_poll_xrc_recv(struct skua_ib_dev *dev, struct skua_ib_cq *cq,
				  const struct skua_cqe *cqe, struct ib_wc *wc)
{
	struct skua_ib_srq *srq = skua_ib_cq_find_srq(cq, le64_to_cpu(cqe->qp_handle));

	if (unlikely(!srq || !skua_ib_poll_srq(srq, cqe, wc)))
		return false;
	skua_ib_fill_recv(cqe, wc);
	skua_ib_poll_target(dev, le32_to_cpu(cqe->qpn), wc);
	return true;
}

/* False if the CQE is impossible. */
static bool skua_ib_poll_recv(struct skua_ib_qp *qp, const struct skua_cqe *cqe, struct ib_wc *wc)
{
	u32 slot = qp->rq.ci & (qp->rq.size - 1);

	skua_ib_fill_recv(cqe, wc);
	if (skua_ib_is_datagram(&qp->ibqp))
		skua_ib_poll_source(cqe, wc);
	else
		wc->src_qp = qp->dest_qpn;
	if (qp->ibqp.srq)
		return skua_ib_poll_srq(to_skua_ib_srq(qp->ibqp.srq), cqe, wc);
	if (unlikely(!qp->rq.size || !skua_rq_expects(&qp->rq, cqe)))
		return false;
	wc->wr_id = qp->rq_wr_ids[slot];
	/* Release: pairs with the acquire in post_recv, which may now use the slot again. */
	smp_store_release(&qp->rq.ci, qp->rq.ci + 1);
	return true;
}

static bool skua_ib_poll_one(struct skua_ib_dev *dev, struct skua_ib_cq *cq,
			     const struct skua_cqe *cqe, struct ib_wc *wc)
{
	bool recv = cqe->opcode & SKUA_CQE_OPCODE_RECV;
	struct skua_ib_qp *qp;

	memset(wc, 0, sizeof(*wc));
	wc->status = cqe->status;
	wc->vendor_err = cqe->vendor_err;
	wc->port_num = 1;
	if (recv && skua_ib_is_of_xrc_srq(cqe))
		return skua_ib_poll_xrc_recv(dev, cq, cqe, wc);

	qp = xa_load(&dev->qps, le32_to_cpu(cqe->qpn));
	if (unlikely(!qp || !(recv || qp->sq.blocks)))
		return false;
	wc->qp = &qp->ibqp;
	return recv ? skua_ib_poll_recv(qp, cqe, wc) : skua_ib_poll_send(qp, cqe, wc);
}

int skua_ib_poll_cq(struct ib_cq *ibcq, int num_entries, struct ib_wc *wc)
{
	struct skua_ib_dev *dev = to_skua_ib_dev(ibcq->device);
	struct skua_ib_cq *cq = to_skua_ib_cq(ibcq);
	struct skua_cqe cqe;
	unsigned long irq;
	int polled = 0;
	bool dead;

	spin_lock_irqsave(&cq->lock, irq);
	/* Acquire: before the ring is looked at, to which nothing is added any more if so. */
	dead = smp_load_acquire(&dev->dead);
	while (polled < num_entries && skua_cq_take(&cq->ring, &cqe)) {
		if (likely(skua_ib_poll_one(dev, cq, &cqe, &wc[polled])))
			polled++;
		else
			skua_dev_fail(dev->dev, "it completed work that is not outstanding");
	}
	/* The device's own completions come first. */
	if (unlikely(dead && polled < num_entries))
		polled += skua_ib_flush_poll(cq, num_entries - polled, wc + polled);
	spin_unlock_irqrestore(&cq->lock, irq);
	return polled;
}
