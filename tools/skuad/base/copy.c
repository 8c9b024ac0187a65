// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Copies into host memory.
 *
 * A program may poll on any byte of a message (MEM-11), so bytes become visible in ascending order. libc's memcpy is fast
 * and keeps no order: it shows the last byte before earlier ones, and puts the ends together from overlapping stores,
 * which tears words. So the ends of a copy go by words, the last with release. The middle of a long one, from one cache
 * line of the destination to another, goes by vectors, which x86 processors show in the order of the program. That is
 * as fast as memcpy where it counts: with 64 KiB and more.
 *
 * Where two runs of a source meet inside of an aligned word of the destination, this word is gathered first, so that it
 * is stored once.
 */
#include "base/copy.h"

#include <assert.h>
#include <string.h>

#define LINE		64
#define MIDDLE_MIN	512	/* below it, words alone are as fast */

/* Guests race here, which ThreadSanitizer accepts of atomic words only. */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define BY_VECTORS
#endif

/* It does not see what assembly touches. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define assert_mine(p, len)	assert(!__asan_region_is_poisoned((void *)(uintptr_t)(p), len))
#else
#define assert_mine(p, len)
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

#ifdef BY_VECTORS

/* The assembly keeps the compiler from moving stores, or from making a memcpy of them. */
static inline void move_line(uint8_t *dst, const uint8_t *src)
{
	__asm__ volatile("movups (%1), %%xmm0\n\t"
			 "movups 16(%1), %%xmm1\n\t"
			 "movups 32(%1), %%xmm2\n\t"
			 "movups 48(%1), %%xmm3\n\t"
			 "movaps %%xmm0, (%0)\n\t"
			 "movaps %%xmm1, 16(%0)\n\t"
			 "movaps %%xmm2, 32(%0)\n\t"
			 "movaps %%xmm3, 48(%0)"
			 :: "r"(dst), "r"(src) : "xmm0", "xmm1", "xmm2", "xmm3", "memory");
}

/* @dst and @len are multiples of a line. */
static void move_lines(uint8_t *dst, const uint8_t *src, size_t len)
{
	assert_mine(dst, len);
	assert_mine(src, len);
	for (; len; len -= LINE, dst += LINE, src += LINE)
		move_line(dst, src);
}

#else

static void move_lines(uint8_t *dst, const uint8_t *src, size_t len)
{
	store_words(dst, src, len);
}

#endif

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

/* A place in a list of runs. */
struct place {
	const struct seglist *list;
	unsigned int seg;
	uint32_t off;
};

static bool has_word(struct place from)
{
	uint32_t bytes = 0;

	for (; from.seg < from.list->n && bytes < 8; from.seg++, from.off = 0)
		bytes += from.list->seg[from.seg].len - from.off;
	return bytes >= 8;
}

/* An aligned word whose bytes lie in several runs. It is stored once, when all of them are there. */
static void store_gathered(uint8_t *dst, struct place *from)
{
	uint8_t bytes[8];
	uint64_t word;

	for (unsigned int i = 0; i < 8; i++) {
		while (from->off == from->list->seg[from->seg].len) {
			from->seg++;
			from->off = 0;
		}
		bytes[i] = from->list->seg[from->seg].p[from->off++];
	}
	memcpy(&word, bytes, sizeof(word));
	__atomic_store_n((uint64_t *)(void *)dst, word, __ATOMIC_RELEASE);
}

/*
 * A run of the source, of which @len bytes are left, ends inside of an aligned word of the destination, of whose run
 * @room bytes are left. Its bytes that belong to this word, if all of the word is copied from here on, or 0.
 */
static uint32_t begun_word(const uint8_t *to, uint32_t room, struct place from, uint32_t len)
{
	uint32_t begun = ((uintptr_t)to + len) & 7;

	if (begun > len || room - (len - begun) < 8)
		return 0;
	from.off += len - begun;
	return has_word(from) ? begun : 0;
}

void copy_segs(const struct seglist *dst, const struct seglist *src)
{
	struct place from = { .list = src };
	unsigned int d = 0;
	uint32_t doff = 0;

	while (from.seg < src->n) {
		uint32_t len = src->seg[from.seg].len - from.off, room = dst->seg[d].len - doff, begun = 0;
		uint8_t *to = dst->seg[d].p + doff;

		if (len >= room)
			len = room;
		else if (((uintptr_t)to + len) & 7)
			begun = begun_word(to, room, from, len);
		len -= begun;
		copy_to_host(to, src->seg[from.seg].p + from.off, len);
		from.off += len;
		doff += len;
		if (begun) {
			store_gathered(to + len, &from);
			doff += 8;
		}
		if (from.off == src->seg[from.seg].len) {
			from.seg++;
			from.off = 0;
		}
		if (doff == dst->seg[d].len) {
			d++;
			doff = 0;
		}
	}
}

void seglist_behind(struct seglist *dst, const struct seglist *src, uint32_t skip)
{
	dst->n = 0;
	dst->bytes = src->bytes - skip;
	for (unsigned int i = 0; i < src->n; i++) {
		struct seg seg = src->seg[i];

		if (skip >= seg.len) {
			skip -= seg.len;
			continue;
		}
		dst->seg[dst->n++] = (struct seg){ seg.p + skip, seg.len - skip };
		skip = 0;
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
