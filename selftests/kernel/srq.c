// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A shared receive queue of the kernel's: its entries are posted, completed, counted and kept when
 * QPs go, its events come, and it is resized.
 */
#include <linux/slab.h>

#include "skua_selftest.h"

#define ST_SRQ_WRS	8
#define ST_SRQ_SIZE	256		/* of each message */

/**
 * struct st_srq - an SRQ of the second side
 * @side: both sides
 * @srq: the SRQ, used by the second side's QP
 * @wrs: its receives
 * @posted: receives that were posted, all together
 * @received: receives that completed, all together
 * @event: the last of its events
 * @has_event: there was one
 */
struct st_srq {
	struct st_side *side;
	struct ib_srq *srq;
	struct st_wr wrs[4 * ST_SRQ_WRS];
	u32 posted;
	u32 received;
	enum ib_event_type event;
	struct completion has_event;
};

static void st_srq_event(struct ib_event *event, void *context)
{
	struct st_srq *s = context;

	s->event = event->event;
	complete(&s->has_event);
}

/* The second side has a QP with @srq, or NULL, instead of the one that it has. 0 or an errno. */
static int st_srq_new_qp(struct st_side *side, struct ib_srq *srq)
{
	struct ib_qp_init_attr attr = {
		.event_handler = st_event, .qp_context = &side[1], .srq = srq,
		.send_cq = side[1].cq, .recv_cq = side[1].cq,
		.sq_sig_type = IB_SIGNAL_REQ_WR, .qp_type = IB_QPT_RC,
		.cap = {
			.max_send_wr = ST_WRS,
			/* With an SRQ it is ignored. */
			.max_recv_wr = srq ? INT_MAX : ST_WRS,
			.max_send_sge = ST_SGES, .max_recv_sge = ST_SGES,
			.max_inline_data = ST_INLINE,
		},
	};
	struct ib_qp *qp = ib_create_qp(side[1].pd, &attr);

	if (IS_ERR(qp))
		return PTR_ERR(qp);
	ib_destroy_qp(side[1].qp);
	side[1].qp = qp;
	return st_reconnect(side);
}

static u32 st_srq_offset(u32 number)
{
	return ST_HALF + number % (4 * ST_SRQ_WRS) * ST_SRQ_SIZE;
}

static int st_srq_post(struct st_srq *s)
{
	struct st_side *b = &s->side[1];
	struct st_wr *st_wr = &s->wrs[s->posted % ARRAY_SIZE(s->wrs)];
	struct ib_sge sge = {
		.addr = b->dma + st_srq_offset(s->posted), .length = ST_SRQ_SIZE,
		.lkey = b->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = { .wr_cqe = &st_wr->cqe, .sg_list = &sge, .num_sge = 1 };
	int err;

	reinit_completion(&st_wr->done);
	err = ib_post_srq_recv(s->srq, &wr, NULL);
	if (!err)
		s->posted++;
	return err;
}

/* One message, for the next receive. */
static const char *st_srq_message(struct st_srq *s)
{
	struct st_side *a = &s->side[0], *b = &s->side[1];
	struct st_wr *wr = &s->wrs[s->received % ARRAY_SIZE(s->wrs)];
	u8 *target = b->buf + st_srq_offset(s->received);

	st_fill(a->buf, ST_SRQ_SIZE, s->received);
	memset(target, 0, ST_SRQ_SIZE);
	CHECK(!st_post_rdma(a, b, IB_WR_SEND, 0, 0, ST_SRQ_SIZE, IB_SEND_SIGNALED));
	CHECK(st_wait(a, &a->send));
	CHECK(a->send.wc.status == IB_WC_SUCCESS);
	CHECK(st_wait(b, wr));
	CHECK(wr->wc.status == IB_WC_SUCCESS);
	CHECK(wr->wc.opcode == IB_WC_RECV);
	CHECK(wr->wc.byte_len == ST_SRQ_SIZE);
	CHECK(wr->wc.qp == b->qp);
	CHECK(!memcmp(target, a->buf, ST_SRQ_SIZE));
	s->received++;
	return NULL;
}

/* All that may be posted is posted, and received. */
static const char *st_srq_rounds(struct st_srq *s, u32 max, u32 rounds)
{
	const char *wrong = NULL;
	u32 i;

	while (s->posted - s->received < max)
		CHECK(!st_srq_post(s));
	CHECK(st_srq_post(s) == -ENOMEM);
	for (i = 0; i < rounds * max && !wrong; i++) {
		wrong = st_srq_message(s);
		if (!wrong)
			CHECK(!st_srq_post(s));
	}
	return wrong;
}

static const char *st_srq_limit(struct st_srq *s)
{
	struct ib_srq_attr attr = { .srq_limit = ST_SRQ_WRS };
	const char *wrong;

	CHECK(!ib_modify_srq(s->srq, &attr, IB_SRQ_LIMIT));
	CHECK(!ib_query_srq(s->srq, &attr));
	CHECK(attr.srq_limit == ST_SRQ_WRS && attr.max_wr == ST_SRQ_WRS);
	wrong = st_srq_message(s);
	if (wrong)
		return wrong;
	CHECK(wait_for_completion_timeout(&s->has_event, ST_TIMEOUT));
	CHECK(s->event == IB_EVENT_SRQ_LIMIT_REACHED);
	CHECK(!ib_query_srq(s->srq, &attr));
	CHECK(!attr.srq_limit);
	CHECK(!st_srq_post(s));
	return NULL;
}

static const char *st_srq_resize(struct st_srq *s)
{
	static const u32 sizes[] = { 4 * ST_SRQ_WRS - 1, ST_SRQ_WRS, 2 * ST_SRQ_WRS, ST_SRQ_WRS };
	const char *wrong;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct ib_srq_attr attr = { .max_wr = sizes[i] };

		/* Not below what is posted. */
		if (s->posted - s->received > sizes[i])
			CHECK(ib_modify_srq(s->srq, &attr, IB_SRQ_MAX_WR) == -EINVAL);
		while (s->posted - s->received > sizes[i]) {
			wrong = st_srq_message(s);
			if (wrong)
				return wrong;
		}
		CHECK(!ib_modify_srq(s->srq, &attr, IB_SRQ_MAX_WR));
		wrong = st_srq_rounds(s, sizes[i], 2);
		if (wrong)
			return wrong;
	}
	return NULL;
}

/* Completions that nobody has polled go with their QP, and free their slots. */
static const char *st_srq_lose_qp(struct st_srq *s)
{
	struct st_side *a = &s->side[0], *b = &s->side[1];
	int i;

	for (i = 0; i < 3; i++) {
		CHECK(!st_post_rdma(a, b, IB_WR_SEND, 0, 0, ST_SRQ_SIZE, IB_SEND_SIGNALED));
		CHECK(st_wait(a, &a->send));
		CHECK(a->send.wc.status == IB_WC_SUCCESS);
	}
	CHECK(!st_srq_new_qp(s->side, s->srq));
	s->received += 3;
	return st_srq_rounds(s, ST_SRQ_WRS, 2);
}

/* A QP that goes to ERR says when it completes no more; the SRQ keeps its entries. */
static const char *st_srq_drain(struct st_srq *s)
{
	struct st_side *b = &s->side[1];

	reinit_completion(&b->has_event);
	ib_drain_qp(b->qp);
	CHECK(wait_for_completion_timeout(&b->has_event, ST_TIMEOUT));
	CHECK(b->event == IB_EVENT_QP_LAST_WQE_REACHED);
	CHECK(!st_reconnect(s->side));
	return st_srq_rounds(s, ST_SRQ_WRS, 1);
}

static const char *st_srq_refused(struct st_srq *s)
{
	struct ib_srq_init_attr attr = {
		.srq_type = IB_SRQT_BASIC, .attr = { .max_wr = 0, .max_sge = 1 },
	};
	struct ib_device_attr *limits = &s->side[1].dev->attrs;
	struct ib_pd *pd = s->side[1].pd;
	struct ib_sge sges[40] = {};
	struct ib_recv_wr wr = { .sg_list = sges, .num_sge = ARRAY_SIZE(sges) };

	CHECK(PTR_ERR(ib_create_srq(pd, &attr)) == -EINVAL);
	attr.attr.max_wr = limits->max_srq_wr + 1;
	CHECK(PTR_ERR(ib_create_srq(pd, &attr)) == -EINVAL);
	attr.attr.max_wr = 1;
	attr.attr.max_sge = limits->max_srq_sge + 1;
	CHECK(PTR_ERR(ib_create_srq(pd, &attr)) == -EINVAL);
	attr.attr.max_sge = 1;
	attr.attr.srq_limit = 2;
	CHECK(PTR_ERR(ib_create_srq(pd, &attr)) == -EINVAL);
	attr.attr.srq_limit = ST_SRQ_WRS + 1;
	CHECK(ib_modify_srq(s->srq, &attr.attr, IB_SRQ_LIMIT) == -EINVAL);
	CHECK(ib_post_srq_recv(s->srq, &wr, NULL) == -EINVAL);
	return st_srq_rounds(s, ST_SRQ_WRS, 1);
}

static const char *st_srq_tests(struct st_srq *s)
{
	const char *wrong;

	CHECK(!st_srq_new_qp(s->side, s->srq));
	wrong = st_srq_rounds(s, ST_SRQ_WRS, 5);
	wrong = wrong ?: st_srq_limit(s);
	wrong = wrong ?: st_srq_lose_qp(s);
	wrong = wrong ?: st_srq_resize(s);
	wrong = wrong ?: st_srq_drain(s);
	return wrong ?: st_srq_refused(s);
}

const char *st_srq(struct st_side *side)
{
	struct st_srq *s = kzalloc(sizeof(*s), GFP_KERNEL);
	struct ib_srq_init_attr attr = {
		.event_handler = st_srq_event, .srq_context = s, .srq_type = IB_SRQT_BASIC,
		.attr = { .max_wr = ST_SRQ_WRS, .max_sge = 1 },
	};
	const char *wrong;
	int i;

	CHECK(s);
	s->side = side;
	init_completion(&s->has_event);
	for (i = 0; i < ARRAY_SIZE(s->wrs); i++)
		st_wr_init(&s->wrs[i]);
	s->srq = ib_create_srq(side[1].pd, &attr);
	if (IS_ERR(s->srq)) {
		kfree(s);
		return "ib_create_srq";
	}
	wrong = st_srq_tests(s);
	if (st_srq_new_qp(side, NULL))
		wrong = wrong ?: "the QP of before";
	ib_destroy_srq(s->srq);
	kfree(s);
	return wrong;
}
