/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory regions of type FAST whose memory is in pieces of any alignment.
 */
#ifndef SKUAD_CORE_GAPS_H
#define SKUAD_CORE_GAPS_H

#include "core/device.h"

static inline bool mr_is_gapped(const struct mr *mr)
{
	return mr->pieces;
}

/* Bytes of the region. */
uint64_t gaps_length(const struct mr *mr);

/* The fields of a REG_MR with pieces, by themselves, but for what all REG_MRs have. */
bool gaps_reg_valid(const struct skua_dev *dev, const struct skua_wqe_reg_mr *reg);
/* Its list, into the array of @mr, which is free and has room; enum skua_vendor_err. */
int gaps_read(struct skua_dev *dev, struct mr *mr, const struct skua_wqe_reg_mr *reg);

/* Parts of mr_check() and mr_segs(), which return enum skua_vendor_err. */
int gaps_check(const struct mr *mr, uint64_t addr, uint64_t len);
int gaps_segs(struct skua_dev *dev, const struct mr *mr, bool write, uint64_t addr, uint32_t len, struct seglist *segs);

#endif /* SKUAD_CORE_GAPS_H */
