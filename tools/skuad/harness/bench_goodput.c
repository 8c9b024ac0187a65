// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What loss, burst loss and reordering cost: RC messages over links of lossy.h. A line for each case:
 *
 *   loss PEER OPCODE PMTU PERCENT BYTES/S MEAN% LEAST%		shares of the same link without loss
 *   burst PEER OPCODE PMTU 64 MEAN WORST			round trips until 90% of the rate is back
 *   reorder PEER OPCODE PMTU 5 SHARE% TWICE%			of the rate without; packets sent twice
 *
 * MEAN, LEAST and WORST are over the seeds. A seed whose stream failed or stopped counts as 0, and as
 * "never" for a burst; its number is printed as "failed" then.
 *
 *   bench_goodput [MIB [SEEDS [BYTES]]]
 *
 * MIB: for each seed; ten times as many where 0.1% are lost. BYTES: of a message.
 */
#include <stdio.h>

#include "base/log.h"
#include "harness/lossy.h"

static const struct { uint8_t opcode; const char *name; } opcodes[] = {
	{ SKUA_WQE_SEND, "send" }, { SKUA_WQE_WRITE, "write" }, { SKUA_WQE_READ, "read" } };
static const struct { uint8_t code; uint32_t bytes; } mtus[] = { { 3, 1024 }, { 5, 4096 } };
static const char *const peers[] = { "selective-repeat", "go-back-n" };

static void loss(struct goodput g, const char *what, unsigned int seeds)
{
	static const struct { const char *percent; unsigned int longer; } losses[] = {
		{ "0", 1 }, { "0.1", 10 }, { "1", 1 }, { "5", 1 } };
	uint64_t total = g.total;
	double whole = 0;

	for (size_t l = 0; l < sizeof(losses) / sizeof(losses[0]); l++) {
		double sum = 0, least = 0;
		unsigned int failed = 0, n = l ? seeds : 1;

		g.loss = losses[l].percent;
		g.total = total * losses[l].longer;
		for (g.seed = 1; g.seed <= n; g.seed++) {
			double rate = goodput(&g);

			sum += rate;
			failed += rate <= 0;
			if (g.seed == 1 || rate < least)
				least = rate;
		}
		if (!l)
			whole = sum;
		printf("loss %s %s%% %.0f %.1f%% %.1f%%", what, g.loss, sum / n, 100 * sum / n / whole,
		       100 * least / whole);
		if (failed)
			printf(" %u failed", failed);
		printf("\n");
		fflush(stdout);
	}
}

static void burst(struct goodput g, const char *what, unsigned int seeds)
{
	double sum = 0, worst = 0;
	unsigned int never = 0;

	for (g.seed = 1; g.seed <= seeds; g.seed++) {
		double trips = burst_recovery(&g, 64);

		if (trips < 0)
			never++;
		else
			sum += trips;
		worst = trips > worst ? trips : worst;
	}
	printf("burst %s 64 %.1f %.1f", what, never < seeds ? sum / (seeds - never) : 0, worst);
	if (never)
		printf(" %u never", never);
	printf("\n");
	fflush(stdout);
}

static void reorder(struct goodput g, const char *what, unsigned int seeds)
{
	double sum = 0, sum_twice = 0, twice;

	for (g.seed = 1; g.seed <= seeds; g.seed++) {
		sum += reordered_share(&g, "5", &twice);
		sum_twice += twice;
	}
	printf("reorder %s 5%% %.1f%% %.1f%%\n", what, 100 * sum / seeds, 100 * sum_twice / seeds);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	uint64_t total = (argc > 1 ? strtoull(argv[1], NULL, 0) : 128) << 20;
	unsigned int seeds = argc > 2 ? (unsigned int)strtoul(argv[2], NULL, 0) : 10;
	struct goodput g = { .total = total, .len = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 0) : 0 };

	log_set_level(LOG_LEVEL_ERR);
	for (int p = 0; p < 2; p++)
		for (size_t o = 0; o < 3; o++)
			for (size_t m = 0; m < 2; m++) {
				char what[64];

				g.go_back_n = p;
				g.opcode = opcodes[o].opcode;
				g.path_mtu = mtus[m].code;
				snprintf(what, sizeof(what), "%s %s %u", peers[p], opcodes[o].name, mtus[m].bytes);
				loss(g, what, seeds);
				burst(g, what, seeds);
				reorder(g, what, seeds);
			}
	return 0;
}
