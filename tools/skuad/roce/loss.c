// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Loss detection.
 *
 * Theory of operation. A packet is lost when one that was sent later has arrived, and it itself has not:
 * RFC 9002, section 6.1. An ACK or NAK for a packet or for a later one tells that it has arrived; so does a
 * MISSING of a peer that holds it, or its response. "Later" means kPacketThreshold packets later, or a time:
 * the packet was sent more than a round trip and the reordering window ago. Reordering looks like loss. Once
 * it was seen, only the time counts, and the reordering window grows up to a round trip (RACK, RFC 8985). A
 * packet that arrives twice, or before it was retransmitted, shows reordering.
 *
 * If nothing arrives, nothing is known to be lost. So whenever packets are outstanding, the probe
 * timeout runs (6.2): when it fires, the oldest packet goes again and asks for an answer. A probe says
 * nothing about what was lost; the answer does. The timeout doubles with each probe.
 *
 * Above that stands the Local ACK Timeout of IBTA. Its time without progress, and without a response that comes
 * early, is a retry: all that is outstanding counts as lost. More than retry_cnt retries end the QP.
 *
 * A QP has one timer for all three.
 */
#include "roce/req.h"

#define PACKET_THRESHOLD	3		/* kPacketThreshold */
#define GRANULARITY_NS		1000000		/* kGranularity: a peer's thread may wait so long for its core */
#define INITIAL_PTO_NS		16000000	/* before a round trip was measured */
#define MIN_RTT_WINDOW_NS	10000000000ull
#define REO_WND_PERSIST		16
#define PTO_COUNT_MAX		20
#define PROBES_SLOW		3		/* probes in a row that make a peer slow */
#define PROBES_PER_RETRY	8		/* at least so many, when the PTO has grown */
#define PTO_MAX_NS		1000000000ull	/* without an ACK timeout */
#define LONG_QUEUE_NS		4000000		/* a sample may exceed min_rtt by so much */
#define TIMEOUT_MIN		13		/* 34 ms: on a slow line many packets of others may come first */

/* What has arrived, while a packet from the peer is looked at. */
struct news {
	uint32_t npkts;			/* that were outstanding until now */
	uint32_t on_the_line;		/* lost: packets on the line; a request is one */
	uint64_t rtt;			/* lost: how long the NAK took that tells of it; 0: no NAK */
	enum news_kind kind;		/* of the latest */
	uint64_t order;			/* behind its send order */
	uint64_t sent_at;
	uint64_t sample_from;		/* the sample is the time since then; 0: no sample */
	uint64_t first_sent_at;		/* the packet that gives the sample */
	bool is_gap;			/* the sample is the time between two responses */
	bool is_most;			/* the sample is an upper bound: the packet was sent more than once */
	bool is_least;			/* the sample is a lower bound: an earlier transmission may have arrived */
	bool no_sample;			/* some packets had to wait for one that was retransmitted */
};

void loss_init(struct loss *l)
{
	*l = (struct loss){ .loss_time = TIMER_NEVER };
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

/* The reordering window: how much later than a round trip a packet may arrive before it counts as lost. */
static uint64_t reo_wnd(const struct loss *l)
{
	uint64_t ns = l->min_rtt / 4;

	if (!l->reo_wnd_mult)
		return ns;
	ns *= l->reo_wnd_mult;
	return ns < l->smoothed_rtt ? ns : l->smoothed_rtt;
}

/* Has what was sent before @order arrived, by any news? */
static bool has_passed(const struct loss *l, uint64_t order)
{
	for (int i = 0; i < NEWS_KINDS; i++)
		if (l->rack[i].order >= order)
			return true;
	return false;
}

/* A packet was late rather than lost. Widen the reordering window, once for what was sent together. */
static void reordering_seen(struct skua_qp *qp)
{
	struct loss *l = &rc_of(qp)->req.loss;

	l->reo_wnd_persist = REO_WND_PERSIST;
	congestion_not_lost(qp);
	if (l->reo_wnd_mult && !has_passed(l, l->reo_order))
		return;
	l->reo_order = rc_of(qp)->req.sent.next_order;
	if (l->reo_wnd_mult < UINT8_MAX)
		l->reo_wnd_mult++;
}

static void forget_reordering(struct loss *l)
{
	if (l->reo_wnd_mult && !--l->reo_wnd_persist)
		l->reo_wnd_mult = 0;
}

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

/*
 * May an earlier transmission than the last have arrived? From the second probe in a row on the last one counts,
 * as the path may have become shorter.
 */
static bool is_ambiguous(const struct skua_qp *qp, const struct sent_run *run)
{
	const struct loss *l = &rc_of(qp)->req.loss;

	if (!run->retransmitted)
		return false;
	if (!l->smoothed_rtt)
		return !run->was_lost;
	return l->pto_count < 2 && !is_answer_to_last(qp, run);
}

/* Is @run late because it was lost? If everything needs probes, its peer is slow instead. */
static bool is_gap_by_loss(const struct skua_qp *qp, const struct sent_run *run)
{
	return run->retransmitted && is_answer_to_last(qp, run) && rc_of(qp)->req.loss.probes < PROBES_SLOW;
}

/*
 * Where a sample begins that the arrival of @run gives. An ACK that a loss held up would measure the loss. For a
 * response it begins with the arrival before, because until then the peer was at work on that. If everything needs
 * probes, round trips have become longer than the estimate: they took at least the time since the last transmission.
 */
static void sample(const struct skua_qp *qp, const struct sent_run *run, struct news *news)
{
	const struct loss *l = &rc_of(qp)->req.loss;

	/* The ACK of packets before the last probe may have been lost, so they say no more. */
	if (news->is_least && run->sent_at <= news->sample_from)
		return;
	news->sample_from = news->first_sent_at = run->first_sent_at;
	news->is_gap = run->response && l->smoothed_rtt && l->arrived_at > run->first_sent_at;
	news->is_most = run->retransmitted;
	news->is_least = run->retransmitted && l->smoothed_rtt && l->probes >= PROBES_SLOW;
	if (news->is_gap)
		news->sample_from = is_gap_by_loss(qp, run) ? 0 : l->arrived_at;
	else if (news->is_least)
		news->sample_from = run->sent_at;
	else if (run->was_lost || (run->retransmitted && l->smoothed_rtt))
		news->no_sample = true;
}

/* The first @npkts of @run have arrived. */
static inline void has_arrived(struct skua_qp *qp, const struct sent_run *run, uint32_t npkts,
			struct news *news)
{
	uint64_t behind = run->order + npkts;

	if (run->state == SENT_HELD)
		return;
	news->npkts += npkts;
	if (!run->retransmitted) {
		if (run->state == SENT_LOST)
			reordering_seen(qp);
		rc_of(qp)->req.loss.probes = 0;
	}
	sample(qp, run, news);
	if (is_ambiguous(qp, run) || behind < news->order)
		return;
	news->order = behind;
	if (run->part && behind != rc_of(qp)->req.loss.probe_order)
		news->kind = NEWS_PART;
	news->sent_at = run->sent_at;
}

static uint64_t ack_timeout_ns(const struct skua_qp *qp)
{
	return 4096ull << (qp->attr.timeout < TIMEOUT_MIN ? TIMEOUT_MIN : qp->attr.timeout);
}

/* RFC 9002, section 6.2.1. */
static uint64_t pto_ns(const struct skua_qp *qp)
{
	const struct loss *l = &rc_of(qp)->req.loss;
	uint64_t cap = qp->attr.timeout ? ack_timeout_ns(qp) / PROBES_PER_RETRY : PTO_MAX_NS;
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

void loss_set_timer(struct skua_qp *qp)
{
	const struct loss *l = &rc_of(qp)->req.loss;
	uint64_t at = l->pto_from + GRANULARITY_NS;

	if (sent_is_empty(&rc_of(qp)->req.sent))
		return;
	/* One that fires too early looks again: cheaper than moving it with every ACK. */
	if (rc_of(qp)->timer.pos && rc_of(qp)->timer.deadline <= at && l->loss_time == TIMER_NEVER)
		return;
	at = l->pto_from + pto_ns(qp);
	if (l->loss_time < at)
		at = l->loss_time;
	if (qp->attr.timeout && l->ack_from + ack_timeout_ns(qp) < at)
		at = l->ack_from + ack_timeout_ns(qp);
	if (!rc_of(qp)->timer.pos || rc_of(qp)->timer.deadline > at)
		timer_set(&qp->dev->engine->timers, &rc_of(qp)->timer, at);
}

static void lose(struct skua_qp *qp, struct sent_run *run, struct news *lost)
{
	sent_set_state(&rc_of(qp)->req.sent, run, SENT_LOST);
	lost->npkts += run->npkts;
	lost->on_the_line += run->response && !req_is_accepted(&rc_of(qp)->req, run) ? 1 : run->npkts;
	if (run->order + run->npkts > lost->order && !run->part)
		lost->order = run->order + run->npkts;
}

static void have_lost(struct skua_qp *qp, const struct news *lost)
{
	struct loss *l = &rc_of(qp)->req.loss;

	if (!lost->npkts)
		return;
	l->lost_at = now_of(qp);
	repeat_agreed(qp);	/* or ask whether it does */
	if (lost->order > rc_of(qp)->req.congestion.recovery_order)
		forget_reordering(l);
	congestion_lost(qp, lost->on_the_line, lost->order,
			lost->rtt > l->path_rtt ? lost->rtt : l->path_rtt);
	qp_activate(qp);
}

/* The packet that was sent last of all that have arrived, among the news that tells of @run. */
static const struct rack *latest(const struct roce_req *req, const struct sent_run *run)
{
	const struct rack *rack = &req->loss.rack[NEWS_ANSWERED], *other = rack;

	if (run->part)
		other = &req->loss.rack[NEWS_PART];
	else if (!req_is_accepted(req, run))
		other = &req->loss.rack[NEWS_HELD];
	return other->order > rack->order ? other : rack;
}

/*
 * How many of @run's packets, all sent before one that has arrived, are lost now. If the others will be
 * by a time, loss_time says when.
 */
static uint32_t lost_of(struct skua_qp *qp, const struct sent_run *run)
{
	struct loss *l = &rc_of(qp)->req.loss;
	const struct rack *rack = latest(&rc_of(qp)->req, run);
	uint64_t later = rack->order - run->order, at;
	uint32_t npkts = later < run->npkts ? (uint32_t)later : run->npkts;
	/* A request goes as a whole, as long as the peer may not have it. */
	bool whole = run->response && !req_is_accepted(&rc_of(qp)->req, run);

	/* Nothing behind the request has arrived: the news is of the request itself. */
	if (whole && later <= run->npkts)
		return 0;
	at = run->sent_at + rack->rtt + reo_wnd(l);
	if (at <= now_of(qp))
		return npkts;
	if (at < l->loss_time)
		l->loss_time = at;
	if (l->reo_wnd_mult || later <= PACKET_THRESHOLD)
		return 0;
	if (whole)
		return later >= run->npkts + PACKET_THRESHOLD ? run->npkts : 0;
	return later - PACKET_THRESHOLD < npkts ? (uint32_t)later - PACKET_THRESHOLD : npkts;
}

/* RFC 9002, A.10: DetectAndRemoveLostPackets. */
static void detect_among_runs(struct skua_qp *qp)
{
	struct sent *s = &rc_of(qp)->req.sent;
	struct sent_run *run, *next;
	struct news lost = { 0 };
	uint32_t npkts;

	for (run = TAILQ_FIRST(&s->runs); run; run = next) {
		next = TAILQ_NEXT(run, entry);
		if (run->state != SENT_IN_FLIGHT || run->order >= latest(&rc_of(qp)->req, run)->order)
			continue;
		npkts = lost_of(qp, run);
		if (!npkts)
			continue;
		/* Without memory to tell them apart all are. */
		if (npkts < run->npkts && sent_split(qp->dev, s, run, npkts))
			next = TAILQ_NEXT(run, entry);
		lose(qp, run, &lost);
		/* What is lost one by one is retransmitted together. */
		sent_join(qp->dev, s, run);
	}
	have_lost(qp, &lost);
}

static inline void detect_lost(struct skua_qp *qp)
{
	const struct sent *s = &rc_of(qp)->req.sent;
	const struct sent_run *run = TAILQ_FIRST(&s->runs);
	struct loss *l = &rc_of(qp)->req.loss;

	l->loss_time = TIMER_NEVER;
	/* The usual case: no packet that was sent later has arrived, and there is no gap. */
	if (run && (run->order < l->rack[NEWS_ANSWERED].order || sent_gaps(s) || s->num_retransmitted))
		detect_among_runs(qp);
}

/*
 * The time between two responses is that of the peer, not of the path: it counts only if it is long. But the whole
 * time of a response is more than a round trip: if even that is within the estimate, the estimate was too long.
 */
static void take_sample(struct skua_qp *qp, const struct news *news)
{
	uint64_t rtt = now_of(qp) - news->sample_from, whole = now_of(qp) - news->first_sent_at;
	struct loss *l = &rc_of(qp)->req.loss;
	bool first = !l->smoothed_rtt;

	if (news->is_gap && !news->is_most && whole < l->smoothed_rtt) {
		update_rtt(qp, whole);
		return;
	}
	if ((news->is_gap || news->is_least) && rtt <= l->smoothed_rtt)
		return;
	/* An outage of the line may have been in it. */
	if (news->is_gap && rtt > ack_timeout_ns(qp))
		rtt = ack_timeout_ns(qp);
	if (first)
		l->pto_count = 0;
	update_rtt(qp, rtt);
	if (!news->is_gap)
		l->path_rtt = l->path_rtt ? l->path_rtt - l->path_rtt / 8 + rtt / 8 : rtt;
	/* Perhaps the probe was answered: then the round trip is shorter, and needs no margin besides. */
	if (first && news->is_most)
		l->rttvar = 0;
	if (!news->is_gap && news->order && rtt > l->min_rtt + LONG_QUEUE_NS)
		congestion_queue(qp, news->order);
}

/* Act on what has arrived. */
static void take_news(struct skua_qp *qp, const struct news *news)
{
	struct loss *l = &rc_of(qp)->req.loss;
	struct rack *rack = &l->rack[news->kind];
	uint64_t now = now_of(qp);

	if (news->sample_from && !news->no_sample)
		take_sample(qp, news);
	if (news->npkts)
		l->pto_from = l->arrived_at = now;
	if (news->order)
		l->pto_count = 0;
	if (news->order > rack->order) {
		rack->order = news->order;
		rack->rtt = now - news->sent_at;
	}
	if (news->npkts)
		congestion_acked(qp, news->npkts, news->kind == NEWS_PART ? 0 : news->order);
	detect_lost(qp);
}

void loss_acked(struct skua_qp *qp, uint32_t psn)
{
	struct roce_req *req = &rc_of(qp)->req;
	struct news news = { 0 };
	struct sent_run *run;
	uint32_t npkts;

	while ((run = TAILQ_FIRST(&req->sent.runs)) && psn_diff(psn, run->psn) > 0) {
		npkts = psn_add(psn, -run->psn);
		if (npkts > run->npkts)
			npkts = run->npkts;
		has_arrived(qp, run, npkts, &news);
		if (run->last && npkts == run->npkts)
			req->reads--;
		run->accepted = run->response;
		sent_remove(qp->dev, &req->sent, npkts);
	}
	req->loss.ack_from = now_of(qp);
	req->loss.retries = 0;
	req->loss.nak_taken = false;
	take_news(qp, &news);
}

/* @run, or @npkts of it from @psn on, has arrived, but is not done with. */
static void hold(struct skua_qp *qp, struct sent_run *run, uint32_t psn, uint32_t npkts,
		 struct news *news)
{
	struct sent *s = &rc_of(qp)->req.sent;

	if (run->state == SENT_HELD)
		return;
	if (psn != run->psn)
		run = sent_split(qp->dev, s, run, psn_add(psn, -run->psn));
	/* Without memory to split the run, forget that these packets have arrived. */
	if (!run || (npkts < run->npkts && !sent_split(qp->dev, s, run, npkts)))
		return;
	has_arrived(qp, run, run->npkts, news);
	sent_set_state(s, run, SENT_HELD);
	sent_join(qp->dev, s, run);
}

void loss_accepted(struct skua_qp *qp, uint32_t psn)
{
	struct sent *s = &rc_of(qp)->req.sent;
	struct news news = { 0 };
	struct sent_run *run, *next;

	for (run = TAILQ_FIRST(&s->runs); run && psn_diff(psn, run->psn) > 0; run = next) {
		uint32_t npkts = psn_add(psn, -run->psn);

		next = TAILQ_NEXT(run, entry);
		if (!run->response) {
			hold(qp, run, run->psn, npkts < run->npkts ? npkts : run->npkts, &news);
			continue;
		}
		if (run->state == SENT_WAITING)
			sent_set_state(s, run, SENT_IN_FLIGHT);
		run->accepted = true;
		/* What has arrived was sent behind all of these responses, so they should have come. */
		if (run->state == SENT_IN_FLIGHT && npkts >= run->npkts &&
		    run->order + run->npkts >= news.order && !run->retransmitted) {
			news.order = run->order + run->npkts;
			news.sent_at = run->sent_at;
			news.sample_from = 0;
		}
	}
	take_news(qp, &news);
}

void loss_response_early(struct skua_qp *qp, uint32_t psn, uint32_t npkts, bool held)
{
	struct roce_req *req = &rc_of(qp)->req;
	struct sent_run *run = sent_find(&req->sent, psn);
	struct news news = { 0 };

	if (!run || !run->response)
		return;
	run->accepted = true;
	if (held) {
		hold(qp, run, psn, npkts, &news);
		/* The peer answers in order: perhaps a long READ, which it was asked for before what is missing. */
		req->loss.ack_from = now_of(qp);
	} else if (run->state == SENT_IN_FLIGHT && !is_ambiguous(qp, run)) {
		/* There is no place for it, so it has to be retransmitted. It still tells of others. */
		news.order = run->order + psn_add(psn, -run->psn);
		news.kind = run->part ? NEWS_PART : NEWS_ANSWERED;
		news.sent_at = run->sent_at;
	}
	take_news(qp, &news);
}

void loss_response_refused(struct skua_qp *qp, uint32_t psn)
{
	struct sent *s = &rc_of(qp)->req.sent;
	struct sent_run *run = sent_find(s, psn);

	if (!run || run->state != SENT_HELD)
		return;
	/* It is the first of its run, as all before it are done with. Without memory all of the run are lost. */
	if (run->npkts > 1)
		sent_split(qp->dev, s, run, 1);
	sent_set_state(s, run, SENT_LOST);
}

void loss_response_twice(struct skua_qp *qp)
{
	/* The answer to a probe may well come twice. */
	if (has_passed(&rc_of(qp)->req.loss, rc_of(qp)->req.loss.probe_order))
		reordering_seen(qp);
}

/* Mark the packets of @run that @f reports as held. */
static void hold_what_it_says(struct skua_qp *qp, const struct repeat_frame *f,
			      struct sent_run *run, struct news *news)
{
	uint32_t psn = run->psn, end = psn_add(run->psn, run->npkts), n;
	bool held;

	if (run->state == SENT_HELD)
		return;
	if (run->response) {
		/* The request stands for all of them. */
		if (run->first && run->state != SENT_WAITING && repeat_holds(f, psn)) {
			has_arrived(qp, run, 1, news);
			sent_set_state(&rc_of(qp)->req.sent, run, SENT_WAITING);
		}
		return;
	}
	for (; psn != end; psn = psn_add(psn, n)) {
		held = repeat_has(f, psn);
		for (n = 1; psn_add(psn, n) != end && repeat_has(f, psn_add(psn, n)) == held; n++)
			;
		run = held ? sent_find(&rc_of(qp)->req.sent, psn) : NULL;
		if (run)
			hold(qp, run, psn, n, news);
	}
}

void loss_missing(struct skua_qp *qp, const struct repeat_frame *f)
{
	struct roce_req *req = &rc_of(qp)->req;
	struct sent_run *run, *next;
	struct news news = { .kind = NEWS_HELD };
	uint32_t end = repeat_end(f);

	if (psn_diff(f->psn, req->una_psn) < 0 || psn_diff(end, req->sent_psn) > 0)
		return;
	if (f->duplicate && has_passed(&req->loss, req->loss.probe_order))
		reordering_seen(qp);
	for (run = TAILQ_FIRST(&req->sent.runs); run && psn_diff(end, run->psn) > 0; run = next) {
		next = TAILQ_NEXT(run, entry);
		hold_what_it_says(qp, f, run, &news);
	}
	take_news(qp, &news);
}

/*
 * All requests that the peer has not accepted are lost; responses that are held here are not. @nak_rtt: how long
 * the NAK took that tells of it. 0: the ACK timeout has passed; then all other responses are lost, too.
 */
static void lose_all(struct skua_qp *qp, uint64_t nak_rtt)
{
	struct roce_req *req = &rc_of(qp)->req;
	struct news lost = { 0 };
	struct sent_run *run;

	TAILQ_FOREACH(run, &req->sent.runs, entry) {
		bool accepted = req_is_accepted(req, run);

		if (run->state == SENT_LOST || (accepted && !run->response))
			continue;
		if (run->response && accepted && (nak_rtt || run->state == SENT_HELD))
			continue;
		if (run->response && run->state == SENT_HELD)
			continue;
		lose(qp, run, &lost);
	}
	if (nak_rtt) {
		/* The peer has dropped most of them itself: these count only if many times those that arrive. */
		lost.on_the_line = 1 + lost.npkts / 8;
		lost.rtt = nak_rtt;
	}
	have_lost(qp, &lost);
}

void loss_nak(struct skua_qp *qp, uint32_t psn)
{
	const struct sent_run *run = sent_find(&rc_of(qp)->req.sent, psn);

	/*
	 * A peer sends one NAK for a gap (ROC-10), so another for this PSN is a copy. One that comes too soon
	 * answers an earlier transmission.
	 */
	if ((rc_of(qp)->req.loss.nak_taken && rc_of(qp)->req.loss.nak_psn == psn) ||
	    (run->retransmitted && now_of(qp) - run->sent_at < rc_of(qp)->req.loss.min_rtt / 2))
		return;
	rc_of(qp)->req.loss.nak_taken = true;
	rc_of(qp)->req.loss.nak_psn = psn;
	lose_all(qp, now_of(qp) - run->sent_at + 1);
}

void loss_rnr_nak(struct skua_qp *qp)
{
	struct sent_run *run;

	TAILQ_FOREACH(run, &rc_of(qp)->req.sent.runs, entry)
		if (!run->response || run->state != SENT_HELD)
			sent_set_state(&rc_of(qp)->req.sent, run, SENT_LOST);
	rc_of(qp)->req.loss.ack_from = now_of(qp);
	rc_of(qp)->req.loss.sent_since = false;
}

void loss_restart(struct skua_qp *qp)
{
	rc_of(qp)->req.loss.ack_from = rc_of(qp)->req.loss.pto_from = now_of(qp);
}

/* Forget all reports of held packets: the peer may have dropped them (REP-5), or the reports were forged. */
static void hold_nothing(struct skua_qp *qp)
{
	struct roce_req *req = &rc_of(qp)->req;
	struct sent_run *run;

	TAILQ_FOREACH(run, &req->sent.runs, entry)
		if (run->state == SENT_WAITING ||
		    (run->state == SENT_HELD && !run->response && psn_diff(run->psn, req->acked_psn) >= 0))
			sent_set_state(&req->sent, run, SENT_IN_FLIGHT);
}

/* RFC 9002, section 6.2.4. */
static void probe(struct skua_qp *qp)
{
	struct loss *l = &rc_of(qp)->req.loss;

	l->pto_from = now_of(qp);
	/* The last one has not found room on the line yet. */
	if (rc_of(qp)->req.probe)
		return;
	if (l->pto_count < PTO_COUNT_MAX)
		l->pto_count++;
	if (l->probes < UINT8_MAX)
		l->probes++;
	if (l->pto_count > 1)
		hold_nothing(qp);
	repeat_agreed(qp);
	rc_of(qp)->req.probe = true;
	qp_activate(qp);
}

/* The Local ACK Timeout has passed. */
static void retry(struct skua_qp *qp)
{
	struct loss *l = &rc_of(qp)->req.loss;

	loss_restart(qp);
	/* Nothing was sent since the last retry: it waits for its turn on the line, or the peer tells that it holds all. */
	if (!l->sent_since) {
		probe(qp);
		return;
	}
	STAT_INC(qp->dev, ack_timeouts);
	if (l->retries >= qp->attr.retry_cnt) {
		req_fail(qp, SKUA_CQE_RETRY_EXC_ERR, SKUA_VENDOR_ERR_TIMEOUT);
		return;
	}
	l->retries++;
	l->sent_since = false;
	l->nak_taken = false;
	hold_nothing(qp);
	lose_all(qp, 0);
	congestion_persistent(qp);
	rc_of(qp)->req.rnr_trying = false;
	l->min_rtt_at = 0;
	/* The estimate is so long that no probe comes before a retry. It may be wrong (RFC 6298, section 5). */
	if (l->retries > 1 && !l->pto_count)
		l->smoothed_rtt = 0;
	qp_activate(qp);
}

/*
 * No answer is on its way: no packet that asks for one was sent yet, or all that may be answered is lost. But one
 * that asks will be sent, when the QP has its turn and its rate, and the line has room.
 */
static bool is_about_to_ask(const struct skua_qp *qp)
{
	const struct roce_req *req = &rc_of(qp)->req;
	bool waits = qp->sq.busy || dcqcn_paused(qp);

	if (req_is_asked(req))
		return waits && req->sent.npkts[SENT_LOST] && !req->sent.npkts[SENT_IN_FLIGHT];
	return waits || (req->unasked && req_room(qp));
}

void loss_timer(struct skua_qp *qp)
{
	struct loss *l = &rc_of(qp)->req.loss;
	uint64_t now = now_of(qp);

	if (sent_is_empty(&rc_of(qp)->req.sent))
		return;
	/* Another engine of this process has not taken the oldest packet from the port yet: it is not lost. */
	if (!port_passed(&sq_wqe(qp, qp->sq.una)->mark))
		loss_restart(qp);
	if (is_about_to_ask(qp)) {
		rc_of(qp)->req.ask = true;
		loss_restart(qp);
		qp_activate(qp);
	}
	if (now >= l->loss_time)
		detect_lost(qp);
	if (qp->attr.timeout && now >= l->ack_from + ack_timeout_ns(qp))
		retry(qp);
	else if (now >= l->pto_from + pto_ns(qp))
		probe(qp);
	if (qp_can_send(qp))
		loss_set_timer(qp);
}
