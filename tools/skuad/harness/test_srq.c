// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Shared receive queues: entries are taken in order, completed in any, given back and counted.
 *
 * Node b has an SRQ in place of the receive queue that post_recv() fills, and QPs that use it; each has a peer at a.
 */
#include "core/srq.h"
#include "harness/datagram.h"

#define SRQ_HANDLE	0x5125125125ull
#define ENTRIES		(1u << LOG_RQ)
#define MTU		1024u
#define QPS		4

struct shared {
	struct world *w;
	uint32_t srqn;
	struct queues at_a[QPS];	/* the peers; post() uses that of peer() */
	uint32_t at_b[QPS];		/* QPNs */
	uint64_t sq_dbr[QPS];		/* their records */
};

static struct skua_cmd create_srq_cmd(struct node *n)
{
	struct skua_cmd cmd = CMD(SKUA_CMD_CREATE_SRQ, .create_srq = {
		.pdn = htole32(n->pdn), .log_size = LOG_RQ, .log_stride = 6,
		.srq_handle = htole64(SRQ_HANDLE), .dbr_addr = htole64(n->rq_dbr),
		.ring = list(n->rq, 64u << LOG_RQ) });

	return cmd;
}

static struct skua_cmd modify_srq_cmd(uint32_t srqn, uint32_t mask, uint32_t limit)
{
	struct skua_cmd cmd = CMD(SKUA_CMD_MODIFY_SRQ, .modify_srq = {
		.srqn = htole32(srqn), .mask = htole32(mask), .limit = htole32(limit) });

	return cmd;
}

/* A QP of b's that uses the SRQ. */
static struct skua_cmd user_cmd(const struct shared *s)
{
	struct node *b = &s->w->n[1];
	struct skua_cmd cmd = create_qp_cmd(b);

	cmd.create_qp.srqn = htole32(s->srqn);
	cmd.create_qp.log_rq_size = 0;
	cmd.create_qp.log_rq_stride = 0;
	cmd.create_qp.rq_dbr_addr = 0;
	cmd.create_qp.rq = (struct skua_pagelist){ 0 };
	return cmd;
}

static void to_rts(struct world *w, struct node *n, const struct node *peer, uint32_t qpn, uint32_t peer_qpn)
{
	must(w, n, init_cmd(qpn));
	must(w, n, rtr_cmd(qpn, peer, peer_qpn));
	must(w, n, rts_cmd(qpn));
}

static void make_user(struct shared *s, int i)
{
	struct world *w = s->w;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct queues own = use_queues(b, (struct queues){ .sq = take(b, 64u << LOG_SQ), .sq_dbr = take(b, 64),
							   .rq = b->rq, .rq_dbr = b->rq_dbr });

	s->sq_dbr[i] = b->sq_dbr;
	s->at_b[i] = must(w, b, user_cmd(s));
	use_queues(b, own);
	new_queues(a);
	a->qpn = must(w, a, create_qp_cmd(a));
	to_rts(w, a, b, a->qpn, s->at_b[i]);
	to_rts(w, b, a, s->at_b[i], a->qpn);
	s->at_a[i] = use_queues(a, (struct queues){ 0 });
}

/* From now on a's host uses the peer of user @i. */
static struct node *peer(struct shared *s, int i)
{
	use_queues(&s->w->n[0], s->at_a[i]);
	return &s->w->n[0];
}

static int setup_shared(void **state)
{
	struct shared *s = calloc(1, sizeof(*s));
	struct node *b;

	s->w = world_create(false);
	b = &s->w->n[1];
	new_queues(b);
	s->srqn = must(s->w, b, create_srq_cmd(b));
	for (int i = 0; i < QPS; i++)
		make_user(s, i);
	*state = s;
	return 0;
}

static int teardown_shared(void **state)
{
	struct shared *s = *state;

	world_destroy(s->w);
	free(s);
	return 0;
}

static void send(struct shared *s, int i, uint32_t len)
{
	struct node *a = peer(s, i);

	post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, len, 0, 0, 0);
	s->at_a[i] = use_queues(a, s->at_a[i]);
	settle(s->w);
}

static void expect_sent(struct shared *s, uint8_t status)
{
	expect(s->w, &s->w->n[0], SKUA_CQE_SEND, status);
}

/* The next receive CQE of b: of user @i, with this cookie. */
static void expect_received(struct shared *s, int i, uint32_t cookie, uint8_t status)
{
	struct skua_cqe *cqe = await_cqe(s->w, &s->w->n[1]);

	assert_int_equal(cqe->opcode, SKUA_CQE_RECV);
	assert_int_equal(cqe->status, status);
	assert_int_equal(le32toh(cqe->cookie), cookie);
	assert_int_equal(le32toh(cqe->qpn), s->at_b[i]);
	assert_int_equal(le64toh(cqe->qp_handle), SRQ_HANDLE);
	assert_int_equal(cqe->flags & ~SKUA_CQE_PHASE, SKUA_CQE_FROM_SRQ);
}

/* Where the entry with this cookie goes. */
static uint64_t place(const struct node *b, uint32_t cookie)
{
	return b->buf + (1u << 20) + cookie * 4096ull;
}

static void post_entries(struct node *b, uint32_t count)
{
	while (count--)
		post_recv(b, place(b, b->rq_pi), 4096);
}

/* The first packet of a longer message to user @i, that takes an entry. */
static void begin_message(struct shared *s, int i)
{
	struct node *a = &s->w->n[0], *b = &s->w->n[1];
	struct seglist payload = { 1, MTU, { { at(a, a->buf), MTU } } };
	struct train t = train_from(b, TRAIN_SEND, FIRST_PSN);

	t.dest_qpn = s->at_b[i];
	t.payload = &payload;
	t.last = false;
	t.ack_req = false;
	arrive(s->w, b, a, t);
}

static void modify_state(struct shared *s, int i, uint8_t state)
{
	must(s->w, &s->w->n[1], state_cmd(s->at_b[i], state));
	settle(s->w);
}

static void queues_that_may_be(void **state)
{
	struct shared *s = *state;
	struct world *w = s->w;
	struct node *b = &w->n[1];
	struct skua_cmd cmd = user_cmd(s), own = create_qp_cmd(b);
	static const uint8_t types[] = { SKUA_QPT_UC, SKUA_QPT_UD, SKUA_QPT_RC };

	for (unsigned int i = 0; i < sizeof(types); i++) {
		cmd.create_qp.type = types[i];
		must(w, b, object_cmd(SKUA_CMD_DESTROY_QP, must(w, b, cmd)));
	}
	cmd.create_qp.flags = htole32(SKUA_QP_PRIVILEGED);
	cmd.create_qp.type = SKUA_QPT_ETH;
	assert_int_equal(command(w, b, &cmd), SKUA_CMD_BAD_PARAM);
	cmd.create_qp.type = SKUA_QPT_GSI;
	assert_int_equal(command(w, b, &cmd), SKUA_CMD_BAD_PARAM);
	own.create_qp.srqn = htole32(s->srqn);
	assert_int_equal(command(w, b, &own), SKUA_CMD_BAD_PARAM);
	cmd = user_cmd(s);
	cmd.create_qp.srqn = htole32(s->srqn + 1);
	assert_int_equal(command(w, b, &cmd), SKUA_CMD_BAD_OBJECT);
}

static void without_the_feature_there_are_none(void **state)
{
	struct world *w = world_create_with(false, ~(1ull << SKUA_F_SRQ));
	struct node *b = &w->n[1];
	struct skua_cmd srq, qp = create_qp_cmd(b);
	struct skua_device_caps *caps = query(w, b, (struct skua_cmd)CMD(SKUA_CMD_QUERY_DEVICE), sizeof(*caps));

	(void)state;
	assert_int_equal(caps->max_srq, 0);
	assert_int_equal(caps->max_srq_entries, 0);
	new_queues(b);
	srq = create_srq_cmd(b);
	assert_int_equal(command(w, b, &srq), SKUA_CMD_BAD_OPCODE);
	qp.create_qp.srqn = htole32(2);
	assert_int_equal(command(w, b, &qp), SKUA_CMD_BAD_PARAM);
	world_destroy(w);
}

static void bad_srqs(void **state)
{
	struct shared *s = *state;
	struct world *w = s->w;
	struct node *b = &w->n[1];
	struct skua_device_caps *caps = query(w, b, (struct skua_cmd)CMD(SKUA_CMD_QUERY_DEVICE), sizeof(*caps));
	uint8_t log_max = (uint8_t)__builtin_ctz(le32toh(caps->max_srq_entries));
	struct skua_cmd good = create_srq_cmd(b), cmd;

#define TRY(status_, ...) do {						\
	cmd = good;							\
	__VA_ARGS__;							\
	assert_int_equal(command(w, b, &cmd), status_);			\
} while (0)
	TRY(SKUA_CMD_BAD_OBJECT, cmd.create_srq.pdn = htole32(b->pdn + 1));
	TRY(SKUA_CMD_BAD_PARAM, cmd.create_srq.flags = htole32(2));
	TRY(SKUA_CMD_BAD_PARAM, cmd.create_srq.log_stride = SKUA_RQE_MIN_LOG_STRIDE - 1);
	TRY(SKUA_CMD_BAD_PARAM, cmd.create_srq.log_stride = SKUA_RQE_MAX_LOG_STRIDE + 1);
	TRY(SKUA_CMD_BAD_PARAM, cmd.create_srq.log_size = log_max + 1);
	TRY(SKUA_CMD_BAD_PARAM, cmd.create_srq.limit = htole32(ENTRIES + 1));
	TRY(SKUA_CMD_BAD_PARAM, cmd.create_srq.dbr_addr = htole64(b->rq_dbr + 8));
	TRY(SKUA_CMD_BAD_PARAM, cmd.create_srq.rsvd0[1] = 1);
	TRY(SKUA_CMD_BAD_PARAM, cmd.create_srq.rsvd1[19] = 1);
	TRY(SKUA_CMD_BAD_ADDRESS, cmd.create_srq.dbr_addr = htole64(IOVA + MEM_SIZE));
	TRY(SKUA_CMD_BAD_ADDRESS, cmd.create_srq.ring = list(IOVA + MEM_SIZE, 4096));
	good = modify_srq_cmd(s->srqn, SKUA_SRQ_SET_LIMIT, 1);
	TRY(SKUA_CMD_BAD_OBJECT, cmd.modify_srq.srqn = htole32(s->srqn + 1));
	TRY(SKUA_CMD_BAD_PARAM, cmd.modify_srq.mask = htole32(SKUA_SRQ_SET_MASK + 1));
	TRY(SKUA_CMD_BAD_PARAM, cmd.modify_srq.limit = htole32(ENTRIES + 1));
	TRY(SKUA_CMD_BAD_PARAM, cmd.modify_srq.log_size = 1);
	TRY(SKUA_CMD_BAD_PARAM, cmd.modify_srq.mask = 0);
	TRY(SKUA_CMD_BAD_PARAM, cmd.modify_srq.ring = list(b->rq, 4096));
	TRY(SKUA_CMD_BAD_PARAM, cmd.modify_srq.rsvd0[50] = 1);
	TRY(SKUA_CMD_BAD_PARAM, cmd.modify_srq.mask = htole32(SKUA_SRQ_SET_RING));
	good = object_cmd(SKUA_CMD_QUERY_SRQ, s->srqn + 1);
	TRY(SKUA_CMD_BAD_OBJECT, );
	good = object_cmd(SKUA_CMD_DESTROY_SRQ, s->srqn + 1);
	TRY(SKUA_CMD_BAD_OBJECT, );
#undef TRY
}

/* The largest that is reported, and each of its numbers. */
static void limits_are_served(void **state)
{
	struct shared *s = *state;
	struct world *w = s->w;
	struct node *b = &w->n[1];
	struct skua_device_caps *caps = query(w, b, (struct skua_cmd)CMD(SKUA_CMD_QUERY_DEVICE), sizeof(*caps));
	uint32_t max = le32toh(caps->max_srq);
	struct skua_cmd cmd = create_srq_cmd(b);

	cmd.create_srq.log_size = (uint8_t)__builtin_ctz(le32toh(caps->max_srq_entries));
	cmd.create_srq.log_stride = 5;
	cmd.create_srq.ring = list(b->buf, le32toh(caps->max_srq_entries) * 32ull);
	must(w, b, object_cmd(SKUA_CMD_DESTROY_SRQ, must(w, b, cmd)));
	cmd = create_srq_cmd(b);
	for (uint32_t i = 1; i < max; i++)
		must(w, b, cmd);
	assert_int_equal(command(w, b, &cmd), SKUA_CMD_NO_RESOURCE);
}

static void a_used_srq_is_busy(void **state)
{
	struct shared *s = *state;
	struct world *w = s->w;
	struct node *b = &w->n[1];
	struct skua_cmd destroy = object_cmd(SKUA_CMD_DESTROY_SRQ, s->srqn);
	struct skua_cmd pd = CMD(SKUA_CMD_CREATE_PD), srq = create_srq_cmd(b);
	uint32_t pdn = must(w, b, pd), srqn;

	for (int i = 0; i < QPS; i++) {
		assert_int_equal(command(w, b, &destroy), SKUA_CMD_BUSY);
		must(w, b, object_cmd(SKUA_CMD_DESTROY_QP, s->at_b[i]));
	}
	must(w, b, destroy);
	srq.create_srq.pdn = htole32(pdn);
	srqn = must(w, b, srq);
	pd = object_cmd(SKUA_CMD_DESTROY_PD, pdn);
	assert_int_equal(command(w, b, &pd), SKUA_CMD_BUSY);
	must(w, b, object_cmd(SKUA_CMD_DESTROY_SRQ, srqn));
	must(w, b, pd);
}

/* QP 0 takes entry 0 for a long message, QP 1 and 2 complete the next ones before it. */
static void entries_are_taken_in_order_and_completed_in_any(void **state)
{
	struct shared *s = *state;
	struct world *w = s->w;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct seglist payload = { 1, 500, { { (uint8_t *)at(a, a->buf) + MTU, 500 } } };
	struct train end = train_from(b, TRAIN_SEND, FIRST_PSN + 1);

	fill(a, 4096, 1);
	post_entries(b, 4);
	begin_message(s, 0);
	send(s, 1, 700);
	send(s, 2, 800);
	send(s, 1, 900);
	expect_received(s, 1, 1, SKUA_CQE_SUCCESS);
	expect_received(s, 2, 2, SKUA_CQE_SUCCESS);
	expect_received(s, 1, 3, SKUA_CQE_SUCCESS);
	for (int i = 0; i < 3; i++)
		expect_sent(s, SKUA_CQE_SUCCESS);
	end.dest_qpn = s->at_b[0];
	end.payload = &payload;
	end.first = false;
	arrive(w, b, a, end);
	expect_received(s, 0, 0, SKUA_CQE_SUCCESS);
	assert_memory_equal(at(b, place(b, 0)), at(a, a->buf), MTU + 500);
	assert_memory_equal(at(b, place(b, 1)), at(a, a->buf), 700);
	assert_memory_equal(at(b, place(b, 2)), at(a, a->buf), 800);
	assert_memory_equal(at(b, place(b, 3)), at(a, a->buf), 900);
}

/* N completions free the first N slots, also while an entry from one of them is not complete. */
static void slots_are_free_by_count(void **state)
{
	struct shared *s = *state;
	struct node *b = &s->w->n[1];

	post_entries(b, ENTRIES);
	begin_message(s, 0);
	for (uint32_t i = 1; i < 5 * ENTRIES; i++) {
		send(s, 1, 100);
		expect_sent(s, SKUA_CQE_SUCCESS);
		expect_received(s, 1, i, SKUA_CQE_SUCCESS);
		post_entries(b, 1);
	}
	modify_state(s, 0, SKUA_QPS_ERR);
	expect_received(s, 0, 0, SKUA_CQE_WR_FLUSH_ERR);
}

static void an_empty_one_is_waited_for(void **state)
{
	struct shared *s = *state;
	struct node *b = &s->w->n[1];

	send(s, 0, 100);
	expect_none(s->w, b);
	post_entries(b, 1);
	pass(s->w, 10000000);
	expect_received(s, 0, 0, SKUA_CQE_SUCCESS);
	expect_sent(s, SKUA_CQE_SUCCESS);
	assert_int_equal(STAT(s->w, b, rnr_nak_sent), 1);
}

static void keys_are_those_of_its_pd(void **state)
{
	struct shared *s = *state;
	struct world *w = s->w;
	struct node *b = &w->n[1];
	struct skua_cmd pd = CMD(SKUA_CMD_CREATE_PD), mr = create_mr_cmd(b), user;
	uint32_t pdn = must(w, b, pd), key = b->key;

	/* QPs of another PD use entries with keys of the SRQ's, */
	user = user_cmd(s);
	user.create_qp.pdn = htole32(pdn);
	must(w, b, object_cmd(SKUA_CMD_DESTROY_QP, s->at_b[0]));
	s->at_b[0] = must(w, b, user);
	peer(s, 0);
	must(w, &w->n[0], state_cmd(w->n[0].qpn, SKUA_QPS_RESET));
	to_rts(w, &w->n[0], b, w->n[0].qpn, s->at_b[0]);
	to_rts(w, b, &w->n[0], s->at_b[0], w->n[0].qpn);
	post_entries(b, 1);
	send(s, 0, 100);
	expect_sent(s, SKUA_CQE_SUCCESS);
	expect_received(s, 0, 0, SKUA_CQE_SUCCESS);
	/* and none of their own, */
	mr.create_mr.pdn = htole32(pdn);
	b->key = must(w, b, mr);
	post_recv(b, b->buf, 4096);
	send(s, 0, 100);
	expect_sent(s, SKUA_CQE_REM_OP_ERR);
	expect_received(s, 0, 1, SKUA_CQE_LOC_PROT_ERR);
	/* nor privileged ones, even if the QP is. */
	user = user_cmd(s);
	user.create_qp.flags = htole32(SKUA_QP_PRIVILEGED);
	must(w, b, object_cmd(SKUA_CMD_DESTROY_QP, s->at_b[1]));
	s->at_b[1] = must(w, b, user);
	peer(s, 1);
	must(w, &w->n[0], state_cmd(w->n[0].qpn, SKUA_QPS_RESET));
	to_rts(w, &w->n[0], b, w->n[0].qpn, s->at_b[1]);
	to_rts(w, b, &w->n[0], s->at_b[1], w->n[0].qpn);
	b->key = 0xffffff00u;
	post_recv(b, b->buf, 4096);
	b->key = key;
	send(s, 1, 100);
	expect_sent(s, SKUA_CQE_REM_OP_ERR);
	expect_received(s, 1, 2, SKUA_CQE_LOC_PROT_ERR);
}

static void a_qp_in_error_flushes_what_it_took(void **state)
{
	struct shared *s = *state;
	struct world *w = s->w;
	struct node *b = &w->n[1];

	post_entries(b, 3);
	begin_message(s, 0);
	modify_state(s, 0, SKUA_QPS_ERR);
	expect_received(s, 0, 0, SKUA_CQE_WR_FLUSH_ERR);
	expect_event(w, b, SKUA_EVENT_LAST_WQE_REACHED, s->at_b[0]);
	expect_none(w, b);
	pass(w, 1000000000);
	ring(b, SKUA_DB_SQ, s->at_b[0], 0);
	expect_no_event(w, b);
	/* One that has taken nothing has reached its last, too. */
	modify_state(s, 2, SKUA_QPS_ERR);
	expect_event(w, b, SKUA_EVENT_LAST_WQE_REACHED, s->at_b[2]);
	expect_none(w, b);
	/* The others go on. */
	send(s, 1, 100);
	expect_received(s, 1, 1, SKUA_CQE_SUCCESS);
	/* And each time anew. */
	modify_state(s, 2, SKUA_QPS_RESET);
	must(w, b, init_cmd(s->at_b[2]));
	modify_state(s, 2, SKUA_QPS_ERR);
	expect_event(w, b, SKUA_EVENT_LAST_WQE_REACHED, s->at_b[2]);
	expect_no_event(w, b);
}

/* In the place of user 0: one whose SQ record can be taken away, in RTR. Its peer is silent. */
static void make_user_with_loose_record(struct shared *s)
{
	struct world *w = s->w;
	struct node *a = peer(s, 0), *b = &w->n[1];
	struct skua_cmd user;

	must(w, a, state_cmd(a->qpn, SKUA_QPS_RESET));
	new_queues(b);
	b->sq_dbr = EXTRA;
	user = user_cmd(s);
	b->qpn = s->at_b[0] = must(w, b, user);
	must(w, b, init_cmd(b->qpn));
	must(w, b, rtr_cmd(b->qpn, a, a->qpn));
}

/* The QP finds out when it has nothing to do, and asks for the next doorbell. */
static void lose_record(struct shared *s)
{
	struct node *b = &s->w->n[1];

	unmap_extra(b);
	ring(b, SKUA_DB_SQ, b->qpn, b->sq_pi);
	settle(s->w);
	expect_event(s->w, b, SKUA_EVENT_QP_FATAL, b->qpn);
}

static void a_record_that_an_idle_qp_cannot_reach(void **state)
{
	struct shared *s = *state;
	struct node *b = &s->w->n[1];

	make_user_with_loose_record(s);
	lose_record(s);
	expect_event(s->w, b, SKUA_EVENT_LAST_WQE_REACHED, b->qpn);
}

/* The second READ waits for the first one, and no WQE is taken from the ring meanwhile. */
static void a_record_that_a_waiting_qp_cannot_reach(void **state)
{
	struct shared *s = *state;
	struct node *b = &s->w->n[1];
	struct skua_cmd rts;

	make_user_with_loose_record(s);
	rts = rts_cmd(b->qpn);
	rts.modify_qp.attr.max_rd_atomic = htole16(1);
	must(s->w, b, rts);
	for (int i = 0; i < 2; i++)
		post(b, SKUA_WQE_READ, SKUA_WQE_SIGNALED, b->buf, 8, 0, 0, 0);
	settle(s->w);
	lose_record(s);
	for (int i = 0; i < 2; i++)
		expect(s->w, b, SKUA_CQE_READ, SKUA_CQE_WR_FLUSH_ERR);
	expect_event(s->w, b, SKUA_EVENT_LAST_WQE_REACHED, b->qpn);
}

/* @end: what becomes of the QP that has taken an entry, which another then takes. */
static void comes_back(struct shared *s, struct skua_cmd end)
{
	struct world *w = s->w;
	struct node *a = &w->n[0], *b = &w->n[1];

	fill(a, 4096, 3);
	post_entries(b, 2);
	begin_message(s, 0);
	must(w, b, end);
	expect_none(w, b);
	expect_no_event(w, b);
	memset(at(b, place(b, 0)), 0, 4096);
	send(s, 1, 2000);
	expect_received(s, 1, 0, SKUA_CQE_SUCCESS);
	assert_memory_equal(at(b, place(b, 0)), at(a, a->buf), 2000);
	send(s, 2, 100);
	expect_received(s, 2, 1, SKUA_CQE_SUCCESS);
	send(s, 2, 100);
	expect_none(w, b);
}

static void an_entry_of_a_qp_that_is_reset_comes_back(void **state)
{
	struct shared *s = *state;

	comes_back(s, state_cmd(s->at_b[0], SKUA_QPS_RESET));
}

static void an_entry_of_a_qp_that_goes_comes_back(void **state)
{
	struct shared *s = *state;

	comes_back(s, object_cmd(SKUA_CMD_DESTROY_QP, s->at_b[0]));
}

/* As begin_message(), to the UC QP that is user 0. */
static void begin_uc_message(struct shared *s, uint32_t psn)
{
	struct node *a = &s->w->n[0], *b = &s->w->n[1];
	struct seglist payload = { 1, MTU, { { at(a, a->buf), MTU } } };
	struct train t = train_from(b, TRAIN_SEND, psn);

	t.transport = TRANSPORT_UC;
	t.dest_qpn = s->at_b[0];
	t.payload = &payload;
	t.last = false;
	arrive(s->w, b, a, t);
}

/* A UC QP of b's in the place of user 0, that has a peer. */
static void make_uc_user(struct shared *s)
{
	struct world *w = s->w;
	struct node *nodes[] = { peer(s, 0), &w->n[1] };
	struct skua_cmd cmds[] = { create_qp_cmd(nodes[0]), user_cmd(s) };

	for (int i = 0; i < 2; i++) {
		cmds[i].create_qp.type = SKUA_QPT_UC;
		nodes[i]->qpn = must(w, nodes[i], cmds[i]);
	}
	for (int i = 0; i < 2; i++) {
		struct skua_cmd rtr = rtr_cmd(nodes[i]->qpn, nodes[!i], nodes[!i]->qpn), rts = rts_cmd(nodes[i]->qpn);

		rtr.modify_qp.mask = htole32(SKUA_QP_ATTR_STATE | SKUA_QP_ATTR_AV | SKUA_QP_ATTR_PATH_MTU |
					     SKUA_QP_ATTR_DEST_QPN | SKUA_QP_ATTR_RQ_PSN);
		rts.modify_qp.mask = htole32(SKUA_QP_ATTR_STATE | SKUA_QP_ATTR_SQ_PSN);
		must(w, nodes[i], init_cmd(nodes[i]->qpn));
		must(w, nodes[i], rtr);
		must(w, nodes[i], rts);
	}
	s->at_b[0] = nodes[1]->qpn;
}

static void uc_qps_use_one(void **state)
{
	struct shared *s = *state;
	struct world *w = s->w;
	struct node *a = &w->n[0], *b = &w->n[1];

	post_entries(b, 4);
	make_uc_user(s);
	fill(a, 4096, 5);
	post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 3000, 0, 0, 0);
	expect_sent(s, SKUA_CQE_SUCCESS);
	expect_received(s, 0, 0, SKUA_CQE_SUCCESS);
	assert_memory_equal(at(b, place(b, 0)), at(a, a->buf), 3000);
	/* What it has taken it flushes, */
	begin_uc_message(s, FIRST_PSN + 3);
	modify_state(s, 0, SKUA_QPS_ERR);
	expect_received(s, 0, 1, SKUA_CQE_WR_FLUSH_ERR);
	expect_event(w, b, SKUA_EVENT_LAST_WQE_REACHED, s->at_b[0]);
	expect_none(w, b);
	/* or gives back. */
	make_uc_user(s);
	begin_uc_message(s, FIRST_PSN);
	modify_state(s, 0, SKUA_QPS_RESET);
	expect_none(w, b);
	expect_no_event(w, b);
	send(s, 1, 100);
	expect_sent(s, SKUA_CQE_SUCCESS);
	expect_received(s, 1, 2, SKUA_CQE_SUCCESS);
}

static void ud_qps_use_one(void **state)
{
	struct shared *s = *state;
	struct world *w = s->w;
	struct node *a = peer(s, 0), *b = &w->n[1];
	struct skua_cmd user = user_cmd(s);
	struct skua_cqe *cqe;

	ud_queues(w, a, SKUA_QPT_UD, SKUA_QPS_RTS);
	user.create_qp.type = SKUA_QPT_UD;
	b->qpn = must(w, b, user);
	ud_bring(w, b, QKEY, SKUA_QPS_RTS);
	s->at_b[0] = b->qpn;
	fill(a, 4096, 9);
	/* Nothing is posted: it is dropped, as from an RQ. */
	post_ud(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 8, ud_to(b), 0);
	expect_sent(s, SKUA_CQE_SUCCESS);
	expect_none(w, b);
	post_entries(b, 2);
	post_ud(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 500, ud_to(b), 0);
	expect_sent(s, SKUA_CQE_SUCCESS);
	cqe = expect_datagram(w, b, 40 + 500);
	assert_int_equal(le32toh(cqe->qpn), b->qpn);
	assert_int_equal(le64toh(cqe->qp_handle), SRQ_HANDLE);
	assert_true(cqe->flags & SKUA_CQE_FROM_SRQ);
	assert_int_equal(le32toh(cqe->cookie), 0);
	assert_memory_equal((uint8_t *)at(b, place(b, 0)) + 40, at(a, a->buf), 500);
	/* It takes no more in error, and leaves the rest to others. */
	modify_state(s, 0, SKUA_QPS_ERR);
	expect_event(w, b, SKUA_EVENT_LAST_WQE_REACHED, b->qpn);
	expect_none(w, b);
	send(s, 1, 100);
	expect_received(s, 1, 1, SKUA_CQE_SUCCESS);
}

/* Those that come back stand before the ring, and are given away with the device. */
static void many_come_back(void **state)
{
	struct shared *s = *state;
	struct node *b = &s->w->n[1];

	post_entries(b, QPS + 1);
	for (int i = 0; i < QPS; i++)
		begin_message(s, i);
	for (int i = 1; i < QPS; i++)
		must(s->w, b, object_cmd(SKUA_CMD_DESTROY_QP, s->at_b[i]));
	modify_state(s, 0, SKUA_QPS_ERR);
	expect_received(s, 0, 0, SKUA_CQE_WR_FLUSH_ERR);
}

static uint32_t limit_of(struct shared *s)
{
	struct skua_srq_attr *attr = query(s->w, &s->w->n[1], object_cmd(SKUA_CMD_QUERY_SRQ, s->srqn), sizeof(*attr));

	assert_int_equal(attr->log_size, LOG_RQ);
	return le32toh(attr->limit);
}

static void the_limit_is_told_once(void **state)
{
	struct shared *s = *state;
	struct world *w = s->w;
	struct node *b = &w->n[1];
	struct skua_async_eqe *eqe;

	post_entries(b, 4);
	must(w, b, modify_srq_cmd(s->srqn, SKUA_SRQ_SET_LIMIT, 3));
	expect_no_event(w, b);
	assert_int_equal(limit_of(s), 3);
	send(s, 0, 100);
	expect_no_event(w, b);
	send(s, 1, 100);
	eqe = poll_aeq(b);
	assert_non_null(eqe);
	assert_int_equal(eqe->type, SKUA_EVENT_SRQ_LIMIT);
	assert_int_equal(le32toh(eqe->number), s->srqn);
	assert_int_equal(le64toh(eqe->handle), SRQ_HANDLE);
	assert_int_equal(limit_of(s), 0);
	send(s, 0, 100);
	expect_no_event(w, b);
	/* At once, where it is so already; and of a new one, too. */
	must(w, b, modify_srq_cmd(s->srqn, SKUA_SRQ_SET_LIMIT, 2));
	expect_event(w, b, SKUA_EVENT_SRQ_LIMIT, s->srqn);
	must(w, b, modify_srq_cmd(s->srqn, SKUA_SRQ_SET_LIMIT, 1));
	expect_no_event(w, b);
	/* A mask that does not name it leaves it. */
	must(w, b, modify_srq_cmd(s->srqn, 0, 0));
	assert_int_equal(limit_of(s), 1);
}

static void a_new_one_may_be_below_its_limit(void **state)
{
	struct shared *s = *state;
	struct node *b = &s->w->n[1];
	struct skua_cmd cmd = create_srq_cmd(b);

	new_queues(b);
	cmd = create_srq_cmd(b);
	cmd.create_srq.limit = htole32(1);
	s->srqn = must(s->w, b, cmd);
	expect_event(s->w, b, SKUA_EVENT_SRQ_LIMIT, s->srqn);
	assert_int_equal(limit_of(s), 0);
}

/* What came back is left, too. */
static void entries_that_came_back_count(void **state)
{
	struct shared *s = *state;
	struct node *b = &s->w->n[1];

	post_entries(b, 3);
	begin_message(s, 0);
	modify_state(s, 0, SKUA_QPS_RESET);
	must(s->w, b, modify_srq_cmd(s->srqn, SKUA_SRQ_SET_LIMIT, 3));
	expect_no_event(s->w, b);
	send(s, 1, 100);
	expect_event(s->w, b, SKUA_EVENT_SRQ_LIMIT, s->srqn);
}

/* Of two QPs that need a receive, each learns it; the host once. */
static void is_in_error(struct shared *s)
{
	struct world *w = s->w;
	struct node *b = &w->n[1];
	struct skua_srq_attr *attr;

	for (int i = 0; i < 2; i++) {
		send(s, i, 100);
		expect_sent(s, SKUA_CQE_REM_OP_ERR);
		if (!i)
			expect_event(w, b, SKUA_EVENT_SRQ_ERR, s->srqn);
		expect_event(w, b, SKUA_EVENT_QP_FATAL, s->at_b[i]);
		expect_event(w, b, SKUA_EVENT_LAST_WQE_REACHED, s->at_b[i]);
	}
	expect_no_event(w, b);
	attr = query(w, b, object_cmd(SKUA_CMD_QUERY_SRQ, s->srqn), sizeof(*attr));
	assert_int_equal(attr->error, 1);
	/* Who needs none goes on. */
	assert_int_equal(qp_state(w, b, s->at_b[2]), SKUA_QPS_RTS);
}

static void an_index_beyond_the_ring(void **state)
{
	struct shared *s = *state;
	struct node *b = &s->w->n[1];

	post_entries(b, 1);
	begin_message(s, 3);
	host_store32(&((struct skua_dbr *)at(b, b->rq_dbr))->pi, ENTRIES + 2);
	is_in_error(s);
	/* Nor is an entry taken that comes back. */
	must(s->w, b, object_cmd(SKUA_CMD_DESTROY_QP, s->at_b[3]));
	send(s, 2, 100);
	expect_sent(s, SKUA_CQE_REM_OP_ERR);
}

static void a_ring_that_cannot_be_reached(void **state)
{
	struct shared *s = *state;
	struct world *w = s->w;
	struct node *b = &w->n[1];
	struct skua_cmd cmd = modify_srq_cmd(s->srqn, SKUA_SRQ_SET_RING, 0);

	cmd.modify_srq.log_size = LOG_RQ;
	cmd.modify_srq.ring = list(EXTRA, 64u << LOG_RQ);
	must(w, b, cmd);
	b->rq = EXTRA;
	post_entries(b, 2);
	send(s, 0, 100);
	expect_sent(s, SKUA_CQE_SUCCESS);
	expect_received(s, 0, 0, SKUA_CQE_SUCCESS);
	unmap_extra(b);
	is_in_error(s);
	cmd.modify_srq.ring = list(take(b, 4096), 4096);
	assert_int_equal(command(w, b, &cmd), SKUA_CMD_BAD_STATE);
}

/* The device writes no entry: its ring may be where it may only read. */
static void a_ring_that_is_only_read(void **state)
{
	struct shared *s = *state;
	struct world *w = s->w;
	struct node *b = &w->n[1];
	struct skua_cmd create = create_srq_cmd(b), cmd = modify_srq_cmd(s->srqn, SKUA_SRQ_SET_RING, 0);

	unmap_extra(b);
	map_extra(b, false);
	create.create_srq.ring = list(EXTRA, 64u << LOG_RQ);
	must(w, b, create);
	cmd.modify_srq.log_size = LOG_RQ;
	cmd.modify_srq.ring = list(EXTRA, 64u << LOG_RQ);
	must(w, b, cmd);
	b->rq = EXTRA;
	post_entries(b, 1);
	send(s, 0, 100);
	expect_sent(s, SKUA_CQE_SUCCESS);
	expect_received(s, 0, 0, SKUA_CQE_SUCCESS);
}

static void another_ring_goes_on(void **state)
{
	struct shared *s = *state;
	struct world *w = s->w;
	struct node *b = &w->n[1];
	struct skua_cmd cmd = modify_srq_cmd(s->srqn, SKUA_SRQ_SET_RING | SKUA_SRQ_SET_LIMIT, 0);
	uint64_t old = b->rq, ring = take(b, 64u << (LOG_RQ + 1));

	post_entries(b, ENTRIES + 0);
	for (uint32_t i = 0; i < 10; i++) {
		send(s, 0, 100);
		expect_sent(s, SKUA_CQE_SUCCESS);
		expect_received(s, 0, i, SKUA_CQE_SUCCESS);
		post_entries(b, 1);
	}
	/* Twice as large: entries 10 to 73, at their indices there. */
	for (uint32_t i = 10; i < ENTRIES + 10; i++)
		memcpy(at(b, ring + (i & (2 * ENTRIES - 1)) * 64ull), at(b, old + (i & (ENTRIES - 1)) * 64ull), 64);
	cmd.modify_srq.log_size = LOG_RQ + 1;
	cmd.modify_srq.ring = list(ring, 64u << (LOG_RQ + 1));
	must(w, b, cmd);
	memset(at(b, old), 0xff, 64u << LOG_RQ);
	for (uint32_t i = 10; i < ENTRIES + 10; i++) {
		send(s, 1, 100);
		expect_sent(s, SKUA_CQE_SUCCESS);
		expect_received(s, 1, i, SKUA_CQE_SUCCESS);
	}
	/* Smaller than what is published and not taken: no. */
	host_store32(&((struct skua_dbr *)at(b, b->rq_dbr))->pi, ENTRIES + 10 + 5);
	cmd.modify_srq.log_size = 2;
	cmd.modify_srq.ring = list(old, 256);
	assert_int_equal(command(w, b, &cmd), SKUA_CMD_BAD_STATE);
	host_store32(&((struct skua_dbr *)at(b, b->rq_dbr))->pi, ENTRIES + 10 + 4);
	must(w, b, cmd);
}

/* The list of a ring of so many bytes, whose pages are all one, as are its tables; it takes more than a step to read. */
static struct skua_pagelist folded(struct node *n, uint64_t bytes)
{
	struct skua_pagelist pl = { .npages = htole32((uint32_t)(bytes / 4096 + 1)), .level = 2, .log_page = 12,
				    .offset = htole64(1024) };
	uint64_t iova[3] = { take(n, 4096), take(n, 4096), take(n, 4096) };

	for (int level = 0; level < 2; level++)
		for (uint32_t i = 0; i < 512; i++)
			((__le64 *)at(n, iova[level]))[i] = htole64(iova[level + 1] | SKUA_PL_PRESENT);
	pl.addr[0] = htole64(iova[0] | SKUA_PL_PRESENT);
	return pl;
}

/* Entries that are published while the list of a smaller ring is read. */
static void a_ring_that_becomes_too_small(void **state)
{
	struct shared *s = *state;
	struct node *b = &s->w->n[1];
	const uint32_t entries = 1u << 14;
	struct skua_cmd create = create_srq_cmd(b), cmd = modify_srq_cmd(0, SKUA_SRQ_SET_RING, 0);
	uint64_t dbr = take(b, 64), used;
	struct skua_srq_attr *attr;

	create.create_srq.log_size = 15;
	create.create_srq.log_stride = 10;
	create.create_srq.dbr_addr = htole64(dbr);
	create.create_srq.ring = folded(b, 2048 * entries);
	cmd.modify_srq.srqn = htole32(must(s->w, b, create));
	cmd.modify_srq.log_size = 14;
	cmd.modify_srq.ring = folded(b, 1024 * entries);
	used = b->dev->pages_used;
	host_store32(&((struct skua_dbr *)at(b, dbr))->pi, entries);
	cmd.hdr.id = htole32(b->cmd_pi);
	memcpy(at(b, b->cmd_ring + (b->cmd_pi & ((1 << LOG_CMD) - 1)) * sizeof(cmd)), &cmd, sizeof(cmd));
	host_store32(&((struct skua_dbr *)at(b, b->cmd_dbr))->pi, ++b->cmd_pi);
	ring(b, SKUA_DB_CMD, 0, b->cmd_pi);
	engine_step(b->engine);
	assert_non_null(b->dev->cmdq.making);
	host_store32(&((struct skua_dbr *)at(b, dbr))->pi, entries + 1);
	settle(s->w);
	attr = query(s->w, b, object_cmd(SKUA_CMD_QUERY_SRQ, le32toh(cmd.modify_srq.srqn)), sizeof(*attr));
	assert_int_equal(attr->log_size, 15);
	assert_int_equal(b->dev->pages_used, used);
	host_store32(&((struct skua_dbr *)at(b, dbr))->pi, entries);
	must(s->w, b, cmd);
}

int main(void)
{
#define SRQ(f, rules)	{ rules ": " #f, f, setup_shared, teardown_shared, NULL }
	const struct CMUnitTest tests[] = {
		SRQ(queues_that_may_be, "SRQ-1"),
		{ "FEA-2 SRQ-1: without_the_feature_there_are_none", without_the_feature_there_are_none, NULL, NULL, NULL },
		SRQ(bad_srqs, "CMD-11 GEN-2 SRQ-8 SRQ-10"),
		SRQ(limits_are_served, "LIM-1 CMD-14"),
		SRQ(a_used_srq_is_busy, "SRQ-11 OBJ-7"),
		SRQ(entries_are_taken_in_order_and_completed_in_any, "SRQ-3 SRQ-4"),
		SRQ(slots_are_free_by_count, "SRQ-5"),
		SRQ(an_empty_one_is_waited_for, "SRQ-3"),
		SRQ(keys_are_those_of_its_pd, "SRQ-1 SRQ-2"),
		SRQ(a_qp_in_error_flushes_what_it_took, "SRQ-4 SRQ-6"),
		SRQ(a_record_that_an_idle_qp_cannot_reach, "ERR-8 SRQ-6"),
		SRQ(a_record_that_a_waiting_qp_cannot_reach, "ERR-8 SRQ-6"),
		SRQ(an_entry_of_a_qp_that_is_reset_comes_back, "SRQ-7"),
		SRQ(an_entry_of_a_qp_that_goes_comes_back, "SRQ-7"),
		SRQ(uc_qps_use_one, "SRQ-1 SRQ-4 SRQ-6 SRQ-7"),
		SRQ(ud_qps_use_one, "SRQ-1 SRQ-4 SRQ-6"),
		SRQ(many_come_back, "SRQ-7"),
		SRQ(the_limit_is_told_once, "SRQ-8"),
		SRQ(a_new_one_may_be_below_its_limit, "SRQ-8"),
		SRQ(entries_that_came_back_count, "SRQ-8"),
		SRQ(an_index_beyond_the_ring, "SRQ-9"),
		SRQ(a_ring_that_cannot_be_reached, "SRQ-9 SRQ-10"),
		SRQ(a_ring_that_is_only_read, "PL-8 SRQ-10"),
		SRQ(another_ring_goes_on, "SRQ-10"),
		SRQ(a_ring_that_becomes_too_small, "SRQ-10 CMD-11"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
