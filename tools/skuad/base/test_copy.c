// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The order in which a copy becomes visible (MEM-11), as a program sees it that polls: once a
 * byte is new, all before it are; and an aligned word is never seen in part.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/copy.h"

#define MOST		65536u		/* bytes of a copy */
#define ROUNDS		4000
#define LEAST_ROUNDS	200
#define CHANGES		100000		/* of a word that is copied again and again */
#define SECONDS		2		/* where others keep the cores, a round takes as long as their turns */

struct shared {
	void (*copy)(uint8_t *dst, const uint8_t *src, size_t len);
	uint8_t *dst;
	size_t len;
	unsigned int ready;		/* round that may be copied; above ROUNDS: it is over */
};

/* Of a loop that waits for the other thread: it may need this core. */
static void spin(void)
{
	static _Thread_local unsigned int spins;

	if (++spins % 4096 == 0)
		sched_yield();
}

/* Each round is one value all over. */
static void *copier(void *arg)
{
	struct shared *s = arg;
	static uint8_t src[MOST];

	for (unsigned int round = 1; round <= ROUNDS; round++) {
		while (__atomic_load_n(&s->ready, __ATOMIC_ACQUIRE) < round)
			spin();
		if (__atomic_load_n(&s->ready, __ATOMIC_ACQUIRE) > ROUNDS)
			break;
		memset(src, (int)(round & 0xff), s->len);
		s->copy(s->dst, src, s->len);
	}
	return NULL;
}

static void entry(uint8_t *dst, const uint8_t *src, size_t len)
{
	copy_entry(dst, src, len);
}

/* Byte @polled is new, so all before it are. */
static void bytes_come_in_order(void (*copy)(uint8_t *, const uint8_t *, size_t), size_t len, size_t polled,
				size_t misalign)
{
	uint8_t *memory = aligned_alloc(64, MOST + 64);
	struct shared s = { copy, memory + misalign, len, 0 };
	time_t end = time(NULL) + SECONDS;
	size_t old = len;		/* a byte that was */
	pthread_t thread;

	memset(memory, 0, MOST + 64);
	assert_int_equal(pthread_create(&thread, NULL, copier, &s), 0);
	for (unsigned int round = 1; round <= ROUNDS && old == len; round++) {
		uint8_t value = (uint8_t)round;

		if (round > LEAST_ROUNDS && time(NULL) > end)
			break;
		__atomic_store_n(&s.ready, round, __ATOMIC_RELEASE);
		while (__atomic_load_n(&s.dst[polled], __ATOMIC_ACQUIRE) != value)
			spin();
		for (size_t i = 0; i < polled; i++)
			if (__atomic_load_n(&s.dst[i], __ATOMIC_RELAXED) != value)
				old = i;
	}
	__atomic_store_n(&s.ready, ROUNDS + 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	if (old != len)
		fail_msg("%zu bytes at %zu: byte %zu is old", len, misalign, old);
	free(memory);
}

static void the_last_byte_is_seen_last(void **state)
{
	static const size_t lens[] = { 1, 7, 8, 9, 64, 100, 257, 1024, 4096 };

	(void)state;
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		bytes_come_in_order(copy_to_host, lens[i], lens[i] - 1, 0);
		bytes_come_in_order(copy_to_host, lens[i], lens[i] - 1, 3);
	}
}

/* What the provider says by ibv_query_qp_data_in_order(). */
static void each_byte_is_seen_after_those_before_it(void **state)
{
	static const size_t lens[] = { 100, 1000, 8192, MOST };

	(void)state;
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		bytes_come_in_order(copy_to_host, lens[i], lens[i] / 4, 0);
		bytes_come_in_order(copy_to_host, lens[i], lens[i] / 2, 8);
		bytes_come_in_order(copy_to_host, lens[i], lens[i] * 3 / 4, 3);
	}
}

/* An entry is handed over by its last byte, in which its phase is. */
static void entries_are_handed_over_whole(void **state)
{
	(void)state;
	bytes_come_in_order(entry, 16, 15, 0);
	bytes_come_in_order(entry, 64, 63, 0);
}

static void *flipper(void *arg)
{
	struct shared *s = arg;
	uint8_t src[64];

	for (unsigned int round = 0; !__atomic_load_n(&s->ready, __ATOMIC_ACQUIRE); round++) {
		memset(src, round & 1 ? 0xff : 0, sizeof(src));
		copy_to_host(s->dst, src, s->len);
	}
	return NULL;
}

static void aligned_words_are_never_torn(void **state)
{
	uint64_t memory[8] = { 0 };
	struct shared s = { NULL, (uint8_t *)memory, sizeof(memory), 0 };
	uint64_t torn = 0, last = 0;
	unsigned int changes = 0;
	time_t end = time(NULL) + SECONDS;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, flipper, &s), 0);
	/* The other thread has to be seen at work. */
	for (unsigned int i = 0; !torn && changes < CHANGES; i++) {
		uint64_t word = __atomic_load_n(&memory[i / 4 % 8], __ATOMIC_RELAXED);

		if (word && word != ~0ull)
			torn = word;
		changes += word != last;
		last = word;
		spin();
		if (i % 4096 == 0 && time(NULL) > end)
			break;
	}
	__atomic_store_n(&s.ready, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	if (torn)
		fail_msg("a word is torn: 0x%llx", (unsigned long long)torn);
}

/* Nobody promises what is there afterwards, but for what is not touched. */
static void memory_may_overlap_itself(void **state)
{
	uint8_t *memory = aligned_alloc(64, 8192);

	(void)state;
	for (size_t to = 0; to < 256; to += 24) {
		for (size_t from = 0; from < 256; from += 24) {
			memset(memory, 1, 8192);
			copy_to_host(memory + to, memory + from, 4096);
			for (size_t i = to + 4096; i < 8192; i++)
				assert_int_equal(memory[i], 1);
		}
	}
	free(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "MEM-11: the_last_byte_is_seen_last", the_last_byte_is_seen_last, NULL, NULL, NULL },
		{ "MEM-11: each_byte_is_seen_after_those_before_it", each_byte_is_seen_after_those_before_it,
		  NULL, NULL, NULL },
		{ "GEN-5: entries_are_handed_over_whole", entries_are_handed_over_whole, NULL, NULL, NULL },
		cmocka_unit_test(memory_may_overlap_itself),
		{ "GEN-6 MEM-11: aligned_words_are_never_torn", aligned_words_are_never_torn, NULL, NULL, NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
