/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * skua_ib.ko: the memory of a queue, a program's or the kernel's.
 */
#ifndef SKUA_IB_QMEM_H
#define SKUA_IB_QMEM_H

#include <linux/skua/memory.h>

#include "umem.h"

/**
 * struct skua_ib_qmem - the memory of a queue
 * @umem: a program's ring; NULL: the queue is the kernel's, or there is none
 * @user_dbr: a program's record
 * @ring: the kernel's ring
 * @dbr: the kernel's record
 * @dbr_dma: DMA address of the record
 */
struct skua_ib_qmem {
	struct ib_umem *umem;
	struct skua_ib_user_dbr user_dbr;
	struct skua_mem ring;
	void *dbr;
	dma_addr_t dbr_dma;
};

/* The kernel's: @size bytes. */
int skua_ib_qmem_alloc(struct skua_dev *dev, struct skua_ib_qmem *mem, size_t size);
/* A program's: @umem may be an error. It is @mem's from now on, or, on error, released. */
int skua_ib_qmem_take(struct skua_ib_ucontext *ucontext, struct skua_ib_qmem *mem,
		      struct ib_umem *umem, u64 dbr_addr);
/* Where there is no memory, no pages. Free the list after the command that takes it. */
int skua_ib_qmem_describe(struct skua_dev *dev, const struct skua_ib_qmem *mem,
			  struct skua_pagelist_builder *pages);
/* Nothing happens if there is none. */
void skua_ib_qmem_free(struct skua_dev *dev, struct skua_ib_qmem *mem);

#endif /* SKUA_IB_QMEM_H */
