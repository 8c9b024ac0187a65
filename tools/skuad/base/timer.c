// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "base/timer.h"

#include <stdlib.h>

#define AT_ONCE	64

void timers_free(struct timers *t)
{
	free(t->heap);
	*t = (struct timers){ 0 };
}

static void put(struct timers *t, unsigned int pos, struct timer *timer)
{
	t->heap[pos] = timer;
	timer->pos = pos;
}

static void sift_up(struct timers *t, unsigned int pos, struct timer *timer)
{
	for (; pos > 1 && t->heap[pos / 2]->deadline > timer->deadline; pos /= 2)
		put(t, pos, t->heap[pos / 2]);
	put(t, pos, timer);
}

static void sift_down(struct timers *t, unsigned int pos, struct timer *timer)
{
	for (;;) {
		unsigned int child = 2 * pos;

		if (child < t->n && t->heap[child + 1]->deadline < t->heap[child]->deadline)
			child++;
		if (child > t->n || t->heap[child]->deadline >= timer->deadline)
			break;
		put(t, pos, t->heap[child]);
		pos = child;
	}
	put(t, pos, timer);
}

static void settle(struct timers *t, unsigned int pos, struct timer *timer)
{
	if (pos > 1 && t->heap[pos / 2]->deadline > timer->deadline)
		sift_up(t, pos, timer);
	else
		sift_down(t, pos, timer);
}

void timer_set(struct timers *t, struct timer *timer, uint64_t deadline)
{
	timer->deadline = deadline;
	if (timer->pos) {
		settle(t, timer->pos, timer);
		return;
	}
	if (t->n + 1 >= t->cap) {
		unsigned int cap = t->cap ? 2 * t->cap : 64;
		struct timer **heap = realloc(t->heap, cap * sizeof(*heap));

		/* Without timers nothing is reliable any more. */
		if (!heap)
			abort();
		t->heap = heap;
		t->cap = cap;
	}
	sift_up(t, ++t->n, timer);
}

void timer_cancel(struct timers *t, struct timer *timer)
{
	unsigned int pos = timer->pos;
	struct timer *last;

	if (!pos)
		return;
	timer->pos = 0;
	last = t->heap[t->n--];
	if (last != timer)
		settle(t, pos, last);
}

bool timers_run(struct timers *t, uint64_t now, const int32_t *budget)
{
	unsigned int n = 0;

	for (; n < AT_ONCE && *budget > 0 && t->n && t->heap[1]->deadline <= now; n++) {
		struct timer *timer = t->heap[1];

		timer_cancel(t, timer);
		timer->fire(timer);
	}
	return n > 0;
}
