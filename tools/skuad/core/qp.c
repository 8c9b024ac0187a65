// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Queue pairs: their life, and their turn in the device's round.
 *
 * A QP with work is in the device's active list. When nothing is left to do it stays there for the spin window, in
 * which its record is looked at; then it asks for the doorbell and leaves. While doorbells flood in it leaves without
 * asking (flood.c). A QP in ERR with a receive queue is looked at every 10 ms besides, since receives are never rung.
 */
#include <stdlib.h>
#include <string.h>

#include "core/counter.h"
#include "core/fault.h"
#include "core/mw.h"
#include "core/pacer.h"
#include "core/tags.h"
#include "core/transport.h"
#include "core/xrcd.h"

#define ERR_LOOK_NS	10000000	/* between looks at the QPs in ERR; of many at some, the more often */
#define ERR_MANY_NS	1000000
#define ERR_LOOKS	256
#define QP_FREE_COST	2048

const struct send_wqe send_wqe_blank;

void qp_activate(struct skua_qp *qp)
{
	qp->idle_since = 0;
	if (qp->active)
		return;
	flood_release(qp);
	qp->active = true;
	TAILQ_INSERT_TAIL(&qp->dev->active, qp, active_entry);
}

static void qp_deactivate(struct skua_qp *qp)
{
	if (!qp->active)
		return;
	qp->active = false;
	TAILQ_REMOVE(&qp->dev->active, qp, active_entry);
}

static void err_look_again(struct skua_dev *dev)
{
	timer_set(&dev->engine->timers, &dev->err_timer,
		  engine_now(dev->engine) + (dev->num_err > ERR_LOOKS ? ERR_MANY_NS : ERR_LOOK_NS));
}

/* They take turns. */
static void err_look(struct timer *timer)
{
	struct skua_dev *dev = (void *)((char *)timer - offsetof(struct skua_dev, err_timer));

	for (uint32_t i = 0; i < dev->num_err && i < ERR_LOOKS; i++) {
		struct skua_qp *qp = TAILQ_FIRST(&dev->err_qps);

		TAILQ_REMOVE(&dev->err_qps, qp, err_entry);
		TAILQ_INSERT_TAIL(&dev->err_qps, qp, err_entry);
		qp_activate(qp);
	}
	if (dev->num_err)
		err_look_again(dev);
}

static void err_list_leave(struct skua_qp *qp)
{
	if (!qp->in_err)
		return;
	qp->in_err = false;
	qp->dev->num_err--;
	TAILQ_REMOVE(&qp->dev->err_qps, qp, err_entry);
}

static void err_list_join(struct skua_qp *qp)
{
	struct skua_dev *dev = qp->dev;

	qp->in_err = true;
	dev->num_err++;
	TAILQ_INSERT_TAIL(&dev->err_qps, qp, err_entry);
	dev->err_timer.fire = err_look;
	if (!dev->err_timer.pos)
		err_look_again(dev);
}

void qp_to_err(struct skua_qp *qp)
{
	if (qp->state == SKUA_QPS_ERR || qp->state == SKUA_QPS_RESET)
		return;
	qp->state = SKUA_QPS_ERR;
	qp->draining = false;
	fault_forget(qp);
	if (qp->rq.size)
		err_list_join(qp);
	qp_activate(qp);
}

void qp_error(struct skua_qp *qp, uint8_t event)
{
	if (qp->state == SKUA_QPS_RESET)
		return;
	if (!qp->error_raised) {
		qp->error_raised = true;
		async_event(qp->dev, &qp->error_event, event, qp->number, qp->handle);
	}
	qp_to_err(qp);
}

void qp_fatal(struct skua_qp *qp)
{
	qp_error(qp, SKUA_EVENT_QP_FATAL);
}

void qp_drained(struct skua_qp *qp)
{
	qp->draining = false;
	if (qp->drained_wanted)
		async_event(qp->dev, &qp->drained_event, SKUA_EVENT_SQ_DRAINED, qp->number, qp->handle);
}

void qp_established(struct skua_qp *qp)
{
	if (qp->state != SKUA_QPS_RTR || qp->established)
		return;
	qp->established = true;
	async_event(qp->dev, &qp->established_event, SKUA_EVENT_COMM_EST, qp->number, qp->handle);
}

enum rq_result qp_peek_recv(struct skua_qp *qp, struct recv_wqe *wqe, uint8_t *vendor_err)
{
	enum rq_result r = rq_peek(&qp->rq, wqe, vendor_err);

	if (r == RQ_FATAL)
		qp_fatal(qp);
	return r;
}

void qp_fill_recv(const struct skua_qp *qp, struct skua_cqe *cqe)
{
	cqe->qp_handle = htole64(qp->recv_handle);
	cqe->qpn = htole32(qp->number);
	cqe->flags |= qp->recv_flags;
}

void qp_complete_recv(struct skua_qp *qp, struct skua_cqe *cqe)
{
	qp_fill_recv(qp, cqe);
	if (!cq_post(qp->dev, qp->rcq, cqe))
		qp_fatal(qp);
}

void qp_use_srq(struct skua_qp *qp, struct srq *srq)
{
	qp->rq.srq = srq;
	qp->rq.pd = srq ? srq->rq.pd : NULL;
	qp->rq.privileged = srq && srq->rq.privileged;
	qp->rcq = srq ? srq->cq : NULL;
	qp->recv_handle = srq ? srq->handle : 0;
	qp->recv_flags = SKUA_CQE_FROM_SRQ;
}

/* SRQ-6: what it had taken is complete. */
static void last_wqe_reached(struct skua_qp *qp)
{
	if (qp->last_wqe_raised)
		return;
	qp->last_wqe_raised = true;
	async_event(qp->dev, &qp->last_wqe_event, SKUA_EVENT_LAST_WQE_REACHED, qp->number, qp->handle);
}

bool qp_flush_recvs(struct skua_qp *qp, int32_t *budget)
{
	struct recv_wqe wqe;
	uint8_t vendor_err;
	bool any = false;

	if (qp->rq.srq) {
		last_wqe_reached(qp);
		return false;
	}
	while (*budget > 0) {
		enum rq_result r = qp_peek_recv(qp, &wqe, &vendor_err);
		struct skua_cqe cqe = {
			.opcode = SKUA_CQE_RECV,
			.status = SKUA_CQE_WR_FLUSH_ERR,
		};

		if (r != RQ_OK && r != RQ_BAD)
			break;
		*budget -= MESSAGE_COST;
		cqe.cookie = htole32(wqe.cookie);
		rq_take(&qp->rq);
		qp_complete_recv(qp, &cqe);
		any = true;
	}
	return any;
}

/* All that was posted, in as many turns as that takes: a program may post while it is flushed. The window is
 * short, and flushed at once. */
static bool flush(struct skua_qp *qp, int32_t *budget)
{
	uint32_t una = qp->sq.una;
	bool any, recvs = qp->ops->flush(qp);

	any = qp->sq.una != una;
	*budget -= (int32_t)(qp->sq.una - una) * MESSAGE_COST;
	if (qp->sq.una == qp->sq.tail) {
		any |= tags_flush(qp, budget);
		any |= sq_flush(qp, budget);
	}
	if (recvs && TAILQ_EMPTY(&qp->matched))
		any |= qp_flush_recvs(qp, budget);
	/* Without anything left of the turn, the queues were not looked at. */
	return any || *budget <= 0;
}

bool qp_run(struct skua_qp *qp, int32_t *budget)
{
	struct skua_dev *dev = qp->dev;
	uint64_t now = engine_now(dev->engine);
	bool any = false;

	/* Rung too early, or while a command takes it down: its queues are not looked at. */
	if (qp->state < SKUA_QPS_RTR) {
		qp_deactivate(qp);
		return false;
	}
	any = qp->ops->run(qp, budget);
	if (qp->state == SKUA_QPS_SQE)
		any |= sq_flush(qp, budget);
	if (qp->state == SKUA_QPS_ERR)
		any |= flush(qp, budget);
	if (any || qp->ops->is_pending(qp)) {
		qp->idle_since = 0;
		return any;
	}
	if (!qp->idle_since)
		qp->idle_since = now;
	if (now - qp->idle_since >= dev->engine->spin_ns && (flood_keep(qp) || sq_ask_doorbell(qp)))
		qp_deactivate(qp);
	return false;
}

void qp_stop(struct skua_qp *qp)
{
	qp_deactivate(qp);
	flood_release(qp);
	err_list_leave(qp);
	fault_forget(qp);
	pacer_free(qp);
	if (qp->ops->stop)
		qp->ops->stop(qp);
	qp->state = SKUA_QPS_RESET;
}

void qp_retire(struct skua_qp *qp)
{
	if (qp->ops->retire)
		qp->ops->retire(qp);
	qp_stop(qp);
}

int qp_halt(struct skua_qp *qp)
{
	int32_t budget = STEP_COST;

	qp_retire(qp);
	/* Other engines may still read its payload and inline data. */
	if (cmd_drain(qp->dev))
		return -1;
	tags_flush(qp, &budget);
	/* With tags or windows left, the command is called again as one that drains, although nothing is left to drain. */
	qp->dev->cmdq.draining = !TAILQ_EMPTY(&qp->matched) || !mw_forget_qp(qp, &budget);
	return qp->dev->cmdq.draining ? -1 : SKUA_CMD_OK;
}

void qp_reset(struct skua_qp *qp)
{
	struct skua_dbr *dbr = qp->sq.size && dev_has(qp->dev, SKUA_F_EVENT_IDX) ?
		mem_ref_at(&qp->dev->mem, &qp->sq.dbr, sizeof(*dbr), true) : NULL;

	qp_stop(qp);
	async_event_forget(qp->dev, &qp->error_event);
	async_event_forget(qp->dev, &qp->established_event);
	async_event_forget(qp->dev, &qp->drained_event);
	async_event_forget(qp->dev, &qp->last_wqe_event);
	qp->error_raised = false;
	qp->last_wqe_raised = false;
	qp->draining = false;
	sq_reset(&qp->sq);
	qp->rq.dead = false;
	qp->rq.ci = 0;
	qp->access = 0;
	memset(&qp->attr, 0, sizeof(qp->attr));
	qp->epsn = 0;
	qp->established = false;
	if (qp->ops->reset)
		qp->ops->reset(qp);
	if (dbr)
		__atomic_store_n(&dbr->event, 0, __ATOMIC_RELEASE);
}

static void qp_free(struct skua_dev *dev, struct skua_qp *qp)
{
	qp_stop(qp);
	async_event_forget(dev, &qp->error_event);
	async_event_forget(dev, &qp->established_event);
	async_event_forget(dev, &qp->drained_event);
	async_event_forget(dev, &qp->last_wqe_event);
	flow_forget_qp(qp);
	counter_forget_qp(qp);
	if (qp->number) {
		port_forget_qp(dev, qp->number);
		numtab_del(&dev->qps, qp->number);
	}
	pages_release(dev, &qp->sq.ring);
	pages_release(dev, &qp->rq.ring);
	dev->pages_used -= qp->sq.shadow_size;
	if (qp->ops->reset)
		qp->ops->reset(qp);
	free(qp->sq.shadow);
	free(qp->sq.wqes);
	free(qp);
}

/* It names what it was created with. What an XRC_TGT QP uses besides names it, not the other way round. */
static void qp_ref(struct skua_qp *qp)
{
	if (qp->xrcd) {
		LIST_INSERT_HEAD(&qp->xrcd->targets, qp, target_entry);
		return;
	}
	qp->pd->refs++;
	if (qp->rq.srq)
		qp->rq.srq->refs++;
	qp->scq->refs++;
	cq_join(qp->scq, &qp->send_user, qp);
	if (qp->rcq) {
		qp->rcq->refs++;
		cq_join(qp->rcq, &qp->recv_user, qp);
	}
}

static void qp_unref(struct skua_qp *qp)
{
	if (qp->xrcd) {
		LIST_REMOVE(qp, target_entry);
		return;
	}
	qp->pd->refs--;
	if (qp->rq.srq)
		qp->rq.srq->refs--;
	qp->scq->refs--;
	if (qp->rcq)
		qp->rcq->refs--;
	cq_leave(&qp->send_user);
	cq_leave(&qp->recv_user);
}

bool qp_free_all(struct skua_dev *dev, int32_t *budget)
{
	struct skua_qp *qp;

	while ((qp = numtab_any(&dev->qps, budget)) && mcast_forget_qp(qp, budget)) {
		qp_unref(qp);
		qp_free(dev, qp);
		*budget -= QP_FREE_COST;
	}
	return !dev->qps.count;
}

/* Fields of the queues that are out of range, or set where there is no queue. */
static bool bad_queues(const struct skua_cmd_create_qp *in)
{
	if (!in->sq.npages ? in->log_sq_blocks || in->sq_dbr_addr || !pagelist_empty(&in->sq) :
	    in->log_sq_blocks > LIMIT_LOG_SQ_BLOCKS || le64toh(in->sq_dbr_addr) % 64 ||
	    ring_check(&in->sq, (uint64_t)SKUA_WQE_BLOCK << in->log_sq_blocks, SKUA_WQE_BLOCK))
		return true;
	return !in->rq.npages ? in->log_rq_size || in->log_rq_stride || in->rq_dbr_addr ||
				!pagelist_empty(&in->rq) :
	       in->log_rq_size > LIMIT_LOG_RQ || in->log_rq_stride < SKUA_RQE_MIN_LOG_STRIDE ||
	       in->log_rq_stride > SKUA_RQE_MAX_LOG_STRIDE || le64toh(in->rq_dbr_addr) % 64 ||
	       ring_check(&in->rq, 1ull << (in->log_rq_size + in->log_rq_stride),
			  1u << in->log_rq_stride);
}

/* Our own memory for a queue is bounded by the quota, as page lists are. */
static int reserve_queues(struct skua_dev *dev, struct skua_qp *qp,
			  const struct skua_cmd_create_qp *in)
{
	int status = pages_reserve(dev, &qp->sq.ring, &in->sq);

	uint32_t blocks = tags_of(qp) ? RNDV_WINDOW : 0;

	if (!status)
		status = pages_reserve(dev, &qp->rq.ring, &in->rq);
	if (status)
		return status;
	if (in->sq.npages)
		blocks = qp->sq.size = 1u << in->log_sq_blocks;
	return !blocks || sq_charge(dev, &qp->sq, blocks) ? SKUA_CMD_OK : SKUA_CMD_NO_RESOURCE;
}

static int load_queues(struct skua_dev *dev, struct skua_qp *qp,
		       const struct skua_cmd_create_qp *in)
{
	int status = SKUA_CMD_OK;

	if (in->sq.npages) {
		qp->sq.dbr.iova = le64toh(in->sq_dbr_addr);
		if (!mem_ref_at(&dev->mem, &qp->sq.dbr, sizeof(struct skua_dbr), true))
			return SKUA_CMD_BAD_ADDRESS;
		status = list_load(dev, &qp->sq.ring, &in->sq, (uint64_t)qp->sq.size * SKUA_WQE_BLOCK, false);
	}
	if (status || !in->rq.npages)
		return status;
	qp->rq.size = 1u << in->log_rq_size;
	qp->rq.log_stride = in->log_rq_stride;
	qp->rq.dbr.iova = le64toh(in->rq_dbr_addr);
	if (!mem_ref_at(&dev->mem, &qp->rq.dbr, sizeof(struct skua_dbr), false))
		return SKUA_CMD_BAD_ADDRESS;
	return list_load(dev, &qp->rq.ring, &in->rq, (uint64_t)qp->rq.size << qp->rq.log_stride, false);
}

/* What makes a QP of the type that the host asks for; NULL: it has no such type, or may not. */
static const struct transport_ops *transport_of(const struct skua_dev *dev, uint8_t type, bool privileged)
{
	const struct transport_ops *ops = type < NUM_QP_TYPES ? dev->transports[type] : NULL;

	return ops && !(ops->features & ~dev->features) &&
	       (!ops->driver || privileged || ops->open & dev->features) ? ops : NULL;
}

static void qp_unmake(struct skua_dev *dev, void *object)
{
	qp_free(dev, object);
}

/* The objects that CREATE_QP names. */
struct qp_parts {
	struct pd *pd;
	struct cq *scq, *rcq;
	struct srq *srq;
	struct xrcd *xrcd;
};

static int find_parts(const struct skua_dev *dev, const struct skua_cmd_create_qp *in,
		      const struct transport_ops *ops, struct qp_parts *parts)
{
	*parts = (struct qp_parts){ 0 };
	if ((in->srqn && !dev_has(dev, SKUA_F_SRQ)) || (in->xrcdn && !dev_has(dev, SKUA_F_XRC)))
		return SKUA_CMD_BAD_PARAM;
	if (ops && ops->target) {
		parts->xrcd = numtab_get(&dev->xrcds, le32toh(in->xrcdn));
		return parts->xrcd ? SKUA_CMD_OK : SKUA_CMD_BAD_OBJECT;
	}
	parts->pd = numtab_get(&dev->pds, le32toh(in->pdn));
	parts->scq = numtab_get(&dev->cqs, le32toh(in->send_cqn));
	parts->rcq = numtab_get(&dev->cqs, le32toh(in->recv_cqn));
	parts->srq = numtab_get(&dev->srqs, le32toh(in->srqn));
	if (!parts->pd || !parts->scq || (!parts->rcq && !(ops && ops->no_recv)) || (in->srqn && !parts->srq))
		return SKUA_CMD_BAD_OBJECT;
	return SKUA_CMD_OK;
}

/* XRC-5: what an XRC_TGT QP has is its domain. */
static bool is_target(const struct skua_cmd_create_qp *in)
{
	const struct skua_cmd_create_qp target = { .type = in->type, .qp_handle = in->qp_handle, .xrcdn = in->xrcdn };

	return !memcmp(in, &target, sizeof(target));
}

/* TAG-2: what a QP of an SRQ with tags may not be. */
static bool bad_for_tags(const struct skua_cmd_create_qp *in, const struct qp_parts *parts)
{
	const struct srq *srq = parts->srq;

	if (!srq || !srq->tags)
		return false;
	if (parts->rcq != srq->cq)
		return true;
	if (in->type == SKUA_QPT_RC)
		return in->sq.npages;
	return in->type != SKUA_QPT_UD || parts->pd != srq->rq.pd || parts->scq != srq->cq;
}

/* Fields that do not go with the type of the QP. */
static bool bad_type(const struct skua_cmd_create_qp *in, const struct transport_ops *ops, const struct srq *srq)
{
	if (!ops)
		return true;
	if (ops->target)
		return !is_target(in);
	return in->xrcdn || (ops->no_recv && (in->recv_cqn || in->rq.npages)) ||
	       (srq && (in->rq.npages || !ops->srq || srq->xrcd));
}

/* The first step of CREATE_QP. */
static int qp_make(struct skua_dev *dev)
{
	const struct skua_cmd_create_qp *in = &dev->cmdq.cmd.create_qp;
	bool privileged = le32toh(in->flags) & SKUA_QP_PRIVILEGED;
	const struct transport_ops *ops = transport_of(dev, in->type, privileged);
	struct qp_parts parts;
	struct skua_qp *qp;
	struct srq *srq;
	int status = find_parts(dev, in, ops, &parts);

	if (status)
		return status;
	srq = parts.srq;
	if (le32toh(in->flags) & ~(uint32_t)SKUA_QP_FLAGS ||
	    le32toh(in->db_page) >= LIMIT_DB_PAGES || bad_type(in, ops, srq) ||
	    bad_for_tags(in, &parts) || bad_queues(in))
		return SKUA_CMD_BAD_PARAM;
	if (numtab_full(&dev->qps) || (in->type == SKUA_QPT_GSI && numtab_get(&dev->qps, 1)))
		return SKUA_CMD_NO_RESOURCE;
	qp = calloc(1, ops->qp_size);
	if (!qp)
		return SKUA_CMD_NO_RESOURCE;
	cmd_makes(dev, qp, qp_unmake);
	qp->dev = dev;
	qp->stats = &dev->stats;
	qp->serial = ++dev->qp_serial;
	qp->ops = ops;
	qp->type = in->type;
	qp->privileged = privileged;
	qp->pd = parts.pd;
	qp->scq = parts.scq;
	qp->rcq = parts.rcq;
	qp->xrcd = parts.xrcd;
	qp->db_page = le32toh(in->db_page);
	qp->handle = le64toh(in->qp_handle);
	qp->recv_handle = srq ? srq->handle : qp->handle;
	qp->recv_flags = srq ? SKUA_CQE_FROM_SRQ : 0;
	qp->rq = (struct rq){
		.dev = dev, .srq = srq, .pd = srq ? srq->rq.pd : parts.pd,
		.privileged = srq ? srq->rq.privileged : privileged,
	};
	TAILQ_INIT(&qp->matched);
	if (ops->init)
		ops->init(qp);
	return reserve_queues(dev, qp, in);
}

int cmd_create_qp(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	const struct skua_cmd_create_qp *in = &dev->cmdq.cmd.create_qp;
	int status = dev->cmdq.making ? SKUA_CMD_OK : qp_make(dev);
	struct skua_qp *qp = dev->cmdq.making;

	if (!status)
		status = load_queues(dev, qp, in);
	if (status)
		return status;
	qp->number = in->type == SKUA_QPT_GSI ? numtab_add_one(&dev->qps, qp) :
						numtab_add(&dev->qps, qp);
	if (!qp->number)
		return SKUA_CMD_NO_RESOURCE;
	qp_ref(qp);
	qp_reset(qp);
	cpl->number = htole32(qp->number);
	return SKUA_CMD_OK;
}

int cmd_destroy_qp(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	struct skua_qp *qp = numtab_get(&dev->qps, le32toh(dev->cmdq.cmd.object.number));
	int32_t budget = STEP_COST;

	(void)cpl;
	if (!qp)
		return SKUA_CMD_BAD_OBJECT;
	if (qp_halt(qp))
		return -1;
	/* As for windows: see qp_halt(). */
	dev->cmdq.draining = !mcast_forget_qp(qp, &budget);
	if (dev->cmdq.draining)
		return -1;
	qp_unref(qp);
	qp_free(dev, qp);
	return SKUA_CMD_OK;
}
