// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * UC between two NICs: each operation, what is dropped and counted, and how errors of a sender end.
 * Rules: Documentation/manual/datagrams.rst.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "connection.h"

/* From RESET to RTS. 0 or an errno. */
static int uc_connect(const struct side *side, const struct side *peer, uint32_t rq_psn, uint32_t sq_psn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer->qp->qp_num,
		.rq_psn = rq_psn, .sq_psn = sq_psn, .ah_attr = side_ah(side, &peer->gid),
	};
	int err = qp_to_init(side->qp, IBV_ACCESS_REMOTE_WRITE);

	if (!err)
		err = ibv_modify_qp(side->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN);
	attr.qp_state = IBV_QPS_RTS;
	return err ? err : ibv_modify_qp(side->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

FIXTURE(uc) {
	struct side s[2];
};

FIXTURE_SETUP(uc)
{
	ASSERT_EQ(0, pair_open_of(self->s, IBV_QPT_UC));
	for (unsigned int i = 0; i < 2; i++)
		ASSERT_EQ(0, uc_connect(&self->s[i], &self->s[!i], 0xfffffe, 0xfffffe));
}

FIXTURE_TEARDOWN(uc)
{
	pair_close(self->s);
}

/* UC-1 */
TEST_F(uc, send) { EACH_SIZE(IBV_WR_SEND); }
TEST_F(uc, send_imm) { EACH_SIZE(IBV_WR_SEND_WITH_IMM); }
TEST_F(uc, write) { EACH_SIZE(IBV_WR_RDMA_WRITE); }
TEST_F(uc, write_imm) { EACH_SIZE(IBV_WR_RDMA_WRITE_WITH_IMM); }

TEST_F(uc, what_only_rc_has)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD,
		IBV_WR_SEND_WITH_INV,
	};
	struct ibv_sge sge;

	for (unsigned int i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
		struct ibv_send_wr wr = conn_wr(&sge, self->s, opcodes[i], 8);

		ASSERT_EQ(EINVAL, side_post(&self->s[0], &wr));
	}
	GOOD(IBV_WR_SEND, 100);
}

/* UC-2: the first message may have any PSN. */
TEST_F(uc, psn_that_nobody_expects)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct side *b = &self->s[1];

	ASSERT_EQ(0, ibv_modify_qp(b->qp, &attr, IBV_QP_STATE));
	ASSERT_EQ(0, uc_connect(b, &self->s[0], 12345, 0));
	GOOD(IBV_WR_SEND, 5000);
	GOOD(IBV_WR_RDMA_WRITE_WITH_IMM, 5000);
}

/* UC-3: dropped as a whole and counted, and the next one arrives. */
TEST_F(uc, no_receive)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = conn_wr(&sge, self->s, IBV_WR_SEND, 5000);

	WELL(pair_drops(self->s, "rdma_rx_no_receive", &wr));
	GOOD(IBV_WR_SEND, 5000);
	wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	WELL(pair_drops(self->s, "rdma_rx_no_receive", &wr));
	GOOD(IBV_WR_SEND, 5000);
}

/* The receive stays: the next message has it. */
TEST_F(uc, longer_than_its_receive)
{
	struct side *b = &self->s[1];
	struct ibv_sge sge;
	struct ibv_send_wr wr = conn_wr(&sge, self->s, IBV_WR_SEND, 5000);
	struct ibv_wc wc;

	ASSERT_EQ(0, conn_recv(b, 4999, 5));
	WELL(pair_drops(self->s, "rdma_rx_no_receive", &wr));
	sge.length = 4999;
	WELL(side_sends(&self->s[0], &wr));
	ASSERT_TRUE(side_wait(b, &wc, 5));
	ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
	ASSERT_EQ(5, wc.wr_id);
	ASSERT_EQ(4999, wc.byte_len);
}

TEST_F(uc, what_the_peer_may_not_write)
{
	struct side *a = &self->s[0], *b = &self->s[1];
	struct ibv_qp_attr attr = {};
	struct ibv_sge sge;
	struct ibv_send_wr wr = conn_wr(&sge, self->s, IBV_WR_RDMA_WRITE, 5000);

	memset(a->mem, 0x22, 5000);
	memset(b->mem, 0x11, PAIR_MEM);
	wr.wr.rdma.rkey ^= 0x100;
	WELL(pair_drops(self->s, "rdma_rx_incomplete", &wr));
	wr.wr.rdma.rkey ^= 0x101;
	WELL(pair_drops(self->s, "rdma_rx_incomplete", &wr));
	wr.wr.rdma.rkey = b->mr->rkey;
	wr.wr.rdma.remote_addr = (uintptr_t)b->mem + PAIR_MEM - 4999;
	WELL(pair_drops(self->s, "rdma_rx_incomplete", &wr));
	wr.wr.rdma.remote_addr = (uintptr_t)b->mem + HALF;
	ASSERT_EQ(0, ibv_modify_qp(b->qp, &attr, IBV_QP_ACCESS_FLAGS));
	WELL(pair_drops(self->s, "rdma_rx_incomplete", &wr));
	for (size_t i = 0; i < PAIR_MEM; i++)
		ASSERT_EQ(0x11, b->mem[i]);
	attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	ASSERT_EQ(0, ibv_modify_qp(b->qp, &attr, IBV_QP_ACCESS_FLAGS));
	GOOD(IBV_WR_RDMA_WRITE, 5000);
}

/* A work request that sends nothing: its completion. */
static int local_work(struct side *side, struct ibv_send_wr wr)
{
	struct ibv_wc wc;

	wr.send_flags = IBV_SEND_SIGNALED;
	return side_post(side, &wr) || !side_wait(side, &wc, 5) ? -1 : wc.status;
}

/* MW-2, MW-3: a UC QP binds windows, and ends them. A bad bind leads to SQE. */
TEST_F(uc, memory_windows)
{
	struct side *b = &self->s[1];
	struct ibv_mr *mr = ibv_reg_mr(b->pd, b->mem, PAIR_MEM, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };
	struct ibv_sge sge;
	struct ibv_send_wr write = conn_wr(&sge, self->s, IBV_WR_RDMA_WRITE, 5000);

	memset(self->s[0].mem, 0x22, 5000);
	for (enum ibv_mw_type type = IBV_MW_TYPE_1; type <= IBV_MW_TYPE_2; type++) {
		struct ibv_mw *mw = ibv_alloc_mw(b->pd, type);
		struct ibv_send_wr bind = {
			.opcode = IBV_WR_BIND_MW,
			.bind_mw = { mw, mw->rkey, { mr, (uintptr_t)b->mem + HALF, 5000, IBV_ACCESS_REMOTE_WRITE } },
		};
		struct ibv_send_wr end = { .opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = mw->rkey };

		if (type == IBV_MW_TYPE_1)
			end = (struct ibv_send_wr){ .opcode = IBV_WR_BIND_MW, .bind_mw = { mw, mw->rkey } };
		memset(b->mem + HALF, 0x11, 5001);
		write.wr.rdma.rkey = mw->rkey;
		WELL(pair_drops(self->s, "rdma_rx_incomplete", &write));
		ASSERT_EQ(IBV_WC_SUCCESS, local_work(b, bind));
		WELL(side_sends(&self->s[0], &write));
		for (unsigned int i = 0; i < 1000 && b->mem[HALF + 4999] != 0x22; i++)
			usleep(10000);
		ASSERT_EQ(0, memcmp(b->mem + HALF, self->s[0].mem, 5000));
		ASSERT_EQ(0x11, b->mem[HALF + 5000]);
		ASSERT_EQ(EBUSY, ibv_dereg_mr(mr));
		ASSERT_EQ(IBV_WC_SUCCESS, local_work(b, end));
		WELL(pair_drops(self->s, "rdma_rx_incomplete", &write));
		bind.bind_mw.bind_info.addr -= HALF + 1;
		ASSERT_EQ(IBV_WC_MW_BIND_ERR, local_work(b, bind));
		ASSERT_EQ(IBV_QPS_SQE, qp_state(b->qp));
		ASSERT_EQ(0, ibv_modify_qp(b->qp, &attr, IBV_QP_STATE));
		ASSERT_EQ(0, ibv_dealloc_mw(mw));
	}
	ASSERT_EQ(0, ibv_dereg_mr(mr));
	GOOD(IBV_WR_RDMA_WRITE, 5000);
}

/* UD-5, QPS-12 */
TEST_F(uc, error_of_the_sender)
{
	struct side *a = &self->s[0];
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQE };
	struct ibv_sge sge;
	struct ibv_send_wr wr = conn_wr(&sge, self->s, IBV_WR_SEND, 5000);
	struct ibv_wc wc;

	sge.lkey ^= 0x100;
	ASSERT_EQ(0, side_post(a, &wr));
	ASSERT_TRUE(side_wait(a, &wc, 5));
	ASSERT_EQ(IBV_WC_LOC_PROT_ERR, wc.status);
	ASSERT_EQ(IBV_QPS_SQE, qp_state(a->qp));
	sge.lkey = a->mr->lkey;
	ASSERT_EQ(0, side_post(a, &wr));
	ASSERT_TRUE(side_wait(a, &wc, 5));
	ASSERT_EQ(IBV_WC_WR_FLUSH_ERR, wc.status);
	ASSERT_EQ(0, ibv_modify_qp(a->qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE));
	GOOD(IBV_WR_SEND, 5000);
}

/* What is read back is what was set. */
TEST_F(uc, query)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	ASSERT_EQ(0, ibv_query_qp(self->s[0].qp, &attr, IBV_QP_STATE, &init));
	EXPECT_EQ(IBV_QPT_UC, init.qp_type);
	EXPECT_EQ(IBV_QPS_RTS, attr.qp_state);
	EXPECT_EQ(IBV_MTU_1024, attr.path_mtu);
	EXPECT_EQ(self->s[1].qp->qp_num, attr.dest_qp_num);
	EXPECT_EQ(IBV_ACCESS_REMOTE_WRITE, attr.qp_access_flags);
	EXPECT_EQ(0, memcmp(&self->s[1].gid, &attr.ah_attr.grh.dgid, 16));
	EXPECT_EQ(self->s[0].gid_index, attr.ah_attr.grh.sgid_index);
}

TEST_HARNESS_MAIN
