// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Shared receive queues of a program: QPs of skua_1 share one, their peers are QPs of skua_0.
 * Rules: Documentation/manual/srq.rst.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "kselftest_harness.h"
#include "pair.h"
#include "rows.h"

#define QPS		3
#define WRS		16
#define HALF		(PAIR_MEM / 2)	/* sources below, targets above */
#define SLOT		4096u

FIXTURE(srq) {
	struct side s[2];
	struct ibv_srq *srq;
	struct ibv_qp *at_a[QPS], *at_b[QPS];
	uint64_t posted;	/* wr_ids */
};

static struct ibv_qp *create_user(struct side *side, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = side->cq, .recv_cq = side->cq, .srq = srq, .qp_type = IBV_QPT_RC,
		/* With an SRQ, what is asked for of a receive queue is ignored. */
		.cap = { .max_send_wr = 4, .max_send_sge = 1, .max_recv_wr = 1u << 30, .max_recv_sge = 1000 },
	};
	struct ibv_qp *qp = ibv_create_qp(side->pd, &attr);

	if (qp && (attr.cap.max_recv_wr || attr.cap.max_recv_sge)) {
		ibv_destroy_qp(qp);
		return NULL;
	}
	return qp;
}

/* From RESET to RTS. 0 or an errno. */
static int connect_to(struct ibv_qp *qp, struct side *side, struct side *peer, uint32_t qpn)
{
	int err = qp_to_init(qp, 0);

	err = err ? err : qp_to_rtr(qp, side, peer, qpn);
	return err ? err : qp_to_rts(qp, 14, 7, 7);
}

FIXTURE_SETUP(srq)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = WRS, .max_sge = 2 } };
	struct side *a = &self->s[0], *b = &self->s[1];

	ASSERT_EQ(0, pair_open(self->s));
	self->srq = ibv_create_srq(b->pd, &attr);
	ASSERT_NE(NULL, self->srq);
	ASSERT_LE(WRS, attr.attr.max_wr);
	ASSERT_LE(2, attr.attr.max_sge);
	for (int i = 0; i < QPS; i++) {
		self->at_a[i] = side_create_qp(a);
		self->at_b[i] = create_user(b, self->srq);
		ASSERT_NE(NULL, self->at_a[i]);
		ASSERT_NE(NULL, self->at_b[i]);
		ASSERT_EQ(0, connect_to(self->at_a[i], a, b, self->at_b[i]->qp_num));
		ASSERT_EQ(0, connect_to(self->at_b[i], b, a, self->at_a[i]->qp_num));
	}
	pair_fill(a->mem, HALF, 7);
}

FIXTURE_TEARDOWN(srq)
{
	for (int i = 0; i < QPS; i++) {
		EXPECT_EQ(0, ibv_destroy_qp(self->at_a[i]));
		if (self->at_b[i])
			EXPECT_EQ(0, ibv_destroy_qp(self->at_b[i]));
	}
	EXPECT_EQ(0, ibv_destroy_srq(self->srq));
	EXPECT_TRUE(pair_transfer(self->s));
	pair_close(self->s);
}

/* Where the receive with this wr_id goes. */
static uint8_t *place(struct side *b, uint64_t wr_id)
{
	return b->mem + HALF + wr_id % 64 * SLOT;
}

/* Post one more receive. 0 or an errno. */
static int post_one(struct side *b, struct ibv_srq *srq, uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)place(b, wr_id), SLOT, b->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };

	return ibv_post_srq_recv(srq, &wr, &bad);
}

#define POST(n) do {							\
	for (unsigned int n_ = (n); n_; n_--)				\
		ASSERT_EQ(0, post_one(&self->s[1], self->srq, self->posted++)); \
} while (0)

/* The peer of user @i sends; the completion of its send. */
static int send_from(struct side *a, struct ibv_qp *qp, uint32_t size)
{
	struct ibv_sge sge = { (uintptr_t)a->mem, size, a->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_wc wc;

	if (ibv_post_send(qp, &wr, &bad) || !side_wait(a, &wc, 20))
		return -1;
	return wc.status;
}

#define SEND(i, size)	ASSERT_EQ(IBV_WC_SUCCESS, send_from(&self->s[0], self->at_a[i], size))

/* The next receive: of user @i, this wr_id, these bytes. */
#define RECEIVED(i, id, size) do {					\
	struct ibv_wc wc_;						\
									\
	ASSERT_TRUE(side_wait(&self->s[1], &wc_, 20));			\
	ASSERT_EQ(IBV_WC_SUCCESS, wc_.status);				\
	ASSERT_EQ(IBV_WC_RECV, wc_.opcode);				\
	ASSERT_EQ((uint64_t)(id), wc_.wr_id);				\
	ASSERT_EQ(self->at_b[i]->qp_num, wc_.qp_num);			\
	ASSERT_EQ((uint32_t)(size), wc_.byte_len);			\
	ASSERT_EQ(0, memcmp(place(&self->s[1], id), self->s[0].mem, size)); \
} while (0)

/* The next asynchronous event of skua_1. */
#define EVENT(type) do {						\
	struct pollfd fd_ = { .fd = self->s[1].context->async_fd, .events = POLLIN }; \
	struct ibv_async_event event_;					\
									\
	ASSERT_EQ(1, poll(&fd_, 1, 20000));				\
	ASSERT_EQ(0, ibv_get_async_event(self->s[1].context, &event_));	\
	ibv_ack_async_event(&event_);					\
	ASSERT_EQ(type, event_.event_type);				\
} while (0)

/* SRQ-3, SRQ-4, SRQ-5: many times over the ring, with one entry that stays. */
TEST_F(srq, entries_are_shared)
{
	struct ibv_wc wc;

	POST(WRS);
	for (uint64_t i = 0; i < 10 * WRS; i++) {
		SEND(i % QPS, 1 + i * 17 % SLOT);
		RECEIVED(i % QPS, i, 1 + i * 17 % SLOT);
		POST(1);
	}
	ASSERT_EQ(0, ibv_poll_cq(self->s[1].cq, 1, &wc));
}

TEST_F(srq, it_is_full_and_empty)
{
	struct ibv_srq_attr attr;

	ASSERT_EQ(0, ibv_query_srq(self->srq, &attr));
	POST(attr.max_wr);
	ASSERT_EQ(ENOMEM, post_one(&self->s[1], self->srq, 0));
	for (uint32_t i = 0; i < attr.max_wr; i++) {
		SEND(1, 100);
		RECEIVED(1, i, 100);
	}
	/* Who sends to an empty one waits until there is a receive. */
	struct ibv_sge sge = { (uintptr_t)self->s[0].mem, 100, self->s[0].mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_wc wc;

	ASSERT_EQ(0, ibv_post_send(self->at_a[0], &wr, &bad));
	ASSERT_FALSE(side_wait(&self->s[0], &wc, 1));
	POST(1);
	ASSERT_TRUE(side_wait(&self->s[0], &wc, 20));
	ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
	RECEIVED(0, attr.max_wr, 100);
}

/* SRQ-7: completions that nobody has polled go with their QP, and free their slots. */
TEST_F(srq, a_qp_goes_with_its_completions)
{
	struct ibv_srq_attr attr;

	ASSERT_EQ(0, ibv_query_srq(self->srq, &attr));
	POST(attr.max_wr);
	for (unsigned int i = 0; i < 5; i++)
		SEND(0, 100);
	SEND(1, 200);
	for (unsigned int i = 0; i < 3; i++)
		SEND(0, 100);
	ASSERT_EQ(0, ibv_destroy_qp(self->at_b[0]));
	self->at_b[0] = NULL;
	RECEIVED(1, 5, 200);
	/* 9 were taken, and 9 are complete. */
	POST(9);
	ASSERT_EQ(ENOMEM, post_one(&self->s[1], self->srq, 0));
	for (uint64_t i = 9; i < attr.max_wr + 9; i++) {
		SEND(2, 300);
		RECEIVED(2, i, 300);
	}
}

/* The same of a QP that is reset, which goes on. */
TEST_F(srq, a_qp_is_reset)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct ibv_srq_attr attr;

	ASSERT_EQ(0, ibv_query_srq(self->srq, &attr));
	POST(attr.max_wr);
	for (unsigned int i = 0; i < 5; i++)
		SEND(0, 100);
	ASSERT_EQ(0, ibv_modify_qp(self->at_b[0], &reset, IBV_QP_STATE));
	ASSERT_EQ(0, ibv_modify_qp(self->at_a[0], &reset, IBV_QP_STATE));
	ASSERT_EQ(0, connect_to(self->at_a[0], &self->s[0], &self->s[1], self->at_b[0]->qp_num));
	ASSERT_EQ(0, connect_to(self->at_b[0], &self->s[1], &self->s[0], self->at_a[0]->qp_num));
	POST(5);
	for (uint64_t i = 5; i < attr.max_wr + 5; i++) {
		SEND(0, 100);
		RECEIVED(0, i, 100);
	}
}

/* SRQ-6, SRQ-8 */
TEST_F(srq, events)
{
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	struct ibv_srq_attr attr = { .srq_limit = 3 };

	POST(4);
	ASSERT_EQ(0, ibv_modify_srq(self->srq, &attr, IBV_SRQ_LIMIT));
	ASSERT_EQ(0, ibv_query_srq(self->srq, &attr));
	ASSERT_EQ(3, attr.srq_limit);
	SEND(0, 10);
	SEND(0, 10);
	EVENT(IBV_EVENT_SRQ_LIMIT_REACHED);
	ASSERT_EQ(0, ibv_query_srq(self->srq, &attr));
	ASSERT_EQ(0, attr.srq_limit);
	RECEIVED(0, 0, 10);
	RECEIVED(0, 1, 10);
	ASSERT_EQ(0, ibv_modify_qp(self->at_b[2], &error, IBV_QP_STATE));
	EVENT(IBV_EVENT_QP_LAST_WQE_REACHED);
	SEND(1, 10);
	RECEIVED(1, 2, 10);
}

/* SRQ-10: larger and smaller, with entries in it, again and again. */
TEST_F(srq, resize)
{
	static const uint32_t sizes[] = { 64, 33, 16, 1024, 8, 16 };
	uint64_t next = 0;

	POST(5);
	for EACH(size, sizes) {
		struct ibv_srq_attr attr = { .max_wr = *size };

		ASSERT_EQ(0, ibv_modify_srq(self->srq, &attr, IBV_SRQ_MAX_WR));
		ASSERT_EQ(0, ibv_query_srq(self->srq, &attr));
		ASSERT_LE(*size, attr.max_wr);
		for (unsigned int i = 0; i < 20; i++, next++) {
			SEND(i % QPS, 50);
			RECEIVED(i % QPS, next, 50);
			POST(1);
		}
		/* As many as it says. */
		for (uint32_t i = 5; i < attr.max_wr; i++)
			POST(1);
		ASSERT_EQ(ENOMEM, post_one(&self->s[1], self->srq, 0));
		for (uint32_t i = 5; i < attr.max_wr; i++, next++) {
			SEND(0, 50);
			RECEIVED(0, next, 50);
		}
	}
}

/* Each says so, and nothing is lost. */
static int create(struct side *b, uint32_t wrs, uint32_t sges, uint32_t limit)
{
	struct ibv_srq_init_attr attr = { .attr = { wrs, sges, limit } };
	struct ibv_srq *srq = ibv_create_srq(b->pd, &attr);

	return srq ? ibv_destroy_srq(srq) : errno;
}

TEST_F(srq, wrong_sizes)
{
	struct ibv_device_attr attr;

	ASSERT_EQ(0, ibv_query_device(self->s[1].context, &attr));
	ASSERT_EQ(0, create(&self->s[1], attr.max_srq_wr, attr.max_srq_sge, 0));
	ASSERT_EQ(EINVAL, create(&self->s[1], attr.max_srq_wr + 1, 1, 0));
	ASSERT_EQ(EINVAL, create(&self->s[1], 1u << 30, 1, 0));
	ASSERT_EQ(EINVAL, create(&self->s[1], UINT32_MAX, 1, 0));
	ASSERT_EQ(EINVAL, create(&self->s[1], 0, 1, 0));
	ASSERT_EQ(EINVAL, create(&self->s[1], 16, attr.max_srq_sge + 1, 0));
}

/* ibv_create_srq() takes no limit, so that a program may leave anything there. */
TEST_F(srq, the_limit_at_creation_is_none)
{
	struct pollfd fd = { .fd = self->s[1].context->async_fd, .events = POLLIN };

	ASSERT_EQ(0, create(&self->s[1], 16, 1, UINT32_MAX));
	ASSERT_EQ(0, create(&self->s[1], 16, 1, 5));
	ASSERT_EQ(0, poll(&fd, 1, 100));
}

TEST_F(srq, wrong_changes)
{
	struct ibv_srq_attr attr = { .max_wr = 0 };
	struct ibv_device_attr device;

	ASSERT_EQ(0, ibv_query_device(self->s[1].context, &device));
	POST(10);
	ASSERT_EQ(EINVAL, ibv_modify_srq(self->srq, &attr, IBV_SRQ_MAX_WR));
	attr.max_wr = 8;	/* fewer than are posted */
	ASSERT_EQ(EINVAL, ibv_modify_srq(self->srq, &attr, IBV_SRQ_MAX_WR));
	attr.max_wr = device.max_srq_wr + 1;
	ASSERT_EQ(EINVAL, ibv_modify_srq(self->srq, &attr, IBV_SRQ_MAX_WR));
	attr.srq_limit = device.max_srq_wr;
	ASSERT_EQ(EINVAL, ibv_modify_srq(self->srq, &attr, IBV_SRQ_LIMIT));
	SEND(0, 100);
	RECEIVED(0, 0, 100);
}

TEST_F(srq, wrong_uses)
{
	struct ibv_sge sges[40] = {};
	struct ibv_recv_wr *bad, wr = { .sg_list = sges, .num_sge = 40 };
	struct ibv_qp_init_attr attr = {
		.send_cq = self->s[1].cq, .recv_cq = self->s[1].cq, .srq = self->srq,
		.qp_type = IBV_QPT_RAW_PACKET, .cap = { .max_send_wr = 1, .max_send_sge = 1 },
	};

	ASSERT_EQ(EINVAL, ibv_post_srq_recv(self->srq, &wr, &bad));
	ASSERT_EQ(&wr, bad);
	/* A QP with an SRQ has no receives of its own. */
	wr.num_sge = 0;
	ASSERT_NE(0, ibv_post_recv(self->at_b[0], &wr, &bad));
	ASSERT_EQ(NULL, ibv_create_qp(self->s[1].pd, &attr));
	ASSERT_EQ(EBUSY, ibv_destroy_srq(self->srq));
	POST(1);
	SEND(0, 100);
	RECEIVED(0, 0, 100);
}

/* SRQ-2: a receive whose key is wrong is its QP's fault alone. */
TEST_F(srq, a_wrong_key)
{
	struct side *b = &self->s[1];
	struct ibv_sge sge = { (uintptr_t)b->mem, SLOT, b->mr->lkey ^ 0x100 };
	struct ibv_recv_wr *bad, wr = { .wr_id = 5, .sg_list = &sge, .num_sge = 1 };
	struct ibv_wc wc;

	ASSERT_EQ(0, ibv_post_srq_recv(self->srq, &wr, &bad));
	ASSERT_EQ(IBV_WC_REM_OP_ERR, send_from(&self->s[0], self->at_a[0], 100));
	ASSERT_TRUE(side_wait(b, &wc, 20));
	ASSERT_EQ(IBV_WC_LOC_PROT_ERR, wc.status);
	ASSERT_EQ(5, wc.wr_id);
	EVENT(IBV_EVENT_QP_LAST_WQE_REACHED);
	POST(1);
	SEND(1, 100);
	RECEIVED(1, 0, 100);
}

TEST_HARNESS_MAIN
