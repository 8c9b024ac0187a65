/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The requester of RC.
 */
#ifndef SKUAD_ROCE_REQ_H
#define SKUAD_ROCE_REQ_H

#include "roce/rc.h"

/* The host has answered a page fault of the requester. */
void req_resumed(struct skua_qp *qp);
void req_reset(struct skua_qp *qp);
/* To RTS. */
void req_start(struct skua_qp *qp);
/* A turn: retransmit, then send what is new. True: something was done. */
bool req_run(struct skua_qp *qp, int32_t *budget);
/* Would a turn do anything? */
bool req_is_pending(const struct skua_qp *qp);

#endif /* SKUAD_ROCE_REQ_H */
