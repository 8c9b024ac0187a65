// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What losses cost: probes, retransmissions and time, in each world, and in the mean of all worlds.
 *
 * The limits of one world are wide, because chance decides much in it. In the mean of many worlds chance matters
 * little, so a fault that makes recovery somewhat slower shows there. Worlds whose costs have other reasons do not
 * count: outages, receives that come late (RNR NAKs), and queues that overflow.
 */
#include "harness/sim.h"
#include "link/impair.h"
#include "nic/control.h"

#define ENOUGH		1000u		/* worlds for a mean */
#define SLOW		50000000u	/* bits a second: a queue there outlasts PTOs */
#define SMALL		4.0		/* losses: a world with few weighs less */

/* Limits of the means: probes and retransmitted packets for a loss, and time, as a share of what it may take. */
static const struct {
	const char *name;
	double probes, again, time;
} most[SIM_COST_KINDS] = {
	[SIM_COST_REPEAT] = { "selective repeat", 0.25, 4.0, 1.3 },
	[SIM_COST_GO_BACK] = { "go-back-N", 0.30, 9.0, 1.4 },
	[SIM_COST_LATE] = { "reordered, selective repeat", 0.25, 6.0, 1.3 },
	[SIM_COST_LATE_GO_BACK] = { "reordered, go-back-N", 0.30, 14.0, 1.4 },
};

static struct {
	unsigned int worlds;
	double probes, again, time;
} sum[SIM_COST_KINDS];

/* What the lines have done to frames. */
static uint64_t acted(const struct sim *s, enum impair_action action)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < 2; i++) {
		const struct impair_config *c = skua_dev_get_impair(s->w->n[i].dev);

		for (unsigned int r = 0; c && r < c->n; r++)
			n += c->rule[r].action == action ? c->rule[r].acted : 0;
	}
	return n;
}

static bool counts(const struct sim *s)
{
	bool good = !s->nevents && !s->crowded;

	for (unsigned int i = 0; i < 2; i++)
		good &= !s->line[i].in && !s->node[i].odp.on && !s->w->n[i].dev->stats.rnr_nak_sent;
	/*
	 * Where each message waits for the one before, each loss of a message's last packet costs a probe. SENDs to an
	 * SRQ are short, so that a probe weighs more.
	 */
	for (unsigned int q = 0; q < s->nqps; q++) {
		const struct sim_side *side = s->qp[q].side;

		good &= !s->qp[q].on || (!s->qp[q].disturbed && !side[0].fast && !side[1].fast && !side[0].srq &&
					 !side[1].srq);
	}
	return good;
}

/* All bytes on one line, one after the other, and the round trips of the slowest requester. */
static uint64_t simple_time(const struct sim *s, unsigned int *requesters, bool *slow)
{
	uint64_t rate = 10000000000, bytes = 0, longest = 0;

	*requesters = 0;
	for (unsigned int i = 0; i < 2; i++)
		if (s->line[i].rate && s->line[i].rate < rate)
			rate = s->line[i].rate;
	*slow = rate < SLOW;
	for (unsigned int q = 0; q < s->nqps; q++) {
		for (unsigned int side = 0; side < 2 && s->qp[q].on; side++) {
			const struct sim_side *sd = &s->qp[q].side[side];
			uint64_t ns = sd->start + sd->nmsgs * sd->think + (sd->nmsgs / sd->depth + 1) * s->rtt;

			for (unsigned int k = 0; k < sd->nmsgs; k++)
				bytes += sd->msg[k].len;
			*requesters += sd->nmsgs > 0;
			longest = ns > longest ? ns : longest;
		}
	}
	return longest + bytes * 8 * SIM_S / rate + 1;
}

static double least(double a, double b)
{
	return a < b ? a : b;
}

void sim_check_cost(struct sim *s)
{
	uint64_t lost = acted(s, IMPAIR_DROP) + acted(s, IMPAIR_CORRUPT), again = 0, time, many;
	uint64_t late = acted(s, IMPAIR_REORDER) + acted(s, IMPAIR_DUPLICATE);
	unsigned int requesters;
	bool slow, jitter = s->line[0].jitter || s->line[1].jitter;
	bool go_back = s->go_back_n[0] || s->go_back_n[1];
	enum sim_cost_kind kind = late ? go_back ? SIM_COST_LATE_GO_BACK : SIM_COST_LATE :
				  go_back ? SIM_COST_GO_BACK : SIM_COST_REPEAT;

	if (!counts(s) || sim_is_off(s, SIM_CHECK_COST))
		return;
	time = simple_time(s, &requesters, &slow);
	for (unsigned int i = 0; i < 2; i++)
		again += s->w->n[i].dev->stats.retransmits;
	/* A requester starts to probe before it knows the round trip, and jitter makes some answers later than most. */
	many = 2 * (lost + late) + 8 * requesters + 16 + (jitter ? sim_now(s) / (100 * s->rtt) : 0);
	if (!slow && s->probes > many)
		sim_fail(s, "probes", "%llu probes for %llu lost packets", (unsigned long long)s->probes,
			 (unsigned long long)lost);
	/*
	 * An answer that is late, by jitter or behind the packets of others on a line with a rate, may seem to be that
	 * of a probe: what was sent in between counts as lost.
	 */
	if (!slow && !lost && !late &&
	    again > 8 * requesters + (jitter || s->line[0].rate || s->line[1].rate ? REPEAT_WINDOW : 100))
		sim_fail(s, "in-vain", "%llu packets were retransmitted, and none was lost",
			 (unsigned long long)again);
	if (!lost && !late)
		return;
	s->cost = (struct sim_cost){
		.kind = kind,
		.probes = least((double)s->probes / ((double)lost + SMALL), 2),
		.again = least((double)again / ((double)lost + SMALL), 30),
		.time = least((double)s->done_at / (double)time, 3),
	};
}

void sim_add_cost(const struct sim_cost *cost)
{
	sum[cost->kind].worlds++;
	sum[cost->kind].probes += cost->probes;
	sum[cost->kind].again += cost->again;
	sum[cost->kind].time += cost->time;
}

bool sim_costs_little(FILE *out, uint64_t worlds)
{
	bool good = true;

	for (unsigned int k = SIM_COST_NONE + 1; k < SIM_COST_KINDS; k++) {
		double n = sum[k].worlds, probes = sum[k].probes / n, again = sum[k].again / n, time = sum[k].time / n;

		if (!n)
			continue;
		fprintf(out, "%s: %.0f worlds, a loss costs %.3f probes (at most %.3f), %.2f retransmissions (%.2f); "
			"time %.3f (%.3f)\n", most[k].name, n, probes, most[k].probes, again, most[k].again, time,
			most[k].time);
		good &= probes <= most[k].probes && again <= most[k].again && time <= most[k].time;
	}
	return good || worlds < ENOUGH;
}
