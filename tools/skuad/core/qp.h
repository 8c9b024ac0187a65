/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Queue pairs: what core/ (rings, work requests, completions) and roce/ (transport) share.
 */
#ifndef SKUAD_CORE_QP_H
#define SKUAD_CORE_QP_H

#include "core/device.h"
#include "roce/congestion.h"
#include "roce/loss.h"
#include "roce/sent.h"

/* An SGE in host byte order; the layout of struct skua_sge. */
struct sge {
	uint64_t addr;
	uint32_t length;
	uint32_t lkey;
};

/* A send work request, copied from the ring and checked. */
struct send_wqe {
	uint8_t opcode;			/* enum skua_wqe_opcode */
	uint8_t flags;			/* SKUA_WQE_* */
	uint8_t num_sge;
	uint8_t status, vendor_err;	/* a fault found here; else success */
	bool begun;			/* LOCAL_INV: the key is no good any more */
	uint64_t ticket;		/* LOCAL_INV: of the trains that may refer to the region */
	bool done;			/* READ, atomics, LOCAL_INV, NOP: carried out */
	uint32_t cookie;
	uint32_t sq_ci;			/* index behind it */
	uint32_t length;		/* bytes of payload */
	uint32_t imm;			/* immediate as on the wire, or key */
	uint16_t csum_start, csum_offset;	/* ETH with L4_CSUM */
	uint32_t rkey;
	uint64_t raddr;
	uint64_t swap_add, compare;	/* atomics */
	const struct skua_wqe_ud *ud;	/* UD: in our copy */
	uint32_t psn, npsn;		/* of its packets, once it has been started */
	uint32_t read_off;		/* READ: bytes that have come */
	const uint8_t *data;		/* inline data, or struct sge */
	struct port_mark mark;		/* of its trains */
};

/* All zero, to be copied: see train_blank. */
extern const struct send_wqe send_wqe_blank;

/*
 * A send queue: 64-byte blocks in a ring of the host's, and the window of WQEs that were taken from there. Indices of
 * the window run free: una <= nxt <= tail.
 */
struct sq {
	struct pages ring;
	uint32_t size;			/* blocks; 0: there is none */
	uint32_t ci, done;		/* next to fetch; behind the last that completed */
	bool dead;			/* overrun or unreachable: left alone until RESET */
	struct mem_ref dbr;		/* struct skua_dbr */
	uint8_t *shadow;		/* our copies of the WQEs in the window: a ring, too */
	uint32_t shadow_size, shadow_at; /* blocks; where the next goes, runs free */
	struct send_wqe *wqes;		/* the window */
	uint32_t wqe_mask;
	uint32_t una;			/* oldest WQE without completion */
	uint32_t nxt;			/* WQE to send from next */
	uint32_t nxt_pkt;		/* packets of it that were sent, or requested by a READ */
	uint32_t tail;			/* WQEs taken from the ring */
	uint32_t psn;			/* of the next new message */
	bool busy;			/* the wire had no room */
};

struct recv_wqe {
	uint32_t cookie;
	uint8_t num_sge;
	uint64_t length;		/* sum of the SGEs */
	struct sge sge[LIMIT_SGE];
};

/* A receive queue. It knows no QP: what becomes of one whose queue is no good, the QP knows. */
struct rq {
	struct skua_dev *dev;
	struct pd *pd;
	bool privileged;
	bool dead;			/* overrun or unreachable: left alone until RESET */
	uint8_t log_stride;
	uint32_t size, ci;		/* entries; 0: there is no queue */
	struct pages ring;
	struct mem_ref dbr;		/* struct skua_dbr */
};

/* roce/req.c: the requester. */
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

/* roce/resp.c: the responder. */
struct roce_resp {
	uint32_t epsn;			/* expected */
	uint32_t msn;
	bool in_message;
	bool dropping;			/* UC: what is left of a message that ended badly */
	enum train_op op;		/* of the message under way */
	uint32_t offset;		/* bytes of it received */
	uint64_t raddr;			/* WRITE: where it goes */
	uint32_t rkey, length;
	bool have_recv;
	struct recv_wqe recv;		/* of the SEND under way */
	bool nak_sent;			/* silence until epsn comes */
	bool from_held;			/* what is looked at was held: the peer can send it again */
	struct reorder *early;		/* requests that came before epsn */
	bool missing_due;		/* the peer is to be told what is missing */
	uint8_t untold;			/* early packets since it was told */
	bool duplicate;			/* a request came twice: the peer is to be told */
	bool ack_due;
	uint8_t syndrome;		/* of what is due */
	uint32_t nak_psn;
	bool established;		/* COMM_EST was raised */
	STAILQ_HEAD(, held_recv) held;
	uint32_t rd_size;		/* READs and atomics that there is room for: a power of two, or 0 */
	struct read_job *reads;		/* ring of 2 * rd_size: new ones, and as many that came again */
	uint32_t reads_head, reads_tail;
	uint32_t reads_new, reads_again; /* of those in it */
	struct served *served;		/* ring of rd_size, the last that were accepted */
	uint32_t nserved;		/* runs free */
};

struct skua_qp {
	struct skua_dev *dev;
	uint32_t number;
	uint8_t type;			/* enum skua_qp_type */
	uint8_t state;			/* enum skua_qp_state */
	bool draining;			/* SQD: what was begun is not complete */
	bool drained_wanted;		/* an event then */
	bool privileged;
	struct pd *pd;
	struct cq *scq, *rcq;
	struct cq_user send_user, recv_user;
	uint32_t db_page;
	uint64_t handle;
	struct async_event error_event, established_event, drained_event;
	bool error_raised;

	TAILQ_ENTRY(skua_qp) active_entry, err_entry, kept_entry;
	bool active, in_err;
	bool kept;			/* without work, and did not ask for its doorbell (core/flood.c) */
	uint64_t idle_since;		/* 0: had work at the last look */

	struct sq sq;
	struct rq rq;

	struct skua_qp_attr attr;	/* as given, little endian */
	uint32_t access, dest_qpn, pmtu, qkey;
	uint8_t log_pmtu;
	uint16_t max_rd, max_dest_rd;
	struct roce_path path;
	uint32_t gid_gen;		/* of the GID table, when gid_good was found */
	bool gid_good;			/* path.sgid is still programmed */
	struct timer timer;
	LIST_HEAD(, mcast_member) groups;	/* that it is attached to */
	struct dcqcn *dcqcn;	/* NULL: it sends as fast as it can */
	bool responses_first;		/* in its next turn: requester and responder take turns */
	bool missing_last;		/* in its next turn: after a MISSING the line had no room for responses */
	bool cnp_due;			/* the peer's packets were marked: it is to be told */
	uint64_t cnp_at;		/* when it was to be told the last time */
	struct roce_req req;
	struct roce_resp resp;
};

/* Does the requester run? In SQD it ends what it has begun. */
static inline bool qp_can_send(const struct skua_qp *qp)
{
	return qp->state == SKUA_QPS_RTS || qp->state == SKUA_QPS_SQD;
}

static inline bool qp_can_receive(const struct skua_qp *qp)
{
	return qp->state >= SKUA_QPS_RTR && qp->state <= SKUA_QPS_SQE;
}

/* The WQE with index @i in the window. */
static inline struct send_wqe *sq_wqe(const struct skua_qp *qp, uint32_t i)
{
	return &qp->sq.wqes[i & qp->sq.wqe_mask];
}

/* Packets that @len bytes of a message take. Shifts: a division costs as much as the rest of this. */
static inline uint32_t qp_packets(const struct skua_qp *qp, uint32_t len)
{
	return len ? ((len - 1) >> qp->log_pmtu) + 1 : 1;
}

/* qp.c */
void qp_activate(struct skua_qp *qp);
void qp_to_err(struct skua_qp *qp);
/* To ERR, with an asynchronous event: one at most between INIT and RESET. */
void qp_error(struct skua_qp *qp, uint8_t event);
void qp_fatal(struct skua_qp *qp);
/* To RESET: nothing of it is looked at any more, but trains of it may be under way. */
void qp_stop(struct skua_qp *qp);
/* The same by the host's will. It knows of what has come, so the peer has to know, too: an ACK that is due goes first. */
void qp_retire(struct skua_qp *qp);
/* As after CREATE_QP: no work, no state of the transport. */
void qp_reset(struct skua_qp *qp);
/* Do the QP's work. *@budget: payload bytes, or what counts as such. True if any was done. */
bool qp_run(struct skua_qp *qp, int32_t *budget);

/* flood.c: the doorbell of its SQ was rung */
void flood_sq_doorbell(struct skua_qp *qp);
/* It has run out of work: is its record looked at, so that it need not ask for its doorbell? */
bool flood_keep(struct skua_qp *qp);
void flood_release(struct skua_qp *qp);			/* it has work, or is taken down */

/* attr.c: an address vector with values that may be; the way that it leads, now, or
 * enum skua_vendor_err. */
bool av_valid(const struct skua_av *av);
int path_resolve(const struct skua_dev *dev, const struct skua_av *av, uint32_t qpn,
		 uint32_t dest_qpn, struct roce_path *path);

/* mcast.c: it is in no group any more */
void mcast_forget_qp(struct skua_qp *qp);

/* sq.c: from ring to window, and back as completions. */
void sq_reset(struct sq *sq);			/* nothing was taken from it */
bool sq_fetch(struct skua_qp *qp);		/* one WQE more in the window */
void sq_complete(struct skua_qp *qp, const struct send_wqe *wqe, uint8_t status,
		 uint8_t vendor_err);
/* Runs of the WQE's payload [@offset, @offset + @len), appended; enum skua_vendor_err. */
int sq_payload(struct skua_qp *qp, const struct send_wqe *wqe, uint32_t offset, uint32_t len,
	       uint32_t need, struct seglist *segs);
/* May all of its SGEs be used? enum skua_vendor_err. */
int sq_check(struct skua_qp *qp, const struct send_wqe *wqe, uint32_t need);
/* Flush what was posted, as far as the turn's @budget lasts; true if any. */
bool sq_flush(struct skua_qp *qp, int32_t *budget);
uint32_t sq_published(struct skua_qp *qp);	/* index behind what was posted */
bool sq_ask_doorbell(struct skua_qp *qp);	/* false: there is work after all */

/* rq.c */
enum rq_result { RQ_OK, RQ_EMPTY, RQ_BAD, RQ_FATAL };
/* The next receive WQE, left in the queue until rq_take(). RQ_BAD: @vendor_err says why. */
enum rq_result rq_peek(struct rq *rq, struct recv_wqe *wqe, uint8_t *vendor_err);
/* Where [@offset, @offset + @len) of a message goes, appended; enum skua_vendor_err. */
int rq_payload(const struct rq *rq, const struct recv_wqe *wqe, uint64_t offset, uint32_t len,
	       struct seglist *segs);

static inline void rq_take(struct rq *rq)
{
	rq->ci++;
}

/* qp.c: receives of a QP. As rq_peek(); RQ_FATAL: the QP is in error, too. */
enum rq_result qp_peek_recv(struct skua_qp *qp, struct recv_wqe *wqe, uint8_t *vendor_err);
void qp_complete_recv(struct skua_qp *qp, struct skua_cqe *cqe);
bool qp_flush_recvs(struct skua_qp *qp, int32_t *budget);	/* as sq_flush() */

/* Of a turn: a message or a flushed WQE, at least. */
#define MESSAGE_COST	256

/* eth.c */
bool eth_run(struct skua_qp *qp, int32_t *budget);

#define PSN_WINDOW	(1u << 22)	/* packets ahead of the oldest that is outstanding, at most */

/* roce/send.c: all that the path of the QP needs is filled in; what is lost counts as sent; @mark as in link/port.h. */
enum port_result roce_send(struct skua_qp *qp, struct train *t, struct port_mark *mark);
/* The same with a path of its own. */
enum port_result roce_send_train(struct skua_dev *dev, const struct train *t,
				 struct port_mark *mark);

/* roce/dcqcn.c */
#define DCQCN_BURST	4096u	/* bytes of a train of one that has a rate */
void dcqcn_reset(struct skua_qp *qp);
void dcqcn_marked(struct skua_qp *qp, uint32_t npkts);	/* packets that came marked */
bool dcqcn_notify(struct skua_qp *qp);	/* send what is due. False: no room on the wire */
void dcqcn_cnp(struct skua_qp *qp);	/* one has come */
/* Of one that has a rate: it has sent @t; does it have to wait until it may send more? */
void dcqcn_sent(struct skua_qp *qp, const struct train *t);
bool dcqcn_waits(struct skua_qp *qp);
bool dcqcn_paused(const struct skua_qp *qp);	/* a timer ends its wait */
uint64_t dcqcn_rate(const struct skua_qp *qp);	/* bits a second, when last reckoned; 0: it has none */

/* Of packets with payload. */
static inline bool qp_must_wait(struct skua_qp *qp)
{
	return qp->dcqcn && dcqcn_waits(qp);
}

static inline uint32_t qp_burst(const struct skua_qp *qp)
{
	if (port_is_slow(qp->dev->port))
		return qp->pmtu;
	return qp->dcqcn ? DCQCN_BURST : SEG_MAX_BYTES;
}

/* roce/req.c */
void roce_req_reset(struct skua_qp *qp);
void roce_req_start(struct skua_qp *qp, uint32_t psn);
bool roce_req_run(struct skua_qp *qp, int32_t *budget);
bool roce_req_pending(const struct skua_qp *qp);	/* would do something if run again */
void roce_req_flush(struct skua_qp *qp);		/* the window, in ERR */
void roce_req_rx(struct skua_qp *qp, const struct train *t);
void roce_drained(struct skua_qp *qp);			/* SQD: all that was begun is complete */
void roce_req_missing(struct skua_qp *qp, const struct repeat_frame *f);
void roce_timer(struct timer *timer);

/* roce/resp.c */
/* Room for so many READs and atomics of the peer; enum skua_cmd_status. */
int roce_resp_reserve(struct skua_qp *qp, uint32_t max_dest_rd);
void roce_resp_reset(struct skua_qp *qp);
void roce_resp_free(struct skua_qp *qp);
void roce_resp_stop(struct skua_qp *qp);		/* READs are not answered any more */
void roce_resp_retire(struct skua_qp *qp);		/* send the ACK that is due, if it may go */
bool roce_resp_run(struct skua_qp *qp, int32_t *budget);
bool roce_resp_pending(const struct skua_qp *qp);
bool roce_resp_responds(const struct skua_qp *qp);	/* to READs and atomics, that wait for their turn */
bool roce_resp_holds(const struct skua_qp *qp);		/* CQEs that come before those of a flush */
void roce_resp_flush(struct skua_qp *qp);
void roce_resp_rx(struct skua_qp *qp, const struct train *t);
/* A request of the peer was accepted: an event if the host may not know of the peer yet. */
void roce_established(struct skua_qp *qp);

/* roce/unacked.c: the send side of those whose peer does not answer */
bool unacked_run(struct skua_qp *qp, int32_t *budget);
void unacked_flush(struct skua_qp *qp);

/* roce/ud.c: False: the wire has no room. A WQE that is no good has a status then. */
bool ud_send(struct skua_qp *qp, struct send_wqe *wqe, int32_t *budget);
bool ud_wqe_valid(const struct skua_wqe_ud *ud);
void ud_rx(struct skua_qp *qp, const struct train *t);

/* roce/uc.c: the next train of the WQE; as ud_send() */
bool uc_send(struct skua_qp *qp, struct send_wqe *wqe, int32_t *budget);
void uc_rx(struct skua_qp *qp, const struct train *t);
void uc_flush(struct skua_qp *qp);

#endif /* SKUAD_CORE_QP_H */
