/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * skua.ko: sending frames.
 */
#ifndef SKUA_TX_H
#define SKUA_TX_H

#include <linux/netdev_features.h>
#include <linux/skbuff.h>

#include <linux/skua/memory.h>
#include <linux/skua/queue.h>

struct skua_channel;

#define SKUA_TX_BLOCKS		2048	/* of an SQ, unless ethtool says otherwise */
#define SKUA_TX_MIN_BLOCKS	64
#define SKUA_TX_LIMIT_BLOCKS	16384

/* The longest WQE: a control segment, TSO with headers, the linear part, every fragment. */
#define SKUA_TX_MAX_SEGS	(MAX_SKB_FRAGS + 3 + \
				 DIV_ROUND_UP(SKUA_TSO_MAX_HEADER, SKUA_WQE_SEG))
#define SKUA_TX_MAX_BLOCKS	DIV_ROUND_UP(SKUA_TX_MAX_SEGS * SKUA_WQE_SEG, SKUA_WQE_BLOCK)

/* Segments of a block; there is a struct skua_tx_dma for each. */
#define SKUA_TX_SEGS		(SKUA_WQE_BLOCK / SKUA_WQE_SEG)

/**
 * struct skua_tx_frame - an skb being sent, by the slot of its first block
 * @skb: the frame, or those that the device cuts it into
 * @bytes: of all frames
 * @frames: how many
 * @num_dma: mappings, in the slots of its segments; the first is the linear part
 */
struct skua_tx_frame {
	struct sk_buff *skb;
	u32 bytes;
	u16 frames;
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

int skua_tx_alloc(struct skua_channel *ch, u32 blocks);
/* Takes what a failed alloc left, too. */
void skua_tx_free(struct skua_channel *ch);
/* Without what the device cannot do for this one. */
netdev_features_t skua_tx_features(struct sk_buff *skb, struct net_device *netdev,
				   netdev_features_t features);
netdev_tx_t skua_tx_xmit(struct sk_buff *skb, struct net_device *netdev);
/* May its queue be woken? If not, completions wake it. */
bool skua_tx_has_room(const struct skua_channel *ch);
/* Give back the frames in blocks before @ci. NAPI context. */
void skua_tx_complete(struct skua_channel *ch, u32 ci, int budget);

#endif /* SKUA_TX_H */
