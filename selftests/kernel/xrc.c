// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * XRC domains, and the SRQs and target QPs in them, without messages. A work request of the kernel
 * cannot name an SRQ of the peer, so initiators are refused, and programs have to send (xrc_srq.c).
 */
#include "skua_selftest.h"

int st_domain_open(struct st_domain *domain, struct st_side *side)
{
	struct ib_qp_init_attr attr = { .qp_type = IB_QPT_XRC_TGT };
	int err;

	domain->xrcd = ib_alloc_xrcd_user(side->dev, NULL, NULL);
	if (IS_ERR(domain->xrcd))
		return PTR_ERR(domain->xrcd);
	attr.xrcd = domain->xrcd;
	domain->qp = ib_create_qp(side->pd, &attr);
	if (!IS_ERR(domain->qp))
		return 0;
	err = PTR_ERR(domain->qp);
	domain->qp = NULL;
	ib_dealloc_xrcd_user(domain->xrcd, NULL);
	return err;
}

int st_domain_close(struct st_domain *domain)
{
	struct ib_qp *qp = domain->qp;

	domain->qp = NULL;
	return qp ? ib_destroy_qp(qp) ?: ib_dealloc_xrcd_user(domain->xrcd, NULL) : 0;
}

static int st_xrc_state(struct ib_qp *qp)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;

	return ib_query_qp(qp, &attr, IB_QP_STATE, &init) ?: attr.qp_state;
}

/* XRC-5: it has no queues. */
static const char *st_xrc_target(struct ib_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	struct ib_send_wr send = { .opcode = IB_WR_SEND };
	struct ib_recv_wr recv = {};

	CHECK(st_xrc_state(qp) == IB_QPS_RESET);
	CHECK(!st_to_init(qp));
	CHECK(st_xrc_state(qp) == IB_QPS_INIT);
	CHECK(ib_post_recv(qp, &recv, NULL) == -EINVAL);
	CHECK(!ib_modify_qp(qp, &attr, IB_QP_STATE));
	CHECK(st_xrc_state(qp) == IB_QPS_ERR);
	CHECK(ib_post_recv(qp, &recv, NULL) == -EINVAL);
	CHECK(ib_post_send(qp, &send, NULL));
	return NULL;
}

struct ib_srq *st_domain_srq(struct st_domain *domain, struct ib_pd *pd, struct ib_cq *cq,
			     void (*handler)(struct ib_event *event, void *context),
			     void *context)
{
	struct ib_srq_init_attr attr = {
		.event_handler = handler, .srq_context = context, .srq_type = IB_SRQT_XRC,
		.attr = { .max_wr = ST_WRS, .max_sge = 1 },
		.ext = { .cq = cq, .xrc.xrcd = domain->xrcd },
	};

	return ib_create_srq(pd, &attr);
}

/* An errno, or 0: there was such an SRQ. */
static int st_try_srq(struct st_side *side, struct ib_srq_init_attr *attr)
{
	struct ib_srq *srq = ib_create_srq(side->pd, attr);

	if (IS_ERR(srq))
		return PTR_ERR(srq);
	ib_destroy_srq(srq);
	return 0;
}

/* Whatever @attr is changed to is refused. */
static const char *st_xrc_bad_srqs(struct st_side *side, struct ib_xrcd *xrcd,
				   struct ib_xrcd *foreign)
{
	const struct ib_srq_init_attr good = {
		.srq_type = IB_SRQT_XRC, .attr = { .max_wr = ST_WRS, .max_sge = 1 },
		.ext = { .cq = side->cq, .xrc.xrcd = xrcd },
	};
	struct ib_srq_init_attr attr = good;

	CHECK(!st_try_srq(side, &attr));
	attr.ext.xrc.xrcd = NULL;
	CHECK(st_try_srq(side, &attr) == -EINVAL);
	attr.ext.xrc.xrcd = foreign;
	CHECK(st_try_srq(side, &attr) == -EINVAL);
	attr = good;
	attr.attr.max_wr = 0;
	CHECK(st_try_srq(side, &attr) == -EINVAL);
	attr = good;
	attr.attr.srq_limit = ST_WRS + 1;
	CHECK(st_try_srq(side, &attr) == -EINVAL);
	attr = good;
	attr.srq_type = IB_SRQT_TM;
	attr.ext.tag_matching.max_num_tags = 1;
	CHECK(st_try_srq(side, &attr) == -EOPNOTSUPP);
	return NULL;
}

/* Each device numbers its domains by itself. This one of the other device has @xrcd's number. */
static const char *st_xrc_foreign_domain(struct st_side *side, struct ib_xrcd *xrcd)
{
	struct ib_xrcd *foreign = kmemdup(xrcd, side->dev->ops.size_ib_xrcd, GFP_KERNEL);
	const char *wrong;

	if (!foreign)
		return "no memory";
	foreign->device = side[1].dev;
	wrong = st_xrc_bad_srqs(side, xrcd, foreign);
	kfree(foreign);
	return wrong;
}

/* XRC-3: no connection but that of a target QP has an XRC SRQ. */
static const char *st_xrc_bad_qps(struct st_side *side, struct ib_srq *srq)
{
	struct ib_qp_init_attr attr = {
		.qp_type = IB_QPT_RC, .send_cq = side->cq, .recv_cq = side->cq, .srq = srq,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = { .max_send_wr = ST_WRS, .max_send_sge = 1 },
	};

	CHECK(PTR_ERR(ib_create_qp(side->pd, &attr)) == -EINVAL);
	attr.srq = NULL;
	attr.recv_cq = NULL;
	attr.qp_type = IB_QPT_XRC_INI;
	CHECK(PTR_ERR(ib_create_qp(side->pd, &attr)) == -EOPNOTSUPP);
	return NULL;
}

static const char *st_xrc_srq(struct st_side *side, struct st_domain *domain)
{
	struct ib_srq *srq = st_domain_srq(domain, side->pd, side->cq, NULL, NULL);
	const char *wrong;

	CHECK(!IS_ERR(srq));
	wrong = srq->ext.xrc.srq_num ? NULL : "it has no number";
	wrong = wrong ?: st_xrc_bad_qps(side, srq);
	ib_destroy_srq(srq);
	return wrong;
}

const char *st_xrc(struct st_side *side)
{
	struct st_domain domain;
	const char *wrong;

	CHECK(!st_domain_open(&domain, side));
	wrong = st_xrc_target(domain.qp);
	wrong = wrong ?: st_xrc_foreign_domain(side, domain.xrcd);
	wrong = wrong ?: st_xrc_srq(side, &domain);
	if (st_domain_close(&domain))
		wrong = wrong ?: "the domain cannot be taken apart";
	return wrong;
}
