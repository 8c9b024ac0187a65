/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Verified traffic: messages of all kinds between the QPs of a world, outstanding in both directions at once.
 * Each must complete with success and exactly once, and every byte is compared. For test_recovery.c and
 * test_neighbour.c.
 */
#ifndef SKUAD_HARNESS_VERIFY_H
#define SKUAD_HARNESS_VERIFY_H

#include "harness/harness.h"

struct verify {
	struct world *w;
	const char *name;		/* of the run; a failure prints it */
	/* Lets time pass while messages are outstanding. NULL: next_event(), or the engines' threads do. */
	void (*turn)(struct verify *v);
	void *arg;			/* the caller's own */
};

/* The memory regions and QPs of the world allow atomics from now on. */
void verify_begin(struct verify *v);

/*
 * One message of each kind in each direction, in an order that depends on @round; rounds count from 0.
 * Returns the bytes of payload when all have completed and were compared.
 */
uint64_t verify_round(struct verify *v, uint64_t round);

#endif /* SKUAD_HARNESS_VERIFY_H */
