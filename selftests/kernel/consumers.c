// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the kernel's protocols demand of a device, or rely on. Those of programs are in
 * test_consumers.c.
 */
#include <rdma/ib_cache.h>

#include "skua_selftest.h"

/* Without these, NVMe, NFS, iSER, SRP and others refuse the device, or register too much. */
static const char *st_flags(const struct ib_device *dev)
{
	u64 kernel = dev->attrs.kernel_cap_flags;

	CHECK(dev->attrs.device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS);
	CHECK(kernel & IBK_LOCAL_DMA_LKEY);
	CHECK(kernel & IBK_SG_GAPS_REG);
	CHECK(!(kernel & IBK_INTEGRITY_HANDOVER));
	CHECK(dev->local_dma_lkey);
	CHECK(dev->node_type == RDMA_NODE_IB_CA);
	CHECK(dev->node_guid);
	return NULL;
}

static const char *st_limits(const struct ib_device *dev)
{
	const struct ib_device_attr *attrs = &dev->attrs;

	CHECK(attrs->max_qp_wr >= 8192);
	CHECK(attrs->max_cqe >= 65536);
	CHECK(attrs->max_srq_wr >= 4096);
	CHECK(attrs->max_srq_sge >= 5);
	CHECK(attrs->max_srq >= dev->num_comp_vectors);
	CHECK(attrs->max_send_sge == 30);
	CHECK(attrs->max_recv_sge == 30);
	/* Above 16, the NFS client registers each 16 pages apart. */
	CHECK(attrs->max_sge_rd == 16);
	/* The targets use SGEs alone. */
	CHECK(!attrs->max_sgl_rd);
	CHECK(attrs->max_fast_reg_page_list_len >= 1024);
	CHECK(attrs->max_mr_size >= BIT_ULL(32));
	CHECK(attrs->max_qp_rd_atom >= 32);
	CHECK(attrs->max_qp_init_rd_atom >= 32);
	CHECK(attrs->atomic_cap == IB_ATOMIC_HCA);
	CHECK(attrs->masked_atomic_cap == IB_ATOMIC_HCA);
	CHECK(attrs->vendor_id && attrs->vendor_id != 0xffffff);
	return NULL;
}

static const char *st_port(struct ib_device *dev)
{
	struct ib_port_attr port;
	union ib_gid gid;

	CHECK(!ib_query_port(dev, 1, &port));
	CHECK(port.state == IB_PORT_ACTIVE);
	CHECK(rdma_port_get_link_layer(dev, 1) == IB_LINK_LAYER_ETHERNET);
	/* That of the MAC: SRP and SMC look at no other. */
	CHECK(!rdma_query_gid(dev, 1, 0, &gid));
	CHECK(!rdma_is_zero_gid(&gid));
	return NULL;
}

/* NVMe, iSER and rtrs find what they have of a device by its GUID. */
const char *st_announced(struct st_side *side)
{
	const char *wrong = NULL;
	int i;

	for (i = 0; i < 2 && !wrong; i++)
		wrong = st_flags(side[i].dev) ?: st_limits(side[i].dev) ?: st_port(side[i].dev);
	CHECK(wrong || side[0].dev->node_guid != side[1].dev->node_guid);
	return wrong;
}

/* A CQ as SMC makes it, an SRQ as UCX does, and a QP as large as that of a target of iSER. */
const char *st_demanded_queues(struct st_side *side)
{
	struct ib_srq_init_attr srq_attr = { .attr = { .max_wr = 4096, .max_sge = 5 } };
	struct ib_qp_init_attr attr = {
		.sq_sig_type = IB_SIGNAL_REQ_WR, .qp_type = IB_QPT_RC,
		.cap = {
			.max_send_wr = 8192, .max_recv_wr = 8192,
			.max_send_sge = 6, .max_recv_sge = 5,
		},
	};
	struct ib_cq *cq = ib_alloc_cq(side->dev, NULL, 32766, 0, IB_POLL_WORKQUEUE);
	struct ib_srq *srq = ib_create_srq(side->pd, &srq_attr);
	bool made = !IS_ERR(cq) && !IS_ERR(srq);
	struct ib_qp *qp = NULL;

	if (made) {
		attr.send_cq = cq;
		attr.recv_cq = cq;
		qp = ib_create_qp(side->pd, &attr);
		made = !IS_ERR(qp);
		if (made)
			ib_destroy_qp(qp);
	}
	if (!IS_ERR(srq))
		ib_destroy_srq(srq);
	if (!IS_ERR(cq))
		ib_free_cq(cq);
	CHECK(made);
	return NULL;
}

static const char *st_wait_for(struct st_side *side, enum ib_wc_status status)
{
	CHECK(st_wait(side, &side->send));
	CHECK(side->send.wc.status == status);
	return NULL;
}

/* srpt waits for a WRITE of nothing, by no key; once more when the QP is in ERR. */
const char *st_write_of_nothing(struct st_side *side)
{
	struct st_side *a = &side[0];
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_cqe = &a->send.cqe, .opcode = IB_WR_RDMA_WRITE,
			.send_flags = IB_SEND_SIGNALED,
		},
	};
	struct ib_qp_attr err = { .qp_state = IB_QPS_ERR };
	const char *wrong;

	reinit_completion(&a->send.done);
	CHECK(!ib_post_send(a->qp, &wr.wr, NULL));
	wrong = st_wait_for(a, IB_WC_SUCCESS);
	if (wrong)
		return wrong;
	CHECK(!ib_modify_qp(a->qp, &err, IB_QP_STATE));
	reinit_completion(&a->send.done);
	CHECK(!ib_post_send(a->qp, &wr.wr, NULL));
	wrong = st_wait_for(a, IB_WC_WR_FLUSH_ERR);
	CHECK(wrong || !st_reconnect(side));
	return wrong;
}

/*
 * query_qp tells what the QP takes. SMC, which asks for no inline data, posts some by virtual
 * addresses if that says that there may be more than 44 bytes.
 */
const char *st_queried_caps(struct st_side *side)
{
	struct ib_qp_init_attr attr = {
		.send_cq = side->cq, .recv_cq = side->cq, .sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
		.cap = {
			.max_send_wr = 48, .max_recv_wr = 48,
			.max_send_sge = 2, .max_recv_sge = 1,
		},
	}, queried;
	struct ib_qp *qp = ib_create_qp(side->pd, &attr);
	struct ib_qp_attr qp_attr;
	int err;

	CHECK(!IS_ERR(qp));
	err = ib_query_qp(qp, &qp_attr, IB_QP_CAP, &queried);
	ib_destroy_qp(qp);
	CHECK(!err);
	CHECK(queried.cap.max_inline_data <= 44);
	CHECK(queried.cap.max_send_wr == 48);
	/* SMB fills what it asks for, and then needs room for ib_drain_rq(). */
	CHECK(queried.cap.max_recv_wr == 64);
	CHECK(queried.cap.max_send_sge >= 2 && queried.cap.max_recv_sge >= 1);
	CHECK(!memcmp(&queried.cap, &attr.cap, sizeof(attr.cap)));
	CHECK(!memcmp(&queried.cap, &qp_attr.cap, sizeof(attr.cap)));

	/* One that asked for inline data has it. */
	CHECK(!ib_query_qp(side->qp, &qp_attr, IB_QP_CAP, &queried));
	CHECK(queried.cap.max_inline_data >= ST_INLINE);
	return NULL;
}

/* RDS asks for that, of memory that it cannot pin. No program's context would serve its faults. */
const char *st_on_demand(struct st_side *side)
{
	struct ib_mr *mr = ib_reg_user_mr(side->pd, PAGE_SIZE, PAGE_SIZE, 0,
					  IB_ACCESS_LOCAL_WRITE | IB_ACCESS_ON_DEMAND);

	CHECK(IS_ERR(mr));
	CHECK(PTR_ERR(mr) == -EOPNOTSUPP);
	return NULL;
}
