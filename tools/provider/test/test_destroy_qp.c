// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Destroying QPs: what becomes of their CQEs, while threads poll, too. */
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "kernel.h"
#include "objects.h"

static void test_destroy_takes_the_cqes_along(void **state)
{
	struct ibv_qp_cap cap = { .max_send_wr = 8, .max_recv_wr = 8 };
	struct ibv_cq *send_cq = make_cq(8), *recv_cq = make_cq(8);
	struct fake_cq send_dev = device_of(send_cq), recv_dev = device_of(recv_cq);
	struct ibv_qp *gone = make_qp(send_cq, recv_cq, &cap);
	struct ibv_qp *stays = make_qp(send_cq, recv_cq, &cap);
	struct ibv_wc wc[8];

	stays->qp_num = 0x66;
	complete(&send_dev, gone, SKUA_CQE_SEND);
	complete(&send_dev, stays, SKUA_CQE_SEND);
	complete(&send_dev, gone, SKUA_CQE_SEND);
	complete(&recv_dev, gone, SKUA_CQE_RECV);
	complete(&recv_dev, stays, SKUA_CQE_RECV);

	assert_int_equal(skua_destroy_qp(gone), 0);
	assert_int_equal(skua_poll_cq(send_cq, 8, wc), 1);
	assert_int_equal(wc[0].qp_num, 0x66);
	assert_int_equal(skua_poll_cq(recv_cq, 8, wc), 1);
	assert_int_equal(wc[0].qp_num, 0x66);
	skua_destroy_qp(stays);
	skua_destroy_cq(send_cq);
	skua_destroy_cq(recv_cq);
}

static void test_destroy_that_fails_takes_nothing(void **state)
{
	struct ibv_qp_cap cap = { .max_send_wr = 8 };
	struct ibv_cq *cq = make_cq(8);
	struct fake_cq dev = device_of(cq);
	struct ibv_qp *qp = make_qp(cq, cq, &cap);
	struct ibv_wc wc;

	complete(&dev, qp, SKUA_CQE_SEND);
	answer = EBUSY;
	assert_int_equal(skua_destroy_qp(qp), EBUSY);
	assert_int_equal(skua_destroy_cq(cq), EBUSY);
	answer = 0;
	assert_int_equal(skua_poll_cq(cq, 1, &wc), 1);
	skua_destroy_qp(qp);
	skua_destroy_cq(cq);
}

/*
 * A thread destroys a QP while it holds one of its completions: there is no lock to wait for, what
 * it holds stays as it is, and it goes on with those of others.
 */
static void destroy_between_start_and_end(bool single)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 4, .wc_flags = IBV_WC_STANDARD_FLAGS, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = single ? IBV_CREATE_CQ_ATTR_SINGLE_THREADED : 0,
	};
	struct ibv_cq_ex *cq_ex = skua_create_cq_ex(&ctx.vctx.context, &attr);
	struct ibv_cq *cq = ibv_cq_ex_to_cq(cq_ex);
	struct ibv_qp_cap cap = { .max_send_wr = 8 };
	struct ibv_poll_cq_attr poll = {};
	struct fake_cq dev = device_of(cq);
	struct ibv_qp *gone = make_qp(cq, cq, &cap);
	struct ibv_qp *stays = make_qp(cq, cq, &cap);

	stays->qp_num = 0x66;
	complete(&dev, gone, SKUA_CQE_WRITE);
	complete(&dev, gone, SKUA_CQE_SEND);
	complete(&dev, stays, SKUA_CQE_READ);
	assert_int_equal(ibv_start_poll(cq_ex, &poll), 0);
	assert_int_equal(skua_destroy_qp(gone), 0);
	assert_int_equal(ibv_wc_read_opcode(cq_ex), IBV_WC_RDMA_WRITE);
	assert_int_equal(ibv_wc_read_qp_num(cq_ex), 0x55);
	assert_int_equal(ibv_next_poll(cq_ex), 0);
	assert_int_equal(ibv_wc_read_opcode(cq_ex), IBV_WC_RDMA_READ);
	assert_int_equal(ibv_next_poll(cq_ex), ENOENT);
	ibv_end_poll(cq_ex);
	assert_int_equal(le32toh(dev.dbr->ci), 3);
	assert_int_equal(ibv_start_poll(cq_ex, &poll), ENOENT);
	skua_destroy_qp(stays);
	skua_destroy_cq(cq);
}

static void test_destroy_between_start_and_end_of_polling(void **state)
{
	destroy_between_start_and_end(false);
	destroy_between_start_and_end(true);
}

/*
 * Each thread destroys a QP of both CQs while it polls one of them: neither waits for what the other
 * holds until it is done.
 */
static struct ibv_cq_ex *crossed[2];
static struct ibv_qp *crossed_qp[2];
static pthread_barrier_t both_poll;

static void *destroy_across(void *arg)
{
	struct ibv_poll_cq_attr poll = {};
	uintptr_t i = (uintptr_t)arg;

	assert_int_equal(ibv_start_poll(crossed[i], &poll), 0);
	pthread_barrier_wait(&both_poll);
	assert_int_equal(skua_destroy_qp(crossed_qp[i]), 0);
	pthread_barrier_wait(&both_poll);
	ibv_end_poll(crossed[i]);
	return NULL;
}

static void test_destroys_across_cqs_that_are_polled(void **state)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 4, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_qp_cap cap = { .max_send_wr = 8, .max_recv_wr = 8 };
	struct timespec end;
	pthread_t thread[2];
	uintptr_t i;

	pthread_barrier_init(&both_poll, NULL, 2);
	for (i = 0; i < 2; i++)
		crossed[i] = skua_create_cq_ex(&ctx.vctx.context, &attr);
	for (i = 0; i < 2; i++) {
		struct fake_cq dev = device_of(ibv_cq_ex_to_cq(crossed[i]));

		crossed_qp[i] = make_qp(ibv_cq_ex_to_cq(crossed[i]), ibv_cq_ex_to_cq(crossed[!i]), &cap);
		complete(&dev, crossed_qp[i], SKUA_CQE_SEND);
	}
	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, destroy_across, (void *)i), 0);
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += 20;
	for (i = 0; i < 2; i++)
		if (pthread_timedjoin_np(thread[i], NULL, &end)) {
			print_error("they wait for each other\n");
			_exit(1);	/* what they use cannot be freed */
		}
	for (i = 0; i < 2; i++)
		skua_destroy_cq(ibv_cq_ex_to_cq(crossed[i]));
	pthread_barrier_destroy(&both_poll);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_destroy_takes_the_cqes_along),
		T(test_destroy_that_fails_takes_nothing),
		T(test_destroy_between_start_and_end_of_polling),
		T(test_destroys_across_cqs_that_are_polled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
