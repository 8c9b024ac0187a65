/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Atomics at the responder.
 */
#ifndef SKUAD_ROCE_RESP_ATOMIC_H
#define SKUAD_ROCE_RESP_ATOMIC_H

#include "roce/rc.h"

static inline bool train_is_masked(enum train_op op)
{
	return op == TRAIN_MASKED_CMP_SWAP || op == TRAIN_MASKED_FETCH_ADD;
}

static inline bool train_is_atomic(enum train_op op)
{
	return op == TRAIN_CMP_SWAP || op == TRAIN_FETCH_ADD || train_is_masked(op);
}

/* An atomic with the expected PSN. */
void resp_rx_atomic(struct skua_qp *qp, const struct train *t);
/* An ATOMIC WRITE with the expected PSN. */
void resp_rx_atomic_write(struct skua_qp *qp, const struct train *t);
/* Carry the atomic out, unless it was, and answer it. False: there is no room on the wire. */
bool resp_send_atomic(struct skua_qp *qp, struct read_job *job, int32_t *budget);

#endif /* SKUAD_ROCE_RESP_ATOMIC_H */
