// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* An engine's thread, calls to it from others, its timers, and its descriptors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/engine_priv.h"

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

/* Something that takes one datagram at each look. */
struct taker {
	struct engine_fd efd;
	struct engine *engine;
	int peer;
	unsigned int taken;		/* atomic */
	struct taker **forgets;		/* NULL: nobody; whom it frees when it takes */
};

static bool take_one(struct engine_fd *efd)
{
	struct taker *t = (void *)((char *)efd - offsetof(struct taker, efd));
	struct taker **forgets = t->forgets;
	char byte;

	if (recv(efd->fd, &byte, 1, MSG_DONTWAIT) != 1)
		return false;
	__atomic_add_fetch(&t->taken, 1, __ATOMIC_RELAXED);
	if (forgets && *forgets) {
		engine_fd_del((*forgets)->engine, &(*forgets)->efd);
		close((*forgets)->efd.fd);
		close((*forgets)->peer);
		free(*forgets);
		*forgets = NULL;
	}
	return true;
}

static struct taker *new_taker(struct engine *engine, int type)
{
	struct taker *t = calloc(1, sizeof(*t));
	int pair[2];

	assert_non_null(t);
	assert_int_equal(socketpair(AF_UNIX, type, 0, pair), 0);
	t->efd = (struct engine_fd){ .fd = pair[0], .look = take_one };
	t->peer = pair[1];
	t->engine = engine;
	assert_int_equal(engine_fd_add(engine, &t->efd), 0);
	return t;
}

static void give(const struct taker *t, unsigned int datagrams)
{
	while (datagrams--)
		assert_int_equal(send(t->peer, "", 1, 0), 1);
}

static void free_taker(struct taker *t)
{
	engine_fd_del(t->engine, &t->efd);
	close(t->efd.fd);
	close(t->peer);
	free(t);
}

/* Is it waited for by epoll? */
static bool in_epoll(struct engine *engine)
{
	struct pollfd any = { .fd = engine->epoll_fd, .events = POLLIN };

	return poll(&any, 1, 0) == 1;
}

static void take_when_ready(struct engine_fd *efd)
{
	assert_true(take_one(efd));
}

/* Who always has more takes no more of a step than its look, and keeps nobody waiting. */
static void each_is_looked_at_once_in_a_step(void **state)
{
	struct engine *engine = engine_create(true);
	struct taker *t[3];

	(void)state;
	for (int i = 0; i < 3; i++) {
		t[i] = new_taker(engine, SOCK_STREAM);
		t[i]->efd.ready = take_when_ready;
		give(t[i], 20);
	}
	for (unsigned int step = 1; step <= 20; step++) {
		assert_true(engine_step(engine));
		for (int i = 0; i < 3; i++)
			assert_int_equal(t[i]->taken, step);
	}
	assert_false(engine_step(engine));
	for (int i = 0; i < 3; i++)
		free_taker(t[i]);
	engine_destroy(engine);
}

struct rester {
	struct engine_fd efd;
	struct engine *engine;
	unsigned int served;
};

static void serve_and_rest(struct engine_fd *efd)
{
	struct rester *r = (void *)efd;
	char c;

	while (recv(efd->fd, &c, 1, MSG_DONTWAIT) == 1)
		r->served++;
	engine_fd_rest(r->engine, efd, ALARM_NS);
}

static void what_rests_is_served_later(void **state)
{
	struct engine *engine = engine_create(true);
	struct rester r = { .engine = engine };
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	r.efd = (struct engine_fd){ .fd = pair[0], .ready = serve_and_rest };
	assert_int_equal(engine_fd_add(engine, &r.efd), 0);
	engine_fd_rest(engine, &r.efd, ALARM_NS);
	for (unsigned int i = 0; i < 10; i++) {
		for (unsigned int j = 0; j < 5; j++)
			assert_int_equal(send(pair[1], "", 1, 0), 1);
		while (engine_step(engine))
			;
		assert_int_equal(r.served, 5 * i);
		engine_clock_advance(engine, ALARM_NS - 1);
		while (engine_step(engine))
			;
		assert_int_equal(r.served, 5 * i);
		engine_clock_advance(engine, 1);
		while (engine_step(engine))
			;
		assert_int_equal(r.served, 5 * (i + 1));
	}
	engine_fd_del(engine, &r.efd);
	assert_int_equal(engine->timers.n, 0);
	close(pair[0]);
	close(pair[1]);
	engine_destroy(engine);
}

static void count_and_rest(struct engine_fd *efd)
{
	struct rester *r = (void *)efd;

	r->served++;
	engine_fd_rest(r->engine, efd, ALARM_NS);
}

/* There is room to write all the time, and nothing to read. Who asks to watch it before ends the rest. */
static void what_rests_is_watched_as_before(void **state)
{
	struct engine *engine = engine_create(true);
	struct rester r = { .engine = engine };
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	r.efd = (struct engine_fd){ .fd = pair[0], .ready = count_and_rest };
	assert_int_equal(engine_fd_watch(engine, &r.efd, POLLIN | POLLOUT), 0);
	for (unsigned int i = 1; i < 10; i++) {
		while (engine_step(engine))
			;
		assert_int_equal(r.served, i);
		/* It rests already: only the end changes. */
		engine_fd_rest(engine, &r.efd, 2 * ALARM_NS);
		engine_clock_advance(engine, ALARM_NS);
		while (engine_step(engine))
			;
		assert_int_equal(r.served, i);
		engine_clock_advance(engine, ALARM_NS);
	}
	assert_int_equal(engine_fd_watch(engine, &r.efd, POLLIN), 0);
	assert_int_equal(engine->timers.n, 0);
	engine_fd_del(engine, &r.efd);
	close(pair[0]);
	close(pair[1]);
	engine_destroy(engine);
}

static void what_is_often_ready_is_not_in_epoll_for_a_while(void **state)
{
	struct engine *engine = engine_create(true);
	struct taker *t = new_taker(engine, SOCK_DGRAM);

	(void)state;
	give(t, 1);
	assert_true(in_epoll(engine));
	assert_true(engine_step(engine));
	/* Once in a while is not often. */
	engine_clock_advance(engine, 1000000);
	give(t, 1);
	assert_true(engine_step(engine));
	give(t, 3);
	assert_true(in_epoll(engine));
	for (int i = 0; i < 3; i++) {
		assert_int_equal(t->taken, 2 + i);
		assert_true(engine_step(engine));
		assert_false(in_epoll(engine));
	}
	for (int i = 0; i < 20; i++)
		assert_false(engine_step(engine));
	give(t, 1);
	assert_true(in_epoll(engine));
	assert_true(engine_step(engine));
	assert_int_equal(t->taken, 6);
	free_taker(t);
	engine_destroy(engine);
}

/* Even what would have its turn next, or has it. */
static void who_is_looked_at_may_be_freed(void **state)
{
	(void)state;
	for (int who = 0; who < 3; who++) {
		struct engine *engine = engine_create(true);
		struct taker *t[3], *freed;

		for (int i = 0; i < 3; i++)
			t[i] = new_taker(engine, SOCK_DGRAM);
		for (int i = 0; i < 3; i++)
			give(t[i], 3);
		while (engine_step(engine))
			;
		freed = t[who];
		for (int i = 0; i < 3; i++) {
			t[i]->forgets = &freed;
			give(t[i], 1);
		}
		assert_false(in_epoll(engine));
		while (engine_step(engine))
			;
		assert_null(freed);
		for (int i = 0; i < 3; i++) {
			if (i == who)
				continue;
			assert_int_equal(t[i]->taken, 4);
			free_taker(t[i]);
		}
		engine_destroy(engine);
	}
}

static void a_sleeping_engine_wakes_for_what_is_often_ready(void **state)
{
	struct engine *engine = engine_create(false);
	struct taker *t = new_taker(engine, SOCK_DGRAM);
	unsigned int given = 0;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, run, engine), 0);
	for (int i = 0; i < 200; i++) {
		unsigned int n = i % 4 ? 4 : 1;

		give(t, n);
		given += n;
		for (int ms = 0; ms < 5000; ms++) {
			if (__atomic_load_n(&t->taken, __ATOMIC_RELAXED) == given)
				break;
			usleep(1000);
		}
		assert_int_equal(__atomic_load_n(&t->taken, __ATOMIC_RELAXED), given);
	}
	engine_stop(engine);
	pthread_join(thread, NULL);
	free_taker(t);
	engine_destroy(engine);
}

/* An engine that stands still, while work comes that a timer waits for. */
struct stall {
	struct timer begins, ends;
	struct taker *t;
	unsigned int taken;		/* when the second fired */
};

#define STALL_BYTES	40

static void stand_still(struct timer *timer)
{
	struct stall *s = (void *)((char *)timer - offsetof(struct stall, begins));
	struct engine *engine = s->t->engine;

	give(s->t, STALL_BYTES);
	timer_set(&engine->timers, &s->ends, engine_now(engine) + ALARM_NS);
	usleep(20000);
}

static void look_back(struct timer *timer)
{
	struct stall *s = (void *)((char *)timer - offsetof(struct stall, ends));

	s->taken = s->t->taken;
	engine_stop(s->t->engine);
}

static void what_came_in_a_stall_is_taken_before_timers_fire(void **state)
{
	struct engine *engine = engine_create(false);
	struct stall s = { .begins.fire = stand_still, .ends.fire = look_back };

	(void)state;
	assert_non_null(engine);
	s.t = new_taker(engine, SOCK_STREAM);
	timer_set(&engine->timers, &s.begins, engine_now(engine) + ALARM_NS);
	engine_run(engine);
	assert_int_equal(s.taken, STALL_BYTES);
	free_taker(s.t);
	engine_destroy(engine);
}

/* A descriptor that always has more, and a device beside it. */
struct flood {
	struct engine *engine;
	struct engine_fd efd;
	struct engine_client client;
	struct timer begins;
	unsigned int looks, rounds;	/* since the engine stood still */
	unsigned int in_a_row, longest;	/* looks without a round between them */
};

#define FLOOD_LOOKS	600
#define FLOOD_US	500		/* a look, at least */

static bool take_of_flood(struct engine_fd *efd)
{
	struct flood *f = (void *)((char *)efd - offsetof(struct flood, efd));

	usleep(FLOOD_US);
	if (++f->in_a_row > f->longest)
		f->longest = f->in_a_row;
	if (f->rounds && ++f->looks == FLOOD_LOOKS)
		engine_stop(f->engine);
	return true;
}

static void take_of_flood_when_ready(struct engine_fd *efd)
{
	take_of_flood(efd);
}

static bool count_round(struct engine_client *client)
{
	struct flood *f = (void *)((char *)client - offsetof(struct flood, client));

	f->rounds += f->rounds > 0;
	f->in_a_row = 0;
	return true;
}

static void count_from_now(struct timer *timer)
{
	struct flood *f = (void *)((char *)timer - offsetof(struct flood, begins));

	f->rounds = 1;
	usleep(20000);
}

static void a_flood_after_a_stall_leaves_devices_their_turns(void **state)
{
	struct engine *engine = engine_create(false);
	struct flood f = {
		.engine = engine, .client.run = count_round, .begins.fire = count_from_now,
		.efd = { .fd = eventfd(1, 0), .look = take_of_flood, .ready = take_of_flood_when_ready },
	};

	(void)state;
	assert_non_null(engine);
	assert_int_equal(engine_fd_add(engine, &f.efd), 0);
	engine_join(engine, &f.client);
	timer_set(&engine->timers, &f.begins, engine_now(engine) + ALARM_NS);
	engine_run(engine);
	print_message("%u looks, %u rounds, up to %u looks in a row\n", f.looks, f.rounds, f.longest);
	assert_true(f.looks < 8 * f.rounds);
	assert_true(f.longest < 32);
	engine_leave(engine, &f.client);
	engine_fd_del(engine, &f.efd);
	close(f.efd.fd);
	engine_destroy(engine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_never_meets_the_engine_at_work),
		cmocka_unit_test(a_sleeping_engine_wakes_for_a_timer_in_time),
		{ "SEC-8: each_is_looked_at_once_in_a_step", each_is_looked_at_once_in_a_step, NULL, NULL, NULL },
		cmocka_unit_test(what_rests_is_served_later),
		cmocka_unit_test(what_rests_is_watched_as_before),
		cmocka_unit_test(what_is_often_ready_is_not_in_epoll_for_a_while),
		cmocka_unit_test(who_is_looked_at_may_be_freed),
		cmocka_unit_test(a_sleeping_engine_wakes_for_what_is_often_ready),
		cmocka_unit_test(what_came_in_a_stall_is_taken_before_timers_fire),
		{ "SEC-8: a_flood_after_a_stall_leaves_devices_their_turns",
		  a_flood_after_a_stall_leaves_devices_their_turns, NULL, NULL, NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
