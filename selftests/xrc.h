/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The initiator of an XRC connection: what test_xrc and test_xrc_kernel share. */
#ifndef SELFTESTS_XRC_H
#define SELFTESTS_XRC_H

#include "pair.h"

static inline struct ibv_qp *make_initiator(struct side *side)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_SEND, .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = side->pd,
		.send_cq = side->cq,
		.cap = { .max_send_wr = PAIR_WRS, .max_send_sge = 1, .max_inline_data = 64 },
	};

	return ibv_create_qp_ex(side->context, &attr);
}

/* From RESET to RTS; 0 or an errno. */
static inline int connect_initiator(struct ibv_qp *qp, struct side *a, struct side *b, uint32_t target)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = target,
		.rq_psn = 0xfffff0, .ah_attr = side_ah(a, &b->gid),
	};
	int err = qp_to_init(qp, 0);

	err = err ? err : ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					IBV_QP_DEST_QPN | IBV_QP_RQ_PSN);
	return err ? err : qp_to_rts(qp, 14, 7, 7);
}

#endif
