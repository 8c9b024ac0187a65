/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * skua_ib.ko: shared receive queues.
 */
#ifndef SKUA_IB_SRQ_H
#define SKUA_IB_SRQ_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>

#include <linux/skua/event.h>
#include <linux/skua/queue.h>

#include "qmem.h"

/**
 * struct skua_ib_srq_wr - a receive WQE, by its cookie
 * @wr_id: the consumer's
 * @next: the next cookie that is free, if this one is
 * @posted: it is not free
 */
struct skua_ib_srq_wr {
	u64 wr_id;
	u32 next;
	bool posted;
};

/**
 * struct skua_ib_srq - a shared receive queue
 * @ibsrq: as the core knows it
 * @watch: its number, and its events
 * @mem: its memory
 * @log_stride: bytes of an entry, log2
 * @max_sge: of an entry
 * @handle: of the kernel's XRC SRQs: how CQEs name it; else 0
 * @cq_node: the same: in its CQ's list
 * @modify_lock: held while it is modified
 * @lock: the kernel's: all below
 * @max_wr: entries at most that are posted and not completed
 * @rq: the kernel's ring. Its ci counts completions, which come in any order (SRQ-5)
 * @other: the ring that takes its place, while it is resized; size 0: none
 * @wrs: what was posted, by cookie
 * @num_wrs: cookies
 * @free: the first cookie that is free, or @num_wrs
 */
struct skua_ib_srq {
	struct ib_srq ibsrq;
	struct skua_obj_watch watch;
	struct skua_ib_qmem mem;
	u8 log_stride;
	u32 max_sge;
	u64 handle;
	struct list_head cq_node;
	struct mutex modify_lock;	/* one modify_srq at a time */

	spinlock_t lock;		/* all below */
	u32 max_wr;
	struct skua_rq rq;
	struct skua_rq other;
	struct skua_ib_srq_wr *wrs;
	u32 num_wrs;
	u32 free;
};

static inline struct skua_ib_srq *to_skua_ib_srq(struct ib_srq *ibsrq)
{
	return container_of(ibsrq, struct skua_ib_srq, ibsrq);
}

int skua_ib_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *attr,
		       struct ib_udata *udata);
int skua_ib_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		       enum ib_srq_attr_mask mask, struct ib_udata *udata);
int skua_ib_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr);
int skua_ib_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata);
int skua_ib_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
			  const struct ib_recv_wr **bad_wr);
/*
 * A CQE of the kernel's SRQ was taken out of its CQ. False: it is of no entry that is posted. The
 * SRQ's lock is held until the CQE's place was given back: then who posts has one for its CQE.
 */
bool skua_ib_srq_complete(struct skua_ib_srq *srq, const struct skua_cqe *cqe, u64 *wr_id);

#endif /* SKUA_IB_SRQ_H */
