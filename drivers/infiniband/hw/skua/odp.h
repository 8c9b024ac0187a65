/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * skua_ib.ko: memory regions of programs whose pages come on demand.
 */
#ifndef SKUA_IB_ODP_H
#define SKUA_IB_ODP_H

#include <linux/mutex.h>
#include <rdma/ib_verbs.h>

#include <linux/skua/event.h>

struct skua_ib_dev;
struct skua_ib_mr;
struct skua_mr_params;

/**
 * struct skua_ib_faults - how page faults of a device are resolved
 * @watch: where they come from
 * @wq: works that answer those of no region; NULL: the device has no paging
 * @mrs: struct skua_ib_odp by the index of its key
 * @serials: how many regions there have been
 */
struct skua_ib_faults {
	struct skua_fault_watch watch;
	struct workqueue_struct *wq;
	struct xarray mrs;
	atomic64_t serials;
};

/**
 * struct skua_ib_odp_works - works of one program
 * @lock: the making of them
 * @wq: works that resolve page faults; NULL: there has been no region on demand
 * @prefetch_wq: works that prefetch, apart: a program may queue as many as it likes
 *
 * A work waits for its page, maybe for ever, as for a file server that does not answer. A queue
 * runs only so many works at a time. So each program has its own.
 */
struct skua_ib_odp_works {
	struct mutex lock;	/* see above */
	struct workqueue_struct *wq;
	struct workqueue_struct *prefetch_wq;
};

#ifdef CONFIG_INFINIBAND_ON_DEMAND_PAGING

void skua_ib_odp_caps(const struct skua_dev *dev, struct ib_odp_caps *caps);
int skua_ib_odp_init(struct skua_ib_dev *dev);
/* All regions are gone. */
void skua_ib_odp_cleanup(struct skua_ib_dev *dev);
/* All regions of the program are gone. */
void skua_ib_odp_end_works(struct skua_ib_odp_works *works);

/* Make @mr a region on demand of [@start, @start + @params->length), or of all addresses. */
int skua_ib_odp_create(struct skua_ib_mr *mr, struct ib_pd *ibpd, u64 start,
		       struct skua_mr_params *params);
void skua_ib_odp_destroy(struct skua_ib_mr *mr);

int skua_ib_advise_mr(struct ib_pd *ibpd, enum ib_uverbs_advise_mr_advice advice, u32 flags,
		      struct ib_sge *sg_list, u32 num_sge, struct uverbs_attr_bundle *attrs);

#else

static inline void skua_ib_odp_caps(const struct skua_dev *dev, struct ib_odp_caps *caps)
{
}

static inline int skua_ib_odp_init(struct skua_ib_dev *dev)
{
	return 0;
}

static inline void skua_ib_odp_cleanup(struct skua_ib_dev *dev)
{
}

static inline void skua_ib_odp_end_works(struct skua_ib_odp_works *works)
{
}

static inline int skua_ib_odp_create(struct skua_ib_mr *mr, struct ib_pd *ibpd, u64 start,
				     struct skua_mr_params *params)
{
	return -EOPNOTSUPP;
}

static inline void skua_ib_odp_destroy(struct skua_ib_mr *mr)
{
}

#define skua_ib_advise_mr	NULL

#endif

#endif /* SKUA_IB_ODP_H */
