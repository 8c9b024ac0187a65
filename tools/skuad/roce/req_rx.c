// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the peer answers: ACKs, NAKs, and responses of READs and atomics. READs count as acknowledged as far as their
 * responses have come in order, atomics when theirs has.
 */
#include <stdlib.h>

#include "base/copy.h"
#include "core/fault.h"
#include "roce/arrival.h"
#include "roce/loss.h"
#include "roce/req_complete.h"
#include "roce/req_rx.h"

/* RNR timer codes in units of 10 us (IBTA table of RNR NAK timers). */
static const uint32_t rnr_10us[32] = {
	65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024,
	1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

/* The oldest READ or atomic without all of its responses, of those that were begun; or NULL. */
static struct send_wqe *oldest_read(const struct skua_qp *qp)
{
	for (uint32_t i = qp->sq.una; i != qp->sq.tail; i++) {
		struct send_wqe *wqe = sq_wqe(qp, i);

		if (wqe->npsn && wqe_has_response(wqe) && !wqe->done)
			return wqe;
	}
	return NULL;
}

/* PSN of the response that @read waits for. */
static uint32_t next_response(const struct skua_qp *qp, const struct send_wqe *read)
{
	return psn_add(read->psn, read->read_off >> qp->log_pmtu);
}

/* All requests before @psn are accepted, and their responses have come. */
static void done_up_to(struct skua_qp *qp, uint32_t psn)
{
	struct roce_req *req = &rc_of(qp)->req;

	if (psn_diff(psn, req->oldest_unacked_psn) <= 0)
		return;
	req->oldest_unacked_psn = psn;
	req->rnr_retries = 0;
	req->rnr_waiting = false;
	req->rnr_probing = false;
	arrival_acked(qp, psn);
	req_complete_acked(qp);
}

/* The peer has accepted all requests before @psn. They count as acknowledged as far as responses have come. */
static void ack_up_to(struct skua_qp *qp, uint32_t psn)
{
	struct roce_req *req = &rc_of(qp)->req;
	const struct send_wqe *read = req->reads_outstanding ? oldest_read(qp) : NULL;
	bool accepted = psn_diff(psn, req->accepted_psn) > 0;
	uint32_t done;

	if (accepted)
		req->accepted_psn = psn;
	done = req->accepted_psn;
	if (read && psn_diff(done, next_response(qp, read)) > 0)
		done = next_response(qp, read);
	done_up_to(qp, done);
	if (accepted && done != req->accepted_psn)
		arrival_accepted(qp, req->accepted_psn);
}

/* The responses before @psn have come, the last of them now. */
static void responses_up_to(struct skua_qp *qp, uint32_t psn)
{
	struct roce_req *req = &rc_of(qp)->req;

	fault_over(qp, SKUA_PAGE_FAULT_REQUESTER);
	req->npkts_dropped = 0;
	if (psn_diff(req->accepted_psn, psn) > 0) {
		ack_up_to(qp, psn);	/* WRITEs or SENDs behind them may be acknowledged already */
		return;
	}
	req->accepted_psn = psn;
	done_up_to(qp, psn);
}

static void rnr_nak(struct skua_qp *qp, uint8_t code)
{
	struct roce_req *req = &rc_of(qp)->req;

	QP_STAT_INC(qp, rnr_nak_received);
	/* Nothing was sent since the last one came: this is a copy of it, or answers an earlier transmission. */
	if (req->rnr_waiting)
		return;
	if (qp->attr.rnr_retry != 7 && req->rnr_retries >= qp->attr.rnr_retry) {
		req_fail(qp, SKUA_CQE_RNR_RETRY_EXC_ERR, SKUA_VENDOR_ERR_PEER_NAK);
		return;
	}
	if (qp->attr.rnr_retry != 7)
		req->rnr_retries++;
	loss_rnr_nak(qp);
	req->rnr_waiting = true;
	req->rnr_until = now_of(qp) + rnr_10us[code & 31] * 10000ull;
	timer_set(&qp->dev->engine->timers, &rc_of(qp)->timer, req->rnr_until);
}

/* The PSN of @t is the first that the peer did not accept. It is new that it has accepted @naccepted before it. */
static void rx_nak(struct skua_qp *qp, const struct train *t, uint32_t naccepted)
{
	struct roce_req *req = &rc_of(qp)->req;
	uint8_t status;

	if (t->syndrome == AETH_NAK_SEQ) {
		QP_STAT_INC(qp, seq_nak_received);
		if (req->accepted_psn == t->psn)
			loss_nak(qp, t->psn, naccepted);
		return;
	}
	/* Responses before it were lost. The peer repeats this NAK when they have come. */
	if (req->oldest_unacked_psn != t->psn)
		return;
	if (AETH_TYPE(t->syndrome) == AETH_RNR) {
		rnr_nak(qp, t->syndrome & 31);
		return;
	}
	switch (t->syndrome) {
	case AETH_NAK_INV_REQ:
		status = SKUA_CQE_REM_INV_REQ_ERR;
		break;
	case AETH_NAK_ACCESS:
		status = SKUA_CQE_REM_ACCESS_ERR;
		break;
	case AETH_NAK_OP:
		status = SKUA_CQE_REM_OP_ERR;
		break;
	default:
		QP_STAT_INC(qp, rdma_rx_bad_packet);
		return;
	}
	req_fail(qp, status, SKUA_VENDOR_ERR_PEER_NAK);
}

static void rx_ack(struct skua_qp *qp, const struct train *t)
{
	const struct roce_req *req = &rc_of(qp)->req;
	uint32_t accepted = req->accepted_psn;

	if (psn_diff(t->psn, req->oldest_unacked_psn) < 0 || psn_diff(t->psn, req->next_psn) >= 0)
		return;
	if (AETH_TYPE(t->syndrome) == 0) {
		ack_up_to(qp, psn_add(t->psn, 1));
		return;
	}
	ack_up_to(qp, t->psn);
	rx_nak(qp, t, psn_add(req->accepted_psn, -accepted));
}

/*
 * A response that comes early tells that the peer has accepted all requests before it. But anybody may have
 * guessed its PSN, so it counts as news only, and completes nothing.
 */
static void rx_early_response(struct skua_qp *qp, const struct train *t)
{
	struct roce_req *req = &rc_of(qp)->req;
	const struct sent_run *run = sent_find(&req->sent, t->psn);

	if (!run || !run->response)
		return;
	if (reorder_has(req->early_responses, t->psn)) {
		loss_came_twice(qp);
		return;
	}
	arrival_response_early(qp, t->psn, t->npkts,
			    reorder_hold(qp->dev, &req->early_responses, req->oldest_unacked_psn, t));
	arrival_accepted(qp, t->psn);
}

/* @wqe is the oldest WQE that waits for a response; or NULL. */
static bool is_next_response(struct skua_qp *qp, const struct send_wqe *wqe, const struct train *t)
{
	int32_t ahead = wqe ? psn_diff(t->psn, next_response(qp, wqe)) : -1;

	/* Nobody has asked for all of it yet. */
	if (!ahead && psn_diff(psn_add(t->psn, t->npkts), rc_of(qp)->req.next_psn) > 0) {
		QP_STAT_INC(qp, rdma_rx_bad_packet);
		return false;
	}
	if (ahead > 0)
		rx_early_response(qp, t);
	else if (ahead < 0)
		loss_came_twice(qp);
	else if (t->psn != rc_of(qp)->req.oldest_unacked_psn)
		ack_up_to(qp, t->psn);
	return !ahead;
}

/* The response does not fit the request. If it was held, it may have been forged: drop it. */
static void refuse_response(struct skua_qp *qp, const struct train *t)
{
	if (rc_of(qp)->req.response_was_held)
		loss_response_refused(qp, t->psn);
	else
		req_fail(qp, SKUA_CQE_BAD_RESP_ERR, SKUA_VENDOR_ERR_PEER_RESPONSE);
}

/* The place of @t is not good: @err, enum skua_vendor_err. If it may be good later, @t is dropped. */
static void no_place(struct skua_qp *qp, int err, const struct train *t)
{
	if (err == SKUA_VENDOR_ERR_NOT_PRESENT && fault_wait(qp, SKUA_PAGE_FAULT_REQUESTER))
		rc_of(qp)->req.npkts_dropped = t->npkts;
	else
		req_fail(qp, SKUA_CQE_LOC_PROT_ERR, (uint8_t)err);
}

/* A FLUSH or an ATOMIC WRITE is answered as a READ of no bytes is. */
static void rx_read_resp(struct skua_qp *qp, const struct train *t)
{
	struct send_wqe *wqe = oldest_read(qp);
	struct seglist *dst = &qp->dev->engine->dst;
	uint32_t bytes = t->payload ? t->payload->bytes : 0;
	uint32_t length;
	bool end;
	int err;

	if (!is_next_response(qp, wqe, t))
		return;
	/* The responses have to use exactly the PSNs of the WQE: full packets, and an end where the bytes end. */
	length = wqe->opcode == SKUA_WQE_READ ? wqe->length : 0;
	end = wqe->read_off + bytes == length;
	if (wqe_is_atomic(wqe) || t->npkts != qp_packets(qp, bytes) ||
	    bytes > length - wqe->read_off || (end && !t->last) ||
	    (!end && bytes != t->npkts * qp->pmtu)) {
		refuse_response(qp, t);
		return;
	}
	dst->n = 0;
	dst->bytes = 0;
	err = sq_payload(qp, wqe, wqe->read_off, bytes, SKUA_ACCESS_LOCAL_WRITE, dst);
	if (err) {
		no_place(qp, err, t);
		return;
	}
	rc_of(qp)->req.response_goes_on = t->npkts > 1 || !t->last;
	if (bytes)
		copy_segs(dst, t->payload);
	wqe->read_off += bytes;
	wqe->done = end;
	responses_up_to(qp, psn_add(t->psn, t->npkts));
	rc_of(qp)->req.response_goes_on = false;
}

static void rx_atomic_resp(struct skua_qp *qp, const struct train *t)
{
	struct send_wqe *wqe = oldest_read(qp);
	struct seglist *dst = &qp->dev->engine->dst, src;
	uint64_t value = htole64(t->swap_add);
	int err;

	if (!is_next_response(qp, wqe, t))
		return;
	if (!wqe_is_atomic(wqe)) {
		refuse_response(qp, t);
		return;
	}
	dst->n = 0;
	dst->bytes = 0;
	err = sq_payload(qp, wqe, 0, sizeof(value), SKUA_ACCESS_LOCAL_WRITE, dst);
	if (err) {
		no_place(qp, err, t);
		return;
	}
	/* Not engine->src: if @t was held, the train that comes behind it may have its payload there. */
	src.n = 1;
	src.bytes = sizeof(value);
	src.seg[0] = (struct seg){ (uint8_t *)&value, sizeof(value) };
	copy_segs(dst, &src);
	wqe->done = true;
	responses_up_to(qp, psn_add(t->psn, 1));
}

static void rx(struct skua_qp *qp, const struct train *t)
{
	if (t->op == TRAIN_ACK)
		rx_ack(qp, t);
	else if (t->op == TRAIN_ATOMIC_RESP)
		rx_atomic_resp(qp, t);
	else
		rx_read_resp(qp, t);
}

/* The next response, if it came before its time. */
static struct train *take_held(struct skua_qp *qp)
{
	const struct send_wqe *wqe = qp_can_send(qp) ? oldest_read(qp) : NULL;

	return wqe ? reorder_take(qp->dev, &rc_of(qp)->req.early_responses, next_response(qp, wqe)) : NULL;
}

/* As far as the turn lasts. The rest comes in the QP's next turn, or before the next response (rc.c). */
bool req_place_held(struct skua_qp *qp)
{
	struct roce_req *req = &rc_of(qp)->req;
	struct train *held;

	req->response_was_held = true;
	while (qp->dev->engine->turn > 0 && (held = take_held(qp))) {
		rx(qp, held);
		free(held);
	}
	req->response_was_held = false;
	/* The rest came in a train besides. */
	if (!reorder_empty(req->early_responses) &&
	    psn_diff(req->oldest_unacked_psn, reorder_end(req->early_responses)) >= 0)
		reorder_free(qp->dev, &req->early_responses);
	return qp_can_send(qp);
}

void req_rx_missing(struct skua_qp *qp, const struct repeat_frame *f)
{
	arrival_missing(qp, f);
	qp_activate(qp);
}

void req_rx(struct skua_qp *qp, const struct train *t)
{
	rx(qp, t);
	req_take_held(qp);
	qp_activate(qp);
}
