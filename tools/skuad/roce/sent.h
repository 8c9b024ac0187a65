/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The table of sent packets of a requester (RFC 9002, A.1), in runs of packets that share their
 * state. It covers the PSNs from the oldest that is outstanding up to the next that was never
 * sent, without gaps. A QP with nothing outstanding has no runs. Each packet that arrives may look at all of
 * the runs, so neighbours become one run again when what told them apart is over.
 *
 * A PSN is kept when its packet is retransmitted. So each transmission has a send order besides, as
 * QUIC has packet numbers: it tells which of two packets was sent later, and whether an
 * acknowledged packet was sent after one that is missing.
 *
 * PSNs of a READ or an atomic stand for its responses. They belong to the request that asks for
 * them, which is a run of its own until the responder has accepted it.
 */
#ifndef SKUAD_ROCE_SENT_H
#define SKUAD_ROCE_SENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "packet/train.h"

struct skua_dev;

#define SENT_RUNS_MAX	(1u << 18)	/* of a device, and one more for each QP: 20 MiB, and 5 */
#define SENT_RUNS_QP	4096u		/* of a QP: what one frame makes us look at */
#define RUN_COST	8		/* a look at a run, of a turn */

enum sent_state {
	SENT_IN_FLIGHT,
	SENT_HELD,	/* arrived out of order: a request at the peer, a response here */
	SENT_WAITING,	/* the peer holds the request of these responses */
	SENT_ARRIVING,	/* the peer held their request, and the first of these responses has come */
	SENT_LOST,	/* to be retransmitted */
	SENT_STATES,
};

struct sent_run {
	union {
		TAILQ_ENTRY(sent_run) entry;	/* by PSN */
		SLIST_ENTRY(sent_run) free;
	};
	uint32_t psn, npkts;
	uint64_t send_order;	/* of the first packet; the others follow one by one */
	uint64_t sent_at, first_sent_at;	/* ns: the last transmission, and the first */
	enum sent_state state;
	bool response;		/* PSNs of responses */
	bool first, last;	/* response: the first, the last PSN of its request */
	bool retransmitted;
	bool was_lost;		/* retransmitted, and not as a probe only */
	bool accepted;		/* response: the peer has accepted the request, as others of it came */
	bool is_partial;	/* response: asked for again, of a READ that the peer had accepted */
};

TAILQ_HEAD(sent_runs, sent_run);
SLIST_HEAD(free_runs, sent_run);

struct sent {
	struct sent_runs runs;
	uint32_t npkts[SENT_STATES];
	uint32_t num_runs;
	uint32_t num_retransmitted;	/* how many runs are */
	uint64_t next_order;
};

static inline bool sent_is_empty(const struct sent *s)
{
	return TAILQ_EMPTY(&s->runs);
}

/* Packets on the line, as far as is known. */
static inline uint32_t sent_in_flight(const struct sent *s)
{
	return s->npkts[SENT_IN_FLIGHT] + s->npkts[SENT_ARRIVING];
}

/* Packets that have arrived or were lost, behind others that have not: there are gaps. */
static inline uint32_t sent_gaps(const struct sent *s)
{
	return s->npkts[SENT_HELD] + s->npkts[SENT_WAITING] + s->npkts[SENT_LOST];
}

void sent_init(struct sent *s);
/* All runs of a QP are looked at: charge the turn. */
void sent_charge(struct skua_dev *dev, const struct sent *s);
/* Forget all of it. */
void sent_clear(struct skua_dev *dev, struct sent *s);
/* It takes no more until something has arrived. */
static inline bool sent_is_full(const struct sent *s)
{
	return s->num_runs >= SENT_RUNS_QP;
}

/* Make sure that the next sent_add() finds memory. False: there is none, or the table is full, or the device's is used up. */
bool sent_reserve(struct skua_dev *dev, const struct sent *s);
/* For sent_add(): the packets get a run of their own. */
void sent_add_run(struct skua_dev *dev, struct sent *s, uint32_t psn, uint32_t npkts,
		  bool response, uint64_t now);

/* Would the next packet that is sent belong to this run of requests? */
static inline bool sent_goes_on(const struct sent *s, const struct sent_run *run, bool was_lost,
				uint64_t now)
{
	return run && !run->response && run->state == SENT_IN_FLIGHT && run->sent_at == now &&
	       (was_lost ? run->was_lost : !run->retransmitted) &&
	       run->send_order + run->npkts == s->next_order;
}

/* Packets that were sent for the first time, at the end of the table; after sent_reserve(). */
static inline void sent_add(struct skua_dev *dev, struct sent *s, uint32_t psn, uint32_t npkts,
			    bool response, uint64_t now)
{
	struct sent_run *last = TAILQ_LAST(&s->runs, sent_runs);

	if (!response && sent_goes_on(s, last, false, now))
		last->npkts += npkts;
	else
		sent_add_run(dev, s, psn, npkts, response, now);
	s->next_order += npkts;
	s->npkts[SENT_IN_FLIGHT] += npkts;
}

/* The run that has @psn, or NULL. */
struct sent_run *sent_find(const struct sent *s, uint32_t psn);
/*
 * Cut @run so that it has @npkts packets, fewer than now. Returns the run of the others, or NULL without
 * memory: then @run is as it was.
 */
struct sent_run *sent_split(struct skua_dev *dev, struct sent *s, struct sent_run *run,
			    uint32_t npkts);
/* Undo a split: @run becomes a part of the run before it if they differ in nothing but their packets. */
struct sent_run *sent_join(struct skua_dev *dev, struct sent *s, struct sent_run *run);
void sent_set_state(struct sent *s, struct sent_run *run, enum sent_state state);
/*
 * The first @npkts of @run were retransmitted: they are in flight, and were sent last. Returns the run that has them
 * now.
 */
struct sent_run *sent_again(struct skua_dev *dev, struct sent *s, struct sent_run *run,
			    uint32_t npkts, uint64_t now);
/* The first @npkts of the first run are not outstanding any more. */
void sent_remove(struct skua_dev *dev, struct sent *s, uint32_t npkts);
/* Free the memory that the device keeps for runs. False: there is more. */
bool sent_free_all(struct skua_dev *dev, int32_t *budget);

#endif /* SKUAD_ROCE_SENT_H */
