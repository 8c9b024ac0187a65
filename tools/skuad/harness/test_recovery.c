// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Lost packets: how soon and how much is sent again, with a peer that offers selective repeat
 * and with one that does not, and that nothing is ever corrupted by it.
 *
 * SKUA_VERIFY_MIB: how much the last tests verify.
 */
#include <stdio.h>

#include "core/qp.h"
#include "harness/lossy.h"
#include "harness/verify.h"
#include "link/impair.h"
#include "nic/control.h"
#include "roce/rc.h"
#include "roce/repeat.h"
#include "roce/roce.h"

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

/* The next CQE, a success, without waiting for the ACK timeout. */
static struct skua_cqe *soon(struct world *w, struct node *n)
{
	uint64_t start = engine_now(w->engines[0]);
	struct skua_cqe *cqe = await_success(w, n);

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
			assert_int_equal(w->n[i].dev->roce->peers[p].ask_interval, 0);
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
		asked += a->dev->roce->peers[0].next_ask_at != last;
		last = a->dev->roce->peers[0].next_ask_at;
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
	assert_int_equal(b->dev->roce->held_bytes, 0);
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
	assert_int_equal(a->dev->roce->held_bytes, 0);
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
			most = b->dev->roce->held_bytes;
	}
	settle(w);
	assert_true(most > REPEAT_WINDOW * 1024);
	assert_int_equal(b->dev->roce->held_bytes, most);
	assert_int_equal(STAT(w, b, rdma_rx_write), 0);
	must(w, b, state_cmd(b->qpn, SKUA_QPS_RESET));
	assert_int_equal(b->dev->roce->held_bytes, 0);
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
	/* A probe after 1, 3, 7 ms, then one each eighth of a timeout. */
	assert_in_range(STAT(w, a, rdma_tx_packets) - before, 8 * 8, 8 * 10);
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
		await_success(w, a);
	}
	assert_in_range(STAT(w, a, retransmits), 1, 5);
}

/* A path that has become longer is measured, although each packet is retransmitted before its answer comes. */
static void a_longer_round_trip_is_learnt(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	b->dev->inject.go_back_n = true;
	measure(w);
	IMPAIR(b, "delay=20ms,dir=out");
	for (int i = 0; i < 20; i++) {
		post_write(a, b, 8);
		soon(w, a);
	}
	assert_in_range(rc_of(qp_of(a))->req.loss.smoothed_rtt, 4 * MS, 21 * MS);
	assert_in_range(STAT(w, a, retransmits), 3, 24);
}

/* An estimate that is so long that only retries are left is given up at the second. */
static void a_long_estimate_is_given_up(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	const struct loss *l = &rc_of(qp_of(a))->req.loss;
	uint64_t before;

	IMPAIR(b, "delay=66500us,dir=out");
	post_write(a, b, 8);
	await_success(w, a);
	assert_true(l->smoothed_rtt >= 66 * MS);
	IMPAIR(b, "drop=every:1,dir=in");
	post_write(a, b, 8);
	while (l->retries < 2)
		next_event(w);
	assert_int_equal(l->smoothed_rtt, 0);
	settle(w);
	before = STAT(w, a, retransmits);
	while (l->retries < 3)
		next_event(w);
	assert_true(STAT(w, a, retransmits) - before >= 2);
	assert_true(skua_dev_set_impair(b->dev, NULL));
	await_success(w, a);
}

/* The first packet seems lost. Its answer comes just after the retransmission: neither time is a round trip. */
static void a_loss_is_no_first_round_trip(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct train nak = train_from(a, TRAIN_ACK, FIRST_PSN);

	b->dev->inject.go_back_n = true;
	nak.syndrome = AETH_NAK_SEQ;
	IMPAIR(b, "delay=10ms,dir=out");
	post_write(a, b, 8);
	settle(w);
	pass(w, 9 * MS);
	arrive(w, a, b, nak);
	soon(w, a);
	assert_int_equal(STAT(w, a, retransmits), 1);
	assert_int_equal(rc_of(qp_of(a))->req.loss.smoothed_rtt, 0);
}

/* Responses that were had before are no progress, and keep nobody from probing. */
static void old_responses_are_no_progress(void **state)
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
	assert_in_range(STAT(w, a, retransmits), 8, 10);
	assert_int_equal(STAT(w, a, ack_timeouts), 0);
	for (int i = 0; i < 4; i++) {
		arrive(w, a, b, old);
		pass(w, MS / 2);
	}
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
	/* For each timeout the least window, and some probes. */
	assert_in_range(STAT(w, a, retransmits), 6 * 8, 6 * (2 + 10));
	assert_true(skua_dev_set_impair(b->dev, NULL));
	await_success(w, a);
}

/* With timeout 0 nobody gives up, but the peer is probed: once a second in the end. */
static void without_a_timeout_nobody_gives_up(void **state)
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
	for (int i = 0; i < 100000; i++)
		pass(w, MS);
	expect_none(w, a);
	assert_in_range(STAT(w, a, rdma_tx_packets) - before, 100, 115);
	assert_int_equal(STAT(w, a, ack_timeouts), 0);
	assert_true(skua_dev_set_impair(b->dev, NULL));
	await_success(w, a);
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
			f.psn = psn_add(rc_of(qp_of(a))->req.oldest_unacked_psn, i % 7 - 3);
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
			while (!b->dev->roce->held_bytes)
				next_event(w);
			assert_int_equal(skua_dev_inject(b->dev, SKUA_FAULT_GO_BACK_N, 0), 0);
		}
		await_success(w, from);
		assert_memory_equal(at(from, from->buf), at(to, to->buf), 1 << 20);
		assert_int_equal(repeat_agreed(qp_of(b)), i == 2 || i == 3);
		assert_int_equal(repeat_agreed(qp_of(a)), i >= 2);
	}
	skua_dev_reset(b->dev);
	assert_true(b->dev->inject.go_back_n);
}

static uint64_t mib(uint64_t otherwise)
{
	const char *text = getenv("SKUA_VERIFY_MIB");

	return (text ? strtoull(text, NULL, 0) : otherwise) << 20;
}

#define ALL	"drop=0.5%", "duplicate=0.5%", "corrupt=0.5%", "reorder=0.5%", "delay=10us,jitter=5us"

static void verify(struct world *w, uint64_t total)
{
	struct verify v = { .w = w, .name = "verify" };

	verify_begin(&v);
	IMPAIR(&w->n[0], ALL, "rate=5G,dir=out", "seed=3");
	IMPAIR(&w->n[1], ALL, "rate=5G,dir=out", "seed=4");
	for (uint64_t round = 0, bytes = 0; bytes < total; round++)
		bytes += verify_round(&v, round);
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
		STEPPED(only_what_is_missing_is_sent_again, "REP-5 REP-7 REC-1 REC-5"),
		STEPPED(only_responses_that_are_missing_are_asked_for, "REP-9 REC-17 REC-18"),
		STEPPED(what_is_held_is_bounded, "REP-5 REP-6"),
		STEPPED(sent_again_before_the_timeout, "REP-8 ROC-13 ROC-17 REC-13"),
		STEPPED(the_end_comes_when_the_timeout_says, "ROC-13 ROC-17 REC-13"),
		STEPPED(the_time_to_wait_is_learnt, "ROC-17 REC-3 REC-4"),
		STEPPED(a_longer_round_trip_is_learnt, "REC-4"),
		STEPPED(a_long_estimate_is_given_up, "REC-3"),
		STEPPED(a_loss_is_no_first_round_trip, "REC-4"),
		STEPPED(old_responses_are_no_progress, "ROC-13 ROC-17 REC-14"),
		STEPPED(less_is_sent_each_time, "ROC-19 REC-15 CNG-16"),
		STEPPED(without_a_timeout_nobody_gives_up, "ROC-13 ROC-17"),
		STEPPED(a_lost_response_is_seen_by_later_ones, "ROC-18 REP-9 REC-2 REC-17"),
		STEPPED(slow_responses_are_not_too_many_reads, "ROC-8 ROC-17 ROC-24"),
		STEPPED(selective_repeat_can_be_taken_away, "REP-4"),
		STEPPED(a_forged_hello_only_slows, "REP-4 REP-10"),
		STEPPED(a_forged_map_only_slows, "REP-2 REP-7 REP-10"),
		STEPPED(nothing_is_corrupted, "REP-6 MEM-10 MEM-11"),
		STEPPED(nothing_is_corrupted_by_go_back_n, "ROC-10 ROC-13 ROC-18"),
		THREADED(nothing_is_corrupted_between_threads, "REP-6 MEM-10"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
