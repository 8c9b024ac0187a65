/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * skua.ko: the netdev's private part, and its settings.
 *
 * Channels are made in sets. A setting that changes them makes a new set, and puts it in the place
 * of the old one, which is destroyed only when the device has taken the new one. Sets change under
 * RTNL, while no frame is being sent and no NAPI runs.
 */
#ifndef SKUA_ETH_H
#define SKUA_ETH_H

#include <linux/netdevice.h>
#include <linux/u64_stats_sync.h>

#include <skua/cmd.h>

#include "channel.h"
#include "skua.h"

#define SKUA_RSS_TABLE_LEN	BIT(SKUA_RSS_MAX_LOG)

/* Frames and their bytes in one direction of a channel; NAPI counts. */
struct skua_eth_count {
	struct u64_stats_sync sync;
	u64_stats_t frames;
	u64_stats_t bytes;
};

/* Of the channels with one number, one after the other. */
struct skua_eth_counts {
	struct skua_eth_count tx;
	struct skua_eth_count rx;
};

/**
 * struct skua_eth_config - what a set of channels is like
 * @mtu: that their buffers are for
 * @channels: how many
 * @tx_blocks: of each SQ, a power of two
 * @rx_entries: of each RQ, a power of two
 */
struct skua_eth_config {
	u32 mtu;
	u32 channels;
	u32 tx_blocks;
	u32 rx_entries;
};

/**
 * struct skua_eth_rss - how received frames are spread
 * @key: of the hash that chooses a channel
 * @table: number of a channel by the hash's low bits
 */
struct skua_eth_rss {
	u8 key[SKUA_RSS_KEY_LEN];
	u32 table[SKUA_RSS_TABLE_LEN];
};

/**
 * struct skua_eth - the netdev's private part
 * @nic: its device
 * @netdev: itself
 * @pdn: PD of the QPs
 * @max_channels: that there can be, as long as the device is not reset
 * @config: of the channels, or of those to come; under RTNL
 * @channels: that are in use; NULL: the interface is down, or its device dead
 * @counts: by number of the channel
 * @rss: how received frames are spread; under RTNL
 * @link: work that asks for the state of the link
 * @rx_mode: work that tells the device which frames are wanted
 * @restart: work that makes failed channels anew
 */
struct skua_eth {
	struct skua_nic *nic;
	struct net_device *netdev;
	u32 pdn;
	u32 max_channels;
	struct skua_eth_config config;
	struct skua_channels *channels;
	struct skua_eth_counts *counts;
	struct skua_eth_rss rss;
	struct delayed_work link;
	struct delayed_work rx_mode;
	struct delayed_work restart;
};

extern const struct ethtool_ops skua_ethtool_ops;

/* netdev.c: under RTNL. On error all is as before. */
int skua_eth_reconfigure(struct skua_eth *eth, const struct skua_eth_config *config);
int skua_eth_set_rss(struct skua_eth *eth, const struct skua_eth_rss *rss);

static inline void skua_eth_count(struct skua_eth_count *count, unsigned int frames,
				  unsigned int bytes)
{
	u64_stats_update_begin(&count->sync);
	u64_stats_add(&count->frames, frames);
	u64_stats_add(&count->bytes, bytes);
	u64_stats_update_end(&count->sync);
}

static inline void skua_eth_counted(const struct skua_eth_count *count, u64 *frames, u64 *bytes)
{
	unsigned int start;

	do {
		start = u64_stats_fetch_begin(&count->sync);
		*frames = u64_stats_read(&count->frames);
		*bytes = u64_stats_read(&count->bytes);
	} while (u64_stats_fetch_retry(&count->sync, start));
}

#endif /* SKUA_ETH_H */
