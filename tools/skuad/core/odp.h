/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory regions whose pages come and go on demand.
 */
#ifndef SKUAD_CORE_ODP_H
#define SKUAD_CORE_ODP_H

#include "core/device.h"
#include "core/sparse.h"

struct odp_mr {
	struct mr rec;			/* as keys find it: its length is 0 */
	uint64_t last;			/* offset of the last byte; UINT64_MAX: it has all addresses */
	uint64_t offset;		/* of the first byte in the first page */
	uint8_t log;			/* page size, log2 */
	struct sparse pages;
};

static inline bool mr_is_on_demand(const struct mr *mr)
{
	return mr->access & SKUA_ACCESS_ON_DEMAND;
}

static inline struct odp_mr *odp_of(const struct mr *mr)
{
	return (struct odp_mr *)(uintptr_t)mr;
}

/* The fields of a CREATE_MR for such a region: enum skua_cmd_status. */
int odp_check_create(const struct skua_dev *dev, const struct skua_cmd_create_mr *in);
/* A region as @in says, without key, PD and rights; NULL: there is no memory. */
struct mr *odp_make(struct skua_dev *dev, const struct skua_cmd_create_mr *in);
/* It goes: its pages are freed in steps. */
void odp_release(struct skua_dev *dev, struct mr *mr);

/*
 * Parts of mr_check(), mr_check_present() and mr_segs(), which return enum skua_vendor_err. On
 * SKUA_VENDOR_ERR_NOT_PRESENT, dev->miss says which page is not there.
 */
int odp_check(const struct mr *mr, uint64_t addr, uint64_t len);
int odp_check_present(struct skua_dev *dev, const struct mr *mr, bool write, uint64_t addr, uint64_t len, uint32_t *looks);
/* All up to @end is needed, as far as the MR goes (ODP-7): a receive may be longer, if the message is not. */
void odp_miss_up_to(struct skua_dev *dev, uint64_t end);
int odp_segs(struct skua_dev *dev, const struct mr *mr, bool write, uint64_t addr, uint32_t len, struct seglist *segs);

#endif /* SKUAD_CORE_ODP_H */
