// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion queues: writing CQEs, and telling the host (manual: CQEs, arming).
 */
#include <stdlib.h>

#include "base/copy.h"
#include "core/qp.h"

#define TELL_COST	512	/* a QP, with its event */

/* CQ-7: may the event wait for more CQEs than those that are there since the CQ was armed at index @from? */
static bool cq_holds(struct skua_dev *dev, struct cq *cq, uint32_t from)
{
	if ((int32_t)(cq->urgent_pi - from) > 0 || cq->pi - from >= cq->hold_count)
		return false;
	/* The host may have consumed what an event waited for, and armed the CQ anew. */
	if (!cq->hold_timer.pos || cq->hold_from != from)
		timer_set(&dev->engine->timers, &cq->hold_timer, engine_now(dev->engine) + cq->hold_ns);
	cq->hold_from = from;
	return true;
}

/* Does the host wait for what has been written? Then it is told, at once or when the CQ holds no longer: true. */
static bool cq_notify(struct skua_dev *dev, struct cq *cq, struct skua_cq_dbr *dbr)
{
	uint64_t arm = host_load64(&dbr->arm);
	uint32_t type = SKUA_CQ_ARM_GET_TYPE(arm);
	uint32_t from = SKUA_CQ_ARM_GET_CI(arm);
	bool due;

	if (cq->error || type == SKUA_CQ_ARM_NONE || SKUA_CQ_ARM_GET_SEQ(arm) == cq->fired_seq)
		return false;
	if (type == SKUA_CQ_ARM_SOLICITED)
		due = cq->solicited_news && (int32_t)(cq->solicited_pi - from) > 0;
	else
		due = cq->news && (int32_t)(cq->pi - from) > 0;
	if (!due)
		return false;
	if (cq->hold_ns && cq_holds(dev, cq, from))
		return true;
	timer_cancel(&dev->engine->timers, &cq->hold_timer);
	cq->urgent_pi = from;
	cq->fired_seq = SKUA_CQ_ARM_GET_SEQ(arm);
	cq->news = cq->solicited_news = false;
	if (!eq_post_comp(dev, cq))
		cq_fail(dev, cq);
	return true;
}

static void cq_fire(struct cq *cq)
{
	struct skua_cq_dbr *dbr = mem_ref_at(&cq->dev->mem, &cq->dbr, sizeof(*dbr), false);

	if (dbr && dev_running(cq->dev))
		cq_notify(cq->dev, cq, dbr);
}

/* The CQEs before @pi let no event wait any more. */
static void cq_urgent(struct cq *cq, uint32_t pi)
{
	if ((int32_t)(pi - cq->urgent_pi) > 0)
		cq->urgent_pi = pi;
}

static void cq_held_enough(struct timer *timer)
{
	struct cq *cq = (void *)((char *)timer - offsetof(struct cq, hold_timer));

	cq_urgent(cq, cq->hold_from + 1);
	cq_fire(cq);
}

static void cq_unmake(struct skua_dev *dev, void *object)
{
	struct cq *cq = object;

	timer_cancel(&dev->engine->timers, &cq->hold_timer);
	pages_release(dev, &cq->ring);
	free(cq);
}

/* The first step of CREATE_CQ. */
static int cq_make(struct skua_dev *dev)
{
	const struct skua_cmd_create_cq *in = &dev->cmdq.cmd.create_cq;
	struct eq *eq = numtab_get(&dev->eqs, le32toh(in->eqn));
	struct cq *cq;
	int status;

	if (!eq)
		return SKUA_CMD_BAD_OBJECT;
	if (eq->type != SKUA_EQ_COMP || in->log_size > LIMIT_LOG_CQE || le32toh(in->db_page) >= LIMIT_DB_PAGES ||
	    le64toh(in->dbr_addr) % 64 ||
	    ring_check(&in->ring, sizeof(struct skua_cqe) << in->log_size, sizeof(struct skua_cqe)))
		return SKUA_CMD_BAD_PARAM;
	if (!eq_has_room(dev, eq) || numtab_full(&dev->cqs))
		return SKUA_CMD_NO_RESOURCE;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return SKUA_CMD_NO_RESOURCE;
	cmd_makes(dev, cq, cq_unmake);
	LIST_INIT(&cq->users);
	cq->dev = dev;
	cq->hold_timer.fire = cq_held_enough;
	cq->eq = eq;
	cq->size = 1u << in->log_size;
	cq->db_page = le32toh(in->db_page);
	cq->handle = le64toh(in->cq_handle);
	cq->dbr.iova = le64toh(in->dbr_addr);
	status = pages_reserve(dev, &cq->ring, &in->ring);
	if (status)
		return status;
	return mem_ref_at(&dev->mem, &cq->dbr, sizeof(struct skua_cq_dbr), false) ? SKUA_CMD_OK :
										    SKUA_CMD_BAD_ADDRESS;
}

int cmd_create_cq(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	const struct skua_cmd_create_cq *in = &dev->cmdq.cmd.create_cq;
	int status = dev->cmdq.making ? SKUA_CMD_OK : cq_make(dev);
	struct cq *cq = dev->cmdq.making;

	if (!status)
		status = list_load(dev, &cq->ring, &in->ring, (uint64_t)cq->size * sizeof(struct skua_cqe), true);
	if (status)
		return status;
	cq->number = numtab_add(&dev->cqs, cq);
	if (!cq->number)
		return SKUA_CMD_NO_RESOURCE;
	cq->eq->ncq++;
	cpl->number = htole32(cq->number);
	return SKUA_CMD_OK;
}

/* Does a ring of so many CQEs hold those that the host has not consumed? */
static bool cq_fits(struct skua_dev *dev, struct cq *cq, uint32_t size)
{
	struct skua_cq_dbr *dbr = mem_ref_at(&dev->mem, &cq->dbr, sizeof(*dbr), false);
	uint32_t ci;

	if (!dbr || cq->error)
		return false;
	ci = host_load32(&dbr->ci);
	/* Not what the host claims to have consumed and was not there. */
	if (cq->pi - ci <= cq->size)
		cq->ci = ci;
	return cq->pi - cq->ci <= size;
}

/* The first step of RESIZE_CQ. */
static int begin_resize(struct skua_dev *dev, struct cq *cq)
{
	const struct skua_cmd_resize_cq *in = &dev->cmdq.cmd.resize_cq;

	if (in->log_size > LIMIT_LOG_CQE ||
	    ring_check(&in->ring, sizeof(struct skua_cqe) << in->log_size, sizeof(struct skua_cqe)))
		return SKUA_CMD_BAD_PARAM;
	return cq_fits(dev, cq, 1u << in->log_size) ? list_begin(dev, &in->ring) : SKUA_CMD_BAD_STATE;
}

int cmd_resize_cq(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	const struct skua_cmd_resize_cq *in = &dev->cmdq.cmd.resize_cq;
	struct cq *cq = numtab_get(&dev->cqs, le32toh(in->cqn));
	int status;

	if (!cq)
		return SKUA_CMD_BAD_OBJECT;
	status = dev->cmdq.making ? SKUA_CMD_OK : begin_resize(dev, cq);
	if (!status)
		status = list_load(dev, dev->cmdq.making, &in->ring, sizeof(struct skua_cqe) << in->log_size, true);
	/* More CQEs may have come since the first step. */
	if (!status && !cq_fits(dev, cq, 1u << in->log_size))
		status = SKUA_CMD_BAD_STATE;
	if (status)
		return status;
	list_replace(dev, &cq->ring);
	cq->size = 1u << in->log_size;
	cpl->index = htole32(cq->pi);
	return SKUA_CMD_OK;
}

int cmd_modify_cq(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	const struct skua_cmd_modify_cq *in = &dev->cmdq.cmd.modify_cq;
	struct cq *cq = numtab_get(&dev->cqs, le32toh(in->cqn));

	(void)cpl;
	if (!cq)
		return SKUA_CMD_BAD_OBJECT;
	/* What waits by the numbers of before waits no longer. */
	cq->hold_ns = 0;
	cq_fire(cq);
	timer_cancel(&dev->engine->timers, &cq->hold_timer);
	/* Where one CQE is enough, or may not wait, none does. */
	cq->hold_count = le16toh(in->count);
	cq->hold_ns = cq->hold_count > 1 ? le16toh(in->period) * 1000ull : 0;
	return SKUA_CMD_OK;
}

static void cq_free(struct skua_dev *dev, struct cq *cq)
{
	if (cq->telling)
		TAILQ_REMOVE(&dev->failed_cqs, cq, failed_entry);
	async_event_forget(dev, &cq->error_event);
	eq_leave(cq);
	numtab_del(&dev->cqs, cq->number);
	cq_unmake(dev, cq);
}

int cmd_destroy_cq(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	struct cq *cq = numtab_get(&dev->cqs, le32toh(dev->cmdq.cmd.object.number));

	(void)cpl;
	if (!cq)
		return SKUA_CMD_BAD_OBJECT;
	if (cq->refs)
		return SKUA_CMD_BUSY;
	cq_free(dev, cq);
	return SKUA_CMD_OK;
}

bool cq_free_all(struct skua_dev *dev, int32_t *budget)
{
	struct cq *cq;

	while ((cq = numtab_any(&dev->cqs, budget))) {
		cq_free(dev, cq);
		*budget -= FREE_COST;
	}
	return !dev->cqs.count;
}

void cq_join(struct cq *cq, struct cq_user *user, struct skua_qp *qp)
{
	user->qp = qp;
	LIST_INSERT_HEAD(&cq->users, user, entry);
}

void cq_leave(struct cq_user *user)
{
	if (user->qp)
		LIST_REMOVE(user, entry);
	user->qp = NULL;
}

/* Nothing can be written into it any more: its QPs are of no use. One that tries to complete learns it there and
 * then, the others in steps. */
void cq_fail(struct skua_dev *dev, struct cq *cq)
{
	cq->error = true;
	STAT_INC(dev, cq_overflows);
	async_event(dev, &cq->error_event, SKUA_EVENT_CQ_ERR, cq->number, cq->handle);
	cq->telling = true;
	TAILQ_INSERT_TAIL(&dev->failed_cqs, cq, failed_entry);
}

bool cq_run(struct skua_dev *dev)
{
	int32_t budget = STEP_COST;
	struct cq_user *user;
	struct skua_qp *qp;
	struct cq *cq;

	while (budget > 0 && (cq = TAILQ_FIRST(&dev->failed_cqs))) {
		budget -= TELL_COST;
		user = LIST_FIRST(&cq->users);
		if (!user) {
			TAILQ_REMOVE(&dev->failed_cqs, cq, failed_entry);
			cq->telling = false;
			continue;
		}
		qp = user->qp;
		cq_leave(user);
		qp_fatal(qp);
	}
	return budget < STEP_COST;
}

bool cq_post(struct skua_dev *dev, struct cq *cq, struct skua_cqe *cqe)
{
	struct skua_cq_dbr *dbr;
	uint8_t *p;

	if (cq->error || !dev_running(dev))
		return !cq->error;
	dbr = mem_ref_at(&dev->mem, &cq->dbr, sizeof(*dbr), false);
	p = pages_at(&cq->ring, &dev->mem, (uint64_t)(cq->pi & (cq->size - 1)) * sizeof(*cqe),
		     sizeof(*cqe), true);
	if (dbr && cq->pi - cq->ci >= cq->size)
		cq->ci = host_load32(&dbr->ci);
	/* Never over what the host has not consumed, nor believe that it consumed more. */
	if (!dbr || !p || cq->pi - cq->ci >= cq->size) {
		cq_fail(dev, cq);
		return false;
	}
	if (cqe->status != SKUA_CQE_SUCCESS) {
		if (cqe->status != SKUA_CQE_WR_FLUSH_ERR)
			STAT_INC(dev, cqe_errors);
		cq_urgent(cq, cq->pi + 1);
	}
	if (!(cq->pi & cq->size))
		cqe->flags |= SKUA_CQE_PHASE;
	cqe->timestamp = htole64(engine_now(dev->engine));
	copy_entry(p, cqe, sizeof(*cqe));
	cq->pi++;
	cq->news = true;
	if (cqe->flags & SKUA_CQE_SOLICITED || cqe->status != SKUA_CQE_SUCCESS) {
		cq->solicited_pi = cq->pi;
		cq->solicited_news = true;
	}
	host_full_barrier();
	cq_notify(dev, cq, dbr);
	return !cq->error;
}

void cq_arm_doorbell(struct skua_dev *dev, uint32_t cqn, uint32_t db_page)
{
	struct cq *cq = numtab_get(&dev->cqs, cqn);
	struct skua_cq_dbr *dbr;

	if (!cq || cq->db_page != db_page) {
		flood_bad_doorbell(dev);
		return;
	}
	dbr = mem_ref_at(&dev->mem, &cq->dbr, sizeof(*dbr), false);
	if (!dbr || !cq_notify(dev, cq, dbr))
		flood_doorbell(dev);
}
