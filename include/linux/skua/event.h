/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Skua: events of CQs and QPs, from the EQs to whoever owns the object.
 *
 * An owner watches an object after its CREATE command and unwatches it after its DESTROY
 * command. After unwatch no callback runs or will run, so that the owner may free what the
 * callbacks use. Unwatching waits for no callbacks but the object's own. It sleeps, and must not be
 * done from a callback.
 */
#ifndef LINUX_SKUA_EVENT_H
#define LINUX_SKUA_EVENT_H

#include <linux/completion.h>
#include <linux/refcount.h>
#include <linux/types.h>

#include <skua/eqe.h>

struct skua_dev;

/**
 * struct skua_watch - the part of skua.ko in a watch
 * @users: the owner, until it unwatches, and each callback that runs
 * @unused: completed by the last of them
 */
struct skua_watch {
	refcount_t users;
	struct completion unused;
};

/**
 * struct skua_cq_watch - who is told of a CQ's events
 * @watch: private
 * @comp: the CQ fired; hard interrupt context, or interrupts off
 * @error: the CQ is in error; process context
 * @cqn: of the CQ
 */
struct skua_cq_watch {
	struct skua_watch watch;
	void (*comp)(struct skua_cq_watch *watch);
	void (*error)(struct skua_cq_watch *watch);
	u32 cqn;
};

int skua_cq_watch(struct skua_dev *dev, struct skua_cq_watch *watch);
void skua_cq_unwatch(struct skua_dev *dev, struct skua_cq_watch *watch);

/**
 * struct skua_qp_watch - who is told of a QP's events
 * @watch: private
 * @event: one of SKUA_EVENT_QP_*, COMM_EST, SQ_DRAINED; process context
 * @qpn: of the QP
 */
struct skua_qp_watch {
	struct skua_watch watch;
	void (*event)(struct skua_qp_watch *watch, u8 type);
	u32 qpn;
};

int skua_qp_watch(struct skua_dev *dev, struct skua_qp_watch *watch);
void skua_qp_unwatch(struct skua_dev *dev, struct skua_qp_watch *watch);

#endif /* LINUX_SKUA_EVENT_H */
