/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory windows: keys to parts of MRs.
 */
#ifndef SKUAD_CORE_MW_H
#define SKUAD_CORE_MW_H

#include "core/device.h"

struct mw {
	struct mr rec;			/* as keys find it; pd is nobody's, and pages are those of the MR */
	struct pd *pd;
	struct mr *mr;			/* rec.valid: that it is bound to */
	struct skua_qp *qp;		/* type 2, bound: the only one that it serves; else NULL */
	LIST_ENTRY(mw) entry;		/* of its QP's windows */
};

static inline struct mw *mw_of(const struct mr *rec)
{
	return (struct mw *)rec;
}

/* The PD of an MR or window. */
static inline struct pd *mr_pd(const struct mr *rec)
{
	return mr_is_window(rec) ? mw_of(rec)->pd : rec->pd;
}

static inline bool mr_is_type2_window(const struct mr *rec)
{
	return rec->type == MR_WINDOW(SKUA_MW_TYPE_2);
}

/* May @qp, or its peer, use or invalidate it? */
static inline bool mw_serves(const struct mw *mw, const struct skua_qp *qp)
{
	return !mw->qp || mw->qp == qp;
}

/* The PD of @rec is not that of @access, or @rec is a window's: enum skua_vendor_err. */
int mw_check(const struct mr *rec, const struct mem_access *access);

/* The fields of a BIND_MW, by themselves. */
bool mw_bind_valid(const struct skua_dev *dev, const struct skua_wqe_bind_mw *bind);
/* Bind or unbind a window; enum skua_vendor_err. *@was_bound: peers lose the access that they had. */
int mw_bind(struct skua_qp *qp, const struct skua_wqe_bind_mw *bind, bool *was_bound);
/* It refers to no MR any more. Its key, and what its rights were, stay. */
void mw_unbind(struct mw *mw);

#define UNBIND_COST	128
/* The windows of type 2 that @qp bound become free, as far as the @budget lasts; true when all are. */
bool mw_forget_qp(struct skua_qp *qp, int32_t *budget);

/* Take it down, bound or not: its MR is taken down, too, or does not need to know. */
void mw_free(struct skua_dev *dev, struct mr *rec);

#endif /* SKUAD_CORE_MW_H */
