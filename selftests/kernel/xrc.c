// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * XRC domains and the target QPs in them: all of XRC that the kernel can make. A work request of
 * the kernel's cannot name an SRQ of the peer, so initiators and SRQs are refused.
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

static const char *st_xrc_refused(struct st_side *side, struct ib_xrcd *xrcd)
{
	struct ib_srq_init_attr srq = {
		.srq_type = IB_SRQT_XRC, .attr = { .max_wr = ST_WRS, .max_sge = 1 },
		.ext = { .cq = side->cq, .xrc.xrcd = xrcd },
	};
	struct ib_qp_init_attr initiator = {
		.qp_type = IB_QPT_XRC_INI, .send_cq = side->cq, .sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = { .max_send_wr = ST_WRS, .max_send_sge = 1 },
	};

	CHECK(PTR_ERR(ib_create_srq(side->pd, &srq)) == -EOPNOTSUPP);
	CHECK(PTR_ERR(ib_create_qp(side->pd, &initiator)) == -EOPNOTSUPP);
	return NULL;
}

const char *st_xrc(struct st_side *side)
{
	struct st_domain domain;
	const char *wrong;

	CHECK(!st_domain_open(&domain, side));
	wrong = st_xrc_target(domain.qp);
	wrong = wrong ?: st_xrc_refused(side, domain.xrcd);
	if (st_domain_close(&domain))
		wrong = wrong ?: "the domain cannot be taken apart";
	return wrong;
}
