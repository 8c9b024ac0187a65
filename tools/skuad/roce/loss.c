// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Loss detection.
 *
 * Theory of operation. A packet is lost when one that was sent later has arrived, and it itself has not: RFC 9002,
 * section 6.1. "Later" means kPacketThreshold packets later, or a time: the packet was sent more than a round trip and
 * the reordering window ago. Reordering looks like loss. Once it was seen, only the time counts, and the reordering
 * window grows up to a round trip (RACK, RFC 8985). A packet that arrives twice, or before it was retransmitted, shows
 * reordering.
 *
 * What has arrived, arrival.c finds out. If nothing arrives, req_timer.c sends a probe, or counts all as lost.
 *
 * An example. A WRITE has 8 packets, PSNs 100 to 107 with the send orders 0 to 7. The round trip takes 100 us. Packet
 * 101 is lost. The peer offers selective repeat, so it holds the packets behind 101 (manual: repeat.rst):
 *
 *	at 0 us		100 to 107 are sent, and are in flight.
 *	at 100 us	MISSING: 101 expected, 102 held. 100 is acknowledged, 102 is held. 102 has send order 2, 1 later than
 *			101: 101 is not lost yet. By the time threshold it is lost at 125 us: round trip + min_rtt / 4.
 *			MISSING: 101 expected, 102 to 104 held. 104 has send order 4, 3 later than 101: 101 is lost.
 *			101 is retransmitted with send order 8, and is in flight again.
 *			MISSING: 101 expected, 102 to 107 held. 107 has send order 7, before 8: it tells nothing of the
 *			retransmission.
 *	at 200 us	ACK 107. All have arrived, and the WRITE completes.
 *
 * A peer without selective repeat drops 102 to 107, and answers 102 with a NAK for 101. Then 101 to 107 are all lost,
 * and are retransmitted with the send orders 8 to 14 (loss_nak()).
 */
#include "roce/congestion.h"
#include "roce/loss.h"
#include "roce/rtt.h"

#define PACKET_THRESHOLD	3		/* kPacketThreshold */
#define REO_WND_PERSIST		16

/* Packets that are lost now. */
struct losses {
	uint32_t npkts;
	uint32_t on_the_line;		/* packets that were on the line; the request of a READ is one */
	uint64_t order;			/* behind the send order of the latest */
	uint64_t nak_rtt;		/* how long the NAK took that tells of them; 0: there was none */
};

void loss_init(struct loss *l)
{
	*l = (struct loss){ .loss_time = TIMER_NEVER };
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

/* Has a packet arrived whose send order is @order or later, by any kind of news? */
static bool has_passed(const struct loss *l, uint64_t order)
{
	for (int i = 0; i < NEWS_KINDS; i++)
		if (l->rack[i].order >= order)
			return true;
	return false;
}

/* A packet was late rather than lost. Widen the reordering window, once for what was sent together. */
void loss_reordering_seen(struct skua_qp *qp)
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

void loss_came_twice(struct skua_qp *qp)
{
	/* The answer to a probe may well come twice. */
	if (has_passed(&rc_of(qp)->req.loss, rc_of(qp)->req.loss.probe_order))
		loss_reordering_seen(qp);
}

static void lose(struct skua_qp *qp, struct sent_run *run, struct losses *lost)
{
	sent_set_state(&rc_of(qp)->req.sent, run, SENT_LOST);
	lost->npkts += run->npkts;
	lost->on_the_line += run->response && !req_is_accepted(&rc_of(qp)->req, run) ? 1 : run->npkts;
	if (run->send_order + run->npkts > lost->order && !run->is_partial)
		lost->order = run->send_order + run->npkts;
}

static void have_lost(struct skua_qp *qp, const struct losses *lost)
{
	struct loss *l = &rc_of(qp)->req.loss;

	if (!lost->npkts)
		return;
	l->last_loss_at = now_of(qp);
	repeat_agreed(qp);	/* this asks a peer that did not offer it yet */
	if (lost->order > rc_of(qp)->req.congestion.recovery_order)
		forget_reordering(l);
	/* A pause of the peer delays one NAK, or raises the smoothed RTT. A queue does both. */
	congestion_lost(qp, lost->on_the_line, lost->order,
			lost->nak_rtt && lost->nak_rtt < l->path_rtt ? lost->nak_rtt : l->path_rtt);
	qp_activate(qp);
}

/* Of all packets that have arrived, the one that was sent last; only news that tells of @run counts. */
static const struct rack *latest(const struct roce_req *req, const struct sent_run *run)
{
	const struct rack *rack = &req->loss.rack[NEWS_ANSWERED], *other = rack;

	if (run->is_partial)
		other = &req->loss.rack[NEWS_PART];
	else if (!req_is_accepted(req, run))
		other = &req->loss.rack[NEWS_HELD];
	return other->order > rack->order ? other : rack;
}

/*
 * How many of @run's packets are lost now? All were sent before a packet that has arrived. If others will count as lost
 * later, loss_time says when.
 */
static uint32_t lost_of(struct skua_qp *qp, const struct sent_run *run)
{
	struct loss *l = &rc_of(qp)->req.loss;
	const struct rack *rack = latest(&rc_of(qp)->req, run);
	uint64_t later = rack->order - run->send_order, at;
	uint32_t npkts = later < run->npkts ? (uint32_t)later : run->npkts;
	/* A request is retransmitted as a whole, unless the peer has accepted it. */
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
void loss_detect_among_runs(struct skua_qp *qp)
{
	struct sent *s = &rc_of(qp)->req.sent;
	struct sent_run *run, *next;
	struct losses lost = { 0 };
	uint32_t npkts;

	sent_charge(qp->dev, s);
	for (run = TAILQ_FIRST(&s->runs); run; run = next) {
		next = TAILQ_NEXT(run, entry);
		if (run->state != SENT_IN_FLIGHT || run->send_order >= latest(&rc_of(qp)->req, run)->order)
			continue;
		npkts = lost_of(qp, run);
		if (!npkts)
			continue;
		/* Without memory to split the run, all of it counts as lost. */
		if (npkts < run->npkts && sent_split(qp->dev, s, run, npkts))
			next = TAILQ_NEXT(run, entry);
		lose(qp, run, &lost);
		/* Packets that are lost one by one are retransmitted together. */
		sent_join(qp->dev, s, run);
	}
	have_lost(qp, &lost);
}

/*
 * All requests that the peer has not accepted are lost; responses that are held here are not. @nak_rtt: how long
 * the NAK took that tells of it. 0: the ACK timeout has passed; then all other responses are lost, too.
 */
void loss_lose_all(struct skua_qp *qp, uint64_t nak_rtt)
{
	struct roce_req *req = &rc_of(qp)->req;
	struct losses lost = { 0 };
	struct sent_run *run;

	sent_charge(qp->dev, &req->sent);
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
		/* The peer has dropped most of them itself, so they count as congestion only if they are very many. */
		lost.on_the_line = 1 + lost.npkts / 8;
		lost.nak_rtt = nak_rtt;
	}
	have_lost(qp, &lost);
}

void loss_nak(struct skua_qp *qp, uint32_t psn, uint32_t naccepted)
{
	const struct sent_run *run = sent_find(&rc_of(qp)->req.sent, psn);
	uint64_t age = now_of(qp) - run->sent_at;
	struct loss *l = &rc_of(qp)->req.loss;

	/* A peer sends one NAK for a gap (ROC-10), so another NAK for this PSN is a copy. */
	if (l->nak_taken && l->nak_psn == psn)
		return;
	/*
	 * The peer has dropped all behind the last gap. If it has accepted many packets since, these are retransmissions,
	 * so it answers the last one of this packet, too. Otherwise a NAK that comes too soon answers an earlier one.
	 */
	if (run->retransmitted && naccepted > PACKET_THRESHOLD)
		rtt_of_path(qp, age);
	else if (run->retransmitted && age < l->min_rtt / 2)
		return;
	l->nak_taken = true;
	l->nak_psn = psn;
	loss_lose_all(qp, age + 1);
}

void loss_rnr_nak(struct skua_qp *qp)
{
	struct sent *s = &rc_of(qp)->req.sent;
	struct sent_run *run;

	sent_charge(qp->dev, s);
	TAILQ_FOREACH(run, &s->runs, entry)
		if (!run->response || run->state != SENT_HELD)
			sent_set_state(s, run, SENT_LOST);
	rc_of(qp)->req.loss.ack_timeout_start = now_of(qp);
	rc_of(qp)->req.loss.sent_since_retry = false;
}

void loss_response_dropped(struct skua_qp *qp, uint32_t npkts)
{
	struct sent *s = &rc_of(qp)->req.sent;
	struct sent_run *run = TAILQ_FIRST(&s->runs);

	if (!run || !run->response || run->state == SENT_LOST)
		return;
	/* It had come early. Those behind it are still held. Without memory to split the run, all of it is lost. */
	if (run->state == SENT_HELD && npkts < run->npkts)
		sent_split(qp->dev, s, run, npkts);
	sent_set_state(s, run, SENT_LOST);
}

void loss_response_refused(struct skua_qp *qp, uint32_t psn)
{
	struct sent *s = &rc_of(qp)->req.sent;
	struct sent_run *run = sent_find(s, psn);

	if (!run || run->state != SENT_HELD)
		return;
	/*
	 * The packet is the first of its run, as all before it are done with. Without memory to split the run, all of
	 * it is lost.
	 */
	if (run->npkts > 1)
		sent_split(qp->dev, s, run, 1);
	sent_set_state(s, run, SENT_LOST);
}
