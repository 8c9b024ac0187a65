// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Asynchronous events of QPs and CQs, each where it belongs and once; and the state SQD.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pair.h"

#define SECONDS 10

/* What happens to a context in which nothing is due: no event in this time. */
#define QUIET_MS 300

FIXTURE(events) {
	struct side sides[2];
};

FIXTURE_SETUP(events)
{
	ASSERT_EQ(0, pair_open(self->sides));
}

FIXTURE_TEARDOWN(events)
{
	pair_close(self->sides);
}

static bool event_within(struct side *s, struct ibv_async_event *event, int ms)
{
	struct pollfd pfd = { .fd = s->context->async_fd, .events = POLLIN };

	memset(event, 0, sizeof(*event));
	if (poll(&pfd, 1, ms) != 1 || ibv_get_async_event(s->context, event))
		return false;
	ibv_ack_async_event(event);
	return true;
}

#define EXPECT_EVENT(side, type)						\
do {										\
	struct ibv_async_event __event;						\
										\
	ASSERT_TRUE(event_within(side, &__event, SECONDS * 1000));		\
	EXPECT_EQ(type, __event.event_type);					\
	event = __event;							\
} while (0)

#define EXPECT_QUIET(side)							\
do {										\
	struct ibv_async_event __event;						\
										\
	EXPECT_FALSE(event_within(side, &__event, QUIET_MS)) {			\
		TH_LOG("%s", ibv_event_type_str(__event.event_type));		\
	}									\
} while (0)

static int post_write(struct side *from, struct side *to, uint32_t length, uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)from->mem, length, from->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = length, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED, .wr.rdma = { (uintptr_t)to->mem, rkey },
	};

	return ibv_post_send(from->qp, &wr, &bad);
}

static int post_read(struct side *from, struct side *to)
{
	struct ibv_sge sge = { (uintptr_t)from->mem, 1 << 20, from->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED, .wr.rdma = { (uintptr_t)to->mem, to->mr->rkey },
	};

	return ibv_post_send(from->qp, &wr, &bad);
}

TEST_F(events, communication_established)
{
	struct side *sides = self->sides;
	struct ibv_qp *qp = side_create_qp(&sides[1]);
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct ibv_async_event event;
	struct ibv_wc wc;

	/* The pair's peer goes to RTS at once. This one waits in RTR, as a server does. */
	ASSERT_NE(NULL, qp);
	ASSERT_EQ(0, ibv_modify_qp(sides[0].qp, &reset, IBV_QP_STATE));
	ASSERT_EQ(0, qp_to_init(sides[0].qp, 0));
	ASSERT_EQ(0, qp_to_rtr(sides[0].qp, &sides[0], &sides[1], qp->qp_num));
	ASSERT_EQ(0, qp_to_rts(sides[0].qp, 10, 3, 3));
	ASSERT_EQ(0, qp_to_init(qp, IBV_ACCESS_REMOTE_WRITE));
	ASSERT_EQ(0, qp_to_rtr(qp, &sides[1], &sides[0], sides[0].qp->qp_num));
	EXPECT_QUIET(&sides[1]);
	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(0, post_write(&sides[0], &sides[1], 8, sides[1].mr->rkey));
		ASSERT_TRUE(side_wait(&sides[0], &wc, SECONDS));
		ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
	}
	EXPECT_EVENT(&sides[1], IBV_EVENT_COMM_EST);
	EXPECT_EQ(qp, event.element.qp);
	EXPECT_QUIET(&sides[1]);
	EXPECT_QUIET(&sides[0]);
	ASSERT_EQ(0, ibv_destroy_qp(qp));
}

TEST_F(events, access_error_is_the_responders)
{
	struct side *sides = self->sides;
	struct ibv_async_event event;
	struct ibv_wc wc;

	ASSERT_EQ(0, post_write(&sides[0], &sides[1], 8, sides[1].mr->rkey ^ 0x100));
	ASSERT_TRUE(side_wait(&sides[0], &wc, SECONDS));
	EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, wc.status);
	EXPECT_EVENT(&sides[1], IBV_EVENT_QP_ACCESS_ERR);
	EXPECT_EQ(sides[1].qp, event.element.qp);
	EXPECT_EQ(IBV_QPS_ERR, qp_state(sides[1].qp));
	EXPECT_QUIET(&sides[1]);
	EXPECT_QUIET(&sides[0]);
}

TEST_F(events, a_cq_overflows)
{
	struct side *sides = self->sides;
	struct ibv_cq *cq = ibv_create_cq(sides[0].context, 1, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = sides[0].cq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
		.cap = { .max_send_wr = 256, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct ibv_qp *qp = ibv_create_qp(sides[0].pd, &init), *other = sides[0].qp;
	struct ibv_async_event event;
	bool cq_err = false, fatal = false;
	struct ibv_wc wc;
	int n = 0;

	ASSERT_NE(NULL, cq);
	ASSERT_NE(NULL, qp);
	ASSERT_LT(cq->cqe, 256);
	ASSERT_EQ(0, ibv_modify_qp(sides[1].qp, &reset, IBV_QP_STATE));
	ASSERT_EQ(0, qp_to_init(sides[1].qp, IBV_ACCESS_REMOTE_WRITE));
	ASSERT_EQ(0, qp_to_rtr(sides[1].qp, &sides[1], &sides[0], qp->qp_num));
	ASSERT_EQ(0, qp_to_rts(sides[1].qp, 10, 3, 3));
	ASSERT_EQ(0, qp_to_init(qp, 0));
	ASSERT_EQ(0, qp_to_rtr(qp, &sides[0], &sides[1], sides[1].qp->qp_num));
	ASSERT_EQ(0, qp_to_rts(qp, 10, 3, 3));
	sides[0].qp = qp;
	for (int i = 0; i <= cq->cqe; i++)
		ASSERT_EQ(0, post_write(&sides[0], &sides[1], 8, sides[1].mr->rkey));
	for (int i = 0; i < 2; i++) {
		ASSERT_TRUE(event_within(&sides[0], &event, SECONDS * 1000));
		cq_err |= event.event_type == IBV_EVENT_CQ_ERR && event.element.cq == cq;
		fatal |= event.event_type == IBV_EVENT_QP_FATAL && event.element.qp == qp;
	}
	EXPECT_TRUE(cq_err);
	EXPECT_TRUE(fatal);
	EXPECT_EQ(IBV_QPS_ERR, qp_state(qp));
	/* Those that had room are there, and true. */
	for (; n <= cq->cqe && ibv_poll_cq(cq, 1, &wc) == 1; n++)
		EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
	EXPECT_EQ(cq->cqe, n);
	EXPECT_EQ(IBV_QPS_RTS, qp_state(other));
	EXPECT_QUIET(&sides[0]);
	sides[0].qp = other;
	ASSERT_EQ(0, ibv_destroy_qp(qp));
	ASSERT_EQ(0, ibv_destroy_cq(cq));
}

TEST_F(events, a_send_queue_is_drained)
{
	struct side *sides = self->sides;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
	struct ibv_qp_init_attr init;
	struct ibv_async_event event;
	struct ibv_wc wc;
	int done = 0;

	memset(sides[0].mem, 0x11, 64);
	memset(sides[1].mem, 0, 64);
	for (int i = 0; i < 8; i++)
		ASSERT_EQ(0, post_read(&sides[0], &sides[1]));
	ASSERT_EQ(0, ibv_modify_qp(sides[0].qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
	EXPECT_EVENT(&sides[0], IBV_EVENT_SQ_DRAINED);
	EXPECT_EQ(sides[0].qp, event.element.qp);
	ASSERT_EQ(0, ibv_query_qp(sides[0].qp, &attr, IBV_QP_STATE, &init));
	EXPECT_EQ(IBV_QPS_SQD, attr.qp_state);
	EXPECT_EQ(0, attr.sq_draining);

	/* What is posted now waits, and attributes may change. */
	while (ibv_poll_cq(sides[0].cq, 1, &wc) == 1)
		done++;
	ASSERT_EQ(0, post_write(&sides[0], &sides[1], 7, sides[1].mr->rkey));
	usleep(QUIET_MS * 1000);
	EXPECT_EQ(0, ibv_poll_cq(sides[0].cq, 1, &wc));
	attr.qp_state = IBV_QPS_SQD;
	attr.retry_cnt = 5;
	EXPECT_EQ(0, ibv_modify_qp(sides[0].qp, &attr, IBV_QP_STATE | IBV_QP_RETRY_CNT));
	attr.qp_state = IBV_QPS_RTS;
	ASSERT_EQ(0, ibv_modify_qp(sides[0].qp, &attr, IBV_QP_STATE));
	do {
		ASSERT_TRUE(side_wait(&sides[0], &wc, SECONDS));
		EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
		done++;
	} while (wc.wr_id != 7);
	EXPECT_EQ(9, done);
	ASSERT_EQ(0, ibv_query_qp(sides[0].qp, &attr, IBV_QP_STATE | IBV_QP_RETRY_CNT, &init));
	EXPECT_EQ(IBV_QPS_RTS, attr.qp_state);
	EXPECT_EQ(5, attr.retry_cnt);
	EXPECT_QUIET(&sides[0]);
}

/* An event that was not yet taken goes with its QP. */
TEST_F(events, of_a_qp_that_is_destroyed)
{
	struct side *sides = self->sides;
	struct ibv_wc wc;

	ASSERT_EQ(0, post_write(&sides[0], &sides[1], 8, sides[1].mr->rkey ^ 0x100));
	ASSERT_TRUE(side_wait(&sides[0], &wc, SECONDS));
	ASSERT_EQ(0, ibv_destroy_qp(sides[1].qp));
	sides[1].qp = NULL;
	EXPECT_QUIET(&sides[1]);
}

TEST_HARNESS_MAIN
