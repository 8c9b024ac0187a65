// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * UD between two NICs: what arrives, with the header in front of it, what is dropped and counted, and
 * how errors of a sender end. Rules: Documentation/manual/datagrams.rst.
 */
#include "kselftest_harness.h"
#include "datagram.h"

FIXTURE(ud) {
	struct side s[2];
	struct ibv_ah *ah[2];
};

/* Address by IPv6 instead, or by IPv4 again. */
static int use(struct side s[2], struct ibv_ah *ah[2], bool ipv6)
{
	int err = side_use_gid(&s[0], ipv6) | side_use_gid(&s[1], ipv6);

	for (unsigned int i = 0; !err && i < 2; i++) {
		if (ah[i])
			ibv_destroy_ah(ah[i]);
		ah[i] = ud_ah(&s[i], &s[!i].gid);
		err = ah[i] ? 0 : -errno;
	}
	return err;
}

FIXTURE_SETUP(ud)
{
	self->ah[0] = self->ah[1] = NULL;
	ASSERT_EQ(0, side_open(&self->s[0], "skua_0"));
	ASSERT_EQ(0, side_open(&self->s[1], "skua_1"));
	for (unsigned int i = 0; i < 2; i++) {
		self->s[i].qp = ud_qp(&self->s[i]);
		ASSERT_NE(NULL, self->s[i].qp);
	}
	ASSERT_EQ(0, use(self->s, self->ah, false));
}

FIXTURE_TEARDOWN(ud)
{
	for (unsigned int i = 0; i < 2; i++) {
		EXPECT_EQ(0, ibv_destroy_ah(self->ah[i]));
		side_close(&self->s[i]);
	}
}

/* One side's send completes well. */
#define SENT(side) do {							\
	struct ibv_wc sent_;						\
									\
	ASSERT_TRUE(side_wait(side, &sent_, 5));			\
	ASSERT_EQ(IBV_WC_SUCCESS, sent_.status);			\
	ASSERT_EQ(IBV_WC_SEND, sent_.opcode);				\
	ASSERT_EQ(77, sent_.wr_id);					\
} while (0)

/* The datagram in a slot is what the peer's memory begins with, and nothing stands behind it. */
#define ARRIVED(to, from, slot, size) do {				\
	struct ibv_wc wc_;						\
	uint8_t *at_ = ud_slot(to, slot);				\
	const char *wrong_;						\
									\
	ASSERT_TRUE(side_wait(to, &wc_, 5));				\
	ASSERT_EQ(IBV_WC_SUCCESS, wc_.status);				\
	ASSERT_EQ(IBV_WC_RECV, wc_.opcode);				\
	ASSERT_EQ(slot, wc_.wr_id);					\
	ASSERT_EQ(HEADER + (size), wc_.byte_len);			\
	ASSERT_EQ((from)->qp->qp_num, wc_.src_qp);			\
	ASSERT_EQ(IBV_WC_GRH, wc_.wc_flags);				\
	ASSERT_EQ(0, wc_.sl);						\
	wrong_ = wrong_header(at_, &(from)->gid, &(to)->gid, size, false); \
	ASSERT_EQ(NULL, wrong_) {					\
		TH_LOG("%s, %u bytes", wrong_, (unsigned int)(size));	\
	}								\
	ASSERT_EQ(0, memcmp(at_ + HEADER, (from)->mem, size));		\
	ASSERT_EQ(0xee, at_[HEADER + (size)]);				\
} while (0)

#define GOOD_FLAGS(i, size, flags) do {					\
	struct side *a_ = &self->s[i], *b_ = &self->s[!(i)];		\
									\
	memset(ud_slot(b_, 0), 0xee, SLOT + 1);				\
	ud_fill(a_, (uint8_t)(size));					\
	ASSERT_EQ(0, ud_recv(b_, b_->qp, 0, SLOT));			\
	ASSERT_EQ(0, ud_send(a_, self->ah[i], b_->qp->qp_num, size, flags)); \
	SENT(a_);							\
	ARRIVED(b_, a_, 0, size);					\
} while (0)

#define GOOD(i, size) GOOD_FLAGS(i, size, 0)

static const uint32_t sizes[] = { 0, 1, 2, 3, 4, 63, 64, 65, 512, 1000, 1023, 1024 };

#define EACH_SIZE(i) do {						\
	for (unsigned int s_ = 0; s_ < sizeof(sizes) / sizeof(sizes[0]); s_++) \
		GOOD(i, sizes[s_]);					\
} while (0)

/* UD-3, UD-7, UD-8 */
TEST_F(ud, ipv4_there) { EACH_SIZE(0); }
TEST_F(ud, ipv4_back) { EACH_SIZE(1); }

TEST_F(ud, ipv6_there)
{
	ASSERT_EQ(0, use(self->s, self->ah, true));
	EACH_SIZE(0);
}

TEST_F(ud, ipv6_back)
{
	ASSERT_EQ(0, use(self->s, self->ah, true));
	EACH_SIZE(1);
}

TEST_F(ud, inline_data)
{
	for (uint32_t size = 0; size <= 64; size++)
		GOOD_FLAGS(0, size, IBV_SEND_INLINE);
}

TEST_F(ud, immediate)
{
	struct side *a = &self->s[0], *b = &self->s[1];
	struct ibv_sge sge = { (uintptr_t)a->mem, 100, a->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = 77, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED, .imm_data = 0x12345678,
		.wr.ud = { .ah = self->ah[0], .remote_qpn = b->qp->qp_num, .remote_qkey = QKEY },
	};
	struct ibv_wc wc;

	ud_fill(a, 1);
	ASSERT_EQ(0, ud_recv(b, b->qp, 0, SLOT));
	ASSERT_EQ(0, ibv_post_send(a->qp, &wr, &bad));
	SENT(a);
	ASSERT_TRUE(side_wait(b, &wc, 5));
	ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
	ASSERT_EQ(IBV_WC_GRH | IBV_WC_WITH_IMM, wc.wc_flags);
	ASSERT_EQ(0x12345678, wc.imm_data);
	ASSERT_EQ(HEADER + 100, wc.byte_len);
	ASSERT_EQ(NULL, wrong_header(ud_slot(b, 0), &a->gid, &b->gid, 100, true));
	ASSERT_EQ(0, memcmp(ud_slot(b, 0) + HEADER, a->mem, 100));
}

/* Header and payload are scattered as any message. */
TEST_F(ud, scattered)
{
	struct side *a = &self->s[0], *b = &self->s[1];
	uint8_t *at = ud_slot(b, 0);
	struct ibv_sge sges[] = {
		{ (uintptr_t)at, 7, b->mr->lkey },
		{ (uintptr_t)at + 1000, HEADER - 7 + 1, b->mr->lkey },
		{ (uintptr_t)at + 2000, MTU, b->mr->lkey },
	};
	struct ibv_recv_wr *bad, wr = { .sg_list = sges, .num_sge = 3 };
	uint8_t header[HEADER];
	struct ibv_wc wc;

	ud_fill(a, 5);
	ASSERT_EQ(0, ibv_post_recv(b->qp, &wr, &bad));
	ASSERT_EQ(0, ud_send(a, self->ah[0], b->qp->qp_num, 300, 0));
	SENT(a);
	ASSERT_TRUE(side_wait(b, &wc, 5));
	ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
	memcpy(header, at, 7);
	memcpy(header + 7, at + 1000, HEADER - 7);
	ASSERT_EQ(NULL, wrong_header(header, &a->gid, &b->gid, 300, false));
	ASSERT_EQ(a->mem[0], at[1000 + HEADER - 7]);
	ASSERT_EQ(0, memcmp(at + 2000, a->mem + 1, 299));
}

/* ROC-14 */
TEST_F(ud, to_the_nic_itself)
{
	struct side *a = &self->s[0];
	struct ibv_qp *other = ud_qp(a);
	struct ibv_ah *ah = ud_ah(a, &a->gid);
	struct ibv_wc wc[2];

	ASSERT_NE(NULL, other);
	ASSERT_NE(NULL, ah);
	ud_fill(a, 9);
	ASSERT_EQ(0, ud_recv(a, other, 0, SLOT));
	ASSERT_EQ(0, ud_send(a, ah, other->qp_num, 200, 0));
	ASSERT_TRUE(side_wait(a, &wc[0], 5) && side_wait(a, &wc[1], 5));
	for (unsigned int i = 0; i < 2; i++)
		ASSERT_EQ(IBV_WC_SUCCESS, wc[i].status);
	ASSERT_EQ(NULL, wrong_header(ud_slot(a, 0), &a->gid, &a->gid, 200, false));
	ASSERT_EQ(0, memcmp(ud_slot(a, 0) + HEADER, a->mem, 200));
	ASSERT_EQ(0, ibv_destroy_ah(ah));
	ASSERT_EQ(0, ibv_destroy_qp(other));
}

/* UD-6: dropped, counted, and of no consequence. */
#define DROPPED(counter, send) do {					\
	struct side *b_ = &self->s[1];					\
	int64_t before_ = side_counter(b_, counter);			\
	struct ibv_wc wc_;						\
									\
	ASSERT_LE(0, before_);						\
	ASSERT_EQ(0, send);						\
	SENT(&self->s[0]);						\
	for (unsigned int i_ = 0; i_ < 100 && side_counter(b_, counter) == before_; i_++) \
		;							\
	ASSERT_EQ(before_ + 1, side_counter(b_, counter));		\
	ASSERT_EQ(0, ibv_poll_cq(b_->cq, 1, &wc_));			\
	ASSERT_EQ(IBV_QPS_RTS, qp_state(b_->qp));			\
} while (0)

static int send_with_qkey(struct side *a, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct ibv_send_wr *bad, wr = {
		.wr_id = 77, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { .ah = ah, .remote_qpn = qpn, .remote_qkey = qkey },
	};

	return ibv_post_send(a->qp, &wr, &bad);
}

TEST_F(ud, wrong_qkey)
{
	struct side *a = &self->s[0], *b = &self->s[1];

	ASSERT_EQ(0, ud_recv(b, b->qp, 0, SLOT));
	DROPPED("rdma_rx_bad_qkey", send_with_qkey(a, self->ah[0], b->qp->qp_num, QKEY + 1));
	/* The receive is still there. */
	memset(ud_slot(b, 0), 0xee, SLOT);
	ASSERT_EQ(0, ud_send(a, self->ah[0], b->qp->qp_num, 10, 0));
	SENT(a);
	ARRIVED(b, a, 0, 10);
}

/* A program cannot send a controlled Q_Key: one with its top bit is that of its own QP. */
TEST_F(ud, own_qkey)
{
	struct side *a = &self->s[0], *b = &self->s[1];

	memset(ud_slot(b, 0), 0xee, SLOT);
	ASSERT_EQ(0, ud_recv(b, b->qp, 0, SLOT));
	ASSERT_EQ(0, send_with_qkey(a, self->ah[0], b->qp->qp_num, 0x80010000));
	SENT(a);
	ARRIVED(b, a, 0, 0);
}

TEST_F(ud, no_receive)
{
	DROPPED("rdma_rx_no_receive",
		ud_send(&self->s[0], self->ah[0], self->s[1].qp->qp_num, 10, 0));
	GOOD(0, 10);
}

TEST_F(ud, receive_too_short)
{
	struct side *a = &self->s[0], *b = &self->s[1];

	memset(ud_slot(b, 0), 0xee, SLOT);
	ASSERT_EQ(0, ud_recv(b, b->qp, 0, HEADER + 99));
	DROPPED("rdma_rx_no_receive", ud_send(a, self->ah[0], b->qp->qp_num, 100, 0));
	/* It stays for one that fits. */
	memset(ud_slot(b, 0), 0xee, SLOT);
	ASSERT_EQ(0, ud_send(a, self->ah[0], b->qp->qp_num, 99, 0));
	SENT(a);
	ARRIVED(b, a, 0, 99);
}

TEST_F(ud, nobody_has_that_number)
{
	struct side *b = &self->s[1];
	struct ibv_qp *gone = ud_qp(b);
	uint32_t qpn = gone->qp_num;

	ASSERT_EQ(0, ibv_destroy_qp(gone));
	DROPPED("rdma_rx_bad_qp", ud_send(&self->s[0], self->ah[0], qpn, 10, 0));
	GOOD(0, 10);
}

/* UD-6: the responder runs from RTR on. */
TEST_F(ud, received_in_rtr)
{
	struct side *a = &self->s[0], *b = &self->s[1];
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	ASSERT_EQ(0, ibv_modify_qp(b->qp, &attr, IBV_QP_STATE));
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };
	ASSERT_EQ(0, ibv_modify_qp(b->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				   IBV_QP_QKEY));
	memset(ud_slot(b, 0), 0xee, SLOT);
	ASSERT_EQ(0, ud_recv(b, b->qp, 0, SLOT));
	attr.qp_state = IBV_QPS_RTR;
	ASSERT_EQ(0, ibv_modify_qp(b->qp, &attr, IBV_QP_STATE));
	ASSERT_EQ(0, ud_send(a, self->ah[0], b->qp->qp_num, 10, 0));
	SENT(a);
	ARRIVED(b, a, 0, 10);
}

/*
 * A send fails: its status, then flushes, of those behind it and of those posted later; receives go
 * on; RTS makes it work again (UD-5, QPS-12).
 */
#define FAILED(post, error) do {					\
	struct side *a_ = &self->s[0];					\
	struct ibv_qp_attr attr_ = { .qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQE }; \
	uint32_t qpn_ = self->s[1].qp->qp_num;				\
	struct ibv_wc wc_;						\
									\
	ASSERT_EQ(0, post);						\
	ASSERT_TRUE(side_wait(a_, &wc_, 5));				\
	ASSERT_EQ(error, wc_.status);					\
	ASSERT_EQ(77, wc_.wr_id);					\
	ASSERT_EQ(IBV_QPS_SQE, qp_state(a_->qp));			\
	for (unsigned int i_ = 0; i_ < 2 * PAIR_WRS; i_++) {		\
		ASSERT_EQ(0, ud_send(a_, self->ah[0], qpn_, 10, i_ & 1 ? 0 : IBV_SEND_INLINE)); \
		ASSERT_TRUE(side_wait(a_, &wc_, 5));			\
		ASSERT_EQ(IBV_WC_WR_FLUSH_ERR, wc_.status);		\
		ASSERT_EQ(77, wc_.wr_id);				\
	}								\
	GOOD(1, 100);							\
	ASSERT_EQ(0, ibv_modify_qp(a_->qp, &attr_, IBV_QP_STATE | IBV_QP_CUR_STATE)); \
	ASSERT_EQ(IBV_QPS_RTS, qp_state(a_->qp));			\
	GOOD(0, 100);							\
} while (0)

/* UD-3 */
TEST_F(ud, message_above_the_mtu)
{
	struct side *a = &self->s[0], *b = &self->s[1];

	FAILED(ud_send(a, self->ah[0], b->qp->qp_num, MTU + 1, 0), IBV_WC_LOC_LEN_ERR);
	FAILED(ud_send(a, self->ah[0], b->qp->qp_num, 1 << 20, 0), IBV_WC_LOC_LEN_ERR);
}

static int send_with_lkey(struct side *a, struct ibv_ah *ah, uint32_t qpn, uint32_t lkey)
{
	struct ibv_sge sge = { (uintptr_t)a->mem, 10, lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = 77, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1,
		.wr.ud = { .ah = ah, .remote_qpn = qpn, .remote_qkey = QKEY },
	};

	return ibv_post_send(a->qp, &wr, &bad);
}

TEST_F(ud, bad_lkey)
{
	struct side *a = &self->s[0];
	uint32_t qpn = self->s[1].qp->qp_num;

	FAILED(send_with_lkey(a, self->ah[0], qpn, a->mr->lkey ^ 0x100), IBV_WC_LOC_PROT_ERR);
	FAILED(send_with_lkey(a, self->ah[0], qpn, a->mr->lkey ^ 1), IBV_WC_LOC_PROT_ERR);
	/* The reserved key is the kernel's. */
	FAILED(send_with_lkey(a, self->ah[0], qpn, 0), IBV_WC_LOC_PROT_ERR);
}

/* What stood behind the one that fails is flushed, too. */
TEST_F(ud, flushed_behind_an_error)
{
	struct side *a = &self->s[0], *b = &self->s[1];
	struct ibv_sge sge = { (uintptr_t)a->mem, MTU + 1, a->mr->lkey };
	struct ibv_send_wr *bad, wr[4];
	struct ibv_wc wc;

	for (unsigned int i = 0; i < 4; i++)
		wr[i] = (struct ibv_send_wr){
			.wr_id = i, .sg_list = &sge, .num_sge = i == 1, .opcode = IBV_WR_SEND,
			.next = i < 3 ? &wr[i + 1] : NULL,
			.wr.ud = { .ah = self->ah[0], .remote_qpn = b->qp->qp_num, .remote_qkey = QKEY },
		};
	ASSERT_EQ(0, ud_recv(b, b->qp, 0, SLOT));
	ASSERT_EQ(0, ibv_post_send(a->qp, wr, &bad));
	for (unsigned int i = 1; i < 4; i++) {
		ASSERT_TRUE(side_wait(a, &wc, 5));
		ASSERT_EQ(i, wc.wr_id);
		ASSERT_EQ(i == 1 ? IBV_WC_LOC_LEN_ERR : IBV_WC_WR_FLUSH_ERR, wc.status);
	}
	/* The one before it was sent. */
	ASSERT_TRUE(side_wait(b, &wc, 5));
	ASSERT_EQ(HEADER, wc.byte_len);
}

/* UD-9 */
TEST_F(ud, bad_receive)
{
	struct side *a = &self->s[0], *b = &self->s[1];
	struct ibv_sge sge = { (uintptr_t)b->mem, SLOT, b->mr->lkey ^ 0x100 };
	struct ibv_recv_wr *bad, wr = { .wr_id = 5, .sg_list = &sge, .num_sge = 1 };
	struct ibv_wc wc;

	ASSERT_EQ(0, ibv_post_recv(b->qp, &wr, &bad));
	ASSERT_EQ(0, ud_send(a, self->ah[0], b->qp->qp_num, 10, 0));
	SENT(a);
	ASSERT_TRUE(side_wait(b, &wc, 5));
	ASSERT_EQ(IBV_WC_LOC_PROT_ERR, wc.status);
	ASSERT_EQ(5, wc.wr_id);
	ASSERT_EQ(IBV_QPS_ERR, qp_state(b->qp));
	ASSERT_EQ(IBV_QPS_RTS, qp_state(a->qp));
}

TEST_F(ud, flushed_in_err)
{
	struct side *a = &self->s[0];
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_wc wc;

	ASSERT_EQ(0, ud_recv(a, a->qp, 3, SLOT));
	ASSERT_EQ(0, ibv_modify_qp(a->qp, &attr, IBV_QP_STATE));
	ASSERT_TRUE(side_wait(a, &wc, 5));
	ASSERT_EQ(IBV_WC_WR_FLUSH_ERR, wc.status);
	ASSERT_EQ(3, wc.wr_id);
	ASSERT_EQ(0, ud_send(a, self->ah[0], 1, 10, 0));
	ASSERT_TRUE(side_wait(a, &wc, 5));
	ASSERT_EQ(IBV_WC_WR_FLUSH_ERR, wc.status);
}

/* In order and none lost, between two NICs of one wire. */
TEST_F(ud, thousands)
{
	struct side *a = &self->s[0], *b = &self->s[1];
	uint32_t received = 0;
	struct ibv_wc wc;

	for (unsigned int slot = 0; slot < PAIR_WRS; slot++)
		ASSERT_EQ(0, ud_recv(b, b->qp, slot, SLOT));
	for (uint32_t sent = 0; sent < 5000; ) {
		memcpy(a->mem, &sent, sizeof(sent));
		ASSERT_EQ(0, ud_send(a, self->ah[0], b->qp->qp_num, 4 + sent % 1021, 0));
		SENT(a);
		sent++;
		while (sent - received > PAIR_WRS / 2 || (sent == 5000 && received < 5000)) {
			ASSERT_TRUE(side_wait(b, &wc, 5)) {
				TH_LOG("%u of %u", received, sent);
			}
			ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
			ASSERT_EQ(HEADER + 4 + received % 1021, wc.byte_len);
			ASSERT_EQ(0, memcmp(ud_slot(b, wc.wr_id) + HEADER, &received, 4));
			ASSERT_EQ(0, ud_recv(b, b->qp, wc.wr_id, SLOT));
			received++;
		}
	}
}

/* What a QP was given is what it tells. */
TEST_F(ud, query)
{
	struct ibv_qp_attr attr = { .qkey = 0x55667788 };
	struct ibv_qp_init_attr init;

	ASSERT_EQ(0, ibv_query_qp(self->s[0].qp, &attr, IBV_QP_QKEY, &init));
	ASSERT_EQ(QKEY, attr.qkey);
	ASSERT_EQ(IBV_QPT_UD, init.qp_type);
	attr.qkey = 0x55667788;
	ASSERT_EQ(0, ibv_modify_qp(self->s[0].qp, &attr, IBV_QP_QKEY));
	ASSERT_EQ(0, ibv_query_qp(self->s[0].qp, &attr, IBV_QP_QKEY, &init));
	ASSERT_EQ(0x55667788, attr.qkey);
}

TEST_HARNESS_MAIN
