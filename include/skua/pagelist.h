/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Skua hardware interface: page lists, the one way in which queue buffers and
 * memory regions are described to the device.
 * Manual: Documentation/manual/pagelists.rst
 */
#ifndef SKUA_PAGELIST_H
#define SKUA_PAGELIST_H

#include "types.h"

#define SKUA_PL_INLINE		6	/* entries that the header itself holds */
#define SKUA_PL_PER_PAGE	512	/* entries of a list page of 4 KiB */
#define SKUA_PL_MAX_LEVELS	3
#define SKUA_PL_MAX_PAGES	0x1000000	/* that one list describes */
#define SKUA_PL_MIN_LOG_PAGE	12
#define SKUA_PL_MAX_LOG_PAGE	30

/* An entry is a DMA address aligned to what it points to, and flags below bit 12. */
#define SKUA_PL_PRESENT		0x1ull
#define SKUA_PL_READ_ONLY	0x2ull	/* UPDATE_PAGES: the device must not write there */
#define SKUA_PL_ADDR_MASK	(~0xfffull)

/*
 * level 0: addr[] are the pages. level 1: addr[0] is a list page whose entries are the
 * pages. level 2 and 3: the entries of list pages are list pages again.
 */
struct skua_pagelist {
	__le32 npages;		/* pages described; 0: there is no buffer */
	__u8 level;
	__u8 log_page;		/* page size, log2 of bytes */
	__le16 rsvd;
	__le64 offset;		/* of the buffer in its first page, bytes */
	__le64 addr[SKUA_PL_INLINE];
};

SKUA_ASSERT_SIZE(struct skua_pagelist, 64);
SKUA_ASSERT_OFFSET(struct skua_pagelist, offset, 8);
SKUA_ASSERT_OFFSET(struct skua_pagelist, addr, 16);

#endif /* SKUA_PAGELIST_H */
