// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * From a QP to its port: what all services send alike.
 *
 * The port of a peer on the same engine calls its owner within port_send_train(), so the peer's rx.c runs before the
 * call returns. No answer comes back within the call: a responder notes what it owes, and sends it in its turn.
 */
#include "roce/dcqcn.h"
#include "roce/send.h"

#include "packet/packet.h"

#define FRAME_HEADERS	18	/* Ethernet and a VLAN tag, which the MTU does not count */

enum port_result roce_send_train(struct skua_qp *qp, const struct train *t, struct port_mark *mark)
{
	struct skua_dev *dev = qp->dev;
	enum port_result r;
	uint32_t longest;
	uint64_t bytes;

	bytes = roce_train_bytes(t, &longest);
	/* RST-3: the QP may find in its turn that the device is dead. */
	if (!dev_running(dev) || !(dev->port_flags & SKUA_PORT_F_ENABLE) || !port_is_up(dev->port) ||
	    longest > dev->mtu + FRAME_HEADERS)
		return PORT_LOST;
	r = port_send_train(dev->port, t, mark);
	if (r == PORT_BUSY) {
		dev->refused = true;
	} else {
		dev->had_turn |= t->op != TRAIN_ACK;
		QP_STAT_ADD(qp, rdma_tx_packets, t->npkts);
		QP_STAT_ADD(qp, rdma_tx_bytes, bytes);
	}
	return r;
}

enum port_result roce_send(struct skua_qp *qp, struct train *t, struct port_mark *mark)
{
	enum port_result r;

	t->dest_qpn = qp->dest_qpn;
	t->src_qpn = qp->number;
	t->pmtu = qp->pmtu;
	t->path = &qp->path;
	r = roce_send_train(qp, t, mark);
	if (qp->pacer && t->payload && t->payload->bytes && r != PORT_BUSY)
		dcqcn_sent(qp, t);
	return r;
}
