// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The requester when packets were lost.
 *
 * Theory of operation. The ACK timeout decides when a peer is given up; long before it passes, a
 * deadline that comes from measured round trips makes us send again, each time after twice the
 * time, and does not count as a try (ROC-13). A response or an ACK that is ahead of a response that is
 * due says at once that this one was lost.
 *
 * A peer that offers selective repeat tells what is missing, and only that is sent again; again
 * for the same packet when something that was sent after it has come. Where nothing more comes
 * to tell that something is missing, the last packet is sent again, for the peer to answer.
 * From any other peer all comes again from the first packet that was lost; since each packet on
 * its way is then sent in vain, fewer are sent ahead when that came from a queue, or comes often, and slowly
 * more again.
 *
 * Few packets are sent ahead at first, and more as they are acknowledged, until an acknowledgement
 * takes much longer than it could: what waits in the queues of others is taken for lost in the
 * end, and a peer in software may be too busy receiving to answer at all.
 */
#include <stdlib.h>

#include "roce/req.h"

#define EARLY_MIN_NS	1000000		/* a peer's thread may wait so long for its core */
#define EARLY_FIRST_NS	16000000	/* before anything was measured */
#define FIRST_PROBES	2		/* the same: as the peer may be far away, no more is sent again */
#define WINDOW_MIN	8		/* packets */
#define WINDOW_GROWS	8		/* by one for so many that were acknowledged */
#define LONG_QUEUE_NS	4000000		/* by so much a round trip may be longer than the shortest */
#define CHANCE_QUEUE	3		/* times the shortest round trip: the queue of a loss by chance */

/* What the peer said is missing, and what of that was sent again. */
struct repairs {
	uint32_t from, to;		/* to be looked at; equal: nothing */
	struct repeat_frame said;
	struct {
		bool sent;
		uint32_t psn;
		uint32_t before;	/* sent before this new packet */
	} slot[REPEAT_WINDOW];
};

void recover_reset(struct skua_qp *qp)
{
	free(qp->req.repairs);
	reorder_free(qp->dev, &qp->req.early_resp);
}

static uint64_t early_ns(const struct roce_req *req)
{
	/* One that asks for an answer may come a window behind the one that is waited for: a round trip more. */
	uint64_t ns = req->srtt ? 2 * req->srtt + 4 * req->rttvar : EARLY_FIRST_NS;

	return (ns < EARLY_MIN_NS ? EARLY_MIN_NS : ns) << req->backoff;
}

void recover_start_timer(struct skua_qp *qp)
{
	qp->req.early_deadline = engine_now(qp->dev->engine) + early_ns(&qp->req);
}

void recover_sent(struct skua_qp *qp, const struct train *t, bool again)
{
	struct roce_req *req = &qp->req;

	if (again || req->timing || !t->ack_req)
		return;
	req->timing = true;
	req->timed_psn = psn_add(t->psn, t->npkts - 1);
	req->timed_at = engine_now(qp->dev->engine);
}

/* Smoothed as RFC 6298 does it. */
static void measured(struct roce_req *req, uint64_t ns)
{
	uint64_t off = ns > req->srtt ? ns - req->srtt : req->srtt - ns;

	req->timing = false;
	req->backoff = 0;
	if (!req->srtt) {
		req->srtt = ns + 1;
		req->rttvar = ns / 2;
		return;
	}
	req->rttvar += off / 4 - req->rttvar / 4;
	req->srtt += ns / 8 - req->srtt / 8;
}

static void not_behind(uint32_t *psn, uint32_t una_psn)
{
	if (psn_diff(*psn, una_psn) < 0)
		*psn = una_psn;
}

static void shrink(struct roce_req *req, uint32_t window)
{
	req->careful = true;
	req->window = window > WINDOW_MIN ? window : WINDOW_MIN;
}

/* A quarter fewer than are on their way, of which no more than the window are known to be. */
static uint32_t fewer(const struct roce_req *req)
{
	uint32_t sent = psn_add(req->sent_psn, -req->una_psn);

	return (sent < req->window ? sent : req->window) * 3 / 4;
}

static void round_trip(struct roce_req *req, uint64_t ns)
{
	measured(req, ns);
	if (!req->least_rtt || ns < req->least_rtt)
		req->least_rtt = ns;
	if (ns - req->least_rtt > LONG_QUEUE_NS)
		shrink(req, fewer(req));
}

void recover_progress(struct skua_qp *qp, uint32_t psn)
{
	struct roce_req *req = &qp->req;
	uint32_t acked = psn_add(psn, -req->una_psn);

	if (req->timing && psn_diff(psn, req->timed_psn) > 0)
		round_trip(req, engine_now(qp->dev->engine) - req->timed_at);
	req->early = 0;
	req->probe = false;
	not_behind(&req->resp_asked, psn);
	not_behind(&req->resp_seen, psn);
	/* Unless it is too large already for what there is to send. */
	if (psn_add(req->sent_psn, -req->una_psn) >= req->window / 2 && req->window < PSN_WINDOW)
		req->window += req->careful ? (acked + WINDOW_GROWS - 1) / WINDOW_GROWS : acked;
}

void recover_rewound(struct skua_qp *qp)
{
	struct roce_req *req = &qp->req;

	/* An answer would not say to which of the two. */
	req->timing = false;
	req->probe = false;
	if (req->repairs)
		req->repairs->from = req->repairs->to;
}

/*
 * One that was lost by itself, with a short queue before it, was lost by chance: no fewer are sent ahead for
 * that, since a window that is too small for its line costs more than what is sent in vain. But where a deadline
 * has passed, all behind it may have been lost, and little is known: it begins anew.
 */
static uint32_t window_after_loss(const struct roce_req *req)
{
	if (req->backoff)
		return WINDOW_MIN;
	if (psn_diff(req->una_psn, req->cut_psn) < 0 || req->srtt > CHANCE_QUEUE * req->least_rtt)
		return fewer(req);
	return req->window;
}

void recover_lost(struct skua_qp *qp)
{
	struct roce_req *req = &qp->req;

	repeat_agreed(qp);	/* or ask whether it does */
	shrink(req, window_after_loss(req));
	req->cut_psn = req->sent_psn;
	req_rewind(qp);
}

/* The WQE that has the PSN, of those that were sent. */
static struct send_wqe *wqe_of(const struct skua_qp *qp, uint32_t psn)
{
	for (uint32_t i = qp->req.una; i != qp->req.tail; i++) {
		struct send_wqe *wqe = sq_wqe(qp, i);

		if (wqe->npsn && psn_add(psn, -wqe->psn) < wqe->npsn)
			return wqe;
	}
	return NULL;
}

/* Can the last packet that was sent go again by itself? */
static struct send_wqe *last_sent(const struct skua_qp *qp)
{
	const struct roce_req *req = &qp->req;
	struct send_wqe *wqe;

	if (req_next_psn(qp) != req->sent_psn)
		return NULL;
	wqe = wqe_of(qp, psn_add(req->sent_psn, PSN_MASK));
	return wqe && !req_has_response(wqe) ? wqe : NULL;
}

void recover_timer(struct skua_qp *qp)
{
	struct roce_req *req = &qp->req;
	unsigned int probes;

	/* What another engine of this process has not come to yet is not lost. */
	if (!req_waiting(req) || !port_passed(&sq_wqe(qp, req->una)->mark)) {
		recover_start_timer(qp);
		return;
	}
	req->early++;
	req->backoff++;
	recover_start_timer(qp);
	/* Nothing is on its way any more. */
	for (int i = 0; req->repairs && i < REPEAT_WINDOW; i++)
		req->repairs->slot[i].sent = false;
	probes = repeat_agreed(qp);
	if (!req->srtt)
		probes = FIRST_PROBES;
	if (req->early > probes) {
		recover_lost(qp);
	} else if (psn_diff(req->resp_seen, req->una_psn) > 0) {
		req->resp_asked = req->una_psn;
		qp_activate(qp);
	} else if (last_sent(qp)) {
		req->probe = true;
		qp_activate(qp);
	} else {
		recover_lost(qp);
	}
}

/*
 * Some were lost: no more are sent ahead than the peer holds. Where it was more than a quarter, a queue was
 * too long for its line, and fewer are: once for what was sent together.
 */
static void some_missing(struct roce_req *req)
{
	const struct repairs *rep = req->repairs;
	uint32_t window = req->window < REPEAT_WINDOW ? req->window : REPEAT_WINDOW;
	uint32_t sent = psn_add(req->sent_psn, -req->una_psn), missing = 0;

	if (psn_diff(rep->from, req->cut_psn) >= 0) {
		req->cut_psn = req->sent_psn;
		for (uint32_t psn = rep->from; psn != rep->to; psn = psn_add(psn, 1))
			missing += !repeat_holds(&rep->said, psn);
		sent = sent < window ? sent : window;
		if (missing > sent / 4)
			window = 2 * missing < sent ? sent - 2 * missing : 0;
	}
	shrink(req, window);
}

void roce_req_missing(struct skua_qp *qp, const struct repeat_frame *f)
{
	struct roce_req *req = &qp->req;
	struct repairs *rep = req->repairs;
	uint32_t end = REPEAT_WINDOW;

	while (end && !repeat_holds(f, psn_add(f->psn, end)))
		end--;
	end = psn_add(f->psn, end);
	if (psn_diff(f->psn, req->una_psn) < 0 || psn_diff(end, req->sent_psn) >= 0)
		return;
	if (!rep)
		rep = req->repairs = calloc(1, sizeof(*rep));
	if (!rep)
		return;
	rep->said = *f;
	rep->from = f->psn;
	rep->to = end;
	req->backoff = 0;
	some_missing(req);
	qp_activate(qp);
}

/* @psn is missing: it goes again, unless it may still be on its way. */
static bool repair(struct skua_qp *qp, struct send_wqe *wqe, uint32_t psn)
{
	struct repairs *rep = qp->req.repairs;
	uint32_t i = psn % REPEAT_WINDOW;
	bool sent;

	if (rep->slot[i].sent && rep->slot[i].psn == psn &&
	    psn_diff(rep->to, rep->slot[i].before) < 0)
		return true;
	if (req_has_response(wqe))
		sent = wqe->done || req_send_request(qp, wqe, 0, wqe->npsn);
	else
		sent = req_send_packets(qp, wqe, psn_add(psn, -wqe->psn), 1, true);
	rep->slot[i].sent = sent;
	rep->slot[i].psn = psn;
	rep->slot[i].before = qp->req.sent_psn;
	return sent;
}

static bool run_repairs(struct skua_qp *qp, int32_t *budget)
{
	struct roce_req *req = &qp->req;
	struct repairs *rep = req->repairs;
	uint32_t next = req_next_psn(qp), has = rep->said.psn;

	not_behind(&rep->from, req->una_psn);
	not_behind(&has, req->una_psn);
	while (psn_diff(rep->to, rep->from) > 0 && psn_diff(next, rep->from) > 0) {
		struct send_wqe *wqe = wqe_of(qp, rep->from);

		if (!wqe)
			break;
		/* The rest when these have come. */
		if (psn_diff(rep->from, has) >= (int32_t)req->window)
			return true;
		if (!repeat_holds(&rep->said, rep->from) && !repair(qp, wqe, rep->from)) {
			req->busy = true;
			return false;
		}
		if (wqe->status) {
			req_rewind(qp);
			return true;
		}
		*budget -= (int32_t)qp->pmtu;
		/* A READ is asked for by its first PSN only. */
		rep->from = req_has_response(wqe) ? psn_add(wqe->psn, wqe->npsn) :
			    psn_add(rep->from, 1);
	}
	rep->from = rep->to;
	return true;
}

void recover_responses(struct skua_qp *qp, uint32_t psn, const struct train *t)
{
	struct roce_req *req = &qp->req;

	/* The peer is not silent: what was asked for may be still to come. */
	if (t)
		recover_start_timer(qp);
	if (repeat_agreed(qp) &&
	    (!t || reorder_hold(qp->dev, &req->early_resp, req->una_psn, t))) {
		if (psn_diff(psn, req->resp_seen) > 0)
			req->resp_seen = psn;
		qp_activate(qp);
	} else if (psn_diff(req->resp_asked, req->una_psn) <= 0) {
		/* Once: the responses to before are still on their way. */
		req->resp_asked = psn_add(req->una_psn, 1);
		recover_lost(qp);
	}
}

/* Ask for the responses of @wqe that are missing, from resp_asked to resp_seen. */
static bool ask_again(struct skua_qp *qp, struct send_wqe *wqe, int32_t *budget)
{
	struct roce_req *req = &qp->req;
	uint32_t psn = psn_add(wqe->psn, wqe->read_off >> qp->log_pmtu);
	uint32_t end = psn_add(wqe->psn, wqe->npsn), n;

	not_behind(&psn, req->resp_asked);
	if (psn_diff(end, req->resp_seen) > 0)
		end = req->resp_seen;
	for (; psn_diff(end, psn) > 0; psn = psn_add(psn, n)) {
		n = 1;
		if (reorder_has(req->early_resp, psn))
			continue;
		while (psn_add(psn, n) != end && !reorder_has(req->early_resp, psn_add(psn, n)))
			n++;
		wqe->parts = true;
		if (req->resp_asks == qp->max_rd ||
		    !req_send_request(qp, wqe, psn_add(psn, -wqe->psn), n)) {
			req->resp_asked = psn;
			return false;
		}
		*budget -= MESSAGE_COST;
		req->resp_asks++;
	}
	return true;
}

/* No more at a time than the peer takes READs; more when those have come. False: no room. */
static bool ask_responses(struct skua_qp *qp, int32_t *budget)
{
	struct roce_req *req = &qp->req;

	if (psn_diff(req->resp_asked, req->una_psn) <= 0)
		req->resp_asks = 0;
	if (req->resp_asks == qp->max_rd)
		return true;
	for (uint32_t i = req->una; i != req->nxt; i++) {
		struct send_wqe *wqe = sq_wqe(qp, i);

		if (!req_has_response(wqe) || wqe->done || ask_again(qp, wqe, budget))
			continue;
		req->busy = req->resp_asks < qp->max_rd;
		return !req->busy;
	}
	req->resp_asked = req->resp_seen;
	return true;
}

bool recover_run(struct skua_qp *qp, int32_t *budget)
{
	struct roce_req *req = &qp->req;
	struct send_wqe *wqe;

	if (req->repairs && req->repairs->from != req->repairs->to && !run_repairs(qp, budget))
		return false;
	if (psn_diff(req->resp_seen, req->resp_asked) > 0 && !ask_responses(qp, budget))
		return false;
	if (!req->probe)
		return true;
	wqe = last_sent(qp);
	if (wqe && !req_send_packets(qp, wqe, psn_add(req->sent_psn, PSN_MASK - wqe->psn), 1, true)) {
		req->busy = true;
		return false;
	}
	*budget -= MESSAGE_COST;
	req->probe = false;
	return true;
}
