// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Raw packets: their QPs, TSO, VLAN tags, flows, WQs, and QPs that spread frames over WQs. */
#include "kernel.h"
#include "objects.h"

/* RAW-1: it sends frames, and nothing else. */
static void test_a_raw_packet_qp(void **state)
{
	struct ibv_cq *cq = make_cq(16);
	uint64_t features = ctx.caps.features;
	struct ibv_qp_cap cap = { .max_send_wr = 4, .max_send_sge = 1, .max_recv_wr = 7 };
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_SEND };
	struct ibv_qp *qp;

	assert_null(make_qp_of(IBV_QPT_RAW_PACKET, cq, NULL, &cap));
	assert_int_equal(errno, EOPNOTSUPP);
	ctx.caps.features |= 1 << SKUA_F_RAW_PACKET | 1 << SKUA_F_RC | 1 << SKUA_F_UD;
	qp = make_qp_of(IBV_QPT_RAW_PACKET, cq, NULL, &cap);
	assert_non_null(qp);
	assert_int_equal(qp_req.flags, 0);
	qp->state = IBV_QPS_RTS;
	assert_int_equal(skua_post_send(qp, &wr, &bad), 0);
	wr.opcode = IBV_WR_SEND_WITH_IMM;
	assert_int_equal(skua_post_send(qp, &wr, &bad), EINVAL);
	ctx.caps.features = features;
	skua_destroy_qp(qp);
	skua_destroy_cq(cq);
}

/* TSO-1: there is room for the headers that were asked for, in as many WRs as the program was told. */
static void test_a_raw_packet_qp_with_tso(void **state)
{
	static const uint16_t sizes[] = { 0, 1, 54, 138, 192, 65535 };
	uint64_t features = ctx.caps.features;
	struct ibv_cq *cq = make_cq(16);
	struct ibv_sge sges[30] = { { .length = 1 } };
	uint8_t headers[192] = { 0 };
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RAW_PACKET, .pd = &pd.ibv_pd, .send_cq = cq, .recv_cq = cq,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_MAX_TSO_HEADER,
	};
	struct ibv_qp *qp;
	unsigned int i;
	uint32_t n;

	ctx.caps.features |= 1 << SKUA_F_RAW_PACKET | 1 << SKUA_F_RC | 1 << SKUA_F_UD;
	attr.max_tso_header = 54;
	attr.cap.max_send_wr = 4;
	assert_null(skua_create_qp_ex(&ctx.vctx.context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	ctx.caps.features |= 1 << SKUA_F_TSO;
	attr.qp_type = IBV_QPT_UD;
	assert_null(skua_create_qp_ex(&ctx.vctx.context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	attr.qp_type = IBV_QPT_RAW_PACKET;
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_TSO, .sg_list = sges };

		attr.cap = (struct ibv_qp_cap) { .max_send_wr = 5, .max_send_sge = 3, .max_inline_data = 100 };
		attr.max_tso_header = sizes[i];
		qp = skua_create_qp_ex(&ctx.vctx.context, &attr);
		if (sizes[i] == 65535) {
			assert_null(qp);
			assert_int_equal(errno, EINVAL);
			continue;
		}
		assert_non_null(qp);
		assert_true(attr.cap.max_send_sge >= 3 && attr.cap.max_inline_data >= 100);
		qp->state = IBV_QPS_RTS;
		wr.num_sge = attr.cap.max_send_sge;
		wr.tso.hdr = headers;
		wr.tso.mss = 1;
		wr.tso.hdr_sz = sizes[i] + 1;
		assert_int_equal(skua_post_send(qp, &wr, &bad), EINVAL);
		wr.tso.hdr_sz = sizes[i];
		if (!sizes[i])
			assert_int_equal(skua_post_send(qp, &wr, &bad), EINVAL);
		for (n = 0; sizes[i] && n < attr.cap.max_send_wr; n++)
			assert_int_equal(skua_post_send(qp, &wr, &bad), 0);
		if (sizes[i])
			assert_int_equal(skua_post_send(qp, &wr, &bad), ENOMEM);
		assert_true(to_skua_qp(qp)->sq.pi <= to_skua_qp(qp)->sq.blocks);
		skua_destroy_qp(qp);
	}
	ctx.caps.features = features;
	skua_destroy_cq(cq);
}

/* QPs of other types have no flag, and no QP has others. The kernel is told of it, and of the rings. */
static void test_a_raw_packet_qp_that_strips_tags(void **state)
{
	const uint64_t features = ctx.caps.features, raw = 1 << SKUA_F_RAW_PACKET | 1 << SKUA_F_UD;
	const struct { uint64_t features; enum ibv_qp_type type; uint32_t flags; int gives; } rows[] = {
		{ raw, IBV_QPT_RAW_PACKET, IBV_QP_CREATE_CVLAN_STRIPPING, EOPNOTSUPP },
		{ raw | 1ull << SKUA_F_STRIP_CVLAN, IBV_QPT_RAW_PACKET, 0, 0 },
		{ raw | 1ull << SKUA_F_STRIP_CVLAN, IBV_QPT_RAW_PACKET, IBV_QP_CREATE_CVLAN_STRIPPING, 0 },
		{ raw | 1ull << SKUA_F_STRIP_CVLAN, IBV_QPT_RAW_PACKET, IBV_QP_CREATE_SCATTER_FCS, EOPNOTSUPP },
		{ raw | 1ull << SKUA_F_STRIP_CVLAN, IBV_QPT_UD, IBV_QP_CREATE_CVLAN_STRIPPING, EOPNOTSUPP },
	};
	struct ibv_cq *cq = make_cq(16);
	unsigned int i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ibv_qp_init_attr_ex attr = {
			.qp_type = rows[i].type, .pd = &pd.ibv_pd, .send_cq = cq, .recv_cq = cq,
			.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
			.cap = { .max_recv_wr = 7, .max_recv_sge = 1 }, .create_flags = rows[i].flags,
		};
		struct ibv_qp *qp;

		ctx.caps.features |= rows[i].features;
		memset(&qp_attr, 0, sizeof(qp_attr));
		errno = 0;
		qp = skua_create_qp_ex(&ctx.vctx.context, &attr);
		assert_int_equal(errno, rows[i].gives);
		assert_int_equal(qp_attr.create_flags, qp ? rows[i].flags : 0);
		if (qp) {
			assert_int_equal(attr.cap.max_recv_wr, 8);
			assert_int_equal(qp_req.log_rq_size, 3);
			assert_int_equal(qp_req.flags, SKUA_CREATE_QP_NO_SQ);
			assert_int_equal(qp_req.qp_handle, (uintptr_t)to_skua_qp(qp));
			skua_destroy_qp(qp);
		}
		ctx.caps.features = features;
	}
	skua_destroy_cq(cq);
}

static void test_flows_are_the_kernels(void **state)
{
	struct ibv_qp qp = { .context = &ctx.vctx.context };
	struct ibv_flow_attr attr = { .num_of_specs = 0 };
	struct ibv_flow *flow = skua_create_flow(&qp, &attr);

	assert_non_null(flow);
	answer = EBUSY;
	assert_int_equal(skua_destroy_flow(flow), EBUSY);
	answer = 0;
	assert_int_equal(skua_destroy_flow(flow), 0);
	answer = EPERM;
	assert_null(skua_create_flow(&qp, &attr));
	assert_int_equal(errno, EPERM);
	answer = 0;
}

/* A receive of a WQ completes as one of a QP. */
static void test_a_wq_receives(void **state)
{
	struct ibv_cq *cq = make_cq(16);
	struct ibv_wq_init_attr init = { .wq_type = IBV_WQT_RQ, .max_wr = 3, .max_sge = 2, .pd = &pd.ibv_pd, .cq = cq };
	struct ibv_wq_attr to_ready = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY };
	struct ibv_wq_attr to_reset = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RESET };
	struct ibv_recv_wr *bad, wr = { .wr_id = 0x55 };
	struct ibv_wq *wq = skua_create_wq(&ctx.vctx.context, &init);
	struct skua_cqe cqe = { .opcode = SKUA_CQE_RECV, .qpn = htole32(0x77) };
	struct ibv_wc wc;

	assert_non_null(wq);
	assert_int_equal(init.max_wr, 4);
	assert_int_equal(wq_req.log_rq_size, 2);
	assert_int_equal(wq->post_recv(wq, &wr, &bad), EINVAL);
	assert_int_equal(skua_modify_wq(wq, &to_ready), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(wq->post_recv(wq, &wr, &bad), 0);
	assert_int_equal(wq->post_recv(wq, &wr, &bad), ENOMEM);
	cqe.qp_handle = htole64(wq_req.wq_handle);
	cqe.flags = SKUA_CQE_PHASE;
	to_skua_cq(cq)->ring.cqes[0] = cqe;
	assert_int_equal(skua_poll_cq(cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 0x55);
	assert_int_equal(wq->post_recv(wq, &wr, &bad), 0);
	/* Nothing of it is left in RESET. */
	to_skua_cq(cq)->ring.cqes[1] = cqe;
	answer = EINVAL;
	assert_int_equal(skua_modify_wq(wq, &to_reset), EINVAL);
	answer = 0;
	assert_int_equal(skua_modify_wq(wq, &to_reset), 0);
	assert_int_equal(skua_poll_cq(cq, 1, &wc), 0);
	assert_int_equal(skua_modify_wq(wq, &to_ready), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(wq->post_recv(wq, &wr, &bad), 0);
	answer = EBUSY;
	assert_int_equal(skua_destroy_wq(wq), EBUSY);
	answer = 0;
	assert_int_equal(skua_destroy_wq(wq), 0);
	init.max_wr = 0;
	assert_null(skua_create_wq(&ctx.vctx.context, &init));
	init.max_wr = 1;
	init.max_sge = 31;
	assert_null(skua_create_wq(&ctx.vctx.context, &init));
	init.max_sge = 1;
	answer = ENOMEM;
	assert_null(skua_create_wq(&ctx.vctx.context, &init));
	assert_int_equal(errno, ENOMEM);
	answer = 0;
	skua_destroy_cq(cq);
}

static void test_a_qp_that_spreads(void **state)
{
	uint8_t key[40] = { 1, [39] = 2 };
	struct ibv_rwq_ind_table_init_attr table_attr = {};
	struct ibv_rwq_ind_table *table = skua_create_rwq_ind_table(&ctx.vctx.context, &table_attr);
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RAW_PACKET, .pd = &pd.ibv_pd, .rwq_ind_tbl = table,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH,
		.rx_hash_conf = { IBV_RX_HASH_FUNC_TOEPLITZ, 40, key, IBV_RX_HASH_SRC_IPV4 },
	};
	struct ibv_qp *qp;

	assert_non_null(table);
	qp = skua_create_qp_ex(&ctx.vctx.context, &attr);
	assert_non_null(qp);
	assert_memory_equal(rss_req.key, key, 40);
	assert_int_equal(rss_req.fields, IBV_RX_HASH_SRC_IPV4);
	assert_int_equal(rss_req.function, IBV_RX_HASH_FUNC_TOEPLITZ);
	assert_int_equal(rss_req.key_len, 40);
	assert_int_equal(skua_destroy_qp(qp), 0);
	/* It sends nothing. */
	attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr.send_ops_flags = IBV_QP_EX_WITH_SEND;
	assert_null(skua_create_qp_ex(&ctx.vctx.context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	attr.send_ops_flags = 0;
	/* Its WQs strip tags. */
	attr.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	attr.create_flags = IBV_QP_CREATE_CVLAN_STRIPPING;
	assert_null(skua_create_qp_ex(&ctx.vctx.context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	attr.create_flags = 0;
	qp = skua_create_qp_ex(&ctx.vctx.context, &attr);
	assert_non_null(qp);
	assert_int_equal(skua_destroy_qp(qp), 0);
	attr.rx_hash_conf.rx_hash_key_len = 41;
	assert_null(skua_create_qp_ex(&ctx.vctx.context, &attr));
	assert_int_equal(errno, EINVAL);
	attr.rx_hash_conf.rx_hash_key_len = 40;
	attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE;
	assert_null(skua_create_qp_ex(&ctx.vctx.context, &attr));
	assert_int_equal(errno, EINVAL);
	attr.comp_mask |= IBV_QP_INIT_ATTR_RX_HASH;
	answer = EOPNOTSUPP;
	assert_null(skua_create_qp_ex(&ctx.vctx.context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(skua_create_rwq_ind_table(&ctx.vctx.context, &table_attr));
	assert_int_equal(skua_destroy_rwq_ind_table(table), EOPNOTSUPP);
	answer = 0;
	assert_int_equal(skua_destroy_rwq_ind_table(table), 0);
}

static void test_a_qp_that_spreads_has_no_completions(void **state)
{
	uint8_t key[40] = {};
	struct ibv_rwq_ind_table_init_attr table_attr = {};
	struct ibv_rwq_ind_table *table = skua_create_rwq_ind_table(&ctx.vctx.context, &table_attr);
	struct ibv_qp_cap cap = { .max_send_wr = 8 };
	struct ibv_cq *cq = make_cq(8);
	struct fake_cq dev = device_of(cq);
	struct ibv_qp *other = make_qp(cq, cq, &cap), *qp;
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RAW_PACKET, .pd = &pd.ibv_pd, .rwq_ind_tbl = table, .send_cq = cq,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH,
		.rx_hash_conf = { IBV_RX_HASH_FUNC_TOEPLITZ, 40, key, IBV_RX_HASH_SRC_IPV4 },
	};
	struct ibv_wc wc;

	qp = skua_create_qp_ex(&ctx.vctx.context, &attr);
	assert_non_null(qp);
	assert_int_equal(qp->qp_num, other->qp_num);
	complete(&dev, other, SKUA_CQE_SEND);
	assert_int_equal(skua_destroy_qp(qp), 0);
	assert_int_equal(skua_poll_cq(cq, 1, &wc), 1);
	assert_int_equal(wc.qp_num, other->qp_num);
	skua_destroy_qp(other);
	skua_destroy_cq(cq);
	skua_destroy_rwq_ind_table(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_a_raw_packet_qp),
		T(test_a_raw_packet_qp_with_tso),
		T(test_a_raw_packet_qp_that_strips_tags),
		T(test_flows_are_the_kernels),
		T(test_a_wq_receives),
		T(test_a_qp_that_spreads),
		T(test_a_qp_that_spreads_has_no_completions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
