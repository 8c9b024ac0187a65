/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * skua_ib.ko: memory of programs, pinned and described to the device.
 */
#ifndef SKUA_IB_UMEM_H
#define SKUA_IB_UMEM_H

#include <rdma/ib_verbs.h>

#include <linux/skua/memory.h>

struct ib_umem;
struct uverbs_attr_bundle;
struct skua_ib_dbr_page;
struct skua_ib_dev;
struct skua_ib_ucontext;

/**
 * struct skua_ib_user_dbr - a doorbell record in a program's memory
 * @page: the page that holds it; NULL: there is none
 * @dma: its DMA address
 */
struct skua_ib_user_dbr {
	struct skua_ib_dbr_page *page;
	dma_addr_t dma;
};

/* Describe pinned memory to the device. Free the pages after the command that takes them. */
int skua_ib_umem_describe(struct skua_dev *dev, struct ib_umem *umem,
			  struct skua_pagelist_builder *pages);
/*
 * A queue of @size bytes, a multiple of @entry_size, is pinned: @umem may be an error. One that is
 * of no use is released, and -EINVAL returned.
 */
struct ib_umem *skua_ib_umem_check_queue(struct ib_umem *umem, size_t size, size_t entry_size);
/* Pin such a queue: the buffer attribute @attr of @attrs if there is one, else at @addr. */
struct ib_umem *skua_ib_umem_queue(struct skua_ib_dev *dev,
				   const struct uverbs_attr_bundle *attrs, u16 attr, u64 addr,
				   size_t size, size_t entry_size);
int skua_ib_user_dbr_get(struct skua_ib_ucontext *ucontext, u64 addr,
			 struct skua_ib_user_dbr *dbr);
/* Nothing happens if there is none. */
void skua_ib_user_dbr_put(struct skua_ib_user_dbr *dbr);

#endif /* SKUA_IB_UMEM_H */
