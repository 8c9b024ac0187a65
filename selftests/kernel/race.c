// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Posting on one processor while another takes the QP to RESET: what was posted before is gone, and
 * what comes after is refused. Nothing is left for the QP's next life.
 *
 * Posting on one processor while another polls a CQ that has a place for each work request: it
 * never overflows.
 */
#include <linux/delay.h>
#include <linux/kthread.h>

#include "skua_selftest.h"

#define ST_RESETS	200

/**
 * struct st_poster - a thread that posts as fast as it can
 * @side: the sides; the first one's QP is posted to
 * @cqe: of all that it sends
 * @recv: of all its receives; it posts some if this has a handler
 * @done: completions of what it sends
 * @received: completions of its receives
 * @pause: it is to pause
 * @paused: it does
 * @full: there was no room for the last one
 */
struct st_poster {
	struct st_side *side;
	struct ib_cqe cqe;
	struct ib_cqe recv;
	atomic_t done;
	atomic_t received;
	bool pause;
	bool paused;
	bool full;
};

static void st_poster_done(struct ib_cq *cq, struct ib_wc *wc)
{
	atomic_inc(&container_of(wc->wr_cqe, struct st_poster, cqe)->done);
}

static void st_poster_received(struct ib_cq *cq, struct ib_wc *wc)
{
	atomic_inc(&container_of(wc->wr_cqe, struct st_poster, recv)->received);
}

static int st_poster_thread(void *data)
{
	struct st_poster *poster = data;
	struct st_side *a = &poster->side[0], *b = &poster->side[1];
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_cqe = &poster->cqe, .opcode = IB_WR_RDMA_WRITE,
			.send_flags = IB_SEND_SIGNALED,
		},
		.remote_addr = b->dma, .rkey = b->pd->unsafe_global_rkey,
	};
	struct ib_recv_wr recv = { .wr_cqe = &poster->recv };

	while (!kthread_should_stop()) {
		/* Release: what was posted before is. */
		smp_store_release(&poster->paused, READ_ONCE(poster->pause));
		if (!poster->paused) {
			WRITE_ONCE(poster->full, ib_post_send(a->qp, &wr.wr, NULL) == -ENOMEM);
			if (poster->recv.done)
				ib_post_recv(a->qp, &recv, NULL);
		}
		cond_resched();
	}
	return 0;
}

static const char *st_poster_resets(struct st_side *side, struct st_poster *poster)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };
	struct st_side *a = &side[0], *b = &side[1];
	int i, done, received;

	for (i = 0; i < ST_RESETS; i++) {
		CHECK(!ib_modify_qp(a->qp, &attr, IB_QP_STATE));
		WRITE_ONCE(poster->pause, true);
		/* Acquire: pairs with the release of the thread. */
		while (!smp_load_acquire(&poster->paused))
			cond_resched();
		/* Whoever polls the CQ may be late with what it took before the RESET. */
		usleep_range(500, 1000);
		if (a->cq->poll_ctx == IB_POLL_DIRECT)
			ib_process_cq_direct(a->cq, -1);
		/* No second RESET of the first, which would hide what was posted late. */
		CHECK(!ib_modify_qp(b->qp, &attr, IB_QP_STATE));
		CHECK(!st_connect(side));
		done = atomic_read(&poster->done);
		CHECK(!st_post_rdma(a, b, IB_WR_RDMA_WRITE, 0, ST_HALF, 64, IB_SEND_SIGNALED));
		CHECK(st_wait(a, &a->send));
		CHECK(a->send.wc.status == IB_WC_SUCCESS);
		CHECK(atomic_read(&poster->done) == done);
		received = atomic_read(&poster->received);
		CHECK(!st_post_recv(a, ST_HALF, 64));
		CHECK(!st_post_rdma(b, a, IB_WR_SEND, 0, 0, 64, IB_SEND_SIGNALED));
		CHECK(st_wait(a, &a->recv));
		CHECK(a->recv.wc.status == IB_WC_SUCCESS);
		CHECK(st_wait(b, &b->send));
		CHECK(atomic_read(&poster->received) == received);
		WRITE_ONCE(poster->pause, false);
		usleep_range(50, 100);
	}
	CHECK(atomic_read(&poster->done) || a->cq->poll_ctx == IB_POLL_DIRECT);
	return NULL;
}

const char *st_post_during_reset(struct st_side *side)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };
	/* Not on the stack: whoever polls may call back once more after the last RESET. */
	static struct st_poster poster;
	struct task_struct *thread;
	const char *wrong;

	poster = (struct st_poster) {
		.side = side, .cqe.done = st_poster_done, .recv.done = st_poster_received,
	};
	thread = kthread_run(st_poster_thread, &poster, "skua_selftest");
	if (IS_ERR(thread))
		return "no thread";
	wrong = st_poster_resets(side, &poster);
	kthread_stop(thread);
	/* Its send queue may be full, so that it cannot be drained. */
	if (ib_modify_qp(side[0].qp, &attr, IB_QP_STATE))
		wrong = wrong ?: "last RESET";
	return wrong;
}

/* Work requests of the QP, and places in its CQ: longer to read than one more takes to complete. */
#define ST_TIGHT	4096
#define ST_ROUNDS	16

static const char *st_poll_tight(struct st_poster *poster, struct ib_cq *cq, struct ib_wc *wc)
{
	unsigned long end;
	int round, i, n;

	for (round = 0; round < ST_ROUNDS; round++) {
		end = jiffies + ST_TIMEOUT;
		while (!READ_ONCE(poster->full) && time_before(jiffies, end))
			usleep_range(1000, 2000);
		/* The last of them completes: the CQ is full, unless the device has no time. */
		do {
			msleep(30);
			n = ib_poll_cq(cq, ST_TIGHT, wc);
		} while (!n && time_before(jiffies, end));
		CHECK(n > 0);
		for (i = 0; i < n; i++)
			CHECK(wc[i].status == IB_WC_SUCCESS);
	}
	return NULL;
}

static const char *st_tight(struct st_side *side, struct ib_cq *cq, struct ib_wc *wc)
{
	struct st_poster poster = { .side = side };
	struct ib_qp_cap cap = st_cap;
	struct task_struct *thread;
	const char *wrong;

	cap.max_send_wr = ST_TIGHT;
	CHECK(!st_new_qp(side, &side[0], cq, &cap));
	thread = kthread_run(st_poster_thread, &poster, "skua_selftest");
	if (IS_ERR(thread))
		return "no thread";
	wrong = st_poll_tight(&poster, cq, wc);
	kthread_stop(thread);
	return wrong;
}

const char *st_post_while_polling(struct st_side *side)
{
	struct ib_cq_init_attr attr = { .cqe = ST_TIGHT };
	struct st_side *a = &side[0];
	const char *wrong;
	struct ib_wc *wc;
	struct ib_cq *cq;

	wc = kvcalloc(ST_TIGHT, sizeof(*wc), GFP_KERNEL);
	if (!wc)
		return "no memory";
	cq = ib_create_cq(a->dev, NULL, NULL, NULL, &attr);
	if (IS_ERR(cq)) {
		kvfree(wc);
		return "no CQ";
	}
	wrong = st_tight(side, cq, wc);
	if (st_new_qp(side, a, a->cq, &st_cap))
		wrong = wrong ?: "QP of before";
	else
		ib_destroy_cq(cq);
	kvfree(wc);
	return wrong;
}
