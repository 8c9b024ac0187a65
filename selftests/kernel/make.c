// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One object of each kind, made and destroyed again. What fails leaves nothing behind.
 */
#include <linux/slab.h>

#include "skua_selftest.h"

static int st_make_ah(struct st_side *side)
{
	u8 mac[ETH_ALEN];
	struct ib_ah *ah = st_ud_ah(side, mac);

	if (IS_ERR(ah))
		return PTR_ERR(ah);
	rdma_destroy_ah(ah, RDMA_DESTROY_AH_SLEEPABLE);
	return 0;
}

static int st_make_mr(struct st_side *side, enum ib_mr_type type)
{
	struct ib_mr *mr = ib_alloc_mr(side->pd, type, 256);

	if (IS_ERR(mr))
		return PTR_ERR(mr);
	return ib_dereg_mr(mr);
}

static int st_make_srq(struct st_side *side)
{
	struct ib_srq_init_attr attr = {
		.srq_type = IB_SRQT_BASIC,
		.attr = { .max_wr = ST_WRS, .max_sge = ST_SGES },
	};
	struct ib_srq *srq = ib_create_srq(side->pd, &attr);
	int err;

	if (IS_ERR(srq))
		return PTR_ERR(srq);
	attr.attr.srq_limit = 1;
	err = ib_modify_srq(srq, &attr.attr, IB_SRQ_LIMIT);
	err = err ?: ib_query_srq(srq, &attr.attr);
	attr.attr.max_wr = 4 * ST_WRS;
	err = err ?: ib_modify_srq(srq, &attr.attr, IB_SRQ_MAX_WR);
	ib_destroy_srq(srq);
	return err;
}

static int st_make_member(struct st_side *side)
{
	struct ib_qp *qp = st_join(side);

	if (IS_ERR(qp))
		return PTR_ERR(qp);
	/* Whoever detaches or destroys cannot do without: that never fails for want of memory. */
	WARN_ON(st_leave(qp));
	return 0;
}

static int st_make_domain(struct st_side *side)
{
	struct st_domain domain;
	struct ib_srq *srq;
	int err;

	err = st_domain_open(&domain, side);
	if (err)
		return err;
	srq = st_domain_srq(&domain, side->pd, side->cq, NULL, NULL);
	if (IS_ERR(srq))
		err = PTR_ERR(srq);
	else
		ib_destroy_srq(srq);
	return st_domain_close(&domain) ?: err;
}

int st_make(struct ib_device *const devs[2])
{
	struct st_side *side;
	int err;

	side = kcalloc(2, sizeof(*side), GFP_KERNEL);
	if (!side)
		return -ENOMEM;
	/* Its PDs have get_dma_mr()'s key to all memory. */
	err = st_open(side, devs, IB_POLL_WORKQUEUE);
	if (err)
		goto err_free;
	err = st_make_ah(side);
	err = err ?: st_make_mr(side, IB_MR_TYPE_MEM_REG);
	err = err ?: st_make_mr(side, IB_MR_TYPE_SG_GAPS);
	err = err ?: st_make_srq(side);
	err = err ?: st_make_member(side);
	err = err ?: st_make_domain(side);
	st_close(side);
err_free:
	kfree(side);
	return err;
}
