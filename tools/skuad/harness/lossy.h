/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Links that lose packets, or are slow, on a clock that goes from event to event; for
 * test_recovery.c, test_slow.c, test_congestion.c and bench_goodput.c.
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

/* Work, then the clock to the next timer. */
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
 * A WRITE of GOODPUT_SIZE after the other, @total bytes, over 5 Gb/s and 5 us of delay each way
 * that lose @loss percent, by chance from @seed: bytes a second. @path_mtu: as in
 * struct skua_qp_attr. @go_back_n: the receiver knows nothing else.
 */
double goodput(uint64_t total, uint8_t path_mtu, const char *loss, unsigned int seed,
	       bool go_back_n);

#endif /* SKUAD_HARNESS_LOSSY_H */
