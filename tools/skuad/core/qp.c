// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Queue pairs: their life, their states, and their turn in the device's round.
 *
 * A QP with work is in the device's active list. When nothing is left to do it stays there
 * for the spin window, in which its record is looked at; then it asks for the doorbell and
 * leaves. A QP in ERR is looked at every 10 ms besides, since receives are never rung.
 */
#include <stdlib.h>
#include <string.h>

#include "core/qp.h"

#define ERR_LOOK_NS	10000000
#define WINDOW		256		/* WQEs without completion, at most */
#define SHADOW_MAX	(WINDOW * SKUA_WQE_MAX_BLOCKS)	/* blocks that a full window can hold */
#define WQE_TAIL	(SKUA_WQE_MAX_BLOCKS * SKUA_WQE_BLOCK)

void qp_activate(struct skua_qp *qp)
{
	qp->idle_since = 0;
	if (qp->active)
		return;
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

static void err_look(struct timer *timer)
{
	struct skua_dev *dev = (void *)((char *)timer - offsetof(struct skua_dev, err_timer));
	struct skua_qp *qp;

	TAILQ_FOREACH(qp, &dev->err_qps, err_entry)
		qp_activate(qp);
	if (!TAILQ_EMPTY(&dev->err_qps))
		timer_set(&dev->engine->timers, timer, engine_now(dev->engine) + ERR_LOOK_NS);
}

static void err_list_leave(struct skua_qp *qp)
{
	if (!qp->in_err)
		return;
	qp->in_err = false;
	TAILQ_REMOVE(&qp->dev->err_qps, qp, err_entry);
}

void qp_to_err(struct skua_qp *qp)
{
	struct skua_dev *dev = qp->dev;

	if (qp->state == SKUA_QPS_ERR || qp->state == SKUA_QPS_RESET)
		return;
	qp->state = SKUA_QPS_ERR;
	qp->draining = false;
	qp->in_err = true;
	TAILQ_INSERT_TAIL(&dev->err_qps, qp, err_entry);
	dev->err_timer.fire = err_look;
	if (!dev->err_timer.pos)
		timer_set(&dev->engine->timers, &dev->err_timer,
			  engine_now(dev->engine) + ERR_LOOK_NS);
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
	if (qp->type == SKUA_QPT_ETH) {
		if (qp_can_send(qp))
			any = eth_run(qp, budget);
	} else {
		any = roce_resp_run(qp, budget);
		if (qp_can_send(qp))
			any |= roce_req_run(qp, budget);
	}
	if (qp->state == SKUA_QPS_ERR) {
		if (qp->type == SKUA_QPT_RC) {
			roce_req_flush(qp);
			roce_resp_flush(qp);
		}
		if (qp->req.una == qp->req.tail)
			any |= sq_flush(qp);
		if (qp->type != SKUA_QPT_RC || !roce_resp_holds(qp))
			any |= rq_flush(qp);
	}
	if (any || (qp->type == SKUA_QPT_RC && (roce_resp_pending(qp) || roce_req_pending(qp)))) {
		qp->idle_since = 0;
		return any;
	}
	if (!qp->idle_since)
		qp->idle_since = now;
	if (now - qp->idle_since >= dev->engine->spin_ns && sq_ask_doorbell(qp))
		qp_deactivate(qp);
	return false;
}

/* As after CREATE_QP: no work, no state of the transport. */
static void qp_reset(struct skua_qp *qp)
{
	struct skua_dbr *dbr = qp->sq_size && dev_has(qp->dev, SKUA_F_EVENT_IDX) ?
		mem_ref_at(&qp->dev->mem, &qp->sq_dbr, sizeof(*dbr), true) : NULL;

	qp_deactivate(qp);
	err_list_leave(qp);
	timer_cancel(&qp->dev->engine->timers, &qp->timer);
	async_event_forget(qp->dev, &qp->error_event);
	async_event_forget(qp->dev, &qp->established_event);
	async_event_forget(qp->dev, &qp->drained_event);
	qp->state = SKUA_QPS_RESET;
	qp->error_raised = false;
	qp->draining = false;
	qp->dead_sq = false;
	qp->dead_rq = false;
	qp->sq_ci = 0;
	qp->sq_done = 0;
	qp->shadow_at = 0;
	qp->rq_ci = 0;
	qp->access = 0;
	memset(&qp->attr, 0, sizeof(qp->attr));
	roce_req_reset(qp);
	roce_resp_reset(qp);
	if (dbr)
		__atomic_store_n(&dbr->event, 0, __ATOMIC_RELEASE);
}

static void qp_free(struct skua_dev *dev, struct skua_qp *qp)
{
	qp_deactivate(qp);
	err_list_leave(qp);
	timer_cancel(&dev->engine->timers, &qp->timer);
	async_event_forget(dev, &qp->error_event);
	async_event_forget(dev, &qp->established_event);
	async_event_forget(dev, &qp->drained_event);
	if (qp->number) {
		port_forget_qp(dev, qp->number);
		numtab_del(&dev->qps, qp->number);
	}
	pages_release(dev, &qp->sq);
	pages_release(dev, &qp->rq);
	dev->pages_used -= qp->shadow_size;
	roce_resp_free(qp);
	free(qp->shadow);
	free(qp->wqes);
	free(qp);
}

static void qp_unref(struct skua_qp *qp)
{
	qp->pd->refs--;
	qp->scq->refs--;
	qp->rcq->refs--;
}

void qp_free_all(struct skua_dev *dev)
{
	struct skua_qp *qp;

	while ((qp = numtab_any(&dev->qps))) {
		qp_unref(qp);
		qp_free(dev, qp);
	}
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
	uint32_t window;
	int status = pages_reserve(dev, &qp->sq, &in->sq);

	if (!status)
		status = pages_reserve(dev, &qp->rq, &in->rq);
	if (status || !in->sq.npages)
		return status;
	qp->sq_size = 1u << in->log_sq_blocks;
	window = qp->sq_size < WINDOW ? qp->sq_size : WINDOW;
	if (!pages_charge(dev, qp->sq_size < SHADOW_MAX ? qp->sq_size : SHADOW_MAX))
		return SKUA_CMD_NO_RESOURCE;
	qp->shadow_size = qp->sq_size < SHADOW_MAX ? qp->sq_size : SHADOW_MAX;
	qp->wqe_mask = window - 1;
	qp->wqes = calloc(window, sizeof(*qp->wqes));
	qp->shadow = malloc((size_t)qp->shadow_size * SKUA_WQE_BLOCK + WQE_TAIL);
	return qp->wqes && qp->shadow ? SKUA_CMD_OK : SKUA_CMD_NO_RESOURCE;
}

static int load_queues(struct skua_dev *dev, struct skua_qp *qp,
		       const struct skua_cmd_create_qp *in)
{
	int status = SKUA_CMD_OK;

	if (in->sq.npages) {
		qp->sq_dbr.iova = le64toh(in->sq_dbr_addr);
		if (!mem_ref_at(&dev->mem, &qp->sq_dbr, sizeof(struct skua_dbr), true))
			return SKUA_CMD_BAD_ADDRESS;
		status = ring_load(dev, &qp->sq, &in->sq, (uint64_t)qp->sq_size * SKUA_WQE_BLOCK);
	}
	if (status || !in->rq.npages)
		return status;
	qp->rq_size = 1u << in->log_rq_size;
	qp->rq_log_stride = in->log_rq_stride;
	qp->rq_dbr.iova = le64toh(in->rq_dbr_addr);
	if (!mem_ref_at(&dev->mem, &qp->rq_dbr, sizeof(struct skua_dbr), false))
		return SKUA_CMD_BAD_ADDRESS;
	return ring_load(dev, &qp->rq, &in->rq, (uint64_t)qp->rq_size << qp->rq_log_stride);
}

int cmd_create_qp(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	const struct skua_cmd_create_qp *in = &dev->cmdq.cmd.create_qp;
	bool privileged = le32toh(in->flags) & SKUA_QP_PRIVILEGED;
	struct pd *pd = numtab_get(&dev->pds, le32toh(in->pdn));
	struct cq *scq = numtab_get(&dev->cqs, le32toh(in->send_cqn));
	struct cq *rcq = numtab_get(&dev->cqs, le32toh(in->recv_cqn));
	struct skua_qp *qp;
	int status;

	if (!pd || !scq || !rcq)
		return SKUA_CMD_BAD_OBJECT;
	if (le32toh(in->flags) & ~(uint32_t)SKUA_QP_FLAGS ||
	    le32toh(in->db_page) >= LIMIT_DB_PAGES ||
	    !((in->type == SKUA_QPT_RC && dev_has(dev, SKUA_F_RC)) ||
	      (in->type == SKUA_QPT_ETH && dev_has(dev, SKUA_F_ETHERNET) && privileged)) ||
	    bad_queues(in))
		return SKUA_CMD_BAD_PARAM;
	if (numtab_full(&dev->qps))
		return SKUA_CMD_NO_RESOURCE;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return SKUA_CMD_NO_RESOURCE;
	qp->dev = dev;
	qp->type = in->type;
	qp->privileged = privileged;
	qp->pd = pd;
	qp->scq = scq;
	qp->rcq = rcq;
	qp->db_page = le32toh(in->db_page);
	qp->handle = le64toh(in->qp_handle);
	qp->timer.fire = roce_timer;
	STAILQ_INIT(&qp->resp.held);
	status = reserve_queues(dev, qp, in);
	if (!status)
		status = load_queues(dev, qp, in);
	if (!status) {
		status = SKUA_CMD_NO_RESOURCE;
		qp->number = numtab_add(&dev->qps, qp);
	}
	if (!qp->number) {
		qp_free(dev, qp);
		return status;
	}
	pd->refs++;
	scq->refs++;
	rcq->refs++;
	qp_reset(qp);
	cpl->number = htole32(qp->number);
	return SKUA_CMD_OK;
}

int cmd_destroy_qp(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	struct skua_qp *qp = numtab_get(&dev->qps, le32toh(dev->cmdq.cmd.object.number));

	(void)cpl;
	if (!qp)
		return SKUA_CMD_BAD_OBJECT;
	/* Other engines may still read its payload and inline data: stop it, wait, free it. */
	qp_deactivate(qp);
	err_list_leave(qp);
	timer_cancel(&dev->engine->timers, &qp->timer);
	qp->state = SKUA_QPS_RESET;
	if (cmd_drain(dev))
		return -1;
	qp_unref(qp);
	qp_free(dev, qp);
	return SKUA_CMD_OK;
}

/* The transitions, and the attributes that each must and may have (IBTA, RC). */
#define INIT_MUST	(SKUA_QP_ATTR_PKEY_INDEX | SKUA_QP_ATTR_ACCESS)
#define RTR_MUST	(SKUA_QP_ATTR_AV | SKUA_QP_ATTR_PATH_MTU | SKUA_QP_ATTR_DEST_QPN | \
			 SKUA_QP_ATTR_RQ_PSN | SKUA_QP_ATTR_MAX_DEST_RD_ATOMIC | \
			 SKUA_QP_ATTR_MIN_RNR_TIMER)
#define RTR_MAY		(SKUA_QP_ATTR_ACCESS | SKUA_QP_ATTR_PKEY_INDEX)
#define RTS_MUST	(SKUA_QP_ATTR_TIMEOUT | SKUA_QP_ATTR_RETRY_CNT | \
			 SKUA_QP_ATTR_RNR_RETRY | SKUA_QP_ATTR_SQ_PSN | \
			 SKUA_QP_ATTR_MAX_RD_ATOMIC)
#define RTS_MAY		(SKUA_QP_ATTR_ACCESS | SKUA_QP_ATTR_MIN_RNR_TIMER)
#define SQD_MAY		(SKUA_QP_ATTR_PKEY_INDEX | SKUA_QP_ATTR_AV | SKUA_QP_ATTR_TIMEOUT | \
			 SKUA_QP_ATTR_RETRY_CNT | SKUA_QP_ATTR_RNR_RETRY | \
			 SKUA_QP_ATTR_MAX_RD_ATOMIC | SKUA_QP_ATTR_MAX_DEST_RD_ATOMIC | \
			 SKUA_QP_ATTR_ACCESS | SKUA_QP_ATTR_MIN_RNR_TIMER)

static const struct transition {
	uint8_t from, to;
	uint32_t must, may;
} rc_transitions[] = {
	{ SKUA_QPS_RESET, SKUA_QPS_INIT, INIT_MUST, 0 },
	{ SKUA_QPS_INIT, SKUA_QPS_INIT, 0, INIT_MUST },
	{ SKUA_QPS_INIT, SKUA_QPS_RTR, RTR_MUST, RTR_MAY },
	{ SKUA_QPS_RTR, SKUA_QPS_RTS, RTS_MUST, RTS_MAY },
	{ SKUA_QPS_RTS, SKUA_QPS_RTS, 0, RTS_MAY },
	{ SKUA_QPS_RTS, SKUA_QPS_SQD, 0, SKUA_QP_ATTR_SQD_EVENT },
	{ SKUA_QPS_SQD, SKUA_QPS_SQD, 0, SQD_MAY },
	{ SKUA_QPS_SQD, SKUA_QPS_RTS, 0, RTS_MAY },
};

static const struct transition eth_transitions[] = {
	{ SKUA_QPS_RESET, SKUA_QPS_INIT, 0, 0 },
	{ SKUA_QPS_INIT, SKUA_QPS_RTR, 0, 0 },
	{ SKUA_QPS_RTR, SKUA_QPS_RTS, 0, 0 },
};

static const struct transition *find_transition(const struct skua_qp *qp, uint8_t to)
{
	static const struct transition any_to = { 0 };
	bool eth = qp->type == SKUA_QPT_ETH;
	const struct transition *t = eth ? eth_transitions : rc_transitions;
	size_t n = eth ? sizeof(eth_transitions) : sizeof(rc_transitions);

	if (to == SKUA_QPS_RESET || to == SKUA_QPS_ERR)
		return qp->state == SKUA_QPS_RESET && to == SKUA_QPS_ERR ? NULL : &any_to;
	if (qp->draining)
		return NULL;
	for (n /= sizeof(*t); n; n--, t++)
		if (t->from == qp->state && t->to == to)
			return t;
	return NULL;
}

static bool mapped_ipv4(const uint8_t *gid)
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid, prefix, sizeof(prefix));
}

static bool av_good(const struct skua_dev *dev, const struct skua_av *av)
{
	static const uint8_t zero[16];

	if (!dev->gids[av->sgid_index].set || !memcmp(av->dmac, zero, 6) || av->dmac[0] & 1 ||
	    !memcmp(av->dgid, zero, 16) || le32toh(av->flow_label) > 0xfffff || av->sl > 7)
		return false;
	return mapped_ipv4(av->dgid) == mapped_ipv4(dev->gids[av->sgid_index].gid);
}

#define QP_RIGHTS	(SKUA_ACCESS_REMOTE_WRITE | SKUA_ACCESS_REMOTE_READ | \
			 SKUA_ACCESS_REMOTE_ATOMIC)

static int check_attr(const struct skua_qp *qp, const struct skua_qp_attr *a, uint32_t mask)
{
	if (mask & SKUA_QP_ATTR_PKEY_INDEX && a->pkey_index)
		return SKUA_CMD_BAD_PARAM;
	if (mask & SKUA_QP_ATTR_ACCESS &&
	    le32toh(a->access) & ~(uint32_t)(dev_has(qp->dev, SKUA_F_ATOMIC) ? QP_RIGHTS :
					     QP_RIGHTS & ~SKUA_ACCESS_REMOTE_ATOMIC))
		return SKUA_CMD_BAD_PARAM;
	if (mask & SKUA_QP_ATTR_AV && !av_good(qp->dev, &a->av))
		return SKUA_CMD_BAD_PARAM;
	if (mask & SKUA_QP_ATTR_PATH_MTU && (a->path_mtu < 1 || a->path_mtu > 5))
		return SKUA_CMD_BAD_PARAM;
	if (mask & SKUA_QP_ATTR_DEST_QPN && le32toh(a->dest_qpn) > NUMTAB_MASK)
		return SKUA_CMD_BAD_PARAM;
	if ((mask & SKUA_QP_ATTR_RQ_PSN && le32toh(a->rq_psn) > PSN_MASK) ||
	    (mask & SKUA_QP_ATTR_SQ_PSN && le32toh(a->sq_psn) > PSN_MASK))
		return SKUA_CMD_BAD_PARAM;
	if ((mask & SKUA_QP_ATTR_TIMEOUT && a->timeout > 31) ||
	    (mask & SKUA_QP_ATTR_MIN_RNR_TIMER && a->min_rnr_timer > 31) ||
	    (mask & SKUA_QP_ATTR_RETRY_CNT && a->retry_cnt > 7) ||
	    (mask & SKUA_QP_ATTR_RNR_RETRY && a->rnr_retry > 7))
		return SKUA_CMD_BAD_PARAM;
	if ((mask & SKUA_QP_ATTR_MAX_RD_ATOMIC && le16toh(a->max_rd_atomic) > LIMIT_RD) ||
	    (mask & SKUA_QP_ATTR_MAX_DEST_RD_ATOMIC && le16toh(a->max_dest_rd_atomic) > LIMIT_RD))
		return SKUA_CMD_BAD_PARAM;
	return SKUA_CMD_OK;
}

/* The QP's own path from its AV; without a flow label the QPNs spread the ports. */
static void set_path(struct skua_qp *qp, const struct skua_av *av)
{
	const struct gid_entry *gid = &qp->dev->gids[av->sgid_index];
	uint32_t spread = le32toh(av->flow_label);

	if (!spread)
		spread = qp->number ^ qp->dest_qpn * 0x9e3779b1u;
	qp->path = (struct roce_path){
		.vlan = gid->vlan,
		.sport = (uint16_t)(0xc000 | ((spread ^ spread >> 14) & 0x3fff)),
		.flow_label = le32toh(av->flow_label),
		.sl = av->sl & 7,
		.traffic_class = av->traffic_class,
		.hop_limit = av->hop_limit ? av->hop_limit : 64,
	};
	qp->gid_gen = qp->dev->gid_gen;
	qp->gid_good = true;
	memcpy(qp->path.smac, gid->mac, 6);
	memcpy(qp->path.dmac, av->dmac, 6);
	memcpy(qp->path.sgid, gid->gid, 16);
	memcpy(qp->path.dgid, av->dgid, 16);
}

static void apply(struct skua_qp *qp, const struct skua_qp_attr *a, uint32_t mask)
{
	struct skua_qp_attr *to = &qp->attr;

	if (mask & SKUA_QP_ATTR_ACCESS) {
		to->access = a->access;
		qp->access = le32toh(a->access);
	}
	if (mask & SKUA_QP_ATTR_DEST_QPN) {
		to->dest_qpn = a->dest_qpn;
		qp->dest_qpn = le32toh(a->dest_qpn);
	}
	if (mask & SKUA_QP_ATTR_AV) {
		to->av = a->av;
		set_path(qp, &a->av);
	}
	if (mask & SKUA_QP_ATTR_PATH_MTU) {
		to->path_mtu = a->path_mtu;
		qp->pmtu = 128u << a->path_mtu;
	}
	if (mask & SKUA_QP_ATTR_TIMEOUT)
		to->timeout = a->timeout;
	if (mask & SKUA_QP_ATTR_RETRY_CNT)
		to->retry_cnt = a->retry_cnt;
	if (mask & SKUA_QP_ATTR_RNR_RETRY)
		to->rnr_retry = a->rnr_retry;
	if (mask & SKUA_QP_ATTR_MIN_RNR_TIMER)
		to->min_rnr_timer = a->min_rnr_timer;
	if (mask & SKUA_QP_ATTR_RQ_PSN)
		qp->resp.epsn = le32toh(a->rq_psn);
	if (mask & SKUA_QP_ATTR_SQ_PSN)
		qp->req.psn = qp->req.una_psn = qp->req.sent_psn = le32toh(a->sq_psn);
	if (mask & SKUA_QP_ATTR_MAX_RD_ATOMIC) {
		to->max_rd_atomic = a->max_rd_atomic;
		qp->max_rd = le16toh(a->max_rd_atomic);
	}
	if (mask & SKUA_QP_ATTR_MAX_DEST_RD_ATOMIC) {
		to->max_dest_rd_atomic = a->max_dest_rd_atomic;
		qp->max_dest_rd = le16toh(a->max_dest_rd_atomic);
	}
}

/* In steps: it is stopped, then waits until no train refers to its WQEs. */
static int modify_to_reset(struct skua_dev *dev, struct skua_qp *qp)
{
	qp_deactivate(qp);
	qp->state = SKUA_QPS_RESET;
	if (cmd_drain(dev))
		return -1;
	qp_reset(qp);
	return SKUA_CMD_OK;
}

int cmd_modify_qp(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	const struct skua_cmd_modify_qp *in = &dev->cmdq.cmd.modify_qp;
	struct skua_qp *qp = numtab_get(&dev->qps, le32toh(in->qpn));
	uint32_t mask = le32toh(in->mask);
	const struct transition *t;
	uint8_t to;
	int status;

	(void)cpl;
	if (!qp)
		return SKUA_CMD_BAD_OBJECT;
	if (dev->cmdq.draining)
		return modify_to_reset(dev, qp);
	if (mask & ~(uint32_t)SKUA_QP_ATTR_MASK || in->attr.sq_draining)
		return SKUA_CMD_BAD_PARAM;
	status = check_attr(qp, &in->attr, mask);
	if (status)
		return status;
	if (mask & SKUA_QP_ATTR_CUR_STATE && in->attr.cur_state != qp->state)
		return SKUA_CMD_BAD_STATE;
	to = mask & SKUA_QP_ATTR_STATE ? in->attr.state : qp->state;
	t = find_transition(qp, to);
	if (!t)
		return SKUA_CMD_BAD_STATE;
	if ((mask & t->must) != t->must ||
	    mask & ~(t->must | t->may | SKUA_QP_ATTR_STATE | SKUA_QP_ATTR_CUR_STATE))
		return SKUA_CMD_BAD_PARAM;
	if (to == SKUA_QPS_RESET)
		return modify_to_reset(dev, qp);
	if (to == SKUA_QPS_ERR) {
		roce_resp_stop(qp);
		qp_to_err(qp);
		return SKUA_CMD_OK;
	}
	if (to == SKUA_QPS_RTR && qp->type == SKUA_QPT_RC) {
		status = roce_resp_start(qp);
		if (status)
			return status;
	}
	apply(qp, &in->attr, mask);
	if (to == SKUA_QPS_SQD && qp->state == SKUA_QPS_RTS) {
		qp->draining = true;
		qp->drained_wanted = mask & SKUA_QP_ATTR_SQD_EVENT;
		async_event_forget(dev, &qp->drained_event);
	}
	qp->state = to;
	if (qp_can_send(qp))
		qp_activate(qp);
	return SKUA_CMD_OK;
}

int cmd_query_qp(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	struct skua_qp *qp = numtab_get(&dev->qps, le32toh(dev->cmdq.cmd.object.number));
	struct skua_qp_attr attr;

	if (!qp)
		return SKUA_CMD_BAD_OBJECT;
	attr = qp->attr;
	attr.state = qp->state;
	attr.cur_state = qp->state;
	attr.sq_draining = qp->draining;
	attr.sq_psn = htole32(qp->req.psn);
	attr.rq_psn = htole32(qp->resp.epsn);
	return cmd_output(dev, cpl, &attr, sizeof(attr));
}
