// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One-sided operations on windows: Put and Get between fences, Put under a lock, Accumulate of all ranks on one window,
 * Fetch_and_op and Compare_and_swap of all ranks on one word. A window has a part for each rank.
 */
#include <string.h>

#include "verified.h"

#define MOST	(1u << 20)	/* bytes of a part */
#define WORDS	512u
#define TIMES	50

static const size_t sizes[] = { 1, 8, 1000, 65536, MOST };
static uint8_t *part, *buffer;
static MPI_Win parts, words;
static int64_t *word;

static int next(int by)
{
	return (rank + by) % ranks;
}

static unsigned int seed_of(unsigned int seed, int from)
{
	return seed * 7919u + from * 31u;
}

/* To the next rank; what it got is compared there, and is read back. */
static void put_and_get(unsigned int seed, size_t size)
{
	memset(part, 0, size);
	MPI_Win_fence(0, parts);
	fill(buffer, size, seed_of(seed, rank));
	MPI_Put(buffer, size, MPI_BYTE, next(1), 0, size, MPI_BYTE, parts);
	MPI_Win_fence(0, parts);
	compare(part, size, seed_of(seed, next(ranks - 1)), "a Put has other bytes");
	memset(buffer, 0, size);
	MPI_Get(buffer, size, MPI_BYTE, next(1), 0, size, MPI_BYTE, parts);
	MPI_Win_fence(0, parts);
	compare(buffer, size, seed_of(seed, rank), "a Get has other bytes");
	moved += 2 * size;
}

/* Without a word from the target. */
static void put_under_lock(unsigned int seed, size_t size)
{
	fill(buffer, size, seed_of(seed, rank) + 1);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next(1), 0, parts);
	MPI_Put(buffer, size, MPI_BYTE, next(1), 0, size, MPI_BYTE, parts);
	MPI_Win_flush(next(1), parts);
	memset(buffer, 0, size);
	MPI_Get(buffer, size, MPI_BYTE, next(1), 0, size, MPI_BYTE, parts);
	MPI_Win_unlock(next(1), parts);
	compare(buffer, size, seed_of(seed, rank) + 1, "a Get under a lock has other bytes");
	moved += 2 * size;
}

/* What a rank's own window has, by MPI's leave. */
static int64_t own(unsigned int at)
{
	int64_t value;

	MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, words);
	value = word[at];
	MPI_Win_unlock(rank, words);
	return value;
}

static void reset(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, words);
	memset(word, 0, WORDS * sizeof(*word));
	MPI_Win_unlock(rank, words);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void accumulate(unsigned int seed)
{
	int64_t add[WORDS], total = 0;

	reset();
	for (unsigned int i = 0; i < WORDS; i++)
		add[i] = (int64_t)seed * rank + i;
	for (int of = 0; of < ranks; of++)
		total += (int64_t)seed * of;
	for (int target = 0; target < ranks; target++) {
		MPI_Win_lock(MPI_LOCK_SHARED, target, 0, words);
		MPI_Accumulate(add, WORDS, MPI_INT64_T, target, 0, WORDS, MPI_INT64_T, MPI_SUM, words);
		MPI_Win_unlock(target, words);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	for (unsigned int i = 0; i < WORDS; i++)
		must(own(i) == total + (int64_t)i * ranks, "Accumulate: a sum is wrong");
	moved += (ranks - 1) * sizeof(add);
}

/* All count in a word of rank 0; no two get the same number. */
static void fetch_and_op(void)
{
	int64_t one = 1, got, last = -1, mine = 0, all;

	reset();
	for (int i = 0; i < TIMES; i++) {
		MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, words);
		MPI_Fetch_and_op(&one, &got, MPI_INT64_T, 0, 0, MPI_SUM, words);
		MPI_Win_unlock(0, words);
		must(got > last, "Fetch_and_op: a number came twice");
		last = got;
		mine += got;
	}
	MPI_Allreduce(&mine, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
	must(all == (int64_t)TIMES * ranks * (TIMES * ranks - 1) / 2, "Fetch_and_op: a number is missing");
	must(rank || own(0) == TIMES * ranks, "Fetch_and_op: the counter is wrong");
}

/* The same, where each addition is tried until nobody comes between. */
static void compare_and_swap(void)
{
	reset();
	for (int i = 0; i < TIMES; i++) {
		int64_t seen = 0, wanted, got;

		for (;;) {
			wanted = seen + 1;
			MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, words);
			MPI_Compare_and_swap(&wanted, &seen, &got, MPI_INT64_T, 0, 1, words);
			MPI_Win_unlock(0, words);
			if (got == seen)
				break;
			seen = got;
		}
	}
	MPI_Barrier(MPI_COMM_WORLD);
	must(rank || own(1) == TIMES * ranks, "Compare_and_swap: the counter is wrong");
}

static void one_round(unsigned int seed)
{
	MPI_Win_allocate(MOST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &part, &parts);
	MPI_Win_allocate(WORDS * sizeof(*word), sizeof(*word), MPI_INFO_NULL, MPI_COMM_WORLD, &word, &words);
	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		put_and_get(seed, sizes[i]);
	MPI_Win_fence(MPI_MODE_NOSUCCEED, parts);
	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		put_under_lock(seed, sizes[i]);
	MPI_Barrier(MPI_COMM_WORLD);
	accumulate(seed);
	fetch_and_op();
	compare_and_swap();
	MPI_Win_free(&words);
	MPI_Win_free(&parts);
}

int main(int argc, char **argv)
{
	buffer = allocate(MOST);
	return rounds(argc, argv, one_round);
}
