// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The memory of a queue: a ring and its doorbell record, either a program's or the kernel's. Only
 * how they are had differs: describing them to the device, and letting go of them, is for both.
 */
#include <rdma/ib_umem.h>

#include <linux/skua/memory.h>

#include "qmem.h"
#include "ucontext.h"

int skua_ib_qmem_alloc(struct skua_dev *dev, struct skua_ib_qmem *mem, size_t size)
{
	int err;

	err = skua_mem_alloc_large(dev, &mem->ring, size);
	if (err)
		return err;
	mem->dbr = skua_dbr_alloc(dev, &mem->dbr_dma);
	if (!mem->dbr) {
		skua_mem_free(dev, &mem->ring);
		return -ENOMEM;
	}
	return 0;
}

int skua_ib_qmem_take(struct skua_ib_ucontext *ucontext, struct skua_ib_qmem *mem,
		      struct ib_umem *umem, u64 dbr_addr)
{
	int err;

	if (IS_ERR(umem))
		return PTR_ERR(umem);
	err = skua_ib_user_dbr_get(ucontext, dbr_addr, &mem->user_dbr);
	if (err) {
		ib_umem_release(umem);
		return err;
	}
	mem->umem = umem;
	mem->dbr_dma = mem->user_dbr.dma;
	return 0;
}

int skua_ib_qmem_describe(struct skua_dev *dev, const struct skua_ib_qmem *mem,
			  struct skua_pagelist_builder *pages)
{
	if (mem->umem)
		return skua_ib_umem_describe(dev, mem->umem, pages);
	memset(pages, 0, sizeof(*pages));
	if (mem->dbr)
		skua_mem_describe(&mem->ring, &pages->list);
	return 0;
}

void skua_ib_qmem_free(struct skua_dev *dev, struct skua_ib_qmem *mem)
{
	if (mem->umem) {
		skua_ib_user_dbr_put(&mem->user_dbr);
		ib_umem_release(mem->umem);
	} else {
		skua_dbr_free(dev, mem->dbr, mem->dbr_dma);
		skua_mem_free(dev, &mem->ring);
	}
}
