// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Page lists (manual: page lists). Tables are copied into our own memory when the walk enters
 * them, checked there, and the host's copy is not looked at again.
 */
#include "core/pages.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "base/copy.h"
#include "skua/cqe.h"

/*
 * Look-ups in the map of host memory in a step, some 30 us; one in a large map counts as several. Fewer would be too
 * few for the longest command, of SKUA_PL_MAX_PAGES look-ups, which has to end in time (CMD-7) while all devices are
 * busy.
 */
#define STEP_LOOKS	4096
#define MANY_COST	8

#define FREE_AT_ONCE	512	/* addresses: a page of our own memory */
#define ADDR_COST	2	/* to free one of many, as steps are charged */

/* Pages that one entry at depth @depth of the tree stands for. */
static uint64_t entry_pages(unsigned int depth)
{
	return 1ull << (9 * depth);
}

bool pagelist_empty(const struct skua_pagelist *list)
{
	if (list->npages || list->level || list->log_page || list->rsvd || list->offset)
		return false;
	for (unsigned int i = 0; i < SKUA_PL_INLINE; i++)
		if (list->addr[i])
			return false;
	return true;
}

bool pages_fit(uint8_t log_page, uint64_t offset, uint32_t npages, uint64_t length)
{
	if (log_page < SKUA_PL_MIN_LOG_PAGE || log_page > SKUA_PL_MAX_LOG_PAGE)
		return false;
	if (!length || offset >= 1ull << log_page || offset + length < length)
		return false;
	return npages == ((offset + length - 1) >> log_page) + 1;
}

int pages_check(const struct skua_pagelist *list, uint64_t length)
{
	uint32_t npages = le32toh(list->npages);
	unsigned int inline_used;

	if (list->rsvd || npages > SKUA_PL_MAX_PAGES || list->level > SKUA_PL_MAX_LEVELS ||
	    !pages_fit(list->log_page, le64toh(list->offset), npages, length))
		return SKUA_CMD_BAD_PARAM;
	if (list->level ? npages > entry_pages(list->level) : npages > SKUA_PL_INLINE)
		return SKUA_CMD_BAD_PARAM;
	inline_used = list->level ? 1 : npages;
	for (unsigned int i = inline_used; i < SKUA_PL_INLINE; i++)
		if (list->addr[i])
			return SKUA_CMD_BAD_PARAM;
	return SKUA_CMD_OK;
}

/* What the C library has of large arrays it may give back at once, and late. So they are mapped, and cut as we like. */
bool pages_alloc(struct pages *pages)
{
	size_t bytes = pages->n * sizeof(uint64_t);
	void *p;

	if (pages->n < PAGES_FREE_STEP) {
		pages->addr = malloc(bytes);
	} else {
		p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		pages->addr = p == MAP_FAILED ? NULL : p;
	}
	return pages->addr;
}

int pages_load_start(struct pages_load *load, struct pages *pages,
		     const struct skua_pagelist *list, uint64_t length, bool write)
{
	uint32_t npages = le32toh(list->npages);

	*pages = (struct pages){
		.offset = le64toh(list->offset), .n = npages, .log = list->log_page,
	};
	if (!pages_alloc(pages))
		return SKUA_CMD_NO_RESOURCE;
	load->pages = pages;
	load->list = *list;
	load->length = length;
	load->write = write;
	load->looks = 0;
	load->done = 0;
	load->entered = false;
	return SKUA_CMD_OK;
}

/* An entry as the host wrote it, to the address in it; all ones if it is no good. */
static uint64_t entry_addr(__le64 entry, unsigned int log_align)
{
	uint64_t e = le64toh(entry);
	uint64_t addr = e & SKUA_PL_ADDR_MASK;

	if ((e & ~SKUA_PL_ADDR_MASK) != SKUA_PL_PRESENT || addr & ((1ull << log_align) - 1))
		return UINT64_MAX;
	return addr;
}

/* Is the part of the page at hand that the buffer takes within reach? -1: not all of it was looked at. */
static int reach(struct pages_load *load, struct hostmem *m, int *looks)
{
	uint64_t page = 1ull << load->pages->log;
	uint64_t end = load->pages->offset + load->length - load->done * page;
	int cost = hostmem_is_large(m) ? MANY_COST : 1;
	uint64_t run;

	if (end > page)
		end = page;
	for (; load->at < end; load->at += run) {
		if (*looks <= 0)
			return -1;
		*looks -= cost;
		if (load->looks++ == SKUA_PL_MAX_PAGES)
			return SKUA_CMD_NO_RESOURCE;
		if (!hostmem_run(m, load->pages->addr[load->done] + load->at, load->write, &run))
			return SKUA_CMD_BAD_ADDRESS;
	}
	return SKUA_CMD_OK;
}

/* Copy the table at depth @depth that the walk enters at page @i. */
static int load_table(struct pages_load *load, struct hostmem *m, unsigned int depth,
		      uint32_t i)
{
	uint64_t per = entry_pages(depth);
	uint64_t n = (le32toh(load->list.npages) - i + per - 1) / per;
	__le64 entry;
	uint64_t addr;
	uint8_t *p;

	if (depth + 1u == load->list.level)
		entry = load->list.addr[0];
	else
		entry = load->table[depth + 1][(i / entry_pages(depth + 1)) % SKUA_PL_PER_PAGE];
	addr = entry_addr(entry, SKUA_PL_MIN_LOG_PAGE);
	if (addr == UINT64_MAX)
		return SKUA_CMD_BAD_PARAM;
	if (n > SKUA_PL_PER_PAGE)
		n = SKUA_PL_PER_PAGE;
	p = hostmem_at(m, addr, n * sizeof(entry), false);
	if (!p)
		return SKUA_CMD_BAD_ADDRESS;
	copy_from_host(load->table[depth], p, n * sizeof(entry));
	return SKUA_CMD_OK;
}

/* Read the entry at hand. */
static int enter(struct pages_load *load, struct hostmem *m)
{
	uint32_t i = load->done;
	__le64 entry;
	int status;

	if (load->list.level) {
		for (unsigned int depth = load->list.level; depth-- > 0;) {
			if (i % entry_pages(depth + 1))
				continue;
			status = load_table(load, m, depth, i);
			if (status)
				return status;
		}
		entry = load->table[0][i % SKUA_PL_PER_PAGE];
	} else {
		entry = load->list.addr[i];
	}
	load->pages->addr[i] = entry_addr(entry, load->pages->log);
	if (load->pages->addr[i] == UINT64_MAX)
		return SKUA_CMD_BAD_PARAM;
	load->at = i ? 0 : load->pages->offset;
	load->entered = true;
	return SKUA_CMD_OK;
}

int pages_load_step(struct pages_load *load, struct hostmem *m)
{
	int looks = STEP_LOOKS, status;

	for (; load->done < load->pages->n; load->done++) {
		if (!load->entered) {
			status = enter(load, m);
			if (status)
				return status;
		}
		status = reach(load, m, &looks);
		if (status)
			return status;
		load->entered = false;
	}
	return SKUA_CMD_OK;
}

bool pages_copy(struct pages *pages, struct hostmem *m, uint64_t list, uint32_t n)
{
	uint8_t *dst = (uint8_t *)pages->addr;
	uint64_t run;

	for (uint64_t left = n * sizeof(uint64_t); left; left -= run, list += run, dst += run) {
		const uint8_t *p = hostmem_run(m, list, false, &run);

		if (!p)
			return false;
		if (run > left)
			run = left;
		copy_from_host(dst, p, run);
	}
	return true;
}

int pages_read(struct pages *pages, struct hostmem *m, uint64_t list, uint32_t n, uint8_t log_page)
{
	if (!pages_copy(pages, m, list, n))
		return SKUA_VENDOR_ERR_UNREACHABLE;
	for (uint32_t i = 0; i < n; i++) {
		pages->addr[i] = entry_addr(pages->addr[i], log_page);
		if (pages->addr[i] == UINT64_MAX)
			return SKUA_VENDOR_ERR_WQE_FORMAT;
	}
	return SKUA_VENDOR_ERR_NONE;
}

void pages_free(struct pages *pages, struct old_pages **old)
{
	struct old_pages *large = (void *)pages->addr;

	if (large && pages->n > FREE_AT_ONCE) {
		*large = (struct old_pages){ *old, pages->n };
		*old = large;
	} else {
		free(pages->addr);
	}
	*pages = (struct pages){ 0 };
}

bool pages_free_old(struct old_pages **old, int32_t *budget)
{
	struct old_pages *first;
	uint32_t n, keep;

	while (*budget > 0 && (first = *old)) {
		n = first->n;
		keep = (n - 1) / PAGES_FREE_STEP * PAGES_FREE_STEP;
		*budget -= (int32_t)(n - keep) * ADDR_COST;
		first->n = keep;
		if (!keep)
			*old = first->next;
		if (n < PAGES_FREE_STEP)
			free(first);
		else
			munmap((uint64_t *)first + keep, (n - keep) * sizeof(uint64_t));
	}
	return !*old;
}
