// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Posting by ibv_post_send() and ibv_post_recv(): what becomes a WQE, and what is refused. */
#include <pthread.h>
#include <unistd.h>

#include "queues.h"

static void test_each_opcode_becomes_its_wqe(void **state)
{
	unsigned int i;

	for (i = 0; i < NUM_ROWS; i++) {
		struct ibv_send_wr wr = make_wr(rows[i].opcode);
		uint32_t index = qp.sq.pi;

		assert_int_equal(post(&wr), 0);
		check_wqe(i, index);
		assert_int_equal(le32toh(qp.sq.dbr->pi), index + 1);
	}
}

static void test_flags(void **state)
{
	struct ibv_send_wr wr = make_wr(IBV_WR_SEND);

	wr.send_flags = IBV_SEND_FENCE | IBV_SEND_SOLICITED;
	assert_int_equal(post(&wr), 0);
	fake_sq_fetch(&qp.sq, 0, wqe_copy);
	assert_int_equal(ctrl->flags, SKUA_WQE_FENCE | SKUA_WQE_SOLICITED);

	qp.sq_sig = SKUA_WQE_SIGNALED;
	wr.send_flags = 0;
	assert_int_equal(post(&wr), 0);
	fake_sq_fetch(&qp.sq, 1, wqe_copy);
	assert_int_equal(ctrl->flags, SKUA_WQE_SIGNALED);
}

static void test_inline_is_gathered(void **state)
{
	struct ibv_sge pieces[3] = {
		{ .addr = (uintptr_t)"abc", .length = 3 },
		{ .addr = 0, .length = 0 },
		{ .addr = (uintptr_t)"defgh", .length = 5 },
	};
	struct ibv_send_wr wr = make_wr(IBV_WR_RDMA_WRITE);

	wr.sg_list = pieces;
	wr.num_sge = 3;
	wr.send_flags = IBV_SEND_INLINE;
	assert_int_equal(post(&wr), 0);
	fake_sq_fetch(&qp.sq, 0, wqe_copy);
	assert_int_equal(ctrl->flags, SKUA_WQE_INLINE);
	assert_int_equal(ctrl->num_sge, 0);
	assert_int_equal(le32toh(ctrl->length), 8);
	assert_memory_equal(wqe_copy + 32, "abcdefgh", 8);
}

static void test_refused_wrs(void **state)
{
	static char big[65];
	struct ibv_sge many[5] = {};
	struct ibv_sge one = { .addr = (uintptr_t)big, .length = sizeof(big) };
	struct ibv_sge huge[2] = { { .length = UINT32_MAX }, { .length = 2 } };
	struct ibv_send_wr wr;

	wr = make_wr(IBV_WR_ATOMIC_CMP_AND_SWP);
	assert_int_equal(post(&wr), EINVAL);
	wr = make_wr(1000);
	assert_int_equal(post(&wr), EINVAL);
	wr = make_wr(IBV_WR_SEND);
	wr.sg_list = many;
	wr.num_sge = 5;
	assert_int_equal(post(&wr), EINVAL);
	wr.num_sge = -1;
	assert_int_equal(post(&wr), EINVAL);
	wr.sg_list = &one;
	wr.num_sge = 1;
	wr.send_flags = IBV_SEND_INLINE;
	assert_int_equal(post(&wr), EINVAL);
	wr.sg_list = huge;
	wr.num_sge = 2;
	assert_int_equal(post(&wr), EINVAL);
	one.length = 1;
	wr.sg_list = &one;
	wr.num_sge = 1;
	wr.opcode = IBV_WR_RDMA_READ;
	assert_int_equal(post(&wr), EINVAL);
	wr.opcode = IBV_WR_SEND;
	wr.num_sge = -1;
	assert_int_equal(post(&wr), EINVAL);
	wr.sg_list = many;
	wr.num_sge = 5;
	assert_int_equal(post(&wr), EINVAL);

	assert_int_equal(qp.sq.pi, 0);
	assert_int_equal(qp.sq.dbr->pi, 0);
}

static void test_opcode_without_its_feature_is_refused(void **state)
{
	struct ibv_send_wr wr = make_wr(IBV_WR_LOCAL_INV);

	qp.opcodes = skua_op_mask(1 << SKUA_F_RC, IBV_QPT_RC);
	assert_int_equal(post(&wr), EINVAL);
	wr = make_wr(IBV_WR_SEND);
	assert_int_equal(post(&wr), 0);
	assert_false(skua_qp_fill_wr_ops(&qp, IBV_QP_EX_WITH_LOCAL_INV));
	assert_true(skua_qp_fill_wr_ops(&qp, IBV_QP_EX_WITH_SEND));
	assert_false(skua_qp_fill_wr_ops(&qp, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO));
}

static void test_states(void **state)
{
	struct ibv_recv_wr rwr = { .sg_list = sges, .num_sge = 1 }, *bad;
	struct ibv_send_wr wr = make_wr(IBV_WR_SEND);
	static const struct {
		enum ibv_qp_state state;
		int send, recv;
	} table[] = {
		{ IBV_QPS_RESET, EINVAL, EINVAL },
		{ IBV_QPS_INIT, EINVAL, 0 },
		{ IBV_QPS_RTR, EINVAL, 0 },
		{ IBV_QPS_RTS, 0, 0 },
		{ IBV_QPS_ERR, 0, 0 },
	};
	unsigned int i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		qp.vqp.qp.state = table[i].state;
		assert_int_equal(post(&wr), table[i].send);
		assert_int_equal(skua_post_recv(&qp.vqp.qp, &rwr, &bad), table[i].recv);
		qp.vqp.qp_ex.wr_start(&qp.vqp.qp_ex);
		assert_int_equal(qp.vqp.qp_ex.wr_complete(&qp.vqp.qp_ex), table[i].send);
	}
}

static void *post_a_send(void *err)
{
	struct ibv_send_wr wr = make_wr(IBV_WR_SEND), *bad;

	*(int *)err = skua_post_send(&qp.vqp.qp, &wr, &bad);
	return NULL;
}

static void *post_a_recv(void *err)
{
	struct ibv_recv_wr wr = { .sg_list = sges, .num_sge = 1 }, *bad;

	*(int *)err = skua_post_recv(&qp.vqp.qp, &wr, &bad);
	return NULL;
}

/* Threads that post while another makes the QP RESET. */
static void test_a_state_is_read_under_the_lock(void **state)
{
	void *(*const posters[])(void *) = { post_a_send, post_a_recv };
	pthread_t threads[2];
	int errs[2];

	skua_lock(&qp.sq_lock);
	skua_lock(&qp.rq_lock);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, posters[i], &errs[i]), 0);
	usleep(50000);	/* until they wait for the locks */
	qp.vqp.qp.state = IBV_QPS_RESET;
	skua_unlock(&qp.rq_lock);
	skua_unlock(&qp.sq_lock);
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(errs[i], EINVAL);
	}
}

/* Fills the queue: what fits is published, with one doorbell; the rest is pointed at. */
static void test_full_queue(void **state)
{
	struct ibv_send_wr wr[MAX_WR + 2], *bad = NULL;
	unsigned int i;

	for (i = 0; i < MAX_WR + 2; i++) {
		wr[i] = make_wr(IBV_WR_SEND);
		wr[i].next = i < MAX_WR + 1 ? &wr[i + 1] : NULL;
	}
	assert_int_equal(skua_post_send(&qp.vqp.qp, wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[MAX_WR]);
	assert_int_equal(le32toh(qp.sq.dbr->pi), MAX_WR);
	assert_int_equal(le64toh(db_page[SKUA_DB_SQ / 8]), SKUA_DB(QPN, MAX_WR));
}

static void test_doorbell_only_if_asked_for(void **state)
{
	struct ibv_send_wr wr = make_wr(IBV_WR_SEND);

	qp.sq.dbr->event = htole32(5);
	assert_int_equal(post(&wr), 0);
	assert_int_equal(db_page[SKUA_DB_SQ / 8], 0);
	qp.event_idx = false;
	assert_int_equal(post(&wr), 0);
	assert_int_equal(le64toh(db_page[SKUA_DB_SQ / 8]), SKUA_DB(QPN, 2));
}

static void test_post_recv(void **state)
{
	struct ibv_recv_wr wr[RQ_SIZE + 1], *bad = NULL;
	const struct skua_rqe *rqe = (void *)((char *)qp.rq.buf + 64);
	const struct skua_sge *sge = (void *)(rqe + 1);
	unsigned int i;

	for (i = 0; i < RQ_SIZE + 1; i++)
		wr[i] = (struct ibv_recv_wr) {
			.wr_id = i, .sg_list = sges, .num_sge = 2,
			.next = i < RQ_SIZE ? &wr[i + 1] : NULL,
		};
	assert_int_equal(skua_post_recv(&qp.vqp.qp, wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[RQ_SIZE]);
	assert_int_equal(le32toh(qp.rq.dbr->pi), RQ_SIZE);
	assert_int_equal(le32toh(rqe->cookie), 1);
	assert_int_equal(rqe->num_sge, 2);
	assert_int_equal(le64toh(sge[1].addr), sges[1].addr);
	assert_int_equal(db_page[SKUA_DB_SQ / 8], 0);

	wr[0].next = NULL;
	wr[0].num_sge = 4;
	assert_int_equal(skua_post_recv(&qp.vqp.qp, wr, &bad), EINVAL);
	assert_ptr_equal(bad, wr);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_each_opcode_becomes_its_wqe),
		T(test_flags),
		T(test_inline_is_gathered),
		T(test_refused_wrs),
		T(test_opcode_without_its_feature_is_refused),
		T(test_states),
		T(test_a_state_is_read_under_the_lock),
		T(test_full_queue),
		T(test_doorbell_only_if_asked_for),
		T(test_post_recv),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
