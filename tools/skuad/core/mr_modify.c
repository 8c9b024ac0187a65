// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * MODIFY_MR: an MR gets another PD, other rights or other pages, and keeps its key (manual: MR-10 to MR-12).
 *
 * New pages are read beside the old ones, which serve meanwhile. When all is well, everything changes between two
 * accesses. What is found in the MR after that is new; trains that refer to what was there before are waited for.
 */
#include "core/mw.h"
#include "core/odp.h"

/* The MR that the command names, if it is one that can be modified; else NULL. */
static struct mr *named(struct skua_dev *dev, const struct skua_cmd_modify_mr *in)
{
	struct mr *mr = numtab_get(&dev->mrs, le32toh(in->key) >> 8);

	return mr && !mr_is_window(mr) && mr->key == le32toh(in->key) ? mr : NULL;
}

/* Its state, while the command goes on: enum skua_cmd_status. */
static int check_state(const struct mr *mr)
{
	if (!mr->valid)
		return SKUA_CMD_BAD_STATE;
	return mr->windows ? SKUA_CMD_BUSY : SKUA_CMD_OK;
}

/* The first step. */
static int begin(struct skua_dev *dev, const struct mr *mr, const struct skua_cmd_modify_mr *in)
{
	uint32_t mask = le32toh(in->mask);
	int status;

	if (mask & SKUA_MR_SET_PD && !numtab_get(&dev->pds, le32toh(in->pdn)))
		return SKUA_CMD_BAD_OBJECT;
	if (mr->type != SKUA_MR_REGULAR || mask & ~(uint32_t)SKUA_MR_SET_MASK)
		return SKUA_CMD_BAD_PARAM;
	/* What takes its pages away is UPDATE_PAGES. */
	if (mr_is_on_demand(mr))
		return SKUA_CMD_BAD_PARAM;
	if (mask & SKUA_MR_SET_ACCESS && !mr_access_valid(dev, le32toh(in->access)))
		return SKUA_CMD_BAD_PARAM;
	if (!(mask & SKUA_MR_SET_PAGES))
		return SKUA_CMD_OK;
	status = mr_list_check(le64toh(in->iova), le64toh(in->length), &in->pages);
	if (status)
		return status;
	status = check_state(mr);
	return status ? status : list_begin(dev, &in->pages);
}

static void change(struct skua_dev *dev, struct mr *mr, const struct skua_cmd_modify_mr *in)
{
	uint32_t mask = le32toh(in->mask);

	if (mask & SKUA_MR_SET_PD) {
		mr->pd->refs--;
		mr->pd = numtab_get(&dev->pds, le32toh(in->pdn));
		mr->pd->refs++;
	}
	if (mask & SKUA_MR_SET_ACCESS)
		mr->access = le32toh(in->access);
	if (mask & SKUA_MR_SET_PAGES) {
		mr->iova = le64toh(in->iova);
		mr->length = le64toh(in->length);
		list_replace(dev, &mr->pages);
	}
}

int cmd_modify_mr(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	const struct skua_cmd_modify_mr *in = &dev->cmdq.cmd.modify_mr;
	struct mr *mr = named(dev, in);
	uint32_t access;
	int status;

	(void)cpl;
	if (dev->cmdq.draining)
		return cmd_drain(dev);
	if (!mr)
		return SKUA_CMD_BAD_OBJECT;
	status = dev->cmdq.making ? SKUA_CMD_OK : begin(dev, mr, in);
	access = le32toh(in->mask) & SKUA_MR_SET_ACCESS ? le32toh(in->access) : mr->access;
	if (!status && dev->cmdq.making && in->length)
		status = list_load(dev, dev->cmdq.making, &in->pages, le64toh(in->length), access & SKUA_ACCESS_LOCAL_WRITE);
	/* It may have been revoked, or a window bound, while the list was read. */
	if (!status)
		status = check_state(mr);
	if (status)
		return status;
	change(dev, mr, in);
	return cmd_drain(dev);
}
