/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * skua_ib.ko: XRC domains.
 */
#ifndef SKUA_IB_XRCD_H
#define SKUA_IB_XRCD_H

#include <rdma/ib_verbs.h>

struct skua_ib_xrcd {
	struct ib_xrcd ibxrcd;
	u32 xrcdn;
};

static inline struct skua_ib_xrcd *to_skua_ib_xrcd(struct ib_xrcd *ibxrcd)
{
	return container_of(ibxrcd, struct skua_ib_xrcd, ibxrcd);
}

int skua_ib_alloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata);
int skua_ib_dealloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata);

#endif /* SKUA_IB_XRCD_H */
