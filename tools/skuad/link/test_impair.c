// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Impairments alone: what they hold, in which order it goes on, and that the work for one frame does not grow with
 * those that are held. Builds with sanitizers count that work (harness/work.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/engine_priv.h"
#include "harness/work.h"
#include "link/impair.h"

#define MS		1000000ull
#define LEN		60u
#define MANY		100000u
#define WORK_A_FRAME	5000u
#define A_TURN		(TURN_COST / (LEN + COPY_COST))	/* frames */

static struct engine *engine;
static struct impair *imp;
static bool full[2];			/* nothing goes on */
static uint32_t went[2], last[2], out_of_order[2];

static bool emit(void *owner, enum impair_dir dir, bool packet, uint8_t *frame, uint32_t len)
{
	uint32_t number;

	(void)owner;
	(void)packet;
	assert_int_equal(len, LEN);
	if (full[dir])
		return false;
	memcpy(&number, frame + 14, sizeof(number));
	out_of_order[dir] += number < last[dir];
	last[dir] = number;
	went[dir]++;
	return true;
}

static int begin(void **state)
{
	(void)state;
	memset(full, 0, sizeof(full));
	memset(went, 0, sizeof(went));
	memset(last, 0, sizeof(last));
	memset(out_of_order, 0, sizeof(out_of_order));
	engine = engine_create(true);
	imp = impair_create(engine, emit, NULL);
	return 0;
}

static int end(void **state)
{
	(void)state;
	impair_destroy(imp);
	engine_destroy(engine);
	return 0;
}

static void set_rules(const char *const *rules)
{
	struct impair_config config = { 0 };
	char err[100];

	for (; *rules; rules++)
		assert_true(impair_parse(&config, *rules, err, sizeof(err)));
	impair_set(imp, &config);
}

#define RULES(...)	set_rules((const char *const[]){ __VA_ARGS__, NULL })

/* Frames @first to @first + @n - 1. */
static void come(enum impair_dir dir, uint32_t first, uint32_t n)
{
	uint8_t frame[LEN] = { 2 };

	for (uint32_t i = first; i < first + n; i++) {
		uint64_t before = work_done();

		memcpy(frame + 14, &i, sizeof(i));
		impair_frame(imp, dir, false, frame, LEN);
		assert_true(work_done() - before < WORK_A_FRAME);
	}
}

static void step(void)
{
	uint64_t before = work_done();
	uint32_t sum = went[0] + went[1];

	timers_run(&engine->timers, engine->now, &(int32_t){ TURN_COST });
	impair_run(imp);
	assert_in_range(went[0] + went[1] - sum, 0, A_TURN + 1);
	assert_true(work_done() - before < (A_TURN + 1) * WORK_A_FRAME);
}

static void pass(uint64_t ns)
{
	engine->now += ns;
	for (uint32_t sum = UINT32_MAX; sum != went[0] + went[1]; ) {
		sum = went[0] + went[1];
		step();
	}
}

/* Each direction waits for itself alone. */
static void a_frame_passes_many_that_wait_longer(void **state)
{
	(void)state;
	RULES("delay=500ms,dir=out", "delay=1ms,dir=in");
	come(IMPAIR_OUT, 0, MANY);
	come(IMPAIR_IN, 0, 100);
	pass(MS);
	assert_int_equal(went[IMPAIR_IN], 100);
	assert_int_equal(went[IMPAIR_OUT], 0);
	pass(500 * MS);
	assert_int_equal(went[IMPAIR_OUT], MANY);
	assert_int_equal(out_of_order[0] + out_of_order[1], 0);
}

static void a_frame_passes_many_that_are_late(void **state)
{
	(void)state;
	RULES("reorder=100%,by=10s,dir=out");
	come(IMPAIR_OUT, 0, MANY);
	RULES("reorder=50%,by=10s,dir=out", "reorder=50%,by=1ms,dir=out", "delay=5ms,jitter=5ms");
	full[IMPAIR_OUT] = true;
	come(IMPAIR_OUT, MANY, MANY);
	full[IMPAIR_OUT] = false;
	pass(20 * MS);
	/* Those of the first rules, and of the others half: but for chance. */
	assert_in_range(went[IMPAIR_OUT], MANY + MANY * 2 / 5, MANY + MANY * 3 / 5);
	pass(10000 * MS);
	assert_int_equal(went[IMPAIR_OUT], 2 * MANY);
}

/* Those that a rule holds back keep their order among themselves. */
static void late_frames_keep_their_order(void **state)
{
	(void)state;
	RULES("reorder=100%,by=1ms");
	come(IMPAIR_IN, 0, 1000);
	pass(MS);
	assert_int_equal(went[IMPAIR_IN], 1000);
	assert_int_equal(out_of_order[IMPAIR_IN], 0);
}

/* Nobody takes what goes out: that costs little, and what comes in does not wait for it. */
static void one_direction_is_full(void **state)
{
	(void)state;
	RULES("delay=1ms");
	come(IMPAIR_OUT, 0, MANY);
	full[IMPAIR_OUT] = true;
	pass(MS);
	for (uint32_t i = 0; i < 100; i++) {
		come(IMPAIR_IN, i, 1);
		pass(MS);
		assert_int_equal(went[IMPAIR_IN], i + 1);
	}
	assert_int_equal(went[IMPAIR_OUT], 0);
	full[IMPAIR_OUT] = false;
	pass(MS);
	assert_int_equal(went[IMPAIR_OUT], MANY);
	assert_int_equal(out_of_order[0] + out_of_order[1], 0);
}

/* Some in each round; what comes later waits behind them, and then nothing is impaired any more. */
static void rules_that_end_let_go_of_all(void **state)
{
	static const struct impair_config none;
	uint64_t before;

	(void)state;
	for (int again = 0; again < 2; again++) {
		RULES("delay=100s");
		come(IMPAIR_OUT, again * (MANY + 1), MANY);
		before = work_done();
		impair_set(imp, &none);
		assert_true(work_done() - before < WORK_A_FRAME);
		assert_int_equal(went[IMPAIR_OUT], again * (MANY + 1));
		assert_true(impair_has(imp, IMPAIR_OUT) && impair_busy(imp) && !impair_has(imp, IMPAIR_IN));
		come(IMPAIR_OUT, again * (MANY + 1) + MANY, 1);
		step();
		assert_in_range(went[IMPAIR_OUT], again * (MANY + 1) + 1, again * (MANY + 1) + A_TURN + 1);
		pass(0);
		assert_int_equal(went[IMPAIR_OUT], (again + 1) * (MANY + 1));
		assert_int_equal(out_of_order[IMPAIR_OUT], 0);
		assert_false(impair_has(imp, IMPAIR_OUT) || impair_busy(imp));
	}
}

static bool fired;

static void fire(struct timer *timer)
{
	(void)timer;
	fired = true;
}

/* What they held takes no turn from others: timers of the engine, and frames the other way. */
static void rules_that_end_keep_nobody_waiting(void **state)
{
	static const struct impair_config none;
	struct timer other = { .fire = fire };

	(void)state;
	RULES("delay=100s");
	come(IMPAIR_OUT, 0, MANY);
	come(IMPAIR_IN, 0, 100);
	impair_set(imp, &none);
	fired = false;
	timer_set(&engine->timers, &other, engine->now);
	step();
	assert_true(fired);
	assert_in_range(went[IMPAIR_IN], A_TURN / 3, 2 * A_TURN / 3);
	assert_in_range(went[IMPAIR_OUT], A_TURN / 3, 2 * A_TURN / 3);
}

/* Frames that nobody takes are lost in the end: else the port stayed busy without a rule. */
static void rules_that_end_leave_no_busy_port(void **state)
{
	static const struct impair_config none;

	(void)state;
	RULES("delay=100s");
	come(IMPAIR_OUT, 0, MANY);
	impair_set(imp, &none);
	full[IMPAIR_OUT] = true;
	pass(9 * MS);
	for (int i = 0; i < 100; i++)
		pass(MS / 20);
	assert_true(impair_busy(imp));
	for (int i = 0; i < 2000; i++)
		pass(MS / 20);
	assert_false(impair_busy(imp) || impair_has(imp, IMPAIR_OUT));
	assert_int_equal(went[IMPAIR_OUT], 0);
}

/* A device sends a turn's worth in each round of the engine, and its peer answers, while the timers of many QPs are due:
 * a delay is what the rule says, and not longer with each round. */
static void load_does_not_lengthen_a_delay(void **state)
{
	static struct timer qps[32];
	uint32_t came = 0;

	(void)state;
	RULES("delay=1ms");
	for (int round = 0; round < 1000; round++) {
		come(IMPAIR_OUT, came / 2, A_TURN / 2);
		come(IMPAIR_IN, came / 2, A_TURN / 2);
		came += 2 * (A_TURN / 2);
		for (int i = 0; i < 32; i++) {
			qps[i].fire = fire;
			timer_set(&engine->timers, &qps[i], engine->now);
		}
		engine->now += MS / 10;
		step();
		if (round > 10)
			assert_in_range(came - went[0] - went[1], 0, 13 * A_TURN);
	}
	pass(MS);
	assert_int_equal(went[0] + went[1], came);
	assert_int_equal(out_of_order[0] + out_of_order[1], 0);
}

/* Short frames do not wait for the line: too many are lost, and it is free when those that are held have gone. */
static void short_frames_do_not_keep_the_line_busy(void **state)
{
	(void)state;
	RULES("rate=1M,dir=out");
	come(IMPAIR_OUT, 0, MANY);
	assert_true(impair_busy(imp));
	/* 10 ms, and a long frame; each takes 480 us. */
	pass(100 * MS);
	assert_false(impair_busy(imp));
	assert_in_range(went[IMPAIR_OUT], 100 * MS / 480000 / 2, 100 * MS / 480000);
	assert_int_equal(impair_config(imp)->overflow, MANY - went[IMPAIR_OUT]);
}

/* A frame that a rule delays on its way to the line does not occupy it meanwhile: what comes now arrives as late. */
static void a_delay_does_not_keep_the_line_busy(void **state)
{
	(void)state;
	RULES("delay=10ms,dir=out", "rate=1G,dir=out");
	come(IMPAIR_OUT, 0, 1);
	assert_false(impair_busy(imp));
	/* 480 us in all; what takes 100 us may wait. */
	come(IMPAIR_OUT, 1, 999);
	assert_true(impair_busy(imp));
	pass(390 * MS / 1000);
	assert_false(impair_busy(imp));
	pass(10 * MS);
	assert_in_range(went[IMPAIR_OUT], 800, 820);
	pass(90 * MS / 1000);
	assert_int_equal(went[IMPAIR_OUT], 1000);
}

/* Of 1000 frames of 480 ns each, which come at once, those behind 100 us of others. */
static void a_delay_is_no_wait_for_the_line(void **state)
{
	(void)state;
	RULES("delay=1ms,dir=in", "ecn=100%,over=100us,dir=in", "rate=1G,dir=in");
	come(IMPAIR_IN, 0, 200);
	assert_int_equal(impair_config(imp)->rule[1].matched, 0);
	come(IMPAIR_IN, 200, 800);
	assert_in_range(impair_config(imp)->rule[1].matched, 785, 795);
}

/* Frames keep their order, so one waits for another with more jitter. The line is idle meanwhile, and has room. */
static void a_jitter_does_not_fill_the_line(void **state)
{
	(void)state;
	RULES("delay=50ms,jitter=50ms,dir=in", "rate=1G,dir=in");
	come(IMPAIR_IN, 0, 1000);
	assert_int_equal(impair_config(imp)->overflow, 0);
	pass(101 * MS);
	assert_int_equal(went[IMPAIR_IN], 1000);
	assert_int_equal(out_of_order[IMPAIR_IN], 0);
}

/*
 * A line gets frames no faster than the line before it sends them. Of those that come at once, the first line holds
 * 10 ms, and the second meanwhile gets 1 ms more than it sends.
 */
static void a_line_spaces_frames_for_the_next(void **state)
{
	const uint32_t n = 20800;

	(void)state;
	RULES("rate=1G,dir=in", "delay=1ms,dir=in", "rate=900M,dir=in");
	come(IMPAIR_IN, 0, n);
	assert_int_equal(impair_config(imp)->overflow, 0);
	pass(11 * MS);
	assert_in_range(went[IMPAIR_IN], n * 8 / 10, n - 1);
	pass(2 * MS);
	assert_int_equal(went[IMPAIR_IN], n);
	assert_int_equal(out_of_order[IMPAIR_IN], 0);
}

/* Where the second line is much slower, its queue is the one that is too short. */
static void a_slow_line_behind_a_fast_one_loses_frames(void **state)
{
	(void)state;
	RULES("rate=1G,dir=in", "rate=100M,dir=in");
	come(IMPAIR_IN, 0, 20000);
	pass(100 * MS);
	/* What it sends while the first one sends 9.6 ms, and 10 ms that it holds, of 4.8 us each. */
	assert_in_range(went[IMPAIR_IN], 4000, 4100);
	assert_int_equal(impair_config(imp)->overflow, 20000 - went[IMPAIR_IN]);
}

#define ALONE(f, rules)	{ rules ": " #f, f, begin, end, NULL }

int main(void)
{
	const struct CMUnitTest tests[] = {
		ALONE(a_frame_passes_many_that_wait_longer, "SEC-8"),
		ALONE(a_frame_passes_many_that_are_late, "SEC-8"),
		ALONE(late_frames_keep_their_order, "ROC-13"),
		ALONE(one_direction_is_full, "SEC-8"),
		cmocka_unit_test_setup_teardown(load_does_not_lengthen_a_delay, begin, end),
		ALONE(rules_that_end_let_go_of_all, "SEC-8"),
		ALONE(rules_that_end_keep_nobody_waiting, "SEC-8"),
		ALONE(rules_that_end_leave_no_busy_port, "SEC-8"),
		ALONE(short_frames_do_not_keep_the_line_busy, "SEC-8"),
		cmocka_unit_test_setup_teardown(a_delay_does_not_keep_the_line_busy, begin, end),
		cmocka_unit_test_setup_teardown(a_delay_is_no_wait_for_the_line, begin, end),
		cmocka_unit_test_setup_teardown(a_jitter_does_not_fill_the_line, begin, end),
		cmocka_unit_test_setup_teardown(a_line_spaces_frames_for_the_next, begin, end),
		cmocka_unit_test_setup_teardown(a_slow_line_behind_a_fast_one_loses_frames, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
