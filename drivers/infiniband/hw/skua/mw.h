/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * skua_ib.ko: memory windows of programs.
 */
#ifndef SKUA_IB_MW_H
#define SKUA_IB_MW_H

#include <rdma/ib_verbs.h>

struct skua_ib_mw {
	struct ib_mw ibmw;
};

int skua_ib_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata);
int skua_ib_dealloc_mw(struct ib_mw *ibmw);

#endif /* SKUA_IB_MW_H */
