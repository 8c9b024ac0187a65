// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a world may do, reckoned from its attributes and lines before it runs, and the
 * invariants of its devices.
 *
 * Example of the first: a line loses 5% of the packets in each direction, so a packet and its
 * answer get through with 0.9. With timeout 67 ms, retry_cnt 7 and a round trip of 1 ms, a
 * requester has 8 retries with some probes in each before it gives up. 0.1^24 is nothing, so
 * RETRY_EXC is a fault there. With retry_cnt 0 it may happen in one world of 1,000, and is none.
 */
#include <stdarg.h>

#include "core/fault.h"
#include "core/qp.h"
#include "harness/sim.h"
#include "roce/dcqcn.h"
#include "roce/roce.h"

#define HEADERS		110u		/* of a packet, at most, bytes */
#define UNLIKELY	1e-12
#define FIRST_PROBE	(16 * SIM_MS)	/* before a round trip was measured */
#define QUEUE_IN	(10 * SIM_MS)	/* before a receiver (link/impair.c) */
#define LEAST_WINDOW	16u		/* packets that are in flight, for goodput */
#define LATE		(2 * SIM_MS)	/* of timers, and for granularity */

void sim_fail(struct sim *s, const char *kind, const char *fmt, ...)
{
	va_list ap;

	/* The first one is the cause of the others. */
	if (sim_failed(s))
		return;
	snprintf(s->failure.kind, sizeof(s->failure.kind), "%s", kind);
	s->failure.at = s->w ? sim_now(s) : 0;
	va_start(ap, fmt);
	vsnprintf(s->failure.text, sizeof(s->failure.text), fmt, ap);
	va_end(ap);
}

/* IBTA's codes of RNR timers. */
uint64_t sim_rnr_ns(uint8_t code)
{
	static const uint32_t us10[32] = {
		65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768,
		1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
	};

	return us10[code & 31] * 10000ull;
}

/* Packets that come late are as good as lost to who waits for them. */
static double lost(const struct sim_line *l)
{
	return 1 - (1 - l->loss / 1e6) * (1 - l->corrupt / 1e6) * (1 - l->reorder / 1e6);
}

/* All QPs send a packet of theirs, as requester and as responder. */
static uint64_t turn(const struct sim *s, const struct sim_line *l)
{
	uint64_t bytes = 0;

	if (!l->rate)
		return 0;
	for (unsigned int q = 0; q < s->nqps; q++)
		if (s->qp[q].on)
			bytes += 2 * (sim_pmtu(&s->qp[q]) + HEADERS);
	return bytes * 8 * SIM_S / l->rate;
}

static void reckon_lines(struct sim *s)
{
	s->calm = true;
	for (unsigned int i = 0; i < 2; i++) {
		const struct sim_line *l = &s->line[i];
		uint64_t t = turn(s, l);

		s->turns += t;
		s->rtt += l->delay + l->jitter + (l->reorder ? l->reorder_by : 0) + 2 * t;
		if (l->rate)
			s->rtt += 200 * SIM_US;
		if (l->rate && l->in) {
			s->rtt += QUEUE_IN;
			s->lossy = true;
			s->calm = false;
			if (4 * t > QUEUE_IN)
				s->crowded = true;
		}
		if (l->loss || l->corrupt || l->reorder)
			s->lossy = true;
		if (lost(l) > 0.02 || l->ecn || l->reorder || l->duplicate || l->jitter)
			s->calm = false;
	}
	for (unsigned int i = 0; i < s->nevents; i++) {
		const struct sim_event *e = &s->event[i];

		s->calm = false;
		if (e->kind == SIM_EV_KILL)
			continue;
		s->outage += e->length;
		if (e->kind != SIM_EV_PAUSE)
			s->lossy = true;
	}
}

/* The least timeout that leaves room for four round trips, and what was drawn above it. */
static uint8_t pick_timeout(const struct sim *s, uint8_t drawn)
{
	uint8_t t = 8;

	if (drawn == 100)
		return 0;
	if (drawn == 200)
		return (uint8_t)(8 + s->seed % 7);
	while (4096ull << t < 4 * (s->rtt + LATE))
		t++;
	return (uint8_t)(t + drawn);
}

/* How often a packet is sent before its requester gives up, if nothing is slow. */
static unsigned int tries(const struct sim *s, const struct sim_side *sd)
{
	uint64_t timeout = sim_timeout(sd), probe = 2 * s->rtt + LATE, wasted;
	unsigned int each = 1;

	/* Without a timeout only NAKs count. */
	if (!timeout)
		return sd->retry_cnt + 1u;
	wasted = s->outage ? s->outage / timeout + 1 + s->nevents : 0;

	if (probe < FIRST_PROBE)
		probe = FIRST_PROBE;
	for (; timeout >= 2 * probe && each < 5; each++)
		probe *= 2;
	return wasted > sd->retry_cnt ? 0 : (sd->retry_cnt + 1u - (unsigned int)wasted) * each;
}

static void reckon_side(struct sim *s, unsigned int q, unsigned int side)
{
	struct sim_side *sd = &s->qp[q].side[side], *peer = &s->qp[q].side[!side];
	double chance = 1;
	bool tight;

	sd->timeout = pick_timeout(s, sd->timeout);
	sd->try_fails = 1 - (1 - lost(&s->line[0])) * (1 - lost(&s->line[1]));
	sd->may_hang = !sd->timeout && s->lossy;
	sd->may_starve = sd->rnr_retry != 7 &&
			 (peer->late || peer->srq || peer->recv_depth < sd->depth || s->node[!side].odp.on);
	for (unsigned int i = 0; i < tries(s, sd); i++)
		chance *= sd->try_fails;
	/* A queue that is too short loses more than can be said. A NAK, or a copy of one, counts as a
	 * retry at once. */
	tight = sd->timeout && sim_timeout(sd) < 4 * (s->rtt + LATE);
	s->tight |= tight && sd->nmsgs;
	sd->may_give_up = tight || s->crowded || !tries(s, sd) || chance > UNLIKELY ||
			  (s->lossy && sd->retry_cnt < 3);
}

void sim_reckon(struct sim *s)
{
	reckon_lines(s);
	for (unsigned int q = 0; q < s->nqps; q++)
		for (unsigned int side = 0; side < 2; side++)
			reckon_side(s, q, side);
}

/* The longest that a QP may go without a completion, with its outstanding messages. */
static uint64_t bound(const struct sim *s, const struct sim_qp *qp, unsigned int side)
{
	const struct sim_side *sd = &qp->side[side], *peer = &qp->side[!side];
	uint64_t packets = 0, waits = sd->posted - sd->completed, ns;
	double again = 1 / (1 - sd->try_fails);

	for (unsigned int k = sd->completed; k < sd->posted; k++)
		packets += sd->msg[k].len / sim_pmtu(qp) + 1;
	ns = (uint64_t)((double)(packets * 2 * (s->rtt + LATE)) * 2 * again);
	ns += (uint64_t)((double)(waits * (peer->late + 2 * sim_rnr_ns(peer->min_rnr_timer))) * again);
	/* Others take entries before it. */
	if (peer->srq)
		ns += (uint64_t)((double)(s->node[!side].srq.nentries * 2 * sim_rnr_ns(peer->min_rnr_timer)) * again);
	/* A page fault waits for those before it, and for room in the EQ. */
	for (unsigned int i = 0; i < 2; i++)
		if (s->node[i].odp.on)
			ns += (s->node[i].odp.faults + 16ull) * (s->node[i].odp.takes + LATE);
	ns += (uint64_t)((double)(peer->page_faults * 2 * sim_rnr_ns(peer->min_rnr_timer)) * again);
	ns += 8 * (sd->retry_cnt + 2u) * sim_timeout(sd);
	if (qp->disturbed || sd->may_give_up)
		ns += (sd->retry_cnt + 2ull) * (packets + 1) * sim_timeout(sd) + 100 * SIM_MS;
	return ns + 4 * s->outage + 2 * SIM_S;
}

static bool rest_is_silent(const struct sim_side *sd);

static void check_side(struct sim *s, unsigned int q, unsigned int side)
{
	const struct sim_qp *sqp = &s->qp[q];
	const struct sim_side *sd = &sqp->side[side];
	const struct skua_qp *qp = sd->qp;
	uint64_t now = sim_now(s);

	if (!qp || sd->gone || sd->posted == sd->completed || sd->may_hang || rest_is_silent(sd) ||
	    (!sd->timeout && sqp->disturbed))
		return;
	if (qp->state == SKUA_QPS_RTS && sim_has_requester(qp) && sd->timeout &&
	    qp->sq.una != qp->sq.tail && !qp->active && !rc_of(qp)->timer.pos && !pacer_paused(qp) &&
	    !fault_is_waiting(qp, SKUA_PAGE_FAULT_REQUESTER) &&
	    !sim_is_off(s, SIM_CHECK_ARMED))
		sim_fail(s, "unarmed", "QP %u %c waits for message %u, and has no timer set", q,
			 'a' + side, sd->completed);
	if (now - sd->last_progress > bound(s, sqp, side) && !sim_is_off(s, SIM_CHECK_BOUND))
		sim_fail(s, "too-long", "QP %u %c: message %u did not complete in %.3f s", q, 'a' + side,
			 sd->completed, (double)(now - sd->last_progress) / 1e9);
}

void sim_check_devices(struct sim *s)
{
	for (unsigned int q = 0; q < s->nqps; q++)
		for (unsigned int side = 0; side < 2 && s->qp[q].on; side++) {
			check_side(s, q, side);
			sim_check_rules(s, q, side);
		}
}

static bool on_demand(const struct sim *s)
{
	return s->node[0].odp.on || s->node[1].odp.on;
}

/*
 * In a calm world a message waits for its own bytes at a fair share of the lines, and for some
 * round trips. A packet that is lost by chance costs a probe, or a timeout in the worst case.
 */
void sim_check_fair(struct sim *s, unsigned int q, unsigned int side, uint64_t waited,
		    uint64_t bytes, unsigned int msgs)
{
	const struct sim_qp *qp = &s->qp[q];
	const struct sim_side *sd = &qp->side[side], *peer = &qp->side[!side];
	uint64_t packets = bytes / sim_pmtu(qp) + msgs, limit;

	if (!s->calm || on_demand(s) || qp->disturbed || peer->late || peer->srq || peer->recv_depth < sd->depth ||
	    sim_is_off(s, SIM_CHECK_FAIR) || !sd->timeout || sd->may_give_up)
		return;
	limit = 2 * packets * s->turns + 4 * (msgs + 1) * s->rtt + 20 * SIM_MS;
	/* The first window holds 128 packets, and doubles in a round trip or two. */
	for (uint64_t n = packets; n > 128; n /= 2)
		limit += 2 * s->rtt;
	if (s->lossy)
		limit += 4 * sim_timeout(sd) + packets / 4 * s->rtt;
	if (waited > limit)
		sim_fail(s, "unfair", "QP %u %c: %u messages, %llu bytes, took %.3f ms; a fair share "
			 "would be below %.3f", q, 'a' + side, msgs, (unsigned long long)bytes,
			 (double)waited / 1e6, (double)limit / 1e6);
}

/* In ERR, and all that is left are unsignaled ones that succeeded before: nothing tells of them. */
static bool rest_is_silent(const struct sim_side *sd)
{
	for (unsigned int k = sd->completed; k < sd->posted; k++)
		if (sd->msg[k].flags & SKUA_WQE_SIGNALED)
			return false;
	return sd->stopped && !sd->failed && sd->qp && sd->qp->sq.una == sd->qp->sq.tail;
}

static bool side_done(const struct sim_qp *qp, unsigned int side)
{
	const struct sim_side *sd = &qp->side[side];

	if (sd->gone || rest_is_silent(sd))
		return true;
	if (sd->posted != sd->completed)
		return false;
	if (sd->failed || sd->stopped)
		return true;
	/* The peer may have sent less than was to be received. */
	return sd->posted == sd->nmsgs &&
	       (qp->disturbed || qp->type == SKUA_QPT_UC || sd->recvs_done == sd->nrecvs);
}

bool sim_all_done(const struct sim *s)
{
	for (unsigned int q = 0; q < s->nqps; q++)
		for (unsigned int side = 0; side < 2 && s->qp[q].on; side++)
			if (!side_done(&s->qp[q], side))
				return false;
	return true;
}

bool sim_only_hangers(const struct sim *s)
{
	for (unsigned int q = 0; q < s->nqps; q++) {
		const struct sim_qp *qp = &s->qp[q];
		bool may = qp->disturbed ? !qp->side[0].timeout || !qp->side[1].timeout :
			   qp->side[0].may_hang || qp->side[1].may_hang;

		for (unsigned int side = 0; side < 2 && qp->on; side++)
			if (!may && !side_done(qp, side))
				return false;
	}
	return true;
}

static bool any_disturbed(const struct sim *s)
{
	for (unsigned int q = 0; q < s->nqps; q++)
		if (s->qp[q].on && s->qp[q].disturbed)
			return true;
	return false;
}

/* Packets that are sent, compared with those that the work needs. */
void sim_check_amplified(struct sim *s)
{
	const struct device_stats *a = &s->w->n[0].dev->stats, *b = &s->w->n[1].dev->stats;
	uint64_t sent = a->rdma_tx_packets + b->rdma_tx_packets;
	double again = 1 / (1 - s->qp[0].side[0].try_fails);
	/* Go-back-N sends a window again for each loss. */
	double times = s->go_back_n[0] || s->go_back_n[1] ? 8 : 3;
	uint64_t limit = (uint64_t)(times * (double)s->needed * again) + 200 * s->nqps + 300;

	if (sent <= limit || on_demand(s) || s->outage || a->rnr_nak_sent || b->rnr_nak_sent || s->crowded || s->tight ||
	    any_disturbed(s) || sim_is_off(s, SIM_CHECK_AMPLIFY))
		return;
	sim_fail(s, "amplified", "%llu packets for work that needs %llu", (unsigned long long)sent,
		 (unsigned long long)s->needed);
}

/* What a packet costs that is lost twice, or has nothing behind it that tells: a probe. */
static uint64_t probes_ns(const struct sim *s, const struct sim_qp *qp, unsigned int side,
			  uint64_t *bytes)
{
	const struct sim_side *sd = &qp->side[side];
	double p = sd->try_fails, probes = 0;
	uint64_t all = 0;

	for (unsigned int k = 0; k < sd->nmsgs; k++) {
		uint64_t packets = sd->msg[k].len / sim_pmtu(qp) + 1;

		all += packets;
		*bytes += sd->msg[k].len + 2 * packets * HEADERS;
		probes += p + (double)packets * p * p;
	}
	return (uint64_t)(4 * probes * (double)(2 * s->rtt + LATE)) +
	       (4 * sd->nmsgs + all / LEAST_WINDOW) * s->rtt;
}

/*
 * Loss by chance costs what must be sent again, and a probe now and then. Whatever is much slower
 * than all bytes on one line one after another, waits for timers.
 */
static void check_goodput(struct sim *s)
{
	uint64_t rate = 10000000000, bytes = 0, slowest = 0, limit;
	bool good = !s->nevents && !s->go_back_n[0] && !s->go_back_n[1] && !on_demand(s);

	for (unsigned int i = 0; i < 2; i++) {
		const struct sim_line *l = &s->line[i];

		if (l->rate && l->rate < rate)
			rate = l->rate;
		good &= !l->ecn && !l->duplicate && !l->reorder && !l->jitter && !l->in &&
			lost(l) < 0.04 && !s->w->n[i].dev->stats.rnr_nak_sent;
	}
	for (unsigned int q = 0; q < s->nqps; q++) {
		for (unsigned int side = 0; side < 2 && s->qp[q].on; side++) {
			const struct sim_side *sd = &s->qp[q].side[side];
			uint64_t ns = probes_ns(s, &s->qp[q], side, &bytes);

			good &= !sd->start && !sd->think && !sd->may_give_up && !sd->may_hang;
			slowest = ns > slowest ? ns : slowest;
		}
	}
	/* The first packet may be lost: 16 ms, as no round trip was measured. */
	limit = 2 * (bytes * 8 * SIM_S / rate) + slowest + 20 * SIM_MS;
	if (good && s->done_at > limit && !any_disturbed(s) && !sim_is_off(s, SIM_CHECK_GOODPUT))
		sim_fail(s, "goodput", "%llu bytes took %.3f ms; %.3f would be slow enough",
			 (unsigned long long)bytes, (double)s->done_at / 1e6, (double)limit / 1e6);
}

void sim_check_totals(struct sim *s)
{
	sim_check_amplified(s);
	sim_check_cost(s);
	check_goodput(s);
	for (unsigned int i = 0; i < 2; i++) {
		const struct skua_dev *dev = s->w->n[i].dev;

		if (dev->roce->held_bytes && !any_disturbed(s) && sim_all_done(s))
			sim_fail(s, "held", "node %c holds %llu bytes of packets when all is done", 'a' + i,
				 (unsigned long long)dev->roce->held_bytes);
	}
}

void sim_check_left(struct sim *s)
{
	for (unsigned int i = 0; i < 2; i++) {
		const struct skua_dev *dev = s->w->n[i].dev;

		if (dev->roce->held_bytes)
			sim_fail(s, "left-held", "node %c: %llu bytes of packets without QPs", 'a' + i,
				 (unsigned long long)dev->roce->held_bytes);
		if (dev->roce->used_runs)
			sim_fail(s, "left-runs", "node %c: %u runs of sent packets without QPs", 'a' + i,
				 dev->roce->used_runs);
		if (dev->pages_used != s->node[i].pages_before &&
		    !s->node[i].deregistered)
			sim_fail(s, "left-pages", "node %c: %llu pages in use, %llu at the start", 'a' + i,
				 (unsigned long long)dev->pages_used,
				 (unsigned long long)s->node[i].pages_before);
	}
	if (s->w->engines[0]->timers.n != s->base_timers)
		sim_fail(s, "left-timers", "%u timers set, %u at the start", s->w->engines[0]->timers.n,
			 s->base_timers);
}
