/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * skua_ib.ko: work queues, and the QPs that spread frames over them.
 */
#ifndef SKUA_IB_RSS_H
#define SKUA_IB_RSS_H

#include <linux/mutex.h>
#include <rdma/ib_verbs.h>

#include <linux/skua/event.h>

#include "qmem.h"

struct skua_ib_dev;

/**
 * struct skua_ib_wq - a work queue, which is a raw packet QP without an SQ
 * @ibwq: as the core knows it
 * @watch: its number, and its events
 * @modify_lock: held while its state and @strip_cvlan are changed
 * @strip_cvlan: VLAN tags are stripped from frames that it receives. The device forgets it in RESET
 * @mem: memory of its ring
 */
struct skua_ib_wq {
	struct ib_wq ibwq;
	struct skua_obj_watch watch;
	struct mutex modify_lock;	/* see above */
	bool strip_cvlan;
	struct skua_ib_qmem mem;
};

/* The core keeps the table; the device learns of it with a QP. */
struct skua_ib_rwq_ind_table {
	struct ib_rwq_ind_table ibtable;
};

static inline struct skua_ib_wq *to_skua_ib_wq(struct ib_wq *ibwq)
{
	return container_of(ibwq, struct skua_ib_wq, ibwq);
}

/* Such a QP is an RSS object of the device, and has no queues and no states. */
static inline bool skua_ib_is_rss(const struct ib_qp *ibqp)
{
	return ibqp->rwq_ind_tbl;
}

struct ib_wq *skua_ib_create_wq(struct ib_pd *ibpd, struct ib_wq_init_attr *attr,
				struct ib_udata *udata);
int skua_ib_modify_wq(struct ib_wq *ibwq, struct ib_wq_attr *attr, u32 mask,
		      struct ib_udata *udata);
int skua_ib_destroy_wq(struct ib_wq *ibwq, struct ib_udata *udata);
int skua_ib_create_rwq_ind_table(struct ib_rwq_ind_table *ibtable,
				 struct ib_rwq_ind_table_init_attr *attr, struct ib_udata *udata);
int skua_ib_destroy_rwq_ind_table(struct ib_rwq_ind_table *ibtable);

int skua_ib_create_rss_qp(struct ib_qp *ibqp, const struct ib_qp_init_attr *attr,
			  struct ib_udata *udata);
void skua_ib_destroy_rss_qp(struct ib_qp *ibqp);

#endif /* SKUA_IB_RSS_H */
