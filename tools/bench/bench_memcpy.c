// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * bench_memcpy SIZE...: bytes a second that one core copies between two buffers of a size, as
 * the yardstick for data that a NIC in software moves. Prints one line a size: SIZE BYTES/S.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECONDS 0.5

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	/* Called through a pointer that the compiler does not know, the copy takes place. */
	void *(*volatile copy)(void *, const void *, size_t) = memcpy;

	for (int i = 1; i < argc; i++) {
		size_t size = strtoul(argv[i], NULL, 0);
		uint8_t *from = size ? malloc(size) : NULL, *to = size ? malloc(size) : NULL;
		uint64_t rounds = 0, batch = (1 << 20) / (size ? size : 1) + 1;
		double start, end;

		if (!from || !to) {
			fprintf(stderr, "bench_memcpy: '%s' is no SIZE, or too large\n", argv[i]);
			return 1;
		}
		memset(from, 1, size);
		memset(to, 2, size);
		start = now();
		do {
			for (uint64_t j = 0; j < batch; j++)
				copy(to, from, size);
			rounds += batch;
			end = now();
		} while (end - start < SECONDS);
		printf("%zu %.0f\n", size, (double)rounds * (double)size / (end - start));
		free(from);
		free(to);
	}
	return 0;
}
