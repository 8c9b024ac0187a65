// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Copies into host memory.
 *
 * libc's memcpy is fast and keeps no order: it shows the last byte before earlier ones, and
 * puts the ends together from overlapping stores, which tears words. So it moves only the
 * middle of long copies, from one cache line of the destination to another, where it stores
 * whole vectors; the ends go by words, ascending, the last with release.
 */
#include "base/copy.h"

#include <stdbool.h>
#include <string.h>

#define LINE		64
#define MIDDLE_MIN	512	/* below it, words alone are as fast */

/* Guests race here, which ThreadSanitizer would blame memcpy for. */
#ifdef __SANITIZE_THREAD__
#define BY_WORDS	true
#else
#define BY_WORDS	false
#endif

static void store_bytes(uint8_t *dst, const uint8_t *src, size_t len)
{
	for (size_t i = 0; i < len; i++)
		__atomic_store_n(&dst[i], src[i], __ATOMIC_RELAXED);
}

/* @dst is aligned to 8, @len a multiple of it. */
static void store_words(uint8_t *dst, const uint8_t *src, size_t len)
{
	for (size_t i = 0; i < len; i += 8) {
		uint64_t word;

		memcpy(&word, src + i, sizeof(word));
		__atomic_store_n((uint64_t *)(void *)(dst + i), word, __ATOMIC_RELAXED);
	}
}

/* A program may send memory to where it overlaps itself; what it gets is its own affair. */
static bool overlap(const uint8_t *dst, const uint8_t *src, size_t len)
{
	return (uintptr_t)dst - (uintptr_t)src < len || (uintptr_t)src - (uintptr_t)dst < len;
}

/* @dst and @len are multiples of a line. */
static void __attribute__((noinline)) move_lines(uint8_t *dst, const uint8_t *src, size_t len)
{
	if (BY_WORDS || overlap(dst, src, len))
		store_words(dst, src, len);
	else
		memcpy(dst, src, len);
}

void copy_to_host(uint8_t *dst, const uint8_t *src, size_t len)
{
	size_t head = -(uintptr_t)dst & 7;
	size_t lines;
	uint64_t last;

	if (head > len)
		head = len;
	store_bytes(dst, src, head);
	dst += head;
	src += head;
	len -= head;

	if (len >= MIDDLE_MIN) {
		size_t to_line = -(uintptr_t)dst & (LINE - 1);

		store_words(dst, src, to_line);
		dst += to_line;
		src += to_line;
		len -= to_line;
		/* The last line, whole or not, is stored after all others. */
		lines = (len - 1) & ~(size_t)(LINE - 1);
		move_lines(dst, src, lines);
		dst += lines;
		src += lines;
		len -= lines;
	}

	if (len & 7) {
		store_words(dst, src, len & ~(size_t)7);
		for (size_t i = len & ~(size_t)7; i < len; i++)
			__atomic_store_n(&dst[i], src[i], __ATOMIC_RELEASE);
	} else if (len) {
		store_words(dst, src, len - 8);
		memcpy(&last, src + len - 8, sizeof(last));
		__atomic_store_n((uint64_t *)(void *)(dst + len - 8), last, __ATOMIC_RELEASE);
	}
}

void copy_from_host(void *dst, const uint8_t *src, size_t len)
{
	uint8_t *out = dst;
	size_t i = 0;

	if (((uintptr_t)src & 7) == 0) {
		for (; i + 8 <= len; i += 8) {
			uint64_t word = __atomic_load_n((const uint64_t *)(const void *)(src + i),
							__ATOMIC_RELAXED);
			memcpy(out + i, &word, sizeof(word));
		}
	}
	for (; i < len; i++)
		out[i] = __atomic_load_n(&src[i], __ATOMIC_RELAXED);
}

void copy_segs(const struct seglist *dst, const struct seglist *src)
{
	unsigned int d = 0, s = 0;
	uint32_t doff = 0, soff = 0;

	while (s < src->n) {
		uint32_t len = src->seg[s].len - soff;

		if (len > dst->seg[d].len - doff)
			len = dst->seg[d].len - doff;
		copy_to_host(dst->seg[d].p + doff, src->seg[s].p + soff, len);
		soff += len;
		doff += len;
		if (soff == src->seg[s].len) {
			s++;
			soff = 0;
		}
		if (doff == dst->seg[d].len) {
			d++;
			doff = 0;
		}
	}
}

void copy_entry(uint8_t *dst, const void *entry, size_t size)
{
	const uint8_t *src = entry;
	uint64_t last;

	store_words(dst, src, size - 8);
	memcpy(&last, src + size - 8, sizeof(last));
	__atomic_store_n((uint64_t *)(void *)(dst + size - 8), last, __ATOMIC_RELEASE);
}
