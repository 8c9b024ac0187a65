/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * skua_ib.ko: the device and its port. Each object of verbs has a file and a header of its own.
 *
 * Queues are either a program's (user memory, which the kernel pins and describes to the device
 * and never looks at) or the kernel's own (linux/skua/queue.h), used by post.c and poll.c.
 *
 * Lock order: a QP's or SRQ's mutex, the device's mutex, a CQ's lock, a QP's SQ lock, its RQ lock
 * or the lock of its SRQ. The locks of two CQs are never held at once. The lock of the table of
 * target QPs is taken last.
 */
#ifndef SKUA_IB_H
#define SKUA_IB_H

#include <linux/bitmap.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

#include <linux/skua/device.h>

#include "compat.h"
#include "odp.h"

#define SKUA_IB_MAX_STATS	128

/**
 * struct skua_ib_dev - the RDMA device
 * @ibdev: as the core knows it
 * @dev: the device behind it
 * @notifier: told of its death
 * @netdev_notifier: told of the port's state
 * @port_state: as last reported; older kernels only
 * @lock: @ucontexts, @cqs, @registered, @dead, the dispatch of events, and calls of handlers of CQs
 *	for a dead device
 * @ucontexts: all contexts, for their information pages
 * @cqs: all CQs, for when the device dies
 * @registered: events may be dispatched
 * @dead: the device is dead and fenced: software completes what it left. Read without @lock, too
 * @qps: the kernel's QPs by qpn
 * @targets: XRC target QPs by qpn, those of programs included
 * @flush: work that calls the handlers of the kernel's CQs when the device is dead
 * @faults: page faults of memory on demand
 * @shown_stats: counters on demand that the port shows, by their numbers (stats.c)
 * @clock: work that tells programs what time it is by the device's clock
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
	struct xarray targets;
	struct work_struct flush;
	struct skua_ib_faults faults;
	DECLARE_BITMAP(shown_stats, SKUA_IB_MAX_STATS);
	struct delayed_work clock;
};

static inline struct skua_ib_dev *to_skua_ib_dev(struct ib_device *ibdev)
{
	return container_of(ibdev, struct skua_ib_dev, ibdev);
}

static inline struct skua_dev *to_skua_dev(struct ib_device *ibdev)
{
	return to_skua_ib_dev(ibdev)->dev;
}

/* device.c */
bool skua_ib_has_fast_reg(const struct skua_dev *dev);
bool skua_ib_has_sg_gaps(const struct skua_dev *dev);
u32 skua_ib_max_fast_list(const struct skua_dev *dev);
bool skua_ib_has_xrc(const struct skua_dev *dev);
bool skua_ib_has_tags(const struct skua_dev *dev);
bool skua_ib_has_raw_packet(const struct skua_dev *dev);
bool skua_ib_has_strip_cvlan(const struct skua_dev *dev);
u32 skua_ib_max_qp_wr(const struct skua_dev *dev);
int skua_ib_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
			 struct ib_udata *udata);
void skua_ib_get_fw_str(struct ib_device *ibdev, char *str);

/* port.c */
int skua_ib_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr);
int skua_ib_query_port_speed(struct ib_device *ibdev, u32 port, u64 *speed);
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

/* stats.c */
struct rdma_hw_stats *skua_ib_alloc_hw_port_stats(struct ib_device *ibdev, u32 port);
int skua_ib_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port,
			 int index);
int skua_ib_modify_hw_stat(struct ib_device *ibdev, u32 port, unsigned int index, bool enable);

struct rdma_counter;
void skua_ib_counter_init(struct rdma_counter *counter);
struct rdma_hw_stats *skua_ib_counter_alloc_stats(struct rdma_counter *counter);
int skua_ib_counter_update_stats(struct rdma_counter *counter);
int skua_ib_counter_bind_qp(struct rdma_counter *counter, struct ib_qp *ibqp, u32 port);
int skua_ib_counter_unbind_qp(struct ib_qp *ibqp, u32 port);
int skua_ib_counter_dealloc(struct rdma_counter *counter);

/* clock.c */
struct skua_ib_ucontext;
void skua_ib_clock_init(struct skua_ib_dev *dev);
/* The page of a program that is new in the list, now and from now on. The device's lock is held. */
void skua_ib_clock_start(struct skua_ib_dev *dev, struct skua_ib_ucontext *ucontext);
extern const struct uapi_definition skua_ib_clock_uapi[];

/* mad.c */
int skua_ib_process_mad(struct ib_device *ibdev, int flags, u32 port, const struct ib_wc *in_wc,
			const struct ib_grh *in_grh, const struct ib_mad *in, struct ib_mad *out,
			size_t *out_size, u16 *out_pkey_index);

#endif /* SKUA_IB_H */
