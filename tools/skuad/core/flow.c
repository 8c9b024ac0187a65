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

	if (flow->qp)
		LIST_INSERT_HEAD(&flow->qp->flows, flow, of_qp);
	else
		flow->rss->refs++;
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
	if (flow->qp)
		LIST_REMOVE(flow, of_qp);
	else
		flow->rss->refs--;
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

static bool is_receiver(const struct skua_qp *qp)
{
	return qp->type == SKUA_QPT_ETH && qp->rq.size;
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
	struct rss_object *rss = numtab_get(&dev->rsss, le32toh(in->rssn));
	struct flow *flow;

	if ((in->qpn && !qp) || (in->rssn && !rss))
		return SKUA_CMD_BAD_OBJECT;
	if (!in->qpn == !in->rssn || (qp && !is_receiver(qp)) || in->type > SKUA_FLOW_SNIFFER || !rule_valid(in))
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
	flow->tag = le32toh(in->tag);
	flow->qp = qp;
	flow->rss = rss;
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

struct skua_qp *rss_target(const struct skua_dev *dev, const struct rss_object *rss, uint32_t hash)
{
	const struct rss_entry *entry = &rss->entry[hash & rss->mask];
	struct skua_qp *qp = numtab_get(&dev->qps, entry->qpn);

	return qp && qp->serial == entry->serial ? qp : NULL;
}

/* RAW-13: a status, and the table. */
static int read_table(const struct skua_dev *dev, const struct skua_cmd_create_rss *in, struct rss_object *rss)
{
	int status = SKUA_CMD_OK;

	if (in->log_size > SKUA_RSS_MAX_LOG)
		return SKUA_CMD_BAD_PARAM;
	rss->mask = (1u << in->log_size) - 1;
	for (unsigned int i = 0; i < 1 << SKUA_RSS_MAX_LOG; i++) {
		uint32_t qpn = le32toh(in->qpn[i]);
		const struct skua_qp *qp = numtab_get(&dev->qps, qpn);

		if (i <= rss->mask && !qp)
			return SKUA_CMD_BAD_OBJECT;
		if (i <= rss->mask ? !is_receiver(qp) : qpn)
			status = SKUA_CMD_BAD_PARAM;
		if (qp)
			rss->entry[i] = (struct rss_entry){ qpn, qp->serial };
	}
	return status;
}

int cmd_create_rss(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	const struct skua_cmd_create_rss *in = &dev->cmdq.cmd.rss;
	struct rss_object table = { .fields = le32toh(in->fields) }, *rss;
	int status = read_table(dev, in, &table);

	if (status)
		return status;
	if (table.fields & ~(uint32_t)SKUA_HASH_MASK)
		return SKUA_CMD_BAD_PARAM;
	rss = malloc(sizeof(*rss));
	if (rss) {
		*rss = table;
		rss->number = numtab_add(&dev->rsss, rss);
	}
	if (!rss || !rss->number) {
		free(rss);
		return SKUA_CMD_NO_RESOURCE;
	}
	memcpy(rss->key, in->key, sizeof(rss->key));
	cpl->number = htole32(rss->number);
	return SKUA_CMD_OK;
}

static void rss_destroy(struct skua_dev *dev, struct rss_object *rss)
{
	numtab_del(&dev->rsss, rss->number);
	free(rss);
}

int cmd_destroy_rss(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	struct rss_object *rss = numtab_get(&dev->rsss, le32toh(dev->cmdq.cmd.object.number));

	(void)cpl;
	if (!rss)
		return SKUA_CMD_BAD_OBJECT;
	if (rss->refs)
		return SKUA_CMD_BUSY;
	rss_destroy(dev, rss);
	return SKUA_CMD_OK;
}

bool flow_free_all(struct skua_dev *dev, int32_t *budget)
{
	struct rss_object *rss;
	struct flow *flow;

	while ((flow = numtab_any(&dev->flow_numbers, budget))) {
		flow_destroy(dev, flow);
		*budget -= FREE_COST;
	}
	while (!dev->flow_numbers.count && (rss = numtab_any(&dev->rsss, budget))) {
		rss_destroy(dev, rss);
		*budget -= FREE_COST;
	}
	return !dev->flow_numbers.count && !dev->rsss.count;
}
