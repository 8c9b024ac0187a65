// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Sending frames: one SEND WQE for each, with an SGE for the linear part and each fragment. What
 * the device is to cut into frames (GSO) is a TSO WQE, which holds the headers, too.
 * Every WQE is signaled, so that a frame is given back to its socket without delay.
 */
#include <linux/dma-mapping.h>
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <net/ip.h>
#include <net/netdev_queues.h>

#include "eth.h"

/* Stop when the longest WQE would not fit, go on when a few do. */
#define SKUA_TX_STOP	SKUA_TX_MAX_BLOCKS
#define SKUA_TX_START	(4 * SKUA_TX_MAX_BLOCKS)

int skua_tx_alloc(struct skua_channel *ch, u32 blocks)
{
	struct skua_dev *dev = &ch->eth->nic->dev;
	struct skua_tx *tx = &ch->tx;
	int err;

	err = skua_mem_alloc(dev, &tx->mem, blocks * SKUA_WQE_BLOCK);
	if (err)
		return err;
	tx->sq.buf = tx->mem.va;
	tx->sq.blocks = blocks;
	tx->sq.dbr = skua_dbr_alloc(dev, &tx->dbr);
	tx->sq.nblocks = kvcalloc(blocks, sizeof(*tx->sq.nblocks), GFP_KERNEL);
	tx->frames = kvcalloc(blocks, sizeof(*tx->frames), GFP_KERNEL);
	tx->dma = kvcalloc(blocks * SKUA_TX_SEGS, sizeof(*tx->dma), GFP_KERNEL);
	return tx->sq.dbr && tx->sq.nblocks && tx->frames && tx->dma ? 0 : -ENOMEM;
}

static struct skua_tx_dma *skua_tx_dma_at(struct skua_tx *tx, u32 block, unsigned int i)
{
	return &tx->dma[(block * SKUA_TX_SEGS + i) & (tx->sq.blocks * SKUA_TX_SEGS - 1)];
}

static void skua_tx_unmap(struct skua_channel *ch, u32 block, unsigned int num_dma)
{
	struct device *device = skua_nic_device(ch->eth->nic);
	unsigned int i;

	for (i = 0; i < num_dma; i++) {
		struct skua_tx_dma *dma = skua_tx_dma_at(&ch->tx, block, i);

		if (!i)
			dma_unmap_single(device, dma->addr, dma->length, DMA_TO_DEVICE);
		else
			dma_unmap_page(device, dma->addr, dma->length, DMA_TO_DEVICE);
	}
}

static struct skua_tx_frame *skua_tx_frame_at(struct skua_tx *tx, u32 block)
{
	return &tx->frames[block & (tx->sq.blocks - 1)];
}

/* The QP is destroyed: what it had not sent goes with it. */
static void skua_tx_drop_all(struct skua_channel *ch)
{
	struct skua_tx *tx = &ch->tx;
	u32 block = tx->sq.ci;

	while (block != tx->sq.pi) {
		struct skua_tx_frame *frame = skua_tx_frame_at(tx, block);

		skua_tx_unmap(ch, block, frame->num_dma);
		dev_kfree_skb_any(frame->skb);
		block = skua_sq_next(&tx->sq, block);
	}
	tx->sq.ci = block;
}

void skua_tx_free(struct skua_channel *ch)
{
	struct skua_tx *tx = &ch->tx;

	if (tx->frames && tx->dma)
		skua_tx_drop_all(ch);
	kvfree(tx->dma);
	kvfree(tx->frames);
	kvfree(tx->sq.nblocks);
	skua_dbr_free(&ch->eth->nic->dev, tx->sq.dbr, tx->dbr);
	skua_mem_free(&ch->eth->nic->dev, &tx->mem);
}

/* Map the frame for the device, piece by piece into the slots of its segments. */
static int skua_tx_map(struct skua_channel *ch, struct sk_buff *skb)
{
	struct device *device = skua_nic_device(ch->eth->nic);
	struct skb_shared_info *info = skb_shinfo(skb);
	struct skua_tx *tx = &ch->tx;
	struct skua_tx_dma *dma;
	unsigned int i;

	dma = skua_tx_dma_at(tx, tx->sq.pi, 0);
	dma->length = skb_headlen(skb);
	dma->addr = dma_map_single(device, skb->data, dma->length, DMA_TO_DEVICE);
	if (dma_mapping_error(device, dma->addr))
		return -ENOMEM;

	for (i = 0; i < info->nr_frags; i++) {
		const skb_frag_t *frag = &info->frags[i];

		dma = skua_tx_dma_at(tx, tx->sq.pi, i + 1);
		dma->length = skb_frag_size(frag);
		dma->addr = skb_frag_dma_map(device, frag, 0, dma->length, DMA_TO_DEVICE);
		if (dma_mapping_error(device, dma->addr)) {
			skua_tx_unmap(ch, tx->sq.pi, i + 1);
			return -ENOMEM;
		}
	}
	return 0;
}

/* The device fills in the checksum from @start on, at @start + @offset (ETH-5). */
static void skua_tx_set_csum(struct skua_wqe_builder *wqe, u16 start, u16 offset)
{
	wqe->ctrl->flags |= SKUA_WQE_L4_CSUM;
	wqe->ctrl->csum_start = cpu_to_le16(start);
	wqe->ctrl->csum_offset = cpu_to_le16(offset);
}

/* The headers go into the WQE, segment by segment: the ring may end between two. */
static void skua_tx_add_headers(struct skua_wqe_builder *wqe, const struct sk_buff *skb,
				u32 hdr_len)
{
	struct skua_wqe_tso *tso = skua_wqe_segment(wqe);
	u32 at;

	memset(tso, 0, sizeof(*tso));
	tso->mss = cpu_to_le16(skb_shinfo(skb)->gso_size);
	tso->hdr_len = cpu_to_le16(hdr_len);
	for (at = 0; at < hdr_len; at += SKUA_WQE_SEG)
		memcpy(skua_wqe_segment(wqe), skb->data + at,
		       min_t(u32, hdr_len - at, SKUA_WQE_SEG));
}

/* Build the WQE of a frame that is mapped; @hdr_len: of one that is to be cut, else 0. */
static void skua_tx_build(struct skua_channel *ch, struct sk_buff *skb, u32 hdr_len)
{
	u32 lkey = ch->eth->nic->dev.limits.reserved_lkey;
	struct skua_tx *tx = &ch->tx;
	struct skua_tx_frame *frame = skua_tx_frame_at(tx, tx->sq.pi);
	unsigned int num_dma = 1 + skb_shinfo(skb)->nr_frags;
	struct skua_wqe_builder wqe;
	u32 skip = hdr_len;
	unsigned int i;

	skua_wqe_begin(&tx->sq, &wqe, hdr_len ? SKUA_WQE_TSO : SKUA_WQE_SEND, SKUA_WQE_SIGNALED);
	if (hdr_len)
		skua_tx_add_headers(&wqe, skb, hdr_len);
	else if (skb->ip_summed == CHECKSUM_PARTIAL)
		skua_tx_set_csum(&wqe, skb_checksum_start_offset(skb), skb->csum_offset);
	for (i = 0; i < num_dma; i++, skip = 0) {
		struct skua_tx_dma *dma = skua_tx_dma_at(tx, tx->sq.pi, i);

		skua_wqe_add_sge(&wqe, dma->addr + skip, dma->length - skip, lkey);
	}
	skua_wqe_end(&wqe);

	frame->skb = skb;
	frame->num_dma = num_dma;
}

/* Are the headers those that the device cuts by (TSO-1)? */
static bool skua_tx_can_cut(const struct sk_buff *skb)
{
	int mac_len = skb_network_offset(skb);
	int ip_len = skb_checksum_start_offset(skb) - mac_len;

	/* One tag at most, in the frame or still to be put there. */
	if (skb_vlan_tag_present(skb) && skb->vlan_proto != htons(ETH_P_8021Q))
		return false;
	if (mac_len != ETH_HLEN && (mac_len != VLAN_ETH_HLEN || skb_vlan_tag_present(skb) ||
				    skb->protocol != htons(ETH_P_8021Q)))
		return false;
	switch (vlan_get_protocol(skb)) {
	case htons(ETH_P_IP):
		return ip_len == ip_hdrlen(skb);
	case htons(ETH_P_IPV6):
		return ip_len == sizeof(struct ipv6hdr);
	default:
		return false;
	}
}

netdev_features_t skua_tx_features(struct sk_buff *skb, struct net_device *netdev,
				   netdev_features_t features)
{
	features = vlan_features_check(skb, features);
	if (skb_is_gso(skb) && !skua_tx_can_cut(skb))
		features &= ~NETIF_F_GSO_MASK;
	return features;
}

/*
 * Fill in what @frame says of the frames; @hdr_len: bytes of headers if it is to be cut, else 0.
 * False: the device would take it for an error of the whole queue (ETH-4, TSO-5).
 */
static bool skua_tx_measure(struct skua_channel *ch, struct sk_buff *skb,
			    struct skua_tx_frame *frame, u32 *hdr_len)
{
	u32 mss = skb_shinfo(skb)->gso_size;
	u32 payload;

	if (!skb_is_gso(skb)) {
		*hdr_len = 0;
		frame->frames = 1;
		frame->bytes = skb->len;
		return skb->len <= ch->frame_size;
	}
	*hdr_len = skb_tcp_all_headers(skb);
	payload = skb->len - *hdr_len;
	frame->frames = max_t(u32, DIV_ROUND_UP(payload, mss), 1);
	frame->bytes = payload + frame->frames * *hdr_len;
	return *hdr_len + min(payload, mss) <= ch->frame_size &&
	       payload <= ch->eth->nic->dev.limits.max_tso && pskb_may_pull(skb, *hdr_len);
}

netdev_tx_t skua_tx_xmit(struct sk_buff *skb, struct net_device *netdev)
{
	u16 queue = skb_get_queue_mapping(skb);
	struct netdev_queue *txq = netdev_get_tx_queue(netdev, queue);
	struct skua_eth *eth = netdev_priv(netdev);
	struct skua_dev *dev = &eth->nic->dev;
	struct skua_tx_frame *frame;
	struct skua_channel *ch;
	struct skua_tx *tx;
	u32 hdr_len, bytes;
	bool ring;

	/* Packet sockets past the qdisc, and pktgen, may have chosen it when there were more. */
	if (unlikely(queue >= eth->channels->num)) {
		dev_kfree_skb_any(skb);
		dev_core_stats_tx_dropped_inc(netdev);
		return NETDEV_TX_OK;
	}
	ch = &eth->channels->channel[queue];
	tx = &ch->tx;
	/* NAPI may have woken the queue by what it saw of the ring a while ago. */
	if (unlikely(skua_sq_room(&tx->sq) < SKUA_TX_STOP) &&
	    !netif_txq_try_stop(txq, skua_sq_room(&tx->sq), SKUA_TX_START)) {
		skua_sq_publish(dev, &tx->sq, ch->qp_watch.number);
		return NETDEV_TX_BUSY;
	}
	frame = skua_tx_frame_at(tx, tx->sq.pi);
	if (eth_skb_pad(skb))
		goto drop_freed;
	if (unlikely(!skua_tx_measure(ch, skb, frame, &hdr_len)))
		goto drop;
	bytes = frame->bytes;
	if (unlikely(skb_shinfo(skb)->nr_frags >= dev->limits.max_send_sge) && skb_linearize(skb))
		goto drop;
	if (unlikely(skua_tx_map(ch, skb)))
		goto drop;

	skua_tx_build(ch, skb, hdr_len);
	skb_tx_timestamp(skb);
	ring = __netdev_tx_sent_queue(txq, bytes, netdev_xmit_more());
	netif_txq_maybe_stop(txq, skua_sq_room(&tx->sq), SKUA_TX_STOP, SKUA_TX_START);
	if (ring || netif_xmit_stopped(txq))
		skua_sq_publish(dev, &tx->sq, ch->qp_watch.number);
	return NETDEV_TX_OK;

drop:
	dev_kfree_skb_any(skb);
drop_freed:
	dev_core_stats_tx_dropped_inc(netdev);
	/* Frames before it may wait for the last of their batch, which this was. */
	if (!netdev_xmit_more())
		skua_sq_publish(dev, &tx->sq, ch->qp_watch.number);
	return NETDEV_TX_OK;
}

bool skua_tx_has_room(const struct skua_channel *ch)
{
	return skua_sq_room(&ch->tx.sq) >= SKUA_TX_START;
}

void skua_tx_complete(struct skua_channel *ch, u32 ci, int budget)
{
	struct netdev_queue *txq = netdev_get_tx_queue(ch->eth->netdev, ch->index);
	unsigned int frames = 0, bytes = 0;
	struct skua_tx *tx = &ch->tx;
	u32 block = tx->sq.ci;

	if (block == ci)
		return;
	while (block != ci) {
		struct skua_tx_frame *frame = skua_tx_frame_at(tx, block);

		skua_tx_unmap(ch, block, frame->num_dma);
		frames += frame->frames;
		bytes += frame->bytes;
		napi_consume_skb(frame->skb, budget);
		frame->skb = NULL;
		block = skua_sq_next(&tx->sq, block);
	}
	skua_sq_retire(&tx->sq, ci);
	skua_eth_count(&ch->eth->counts[ch->index].tx, frames, bytes);
	netif_txq_completed_wake(txq, frames, bytes, skua_sq_room(&tx->sq), SKUA_TX_START);
}
