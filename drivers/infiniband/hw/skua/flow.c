// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Flows: frames that raw packet QPs receive. Specs of verbs, one for each layer of headers, become
 * one value and one mask of the device.
 *
 * The core saw to CAP_NET_RAW. A flow that takes whatever comes, or gets copies of it, needs
 * CAP_NET_ADMIN, too, because the host's own traffic is among it.
 */
#include <linux/capability.h>
#include <linux/slab.h>
#include <linux/string.h>

#include <linux/skua/command.h>

#include "compat.h"
#include "flow.h"
#include "rss.h"
#include "skua_ib.h"

static_assert(SKUA_FLOW_DONT_FRAGMENT == IB_IPV4_DONT_FRAG);
static_assert(SKUA_FLOW_MORE_FRAGMENTS == IB_IPV4_MORE_FRAG);

static void skua_ib_flow_needs(struct skua_flow_params *params, u8 headers)
{
	params->value.headers |= headers;
	params->mask.headers |= headers;
}

static void skua_ib_flow_eth_key(struct skua_flow_key *key, const struct ib_flow_eth_filter *filter)
{
	memcpy(key->dmac, filter->dst_mac, sizeof(key->dmac));
	memcpy(key->smac, filter->src_mac, sizeof(key->smac));
	key->ether_type = filter->ether_type;
	key->vlan = filter->vlan_tag;
}

static int skua_ib_flow_eth(struct skua_flow_params *params, const union ib_flow_spec *spec)
{
	skua_ib_flow_eth_key(&params->value, &spec->eth.val);
	skua_ib_flow_eth_key(&params->mask, &spec->eth.mask);
	if (spec->eth.mask.vlan_tag)
		skua_ib_flow_needs(params, SKUA_FLOW_VLAN);
	return 0;
}

static void skua_ib_flow_ipv4_key(struct skua_flow_key *key,
				  const struct ib_flow_ipv4_filter *filter)
{
	memcpy(key->src_ip, &filter->src_ip, sizeof(filter->src_ip));
	memcpy(key->dst_ip, &filter->dst_ip, sizeof(filter->dst_ip));
	key->proto = filter->proto;
	key->tos = filter->tos;
	key->ttl = filter->ttl;
	key->ip_flags = filter->flags;
}

static int skua_ib_flow_ipv4(struct skua_flow_params *params, const union ib_flow_spec *spec)
{
	if (spec->ipv4.mask.flags & ~SKUA_FLOW_IP_FLAGS)
		return -EOPNOTSUPP;
	skua_ib_flow_ipv4_key(&params->value, &spec->ipv4.val);
	skua_ib_flow_ipv4_key(&params->mask, &spec->ipv4.mask);
	skua_ib_flow_needs(params, SKUA_FLOW_IPV4);
	return 0;
}

static void skua_ib_flow_ipv6_key(struct skua_flow_key *key,
				  const struct ib_flow_ipv6_filter *filter)
{
	memcpy(key->src_ip, filter->src_ip, sizeof(key->src_ip));
	memcpy(key->dst_ip, filter->dst_ip, sizeof(key->dst_ip));
	key->flow_label = filter->flow_label;
	key->proto = filter->next_hdr;
	key->tos = filter->traffic_class;
	key->ttl = filter->hop_limit;
}

static int skua_ib_flow_ipv6(struct skua_flow_params *params, const union ib_flow_spec *spec)
{
	skua_ib_flow_ipv6_key(&params->value, &spec->ipv6.val);
	skua_ib_flow_ipv6_key(&params->mask, &spec->ipv6.mask);
	skua_ib_flow_needs(params, SKUA_FLOW_IPV6);
	return 0;
}

static int skua_ib_flow_ports(struct skua_flow_params *params, const union ib_flow_spec *spec)
{
	params->value.src_port = spec->tcp_udp.val.src_port;
	params->value.dst_port = spec->tcp_udp.val.dst_port;
	params->mask.src_port = spec->tcp_udp.mask.src_port;
	params->mask.dst_port = spec->tcp_udp.mask.dst_port;
	skua_ib_flow_needs(params,
			   spec->type == IB_FLOW_SPEC_TCP ? SKUA_FLOW_TCP : SKUA_FLOW_UDP);
	return 0;
}

static int skua_ib_flow_tag(struct skua_flow_params *params, const union ib_flow_spec *spec)
{
	params->tag = spec->flow_tag.tag_id;
	return 0;
}

static const struct {
	enum ib_flow_spec_type type;
	int (*read)(struct skua_flow_params *params, const union ib_flow_spec *spec);
} skua_ib_flow_specs[] = {
	{ IB_FLOW_SPEC_ETH, skua_ib_flow_eth },
	{ IB_FLOW_SPEC_IPV4, skua_ib_flow_ipv4 },
	{ IB_FLOW_SPEC_IPV6, skua_ib_flow_ipv6 },
	{ IB_FLOW_SPEC_TCP, skua_ib_flow_ports },
	{ IB_FLOW_SPEC_UDP, skua_ib_flow_ports },
	{ IB_FLOW_SPEC_ACTION_TAG, skua_ib_flow_tag },
};

static int skua_ib_flow_spec(struct skua_flow_params *params, const union ib_flow_spec *spec)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(skua_ib_flow_specs); i++)
		if (skua_ib_flow_specs[i].type == spec->type)
			return skua_ib_flow_specs[i].read(params, spec);
	return -EOPNOTSUPP;
}

/* A frame has one header of a layer, and a flow one tag. Specs follow each other without gaps. */
static int skua_ib_flow_read_specs(struct skua_flow_params *params, const struct ib_flow_attr *attr)
{
	const union ib_flow_spec *spec = attr->flows;
	u32 layers = 0;
	unsigned int i;
	int err;

	for (i = 0; i < attr->num_of_specs; i++) {
		u32 layer = BIT((spec->type & IB_FLOW_SPEC_LAYER_MASK) >> 4);

		err = skua_ib_flow_spec(params, spec);
		if (err)
			return err;
		if (layers & layer)
			return -EINVAL;
		layers |= layer;
		spec = (const void *)spec + spec->size;
	}
	return 0;
}

/* A program may leave anything in bits that are not compared. */
static void skua_ib_flow_apply_mask(struct skua_flow_params *params)
{
	const u8 *mask = (const u8 *)&params->mask;
	u8 *value = (u8 *)&params->value;
	unsigned int i;

	for (i = 0; i < sizeof(params->mask); i++)
		value[i] &= mask[i];
}

static bool skua_ib_flow_takes_all(const struct skua_flow_params *params)
{
	return params->type != SKUA_FLOW_NORMAL ||
	       !memchr_inv(&params->mask, 0, sizeof(params->mask));
}

static int skua_ib_flow_to_hw(const struct ib_flow_attr *attr, struct skua_flow_params *params)
{
	/* Those that go on to other flows, and those of frames that are sent. */
	if (attr->flags)
		return -EOPNOTSUPP;
	if (attr->type != IB_FLOW_ATTR_NORMAL && attr->num_of_specs)
		return -EINVAL;
	params->priority = attr->priority;
	switch (attr->type) {
	case IB_FLOW_ATTR_NORMAL:
		params->type = SKUA_FLOW_NORMAL;
		return skua_ib_flow_read_specs(params, attr);
	case IB_FLOW_ATTR_MC_DEFAULT:
		params->value.dmac[0] = 1;
		params->mask.dmac[0] = 1;
		fallthrough;
	case IB_FLOW_ATTR_ALL_DEFAULT:
		params->type = SKUA_FLOW_DEFAULT;
		return 0;
	case IB_FLOW_ATTR_SNIFFER:
		params->type = SKUA_FLOW_SNIFFER;
		return 0;
	default:
		return -EINVAL;
	}
}

struct ib_flow *skua_ib_create_flow(struct ib_qp *ibqp, struct ib_flow_attr *attr,
				    struct ib_udata *udata)
{
	struct skua_flow_params params = {};
	struct skua_ib_flow *flow;
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return ERR_PTR(err);
	if (ibqp->qp_type != IB_QPT_RAW_PACKET)
		return ERR_PTR(-EOPNOTSUPP);
	if (skua_ib_is_rss(ibqp))
		params.rssn = ibqp->qp_num;
	else
		params.qpn = ibqp->qp_num;
	err = skua_ib_flow_to_hw(attr, &params);
	if (err)
		return ERR_PTR(err);
	skua_ib_flow_apply_mask(&params);
	if (skua_ib_flow_takes_all(&params) && !capable(CAP_NET_ADMIN))
		return ERR_PTR(-EPERM);

	flow = kzalloc(sizeof(*flow), GFP_KERNEL);
	if (!flow)
		return ERR_PTR(-ENOMEM);
	err = skua_cmd_create_flow(to_skua_dev(ibqp->device), &params, &flow->number);
	if (err) {
		kfree(flow);
		return ERR_PTR(err);
	}
	return &flow->ibflow;
}

int skua_ib_destroy_flow(struct ib_flow *ibflow)
{
	struct skua_ib_flow *flow = to_skua_ib_flow(ibflow);

	skua_cmd_destroy_flow(to_skua_dev(ibflow->device), flow->number);
	kfree(flow);
	return 0;
}
