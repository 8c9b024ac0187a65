// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory windows. Programs bind them by work requests; the kernel has no verb for that. So the
 * driver does not know which windows are bound, nor their keys: the device counts windows of an MR.
 */
#include <linux/skua/command.h>

#include "mw.h"
#include "pd.h"
#include "skua_ib.h"

int skua_ib_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata)
{
	enum skua_mw_type type;
	int err;

	switch (ibmw->type) {
	case IB_MW_TYPE_1:
		type = SKUA_MW_TYPE_1;
		break;
	case IB_MW_TYPE_2:
		type = SKUA_MW_TYPE_2;
		break;
	default:
		return -EINVAL;
	}
	err = ib_no_udata_io(udata);
	if (err)
		return err;
	return skua_cmd_create_mw(to_skua_dev(ibmw->device), to_skua_ib_pd(ibmw->pd)->pdn, type,
				  &ibmw->rkey);
}

int skua_ib_dealloc_mw(struct ib_mw *ibmw)
{
	skua_cmd_destroy_mw(to_skua_dev(ibmw->device), ibmw->rkey);
	return 0;
}
