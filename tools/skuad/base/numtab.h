/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Numbers of objects: 24-bit numbers, each naming one object of a kind.
 *
 * Opaque numbers are drawn at random, so that a peer or a program cannot guess them
 * (manual: trust); plain ones go up, as long as they can. A number that was freed rests before it comes again.
 */
#ifndef SKUAD_BASE_NUMTAB_H
#define SKUAD_BASE_NUMTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NUMTAB_REST	1024	/* numbers that were freed and are not given out yet */
#define NUMTAB_MASK	0xffffffu

struct numtab_slot {
	uint32_t number;	/* 0: free; its object may be NULL: it rests */
	void *object;
};

struct numtab {
	struct numtab_slot *slots;	/* by the numbers' low bits, which differ */
	uint32_t mask;
	struct numtab_slot *old;	/* after the table has grown: the one before, until all has moved; else NULL */
	uint32_t old_mask, moved;	/* slots of it that are not looked at any more */
	uint32_t used;			/* slots with a number, resting ones too */
	uint32_t count, max;		/* objects */
	uint32_t next;			/* plain: the next number to try */
	bool opaque;
	uint32_t rest[NUMTAB_REST];
	uint32_t nrest;			/* freed so far, runs free */
	uint32_t cursor;		/* where numtab_any() goes on */
};

/* At most @max objects. 0 or -ENOMEM. */
int numtab_init(struct numtab *t, uint32_t max, bool opaque);
void numtab_free(struct numtab *t);

static inline bool numtab_full(const struct numtab *t)
{
	return t->count >= t->max;
}

/* A number for @object, which is not NULL; above 1, below NUMTAB_MASK. 0 if there is no room. */
uint32_t numtab_add(struct numtab *t, void *object);
/* The number 1, which never rests. 0 if it is taken, too. */
uint32_t numtab_add_one(struct numtab *t, void *object);
void numtab_del(struct numtab *t, uint32_t number);

/* Some object: to take a table down, in time linear in its size. NULL: there is none, or the @budget is used up by
 * looks at slots. */
void *numtab_any(struct numtab *t, int32_t *budget);

/* What numtab_get() does not find where it looks first. */
void *numtab_get_old(const struct numtab *t, uint32_t number);

static inline void *numtab_get(const struct numtab *t, uint32_t number)
{
	const struct numtab_slot *slot = &t->slots[number & t->mask];

	if (slot->number == number)
		return slot->object;
	return t->old ? numtab_get_old(t, number) : NULL;
}

/* Places of a table, which numbers have by their low bits; more when it has grown. */
static inline uint32_t numtab_slots(const struct numtab *t)
{
	return t->mask + 1;
}

/* for (uint32_t i = 0; (obj = numtab_next(t, &i)); ) visits each object. */
void *numtab_next(const struct numtab *t, uint32_t *i);

/* The same in steps, each of which ends when its @budget is used up. Between them objects may come and go; one that
 * stays is visited once, unless numtab_slots() changes. */
void *numtab_walk(const struct numtab *t, uint32_t *i, int32_t *budget);

#endif /* SKUAD_BASE_NUMTAB_H */
