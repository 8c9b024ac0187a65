// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory of programs: pinned, and described to the device by page lists. Doorbell records are
 * small and many stand in one page, which is pinned once for all of them.
 */
#include <linux/mm.h>
#include <linux/rbtree.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include <linux/skua/memory.h>
#include <skua/doorbell.h>

#include "skua_ib.h"
#include "ucontext.h"
#include "umem.h"

#define SKUA_IB_PAGE_SIZES	GENMASK(SKUA_PL_MAX_LOG_PAGE, SKUA_PL_MIN_LOG_PAGE)

/* Add the pages that a range of DMA addresses touches, at most @left; returns how many. */
static u32 skua_ib_umem_add_range(struct skua_pagelist_builder *pages, u64 start, u64 end, u32 left)
{
	u64 page_size = BIT_ULL(pages->list.log_page);
	u64 first = ALIGN_DOWN(start, page_size);
	u32 num = min_t(u64, (ALIGN(end, page_size) - first) >> pages->list.log_page, left);

	skua_pagelist_add(pages, first, num);
	return num;
}

/*
 * As rdma_umem_for_each_dma_block() does it, but a range of DMA addresses at a time: of large
 * memory, most of what a registration takes beside the pinning is this loop. A range may
 * consist of several entries of the scatterlist, of which two may share a page.
 */
static void skua_ib_umem_add(struct ib_umem *umem, struct skua_pagelist_builder *pages,
			     unsigned long page_size)
{
	/* A page of the kernel may be several of the list, of which the first ones are not used. */
	u64 start = 0, end = 0, skip = ib_umem_offset(umem) & ~((u64)page_size - 1);
	u32 left = pages->npages;
	struct scatterlist *sg;
	unsigned int i;

	for_each_sgtable_dma_sg(&umem->sgt_append.sgt, sg, i) {
		if (!i || sg_dma_address(sg) != end) {
			left -= skua_ib_umem_add_range(pages, start, end, left);
			start = sg_dma_address(sg) + skip;
			end = sg_dma_address(sg);
			skip = 0;
		}
		end += sg_dma_len(sg);
	}
	skua_ib_umem_add_range(pages, start, end, left);
}

int skua_ib_umem_describe(struct skua_dev *dev, struct ib_umem *umem,
			  struct skua_pagelist_builder *pages)
{
	unsigned long page_size;
	int err;

	/* The device does not mind how I/O addresses are aligned to DMA addresses (MR-2). */
	page_size = ib_umem_find_best_pgsz(umem, SKUA_IB_PAGE_SIZES, umem->address);
	if (!page_size)
		return -EINVAL;
	err = skua_pagelist_begin(dev, pages, ib_umem_num_dma_blocks(umem, page_size),
				  ilog2(page_size), ib_umem_dma_offset(umem, page_size));
	if (err)
		return err;
	skua_ib_umem_add(umem, pages, page_size);
	skua_pagelist_end(dev, pages);
	return 0;
}

struct ib_umem *skua_ib_umem_check_queue(struct ib_umem *umem, size_t size, size_t entry_size)
{
	if (IS_ERR(umem))
		return umem;
	/* No page boundary may cut an entry (PL-9). */
	if (umem->length == size && IS_ALIGNED(umem->address, entry_size))
		return umem;
	ib_umem_release(umem);
	return ERR_PTR(-EINVAL);
}

struct ib_umem *skua_ib_umem_queue(struct skua_ib_dev *dev,
				   const struct uverbs_attr_bundle *attrs, u16 attr, u64 addr,
				   size_t size, size_t entry_size)
{
	struct ib_umem *umem;

	umem = ib_umem_get_attr_or_va(&dev->ibdev, attrs, attr, addr, size, IB_ACCESS_LOCAL_WRITE);
	return skua_ib_umem_check_queue(umem, size, entry_size);
}

/**
 * struct skua_ib_dbr_page - a page of a program that holds doorbell records
 * @node: in the context's tree
 * @ucontext: its context
 * @umem: the pinned page
 * @mm: of the process that it is a page of
 * @addr: its address there
 * @users: records in use
 */
struct skua_ib_dbr_page {
	struct rb_node node;
	struct skua_ib_ucontext *ucontext;
	struct ib_umem *umem;
	struct mm_struct *mm;
	unsigned long addr;
	unsigned int users;
};

/* Contexts are shared over fork: the same address may be another page. */
static int skua_ib_dbr_page_cmp(const struct skua_ib_dbr_page *a,
				const struct skua_ib_dbr_page *b)
{
	if (a->mm != b->mm)
		return a->mm < b->mm ? -1 : 1;
	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	return 0;
}

static int skua_ib_dbr_page_cmp_key(const void *key, const struct rb_node *node)
{
	return skua_ib_dbr_page_cmp(key, rb_entry(node, struct skua_ib_dbr_page, node));
}

static bool skua_ib_dbr_page_less(struct rb_node *a, const struct rb_node *b)
{
	return skua_ib_dbr_page_cmp_key(rb_entry(a, struct skua_ib_dbr_page, node), b) < 0;
}

static struct skua_ib_dbr_page *skua_ib_dbr_page_find(struct skua_ib_ucontext *ucontext,
						      unsigned long addr)
{
	const struct skua_ib_dbr_page key = { .mm = current->mm, .addr = addr };
	struct rb_node *node = rb_find(&key, &ucontext->dbr_pages, skua_ib_dbr_page_cmp_key);

	return node ? rb_entry(node, struct skua_ib_dbr_page, node) : NULL;
}

static struct skua_ib_dbr_page *skua_ib_dbr_page_pin(struct skua_ib_ucontext *ucontext,
						     unsigned long addr)
{
	struct skua_ib_dbr_page *page;

	page = kzalloc(sizeof(*page), GFP_KERNEL_ACCOUNT);
	if (!page)
		return ERR_PTR(-ENOMEM);
	page->umem = ib_umem_get_va(ucontext->ibucontext.device, addr, PAGE_SIZE,
				    IB_ACCESS_LOCAL_WRITE);
	if (IS_ERR(page->umem)) {
		struct ib_umem *err = page->umem;

		kfree(page);
		return ERR_CAST(err);
	}
	page->ucontext = ucontext;
	page->mm = page->umem->owning_mm;
	page->addr = addr;
	rb_add(&page->node, &ucontext->dbr_pages, skua_ib_dbr_page_less);
	return page;
}

int skua_ib_user_dbr_get(struct skua_ib_ucontext *ucontext, u64 addr,
			 struct skua_ib_user_dbr *dbr)
{
	struct skua_ib_dbr_page *page;
	int err = 0;

	if (!IS_ALIGNED(addr, sizeof(struct skua_dbr)))
		return -EINVAL;

	mutex_lock(&ucontext->dbr_lock);
	page = skua_ib_dbr_page_find(ucontext, addr & PAGE_MASK);
	if (!page)
		page = skua_ib_dbr_page_pin(ucontext, addr & PAGE_MASK);
	if (IS_ERR(page)) {
		err = PTR_ERR(page);
		goto out;
	}
	page->users++;
	dbr->page = page;
	dbr->dma = sg_dma_address(page->umem->sgt_append.sgt.sgl) + offset_in_page(addr);
out:
	mutex_unlock(&ucontext->dbr_lock);
	return err;
}

void skua_ib_user_dbr_put(struct skua_ib_user_dbr *dbr)
{
	struct skua_ib_dbr_page *page = dbr->page;
	struct skua_ib_ucontext *ucontext;

	if (!page)
		return;
	ucontext = page->ucontext;
	mutex_lock(&ucontext->dbr_lock);
	if (!--page->users) {
		rb_erase(&page->node, &ucontext->dbr_pages);
		ib_umem_release(page->umem);
		kfree(page);
	}
	mutex_unlock(&ucontext->dbr_lock);
	dbr->page = NULL;
}
