/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Shared receive queues: QPs take their receives from one ring.
 */
#ifndef SKUAD_CORE_SRQ_H
#define SKUAD_CORE_SRQ_H

#include "core/qp.h"

struct srq_entry;
struct tag_list;
struct xrcd;

struct srq {
	uint32_t number;
	uint32_t refs;			/* QPs that use it */
	uint64_t handle;
	struct rq rq;			/* the ring */
	uint32_t limit;			/* entries left at which the host is told; 0: it is not */
	bool error;			/* overrun or unreachable: nothing is taken any more */
	struct async_event error_event, limit_event;
	STAILQ_HEAD(, srq_entry) returned; /* entries before the head of the ring */
	uint32_t num_returned;

	struct tag_list *tags;		/* NULL: it matches none */
	struct cq *cq;			/* of its receives: with tags, or of XRC; else NULL */

	/* Of an XRC SRQ: */
	struct xrcd *xrcd;		/* else NULL */
	bool going;			/* it is being destroyed: no QP takes entries any more */
	struct skua_qp *to_forget;	/* the next QP that is to forget it; NULL: all have */
};

/* As rq_peek(). srq_take(), as rq_take(), is in core/qp.h. */
enum rq_result srq_peek(struct srq *srq, struct recv_wqe *wqe, uint8_t *vendor_err);
/* A QP gives back an entry that it has taken: the next to be taken. */
void srq_return(struct srq *srq, const struct recv_wqe *wqe);

#endif /* SKUAD_CORE_SRQ_H */
