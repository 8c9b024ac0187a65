// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Traffic that goes on until its device is removed: a thread that writes to the peer, compares, and
 * begins again. Each side has a member of a multicast group, too. Removal stops it, drains the QPs,
 * and destroys all that it has of either device.
 */
#include <linux/kthread.h>
#include <linux/seq_buf.h>
#include <linux/slab.h>

#include "skua_selftest.h"

#define ST_HOLD_SIZE	4096
#define ST_HOLD_PAGES	32

static struct st_held {
	struct st_side side[2];
	struct ib_qp *member[2];	/* of a multicast group, one of each side */
	struct ib_mr *mr;		/* of the first side; for `rdma resource` to tell of */
	struct task_struct *thread;
	u64 transfers;
	u64 flushed;
	u64 wrong;
} *st_held;
static const char *st_hold_state = "idle";
static struct st_held st_was;

/* One transfer. False: the QP is in error, or worse. */
static bool st_hold_transfer(struct st_held *held)
{
	struct st_side *a = &held->side[0], *b = &held->side[1];

	st_fill(a->buf, ST_HOLD_SIZE, held->transfers);
	if (st_post_rdma(a, b, IB_WR_RDMA_WRITE, 0, ST_HALF, ST_HOLD_SIZE, IB_SEND_SIGNALED))
		return false;
	if (!st_wait(a, &a->send)) {
		held->wrong++;
		return false;
	}
	if (a->send.wc.status != IB_WC_SUCCESS) {
		held->flushed++;
		return false;
	}
	if (memcmp(a->buf, b->buf + ST_HALF, ST_HOLD_SIZE))
		held->wrong++;
	held->transfers++;
	return true;
}

static int st_hold_thread(void *data)
{
	struct st_held *held = data;

	while (!kthread_should_stop())
		if (!st_hold_transfer(held))
			schedule_timeout_interruptible(HZ / 100);
	return 0;
}

/* What there is besides connections. True: it could be given back. */
static bool st_hold_drop(struct st_held *held)
{
	bool well = IS_ERR_OR_NULL(held->mr) || !ib_dereg_mr(held->mr);
	int i;

	for (i = 0; i < 2; i++)
		if (!IS_ERR_OR_NULL(held->member[i]) && st_leave(held->member[i]))
			well = false;
	return well;
}

static int st_hold_make(struct st_held *held)
{
	int i;

	held->mr = ib_alloc_mr(held->side[0].pd, IB_MR_TYPE_MEM_REG, ST_HOLD_PAGES);
	if (IS_ERR(held->mr))
		return PTR_ERR(held->mr);
	for (i = 0; i < 2; i++) {
		held->member[i] = st_join(&held->side[i]);
		if (IS_ERR(held->member[i]))
			return PTR_ERR(held->member[i]);
	}
	return 0;
}

int st_hold(struct ib_device *const devs[2], enum ib_poll_context poll)
{
	struct st_held *held;
	int err, i;

	if (st_held)
		return -EBUSY;
	held = kzalloc(sizeof(*held), GFP_KERNEL);
	if (!held)
		return -ENOMEM;
	err = st_open(held->side, devs, poll);
	if (err)
		goto err_free;
	err = st_hold_make(held);
	if (err)
		goto err_close;
	/* Receives that nobody ever uses: they are flushed. */
	for (i = 0; i < ST_WRS - 1; i++) {
		err = st_post_recv(&held->side[1], 0, 64);
		if (err)
			goto err_close;
	}
	held->thread = kthread_run(st_hold_thread, held, "skua_selftest");
	if (IS_ERR(held->thread)) {
		err = PTR_ERR(held->thread);
		goto err_close;
	}
	st_held = held;
	st_hold_state = "running";
	return 0;

err_close:
	st_hold_drop(held);
	st_close(held->side);
err_free:
	kfree(held);
	return err;
}

void st_release(struct ib_device *dev)
{
	struct st_held *held = st_held;

	if (!held || (dev && dev != held->side[0].dev && dev != held->side[1].dev))
		return;
	kthread_stop(held->thread);
	ib_drain_qp(held->side[0].qp);
	ib_drain_qp(held->side[1].qp);
	if (!st_hold_drop(held))
		held->wrong++;
	st_close(held->side);
	st_was = *held;
	kfree(held);
	st_held = NULL;
	st_hold_state = "released";
}

void st_hold_tell(struct seq_buf *out)
{
	const struct st_held *held = st_held ?: &st_was;

	seq_buf_printf(out, "%s transfers %llu flushed %llu wrong %llu\n", st_hold_state,
		       held->transfers, held->flushed, held->wrong);
}
