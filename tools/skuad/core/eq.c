// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Event queues (manual: events).
 *
 * A CQ has one unconsumed EQE at most, and an EQ serves no more CQs than it has entries, so
 * completion events always find room. Asynchronous events wait in the device, one of a kind
 * and object, when the host is slow.
 */
#include <stdlib.h>

#include "base/copy.h"
#include "core/device.h"

#define COMP_EQE_SIZE	sizeof(struct skua_comp_eqe)
#define ASYNC_EQE_SIZE	sizeof(struct skua_async_eqe)

/* Events of a type that there is not are refused after this. */
static uint32_t size_of(uint8_t type)
{
	return type == SKUA_EQ_COMP ? COMP_EQE_SIZE : ASYNC_EQE_SIZE;
}

static uint32_t eqe_size(const struct eq *eq)
{
	return size_of(eq->type);
}

static void eq_unmake(struct skua_dev *dev, void *object)
{
	struct eq *eq = object;

	pages_release(dev, &eq->ring);
	free(eq);
}

/* The first step of CREATE_EQ. */
static int eq_make(struct skua_dev *dev)
{
	const struct skua_cmd_create_eq *in = &dev->cmdq.cmd.create_eq;
	uint32_t entry = size_of(in->type);
	struct eq *eq;
	int status;

	if (in->type > (dev_has(dev, SKUA_F_ON_DEMAND) ? SKUA_EQ_FAULT : SKUA_EQ_ASYNC) || in->log_size > LIMIT_LOG_EQE ||
	    le16toh(in->vector) >= SKUA_NUM_VECTORS || le64toh(in->dbr_addr) % 64 ||
	    ring_check(&in->ring, (uint64_t)entry << in->log_size, entry))
		return SKUA_CMD_BAD_PARAM;
	if ((in->type == SKUA_EQ_ASYNC && dev->async_eq) || (in->type == SKUA_EQ_FAULT && dev->fault_eq) ||
	    numtab_full(&dev->eqs))
		return SKUA_CMD_NO_RESOURCE;
	eq = calloc(1, sizeof(*eq));
	if (!eq)
		return SKUA_CMD_NO_RESOURCE;
	cmd_makes(dev, eq, eq_unmake);
	eq->type = in->type;
	eq->vector = le16toh(in->vector);
	eq->size = 1u << in->log_size;
	eq->dbr.iova = le64toh(in->dbr_addr);
	status = pages_reserve(dev, &eq->ring, &in->ring);
	if (status)
		return status;
	return mem_ref_at(&dev->mem, &eq->dbr, sizeof(struct skua_eq_dbr), false) ? SKUA_CMD_OK :
										    SKUA_CMD_BAD_ADDRESS;
}

int cmd_create_eq(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	const struct skua_cmd_create_eq *in = &dev->cmdq.cmd.create_eq;
	int status = dev->cmdq.making ? SKUA_CMD_OK : eq_make(dev);
	struct eq *eq = dev->cmdq.making;

	if (!status)
		status = list_load(dev, &eq->ring, &in->ring, (uint64_t)eq->size * eqe_size(eq), true);
	if (status)
		return status;
	eq->number = numtab_add(&dev->eqs, eq);
	if (!eq->number)
		return SKUA_CMD_NO_RESOURCE;
	if (eq->type == SKUA_EQ_ASYNC)
		dev->async_eq = eq;
	if (eq->type == SKUA_EQ_FAULT)
		dev->fault_eq = eq;
	cpl->number = htole32(eq->number);
	return SKUA_CMD_OK;
}

static void eq_free(struct skua_dev *dev, struct eq *eq)
{
	if (dev->async_eq == eq)
		dev->async_eq = NULL;
	if (dev->fault_eq == eq)
		dev->fault_eq = NULL;
	numtab_del(&dev->eqs, eq->number);
	eq_unmake(dev, eq);
}

int cmd_destroy_eq(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	struct eq *eq = numtab_get(&dev->eqs, le32toh(dev->cmdq.cmd.object.number));

	(void)cpl;
	if (!eq)
		return SKUA_CMD_BAD_OBJECT;
	if (eq->ncq || (eq == dev->fault_eq && dev->num_odp_mrs))
		return SKUA_CMD_BUSY;
	eq_free(dev, eq);
	return SKUA_CMD_OK;
}

bool eq_free_all(struct skua_dev *dev, int32_t *budget)
{
	struct eq *eq;

	while ((eq = numtab_any(&dev->eqs, budget))) {
		eq_free(dev, eq);
		*budget -= FREE_COST;
	}
	return !dev->eqs.count;
}

/* Write an EQE, whose last byte holds the phase, and interrupt if the host asks for it. */
static bool eq_write(struct skua_dev *dev, struct eq *eq, uint8_t *eqe)
{
	uint32_t size = eqe_size(eq);
	uint8_t *p = pages_at(&eq->ring, &dev->mem, (uint64_t)(eq->pi & (eq->size - 1)) * size,
			      size, true);
	struct skua_eq_dbr *dbr = mem_ref_at(&dev->mem, &eq->dbr, sizeof(*dbr), false);

	if (!p || !dbr)
		return false;
	if (!(eq->pi & eq->size))
		eqe[size - 1] |= SKUA_EQE_PHASE;
	copy_entry(p, eqe, size);
	eq->pi++;
	STAT_INC(dev, events);
	host_full_barrier();
	if (!dev_has(dev, SKUA_F_EVENT_IDX) ||
	    SKUA_EVENT_DUE((uint32_t)eq->pi, host_load32(&dbr->event), (uint32_t)eq->pi - 1)) {
		STAT_INC(dev, interrupts);
		dev->ops->raise_irq(dev->host, eq->vector);
	}
	return true;
}

/* Consumed as far as the host says; never more than was written. */
static bool eq_consumer(struct skua_dev *dev, struct eq *eq, uint32_t *ci)
{
	struct skua_eq_dbr *dbr = mem_ref_at(&dev->mem, &eq->dbr, sizeof(*dbr), false);

	if (!dbr)
		return false;
	*ci = host_load32(&dbr->ci);
	return true;
}

bool eq_post_comp(struct skua_dev *dev, struct cq *cq)
{
	struct skua_comp_eqe eqe = { .cqn = htole32(cq->number) };
	struct eq *eq = cq->eq;
	uint32_t ci, unconsumed;

	if (!eq_consumer(dev, eq, &ci))
		return false;
	unconsumed = (uint32_t)eq->pi - ci;
	/* The host will act on the EQE that it has not consumed, and see this one's cause. */
	if (unconsumed <= eq->size && cq->event_pi && eq->pi - cq->event_pi < unconsumed)
		return true;
	/* A consumer that runs backwards would let us overwrite. */
	if (unconsumed >= eq->size)
		return true;
	if (!eq_write(dev, eq, (uint8_t *)&eqe))
		return false;
	cq->event_pi = eq->pi;
	return true;
}

bool eq_has_room(struct skua_dev *dev, struct eq *eq)
{
	uint32_t ci, unconsumed, stale = eq->leavers;

	if (stale && eq_consumer(dev, eq, &ci)) {
		unconsumed = (uint32_t)eq->pi - ci;
		if (unconsumed <= eq->pi - eq->leavers_pi)
			eq->leavers = 0;
		stale = eq->leavers < unconsumed ? eq->leavers : unconsumed;
	}
	return eq->ncq + stale < eq->size;
}

void eq_leave(struct cq *cq)
{
	struct eq *eq = cq->eq;

	eq->ncq--;
	if (!cq->event_pi)
		return;
	eq->leavers++;
	if (cq->event_pi > eq->leavers_pi)
		eq->leavers_pi = cq->event_pi;
}

void async_event(struct skua_dev *dev, struct async_event *event, uint8_t type,
		 uint32_t number, uint64_t handle)
{
	bool waits = !TAILQ_EMPTY(&dev->async_pending);

	if (event->queued || !dev_running(dev))
		return;
	event->type = type;
	event->number = number;
	event->handle = handle;
	event->queued = true;
	/* After the one that says so, nothing is written any more. */
	if (event == &dev->fatal_event)
		TAILQ_INSERT_HEAD(&dev->async_pending, event, entry);
	else
		TAILQ_INSERT_TAIL(&dev->async_pending, event, entry);
	/* Those that wait come first, in a turn of their own. */
	if (waits && event != &dev->fatal_event)
		dev->events_due = true;
	else
		async_event_retry(dev);
}

void async_event_forget(struct skua_dev *dev, struct async_event *event)
{
	if (event->queued)
		TAILQ_REMOVE(&dev->async_pending, event, entry);
	event->queued = false;
}

void async_event_retry(struct skua_dev *dev)
{
	struct eq *eq = dev->async_eq;
	struct async_event *event;
	int32_t budget = STEP_COST;
	uint32_t ci;

	dev->events_due = false;
	while (eq && (event = TAILQ_FIRST(&dev->async_pending))) {
		struct skua_async_eqe eqe = {
			.type = event->type,
			.number = htole32(event->number),
			.handle = htole64(event->handle),
			.timestamp = htole64(engine_now(dev->engine)),
		};
		bool ok = eq_consumer(dev, eq, &ci);

		if (ok && (uint32_t)eq->pi - ci >= eq->size)
			return;
		dev->events_due = budget <= 0;
		if (dev->events_due)
			return;
		budget -= EVENT_COST;
		async_event_forget(dev, event);
		if (!ok || !eq_write(dev, eq, (uint8_t *)&eqe)) {
			skua_dev_fail(dev, SKUA_HEALTH_EQ_ADDRESS);
			return;
		}
		if (event == &dev->fatal_event)
			return;
	}
}

bool eq_post_fault(struct skua_dev *dev, struct skua_fault_eqe *eqe)
{
	struct eq *eq = dev->fault_eq;
	uint32_t ci;
	bool ok = eq_consumer(dev, eq, &ci);

	static_assert(sizeof(*eqe) == ASYNC_EQE_SIZE, "they are written by the same function");
	if (ok && (uint32_t)eq->pi - ci >= eq->size)
		return false;
	if (ok && eq_write(dev, eq, (uint8_t *)eqe))
		return true;
	skua_dev_fail(dev, SKUA_HEALTH_EQ_ADDRESS);
	return false;
}

void skua_dev_fail(struct skua_dev *dev, uint32_t health)
{
	/* The first cause counts, also of what the event below may find. */
	if (dev->health)
		return;
	dev->health = health;
	/* The event first: nothing is written once the device is dead, and no other event is due any more. */
	if (dev->async_eq)
		async_event(dev, &dev->fatal_event, SKUA_EVENT_DEVICE_FATAL, health, 0);
	dev->status |= SKUA_STATUS_FATAL;
}
