/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the files of the requester share: req.c, which sends and completes, and recover.c, which
 * sees that something was lost.
 */
#ifndef SKUAD_ROCE_REQ_H
#define SKUAD_ROCE_REQ_H

#include "core/qp.h"

#define PSN_WINDOW	(1 << 22)	/* packets ahead of the oldest not acknowledged, at most */
#define WINDOW_START	128		/* at first: what rdma_rxe itself sends ahead */

/* req.c */
bool req_is_atomic(const struct send_wqe *wqe);
bool req_has_response(const struct send_wqe *wqe);	/* done when the peer's data have come */
/* An answer is due: one was asked for, by AckReq, a READ or an atomic, or nothing goes on without one. */
bool req_waiting(const struct roce_req *req);
/* The oldest READ or atomic without all of its responses, of those that were sent; or NULL. */
struct send_wqe *req_oldest_read(const struct skua_qp *qp);
/* Send from the oldest packet that was not acknowledged on. */
void req_rewind(struct skua_qp *qp);
/* PSN of what is sent next. */
uint32_t req_next_psn(const struct skua_qp *qp);
/* Packets of a SEND or WRITE, from its @pkt-th on. False: no room on the wire. What is wrong with
 * the payload is in the WQE's status. */
bool req_send_packets(struct skua_qp *qp, struct send_wqe *wqe, uint32_t pkt, uint32_t n,
		      bool ack_req);
/* The request of an atomic, or of @n packets of a READ from its @pkt-th on. */
bool req_send_request(struct skua_qp *qp, struct send_wqe *wqe, uint32_t pkt, uint32_t n);

/* recover.c */
void recover_reset(struct skua_qp *qp);
/* The deadline before which something has to be acknowledged, or is sent again. */
void recover_start_timer(struct skua_qp *qp);
void recover_timer(struct skua_qp *qp);		/* it has passed */
void recover_sent(struct skua_qp *qp, const struct train *t, bool again);
void recover_progress(struct skua_qp *qp, uint32_t psn);	/* una_psn moves to there */
void recover_rewound(struct skua_qp *qp);
void recover_lost(struct skua_qp *qp);		/* and all behind it goes again */
/* Responses before @psn were lost; @t came instead, or NULL. */
void recover_responses(struct skua_qp *qp, uint32_t psn, const struct train *t);
/* Send what was missing, on @budget's account. False: no room on the wire. */
bool recover_run(struct skua_qp *qp, int32_t *budget);

#endif /* SKUAD_ROCE_REQ_H */
