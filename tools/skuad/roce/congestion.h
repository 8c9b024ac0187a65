/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The congestion window of a requester (RFC 9002, section 7), in packets.
 */
#ifndef SKUAD_ROCE_CONGESTION_H
#define SKUAD_ROCE_CONGESTION_H

#include "roce/rc.h"

/* How many packets the congestion window allows to be sent now. */
static inline uint32_t congestion_room(const struct skua_qp *qp)
{
	uint32_t flight = sent_in_flight(&rc_of(qp)->req.sent);

	return flight < rc_of(qp)->req.congestion.window ? rc_of(qp)->req.congestion.window - flight : 0;
}

void congestion_init(struct congestion *c);
/*
 * @npkts packets have arrived; @order is behind the send order of the latest. @order 0: they tell nothing of others, as
 * a peer answers some requests before others.
 */
void congestion_acked(struct skua_qp *qp, uint32_t npkts, uint64_t order);
/* @lost packets were lost on the line; @order as above. @rtt: how long an answer takes now, in ns. */
void congestion_lost(struct skua_qp *qp, uint32_t lost, uint64_t order, uint64_t rtt);
/* Packets that counted as lost were only delayed. */
void congestion_not_lost(struct skua_qp *qp);
/* A round trip took @excess ns more than the shortest one; @order as above, but not 0. */
void congestion_round_trip(struct skua_qp *qp, uint64_t order, uint64_t excess);
/* Nothing that was sent for a long time has arrived (RFC 9002, 7.6). */
void congestion_persistent(struct skua_qp *qp);

#endif /* SKUAD_ROCE_CONGESTION_H */
