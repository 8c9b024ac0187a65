// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Rate limits of QPs, and the options that peers agree on (ECE). Rules: Documentation/manual/rate.rst, qp-states.rst.
 * A test may take longer than a limit says, on a machine that has other work, but never shorter.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "datagram.h"
#include "raw.h"
#include "rows.h"

#define KBPS	20000u		/* 2,500 bytes in a millisecond */
#define LEN	(500u << 10)	/* more than 200 ms */
#define UNITS	600u		/* datagrams or frames */
#define UNIT	1000u

/* The manual: a millisecond and 4 KiB may go at once. */
static int64_t least_ns(int64_t bytes)
{
	return (bytes - 4096) * 8000000 / KBPS - 1000000;
}

static int set_limit(struct ibv_qp *qp, uint32_t kbps, uint32_t burst, uint16_t packet)
{
	struct ibv_qp_rate_limit_attr attr = {
		.rate_limit = kbps, .max_burst_sz = burst, .typical_pkt_sz = packet,
	};

	return ibv_modify_qp_rate_limit(qp, &attr);
}

FIXTURE(rate) {
	struct side s[2];
};

FIXTURE_SETUP(rate)
{
	ASSERT_EQ(0, pair_open(self->s));
}

FIXTURE_TEARDOWN(rate)
{
	EXPECT_EQ(0, pair_reconnect(self->s));
	EXPECT_TRUE(pair_transfer(self->s));
	pair_close(self->s);
}

/* One WRITE or READ: how long it took; -1: it failed. */
static int64_t message_ns(struct side s[2], enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = { (uintptr_t)s[0].mem, LEN, s[0].mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)s[1].mem, s[1].mr->rkey },
	};
	int64_t start = now_ns();

	return side_sends(&s[0], &wr) ? -1 : now_ns() - start;
}

/* After a pause of @us. Other work may make each message slow, but hardly all. */
static bool one_takes_less_than(struct side s[2], enum ibv_wr_opcode opcode, int64_t limit, unsigned int us)
{
	for (int i = 0; i < 20; i++) {
		int64_t ns;

		usleep(us);
		ns = message_ns(s, opcode);
		if (ns < limit)
			return ns >= 0;
	}
	return false;
}

/* RAT-2: requests of the one, and the responses of the other. */
TEST_F(rate, rc)
{
	int64_t ns;

	ASSERT_EQ(0, set_limit(self->s[0].qp, KBPS, 0, 0));
	ns = message_ns(self->s, IBV_WR_RDMA_WRITE);
	EXPECT_LT(least_ns(LEN), ns);
	ASSERT_EQ(0, set_limit(self->s[0].qp, 0, 0, 0));
	EXPECT_TRUE(one_takes_less_than(self->s, IBV_WR_RDMA_WRITE, least_ns(LEN), 0));
	ASSERT_EQ(0, set_limit(self->s[1].qp, KBPS, 0, 1024));
	ns = message_ns(self->s, IBV_WR_RDMA_READ);
	EXPECT_LT(least_ns(LEN), ns);
	/* RAT-4 */
	ASSERT_EQ(0, pair_reconnect(self->s));
	EXPECT_TRUE(one_takes_less_than(self->s, IBV_WR_RDMA_READ, least_ns(LEN), 0));
}

/* RAT-2: what a burst covers leaves at once, and costs no time beyond that of the rest. */
TEST_F(rate, burst)
{
	int64_t ns;

	ASSERT_EQ(0, set_limit(self->s[0].qp, KBPS, LEN / 2, 0));
	ns = message_ns(self->s, IBV_WR_RDMA_WRITE);
	EXPECT_LT(least_ns(LEN / 2), ns);
	/* All of it, after a pause as long as it takes at the rate. */
	ASSERT_EQ(0, set_limit(self->s[0].qp, KBPS, LEN, 0));
	EXPECT_TRUE(one_takes_less_than(self->s, IBV_WR_RDMA_WRITE, least_ns(LEN), 300000));
	ASSERT_EQ(0, set_limit(self->s[0].qp, KBPS, 1, 0));
	ns = message_ns(self->s, IBV_WR_RDMA_WRITE);
	EXPECT_LT(least_ns(LEN), ns);
}

/* RAT-1: with the step to RTS, too. */
TEST_F(rate, on_the_way_to_rts)
{
	struct side *a = &self->s[0], *b = &self->s[1];
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .sq_psn = 0xfffff0,
		.max_rd_atomic = PAIR_READS, .rate_limit = KBPS,
	};
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	int64_t ns;

	ASSERT_EQ(0, ibv_modify_qp(a->qp, &reset, IBV_QP_STATE));
	ASSERT_EQ(0, qp_to_init(a->qp, 0));
	ASSERT_EQ(EINVAL, set_limit(a->qp, KBPS, 0, 0));
	ASSERT_EQ(0, qp_to_rtr(a->qp, a, b, b->qp->qp_num));
	ASSERT_EQ(0, ibv_modify_qp(a->qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				   IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RATE_LIMIT));
	ns = message_ns(self->s, IBV_WR_RDMA_WRITE);
	EXPECT_LT(least_ns(LEN), ns);
}

TEST_F(rate, bad_limits)
{
	struct ibv_device_attr_ex caps;
	struct ibv_qp_rate_limit_attr unknown = { .rate_limit = KBPS, .comp_mask = 1 };
	struct ibv_qp *qp = self->s[0].qp;

	ASSERT_EQ(0, ibv_query_device_ex(self->s[0].context, NULL, &caps));
	const struct {
		const char *name;
		uint32_t kbps, burst;
		uint16_t packet;
		int err;
	} rows[] = {
		{ "less than the least", caps.packet_pacing_caps.qp_rate_limit_min - 1, 0, 0, EINVAL },
		{ "more than the most", caps.packet_pacing_caps.qp_rate_limit_max + 1, 0, 0, EINVAL },
		{ "a burst of nothing", 0, 1, 0, EINVAL },
		{ "packets of nothing", 0, 0, 1, EINVAL },
		{ "the most", caps.packet_pacing_caps.qp_rate_limit_max, UINT32_MAX, UINT16_MAX, 0 },
		{ "the least", caps.packet_pacing_caps.qp_rate_limit_min, UINT32_MAX, 0, 0 },
		{ "none", 0, 0, 0, 0 },
	};

	for EACH(row, rows)
		GAVE(row->err, set_limit(qp, row->kbps, row->burst, row->packet), row);
	EXPECT_EQ(EINVAL, ibv_modify_qp_rate_limit(qp, &unknown));
}

/* RAT-1: the kernel checks what libskua never sends. */
TEST_F(rate, of_another_library)
{
	const uint32_t number = IB_USER_VERBS_EX_CMD_MODIFY_QP | IB_USER_VERBS_CMD_FLAG_EXTENDED;
	struct ib_uverbs_ex_modify_qp cmd = {
		.base = { .attr_mask = IBV_QP_ACCESS_FLAGS, .qp_handle = self->s[0].qp->handle },
	};
	const struct {
		const char *name;
		struct {
			struct skua_modify_qp_req known;
			uint64_t unknown;
		} req;
		size_t size;
		int err;
	} rows[] = {
		{ "nothing", {}, 0, 0 },
		{ "zeros", {}, sizeof(struct skua_modify_qp_req), 0 },
		{ "more zeros", {}, sizeof(rows[0].req), 0 },
		{ "a burst without a limit", { { .rate_burst = 1 } }, sizeof(struct skua_modify_qp_req), EINVAL },
		{ "packets without a limit", { { .rate_packet = 1 } }, sizeof(struct skua_modify_qp_req), EINVAL },
		{ "a reserved field", { { .reserved = 1 } }, sizeof(struct skua_modify_qp_req), EINVAL },
		{ "an unknown bit", { { .comp_mask = 1 } }, sizeof(struct skua_modify_qp_req), EOPNOTSUPP },
		{ "unknown fields", { .unknown = 1 }, sizeof(rows[0].req), EOPNOTSUPP },
		{ "too few fields", {}, sizeof(struct skua_modify_qp_req) - 4, EINVAL },
	};

	for EACH(row, rows)
		GAVE(row->err, raw_invoke(self->s[0].context->cmd_fd, number, &cmd, sizeof(cmd), &row->req, row->size,
					  sizeof(struct ib_uverbs_ex_modify_qp_resp)), row);
}

/* What query_device_ex() says is so, of each type. */
TEST_F(rate, types)
{
	static const enum ibv_qp_type types[] = {
		IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_RAW_PACKET, IBV_QPT_XRC_SEND,
	};
	struct ibv_device_attr_ex caps;
	uint32_t said = 0;

	ASSERT_EQ(0, ibv_query_device_ex(self->s[0].context, NULL, &caps));
	EXPECT_LT(0, caps.packet_pacing_caps.qp_rate_limit_min);
	EXPECT_LT(caps.packet_pacing_caps.qp_rate_limit_min, caps.packet_pacing_caps.qp_rate_limit_max);
	for EACH(type, types) {
		struct ibv_qp *qp = side_create_qp_of(&self->s[0], *type);

		ASSERT_NE(NULL, qp);
		/* Not in RESET; but the type has them. */
		EXPECT_EQ(EINVAL, set_limit(qp, KBPS, 0, 0));
		EXPECT_EQ(0, ibv_destroy_qp(qp));
		said |= 1u << *type;
	}
	EXPECT_EQ(said, caps.packet_pacing_caps.supported_qpts);
}

/* The receiving end of XRC sends what others ask for. */
TEST_F(rate, none_of_xrc_recv)
{
	struct ibv_xrcd_init_attr open = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT,
	};
	struct ibv_xrcd *xrcd = ibv_open_xrcd(self->s[0].context, &open);
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(self->s[0].context, &init);

	ASSERT_NE(NULL, xrcd);
	ASSERT_NE(NULL, qp);
	EXPECT_EQ(EOPNOTSUPP, set_limit(qp, KBPS, 0, 0));
	EXPECT_EQ(0, ibv_destroy_qp(qp));
	EXPECT_EQ(0, ibv_close_xrcd(xrcd));
}

/* What is sent in pieces, of which each has a completion: how long it took; -1: it failed. */
static int64_t pieces_ns(struct side *side, const struct ibv_send_wr *wr)
{
	unsigned int posted = 0, done = 0;
	int64_t start = now_ns();
	struct ibv_wc wc;

	while (done < UNITS) {
		if (posted < UNITS && posted - done < PAIR_WRS) {
			struct ibv_send_wr *bad, next = *wr;

			if (ibv_post_send(side->qp, &next, &bad))
				return -1;
			posted++;
			continue;
		}
		if (!side_wait(side, &wc, 20) || wc.status)
			return -1;
		done++;
	}
	return now_ns() - start;
}

static int uc_to_rts(struct side *side, struct side *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer->qp->qp_num,
		.ah_attr = side_ah(side, &peer->gid),
	};
	int err = qp_to_init(side->qp, IBV_ACCESS_REMOTE_WRITE);

	err = err ?: ibv_modify_qp(side->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				   IBV_QP_RQ_PSN);
	attr.qp_state = IBV_QPS_RTS;
	return err ?: ibv_modify_qp(side->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

static int ud_to_rts(struct side *side, struct side *peer)
{
	return qp_ud_to_rts(side->qp, QKEY);
}

static int raw_to_rts(struct side *side, struct side *peer)
{
	struct ibv_qp_attr attr = { .port_num = 1 };
	int err;

	attr.qp_state = IBV_QPS_INIT;
	err = ibv_modify_qp(side->qp, &attr, IBV_QP_STATE | IBV_QP_PORT);
	attr.qp_state = IBV_QPS_RTR;
	err = err ?: ibv_modify_qp(side->qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	return err ?: ibv_modify_qp(side->qp, &attr, IBV_QP_STATE);
}

FIXTURE(service) {
	struct side s[2];
};

FIXTURE_VARIANT(service) {
	enum ibv_qp_type type;
	int (*to_rts)(struct side *side, struct side *peer);
};

FIXTURE_VARIANT_ADD(service, uc) {
	.type = IBV_QPT_UC, .to_rts = uc_to_rts,
};

FIXTURE_VARIANT_ADD(service, ud) {
	.type = IBV_QPT_UD, .to_rts = ud_to_rts,
};

FIXTURE_VARIANT_ADD(service, raw_packet) {
	.type = IBV_QPT_RAW_PACKET, .to_rts = raw_to_rts,
};

FIXTURE_SETUP(service)
{
	ASSERT_EQ(0, pair_open_of(self->s, variant->type));
	for (int i = 0; i < 2; i++)
		ASSERT_EQ(0, variant->to_rts(&self->s[i], &self->s[!i]));
}

FIXTURE_TEARDOWN(service)
{
	pair_close(self->s);
}

/* RAT-2: from NIC to NIC of one process, where no line is slow. */
TEST_F(service, keeps_to_its_limit)
{
	struct side *a = &self->s[0], *b = &self->s[1];
	struct ibv_ah *ah = ud_ah(a, &b->gid);
	struct ibv_sge sge;
	struct ibv_send_wr wr = ud_wr(&sge, a, ah, b->qp->qp_num, UNIT);
	int64_t ns;

	ASSERT_NE(NULL, ah);
	if (variant->type == IBV_QPT_UC) {
		wr.opcode = IBV_WR_RDMA_WRITE;
		wr.wr.rdma.remote_addr = (uintptr_t)b->mem;
		wr.wr.rdma.rkey = b->mr->rkey;
	} else if (variant->type == IBV_QPT_RAW_PACKET) {
		/* To nobody, of a type for experiments. */
		memcpy(a->mem, "\x02\0\0\0\0\x77" "\x02\0\0\0\0\x78" "\x88\xb5", 14);
	}
	ASSERT_EQ(0, set_limit(a->qp, KBPS, 0, UNIT));
	ns = pieces_ns(a, &wr);
	EXPECT_LT(least_ns(UNITS * UNIT), ns);
	EXPECT_EQ(0, ibv_destroy_ah(ah));
}

/* ECE-1: skuad has no options. */
TEST_F(rate, peers_agree_on_options)
{
	struct side *a = &self->s[0], *b = &self->s[1];
	struct ibv_qp *qp = side_create_qp(a), *ud = side_create_qp_of(a, IBV_QPT_UD);
	struct ibv_ece ece = {};

	ASSERT_NE(NULL, qp);
	ASSERT_NE(NULL, ud);
	EXPECT_EQ(EOPNOTSUPP, ibv_query_ece(ud, &ece));
	ASSERT_EQ(0, ibv_query_ece(qp, &ece));
	EXPECT_EQ(0x1af4, ece.vendor_id);
	EXPECT_EQ(0, ece.options);
	ece.options = UINT32_MAX;
	ASSERT_EQ(0, ibv_set_ece(qp, &ece));
	EXPECT_EQ(0, ece.options);
	ece.vendor_id++;
	EXPECT_EQ(EINVAL, ibv_set_ece(qp, &ece));
	EXPECT_EQ(EINVAL, ibv_set_ece(a->qp, &ece));
	ASSERT_EQ(0, qp_to_init(qp, 0));
	ASSERT_EQ(0, qp_to_rtr(qp, a, b, b->qp->qp_num));
	ece.vendor_id--;
	EXPECT_EQ(EINVAL, ibv_set_ece(qp, &ece));
	ASSERT_EQ(0, ibv_query_ece(qp, &ece));
	EXPECT_EQ(0, ece.options);
	EXPECT_EQ(0, ibv_destroy_qp(ud));
	EXPECT_EQ(0, ibv_destroy_qp(qp));
}

TEST_HARNESS_MAIN
