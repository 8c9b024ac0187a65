// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* RC between two devices: data, order, and each way to fail. */
#include "core/device.h"
#include "harness/harness.h"
#include "nic/control.h"

/* A counter as it is, without a command that the engine would have to turn for. */
#define STAT_NOW(n, name)	((n)->dev->stats.name)

static const uint32_t sizes[] = { 1, 8, 63, 64, 1023, 1024, 1025, 65536, 65537, 1048577 };

#define FOR_SIZES(len) \
	for (unsigned int s_ = 0; s_ < sizeof(sizes) / sizeof(sizes[0]) && (len = sizes[s_]); s_++)

static void write_moves_bytes(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t len;

	FOR_SIZES(len) {
		static const uint8_t zero[8];

		fill(a, len, len);
		memset(at(b, b->buf), 0, len + 11);
		post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, len, b->buf + 3, b->key, 0);
		settle(w);
		expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
		assert_memory_equal(at(b, b->buf + 3), at(a, a->buf), len);
		assert_memory_equal(at(b, b->buf), zero, 3);
		assert_memory_equal(at(b, b->buf + 3 + len), zero, 8);
		assert_null(poll_cq(b));
	}
}

/* A right is only needed where the device writes. */
static void memory_that_is_only_read_needs_no_right(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cmd mr = create_mr_cmd(a);

	mr.create_mr.access = 0;
	a->key = must(w, a, mr);
	fill(a, 3000, 1);
	post_recv(b, b->buf, 3000);
	post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 3000, 0, 0, 0);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	expect(w, b, SKUA_CQE_RECV, SKUA_CQE_SUCCESS);
	assert_memory_equal(at(b, b->buf), at(a, a->buf), 3000);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 3000, b->buf + 4096, b->key, 0);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	assert_memory_equal(at(b, b->buf + 4096), at(a, a->buf), 3000);
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, 8, b->buf, b->key, 0);
	expect_vendor(w, a, SKUA_CQE_READ, SKUA_CQE_LOC_PROT_ERR, SKUA_VENDOR_ERR_RIGHTS);
}

static uint32_t region_of_cq(struct world *w, struct node *n)
{
	struct skua_cmd mr = create_mr_cmd(n);

	mr.create_mr.iova = htole64(n->cq);
	mr.create_mr.pages = list(n->cq, 4096);
	return must(w, n, mr);
}

/* The buffers lie where the CQEs go: the host finds there what was written last. */
static void payload_is_there_before_its_cqe(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t peer = b->key;

	memset(at(a, a->buf), 0x5a, sizeof(struct skua_cqe));
	memset(at(b, b->buf), 0x5a, sizeof(struct skua_cqe));
	b->key = region_of_cq(w, b);
	post_recv(b, b->cq, sizeof(struct skua_cqe));
	post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, sizeof(struct skua_cqe), 0, 0, 0);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	expect(w, b, SKUA_CQE_RECV, SKUA_CQE_SUCCESS);
	a->key = region_of_cq(w, a);
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->cq + sizeof(struct skua_cqe), sizeof(struct skua_cqe), b->buf, peer, 0);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
}

static void read_moves_bytes(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t len;

	FOR_SIZES(len) {
		fill(b, len, len);
		post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf + 5, len, b->buf, b->key, 0);
		settle(w);
		expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
		assert_memory_equal(at(a, a->buf + 5), at(b, b->buf), len);
	}
}

static void send_meets_receive(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cqe *cqe;
	uint32_t len;

	FOR_SIZES(len) {
		fill(a, len, len);
		post_recv(b, b->buf, 2u << 20);
		post(a, SKUA_WQE_SEND_IMM, SKUA_WQE_SIGNALED, a->buf, len, 0, 0, 0x01020304);
		settle(w);
		expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
		cqe = poll_cq(b);
		assert_non_null(cqe);
		assert_int_equal(le32toh(cqe->byte_len), len);
		assert_int_equal(cqe->imm_data, 0x01020304);
		assert_memory_equal(at(b, b->buf), at(a, a->buf), len);
	}
}

static void many_messages_keep_their_order(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	for (int round = 0; round < 40; round++) {
		for (int i = 0; i < 40; i++)
			post(a, i % 3 ? SKUA_WQE_WRITE : SKUA_WQE_READ, SKUA_WQE_SIGNALED,
			     a->buf + 4096, 3000, b->buf, b->key, 0);
		settle(w);
		for (int i = 0; i < 40; i++) {
			struct skua_cqe *cqe = poll_cq(a);

			assert_non_null(cqe);
			assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
			assert_int_equal(le32toh(cqe->cookie), round * 40 + i);
		}
	}
}

static void send_without_receive_waits_and_gives_up(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 8, 0, 0, 0);
	settle(w);
	assert_null(poll_cq(a));
	post_recv(b, b->buf, 8);
	pass(w, 1000000);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	expect(w, b, SKUA_CQE_RECV, SKUA_CQE_SUCCESS);

	post(a, SKUA_WQE_SEND, 0, a->buf, 8, 0, 0, 0);
	post(a, SKUA_WQE_WRITE, 0, a->buf, 8, b->buf, b->key, 0);
	for (int i = 0; i < 2; i++) {	/* rnr_retry */
		settle(w);
		assert_null(poll_cq(a));
		pass(w, 1000000);
	}
	settle(w);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_RNR_RETRY_EXC_ERR);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_WR_FLUSH_ERR);
}

/* Before it has said so: the peer hears of the message, not of the wait. */
static void a_receiver_that_is_ready_by_now_does_not_say_not_ready(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cmd rts = rts_cmd(b->qpn);

	must(w, b, state_cmd(b->qpn, SKUA_QPS_RESET));
	must(w, b, init_cmd(b->qpn));
	must(w, b, rtr_cmd(b->qpn, a, a->qpn));
	rts.modify_qp.attr.rnr_retry = 0;
	must(w, b, rts);
	post(b, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, b->buf, 8, 0, 0, 0);
	/* Its SEND has come when it has had its turn, and is answered in a's. */
	while (!STAT_NOW(b, rdma_tx_packets))
		engine_step(w->engines[0]);
	assert_int_equal(STAT_NOW(a, rnr_nak_sent), 1);
	assert_int_equal(STAT_NOW(a, rdma_tx_packets), 0);
	post_recv(a, a->buf, 8);
	arrive(w, a, b, train_from(a, TRAIN_SEND, FIRST_PSN));
	expect(w, b, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	expect(w, a, SKUA_CQE_RECV, SKUA_CQE_SUCCESS);
	assert_int_equal(STAT(w, b, rnr_nak_received), 0);
}

static void bad_rkey_is_refused(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	post_recv(b, b->buf, 8);
	post(a, SKUA_WQE_WRITE, 0, a->buf, 8, b->buf, b->key ^ 1, 0);
	post(a, SKUA_WQE_WRITE, 0, a->buf, 8, b->buf, b->key, 0);
	settle(w);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_REM_ACCESS_ERR);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_WR_FLUSH_ERR);
	expect(w, b, SKUA_CQE_RECV, SKUA_CQE_WR_FLUSH_ERR);
	assert_null(poll_cq(a));
	assert_null(poll_cq(b));
}

static void read_out_of_bounds_is_refused(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	post(a, SKUA_WQE_WRITE, 0, a->buf, 8, b->buf, b->key, 0);
	post(a, SKUA_WQE_READ, 0, a->buf, 8, b->buf + (4u << 20) - 7, b->key, 0);
	settle(w);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_REM_ACCESS_ERR);
}

static void own_bad_lkey_is_a_protection_error(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 8, b->buf, b->key, 0);
	post(a, SKUA_WQE_WRITE, 0, a->buf + (4u << 20), 8, b->buf, b->key, 0);
	settle(w);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_LOC_PROT_ERR);
}

static void lost_peer_ends_in_retry_exceeded(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	skua_dev_reset(b->dev);
	post(a, SKUA_WQE_WRITE, 0, a->buf, 8, b->buf, b->key, 0);
	for (int i = 0; i < 7; i++) {
		settle(w);
		assert_null(poll_cq(a));
		pass(w, 4096ull << 14);
	}
	settle(w);
	pass(w, 4096ull << 14);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_RETRY_EXC_ERR);
}

/* The responses would take fewer PSNs than the request has set aside for them. */
static void responses_of_another_path_mtu_do_not_fit(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cmd rtr = rtr_cmd(a->qpn, b, b->qpn);

	rtr.modify_qp.attr.path_mtu = 1;
	must(w, a, state_cmd(a->qpn, SKUA_QPS_RESET));
	must(w, a, init_cmd(a->qpn));
	must(w, a, rtr);
	must(w, a, rts_cmd(a->qpn));
	post(a, SKUA_WQE_READ, 0, a->buf, 8192, b->buf, b->key, 0);
	expect_vendor(w, a, SKUA_CQE_READ, SKUA_CQE_BAD_RESP_ERR, SKUA_VENDOR_ERR_PEER_RESPONSE);
}

/* What counts is the length of each packet, as over a wire, where nobody sees what the peer takes for its path MTU. */
static void messages_of_another_path_mtu(void **state)
{
	static const struct { uint8_t path_mtu, opcode; uint32_t len; bool fits; } rows[] = {
		{ 1, SKUA_WQE_SEND, 8, true }, { 1, SKUA_WQE_WRITE, 8, true }, { 1, SKUA_WQE_WRITE, 256, true },
		{ 5, SKUA_WQE_SEND, 0, true }, { 5, SKUA_WQE_WRITE, 1024, true },
		{ 1, SKUA_WQE_SEND, 257, false }, { 1, SKUA_WQE_WRITE, 2048, false },
		{ 5, SKUA_WQE_SEND, 1025, false }, { 5, SKUA_WQE_WRITE, 4096, false },
		{ 5, SKUA_WQE_WRITE, 8192, false },
	};
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cmd port = port_cmd(SKUA_PORT_SET_MTU, 0);

	port.set_port.mtu = htole32(4200);
	must(w, a, port);
	must(w, b, port);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool send = rows[i].opcode == SKUA_WQE_SEND;
		struct skua_cmd rtr = rtr_cmd(a->qpn, b, b->qpn);

		rtr.modify_qp.attr.path_mtu = rows[i].path_mtu;
		reconnect(w, b, a);
		reconnect(w, a, b);
		must(w, a, state_cmd(a->qpn, SKUA_QPS_RESET));
		must(w, a, init_cmd(a->qpn));
		must(w, a, rtr);
		must(w, a, rts_cmd(a->qpn));
		if (send)
			post_recv(b, b->buf, 4096);
		post(a, rows[i].opcode, SKUA_WQE_SIGNALED, a->buf, rows[i].len, b->buf, b->key, 0);
		expect(w, a, send ? SKUA_CQE_SEND : SKUA_CQE_WRITE,
		       rows[i].fits ? SKUA_CQE_SUCCESS : SKUA_CQE_REM_INV_REQ_ERR);
		if (send)
			expect(w, b, SKUA_CQE_RECV, rows[i].fits ? SKUA_CQE_SUCCESS : SKUA_CQE_WR_FLUSH_ERR);
		if (!rows[i].fits)
			expect_event(w, b, SKUA_EVENT_QP_REQ_ERR, b->qpn);
	}
}

/* With all bytes come, one packet more would take the PSN of the next message. */
static void the_last_response_is_the_one_with_the_last_byte(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct train t = train_from(a, TRAIN_READ_RESP, FIRST_PSN);
	static uint8_t bytes[2048];
	struct seglist payload = { 1, sizeof(bytes), { { bytes, sizeof(bytes) } } };

	skua_dev_set_link(b->dev, false);
	post(a, SKUA_WQE_READ, 0, a->buf, sizeof(bytes), b->buf, b->key, 0);
	settle(w);
	t.last = false;
	t.npkts = 2;
	t.syndrome = AETH_ACK;
	t.payload = &payload;
	arrive(w, a, b, t);
	expect_vendor(w, a, SKUA_CQE_READ, SKUA_CQE_BAD_RESP_ERR, SKUA_VENDOR_ERR_PEER_RESPONSE);
}

static void arming_gives_one_event(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cq_dbr *dbr = at(a, a->cq_dbr);

	__atomic_store_n(&dbr->arm, htole64(SKUA_CQ_ARM(SKUA_CQ_ARM_NEXT, 1, a->cq_ci)),
			 __ATOMIC_SEQ_CST);
	for (int i = 0; i < 3; i++)
		post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 8, b->buf, b->key, 0);
	settle(w);
	assert_int_equal(a->irqs[1], 1);
}

/* The record of an SQ claims more than the ring holds. All other QPs go on: those of the device, and the peer's. */
static void overrun_index_kills_only_its_qp(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct queues bad = new_queues(a), peer = new_queues(b);

	a->qpn = must(w, a, create_qp_cmd(a));
	b->qpn = must(w, b, create_qp_cmd(b));
	reconnect(w, a, b);
	reconnect(w, b, a);
	host_store32(at(a, bad.sq_dbr), bad.sq_pi + (1 << LOG_SQ) + 1);
	ring(a, SKUA_DB_SQ, bad.qpn, 0);
	expect_event(w, a, SKUA_EVENT_QP_FATAL, bad.qpn);
	assert_int_equal(qp_state(w, a, bad.qpn), SKUA_QPS_ERR);
	for (int i = 0; i < 2; i++) {
		struct node *n = &w->n[i], *to = &w->n[!i];

		fill(n, 3000, (uint32_t)i);
		post_recv(to, to->buf + 4096, 3000);
		post(n, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, n->buf, 3000, 0, 0, 0);
		expect(w, n, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
		expect(w, to, SKUA_CQE_RECV, SKUA_CQE_SUCCESS);
		assert_memory_equal(at(to, to->buf + 4096), at(n, n->buf), 3000);
	}
	assert_int_equal(qp_state(w, a, a->qpn), SKUA_QPS_RTS);
	assert_int_equal(qp_state(w, b, b->qpn), SKUA_QPS_RTS);
	assert_int_equal(qp_state(w, b, peer.qpn), SKUA_QPS_RTS);
	for (int i = 0; i < 2; i++) {
		expect_none(w, &w->n[i]);
		expect_no_event(w, &w->n[i]);
	}
}

static void publishing_over_work_under_way_is_an_overrun(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	/* No receive: the SEND stays in the queue, and its block is not the host's. */
	post(a, SKUA_WQE_SEND, 0, a->buf, 8, 0, 0, 0);
	settle(w);
	for (int i = 0; i < 1 << LOG_SQ; i++)
		post(a, SKUA_WQE_NOP, 0, 0, 0, 0, 0, 0);
	post_recv(b, b->buf, 8);
	pass(w, 1000000);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_WR_FLUSH_ERR);
	assert_null(poll_cq(a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STEPPED(write_moves_bytes, "ROC-6 CQE-1 MEM-3"),
		STEPPED(read_moves_bytes, "ROC-7 WQE-9 ORD-2"),
		STEPPED(memory_that_is_only_read_needs_no_right, "WQE-9"),
		STEPPED(payload_is_there_before_its_cqe, "MEM-10"),
		STEPPED(send_meets_receive, "RQE-3 CQE-1"),
		STEPPED(many_messages_keep_their_order, "CQE-2 ROC-8"),
		STEPPED(send_without_receive_waits_and_gives_up, "ROC-11 ROC-12 ERR-1"),
		STEPPED(a_receiver_that_is_ready_by_now_does_not_say_not_ready, "ROC-26"),
		STEPPED(bad_rkey_is_refused, "MEM-1 MEM-2 ERR-2 ORD-7"),
		STEPPED(read_out_of_bounds_is_refused, "MEM-1 ERR-4"),
		STEPPED(own_bad_lkey_is_a_protection_error, "MEM-1 ERR-1"),
		STEPPED(lost_peer_ends_in_retry_exceeded, "ROC-13"),
		STEPPED(responses_of_another_path_mtu_do_not_fit, "ROC-7 ERR-1"),
		STEPPED(messages_of_another_path_mtu, "ROC-6"),
		STEPPED(the_last_response_is_the_one_with_the_last_byte, "ROC-7 ERR-1"),
		STEPPED(arming_gives_one_event, "ARM-1 ARM-5"),
		STEPPED(overrun_index_kills_only_its_qp, "DBR-11 ERR-8 SEC-8"),
		STEPPED(publishing_over_work_under_way_is_an_overrun, "DBR-11"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
