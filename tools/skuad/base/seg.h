/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Payload by reference: a list of runs of memory that this process can reach.
 */
#ifndef SKUAD_BASE_SEG_H
#define SKUAD_BASE_SEG_H

#include <stdint.h>

struct seg {
	uint8_t *p;
	uint32_t len;
};

/*
 * The most bytes that one step moves, and the runs that they can lie in: a page of
 * 4 KiB each, and for each of 30 SGEs one more at either end.
 */
#define SEG_MAX_BYTES	65536u
#define SEG_MAX		(SEG_MAX_BYTES / 4096 + 2 * 30 + 4)

struct seglist {
	unsigned int n;
	uint32_t bytes;
	struct seg seg[SEG_MAX];
};

#endif /* SKUAD_BASE_SEG_H */
