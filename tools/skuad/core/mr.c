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

#include "core/device.h"

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

void pd_free_all(struct skua_dev *dev)
{
	struct pd *pd;

	while ((pd = numtab_any(&dev->pds)))
		pd_free(dev, pd);
}

static uint8_t random_variant(void)
{
	uint8_t v;

	if (getrandom(&v, sizeof(v), 0) != sizeof(v))
		abort();
	return v;
}

/* The last step of CREATE_MR: the region exists from now on. */
static int mr_add(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	const struct skua_cmd_create_mr *in = &dev->cmdq.cmd.create_mr;
	struct pd *pd = numtab_get(&dev->pds, le32toh(in->pdn));
	struct mr *mr = calloc(1, sizeof(*mr));
	uint32_t index;

	if (!mr)
		return SKUA_CMD_NO_RESOURCE;
	/* That of the reserved lkey is never given out. */
	static_assert(RESERVED_LKEY >> 8 == NUMTAB_MASK, "another region may get its index");
	index = numtab_add(&dev->mrs, mr);
	if (!index) {
		free(mr);
		return SKUA_CMD_NO_RESOURCE;
	}
	mr->key = index << 8 | random_variant();
	mr->type = in->type;
	mr->valid = true;
	mr->access = le32toh(in->access);
	mr->pd = pd;
	mr->iova = le64toh(in->iova);
	mr->length = le64toh(in->length);
	mr->pages = dev->cmdq.pages;
	dev->cmdq.pages = (struct pages){ 0 };
	pd->refs++;
	cpl->number = htole32(mr->key);
	return SKUA_CMD_OK;
}

static int create_mr_start(struct skua_dev *dev)
{
	const struct skua_cmd_create_mr *in = &dev->cmdq.cmd.create_mr;
	struct cmdq *q = &dev->cmdq;
	uint64_t length = le64toh(in->length);
	uint32_t access = le32toh(in->access);
	int status;

	if (!numtab_get(&dev->pds, le32toh(in->pdn)))
		return SKUA_CMD_BAD_OBJECT;
	if (in->type > SKUA_MR_FAST || access & ~(uint32_t)SKUA_ACCESS_MASK ||
	    (access & (SKUA_ACCESS_REMOTE_WRITE | SKUA_ACCESS_REMOTE_ATOMIC) &&
	     !(access & SKUA_ACCESS_LOCAL_WRITE)) ||
	    (access & SKUA_ACCESS_REMOTE_ATOMIC && !dev_has(dev, SKUA_F_ATOMIC)))
		return SKUA_CMD_BAD_PARAM;
	if (in->type == SKUA_MR_FAST && !dev_has(dev, SKUA_F_INVALIDATE))
		return SKUA_CMD_BAD_PARAM;
	if (in->type == SKUA_MR_PHYS)
		return in->iova || length || !pagelist_empty(&in->pages) ? SKUA_CMD_BAD_PARAM :
									   SKUA_CMD_OK;
	if (!length)
		return pagelist_empty(&in->pages) ? SKUA_CMD_OK : SKUA_CMD_BAD_PARAM;
	if (length > LIMIT_MR_SIZE || le64toh(in->iova) + length - 1 < length - 1)
		return SKUA_CMD_BAD_PARAM;
	status = pages_check(&in->pages, length);
	if (status)
		return status;
	if (numtab_full(&dev->mrs))
		return SKUA_CMD_NO_RESOURCE;
	status = pages_reserve(dev, &q->pages, &in->pages);
	if (status)
		return status;
	status = pages_load_start(&q->load, &q->pages, &in->pages, length,
				  access & SKUA_ACCESS_LOCAL_WRITE);
	if (status) {
		pages_release(dev, &q->pages);
		return status;
	}
	q->loading = true;
	return -1;
}

int cmd_create_mr(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	struct cmdq *q = &dev->cmdq;
	int status;

	if (!q->loading) {
		status = create_mr_start(dev);
		return status == SKUA_CMD_OK ? mr_add(dev, cpl) : status;
	}
	status = pages_load_step(&q->load, &q->pages, &dev->mem);
	if (status < 0)
		return status;
	q->loading = false;
	if (!status)
		status = mr_add(dev, cpl);
	if (status)
		pages_release(dev, &q->pages);
	return status;
}

static void mr_free(struct skua_dev *dev, struct mr *mr)
{
	mr->pd->refs--;
	numtab_del(&dev->mrs, mr->key >> 8);
	pages_release(dev, &mr->pages);
	free(mr);
}

int cmd_destroy_mr(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	uint32_t key = le32toh(dev->cmdq.cmd.object.number);
	struct mr *mr = numtab_get(&dev->mrs, key >> 8);

	(void)cpl;
	if (dev->cmdq.draining)
		return cmd_drain(dev);
	if (!mr || mr->key != key)
		return SKUA_CMD_BAD_OBJECT;
	mr_free(dev, mr);
	return cmd_drain(dev);
}

void mr_free_all(struct skua_dev *dev)
{
	struct mr *mr;

	while ((mr = numtab_any(&dev->mrs)))
		mr_free(dev, mr);
}

/* May @access use [@addr, @addr + @len) of the region with @key? *@out: the region; NULL: the
 * address is a DMA address. */
static int lookup(struct skua_dev *dev, const struct mem_access *access, uint32_t key,
		  uint64_t addr, uint64_t len, struct mr **out)
{
	struct mr *mr;

	*out = NULL;
	if (key == RESERVED_LKEY)
		return access->privileged && !(access->need & ~(uint32_t)SKUA_ACCESS_LOCAL_WRITE) ?
		       SKUA_VENDOR_ERR_NONE : SKUA_VENDOR_ERR_PRIVILEGE;
	mr = numtab_get(&dev->mrs, key >> 8);
	if (!mr)
		return SKUA_VENDOR_ERR_KEY_UNKNOWN;
	if (mr->key != key || !mr->valid)
		return SKUA_VENDOR_ERR_KEY_STALE;
	if (mr->pd != access->pd)
		return SKUA_VENDOR_ERR_PD;
	if (access->need & ~mr->access)
		return SKUA_VENDOR_ERR_RIGHTS;
	if (mr->type == SKUA_MR_PHYS)
		return access->privileged ? SKUA_VENDOR_ERR_NONE : SKUA_VENDOR_ERR_PRIVILEGE;
	if (addr < mr->iova || addr - mr->iova > mr->length ||
	    len > mr->length - (addr - mr->iova))
		return SKUA_VENDOR_ERR_BOUNDS;
	*out = mr;
	return SKUA_VENDOR_ERR_NONE;
}

int mr_check(struct skua_dev *dev, const struct mem_access *access, uint32_t key, uint64_t addr,
	     uint64_t len)
{
	struct mr *mr;

	return lookup(dev, access, key, addr, len, &mr);
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

int mr_segs(struct skua_dev *dev, const struct mem_access *access, uint32_t key, uint64_t addr,
	    uint32_t len, struct seglist *segs)
{
	bool write = access->need & (SKUA_ACCESS_LOCAL_WRITE | SKUA_ACCESS_REMOTE_WRITE |
				     SKUA_ACCESS_REMOTE_ATOMIC);
	struct mr *mr;
	int err = lookup(dev, access, key, addr, len, &mr);

	if (err)
		return err;
	while (len) {
		uint64_t run;
		uint8_t *p = mr ? pages_run(&mr->pages, &dev->mem, addr - mr->iova, write, &run) :
				  hostmem_run(&dev->mem, addr, write, &run);

		if (run > len)
			run = len;
		if (!p || !append(segs, p, (uint32_t)run))
			return SKUA_VENDOR_ERR_UNREACHABLE;
		addr += run;
		len -= (uint32_t)run;
	}
	return SKUA_VENDOR_ERR_NONE;
}

int mr_invalidate(struct skua_dev *dev, struct pd *pd, uint32_t key)
{
	struct mr *mr = numtab_get(&dev->mrs, key >> 8);

	if (!mr)
		return SKUA_VENDOR_ERR_KEY_UNKNOWN;
	if (mr->key != key || !mr->valid)
		return SKUA_VENDOR_ERR_KEY_STALE;
	if (mr->pd != pd)
		return SKUA_VENDOR_ERR_PD;
	if (mr->type != SKUA_MR_FAST)
		return SKUA_VENDOR_ERR_KEY_TYPE;
	mr->valid = false;
	return SKUA_VENDOR_ERR_NONE;
}
