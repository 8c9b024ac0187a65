// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* An engine's thread, calls to it from others, and its timers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/engine_priv.h"

struct look {
	struct engine *engine;
	pthread_t caller;
	bool at_once;		/* on the caller's own thread */
	bool met;		/* and the engine's was at work meanwhile */
};

static void look(void *arg)
{
	struct look *l = arg;

	l->at_once = pthread_equal(pthread_self(), l->caller);
	usleep(2000);
	l->met = l->at_once && __atomic_load_n(&l->engine->running, __ATOMIC_RELAXED);
}

static void *run(void *engine)
{
	engine_run(engine);
	return NULL;
}

static void a_call_never_meets_the_engine_at_work(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		struct look l = { .engine = engine_create(false), .caller = pthread_self() };
		pthread_t thread;

		assert_non_null(l.engine);
		assert_int_equal(pthread_create(&thread, NULL, run, l.engine), 0);
		engine_call(l.engine, look, &l);
		assert_false(l.met);
		while (l.at_once)
			engine_call(l.engine, look, &l);
		engine_stop(l.engine);
		pthread_join(thread, NULL);
		engine_call(l.engine, look, &l);
		assert_true(l.at_once);
		engine_destroy(l.engine);
	}
}

struct alarm {
	struct timer timer;
	struct engine *engine;
	uint64_t late;		/* at best */
	unsigned int left;
};

#define ALARM_NS	200000

static void ring(struct timer *timer)
{
	struct alarm *a = (void *)((char *)timer - offsetof(struct alarm, timer));
	uint64_t late = engine_now(a->engine) - timer->deadline;

	if (late < a->late)
		a->late = late;
	if (--a->left)
		timer_set(&a->engine->timers, timer, engine_now(a->engine) + ALARM_NS);
	else
		engine_stop(a->engine);
}

/* At best, since a busy machine wakes anybody late. */
static void a_sleeping_engine_wakes_for_a_timer_in_time(void **state)
{
	struct alarm a = { .engine = engine_create(false), .late = ~0ull, .left = 100 };

	(void)state;
	assert_non_null(a.engine);
	a.timer.fire = ring;
	timer_set(&a.engine->timers, &a.timer, engine_now(a.engine) + ALARM_NS);
	engine_run(a.engine);
	assert_true(a.late < ALARM_NS);
	engine_destroy(a.engine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_never_meets_the_engine_at_work),
		cmocka_unit_test(a_sleeping_engine_wakes_for_a_timer_in_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
