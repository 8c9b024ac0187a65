// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The congestion window: NewReno as RFC 9002, section 7 has it, with its terms. It counts packets,
 * since packets are what a peer in software spends its time on.
 *
 * Three things differ. The initial window is large, since RDMA NICs start at the speed of the line. A loss
 * reduces the window only where congestion explains it: round trips are much longer than the shortest, or
 * more than a quarter of a window's worth of packets is lost. A loss by chance on an idle line, as tests and
 * bad cables make it, would only make the connection slow. And a queue that delays answers by milliseconds
 * reduces the window even before it overflows: the peer behind it may be too busy receiving to answer. A peer
 * that has stood still for a while is no queue: what is sent after it was heard again is answered soon.
 */
#include "roce/congestion.h"

#define INITIAL_WINDOW	128u
#define MINIMUM_WINDOW	2u		/* kMinimumWindow */
#define LONG_QUEUE	6		/* a round trip is long: so many times min_rtt, */
#define LONG_QUEUE_NS	1000000		/* and longer than min_rtt by so much */
#define MANY_LOST	4		/* one packet in so many */
#define LEAST_COUNTED	16		/* fewer packets do not say how many are lost */
#define QUEUE_NS	4000000		/* a round trip may exceed min_rtt by so much */

void congestion_init(struct congestion *c)
{
	*c = (struct congestion){ .window = INITIAL_WINDOW, .ssthresh = UINT32_MAX };
}

static void set_window(struct congestion *c, uint32_t window)
{
	c->window = window < MINIMUM_WINDOW ? MINIMUM_WINDOW : window;
	c->ssthresh = c->window;
	c->acked_since_growth = 0;
}

/* A recovery period begins, unless @order was sent before one did. kLossReductionFactor is 0.5. */
static void reduce(struct skua_qp *qp, uint64_t order)
{
	struct congestion *c = &rc_of(qp)->req.congestion;

	if (order <= c->recovery_order)
		return;
	c->recovery_order = rc_of(qp)->req.sent.next_order;
	c->window_before_recovery = c->window;
	set_window(c, c->window / 2);
}

/*
 * Count what has arrived and what was lost, up to a window's worth of packets. If too many are lost, the window
 * becomes what has arrived, in a recovery period, too.
 */
static void count_lost(struct skua_qp *qp, uint32_t acked, uint32_t lost, uint64_t order)
{
	struct congestion *c = &rc_of(qp)->req.congestion;
	uint32_t all;

	c->counted_acked += acked;
	c->counted_lost += lost;
	all = c->counted_acked + c->counted_lost;
	if (all < c->window || all < LEAST_COUNTED)
		return;
	if (c->counted_lost > all / MANY_LOST) {
		reduce(qp, order);
		/* The line carries no more than what has arrived. */
		set_window(c, c->counted_acked < c->window ? c->counted_acked : c->window);
		c->window_before_recovery = 0;
	}
	c->counted_acked = 0;
	c->counted_lost = 0;
}

/* A peer without selective repeat drops all that is in the queue behind a loss: any queue costs much there. */
static bool is_long(struct skua_qp *qp, uint64_t rtt)
{
	const struct loss *l = &rc_of(qp)->req.loss;
	uint64_t least = repeat_offered(qp) ? LONG_QUEUE_NS : 0;

	return !l->smoothed_rtt || (rtt > LONG_QUEUE * l->min_rtt && rtt - l->min_rtt > least);
}

void congestion_lost(struct skua_qp *qp, uint32_t lost, uint64_t order, uint64_t rtt)
{
	if (is_long(qp, rtt))
		reduce(qp, order);
	count_lost(qp, 0, lost, order);
}

void congestion_not_lost(struct skua_qp *qp)
{
	struct congestion *c = &rc_of(qp)->req.congestion;

	if (c->window_before_recovery > c->window)
		c->window = c->window_before_recovery;
	c->window_before_recovery = 0;
}

void congestion_round_trip(struct skua_qp *qp, uint64_t order, uint64_t excess)
{
	struct congestion *c = &rc_of(qp)->req.congestion;

	if (excess <= QUEUE_NS)
		c->queue_order = 0;
	else if (!c->queue_order)
		c->queue_order = rc_of(qp)->req.sent.next_order;
	else if (order > c->queue_order)
		reduce(qp, order);
}

void congestion_acked(struct skua_qp *qp, uint32_t npkts, uint64_t order)
{
	struct congestion *c = &rc_of(qp)->req.congestion;

	count_lost(qp, npkts, 0, order);
	/* The window does not grow in the recovery period, nor while it does not limit what is sent (7.8). */
	if (order <= c->recovery_order || c->window >= PSN_WINDOW ||
	    sent_in_flight(&rc_of(qp)->req.sent) + npkts < c->window / 2)
		return;
	if (c->window < c->ssthresh) {
		c->window += npkts;
		return;
	}
	c->acked_since_growth += npkts;
	if (c->acked_since_growth < c->window)
		return;
	c->acked_since_growth -= c->window;
	c->window++;
}

void congestion_persistent(struct skua_qp *qp)
{
	struct congestion *c = &rc_of(qp)->req.congestion;

	if (c->ssthresh > c->window / 2)
		c->ssthresh = c->window / 2;
	c->window = MINIMUM_WINDOW;
	c->acked_since_growth = 0;
	c->recovery_order = 0;
	c->window_before_recovery = 0;
}
