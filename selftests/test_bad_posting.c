// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Work requests that are refused when they are posted. See bad.h. */
#include <errno.h>
#include <string.h>

#include "kselftest_harness.h"
#include "bad.h"

/* What rows of post_send() are about. */
enum { RC = 1 << IBV_QPT_RC, UD = 1 << IBV_QPT_UD, BOTH = RC | UD, INLINE = IBV_SEND_INLINE };

TEST_F(bad, post_send)
{
	struct ibv_ah_attr ah_attr = side_ah(&self->s[0], &self->s[1].gid);
	struct ibv_ah *ah = ibv_create_ah(self->s[0].pd, &ah_attr);
	struct side of[2] = { self->s[0], self->s[0] };
	static uint8_t bytes[4096];
	static struct ibv_sge sges[64];

	ASSERT_NE(NULL, ah);
	of[1].qp = side_create_qp_of(&of[1], IBV_QPT_UD);
	ASSERT_NE(NULL, of[1].qp);
	ASSERT_EQ(0, qp_ud_to_rts(of[1].qp, 0x1234));
	for (unsigned int i = 0; i < 64; i++)
		sges[i] = (struct ibv_sge){ (uintptr_t)bytes, 1, of[0].mr->lkey };

	for EACH(s, of) {
		struct ibv_qp_init_attr init;
		struct ibv_qp_attr attr;
		uint32_t inline_max, sge_max;

		ASSERT_EQ(0, ibv_query_qp(s->qp, &attr, IBV_QP_CAP, &init));
		inline_max = init.cap.max_inline_data;
		sge_max = init.cap.max_send_sge;

		const struct {
			const char *name;
			unsigned int on;
			enum ibv_wr_opcode opcode;
			int num_sge;
			unsigned int flags;
			uint32_t first;		/* length of the first SGE */
		} rows[] = {
			{ "one SGE too many", BOTH, IBV_WR_SEND, sge_max + 1, 0, 1 },
			{ "64 SGEs", BOTH, IBV_WR_SEND, 64, 0, 1 },
			{ "64 SGEs of a WRITE", RC, IBV_WR_RDMA_WRITE, 64, 0, 1 },
			{ "one SGE too many, of a READ", RC, IBV_WR_RDMA_READ, sge_max + 1, 0, 1 },
			{ "less than no SGE", BOTH, IBV_WR_SEND, -1, 0, 1 },
			{ "less than no SGE, inline", BOTH, IBV_WR_SEND, -1, INLINE, 1 },
			{ "one SGE too many, inline", BOTH, IBV_WR_SEND, sge_max + 1, INLINE, 1 },
			{ "one byte too many, inline", BOTH, IBV_WR_SEND, 1, INLINE, inline_max + 1 },
			{ "bytes that add up to too many", BOTH, IBV_WR_SEND, 2, INLINE, inline_max },
			{ "the same, of a WRITE", RC, IBV_WR_RDMA_WRITE, 2, INLINE, inline_max },
			{ "bytes that wrap around", BOTH, IBV_WR_SEND, 2, INLINE, UINT32_MAX },
			{ "an inline READ", RC, IBV_WR_RDMA_READ, 1, INLINE, 1 },
			{ "an inline atomic", RC, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, INLINE, 8 },
			{ "an atomic without result", RC, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 0, 8 },
			{ "an atomic with two results", RC, IBV_WR_ATOMIC_CMP_AND_SWP, 2, 0, 7 },
			{ "a WRITE", UD, IBV_WR_RDMA_WRITE, 1, 0, 1 },
			{ "a WRITE with immediate", UD, IBV_WR_RDMA_WRITE_WITH_IMM, 1, 0, 1 },
			{ "a READ", UD, IBV_WR_RDMA_READ, 1, 0, 1 },
			{ "an atomic", UD, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 8 },
			{ "a key to be invalidated there", UD, IBV_WR_SEND_WITH_INV, 1, 0, 1 },
			{ "a key to be invalidated here", UD, IBV_WR_LOCAL_INV, 0, 0, 1 },
			{ "a memory window", UD, IBV_WR_BIND_MW, 0, 0, 1 },
			{ "TSO", BOTH, IBV_WR_TSO, 1, 0, 1 },
			{ "unknown opcode", BOTH, 77, 1, 0, 1 },
			{ "an opcode below 0", BOTH, -1, 1, 0, 1 },
		};

		for EACH(row, rows) {
			struct ibv_send_wr wr = {
				.opcode = row->opcode, .sg_list = sges, .num_sge = row->num_sge,
				.send_flags = row->flags | IBV_SEND_SIGNALED,
			};

			if (!(row->on & 1 << s->qp->qp_type))
				continue;
			if (s->qp->qp_type == IBV_QPT_UD) {
				wr.wr.ud.ah = ah;
				wr.wr.ud.remote_qpn = 77;
				wr.wr.ud.remote_qkey = 0x1234;
			} else {
				wr.wr.rdma.remote_addr = (uintptr_t)self->s[1].mem;
				wr.wr.rdma.rkey = self->s[1].mr->rkey;
			}
			sges[0].length = row->first;
			GAVE(EINVAL, side_post(s, &wr), row);
		}
	}
	ASSERT_EQ(0, ibv_destroy_qp(of[1].qp));
	ASSERT_EQ(0, ibv_destroy_ah(ah));
}

/* Of a list, what comes before the bad one is posted. */
TEST_F(bad, post_send_in_the_middle_of_a_list)
{
	struct side *a = &self->s[0], *b = &self->s[1];
	struct ibv_sge sge = { (uintptr_t)a->mem, 64, a->mr->lkey };
	struct ibv_send_wr wr[3], *bad = NULL;
	struct ibv_wc wc;

	for (unsigned int i = 0; i < 3; i++)
		wr[i] = (struct ibv_send_wr){
			.wr_id = i, .next = i < 2 ? &wr[i + 1] : NULL, .sg_list = &sge, .num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { (uintptr_t)b->mem, b->mr->rkey },
		};
	wr[1].opcode = 77;
	ASSERT_EQ(EINVAL, ibv_post_send(a->qp, wr, &bad));
	ASSERT_EQ(&wr[1], bad);
	ASSERT_TRUE(side_wait(a, &wc, 5));
	ASSERT_EQ(0, wc.wr_id);
	ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
	ASSERT_TRUE(pair_transfer(self->s));
}

TEST_F(bad, post_recv)
{
	struct side *s = &self->s[1];
	static struct ibv_sge sges[64];
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	ASSERT_EQ(0, ibv_query_qp(s->qp, &attr, IBV_QP_CAP, &init));
	const struct {
		const char *name;
		int num_sge;
	} rows[] = {
		{ "one SGE too many", init.cap.max_recv_sge + 1 },
		{ "64 SGEs", 64 },
		{ "less than no SGE", -1 },
		{ "the least that can be said", INT32_MIN },
	};

	for EACH(row, rows) {
		struct ibv_recv_wr *bad = NULL, wr = { .sg_list = sges, .num_sge = row->num_sge };

		GAVE(EINVAL, ibv_post_recv(s->qp, &wr, &bad), row);
		ASSERT_EQ(&wr, bad);
	}
}

TEST_F(bad, post_in_the_wrong_state)
{
	struct side s = self->s[0];
	struct ibv_sge sge = { (uintptr_t)s.mem, 8, s.mr->lkey };
	struct ibv_send_wr send = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };
	struct ibv_recv_wr *bad, recv = { .sg_list = &sge, .num_sge = 1 };

	s.qp = side_create_qp(&s);
	ASSERT_NE(NULL, s.qp);
	ASSERT_EQ(EINVAL, side_post(&s, &send));
	ASSERT_EQ(EINVAL, ibv_post_recv(s.qp, &recv, &bad));
	ASSERT_EQ(0, qp_to_init(s.qp, 0));
	ASSERT_EQ(EINVAL, side_post(&s, &send));
	ASSERT_EQ(0, ibv_post_recv(s.qp, &recv, &bad));
	ASSERT_EQ(0, qp_to_rtr(s.qp, &s, &self->s[1], self->s[1].qp->qp_num));
	ASSERT_EQ(EINVAL, side_post(&s, &send));
	ASSERT_EQ(0, ibv_destroy_qp(s.qp));
	ASSERT_TRUE(pair_transfer(self->s));
}

TEST_F(bad, post_datagram_in_the_wrong_state)
{
	static const int masks[] = {
		0, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, IBV_QP_STATE,
	};
	struct ibv_ah_attr ah_attr = side_ah(&self->s[0], &self->s[1].gid);
	struct side s = self->s[0];
	struct ibv_ah *ah = ibv_create_ah(s.pd, &ah_attr);
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .wr.ud.ah = ah };

	s.qp = side_create_qp_of(&s, IBV_QPT_UD);
	ASSERT_NE(NULL, ah);
	ASSERT_NE(NULL, s.qp);
	for (enum ibv_qp_state state = IBV_QPS_RESET; state < IBV_QPS_RTS; state++) {
		struct ibv_qp_attr attr = { .qp_state = state, .port_num = 1, .qkey = 0x1234 };

		if (state)
			ASSERT_EQ(0, ibv_modify_qp(s.qp, &attr, masks[state]));
		ASSERT_EQ(EINVAL, side_post(&s, &wr));
	}
	ASSERT_EQ(0, ibv_destroy_qp(s.qp));
	ASSERT_EQ(0, ibv_destroy_ah(ah));
	ASSERT_TRUE(pair_transfer(self->s));
}

TEST_F(bad, post_to_a_queue_that_is_not_there)
{
	struct side s = self->s[0];
	struct ibv_qp_init_attr init = { .send_cq = s.cq, .recv_cq = s.cq, .qp_type = IBV_QPT_RC };
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND };
	struct ibv_recv_wr *bad, recv = {};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	s.qp = ibv_create_qp(s.pd, &init);
	ASSERT_NE(NULL, s.qp);
	ASSERT_EQ(0, qp_to_init(s.qp, 0));
	ASSERT_EQ(0, ibv_modify_qp(s.qp, &attr, IBV_QP_STATE));
	EXPECT_EQ(ENOMEM, side_post(&s, &send));
	EXPECT_EQ(ENOMEM, ibv_post_recv(s.qp, &recv, &bad));
	ASSERT_EQ(0, ibv_destroy_qp(s.qp));
	ASSERT_TRUE(pair_transfer(self->s));
}

/* The same by calls. An error is told at the end, and nothing is posted. */
TEST_F(bad, posting_by_calls)
{
	struct side *s = &self->s[0];
	struct ibv_qp_init_attr_ex init = {
		.send_cq = s->cq, .recv_cq = s->cq, .pd = s->pd, .qp_type = IBV_QPT_RC,
		.cap = { 4, 4, 2, 2, 64 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ |
				  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(s->context, &init);
	struct ibv_sge sges[64] = {};
	static uint8_t bytes[4096];
	struct ibv_qp_ex *ex;
	struct ibv_qp_attr attr;
	struct ibv_wc wc;

	ASSERT_NE(NULL, qp);
	ex = ibv_qp_to_qp_ex(qp);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ASSERT_EQ(EINVAL, ibv_wr_complete(ex));		/* in RESET */
	ASSERT_EQ(0, qp_to_init(qp, 0));
	ASSERT_EQ(0, qp_to_rtr(qp, s, &self->s[1], self->s[1].qp->qp_num));
	ASSERT_EQ(0, qp_to_rts(qp, 10, 3, 3));

	ex->wr_flags = IBV_SEND_SIGNALED;
#define WRONG(operation, data) do {					\
	ibv_wr_start(ex);						\
	operation;							\
	data;								\
	EXPECT_EQ(EINVAL, ibv_wr_complete(ex));				\
	ASSERT_EQ(0, ibv_poll_cq(s->cq, 1, &wc));			\
	ASSERT_TRUE(pair_transfer(self->s));				\
} while (0)
	WRONG(ibv_wr_send(ex), ibv_wr_set_sge_list(ex, 64, sges));
	WRONG(ibv_wr_send(ex), ibv_wr_set_sge_list(ex, SIZE_MAX, sges));
	WRONG(ibv_wr_send(ex), ibv_wr_set_inline_data(ex, bytes, sizeof(bytes)));
	WRONG(ibv_wr_send(ex), ibv_wr_set_inline_data(ex, bytes, SIZE_MAX));
	WRONG(ibv_wr_rdma_read(ex, 0, 0), ibv_wr_set_inline_data(ex, bytes, 8));
	WRONG(ibv_wr_atomic_fetch_add(ex, 0, 0, 1), ibv_wr_set_inline_data(ex, bytes, 8));
	attr.qp_state = IBV_QPS_RESET;
	ASSERT_EQ(0, ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	ASSERT_EQ(0, ibv_destroy_qp(qp));
}

TEST_HARNESS_MAIN
