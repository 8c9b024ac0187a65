// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What a QP does for its peer, beside what it does for its host: neither keeps the other waiting. */
#include "core/qp.h"
#include "harness/lossy.h"

#include "link/port.h"
#include "roce/repeat.h"

#define LONG		(1u << 31)
#define MS		1000000ull
#define FULL_SPEED	100		/* steps */
#define LINE_NS		(10 * MS)	/* some 120 packets on a line of 100 Mb/s */

static uint32_t disturbed_qpn;		/* the QP that gets duplicates */

/* A region of 2 GiB: 4 MiB again and again. */
static void create_long_region(struct world *w, struct node *n)
{
	struct skua_cmd cmd = create_mr_cmd(n);
	uint64_t leaf = take(n, 4096);

	for (unsigned int i = 0; i < LONG >> 22; i++)
		((uint64_t *)at(n, leaf))[i] = htole64(n->buf | SKUA_PL_PRESENT);
	cmd.create_mr.length = htole64(LONG);
	cmd.create_mr.pages = (struct skua_pagelist){
		.npages = htole32(LONG >> 22), .level = 1, .log_page = 22,
		.addr[0] = htole64(leaf | SKUA_PL_PRESENT) };
	n->key = must(w, n, cmd);
}

/* @b reads without end from @a, by its QP. */
static void read_without_end(struct world *w, struct node *a, struct node *b)
{
	create_long_region(w, a);
	create_long_region(w, b);
	for (int i = 0; i < 8; i++)
		post(b, SKUA_WQE_READ, SKUA_WQE_SIGNALED, b->buf, LONG, a->buf, a->key, 0);
}

static unsigned int steps_to_complete(struct world *w, struct node *n)
{
	unsigned int steps = 0;

	while (!poll_cq(n) && steps < 10 * FULL_SPEED) {
		engine_step(w->engines[0]);
		steps++;
	}
	return steps;
}

static void own_requests_beside_reads_of_the_peer(void **state)
{
	static const uint8_t opcodes[] = { SKUA_WQE_WRITE, SKUA_WQE_READ };
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	read_without_end(w, a, b);
	for (int i = 0; i < 100; i++)
		engine_step(w->engines[0]);
	for (int i = 0; i < 4; i++) {
		post(a, opcodes[i % 2], SKUA_WQE_SIGNALED, a->buf, i < 2 ? 8 : 1 << 20, b->buf, b->key, 0);
		assert_true(steps_to_complete(w, a) < FULL_SPEED);
	}
	assert_null(poll_cq(b));
}

/* The line has room for one packet at a time; half of it is the requests'. */
static void own_requests_beside_responses_on_a_line(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	read_without_end(w, a, b);
	IMPAIR(a, "rate=100M,dir=out");
	IMPAIR(b, "rate=100M,dir=out");
	for (int i = 0; i < 1000; i++)
		next_event(w);
	for (uint32_t packets = 1; packets <= 64; packets *= 8) {
		uint64_t start = engine_now(w->engines[0]);
		struct skua_cqe *cqe;

		post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, packets * 1024, b->buf, b->key, 0);
		while (!(cqe = poll_cq(a)) && engine_now(w->engines[0]) - start < 10 * LINE_NS)
			next_event(w);
		assert_non_null(cqe);
		assert_true(engine_now(w->engines[0]) - start < 2 * LINE_NS);
	}
	assert_null(poll_cq(b));
}

/* A READ of 2^23 packets has half of all PSNs, and what comes behind it the other half. */
static void the_longest_read_at_the_least_path_mtu(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	create_long_region(w, a);
	create_long_region(w, b);
	use_path_mtu(w, 1);
	fill(a, BUF_SIZE, 7);
	for (int i = 0; i < 2; i++)
		post(b, SKUA_WQE_READ, SKUA_WQE_SIGNALED, b->buf, LONG, a->buf, a->key, 0);
	for (int i = 0; i < 2; i++)
		expect(w, b, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	assert_memory_equal(at(b, b->buf), at(a, a->buf), BUF_SIZE);
}

/* READ, WRITE and SEND of max_msg_size and of a byte less, at each path MTU. */
static void the_longest_messages_at_all_path_mtus(void **state)
{
	static const struct {
		uint8_t opcode, completion;
	} kinds[] = {
		{ SKUA_WQE_READ, SKUA_CQE_READ },
		{ SKUA_WQE_WRITE, SKUA_CQE_WRITE },
		{ SKUA_WQE_SEND, SKUA_CQE_SEND },
	};
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	create_long_region(w, a);
	create_long_region(w, b);
	for (uint32_t i = 0; i < 5 * 3 * 2; i++) {
		uint8_t opcode = kinds[i / 2 % 3].opcode;
		uint32_t len = LONG - i % 2;
		struct skua_cqe *cqe;

		for (int k = 0; k < 2; k++)
			reconnect(w, &w->n[k], &w->n[!k]);
		use_path_mtu(w, (uint8_t)(1 + i / 6));
		fill(a, BUF_SIZE, i);
		fill(b, BUF_SIZE, i + 128);
		if (opcode == SKUA_WQE_SEND)
			post_recv(b, b->buf, LONG);
		post(a, opcode, SKUA_WQE_SIGNALED, a->buf, len, b->buf, b->key, 0);
		expect(w, a, kinds[i / 2 % 3].completion, SKUA_CQE_SUCCESS);
		if (opcode == SKUA_WQE_SEND) {
			cqe = await_cqe(w, b);
			assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
			assert_int_equal(le32toh(cqe->byte_len), len);
		}
		assert_memory_equal(at(b, b->buf), at(a, a->buf), BUF_SIZE);
	}
}

/* From a peer that does not read in parts. */
static void the_longest_read_in_one_request(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct train t = train_from(a, TRAIN_READ_REQ, FIRST_PSN);
	uint64_t sent;

	create_long_region(w, a);
	use_path_mtu(w, 1);
	t.dest_qpn = a->qpn;
	t.msg_len = LONG;
	t.rkey = a->key;
	t.pmtu = 256;
	sent = STAT(w, a, rdma_tx_packets);
	arrive(w, a, b, t);
	assert_int_equal(STAT(w, a, rdma_tx_packets) - sent, LONG / 256);
	/* And goes on behind it. */
	post_recv(a, a->buf, 8);
	t = train_from(a, TRAIN_SEND, psn_add(FIRST_PSN, LONG / 256));
	t.pmtu = 256;
	arrive(w, a, b, t);
	expect(w, a, SKUA_CQE_RECV, SKUA_CQE_SUCCESS);
}

/* Packets that come twice, and are answered by short frames that need no turn on the line. */
static void duplicates_come(struct world *w)
{
	const struct node *b = &w->n[1];
	struct node *a = &w->n[0];
	struct train t = train_from(a, TRAIN_SEND, FIRST_PSN - 1);

	t.dest_qpn = disturbed_qpn;
	t.ack_req = false;
	arrive_only(a, b, t);
	pass(w, MS / 4);
}

static void offers_selective_repeat(const struct node *b, struct node *a)
{
	struct repeat_frame hello = { .type = REPEAT_HELLO };

	memcpy(hello.path.smac, b->mac, sizeof(b->mac));
	repeat_hello(a->dev, &hello);
}

/* The line has room for one packet at a time. In between, one of two QPs answers its peer. */
static void who_answers_keeps_its_turn(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct load l = { .qps = 2, .opcode = SKUA_WQE_WRITE, .len = 8192, .turn = duplicates_come };
	uint64_t before[2] = { 0, 0 };

	load_create(w, &l);
	disturbed_qpn = l.q[0].qpn;
	offers_selective_repeat(b, a);
	IMPAIR(a, "rate=10M,dir=out");
	load_run(w, &l, 2, 1000 * MS);
	assert_true(l.done[1] > 20);
	assert_true(load_fairness(&l, before) > 0.95);
}

/*
 * The line has room for one packet at a time. The QP has requests of its own, a READ of its peer to respond to, and
 * packets that come twice to tell of.
 */
static void responses_beside_answers(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint64_t start = engine_now(w->engines[0]);
	struct train twice = train_from(a, TRAIN_SEND, psn_add(FIRST_PSN, 63));

	twice.ack_req = false;
	offers_selective_repeat(b, a);
	IMPAIR(a, "rate=10M,dir=out");
	for (int i = 0; i < 8; i++)
		post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, BUF_SIZE, b->buf, b->key, 0);
	post(b, SKUA_WQE_READ, SKUA_WQE_SIGNALED, b->buf, 64 * 1024, a->buf, a->key, 0);
	settle(w);
	while (!poll_cq(b)) {
		assert_true(engine_now(w->engines[0]) - start < 150 * MS);
		arrive_only(a, b, twice);
		pass(w, MS / 4);
	}
}

/* The second node's WRITE is acknowledged soon, though its packet comes again and again. */
static void write_beside_answers(struct world *w)
{
	struct node *a = &w->n[0], *b = &w->n[1];
	uint64_t start = engine_now(w->engines[0]);

	post(b, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, b->buf, 8, a->buf, a->key, 0);
	settle(w);
	while (!poll_cq(b)) {
		assert_true(engine_now(w->engines[0]) - start < 20 * MS);
		arrive_only(a, b, train_from(a, TRAIN_SEND, FIRST_PSN));
		pass(w, MS / 4);
	}
}

/* The QP has requests of its own. */
static void an_ack_beside_answers(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	offers_selective_repeat(b, a);
	IMPAIR(a, "rate=10M,dir=out");
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, BUF_SIZE, b->buf, b->key, 0);
	write_beside_answers(w);
}

/* QPs of @w's first node that fill its line, which has room for one packet at a time, with WRITEs. */
static void fill_line(struct world *w, unsigned int qps)
{
	struct node *a = &w->n[0], *b = &w->n[1];
	struct queues idle[2] = { new_queues(a), new_queues(b) };

	IMPAIR(a, "rate=10M,dir=out");
	for (unsigned int qp = 0; qp < qps; qp++) {
		for (int i = 0; i < 2; i++) {
			new_queues(&w->n[i]);
			w->n[i].qpn = must(w, &w->n[i], create_qp_cmd(&w->n[i]));
		}
		for (int i = 0; i < 2; i++)
			reconnect(w, &w->n[i], &w->n[!i]);
		post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, BUF_SIZE, b->buf, b->key, 0);
	}
	for (int i = 0; i < 2; i++)
		use_queues(&w->n[i], idle[i]);
}

/* Other QPs fill the line, and this one has no requests. */
static void an_ack_beside_other_qps(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	offers_selective_repeat(b, a);
	fill_line(w, 8);
	for (int i = 0; i < 64; i++) {
		arrive_only(a, b, train_from(a, TRAIN_SEND, FIRST_PSN - 1));
		pass(w, MS / 4);
	}
	write_beside_answers(w);
}

/* Frames of the network device are one of nine that take turns. */
static void frames_beside_other_qps(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint8_t *frame = at(a, a->buf);
	uint64_t start;

	fill_line(w, 8);
	pass(w, 100 * MS);
	eth_queues(w, a);
	memcpy(frame, b->mac, 6);
	memcpy(frame + 6, a->mac, 6);
	start = engine_now(w->engines[0]);
	for (int i = 0; i < 16; i++)
		post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 1000, 0, 0, 0);
	for (int i = 0; i < 16; i++)
		while (!poll_cq(a)) {
			assert_true(engine_now(w->engines[0]) - start < 200 * MS);
			pass(w, MS / 4);
		}
	assert_true(engine_now(w->engines[0]) - start > 100 * MS);
}

/* A port on an engine that takes its frames only when the test lets it. */
struct far {
	struct engine *engine;
	struct link_port *port;
	unsigned int repeat_frames;
};

static void far_train(void *owner, const struct train *t)
{
	(void)owner;
	(void)t;
}

static void far_frame(void *owner, const struct seglist *frame)
{
	((struct far *)owner)->repeat_frames += repeat_is_frame(frame->seg[0].p, frame->bytes);
}

/* Frames of the network device fill the ring to another engine, each time that there is room in it. */
static void a_missing_beside_frames(void **state)
{
	static const struct port_ops ops = { .rx_train = far_train, .rx_frame = far_frame };
	struct world *w = *state;
	struct node *a = &w->n[0], peer = w->n[1];
	struct far far = { .engine = engine_create(true) };
	uint8_t *frame = at(a, a->buf);
	struct train twice;

	far.port = port_create(far.engine, a->link, &ops, &far);
	assert_non_null(far.port);
	peer.mac[5] = 9;
	port_set_mac(far.port, peer.mac);
	reconnect(w, a, &peer);
	offers_selective_repeat(&peer, a);
	twice = train_from(a, TRAIN_SEND, FIRST_PSN - 1);
	twice.ack_req = false;
	eth_queues(w, a);
	memcpy(frame, peer.mac, 6);
	memcpy(frame + 6, a->mac, 6);
	for (int i = 0; i < 200; i++)
		post(a, SKUA_WQE_SEND, 0, a->buf, 64, 0, 0, 0);
	for (int i = 0; i < 4; i++)
		engine_step(w->engines[0]);
	arrive_only(a, &peer, twice);
	for (int i = 0; i < 4; i++)
		engine_step(w->engines[0]);
	for (int round = 0; round < 2; round++) {
		while (port_receive(far.port))
			;
		for (int i = 0; i < 4; i++)
			engine_step(w->engines[0]);
	}
	while (port_receive(far.port))
		;
	assert_int_equal(far.repeat_frames, 1);
	port_destroy(far.port);
	engine_destroy(far.engine);
}

/*
 * WRITEs that the peer has acknowledged wait for the ring to another engine. When that is free, their completions use
 * up the turn of the QP. What is behind them comes in the next one.
 */
static void what_comes_behind_many_completions(void **state)
{
	static const struct port_ops ops = { .rx_train = far_train, .rx_frame = far_frame };
	struct world *w = *state;
	struct node *a = &w->n[0], peer = w->n[1];
	struct far far = { .engine = engine_create(true) };
	struct skua_cmd fast = create_mr_cmd(a);
	struct train ack = train_from(a, TRAIN_ACK, FIRST_PSN + 3);
	struct skua_qp *qp;

	far.port = port_create(far.engine, a->link, &ops, &far);
	assert_non_null(far.port);
	peer.mac[5] = 9;
	port_set_mac(far.port, peer.mac);
	reconnect(w, a, &peer);
	qp = numtab_get(&a->dev->qps, a->qpn);
	fast.create_mr.type = SKUA_MR_FAST;
	for (int i = 0; i < 4; i++)
		post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 8, peer.buf, peer.key, 0);
	post(a, SKUA_WQE_LOCAL_INV, SKUA_WQE_SIGNALED, 0, 0, 0, 0, must(w, a, fast));
	settle(w);
	ack.syndrome = AETH_ACK;
	arrive(w, a, &peer, ack);
	expect_none(w, a);
	while (port_receive(far.port))
		;
	a->engine->turn = LOOK_COST + 1;
	qp_run(qp, &a->engine->turn);
	for (int i = 0; i < 4; i++)
		expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	expect(w, a, SKUA_CQE_LOCAL_INV, SKUA_CQE_SUCCESS);
	port_destroy(far.port);
	engine_destroy(far.engine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STEPPED(own_requests_beside_reads_of_the_peer, "ROC-27"),
		STEPPED(own_requests_beside_responses_on_a_line, "ROC-27 ROC-20"),
		STEPPED(who_answers_keeps_its_turn, "ROC-20"),
		STEPPED(responses_beside_answers, "ROC-20 ROC-27"),
		STEPPED(an_ack_beside_answers, "ROC-27"),
		STEPPED(an_ack_beside_other_qps, "ROC-20 ROC-27"),
		STEPPED(frames_beside_other_qps, "ROC-20"),
		STEPPED(a_missing_beside_frames, "ROC-20"),
		STEPPED(what_comes_behind_many_completions, "ORD-4"),
		STEPPED(the_longest_read_at_the_least_path_mtu, "ROC-7 ROC-22 WQE-4"),
		STEPPED(the_longest_messages_at_all_path_mtus, "ROC-7 WQE-4 LIM-1"),
		STEPPED(the_longest_read_in_one_request, "ROC-7"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
