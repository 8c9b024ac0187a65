// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * On-demand paging: regions of programs without pinned pages.
 *
 * Theory of operation: the device has no page of such a region at first. An access to a page that
 * it does not have is a page fault, and the QP waits. A work faults the page in as the program
 * would, maps it for the device, tells the device (UPDATE_PAGES), and lets the QP go on
 * (FAULT_RESUME). When the kernel's memory management takes pages away, its notifier first takes
 * them from the device, which is a fence (ODP-6), and then from the DMA mapping. A region of all
 * addresses differs only in its length: nothing here grows with the length of a region, only with
 * the pages that the device has of it.
 *
 * The lock of a region is held from the check that no page has gone meanwhile
 * (mmu_interval_read_retry) until the device has the pages, and for as long as the notifier takes
 * them away. The notifier may run where memory is reclaimed. So nothing is allocated under
 * this lock that could wait for memory, and no command is waited for but UPDATE_PAGES, which does
 * not wait for others (CMD-18).
 */
#include <linux/dma-mapping.h>
#include <linux/hmm.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/pagemap.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include <linux/skua/command.h>
#include <skua/pagelist.h>

#include "mr.h"
#include "odp.h"
#include "pd.h"
#include "skua_ib.h"
#include "ucontext.h"

#define SKUA_IB_ODP_CHUNK	SKUA_UPDATE_PAGES_MAX	/* pages that are mapped at a time */
#define SKUA_IB_ODP_FAULT_MAX	SZ_16M			/* bytes that one page fault brings in */
#define SKUA_IB_ODP_RETRY_MS	1000			/* while pages keep going away */
#define SKUA_IB_PREFETCHES	4			/* at the same time; the others wait */

/**
 * struct skua_ib_odp_page - a page that the device has
 * @page: the page
 * @dma: its DMA address
 * @writable: the device may write to it; it is mapped so
 */
struct skua_ib_odp_page {
	struct page *page;
	dma_addr_t dma;
	bool writable;
};

/**
 * struct skua_ib_odp - a region on demand
 * @dev: its device
 * @ibmr: the region
 * @works: of its program
 * @notifier: tells of pages that go away
 * @lock: what follows, and UPDATE_PAGES; see above
 * @pages: struct skua_ib_odp_page by index in the region
 * @gone: it gets no pages any more
 * @list: entries for UPDATE_PAGES
 * @list_dma: their DMA address
 * @start: address of its first byte in the program
 * @last: offset of its last byte
 * @iova: address of its first byte for WQEs and peers
 * @writable: the device may write to it
 * @key: of the region
 * @serial: no other region of the device has or had it
 * @users: the region itself, and each work that uses it
 * @unused: completed by the last of them
 */
struct skua_ib_odp {
	struct skua_ib_dev *dev;
	struct ib_mr *ibmr;
	struct skua_ib_odp_works *works;
	struct mmu_interval_notifier notifier;
	struct mutex lock;		/* see above */
	struct xarray pages;
	bool gone;
	__le64 *list;
	dma_addr_t list_dma;
	u64 start;
	u64 last;
	u64 iova;
	bool writable;
	u32 key;
	u64 serial;
	refcount_t users;
	struct completion unused;
};

/**
 * struct skua_ib_odp_chunk - pages on their way to the device
 * @pfns: as the kernel found them
 * @pages: memory to describe those that the device does not have yet, or not so
 * @old: as the device has them, if they become writable
 * @first: index of the first in the region
 * @n: how many
 * @flags: HMM_PFN_REQ_*
 */
struct skua_ib_odp_chunk {
	unsigned long pfns[SKUA_IB_ODP_CHUNK];
	struct skua_ib_odp_page *pages[SKUA_IB_ODP_CHUNK];
	struct skua_ib_odp_page *old[SKUA_IB_ODP_CHUNK];
	unsigned long first;
	unsigned int n;
	unsigned long flags;
};

static struct device *skua_ib_odp_device(const struct skua_ib_odp *odp)
{
	return skua_dma_dev(odp->dev->dev);
}

static enum dma_data_direction skua_ib_odp_direction(const struct skua_ib_odp_page *page)
{
	return page->writable ? DMA_BIDIRECTIONAL : DMA_TO_DEVICE;
}

static unsigned long skua_ib_odp_index(const struct skua_ib_odp *odp, unsigned long va)
{
	return (va >> PAGE_SHIFT) - (odp->start >> PAGE_SHIFT);
}

static unsigned long skua_ib_odp_last_index(const struct skua_ib_odp *odp)
{
	return (offset_in_page(odp->start) + odp->last) >> PAGE_SHIFT;
}

/* The device has the page no more. */
static void skua_ib_odp_unmap(struct skua_ib_odp *odp, struct skua_ib_odp_page *page)
{
	dma_unmap_page(skua_ib_odp_device(odp), page->dma, PAGE_SIZE, skua_ib_odp_direction(page));
	/* The program's page table may have been clean again, as with MADV_FREE. */
	if (page->writable)
		folio_mark_dirty(page_folio(page->page));
	kfree(page);
}

/* Take pages from the device, up to the one with index @last. */
static void skua_ib_odp_drop(struct skua_ib_odp *odp, unsigned long first, unsigned long last)
{
	struct skua_ib_odp_page *page;
	unsigned long i = first;

	lockdep_assert_held(&odp->lock);
	if (!xa_find(&odp->pages, &i, last, XA_PRESENT))
		return;
	skua_cmd_drop_pages(odp->dev->dev, odp->key, first, (u64)last - first + 1);
	xa_for_each_range(&odp->pages, i, page, first, last) {
		xa_erase(&odp->pages, i);
		skua_ib_odp_unmap(odp, page);
		cond_resched();
	}
}

static bool skua_ib_odp_invalidate(struct mmu_interval_notifier *notifier,
				   const struct mmu_notifier_range *range, unsigned long seq)
{
	struct skua_ib_odp *odp = container_of(notifier, struct skua_ib_odp, notifier);
	unsigned long start = max_t(unsigned long, range->start, odp->start & PAGE_MASK);
	unsigned long last = min_t(unsigned long, range->end - 1, odp->start + odp->last);

	/* The device is waited for. */
	if (!mmu_notifier_range_blockable(range))
		return false;
	mutex_lock(&odp->lock);
	mmu_interval_set_seq(notifier, seq);
	skua_ib_odp_drop(odp, skua_ib_odp_index(odp, start), skua_ib_odp_index(odp, last));
	mutex_unlock(&odp->lock);
	return true;
}

static const struct mmu_interval_notifier_ops skua_ib_odp_notifier_ops = {
	.invalidate = skua_ib_odp_invalidate,
};

/* Is the page with this index of a chunk the one that the device is to have? */
static bool skua_ib_odp_is_new(struct skua_ib_odp *odp, const struct skua_ib_odp_chunk *chunk,
			       unsigned int i)
{
	return xa_load(&odp->pages, chunk->first + i) == chunk->pages[i];
}

/* Undo skua_ib_odp_map_page() for the first @n pages, which the device did not get. */
static void skua_ib_odp_unmap_chunk(struct skua_ib_odp *odp, struct skua_ib_odp_chunk *chunk,
				    unsigned int n)
{
	while (n--) {
		struct skua_ib_odp_page *page = chunk->pages[n];

		if (!skua_ib_odp_is_new(odp, chunk, n))
			continue;
		/* Nothing is allocated for what takes the place of another. */
		if (chunk->old[n])
			xa_store(&odp->pages, chunk->first + n, chunk->old[n], GFP_NOWAIT);
		else
			xa_erase(&odp->pages, chunk->first + n);
		dma_unmap_page(skua_ib_odp_device(odp), page->dma, PAGE_SIZE,
			       skua_ib_odp_direction(page));
	}
}

/* Map a page for the device, unless it has it so. *@entry: for UPDATE_PAGES. */
static int skua_ib_odp_map_page(struct skua_ib_odp *odp, struct skua_ib_odp_chunk *chunk,
				unsigned int i, __le64 *entry)
{
	struct skua_ib_odp_page *page = xa_load(&odp->pages, chunk->first + i);
	bool writable = odp->writable && chunk->pfns[i] & HMM_PFN_WRITE;

	*entry = 0;
	if (!(chunk->pfns[i] & HMM_PFN_VALID))
		return 0;
	if (!page || (writable && !page->writable)) {
		chunk->old[i] = page;
		page = chunk->pages[i];
		page->page = hmm_pfn_to_page(chunk->pfns[i]);
		page->writable = writable;
		page->dma = dma_map_page(skua_ib_odp_device(odp), page->page, 0, PAGE_SIZE,
					 skua_ib_odp_direction(page));
		if (dma_mapping_error(skua_ib_odp_device(odp), page->dma))
			return -ENOMEM;
		/* The slot was reserved, but may have been given back with a page that went. */
		if (xa_err(xa_store(&odp->pages, chunk->first + i, page, GFP_NOWAIT))) {
			dma_unmap_page(skua_ib_odp_device(odp), page->dma, PAGE_SIZE,
				       skua_ib_odp_direction(page));
			return -EBUSY;
		}
	}
	*entry = cpu_to_le64(page->dma | SKUA_PL_PRESENT |
			     (page->writable ? 0 : SKUA_PL_READ_ONLY));
	return 0;
}

/* Give the pages to the device. */
static int skua_ib_odp_map_chunk(struct skua_ib_odp *odp, struct skua_ib_odp_chunk *chunk)
{
	unsigned int i;
	int err;

	lockdep_assert_held(&odp->lock);
	for (i = 0; i < chunk->n; i++) {
		err = skua_ib_odp_map_page(odp, chunk, i, &odp->list[i]);
		if (err)
			goto err_unmap;
	}
	err = skua_cmd_set_pages(odp->dev->dev, odp->key, chunk->first, chunk->n, odp->list_dma);
	if (err)
		goto err_unmap;
	for (i = 0; i < chunk->n; i++) {
		if (!skua_ib_odp_is_new(odp, chunk, i))
			continue;
		chunk->pages[i] = NULL;
		if (chunk->old[i])
			skua_ib_odp_unmap(odp, chunk->old[i]);
	}
	return 0;

err_unmap:
	skua_ib_odp_unmap_chunk(odp, chunk, i);
	return err;
}

/* Find the program's pages, and give them to the device while they are still its pages. */
static int skua_ib_odp_fault_chunk(struct skua_ib_odp *odp, struct skua_ib_odp_chunk *chunk)
{
	unsigned long timeout = jiffies + msecs_to_jiffies(SKUA_IB_ODP_RETRY_MS);
	struct mm_struct *mm = odp->notifier.mm;
	struct hmm_range range = {
		.notifier = &odp->notifier,
		.start = (odp->start & PAGE_MASK) + (chunk->first << PAGE_SHIFT),
		.hmm_pfns = chunk->pfns,
		.default_flags = chunk->flags,
	};
	int err;

	range.end = range.start + ((unsigned long)chunk->n << PAGE_SHIFT);
	/* Who changes the program's map, as fork() does, waits, and cannot be first each time. */
	mmap_read_lock(mm);
	do {
		range.notifier_seq = mmu_interval_read_begin(&odp->notifier);
		err = hmm_range_fault(&range);
		if (err)
			continue;
		mutex_lock(&odp->lock);
		if (odp->gone)
			err = -EFAULT;
		else if (mmu_interval_read_retry(&odp->notifier, range.notifier_seq))
			err = -EBUSY;
		else
			err = skua_ib_odp_map_chunk(odp, chunk);
		mutex_unlock(&odp->lock);
	} while (err == -EBUSY && time_before(jiffies, timeout));
	mmap_read_unlock(mm);
	return err;
}

/* Memory that is not to be allocated under the lock. */
static int skua_ib_odp_prepare_chunk(struct skua_ib_odp *odp, struct skua_ib_odp_chunk *chunk)
{
	unsigned int i;
	int err;

	for (i = 0; i < chunk->n; i++) {
		chunk->pages[i] = kmalloc(sizeof(*chunk->pages[i]), GFP_KERNEL);
		if (!chunk->pages[i])
			return -ENOMEM;
		err = xa_reserve(&odp->pages, chunk->first + i, GFP_KERNEL);
		if (err)
			return err;
	}
	return 0;
}

/* Also after skua_ib_odp_prepare_chunk() has failed. */
static void skua_ib_odp_clean_chunk(struct skua_ib_odp *odp, struct skua_ib_odp_chunk *chunk)
{
	unsigned int i;

	for (i = 0; i < chunk->n; i++) {
		kfree(chunk->pages[i]);
		chunk->pages[i] = NULL;
		chunk->old[i] = NULL;
		xa_release(&odp->pages, chunk->first + i);
	}
}

/*
 * Bring in the pages of @length bytes at @va, which are in the region. Without HMM_PFN_REQ_FAULT
 * only those that the program has in its page table. Return: 0 if the first page is there, so that
 * who waits can go on.
 */
static int skua_ib_odp_bring(struct skua_ib_odp *odp, unsigned long va, u64 length,
			     unsigned long flags)
{
	unsigned long i = skua_ib_odp_index(odp, va);
	unsigned long last = skua_ib_odp_index(odp, va + length - 1);
	struct skua_ib_odp_chunk *chunk;
	bool any = false;
	int err = 0;

	chunk = kvzalloc(sizeof(*chunk), GFP_KERNEL);
	if (!chunk)
		return -ENOMEM;
	if (!mmget_not_zero(odp->notifier.mm)) {
		err = -EFAULT;
		goto out;
	}
	chunk->flags = flags;
	for (; !err && i <= last; i += chunk->n) {
		chunk->first = i;
		chunk->n = min(last - i + 1, (unsigned long)SKUA_IB_ODP_CHUNK);
		/* Of a range with a hole, the first page alone may be had. */
		if (!any && chunk->flags)
			chunk->n = 1;
		err = skua_ib_odp_prepare_chunk(odp, chunk);
		if (!err)
			err = skua_ib_odp_fault_chunk(odp, chunk);
		skua_ib_odp_clean_chunk(odp, chunk);
		any |= !err;
		cond_resched();
		/* A program that waits for its prefetch may be killed. */
		if (!err && fatal_signal_pending(current))
			err = -EINTR;
	}
	mmput_async(odp->notifier.mm);
out:
	kvfree(chunk);
	return any ? 0 : err;
}

static unsigned long skua_ib_odp_flags(bool write)
{
	return HMM_PFN_REQ_FAULT | (write ? HMM_PFN_REQ_WRITE : 0);
}

/* Are these bytes of the region? *@va: where the program has them. */
static bool skua_ib_odp_range(const struct skua_ib_odp *odp, u64 addr, u64 length,
			      unsigned long *va)
{
	u64 offset = addr - odp->iova;

	*va = odp->start + offset;
	return length && offset <= odp->last && length - 1 <= odp->last - offset;
}

/* The region with this key, with a reference, or NULL. */
static struct skua_ib_odp *skua_ib_odp_get(struct skua_ib_dev *dev, u32 key)
{
	struct skua_ib_odp *odp;

	xa_lock(&dev->faults.mrs);
	odp = xa_load(&dev->faults.mrs, key >> 8);
	if (odp && odp->key == key)
		refcount_inc(&odp->users);
	else
		odp = NULL;
	xa_unlock(&dev->faults.mrs);
	return odp;
}

static void skua_ib_odp_put(struct skua_ib_odp *odp)
{
	if (refcount_dec_and_test(&odp->users))
		complete(&odp->unused);
}

/**
 * struct skua_ib_fault - a page fault that is to be resolved
 * @work: does it
 * @dev: of the QP
 * @eqe: what the device said
 */
struct skua_ib_fault {
	struct work_struct work;
	struct skua_ib_dev *dev;
	struct skua_fault_eqe eqe;
};

static void skua_ib_fault_resolve(struct skua_ib_dev *dev, const struct skua_fault_eqe *eqe)
{
	struct skua_ib_odp *odp = skua_ib_odp_get(dev, le32_to_cpu(eqe->key));
	u64 length = min_t(u64, le64_to_cpu(eqe->length), SKUA_IB_ODP_FAULT_MAX);
	bool write = eqe->write;
	unsigned long va;
	int err = -EFAULT;

	if (odp && skua_ib_odp_range(odp, le64_to_cpu(eqe->addr), length, &va) &&
	    !(write && !odp->writable))
		err = skua_ib_odp_bring(odp, va, length, skua_ib_odp_flags(write));
	if (odp)
		skua_ib_odp_put(odp);
	/* While its pages keep going away, it is the QP that tries again. */
	skua_cmd_fault_resume(dev->dev, le32_to_cpu(eqe->token), !err || err == -EBUSY);
}

static void skua_ib_fault_work(struct work_struct *work)
{
	struct skua_ib_fault *fault = container_of(work, struct skua_ib_fault, work);

	skua_ib_fault_resolve(fault->dev, &fault->eqe);
	kfree(fault);
}

static void skua_ib_fault(struct skua_fault_watch *watch, const struct skua_fault_eqe *eqe)
{
	struct skua_ib_dev *dev = container_of(watch, struct skua_ib_dev, faults.watch);
	struct skua_ib_fault *fault = kmalloc(sizeof(*fault), GFP_KERNEL);
	struct skua_ib_odp *odp;

	/* Other faults wait then. */
	if (!fault) {
		skua_ib_fault_resolve(dev, eqe);
		return;
	}
	INIT_WORK(&fault->work, skua_ib_fault_work);
	fault->dev = dev;
	fault->eqe = *eqe;
	odp = skua_ib_odp_get(dev, le32_to_cpu(eqe->key));
	queue_work(odp ? odp->works->wq : dev->faults.wq, &fault->work);
	/* The region may go before the work's turn comes, and does not wait for that. */
	if (odp)
		skua_ib_odp_put(odp);
}

/**
 * struct skua_ib_prefetch - ranges of regions that are to be brought in
 * @work: does it
 * @dev: of the regions
 * @wq: of their program
 * @flags: HMM_PFN_REQ_*
 * @n: number of ranges
 * @ranges: a region may go before its turn comes, and does not wait for that
 */
struct skua_ib_prefetch {
	struct work_struct work;
	struct skua_ib_dev *dev;
	struct workqueue_struct *wq;
	unsigned long flags;
	u32 n;
	struct skua_ib_range {
		u32 key;
		u64 serial;
		unsigned long va;
		u64 length;
	} ranges[] __counted_by(n);
};

static int skua_ib_prefetch_range(struct skua_ib_dev *dev, const struct skua_ib_range *range,
				  unsigned long flags)
{
	struct skua_ib_odp *odp = skua_ib_odp_get(dev, range->key);
	int err = -ENOENT;

	if (!odp)
		return err;
	if (odp->serial == range->serial)
		err = range->length ? skua_ib_odp_bring(odp, range->va, range->length, flags) : 0;
	skua_ib_odp_put(odp);
	return err;
}

static int skua_ib_prefetch_run(struct skua_ib_prefetch *prefetch)
{
	int err = 0;
	u32 i;

	for (i = 0; i < prefetch->n && !err; i++)
		err = skua_ib_prefetch_range(prefetch->dev, &prefetch->ranges[i], prefetch->flags);
	kvfree(prefetch);
	return err;
}

static void skua_ib_prefetch_work(struct work_struct *work)
{
	/* It is an advice: what cannot be brought in now is by a page fault, or fails there. */
	skua_ib_prefetch_run(container_of(work, struct skua_ib_prefetch, work));
}

static int skua_ib_prefetch_add(struct skua_ib_prefetch *prefetch, struct ib_pd *ibpd,
				const struct ib_sge *sge)
{
	struct skua_ib_odp *odp = skua_ib_odp_get(prefetch->dev, sge->lkey);
	struct skua_ib_range *range = &prefetch->ranges[prefetch->n - 1];
	int err = 0;

	if (!odp)
		return -ENOENT;
	if (odp->ibmr->pd != ibpd || (prefetch->flags & HMM_PFN_REQ_WRITE && !odp->writable))
		err = -EPERM;
	else if (sge->length && !skua_ib_odp_range(odp, sge->addr, sge->length, &range->va))
		err = -EFAULT;
	prefetch->wq = odp->works->prefetch_wq;
	range->key = odp->key;
	range->serial = odp->serial;
	range->length = sge->length;
	skua_ib_odp_put(odp);
	return err;
}

int skua_ib_advise_mr(struct ib_pd *ibpd, enum ib_uverbs_advise_mr_advice advice, u32 flags,
		      struct ib_sge *sg_list, u32 num_sge, struct uverbs_attr_bundle *attrs)
{
	struct skua_ib_dev *dev = to_skua_ib_dev(ibpd->device);
	struct skua_ib_prefetch *prefetch;
	unsigned long hmm_flags;
	int err = 0;
	u32 i;

	switch (advice) {
	case IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH:
		hmm_flags = skua_ib_odp_flags(false);
		break;
	case IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE:
		hmm_flags = skua_ib_odp_flags(true);
		break;
	case IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT:
		hmm_flags = 0;
		break;
	default:
		return -EOPNOTSUPP;
	}
	/* It may wait for long. */
	prefetch = kvzalloc(struct_size(prefetch, ranges, num_sge), GFP_KERNEL_ACCOUNT);
	if (!prefetch)
		return -ENOMEM;
	prefetch->dev = dev;
	prefetch->flags = hmm_flags;
	for (i = 0; i < num_sge; i++) {
		prefetch->n = i + 1;
		err = skua_ib_prefetch_add(prefetch, ibpd, &sg_list[i]);
		if (err) {
			kvfree(prefetch);
			return err;
		}
	}
	if (flags & IB_UVERBS_ADVISE_MR_FLAG_FLUSH || !num_sge)
		return skua_ib_prefetch_run(prefetch);
	INIT_WORK(&prefetch->work, skua_ib_prefetch_work);
	queue_work(prefetch->wq, &prefetch->work);
	return 0;
}

/* They are made with the first region, and stay. */
static int skua_ib_odp_begin_works(struct skua_ib_odp_works *works)
{
	int err = -ENOMEM;

	mutex_lock(&works->lock);
	if (!works->prefetch_wq)
		works->prefetch_wq = alloc_workqueue("skua-prefetch", WQ_UNBOUND,
						     SKUA_IB_PREFETCHES);
	if (!works->wq)
		works->wq = alloc_workqueue("skua-fault", WQ_UNBOUND, 0);
	if (works->wq && works->prefetch_wq)
		err = 0;
	mutex_unlock(&works->lock);
	return err;
}

void skua_ib_odp_end_works(struct skua_ib_odp_works *works)
{
	if (works->prefetch_wq)
		destroy_workqueue(works->prefetch_wq);
	if (works->wq)
		destroy_workqueue(works->wq);
	mutex_destroy(&works->lock);
}

static struct skua_ib_odp *skua_ib_odp_alloc(struct skua_ib_dev *dev)
{
	struct skua_ib_odp *odp = kzalloc(sizeof(*odp), GFP_KERNEL_ACCOUNT);

	if (!odp)
		return NULL;
	odp->dev = dev;
	odp->list = dma_alloc_coherent(skua_dma_dev(dev->dev),
				       SKUA_IB_ODP_CHUNK * sizeof(*odp->list), &odp->list_dma,
				       GFP_KERNEL);
	if (!odp->list) {
		kfree(odp);
		return NULL;
	}
	mutex_init(&odp->lock);
	xa_init(&odp->pages);
	refcount_set(&odp->users, 1);
	init_completion(&odp->unused);
	return odp;
}

static void skua_ib_odp_free(struct skua_ib_odp *odp)
{
	WARN_ON(!xa_empty(&odp->pages));
	xa_destroy(&odp->pages);
	mutex_destroy(&odp->lock);
	dma_free_coherent(skua_ib_odp_device(odp), SKUA_IB_ODP_CHUNK * sizeof(*odp->list),
			  odp->list, odp->list_dma);
	kfree(odp);
}

int skua_ib_odp_create(struct skua_ib_mr *mr, struct ib_pd *ibpd, u64 start,
		       struct skua_mr_params *params)
{
	struct skua_ib_dev *dev = to_skua_ib_dev(ibpd->device);
	struct skua_pagelist pages = {
		.log_page = PAGE_SHIFT,
		.offset = cpu_to_le64(offset_in_page(start)),
	};
	/* The address space ends somewhere before the last byte of all. */
	u64 length = params->length ?: ULONG_MAX;
	struct skua_ib_odp_works *works = &to_skua_ib_ucontext(ibpd->uobject->context)->odp;
	struct skua_ib_odp *odp;
	int err;

	err = skua_ib_odp_begin_works(works);
	if (err)
		return err;
	odp = skua_ib_odp_alloc(dev);
	if (!odp)
		return -ENOMEM;
	odp->ibmr = &mr->ibmr;
	odp->works = works;
	odp->start = start;
	odp->last = length - 1;
	odp->iova = params->iova;
	odp->writable = params->access & SKUA_ACCESS_LOCAL_WRITE;
	err = mmu_interval_notifier_insert(&odp->notifier, current->mm, start & PAGE_MASK,
					   offset_in_page(start) + length,
					   &skua_ib_odp_notifier_ops);
	if (err)
		goto err_free;
	params->access |= SKUA_ACCESS_ON_DEMAND;
	params->pages = &pages;
	err = skua_ib_create_mr(mr, ibpd, params);
	if (err)
		goto err_notifier;
	odp->key = mr->key;
	odp->serial = atomic64_inc_return(&dev->faults.serials);
	err = xa_err(xa_store(&dev->faults.mrs, odp->key >> 8, odp, GFP_KERNEL));
	if (err)
		goto err_destroy;
	mr->odp = odp;
	return 0;

err_destroy:
	skua_cmd_destroy_mr(dev->dev, mr->key);
err_notifier:
	mmu_interval_notifier_remove(&odp->notifier);
err_free:
	skua_ib_odp_free(odp);
	return err;
}

void skua_ib_odp_destroy(struct skua_ib_mr *mr)
{
	struct skua_ib_odp *odp = mr->odp;
	struct skua_ib_dev *dev = odp->dev;

	xa_erase(&dev->faults.mrs, odp->key >> 8);
	/*
	 * The notifier must find nothing, because it must not name a region that is not there.
	 * Works that bring in much end here.
	 */
	mutex_lock(&odp->lock);
	odp->gone = true;
	skua_ib_odp_drop(odp, 0, skua_ib_odp_last_index(odp));
	mutex_unlock(&odp->lock);
	skua_ib_odp_put(odp);
	wait_for_completion(&odp->unused);
	mmu_interval_notifier_remove(&odp->notifier);
	skua_ib_odp_free(odp);
	mr->odp = NULL;
}

void skua_ib_odp_caps(const struct skua_dev *dev, struct ib_odp_caps *caps)
{
	u32 connected = IB_ODP_SUPPORT_SEND | IB_ODP_SUPPORT_WRITE | IB_ODP_SUPPORT_READ;
	u32 rc = IB_ODP_SUPPORT_RECV;

	if (skua_has(dev, SKUA_F_ATOMIC))
		connected |= IB_ODP_SUPPORT_ATOMIC;
	if (skua_has(dev, SKUA_F_SRQ))
		connected |= IB_ODP_SUPPORT_SRQ_RECV;
	if (skua_has(dev, SKUA_F_FLUSH))
		rc |= IB_ODP_SUPPORT_FLUSH;
	if (skua_has(dev, SKUA_F_ATOMIC_WRITE))
		rc |= IB_ODP_SUPPORT_ATOMIC_WRITE;
	caps->general_caps = IB_ODP_SUPPORT | IB_ODP_SUPPORT_IMPLICIT;
	if (skua_has(dev, SKUA_F_RC))
		caps->per_transport_caps.rc_odp_caps = connected | rc;
	if (skua_ib_has_xrc(dev))
		caps->per_transport_caps.xrc_odp_caps = connected;
	/* A message that finds a page missing is lost there. */
	if (skua_has(dev, SKUA_F_UC))
		caps->per_transport_caps.uc_odp_caps = IB_ODP_SUPPORT_SEND;
	if (skua_has(dev, SKUA_F_UD))
		caps->per_transport_caps.ud_odp_caps = IB_ODP_SUPPORT_SEND;
}

int skua_ib_odp_init(struct skua_ib_dev *dev)
{
	if (!skua_has(dev->dev, SKUA_F_ON_DEMAND))
		return 0;
	dev->faults.wq = alloc_workqueue("skua-fault", WQ_UNBOUND, 0);
	if (!dev->faults.wq)
		return -ENOMEM;
	xa_init(&dev->faults.mrs);
	dev->faults.watch.fault = skua_ib_fault;
	skua_fault_watch(dev->dev, &dev->faults.watch);
	return 0;
}

void skua_ib_odp_cleanup(struct skua_ib_dev *dev)
{
	if (!dev->faults.wq)
		return;
	skua_fault_unwatch(dev->dev);
	destroy_workqueue(dev->faults.wq);
	WARN_ON(!xa_empty(&dev->faults.mrs));
}
