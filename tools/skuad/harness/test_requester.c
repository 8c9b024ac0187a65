// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Rules of a requester's loss recovery, one by one. A fault there costs time or packets, and something else makes
 * up for it, so the work is done in the end. Here the answers of the peer are forged, and come when a test wants
 * them to: what the requester does then, and when, is what the manual says.
 */
#include "core/pacer.h"
#include "core/qp.h"
#include "harness/lossy.h"
#include "nic/control.h"
#include "roce/rc.h"
#include "roce/repeat.h"
#include "roce/req.h"
#include "roce/roce.h"

#define US		1000ull
#define MS		1000000ull
#define MTU		1024u
#define TIMEOUT		(4096ull << 14)		/* that rts_cmd() sets */
#define RTT		MS			/* that prepare() measures; the first PTO is 3 ms */

static struct skua_qp *qp_of(struct node *n)
{
	return numtab_get(&n->dev->qps, n->qpn);
}

static struct loss *loss_of(struct node *n)
{
	return &rc_of(qp_of(n))->req.loss;
}

static uint32_t packets_in(struct node *n, enum sent_state state)
{
	return rc_of(qp_of(n))->req.sent.npkts[state];
}

static void stop_impairing(struct node *n)
{
	assert_true(skua_dev_set_impair(n->dev, NULL));
}

static void post_write(struct node *a, struct node *b, uint32_t len)
{
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, len, b->buf, b->key, 0);
}

static void post_read(struct node *a, struct node *b, uint32_t npkts)
{
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, npkts * MTU, b->buf, b->key, 0);
}

/* A WRITE whose answer takes so long. */
static void take_sample(struct world *w, const char *delay)
{
	IMPAIR(&w->n[1], delay);
	post_write(&w->n[0], &w->n[1], 8);
	await_success(w, &w->n[0]);
	stop_impairing(&w->n[1]);
}

static void repeat_to(struct node *to, struct node *from, struct repeat_frame f)
{
	uint8_t buf[REPEAT_FRAME];
	struct seglist frame = { .n = 1 };

	f.dest_qpn = to->qpn;
	f.path.vlan = SKUA_VLAN_NONE;
	memcpy(f.path.smac, from->mac, 6);
	memcpy(f.path.dmac, to->mac, 6);
	memcpy(f.path.sgid, from->gid, 16);
	memcpy(f.path.dgid, to->gid, 16);
	frame.bytes = (uint32_t)repeat_build(buf, &f);
	frame.seg[0] = (struct seg){ buf, frame.bytes };
	skua_dev_rx_frame(to->dev, &frame);
}

/* The first node has measured a round trip, and both offer selective repeat. */
static void prepare(struct world *w)
{
	take_sample(w, "delay=1ms,dir=out");
	for (int i = 0; i < 2; i++)
		repeat_to(&w->n[i], &w->n[!i], (struct repeat_frame){ .type = REPEAT_HELLO });
}

/* The peer expects @psn, and holds @n packets from the @first behind it on. */
static void missing(struct world *w, uint32_t psn, uint32_t first, uint32_t n, bool duplicate)
{
	struct repeat_frame f = { .type = REPEAT_MISSING, .psn = psn, .duplicate = duplicate };

	for (uint32_t i = first; i < first + n; i++)
		f.held[(i - 1) / 8] |= (uint8_t)(1 << (i - 1) % 8);
	repeat_to(&w->n[0], &w->n[1], f);
	settle(w);
}

/* An ACK or a NAK. */
static void ack(struct world *w, uint32_t psn, uint8_t syndrome)
{
	struct train t = train_from(&w->n[0], TRAIN_ACK, psn);

	t.syndrome = syndrome;
	arrive(w, &w->n[0], &w->n[1], t);
}

/* Post a WRITE of @npkts packets of which none reaches the peer; returns the PSN of the first. */
static uint32_t lose_write(struct world *w, uint32_t npkts)
{
	struct node *a = &w->n[0];
	uint32_t psn = rc_of(qp_of(a))->req.next_psn;

	IMPAIR(a, "drop=100%,dir=out");
	post_write(a, &w->n[1], npkts * MTU);
	settle(w);
	return psn;
}

/* Post a READ of @npkts packets that the peer gets, and whose responses are all lost. */
static uint32_t lose_responses(struct world *w, uint32_t npkts)
{
	uint32_t psn = rc_of(qp_of(&w->n[0]))->req.next_psn;

	IMPAIR(&w->n[1], "drop=100%,dir=out");
	post_read(&w->n[0], &w->n[1], npkts);
	settle(w);
	return psn;
}

/* Response @i of @npkts. */
static void respond(struct world *w, uint32_t psn, uint32_t i, uint32_t npkts)
{
	struct node *a = &w->n[0], *b = &w->n[1];
	struct train t = train_from(a, TRAIN_READ_RESP, psn_add(psn, i));
	struct seglist payload = { 1, MTU, { { (uint8_t *)at(b, b->buf) + i * MTU, MTU } } };

	t.payload = &payload;
	t.first = !i;
	t.last = i + 1 == npkts;
	arrive(w, a, b, t);
}

static uint64_t again(struct world *w)
{
	return w->n[0].dev->stats.retransmits;
}

static unsigned int runs_of(struct node *n)
{
	const struct sent_run *run;
	unsigned int runs = 0;

	TAILQ_FOREACH(run, &rc_of(qp_of(n))->req.sent.runs, entry)
		runs++;
	return runs;
}

/* Lost together and retransmitted together, in more than one train. */
static void what_is_retransmitted_together_is_one_run(void **state)
{
	struct world *w = *state;
	uint32_t psn;

	prepare(w);
	rc_of(qp_of(&w->n[0]))->req.congestion.window = 4096;
	psn = lose_write(w, 200);
	assert_int_equal(runs_of(&w->n[0]), 1);
	pass(w, RTT);
	ack(w, psn, AETH_NAK_SEQ);
	assert_int_equal(again(w), 200);
	assert_int_equal(runs_of(&w->n[0]), 1);
}

/* A WRITE is missing, whose PSN is returned. The peer holds the request of the READ of @npkts packets behind it. */
static uint32_t hold_read(struct world *w, uint32_t npkts)
{
	uint32_t psn;

	prepare(w);
	psn = lose_write(w, 1);
	post_read(&w->n[0], &w->n[1], npkts);
	settle(w);
	pass(w, RTT);
	missing(w, psn, 1, 1, false);
	assert_int_equal(packets_in(&w->n[0], SENT_WAITING), npkts);
	return psn;
}

/* The request does not go again. */
static void a_read_whose_request_is_held_waits(void **state)
{
	struct world *w = *state;
	uint32_t psn;

	psn = hold_read(w, 4);
	assert_int_equal(packets_in(&w->n[0], SENT_WAITING), 4);
	pass(w, RTT / 2);
	assert_int_equal(again(w), 1);
	pass(w, RTT);
	ack(w, psn, AETH_ACK);
	assert_int_equal(again(w), 1);
	assert_int_equal(packets_in(&w->n[0], SENT_WAITING), 4);
}

/* It is accepted when a response has come; then a response before that one is missing. */
static void a_read_that_waited_is_in_flight_when_it_is_accepted(void **state)
{
	struct world *w = *state;
	uint32_t psn;

	psn = hold_read(w, 4);
	pass(w, RTT / 10);
	respond(w, psn + 1, 1, 4);
	assert_int_equal(again(w), 0);
	pass(w, RTT / 2);
	assert_int_equal(again(w), 1);
}

/* The first response to a request that was held found no place: it was dropped until its page came. */
static void responses_without_a_place_do_not_wait(void **state)
{
	struct world *w = *state;
	uint32_t psn;

	psn = hold_read(w, 4);
	ack(w, psn, AETH_ACK);
	assert_int_equal(packets_in(&w->n[0], SENT_WAITING), 4);
	rc_of(qp_of(&w->n[0]))->req.npkts_dropped = 1;
	req_resumed(qp_of(&w->n[0]));
	assert_int_equal(packets_in(&w->n[0], SENT_LOST), 4);
}

/* The peer held the request of a READ of 8 packets until now: the first response has come. Returns its PSN. */
static uint32_t begin_held_read(struct world *w)
{
	uint32_t psn;

	psn = hold_read(w, 8);
	assert_int_equal(packets_in(&w->n[0], SENT_WAITING), 8);
	pass(w, RTT);
	respond(w, psn + 1, 0, 8);
	assert_int_equal(packets_in(&w->n[0], SENT_WAITING), 0);
	return psn + 1;
}

/* The window counts the other responses, and they are not lost because the request is old. */
static void responses_that_stream_in_are_in_flight(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];
	uint64_t before;
	uint32_t psn;

	psn = begin_held_read(w);
	before = again(w);
	rc_of(qp_of(a))->req.congestion.window = 10;
	post_write(a, &w->n[1], 8 * MTU);
	settle(w);
	assert_int_equal(packets_in(a, SENT_IN_FLIGHT), 3);
	for (uint32_t i = 1; i < 8; i++)
		respond(w, psn, i, 8);
	assert_int_equal(again(w), before);
	assert_int_equal(rc_of(qp_of(a))->req.reads_outstanding, 0);
}

/* The others are lost. One probe is enough to find that out of all of them. */
static void responses_that_stop_are_lost_together(void **state)
{
	struct world *w = *state;
	uint64_t before;
	uint32_t psn;

	psn = begin_held_read(w);
	before = again(w);
	while (again(w) == before)
		next_event(w);
	pass(w, RTT);
	assert_int_equal(again(w), before + 1);
	respond(w, psn + 1, 0, 1);
	assert_int_equal(packets_in(&w->n[0], SENT_IN_FLIGHT), 6);
	assert_int_equal(packets_in(&w->n[0], SENT_ARRIVING), 0);
	assert_int_equal(again(w), before + 2);
}

/* The peer reports that it holds the request of a READ, and then tells nothing for so long that it may have dropped it. */
static void a_request_that_was_held_is_not_lost_by_that(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];
	uint32_t psn;

	psn = hold_read(w, 4);
	while (packets_in(a, SENT_WAITING))
		next_event(w);
	missing(w, psn, 1, 0, false);
	assert_int_equal(packets_in(a, SENT_IN_FLIGHT), 5);
	assert_int_equal(runs_of(a), 2);
}

/* MISSING overtakes responses: those of a READ that was sent before may still come. */
static void a_missing_tells_nothing_of_responses(void **state)
{
	struct world *w = *state;
	uint32_t psn;

	prepare(w);
	psn = lose_responses(w, 4);
	pass(w, RTT);
	respond(w, psn, 0, 4);
	psn = lose_write(w, 6);
	pass(w, RTT);
	missing(w, psn, 1, 5, false);
	assert_int_equal(packets_in(&w->n[0], SENT_HELD), 5);
	pass(w, RTT / 2);
	assert_int_equal(again(w), 1);
}

/* A peer answers partial requests before new ones: their responses say nothing of a WRITE that was sent before them. */
static void a_response_to_a_partial_request_tells_of_no_other(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];
	uint32_t psn;

	prepare(w);
	psn = lose_responses(w, 8);
	pass(w, RTT);
	respond(w, psn, 0, 8);
	lose_write(w, 4);
	respond(w, psn, 5, 8);
	assert_int_equal(again(w), 1);
	pass(w, RTT);
	respond(w, psn, 1, 8);
	respond(w, psn, 2, 8);
	assert_int_equal(rc_of(qp_of(a))->req.oldest_unacked_psn, psn_add(psn, 3));
	assert_false(sent_find(&rc_of(qp_of(a))->req.sent, psn_add(psn, 8))->retransmitted);
}

/* All of its PSNs have to be outstanding. */
static void a_missing_of_what_was_not_sent_is_ignored(void **state)
{
	struct world *w = *state;
	uint32_t psn;

	prepare(w);
	psn = lose_write(w, 5);
	missing(w, psn, 1, 5, false);
	assert_int_equal(packets_in(&w->n[0], SENT_HELD), 0);
	missing(w, psn, 1, 4, false);
	assert_int_equal(packets_in(&w->n[0], SENT_HELD), 4);
}

static void near(double value, double expected)
{
	assert_true(value > expected - 100 && value < expected + 100);
}

/* As RFC 9002 reckons. */
static void the_estimate_is_as_reckoned(void **state)
{
	static const struct { const char *delay; double ns; } sample[] = {
		{ "delay=1ms,dir=out", 1e6 }, { "delay=2ms,dir=out", 2e6 }, { "delay=2ms,dir=out", 2e6 },
		{ "delay=3ms,dir=out", 3e6 }, { "delay=500us,dir=out", 5e5 }, { "delay=1ms,dir=out", 1e6 },
	};
	struct world *w = *state;
	double rtt = 0, var = 0, least = 1e9;

	for (size_t i = 0; i < sizeof(sample) / sizeof(sample[0]); i++) {
		double ns = sample[i].ns, off = ns > rtt ? ns - rtt : rtt - ns;

		take_sample(w, sample[i].delay);
		var = i ? var + (off - var) / 4 : ns / 2;
		rtt = i ? rtt + (ns - rtt) / 8 : ns;
		least = ns < least ? ns : least;
		near((double)loss_of(&w->n[0])->smoothed_rtt, rtt);
		near((double)loss_of(&w->n[0])->rttvar, var);
		near((double)loss_of(&w->n[0])->min_rtt, least);
	}
	assert_int_equal(again(w), 0);
}

/* The time since the response before it measures a probe, not the peer. */
static void a_response_that_was_lost_is_no_sample(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];
	uint32_t psn;
	uint64_t rtt;

	prepare(w);
	psn = lose_responses(w, 4);
	pass(w, RTT);
	respond(w, psn, 0, 4);
	rtt = loss_of(a)->smoothed_rtt;
	while (!loss_of(a)->probes)
		next_event(w);
	pass(w, RTT);
	assert_int_equal(again(w), 1);
	respond(w, psn, 1, 4);
	assert_int_equal(rc_of(qp_of(a))->req.oldest_unacked_psn, psn_add(psn, 2));
	assert_int_equal(loss_of(a)->smoothed_rtt, rtt);
}

/* Two READs are refused before any round trip was measured, and go again: how their responses follow says nothing. */
static void the_first_sample_is_not_between_responses(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];
	uint32_t psn = lose_responses(w, 1);

	post_read(a, &w->n[1], 1);
	settle(w);
	pass(w, RTT);
	ack(w, psn, AETH_NAK_SEQ);
	assert_int_equal(again(w), 2);
	pass(w, 2 * RTT);
	respond(w, psn, 0, 1);
	pass(w, 5 * US);
	respond(w, psn_add(psn, 1), 0, 1);
	assert_int_equal(rc_of(qp_of(a))->req.oldest_unacked_psn, psn_add(psn, 2));
	assert_int_equal(loss_of(a)->smoothed_rtt, 0);
}

/* READs alone, so that each response comes after another: they shorten an estimate that is too long. */
static void responses_shorten_the_estimate(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	prepare(w);
	IMPAIR(b, "delay=1ms,dir=out");
	for (int i = 0; i < 4; i++) {
		post_read(a, b, 1);
		settle(w);
		pass(w, RTT / 5);
	}
	loss_of(a)->smoothed_rtt = 20 * RTT;
	for (int i = 0; i < 64; i++) {
		await_success(w, a);
		post_read(a, b, 1);
	}
	assert_in_range(loss_of(a)->smoothed_rtt, RTT, 2 * RTT);
	assert_int_equal(again(w), 0);
}

/* The last packet of a READ comes 5 ms after its request: that measures how long the READ is. */
static void a_long_read_does_not_lengthen_the_estimate(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	prepare(w);
	IMPAIR(b, "rate=100M,dir=out", "delay=1ms,dir=out");
	post_read(a, b, 64);
	await_success(w, a);
	assert_in_range(loss_of(a)->smoothed_rtt, RTT, 2 * RTT);
}

/* A longer one counts when the shortest is old, or after a retry. */
static void the_shortest_round_trip_is_forgotten(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];

	pass(w, 20000 * MS);
	prepare(w);
	take_sample(w, "delay=2ms,dir=out");
	near((double)loss_of(a)->min_rtt, 1e6);
	pass(w, 10001 * MS);
	take_sample(w, "delay=2ms,dir=out");
	near((double)loss_of(a)->min_rtt, 2e6);
	take_sample(w, "delay=2500us,dir=out");
	near((double)loss_of(a)->min_rtt, 2e6);
	lose_write(w, 1);
	while (!a->dev->stats.ack_timeouts)
		next_event(w);
	stop_impairing(a);
	await_success(w, a);
	take_sample(w, "delay=2500us,dir=out");
	near((double)loss_of(a)->min_rtt, 2.5e6);
}

/* One packet of two has arrived after a round trip, and there were @n signs of reordering: when is the other lost? */
static void lost_after(void **state, uint8_t n, uint64_t ns)
{
	struct world *w = *state;
	uint32_t psn;

	prepare(w);
	loss_of(&w->n[0])->reo_wnd_mult = n;
	loss_of(&w->n[0])->reo_wnd_persist = 16;
	psn = lose_write(w, 2);
	pass(w, RTT);
	missing(w, psn, 1, 1, false);
	pass(w, ns - RTT - 50 * US);
	assert_int_equal(again(w), 0);
	pass(w, 100 * US);
	assert_int_equal(again(w), 1);
}

static void lost_after_a_round_trip_and_a_quarter(void **state)
{
	lost_after(state, 0, RTT + RTT / 4);
}

static void the_reordering_window_grows(void **state)
{
	lost_after(state, 3, RTT + 3 * RTT / 4);
}

static void the_reordering_window_is_a_round_trip_at_most(void **state)
{
	lost_after(state, 20, 2 * RTT);
}

static void what_comes_twice_was_late(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];
	uint32_t psn;

	prepare(w);
	psn = lose_responses(w, 4);
	respond(w, psn, 2, 4);
	assert_int_equal(loss_of(a)->reo_wnd_mult, 0);
	respond(w, psn, 2, 4);
	assert_int_equal(loss_of(a)->reo_wnd_mult, 1);
	/* One that has had its turn. */
	loss_of(a)->reo_wnd_mult = 0;
	respond(w, psn, 0, 4);
	assert_int_equal(loss_of(a)->reo_wnd_mult, 0);
	respond(w, psn, 0, 4);
	assert_int_equal(loss_of(a)->reo_wnd_mult, 1);
	/* The peer says so. */
	loss_of(a)->reo_wnd_mult = 0;
	missing(w, rc_of(qp_of(a))->req.oldest_unacked_psn, 0, 0, false);
	assert_int_equal(loss_of(a)->reo_wnd_mult, 0);
	missing(w, rc_of(qp_of(a))->req.oldest_unacked_psn, 0, 0, true);
	assert_int_equal(loss_of(a)->reo_wnd_mult, 1);
}

/* The response was late, and the probe that it made the requester send has its answer. */
static void the_answer_to_a_probe_is_no_sign_of_reordering(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];
	uint32_t psn;

	prepare(w);
	psn = lose_responses(w, 4);
	pass(w, RTT);
	respond(w, psn, 0, 4);
	while (!loss_of(a)->probes)
		next_event(w);
	settle(w);
	for (int i = 0; i < 2; i++)
		respond(w, psn, 1, 4);
	assert_int_equal(loss_of(a)->reo_wnd_mult, 0);
}

/* With the sixteenth recovery without another sign. */
static void reordering_is_forgotten(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];

	prepare(w);
	missing(w, rc_of(qp_of(a))->req.oldest_unacked_psn, 0, 0, true);
	for (int i = 0; i < 16; i++) {
		uint32_t psn = lose_write(w, 2);

		assert_int_equal(loss_of(a)->reo_wnd_mult, 1);
		pass(w, RTT);
		missing(w, psn, 1, 1, false);
		pass(w, RTT / 2);
		assert_int_equal(again(w), i + 1);
		pass(w, RTT);
		ack(w, psn + 1, AETH_ACK);
		await_success(w, a);
	}
	assert_int_equal(loss_of(a)->reo_wnd_mult, 0);
}

/* Of three messages that were sent one after the other. */
/* The end of the message, which asks for an ACK, has arrived. The peer acknowledges the packets that were missing. */
static void the_last_of_the_lost_packets_asks_for_an_ack(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];
	uint32_t psn;

	prepare(w);
	psn = lose_write(w, 6);
	pass(w, RTT);
	stop_impairing(a);
	missing(w, psn, 3, 3, false);
	assert_int_equal(again(w), 3);
	assert_int_equal(rc_of(qp_of(a))->req.oldest_unacked_psn, psn_add(psn, 3));
}

static void a_nak_loses_all_behind_its_packet(void **state)
{
	struct world *w = *state;
	uint32_t psn;

	prepare(w);
	psn = lose_write(w, 1);
	for (int i = 0; i < 2; i++) {
		pass(w, 10 * US);
		lose_write(w, 1);
	}
	assert_int_equal(runs_of(&w->n[0]), 3);
	pass(w, RTT);
	ack(w, psn, AETH_NAK_SEQ);
	assert_int_equal(again(w), 3);
}

static void a_copy_of_a_nak_is_ignored(void **state)
{
	struct world *w = *state;
	uint32_t psn;

	prepare(w);
	psn = lose_write(w, 3);
	pass(w, RTT);
	ack(w, psn, AETH_NAK_SEQ);
	assert_int_equal(again(w), 3);
	pass(w, RTT);
	ack(w, psn, AETH_NAK_SEQ);
	assert_int_equal(again(w), 3);
	/* After progress it is none, as when the PSNs have gone round. */
	ack(w, psn + 2, AETH_ACK);
	await_success(w, &w->n[0]);
	psn = lose_write(w, 1);
	loss_of(&w->n[0])->nak_psn = psn;
	pass(w, RTT);
	ack(w, psn, AETH_NAK_SEQ);
	assert_int_equal(again(w), 4);
}

/* It comes just after the retransmission, so the peer speaks of the transmission before. */
static void a_nak_of_an_earlier_transmission_is_ignored(void **state)
{
	struct world *w = *state;
	uint32_t psn;

	prepare(w);
	psn = lose_write(w, 3);
	pass(w, RTT);
	ack(w, psn, AETH_NAK_SEQ);
	pass(w, RTT / 10);
	ack(w, psn + 1, AETH_NAK_SEQ);
	assert_int_equal(again(w), 3);
	pass(w, RTT / 2);
	ack(w, psn + 1, AETH_NAK_SEQ);
	assert_int_equal(again(w), 5);
}

/* The path was slow when it was measured: an answer to the retransmission comes before it could. */
static void a_nak_after_many_accepted_packets_is_new(void **state)
{
	struct world *w = *state;
	uint32_t psn;

	prepare(w);
	psn = lose_write(w, 8);
	pass(w, RTT);
	ack(w, psn, AETH_NAK_SEQ);
	assert_int_equal(again(w), 8);
	pass(w, RTT / 4);
	/* Three may have been late only. */
	ack(w, psn + 3, AETH_NAK_SEQ);
	assert_int_equal(again(w), 8);
	ack(w, psn + 7, AETH_NAK_SEQ);
	assert_int_equal(again(w), 9);
	near((double)loss_of(&w->n[0])->min_rtt, RTT / 4);
}

/* More was to come of the second message, but could not be read. It fails when the first is acknowledged. */
static void what_has_failed_is_not_sent_again(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];
	uint32_t psn;

	prepare(w);
	psn = lose_write(w, 1);
	lose_write(w, 2);
	sq_wqe(qp_of(a), qp_of(a)->sq.una + 1)->status = SKUA_CQE_LOC_PROT_ERR;
	pass(w, RTT);
	ack(w, psn, AETH_NAK_SEQ);
	pass(w, RTT / 2);
	assert_int_equal(again(w), 1);
	ack(w, psn, AETH_ACK);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_LOC_PROT_ERR);
}

/* Of a READ whose responses were lost, all but the first. */
static void a_probe_asks_for_one_response(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint64_t before;

	prepare(w);
	respond(w, lose_responses(w, 4), 0, 4);
	before = b->dev->stats.rdma_tx_packets;
	while (!loss_of(a)->probes)
		next_event(w);
	settle(w);
	assert_int_equal(again(w), 1);
	assert_int_equal(b->dev->stats.rdma_tx_packets - before, 1);
}

/*
 * The peer has only been slow to send a second response. The next one it was asked for alone: an only response, or the
 * last one of a repetition, as rdma_rxe sends it.
 */
static void answer_a_probe(struct world *w, bool as_rxe)
{
	struct node *a = &w->n[0];
	uint32_t psn;

	prepare(w);
	psn = lose_responses(w, 4);
	pass(w, RTT);
	respond(w, psn, 0, 4);
	lose_write(w, 1);
	while (!again(w))
		next_event(w);
	pass(w, RTT);
	respond(w, psn, 1, 4);
	assert_int_equal(rc_of(qp_of(a))->req.oldest_unacked_psn, psn_add(psn, 2));
	assert_int_equal(again(w), 1);
	while (again(w) == 1)
		next_event(w);
	pass(w, RTT);
	respond(w, psn_add(psn, 2 - as_rxe), as_rxe, 1 + as_rxe);
	assert_int_equal(rc_of(qp_of(a))->req.oldest_unacked_psn, psn_add(psn, 3));
	/* The last response and the WRITE. */
	assert_int_equal(again(w), 4);
}

static void an_only_response_answers_a_probe(void **state)
{
	answer_a_probe(*state, false);
}

static void a_last_response_answers_a_probe(void **state)
{
	answer_a_probe(*state, true);
}

/* The line takes the first packet, and has no room for another in the next tenth of a second. */
static void a_probe_that_waits_for_the_line_is_one(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];

	prepare(w);
	IMPAIR(a, "rate=8K,dir=out");
	post_write(a, &w->n[1], 8);
	settle(w);
	for (int i = 0; i < 50; i++)
		pass(w, MS);
	assert_true(rc_of(qp_of(a))->req.probe_due);
	assert_int_equal(loss_of(a)->pto_count, 1);
}

/* The packet that asks for an answer has to wait longer than a PTO for its turn. */
static void who_waits_for_the_line_needs_no_probe(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];

	prepare(w);
	IMPAIR(a, "rate=2M,dir=out");
	post_write(a, &w->n[1], MTU + 8);
	await_success(w, a);
	assert_int_equal(loss_of(a)->probes, 0);
	assert_int_equal(again(w), 0);
}

/* The same of packets that were lost, and are sent again as the QP's rate allows. */
static void who_waits_for_its_rate_needs_no_probe(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];
	uint32_t psn;

	prepare(w);
	psn = lose_write(w, 4);
	pass(w, RTT);
	assert_true(pacer_congestion(qp_of(a), 1000000));
	/* It has sent what takes 200 ms at that rate. */
	pacer_sent(qp_of(a), 25000);
	ack(w, psn, AETH_NAK_SEQ);
	assert_int_equal(packets_in(a, SENT_LOST), 4);
	for (int i = 0; i < 19; i++)
		pass(w, 10 * MS);
	assert_int_equal(loss_of(a)->probes, 0);
	assert_int_equal(again(w), 0);
	pass(w, 11 * MS);
	assert_true(again(w) > 0);
}

/* Far ahead of the oldest, which is missing, there is no place for them. */
static void no_more_responses_are_asked_for_than_can_be_held(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];
	uint32_t psn;

	prepare(w);
	rc_of(qp_of(a))->req.congestion.window = 4096;
	psn = lose_responses(w, 600);
	pass(w, RTT);
	respond(w, psn, 1, 600);
	respond(w, psn, 599, 600);
	assert_int_equal(packets_in(a, SENT_HELD), 1);
	assert_true(packets_in(a, SENT_LOST) > 512);
	assert_int_equal(again(w), 1);
}

/* Four responses are missing, and others have come behind them. */
static void ask_for_gaps(void **state, bool agreed, uint64_t parts)
{
	struct world *w = *state;
	uint32_t psn;

	if (agreed)
		prepare(w);
	else
		take_sample(w, "delay=1ms,dir=out");
	psn = lose_responses(w, 12);
	pass(w, RTT);
	for (uint32_t i = 1; i < 10; i += 2)
		respond(w, psn, i, 12);
	assert_int_equal(again(w), parts);
}

/* One response is missing. So many come behind it that most are held, and there is no place for the others. */
static void what_was_dropped_is_asked_for_together(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];
	uint32_t psn;

	take_sample(w, "delay=1ms,dir=out");
	rc_of(qp_of(a))->req.congestion.window = 4096;
	psn = lose_responses(w, 600);
	pass(w, RTT);
	for (uint32_t i = 1; i < 600; i++)
		respond(w, psn, i, 600);
	assert_int_equal(packets_in(a, SENT_HELD), 512);
	pass(w, RTT);
	assert_true(packets_in(a, SENT_LOST) > 64);
	assert_in_range(runs_of(a), 3, 5);
}

static void gaps_are_asked_for_together(void **state)
{
	ask_for_gaps(state, true, 4);
}

static void a_peer_without_selective_repeat_is_asked_for_one_gap(void **state)
{
	ask_for_gaps(state, false, 1);
}

/*
 * There are many gaps, and only the oldest is asked for. To look at them takes all that is left of the turn; the WRITE
 * for which there is room again goes in the next one.
 */
static void a_look_at_many_gaps_ends_the_turn_alone(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];
	struct roce_req *req = &rc_of(qp_of(a))->req;
	uint32_t psn;

	take_sample(w, "delay=1ms,dir=out");
	psn = lose_responses(w, 40);
	pass(w, RTT);
	for (uint32_t i = 1; i < 40; i += 2)
		respond(w, psn, i, 40);
	assert_int_equal(again(w), 1);
	assert_true(packets_in(a, SENT_LOST) > 0);
	req->congestion.window = 0;
	post_write(a, &w->n[1], 8);
	settle(w);
	assert_int_equal(req->next_psn, psn_add(psn, 40));
	req->congestion.window = 128;
	ring(a, SKUA_DB_SQ, a->qpn, a->sq_pi);
	a->engine->turn = 100;
	assert_false(qp_run(qp_of(a), &a->engine->turn));
	assert_int_equal(req->next_psn, psn_add(psn, 40));
	settle(w);
	assert_int_equal(req->next_psn, psn_add(psn, 41));
}

/*
 * The ACK of a SEND was lost, and so were the first @missing responses behind it. Those that have come tell that the
 * peer has accepted the SEND, but it completes later. The gap does not wait for it.
 */
static void lose_behind_a_send(struct world *w, uint32_t missing)
{
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t psn;

	take_sample(w, "delay=1ms,dir=out");
	rc_of(qp_of(a))->req.congestion.window = 4096;
	IMPAIR(b, "drop=100%,dir=out");
	post_recv(b, b->buf, 8);
	post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 8, 0, 0, 0);
	psn = lose_responses(w, 600) + 1;
	pass(w, RTT);
	for (uint32_t i = missing; i < missing + 5; i++)
		respond(w, psn, i, 600);
	assert_int_equal(again(w), 1);
	assert_int_equal(b->dev->stats.duplicates, 1);
}

static void a_gap_behind_a_send_is_asked_for(void **state)
{
	lose_behind_a_send(*state, 1);
}

/* More than can be held: the oldest response is placed when it comes. */
static void a_long_gap_behind_a_send_is_asked_for(void **state)
{
	lose_behind_a_send(*state, 590);
}

/* Not at the first PTO, but at the second. */
static void reports_are_forgotten_at_the_second_pto(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];
	uint32_t psn;

	prepare(w);
	psn = lose_write(w, 3);
	pass(w, RTT);
	missing(w, psn, 1, 2, false);
	while (loss_of(a)->pto_count < 1)
		next_event(w);
	assert_int_equal(packets_in(a, SENT_HELD), 2);
	while (loss_of(a)->pto_count < 2)
		next_event(w);
	assert_int_equal(packets_in(a, SENT_HELD), 0);
}

/* The first of many responses is lost, and the others come at long intervals: the peer is at work. */
static void early_responses_are_no_retry(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];
	uint32_t psn;

	take_sample(w, "delay=1ms,dir=out");
	psn = lose_responses(w, 8);
	for (uint32_t i = 1; i < 8; i++) {
		pass(w, TIMEOUT / 2);
		respond(w, psn, i, 8);
	}
	assert_int_equal(a->dev->stats.ack_timeouts, 0);
	assert_int_equal(packets_in(a, SENT_HELD), 7);
	/* One that is held already tells nothing. */
	for (uint32_t i = 1; i < 4; i++) {
		pass(w, TIMEOUT / 2);
		respond(w, psn, i, 8);
	}
	assert_int_equal(a->dev->stats.ack_timeouts, 1);
}

/* Each of three messages needs the only retry that the QP has. */
static void progress_ends_the_count_of_retries(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	prepare(w);
	qp_of(a)->attr.retry_cnt = 1;
	for (unsigned int i = 1; i <= 3; i++) {
		IMPAIR(a, "drop=100%,dir=out");
		post_write(a, b, 8);
		settle(w);
		while (a->dev->stats.ack_timeouts < i)
			next_event(w);
		stop_impairing(a);
		await_success(w, a);
	}
}

/* The line takes one packet in half a second: the retries after the first could send nothing. */
static void a_retry_counts_if_anything_was_sent(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];

	prepare(w);
	IMPAIR(a, "rate=1K,dir=out");
	post_write(a, &w->n[1], 8);
	settle(w);
	for (int i = 0; i < 400; i++)
		pass(w, MS);
	assert_int_equal(a->dev->stats.ack_timeouts, 1);
	assert_int_equal(loss_of(a)->retries, 1);
}

/* It has told that it holds all, after all had been lost to a retry and before any of it went again. */
static void a_peer_that_holds_all_is_asked(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];
	uint64_t before;
	uint32_t psn;

	prepare(w);
	take_sample(w, "delay=60ms,dir=out");
	before = again(w);
	psn = lose_write(w, 3);
	engine_clock_advance(w->engines[0], TIMEOUT);
	assert_true(engine_step(w->engines[0]));
	assert_int_equal(a->dev->stats.ack_timeouts, 1);
	assert_int_equal(packets_in(a, SENT_LOST), 3);
	missing(w, psn + 3, 1, 0, true);
	assert_int_equal(packets_in(a, SENT_HELD), 3);
	assert_int_equal(again(w), before);
	pass(w, TIMEOUT);
	assert_int_equal(again(w), before + 1);
	assert_int_equal(loss_of(a)->retries, 1);
}

/* The device stands still in the middle of a message, before a packet that asks for an answer has had its turn. */
static void who_waits_for_its_turn_needs_no_retry(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];
	struct engine *engine = w->engines[0];

	prepare(w);
	rc_of(qp_of(a))->req.congestion.window = 4096;
	post_write(a, &w->n[1], 300 * MTU);
	engine_step(engine);
	assert_true(packets_in(a, SENT_IN_FLIGHT) > 0 && packets_in(a, SENT_IN_FLIGHT) < 300);
	engine_clock_advance(engine, TIMEOUT);
	timers_run(&engine->timers, engine->now, &(int32_t){ TURN_COST });
	assert_int_equal(a->dev->stats.ack_timeouts, 0);
	assert_false(rc_of(qp_of(a))->req.probe_due);
	await_success(w, a);
	assert_int_equal(again(w), 0);
}

/* The path takes seven times as long as the shortest round trip when a packet is lost; or six times. */
static void a_long_queue_with_loss_halves_the_window(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];
	struct congestion *c = &rc_of(qp_of(a))->req.congestion;

	prepare(w);
	for (int i = 0; i < 2; i++) {
		uint32_t psn = lose_write(w, 5);

		loss_of(a)->path_rtt = i ? 7 * RTT : 6 * RTT;
		pass(w, RTT);
		missing(w, psn, 1, 4, false);
		assert_int_equal(packets_in(a, SENT_HELD), 4);
		pass(w, RTT);
		assert_int_equal(again(w), i + 1);
		assert_int_equal(c->window, i ? 64 : 128);
		if (!i) {
			ack(w, psn + 4, AETH_ACK);
			await_success(w, a);
		}
	}
	/* They were late rather than lost. */
	missing(w, rc_of(qp_of(a))->req.oldest_unacked_psn, 1, 4, true);
	assert_int_equal(c->window, 128);
	missing(w, rc_of(qp_of(a))->req.oldest_unacked_psn, 1, 4, true);
	assert_int_equal(c->window, 128);
}

/* The path is slow, or only what the NAK answers was late; a queue delays both. */
static void a_nak_behind_a_long_queue_halves_the_window(void **state)
{
	static const uint32_t paths[] = { 7, 1, 7 }, naks[] = { 1, 8, 8 };
	struct world *w = *state;
	struct node *a = &w->n[0];
	struct congestion *c = &rc_of(qp_of(a))->req.congestion;

	prepare(w);
	for (int i = 0; i < 3; i++) {
		uint32_t psn = lose_write(w, 5);

		loss_of(a)->rttvar = 10 * MS;		/* so that no probe goes */
		loss_of(a)->path_rtt = paths[i] * RTT;
		pass(w, naks[i] * RTT);
		ack(w, psn, AETH_NAK_SEQ);
		assert_int_equal(again(w), 5 * (i + 1));
		assert_int_equal(c->window, i < 2 ? 128 : 64);
		ack(w, psn + 4, AETH_ACK);
		await_success(w, a);
	}
}

/* More than 4 ms longer than the shortest, and so is that of what was sent afterwards. */
static void a_long_round_trip_halves_the_window(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];
	struct congestion *c = &rc_of(qp_of(a))->req.congestion;

	prepare(w);
	loss_of(a)->rttvar = 10 * MS;		/* so that no probe goes */
	for (int i = 0; i < 2; i++)
		take_sample(w, "delay=4900us,dir=out");
	for (int i = 0; i < 2; i++) {
		assert_int_equal(c->window, 128);
		take_sample(w, "delay=5100us,dir=out");
	}
	assert_int_equal(c->window, 64);
	assert_int_equal(again(w), 0);
}

/* All that was on its way is late when the peer stands still. What is sent afterwards is not. */
static void a_pause_of_the_peer_is_no_queue(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];
	struct congestion *c = &rc_of(qp_of(a))->req.congestion;

	prepare(w);
	loss_of(a)->rttvar = 10 * MS;
	for (int i = 0; i < 3; i++) {
		uint32_t psn = lose_write(w, 1);

		lose_write(w, 1);
		pass(w, 6 * RTT);
		ack(w, psn, AETH_ACK);
		ack(w, psn + 1, AETH_ACK);
		lose_write(w, 1);
		pass(w, RTT);
		ack(w, psn + 2, AETH_ACK);
		assert_int_equal(c->window, 128);
	}
	assert_int_equal(again(w), 0);
}

/* The answer to the try comes so soon that it tells nothing of others; they go because they were lost before. */
static void what_an_rnr_nak_drops_goes_after_progress(void **state)
{
	struct world *w = *state;
	uint32_t psn;

	prepare(w);
	psn = lose_write(w, 3);
	pass(w, RTT);
	ack(w, psn, AETH_RNR | 1);
	assert_int_equal(packets_in(&w->n[0], SENT_LOST), 3);
	pass(w, 20 * US);
	assert_int_equal(again(w), 1);
	pass(w, RTT / 10);
	ack(w, psn, AETH_ACK);
	assert_int_equal(again(w), 3);
}

/* An answer or a timer has to come first: until then the QP does not look at its SQ, whatever is published there. */
static void who_waits_does_not_look_at_its_sq(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];

	for (int rate = 0; rate < 2; rate++) {
		uint32_t psn;

		prepare(w);
		psn = lose_write(w, 3);
		pass(w, RTT);
		if (rate) {
			assert_true(pacer_congestion(qp_of(a), 1000000));
			pacer_sent(qp_of(a), 25000);
		}
		ack(w, psn, rate ? AETH_NAK_SEQ : AETH_RNR | 20);
		assert_int_equal(packets_in(a, SENT_LOST), 3);
		post_write(a, &w->n[1], 8);
		settle(w);
		assert_false(qp_of(a)->active);
		assert_int_equal(packets_in(a, SENT_LOST), 3);
		stop_impairing(a);
		for (int i = 0; i < 2; i++)
			await_success(w, a);
	}
}

/* rnr_retry of them are borne by each packet. */
static void rnr_naks_are_counted_from_the_last_progress_on(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];
	uint32_t psn;

	prepare(w);
	qp_of(a)->attr.rnr_retry = 1;
	psn = lose_write(w, 3);
	for (uint32_t i = 0; i < 3; i++) {
		pass(w, RTT);
		ack(w, psn + i, AETH_RNR | 1);
		assert_int_equal(qp_state(w, a, a->qpn), SKUA_QPS_RTS);
	}
	pass(w, RTT);
	ack(w, psn + 2, AETH_RNR | 1);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_RNR_RETRY_EXC_ERR);
}

/* What comes while the requester waits is a copy of the RNR NAK, or answers an earlier transmission. */
static void a_copy_of_an_rnr_nak_does_not_count(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];
	uint32_t psn;

	prepare(w);
	qp_of(a)->attr.rnr_retry = 1;
	psn = lose_write(w, 1);
	pass(w, RTT);
	ack(w, psn, AETH_RNR | 20);	/* 10.24 ms */
	pass(w, 5000 * US);
	ack(w, psn, AETH_RNR | 20);
	assert_int_equal(qp_state(w, a, a->qpn), SKUA_QPS_RTS);
	pass(w, 5200 * US);
	assert_int_equal(again(w), 0);
	pass(w, 50 * US);
	assert_int_equal(again(w), 1);
	ack(w, psn, AETH_RNR | 20);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_RNR_RETRY_EXC_ERR);
}

/* The packet that is tried is lost again and again; at the retry the one behind it goes, too. */
static void a_retry_ends_the_trying_after_an_rnr_nak(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];
	uint64_t before = 0;
	uint32_t psn;

	prepare(w);
	psn = lose_write(w, 3);
	pass(w, RTT);
	ack(w, psn, AETH_RNR | 1);
	while (!a->dev->stats.ack_timeouts) {
		before = again(w);
		next_event(w);
	}
	settle(w);
	assert_true(again(w) - before >= 2);
}

/* As far as there is room in the window. */
static void a_read_is_asked_for_in_large_parts(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];
	uint64_t before;

	prepare(w);
	before = a->dev->stats.rdma_tx_packets;
	lose_responses(w, 100);
	assert_int_equal(a->dev->stats.rdma_tx_packets - before, 1);
	assert_int_equal(packets_in(a, SENT_IN_FLIGHT), 100);
}

/* It waits for the READs before it; its own parts do not wait for each other. */
static void a_fenced_read_is_asked_for_part_by_part(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint64_t before;

	prepare(w);
	rc_of(qp_of(a))->req.congestion.window = 4096;
	IMPAIR(b, "drop=100%,dir=out");
	before = a->dev->stats.rdma_tx_packets;
	post(a, SKUA_WQE_READ, SKUA_WQE_FENCE | SKUA_WQE_SIGNALED, a->buf, 2000 * MTU, b->buf, b->key, 0);
	settle(w);
	assert_int_equal(a->dev->stats.rdma_tx_packets - before, 2);
	stop_impairing(b);
	await_success(w, a);
}

/* The peer answers the part that was asked for, and goes on in the same train: it is dropped, and the READ goes on. */
static void a_response_that_nobody_asked_for_is_dropped(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	const uint32_t npkts = 1000;
	struct seglist payload = { .n = 1 };
	uint64_t bad;
	struct train t;

	prepare(w);
	fill(b, npkts * MTU, 7);
	t = train_from(a, TRAIN_READ_RESP, lose_responses(w, npkts));
	t.npkts = packets_in(a, SENT_IN_FLIGHT) + 1;
	assert_in_range(t.npkts, 2, npkts - 1);
	payload.bytes = t.npkts * MTU;
	payload.seg[0] = (struct seg){ at(b, b->buf), payload.bytes };
	t.payload = &payload;
	t.first = true;
	bad = STAT(w, a, rdma_rx_bad_packet);
	arrive(w, a, b, t);
	assert_int_equal(STAT(w, a, rdma_rx_bad_packet) - bad, 1);
	stop_impairing(b);
	await_success(w, a);
	assert_memory_equal(at(a, a->buf), at(b, b->buf), npkts * MTU);
}

/* A HELLO of MAC @i. */
static void hello_from(struct node *n, unsigned int i)
{
	struct repeat_frame f = { .type = REPEAT_HELLO, .path = { .vlan = SKUA_VLAN_NONE, .smac = { 2, 9, [5] = (uint8_t)i } } };

	memcpy(f.path.dmac, n->mac, 6);
	repeat_hello(n->dev, &f);
}

/* What @question says of the QP's peer, if its MAC is @i. */
static bool of_peer(struct node *n, unsigned int i, bool (*question)(struct skua_qp *qp))
{
	struct skua_qp *qp = qp_of(n);
	uint8_t own[6];
	bool known;

	memcpy(own, qp->path.dmac, 6);
	memcpy(qp->path.dmac, (uint8_t[6]){ 2, 9, [5] = (uint8_t)i }, 6);
	known = question(qp);
	memcpy(qp->path.dmac, own, 6);
	return known;
}

static bool offers(struct node *n, unsigned int i)
{
	return of_peer(n, i, repeat_offered);
}

/* Of more MACs than the device keeps, that which was not used for the longest time is forgotten. */
static void so_many_peers_are_known(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];

	for (unsigned int i = 0; i < REPEAT_PEERS; i++, pass(w, US))
		hello_from(a, i);
	assert_true(REPEAT_PEERS >= 64);
	for (unsigned int i = 0; i < REPEAT_PEERS; i++, pass(w, US))
		if (i != 7)
			assert_true(offers(a, i));
	hello_from(a, REPEAT_PEERS);
	for (unsigned int i = 0; i <= REPEAT_PEERS; i++)
		if (i != 7)
			assert_true(offers(a, i));
	assert_false(offers(a, 7));
}

/* How long MAC @i is not asked again; 0: it is not known. */
static uint64_t ask_interval(const struct node *n, unsigned int i)
{
	const struct repeat_peer *peers = n->dev->roce->peers;

	for (size_t k = 0; k < sizeof(n->dev->roce->peers) / sizeof(peers[0]); k++)
		if (!memcmp(peers[k].mac, (uint8_t[6]){ 2, 9, [5] = (uint8_t)i }, 6))
			return peers[k].ask_interval;
	return 0;
}

/* As many as can be remembered offer selective repeat. Others, which do not answer, are asked: less and less often. */
static void who_does_not_offer_takes_no_place(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];

	for (unsigned int i = 0; i < REPEAT_PEERS; i++, pass(w, US))
		hello_from(a, i);
	for (unsigned int i = 100; i < 200; i++, pass(w, US))
		assert_false(offers(a, i));
	for (unsigned int i = 100; i < 200; i++, pass(w, US))
		assert_false(of_peer(a, i, repeat_agreed));
	for (int i = 0; i < 100; i++, pass(w, MS))
		for (unsigned int peer = 200; peer < 204; peer++)
			assert_false(of_peer(a, peer, repeat_agreed));
	for (unsigned int i = 0; i < REPEAT_PEERS; i++)
		assert_true(offers(a, i));
	/* After 0, 1, 3, 7, 15, 31 and 63 ms. */
	for (unsigned int peer = 200; peer < 204; peer++)
		assert_int_equal(ask_interval(a, peer), 128 * MS);
	/* One that was asked may answer, and takes the place of another offer. */
	hello_from(a, 200);
	assert_true(offers(a, 200));
	assert_false(offers(a, 0));
	assert_true(offers(a, 1));
}

/* rdma_rxe drops the repeat of any other. */
static void a_read_of_nothing_has_no_rkey(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	for (uint32_t npkts = 0; npkts < 2; npkts++) {
		post_read(a, b, npkts);
		await_success(w, a);
		assert_int_equal(rc_of(qp_of(b))->resp.served[npkts].rkey, npkts ? b->key : 0);
	}
}

static void who_finds_a_loss_asks_for_selective_repeat(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];
	uint32_t psn;

	take_sample(w, "delay=1ms,dir=out");
	psn = lose_write(w, 3);
	pass(w, RTT);
	assert_int_equal(a->dev->roce->peers[0].next_ask_at, 0);
	ack(w, psn, AETH_NAK_SEQ);
	assert_int_not_equal(a->dev->roce->peers[0].next_ask_at, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STEPPED(what_is_retransmitted_together_is_one_run, "REC-1"),
		STEPPED(a_read_whose_request_is_held_waits, "REC-1 REC-2"),
		STEPPED(a_read_that_waited_is_in_flight_when_it_is_accepted, "REC-2"),
		STEPPED(a_request_that_was_held_is_not_lost_by_that, "REC-5 REC-6"),
		STEPPED(a_missing_tells_nothing_of_responses, "REC-2"),
		STEPPED(a_response_to_a_partial_request_tells_of_no_other, "REC-2 REC-18"),
		STEPPED(a_missing_of_what_was_not_sent_is_ignored, "REP-7"),
		STEPPED(the_estimate_is_as_reckoned, "REC-3"),
		STEPPED(a_response_that_was_lost_is_no_sample, "REC-4"),
		STEPPED(the_first_sample_is_not_between_responses, "REC-4"),
		STEPPED(responses_shorten_the_estimate, "REC-4"),
		STEPPED(a_long_read_does_not_lengthen_the_estimate, "REC-4"),
		STEPPED(the_shortest_round_trip_is_forgotten, "REC-3"),
		STEPPED(lost_after_a_round_trip_and_a_quarter, "REC-6 REC-7"),
		STEPPED(the_reordering_window_grows, "REC-7 REC-8"),
		STEPPED(the_reordering_window_is_a_round_trip_at_most, "REC-7"),
		STEPPED(what_comes_twice_was_late, "REC-8 REP-15"),
		STEPPED(the_answer_to_a_probe_is_no_sign_of_reordering, "REC-8"),
		STEPPED(reordering_is_forgotten, "REC-8"),
		STEPPED(a_nak_loses_all_behind_its_packet, "REC-9"),
		STEPPED(a_copy_of_a_nak_is_ignored, "REC-9"),
		STEPPED(a_nak_of_an_earlier_transmission_is_ignored, "REC-9"),
		STEPPED(a_nak_after_many_accepted_packets_is_new, "REC-9"),
		STEPPED(what_has_failed_is_not_sent_again, "REC-11"),
		STEPPED(the_last_of_the_lost_packets_asks_for_an_ack, "REC-11"),
		STEPPED(a_probe_asks_for_one_response, "REC-15"),
		STEPPED(an_only_response_answers_a_probe, "REC-10"),
		STEPPED(a_last_response_answers_a_probe, "REC-10"),
		STEPPED(a_probe_that_waits_for_the_line_is_one, "REC-15"),
		STEPPED(who_waits_for_the_line_needs_no_probe, "REC-16"),
		STEPPED(who_waits_for_its_rate_needs_no_probe, "REC-16"),
		STEPPED(no_more_responses_are_asked_for_than_can_be_held, "REC-17"),
		STEPPED(what_was_dropped_is_asked_for_together, "REC-18"),
		STEPPED(gaps_are_asked_for_together, "REP-9"),
		STEPPED(a_peer_without_selective_repeat_is_asked_for_one_gap, "REP-9"),
		STEPPED(a_look_at_many_gaps_ends_the_turn_alone, "REP-9"),
		STEPPED(responses_without_a_place_do_not_wait, "ODP-9"),
		STEPPED(responses_that_stream_in_are_in_flight, "REC-1 CNG-11"),
		STEPPED(responses_that_stop_are_lost_together, "REC-5 REC-15"),
		STEPPED(a_gap_behind_a_send_is_asked_for, "ROC-18 REP-9"),
		STEPPED(a_long_gap_behind_a_send_is_asked_for, "ROC-18 REP-9 REC-17"),
		STEPPED(reports_are_forgotten_at_the_second_pto, "REP-8"),
		STEPPED(early_responses_are_no_retry, "ROC-13"),
		STEPPED(progress_ends_the_count_of_retries, "ROC-13"),
		STEPPED(a_retry_counts_if_anything_was_sent, "ROC-13"),
		STEPPED(a_peer_that_holds_all_is_asked, "ROC-13"),
		STEPPED(who_waits_for_its_turn_needs_no_retry, "REC-16"),
		STEPPED(a_long_queue_with_loss_halves_the_window, "CNG-13 CNG-15 CNG-17"),
		STEPPED(a_nak_behind_a_long_queue_halves_the_window, "CNG-13"),
		STEPPED(a_long_round_trip_halves_the_window, "CNG-14 CNG-15"),
		STEPPED(a_pause_of_the_peer_is_no_queue, "CNG-14"),
		STEPPED(what_an_rnr_nak_drops_goes_after_progress, "ROC-12"),
		STEPPED(who_waits_does_not_look_at_its_sq, "DBR-6"),
		STEPPED(rnr_naks_are_counted_from_the_last_progress_on, "ROC-12"),
		STEPPED(a_copy_of_an_rnr_nak_does_not_count, "ROC-12"),
		STEPPED(a_retry_ends_the_trying_after_an_rnr_nak, "ROC-12"),
		STEPPED(a_fenced_read_is_asked_for_part_by_part, "ORD-3"),
		STEPPED(a_read_is_asked_for_in_large_parts, "ROC-22"),
		STEPPED(a_response_that_nobody_asked_for_is_dropped, "ERR-3"),
		STEPPED(so_many_peers_are_known, "REP-4"),
		STEPPED(who_does_not_offer_takes_no_place, "REP-3 REP-4"),
		STEPPED(a_read_of_nothing_has_no_rkey, "ERR-4"),
		STEPPED(who_finds_a_loss_asks_for_selective_repeat, "REP-3"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
