/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Memory windows: what both ways of posting need to bind one. */
#ifndef SKUA_MW_H
#define SKUA_MW_H

#include <skua/cmd.h>

#include "skua.h"

/*
 * Rights that a window may be asked to have. That to write locally is one of MRs, and programs ask for it
 * as they do for MRs; it grants nothing.
 */
#define SKUA_MW_ACCESS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
			 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED)

/* No bytes need no MR. What the device can find wrong, it does. */
static inline bool skua_mw_is_valid(const struct ibv_mw_bind_info *info)
{
	return !(info->mw_access_flags & ~SKUA_MW_ACCESS) && (info->mr || !info->length);
}

/* The segment of a WQE that gives @key to a window. */
static inline void skua_wqe_add_bind(struct skua_wqe *wqe, const struct skua_qp *qp, uint32_t key,
				     const struct ibv_mw_bind_info *info)
{
	static_assert((int)SKUA_ACCESS_REMOTE_WRITE == (int)IBV_ACCESS_REMOTE_WRITE &&
		      (int)SKUA_ACCESS_REMOTE_ATOMIC == (int)IBV_ACCESS_REMOTE_ATOMIC &&
		      (int)SKUA_ACCESS_ZERO_BASED == (int)IBV_ACCESS_ZERO_BASED, "rights have verbs' numbers");
	struct skua_wqe_bind_mw *bind = skua_wqe_add_header(wqe, sizeof(*bind));
	uint32_t access = info->mw_access_flags & ~IBV_ACCESS_LOCAL_WRITE;

	/* As with MRs: without atomics, the right to them grants nothing. */
	if (!qp->atomics)
		access &= ~IBV_ACCESS_REMOTE_ATOMIC;
	bind->key = htole32(key);
	bind->mr_key = htole32(info->length ? info->mr->lkey : 0);
	bind->addr = htole64(info->addr);
	bind->length = htole64(info->length);
	bind->access = htole32(access);
	bind->rsvd = 0;
}

#endif /* SKUA_MW_H */
