// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the responder owes the requester: one ACK or NAK.
 *
 * Theory of operation. An ACK or NAK is noted first, and sent when the QP has its turn. So one ACK answers all messages
 * that arrived before that turn. A NAK that is noted is not replaced by an ACK.
 *
 * A refusal reports a fault of the peer's request: a NAK goes to the peer, an event to the host, and the QP to ERR.
 */
#include "core/fault.h"
#include "roce/resp_ack.h"

static bool is_nak(uint8_t syndrome)
{
	return AETH_TYPE(syndrome) != 0;
}

void resp_owe(struct skua_qp *qp, uint8_t syndrome, uint32_t psn)
{
	struct roce_resp *resp = &rc_of(qp)->resp;

	if (resp->ack_due && is_nak(resp->due_syndrome) && !is_nak(syndrome))
		return;
	resp->ack_due = true;
	resp->due_syndrome = syndrome;
	resp->nak_psn = psn;
	qp_activate(qp);
}

void resp_owe_ack(struct skua_qp *qp)
{
	resp_owe(qp, AETH_ACK, 0);
}

void resp_refuse(struct skua_qp *qp, uint8_t syndrome, uint8_t event)
{
	if (rc_of(qp)->resp.request_was_held)
		return;
	if (syndrome == AETH_NAK_ACCESS)
		QP_STAT_INC(qp, access_nak_sent);
	else if (syndrome == AETH_NAK_INV_REQ)
		QP_STAT_INC(qp, invalid_nak_sent);
	else
		QP_STAT_INC(qp, op_nak_sent);
	resp_owe(qp, syndrome, qp->epsn);
	/* In ERR it is the answer to a request that was accepted before (ERR-11). */
	if (event && qp->state != SKUA_QPS_ERR)
		qp_error(qp, event);
	else
		qp_to_err(qp);
}

void resp_refuse_invalid(struct skua_qp *qp)
{
	resp_refuse(qp, AETH_NAK_INV_REQ, SKUA_EVENT_QP_REQ_ERR);
}

void resp_not_ready(struct skua_qp *qp)
{
	QP_STAT_INC(qp, rnr_nak_sent);
	resp_owe(qp, AETH_RNR | qp->attr.min_rnr_timer, qp->epsn);
	rc_of(qp)->resp.nak_sent = true;
}

void resp_refuse_memory(struct skua_qp *qp, int err)
{
	if (err == SKUA_VENDOR_ERR_UNREACHABLE)
		resp_refuse(qp, AETH_NAK_OP, SKUA_EVENT_QP_FATAL);
	else
		resp_refuse(qp, AETH_NAK_ACCESS, SKUA_EVENT_QP_ACCESS_ERR);
}

void resp_wait_or_refuse(struct skua_qp *qp, int err)
{
	if (err == SKUA_VENDOR_ERR_NOT_PRESENT && fault_wait(qp, SKUA_PAGE_FAULT_RESPONDER))
		resp_not_ready(qp);
	else
		resp_refuse_memory(qp, err);
}

bool resp_send_wait(struct skua_qp *qp, uint32_t psn)
{
	struct train t = train_blank;

	t.op = TRAIN_ACK;
	t.first = t.last = true;
	t.npkts = 1;
	t.psn = psn;
	t.syndrome = AETH_RNR | qp->attr.min_rnr_timer;
	t.msn = rc_of(qp)->resp.msn;
	if (!resp_transmit(qp, &t))
		return false;
	QP_STAT_INC(qp, rnr_nak_sent);
	return true;
}

bool resp_send_ack(struct skua_qp *qp)
{
	struct roce_resp *resp = &rc_of(qp)->resp;
	struct train t = train_blank;

	t.op = TRAIN_ACK;
	t.first = t.last = true;
	t.npkts = 1;
	t.psn = resp->nak_psn;
	t.syndrome = resp->due_syndrome;
	t.msn = resp->msn;

	/* Since it became due held packets may have been taken, or the request of a NAK may have come again. */
	if (!is_nak(resp->due_syndrome) || resp->nak_psn != qp->epsn) {
		t.syndrome = AETH_ACK;
		t.psn = psn_add(qp->epsn, PSN_MASK);
	}
	if (!resp_transmit(qp, &t))
		return false;
	resp->ack_due = false;
	return true;
}
