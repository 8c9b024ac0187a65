// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * ETH queue pairs: frames of the host's network stack (manual: Ethernet).
 *
 * A frame is copied to our own memory before it is looked at, and from there to its
 * receivers.
 */
#include <string.h>

#include "base/copy.h"
#include "core/transport.h"
#include "eth/eth.h"
#include "packet/frame.h"

#define FRAME_COST	256	/* of a turn, at least */

static void eth_fail(struct skua_qp *qp, struct send_wqe *wqe, uint8_t status, uint8_t err)
{
	sq_complete(qp, wqe, status, err);
	qp->sq.una++;
	qp_to_err(qp);
}

/* Fetch the frame to our own memory, and finish it. False: the WQE is no good, and has failed. */
static bool eth_gather(struct skua_qp *qp, struct send_wqe *wqe, struct seglist *frame)
{
	struct skua_dev *dev = qp->dev;
	struct seglist *src = &dev->engine->src;
	bool csum = wqe->flags & SKUA_WQE_L4_CSUM;
	int err;

	if (csum && wqe->csum_start + wqe->csum_offset + 2u > wqe->length) {
		eth_fail(qp, wqe, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_FORMAT);
		return false;
	}
	if (wqe->length < FRAME_HEADER || wqe->length > dev->mtu + FRAME_OVERHEAD) {
		eth_fail(qp, wqe, SKUA_CQE_LOC_LEN_ERR, SKUA_VENDOR_ERR_MSG_TOO_LONG);
		return false;
	}
	src->n = 0;
	src->bytes = 0;
	err = sq_payload(qp, wqe, 0, wqe->length, 0, src);
	if (err) {
		eth_fail(qp, wqe, SKUA_CQE_LOC_PROT_ERR, (uint8_t)err);
		return false;
	}
	frame->n = 1;
	frame->bytes = wqe->length;
	frame->seg[0] = (struct seg){ dev->engine->bounce, wqe->length };
	copy_segs(frame, src);
	if (csum)
		frame_fill_csum(dev->engine->bounce, wqe->length, wqe->csum_start,
				wqe->csum_offset);
	return true;
}

/* False: the wire has no room now. */
static bool eth_send(struct skua_qp *qp, struct send_wqe *wqe)
{
	struct skua_dev *dev = qp->dev;
	struct seglist frame;

	if (wqe->status) {
		eth_fail(qp, wqe, wqe->status, wqe->vendor_err);
		return true;
	}
	if (wqe->opcode == SKUA_WQE_SEND) {
		enum port_result r = PORT_LOST;

		if (!eth_gather(qp, wqe, &frame))
			return true;
		if (dev->port_flags & SKUA_PORT_F_ENABLE)
			r = port_send_frame(dev->port, &frame);
		if (r == PORT_BUSY)
			return false;
		if (r == PORT_SENT) {
			STAT_INC(dev, tx_frames);
			STAT_ADD(dev, tx_bytes, wqe->length);
		}
	}
	sq_complete(qp, wqe, SKUA_CQE_SUCCESS, SKUA_VENDOR_ERR_NONE);
	qp->sq.una++;
	return true;
}

static bool eth_run(struct skua_qp *qp, int32_t *budget)
{
	struct sq *sq = &qp->sq;
	bool any = false;

	sq->busy = false;
	while (*budget > 0 && qp->state == SKUA_QPS_RTS &&
	       (sq->una != sq->tail || sq_fetch(qp))) {
		struct send_wqe *wqe = sq_wqe(qp, sq->una);

		*budget -= (int32_t)(wqe->length > FRAME_COST && wqe->length < 65536 ?
				     wqe->length : FRAME_COST);
		sq->busy = !eth_send(qp, wqe);
		if (sq->busy)
			break;
		sq->nxt = sq->una;
		any = true;
	}
	return any;
}

static bool wanted(const struct skua_dev *dev, const uint8_t *dmac)
{
	return dmac[0] & 1 || dev->port_flags & SKUA_PORT_F_PROMISC ||
	       !memcmp(dmac, dev->mac, sizeof(dev->mac));
}

/* The QP that takes a frame, or NULL; what there is to say of the frame goes to @cqe. */
static struct skua_qp *receiver(const struct skua_dev *dev, const uint8_t *frame,
				const struct frame_info *info, struct skua_cqe *cqe)
{
	uint32_t qpn = dev->rx_qpn, hash;
	struct skua_qp *qp;

	if (dev_has(dev, SKUA_F_ETH_CSUM)) {
		if (info->l3_ok)
			cqe->flags |= SKUA_CQE_L3_CSUM_OK;
		if (frame_l4_ok(frame, info))
			cqe->flags |= SKUA_CQE_L4_CSUM_OK;
	}
	if (dev_has(dev, SKUA_F_ETH_RSS) && info->ip) {
		hash = frame_hash(frame, info, dev->rss.key);
		cqe->rss_hash = htole32(hash);
		if (info->proto)
			cqe->flags |= SKUA_CQE_L4_HASH;
		if (dev->rss.qpn[hash & dev->rss.mask])
			qpn = dev->rss.qpn[hash & dev->rss.mask];
	}
	qp = numtab_get(&dev->qps, qpn);
	return qp && qp_can_receive(qp) ? qp : NULL;
}

void eth_rx_frame(struct skua_dev *dev, const struct seglist *frame)
{
	const uint8_t *bytes = frame->seg[0].p;
	struct seglist *dst = &dev->engine->dst;
	struct skua_cqe cqe = { .opcode = SKUA_CQE_RECV };
	struct frame_info info;
	struct recv_wqe wqe;
	struct skua_qp *qp;
	enum rq_result r;
	uint8_t err;

	if (!dev_running(dev) || !(dev->port_flags & SKUA_PORT_F_ENABLE))
		return;
	if (!wanted(dev, bytes))
		return;
	if (frame->bytes > dev->mtu + FRAME_OVERHEAD) {
		STAT_INC(dev, rx_dropped);
		return;
	}
	info = frame_parse(bytes, frame->bytes);
	qp = receiver(dev, bytes, &info, &cqe);
	r = qp ? qp_peek_recv(qp, &wqe, &err) : RQ_EMPTY;
	if (r == RQ_EMPTY || r == RQ_FATAL) {
		STAT_INC(dev, rx_no_buffer);
		return;
	}
	if (r == RQ_OK && wqe.length < frame->bytes) {
		STAT_INC(dev, rx_dropped);
		return;
	}
	rq_take(&qp->rq);
	cqe.cookie = htole32(wqe.cookie);
	dst->n = 0;
	dst->bytes = 0;
	if (r == RQ_OK)
		err = (uint8_t)rq_payload(&qp->rq, &wqe, 0, frame->bytes, dst);
	if (r == RQ_OK && !err) {
		copy_segs(dst, frame);
		cqe.byte_len = htole32(frame->bytes);
		STAT_INC(dev, rx_frames);
		STAT_ADD(dev, rx_bytes, frame->bytes);
		qp_complete_recv(qp, &cqe);
		return;
	}
	STAT_INC(dev, rx_dropped);
	cqe.status = r == RQ_OK ? SKUA_CQE_LOC_PROT_ERR : SKUA_CQE_LOC_QP_OP_ERR;
	cqe.vendor_err = err;
	cqe.flags = 0;
	qp_complete_recv(qp, &cqe);
	qp_to_err(qp);
}

const struct transport_ops eth_ops = {
	.features = 1ull << SKUA_F_ETHERNET,
	.driver = true,
	.qp_size = sizeof(struct skua_qp),
	.run = eth_run,
	.is_pending = unacked_is_pending,
	.flush = unacked_flush,
};
