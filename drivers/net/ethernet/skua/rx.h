/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * skua.ko: receiving frames.
 */
#ifndef SKUA_RX_H
#define SKUA_RX_H

#include <linux/skua/memory.h>
#include <linux/skua/queue.h>

struct page;
struct page_pool;
struct skua_channel;

#define SKUA_RX_ENTRIES		512	/* of an RQ, unless ethtool says otherwise */
#define SKUA_RX_MIN_ENTRIES	16
#define SKUA_RX_LIMIT_ENTRIES	4096
#define SKUA_RX_LOG_STRIDE	SKUA_RQE_MIN_LOG_STRIDE

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

int skua_rx_alloc(struct skua_channel *ch, u32 entries);
/* Takes what a failed alloc left, too. */
void skua_rx_free(struct skua_channel *ch);
/* Post buffers wherever there are none. False if there was not enough memory. */
bool skua_rx_fill(struct skua_channel *ch);
/* Pass a frame on. NAPI context. */
void skua_rx_complete(struct skua_channel *ch, const struct skua_cqe *cqe);

#endif /* SKUA_RX_H */
