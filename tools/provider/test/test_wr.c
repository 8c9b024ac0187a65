// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Posting by the calls of an extended QP, ibv_wr_start() to ibv_wr_complete(). */
#include "queues.h"

static void wr_by_call(unsigned int row)
{
	struct ibv_send_wr wr = make_wr(rows[row].opcode);
	struct ibv_qp_ex *qp_ex = &qp.vqp.qp_ex;

	qp_ex->wr_id = wr.wr_id;
	qp_ex->wr_flags = wr.send_flags;
	switch (rows[row].opcode) {
	case IBV_WR_SEND:
		ibv_wr_send(qp_ex);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(qp_ex, wr.imm_data);
		break;
	case IBV_WR_SEND_WITH_INV:
		ibv_wr_send_inv(qp_ex, wr.invalidate_rkey);
		break;
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(qp_ex, wr.wr.rdma.rkey, wr.wr.rdma.remote_addr);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(qp_ex, wr.wr.rdma.rkey, wr.wr.rdma.remote_addr,
				      wr.imm_data);
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(qp_ex, wr.wr.rdma.rkey, wr.wr.rdma.remote_addr);
		break;
	default:
		ibv_wr_local_inv(qp_ex, wr.invalidate_rkey);
		return;
	}
	ibv_wr_set_sge_list(qp_ex, wr.num_sge, wr.sg_list);
}

static void test_wr_calls_build_the_same_wqes(void **state)
{
	unsigned int i;

	ibv_wr_start(&qp.vqp.qp_ex);
	for (i = 0; i < NUM_ROWS; i++)
		wr_by_call(i);
	assert_int_equal(qp.sq.dbr->pi, 0);
	assert_int_equal(ibv_wr_complete(&qp.vqp.qp_ex), 0);
	assert_int_equal(le32toh(qp.sq.dbr->pi), NUM_ROWS);
	assert_int_equal(le64toh(db_page[SKUA_DB_SQ / 8]), SKUA_DB(QPN, NUM_ROWS));
	for (i = 0; i < NUM_ROWS; i++)
		check_wqe(i, i);
}

static void check_atomic(uint32_t index, uint8_t opcode, uint64_t swap_add, uint64_t compare)
{
	const struct skua_wqe_atomic *atomic = (void *)(ctrl + 1);
	const struct skua_sge *sge = (void *)(atomic + 1);

	fake_sq_fetch(&qp.sq, index, wqe_copy);
	assert_int_equal(ctrl->opcode, opcode);
	assert_int_equal(ctrl->num_sge, 1);
	assert_int_equal(ctrl->inv_key, 0);
	assert_int_equal(le64toh(atomic->raddr), 0x8877665544332210);
	assert_int_equal(le32toh(atomic->rkey), 0x99);
	assert_int_equal(atomic->rsvd, 0);
	assert_int_equal(le64toh(atomic->swap_add), swap_add);
	assert_int_equal(le64toh(atomic->compare), compare);
	assert_int_equal(le64toh(sge->addr), sges[0].addr);
}

/* ATM-1 GEN-2: what is added, swapped and compared, by either way of posting. */
static void test_atomic_wqes(void **state)
{
	struct ibv_qp_ex *qp_ex = &qp.vqp.qp_ex;
	struct ibv_send_wr wr = make_wr(IBV_WR_ATOMIC_CMP_AND_SWP);

	qp.opcodes = skua_op_mask(FEATURES, IBV_QPT_RC);
	assert_true(skua_qp_fill_wr_ops(&qp, ALL_OPS | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
					IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD));
	wr.num_sge = 1;
	wr.wr.atomic.remote_addr = 0x8877665544332210;
	wr.wr.atomic.rkey = 0x99;
	wr.wr.atomic.compare_add = 5;
	wr.wr.atomic.swap = 6;
	assert_int_equal(post(&wr), 0);
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	assert_int_equal(post(&wr), 0);

	ibv_wr_start(qp_ex);
	ibv_wr_atomic_cmp_swp(qp_ex, 0x99, 0x8877665544332210, 5, 6);
	ibv_wr_set_sge_list(qp_ex, 1, sges);
	ibv_wr_atomic_fetch_add(qp_ex, 0x99, 0x8877665544332210, 5);
	ibv_wr_set_sge_list(qp_ex, 1, sges);
	assert_int_equal(ibv_wr_complete(qp_ex), 0);
	for (uint32_t index = 0; index < 4; index += 2) {
		check_atomic(index, SKUA_WQE_CMP_SWAP, 6, 5);
		check_atomic(index + 1, SKUA_WQE_FETCH_ADD, 5, 0);
	}
}

static void test_wr_inline(void **state)
{
	struct ibv_data_buf bufs[2] = { { "abc", 3 }, { "defgh", 5 } };
	struct ibv_qp_ex *qp_ex = &qp.vqp.qp_ex;

	qp_ex->wr_flags = 0;
	ibv_wr_start(qp_ex);
	ibv_wr_send(qp_ex);
	ibv_wr_set_inline_data_list(qp_ex, 2, bufs);
	ibv_wr_rdma_write(qp_ex, 1, 2);
	ibv_wr_set_inline_data(qp_ex, "xyz", 3);
	assert_int_equal(ibv_wr_complete(qp_ex), 0);

	fake_sq_fetch(&qp.sq, 0, wqe_copy);
	assert_int_equal(ctrl->flags, SKUA_WQE_INLINE);
	assert_int_equal(le32toh(ctrl->length), 8);
	assert_memory_equal(wqe_copy + 16, "abcdefgh", 8);
	fake_sq_fetch(&qp.sq, 1, wqe_copy);
	assert_int_equal(le32toh(ctrl->length), 3);
	assert_memory_equal(wqe_copy + 32, "xyz", 3);
}

static void test_wr_errors_take_all_back(void **state)
{
	struct ibv_qp_ex *qp_ex = &qp.vqp.qp_ex;
	struct ibv_sge many[5] = {};
	static char big[65];
	unsigned int i;

	ibv_wr_start(qp_ex);
	ibv_wr_send(qp_ex);
	ibv_wr_send(qp_ex);
	ibv_wr_set_sge_list(qp_ex, 5, many);
	ibv_wr_send(qp_ex);
	assert_int_equal(ibv_wr_complete(qp_ex), EINVAL);
	assert_int_equal(qp.sq.pi, 0);

	ibv_wr_start(qp_ex);
	ibv_wr_send(qp_ex);
	ibv_wr_set_inline_data(qp_ex, big, sizeof(big));
	assert_int_equal(ibv_wr_complete(qp_ex), EINVAL);

	ibv_wr_start(qp_ex);
	ibv_wr_rdma_read(qp_ex, 1, 2);
	ibv_wr_set_inline_data(qp_ex, big, 1);
	assert_int_equal(ibv_wr_complete(qp_ex), EINVAL);

	qp.opcodes = skua_op_mask(FEATURES, IBV_QPT_RC);
	assert_true(skua_qp_fill_wr_ops(&qp, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD));
	ibv_wr_start(qp_ex);
	ibv_wr_atomic_fetch_add(qp_ex, 1, 2, 3);
	ibv_wr_set_inline_data(qp_ex, big, 8);
	assert_int_equal(ibv_wr_complete(qp_ex), EINVAL);

	ibv_wr_start(qp_ex);
	ibv_wr_local_inv(qp_ex, 1);
	ibv_wr_set_sge(qp_ex, 1, 2, 3);
	assert_int_equal(ibv_wr_complete(qp_ex), EINVAL);

	ibv_wr_start(qp_ex);
	for (i = 0; i < MAX_WR + 1; i++)
		ibv_wr_send(qp_ex);
	assert_int_equal(ibv_wr_complete(qp_ex), ENOMEM);

	ibv_wr_start(qp_ex);
	ibv_wr_send(qp_ex);
	ibv_wr_abort(qp_ex);

	assert_int_equal(qp.sq.pi, 0);
	assert_int_equal(qp.sq.wr_pi, 0);
	assert_int_equal(qp.sq.dbr->pi, 0);
	assert_int_equal(db_page[SKUA_DB_SQ / 8], 0);
}

/* A WQE larger than the QP's would reach into one in flight. */
static void test_wr_data_set_twice_is_no_larger(void **state)
{
	struct ibv_qp_ex *qp_ex = &qp.vqp.qp_ex;
	struct ibv_sge many[4] = {};

	ibv_wr_start(qp_ex);
	ibv_wr_rdma_write(qp_ex, 1, 2);
	ibv_wr_set_sge_list(qp_ex, 4, many);
	ibv_wr_set_sge_list(qp_ex, 2, sges);
	assert_int_equal(ibv_wr_complete(qp_ex), 0);
	assert_int_equal(qp.sq.pi, 1);
	fake_sq_fetch(&qp.sq, 0, wqe_copy);
	assert_int_equal(ctrl->num_sge, 2);
	assert_memory_equal(&((struct skua_sge *)(ctrl + 2))->addr, &sges[0].addr, 8);

	qp.opcodes = skua_op_mask(FEATURES, IBV_QPT_RC);
	assert_true(skua_qp_fill_wr_ops(&qp, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD));
	ibv_wr_start(qp_ex);
	ibv_wr_atomic_fetch_add(qp_ex, 1, 2, 3);
	ibv_wr_set_sge_list(qp_ex, 2, sges);
	assert_int_equal(ibv_wr_complete(qp_ex), EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_wr_calls_build_the_same_wqes),
		T(test_atomic_wqes),
		T(test_wr_inline),
		T(test_wr_errors_take_all_back),
		T(test_wr_data_set_twice_is_no_larger),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
