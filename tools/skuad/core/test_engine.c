// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* An engine's thread, and calls to it from others. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_never_meets_the_engine_at_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
