// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What loss costs: RC WRITEs of 64 KiB over a link that loses packets of both directions by
 * chance (lossy.h). A line for each peer, path MTU and loss: PEER PMTU LOSS BYTES/S SHARE, where
 * SHARE is that of what the same link carries without loss.
 *
 *   bench_goodput [MIB [SEED]]
 */
#include <stdio.h>

#include "core/log.h"
#include "harness/lossy.h"

int main(int argc, char **argv)
{
	static const char *const peers[] = { "selective-repeat", "go-back-n" };
	static const struct { uint8_t code; uint32_t bytes; } mtus[] = { { 3, 1024 }, { 5, 4096 } };
	static const char *const losses[] = { "0", "0.1", "1", "5" };
	uint64_t total = (argc > 1 ? strtoull(argv[1], NULL, 0) : 256) << 20;
	unsigned int seed = argc > 2 ? (unsigned int)strtoul(argv[2], NULL, 0) : 1;

	log_set_level(LOG_LEVEL_ERR);
	for (size_t p = 0; p < 2; p++) {
		for (size_t m = 0; m < 2; m++) {
			double whole = 0, rate;

			for (size_t l = 0; l < 4; l++) {
				rate = goodput(total, mtus[m].code, losses[l], seed, p);
				if (!l)
					whole = rate;
				printf("%s %u %s%% %.0f %.1f%%\n", peers[p], mtus[m].bytes, losses[l],
				       rate, 100 * rate / whole);
				fflush(stdout);
			}
		}
	}
	return 0;
}
