// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Loss recovery, packet by packet: a test drops what one end sends, and delivers packets of its own
 * instead, genuine or forged. test_recovery.c has whole messages over links that lose packets.
 */
#include "core/qp.h"
#include "harness/lossy.h"
#include "nic/control.h"
#include "roce/rc.h"
#include "roce/repeat.h"
#include "roce/roce.h"

#define US		1000ull
#define MS		1000000ull
#define MTU		1024u
#define TIMEOUT		(4096ull << 14)		/* that rts_cmd() sets */
#define BAD_KEY		0x5a5a00u

static struct skua_qp *qp_of(struct node *n)
{
	return numtab_get(&n->dev->qps, n->qpn);
}

static void post_write(struct node *a, struct node *b, uint32_t len)
{
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, len, b->buf, b->key, 0);
}

/* The next CQE; it comes without the help of the ACK timeout. */
static void completes(struct world *w, struct node *n)
{
	uint64_t end = engine_now(w->engines[0]) + TIMEOUT / 2;
	struct skua_cqe *cqe = NULL;

	settle(w);
	for (int i = 0; i < 100000 && !(cqe = poll_cq(n)) && engine_now(w->engines[0]) < end; i++)
		next_event(w);
	assert_non_null(cqe);
	assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
}

static void send_hello(struct node *from, struct node *to)
{
	struct repeat_frame hello = { .type = REPEAT_HELLO, .path = { .vlan = SKUA_VLAN_NONE } };
	uint8_t buf[REPEAT_FRAME];
	struct seglist frame = { .n = 1 };

	memcpy(hello.path.smac, from->mac, 6);
	memcpy(hello.path.dmac, to->mac, 6);
	frame.bytes = (uint32_t)repeat_build(buf, &hello);
	frame.seg[0] = (struct seg){ buf, frame.bytes };
	skua_dev_rx_frame(to->dev, &frame);
}

/* The first node has measured a round trip, and both offer selective repeat. */
static void prepare(struct world *w)
{
	post_write(&w->n[0], &w->n[1], 8);
	completes(w, &w->n[0]);
	send_hello(&w->n[0], &w->n[1]);
	send_hello(&w->n[1], &w->n[0]);
}

static void stop_impairing(struct node *n)
{
	assert_true(skua_dev_set_impair(n->dev, NULL));
}

/* Post a WRITE of @npkts packets of which none reaches @b; returns the PSN of the first. */
static uint32_t lose_write(struct world *w, struct node *a, struct node *b, uint32_t npkts)
{
	uint32_t psn = rc_of(qp_of(a))->req.next_psn;

	fill(a, npkts * MTU, psn);
	IMPAIR(a, "drop=100%,dir=out");
	post_write(a, b, npkts * MTU);
	settle(w);
	return psn;
}

/* Packet @i, without AckReq, of a WRITE of @npkts packets from @psn on. */
static struct train write_packet(struct node *to, struct node *from, uint32_t psn, uint32_t i,
				 uint32_t npkts)
{
	static struct seglist payload;
	struct train t = train_from(to, TRAIN_WRITE, psn + i);

	payload = (struct seglist){ 1, MTU, { { (uint8_t *)at(from, from->buf) + i * MTU, MTU } } };
	t.payload = &payload;
	t.msg_len = npkts * MTU;
	t.first = !i;
	t.last = i + 1 == npkts;
	t.ack_req = false;
	return t;
}

/* The packet that fills the gap is the only one that asks for an ACK. */
static void an_ack_covers_packets_that_were_held(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct train t;
	uint32_t psn;

	prepare(w);
	psn = lose_write(w, a, b, 6);
	for (uint32_t i = 1; i < 6; i++)
		arrive(w, b, a, write_packet(b, a, psn, i, 6));
	expect_none(w, a);
	t = write_packet(b, a, psn, 0, 6);
	t.ack_req = true;
	arrive(w, b, a, t);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	assert_memory_equal(at(a, a->buf), at(b, b->buf), 6 * MTU);
}

/* A slow line from the responder delivers its frames one by one. The second time is as the first. */
static void missing_comes_before_the_ack(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t psn, held = 0;
	struct train t;

	prepare(w);
	for (int i = 0; i < 2; i++) {
		psn = lose_write(w, a, b, 6);
		IMPAIR(b, "rate=10M,dir=out");
		t = write_packet(b, a, psn, 0, 6);
		t.ack_req = true;
		arrive_only(b, a, t);
		arrive_only(b, a, write_packet(b, a, psn, 2, 6));
		arrive_only(b, a, write_packet(b, a, psn, 3, 6));
		while (rc_of(qp_of(a))->req.oldest_unacked_psn == psn) {
			held = rc_of(qp_of(a))->req.sent.npkts[SENT_HELD];
			next_event(w);
		}
		/* Packet 0, too: it is before the expected PSN. */
		assert_int_equal(held, 3);
		assert_int_equal(rc_of(qp_of(a))->req.oldest_unacked_psn, psn_add(psn, 1));
		stop_impairing(a);
		stop_impairing(b);
		completes(w, a);
	}
}

static void expect_unharmed(struct world *w, struct node *n)
{
	assert_int_equal(qp_state(w, n, n->qpn), SKUA_QPS_RTS);
	assert_int_equal(STAT(w, n, access_nak_sent) + STAT(w, n, invalid_nak_sent) +
			 STAT(w, n, op_nak_sent) + STAT(w, n, seq_nak_sent), 0);
	assert_int_equal(n->dev->roce->held_bytes, 0);
}

/* Its turn comes, and it is dropped; then the genuine packet comes. */
static void a_forged_request_that_is_held_is_dropped(void **state)
{
	static const uint32_t ahead[] = { 1, 2, 511, 512 };
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	prepare(w);
	for (unsigned int i = 0; i < 8; i++) {
		uint32_t n = ahead[i / 2];
		struct train forged = write_packet(b, a, qp_of(b)->epsn + n, 0, 1);

		if (i % 2)
			forged.rkey ^= BAD_KEY;
		else
			forged.msg_len++;
		arrive(w, b, a, forged);
		assert_true(b->dev->roce->held_bytes > 0);
		fill(a, n * MTU, i);
		post_write(a, b, n * MTU);
		completes(w, a);
		expect_unharmed(w, b);
		post_write(a, b, MTU);
		completes(w, a);
		assert_memory_equal(at(a, a->buf), at(b, b->buf), n * MTU);
	}
}

/* Meanwhile the genuine packet came early, too, and was taken for a duplicate of it. */
static void a_forged_request_delays_the_genuine_one(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct train forged;

	prepare(w);
	forged = write_packet(b, a, qp_of(b)->epsn + 5, 0, 1);
	forged.rkey ^= BAD_KEY;
	arrive(w, b, a, forged);
	/* The fourth packet. */
	IMPAIR(a, "drop=every:4,dir=out");
	fill(a, 7 * MTU, 1);
	post_write(a, b, 7 * MTU);
	completes(w, a);
	assert_memory_equal(at(a, a->buf), at(b, b->buf), 7 * MTU);
	assert_in_range(STAT(w, a, retransmits), 2, 4);
	expect_unharmed(w, b);
}

/* A response that the peer cannot have sent: too short, empty, or of an atomic. */
static struct train forged_response(struct node *to, struct node *from, uint32_t psn, int shape)
{
	static struct seglist payload;
	struct train t = train_from(to, shape == 2 ? TRAIN_ATOMIC_RESP : TRAIN_READ_RESP, psn);

	payload = (struct seglist){ 1, 100, { { at(from, from->buf), 100 } } };
	if (!shape)
		t.payload = &payload;
	return t;
}

/* It is dropped, and asked for at once when the probe has brought the response before it. */
static void a_forged_response_that_is_held_is_dropped(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	prepare(w);
	for (int shape = 0; shape < 3; shape++) {
		uint64_t start = engine_now(w->engines[0]);
		uint32_t psn = rc_of(qp_of(a))->req.next_psn;

		fill(b, 4 * MTU, (uint32_t)shape);
		IMPAIR(b, "drop=100%,dir=out");
		post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, 4 * MTU, b->buf, b->key, 0);
		settle(w);
		arrive(w, a, b, forged_response(a, b, psn + 1, shape));
		assert_true(a->dev->roce->held_bytes > 0);
		stop_impairing(b);
		completes(w, a);
		assert_true(engine_now(w->engines[0]) - start < 3 * MS / 2);
		assert_memory_equal(at(a, a->buf), at(b, b->buf), 4 * MTU);
		expect_unharmed(w, a);
	}
}

/* Genuine: packet @i of @npkts. */
static struct train response(struct node *to, struct node *from, uint32_t psn, uint32_t i, uint32_t npkts)
{
	static struct seglist payload;
	struct train t = train_from(to, TRAIN_READ_RESP, psn + i);

	payload = (struct seglist){ 1, MTU, { { (uint8_t *)at(from, from->buf) + i * MTU, MTU } } };
	t.payload = &payload;
	t.first = !i;
	t.last = i + 1 == npkts;
	return t;
}

/* Post a READ of @npkts packets whose responses are all lost; returns the PSN of the first. */
static uint32_t lose_responses(struct world *w, struct node *a, struct node *b, uint32_t npkts)
{
	uint32_t psn = rc_of(qp_of(a))->req.next_psn;

	fill(b, npkts * MTU, psn);
	IMPAIR(b, "drop=100%,dir=out");
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, npkts * MTU, b->buf, b->key, 0);
	settle(w);
	return psn;
}

/* The genuine one behind it is still held: the peer sends only the oldest, and this one, once more. */
static void a_forged_response_takes_no_other_with_it(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint64_t before;
	uint32_t psn;

	prepare(w);
	psn = lose_responses(w, a, b, 3);
	arrive(w, a, b, forged_response(a, b, psn + 1, 0));
	arrive(w, a, b, response(a, b, psn, 2, 3));
	stop_impairing(b);
	before = STAT(w, b, rdma_tx_packets);
	completes(w, a);
	assert_int_equal(STAT(w, b, rdma_tx_packets) - before, 2);
	assert_memory_equal(at(a, a->buf), at(b, b->buf), 3 * MTU);
}

static unsigned int runs_of(struct node *n)
{
	struct sent_run *run;
	unsigned int runs = 0;

	TAILQ_FOREACH(run, &rc_of(qp_of(n))->req.sent.runs, entry)
		runs++;
	return runs;
}

/* All that is looked at for each packet that arrives. One in 50 is missing. */
static void the_table_grows_with_gaps_and_not_with_packets(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	const uint32_t npkts = 200, gap = 50;

	for (int read = 0; read < 2; read++) {
		uint32_t psn;

		prepare(w);
		rc_of(qp_of(a))->req.congestion.window = 4096;
		psn = read ? lose_responses(w, a, b, npkts) : lose_write(w, a, b, npkts);
		for (uint32_t i = 1; i < npkts; i++) {
			if (i % gap == 0)
				continue;
			if (read)
				arrive(w, a, b, response(a, b, psn, i, npkts));
			else
				arrive(w, b, a, write_packet(b, a, psn, i, npkts));
			assert_in_range(runs_of(a), 1, 2 * (i / gap + 1) + 2);
		}
		assert_true(rc_of(qp_of(a))->req.sent.npkts[SENT_HELD] > npkts / 2);
		stop_impairing(read ? b : a);
		completes(w, a);
		assert_memory_equal(at(a, a->buf), at(b, b->buf), npkts * MTU);
	}
}

/* An ACK just after the probe answers the first transmission; one that comes later may answer the probe. */
static void an_old_ack_after_a_probe_shows_no_loss(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	const uint64_t delay = MS;

	IMPAIR(b, "delay=1ms,dir=out");
	prepare(w);
	stop_impairing(b);
	for (int late = 0; late < 2; late++) {
		uint64_t before = STAT(w, a, retransmits);
		uint32_t psn = lose_write(w, a, b, 8);
		struct train ack = train_from(a, TRAIN_ACK, psn);

		ack.syndrome = AETH_ACK;
		arrive(w, b, a, write_packet(b, a, psn, 0, 8));
		while (STAT(w, a, retransmits) == before)
			pass(w, 10 * US);
		pass(w, late ? delay * 3 / 4 : delay / 4);
		arrive(w, a, b, ack);
		assert_int_equal(STAT(w, a, retransmits) - before, late ? 8 : 1);
		stop_impairing(a);
		completes(w, a);
	}
}

/* For a second after a loss; then the window alone limits the requester. */
static void no_packet_is_sent_beyond_what_can_be_held(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	prepare(w);
	IMPAIR(a, "drop=every:20,dir=out");
	post_write(a, b, 30 * MTU);
	completes(w, a);
	for (int later = 0; later < 2; later++) {
		uint32_t psn;

		rc_of(qp_of(a))->req.congestion.window = 4096;
		psn = lose_write(w, a, b, 1024);
		assert_int_equal(psn_add(rc_of(qp_of(a))->req.next_psn, -psn), later ? 1024 : 512);
		stop_impairing(a);
		completes(w, a);
		pass(w, 1100 * MS);
	}
}

/* A short message asks for its ACK at once. The engine looks at its timers before a packet of the long one has. */
static void after_a_rest_the_timeout_begins_anew(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint64_t before;

	qp_of(a)->attr.retry_cnt = 0;
	IMPAIR(a, "delay=1ms,dir=out");
	prepare(w);
	before = STAT(w, a, retransmits);
	pass(w, 500 * MS);
	post_write(a, b, 8);
	completes(w, a);
	assert_int_equal(STAT(w, a, retransmits), before);
	pass(w, 500 * MS);
	rc_of(qp_of(a))->req.congestion.window = 4096;
	post_write(a, b, 1 << 20);
	for (int i = 0; i < 8; i++) {
		skua_dev_run(a->dev);
		timers_run(&a->engine->timers, engine_now(a->engine), &(int32_t){ TURN_COST });
	}
	completes(w, a);
	assert_int_equal(STAT(w, a, ack_timeouts), 0);
	assert_int_equal(STAT(w, a, retransmits), before);
}

/* The end of a long message asks for an answer, 10 ms after its beginning was sent. */
static void the_timeout_begins_with_the_question(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];
	struct roce_req *req = &rc_of(qp_of(a))->req;

	prepare(w);
	req->congestion.window = 4096;
	post_write(a, &w->n[1], 512 * MTU);
	skua_dev_run(a->dev);
	assert_false(sent_is_empty(&req->sent));
	assert_false(req_is_asked(req));
	engine_clock_advance(a->engine, 10 * MS);
	while (!req_is_asked(req))
		skua_dev_run(a->dev);
	assert_int_equal(req->loss.ack_timeout_start, engine_now(a->engine));
	completes(w, a);
}

/*
 * Less than a second after a loss, 512 packets of a message may be sent, and the window is much larger: one of these
 * packets has to ask for an ACK. @rest: longer than the ACK timeout.
 */
static void send_long_after_a_loss(struct world *w, uint64_t rest)
{
	struct node *a = &w->n[0], *b = &w->n[1];
	uint64_t before;

	qp_of(a)->attr.retry_cnt = 0;
	prepare(w);
	IMPAIR(a, "drop=every:20,dir=out");
	post_write(a, b, 30 * MTU);
	completes(w, a);
	stop_impairing(a);
	before = STAT(w, a, retransmits);
	assert_true(before > 0);
	pass(w, rest);
	rc_of(qp_of(a))->req.congestion.window = 4096;
	rc_of(qp_of(a))->req.loss.probes = 0;
	post_write(a, b, 1 << 20);
	skua_dev_run(a->dev);
	assert_false(sent_is_empty(&rc_of(qp_of(a))->req.sent));
	assert_int_equal(rc_of(qp_of(a))->req.loss.ack_timeout_start, engine_now(a->engine));
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	assert_int_equal(rc_of(qp_of(a))->req.loss.probes, 0);
	assert_int_equal(STAT(w, a, ack_timeouts), 0);
	assert_int_equal(STAT(w, a, retransmits), before);
}

static void a_long_message_after_a_loss_asks_for_acks(void **state)
{
	send_long_after_a_loss(*state, 0);
}

static void a_long_message_after_a_loss_and_a_rest_asks_for_acks(void **state)
{
	send_long_after_a_loss(*state, 200 * MS);
}

static void expect_no_memory(struct world *w)
{
	for (int i = 0; i < 2; i++) {
		const struct skua_qp *qp = qp_of(&w->n[i]);

		assert_true(sent_is_empty(&rc_of(qp)->req.sent));
		assert_null(rc_of(qp)->req.early_responses);
		assert_null(rc_of(qp)->resp.early_requests);
		assert_int_equal(w->n[i].dev->roce->held_bytes, 0);
	}
}

static void nothing_outstanding_needs_no_memory(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	prepare(w);
	/* Held, and then it comes in a train besides. */
	arrive(w, b, a, write_packet(b, a, qp_of(b)->epsn + 3, 0, 1));
	assert_non_null(rc_of(qp_of(b))->resp.early_requests);
	post_write(a, b, 8 * MTU);
	completes(w, a);
	expect_no_memory(w);
	for (int i = 0; i < 2; i++)
		IMPAIR(&w->n[i], "drop=3%,dir=out", "reorder=3%,dir=out", "rate=5G,dir=out", "seed=5");
	for (int i = 0; i < 8; i++) {
		struct node *from = i % 2 ? b : a, *to = i % 2 ? a : b;

		post(from, i & 2 ? SKUA_WQE_READ : SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, from->buf, 256 << 10,
		     to->buf, to->key, 0);
		completes(w, from);
		expect_no_memory(w);
	}
	assert_true(STAT(w, a, retransmits) && STAT(w, b, retransmits));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STEPPED(an_ack_covers_packets_that_were_held, "ROC-21 REP-6"),
		STEPPED(missing_comes_before_the_ack, "REP-14"),
		STEPPED(a_forged_request_that_is_held_is_dropped, "REP-12 SEC-5"),
		STEPPED(a_forged_request_delays_the_genuine_one, "REP-12 SEC-5"),
		STEPPED(a_forged_response_that_is_held_is_dropped, "REC-17 SEC-5"),
		STEPPED(a_forged_response_takes_no_other_with_it, "REC-17 SEC-5"),
		STEPPED(the_table_grows_with_gaps_and_not_with_packets, "REC-1"),
		STEPPED(an_old_ack_after_a_probe_shows_no_loss, "REC-10"),
		STEPPED(no_packet_is_sent_beyond_what_can_be_held, "REC-12"),
		STEPPED(after_a_rest_the_timeout_begins_anew, "ROC-13 REC-14"),
		STEPPED(the_timeout_begins_with_the_question, "ROC-13"),
		STEPPED(a_long_message_after_a_loss_asks_for_acks, "ROC-25 REC-12"),
		STEPPED(a_long_message_after_a_loss_and_a_rest_asks_for_acks, "ROC-13 REC-14 ROC-25"),
		STEPPED(nothing_outstanding_needs_no_memory, "REC-1"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
