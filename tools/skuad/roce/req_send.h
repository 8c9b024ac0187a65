/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Packets of a WQE, sent for the first time or again.
 */
#ifndef SKUAD_ROCE_REQ_SEND_H
#define SKUAD_ROCE_REQ_SEND_H

#include "roce/dcqcn.h"
#include "roce/req_complete.h"

/* How many new packets may be sent now? */
uint32_t req_room(const struct skua_qp *qp);
/* Does its rate keep the QP from sending packets of @wqe now? Those without payload do not wait (CNG-9). */
static inline bool req_must_wait(struct skua_qp *qp, const struct send_wqe *wqe)
{
	bool payload = !wqe_has_response(wqe) || wqe->opcode == SKUA_WQE_ATOMIC_WRITE;

	return qp->pacer && payload && wqe->length && qp_must_wait(qp);
}

/* Must the last of @npkts packets that are sent now ask for an ACK? */
bool req_must_ask(const struct skua_qp *qp, uint32_t npkts);
/*
 * Send packets of a SEND or WRITE, from its @pkt-th on. False: there is no room on the wire. If the payload cannot be
 * read, the WQE has a status then, and nothing was sent.
 */
bool req_send_packets(struct skua_qp *qp, struct send_wqe *wqe, uint32_t pkt, uint32_t npkts, bool ack_req);
/* Send the request of an atomic, or of @npkts packets of a READ from its @pkt-th on. False: as above. */
bool req_send_request(struct skua_qp *qp, struct send_wqe *wqe, uint32_t pkt, uint32_t npkts);

#endif /* SKUAD_ROCE_REQ_SEND_H */
