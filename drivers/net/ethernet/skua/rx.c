// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Receiving frames: the RQ holds buffers from a page pool, each large enough for a frame of the
 * interface's MTU, with room for headers before it and the socket buffer's own data behind it.
 */
#include <linux/dma-mapping.h>
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <net/page_pool/helpers.h>

#include "eth.h"

#define SKUA_RX_HEADROOM	(NET_SKB_PAD + NET_IP_ALIGN)

static int skua_rx_create_pool(struct skua_channel *ch)
{
	struct page_pool_params params = {
		.flags = PP_FLAG_DMA_MAP | PP_FLAG_DMA_SYNC_DEV,
		.order = get_order(ch->rx.buf_size),
		.pool_size = ch->rx.rq.size,
		.nid = dev_to_node(skua_nic_device(ch->eth->nic)),
		.dev = skua_nic_device(ch->eth->nic),
		.napi = &ch->napi,
		.dma_dir = DMA_FROM_DEVICE,
		.max_len = PAGE_SIZE << get_order(ch->rx.buf_size),
		.netdev = ch->eth->netdev,
	};
	struct page_pool *pool;

	pool = page_pool_create(&params);
	if (IS_ERR(pool))
		return PTR_ERR(pool);
	ch->rx.pool = pool;
	return 0;
}

int skua_rx_alloc(struct skua_channel *ch, u32 entries)
{
	struct skua_dev *dev = &ch->eth->nic->dev;
	struct skua_rx *rx = &ch->rx;
	int err;

	err = skua_mem_alloc(dev, &rx->mem, (size_t)entries << SKUA_RX_LOG_STRIDE);
	if (err)
		return err;
	rx->rq.buf = rx->mem.va;
	rx->rq.size = entries;
	rx->rq.log_stride = SKUA_RX_LOG_STRIDE;
	rx->buf_size = SKB_DATA_ALIGN(SKUA_RX_HEADROOM + ch->frame_size) +
		       SKB_DATA_ALIGN(sizeof(struct skb_shared_info));
	rx->rq.dbr = skua_dbr_alloc(dev, &rx->dbr);
	rx->bufs = kvcalloc(entries, sizeof(*rx->bufs), GFP_KERNEL);
	if (!rx->rq.dbr || !rx->bufs)
		return -ENOMEM;
	return skua_rx_create_pool(ch);
}

void skua_rx_free(struct skua_channel *ch)
{
	struct skua_rx *rx = &ch->rx;
	u32 i;

	for (i = 0; rx->bufs && i < rx->rq.size; i++)
		if (rx->bufs[i].page)
			page_pool_put_full_page(rx->pool, rx->bufs[i].page, false);
	if (rx->pool)
		page_pool_destroy(rx->pool);
	kvfree(rx->bufs);
	skua_dbr_free(&ch->eth->nic->dev, rx->rq.dbr, rx->dbr);
	skua_mem_free(&ch->eth->nic->dev, &rx->mem);
}

/* The RQ is never rung: the device looks at its record when a frame comes. */
bool skua_rx_fill(struct skua_channel *ch)
{
	u32 lkey = ch->eth->nic->dev.limits.reserved_lkey;
	struct skua_rx *rx = &ch->rx;
	u32 old = rx->rq.pi;
	bool enough = true;

	while (rx->rq.pi - rx->rq.ci < rx->rq.size) {
		struct skua_rx_buf *buf = &rx->bufs[skua_rq_slot(&rx->rq)];
		struct skua_rqe *rqe;

		buf->page = page_pool_dev_alloc_frag(rx->pool, &buf->offset, rx->buf_size);
		if (unlikely(!buf->page)) {
			enough = false;
			break;
		}
		rqe = skua_rq_entry(&rx->rq);
		skua_rqe_add_sge(rqe, page_pool_get_dma_addr(buf->page) + buf->offset +
				 SKUA_RX_HEADROOM, ch->frame_size, lkey);
		rx->rq.pi++;
	}
	if (rx->rq.pi != old)
		skua_dbr_publish(rx->rq.dbr, rx->rq.pi);
	return enough;
}

static struct sk_buff *skua_rx_build_skb(struct skua_channel *ch, const struct skua_rx_buf *buf,
					 u32 len)
{
	struct sk_buff *skb;

	page_pool_dma_sync_for_cpu(ch->rx.pool, buf->page, buf->offset + SKUA_RX_HEADROOM, len);
	skb = napi_build_skb(page_address(buf->page) + buf->offset, ch->rx.buf_size);
	if (unlikely(!skb))
		return NULL;
	skb_mark_for_recycle(skb);
	skb_reserve(skb, SKUA_RX_HEADROOM);
	skb_put(skb, len);
	return skb;
}

void skua_rx_complete(struct skua_channel *ch, const struct skua_cqe *cqe)
{
	struct net_device *netdev = ch->eth->netdev;
	struct skua_rx *rx = &ch->rx;
	struct skua_rx_buf *slot = &rx->bufs[rx->rq.ci & (rx->rq.size - 1)];
	struct skua_rx_buf buf = *slot;
	u32 len = le32_to_cpu(cqe->byte_len);
	struct sk_buff *skb;

	slot->page = NULL;
	rx->rq.ci++;
	if (unlikely(cqe->status != SKUA_CQE_SUCCESS || len < ETH_HLEN ||
		     len > ch->frame_size))
		goto drop;

	skb = skua_rx_build_skb(ch, &buf, len);
	if (unlikely(!skb)) {
		dev_core_stats_rx_dropped_inc(netdev);
		goto drop;
	}
	skb_record_rx_queue(skb, ch->index);
	skb->protocol = eth_type_trans(skb, netdev);
	if (cqe->flags & SKUA_CQE_L4_CSUM_OK && netdev->features & NETIF_F_RXCSUM)
		skb->ip_summed = CHECKSUM_UNNECESSARY;
	if (cqe->rss_hash && netdev->features & NETIF_F_RXHASH)
		skb_set_hash(skb, le32_to_cpu(cqe->rss_hash),
			     cqe->flags & SKUA_CQE_L4_HASH ? PKT_HASH_TYPE_L4 : PKT_HASH_TYPE_L3);
	skua_eth_count(&ch->eth->counts[ch->index].rx, 1, len);
	napi_gro_receive(&ch->napi, skb);
	return;

drop:
	page_pool_put_full_page(rx->pool, buf.page, true);
}
