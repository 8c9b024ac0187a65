/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * skua_ib.ko: details of objects for `rdma resource`.
 */
#ifndef SKUA_IB_RESTRACK_H
#define SKUA_IB_RESTRACK_H

#include <rdma/ib_verbs.h>

int skua_ib_fill_res_qp_entry(struct sk_buff *msg, struct ib_qp *ibqp);
int skua_ib_fill_res_qp_entry_raw(struct sk_buff *msg, struct ib_qp *ibqp);
int skua_ib_fill_res_cq_entry(struct sk_buff *msg, struct ib_cq *ibcq);
int skua_ib_fill_res_mr_entry(struct sk_buff *msg, struct ib_mr *ibmr);
int skua_ib_fill_res_srq_entry(struct sk_buff *msg, struct ib_srq *ibsrq);
int skua_ib_fill_res_srq_entry_raw(struct sk_buff *msg, struct ib_srq *ibsrq);

#endif /* SKUA_IB_RESTRACK_H */
