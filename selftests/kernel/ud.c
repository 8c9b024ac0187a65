// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Datagrams of the kernel's: what a completion says of where one came from, and how a QP goes on
 * after one that could not be sent. What GSI does is what the connection manager's tests show.
 */
#include <linux/etherdevice.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>

#include "skua_selftest.h"

#define ST_QKEY		0x11223344
#define ST_GRH		40
#define ST_GROUP	cpu_to_be32(0xefc00001)

/**
 * struct st_ud - datagram QPs beside the connected ones of two sides
 * @qp: one of each
 * @ah: from each side to the other
 * @mac: of each
 */
struct st_ud {
	struct ib_qp *qp[2];
	struct ib_ah *ah[2];
	u8 mac[2][ETH_ALEN];
};

struct ib_qp *st_ud_qp(struct st_side *side)
{
	struct ib_qp_init_attr init = {
		.send_cq = side->cq, .recv_cq = side->cq,
		.sq_sig_type = IB_SIGNAL_REQ_WR, .qp_type = IB_QPT_UD,
		.cap = {
			.max_send_wr = ST_WRS, .max_recv_wr = ST_WRS,
			.max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = ST_INLINE,
		},
	};
	struct ib_qp_attr attr = { .qp_state = IB_QPS_INIT, .port_num = 1, .qkey = ST_QKEY };
	struct ib_qp *qp = ib_create_qp(side->pd, &init);
	int err;

	if (IS_ERR(qp))
		return qp;
	err = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY);
	attr.qp_state = IB_QPS_RTR;
	err = err ?: ib_modify_qp(qp, &attr, IB_QP_STATE);
	attr.qp_state = IB_QPS_RTS;
	err = err ?: ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_SQ_PSN);
	if (err) {
		ib_destroy_qp(qp);
		return ERR_PTR(err);
	}
	return qp;
}

struct ib_qp *st_join(struct st_side *side)
{
	struct ib_qp *qp = st_ud_qp(side);
	union ib_gid group;
	int err;

	if (IS_ERR(qp))
		return qp;
	ipv6_addr_set_v4mapped(ST_GROUP, (struct in6_addr *)&group);
	err = ib_attach_mcast(qp, &group, 0);
	if (err) {
		ib_destroy_qp(qp);
		return ERR_PTR(err);
	}
	return qp;
}

int st_leave(struct ib_qp *qp)
{
	union ib_gid group;

	ipv6_addr_set_v4mapped(ST_GROUP, (struct in6_addr *)&group);
	return ib_detach_mcast(qp, &group, 0) ?: ib_destroy_qp(qp);
}

struct ib_ah *st_ud_ah(struct st_side *side, u8 mac[ETH_ALEN])
{
	struct ib_qp_attr attr;
	struct ib_qp_init_attr init;
	struct ib_ah *ah;
	int err;

	err = ib_query_qp(side->qp, &attr, IB_QP_AV, &init);
	if (err)
		return ERR_PTR(err);
	ether_addr_copy(mac, attr.ah_attr.roce.dmac);
	ah = rdma_create_ah(side->pd, &attr.ah_attr, RDMA_CREATE_AH_SLEEPABLE);
	rdma_destroy_ah_attr(&attr.ah_attr);
	return ah;
}

static int st_ud_send(struct st_side *side, struct st_ud *ud, unsigned int from, u32 size,
		      int flags)
{
	struct ib_sge sge = {
		.addr = side->dma, .length = size, .lkey = side->pd->local_dma_lkey,
	};
	struct ib_ud_wr wr = {
		.wr = {
			.wr_cqe = &side->send.cqe, .sg_list = &sge, .num_sge = 1,
			.opcode = IB_WR_SEND_WITH_IMM, .send_flags = IB_SEND_SIGNALED | flags,
			.ex.imm_data = cpu_to_be32(0x12345678),
		},
		.ah = ud->ah[from],
		.remote_qpn = ud->qp[!from]->qp_num,
		.remote_qkey = ST_QKEY,
	};

	if (flags & IB_SEND_INLINE)
		sge.addr = (uintptr_t)side->buf;
	reinit_completion(&side->send.done);
	return ib_post_send(ud->qp[from], &wr.wr, NULL);
}

static int st_ud_recv(struct st_side *side, struct ib_qp *qp)
{
	struct ib_sge sge = {
		.addr = side->dma + ST_HALF, .length = ST_HALF, .lkey = side->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = { .wr_cqe = &side->recv.cqe, .sg_list = &sge, .num_sge = 1 };

	reinit_completion(&side->recv.done);
	return ib_post_recv(qp, &wr, NULL);
}

/* From one side to the other. */
static const char *st_ud_one(struct st_side *side, struct st_ud *ud, unsigned int from, u32 size,
			     int flags)
{
	struct st_side *a = &side[from], *b = &side[!from];
	struct ib_wc *wc = &b->recv.wc;

	st_fill(a->buf, size, size);
	memset(b->buf + ST_HALF, 0xee, ST_HALF);
	CHECK(!st_ud_recv(b, ud->qp[!from]));
	CHECK(!st_ud_send(a, ud, from, size, flags));
	CHECK(st_wait(a, &a->send));
	CHECK(a->send.wc.status == IB_WC_SUCCESS);
	CHECK(st_wait(b, &b->recv));
	CHECK(wc->status == IB_WC_SUCCESS);
	CHECK(wc->qp == ud->qp[!from]);
	CHECK(wc->byte_len == ST_GRH + size);
	CHECK(wc->src_qp == ud->qp[from]->qp_num);
	CHECK(wc->wc_flags == (IB_WC_GRH | IB_WC_WITH_IMM | IB_WC_WITH_SMAC |
			       IB_WC_WITH_NETWORK_HDR_TYPE));
	CHECK(wc->ex.imm_data == cpu_to_be32(0x12345678));
	CHECK(wc->network_hdr_type == RDMA_NETWORK_IPV4);
	/* The way from b leads to where it came from. */
	CHECK(ether_addr_equal(wc->smac, ud->mac[!from]));
	CHECK(b->buf[ST_HALF + 20] == 0x45);
	CHECK(!memcmp(b->buf + ST_HALF + ST_GRH, a->buf, size));
	CHECK(b->buf[ST_HALF + ST_GRH + size] == 0xee);
	return NULL;
}

/* One that is too long stops the sends, until RTS is asked for. */
static const char *st_ud_error(struct st_side *side, struct st_ud *ud)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RTS, .cur_qp_state = IB_QPS_SQE };
	struct st_side *a = &side[0];

	CHECK(!st_ud_send(a, ud, 0, 10000, 0));
	CHECK(st_wait(a, &a->send));
	CHECK(a->send.wc.status == IB_WC_LOC_LEN_ERR);
	CHECK(!st_ud_send(a, ud, 0, 10, IB_SEND_INLINE));
	CHECK(st_wait(a, &a->send));
	CHECK(a->send.wc.status == IB_WC_WR_FLUSH_ERR);
	CHECK(!ib_modify_qp(ud->qp[0], &attr, IB_QP_STATE | IB_QP_CUR_STATE));
	return st_ud_one(side, ud, 0, 100, 0);
}

static const char *st_ud_ah_tells(struct st_side *side, struct st_ud *ud)
{
	struct rdma_ah_attr ah;
	struct ib_qp_attr attr;
	struct ib_qp_init_attr init;
	int differ;

	CHECK(!rdma_query_ah(ud->ah[0], &ah));
	CHECK(!ib_query_qp(side[0].qp, &attr, IB_QP_AV, &init));
	differ = memcmp(&ah.roce, &attr.ah_attr.roce, sizeof(ah.roce)) ||
		 memcmp(&ah.grh.dgid, &attr.ah_attr.grh.dgid, sizeof(ah.grh.dgid)) ||
		 ah.grh.hop_limit != attr.ah_attr.grh.hop_limit ||
		 ah.grh.sgid_index != attr.ah_attr.grh.sgid_index;
	rdma_destroy_ah_attr(&attr.ah_attr);
	rdma_destroy_ah_attr(&ah);
	CHECK(!differ);
	return NULL;
}

static const char *st_ud_run(struct st_side *side, struct st_ud *ud)
{
	static const u32 sizes[] = { 0, 1, 63, 64, 65, 1000, 1024 };
	const char *wrong = st_ud_ah_tells(side, ud);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sizes) && !wrong; i++) {
		wrong = st_ud_one(side, ud, i & 1, sizes[i], 0);
		if (!wrong && sizes[i] <= ST_INLINE)
			wrong = st_ud_one(side, ud, i & 1, sizes[i], IB_SEND_INLINE);
	}
	return wrong ?: st_ud_error(side, ud);
}

const char *st_ud(struct st_side *side)
{
	const char *wrong = NULL;
	struct st_ud ud = {};
	int i;

	for (i = 0; i < 2; i++) {
		ud.qp[i] = st_ud_qp(&side[i]);
		ud.ah[i] = st_ud_ah(&side[i], ud.mac[i]);
		if (IS_ERR(ud.qp[i]) || IS_ERR(ud.ah[i]))
			wrong = "QP or AH";
	}
	wrong = wrong ?: st_ud_run(side, &ud);
	for (i = 0; i < 2; i++) {
		if (!IS_ERR(ud.ah[i]))
			rdma_destroy_ah(ud.ah[i], RDMA_DESTROY_AH_SLEEPABLE);
		if (!IS_ERR(ud.qp[i]))
			ib_destroy_qp(ud.qp[i]);
	}
	return wrong;
}
