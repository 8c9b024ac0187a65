// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What arrives on the port: which QP it is for, and whether that QP expects it.
 *
 * The services stand above this file. It calls them by struct transport_ops. A MISSING goes to the requester of RC by
 * name, as no other service has such frames.
 */
#include <string.h>

#include "packet/frame.h"
#include "packet/packet.h"
#include "roce/cnp.h"
#include "roce/dcqcn.h"
#include "roce/req_rx.h"
#include "roce/rx.h"

static bool takes_rdma(const struct skua_dev *dev)
{
	const uint32_t need = SKUA_PORT_F_ENABLE | SKUA_PORT_F_ROCE;

	return dev_running(dev) && (dev->port_flags & need) == need;
}

/* ETH-9: is there a GID that makes it ours? */
static bool is_ours(struct skua_dev *dev, const struct roce_path *path)
{
	/* Most often it is the same entry as the last time. */
	for (unsigned int i = 0; i < LIMIT_GID; i++) {
		unsigned int at = (dev->gid_hint + i) % LIMIT_GID;
		const struct gid_entry *e = &dev->gids[at];

		if (e->set && e->vlan == path->vlan && !memcmp(e->gid, path->dgid, 16) &&
		    (!memcmp(path->dmac, dev->mac, 6) || !memcmp(path->dmac, e->mac, 6))) {
			dev->gid_hint = at;
			return true;
		}
	}
	return false;
}

/* Is the GID that the QP took at RTR still one of ours? Looked up again when the table changed. */
static bool gid_programmed(struct skua_dev *dev, struct skua_qp *qp)
{
	if (qp->gid_gen == dev->gid_gen)
		return qp->gid_good;
	qp->gid_gen = dev->gid_gen;
	qp->gid_good = false;
	for (int i = 0; i < LIMIT_GID && !qp->gid_good; i++)
		qp->gid_good = dev->gids[i].set && dev->gids[i].vlan == qp->path.vlan &&
			       !memcmp(dev->gids[i].gid, qp->path.sgid, 16);
	return qp->gid_good;
}

/* Does the packet come from the QP's peer, on the QP's path? */
static bool is_from_peer(struct skua_qp *qp, const struct roce_path *path)
{
	return !memcmp(path->dgid, qp->path.sgid, 16) && !memcmp(path->sgid, qp->path.dgid, 16) &&
	       path->vlan == qp->path.vlan && gid_programmed(qp->dev, qp);
}

static bool is_connected(const struct skua_qp *qp)
{
	return qp->ops->service != TRANSPORT_UD;
}

/*
 * The QP that @t is for, if it expects packets from that source. NULL: the packet is dropped, and @refusal is the
 * counter of its cause. Nothing in a packet is trusted before this check.
 */
static struct skua_qp *qp_for(struct skua_dev *dev, const struct train *t, uint64_t **refusal)
{
	struct skua_qp *qp = numtab_get(&dev->qps, t->dest_qpn);

	if (!qp || !qp->ops->roce ||
	    !(train_is_response(t->op) ? qp_can_send(qp) : qp_can_receive(qp)))
		*refusal = &dev->stats.rdma_rx_bad_qp;
	else if (t->op == TRAIN_CNP ? !is_connected(qp) : t->transport != qp->ops->service)
		*refusal = &dev->stats.rdma_rx_bad_opcode;
	else if (!(t->transport == TRANSPORT_UD ? is_ours(dev, t->path) : is_from_peer(qp, t->path)))
		*refusal = &dev->stats.rdma_rx_bad_addr;
	else
		return qp;
	return NULL;
}

static void count_refusal(uint64_t *refusal, uint32_t npkts)
{
	__atomic_store_n(refusal, *refusal + npkts, __ATOMIC_RELAXED);
}

/* Packets count for the QP that takes them; those that none takes, or a group, for the function. */
static void count_packets(struct device_stats *stats, uint32_t npkts, uint64_t bytes)
{
	STATS_ADD(stats, rdma_rx_packets, npkts);
	STATS_ADD(stats, rdma_rx_bytes, bytes);
}

static void hand_over(struct skua_qp *qp, const struct train *t)
{
	if (t->payload && (t->path->traffic_class & ECN_MASK) == ECN_CE && is_connected(qp))
		cnp_marked(qp, t->npkts);
	if (t->op == TRAIN_CNP)
		dcqcn_cnp(qp);
	else
		qp->ops->rx(qp, t);
}

bool roce_rx_train(struct skua_dev *dev, const struct train *t)
{
	struct mcast_group *group;
	uint64_t *refusal;
	struct skua_qp *qp;
	uint32_t longest;
	uint64_t bytes;
	bool too_long;

	if (!takes_rdma(dev))
		return false;
	bytes = roce_train_bytes(t, &longest);
	too_long = longest > dev->mtu + FRAME_OVERHEAD;
	group = mcast_find(dev, t->path);
	qp = group || too_long ? NULL : qp_for(dev, t, &refusal);
	/* What a QP expects is to one of our GIDs. */
	if (!group && !qp && !is_ours(dev, t->path))
		return false;
	count_packets(qp ? qp->stats : &dev->stats, t->npkts, bytes);
	if (too_long)
		STAT_ADD(dev, rdma_rx_bad_packet, t->npkts);
	else if (group)
		mcast_rx(dev, group, t);
	else if (qp)
		hand_over(qp, t);
	else
		count_refusal(refusal, t->npkts);
	return true;
}

static void count_fault(struct skua_dev *dev, enum roce_fault fault)
{
	switch (fault) {
	case ROCE_BAD_ICRC:
		STAT_INC(dev, rdma_rx_bad_icrc);
		break;
	case ROCE_BAD_OPCODE:
		STAT_INC(dev, rdma_rx_bad_opcode);
		break;
	case ROCE_BAD_PKEY:
		STAT_INC(dev, rdma_rx_bad_pkey);
		break;
	default:
		STAT_INC(dev, rdma_rx_bad_packet);
	}
}

/* A frame of selective repeat. */
static void rx_repeat(struct skua_dev *dev, const uint8_t *frame, uint32_t len)
{
	struct train t = { .op = TRAIN_ACK };
	struct repeat_frame f;
	uint64_t *refusal;
	struct skua_qp *qp;

	if (!repeat_parse(&f, frame, len)) {
		STAT_INC(dev, rdma_rx_bad_packet);
		return;
	}
	if (f.type == REPEAT_HELLO) {
		repeat_hello(dev, &f);
		return;
	}
	t.dest_qpn = f.dest_qpn;
	t.path = &f.path;
	qp = numtab_get(&dev->qps, f.dest_qpn);
	/* It does not say of which of the services that have such frames it is. */
	if (qp && qp->ops->service == TRANSPORT_XRC)
		t.transport = TRANSPORT_XRC;
	qp = qp_for(dev, &t, &refusal);
	if (qp)
		req_rx_missing(qp, &f);
	else
		count_refusal(refusal, 1);
}

static bool is_our_mac(const struct skua_dev *dev, const uint8_t *mac)
{
	for (int i = 0; i < LIMIT_GID; i++)
		if (dev->gids[i].set && !memcmp(dev->gids[i].mac, mac, 6))
			return true;
	return !memcmp(dev->mac, mac, 6);
}

bool roce_rx_frame(struct skua_dev *dev, const uint8_t *frame, uint32_t len)
{
	struct mcast_group *group;
	struct roce_packet pkt;
	enum roce_fault fault;
	uint64_t *refusal;
	struct skua_qp *qp;

	if (repeat_is_frame(frame, len) && takes_rdma(dev) && !dev->inject.go_back_n &&
	    is_our_mac(dev, frame)) {
		rx_repeat(dev, frame, len);
		return true;
	}
	if (!takes_rdma(dev) || !roce_packet_open(&pkt, frame, len))
		return false;
	group = mcast_find(dev, &pkt.path);
	if (!group && !is_ours(dev, &pkt.path))
		return false;
	fault = len <= dev->mtu + FRAME_OVERHEAD ? roce_packet_parse(&pkt) : ROCE_BAD_LENGTH;
	qp = fault || group ? NULL : qp_for(dev, &pkt.train, &refusal);
	count_packets(qp ? qp->stats : &dev->stats, 1, len);
	if (fault) {
		count_fault(dev, fault);
	} else if (group) {
		mcast_rx(dev, group, &pkt.train);
	} else if (qp) {
		pkt.train.pmtu = qp->pmtu;
		hand_over(qp, &pkt.train);
	} else {
		count_refusal(refusal, 1);
	}
	return true;
}
