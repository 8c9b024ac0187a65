// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tag matching: QPs of skua_1 have an SRQ with tags, their peers are QPs of skua_0.
 * Rules: Documentation/manual/tags.rst.
 */
#include <errno.h>
#include <infiniband/tm_types.h>
#include <string.h>
#include <time.h>

#include "kselftest_harness.h"
#include "pair.h"
#include "rows.h"

#define QPS		2
#define TAGS		32
#define OPS		16
#define ENTRIES		16
#define SLOT		4096u		/* of an entry */
#define HALF		(PAIR_MEM / 2)	/* of skua_1: entries below, buffers of tags above */
#define TMH		((uint32_t)sizeof(struct ibv_tmh))
#define RNDV		(TMH + (uint32_t)sizeof(struct ibv_rvh))
#define APP_CTX		0xc0ffee42
#define EXACT		UINT64_MAX
#define BOTH		(IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID)
#define SIGNALED	IBV_OPS_SIGNALED

/* A completion of the SRQ's CQ. */
struct seen {
	uint64_t wr_id;
	enum ibv_wc_status status;
	enum ibv_wc_opcode opcode;
	unsigned int flags;
	uint32_t byte_len, qp_num;
	__be32 imm_data;
	struct ibv_wc_tm_info info;
};

FIXTURE(tags) {
	struct side s[2];
	struct ibv_tm_caps caps;
	struct ibv_cq_ex *cq;
	struct ibv_srq *srq;
	struct ibv_qp *at_a[QPS], *at_b[QPS];
	struct ibv_ops_wr op;	/* the last one */
	uint32_t unexpected;	/* messages that were handled */
	uint64_t posted;	/* entries */
	struct seen seen;	/* the last one */
};

static struct ibv_srq *create_srq(struct side *b, struct ibv_cq_ex *cq, uint32_t tags, uint32_t ops)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = ENTRIES, .max_sge = 1 }, .srq_type = IBV_SRQT_TM, .pd = b->pd,
		.cq = ibv_cq_ex_to_cq(cq), .tm_cap = { .max_num_tags = tags, .max_ops = ops },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
			     IBV_SRQ_INIT_ATTR_TM,
	};

	return ibv_create_srq_ex(b->context, &attr);
}

static struct ibv_qp *create_receiver(struct side *b, struct ibv_cq_ex *cq, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = ibv_cq_ex_to_cq(cq), .recv_cq = ibv_cq_ex_to_cq(cq), .srq = srq, .qp_type = IBV_QPT_RC,
	};

	return ibv_create_qp(b->pd, &attr);
}

/* From RESET to RTS. 0 or an errno. */
static int connect_to(struct ibv_qp *qp, struct side *side, struct side *peer, uint32_t qpn)
{
	int err = qp_to_init(qp, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);

	err = err ? err : qp_to_rtr(qp, side, peer, qpn);
	return err ? err : qp_to_rts(qp, 14, 7, 7);
}

#define CONNECT(i) do {							\
	struct side *a_ = &self->s[0], *b_ = &self->s[1];		\
									\
	ASSERT_EQ(0, connect_to(self->at_a[i], a_, b_, self->at_b[i]->qp_num)); \
	ASSERT_EQ(0, connect_to(self->at_b[i], b_, a_, self->at_a[i]->qp_num)); \
} while (0)

static int reset(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

/* Both QPs once more from RESET to RTS. */
#define RECONNECT(i) do {						\
	ASSERT_EQ(0, reset(self->at_a[i]));				\
	ASSERT_EQ(0, reset(self->at_b[i]));				\
	CONNECT(i);							\
} while (0)

static int post_entry(struct side *b, struct ibv_srq *srq, uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)b->mem + wr_id % ENTRIES * SLOT, SLOT, b->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };

	return ibv_post_srq_recv(srq, &wr, &bad);
}

#define POST(n) do {							\
	for (unsigned int n_ = (n); n_; n_--)				\
		ASSERT_EQ(0, post_entry(&self->s[1], self->srq, self->posted++)); \
} while (0)

FIXTURE_SETUP(tags)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 256, .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_TM_INFO };
	struct ibv_device_attr_ex device;

	ASSERT_EQ(0, pair_open(self->s));
	ASSERT_EQ(0, ibv_query_device_ex(self->s[1].context, NULL, &device));
	self->caps = device.tm_caps;
	self->cq = ibv_create_cq_ex(self->s[1].context, &attr);
	ASSERT_NE(NULL, self->cq);
	self->srq = create_srq(&self->s[1], self->cq, TAGS, OPS);
	ASSERT_NE(NULL, self->srq);
	for (int i = 0; i < QPS; i++) {
		self->at_a[i] = side_create_qp(&self->s[0]);
		self->at_b[i] = create_receiver(&self->s[1], self->cq, self->srq);
		ASSERT_NE(NULL, self->at_a[i]);
		ASSERT_NE(NULL, self->at_b[i]);
		CONNECT(i);
	}
	pair_fill(self->s[0].mem, PAIR_MEM, 7);
}

FIXTURE_TEARDOWN(tags)
{
	for (int i = 0; i < QPS; i++) {
		EXPECT_EQ(0, ibv_destroy_qp(self->at_a[i]));
		if (self->at_b[i])
			EXPECT_EQ(0, ibv_destroy_qp(self->at_b[i]));
	}
	EXPECT_EQ(0, ibv_destroy_srq(self->srq));
	EXPECT_EQ(0, ibv_destroy_cq(ibv_cq_ex_to_cq(self->cq)));
	EXPECT_TRUE(pair_transfer(self->s));
	pair_close(self->s);
}

static void read_seen(struct ibv_cq_ex *cq, struct seen *seen)
{
	*seen = (struct seen) {
		.wr_id = cq->wr_id,
		.status = cq->status,
		.opcode = ibv_wc_read_opcode(cq),
		.flags = ibv_wc_read_wc_flags(cq),
		.byte_len = ibv_wc_read_byte_len(cq),
		.qp_num = ibv_wc_read_qp_num(cq),
		.imm_data = ibv_wc_read_imm_data(cq),
	};
	ibv_wc_read_tm_info(cq, &seen->info);
}

/* False: nothing came for so many seconds. */
static bool next_seen(struct ibv_cq_ex *cq, struct seen *seen, unsigned int seconds)
{
	time_t end = time(NULL) + seconds + 1;
	struct ibv_poll_cq_attr attr = {};

	do {
		if (!ibv_start_poll(cq, &attr)) {
			read_seen(cq, seen);
			ibv_end_poll(cq);
			return true;
		}
	} while (time(NULL) < end);
	return false;
}

/* The next completion of the SRQ's CQ, which stays in self->seen. */
#define SEEN_STATUS(status_, op_, id) do {				\
	ASSERT_TRUE(next_seen(self->cq, &self->seen, 20));		\
	ASSERT_EQ(status_, self->seen.status);				\
	ASSERT_EQ((uint64_t)(id), self->seen.wr_id);			\
	if (op_ >= 0)							\
		ASSERT_EQ(op_, (int)self->seen.opcode);			\
} while (0)

#define SEEN(op_, id, flags_) do {					\
	SEEN_STATUS(IBV_WC_SUCCESS, (int)(op_), id);			\
	ASSERT_EQ((unsigned int)(flags_), self->seen.flags);		\
} while (0)

/* There is none: what comes after it is seen first. */
#define NO_MORE() do {							\
	SYNC(0);							\
	SEEN(IBV_WC_TM_SYNC, 2000, self->seen.flags);			\
} while (0)

/* What it tells of a message of message(). */
#define TELLS_TAG(tag_) do {						\
	ASSERT_EQ((uint64_t)(tag_), self->seen.info.tag);		\
	ASSERT_EQ(APP_CTX, self->seen.info.priv);			\
} while (0)

/* 0 or an errno. */
static int post_op(struct ibv_srq *srq, struct ibv_ops_wr *op)
{
	struct ibv_ops_wr *bad = NULL;
	int err = ibv_post_srq_ops(srq, op, &bad);

	return err && bad != op ? -1 : err;
}

/* The buffer of this many bytes that is for the tag with this wr_id. */
static uint8_t *place(struct side *b, uint64_t wr_id)
{
	return b->mem + HALF + wr_id % 4 * (HALF / 4);
}

static struct ibv_ops_wr add_op(struct side *b, struct ibv_sge *sge, uint64_t wr_id, uint64_t tag, uint64_t mask,
				uint32_t size, int flags)
{
	*sge = (struct ibv_sge) { (uintptr_t)place(b, wr_id), size, b->mr->lkey };
	return (struct ibv_ops_wr) {
		.wr_id = 1000 + wr_id, .opcode = IBV_WR_TAG_ADD, .flags = flags,
		.tm.add = { .recv_wr_id = wr_id, .sg_list = sge, .num_sge = 1, .tag = tag, .mask = mask },
	};
}

/*
 * Signaled, it is carried out afterwards. If not, a message may come first, which is unexpected if there is an entry
 * for it.
 */
#define ADD(id, tag_, mask_, size_, flags_) do {			\
	struct ibv_sge sge_;						\
									\
	self->op = add_op(&self->s[1], &sge_, id, tag_, mask_, size_, flags_); \
	self->op.tm.unexpected_cnt = self->unexpected;			\
	ASSERT_EQ(0, post_op(self->srq, &self->op));			\
	if ((flags_) & SIGNALED)					\
		SEEN(IBV_WC_TM_ADD, 1000 + (id), self->seen.flags & IBV_WC_TM_SYNC_REQ); \
} while (0)

static int del(struct ibv_srq *srq, uint32_t handle, int flags)
{
	struct ibv_ops_wr op = { .wr_id = 3000, .opcode = IBV_WR_TAG_DEL, .flags = flags, .tm.handle = handle };

	return post_op(srq, &op);
}

/* Post it. */
#define SYNC(flags_) do {						\
	self->op = (struct ibv_ops_wr) {				\
		.wr_id = 2000, .opcode = IBV_WR_TAG_SYNC, .flags = SIGNALED | (flags_), \
		.tm.unexpected_cnt = self->unexpected,			\
	};								\
	ASSERT_EQ(0, post_op(self->srq, &self->op));			\
} while (0)

/* The device knows of all unexpected messages that were seen, and there are no others. */
#define IN_STEP() do {							\
	SYNC(IBV_OPS_TM_SYNC);						\
	SEEN(IBV_WC_TM_SYNC, 2000, 0);					\
} while (0)

/* At the beginning of skua_0's memory, bytes of which stand behind it. */
static void message(struct side *a, enum ibv_tmh_op opcode, uint64_t tag)
{
	*(struct ibv_tmh *)a->mem = (struct ibv_tmh) {
		.opcode = opcode, .app_ctx = htobe32(APP_CTX), .tag = htobe64(tag),
	};
}

#define PAYLOAD		(PAIR_MEM / 2)	/* of a rendezvous, in skua_0's memory */

/* The same of a rendezvous for so many bytes. */
static void request(struct side *a, uint64_t tag, uint32_t len)
{
	message(a, IBV_TMH_RNDV, tag);
	*(struct ibv_rvh *)(a->mem + TMH) = (struct ibv_rvh) {
		.va = htobe64((uintptr_t)a->mem + PAYLOAD), .rkey = htobe32(a->mr->rkey), .len = htobe32(len),
	};
}

/* 0 or an errno. */
static int post_send(struct side *a, struct ibv_qp *qp, enum ibv_wr_opcode opcode, uint32_t size)
{
	struct ibv_sge sge = { (uintptr_t)a->mem, size, a->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = 5, .sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED,
	};

	if (opcode == IBV_WR_SEND_WITH_INV)
		wr.invalidate_rkey = 0x1234;
	else
		wr.imm_data = htobe32(0x12345678);
	return ibv_post_send(qp, &wr, &bad);
}

/* The status of its completion, or -1. */
static int send_from(struct side *a, struct ibv_qp *qp, enum ibv_wr_opcode opcode, uint32_t size)
{
	struct ibv_wc wc;

	if (post_send(a, qp, opcode, size) || !side_wait(a, &wc, 20) || wc.wr_id != 5)
		return -1;
	return wc.status;
}

/* So many bytes of skua_0's memory. */
#define SEND_BY(i, size)						\
	ASSERT_EQ(IBV_WC_SUCCESS, send_from(&self->s[0], self->at_a[i], IBV_WR_SEND, size))
#define SEND(size)	SEND_BY(0, size)

#define EAGER(tag_, size) do {						\
	message(&self->s[0], IBV_TMH_EAGER, tag_);			\
	SEND(TMH + (size));						\
} while (0)

/* The payload is in the buffer. */
#define HAS_PAYLOAD(id, size) do {					\
	ASSERT_EQ((uint32_t)(size), self->seen.byte_len);		\
	ASSERT_EQ(0, memcmp(place(&self->s[1], id), self->s[0].mem + TMH, size)); \
} while (0)

/* A message took an entry, and is there with its header. */
#define TOOK_ENTRY(op_, id, size) do {					\
	SEEN(op_, id, 0);						\
	ASSERT_EQ((uint32_t)(size), self->seen.byte_len);		\
	ASSERT_EQ(0, self->seen.info.tag);				\
	ASSERT_EQ(0, self->seen.info.priv);				\
	ASSERT_EQ(0, memcmp(self->s[1].mem + (id) % ENTRIES * SLOT, self->s[0].mem, size)); \
} while (0)

#define UNEXPECTED(id, size) do {					\
	TOOK_ENTRY(IBV_WC_TM_RECV, id, size);				\
	self->unexpected++;						\
} while (0)

TEST_F(tags, the_device_tells_of_it)
{
	struct ibv_device_attr device;

	ASSERT_EQ(0, ibv_query_device(self->s[1].context, &device));
	EXPECT_EQ(IBV_TM_CAP_RC, self->caps.flags);
	EXPECT_EQ(64, self->caps.max_rndv_hdr_size);
	EXPECT_LE(TAGS, self->caps.max_num_tags);
	EXPECT_EQ(device.max_qp_wr, self->caps.max_ops);
	EXPECT_EQ(1, self->caps.max_sge);
}

/* TAG-8 TAG-9: of each size that one packet has. */
TEST_F(tags, eager)
{
	static const uint32_t sizes[] = { 0, 1, 100, 1024 - TMH };

	for EACH(size, sizes) {
		ADD(3, 0x1122334455667788, EXACT, 1024, SIGNALED);
		ASSERT_EQ(0, self->seen.flags);
		EAGER(0x1122334455667788, *size);
		SEEN(IBV_WC_TM_RECV, 3, BOTH);
		TELLS_TAG(0x1122334455667788);
		ASSERT_EQ(self->at_b[0]->qp_num, self->seen.qp_num);
		HAS_PAYLOAD(3, *size);
	}
	NO_MORE();
}

/* TAG-9: several packets have two completions, unless they come at once, for which the last message is too long. */
TEST_F(tags, eager_in_many_packets)
{
	static const uint32_t sizes[] = { 1024 - TMH + 1, 1024, 5000, 100000, HALF / 4 };
	unsigned int twice = 0;

	for EACH(size, sizes) {
		ADD(1, 9, EXACT, HALF / 4, SIGNALED);
		EAGER(9, *size);
		SEEN_STATUS(IBV_WC_SUCCESS, (int)IBV_WC_TM_RECV, 1);
		TELLS_TAG(9);
		if (self->seen.flags != BOTH) {
			ASSERT_EQ(IBV_WC_TM_MATCH, self->seen.flags);
			SEEN(IBV_WC_TM_RECV, 1, IBV_WC_TM_DATA_VALID);
			twice++;
		}
		HAS_PAYLOAD(1, *size);
	}
	ASSERT_LT(0, twice);
	NO_MORE();
}

/* The buffer may be none. */
TEST_F(tags, a_message_without_payload)
{
	struct ibv_sge sge;

	self->op = add_op(&self->s[1], &sge, 2, 5, EXACT, 0, 0);
	self->op.tm.add.num_sge = 0;
	ASSERT_EQ(0, post_op(self->srq, &self->op));
	EAGER(5, 0);
	SEEN(IBV_WC_TM_RECV, 2, BOTH);
	ASSERT_EQ(0, self->seen.byte_len);
}

/* TAG-5 */
TEST_F(tags, the_first_of_several_that_match)
{
	POST(1);
	ADD(0, 0x101, 0xffff, 100, SIGNALED);
	ADD(1, 0x01, 0xff, 100, SIGNALED);
	ADD(2, 0x201, 0xffff, 100, SIGNALED);
	ADD(3, 0x201, EXACT, 100, SIGNALED);
	EAGER(0xabc00000201, 10);
	SEEN(IBV_WC_TM_RECV, 1, BOTH);
	TELLS_TAG(0xabc00000201);
	EAGER(0x201, 20);
	SEEN(IBV_WC_TM_RECV, 2, BOTH);
	EAGER(0x201, 30);
	SEEN(IBV_WC_TM_RECV, 3, BOTH);
	EAGER(0x101, 40);
	SEEN(IBV_WC_TM_RECV, 0, BOTH);
	EAGER(0x101, 50);
	UNEXPECTED(0, TMH + 50);
}

/* TAG-6 TAG-7 TAG-12 */
TEST_F(tags, unexpected_messages)
{
	POST(4);
	ADD(0, 1, EXACT, 100, SIGNALED);
	EAGER(2, 60);
	UNEXPECTED(0, TMH + 60);
	/* The device does not know yet that this was seen. */
	self->unexpected = 0;
	ADD(1, 2, EXACT, 100, SIGNALED);
	ASSERT_EQ(IBV_WC_TM_SYNC_REQ, self->seen.flags);
	ADD(2, 3, EXACT, 100, SIGNALED | IBV_OPS_TM_SYNC);
	ASSERT_EQ(IBV_WC_TM_SYNC_REQ, self->seen.flags);
	EAGER(2, 61);
	UNEXPECTED(1, TMH + 61);
	EAGER(3, 62);
	UNEXPECTED(2, TMH + 62);
	/* What was active stays so. */
	EAGER(1, 63);
	SEEN(IBV_WC_TM_RECV, 0, BOTH);
	/* One too few. */
	self->unexpected = 2;
	SYNC(IBV_OPS_TM_SYNC);
	SEEN(IBV_WC_TM_SYNC, 2000, IBV_WC_TM_SYNC_REQ);
	EAGER(2, 64);
	UNEXPECTED(3, TMH + 64);
	self->unexpected = 4;
	IN_STEP();
	EAGER(2, 65);
	SEEN(IBV_WC_TM_RECV, 1, BOTH);
	EAGER(3, 66);
	SEEN(IBV_WC_TM_RECV, 2, BOTH);
	/* And what is added now is active at once. */
	ADD(3, 4, EXACT, 100, SIGNALED);
	ASSERT_EQ(0, self->seen.flags);
	EAGER(4, 67);
	SEEN(IBV_WC_TM_RECV, 3, BOTH);
}

/* TAG-6: any operation may tell of them. */
TEST_F(tags, each_operation_tells_of_unexpected_messages)
{
	uint32_t handle;

	POST(2);
	EAGER(1, 10);
	UNEXPECTED(0, TMH + 10);
	ADD(0, 1, EXACT, 100, SIGNALED | IBV_OPS_TM_SYNC);
	ASSERT_EQ(0, self->seen.flags);
	EAGER(1, 10);
	SEEN(IBV_WC_TM_RECV, 0, BOTH);

	EAGER(1, 10);
	UNEXPECTED(1, TMH + 10);
	ADD(1, 1, EXACT, 100, SIGNALED);
	ADD(2, 7, EXACT, 100, SIGNALED);
	handle = self->op.tm.handle;
	self->op = (struct ibv_ops_wr) {
		.wr_id = 3000, .opcode = IBV_WR_TAG_DEL, .flags = SIGNALED | IBV_OPS_TM_SYNC,
		.tm = { .handle = handle, .unexpected_cnt = self->unexpected },
	};
	ASSERT_EQ(0, post_op(self->srq, &self->op));
	SEEN(IBV_WC_TM_DEL, 3000, 0);
	EAGER(1, 10);
	SEEN(IBV_WC_TM_RECV, 1, BOTH);
}

/* TAG-12 */
TEST_F(tags, messages_without_a_tag)
{
	struct side *a = &self->s[0], *b = &self->s[1];

	POST(5);
	ADD(0, 0, 0, 1000, SIGNALED);	/* any tag */
	message(a, IBV_TMH_NO_TAG, 0);
	SEND(TMH + 100);
	TOOK_ENTRY(IBV_WC_TM_NO_TAG, 0, TMH + 100);
	message(a, IBV_TMH_FIN, 0);
	SEND(RNDV);
	TOOK_ENTRY(IBV_WC_TM_NO_TAG, 1, RNDV);
	message(a, 77, 0);
	SEND(3000);
	TOOK_ENTRY(IBV_WC_TM_NO_TAG, 2, 3000);
	message(a, IBV_TMH_EAGER, 0);
	SEND(TMH - 1);
	TOOK_ENTRY(IBV_WC_TM_NO_TAG, 3, TMH - 1);
	request(a, 0, 100);
	SEND(RNDV - 1);
	TOOK_ENTRY(IBV_WC_TM_NO_TAG, 4, RNDV - 1);
	/* None of them counts as unexpected. */
	IN_STEP();
	EAGER(0, 50);
	SEEN(IBV_WC_TM_RECV, 0, BOTH);
	ASSERT_EQ(0, ibv_poll_cq(b->cq, 1, &(struct ibv_wc){}));
}

/* TAG-12 */
TEST_F(tags, immediate_data)
{
	struct side *a = &self->s[0], *b = &self->s[1];
	struct ibv_sge sge = { (uintptr_t)a->mem, 100, a->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = 5, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED, .imm_data = htobe32(0x12345678),
		.wr.rdma = { (uintptr_t)b->mem + HALF, b->mr->rkey },
	};
	struct ibv_wc wc;

	POST(2);
	message(a, IBV_TMH_EAGER, 1);
	ASSERT_EQ(IBV_WC_SUCCESS, send_from(a, self->at_a[0], IBV_WR_SEND_WITH_IMM, 100));
	SEEN(IBV_WC_TM_RECV, 0, IBV_WC_WITH_IMM);
	ASSERT_EQ(htobe32(0x12345678), self->seen.imm_data);
	ASSERT_EQ(0, ibv_post_send(self->at_a[0], &wr, &bad));
	ASSERT_TRUE(side_wait(a, &wc, 20));
	ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
	SEEN(IBV_WC_RECV_RDMA_WITH_IMM, 1, IBV_WC_WITH_IMM);
	ASSERT_EQ(htobe32(0x12345678), self->seen.imm_data);
	ASSERT_EQ(0, memcmp(b->mem + HALF, a->mem, 100));
}

/* TAG-12 */
TEST_F(tags, a_send_with_invalidate_is_refused)
{
	POST(1);
	message(&self->s[0], IBV_TMH_EAGER, 1);
	ASSERT_EQ(IBV_WC_REM_INV_REQ_ERR,
		  send_from(&self->s[0], self->at_a[0], IBV_WR_SEND_WITH_INV, 100));
	RECONNECT(0);
	EAGER(1, 10);
	UNEXPECTED(0, TMH + 10);
}

static int post_fin(struct side *a, struct ibv_qp *qp)
{
	struct ibv_sge sge = { (uintptr_t)a->mem + PAYLOAD - SLOT, SLOT, a->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = 6, .sg_list = &sge, .num_sge = 1 };

	memset(a->mem + PAYLOAD - SLOT, 0, SLOT);
	return ibv_post_recv(qp, &wr, &bad);
}

/* The sender hears the end of a rendezvous: its own headers. The SEND may complete before or after. */
#define FIN(i) do {							\
	struct side *a_ = &self->s[0];					\
	struct ibv_tmh *fin_ = (struct ibv_tmh *)(a_->mem + PAYLOAD - SLOT); \
	struct ibv_wc wc_[2];						\
									\
	ASSERT_TRUE(side_wait(a_, &wc_[0], 20));			\
	ASSERT_TRUE(side_wait(a_, &wc_[1], 20));			\
	for (int n_ = 0; n_ < 2; n_++) {				\
		ASSERT_EQ(IBV_WC_SUCCESS, wc_[n_].status);		\
		if (wc_[n_].wr_id == 6) {				\
			ASSERT_EQ(IBV_WC_RECV, wc_[n_].opcode);		\
			ASSERT_EQ(RNDV, wc_[n_].byte_len);		\
			ASSERT_EQ(self->at_a[i]->qp_num, wc_[n_].qp_num); \
		}							\
	}								\
	ASSERT_NE(wc_[0].wr_id, wc_[1].wr_id);				\
	ASSERT_EQ(IBV_TMH_FIN, fin_->opcode);				\
	ASSERT_EQ(0, memcmp(a_->mem + 1, (uint8_t *)fin_ + 1, RNDV - 1)); \
} while (0)

/* TAG-10: with whatever the program adds to the request. */
TEST_F(tags, rendezvous)
{
	static const uint32_t sizes[] = { 1, 1000, 1024, 100000, HALF / 4 };
	struct side *a = &self->s[0];
	uint32_t more = 0;

	for EACH(size, sizes) {
		ADD(2, 77, EXACT, HALF / 4, SIGNALED);
		ASSERT_EQ(0, post_fin(a, self->at_a[1]));
		request(a, 77, *size);
		ASSERT_EQ(0, post_send(a, self->at_a[1], IBV_WR_SEND, RNDV + more));
		SEEN(IBV_WC_TM_RECV, 2, IBV_WC_TM_MATCH);
		TELLS_TAG(77);
		SEEN(IBV_WC_TM_RECV, 2, IBV_WC_TM_DATA_VALID);
		ASSERT_EQ(0, memcmp(place(&self->s[1], 2), a->mem + PAYLOAD, *size));
		FIN(1);
		more += 8;
	}
	NO_MORE();
}

/* TAG-10: more at a time than the QP may have READs outstanding. */
TEST_F(tags, many_rendezvous)
{
	const uint32_t size = 50000;
	struct side *a = &self->s[0];
	struct ibv_wc wc;

	request(a, 5, size);
	for (unsigned int i = 0; i < 3 * PAIR_READS; i++) {
		ADD(i, 5, EXACT, size, SIGNALED);
		ASSERT_EQ(0, post_fin(a, self->at_a[0]));
	}
	for (unsigned int i = 0; i < 3 * PAIR_READS; i++)
		ASSERT_EQ(0, post_send(a, self->at_a[0], IBV_WR_SEND, RNDV));
	for (unsigned int i = 0; i < 6 * PAIR_READS; i++) {
		ASSERT_TRUE(next_seen(self->cq, &self->seen, 20));
		ASSERT_EQ(IBV_WC_SUCCESS, self->seen.status);
		ASSERT_TRUE(side_wait(a, &wc, 20));
		ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
	}
	for (unsigned int i = 0; i < 4; i++)
		ASSERT_EQ(0, memcmp(place(&self->s[1], i), a->mem + PAYLOAD, size));
	NO_MORE();
}

/* TAG-8 */
TEST_F(tags, a_request_that_is_too_long_is_unexpected)
{
	POST(1);
	ADD(2, 77, EXACT, 1000, SIGNALED);
	request(&self->s[0], 77, 100);
	SEND(self->caps.max_rndv_hdr_size + 1);
	UNEXPECTED(0, self->caps.max_rndv_hdr_size + 1);
}

/* TAG-11: the program goes on with the rendezvous. */
TEST_F(tags, a_rendezvous_that_is_longer_than_the_buffer)
{
	ADD(2, 77, EXACT, 1000, SIGNALED);
	request(&self->s[0], 77, 1001);
	SEND(RNDV + 5);
	SEEN_STATUS(IBV_WC_TM_RNDV_INCOMPLETE, (int)IBV_WC_TM_RECV, 2);
	ASSERT_EQ(BOTH, self->seen.flags);
	ASSERT_EQ(RNDV + 5, self->seen.byte_len);
	TELLS_TAG(77);
	ASSERT_EQ(0, memcmp(place(&self->s[1], 2), self->s[0].mem, RNDV + 5));
	/* The QP goes on. */
	ADD(2, 77, EXACT, 1000, SIGNALED);
	EAGER(77, 100);
	SEEN(IBV_WC_TM_RECV, 2, BOTH);
}

/* TAG-10: a key that the sender does not have. */
TEST_F(tags, a_rendezvous_that_fails)
{
	struct side *a = &self->s[0];

	ADD(2, 77, EXACT, 1000, SIGNALED);
	request(a, 77, 100);
	((struct ibv_rvh *)(a->mem + TMH))->rkey ^= htobe32(0x100);
	ASSERT_EQ(0, post_send(a, self->at_a[0], IBV_WR_SEND, RNDV));
	SEEN(IBV_WC_TM_RECV, 2, IBV_WC_TM_MATCH);
	SEEN_STATUS(IBV_WC_REM_ACCESS_ERR, -1, 2);
	ASSERT_EQ(IBV_QPS_ERR, qp_state(self->at_b[0]));
	RECONNECT(0);
	ADD(2, 77, EXACT, 1000, SIGNALED);
	EAGER(77, 100);
	SEEN(IBV_WC_TM_RECV, 2, BOTH);
}

/* TAG-4 */
TEST_F(tags, a_tag_is_taken_out)
{
	uint32_t handle;

	POST(1);
	ADD(1, 8, EXACT, 100, SIGNALED);
	handle = self->op.tm.handle;
	ASSERT_EQ(0, del(self->srq, handle, SIGNALED));
	SEEN(IBV_WC_TM_DEL, 3000, 0);
	ASSERT_EQ(EINVAL, del(self->srq, handle, SIGNALED));
	EAGER(8, 10);
	UNEXPECTED(0, TMH + 10);
	IN_STEP();

	/* A message is faster. */
	ADD(2, 8, EXACT, 100, SIGNALED);
	handle = self->op.tm.handle;
	EAGER(8, 10);
	ASSERT_EQ(0, del(self->srq, handle, SIGNALED));
	SEEN(IBV_WC_TM_RECV, 2, BOTH);
	SEEN_STATUS(IBV_WC_TM_ERR, (int)IBV_WC_TM_DEL, 3000);
	ASSERT_EQ(EINVAL, del(self->srq, handle, 0));
	/* That is no error of the list. Nothing is seen of one that was not asked for. */
	ADD(3, 8, EXACT, 100, SIGNALED);
	handle = self->op.tm.handle;
	EAGER(8, 10);
	ASSERT_EQ(0, del(self->srq, handle, 0));
	SEEN(IBV_WC_TM_RECV, 3, BOTH);
	ADD(4, 8, EXACT, 100, SIGNALED);
	EAGER(8, 10);
	SEEN(IBV_WC_TM_RECV, 4, BOTH);
}

/* Nothing is seen of those that were not asked for, and there is always room for the next. */
TEST_F(tags, operations_without_completions)
{
	for (unsigned int i = 0; i < 20 * OPS; i++) {
		ADD(i, i, EXACT, 100, 0);
		if (i % 3) {
			message(&self->s[0], IBV_TMH_EAGER, i);
			SEND_BY(i % QPS, TMH + 100);
			SEEN(IBV_WC_TM_RECV, i, BOTH);
			ASSERT_EQ(self->at_b[i % QPS]->qp_num, self->seen.qp_num);
			HAS_PAYLOAD(i, 100);
		} else {
			ASSERT_EQ(0, del(self->srq, self->op.tm.handle, 0));
			NO_MORE();
		}
	}
}

TEST_F(tags, the_list_is_full)
{
	uint32_t handles[TAGS];

	for (unsigned int i = 0; i < TAGS; i++) {
		ADD(i, i, EXACT, 100, SIGNALED);
		handles[i] = self->op.tm.handle;
	}
	ASSERT_EQ(ENOMEM, post_op(self->srq, &self->op));
	EAGER(5, 10);
	ASSERT_EQ(ENOMEM, post_op(self->srq, &self->op));
	SEEN(IBV_WC_TM_RECV, 5, BOTH);
	ADD(5, 5, EXACT, 100, SIGNALED);
	ASSERT_EQ(ENOMEM, post_op(self->srq, &self->op));
	ASSERT_EQ(0, del(self->srq, handles[9], SIGNALED));
	SEEN(IBV_WC_TM_DEL, 3000, 0);
	ADD(9, 9, EXACT, 100, SIGNALED);
	EAGER(9, 10);
	SEEN(IBV_WC_TM_RECV, 9, BOTH);
}

/* As large as it may be. */
TEST_F(tags, the_largest_list)
{
	struct ibv_srq *srq = create_srq(&self->s[1], self->cq, self->caps.max_num_tags, self->caps.max_ops);
	struct ibv_ops_wr op;
	struct ibv_sge sge;

	ASSERT_NE(NULL, srq);
	for (unsigned int i = 0; i < self->caps.max_num_tags; i++) {
		op = add_op(&self->s[1], &sge, i, i, EXACT, 100, SIGNALED);
		ASSERT_EQ(0, post_op(srq, &op));
		SEEN(IBV_WC_TM_ADD, 1000 + i, 0);
	}
	ASSERT_EQ(ENOMEM, post_op(srq, &op));
	ASSERT_EQ(0, ibv_destroy_srq(srq));
}

/* TAG-14: what ends a message that is under way. */
enum end { END_DESTROY, END_RESET, END_ERROR };

static int end_qp(struct ibv_qp **qp, enum end how)
{
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	int err;

	if (how == END_RESET)
		return reset(*qp);
	if (how == END_ERROR)
		return ibv_modify_qp(*qp, &error, IBV_QP_STATE);
	err = ibv_destroy_qp(*qp);
	if (!err)
		*qp = NULL;
	return err;
}

#define END_UNDER_WAY(how) do {						\
	/* Four seconds for the message, that nobody waits for. */	\
	struct ibv_qp_rate_limit_attr slow_ = { .rate_limit = 1000 };	\
									\
	ADD(0, 1, EXACT, HALF / 4, SIGNALED);				\
	ADD(1, 2, EXACT, 100, SIGNALED);				\
	ASSERT_EQ(0, ibv_modify_qp_rate_limit(self->at_a[0], &slow_));	\
	message(&self->s[0], IBV_TMH_EAGER, 1);				\
	ASSERT_EQ(0, post_send(&self->s[0], self->at_a[0], IBV_WR_SEND, HALF / 4)); \
	SEEN(IBV_WC_TM_RECV, 0, IBV_WC_TM_MATCH);			\
	ASSERT_EQ(0, end_qp(&self->at_b[0], how));			\
	SEEN_STATUS(IBV_WC_WR_FLUSH_ERR, -1, 0);			\
	ASSERT_EQ(0, reset(self->at_a[0]));				\
	/* The list is as it was. */					\
	message(&self->s[0], IBV_TMH_EAGER, 2);				\
	SEND_BY(1, TMH + 10);						\
	SEEN(IBV_WC_TM_RECV, 1, BOTH);					\
} while (0)

/* The QP that has ended is of use again. */
#define GOES_ON() do {							\
	RECONNECT(0);							\
	ADD(0, 1, EXACT, 100, SIGNALED);				\
	EAGER(1, 10);							\
	SEEN(IBV_WC_TM_RECV, 0, BOTH);					\
} while (0)

TEST_F(tags, a_qp_is_destroyed_under_way)
{
	END_UNDER_WAY(END_DESTROY);
}

TEST_F(tags, a_qp_is_reset_under_way)
{
	END_UNDER_WAY(END_RESET);
	GOES_ON();
}

TEST_F(tags, a_qp_fails_under_way)
{
	END_UNDER_WAY(END_ERROR);
	GOES_ON();
}

/* TAG-14: what tags have received is seen, though the QP is gone; unexpected messages go with it, and are no loss. */
TEST_F(tags, a_qp_goes_with_its_unexpected_messages)
{
	POST(2);
	ADD(0, 1, EXACT, 100, SIGNALED);
	EAGER(1, 10);
	EAGER(2, 10);
	EAGER(3, 10);
	ASSERT_EQ(0, ibv_destroy_qp(self->at_b[0]));
	self->at_b[0] = NULL;
	SEEN(IBV_WC_TM_RECV, 0, BOTH);
	NO_MORE();
	IN_STEP();
	ADD(1, 2, EXACT, 100, SIGNALED);
	ASSERT_EQ(0, self->seen.flags);
	message(&self->s[0], IBV_TMH_EAGER, 2);
	SEND_BY(1, TMH + 10);
	SEEN(IBV_WC_TM_RECV, 1, BOTH);
	/* Both entries are complete. */
	POST(ENTRIES);
}

/* TAG-13 */
TEST_F(tags, buffers_that_do_not_do)
{
	struct side *a = &self->s[0], *b = &self->s[1];
	struct ibv_pd *pd = ibv_alloc_pd(b->context);
	struct ibv_mr *other = ibv_reg_mr(pd, b->mem, PAIR_MEM, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *read_only = ibv_reg_mr(b->pd, b->mem, PAIR_MEM, 0);
	const struct {
		const char *name;
		uint32_t lkey, size;
		enum ibv_wc_status status, of_send;
		uint8_t *addr;
	} rows[] = {
		{ "one byte too short", b->mr->lkey, 99, IBV_WC_LOC_LEN_ERR, IBV_WC_REM_INV_REQ_ERR },
		{ "a key that is none", b->mr->lkey ^ 0x100, 100, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR },
		{ "of another PD", other->lkey, 100, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR },
		{ "not to be written", read_only->lkey, 100, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR },
		{ "beyond its region", b->mr->lkey, 100, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR,
		  b->mem + PAIR_MEM - 99 },
	};

	for EACH(row, rows) {
		struct ibv_sge sge;

		self->op = add_op(b, &sge, 1, 6, EXACT, row->size, 0);
		sge.lkey = row->lkey;
		if (row->addr)
			sge.addr = (uintptr_t)row->addr;
		ASSERT_EQ(0, post_op(self->srq, &self->op));
		message(a, IBV_TMH_EAGER, 6);
		EXPECT_EQ(row->of_send, send_from(a, self->at_a[0], IBV_WR_SEND, TMH + 100)) {
			TH_LOG("%s", row->name);
		}
		SEEN_STATUS(row->status, -1, 1);
		RECONNECT(0);
		ADD(1, 6, EXACT, 100, SIGNALED);
		EAGER(6, 100);
		SEEN(IBV_WC_TM_RECV, 1, BOTH);
	}
	ASSERT_EQ(0, ibv_dereg_mr(read_only));
	ASSERT_EQ(0, ibv_dereg_mr(other));
	ASSERT_EQ(0, ibv_dealloc_pd(pd));
}

static int create(struct side *b, struct ibv_cq_ex *cq, uint32_t tags, uint32_t ops)
{
	struct ibv_srq *srq = create_srq(b, cq, tags, ops);

	return srq ? ibv_destroy_srq(srq) : errno;
}

/* TAG-1 */
TEST_F(tags, wrong_srqs)
{
	const uint32_t tags = self->caps.max_num_tags, ops = self->caps.max_ops;
	const struct {
		const char *name;
		uint32_t tags, ops;
		int err;
	} rows[] = {
		{ "no tags", 0, OPS, EINVAL },
		{ "a tag too many", tags + 1, OPS, EINVAL },
		{ "as many tags as can be said", UINT32_MAX, OPS, EINVAL },
		{ "no operations", TAGS, 0, EINVAL },
		{ "an operation too many", TAGS, ops + 1, EINVAL },
		{ "as many operations as can be said", TAGS, UINT32_MAX, EINVAL },
		{ "one of each", 1, 1, 0 },
		{ "all limits at once", tags, ops, 0 },
	};

	for EACH(row, rows)
		GAVE(row->err, create(&self->s[1], self->cq, row->tags, row->ops), row);
}

/* TAG-3 */
TEST_F(tags, wrong_operations)
{
	struct side *b = &self->s[1];
	struct ibv_srq_init_attr basic = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *other = ibv_create_srq(b->pd, &basic);
	struct ibv_ops_wr op, *bad;
	struct ibv_sge sge[2];
	uint32_t handle;

	ADD(0, 1, EXACT, 100, SIGNALED);
	handle = self->op.tm.handle;
	op = add_op(b, sge, 1, 1, EXACT, 100, 0);
	op.tm.add.num_sge = 2;
	EXPECT_EQ(EINVAL, post_op(self->srq, &op));
	op.tm.add.num_sge = -1;
	EXPECT_EQ(EINVAL, post_op(self->srq, &op));
	op = add_op(b, sge, 1, 1, EXACT, 100, 1 << 10);
	EXPECT_EQ(EINVAL, post_op(self->srq, &op));
	op = add_op(b, sge, 1, 1, EXACT, 100, 0);
	op.opcode = 3;
	EXPECT_EQ(EINVAL, post_op(self->srq, &op));
	EXPECT_EQ(EINVAL, del(self->srq, handle + 1, 0));
	EXPECT_EQ(EINVAL, del(self->srq, handle ^ 0x10000, 0));
	EXPECT_EQ(EINVAL, del(self->srq, UINT32_MAX, 0));
	ASSERT_NE(NULL, other);
	op = add_op(b, sge, 1, 1, EXACT, 100, 0);
	EXPECT_EQ(EINVAL, ibv_post_srq_ops(other, &op, &bad));
	EXPECT_EQ(&op, bad);
	EXPECT_EQ(0, ibv_destroy_srq(other));
	/* None of it was carried out. */
	EAGER(1, 10);
	SEEN(IBV_WC_TM_RECV, 0, BOTH);
	NO_MORE();
}

/* TAG-2 */
TEST_F(tags, wrong_qps)
{
	struct side *b = &self->s[1];
	struct ibv_cq *cq = ibv_cq_ex_to_cq(self->cq);
	const struct {
		const char *name;
		struct ibv_cq *send_cq, *recv_cq;
		enum ibv_qp_type type;
		uint32_t max_send_wr;
		int err;
	} rows[] = {
		{ "with sends", cq, cq, IBV_QPT_RC, 1, EINVAL },
		{ "of type UD", cq, cq, IBV_QPT_UD, 1, EINVAL },
		{ "of type UD, without sends", cq, cq, IBV_QPT_UD, 0, EINVAL },
		{ "of type UC", cq, cq, IBV_QPT_UC, 0, EINVAL },
		{ "with another CQ", cq, b->cq, IBV_QPT_RC, 0, EINVAL },
		{ "with another CQ of sends, of which there are none", b->cq, cq, IBV_QPT_RC, 0, 0 },
		{ "as it should be", cq, cq, IBV_QPT_RC, 0, 0 },
	};

	for EACH(row, rows) {
		struct ibv_qp_init_attr attr = {
			.send_cq = row->send_cq, .recv_cq = row->recv_cq, .srq = self->srq, .qp_type = row->type,
			.cap = { .max_send_wr = row->max_send_wr, .max_send_sge = 1 },
		};
		struct ibv_qp *qp = ibv_create_qp(b->pd, &attr);

		GAVE(row->err, qp ? ibv_destroy_qp(qp) : errno, row);
	}
}

/* A QP of another PD may have the SRQ, whose buffers are checked with the SRQ's own. */
TEST_F(tags, a_qp_of_another_pd)
{
	struct side *a = &self->s[0], *b = &self->s[1];
	struct ibv_pd *pd = ibv_alloc_pd(b->context), *own = b->pd;

	ASSERT_NE(NULL, pd);
	ASSERT_EQ(0, ibv_destroy_qp(self->at_b[0]));
	b->pd = pd;
	self->at_b[0] = create_receiver(b, self->cq, self->srq);
	b->pd = own;
	ASSERT_NE(NULL, self->at_b[0]);
	ASSERT_EQ(0, reset(self->at_a[0]));
	CONNECT(0);
	ADD(0, 1, EXACT, 1000, SIGNALED);
	EAGER(1, 1000);
	SEEN(IBV_WC_TM_RECV, 0, BOTH);
	ADD(1, 1, EXACT, 1000, SIGNALED);
	ASSERT_EQ(0, post_fin(a, self->at_a[0]));
	request(a, 1, 1000);
	ASSERT_EQ(0, post_send(a, self->at_a[0], IBV_WR_SEND, RNDV));
	SEEN(IBV_WC_TM_RECV, 1, IBV_WC_TM_MATCH);
	SEEN(IBV_WC_TM_RECV, 1, IBV_WC_TM_DATA_VALID);
	ASSERT_EQ(0, memcmp(place(b, 1), a->mem + PAYLOAD, 1000));
	FIN(0);
	ASSERT_EQ(0, ibv_destroy_qp(self->at_b[0]));
	self->at_b[0] = NULL;
	ASSERT_EQ(0, ibv_dealloc_pd(pd));
}

/* SRQ-11: an attempt to destroy it does no harm. */
TEST_F(tags, what_is_used_is_busy)
{
	ADD(0, 1, EXACT, 100, SIGNALED);
	ASSERT_EQ(EBUSY, ibv_destroy_srq(self->srq));
	ASSERT_EQ(EBUSY, ibv_destroy_cq(ibv_cq_ex_to_cq(self->cq)));
	ADD(1, 2, EXACT, 100, SIGNALED);
	EAGER(1, 10);
	SEEN(IBV_WC_TM_RECV, 0, BOTH);
	EAGER(2, 10);
	SEEN(IBV_WC_TM_RECV, 1, BOTH);
}

/* TAG-14: nothing of it is left in the CQ. */
TEST_F(tags, an_srq_goes_with_its_completions)
{
	struct ibv_wc wc;

	POST(1);
	ADD(0, 1, EXACT, 100, SIGNALED);
	ADD(1, 2, EXACT, 100, SIGNALED);
	EAGER(1, 10);
	EAGER(3, 10);
	SYNC(0);
	for (int i = 0; i < QPS; i++) {
		ASSERT_EQ(0, ibv_destroy_qp(self->at_b[i]));
		self->at_b[i] = NULL;
	}
	ASSERT_EQ(0, ibv_destroy_srq(self->srq));
	ASSERT_EQ(0, ibv_poll_cq(ibv_cq_ex_to_cq(self->cq), 1, &wc));
	self->srq = create_srq(&self->s[1], self->cq, TAGS, OPS);
	ASSERT_NE(NULL, self->srq);
	self->at_b[0] = create_receiver(&self->s[1], self->cq, self->srq);
	ASSERT_NE(NULL, self->at_b[0]);
	ASSERT_EQ(0, reset(self->at_a[0]));
	CONNECT(0);
	self->unexpected = 0;
	ADD(1, 2, EXACT, 100, SIGNALED);
	EAGER(2, 10);
	SEEN(IBV_WC_TM_RECV, 1, BOTH);
}

TEST_HARNESS_MAIN
