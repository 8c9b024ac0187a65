// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Tables of numbers, against an array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/numtab.h"
#include "harness/work.h"

#define MOST	70000u

static struct { uint32_t number; bool seen; } objects[MOST];	/* number 0: not in the table */

static uint32_t draw(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*seed >> 33);
}

/* No change takes long (work.h). */
static void change(struct numtab *t, uint32_t i)
{
	uint64_t before = work_done();

	if (objects[i].number) {
		numtab_del(t, objects[i].number);
		work_check(before);
		assert_null(numtab_get(t, objects[i].number));
		objects[i].number = 0;
		return;
	}
	objects[i].number = numtab_add(t, &objects[i]);
	work_check(before);
	assert_in_range(objects[i].number, 2, NUMTAB_MASK - 1);
}

static uint32_t seen(void *object)
{
	size_t i = (size_t)((char *)object - (char *)objects) / sizeof(objects[0]);

	assert_true(objects[i].number && !objects[i].seen);
	objects[i].seen = true;
	return 1;
}

static void check(const struct numtab *t)
{
	uint32_t count = 0, at = 0;
	int32_t budget = INT32_MAX;
	void *object;

	for (uint32_t i = 0; i < MOST; i++) {
		objects[i].seen = false;
		count += objects[i].number > 0;
		if (objects[i].number)
			assert_ptr_equal(numtab_get(t, objects[i].number), &objects[i]);
	}
	assert_int_equal(t->count, count);
	while ((object = numtab_next(t, &at)))
		count -= seen(object);
	assert_int_equal(count, 0);
	for (uint32_t i = 0; i < MOST; i++)
		objects[i].seen = false;
	for (at = 0; (object = numtab_walk(t, &at, &budget)); )
		count += seen(object);
	assert_int_equal(at, numtab_slots(t));
	assert_int_equal(t->count, count);
}

/* Number 1 can be had at any time, and again at once. */
static void take_number_one(struct numtab *t)
{
	static int one;

	for (int n = 0; n < 2; n++) {
		assert_int_equal(numtab_add_one(t, &one), 1);
		assert_int_equal(numtab_add_one(t, &one), 0);
		assert_ptr_equal(numtab_get(t, 1), &one);
		numtab_del(t, 1);
		assert_null(numtab_get(t, 1));
	}
}

/* From none to many, and to none, while others come and go, and the table grows. */
static void objects_come_and_go(void **state)
{
	bool opaque = *state != NULL;
	struct numtab t;
	uint64_t seed = 1;
	int32_t budget;
	void *object;

	assert_int_equal(numtab_init(&t, MOST + 1, opaque), 0);
	work_most = 3000;
	for (uint32_t i = 0; i < MOST; i++) {
		if (!objects[i].number)
			change(&t, i);
		for (int n = draw(&seed) % 3; n; n--)
			change(&t, draw(&seed) % (i + 1));
		if (i % 7000 == 0 || i == 4099 || i == 33000)
			check(&t);
		if (i < 200 || i % 999 == 0)
			take_number_one(&t);
	}
	check(&t);
	while (t.count) {
		budget = 100;
		object = numtab_any(&t, &budget);
		if (object)
			change(&t, (uint32_t)((size_t)((char *)object - (char *)objects) / sizeof(objects[0])));
	}
	check(&t);
	budget = 100;
	assert_null(numtab_any(&t, &budget));
	assert_int_equal(budget, 100);
	numtab_free(&t);
}

/* Each step of the walk moves some: those that stay are visited once. */
static void a_walk_visits_what_moves(void **state)
{
	uint32_t visited = 0, staying = 0, at = 0, slots;
	struct numtab t;
	void *object;

	(void)state;
	assert_int_equal(numtab_init(&t, MOST, true), 0);
	for (uint32_t i = 0; i < MOST; i++)
		objects[i].number = objects[i].seen = 0;
	while (t.old_mask < 8191)
		change(&t, staying++);
	slots = numtab_slots(&t);
	while (at < slots) {
		int32_t budget = 5000;

		while ((object = numtab_walk(&t, &at, &budget)))
			visited += seen(object);
		change(&t, staying);
		change(&t, staying);
	}
	assert_null(t.old);
	assert_int_equal(numtab_slots(&t), slots);
	assert_int_equal(visited, staying);
	numtab_free(&t);
}

/* The number that makes the table grow has place 0, where the table before it has none. */
static void a_walk_visits_place_zero(void **state)
{
	uint32_t visited = 0, at = 0;
	struct numtab t;
	int object;

	(void)state;
	assert_int_equal(numtab_init(&t, MOST, false), 0);
	for (int i = 0; i < 32; i++)
		assert_int_not_equal(numtab_add(&t, &object), 0);
	assert_null(t.old);
	t.next = 0xffff;
	assert_int_equal(numtab_add(&t, &object), 0x10000);
	assert_non_null(t.old);
	while (numtab_next(&t, &at))
		visited++;
	assert_int_equal(visited, 33);
	numtab_free(&t);
}

/* Pages of ours that hold the slots of the table before it has grown. */
static unsigned int pages_of_old(const struct numtab *t)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)t->old & -page;
	size_t n = ((uintptr_t)&t->old[t->old_mask + 1] - from + page - 1) / page;
	unsigned char *there = calloc(n, 1);
	unsigned int pages = 0;

	assert_non_null(there);
	assert_int_equal(mincore((void *)from, n * page, there), 0);
	for (size_t i = 0; i < n; i++)
		pages += there[i] & 1;
	free(there);
	return pages;
}

/* A table of a mebibyte that becomes a larger one: its memory is given back as its slots move. */
static void memory_is_given_back_in_steps(void **state)
{
	unsigned int before = 0;
	struct numtab t;

	(void)state;
	assert_int_equal(numtab_init(&t, MOST + 1, true), 0);
	while (t.old_mask < 65535)
		assert_int_not_equal(numtab_add(&t, &t), 0);
	assert_true(pages_of_old(&t) > 250);
	while (t.old) {
		before = pages_of_old(&t);
		assert_int_not_equal(numtab_add(&t, &t), 0);
		assert_true(!t.old || before - pages_of_old(&t) <= 17);
	}
	assert_true(before <= 18);
	numtab_free(&t);
}

/* Plain numbers count up: wherever the count is, these are left out. */
static void numbers_that_are_never_given(void **state)
{
	struct numtab t;
	int object;

	(void)state;
	assert_int_equal(numtab_init(&t, MOST, false), 0);
	t.next = NUMTAB_MASK - 4;
	for (int i = 0; i < 10; i++)
		assert_in_range(numtab_add(&t, &object), 2, NUMTAB_MASK - 1);
	t.next = 0;
	assert_in_range(numtab_add(&t, &object), 2, NUMTAB_MASK - 1);
	numtab_free(&t);
}

/* The table would give it at once, if it were free. */
static void a_number_rests(void **state)
{
	struct numtab t;
	uint32_t number;
	int object;

	(void)state;
	assert_int_equal(numtab_init(&t, MOST, false), 0);
	number = numtab_add(&t, &object);
	numtab_del(&t, number);
	for (int i = 0; i < NUMTAB_REST; i++) {
		uint32_t other;

		t.next = number - 1;
		other = numtab_add(&t, &object);
		assert_int_not_equal(other, number);
		numtab_del(&t, other);
	}
	t.next = number - 1;
	assert_int_equal(numtab_add(&t, &object), number);
	numtab_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "OBJ-1: objects_come_and_go", objects_come_and_go, NULL, NULL, NULL },
		{ "SEC-4: objects_come_and_go", objects_come_and_go, NULL, NULL, objects },
		{ "OBJ-2: numbers_that_are_never_given", numbers_that_are_never_given, NULL, NULL, NULL },
		{ "OBJ-4: a_number_rests", a_number_rests, NULL, NULL, NULL },
		{ "OBJ-1: a_walk_visits_what_moves", a_walk_visits_what_moves, NULL, NULL, NULL },
		{ "OBJ-1: a_walk_visits_place_zero", a_walk_visits_place_zero, NULL, NULL, NULL },
		{ "OBJ-1: memory_is_given_back_in_steps", memory_is_given_back_in_steps, NULL, NULL, NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
