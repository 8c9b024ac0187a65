/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Loss detection of a requester (RFC 9002 section 6.1, RFC 8985).
 */
#ifndef SKUAD_ROCE_LOSS_H
#define SKUAD_ROCE_LOSS_H

#include "roce/rc.h"

void loss_init(struct loss *l);

/*
 * A packet that asks for an answer to all before @psn has been sent; call it before loss_sent(). Until then no answer
 * is late (REC-16).
 */
static inline void loss_asked(struct skua_qp *qp, uint32_t psn)
{
	struct roce_req *req = &rc_of(qp)->req;

	if (!req_is_asked(req))
		req->loss.ack_timeout_start = now_of(qp);
	if (psn_diff(psn, req->ack_requested_psn) > 0)
		req->ack_requested_psn = psn;
	req->request_ack = false;
}

/* A packet has been sent; call it before the packet is put in the table. */
static inline void loss_sent(struct skua_qp *qp)
{
	struct loss *l = &rc_of(qp)->req.loss;

	/* Time in which nothing was outstanding does not count (REC-14). */
	if (sent_is_empty(&rc_of(qp)->req.sent))
		l->ack_timeout_start = now_of(qp);
	l->pto_start = now_of(qp);
	l->sent_since_retry = true;
}

/* The ACK timeout and the probe timeout begin anew. */
static inline void loss_restart(struct skua_qp *qp)
{
	rc_of(qp)->req.loss.ack_timeout_start = rc_of(qp)->req.loss.pto_start = now_of(qp);
}

/* A packet was late rather than lost: widen the reordering window, once for what was sent together. */
void loss_reordering_seen(struct skua_qp *qp);
/* A packet has arrived twice. */
void loss_came_twice(struct skua_qp *qp);
/*
 * The peer has dropped @psn, the first that it did not accept, and all behind it: a NAK. It has accepted the @naccepted
 * packets before it since it was heard last.
 */
void loss_nak(struct skua_qp *qp, uint32_t psn, uint32_t naccepted);
/* The peer has dropped the first request that it did not accept, and all behind it: an RNR NAK. */
void loss_rnr_nak(struct skua_qp *qp);
/* The next response, of @npkts packets, was dropped, and is to be asked for again. */
void loss_response_dropped(struct skua_qp *qp, uint32_t npkts);
/* The held response @psn, whose turn it is, cannot be from the peer: it is lost. */
void loss_response_refused(struct skua_qp *qp, uint32_t psn);
/*
 * All requests that the peer has not accepted are lost. Responses that are held here are not. @nak_rtt: how long the
 * NAK took that reports it. 0: there is no NAK, but the ACK timeout has passed; then all other responses are lost, too.
 */
void loss_lose_all(struct skua_qp *qp, uint64_t nak_rtt);

void loss_detect_among_runs(struct skua_qp *qp);

/* Find the packets that are lost now. If others will count as lost later, loss_time says when. */
static inline void loss_detect(struct skua_qp *qp)
{
	const struct sent *s = &rc_of(qp)->req.sent;
	const struct sent_run *run = TAILQ_FIRST(&s->runs);
	struct loss *l = &rc_of(qp)->req.loss;

	l->loss_time = TIMER_NEVER;
	/* The usual case: no packet that was sent later has arrived, and there is no gap. */
	if (run && (run->send_order < l->rack[NEWS_ANSWERED].order || sent_gaps(s) || s->num_retransmitted))
		loss_detect_among_runs(qp);
}

#endif /* SKUAD_ROCE_LOSS_H */
