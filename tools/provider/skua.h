/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * libskua: the objects of the provider and the verbs that it serves.
 *
 * Rings and records are this process's memory (sq.h, rq.h, cq_ring.h); kernel and device
 * learn their addresses at create. The device finds the QP of a completion for us: a CQE
 * carries the address of our struct skua_qp, or of our struct skua_srq if its receive came from
 * one. That is sound because a QP is freed only after its CQEs were taken out of its CQs
 * (skua_qp_purge()), under the lock that pollers hold, and an SRQ only after its QPs; or, if it has
 * a CQ of its own (XRC, tags), after its CQEs were taken out, too (skua_cq_purge_srq()).
 *
 * Lock order: a CQ's lock, then its arm_lock (resize), or that of an SRQ (polling, taking CQEs out); an
 * SQ's lock, then the RQ's (modify to RESET). No other is taken inside another. A program that polls
 * between ibv_start_poll() and ibv_end_poll() has the poll_lock of the CQ, and may do anything else
 * meanwhile. So only polling waits for a poll_lock.
 */
#ifndef SKUA_H
#define SKUA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/driver.h>
#include <rdma/skua-abi.h>
#include <util/compiler.h>
#include <util/mmio.h>

#include <skua/regs.h>

#include "cq_ring.h"
#include "lock.h"
#include "rq.h"
#include "sq.h"
#include "srq.h"

struct skua_device {
	struct verbs_device vdev;
	size_t page_size;
};

struct skua_context {
	struct verbs_context vctx;
	struct skua_alloc_ucontext_resp caps;	/* as the kernel reported them */
	const struct skua_info_page *info;
	void *db;				/* doorbell page */
	bool event_idx;
	bool locked_is_full;			/* of skua_full_barrier() */
};

struct skua_td {
	struct ibv_td ibv_td;
	unsigned int users;		/* parent domains */
};

/* A protection domain, or a parent domain: one by another name, with what else belongs to it. */
struct skua_pd {
	struct ibv_pd ibv_pd;
	unsigned int users;		/* the program, and what we know to be made with it */

	struct skua_pd *contained;	/* a parent domain's PD; NULL: this is a PD */
	struct skua_td *td;		/* one thread at a time uses what is made with it */
	void *(*alloc)(struct ibv_pd *pd, void *context, size_t size, size_t alignment,
		       uint64_t resource_type);
	void (*free)(struct ibv_pd *pd, void *context, void *addr, uint64_t resource_type);
	void *context;
};

/* The way to a QP that takes datagrams. */
struct skua_ah {
	struct ibv_ah ibv_ah;
	struct skua_av av;		/* as WQEs have it */
};

struct skua_cq {
	struct verbs_cq vcq;
	struct skua_cq_ring ring;
	struct skua_lock lock;		/* ring, but arming */
	struct skua_lock arm_lock;
	struct skua_lock poll_lock;	/* from ibv_start_poll() to ibv_end_poll(): current */
	struct skua_cqe current;	/* a copy: its place in the ring is the device's again */
	const struct skua_info_page *info;
	struct skua_pd *domain;		/* parent domain, or NULL */
	struct skua_buf buf;		/* the first ring, and the record */
	struct skua_buf other_buf;	/* the ring, if it was resized */
	uint32_t cqn;
};

struct skua_op;

/* What a WQE that sends says of where it goes. */
enum skua_peer {
	SKUA_PEER_CONNECTED,		/* nothing */
	SKUA_PEER_UD,			/* the way to the peer */
	SKUA_PEER_XRC,			/* the peer's SRQ */
	SKUA_PEER_RAW,			/* nothing: the frame does. It may want checksums */
};

struct skua_qp {
	struct verbs_qp vqp;
	struct skua_sq sq;
	struct skua_lock sq_lock;
	void *db;
	uint32_t opcodes;		/* bits of enum ibv_wr_opcode that may be posted, but for: */
	uint32_t max_send_sge;
	uint32_t max_inline;
	uint8_t sq_sig;			/* SKUA_WQE_SIGNALED if all are */
	bool event_idx;
	uint8_t peer;			/* enum skua_peer */

	/* ibv_wr_start() to ibv_wr_complete(), under sq_lock */
	int wr_err;			/* the first one; nothing is built after it */
	uint32_t wr_first;		/* number of the first WR */
	struct skua_wqe wr;		/* its header */
	const struct skua_op *wr_op;
	union {
		struct skua_wqe_ud *wr_ud;
		struct skua_wqe_xrc *wr_xrc;
	};

	struct skua_rq rq;
	struct skua_lock rq_lock;
	uint32_t max_recv_sge;

	uint32_t rare_opcodes;		/* of SKUA_RARE_OPS, which post.c builds apart */
	bool atomics;			/* the device has them */
	uint16_t max_tso_header;	/* bytes; 0: no TSO */
	struct ibv_qp_cap cap;		/* what the rings truly hold */
	bool ece_set;			/* the options that are used are known: */
	uint32_t ece_options;
	struct skua_pd *pd;		/* NULL: XRC_RECV, without rings */
	struct skua_buf buf;
};

static inline struct skua_device *to_skua_device(struct ibv_device *ibv_dev)
{
	return container_of(ibv_dev, struct skua_device, vdev.device);
}

static inline struct skua_context *to_skua_context(struct ibv_context *ibv_ctx)
{
	return container_of(ibv_ctx, struct skua_context, vctx.context);
}

static inline struct skua_pd *to_skua_pd(struct ibv_pd *ibv_pd)
{
	return container_of(ibv_pd, struct skua_pd, ibv_pd);
}

/* XRC, with what it needs. */
static inline bool skua_has_xrc(const struct skua_context *ctx)
{
	const uint64_t needs = 1ull << SKUA_F_XRC | 1ull << SKUA_F_SRQ | 1ull << SKUA_F_RC;

	return !(needs & ~ctx->caps.features);
}

/* Tag matching, with what it needs. */
static inline bool skua_has_tags(const struct skua_context *ctx)
{
	const uint64_t needs = 1ull << SKUA_F_TAG_MATCHING | 1ull << SKUA_F_SRQ | 1ull << SKUA_F_RC | 1ull << SKUA_F_UD;

	return !(needs & ~ctx->caps.features);
}

/* Frames of programs may be cut by the device. */
static inline bool skua_has_tso(const struct skua_context *ctx)
{
	const uint64_t needs = 1ull << SKUA_F_RAW_PACKET | 1ull << SKUA_F_TSO;

	return !(needs & ~ctx->caps.features);
}

/* They may receive frames without their VLAN tags. */
static inline bool skua_has_strip_cvlan(const struct skua_context *ctx)
{
	const uint64_t needs = 1ull << SKUA_F_RAW_PACKET | 1ull << SKUA_F_STRIP_CVLAN;

	return !(needs & ~ctx->caps.features);
}

static inline struct skua_td *to_skua_td(struct ibv_td *ibv_td)
{
	return container_of(ibv_td, struct skua_td, ibv_td);
}

static inline struct skua_ah *to_skua_ah(struct ibv_ah *ibv_ah)
{
	return container_of(ibv_ah, struct skua_ah, ibv_ah);
}

static inline struct skua_cq *to_skua_cq(struct ibv_cq *ibv_cq)
{
	return container_of(ibv_cq, struct skua_cq, vcq.cq);
}

static inline struct skua_cq *to_skua_cq_ex(struct ibv_cq_ex *cq_ex)
{
	return container_of(cq_ex, struct skua_cq, vcq.cq_ex);
}

static inline struct skua_qp *to_skua_qp(struct ibv_qp *ibv_qp)
{
	return container_of(ibv_qp, struct skua_qp, vqp.qp);
}

static inline struct skua_qp *to_skua_qp_ex(struct ibv_qp_ex *qp_ex)
{
	return container_of(qp_ex, struct skua_qp, vqp.qp_ex);
}

static inline void skua_ring(void *db, unsigned int offset, uint32_t number, uint32_t index)
{
	/* The record is written before the doorbell. */
	udma_to_device_barrier();
	mmio_write64((char *)db + offset, SKUA_DB(number, index));
}

/* Publish what was built in the SQ, and tell the device if it wants to know. */
static inline void skua_sq_commit(struct skua_qp *qp)
{
	if (skua_sq_publish(&qp->sq, qp->event_idx))
		skua_ring(qp->db, SKUA_DB_SQ, qp->vqp.qp.qp_num, qp->sq.pi);
}

static inline void skua_pd_hold(struct skua_pd *pd)
{
	__atomic_add_fetch(&pd->users, 1, __ATOMIC_RELAXED);
}

/* What a program gives of a TSO; the headers themselves are for the device to check. */
static inline bool skua_tso_is_valid(const struct skua_qp *qp, uint16_t hdr_sz, uint16_t mss)
{
	return hdr_sz && hdr_sz <= qp->max_tso_header && mss;
}

/* buf.c: 0 or an errno. @size is rounded up to whole pages. @pd may bring an allocator, or be NULL. */
int skua_buf_alloc(struct skua_context *ctx, struct skua_pd *pd, struct skua_buf *buf, size_t size);
void skua_buf_free(struct skua_buf *buf);

/* pd.c */
/* The last one to put a PD frees it. */
void skua_pd_put(struct skua_pd *pd);
struct ibv_pd *skua_alloc_pd(struct ibv_context *ibv_ctx);
int skua_dealloc_pd(struct ibv_pd *ibv_pd);
struct ibv_pd *skua_import_pd(struct ibv_context *ibv_ctx, uint32_t handle);
void skua_unimport_pd(struct ibv_pd *ibv_pd);
struct ibv_td *skua_alloc_td(struct ibv_context *ibv_ctx, struct ibv_td_init_attr *attr);
int skua_dealloc_td(struct ibv_td *ibv_td);
struct ibv_pd *skua_alloc_parent_domain(struct ibv_context *ibv_ctx,
					struct ibv_parent_domain_init_attr *attr);

/* mr.c */
struct ibv_mr *skua_reg_mr(struct ibv_pd *ibv_pd, void *addr, size_t length, uint64_t hca_va,
			   int access);
int skua_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *ibv_pd, void *addr, size_t length,
		  int access);
struct ibv_mr *skua_reg_dm_mr(struct ibv_pd *ibv_pd, struct ibv_dm *ibv_dm, uint64_t offset,
			      size_t length, unsigned int access);
struct ibv_mr *skua_reg_dmabuf_mr(struct ibv_pd *ibv_pd, uint64_t offset, size_t length,
				  uint64_t iova, int fd, int access);
int skua_dereg_mr(struct verbs_mr *vmr);
int skua_advise_mr(struct ibv_pd *ibv_pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		   struct ibv_sge *sg_list, uint32_t num_sge);
struct ibv_mr *skua_import_mr(struct ibv_pd *ibv_pd, uint32_t handle);
void skua_unimport_mr(struct ibv_mr *ibv_mr);

/* dm.c */
struct ibv_dm *skua_alloc_dm(struct ibv_context *ibv_ctx, struct ibv_alloc_dm_attr *attr);
int skua_free_dm(struct ibv_dm *ibv_dm);
struct ibv_dm *skua_import_dm(struct ibv_context *ibv_ctx, uint32_t handle);
void skua_unimport_dm(struct ibv_dm *ibv_dm);

/* mw.c */
struct ibv_mw *skua_alloc_mw(struct ibv_pd *ibv_pd, enum ibv_mw_type type);
int skua_dealloc_mw(struct ibv_mw *mw);
int skua_bind_mw(struct ibv_qp *ibv_qp, struct ibv_mw *mw, struct ibv_mw_bind *mw_bind);

/* ah.c */
struct ibv_ah *skua_create_ah(struct ibv_pd *ibv_pd, struct ibv_ah_attr *attr);
int skua_destroy_ah(struct ibv_ah *ibv_ah);

/* cq.c */
struct ibv_cq *skua_create_cq(struct ibv_context *ibv_ctx, int cqe,
			      struct ibv_comp_channel *channel, int comp_vector);
struct ibv_cq_ex *skua_create_cq_ex(struct ibv_context *ibv_ctx,
				    struct ibv_cq_init_attr_ex *attr);
int skua_destroy_cq(struct ibv_cq *ibv_cq);
/* Nanoseconds since 1970 at this tick of the device's clock. */
uint64_t skua_wall_clock(const struct skua_info_page *info, uint64_t cycles);

int skua_resize_cq(struct ibv_cq *ibv_cq, int cqe);
int skua_modify_cq(struct ibv_cq *ibv_cq, struct ibv_modify_cq_attr *attr);
int skua_req_notify_cq(struct ibv_cq *ibv_cq, int solicited_only);
void skua_cq_event(struct ibv_cq *ibv_cq);
/* Take the CQEs of a QP out of it; @srq is the QP's, or NULL. The device writes no more of them. */
void skua_cq_purge(struct skua_cq *cq, uint32_t qpn, struct skua_srq *srq);
/* The same for those of an SRQ with a CQ of its own, which goes. */
void skua_cq_purge_srq(struct skua_cq *cq, const struct skua_srq *srq);

/* poll.c */
int skua_poll_cq(struct ibv_cq *ibv_cq, int num_entries, struct ibv_wc *wc);
void skua_cq_fill_ex_ops(struct ibv_cq_ex *cq_ex, uint64_t wc_flags);

/* qp.c */
/* What a QP may be created with besides struct ibv_qp_init_attr. */
struct skua_qp_extras {
	uint64_t send_ops;		/* enum ibv_qp_create_send_ops_flags */
	uint32_t create_flags;		/* enum ibv_qp_create_flags */
	uint16_t max_tso_header;
};

struct skua_qp *skua_qp_new(void);
void skua_qp_init_locks(struct skua_qp *qp, bool needed);
/* Of these two: 0 or an errno. */
int skua_qp_size_rq(const struct skua_alloc_ucontext_resp *caps, struct skua_qp *qp, const struct ibv_qp_cap *asked);
int skua_qp_alloc_rings(struct skua_context *ctx, struct skua_qp *qp, struct skua_pd *pd);
void skua_qp_free_rings(struct skua_qp *qp);
/* Whatever SRQ it has. Errors as of ibv_create_qp(). @attr->cap becomes what the rings hold. */
struct skua_qp *skua_qp_create(struct ibv_pd *ibv_pd, struct ibv_qp_init_attr *attr,
			       const struct skua_qp_extras *extras);
/* The kernel has none of it any more, and no CQE. */
void skua_qp_delete(struct skua_qp *qp);
struct ibv_qp *skua_create_qp(struct ibv_pd *ibv_pd, struct ibv_qp_init_attr *attr);
struct ibv_qp *skua_create_qp_ex(struct ibv_context *ibv_ctx,
				 struct ibv_qp_init_attr_ex *attr_ex);
int skua_modify_qp(struct ibv_qp *ibv_qp, struct ibv_qp_attr *attr, int attr_mask);
int skua_modify_qp_rate_limit(struct ibv_qp *ibv_qp, struct ibv_qp_rate_limit_attr *attr);
int skua_set_ece(struct ibv_qp *ibv_qp, struct ibv_ece *ece);
int skua_query_ece(struct ibv_qp *ibv_qp, struct ibv_ece *ece);
int skua_query_qp_data_in_order(struct ibv_qp *ibv_qp, enum ibv_wr_opcode op, uint32_t flags);
int skua_query_qp(struct ibv_qp *ibv_qp, struct ibv_qp_attr *attr, int attr_mask,
		  struct ibv_qp_init_attr *init_attr);
int skua_destroy_qp(struct ibv_qp *ibv_qp);

/* srq.c */
struct ibv_srq *skua_create_srq(struct ibv_pd *ibv_pd, struct ibv_srq_init_attr *attr);
struct ibv_srq *skua_create_srq_ex(struct ibv_context *ibv_ctx, struct ibv_srq_init_attr_ex *attr);
/* One with a CQ of its own; or NULL and errno. */
struct skua_srq *skua_srq_create_ex(struct ibv_srq_init_attr_ex *attr);
int skua_get_srq_num(struct ibv_srq *ibv_srq, uint32_t *srq_num);
int skua_modify_srq(struct ibv_srq *ibv_srq, struct ibv_srq_attr *attr, int attr_mask);
int skua_query_srq(struct ibv_srq *ibv_srq, struct ibv_srq_attr *attr);
int skua_destroy_srq(struct ibv_srq *ibv_srq);
int skua_post_srq_recv(struct ibv_srq *ibv_srq, struct ibv_recv_wr *wr,
		       struct ibv_recv_wr **bad_wr);

/* tm_ops.c */
int skua_post_srq_ops(struct ibv_srq *ibv_srq, struct ibv_ops_wr *op, struct ibv_ops_wr **bad_op);

/* xrc.c */
struct ibv_xrcd *skua_open_xrcd(struct ibv_context *ibv_ctx, struct ibv_xrcd_init_attr *attr);
int skua_close_xrcd(struct ibv_xrcd *ibv_xrcd);
struct ibv_qp *skua_create_xrc_recv_qp(struct ibv_context *ibv_ctx, struct ibv_qp_init_attr_ex *attr);
struct ibv_qp *skua_open_qp(struct ibv_context *ibv_ctx, struct ibv_qp_open_attr *attr);

/* flow.c */
struct ibv_flow *skua_create_flow(struct ibv_qp *ibv_qp, struct ibv_flow_attr *attr);
int skua_destroy_flow(struct ibv_flow *flow);

/* wq.c */
struct ibv_wq *skua_create_wq(struct ibv_context *ibv_ctx, struct ibv_wq_init_attr *attr);
int skua_modify_wq(struct ibv_wq *ibv_wq, struct ibv_wq_attr *attr);
int skua_destroy_wq(struct ibv_wq *ibv_wq);
struct ibv_rwq_ind_table *skua_create_rwq_ind_table(struct ibv_context *ibv_ctx,
						    struct ibv_rwq_ind_table_init_attr *attr);
int skua_destroy_rwq_ind_table(struct ibv_rwq_ind_table *table);
struct ibv_qp *skua_create_rss_qp(struct ibv_context *ibv_ctx, struct ibv_qp_init_attr_ex *attr);

/* post.c */
/* Whatever state it has. With qp->rq_lock. */
int skua_qp_post_recv(struct skua_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int skua_post_send(struct ibv_qp *ibv_qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int skua_post_recv(struct ibv_qp *ibv_qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

/* wr.c: false if @ops (IBV_QP_EX_WITH_*) has one that the QP does not serve. */
bool skua_qp_fill_wr_ops(struct skua_qp *qp, uint64_t ops);

#endif /* SKUA_H */
