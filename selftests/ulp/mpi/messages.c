// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Messages of each size, between neighbours: one at a time back and forth, then many at a time in both directions. From
 * 0 bytes to 1 MiB MPI takes all its ways: inline, copied, and by rendezvous.
 */
#include "verified.h"

#define MOST	(1u << 20)
#define WINDOW	8

static const size_t sizes[] = { 0, 1, 8, 1000, 4096, 16384, 65536, 300001, MOST };
static uint8_t *out, *in;

/* Of message number @index from rank @from. */
static unsigned int seed_of(unsigned int seed, int from, unsigned int index)
{
	return seed * 7919u + from * 31u + index;
}

static unsigned int times(size_t size)
{
	return size > 100000 ? 4 : 20;
}

/* Rank 0 with each of the others by turns. */
static void back_and_forth(unsigned int seed, size_t size)
{
	double start = MPI_Wtime();
	unsigned int count = 0;
	char name[40];

	for (int peer = 1; peer < ranks; peer++) {
		if (rank && rank != peer)
			continue;
		for (unsigned int i = 0; i < times(size); i++, count++) {
			int other = rank ? 0 : peer;

			fill(out, size, seed_of(seed, rank, i));
			if (!rank)
				MPI_Send(out, size, MPI_BYTE, other, i, MPI_COMM_WORLD);
			MPI_Recv(in, size, MPI_BYTE, other, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			if (rank)
				MPI_Send(out, size, MPI_BYTE, other, i, MPI_COMM_WORLD);
			compare(in, size, seed_of(seed, other, i), "a message differs");
			moved += size;
		}
	}
	if (seed > 1)
		return;
	snprintf(name, sizeof(name), "latency, %zu B", size);
	show(name, (MPI_Wtime() - start) / count / 2 * 1e6, "us");
}

/* To the next rank, from the one before. */
static void many(unsigned int seed, size_t size)
{
	int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
	size_t stride = size + 8;
	MPI_Request requests[2 * WINDOW];
	double start, took;
	char name[40];

	for (unsigned int i = 0; i < WINDOW; i++)
		fill(out + i * stride, size, seed_of(seed, rank, i));
	MPI_Barrier(MPI_COMM_WORLD);
	start = MPI_Wtime();
	for (unsigned int i = 0; i < WINDOW; i++)
		MPI_Irecv(in + i * stride, size, MPI_BYTE, before, i, MPI_COMM_WORLD, &requests[i]);
	for (unsigned int i = 0; i < WINDOW; i++)
		MPI_Isend(out + i * stride, size, MPI_BYTE, next, i, MPI_COMM_WORLD, &requests[WINDOW + i]);
	MPI_Waitall(2 * WINDOW, requests, MPI_STATUSES_IGNORE);
	took = MPI_Wtime() - start;
	for (unsigned int i = 0; i < WINDOW; i++)
		compare(in + i * stride, size, seed_of(seed, before, i), "one of many messages differs");
	moved += WINDOW * size;
	if (seed > 1 || size < 65536)
		return;
	snprintf(name, sizeof(name), "bandwidth, %zu B", size);
	show(name, WINDOW * size / took / 1e6, "MB/s from each rank");
}

static void one_round(unsigned int seed)
{
	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		back_and_forth(seed, sizes[i]);
		many(seed, sizes[i]);
	}
}

int main(int argc, char **argv)
{
	out = allocate(WINDOW * (MOST + 8));
	in = allocate(WINDOW * (MOST + 8));
	return rounds(argc, argv, one_round);
}
