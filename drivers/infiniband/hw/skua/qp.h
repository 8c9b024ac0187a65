/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * skua_ib.ko: queue pairs.
 */
#ifndef SKUA_IB_QP_H
#define SKUA_IB_QP_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>

#include <linux/skua/event.h>
#include <linux/skua/queue.h>

#include "qmem.h"

/**
 * struct skua_ib_wr - a posted send WQE, by the slot of its first block
 * @wr_id: the consumer's
 * @number: of the WQE, counted from the QP's first one
 */
struct skua_ib_wr {
	u64 wr_id;
	u32 number;
};

/**
 * struct skua_ib_qp - a queue pair
 * @ibqp: as the core knows it
 * @watch: its number, and its events
 * @modify_lock: held while its state and attributes are changed
 * @state: as modify_qp left it; the device may have gone on to ERR by itself. Written under both
 *	queue locks
 * @dest_qpn: of the peer
 * @send_cqn: of its send CQ, or 0. A QP that is being destroyed does not hold its CQs any more,
 *	and may still be shown
 * @recv_cqn: the same of its receive CQ
 * @cap: limits of its queues
 * @sig_all: all sends are signaled
 * @strip_cvlan: VLAN tags are stripped from frames that it receives
 * @last_wqe_told: LAST_WQE_REACHED was raised since INIT, by the device or for it when it died
 * @sq_mem: memory of its SQ
 * @rq_mem: memory of its RQ
 * @sq_lock: posting sends
 * @sq: the kernel's SQ
 * @sq_posted: number of the next WQE
 * @sq_wrs: what was posted, by slot; written under @sq_lock, read under the CQ's lock
 * @rq_lock: posting receives
 * @rq: the kernel's RQ
 * @rq_wr_ids: what was posted, by slot; written under @rq_lock, read under the CQ's lock
 * @send_node: in the send CQ's list
 * @recv_node: in the receive CQ's list
 */
struct skua_ib_qp {
	struct ib_qp ibqp;
	struct skua_obj_watch watch;
	struct mutex modify_lock;	/* see above */
	enum ib_qp_state state;
	u32 dest_qpn;
	u32 send_cqn;
	u32 recv_cqn;
	struct ib_qp_cap cap;
	bool sig_all;
	bool strip_cvlan;
	bool last_wqe_told;

	struct skua_ib_qmem sq_mem;
	struct skua_ib_qmem rq_mem;

	spinlock_t sq_lock;		/* posting sends */
	struct skua_sq sq;
	u32 sq_posted;
	struct skua_ib_wr *sq_wrs;

	spinlock_t rq_lock;		/* posting receives */
	struct skua_rq rq;
	u64 *rq_wr_ids;

	struct list_head send_node;
	struct list_head recv_node;
};

static inline struct skua_ib_qp *to_skua_ib_qp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct skua_ib_qp, ibqp);
}

/* Each message of such a QP goes wherever its WQE says. */
static inline bool skua_ib_is_datagram(const struct ib_qp *ibqp)
{
	return ibqp->qp_type == IB_QPT_UD || ibqp->qp_type == IB_QPT_GSI;
}

/* The device has QPs of this type of verbs. */
bool skua_ib_has_type(const struct skua_dev *dev, enum ib_qp_type type);

/* The core makes such a QP without a program's request, as several programs may use it. */
static inline bool skua_ib_has_no_queues(const struct ib_qp *ibqp)
{
	return ibqp->qp_type == IB_QPT_XRC_TGT;
}

struct skua_ib_dev;
struct skua_ib_ucontext;
struct skua_qp_params;

/* qp.c */
/* Create a QP of these queues in the device, and let its events come. @params lacks the queues. */
int skua_ib_queues_start(struct skua_dev *dev, struct skua_obj_watch *watch,
			 const struct skua_ib_qmem *sq_mem, const struct skua_ib_qmem *rq_mem,
			 struct skua_qp_params *params);
void skua_ib_queues_stop(struct skua_dev *dev, struct skua_obj_watch *watch);
/* Check and pin a program's RQ. It is @mem's, whose owner frees it on error, too. */
int skua_ib_user_rq_take(struct skua_ib_dev *dev, struct skua_ib_ucontext *ucontext,
			 const struct uverbs_attr_bundle *attrs, struct skua_ib_qmem *mem,
			 u64 addr, u64 dbr_addr, u8 log_size, u8 log_stride);
int skua_ib_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr, struct ib_udata *udata);
int skua_ib_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		      struct ib_udata *udata);
int skua_ib_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		     struct ib_qp_init_attr *init_attr);
int skua_ib_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);

/* post.c */
int skua_ib_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		      const struct ib_send_wr **bad_wr);
int skua_ib_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad_wr);

/* mcast.c */
int skua_ib_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);
int skua_ib_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);

#endif /* SKUA_IB_QP_H */
