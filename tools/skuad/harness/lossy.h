/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Links that lose packets, on a clock that goes from event to event; for test_recovery.c and
 * bench_goodput.c.
 */
#ifndef SKUAD_HARNESS_LOSSY_H
#define SKUAD_HARNESS_LOSSY_H

#include "harness/harness.h"

#define GOODPUT_SIZE	65536u

/* Rules for a node's port, one a string up to NULL. */
void impair(struct node *n, const char *const *rules);
#define IMPAIR(n, ...)	impair(n, (const char *const[]){ __VA_ARGS__, NULL })

/* Work, then the clock to the next timer. */
void next_event(struct world *w);

/*
 * A WRITE of GOODPUT_SIZE after the other, @total bytes, over 5 Gb/s and 5 us of delay each way
 * that lose @loss percent, by chance from @seed: bytes a second. @path_mtu: as in
 * struct skua_qp_attr. @go_back_n: the receiver knows nothing else.
 */
double goodput(uint64_t total, uint8_t path_mtu, const char *loss, unsigned int seed,
	       bool go_back_n);

#endif /* SKUAD_HARNESS_LOSSY_H */
