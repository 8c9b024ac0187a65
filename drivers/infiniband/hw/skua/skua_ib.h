/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * skua_ib.ko: the objects of verbs, one file for each.
 *
 * Queues are either a program's (user memory, which the kernel pins and describes to the device
 * and never looks at) or the kernel's own (linux/skua/queue.h), used by post.c and poll.c.
 *
 * Lock order: a QP's mutex, the device's mutex, a CQ's lock, a QP's SQ lock, its RQ lock. The locks
 * of two CQs are never held at once.
 */
#ifndef SKUA_IB_H
#define SKUA_IB_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/rbtree.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

#include <linux/skua/command.h>
#include <linux/skua/device.h>
#include <linux/skua/event.h>
#include <linux/skua/memory.h>
#include <linux/skua/queue.h>
#include <rdma/skua-abi.h>

#include "compat.h"

/**
 * struct skua_ib_dev - the RDMA device
 * @ibdev: as the core knows it
 * @dev: the device behind it
 * @notifier: told of its death
 * @netdev_notifier: told of the port's state; older kernels only
 * @port_state: as last reported; older kernels only
 * @lock: @ucontexts, @cqs, @registered, @dead, the dispatch of events, and calls of handlers of CQs
 *	for a dead device
 * @ucontexts: all contexts, for their information pages
 * @cqs: all CQs, for when the device dies
 * @registered: events may be dispatched
 * @dead: the device is dead and fenced: software completes what it left. Read without @lock, too
 * @qps: the kernel's QPs by qpn
 * @flush: work that calls the handlers of the kernel's CQs when the device is dead
 */
struct skua_ib_dev {
	struct ib_device ibdev;
	struct skua_dev *dev;
	struct notifier_block notifier;
	struct notifier_block netdev_notifier;
	enum ib_port_state port_state;
	struct mutex lock;		/* the lists, and the dispatch of events */
	struct list_head ucontexts;
	struct list_head cqs;
	bool registered;
	bool dead;
	struct xarray qps;
	struct work_struct flush;
};

enum skua_ib_mmap_kind {
	SKUA_IB_MMAP_DB,
	SKUA_IB_MMAP_INFO,
};

struct skua_ib_mmap {
	struct rdma_user_mmap_entry entry;
	enum skua_ib_mmap_kind kind;
};

/**
 * struct skua_ib_ucontext - an opening of the device by a program
 * @ibucontext: as the core knows it
 * @node: in the device's list
 * @db: its doorbell pages
 * @info: its information page
 * @db_mmap: the doorbell pages, for mmap
 * @info_mmap: the information page, for mmap
 * @dbr_lock: @dbr_pages
 * @dbr_pages: pages of the program that hold doorbell records, by process and address
 */
struct skua_ib_ucontext {
	struct ib_ucontext ibucontext;
	struct list_head node;
	struct skua_db_pages db;
	struct page *info;
	struct skua_ib_mmap *db_mmap;
	struct skua_ib_mmap *info_mmap;
	struct mutex dbr_lock;		/* dbr_pages */
	struct rb_root dbr_pages;
};

struct skua_ib_pd {
	struct ib_pd ibpd;
	u32 pdn;
};

struct skua_ib_mr {
	struct ib_mr ibmr;
	struct ib_umem *umem;
	u32 key;
};

/**
 * struct skua_ib_ah - the way to a QP that takes datagrams
 * @ibah: as the core knows it
 * @av: as WQEs have it
 */
struct skua_ib_ah {
	struct ib_ah ibah;
	struct skua_av av;
};

struct skua_ib_dbr_page;

/**
 * struct skua_ib_user_dbr - a doorbell record in a program's memory
 * @page: the page that holds it; NULL: there is none
 * @dma: its DMA address
 */
struct skua_ib_user_dbr {
	struct skua_ib_dbr_page *page;
	dma_addr_t dma;
};

/**
 * struct skua_ib_qmem - the memory of a queue
 * @umem: a program's ring; NULL: the queue is the kernel's, or there is none
 * @user_dbr: a program's record
 * @ring: the kernel's ring
 * @dbr: the kernel's record
 * @dbr_dma: DMA address of the record
 */
struct skua_ib_qmem {
	struct ib_umem *umem;
	struct skua_ib_user_dbr user_dbr;
	struct skua_mem ring;
	void *dbr;
	dma_addr_t dbr_dma;
};

/**
 * struct skua_ib_cq - a completion queue
 * @ibcq: as the core knows it
 * @node: in the device's list
 * @watch: its number, and its events
 * @mem: its memory
 * @lock: the kernel's: all below
 * @ring: the kernel's ring
 * @armed: what the last arming waits for that was not answered
 * @armed_ci: index that it was armed at
 * @send_qps: the kernel's QPs whose sends complete here
 * @recv_qps: the same for receives
 */
struct skua_ib_cq {
	struct ib_cq ibcq;
	struct list_head node;
	struct skua_cq_watch watch;

	struct skua_ib_qmem mem;

	spinlock_t lock;		/* all below */
	struct skua_cq ring;
	enum skua_cq_arm_type armed;
	u32 armed_ci;
	struct list_head send_qps;
	struct list_head recv_qps;
};

/**
 * struct skua_ib_wr - a posted send WQE, by the slot of its first block
 * @wr_id: the consumer's
 * @number: of the WQE, counted from the QP's first one
 * @nblocks: of the WQE
 */
struct skua_ib_wr {
	u64 wr_id;
	u32 number;
	u8 nblocks;
};

/**
 * struct skua_ib_qp - a queue pair
 * @ibqp: as the core knows it
 * @watch: its number, and its events
 * @modify_lock: held while its state and attributes are changed
 * @state: as modify_qp left it; the device may have gone on to ERR by itself. Written under both
 *	queue locks
 * @dest_qpn: of the peer
 * @cap: limits of its queues
 * @sig_all: all sends are signaled
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
	struct skua_qp_watch watch;
	struct mutex modify_lock;	/* see above */
	enum ib_qp_state state;
	u32 dest_qpn;
	struct ib_qp_cap cap;
	bool sig_all;

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

static inline struct skua_ib_dev *to_skua_ib_dev(struct ib_device *ibdev)
{
	return container_of(ibdev, struct skua_ib_dev, ibdev);
}

static inline struct skua_dev *to_skua_dev(struct ib_device *ibdev)
{
	return to_skua_ib_dev(ibdev)->dev;
}

static inline struct skua_ib_ucontext *to_skua_ib_ucontext(struct ib_ucontext *ibucontext)
{
	return container_of(ibucontext, struct skua_ib_ucontext, ibucontext);
}

static inline struct skua_ib_pd *to_skua_ib_pd(struct ib_pd *ibpd)
{
	return container_of(ibpd, struct skua_ib_pd, ibpd);
}

static inline struct skua_ib_mr *to_skua_ib_mr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct skua_ib_mr, ibmr);
}

static inline struct skua_ib_ah *to_skua_ib_ah(struct ib_ah *ibah)
{
	return container_of(ibah, struct skua_ib_ah, ibah);
}

static inline struct skua_ib_cq *to_skua_ib_cq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct skua_ib_cq, ibcq);
}

static inline struct skua_ib_qp *to_skua_ib_qp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct skua_ib_qp, ibqp);
}

/* Each message of such a QP goes wherever its WQE says. */
static inline bool skua_ib_is_datagram(const struct ib_qp *ibqp)
{
	return ibqp->qp_type == IB_QPT_UD || ibqp->qp_type == IB_QPT_GSI;
}

/* device.c */
u32 skua_ib_max_qp_wr(const struct skua_dev *dev);
int skua_ib_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
			 struct ib_udata *udata);
void skua_ib_get_fw_str(struct ib_device *ibdev, char *str);

/* port.c */
int skua_ib_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr);
int skua_ib_get_port_immutable(struct ib_device *ibdev, u32 port,
			       struct ib_port_immutable *immutable);
enum rdma_link_layer skua_ib_get_link_layer(struct ib_device *ibdev, u32 port);
int skua_ib_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey);
/* Tell consumers when the port goes up and down. */
int skua_ib_port_events_start(struct skua_ib_dev *dev);
void skua_ib_port_events_stop(struct skua_ib_dev *dev);

/* gid.c */
int skua_ib_add_gid(const struct ib_gid_attr *attr, void **context);
int skua_ib_del_gid(const struct ib_gid_attr *attr, void **context);

/* ucontext.c */
int skua_ib_alloc_ucontext(struct ib_ucontext *ibucontext, struct ib_udata *udata);
void skua_ib_dealloc_ucontext(struct ib_ucontext *ibucontext);
int skua_ib_query_ucontext(struct ib_ucontext *ibucontext, struct uverbs_attr_bundle *attrs);
/* Commands of uverbs to which we add attributes. */
extern const struct uapi_definition skua_ib_uapi[];
void skua_ib_disassociate_ucontext(struct ib_ucontext *ibucontext);
int skua_ib_mmap(struct ib_ucontext *ibucontext, struct vm_area_struct *vma);
void skua_ib_mmap_free(struct rdma_user_mmap_entry *entry);
/* No completion will come any more: say so to the program. */
void skua_ib_ucontext_dead(struct skua_ib_ucontext *ucontext);

/* pd.c */
int skua_ib_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
int skua_ib_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);

/* umem.c */

/* Describe pinned memory to the device. Free the pages after the command that takes them. */
int skua_ib_umem_describe(struct skua_dev *dev, struct ib_umem *umem,
			  struct skua_pagelist_builder *pages);
/* Pin a queue of @size bytes, a multiple of @entry_size, at @addr of the program. */
struct ib_umem *skua_ib_umem_queue(struct skua_ib_dev *dev, u64 addr, size_t size,
				   size_t entry_size);
int skua_ib_user_dbr_get(struct skua_ib_ucontext *ucontext, u64 addr,
			 struct skua_ib_user_dbr *dbr);
/* Nothing happens if there is none. */
void skua_ib_user_dbr_put(struct skua_ib_user_dbr *dbr);

/* qmem.c */

/* The kernel's: @size bytes. */
int skua_ib_qmem_alloc(struct skua_dev *dev, struct skua_ib_qmem *mem, size_t size);
/* A program's: @umem may be an error. It is @mem's from now on, or, on error, released. */
int skua_ib_qmem_take(struct skua_ib_ucontext *ucontext, struct skua_ib_qmem *mem,
		      struct ib_umem *umem, u64 dbr_addr);
/* Where there is no memory, no pages. Free the list after the command that takes it. */
int skua_ib_qmem_describe(struct skua_dev *dev, const struct skua_ib_qmem *mem,
			  struct skua_pagelist_builder *pages);
/* Nothing happens if there is none. */
void skua_ib_qmem_free(struct skua_dev *dev, struct skua_ib_qmem *mem);

/* mr.c */
struct ib_mr *skua_ib_get_dma_mr(struct ib_pd *ibpd, int access);
struct ib_mr *skua_ib_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 iova, int access,
				  struct ib_dmah *dmah, struct ib_udata *udata);
int skua_ib_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);

/* ah.c */
/* -EINVAL if the device does not take it. */
int skua_ib_set_av(struct skua_av *av, const struct rdma_ah_attr *ah);
void skua_ib_get_av(struct rdma_ah_attr *ah, const struct skua_av *av);
int skua_ib_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *attr, struct ib_udata *udata);
int skua_ib_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr);
int skua_ib_destroy_ah(struct ib_ah *ibah, u32 flags);

/* cq.c */
int skua_ib_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		      struct uverbs_attr_bundle *attrs);
int skua_ib_create_user_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
			   struct uverbs_attr_bundle *attrs);
int skua_ib_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int skua_ib_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);
/* Take the CQEs of a QP out of a kernel CQ. The device writes no more of them. */
void skua_ib_cq_remove_qp(struct skua_ib_cq *cq, u32 qpn);

/* poll.c */
int skua_ib_poll_cq(struct ib_cq *ibcq, int num_entries, struct ib_wc *wc);

/* qp.c */
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

/* flush.c */
void skua_ib_flush_init(struct skua_ib_dev *dev);
/* Call handlers of armed CQs of a dead device that have completions. Any context. */
void skua_ib_flush_kick(struct skua_ib_dev *dev);
/* Would skua_ib_flush_poll() make a completion? The CQ's lock is held. */
bool skua_ib_flush_due(struct skua_ib_cq *cq);
/* Make completions for what the dead device left undone. The CQ's lock is held. */
int skua_ib_flush_poll(struct skua_ib_cq *cq, int num_entries, struct ib_wc *wc);
/* The device died, and is fenced. */
void skua_ib_dead(struct skua_ib_dev *dev);

/* stats.c */
struct rdma_hw_stats *skua_ib_alloc_hw_port_stats(struct ib_device *ibdev, u32 port);
int skua_ib_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port,
			 int index);

#endif /* SKUA_IB_H */
