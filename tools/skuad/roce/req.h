/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the files of the requester share: req.c, which sends and completes, loss.c, and retransmit.c.
 */
#ifndef SKUAD_ROCE_REQ_H
#define SKUAD_ROCE_REQ_H

#include "roce/rc.h"

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

/* Packets that the congestion window lets be sent now. */
static inline uint32_t congestion_room(const struct skua_qp *qp)
{
	uint32_t flight = rc_of(qp)->req.sent.npkts[SENT_IN_FLIGHT];

	return flight < rc_of(qp)->req.congestion.window ? rc_of(qp)->req.congestion.window - flight : 0;
}

/* Is an answer due? A request that was sent asked for one. */
static inline bool req_is_asked(const struct roce_req *req)
{
	return psn_diff(req->asked_psn, req->una_psn) > 0;
}

/*
 * A packet that asks for an answer to all before @psn has been sent; call it before loss_sent(). Until then no answer is
 * late (REC-16).
 */
static inline void loss_asked(struct skua_qp *qp, uint32_t psn)
{
	struct roce_req *req = &rc_of(qp)->req;

	if (!req_is_asked(req))
		req->loss.ack_from = now_of(qp);
	if (psn_diff(psn, req->asked_psn) > 0)
		req->asked_psn = psn;
	req->ask = false;
}

/* A packet has been sent; before it is put in the table. */
static inline void loss_sent(struct skua_qp *qp)
{
	struct loss *l = &rc_of(qp)->req.loss;

	l->pto_from = now_of(qp);
	l->sent_since = true;
}

/* req.c: the oldest WQE without an answer ends with @status, and the QP is in error. */
void req_fail(struct skua_qp *qp, uint8_t status, uint8_t vendor_err);
/* The same for @wqe, with the status that it has, as soon as it is the oldest. */
void req_fail_oldest(struct skua_qp *qp, const struct send_wqe *wqe);
/* How many packets may be sent that were not sent before. */
uint32_t req_room(const struct skua_qp *qp);
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
