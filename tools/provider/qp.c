// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Queue pairs: sizing the rings, making, changing and destroying. Posting is in post.c and
 * wr.c.
 *
 * One buffer holds SQ, RQ and both records, one behind the other, so that a small QP takes a page.
 */
#include <errno.h>
#include <stdlib.h>

#include <ccan/array_size.h>
#include <util/util.h>

#include "compat.h"
#include "op.h"
#include "skua.h"
#include "skua-abi.h"
#include "tm.h"

/* In front of more than one SGE, or of inline data. */
#define SKUA_SQ_MAX_HEADER	(2 * SKUA_WQE_SEG)
#define SKUA_SQ_UD_HEADER	(SKUA_WQE_SEG + sizeof(struct skua_wqe_ud))
/* An atomic has one SGE, and need not fit in a block with it. */
#define SKUA_SQ_XRC_HEADER	(SKUA_WQE_SEG + sizeof(struct skua_wqe_xrc) + sizeof(struct skua_wqe_atomic))

/* And the headers of a TSO. */
#define SKUA_SQ_RAW_HEADER	(SKUA_WQE_SEG + sizeof(struct skua_wqe_tso))

static_assert(sizeof(struct skua_sge) == SKUA_WQE_SEG, "an SGE is a segment");

static inline uint32_t min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static inline uint32_t max_u32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/*
 * Every WR within the limits takes at most as many blocks as the largest, and the ring has
 * room for max_send_wr of those; what rounding leaves over is told to the program.
 */
static int skua_qp_size_sq(const struct skua_alloc_ucontext_resp *caps, struct skua_qp *qp,
			   const struct ibv_qp_cap *asked)
{
	static const uint32_t headers[] = {
		[SKUA_PEER_CONNECTED] = SKUA_SQ_MAX_HEADER,
		[SKUA_PEER_UD] = SKUA_SQ_UD_HEADER,
		[SKUA_PEER_XRC] = SKUA_SQ_XRC_HEADER,
		[SKUA_PEER_RAW] = SKUA_SQ_RAW_HEADER,
	};
	uint32_t header = headers[qp->peer] + align(qp->max_tso_header, SKUA_WQE_SEG);
	uint32_t payload, wqe_blocks, blocks;

	if (!asked->max_send_wr)
		return 0;
	if (asked->max_send_wr > caps->max_qp_wr || asked->max_send_sge > caps->max_send_sge ||
	    asked->max_inline_data > caps->max_inline)
		return EINVAL;

	payload = max_u32(max_u32(asked->max_send_sge, 1) * sizeof(struct skua_sge),
			  asked->max_inline_data);
	wqe_blocks = skua_wqe_blocks(header + payload);
	if (wqe_blocks > SKUA_WQE_MAX_BLOCKS)
		return EINVAL;
	/* max_qp_wr WQEs of the largest size fit in an SQ. */
	blocks = roundup_pow_of_two(asked->max_send_wr * wqe_blocks);

	payload = wqe_blocks * SKUA_WQE_BLOCK - header;
	qp->sq.blocks = blocks;
	qp->max_send_sge = min_u32(payload / sizeof(struct skua_sge), caps->max_send_sge);
	qp->max_inline = min_u32(payload, caps->max_inline);
	qp->sq.max_wr = min_u32(blocks / wqe_blocks, caps->max_qp_wr);
	qp->cap.max_send_wr = qp->sq.max_wr;
	qp->cap.max_send_sge = qp->max_send_sge;
	qp->cap.max_inline_data = qp->max_inline;
	return 0;
}

int skua_qp_size_rq(const struct skua_alloc_ucontext_resp *caps, struct skua_qp *qp,
			   const struct ibv_qp_cap *asked)
{
	uint32_t stride;

	if (!asked->max_recv_wr)
		return 0;
	if (asked->max_recv_wr > caps->max_qp_wr || asked->max_recv_sge > caps->max_recv_sge)
		return EINVAL;

	stride = roundup_pow_of_two(sizeof(struct skua_rqe) +
				    max_u32(asked->max_recv_sge, 1) * sizeof(struct skua_sge));
	if (stride > 1u << SKUA_RQE_MAX_LOG_STRIDE)
		return EINVAL;
	qp->rq.size = roundup_pow_of_two(asked->max_recv_wr);
	qp->rq.log_stride = __builtin_ctz(stride);
	qp->max_recv_sge = min_u32((stride - sizeof(struct skua_rqe)) / sizeof(struct skua_sge),
				   caps->max_recv_sge);
	qp->rq.max_wr = min_u32(qp->rq.size, caps->max_qp_wr);
	qp->cap.max_recv_wr = qp->rq.max_wr;
	qp->cap.max_recv_sge = qp->max_recv_sge;
	return 0;
}

int skua_qp_alloc_rings(struct skua_context *ctx, struct skua_qp *qp, struct skua_pd *pd)
{
	/* The RQ begins at a multiple of its entries' size, the records at one of theirs. */
	size_t sq_size = align((size_t)qp->sq.blocks * SKUA_WQE_BLOCK, 1u << qp->rq.log_stride);
	size_t rq_size = align((size_t)qp->rq.size << qp->rq.log_stride, sizeof(struct skua_dbr));
	struct skua_dbr *dbrs;
	int err;

	/* One entry at least, so that a queue that is not there is no special case. */
	qp->sq.slots = calloc(max_u32(qp->sq.blocks, 1), sizeof(*qp->sq.slots));
	if (!qp->sq.slots)
		return ENOMEM;
	qp->rq.wr_id = calloc(max_u32(qp->rq.size, 1), sizeof(*qp->rq.wr_id));
	if (!qp->rq.wr_id) {
		err = ENOMEM;
		goto err_sq_slots;
	}
	err = skua_buf_alloc(ctx, pd, &qp->buf, sq_size + rq_size + 2 * sizeof(*dbrs));
	if (err)
		goto err_rq_wr_id;

	skua_sq_set_ring(&qp->sq, qp->buf.addr, qp->sq.blocks);
	qp->rq.buf = (char *)qp->buf.addr + sq_size;
	dbrs = (void *)((char *)qp->buf.addr + sq_size + rq_size);
	qp->sq.dbr = &dbrs[0];
	qp->rq.dbr = &dbrs[1];
	return 0;

err_rq_wr_id:
	free(qp->rq.wr_id);
err_sq_slots:
	free(qp->sq.slots);
	return err;
}

void skua_qp_free_rings(struct skua_qp *qp)
{
	skua_buf_free(&qp->buf);
	free(qp->rq.wr_id);
	free(qp->sq.slots);
}

static struct skua_create_qp_req skua_qp_describe(const struct skua_qp *qp)
{
	struct skua_create_qp_req req = { .qp_handle = (uintptr_t)qp };

	if (qp->sq.blocks) {
		req.sq_addr = (uintptr_t)qp->sq.buf;
		req.sq_dbr_addr = (uintptr_t)qp->sq.dbr;
		req.log_sq_blocks = __builtin_ctz(qp->sq.blocks);
	} else {
		req.flags |= SKUA_CREATE_QP_NO_SQ;
	}
	if (qp->rq.size) {
		req.rq_addr = (uintptr_t)qp->rq.buf;
		req.rq_dbr_addr = (uintptr_t)qp->rq.dbr;
		req.log_rq_size = __builtin_ctz(qp->rq.size);
		req.log_rq_stride = qp->rq.log_stride;
	} else {
		req.flags |= SKUA_CREATE_QP_NO_RQ;
	}
	return req;
}

/* With flags, which the older command does not carry. */
static int skua_qp_cmd_create_ex(struct ibv_pd *ibv_pd, struct skua_qp *qp, const struct ibv_qp_init_attr *attr,
				 uint32_t create_flags)
{
	struct ibv_qp_init_attr_ex attr_ex = {
		.qp_context = attr->qp_context, .send_cq = attr->send_cq, .recv_cq = attr->recv_cq, .srq = attr->srq,
		.cap = attr->cap, .qp_type = attr->qp_type, .sq_sig_all = attr->sq_sig_all, .pd = ibv_pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS, .create_flags = create_flags,
	};
	struct skua_cmd_create_qp_ex cmd = { .drv_payload = skua_qp_describe(qp) };
	struct skua_cmd_create_qp_ex_resp resp = {};

	return skua_cmd_create_qp_ex2(ibv_pd->context, &qp->vqp, &attr_ex, &cmd.ibv_cmd, sizeof(cmd),
				      &resp.ibv_resp, sizeof(resp));
}

static int skua_qp_cmd_create(struct ibv_pd *ibv_pd, struct skua_qp *qp, struct ibv_qp_init_attr *attr,
			      uint32_t create_flags)
{
	struct skua_cmd_create_qp cmd = { .drv_payload = skua_qp_describe(qp) };
	struct skua_cmd_create_qp_resp resp = {};

	if (create_flags)
		return skua_qp_cmd_create_ex(ibv_pd, qp, attr, create_flags);
	return ibv_cmd_create_qp(ibv_pd, &qp->vqp.qp, attr, &cmd.ibv_cmd, sizeof(cmd),
				 &resp.ibv_resp, sizeof(resp));
}

static bool skua_qp_has_type(const struct skua_context *ctx, enum ibv_qp_type type)
{
	uint64_t features = ctx->caps.features;

	switch (type) {
	case IBV_QPT_RC:
		return features >> SKUA_F_RC & 1;
	case IBV_QPT_UC:
		return features >> SKUA_F_UC & 1;
	case IBV_QPT_UD:
		return features >> SKUA_F_UD & 1;
	case IBV_QPT_XRC_SEND:
		return skua_has_xrc(ctx);
	case IBV_QPT_RAW_PACKET:
		return features >> SKUA_F_RAW_PACKET & 1;
	default:
		return false;
	}
}

/* On cache lines of its own: some of them are the poster's, others the poller's. */
struct skua_qp *skua_qp_new(void)
{
	void *qp;

	errno = posix_memalign(&qp, __alignof__(struct skua_qp), sizeof(struct skua_qp));
	return errno ? NULL : memset(qp, 0, sizeof(struct skua_qp));
}

void skua_qp_init_locks(struct skua_qp *qp, bool needed)
{
	skua_lock_init(&qp->sq_lock, needed);
	skua_lock_init(&qp->rq_lock, needed);
}

static enum skua_peer skua_qp_peer(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_UD:
		return SKUA_PEER_UD;
	case IBV_QPT_XRC_SEND:
		return SKUA_PEER_XRC;
	case IBV_QPT_RAW_PACKET:
		return SKUA_PEER_RAW;
	default:
		return SKUA_PEER_CONNECTED;
	}
}

/* Flags that a QP of this type may be created with. */
static uint32_t skua_qp_create_flags(const struct skua_context *ctx, enum ibv_qp_type type)
{
	return type == IBV_QPT_RAW_PACKET && skua_has_strip_cvlan(ctx) ? IBV_QP_CREATE_CVLAN_STRIPPING : 0;
}

struct skua_qp *skua_qp_create(struct ibv_pd *ibv_pd, struct ibv_qp_init_attr *attr,
			       const struct skua_qp_extras *extras)
{
	struct skua_context *ctx = to_skua_context(ibv_pd->context);
	struct skua_pd *pd = to_skua_pd(ibv_pd);
	struct skua_qp *qp;
	int err;

	if (!skua_qp_has_type(ctx, attr->qp_type) ||
	    extras->create_flags & ~skua_qp_create_flags(ctx, attr->qp_type)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	qp = skua_qp_new();
	if (!qp)
		return NULL;

	qp->db = ctx->db;
	qp->event_idx = ctx->event_idx;
	qp->sq.locked_is_full = ctx->locked_is_full;
	qp->peer = skua_qp_peer(attr->qp_type);
	qp->atomics = ctx->caps.features >> SKUA_F_ATOMIC & 1;
	qp->opcodes = skua_op_mask(ctx->caps.features, attr->qp_type) & ~SKUA_RARE_OPS;
	qp->rare_opcodes = skua_op_mask(ctx->caps.features, attr->qp_type) & SKUA_RARE_OPS;
	qp->sq_sig = attr->sq_sig_all ? SKUA_WQE_SIGNALED : 0;
	qp->max_tso_header = extras->max_tso_header;
	err = EOPNOTSUPP;
	if (extras->max_tso_header && !(qp->rare_opcodes & 1u << IBV_WR_TSO))
		goto err_free;
	if (!skua_qp_fill_wr_ops(qp, extras->send_ops))
		goto err_free;
	err = skua_qp_size_sq(&ctx->caps, qp, &attr->cap);
	if (err)
		goto err_free;
	/* Receives are the SRQ's, if there is one, and those of XRC are the peer's. */
	err = attr->srq || qp->peer == SKUA_PEER_XRC ? 0 : skua_qp_size_rq(&ctx->caps, qp, &attr->cap);
	if (err)
		goto err_free;

	skua_qp_init_locks(qp, !pd->td);
	err = skua_qp_alloc_rings(ctx, qp, pd);
	if (err)
		goto err_free;
	err = skua_qp_cmd_create(ibv_pd, qp, attr, extras->create_flags);
	if (err)
		goto err_rings;

	qp->pd = pd;
	skua_pd_hold(pd);
	attr->cap = qp->cap;
	return qp;

err_rings:
	skua_qp_free_rings(qp);
err_free:
	free(qp);
	errno = err;
	return NULL;
}

void skua_qp_delete(struct skua_qp *qp)
{
	if (qp->pd) {
		skua_qp_free_rings(qp);
		skua_pd_put(qp->pd);
	}
	free(qp);
}

/* That of a program. */
static struct skua_qp *skua_qp_create_asked(struct ibv_pd *ibv_pd, struct ibv_qp_init_attr *attr,
					    const struct skua_qp_extras *extras)
{
	struct skua_qp *qp;

	if (!skua_tm_takes_qp(attr)) {
		errno = EINVAL;
		return NULL;
	}
	qp = skua_qp_create(ibv_pd, attr, extras);
	if (qp)
		skua_tm_hold(attr->srq);
	return qp;
}

struct ibv_qp *skua_create_qp(struct ibv_pd *ibv_pd, struct ibv_qp_init_attr *attr)
{
	struct skua_qp *qp;

	qp = skua_qp_create_asked(ibv_pd, attr, &(struct skua_qp_extras) {});
	return qp ? &qp->vqp.qp : NULL;
}

struct ibv_qp *skua_create_qp_ex(struct ibv_context *ibv_ctx,
				 struct ibv_qp_init_attr_ex *attr_ex)
{
	struct ibv_qp_init_attr attr = {
		.qp_context = attr_ex->qp_context,
		.send_cq = attr_ex->send_cq,
		.recv_cq = attr_ex->recv_cq,
		.srq = attr_ex->srq,
		.cap = attr_ex->cap,
		.qp_type = attr_ex->qp_type,
		.sq_sig_all = attr_ex->sq_sig_all,
	};
	bool send_ops = attr_ex->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	const struct skua_qp_extras extras = {
		.send_ops = send_ops ? attr_ex->send_ops_flags : 0,
		.create_flags = attr_ex->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS ? attr_ex->create_flags : 0,
		.max_tso_header = attr_ex->comp_mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER ? attr_ex->max_tso_header : 0,
	};
	bool recv = attr_ex->qp_type == IBV_QPT_XRC_RECV;
	uint32_t rss = IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
	uint32_t needs = recv ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD;
	struct skua_qp *qp;

	if (attr_ex->comp_mask & ~(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_CREATE_FLAGS |
				   IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | IBV_QP_INIT_ATTR_MAX_TSO_HEADER | rss) ||
	    ((recv || rss & attr_ex->comp_mask) &&
	     (extras.send_ops || extras.create_flags || extras.max_tso_header))) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	rss &= attr_ex->comp_mask;
	if (rss)
		needs |= IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
	if ((attr_ex->comp_mask & needs) != needs) {
		errno = EINVAL;
		return NULL;
	}
	if (rss)
		return skua_create_rss_qp(ibv_ctx, attr_ex);
	if (recv)
		return skua_create_xrc_recv_qp(ibv_ctx, attr_ex);

	qp = skua_qp_create_asked(attr_ex->pd, &attr, &extras);
	if (!qp)
		return NULL;

	if (send_ops)
		qp->vqp.comp_mask |= VERBS_QP_EX;
	attr_ex->cap = attr.cap;
	return &qp->vqp.qp;
}

/*
 * Take the QP's unpolled CQEs out of its CQs. The device writes no more of them. A QP of type XRC_SEND has no receive
 * CQ: one that its maker named may be gone, since the kernel does not know of it.
 */
static void skua_qp_purge(struct skua_qp *qp)
{
	struct skua_srq *srq = qp->vqp.qp.srq ? to_skua_srq(qp->vqp.qp.srq) : NULL;
	struct ibv_cq *send_cq = qp->vqp.qp.send_cq;
	struct ibv_cq *recv_cq = qp->vqp.qp.recv_cq;

	/* A QP without queues has no completions. One of RSS may name a CQ, and may have the number of another QP. */
	if (!qp->pd)
		return;
	if (send_cq)
		skua_cq_purge(to_skua_cq(send_cq), qp->vqp.qp.qp_num, srq);
	if (recv_cq && recv_cq != send_cq && qp->peer != SKUA_PEER_XRC)
		skua_cq_purge(to_skua_cq(recv_cq), qp->vqp.qp.qp_num, srq);
}

/* With what the older command does not carry. */
static int skua_qp_cmd_modify_ex(struct ibv_qp *ibv_qp, struct ibv_qp_attr *attr, int attr_mask,
				 const struct skua_modify_qp_req *req)
{
	struct skua_cmd_modify_qp_ex cmd = { .drv_payload = *req };
	struct ib_uverbs_ex_modify_qp_resp resp = {};

	return ibv_cmd_modify_qp_ex(ibv_qp, attr, attr_mask, &cmd.ibv_cmd, sizeof(cmd), &resp, sizeof(resp));
}

static int skua_qp_cmd_modify(struct skua_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
{
	struct skua_modify_qp_req req = {};
	struct ibv_modify_qp cmd = {};

	if (attr_mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RTR)
		req.ece_options = qp->ece_options;
	if (req.ece_options || attr_mask & IBV_QP_RATE_LIMIT)
		return skua_qp_cmd_modify_ex(&qp->vqp.qp, attr, attr_mask, &req);
	return ibv_cmd_modify_qp(&qp->vqp.qp, attr, attr_mask, &cmd, sizeof(cmd));
}

int skua_modify_qp(struct ibv_qp *ibv_qp, struct ibv_qp_attr *attr, int attr_mask)
{
	struct skua_qp *qp = to_skua_qp(ibv_qp);
	int err;

	err = skua_qp_cmd_modify(qp, attr, attr_mask);
	if (err)
		return err;

	if (attr_mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET) {
		qp->ece_set = false;
		qp->ece_options = 0;
		/* The device's indices are 0 now, and it looks at no record before INIT. */
		skua_qp_purge(qp);
		skua_lock(&qp->sq_lock);
		skua_lock(&qp->rq_lock);
		/* ibv_modify_qp() sets it, too, but later: what is posted until then would stay in the rings. */
		ibv_qp->state = IBV_QPS_RESET;
		skua_sq_reset(&qp->sq);
		skua_rq_reset(&qp->rq);
		skua_unlock(&qp->rq_lock);
		skua_unlock(&qp->sq_lock);
	}
	return 0;
}

int skua_modify_qp_rate_limit(struct ibv_qp *ibv_qp, struct ibv_qp_rate_limit_attr *attr)
{
	struct skua_modify_qp_req req = {
		.rate_burst = attr->max_burst_sz,
		.rate_packet = attr->typical_pkt_sz,
	};
	struct ibv_qp_attr qp_attr = { .rate_limit = attr->rate_limit };

	if (attr->comp_mask)
		return EINVAL;
	return skua_qp_cmd_modify_ex(ibv_qp, &qp_attr, IBV_QP_RATE_LIMIT, &req);
}

/* What agrees on options with its peer. */
static bool skua_qp_has_ece(struct skua_qp *qp)
{
	const struct skua_context *ctx = to_skua_context(qp->vqp.qp.context);

	return ctx->caps.features >> SKUA_F_ECE & 1 && qp->vqp.qp.qp_type != IBV_QPT_UD &&
	       qp->vqp.qp.qp_type != IBV_QPT_RAW_PACKET;
}

/* Options that the device lacks are left out, and the program is told. */
int skua_set_ece(struct ibv_qp *ibv_qp, struct ibv_ece *ece)
{
	struct skua_context *ctx = to_skua_context(ibv_qp->context);
	struct skua_qp *qp = to_skua_qp(ibv_qp);

	if (!skua_qp_has_ece(qp))
		return errno = EOPNOTSUPP;
	/* In RTR the QP uses them. */
	if (ece->comp_mask || ece->vendor_id != SKUA_PCI_VENDOR_ID ||
	    (ibv_qp->state != IBV_QPS_RESET && ibv_qp->state != IBV_QPS_INIT))
		return errno = EINVAL;

	ece->options &= ctx->caps.ece_options;
	qp->ece_options = ece->options;
	qp->ece_set = true;
	return 0;
}

/* Until the program has set them, those that may be agreed on. */
int skua_query_ece(struct ibv_qp *ibv_qp, struct ibv_ece *ece)
{
	struct skua_context *ctx = to_skua_context(ibv_qp->context);
	struct skua_qp *qp = to_skua_qp(ibv_qp);

	if (!skua_qp_has_ece(qp))
		return errno = EOPNOTSUPP;
	*ece = (struct ibv_ece) {
		.vendor_id = SKUA_PCI_VENDOR_ID,
		.options = qp->ece_set ? qp->ece_options : ctx->caps.ece_options,
	};
	return 0;
}

/* MEM-11: the device stores the bytes of each message in ascending order, whatever the QP. */
int skua_query_qp_data_in_order(struct ibv_qp *ibv_qp, enum ibv_wr_opcode op, uint32_t flags)
{
	static const bool brings_payload[] = {
		[IBV_WR_RDMA_WRITE] = true,
		[IBV_WR_RDMA_WRITE_WITH_IMM] = true,
		[IBV_WR_SEND] = true,
		[IBV_WR_SEND_WITH_IMM] = true,
		[IBV_WR_SEND_WITH_INV] = true,
		[IBV_WR_RDMA_READ] = true,
	};

	return op < ARRAY_SIZE(brings_payload) && brings_payload[op] ? IBV_QUERY_QP_DATA_IN_ORDER_WHOLE_MSG : 0;
}

int skua_query_qp(struct ibv_qp *ibv_qp, struct ibv_qp_attr *attr, int attr_mask,
		  struct ibv_qp_init_attr *init_attr)
{
	struct skua_qp *qp = to_skua_qp(ibv_qp);
	struct ibv_query_qp cmd = {};
	int err;

	err = ibv_cmd_query_qp(ibv_qp, attr, attr_mask, init_attr, &cmd, sizeof(cmd));
	if (err)
		return err;

	init_attr->cap = qp->cap;
	attr->cap = qp->cap;
	return 0;
}

int skua_destroy_qp(struct ibv_qp *ibv_qp)
{
	struct skua_qp *qp = to_skua_qp(ibv_qp);
	int err;

	err = ibv_cmd_destroy_qp(ibv_qp);
	if (err)
		return err;

	skua_qp_purge(qp);
	skua_tm_put(ibv_qp->srq);
	skua_qp_delete(qp);
	return 0;
}
