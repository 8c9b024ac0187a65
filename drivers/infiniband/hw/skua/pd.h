/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * skua_ib.ko: protection domains.
 */
#ifndef SKUA_IB_PD_H
#define SKUA_IB_PD_H

#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

struct skua_ib_pd {
	struct ib_pd ibpd;
	u32 pdn;
};

static inline struct skua_ib_pd *to_skua_ib_pd(struct ib_pd *ibpd)
{
	return container_of(ibpd, struct skua_ib_pd, ibpd);
}

int skua_ib_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
int skua_ib_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);

extern const struct uapi_definition skua_ib_pd_uapi[];

#endif /* SKUA_IB_PD_H */
