/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Queue pairs: rings, work requests and completions. A transport (core/transport.h) keeps what it needs behind that.
 */
#ifndef SKUAD_CORE_QP_H
#define SKUAD_CORE_QP_H

#include "core/device.h"

struct pacer;
struct srq;
struct tag;
struct transport_ops;
struct xrcd;

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
	bool local;			/* NOP, LOCAL_INV, BIND_MW, REG_MR, TAG_*: sends nothing */
	bool begun;			/* LOCAL_INV, BIND_MW: carried out, but waits for ticket; ETH: the next frame looped back */
	uint64_t ticket;		/* of trains that may refer to what was taken away */
	bool done;			/* carried out: local ones, and what has a response */
	uint8_t flush;			/* FLUSH: SKUA_FLUSH_* */
	uint32_t cookie;
	uint32_t sq_ci;			/* index behind it */
	uint32_t length;		/* bytes of payload */
	uint32_t imm;			/* immediate as on the wire, or key */
	union {
		struct {		/* ETH with L4_CSUM */
			uint16_t csum_start, csum_offset;
		};
		struct {		/* TSO */
			uint16_t mss, hdr_len;
		};
		uint32_t srqn;		/* XRC_INI: the peer's SRQ */
		struct {		/* TAG_*: what its CQE says */
			uint8_t tag_flags;
			bool tag_gone;	/* TAG_DEL: it was not in the list */
		};
	};
	uint32_t rkey;
	uint64_t raddr;
	union {
		uint64_t swap_add;	/* atomics */
		uint32_t flush_length;	/* FLUSH: bytes at the peer */
	};
	uint64_t compare;
	union {				/* in our copy */
		const struct skua_wqe_ud *ud;
		const struct skua_wqe_reg_mr *reg;
		const struct skua_wqe_bind_mw *bind;
		const struct skua_wqe_masked_atomic *masked;	/* NULL: of other atomics */
		const struct skua_wqe_tag *tag_op;
		const uint8_t *header;	/* TSO */
		struct tag *rndv;	/* READ of a rendezvous: the tag that it is for */
	};
	uint32_t psn, npsn;		/* of its packets, once it has been started */
	union {
		uint32_t read_off;	/* READ: bytes that have come */
		uint32_t sent;		/* TSO: bytes of payload in frames that were sent */
	};
	const uint8_t *data;		/* inline data, or struct sge */
	struct port_mark mark;		/* of its trains */
};

/* Has the message of @wqe the solicited event bit? A plain WRITE has no receive that could tell. */
static inline bool wqe_is_solicited(const struct send_wqe *wqe)
{
	return wqe->flags & SKUA_WQE_SOLICITED && wqe->opcode != SKUA_WQE_WRITE;
}

/* All zero, to be copied: see train_blank. */
extern const struct send_wqe send_wqe_blank;

/*
 * A send queue: 64-byte blocks in a ring of the host's, and the window of WQEs that were taken from there. Indices of
 * the window run free: una <= nxt <= tail.
 */
struct sq {
	struct pages ring;
	uint32_t size;			/* blocks; 0: there is none, but the window may have WQEs of our own (tags.c) */
	uint32_t ci, done;		/* next to fetch; behind the last that completed */
	bool dead;			/* overrun or unreachable: left alone until RESET */
	struct mem_ref dbr;		/* struct skua_dbr */
	uint8_t *shadow;		/* our copies of the WQEs in the window: a ring, too; NULL before the first */
	uint32_t shadow_size, shadow_at; /* blocks; where the next goes, runs free */
	struct send_wqe *wqes;		/* the window; NULL before the first */
	uint32_t wqe_mask;
	uint32_t una;			/* oldest WQE without completion */
	uint32_t nxt;			/* WQE to send from next */
	uint32_t nxt_pkt;		/* packets of it that were sent, or requested by a READ */
	uint32_t tail;			/* WQEs taken from the ring */
	uint32_t psn;			/* of the next new message */
	bool busy;			/* the wire had no room, or the turn was over */
	bool waits;			/* for an answer or a timer, before another WQE is taken from the ring */
};

struct recv_wqe {
	uint32_t cookie;
	uint8_t num_sge;
	uint8_t bad;			/* of an SRQ: why it is of no use, enum skua_vendor_err; 0: it is not */
	uint64_t length;		/* sum of the SGEs */
	struct sge sge[LIMIT_SGE];
};

/* A QP's own receive queue, or its use of an SRQ, or the ring of an SRQ. So it does not refer to a QP. */
struct rq {
	struct skua_dev *dev;
	struct pd *pd;
	bool privileged;
	bool dead;			/* overrun or unreachable: left alone until RESET */
	uint8_t log_stride;
	uint32_t size, ci;		/* entries; 0: there is no queue */
	struct pages ring;
	struct mem_ref dbr;		/* struct skua_dbr */
	struct srq *srq;		/* instead of the ring, or NULL */
};

TAILQ_HEAD(tag_queue, tag);

/* The first member of what its transport keeps of it. */
struct skua_qp {
	struct skua_dev *dev;
	struct device_stats *stats;	/* where it counts */
	const struct transport_ops *ops;
	uint32_t number;
	uint8_t type;			/* enum skua_qp_type */
	uint8_t state;			/* enum skua_qp_state */
	bool draining;			/* SQD: what was begun is not complete */
	bool drained_wanted;		/* an event then */
	bool privileged;
	struct counter_set *counter_set;	/* NULL: the device's own */
	struct pd *pd;
	struct cq *scq, *rcq;
	struct cq_user send_user, recv_user;
	uint32_t db_page;
	uint64_t handle;
	uint64_t recv_handle;		/* in CQEs of receives: that of the SRQ, if it has one */
	uint8_t recv_flags;		/* in these CQEs: SKUA_CQE_FROM_SRQ, or 0 */
	struct async_event error_event, established_event, drained_event, last_wqe_event;
	bool error_raised;
	bool last_wqe_raised;		/* LAST_WQE_REACHED was raised */
	bool established;		/* COMM_EST was raised */

	TAILQ_ENTRY(skua_qp) active_entry, err_entry, kept_entry;
	bool active, in_err;
	bool kept;			/* without work, and did not ask for its doorbell (core/flood.c) */
	uint64_t idle_since;		/* 0: had work at the last look */

	struct pacer *pacer;		/* NULL: it sends as fast as it can */
	struct sq sq;
	struct rq rq;
	uint32_t epsn;			/* PSN that is expected next; that of the next message: sq.psn */

	struct skua_qp_attr attr;	/* as given, little endian */
	uint32_t access, dest_qpn, pmtu, qkey;
	uint8_t log_pmtu;
	uint16_t max_rd, max_dest_rd;
	struct roce_path path;
	uint32_t gid_gen;		/* of the GID table, when gid_good was found */
	bool gid_good;			/* path.sgid is still programmed */
	LIST_HEAD(, mcast_member) groups;	/* that it is attached to */
	LIST_HEAD(, mw) windows;	/* of type 2, that it bound */
	LIST_HEAD(, flow) flows;	/* to it */
	struct tag_queue matched;	/* tags of its SRQ, in the order of its messages */
	uint64_t serial;		/* which no other QP of the device ever has */

	/*
	 * XRC_TGT: a request says which SRQ it is for. Until the next one comes, pd and privileged are those of the
	 * last request, and rq, rcq and what CQEs of receives hold are those of the last message.
	 */
	struct xrcd *xrcd;		/* else NULL */
	LIST_ENTRY(skua_qp) target_entry;	/* of the domain's QPs */

	struct page_fault faults[FAULT_SIDES];	/* by enum skua_page_fault_side */
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
/* For commands: retire it, in steps, until nothing refers to its memory and its windows are free. -1: call again. */
int qp_halt(struct skua_qp *qp);
/* As after CREATE_QP: no work, no state of the transport. */
void qp_reset(struct skua_qp *qp);
/* SQD: all that was begun is complete. */
void qp_drained(struct skua_qp *qp);
/* A request of the peer was accepted: an event if the host may not know of the peer yet. */
void qp_established(struct skua_qp *qp);
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

/* mcast.c: it leaves its groups, as far as the @budget lasts; true when it is in none any more */
bool mcast_forget_qp(struct skua_qp *qp, int32_t *budget);

/* flow.c: no flow leads to it any more */
void flow_forget_qp(struct skua_qp *qp);

/* sq.c: from ring to window, and back as completions. */
void sq_reset(struct sq *sq);			/* nothing was taken from it */
/* Charge the memory of a new one's window, for WQEs of so many blocks, to the quota. False: it does not last. */
bool sq_charge(struct skua_dev *dev, struct sq *sq, uint32_t blocks);
bool sq_fetch(struct skua_qp *qp);		/* one WQE more in the window */
void sq_complete(struct skua_qp *qp, const struct send_wqe *wqe, uint8_t status,
		 uint8_t vendor_err);
/* Runs of the WQE's payload [@offset, @offset + @len), appended; enum skua_vendor_err. */
int sq_payload(struct skua_qp *qp, const struct send_wqe *wqe, uint32_t offset, uint32_t len,
	       uint32_t need, struct seglist *segs);
/* May all of its SGEs be used, and are pages on demand there? enum skua_vendor_err. */
int sq_check(struct skua_qp *qp, const struct send_wqe *wqe, uint32_t need);
/* Flush what was posted, as far as the turn's @budget lasts; true if any. */
bool sq_flush(struct skua_qp *qp, int32_t *budget);
uint32_t sq_published(struct skua_qp *qp);	/* index behind what was posted */
bool sq_ask_doorbell(struct skua_qp *qp);	/* false: there is work after all */

/* local.c: carry out a WQE that sends nothing. False: it has to wait. A WQE that is no good has a status then. */
bool sq_run_local(struct skua_qp *qp, struct send_wqe *wqe, int32_t *budget);

/* rq.c */
enum rq_result { RQ_OK, RQ_EMPTY, RQ_BAD, RQ_FATAL };
/* The next receive WQE, left in the queue until rq_take(). RQ_BAD: @vendor_err says why. */
enum rq_result rq_peek(struct rq *rq, struct recv_wqe *wqe, uint8_t *vendor_err);
/* Where [@offset, @offset + @len) of a message goes, appended; enum skua_vendor_err. */
int rq_payload(const struct rq *rq, const struct recv_wqe *wqe, uint64_t offset, uint32_t len,
	       struct seglist *segs);

void srq_take(struct srq *srq);

/* What rq_peek() has found leaves the queue. */
static inline void rq_take(struct rq *rq)
{
	if (rq->srq)
		srq_take(rq->srq);
	else
		rq->ci++;
}

/* qp.c: receives of a QP. As rq_peek(); RQ_FATAL: the QP is in error, too. */
enum rq_result qp_peek_recv(struct skua_qp *qp, struct recv_wqe *wqe, uint8_t *vendor_err);
void qp_fill_recv(const struct skua_qp *qp, struct skua_cqe *cqe);	/* what says whose completion it is */
void qp_complete_recv(struct skua_qp *qp, struct skua_cqe *cqe);
/* XRC_TGT: the message that begins takes its receive from @srq; NULL: none does. */
void qp_use_srq(struct skua_qp *qp, struct srq *srq);
bool qp_flush_recvs(struct skua_qp *qp, int32_t *budget);	/* as sq_flush() */

/* Of a turn: a message or a flushed WQE, at least. */
#define MESSAGE_COST	256

/* unacked.c: run and flush of those whose peer does not answer */
bool unacked_run(struct skua_qp *qp, int32_t *budget);
bool unacked_flush(struct skua_qp *qp);
bool unacked_is_pending(const struct skua_qp *qp);

#endif /* SKUAD_CORE_QP_H */
