/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Skua: events of CQs, QPs and SRQs, from the EQs to whoever owns the object; and page faults.
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
 * struct skua_obj_watch - who is told of the events of a QP or an SRQ
 * @watch: private
 * @event: one of the types that &enum skua_event_type has for such an object; process context
 * @number: of the object
 */
struct skua_obj_watch {
	struct skua_watch watch;
	void (*event)(struct skua_obj_watch *watch, u8 type);
	u32 number;
};

int skua_qp_watch(struct skua_dev *dev, struct skua_obj_watch *watch);
void skua_qp_unwatch(struct skua_dev *dev, struct skua_obj_watch *watch);
int skua_srq_watch(struct skua_dev *dev, struct skua_obj_watch *watch);
void skua_srq_unwatch(struct skua_dev *dev, struct skua_obj_watch *watch);

/**
 * struct skua_fault_watch - who resolves page faults
 * @fault: a QP has a page fault, which skua_cmd_fault_resume() ends; process context
 */
struct skua_fault_watch {
	void (*fault)(struct skua_fault_watch *watch, const struct skua_fault_eqe *eqe);
};

/* One at a time. Without one, accesses that fault fail. */
void skua_fault_watch(struct skua_dev *dev, struct skua_fault_watch *watch);
void skua_fault_unwatch(struct skua_dev *dev);

#endif /* LINUX_SKUA_EVENT_H */
