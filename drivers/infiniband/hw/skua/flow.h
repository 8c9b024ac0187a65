/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * skua_ib.ko: flows.
 */
#ifndef SKUA_IB_FLOW_H
#define SKUA_IB_FLOW_H

#include <rdma/ib_verbs.h>

struct skua_ib_flow {
	struct ib_flow ibflow;
	u32 number;
};

static inline struct skua_ib_flow *to_skua_ib_flow(struct ib_flow *ibflow)
{
	return container_of(ibflow, struct skua_ib_flow, ibflow);
}

struct ib_flow *skua_ib_create_flow(struct ib_qp *ibqp, struct ib_flow_attr *attr,
				    struct ib_udata *udata);
int skua_ib_destroy_flow(struct ib_flow *ibflow);

#endif /* SKUA_IB_FLOW_H */
