// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* FLUSH and ATOMIC WRITE: posting, polling, and QPs without them. */
#include "queues.h"

#define FLUSH_FEATURES	(FEATURES | 1 << SKUA_F_FLUSH | 1 << SKUA_F_ATOMIC_WRITE)

/* A QP whose program has declared both calls. */
static struct ibv_qp_ex *flushing(void)
{
	qp.opcodes = skua_op_mask(FLUSH_FEATURES, IBV_QPT_RC);
	assert_true(skua_qp_fill_wr_ops(&qp, ALL_OPS | IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_ATOMIC_WRITE));
	return &qp.vqp.qp_ex;
}

/* FLU-3: placement, selectivity and range. */
static void test_flush_wqes(void **state)
{
	static const struct {
		size_t length;
		uint8_t type, level;
		uint32_t flush, sent_length;
	} table[] = {
		{ 4096, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE, SKUA_FLUSH_GLOBAL, 4096 },
		{ UINT32_MAX, IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE, SKUA_FLUSH_PERSISTENT, UINT32_MAX },
		{ SIZE_MAX, IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT, IBV_FLUSH_MR, SKUA_FLUSH_PLACEMENTS | SKUA_FLUSH_MR, 0 },
	};
	const struct skua_wqe_rdma *rdma = (void *)(ctrl + 1);
	struct ibv_qp_ex *qp_ex = flushing();

	for (uint32_t i = 0; i < 3; i++) {
		ibv_wr_start(qp_ex);
		ibv_wr_flush(qp_ex, 0x99, 0x8877665544332210, table[i].length, table[i].type, table[i].level);
		assert_int_equal(ibv_wr_complete(qp_ex), 0);
		fake_sq_fetch(&qp.sq, i, wqe_copy);
		assert_int_equal(ctrl->opcode, SKUA_WQE_FLUSH);
		assert_int_equal(ctrl->nblocks, 1);
		assert_int_equal(ctrl->num_sge, 0);
		assert_int_equal(ctrl->inv_key, 0);
		assert_int_equal(le32toh(ctrl->length), table[i].sent_length);
		assert_int_equal(le64toh(rdma->raddr), 0x8877665544332210);
		assert_int_equal(le32toh(rdma->rkey), 0x99);
		assert_int_equal(le32toh(rdma->flush), table[i].flush);
	}
}

/* What no WQE can say; and ibv_post_send(), whose work request cannot say it. */
static void test_flushes_that_are_refused(void **state)
{
	static const struct { size_t length; uint8_t type, level; } bad[] = {
		{ 8, 0, IBV_FLUSH_RANGE }, { 8, 4, IBV_FLUSH_RANGE }, { 8, IBV_FLUSH_GLOBAL | 0x10, IBV_FLUSH_RANGE },
		{ 8, IBV_FLUSH_GLOBAL, 2 }, { 1ull << 32, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE },
	};
	struct ibv_send_wr wr = make_wr(IBV_WR_FLUSH);
	struct ibv_qp_ex *qp_ex = flushing();

	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ibv_wr_start(qp_ex);
		ibv_wr_flush(qp_ex, 1, 2, bad[i].length, bad[i].type, bad[i].level);
		assert_int_equal(ibv_wr_complete(qp_ex), EINVAL);
	}
	assert_int_equal(post(&wr), EINVAL);
	assert_int_equal(qp.sq.pi, 0);
}

/* FLU-7: the word stands in the WQE, or in an SGE. */
static void test_atomic_write_wqes(void **state)
{
	const struct skua_wqe_rdma *rdma = (void *)(ctrl + 1);
	struct ibv_send_wr wr = make_wr(IBV_WR_ATOMIC_WRITE);
	struct ibv_qp_ex *qp_ex = flushing();

	qp_ex->wr_flags = 0;
	ibv_wr_start(qp_ex);
	ibv_wr_atomic_write(qp_ex, 0x99, 0x8877665544332210, "abcdefgh");
	assert_int_equal(ibv_wr_complete(qp_ex), 0);
	fake_sq_fetch(&qp.sq, 0, wqe_copy);
	assert_int_equal(ctrl->opcode, SKUA_WQE_ATOMIC_WRITE);
	assert_int_equal(ctrl->nblocks, 1);
	assert_int_equal(ctrl->flags, SKUA_WQE_INLINE);
	assert_int_equal(le32toh(ctrl->length), 8);
	assert_int_equal(le64toh(rdma->raddr), 0x8877665544332210);
	assert_int_equal(le32toh(rdma->rkey), 0x99);
	assert_int_equal(rdma->flush, 0);
	assert_memory_equal(rdma + 1, "abcdefgh", 8);

	wr.num_sge = 1;
	assert_int_equal(post(&wr), 0);
	fake_sq_fetch(&qp.sq, 1, wqe_copy);
	assert_int_equal(ctrl->opcode, SKUA_WQE_ATOMIC_WRITE);
	assert_int_equal(ctrl->num_sge, 1);
	assert_int_equal(le64toh(((struct skua_sge *)(rdma + 1))->addr), sges[0].addr);
}

/* It has its data already. */
static void test_atomic_write_takes_no_data_behind_it(void **state)
{
	struct ibv_qp_ex *qp_ex = flushing();

	ibv_wr_start(qp_ex);
	ibv_wr_atomic_write(qp_ex, 1, 2, "abcdefgh");
	ibv_wr_set_sge(qp_ex, 1, 2, 3);
	assert_int_equal(ibv_wr_complete(qp_ex), EINVAL);
	ibv_wr_start(qp_ex);
	ibv_wr_atomic_write(qp_ex, 1, 2, "abcdefgh");
	ibv_wr_set_inline_data(qp_ex, (char *)"abcdefgh", 8);
	assert_int_equal(ibv_wr_complete(qp_ex), EINVAL);
	ibv_wr_start(qp_ex);
	ibv_wr_flush(qp_ex, 1, 2, 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
	ibv_wr_set_sge(qp_ex, 1, 2, 3);
	assert_int_equal(ibv_wr_complete(qp_ex), EINVAL);
	assert_int_equal(qp.sq.pi, 0);
}

static void test_poll_flush(void **state)
{
	static const struct { uint8_t cqe; enum ibv_wc_opcode wc; } table[] = {
		{ SKUA_CQE_FLUSH, IBV_WC_FLUSH }, { SKUA_CQE_ATOMIC_WRITE, IBV_WC_ATOMIC_WRITE },
	};
	struct ibv_qp_ex *qp_ex = flushing();
	struct ibv_wc wc;

	for (int i = 0; i < 2; i++) {
		ibv_wr_start(qp_ex);
		ibv_wr_flush(qp_ex, 1, 2, 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
		assert_int_equal(ibv_wr_complete(qp_ex), 0);
		complete((struct skua_cqe) { .opcode = table[i].cqe, .cookie = htole32(i) });
		assert_int_equal(skua_poll_cq(&cq.vcq.cq, 1, &wc), 1);
		assert_int_equal(wc.opcode, table[i].wc);
	}
}

/* GEN-2: without the features no QP has them. */
static void test_flush_without_its_features(void **state)
{
	assert_null(qp.vqp.qp_ex.wr_flush);
	assert_null(qp.vqp.qp_ex.wr_atomic_write);
	qp.opcodes = skua_op_mask(FEATURES, IBV_QPT_RC);
	assert_false(skua_qp_fill_wr_ops(&qp, IBV_QP_EX_WITH_FLUSH));
	assert_false(skua_qp_fill_wr_ops(&qp, IBV_QP_EX_WITH_ATOMIC_WRITE));
	qp.opcodes = skua_op_mask(FLUSH_FEATURES, IBV_QPT_UC);
	assert_false(skua_qp_fill_wr_ops(&qp, IBV_QP_EX_WITH_FLUSH));
	assert_false(skua_qp_fill_wr_ops(&qp, IBV_QP_EX_WITH_ATOMIC_WRITE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_flush_wqes),
		T(test_flushes_that_are_refused),
		T(test_atomic_write_wqes),
		T(test_atomic_write_takes_no_data_behind_it),
		T(test_poll_flush),
		T(test_flush_without_its_features),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
