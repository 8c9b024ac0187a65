// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Page faults (manual: on-demand paging).
 *
 * What a QP waits for is found out again when the host has answered: it tries the same access once more. So a fault
 * holds nothing of the QP but the address, by which a failure is recognised.
 */
#include "core/fault.h"
#include "core/transport.h"

#define ROOM_NS		1000000		/* a look for room in the EQ, while events wait for it */

static void end(struct skua_dev *dev, struct page_fault *fault, enum page_fault_state state)
{
	if (fault->queued)
		TAILQ_REMOVE(&dev->faults_pending, fault, entry);
	fault->queued = false;
	numtab_del(&dev->faults, fault->token);
	fault->state = state;
}

bool fault_wait(struct skua_qp *qp, enum skua_page_fault_side side)
{
	struct page_fault *fault = &qp->faults[side];
	const struct page_miss *miss = &qp->dev->miss;
	bool failed = fault->state == PAGE_FAULT_FAILED;

	if (fault->state == PAGE_FAULT_WAITING)
		return true;
	fault->state = PAGE_FAULT_NONE;
	if (failed && fault->miss.key == miss->key && fault->miss.addr == miss->addr)
		return false;
	fault->qp = qp;
	fault->side = (uint8_t)side;
	fault->miss = *miss;
	fault->token = numtab_add(&qp->dev->faults, fault);
	if (!fault->token)
		return false;
	fault->state = PAGE_FAULT_WAITING;
	fault->queued = true;
	TAILQ_INSERT_TAIL(&qp->dev->faults_pending, fault, entry);
	STAT_INC(qp->dev, page_faults);
	fault_event_retry(qp->dev);
	return true;
}

void fault_forget(struct skua_qp *qp)
{
	for (unsigned int side = 0; side < FAULT_SIDES; side++)
		if (qp->faults[side].state == PAGE_FAULT_WAITING)
			end(qp->dev, &qp->faults[side], PAGE_FAULT_NONE);
		else
			qp->faults[side].state = PAGE_FAULT_NONE;
}

static void look_for_room(struct timer *timer)
{
	struct skua_dev *dev = (void *)((char *)timer - offsetof(struct skua_dev, fault_timer));

	dev->faults_due = true;
}

/* No command need come while the host waits for pages, so a timer looks for room, too. */
void fault_event_retry(struct skua_dev *dev)
{
	struct page_fault *fault;
	int32_t budget = STEP_COST;

	dev->faults_due = false;
	while (dev->fault_eq && dev_running(dev) && (fault = TAILQ_FIRST(&dev->faults_pending))) {
		struct skua_fault_eqe eqe = {
			.side = fault->side,
			.write = fault->miss.write,
			.qpn = htole32(fault->qp->number),
			.handle = htole64(fault->qp->handle),
			.timestamp = htole64(engine_now(dev->engine)),
			.addr = htole64(fault->miss.addr),
			.length = htole64(fault->miss.length),
			.token = htole32(fault->token),
			.key = htole32(fault->miss.key),
		};

		dev->faults_due = budget <= 0;
		if (dev->faults_due)
			return;
		if (!eq_post_fault(dev, &eqe)) {
			dev->fault_timer.fire = look_for_room;
			timer_set(&dev->engine->timers, &dev->fault_timer, engine_now(dev->engine) + ROOM_NS);
			return;
		}
		budget -= EVENT_COST;
		fault->queued = false;
		TAILQ_REMOVE(&dev->faults_pending, fault, entry);
	}
}

int cmd_fault_resume(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	const struct skua_cmd_fault_resume *in = &dev->cmdq.urgent.cmd.fault_resume;
	struct page_fault *fault = numtab_get(&dev->faults, le32toh(in->token));
	struct skua_qp *qp;

	(void)cpl;
	if (!fault)
		return SKUA_CMD_BAD_OBJECT;
	if (in->result > SKUA_PAGE_FAULT_FAIL)
		return SKUA_CMD_BAD_PARAM;
	qp = fault->qp;
	end(dev, fault, in->result == SKUA_PAGE_FAULT_FAIL ? PAGE_FAULT_FAILED : PAGE_FAULT_NONE);
	if (qp->ops->resumed)
		qp->ops->resumed(qp, (enum skua_page_fault_side)fault->side);
	qp_activate(qp);
	return SKUA_CMD_OK;
}
