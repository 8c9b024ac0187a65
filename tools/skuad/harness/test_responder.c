// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a responder owes its peer, packet by packet: reports of what is missing, and answers to requests that come
 * again. A peer that is told less finds out by itself, later.
 */
#include "core/qp.h"
#include "harness/lossy.h"
#include "nic/control.h"
#include "roce/rc.h"
#include "roce/reorder.h"
#include "roce/repeat.h"

#define MTU		1024u
#define MAX_DEST_RD	4		/* that rtr_cmd() sets */

static struct skua_qp *qp_of(struct node *n)
{
	return numtab_get(&n->dev->qps, n->qpn);
}

/* Both offer selective repeat. */
static void prepare(struct world *w)
{
	for (int i = 0; i < 2; i++) {
		struct node *from = &w->n[i], *to = &w->n[!i];
		struct repeat_frame hello = { .type = REPEAT_HELLO, .path = { .vlan = SKUA_VLAN_NONE } };
		uint8_t buf[REPEAT_FRAME];
		struct seglist frame = { .n = 1 };

		memcpy(hello.path.smac, from->mac, 6);
		memcpy(hello.path.dmac, to->mac, 6);
		frame.bytes = (uint32_t)repeat_build(buf, &hello);
		frame.seg[0] = (struct seg){ buf, frame.bytes };
		skua_dev_rx_frame(to->dev, &frame);
	}
}

/* @n packets of a WRITE of @npkts from the @i-th on, without AckReq; they wait for their QP's turn. */
static void request(struct world *w, uint32_t i, uint32_t n, uint32_t npkts)
{
	struct node *a = &w->n[0], *b = &w->n[1];
	struct train t = train_from(b, TRAIN_WRITE, FIRST_PSN + i);
	struct seglist payload = { 1, n * MTU, { { (uint8_t *)at(a, a->buf) + i * MTU, n * MTU } } };

	t.payload = &payload;
	t.npkts = n;
	t.msg_len = npkts * MTU;
	t.first = !i;
	t.last = i + n == npkts;
	t.ack_req = false;
	arrive_only(b, a, t);
}

/* Is the peer told of packet @i? */
static bool is_told(struct world *w, uint32_t i)
{
	struct skua_qp *qp = qp_of(&w->n[1]);
	bool told;

	request(w, i, 1, 100);
	told = rc_of(qp)->resp.missing_due;
	settle(w);
	assert_false(rc_of(qp)->resp.missing_due);
	return told;
}

static void what_is_missing_is_told(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct train asks = train_from(b, TRAIN_WRITE, FIRST_PSN + 74);

	prepare(w);
	for (uint32_t gap = 0; gap < 60; gap += 30) {
		/* At once, with two packets more, and with each eighth after those. */
		for (uint32_t i = 1; i < 4; i++)
			assert_int_equal(is_told(w, gap + i), i != 2);
		for (uint32_t i = 4; i < 28; i += 8) {
			unsigned int told = 0;

			for (uint32_t k = 0; k < 8; k++)
				told += is_told(w, gap + i + k);
			assert_in_range(told, 1, 2);
		}
	}
	/* What is held came again. A gap; then the peer asks for an answer. */
	assert_true(is_told(w, 22));
	assert_true(is_told(w, 70));
	for (uint32_t i = 71; i < 74; i++)
		assert_int_equal(is_told(w, i), i == 72);
	arrive_only(b, a, asks);
	assert_true(rc_of(qp_of(b))->resp.missing_due);
}

/* A gap is filled, and another is left; then that one. */
static void what_is_left_missing_is_told(void **state)
{
	struct world *w = *state;

	prepare(w);
	request(w, 1, 1, 100);
	request(w, 3, 1, 100);
	settle(w);
	assert_true(is_told(w, 0));
	assert_false(is_told(w, 2));
	assert_int_equal(qp_of(&w->n[1])->epsn, psn_add(FIRST_PSN, 4));
}

/* A NAK would make the requester retransmit what is held. */
static void what_is_too_far_ahead_is_dropped(void **state)
{
	struct world *w = *state;
	struct skua_qp *qp = qp_of(&w->n[1]);

	prepare(w);
	for (int i = 0; i < 2; i++) {
		request(w, REPEAT_WINDOW + 1, 1, 1000);
		settle(w);
		assert_int_equal(STAT(w, &w->n[1], seq_nak_sent), 0);
		assert_int_equal(reorder_has(rc_of(qp)->resp.early_requests, psn_add(FIRST_PSN, 2)), i);
		request(w, 2, 1, 1000);
		settle(w);
	}
}

/* The requester learns that it was late, not lost. */
static void a_packet_that_came_twice_is_told(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct loss *loss = &rc_of(qp_of(a))->req.loss;

	prepare(w);
	for (int i = 0; i < 2; i++) {
		post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 100 * MTU, b->buf, b->key, 0);
		expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	}
	assert_int_equal(loss->reo_wnd_mult, 0);
	request(w, 199, 1, 200);
	assert_true(rc_of(qp_of(b))->resp.duplicate_seen);
	settle(w);
	assert_int_equal(loss->reo_wnd_mult, 1);
}

/* Its first packets came before. */
static void new_packets_of_a_train_are_taken(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	fill(a, 8 * MTU, 1);
	request(w, 0, 3, 8);
	request(w, 0, 6, 8);
	request(w, 5, 3, 8);
	settle(w);
	assert_int_equal(qp_of(b)->epsn, psn_add(FIRST_PSN, 8));
	assert_memory_equal(at(a, a->buf), at(b, b->buf), 8 * MTU);
}

/* It was held, and then it came in a train besides; its place is needed again after a round of the window. */
static void a_place_that_was_left_is_used_again(void **state)
{
	struct world *w = *state;
	struct node *b = &w->n[1];

	prepare(w);
	request(w, 3, 1, 1000);
	request(w, 20, 1, 1000);
	request(w, 0, 8, 1000);
	settle(w);
	assert_int_equal(qp_of(b)->epsn, psn_add(FIRST_PSN, 8));
	request(w, 3 + REPEAT_WINDOW, 1, 1000);
	assert_false(rc_of(qp_of(b))->resp.duplicate_seen);
	assert_int_equal(reorder_end(rc_of(qp_of(b))->resp.early_requests), psn_add(FIRST_PSN, 4 + REPEAT_WINDOW));
}

/* A part of the READ of the first PSN, as it comes again. */
static void ask_again(struct world *w, uint32_t i, uint32_t npkts)
{
	struct node *a = &w->n[0], *b = &w->n[1];
	struct train t = train_from(b, TRAIN_READ_REQ, FIRST_PSN + i);

	t.raddr += i * MTU;
	t.msg_len = npkts * MTU;
	arrive_only(b, a, t);
}

static void a_read_that_comes_again_and_again_is_answered_once(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint64_t before;

	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, 16 * MTU, b->buf, b->key, 0);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	before = b->dev->stats.rdma_tx_packets;
	for (int i = 0; i < 3; i++)
		ask_again(w, 0, 16);
	ask_again(w, 4, 4);
	assert_int_equal(rc_of(qp_of(b))->resp.jobs_again, 1);
	settle(w);
	assert_int_equal(b->dev->stats.rdma_tx_packets - before, 16);
	/* As many parts as there may be READs; the others are dropped. */
	for (uint32_t i = 0; i < 16; i++)
		ask_again(w, i, 1);
	assert_int_equal(rc_of(qp_of(b))->resp.jobs_again, MAX_DEST_RD);
	settle(w);
	assert_int_equal(b->dev->stats.rdma_tx_packets - before, 16 + MAX_DEST_RD);
}

/* The count of READs wraps somewhere, and those before that place are remembered all the same. */
static void reads_are_remembered_beyond_four_billion(void **state)
{
	struct world *w = *state;
	struct node *b = &w->n[1];
	uint64_t before;

	rc_of(qp_of(b))->resp.num_served = UINT32_MAX - 1;
	for (uint32_t i = 0; i < 3; i++)
		ask_again(w, i, 1);
	settle(w);
	before = b->dev->stats.rdma_tx_packets;
	for (uint32_t i = 0; i < 3; i++)
		ask_again(w, i, 1);
	settle(w);
	assert_int_equal(b->dev->stats.rdma_tx_packets - before, 3);
}

/* The host destroys or resets its QP as soon as it has the last completion, before the QP has had its turn. */
static void the_ack_goes_before_the_qp(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cmd last[] = { state_cmd(b->qpn, SKUA_QPS_RESET), object_cmd(SKUA_CMD_DESTROY_QP, b->qpn) };

	for (uint32_t i = 0; i < 2; i++) {
		if (i) {
			must(w, b, init_cmd(b->qpn));
			must(w, b, rtr_cmd(b->qpn, a, a->qpn));
		}
		arrive_only(b, a, train_from(b, TRAIN_WRITE, FIRST_PSN));
		must(w, b, last[i]);
		assert_int_equal(STAT(w, b, rdma_tx_packets), i + 1);
	}
}

static uint32_t next_response(struct node *n)
{
	const struct roce_resp *resp = &rc_of(qp_of(n))->resp;
	const struct read_job *job = &resp->jobs[resp->jobs_tail & (2 * resp->jobs_size - 1)];

	return psn_add(psn_add(job->psn, job->npkts_sent), -FIRST_PSN);
}

/* The line has room for one packet at a time: a long part has begun when an earlier one is asked for. */
static void what_comes_again_is_answered_in_order(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, 16 * MTU, b->buf, b->key, 0);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	IMPAIR(b, "rate=1M,dir=out");
	ask_again(w, 6, 10);
	settle(w);
	assert_int_equal(next_response(b), 7);
	ask_again(w, 3, 1);
	ask_again(w, 4, 1);
	ask_again(w, 2, 1);
	for (uint32_t i = 2; i < 5; i++) {
		assert_int_equal(next_response(b), i);
		while (next_response(b) == i)
			next_event(w);
	}
	assert_int_equal(next_response(b), 7);
}

/*
 * A part of a READ is asked for again while its last responses wait for the line, and then all of it. All of it goes
 * again, once: if the last response went before the READ is over, the peer would send the next READ too early.
 */
static void a_read_that_is_asked_for_from_further_back(void **state)
{
	struct world *w = *state;
	struct node *b = &w->n[1];
	struct roce_resp *resp = &rc_of(qp_of(b))->resp;
	uint64_t before;

	IMPAIR(b, "rate=1M,dir=out");
	ask_again(w, 0, 10);
	settle(w);
	while (next_response(b) < 4)
		next_event(w);
	ask_again(w, 1, 9);
	assert_int_equal(next_response(b), 1);
	ask_again(w, 0, 10);
	assert_int_equal(next_response(b), 0);
	assert_int_equal(resp->jobs_again, 0);
	before = b->dev->stats.rdma_tx_packets;
	while (resp->jobs_new)
		next_event(w);
	assert_int_equal(b->dev->stats.rdma_tx_packets - before, 10);
}

/* A SEND says nowhere how long it is. It is refused where it becomes too long, whatever the receive has room for. */
static void a_send_ends_at_the_longest_message(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct { struct skua_rqe r; struct skua_sge s[3]; } rqe = {
		{ .num_sge = 2 }, { { htole64(b->buf), htole32(1u << 31), htole32(b->key) },
				    { htole64(b->buf), htole32(1u << 31), htole32(b->key) } } };
	struct seglist payload = { 1, MTU, { { at(a, a->buf), MTU } } };
	struct train t = train_from(b, TRAIN_SEND, FIRST_PSN);

	post_rqe(b, &rqe);
	t.payload = &payload;
	t.last = false;
	arrive(w, b, a, t);
	assert_int_equal(qp_of(b)->epsn, psn_add(FIRST_PSN, 1));
	/* Two million packets later. */
	conn_of(qp_of(b))->message.offset = LIMIT_MSG;
	t.first = false;
	t.psn = psn_add(FIRST_PSN, 1);
	arrive(w, b, a, t);
	assert_int_equal(STAT(w, b, invalid_nak_sent), 1);
	assert_int_equal(qp_state(w, b, b->qpn), SKUA_QPS_ERR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STEPPED(what_is_too_far_ahead_is_dropped, "REP-11"),
		STEPPED(a_send_ends_at_the_longest_message, "ERR-2 LIM-1"),
		STEPPED(what_is_missing_is_told, "REP-13 REP-15"),
		STEPPED(what_is_left_missing_is_told, "REP-13"),
		STEPPED(a_packet_that_came_twice_is_told, "REP-15 REC-8"),
		STEPPED(the_ack_goes_before_the_qp, "ROC-28"),
		STEPPED(new_packets_of_a_train_are_taken, "ROC-10"),
		STEPPED(a_place_that_was_left_is_used_again, "REP-5 REC-17"),
		STEPPED(a_read_that_comes_again_and_again_is_answered_once, "ROC-24"),
		STEPPED(reads_are_remembered_beyond_four_billion, "ROC-10 ROC-23"),
		STEPPED(what_comes_again_is_answered_in_order, "ROC-24"),
		STEPPED(a_read_that_is_asked_for_from_further_back, "ROC-24 ROC-8"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
