// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The smallest world that still fails in the same way: parts are switched off one at a time, and
 * stay off if the failure stays.
 */
#include <time.h>

#include "harness/sim.h"

struct sim_result sim_world(uint64_t seed, struct sim_off off, const char *pcap, FILE *words)
{
	struct sim *s = malloc(sizeof(*s));
	struct sim_result result;

	assert_non_null(s);
	sim_draw(s, seed, off);
	sim_run(s, pcap);
	if (words)
		sim_describe(words, s);
	result = (struct sim_result){ s->failure, s->cost };
	sim_free(s);
	free(s);
	return result;
}

/*
 * With a part less, other packets suffer, and a failure by chance may not come again. So some draws
 * are tried; the one that fails is kept.
 */
#define SALTS	12
#define SECONDS	20			/* of real time, for all of it */

static time_t give_up_at;

static bool fails(uint64_t seed, struct sim_off *off, const char *kind)
{
	struct sim_off less = *off;

	for (unsigned int i = 0; i < SALTS && time(NULL) < give_up_at; i++) {
		if (!strcmp(sim_world(seed, less, NULL, NULL).failure.kind, kind)) {
			*off = less;
			return true;
		}
		less.salt = (off->salt + i + 1) % 100;
	}
	return false;
}

/* Halves of the QPs first, since most worlds fail with one. */
static void without_qps(uint64_t seed, struct sim_off *off, unsigned int nqps, const char *kind)
{
	for (unsigned int n = SIM_QPS / 2; n; n /= 2) {
		for (unsigned int i = 0; i < nqps; i += n) {
			struct sim_off less = *off;

			less.qps |= ((1ull << n) - 1) << i;
			if (less.qps != off->qps && fails(seed, &less, kind))
				*off = less;
		}
	}
}

static unsigned int count_qps(uint64_t seed)
{
	struct sim *s = malloc(sizeof(*s));
	unsigned int n;

	assert_non_null(s);
	sim_draw(s, seed, (struct sim_off){ 0 });
	n = s->nqps;
	sim_free(s);
	free(s);
	return n;
}

struct sim_off sim_shrink(uint64_t seed, struct sim_off off, const char *kind)
{
	unsigned int nqps = count_qps(seed);
	struct sim_off before;

	give_up_at = time(NULL) + SECONDS;
	if (nqps < SIM_QPS)
		off.qps |= ~0ull << nqps;
	do {
		before = off;
		without_qps(seed, &off, nqps, kind);
		for (unsigned int i = 0; i < SIM_CHECK_ARMED; i++) {
			struct sim_off less = off;

			less.parts |= 1ull << i;
			if (less.parts != off.parts && fails(seed, &less, kind))
				off = less;
		}
	} while (before.parts != off.parts || before.qps != off.qps);
	if (nqps < SIM_QPS)
		off.qps &= ~(~0ull << nqps);
	return off;
}
