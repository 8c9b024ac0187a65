// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The order in which a copy becomes visible (MEM-11), as a program sees it that polls: once a
 * byte is new, all before it are; and an aligned word is never seen in part.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <cmocka.h>

#include "base/copy.h"

#define PAGE		4096u
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
		s->copy(s->dst, src, s->len);
	}
	return NULL;
}

/* As those of two SGEs: each half of a word is a run. */
static void halves(uint8_t *dst, const uint8_t *src, size_t len)
{
	struct seglist from = { .bytes = (uint32_t)len }, to = { 1, (uint32_t)len, { { dst, (uint32_t)len } } };

	for (size_t i = 0; i < len; i += 4)
		from.seg[from.n++] = (struct seg){ (uint8_t *)(uintptr_t)src + i, 4 };
	copy_segs(&to, &from);
}

static void words_are_never_torn(void (*copy)(uint8_t *, const uint8_t *, size_t))
{
	uint64_t memory[8] = { 0 };
	struct shared s = { copy, (uint8_t *)memory, sizeof(memory), 0 };
	uint64_t torn = 0, last = 0;
	unsigned int changes = 0;
	time_t end = time(NULL) + SECONDS;
	pthread_t thread;

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

static void aligned_words_are_never_torn(void **state)
{
	(void)state;
	words_are_never_torn(copy_to_host);
	words_are_never_torn(halves);
}

/* What is copied, or its destination, goes on behind @border where nobody may reach it, until the copy tries to. */
static struct {
	uint8_t *border;
	volatile uint64_t *word, seen;	/* of the destination, and what it was then */
} fault;

static void on_fault(int signal)
{
	(void)signal;
	fault.seen = *fault.word;
	mprotect(fault.border, PAGE, PROT_READ | PROT_WRITE);
}

/* No half of a word is stored before the other half was loaded, however long that takes. */
static void a_word_of_several_runs_is_stored_once(void **state)
{
	struct sigaction action = { .sa_handler = on_fault }, before;
	uint8_t *src = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t memory[4];

	(void)state;
	fault.border = src + PAGE;
	assert_int_equal(sigaction(SIGSEGV, &action, &before), 0);
	for (uint32_t first = 9; first < 16; first++) {
		struct seglist from = { 4, 32, {
			{ src + PAGE - first - 1, 1 }, { src + PAGE - first, first - 1 },
			{ src + PAGE, 1 }, { src + PAGE + 8, 32 - 1 - first } } };
		struct seglist to = { 1, 32, { { (uint8_t *)memory, 32 } } };

		memset(memory, 0, sizeof(memory));
		memset(src, 0xff, 2 * PAGE);
		assert_int_equal(mprotect(src + PAGE, PAGE, PROT_NONE), 0);
		fault.word = &memory[1];
		fault.seen = 1;
		copy_segs(&to, &from);
		assert_int_equal(fault.seen, 0);
		for (unsigned int i = 0; i < 4; i++)
			assert_int_equal(memory[i], ~0ull);
	}
	sigaction(SIGSEGV, &before, NULL);
	munmap(src, 2 * PAGE);
}

/* However long its store takes, which waits for its page here: the others are there. */
static void the_last_word_of_an_entry_is_stored_last(void **state)
{
	struct sigaction action = { .sa_handler = on_fault }, before;
	uint8_t *dst = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t src[8];

	(void)state;
	memset(src, 0xff, sizeof(src));
	fault.border = dst + PAGE;
	assert_int_equal(sigaction(SIGSEGV, &action, &before), 0);
	for (size_t size = 16; size <= sizeof(src); size += 16) {
		for (size_t word = 8; word < size; word += 8) {
			memset(dst, 0, 2 * PAGE);
			assert_int_equal(mprotect(dst + PAGE, PAGE, PROT_NONE), 0);
			fault.word = (uint64_t *)(void *)(dst + PAGE - word);
			fault.seen = 0;
			copy_entry(dst + PAGE + 8 - size, src, size);
			assert_int_equal(fault.seen, ~0ull);
			assert_memory_equal(dst + PAGE + 8 - size, src, size);
		}
	}
	sigaction(SIGSEGV, &before, NULL);
	munmap(dst, 2 * PAGE);
}

/* Runs in @memory of @bytes in all and of up to @most each, some of none, with gaps between them. */
static void draw_runs(struct seglist *list, uint8_t *memory, uint32_t bytes, uint32_t most, unsigned int *seed)
{
	list->n = 0;
	list->bytes = bytes;
	while (bytes) {
		uint32_t len = (uint32_t)rand_r(seed) % (most + 1);

		memory += (uint32_t)rand_r(seed) % 10;
		list->seg[list->n++] = (struct seg){ memory, len < bytes ? len : bytes };
		memory += list->seg[list->n - 1].len;
		bytes -= list->seg[list->n - 1].len;
	}
}

static void flatten(uint8_t *bytes, const struct seglist *list)
{
	for (unsigned int i = 0; i < list->n; i++) {
		memcpy(bytes, list->seg[i].p, list->seg[i].len);
		bytes += list->seg[i].len;
	}
}

static void runs_are_cut_anywhere(void **state)
{
	static const uint32_t most[] = { 3, 8, 20, 200 };
	static uint8_t memory[2][8192], flat[2][256];
	unsigned int seed = 1;

	(void)state;
	for (unsigned int i = 0; i < 20000; i++) {
		uint32_t bytes = 1 + (uint32_t)rand_r(&seed) % sizeof(flat[0]);
		struct seglist to, from;

		draw_runs(&to, memory[0], bytes, most[rand_r(&seed) % 4], &seed);
		draw_runs(&from, memory[1], bytes, most[rand_r(&seed) % 4], &seed);
		memset(memory[0], 0, sizeof(memory[0]));
		for (unsigned int j = 0; j < sizeof(memory[1]); j++)
			memory[1][j] = (uint8_t)rand_r(&seed);
		copy_segs(&to, &from);
		flatten(flat[0], &to);
		flatten(flat[1], &from);
		assert_memory_equal(flat[0], flat[1], bytes);
		/* And nothing beside them. */
		for (unsigned int j = 0; j < to.n; j++)
			memset(to.seg[j].p, 0, to.seg[j].len);
		for (unsigned int j = 0; j < sizeof(memory[0]); j++)
			assert_int_equal(memory[0][j], 0);
	}
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
		{ "GEN-5: the_last_word_of_an_entry_is_stored_last", the_last_word_of_an_entry_is_stored_last,
		  NULL, NULL, NULL },
		cmocka_unit_test(memory_may_overlap_itself),
		{ "GEN-6 MEM-11: aligned_words_are_never_torn", aligned_words_are_never_torn, NULL, NULL, NULL },
		{ "MEM-11: a_word_of_several_runs_is_stored_once", a_word_of_several_runs_is_stored_once,
		  NULL, NULL, NULL },
		cmocka_unit_test(runs_are_cut_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
