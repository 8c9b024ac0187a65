/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The netdev and its one pair of rings: a privileged QP of type ETH, and a CQ for both
 * directions that NAPI polls. The rings exist while the interface is up.
 *
 * ndo_start_xmit writes the SQ's pi, NAPI its ci and everything of RQ and CQ.
 */
#ifndef SKUA_ETH_H
#define SKUA_ETH_H

#include <linux/netdevice.h>
#include <linux/skbuff.h>

#include <linux/skua/event.h>
#include <linux/skua/memory.h>
#include <linux/skua/queue.h>

#include "skua.h"

struct page_pool;

#define SKUA_TX_BLOCKS		2048	/* of the SQ */
#define SKUA_RX_ENTRIES		512	/* of the RQ */
#define SKUA_RX_LOG_STRIDE	SKUA_RQE_MIN_LOG_STRIDE

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

/**
 * struct skua_eth - the netdev's private part
 * @nic: its device
 * @netdev: itself
 * @napi: polls the CQ
 * @cq: for both directions
 * @cq_mem: the CQ's ring
 * @cq_dbr: DMA address of its record
 * @cq_watch: completion events
 * @qp_watch: errors
 * @tx: sending
 * @rx: receiving
 * @pdn: PD of the QP
 * @rx_mode: work that tells the device which frames are wanted
 * @restart: work that builds failed rings anew
 * @up: the rings exist; under RTNL
 */
struct skua_eth {
	struct skua_nic *nic;
	struct net_device *netdev;
	struct napi_struct napi;
	struct skua_cq cq;
	struct skua_mem cq_mem;
	dma_addr_t cq_dbr;
	struct skua_cq_watch cq_watch;
	struct skua_qp_watch qp_watch;
	struct skua_tx tx;
	struct skua_rx rx;
	u32 pdn;
	struct work_struct rx_mode;
	struct work_struct restart;
	bool up;
};

extern const struct ethtool_ops skua_ethtool_ops;

/* tx.c. Freeing takes what a failed alloc left, too. */
int skua_tx_alloc(struct skua_eth *eth);
void skua_tx_free(struct skua_eth *eth);
netdev_tx_t skua_tx_xmit(struct sk_buff *skb, struct net_device *netdev);
/* Give back the frames in blocks before @ci. NAPI context. */
void skua_tx_complete(struct skua_eth *eth, u32 ci, int budget);

/* rx.c */
int skua_rx_alloc(struct skua_eth *eth);
void skua_rx_free(struct skua_eth *eth);
/* Post buffers wherever there are none. False if there was not enough memory. */
bool skua_rx_fill(struct skua_eth *eth);
/* Pass a frame on. NAPI context. */
void skua_rx_complete(struct skua_eth *eth, const struct skua_cqe *cqe);

#endif /* SKUA_ETH_H */
