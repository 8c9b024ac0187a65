// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Number tables. The table grows with what is in it, so a limit of a hundred thousand costs nothing until it is used.
 * When it has grown, what was in it moves to the larger table bit by bit, with each object that is added.
 *
 * The low bits of a number are its place. Two numbers never have the same one, because we choose the numbers: one whose
 * place is taken is not given out. At most half of a table is used, so one of two draws finds a place. Numbers that
 * have different places in a table have different ones in all larger tables, too.
 */
#include "base/numtab.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#define FIRST_SIZE	64
#define MOVE_SLOTS	64		/* with each addition; two would do */
#define DROP_SLOTS	4096u		/* that have moved: 64 KiB, 13 to 40 us */
#define SLOT_COST	8
#define WALK_COST	256

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

/* Where a number is, or would be; the table before it has grown comes first, as long as it is there. */
static struct numtab_slot *old_place(const struct numtab *t, uint32_t number)
{
	uint32_t i = number & t->old_mask;

	return t->old && i >= t->moved ? &t->old[i] : NULL;
}

static struct numtab_slot *place(const struct numtab *t, uint32_t number)
{
	return &t->slots[number & t->mask];
}

static struct numtab_slot *find(const struct numtab *t, uint32_t number)
{
	struct numtab_slot *slot = old_place(t, number);

	return slot && slot->number == number ? slot : place(t, number);
}

void *numtab_get_old(const struct numtab *t, uint32_t number)
{
	const struct numtab_slot *slot = old_place(t, number);

	return slot && slot->number == number ? slot->object : NULL;
}

/* Give back the memory of the slots that moved last: with all at once, that of a large table takes milliseconds. */
static void drop_moved(const struct numtab *t)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = (uintptr_t)&t->old[t->moved - DROP_SLOTS], to = (uintptr_t)&t->old[t->moved];

	if (t->moved == DROP_SLOTS)
		from += page - 1;
	from &= -page;
	to &= -page;
	madvise((void *)from, to - from, MADV_DONTNEED);
}

static void move_some(struct numtab *t)
{
	for (int n = 0; t->old && n < MOVE_SLOTS; n++) {
		struct numtab_slot *slot = &t->old[t->moved++];

		if (slot->number)
			*place(t, slot->number) = *slot;
		*slot = (struct numtab_slot){ 0 };
		if (t->moved % DROP_SLOTS == 0)
			drop_moved(t);
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

/* In a table of some size. That place is kept for number 1. */
static bool has_place_of_one(uint32_t number)
{
	return number % FIRST_SIZE == 1;
}

/* Plain numbers go up; where the next one's place is taken, they go on from another. */
static uint32_t draw(struct numtab *t, bool again)
{
	uint32_t number;

	if (!t->opaque && !again) {
		t->next = (t->next + 1) & NUMTAB_MASK;
		t->next += has_place_of_one(t->next);
		return t->next;
	}
	/* Never fails for so few bytes once the kernel's pool is up. */
	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		abort();
	t->next = number & NUMTAB_MASK;
	return t->next;
}

static bool is_free(const struct numtab *t, uint32_t number)
{
	const struct numtab_slot *old = old_place(t, number);

	return number && number != NUMTAB_MASK && !has_place_of_one(number) && !place(t, number)->number &&
	       (!old || !old->number);
}

static bool has_room(struct numtab *t)
{
	return t->count < t->max && (t->used < (t->mask + 1) / 2 || grow(t));
}

static uint32_t add(struct numtab *t, uint32_t number, void *object)
{
	*place(t, number) = (struct numtab_slot){ number, object };
	t->used++;
	t->count++;
	return number;
}

uint32_t numtab_add(struct numtab *t, void *object)
{
	uint32_t number;

	move_some(t);
	if (!has_room(t))
		return 0;
	for (number = draw(t, false); !is_free(t, number);)
		number = draw(t, true);
	return add(t, number, object);
}

uint32_t numtab_add_one(struct numtab *t, void *object)
{
	move_some(t);
	return find(t, 1)->number || !has_room(t) ? 0 : add(t, 1, object);
}

static void erase(struct numtab *t, uint32_t number)
{
	*find(t, number) = (struct numtab_slot){ 0 };
	t->used--;
}

void numtab_del(struct numtab *t, uint32_t number)
{
	uint32_t *rest;

	t->count--;
	if (number == 1) {
		erase(t, 1);
		return;
	}
	find(t, number)->object = NULL;
	rest = &t->rest[t->nrest++ % NUMTAB_REST];
	if (*rest)
		erase(t, *rest);
	*rest = number;
}

/*
 * Where the object with place @i is, whether it has moved there or not: so a walk over the places meets each object
 * once while they move. NULL: there are not so many places.
 */
static const struct numtab_slot *slot_at(const struct numtab *t, uint32_t i)
{
	const struct numtab_slot *old = old_place(t, i);

	if (i > t->mask)
		return NULL;
	return old && old->number && (old->number & t->mask) == i ? old : &t->slots[i];
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

void *numtab_walk(const struct numtab *t, uint32_t *i, int32_t *budget)
{
	const struct numtab_slot *slot;

	while (*budget > 0 && (slot = slot_at(t, *i))) {
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
