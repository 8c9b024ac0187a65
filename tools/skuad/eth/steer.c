// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What flows compare of a frame, and where it goes by them.
 */
#include <netinet/in.h>
#include <string.h>

#include "base/bytes.h"
#include "core/flow.h"
#include "eth/eth.h"
#include "eth/steer.h"
#include "packet/frame.h"

#define ETHERTYPE_IPV4	0x0800
#define ETHERTYPE_IPV6	0x86dd
#define IPV4_HEADER	20
#define IPV6_HEADER	40
#define IPV4_FRAGMENT	0x3fff		/* more to come, or not the first */
#define PORTS		4		/* bytes of both */

/* RAW-3: headers count if they are there. Lengths that they hold are not looked at. */
static void read_l4(struct skua_flow_key *key, const uint8_t *l4, size_t len)
{
	if (len < PORTS || (key->proto != IPPROTO_TCP && key->proto != IPPROTO_UDP))
		return;
	key->headers |= key->proto == IPPROTO_TCP ? SKUA_FLOW_TCP : SKUA_FLOW_UDP;
	memcpy(&key->src_port, l4, 2);
	memcpy(&key->dst_port, l4 + 2, 2);
}

static void read_ipv4(struct skua_flow_key *key, const uint8_t *ip, size_t len)
{
	size_t header;

	if (len < IPV4_HEADER || ip[0] >> 4 != 4)
		return;
	header = (ip[0] & 15) * 4u;
	if (header < IPV4_HEADER || header > len)
		return;
	key->headers |= SKUA_FLOW_IPV4;
	memcpy(key->src_ip, ip + 12, 4);
	memcpy(key->dst_ip, ip + 16, 4);
	key->tos = ip[1];
	key->ttl = ip[8];
	key->proto = ip[9];
	key->ip_flags = (ip[6] & 0x40 ? SKUA_FLOW_DONT_FRAGMENT : 0) |
			(ip[6] & 0x20 ? SKUA_FLOW_MORE_FRAGMENTS : 0);
	if (!(get16(ip + 6) & IPV4_FRAGMENT))
		read_l4(key, ip + header, len - header);
}

static void read_ipv6(struct skua_flow_key *key, const uint8_t *ip, size_t len)
{
	if (len < IPV6_HEADER || ip[0] >> 4 != 6)
		return;
	key->headers |= SKUA_FLOW_IPV6;
	memcpy(key->src_ip, ip + 8, 16);
	memcpy(key->dst_ip, ip + 24, 16);
	key->flow_label = htobe32(get32(ip) & 0xfffff);
	key->tos = get16(ip) >> 4 & 0xff;
	key->proto = ip[6];
	key->ttl = ip[7];
	read_l4(key, ip + IPV6_HEADER, len - IPV6_HEADER);
}

static union flow_key read_key(const struct seglist *frame)
{
	union flow_key all = { .word = { 0 } };
	struct skua_flow_key *key = &all.key;
	const uint8_t *p = frame->seg[0].p;
	size_t at = FRAME_HEADER;

	memcpy(key->dmac, p, 6);
	memcpy(key->smac, p + 6, 6);
	if (frame_has_tag(p, frame->bytes)) {
		key->headers |= SKUA_FLOW_VLAN;
		memcpy(&key->vlan, p + 14, 2);
		at = FRAME_OVERHEAD;
	}
	memcpy(&key->ether_type, p + at - 2, 2);
	if (be16toh(key->ether_type) == ETHERTYPE_IPV4)
		read_ipv4(key, p + at, frame->bytes - at);
	else if (be16toh(key->ether_type) == ETHERTYPE_IPV6)
		read_ipv6(key, p + at, frame->bytes - at);
	return all;
}

void steer_sniff(struct skua_dev *dev, const struct seglist *frame)
{
	struct flow *flow = TAILQ_FIRST(&dev->sniffers);
	union flow_key key;

	if (!eth_takes(dev, frame))
		return;
	key = read_key(frame);
	for (; (flow = flow_match(dev, flow, &key)); flow = TAILQ_NEXT(flow, entry)) {
		engine_charge_copy(dev->engine, frame->bytes);
		eth_deliver(dev, flow, frame, NULL);
	}
}

bool steer_frame(struct skua_dev *dev, const struct seglist *frame)
{
	union flow_key key = read_key(frame);
	struct flow *flow = flow_match(dev, TAILQ_FIRST(&dev->flows), &key);

	if (flow)
		eth_deliver(dev, flow, frame, NULL);
	return flow;
}

void steer_back(struct skua_qp *qp, const struct seglist *frame)
{
	union flow_key key = read_key(frame);
	struct flow *flow = flow_match(qp->dev, TAILQ_FIRST(&qp->dev->flows), &key);

	while (flow && flow->qp == qp)
		flow = flow_match(qp->dev, TAILQ_NEXT(flow, entry), &key);
	if (!flow || flow->type != SKUA_FLOW_NORMAL)
		return;
	engine_charge_copy(qp->dev->engine, frame->bytes);
	eth_deliver(qp->dev, flow, frame, qp);
}
