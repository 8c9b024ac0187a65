// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion queues of a program that change: other sizes, under traffic, and events that wait for more completions.
 * Rules: CQ-6 and CQ-7 in Documentation/manual/objects.rst.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <time.h>

#include "kselftest_harness.h"
#include "pair.h"

FIXTURE(cq) {
	struct side s[2];
	uint64_t posted;	/* wr_ids of sends of skua_0 */
	uint64_t seen;
};

FIXTURE_SETUP(cq)
{
	ASSERT_EQ(0, pair_open(self->s));
}

FIXTURE_TEARDOWN(cq)
{
	EXPECT_TRUE(pair_transfer(self->s));
	pair_close(self->s);
}

/* WRITEs of skua_0, each with a completion. */
static int post_writes(struct side *s, uint64_t *posted, unsigned int count)
{
	for (; count; count--) {
		struct ibv_sge sge = { (uintptr_t)s[0].mem, 64, s[0].mr->lkey };
		struct ibv_send_wr *bad, wr = {
			.wr_id = (*posted)++, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { (uintptr_t)s[1].mem, s[1].mr->rkey },
		};
		int err = ibv_post_send(s[0].qp, &wr, &bad);

		if (err)
			return err;
	}
	return 0;
}

#define POST(n) ASSERT_EQ(0, post_writes(self->s, &self->posted, n))

/* The next completions, in order. */
#define SEEN(n) do {							\
	for (unsigned int n_ = (n); n_; n_--) {				\
		struct ibv_wc wc_;					\
									\
		ASSERT_TRUE(side_wait(&self->s[0], &wc_, 20));		\
		ASSERT_EQ(IBV_WC_SUCCESS, wc_.status);			\
		ASSERT_EQ(self->seen++, wc_.wr_id);			\
	}								\
} while (0)

#define NONE() do {							\
	struct ibv_wc wc_;						\
									\
	ASSERT_EQ(0, ibv_poll_cq(self->s[0].cq, 1, &wc_));		\
} while (0)

/* With completions in it, and with more that come meanwhile. */
TEST_F(cq, other_sizes)
{
	struct ibv_cq *cq = self->s[0].cq;

	for (unsigned int i = 0; i < 60; i++) {
		int size = PAIR_WRS + i % 7 * 25;

		POST(i % PAIR_WRS);
		if (i & 1)
			usleep(1000);
		ASSERT_EQ(0, ibv_resize_cq(cq, size));
		ASSERT_LE(size, cq->cqe);
		SEEN(i % PAIR_WRS);
		POST(PAIR_WRS);
		SEEN(PAIR_WRS);
		NONE();
	}
}

struct poller {
	struct ibv_cq *cq;
	uint64_t seen, until;
	bool wrong;
};

static void *poll_in_order(void *arg)
{
	struct poller *p = arg;
	struct ibv_wc wc;

	while (p->seen < p->until && !p->wrong) {
		int n = ibv_poll_cq(p->cq, 1, &wc);

		if (n < 0 || (n && (wc.status || wc.wr_id != p->seen)))
			p->wrong = true;
		else if (n)
			__atomic_add_fetch(&p->seen, 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* One thread posts, another polls, a third changes the size all the time. */
TEST_F(cq, other_sizes_while_a_thread_polls)
{
	struct poller p = { .cq = self->s[0].cq, .until = 2000 };
	unsigned int resized = 0;
	pthread_t thread;

	ASSERT_EQ(0, pthread_create(&thread, NULL, poll_in_order, &p));
	while (self->posted < p.until && !p.wrong) {
		if (self->posted - __atomic_load_n(&p.seen, __ATOMIC_ACQUIRE) < PAIR_WRS)
			EXPECT_EQ(0, post_writes(self->s, &self->posted, 1));
		if (self->posted % 40 == 39) {
			int err = ibv_resize_cq(self->s[0].cq, PAIR_WRS << resized % 5);

			EXPECT_EQ(0, err);
			resized++;
		}
	}
	ASSERT_EQ(0, pthread_join(thread, NULL));
	ASSERT_FALSE(p.wrong);
	ASSERT_EQ(p.until, p.seen);
	ASSERT_LT(40, resized);
}

/* A QP in ERR on the CQ of @s, whose @count receives are flushed, more than fill a page of CQEs; or NULL. */
static struct ibv_qp *flush_receives(struct side *s, unsigned int count)
{
	struct ibv_qp_init_attr init = {
		.send_cq = s->cq, .recv_cq = s->cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = count, .max_recv_sge = 1 },
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_qp *qp = ibv_create_qp(s->pd, &init);
	struct ibv_recv_wr *bad, wr = {};

	if (!qp || qp_to_init(qp, 0))
		return NULL;
	for (; wr.wr_id < count; wr.wr_id++)
		if (ibv_post_recv(qp, &wr, &bad))
			return NULL;
	return ibv_modify_qp(qp, &attr, IBV_QP_STATE) ? NULL : qp;
}

/* Each is refused, and nothing is lost. */
TEST_F(cq, sizes_that_cannot_be)
{
	struct ibv_cq *cq = self->s[0].cq;
	struct ibv_device_attr attr;
	struct ibv_wc wc;
	struct ibv_qp *qp;
	int cqe;

	ASSERT_EQ(0, ibv_query_device(self->s[0].context, &attr));
	ASSERT_EQ(0, ibv_resize_cq(cq, 256));
	cqe = cq->cqe;
	qp = flush_receives(&self->s[0], 100);
	ASSERT_NE(NULL, qp);
	sleep(1);
	ASSERT_EQ(EINVAL, ibv_resize_cq(cq, 0));
	ASSERT_EQ(EINVAL, ibv_resize_cq(cq, -1));
	ASSERT_EQ(EINVAL, ibv_resize_cq(cq, attr.max_cqe + 1));
	ASSERT_EQ(EINVAL, ibv_resize_cq(cq, 4));	/* fewer than are in it */
	ASSERT_EQ(cqe, cq->cqe);
	for (unsigned int i = 0; i < 100; i++) {
		ASSERT_TRUE(side_wait(&self->s[0], &wc, 20));
		ASSERT_EQ(IBV_WC_WR_FLUSH_ERR, wc.status);
		ASSERT_EQ(i, wc.wr_id);
	}
	ASSERT_EQ(0, ibv_destroy_qp(qp));
	ASSERT_EQ(0, ibv_resize_cq(cq, attr.max_cqe));
	ASSERT_EQ(attr.max_cqe, cq->cqe);
	ASSERT_EQ(0, ibv_resize_cq(cq, 1));
	POST(1);
	SEEN(1);
	ASSERT_EQ(0, ibv_resize_cq(cq, cqe));
}

/* A program that asks for fewer CQEs than it posted WQEs may have been faster than the NIC. */
TEST_F(cq, a_small_size_while_work_is_under_way)
{
	struct ibv_cq *cq = self->s[0].cq;

	for (unsigned int i = 0; i < 200; i++) {
		POST(PAIR_WRS);
		ASSERT_EQ(0, ibv_resize_cq(cq, 1));
		ASSERT_LE(PAIR_WRS, cq->cqe);
		SEEN(PAIR_WRS);
	}
}

/* An arming from before holds in the new ring. */
TEST_F(cq, armed_while_it_is_resized)
{
	struct ibv_cq *cq;
	void *context;

	for (unsigned int i = 0; i < 10; i++) {
		ASSERT_EQ(0, ibv_req_notify_cq(self->s[0].cq, 0));
		ASSERT_EQ(0, ibv_resize_cq(self->s[0].cq, PAIR_WRS << i % 4));
		POST(1);
		ASSERT_EQ(0, ibv_get_cq_event(self->s[0].channel, &cq, &context));
		ibv_ack_cq_events(cq, 1);
		SEEN(1);
	}
}

static bool event_within(struct side *s, int ms)
{
	struct pollfd fd = { .fd = s->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	if (poll(&fd, 1, ms) != 1 || ibv_get_cq_event(s->channel, &cq, &context))
		return false;
	ibv_ack_cq_events(cq, 1);
	return true;
}

static int moderate(struct side *s, uint16_t count, uint16_t period)
{
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = { count, period },
	};

	return ibv_modify_cq(s->cq, &attr);
}

static unsigned int now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

TEST_F(cq, events_wait_for_more)
{
	struct side *s = &self->s[0];
	unsigned int before;

	/* The longest that there is. */
	ASSERT_EQ(0, moderate(s, 8, UINT16_MAX));
	for (unsigned int i = 0; i < 5; i++) {
		ASSERT_EQ(0, ibv_req_notify_cq(s->cq, 0));
		POST(8);
		ASSERT_TRUE(event_within(s, 20000));
		SEEN(8);
		ASSERT_EQ(0, ibv_req_notify_cq(s->cq, 0));
		before = now_ms();
		POST(1);
		/* After its period of 65 ms, by the clock of the host. */
		ASSERT_TRUE(event_within(s, 20000));
		ASSERT_LT(before + 40, now_ms());
		SEEN(1);
		ASSERT_FALSE(event_within(s, 0));
	}
	ASSERT_EQ(0, moderate(s, 0, 0));
	ASSERT_EQ(0, ibv_req_notify_cq(s->cq, 0));
	POST(1);
	ASSERT_TRUE(event_within(s, 20000));
	SEEN(1);
}

TEST_F(cq, the_device_tells_how_long_events_may_wait)
{
	struct ibv_device_attr_ex attr;

	ASSERT_EQ(0, ibv_query_device_ex(self->s[0].context, NULL, &attr));
	ASSERT_EQ(UINT16_MAX, attr.cq_mod_caps.max_cq_count);
	ASSERT_EQ(UINT16_MAX, attr.cq_mod_caps.max_cq_period);
}

static uint64_t wall_clock(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static uint64_t raw_clock(struct side *s)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };

	return ibv_query_rt_values_ex(s->context, &values) ? 0 : values.raw_clock.tv_nsec;
}

/* A completion is stamped between two looks at each clock. That nothing overruns is promised besides, and kept. */
TEST_F(cq, completions_are_stamped_by_both_clocks)
{
	struct ibv_cq_init_attr_ex attr = {
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS, .flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN,
		.cqe = PAIR_WRS, .channel = NULL, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	};
	struct ibv_values_ex unknown = { .comp_mask = 1u << 30 };
	struct ibv_poll_cq_attr poll_attr = {};
	struct side *s = self->s;
	struct ibv_cq *old = s[0].cq;
	uint64_t raw, wall, stamp;
	struct ibv_cq_ex *cq;

	ASSERT_EQ(EOPNOTSUPP, ibv_query_rt_values_ex(s[0].context, &unknown));
	cq = ibv_create_cq_ex(s[0].context, &attr);
	ASSERT_NE(NULL, cq);
	ASSERT_EQ(0, ibv_destroy_qp(s[0].qp));
	s[0].cq = ibv_cq_ex_to_cq(cq);
	s[0].qp = side_create_qp(&s[0]);
	ASSERT_NE(NULL, s[0].qp);
	ASSERT_EQ(0, pair_reconnect(s));
	for (unsigned int i = 0; i < 3; i++) {
		raw = raw_clock(&s[0]);
		wall = wall_clock();
		ASSERT_NE(0, raw);
		POST(1);
		while (ibv_start_poll(cq, &poll_attr))
			;
		ASSERT_EQ(IBV_WC_SUCCESS, cq->status);
		stamp = ibv_wc_read_completion_ts(cq);
		ASSERT_LT(raw, stamp);
		ASSERT_LT(stamp, raw_clock(&s[0]));
		/* A guest's clock is read with an error. */
		stamp = ibv_wc_read_completion_wallclock_ns(cq);
		ASSERT_LT(wall - 10000000, stamp);
		ASSERT_LT(stamp, wall_clock() + 10000000);
		ibv_end_poll(cq);
		sleep(2);
	}
	ASSERT_EQ(0, ibv_destroy_qp(s[0].qp));
	ASSERT_EQ(0, ibv_destroy_cq(s[0].cq));
	s[0].cq = old;
	s[0].qp = side_create_qp(&s[0]);
	ASSERT_NE(NULL, s[0].qp);
	ASSERT_EQ(0, pair_reconnect(s));
}

TEST_HARNESS_MAIN
