// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory regions on demand (manual: on-demand paging).
 *
 * The record of such a region has length 0, so each access to a byte of it fails the check of bounds, and comes here.
 * Accesses to other regions pay nothing for that.
 */
#include <stdlib.h>

#include "base/copy.h"
#include "core/odp.h"


int odp_check_create(const struct skua_dev *dev, const struct skua_cmd_create_mr *in)
{
	struct skua_pagelist list = in->pages;
	uint64_t iova = le64toh(in->iova), length = le64toh(in->length), offset = le64toh(list.offset);
	uint8_t log = list.log_page;

	list.log_page = 0;
	list.offset = 0;
	if (!dev_has(dev, SKUA_F_ON_DEMAND) || in->type != SKUA_MR_REGULAR || in->capacity ||
	    le32toh(in->access) & SKUA_ACCESS_MW_BIND || !pagelist_empty(&list) || log < SKUA_PL_MIN_LOG_PAGE ||
	    log > SKUA_PL_MAX_LOG_PAGE || offset >> log)
		return SKUA_CMD_BAD_PARAM;
	if (length ? !mr_range_valid(iova, length) : iova || offset)
		return SKUA_CMD_BAD_PARAM;
	/* Nobody would be told of a fault. */
	return dev->fault_eq ? SKUA_CMD_OK : SKUA_CMD_BAD_STATE;
}

struct mr *odp_make(struct skua_dev *dev, const struct skua_cmd_create_mr *in)
{
	struct odp_mr *odp = calloc(1, sizeof(*odp));

	if (!odp)
		return NULL;
	odp->last = le64toh(in->length) - 1;
	odp->offset = le64toh(in->pages.offset);
	odp->log = in->pages.log_page;
	sparse_init(&odp->pages, (odp->offset + odp->last) >> odp->log);
	dev->num_odp_mrs++;
	return &odp->rec;
}

/* Index of the last page. */
static uint64_t last_page(const struct odp_mr *odp)
{
	return (odp->offset + odp->last) >> odp->log;
}

void odp_release(struct skua_dev *dev, struct mr *mr)
{
	struct odp_mr *odp = odp_of(mr);

	sparse_clear(dev, &odp->pages, 0, last_page(odp));
	dev->num_odp_mrs--;
}

int odp_check(const struct mr *mr, uint64_t addr, uint64_t len)
{
	const struct odp_mr *odp = odp_of(mr);

	if (!len)
		return SKUA_VENDOR_ERR_NONE;
	return addr < mr->iova || addr - mr->iova > odp->last || len - 1 > odp->last - (addr - mr->iova) ?
	       SKUA_VENDOR_ERR_BOUNDS : SKUA_VENDOR_ERR_NONE;
}

/* The address of the page that has byte @pos of the pages; all ones: it is not there, or may not be written. */
static uint64_t page_at(const struct odp_mr *odp, uint64_t pos, bool write)
{
	uint64_t entry = sparse_get(&odp->pages, pos >> odp->log);

	return entry && !(write && entry & SKUA_PL_READ_ONLY) ? entry & SKUA_PL_ADDR_MASK : UINT64_MAX;
}

/* [@addr, @addr + @len) is needed, and the page of @addr is missing. */
static int miss(struct skua_dev *dev, const struct mr *mr, bool write, uint64_t addr, uint64_t len)
{
	dev->miss = (struct page_miss){ .key = mr->key, .addr = addr, .length = len, .write = write,
					.last = odp_of(mr)->last - (addr - mr->iova) };
	return SKUA_VENDOR_ERR_NOT_PRESENT;
}

void odp_miss_up_to(struct skua_dev *dev, uint64_t end)
{
	uint64_t last = end - dev->miss.addr - 1;

	dev->miss.length = (last < dev->miss.last ? last : dev->miss.last) + 1;
}

/* Bytes of the page from @pos on, @len at most. */
static uint64_t left_in_page(const struct odp_mr *odp, uint64_t pos, uint64_t len)
{
	uint64_t left = (1ull << odp->log) - (pos & ((1ull << odp->log) - 1));

	return left < len ? left : len;
}

int odp_check_present(struct skua_dev *dev, const struct mr *mr, bool write, uint64_t addr, uint64_t len, uint32_t *looks)
{
	const struct odp_mr *odp = odp_of(mr);
	int err = odp_check(mr, addr, len);
	uint64_t n;

	for (; !err && len && *looks; (*looks)--, addr += n, len -= n) {
		uint64_t pos = odp->offset + (addr - mr->iova);

		if (page_at(odp, pos, write) == UINT64_MAX)
			return miss(dev, mr, write, addr, len);
		n = left_in_page(odp, pos, len);
	}
	return err;
}

int odp_segs(struct skua_dev *dev, const struct mr *mr, bool write, uint64_t addr, uint32_t len, struct seglist *segs)
{
	const struct odp_mr *odp = odp_of(mr);
	int err = odp_check(mr, addr, len);
	uint64_t n;

	for (; !err && len; addr += n, len -= (uint32_t)n) {
		uint64_t pos = odp->offset + (addr - mr->iova), page = page_at(odp, pos, write);

		if (page == UINT64_MAX)
			return miss(dev, mr, write, addr, len);
		n = left_in_page(odp, pos, len);
		err = hostmem_segs(&dev->mem, page + (pos & ((1ull << odp->log) - 1)), (uint32_t)n, write, segs);
	}
	return err;
}

/* Are these pages of the region? */
static bool range_valid(const struct odp_mr *odp, uint64_t first, uint64_t count)
{
	uint64_t last = last_page(odp);

	return count && first <= last && count - 1 <= last - first;
}

/* May a list have this entry? 0 stands for an absent page. */
static bool entry_valid(const struct odp_mr *odp, uint64_t entry)
{
	if (!entry)
		return true;
	return (entry & ~SKUA_PL_ADDR_MASK & ~SKUA_PL_READ_ONLY) == SKUA_PL_PRESENT &&
	       !((entry & SKUA_PL_ADDR_MASK) & ((1ull << odp->log) - 1));
}

/* Read the list once, into @entries. */
static int read_list(struct skua_dev *dev, const struct odp_mr *odp, uint64_t list, uint32_t n, uint64_t *entries)
{
	uint8_t *dst = (uint8_t *)entries;
	uint64_t run;

	for (uint64_t left = n * sizeof(*entries); left; left -= run, list += run, dst += run) {
		const uint8_t *p = hostmem_run(&dev->mem, list, false, &run);

		if (!p)
			return SKUA_CMD_BAD_ADDRESS;
		if (run > left)
			run = left;
		copy_from_host(dst, p, run);
	}
	for (uint32_t i = 0; i < n; i++) {
		entries[i] = le64toh(entries[i]);
		if (!entry_valid(odp, entries[i]))
			return SKUA_CMD_BAD_PARAM;
	}
	return SKUA_CMD_OK;
}

/* Pages become present, or are others, as a list says. */
static int set_pages(struct skua_dev *dev, struct odp_mr *odp, uint64_t first, uint32_t n, uint64_t list)
{
	uint64_t entries[SKUA_UPDATE_PAGES_MAX];
	bool released = dev->old_tables;
	int32_t budget = STEP_COST;
	int status;

	if (!sparse_reserve(dev, &odp->pages, first, n)) {
		/* What was released before counts until it is freed. */
		if (!released)
			return SKUA_CMD_NO_RESOURCE;
		sparse_free_old(dev, &budget);
		return -1;
	}
	status = read_list(dev, odp, list, n, entries);
	for (uint32_t i = 0; !status && i < n; i++)
		sparse_set(&odp->pages, first + i, entries[i]);
	sparse_trim(dev, &odp->pages, first, n);
	return status;
}

int cmd_update_pages(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	const struct skua_cmd_update_pages *in = &dev->cmdq.urgent.cmd.update_pages;
	uint64_t first = le64toh(in->first), count = le64toh(in->count), list = le64toh(in->list);
	struct mr *mr = numtab_get(&dev->mrs, le32toh(in->key) >> 8);
	int status = SKUA_CMD_OK;

	(void)cpl;
	if (dev->cmdq.urgent.draining)
		return cmd_drain_urgent(dev);
	if (!mr || mr_is_window(mr) || mr->key != le32toh(in->key) || !mr_is_on_demand(mr))
		return SKUA_CMD_BAD_OBJECT;
	if (!range_valid(odp_of(mr), first, count) || (list && (list % 8 || count > SKUA_UPDATE_PAGES_MAX)))
		return SKUA_CMD_BAD_PARAM;
	if (list)
		status = set_pages(dev, odp_of(mr), first, (uint32_t)count, list);
	else
		sparse_clear(dev, &odp_of(mr)->pages, first, first + count - 1);
	return status ? status : cmd_drain_urgent(dev);
}
