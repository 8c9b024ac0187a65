// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What consumers see when the first device dies. The second sends to it as fast as it can, so that
 * there is always a message for a receive that is posted, up to the moment in which the device is
 * cut off from memory. Rules: RST-10 to RST-12, SRQ-12.
 *
 * - Each work request completes once.
 * - The memory of a receive that was flushed is the consumer's: it is filled with a pattern, which
 *   must stay.
 * - A CQ's handler is called if the CQ was armed, once for each arming, and then only.
 * - A QP with an SRQ tells once that it completes no more receives, for which consumers wait.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/seq_buf.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>

#include "skua_selftest.h"

#define ST_DEATH_SIZE	256		/* of each message */
#define ST_DEATH_BATCH	64		/* completions polled at once; faults can make no end */
#define ST_DEATH_RECVS	4		/* of each CQ of our own */
/* To an SRQ; KASAN makes them slow. */
#define ST_DEATH_POSTS	(IS_ENABLED(CONFIG_KASAN) ? 100000 : 1000000)
#define ST_PATTERN	0xa5
#define ST_STAY_MS	200		/* in a handler, with interrupts off */
#define ST_STAYS	8		/* at most; each takes a receive */

#define ST_DYING_WRS	(ST_WRS - 1)	/* of each kind; draining posts one more */

struct st_dying;

enum st_dying_kind {
	ST_DYING_RECV,			/* of the dying device's */
	ST_DYING_WRITE,			/* the same */
	ST_DYING_PEER_SEND,
	ST_DYING_KINDS
};

/**
 * struct st_dying_wr - a work request that is posted again whenever it completes well
 * @cqe: how its completion finds it
 * @dying: what it belongs to
 * @offset: of its memory
 * @posted: it has not completed
 * @ended: it completed in error, and is not posted again
 * @recv: it is of kind ST_DYING_RECV
 */
struct st_dying_wr {
	struct ib_cqe cqe;
	struct st_dying *dying;
	u32 offset;
	bool posted;
	bool ended;
	bool recv;
};

/**
 * struct st_handled - a CQ of our own on the dying device, and a QP with receives
 * @cq: the CQ
 * @qp: the QP, in INIT
 * @calls: how often the CQ's handler was called
 * @stay: calls stay in the handler for a while
 * @inside: a call stays
 */
struct st_handled {
	struct ib_cq *cq;
	struct ib_qp *qp;
	atomic_t calls;
	bool stay;
	bool inside;
};

/**
 * struct st_sharing - an SRQ on the dying device with a receive in it, and QPs that use it
 * @srq: the SRQ
 * @qp: one in INIT
 * @failed: one in ERR
 * @told: how often the first told of its last receive
 * @failed_told: the same of the other
 */
struct st_sharing {
	struct ib_srq *srq;
	struct ib_qp *qp;
	struct ib_qp *failed;
	atomic_t told;
	atomic_t failed_told;
};

/**
 * struct st_dying - two sides, of which the first is to die
 * @side: the sides
 * @thread: posts, and polls CQs that are polled directly
 * @lock: @wrs, @twice, @completed
 * @wrs: work requests by kind
 * @twice: completions of what was not posted
 * @completed: all completions
 * @unarmed: a CQ that is never armed
 * @armed: a CQ that is armed once before death
 * @sharing: an SRQ and its QP
 * @member: a QP that is attached to a multicast group
 * @domain: an XRC domain and its QP, in INIT
 * @srq: an SRQ in the domain with a receive, which completes in @armed's CQ, or never
 */
struct st_dying {
	struct st_side side[2];
	struct task_struct *thread;
	spinlock_t lock;		/* see above */
	struct st_dying_wr wrs[ST_DYING_KINDS][ST_DYING_WRS];
	u64 twice;
	u64 completed;
	struct st_handled unarmed;
	struct st_handled armed;
	struct st_sharing sharing;
	struct ib_qp *member;
	struct st_domain domain;
	struct ib_srq *srq;
};

static struct st_dying *st_dying;
static const char *st_death_verdict = "idle";

static void st_dying_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct st_dying_wr *wr = container_of(wc->wr_cqe, struct st_dying_wr, cqe);
	struct st_dying *dying = wr->dying;
	unsigned long irq;

	spin_lock_irqsave(&dying->lock, irq);
	dying->completed++;
	if (!wr->posted)
		dying->twice++;
	if (wc->status != IB_WC_SUCCESS && !wr->ended) {
		wr->ended = true;
		if (wr->recv)
			memset(dying->side[0].buf + wr->offset, ST_PATTERN, ST_DEATH_SIZE);
	}
	/* Last: then it is posted again. */
	WRITE_ONCE(wr->posted, false);
	spin_unlock_irqrestore(&dying->lock, irq);
}

/* Post it unless it is. True: it was posted. */
static bool st_dying_post(struct st_dying *dying, enum st_dying_kind kind, struct st_dying_wr *wr)
{
	struct st_side *side = &dying->side[kind == ST_DYING_PEER_SEND];
	struct ib_sge sge = {
		.addr = side->dma + wr->offset, .length = ST_DEATH_SIZE,
		.lkey = side->pd->local_dma_lkey,
	};
	struct ib_recv_wr recv = { .wr_cqe = &wr->cqe, .sg_list = &sge, .num_sge = 1 };
	struct ib_rdma_wr send = {
		.wr = {
			.wr_cqe = &wr->cqe, .sg_list = &sge, .num_sge = 1,
			.opcode = kind == ST_DYING_WRITE ? IB_WR_RDMA_WRITE : IB_WR_SEND,
			.send_flags = IB_SEND_SIGNALED,
		},
		.remote_addr = dying->side[1].dma + ST_HALF,
		.rkey = dying->side[1].pd->unsafe_global_rkey,
	};

	if (READ_ONCE(wr->posted) || READ_ONCE(wr->ended))
		return false;
	WRITE_ONCE(wr->posted, true);
	if (kind == ST_DYING_RECV)
		return !ib_post_recv(side->qp, &recv, NULL);
	return !ib_post_send(side->qp, &send.wr, NULL);
}

/* The peer first: when a send of its is done, so is the receive that took it. */
static void st_dying_poll(struct st_dying *dying)
{
	if (dying->side[0].cq->poll_ctx != IB_POLL_DIRECT)
		return;
	ib_process_cq_direct(dying->side[1].cq, ST_DEATH_BATCH);
	ib_process_cq_direct(dying->side[0].cq, ST_DEATH_BATCH);
}

/* The peer has as many messages on their way as there are receives for. */
static int st_dying_thread(void *data)
{
	struct st_dying *dying = data;
	u64 credits = 0;
	unsigned int i;

	while (!kthread_should_stop()) {
		for (i = 0; i < ST_DYING_WRS; i++)
			credits += st_dying_post(dying, ST_DYING_RECV,
						 &dying->wrs[ST_DYING_RECV][i]);
		for (i = 0; i < ST_DYING_WRS && credits; i++)
			credits -= st_dying_post(dying, ST_DYING_PEER_SEND,
						 &dying->wrs[ST_DYING_PEER_SEND][i]);
		for (i = 0; i < ST_DYING_WRS; i++)
			st_dying_post(dying, ST_DYING_WRITE, &dying->wrs[ST_DYING_WRITE][i]);
		st_dying_poll(dying);
		cond_resched();
	}
	return 0;
}

/* Of the dying device. */
static unsigned int st_dying_left(struct st_dying *dying)
{
	unsigned int i, left = 0;

	for (i = 0; i < ST_DYING_WRS; i++)
		left += !READ_ONCE(dying->wrs[ST_DYING_RECV][i].ended) +
			!READ_ONCE(dying->wrs[ST_DYING_WRITE][i].ended);
	return left;
}

/* CQs of our own */

static void st_handled_comp(struct ib_cq *cq, void *context)
{
	struct st_handled *handled = context;

	WRITE_ONCE(handled->inside, READ_ONCE(handled->stay));
	/* With a barrier: who sees the call sees that it stays. */
	atomic_inc_return(&handled->calls);
	if (!READ_ONCE(handled->stay))
		return;
	mdelay(ST_STAY_MS);
	WRITE_ONCE(handled->inside, false);
}

static int st_handled_post(struct st_handled *handled, u64 wr_id)
{
	struct ib_recv_wr wr = { .wr_id = wr_id };

	return ib_post_recv(handled->qp, &wr, NULL);
}

static void st_handled_close(struct st_handled *handled)
{
	if (!IS_ERR_OR_NULL(handled->qp))
		ib_destroy_qp(handled->qp);
	if (!IS_ERR_OR_NULL(handled->cq))
		ib_destroy_cq(handled->cq);
	handled->qp = NULL;
	handled->cq = NULL;
}

static int st_handled_open(struct st_handled *handled, struct st_side *side)
{
	struct ib_cq_init_attr cq_attr = { .cqe = ST_WRS };
	struct ib_qp_init_attr attr = {
		.sq_sig_type = IB_SIGNAL_REQ_WR, .qp_type = IB_QPT_RC,
		.cap = { .max_recv_wr = ST_WRS, .max_recv_sge = 1 },
	};
	unsigned int i;
	int err;

	handled->cq = ib_create_cq(side->dev, st_handled_comp, NULL, handled, &cq_attr);
	if (IS_ERR(handled->cq))
		return PTR_ERR(handled->cq);
	attr.send_cq = handled->cq;
	attr.recv_cq = handled->cq;
	handled->qp = ib_create_qp(side->pd, &attr);
	if (IS_ERR(handled->qp))
		return PTR_ERR(handled->qp);
	err = st_to_init(handled->qp);
	for (i = 0; i < ST_DEATH_RECVS && !err; i++)
		err = st_handled_post(handled, i);
	return err;
}

/* That many receives, flushed in order, and no more. */
static const char *st_handled_flushed(struct st_handled *handled, unsigned int from, unsigned int n)
{
	struct ib_wc wc;
	unsigned int i;

	for (i = 0; i < n; i++) {
		CHECK(ib_poll_cq(handled->cq, 1, &wc) == 1);
		CHECK(wc.status == IB_WC_WR_FLUSH_ERR);
		CHECK(wc.wr_id == from + i);
		CHECK(wc.qp == handled->qp);
	}
	CHECK(!ib_poll_cq(handled->cq, 1, &wc));
	return NULL;
}

#define ST_NOTIFY	(IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS)

/* The handler is called until it was so often, and then no more. */
static bool st_handled_is_called(struct st_handled *handled, int calls)
{
	unsigned long end = jiffies + ST_TIMEOUT;

	while (atomic_read(&handled->calls) < calls && time_before(jiffies, end))
		usleep_range(1000, 2000);
	msleep(50);
	return atomic_read(&handled->calls) == calls;
}

/*
 * A CQ whose handler is being called: whoever destroys it waits for the call. Who sleeps until then
 * might wake on the processor of the handler, after it, and who does not may be late.
 */
static const char *st_handled_end(struct st_handled *handled)
{
	unsigned long end = jiffies + ST_TIMEOUT;
	unsigned int i;
	bool inside;

	WRITE_ONCE(handled->stay, true);
	for (i = 0; i < ST_STAYS && !READ_ONCE(handled->inside); i++) {
		int calls = atomic_read(&handled->calls);

		ib_req_notify_cq(handled->cq, IB_CQ_NEXT_COMP);
		CHECK(!st_handled_post(handled, i));
		while (atomic_read(&handled->calls) == calls && time_before(jiffies, end))
			cpu_relax();
	}
	CHECK(READ_ONCE(handled->inside));
	st_handled_close(handled);
	inside = READ_ONCE(handled->inside);
	/* If it was not waited for, it still uses what it was given. */
	msleep(2 * ST_STAY_MS);
	CHECK(!inside);
	return NULL;
}

static const char *st_handled_judge(struct st_dying *dying)
{
	struct st_handled *unarmed = &dying->unarmed, *armed = &dying->armed;
	const char *wrong;
	int i;

	CHECK(st_handled_is_called(unarmed, 0));
	CHECK(!st_handled_post(unarmed, ST_DEATH_RECVS));
	CHECK(st_handled_is_called(unarmed, 0));
	wrong = st_handled_flushed(unarmed, 0, ST_DEATH_RECVS + 1);
	if (wrong)
		return wrong;

	CHECK(st_handled_is_called(armed, 1));
	/* What is there is told by arming, and calls nobody. */
	CHECK(ib_req_notify_cq(armed->cq, ST_NOTIFY) == 1);
	wrong = st_handled_flushed(armed, 0, ST_DEATH_RECVS);
	if (wrong)
		return wrong;
	for (i = 1; i < 4; i++) {
		CHECK(!ib_req_notify_cq(armed->cq, ST_NOTIFY));
		CHECK(st_handled_is_called(armed, i));
		CHECK(!st_handled_post(armed, 10 + i));
		CHECK(st_handled_is_called(armed, i + 1));
		wrong = st_handled_flushed(armed, 10 + i, 1);
		if (wrong)
			return wrong;
	}
	return NULL;
}

/* SRQs */

static void st_sharing_event(struct ib_event *event, void *context)
{
	struct st_sharing *sharing = context;

	if (event->event == IB_EVENT_QP_LAST_WQE_REACHED)
		atomic_inc(event->element.qp == sharing->qp ? &sharing->told :
							      &sharing->failed_told);
}

static bool st_is_told(atomic_t *told)
{
	unsigned long end = jiffies + ST_TIMEOUT;

	while (!atomic_read(told) && time_before(jiffies, end))
		msleep(20);
	return atomic_read(told) == 1;
}

static void st_sharing_close(struct st_sharing *sharing)
{
	if (!IS_ERR_OR_NULL(sharing->failed))
		ib_destroy_qp(sharing->failed);
	if (!IS_ERR_OR_NULL(sharing->qp))
		ib_destroy_qp(sharing->qp);
	if (!IS_ERR_OR_NULL(sharing->srq))
		ib_destroy_srq(sharing->srq);
}

static int st_sharing_open(struct st_sharing *sharing, struct st_side *side)
{
	struct ib_srq_init_attr srq_attr = {
		.srq_type = IB_SRQT_BASIC, .attr = { .max_wr = ST_WRS, .max_sge = 1 },
	};
	struct ib_qp_init_attr attr = {
		.event_handler = st_sharing_event, .qp_context = sharing,
		.send_cq = side->cq, .recv_cq = side->cq, .sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};
	struct ib_qp_attr error = { .qp_state = IB_QPS_ERR };
	struct ib_recv_wr wr = {};
	int err;

	sharing->srq = ib_create_srq(side->pd, &srq_attr);
	if (IS_ERR(sharing->srq))
		return PTR_ERR(sharing->srq);
	attr.srq = sharing->srq;
	sharing->qp = ib_create_qp(side->pd, &attr);
	if (IS_ERR(sharing->qp))
		return PTR_ERR(sharing->qp);
	sharing->failed = ib_create_qp(side->pd, &attr);
	if (IS_ERR(sharing->failed))
		return PTR_ERR(sharing->failed);
	err = st_to_init(sharing->qp) ?: st_to_init(sharing->failed) ?:
	      ib_modify_qp(sharing->failed, &error, IB_QP_STATE);
	if (err)
		return err;
	/* The device tells of the last receive of this one. */
	if (!st_is_told(&sharing->failed_told))
		return -ETIMEDOUT;
	return ib_post_srq_recv(sharing->srq, &wr, NULL);
}

/* Nothing takes receives any more: they fill the SRQ, in which there is one. */
static const char *st_sharing_fill(struct ib_srq *srq)
{
	const struct ib_recv_wr *bad;
	struct ib_recv_wr wr = {};
	u32 i;

	for (i = 1; i < ST_WRS; i++)
		CHECK(!ib_post_srq_recv(srq, &wr, NULL));
	for (; i < ST_DEATH_POSTS; i++) {
		CHECK(ib_post_srq_recv(srq, &wr, &bad) == -ENOMEM);
		CHECK(bad == &wr);
		cond_resched();
	}
	return NULL;
}

static const char *st_sharing_judge(struct st_sharing *sharing)
{
	CHECK(st_is_told(&sharing->told));
	msleep(50);
	CHECK(atomic_read(&sharing->failed_told) == 1);
	return st_sharing_fill(sharing->srq);
}

static int st_domain_end(struct st_dying *dying)
{
	if (!IS_ERR_OR_NULL(dying->srq))
		ib_destroy_srq(dying->srq);
	dying->srq = NULL;
	return st_domain_close(&dying->domain);
}

static int st_domain_begin(struct st_dying *dying, struct st_side *side)
{
	struct ib_recv_wr wr = {};
	int err;

	err = st_domain_open(&dying->domain, side) ?: st_to_init(dying->domain.qp);
	if (err)
		return err;
	dying->srq = st_domain_srq(&dying->domain, side->pd, dying->armed.cq, NULL, NULL);
	if (IS_ERR(dying->srq))
		return PTR_ERR(dying->srq);
	return ib_post_srq_recv(dying->srq, &wr, NULL);
}

/* An XRC domain of a device that is dead is taken apart, and there is nothing new. */
static const char *st_domain_judge(struct st_dying *dying)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	struct st_domain other;

	CHECK(!ib_modify_qp(dying->domain.qp, &attr, IB_QP_STATE));
	CHECK(st_domain_open(&other, &dying->side[0]) == -EIO);
	CHECK(PTR_ERR(st_domain_srq(&dying->domain, dying->side[0].pd, dying->armed.cq, NULL,
				    NULL)) == -EIO);
	CHECK(!st_domain_end(dying));
	return NULL;
}

static const char *st_death_judge(struct st_dying *dying)
{
	unsigned long end = jiffies + ST_TIMEOUT;
	const char *wrong;
	unsigned int i;
	u64 completed;

	while (st_dying_left(dying) && time_before(jiffies, end))
		msleep(20);
	CHECK(!st_dying_left(dying));
	/* Whatever would come late comes now. */
	msleep(300);
	CHECK(!dying->twice);
	for (i = 0; i < ST_DYING_WRS; i++)
		CHECK(!memchr_inv(dying->side[0].buf + dying->wrs[ST_DYING_RECV][i].offset,
				  ST_PATTERN, ST_DEATH_SIZE));
	completed = READ_ONCE(dying->completed);
	CHECK(completed > 100);
	wrong = st_handled_judge(dying);
	wrong = wrong ?: st_sharing_judge(&dying->sharing);
	return wrong ?: st_domain_judge(dying);
}

/* Verbs that take away work on a device that is dead. */
static const char *st_death_close(struct st_dying *dying)
{
	const char *wrong = NULL;

	if (!IS_ERR_OR_NULL(dying->member) && st_leave(dying->member))
		wrong = "the member of a group";
	if (st_domain_end(dying))
		wrong = wrong ?: "the XRC domain";
	st_sharing_close(&dying->sharing);
	st_handled_close(&dying->armed);
	st_handled_close(&dying->unarmed);
	ib_drain_qp(dying->side[0].qp);
	ib_drain_qp(dying->side[1].qp);
	st_close(dying->side);
	return wrong;
}

static int st_death_open(struct st_dying *dying)
{
	struct st_side *side = &dying->side[0];
	int err;

	err = st_handled_open(&dying->unarmed, side);
	err = err ?: st_handled_open(&dying->armed, side);
	err = err ?: st_sharing_open(&dying->sharing, side);
	err = err ?: st_domain_begin(dying, side);
	if (err)
		return err;
	ib_req_notify_cq(dying->armed.cq, IB_CQ_NEXT_COMP);
	dying->member = st_join(side);
	return PTR_ERR_OR_ZERO(dying->member);
}

static void st_dying_init(struct st_dying *dying)
{
	unsigned int kind, i;

	spin_lock_init(&dying->lock);
	for (kind = 0; kind < ST_DYING_KINDS; kind++) {
		for (i = 0; i < ST_DYING_WRS; i++) {
			struct st_dying_wr *wr = &dying->wrs[kind][i];

			wr->cqe.done = st_dying_done;
			wr->dying = dying;
			wr->offset = (kind * ST_WRS + i) * ST_DEATH_SIZE;
			wr->recv = kind == ST_DYING_RECV;
		}
	}
}

int st_death(struct ib_device *const devs[2], enum ib_poll_context poll)
{
	struct st_dying *dying;
	int err;

	if (st_dying)
		return -EBUSY;
	dying = kzalloc(sizeof(*dying), GFP_KERNEL);
	if (!dying)
		return -ENOMEM;
	st_dying_init(dying);
	err = st_open(dying->side, devs, poll);
	if (err)
		goto err_free;
	err = st_death_open(dying);
	if (err)
		goto err_close;
	dying->thread = kthread_run(st_dying_thread, dying, "skua_selftest");
	if (IS_ERR(dying->thread)) {
		err = PTR_ERR(dying->thread);
		goto err_close;
	}
	st_dying = dying;
	st_death_verdict = "running";
	return 0;

err_close:
	st_death_close(dying);
err_free:
	kfree(dying);
	return err;
}

void st_death_end(struct ib_device *dev)
{
	struct st_dying *dying = st_dying;
	const char *wrong, *closed;

	if (!dying || (dev && dev != dying->side[0].dev && dev != dying->side[1].dev))
		return;
	wrong = st_death_judge(dying);
	kthread_stop(dying->thread);
	wrong = wrong ?: st_handled_end(&dying->armed);
	closed = st_death_close(dying);
	pr_info("death: %llu completions, %llu twice\n", dying->completed, dying->twice);
	st_death_verdict = wrong ?: closed ?: "all is well";
	kfree(dying);
	st_dying = NULL;
}

void st_death_tell(struct seq_buf *out)
{
	const struct st_dying *dying = st_dying;

	seq_buf_printf(out, "%s, completions %llu\n", st_death_verdict,
		       dying ? READ_ONCE(dying->completed) : 0);
}
