// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What has arrived at the peer, as ACKs, NAKs, responses and MISSING frames tell.
 *
 * Theory of operation. An ACK or NAK for a packet or for a later one tells that it has arrived. So does a MISSING of a
 * peer that holds it, or its response. What is done with leaves the table of sent packets (sent.c). What arrived early
 * stays there as held. All that arrives at once is collected as news; the news gives a sample of the round trip, lets
 * the congestion window grow, and may show that others are lost.
 */
#include "roce/arrival.h"
#include "roce/congestion.h"
#include "roce/loss.h"
#include "roce/rtt.h"

/* What one packet from the peer tells of packets that have arrived. */
struct news {
	uint32_t npkts;			/* packets that have arrived, and were outstanding until now */
	enum news_kind kind;		/* of the latest of them */
	uint64_t order;			/* behind the send order of the latest */
	uint64_t sent_at;
	struct rtt_sample sample;
};

/* The first @npkts of @run have arrived. */
static inline void has_arrived(struct skua_qp *qp, const struct sent_run *run, uint32_t npkts,
			struct news *news)
{
	uint64_t behind = run->send_order + npkts;

	if (run->state == SENT_HELD)
		return;
	news->npkts += npkts;
	if (!run->retransmitted) {
		if (run->state == SENT_LOST)
			loss_reordering_seen(qp);
		rc_of(qp)->req.loss.probes = 0;
	}
	rtt_sample(qp, run, &news->sample);
	if (rtt_is_ambiguous(qp, run) || behind < news->order)
		return;
	news->order = behind;
	if (run->is_partial && behind != rc_of(qp)->req.loss.probe_order)
		news->kind = NEWS_PART;
	news->sent_at = run->sent_at;
}

/* A probe was answered, so no response that was on its way is still to come. */
static void none_is_arriving(struct skua_qp *qp)
{
	struct sent *s = &rc_of(qp)->req.sent;
	struct sent_run *run;

	for (run = TAILQ_FIRST(&s->runs); run && s->npkts[SENT_ARRIVING]; run = TAILQ_NEXT(run, entry)) {
		qp->dev->engine->turn -= RUN_COST;
		if (run->state == SENT_ARRIVING)
			sent_set_state(s, run, SENT_IN_FLIGHT);
	}
}

/* Act on what has arrived. */
static void take_news(struct skua_qp *qp, const struct news *news)
{
	struct loss *l = &rc_of(qp)->req.loss;
	struct rack *rack = &l->rack[news->kind];
	uint64_t now = now_of(qp);

	if (news->sample.from && !news->sample.is_unusable)
		rtt_take(qp, &news->sample, news->order);
	if (news->npkts)
		l->pto_start = l->last_arrival_at = now;
	if (news->order)
		l->pto_count = 0;
	if (news->order && news->order == l->probe_order)
		none_is_arriving(qp);
	if (news->order > rack->order) {
		rack->order = news->order;
		rack->rtt = now - news->sent_at;
	}
	if (news->npkts)
		congestion_acked(qp, news->npkts, news->kind == NEWS_PART ? 0 : news->order);
	loss_detect(qp);
}

void arrival_acked(struct skua_qp *qp, uint32_t psn)
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
			req->reads_outstanding--;
		run->accepted = run->response;
		/* The other responses follow. When is not known, as the request was sent long before. */
		if (run->accepted && run->state == SENT_WAITING)
			sent_set_state(&req->sent, run, SENT_ARRIVING);
		sent_remove(qp->dev, &req->sent, npkts);
	}
	req->loss.ack_timeout_start = now_of(qp);
	req->loss.retries = 0;
	req->loss.nak_taken = false;
	take_news(qp, &news);
}

/*
 * @npkts packets of @run from @psn on have arrived, but before earlier ones: mark them as held. Returns the run that
 * has them now. Without memory to split @run, their arrival is ignored.
 */
static struct sent_run *hold(struct skua_qp *qp, struct sent_run *run, uint32_t psn, uint32_t npkts,
			     struct news *news)
{
	struct sent *s = &rc_of(qp)->req.sent;
	struct sent_run *behind;

	if (run->state == SENT_HELD)
		return run;
	if (psn != run->psn) {
		behind = sent_split(qp->dev, s, run, psn_add(psn, -run->psn));
		if (!behind)
			return run;
		run = behind;
	}
	if (npkts < run->npkts && !sent_split(qp->dev, s, run, npkts))
		return run;
	has_arrived(qp, run, run->npkts, news);
	sent_set_state(s, run, SENT_HELD);
	return sent_join(qp->dev, s, run);
}

void arrival_accepted(struct skua_qp *qp, uint32_t psn)
{
	struct sent *s = &rc_of(qp)->req.sent;
	struct news news = { 0 };
	struct sent_run *run, *next;

	for (run = TAILQ_FIRST(&s->runs); run && psn_diff(psn, run->psn) > 0; run = next) {
		uint32_t npkts = psn_add(psn, -run->psn);

		qp->dev->engine->turn -= RUN_COST;
		next = TAILQ_NEXT(run, entry);
		if (!run->response) {
			hold(qp, run, run->psn, npkts < run->npkts ? npkts : run->npkts, &news);
			continue;
		}
		if (run->state == SENT_WAITING || run->state == SENT_ARRIVING)
			sent_set_state(s, run, SENT_IN_FLIGHT);
		run->accepted = true;
		/* The peer has sent all of these responses before what has arrived, so they should have come. */
		if (run->state == SENT_IN_FLIGHT && npkts >= run->npkts &&
		    run->send_order + run->npkts >= news.order && !run->retransmitted) {
			news.order = run->send_order + run->npkts;
			news.sent_at = run->sent_at;
			news.sample.from = 0;
		}
	}
	take_news(qp, &news);
}

void arrival_response_early(struct skua_qp *qp, uint32_t psn, uint32_t npkts, bool held)
{
	struct roce_req *req = &rc_of(qp)->req;
	struct sent_run *run = sent_find(&req->sent, psn);
	struct news news = { 0 };

	if (!run || !run->response)
		return;
	run->accepted = true;
	if (held) {
		hold(qp, run, psn, npkts, &news);
		/* The peer is alive: it answers in order, and perhaps these are responses of a long READ. */
		req->loss.ack_timeout_start = now_of(qp);
	} else if (run->state == SENT_IN_FLIGHT && !rtt_is_ambiguous(qp, run)) {
		/* There is no place for it, so it has to be requested again. It still tells of others. */
		news.order = run->send_order + psn_add(psn, -run->psn);
		news.kind = run->is_partial ? NEWS_PART : NEWS_ANSWERED;
		news.sent_at = run->sent_at;
	}
	take_news(qp, &news);
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
		while (psn_add(psn, -run->psn) >= run->npkts)
			run = TAILQ_NEXT(run, entry);
		if (held)
			run = hold(qp, run, psn, n, news);
	}
}

void arrival_missing(struct skua_qp *qp, const struct repeat_frame *f)
{
	struct roce_req *req = &rc_of(qp)->req;
	struct sent_run *run, *next;
	struct news news = { .kind = NEWS_HELD };
	uint32_t end = repeat_end(f);

	if (psn_diff(f->psn, req->oldest_unacked_psn) < 0 || psn_diff(end, req->next_psn) > 0)
		return;
	if (f->duplicate)
		loss_came_twice(qp);
	sent_charge(qp->dev, &req->sent);
	for (run = TAILQ_FIRST(&req->sent.runs); run && psn_diff(end, run->psn) > 0; run = next) {
		next = TAILQ_NEXT(run, entry);
		hold_what_it_says(qp, f, run, &news);
	}
	take_news(qp, &news);
}
