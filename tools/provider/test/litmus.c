// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * DBR-3 DBR-6: litmus tests: the provider's inline functions in one thread against the device's side of
 * the rule in another, at the moment that matters: one goes to sleep while the other
 * publishes.
 *
 *	event	publishing in an SQ record: no WQE is left lying, though the device sleeps
 *		unless it was rung
 *	arm	arming a CQ: no CQE is left lying, though the host sleeps unless it got an event
 *
 * In the middle of each round both sides are let loose at the same time, then each may wait
 * for the other for ten seconds: a wait that long is a lost wake-up.
 *
 *	litmus [-r ROUNDS] [-s SECONDS]		stop at whichever comes first
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "fake.h"

#define LOST_NS	10000000000ull

static unsigned long max_rounds = 2000000;
static unsigned int max_seconds = 3;

/* Where both threads meet, and what they tell each other. Each on a line of its own. */
static struct {
	_Alignas(64) unsigned long host_round;
	_Alignas(64) unsigned long dev_round;
	_Alignas(64) unsigned int doorbells;
	_Alignas(64) unsigned int events;
	_Alignas(64) int stop;
	_Alignas(64) int lost;
} shared;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/*
 * Wait until *@word differs from @old. False if it did not for LOST_NS. Yields after a while,
 * so that one core is enough.
 */
static bool wait_change(const unsigned int *word, unsigned int old)
{
	uint64_t end = 0;
	unsigned int i;

	for (i = 0; __atomic_load_n(word, __ATOMIC_ACQUIRE) == old; i++) {
		if (i < 2000 || i % 64)
			continue;
		if (!end)
			end = now_ns() + LOST_NS;
		else if (now_ns() > end)
			return false;
		sched_yield();
	}
	return true;
}

/* Tell the other side that this one is ready for @round, and wait until it is, too. */
static bool meet(unsigned long *mine, const unsigned long *other, unsigned long round)
{
	unsigned int i;

	__atomic_store_n(mine, round, __ATOMIC_SEQ_CST);
	for (i = 0; __atomic_load_n(other, __ATOMIC_ACQUIRE) < round; i++) {
		if (__atomic_load_n(&shared.stop, __ATOMIC_ACQUIRE))
			return false;
		if (i > 2000)
			sched_yield();
	}
	return true;
}

/* A short delay that differs from round to round, so that the two meet in all ways. */
static void jitter(unsigned int *seed)
{
	unsigned int n;

	*seed = *seed * 1103515245 + 12345;
	for (n = *seed >> 16 & 31; n; n--)
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static void fail(void)
{
	__atomic_store_n(&shared.lost, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&shared.stop, 1, __ATOMIC_RELEASE);
}

static struct skua_sq sq;

/* The device: takes WQEs until there are none, asks to be rung, looks once more, sleeps. */
static void *event_device(void *arg)
{
	unsigned int seed = 2, rung;
	unsigned long round = 0;
	uint32_t ci = 0, pi;

	while (meet(&shared.dev_round, &shared.host_round, ++round)) {
		/* Doorbells of earlier rounds are no news. */
		rung = __atomic_load_n(&shared.doorbells, __ATOMIC_ACQUIRE);
		jitter(&seed);
		for (;;) {
			__atomic_store_n(&sq.dbr->event, htole32(ci), __ATOMIC_RELAXED);
			skua_full_barrier(false);
			pi = le32toh(__atomic_load_n(&sq.dbr->pi, __ATOMIC_ACQUIRE));
			if (pi != ci)
				break;
			if (!wait_change(&shared.doorbells, rung)) {
				fail();
				return NULL;
			}
			rung = __atomic_load_n(&shared.doorbells, __ATOMIC_ACQUIRE);
		}
		ci = pi;
		skua_sq_retire(&sq, &sq.slots[(ci - 1) & (sq.blocks - 1)]);
	}
	return NULL;
}

static void event_host_step(unsigned int *seed)
{
	struct skua_wqe wqe;

	skua_wqe_begin(&sq, &wqe, 0, SKUA_WQE_NOP, 0);
	skua_wqe_end(&sq, &wqe, 0, 0);
	jitter(seed);
	if (skua_sq_publish(&sq, true))
		__atomic_add_fetch(&shared.doorbells, 1, __ATOMIC_SEQ_CST);
}

static struct skua_cq_ring ring;
static struct fake_cq dev;

static void arm_evaluate(void)
{
	if (fake_cq_evaluate(&dev))
		__atomic_add_fetch(&shared.events, 1, __ATOMIC_SEQ_CST);
}

/* Is the host still in @round? */
static bool host_is_in(unsigned long round)
{
	return __atomic_load_n(&shared.host_round, __ATOMIC_ACQUIRE) <= round &&
	       !__atomic_load_n(&shared.stop, __ATOMIC_ACQUIRE);
}

/* The device: a CQE a round, an event if one is asked for; the same when it is rung. */
static void *arm_device(void *arg)
{
	unsigned long round = 0;
	unsigned int seed = 3;

	while (meet(&shared.dev_round, &shared.host_round, ++round)) {
		unsigned int rung = __atomic_load_n(&shared.doorbells, __ATOMIC_ACQUIRE);

		jitter(&seed);
		fake_cq_write(&dev, (struct skua_cqe) { .cookie = htole32(round) });
		skua_full_barrier(false);
		arm_evaluate();
		while (host_is_in(round)) {
			unsigned int bells = __atomic_load_n(&shared.doorbells, __ATOMIC_ACQUIRE);

			if (bells != rung)
				arm_evaluate();
			else
				sched_yield();
			rung = bells;
		}
	}
	return NULL;
}

static unsigned int events_taken;

/* The host: polls an empty CQ, arms it, sleeps until the event, finds the CQE. */
static void arm_host_step(unsigned int *seed)
{
	const struct skua_cqe *cqe;
	uint32_t ci;

	jitter(seed);
	if (!skua_cq_peek(&ring, &cqe)) {
		if (skua_cq_arm(&ring, false, true, &ci))
			__atomic_add_fetch(&shared.doorbells, 1, __ATOMIC_SEQ_CST);
		if (!wait_change(&shared.events, events_taken) || !skua_cq_peek(&ring, &cqe)) {
			fail();
			return;
		}
		events_taken++;
		skua_cq_disarm(&ring);
	}
	skua_cq_consume(&ring);
}

static bool run(const char *name, void *(*device)(void *), void (*host_step)(unsigned int *))
{
	uint64_t end = now_ns() + max_seconds * 1000000000ull;
	unsigned long round = 0;
	unsigned int seed = 1;
	pthread_t thread;

	memset(&shared, 0, sizeof(shared));
	if (pthread_create(&thread, NULL, device, NULL)) {
		perror("pthread_create");
		return false;
	}
	while (round < max_rounds && !(round % 256 == 0 && now_ns() > end) &&
	       meet(&shared.host_round, &shared.dev_round, ++round))
		host_step(&seed);
	/* The device still ends the round that it is in. */
	__atomic_store_n(&shared.stop, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);

	printf("%s: %s: %lu rounds, %u doorbells, %u events%s\n",
	       shared.lost ? "FAIL" : "ok", name, round, shared.doorbells, shared.events,
	       shared.lost ? ", a wake-up was lost" : "");
	return !shared.lost;
}

int main(int argc, char **argv)
{
	bool ok = true;
	int c;

	while ((c = getopt(argc, argv, "r:s:")) != -1) {
		if (c == 'r')
			max_rounds = strtoul(optarg, NULL, 0);
		else if (c == 's')
			max_seconds = strtoul(optarg, NULL, 0);
		else
			return 2;
	}

	/* Both barriers of the host: threads run on processors, as the device does under KVM. */
	for (int locked = 0; locked < 2; locked++) {
		fake_sq_init(&sq, 16);
		sq.locked_is_full = locked;
		ok = run("event", event_device, event_host_step) && ok;
		fake_sq_free(&sq);

		fake_cq_init(&dev, &ring, 16);
		ring.locked_is_full = locked;
		events_taken = 0;
		ok = run("arm", arm_device, arm_host_step) && ok;
		fake_cq_free(&ring);
	}
	return !ok;
}
