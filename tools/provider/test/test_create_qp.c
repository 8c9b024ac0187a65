// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Creating QPs: sizes, addresses, capacities, and how many WRs they take. */
#include "kernel.h"
#include "objects.h"

/* WRs of the largest size are as many as of the smallest: what the kernel says is so for all. */
static void test_as_many_wrs_of_any_size(void **state)
{
	struct ibv_cq *cq = make_cq(16);
	uint32_t sge;

	for (sge = 1; sge <= 30; sge++) {
		struct ibv_qp_cap cap = {
			.max_send_wr = 256, .max_recv_wr = 256, .max_send_sge = sge,
			.max_recv_sge = sge, .max_inline_data = sge * 17,
		};
		struct ibv_qp *qp = make_qp(cq, cq, &cap);

		assert_non_null(qp);
		assert_int_equal(cap.max_send_wr, 256);
		assert_int_equal(cap.max_recv_wr, 256);
		skua_destroy_qp(qp);
	}
	skua_destroy_cq(cq);
}

/* Whatever is asked for: the rings hold it, in WRs of the largest size. */
static void holds_what_its_capacities_say(enum ibv_qp_type type, uint32_t header)
{
	struct ibv_cq *cq = make_cq(16);
	uint32_t sge, data, wr;

	for (sge = 0; sge <= 30; sge++)
		for (data = 0; data <= 512; data += 37)
			for (wr = 1; wr <= 200; wr = wr * 3 + 1) {
				struct ibv_qp_cap asked = {
					.max_send_wr = wr, .max_recv_wr = wr,
					.max_send_sge = sge, .max_recv_sge = sge,
					.max_inline_data = data,
				};
				struct ibv_qp_cap cap = asked;
				struct ibv_qp *qp = make_qp_of(type, cq, cq, &cap);
				uint32_t bytes, payload;

				assert_non_null(qp);
				assert_true(cap.max_send_wr >= wr && cap.max_recv_wr >= wr);
				assert_true(cap.max_send_sge >= sge && cap.max_send_sge <= 30);
				assert_true(cap.max_recv_sge >= sge && cap.max_recv_sge <= 30);
				assert_true(cap.max_inline_data >= data &&
					    cap.max_inline_data <= 512);
				payload = cap.max_send_sge * 16;
				if (payload < cap.max_inline_data)
					payload = cap.max_inline_data;
				bytes = skua_wqe_blocks(header + payload) * 64 * cap.max_send_wr;
				assert_true(bytes <= 64u << qp_req.log_sq_blocks);
				assert_int_equal(cap.max_recv_wr, 1u << qp_req.log_rq_size);
				assert_true(16 + 16 * cap.max_recv_sge <=
					    1u << qp_req.log_rq_stride);
				skua_destroy_qp(qp);
			}
	skua_destroy_cq(cq);
}

static void test_qp_holds_what_its_capacities_say(void **state)
{
	ctx.caps.features |= 1 << SKUA_F_UC | 1 << SKUA_F_UD;
	holds_what_its_capacities_say(IBV_QPT_RC, 32);
	holds_what_its_capacities_say(IBV_QPT_UC, 32);
	holds_what_its_capacities_say(IBV_QPT_UD, 64);
}

static void test_types_come_with_features(void **state)
{
	static const struct {
		enum ibv_qp_type type;
		uint64_t feature;
		enum skua_peer peer;
	} table[] = {
		{ IBV_QPT_UC, 1 << SKUA_F_UC, SKUA_PEER_CONNECTED },
		{ IBV_QPT_UD, 1 << SKUA_F_UD, SKUA_PEER_UD },
	};
	const uint64_t without = ctx.caps.features & ~(1 << SKUA_F_UC | 1 << SKUA_F_UD);
	struct ibv_qp_cap cap = { .max_send_wr = 4 };
	struct ibv_cq *cq = make_cq(16);
	struct ibv_qp *qp;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		ctx.caps.features = without | table[!i].feature;
		assert_null(make_qp_of(table[i].type, cq, cq, &cap));
		assert_int_equal(errno, EOPNOTSUPP);
		ctx.caps.features = without | table[i].feature;
		qp = make_qp_of(table[i].type, cq, cq, &cap);
		assert_non_null(qp);
		assert_int_equal(to_skua_qp(qp)->peer, table[i].peer);
		skua_destroy_qp(qp);
	}
	ctx.caps.features |= 1 << SKUA_F_UC | 1 << SKUA_F_UD;
	assert_null(make_qp_of(IBV_QPT_RAW_PACKET, cq, cq, &cap));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(make_qp_of(1, cq, cq, &cap));
	assert_int_equal(errno, EOPNOTSUPP);
	skua_destroy_cq(cq);
}

static void test_qp_tells_where_its_memory_is(void **state)
{
	struct ibv_qp_cap cap = {
		.max_send_wr = 64, .max_recv_wr = 10, .max_send_sge = 1, .max_recv_sge = 1,
	};
	struct ibv_cq *cq = make_cq(16);
	struct ibv_qp *qp = make_qp(cq, cq, &cap);

	assert_int_equal(qp_req.log_sq_blocks, 6);
	assert_int_equal(qp_req.log_rq_size, 4);
	assert_int_equal(qp_req.log_rq_stride, 5);
	assert_int_equal(qp_req.flags, 0);
	assert_int_equal(qp_req.qp_handle, (uintptr_t)to_skua_qp(qp));
	assert_int_equal(qp_req.sq_addr % 4096, 0);
	assert_int_equal(qp_req.rq_addr, qp_req.sq_addr + 64 * 64);
	assert_int_equal(qp_req.sq_dbr_addr, qp_req.rq_addr + 16 * 32);
	assert_int_equal(qp_req.rq_dbr_addr, qp_req.sq_dbr_addr + 64);
	skua_destroy_qp(qp);
	skua_destroy_cq(cq);
}

/* Entries and records begin where they may (PL-9, "Records"). */
static void test_a_small_qp_takes_a_page(void **state)
{
	struct ibv_cq *cq = make_cq(16);

	for (uint32_t sges = 1; sges <= 16; sges++) {
		struct ibv_qp_cap cap = {
			.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = sges,
		};
		struct ibv_qp *qp = make_qp(cq, cq, &cap);

		assert_int_equal(qp_req.rq_addr % (1u << qp_req.log_rq_stride), 0);
		assert_int_equal(qp_req.sq_dbr_addr % 64, 0);
		assert_int_equal(qp_req.rq_dbr_addr, qp_req.sq_dbr_addr + 64);
		assert_true(qp_req.rq_addr >= qp_req.sq_addr + 64);
		assert_true(qp_req.sq_dbr_addr >= qp_req.rq_addr + (1u << qp_req.log_rq_stride));
		assert_int_equal(qp_req.rq_dbr_addr / 4096, qp_req.sq_addr / 4096);
		skua_destroy_qp(qp);
	}
	skua_destroy_cq(cq);
}

static void test_qp_without_queues(void **state)
{
	struct ibv_qp_cap cap = { .max_send_wr = 0 };
	struct ibv_recv_wr rwr = {}, *bad_recv;
	struct ibv_send_wr wr = {}, *bad_send;
	struct ibv_cq *cq = make_cq(16);
	struct ibv_qp *qp = make_qp(cq, cq, &cap);

	assert_int_equal(qp_req.flags, SKUA_CREATE_QP_NO_SQ | SKUA_CREATE_QP_NO_RQ);
	assert_int_equal(qp_req.sq_addr | qp_req.rq_addr | qp_req.sq_dbr_addr |
			 qp_req.rq_dbr_addr, 0);
	assert_int_equal(qp_req.log_sq_blocks | qp_req.log_rq_size | qp_req.log_rq_stride, 0);
	qp->state = IBV_QPS_RTS;
	wr.opcode = IBV_WR_SEND;
	assert_int_equal(skua_post_send(qp, &wr, &bad_send), ENOMEM);
	assert_int_equal(skua_post_recv(qp, &rwr, &bad_recv), ENOMEM);
	skua_destroy_qp(qp);
	skua_destroy_cq(cq);
}

static void test_qp_limits(void **state)
{
	static const struct ibv_qp_cap bad[] = {
		{ .max_send_wr = 257 },
		{ .max_send_wr = 1, .max_send_sge = 31 },
		{ .max_send_wr = 1, .max_inline_data = 513 },
		{ .max_send_wr = UINT32_MAX },
		{ .max_recv_wr = 257 },
		{ .max_recv_wr = UINT32_MAX },
		{ .max_recv_wr = 1, .max_recv_sge = 31 },
		{ .max_recv_wr = 1, .max_recv_sge = UINT32_MAX },
	};
	struct ibv_cq *cq = make_cq(16);
	struct ibv_qp_cap cap;
	unsigned int i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cap = bad[i];
		assert_null(make_qp(cq, cq, &cap));
		assert_int_equal(errno, EINVAL);
	}
	cap = (struct ibv_qp_cap) { .max_send_wr = 1 };
	answer = ENOSPC;
	assert_null(make_qp(cq, cq, &cap));
	assert_int_equal(errno, ENOSPC);
	answer = 0;
	skua_destroy_cq(cq);
}

static unsigned int post_sends(struct ibv_qp *qp)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;
	unsigned int n = 0;

	while (!skua_post_send(qp, &wr, &bad))
		n++;
	return n;
}

static unsigned int post_sends_by_calls(struct ibv_qp *qp)
{
	struct ibv_qp_ex *qp_ex = &to_skua_qp(qp)->vqp.qp_ex;
	unsigned int n = 0;

	for (;; n++) {
		ibv_wr_start(qp_ex);
		ibv_wr_send(qp_ex);
		if (ibv_wr_complete(qp_ex))
			return n;
	}
}

static unsigned int post_recvs(struct ibv_qp *qp)
{
	struct ibv_recv_wr wr = {}, *bad;
	unsigned int n = 0;

	while (!skua_post_recv(qp, &wr, &bad))
		n++;
	return n;
}

/*
 * A program sizes its CQ by what it was told, and posts until there is no room: however small its
 * WRs, there are no more.
 */
static void test_a_qp_takes_no_more_than_it_said(void **state)
{
	struct ibv_cq *cq = make_cq(16);
	struct ibv_qp_init_attr_ex asked = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .pd = &pd.ibv_pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	uint32_t sge, max_qp_wr = ctx.caps.max_qp_wr;

	ctx.caps.max_qp_wr = 200;
	for (sge = 1; sge <= 30; sge++) {
		struct ibv_qp_init_attr_ex attr = asked;
		struct ibv_qp *qp;

		attr.cap = (struct ibv_qp_cap) {
			.max_send_wr = sge == 30 ? 200 : 10, .max_send_sge = sge,
			.max_recv_wr = sge == 30 ? 200 : 10, .max_recv_sge = 1,
		};
		qp = skua_create_qp_ex(&ctx.vctx.context, &attr);
		qp->state = IBV_QPS_RTS;
		assert_int_equal(post_recvs(qp), attr.cap.max_recv_wr);
		assert_int_equal(sge % 2 ? post_sends(qp) : post_sends_by_calls(qp),
				 attr.cap.max_send_wr);
		skua_destroy_qp(qp);
	}
	ctx.caps.max_qp_wr = max_qp_wr;
	skua_destroy_cq(cq);
}

static void test_qp_ex(void **state)
{
	struct ibv_cq *cq = make_cq(16);
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .pd = &pd.ibv_pd,
		.cap = { .max_send_wr = 3, .max_send_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
	};
	struct ibv_qp *qp;

	qp = skua_create_qp_ex(&ctx.vctx.context, &attr);
	assert_non_null(qp);
	assert_int_equal(attr.cap.max_send_wr, 4);
	assert_true(to_skua_qp(qp)->vqp.comp_mask & VERBS_QP_EX);
	skua_destroy_qp(qp);

	attr.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP;
	assert_null(skua_create_qp_ex(&ctx.vctx.context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
	attr.create_flags = IBV_QP_CREATE_SCATTER_FCS;
	assert_null(skua_create_qp_ex(&ctx.vctx.context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	attr.comp_mask = IBV_QP_INIT_ATTR_PD;
	attr.qp_type = IBV_QPT_UD;
	assert_null(skua_create_qp_ex(&ctx.vctx.context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	skua_destroy_cq(cq);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_as_many_wrs_of_any_size),
		T(test_qp_holds_what_its_capacities_say),
		T(test_types_come_with_features),
		T(test_qp_tells_where_its_memory_is),
		T(test_a_small_qp_takes_a_page),
		T(test_qp_without_queues),
		T(test_qp_limits),
		T(test_a_qp_takes_no_more_than_it_said),
		T(test_qp_ex),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
