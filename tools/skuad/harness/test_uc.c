// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* UC: messages that arrive, messages of which something is lost or wrong, and what is left of them. */
#include "core/qp.h"
#include "harness/datagram.h"
#include "link/impair.h"
#include "nic/control.h"

#define UC_RTR	(SKUA_QP_ATTR_STATE | SKUA_QP_ATTR_AV | SKUA_QP_ATTR_PATH_MTU | \
		 SKUA_QP_ATTR_DEST_QPN | SKUA_QP_ATTR_RQ_PSN)
#define UC_RTS	(SKUA_QP_ATTR_STATE | SKUA_QP_ATTR_SQ_PSN)
#define MTU	1024

static void create_uc(struct world *w, struct node *n)
{
	struct skua_cmd cmd;

	new_queues(n);
	cmd = create_qp_cmd(n);
	cmd.create_qp.type = SKUA_QPT_UC;
	n->qpn = must(w, n, cmd);
}

static void bring(struct world *w, struct node *n, const struct node *peer, uint8_t to_state)
{
	struct skua_cmd rtr = rtr_cmd(n->qpn, peer, peer->qpn), rts = rts_cmd(n->qpn);

	must(w, n, state_cmd(n->qpn, SKUA_QPS_RESET));
	host_store32(at(n, n->sq_dbr), 0);
	host_store32(at(n, n->rq_dbr), 0);
	n->sq_pi = 0;
	n->rq_pi = 0;
	rtr.modify_qp.mask = htole32(UC_RTR);
	rts.modify_qp.mask = htole32(UC_RTS);
	must(w, n, init_cmd(n->qpn));
	must(w, n, rtr);
	if (to_state == SKUA_QPS_RTS)
		must(w, n, rts);
}

static struct world *create(bool threaded)
{
	struct world *w = world_create(threaded);

	for (int i = 0; i < 2; i++)
		create_uc(w, &w->n[i]);
	for (int i = 0; i < 2; i++)
		bring(w, &w->n[i], &w->n[!i], SKUA_QPS_RTS);
	return w;
}

static int setup_uc(void **state)
{
	*state = create(false);
	return 0;
}

static int setup_uc_threaded(void **state)
{
	*state = create(true);
	return 0;
}

static void use_packets(struct world *w, const char *rule)
{
	struct impair_config config = { 0 };
	char err[80];

	assert_true(impair_parse(&config, rule, err, sizeof(err)));
	for (int i = 0; i < 2; i++)
		assert_true(skua_dev_set_impair(w->n[i].dev, &config));
}

static void messages(struct world *w)
{
	static const uint32_t sizes[] = { 0, 1, MTU, MTU + 1, 65536, 65537, 300001 };
	struct node *a = &w->n[0], *b = &w->n[1];
	uint64_t there = b->buf + (1u << 20);

	for (uint32_t i = 0; i < sizeof(sizes) / 4 * 4; i++) {
		uint32_t len = sizes[i / 4];
		struct skua_cqe *cqe;
		bool write = i & 1, imm = i & 2;

		fill(a, len, i);
		memset(at(b, there), 0xee, len + 1);
		if (!write || imm)
			post_recv(b, there, write ? 0 : 1u << 20);
		post(a, (write ? SKUA_WQE_WRITE : SKUA_WQE_SEND) + (imm ? 1 : 0),
		     SKUA_WQE_SIGNALED | SKUA_WQE_SOLICITED, a->buf, len, there, b->key,
		     imm ? htobe32(i) : 0);
		expect(w, a, write ? SKUA_CQE_WRITE : SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
		if (!write || imm) {
			cqe = await_cqe(w, b);
			assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
			assert_int_equal(cqe->opcode, write ? SKUA_CQE_RECV_WRITE_IMM : SKUA_CQE_RECV);
			assert_int_equal(le32toh(cqe->byte_len), len);
			assert_int_equal(cqe->flags & ~SKUA_CQE_PHASE,
					 SKUA_CQE_SOLICITED | (imm ? SKUA_CQE_WITH_IMM : 0));
			assert_int_equal(be32toh(cqe->imm_data), imm ? i : 0);
			assert_int_equal(le32toh(cqe->src_qpn), 0);
		} else {
			/* Nothing tells of its end but the data. */
			uint64_t writes = (i / 4) * 2 + 1;

			while (w->threaded && STAT(w, b, rdma_rx_write) < writes)
				;
		}
		assert_memory_equal(at(b, there), at(a, a->buf), len);
		assert_int_equal(*(uint8_t *)at(b, there + len), 0xee);
	}
}

static void messages_of_all_kinds(void **state)
{
	struct world *w = *state;

	messages(w);
	use_packets(w, "drop=0%,dir=out");
	messages(w);
	assert_int_equal(STAT(w, &w->n[1], rdma_tx_packets), 0);
	assert_int_equal(STAT(w, &w->n[0], rdma_tx_send), 28);
	assert_int_equal(STAT(w, &w->n[1], rdma_rx_write), 28);
	assert_int_equal(STAT(w, &w->n[1], rdma_rx_incomplete), 0);
}

static void two_engines(void **state)
{
	messages(*state);
}

static void wqes_that_uc_does_not_know(void **state)
{
	static const uint8_t opcodes[] = { SKUA_WQE_SEND_INV, SKUA_WQE_READ, SKUA_WQE_CMP_SWAP,
					   SKUA_WQE_FETCH_ADD, SKUA_WQE_MASKED_CMP_SWAP,
					   SKUA_WQE_MASKED_FETCH_ADD, 0x44 };
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	for (size_t i = 0; i < sizeof(opcodes); i++) {
		struct skua_cqe *cqe;

		post(a, opcodes[i], 0, a->buf, 8, 0, 0, 0);
		post(a, SKUA_WQE_NOP, 0, 0, 0, 0, 0, 0);
		cqe = await_cqe(w, a);
		assert_int_equal(cqe->status, SKUA_CQE_LOC_QP_OP_ERR);
		assert_int_equal(cqe->vendor_err, SKUA_VENDOR_ERR_WQE_OPCODE);
		expect(w, a, SKUA_CQE_NOP, SKUA_CQE_WR_FLUSH_ERR);
		assert_int_equal(qp_state(w, a, a->qpn), SKUA_QPS_SQE);
		/* The responder runs. */
		post_recv(a, a->buf, 8);
		post(b, SKUA_WQE_SEND, 0, b->buf, 8, 0, 0, 0);
		expect(w, a, SKUA_CQE_RECV, SKUA_CQE_SUCCESS);
		must(w, a, state_cmd(a->qpn, SKUA_QPS_RTS));
	}
	expect_no_event(w, a);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 8, b->buf, b->key, 0);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
}

/* A fault in a later part: the peer drops what came, and takes the next message. */
static void a_message_that_the_sender_gives_up(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct { struct skua_wqe_ctrl c; struct skua_sge s[3]; } wqe = {
		.c = { .opcode = SKUA_WQE_SEND, .nblocks = 1, .num_sge = 2 },
		.s = { { htole64(a->buf), htole32(1 << 20), htole32(a->key) },
		       { htole64(a->buf), htole32(8), htole32(a->key ^ 1) } } };

	post_recv(b, b->buf, BUF_SIZE);
	post_block(a, &wqe);
	expect_vendor(w, a, SKUA_CQE_SEND, SKUA_CQE_LOC_PROT_ERR, SKUA_VENDOR_ERR_KEY_STALE);
	expect_none(w, b);
	must(w, a, state_cmd(a->qpn, SKUA_QPS_RTS));
	fill(a, 100, 8);
	post(a, SKUA_WQE_SEND, 0, a->buf, 100, 0, 0, 0);
	assert_int_equal(le32toh(await_cqe(w, b)->byte_len), 100);
	assert_memory_equal(at(b, b->buf), at(a, a->buf), 100);
	assert_int_equal(STAT(w, b, rdma_rx_incomplete), 1);
}

/* Packets as the peer might send them: PSN relative to the first, where in the message, bytes. */
static void packet(struct world *w, struct node *b, enum train_op op, int psn, bool first, bool last,
		   uint32_t len)
{
	struct seglist list = { 1, len, { { at(b, b->buf + (3u << 20)), len } } };
	struct train t = train_from(b, op, FIRST_PSN + (uint32_t)psn);

	t.transport = TRANSPORT_UC;
	t.first = first;
	t.last = last;
	t.msg_len = 3 * MTU;
	t.payload = len ? &list : NULL;
	arrive(w, b, &w->n[0], t);
}

#define FIRST	true, false
#define MIDDLE	false, false
#define LAST	false, true
#define ONLY	true, true

static void what_is_lost(void **state)
{
	struct world *w = *state;
	struct node *b = &w->n[1];

	/* In the middle: the rest is dropped, the receive waits for the next. */
	post_recv(b, b->buf, 4096);
	packet(w, b, TRAIN_SEND, 0, FIRST, MTU);
	packet(w, b, TRAIN_SEND, 2, MIDDLE, MTU);
	packet(w, b, TRAIN_SEND, 3, LAST, MTU);
	expect_none(w, b);
	assert_int_equal(STAT(w, b, rdma_rx_incomplete), 1);
	packet(w, b, TRAIN_SEND, 4, FIRST, MTU);
	packet(w, b, TRAIN_SEND, 5, LAST, 7);
	assert_int_equal(le32toh(await_cqe(w, b)->byte_len), MTU + 7);
	/* At the beginning. */
	post_recv(b, b->buf, 4096);
	packet(w, b, TRAIN_SEND, 7, MIDDLE, MTU);
	packet(w, b, TRAIN_SEND, 8, LAST, MTU);
	assert_int_equal(STAT(w, b, rdma_rx_incomplete), 2);
	packet(w, b, TRAIN_SEND, 9, ONLY, 9);
	assert_int_equal(le32toh(await_cqe(w, b)->byte_len), 9);
	/* At the end, and whole messages, too. */
	post_recv(b, b->buf, 4096);
	packet(w, b, TRAIN_SEND, 10, FIRST, MTU);
	packet(w, b, TRAIN_SEND, 30, ONLY, 10);
	assert_int_equal(le32toh(await_cqe(w, b)->byte_len), 10);
	assert_int_equal(STAT(w, b, rdma_rx_incomplete), 3);
	/* One that began, and begins again without a gap. */
	post_recv(b, b->buf, 4096);
	packet(w, b, TRAIN_SEND, 31, FIRST, MTU);
	packet(w, b, TRAIN_SEND, 32, FIRST, MTU);
	packet(w, b, TRAIN_SEND, 33, LAST, 11);
	assert_int_equal(le32toh(await_cqe(w, b)->byte_len), MTU + 11);
	assert_int_equal(STAT(w, b, rdma_rx_incomplete), 4);
	/* A PSN of before begins a message as any other. */
	post_recv(b, b->buf, 4096);
	packet(w, b, TRAIN_SEND, 5, ONLY, 12);
	assert_int_equal(le32toh(await_cqe(w, b)->byte_len), 12);
	assert_int_equal(STAT(w, b, rdma_rx_incomplete), 4);
	expect_none(w, b);
	expect_no_event(w, b);
	assert_int_equal(STAT(w, b, rdma_tx_packets), 0);
	/* The receive that an unfinished message had taken is flushed. */
	post_recv(b, b->buf, 4096);
	post_recv(b, b->buf, 4096);
	packet(w, b, TRAIN_SEND, 6, FIRST, MTU);
	packet(w, b, TRAIN_SEND, 8, LAST, MTU);
	must(w, b, state_cmd(b->qpn, SKUA_QPS_ERR));
	expect(w, b, SKUA_CQE_RECV, SKUA_CQE_WR_FLUSH_ERR);
	expect(w, b, SKUA_CQE_RECV, SKUA_CQE_WR_FLUSH_ERR);
	expect_none(w, b);
}

/* A WRITE whose end is lost has written its beginning, and no receive is used for it. */
static void a_write_that_is_cut_short(void **state)
{
	struct world *w = *state;
	struct node *b = &w->n[1];

	fill(b, 4096, 0);
	memset(at(b, b->buf + (3u << 20)), 0x5a, 4096);
	post_recv(b, b->buf + 65536, 0);
	packet(w, b, TRAIN_WRITE, 0, FIRST, MTU);
	packet(w, b, TRAIN_WRITE_IMM, 2, LAST, MTU);
	expect_none(w, b);
	assert_int_equal(STAT(w, b, rdma_rx_incomplete), 1);
	for (uint32_t i = 0; i < MTU; i++)
		assert_int_equal(((uint8_t *)at(b, b->buf))[i], 0x5a);
	assert_int_equal(((uint8_t *)at(b, b->buf))[MTU], (MTU * 7 + (MTU >> 8)) & 255);
	packet(w, b, TRAIN_WRITE, 3, FIRST, MTU);
	packet(w, b, TRAIN_WRITE, 4, MIDDLE, MTU);
	packet(w, b, TRAIN_WRITE_IMM, 5, LAST, MTU);
	expect(w, b, SKUA_CQE_RECV_WRITE_IMM, SKUA_CQE_SUCCESS);
}

static void receives_that_are_missing_or_short(void **state)
{
	struct world *w = *state;
	struct node *b = &w->n[1];

	packet(w, b, TRAIN_SEND, 0, FIRST, MTU);
	post_recv(b, b->buf, MTU);		/* too late for that one */
	packet(w, b, TRAIN_SEND, 1, LAST, MTU);
	expect_none(w, b);
	assert_int_equal(STAT(w, b, rdma_rx_no_receive), 1);
	packet(w, b, TRAIN_SEND, 2, FIRST, MTU);
	packet(w, b, TRAIN_SEND, 3, MIDDLE, MTU);
	packet(w, b, TRAIN_SEND, 4, LAST, MTU);
	expect_none(w, b);
	assert_int_equal(STAT(w, b, rdma_rx_no_receive), 2);
	packet(w, b, TRAIN_SEND, 5, ONLY, MTU);
	expect(w, b, SKUA_CQE_RECV, SKUA_CQE_SUCCESS);
	/* A WRITE with immediate wants one at its end. */
	packet(w, b, TRAIN_WRITE, 6, FIRST, MTU);
	packet(w, b, TRAIN_WRITE, 7, MIDDLE, MTU);
	packet(w, b, TRAIN_WRITE_IMM, 8, LAST, MTU);
	assert_int_equal(STAT(w, b, rdma_rx_no_receive), 3);
	assert_int_equal(STAT(w, b, rdma_rx_incomplete), 0);
	assert_int_equal(STAT(w, b, rdma_rx_write), 0);
	assert_int_equal(qp_state(w, b, b->qpn), SKUA_QPS_RTS);
	expect_no_event(w, b);
}

/* Each request that may not be: nothing but the counter tells of it, and nothing is written. */
static void bad_requests(void **state)
{
	enum { KEY, PD, BOUNDS, RIGHT, QP_RIGHT, LENGTH, MORE, LESS, SHORT_FIRST, EMPTY_LAST, OTHER_OP, MTU_OF,
	       TOO_LONG, END, NUM };
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cmd mr = create_mr_cmd(b);
	uint32_t readable, psn = 0;
	uint64_t incomplete = 0;

	mr.create_mr.access = htole32(SKUA_ACCESS_REMOTE_READ);
	readable = must(w, b, mr);
	memset(at(b, b->buf + (3u << 20)), 0x5a, 4096);
	memset(at(b, b->buf), 0, 1 << 20);
	post_recv(b, b->buf, 65536);
	for (int i = 0; i < NUM; i++) {
		struct seglist list = { 1, MTU, { { at(b, b->buf + (3u << 20)), MTU } } };
		struct train t = train_from(b, TRAIN_WRITE, FIRST_PSN + psn++);
		bool two = i == LESS || i == EMPTY_LAST || i == OTHER_OP || i == END;

		t.transport = TRANSPORT_UC;
		t.msg_len = two ? MTU + 8 : MTU;
		t.payload = &list;
		if (two || i == SHORT_FIRST)
			t.last = false;
		if (i == KEY)
			t.rkey ^= 1;
		else if (i == PD)
			t.rkey = a->key;
		else if (i == BOUNDS)
			t.raddr = b->buf + BUF_SIZE - MTU + 1;
		else if (i == RIGHT)
			t.rkey = readable;
		else if (i == LENGTH)
			t.msg_len = MTU + 1;
		else if (i == MORE)
			t.msg_len = MTU - 1;
		else if (i == SHORT_FIRST)
			list.bytes = list.seg[0].len = MTU - 1, t.msg_len = 2 * MTU;
		else if (i == MTU_OF)
			t.pmtu = MTU / 2, t.npkts = 2, psn++;
		else if (i == END)	/* of the last packet alone */
			t.raddr = b->buf + BUF_SIZE - MTU;
		else if (i == TOO_LONG)
			t.msg_len = (1u << 31) + 1;
		else if (i == QP_RIGHT)
			must(w, b, modify_cmd(b->qpn, SKUA_QP_ATTR_ACCESS,
					      (struct skua_qp_attr){ .access = 0 }));
		arrive(w, b, a, t);
		if (i == QP_RIGHT)
			must(w, b, modify_cmd(b->qpn, SKUA_QP_ATTR_ACCESS, (struct skua_qp_attr){
					      .access = htole32(SKUA_ACCESS_REMOTE_WRITE) }));
		if (two || i == SHORT_FIRST) {
			t.first = false;
			t.last = true;
			t.psn = (FIRST_PSN + psn++) & PSN_MASK;
			list.bytes = list.seg[0].len = i == EMPTY_LAST ? 0 : i == LESS ? 7 : 8;
			if (i == OTHER_OP)
				t.op = TRAIN_SEND;
			arrive(w, b, a, t);
		}
		incomplete++;
		if (STAT(w, b, rdma_rx_incomplete) != incomplete)
			fail_msg("row %d", i);
		assert_int_equal(STAT(w, b, rdma_rx_write), 0);
		if (two && i != END)
			memset(at(b, b->buf), 0, MTU);
		for (uint32_t j = 0; j < MTU; j++)
			assert_int_equal(((uint8_t *)at(b, b->buf + BUF_SIZE - MTU))[j], 0);
		for (uint32_t j = 0; j < 4096; j++)
			assert_int_equal(((uint8_t *)at(b, b->buf))[j], 0);
	}
	expect_none(w, b);
	expect_no_event(w, b);
	assert_int_equal(qp_state(w, b, b->qpn), SKUA_QPS_RTS);
	assert_int_equal(STAT(w, b, rdma_tx_packets), 0);
	/* A WRITE of nothing does not look at key and address. */
	{
		struct train t = train_from(b, TRAIN_WRITE, FIRST_PSN + psn);

		t.transport = TRANSPORT_UC;
		t.rkey = 0;
		arrive(w, b, a, t);
	}
	assert_int_equal(STAT(w, b, rdma_rx_write), 1);
}

/* Not from the peer, or of another service: nothing is believed of it. */
static void forged_packets(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct train t = train_from(b, TRAIN_WRITE, FIRST_PSN);
	uint8_t second[16];

	post_recv(b, b->buf, 4096);
	memcpy(second, b->gid, 16);
	second[15] = 77;
	set_gid(w, b, 1, second, b->mac, SKUA_VLAN_NONE);
	set_gid(w, b, 2, b->gid, b->mac, 7);
	for (int i = 0; i < 4; i++) {
		struct roce_path path = { .vlan = SKUA_VLAN_NONE, .hop_limit = 64 };

		memcpy(path.sgid, a->gid, 16);
		memcpy(path.dgid, b->gid, 16);
		memcpy(path.dmac, b->mac, 6);
		if (i == 0)
			path.sgid[15] = 77;
		else if (i == 1)
			path.dgid[15] = 77;
		else if (i == 2)
			path.vlan = 7;
		t.transport = i == 3 ? TRANSPORT_RC : TRANSPORT_UC;
		t.path = &path;
		t.op = TRAIN_SEND;
		arrive(w, b, a, t);
	}
	assert_int_equal(STAT(w, b, rdma_rx_bad_addr), 3);
	assert_int_equal(STAT(w, b, rdma_rx_bad_opcode), 1);
	t.path = NULL;
	t.transport = TRANSPORT_UC;
	must(w, b, state_cmd(b->qpn, SKUA_QPS_ERR));
	expect(w, b, SKUA_CQE_RECV, SKUA_CQE_WR_FLUSH_ERR);
	arrive(w, b, a, t);
	assert_int_equal(STAT(w, b, rdma_rx_bad_qp), 1);
	expect_none(w, b);
	expect_no_event(w, b);
}

static void bad_receives(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	for (int i = 0; i < 2; i++) {
		struct { struct skua_rqe r; struct skua_sge s[3]; } rqe = {
			{ .num_sge = i ? 1 : 4 }, { { htole64(b->buf), htole32(64), htole32(b->key ^ 1) } } };

		bring(w, b, a, SKUA_QPS_RTS);
		post_rqe(b, &rqe);
		post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 8, 0, 0, 0);
		expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
		expect(w, b, SKUA_CQE_RECV, i ? SKUA_CQE_LOC_PROT_ERR : SKUA_CQE_LOC_QP_OP_ERR);
		assert_int_equal(qp_state(w, b, b->qpn), SKUA_QPS_ERR);
		expect_no_event(w, b);
	}
	assert_int_equal(STAT(w, b, rdma_tx_packets), 0);
}

static void communication_is_told_of(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	bring(w, b, a, SKUA_QPS_RTR);
	for (int i = 0; i < 2; i++) {
		post_recv(b, b->buf, 64);
		post(a, SKUA_WQE_SEND, 0, a->buf, 8, 0, 0, 0);
		expect(w, b, SKUA_CQE_RECV, SKUA_CQE_SUCCESS);
		if (!i)
			expect_event(w, b, SKUA_EVENT_COMM_EST, b->qpn);
	}
	expect_no_event(w, b);
}

/* In SQD the message under way is ended, the next does not begin. */
static void drained(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	fill(a, 1 << 20, 6);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 1 << 20, b->buf, b->key, 0);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 8, b->buf, b->key, 0);
	engine_step(w->engines[0]);
	assert_true(((struct skua_qp *)numtab_get(&a->dev->qps, a->qpn))->sq.nxt_pkt > 0);
	must(w, a, modify_cmd(a->qpn, SKUA_QP_ATTR_STATE | SKUA_QP_ATTR_SQD_EVENT,
			      (struct skua_qp_attr){ .state = SKUA_QPS_SQD }));
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	assert_memory_equal(at(b, b->buf), at(a, a->buf), 1 << 20);
	expect_none(w, a);
	expect_event(w, a, SKUA_EVENT_SQ_DRAINED, a->qpn);
	must(w, a, state_cmd(a->qpn, SKUA_QPS_RTS));
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	assert_int_equal(STAT(w, b, rdma_rx_incomplete), 0);
}

/* On a bad wire: no message is told of that is not whole. */
static void a_bad_wire(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	bool has_receive = false;
	uint32_t whole = 0;

	use_packets(w, "drop=5%,dir=out");
	for (uint32_t i = 0; i < 300; i++) {
		uint32_t len = 1 + i * 37 % 20000;
		struct skua_cqe *cqe;

		fill(a, len, i);
		if (!has_receive)
			post_recv(b, b->buf, 1u << 20);
		post(a, SKUA_WQE_SEND_IMM, SKUA_WQE_SIGNALED, a->buf, len, 0, 0, htobe32(i));
		expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
		settle(w);
		cqe = poll_cq(b);
		/* The receive of a message that is not whole is there for the next. */
		has_receive = !cqe;
		if (!cqe)
			continue;
		assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
		assert_int_equal(be32toh(cqe->imm_data), i);
		assert_int_equal(le32toh(cqe->byte_len), len);
		assert_memory_equal(at(b, b->buf), at(a, a->buf), len);
		whole++;
	}
	assert_in_range(whole, 100, 299);
	assert_true(STAT(w, b, rdma_rx_incomplete) > 0);
}

static void a_feature_that_was_not_accepted(void **state)
{
	struct world *w = world_create_with(false, ~(1ull << SKUA_F_UC));
	struct skua_cmd cmd = create_qp_cmd(&w->n[0]);

	(void)state;
	cmd.create_qp.type = SKUA_QPT_UC;
	assert_int_equal(command(w, &w->n[0], &cmd), SKUA_CMD_BAD_PARAM);
	world_destroy(w);
}

/*
 * Nothing of its memory is read when DESTROY_QP, or RESET, has completed. The peer's engine is held up meanwhile, so
 * that trains which refer to the memory wait in the ring to it.
 */
static void senders_go_under_traffic(void **state)
{
	(void)state;
	for (int destroy = 0; destroy < 2; destroy++) {
		struct world *w = create(true);
		struct node *a = &w->n[0], *b = &w->n[1];
		const uint8_t *p = at(b, b->buf);
		pthread_t thread;

		memset(at(a, a->buf), 1, 200000);
		memset(at(b, b->buf), 1, 200000);
		thread = begin_nap(b);
		for (int i = 0; i < 40; i++)
			post(a, SKUA_WQE_WRITE, 0, a->buf, 200000, b->buf, b->key, 0);
		while (!STAT(w, a, rdma_tx_write))
			;
		must(w, a, destroy ? object_cmd(SKUA_CMD_DESTROY_QP, a->qpn) : state_cmd(a->qpn, SKUA_QPS_RESET));
		memset(at(a, a->buf), 2, 200000);
		pthread_join(thread, NULL);
		must(w, b, state_cmd(b->qpn, SKUA_QPS_RESET));
		for (int i = 0; i < 200000; i++)
			assert_int_equal(p[i], 1);
		world_destroy(w);
	}
}

#define UC(f, rules)	{ rules ": " #f, f, setup_uc, teardown, NULL }
#define ALONE(f, rules)	{ rules ": " #f, f, NULL, NULL, NULL }

int main(void)
{
	const struct CMUnitTest tests[] = {
		UC(messages_of_all_kinds, "UC-1 ROC-1 ROC-6"),
		{ "UC-1: two_engines", two_engines, setup_uc_threaded, teardown, NULL },
		UC(wqes_that_uc_does_not_know, "UC-1 UD-5 QPS-12"),
		UC(a_message_that_the_sender_gives_up, "UC-2 WQE-7 QPS-12"),
		UC(what_is_lost, "UC-2 ORD-8"),
		UC(a_write_that_is_cut_short, "UC-4"),
		UC(receives_that_are_missing_or_short, "UC-3 ERR-5"),
		UC(bad_requests, "UC-3 ERR-4"),
		UC(forged_packets, "UC-5 ERR-3"),
		UC(bad_receives, "UD-9 RQE-4"),
		UC(communication_is_told_of, "ERR-7"),
		UC(drained, "QPS-10 QPS-11"),
		UC(a_bad_wire, "UC-2"),
		ALONE(a_feature_that_was_not_accepted, "FEA-2"),
		ALONE(senders_go_under_traffic, "MEM-12 UC-1"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
