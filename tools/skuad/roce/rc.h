/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * QPs of RC: a requester and a responder.
 */
#ifndef SKUAD_ROCE_RC_H
#define SKUAD_ROCE_RC_H

#include "roce/congestion.h"
#include "roce/conn.h"
#include "roce/loss.h"
#include "roce/repeat.h"
#include "roce/sent.h"

#define PSN_WINDOW	(1u << 22)	/* packets ahead of the oldest that is outstanding, at most */

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

/* req.c */
void roce_req_reset(struct skua_qp *qp);
void roce_req_start(struct skua_qp *qp);
bool roce_req_run(struct skua_qp *qp, int32_t *budget);
bool roce_req_pending(const struct skua_qp *qp);	/* would do something if run again */
void roce_req_flush(struct skua_qp *qp);		/* the window, in ERR */
void roce_req_rx(struct skua_qp *qp, const struct train *t);
void roce_req_missing(struct skua_qp *qp, const struct repeat_frame *f);
void roce_timer(struct timer *timer);

#endif /* SKUAD_ROCE_RC_H */
