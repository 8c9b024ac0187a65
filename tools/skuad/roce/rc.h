/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * QPs of RC: a requester and a responder.
 */
#ifndef SKUAD_ROCE_RC_H
#define SKUAD_ROCE_RC_H

#include "roce/conn.h"
#include "roce/repeat.h"
#include "roce/sent.h"

#define PSN_WINDOW	(1u << 22)	/* packets ahead of the oldest that is outstanding, at most */

/* The congestion window (congestion.c), in packets. */
struct congestion {
	uint32_t window;		/* packets that may be in flight */
	uint32_t ssthresh;		/* below, slow start */
	uint32_t acked;			/* in congestion avoidance, since the window grew */
	uint64_t recovery_order;	/* send order that ends the recovery period */
	uint32_t window_before;		/* the recovery period */
	uint32_t num_acked, num_lost;	/* of the window of packets that is counted */
};

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

/* Loss detection: round trips (rtt.c), lost packets (loss.c), and the timer (req_timer.c). Times in ns. */
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

/* The requester. */
struct roce_req {
	uint32_t una_psn;		/* oldest not acknowledged, or READ without its responses */
	uint32_t acked_psn;		/* the peer has accepted all requests before */
	uint32_t sent_psn;		/* behind the last packet that was sent */
	uint32_t asked_psn;		/* behind the last packet that asked for an answer */
	bool ask;			/* the next packet has to ask */
	uint32_t unasked;		/* packets sent since the last with AckReq */
	uint32_t reads;			/* requests of READs and atomics without all of their responses */
	uint8_t rnr_retries;		/* so far, without progress */
	bool rnr_wait;
	bool rnr_trying;		/* after the wait only the oldest packet goes, until it is accepted */
	bool failing;			/* the oldest without an answer has a status of its own */
	bool flushing;			/* that one has completed: all behind it are flushed */
	bool probe;			/* the oldest packet is to go again, to be answered */
	bool from_held;			/* the response that is looked at was held */
	uint64_t rnr_until;
	struct sent sent;
	struct loss loss;
	struct congestion congestion;
	struct reorder *early;		/* responses that came before their time */
};

/* A READ or an atomic that is to be answered. */
struct read_job {
	uint32_t psn, npkts;		/* of the responses */
	uint32_t sent;			/* packets */
	uint32_t rkey;
	uint64_t raddr;
	uint32_t length;
	uint32_t msn;
	bool duplicate;			/* came again */
	enum train_op op;		/* READ_REQ or an atomic */
	bool done;			/* an atomic: carried out, swap_add is what it fetched */
	uint64_t swap_add, compare;
	uint32_t served;		/* index of what is remembered of it */
};

/* What is remembered of one, for its peer to ask again. */
struct served {
	enum train_op op;
	uint32_t psn, npkts;
	uint32_t rkey, length;
	uint64_t raddr;
	bool done;			/* an atomic: value is what it fetched */
	uint64_t value;
};

/*
 * The CQE of a receive, held back until trains that may refer to the region that its message
 * invalidated are over, or behind one that is.
 */
struct held_recv {
	STAILQ_ENTRY(held_recv) entry;
	struct skua_cqe cqe;
	uint64_t ticket;
};

/* The responder. */
struct roce_resp {
	uint32_t msn;
	bool nak_sent;			/* silence until epsn comes */
	bool from_held;			/* what is looked at was held: the peer can send it again */
	struct reorder *early;		/* requests that came before epsn */
	bool missing_due;		/* the peer is to be told what is missing */
	uint8_t untold;			/* early packets since it was told */
	bool duplicate;			/* a request came twice: the peer is to be told */
	bool ack_due;
	uint8_t syndrome;		/* of what is due */
	uint32_t nak_psn;
	STAILQ_HEAD(, held_recv) held;
	uint32_t rd_size;		/* READs and atomics that there is room for: a power of two, or 0 */
	struct read_job *reads;		/* ring of 2 * rd_size: new ones, and as many that came again */
	uint32_t reads_head, reads_tail;
	uint32_t reads_new, reads_again; /* of those in it */
	struct served *served;		/* ring of rd_size, the last that were accepted */
	uint32_t nserved;		/* runs free */
};

struct rc_qp {
	struct roce_conn conn;
	struct timer timer;		/* of the requester */
	bool responses_first;		/* in its next turn: requester and responder take turns */
	bool missing_last;		/* in its next turn: after a MISSING the line had no room for responses */
	struct roce_req req;
	struct roce_resp resp;
};

static inline struct rc_qp *rc_of(const struct skua_qp *qp)
{
	return (struct rc_qp *)(uintptr_t)qp;
}

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

/* Is an answer due? A request that was sent asked for one. */
static inline bool req_is_asked(const struct roce_req *req)
{
	return psn_diff(req->asked_psn, req->una_psn) > 0;
}

#endif /* SKUAD_ROCE_RC_H */
