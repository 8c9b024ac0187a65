// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * ETH queue pairs: frames of the host's network stack (manual: Ethernet).
 *
 * A frame is copied to our own memory before it is looked at, and from there to its
 * receivers.
 */
#include <string.h>

#include "core/copy.h"
#include "core/qp.h"

#define ETH_HEADER	14
#define FRAME_COST	256	/* of a turn, at least */

static void eth_fail(struct skua_qp *qp, struct send_wqe *wqe, uint8_t status, uint8_t err)
{
	sq_complete(qp, wqe, status, err);
	qp->req.una++;
	qp_to_err(qp);
}

/* False: the wire has no room now. */
static bool eth_send(struct skua_qp *qp, struct send_wqe *wqe)
{
	struct skua_dev *dev = qp->dev;
	struct seglist *src = &dev->engine->src;
	struct seglist frame = { .n = 1 };
	int err;

	if (wqe->status) {
		eth_fail(qp, wqe, wqe->status, wqe->vendor_err);
		return true;
	}
	if (wqe->opcode == SKUA_WQE_SEND) {
		if (wqe->length < ETH_HEADER || wqe->length > LIMIT_MTU + 18) {
			eth_fail(qp, wqe, SKUA_CQE_LOC_LEN_ERR, SKUA_VENDOR_ERR_MSG_TOO_LONG);
			return true;
		}
		src->n = 0;
		src->bytes = 0;
		err = sq_payload(qp, wqe, 0, wqe->length, 0, src);
		if (err) {
			eth_fail(qp, wqe, SKUA_CQE_LOC_PROT_ERR, (uint8_t)err);
			return true;
		}
		frame.bytes = wqe->length;
		frame.seg[0] = (struct seg){ dev->engine->bounce, wqe->length };
		copy_segs(&frame, src);
		if (dev->port_flags & SKUA_PORT_F_ENABLE && wqe->length <= dev->mtu + 18) {
			if (port_send_frame(dev->port, &frame) == PORT_BUSY)
				return false;
			STAT_INC(dev, tx_frames);
			STAT_ADD(dev, tx_bytes, wqe->length);
		}
	}
	sq_complete(qp, wqe, SKUA_CQE_SUCCESS, SKUA_VENDOR_ERR_NONE);
	qp->req.una++;
	return true;
}

bool eth_run(struct skua_qp *qp, int32_t *budget)
{
	struct roce_req *req = &qp->req;
	bool any = false;

	while (*budget > 0 && qp->state == SKUA_QPS_RTS &&
	       (req->una != req->tail || sq_fetch(qp))) {
		struct send_wqe *wqe = sq_wqe(qp, req->una);

		*budget -= (int32_t)(wqe->length > FRAME_COST && wqe->length < 65536 ?
				     wqe->length : FRAME_COST);
		if (!eth_send(qp, wqe))
			return true;
		req->nxt = req->una;
		any = true;
	}
	return any;
}

static bool wanted(const struct skua_dev *dev, const uint8_t *dmac)
{
	return dmac[0] & 1 || dev->port_flags & SKUA_PORT_F_PROMISC ||
	       !memcmp(dmac, dev->mac, sizeof(dev->mac));
}

void skua_dev_rx_frame(struct skua_dev *dev, const struct seglist *frame)
{
	struct skua_qp *qp = numtab_get(&dev->qps, dev->rx_qpn);
	struct seglist *dst = &dev->engine->dst;
	struct skua_cqe cqe = { .opcode = SKUA_CQE_RECV };
	struct recv_wqe wqe;
	enum rq_result r;
	uint8_t err;

	if (!dev_running(dev) || !(dev->port_flags & SKUA_PORT_F_ENABLE) || !qp ||
	    !qp_can_receive(qp) || !wanted(dev, frame->seg[0].p) ||
	    frame->bytes > dev->mtu + 18) {
		STAT_INC(dev, rx_dropped);
		return;
	}
	r = rq_peek(qp, &wqe, &err);
	if (r == RQ_EMPTY || r == RQ_FATAL) {
		STAT_INC(dev, rx_no_buffer);
		return;
	}
	if (r == RQ_OK && wqe.length < frame->bytes) {
		STAT_INC(dev, rx_dropped);
		return;
	}
	rq_take(qp);
	cqe.cookie = htole32(wqe.cookie);
	dst->n = 0;
	dst->bytes = 0;
	if (r == RQ_OK) {
		err = (uint8_t)rq_payload(qp, &wqe, 0, frame->bytes, dst);
		cqe.status = err ? SKUA_CQE_LOC_PROT_ERR : SKUA_CQE_SUCCESS;
	} else {
		cqe.status = SKUA_CQE_LOC_QP_OP_ERR;
	}
	cqe.vendor_err = err;
	if (cqe.status == SKUA_CQE_SUCCESS) {
		cqe.vendor_err = 0;
		copy_segs(dst, frame);
		cqe.byte_len = htole32(frame->bytes);
		STAT_INC(dev, rx_frames);
		STAT_ADD(dev, rx_bytes, frame->bytes);
	}
	rq_complete(qp, &cqe);
	if (cqe.status != SKUA_CQE_SUCCESS)
		qp_to_err(qp);
}
