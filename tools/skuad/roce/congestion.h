/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The congestion window of a requester (RFC 9002, section 7), in packets.
 */
#ifndef SKUAD_ROCE_CONGESTION_H
#define SKUAD_ROCE_CONGESTION_H

#include <stdbool.h>
#include <stdint.h>

struct skua_qp;

struct congestion {
	uint32_t window;		/* packets that may be in flight */
	uint32_t ssthresh;		/* below, slow start */
	uint32_t acked;			/* in congestion avoidance, since the window grew */
	uint64_t recovery_order;	/* send order that ends the recovery period */
	uint32_t window_before;		/* the recovery period */
	uint32_t num_acked, num_lost;	/* of the window of packets that is counted */
};

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
