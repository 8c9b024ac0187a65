// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * UC between two NICs: each operation, what is dropped and counted, and how errors of a sender end.
 * Rules: Documentation/manual/datagrams.rst.
 */
#include <errno.h>
#include <string.h>

#include "kselftest_harness.h"
#include "pair.h"

#define HALF (PAIR_MEM / 2)	/* sources below, targets above */

static int uc_to_init(struct ibv_qp *qp)
{
	return qp_to_init(qp, IBV_ACCESS_REMOTE_WRITE);
}

static int uc_to_rts(struct ibv_qp *qp, const struct side *side, const struct side *peer, uint32_t rq_psn,
		     uint32_t sq_psn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer->qp->qp_num,
		.rq_psn = rq_psn, .sq_psn = sq_psn,
		.ah_attr = {
			.is_global = 1, .port_num = 1,
			.grh = { .dgid = peer->gid, .sgid_index = side->gid_index, .hop_limit = 1 },
		},
	};
	int err = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				IBV_QP_DEST_QPN | IBV_QP_RQ_PSN);

	attr.qp_state = IBV_QPS_RTS;
	return err ? err : ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

FIXTURE(uc) {
	struct side s[2];
};

FIXTURE_SETUP(uc)
{
	ASSERT_EQ(0, side_open(&self->s[0], "skua_0"));
	ASSERT_EQ(0, side_open(&self->s[1], "skua_1"));
	for (unsigned int i = 0; i < 2; i++) {
		self->s[i].qp = side_create_qp_of(&self->s[i], IBV_QPT_UC);
		ASSERT_NE(NULL, self->s[i].qp);
		ASSERT_EQ(0, uc_to_init(self->s[i].qp));
	}
	for (unsigned int i = 0; i < 2; i++)
		ASSERT_EQ(0, uc_to_rts(self->s[i].qp, &self->s[i], &self->s[!i], 0xfffffe, 0xfffffe));
}

FIXTURE_TEARDOWN(uc)
{
	side_close(&self->s[0]);
	side_close(&self->s[1]);
}

static int post_recv(struct side *side, uint32_t size, uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)side->mem + HALF, size, side->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };

	return ibv_post_recv(side->qp, &wr, &bad);
}

/* From the beginning of one's memory to the middle of the peer's. */
static struct ibv_send_wr send_wr(struct ibv_sge *sge, struct side *s, struct side *peer,
				  enum ibv_wr_opcode opcode, uint32_t size)
{
	*sge = (struct ibv_sge){ (uintptr_t)s->mem, size, s->mr->lkey };
	return (struct ibv_send_wr){
		.wr_id = 77, .sg_list = sge, .num_sge = 1, .opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED, .imm_data = 0x12345678,
		.wr.rdma = { (uintptr_t)peer->mem + HALF, peer->mr->rkey },
	};
}

static int post(struct side *s, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	return ibv_post_send(s->qp, wr, &bad);
}

/* The sender knows nothing of the peer, except that its own memory is free again. */
#define SENT(side) do {							\
	struct ibv_wc sent_;						\
									\
	ASSERT_TRUE(side_wait(side, &sent_, 5));			\
	ASSERT_EQ(IBV_WC_SUCCESS, sent_.status);			\
	ASSERT_EQ(77, sent_.wr_id);					\
} while (0)

#define GOOD(op, size) do {						\
	struct side *a_ = &self->s[0], *b_ = &self->s[1];		\
	bool receives_ = op != IBV_WR_RDMA_WRITE;			\
	struct ibv_sge sge_;						\
	struct ibv_send_wr wr_ = send_wr(&sge_, a_, b_, op, size);	\
	struct ibv_wc wc_;						\
									\
	for (size_t i_ = 0; i_ < (size); i_++)				\
		a_->mem[i_] = (uint8_t)((size) + i_ * 7 + (i_ >> 8) * 3); \
	memset(b_->mem + HALF, 0, (size) + 8);				\
	if (receives_)							\
		ASSERT_EQ(0, post_recv(b_, size, 99));			\
	ASSERT_EQ(0, post(a_, &wr_));					\
	SENT(a_);							\
	if (receives_) {						\
		ASSERT_TRUE(side_wait(b_, &wc_, 5));			\
		ASSERT_EQ(IBV_WC_SUCCESS, wc_.status);			\
		ASSERT_EQ(99, wc_.wr_id);				\
		ASSERT_EQ(size, wc_.byte_len);				\
		ASSERT_EQ(op == IBV_WR_SEND ? 0 : IBV_WC_WITH_IMM, wc_.wc_flags); \
		if (op != IBV_WR_SEND)					\
			ASSERT_EQ(0x12345678, wc_.imm_data);		\
	}								\
	/* Nobody tells when a WRITE has arrived. */			\
	for (unsigned int i_ = 0; i_ < 5000000 && (size) && !receives_ && \
	     *(volatile uint8_t *)&b_->mem[HALF + (size) - 1] != a_->mem[(size) - 1]; i_++) \
		;							\
	ASSERT_EQ(0, memcmp(b_->mem + HALF, a_->mem, size));		\
	ASSERT_EQ(0, b_->mem[HALF + (size)]);				\
} while (0)

static const uint32_t sizes[] = {
	0, 1, 7, 64, 1023, 1024, 1025, 2048, 4095, 4097, 65536, 1 << 20, (1 << 20) + 1,
};

#define EACH_SIZE(op) do {						\
	for (unsigned int s_ = 0; s_ < sizeof(sizes) / sizeof(sizes[0]); s_++) \
		GOOD(op, sizes[s_]);					\
} while (0)

/* UC-1 */
TEST_F(uc, send) { EACH_SIZE(IBV_WR_SEND); }
TEST_F(uc, send_imm) { EACH_SIZE(IBV_WR_SEND_WITH_IMM); }
TEST_F(uc, write) { EACH_SIZE(IBV_WR_RDMA_WRITE); }
TEST_F(uc, write_imm) { EACH_SIZE(IBV_WR_RDMA_WRITE_WITH_IMM); }

TEST_F(uc, what_only_rc_has)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD,
		IBV_WR_SEND_WITH_INV, IBV_WR_LOCAL_INV,
	};
	struct ibv_sge sge;

	for (unsigned int i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
		struct ibv_send_wr wr = send_wr(&sge, &self->s[0], &self->s[1], opcodes[i], 8);

		ASSERT_EQ(EINVAL, post(&self->s[0], &wr));
	}
	GOOD(IBV_WR_SEND, 100);
}

/* UC-2: the first message may have any PSN. */
TEST_F(uc, psn_that_nobody_expects)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct side *b = &self->s[1];

	ASSERT_EQ(0, ibv_modify_qp(b->qp, &attr, IBV_QP_STATE));
	ASSERT_EQ(0, uc_to_init(b->qp));
	ASSERT_EQ(0, uc_to_rts(b->qp, b, &self->s[0], 12345, 0));
	GOOD(IBV_WR_SEND, 5000);
	GOOD(IBV_WR_RDMA_WRITE_WITH_IMM, 5000);
}

/* UC-3: dropped as a whole and counted, and the next one arrives. */
#define DROPPED(counter, wr) do {					\
	struct side *b_ = &self->s[1];					\
	int64_t before_ = side_counter(b_, counter);			\
	struct ibv_wc wc_;						\
									\
	ASSERT_LE(0, before_);						\
	ASSERT_EQ(0, post(&self->s[0], wr));				\
	SENT(&self->s[0]);						\
	for (unsigned int i_ = 0; i_ < 100 && side_counter(b_, counter) == before_; i_++) \
		;							\
	ASSERT_EQ(before_ + 1, side_counter(b_, counter));		\
	ASSERT_EQ(0, ibv_poll_cq(b_->cq, 1, &wc_));			\
	ASSERT_EQ(IBV_QPS_RTS, qp_state(b_->qp));			\
	ASSERT_EQ(IBV_QPS_RTS, qp_state(self->s[0].qp));		\
} while (0)

TEST_F(uc, no_receive)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = send_wr(&sge, &self->s[0], &self->s[1], IBV_WR_SEND, 5000);

	DROPPED("rdma_rx_no_receive", &wr);
	GOOD(IBV_WR_SEND, 5000);
	wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	DROPPED("rdma_rx_no_receive", &wr);
	GOOD(IBV_WR_SEND, 5000);
}

/* The receive stays: the next message has it. */
TEST_F(uc, longer_than_its_receive)
{
	struct side *b = &self->s[1];
	struct ibv_sge sge;
	struct ibv_send_wr wr = send_wr(&sge, &self->s[0], b, IBV_WR_SEND, 5000);
	struct ibv_wc wc;

	ASSERT_EQ(0, post_recv(b, 4999, 5));
	DROPPED("rdma_rx_no_receive", &wr);
	sge.length = 4999;
	ASSERT_EQ(0, post(&self->s[0], &wr));
	SENT(&self->s[0]);
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
	struct ibv_send_wr wr = send_wr(&sge, a, b, IBV_WR_RDMA_WRITE, 5000);

	memset(a->mem, 0x22, 5000);
	memset(b->mem, 0x11, PAIR_MEM);
	wr.wr.rdma.rkey ^= 0x100;
	DROPPED("rdma_rx_incomplete", &wr);
	wr.wr.rdma.rkey ^= 0x101;
	DROPPED("rdma_rx_incomplete", &wr);
	wr.wr.rdma.rkey = b->mr->rkey;
	wr.wr.rdma.remote_addr = (uintptr_t)b->mem + PAIR_MEM - 4999;
	DROPPED("rdma_rx_incomplete", &wr);
	wr.wr.rdma.remote_addr = (uintptr_t)b->mem + HALF;
	ASSERT_EQ(0, ibv_modify_qp(b->qp, &attr, IBV_QP_ACCESS_FLAGS));
	DROPPED("rdma_rx_incomplete", &wr);
	for (size_t i = 0; i < PAIR_MEM; i++)
		ASSERT_EQ(0x11, b->mem[i]);
	attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	ASSERT_EQ(0, ibv_modify_qp(b->qp, &attr, IBV_QP_ACCESS_FLAGS));
	GOOD(IBV_WR_RDMA_WRITE, 5000);
}

/* UD-5, QPS-12 */
TEST_F(uc, error_of_the_sender)
{
	struct side *a = &self->s[0];
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQE };
	struct ibv_sge sge;
	struct ibv_send_wr wr = send_wr(&sge, a, &self->s[1], IBV_WR_SEND, 5000);
	struct ibv_wc wc;

	sge.lkey ^= 0x100;
	ASSERT_EQ(0, post(a, &wr));
	ASSERT_TRUE(side_wait(a, &wc, 5));
	ASSERT_EQ(IBV_WC_LOC_PROT_ERR, wc.status);
	ASSERT_EQ(IBV_QPS_SQE, qp_state(a->qp));
	sge.lkey = a->mr->lkey;
	ASSERT_EQ(0, post(a, &wr));
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
