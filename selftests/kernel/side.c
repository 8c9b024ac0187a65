// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Two connected QPs, and posting to them.
 */
#include <linux/dma-mapping.h>
#include <linux/in6.h>
#include <linux/jiffies.h>
#include <linux/sched.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>

#include "skua_selftest.h"

const struct st_poll st_polls[ST_POLLS] = {
	{ "direct", IB_POLL_DIRECT },
	{ "softirq", IB_POLL_SOFTIRQ },
	{ "workqueue", IB_POLL_WORKQUEUE },
};

static void st_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct st_wr *wr = container_of(wc->wr_cqe, struct st_wr, cqe);

	wr->wc = *wc;
	complete(&wr->done);
}

void st_wr_init(struct st_wr *wr)
{
	wr->cqe.done = st_done;
	init_completion(&wr->done);
}

bool st_wait(struct st_side *side, struct st_wr *wr)
{
	unsigned long end = jiffies + ST_TIMEOUT;

	if (side->cq->poll_ctx != IB_POLL_DIRECT)
		return wait_for_completion_timeout(&wr->done, ST_TIMEOUT);
	while (!try_wait_for_completion(&wr->done)) {
		if (time_after(jiffies, end))
			return false;
		ib_process_cq_direct(side->cq, -1);
		cond_resched();
	}
	return true;
}

void st_fill(u8 *buf, u32 size, u8 seed)
{
	u32 i;

	for (i = 0; i < size; i++)
		buf[i] = seed + i * 7 + (i >> 8) * 3;
}

void st_event(struct ib_event *event, void *context)
{
	struct st_side *side = context;

	side->event = event->event;
	complete(&side->has_event);
}

const struct ib_qp_cap st_cap = {
	.max_send_wr = ST_WRS, .max_recv_wr = ST_WRS, .max_send_sge = ST_SGES,
	.max_recv_sge = ST_SGES, .max_inline_data = ST_INLINE,
};

static struct ib_qp *st_create_qp(struct st_side *side, struct ib_cq *cq,
				  const struct ib_qp_cap *cap)
{
	struct ib_qp_init_attr attr = {
		.event_handler = st_event, .qp_context = side,
		.send_cq = cq, .recv_cq = cq, .sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC, .cap = *cap,
	};

	return ib_create_qp(side->pd, &attr);
}

static int st_open_side(struct st_side *side, struct ib_device *dev, enum ib_poll_context poll)
{
	int err;

	side->dev = dev;
	st_wr_init(&side->send);
	st_wr_init(&side->recv);
	init_completion(&side->has_event);

	side->buf = dma_alloc_coherent(dev->dma_device, ST_BUF_SIZE, &side->dma, GFP_KERNEL);
	if (!side->buf)
		return -ENOMEM;
	side->pd = ib_alloc_pd(dev, IB_PD_UNSAFE_GLOBAL_RKEY);
	if (IS_ERR(side->pd)) {
		err = PTR_ERR(side->pd);
		goto err_buf;
	}
	/* Twice the queues: drains have work requests of their own. */
	side->cq = ib_alloc_cq(dev, side, 4 * ST_WRS, 0, poll);
	if (IS_ERR(side->cq)) {
		err = PTR_ERR(side->cq);
		goto err_pd;
	}
	side->qp = st_create_qp(side, side->cq, &st_cap);
	if (IS_ERR(side->qp)) {
		err = PTR_ERR(side->qp);
		goto err_cq;
	}
	return 0;

err_cq:
	ib_free_cq(side->cq);
err_pd:
	ib_dealloc_pd(side->pd);
err_buf:
	dma_free_coherent(dev->dma_device, ST_BUF_SIZE, side->buf, side->dma);
	return err;
}

static void st_close_side(struct st_side *side)
{
	ib_destroy_qp(side->qp);
	ib_free_cq(side->cq);
	ib_dealloc_pd(side->pd);
	dma_free_coherent(side->dev->dma_device, ST_BUF_SIZE, side->buf, side->dma);
}

int st_open(struct st_side side[2], struct ib_device *const devs[2], enum ib_poll_context poll)
{
	int err;

	memset(side, 0, 2 * sizeof(*side));
	err = st_open_side(&side[0], devs[0], poll);
	if (err)
		return err;
	err = st_open_side(&side[1], devs[1], poll);
	if (err)
		goto err_close;
	err = st_connect(side);
	if (err)
		goto err_close_both;
	return 0;

err_close_both:
	st_close_side(&side[1]);
err_close:
	st_close_side(&side[0]);
	return err;
}

void st_close(struct st_side side[2])
{
	st_close_side(&side[1]);
	st_close_side(&side[0]);
}

/* The GID of its IPv4 address, to be put back. */
static const struct ib_gid_attr *st_gid(struct ib_device *dev)
{
	const struct ib_gid_attr *attr;
	int i;

	for (i = 0; i < dev->port_data[1].immutable.gid_tbl_len; i++) {
		attr = rdma_get_gid_attr(dev, 1, i);
		if (IS_ERR(attr))
			continue;
		if (attr->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP &&
		    ipv6_addr_v4mapped((struct in6_addr *)&attr->gid))
			return attr;
		rdma_put_gid_attr(attr);
	}
	return ERR_PTR(-ENOENT);
}

int st_to_init(struct ib_qp *qp)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT, .port_num = 1,
		.qp_access_flags = IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ,
	};

	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			    IB_QP_ACCESS_FLAGS);
}

static int st_to_rtr(struct ib_qp *qp, u32 peer, const struct ib_gid_attr *own,
		     const struct ib_gid_attr *other)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTR, .path_mtu = IB_MTU_1024, .dest_qp_num = peer,
		.rq_psn = ST_PSN, .max_dest_rd_atomic = 4, .min_rnr_timer = 1,
	};
	union ib_gid dgid = other->gid;
	int err;

	attr.ah_attr.type = rdma_ah_find_type(qp->device, 1);
	rdma_ah_set_port_num(&attr.ah_attr, 1);
	rdma_ah_set_ah_flags(&attr.ah_attr, IB_AH_GRH);
	rdma_ah_set_grh(&attr.ah_attr, &dgid, 0, own->index, 1, 0);
	/* Consumers in the kernel resolve addresses themselves. */
	err = rdma_read_gid_l2_fields(other, NULL, attr.ah_attr.roce.dmac);
	if (err)
		return err;
	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
			    IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
}

static int st_to_rts(struct ib_qp *qp)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTS, .sq_psn = ST_PSN, .timeout = 10, .retry_cnt = 3,
		.rnr_retry = 3, .max_rd_atomic = 4,
	};

	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_SQ_PSN | IB_QP_TIMEOUT |
			    IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC);
}

int st_listen(struct ib_qp *qp, struct st_side *side, struct st_side *peer, u32 qpn)
{
	const struct ib_gid_attr *own, *other;
	int err;

	own = st_gid(side->dev);
	if (IS_ERR(own))
		return PTR_ERR(own);
	other = st_gid(peer->dev);
	if (IS_ERR(other)) {
		err = PTR_ERR(other);
		goto out;
	}
	err = st_to_init(qp) ?: st_to_rtr(qp, qpn, own, other);
	rdma_put_gid_attr(other);
out:
	rdma_put_gid_attr(own);
	return err;
}

int st_connect(struct st_side side[2])
{
	int err, i;

	for (i = 0, err = 0; i < 2 && !err; i++)
		err = st_listen(side[i].qp, &side[i], &side[!i], side[!i].qp->qp_num);
	for (i = 0; i < 2 && !err; i++)
		err = st_to_rts(side[i].qp);
	return err;
}

int st_reconnect(struct st_side side[2])
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };
	int err, i;

	for (i = 0; i < 2; i++) {
		err = ib_modify_qp(side[i].qp, &attr, IB_QP_STATE);
		if (err)
			return err;
		reinit_completion(&side[i].has_event);
		reinit_completion(&side[i].send.done);
		reinit_completion(&side[i].recv.done);
	}
	return st_connect(side);
}

int st_new_qp(struct st_side side[2], struct st_side *whose, struct ib_cq *cq,
	      const struct ib_qp_cap *cap)
{
	struct ib_qp *qp = st_create_qp(whose, cq, cap);

	if (IS_ERR(qp))
		return PTR_ERR(qp);
	ib_destroy_qp(whose->qp);
	whose->qp = qp;
	return st_reconnect(side);
}

int st_post_recv(struct st_side *side, u32 offset, u32 size)
{
	struct ib_sge sge = {
		.addr = side->dma + offset, .length = size, .lkey = side->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = { .wr_cqe = &side->recv.cqe, .sg_list = &sge, .num_sge = 1 };

	reinit_completion(&side->recv.done);
	return ib_post_recv(side->qp, &wr, NULL);
}

int st_post_rdma(struct st_side *side, struct st_side *peer, enum ib_wr_opcode opcode, u32 from,
		 u32 to, u32 size, int flags)
{
	bool read = opcode == IB_WR_RDMA_READ;
	struct ib_sge sge = {
		.addr = side->dma + (read ? to : from), .length = size,
		.lkey = side->pd->local_dma_lkey,
	};
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_cqe = &side->send.cqe, .sg_list = &sge, .num_sge = 1,
			.opcode = opcode, .send_flags = flags,
			.ex.imm_data = cpu_to_be32(0x12345678),
		},
		.remote_addr = peer->dma + (read ? from : to),
		.rkey = peer->pd->unsafe_global_rkey,
	};

	if (flags & IB_SEND_INLINE) {
		/* By virtual address, and without a key. */
		sge.addr = (uintptr_t)side->buf + from;
		sge.lkey = 0;
	}
	if (flags & IB_SEND_SIGNALED)
		reinit_completion(&side->send.done);
	return ib_post_send(side->qp, &wr.wr, NULL);
}

int st_do(struct st_side *side, struct ib_send_wr *wr)
{
	wr->wr_cqe = &side->send.cqe;
	wr->send_flags |= IB_SEND_SIGNALED;
	reinit_completion(&side->send.done);
	if (ib_post_send(side->qp, wr, NULL) || !st_wait(side, &side->send))
		return -1;
	return side->send.wc.status;
}
