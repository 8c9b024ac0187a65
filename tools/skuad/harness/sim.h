/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The simulator: a seed makes a world, which runs on the manual clock until all its work is done
 * or an invariant is broken. The same seed and the same switched-off parts give the same run.
 *
 * A world is two devices, two lines (one a direction) with impairments, up to 64 pairs of QPs
 * with random attributes and work in both directions, and events such as bursts of loss. It is
 * drawn as a whole before it runs (sim_draw.c). Each part is drawn from a random stream of its
 * own, so that switching one part off leaves the others as they are.
 *
 * sim_draw.c	a world from a seed
 * sim_words.c	the names of parts; a world in words
 * sim_host.c	the hosts: objects, receives and work requests
 * sim_odp.c	the hosts: page faults of nodes whose memory is on demand
 * sim_done.c	the hosts: completions, compared with what was posted
 * sim_check.c	invariants of the devices: timers, bounds of time, what is left at the end
 * sim_rules.c	rules of loss recovery that show in the state of a requester
 * sim_cost.c	what losses cost, in a world and in the mean of all
 * sim_run.c	events and the clock
 * sim_shrink.c	the smallest world that still fails
 */
#ifndef SKUAD_HARNESS_SIM_H
#define SKUAD_HARNESS_SIM_H

#include <stdio.h>

#include "core/qp.h"
#include "harness/harness.h"
#include "harness/paging.h"
#include "roce/rc.h"

#define SIM_QPS		64
#define SIM_MSGS	64			/* of one side of a QP */
#define SIM_EVENTS	8
#define SIM_US		1000ull
#define SIM_MS		1000000ull
#define SIM_S		1000000000ull

/*
 * Parts of a world that can be switched off, QPs apart. The last group are checks.
 */
#define SIM_PARTS(X) \
	X(RATE, "rate") X(INRATE, "inrate") X(FAR, "far") X(DELAY, "delay") X(JITTER, "jitter") \
	X(LOSS, "loss") X(REORDER, "reorder") X(DUPLICATE, "dup") X(CORRUPT, "corrupt") \
	X(ECN, "ecn") X(BURST, "burst") X(PAUSE, "pause") X(LINK, "link") X(KILL, "kill") \
	X(UC, "uc") X(FORTH, "forth") X(BACK, "back") \
	X(SEND, "sends") X(WRITE, "writes") X(READ, "reads") X(ATOMIC, "atomics") X(IMM, "imm") \
	X(FAST, "fast") X(SRQ, "srq") X(XRC, "xrc") X(ODP, "odp") X(EVICT, "evict") X(REFUSE, "refuse") \
	X(FENCE, "fence") X(UNSIGNALED, "unsignaled") X(INLINE, "inline") X(DEPENDS, "depends") \
	X(BIG, "big") X(MIDDLE, "middle") X(HALF, "half") X(MOST, "most") X(DEPTH, "depth") \
	X(THINK, "think") X(LATE, "late") X(GBN_A, "gbn-a") X(GBN_B, "gbn-b") X(PMTU, "pmtu") \
	X(WRAP, "wrap") X(FLUSH, "flush") \
	X(CHECK_ARMED, "check-armed") X(CHECK_BOUND, "check-bound") X(CHECK_FAIR, "check-fair") \
	X(CHECK_AMPLIFY, "check-amplify") X(CHECK_RETRY, "check-retry") \
	X(CHECK_GOODPUT, "check-goodput") X(CHECK_RULES, "check-rules") \
	X(CHECK_COST, "check-cost")

enum sim_part {
#define SIM_PART(name, text) SIM_##name,
	SIM_PARTS(SIM_PART)
#undef SIM_PART
	SIM_NUM_PARTS,
};

/* What is switched off; and another draw of which packets suffer, which a shrunken world needs. */
struct sim_off {
	uint64_t parts;			/* bits of enum sim_part */
	uint64_t qps;
	unsigned int salt;
};

/* One direction. Chances are in parts per million. */
struct sim_line {
	uint64_t rate;			/* bits a second; 0: no limit */
	bool in;			/* the limit stands before the receiver and drops */
	bool far;			/* so does all else: the sender knows nothing of a line */
	uint64_t delay, jitter;		/* ns */
	uint32_t loss, reorder, duplicate, corrupt, ecn;
	uint64_t reorder_by;
};

enum sim_event_kind { SIM_EV_BURST, SIM_EV_PAUSE, SIM_EV_LINK, SIM_EV_KILL };
enum sim_kill { SIM_KILL_RESET, SIM_KILL_ERR, SIM_KILL_DESTROY, SIM_KILL_MR };

struct sim_event {
	enum sim_event_kind kind;
	uint64_t at, length;		/* ns since the world began */
	unsigned int rounds;		/* PAUSE: of work until it comes, 0: when there is no work */
	unsigned int node;
	unsigned int qp;		/* KILL */
	enum sim_kill kill;
	bool begun, over;
};

/* Memory of a node that the device may write. */
struct sim_region {
	uint32_t offset, len;
	uint32_t content;		/* the bytes that belong there, in the pattern */
	enum { SIM_PARTIAL, SIM_WHOLE, SIM_ANY } expect;
};

struct sim_msg {
	uint8_t opcode, flags;		/* SKUA_WQE_* */
	uint32_t len;
	uint32_t content;		/* its bytes, in the pattern */
	int source;			/* region to send or read from; -1: the pattern */
	int target;			/* region to write to: the peer's (WRITE) or ours; -1: none */
	int receive;			/* the peer's receive that it takes; -1: none */
	bool shared;			/* an atomic on the word that all QPs use */
	uint64_t swap_add, compare, old;	/* atomics; old: the value to be fetched */
	uint64_t swap_add_mask, compare_mask;	/* masked atomics */
	uint64_t new;			/* the word that the messages of a side change, after it */
	uint32_t imm;
	uint64_t posted_at;
};

static inline bool sim_is_atomic(uint8_t opcode)
{
	return opcode == SKUA_WQE_CMP_SWAP || opcode == SKUA_WQE_FETCH_ADD ||
	       opcode == SKUA_WQE_MASKED_CMP_SWAP || opcode == SKUA_WQE_MASKED_FETCH_ADD;
}

#define SIM_RUNS	16		/* in flight, of those that are looked at */
struct sim_run {
	uint32_t psn, npkts;
	uint64_t order, sent_at;
	bool was_lost;
};

/* A requester at the last look (sim_rules.c). Times are those of the engine's clock. */
struct sim_seen {
	uint64_t at;			/* 0: there was no look yet */
	struct roce_req req;		/* all of it: did anything change? */
	uint64_t quiet_since;		/* since then nothing was sent, and there was no progress */
	uint32_t una_psn, sent_psn;
	uint64_t next_order;		/* the send order of the next packet */
	uint8_t reordered, persist;	/* n of the reordering window, and recoveries until it is forgotten */
	uint64_t grew_order;		/* n grew when this was the next send order, or later */
	uint64_t rtt, rttvar, min_rtt;
	uint64_t naks;			/* NAKs and retries of the device */
	unsigned int nruns;
	struct sim_run run[SIM_RUNS];
	uint8_t probes, pto_count, retries;
	uint64_t retry_order;		/* the next send order, before the last retry */
	bool rnr;
	uint64_t rnr_until;		/* of the last RNR NAK, and what was then: */
	uint32_t rnr_una_psn;
	uint8_t rnr_retries;
	bool rnr_over;			/* and the wait has ended, perhaps */
	uint32_t window, window_before, ssthresh, flight, gaps;	/* packets */
	uint64_t recovery_order;
	uint64_t lost_at;
	uint64_t probe_order;
	enum sent_state first;		/* of the oldest packet; SENT_STATES: there was none */
	uint32_t first_psn, first_npkts;
	bool first_again;		/* it was retransmitted */
	uint64_t first_order;
	unsigned int resumed;
};

/* One end of a QP: side s is on node s. */
struct sim_side {
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
	uint16_t max_rd, max_dest_rd;
	uint32_t psn;			/* the first that it sends */
	unsigned int depth, recv_depth;
	uint64_t start, think, late;	/* ns; late: a receive is posted so long after the last */
	unsigned int nmsgs;
	struct sim_msg *msg;
	bool fast;			/* each message has its memory registered for it, and no longer */
	unsigned int page_faults;	/* of its QP, as requester and as responder, while it runs */
	unsigned int resumed;		/* those of the requester that are over */
	bool srq;			/* it takes its receives from the SRQ of its node */

	/* Which ends of a QP are no fault. */
	bool may_give_up;		/* RETRY_EXC: attributes and lines make it possible */
	bool may_starve;		/* RNR_RETRY_EXC, likewise */
	bool may_hang;			/* no timeout, and packets are lost */
	double try_fails;		/* chance that a packet or its answer is lost */

	/* Receives: the peer's message and the region of each. */
	unsigned int nrecvs;
	struct { int msg, region; } recv[SIM_MSGS];

	/* While it runs. */
	struct queues q;
	struct skua_qp *qp;		/* NULL: destroyed */
	uint32_t fast_key;		/* of the last registration */
	uint64_t fast_lists;		/* an entry for each message */
	unsigned int posted, completed;	/* messages; unsignaled ones complete with the next */
	unsigned int recvs_posted, recvs_done;
	uint64_t next_post, next_recv;
	uint64_t last_progress;
	struct sim_seen seen;
	unsigned int sends_done;	/* receives that the peer has completed for our completions */
	bool stopped;			/* put to ERR by the host: nothing more is posted */
	bool failed;			/* a completion had an error: flushed from here on */
	bool recv_failed;		/* likewise of the receives */
	bool gone;			/* reset or destroyed */
};

struct sim_qp {
	uint8_t type;			/* SKUA_QPT_RC, also of XRC, or UC */
	bool xrc;			/* the target takes entries of its node's SRQ, the other end is the initiator: */
	unsigned int target;		/* side */
	uint8_t path_mtu;		/* 1 to 5 */
	bool on;
	bool disturbed;			/* one of its ends has failed, or is gone */
	struct sim_side side[2];
};

/*
 * Entries that the sides of a node share. Whichever takes one, it has a region of its own, with room for any SEND. A
 * side has one taken entry at most, and @depth is more than there are sides: so one that its peer has left does not
 * stop the others.
 */
#define SIM_SRQ_SIDES	32
#define SIM_SRQ_HANDLE	0x5125125125ull
#define SIM_SRQ_MOST	16384u		/* bytes of a SEND to one of them */
struct sim_srq {
	unsigned int sides;		/* that use it; 0: there is none */
	bool xrc;			/* it belongs to an XRC domain, and its users are targets */
	unsigned int nentries;
	unsigned int depth;		/* posted, and not known to be taken */
	int *region;			/* of each entry */

	/* While it runs. */
	uint32_t srqn, xrcdn;
	struct queues q;
	bool *done;			/* each entry has one CQE */
	unsigned int posted, num_done;	/* entries; so many slots are free again, whichever completed (SRQ-5) */
};

/*
 * Both MRs of the node are on demand. The host serves one page fault after the other. While it has taken away a page of
 * the arena, other bytes stand there, which the device may neither send nor change.
 */
struct sim_odp {
	bool on;
	uint64_t takes;			/* ns: for a page fault */
	unsigned int most;		/* pages that it brings at once */
	bool frees_early;		/* an entry of the EQ is free before its page is there */
	unsigned int refused;		/* the number of a page fault that it refuses; 0: none */
	unsigned int evictions;		/* times that it takes pages away */
	uint64_t evicts_every;		/* ns */
	uint64_t random;		/* what is evicted, and what is read-only at first */

	/* While it runs. */
	struct fault_queue q;
	struct skua_fault_eqe fault;	/* that it serves */
	uint64_t until;			/* the end of that; 0: it serves none */
	uint64_t next_eviction;
	unsigned int faults, evicted;
};

struct sim_node {
	struct sim_srq srq;
	struct sim_odp odp;
	uint32_t used;			/* bytes of its arena */
	uint32_t nregions, cap;
	struct sim_region *region;
	int word[SIM_QPS];		/* regions: of the peer's atomics */
	int shared_word;
	uint64_t shared_done;		/* atomics on it that succeeded */
	uint32_t src_key, dst_key;
	bool deregistered;		/* dst_key */
	uint64_t pages_before;
};

struct sim_failure {
	char kind[40];			/* "": none */
	char text[400];
	uint64_t at;			/* ns since the world began */
};

/* What losses cost (sim_cost.c). */
enum sim_cost_kind {
	SIM_COST_NONE, SIM_COST_REPEAT, SIM_COST_GO_BACK, SIM_COST_LATE, SIM_COST_LATE_GO_BACK, SIM_COST_KINDS,
};
struct sim_cost {
	enum sim_cost_kind kind;	/* SIM_COST_NONE: other things cost more, or nothing was lost */
	double probes, again, time;
};

struct sim_result {
	struct sim_failure failure;
	struct sim_cost cost;
};

struct sim {
	uint64_t seed;
	struct sim_off off;
	bool verbose;

	unsigned int nqps;
	struct sim_qp qp[SIM_QPS];
	struct sim_line line[2];	/* [i]: what node i sends */
	bool go_back_n[2];
	unsigned int nevents;
	struct sim_event event[SIM_EVENTS];
	uint64_t bytes;			/* budget of payload */
	bool bulk;			/* few QPs, long messages */

	/* Reckoned from the above, for bounds. */
	uint64_t rtt;			/* ns: the longest without loss, with turns of all QPs */
	uint64_t turns;			/* ns of that: all QPs send one packet on either line */
	uint64_t outage;		/* ns: all bursts, pauses and times without a link */
	bool crowded;			/* a queue too short for a packet of each QP */
	bool lossy;
	bool tight;			/* a timeout shorter than round trips allow */
	bool calm;			/* nothing but rate, delay and little loss */

	/* While it runs. */
	struct world *w;
	struct sim_node node[2];
	uint64_t epoch;			/* of the clock, when the world began */
	uint64_t needed;		/* packets that the work posted so far needs */
	uint64_t probes;
	unsigned int suspects;		/* sim_rules.c */
	unsigned int impaired;		/* times that impairments were set */
	unsigned int base_timers;
	uint64_t pause;			/* ns: it comes after so many more rounds of work: */
	unsigned int rounds;
	bool paused;			/* just now: timers fire before the next round of work is done */
	uint64_t resumed_at;		/* on the engine's clock: the last pause in the midst of work was over */
	uint64_t done_at;		/* when all work was done */
	struct sim_failure failure;
	struct sim_cost cost;
};

/* sim_draw.c */
uint64_t sim_random(uint64_t *state);
void sim_draw(struct sim *s, uint64_t seed, struct sim_off off);
void sim_free(struct sim *s);
static inline bool sim_is_off(const struct sim *s, enum sim_part part)
{
	return s->off.parts >> part & 1;
}
static inline uint32_t sim_pmtu(const struct sim_qp *qp)
{
	return 128u << qp->path_mtu;
}
static inline uint64_t sim_timeout(const struct sim_side *side)
{
	return side->timeout ? 4096ull << side->timeout : 0;
}
uint64_t sim_rnr_ns(uint8_t code);
static inline bool sim_is_initiator(const struct sim_qp *qp, unsigned int side)
{
	return qp->xrc && side != qp->target;
}
/* Of RC, and of an XRC initiator. */
static inline bool sim_has_requester(const struct skua_qp *qp)
{
	return qp->type == SKUA_QPT_RC || qp->type == SKUA_QPT_XRC_INI;
}

/* sim_words.c */
const char *sim_part_name(enum sim_part part);
bool sim_off_parse(struct sim_off *off, const char *text);	/* names with commas between */
void sim_off_print(FILE *out, struct sim_off off);
void sim_describe(FILE *out, const struct sim *s);

/* sim_host.c */
#define SIM_PATTERN	(4u << 20)
#define SIM_ARENA	(16u << 20)
#define SIM_SRC_IOVA	0xa00000000ull
#define SIM_DST_IOVA	0xb00000000ull
const uint8_t *sim_pattern(void);
uint8_t *sim_arena(unsigned int node);
#define SIM_GUARD_BYTE	0xee
void sim_build(struct sim *s);			/* devices and QPs */
bool sim_post(struct sim *s);			/* whatever is due. True if anything was posted */
uint64_t sim_next_post(const struct sim *s);	/* when something will be; TIMER_NEVER */
void sim_kill(struct sim *s, const struct sim_event *e);
void sim_teardown(struct sim *s);		/* destroys all QPs */
static inline uint64_t sim_now(const struct sim *s)
{
	return engine_now(s->w->engines[0]) - s->epoch;
}

/* sim_odp.c: of nodes whose memory is on demand, else these do nothing */
void sim_odp_create(struct sim *s, unsigned int node);
bool sim_odp_run(struct sim *s);		/* whatever is due. True if anything was done */
uint64_t sim_odp_next(const struct sim *s);	/* when something will be; TIMER_NEVER */
/* The host uses bytes of the arena: their pages have to be there, though not for the device. */
void sim_odp_touch(struct sim *s, unsigned int node, uint32_t offset, uint32_t len);
void sim_odp_destroy(struct sim *s);		/* all pages go */

/* sim_done.c */
bool sim_poll(struct sim *s);			/* takes all completions. True if there were any */
void sim_check_memory(struct sim *s);		/* at the end: targets, guards, atomic words */

/* sim_check.c */
__attribute__((format(printf, 3, 4)))
void sim_fail(struct sim *s, const char *kind, const char *fmt, ...);
static inline bool sim_failed(const struct sim *s)
{
	return s->failure.kind[0];
}
void sim_reckon(struct sim *s);			/* bounds, before it runs */
void sim_check_devices(struct sim *s);		/* whenever there is nothing to do but wait */
/* A completion that came @waited ns after the one before it, or after it was posted. */
void sim_check_fair(struct sim *s, unsigned int qp, unsigned int side, uint64_t waited,
		    uint64_t bytes, unsigned int msgs);
bool sim_all_done(const struct sim *s);
void sim_check_amplified(struct sim *s);
bool sim_only_hangers(const struct sim *s);	/* what is left may hang */
void sim_check_totals(struct sim *s);		/* all done: packets, bytes held */
void sim_check_left(struct sim *s);		/* after the teardown */

/* sim_rules.c */
void sim_check_rules(struct sim *s, unsigned int qp, unsigned int side);

/* sim_cost.c */
void sim_check_cost(struct sim *s);		/* all done */
void sim_add_cost(const struct sim_cost *cost);	/* to the mean of all worlds */
/* False: the worlds so far, enough of them, cost too much. Says how much. */
bool sim_costs_little(FILE *out, uint64_t worlds);

/* sim_run.c: one world to its end. @pcap: a file to write, or NULL. */
void sim_run(struct sim *s, const char *pcap);

/* sim_shrink.c */
struct sim_off sim_shrink(uint64_t seed, struct sim_off off, const char *kind);
/* One world, in memory of its own. */
struct sim_result sim_world(uint64_t seed, struct sim_off off, const char *pcap, FILE *words);

#endif /* SKUAD_HARNESS_SIM_H */
