// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * XRC SRQs of the second device, to which a program sends by a QP of the first (test_xrc_kernel).
 * The program goes step by step: it connects, sends, and has the module look at what has arrived.
 * The bytes of a message tell its number in its SRQ, which is that of its receive, too.
 */
#include <linux/seq_buf.h>
#include <linux/slab.h>

#include "skua_selftest.h"

#define ST_XRC_SRQS	2
#define ST_XRC_SIZE	(ST_HALF / ST_XRC_SRQS / ST_WRS)	/* of each receive */

/**
 * struct st_xrc_srq - an SRQ that is always full
 * @srq: the SRQ
 * @srqn: its number
 * @place: of its memory
 * @posted: receives that were posted, all together
 * @received: receives that completed, all together
 * @event: the last of its events
 * @has_event: there was one
 */
struct st_xrc_srq {
	struct ib_srq *srq;
	u32 srqn;
	u32 place;
	u32 posted;
	u32 received;
	enum ib_event_type event;
	struct completion has_event;
};

/**
 * struct st_xrc - SRQs with one CQ, and what they need
 * @side: of the second are memory and PD, and for a while a QP that completes in the same CQ
 * @domain: of the SRQs, with the QP that receives
 * @cq: the CQ of the SRQs
 * @comp: the CQ's handler was called
 * @srqs: the SRQs
 * @mr: a region for the program to invalidate
 * @initiator: number of the program's QP
 */
struct st_xrc {
	struct st_side side[2];
	struct st_domain domain;
	struct ib_cq *cq;
	struct completion comp;
	struct st_xrc_srq srqs[ST_XRC_SRQS];
	struct ib_mr *mr;
	u32 initiator;
};

static struct st_xrc *st_xrc_now;
static const char *st_xrc_wrong;

static void st_xrc_comp(struct ib_cq *cq, void *context)
{
	struct st_xrc *x = context;

	complete(&x->comp);
}

static void st_xrc_event(struct ib_event *event, void *context)
{
	struct st_xrc_srq *s = context;

	s->event = event->event;
	complete(&s->has_event);
}

/* Receives are told apart by SRQ and number. */
static u64 st_xrc_wr_id(const struct st_xrc_srq *s, u32 number)
{
	return (u64)s->place << 32 | number;
}

static u32 st_xrc_offset(const struct st_xrc_srq *s, u32 number)
{
	return s->place + number % ST_WRS * ST_XRC_SIZE;
}

static int st_xrc_post(struct st_xrc *x, struct st_xrc_srq *s)
{
	struct st_side *b = &x->side[1];
	u32 offset = st_xrc_offset(s, s->posted);
	struct ib_sge sge = {
		.addr = b->dma + offset, .length = ST_XRC_SIZE, .lkey = b->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = {
		.wr_id = st_xrc_wr_id(s, s->posted), .sg_list = &sge, .num_sge = 1,
	};
	int err;

	err = ib_post_srq_recv(s->srq, &wr, NULL);
	if (!err)
		s->posted++;
	return err;
}

static int st_xrc_open_srq(struct st_xrc *x, struct st_xrc_srq *s)
{
	int err = 0;

	s->srq = st_domain_srq(&x->domain, x->side[1].pd, x->cq, st_xrc_event, s);
	if (IS_ERR(s->srq))
		return PTR_ERR(s->srq);
	s->srqn = s->srq->ext.xrc.srq_num;
	s->place = ST_HALF + (s - x->srqs) * ST_WRS * ST_XRC_SIZE;
	s->posted = 0;
	s->received = 0;
	while (s->posted < ST_WRS && !err)
		err = st_xrc_post(x, s);
	return err;
}

static void st_xrc_close_srq(struct st_xrc_srq *s)
{
	if (!IS_ERR_OR_NULL(s->srq))
		ib_destroy_srq(s->srq);
	s->srq = NULL;
}

/* The reverse of st_xrc_open(), as far as that came. */
static void st_xrc_close(struct st_xrc *x)
{
	int i;

	for (i = 0; i < ST_XRC_SRQS; i++)
		st_xrc_close_srq(&x->srqs[i]);
	st_domain_close(&x->domain);
	if (!IS_ERR_OR_NULL(x->mr))
		ib_dereg_mr(x->mr);
	st_close(x->side);
	if (!IS_ERR_OR_NULL(x->cq))
		ib_destroy_cq(x->cq);
	kfree(x);
}

static int st_xrc_open(struct st_xrc *x)
{
	struct ib_cq_init_attr attr = { .cqe = 4 * ST_WRS };
	struct st_side *b = &x->side[1];
	int err, i;

	init_completion(&x->comp);
	for (i = 0; i < ST_XRC_SRQS; i++)
		init_completion(&x->srqs[i].has_event);
	x->cq = ib_create_cq(b->dev, st_xrc_comp, NULL, x, &attr);
	if (IS_ERR(x->cq))
		return PTR_ERR(x->cq);
	x->mr = ib_alloc_mr(b->pd, IB_MR_TYPE_MEM_REG, ST_FAST_PAGES);
	if (IS_ERR(x->mr))
		return PTR_ERR(x->mr);
	err = st_domain_open(&x->domain, b);
	for (i = 0; i < ST_XRC_SRQS && !err; i++)
		err = st_xrc_open_srq(x, &x->srqs[i]);
	return err;
}

static int st_xrc_begin(struct ib_device *const devs[2])
{
	struct st_xrc *x = kzalloc(sizeof(*x), GFP_KERNEL);
	int err;

	if (!x)
		return -ENOMEM;
	err = st_open(x->side, devs, IB_POLL_DIRECT);
	if (err) {
		kfree(x);
		return err;
	}
	err = st_xrc_open(x);
	if (err) {
		st_xrc_close(x);
		return err;
	}
	st_xrc_now = x;
	return 0;
}

void st_xrc_end(struct ib_device *dev)
{
	struct st_xrc *x = st_xrc_now;

	if (!x || (dev && dev != x->side[0].dev && dev != x->side[1].dev))
		return;
	st_xrc_now = NULL;
	st_xrc_close(x);
}

/* Steps: they return NULL, or what went wrong. */

static const char *st_xrc_connect(struct st_xrc *x, struct st_xrc_srq *s, u32 qpn)
{
	x->initiator = qpn;
	CHECK(!st_listen(x->domain.qp, &x->side[1], &x->side[0], qpn));
	return NULL;
}

static bool st_xrc_poll(struct st_xrc *x, struct ib_wc *wc)
{
	unsigned long end = jiffies + ST_TIMEOUT;

	while (ib_poll_cq(x->cq, 1, wc) != 1) {
		if (time_after(jiffies, end))
			return false;
		cond_resched();
	}
	return true;
}

/*
 * The next completion is that of the oldest receive of @s, which is then posted anew. @qp, or NULL,
 * has received it.
 */
static const char *st_xrc_next(struct st_xrc *x, struct st_xrc_srq *s, u32 size, struct ib_qp *qp,
			       int flags, struct ib_wc *wc)
{
	u8 *expected = x->side[0].buf, *target = x->side[1].buf + st_xrc_offset(s, s->received);

	CHECK(st_xrc_poll(x, wc));
	CHECK(wc->status == IB_WC_SUCCESS);
	CHECK(wc->opcode == IB_WC_RECV);
	CHECK(wc->wr_id == st_xrc_wr_id(s, s->received));
	CHECK(wc->byte_len == size);
	CHECK(wc->qp == qp);
	CHECK(wc->src_qp == (qp ? x->initiator : 0));
	CHECK(wc->wc_flags == flags);
	st_fill(expected, size, s->received);
	CHECK(!memcmp(target, expected, size));
	s->received++;
	CHECK(!st_xrc_post(x, s));
	return NULL;
}

static const char *st_xrc_receive(struct st_xrc *x, struct st_xrc_srq *s, u32 size)
{
	struct ib_wc wc;

	return st_xrc_next(x, s, size, x->domain.qp, 0, &wc);
}

/* From a QP that was destroyed since. */
static const char *st_xrc_receive_late(struct st_xrc *x, struct st_xrc_srq *s, u32 size)
{
	struct ib_wc wc;

	return st_xrc_next(x, s, size, NULL, 0, &wc);
}

/* The immediate data is the size. */
static const char *st_xrc_receive_imm(struct st_xrc *x, struct st_xrc_srq *s, u32 size)
{
	const char *wrong;
	struct ib_wc wc;

	wrong = st_xrc_next(x, s, size, x->domain.qp, IB_WC_WITH_IMM, &wc);
	if (wrong)
		return wrong;
	CHECK(wc.ex.imm_data == cpu_to_be32(size));
	return NULL;
}

static const char *st_xrc_receive_inv(struct st_xrc *x, struct st_xrc_srq *s, u32 size)
{
	const char *wrong;
	struct ib_wc wc;

	wrong = st_xrc_next(x, s, size, x->domain.qp, IB_WC_WITH_INVALIDATE, &wc);
	if (wrong)
		return wrong;
	CHECK(wc.ex.invalidate_rkey == x->mr->rkey);
	return NULL;
}

/* XRC-10: the region has the PD of the SRQs. */
static const char *st_xrc_register(struct st_xrc *x, struct st_xrc_srq *s, u32 unused)
{
	CHECK(!st_register(&x->side[1], x->mr, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE));
	return NULL;
}

/* No more completions, nor were there any that polling has left out: then the device is dead. */
static const char *st_xrc_nothing(struct st_xrc *x, struct st_xrc_srq *s, u32 unused)
{
	struct ib_srq_attr attr;
	struct ib_wc wc;

	CHECK(!ib_poll_cq(x->cq, 1, &wc));
	CHECK(!ib_query_srq(s->srq, &attr));
	return NULL;
}

static const char *st_xrc_full(struct st_xrc *x, struct st_xrc_srq *s, u32 unused)
{
	CHECK(s->posted - s->received == ST_WRS);
	CHECK(st_xrc_post(x, s) == -ENOMEM);
	return NULL;
}

#define ST_NOTIFY	(IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS)

static const char *st_xrc_arm(struct st_xrc *x, struct st_xrc_srq *s, u32 unused)
{
	reinit_completion(&x->comp);
	CHECK(!ib_req_notify_cq(x->cq, ST_NOTIFY));
	return NULL;
}

static const char *st_xrc_fired(struct st_xrc *x, struct st_xrc_srq *s, u32 unused)
{
	CHECK(wait_for_completion_timeout(&x->comp, ST_TIMEOUT));
	CHECK(ib_req_notify_cq(x->cq, ST_NOTIFY) == 1);
	return NULL;
}

static const char *st_xrc_limit(struct st_xrc *x, struct st_xrc_srq *s, u32 unused)
{
	struct ib_srq_attr attr = { .srq_limit = ST_WRS };

	reinit_completion(&s->has_event);
	CHECK(!ib_modify_srq(s->srq, &attr, IB_SRQ_LIMIT));
	CHECK(!ib_query_srq(s->srq, &attr));
	CHECK(attr.srq_limit == ST_WRS && attr.max_wr == ST_WRS);
	CHECK(!try_wait_for_completion(&s->has_event));
	return NULL;
}

static const char *st_xrc_limited(struct st_xrc *x, struct st_xrc_srq *s, u32 unused)
{
	struct ib_srq_attr attr;

	CHECK(wait_for_completion_timeout(&s->has_event, ST_TIMEOUT));
	CHECK(s->event == IB_EVENT_SRQ_LIMIT_REACHED);
	CHECK(!ib_query_srq(s->srq, &attr));
	CHECK(!attr.srq_limit);
	return NULL;
}

static const char *st_xrc_busy(struct st_xrc *x, struct st_xrc_srq *s, u32 unused)
{
	CHECK(ib_dealloc_xrcd_user(x->domain.xrcd, NULL) == -EBUSY);
	CHECK(ib_destroy_cq_user(x->cq, NULL) == -EBUSY);
	return NULL;
}

/* There is another in its place, which is not connected. */
static const char *st_xrc_lose_target(struct st_xrc *x, struct st_xrc_srq *s, u32 unused)
{
	struct ib_qp_init_attr attr = { .qp_type = IB_QPT_XRC_TGT, .xrcd = x->domain.xrcd };
	struct ib_qp *qp = ib_create_qp(x->side[1].pd, &attr);

	CHECK(!IS_ERR(qp));
	swap(x->domain.qp, qp);
	CHECK(!ib_destroy_qp(qp));
	return NULL;
}

static const char *st_xrc_lose_srq(struct st_xrc *x, struct st_xrc_srq *s, u32 unused)
{
	st_xrc_close_srq(s);
	CHECK(!st_xrc_open_srq(x, s));
	return NULL;
}

/* A QP has completions of its own in the CQ, which go with it. */
static const char *st_xrc_beside(struct st_xrc *x, struct st_xrc_srq *s, u32 unused)
{
	struct st_side *a = &x->side[0], *b = &x->side[1];

	CHECK(!st_new_qp(x->side, b, x->cq, &st_cap));
	CHECK(!st_post_recv(b, 0, 64));
	CHECK(!st_post_rdma(a, b, IB_WR_SEND, 0, 0, 64, IB_SEND_SIGNALED));
	CHECK(st_wait(a, &a->send));
	CHECK(!st_new_qp(x->side, b, b->cq, &st_cap));
	return NULL;
}

/* @run is told which SRQ, and a number. */
static const struct {
	const char *name;
	const char *(*run)(struct st_xrc *x, struct st_xrc_srq *s, u32 number);
} st_xrc_steps[] = {
	{ "connect", st_xrc_connect },
	{ "receive", st_xrc_receive },
	{ "receive_late", st_xrc_receive_late },
	{ "receive_imm", st_xrc_receive_imm },
	{ "receive_inv", st_xrc_receive_inv },
	{ "register", st_xrc_register },
	{ "nothing", st_xrc_nothing },
	{ "full", st_xrc_full },
	{ "arm", st_xrc_arm },
	{ "fired", st_xrc_fired },
	{ "limit", st_xrc_limit },
	{ "limited", st_xrc_limited },
	{ "busy", st_xrc_busy },
	{ "lose_target", st_xrc_lose_target },
	{ "lose_srq", st_xrc_lose_srq },
	{ "beside", st_xrc_beside },
};

int st_xrc_step(struct ib_device *const devs[2], const char *text)
{
	u32 srq = 0, number = 0;
	unsigned int i;
	char name[16];

	st_xrc_wrong = NULL;
	if (sscanf(text, "%15s %u %u", name, &srq, &number) < 1 || srq >= ST_XRC_SRQS)
		return -EINVAL;
	if (!strcmp(name, "open")) {
		/* What a program left that died. */
		st_xrc_end(NULL);
		return st_xrc_begin(devs);
	}
	for (i = 0; i < ARRAY_SIZE(st_xrc_steps) && st_xrc_now; i++) {
		if (strcmp(name, st_xrc_steps[i].name))
			continue;
		st_xrc_wrong = st_xrc_steps[i].run(st_xrc_now, &st_xrc_now->srqs[srq], number);
		return st_xrc_wrong ? -EPROTO : 0;
	}
	return -EINVAL;
}

void st_xrc_tell(struct seq_buf *out)
{
	const struct st_xrc *x = st_xrc_now;
	int i;

	seq_buf_printf(out, "%u", x ? x->domain.qp->qp_num : 0);
	for (i = 0; i < ST_XRC_SRQS; i++)
		seq_buf_printf(out, " %u", x ? x->srqs[i].srqn : 0);
	seq_buf_printf(out, " %u %s\n", x ? x->mr->rkey : 0, st_xrc_wrong ?: "well");
}
