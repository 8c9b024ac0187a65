// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Posting on one processor while another takes the QP to RESET: what was posted before is gone, and
 * what comes after is refused. Nothing is left for the QP's next life.
 */
#include <linux/delay.h>
#include <linux/kthread.h>

#include "skua_selftest.h"

#define ST_RESETS	200

/**
 * struct st_poster - a thread that posts as fast as it can
 * @side: the sides; the first one's QP is posted to
 * @cqe: of all that it posts
 * @done: completions of that
 * @pause: it is to pause
 * @paused: it does
 */
struct st_poster {
	struct st_side *side;
	struct ib_cqe cqe;
	atomic_t done;
	bool pause;
	bool paused;
};

static void st_poster_done(struct ib_cq *cq, struct ib_wc *wc)
{
	atomic_inc(&container_of(wc->wr_cqe, struct st_poster, cqe)->done);
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

	while (!kthread_should_stop()) {
		/* Release: what was posted before is. */
		smp_store_release(&poster->paused, READ_ONCE(poster->pause));
		if (!poster->paused)
			ib_post_send(a->qp, &wr.wr, NULL);
		cond_resched();
	}
	return 0;
}

static const char *st_poster_resets(struct st_side *side, struct st_poster *poster)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };
	struct st_side *a = &side[0], *b = &side[1];
	int i, done;

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

	poster = (struct st_poster) { .side = side, .cqe.done = st_poster_done };
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
