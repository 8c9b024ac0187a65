// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The map of host memory, against an array of pages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>

#include "base/hostmem.h"
#include "harness/work.h"

#define PAGES	3000u
#define BASE	(1ull << 40)

/* Of each page: the first one of its region and the region's length, or 0. */
static struct { unsigned int first, n; } pages[PAGES];
static uint8_t host[PAGES];	/* a page is a byte here */

static uint32_t draw(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*seed >> 33);
}

static void add(struct hostmem *m, unsigned int first, unsigned int n)
{
	int want = 0;

	for (unsigned int i = first; i < first + n; i++)
		if (pages[i].n)
			want = -EEXIST;
	assert_int_equal(hostmem_add(m, BASE + first, n, host + first, first % 2), want);
	for (unsigned int i = first; !want && i < first + n; i++) {
		pages[i].first = first;
		pages[i].n = n;
	}
}

static void del(struct hostmem *m, unsigned int at)
{
	unsigned int first = pages[at].first, n = pages[at].n;

	if (!n) {
		assert_int_equal(hostmem_del(m, BASE + at, 1), -ENOENT);
		return;
	}
	assert_int_equal(hostmem_del(m, BASE + first, n + 1), -ENOENT);
	assert_int_equal(hostmem_del(m, BASE + first, n), 0);
	for (unsigned int i = first; i < first + n; i++)
		pages[i].n = 0;
}

static void check_at(struct hostmem *m, unsigned int i)
{
	uint64_t run;
	uint8_t *p = hostmem_run(m, BASE + i, false, &run);

	assert_ptr_equal(p, pages[i].n ? host + i : NULL);
	assert_int_equal(run, pages[i].n ? pages[i].first + pages[i].n - i : 0);
	assert_int_equal(!!hostmem_run(m, BASE + i, true, &run), pages[i].n && pages[i].first % 2);
}

static void check(struct hostmem *m)
{
	uint64_t run;

	for (unsigned int i = 0; i < PAGES; i++)
		check_at(m, i);
	assert_null(hostmem_run(m, BASE - 1, false, &run));
	assert_null(hostmem_run(m, BASE + PAGES, false, &run));
}

/* From none to many, to few and to many again, and in all orders. No change of the map is long. */
static void regions_come_and_go(void **state)
{
	struct hostmem m;
	uint64_t seed = 1;

	(void)state;
	hostmem_init(&m);
	hostmem_enable(&m, true);
	for (unsigned int round = 0; round < 60000; round++) {
		bool grow = round / 6000 % 2 == 0 ? draw(&seed) % 8 : !(draw(&seed) % 8);
		unsigned int at = round % 12000 < 3000 ? round % 3000 : draw(&seed) % PAGES;
		unsigned int n = draw(&seed) % 32 ? 1 : 1 + draw(&seed) % 8;
		uint64_t before;

		check_at(&m, at);
		before = work_done();
		if (grow)
			add(&m, at, at + n > PAGES ? 1 : n);
		else
			del(&m, at);
		work_check(before);
		/* What was looked up before the change is looked up anew. */
		check_at(&m, at);
		if (round % 500 == 0)
			check(&m);
	}
	for (unsigned int i = 0; i < PAGES; i++)
		del(&m, i);
	check(&m);
	assert_int_equal(m.n, 0);
	add(&m, 5, 3);
	hostmem_clear(&m);
	pages[5].n = pages[6].n = pages[7].n = 0;
	check(&m);
	hostmem_free(&m);
}

/* What stands for other memory is never host memory. */
static void no_region_is_at_the_end(void **state)
{
	struct hostmem m;
	uint64_t run;

	(void)state;
	hostmem_init(&m);
	hostmem_enable(&m, true);
	assert_int_equal(hostmem_add(&m, HOSTMEM_END - 4096, 4097, host, true), -EINVAL);
	assert_int_equal(hostmem_add(&m, HOSTMEM_END, 1, host, true), -EINVAL);
	assert_int_equal(hostmem_add(&m, ~0ull, 1, host, true), -EINVAL);
	assert_int_equal(hostmem_add(&m, 4096, ~0ull, host, true), -EINVAL);
	assert_int_equal(hostmem_add(&m, HOSTMEM_END - 8, 8, host, true), 0);
	assert_ptr_equal(hostmem_run(&m, HOSTMEM_END - 1, true, &run), host + 7);
	assert_null(hostmem_run(&m, HOSTMEM_END, false, &run));
	hostmem_free(&m);
}

/* However few regions are left of many, there are not many chunks for them. */
static void chunks_become_few_again(void **state)
{
	struct hostmem m;

	(void)state;
	hostmem_init(&m);
	hostmem_enable(&m, true);
	for (unsigned int i = 0; i < PAGES; i++)
		add(&m, i, 1);
	assert_in_range(m.n, PAGES / MEM_CHUNK, 2 * PAGES / MEM_CHUNK + 1);
	for (unsigned int i = 0; i < PAGES; i++)
		if (i % 100)
			del(&m, i);
	check(&m);
	assert_in_range(m.n, 1, 2);
	hostmem_free(&m);
}

/* A client may change its map 2^32 times. A pointer that was kept before that is not taken for a good one. */
static void a_kept_pointer_dies_however_often_the_map_changed(void **state)
{
	struct mem_ref ref = { .iova = BASE };
	struct hostmem m;

	(void)state;
	hostmem_init(&m);
	hostmem_enable(&m, true);
	assert_int_equal(hostmem_add(&m, BASE, 8, host, true), 0);
	assert_ptr_equal(mem_ref_at(&m, &ref, 8, false), host);
	/* The removal of the region is change 2^32. */
	m.gen += UINT32_MAX;
	assert_int_equal(hostmem_del(&m, BASE, 8), 0);
	assert_null(mem_ref_at(&m, &ref, 8, false));
	hostmem_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(regions_come_and_go),
		cmocka_unit_test(chunks_become_few_again),
		cmocka_unit_test(no_region_is_at_the_end),
		{ "MEM-13 MEM-16 SEC-7: a_kept_pointer_dies_however_often_the_map_changed",
		  a_kept_pointer_dies_however_often_the_map_changed, NULL, NULL, NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
