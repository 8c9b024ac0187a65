/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Retransmission of lost packets, and probes.
 */
#ifndef SKUAD_ROCE_RETRANSMIT_H
#define SKUAD_ROCE_RETRANSMIT_H

#include "roce/rc.h"

/* Retransmit, on @budget's account. False: nothing else may be sent now. */
bool retransmit_run(struct skua_qp *qp, int32_t *budget);

#endif /* SKUAD_ROCE_RETRANSMIT_H */
