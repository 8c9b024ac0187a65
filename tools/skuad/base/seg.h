/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Payload by reference: a list of runs of memory that this process can reach.
 */
#ifndef SKUAD_BASE_SEG_H
#define SKUAD_BASE_SEG_H

#include <stdint.h>

#include "skua/wqe.h"

struct seg {
	uint8_t *p;
	uint32_t len;
};

/*
 * The most bytes that one step moves, and the runs that they can lie in: a page of
 * 4 KiB each, and for each of 30 SGEs one more at either end. All of them may be of one
 * MR of pieces: so many pieces have these bytes (FST-10), one more at either end, and each
 * may lie in one page more.
 */
#define SEG_MAX_BYTES	65536u
#define SEG_PIECES	(SEG_MAX_BYTES / SKUA_PIECES_RUN_BYTES * SKUA_PIECES_RUN + SKUA_PIECES_RUN + 1)
#define SEG_MAX		(SEG_MAX_BYTES / 4096 + 2 * 30 + 4 + 2 * SEG_PIECES)

struct seglist {
	unsigned int n;
	uint32_t bytes;
	struct seg seg[SEG_MAX + 1];	/* the header of a datagram may be put before them */
};

#endif /* SKUAD_BASE_SEG_H */
