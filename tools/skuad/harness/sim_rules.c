// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Rules of loss recovery that show in the state of a requester. A fault in recovery often costs only time, and
 * another mechanism makes up for it, so the work still completes. Here it shows where it happens: whenever the
 * clock is about to move on, each requester is compared with the manual, and with what it was the last time.
 */
#include "core/qp.h"
#include "harness/sim.h"
#include "roce/dcqcn.h"
#include "roce/reorder.h"
#include "roce/repeat.h"

#define GRANULARITY	SIM_MS
#define FIRST_PTO	(16 * SIM_MS)
#define LONGEST_PTO	SIM_S		/* without a timeout */
#define PACKETS		3		/* kPacketThreshold */
#define LOSSY		SIM_S		/* REC-12 */
#define SLACK		32		/* packets: between two looks the window may have grown and shrunk */

/* The requester of one end of a QP, and the end as it was at the last look. */
struct view {
	struct sim *s;
	unsigned int q, side;
	const struct skua_qp *qp;
	const struct roce_req *req;
	const struct loss *loss;
	uint64_t now;			/* of the engine's clock */
	struct sim_seen *seen;
};

/*
 * Between two looks more than one packet may have come, of which only the last shows. So something may seem to come
 * too soon in one world of thousands, but not again and again.
 */
#define OFTEN		10
#define SUSPECT(v, ...) \
	do { \
		if (++(v)->s->suspects >= OFTEN) \
			BROKEN(v, __VA_ARGS__); \
	} while (0)

#define BROKEN(v, kind, fmt, ...) \
	sim_fail((v)->s, kind, "QP %u %c: " fmt, (v)->q, 'a' + (v)->side, ##__VA_ARGS__)

static uint64_t ack_timeout(const struct view *v)
{
	uint8_t timeout = v->qp->attr.timeout;

	return 4096ull << (timeout < 13 ? 13 : timeout);
}

/* REC-13, after @count PTOs in a row. */
static uint64_t pto(const struct view *v, uint64_t rtt, uint64_t rttvar, unsigned int count)
{
	uint64_t least = !rtt ? FIRST_PTO : rtt + (4 * rttvar > GRANULARITY ? 4 * rttvar : GRANULARITY);
	uint64_t most = v->qp->attr.timeout ? ack_timeout(v) / (rtt ? 8 : 2) : LONGEST_PTO;

	if (most < least)
		return least;
	return count < 30 && least << count < most ? least << count : most;
}

/* REC-1: each transmission has a number and a time, and both grow together. */
static bool in_order(const struct sent_run *a, const struct sent_run *b)
{
	if (a->send_order < b->send_order)
		return a->send_order + a->npkts <= b->send_order && a->sent_at <= b->sent_at;
	return b->send_order + b->npkts <= a->send_order && b->sent_at <= a->sent_at;
}

static void check_table(const struct view *v)
{
	const struct sent *sent = &v->req->sent;
	const struct sent_run *run, *before = NULL;
	uint32_t npkts[SENT_STATES] = { 0 }, again = 0, reads = 0, psn = v->req->oldest_unacked_psn;

	TAILQ_FOREACH(run, &sent->runs, entry) {
		/* Packets that are sent later do not join a run. */
		if (v->seen->at && run->send_order < v->seen->next_order && run->sent_at != v->seen->at &&
		    run->send_order + run->npkts > v->seen->next_order)
			BROKEN(v, "table", "PSN 0x%x and others of its run were sent at another time", run->psn);
		if (run->psn != psn || !run->npkts || run->send_order + run->npkts > sent->next_order ||
		    run->sent_at > v->now || (before && !in_order(before, run)))
			BROKEN(v, "table", "PSN 0x%x, %u packets, send order %llu", run->psn, run->npkts,
			       (unsigned long long)run->send_order);
		psn = psn_add(psn, run->npkts);
		npkts[run->state] += run->npkts;
		again += run->retransmitted;
		reads += run->last;
		before = run;
	}
	if (before && psn != v->req->next_psn)
		BROKEN(v, "table", "ends at PSN 0x%x, sent were those before 0x%x", psn, v->req->next_psn);
	if (memcmp(npkts, sent->npkts, sizeof(npkts)) || again != sent->num_retransmitted ||
	    reads != v->req->reads_outstanding)
		BROKEN(v, "table", "its counts are wrong: %u in flight, %u READs, not %u and %u",
		       sent->npkts[SENT_IN_FLIGHT], v->req->reads_outstanding, npkts[SENT_IN_FLIGHT], reads);
}

/* REC-1: a packet keeps its send order until it is sent again, though others of its run may be acknowledged or sent. */
static void check_orders(const struct view *v)
{
	const struct sim_seen *seen = v->seen;
	const struct sent_run *run = TAILQ_FIRST(&v->req->sent.runs);

	for (unsigned int i = 0; i < seen->nruns; i++) {
		const struct sim_run *r = &seen->run[i];

		for (; run && psn_diff(run->psn, psn_add(r->psn, r->npkts)) < 0; run = TAILQ_NEXT(run, entry)) {
			int32_t into = psn_diff(run->psn, r->psn);

			if (into >= 0 && run->send_order < seen->next_order && run->send_order != r->order + (uint32_t)into)
				BROKEN(v, "table", "PSN 0x%x has the send order %llu, and had %llu", run->psn,
				       (unsigned long long)run->send_order, (unsigned long long)r->order + (uint32_t)into);
		}
	}
}

/* REC-1: no memory for what has come in order, nor where nothing is outstanding. */
static void check_held(const struct view *v)
{
	const struct reorder *requests = rc_of(v->qp)->resp.early_requests, *responses = v->req->early_responses;

	if (requests && psn_diff(v->qp->epsn, reorder_end(requests)) >= 0)
		BROKEN(v, "early", "requests are held that came in order");
	if (responses && (sent_is_empty(&v->req->sent) ||
			  psn_diff(v->req->oldest_unacked_psn, reorder_end(responses)) >= 0))
		BROKEN(v, "early", "responses are held that came in order");
}

/* REP-8: at the second PTO in a row the requester forgets what the peer said to hold. */
static void check_forgotten(const struct view *v)
{
	const struct sent_run *run;

	if (v->loss->pto_count < 2 || v->loss->pto_count <= v->seen->pto_count)
		return;
	TAILQ_FOREACH(run, &v->req->sent.runs, entry)
		if (run->state == SENT_WAITING || run->state == SENT_ARRIVING ||
		    (run->state == SENT_HELD && !run->response &&
		     psn_diff(run->psn, v->req->accepted_psn) >= 0))
			BROKEN(v, "kept", "PSN 0x%x still counts as held", run->psn);
}

/* The timer fires at the earliest of PTO, loss time and Local ACK Timeout (REC-6, REC-13, ROC-17). */
static void check_timer(const struct view *v)
{
	const struct loss *l = v->loss;
	uint64_t due = l->pto_start + pto(v, l->smoothed_rtt, l->rttvar, l->pto_count);

	if (v->qp->active || v->req->rnr_waiting || sent_is_empty(&v->req->sent) || pacer_paused(v->qp))
		return;
	if (l->loss_time < due)
		due = l->loss_time;
	if (v->qp->attr.timeout && l->ack_timeout_start + ack_timeout(v) < due)
		due = l->ack_timeout_start + ack_timeout(v);
	if (!rc_of(v->qp)->timer.pos || rc_of(v->qp)->timer.deadline > (due > v->now ? due : v->now))
		BROKEN(v, "timer", "set to %.3f ms from now, not %.3f", rc_of(v->qp)->timer.pos ?
		       ((double)rc_of(v->qp)->timer.deadline - (double)v->now) / 1e6 : 1e9,
		       ((double)due - (double)v->now) / 1e6);
}

/* REC-13, REC-14: a probe comes no sooner than the PTO after the last transmission or progress. */
static void check_probe(const struct view *v)
{
	const struct sim_seen *seen = v->seen;
	uint64_t waited = v->now - seen->quiet_since;

	if (v->loss->probes <= seen->probes || seen->rnr || !seen->rtt)
		return;
	/* Half, as a sample that came together with the probe may have made the PTO shorter. */
	if (2 * waited < pto(v, seen->rtt, seen->rttvar, seen->pto_count))
		SUSPECT(v, "early-probe", "after %.3f ms, not %.3f: PTO %u, now %u", (double)waited / 1e6,
			(double)pto(v, seen->rtt, seen->rttvar, seen->pto_count) / 1e6, seen->pto_count + 1u,
			v->loss->pto_count);
}

/* REC-5: when a packet has arrived that was sent three packets later. */
static void check_lost(const struct view *v)
{
	uint64_t arrived = v->loss->rack[NEWS_ANSWERED].order;
	const struct sent_run *run;

	if (v->loss->reo_wnd_mult || v->seen->reordered || arrived == v->seen->req.loss.rack[NEWS_ANSWERED].order)
		return;
	TAILQ_FOREACH(run, &v->req->sent.runs, entry)
		if (run->state == SENT_IN_FLIGHT && arrived > run->send_order + PACKETS + (run->response ? run->npkts : 0))
			BROKEN(v, "late-loss", "PSN 0x%x was sent %llu packets before one that has arrived", run->psn,
			       (unsigned long long)(arrived - 1 - run->send_order));
}

static bool is_accepted(const struct view *v, const struct sent_run *run)
{
	return run->accepted || psn_diff(v->req->accepted_psn, run->psn) > 0;
}

/* REC-2: a response tells that its request was accepted, and all before it. */
static void check_accepted(const struct view *v)
{
	const struct sent_run *run;
	bool accepted = false;

	TAILQ_FOREACH_REVERSE(run, &v->req->sent.runs, sent_runs, entry) {
		accepted |= run->response && (run->state == SENT_HELD || !run->first);
		if (accepted && run->response && !is_accepted(v, run))
			BROKEN(v, "accepted", "PSN 0x%x was, and does not count so", run->psn);
	}
}

/* REC-7; the shorter of now and the last look. */
static uint64_t reordering_window(const struct view *v)
{
	unsigned int n = v->seen->reordered < v->loss->reo_wnd_mult ? v->seen->reordered : v->loss->reo_wnd_mult;
	uint64_t ns = (v->seen->min_rtt < v->loss->min_rtt ? v->seen->min_rtt : v->loss->min_rtt) / 4;
	uint64_t rtt = v->seen->rtt < v->loss->smoothed_rtt ? v->seen->rtt : v->loss->smoothed_rtt;

	if (!n)
		return ns;
	return n * ns < rtt ? n * ns : rtt;
}

/* Does what @rack has tell that packets of @r are lost? REC-8: after reordering only the time does. */
static bool is_lost_by(const struct view *v, const struct sim_run *r, const struct rack *rack)
{
	const bool by_packets = !v->seen->reordered || !v->loss->reo_wnd_mult;

	return rack->order > r->order && ((by_packets && rack->order - r->order > PACKETS) ||
					  v->now >= r->sent_at + rack->rtt + reordering_window(v));
}

/* The loss time may have passed before the news of this instant came. */
static bool is_lost(const struct view *v, const struct sim_run *r)
{
	for (unsigned int k = 0; k < NEWS_KINDS; k++)
		if (is_lost_by(v, r, &v->loss->rack[k]) || is_lost_by(v, r, &v->seen->req.loss.rack[k]))
			return true;
	return false;
}

/* Of all requesters of the device. */
static uint64_t naks(const struct view *v)
{
	const struct device_stats *stats = &v->s->w->n[v->side].dev->stats;

	return stats->seq_nak_received + stats->rnr_nak_received + stats->ack_timeouts;
}

/*
 * REC-5, REC-6: no packet is lost before a threshold is met. NAKs and retries tell of losses, too, and a response that
 * had no place counts as lost when its page is there (ODP-9).
 */
static void check_early_loss(const struct view *v)
{
	const struct sent_run *run = TAILQ_FIRST(&v->req->sent.runs);

	if (naks(v) != v->seen->naks || v->s->qp[v->q].side[v->side].resumed != v->seen->resumed)
		return;
	for (unsigned int i = 0; i < v->seen->nruns; i++) {
		const struct sim_run *r = &v->seen->run[i];

		for (; run && psn_diff(r->psn, run->psn) > 0; run = TAILQ_NEXT(run, entry))
			;
		if (!run || run->psn != r->psn)
			continue;
		if ((run->state == SENT_LOST || (run->send_order != r->order && run->was_lost && !r->was_lost)) &&
		    !is_lost(v, r))
			SUSPECT(v, "early-loss", "PSN 0x%x, %.3f ms after it was sent", r->psn,
				(double)(v->now - r->sent_at) / 1e6);
	}
}

/* REC-8: what shows reordering, how often n grows, and when it is forgotten. */
static void check_reordering(const struct view *v)
{
	const struct sim_seen *seen = v->seen;
	unsigned int n = v->loss->reo_wnd_mult;
	bool passed = false;
	uint64_t lost;

	for (unsigned int k = 0; k < NEWS_KINDS; k++)
		passed |= v->loss->rack[k].order >= seen->grew_order;
	if (seen->reordered && n > seen->reordered && !passed)
		BROKEN(v, "reordering", "n grows from %u to %u too soon", seen->reordered, n);
	/* Each recovery begins with a loss. Most lost packets have been retransmitted by now. */
	lost = v->req->sent.npkts[SENT_LOST] + v->req->sent.next_order - seen->next_order -
	       psn_add(v->req->next_psn, -seen->sent_psn);
	if (seen->reordered && !n && seen->persist > lost)
		SUSPECT(v, "reordering", "forgotten, %u recoveries too soon", seen->persist);
	if (seen->first == SENT_LOST && !seen->first_again && !n && v->req->sent.next_order == seen->next_order &&
	    psn_diff(v->req->oldest_unacked_psn, seen->first_psn) > 0)
		BROKEN(v, "reordering", "PSN 0x%x was late, and n is 0", seen->first_psn);
}

/* CNG-11. A request that is repeated may ask for more than there is room for. */
static void check_window(const struct view *v)
{
	const struct congestion *c = &v->req->congestion;
	uint32_t flight = sent_in_flight(&v->req->sent), most = c->window, longest = 0;
	const struct sent_run *run;

	if (c->window < 2)
		BROKEN(v, "window", "%u packets", c->window);
	if (v->seen->window > most)
		most = v->seen->window;
	if (c->window_before_recovery > most)
		most = c->window_before_recovery;
	/* Packets that are held no longer are in flight again, without a transmission. */
	if (sent_gaps(&v->req->sent) < v->seen->gaps || flight <= v->seen->flight || flight <= 2 * most + SLACK)
		return;
	TAILQ_FOREACH(run, &v->req->sent.runs, entry)
		if (run->response && run->npkts > longest)
			longest = run->npkts;
	if (flight > 2 * most + longest + SLACK)
		BROKEN(v, "window", "%u packets in flight, %u allowed", flight, most);
}

/* Has any packet arrived that was sent after the recovery period of @recovery_order began? */
static bool is_recovered(const struct view *v, uint64_t recovery_order)
{
	for (unsigned int k = 0; k < NEWS_KINDS; k++)
		if (v->loss->rack[k].order > recovery_order)
			return true;
	return false;
}

/*
 * At most so many packets have arrived since the last look: those that are outstanding no longer, or held. Of a READ
 * that waits at the peer, the request has arrived.
 */
static uint32_t arrived_since(const struct view *v)
{
	const struct sent *sent = &v->req->sent;
	const struct sent_run *run;
	uint32_t requests = 0;

	TAILQ_FOREACH(run, &sent->runs, entry)
		requests += run->state == SENT_WAITING && run->first;
	return psn_add(v->req->next_psn, -v->seen->una_psn) - sent_in_flight(sent) -
	       sent->npkts[SENT_WAITING] - sent->npkts[SENT_LOST] + requests;
}

/* CNG-12, CNG-15, CNG-16: how the window grows and shrinks. CNG-17 may set it back, and then it goes on. */
static void check_growth(const struct view *v)
{
	const struct congestion *c = &v->req->congestion;
	const struct sim_seen *seen = v->seen;
	uint64_t arrived = seen->flight + seen->gaps + v->req->sent.next_order - seen->next_order;
	bool was_set_back = seen->window_before > seen->window && c->window >= seen->window_before;
	uint32_t was = was_set_back ? seen->window_before : seen->window;

	/*
	 * What was outstanding, or was sent after it, may have arrived in the same instant: slow start. After an RNR NAK,
	 * nobody knows what had arrived.
	 */
	if (v->loss->retries > seen->retries && c->window > 4 + arrived_since(v) && v->now != v->s->resumed_at &&
	    v->req->rnr_until == seen->rnr_until)
		BROKEN(v, "growth", "the window is %u after a retry", c->window);
	if (v->loss->retries != seen->retries)
		return;
	if (c->window > was && c->recovery_order == seen->recovery_order &&
	    !is_recovered(v, c->recovery_order))
		SUSPECT(v, "growth", "the window grows from %u to %u in the recovery period", was, c->window);
	if (c->window > was && was >= seen->ssthresh && c->ssthresh == seen->ssthresh &&
	    c->window - was > 2 + arrived / was)
		SUSPECT(v, "growth", "the window grows from %u to %u without slow start", was, c->window);
	if (c->window > was && arrived < was / 2)
		SUSPECT(v, "growth", "the window grows from %u to %u, with %llu packets in flight", was,
		       c->window, (unsigned long long)arrived);
	if (c->window < seen->window && c->window_before_recovery && seen->next_order <= seen->recovery_order &&
	    !is_recovered(v, seen->recovery_order))
		SUSPECT(v, "growth", "the window shrinks from %u to %u in the recovery period", seen->window,
		       c->window);
}

/* REC-11, REC-12: lost packets go first, and new ones not too far ahead of them. */
static void check_new(const struct view *v)
{
	const struct roce_req *req = v->req;
	const struct sent_run *run = TAILQ_FIRST(&req->sent.runs);

	if (req->next_psn == v->seen->sent_psn || !run)
		return;
	if (v->seen->first == SENT_LOST && run->state == SENT_LOST && !run->response && run->psn == v->seen->first_psn &&
	    run->send_order == v->seen->first_order)
		BROKEN(v, "new-first", "PSN 0x%x is lost, and new packets were sent", run->psn);
	if (v->seen->lost_at && v->now - v->seen->lost_at < LOSSY &&
	    psn_diff(req->next_psn, req->oldest_unacked_psn) > REPEAT_WINDOW)
		BROKEN(v, "ahead", "%d PSNs ahead soon after a loss", psn_diff(req->next_psn, req->oldest_unacked_psn));
}

/* ROC-13: a retry counts if anything was sent since the last, and retry_cnt of them are allowed. */
static void check_retries(const struct view *v)
{
	const struct loss *l = v->loss;

	if (l->retries > v->qp->attr.retry_cnt)
		BROKEN(v, "retries", "%u of %u", l->retries, v->qp->attr.retry_cnt);
	/* What was sent before a pause and what comes after it may lie between two looks. */
	if (l->retries > v->seen->retries && v->seen->retries && v->seen->next_order == v->seen->retry_order &&
	    v->now != v->s->resumed_at)
		BROKEN(v, "retries", "one counts although nothing was sent since the last");
}

/* ROC-12: the requester waits after an RNR NAK, then the oldest packet goes alone. */
static void check_rnr(const struct view *v)
{
	const struct sim_seen *seen = v->seen;
	const struct sent_run *run = TAILQ_FIRST(&v->req->sent.runs);
	uint64_t sent = v->req->sent.next_order - seen->next_order;
	uint32_t first;

	/* Progress or a retry ends it. */
	if (!run || seen->rnr_over || v->req->rnr_until != seen->rnr_until || seen->at >= seen->rnr_until ||
	    v->req->oldest_unacked_psn != seen->rnr_una_psn || v->loss->retries != seen->rnr_retries)
		return;
	if (sent && v->now < v->req->rnr_until && seen->rnr)
		BROKEN(v, "rnr", "%llu packets were sent while it waits", (unsigned long long)sent);
	if (sent && v->now < v->req->rnr_until)
		SUSPECT(v, "rnr", "%llu packets were sent while it should wait", (unsigned long long)sent);
	/*
	 * A READ goes as a whole. Its first response is all that is left of it if the others have come before that.
	 * When the table is full, the whole run of the oldest packet counts as sent.
	 */
	first = run->npkts > seen->first_npkts ? run->npkts : seen->first_npkts;
	if (!run->response && !sent_is_full(&v->req->sent))
		first = 1;
	/* Before and after a pause it may have tried more often between two looks. */
	if (sent > 2 * first && seen->at >= v->s->resumed_at)
		BROKEN(v, "rnr", "%llu packets were sent to try", (unsigned long long)sent);
}

/* Some time may have passed since the last transmission: a pause may follow another at once. */
static uint64_t last_sent_at(const struct view *v)
{
	const struct sent_run *run;
	uint64_t at = v->seen->quiet_since;

	TAILQ_FOREACH(run, &v->req->sent.runs, entry)
		at = run->sent_at > at ? run->sent_at : at;
	return at;
}

static void look(const struct view *v)
{
	const struct roce_req *req = v->req;
	const struct sent_run *run = TAILQ_FIRST(&req->sent.runs);
	struct sim_seen *seen = v->seen;
	bool progress = req->oldest_unacked_psn != seen->una_psn;

	/* Packets that were held arrived before they were acknowledged. */
	if ((progress && seen->first != SENT_HELD) || !seen->at)
		/* What arrived before a pause did so before now. */
		seen->quiet_since = v->now == v->s->resumed_at ? v->loss->last_arrival_at : v->now;
	else if (req->sent.next_order != seen->next_order)
		seen->quiet_since = last_sent_at(v);
	seen->nruns = 0;
	for (; run && seen->nruns < SIM_RUNS; run = TAILQ_NEXT(run, entry))
		if (run->state == SENT_IN_FLIGHT)
			seen->run[seen->nruns++] = (struct sim_run){ run->psn, run->npkts, run->send_order,
								     run->sent_at, run->was_lost };
	run = TAILQ_FIRST(&req->sent.runs);
	seen->min_rtt = v->loss->min_rtt;
	seen->naks = naks(v);
	seen->req = *req;
	v->s->probes += v->loss->probe_order != seen->probe_order;
	seen->probe_order = v->loss->probe_order;
	if (v->loss->retries != seen->retries)
		seen->retry_order = seen->next_order;
	if (v->loss->reo_wnd_mult > seen->reordered)
		seen->grew_order = seen->next_order;
	seen->persist = v->loss->reo_wnd_persist;
	seen->first_again = run && run->retransmitted;
	seen->at = v->now;
	seen->una_psn = req->oldest_unacked_psn;
	seen->sent_psn = req->next_psn;
	seen->next_order = req->sent.next_order;
	seen->reordered = v->loss->reo_wnd_mult;
	seen->rtt = v->loss->smoothed_rtt;
	seen->rttvar = v->loss->rttvar;
	seen->probes = v->loss->probes;
	seen->pto_count = v->loss->pto_count;
	seen->retries = v->loss->retries;
	seen->rnr = req->rnr_waiting || req->rnr_probing;
	if (req->rnr_until != seen->rnr_until) {
		seen->rnr_until = req->rnr_until;
		/* Progress may have followed the NAK before this look, and have ended the wait. */
		seen->rnr_over = !seen->rnr && progress;
		seen->rnr_una_psn = req->oldest_unacked_psn;
		seen->rnr_retries = v->loss->retries;
	}
	seen->window = req->congestion.window;
	seen->window_before = req->congestion.window_before_recovery;
	seen->ssthresh = req->congestion.ssthresh;
	seen->recovery_order = req->congestion.recovery_order;
	seen->gaps = sent_gaps(&req->sent);
	seen->flight = sent_in_flight(&req->sent);
	seen->lost_at = v->loss->last_loss_at;
	seen->first = run ? run->state : SENT_STATES;
	seen->first_psn = run ? run->psn : 0;
	seen->first_npkts = run ? run->npkts : 0;
	seen->resumed = v->s->qp[v->q].side[v->side].resumed;
	seen->first_order = run ? run->send_order : 0;
}

void sim_check_rules(struct sim *s, unsigned int q, unsigned int side)
{
	struct sim_side *sd = &s->qp[q].side[side];
	const struct skua_qp *qp = sd->qp;
	struct view v = {
		.s = s, .q = q, .side = side, .qp = qp, .now = engine_now(s->w->engines[0]),
		.seen = &sd->seen,
	};

	if (!qp || sd->gone || !sim_has_requester(qp) || qp->state != SKUA_QPS_RTS ||
	    sim_is_off(s, SIM_CHECK_RULES))
		return;
	v.req = &rc_of(qp)->req;
	v.loss = &rc_of(qp)->req.loss;
	check_held(&v);
	check_timer(&v);
	/*
	 * Most have slept since the last look, and what was right is right. A packet that changes its state changes
	 * the counts of its requester, or an order, or a time.
	 */
	if (v.seen->at && !memcmp(&v.seen->req, v.req, sizeof(*v.req))) {
		v.seen->at = v.now;
		v.seen->naks = naks(&v);
		return;
	}
	check_table(&v);
	check_accepted(&v);
	check_window(&v);
	check_retries(&v);
	if (v.seen->at) {
		check_orders(&v);
		check_probe(&v);
		check_forgotten(&v);
		check_lost(&v);
		check_early_loss(&v);
		check_reordering(&v);
		check_growth(&v);
		check_new(&v);
		check_rnr(&v);
	}
	look(&v);
}
