/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How WQEs of the requester end.
 */
#ifndef SKUAD_ROCE_REQ_COMPLETE_H
#define SKUAD_ROCE_REQ_COMPLETE_H

#include "roce/rc.h"

static inline bool wqe_is_atomic(const struct send_wqe *wqe)
{
	const uint32_t opcodes = 1u << SKUA_WQE_CMP_SWAP | 1u << SKUA_WQE_FETCH_ADD |
				 1u << SKUA_WQE_MASKED_CMP_SWAP | 1u << SKUA_WQE_MASKED_FETCH_ADD;

	return opcodes >> (wqe->opcode & 31) & 1;
}

/* Does the peer answer with a response of its own? The WQE is done when all of it has come. */
static inline bool wqe_has_response(const struct send_wqe *wqe)
{
	const uint32_t others = 1u << SKUA_WQE_READ | 1u << SKUA_WQE_FLUSH | 1u << SKUA_WQE_ATOMIC_WRITE;

	return wqe_is_atomic(wqe) || others >> (wqe->opcode & 31) & 1;
}

/* Complete the WQEs that are done, in order. */
void req_complete_acked(struct skua_qp *qp);
/* The oldest WQE without an answer ends with @status, and the QP is in error: all WQEs behind it are flushed. */
void req_fail(struct skua_qp *qp, uint8_t status, uint8_t vendor_err);
/* The same for @wqe, with the status that it has, as soon as it is the oldest. */
void req_fail_oldest(struct skua_qp *qp, const struct send_wqe *wqe);
/* In ERR: complete or flush the window, as far as no train refers to it. */
void req_flush(struct skua_qp *qp);

#endif /* SKUAD_ROCE_REQ_COMPLETE_H */
