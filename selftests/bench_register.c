// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How long ibv_reg_mr() takes of memory that is present:
 *
 *   bench_register DEVICE MIB [huge]
 *
 * registers as many MiB, of 4 KiB pages or of 2 MiB pages (huge), and deregisters them, ROUNDS times.
 * It prints the microseconds of each registration on a line.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <infiniband/verbs.h>

#define ROUNDS	7

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

static int fails(const char *what)
{
	fprintf(stderr, "bench_register: %s: %s\n", what, strerror(errno));
	return 1;
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	errno = ENODEV;
	for (struct ibv_device **d = list; d && *d; d++)
		if (!strcmp(ibv_get_device_name(*d), name))
			context = ibv_open_device(*d);
	ibv_free_device_list(list);
	return context;
}

int main(int argc, char **argv)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | (argc > 3 ? MAP_HUGETLB : 0);
	struct ibv_context *context;
	struct ibv_pd *pd;
	size_t size;
	void *mem;

	if (argc < 3 || argc > 4 || (argc == 4 && strcmp(argv[3], "huge"))) {
		fputs("usage: bench_register DEVICE MIB [huge]\n", stderr);
		return 2;
	}
	size = strtoul(argv[2], NULL, 0) << 20;
	context = open_device(argv[1]);
	if (!context)
		return fails(argv[1]);
	pd = ibv_alloc_pd(context);
	if (!pd)
		return fails("ibv_alloc_pd");
	mem = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, -1, 0);
	if (mem == MAP_FAILED)
		return fails("mmap");
	/* Else the kernel may make huge pages of small ones. */
	if (argc == 3)
		madvise(mem, size, MADV_NOHUGEPAGE);
	memset(mem, 1, size);
	for (int round = 0; round < ROUNDS; round++) {
		double start = now_us();
		struct ibv_mr *mr = ibv_reg_mr(pd, mem, size, IBV_ACCESS_LOCAL_WRITE);

		if (!mr)
			return fails("ibv_reg_mr");
		printf("%.0f\n", now_us() - start);
		if (ibv_dereg_mr(mr))
			return fails("ibv_dereg_mr");
	}
	ibv_dealloc_pd(pd);
	ibv_close_device(context);
	return 0;
}
