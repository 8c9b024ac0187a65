/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * ACKs and NAKs of the responder.
 */
#ifndef SKUAD_ROCE_RESP_ACK_H
#define SKUAD_ROCE_RESP_ACK_H

#include "roce/rc.h"
#include "roce/send.h"

/* Note @syndrome as what the peer is owed. @psn: that a NAK is for. */
void resp_owe(struct skua_qp *qp, uint8_t syndrome, uint32_t psn);
/* Note an ACK of all that is in order when it is sent. */
void resp_owe_ack(struct skua_qp *qp);

/*
 * Refuse the request at epsn, with a NAK; the QP goes to ERR. @event: the asynchronous event that reports it, if no
 * completion does; else 0. A request that was held may be forged, by somebody who guessed a future PSN. It is dropped
 * only, and what the peer sends for it decides.
 */
void resp_refuse(struct skua_qp *qp, uint8_t syndrome, uint8_t event);
void resp_refuse_invalid(struct skua_qp *qp);
/* The peer named memory that it may not use: @err, enum skua_vendor_err. */
void resp_refuse_memory(struct skua_qp *qp, int err);

/* The same for a request that may find its pages later: then the peer is asked to wait. */
void resp_wait_or_refuse(struct skua_qp *qp, int err);
/* Ask the peer to send the expected request again later. */
void resp_not_ready(struct skua_qp *qp);

/* The peer has to wait for the response with @psn. False: there is no room on the wire. */
bool resp_send_wait(struct skua_qp *qp, uint32_t psn);

/* Send what is owed. False: there is no room on the wire. */
bool resp_send_ack(struct skua_qp *qp);

/* Send a train of the responder: its payload is not referred to after the next drain. False: no room on the wire. */
static inline bool resp_transmit(struct skua_qp *qp, struct train *t)
{
	struct port_mark mark = { 0 };

	t->transport = qp->ops->service;
	if (roce_send(qp, t, &mark) == PORT_BUSY)
		return false;
	rc_of(qp)->resp.missing_last = false;
	return true;
}

#endif /* SKUAD_ROCE_RESP_ACK_H */
