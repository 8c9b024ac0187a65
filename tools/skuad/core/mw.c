// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory windows (manual: memory windows).
 *
 * A window is a key of its own to a part of an MR. Its record is that of an MR: it has a copy of where the pages of the
 * MR are, and begins at another offset in them. So an access through a window is looked up as one of an MR. The record
 * has a PD that no access has, and therefore each access through a window fails the first check of PDs, and comes here.
 * Accesses to MRs pay nothing for windows.
 *
 * The copy stays true because an MR cannot be destroyed or modified while windows are bound to it. A revoked MR keeps
 * its pages, and its windows find out here that it is revoked.
 */
#include <stdlib.h>

#include "core/mw.h"
#include "core/qp.h"

#define BIND_RIGHTS	(REMOTE_RIGHTS | SKUA_ACCESS_ZERO_BASED)

/* Not NULL: that is the PD of accesses for an SRQ that is gone (XRC-14). */
static struct pd nobodys;

void mw_unbind(struct mw *mw)
{
	if (!mw->rec.valid)
		return;
	mw->rec.valid = false;
	mw->mr->windows--;
	if (mw->qp)
		LIST_REMOVE(mw, entry);
	mw->qp = NULL;
}

int cmd_create_mw(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	const struct skua_cmd_create_mw *in = &dev->cmdq.cmd.create_mw;
	struct pd *pd = numtab_get(&dev->pds, le32toh(in->pdn));
	struct mw *mw;

	if (!pd)
		return SKUA_CMD_BAD_OBJECT;
	if (in->type != SKUA_MW_TYPE_1 && in->type != SKUA_MW_TYPE_2)
		return SKUA_CMD_BAD_PARAM;
	if (dev->num_mws >= LIMIT_MW)
		return SKUA_CMD_NO_RESOURCE;
	mw = calloc(1, sizeof(*mw));
	if (!mw || !mr_add_key(dev, &mw->rec)) {
		free(mw);
		return SKUA_CMD_NO_RESOURCE;
	}
	mw->rec.type = MR_WINDOW(in->type);
	mw->rec.pd = &nobodys;
	mw->pd = pd;
	pd->refs++;
	dev->num_mws++;
	cpl->number = htole32(mw->rec.key);
	return SKUA_CMD_OK;
}

void mw_free(struct skua_dev *dev, struct mr *rec)
{
	struct mw *mw = mw_of(rec);

	mw->pd->refs--;
	dev->num_mws--;
	numtab_del(&dev->mrs, rec->key >> 8);
	free(mw);
}

int cmd_destroy_mw(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	struct mr *rec = numtab_get(&dev->mrs, le32toh(dev->cmdq.cmd.object.number) >> 8);

	(void)cpl;
	if (dev->cmdq.draining)
		return cmd_drain(dev);
	if (!rec || !mr_is_window(rec))
		return SKUA_CMD_BAD_OBJECT;
	mw_unbind(mw_of(rec));
	mw_free(dev, rec);
	return cmd_drain(dev);
}

bool mw_forget_qp(struct skua_qp *qp, int32_t *budget)
{
	while (*budget > 0 && !LIST_EMPTY(&qp->windows)) {
		mw_unbind(LIST_FIRST(&qp->windows));
		*budget -= UNBIND_COST;
	}
	return LIST_EMPTY(&qp->windows);
}

int mw_check(const struct mr *rec, const struct mem_access *access)
{
	const struct mw *mw = mw_of(rec);

	if (!mr_is_window(rec))
		return SKUA_VENDOR_ERR_PD;
	if (!mw->mr->valid)
		return SKUA_VENDOR_ERR_KEY_STALE;
	if (mw->pd != access->pd)
		return SKUA_VENDOR_ERR_PD;
	if (!access->qp)
		return SKUA_VENDOR_ERR_KEY_TYPE;
	return mw_serves(mw, access->qp) ? SKUA_VENDOR_ERR_NONE : SKUA_VENDOR_ERR_PD;
}

bool mw_bind_valid(const struct skua_dev *dev, const struct skua_wqe_bind_mw *bind)
{
	uint32_t access = le32toh(bind->access);

	return !bind->rsvd && !(access & ~(uint32_t)BIND_RIGHTS) &&
	       (!(access & SKUA_ACCESS_REMOTE_ATOMIC) || dev_has(dev, SKUA_F_ATOMIC));
}

/* May the window be bound, or unbound, as @bind says? */
static int check_window(const struct mw *mw, const struct skua_wqe_bind_mw *bind)
{
	if (mr_is_type2_window(&mw->rec) && mw->rec.valid)
		return SKUA_VENDOR_ERR_KEY_STATE;
	if (!mr_is_type2_window(&mw->rec) && le32toh(bind->access) & SKUA_ACCESS_ZERO_BASED)
		return SKUA_VENDOR_ERR_RIGHTS;
	return mr_is_type2_window(&mw->rec) && !bind->length ? SKUA_VENDOR_ERR_BOUNDS : SKUA_VENDOR_ERR_NONE;
}

/* The MR that the window is to be bound to: NULL, and why not. */
static struct mr *find_mr(const struct skua_qp *qp, const struct skua_wqe_bind_mw *bind, int *err)
{
	struct mr *mr = numtab_get(&qp->dev->mrs, le32toh(bind->mr_key) >> 8);
	uint64_t addr = le64toh(bind->addr), length = le64toh(bind->length);
	uint32_t need = SKUA_ACCESS_MW_BIND;

	if (le32toh(bind->access) & (SKUA_ACCESS_REMOTE_WRITE | SKUA_ACCESS_REMOTE_ATOMIC))
		need |= SKUA_ACCESS_LOCAL_WRITE;
	if (!mr)
		*err = SKUA_VENDOR_ERR_KEY_UNKNOWN;
	else if (mr->key != le32toh(bind->mr_key) || !mr->valid)
		*err = SKUA_VENDOR_ERR_KEY_STALE;
	else if (mr_pd(mr) != qp->pd)
		*err = SKUA_VENDOR_ERR_PD;
	else if (mr->type != SKUA_MR_REGULAR && mr->type != SKUA_MR_FAST)
		*err = SKUA_VENDOR_ERR_KEY_TYPE;
	else if (need & ~mr->access)
		*err = SKUA_VENDOR_ERR_RIGHTS;
	else if (addr < mr->iova || addr - mr->iova > mr->length || length > mr->length - (addr - mr->iova))
		*err = SKUA_VENDOR_ERR_BOUNDS;
	else
		return mr;
	return NULL;
}

static void bind_to(struct mw *mw, struct mr *mr, struct skua_qp *qp, const struct skua_wqe_bind_mw *bind)
{
	struct mr *rec = &mw->rec;

	mw->mr = mr;
	mr->windows++;
	if (mr_is_type2_window(&mw->rec)) {
		mw->qp = qp;
		LIST_INSERT_HEAD(&qp->windows, mw, entry);
	}
	rec->access = le32toh(bind->access) & REMOTE_RIGHTS;
	rec->iova = le32toh(bind->access) & SKUA_ACCESS_ZERO_BASED ? 0 : le64toh(bind->addr);
	rec->length = le64toh(bind->length);
	rec->pages = mr->pages;
	rec->pages.offset += le64toh(bind->addr) - mr->iova;
	rec->valid = true;
}

int mw_bind(struct skua_qp *qp, const struct skua_wqe_bind_mw *bind, bool *was_bound)
{
	struct mr *rec = numtab_get(&qp->dev->mrs, le32toh(bind->key) >> 8), *mr = NULL;
	struct mw *mw = mw_of(rec);
	int err;

	if (!rec)
		return SKUA_VENDOR_ERR_KEY_UNKNOWN;
	if (mr_pd(rec) != qp->pd)
		return SKUA_VENDOR_ERR_PD;
	if (!mr_is_window(rec))
		return SKUA_VENDOR_ERR_KEY_TYPE;
	err = check_window(mw, bind);
	if (!err && bind->length)
		mr = find_mr(qp, bind, &err);
	if (err)
		return err;
	*was_bound = rec->valid;
	mw_unbind(mw);
	rec->key = le32toh(bind->key);
	if (mr)
		bind_to(mw, mr, qp, bind);
	return SKUA_VENDOR_ERR_NONE;
}
