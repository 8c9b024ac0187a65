// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * ETH queue pairs: frames of the host's network stack (manual: Ethernet), and of programs (manual: raw packets).
 *
 * A frame is copied to our own memory before it is looked at, and from there to its
 * receivers.
 */
#include <string.h>

#include "base/bytes.h"
#include "base/copy.h"
#include "core/flow.h"
#include "core/pacer.h"
#include "core/transport.h"
#include "eth/eth.h"
#include "eth/steer.h"
#include "packet/frame.h"
#include "packet/tso.h"

#define FRAME_COST	256	/* of a turn, at least */

static void eth_fail(struct skua_qp *qp, struct send_wqe *wqe, uint8_t status, uint8_t err)
{
	sq_complete(qp, wqe, status, err);
	qp->sq.una++;
	qp_to_err(qp);
}

/* What the next frame of a WQE is made of. */
struct next_frame {
	uint32_t header, payload;	/* bytes */
};

static struct next_frame next_frame(const struct send_wqe *wqe)
{
	uint32_t left = wqe->length - wqe->sent;

	if (wqe->opcode != SKUA_WQE_TSO)
		return (struct next_frame){ 0, wqe->length };
	return (struct next_frame){ wqe->hdr_len, left < wqe->mss ? left : wqe->mss };
}

/* The payload is in place: make it a frame, of @len bytes. */
static void finish_frame(const struct send_wqe *wqe, uint8_t *p, uint32_t len, struct next_frame next)
{
	if (wqe->opcode == SKUA_WQE_TSO)
		tso_finish_frame(p, wqe->header, wqe->hdr_len, &(struct tso_frame){
			.index = wqe->sent / wqe->mss,
			.offset = wqe->sent,
			.length = next.payload,
			.last = wqe->sent + next.payload == wqe->length,
		});
	else if (wqe->flags & SKUA_WQE_L4_CSUM)
		frame_fill_csum(p, len, wqe->csum_start, wqe->csum_offset);
	else if (wqe->flags & SKUA_WQE_IP_CSUM)
		frame_fill_csums(p, len);
}

/* Fetch the next frame to our own memory, and finish it. False: the WQE is no good, and has failed. */
static bool eth_gather(struct skua_qp *qp, struct send_wqe *wqe, struct next_frame next, struct seglist *frame)
{
	uint32_t len = next.header + next.payload;
	struct skua_dev *dev = qp->dev;
	struct seglist *src = &dev->engine->src;
	int err;

	if (wqe->flags & SKUA_WQE_L4_CSUM && wqe->csum_start + wqe->csum_offset + 2u > len) {
		eth_fail(qp, wqe, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_FORMAT);
		return false;
	}
	if (len < FRAME_HEADER || len > dev->mtu + FRAME_OVERHEAD) {
		eth_fail(qp, wqe, SKUA_CQE_LOC_LEN_ERR, SKUA_VENDOR_ERR_MSG_TOO_LONG);
		return false;
	}
	src->n = 0;
	src->bytes = 0;
	err = sq_payload(qp, wqe, wqe->sent, next.payload, 0, src);
	if (err) {
		eth_fail(qp, wqe, SKUA_CQE_LOC_PROT_ERR, (uint8_t)err);
		return false;
	}
	frame->n = 1;
	frame->seg[0] = (struct seg){ dev->engine->bounce + next.header, next.payload };
	copy_segs(frame, src);
	frame->bytes = len;
	frame->seg[0] = (struct seg){ dev->engine->bounce, len };
	finish_frame(wqe, dev->engine->bounce, len, next);
	return true;
}

/*
 * RAW-9: to other QPs here by flows. Before it is sent, which may put something else in its place, and only once however
 * often that has to wait.
 */
static void loop_back(struct skua_qp *qp, struct send_wqe *wqe, const struct seglist *frame)
{
	if (qp->privileged || wqe->begun || TAILQ_EMPTY(&qp->dev->flows) || !port_is_up(qp->dev->port))
		return;
	wqe->begun = true;
	steer_back(qp, frame);
}

/* The WQE, or the next frame of a TSO. False: the wire has no room now. */
static bool eth_send(struct skua_qp *qp, struct send_wqe *wqe, struct next_frame next)
{
	struct skua_dev *dev = qp->dev;
	struct seglist frame;

	if (wqe->status) {
		eth_fail(qp, wqe, wqe->status, wqe->vendor_err);
		return true;
	}
	if (!wqe->local) {
		enum port_result r = PORT_LOST;

		if (!eth_gather(qp, wqe, next, &frame))
			return true;
		if (dev->port_flags & SKUA_PORT_F_ENABLE) {
			loop_back(qp, wqe, &frame);
			r = port_send_frame(dev->port, &frame);
		}
		if (r == PORT_BUSY) {
			dev->refused = true;
			return false;
		}
		dev->had_turn = true;
		if (qp->pacer)
			pacer_sent(qp, frame.bytes);
		if (r == PORT_SENT) {
			STAT_INC(dev, tx_frames);
			STAT_ADD(dev, tx_bytes, frame.bytes);
		}
		wqe->sent += next.payload;
		wqe->begun = false;
		if (wqe->sent < wqe->length)
			return true;
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
		struct next_frame next = next_frame(wqe);

		if (qp->pacer && pacer_waits(qp))
			break;
		*budget -= (int32_t)(next.payload > FRAME_COST && next.payload < 65536 ?
				     next.payload : FRAME_COST);
		sq->busy = !eth_send(qp, wqe, next);
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

/* What the completion of a received frame says of its checksums. */
static uint8_t csum_flags(const struct skua_dev *dev, const uint8_t *frame, const struct frame_info *info)
{
	if (!dev_has(dev, SKUA_F_ETH_CSUM))
		return 0;
	return (info->l3_ok ? SKUA_CQE_L3_CSUM_OK : 0) | (frame_l4_ok(frame, info) ? SKUA_CQE_L4_CSUM_OK : 0);
}

static void tell_hash(struct skua_cqe *cqe, const struct frame_hash *hash)
{
	cqe->rss_hash = htole32(hash->hash);
	if (hash->ports)
		cqe->flags |= SKUA_CQE_L4_HASH;
}

/* The QP that takes the port's frames, or those with this hash, which goes to @cqe. NULL: none does. */
static struct skua_qp *port_receiver(const struct skua_dev *dev, const uint8_t *frame,
				     const struct frame_info *info, struct skua_cqe *cqe)
{
	uint32_t qpn = dev->rx_qpn;
	struct frame_hash hash;

	if (dev_has(dev, SKUA_F_ETH_RSS) && info->ip) {
		hash = frame_hash(frame, info, SKUA_HASH_MASK, dev->rss.key);
		tell_hash(cqe, &hash);
		if (dev->rss.qpn[hash.hash & dev->rss.mask])
			qpn = dev->rss.qpn[hash.hash & dev->rss.mask];
	}
	return numtab_get(&dev->qps, qpn);
}

/* The frame without its tag, which goes to @cqe, if it has one. @rest is what that is then. */
static const struct seglist *strip_tag(const struct seglist *frame, struct seglist *rest, struct skua_cqe *cqe)
{
	uint8_t *p = frame->seg[0].p;

	if (!frame_has_tag(p, frame->bytes))
		return frame;
	cqe->vlan = htole16(get16(p + FRAME_TAG_AT + 2));
	rest->n = 2;
	rest->bytes = frame->bytes - FRAME_TAG;
	rest->seg[0] = (struct seg){ p, FRAME_TAG_AT };
	rest->seg[1] = (struct seg){ p + FRAME_TAG_AT + FRAME_TAG, rest->bytes - FRAME_TAG_AT };
	return rest;
}

/* To a receive of @qp, if that has one; its completion is @cqe. */
static void deliver(struct skua_dev *dev, struct skua_qp *qp, const struct seglist *frame, struct skua_cqe *cqe)
{
	struct seglist *dst = &dev->engine->dst, rest;
	uint32_t came = frame->bytes;
	struct recv_wqe wqe;
	enum rq_result r;
	uint8_t err;

	r = qp && qp_can_receive(qp) ? qp_peek_recv(qp, &wqe, &err) : RQ_EMPTY;
	if (r == RQ_EMPTY || r == RQ_FATAL) {
		STAT_INC(dev, rx_no_buffer);
		return;
	}
	if (qp->attr.strip_cvlan)
		frame = strip_tag(frame, &rest, cqe);
	if (r == RQ_OK && wqe.length < frame->bytes) {
		STAT_INC(dev, rx_dropped);
		return;
	}
	rq_take(&qp->rq);
	cqe->cookie = htole32(wqe.cookie);
	dst->n = 0;
	dst->bytes = 0;
	if (r == RQ_OK)
		err = (uint8_t)rq_payload(&qp->rq, &wqe, 0, frame->bytes, dst);
	if (r == RQ_OK && !err) {
		copy_segs(dst, frame);
		cqe->byte_len = htole32(frame->bytes);
		STAT_INC(dev, rx_frames);
		STAT_ADD(dev, rx_bytes, came);
		qp_complete_recv(qp, cqe);
		return;
	}
	STAT_INC(dev, rx_dropped);
	cqe->status = r == RQ_OK ? SKUA_CQE_LOC_PROT_ERR : SKUA_CQE_LOC_QP_OP_ERR;
	cqe->vendor_err = err;
	cqe->flags = 0;
	qp_complete_recv(qp, cqe);
	qp_to_err(qp);
}

bool eth_takes(const struct skua_dev *dev, const struct seglist *frame)
{
	return dev_running(dev) && dev->port_flags & SKUA_PORT_F_ENABLE &&
	       frame->bytes <= dev->mtu + FRAME_OVERHEAD;
}

void eth_deliver(struct skua_dev *dev, const struct flow *flow, const struct seglist *frame,
		 const struct skua_qp *sender)
{
	const uint8_t *bytes = frame->seg[0].p;
	struct frame_info info = frame_parse(bytes, frame->bytes);
	struct skua_cqe cqe = {
		.opcode = SKUA_CQE_RECV, .flags = csum_flags(dev, bytes, &info), .flow_tag = htole32(flow->tag),
	};
	struct skua_qp *qp = flow->qp;
	struct frame_hash hash;

	if (flow->rss) {
		hash = frame_hash(bytes, &info, flow->rss->fields, flow->rss->key);
		tell_hash(&cqe, &hash);
		qp = rss_target(dev, flow->rss, hash.hash);
	}
	if (!sender || qp != sender)
		deliver(dev, qp, frame, &cqe);
}

void eth_rx_frame(struct skua_dev *dev, const struct seglist *frame)
{
	const uint8_t *bytes = frame->seg[0].p;
	struct skua_cqe cqe = { .opcode = SKUA_CQE_RECV };
	struct frame_info info;

	if (!dev_running(dev) || !(dev->port_flags & SKUA_PORT_F_ENABLE))
		return;
	if (!TAILQ_EMPTY(&dev->flows) && eth_takes(dev, frame) && steer_frame(dev, frame))
		return;
	if (!wanted(dev, bytes))
		return;
	if (!eth_takes(dev, frame)) {
		STAT_INC(dev, rx_dropped);
		return;
	}
	info = frame_parse(bytes, frame->bytes);
	cqe.flags = csum_flags(dev, bytes, &info);
	deliver(dev, port_receiver(dev, bytes, &info, &cqe), frame, &cqe);
}

const struct transport_ops eth_ops = {
	.features = 1ull << SKUA_F_ETHERNET,
	.driver = true,
	.open = 1ull << SKUA_F_RAW_PACKET,
	.qp_size = sizeof(struct skua_qp),
	.run = eth_run,
	.is_pending = unacked_is_pending,
	.flush = unacked_flush,
};
