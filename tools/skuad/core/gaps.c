// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory regions in pieces (manual: lists of pieces).
 *
 * The record of such a region has length 0, so each access to a byte of it fails the check of bounds, and comes here.
 * Accesses to other regions pay nothing for that. The array of the region has for each piece its DMA address, and the
 * offset in the region of the byte behind it.
 */
#include "core/gaps.h"

static_assert(LIMIT_FAST_PIECES <= UINT16_MAX, "struct mr has no room to count them");
static_assert(sizeof(struct skua_piece) == SKUA_PIECE_ENTRIES * sizeof(uint64_t), "a piece is read into its place");

/* The offset behind piece @i; of none, 0. */
static uint64_t end_of(const struct mr *mr, uint32_t i)
{
	return mr->pages.addr[SKUA_PIECE_ENTRIES * i + 1];
}

uint64_t gaps_length(const struct mr *mr)
{
	return end_of(mr, mr->pieces - 1u);
}

bool gaps_reg_valid(const struct skua_dev *dev, const struct skua_wqe_reg_mr *reg)
{
	return dev_has(dev, SKUA_F_SG_GAPS) && reg->npages && !reg->offset &&
	       !(le32toh(reg->access) & (SKUA_ACCESS_MW_BIND | SKUA_ACCESS_FLUSH_PERSISTENT));
}

/* The piece as it was read gives way to what is kept of it; @end: the offset behind it. False: it is no good. */
static bool keep(struct mr *mr, uint32_t i, uint64_t *end)
{
	uint64_t *p = &mr->pages.addr[SKUA_PIECE_ENTRIES * i], before = 0;
	struct skua_piece piece;
	uint32_t length;

	memcpy(&piece, p, sizeof(piece));
	p[0] = le64toh(piece.addr);
	length = le32toh(piece.length);
	if (!length || piece.rsvd || p[0] + (length - 1) < p[0])
		return false;
	*end += length;
	p[1] = *end;
	if (i < SKUA_PIECES_RUN - 1)
		return true;
	if (i >= SKUA_PIECES_RUN)
		before = end_of(mr, i - SKUA_PIECES_RUN);
	return *end - before >= SKUA_PIECES_RUN_BYTES;
}

int gaps_read(struct skua_dev *dev, struct mr *mr, const struct skua_wqe_reg_mr *reg)
{
	uint32_t n = le32toh(reg->npages);
	uint64_t end = 0;

	if (n > LIMIT_FAST_PIECES || n > mr->pages.n / SKUA_PIECE_ENTRIES)
		return SKUA_VENDOR_ERR_BOUNDS;
	if (!pages_copy(&mr->pages, &dev->mem, le64toh(reg->list), SKUA_PIECE_ENTRIES * n))
		return SKUA_VENDOR_ERR_UNREACHABLE;
	for (uint32_t i = 0; i < n; i++)
		if (!keep(mr, i, &end))
			return SKUA_VENDOR_ERR_WQE_FORMAT;
	if (end != le64toh(reg->length))
		return SKUA_VENDOR_ERR_WQE_FORMAT;
	mr->pieces = (uint16_t)n;
	return SKUA_VENDOR_ERR_NONE;
}

int gaps_check(const struct mr *mr, uint64_t addr, uint64_t len)
{
	uint64_t length = gaps_length(mr);

	return addr < mr->iova || addr - mr->iova > length || len > length - (addr - mr->iova) ?
	       SKUA_VENDOR_ERR_BOUNDS : SKUA_VENDOR_ERR_NONE;
}

/* The piece with the byte at @offset, which the region has. */
static uint32_t piece_at(const struct mr *mr, uint64_t offset)
{
	uint32_t low = 0, high = mr->pieces - 1u;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (end_of(mr, middle) > offset)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

int gaps_segs(struct skua_dev *dev, const struct mr *mr, bool write, uint64_t addr, uint32_t len, struct seglist *segs)
{
	uint64_t offset = addr - mr->iova, start, n;
	int err = gaps_check(mr, addr, len);

	if (err)
		return err;
	for (uint32_t i = piece_at(mr, offset); !err && len; i++, offset += n, len -= (uint32_t)n) {
		start = i ? end_of(mr, i - 1) : 0;
		n = end_of(mr, i) - offset;
		if (n > len)
			n = len;
		err = hostmem_segs(&dev->mem, mr->pages.addr[SKUA_PIECE_ENTRIES * i] + (offset - start), (uint32_t)n, write,
				   segs);
	}
	return err;
}
