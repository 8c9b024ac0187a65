// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Lost packets: how soon and how much is sent again, with a peer that offers selective repeat
 * and with one that does not, and that nothing is ever corrupted by it.
 *
 * SKUA_VERIFY_MIB: how much the last tests verify; SKUA_TESTS: a pattern of the tests to run.
 */
#include <sched.h>
#include <stdio.h>

#include "core/qp.h"
#include "ctl/control.h"
#include "harness/lossy.h"
#include "link/impair.h"
#include "roce/repeat.h"

#define US		1000ull
#define MS		1000000ull
#define TIMEOUT		(4096ull << 14)		/* that rts_cmd() sets */

static struct skua_qp *qp_of(struct node *n)
{
	return numtab_get(&n->dev->qps, n->qpn);
}

static void post_write(struct node *a, struct node *b, uint32_t len)
{
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, len, b->buf, b->key, 0);
}

static struct skua_cqe *next_cqe(struct world *w, struct node *n)
{
	struct skua_cqe *cqe;

	settle(w);
	while (!(cqe = poll_cq(n)))
		next_event(w);
	assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
	return cqe;
}

/* The same, without waiting for the ACK timeout. */
static struct skua_cqe *soon(struct world *w, struct node *n)
{
	uint64_t start = engine_now(w->engines[0]);
	struct skua_cqe *cqe = next_cqe(w, n);

	assert_true(engine_now(w->engines[0]) - start < TIMEOUT / 2);
	return cqe;
}

/* So that round trips have been measured. */
static void measure(struct world *w)
{
	post_write(&w->n[0], &w->n[1], 8);
	soon(w, &w->n[0]);
	post_write(&w->n[1], &w->n[0], 8);
	soon(w, &w->n[1]);
}

static void not_asked_before_something_is_lost(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	IMPAIR(a, "rate=1G,dir=out");
	post_write(a, b, 200000);
	soon(w, a);
	for (int i = 0; i < 2; i++)
		for (int p = 0; p < REPEAT_PEERS; p++)
			assert_int_equal(w->n[i].dev->peers[p].wait, 0);
	IMPAIR(a, "drop=every:20,dir=out", "rate=1G,dir=out");
	post_write(a, b, 200000);
	soon(w, a);
	assert_true(repeat_agreed(qp_of(a)));
	assert_true(repeat_agreed(qp_of(b)));
}

/* Questions to one that never answers become rare. */
static void silent_peers_are_asked_less_and_less(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint64_t asked = 0, last = 0;

	b->dev->inject.go_back_n = true;
	for (int ms = 0; ms < 10000; ms++) {
		assert_false(repeat_agreed(qp_of(a)));
		asked += a->dev->peers[0].ask_at != last;
		last = a->dev->peers[0].ask_at;
		pass(w, MS);
	}
	assert_in_range(asked, 10, 22);
	/* An offer ends, when it is not made again. */
	b->dev->inject.go_back_n = false;
	pass(w, 2000 * MS);
	assert_true(repeat_agreed(qp_of(a)));
	b->dev->inject.go_back_n = true;
	pass(w, 59000 * MS);
	assert_true(repeat_agreed(qp_of(a)));
	pass(w, 2000 * MS);
	assert_false(repeat_agreed(qp_of(a)));
}

/* What was lost is sent again, and hardly more. */
static void only_what_is_missing_is_sent_again(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint64_t before, lost;

	measure(w);
	IMPAIR(a, "drop=every:50,dir=out", "rate=5G,dir=out");
	post_write(a, b, 100000);
	soon(w, a);
	for (int i = 0; i < 20; i++) {
		before = STAT(w, a, retransmits);
		lost = skua_dev_get_impair(a->dev)->rule[0].acted;
		fill(a, 1 << 20, (uint32_t)i);
		post_write(a, b, 1 << 20);
		soon(w, a);
		assert_memory_equal(at(a, a->buf), at(b, b->buf), 1 << 20);
		lost = skua_dev_get_impair(a->dev)->rule[0].acted - lost;
		assert_in_range(STAT(w, a, retransmits) - before, lost - 1, lost + 3);
	}
	assert_int_equal(STAT(w, a, ack_timeouts), 0);
	assert_int_equal(STAT(w, b, seq_nak_sent), 1);
	assert_int_equal(b->dev->held_bytes, 0);
}

/* The same from a peer, by READ. */
static void only_responses_that_are_missing_are_asked_for(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	const uint32_t len = 256 << 10;
	uint64_t before, lost;

	measure(w);
	IMPAIR(b, "drop=every:50,dir=out", "rate=5G,dir=out");
	for (int i = 0; i < 20; i++) {
		before = STAT(w, b, rdma_tx_packets);
		lost = skua_dev_get_impair(b->dev)->rule[0].acted;
		fill(b, len, (uint32_t)i);
		post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, len, b->buf, b->key, 0);
		soon(w, a);
		assert_memory_equal(at(a, a->buf), at(b, b->buf), len);
		lost = skua_dev_get_impair(b->dev)->rule[0].acted - lost;
		if (i)
			assert_true(STAT(w, b, rdma_tx_packets) - before <= len / 1024 + lost + 8);
	}
	assert_int_equal(STAT(w, a, ack_timeouts), 0);
	assert_int_equal(a->dev->held_bytes, 0);
}

/* Packets are held in bounds, and given up when the QP is. */
static void what_is_held_is_bounded(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct train t = train_from(b, TRAIN_WRITE, FIRST_PSN);
	struct seglist payload = { .n = 1, .bytes = 1024, .seg = { { at(a, a->buf), 1024 } } };
	uint64_t most = 0;

	t.payload = &payload;
	t.raddr = b->buf;
	t.rkey = b->key;
	t.msg_len = 1024;
	t.first = t.last = true;
	for (uint32_t i = 1; i < 2000; i++) {
		t.psn = psn_add(FIRST_PSN, i);
		arrive_only(b, a, t);
		if (i == REPEAT_WINDOW)
			most = b->dev->held_bytes;
	}
	settle(w);
	assert_true(most > REPEAT_WINDOW * 1024);
	assert_int_equal(b->dev->held_bytes, most);
	assert_int_equal(STAT(w, b, rdma_rx_write), 0);
	must(w, b, state_cmd(b->qpn, SKUA_QPS_RESET));
	assert_int_equal(b->dev->held_bytes, 0);
}

/* A lost packet with nothing behind it, long before the ACK timeout; the end comes no sooner. */
static void sent_again_before_the_timeout(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	for (int peer = 0; peer < 2; peer++) {
		uint64_t start;

		a->dev->inject.go_back_n = b->dev->inject.go_back_n = !peer;
		measure(w);
		IMPAIR(b, "drop=every:1,dir=in");
		post_write(a, b, 8);
		settle(w);
		assert_true(skua_dev_set_impair(b->dev, NULL));
		start = engine_now(w->engines[0]);
		soon(w, a);
		assert_in_range(engine_now(w->engines[0]) - start, MS, 3 * MS);
	}
}

static void the_end_comes_when_the_timeout_says(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	const uint64_t end = (qp_of(a)->attr.retry_cnt + 1) * TIMEOUT;
	uint64_t before;

	measure(w);
	before = STAT(w, a, rdma_tx_packets);
	IMPAIR(b, "drop=100%");
	post_write(a, b, 8);
	settle(w);
	for (uint64_t t = 0; t < end - MS; t += MS / 2) {
		pass(w, MS / 2);
		assert_null(poll_cq(a));
	}
	/* Each of the timeouts is seen up to half a millisecond late. */
	pass(w, MS + 8 * MS / 2);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_RETRY_EXC_ERR);
	/* 1, 2, 4, .. 64 ms within each of the timeouts at most. */
	assert_in_range(STAT(w, a, rdma_tx_packets) - before, 8, 8 * 8);
}

/* Whoever takes his time is asked again in vain once or twice, and never learns of it if each
 * answer to a second question makes the next wait as short as before. */
static void the_time_to_wait_is_learnt(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	b->dev->inject.go_back_n = true;
	IMPAIR(b, "delay=20ms,dir=out");
	for (int i = 0; i < 20; i++) {
		post(a, i & 1 ? SKUA_WQE_READ : SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 8, b->buf,
		     b->key, 0);
		next_cqe(w, a);
	}
	assert_in_range(STAT(w, a, retransmits), 1, 5);
}

/* Responses that were had before say that the peer is at work, but are no progress. */
static void who_is_asked_too_often_is_not_asked_again(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct train old = train_from(a, TRAIN_READ_RESP, FIRST_PSN);
	uint64_t start;

	b->dev->inject.go_back_n = true;
	measure(w);
	IMPAIR(b, "drop=100%,dir=out");
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, 8, b->buf, b->key, 0);
	settle(w);
	start = engine_now(w->engines[0]);
	while (engine_now(w->engines[0]) - start < TIMEOUT - MS) {
		arrive(w, a, b, old);
		pass(w, MS / 2);
	}
	assert_int_equal(STAT(w, a, retransmits), 0);
	assert_int_equal(STAT(w, a, ack_timeouts), 0);
	for (int i = 0; i < 4; i++) {
		arrive(w, a, b, old);
		pass(w, MS / 2);
	}
	assert_int_equal(STAT(w, a, retransmits), 1);
	assert_int_equal(STAT(w, a, ack_timeouts), 1);
}

/* What waits before a busy peer is not made more and more. */
static void less_is_sent_each_time(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	b->dev->inject.go_back_n = true;
	measure(w);
	IMPAIR(b, "drop=100%,dir=out");
	post_write(a, b, 1 << 20);
	settle(w);
	for (int i = 0; i < 400; i++)
		pass(w, MS);
	assert_in_range(STAT(w, a, ack_timeouts), 5, 6);
	/* 64, 32, 16 .., and the least: of 128 packets. */
	assert_in_range(STAT(w, a, retransmits), 64, 128 + 6 * 8 * 8);
	assert_true(skua_dev_set_impair(b->dev, NULL));
	next_cqe(w, a);
}

/* With timeout 0 only NAKs lead to retransmission. */
static void never_without_a_timeout(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint64_t before;

	measure(w);
	qp_of(a)->attr.timeout = 0;
	IMPAIR(b, "drop=100%");
	before = STAT(w, a, rdma_tx_packets);
	post_write(a, b, 8);
	settle(w);
	for (int i = 0; i < 1000; i++)
		pass(w, MS);
	assert_int_equal(STAT(w, a, rdma_tx_packets) - before, 1);
}

/* A READ's response and an atomic's are missed when something later comes. */
static void a_lost_response_is_seen_by_later_ones(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	for (int peer = 0; peer < 2; peer++) {
		uint64_t start = engine_now(w->engines[0]);

		a->dev->inject.go_back_n = b->dev->inject.go_back_n = !peer;
		fill(b, 20000, 3);
		memset(at(a, a->buf), 0, 20000);
		IMPAIR(a, "drop=every:3,dir=in,opcode=0x0e");
		post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, 20000, b->buf, b->key, 0);
		settle(w);
		assert_true(skua_dev_set_impair(a->dev, NULL));
		expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
		assert_memory_equal(at(a, a->buf), at(b, b->buf), 20000);
		/* The only response; an ACK comes later. */
		IMPAIR(a, "drop=every:1,dir=in,opcode=0x10");
		post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, 64, b->buf, b->key, 0);
		settle(w);
		assert_true(skua_dev_set_impair(a->dev, NULL));
		post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf + 4096, 8, b->buf + 65536, b->key, 0);
		expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
		expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
		assert_int_equal(engine_now(w->engines[0]), start);
	}
}

/* READs that are sent again because their responses take long are not more than were agreed. */
static void slow_responses_are_not_too_many_reads(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	for (int peer = 0; peer < 2; peer++) {
		a->dev->inject.go_back_n = b->dev->inject.go_back_n = !peer;
		measure(w);
		fill(b, 65536, (uint32_t)peer);
		/* The first response comes after several early deadlines. */
		IMPAIR(b, "rate=500M,dir=out", "delay=15ms,dir=out");
		for (int i = 0; i < 16; i++)
			post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf + i * 65536, 65536, b->buf,
			     b->key, 0);
		settle(w);
		for (int i = 0; i < 16; i++) {
			struct skua_cqe *cqe;

			while (!(cqe = poll_cq(a)))
				next_event(w);
			assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
			assert_memory_equal(at(a, a->buf + i * 65536), at(b, b->buf), 65536);
		}
		assert_true(skua_dev_set_impair(b->dev, NULL));
	}
}

static void send_repeat(struct node *to, const struct repeat_frame *f)
{
	uint8_t buf[REPEAT_FRAME];
	struct seglist frame = { .n = 1, .bytes = (uint32_t)repeat_build(buf, f) };

	frame.seg[0] = (struct seg){ buf, frame.bytes };
	skua_dev_rx_frame(to->dev, &frame);
}

static struct repeat_frame frame_from(struct node *from, struct node *to, enum repeat_type type)
{
	struct repeat_frame f = { .type = type, .dest_qpn = to->qpn,
				  .path = { .vlan = SKUA_VLAN_NONE } };

	memcpy(f.path.smac, from->mac, 6);
	memcpy(f.path.dmac, to->mac, 6);
	memcpy(f.path.sgid, from->gid, 16);
	memcpy(f.path.dgid, to->gid, 16);
	return f;
}

/* Neither end offers it, but each was told that the other does. */
static void a_forged_hello_only_slows(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct repeat_frame hello = frame_from(a, b, REPEAT_HELLO);

	measure(w);
	a->dev->inject.go_back_n = true;
	send_repeat(b, &hello);
	assert_true(repeat_agreed(qp_of(b)));
	IMPAIR(a, "drop=every:20,dir=out", "rate=5G,dir=out");
	for (uint32_t i = 0; i < 10; i++) {
		fill(a, 100000, i);
		post_write(a, b, 100000);
		soon(w, a);
		assert_memory_equal(at(a, a->buf), at(b, b->buf), 100000);
	}
}

/* All is held, some is, none is; nothing was sent: no WQE completes, and all data arrive. */
static void a_forged_map_only_slows(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint64_t bad = STAT(w, a, rdma_rx_bad_addr);
	struct repeat_frame f;

	measure(w);
	IMPAIR(a, "drop=every:20,dir=out", "rate=5G,dir=out");
	for (uint32_t i = 0; i < 100; i++) {
		struct skua_cqe *cqe = NULL;

		fill(a, 100000, i);
		memset(at(b, b->buf), 0, 100000);
		post_write(a, b, 100000);
		settle(w);
		while (!(cqe = poll_cq(a))) {
			f = frame_from(b, a, REPEAT_MISSING);
			memset(f.held, i & 1 ? 0xff : (int)i, i / 2 % sizeof(f.held));
			f.psn = psn_add(qp_of(a)->req.una_psn, i % 7 - 3);
			send_repeat(a, &f);
			next_event(w);
		}
		assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
		assert_memory_equal(at(a, a->buf), at(b, b->buf), 100000);
	}
	f = frame_from(b, a, REPEAT_MISSING);
	f.path.sgid[15] ^= 1;
	send_repeat(a, &f);
	assert_int_equal(STAT(w, a, rdma_rx_bad_addr), bad + 1);
	f.dest_qpn ^= 1;
	send_repeat(a, &f);
	assert_int_equal(STAT(w, a, rdma_rx_bad_qp), 1);
}

/* As skuactl asks for it: at any time, and whatever peers still count on, no data suffer. */
static void selective_repeat_can_be_taken_away(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	measure(w);
	assert_int_equal(skua_dev_inject(b->dev, SKUA_FAULT_GO_BACK_N, 0), 0);
	IMPAIR(a, "drop=every:20", "rate=1G,dir=out");
	for (int i = 0; i < 6; i++) {
		struct node *from = i % 2 ? b : a, *to = i % 2 ? a : b;

		if (i == 2)
			assert_int_equal(skua_dev_inject(b->dev, SKUA_FAULT_NONE, 0), 0);
		fill(from, 1 << 20, (uint32_t)i);
		post_write(from, to, 1 << 20);
		/* Again, in the middle of a message. */
		if (i == 4) {
			while (!b->dev->held_bytes)
				next_event(w);
			assert_int_equal(skua_dev_inject(b->dev, SKUA_FAULT_GO_BACK_N, 0), 0);
		}
		next_cqe(w, from);
		assert_memory_equal(at(from, from->buf), at(to, to->buf), 1 << 20);
		assert_int_equal(repeat_agreed(qp_of(b)), i == 2 || i == 3);
		assert_int_equal(repeat_agreed(qp_of(a)), i >= 2);
	}
	skua_dev_reset(b->dev);
	assert_true(b->dev->inject.go_back_n);
}

/* Shares of the same link without loss, in percent. */
static void goodput_under_loss(void **state)
{
	static const struct {
		const char *loss;
		bool go_back_n;
		double share;
	} want[] = { { "0.1", false, 0.97 }, { "1", false, 0.90 }, { "5", false, 0.70 },
		     { "1", true, 0.50 } };
	const uint64_t total = 16 << 20;

	(void)state;
	for (uint8_t mtu = 3; mtu <= 5; mtu += 2) {
		double whole = goodput(total, mtu, "0", 1, false);

		for (size_t i = 0; i < 4; i++) {
			double share = goodput(total, mtu, want[i].loss, 1, want[i].go_back_n) / whole;

			if (share < want[i].share)
				fail_msg("mtu %u, loss %s%%: %.3f", 128u << mtu, want[i].loss, share);
		}
	}
}

/*
 * Messages of all kinds, many under way in both directions, verified. Each half of the region is one
 * direction's: payload to send, then what is written, read and received by the slot.
 */
#define SLOTS		7
#define SLOT		(128u << 10)
#define MAX_LEN		100000u
#define AREA(k)		((k) * (1u << 20))	/* 0: sources, 1: WRITEs, 2: READs, 3: receives */
#define WORD		(AREA(3) + 8 * SLOT - 64)
#define RIGHTS		(ALL_RIGHTS | SKUA_ACCESS_REMOTE_ATOMIC)

static uint64_t at_slot(const struct node *n, unsigned int area, unsigned int slot)
{
	return n->buf + AREA(area) + slot * SLOT;
}

static uint64_t word(struct node *n, uint64_t iova)
{
	uint64_t v;

	memcpy(&v, at(n, iova), 8);
	return le64toh(v);
}

static void allow_atomics(struct world *w)
{
	for (int i = 0; i < 2; i++) {
		struct node *n = &w->n[i];
		struct skua_cmd mr = create_mr_cmd(n);
		uint64_t top = take(n, 4096), leaf = take(n, 8192);

		for (uint64_t p = 0; p < 2; p++)
			((uint64_t *)at(n, top))[p] = htole64((leaf + p * 4096) | SKUA_PL_PRESENT);
		for (uint64_t p = 0; p < 1024; p++)
			((uint64_t *)at(n, leaf))[p] = htole64((n->buf + p * 4096) | SKUA_PL_PRESENT);
		mr.create_mr.access = htole32(RIGHTS);
		mr.create_mr.length = htole64(BUF_SIZE);
		mr.create_mr.pages = (struct skua_pagelist){
			.npages = htole32(1024), .level = 2, .log_page = 12,
			.addr[0] = htole64(top | SKUA_PL_PRESENT) };
		n->key = must(w, n, mr);
		must(w, n, modify_cmd(n->qpn, SKUA_QP_ATTR_ACCESS, (struct skua_qp_attr){
			.access = htole32(RIGHTS & ~SKUA_ACCESS_LOCAL_WRITE) }));
	}
}

static void post_atomic(struct node *n, struct node *peer, unsigned int slot, bool swap,
			uint64_t value, uint64_t compare)
{
	struct {
		struct skua_wqe_ctrl ctrl;
		struct skua_wqe_atomic atomic;
		struct skua_sge sge;
	} block = {
		.ctrl = { .opcode = swap ? SKUA_WQE_CMP_SWAP : SKUA_WQE_FETCH_ADD,
			  .flags = SKUA_WQE_SIGNALED, .nblocks = 1, .num_sge = 1 },
		.atomic = { htole64(peer->buf + WORD + 8 * swap), htole32(peer->key), 0,
			    htole64(value), htole64(compare) },
		.sge = { htole64(at_slot(n, 2, slot)), htole32(8), htole32(n->key) },
	};

	post_block(n, &block);
}

static void post_kind(struct node *n, struct node *peer, unsigned int kind, uint32_t len,
		      uint64_t round)
{
	uint64_t from = at_slot(n, 0, kind);

	switch (kind) {
	case 0:
	case 4:
		post(n, kind ? SKUA_WQE_WRITE_IMM : SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, from, len,
		     at_slot(peer, 1, kind), peer->key, kind ? 77 : 0);
		break;
	case 1:
		post(n, SKUA_WQE_READ, SKUA_WQE_SIGNALED, at_slot(n, 2, kind), len,
		     at_slot(peer, 0, kind), peer->key, 0);
		break;
	case 2:
	case 3:
		post(n, kind == 2 ? SKUA_WQE_SEND : SKUA_WQE_SEND_IMM, SKUA_WQE_SIGNALED, from, len,
		     0, 0, kind == 2 ? 0 : 88);
		break;
	case 5:
		post_atomic(n, peer, kind, false, 3, 0);
		break;
	default:
		post_atomic(n, peer, kind, true, round + 1, round);
	}
}

static void check_kind(struct node *n, struct node *peer, unsigned int kind, uint32_t len,
		       uint64_t round)
{
	static const uint8_t area[] = { 1, 2, 3, 3, 1 };

	if (kind == 5)
		assert_int_equal(word(n, at_slot(n, 2, kind)), 3 * round);
	else if (kind == 6)
		assert_int_equal(word(n, at_slot(n, 2, kind)), round);
	else if (kind == 1)
		assert_memory_equal(at(n, at_slot(n, 2, kind)), at(peer, at_slot(peer, 0, kind)), len);
	else
		assert_memory_equal(at(peer, at_slot(peer, area[kind], kind)),
				    at(n, at_slot(n, 0, kind)), len);
}

static void wait_for(struct world *w, int count)
{
	struct skua_cqe *cqe;

	while (count) {
		for (int i = 0; i < 2; i++) {
			for (; (cqe = poll_cq(&w->n[i])); count--)
				assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
		}
		if (count && w->threaded)
			sched_yield();
		else if (count)
			next_event(w);
	}
}

/* One of each kind in each direction, in another order each time. Returns the bytes. */
static uint64_t verify_round(struct world *w, uint64_t round)
{
	uint32_t len[2][SLOTS];
	uint64_t bytes = 0, z = round * 0x9e3779b97f4a7c15u;

	for (int i = 0; i < 2; i++) {
		struct node *n = &w->n[i];

		for (unsigned int k = 0; k < SLOTS; k++) {
			uint64_t *p = at(n, at_slot(n, 0, k));

			z = (z ^ z >> 27) * 0x94d049bb133111ebu + k;
			len[i][k] = 1 + (uint32_t)(z >> 33) % MAX_LEN;
			/* A READ that was repeated may be served once more when it is complete: what it
			 * reads stays as it is, and its target begins anew. */
			for (uint32_t b = 0; b < (k != 1 ? len[i][k] : round ? 0 : MAX_LEN); b += 8)
				*p++ = z += 0x9e3779b97f4a7c15u;
		}
		memset(at(n, at_slot(n, 2, 1)), 0xee, MAX_LEN);
	}
	for (unsigned int k = 2; k <= 4; k++)
		for (int i = 0; i < 2; i++)
			post_recv(&w->n[i], at_slot(&w->n[i], 3, k), MAX_LEN);
	for (int i = 0; i < 2; i++)
		for (unsigned int k = 0; k < SLOTS; k++) {
			/* Receives are taken in the order in which they were posted. */
			static const uint8_t order[3][SLOTS] = {
				{ 0, 1, 2, 3, 4, 5, 6 }, { 5, 2, 1, 6, 3, 0, 4 },
				{ 2, 0, 3, 5, 1, 4, 6 },
			};
			unsigned int kind = order[round % 3][k];

			post_kind(&w->n[i], &w->n[!i], kind, len[kind == 1 ? !i : i][kind], round);
			bytes += len[i][kind];
		}
	wait_for(w, 2 * (SLOTS + 3));
	for (int i = 0; i < 2; i++)
		for (unsigned int k = 0; k < SLOTS; k++)
			check_kind(&w->n[i], &w->n[!i], k, len[k == 1 ? !i : i][k], round);
	return bytes;
}

static uint64_t mib(uint64_t otherwise)
{
	const char *text = getenv("SKUA_VERIFY_MIB");

	return (text ? strtoull(text, NULL, 0) : otherwise) << 20;
}

#define ALL	"drop=0.5%", "duplicate=0.5%", "corrupt=0.5%", "reorder=0.5%", "delay=10us,jitter=5us"

static void verify(struct world *w, uint64_t total)
{
	allow_atomics(w);
	IMPAIR(&w->n[0], ALL, "rate=5G,dir=out", "seed=3");
	IMPAIR(&w->n[1], ALL, "rate=5G,dir=out", "seed=4");
	for (uint64_t round = 0, bytes = 0; bytes < total; round++)
		bytes += verify_round(w, round);
	assert_true(STAT(w, &w->n[0], retransmits) > 0);
	assert_true(STAT(w, &w->n[1], rdma_rx_bad_icrc) > 0);
}

static void nothing_is_corrupted(void **state)
{
	verify(*state, mib(128));
}

static void nothing_is_corrupted_by_go_back_n(void **state)
{
	struct world *w = *state;

	w->n[0].dev->inject.go_back_n = true;
	verify(w, mib(32));
}

static void nothing_is_corrupted_between_threads(void **state)
{
	verify(*state, mib(4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STEPPED(not_asked_before_something_is_lost, "REP-3"),
		STEPPED(silent_peers_are_asked_less_and_less, "REP-3"),
		STEPPED(only_what_is_missing_is_sent_again, "REP-5 REP-7"),
		STEPPED(only_responses_that_are_missing_are_asked_for, "REP-9"),
		STEPPED(what_is_held_is_bounded, "REP-5 REP-6"),
		STEPPED(sent_again_before_the_timeout, "REP-8 ROC-13 ROC-17"),
		STEPPED(the_end_comes_when_the_timeout_says, "ROC-13 ROC-17"),
		STEPPED(the_time_to_wait_is_learnt, "ROC-17"),
		STEPPED(who_is_asked_too_often_is_not_asked_again, "ROC-13 ROC-17"),
		STEPPED(less_is_sent_each_time, "ROC-19"),
		STEPPED(never_without_a_timeout, "ROC-13 ROC-17"),
		STEPPED(a_lost_response_is_seen_by_later_ones, "ROC-18 REP-9"),
		STEPPED(slow_responses_are_not_too_many_reads, "ROC-8 ROC-17"),
		STEPPED(selective_repeat_can_be_taken_away, "REP-4"),
		STEPPED(a_forged_hello_only_slows, "REP-4 REP-10"),
		STEPPED(a_forged_map_only_slows, "REP-2 REP-7 REP-10"),
		{ "REP-7 ROC-17: goodput_under_loss", goodput_under_loss, NULL, NULL, NULL },
		STEPPED(nothing_is_corrupted, "REP-6 MEM-10 MEM-11"),
		STEPPED(nothing_is_corrupted_by_go_back_n, "ROC-10 ROC-13 ROC-18"),
		THREADED(nothing_is_corrupted_between_threads, "REP-6 MEM-10"),
	};

	cmocka_set_test_filter(getenv("SKUA_TESTS"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
