// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Number tables. The table grows with what is in it, so a limit of a hundred thousand
 * costs nothing until it is used; random numbers need no hash.
 */
#include "core/numtab.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#define FIRST_SIZE	64

int numtab_init(struct numtab *t, uint32_t max, bool opaque)
{
	*t = (struct numtab){ .mask = FIRST_SIZE - 1, .max = max, .opaque = opaque, .next = 1 };
	t->slots = calloc(FIRST_SIZE, sizeof(*t->slots));
	return t->slots ? 0 : -ENOMEM;
}

void numtab_free(struct numtab *t)
{
	free(t->slots);
	t->slots = NULL;
}

static struct numtab_slot *find(const struct numtab *t, uint32_t number)
{
	for (uint32_t i = number & t->mask; t->slots[i].number; i = (i + 1) & t->mask)
		if (t->slots[i].number == number)
			return &t->slots[i];
	return NULL;
}

static void insert(struct numtab *t, uint32_t number, void *object)
{
	uint32_t i = number & t->mask;

	while (t->slots[i].number)
		i = (i + 1) & t->mask;
	t->slots[i] = (struct numtab_slot){ number, object };
	t->used++;
}

static bool grow(struct numtab *t)
{
	struct numtab_slot *old = t->slots;
	uint32_t n = t->mask + 1;

	t->slots = calloc(2 * (size_t)n, sizeof(*t->slots));
	if (!t->slots) {
		t->slots = old;
		return false;
	}
	t->mask = 2 * n - 1;
	t->used = 0;
	for (uint32_t i = 0; i < n; i++)
		if (old[i].number)
			insert(t, old[i].number, old[i].object);
	free(old);
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

	if (!has_room(t))
		return 0;
	do
		number = draw(t);
	while (number <= 1 || number == NUMTAB_MASK || find(t, number));
	insert(t, number, object);
	t->count++;
	return number;
}

uint32_t numtab_add_one(struct numtab *t, void *object)
{
	if (find(t, 1) || !has_room(t))
		return 0;
	insert(t, 1, object);
	t->count++;
	return 1;
}

/* Take the slot out and move up those behind it that would not be found any more. */
static void erase(struct numtab *t, struct numtab_slot *slot)
{
	uint32_t hole = (uint32_t)(slot - t->slots);

	for (uint32_t i = (hole + 1) & t->mask; t->slots[i].number; i = (i + 1) & t->mask) {
		uint32_t home = t->slots[i].number & t->mask;

		if (((i - home) & t->mask) >= ((i - hole) & t->mask)) {
			t->slots[hole] = t->slots[i];
			hole = i;
		}
	}
	t->slots[hole] = (struct numtab_slot){ 0 };
	t->used--;
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

void *numtab_next(const struct numtab *t, uint32_t *i)
{
	while (*i <= t->mask) {
		void *object = t->slots[(*i)++].object;

		if (object)
			return object;
	}
	return NULL;
}

void *numtab_any(struct numtab *t)
{
	void *object = numtab_next(t, &t->cursor);

	if (!object) {
		t->cursor = 0;
		object = numtab_next(t, &t->cursor);
	}
	return object;
}
