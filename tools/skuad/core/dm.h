/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Device memory: memory of the device that MRs give access to.
 */
#ifndef SKUAD_CORE_DM_H
#define SKUAD_CORE_DM_H

#include "core/device.h"

struct dm {
	uint32_t number;
	uint32_t mrs;			/* that refer to it */
	uint64_t length;
	uint64_t size;			/* bytes of memory, whole pages; less and less while it is freed */
	uint8_t *mem;
};

/* An MR of type DM. Its array of pages has one entry, for an address where no host memory is. */
struct dm_mr {
	struct mr rec;			/* as keys find it */
	struct dm *dm;
	uint64_t nowhere;
};

/* The fields of a CREATE_MR of type DM that are its own: enum skua_cmd_status. */
int dm_check_mr(const struct skua_dev *dev, const struct skua_cmd_create_mr *in);
/* A new record for it, or NULL; and its end. */
struct mr *dm_make_mr(const struct skua_dev *dev, const struct skua_cmd_create_mr *in);
void dm_unmake_mr(struct mr *mr);

/* Byte @offset of the MR. */
uint8_t *dm_at(const struct mr *mr, uint64_t offset);

bool dm_free_all(struct skua_dev *dev, int32_t *budget);

#endif /* SKUAD_CORE_DM_H */
