// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Device memory. It is not mapped: the kernel copies, by commands of the device. */
#include <errno.h>
#include <stdlib.h>

#include <infiniband/cmd_ioctl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <valgrind/memcheck.h>

#include "skua.h"

static int skua_copy_dm(struct ibv_dm *ibv_dm, uint64_t offset, const void *addr, size_t length,
			enum skua_dm_copy_direction direction)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_DM, SKUA_IB_METHOD_DM_COPY, 2);
	struct skua_dm_copy_req req = {
		.addr = (uintptr_t)addr,
		.offset = offset,
		.length = length,
		.direction = direction,
	};

	fill_attr_in_obj(cmd, SKUA_IB_ATTR_DM_COPY_HANDLE, ibv_dm->handle);
	fill_attr_in_ptr(cmd, SKUA_IB_ATTR_DM_COPY_REQ, &req);
	return execute_ioctl(ibv_dm->context, cmd);
}

static int skua_memcpy_to_dm(struct ibv_dm *ibv_dm, uint64_t offset, const void *addr, size_t length)
{
	return skua_copy_dm(ibv_dm, offset, addr, length, SKUA_DM_COPY_TO_DM);
}

static int skua_memcpy_from_dm(void *addr, struct ibv_dm *ibv_dm, uint64_t offset, size_t length)
{
	int err = skua_copy_dm(ibv_dm, offset, addr, length, SKUA_DM_COPY_FROM_DM);

	/* The request names the memory, and valgrind does not look into requests. */
	if (!err)
		VALGRIND_MAKE_MEM_DEFINED(addr, length);
	return err;
}

static struct verbs_dm *skua_new_dm(void)
{
	struct verbs_dm *dm;

	dm = calloc(1, sizeof(*dm));
	if (!dm)
		return NULL;

	dm->dm.memcpy_to_dm = skua_memcpy_to_dm;
	dm->dm.memcpy_from_dm = skua_memcpy_from_dm;
	return dm;
}

struct ibv_dm *skua_alloc_dm(struct ibv_context *ibv_ctx, struct ibv_alloc_dm_attr *attr)
{
	struct verbs_dm *dm;
	int err;

	if (attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	dm = skua_new_dm();
	if (!dm)
		return NULL;

	err = ibv_cmd_alloc_dm(ibv_ctx, attr, dm, NULL);
	if (err) {
		free(dm);
		errno = err;
		return NULL;
	}
	return &dm->dm;
}

int skua_free_dm(struct ibv_dm *ibv_dm)
{
	struct verbs_dm *dm = container_of(ibv_dm, struct verbs_dm, dm);
	int err;

	err = ibv_cmd_free_dm(dm);
	if (err)
		return err;

	free(dm);
	return 0;
}

struct ibv_dm *skua_import_dm(struct ibv_context *ibv_ctx, uint32_t handle)
{
	struct verbs_dm *dm;
	int err;

	dm = skua_new_dm();
	if (!dm)
		return NULL;

	dm->handle = handle;
	dm->dm.handle = handle;
	dm->dm.comp_mask = IBV_DM_MASK_HANDLE;
	dm->dm.context = ibv_ctx;
	/* Is there such a DM? */
	err = skua_copy_dm(&dm->dm, 0, NULL, 0, SKUA_DM_COPY_FROM_DM);
	if (err) {
		free(dm);
		errno = err;
		return NULL;
	}
	return &dm->dm;
}

void skua_unimport_dm(struct ibv_dm *ibv_dm)
{
	free(container_of(ibv_dm, struct verbs_dm, dm));
}
