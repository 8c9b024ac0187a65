// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * ibv_post_send() and ibv_post_recv(): each WR of a list becomes a WQE, then all are
 * published at once.
 */
#include <errno.h>

#include "mw.h"
#include "op.h"
#include "skua.h"

/* Bytes of inline data of @wr, or more than any limit if they are too many. */
static inline uint32_t skua_wr_inline_length(const struct ibv_send_wr *wr, uint32_t max)
{
	uint64_t length = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	return length <= max ? length : UINT32_MAX;
}

/* Apart from the rest, which needs no call without it. */
static __attribute__((noinline)) void skua_send_copy(const struct skua_qp *qp, char *place,
						     const struct ibv_sge *sge, int num_sge)
{
	for (; num_sge > 0; num_sge--, sge++)
		place = skua_sq_copy(&qp->sq, place, (void *)(uintptr_t)sge->addr, sge->length);
}

static inline void skua_send_add_sges(struct skua_sq *sq, struct skua_wqe *wqe,
				      const struct ibv_sge *sge, uint32_t num_sge)
{
	const struct ibv_sge *end = sge + num_sge;

	for (; sge != end; sge++)
		skua_wqe_add_sge(sq, wqe, sge->addr, sge->length, sge->lkey);
}

static inline void skua_send_add_atomic(struct skua_qp *qp, struct skua_wqe *wqe,
					const struct ibv_send_wr *wr)
{
	bool add = wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;

	skua_wqe_add_atomic(wqe, wr->wr.atomic.remote_addr, wr->wr.atomic.rkey,
			    add ? wr->wr.atomic.compare_add : wr->wr.atomic.swap,
			    add ? 0 : wr->wr.atomic.compare_add);
}

static int skua_send_build_bind(struct skua_qp *qp, const struct ibv_send_wr *wr)
{
	struct skua_wqe wqe;

	if (!skua_mw_is_valid(&wr->bind_mw.bind_info))
		return EINVAL;
	if (skua_sq_full(&qp->sq))
		return ENOMEM;

	skua_wqe_begin(&qp->sq, &wqe, wr->wr_id, SKUA_WQE_BIND_MW,
		       skua_op_send_flags(wr->send_flags) | qp->sq_sig);
	skua_wqe_add_bind(&wqe, qp, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
	skua_wqe_end(&qp->sq, &wqe, 0, 0);
	return 0;
}

static int skua_send_build_tso(struct skua_qp *qp, const struct ibv_send_wr *wr)
{
	uint32_t num_sge = wr->num_sge;
	struct skua_wqe wqe;

	if (!skua_tso_is_valid(qp, wr->tso.hdr_sz, wr->tso.mss) || num_sge > qp->max_send_sge ||
	    wr->send_flags & IBV_SEND_INLINE)
		return EINVAL;
	if (skua_sq_full(&qp->sq))
		return ENOMEM;

	/* Checksums are filled in whether IBV_SEND_IP_CSUM is there or not. */
	skua_wqe_begin(&qp->sq, &wqe, wr->wr_id, SKUA_WQE_TSO,
		       skua_op_send_flags(wr->send_flags) | qp->sq_sig);
	skua_wqe_add_tso(&qp->sq, &wqe, wr->tso.hdr, wr->tso.hdr_sz, wr->tso.mss);
	skua_send_add_sges(&qp->sq, &wqe, wr->sg_list, num_sge);
	skua_wqe_end(&qp->sq, &wqe, num_sge, 0);
	return 0;
}

/* Build the WQE of a @wr that is not one of qp->opcodes: one of rare_opcodes, or it is refused. */
static __attribute__((noinline)) int skua_send_build_rare(struct skua_qp *qp, const struct ibv_send_wr *wr)
{
	if (wr->opcode >= SKUA_NUM_OPS || !(qp->rare_opcodes & 1u << wr->opcode))
		return EINVAL;
	return wr->opcode == IBV_WR_TSO ? skua_send_build_tso(qp, wr) : skua_send_build_bind(qp, wr);
}

/*
 * Write where @wr goes to @place, before all other segments. One that sends nothing goes nowhere, and a frame
 * by itself: that it wants checksums stands in the control segment before @place.
 * Returns the bytes. Apart from the path of connected QPs, which needs no call without it.
 */
static __attribute__((noinline)) uint32_t skua_send_put_peer(const struct skua_qp *qp, void *place,
							     const struct ibv_send_wr *wr)
{
	if (qp->peer == SKUA_PEER_UD) {
		skua_ud_set(place, &to_skua_ah(wr->wr.ud.ah)->av, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey);
		return sizeof(struct skua_wqe_ud);
	}
	if (qp->peer == SKUA_PEER_RAW) {
		struct skua_wqe_ctrl *ctrl = (struct skua_wqe_ctrl *)place - 1;

		if (wr->send_flags & IBV_SEND_IP_CSUM)
			ctrl->flags |= SKUA_WQE_IP_CSUM;
		return 0;
	}
	if (!(skua_ops[wr->opcode].flags & SKUA_OP_DATA))
		return 0;
	skua_xrc_set(place, wr->qp_type.xrc.remote_srqn);
	return sizeof(struct skua_wqe_xrc);
}

/* Build the WQE of @wr. Returns 0 or an errno. */
static inline int skua_send_build(struct skua_qp *qp, const struct ibv_send_wr *wr)
{
	uint8_t flags = skua_op_send_flags(wr->send_flags) | qp->sq_sig;
	const struct skua_op *op;
	uint32_t num_sge = 0;
	uint32_t length = 0;
	struct skua_wqe wqe;

	if (unlikely(wr->opcode >= SKUA_NUM_OPS || !(qp->opcodes & 1u << wr->opcode)))
		return skua_send_build_rare(qp, wr);
	op = &skua_ops[wr->opcode];

	if (op->flags & SKUA_OP_DATA) {
		num_sge = wr->num_sge;
		if (unlikely(num_sge > qp->max_send_sge))
			return EINVAL;
		if (wr->send_flags & IBV_SEND_INLINE) {
			length = skua_wr_inline_length(wr, qp->max_inline);
			if (unlikely(!(op->flags & SKUA_OP_INLINE) || length > qp->max_inline))
				return EINVAL;
			flags |= SKUA_WQE_INLINE;
		} else if (unlikely(op->flags & SKUA_OP_ATOMIC && num_sge != 1)) {
			return EINVAL;
		}
	}
	if (unlikely(skua_sq_full(&qp->sq)))
		return ENOMEM;

	skua_wqe_begin(&qp->sq, &wqe, wr->wr_id, op->wqe, flags);
	if (op->flags & (SKUA_OP_IMM | SKUA_OP_INV)) {
		if (op->flags & SKUA_OP_IMM)
			wqe.ctrl->imm_data = wr->imm_data;
		else
			wqe.ctrl->inv_key = htole32(wr->invalidate_rkey);
	}
	if (qp->peer)
		skua_wqe_add_header(&wqe, skua_send_put_peer(qp, wqe.next, wr));
	if (op->flags & SKUA_OP_RDMA)
		skua_wqe_add_rdma(&wqe, wr->wr.rdma.remote_addr, wr->wr.rdma.rkey);
	else if (op->flags & SKUA_OP_ATOMIC)
		skua_send_add_atomic(qp, &wqe, wr);
	if (flags & SKUA_WQE_INLINE) {
		skua_send_copy(qp, wqe.next, wr->sg_list, num_sge);
		wqe.size += length;
		num_sge = 0;
	} else {
		skua_send_add_sges(&qp->sq, &wqe, wr->sg_list, num_sge);
	}
	skua_wqe_end(&qp->sq, &wqe, num_sge, length);
	return 0;
}

/* Build those of the list @wr that can be; *@bad_wr: the first that cannot. Returns 0 or an errno. */
static inline int skua_send_build_all(struct skua_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	for (; wr; wr = wr->next) {
		int err = skua_send_build(qp, wr);

		if (unlikely(err)) {
			*bad_wr = wr;
			return err;
		}
	}
	return 0;
}

int skua_post_send(struct ibv_qp *ibv_qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct skua_qp *qp = to_skua_qp(ibv_qp);
	int err = EINVAL;

	skua_lock(&qp->sq_lock);
	if (likely(ibv_qp->state >= IBV_QPS_RTS))
		err = skua_send_build_all(qp, wr, bad_wr);
	else
		*bad_wr = wr;
	skua_sq_commit(qp);
	skua_unlock(&qp->sq_lock);
	return err;
}

static inline int skua_recv_build(struct skua_qp *qp, const struct ibv_recv_wr *wr)
{
	uint32_t num_sge = wr->num_sge;
	struct skua_sge *sge;
	uint32_t i;

	if (unlikely(num_sge > qp->max_recv_sge))
		return EINVAL;
	if (unlikely(skua_rq_full(&qp->rq)))
		return ENOMEM;

	sge = skua_rqe_begin(&qp->rq, wr->wr_id, num_sge);
	for (i = 0; i < num_sge; i++)
		skua_sge_set(&sge[i], wr->sg_list[i].addr, wr->sg_list[i].length,
			     wr->sg_list[i].lkey);
	return 0;
}

static inline int skua_recv_build_all(struct skua_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	int err = 0;

	for (; wr; wr = wr->next) {
		err = skua_recv_build(qp, wr);
		if (unlikely(err)) {
			*bad_wr = wr;
			break;
		}
	}
	skua_rq_publish(&qp->rq);
	return err;
}

int skua_qp_post_recv(struct skua_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	return skua_recv_build_all(qp, wr, bad_wr);
}

int skua_post_recv(struct ibv_qp *ibv_qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct skua_qp *qp = to_skua_qp(ibv_qp);
	int err = EINVAL;

	skua_lock(&qp->rq_lock);
	if (likely(ibv_qp->state != IBV_QPS_RESET))
		err = skua_recv_build_all(qp, wr, bad_wr);
	else
		*bad_wr = wr;
	skua_unlock(&qp->rq_lock);
	return err;
}
