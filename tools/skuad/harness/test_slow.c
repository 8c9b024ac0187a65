// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Lines that are slow, or long. Where they lose nothing, nothing is sent twice, nobody is given up, and all get the
 * same of them; where their queues are short, that is learnt.
 */
#include "core/qp.h"
#include "harness/lossy.h"
#include "link/impair.h"
#include "nic/control.h"

#define MS		1000000ull
#define PACKET		1106u		/* bytes of the longest on the wire, about */

static const struct {
	const char *out, *marked;	/* rules */
	uint64_t rate;			/* bits a second */
} lines[] = {
	{ "rate=10M,dir=out", "ecn=100%,over=50us,dir=out", 10000000 },
	{ "rate=100M,dir=out", "ecn=100%,over=50us,dir=out", 100000000 },
	{ "rate=1G,dir=out", "ecn=100%,over=50us,dir=out", 1000000000 },
};

/* So long that each QP can send so many bytes. */
static uint64_t time_for(const struct load *l, size_t line, uint64_t bytes)
{
	return bytes * l->qps * 8 * 1000000000 / lines[line].rate;
}

static void slow_line(struct world *w, size_t line, bool marked)
{
	for (int i = 0; i < 2; i++) {
		if (marked)
			IMPAIR(&w->n[i], lines[line].marked, lines[line].out);
		else
			IMPAIR(&w->n[i], lines[line].out);
	}
}

static uint64_t repeated(struct world *w)
{
	return STAT(w, &w->n[0], retransmits) + STAT(w, &w->n[0], ack_timeouts);
}

/* The QPs of @l one after the other: nobody is more than a message ahead. */
static void expect_even(const struct load *l)
{
	uint64_t least = UINT64_MAX, most = 0;

	for (unsigned int i = 0; i < l->qps; i++) {
		least = l->done[i] < least ? l->done[i] : least;
		most = l->done[i] > most ? l->done[i] : most;
	}
	assert_true(least > 0);
	assert_in_range(most, least, least + 1);
}

static const unsigned int crowds[] = { 1, 8, 32 };
static const uint8_t deadlines[][2] = { { 14, 7 }, { 8, 1 } };

/* Packets that wait for the line are not late, however short the timeout, and take turns. */
static void writes_are_sent_once(void **state)
{
	(void)state;
	for (size_t i = 0; i < 3 * 3 * 2; i++) {
		struct load l = { .qps = crowds[i % 3], .opcode = SKUA_WQE_WRITE, .len = 65536,
				  .timeout = deadlines[i / 3 % 2][0],
				  .retry_cnt = deadlines[i / 3 % 2][1] };
		struct world *w = world_create(false);
		size_t line = i / 6;

		slow_line(w, line, false);
		load_create(w, &l);
		load_run(w, &l, l.qps, time_for(&l, line, 3 * l.len));
		assert_int_equal(repeated(w), 0);
		expect_even(&l);
		world_destroy(w);
	}
}

/* So it is when marks slow the QPs, and the line is not what they wait for. */
static void slowed_writes_are_sent_once(void **state)
{
	(void)state;
	for (size_t line = 0; line < 3; line++) {
		struct load l = { .qps = 8, .opcode = SKUA_WQE_WRITE, .len = 65536,
				  .timeout = 8, .retry_cnt = 1 };
		struct world *w = world_create(false);

		slow_line(w, line, true);
		load_create(w, &l);
		load_run(w, &l, l.qps, time_for(&l, line, 10 * l.len));
		assert_int_equal(repeated(w), 0);
		/* On the first a QP is never slower than the line (CNG-6). */
		assert_true(!line || STAT(w, &w->n[0], cnp_received) > 0);
		world_destroy(w);
	}
}

/* Long messages, in the midst of which nobody is asked for an ACK. */
static void long_writes_are_sent_once(void **state)
{
	(void)state;
	for (size_t i = 0; i < 3 * 2; i++) {
		struct load l = { .qps = 8, .opcode = SKUA_WQE_WRITE, .len = 1 << 20,
				  .timeout = 8, .retry_cnt = 1 };
		struct world *w = world_create(false);

		slow_line(w, i / 2, i % 2);
		load_create(w, &l);
		load_run(w, &l, l.qps, time_for(&l, i / 2, 2 * l.len));
		assert_int_equal(repeated(w), 0);
		assert_true(l.done[0] > 0);
		world_destroy(w);
	}
}

/* Responses wait for a line that the requester does not see: it asks again until it has measured that,
 * and never after. */
static void reads_are_asked_for_again_at_first_only(void **state)
{
	(void)state;
	for (size_t i = 0; i < 3 * 3 * 2; i++) {
		struct load l = { .qps = crowds[i % 3], .opcode = SKUA_WQE_READ, .len = 65536,
				  .timeout = deadlines[i / 3 % 2][0],
				  .retry_cnt = deadlines[i / 3 % 2][1] };
		struct world *w = world_create(false);
		size_t line = i / 6;
		uint64_t first, sent;

		slow_line(w, line, false);
		load_create(w, &l);
		load_run(w, &l, l.qps, time_for(&l, line, 8 * l.len));
		first = STAT(w, &w->n[0], retransmits);
		if (first > 24 * l.qps)
			fail_msg("%zu: %llu by %u QPs", i, (unsigned long long)first, l.qps);
		sent = STAT(w, &w->n[1], rdma_tx_bytes);
		load_run(w, &l, l.qps, time_for(&l, line, 3 * l.len));
		assert_int_equal(STAT(w, &w->n[0], retransmits), first);
		expect_even(&l);
		/* What came again made no response besides. */
		assert_true(sent <= l.qps * 9 * (l.len / 1024) * PACKET);
		world_destroy(w);
	}
}

/* A peer that dies is given up when the timeout says, though it is a short one, and all that was sent
 * waits for a line. */
static void a_dead_peer_is_given_up_in_time(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct load l = { .qps = 1, .opcode = SKUA_WQE_WRITE, .len = 1 << 20, .timeout = 8,
			  .retry_cnt = 2 };
	uint64_t start, took;
	struct skua_cqe *cqe;

	slow_line(w, 1, false);
	load_create(w, &l);
	load_run(w, &l, 1, 200 * MS);
	IMPAIR(b, "drop=100%");
	start = engine_now(w->engines[0]);
	while (!(cqe = poll_cq(a)))
		next_event(w);
	assert_int_equal(cqe->status, SKUA_CQE_RETRY_EXC_ERR);
	took = engine_now(w->engines[0]) - start;
	/* Three timeouts, and until the next message ended. */
	assert_in_range(took, 3 * (4096ull << 13), 3 * (4096ull << 13) + 150 * MS);
}

/*
 * The queue before the line takes 10 ms, and loses what is more: all but the first few packets of a window. That
 * costs the first message an ACK timeout at most, and then the line is used, and not much lost any more.
 */
static void a_short_queue_is_learnt(void **state)
{
	static const char *const rates[] = { "rate=10M,dir=in", "rate=100M,dir=in", "rate=1G,dir=in" };
	/* Percent of the line, of which headers take 6. */
	static const uint64_t least[2][3] = { { 75, 88, 90 }, { 55, 65, 90 } };

	(void)state;
	for (size_t i = 0; i < 3 * 2; i++) {
		struct load l = { .qps = 1, .opcode = SKUA_WQE_WRITE, .len = 65536 };
		struct world *w = world_create(false);
		uint64_t bytes;

		w->n[1].dev->inject.go_back_n = i / 3;
		IMPAIR(&w->n[1], rates[i % 3], "delay=100us,dir=out");
		load_create(w, &l);
		load_run(w, &l, 1, (4096ull << 14) + time_for(&l, i % 3, l.len));
		assert_true(l.done[0] > 0);
		load_run(w, &l, 1, 2000 * MS);
		bytes = l.done[0] * l.len;
		assert_true(i / 3 || skua_dev_get_impair(w->n[1].dev)->overflow * 4 <
				     STAT(w, &w->n[0], rdma_tx_packets));
		if (bytes * 100 < lines[i % 3].rate / 8 * 2 * least[i / 3][i % 3])
			fail_msg("%s: %llu bytes", rates[i % 3], (unsigned long long)bytes);
		world_destroy(w);
	}
}

/* The same where the ACK timeout is long. */
static void a_short_queue_is_learnt_before_the_timeout(void **state)
{
	(void)state;
	for (size_t i = 1; i < 3; i++) {
		struct load l = { .qps = 1, .opcode = SKUA_WQE_WRITE, .len = 1 << 20, .timeout = 18,
				  .retry_cnt = 7 };
		struct world *w = world_create(false);

		IMPAIR(&w->n[1], i == 1 ? "rate=100M,dir=in" : "rate=1G,dir=in", "delay=100us,dir=out");
		load_create(w, &l);
		load_run(w, &l, 1, 2000 * MS);
		assert_true(l.done[0] * l.len * 8 / 2 > lines[i].rate * 88 / 100);
		assert_int_equal(STAT(w, &w->n[0], ack_timeouts), 0);
		world_destroy(w);
	}
}

/* All that was sent at first is lost: the message comes an ACK timeout later at most. */
static void a_lost_first_window_costs_one_timeout(void **state)
{
	(void)state;
	for (size_t i = 0; i < 3 * 2; i++) {
		struct world *w = world_create(false);
		struct node *a = &w->n[0], *b = &w->n[1];
		uint64_t start = engine_now(w->engines[0]), took;
		struct skua_cqe *cqe;
		uint32_t len = i / 3 ? 1 << 20 : 65536;

		slow_line(w, i % 3, false);
		IMPAIR(b, "drop=100%,dir=in");
		post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, len, b->buf, b->key, 0);
		/* So long the line is busy with it. */
		while (engine_now(w->engines[0]) - start < 136000ull * 8 * 1000000000 / lines[i % 3].rate)
			next_event(w);
		assert_true(skua_dev_set_impair(b->dev, NULL));
		start = engine_now(w->engines[0]);
		while (!(cqe = poll_cq(a)))
			next_event(w);
		assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
		took = engine_now(w->engines[0]) - start;
		assert_true(took < (4096ull << 14) + 11 * len / 10 * 8ull * 1000000000 / lines[i % 3].rate);
		world_destroy(w);
	}
}

/* After an ACK timeout a requester sends as little ahead as it ever does: it goes on with all path MTUs. */
static void the_least_window_moves_on(void **state)
{
	(void)state;
	for (uint8_t i = 0; i < 5 * 2; i++) {
		struct world *w = world_create(false);
		struct node *a = &w->n[0], *b = &w->n[1];
		struct skua_cqe *cqe;
		int rounds = 0;

		use_path_mtu(w, 1 + i % 5);
		b->dev->inject.go_back_n = i / 5;
		IMPAIR(b, "drop=100%");
		post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 65536, b->buf, b->key, 0);
		while (!STAT(w, a, ack_timeouts))
			next_event(w);
		assert_true(skua_dev_set_impair(b->dev, NULL));
		while (!(cqe = poll_cq(a))) {
			next_event(w);
			assert_true(++rounds < 10000);
		}
		assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
		/* What was sent again at once was lost, too. */
		assert_in_range(STAT(w, a, ack_timeouts), 1, 2);
		world_destroy(w);
	}
}

/* Who is far away is no queue: what is sent ahead is not made less for it, and nearly nothing sent twice. */
static void a_far_peer_is_used_well(void **state)
{
	static const struct {
		const char *delay;
		uint8_t opcode, timeout;
		uint32_t len;
		uint64_t mbps;		/* what 4 messages in a round trip allow, and the line, less a fifth */
		uint64_t repeats;
	} far[] = {
		{ "delay=2ms,dir=in", SKUA_WQE_WRITE, 14, 65536, 660, 0 },
		{ "delay=2ms,dir=in", SKUA_WQE_READ, 14, 65536, 660, 0 },
		{ "delay=20ms,dir=in", SKUA_WQE_WRITE, 14, 1 << 20, 700, 1 },
		{ "delay=20ms,dir=in", SKUA_WQE_READ, 14, 1 << 20, 700, 2 },
		{ "delay=20ms,dir=in", SKUA_WQE_WRITE, 14, 65536, 80, 1 },
		{ "delay=20ms,dir=in", SKUA_WQE_READ, 14, 65536, 80, 3 },
		{ "delay=100ms,dir=in", SKUA_WQE_WRITE, 18, 1 << 20, 230, 2 },
		{ "delay=100ms,dir=in", SKUA_WQE_READ, 18, 1 << 20, 230, 5 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(far) / sizeof(far[0]); i++) {
		struct load l = { .qps = 1, .opcode = far[i].opcode, .len = far[i].len,
				  .timeout = far[i].timeout, .retry_cnt = 7 };
		struct world *w = world_create(false);
		uint64_t before, mbps;

		IMPAIR(&w->n[0], "rate=1G,dir=out", far[i].delay);
		IMPAIR(&w->n[1], "rate=1G,dir=out");
		load_create(w, &l);
		load_run(w, &l, 1, 1000 * MS);
		before = l.done[0];
		load_run(w, &l, 1, 1000 * MS);
		mbps = (l.done[0] - before) * l.len * 8 / 1000000;
		if (mbps < far[i].mbps || STAT(w, &w->n[0], retransmits) > far[i].repeats)
			fail_msg("%zu: %llu Mb/s, %llu repeated", i, (unsigned long long)mbps,
				 (unsigned long long)STAT(w, &w->n[0], retransmits));
		assert_int_equal(STAT(w, &w->n[0], ack_timeouts), 0);
		world_destroy(w);
	}
}

/*
 * Losses by chance before a peer that takes all again: enough is sent ahead for the time of an answer, and an
 * answer not asked for with every few packets. @answers: that came.
 */
static uint64_t delivered(const char *drop, uint64_t *answers)
{
	struct load l = { .qps = 1, .opcode = SKUA_WQE_WRITE, .len = 65536 };
	struct world *w = world_create(false);
	uint64_t bytes;

	w->n[1].dev->inject.go_back_n = true;
	IMPAIR(&w->n[0], drop, "rate=400M,dir=out", "delay=400us,dir=out", "seed=1");
	IMPAIR(&w->n[1], "delay=400us,dir=out");
	load_create(w, &l);
	load_run(w, &l, 1, 2000 * MS);
	bytes = l.done[0] * l.len;
	*answers = STAT(w, &w->n[0], rdma_rx_packets);
	world_destroy(w);
	return bytes;
}

static void losses_by_chance_leave_the_window(void **state)
{
	uint64_t answers, whole = delivered("drop=0%,dir=out", &answers), bytes;

	(void)state;
	bytes = delivered("drop=1%,dir=out", &answers);
	if (bytes * 100 < whole * 52 || answers > bytes / 1024 / 8)
		fail_msg("%llu of %llu bytes, %llu answers", (unsigned long long)bytes,
			 (unsigned long long)whole, (unsigned long long)answers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "ROC-13 ROC-17 ROC-20 REC-16: writes_are_sent_once", writes_are_sent_once, NULL, NULL, NULL },
		{ "ROC-13 ROC-17 REC-16: slowed_writes_are_sent_once", slowed_writes_are_sent_once, NULL, NULL,
		  NULL },
		{ "ROC-13 ROC-17 REC-16: long_writes_are_sent_once", long_writes_are_sent_once, NULL, NULL,
		  NULL },
		{ "ROC-13 ROC-17 ROC-20 ROC-24 REC-3: reads_are_asked_for_again_at_first_only",
		  reads_are_asked_for_again_at_first_only, NULL, NULL, NULL },
		{ "ROC-19 CNG-13: a_short_queue_is_learnt", a_short_queue_is_learnt, NULL, NULL, NULL },
		{ "ROC-19 CNG-13: a_short_queue_is_learnt_before_the_timeout",
		  a_short_queue_is_learnt_before_the_timeout, NULL, NULL, NULL },
		{ "ROC-17 REP-8: a_lost_first_window_costs_one_timeout", a_lost_first_window_costs_one_timeout,
		  NULL, NULL, NULL },
		{ "ROC-19 ROC-25 CNG-16: the_least_window_moves_on", the_least_window_moves_on, NULL, NULL, NULL },
		{ "ROC-17 ROC-19 CNG-12: a_far_peer_is_used_well", a_far_peer_is_used_well, NULL, NULL, NULL },
		{ "ROC-9 ROC-19 ROC-25 CNG-13: losses_by_chance_leave_the_window",
		  losses_by_chance_leave_the_window, NULL, NULL, NULL },
		STEPPED(a_dead_peer_is_given_up_in_time, "ROC-13"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
