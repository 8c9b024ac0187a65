// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Number tables. The table grows with what is in it, so a limit of a hundred thousand
 * costs nothing until it is used; random numbers need no hash. When it has grown, what was in it moves to the larger
 * table bit by bit, with each object that is added.
 */
#include "core/numtab.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#define FIRST_SIZE	64
#define MOVE_SLOTS	64		/* with each addition; two would do */
#define MOVED		UINT32_MAX	/* in place of a number, so that those behind it are found */
#define SLOT_COST	8
#define WALK_COST	256
#define WALK_FAR	65536

int numtab_init(struct numtab *t, uint32_t max, bool opaque)
{
	*t = (struct numtab){ .mask = FIRST_SIZE - 1, .max = max, .opaque = opaque, .next = 1 };
	t->slots = calloc(FIRST_SIZE, sizeof(*t->slots));
	return t->slots ? 0 : -ENOMEM;
}

void numtab_free(struct numtab *t)
{
	free(t->slots);
	free(t->old);
	t->slots = NULL;
	t->old = NULL;
}

static struct numtab_slot *find_in(struct numtab_slot *slots, uint32_t mask, uint32_t number)
{
	for (uint32_t i = number & mask; slots[i].number; i = (i + 1) & mask)
		if (slots[i].number == number)
			return &slots[i];
	return NULL;
}

static struct numtab_slot *find(const struct numtab *t, uint32_t number)
{
	struct numtab_slot *slot = find_in(t->slots, t->mask, number);

	return slot || !t->old ? slot : find_in(t->old, t->old_mask, number);
}

void *numtab_get_old(const struct numtab *t, uint32_t number)
{
	struct numtab_slot *slot = find_in(t->old, t->old_mask, number);

	return slot ? slot->object : NULL;
}

static void insert(struct numtab *t, uint32_t number, void *object)
{
	uint32_t i = number & t->mask;

	while (t->slots[i].number)
		i = (i + 1) & t->mask;
	t->slots[i] = (struct numtab_slot){ number, object };
}

static void move_some(struct numtab *t)
{
	for (int n = 0; t->old && n < MOVE_SLOTS; n++) {
		struct numtab_slot *slot = &t->old[t->moved++];

		if (slot->number && slot->number != MOVED)
			insert(t, slot->number, slot->object);
		*slot = (struct numtab_slot){ slot->number ? MOVED : 0, NULL };
		if (t->moved <= t->old_mask)
			continue;
		free(t->old);
		t->old = NULL;
		t->moved = 0;
	}
}

/* The last time is long over: it takes many additions to fill a table. */
static bool grow(struct numtab *t)
{
	uint32_t n = t->mask + 1;
	struct numtab_slot *slots = calloc(2 * (size_t)n, sizeof(*slots));

	if (!slots)
		return false;
	t->old = t->slots;
	t->old_mask = t->mask;
	t->slots = slots;
	t->mask = 2 * n - 1;
	return true;
}

static uint32_t draw(struct numtab *t)
{
	uint32_t number;

	if (!t->opaque) {
		t->next = t->next < NUMTAB_MASK ? t->next + 1 : 2;
		return t->next;
	}
	/* Never fails for so few bytes once the kernel's pool is up. */
	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		abort();
	return number & NUMTAB_MASK;
}

static bool has_room(struct numtab *t)
{
	return t->count < t->max && (t->used < (t->mask + 1) / 2 || grow(t));
}

uint32_t numtab_add(struct numtab *t, void *object)
{
	uint32_t number;

	move_some(t);
	if (!has_room(t))
		return 0;
	do
		number = draw(t);
	while (number <= 1 || number == NUMTAB_MASK || find(t, number));
	insert(t, number, object);
	t->used++;
	t->count++;
	return number;
}

uint32_t numtab_add_one(struct numtab *t, void *object)
{
	move_some(t);
	if (find(t, 1) || !has_room(t))
		return 0;
	insert(t, 1, object);
	t->used++;
	t->count++;
	return 1;
}

/* Take the slot out and move up those behind it that would not be found any more. */
static void erase(struct numtab *t, struct numtab_slot *slot)
{
	uint32_t hole = (uint32_t)(slot - t->slots);

	t->used--;
	if (t->old && slot >= t->old && slot <= t->old + t->old_mask) {
		*slot = (struct numtab_slot){ MOVED, NULL };
		return;
	}
	for (uint32_t i = (hole + 1) & t->mask; t->slots[i].number; i = (i + 1) & t->mask) {
		uint32_t home = t->slots[i].number & t->mask;

		if (((i - home) & t->mask) >= ((i - hole) & t->mask)) {
			t->slots[hole] = t->slots[i];
			hole = i;
		}
	}
	t->slots[hole] = (struct numtab_slot){ 0 };
}

void numtab_del(struct numtab *t, uint32_t number)
{
	struct numtab_slot *slot = find(t, number);
	uint32_t *rest;

	t->count--;
	if (number == 1) {
		erase(t, slot);
		return;
	}
	slot->object = NULL;
	rest = &t->rest[t->nrest++ % NUMTAB_REST];
	if (*rest)
		erase(t, find(t, *rest));
	*rest = number;
}

/* NULL: there are not so many. */
static const struct numtab_slot *slot_at(const struct numtab *t, uint32_t i)
{
	if (i <= t->mask)
		return &t->slots[i];
	return i < numtab_slots(t) ? &t->old[i - t->mask - 1] : NULL;
}

void *numtab_next(const struct numtab *t, uint32_t *i)
{
	const struct numtab_slot *slot;

	while ((slot = slot_at(t, *i))) {
		(*i)++;
		if (slot->object)
			return slot->object;
	}
	return NULL;
}

/*
 * A deletion moves up objects that are not where they belong, as far as the next empty slot: a step ends before one,
 * if there is one nearby.
 */
void *numtab_walk(const struct numtab *t, uint32_t *i, int32_t *budget)
{
	const struct numtab_slot *slot;

	while ((slot = slot_at(t, *i))) {
		if (*budget <= 0 && (!slot->number || *budget <= -WALK_FAR))
			return NULL;
		(*i)++;
		*budget -= slot->object ? WALK_COST : SLOT_COST;
		if (slot->object)
			return slot->object;
	}
	return NULL;
}

void *numtab_any(struct numtab *t, int32_t *budget)
{
	void *object = NULL;

	for (; t->count && !object && *budget > 0; *budget -= SLOT_COST)
		object = slot_at(t, t->cursor++ % numtab_slots(t))->object;
	return object;
}
