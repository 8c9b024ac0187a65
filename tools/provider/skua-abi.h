/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The uverbs commands with Skua's part behind the common one, see rdma/skua-abi.h. */
#ifndef SKUA_PROVIDER_ABI_H
#define SKUA_PROVIDER_ABI_H

#include <infiniband/kern-abi.h>
#include <rdma/skua-abi.h>
#include <kernel-abi/skua-abi.h>

DECLARE_DRV_CMD(skua_cmd_alloc_ucontext, IB_USER_VERBS_CMD_GET_CONTEXT,
		empty, skua_alloc_ucontext_resp);
DECLARE_DRV_CMD(skua_cmd_alloc_pd, IB_USER_VERBS_CMD_ALLOC_PD,
		empty, skua_alloc_pd_resp);
DECLARE_DRV_CMD(skua_cmd_create_ah, IB_USER_VERBS_CMD_CREATE_AH,
		empty, skua_create_ah_resp);
DECLARE_DRV_CMD(skua_cmd_create_cq, IB_USER_VERBS_CMD_CREATE_CQ,
		skua_create_cq_req, skua_create_cq_resp);
DECLARE_DRV_CMD(skua_cmd_resize_cq, IB_USER_VERBS_CMD_RESIZE_CQ,
		skua_resize_cq_req, skua_resize_cq_resp);
DECLARE_DRV_CMD(skua_cmd_create_qp, IB_USER_VERBS_CMD_CREATE_QP,
		skua_create_qp_req, skua_create_qp_resp);
DECLARE_DRV_CMD(skua_cmd_create_srq, IB_USER_VERBS_CMD_CREATE_SRQ,
		skua_create_srq_req, skua_create_srq_resp);
DECLARE_DRV_CMD(skua_cmd_create_xsrq, IB_USER_VERBS_CMD_CREATE_XSRQ,
		skua_create_srq_req, skua_create_srq_resp);
DECLARE_DRV_CMD(skua_cmd_modify_srq, IB_USER_VERBS_CMD_MODIFY_SRQ,
		skua_modify_srq_req, empty);

DECLARE_DRV_CMD(skua_cmd_query_device, IB_USER_VERBS_EX_CMD_QUERY_DEVICE,
		empty, skua_query_device_resp);
DECLARE_DRV_CMD(skua_cmd_modify_qp_ex, IB_USER_VERBS_EX_CMD_MODIFY_QP,
		skua_modify_qp_req, empty);
DECLARE_DRV_CMD(skua_cmd_create_wq, IB_USER_VERBS_EX_CMD_CREATE_WQ,
		skua_create_wq_req, empty);
DECLARE_DRV_CMD(skua_cmd_create_qp_ex, IB_USER_VERBS_EX_CMD_CREATE_QP,
		skua_create_qp_req, skua_create_qp_resp);
DECLARE_DRV_CMD(skua_cmd_create_rss_qp, IB_USER_VERBS_EX_CMD_CREATE_QP,
		skua_create_rss_qp_req, empty);

#endif /* SKUA_PROVIDER_ABI_H */
