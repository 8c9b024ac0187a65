// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Memory windows: their WQEs, their keys, and what libibverbs answers. */
#include <skua/cmd.h>

#include "queues.h"

/* A QP of a device with windows. */
static void with_windows(uint64_t more)
{
	uint32_t opcodes = skua_op_mask(1 << SKUA_F_RC | 1 << SKUA_F_MW | more, IBV_QPT_RC);

	qp.opcodes = opcodes & ~SKUA_RARE_OPS;
	qp.rare_opcodes = opcodes & SKUA_RARE_OPS;
	qp.atomics = more >> SKUA_F_ATOMIC & 1;
	assert_true(skua_qp_fill_wr_ops(&qp, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_BIND_MW));
}

static struct ibv_mr window_mr = { .lkey = 0x1111, .rkey = 0x2222 };
static struct ibv_mw window = { .rkey = 0x5678ff, .type = IBV_MW_TYPE_2 };

static int post_bind(struct ibv_mw_bind_info part, bool by_calls)
{
	struct ibv_send_wr wr = {
		.wr_id = 0xfeed, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED,
		.sg_list = sges, .num_sge = 2,		/* of no meaning */
		.bind_mw = { &window, ibv_inc_rkey(window.rkey), part },
	};
	struct ibv_qp_ex *ex = &qp.vqp.qp_ex;

	if (!by_calls)
		return post(&wr);
	ex->wr_start(ex);
	ex->wr_id = 0xfeed;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ex->wr_bind_mw(ex, &window, ibv_inc_rkey(window.rkey), &part);
	return ex->wr_complete(ex);
}

/* MW-5: right to left, the segment of BIND_MW. */
static void test_a_window_is_bound(void **state)
{
	const struct skua_wqe_bind_mw *bind = (void *)(ctrl + 1);
	struct ibv_mw_bind_info part = {
		.mr = &window_mr, .addr = 0x8877665544332211, .length = 0x123456789a,
		.mw_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED,
	};
	uint32_t rights = SKUA_ACCESS_REMOTE_WRITE | SKUA_ACCESS_REMOTE_READ | SKUA_ACCESS_ZERO_BASED;

	for (unsigned int i = 0; i < 4; i++) {
		with_windows(i & 2 ? 1 << SKUA_F_ATOMIC : 0);
		assert_int_equal(post_bind(part, i & 1), 0);
		assert_int_equal(fake_sq_fetch(&qp.sq, i, wqe_copy), 1);
		assert_int_equal(ctrl->opcode, SKUA_WQE_BIND_MW);
		assert_int_equal(ctrl->flags, SKUA_WQE_SIGNALED);
		assert_int_equal(ctrl->num_sge, 0);
		assert_int_equal(ctrl->length, 0);
		assert_int_equal(ctrl->inv_key, 0);
		assert_int_equal(le32toh(bind->key), 0x567800);
		assert_int_equal(le32toh(bind->mr_key), 0x1111);
		assert_int_equal(le64toh(bind->addr), part.addr);
		assert_int_equal(le64toh(bind->length), part.length);
		assert_int_equal(le32toh(bind->access), rights | (i & 2 ? SKUA_ACCESS_REMOTE_ATOMIC : 0));
		assert_int_equal(bind->rsvd, 0);
		assert_int_equal(qp.sq.slots[le32toh(ctrl->cookie)].wr_id, 0xfeed);
		assert_int_equal(le32toh(qp.sq.dbr->pi), i + 1);
	}
	/* To nothing, with an MR or without. */
	part.length = 0;
	for (unsigned int i = 0; i < 4; i++) {
		part.mr = i & 2 ? &window_mr : NULL;
		assert_int_equal(post_bind(part, i & 1), 0);
		fake_sq_fetch(&qp.sq, 4 + i, wqe_copy);
		assert_int_equal(bind->mr_key, 0);
		assert_int_equal(bind->length, 0);
	}
}

static void test_binds_that_are_refused(void **state)
{
	struct ibv_mw_bind_info part = { .mr = &window_mr, .addr = 5, .length = 6 };

	assert_int_equal(post_bind(part, false), EINVAL);	/* without the feature */
	with_windows(0);
	for (unsigned int i = 0; i < 2; i++) {
		part.mw_access_flags = IBV_ACCESS_ON_DEMAND;
		assert_int_equal(post_bind(part, i), EINVAL);
		part.mw_access_flags = 0;
		part.mr = NULL;
		assert_int_equal(post_bind(part, i), EINVAL);
		part.mr = &window_mr;
	}
	assert_int_equal(qp.sq.pi, 0);
	for (unsigned int i = 0; i < MAX_WR; i++)
		assert_int_equal(post_bind(part, i & 1), 0);
	assert_int_equal(post_bind(part, false), ENOMEM);
	assert_int_equal(post_bind(part, true), ENOMEM);
}

/* MW-4: each gets another key, which is the window's even if the bind is flushed. */
static void test_type_1_gets_its_next_key(void **state)
{
	struct ibv_mw mw = { .rkey = 0x5678fe, .type = IBV_MW_TYPE_1 };
	struct ibv_mw_bind bind = {
		.wr_id = 3, .send_flags = IBV_SEND_SIGNALED,
		.bind_info = { .mr = &window_mr, .addr = 1, .length = 2, .mw_access_flags = IBV_ACCESS_REMOTE_READ },
	};
	const struct skua_wqe_bind_mw *seg = (void *)(ctrl + 1);
	struct ibv_wc wc;

	with_windows(0);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(skua_bind_mw(&qp.vqp.qp, &mw, &bind), 0);
		assert_int_equal(mw.rkey, 0x567800 | (uint8_t)(0xff + i));
		fake_sq_fetch(&qp.sq, i, wqe_copy);
		assert_int_equal(le32toh(seg->key), mw.rkey);
	}
	bind.bind_info.mw_access_flags = IBV_ACCESS_ON_DEMAND;
	errno = 0;
	assert_int_equal(skua_bind_mw(&qp.vqp.qp, &mw, &bind), EINVAL);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(mw.rkey, 0x567801);
	complete((struct skua_cqe) { .sq_ci = htole32(1), .opcode = SKUA_CQE_BIND_MW });
	assert_int_equal(skua_poll_cq(&cq.vcq.cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 3);
	assert_int_equal(wc.opcode, IBV_WC_BIND_MW);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	complete((struct skua_cqe) {
		.sq_ci = htole32(2), .cookie = htole32(1), .opcode = SKUA_CQE_BIND_MW, .status = SKUA_CQE_MW_BIND_ERR,
	});
	assert_int_equal(skua_poll_cq(&cq.vcq.cq, 1, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_MW_BIND_ERR);
}

/* libibverbs' part, which fails as it is told. */
static int mw_cmd_err;

int ibv_cmd_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type, struct ibv_mw *mw, struct ibv_alloc_mw *cmd,
		     size_t cmd_size, struct ib_uverbs_alloc_mw_resp *resp, size_t resp_size)
{
	mw->type = type;
	mw->rkey = 0x99;
	return mw_cmd_err;
}

int ibv_cmd_dealloc_mw(struct ibv_mw *mw)
{
	return mw_cmd_err;
}

static void test_a_window_is_made_or_not(void **state)
{
	struct ibv_mw *mw;

	mw_cmd_err = ENOMEM;
	errno = 0;
	assert_null(skua_alloc_mw(NULL, IBV_MW_TYPE_2));
	assert_int_equal(errno, ENOMEM);
	mw_cmd_err = 0;
	mw = skua_alloc_mw(NULL, IBV_MW_TYPE_2);
	assert_non_null(mw);
	assert_int_equal(mw->type, IBV_MW_TYPE_2);
	assert_int_equal(mw->rkey, 0x99);
	mw_cmd_err = EBUSY;
	assert_int_equal(skua_dealloc_mw(mw), EBUSY);
	mw_cmd_err = 0;
	assert_int_equal(skua_dealloc_mw(mw), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_a_window_is_bound),
		T(test_binds_that_are_refused),
		T(test_type_1_gets_its_next_key),
		T(test_a_window_is_made_or_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
