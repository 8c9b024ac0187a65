/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * skua.ko: channels of the netdev, in sets.
 *
 * A channel is a privileged QP of type ETH, a CQ for both directions, and the NAPI context that
 * polls it; its number is that of its queues in the stack and of its completion vector.
 * ndo_start_xmit writes an SQ's pi, NAPI its ci and everything of RQ and CQ.
 */
#ifndef SKUA_CHANNEL_H
#define SKUA_CHANNEL_H

#include <linux/netdevice.h>

#include <linux/skua/event.h>
#include <linux/skua/memory.h>
#include <linux/skua/queue.h>

#include "rx.h"
#include "tx.h"

struct skua_eth;
struct skua_eth_config;

/* Ethernet header and a VLAN tag, which the MTU does not count. */
#define SKUA_FRAME_OVERHEAD	(ETH_HLEN + VLAN_HLEN)

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
	struct skua_obj_watch qp_watch;
	struct skua_tx tx;
	struct skua_rx rx;
};

struct skua_channels {
	u32 num;
	struct skua_channel channel[] __counted_by(num);
};

/* Under RTNL. A new set is ready to send and receive, but gets no frames yet. */
struct skua_channels *skua_channels_create(struct skua_eth *eth,
					   const struct skua_eth_config *config);
/* NULL is allowed. What was not sent is dropped. */
void skua_channels_destroy(struct skua_channels *channels);
/* Start and stop NAPI. */
void skua_channels_enable(struct skua_channels *channels);
void skua_channels_disable(struct skua_channels *channels);

#endif /* SKUA_CHANNEL_H */
