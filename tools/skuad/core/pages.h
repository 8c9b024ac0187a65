/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Buffers of the host that a page list describes: queue rings and memory regions.
 */
#ifndef SKUAD_CORE_PAGES_H
#define SKUAD_CORE_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hostmem.h"
#include "base/seg.h"
#include "skua/cmd.h"

struct pages {
	uint64_t *addr;		/* DMA addresses of the pages */
	uint64_t offset;	/* of the buffer in the first page, bytes */
	uint32_t n;
	uint8_t log;		/* page size, log2 */
};

/*
 * A page list on its way in: long ones are read in steps, so that the engine serves others in
 * between. Each entry is read once.
 */
struct pages_load {
	struct pages *pages;		/* to be filled */
	struct skua_pagelist list;	/* our copy */
	uint64_t length;		/* bytes of the buffer */
	bool write;			/* the device will write there */
	uint32_t looks;			/* look-ups in the map of host memory */
	uint32_t done;			/* entries read, whose pages are within reach */
	bool entered;			/* the next one is read, and its page within reach up to at */
	uint64_t at;
	uint64_t table[SKUA_PL_MAX_LEVELS][SKUA_PL_PER_PAGE];
};

/* Does a buffer of @length bytes from @offset on take so many pages? */
bool pages_fit(uint8_t log_page, uint64_t offset, uint32_t npages, uint64_t length);

/* Is the header of @list, of a buffer of @length bytes, in order? Returns an enum
 * skua_cmd_status, as the next do. */
int pages_check(const struct skua_pagelist *list, uint64_t length);

/* Where there is no buffer, nothing of the list is set. */
bool pagelist_empty(const struct skua_pagelist *list);

/* An array for as many pages as there are to be. False: there is no memory. */
bool pages_alloc(struct pages *pages);

/* Read @n words of one range at @list into the array, which has room for them, each once. False: they cannot be reached. */
bool pages_copy(struct pages *pages, struct hostmem *m, uint64_t list, uint32_t n);

/* The same, entries of pages that are checked for their form; enum skua_vendor_err. */
int pages_read(struct pages *pages, struct hostmem *m, uint64_t list, uint32_t n, uint8_t log_page);

/* Begin to read @list, which was checked, into @pages. */
int pages_load_start(struct pages_load *load, struct pages *pages,
		     const struct skua_pagelist *list, uint64_t length, bool write);

/* Go on for some microseconds: SKUA_CMD_OK when all is read, -1 when there is more. */
int pages_load_step(struct pages_load *load, struct hostmem *m);

/*
 * The addresses of a large buffer take long to free, because the kernel frees each page of our memory that they are in.
 * So they are freed in steps. An array that waits for that begins with its place in a list.
 */
#define PAGES_FREE_STEP	32768u	/* addresses, some 30 us */
struct old_pages {
	struct old_pages *next;
	uint32_t n;			/* addresses that are left */
};

/* Free @pages, or put its addresses into the list @old if there are many. */
void pages_free(struct pages *pages, struct old_pages **old);
/* Free those in the list as far as the @budget lasts; true when none is left. */
bool pages_free_old(struct old_pages **old, int32_t *budget);

/* The pointer to byte @offset of the buffer, and the bytes in one piece from there. */
static inline uint8_t *pages_run(const struct pages *pages, struct hostmem *m,
				 uint64_t offset, bool write, uint64_t *run)
{
	uint64_t pos = pages->offset + offset;
	uint64_t in = pos & ((1ull << pages->log) - 1);
	uint64_t left = (1ull << pages->log) - in;
	uint8_t *p = hostmem_run(m, pages->addr[pos >> pages->log] + in, write, run);

	if (*run > left)
		*run = left;
	return p;
}

/* The pointer to an entry of @size bytes at @offset that no page boundary cuts, or NULL. */
static inline uint8_t *pages_at(const struct pages *pages, struct hostmem *m,
				uint64_t offset, uint32_t size, bool write)
{
	uint64_t run = 0;
	uint8_t *p = pages_run(pages, m, offset, write, &run);

	return run >= size ? p : NULL;
}

#endif /* SKUAD_CORE_PAGES_H */
