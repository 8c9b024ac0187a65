/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The rate of a QP of RC or UC (dcqcn.c).
 */
#ifndef SKUAD_ROCE_DCQCN_H
#define SKUAD_ROCE_DCQCN_H

#include "roce/conn.h"

#define DCQCN_BURST	4096u	/* bytes of a train of a QP that has a rate */

/* The QP has no rate any more, and no CNP is due. */
void dcqcn_reset(struct skua_qp *qp);
/* A CNP has come. */
void dcqcn_cnp(struct skua_qp *qp);
/* The QP has a rate: it has sent @t. */
void dcqcn_sent(struct skua_qp *qp, const struct train *t);
/* The QP has a rate: must it wait until it may send more? Then a timer ends its wait. */
bool dcqcn_waits(struct skua_qp *qp);
bool dcqcn_paused(const struct skua_qp *qp);	/* such a timer is set */
uint64_t dcqcn_rate(const struct skua_qp *qp);	/* bits a second, as last computed; 0: it has none */

/* Does its rate keep the QP from sending packets with payload now? */
static inline bool qp_must_wait(struct skua_qp *qp)
{
	return conn_of(qp)->dcqcn && dcqcn_waits(qp);
}

/* Bytes of a train, at most. */
static inline uint32_t qp_burst(const struct skua_qp *qp)
{
	if (port_is_slow(qp->dev->port))
		return qp->pmtu;
	return conn_of(qp)->dcqcn ? DCQCN_BURST : SEG_MAX_BYTES;
}

#endif /* SKUAD_ROCE_DCQCN_H */
