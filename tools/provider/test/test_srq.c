// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Shared receive queues, with the kernel replaced by doubles that keep what they were told: sizes, addresses, rings
 * that take the place of others, and entries that complete in any order.
 */
#include <errno.h>

#include "cmocka_all.h"

#include "../skua.h"
#include "../skua-abi.h"

static struct skua_device device = { .page_size = 4096 };
static struct skua_context ctx = { .caps = { .max_recv_sge = 30, .max_srq_wr = 1024 } };
static struct skua_pd pd = { .users = 1 };

/* What the kernel was told, and what it answers. */
static struct skua_create_srq_req made;
static struct skua_modify_srq_req changed;
static int answer;
static int dontfork;			/* ranges kept from children */

int ibv_dontfork_range(void *base, size_t size)
{
	dontfork++;
	return 0;
}

int ibv_dofork_range(void *base, size_t size)
{
	dontfork--;
	return 0;
}

int ibv_cmd_create_srq(struct ibv_pd *ibv_pd, struct ibv_srq *srq, struct ibv_srq_init_attr *attr,
		       struct ibv_create_srq *cmd, size_t cmd_size,
		       struct ib_uverbs_create_srq_resp *resp, size_t resp_size)
{
	struct skua_cmd_create_srq *req = (void *)cmd;

	assert_int_equal(cmd_size, sizeof(*req));
	made = req->drv_payload;
	srq->context = ibv_pd->context;
	return answer;
}

int ibv_cmd_create_srq_ex(struct ibv_context *context, struct verbs_srq *srq, struct ibv_srq_init_attr_ex *attr,
			  struct ibv_create_xsrq *cmd, size_t cmd_size, struct ib_uverbs_create_srq_resp *resp,
			  size_t resp_size)
{
	fail_msg("no XRC here");
	return EINVAL;
}

int ibv_cmd_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int attr_mask,
		       struct ibv_modify_srq *cmd, size_t cmd_size)
{
	memset(&changed, 0, sizeof(changed));
	if (cmd_size == sizeof(struct skua_cmd_modify_srq))
		changed = ((struct skua_cmd_modify_srq *)cmd)->drv_payload;
	return answer;
}

int ibv_cmd_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, struct ibv_query_srq *cmd,
		      size_t cmd_size)
{
	return answer;
}

int ibv_cmd_destroy_srq(struct ibv_srq *srq)
{
	return answer;
}

void skua_cq_purge_srq(struct skua_cq *cq, const struct skua_srq *srq)
{
	fail_msg("no XRC here");
}

void skua_pd_put(struct skua_pd *of)
{
	of->users--;
}

static int setup(void **state)
{
	ctx.vctx.context.device = &device.vdev.device;
	pd.ibv_pd.context = &ctx.vctx.context;
	ctx.caps.max_srq_wr = 1024;
	answer = 0;
	return 0;
}

static int teardown(void **state)
{
	return dontfork || pd.users != 1;
}

static struct ibv_srq *make(uint32_t max_wr, uint32_t max_sge, struct ibv_srq_attr *got)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = max_wr, .max_sge = max_sge } };
	struct ibv_srq *srq = skua_create_srq(&pd.ibv_pd, &attr);

	*got = attr.attr;
	return srq;
}

static int post(struct ibv_srq *srq, uint64_t wr_id)
{
	struct ibv_recv_wr *bad, wr = { .wr_id = wr_id };

	return skua_post_srq_recv(srq, &wr, &bad);
}

static int resize(struct ibv_srq *srq, uint32_t max_wr)
{
	struct ibv_srq_attr attr = { .max_wr = max_wr };

	return skua_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);
}

/* The cookie of the entry with this index, where the kernel was told that the ring is. */
static uint32_t cookie(uint64_t ring, uint32_t size, uint32_t index)
{
	const struct skua_rqe *rqe = (void *)(uintptr_t)(ring + ((uint64_t)(index & (size - 1)) << made.log_stride));

	return le32toh(rqe->cookie);
}

static void test_the_kernel_learns_where_it_is(void **state)
{
	struct ibv_srq_attr attr;
	struct ibv_srq *srq = make(100, 3, &attr);

	assert_non_null(srq);
	assert_int_equal(attr.max_wr, 128);
	assert_in_range(attr.max_sge, 3, 30);
	assert_int_equal(made.log_size, 7);
	assert_true(sizeof(struct skua_rqe) + attr.max_sge * sizeof(struct skua_sge) <= 1u << made.log_stride);
	assert_int_equal(made.buf_addr % 4096, 0);
	assert_int_equal(made.dbr_addr % 64, 0);
	assert_int_equal(made.srq_handle, (uintptr_t)to_skua_srq(srq));
	for (uint64_t i = 0; i < 128; i++)
		assert_int_equal(post(srq, i), 0);
	assert_int_equal(post(srq, 128), ENOMEM);
	assert_int_equal(le32toh(((struct skua_dbr *)(uintptr_t)made.dbr_addr)->pi), 128);
	assert_int_equal(skua_destroy_srq(srq), 0);
}

/* No memory is taken for what the device does not have. */
static void test_limits(void **state)
{
	static const uint32_t wrs[] = { 0, 1025, 1u << 30, UINT32_MAX };
	struct ibv_srq_attr attr;
	struct ibv_srq *srq;

	for (unsigned int i = 0; i < 4; i++) {
		assert_null(make(wrs[i], 1, &attr));
		assert_int_equal(errno, EINVAL);
	}
	assert_null(make(1, 31, &attr));
	assert_int_equal(errno, EINVAL);
	srq = make(1024, 30, &attr);
	assert_non_null(srq);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(resize(srq, wrs[i]), EINVAL);
	answer = EBUSY;
	assert_int_equal(skua_destroy_srq(srq), EBUSY);
	answer = 0;
	assert_int_equal(skua_destroy_srq(srq), 0);
	ctx.caps.max_srq_wr = 0;
	assert_null(make(1, 1, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	ctx.caps.max_srq_wr = 1024;
	answer = ENOMEM;
	assert_null(make(1, 1, &attr));
	assert_int_equal(errno, ENOMEM);
}

/* One completion frees one slot, whosever it is, and the cookie of that entry. */
static void test_entries_complete_in_any_order(void **state)
{
	struct ibv_srq_attr attr;
	struct ibv_srq *srq = make(4, 1, &attr);

	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(post(srq, 100 + i), 0);
	for (uint32_t i = 4; i < 1000; i++) {
		uint32_t last = cookie(made.buf_addr, 4, i - 1), other;

		/* The one that was posted last: those before it stay. */
		assert_int_equal(skua_srq_retire(to_skua_srq(srq), last), 100 + i - 1);
		assert_int_equal(post(srq, 100 + i), 0);
		assert_int_equal(post(srq, 0), ENOMEM);
		other = cookie(made.buf_addr, 4, i);
		assert_int_equal(other, last);
	}
	assert_int_equal(skua_destroy_srq(srq), 0);
}

static void test_another_ring_has_the_entries(void **state)
{
	struct ibv_srq_attr attr;
	struct ibv_srq *srq = make(8, 1, &attr);
	uint32_t cookies[8];

	for (uint64_t i = 0; i < 8; i++)
		assert_int_equal(post(srq, i), 0);
	for (uint32_t i = 0; i < 3; i++)
		skua_srq_retire(to_skua_srq(srq), cookie(made.buf_addr, 8, i));
	for (uint32_t i = 3; i < 8; i++)
		cookies[i] = cookie(made.buf_addr, 8, i);
	assert_int_equal(resize(srq, 4), EINVAL);
	/* The kernel refuses: all is as it was. */
	answer = EFAULT;
	assert_int_equal(resize(srq, 20), EFAULT);
	answer = 0;
	for (uint32_t i = 3; i < 8; i++)
		assert_int_equal(cookie(made.buf_addr, 8, i), cookies[i]);
	assert_int_equal(resize(srq, 20), 0);
	assert_int_equal(changed.log_size, 5);
	assert_int_not_equal(changed.buf_addr, made.buf_addr);
	for (uint32_t i = 3; i < 8; i++)
		assert_int_equal(cookie(changed.buf_addr, 32, i), cookies[i]);
	/* As many as it says now, each with a cookie of its own. */
	for (uint64_t i = 5; i < 32; i++)
		assert_int_equal(post(srq, 1000 + i), 0);
	assert_int_equal(post(srq, 0), ENOMEM);
	for (uint32_t i = 3; i < 3 + 32; i++)
		for (uint32_t j = 3; j < i; j++)
			assert_int_not_equal(cookie(changed.buf_addr, 32, i), cookie(changed.buf_addr, 32, j));
	assert_int_equal(skua_srq_retire(to_skua_srq(srq), cookies[7]), 7);
	assert_int_equal(skua_srq_retire(to_skua_srq(srq), cookie(changed.buf_addr, 32, 34)), 1031);
	assert_int_equal(skua_destroy_srq(srq), 0);
}

/* The limit alone is the kernel's. */
static void test_the_limit_takes_no_ring(void **state)
{
	struct ibv_srq_attr attr;
	struct ibv_srq *srq = make(8, 1, &attr);

	attr.srq_limit = 4;
	assert_int_equal(skua_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
	assert_int_equal(changed.buf_addr, 0);
	answer = EINVAL;
	assert_int_equal(skua_modify_srq(srq, &attr, IBV_SRQ_LIMIT), EINVAL);
	answer = 0;
	assert_int_equal(skua_destroy_srq(srq), 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_the_kernel_learns_where_it_is),
		T(test_limits),
		T(test_entries_complete_in_any_order),
		T(test_another_ring_has_the_entries),
		T(test_the_limit_takes_no_ring),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
