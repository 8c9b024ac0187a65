// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Counter sets (manual: statistics).
 */
#include <stdlib.h>

#include "core/counter.h"
#include "core/transport.h"

static void add(struct device_stats *sum, const struct device_stats *stats)
{
#define STATS_SUM(name) STATS_ADD(sum, name, stats->name);
	SKUA_STATS(STATS_SUM)
#undef STATS_SUM
}

void counter_sum(const struct skua_dev *dev, struct device_stats *sum)
{
	const struct counter_set *set;

	*sum = dev->stats;
	add(sum, &dev->past_stats);
	for (uint32_t i = 0; (set = numtab_next(&dev->counter_sets, &i)); )
		add(sum, &set->stats);
}

int cmd_create_counter_set(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	struct counter_set *set = calloc(1, sizeof(*set));

	if (set)
		set->number = numtab_add(&dev->counter_sets, set);
	if (!set || !set->number) {
		free(set);
		return SKUA_CMD_NO_RESOURCE;
	}
	cpl->number = htole32(set->number);
	return SKUA_CMD_OK;
}

static void set_free(struct skua_dev *dev, struct counter_set *set)
{
	numtab_del(&dev->counter_sets, set->number);
	free(set);
}

int cmd_destroy_counter_set(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	struct counter_set *set = numtab_get(&dev->counter_sets, le32toh(dev->cmdq.cmd.object.number));

	(void)cpl;
	if (!set)
		return SKUA_CMD_BAD_OBJECT;
	if (set->qps)
		return SKUA_CMD_BUSY;
	add(&dev->past_stats, &set->stats);
	set_free(dev, set);
	return SKUA_CMD_OK;
}

int cmd_query_counter_set(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	uint32_t number = le32toh(dev->cmdq.cmd.object.number);
	const struct counter_set *set = numtab_get(&dev->counter_sets, number);

	if (number && !set)
		return SKUA_CMD_BAD_OBJECT;
	return cmd_output_stats(dev, cpl, set ? &set->stats : &dev->stats);
}

int cmd_bind_counter_set(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	const struct skua_cmd_bind_counter_set *in = &dev->cmdq.cmd.bind_set;
	struct counter_set *set = numtab_get(&dev->counter_sets, le32toh(in->number));
	struct skua_qp *qp = numtab_get(&dev->qps, le32toh(in->qpn));

	(void)cpl;
	if (!qp || (in->number && !set))
		return SKUA_CMD_BAD_OBJECT;
	counter_forget_qp(qp);
	if (set) {
		set->qps++;
		qp->counter_set = set;
		qp->stats = &set->stats;
	}
	return SKUA_CMD_OK;
}

void counter_forget_qp(struct skua_qp *qp)
{
	if (qp->counter_set)
		qp->counter_set->qps--;
	qp->counter_set = NULL;
	qp->stats = &qp->dev->stats;
}

bool counter_free_all(struct skua_dev *dev, int32_t *budget)
{
	struct counter_set *set;

	while ((set = numtab_any(&dev->counter_sets, budget))) {
		set_free(dev, set);
		*budget -= FREE_COST;
	}
	return !dev->counter_sets.count;
}
