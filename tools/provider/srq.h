/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A shared receive queue as a ring in memory. All of it is used under its lock: by who posts, and
 * by who polls a CQ that its entries complete into.
 */
#ifndef SKUA_SRQ_H
#define SKUA_SRQ_H

#include <infiniband/driver.h>

#include "lock.h"
#include "sq.h"

/* Memory that the device uses: whole pages, zeroed, not inherited by a fork. */
struct skua_buf {
	void *addr;
	size_t size;
	struct skua_pd *domain;		/* that allocated it; NULL: we did */
};

/* A posted WR, by its cookie. */
struct skua_srq_wr {
	uint64_t wr_id;
	uint32_t next;			/* free: the next that is */
};

struct skua_srq {
	struct verbs_srq vsrq;
	struct skua_lock lock;
	struct skua_buf ring, record;
	struct skua_dbr *dbr;
	uint32_t size;			/* entries, a power of two */
	uint32_t log_stride;
	uint32_t max_sge;
	uint32_t pi;			/* entries posted */
	uint32_t ci;			/* entries completed, in any order */
	struct skua_srq_wr *wrs;
	uint32_t cookies;
	uint32_t free;			/* a free cookie, if fewer entries are posted than there are cookies */
	struct skua_pd *pd;
	struct skua_tm *tm;		/* NULL: it has no tags */
};

static inline struct skua_srq *to_skua_srq(struct ibv_srq *ibv_srq)
{
	return container_of(ibv_srq, struct skua_srq, vsrq.srq);
}

static inline void *skua_srq_slot(const struct skua_srq *srq, uint32_t index)
{
	return (char *)srq->ring.addr + ((size_t)(index & (srq->size - 1)) << srq->log_stride);
}

/* Begin an entry, in a queue that is not full. Returns where its SGEs go. */
static inline struct skua_sge *skua_srq_begin(struct skua_srq *srq, uint64_t wr_id, uint8_t num_sge)
{
	struct skua_rqe *rqe = skua_srq_slot(srq, srq->pi++);
	uint32_t cookie = srq->free;

	*rqe = (struct skua_rqe) {
		.cookie = htole32(cookie),
		.num_sge = num_sge,
	};
	srq->free = srq->wrs[cookie].next;
	srq->wrs[cookie].wr_id = wr_id;
	return (void *)(rqe + 1);
}

/* The entry with this cookie is complete. Returns its wr_id. The lock is held. */
static inline uint64_t skua_srq_complete(struct skua_srq *srq, uint32_t cookie)
{
	srq->wrs[cookie].next = srq->free;
	srq->free = cookie;
	srq->ci++;
	return srq->wrs[cookie].wr_id;
}

/* The same, for who does not hold the lock. The place of its CQE is the device's again. */
static inline uint64_t skua_srq_retire(struct skua_srq *srq, uint32_t cookie)
{
	uint64_t wr_id;

	skua_lock(&srq->lock);
	wr_id = skua_srq_complete(srq, cookie);
	skua_unlock(&srq->lock);
	return wr_id;
}

#endif /* SKUA_SRQ_H */
