// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * ethtool: who the driver is, the link, ring sizes, and the device's counters by the names that
 * the manual gives them.
 */
#include <linux/ethtool.h>

#include <linux/skua/command.h>

#include "eth.h"

static const char * const skua_stat_names[] = {
#define SKUA_STAT_NAME(name) #name,
	SKUA_STATS(SKUA_STAT_NAME)
#undef SKUA_STAT_NAME
};

static void skua_get_drvinfo(struct net_device *netdev, struct ethtool_drvinfo *info)
{
	struct skua_eth *eth = netdev_priv(netdev);
	u32 version = eth->nic->dev.limits.fw_version;

	strscpy(info->driver, SKUA_NAME, sizeof(info->driver));
	snprintf(info->fw_version, sizeof(info->fw_version), "%u.%u", version >> 16,
		 version & 0xffff);
	strscpy(info->bus_info, pci_name(eth->nic->dev.pdev), sizeof(info->bus_info));
}

static int skua_get_link_ksettings(struct net_device *netdev,
				   struct ethtool_link_ksettings *settings)
{
	struct skua_eth *eth = netdev_priv(netdev);
	struct skua_port_attr attr;
	int err;

	err = skua_cmd_query_port(&eth->nic->dev, &attr);
	if (err)
		return err;
	ethtool_link_ksettings_zero_link_mode(settings, supported);
	ethtool_link_ksettings_zero_link_mode(settings, advertising);
	settings->base.port = PORT_OTHER;
	settings->base.autoneg = AUTONEG_DISABLE;
	settings->base.duplex = DUPLEX_FULL;
	settings->base.speed = attr.speed_mbps ? le32_to_cpu(attr.speed_mbps) : SPEED_UNKNOWN;
	return 0;
}

static void skua_get_ringparam(struct net_device *netdev, struct ethtool_ringparam *ring,
			       struct kernel_ethtool_ringparam *kernel_ring,
			       struct netlink_ext_ack *extack)
{
	ring->tx_max_pending = SKUA_TX_BLOCKS;
	ring->tx_pending = SKUA_TX_BLOCKS;
	ring->rx_max_pending = SKUA_RX_ENTRIES;
	ring->rx_pending = SKUA_RX_ENTRIES;
}

static void skua_get_channels(struct net_device *netdev, struct ethtool_channels *channels)
{
	channels->max_combined = 1;
	channels->combined_count = 1;
}

static int skua_get_sset_count(struct net_device *netdev, int sset)
{
	return sset == ETH_SS_STATS ? ARRAY_SIZE(skua_stat_names) : -EOPNOTSUPP;
}

static void skua_get_strings(struct net_device *netdev, u32 sset, u8 *data)
{
	unsigned int i;

	if (sset != ETH_SS_STATS)
		return;
	for (i = 0; i < ARRAY_SIZE(skua_stat_names); i++)
		ethtool_puts(&data, skua_stat_names[i]);
}

static void skua_get_ethtool_stats(struct net_device *netdev, struct ethtool_stats *stats,
				   u64 *data)
{
	struct skua_eth *eth = netdev_priv(netdev);
	struct skua_stats counters = {};
	const __le64 *values = (const __le64 *)&counters;
	unsigned int i;

	skua_cmd_query_stats(&eth->nic->dev, &counters);
	for (i = 0; i < ARRAY_SIZE(skua_stat_names); i++)
		data[i] = le64_to_cpu(values[i]);
}

const struct ethtool_ops skua_ethtool_ops = {
	.get_drvinfo = skua_get_drvinfo,
	.get_link = ethtool_op_get_link,
	.get_link_ksettings = skua_get_link_ksettings,
	.get_ringparam = skua_get_ringparam,
	.get_channels = skua_get_channels,
	.get_sset_count = skua_get_sset_count,
	.get_strings = skua_get_strings,
	.get_ethtool_stats = skua_get_ethtool_stats,
	.get_ts_info = ethtool_op_get_ts_info,
};
