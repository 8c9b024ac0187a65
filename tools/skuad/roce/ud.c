// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * UD and GSI: datagrams of one packet (manual: unreliable services).
 *
 * A datagram is a train of one packet and goes the way of all trains; where it does not leave the
 * process there are no headers of it, and the receiver's copy of them is made from its path.
 *
 * A datagram for a group of which this device has members goes to rx.c besides, which calls ud_rx() of each member.
 */
#include "base/copy.h"
#include "core/fault.h"
#include "core/pacer.h"
#include "core/tags.h"
#include "core/transport.h"
#include "packet/packet.h"
#include "roce/roce.h"
#include "roce/rx.h"
#include "roce/send.h"

#define PACKET_HEADERS	96		/* of the MTU; PRT-6 */
#define MTU_MIN		256u
#define MTU_MAX		4096u

static uint32_t dest_qpn(const struct skua_wqe_ud *ud)
{
	return le32toh(ud->dest_qpn) & NUMTAB_MASK;
}

/* Bytes of the longest datagram: the port's active MTU. */
static uint32_t active_mtu(const struct skua_dev *dev)
{
	uint32_t mtu = MTU_MAX;

	while (mtu > MTU_MIN && mtu + PACKET_HEADERS > dev->mtu)
		mtu /= 2;
	return mtu;
}

static void fault(struct send_wqe *wqe, uint8_t status, int vendor_err)
{
	wqe->status = status;
	wqe->vendor_err = (uint8_t)vendor_err;
}

/* Find the path and the payload. False: the WQE has a status, or its payload is not present yet. */
static bool prepare(struct skua_qp *qp, struct send_wqe *wqe, struct roce_path *path,
		    struct seglist *src)
{
	int err = path_resolve(qp->dev, &wqe->ud->av, qp->number, dest_qpn(wqe->ud), path);

	if (err) {
		fault(wqe, SKUA_CQE_LOC_QP_OP_ERR, err);
		return false;
	}
	if (wqe->length > active_mtu(qp->dev)) {
		fault(wqe, SKUA_CQE_LOC_LEN_ERR, SKUA_VENDOR_ERR_MSG_TOO_LONG);
		return false;
	}
	src->n = 0;
	src->bytes = 0;
	err = sq_payload(qp, wqe, 0, wqe->length, 0, src);
	if (err == SKUA_VENDOR_ERR_NOT_PRESENT && fault_wait(qp, SKUA_PAGE_FAULT_REQUESTER))
		return false;
	if (err)
		fault(wqe, SKUA_CQE_LOC_PROT_ERR, err);
	return !err;
}

static bool ud_send(struct skua_qp *qp, struct send_wqe *wqe, int32_t *budget)
{
	struct sq *sq = &qp->sq;
	struct seglist *src = &qp->dev->engine->src;
	uint32_t qkey = le32toh(wqe->ud->qkey);
	struct roce_path path;
	struct train t = {
		.op = wqe->opcode == SKUA_WQE_SEND_IMM ? TRAIN_SEND_IMM : TRAIN_SEND,
		.transport = TRANSPORT_UD, .first = true, .last = true,
		.solicited = wqe->flags & SKUA_WQE_SOLICITED,
		.dest_qpn = dest_qpn(wqe->ud), .src_qpn = qp->number,
		.qkey = qkey & SKUA_QKEY_OWN ? qp->qkey : qkey,
		.psn = sq->psn, .npkts = 1, .pmtu = MTU_MAX, .imm = wqe->imm,
		.path = &path, .payload = src,
	};
	enum port_result r;
	uint32_t longest;

	if (qp->pacer && pacer_waits(qp))
		return false;
	if (!prepare(qp, wqe, &path, src))
		return wqe->status;
	r = roce_send_train(qp, &t, &wqe->mark);
	if (r == PORT_BUSY) {
		sq->busy = true;
		return false;
	}
	if (qp->pacer)
		pacer_sent(qp, roce_train_bytes(&t, &longest));
	if (r == PORT_SENT) {
		QP_STAT_INC(qp, rdma_tx_send);
		/* The wire does not bring a datagram back to its sender. */
		if (mcast_find(qp->dev, &path))
			roce_rx_train(qp->dev, &t);
	}
	*budget -= (int32_t)wqe->length;
	sq->psn = psn_add(sq->psn, 1);
	sq->nxt++;
	return true;
}

/* Place the header, and the payload behind it, in the receive. enum skua_vendor_err. */
static int place(struct skua_qp *qp, const struct recv_wqe *wqe, const struct train *t)
{
	struct seglist *dst = &qp->dev->engine->dst, src;
	uint8_t header[SKUA_UD_HEADER];
	int err;

	src.n = 1;
	src.bytes = sizeof(header);
	src.seg[0] = (struct seg){ header, sizeof(header) };
	if (t->payload) {
		memcpy(src.seg + 1, t->payload->seg, t->payload->n * sizeof(src.seg[0]));
		src.n += t->payload->n;
		src.bytes += t->payload->bytes;
	}
	dst->n = 0;
	dst->bytes = 0;
	err = rq_payload(&qp->rq, wqe, 0, src.bytes, dst);
	if (!err) {
		roce_ud_header(header, t);
		copy_segs(dst, &src);
	}
	return err;
}

static uint16_t vlan_tag(const struct roce_path *path)
{
	return path->vlan == SKUA_VLAN_NONE ? SKUA_VLAN_NONE :
	       (uint16_t)(path->sl << 13 | path->vlan);
}

/* Where the receiver of @t counts: what is for a group counts for the function (STA-5). */
static struct device_stats *stats_of(const struct skua_qp *qp, const struct train *t)
{
	return t->dest_qpn == MCAST_QPN ? &qp->dev->stats : qp->stats;
}

static void complete(struct skua_qp *qp, const struct recv_wqe *wqe, const struct train *t,
		     uint32_t bytes)
{
	struct skua_cqe cqe = {
		.opcode = SKUA_CQE_RECV,
		.cookie = htole32(wqe->cookie),
		.byte_len = htole32(bytes),
		.src_qpn = htole32(t->src_qpn),
		.vlan = htole16(vlan_tag(t->path)),
		.ip_version = gid_is_ipv4(t->path->sgid) ? 4 : 6,
		.flags = t->solicited ? SKUA_CQE_SOLICITED : 0,
	};

	memcpy(cqe.smac, t->path->smac, sizeof(cqe.smac));
	if (t->op == TRAIN_SEND_IMM) {
		cqe.imm_data = t->imm;
		cqe.flags |= SKUA_CQE_WITH_IMM;
	}
	STATS_ADD(stats_of(qp, t), rdma_rx_send, 1);
	qp_complete_recv(qp, &cqe);
}

/* The receive itself is faulty: that has nothing to do with the peer. */
static void fail_recv(struct skua_qp *qp, const struct recv_wqe *wqe, uint8_t status, uint8_t err)
{
	struct skua_cqe cqe = {
		.opcode = SKUA_CQE_RECV, .status = status, .vendor_err = err,
		.cookie = htole32(wqe->cookie),
	};

	qp_complete_recv(qp, &cqe);
	qp_to_err(qp);
}

static void ud_rx(struct skua_qp *qp, const struct train *t)
{
	uint32_t bytes = SKUA_UD_HEADER + (t->payload ? t->payload->bytes : 0);
	struct recv_wqe wqe;
	enum rq_result r;
	uint8_t why;
	int err;

	if (t->qkey != qp->qkey) {
		STATS_ADD(stats_of(qp, t), rdma_rx_bad_qkey, 1);
		return;
	}
	/* The entries of an SRQ with tags are for messages. */
	r = tags_of(qp) ? RQ_EMPTY : qp_peek_recv(qp, &wqe, &why);
	if (r == RQ_EMPTY || r == RQ_FATAL || (r == RQ_OK && wqe.length < bytes)) {
		STATS_ADD(stats_of(qp, t), rdma_rx_no_receive, 1);
		return;
	}
	err = r == RQ_OK ? place(qp, &wqe, t) : SKUA_VENDOR_ERR_NONE;
	/* The datagram is lost, but the next one may find the page. */
	if (err == SKUA_VENDOR_ERR_NOT_PRESENT && fault_wait(qp, SKUA_PAGE_FAULT_RESPONDER)) {
		STATS_ADD(stats_of(qp, t), rdma_rx_no_receive, 1);
		return;
	}
	rq_take(&qp->rq);
	if (r == RQ_BAD)
		fail_recv(qp, &wqe, SKUA_CQE_LOC_QP_OP_ERR, why);
	else if (err)
		fail_recv(qp, &wqe, SKUA_CQE_LOC_PROT_ERR, (uint8_t)err);
	else
		complete(qp, &wqe, t, bytes);
	fault_over(qp, SKUA_PAGE_FAULT_RESPONDER);
}

#define UD_OPS \
	.features = 1ull << SKUA_F_UD, .roce = true, .service = TRANSPORT_UD, .qp_size = sizeof(struct skua_qp), \
	.run = unacked_run, .is_pending = unacked_is_pending, .send = ud_send, .rx = ud_rx, .flush = unacked_flush

const struct transport_ops ud_ops = { UD_OPS, .srq = true };
const struct transport_ops gsi_ops = { UD_OPS, .driver = true };
