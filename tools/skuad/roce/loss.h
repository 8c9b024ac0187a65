/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Loss detection of a requester: round trips, lost packets, and the timer (RFC 9002 sections 5
 * and 6, RFC 8985).
 */
#ifndef SKUAD_ROCE_LOSS_H
#define SKUAD_ROCE_LOSS_H

#include <stdbool.h>
#include <stdint.h>

struct repeat_frame;
struct skua_qp;

/* Times in ns. */
/*
 * When one packet has arrived, others that were sent before it should have arrived, too. Which ones, depends on
 * the kind of news: an ACK or a response follows all that the peer has sent before it; a MISSING overtakes
 * responses; and the peer answers a partial request before others.
 */
enum news_kind {
	NEWS_ANSWERED,			/* tells of all */
	NEWS_HELD,			/* by the peer: of requests that it has not accepted */
	NEWS_PART,			/* of other such parts */
	NEWS_KINDS,
};

/* RACK: what was sent last of all that has arrived. */
struct rack {
	uint64_t order;			/* its send order + 1 */
	uint64_t rtt;
};

struct loss {
	uint64_t smoothed_rtt;		/* 0: none was measured */
	uint64_t rttvar;
	uint64_t path_rtt;		/* smoothed, too: of samples of the path alone, not of the peer's pauses */
	uint64_t min_rtt, min_rtt_at;	/* the shortest of some seconds, and when it was measured */

	struct rack rack[NEWS_KINDS];
	uint8_t reo_wnd_mult;		/* 0: no reordering was seen */
	uint8_t reo_wnd_persist;	/* recoveries until that is forgotten */
	uint64_t reo_order;		/* it grows again when packets from here on have arrived */
	uint64_t lost_at;		/* the last time; 0: never */
	uint64_t loss_time;		/* when the next packet will be lost; TIMER_NEVER: none */

	uint64_t arrived_at;		/* the last news */

	/* Probe timeout. */
	uint64_t pto_from;		/* the last packet was sent, or something arrived */
	uint8_t pto_count;		/* in a row, without progress */
	uint8_t probes;			/* since a packet last arrived that was sent only once */
	uint64_t probe_order;		/* behind the send order of the last probe */

	/* IBTA's Local ACK Timeout. */
	uint64_t ack_from;		/* the last progress, or the first packet was sent */
	uint8_t retries;		/* without progress */
	bool sent_since;		/* anything, since the last retry */
	bool nak_taken;			/* a sequence NAK, since the last progress or retry: */
	uint32_t nak_psn;		/* for this PSN; others for it are copies */
};

void loss_init(struct loss *l);
/* loss_asked() and loss_sent(): roce/req.h */
/* All before @psn is done with: acknowledged, and its responses placed. */
void loss_acked(struct skua_qp *qp, uint32_t psn);
/* The peer has accepted all requests before @psn, and has sent the responses to them. */
void loss_accepted(struct skua_qp *qp, uint32_t psn);
/* @npkts responses from @psn on have come early. @held: the requester holds them; else there was no place. */
void loss_response_early(struct skua_qp *qp, uint32_t psn, uint32_t npkts, bool held);
/* The held response @psn, whose turn it is, cannot be from the peer: it is lost. */
void loss_response_refused(struct skua_qp *qp, uint32_t psn);
/* A response has come that was there already. */
void loss_response_twice(struct skua_qp *qp);
/* The peer tells what it holds. */
void loss_missing(struct skua_qp *qp, const struct repeat_frame *f);
/* The peer has dropped @psn, the first that it did not accept, and all behind it: a NAK. */
void loss_nak(struct skua_qp *qp, uint32_t psn);
/* The peer has dropped the first request that it did not accept, and all behind it: an RNR NAK. */
void loss_rnr_nak(struct skua_qp *qp);
/* The ACK timeout and the PTO begin anew. */
void loss_restart(struct skua_qp *qp);
/* The timer has fired. */
void loss_timer(struct skua_qp *qp);
/* Set the timer, if anything is outstanding. */
void loss_set_timer(struct skua_qp *qp);

#endif /* SKUAD_ROCE_LOSS_H */
