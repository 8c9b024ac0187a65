// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Two devices, each with an engine thread of its own: traffic, and taking memory away under it. */
#include <stdio.h>
#include <unistd.h>

#include "harness/harness.h"

#define ROUNDS 300

static void messages_of_all_kinds(void **state)
{
	static const uint32_t sizes[] = { 1, 8, 1024, 5000, 65536, 300001 };
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	for (uint32_t i = 0; i < ROUNDS; i++) {
		uint32_t len = sizes[i % 6];

		switch (i % 3) {
		case 0:
			fill(a, len, i);
			post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, len, b->buf + (2u << 20), b->key, 0);
			expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
			assert_memory_equal(at(b, b->buf + (2u << 20)), at(a, a->buf), len);
			break;
		case 1:
			fill(b, len, i);
			post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf + (2u << 20), len, b->buf, b->key, 0);
			expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
			assert_memory_equal(at(a, a->buf + (2u << 20)), at(b, b->buf), len);
			break;
		default:
			fill(b, len, i);
			post_recv(a, a->buf + (1u << 20), len);
			post(b, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, b->buf, len, 0, 0, 0);
			expect(w, b, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
			expect(w, a, SKUA_CQE_RECV, SKUA_CQE_SUCCESS);
			assert_memory_equal(at(a, a->buf + (1u << 20)), at(b, b->buf), len);
		}
	}
}

static void both_ways_at_once(void **state)
{
	struct world *w = *state;
	int done[2] = { 0, 0 }, posted[2] = { 0, 0 };

	while (done[0] < 2000 || done[1] < 2000) {
		for (int i = 0; i < 2; i++) {
			struct node *n = &w->n[i], *peer = &w->n[!i];
			struct skua_cqe *cqe;

			if (posted[i] < 2000 && posted[i] - done[i] < 16) {
				post(n, posted[i] & 1 ? SKUA_WQE_READ : SKUA_WQE_WRITE, SKUA_WQE_SIGNALED,
				     n->buf + (posted[i] & 1 ? 1u << 20 : 0), 20000,
				     peer->buf + (posted[i] & 1 ? 2u << 20 : 3u << 20), peer->key, 0);
				posted[i]++;
			}
			while ((cqe = poll_cq(n))) {
				assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
				assert_int_equal(le32toh(cqe->cookie), done[i]);
				done[i]++;
			}
		}
	}
}

/*
 * The peer destroys a region that is being written and read. When DESTROY_MR has completed, the
 * memory is the host's: nothing more is written there, and what is changed there is not read.
 */
static void regions_are_taken_away_under_traffic(void **state)
{
	(void)state;
	for (int round = 0; round < 40; round++) {
		struct world *w = world_create(true);
		struct node *a = &w->n[0], *b = &w->n[1];
		struct skua_cmd destroy = CMD(SKUA_CMD_DESTROY_MR, .object = { .number = htole32(b->key) });
		uint8_t *memory = at(b, b->buf), *image = malloc(BUF_SIZE);
		bool read = round & 1;

		for (int i = 0; i < 32; i++)
			post(a, read ? SKUA_WQE_READ : SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 100000, b->buf, b->key, 0);
		for (volatile int i = 0; i < round * 2000; i++)
			;
		assert_int_equal(command(w, b, &destroy), SKUA_CMD_OK);
		/* Written by nobody but us from here on. */
		memset(memory, 0x77, 200000);
		memcpy(image, memory, 200000);
		for (int i = 0; i < 32; i++)
			if (await_cqe(w, a)->status != SKUA_CQE_SUCCESS)
				break;
		assert_memory_equal(memory, image, 200000);
		free(image);
		world_destroy(w);
	}
}

static void unmap_all(void *arg)
{
	struct node *n = arg;

	skua_dev_mem_unmap_all(n->dev);
}

/* An engine ends while others send to it; who waits for it to let go of memory then waits no more. */
static void engines_end_under_traffic(void **state)
{
	(void)state;
	for (int round = 0; round < 40; round++) {
		struct world *w = world_create(true);
		struct node *first = &w->n[round & 1], *last = &w->n[!(round & 1)];

		for (int i = 0; i < 100; i++) {
			post(first, SKUA_WQE_WRITE, 0, first->buf, 1 << 20, last->buf + (2 << 20), last->key, 0);
			post(last, SKUA_WQE_WRITE, 0, last->buf, 1 << 20, first->buf + (2 << 20), first->key, 0);
		}
		usleep(1000);
		alarm(20);
		end_engine(w, round & 1);
		/* In a running engine, and in one that has ended. */
		if (round & 2)
			on_engine(last, unmap_all, last);
		end_engine(w, !(round & 1));
		unmap_all(first);
		unmap_all(last);
		alarm(0);
		world_destroy(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		THREADED(messages_of_all_kinds, "MEM-10 ROC-6"),
		THREADED(both_ways_at_once, "CQE-2 ORD-1"),
		{ "MEM-12 MR-6: regions_are_taken_away_under_traffic",
		  regions_are_taken_away_under_traffic, NULL, NULL, NULL },
		{ "MEM-13: engines_end_under_traffic", engines_end_under_traffic, NULL, NULL, NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
