// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Round trips of the requester: which packets give a sample, the estimate (RFC 9002, section 5), and the timeouts that
 * depend on it.
 *
 * A PSN is kept when its packet is retransmitted, so an answer may be to an earlier transmission than the last. And a
 * response tells how long the peer took, besides how long the path is. So many samples are only bounds.
 */
#include "roce/congestion.h"
#include "roce/rtt.h"

#define INITIAL_PTO_NS		16000000	/* before a round trip was measured */
#define MIN_RTT_WINDOW_NS	10000000000ull
#define PROBES_SLOW		3		/* probes in a row that make a peer slow */
#define PROBES_PER_RETRY	8		/* at least so many probes, when the PTO has grown */
#define PTO_MAX_NS		1000000000ull	/* of a QP without an ACK timeout */
#define TIMEOUT_MIN		13		/* 34 ms: on a slow line many packets of others may come first */

/*
 * May this be the answer to the last transmission of @run? Not if it comes sooner than a packet travels. Nor if
 * a response comes much later: a peer that is not busy with earlier requests answers sooner.
 */
static bool is_answer_to_last(const struct skua_qp *qp, const struct sent_run *run)
{
	const struct loss *l = &rc_of(qp)->req.loss;
	uint64_t age = now_of(qp) - run->sent_at;

	return age >= l->min_rtt / 2 && (!run->response || age < 4 * l->min_rtt + GRANULARITY_NS);
}

bool rtt_answers_earlier(const struct skua_qp *qp, const struct sent_run *run)
{
	const struct loss *l = &rc_of(qp)->req.loss;

	/* A probe for a part of a READ asks for one packet, which is a last response, and the first besides, but for rxe. */
	if (run->is_partial && run->send_order + 1 == l->probe_order && rc_of(qp)->req.response_goes_on)
		return true;
	if (!l->smoothed_rtt)
		return !run->was_lost;
	return l->pto_count < 2 && !is_answer_to_last(qp, run);
}

/* Is @run late because it was lost? If everything needs probes, the peer is slow instead. */
static bool is_gap_by_loss(const struct skua_qp *qp, const struct sent_run *run)
{
	return run->retransmitted && is_answer_to_last(qp, run) && rc_of(qp)->req.loss.probes < PROBES_SLOW;
}

/*
 * Where a sample begins that the arrival of @run gives. An ACK that a loss held up would measure the loss. For a
 * response it begins with the arrival before, because until then the peer was at work on that. If everything needs
 * probes, round trips have become longer than the estimate: they took at least the time since the last transmission.
 */
void rtt_sample(const struct skua_qp *qp, const struct sent_run *run, struct rtt_sample *sample)
{
	const struct loss *l = &rc_of(qp)->req.loss;

	/* The ACK of packets before the last probe may have been lost, so they give no better bound. */
	if (sample->is_lower_bound && run->sent_at <= sample->from)
		return;
	sample->from = sample->first_sent_at = run->first_sent_at;
	sample->is_gap = run->response && l->smoothed_rtt && l->last_arrival_at > run->first_sent_at;
	sample->is_upper_bound = run->retransmitted;
	sample->is_lower_bound = run->retransmitted && l->smoothed_rtt && l->probes >= PROBES_SLOW;
	if (sample->is_gap)
		sample->from = is_gap_by_loss(qp, run) ? 0 : l->last_arrival_at;
	else if (sample->is_lower_bound)
		sample->from = run->sent_at;
	else if (run->was_lost || (run->retransmitted && l->smoothed_rtt))
		sample->is_unusable = true;
}

/* RFC 9002, section 5.3. */
static void update_rtt(struct skua_qp *qp, uint64_t rtt)
{
	struct loss *l = &rc_of(qp)->req.loss;
	uint64_t off, now = now_of(qp);

	if (!l->smoothed_rtt || rtt <= l->min_rtt || now - l->min_rtt_at > MIN_RTT_WINDOW_NS) {
		l->min_rtt = rtt;
		l->min_rtt_at = now;
	}
	if (!l->smoothed_rtt) {
		l->smoothed_rtt = rtt + 1;
		l->rttvar = rtt / 2;
		return;
	}
	off = rtt > l->smoothed_rtt ? rtt - l->smoothed_rtt : l->smoothed_rtt - rtt;
	l->rttvar += off / 4 - l->rttvar / 4;
	l->smoothed_rtt += rtt / 8 - l->smoothed_rtt / 8;
}

void rtt_of_path(struct skua_qp *qp, uint64_t rtt)
{
	struct loss *l = &rc_of(qp)->req.loss;

	update_rtt(qp, rtt);
	l->path_rtt = l->path_rtt ? l->path_rtt - l->path_rtt / 8 + rtt / 8 : rtt;
}

uint64_t rtt_ack_timeout_ns(const struct skua_qp *qp)
{
	return 4096ull << (qp->attr.timeout < TIMEOUT_MIN ? TIMEOUT_MIN : qp->attr.timeout);
}

/*
 * The time between two responses is that of the peer, not of the path: it counts only if it is long. But the whole
 * time of a response is more than a round trip: if even that is within the estimate, the estimate was too long.
 */
void rtt_take(struct skua_qp *qp, const struct rtt_sample *sample, uint64_t order)
{
	uint64_t rtt = now_of(qp) - sample->from, whole = now_of(qp) - sample->first_sent_at;
	struct loss *l = &rc_of(qp)->req.loss;
	bool first = !l->smoothed_rtt;

	if (sample->is_gap && !sample->is_upper_bound && whole < l->smoothed_rtt) {
		update_rtt(qp, whole);
		return;
	}
	if ((sample->is_gap || sample->is_lower_bound) && rtt <= l->smoothed_rtt)
		return;
	/* The gap may include an outage of the line. */
	if (sample->is_gap && rtt > rtt_ack_timeout_ns(qp))
		rtt = rtt_ack_timeout_ns(qp);
	if (first)
		l->pto_count = 0;
	if (sample->is_gap)
		update_rtt(qp, rtt);
	else
		rtt_of_path(qp, rtt);
	/* Perhaps the probe was answered: then the round trip is shorter, and needs no margin besides. */
	if (first && sample->is_upper_bound)
		l->rttvar = 0;
	if (!sample->is_gap && order)
		congestion_round_trip(qp, order, rtt - l->min_rtt);
}

/* RFC 9002, section 6.2.1. */
uint64_t rtt_pto_ns(const struct skua_qp *qp)
{
	const struct loss *l = &rc_of(qp)->req.loss;
	uint64_t cap = qp->attr.timeout ? rtt_ack_timeout_ns(qp) / PROBES_PER_RETRY : PTO_MAX_NS;
	uint64_t ns = INITIAL_PTO_NS;

	if (!l->smoothed_rtt && qp->attr.timeout)
		cap *= PROBES_PER_RETRY / 2;
	else if (l->smoothed_rtt)
		ns = l->smoothed_rtt + (4 * l->rttvar > GRANULARITY_NS ? 4 * l->rttvar : GRANULARITY_NS);
	/* The cap limits the doubling only: a long round trip is no loss. */
	if (cap < ns)
		return ns;
	return ns << l->pto_count < cap ? ns << l->pto_count : cap;
}
