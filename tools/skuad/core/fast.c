// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory regions of type FAST: work requests give them memory, and work requests and peers take it
 * away again (manual: fast registration).
 *
 * Whether a region is free is part of the check of its key, and a region keeps its array of pages while it is free.
 * So access pays nothing for any of this, and registration allocates nothing.
 */
#include "core/gaps.h"
#include "core/mw.h"
#include "core/qp.h"

static bool pages_reg_valid(const struct skua_wqe_reg_mr *reg)
{
	return pages_fit(reg->log_page, le32toh(reg->offset), le32toh(reg->npages), le64toh(reg->length));
}

bool mr_reg_valid(const struct skua_dev *dev, const struct skua_wqe_reg_mr *reg)
{
	for (unsigned int i = 0; i < sizeof(reg->rsvd); i++)
		if (reg->rsvd[i])
			return false;
	return mr_access_valid(dev, le32toh(reg->access)) &&
	       mr_range_valid(le64toh(reg->iova), le64toh(reg->length)) &&
	       (reg->log_page ? pages_reg_valid(reg) : gaps_reg_valid(dev, reg)) &&
	       le64toh(reg->list) % sizeof(uint64_t) == 0;
}

static int read_pages(struct skua_dev *dev, struct mr *mr, const struct skua_wqe_reg_mr *reg)
{
	/* A region that was made with its memory may have more pages than a work request may name. */
	if (le32toh(reg->npages) > LIMIT_FAST_PAGES || le32toh(reg->npages) > mr->pages.n)
		return SKUA_VENDOR_ERR_BOUNDS;
	mr->pieces = 0;
	return pages_read(&mr->pages, &dev->mem, le64toh(reg->list), le32toh(reg->npages), reg->log_page);
}

int mr_register(struct skua_dev *dev, struct pd *pd, bool privileged, const struct skua_wqe_reg_mr *reg)
{
	struct mr *mr = numtab_get(&dev->mrs, le32toh(reg->key) >> 8);
	int err;

	if (!privileged)
		return SKUA_VENDOR_ERR_PRIVILEGE;
	if (!mr)
		return SKUA_VENDOR_ERR_KEY_UNKNOWN;
	if (mr_pd(mr) != pd)
		return SKUA_VENDOR_ERR_PD;
	if (mr->type != SKUA_MR_FAST)
		return SKUA_VENDOR_ERR_KEY_TYPE;
	if (mr->valid)
		return SKUA_VENDOR_ERR_KEY_STATE;
	err = reg->log_page ? read_pages(dev, mr, reg) : gaps_read(dev, mr, reg);
	if (err)
		return err;
	mr->pages.offset = le32toh(reg->offset);
	mr->pages.log = reg->log_page;
	mr->iova = le64toh(reg->iova);
	mr->length = mr_is_gapped(mr) ? 0 : le64toh(reg->length);
	mr->access = le32toh(reg->access);
	mr->key = le32toh(reg->key);
	mr->valid = true;
	return SKUA_VENDOR_ERR_NONE;
}

int mr_invalidate(struct skua_qp *qp, uint32_t key, bool by_peer)
{
	struct mr *mr = numtab_get(&qp->dev->mrs, key >> 8);

	if (!mr)
		return SKUA_VENDOR_ERR_KEY_UNKNOWN;
	if (mr->key != key)
		return SKUA_VENDOR_ERR_KEY_STALE;
	if (mr_pd(mr) != qp->pd || (mr_is_window(mr) && !mw_serves(mw_of(mr), qp)))
		return SKUA_VENDOR_ERR_PD;
	if (mr->type != SKUA_MR_FAST && !mr_is_type2_window(mr))
		return SKUA_VENDOR_ERR_KEY_TYPE;
	/* Connections may share a PD: a peer ends only what was meant for peers. */
	if (by_peer && !(mr->access & (REMOTE_RIGHTS | flush_rights(SKUA_FLUSH_PLACEMENTS))))
		return SKUA_VENDOR_ERR_RIGHTS;
	if (mr->windows)
		return SKUA_VENDOR_ERR_KEY_STATE;
	if (mr_is_window(mr))
		mw_unbind(mw_of(mr));
	mr->valid = false;
	return SKUA_VENDOR_ERR_NONE;
}
