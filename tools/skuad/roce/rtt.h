/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Round trips of the requester, and the timeouts that depend on them. Times in ns.
 */
#ifndef SKUAD_ROCE_RTT_H
#define SKUAD_ROCE_RTT_H

#include "roce/rc.h"

#define GRANULARITY_NS	1000000		/* kGranularity: a peer's thread may wait so long for its core */

/* A sample of the round trip: a packet that has arrived gives it. */
struct rtt_sample {
	uint64_t from;			/* the sample is the time since then; 0: there is none */
	uint64_t first_sent_at;		/* when the packet was sent first */
	bool is_gap;			/* the sample is the time between two responses */
	bool is_upper_bound;		/* the packet was sent more than once */
	bool is_lower_bound;		/* an earlier transmission may have arrived */
	bool is_unusable;		/* some packets had to wait for one that was retransmitted */
};

/* @run has arrived: note the sample that it gives. */
void rtt_sample(const struct skua_qp *qp, const struct sent_run *run, struct rtt_sample *sample);
/* Take the sample into the estimate. @order: behind the send order of what has arrived. */
void rtt_take(struct skua_qp *qp, const struct rtt_sample *sample, uint64_t order);

/* An answer came @rtt ns after what it answers was sent, and the peer was not at work in between. */
void rtt_of_path(struct skua_qp *qp, uint64_t rtt);

bool rtt_answers_earlier(const struct skua_qp *qp, const struct sent_run *run);

/*
 * May an earlier transmission than the last have arrived? From the second probe in a row on the last one counts, as the
 * path may have become shorter.
 */
static inline bool rtt_is_ambiguous(const struct skua_qp *qp, const struct sent_run *run)
{
	return run->retransmitted && rtt_answers_earlier(qp, run);
}

/* The Local ACK Timeout, and the probe timeout. */
uint64_t rtt_ack_timeout_ns(const struct skua_qp *qp);
uint64_t rtt_pto_ns(const struct skua_qp *qp);

#endif /* SKUAD_ROCE_RTT_H */
