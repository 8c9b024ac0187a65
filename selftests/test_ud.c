// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * UD between two NICs: what arrives, with the header in front of it, what is dropped and counted, and
 * how errors of a sender end. Rules: Documentation/manual/datagrams.rst.
 */
#include <errno.h>

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
	ASSERT_EQ(0, ud_open(self->s));
	ASSERT_EQ(0, use(self->s, self->ah, false));
}

FIXTURE_TEARDOWN(ud)
{
	for (unsigned int i = 0; i < 2; i++)
		EXPECT_EQ(0, ibv_destroy_ah(self->ah[i]));
	pair_close(self->s);
}

/* A datagram of one side's arrives at the other. */
static const char *datagram(struct side s[2], struct ibv_ah *ah[2], unsigned int i, uint32_t size,
			    unsigned int flags)
{
	struct side *from = &s[i], *to = &s[!i];
	struct ibv_sge sge;
	struct ibv_send_wr wr = ud_wr(&sge, from, ah[i], to->qp->qp_num, size);
	const char *wrong;

	wr.send_flags |= flags;
	pair_fill(from->mem, size, (uint8_t)size);
	if (ud_recv(to, to->qp, 0, SLOT))
		return "receive refused";
	wrong = side_sends(from, &wr);
	return wrong ? wrong : ud_arrives(to, to->qp, from, &to->gid, 0, size);
}

#define GOOD_FLAGS(i, size, flags) do {					\
	const char *bad_ = datagram(self->s, self->ah, i, size, flags);	\
									\
	ASSERT_EQ(NULL, bad_) {						\
		TH_LOG("%s, %u bytes", bad_, (unsigned int)(size));	\
	}								\
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
	struct ibv_sge sge;
	struct ibv_send_wr wr = ud_wr(&sge, a, self->ah[0], b->qp->qp_num, 100);
	struct ibv_wc wc;

	pair_fill(a->mem, 100, 1);
	wr.opcode = IBV_WR_SEND_WITH_IMM;
	ASSERT_EQ(0, ud_recv(b, b->qp, 0, SLOT));
	WELL(side_sends(a, &wr));
	ASSERT_TRUE(side_wait(b, &wc, 5));
	ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
	ASSERT_EQ(IBV_WC_GRH | IBV_WC_WITH_IMM, wc.wc_flags);
	ASSERT_EQ(0x12345678, wc.imm_data);
	ASSERT_EQ(HEADER + 100, wc.byte_len);
	WELL(wrong_header(ud_slot(b, 0), &a->gid, &b->gid, 100, true));
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

	pair_fill(a->mem, MTU, 5);
	ASSERT_EQ(0, ibv_post_recv(b->qp, &wr, &bad));
	WELL(ud_sends(a, self->ah[0], b->qp->qp_num, 300));
	ASSERT_TRUE(side_wait(b, &wc, 5));
	ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
	memcpy(header, at, 7);
	memcpy(header + 7, at + 1000, HEADER - 7);
	WELL(wrong_header(header, &a->gid, &b->gid, 300, false));
	ASSERT_EQ(a->mem[0], at[1000 + HEADER - 7]);
	ASSERT_EQ(0, memcmp(at + 2000, a->mem + 1, 299));
}

/* ROC-14 */
TEST_F(ud, to_the_nic_itself)
{
	struct side *a = &self->s[0];
	struct ibv_qp *other = ud_qp(a);
	struct ibv_ah *ah = ud_ah(a, &a->gid);
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_wc wc[2];

	ASSERT_NE(NULL, other);
	ASSERT_NE(NULL, ah);
	wr = ud_wr(&sge, a, ah, other->qp_num, 200);
	pair_fill(a->mem, MTU, 9);
	ASSERT_EQ(0, ud_recv(a, other, 0, SLOT));
	ASSERT_EQ(0, side_post(a, &wr));
	ASSERT_TRUE(side_wait(a, &wc[0], 5) && side_wait(a, &wc[1], 5));
	for (unsigned int i = 0; i < 2; i++)
		ASSERT_EQ(IBV_WC_SUCCESS, wc[i].status);
	WELL(wrong_header(ud_slot(a, 0), &a->gid, &a->gid, 200, false));
	ASSERT_EQ(0, memcmp(ud_slot(a, 0) + HEADER, a->mem, 200));
	ASSERT_EQ(0, ibv_destroy_ah(ah));
	ASSERT_EQ(0, ibv_destroy_qp(other));
}

/* UD-6: dropped, counted, and of no consequence. */
TEST_F(ud, wrong_qkey)
{
	struct side *a = &self->s[0], *b = &self->s[1];
	struct ibv_sge sge;
	struct ibv_send_wr wr = ud_wr(&sge, a, self->ah[0], b->qp->qp_num, 10);

	wr.wr.ud.remote_qkey = QKEY + 1;
	ASSERT_EQ(0, ud_recv(b, b->qp, 0, SLOT));
	WELL(pair_drops(self->s, "rdma_rx_bad_qkey", &wr));
	/* The receive is still there. */
	wr.wr.ud.remote_qkey = QKEY;
	WELL(side_sends(a, &wr));
	WELL(ud_arrives(b, b->qp, a, &b->gid, 0, 10));
}

/* A program cannot send a controlled Q_Key: one with its top bit is that of its own QP. */
TEST_F(ud, own_qkey)
{
	struct side *a = &self->s[0], *b = &self->s[1];
	struct ibv_sge sge;
	struct ibv_send_wr wr = ud_wr(&sge, a, self->ah[0], b->qp->qp_num, 0);

	wr.num_sge = 0;
	wr.wr.ud.remote_qkey = 0x80010000;
	ASSERT_EQ(0, ud_recv(b, b->qp, 0, SLOT));
	WELL(side_sends(a, &wr));
	WELL(ud_arrives(b, b->qp, a, &b->gid, 0, 0));
}

TEST_F(ud, no_receive)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = ud_wr(&sge, &self->s[0], self->ah[0], self->s[1].qp->qp_num, 10);

	WELL(pair_drops(self->s, "rdma_rx_no_receive", &wr));
	GOOD(0, 10);
}

TEST_F(ud, receive_too_short)
{
	struct side *a = &self->s[0], *b = &self->s[1];
	struct ibv_sge sge;
	struct ibv_send_wr wr = ud_wr(&sge, a, self->ah[0], b->qp->qp_num, 100);

	ASSERT_EQ(0, ud_recv(b, b->qp, 0, HEADER + 99));
	WELL(pair_drops(self->s, "rdma_rx_no_receive", &wr));
	/* It stays for one that fits. */
	WELL(ud_sends(a, self->ah[0], b->qp->qp_num, 99));
	WELL(ud_arrives(b, b->qp, a, &b->gid, 0, 99));
}

TEST_F(ud, nobody_has_that_number)
{
	struct ibv_qp *gone = ud_qp(&self->s[1]);
	struct ibv_sge sge;
	struct ibv_send_wr wr = ud_wr(&sge, &self->s[0], self->ah[0], gone->qp_num, 10);

	ASSERT_EQ(0, ibv_destroy_qp(gone));
	WELL(pair_drops(self->s, "rdma_rx_bad_qp", &wr));
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
	ASSERT_EQ(0, ud_recv(b, b->qp, 0, SLOT));
	attr.qp_state = IBV_QPS_RTR;
	ASSERT_EQ(0, ibv_modify_qp(b->qp, &attr, IBV_QP_STATE));
	WELL(ud_sends(a, self->ah[0], b->qp->qp_num, 10));
	WELL(ud_arrives(b, b->qp, a, &b->gid, 0, 10));
}

/*
 * A send fails: its status, then flushes, of those behind it and of those posted later; receives go
 * on; RTS makes it work again (UD-5, QPS-12).
 */
#define FAILED(wr, error) do {						\
	struct side *a_ = &self->s[0];					\
	struct ibv_qp_attr attr_ = { .qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQE }; \
	struct ibv_sge sge_;						\
	struct ibv_send_wr later_ = ud_wr(&sge_, a_, self->ah[0], self->s[1].qp->qp_num, 10); \
	struct ibv_wc wc_;						\
									\
	ASSERT_EQ(0, side_post(a_, wr));				\
	ASSERT_TRUE(side_wait(a_, &wc_, 5));				\
	ASSERT_EQ(error, wc_.status);					\
	ASSERT_EQ(77, wc_.wr_id);					\
	ASSERT_EQ(IBV_QPS_SQE, qp_state(a_->qp));			\
	for (unsigned int i_ = 0; i_ < 2 * PAIR_WRS; i_++) {		\
		later_.send_flags ^= IBV_SEND_INLINE;			\
		ASSERT_EQ(0, side_post(a_, &later_));			\
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
	struct ibv_sge sge;
	struct ibv_send_wr wr = ud_wr(&sge, &self->s[0], self->ah[0], self->s[1].qp->qp_num, MTU + 1);

	FAILED(&wr, IBV_WC_LOC_LEN_ERR);
	sge.length = 1 << 20;
	FAILED(&wr, IBV_WC_LOC_LEN_ERR);
}

TEST_F(ud, bad_lkey)
{
	uint32_t lkey = self->s[0].mr->lkey;
	struct ibv_sge sge;
	struct ibv_send_wr wr = ud_wr(&sge, &self->s[0], self->ah[0], self->s[1].qp->qp_num, 10);

	wr.send_flags = 0;
	sge.lkey = lkey ^ 0x100;
	FAILED(&wr, IBV_WC_LOC_PROT_ERR);
	sge.lkey = lkey ^ 1;
	FAILED(&wr, IBV_WC_LOC_PROT_ERR);
	/* The reserved key is the kernel's. */
	sge.lkey = 0;
	FAILED(&wr, IBV_WC_LOC_PROT_ERR);
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
	WELL(ud_sends(a, self->ah[0], b->qp->qp_num, 10));
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
	struct ibv_sge sge;
	struct ibv_send_wr wr = ud_wr(&sge, a, self->ah[0], 1, 10);
	struct ibv_wc wc;

	ASSERT_EQ(0, ud_recv(a, a->qp, 3, SLOT));
	ASSERT_EQ(0, ibv_modify_qp(a->qp, &attr, IBV_QP_STATE));
	ASSERT_TRUE(side_wait(a, &wc, 5));
	ASSERT_EQ(IBV_WC_WR_FLUSH_ERR, wc.status);
	ASSERT_EQ(3, wc.wr_id);
	ASSERT_EQ(0, side_post(a, &wr));
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
		WELL(ud_sends(a, self->ah[0], b->qp->qp_num, 4 + sent % 1021));
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
