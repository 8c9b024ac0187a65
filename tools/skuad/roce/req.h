/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the files of the requester share: req.c, which sends and completes, loss.c, and retransmit.c.
 */
#ifndef SKUAD_ROCE_REQ_H
#define SKUAD_ROCE_REQ_H

#include "core/qp.h"

/* engine_now(), for those who ask with every packet. */
static inline uint64_t now_of(const struct skua_qp *qp)
{
	return qp->dev->engine->now;
}

/* Has the peer accepted the request that sent this, or that asks for these responses? */
static inline bool req_is_accepted(const struct roce_req *req, const struct sent_run *run)
{
	return run->accepted || psn_diff(req->acked_psn, run->psn) > 0;
}

/* req.c: the oldest WQE without an answer ends with @status, and the QP is in error. */
void req_fail(struct skua_qp *qp, uint8_t status, uint8_t vendor_err);
/* The same for @wqe, with the status that it has, as soon as it is the oldest. */
void req_fail_oldest(struct skua_qp *qp, const struct send_wqe *wqe);
/* Must the last of @npkts packets that are sent now ask for an ACK? */
bool req_must_ask(const struct skua_qp *qp, uint32_t npkts);
/* Packets of a SEND or WRITE, from its @pkt-th on. False: no room on the wire. What is wrong with
 * the payload is in the WQE's status; then nothing was sent. */
bool req_send_packets(struct skua_qp *qp, struct send_wqe *wqe, uint32_t pkt, uint32_t npkts,
		      bool ack_req);
/* The request of an atomic, or of @npkts packets of a READ from its @pkt-th on. */
bool req_send_request(struct skua_qp *qp, struct send_wqe *wqe, uint32_t pkt, uint32_t npkts);

/* retransmit.c: on @budget's account. False: nothing else may be sent now. */
bool retransmit_run(struct skua_qp *qp, int32_t *budget);

#endif /* SKUAD_ROCE_REQ_H */
