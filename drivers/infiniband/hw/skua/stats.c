// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Counters, by the names that the manual gives them.
 */
#include <linux/skua/command.h>

#include "skua_ib.h"

static const struct rdma_stat_desc skua_ib_stats[] = {
#define SKUA_IB_STAT(counter) { .name = #counter },
	SKUA_STATS(SKUA_IB_STAT)
#undef SKUA_IB_STAT
};

struct rdma_hw_stats *skua_ib_alloc_hw_port_stats(struct ib_device *ibdev, u32 port)
{
	return rdma_alloc_hw_stats_struct(skua_ib_stats, ARRAY_SIZE(skua_ib_stats),
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

int skua_ib_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port,
			 int index)
{
	struct skua_stats counters;
	const __le64 *values = (const __le64 *)&counters;
	unsigned int i;
	int err;

	err = skua_cmd_query_stats(to_skua_dev(ibdev), &counters);
	if (err)
		return err;
	for (i = 0; i < ARRAY_SIZE(skua_ib_stats); i++)
		stats->value[i] = le64_to_cpu(values[i]);
	return ARRAY_SIZE(skua_ib_stats);
}
