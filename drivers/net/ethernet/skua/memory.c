// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory that host and device share: rings and records of the kernel, and page lists, which
 * describe any memory to the device.
 */
#include <linux/dma-mapping.h>
#include <linux/dmapool.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "skua.h"

static_assert(sizeof(struct skua_dbr) == sizeof(struct skua_cq_dbr));
static_assert(sizeof(struct skua_dbr) == sizeof(struct skua_eq_dbr));

void *skua_dbr_alloc(struct skua_dev *dev, dma_addr_t *dma)
{
	return dma_pool_zalloc(to_skua_nic(dev)->dbr_pool, GFP_KERNEL, dma);
}
EXPORT_SYMBOL_NS_GPL(skua_dbr_alloc, SKUA_NS);

void skua_dbr_free(struct skua_dev *dev, void *dbr, dma_addr_t dma)
{
	if (dbr)
		dma_pool_free(to_skua_nic(dev)->dbr_pool, dbr, dma);
}
EXPORT_SYMBOL_NS_GPL(skua_dbr_free, SKUA_NS);

/* List pages are allocated and mapped so many at a time: an order that hardly ever fails. */
#define SKUA_LISTS_AT_ONCE	8

struct skua_list_page {
	__le64 *entries;
	dma_addr_t dma;
};

static u32 skua_pagelist_num_lists(u32 npages, u8 *level)
{
	u32 total = 0;
	u32 nodes = npages;

	*level = 0;
	if (npages <= SKUA_PL_INLINE)
		return 0;
	do {
		nodes = DIV_ROUND_UP(nodes, SKUA_PL_PER_PAGE);
		total += nodes;
		++*level;
	} while (nodes > 1);
	return total;
}

/* Bytes of the list pages that were allocated together, of which the first is given. */
static size_t skua_pagelist_chunk_size(const struct skua_pagelist_builder *pages, u32 first)
{
	return min_t(u32, pages->nlists - first, SKUA_LISTS_AT_ONCE) * SKUA_PAGE_SIZE;
}

static int skua_pagelist_chunk_alloc(struct skua_dev *dev, struct skua_pagelist_builder *pages,
				     u32 first)
{
	size_t size = skua_pagelist_chunk_size(pages, first);
	struct skua_list_page *list = &pages->lists[first];
	size_t offset;
	dma_addr_t dma;
	void *va;

	va = kzalloc(size, GFP_KERNEL);
	if (!va)
		return -ENOMEM;
	dma = dma_map_single(skua_dma_dev(dev), va, size, DMA_TO_DEVICE);
	if (dma_mapping_error(skua_dma_dev(dev), dma)) {
		kfree(va);
		return -ENOMEM;
	}
	for (offset = 0; offset < size; offset += SKUA_PAGE_SIZE, list++) {
		list->entries = va + offset;
		list->dma = dma + offset;
	}
	return 0;
}

int skua_pagelist_begin(struct skua_dev *dev, struct skua_pagelist_builder *pages, u64 npages,
			unsigned int log_page, u64 offset)
{
	int err;
	u32 i;

	memset(pages, 0, sizeof(*pages));
	if (!npages)
		return -EINVAL;
	if (npages > SKUA_PL_MAX_PAGES || npages > dev->limits.max_pages)
		return -ENOMEM;
	pages->npages = npages;
	pages->nlists = skua_pagelist_num_lists(npages, &pages->list.level);
	pages->list.npages = cpu_to_le32(npages);
	pages->list.log_page = log_page;
	pages->list.offset = cpu_to_le64(offset);
	if (!pages->nlists)
		return 0;

	pages->lists = kvcalloc(pages->nlists, sizeof(*pages->lists), GFP_KERNEL);
	if (!pages->lists)
		return -ENOMEM;
	for (i = 0; i < pages->nlists; i += SKUA_LISTS_AT_ONCE) {
		err = skua_pagelist_chunk_alloc(dev, pages, i);
		if (err) {
			skua_pagelist_free(dev, pages);
			return err;
		}
		cond_resched();
	}
	return 0;
}
EXPORT_SYMBOL_NS_GPL(skua_pagelist_begin, SKUA_NS);

void skua_pagelist_add(struct skua_pagelist_builder *pages, dma_addr_t addr, u32 num)
{
	u64 entry = addr | SKUA_PL_PRESENT;
	u64 page_size = 1ULL << pages->list.log_page;
	u32 i, end;

	if (WARN_ON_ONCE(num > pages->npages - pages->added))
		return;
	i = pages->added;
	pages->added += num;
	if (!pages->nlists) {
		for (; num--; entry += page_size)
			pages->list.addr[i++] = cpu_to_le64(entry);
		return;
	}
	while (num) {
		struct skua_list_page *list = &pages->lists[i / SKUA_PL_PER_PAGE];

		end = min(i + num, round_down(i, SKUA_PL_PER_PAGE) + SKUA_PL_PER_PAGE);
		for (num -= end - i; i != end; i++, entry += page_size)
			list->entries[i % SKUA_PL_PER_PAGE] = cpu_to_le64(entry);
	}
}
EXPORT_SYMBOL_NS_GPL(skua_pagelist_add, SKUA_NS);

/* The lists of the pages stand first; behind them go lists of lists, up to the last, the root. */
void skua_pagelist_end(struct skua_dev *dev, struct skua_pagelist_builder *pages)
{
	u32 upper, child, children, i;

	WARN_ON_ONCE(pages->added != pages->npages);
	if (!pages->nlists)
		return;

	child = 0;
	children = DIV_ROUND_UP(pages->npages, SKUA_PL_PER_PAGE);
	while (children > 1) {
		upper = child + children;
		for (i = 0; i < children; i++)
			pages->lists[upper + i / SKUA_PL_PER_PAGE].entries[i % SKUA_PL_PER_PAGE] =
				cpu_to_le64(pages->lists[child + i].dma | SKUA_PL_PRESENT);
		child = upper;
		children = DIV_ROUND_UP(children, SKUA_PL_PER_PAGE);
	}
	pages->list.addr[0] = cpu_to_le64(pages->lists[child].dma | SKUA_PL_PRESENT);
	for (i = 0; i < pages->nlists; i += SKUA_LISTS_AT_ONCE)
		dma_sync_single_for_device(skua_dma_dev(dev), pages->lists[i].dma,
					   skua_pagelist_chunk_size(pages, i), DMA_TO_DEVICE);
}
EXPORT_SYMBOL_NS_GPL(skua_pagelist_end, SKUA_NS);

void skua_pagelist_free(struct skua_dev *dev, struct skua_pagelist_builder *pages)
{
	u32 i;

	for (i = 0; i < pages->nlists && pages->lists[i].entries; i += SKUA_LISTS_AT_ONCE) {
		dma_unmap_single(skua_dma_dev(dev), pages->lists[i].dma,
				 skua_pagelist_chunk_size(pages, i), DMA_TO_DEVICE);
		kfree(pages->lists[i].entries);
		cond_resched();
	}
	kvfree(pages->lists);
	pages->lists = NULL;
	pages->nlists = 0;
}
EXPORT_SYMBOL_NS_GPL(skua_pagelist_free, SKUA_NS);

int skua_mem_alloc(struct skua_dev *dev, struct skua_mem *mem, size_t size)
{
	memset(mem, 0, sizeof(*mem));
	mem->size = max_t(size_t, roundup_pow_of_two(size), PAGE_SIZE);
	mem->va = dma_alloc_coherent(skua_dma_dev(dev), mem->size, &mem->dma,
				     GFP_KERNEL | __GFP_NOWARN);
	if (!mem->va)
		return -ENOMEM;
	/* The DMA API aligns it to its size, except for what it takes from a CMA area. */
	if (IS_ALIGNED(mem->dma, mem->size))
		return 0;
	dma_free_coherent(skua_dma_dev(dev), mem->size, mem->va, mem->dma);
	mem->va = NULL;
	return -ENOMEM;
}
EXPORT_SYMBOL_NS_GPL(skua_mem_alloc, SKUA_NS);

static int skua_mem_gather(struct skua_mem *mem)
{
	unsigned int npages = mem->size >> PAGE_SHIFT;
	struct page **pages;
	unsigned int i;
	int err;

	pages = kvmalloc_array(npages, sizeof(*pages), GFP_KERNEL);
	if (!pages)
		return -ENOMEM;
	for (i = 0; i < npages; i++)
		pages[i] = vmalloc_to_page(mem->va + i * PAGE_SIZE);
	err = sg_alloc_table_from_pages(&mem->sgt, pages, npages, 0, mem->size, GFP_KERNEL);
	kvfree(pages);
	return err;
}

/* Ordinary memory is coherent where the device sees it as it is, without copies and caches. */
static bool skua_mem_is_coherent(struct device *device, struct skua_mem *mem)
{
	struct scatterlist *sg;
	unsigned int i;

	for_each_sgtable_dma_sg(&mem->sgt, sg, i)
		if (dma_need_sync(device, sg_dma_address(sg)))
			return false;
	return true;
}

static int skua_mem_list(struct skua_dev *dev, struct skua_mem *mem)
{
	struct sg_dma_page_iter page;
	int err;

	err = skua_pagelist_begin(dev, &mem->pages, mem->size >> PAGE_SHIFT, PAGE_SHIFT, 0);
	if (err)
		return err;
	for_each_sgtable_dma_page(&mem->sgt, &page, 0)
		skua_pagelist_add(&mem->pages, sg_page_iter_dma_address(&page), 1);
	skua_pagelist_end(dev, &mem->pages);
	return 0;
}

static int skua_mem_scatter(struct skua_dev *dev, struct skua_mem *mem)
{
	struct device *device = skua_dma_dev(dev);
	int err;

	mem->va = vzalloc(mem->size);
	if (!mem->va)
		return -ENOMEM;
	err = skua_mem_gather(mem);
	if (err)
		goto err_va;
	err = dma_map_sgtable(device, &mem->sgt, DMA_BIDIRECTIONAL, 0);
	if (err)
		goto err_table;
	err = skua_mem_is_coherent(device, mem) ? skua_mem_list(dev, mem) : -ENOMEM;
	if (err)
		goto err_map;
	return 0;

err_map:
	dma_unmap_sgtable(device, &mem->sgt, DMA_BIDIRECTIONAL, 0);
err_table:
	sg_free_table(&mem->sgt);
err_va:
	vfree(mem->va);
	memset(mem, 0, sizeof(*mem));
	return err;
}

int skua_mem_alloc_large(struct skua_dev *dev, struct skua_mem *mem, size_t size)
{
	if (!skua_mem_alloc(dev, mem, size))
		return 0;
	return skua_mem_scatter(dev, mem);
}
EXPORT_SYMBOL_NS_GPL(skua_mem_alloc_large, SKUA_NS);

void skua_mem_free(struct skua_dev *dev, struct skua_mem *mem)
{
	struct device *device = skua_dma_dev(dev);

	if (!mem->va)
		return;
	if (mem->sgt.sgl) {
		skua_pagelist_free(dev, &mem->pages);
		dma_unmap_sgtable(device, &mem->sgt, DMA_BIDIRECTIONAL, 0);
		sg_free_table(&mem->sgt);
		vfree(mem->va);
	} else {
		dma_free_coherent(device, mem->size, mem->va, mem->dma);
	}
	mem->va = NULL;
}
EXPORT_SYMBOL_NS_GPL(skua_mem_free, SKUA_NS);

void skua_mem_describe(const struct skua_mem *mem, struct skua_pagelist *list)
{
	if (mem->sgt.sgl) {
		*list = mem->pages.list;
		return;
	}
	memset(list, 0, sizeof(*list));
	list->npages = cpu_to_le32(1);
	list->log_page = ilog2(mem->size);
	list->addr[0] = cpu_to_le64(mem->dma | SKUA_PL_PRESENT);
}
EXPORT_SYMBOL_NS_GPL(skua_mem_describe, SKUA_NS);
