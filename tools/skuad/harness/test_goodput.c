// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What losses may cost: the rate of SEND, WRITE and READ over links that lose packets by chance, lose many in a
 * row, or reorder them (lossy.h), as shares of the rate of the same link without. bench_goodput prints the
 * figures, with more seeds.
 *
 * A share is the mean over seeds 1 to SKUA_SEEDS (4); SKUA_GOODPUT_MIB (32): how much each seed sends, twice
 * as much where 0.1% are lost.
 */
#include <stdio.h>

#include "harness/lossy.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define BURST		64u	/* packets */
#define BURST_TRIPS	4.0	/* round trips until the rate is back */

static const struct { uint8_t opcode; const char *name; } opcodes[] = {
	{ SKUA_WQE_SEND, "SEND" }, { SKUA_WQE_WRITE, "WRITE" }, { SKUA_WQE_READ, "READ" } };
static const uint8_t mtus[] = { 3, 5 };

static unsigned int number(const char *name, unsigned int otherwise)
{
	const char *text = getenv(name);

	return text ? (unsigned int)strtoul(text, NULL, 0) : otherwise;
}

static struct goodput begin(size_t opcode, size_t mtu, bool go_back_n)
{
	return (struct goodput){
		.opcode = opcodes[opcode].opcode, .path_mtu = mtus[mtu], .go_back_n = go_back_n, .loss = "0",
		.seed = 1, .total = (uint64_t)number("SKUA_GOODPUT_MIB", 32) << 20,
	};
}

/* Of the same stream without loss. */
static double mean_share(struct goodput g, const char *loss, unsigned int longer)
{
	unsigned int seeds = number("SKUA_SEEDS", 4);
	double whole, sum = 0;

	g.total *= longer;
	whole = goodput(&g);
	assert_true(whole > 0);
	g.loss = loss;
	for (g.seed = 1; g.seed <= seeds; g.seed++)
		sum += goodput(&g) / whole;
	return sum / seeds;
}

/* All that is too little is shown before the test fails. */
static unsigned int short_of(double share, double want, size_t opcode, size_t mtu, const char *what)
{
	if (share >= want)
		return 0;
	print_error("%s, path MTU %u, %s: %.1f%%, not %.1f%%\n", opcodes[opcode].name, 128u << mtus[mtu], what,
		    100 * share, 100 * want);
	return 1;
}

static void selective_repeat_keeps_the_rate(void **state)
{
	static const struct { const char *loss; double share; unsigned int longer; } want[] = {
		{ "0.1", 0.99, 2 }, { "1", 0.97, 1 }, { "5", 0.92, 2 } };
	unsigned int bad = 0;
	char what[32];

	(void)state;
	for (size_t o = 0; o < ARRAY_SIZE(opcodes); o++)
		for (size_t m = 0; m < ARRAY_SIZE(mtus); m++)
			for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
				double share = mean_share(begin(o, m, false), want[i].loss, want[i].longer);

				snprintf(what, sizeof(what), "%s%% lost", want[i].loss);
				bad += short_of(share, want[i].share, o, m, what);
			}
	assert_int_equal(bad, 0);
}

/* As it was before loss recovery followed RFC 9002, or better. */
static void going_back_is_no_slower_than_it_was(void **state)
{
	static const double least[ARRAY_SIZE(opcodes)][ARRAY_SIZE(mtus)] = {
		{ 0.60, 0.76 }, { 0.60, 0.76 }, { 0.48, 0.66 } };
	unsigned int bad = 0;

	(void)state;
	for (size_t o = 0; o < ARRAY_SIZE(opcodes); o++)
		for (size_t m = 0; m < ARRAY_SIZE(mtus); m++)
			bad += short_of(mean_share(begin(o, m, true), "1", 1), least[o][m], o, m,
					"1% lost, go-back-N");
	assert_int_equal(bad, 0);
}

static void a_burst_costs_four_round_trips(void **state)
{
	unsigned int seeds = number("SKUA_SEEDS", 4), bad = 0;

	(void)state;
	for (size_t o = 0; o < ARRAY_SIZE(opcodes); o++)
		for (size_t m = 0; m < ARRAY_SIZE(mtus); m++) {
			struct goodput g = begin(o, m, false);

			for (; g.seed <= seeds; g.seed++) {
				double trips = burst_recovery(&g, BURST);

				if (trips >= 0 && trips <= BURST_TRIPS)
					continue;
				print_error("%s, path MTU %u, seed %u: %.1f round trips\n", opcodes[o].name,
					    128u << mtus[m], g.seed, trips);
				bad++;
			}
		}
	assert_int_equal(bad, 0);
}

static void reordering_costs_a_tenth(void **state)
{
	unsigned int seeds = number("SKUA_SEEDS", 4), bad = 0;

	(void)state;
	for (size_t o = 0; o < ARRAY_SIZE(opcodes); o++)
		for (size_t m = 0; m < ARRAY_SIZE(mtus); m++) {
			struct goodput g = begin(o, m, false);
			double sum = 0, sum_twice = 0, twice;
			char what[64];

			for (; g.seed <= seeds; g.seed++) {
				sum += reordered_share(&g, "5", &twice);
				sum_twice += twice;
			}
			snprintf(what, sizeof(what), "5%% a round trip late (%.1f%% sent twice)",
				 100 * sum_twice / seeds);
			bad += short_of(sum / seeds, 0.9, o, m, what);
		}
	assert_int_equal(bad, 0);
}

/* A machine that others use, too, stops now and then: that is no queue, for READs neither. */
static void pauses_cost_reads_no_more_than_writes(void **state)
{
	const size_t write = 1, read = 2;
	unsigned int bad = 0;

	(void)state;
	for (size_t m = 0; m < ARRAY_SIZE(mtus); m++) {
		double rate[ARRAY_SIZE(opcodes)];

		for (size_t o = write; o <= read; o++) {
			struct goodput g = begin(o, m, false);

			g.loss = "2";
			g.pause = 2000;
			rate[o] = goodput(&g);
		}
		assert_true(rate[write] > 0);
		bad += short_of(rate[read] / rate[write], 0.9, read, m, "2% lost and pauses, of WRITE");
	}
	assert_int_equal(bad, 0);
}

#define ALONE(f, rules)	{ rules ": " #f, f, NULL, NULL, NULL }

int main(void)
{
	const struct CMUnitTest tests[] = {
		ALONE(selective_repeat_keeps_the_rate, "REP-7 REP-9 REP-13 ROC-17 REC-5 CNG-13"),
		ALONE(going_back_is_no_slower_than_it_was, "ROC-10 ROC-13 ROC-18 REC-9 REC-11"),
		ALONE(a_burst_costs_four_round_trips, "REP-7 REP-9 ROC-19 CNG-15"),
		ALONE(pauses_cost_reads_no_more_than_writes, "CNG-13"),
		ALONE(reordering_costs_a_tenth, "REP-5 REP-7 REP-9 REP-15 REC-6 REC-7 REC-8 CNG-17"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
