// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Memory regions: the kernel does the work. */
#include <errno.h>
#include <stdlib.h>

#include "skua.h"

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

int skua_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *ibv_pd, void *addr, size_t length,
		  int access)
{
	struct ib_uverbs_rereg_mr_resp resp;
	struct ibv_rereg_mr cmd = {};

	return ibv_cmd_rereg_mr(vmr, flags, addr, length, (uintptr_t)addr, access, ibv_pd, &cmd,
				sizeof(cmd), &resp, sizeof(resp));
}

struct ibv_mr *skua_reg_dm_mr(struct ibv_pd *ibv_pd, struct ibv_dm *ibv_dm, uint64_t offset,
			      size_t length, unsigned int access)
{
	struct verbs_mr *vmr;
	int err;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;

	err = ibv_cmd_reg_dm_mr(ibv_pd, container_of(ibv_dm, struct verbs_dm, dm), offset, length,
				access, vmr, NULL);
	if (err) {
		free(vmr);
		errno = err;
		return NULL;
	}
	return &vmr->ibv_mr;
}

struct ibv_mr *skua_reg_dmabuf_mr(struct ibv_pd *ibv_pd, uint64_t offset, size_t length,
				  uint64_t iova, int fd, int access)
{
	struct verbs_mr *vmr;
	int err;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;

	err = ibv_cmd_reg_dmabuf_mr(ibv_pd, offset, length, iova, fd, access, vmr, NULL);
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

int skua_advise_mr(struct ibv_pd *ibv_pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		   struct ibv_sge *sg_list, uint32_t num_sge)
{
	return ibv_cmd_advise_mr(ibv_pd, advice, flags, sg_list, num_sge);
}

struct ibv_mr *skua_import_mr(struct ibv_pd *ibv_pd, uint32_t handle)
{
	struct verbs_mr *vmr;
	int err;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;

	err = ibv_cmd_query_mr(ibv_pd, vmr, handle);
	if (err) {
		free(vmr);
		errno = err;
		return NULL;
	}
	return &vmr->ibv_mr;
}

void skua_unimport_mr(struct ibv_mr *ibv_mr)
{
	free(verbs_get_mr(ibv_mr));
}
