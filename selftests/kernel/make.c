// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One object of each kind, made and destroyed again. What fails leaves nothing behind.
 */
#include <linux/slab.h>
#include <net/ipv6.h>

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

static int st_make_mr(struct st_side *side)
{
	struct ib_mr *mr = ib_alloc_mr(side->pd, IB_MR_TYPE_MEM_REG, 1024);

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
	ib_destroy_srq(srq);
	return err;
}

static int st_make_member(struct st_side *side)
{
	union ib_gid group;
	struct ib_qp *qp;
	int err;

	ipv6_addr_set_v4mapped(cpu_to_be32(0xefc00002), (struct in6_addr *)&group);
	qp = st_ud_qp(side);
	if (IS_ERR(qp))
		return PTR_ERR(qp);
	err = ib_attach_mcast(qp, &group, 0);
	/* Whoever detaches or destroys cannot do without: that never fails for want of memory. */
	if (!err)
		WARN_ON(ib_detach_mcast(qp, &group, 0));
	ib_destroy_qp(qp);
	return err;
}

int st_make(struct ib_device *const devs[2])
{
	struct st_side *side;
	int err;

	side = kcalloc(2, sizeof(*side), GFP_KERNEL);
	if (!side)
		return -ENOMEM;
	err = st_open(side, devs, IB_POLL_WORKQUEUE);
	if (err)
		goto err_free;
	err = st_make_ah(side);
	err = err ?: st_make_mr(side);
	err = err ?: st_make_srq(side);
	err = err ?: st_make_member(side);
	st_close(side);
err_free:
	kfree(side);
	return err;
}
