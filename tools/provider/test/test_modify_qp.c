// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What becomes of a QP after it was created, and what it tells: states, rates, options of ECE, capacities. */
#include "kernel.h"
#include "objects.h"

static void test_reset_begins_anew(void **state)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct ibv_qp_cap cap = { .max_send_wr = 8, .max_recv_wr = 8 };
	struct ibv_cq *cq = make_cq(8);
	struct fake_cq dev = device_of(cq);
	struct ibv_qp *qp = make_qp(cq, cq, &cap);
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad_send;
	struct ibv_recv_wr rwr = {}, *bad_recv;
	struct ibv_wc wc;

	qp->state = IBV_QPS_RTS;
	assert_int_equal(skua_post_send(qp, &wr, &bad_send), 0);
	assert_int_equal(skua_post_recv(qp, &rwr, &bad_recv), 0);
	complete(&dev, qp, SKUA_CQE_SEND);
	assert_int_equal(skua_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	assert_int_equal(skua_poll_cq(cq, 1, &wc), 0);
	assert_int_equal(to_skua_qp(qp)->sq.dbr->pi, 0);
	assert_int_equal(to_skua_qp(qp)->rq.dbr->pi, 0);
	/* What another thread posts before libibverbs has set the state would be left in the rings. */
	assert_int_equal(skua_post_send(qp, &wr, &bad_send), EINVAL);
	assert_int_equal(skua_post_recv(qp, &rwr, &bad_recv), EINVAL);
	qp->state = IBV_QPS_RTS;
	assert_int_equal(skua_post_send(qp, &wr, &bad_send), 0);
	assert_int_equal(le32toh(to_skua_qp(qp)->sq.dbr->pi), 1);
	skua_destroy_qp(qp);
	skua_destroy_cq(cq);
}

static void test_query_tells_the_real_capacities(void **state)
{
	struct ibv_qp_cap cap = { .max_send_wr = 5, .max_inline_data = 100 };
	struct ibv_qp_init_attr init = {};
	struct ibv_cq *cq = make_cq(8);
	struct ibv_qp *qp = make_qp(cq, cq, &cap);
	struct ibv_qp_attr attr = {};

	assert_int_equal(skua_query_qp(qp, &attr, IBV_QP_CAP, &init), 0);
	assert_memory_equal(&init.cap, &cap, sizeof(cap));
	assert_memory_equal(&attr.cap, &cap, sizeof(cap));
	skua_destroy_qp(qp);
	skua_destroy_cq(cq);
}

/* RAT-1: the extended command brings them. */
static void test_rates_are_the_kernels_to_judge(void **state)
{
	struct ibv_qp_rate_limit_attr limit = { .rate_limit = 5000, .max_burst_sz = 9000, .typical_pkt_sz = 1500 };
	struct ibv_qp_attr attr = { .rate_limit = 7000, .qp_state = IBV_QPS_RTS };
	struct ibv_qp_cap cap = { .max_send_wr = 8 };
	struct ibv_cq *cq = make_cq(8);
	struct ibv_qp *qp = make_qp(cq, cq, &cap);

	assert_int_equal(skua_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_RATE_LIMIT), 0);
	assert_int_equal(modify_mask, IBV_QP_STATE | IBV_QP_RATE_LIMIT);
	assert_int_equal(modify_rate, 7000);
	assert_int_equal(modify_req.rate_burst, 0);
	assert_int_equal(skua_modify_qp_rate_limit(qp, &limit), 0);
	assert_int_equal(modify_mask, IBV_QP_RATE_LIMIT);
	assert_int_equal(modify_rate, 5000);
	assert_int_equal(modify_req.rate_burst, 9000);
	assert_int_equal(modify_req.rate_packet, 1500);
	assert_int_equal(modify_req.ece_options, 0);
	answer = EINVAL;
	assert_int_equal(skua_modify_qp_rate_limit(qp, &limit), EINVAL);
	answer = 0;
	modify_mask = 0;
	limit.comp_mask = 1;
	assert_int_equal(skua_modify_qp_rate_limit(qp, &limit), EINVAL);
	assert_int_equal(modify_mask, 0);
	skua_destroy_qp(qp);
	skua_destroy_cq(cq);
}

/* MEM-11 */
static void test_payload_comes_in_order(void **state)
{
	static const enum ibv_wr_opcode with[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_SEND_WITH_INV,
		IBV_WR_RDMA_READ,
	};
	static const enum ibv_wr_opcode without[] = { IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_LOCAL_INV, IBV_WR_TSO, 1000 };
	struct ibv_qp_cap cap = { .max_send_wr = 8 };
	struct ibv_cq *cq = make_cq(8);
	struct ibv_qp *qp = make_qp(cq, cq, &cap);
	size_t i;

	for (i = 0; i < sizeof(with) / sizeof(with[0]); i++)
		assert_int_equal(skua_query_qp_data_in_order(qp, with[i], 1), IBV_QUERY_QP_DATA_IN_ORDER_WHOLE_MSG);
	for (i = 0; i < sizeof(without) / sizeof(without[0]); i++)
		assert_int_equal(skua_query_qp_data_in_order(qp, without[i], 1), 0);
	skua_destroy_qp(qp);
	skua_destroy_cq(cq);
}

static void to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	modify_mask = 0;
	memset(&modify_req, 0, sizeof(modify_req));
	assert_int_equal(skua_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	qp->state = state;
}

/* ECE-1: of what both have the kernel is told, on the way to RTR. */
static void test_peers_agree_on_options(void **state)
{
	struct ibv_ece ece = { .vendor_id = SKUA_PCI_VENDOR_ID, .options = 6 };
	struct ibv_qp_cap cap = { .max_send_wr = 8 };
	uint64_t features = ctx.caps.features;
	struct ibv_cq *cq = make_cq(8);
	struct ibv_qp *qp = make_qp(cq, cq, &cap), *ud;

	assert_int_equal(skua_query_ece(qp, &ece), EOPNOTSUPP);
	assert_int_equal(skua_set_ece(qp, &ece), EOPNOTSUPP);
	ctx.caps.features |= 1 << SKUA_F_ECE | 1 << SKUA_F_UD;
	ctx.caps.ece_options = 5;
	ud = make_qp_of(IBV_QPT_UD, cq, cq, &cap);
	assert_int_equal(skua_query_ece(ud, &ece), EOPNOTSUPP);
	assert_int_equal(skua_set_ece(ud, &ece), EOPNOTSUPP);
	skua_destroy_qp(ud);

	/* Nobody has agreed on anything. */
	assert_int_equal(skua_query_ece(qp, &ece), 0);
	assert_int_equal(ece.vendor_id, SKUA_PCI_VENDOR_ID);
	assert_int_equal(ece.options, 5);
	to_state(qp, IBV_QPS_RTR);
	assert_int_equal(modify_req.ece_options, 0);
	assert_int_equal(skua_set_ece(qp, &ece), EINVAL);
	to_state(qp, IBV_QPS_RESET);
	to_state(qp, IBV_QPS_INIT);
	ece.options = 6;
	assert_int_equal(skua_set_ece(qp, &ece), 0);
	assert_int_equal(ece.options, 4);
	ece = (struct ibv_ece) { .vendor_id = 1, .options = 1 };
	assert_int_equal(skua_set_ece(qp, &ece), EINVAL);
	ece = (struct ibv_ece) { .vendor_id = SKUA_PCI_VENDOR_ID, .options = 1, .comp_mask = 1 };
	assert_int_equal(skua_set_ece(qp, &ece), EINVAL);
	assert_int_equal(skua_query_ece(qp, &ece), 0);
	assert_int_equal(ece.options, 4);
	to_state(qp, IBV_QPS_RTR);
	assert_int_equal(modify_mask, IBV_QP_STATE);
	assert_int_equal(modify_req.ece_options, 4);
	to_state(qp, IBV_QPS_RTS);
	assert_int_equal(modify_mask, 0);
	to_state(qp, IBV_QPS_RESET);
	assert_int_equal(skua_query_ece(qp, &ece), 0);
	assert_int_equal(ece.options, 5);
	to_state(qp, IBV_QPS_RTR);
	assert_int_equal(modify_req.ece_options, 0);
	ctx.caps.ece_options = 0;
	ctx.caps.features = features;
	skua_destroy_qp(qp);
	skua_destroy_cq(cq);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_reset_begins_anew),
		T(test_query_tells_the_real_capacities),
		T(test_rates_are_the_kernels_to_judge),
		T(test_payload_comes_in_order),
		T(test_peers_agree_on_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
