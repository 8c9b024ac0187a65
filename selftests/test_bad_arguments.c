// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Each verb with each kind of wrong argument: a table for each, a row for each argument. A row gives
 * the errno (or the completion) that the specification or, where it leaves this open, other
 * drivers give. After every row the process goes on: it transfers data and compares them.
 *
 * What the provider refuses by itself is given to the kernel in test_bad_commands.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pair.h"
#include "raw.h"
#include "rows.h"

#define ALL_ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

FIXTURE(bad) {
	struct side s[2];
	struct ibv_device_attr attr;
};

FIXTURE_SETUP(bad)
{
	ASSERT_EQ(0, pair_open(self->s));
	ASSERT_EQ(0, ibv_query_device(self->s[0].context, &self->attr));
}

FIXTURE_TEARDOWN(bad)
{
	pair_close(self->s);
}

/* errno of a call that makes something; 0 if it did, and what it made is unmade. */
#define MADE(make, unmake) ({						\
	typeof(make) made_;						\
									\
	errno = 0;							\
	made_ = (make);							\
	made_ ? (unmake(made_), 0) : errno;				\
})

/* Completion queues */

TEST_F(bad, create_cq)
{
	const int max = self->attr.max_cqe, vectors = self->s[0].context->num_comp_vectors;
	const struct {
		const char *name;
		int cqe, vector, err;
	} rows[] = {
		{ "no entries", 0, 0, EINVAL },
		{ "less than none", -1, 0, EINVAL },
		{ "as few as can be", INT32_MIN, 0, EINVAL },
		{ "one too many", max + 1, 0, EINVAL },
		{ "as many as can be said", INT32_MAX, 0, EINVAL },
		{ "a vector too high", 1, vectors, EINVAL },
		{ "a vector below 0", 1, -1, EINVAL },
		{ "the last vector", 1, vectors - 1, 0 },
	};

	for EACH(row, rows)
		GAVE(row->err, MADE(ibv_create_cq(self->s[0].context, row->cqe, NULL, NULL, row->vector),
				    ibv_destroy_cq), row);
}

TEST_F(bad, create_cq_ex)
{
	const struct {
		const char *name;
		struct ibv_cq_init_attr_ex attr;
		int err;
	} rows[] = {
		{ "no entries", { .cqe = 0 }, EINVAL },
		{ "one too many", { .cqe = self->attr.max_cqe + 1 }, EINVAL },
		{ "as many as can be said", { .cqe = UINT32_MAX }, EINVAL },
		{ "a vector too high", { .cqe = 1, .comp_vector = 1000 }, EINVAL },
		{ "overruns ignored", { .cqe = 1, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
					.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN }, EOPNOTSUPP },
		{ "unknown flag", { .cqe = 1, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
				    .flags = 1u << 20 }, EOPNOTSUPP },
		{ "unknown field of completions", { .cqe = 1, .wc_flags = 1ull << 40 }, EOPNOTSUPP },
		{ "clock time", { .cqe = 1,
				  .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK }, EOPNOTSUPP },
		{ "unknown attribute", { .cqe = 1, .comp_mask = 1u << 20 }, EOPNOTSUPP },
	};

	for EACH(row, rows) {
		struct ibv_cq_init_attr_ex attr = row->attr;

		GAVE(row->err, MADE(ibv_cq_ex_to_cq(ibv_create_cq_ex(self->s[0].context, &attr)),
				    ibv_destroy_cq), row);
	}
}

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
		{ "management, which is the kernel's", { 1, 1, 1, 1, 0 }, 1, EOPNOTSUPP },
		{ "raw packets", { 1, 1, 1, 1, 0 }, IBV_QPT_RAW_PACKET, EOPNOTSUPP },
		{ "XRC", { 1, 1, 1, 1, 0 }, IBV_QPT_XRC_SEND, EOPNOTSUPP },
		{ "a driver's own", { 1, 1, 1, 1, 0 }, IBV_QPT_DRIVER, EOPNOTSUPP },
		{ "no type", { 1, 1, 1, 1, 0 }, 0, EOPNOTSUPP },
		{ "all limits at once", { wr, wr, sge, sge, 512 }, IBV_QPT_RC, 0 },
		{ "all limits at once, of UC", { wr, wr, sge, sge, 512 }, IBV_QPT_UC, 0 },
		{ "all limits at once, of UD", { wr, wr, sge, sge, 512 }, IBV_QPT_UD, 0 },
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
	} rows[] = {
		{ "no PD", 0, 0, 0, EINVAL },
		{ "a flag of UD", IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		  IBV_QP_CREATE_BLOCK_SELF_MCAST_LB, 0, EOPNOTSUPP },
		{ "unknown attribute", IBV_QP_INIT_ATTR_PD | 1u << 20, 0, 0, EOPNOTSUPP },
		{ "TSO", IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_MAX_TSO_HEADER, 0, 0, EOPNOTSUPP },
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
/* QPS-5: there is one port. */
CHANGE(port_2, attr->port_num = 2)
CHANGE(pkey_1, attr->pkey_index = 1)
CHANGE(access_unknown, attr->qp_access_flags = 1 << 16)
CHANGE(access_bind, attr->qp_access_flags = IBV_ACCESS_ON_DEMAND)
CHANGE(mtu_0, attr->path_mtu = 0)
CHANGE(mtu_6, attr->path_mtu = 6)
CHANGE(dest_25_bits, attr->dest_qp_num = 1 << 24)
CHANGE(dest_rd_atomic_255, attr->max_dest_rd_atomic = 255)
CHANGE(rd_atomic_255, attr->max_rd_atomic = 255)
CHANGE(rnr_timer_32, attr->min_rnr_timer = 32)
CHANGE(timeout_32, attr->timeout = 32)
CHANGE(retry_8, attr->retry_cnt = 8)
CHANGE(rnr_retry_8, attr->rnr_retry = 8)
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
	{ "INIT: right that a QP cannot give", INIT_MASK, access_bind, EOPNOTSUPP },
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
	{ "RTS: rate limit", RTS_MASK | IBV_QP_RATE_LIMIT, nothing, EOPNOTSUPP },
	{ "RTS: to INIT instead", IBV_QP_STATE, state_init, EINVAL },
};

static const struct modify_row in_rts[] = {
	{ "in RTS: to INIT", IBV_QP_STATE, state_init, EINVAL },
	{ "in RTS: to RTR", RTR_MASK, state_rtr, EINVAL },
	{ "in RTS: PSN", IBV_QP_SQ_PSN, nothing, EINVAL },
	{ "in RTS: timeout", IBV_QP_TIMEOUT, nothing, EINVAL },
	{ "in RTS: address", IBV_QP_AV, nothing, EINVAL },
	{ "in RTS: unknown right", IBV_QP_ACCESS_FLAGS, access_unknown, EOPNOTSUPP },
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

static struct ibv_qp_attr right_attr(struct side s[2], struct ibv_qp *peer, enum ibv_qp_state state)
{
	return (struct ibv_qp_attr){
		.qp_state = state, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_1024, .dest_qp_num = peer->qp_num, .rq_psn = 7, .sq_psn = 7,
		.max_dest_rd_atomic = 4, .max_rd_atomic = 4, .min_rnr_timer = 1, .timeout = 10,
		.retry_cnt = 3, .rnr_retry = 3, .qkey = 0x1234,
		.ah_attr = {
			.is_global = 1, .port_num = 1,
			.grh = { .dgid = s[1].gid, .sgid_index = s[0].gid_index, .hop_limit = 1 },
		},
	};
}

/* All rows are refused in this state and leave it; then what is right is taken. */
#define REFUSES(qp, from, to, right_mask, rows) do {			\
	struct ibv_qp_attr attr;					\
									\
	for EACH(row, rows) {						\
		attr = right_attr(self->s, self->s[1].qp, to);		\
		row->change(&attr);					\
		GAVE(row->err, ibv_modify_qp(qp, &attr, row->mask), row); \
		ASSERT_EQ(from, qp_state(qp)) {				\
			TH_LOG("state after: %s", row->name);		\
		}							\
	}								\
	attr = right_attr(self->s, self->s[1].qp, to);			\
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

/* PSNs have 24 bits; programs give more, and other drivers drop what is above. */
TEST_F(bad, psns_of_32_bits)
{
	struct ibv_qp *qp = side_create_qp(&self->s[0]);
	struct ibv_qp_attr attr = right_attr(self->s, self->s[1].qp, IBV_QPS_RTR);
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

/* Address handles */

#define AH(id, ...) static void id(struct ibv_ah_attr *ah) { __VA_ARGS__; }
AH(ah_right)
AH(ah_group, ah->grh.dgid = (union ibv_gid){ .raw = { [10] = 0xff, [11] = 0xff, 239, 1, 2, 3 } })
AH(ah_local, ah->is_global = 0)
AH(ah_port_0, ah->port_num = 0)
AH(ah_port_2, ah->port_num = 2)
AH(ah_empty_gid, ah->grh.sgid_index = 200)
AH(ah_high_gid, ah->grh.sgid_index = 255)
AH(ah_zero_gid, memset(&ah->grh.dgid, 0, 16))
AH(ah_zero_ipv4, memset(&ah->grh.dgid.raw[12], 0, 4))
AH(ah_ipv6, ah->grh.dgid = (union ibv_gid){ .raw = { 0x20, 0x01, 0x0d, 0xb8, [15] = 2 } })
AH(ah_ipv6_group, ah->grh.dgid = (union ibv_gid){ .raw = { 0xff, 0x0e, [15] = 2 } })
AH(ah_nowhere, ah->grh.dgid.raw[12] = 198)
AH(ah_sl_8, ah->sl = 8)
AH(ah_label, ah->grh.flow_label = 1 << 20)

TEST_F(bad, create_ah)
{
	static const struct {
		const char *name;
		void (*change)(struct ibv_ah_attr *ah);
		int err;
	} rows[] = {
		{ "right", ah_right, 0 },
		{ "a group", ah_group, 0 },
		{ "no GRH", ah_local, EINVAL },
		{ "port 0", ah_port_0, EINVAL },
		{ "port 2", ah_port_2, EINVAL },
		{ "empty GID", ah_empty_gid, ENODATA },
		{ "GID at the end", ah_high_gid, ENODATA },
		{ "nobody's GID", ah_zero_gid, EINVAL },
		{ "nobody's IPv4 address", ah_zero_ipv4, ENODEV },
		{ "IPv6, from IPv4", ah_ipv6, EINVAL },
		{ "a group of IPv6, from IPv4", ah_ipv6_group, EINVAL },
		{ "no way there", ah_nowhere, ETIMEDOUT },
		{ "service level 8", ah_sl_8, EINVAL },
		{ "flow label of 21 bits", ah_label, EINVAL },
	};

	for EACH(row, rows) {
		struct ibv_ah_attr attr = right_attr(self->s, self->s[1].qp, 0).ah_attr;

		row->change(&attr);
		GAVE(row->err, MADE(ibv_create_ah(self->s[0].pd, &attr), ibv_destroy_ah), row);
	}
}

/* What an AH was made of, the kernel refuses to lose before it. */
TEST_F(bad, pd_with_an_ah)
{
	struct side *s = &self->s[0];
	struct ibv_ah_attr attr = right_attr(self->s, self->s[1].qp, 0).ah_attr;
	struct ibv_pd *pd = ibv_alloc_pd(s->context);
	struct ibv_ah *ah = ibv_create_ah(pd, &attr);

	ASSERT_NE(NULL, ah);
	ASSERT_EQ(EBUSY, ibv_dealloc_pd(pd));
	ASSERT_EQ(0, ibv_destroy_ah(ah));
	ASSERT_EQ(0, ibv_dealloc_pd(pd));
	ASSERT_TRUE(pair_transfer(self->s));
}

/* Memory regions */

TEST_F(bad, reg_mr)
{
	struct side *s = &self->s[0];
	void *read_only = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *cut = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *no_access = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct {
		const char *name;
		void *addr;
		size_t length;
		int access, err;
	} rows[] = {
		{ "no byte", s->mem, 0, ALL_ACCESS, EINVAL },
		{ "one byte", s->mem, 1, ALL_ACCESS, 0 },
		{ "above the limit", s->mem, self->attr.max_mr_size + 1, ALL_ACCESS, EINVAL },
		{ "around the end of all addresses", s->mem, SIZE_MAX, ALL_ACCESS, EINVAL },
		{ "up to the last address", (void *)-4096ul, 4096, ALL_ACCESS, EINVAL },
		{ "the kernel's memory", (void *)0xffff888000000000, 4096, ALL_ACCESS, EFAULT },
		{ "nothing at NULL", NULL, 4096, ALL_ACCESS, EFAULT },
		{ "a hole at the end", cut, 8192, ALL_ACCESS, EFAULT },
		{ "a hole", cut + 4096, 4096, ALL_ACCESS, EFAULT },
		{ "read-only memory, to be written", read_only, 4096, ALL_ACCESS, EFAULT },
		{ "memory without access", no_access, 4096, 0, EFAULT },
		{ "REMOTE_WRITE alone", s->mem, 4096, IBV_ACCESS_REMOTE_WRITE, EINVAL },
		{ "REMOTE_ATOMIC alone", s->mem, 4096, IBV_ACCESS_REMOTE_ATOMIC, EINVAL },
		{ "windows to be bound", s->mem, 4096, ALL_ACCESS | IBV_ACCESS_MW_BIND, EOPNOTSUPP },
		{ "from 0", s->mem, 4096, ALL_ACCESS | IBV_ACCESS_ZERO_BASED, EOPNOTSUPP },
		{ "on demand", s->mem, 4096, ALL_ACCESS | IBV_ACCESS_ON_DEMAND, EOPNOTSUPP },
		{ "to be flushed", s->mem, 4096, ALL_ACCESS | IBV_ACCESS_FLUSH_GLOBAL, EOPNOTSUPP },
		{ "an optional hint", s->mem, 4096, ALL_ACCESS | IBV_ACCESS_RELAXED_ORDERING, 0 },
	};

	ASSERT_EQ(0, munmap(cut + 4096, 4096));
	for EACH(row, rows)
		GAVE(row->err, MADE(ibv_reg_mr(s->pd, row->addr, row->length, row->access),
				    ibv_dereg_mr), row);
}

TEST_F(bad, reg_mr_iova)
{
	struct side *s = &self->s[0];
	const struct {
		const char *name;
		uint64_t iova;
		size_t length;
		int err;
	} rows[] = {
		{ "0", 0, 8192, 0 },
		{ "up to the last address", -8192ull, 8192, 0 },
		{ "past the last address", -4096ull, 8192, EINVAL },
		{ "another place in the page", 1, 8192, EINVAL },
	};

	for EACH(row, rows)
		GAVE(row->err, MADE(ibv_reg_mr_iova(s->pd, s->mem, row->length, row->iova, ALL_ACCESS),
				    ibv_dereg_mr), row);
}

/* Posting */

static int send_one(struct side *s, const struct ibv_send_wr *given)
{
	struct ibv_send_wr wr = *given, *bad = NULL;
	int err = ibv_post_send(s->qp, &wr, &bad);

	return err && bad != &wr ? -1 : err;
}

TEST_F(bad, post_send)
{
	struct side *s = &self->s[0];
	static uint8_t bytes[4096];
	static struct ibv_sge sges[64];
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	uint32_t inline_max, sge_max;

	ASSERT_EQ(0, ibv_query_qp(s->qp, &attr, IBV_QP_CAP, &init));
	inline_max = init.cap.max_inline_data;
	sge_max = init.cap.max_send_sge;
	for (unsigned int i = 0; i < 64; i++)
		sges[i] = (struct ibv_sge){ (uintptr_t)bytes, 1, s->mr->lkey };

	const struct {
		const char *name;
		enum ibv_wr_opcode opcode;
		int num_sge;
		unsigned int flags;
		uint32_t first;		/* length of the first SGE */
	} rows[] = {
		{ "one SGE too many", IBV_WR_SEND, sge_max + 1, 0, 1 },
		{ "64 SGEs", IBV_WR_RDMA_WRITE, 64, 0, 1 },
		{ "one SGE too many, of a READ", IBV_WR_RDMA_READ, sge_max + 1, 0, 1 },
		{ "less than no SGE", IBV_WR_SEND, -1, 0, 1 },
		{ "less than no SGE, inline", IBV_WR_SEND, -1, IBV_SEND_INLINE, 1 },
		{ "one SGE too many, inline", IBV_WR_SEND, sge_max + 1, IBV_SEND_INLINE, 1 },
		{ "one byte too many, inline", IBV_WR_SEND, 1, IBV_SEND_INLINE, inline_max + 1 },
		{ "bytes that add up to too many", IBV_WR_RDMA_WRITE, 2, IBV_SEND_INLINE, inline_max },
		{ "bytes that wrap around", IBV_WR_SEND, 2, IBV_SEND_INLINE, UINT32_MAX },
		{ "an inline READ", IBV_WR_RDMA_READ, 1, IBV_SEND_INLINE, 1 },
		{ "an inline atomic", IBV_WR_ATOMIC_FETCH_AND_ADD, 1, IBV_SEND_INLINE, 8 },
		{ "an atomic without result", IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 0, 8 },
		{ "an atomic with two results", IBV_WR_ATOMIC_CMP_AND_SWP, 2, 0, 7 },
		{ "a memory window", IBV_WR_BIND_MW, 0, 0, 1 },
		{ "TSO", IBV_WR_TSO, 1, 0, 1 },
		{ "unknown opcode", 77, 1, 0, 1 },
		{ "an opcode below 0", -1, 1, 0, 1 },
	};

	for EACH(row, rows) {
		struct ibv_send_wr wr = {
			.opcode = row->opcode, .sg_list = sges, .num_sge = row->num_sge,
			.send_flags = row->flags | IBV_SEND_SIGNALED,
			.wr.rdma = { (uintptr_t)self->s[1].mem, self->s[1].mr->rkey },
		};

		sges[0].length = row->first;
		GAVE(EINVAL, send_one(s, &wr), row);
	}
}

TEST_F(bad, post_datagram)
{
	struct side *s = &self->s[0];
	struct ibv_ah_attr ah_attr = right_attr(self->s, self->s[1].qp, 0).ah_attr;
	struct ibv_qp *qp = side_create_qp_of(s, IBV_QPT_UD);
	struct ibv_ah *ah = ibv_create_ah(s->pd, &ah_attr);
	static uint8_t bytes[4096];
	static struct ibv_sge sges[64];
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	ASSERT_NE(NULL, ah);
	ASSERT_NE(NULL, qp);
	ASSERT_EQ(0, ibv_query_qp(qp, &attr, IBV_QP_CAP, &init));
	for (unsigned int i = 0; i < 64; i++)
		sges[i] = (struct ibv_sge){ (uintptr_t)bytes, 1, s->mr->lkey };

	const struct {
		const char *name;
		enum ibv_wr_opcode opcode;
		int num_sge;
		unsigned int flags;
		uint32_t first;		/* length of the first SGE */
	} rows[] = {
		{ "a WRITE", IBV_WR_RDMA_WRITE, 1, 0, 1 },
		{ "a WRITE with immediate", IBV_WR_RDMA_WRITE_WITH_IMM, 1, 0, 1 },
		{ "a READ", IBV_WR_RDMA_READ, 1, 0, 1 },
		{ "an atomic", IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 8 },
		{ "a key to be invalidated there", IBV_WR_SEND_WITH_INV, 1, 0, 1 },
		{ "a key to be invalidated here", IBV_WR_LOCAL_INV, 0, 0, 1 },
		{ "TSO", IBV_WR_TSO, 1, 0, 1 },
		{ "one SGE too many", IBV_WR_SEND, init.cap.max_send_sge + 1, 0, 1 },
		{ "less than no SGE", IBV_WR_SEND, -1, 0, 1 },
		{ "one byte too many, inline", IBV_WR_SEND, 1, IBV_SEND_INLINE,
		  init.cap.max_inline_data + 1 },
	};

	for (enum ibv_qp_state state = IBV_QPS_RESET; state <= IBV_QPS_RTS; state++) {
		struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_SEND, .wr.ud.ah = ah };
		static const int masks[] = { 0, UD_INIT_MASK, IBV_QP_STATE, U_RTS_MASK };

		attr = right_attr(self->s, self->s[1].qp, state);
		if (state)
			ASSERT_EQ(0, ibv_modify_qp(qp, &attr, masks[state]));
		if (state < IBV_QPS_RTS)
			ASSERT_EQ(EINVAL, ibv_post_send(qp, &wr, &bad));
	}
	for EACH(row, rows) {
		struct ibv_send_wr *bad, wr = {
			.opcode = row->opcode, .sg_list = sges, .num_sge = row->num_sge,
			.send_flags = row->flags | IBV_SEND_SIGNALED,
			.wr.ud = { .ah = ah, .remote_qpn = 77, .remote_qkey = 0x1234 },
		};

		sges[0].length = row->first;
		GAVE(EINVAL, ibv_post_send(qp, &wr, &bad), row);
	}
	ASSERT_EQ(0, ibv_destroy_qp(qp));
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
	struct ibv_qp_attr attr;

	s.qp = side_create_qp(&s);
	ASSERT_NE(NULL, s.qp);
	ASSERT_EQ(EINVAL, send_one(&s, &send));
	ASSERT_EQ(EINVAL, ibv_post_recv(s.qp, &recv, &bad));
	ASSERT_EQ(0, qp_to_init(s.qp, 0));
	ASSERT_EQ(EINVAL, send_one(&s, &send));
	ASSERT_EQ(0, ibv_post_recv(s.qp, &recv, &bad));
	attr = right_attr(self->s, self->s[1].qp, IBV_QPS_RTR);
	ASSERT_EQ(0, ibv_modify_qp(s.qp, &attr, RTR_MASK));
	ASSERT_EQ(EINVAL, send_one(&s, &send));
	ASSERT_EQ(0, ibv_destroy_qp(s.qp));
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
	EXPECT_EQ(ENOMEM, send_one(&s, &send));
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

/* Work that can be posted and fails: by completion, and its QP goes to ERR */

struct work_row {
	const char *name;
	void (*change)(struct side s[2], struct ibv_send_wr *wr);
	enum ibv_wr_opcode opcode;
	enum ibv_wc_status status;
	enum ibv_wc_status peer;		/* of the peer's receive; SUCCESS: it has none */
	enum ibv_event_type event;		/* of the peer; -1: none */
};

#define WORK(id, statement)						\
	static void id(struct side s[2], struct ibv_send_wr *wr)	\
	{								\
		struct ibv_sge *sge __attribute__((unused)) = wr->sg_list; \
									\
		statement;						\
	}
WORK(lkey_unknown, sge->lkey ^= 0x100)
WORK(lkey_variant, sge->lkey ^= 1)
WORK(lkey_zero, sge->lkey = 0)
WORK(lkey_all_ones, sge->lkey = UINT32_MAX)
WORK(lkey_of_the_peer, sge->lkey = s[1].mr->lkey)
WORK(second_lkey, wr->num_sge = 2; sge[1] = sge[0]; sge[1].lkey ^= 0x100)
WORK(starts_before, sge->addr = (uintptr_t)s[0].mem - 1)
WORK(ends_behind, sge->addr = (uintptr_t)s[0].mem + PAIR_MEM - sge->length + 1)
WORK(wraps, sge->addr = UINT64_MAX - 2)
WORK(four_gib, sge->length = UINT32_MAX)
WORK(rkey_unknown, wr->wr.rdma.rkey ^= 0x100)
WORK(rkey_variant, wr->wr.rdma.rkey ^= 1)
WORK(rkey_zero, wr->wr.rdma.rkey = 0)
WORK(rkey_of_its_own, wr->wr.rdma.rkey = s[0].mr->rkey)
WORK(remote_starts_before, wr->wr.rdma.remote_addr = (uintptr_t)s[1].mem - 1)
WORK(remote_ends_behind, wr->wr.rdma.remote_addr = (uintptr_t)s[1].mem + PAIR_MEM - sge->length + 1)
WORK(remote_wraps, wr->wr.rdma.remote_addr = UINT64_MAX - 2)
WORK(remote_zero, wr->wr.rdma.remote_addr = 0)
WORK(key_to_invalidate, wr->invalidate_rkey = s[0].mr->rkey; wr->num_sge = 0)
WORK(key_of_the_peer, wr->invalidate_rkey = s[1].mr->rkey)
WORK(too_long_for_receive, sge->length = 65)
WORK(atomic_of_4, sge->length = 4;
	wr->wr.atomic.remote_addr = (uintptr_t)s[1].mem;
	wr->wr.atomic.rkey = s[1].mr->rkey)
WORK(atomic_of_16, sge->length = 16;
	wr->wr.atomic.remote_addr = (uintptr_t)s[1].mem;
	wr->wr.atomic.rkey = s[1].mr->rkey)
WORK(atomic_odd, sge->length = 8;
	wr->wr.atomic.remote_addr = (uintptr_t)s[1].mem + 4;
	wr->wr.atomic.rkey = s[1].mr->rkey)
WORK(atomic_no_right, sge->length = 8;
	wr->wr.atomic.remote_addr = (uintptr_t)s[1].mem;
	wr->wr.atomic.rkey = s[1].mr->rkey)

#define NO_EVENT ((enum ibv_event_type)-1)
static const struct work_row work[] = {
#define LOCALLY(what, change, op) \
	{ what, change, op, IBV_WC_LOC_PROT_ERR, IBV_WC_SUCCESS, NO_EVENT }
	LOCALLY("lkey that nobody has", lkey_unknown, IBV_WR_RDMA_WRITE),
	LOCALLY("lkey of another variant", lkey_variant, IBV_WR_SEND),
	LOCALLY("lkey 0", lkey_zero, IBV_WR_RDMA_WRITE),
	LOCALLY("lkey of all ones", lkey_all_ones, IBV_WR_RDMA_WRITE),
	LOCALLY("lkey of the other NIC", lkey_of_the_peer, IBV_WR_RDMA_WRITE),
	LOCALLY("lkey of the second SGE", second_lkey, IBV_WR_RDMA_WRITE),
	LOCALLY("lkey of a READ", lkey_unknown, IBV_WR_RDMA_READ),
	LOCALLY("address in front of the MR", starts_before, IBV_WR_RDMA_WRITE),
	LOCALLY("end behind the MR", ends_behind, IBV_WR_RDMA_WRITE),
	LOCALLY("end behind the MR, of a READ", ends_behind, IBV_WR_RDMA_READ),
	LOCALLY("address that wraps", wraps, IBV_WR_SEND),
#undef LOCALLY
	{ "a message of 4 GiB", four_gib, IBV_WR_RDMA_WRITE, IBV_WC_LOC_LEN_ERR, IBV_WC_SUCCESS, NO_EVENT },
#define REMOTELY(what, change, op) \
	{ what, change, op, IBV_WC_REM_ACCESS_ERR, IBV_WC_SUCCESS, IBV_EVENT_QP_ACCESS_ERR }
	REMOTELY("rkey that nobody has", rkey_unknown, IBV_WR_RDMA_WRITE),
	REMOTELY("rkey of another variant", rkey_variant, IBV_WR_RDMA_READ),
	REMOTELY("rkey 0", rkey_zero, IBV_WR_RDMA_WRITE),
	REMOTELY("rkey of the own NIC", rkey_of_its_own, IBV_WR_RDMA_WRITE),
	REMOTELY("address in front of the peer's MR", remote_starts_before, IBV_WR_RDMA_WRITE),
	REMOTELY("end behind the peer's MR", remote_ends_behind, IBV_WR_RDMA_WRITE),
	REMOTELY("end behind the peer's MR, of a READ", remote_ends_behind, IBV_WR_RDMA_READ),
	REMOTELY("address that wraps there", remote_wraps, IBV_WR_RDMA_READ),
	REMOTELY("address 0 there", remote_zero, IBV_WR_RDMA_WRITE),
	REMOTELY("atomic without the right", atomic_no_right, IBV_WR_ATOMIC_FETCH_AND_ADD),
#undef REMOTELY
	{ "invalidate an MR that may not be", key_to_invalidate, IBV_WR_LOCAL_INV,
	  IBV_WC_LOC_QP_OP_ERR, IBV_WC_SUCCESS, NO_EVENT },
	{ "have the peer do so", key_of_the_peer, IBV_WR_SEND_WITH_INV,
	  IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_INV_REQ_ERR, NO_EVENT },
	{ "a message longer than its receive", too_long_for_receive, IBV_WR_SEND,
	  IBV_WC_REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR, NO_EVENT },
	{ "atomic result of 4 bytes", atomic_of_4, IBV_WR_ATOMIC_FETCH_AND_ADD,
	  IBV_WC_LOC_LEN_ERR, IBV_WC_SUCCESS, NO_EVENT },
	{ "atomic result of 16 bytes", atomic_of_16, IBV_WR_ATOMIC_CMP_AND_SWP,
	  IBV_WC_LOC_LEN_ERR, IBV_WC_SUCCESS, NO_EVENT },
	{ "atomic at an odd address", atomic_odd, IBV_WR_ATOMIC_FETCH_AND_ADD,
	  IBV_WC_REM_INV_REQ_ERR, IBV_WC_SUCCESS, IBV_EVENT_QP_REQ_ERR },
};

static bool takes_receive(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_INV;
}

/* Peers may do all to the QPs. */
static int allow_atomics(struct side s[2])
{
	struct ibv_qp_attr attr = { .qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
				    IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC };

	return ibv_modify_qp(s[1].qp, &attr, IBV_QP_ACCESS_FLAGS);
}

/* The next event of a NIC, or NO_EVENT. */
static enum ibv_event_type next_event(struct side *s)
{
	struct ibv_async_event event;
	int flags = fcntl(s->context->async_fd, F_GETFL);

	fcntl(s->context->async_fd, F_SETFL, flags | O_NONBLOCK);
	for (unsigned int i = 0; i < 50; i++) {
		if (!ibv_get_async_event(s->context, &event)) {
			ibv_ack_async_event(&event);
			return event.event_type;
		}
		usleep(1000);
	}
	return NO_EVENT;
}

TEST_F(bad, work)
{
	struct side *a = &self->s[0], *b = &self->s[1];

	for EACH(row, work) {
		struct ibv_sge sge[2] = { { (uintptr_t)a->mem, 64, a->mr->lkey } };
		struct ibv_sge recv_sge = { (uintptr_t)b->mem, 64, b->mr->lkey };
		struct ibv_recv_wr *bad, recv = { .wr_id = 99, .sg_list = &recv_sge, .num_sge = 1 };
		struct ibv_send_wr wr = {
			.wr_id = 77, .sg_list = sge, .num_sge = 1, .opcode = row->opcode,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { (uintptr_t)b->mem, b->mr->rkey },
		};
		struct ibv_wc wc;

		ASSERT_EQ(0, allow_atomics(self->s));
		row->change(self->s, &wr);
		if (takes_receive(row->opcode))
			ASSERT_EQ(0, ibv_post_recv(b->qp, &recv, &bad));
		ASSERT_EQ(0, send_one(a, &wr));
		ASSERT_TRUE(side_wait(a, &wc, 10)) {
			TH_LOG("no completion: %s", row->name);
		}
		EXPECT_EQ(row->status, wc.status) {
			TH_LOG("%s: %s, %u", row->name, ibv_wc_status_str(wc.status), wc.vendor_err);
		}
		ASSERT_EQ(77, wc.wr_id);
		EXPECT_EQ(IBV_QPS_ERR, qp_state(a->qp));
		if (row->peer != IBV_WC_SUCCESS) {
			ASSERT_TRUE(side_wait(b, &wc, 5));
			EXPECT_EQ(row->peer, wc.status) {
				TH_LOG("%s: %s", row->name, ibv_wc_status_str(wc.status));
			}
			ASSERT_EQ(99, wc.wr_id);
		}
		EXPECT_EQ(row->event, next_event(b)) {
			TH_LOG("%s", row->name);
		}
		ASSERT_EQ(0, pair_reconnect(self->s));
		ASSERT_EQ(0, ibv_poll_cq(a->cq, 1, &wc));
		ASSERT_EQ(0, ibv_poll_cq(b->cq, 1, &wc));
		ASSERT_TRUE(pair_transfer(self->s)) {
			TH_LOG("transfer after: %s", row->name);
		}
	}
	ASSERT_EQ(NO_EVENT, next_event(a));
	ASSERT_EQ(NO_EVENT, next_event(b));
}

/* Queries, and verbs that there are not */

TEST_F(bad, queries)
{
	struct ibv_context *c = self->s[0].context;
	struct ibv_port_attr port;
	struct ibv_gid_entry entry;
	union ibv_gid gid;
	__be16 pkey;

	EXPECT_EQ(EINVAL, ibv_query_port(c, 0, &port));
	EXPECT_EQ(EINVAL, ibv_query_port(c, 2, &port));
	EXPECT_EQ(EINVAL, ibv_query_port(c, 255, &port));
	ASSERT_EQ(0, ibv_query_port(c, 1, &port));
	EXPECT_EQ(0, ibv_query_gid(c, 1, port.gid_tbl_len - 1, &gid));
	EXPECT_EQ(-1, ibv_query_gid(c, 1, port.gid_tbl_len, &gid));
	EXPECT_EQ(-1, ibv_query_gid(c, 1, -1, &gid));
	EXPECT_EQ(-1, ibv_query_gid(c, 2, 0, &gid));
	EXPECT_EQ(ENODATA, ibv_query_gid_ex(c, 1, port.gid_tbl_len - 1, &entry, 0));
	EXPECT_EQ(EINVAL, ibv_query_gid_ex(c, 1, port.gid_tbl_len, &entry, 0));
	EXPECT_EQ(EINVAL, ibv_query_gid_ex(c, 2, 0, &entry, 0));
	EXPECT_EQ(EINVAL, ibv_query_gid_ex(c, 1, 0, &entry, 1));
	EXPECT_EQ(1, port.pkey_tbl_len);
	EXPECT_EQ(0, ibv_query_pkey(c, 1, 0, &pkey));
	EXPECT_EQ(0xffff, be16toh(pkey));
	EXPECT_EQ(-1, ibv_query_pkey(c, 1, 1, &pkey));
	EXPECT_EQ(-1, ibv_query_pkey(c, 1, -1, &pkey));
	ASSERT_TRUE(pair_transfer(self->s));
}

static int no_srq(struct side *s)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 1, .max_sge = 1 } };

	return MADE(ibv_create_srq(s->pd, &attr), ibv_destroy_srq);
}

static int no_xrcd(struct side *s)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT,
	};

	return MADE(ibv_open_xrcd(s->context, &attr), ibv_close_xrcd);
}

static int no_mw(struct side *s) { return MADE(ibv_alloc_mw(s->pd, IBV_MW_TYPE_2), ibv_dealloc_mw); }
static int no_resize(struct side *s) { return ibv_resize_cq(s->cq, 64); }

static int no_rereg(struct side *s)
{
	int err = ibv_rereg_mr(s->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE);

	return err == IBV_REREG_MR_ERR_CMD ? errno : err;
}

static int no_dm(struct side *s)
{
	struct ibv_alloc_dm_attr attr = { .length = 64 };

	return MADE(ibv_alloc_dm(s->context, &attr), ibv_free_dm);
}

static int no_wq(struct side *s)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = s->pd, .cq = s->cq,
	};

	return MADE(ibv_create_wq(s->context, &attr), ibv_destroy_wq);
}

static int no_moderation(struct side *s)
{
	struct ibv_modify_cq_attr attr = { .attr_mask = IBV_CQ_ATTR_MODERATE };

	return ibv_modify_cq(s->cq, &attr);
}

/* Each says so, and the device's capabilities do not say otherwise. */
TEST_F(bad, verbs_that_there_are_not)
{
	static const struct {
		const char *name;
		int (*call)(struct side *s);
		int err;
	} rows[] = {
		{ "create_srq", no_srq, EOPNOTSUPP },
		{ "open_xrcd", no_xrcd, EOPNOTSUPP },
		{ "alloc_mw", no_mw, EOPNOTSUPP },
		{ "resize_cq", no_resize, EOPNOTSUPP },
		{ "rereg_mr", no_rereg, EOPNOTSUPP },
		{ "alloc_dm", no_dm, EOPNOTSUPP },
		{ "create_wq", no_wq, EOPNOTSUPP },
		{ "modify_cq", no_moderation, EOPNOTSUPP },
	};
	struct ibv_device_attr_ex attr;

	for EACH(row, rows)
		GAVE(row->err, row->call(&self->s[0]), row);
	ASSERT_EQ(0, ibv_query_device_ex(self->s[0].context, NULL, &attr));
	EXPECT_EQ(0, attr.orig_attr.max_srq);
	EXPECT_EQ(0, attr.orig_attr.max_mw);
	EXPECT_EQ(0, attr.orig_attr.max_raw_ipv6_qp + attr.orig_attr.max_raw_ethy_qp);
	EXPECT_EQ(0, attr.max_dm_size);
	EXPECT_EQ(0, attr.odp_caps.general_caps);
	EXPECT_EQ(0, attr.orig_attr.device_cap_flags &
		  (IBV_DEVICE_RESIZE_MAX_WR | IBV_DEVICE_XRC | IBV_DEVICE_SRQ_RESIZE |
		   IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2A |
		   IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_AUTO_PATH_MIG));
}

TEST_F(bad, destroy_what_is_in_use)
{
	struct side *s = &self->s[0];

	EXPECT_EQ(EBUSY, ibv_destroy_cq(s->cq));
	ASSERT_TRUE(pair_transfer(self->s));
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(s->pd));
	ASSERT_TRUE(pair_transfer(self->s));
	EXPECT_EQ(EBUSY, ibv_destroy_comp_channel(s->channel));
	ASSERT_TRUE(pair_transfer(self->s));
}

/* DBP-5 SEC-1: mappings of a context's pages */

TEST_F(bad, mmap)
{
	struct skua_alloc_ucontext_resp resp;
	int fd = raw_open("skua_0", &resp);
	const int read_write = PROT_READ | PROT_WRITE;

	ASSERT_GE(fd, 0);
	const off_t db = resp.db_page_key, info = resp.info_page_key;
	const struct {
		const char *name;
		off_t offset;
		size_t size;
		int prot, flags, err;
	} rows[] = {
		{ "doorbells for writing", db, 4096, PROT_WRITE, MAP_SHARED, 0 },
		{ "information for reading", info, 4096, PROT_READ, MAP_SHARED, 0 },
		{ "information for writing", info, 4096, read_write, MAP_SHARED, EPERM },
		{ "information for writing alone", info, 4096, PROT_WRITE, MAP_SHARED, EPERM },
		{ "information as code", info, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, 0 },
		{ "doorbells as code", db, 4096, PROT_WRITE | PROT_EXEC, MAP_SHARED, 0 },
		{ "two pages of doorbells", db, 8192, PROT_WRITE, MAP_SHARED, EINVAL },
		{ "two pages of information", info, 8192, PROT_READ, MAP_SHARED, EINVAL },
		{ "private doorbells", db, 4096, read_write, MAP_PRIVATE, EINVAL },
		{ "private information", info, 4096, PROT_READ, MAP_PRIVATE, EINVAL },
		{ "private information, written to", info, 4096, read_write, MAP_PRIVATE, EINVAL },
		{ "behind both", (db > info ? db : info) + 4096, 4096, PROT_READ, MAP_SHARED, EINVAL },
		{ "far behind", 1l << 40, 4096, PROT_READ, MAP_SHARED, EINVAL },
		{ "as far as can be", INT64_MAX & ~4095l, 4096, PROT_READ, MAP_SHARED, EINVAL },
		{ "within a page", db + 8, 4096, PROT_WRITE, MAP_SHARED, EINVAL },
	};

	for EACH(row, rows) {
		void *map = mmap(NULL, row->size, row->prot, row->flags, fd, row->offset);

		GAVE(row->err, map == MAP_FAILED ? errno : 0, row);
		if (map != MAP_FAILED)
			ASSERT_EQ(0, munmap(map, row->size));
	}
	close(fd);
}

TEST_F(bad, mapped_pages_keep_their_protection)
{
	struct skua_alloc_ucontext_resp resp;
	int fd = raw_open("skua_0", &resp);
	void *db, *info;

	ASSERT_GE(fd, 0);
	db = mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, fd, resp.db_page_key);
	info = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, resp.info_page_key);
	ASSERT_NE(MAP_FAILED, db);
	ASSERT_NE(MAP_FAILED, info);
	EXPECT_EQ(-1, mprotect(info, 4096, PROT_READ | PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(MAP_FAILED, mremap(db, 4096, 8192, MREMAP_MAYMOVE));
	EXPECT_EQ(MAP_FAILED, mremap(info, 4096, 8192, MREMAP_MAYMOVE));
	EXPECT_EQ(SKUA_INFO_ALIVE, ((const struct skua_info_page *)info)->state);
	close(fd);
	/* The pages live as long as they are mapped. */
	EXPECT_EQ(SKUA_INFO_ALIVE, ((const struct skua_info_page *)info)->state);
	ASSERT_EQ(0, munmap(db, 4096));
	ASSERT_EQ(0, munmap(info, 4096));
	ASSERT_TRUE(pair_transfer(self->s));
}

/* A doorbell of another's queue, and nonsense, are ignored. */
TEST_F(bad, doorbells)
{
	struct skua_alloc_ucontext_resp resp;
	int fd = raw_open("skua_0", &resp), status;
	volatile uint64_t *db;
	pid_t pid;

	ASSERT_GE(fd, 0);
	db = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, resp.db_page_key);
	ASSERT_NE(MAP_FAILED, db);
	for (unsigned int i = 0; i < 512; i++)
		db[i] = (uint64_t)0x7fffffff << 32 | self->s[0].qp->qp_num;
	((volatile uint8_t *)db)[3] = 0xff;
	((volatile uint32_t *)db)[0] = self->s[0].qp->qp_num;
	EXPECT_EQ(0, db[0]);
	ASSERT_TRUE(pair_transfer(self->s));
	/* A child inherits the page, and rings it while it ends. */
	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		for (unsigned int i = 0; i < 512; i++)
			db[i] = (uint64_t)i << 32 | self->s[0].qp->qp_num;
		_exit(0);
	}
	ASSERT_TRUE(pair_transfer(self->s));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_TRUE(WIFEXITED(status));
	ASSERT_TRUE(pair_transfer(self->s));
	ASSERT_EQ(0, munmap((void *)db, 4096));
	close(fd);
	ASSERT_TRUE(pair_transfer(self->s));
}

TEST_HARNESS_MAIN
