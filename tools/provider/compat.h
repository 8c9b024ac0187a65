/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What differs between the versions of rdma-core that the provider is built in. CMakeLists.txt
 * finds out which it is. Commands whose prototypes moved (ibv_cmd_create_cq_ex(),
 * ibv_cmd_create_qp_ex2()) are not used at all: the plain ones carry all that Skua says.
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

#endif /* SKUA_COMPAT_H */
