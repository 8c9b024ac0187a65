/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A receive queue as a ring in memory. Its entries have a fixed stride, come back in order,
 * and publishing them never rings.
 *
 * Writers of pi and of the ring hold the RQ's lock. ci is written by who polls the CQ.
 */
#ifndef SKUA_RQ_H
#define SKUA_RQ_H

#include "sq.h"

struct skua_rq {
	void *buf;
	struct skua_dbr *dbr;
	uint64_t *wr_id;		/* of each entry; cookies index it */
	uint32_t size;			/* entries, a power of two; 0: there is none */
	uint32_t max_wr;		/* outstanding at a time, at most size */
	uint32_t log_stride;

	/* The poster's */
	SKUA_CACHE_ALIGNED uint32_t pi;
	uint32_t limit;			/* there is room before it, as of the last look at ci */

	/* The poller's */
	SKUA_CACHE_ALIGNED uint32_t ci;
};

static inline bool skua_rq_full(struct skua_rq *rq)
{
	if (likely((int32_t)(rq->limit - rq->pi) > 0))
		return false;
	/* Acquire: the wr_id of an entry is read before the entry is free. */
	rq->limit = __atomic_load_n(&rq->ci, __ATOMIC_ACQUIRE) + rq->max_wr;
	return rq->limit == rq->pi;
}

static inline void skua_rq_retire(struct skua_rq *rq)
{
	__atomic_store_n(&rq->ci, rq->ci + 1, __ATOMIC_RELEASE);
}

/* Begin an entry at pi, in a queue that is not full. Returns where its SGEs go. */
static inline struct skua_sge *skua_rqe_begin(struct skua_rq *rq, uint64_t wr_id,
					      uint8_t num_sge)
{
	uint32_t cookie = rq->pi & (rq->size - 1);
	struct skua_rqe *rqe;

	rqe = (void *)((char *)rq->buf + ((size_t)cookie << rq->log_stride));
	*rqe = (struct skua_rqe) {
		.cookie = htole32(cookie),
		.num_sge = num_sge,
	};
	rq->wr_id[cookie] = wr_id;
	rq->pi++;
	return (void *)(rqe + 1);
}

static inline void skua_rq_publish(struct skua_rq *rq)
{
	if (rq->size)
		skua_dbr_publish(rq->dbr, rq->pi);
}

static inline void skua_rq_reset(struct skua_rq *rq)
{
	rq->pi = 0;
	rq->limit = 0;
	rq->ci = 0;
	if (rq->size)
		skua_store_le32(&rq->dbr->pi, 0);
}

#endif /* SKUA_RQ_H */
