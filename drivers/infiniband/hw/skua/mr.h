/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * skua_ib.ko: memory regions.
 */
#ifndef SKUA_IB_MR_H
#define SKUA_IB_MR_H

#include <rdma/ib_verbs.h>

struct ib_dmah;
struct ib_umem;

struct skua_ib_mr {
	struct ib_mr ibmr;
	struct ib_umem *umem;
	u32 key;
};

static inline struct skua_ib_mr *to_skua_ib_mr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct skua_ib_mr, ibmr);
}

struct ib_mr *skua_ib_get_dma_mr(struct ib_pd *ibpd, int access);
struct ib_mr *skua_ib_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 iova, int access,
				  struct ib_dmah *dmah, struct ib_udata *udata);
int skua_ib_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);

#endif /* SKUA_IB_MR_H */
