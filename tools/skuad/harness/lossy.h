/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Links that lose packets, or are slow, on a clock that goes from event to event; for
 * tests of loss, congestion and goodput, and bench_goodput.c.
 */
#ifndef SKUAD_HARNESS_LOSSY_H
#define SKUAD_HARNESS_LOSSY_H

#include "harness/harness.h"

#define GOODPUT_SIZE	65536u

/* Rules for a node's port, one a string up to NULL. */
void impair(struct node *n, const char *const *rules);
#define IMPAIR(n, ...)	impair(n, (const char *const[]){ __VA_ARGS__, NULL })

/* The QPs of a new world have another. @path_mtu: as in struct skua_qp_attr. */
void use_path_mtu(struct world *w, uint8_t path_mtu);
/* Both nodes use QPs of UC from now on. */
void both_uc(struct world *w);

/* The next CQE, in however much time, and a success. */
struct skua_cqe *await_success(struct world *w, struct node *n);

/* Work, then the clock to the next timer, and what there is to do then. */
void next_event(struct world *w);

/* QPs of one node, each towards one of the other, that send the same as fast as they can. */
#define LOAD_QPS	32
struct load {
	unsigned int qps;		/* that there are */
	uint8_t opcode;			/* SKUA_WQE_WRITE or SKUA_WQE_READ */
	uint32_t len;			/* of a message */
	uint8_t timeout, retry_cnt;
	void (*turn)(struct world *w);	/* lets time pass */
	uint64_t done[LOAD_QPS];	/* messages; all have to succeed */
	uint64_t posted[LOAD_QPS];
	struct queues q[LOAD_QPS];
};

/* Its QPs. What says nothing of turn or timeout means next_event(), 14 and 7. */
void load_create(struct world *w, struct load *l);
/* The first @active of its QPs send, for so long. */
void load_run(struct world *w, struct load *l, unsigned int active, uint64_t ns);
/* How evenly they have shared since they had done @before: Jain's index. */
double load_fairness(const struct load *l, const uint64_t *before);

/*
 * A stream: messages of one kind and one length from the first node of a world, as many outstanding as
 * @depth says. Their data flow from stream_sender() to stream_receiver(), which differ for a READ.
 */
struct stream {
	uint8_t opcode;			/* SKUA_WQE_SEND, SKUA_WQE_WRITE or SKUA_WQE_READ */
	uint8_t path_mtu;		/* as in struct skua_qp_attr */
	bool go_back_n;			/* the receiver of the data does not offer selective repeat */
	uint32_t len;			/* bytes of a message */
	unsigned int depth;		/* messages outstanding; up to STREAM_DEPTH */
	struct world *w;
	uint64_t posted, done;		/* messages */
	uint64_t received;		/* SEND: receives that completed */
	uint64_t receives;		/* SEND: receives posted */
	unsigned int idle;		/* steps in a row that moved neither the clock nor a message */
	bool failed;			/* a message failed, or no timer is armed and nothing moves */
};
#define STREAM_DEPTH	64

/* A world with the QPs that the stream needs: READs outstanding as @depth says. */
void stream_create(struct stream *s);
void stream_destroy(struct stream *s);
struct node *stream_sender(const struct stream *s);
struct node *stream_receiver(const struct stream *s);
/* Post what @depth allows, but no more than @count messages in all, and go on to the next event. */
void stream_step(struct stream *s, uint64_t count);

/*
 * Goodput of a stream of @total bytes over 5 Gb/s and 5 us of delay each way, in bytes a second. Each
 * direction loses @loss percent of its packets, after they have passed the line, by chance from @seed.
 */
struct goodput {
	uint8_t opcode;
	uint8_t path_mtu;
	bool go_back_n;
	uint32_t len;			/* 0: GOODPUT_SIZE */
	const char *loss;
	unsigned int seed;
	uint64_t total;
	unsigned int pause;		/* all stands still for PAUSE_NS after so many steps, again and again; 0: never */
};
#define PAUSE_NS	5000000ull
double goodput(const struct goodput *g);	/* 0: a message failed, or nothing moved any more */

/*
 * A stream over 5 Gb/s and 100 us of delay each way. With the queue of the sender's port, of 100 us, a
 * round trip takes LONG_ROUND_TRIP. The messages of these tests have LONG_SIZE bytes.
 */
#define LONG_ROUND_TRIP	300000ull	/* ns */
#define LONG_SIZE	16384u

/*
 * The stream is steady; then @packets data packets in a row are lost, once. Returns the time from the last of
 * them until the stream has 90 percent of its rate again and keeps it, in round trips; negative: it never has.
 */
double burst_recovery(const struct goodput *g, unsigned int packets);

/*
 * Of the data packets, @percent percent arrive a round trip late, and none is lost. Returns the rate as a share
 * of the rate without; 0: the stream failed. @twice: data packets sent beyond those needed, as a share of these.
 */
double reordered_share(const struct goodput *g, const char *percent, double *twice);

#endif /* SKUAD_HARNESS_LOSSY_H */
