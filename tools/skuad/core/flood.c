// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Theory of operation
 *
 * The doorbells of all programs of a guest come one after the other: QEMU traps each store under one lock, and sends
 * it by one socket. So a program that rings without cause delays the doorbells of all others, and each doorbell that
 * another needs costs it a trap beside those traps.
 *
 * A flood is FLOOD_MIN doorbells within FLOOD_WINDOW_NS that bring no work: they are ignored, or nothing was published
 * that the device has not taken. While it lasts, the device looks at records every LOOK_NS: at that of the command
 * ring, and at those of some QPs, which take turns. A QP that runs out of work is kept: the device does not ask for its
 * doorbell (manual: DBP-7, DBR-6). This is what NAPI does for interrupts.
 *
 * The doorbells themselves are taken many at a time, since a socket that is read at once costs QEMU and us a wake-up
 * for each (pci/vfio_user.c).
 *
 * One look costs LOOK_BUDGET at most, however many QPs there are. The looks end FLOOD_END_NS after the flood, and then
 * the device asks for the doorbells of those that it has kept, of some at a time.
 */
#include "base/copy.h"
#include "core/qp.h"

#define FLOOD_MIN	16
#define FLOOD_WINDOW_NS	1000000
#define FLOOD_END_NS	10000000	/* QEMU may not run for so long, and goes on then */
#define LOOK_NS		20000
#define LOOK_QPS	16
#define LOOK_BUDGET	(LOOK_QPS * 256)	/* numtab_walk() takes 256 for each object */

/* Has it published what was not taken? Without a record there is nothing to see. */
static bool has_work(struct skua_qp *qp)
{
	struct skua_dbr *dbr = qp->state >= SKUA_QPS_RTS && qp->sq.size && !qp->sq.dead ?
		mem_ref_at(&qp->dev->mem, &qp->sq.dbr, sizeof(*dbr), true) : NULL;

	return dbr && host_load32(&dbr->pi) != qp->sq.ci;
}

static void look_at_some(struct skua_dev *dev)
{
	int32_t budget = LOOK_BUDGET;
	struct skua_qp *qp;

	cmdq_doorbell(dev);
	while ((qp = numtab_walk(&dev->qps, &dev->flood.next, &budget)))
		if (has_work(qp))
			qp_activate(qp);
	if (budget > 0)
		dev->flood.next = 0;
}

static void let_some_ask(struct skua_dev *dev)
{
	struct skua_qp *qp;

	for (int i = 0; i < LOOK_QPS && (qp = TAILQ_FIRST(&dev->flood.kept)); i++)
		qp_activate(qp);
}

static void look(struct timer *timer)
{
	struct skua_dev *dev = (void *)((char *)timer - offsetof(struct skua_dev, flood.timer));
	uint64_t now = engine_now(dev->engine);
	bool over = now >= dev->flood.until;

	if (!dev_running(dev))
		return;
	if (over)
		let_some_ask(dev);
	else
		look_at_some(dev);
	if (!over || !TAILQ_EMPTY(&dev->flood.kept))
		timer_set(&dev->engine->timers, timer, now + LOOK_NS);
}

void flood_doorbell(struct skua_dev *dev)
{
	struct flood *flood = &dev->flood;
	uint64_t now = engine_now(dev->engine);

	if (now - flood->begun >= FLOOD_WINDOW_NS) {
		flood->begun = now;
		flood->doorbells = 0;
	}
	if (++flood->doorbells < FLOOD_MIN)
		return;
	flood->until = now + FLOOD_END_NS;
	flood->timer.fire = look;
	if (!flood->timer.pos)
		timer_set(&dev->engine->timers, &flood->timer, now + LOOK_NS);
}

void flood_bad_doorbell(struct skua_dev *dev)
{
	STAT_INC(dev, bad_doorbells);
	flood_doorbell(dev);
}

void flood_sq_doorbell(struct skua_qp *qp)
{
	if (!has_work(qp))
		flood_doorbell(qp->dev);
	qp_activate(qp);
}

bool flood_keep(struct skua_qp *qp)
{
	if (!skua_dev_is_flooded(qp->dev) || qp->state != SKUA_QPS_RTS || has_work(qp))
		return false;
	qp->kept = true;
	TAILQ_INSERT_TAIL(&qp->dev->flood.kept, qp, kept_entry);
	return true;
}

void flood_release(struct skua_qp *qp)
{
	if (!qp->kept)
		return;
	qp->kept = false;
	TAILQ_REMOVE(&qp->dev->flood.kept, qp, kept_entry);
}

void flood_reset(struct skua_dev *dev)
{
	timer_cancel(&dev->engine->timers, &dev->flood.timer);
}

bool skua_dev_is_flooded(const struct skua_dev *dev)
{
	return dev->flood.timer.pos && engine_now(dev->engine) < dev->flood.until;
}
