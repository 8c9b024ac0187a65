/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The rate of a QP of RC or UC (dcqcn.c).
 */
#ifndef SKUAD_ROCE_DCQCN_H
#define SKUAD_ROCE_DCQCN_H

#include "core/pacer.h"
#include "roce/conn.h"

/* Congestion does not slow the QP any more, and no CNP is due. */
void dcqcn_reset(struct skua_qp *qp);
/* A CNP has come. */
void dcqcn_cnp(struct skua_qp *qp);
/* The QP has a rate, of congestion control or by its limit: it has sent @t. */
void dcqcn_sent(struct skua_qp *qp, const struct train *t);
/* The QP has a rate: must it wait until it may send more? Then a timer ends its wait. */
bool dcqcn_waits(struct skua_qp *qp);
/* Of congestion control: bits a second, as last computed; 0: it has none. */
uint64_t dcqcn_rate(const struct skua_qp *qp);

/* Does its rate keep the QP from sending packets with payload now? */
static inline bool qp_must_wait(struct skua_qp *qp)
{
	return qp->pacer && dcqcn_waits(qp);
}

/* How many of @npkts packets go as one train. */
static inline uint32_t qp_train(const struct skua_qp *qp, uint32_t npkts)
{
	uint32_t most;

	if (npkts == 1 || port_is_slow(qp->dev->port, qp->path.dmac))
		return 1;
	most = (qp->pacer ? pacer_burst(qp) : SEG_MAX_BYTES) >> qp->log_pmtu;
	if (npkts <= most)
		return npkts;
	return most ? most : 1;
}

#endif /* SKUAD_ROCE_DCQCN_H */
