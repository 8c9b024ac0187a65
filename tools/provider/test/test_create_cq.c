// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Creating, resizing and arming CQs: sizes, addresses, limits, and what a CQ may be asked for. */
#include "kernel.h"
#include "objects.h"

static void test_cq_is_a_power_of_two(void **state)
{
	struct ibv_cq *cq = make_cq(100);

	assert_non_null(cq);
	assert_int_equal(cq->cqe, 128);
	assert_int_equal(cq_req.log_size, 7);
	assert_int_equal(cq_req.buf_addr % 4096, 0);
	assert_int_equal(cq_req.dbr_addr, cq_req.buf_addr + 128 * 64);
	assert_int_equal(skua_destroy_cq(cq), 0);
}

static void test_cq_limits(void **state)
{
	struct ibv_cq *cq;

	assert_null(make_cq(0));
	assert_int_equal(errno, EINVAL);
	assert_null(make_cq(-1));
	assert_null(make_cq(1025));
	assert_int_equal(errno, EINVAL);
	cq = make_cq(1024);
	assert_non_null(cq);
	skua_destroy_cq(cq);
	cq = make_cq(1);
	assert_int_equal(cq->cqe, 1);
	skua_destroy_cq(cq);
	answer = ENOMEM;
	assert_null(make_cq(10));
	assert_int_equal(errno, ENOMEM);
}

/* The record stays where the device knows it, and only the last ring is kept. */
static void test_cq_takes_another_ring(void **state)
{
	static const int wrong[] = { 0, -1, 1025, INT32_MAX };
	struct ibv_cq *cq = make_cq(16);
	uint64_t record = cq_req.dbr_addr;
	unsigned int i;

	for (i = 0; i < 4; i++)
		assert_int_equal(skua_resize_cq(cq, wrong[i]), EINVAL);
	/* Never less than a page of 64. */
	for (i = 0; i < 3; i++) {
		assert_int_equal(skua_resize_cq(cq, 1 + 31 * i), 0);
		assert_int_equal(resize_req.log_size, 6);
		assert_int_equal(resize_req.buf_addr % 4096, 0);
		assert_int_equal(cq->cqe, 64);
		assert_ptr_equal(to_skua_cq(cq)->ring.cqes, (void *)(uintptr_t)resize_req.buf_addr);
		assert_ptr_equal(to_skua_cq(cq)->ring.dbr, (void *)(uintptr_t)record);
		assert_int_equal(dontfork, 2);
	}
	answer = ENOMEM;
	assert_int_equal(skua_resize_cq(cq, 500), ENOMEM);
	assert_int_equal(to_skua_cq(cq)->ring.size, 64);
	assert_int_equal(dontfork, 2);
	answer = 0;
	assert_int_equal(skua_destroy_cq(cq), 0);
}

static void test_cq_ex_refuses_what_it_cannot(void **state)
{
	static const uint64_t not_served[] = {
		IBV_WC_EX_WITH_CVLAN, IBV_WC_EX_WITH_TM_INFO, 1ull << 40,
	};
	struct ibv_cq_init_attr_ex attr = { .cqe = 4, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_cq_ex *cq_ex;
	unsigned int i;

	cq_ex = skua_create_cq_ex(&ctx.vctx.context, &attr);
	assert_non_null(cq_ex);
	assert_null(cq_ex->read_completion_ts);
	assert_null(cq_ex->read_flow_tag);
	assert_null(cq_ex->read_cvlan);
	skua_destroy_cq(ibv_cq_ex_to_cq(cq_ex));

	for (i = 0; i < sizeof(not_served) / sizeof(not_served[0]); i++) {
		attr.wc_flags = not_served[i];
		errno = 0;
		assert_null(skua_create_cq_ex(&ctx.vctx.context, &attr));
		assert_int_equal(errno, EOPNOTSUPP);
	}
	attr.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_FLOW_TAG;
	attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
	attr.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN << 1;
	errno = 0;
	assert_null(skua_create_cq_ex(&ctx.vctx.context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	for (attr.flags = 0; attr.flags <= 3; attr.flags++) {
		cq_ex = skua_create_cq_ex(&ctx.vctx.context, &attr);
		assert_non_null(cq_ex);
		assert_non_null(cq_ex->read_completion_ts);
		assert_non_null(cq_ex->read_flow_tag);
		assert_null(cq_ex->read_byte_len);
		skua_destroy_cq(ibv_cq_ex_to_cq(cq_ex));
	}
}

/* Tags are told only where a device that strips them from frames of programs says so. */
static void test_cq_ex_of_a_device_that_strips_tags(void **state)
{
	static const struct { uint64_t features; bool served; } rows[] = {
		{ 1ull << SKUA_F_RAW_PACKET, false }, { 1ull << SKUA_F_STRIP_CVLAN, false },
		{ 1ull << SKUA_F_RAW_PACKET | 1ull << SKUA_F_STRIP_CVLAN, true },
	};
	struct ibv_cq_init_attr_ex attr = { .cqe = 4, .wc_flags = IBV_WC_EX_WITH_CVLAN };
	uint64_t features = ctx.caps.features;
	unsigned int i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ibv_cq_ex *cq_ex;

		ctx.caps.features = features | rows[i].features;
		errno = 0;
		cq_ex = skua_create_cq_ex(&ctx.vctx.context, &attr);
		assert_int_equal(!!cq_ex, rows[i].served);
		if (!cq_ex) {
			assert_int_equal(errno, EOPNOTSUPP);
			continue;
		}
		assert_non_null(cq_ex->read_cvlan);
		assert_null(cq_ex->read_flow_tag);
		skua_destroy_cq(ibv_cq_ex_to_cq(cq_ex));
	}
	ctx.caps.features = features;
}

/* The heap gives what others have left; a CQE of theirs would be one of ours. */
static void test_rings_begin_empty(void **state)
{
	for (int i = 0; i < 8; i++) {
		struct ibv_cq *cq = make_cq(1000);
		struct skua_buf *buf = &to_skua_cq(cq)->buf;
		uint8_t *bytes = buf->addr;

		assert_int_equal((uintptr_t)bytes % 4096, 0);
		assert_int_equal(buf->size % 4096, 0);
		for (size_t at = 0; at < buf->size; at++)
			assert_int_equal(bytes[at], 0);
		memset(bytes, 0xff, buf->size);
		skua_destroy_cq(cq);
	}
}

static void test_notify_rings_over_a_cqe(void **state)
{
	struct ibv_qp_cap cap = { .max_send_wr = 8 };
	struct ibv_cq *cq = make_cq(8);
	struct fake_cq dev = device_of(cq);
	struct ibv_qp *qp = make_qp(cq, cq, &cap);

	memset(db_page, 0, sizeof(db_page));
	assert_int_equal(skua_req_notify_cq(cq, 0), 0);
	assert_int_equal(db_page[SKUA_DB_CQ_ARM / 8], 0);
	complete(&dev, qp, SKUA_CQE_SEND);
	assert_true(fake_cq_evaluate(&dev));
	skua_cq_event(cq);
	assert_int_equal(skua_req_notify_cq(cq, 1), 0);
	assert_int_equal(le64toh(db_page[SKUA_DB_CQ_ARM / 8]), SKUA_DB(7, 0));
	skua_destroy_qp(qp);
	skua_destroy_cq(cq);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_cq_is_a_power_of_two),
		T(test_cq_limits),
		T(test_cq_takes_another_ring),
		T(test_cq_ex_refuses_what_it_cannot),
		T(test_cq_ex_of_a_device_that_strips_tags),
		T(test_rings_begin_empty),
		T(test_notify_rings_over_a_cqe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
