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

static u32 skua_rx_frame_size(const struct skua_eth *eth)
{
	return eth->netdev->mtu + SKUA_FRAME_OVERHEAD;
}

static int skua_rx_create_pool(struct skua_eth *eth)
{
	struct page_pool_params params = {
		.flags = PP_FLAG_DMA_MAP | PP_FLAG_DMA_SYNC_DEV,
		.order = get_order(eth->rx.buf_size),
		.pool_size = eth->rx.rq.size,
		.nid = dev_to_node(skua_nic_device(eth->nic)),
		.dev = skua_nic_device(eth->nic),
		.napi = &eth->napi,
		.dma_dir = DMA_FROM_DEVICE,
		.max_len = PAGE_SIZE << get_order(eth->rx.buf_size),
		.netdev = eth->netdev,
	};
	struct page_pool *pool;

	pool = page_pool_create(&params);
	if (IS_ERR(pool))
		return PTR_ERR(pool);
	eth->rx.pool = pool;
	return 0;
}

int skua_rx_alloc(struct skua_eth *eth)
{
	struct skua_dev *dev = &eth->nic->dev;
	struct skua_rx *rx = &eth->rx;
	u32 size = min_t(u32, SKUA_RX_ENTRIES, rounddown_pow_of_two(dev->limits.max_rq_entries));
	int err;

	err = skua_mem_alloc(dev, &rx->mem, (size_t)size << SKUA_RX_LOG_STRIDE);
	if (err)
		return err;
	memset(&rx->rq, 0, sizeof(rx->rq));
	rx->rq.buf = rx->mem.va;
	rx->rq.size = size;
	rx->rq.log_stride = SKUA_RX_LOG_STRIDE;
	rx->buf_size = SKB_DATA_ALIGN(SKUA_RX_HEADROOM + skua_rx_frame_size(eth)) +
		       SKB_DATA_ALIGN(sizeof(struct skb_shared_info));
	rx->rq.dbr = skua_dbr_alloc(dev, &rx->dbr);
	rx->bufs = kvcalloc(size, sizeof(*rx->bufs), GFP_KERNEL);
	if (!rx->rq.dbr || !rx->bufs)
		return -ENOMEM;
	return skua_rx_create_pool(eth);
}

void skua_rx_free(struct skua_eth *eth)
{
	struct skua_rx *rx = &eth->rx;
	u32 i;

	for (i = 0; rx->bufs && i < rx->rq.size; i++)
		if (rx->bufs[i].page)
			page_pool_put_full_page(rx->pool, rx->bufs[i].page, false);
	if (rx->pool)
		page_pool_destroy(rx->pool);
	rx->pool = NULL;
	kvfree(rx->bufs);
	rx->bufs = NULL;
	skua_dbr_free(&eth->nic->dev, rx->rq.dbr, rx->dbr);
	rx->rq.dbr = NULL;
	skua_mem_free(&eth->nic->dev, &rx->mem);
}

/* The RQ is never rung: the device looks at its record when a frame comes. */
bool skua_rx_fill(struct skua_eth *eth)
{
	u32 lkey = eth->nic->dev.limits.reserved_lkey;
	struct skua_rx *rx = &eth->rx;
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
				 SKUA_RX_HEADROOM, skua_rx_frame_size(eth), lkey);
		rx->rq.pi++;
	}
	if (rx->rq.pi != old)
		skua_dbr_publish(rx->rq.dbr, rx->rq.pi);
	return enough;
}

static struct sk_buff *skua_rx_build_skb(struct skua_eth *eth, const struct skua_rx_buf *buf,
					 u32 len)
{
	struct sk_buff *skb;

	page_pool_dma_sync_for_cpu(eth->rx.pool, buf->page, buf->offset + SKUA_RX_HEADROOM, len);
	skb = napi_build_skb(page_address(buf->page) + buf->offset, eth->rx.buf_size);
	if (unlikely(!skb))
		return NULL;
	skb_mark_for_recycle(skb);
	skb_reserve(skb, SKUA_RX_HEADROOM);
	skb_put(skb, len);
	return skb;
}

void skua_rx_complete(struct skua_eth *eth, const struct skua_cqe *cqe)
{
	struct net_device *netdev = eth->netdev;
	struct skua_rx *rx = &eth->rx;
	struct skua_rx_buf *slot = &rx->bufs[rx->rq.ci & (rx->rq.size - 1)];
	struct skua_rx_buf buf = *slot;
	u32 len = le32_to_cpu(cqe->byte_len);
	struct sk_buff *skb;

	slot->page = NULL;
	rx->rq.ci++;
	if (unlikely(cqe->status != SKUA_CQE_SUCCESS || len < ETH_HLEN ||
		     len > skua_rx_frame_size(eth)))
		goto drop;

	skb = skua_rx_build_skb(eth, &buf, len);
	if (unlikely(!skb)) {
		netdev->stats.rx_dropped++;
		goto drop;
	}
	skb_record_rx_queue(skb, 0);
	skb->protocol = eth_type_trans(skb, netdev);
	if (cqe->flags & SKUA_CQE_L4_CSUM_OK && netdev->features & NETIF_F_RXCSUM)
		skb->ip_summed = CHECKSUM_UNNECESSARY;
	dev_sw_netstats_rx_add(netdev, len);
	napi_gro_receive(&eth->napi, skb);
	return;

drop:
	page_pool_put_full_page(rx->pool, buf.page, true);
}
