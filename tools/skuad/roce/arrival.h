/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What has arrived at the peer of a requester.
 */
#ifndef SKUAD_ROCE_ARRIVAL_H
#define SKUAD_ROCE_ARRIVAL_H

#include "roce/rc.h"

/* All packets before @psn are acknowledged, and their responses are placed. */
void arrival_acked(struct skua_qp *qp, uint32_t psn);
/* The peer has accepted all requests before @psn, and has sent the responses to them. */
void arrival_accepted(struct skua_qp *qp, uint32_t psn);
/* @npkts responses from @psn on have come early. @held: the requester holds them; else there was no place. */
void arrival_response_early(struct skua_qp *qp, uint32_t psn, uint32_t npkts, bool held);
/* A MISSING: the peer tells which packets it holds. */
void arrival_missing(struct skua_qp *qp, const struct repeat_frame *f);

#endif /* SKUAD_ROCE_ARRIVAL_H */
