// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * ethtool: who the driver is, the link, rings and how frames are spread over them, and the device's
 * counters by the names that the manual gives them.
 */
#include <linux/ethtool.h>
#include <linux/log2.h>

#include <linux/skua/command.h>

#include "compat.h"
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
	struct skua_eth *eth = netdev_priv(netdev);
	const struct skua_limits *limits = &eth->nic->dev.limits;

	ring->tx_max_pending = min_t(u32, SKUA_TX_LIMIT_BLOCKS, limits->max_sq_blocks);
	ring->tx_pending = eth->config.tx_blocks;
	ring->rx_max_pending = min_t(u32, SKUA_RX_LIMIT_ENTRIES, limits->max_rq_entries);
	ring->rx_pending = eth->config.rx_entries;
}

/* Of an SQ the size is in blocks: one for a frame of up to three pieces. */
static int skua_set_ringparam(struct net_device *netdev, struct ethtool_ringparam *ring,
			      struct kernel_ethtool_ringparam *kernel_ring,
			      struct netlink_ext_ack *extack)
{
	struct skua_eth *eth = netdev_priv(netdev);
	struct skua_eth_config config = eth->config;

	if (ring->tx_pending < SKUA_TX_MIN_BLOCKS || ring->rx_pending < SKUA_RX_MIN_ENTRIES) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "at least %u of tx and %u of rx are needed",
				       SKUA_TX_MIN_BLOCKS, SKUA_RX_MIN_ENTRIES);
		return -EINVAL;
	}
	config.tx_blocks = roundup_pow_of_two(ring->tx_pending);
	config.rx_entries = roundup_pow_of_two(ring->rx_pending);
	return skua_eth_reconfigure(eth, &config);
}

static void skua_get_channels(struct net_device *netdev, struct ethtool_channels *channels)
{
	struct skua_eth *eth = netdev_priv(netdev);

	channels->max_combined = eth->max_channels;
	channels->combined_count = eth->config.channels;
}

static int skua_set_channels(struct net_device *netdev, struct ethtool_channels *channels)
{
	struct skua_eth *eth = netdev_priv(netdev);
	struct skua_eth_config config = eth->config;

	config.channels = channels->combined_count;
	return skua_eth_reconfigure(eth, &config);
}

/* Spreading */

static u32 skua_get_rx_ring_count(struct net_device *netdev)
{
	struct skua_eth *eth = netdev_priv(netdev);

	return eth->config.channels;
}

#ifdef SKUA_OLD_RXNFC
static int skua_get_rxnfc(struct net_device *netdev, struct ethtool_rxnfc *info, u32 *rules)
{
	if (info->cmd != ETHTOOL_GRXRINGS)
		return -EOPNOTSUPP;
	info->data = skua_get_rx_ring_count(netdev);
	return 0;
}
#endif

static bool skua_has_rss(struct net_device *netdev)
{
	struct skua_eth *eth = netdev_priv(netdev);

	return skua_has(&eth->nic->dev, SKUA_F_ETH_RSS);
}

static u32 skua_get_rxfh_key_size(struct net_device *netdev)
{
	return skua_has_rss(netdev) ? SKUA_RSS_KEY_LEN : 0;
}

static u32 skua_get_rxfh_indir_size(struct net_device *netdev)
{
	return skua_has_rss(netdev) ? SKUA_RSS_TABLE_LEN : 0;
}

static int skua_get_rxfh(struct net_device *netdev, struct ethtool_rxfh_param *rxfh)
{
	struct skua_eth *eth = netdev_priv(netdev);

	if (!skua_has_rss(netdev))
		return -EOPNOTSUPP;
	rxfh->hfunc = ETH_RSS_HASH_TOP;
	if (rxfh->indir)
		memcpy(rxfh->indir, eth->rss.table, sizeof(eth->rss.table));
	if (rxfh->key)
		memcpy(rxfh->key, eth->rss.key, sizeof(eth->rss.key));
	return 0;
}

static int skua_set_rxfh(struct net_device *netdev, struct ethtool_rxfh_param *rxfh,
			 struct netlink_ext_ack *extack)
{
	struct skua_eth *eth = netdev_priv(netdev);
	struct skua_eth_rss rss = eth->rss;

	if (!skua_has_rss(netdev) ||
	    (rxfh->hfunc != ETH_RSS_HASH_NO_CHANGE && rxfh->hfunc != ETH_RSS_HASH_TOP))
		return -EOPNOTSUPP;
	if (rxfh->indir)
		memcpy(rss.table, rxfh->indir, sizeof(rss.table));
	if (rxfh->key)
		memcpy(rss.key, rxfh->key, sizeof(rss.key));
	return skua_eth_set_rss(eth, &rss);
}

/* Statistics: the device's, then the driver's of each channel. */

#define SKUA_CHANNEL_STATS	4

static int skua_get_sset_count(struct net_device *netdev, int sset)
{
	if (sset != ETH_SS_STATS)
		return -EOPNOTSUPP;
	return ARRAY_SIZE(skua_stat_names) + netdev->num_tx_queues * SKUA_CHANNEL_STATS;
}

static void skua_get_strings(struct net_device *netdev, u32 sset, u8 *data)
{
	unsigned int i;

	if (sset != ETH_SS_STATS)
		return;
	for (i = 0; i < ARRAY_SIZE(skua_stat_names); i++)
		ethtool_puts(&data, skua_stat_names[i]);
	for (i = 0; i < netdev->num_tx_queues; i++) {
		ethtool_sprintf(&data, "tx%u_frames", i);
		ethtool_sprintf(&data, "tx%u_bytes", i);
		ethtool_sprintf(&data, "rx%u_frames", i);
		ethtool_sprintf(&data, "rx%u_bytes", i);
	}
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
		*data++ = le64_to_cpu(values[i]);
	for (i = 0; i < netdev->num_tx_queues; i++, data += SKUA_CHANNEL_STATS) {
		skua_eth_counted(&eth->counts[i].tx, &data[0], &data[1]);
		skua_eth_counted(&eth->counts[i].rx, &data[2], &data[3]);
	}
}

const struct ethtool_ops skua_ethtool_ops = {
	.get_drvinfo = skua_get_drvinfo,
	.get_link = ethtool_op_get_link,
	.get_link_ksettings = skua_get_link_ksettings,
	.get_ringparam = skua_get_ringparam,
	.set_ringparam = skua_set_ringparam,
	.get_channels = skua_get_channels,
	.set_channels = skua_set_channels,
#ifdef SKUA_OLD_RXNFC
	.get_rxnfc = skua_get_rxnfc,
#else
	.get_rx_ring_count = skua_get_rx_ring_count,
#endif
	.get_rxfh_key_size = skua_get_rxfh_key_size,
	.get_rxfh_indir_size = skua_get_rxfh_indir_size,
	.get_rxfh = skua_get_rxfh,
	.set_rxfh = skua_set_rxfh,
	.get_sset_count = skua_get_sset_count,
	.get_strings = skua_get_strings,
	.get_ethtool_stats = skua_get_ethtool_stats,
	.get_ts_info = ethtool_op_get_ts_info,
};
