// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Device memory: its commands, copies, imports, and regions of it. */
#include "kernel.h"
#include "objects.h"

static int setup_dm(void **state)
{
	dm_copies = 0;
	return setup(state);
}

static struct ibv_dm *alloc(size_t length)
{
	struct ibv_alloc_dm_attr attr = { .length = length, .log_align_req = 6 };

	return skua_alloc_dm(&ctx.vctx.context, &attr);
}

static void test_alloc_and_free(void **state)
{
	struct ibv_alloc_dm_attr unknown = { .length = 64, .comp_mask = 1 };
	struct ibv_dm *dm = alloc(4096);

	assert_non_null(dm);
	assert_int_equal(dm_attr.length, 4096);
	assert_int_equal(dm_attr.log_align_req, 6);
	answer = EBUSY;
	assert_int_equal(skua_free_dm(dm), EBUSY);
	answer = 0;
	assert_int_equal(skua_free_dm(dm), 0);

	answer = ENOMEM;
	assert_null(alloc(64));
	assert_int_equal(errno, ENOMEM);
	answer = 0;
	assert_null(skua_alloc_dm(&ctx.vctx.context, &unknown));
	assert_int_equal(errno, EOPNOTSUPP);
}

static void test_copies(void **state)
{
	struct ibv_dm *dm = alloc(4096);
	uint8_t bytes[64];

	assert_int_equal(ibv_memcpy_to_dm(dm, 100, bytes, 64), 0);
	assert_ptr_equal(dm_copy.context, &ctx.vctx.context);
	assert_int_equal(dm_copy.handle, DM_HANDLE);
	assert_int_equal(dm_copy.req.addr, (uintptr_t)bytes);
	assert_int_equal(dm_copy.req.offset, 100);
	assert_int_equal(dm_copy.req.length, 64);
	assert_int_equal(dm_copy.req.direction, SKUA_DM_COPY_TO_DM);
	assert_int_equal(dm_copy.req.comp_mask, 0);
	assert_int_equal(ibv_memcpy_from_dm(bytes + 4, dm, 1ull << 40, 8), 0);
	assert_int_equal(dm_copy.req.addr, (uintptr_t)bytes + 4);
	assert_int_equal(dm_copy.req.offset, 1ull << 40);
	assert_int_equal(dm_copy.req.length, 8);
	assert_int_equal(dm_copy.req.direction, SKUA_DM_COPY_FROM_DM);
	assert_int_equal(dm_copies, 2);
	/* Of what it cannot see that the kernel writes. */
	assert_ptr_equal(memcheck.addr, bytes + 4);
	assert_int_equal(memcheck.length, 8);
	answer = EINVAL;
	memcheck.addr = NULL;
	assert_int_equal(ibv_memcpy_from_dm(bytes, dm, 0, 8), EINVAL);
	assert_int_equal(ibv_memcpy_to_dm(dm, 0, bytes, 8), EINVAL);
	assert_null(memcheck.addr);
	answer = 0;
	assert_int_equal(skua_free_dm(dm), 0);
}

/* An import asks the kernel whether the DM exists, and leaves it to its owner. */
static void test_import(void **state)
{
	struct ibv_dm *dm = skua_import_dm(&ctx.vctx.context, DM_HANDLE);
	uint8_t bytes[8];

	assert_non_null(dm);
	assert_int_equal(dm_copies, 1);
	assert_ptr_equal(dm_copy.context, &ctx.vctx.context);
	assert_int_equal(dm_copy.handle, DM_HANDLE);
	assert_int_equal(dm_copy.req.length, 0);
	assert_int_equal(dm->handle, DM_HANDLE);
	assert_ptr_equal(dm->context, &ctx.vctx.context);
	assert_int_equal(ibv_memcpy_from_dm(bytes, dm, 0, 8), 0);
	assert_int_equal(dm_copies, 2);
	assert_int_equal(dm_copy.handle, DM_HANDLE);
	skua_unimport_dm(dm);
	answer = ENOENT;
	assert_null(skua_import_dm(&ctx.vctx.context, DM_HANDLE));
	assert_int_equal(errno, ENOENT);
}

static void test_regions(void **state)
{
	struct ibv_dm *dm = alloc(4096);
	struct ibv_mr *mr = skua_reg_dm_mr(&pd.ibv_pd, dm, 8, 0, IBV_ACCESS_ZERO_BASED);

	assert_non_null(mr);
	assert_ptr_equal(dm_mr_req.pd, &pd.ibv_pd);
	assert_ptr_equal(&dm_mr_req.dm->dm, dm);
	assert_int_equal(dm_mr_req.offset, 8);
	assert_int_equal(dm_mr_req.length, 0);
	assert_int_equal(dm_mr_req.access, IBV_ACCESS_ZERO_BASED);
	assert_int_equal(skua_dereg_mr(verbs_get_mr(mr)), 0);
	answer = EINVAL;
	assert_null(skua_reg_dm_mr(&pd.ibv_pd, dm, 0, 8, 0));
	assert_int_equal(errno, EINVAL);
	answer = 0;
	assert_int_equal(skua_free_dm(dm), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_alloc_and_free, setup_dm, teardown),
		cmocka_unit_test_setup_teardown(test_copies, setup_dm, teardown),
		cmocka_unit_test_setup_teardown(test_import, setup_dm, teardown),
		cmocka_unit_test_setup_teardown(test_regions, setup_dm, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
