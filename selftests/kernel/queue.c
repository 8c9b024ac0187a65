// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * RST-11: what a device cannot have completed. Queues of the netdev and of the kernel's verbs ask
 * the same function; the WQEs here are in no ring.
 */
#include <linux/skua/queue.h>

#include "skua_selftest.h"

#define ST_BLOCKS	16

/* Does a queue with these WQEs take a completion that says, retired up to @end, by @cookie? */
static bool st_expects(u32 ci, const u8 *wqes, unsigned int n, u32 end, u32 cookie)
{
	struct skua_cqe cqe = { .sq_ci = cpu_to_le32(end), .cookie = cpu_to_le32(cookie) };
	u8 nblocks[ST_BLOCKS];
	struct skua_sq sq = { .nblocks = nblocks, .blocks = ST_BLOCKS, .pi = ci, .ci = ci };
	unsigned int i;

	/* Of WQEs that were there before. */
	memset(nblocks, 1, sizeof(nblocks));
	for (i = 0; i < n; i++) {
		nblocks[skua_sq_slot(&sq)] = wqes[i];
		sq.pi += wqes[i];
	}
	return skua_sq_expects(&sq, ci, &cqe);
}

static const char *st_impossible_from(u32 ci)
{
	static const u8 wqes[] = { 1, 3, 2, 4 };
	static const u8 full[] = { 8, 8 };
	u32 end, slot;

	/* The end of each WQE, by its own cookie only. */
	for (end = ci - 2; end != ci + ST_BLOCKS + 2; end++) {
		for (slot = 0; slot < ST_BLOCKS; slot++) {
			u32 first = (slot - ci) & (ST_BLOCKS - 1);
			bool good = (first == 0 && end == ci + 1) ||
				    (first == 1 && end == ci + 4) ||
				    (first == 4 && end == ci + 6) ||
				    (first == 6 && end == ci + 10);

			CHECK(st_expects(ci, wqes, ARRAY_SIZE(wqes), end, slot) == good);
		}
	}
	slot = ci & (ST_BLOCKS - 1);
	CHECK(!st_expects(ci, wqes, 0, ci, slot));
	CHECK(!st_expects(ci, wqes, 0, ci + 1, slot));
	CHECK(!st_expects(ci, wqes, 1, ci + 1, slot + ST_BLOCKS));
	CHECK(st_expects(ci, full, 2, ci + 8, slot));
	CHECK(st_expects(ci, full, 2, ci + ST_BLOCKS, (ci + 8) & (ST_BLOCKS - 1)));
	CHECK(!st_expects(ci, full, 2, ci + ST_BLOCKS, slot));
	return NULL;
}

/* At the beginning, over the end of the ring, and over that of the index. */
const char *st_impossible(struct st_side *side)
{
	static const u32 begins[] = { 0, 13, U32_MAX - 4 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(begins); i++) {
		const char *wrong = st_impossible_from(begins[i]);

		if (wrong)
			return wrong;
	}
	return NULL;
}
