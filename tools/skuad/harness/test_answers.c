// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the requester makes of answers and of none, what the responder makes of gaps and duplicates; events of a QP, and
 * the order of a flush.
 */
#include "core/device.h"
#include "harness/errors.h"
#include "harness/lossy.h"

/* The peer's QP does not answer. */
static void mute(struct world *w, struct node *n)
{
	must(w, n, port_cmd(SKUA_PORT_SET_FLAGS, 0));
}

/* What the requester makes of answers. */

/* a has sent one SEND of @len bytes, or a READ, that nobody heard. */
static void send_unheard(struct world *w, struct node *a, struct node *b, uint8_t opcode, uint32_t len)
{
	mute(w, b);
	post(a, opcode, SKUA_WQE_SIGNALED, a->buf, len, b->buf, b->key, 0);
	post(a, SKUA_WQE_NOP, 0, 0, 0, 0, 0, 0);
	settle(w);
}

static struct train answer(struct node *a, uint32_t psn, uint8_t syndrome)
{
	struct train t = train_from(a, TRAIN_ACK, psn);

	t.syndrome = syndrome;
	return t;
}

static void naks_and_their_status(void **state)
{
	static const struct { uint8_t syndrome, status; } rows[] = {
		{ AETH_NAK_INV_REQ, SKUA_CQE_REM_INV_REQ_ERR },
		{ AETH_NAK_ACCESS, SKUA_CQE_REM_ACCESS_ERR },
		{ AETH_NAK_OP, SKUA_CQE_REM_OP_ERR },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world *w = world_create(false);
		struct node *a = &w->n[0], *b = &w->n[1];

		send_unheard(w, a, b, SKUA_WQE_SEND, 5000);
		arrive(w, a, b, answer(a, FIRST_PSN + 2, rows[i].syndrome));
		expect_vendor(w, a, SKUA_CQE_SEND, rows[i].status, SKUA_VENDOR_ERR_PEER_NAK);
		expect(w, a, SKUA_CQE_NOP, SKUA_CQE_WR_FLUSH_ERR);
		assert_int_equal(qp_state(w, a, a->qpn), SKUA_QPS_ERR);
		expect_no_event(w, a);
		world_destroy(w);
	}
}

/* A NAK acknowledges what was before it: that succeeds, and what is behind it is flushed. */
static void a_nak_in_the_middle(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	mute(w, b);
	for (int i = 0; i < 4; i++)
		post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 8, 0, 0, 0);
	settle(w);
	arrive(w, a, b, answer(a, FIRST_PSN + 2, AETH_NAK_ACCESS));
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_REM_ACCESS_ERR);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_WR_FLUSH_ERR);
}

static void no_answer(void **state)
{
	(void)state;
	for (uint8_t retries = 0; retries <= 7; retries++) {
		struct world *w = world_create(false);
		struct node *a = &w->n[0], *b = &w->n[1];
		struct skua_cmd rts = rts_cmd(a->qpn);

		rts.modify_qp.attr.retry_cnt = retries;
		restart(w, a, rtr_cmd(a->qpn, b, b->qpn), rts);
		send_unheard(w, a, b, SKUA_WQE_SEND, 5000);
		for (int i = 0; i < retries; i++) {
			pass(w, 4096ull << 14);
			expect_none(w, a);
		}
		pass(w, 4096ull << 14);
		expect_vendor(w, a, SKUA_CQE_SEND, SKUA_CQE_RETRY_EXC_ERR, SKUA_VENDOR_ERR_TIMEOUT);
		expect(w, a, SKUA_CQE_NOP, SKUA_CQE_WR_FLUSH_ERR);
		assert_int_equal(STAT(w, a, ack_timeouts), retries + 1);
		/* Each time as few as the congestion window ever has. */
		assert_int_equal(STAT(w, a, retransmits), retries * 2);
		expect_no_event(w, a);
		world_destroy(w);
	}
}

/* Progress begins the count anew; without a timeout there is none, and NAKs do not count. */
static void the_count_of_retries(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cmd rts = rts_cmd(a->qpn);

	rts.modify_qp.attr.retry_cnt = 1;
	restart(w, a, rtr_cmd(a->qpn, b, b->qpn), rts);
	send_unheard(w, a, b, SKUA_WQE_SEND, 5000);
	for (uint32_t i = 0; i < 4; i++) {
		pass(w, 4096ull << 14);
		arrive(w, a, b, answer(a, FIRST_PSN + i, AETH_ACK));
		expect_none(w, a);
	}
	pass(w, 4096ull << 14);
	expect_none(w, a);
	pass(w, 4096ull << 14);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_RETRY_EXC_ERR);

	rts.modify_qp.attr.timeout = 0;
	restart(w, a, rtr_cmd(a->qpn, b, b->qpn), rts);
	poll_cq(a);
	send_unheard(w, a, b, SKUA_WQE_SEND, 5000);
	for (int i = 0; i < 100; i++) {
		pass(w, 10000000000);
		arrive(w, a, b, answer(a, FIRST_PSN, AETH_NAK_SEQ));
		expect_none(w, a);
	}
	assert_int_equal(qp_state(w, a, a->qpn), SKUA_QPS_RTS);
}

static void no_receive(void **state)
{
	(void)state;
	for (uint8_t retries = 0; retries <= 7; retries++) {
		struct world *w = world_create(false);
		struct node *a = &w->n[0], *b = &w->n[1];
		struct skua_cmd rts = rts_cmd(a->qpn);
		int times = retries == 7 ? 100 : retries;

		rts.modify_qp.attr.rnr_retry = retries;
		restart(w, a, rtr_cmd(a->qpn, b, b->qpn), rts);
		post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 5000, 0, 0, 0);
		post(a, SKUA_WQE_NOP, 0, 0, 0, 0, 0, 0);
		for (int i = 0; i < times; i++) {
			expect_none(w, a);
			assert_int_equal(STAT(w, b, rnr_nak_sent), i + 1);
			pass(w, 640000);
		}
		if (retries == 7) {
			expect_none(w, a);
			assert_int_equal(qp_state(w, a, a->qpn), SKUA_QPS_RTS);
			world_destroy(w);
			return;
		}
		expect_vendor(w, a, SKUA_CQE_SEND, SKUA_CQE_RNR_RETRY_EXC_ERR,
			      SKUA_VENDOR_ERR_PEER_NAK);
		expect(w, a, SKUA_CQE_NOP, SKUA_CQE_WR_FLUSH_ERR);
		/* The responder knows of no fault. */
		assert_int_equal(qp_state(w, b, b->qpn), SKUA_QPS_RTS);
		expect_no_event(w, b);
		world_destroy(w);
	}
}

/* Each code of the RNR timer: not sent again a moment too early. */
static void rnr_timers(void **state)
{
	static const uint32_t us[32] = {
		655360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1280, 1920, 2560,
		3840, 5120, 7680, 10240, 15360, 20480, 30720, 40960, 61440, 81920, 122880, 163840,
		245760, 327680, 491520,
	};
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	for (uint8_t code = 0; code < 32; code++) {
		must(w, b, modify_cmd(b->qpn, SKUA_QP_ATTR_MIN_RNR_TIMER,
				      (struct skua_qp_attr){ .min_rnr_timer = code }));
		post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 8, 0, 0, 0);
		settle(w);
		post_recv(b, b->buf, 8);
		pass(w, us[code] * 1000ull - 1);
		expect_none(w, a);
		pass(w, 1);
		expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
		expect(w, b, SKUA_CQE_RECV, SKUA_CQE_SUCCESS);
	}
}

static void answers_that_do_not_fit(void **state)
{
	static const struct {
		uint8_t opcode;
		enum train_op op;
		uint32_t len;
		bool last;
	} rows[] = {
		{ SKUA_WQE_READ, TRAIN_READ_RESP, 100, true },	/* of 3000 bytes */
		{ SKUA_WQE_READ, TRAIN_READ_RESP, 1000, false },
		{ SKUA_WQE_READ, TRAIN_READ_RESP, 3001, true },
		{ SKUA_WQE_READ, TRAIN_ATOMIC_RESP, 0, true },
		{ SKUA_WQE_FETCH_ADD, TRAIN_READ_RESP, 8, true },
		{ SKUA_WQE_CMP_SWAP, TRAIN_READ_RESP, 0, true },
		{ SKUA_WQE_MASKED_CMP_SWAP, TRAIN_READ_RESP, 0, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world *w = world_create(false);
		struct node *a = &w->n[0], *b = &w->n[1];
		struct message m = { rows[i].opcode, rows[i].opcode == SKUA_WQE_READ ? 3000 : 8,
				     a->buf, b->buf, 0, 0 };
		struct skua_cqe *cqe;

		mute(w, b);
		post_message(a, b, &m);
		settle(w);
		memset(at(a, a->buf), 0x44, 4096);
		arrive(w, a, b, with_payload(train_from(a, rows[i].op, FIRST_PSN), rows[i].len, true,
					     rows[i].last));
		cqe = await_cqe(w, a);
		if (cqe->status != SKUA_CQE_BAD_RESP_ERR ||
		    cqe->vendor_err != SKUA_VENDOR_ERR_PEER_RESPONSE)
			fail_msg("row %zu: status %d", i, cqe->status);
		for (uint32_t j = 0; j < 4096; j++)
			assert_int_equal(*(uint8_t *)at(a, a->buf + j), 0x44);
		assert_int_equal(qp_state(w, a, a->qpn), SKUA_QPS_ERR);
		world_destroy(w);
	}
}

/* Answers to nothing that was asked: they are not believed. */
static void answers_that_nobody_asked_for(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	send_unheard(w, a, b, SKUA_WQE_SEND, 5000);
	arrive(w, a, b, answer(a, FIRST_PSN + 5, AETH_ACK));		/* not sent yet */
	arrive(w, a, b, answer(a, FIRST_PSN + 5, AETH_NAK_ACCESS));
	arrive(w, a, b, answer(a, FIRST_PSN - 1, AETH_NAK_ACCESS));	/* long over */
	arrive(w, a, b, answer(a, FIRST_PSN, 0x64));			/* no such NAK */
	arrive(w, a, b, answer(a, FIRST_PSN, 0x40));
	arrive(w, a, b, with_payload(train_from(a, TRAIN_READ_RESP, FIRST_PSN), 8, true, true));
	arrive(w, a, b, train_from(a, TRAIN_ATOMIC_RESP, FIRST_PSN));
	expect_none(w, a);
	assert_int_equal(qp_state(w, a, a->qpn), SKUA_QPS_RTS);
	arrive(w, a, b, answer(a, FIRST_PSN + 4, AETH_ACK));
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
}

/* Memory of a READ that goes away between request and response. */
static void memory_for_a_response_goes_away(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cmd mr = create_mr_cmd(a);
	uint32_t key;

	mr.create_mr.pages = list(EXTRA, 4096);
	a->key = key = must(w, a, mr);
	send_unheard(w, a, b, SKUA_WQE_READ, 8);
	must(w, a, object_cmd(SKUA_CMD_DESTROY_MR, key));
	arrive(w, a, b, with_payload(train_from(a, TRAIN_READ_RESP, FIRST_PSN), 8, true, true));
	expect_vendor(w, a, SKUA_CQE_READ, SKUA_CQE_LOC_PROT_ERR, SKUA_VENDOR_ERR_KEY_UNKNOWN);
}

/* Sequence and duplicates at the responder. */

static void one_nak_for_a_gap(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	b->dev->inject.go_back_n = true;
	for (uint32_t i = 1; i < 5; i++)
		arrive(w, b, a, with_payload(train_from(b, TRAIN_WRITE, FIRST_PSN + i), 8, true, true));
	assert_int_equal(STAT(w, b, seq_nak_sent), 1);
	assert_int_equal(STAT(w, b, out_of_order), 4);
	arrive(w, b, a, with_payload(train_from(b, TRAIN_WRITE, FIRST_PSN), 8, true, true));
	arrive(w, b, a, with_payload(train_from(b, TRAIN_WRITE, FIRST_PSN + 2), 8, true, true));
	assert_int_equal(STAT(w, b, seq_nak_sent), 2);
	assert_int_equal(STAT(w, b, rdma_rx_write), 1);
	assert_int_equal(qp_state(w, b, b->qpn), SKUA_QPS_RTS);
	expect_no_event(w, b);
}

/* Several packets of a message that come as a whole: each of them counts. */
static void each_packet_of_a_train_counts(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct train t = with_payload(train_from(b, TRAIN_WRITE, FIRST_PSN + 5), 3072, true, true);

	t.npkts = 3;
	b->dev->inject.go_back_n = true;
	arrive(w, b, a, t);
	assert_int_equal(STAT(w, b, out_of_order), 3);
	t.psn = FIRST_PSN;
	arrive(w, b, a, t);
	assert_int_equal(STAT(w, b, duplicates), 0);
	arrive(w, b, a, t);
	assert_int_equal(STAT(w, b, duplicates), 3);
	t.psn = psn_add(FIRST_PSN, 3);
	t.last = false;
	arrive(w, b, a, t);
	/* The last of these is new. */
	t.psn = psn_add(FIRST_PSN, 4);
	t.first = false;
	arrive(w, b, a, t);
	assert_int_equal(STAT(w, b, duplicates), 5);
	t.dest_qpn ^= 1;
	arrive(w, b, a, t);
	assert_int_equal(STAT(w, b, rdma_rx_bad_qp), 3);
}

static uint64_t answered(struct world *w, struct node *n, struct node *peer, struct train t)
{
	uint64_t before = STAT(w, n, rdma_tx_packets);

	arrive(w, n, peer, t);
	return STAT(w, n, rdma_tx_packets) - before;
}

static void duplicates(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct train send = with_payload(train_from(b, TRAIN_SEND, FIRST_PSN), 8, true, true);
	struct train read = train_from(b, TRAIN_READ_REQ, FIRST_PSN + 1), part;
	struct skua_cmd all = create_mr_cmd(b);

	post_recv(b, b->buf, 8);
	post_recv(b, b->buf, 8);
	read.msg_len = 5000;
	for (int i = 0; i < 3; i++)	/* acknowledged again, carried out once */
		assert_int_equal(answered(w, b, a, send), 1);
	expect(w, b, SKUA_CQE_RECV, SKUA_CQE_SUCCESS);
	expect_none(w, b);
	for (int i = 0; i < 3; i++)	/* served again */
		assert_int_equal(answered(w, b, a, read), 5);
	part = read;
	part.psn = psn_add(read.psn, 3);
	part.raddr += 3072;
	part.msg_len = 5000 - 3072;
	assert_int_equal(answered(w, b, a, part), 2);
	/* What the READ did not ask for is not given. */
	part.rkey ^= 1;
	assert_int_equal(answered(w, b, a, part), 0);
	all.create_mr.length = htole64(BUF_SIZE);
	all.create_mr.pages = list(b->buf, BUF_SIZE);
	part.rkey = must(w, b, all);		/* another region, of the same memory */
	assert_int_equal(answered(w, b, a, part), 0);
	part.rkey = read.rkey;
	part.msg_len++;
	assert_int_equal(answered(w, b, a, part), 0);
	part = read;
	part.raddr += 4096;
	assert_int_equal(answered(w, b, a, part), 0);
	part = read;
	part.psn = psn_add(FIRST_PSN, 0);	/* a SEND had it */
	assert_int_equal(answered(w, b, a, part), 0);
	part = read;
	part.psn = psn_add(FIRST_PSN, PSN_MASK - 100);	/* before the connection */
	assert_int_equal(answered(w, b, a, part), 0);
	/* Nor what is not allowed any more. */
	must(w, b, object_cmd(SKUA_CMD_DESTROY_MR, b->key));
	assert_int_equal(answered(w, b, a, read), 0);
	assert_int_equal(qp_state(w, b, b->qpn), SKUA_QPS_RTS);
	expect_no_event(w, b);
}

/* READs that come again do not use up the place of new ones. */
static void duplicates_beside_new_reads(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct train read = train_from(b, TRAIN_READ_REQ, FIRST_PSN);

	read.msg_len = 8;
	for (int i = 0; i < 4; i++, read.psn = psn_add(read.psn, 1))	/* max_dest_rd_atomic */
		arrive(w, b, a, read);
	/* No turn of the engine in between: all are waiting at once. */
	for (uint32_t i = 0; i < 4; i++) {
		struct train again = read;

		again.psn = psn_add(FIRST_PSN, i);
		arrive_only(b, a, again);
	}
	for (uint32_t i = 0; i < 4; i++) {
		struct train next = read;

		next.psn = psn_add(read.psn, i);
		arrive_only(b, a, next);
	}
	settle(w);
	assert_int_equal(qp_state(w, b, b->qpn), SKUA_QPS_RTS);
	assert_int_equal(STAT(w, b, rdma_rx_read), 8);
}

/* Events */

static void to_rtr(struct world *w, struct node *n, struct node *peer)
{
	must(w, n, state_cmd(n->qpn, SKUA_QPS_RESET));
	must(w, n, init_cmd(n->qpn));
	must(w, n, rtr_cmd(n->qpn, peer, peer->qpn));
}

static void communication_is_established(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	b->dev->inject.go_back_n = true;
	to_rtr(w, b, a);
	arrive(w, b, a, answer(b, FIRST_PSN, AETH_ACK));	/* not a request */
	assert_int_equal(STAT(w, b, rdma_rx_bad_qp), 1);
	arrive(w, b, a, with_payload(train_from(b, TRAIN_WRITE, FIRST_PSN + 1), 8, true, true));
	post(a, SKUA_WQE_SEND, 0, a->buf, 8, 0, 0, 0);		/* not carried out: no receive */
	expect_no_event(w, b);
	post_recv(b, b->buf, 8);
	pass(w, 1000000);
	expect_event(w, b, SKUA_EVENT_COMM_EST, b->qpn);
	expect(w, b, SKUA_CQE_RECV, SKUA_CQE_SUCCESS);
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, 8, b->buf, b->key, 0);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	expect_no_event(w, b);					/* once */
	assert_int_equal(qp_state(w, b, b->qpn), SKUA_QPS_RTR);
	/* After a RESET it may come again; in RTS it is not needed. */
	to_rtr(w, b, a);
	reconnect(w, a, b);
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, 8, b->buf, b->key, 0);
	expect_event(w, b, SKUA_EVENT_COMM_EST, b->qpn);
	reconnect(w, b, a);
	reconnect(w, a, b);
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, 8, b->buf, b->key, 0);
	expect_no_event(w, b);
}

/* One event for the fault that moved the QP to ERR, none for what comes then, or for MODIFY_QP. */
static void events_of_a_qp(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct train bad = train_from(b, TRAIN_WRITE, FIRST_PSN);

	bad.rkey ^= 1;
	bad = with_payload(bad, 8, true, true);
	arrive(w, b, a, bad);
	expect_event(w, b, SKUA_EVENT_QP_ACCESS_ERR, b->qpn);
	arrive(w, b, a, bad);
	host_store32(at(b, b->rq_dbr), 1000);			/* an overrun, in ERR */
	pass(w, 20000000);
	expect_no_event(w, b);
	/* After RESET a fault raises one again. */
	reconnect(w, b, a);
	arrive(w, b, a, bad);
	expect_event(w, b, SKUA_EVENT_QP_ACCESS_ERR, b->qpn);
	/* The host's own wish raises none; a queue that becomes bad then does. */
	reconnect(w, b, a);
	must(w, b, state_cmd(b->qpn, SKUA_QPS_ERR));
	expect_no_event(w, b);
	host_store32(at(b, b->rq_dbr), 1000);
	pass(w, 20000000);
	expect_event(w, b, SKUA_EVENT_QP_FATAL, b->qpn);
	host_store32(at(b, b->sq_dbr), 1000);
	pass(w, 20000000);
	expect_no_event(w, b);
}

/* A request of its own fails while a READ of its peer is half answered. Then the memory of the READ goes. */
static void a_read_of_a_qp_in_err_raises_no_event(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = must(w, b, create_mr_cmd(b));

	IMPAIR(b, "rate=1M,dir=out");
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, 4096, b->buf, key, 0);
	settle(w);
	b->key ^= 1;
	post(b, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, b->buf, 8, a->buf, a->key, 0);
	expect(w, b, SKUA_CQE_WRITE, SKUA_CQE_LOC_PROT_ERR);
	must(w, b, object_cmd(SKUA_CMD_DESTROY_MR, key));
	for (int i = 0; i < 10; i++)
		next_event(w);
	expect_no_event(w, b);
	/* The peer is told all the same. */
	assert_int_equal(STAT(w, b, access_nak_sent), 1);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_REM_ACCESS_ERR);
	/* It does not count as the one event of the QP. */
	host_store32(at(b, b->rq_dbr), 1000);
	pass(w, 20000000);
	expect_event(w, b, SKUA_EVENT_QP_FATAL, b->qpn);
}

/* In ERR all that is posted is flushed in order, by whatever queue; sooner or later. */
static void the_order_of_a_flush(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t sends = 0, receives = 0;

	for (int i = 0; i < 20; i++) {
		post_recv(a, a->buf, 64);
		post(a, i % 3 ? SKUA_WQE_WRITE : SKUA_WQE_SEND, i & 1 ? SKUA_WQE_SIGNALED : 0, a->buf, 64,
		     b->buf, b->key, 0);
	}
	settle(w);				/* the first SEND waits for a receive */
	must(w, a, state_cmd(a->qpn, SKUA_QPS_ERR));
	settle(w);
	for (int i = 20; i < 40; i++) {
		post(a, SKUA_WQE_NOP, 0, 0, 0, 0, 0, 0);
		post_recv(a, a->buf, 64);
	}
	pass(w, 10000000);
	while (sends + receives < 80) {
		struct skua_cqe *cqe = await_cqe(w, a);

		assert_int_equal(cqe->status, SKUA_CQE_WR_FLUSH_ERR);
		assert_int_equal(cqe->vendor_err, SKUA_VENDOR_ERR_NONE);
		if (cqe->opcode & SKUA_CQE_OPCODE_RECV)
			assert_int_equal(le32toh(cqe->cookie), receives++);
		else
			assert_int_equal(le32toh(cqe->cookie), sends++);
	}
	assert_int_equal(sends, 40);
	expect_none(w, a);
}

/* A receive that was begun is flushed where the fault is not its own. */
static void a_receive_that_was_begun(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	post_recv(b, b->buf, 8192);
	arrive(w, b, a, with_payload(train_from(b, TRAIN_SEND, FIRST_PSN), 1024, true, false));
	must(w, b, state_cmd(b->qpn, SKUA_QPS_ERR));
	expect(w, b, SKUA_CQE_RECV, SKUA_CQE_WR_FLUSH_ERR);
	expect_none(w, b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TABLE(naks_and_their_status, "ERR-1"),
		STEPPED(a_nak_in_the_middle, "ERR-1 ORD-7"),
		TABLE(no_answer, "ROC-13 ERR-1 STA-3"),
		STEPPED(the_count_of_retries, "ROC-13 ERR-1"),
		TABLE(no_receive, "ROC-12 ERR-1 ERR-2"),
		STEPPED(rnr_timers, "ROC-11 ROC-12"),
		TABLE(answers_that_do_not_fit, "ERR-1"),
		STEPPED(answers_that_nobody_asked_for, "SEC-5"),
		STEPPED(memory_for_a_response_goes_away, "ERR-1 MEM-14"),
		STEPPED(one_nak_for_a_gap, "ROC-10 ERR-2"),
		STEPPED(each_packet_of_a_train_counts, "STA-3"),
		STEPPED(duplicates, "ROC-10 ROC-23 SEC-5"),
		STEPPED(duplicates_beside_new_reads, "ROC-8 ROC-10"),
		STEPPED(communication_is_established, "ERR-7 ROC-15"),
		STEPPED(events_of_a_qp, "ERR-11 ERR-12 ERR-8"),
		STEPPED(a_read_of_a_qp_in_err_raises_no_event, "ERR-11"),
		STEPPED(the_order_of_a_flush, "ORD-7 DBR-10"),
		STEPPED(a_receive_that_was_begun, "ORD-8"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
