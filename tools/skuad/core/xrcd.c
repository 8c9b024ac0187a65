// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * XRC domains (manual: extended reliable connections).
 */
#include <stdlib.h>

#include "core/transport.h"
#include "core/xrcd.h"

#define FORGET_COST	1024	/* a QP */

int cmd_create_xrcd(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	struct xrcd *xrcd = calloc(1, sizeof(*xrcd));

	if (xrcd)
		xrcd->number = numtab_add(&dev->xrcds, xrcd);
	if (!xrcd || !xrcd->number) {
		free(xrcd);
		return SKUA_CMD_NO_RESOURCE;
	}
	LIST_INIT(&xrcd->targets);
	cpl->number = htole32(xrcd->number);
	return SKUA_CMD_OK;
}

static void xrcd_free(struct skua_dev *dev, struct xrcd *xrcd)
{
	numtab_del(&dev->xrcds, xrcd->number);
	free(xrcd);
}

int cmd_destroy_xrcd(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	struct xrcd *xrcd = numtab_get(&dev->xrcds, le32toh(dev->cmdq.cmd.object.number));

	(void)cpl;
	if (!xrcd)
		return SKUA_CMD_BAD_OBJECT;
	if (xrcd->srqs || !LIST_EMPTY(&xrcd->targets))
		return SKUA_CMD_BUSY;
	xrcd_free(dev, xrcd);
	return SKUA_CMD_OK;
}

bool xrcd_free_all(struct skua_dev *dev, int32_t *budget)
{
	struct xrcd *xrcd;

	while ((xrcd = numtab_any(&dev->xrcds, budget))) {
		xrcd_free(dev, xrcd);
		*budget -= FREE_COST;
	}
	return !dev->xrcds.count;
}

struct srq *xrcd_srq(const struct skua_dev *dev, const struct xrcd *xrcd, uint32_t srqn)
{
	struct srq *srq = numtab_get(&dev->srqs, srqn);

	return srq && srq->xrcd == xrcd && !srq->going ? srq : NULL;
}

/* No QP of the domain comes or goes meanwhile, since that takes a command. */
bool xrcd_forget_srq(struct srq *srq)
{
	int32_t budget = STEP_COST;

	if (!srq->going)
		srq->to_forget = LIST_FIRST(&srq->xrcd->targets);
	srq->going = true;
	for (; srq->to_forget && budget > 0; budget -= FORGET_COST) {
		srq->to_forget->ops->forget_srq(srq->to_forget, srq);
		srq->to_forget = LIST_NEXT(srq->to_forget, target_entry);
	}
	return !srq->to_forget;
}
