/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The state of an RC QP: its requester and its responder.
 */
#ifndef SKUAD_ROCE_RC_H
#define SKUAD_ROCE_RC_H

#include "roce/conn.h"
#include "roce/repeat.h"
#include "roce/sent.h"

#define PSN_WINDOW	(1u << 22)	/* packets ahead of the oldest outstanding one, at most */

/* The congestion window (congestion.c), in packets. */
struct congestion {
	uint32_t window;		/* packets that may be in flight */
	uint32_t ssthresh;		/* below it, the window grows by slow start */
	uint32_t acked_since_growth;	/* in congestion avoidance */
	uint64_t recovery_order;	/* send order that ends the recovery period */
	uint32_t window_before_recovery;
	uint64_t queue_order;		/* behind what was sent when the first of some long round trips ended; 0: none */
	uint32_t counted_acked, counted_lost;	/* of the window's worth of packets that is counted */
};

/*
 * When one packet has arrived, the packets sent before it should have arrived, too. Which ones depends on the kind of
 * news: an ACK or a response follows all that the peer has sent before it; a MISSING overtakes responses; and the peer
 * answers a partial request before others.
 */
enum news_kind {
	NEWS_ANSWERED,			/* tells of all packets */
	NEWS_HELD,			/* the peer holds requests: tells of those that it has not accepted */
	NEWS_PART,			/* a partial request is answered: tells of other such requests */
	NEWS_KINDS,
};

/* RACK: of all packets that have arrived, the one that was sent last. */
struct rack {
	uint64_t order;			/* its send order + 1 */
	uint64_t rtt;
};

/* Loss detection: round trips (rtt.c), lost packets (loss.c), and the timer (req_timer.c). Times in ns. */
struct loss {
	uint64_t smoothed_rtt;		/* 0: no round trip was measured */
	uint64_t rttvar;
	uint64_t path_rtt;		/* smoothed, too: from samples of the path alone, not of the peer's pauses */
	uint64_t min_rtt, min_rtt_at;	/* the shortest of some seconds, and when it was measured */

	struct rack rack[NEWS_KINDS];
	uint8_t reo_wnd_mult;		/* 0: no reordering was seen */
	uint8_t reo_wnd_persist;	/* recoveries until reordering is forgotten */
	uint64_t reo_order;		/* reo_wnd_mult may grow again when this send order has arrived */
	uint64_t last_loss_at;		/* 0: never */
	uint64_t loss_time;		/* when the next packet will be lost; TIMER_NEVER: none */
	uint64_t last_arrival_at;

	/* Probe timeout. */
	uint64_t pto_start;		/* the last packet was sent, or something arrived */
	uint8_t pto_count;		/* in a row, without progress */
	uint8_t probes;			/* since a packet last arrived that was sent only once */
	uint64_t probe_order;		/* behind the send order of the last probe */

	/* IBTA's Local ACK Timeout. */
	uint64_t ack_timeout_start;	/* the last progress, or the first packet was sent */
	uint8_t retries;		/* without progress */
	bool sent_since_retry;		/* any packet, since the last retry */
	bool nak_taken;			/* a sequence NAK was taken since the last progress or retry: */
	uint32_t nak_psn;		/* for this PSN; other NAKs for it are copies */
};

/* The requester. */
struct roce_req {
	uint32_t oldest_unacked_psn;	/* not acknowledged, or a READ without its responses */
	uint32_t accepted_psn;		/* the peer has accepted all requests before it */
	uint32_t next_psn;		/* behind the last packet that was sent */
	uint32_t ack_requested_psn;	/* behind the last packet that asked for an ACK, or for responses */
	bool request_ack;		/* the next packet has to set AckReq */
	uint32_t npkts_since_ack_req;	/* sent since the last packet with AckReq */
	uint32_t reads_outstanding;	/* requests of READs and atomics without all of their responses */
	uint8_t rnr_retries;		/* so far, without progress */
	bool rnr_waiting;		/* until rnr_until */
	bool rnr_probing;		/* after that only the oldest packet is sent, until it is accepted */
	bool failing;			/* the oldest WQE without an answer has a status of its own */
	bool flushing;			/* that WQE has completed: all WQEs behind it are flushed */
	bool probe_due;			/* the oldest packet is to be retransmitted, to be answered */
	bool response_was_held;		/* the response that is looked at was held before */
	bool response_goes_on;		/* others to the same request have come with it, or follow */
	uint32_t npkts_dropped;		/* of the next response, which has come, but its place was not present; or 0 */
	uint64_t rnr_until;
	struct sent sent;
	struct loss loss;
	struct congestion congestion;
	struct reorder *early_responses;
};

/* A request with a response of its own, which is to be answered: a READ, an atomic, FLUSH, ATOMIC WRITE. */
struct read_job {
	uint32_t psn, npkts;		/* of the responses */
	uint32_t npkts_sent;
	uint32_t rkey;
	uint64_t raddr;
	uint32_t length;		/* READ: bytes; else 0 */
	uint32_t msn;
	bool duplicate;			/* the request came again */
	bool atomic_done;		/* it was carried out: swap_add is what it fetched */
	bool privileged;		/* with pd: whose memory it is for */
	bool wait_due;			/* when it waits: the peer is to be told so */
	enum train_op op;
	uint32_t srqn;			/* XRC_TGT: the SRQ whose PD it is */
	uint64_t served_index;		/* what is remembered of it: resp_served_at() */
	uint64_t swap_add, compare;
	union {
		struct {		/* masked atomics */
			uint64_t swap_add_mask, compare_mask;
		};
		struct {		/* FLUSH */
			uint64_t flush_left;	/* to persistence: bytes from raddr on whose place is not known yet */
			uint8_t flush;	/* SKUA_FLUSH_*, until it is done */
		};
	};
	struct pd *pd;			/* NULL: nobody's any more */
};

/* What the responder remembers of such a request, in case it comes again. */
struct served {
	enum train_op op;
	uint32_t psn, npkts;
	uint64_t accepted;		/* PSNs before it */
	uint32_t rkey, length;
	uint64_t raddr;
	bool done;			/* but for READs: carried out */
	uint64_t value;			/* what an atomic fetched */
};

/*
 * The CQE of a receive. It is held back until all trains are over that may refer to the region which its message
 * invalidated, or it waits behind such a CQE.
 */
struct held_recv {
	STAILQ_ENTRY(held_recv) entry;
	struct skua_cqe cqe;
	struct cq *cq;			/* that it goes to */
	struct srq *srq;		/* that the receive is from, or NULL: */
	struct recv_wqe recv;
	uint64_t ticket;		/* port_drained() tells when the trains are over */
};

/* The responder. */
struct roce_resp {
	uint32_t msn;
	bool nak_sent;			/* nothing more is sent until epsn comes */
	bool request_was_held;		/* the request that is looked at was held: the peer can retransmit it */
	struct reorder *early_requests;
	bool missing_due;		/* the peer is to be told what is missing: */
	bool missing_last;		/* behind responses or an ACK, which have waited since the last MISSING */
	bool job_waits;			/* the first job needs a page that is not present, or its memory to be persistent */
	struct persist_job *persisting;	/* of the first job; NULL: none */
	uint8_t early_since_missing;	/* packets that came early since the peer was told */
	bool duplicate_seen;		/* a packet came twice: the peer is to be told */
	bool ack_due;			/* an ACK or NAK is owed: */
	uint8_t due_syndrome;
	uint32_t nak_psn;
	STAILQ_HEAD(, held_recv) held_cqes;
	uint32_t jobs_size;		/* READs and atomics that there is room for: a power of two, or 0 */
	struct read_job *jobs;		/* ring of 2 * jobs_size: new ones, and as many that came again */
	uint32_t jobs_head, jobs_tail;	/* run free */
	uint32_t jobs_new, jobs_again;	/* of those in the ring */
	struct served *served;		/* ring of jobs_size: the last that were accepted */
	uint64_t num_served;		/* ever: it never wraps */
	uint64_t accepted;		/* PSNs of requests, ever */
};

struct rc_qp {
	struct roce_conn conn;
	struct timer timer;		/* of the requester */
	bool responses_first;		/* in the next turn: requester and responder take turns */
	struct roce_req req;
	struct roce_resp resp;
};

static inline struct rc_qp *rc_of(const struct skua_qp *qp)
{
	return (struct rc_qp *)(uintptr_t)qp;
}

/* engine_now(), without a call: it is asked for with every packet. */
static inline uint64_t now_of(const struct skua_qp *qp)
{
	return qp->dev->engine->now;
}

/* Has the peer accepted the request that @run belongs to, or that asks for its responses? */
static inline bool req_is_accepted(const struct roce_req *req, const struct sent_run *run)
{
	return run->accepted || psn_diff(req->accepted_psn, run->psn) > 0;
}

/* Is an answer due? Then a packet that was sent has asked for one. */
static inline bool req_is_asked(const struct roce_req *req)
{
	return psn_diff(req->ack_requested_psn, req->oldest_unacked_psn) > 0;
}

#endif /* SKUAD_ROCE_RC_H */
