// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Flows: their life, and the order in which they are looked at.
 *
 * The device keeps two lists: sniffers, of which each gets a copy, and the others, of which the first that matches
 * decides. That list is in the order of decision: normal flows before default ones, then by priority, then by age. It
 * is short, because a frame may be compared with all of it. Where it is empty, a frame costs a look at its head; and
 * packets of RDMA do not even cost that, because the port calls other functions while there are sniffers.
 */
#include <stdlib.h>
#include <string.h>

#include "core/flow.h"

static bool is_sniffer(const struct flow *flow)
{
	return flow->type == SKUA_FLOW_SNIFFER;
}

static bool matches(const struct flow *flow, const union flow_key *key)
{
	for (unsigned int i = 0; i < FLOW_WORDS; i++)
		if ((key->word[i] & flow->mask.word[i]) != flow->value.word[i])
			return false;
	return true;
}

struct flow *flow_match(struct skua_dev *dev, struct flow *flow, const union flow_key *key)
{
	for (; flow; flow = TAILQ_NEXT(flow, entry)) {
		dev->engine->turn -= LOOK_COST;
		if (matches(flow, key))
			break;
	}
	return flow;
}

/* Does @flow, which is there, come before a new one? */
static bool is_before(const struct flow *flow, const struct flow *new)
{
	return flow->type == new->type ? flow->priority <= new->priority : flow->type < new->type;
}

static void flow_insert(struct skua_dev *dev, struct flow *flow)
{
	struct flow *next;

	LIST_INSERT_HEAD(&flow->qp->flows, flow, of_qp);
	if (is_sniffer(flow)) {
		TAILQ_INSERT_TAIL(&dev->sniffers, flow, entry);
		dev->num_sniffers++;
		port_set_ops(dev->port, dev->sniffed_ops);
		return;
	}
	TAILQ_FOREACH(next, &dev->flows, entry)
		if (!is_before(next, flow))
			break;
	if (next)
		TAILQ_INSERT_BEFORE(next, flow, entry);
	else
		TAILQ_INSERT_TAIL(&dev->flows, flow, entry);
}

static void flow_destroy(struct skua_dev *dev, struct flow *flow)
{
	LIST_REMOVE(flow, of_qp);
	if (is_sniffer(flow)) {
		TAILQ_REMOVE(&dev->sniffers, flow, entry);
		if (!--dev->num_sniffers)
			port_set_ops(dev->port, dev->port_ops);
	} else {
		TAILQ_REMOVE(&dev->flows, flow, entry);
	}
	numtab_del(&dev->flow_numbers, flow->number);
	free(flow);
}

void flow_forget_qp(struct skua_qp *qp)
{
	struct flow *flow;

	while ((flow = LIST_FIRST(&qp->flows)))
		flow_destroy(qp->dev, flow);
}

static bool key_valid(const struct skua_flow_key *key)
{
	static const struct skua_flow_key zero;

	return !memcmp(key->rsvd, zero.rsvd, sizeof(zero.rsvd)) && !(key->headers & ~SKUA_FLOW_HEADERS) &&
	       !(key->ip_flags & ~SKUA_FLOW_IP_FLAGS) && be32toh(key->flow_label) <= 0xfffff;
}

/* RAW-6: nothing but what can be compared, and no value outside of the mask, which no frame would have. */
static bool rule_valid(const struct skua_cmd_create_flow *in)
{
	const uint8_t *value = (const void *)&in->value, *mask = (const void *)&in->mask;

	for (unsigned int i = 0; i < sizeof(in->value); i++)
		if (value[i] & ~mask[i])
			return false;
	return key_valid(&in->mask);
}

int cmd_create_flow(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	const struct skua_cmd_create_flow *in = &dev->cmdq.cmd.flow;
	struct skua_qp *qp = numtab_get(&dev->qps, le32toh(in->qpn));
	struct flow *flow;

	if (!qp)
		return SKUA_CMD_BAD_OBJECT;
	if (qp->type != SKUA_QPT_ETH || !qp->rq.size || in->type > SKUA_FLOW_SNIFFER || !rule_valid(in))
		return SKUA_CMD_BAD_PARAM;
	if (in->type == SKUA_FLOW_SNIFFER && dev->num_sniffers == LIMIT_SNIFFER)
		return SKUA_CMD_NO_RESOURCE;
	flow = calloc(1, sizeof(*flow));
	if (flow)
		flow->number = numtab_add(&dev->flow_numbers, flow);
	if (!flow || !flow->number) {
		free(flow);
		return SKUA_CMD_NO_RESOURCE;
	}
	flow->type = in->type;
	flow->priority = le16toh(in->priority);
	flow->qp = qp;
	flow->value.key = in->value;
	flow->mask.key = in->mask;
	flow_insert(dev, flow);
	cpl->number = htole32(flow->number);
	return SKUA_CMD_OK;
}

int cmd_destroy_flow(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	struct flow *flow = numtab_get(&dev->flow_numbers, le32toh(dev->cmdq.cmd.object.number));

	(void)cpl;
	if (!flow)
		return SKUA_CMD_BAD_OBJECT;
	flow_destroy(dev, flow);
	return SKUA_CMD_OK;
}
