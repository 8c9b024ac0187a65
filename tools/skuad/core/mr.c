// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Protection domains and memory regions (manual: memory rules).
 *
 * Each access is checked in full: key and variant, PD, bounds, rights; then the place is
 * looked up in the map of host memory as it is now, so that a region that was unmapped is
 * gone at once.
 */
#include <assert.h>
#include <stdlib.h>
#include <sys/random.h>

#include "core/dm.h"
#include "core/gaps.h"
#include "core/mw.h"
#include "core/odp.h"

int cmd_create_pd(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	struct pd *pd = calloc(1, sizeof(*pd));

	if (pd)
		pd->number = numtab_add(&dev->pds, pd);
	if (!pd || !pd->number) {
		free(pd);
		return SKUA_CMD_NO_RESOURCE;
	}
	cpl->number = htole32(pd->number);
	return SKUA_CMD_OK;
}

static void pd_free(struct skua_dev *dev, struct pd *pd)
{
	numtab_del(&dev->pds, pd->number);
	free(pd);
}

int cmd_destroy_pd(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	struct pd *pd = numtab_get(&dev->pds, le32toh(dev->cmdq.cmd.object.number));

	(void)cpl;
	if (!pd)
		return SKUA_CMD_BAD_OBJECT;
	if (pd->refs)
		return SKUA_CMD_BUSY;
	pd_free(dev, pd);
	return SKUA_CMD_OK;
}

bool pd_free_all(struct skua_dev *dev, int32_t *budget)
{
	struct pd *pd;

	while ((pd = numtab_any(&dev->pds, budget))) {
		pd_free(dev, pd);
		*budget -= FREE_COST;
	}
	return !dev->pds.count;
}

static uint8_t random_variant(void)
{
	uint8_t v;

	if (getrandom(&v, sizeof(v), 0) != sizeof(v))
		abort();
	return v;
}

static void mr_unmake(struct skua_dev *dev, void *object)
{
	struct mr *mr = object;

	if (mr->type == SKUA_MR_DM) {
		dm_unmake_mr(mr);
		return;
	}
	if (mr_is_on_demand(mr))
		odp_release(dev, mr);
	pages_release(dev, &mr->pages);
	free(mr);
}

uint32_t mr_remote_rights(const struct skua_dev *dev)
{
	uint32_t rights = SKUA_ACCESS_REMOTE_WRITE | SKUA_ACCESS_REMOTE_READ;

	if (dev_has(dev, SKUA_F_ATOMIC))
		rights |= SKUA_ACCESS_REMOTE_ATOMIC;
	if (dev_has(dev, SKUA_F_FLUSH))
		rights |= flush_rights(flush_caps(dev));
	return rights;
}

bool mr_access_valid(const struct skua_dev *dev, uint32_t access)
{
	uint32_t may = SKUA_ACCESS_LOCAL_WRITE | mr_remote_rights(dev) | (dev_has(dev, SKUA_F_MW) ? SKUA_ACCESS_MW_BIND : 0);

	return !(access & ~may) &&
	       (!(access & (SKUA_ACCESS_REMOTE_WRITE | SKUA_ACCESS_REMOTE_ATOMIC)) ||
		access & SKUA_ACCESS_LOCAL_WRITE);
}

bool mr_range_valid(uint64_t iova, uint64_t length)
{
	return length && length <= LIMIT_MR_SIZE && iova + length - 1 >= length - 1;
}

int mr_list_check(uint64_t iova, uint64_t length, const struct skua_pagelist *list)
{
	if (!length)
		return pagelist_empty(list) ? SKUA_CMD_OK : SKUA_CMD_BAD_PARAM;
	return mr_range_valid(iova, length) ? pages_check(list, length) : SKUA_CMD_BAD_PARAM;
}

/* Capacity is for REG_MR, which gives the region all the rest. */
static bool capacity_valid(const struct skua_dev *dev, const struct skua_cmd_create_mr *in)
{
	uint32_t capacity = le32toh(in->capacity);

	return !capacity || (in->type == SKUA_MR_FAST && dev_has(dev, SKUA_F_FAST_REG) &&
			     capacity <= LIMIT_FAST_PAGES && !in->access && !in->iova && !in->length);
}

/* Memory that has pages, and keeps them, is made persistent (FLU-14). */
static bool may_persist(const struct skua_cmd_create_mr *in)
{
	return (in->type == SKUA_MR_REGULAR || in->type == SKUA_MR_FAST) &&
	       !(le32toh(in->access) & SKUA_ACCESS_ON_DEMAND);
}

static bool mr_has_list(const struct mr *mr)
{
	return mr->length && mr->type != SKUA_MR_DM;
}

/* The first step of CREATE_MR. */
static int mr_make(struct skua_dev *dev)
{
	const struct skua_cmd_create_mr *in = &dev->cmdq.cmd.create_mr;
	uint64_t length = le64toh(in->length);
	uint32_t access = le32toh(in->access);
	bool on_demand = access & SKUA_ACCESS_ON_DEMAND;
	struct mr *mr;
	int status;

	if (!numtab_get(&dev->pds, le32toh(in->pdn)))
		return SKUA_CMD_BAD_OBJECT;
	if (in->type == SKUA_MR_DM) {
		status = dm_check_mr(dev, in);
		if (status)
			return status;
	} else if (in->type > SKUA_MR_FAST || in->dmn || in->dm_offset) {
		return SKUA_CMD_BAD_PARAM;
	}
	if (!mr_access_valid(dev, access & ~(uint32_t)SKUA_ACCESS_ON_DEMAND) || !capacity_valid(dev, in))
		return SKUA_CMD_BAD_PARAM;
	if (in->type == SKUA_MR_FAST && !dev_has(dev, SKUA_F_INVALIDATE))
		return SKUA_CMD_BAD_PARAM;
	if (access & SKUA_ACCESS_FLUSH_PERSISTENT && !may_persist(in))
		return SKUA_CMD_BAD_PARAM;
	if (on_demand) {
		status = odp_check_create(dev, in);
		if (status)
			return status;
	} else if (in->type == SKUA_MR_PHYS) {
		if (in->iova || length || !pagelist_empty(&in->pages))
			return SKUA_CMD_BAD_PARAM;
	} else {
		status = mr_list_check(le64toh(in->iova), in->type == SKUA_MR_DM ? 0 : length, &in->pages);
		if (status)
			return status;
	}
	if (dev->mrs.count - dev->num_mws >= LIMIT_MR)
		return SKUA_CMD_NO_RESOURCE;
	mr = in->type == SKUA_MR_DM ? dm_make_mr(dev, in) : on_demand ? odp_make(dev, in) : calloc(1, sizeof(*mr));
	if (!mr)
		return SKUA_CMD_NO_RESOURCE;
	cmd_makes(dev, mr, mr_unmake);
	mr->type = in->type;
	mr->valid = !in->capacity;
	mr->access = access;
	mr->iova = le64toh(in->iova);
	mr->length = on_demand ? 0 : length;
	if (in->capacity)
		return pages_make_room(dev, &mr->pages, le32toh(in->capacity));
	return mr_has_list(mr) ? pages_reserve(dev, &mr->pages, &in->pages) : SKUA_CMD_OK;
}

bool mr_add_key(struct skua_dev *dev, struct mr *mr)
{
	uint32_t index = numtab_add(&dev->mrs, mr);

	/* That of the reserved lkey is never given out. */
	static_assert(RESERVED_LKEY >> 8 == NUMTAB_MASK, "another region may get its index");
	mr->key = index << 8 | random_variant();
	return index;
}

int cmd_create_mr(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	const struct skua_cmd_create_mr *in = &dev->cmdq.cmd.create_mr;
	int status = dev->cmdq.making ? SKUA_CMD_OK : mr_make(dev);
	struct mr *mr = dev->cmdq.making;

	if (!status && mr_has_list(mr))
		status = list_load(dev, &mr->pages, &in->pages, mr->length, mr->access & SKUA_ACCESS_LOCAL_WRITE);
	if (status)
		return status;
	if (!mr_add_key(dev, mr))
		return SKUA_CMD_NO_RESOURCE;
	mr->pd = numtab_get(&dev->pds, le32toh(in->pdn));
	mr->pd->refs++;
	cpl->number = htole32(mr->key);
	return SKUA_CMD_OK;
}

static void mr_free(struct skua_dev *dev, struct mr *mr)
{
	mr->pd->refs--;
	numtab_del(&dev->mrs, mr->key >> 8);
	mr_unmake(dev, mr);
}

int cmd_destroy_mr(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	uint32_t key = le32toh(dev->cmdq.cmd.object.number);
	struct mr *mr = numtab_get(&dev->mrs, key >> 8);

	(void)cpl;
	if (dev->cmdq.draining)
		return cmd_drain(dev);
	/* Which variant a region of type FAST has, only its WQEs know. */
	if (!mr || mr_is_window(mr) || (mr->key != key && mr->type != SKUA_MR_FAST))
		return SKUA_CMD_BAD_OBJECT;
	if (mr->windows)
		return SKUA_CMD_BUSY;
	mr_free(dev, mr);
	return cmd_drain(dev);
}

/* The record and its pages stay until DESTROY_MR, because windows have a copy of where these are. */
int cmd_invalidate_mr(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	uint32_t key = le32toh(dev->cmdq.urgent.cmd.object.number);
	struct mr *mr = numtab_get(&dev->mrs, key >> 8);

	(void)cpl;
	if (dev->cmdq.urgent.draining)
		return cmd_drain_urgent(dev);
	if (!mr || mr_is_window(mr) || mr->key != key)
		return SKUA_CMD_BAD_OBJECT;
	/* What takes pages on demand away is UPDATE_PAGES. */
	if (mr->type != SKUA_MR_REGULAR || mr_is_on_demand(mr))
		return SKUA_CMD_BAD_PARAM;
	mr->valid = false;
	return cmd_drain_urgent(dev);
}

bool mr_free_all(struct skua_dev *dev, int32_t *budget)
{
	struct mr *mr;

	while ((mr = numtab_any(&dev->mrs, budget))) {
		if (mr_is_window(mr))
			mw_free(dev, mr);
		else
			mr_free(dev, mr);
		*budget -= FREE_COST;
	}
	return !dev->mrs.count;
}

/*
 * May @access use [@addr, @addr + @len) of the region with @key? *@out: the region; NULL: the address is a DMA address.
 * SKUA_VENDOR_ERR_NOT_PRESENT: the region is one on demand or in pieces, and all is well but for bounds and pages, which
 * are not looked at.
 */
static int lookup(struct skua_dev *dev, const struct mem_access *access, uint32_t key,
		  uint64_t addr, uint64_t len, struct mr **out)
{
	struct mr *mr;
	int err;

	*out = NULL;
	if (key == RESERVED_LKEY)
		return access->privileged && !(access->need & ~(uint32_t)SKUA_ACCESS_LOCAL_WRITE) ?
		       SKUA_VENDOR_ERR_NONE : SKUA_VENDOR_ERR_PRIVILEGE;
	mr = numtab_get(&dev->mrs, key >> 8);
	if (!mr)
		return SKUA_VENDOR_ERR_KEY_UNKNOWN;
	if (mr->key != key || !mr->valid)
		return SKUA_VENDOR_ERR_KEY_STALE;
	if (mr->pd != access->pd) {
		err = mw_check(mr, access);
		if (err)
			return err;
	}
	if (mr->type == SKUA_MR_PHYS && !access->privileged)
		return SKUA_VENDOR_ERR_PRIVILEGE;
	if (access->need & ~mr->access)
		return SKUA_VENDOR_ERR_RIGHTS;
	if (mr->type == SKUA_MR_PHYS)
		return SKUA_VENDOR_ERR_NONE;
	*out = mr;
	if (addr < mr->iova || addr - mr->iova > mr->length ||
	    len > mr->length - (addr - mr->iova))
		return mr_is_on_demand(mr) || mr_is_gapped(mr) ? SKUA_VENDOR_ERR_NOT_PRESENT : SKUA_VENDOR_ERR_BOUNDS;
	return SKUA_VENDOR_ERR_NONE;
}

static bool is_write(const struct mem_access *access)
{
	return access->need & (SKUA_ACCESS_LOCAL_WRITE | SKUA_ACCESS_REMOTE_WRITE | SKUA_ACCESS_REMOTE_ATOMIC);
}

int mr_check(struct skua_dev *dev, const struct mem_access *access, uint32_t key, uint64_t addr,
	     uint64_t len)
{
	struct mr *mr;
	int err = lookup(dev, access, key, addr, len, &mr);

	if (err != SKUA_VENDOR_ERR_NOT_PRESENT)
		return err;
	return mr_is_gapped(mr) ? gaps_check(mr, addr, len) : odp_check(mr, addr, len);
}

int mr_check_present(struct skua_dev *dev, const struct mem_access *access, uint32_t key, uint64_t addr, uint64_t len,
		     uint32_t *looks)
{
	struct mr *mr;
	int err = lookup(dev, access, key, addr, len, &mr);

	if (err != SKUA_VENDOR_ERR_NOT_PRESENT)
		return err;
	return mr_is_gapped(mr) ? gaps_check(mr, addr, len) :
				  odp_check_present(dev, mr, is_write(access), addr, len, looks);
}

int mr_check_key(struct skua_dev *dev, const struct mem_access *access, uint32_t key)
{
	const struct mr *mr = numtab_get(&dev->mrs, key >> 8);

	return mr_check(dev, access, key, mr ? mr->iova : 0, 0);
}

void mr_range(struct skua_dev *dev, uint32_t key, uint64_t *addr, uint64_t *len)
{
	const struct mr *mr = numtab_get(&dev->mrs, key >> 8);

	*addr = mr ? mr->iova : 0;
	*len = mr ? mr->length : 1;
}

int mr_run(struct skua_dev *dev, const struct mem_access *access, uint32_t key, uint64_t addr, uint64_t len, uint8_t **at,
	   uint64_t *run)
{
	struct mr *mr;
	int err = lookup(dev, access, key, addr, len, &mr);

	if (err)
		return err;
	*at = pages_run(&mr->pages, &dev->mem, addr - mr->iova, false, run);
	if (!*at)
		return SKUA_VENDOR_ERR_UNREACHABLE;
	if (*run > len)
		*run = len;
	return SKUA_VENDOR_ERR_NONE;
}

/* Runs that touch become one; there is always room, see SEG_MAX. */
static bool append(struct seglist *segs, uint8_t *p, uint32_t len)
{
	struct seg *last = segs->n ? &segs->seg[segs->n - 1] : NULL;

	segs->bytes += len;
	if (last && last->p + last->len == p) {
		last->len += len;
		return true;
	}
	if (segs->n == SEG_MAX)
		return false;
	segs->seg[segs->n++] = (struct seg){ p, len };
	return true;
}

/* The region has no array of pages that tells where @addr is. */
static int segs_of_others(struct skua_dev *dev, const struct mr *mr, bool write, uint64_t addr, uint32_t len,
			  struct seglist *segs)
{
	return mr_is_gapped(mr) ? gaps_segs(dev, mr, write, addr, len, segs) : odp_segs(dev, mr, write, addr, len, segs);
}

/* There is no host memory where the region has @addr. Device memory lies in one piece. */
static int segs_elsewhere(const struct mr *mr, uint64_t addr, uint32_t len, struct seglist *segs)
{
	if (!mr || mr->type != SKUA_MR_DM || !append(segs, dm_at(mr, addr - mr->iova), len))
		return SKUA_VENDOR_ERR_UNREACHABLE;
	return SKUA_VENDOR_ERR_NONE;
}

int hostmem_segs(struct hostmem *m, uint64_t addr, uint32_t len, bool write, struct seglist *segs)
{
	uint64_t run;

	for (; len; addr += run, len -= (uint32_t)run) {
		uint8_t *p = hostmem_run(m, addr, write, &run);

		if (run > len)
			run = len;
		if (!p || !append(segs, p, (uint32_t)run))
			return SKUA_VENDOR_ERR_UNREACHABLE;
	}
	return SKUA_VENDOR_ERR_NONE;
}

int mr_segs(struct skua_dev *dev, const struct mem_access *access, uint32_t key, uint64_t addr,
	    uint32_t len, struct seglist *segs)
{
	bool write = is_write(access);
	struct mr *mr;
	int err = lookup(dev, access, key, addr, len, &mr);

	if (err)
		return err == SKUA_VENDOR_ERR_NOT_PRESENT ? segs_of_others(dev, mr, write, addr, len, segs) : err;
	while (len) {
		uint64_t run;
		uint8_t *p = mr ? pages_run(&mr->pages, &dev->mem, addr - mr->iova, write, &run) :
				  hostmem_run(&dev->mem, addr, write, &run);

		if (!p)
			return segs_elsewhere(mr, addr, len, segs);
		if (run > len)
			run = len;
		if (!append(segs, p, (uint32_t)run))
			return SKUA_VENDOR_ERR_UNREACHABLE;
		addr += run;
		len -= (uint32_t)run;
	}
	return SKUA_VENDOR_ERR_NONE;
}
