// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The posting of WRs by calls: ibv_wr_start(), ibv_wr_send() and so on, ibv_wr_complete().
 *
 * Each WR is a whole WQE without data as soon as its opcode is known; a call that sets the
 * data ends it anew, longer, and begins where the header ends, so that setting data twice does
 * not make a WQE that is larger than the QP's. The first error is kept, nothing is built after it, and
 * ibv_wr_complete() then takes back all since ibv_wr_start(), of which nothing is published.
 */
#include <errno.h>

#include "mw.h"
#include "op.h"
#include "skua.h"

/* Where the WR goes stands before the data, in whichever order they are set; a datagram refuses zero. */
static __attribute__((noinline)) void skua_wr_add_peer(struct skua_qp *qp)
{
	if (qp->peer == SKUA_PEER_UD) {
		qp->wr_ud = skua_wqe_add_ud(&qp->wr);
		memset(qp->wr_ud, 0, sizeof(*qp->wr_ud));
	} else if (qp->peer == SKUA_PEER_RAW) {
		if (qp->vqp.qp_ex.wr_flags & IBV_SEND_IP_CSUM)
			qp->wr.ctrl->flags |= SKUA_WQE_IP_CSUM;
	} else if (qp->wr_op->flags & SKUA_OP_DATA) {
		qp->wr_xrc = skua_wqe_add_xrc(&qp->wr);
		skua_xrc_set(qp->wr_xrc, 0);
	}
}

/* Begin the WQE of an opcode. False if there is an error, of this call or an earlier one. */
static inline bool skua_wr_begin(struct skua_qp *qp, enum ibv_wr_opcode opcode)
{
	struct ibv_qp_ex *qp_ex = &qp->vqp.qp_ex;
	const struct skua_op *op = &skua_ops[opcode];

	if (unlikely(qp->wr_err))
		return false;
	if (unlikely(skua_sq_full(&qp->sq))) {
		qp->wr_err = ENOMEM;
		return false;
	}
	qp->wr_op = op;
	skua_wqe_begin(&qp->sq, &qp->wr, qp_ex->wr_id, op->wqe,
		       skua_op_send_flags(qp_ex->wr_flags) | qp->sq_sig);
	if (unlikely(qp->peer))
		skua_wr_add_peer(qp);
	return true;
}

static inline void skua_wr_end(struct skua_qp *qp)
{
	skua_wqe_end(&qp->sq, &qp->wr, 0, 0);
}

static inline void skua_wr_rdma(struct skua_qp *qp, uint32_t rkey, uint64_t raddr)
{
	skua_wqe_add_rdma(&qp->wr, raddr, rkey);
	skua_wr_end(qp);
}

static void skua_wr_send(struct ibv_qp_ex *qp_ex)
{
	struct skua_qp *qp = to_skua_qp_ex(qp_ex);

	if (skua_wr_begin(qp, IBV_WR_SEND))
		skua_wr_end(qp);
}

static void skua_wr_send_imm(struct ibv_qp_ex *qp_ex, __be32 imm_data)
{
	struct skua_qp *qp = to_skua_qp_ex(qp_ex);

	if (!skua_wr_begin(qp, IBV_WR_SEND_WITH_IMM))
		return;
	qp->wr.ctrl->imm_data = imm_data;
	skua_wr_end(qp);
}

static void skua_wr_send_inv(struct ibv_qp_ex *qp_ex, uint32_t invalidate_rkey)
{
	struct skua_qp *qp = to_skua_qp_ex(qp_ex);

	if (!skua_wr_begin(qp, IBV_WR_SEND_WITH_INV))
		return;
	qp->wr.ctrl->inv_key = htole32(invalidate_rkey);
	skua_wr_end(qp);
}

static void skua_wr_local_inv(struct ibv_qp_ex *qp_ex, uint32_t invalidate_rkey)
{
	struct skua_qp *qp = to_skua_qp_ex(qp_ex);

	if (!skua_wr_begin(qp, IBV_WR_LOCAL_INV))
		return;
	qp->wr.ctrl->inv_key = htole32(invalidate_rkey);
	skua_wr_end(qp);
}

static void skua_wr_rdma_write(struct ibv_qp_ex *qp_ex, uint32_t rkey, uint64_t raddr)
{
	struct skua_qp *qp = to_skua_qp_ex(qp_ex);

	if (skua_wr_begin(qp, IBV_WR_RDMA_WRITE))
		skua_wr_rdma(qp, rkey, raddr);
}

static void skua_wr_rdma_write_imm(struct ibv_qp_ex *qp_ex, uint32_t rkey, uint64_t raddr,
				   __be32 imm_data)
{
	struct skua_qp *qp = to_skua_qp_ex(qp_ex);

	if (!skua_wr_begin(qp, IBV_WR_RDMA_WRITE_WITH_IMM))
		return;
	qp->wr.ctrl->imm_data = imm_data;
	skua_wr_rdma(qp, rkey, raddr);
}

static void skua_wr_rdma_read(struct ibv_qp_ex *qp_ex, uint32_t rkey, uint64_t raddr)
{
	struct skua_qp *qp = to_skua_qp_ex(qp_ex);

	if (skua_wr_begin(qp, IBV_WR_RDMA_READ))
		skua_wr_rdma(qp, rkey, raddr);
}

static void skua_wr_atomic_cmp_swp(struct ibv_qp_ex *qp_ex, uint32_t rkey, uint64_t raddr,
				   uint64_t compare, uint64_t swap)
{
	struct skua_qp *qp = to_skua_qp_ex(qp_ex);

	if (!skua_wr_begin(qp, IBV_WR_ATOMIC_CMP_AND_SWP))
		return;
	skua_wqe_add_atomic(&qp->wr, raddr, rkey, swap, compare);
	skua_wr_end(qp);
}

static void skua_wr_atomic_fetch_add(struct ibv_qp_ex *qp_ex, uint32_t rkey, uint64_t raddr,
				     uint64_t add)
{
	struct skua_qp *qp = to_skua_qp_ex(qp_ex);

	if (!skua_wr_begin(qp, IBV_WR_ATOMIC_FETCH_AND_ADD))
		return;
	skua_wqe_add_atomic(&qp->wr, raddr, rkey, add, 0);
	skua_wr_end(qp);
}

static void skua_wr_bind_mw(struct ibv_qp_ex *qp_ex, struct ibv_mw *mw, uint32_t rkey,
			    const struct ibv_mw_bind_info *info)
{
	struct skua_qp *qp = to_skua_qp_ex(qp_ex);

	if (likely(!qp->wr_err) && !skua_mw_is_valid(info))
		qp->wr_err = EINVAL;
	if (!skua_wr_begin(qp, IBV_WR_BIND_MW))
		return;
	skua_wqe_add_bind(&qp->wr, qp, rkey, info);
	skua_wr_end(qp);
}

static void skua_wr_flush(struct ibv_qp_ex *qp_ex, uint32_t rkey, uint64_t raddr, size_t length, uint8_t type,
			  uint8_t level)
{
	struct skua_qp *qp = to_skua_qp_ex(qp_ex);
	uint32_t flush = type;

	static_assert(IBV_FLUSH_GLOBAL == SKUA_FLUSH_GLOBAL && IBV_FLUSH_PERSISTENT == SKUA_FLUSH_PERSISTENT,
		      "placements are verbs' types");
	if (!skua_wr_begin(qp, IBV_WR_FLUSH))
		return;
	if (level == IBV_FLUSH_MR) {
		flush |= SKUA_FLUSH_MR;
		length = 0;
	}
	if (!type || type & ~SKUA_FLUSH_PLACEMENTS || level > IBV_FLUSH_MR || length > UINT32_MAX) {
		qp->wr_err = EINVAL;
		return;
	}
	skua_wqe_add_flush(&qp->wr, raddr, rkey, flush);
	skua_wqe_end(&qp->sq, &qp->wr, 0, length);
}

static void skua_wr_atomic_write(struct ibv_qp_ex *qp_ex, uint32_t rkey, uint64_t raddr, const void *atomic_wr)
{
	static const struct skua_op without_data;
	struct skua_qp *qp = to_skua_qp_ex(qp_ex);

	if (!skua_wr_begin(qp, IBV_WR_ATOMIC_WRITE))
		return;
	skua_wqe_add_rdma(&qp->wr, raddr, rkey);
	skua_sq_copy(&qp->sq, qp->wr.next, atomic_wr, sizeof(uint64_t));
	qp->wr.size += sizeof(uint64_t);
	qp->wr.ctrl->flags |= SKUA_WQE_INLINE;
	skua_wqe_end(&qp->sq, &qp->wr, 0, sizeof(uint64_t));
	qp->wr_op = &without_data;	/* no call may add any */
}

static void skua_wr_send_tso(struct ibv_qp_ex *qp_ex, void *hdr, uint16_t hdr_sz, uint16_t mss)
{
	struct skua_qp *qp = to_skua_qp_ex(qp_ex);

	if (likely(!qp->wr_err) && !skua_tso_is_valid(qp, hdr_sz, mss))
		qp->wr_err = EINVAL;
	if (!skua_wr_begin(qp, IBV_WR_TSO))
		return;
	skua_wqe_add_tso(&qp->sq, &qp->wr, hdr, hdr_sz, mss);
	skua_wr_end(qp);
}

static void skua_wr_set_ud_addr(struct ibv_qp_ex *qp_ex, struct ibv_ah *ah, uint32_t remote_qpn,
				uint32_t remote_qkey)
{
	struct skua_qp *qp = to_skua_qp_ex(qp_ex);

	if (likely(!qp->wr_err))
		skua_ud_set(qp->wr_ud, &to_skua_ah(ah)->av, remote_qpn, remote_qkey);
}

static void skua_wr_set_xrc_srqn(struct ibv_qp_ex *qp_ex, uint32_t remote_srqn)
{
	struct skua_qp *qp = to_skua_qp_ex(qp_ex);

	/* One that sends nothing has no segment for it. */
	if (likely(!qp->wr_err && qp->wr_op->flags & SKUA_OP_DATA))
		skua_xrc_set(qp->wr_xrc, remote_srqn);
}

static void skua_wr_set_sge_list(struct ibv_qp_ex *qp_ex, size_t num_sge,
				 const struct ibv_sge *sg_list)
{
	struct skua_qp *qp = to_skua_qp_ex(qp_ex);
	struct skua_wqe wqe;
	size_t i;

	if (unlikely(qp->wr_err))
		return;
	if (unlikely(num_sge > qp->max_send_sge || !(qp->wr_op->flags & SKUA_OP_DATA) ||
		     (qp->wr_op->flags & SKUA_OP_ATOMIC && num_sge != 1))) {
		qp->wr_err = EINVAL;
		return;
	}
	wqe = qp->wr;
	for (i = 0; i < num_sge; i++)
		skua_wqe_add_sge(&qp->sq, &wqe, sg_list[i].addr, sg_list[i].length,
				 sg_list[i].lkey);
	skua_wqe_end(&qp->sq, &wqe, num_sge, 0);
}

static void skua_wr_set_sge(struct ibv_qp_ex *qp_ex, uint32_t lkey, uint64_t addr,
			    uint32_t length)
{
	struct ibv_sge sge = { .addr = addr, .length = length, .lkey = lkey };

	skua_wr_set_sge_list(qp_ex, 1, &sge);
}

static void skua_wr_set_inline_data_list(struct ibv_qp_ex *qp_ex, size_t num_buf,
					 const struct ibv_data_buf *buf_list)
{
	struct skua_qp *qp = to_skua_qp_ex(qp_ex);
	struct skua_wqe wqe;
	uint32_t length = 0;
	char *place;
	size_t i;

	if (unlikely(qp->wr_err))
		return;
	if (unlikely(!(qp->wr_op->flags & SKUA_OP_INLINE))) {
		qp->wr_err = EINVAL;
		return;
	}
	for (i = 0; i < num_buf; i++) {
		if (unlikely(buf_list[i].length > qp->max_inline - length)) {
			qp->wr_err = EINVAL;
			return;
		}
		length += buf_list[i].length;
	}
	wqe = qp->wr;
	place = wqe.next;
	for (i = 0; i < num_buf; i++)
		place = skua_sq_copy(&qp->sq, place, buf_list[i].addr, buf_list[i].length);
	wqe.size += length;
	wqe.ctrl->flags |= SKUA_WQE_INLINE;
	skua_wqe_end(&qp->sq, &wqe, 0, length);
}

static void skua_wr_set_inline_data(struct ibv_qp_ex *qp_ex, void *addr, size_t length)
{
	struct ibv_data_buf buf = { .addr = addr, .length = length };

	skua_wr_set_inline_data_list(qp_ex, 1, &buf);
}

/* The SQ stays locked until ibv_wr_complete() or ibv_wr_abort(). */
static void skua_wr_start(struct ibv_qp_ex *qp_ex)
{
	struct skua_qp *qp = to_skua_qp_ex(qp_ex);

	skua_lock(&qp->sq_lock);
	qp->wr_err = qp_ex->qp_base.state < IBV_QPS_RTS ? EINVAL : 0;
	qp->wr_first = qp->sq.wr_pi;
}

static int skua_wr_complete(struct ibv_qp_ex *qp_ex)
{
	struct skua_qp *qp = to_skua_qp_ex(qp_ex);
	int err = qp->wr_err;

	if (likely(!err))
		skua_sq_commit(qp);
	else
		skua_sq_take_back(&qp->sq, qp->wr_first);
	skua_unlock(&qp->sq_lock);
	return err;
}

static void skua_wr_abort(struct ibv_qp_ex *qp_ex)
{
	struct skua_qp *qp = to_skua_qp_ex(qp_ex);

	skua_sq_take_back(&qp->sq, qp->wr_first);
	skua_unlock(&qp->sq_lock);
}

/* An opcode of verbs and the flag by which a program says that it will use it. */
static const struct {
	enum ibv_wr_opcode opcode;
	uint64_t flag;
} skua_wr_ops[] = {
	{ IBV_WR_SEND, IBV_QP_EX_WITH_SEND },
	{ IBV_WR_SEND_WITH_IMM, IBV_QP_EX_WITH_SEND_WITH_IMM },
	{ IBV_WR_SEND_WITH_INV, IBV_QP_EX_WITH_SEND_WITH_INV },
	{ IBV_WR_RDMA_WRITE, IBV_QP_EX_WITH_RDMA_WRITE },
	{ IBV_WR_RDMA_WRITE_WITH_IMM, IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM },
	{ IBV_WR_RDMA_READ, IBV_QP_EX_WITH_RDMA_READ },
	{ IBV_WR_ATOMIC_CMP_AND_SWP, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP },
	{ IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD },
	{ IBV_WR_LOCAL_INV, IBV_QP_EX_WITH_LOCAL_INV },
	{ IBV_WR_BIND_MW, IBV_QP_EX_WITH_BIND_MW },
	{ IBV_WR_FLUSH, IBV_QP_EX_WITH_FLUSH },
	{ IBV_WR_ATOMIC_WRITE, IBV_QP_EX_WITH_ATOMIC_WRITE },
	{ IBV_WR_TSO, IBV_QP_EX_WITH_TSO },
};

bool skua_qp_fill_wr_ops(struct skua_qp *qp, uint64_t ops)
{
	struct ibv_qp_ex *qp_ex = &qp->vqp.qp_ex;
	uint64_t not_served = ops;
	unsigned int i;

	for (i = 0; i < sizeof(skua_wr_ops) / sizeof(skua_wr_ops[0]); i++)
		if ((qp->opcodes | qp->rare_opcodes) >> skua_wr_ops[i].opcode & 1)
			not_served &= ~skua_wr_ops[i].flag;
	if (not_served)
		return false;

	/* What was not declared stays unset: a UD QP's blocks have no room for an RDMA segment, too. */
	if (ops & IBV_QP_EX_WITH_SEND)
		qp_ex->wr_send = skua_wr_send;
	if (ops & IBV_QP_EX_WITH_SEND_WITH_IMM)
		qp_ex->wr_send_imm = skua_wr_send_imm;
	if (ops & IBV_QP_EX_WITH_SEND_WITH_INV)
		qp_ex->wr_send_inv = skua_wr_send_inv;
	if (ops & IBV_QP_EX_WITH_LOCAL_INV)
		qp_ex->wr_local_inv = skua_wr_local_inv;
	if (ops & IBV_QP_EX_WITH_BIND_MW)
		qp_ex->wr_bind_mw = skua_wr_bind_mw;
	if (ops & IBV_QP_EX_WITH_RDMA_WRITE)
		qp_ex->wr_rdma_write = skua_wr_rdma_write;
	if (ops & IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
		qp_ex->wr_rdma_write_imm = skua_wr_rdma_write_imm;
	if (ops & IBV_QP_EX_WITH_RDMA_READ)
		qp_ex->wr_rdma_read = skua_wr_rdma_read;
	if (ops & IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP)
		qp_ex->wr_atomic_cmp_swp = skua_wr_atomic_cmp_swp;
	if (ops & IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)
		qp_ex->wr_atomic_fetch_add = skua_wr_atomic_fetch_add;
	if (ops & IBV_QP_EX_WITH_FLUSH)
		qp_ex->wr_flush = skua_wr_flush;
	if (ops & IBV_QP_EX_WITH_ATOMIC_WRITE)
		qp_ex->wr_atomic_write = skua_wr_atomic_write;
	if (ops & IBV_QP_EX_WITH_TSO)
		qp_ex->wr_send_tso = skua_wr_send_tso;
	if (qp->peer == SKUA_PEER_UD)
		qp_ex->wr_set_ud_addr = skua_wr_set_ud_addr;
	if (qp->peer == SKUA_PEER_XRC)
		qp_ex->wr_set_xrc_srqn = skua_wr_set_xrc_srqn;
	qp_ex->wr_set_sge = skua_wr_set_sge;
	qp_ex->wr_set_sge_list = skua_wr_set_sge_list;
	qp_ex->wr_set_inline_data = skua_wr_set_inline_data;
	qp_ex->wr_set_inline_data_list = skua_wr_set_inline_data_list;
	qp_ex->wr_start = skua_wr_start;
	qp_ex->wr_complete = skua_wr_complete;
	qp_ex->wr_abort = skua_wr_abort;
	/* struct ibv_send_wr has no place for what a FLUSH asks for. */
	qp->opcodes &= ~(1u << IBV_WR_FLUSH);
	return true;
}
