/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The congestion window of a requester (RFC 9002, section 7), in packets.
 */
#ifndef SKUAD_ROCE_CONGESTION_H
#define SKUAD_ROCE_CONGESTION_H

#include "roce/rc.h"

/* Packets that the congestion window lets be sent now. */
static inline uint32_t congestion_room(const struct skua_qp *qp)
{
	uint32_t flight = rc_of(qp)->req.sent.npkts[SENT_IN_FLIGHT];

	return flight < rc_of(qp)->req.congestion.window ? rc_of(qp)->req.congestion.window - flight : 0;
}

void congestion_init(struct congestion *c);
/*
 * @npkts packets have arrived; @order is behind the send order of the latest. 0: that says nothing of the
 * others, as a peer answers some requests before others.
 */
void congestion_acked(struct skua_qp *qp, uint32_t npkts, uint64_t order);
/* So many packets were lost on the line; @order as above. @rtt: ns, how long an answer takes now. */
void congestion_lost(struct skua_qp *qp, uint32_t lost, uint64_t order, uint64_t rtt);
/* They had only been delayed. */
void congestion_not_lost(struct skua_qp *qp);
/* A queue has grown too long without loss; @order as above. */
void congestion_queue(struct skua_qp *qp, uint64_t order);
/* Nothing that was sent for a long time has arrived (RFC 9002, 7.6). */
void congestion_persistent(struct skua_qp *qp);

#endif /* SKUAD_ROCE_CONGESTION_H */
