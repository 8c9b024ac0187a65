/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The one way in which bytes get into host memory, and single words in and out of it.
 *
 * Programs look at memory while the device writes it: some poll on a byte of a message, some
 * read 8-byte words. So a copy stores bytes in ascending order, the last ones with release,
 * and never tears an aligned 8-byte word (manual: memory rules).
 */
#ifndef SKUAD_BASE_COPY_H
#define SKUAD_BASE_COPY_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/seg.h"

/*
 * To host memory, in ascending order. What was stored before is visible before the last 8 bytes of
 * @dst are.
 */
void copy_to_host(uint8_t *dst, const uint8_t *src, size_t len);

/* From host memory, once, to memory of our own. */
void copy_from_host(void *dst, const uint8_t *src, size_t len);

/* All bytes of @src to @dst, which holds as many or more. */
void copy_segs(const struct seglist *dst, const struct seglist *src);

/* The bytes of @src behind the first @skip. */
void seglist_behind(struct seglist *dst, const struct seglist *src, uint32_t skip);

/* An entry of @size bytes (a multiple of 8) whose last word, stored last, hands it over. */
void copy_entry(uint8_t *dst, const void *entry, size_t size);

/* Words that the host reads and writes at the same time; @p is aligned. Little endian. */
static inline uint32_t host_load32(const void *p)
{
	return le32toh(__atomic_load_n((const uint32_t *)p, __ATOMIC_ACQUIRE));
}

static inline uint64_t host_load64(const void *p)
{
	return le64toh(__atomic_load_n((const uint64_t *)p, __ATOMIC_ACQUIRE));
}

static inline void host_store32(void *p, uint32_t v)
{
	__atomic_store_n((uint32_t *)p, htole32(v), __ATOMIC_RELEASE);
}

/* What was stored before is visible before it. */
static inline void host_store64(void *p, uint64_t v)
{
	__atomic_store_n((uint64_t *)p, htole64(v), __ATOMIC_RELEASE);
}

/* StoreLoad: what was stored is visible before anything is loaded (rule of the event index). */
static inline void host_full_barrier(void)
{
#ifdef __SANITIZE_THREAD__
	static int order;	/* ThreadSanitizer knows no fences */

	__atomic_fetch_add(&order, 0, __ATOMIC_SEQ_CST);
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

#endif /* SKUAD_BASE_COPY_H */
