// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Requests that come before the expected PSN. The first one is answered with a NAK, and all are dropped until the gap
 * is filled. If the peer offers selective repeat, they are held instead, and MISSING frames tell the peer what is
 * missing.
 */
#include "roce/reorder.h"
#include "roce/resp_ack.h"
#include "roce/resp_early.h"

/* After a new gap the peer is told again when so many packets have come early: then its kPacketThreshold is met. */
#define TELL_SOON	2
/* Early packets between two MISSING frames about the same gaps. */
#define TELL_EVERY	8

void resp_tell_duplicate(struct skua_qp *qp)
{
	if (!repeat_offered(qp))
		return;
	rc_of(qp)->resp.duplicate_seen = true;
	rc_of(qp)->resp.missing_due = true;
	qp_activate(qp);
}

void resp_owe_missing(struct skua_qp *qp, bool now)
{
	struct roce_resp *resp = &rc_of(qp)->resp;

	if (now)
		resp->early_since_missing = 0;
	else if (++resp->early_since_missing != TELL_SOON && resp->early_since_missing < TELL_EVERY)
		return;
	else if (resp->early_since_missing == TELL_EVERY)
		resp->early_since_missing = 0;
	resp->missing_due = true;
	qp_activate(qp);
}

void resp_rx_early(struct skua_qp *qp, const struct train *t)
{
	struct roce_resp *resp = &rc_of(qp)->resp;
	uint32_t end = reorder_empty(resp->early_requests) ? qp->epsn : reorder_end(resp->early_requests);

	QP_STAT_ADD(qp, out_of_order, t->npkts);
	if (resp->nak_sent)
		return;
	if (reorder_has(resp->early_requests, t->psn)) {
		resp_tell_duplicate(qp);
		return;
	}
	if (repeat_agreed(qp)) {
		/* There is no place for it. A peer with selective repeat detects that by itself. */
		if (psn_diff(t->psn, qp->epsn) > REPEAT_WINDOW)
			return;
		if (reorder_hold(qp->dev, &resp->early_requests, qp->epsn, t)) {
			resp_owe_missing(qp, psn_diff(t->psn, end) > 0);
			return;
		}
	}
	/* There was no place for it. The MISSING frames report it as missing. */
	if (!reorder_empty(resp->early_requests))
		return;
	QP_STAT_INC(qp, seq_nak_sent);
	resp_owe(qp, AETH_NAK_SEQ, qp->epsn);
	resp->nak_sent = true;
}

bool resp_send_missing(struct skua_qp *qp)
{
	struct roce_resp *resp = &rc_of(qp)->resp;
	struct repeat_frame f = {
		.type = REPEAT_MISSING, .path = qp->path, .dest_qpn = qp->dest_qpn,
		.psn = qp->epsn, .duplicate = resp->duplicate_seen,
	};

	for (uint32_t i = 0; resp->early_requests && i < REPEAT_WINDOW; i++)
		if (reorder_has(resp->early_requests, psn_add(qp->epsn, i + 1)))
			f.held[i / 8] |= (uint8_t)(1 << i % 8);
	if ((resp->early_requests || resp->duplicate_seen) && !repeat_send(qp->dev, &f)) {
		qp->dev->refused = true;
		return false;
	}
	resp->missing_due = false;
	resp->duplicate_seen = false;
	return true;
}
