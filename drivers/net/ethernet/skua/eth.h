/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The netdev and its channels. A channel is a privileged QP of type ETH, a CQ for both directions,
 * and the NAPI context that polls it; its number is that of its queues in the stack and of its
 * completion vector.
 *
 * Channels are made in sets. A setting that changes them makes a new set, and puts it in the place
 * of the old one, which is destroyed only when the device has taken the new one. Sets change under
 * RTNL, while no frame is being sent and no NAPI runs.
 *
 * ndo_start_xmit writes an SQ's pi, NAPI its ci and everything of RQ and CQ.
 */
#ifndef SKUA_ETH_H
#define SKUA_ETH_H

#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/u64_stats_sync.h>

#include <linux/skua/event.h>
#include <linux/skua/memory.h>
#include <linux/skua/queue.h>

#include "skua.h"

struct page_pool;

#define SKUA_TX_BLOCKS		2048	/* of an SQ, unless ethtool says otherwise */
#define SKUA_TX_MIN_BLOCKS	64
#define SKUA_TX_LIMIT_BLOCKS	16384
#define SKUA_RX_ENTRIES		512	/* of an RQ, the same */
#define SKUA_RX_MIN_ENTRIES	16
#define SKUA_RX_LIMIT_ENTRIES	4096
#define SKUA_RX_LOG_STRIDE	SKUA_RQE_MIN_LOG_STRIDE

#define SKUA_RSS_TABLE_LEN	BIT(SKUA_RSS_MAX_LOG)

/* The longest WQE: a control segment, the linear part, every fragment. */
#define SKUA_TX_MAX_SEGS	(MAX_SKB_FRAGS + 2)
#define SKUA_TX_MAX_BLOCKS	DIV_ROUND_UP(SKUA_TX_MAX_SEGS * SKUA_WQE_SEG, SKUA_WQE_BLOCK)

/* Segments of a block; there is a struct skua_tx_dma for each. */
#define SKUA_TX_SEGS		(SKUA_WQE_BLOCK / SKUA_WQE_SEG)

/* Ethernet header and a VLAN tag, which the MTU does not count. */
#define SKUA_FRAME_OVERHEAD	(ETH_HLEN + VLAN_HLEN)

/**
 * struct skua_tx_frame - a frame being sent, by the slot of its first block
 * @skb: the frame
 * @nblocks: of its WQE
 * @num_dma: mappings, in the slots of its segments; the first is the linear part
 */
struct skua_tx_frame {
	struct sk_buff *skb;
	u8 nblocks;
	u8 num_dma;
};

struct skua_tx_dma {
	dma_addr_t addr;
	u32 length;
};

struct skua_tx {
	struct skua_sq sq;
	struct skua_mem mem;
	dma_addr_t dbr;
	struct skua_tx_frame *frames;	/* by slot of a block */
	struct skua_tx_dma *dma;	/* by slot of a segment */
};

/**
 * struct skua_rx_buf - where a frame will be received
 * @page: of the pool; NULL: none
 * @offset: of the buffer in it
 */
struct skua_rx_buf {
	struct page *page;
	u32 offset;
};

struct skua_rx {
	struct skua_rq rq;
	struct skua_mem mem;
	dma_addr_t dbr;
	struct skua_rx_buf *bufs;	/* by slot of an entry */
	struct page_pool *pool;
	u32 buf_size;			/* headroom, frame and shared info */
};

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
 * struct skua_channel - a pair of rings
 * @eth: the netdev's private part
 * @index: its number
 * @frame_size: the longest frame of either direction
 * @napi: polls the CQ
 * @cq: for both directions
 * @cq_mem: the CQ's ring
 * @cq_dbr: DMA address of its record
 * @cq_watch: completion events
 * @qp_watch: errors
 * @tx: sending
 * @rx: receiving
 */
struct skua_channel {
	struct skua_eth *eth;
	u32 index;
	u32 frame_size;
	struct napi_struct napi;
	struct skua_cq cq;
	struct skua_mem cq_mem;
	dma_addr_t cq_dbr;
	struct skua_cq_watch cq_watch;
	struct skua_qp_watch qp_watch;
	struct skua_tx tx;
	struct skua_rx rx;
};

struct skua_channels {
	u32 num;
	struct skua_channel channel[] __counted_by(num);
};

/**
 * struct skua_eth - the netdev's private part
 * @nic: its device
 * @netdev: itself
 * @pdn: PD of the QPs
 * @max_channels: that there can be, as long as the device is not reset
 * @config: of the channels, or of those to come; under RTNL
 * @channels: that are in use; NULL: the interface is down
 * @counts: by number of the channel
 * @rss: how received frames are spread; under RTNL
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
	struct work_struct rx_mode;
	struct work_struct restart;
};

extern const struct ethtool_ops skua_ethtool_ops;

/* netdev.c: under RTNL. On error all is as before. */
int skua_eth_reconfigure(struct skua_eth *eth, const struct skua_eth_config *config);
int skua_eth_set_rss(struct skua_eth *eth, const struct skua_eth_rss *rss);

/* channel.c: under RTNL. A new set is ready to send and receive, but gets no frames yet. */
struct skua_channels *skua_channels_create(struct skua_eth *eth,
					   const struct skua_eth_config *config);
/* NULL is allowed. What was not sent is dropped. */
void skua_channels_destroy(struct skua_channels *channels);
/* Start and stop NAPI. */
void skua_channels_enable(struct skua_channels *channels);
void skua_channels_disable(struct skua_channels *channels);

/* tx.c. Freeing takes what a failed alloc left, too. */
int skua_tx_alloc(struct skua_channel *ch, u32 blocks);
void skua_tx_free(struct skua_channel *ch);
netdev_tx_t skua_tx_xmit(struct sk_buff *skb, struct net_device *netdev);
/* May its queue be woken? If not, completions wake it. */
bool skua_tx_has_room(const struct skua_channel *ch);
/* Give back the frames in blocks before @ci. NAPI context. */
void skua_tx_complete(struct skua_channel *ch, u32 ci, int budget);

/* rx.c */
int skua_rx_alloc(struct skua_channel *ch, u32 entries);
void skua_rx_free(struct skua_channel *ch);
/* Post buffers wherever there are none. False if there was not enough memory. */
bool skua_rx_fill(struct skua_channel *ch);
/* Pass a frame on. NAPI context. */
void skua_rx_complete(struct skua_channel *ch, const struct skua_cqe *cqe);

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
