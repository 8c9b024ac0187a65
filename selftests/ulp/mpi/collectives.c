// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Collectives of all ranks: allreduce, alltoall, allgather, broadcast, reduce_scatter. */
#include "verified.h"

#define MOST	(1u << 18)	/* elements of 8 bytes */

static const unsigned int counts[] = { 1, 100, 5000, MOST };
static int64_t *out, *in;

static int64_t element(unsigned int seed, int of, unsigned int at)
{
	return (int64_t)seed * 1000003 + of * 1009 + at;
}

/* The elements of all ranks at one place, together. */
static int64_t sum(unsigned int seed, unsigned int at)
{
	int64_t total = 0;

	for (int of = 0; of < ranks; of++)
		total += element(seed, of, at);
	return total;
}

static void same(int64_t got, int64_t wanted, const char *name, unsigned int at)
{
	if (got != wanted)
		fprintf(stderr, "rank %d: element %u of %s is %lld, not %lld\n", rank, at, name, (long long)got,
			(long long)wanted);
	must(got == wanted, name);
}

static void mine(unsigned int seed, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		out[i] = element(seed, rank, i);
}

static void allreduce(unsigned int seed, unsigned int count)
{
	mine(seed, count);
	MPI_Allreduce(out, in, count, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
	for (unsigned int i = 0; i < count; i++)
		same(in[i], sum(seed, i), "allreduce", i);
	moved += count * 8ull;
}

/* Elements @rank * each and what follows, of every rank. */
static void alltoall(unsigned int seed, unsigned int count)
{
	unsigned int each = (count + ranks - 1) / ranks;

	mine(seed, each * ranks);
	MPI_Alltoall(out, each, MPI_INT64_T, in, each, MPI_INT64_T, MPI_COMM_WORLD);
	for (int from = 0; from < ranks; from++)
		for (unsigned int i = 0; i < each; i++)
			same(in[from * each + i], element(seed, from, rank * each + i), "alltoall", from * each + i);
	moved += each * (ranks - 1) * 8ull;
}

static void allgather(unsigned int seed, unsigned int count)
{
	unsigned int each = (count + ranks - 1) / ranks;

	mine(seed, each);
	MPI_Allgather(out, each, MPI_INT64_T, in, each, MPI_INT64_T, MPI_COMM_WORLD);
	for (int from = 0; from < ranks; from++)
		for (unsigned int i = 0; i < each; i++)
			same(in[from * each + i], element(seed, from, i), "allgather", from * each + i);
	moved += each * 8ull;
}

static void broadcast(unsigned int seed, unsigned int count)
{
	int root = seed % ranks;

	mine(seed, count);
	MPI_Bcast(out, count, MPI_INT64_T, root, MPI_COMM_WORLD);
	for (unsigned int i = 0; i < count; i++)
		same(out[i], element(seed, root, i), "broadcast", i);
}

static void reduce_scatter(unsigned int seed, unsigned int count)
{
	unsigned int each = (count + ranks - 1) / ranks;

	mine(seed, each * ranks);
	MPI_Reduce_scatter_block(out, in, each, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
	for (unsigned int i = 0; i < each; i++)
		same(in[i], sum(seed, rank * each + i), "reduce_scatter", i);
}

static const struct {
	const char *name;
	void (*run)(unsigned int seed, unsigned int count);
} collectives[] = {
	{ "allreduce", allreduce }, { "alltoall", alltoall }, { "allgather", allgather },
	{ "broadcast", broadcast }, { "reduce_scatter", reduce_scatter },
};

static void one_round(unsigned int seed)
{
	for (unsigned int i = 0; i < sizeof(collectives) / sizeof(*collectives); i++) {
		for (unsigned int k = 0; k < sizeof(counts) / sizeof(*counts); k++) {
			double start;
			char name[48];

			if (seed == 1)	/* connects, which is not timed */
				collectives[i].run(seed * 10 + k, counts[k]);
			start = MPI_Wtime();
			collectives[i].run(seed * 10 + k, counts[k]);
			if (seed > 1)
				continue;
			snprintf(name, sizeof(name), "%s, %u B", collectives[i].name, counts[k] * 8);
			show(name, (MPI_Wtime() - start) * 1e6, "us");
		}
	}
}

int main(int argc, char **argv)
{
	/* One element more for each rank, where a count is rounded up. */
	out = allocate((MOST + 4096) * 8);
	in = allocate((MOST + 4096) * 8);
	return rounds(argc, argv, one_round);
}
