/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * XRC domains: SRQs, and the QPs of type XRC_TGT that serve peers from them.
 */
#ifndef SKUAD_CORE_XRCD_H
#define SKUAD_CORE_XRCD_H

#include "core/srq.h"

struct xrcd {
	uint32_t number;
	uint32_t srqs;			/* in it */
	LIST_HEAD(, skua_qp) targets;	/* QPs of type XRC_TGT */
};

/* The SRQ with this number, if it is of the domain; or NULL. */
struct srq *xrcd_srq(const struct skua_dev *dev, const struct xrcd *xrcd, uint32_t srqn);
/*
 * @srq is about to go: from the first call on xrcd_srq() does not find it, and its QPs forget it. In steps: false: to
 * be called again.
 */
bool xrcd_forget_srq(struct srq *srq);

#endif /* SKUAD_CORE_XRCD_H */
