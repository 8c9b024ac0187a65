// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The tests: each a function that returns NULL, or what went wrong.
 */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/sched.h>
#include <linux/seq_buf.h>
#include <linux/slab.h>
#include <linux/version.h>

#include "skua_selftest.h"

static const char *st_caps_of(struct ib_device *dev)
{
	CHECK(dev->attrs.kernel_cap_flags & IBK_LOCAL_DMA_LKEY);
	CHECK(dev->local_dma_lkey);
	CHECK(dev->kverbs_provider);
	/* What is not there is not claimed. */
	CHECK(!!(dev->attrs.device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS) ==
	      !!dev->ops.map_mr_sg);
	CHECK(!!dev->ops.alloc_mr == !!dev->ops.map_mr_sg);
	CHECK(!!(dev->attrs.kernel_cap_flags & IBK_ON_DEMAND_PAGING) ==
	      !!(dev->attrs.odp_caps.general_caps & IB_ODP_SUPPORT));
	CHECK(dev->attrs.kernel_cap_flags & IBK_SG_GAPS_REG);
	return NULL;
}

static const char *st_caps(struct st_side *side)
{
	struct ib_device *dev = side[0].dev;
	struct ib_mr *mr;

	CHECK(!st_caps_of(side[0].dev));
	CHECK(!st_caps_of(side[1].dev));
	if (!dev->ops.alloc_mr) {
		mr = ib_alloc_mr(side[0].pd, IB_MR_TYPE_MEM_REG, 16);
		CHECK(IS_ERR(mr) && PTR_ERR(mr) == -EOPNOTSUPP);
	}
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 0, 0)
	if (!dev->ops.resize_cq)
		CHECK(ib_resize_cq(side[0].cq, 256) == -EOPNOTSUPP);
#endif
	return NULL;
}

static const u32 st_sizes[] = { 0, 1, 64, 1023, 1024, 1025, 4096, 65537, ST_HALF };

static const char *st_one(struct st_side *a, struct st_side *b, enum ib_wr_opcode opcode, u32 size)
{
	bool receives = opcode != IB_WR_RDMA_WRITE && opcode != IB_WR_RDMA_READ;
	struct st_side *from = opcode == IB_WR_RDMA_READ ? b : a;
	struct st_side *to = opcode == IB_WR_RDMA_READ ? a : b;

	st_fill(from->buf, size, opcode + size);
	memset(to->buf + ST_HALF, 0, ST_HALF);
	if (receives)
		CHECK(!st_post_recv(b, ST_HALF, size));
	CHECK(!st_post_rdma(a, b, opcode, 0, ST_HALF, size, IB_SEND_SIGNALED));
	CHECK(st_wait(a, &a->send));
	CHECK(a->send.wc.status == IB_WC_SUCCESS);
	CHECK(a->send.wc.qp == a->qp);
	if (receives) {
		CHECK(st_wait(b, &b->recv));
		CHECK(b->recv.wc.status == IB_WC_SUCCESS);
		CHECK(b->recv.wc.qp == b->qp);
		CHECK(b->recv.wc.byte_len == size);
		CHECK(!!(b->recv.wc.wc_flags & IB_WC_WITH_IMM) == (opcode != IB_WR_SEND));
		if (opcode != IB_WR_SEND)
			CHECK(b->recv.wc.ex.imm_data == cpu_to_be32(0x12345678));
	}
	CHECK(!memcmp(from->buf, to->buf + ST_HALF, size));
	CHECK(size == ST_HALF || !to->buf[ST_HALF + size]);
	return NULL;
}

static const char *st_transfers(struct st_side *side)
{
	static const enum ib_wr_opcode opcodes[] = {
		IB_WR_SEND, IB_WR_SEND_WITH_IMM, IB_WR_RDMA_WRITE, IB_WR_RDMA_WRITE_WITH_IMM,
		IB_WR_RDMA_READ,
	};
	const char *wrong = NULL;
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(opcodes) && !wrong; i++)
		for (j = 0; j < ARRAY_SIZE(st_sizes) && !wrong; j++)
			wrong = st_one(&side[i & 1], &side[!(i & 1)], opcodes[i], st_sizes[j]);
	return wrong;
}

/* The key that get_dma_mr gives is good locally, too. */
static const char *st_dma_mr(struct st_side *side)
{
	struct st_side *a = &side[0], *b = &side[1];
	u32 lkey = a->pd->local_dma_lkey;
	const char *wrong;

	CHECK(lkey == a->dev->local_dma_lkey);
	CHECK(lkey != a->pd->unsafe_global_rkey);
	a->pd->local_dma_lkey = a->pd->unsafe_global_rkey;
	wrong = st_one(a, b, IB_WR_SEND, 4096);
	wrong = wrong ?: st_one(a, b, IB_WR_RDMA_READ, 4096);
	a->pd->local_dma_lkey = lkey;
	return wrong;
}

/* The reserved key is none for peers. */
static const char *st_reserved_key_is_no_rkey(struct st_side *side)
{
	struct st_side *a = &side[0], *b = &side[1];
	u32 rkey = b->pd->unsafe_global_rkey;
	int err;

	b->pd->unsafe_global_rkey = b->dev->local_dma_lkey;
	memset(b->buf + ST_HALF, 0x11, 64);
	st_fill(a->buf, 64, 0x80);
	err = st_post_rdma(a, b, IB_WR_RDMA_WRITE, 0, ST_HALF, 64, IB_SEND_SIGNALED);
	b->pd->unsafe_global_rkey = rkey;
	CHECK(!err);
	CHECK(st_wait(a, &a->send));
	CHECK(a->send.wc.status == IB_WC_REM_ACCESS_ERR);
	CHECK(!memchr_inv(b->buf + ST_HALF, 0x11, 64));
	CHECK(wait_for_completion_timeout(&b->has_event, ST_TIMEOUT));
	CHECK(b->event == IB_EVENT_QP_ACCESS_ERR);
	CHECK(!st_reconnect(side));
	return st_one(a, b, IB_WR_RDMA_WRITE, 64);
}

static const char *st_inline(struct st_side *side)
{
	struct st_side *a = &side[0], *b = &side[1];
	u32 size;

	for (size = 0; size <= ST_INLINE; size++) {
		u8 copy[ST_INLINE];

		st_fill(a->buf, ST_INLINE, size);
		memcpy(copy, a->buf, sizeof(copy));
		memset(b->buf + ST_HALF, 0, ST_INLINE + 1);
		CHECK(!st_post_rdma(a, b, IB_WR_RDMA_WRITE, 0, ST_HALF, size,
				    IB_SEND_SIGNALED | IB_SEND_INLINE));
		/* It was taken at once. */
		memset(a->buf, 0, ST_INLINE);
		CHECK(st_wait(a, &a->send));
		CHECK(a->send.wc.status == IB_WC_SUCCESS);
		CHECK(!memcmp(b->buf + ST_HALF, copy, size));
		CHECK(!b->buf[ST_HALF + size]);
	}
	CHECK(st_post_rdma(a, b, IB_WR_RDMA_WRITE, 0, ST_HALF, ST_HALF,
			   IB_SEND_SIGNALED | IB_SEND_INLINE) == -EINVAL);
	CHECK(st_post_rdma(a, b, IB_WR_RDMA_READ, 0, ST_HALF, 8,
			   IB_SEND_SIGNALED | IB_SEND_INLINE) == -EINVAL);
	return st_one(a, b, IB_WR_SEND, 64);
}

/* Rounds of the whole queue, of which only the last WR completes; slots come back by it. */
static const char *st_unsignaled(struct st_side *side)
{
	struct st_side *a = &side[0], *b = &side[1];
	unsigned int round, i;

	for (round = 0; round < 100; round++) {
		st_fill(a->buf, ST_WRS * 64, round);
		memset(b->buf + ST_HALF, 0, ST_WRS * 64);
		for (i = 0; i < ST_WRS; i++)
			CHECK(!st_post_rdma(a, b, IB_WR_RDMA_WRITE, i * 64, ST_HALF + i * 64, 64,
					    i == ST_WRS - 1 ? IB_SEND_SIGNALED : 0));
		CHECK(st_wait(a, &a->send));
		CHECK(a->send.wc.status == IB_WC_SUCCESS);
		CHECK(!memcmp(a->buf, b->buf + ST_HALF, ST_WRS * 64));
	}
	return NULL;
}

/* What a READ brings is sent back at once: the fence lets the WRITE wait for it. */
static const char *st_fence(struct st_side *side)
{
	struct st_side *a = &side[0], *b = &side[1];
	const u32 size = ST_HALF, last = size - 64;
	int i;

	for (i = 0; i < 16; i++) {
		st_fill(b->buf, size, i);
		memset(a->buf + ST_HALF, 0xee, size);
		CHECK(!st_post_rdma(a, b, IB_WR_RDMA_READ, 0, ST_HALF, size, 0));
		CHECK(!st_post_rdma(a, b, IB_WR_RDMA_WRITE, ST_HALF + last, ST_HALF, 64,
				    IB_SEND_FENCE | IB_SEND_SIGNALED));
		CHECK(st_wait(a, &a->send));
		CHECK(a->send.wc.status == IB_WC_SUCCESS);
		CHECK(!memcmp(b->buf + ST_HALF, b->buf + last, 64));
	}
	return NULL;
}

/* A list with a bad WR in its middle: what comes before is posted, and the bad one is told. */
static const char *st_bad_posts(struct st_side *side)
{
	struct st_side *a = &side[0];
	struct ib_sge sge[ST_SGES * 8] = {};
	const struct ib_send_wr *bad = NULL;
	const struct ib_recv_wr *bad_recv = NULL;
	struct ib_recv_wr recv = { .sg_list = sge, .num_sge = ARRAY_SIZE(sge) };
	struct ib_send_wr second = { .opcode = IB_WR_SEND, .sg_list = sge };
	struct ib_rdma_wr first = {
		.wr = {
			.wr_cqe = &a->send.cqe, .opcode = IB_WR_RDMA_WRITE, .next = &second,
			.send_flags = IB_SEND_SIGNALED,
		},
	};

	reinit_completion(&a->send.done);
	second.num_sge = ARRAY_SIZE(sge);
	CHECK(ib_post_send(a->qp, &first.wr, &bad) == -EINVAL);
	CHECK(bad == &second);
	CHECK(st_wait(a, &a->send));
	CHECK(a->send.wc.status == IB_WC_SUCCESS);
	second.num_sge = -1;
	CHECK(ib_post_send(a->qp, &second, &bad) == -EINVAL);
	second.num_sge = 0;
	second.opcode = IB_WR_LSO;
	CHECK(ib_post_send(a->qp, &second, &bad) == -EINVAL);
	second.opcode = 1000;
	CHECK(ib_post_send(a->qp, &second, &bad) == -EINVAL);
	second.opcode = IB_WR_SEND;
	second.send_flags = IB_SEND_IP_CSUM;
	CHECK(ib_post_send(a->qp, &second, &bad) == -EINVAL);
	if (!a->dev->ops.map_mr_sg) {
		second.opcode = IB_WR_REG_MR;
		CHECK(ib_post_send(a->qp, &second, &bad) == -EINVAL);
	}
	CHECK(ib_post_recv(a->qp, &recv, &bad_recv) == -EINVAL);
	CHECK(bad_recv == &recv);
	recv.num_sge = -1;
	CHECK(ib_post_recv(a->qp, &recv, &bad_recv) == -EINVAL);
	return st_one(a, &side[1], IB_WR_RDMA_WRITE, 4096);
}

static const char *st_wrong_states(struct st_side *side)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };
	struct ib_qp_attr refused = {
		.qp_state = IB_QPS_INIT, .port_num = 1, .pkey_index = 1,
	};

	CHECK(!ib_modify_qp(side[0].qp, &attr, IB_QP_STATE));
	CHECK(st_post_recv(&side[0], 0, 64) == -EINVAL);
	/* What the device refuses leaves the QP as it was. */
	CHECK(ib_modify_qp(side[0].qp, &refused, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			   IB_QP_ACCESS_FLAGS) == -EINVAL);
	CHECK(st_post_recv(&side[0], 0, 64) == -EINVAL);
	CHECK(st_post_rdma(&side[0], &side[1], IB_WR_RDMA_WRITE, 0, 0, 64, IB_SEND_SIGNALED) ==
	      -EINVAL);
	attr.qp_state = IB_QPS_RTS;
	CHECK(ib_modify_qp(side[0].qp, &attr, IB_QP_STATE) == -EINVAL);
	CHECK(!st_reconnect(side));
	return st_one(&side[0], &side[1], IB_WR_SEND, 100);
}

static const char *st_bad_objects(struct st_side *side)
{
	struct ib_device *dev = side[0].dev;
	struct ib_qp_init_attr attr = {
		.send_cq = side[0].cq, .recv_cq = side[0].cq, .qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = { .max_send_wr = dev->attrs.max_qp_wr + 1, .max_send_sge = 1 },
	};
	struct ib_cq *cq;
	struct ib_qp *qp;

	qp = ib_create_qp(side[0].pd, &attr);
	CHECK(IS_ERR(qp));
	attr.cap.max_send_wr = 1;
	attr.cap.max_send_sge = dev->attrs.max_send_sge + 1;
	qp = ib_create_qp(side[0].pd, &attr);
	CHECK(IS_ERR(qp));
	attr.cap.max_send_sge = 1;
	attr.qp_type = IB_QPT_RAW_PACKET;
	qp = ib_create_qp(side[0].pd, &attr);
	CHECK(IS_ERR(qp));
	cq = ib_alloc_cq(dev, NULL, dev->attrs.max_cqe + 1, 0, IB_POLL_DIRECT);
	CHECK(IS_ERR(cq));
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 0, 0)
	/* Later ones refuse it before the driver is asked, with a warning. */
	cq = ib_alloc_cq(dev, NULL, 0, 0, IB_POLL_DIRECT);
	CHECK(IS_ERR(cq));
#endif
	return st_one(&side[0], &side[1], IB_WR_SEND, 100);
}

/* All that was posted has completed when draining returns; the drains' own are not seen. */
static const char *st_drain(struct st_side *side)
{
	struct st_side *a = &side[0], *b = &side[1];
	struct st_wr *wrs;
	struct ib_recv_wr recv = {};
	const char *wrong = NULL;
	unsigned int i;

	wrs = kcalloc(ST_WRS - 1, sizeof(*wrs), GFP_KERNEL);
	if (!wrs)
		return "no memory";
	for (i = 0; i < ST_WRS - 1; i++) {
		st_wr_init(&wrs[i]);
		recv.wr_cqe = &wrs[i].cqe;
		if (ib_post_recv(b->qp, &recv, NULL))
			wrong = "post_recv";
	}
	for (i = 0; i < ST_WRS - 1 && !wrong; i++)
		if (st_post_rdma(a, b, IB_WR_RDMA_WRITE, 0, ST_HALF, 65536,
				 i == ST_WRS - 2 ? IB_SEND_SIGNALED : 0))
			wrong = "post_send";
	ib_drain_qp(a->qp);
	ib_drain_qp(b->qp);
	if (!wrong && !try_wait_for_completion(&a->send.done))
		wrong = "a send after draining";
	for (i = 0; i < ST_WRS - 1 && !wrong; i++)
		if (!try_wait_for_completion(&wrs[i].done) ||
		    wrs[i].wc.status != IB_WC_WR_FLUSH_ERR)
			wrong = "a receive after draining";
	kfree(wrs);
	CHECK(!st_reconnect(side));
	return wrong ?: st_one(a, b, IB_WR_SEND, 4096);
}

/* A QP that is destroyed with completions that nobody took leaves nothing in its CQ. */
static const char *st_destroy_with_completions(struct st_side *side)
{
	struct ib_device *devs[2] = { side[0].dev, side[1].dev };
	struct st_side *pair;
	const char *wrong = NULL;
	int i;

	pair = kcalloc(2, sizeof(*pair), GFP_KERNEL);
	if (!pair)
		return "no memory";
	if (st_open(pair, devs, IB_POLL_DIRECT)) {
		kfree(pair);
		return "open";
	}
	for (i = 0; i < ST_WRS && !wrong; i++)
		if (st_post_rdma(&pair[0], &pair[1], IB_WR_RDMA_WRITE, 0, ST_HALF, 64,
				 IB_SEND_SIGNALED))
			wrong = "post";
	msleep(20);
	ib_destroy_qp(pair[0].qp);
	if (ib_process_cq_direct(pair[0].cq, -1))
		wrong = "completions of a QP that is gone";
	ib_destroy_qp(pair[1].qp);
	ib_free_cq(pair[0].cq);
	ib_free_cq(pair[1].cq);
	for (i = 0; i < 2; i++) {
		ib_dealloc_pd(pair[i].pd);
		dma_free_coherent(devs[i]->dma_device, ST_BUF_SIZE, pair[i].buf,
				  pair[i].dma);
	}
	kfree(pair);
	return wrong;
}

/* CQs without the core's polling */

#define ST_HOLD_MS	5000

enum st_hold { ST_HOLD_NOT, ST_HOLD_ASKED, ST_HOLD_ON };

struct st_bare {
	struct ib_cq *cq;
	struct completion comp;
	struct completion error;
	atomic_t comps;
	enum st_hold hold;		/* the handler does not end */
};

static void st_bare_comp(struct ib_cq *cq, void *context)
{
	struct st_bare *bare = context;
	unsigned int ms;

	atomic_inc(&bare->comps);
	complete(&bare->comp);
	if (READ_ONCE(bare->hold) != ST_HOLD_ASKED)
		return;
	WRITE_ONCE(bare->hold, ST_HOLD_ON);
	for (ms = 0; ms < ST_HOLD_MS && READ_ONCE(bare->hold) == ST_HOLD_ON; ms++)
		mdelay(1);
	/* What the test asked for meanwhile is the next event's. */
	cmpxchg(&bare->hold, ST_HOLD_ON, ST_HOLD_NOT);
}

static void st_bare_event(struct ib_event *event, void *context)
{
	struct st_bare *bare = context;

	if (event->event == IB_EVENT_CQ_ERR)
		complete(&bare->error);
}

static int st_bare_open(struct st_bare *bare, struct st_side *side, unsigned int cqe)
{
	struct ib_cq_init_attr attr = { .cqe = cqe };

	init_completion(&bare->comp);
	init_completion(&bare->error);
	atomic_set(&bare->comps, 0);
	bare->hold = ST_HOLD_NOT;
	bare->cq = ib_create_cq(side->dev, st_bare_comp, st_bare_event, bare, &attr);
	return PTR_ERR_OR_ZERO(bare->cq);
}

static bool st_poll(struct st_bare *bare, struct ib_wc *wc)
{
	unsigned long end = jiffies + ST_TIMEOUT;

	while (time_before(jiffies, end)) {
		if (ib_poll_cq(bare->cq, 1, wc) == 1)
			return true;
		cond_resched();
	}
	return false;
}

/* What notify returns, and when the handler is called. */
static const char *st_arming(struct st_side *side, struct st_bare *bare)
{
	struct st_side *a = &side[0], *b = &side[1];
	struct ib_wc wc;

	/* Armed for all. */
	CHECK(!ib_req_notify_cq(bare->cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS));
	CHECK(!st_post_rdma(a, b, IB_WR_RDMA_WRITE, 0, ST_HALF, 64, IB_SEND_SIGNALED));
	CHECK(wait_for_completion_timeout(&bare->comp, ST_TIMEOUT));
	/* One event, and that one is there is said. */
	CHECK(atomic_read(&bare->comps) == 1);
	CHECK(ib_req_notify_cq(bare->cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) == 1);
	CHECK(st_poll(bare, &wc));
	CHECK(wc.status == IB_WC_SUCCESS && wc.wr_cqe == &a->send.cqe);
	CHECK(!ib_poll_cq(bare->cq, 1, &wc));
	return NULL;
}

/* Armed for solicited completions: a plain receive does not call, one that is asked for does. */
static const char *st_solicited(struct st_side *side, struct st_bare *bare)
{
	struct st_side *a = &side[0], *b = &side[1];
	struct ib_wc wc;
	int before;

	/* The armings of before are used up by this one. */
	CHECK(!st_post_rdma(a, b, IB_WR_RDMA_WRITE, 0, ST_HALF, 64, IB_SEND_SIGNALED));
	CHECK(st_poll(bare, &wc));
	msleep(20);
	reinit_completion(&bare->comp);
	before = atomic_read(&bare->comps);
	CHECK(!ib_req_notify_cq(bare->cq, IB_CQ_SOLICITED | IB_CQ_REPORT_MISSED_EVENTS));
	CHECK(!st_post_recv(a, ST_HALF, 64));
	CHECK(!st_post_rdma(b, a, IB_WR_SEND, 0, 0, 64, IB_SEND_SIGNALED));
	CHECK(st_wait(b, &b->send));
	CHECK(st_poll(bare, &wc));
	CHECK(wc.status == IB_WC_SUCCESS && wc.opcode == IB_WC_RECV);
	msleep(20);
	CHECK(atomic_read(&bare->comps) == before);
	CHECK(!st_post_recv(a, ST_HALF, 64));
	CHECK(!st_post_rdma(b, a, IB_WR_SEND, 0, 0, 64, IB_SEND_SIGNALED | IB_SEND_SOLICITED));
	CHECK(wait_for_completion_timeout(&bare->comp, ST_TIMEOUT));
	CHECK(st_poll(bare, &wc));
	CHECK(st_wait(b, &b->send));
	return NULL;
}

/* A completion whose event waits, because the CPU of the vector, which is this one, takes none. */
static const char *st_late_event(struct st_side *side, struct st_bare *bare)
{
	int before = atomic_read(&bare->comps);
	const char *wrong = NULL;
	unsigned int ms;
	struct ib_wc wc;

	CHECK(!ib_req_notify_cq(bare->cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS));
	local_irq_disable();
	if (st_post_rdma(&side[0], &side[1], IB_WR_RDMA_WRITE, 0, ST_HALF, 64, IB_SEND_SIGNALED))
		wrong = "post";
	for (ms = 0; ms < 1000 && !wrong && !ib_poll_cq(bare->cq, 1, &wc); ms++)
		mdelay(1);
	mdelay(20);
	if (atomic_read(&bare->comps) != before)
		wrong = "the vector is another CPU's";
	/* Now this is what is asked for. */
	if (ib_req_notify_cq(bare->cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS))
		wrong = "a completion too many";
	local_irq_enable();
	msleep(20);
	if (!wrong && atomic_read(&bare->comps) != before + 1)
		wrong = "no late event";
	return wrong;
}

/* The event of an earlier arming does not weaken a later one. */
static const char *st_stale_event(struct st_side *side, struct st_bare *bare)
{
	struct st_side *a = &side[0], *b = &side[1];
	const char *wrong;
	struct ib_wc wc;

	CHECK(!set_cpus_allowed_ptr(current, cpumask_of(0)));
	wrong = st_late_event(side, bare);
	set_cpus_allowed_ptr(current, cpu_online_mask);
	if (wrong)
		return wrong;
	reinit_completion(&bare->comp);
	CHECK(!ib_req_notify_cq(bare->cq, IB_CQ_SOLICITED | IB_CQ_REPORT_MISSED_EVENTS));
	CHECK(!st_post_recv(a, ST_HALF, 64));
	CHECK(!st_post_rdma(b, a, IB_WR_SEND, 0, 0, 64, IB_SEND_SIGNALED));
	CHECK(wait_for_completion_timeout(&bare->comp, ST_TIMEOUT));
	CHECK(st_poll(bare, &wc));
	CHECK(st_wait(b, &b->send));
	return NULL;
}

/* A CQ is destroyed while another one's handler runs, which has its vector. */
static const char *st_destroy_beside(struct st_side *side, struct st_bare *busy)
{
	unsigned long end = jiffies + ST_TIMEOUT;
	struct st_bare other;
	const char *wrong = NULL;
	struct ib_wc wc;

	if (num_online_cpus() < 2)
		return NULL;
	CHECK(!st_bare_open(&other, &side[0], 16));
	WRITE_ONCE(busy->hold, ST_HOLD_ASKED);
	ib_req_notify_cq(busy->cq, IB_CQ_NEXT_COMP);
	set_cpus_allowed_ptr(current, cpumask_of(1));
	if (st_post_rdma(&side[0], &side[1], IB_WR_RDMA_WRITE, 0, ST_HALF, 64, IB_SEND_SIGNALED))
		wrong = "post";
	while (!wrong && READ_ONCE(busy->hold) != ST_HOLD_ON)
		if (time_after(jiffies, end))
			wrong = "no event";
	ib_destroy_cq(other.cq);
	if (!wrong && READ_ONCE(busy->hold) != ST_HOLD_ON)
		wrong = "destroying waited for the handler";
	WRITE_ONCE(busy->hold, ST_HOLD_NOT);
	set_cpus_allowed_ptr(current, cpu_online_mask);
	if (!wrong && !st_poll(busy, &wc))
		wrong = "no completion";
	return wrong;
}

/* While @busy's handler runs on the vector's CPU: on another, poll, arm, and post anew. */
static const char *st_fire_in_handler(struct st_side *side, struct st_bare *busy)
{
	unsigned long end = jiffies + ST_TIMEOUT;
	struct ib_wc wc;

	WRITE_ONCE(busy->hold, ST_HOLD_ASKED);
	CHECK(!ib_req_notify_cq(busy->cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS));
	CHECK(!st_post_rdma(&side[0], &side[1], IB_WR_RDMA_WRITE, 0, ST_HALF, 64,
			    IB_SEND_SIGNALED));
	while (READ_ONCE(busy->hold) != ST_HOLD_ON)
		CHECK(time_before(jiffies, end));
	CHECK(st_poll(busy, &wc));
	CHECK(!ib_req_notify_cq(busy->cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS));
	CHECK(!st_post_rdma(&side[0], &side[1], IB_WR_RDMA_WRITE, 0, ST_HALF, 64,
			    IB_SEND_SIGNALED));
	CHECK(st_poll(busy, &wc));
	CHECK(READ_ONCE(busy->hold) == ST_HOLD_ON);
	return NULL;
}

/* EVT-3: a CQ that fires again while its handler runs has an event for that, too. */
static const char *st_fires_again(struct st_side *side, struct st_bare *busy)
{
	int before = atomic_read(&busy->comps);
	unsigned long end = jiffies + ST_TIMEOUT;
	const char *wrong;

	if (num_online_cpus() < 2)
		return NULL;
	set_cpus_allowed_ptr(current, cpumask_of(1));
	wrong = st_fire_in_handler(side, busy);
	WRITE_ONCE(busy->hold, ST_HOLD_NOT);
	set_cpus_allowed_ptr(current, cpu_online_mask);
	while (atomic_read(&busy->comps) < before + 2 && time_before(jiffies, end))
		msleep(20);
	if (!wrong && atomic_read(&busy->comps) != before + 2)
		wrong = "no event for what fired while the handler ran";
	return wrong;
}

static const char *st_bare_cq(struct st_side *side)
{
	struct st_bare bare;
	const char *wrong;

	CHECK(!st_bare_open(&bare, &side[0], 4 * ST_WRS));
	wrong = st_new_qp(side, &side[0], bare.cq, &st_cap) ? "new QP" : NULL;
	wrong = wrong ?: st_arming(side, &bare);
	wrong = wrong ?: st_solicited(side, &bare);
	wrong = wrong ?: st_destroy_beside(side, &bare);
	wrong = wrong ?: st_fires_again(side, &bare);
	wrong = wrong ?: st_stale_event(side, &bare);
	if (st_new_qp(side, &side[0], side[0].cq, &st_cap))
		return wrong ?: "QP of before";
	ib_destroy_cq(bare.cq);
	return wrong ?: st_one(&side[0], &side[1], IB_WR_SEND, 100);
}

/* A CQ that overflows: an event of it, and of its QP, which then works no more. */
static const char *st_overflow(struct st_side *side)
{
	struct st_side *a = &side[0], *b = &side[1];
	struct st_bare bare;
	const char *wrong;
	int i;

	CHECK(!st_bare_open(&bare, a, 4));
	wrong = st_new_qp(side, a, bare.cq, &st_cap) ? "new QP" : NULL;
	for (i = 0; i < 2 * bare.cq->cqe && i < ST_WRS && !wrong; i++)
		if (st_post_rdma(a, b, IB_WR_RDMA_WRITE, 0, ST_HALF, 64, IB_SEND_SIGNALED))
			wrong = "post";
	if (!wrong && !wait_for_completion_timeout(&bare.error, ST_TIMEOUT))
		wrong = "no event of the CQ";
	if (!wrong && !wait_for_completion_timeout(&a->has_event, ST_TIMEOUT))
		wrong = "no event of the QP";
	if (!wrong && a->event != IB_EVENT_QP_FATAL)
		wrong = "another event of the QP";
	if (st_new_qp(side, a, a->cq, &st_cap))
		return wrong ?: "QP of before";
	ib_destroy_cq(bare.cq);
	return wrong ?: st_one(a, b, IB_WR_SEND, 100);
}

static unsigned int st_post_all(struct st_side *side, struct st_side *peer, bool receives)
{
	unsigned int n = 0;

	while (n < 1000 && !(receives ? st_post_recv(side, 0, 64) :
			     st_post_rdma(side, peer, IB_WR_RDMA_WRITE, 0, ST_HALF, 64, 0)))
		n++;
	return n;
}

static const char *st_full(struct st_side *side, struct st_bare *bare, unsigned int sends,
			   unsigned int receives)
{
	struct st_side *a = &side[0], *b = &side[1];
	unsigned int round;
	struct ib_wc wc;

	for (round = 0; round < 10; round++) {
		CHECK(!st_post_rdma(a, b, IB_WR_RDMA_WRITE, 0, ST_HALF, 64, IB_SEND_SIGNALED));
		CHECK(st_post_all(a, b, false) == sends - 1);
		CHECK(st_poll(bare, &wc));
		CHECK(wc.status == IB_WC_SUCCESS);
		/* One is done, and gives its place back. */
		CHECK(!st_post_rdma(a, b, IB_WR_RDMA_WRITE, 0, ST_HALF, 64, IB_SEND_SIGNALED));
		CHECK(st_post_rdma(a, b, IB_WR_RDMA_WRITE, 0, ST_HALF, 64, 0) == -ENOMEM);
		CHECK(st_poll(bare, &wc));
		CHECK(wc.status == IB_WC_SUCCESS);
	}
	CHECK(st_post_all(a, b, true) == receives);
	return NULL;
}

/*
 * A queue takes what ib_query_qp() reports, and no more. Of sends, that is what was asked for,
 * though the ring has more room. Of receives, it is the ring.
 */
static const char *st_caps_are_kept(struct st_side *side)
{
	struct st_side *a = &side[0];
	struct ib_qp_cap cap = st_cap;
	const char *wrong;
	struct st_bare bare;

	cap.max_send_wr = 10;
	cap.max_recv_wr = 10;
	CHECK(!st_bare_open(&bare, a, 64));
	wrong = st_new_qp(side, a, bare.cq, &cap) ? "new QP" : NULL;
	wrong = wrong ?: st_full(side, &bare, 10, 16);
	if (st_new_qp(side, a, a->cq, &st_cap))
		return wrong ?: "QP of before";
	ib_destroy_cq(bare.cq);
	return wrong ?: st_one(a, &side[1], IB_WR_SEND, 100);
}

/* The limits are true for queues of the kernel, which are larger than memory comes in one piece. */
static const char *st_largest(struct st_side *side)
{
	struct st_side *a = &side[0], *b = &side[1];
	const struct ib_device_attr *attrs = &a->dev->attrs;
	const struct ib_qp_cap cap = {
		.max_send_wr = attrs->max_qp_wr, .max_recv_wr = attrs->max_qp_wr,
		.max_send_sge = attrs->max_send_sge, .max_recv_sge = attrs->max_recv_sge,
	};
	const char *wrong;
	struct st_bare bare;
	struct ib_wc wc;
	int i;

	CHECK(!st_bare_open(&bare, a, attrs->max_cqe));
	wrong = st_new_qp(side, a, bare.cq, &cap) ? "new QP" : NULL;
	/* Some pages of each ring. */
	for (i = 0; i < 300 && !wrong; i++) {
		st_fill(a->buf, 64, i);
		if (st_post_rdma(a, b, IB_WR_RDMA_WRITE, 0, ST_HALF, 64, IB_SEND_SIGNALED))
			wrong = "post";
		else if (!st_poll(&bare, &wc) || wc.status != IB_WC_SUCCESS)
			wrong = "completion";
		else if (memcmp(a->buf, b->buf + ST_HALF, 64))
			wrong = "data";
	}
	if (st_new_qp(side, a, a->cq, &st_cap))
		return wrong ?: "QP of before";
	ib_destroy_cq(bare.cq);
	return wrong ?: st_one(a, b, IB_WR_SEND, 100);
}

static const struct {
	const char *name;
	const char *(*run)(struct st_side *side);
} st_tests[] = {
	{ "capabilities are true", st_caps },
	{ "transfers of all kinds", st_transfers },
	{ "the key of get_dma_mr", st_dma_mr },
	{ "the reserved lkey is no rkey; QP event", st_reserved_key_is_no_rkey },
	{ "inline data", st_inline },
	{ "unsignaled sends", st_unsignaled },
	{ "a fence", st_fence },
	{ "bad work requests", st_bad_posts },
	{ "wrong states", st_wrong_states },
	{ "bad objects", st_bad_objects },
	{ "draining", st_drain },
	{ "destroy with completions", st_destroy_with_completions },
	{ "a CQ of its own: arming, solicited", st_bare_cq },
	{ "a CQ that overflows", st_overflow },
	{ "queues that are full", st_caps_are_kept },
	{ "queues as large as the limits", st_largest },
	{ "datagrams", st_ud },
	{ "fast registration", st_fast },
	{ "fast registration: errors", st_fast_errors },
	{ "fast registration: lists", st_fast_lists },
	{ "fast registration: chains and drains", st_fast_chain },
	{ "fast registration: small pieces", st_fast_pieces },
	{ "atomics, masked or not", st_atomics },
	{ "consumers: what is announced", st_announced },
	{ "consumers: queues", st_demanded_queues },
	{ "consumers: a WRITE of nothing", st_write_of_nothing },
	{ "consumers: capabilities of a QP", st_queried_caps },
	{ "consumers: memory on demand", st_on_demand },
	{ "a shared receive queue", st_srq },
	{ "an XRC domain", st_xrc },
	{ "posting during RESET", st_post_during_reset },
	{ "posting while a full CQ is polled", st_post_while_polling },
	{ "polling without receiving", st_netpoll },
	{ "a full ring whose queue is woken", st_false_wake },
	{ "impossible completions of sends", st_impossible },
};

void st_run(struct ib_device *const devs[2], struct seq_buf *tap)
{
	struct st_side *side;
	unsigned int i, j, number = 0;

	side = kcalloc(2, sizeof(*side), GFP_KERNEL);
	if (!side)
		return;
	seq_buf_puts(tap, "TAP version 13\n");
	for (i = 0; i < ST_POLLS; i++) {
		for (j = 0; j < ARRAY_SIZE(st_tests); j++) {
			const char *wrong = "objects cannot be made";

			if (!st_open(side, devs, st_polls[i].context)) {
				wrong = st_tests[j].run(side);
				st_close(side);
			}
			if (wrong) {
				pr_info("%s, %s: %s\n", st_polls[i].name, st_tests[j].name, wrong);
				seq_buf_printf(tap, "# %s\n", wrong);
			}
			seq_buf_printf(tap, "%sok %u %s, %s\n", wrong ? "not " : "", ++number,
				       st_polls[i].name, st_tests[j].name);
		}
	}
	seq_buf_printf(tap, "1..%u\n", number);
	kfree(side);
}
