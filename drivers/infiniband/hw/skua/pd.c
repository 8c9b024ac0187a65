// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Protection domains. */
#include <linux/skua/command.h>
#include <rdma/skua-abi.h>

#include "pd.h"
#include "skua_ib.h"

#define UVERBS_MODULE_NAME skua_ib
#include <rdma/uverbs_named_ioctl.h>

static_assert(SKUA_IB_METHOD_PD_QUERY == 1 << UVERBS_ID_NS_SHIFT);

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
	skua_cmd_destroy_pd(to_skua_dev(ibpd->device), to_skua_ib_pd(ibpd)->pdn);
	return 0;
}

/* The core has found the PD. */
static int UVERBS_HANDLER(SKUA_IB_METHOD_PD_QUERY)(struct uverbs_attr_bundle *attrs)
{
	return 0;
}

DECLARE_UVERBS_NAMED_METHOD(SKUA_IB_METHOD_PD_QUERY,
			    UVERBS_ATTR_IDR(SKUA_IB_ATTR_PD_QUERY_HANDLE, UVERBS_OBJECT_PD,
					    UVERBS_ACCESS_READ, UA_MANDATORY));

ADD_UVERBS_METHODS(skua_ib_pd_methods, UVERBS_OBJECT_PD, &UVERBS_METHOD(SKUA_IB_METHOD_PD_QUERY));

const struct uapi_definition skua_ib_pd_uapi[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_PD, &skua_ib_pd_methods),
	{}
};
