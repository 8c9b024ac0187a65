// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The port: its settings, GIDs and counters.
 */
#include <string.h>

#include "core/counter.h"
#include "core/qp.h"

int cmd_query_port(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	struct skua_port_attr attr = {
		.link_up = port_is_up(dev->port),
		.max_mtu = htole32(LIMIT_MTU),
		.mtu = htole32(dev->mtu),
		.flags = htole32(dev->port_flags),
		.speed_mbps = htole32(PORT_MBPS),
		.rx_qpn = htole32(dev->rx_qpn),
	};

	memcpy(attr.mac, dev->mac, sizeof(attr.mac));
	memcpy(attr.perm_mac, dev->perm_mac, sizeof(attr.perm_mac));
	return cmd_output(dev, cpl, &attr, sizeof(attr));
}

/* PRT-2, ETH-13: a QP that takes frames, or none. */
static int check_receiver(const struct skua_dev *dev, uint32_t qpn)
{
	const struct skua_qp *qp = numtab_get(&dev->qps, qpn);

	if (!qpn)
		return SKUA_CMD_OK;
	if (!qp)
		return SKUA_CMD_BAD_OBJECT;
	return qp->type == SKUA_QPT_ETH && qp->rq.size ? SKUA_CMD_OK : SKUA_CMD_BAD_PARAM;
}

/* Neither zero nor a group address. */
static bool is_unicast(const uint8_t *mac)
{
	static const uint8_t none[6];

	return !(mac[0] & 1) && memcmp(mac, none, sizeof(none));
}

int cmd_set_port(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	const struct skua_cmd_set_port *in = &dev->cmdq.cmd.set_port;
	uint32_t mask = le32toh(in->mask), mtu = le32toh(in->mtu);
	uint32_t rx_qpn = le32toh(in->rx_qpn);
	int status;

	(void)cpl;
	status = mask & SKUA_PORT_SET_RX_QP ? check_receiver(dev, rx_qpn) : SKUA_CMD_OK;
	if (status == SKUA_CMD_BAD_OBJECT)
		return status;
	if (mask & ~(uint32_t)SKUA_PORT_SET_MASK)
		return SKUA_CMD_BAD_PARAM;
	if (mask & SKUA_PORT_SET_FLAGS && le32toh(in->flags) & ~(uint32_t)SKUA_PORT_F_MASK)
		return SKUA_CMD_BAD_PARAM;
	if (mask & SKUA_PORT_SET_MTU && (mtu < 68 || mtu > LIMIT_MTU))
		return SKUA_CMD_BAD_PARAM;
	if (mask & SKUA_PORT_SET_MAC && !is_unicast(in->mac))
		return SKUA_CMD_BAD_PARAM;
	if (status)
		return status;
	if (mask & SKUA_PORT_SET_MAC && memcmp(in->mac, dev->perm_mac, 6) && !port_may_spoof(dev->port))
		return SKUA_CMD_NOT_PERMITTED;
	if (mask & SKUA_PORT_SET_FLAGS)
		dev->port_flags = le32toh(in->flags);
	if (mask & SKUA_PORT_SET_MTU)
		dev->mtu = mtu;
	if (mask & SKUA_PORT_SET_MAC) {
		memcpy(dev->mac, in->mac, sizeof(dev->mac));
		port_set_mac(dev->port, dev->mac);
	}
	if (mask & SKUA_PORT_SET_RX_QP)
		dev->rx_qpn = rx_qpn;
	return SKUA_CMD_OK;
}

int cmd_output_stats(struct skua_dev *dev, struct skua_cmd_cpl *cpl, const struct device_stats *stats)
{
	struct skua_stats out = { 0 };

#define STATS_OUT(name) out.name = htole64(stats->name);
	SKUA_STATS(STATS_OUT)
#undef STATS_OUT
	return cmd_output(dev, cpl, &out, sizeof(out));
}

int cmd_query_stats(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	struct device_stats sum;

	counter_sum(dev, &sum);
	return cmd_output_stats(dev, cpl, &sum);
}

int cmd_set_gid(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	const struct skua_cmd_set_gid *in = &dev->cmdq.cmd.set_gid;
	static const uint8_t none[16];
	uint16_t vlan = le16toh(in->vlan), index = le16toh(in->index);
	bool set = memcmp(in->gid, none, sizeof(none)) != 0;
	struct gid_entry *e;

	(void)cpl;
	if (index >= LIMIT_GID)
		return SKUA_CMD_BAD_PARAM;
	if (set && ((vlan != SKUA_VLAN_NONE && (!vlan || vlan >= 4095)) || !is_unicast(in->mac)))
		return SKUA_CMD_BAD_PARAM;
	e = &dev->gids[index];
	memcpy(e->gid, in->gid, sizeof(e->gid));
	memcpy(e->mac, in->mac, sizeof(e->mac));
	e->vlan = vlan;
	e->set = set;
	dev->gid_gen++;
	return SKUA_CMD_OK;
}

int cmd_set_rss(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	const struct skua_cmd_set_rss *in = &dev->cmdq.cmd.set_rss;
	struct rss rss;
	int worst = SKUA_CMD_OK;

	(void)cpl;
	for (unsigned int i = 0; i < 1 << SKUA_RSS_MAX_LOG; i++) {
		int status = check_receiver(dev, le32toh(in->qpn[i]));

		if (status == SKUA_CMD_BAD_OBJECT)
			return status;
		if (status)
			worst = status;
		rss.qpn[i] = le32toh(in->qpn[i]);
	}
	if (in->log_size > SKUA_RSS_MAX_LOG)
		return SKUA_CMD_BAD_PARAM;
	rss.mask = (1u << in->log_size) - 1;
	for (unsigned int i = rss.mask + 1; i < 1 << SKUA_RSS_MAX_LOG; i++)
		if (rss.qpn[i])
			return SKUA_CMD_BAD_PARAM;
	if (worst)
		return worst;
	memcpy(rss.key, in->key, sizeof(rss.key));
	dev->rss = rss;
	return SKUA_CMD_OK;
}

void port_forget_qp(struct skua_dev *dev, uint32_t qpn)
{
	if (dev->rx_qpn == qpn)
		dev->rx_qpn = 0;
	for (unsigned int i = 0; i <= dev->rss.mask; i++)
		if (dev->rss.qpn[i] == qpn)
			dev->rss.qpn[i] = 0;
}

void port_reset(struct skua_dev *dev)
{
	memset(dev->gids, 0, sizeof(dev->gids));
	dev->gid_gen++;
	memset(&dev->stats, 0, sizeof(dev->stats));
	memset(&dev->past_stats, 0, sizeof(dev->past_stats));
	dev->port_flags = 0;
	dev->mtu = 1500;
	dev->rx_qpn = 0;
	dev->rss = (struct rss){ 0 };
	memcpy(dev->mac, dev->perm_mac, sizeof(dev->mac));
	port_set_mac(dev->port, dev->mac);
}
