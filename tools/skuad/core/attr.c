// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * MODIFY_QP and QUERY_QP: states of queue pairs, and what is given with each transition
 * (manual: QP states).
 */
#include <string.h>

#include "core/pacer.h"
#include "core/transport.h"

/* The transitions, and the attributes that each must and may have (IBTA). */
struct transition {
	uint8_t from, to;
	uint32_t must, may;
};

#define INIT_MUST	(SKUA_QP_ATTR_PKEY_INDEX | SKUA_QP_ATTR_ACCESS)
#define RTR_MUST	(SKUA_QP_ATTR_AV | SKUA_QP_ATTR_PATH_MTU | SKUA_QP_ATTR_DEST_QPN | \
			 SKUA_QP_ATTR_RQ_PSN)

#define RC_RTR_MUST	(RTR_MUST | SKUA_QP_ATTR_MAX_DEST_RD_ATOMIC | SKUA_QP_ATTR_MIN_RNR_TIMER)
#define RC_RTS_MUST	(SKUA_QP_ATTR_TIMEOUT | SKUA_QP_ATTR_RETRY_CNT | \
			 SKUA_QP_ATTR_RNR_RETRY | SKUA_QP_ATTR_SQ_PSN | \
			 SKUA_QP_ATTR_MAX_RD_ATOMIC)
#define RC_RTS_MAY	(SKUA_QP_ATTR_ACCESS | SKUA_QP_ATTR_MIN_RNR_TIMER)
#define RC_SQD_MAY	(INIT_MUST | SKUA_QP_ATTR_AV | SKUA_QP_ATTR_TIMEOUT | \
			 SKUA_QP_ATTR_RETRY_CNT | SKUA_QP_ATTR_RNR_RETRY | \
			 SKUA_QP_ATTR_MAX_RD_ATOMIC | SKUA_QP_ATTR_MAX_DEST_RD_ATOMIC | \
			 SKUA_QP_ATTR_MIN_RNR_TIMER)

static const struct transition rc_transitions[] = {
	{ SKUA_QPS_RESET, SKUA_QPS_INIT, INIT_MUST, 0 },
	{ SKUA_QPS_INIT, SKUA_QPS_INIT, 0, INIT_MUST },
	{ SKUA_QPS_INIT, SKUA_QPS_RTR, RC_RTR_MUST, INIT_MUST },
	{ SKUA_QPS_RTR, SKUA_QPS_RTS, RC_RTS_MUST, RC_RTS_MAY },
	{ SKUA_QPS_RTS, SKUA_QPS_RTS, 0, RC_RTS_MAY },
	{ SKUA_QPS_RTS, SKUA_QPS_SQD, 0, SKUA_QP_ATTR_SQD_EVENT },
	{ SKUA_QPS_SQD, SKUA_QPS_SQD, 0, RC_SQD_MAY },
	{ SKUA_QPS_SQD, SKUA_QPS_RTS, 0, RC_RTS_MAY },
	{ 0 }
};

#define INI_SQD_MAY	(INIT_MUST | SKUA_QP_ATTR_AV | SKUA_QP_ATTR_TIMEOUT | SKUA_QP_ATTR_RETRY_CNT | \
			 SKUA_QP_ATTR_RNR_RETRY | SKUA_QP_ATTR_MAX_RD_ATOMIC)

/* Those of RC without what is the responder's. */
static const struct transition xrc_ini_transitions[] = {
	{ SKUA_QPS_RESET, SKUA_QPS_INIT, INIT_MUST, 0 },
	{ SKUA_QPS_INIT, SKUA_QPS_INIT, 0, INIT_MUST },
	{ SKUA_QPS_INIT, SKUA_QPS_RTR, RTR_MUST, INIT_MUST },
	{ SKUA_QPS_RTR, SKUA_QPS_RTS, RC_RTS_MUST, SKUA_QP_ATTR_ACCESS },
	{ SKUA_QPS_RTS, SKUA_QPS_RTS, 0, SKUA_QP_ATTR_ACCESS },
	{ SKUA_QPS_RTS, SKUA_QPS_SQD, 0, SKUA_QP_ATTR_SQD_EVENT },
	{ SKUA_QPS_SQD, SKUA_QPS_SQD, 0, INI_SQD_MAY },
	{ SKUA_QPS_SQD, SKUA_QPS_RTS, 0, SKUA_QP_ATTR_ACCESS },
	{ 0 }
};

/* And without what is the requester's. */
static const struct transition xrc_tgt_transitions[] = {
	{ SKUA_QPS_RESET, SKUA_QPS_INIT, INIT_MUST, 0 },
	{ SKUA_QPS_INIT, SKUA_QPS_INIT, 0, INIT_MUST },
	{ SKUA_QPS_INIT, SKUA_QPS_RTR, RC_RTR_MUST, INIT_MUST },
	{ SKUA_QPS_RTR, SKUA_QPS_RTS, SKUA_QP_ATTR_TIMEOUT | SKUA_QP_ATTR_SQ_PSN, RC_RTS_MAY },
	{ SKUA_QPS_RTS, SKUA_QPS_RTS, 0, RC_RTS_MAY },
	{ 0 }
};

static const struct transition uc_transitions[] = {
	{ SKUA_QPS_RESET, SKUA_QPS_INIT, INIT_MUST, 0 },
	{ SKUA_QPS_INIT, SKUA_QPS_INIT, 0, INIT_MUST },
	{ SKUA_QPS_INIT, SKUA_QPS_RTR, RTR_MUST, INIT_MUST },
	{ SKUA_QPS_RTR, SKUA_QPS_RTS, SKUA_QP_ATTR_SQ_PSN, SKUA_QP_ATTR_ACCESS },
	{ SKUA_QPS_RTS, SKUA_QPS_RTS, 0, SKUA_QP_ATTR_ACCESS },
	{ SKUA_QPS_RTS, SKUA_QPS_SQD, 0, SKUA_QP_ATTR_SQD_EVENT },
	{ SKUA_QPS_SQD, SKUA_QPS_SQD, 0, INIT_MUST | SKUA_QP_ATTR_AV },
	{ SKUA_QPS_SQD, SKUA_QPS_RTS, 0, SKUA_QP_ATTR_ACCESS },
	{ SKUA_QPS_SQE, SKUA_QPS_RTS, 0, SKUA_QP_ATTR_ACCESS },
	{ 0 }
};

#define UD_INIT_MUST	(SKUA_QP_ATTR_PKEY_INDEX | SKUA_QP_ATTR_QKEY)

static const struct transition ud_transitions[] = {
	{ SKUA_QPS_RESET, SKUA_QPS_INIT, UD_INIT_MUST, 0 },
	{ SKUA_QPS_INIT, SKUA_QPS_INIT, 0, UD_INIT_MUST },
	{ SKUA_QPS_INIT, SKUA_QPS_RTR, 0, UD_INIT_MUST },
	{ SKUA_QPS_RTR, SKUA_QPS_RTS, SKUA_QP_ATTR_SQ_PSN, SKUA_QP_ATTR_QKEY },
	{ SKUA_QPS_RTS, SKUA_QPS_RTS, 0, SKUA_QP_ATTR_QKEY },
	{ SKUA_QPS_RTS, SKUA_QPS_SQD, 0, SKUA_QP_ATTR_SQD_EVENT },
	{ SKUA_QPS_SQD, SKUA_QPS_SQD, 0, UD_INIT_MUST },
	{ SKUA_QPS_SQD, SKUA_QPS_RTS, 0, SKUA_QP_ATTR_QKEY },
	{ SKUA_QPS_SQE, SKUA_QPS_RTS, 0, SKUA_QP_ATTR_QKEY },
	{ 0 }
};

static const struct transition eth_transitions[] = {
	{ SKUA_QPS_RESET, SKUA_QPS_INIT, 0, 0 },
	{ SKUA_QPS_INIT, SKUA_QPS_RTR, 0, SKUA_QP_ATTR_STRIP_CVLAN },
	{ SKUA_QPS_RTR, SKUA_QPS_RTR, SKUA_QP_ATTR_STRIP_CVLAN, 0 },
	{ SKUA_QPS_RTR, SKUA_QPS_RTS, 0, SKUA_QP_ATTR_STRIP_CVLAN },
	{ SKUA_QPS_RTS, SKUA_QPS_RTS, 0, SKUA_QP_ATTR_STRIP_CVLAN },
	{ 0 }
};

/* By type; none leads to RESET, which ends a table. */
static const struct transition *const transitions[] = {
	[SKUA_QPT_RC] = rc_transitions,
	[SKUA_QPT_UC] = uc_transitions,
	[SKUA_QPT_UD] = ud_transitions,
	[SKUA_QPT_GSI] = ud_transitions,
	[SKUA_QPT_XRC_INI] = xrc_ini_transitions,
	[SKUA_QPT_XRC_TGT] = xrc_tgt_transitions,
	[SKUA_QPT_ETH] = eth_transitions,
};

static const struct transition *find_transition(const struct skua_qp *qp, uint8_t to)
{
	static const struct transition any_to = { .must = SKUA_QP_ATTR_STATE };
	const struct transition *t;

	if (to == SKUA_QPS_RESET || to == SKUA_QPS_ERR)
		return qp->state == SKUA_QPS_RESET && to == SKUA_QPS_ERR ? NULL : &any_to;
	if (qp->draining)
		return NULL;
	for (t = transitions[qp->type]; t->to; t++)
		if (t->from == qp->state && t->to == to)
			return t;
	return NULL;
}

/* What a transition may have, whatever the type of the QP. */
static uint32_t may_have(const struct transition *t)
{
	uint32_t may = t->may | SKUA_QP_ATTR_STATE | SKUA_QP_ATTR_CUR_STATE;

	if (t->to == SKUA_QPS_RTS)
		may |= SKUA_QP_ATTR_RATE_LIMIT;
	/* There is a peer. */
	if (t->to == SKUA_QPS_RTR && t->must & SKUA_QP_ATTR_AV)
		may |= SKUA_QP_ATTR_ECE;
	return may;
}

bool av_valid(const struct skua_av *av)
{
	static const uint8_t zero[16];

	return memcmp(av->dmac, zero, 6) && memcmp(av->dgid, zero, 16) && !av->rsvd &&
	       le32toh(av->flow_label) <= 0xfffff && av->sl <= 7;
}

int path_resolve(const struct skua_dev *dev, const struct skua_av *av, uint32_t qpn,
		 uint32_t dest_qpn, struct roce_path *path)
{
	const struct gid_entry *gid = &dev->gids[av->sgid_index];
	uint32_t spread = le32toh(av->flow_label);

	if (!gid->set)
		return SKUA_VENDOR_ERR_NO_PATH;
	if (gid_is_ipv4(av->dgid) != gid_is_ipv4(gid->gid))
		return SKUA_VENDOR_ERR_WQE_FORMAT;
	/* Without a flow label the QPNs spread the ports. */
	if (!spread)
		spread = qpn ^ dest_qpn * 0x9e3779b1u;
	*path = (struct roce_path){
		.vlan = gid->vlan,
		.sport = (uint16_t)(0xc000 | ((spread ^ spread >> 14) & 0x3fff)),
		.flow_label = le32toh(av->flow_label),
		.sl = av->sl,
		.traffic_class = av->traffic_class,
		.hop_limit = av->hop_limit ? av->hop_limit : 64,
	};
	memcpy(path->smac, gid->mac, 6);
	memcpy(path->dmac, av->dmac, 6);
	memcpy(path->sgid, gid->gid, 16);
	memcpy(path->dgid, av->dgid, 16);
	return SKUA_VENDOR_ERR_NONE;
}

static bool av_good(const struct skua_dev *dev, const struct skua_av *av)
{
	struct roce_path path;

	return av_valid(av) && !(av->dmac[0] & 1) && !path_resolve(dev, av, 0, 0, &path);
}

/* FEA-2: without its feature an attribute is unknown, and its fields are reserved. */
static bool bad_options(const struct skua_dev *dev, const struct skua_qp_attr *a, uint32_t mask)
{
	uint32_t rate = le32toh(a->rate_limit);

	if (!dev_has(dev, SKUA_F_RATE_LIMIT) &&
	    (mask & SKUA_QP_ATTR_RATE_LIMIT || a->rate_limit || a->rate_burst || a->rate_packet))
		return true;
	if (!dev_has(dev, SKUA_F_ECE) && (mask & SKUA_QP_ATTR_ECE || a->ece_options))
		return true;
	if (!dev_has(dev, SKUA_F_STRIP_CVLAN) && (mask & SKUA_QP_ATTR_STRIP_CVLAN || a->strip_cvlan))
		return true;
	if (mask & SKUA_QP_ATTR_ECE && le32toh(a->ece_options) & ~ECE_OPTIONS)
		return true;
	if (mask & SKUA_QP_ATTR_STRIP_CVLAN && a->strip_cvlan > 1)
		return true;
	if (!(mask & SKUA_QP_ATTR_RATE_LIMIT))
		return false;
	return rate ? rate < LIMIT_MIN_RATE || rate > PORT_MBPS * 1000 : a->rate_burst || a->rate_packet;
}

static int check_attr(const struct skua_qp *qp, const struct skua_qp_attr *a, uint32_t mask)
{
	if (mask & SKUA_QP_ATTR_PKEY_INDEX && a->pkey_index)
		return SKUA_CMD_BAD_PARAM;
	if (mask & SKUA_QP_ATTR_ACCESS && le32toh(a->access) & ~mr_remote_rights(qp->dev))
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
	return bad_options(qp->dev, a, mask) ? SKUA_CMD_BAD_PARAM : SKUA_CMD_OK;
}

static void apply(struct skua_qp *qp, const struct skua_qp_attr *a, uint32_t mask)
{
	struct skua_qp_attr *to = &qp->attr;

	if (mask & SKUA_QP_ATTR_ACCESS) {
		to->access = a->access;
		qp->access = le32toh(a->access);
	}
	if (mask & SKUA_QP_ATTR_QKEY) {
		to->qkey = a->qkey;
		qp->qkey = le32toh(a->qkey);
	}
	if (mask & SKUA_QP_ATTR_DEST_QPN) {
		to->dest_qpn = a->dest_qpn;
		qp->dest_qpn = le32toh(a->dest_qpn);
	}
	if (mask & SKUA_QP_ATTR_AV) {
		to->av = a->av;
		path_resolve(qp->dev, &a->av, qp->number, qp->dest_qpn, &qp->path);
		if (!(qp->path.traffic_class & ECN_MASK))
			qp->path.traffic_class |= ECN_ECT0;
		qp->gid_gen = qp->dev->gid_gen;
		qp->gid_good = true;
	}
	if (mask & SKUA_QP_ATTR_PATH_MTU) {
		to->path_mtu = a->path_mtu;
		qp->log_pmtu = 7 + a->path_mtu;
		qp->pmtu = 1u << qp->log_pmtu;
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
		qp->epsn = le32toh(a->rq_psn);
	if (mask & SKUA_QP_ATTR_SQ_PSN) {
		qp->sq.psn = le32toh(a->sq_psn);
		if (qp->ops->start)
			qp->ops->start(qp);
	}
	if (mask & SKUA_QP_ATTR_MAX_RD_ATOMIC) {
		to->max_rd_atomic = a->max_rd_atomic;
		qp->max_rd = le16toh(a->max_rd_atomic);
	}
	if (mask & SKUA_QP_ATTR_MAX_DEST_RD_ATOMIC) {
		to->max_dest_rd_atomic = a->max_dest_rd_atomic;
		qp->max_dest_rd = le16toh(a->max_dest_rd_atomic);
	}
	if (mask & SKUA_QP_ATTR_RATE_LIMIT) {
		to->rate_limit = a->rate_limit;
		to->rate_burst = a->rate_burst;
		to->rate_packet = a->rate_packet;
	}
	if (mask & SKUA_QP_ATTR_ECE)
		to->ece_options = a->ece_options;
	if (mask & SKUA_QP_ATTR_STRIP_CVLAN)
		to->strip_cvlan = a->strip_cvlan;
}

/* From SQE, in steps: what was posted before the command is flushed. BAD_STATE: a queue was found that cannot
 * go on. */
static int leave_sqe(struct skua_dev *dev, struct skua_qp *qp)
{
	struct cmdq *q = &dev->cmdq;
	int32_t budget = STEP_COST;
	bool any;

	if (!q->flushing)
		q->flush_to = sq_published(qp);
	q->flushing = true;
	/* A program that takes its index back is not waited for. */
	any = sq_flush(qp, &budget);
	if (qp->state != SKUA_QPS_SQE)
		return SKUA_CMD_BAD_STATE;
	return any && (int32_t)(qp->sq.ci - q->flush_to) < 0 ? -1 : SKUA_CMD_OK;
}

static int modify_to_reset(struct skua_qp *qp)
{
	if (qp_halt(qp))
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
		return modify_to_reset(qp);
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
	if ((mask & t->must) != t->must || mask & ~(t->must | may_have(t)))
		return SKUA_CMD_BAD_PARAM;
	if (to == SKUA_QPS_RESET)
		return modify_to_reset(qp);
	if (to == SKUA_QPS_ERR) {
		if (qp->ops->stop_responding)
			qp->ops->stop_responding(qp);
		qp_to_err(qp);
		return SKUA_CMD_OK;
	}
	if (qp->state == SKUA_QPS_SQE) {
		status = leave_sqe(dev, qp);
		if (status)
			return status;
	}
	if (mask & SKUA_QP_ATTR_MAX_DEST_RD_ATOMIC && qp->ops->reserve) {
		status = qp->ops->reserve(qp, le16toh(in->attr.max_dest_rd_atomic));
		if (status)
			return status;
	}
	if (mask & SKUA_QP_ATTR_RATE_LIMIT &&
	    !pacer_limit(qp, le32toh(in->attr.rate_limit) * 1000ull, le32toh(in->attr.rate_burst)))
		return SKUA_CMD_NO_RESOURCE;
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
	attr.sq_psn = htole32(qp->sq.psn);
	attr.rq_psn = htole32(qp->epsn);
	return cmd_output(dev, cpl, &attr, sizeof(attr));
}
