/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * skua_ib.ko: completion queues.
 */
#ifndef SKUA_IB_CQ_H
#define SKUA_IB_CQ_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>

#include <linux/skua/event.h>
#include <linux/skua/queue.h>

#include "qmem.h"

struct skua_ib_qp;
struct skua_ib_srq;

/**
 * struct skua_ib_cq - a completion queue
 * @ibcq: as the core knows it
 * @node: in the device's list
 * @watch: its number, and its events
 * @mem: its memory
 * @resize_lock: held while a program's ring is exchanged
 * @lock: the kernel's: all below
 * @ring: the kernel's ring
 * @armed: what the last arming waits for that was not answered
 * @armed_ci: index that it was armed at
 * @send_qps: the kernel's QPs whose sends complete here
 * @recv_qps: the same for receives
 * @srqs: the kernel's XRC SRQs whose receives complete here. Few share a CQ
 */
struct skua_ib_cq {
	struct ib_cq ibcq;
	struct list_head node;
	struct skua_cq_watch watch;

	struct skua_ib_qmem mem;
	struct mutex resize_lock;	/* one resize_cq at a time */

	spinlock_t lock;		/* all below */
	struct skua_cq ring;
	enum skua_cq_arm_type armed;
	u32 armed_ci;
	struct list_head send_qps;
	struct list_head recv_qps;
	struct list_head srqs;
};

static inline struct skua_ib_cq *to_skua_ib_cq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct skua_ib_cq, ibcq);
}

/* Of the receives from SRQs of the kernel's only those of XRC have a handle: other SRQs have 0. */
static inline bool skua_ib_is_of_xrc_srq(const struct skua_cqe *cqe)
{
	return cqe->flags & SKUA_CQE_FROM_SRQ && cqe->qp_handle;
}

/* cq.c */
int skua_ib_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		      struct uverbs_attr_bundle *attrs);
int skua_ib_create_user_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
			   struct uverbs_attr_bundle *attrs);
int skua_ib_resize_user_cq(struct ib_cq *ibcq, unsigned int cqe, struct ib_udata *udata);
int skua_ib_modify_cq(struct ib_cq *ibcq, u16 count, u16 period);
int skua_ib_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int skua_ib_pre_destroy_cq(struct ib_cq *ibcq);
void skua_ib_post_destroy_cq(struct ib_cq *ibcq);
int skua_ib_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);
/* Take the CQEs of a QP out of a kernel CQ. The device writes no more of them. */
void skua_ib_cq_remove_qp(struct skua_ib_cq *cq, struct skua_ib_qp *qp);
/* Receives from an XRC SRQ of the kernel complete in its CQ, until it is removed with its CQEs. */
void skua_ib_cq_add_srq(struct skua_ib_cq *cq, struct skua_ib_srq *srq);
void skua_ib_cq_remove_srq(struct skua_ib_cq *cq, struct skua_ib_srq *srq);
/* NULL: none of this CQ's has the handle. It stays while the CQ's lock is held. */
struct skua_ib_srq *skua_ib_cq_find_srq(struct skua_ib_cq *cq, u64 handle);

/* poll.c */
int skua_ib_poll_cq(struct ib_cq *ibcq, int num_entries, struct ib_wc *wc);

#endif /* SKUA_IB_CQ_H */
