// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* XRC: its domains, both types of QP, QPs that another process created, and SRQs. */
#include "kernel.h"
#include "objects.h"

#define XRC_FEATURES	(1 << SKUA_F_XRC | 1 << SKUA_F_SRQ | 1 << SKUA_F_RC)

/* XRC-5: the kernel learns no address of this process. */
static void test_an_xrc_recv_qp_has_no_queues(void **state)
{
	struct verbs_xrcd xrcd = {};
	struct ibv_cq *cq = make_cq(16);
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = &xrcd.xrcd,
		.send_cq = cq, .recv_cq = cq, .cap = { .max_send_wr = 3, .max_recv_wr = 5 },
	};
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct ibv_send_wr *bad_send, send = { .opcode = IBV_WR_SEND };
	struct ibv_recv_wr *bad_recv, recv = { .num_sge = 0 };
	uint64_t features = ctx.caps.features;
	struct ibv_qp *qp;

	assert_null(skua_create_qp_ex(&ctx.vctx.context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	ctx.caps.features |= XRC_FEATURES;
	attr.comp_mask = IBV_QP_INIT_ATTR_PD;
	assert_null(skua_create_qp_ex(&ctx.vctx.context, &attr));
	assert_int_equal(errno, EINVAL);
	attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
	qp = skua_create_qp_ex(&ctx.vctx.context, &attr);
	assert_non_null(qp);
	assert_null(qp_attr.send_cq);
	assert_null(qp_attr.recv_cq);
	assert_ptr_equal(qp_attr.xrcd, &xrcd.xrcd);
	assert_int_equal(attr.cap.max_send_wr, 0);
	assert_int_equal(attr.cap.max_recv_wr, 0);
	qp->state = IBV_QPS_RTS;
	assert_int_equal(skua_post_send(qp, &send, &bad_send), EINVAL);
	assert_int_not_equal(skua_post_recv(qp, &recv, &bad_recv), 0);
	assert_int_equal(skua_modify_qp(qp, &reset, IBV_QP_STATE), 0);
	assert_int_equal(skua_destroy_qp(qp), 0);
	answer = ENOMEM;
	assert_null(skua_create_qp_ex(&ctx.vctx.context, &attr));
	assert_int_equal(errno, ENOMEM);
	answer = 0;
	ctx.caps.features = features;
	skua_destroy_cq(cq);
}

static void test_a_qp_that_another_made(void **state)
{
	struct ibv_qp_open_attr attr = { .qp_num = 0x1234 };
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_SEND };
	struct ibv_qp *qp = skua_open_qp(&ctx.vctx.context, &attr);

	assert_non_null(qp);
	assert_int_equal(qp->qp_num, 0x1234);
	assert_int_equal(skua_post_send(qp, &wr, &bad), EINVAL);
	assert_int_equal(skua_destroy_qp(qp), 0);
	answer = EINVAL;
	assert_null(skua_open_qp(&ctx.vctx.context, &attr));
	assert_int_equal(errno, EINVAL);
	answer = 0;
}

static void test_a_domain_is_opened_and_closed(void **state)
{
	struct ibv_xrcd_init_attr attr = { 0 };
	struct ibv_xrcd *xrcd = skua_open_xrcd(&ctx.vctx.context, &attr);

	assert_non_null(xrcd);
	answer = EBUSY;
	assert_int_equal(skua_close_xrcd(xrcd), EBUSY);
	answer = 0;
	assert_int_equal(skua_close_xrcd(xrcd), 0);
	answer = EINVAL;
	assert_null(skua_open_xrcd(&ctx.vctx.context, &attr));
	assert_int_equal(errno, EINVAL);
	answer = 0;
}

/* However long an atomic is, there is room for as many WRs as the program was told. XRC-8 */
static void test_an_xrc_send_qp_takes_no_more_than_it_said(void **state)
{
	struct ibv_cq *cq = make_cq(16);
	uint64_t features = ctx.caps.features;
	struct ibv_qp_cap cap = { .max_send_wr = 16, .max_send_sge = 1, .max_recv_wr = 7 };
	struct ibv_sge sge = { .length = 8 };
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .sg_list = &sge, .num_sge = 1 };
	struct ibv_qp *qp;
	uint32_t i;

	assert_null(make_qp_of(IBV_QPT_XRC_SEND, cq, NULL, &cap));
	assert_int_equal(errno, EOPNOTSUPP);
	ctx.caps.features |= XRC_FEATURES | 1 << SKUA_F_ATOMIC;
	qp = make_qp_of(IBV_QPT_XRC_SEND, cq, NULL, &cap);
	assert_non_null(qp);
	assert_true(qp_req.flags & SKUA_CREATE_QP_NO_RQ);
	assert_int_equal(cap.max_recv_wr, 0);
	qp->state = IBV_QPS_RTS;
	for (i = 0; i < cap.max_send_wr; i++)
		assert_int_equal(skua_post_send(qp, &wr, &bad), 0);
	assert_int_equal(skua_post_send(qp, &wr, &bad), ENOMEM);
	assert_true(to_skua_qp(qp)->sq.pi <= to_skua_qp(qp)->sq.blocks);
	ctx.caps.features = features;
	skua_destroy_qp(qp);
	skua_destroy_cq(cq);
}

/* A program may name a CQ for receives. The kernel counts no use of it, so that it may go before the QP. */
static void test_an_xrc_send_qp_has_no_receive_cq(void **state)
{
	uint64_t features = ctx.caps.features;
	struct ibv_qp_cap cap = { .max_send_wr = 4, .max_send_sge = 1 };
	struct ibv_cq *cq = make_cq(16), *named = make_cq(16);
	struct fake_cq dev = device_of(named);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct ibv_qp *qp;
	struct ibv_wc wc;

	ctx.caps.features |= XRC_FEATURES;
	qp = make_qp_of(IBV_QPT_XRC_SEND, cq, named, &cap);
	assert_non_null(qp);
	complete(&dev, qp, SKUA_CQE_RECV);
	assert_int_equal(skua_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	assert_int_equal(skua_poll_cq(named, 1, &wc), 1);
	skua_destroy_cq(named);
	assert_int_equal(skua_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	skua_destroy_qp(qp);
	ctx.caps.features = features;
	skua_destroy_cq(cq);
}

/* XRC-2, XRC-12: its CQEs go with it, and those of others stay. */
static void test_an_xrc_srq(void **state)
{
	struct verbs_xrcd xrcd = {};
	struct ibv_cq *cq = make_cq(16);
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 5, .max_sge = 2 }, .srq_type = IBV_SRQT_XRC, .pd = &pd.ibv_pd, .xrcd = &xrcd.xrcd,
		.cq = cq, .srq_context = &xrcd, .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
							     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
	};
	struct ibv_srq_init_attr basic = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct skua_cq_ring *ring = &to_skua_cq(cq)->ring;
	uint64_t features = ctx.caps.features;
	struct ibv_srq *srq, *other;
	const struct skua_cqe *cqe;
	uint32_t number, i;

	assert_null(skua_create_srq_ex(&ctx.vctx.context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	ctx.caps.features |= XRC_FEATURES;
	attr.comp_mask &= ~IBV_SRQ_INIT_ATTR_CQ;
	assert_null(skua_create_srq_ex(&ctx.vctx.context, &attr));
	assert_int_equal(errno, EINVAL);
	attr.comp_mask |= IBV_SRQ_INIT_ATTR_CQ;
	srq = skua_create_srq_ex(&ctx.vctx.context, &attr);
	assert_non_null(srq);
	assert_ptr_equal(srq->srq_context, &xrcd);
	assert_int_equal(attr.attr.max_wr, 8);
	assert_int_equal(srq_req.log_size, 3);
	assert_int_equal(srq_req.srq_handle, (uintptr_t)to_skua_srq(srq));
	assert_int_equal(skua_get_srq_num(srq, &number), 0);
	assert_int_equal(number, 0x77);
	other = skua_create_srq(&pd.ibv_pd, &basic);
	assert_int_equal(skua_get_srq_num(other, &number), EOPNOTSUPP);
	for (i = 0; i < 4; i++)
		*skua_cq_slot(ring, i) = (struct skua_cqe) {
			.opcode = SKUA_CQE_RECV, .qpn = htole32(9), .flags = SKUA_CQE_PHASE | SKUA_CQE_FROM_SRQ,
			.qp_handle = htole64(i % 2 ? (uintptr_t)to_skua_srq(srq) : (uintptr_t)to_skua_srq(other)),
		};
	assert_int_equal(skua_destroy_srq(srq), 0);
	for (i = 0; i < 2; i++) {
		assert_true(skua_cq_peek(ring, &cqe));
		assert_int_equal(le64toh(cqe->qp_handle), (uintptr_t)to_skua_srq(other));
		skua_cq_consume(ring);
	}
	assert_false(skua_cq_peek(ring, &cqe));
	ctx.caps.features = features;
	assert_int_equal(skua_destroy_srq(other), 0);
	skua_destroy_cq(cq);
}

/* XRC-12: a QP goes whose number a target QP had, of which an XRC SRQ's receive tells that nobody has polled. */
static void test_a_qp_takes_no_cqes_of_others_srqs_along(void **state)
{
	struct ibv_cq *cq = make_cq(16);
	struct ibv_xrcd xrcd = { .context = &ctx.vctx.context };
	struct ibv_srq_init_attr_ex attr = {
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC, .pd = &pd.ibv_pd, .xrcd = &xrcd, .cq = cq, .attr = { .max_wr = 8, .max_sge = 1 },
	};
	struct ibv_srq_init_attr basic = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct skua_cq_ring *ring = &to_skua_cq(cq)->ring;
	uint64_t features = ctx.caps.features;
	struct ibv_srq *srq, *own = skua_create_srq(&pd.ibv_pd, &basic);
	struct ibv_qp_init_attr of_qp = {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq, .cap = { .max_send_wr = 4 },
	};
	struct ibv_recv_wr *bad, wr = {};
	const struct skua_cqe *cqe;
	struct ibv_qp *qp;

	ctx.caps.features |= XRC_FEATURES;
	srq = skua_create_srq_ex(&ctx.vctx.context, &attr);
	assert_true(srq && own);
	for (int with_srq = 0; with_srq < 2; with_srq++) {
		of_qp.srq = with_srq ? own : NULL;
		qp = skua_create_qp(&pd.ibv_pd, &of_qp);
		assert_non_null(qp);
		assert_int_equal(skua_post_srq_recv(own, &wr, &bad), 0);
		for (uint32_t i = 0; i < 2; i++)
			*skua_cq_slot(ring, ring->ci + i) = (struct skua_cqe) {
				.opcode = SKUA_CQE_RECV, .qpn = htole32(qp->qp_num),
				.flags = SKUA_CQE_PHASE | (i || with_srq ? SKUA_CQE_FROM_SRQ : 0),
				.qp_handle = htole64(i ? (uintptr_t)to_skua_srq(srq) : with_srq ? (uintptr_t)to_skua_srq(own) :
						     (uintptr_t)qp),
			};
		assert_int_equal(skua_destroy_qp(qp), 0);
		assert_int_equal(to_skua_srq(own)->ci, with_srq);
		assert_true(skua_cq_peek(ring, &cqe));
		assert_int_equal(le64toh(cqe->qp_handle), (uintptr_t)to_skua_srq(srq));
		skua_cq_consume(ring);
		assert_false(skua_cq_peek(ring, &cqe));
	}
	ctx.caps.features = features;
	assert_int_equal(skua_destroy_srq(srq), 0);
	assert_int_equal(skua_destroy_srq(own), 0);
	skua_destroy_cq(cq);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_an_xrc_recv_qp_has_no_queues),
		T(test_a_qp_that_another_made),
		T(test_a_domain_is_opened_and_closed),
		T(test_an_xrc_send_qp_takes_no_more_than_it_said),
		T(test_an_xrc_send_qp_has_no_receive_cq),
		T(test_an_xrc_srq),
		T(test_a_qp_takes_no_cqes_of_others_srqs_along),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
