// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Protection domains. */
#include <linux/skua/command.h>
#include <rdma/skua-abi.h>

#include "pd.h"
#include "skua_ib.h"

int skua_ib_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct skua_dev *dev = to_skua_dev(ibpd->device);
	struct skua_ib_pd *pd = to_skua_ib_pd(ibpd);
	struct skua_alloc_pd_resp resp = {};
	int err;

	err = ib_is_udata_in_empty(udata);
	if (err)
		return err;
	err = skua_cmd_create_pd(dev, &pd->pdn);
	if (err || !udata)
		return err;

	resp.pdn = pd->pdn;
	err = ib_respond_udata(udata, resp);
	if (err)
		skua_cmd_destroy_pd(dev, pd->pdn);
	return err;
}

int skua_ib_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return err;
	skua_cmd_destroy_pd(to_skua_dev(ibpd->device), to_skua_ib_pd(ibpd)->pdn);
	return 0;
}
