// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Memory regions: of a program, of a dma-buf, on demand. The kernel judges all of them. */
#include "kernel.h"
#include "objects.h"

/* What a region may be is the kernel's to say: windows may be asked for, and no bytes at all. */
static void test_every_region_is_the_kernels_to_judge(void **state)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |
			   IBV_ACCESS_RELAXED_ORDERING;
	struct ibv_mr *mr = skua_reg_mr(&pd.ibv_pd, &info, 0, 0x1234, access);

	assert_non_null(mr);
	assert_ptr_equal(mr_req.addr, &info);
	assert_int_equal(mr_req.length, 0);
	assert_int_equal(mr_req.hca_va, 0x1234);
	assert_int_equal(mr_req.access, access);
	answer = EBUSY;
	assert_int_equal(skua_dereg_mr(verbs_get_mr(mr)), EBUSY);
	answer = 0;
	assert_int_equal(skua_dereg_mr(verbs_get_mr(mr)), 0);

	answer = EINVAL;
	assert_null(skua_reg_mr(&pd.ibv_pd, NULL, 1, 0, 0));
	assert_int_equal(errno, EINVAL);
}

/* A dma-buf's, too: what there is of a descriptor, only the kernel knows. */
static void test_a_dmabuf_is_the_kernels_to_judge(void **state)
{
	struct ibv_mr *mr = skua_reg_dmabuf_mr(&pd.ibv_pd, 0x3100, 0x5000, 0x7100, 9, IBV_ACCESS_LOCAL_WRITE);

	assert_non_null(mr);
	assert_int_equal(verbs_get_mr(mr)->mr_type, IBV_MR_TYPE_DMABUF_MR);
	assert_ptr_equal(dmabuf_req.pd, &pd.ibv_pd);
	assert_int_equal(dmabuf_req.offset, 0x3100);
	assert_int_equal(dmabuf_req.length, 0x5000);
	assert_int_equal(dmabuf_req.iova, 0x7100);
	assert_int_equal(dmabuf_req.fd, 9);
	assert_int_equal(dmabuf_req.access, IBV_ACCESS_LOCAL_WRITE);
	assert_int_equal(skua_dereg_mr(verbs_get_mr(mr)), 0);
	answer = EBADF;
	assert_null(skua_reg_dmabuf_mr(&pd.ibv_pd, 0, 0, 0, -1, 0));
	assert_int_equal(errno, EBADF);
	assert_int_equal(dmabuf_req.fd, -1);
	answer = 0;
}

/* So is what becomes of one. Its address is the program's. */
static void test_regions_change(void **state)
{
	struct ibv_mr *mr = skua_reg_mr(&pd.ibv_pd, &info, 8, 0x1234, 0);

	assert_int_equal(skua_rereg_mr(verbs_get_mr(mr), 7, &pd.ibv_pd, db_page, 64, IBV_ACCESS_REMOTE_READ), 0);
	assert_ptr_equal(rereg_req.vmr, verbs_get_mr(mr));
	assert_int_equal(rereg_req.flags, 7);
	assert_ptr_equal(rereg_req.addr, db_page);
	assert_int_equal(rereg_req.hca_va, (uintptr_t)db_page);
	assert_int_equal(rereg_req.length, 64);
	assert_int_equal(rereg_req.access, IBV_ACCESS_REMOTE_READ);
	assert_ptr_equal(rereg_req.pd, &pd.ibv_pd);
	answer = EBUSY;
	assert_int_equal(skua_rereg_mr(verbs_get_mr(mr), 2, NULL, NULL, 0, 0), EBUSY);
	answer = 0;
	assert_int_equal(skua_dereg_mr(verbs_get_mr(mr)), 0);
}

/* So are all addresses on demand, and what is known of them before. */
static void test_memory_on_demand_is_the_kernels(void **state)
{
	struct ibv_mr *mr = skua_reg_mr(&pd.ibv_pd, NULL, SIZE_MAX, 0, IBV_ACCESS_ON_DEMAND);
	struct ibv_sge sge[3];

	assert_non_null(mr);
	assert_null(mr_req.addr);
	assert_true(mr_req.length == SIZE_MAX);
	assert_int_equal(mr_req.access, IBV_ACCESS_ON_DEMAND);
	assert_int_equal(skua_dereg_mr(verbs_get_mr(mr)), 0);

	assert_int_equal(skua_advise_mr(&pd.ibv_pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH, sge, 3), 0);
	assert_int_equal(advice_req.advice, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE);
	assert_int_equal(advice_req.flags, IBV_ADVISE_MR_FLAG_FLUSH);
	assert_ptr_equal(advice_req.sg_list, sge);
	assert_int_equal(advice_req.num_sge, 3);
	answer = EPERM;
	assert_int_equal(skua_advise_mr(&pd.ibv_pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, sge, 1), EPERM);
	answer = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_every_region_is_the_kernels_to_judge),
		T(test_a_dmabuf_is_the_kernels_to_judge),
		T(test_regions_change),
		T(test_memory_on_demand_is_the_kernels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
