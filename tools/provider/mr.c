// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Protection domains and memory regions: the kernel does the work. */
#include <errno.h>
#include <stdlib.h>

#include "skua.h"
#include "skua-abi.h"

struct ibv_pd *skua_alloc_pd(struct ibv_context *ibv_ctx)
{
	struct skua_cmd_alloc_pd_resp resp = {};
	struct ibv_alloc_pd cmd = {};
	struct skua_pd *pd;
	int err;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;

	err = ibv_cmd_alloc_pd(ibv_ctx, &pd->ibv_pd, &cmd, sizeof(cmd), &resp.ibv_resp,
			       sizeof(resp));
	if (err) {
		free(pd);
		errno = err;
		return NULL;
	}
	pd->pdn = resp.pdn;
	return &pd->ibv_pd;
}

int skua_dealloc_pd(struct ibv_pd *ibv_pd)
{
	int err;

	err = ibv_cmd_dealloc_pd(ibv_pd);
	if (err)
		return err;

	free(to_skua_pd(ibv_pd));
	return 0;
}

struct ibv_mr *skua_reg_mr(struct ibv_pd *ibv_pd, void *addr, size_t length, uint64_t hca_va,
			   int access)
{
	struct ib_uverbs_reg_mr_resp resp = {};
	struct ibv_reg_mr cmd = {};
	struct verbs_mr *vmr;
	int err;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;

	err = ibv_cmd_reg_mr(ibv_pd, addr, length, hca_va, access, vmr, &cmd, sizeof(cmd),
			     &resp, sizeof(resp));
	if (err) {
		free(vmr);
		errno = err;
		return NULL;
	}
	return &vmr->ibv_mr;
}

int skua_dereg_mr(struct verbs_mr *vmr)
{
	int err;

	err = ibv_cmd_dereg_mr(vmr);
	if (err)
		return err;

	free(vmr);
	return 0;
}
