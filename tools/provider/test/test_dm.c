// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Device memory, with the kernel replaced by doubles that keep what they were told. */
#include "cmocka_all.h"

#include <infiniband/cmd_ioctl.h>
#include <rdma/ib_user_ioctl_cmds.h>

#include "../skua.h"

#define HANDLE	77

static struct ibv_context context;
static struct skua_pd pd;
static int answer;

/* What the kernel was told. */
static struct skua_dm_copy_req copy_req;
static struct { uint32_t handle; unsigned int calls; } copy;
static struct ibv_alloc_dm_attr alloc_attr;
static struct { struct verbs_dm *dm; uint64_t offset; size_t length; unsigned int access; } mr_req;

int execute_ioctl(struct ibv_context *ibv_ctx, struct ibv_command_buffer *cmd)
{
	const struct ib_uverbs_attr *attrs = cmd->hdr.attrs;

	assert_ptr_equal(ibv_ctx, &context);
	assert_int_equal(cmd->hdr.object_id, UVERBS_OBJECT_DM);
	assert_int_equal(cmd->hdr.method_id, SKUA_IB_METHOD_DM_COPY);
	assert_int_equal(cmd->next_attr - attrs, 2);
	assert_int_equal(attrs[0].attr_id, SKUA_IB_ATTR_DM_COPY_HANDLE);
	assert_int_equal(attrs[1].attr_id, SKUA_IB_ATTR_DM_COPY_REQ);
	assert_int_equal(attrs[1].len, sizeof(copy_req));
	copy.handle = (uint32_t)attrs[0].data;
	copy.calls++;
	memcpy(&copy_req, (void *)(uintptr_t)attrs[1].data, sizeof(copy_req));
	return answer;
}

int ibv_cmd_alloc_dm(struct ibv_context *ibv_ctx, const struct ibv_alloc_dm_attr *attr, struct verbs_dm *dm,
		     struct ibv_command_buffer *link)
{
	assert_null(link);
	alloc_attr = *attr;
	dm->handle = HANDLE;
	dm->dm.handle = HANDLE;
	dm->dm.context = ibv_ctx;
	return answer;
}

int ibv_cmd_free_dm(struct verbs_dm *dm)
{
	assert_int_equal(dm->handle, HANDLE);
	return answer;
}

int ibv_cmd_reg_dm_mr(struct ibv_pd *ibv_pd, struct verbs_dm *dm, uint64_t offset, size_t length, unsigned int access,
		      struct verbs_mr *vmr, struct ibv_command_buffer *link)
{
	assert_ptr_equal(ibv_pd, &pd.ibv_pd);
	assert_null(link);
	mr_req.dm = dm;
	mr_req.offset = offset;
	mr_req.length = length;
	mr_req.access = access;
	return answer;
}

int ibv_cmd_reg_mr(struct ibv_pd *ibv_pd, void *addr, size_t length, uint64_t hca_va, int access,
		   struct verbs_mr *vmr, struct ibv_reg_mr *cmd, size_t cmd_size,
		   struct ib_uverbs_reg_mr_resp *resp, size_t resp_size)
{
	return ENOSYS;
}

int ibv_cmd_rereg_mr(struct verbs_mr *vmr, uint32_t flags, void *addr, size_t length, uint64_t hca_va, int access,
		     struct ibv_pd *ibv_pd, struct ibv_rereg_mr *cmd, size_t cmd_sz, struct ib_uverbs_rereg_mr_resp *resp,
		     size_t resp_sz)
{
	return ENOSYS;
}

int ibv_cmd_query_mr(struct ibv_pd *ibv_pd, struct verbs_mr *vmr, uint32_t mr_handle)
{
	return ENOSYS;
}

int ibv_cmd_advise_mr(struct ibv_pd *ibv_pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *sg_list,
		      uint32_t num_sge)
{
	return ENOSYS;
}

int ibv_cmd_reg_dmabuf_mr(struct ibv_pd *ibv_pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access,
			  struct verbs_mr *vmr, struct ibv_command_buffer *driver)
{
	return ENOSYS;
}

int ibv_cmd_dereg_mr(struct verbs_mr *vmr)
{
	return answer;
}

static int setup(void **state)
{
	answer = 0;
	copy.calls = 0;
	return 0;
}

static struct ibv_dm *alloc(size_t length)
{
	struct ibv_alloc_dm_attr attr = { .length = length, .log_align_req = 6 };

	return skua_alloc_dm(&context, &attr);
}

static void test_alloc_and_free(void **state)
{
	struct ibv_alloc_dm_attr unknown = { .length = 64, .comp_mask = 1 };
	struct ibv_dm *dm = alloc(4096);

	assert_non_null(dm);
	assert_int_equal(alloc_attr.length, 4096);
	assert_int_equal(alloc_attr.log_align_req, 6);
	answer = EBUSY;
	assert_int_equal(skua_free_dm(dm), EBUSY);
	answer = 0;
	assert_int_equal(skua_free_dm(dm), 0);

	answer = ENOMEM;
	assert_null(alloc(64));
	assert_int_equal(errno, ENOMEM);
	answer = 0;
	assert_null(skua_alloc_dm(&context, &unknown));
	assert_int_equal(errno, EOPNOTSUPP);
}

static void test_copies(void **state)
{
	struct ibv_dm *dm = alloc(4096);
	uint8_t bytes[64];

	assert_int_equal(ibv_memcpy_to_dm(dm, 100, bytes, 64), 0);
	assert_int_equal(copy.handle, HANDLE);
	assert_int_equal(copy_req.addr, (uintptr_t)bytes);
	assert_int_equal(copy_req.offset, 100);
	assert_int_equal(copy_req.length, 64);
	assert_int_equal(copy_req.direction, SKUA_DM_COPY_TO_DM);
	assert_int_equal(copy_req.comp_mask, 0);
	assert_int_equal(ibv_memcpy_from_dm(bytes + 4, dm, 1ull << 40, 8), 0);
	assert_int_equal(copy_req.addr, (uintptr_t)bytes + 4);
	assert_int_equal(copy_req.offset, 1ull << 40);
	assert_int_equal(copy_req.length, 8);
	assert_int_equal(copy_req.direction, SKUA_DM_COPY_FROM_DM);
	assert_int_equal(copy.calls, 2);
	answer = EINVAL;
	assert_int_equal(ibv_memcpy_from_dm(bytes, dm, 0, 8), EINVAL);
	assert_int_equal(ibv_memcpy_to_dm(dm, 0, bytes, 8), EINVAL);
	answer = 0;
	assert_int_equal(skua_free_dm(dm), 0);
}

/* An import asks the kernel whether the DM exists, and leaves it to its owner. */
static void test_import(void **state)
{
	struct ibv_dm *dm = skua_import_dm(&context, HANDLE);
	uint8_t bytes[8];

	assert_non_null(dm);
	assert_int_equal(copy.calls, 1);
	assert_int_equal(copy.handle, HANDLE);
	assert_int_equal(copy_req.length, 0);
	assert_int_equal(dm->handle, HANDLE);
	assert_ptr_equal(dm->context, &context);
	assert_int_equal(ibv_memcpy_from_dm(bytes, dm, 0, 8), 0);
	assert_int_equal(copy.calls, 2);
	assert_int_equal(copy.handle, HANDLE);
	skua_unimport_dm(dm);
	answer = ENOENT;
	assert_null(skua_import_dm(&context, HANDLE));
	assert_int_equal(errno, ENOENT);
}

static void test_regions(void **state)
{
	struct ibv_dm *dm = alloc(4096);
	struct ibv_mr *mr = skua_reg_dm_mr(&pd.ibv_pd, dm, 8, 0, IBV_ACCESS_ZERO_BASED);

	assert_non_null(mr);
	assert_ptr_equal(&mr_req.dm->dm, dm);
	assert_int_equal(mr_req.offset, 8);
	assert_int_equal(mr_req.length, 0);
	assert_int_equal(mr_req.access, IBV_ACCESS_ZERO_BASED);
	assert_int_equal(skua_dereg_mr(verbs_get_mr(mr)), 0);
	answer = EINVAL;
	assert_null(skua_reg_dm_mr(&pd.ibv_pd, dm, 0, 8, 0));
	assert_int_equal(errno, EINVAL);
	answer = 0;
	assert_int_equal(skua_free_dm(dm), 0);
}

#define T(f) cmocka_unit_test_setup(f, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_alloc_and_free),
		T(test_copies),
		T(test_import),
		T(test_regions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
