/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What differs between the versions of rdma-core that the provider is built in. CMakeLists.txt
 * finds out which it is. ibv_cmd_create_cq_ex(), whose prototype moved, too, is not used at all:
 * the plain command carries all that Skua says.
 */
#ifndef SKUA_COMPAT_H
#define SKUA_COMPAT_H

#include <infiniband/driver.h>

static inline int skua_cmd_get_context(struct verbs_context *vctx, struct ibv_get_context *cmd,
				       size_t cmd_size, struct ib_uverbs_get_context_resp *resp,
				       size_t resp_size)
{
#ifdef SKUA_GET_CONTEXT_FD_ARR
	return ibv_cmd_get_context(vctx, cmd, cmd_size, NULL, resp, resp_size);
#else
	return ibv_cmd_get_context(vctx, cmd, cmd_size, resp, resp_size);
#endif
}

static inline int skua_cmd_create_qp_ex2(struct ibv_context *ctx, struct verbs_qp *vqp,
					 struct ibv_qp_init_attr_ex *attr,
					 struct ibv_create_qp_ex *cmd, size_t cmd_size,
					 struct ib_uverbs_ex_create_qp_resp *resp, size_t resp_size)
{
#ifdef SKUA_CREATE_QP_EX2_DRIVER
	return ibv_cmd_create_qp_ex2(ctx, vqp, attr, cmd, cmd_size, resp, resp_size, NULL);
#else
	return ibv_cmd_create_qp_ex2(ctx, vqp, attr, cmd, cmd_size, resp, resp_size);
#endif
}

#endif /* SKUA_COMPAT_H */
