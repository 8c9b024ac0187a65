// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Device memory (manual: device memory).
 *
 * Each DM is memory of this process, mapped for it alone: so it is zero when it is new, and what is left of max_dm never
 * lies in pieces. An MR of type DM has a page list as other MRs have, but its only page is where no host memory can be.
 * So the look-up of its memory fails, and only then mr.c comes here. Access to other MRs pays nothing for device memory.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "base/copy.h"
#include "core/dm.h"

#define FREE_PIECE	262144u		/* bytes whose pages are freed at once */
#define BYTES_A_COST	4		/* to free some, as steps are charged */

static_assert(LIMIT_DM <= 0ull - HOSTMEM_END, "a DM may reach beyond where no host memory is");
static_assert(SKUA_DM_COPY_MAX / SKUA_PAGE_SIZE + 2 <= SEG_MAX, "a copy may lie in so many regions of whole pages");

int cmd_alloc_dm(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	const struct skua_cmd_alloc_dm *in = &dev->cmdq.cmd.alloc_dm;
	uint64_t length = le64toh(in->length), size;
	struct dm *dm;

	if (!length || length > LIMIT_DM || in->log_align > SKUA_DM_MAX_LOG_ALIGN)
		return SKUA_CMD_BAD_PARAM;
	size = (length + SKUA_PAGE_SIZE - 1) & ~(uint64_t)(SKUA_PAGE_SIZE - 1);
	if (size > LIMIT_DM - dev->dm_used)
		return SKUA_CMD_NO_RESOURCE;
	dm = calloc(1, sizeof(*dm));
	if (!dm)
		return SKUA_CMD_NO_RESOURCE;
	dm->mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (dm->mem == MAP_FAILED)
		goto fail;
	dm->number = numtab_add(&dev->dms, dm);
	if (!dm->number)
		goto fail_mem;
	dm->length = length;
	dm->size = size;
	dev->dm_used += size;
	cpl->number = htole32(dm->number);
	return SKUA_CMD_OK;

fail_mem:
	munmap(dm->mem, size);
fail:
	free(dm);
	return SKUA_CMD_NO_RESOURCE;
}

/* Free it as far as the @budget lasts, from its end; true when it is gone. */
static bool dm_free(struct skua_dev *dev, struct dm *dm, int32_t *budget)
{
	while (*budget > 0 && dm->size) {
		uint64_t keep = (dm->size - 1) / FREE_PIECE * FREE_PIECE, piece = dm->size - keep;

		munmap(dm->mem + keep, piece);
		dm->size = keep;
		dev->dm_used -= piece;
		*budget -= (int32_t)(piece / BYTES_A_COST);
	}
	if (dm->size)
		return false;
	numtab_del(&dev->dms, dm->number);
	free(dm);
	return true;
}

int cmd_free_dm(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	struct dm *dm = numtab_get(&dev->dms, le32toh(dev->cmdq.cmd.object.number));
	int32_t budget = STEP_COST;

	(void)cpl;
	if (!dm)
		return SKUA_CMD_BAD_OBJECT;
	if (dm->mrs)
		return SKUA_CMD_BUSY;
	/* No train refers to it: DESTROY_MR of its MRs has waited for that. */
	return dm_free(dev, dm, &budget) ? SKUA_CMD_OK : -1;
}

bool dm_free_all(struct skua_dev *dev, int32_t *budget)
{
	struct dm *dm;

	while ((dm = numtab_any(&dev->dms, budget)) && dm_free(dev, dm, budget))
		*budget -= FREE_COST;
	return !dev->dms.count;
}

/* As one list of runs: a word may begin in one region, and end in the next. */
static void copy_from(struct skua_dev *dev, uint8_t *mem, uint64_t addr, uint32_t length)
{
	struct seglist src, dst;
	uint64_t run;

	dst.n = 1;
	dst.seg[0] = (struct seg){ mem, length };
	for (src.n = 0; length; addr += run, length -= (uint32_t)run) {
		uint8_t *p = hostmem_run(&dev->mem, addr, false, &run);

		if (run > length)
			run = length;
		src.seg[src.n++] = (struct seg){ p, (uint32_t)run };
	}
	copy_segs(&dst, &src);
}

static void copy_to(struct skua_dev *dev, const uint8_t *mem, uint64_t addr, uint32_t length)
{
	for (uint64_t run; length; mem += run, addr += run, length -= (uint32_t)run) {
		uint8_t *p = hostmem_run(&dev->mem, addr, true, &run);

		if (run > length)
			run = length;
		copy_to_host(p, mem, run);
	}
}

int cmd_dm_copy(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	const struct skua_cmd_dm_copy *in = &dev->cmdq.cmd.dm_copy;
	uint64_t offset = le64toh(in->offset), addr = le64toh(in->addr);
	struct dm *dm = numtab_get(&dev->dms, le32toh(in->dmn));
	bool to_host = in->direction == SKUA_DM_TO_HOST;
	uint32_t length = le32toh(in->length);

	(void)cpl;
	if (!dm)
		return SKUA_CMD_BAD_OBJECT;
	if (in->direction > SKUA_DM_TO_HOST || !length || length > SKUA_DM_COPY_MAX ||
	    (offset | length) % SKUA_DM_COPY_UNIT || offset > dm->length || length > dm->length - offset)
		return SKUA_CMD_BAD_PARAM;
	if (!hostmem_reaches(&dev->mem, addr, length, to_host))
		return SKUA_CMD_BAD_ADDRESS;
	if (to_host)
		copy_to(dev, dm->mem + offset, addr, length);
	else
		copy_from(dev, dm->mem + offset, addr, length);
	return SKUA_CMD_OK;
}

int dm_check_mr(const struct skua_dev *dev, const struct skua_cmd_create_mr *in)
{
	uint64_t offset = le64toh(in->dm_offset), length = le64toh(in->length);
	const struct dm *dm = numtab_get(&dev->dms, le32toh(in->dmn));

	if (!dev_has(dev, SKUA_F_DM))
		return SKUA_CMD_BAD_PARAM;
	if (!dm)
		return SKUA_CMD_BAD_OBJECT;
	if (in->iova || le32toh(in->access) & SKUA_ACCESS_MW_BIND ||
	    offset > dm->length || length > dm->length - offset)
		return SKUA_CMD_BAD_PARAM;
	return SKUA_CMD_OK;
}

struct mr *dm_make_mr(const struct skua_dev *dev, const struct skua_cmd_create_mr *in)
{
	struct dm_mr *mr = calloc(1, sizeof(*mr));

	if (!mr)
		return NULL;
	mr->dm = numtab_get(&dev->dms, le32toh(in->dmn));
	mr->dm->mrs++;
	mr->nowhere = HOSTMEM_END;
	/* One page, which holds the whole DM; n stays 0, since none is charged. */
	mr->rec.pages = (struct pages){ .addr = &mr->nowhere, .offset = le64toh(in->dm_offset), .log = SKUA_PL_MAX_LOG_PAGE };
	return &mr->rec;
}

static const struct dm_mr *dm_mr_of(const struct mr *mr)
{
	return (const struct dm_mr *)mr;
}

void dm_unmake_mr(struct mr *mr)
{
	dm_mr_of(mr)->dm->mrs--;
	free(mr);
}

uint8_t *dm_at(const struct mr *mr, uint64_t offset)
{
	return dm_mr_of(mr)->dm->mem + mr->pages.offset + offset;
}
