// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What the MPI programs here have in common. */
#include "verified.h"

int rank, ranks;
uint64_t moved;

void must(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "rank %d: %s\n", rank, what);
	MPI_Abort(MPI_COMM_WORLD, 1);
	exit(1);
}

void *allocate(size_t size)
{
	void *memory = malloc(size);

	must(memory != NULL, "no memory");
	return memory;
}

static uint8_t byte_at(size_t at, unsigned int seed)
{
	return (at * 2654435761u + seed * 40503u) >> 11;
}

void fill(void *to, size_t size, unsigned int seed)
{
	uint8_t *bytes = to;

	for (size_t i = 0; i < size; i++)
		bytes[i] = byte_at(i, seed);
}

void compare(const void *from, size_t size, unsigned int seed, const char *what)
{
	const uint8_t *bytes = from;

	for (size_t i = 0; i < size; i++)
		must(bytes[i] == byte_at(i, seed), what);
}

void show(const char *name, double value, const char *unit)
{
	if (!rank)
		printf("%-28s %10.1f %s\n", name, value, unit);
}

int rounds(int argc, char **argv, void (*one_round)(unsigned int seed))
{
	double end = argc > 1 ? atof(argv[1]) : 0;
	uint64_t all;
	int done = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	must(ranks >= 2, "this takes 2 ranks");
	end += MPI_Wtime();
	for (unsigned int seed = 1; !done; seed++) {
		one_round(seed);
		done = MPI_Wtime() >= end;
		/* Rank 0 says when it is over. */
		MPI_Bcast(&done, 1, MPI_INT, 0, MPI_COMM_WORLD);
	}
	MPI_Reduce(&moved, &all, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
	if (!rank)
		printf("moved %llu bytes\n", (unsigned long long)all);
	MPI_Finalize();
	return 0;
}
