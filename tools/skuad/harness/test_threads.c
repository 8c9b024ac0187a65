// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Two devices, each with an engine thread of its own: traffic, and taking memory away under it. */
#include <semaphore.h>
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
		if (read)
			assert_null(memchr(at(a, a->buf), 0x77, 100000));
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

/* An engine that does nothing until let_go_on(). */
struct halt {
	struct node *n;
	pthread_t thread;
	sem_t begun, end;
};

static void stand_still(void *arg)
{
	struct halt *h = arg;

	sem_post(&h->begun);
	sem_wait(&h->end);
}

static void *call_stand_still(void *arg)
{
	struct halt *h = arg;

	on_engine(h->n, stand_still, h);
	return NULL;
}

static void halt_engine(struct halt *h, struct node *n)
{
	h->n = n;
	sem_init(&h->begun, 0, 0);
	sem_init(&h->end, 0, 0);
	assert_int_equal(pthread_create(&h->thread, NULL, call_stand_still, h), 0);
	sem_wait(&h->begun);
}

static void let_go_on(struct halt *h)
{
	sem_post(&h->end);
	pthread_join(h->thread, NULL);
	sem_destroy(&h->begun);
	sem_destroy(&h->end);
}

/* The peer's answer to the first packet. */
struct answer {
	struct node *n, *peer;
	uint8_t syndrome;
};

static void answer_comes(void *arg)
{
	const struct answer *answer = arg;
	struct train t = train_from(answer->n, TRAIN_ACK, FIRST_PSN);

	t.syndrome = answer->syndrome;
	arrive_only(answer->n, answer->peer, t);
}

/* The peer's engine stands still, with a WRITE of 64 bytes and its retransmission in its ring. */
static void retransmit_to_a_halted_engine(struct world *w, struct halt *h)
{
	struct node *a = &w->n[0], *b = &w->n[1];
	struct answer nak = { a, b, AETH_NAK_SEQ };

	fill(a, 64, 1);
	halt_engine(h, b);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 64, b->buf, b->key, 0);
	while (STAT(w, a, rdma_tx_packets) < 1)
		;
	on_engine(a, answer_comes, &nak);
	while (STAT(w, a, retransmits) < 1)
		;
}

/* The WQE completes with @status, but not before the peer's engine has read the payload that is there now. */
static void completes_when_it_was_read(struct world *w, struct halt *h, uint8_t status)
{
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cqe *early;

	must(w, a, (struct skua_cmd)CMD(SKUA_CMD_NOP));
	early = poll_cq(a);
	fill(a, 64, 2);
	let_go_on(h);
	assert_null(early);
	expect(w, a, SKUA_CQE_WRITE, status);
	assert_memory_equal(at(a, a->buf), at(b, b->buf), 64);
}

/* The first transmission is acknowledged, but the peer's engine has not read the payload of the second yet. */
static void a_retransmission_is_read_before_its_wqe_completes(void **state)
{
	struct world *w = *state;
	struct answer ack = { &w->n[0], &w->n[1], AETH_ACK };
	struct halt h;

	retransmit_to_a_halted_engine(w, &h);
	on_engine(&w->n[0], answer_comes, &ack);
	completes_when_it_was_read(w, &h, SKUA_CQE_SUCCESS);
}

/* A flush gives the memory back to the program, too. */
static void a_retransmission_is_read_before_its_wqe_is_flushed(void **state)
{
	struct world *w = *state;
	struct halt h;

	retransmit_to_a_halted_engine(w, &h);
	must(w, &w->n[0], state_cmd(w->n[0].qpn, SKUA_QPS_ERR));
	completes_when_it_was_read(w, &h, SKUA_CQE_WR_FLUSH_ERR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		THREADED(messages_of_all_kinds, "MEM-10 ROC-6"),
		THREADED(both_ways_at_once, "CQE-2"),
		THREADED(a_retransmission_is_read_before_its_wqe_completes, "MEM-9"),
		THREADED(a_retransmission_is_read_before_its_wqe_is_flushed, "MEM-9"),
		{ "MEM-12 MR-6: regions_are_taken_away_under_traffic",
		  regions_are_taken_away_under_traffic, NULL, NULL, NULL },
		{ "MEM-13: engines_end_under_traffic", engines_end_under_traffic, NULL, NULL, NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
