/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Timers of an engine: a heap by deadline. All on the engine's thread.
 */
#ifndef SKUAD_BASE_TIMER_H
#define SKUAD_BASE_TIMER_H

#include <stdbool.h>
#include <stdint.h>

#define TIMER_NEVER	UINT64_MAX

struct timer {
	uint64_t deadline;		/* ns; valid while set */
	unsigned int pos;		/* in the heap, from 1; 0: not set */
	void (*fire)(struct timer *timer);
};

struct timers {
	struct timer **heap;		/* heap[0] is not used */
	unsigned int n, cap;
};

void timers_free(struct timers *t);

/* Set @timer to fire once at @deadline, or move it there. */
void timer_set(struct timers *t, struct timer *timer, uint64_t deadline);
void timer_cancel(struct timers *t, struct timer *timer);

/*
 * Fire some of what is due at @now, in order, as long as *@budget lasts, which they may take from; a timer may set
 * itself again. True if any fired: there may be more.
 */
bool timers_run(struct timers *t, uint64_t now, const int32_t *budget);

/* The earliest deadline, or TIMER_NEVER. */
static inline uint64_t timers_next(const struct timers *t)
{
	return t->n ? t->heap[1]->deadline : TIMER_NEVER;
}

#endif /* SKUAD_BASE_TIMER_H */
