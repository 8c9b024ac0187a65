// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* QPs of wrong attributes, and wrong ones on their way from RESET to RTS. See bad.h. */
#include <errno.h>
#include <string.h>

#include "kselftest_harness.h"
#include "bad.h"

/* Queue pairs */

static int make_qp(struct side *s, const struct ibv_qp_init_attr *given)
{
	struct ibv_qp_init_attr attr = *given;

	attr.send_cq = s->cq;
	attr.recv_cq = s->cq;
	return MADE(ibv_create_qp(s->pd, &attr), ibv_destroy_qp);
}

TEST_F(bad, create_qp)
{
	const uint32_t wr = self->attr.max_qp_wr, sge = self->attr.max_sge;
	const struct {
		const char *name;
		struct ibv_qp_cap cap;
		enum ibv_qp_type type;
		int err;
	} rows[] = {
		{ "one send too many", { wr + 1, 1, 1, 1, 0 }, IBV_QPT_RC, EINVAL },
		{ "one receive too many", { 1, wr + 1, 1, 1, 0 }, IBV_QPT_RC, EINVAL },
		{ "as many sends as can be said", { UINT32_MAX, 1, 1, 1, 0 }, IBV_QPT_RC, EINVAL },
		{ "as many receives", { 1, UINT32_MAX, 1, 1, 0 }, IBV_QPT_RC, EINVAL },
		{ "one SGE too many", { 1, 1, sge + 1, 1, 0 }, IBV_QPT_RC, EINVAL },
		{ "one receive SGE too many", { 1, 1, 1, sge + 1, 0 }, IBV_QPT_RC, EINVAL },
		{ "as many SGEs as can be said", { 1, 1, UINT32_MAX, UINT32_MAX, 0 }, IBV_QPT_RC, EINVAL },
		{ "one byte inline too many", { 1, 1, 1, 1, 513 }, IBV_QPT_RC, EINVAL },
		{ "as much inline as can be said", { 1, 1, 1, 1, UINT32_MAX }, IBV_QPT_RC, EINVAL },
		{ "one SGE too many of UD", { 1, 1, sge + 1, 1, 0 }, IBV_QPT_UD, EINVAL },
		{ "one byte inline too many of UD", { 1, 1, 1, 1, 513 }, IBV_QPT_UD, EINVAL },
		{ "one send too many of UD", { wr + 1, 1, 1, 1, 0 }, IBV_QPT_UD, EINVAL },
		{ "one send too many of UC", { wr + 1, 1, 1, 1, 0 }, IBV_QPT_UC, EINVAL },
		{ "one send too many of XRC", { wr + 1, 1, 1, 1, 0 }, IBV_QPT_XRC_SEND, EINVAL },
		{ "management, which is the kernel's", { 1, 1, 1, 1, 0 }, 1, EOPNOTSUPP },
		{ "one send too many of raw packets", { wr + 1, 1, 1, 1, 0 }, IBV_QPT_RAW_PACKET, EINVAL },
		{ "one receive SGE too many of raw packets", { 1, 1, 1, sge + 1, 0 }, IBV_QPT_RAW_PACKET, EINVAL },
		{ "the receiving end of XRC without a domain", { 1, 1, 1, 1, 0 }, IBV_QPT_XRC_RECV, EOPNOTSUPP },
		{ "a driver's own", { 1, 1, 1, 1, 0 }, IBV_QPT_DRIVER, EOPNOTSUPP },
		{ "no type", { 1, 1, 1, 1, 0 }, 0, EOPNOTSUPP },
		{ "all limits at once", { wr, wr, sge, sge, 512 }, IBV_QPT_RC, 0 },
		{ "all limits at once, of UC", { wr, wr, sge, sge, 512 }, IBV_QPT_UC, 0 },
		{ "all limits at once, of UD", { wr, wr, sge, sge, 512 }, IBV_QPT_UD, 0 },
		{ "all limits at once, of XRC", { wr, wr, sge, sge, 512 }, IBV_QPT_XRC_SEND, 0 },
		{ "all limits at once, of raw packets", { wr, wr, sge, sge, 512 }, IBV_QPT_RAW_PACKET, 0 },
		{ "no queue at all", { 0, 0, 0, 0, 0 }, IBV_QPT_RC, 0 },
	};

	for EACH(row, rows) {
		struct ibv_qp_init_attr attr = { .cap = row->cap, .qp_type = row->type };

		GAVE(row->err, make_qp(&self->s[0], &attr), row);
	}
}

TEST_F(bad, create_qp_ex)
{
	struct side *s = &self->s[0];
	const struct {
		const char *name;
		uint32_t mask, create_flags;
		uint64_t ops;
		int err;
		uint16_t tso_header;
	} rows[] = {
		{ "no PD", 0, 0, 0, EINVAL },
		{ "a flag of UD", IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		  IBV_QP_CREATE_BLOCK_SELF_MCAST_LB, 0, EOPNOTSUPP },
		{ "unknown attribute", IBV_QP_INIT_ATTR_PD | 1u << 20, 0, 0, EOPNOTSUPP },
		{ "TSO", IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_MAX_TSO_HEADER, 0, 0, EOPNOTSUPP, 1 },
		{ "no headers of TSO", IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_MAX_TSO_HEADER, 0, 0, 0 },
		{ "an operation of UD", IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, 0,
		  IBV_QP_EX_WITH_TSO, EOPNOTSUPP },
		{ "unknown operation", IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, 0,
		  1ull << 40, EOPNOTSUPP },
		{ "an operation that there is", IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, 0,
		  IBV_QP_EX_WITH_RDMA_WRITE, 0 },
	};

	for EACH(row, rows) {
		struct ibv_qp_init_attr_ex attr = {
			.send_cq = s->cq, .recv_cq = s->cq, .pd = s->pd, .qp_type = IBV_QPT_RC,
			.cap = { 1, 1, 1, 1, 0 }, .comp_mask = row->mask,
			.create_flags = row->create_flags, .send_ops_flags = row->ops,
			.max_tso_header = row->tso_header,
		};

		GAVE(row->err, MADE(ibv_create_qp_ex(s->context, &attr), ibv_destroy_qp), row);
	}
}

/* Transitions */

#define INIT_MASK (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define RTR_MASK (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
		  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS_MASK (IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | \
		  IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)

/* What is changed in attributes that would be right, and with which mask they are given. */
struct modify_row {
	const char *name;
	int mask;
	void (*change)(struct ibv_qp_attr *attr);
	int err;
};

#define CHANGE(id, statement) static void id(struct ibv_qp_attr *attr) { statement; }
static void nothing(struct ibv_qp_attr *attr) { }
CHANGE(state_rtr, attr->qp_state = IBV_QPS_RTR)
CHANGE(state_rts, attr->qp_state = IBV_QPS_RTS)
CHANGE(state_init, attr->qp_state = IBV_QPS_INIT)
CHANGE(state_sqe, attr->qp_state = IBV_QPS_SQE)
CHANGE(state_none, attr->qp_state = 77)
CHANGE(cur_state_rts, attr->cur_qp_state = IBV_QPS_RTS)
CHANGE(cur_state_sqe, attr->cur_qp_state = IBV_QPS_SQE)
CHANGE(cur_state_none, attr->cur_qp_state = 77)
CHANGE(port_0, attr->port_num = 0)
CHANGE(port_2, attr->port_num = 2)
CHANGE(pkey_1, attr->pkey_index = 1)
CHANGE(access_unknown, attr->qp_access_flags = 1 << 16)
CHANGE(access_zero_based, attr->qp_access_flags = IBV_ACCESS_ZERO_BASED)
CHANGE(mtu_0, attr->path_mtu = 0)
CHANGE(mtu_6, attr->path_mtu = 6)
CHANGE(dest_25_bits, attr->dest_qp_num = 1 << 24)
CHANGE(dest_rd_atomic_255, attr->max_dest_rd_atomic = 255)
CHANGE(rd_atomic_255, attr->max_rd_atomic = 255)
CHANGE(rnr_timer_32, attr->min_rnr_timer = 32)
CHANGE(timeout_32, attr->timeout = 32)
CHANGE(retry_8, attr->retry_cnt = 8)
CHANGE(rnr_retry_8, attr->rnr_retry = 8)
CHANGE(rate_1, attr->rate_limit = 1)
CHANGE(rate_max, attr->rate_limit = UINT32_MAX)
CHANGE(av_local, attr->ah_attr.is_global = 0)
CHANGE(av_port_0, attr->ah_attr.port_num = 0)
CHANGE(av_port_2, attr->ah_attr.port_num = 2)
CHANGE(av_empty_gid, attr->ah_attr.grh.sgid_index = 200)
CHANGE(av_high_gid, attr->ah_attr.grh.sgid_index = 255)
CHANGE(av_zero_gid, memset(&attr->ah_attr.grh.dgid, 0, 16))
CHANGE(av_multicast, attr->ah_attr.grh.dgid.raw[0] = 0xff)
CHANGE(psn_wide, attr->rq_psn = attr->sq_psn = 0xff123456)

static const struct modify_row to_init[] = {
	{ "INIT: nothing given", IBV_QP_STATE, nothing, EINVAL },
	{ "INIT: no P_Key", INIT_MASK & ~IBV_QP_PKEY_INDEX, nothing, EINVAL },
	{ "INIT: no port", INIT_MASK & ~IBV_QP_PORT, nothing, EINVAL },
	{ "INIT: no rights", INIT_MASK & ~IBV_QP_ACCESS_FLAGS, nothing, EINVAL },
	{ "INIT: an RTR attribute", INIT_MASK | IBV_QP_RQ_PSN, nothing, EINVAL },
	{ "INIT: a Q_Key", INIT_MASK | IBV_QP_QKEY, nothing, EINVAL },
	{ "INIT: port 0", INIT_MASK, port_0, EINVAL },
	{ "INIT: port 2", INIT_MASK, port_2, EINVAL },
	{ "INIT: P_Key that is not there", INIT_MASK, pkey_1, EINVAL },
	{ "INIT: unknown right", INIT_MASK, access_unknown, EOPNOTSUPP },
	{ "INIT: right that a QP cannot give", INIT_MASK, access_zero_based, EOPNOTSUPP },
	{ "INIT: to RTR instead", INIT_MASK, state_rtr, EINVAL },
	{ "INIT: to RTS instead", INIT_MASK, state_rts, EINVAL },
	{ "INIT: to SQE instead", IBV_QP_STATE, state_sqe, EINVAL },
	{ "INIT: to no state", INIT_MASK, state_none, EINVAL },
	{ "INIT: from RTS", INIT_MASK | IBV_QP_CUR_STATE, cur_state_rts, EINVAL },
	{ "INIT: from no state", INIT_MASK | IBV_QP_CUR_STATE, cur_state_none, EINVAL },
	{ "INIT: unknown attribute", INIT_MASK | 1 << 30, nothing, EOPNOTSUPP },
};

static const struct modify_row to_rtr[] = {
	{ "RTR: nothing given", IBV_QP_STATE, nothing, EINVAL },
	{ "RTR: no address", RTR_MASK & ~IBV_QP_AV, nothing, EINVAL },
	{ "RTR: no MTU", RTR_MASK & ~IBV_QP_PATH_MTU, nothing, EINVAL },
	{ "RTR: no peer", RTR_MASK & ~IBV_QP_DEST_QPN, nothing, EINVAL },
	{ "RTR: no PSN", RTR_MASK & ~IBV_QP_RQ_PSN, nothing, EINVAL },
	{ "RTR: no depth of READs", RTR_MASK & ~IBV_QP_MAX_DEST_RD_ATOMIC, nothing, EINVAL },
	{ "RTR: no RNR timer", RTR_MASK & ~IBV_QP_MIN_RNR_TIMER, nothing, EINVAL },
	{ "RTR: an RTS attribute", RTR_MASK | IBV_QP_TIMEOUT, nothing, EINVAL },
	{ "RTR: MTU 0", RTR_MASK, mtu_0, EINVAL },
	{ "RTR: MTU above the largest", RTR_MASK, mtu_6, EINVAL },
	{ "RTR: peer of 25 bits", RTR_MASK, dest_25_bits, EINVAL },
	{ "RTR: too many READs", RTR_MASK, dest_rd_atomic_255, EINVAL },
	{ "RTR: RNR timer of 6 bits", RTR_MASK, rnr_timer_32, EINVAL },
	{ "RTR: address without GRH", RTR_MASK, av_local, EINVAL },
	{ "RTR: address of port 0", RTR_MASK, av_port_0, EINVAL },
	{ "RTR: address of port 2", RTR_MASK, av_port_2, EINVAL },
	{ "RTR: empty GID", RTR_MASK, av_empty_gid, ENODATA },
	{ "RTR: GID at the end", RTR_MASK, av_high_gid, ENODATA },
	{ "RTR: no GID of the peer", RTR_MASK, av_zero_gid, EINVAL },
	{ "RTR: peer is a group", RTR_MASK, av_multicast, EINVAL },
	{ "RTR: alternate path", RTR_MASK | IBV_QP_ALT_PATH, nothing, EINVAL },
	{ "RTR: rate limit", RTR_MASK | IBV_QP_RATE_LIMIT, nothing, EINVAL },
	{ "RTR: to RTS instead", RTS_MASK, state_rts, EINVAL },
};

static const struct modify_row to_rts[] = {
	{ "RTS: nothing given", IBV_QP_STATE, nothing, EINVAL },
	{ "RTS: no PSN", RTS_MASK & ~IBV_QP_SQ_PSN, nothing, EINVAL },
	{ "RTS: no timeout", RTS_MASK & ~IBV_QP_TIMEOUT, nothing, EINVAL },
	{ "RTS: no retries", RTS_MASK & ~IBV_QP_RETRY_CNT, nothing, EINVAL },
	{ "RTS: no RNR retries", RTS_MASK & ~IBV_QP_RNR_RETRY, nothing, EINVAL },
	{ "RTS: no depth of READs", RTS_MASK & ~IBV_QP_MAX_QP_RD_ATOMIC, nothing, EINVAL },
	{ "RTS: an RTR attribute", RTS_MASK | IBV_QP_PATH_MTU, nothing, EINVAL },
	{ "RTS: timeout of 6 bits", RTS_MASK, timeout_32, EINVAL },
	{ "RTS: 8 retries", RTS_MASK, retry_8, EINVAL },
	{ "RTS: 8 RNR retries", RTS_MASK, rnr_retry_8, EINVAL },
	{ "RTS: too many READs", RTS_MASK, rd_atomic_255, EINVAL },
	{ "RTS: migration", RTS_MASK | IBV_QP_PATH_MIG_STATE, nothing, EOPNOTSUPP },
	{ "RTS: too low a rate limit", RTS_MASK | IBV_QP_RATE_LIMIT, rate_1, EINVAL },
	{ "RTS: too high a rate limit", RTS_MASK | IBV_QP_RATE_LIMIT, rate_max, EINVAL },
	{ "RTS: to INIT instead", IBV_QP_STATE, state_init, EINVAL },
};

static const struct modify_row in_rts[] = {
	{ "in RTS: to INIT", IBV_QP_STATE, state_init, EINVAL },
	{ "in RTS: to RTR", RTR_MASK, state_rtr, EINVAL },
	{ "in RTS: PSN", IBV_QP_SQ_PSN, nothing, EINVAL },
	{ "in RTS: timeout", IBV_QP_TIMEOUT, nothing, EINVAL },
	{ "in RTS: address", IBV_QP_AV, nothing, EINVAL },
	{ "in RTS: unknown right", IBV_QP_ACCESS_FLAGS, access_unknown, EOPNOTSUPP },
	{ "in RTS: too low a rate limit", IBV_QP_RATE_LIMIT, rate_1, EINVAL },
	{ "in RTS: RNR timer of 6 bits", IBV_QP_MIN_RNR_TIMER, rnr_timer_32, EINVAL },
};

/* UC and UD: what only others have. */
#define UC_RTR_MASK (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define UD_INIT_MASK (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY)
#define U_RTS_MASK (IBV_QP_STATE | IBV_QP_SQ_PSN)

static const struct modify_row uc_to_rtr[] = {
	{ "UC, RTR: no address", UC_RTR_MASK & ~IBV_QP_AV, nothing, EINVAL },
	{ "UC, RTR: no PSN", UC_RTR_MASK & ~IBV_QP_RQ_PSN, nothing, EINVAL },
	{ "UC, RTR: depth of READs", UC_RTR_MASK | IBV_QP_MAX_DEST_RD_ATOMIC, nothing, EINVAL },
	{ "UC, RTR: RNR timer", UC_RTR_MASK | IBV_QP_MIN_RNR_TIMER, nothing, EINVAL },
	{ "UC, RTR: a Q_Key", UC_RTR_MASK | IBV_QP_QKEY, nothing, EINVAL },
	{ "UC, RTR: peer is a group", UC_RTR_MASK, av_multicast, EINVAL },
};

static const struct modify_row uc_to_rts[] = {
	{ "UC, RTS: no PSN", IBV_QP_STATE, nothing, EINVAL },
	{ "UC, RTS: timeout", U_RTS_MASK | IBV_QP_TIMEOUT, nothing, EINVAL },
	{ "UC, RTS: retries", U_RTS_MASK | IBV_QP_RETRY_CNT, nothing, EINVAL },
	{ "UC, RTS: depth of READs", U_RTS_MASK | IBV_QP_MAX_QP_RD_ATOMIC, nothing, EINVAL },
};

static const struct modify_row ud_to_init[] = {
	{ "UD, INIT: no Q_Key", UD_INIT_MASK & ~IBV_QP_QKEY, nothing, EINVAL },
	{ "UD, INIT: rights", UD_INIT_MASK | IBV_QP_ACCESS_FLAGS, nothing, EINVAL },
	{ "UD, INIT: port 2", UD_INIT_MASK, port_2, EINVAL },
	{ "UD, INIT: P_Key that is not there", UD_INIT_MASK, pkey_1, EINVAL },
	{ "UD, INIT: to SQE instead", IBV_QP_STATE, state_sqe, EINVAL },
};

static const struct modify_row ud_to_rtr[] = {
	{ "UD, RTR: an address", IBV_QP_STATE | IBV_QP_AV, nothing, EINVAL },
	{ "UD, RTR: a peer", IBV_QP_STATE | IBV_QP_DEST_QPN, nothing, EINVAL },
	{ "UD, RTR: a PSN", IBV_QP_STATE | IBV_QP_RQ_PSN, nothing, EINVAL },
};

static const struct modify_row ud_to_rts[] = {
	{ "UD, RTS: no PSN", IBV_QP_STATE, nothing, EINVAL },
	{ "UD, RTS: timeout", U_RTS_MASK | IBV_QP_TIMEOUT, nothing, EINVAL },
};

static const struct modify_row ud_in_rts[] = {
	{ "UD, in RTS: as if in SQE", IBV_QP_STATE | IBV_QP_CUR_STATE, cur_state_sqe, EINVAL },
	{ "UD, in RTS: to SQE", IBV_QP_STATE, state_sqe, EINVAL },
	{ "UD, in RTS: PSN", IBV_QP_SQ_PSN, nothing, EINVAL },
};

/* Programs ask for MW_BIND as a matter of course. */
static struct ibv_qp_attr right_attr(struct side s[2], enum ibv_qp_state state)
{
	return (struct ibv_qp_attr){
		.qp_state = state, .port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND,
		.path_mtu = IBV_MTU_1024, .dest_qp_num = s[1].qp->qp_num, .rq_psn = 7, .sq_psn = 7,
		.max_dest_rd_atomic = 4, .max_rd_atomic = 4, .min_rnr_timer = 1, .timeout = 10,
		.retry_cnt = 3, .rnr_retry = 3, .qkey = 0x1234, .ah_attr = side_ah(&s[0], &s[1].gid),
	};
}

/* All rows are refused in this state and leave it; then what is right is taken. */
#define REFUSES(qp, from, to, right_mask, rows) do {			\
	struct ibv_qp_attr attr;					\
									\
	for EACH(row, rows) {						\
		attr = right_attr(self->s, to);		\
		row->change(&attr);					\
		GAVE(row->err, ibv_modify_qp(qp, &attr, row->mask), row); \
		ASSERT_EQ(from, qp_state(qp)) {				\
			TH_LOG("state after: %s", row->name);		\
		}							\
	}								\
	attr = right_attr(self->s, to);			\
	ASSERT_EQ(0, ibv_modify_qp(qp, &attr, right_mask));		\
} while (0)

TEST_F(bad, modify_qp)
{
	struct ibv_qp *qp = side_create_qp(&self->s[0]);

	ASSERT_NE(NULL, qp);
	REFUSES(qp, IBV_QPS_RESET, IBV_QPS_INIT, INIT_MASK, to_init);
	REFUSES(qp, IBV_QPS_INIT, IBV_QPS_RTR, RTR_MASK, to_rtr);
	REFUSES(qp, IBV_QPS_RTR, IBV_QPS_RTS, RTS_MASK, to_rts);
	REFUSES(qp, IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_ACCESS_FLAGS, in_rts);
	ASSERT_EQ(0, ibv_destroy_qp(qp));
}

TEST_F(bad, modify_uc)
{
	struct ibv_qp *qp = side_create_qp_of(&self->s[0], IBV_QPT_UC);

	ASSERT_NE(NULL, qp);
	REFUSES(qp, IBV_QPS_RESET, IBV_QPS_INIT, INIT_MASK, to_init);
	REFUSES(qp, IBV_QPS_INIT, IBV_QPS_RTR, UC_RTR_MASK, uc_to_rtr);
	REFUSES(qp, IBV_QPS_RTR, IBV_QPS_RTS, U_RTS_MASK, uc_to_rts);
	ASSERT_EQ(0, ibv_destroy_qp(qp));
}

TEST_F(bad, modify_ud)
{
	struct ibv_qp *qp = side_create_qp_of(&self->s[0], IBV_QPT_UD);

	ASSERT_NE(NULL, qp);
	REFUSES(qp, IBV_QPS_RESET, IBV_QPS_INIT, UD_INIT_MASK, ud_to_init);
	REFUSES(qp, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_STATE, ud_to_rtr);
	REFUSES(qp, IBV_QPS_RTR, IBV_QPS_RTS, U_RTS_MASK, ud_to_rts);
	REFUSES(qp, IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_QKEY, ud_in_rts);
	ASSERT_EQ(0, ibv_destroy_qp(qp));
}

TEST_F(bad, modify_qp_in_error)
{
	static const struct modify_row rows[] = {
		{ "in ERR: to INIT", INIT_MASK, state_init, EINVAL },
		{ "in ERR: to RTR", RTR_MASK, state_rtr, EINVAL },
		{ "in ERR: to RTS", RTS_MASK, state_rts, EINVAL },
		{ "in ERR: rights", IBV_QP_ACCESS_FLAGS, nothing, EINVAL },
	};
	struct ibv_qp *qp = side_create_qp(&self->s[0]);
	struct ibv_qp_attr err = { .qp_state = IBV_QPS_ERR };

	ASSERT_NE(NULL, qp);
	ASSERT_EQ(EINVAL, ibv_modify_qp(qp, &err, IBV_QP_STATE));	/* says Linux, in RESET */
	ASSERT_EQ(0, qp_to_init(qp, 0));
	ASSERT_EQ(0, ibv_modify_qp(qp, &err, IBV_QP_STATE));
	REFUSES(qp, IBV_QPS_ERR, IBV_QPS_RESET, IBV_QP_STATE, rows);
	ASSERT_EQ(IBV_QPS_RESET, qp_state(qp));
	ASSERT_EQ(0, ibv_destroy_qp(qp));
}

/* QPS-5: there is one port. */
TEST_F(bad, the_port_is_port_1)
{
	struct ibv_qp *qp = side_create_qp(&self->s[0]);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	ASSERT_NE(NULL, qp);
	ASSERT_EQ(0, qp_to_init(qp, 0));
	ASSERT_EQ(0, ibv_query_qp(qp, &attr, IBV_QP_PORT, &init));
	EXPECT_EQ(1, attr.port_num);
	ASSERT_EQ(0, ibv_destroy_qp(qp));
}

/* PSNs have 24 bits; programs give more, and other drivers drop what is above. */
TEST_F(bad, psns_of_32_bits)
{
	struct ibv_qp *qp = side_create_qp(&self->s[0]);
	struct ibv_qp_attr attr = right_attr(self->s, IBV_QPS_RTR);
	struct ibv_qp_init_attr init;

	ASSERT_NE(NULL, qp);
	ASSERT_EQ(0, qp_to_init(qp, 0));
	psn_wide(&attr);
	ASSERT_EQ(0, ibv_modify_qp(qp, &attr, RTR_MASK));
	attr.qp_state = IBV_QPS_RTS;
	ASSERT_EQ(0, ibv_modify_qp(qp, &attr, RTS_MASK));
	ASSERT_EQ(0, ibv_query_qp(qp, &attr, IBV_QP_RQ_PSN | IBV_QP_SQ_PSN, &init));
	EXPECT_EQ(0x123456, attr.rq_psn);
	EXPECT_EQ(0x123456, attr.sq_psn);
	ASSERT_EQ(0, ibv_destroy_qp(qp));
}

TEST_HARNESS_MAIN
