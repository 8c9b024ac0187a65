/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Skua: memory that host and device share, and how page lists describe it.
 */
#ifndef LINUX_SKUA_MEMORY_H
#define LINUX_SKUA_MEMORY_H

#include <linux/scatterlist.h>
#include <linux/types.h>

#include <skua/pagelist.h>

struct skua_dev;

/* A doorbell record of the kernel: 64 bytes, zeroed. NULL without memory. May sleep. */
void *skua_dbr_alloc(struct skua_dev *dev, dma_addr_t *dma);
/* Nothing happens if @dbr is NULL. */
void skua_dbr_free(struct skua_dev *dev, void *dbr, dma_addr_t dma);

/**
 * struct skua_pagelist_builder - a page list being made, with the list pages that it takes
 * @list: what a command takes, complete after skua_pagelist_end()
 * @npages: entries it will have
 * @added: entries it has
 * @lists: list pages; those with the entries come first
 * @nlists: how many
 *
 * Begin, add exactly @npages addresses, end; give @list to a command; free when the command is
 * done. The list pages are not needed after that, the pages themselves are.
 */
struct skua_pagelist_builder {
	struct skua_pagelist list;
	u32 npages;
	u32 added;
	struct skua_list_page *lists;
	u32 nlists;
};

/**
 * skua_pagelist_begin() - begin a page list
 * @dev: the device
 * @pages: what to make
 * @npages: number of pages, at least 1
 * @log_page: log2 of the page size, SKUA_PL_MIN_LOG_PAGE to SKUA_PL_MAX_LOG_PAGE
 * @offset: of the buffer in its first page
 *
 * May sleep.
 *
 * Return: 0, -EINVAL or -ENOMEM; on error there is nothing to free.
 */
int skua_pagelist_begin(struct skua_dev *dev, struct skua_pagelist_builder *pages, u64 npages,
			unsigned int log_page, u64 offset);
/* Add @num pages that follow each other, the first at @addr, which is aligned to the page size. */
void skua_pagelist_add(struct skua_pagelist_builder *pages, dma_addr_t addr, u32 num);
void skua_pagelist_end(struct skua_dev *dev, struct skua_pagelist_builder *pages);
void skua_pagelist_free(struct skua_dev *dev, struct skua_pagelist_builder *pages);

/**
 * struct skua_mem - the kernel's memory for one ring: coherent and zeroed
 * @va: its address
 * @dma: its DMA address, aligned to its size, if it is one DMA range
 * @size: bytes, a power of two, at least a page
 * @sgt: its pages, if it is not
 * @pages: their list
 */
struct skua_mem {
	void *va;
	dma_addr_t dma;
	size_t size;
	struct sg_table sgt;
	struct skua_pagelist_builder pages;
};

/* One DMA range. May sleep. @size is rounded up to a power of two. */
int skua_mem_alloc(struct skua_dev *dev, struct skua_mem *mem, size_t size);
/* The same for what may be larger than there are ranges: if need be, pages from anywhere. */
int skua_mem_alloc_large(struct skua_dev *dev, struct skua_mem *mem, size_t size);
/* Only after the device was told to let go of it. Nothing happens if @mem is empty. */
void skua_mem_free(struct skua_dev *dev, struct skua_mem *mem);
/* Describe @mem, for as long as it is there. */
void skua_mem_describe(const struct skua_mem *mem, struct skua_pagelist *list);

#endif /* LINUX_SKUA_MEMORY_H */
