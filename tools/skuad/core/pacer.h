/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How fast a QP sends: the lower of the rate that MODIFY_QP has set and that of congestion control.
 */
#ifndef SKUAD_CORE_PACER_H
#define SKUAD_CORE_PACER_H

#include "core/qp.h"

#define PACER_BURST	4096u	/* bytes of a train of a QP that has a rate */

struct pacer {
	struct skua_qp *qp;
	struct timer timer;		/* the QP may send again */
	uint64_t limit;			/* of MODIFY_QP, bits a second; 0: none */
	uint32_t burst;			/* bytes that may exceed the limit; 0: what a millisecond brings */
	uint64_t congestion;		/* of congestion control, bits a second; 0: none */
	uint64_t next_send_at;		/* when the next train may be sent */
};

/* False: there is no memory, and the old limit stays. @rate 0: no limit. */
bool pacer_limit(struct skua_qp *qp, uint64_t rate, uint32_t burst);
/* The same for the rate of congestion control. */
bool pacer_congestion(struct skua_qp *qp, uint64_t rate);
/* The QP has no rate of any kind any more. */
void pacer_free(struct skua_qp *qp);

/* The QP has a rate: it has sent so many bytes. */
void pacer_sent(struct skua_qp *qp, uint64_t bytes);
/* The QP has a rate: must it wait until it may send more? Then a timer ends its wait. */
bool pacer_waits(struct skua_qp *qp);

static inline bool pacer_paused(const struct skua_qp *qp)	/* such a timer is set */
{
	return qp->pacer && qp->pacer->timer.pos;
}

/* Bits a second; 0: as fast as it can. */
static inline uint64_t pacer_rate(const struct skua_qp *qp)
{
	const struct pacer *p = qp->pacer;

	if (!p)
		return 0;
	return p->congestion && (!p->limit || p->congestion < p->limit) ? p->congestion : p->limit;
}

/* Bytes of a train of a QP that has a rate, at most; but one packet in any case. */
static inline uint32_t pacer_burst(const struct skua_qp *qp)
{
	uint32_t burst = qp->pacer->burst;

	return burst && burst < PACER_BURST ? burst : PACER_BURST;
}

#endif /* SKUAD_CORE_PACER_H */
