// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Completion queues: what a CQE says, when there is none, arming, and overflow. */
#include "core/qp.h"
#include "harness/harness.h"

static void a_write_leaves_nothing_behind(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cqe *cqe;

	pass(w, 1234567);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED | SKUA_WQE_SOLICITED, a->buf, 100, b->buf, b->key, 0);
	cqe = await_cqe(w, a);
	assert_int_equal(le64toh(cqe->qp_handle), QP_HANDLE);
	assert_int_equal(le32toh(cqe->qpn), a->qpn);
	assert_int_equal(le64toh(cqe->timestamp), engine_now(w->engines[0]));
	assert_int_equal(le32toh(cqe->cookie), 0);
	assert_int_equal(cqe->byte_len, 0);
	assert_int_equal(cqe->imm_data, 0);
	assert_int_equal(le32toh(cqe->sq_ci), 1);
	assert_int_equal(cqe->vendor_err, 0);
	assert_int_equal(cqe->flags, SKUA_CQE_PHASE);
	for (size_t i = 0; i < sizeof(cqe->rsvd0); i++)
		assert_int_equal(cqe->rsvd0[i], 0);
	expect_none(w, b);
}

static void lengths_and_immediates(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cqe *cqe;

	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, 777, b->buf, b->key, 0);
	cqe = await_cqe(w, a);
	assert_int_equal(le32toh(cqe->byte_len), 777);
	post_recv(b, b->buf, 64);
	post(a, SKUA_WQE_WRITE_IMM, SKUA_WQE_SOLICITED, a->buf, 5000, b->buf, b->key, 0x11223344);
	cqe = await_cqe(w, b);
	assert_int_equal(cqe->opcode, SKUA_CQE_RECV_WRITE_IMM);
	assert_int_equal(le32toh(cqe->byte_len), 5000);
	assert_int_equal(cqe->imm_data, 0x11223344);
	assert_int_equal(cqe->flags, SKUA_CQE_PHASE | SKUA_CQE_WITH_IMM | SKUA_CQE_SOLICITED);
	assert_int_equal(cqe->sq_ci, 0);
	post_recv(b, b->buf, 64);
	post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED | SKUA_WQE_SOLICITED, a->buf, 0, 0, 0, 0);
	cqe = await_cqe(w, b);
	assert_int_equal(cqe->flags, SKUA_CQE_PHASE | SKUA_CQE_SOLICITED);
	assert_int_equal(cqe->byte_len, 0);
	assert_int_equal(le32toh(cqe->cookie), 1);
	cqe = await_cqe(w, a);
	assert_int_equal(cqe->flags, SKUA_CQE_PHASE);	/* never on the send side */
}

/* Unsignaled WQEs are retired by the next CQE, through many rounds of the ring. */
static void sq_ci_retires_blocks(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	for (uint32_t i = 1; i < 1000; i++) {
		for (int j = 0; j < 6; j++)
			post(a, j & 1 ? SKUA_WQE_NOP : SKUA_WQE_WRITE, 0, a->buf, j & 1 ? 0 : 8,
			     b->buf, b->key, 0);
		expect_none(w, a);
		post(a, SKUA_WQE_NOP, SKUA_WQE_SIGNALED, 0, 0, 0, 0, 0);
		assert_int_equal(le32toh(await_cqe(w, a)->sq_ci), i * 7);
	}
}

/* Phases and free-running indices, in the smallest rings. */
static void small_rings_wrap_often(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	for (uint32_t log = 0; log < 3; log++) {
		new_completions(a, log);
		a->cqn = must(w, a, create_cq_cmd(a));
		new_queues(a);
		a->qpn = must(w, a, create_qp_cmd(a));
		reconnect(w, a, b);
		reconnect(w, b, a);
		for (int i = 0; i < 1000; i++) {
			post(a, SKUA_WQE_NOP, SKUA_WQE_SIGNALED, 0, 0, 0, 0, 0);
			assert_int_equal(le32toh(await_cqe(w, a)->cookie), i);
			expect_none(w, a);
		}
	}
}

#define BEFORE_WRAP	(0u - 1024)	/* the phase is that of index 0 */

/* As if so many messages had come and gone: all indices of the node's QP and its CQ. */
static void begin_at(struct node *n, uint32_t index)
{
	struct skua_qp *qp = numtab_get(&n->dev->qps, n->qpn);
	struct skua_dbr *sq = at(n, n->sq_dbr);

	qp->scq->pi = qp->scq->ci = qp->scq->urgent_pi = n->cq_ci = index;
	qp->sq.ci = qp->sq.done = n->sq_pi = index;
	qp->rq.ci = n->rq_pi = index;
	host_store32(at(n, n->cq_dbr), index);
	host_store32(&sq->pi, index);
	host_store32(&sq->event, index);
	host_store32(at(n, n->rq_dbr), index);
}

/* Entries are in use on both sides of 2^32. */
static void indices_wrap(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	for (int i = 0; i < 2; i++)
		begin_at(&w->n[i], BEFORE_WRAP);
	for (uint32_t round = 0; round < 683; round++) {
		uint32_t index = BEFORE_WRAP + 3 * round;
		struct skua_cqe *cqe;

		arm(b, SKUA_CQ_ARM_NEXT, round + 1);
		for (uint32_t i = 0; i < 3; i++) {
			post_recv(b, b->buf, 64);
			post(a, SKUA_WQE_SEND, i == 2 ? SKUA_WQE_SIGNALED : 0, a->buf, 64, 0, 0, 0);
		}
		for (uint32_t i = 0; i < 3; i++) {
			cqe = await_cqe(w, b);
			assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
			assert_int_equal(le32toh(cqe->cookie), index + i);
		}
		cqe = await_cqe(w, a);
		assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
		assert_int_equal(le32toh(cqe->cookie), index + 2);
		assert_int_equal(le32toh(cqe->sq_ci), index + 3);
		expect_none(w, a);
		expect_none(w, b);
		assert_non_null(poll_eq(b));
	}
	expect_no_event(w, a);
	expect_no_event(w, b);
}

/* A receive in error is a RECV, and its CQE says which it was. test_errors has those of WRITEs with immediate. */
static void errors_name_their_wqe(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cqe *cqe;

	post_recv(b, b->buf, 8);
	post(a, SKUA_WQE_NOP, 0, 0, 0, 0, 0, 0);
	post(a, SKUA_WQE_SEND, 0, a->buf, 9, 0, 0, 0);
	cqe = await_cqe(w, b);
	assert_int_equal(cqe->opcode, SKUA_CQE_RECV);
	assert_int_equal(cqe->status, SKUA_CQE_LOC_LEN_ERR);
	assert_int_equal(cqe->vendor_err, SKUA_VENDOR_ERR_MSG_TOO_LONG);
	assert_int_equal(le64toh(cqe->qp_handle), QP_HANDLE);
	assert_int_equal(le32toh(cqe->qpn), b->qpn);
	cqe = await_cqe(w, a);
	assert_int_equal(cqe->status, SKUA_CQE_REM_INV_REQ_ERR);
	assert_int_equal(cqe->vendor_err, SKUA_VENDOR_ERR_PEER_NAK);
	assert_int_equal(le32toh(cqe->cookie), 1);
	assert_int_equal(le32toh(cqe->sq_ci), 2);
}

static void receives_are_retired_in_order(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	for (uint32_t i = 0; i < 300; i++) {
		post_recv(b, b->buf, 64);
		if (i % 3 != 2)
			continue;
		for (int j = 0; j < 3; j++)
			post(a, SKUA_WQE_SEND, 0, a->buf, 64, 0, 0, 0);
		for (uint32_t j = 0; j < 3; j++)
			assert_int_equal(le32toh(await_cqe(w, b)->cookie), i - 2 + j);
	}
}

/* A CQ of two entries for a queue of @n more. */
static void small_cq(struct world *w, struct node *n)
{
	new_completions(n, 1);
	n->cqn = must(w, n, create_cq_cmd(n));
	new_queues(n);
	n->qpn = must(w, n, create_qp_cmd(n));
	reconnect(w, n, &w->n[1]);
}

static void a_cqe_too_many_breaks_the_cq_and_its_qps(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint32_t other = n->qpn;
	uint8_t before[256];
	uint8_t *ring_bytes;

	small_cq(w, n);
	ring_bytes = at(n, n->cq);
	memset(ring_bytes + 128, 0x5a, 128);
	post(n, SKUA_WQE_NOP, SKUA_WQE_SIGNALED, 0, 0, 0, 0, 0);
	post(n, SKUA_WQE_NOP, SKUA_WQE_SIGNALED, 0, 0, 0, 0, 0);
	settle(w);
	memcpy(before, ring_bytes, sizeof(before));
	expect_no_event(w, n);
	post(n, SKUA_WQE_NOP, SKUA_WQE_SIGNALED, 0, 0, 0, 0, 0);
	expect_event(w, n, SKUA_EVENT_CQ_ERR, n->cqn);
	expect_event(w, n, SKUA_EVENT_QP_FATAL, n->qpn);
	assert_int_equal(qp_state(w, n, n->qpn), SKUA_QPS_ERR);
	assert_int_equal(qp_state(w, n, other), SKUA_QPS_RTS);
	/* The CQE is nowhere; those before it can be consumed, but make no room. */
	assert_memory_equal(ring_bytes, before, sizeof(before));
	expect(w, n, SKUA_CQE_NOP, SKUA_CQE_SUCCESS);
	expect(w, n, SKUA_CQE_NOP, SKUA_CQE_SUCCESS);
	pass(w, 20000000);
	expect_none(w, n);
	expect_no_event(w, n);
	assert_memory_equal(ring_bytes, before, sizeof(before));
	assert_int_equal(STAT(w, n, cq_overflows), 1);
	/* It never fires. */
	arm(n, SKUA_CQ_ARM_NEXT, 1);
	((struct skua_cq_dbr *)at(n, n->cq_dbr))->arm = htole64(SKUA_CQ_ARM(SKUA_CQ_ARM_NEXT, 1, 0));
	ring(n, SKUA_DB_CQ_ARM, n->cqn, 0);
	settle(w);
	assert_null(poll_eq(n));
}

/* Those in RESET have nothing to do with it, the others are moved whatever their state. */
static void the_states_of_the_qps_of_a_broken_cq(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint32_t reset, init;

	small_cq(w, n);
	reset = must(w, n, create_qp_cmd(n));
	init = must(w, n, create_qp_cmd(n));
	must(w, n, init_cmd(init));
	for (int i = 0; i < 3; i++)
		post(n, SKUA_WQE_NOP, SKUA_WQE_SIGNALED, 0, 0, 0, 0, 0);
	expect_event(w, n, SKUA_EVENT_CQ_ERR, n->cqn);
	assert_int_equal(poll_aeq(n)->type, SKUA_EVENT_QP_FATAL);
	assert_int_equal(poll_aeq(n)->type, SKUA_EVENT_QP_FATAL);
	expect_no_event(w, n);
	assert_int_equal(qp_state(w, n, n->qpn), SKUA_QPS_ERR);
	assert_int_equal(qp_state(w, n, init), SKUA_QPS_ERR);
	assert_int_equal(qp_state(w, n, reset), SKUA_QPS_RESET);
}

/* The event of a CQ in error carries its handle; CQEs of the QP's other CQ go on. */
static void the_other_cq_of_a_qp_is_written(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct completions good = new_completions(n, 0);
	struct skua_cmd cmd = create_cq_cmd(n);
	struct skua_async_eqe *eqe;
	uint32_t bad;

	cmd.create_cq.cq_handle = htole64(0x1122334455667788);
	bad = must(w, n, cmd);
	use_completions(n, good);
	new_queues(n);
	cmd = create_qp_cmd(n);
	cmd.create_qp.send_cqn = htole32(bad);
	n->qpn = must(w, n, cmd);
	reconnect(w, n, &w->n[1]);
	post_recv(n, n->buf, 8);
	post(n, SKUA_WQE_NOP, SKUA_WQE_SIGNALED, 0, 0, 0, 0, 0);
	post(n, SKUA_WQE_NOP, SKUA_WQE_SIGNALED, 0, 0, 0, 0, 0);
	settle(w);
	eqe = poll_aeq(n);
	assert_non_null(eqe);
	assert_int_equal(eqe->type, SKUA_EVENT_CQ_ERR);
	assert_int_equal(le64toh(eqe->handle), 0x1122334455667788);
	expect(w, n, SKUA_CQE_RECV, SKUA_CQE_WR_FLUSH_ERR);
}

static void a_ring_that_cannot_be_reached_breaks_the_cq(void **state)
{
	for (int record = 0; record < 2; record++) {
		struct world *w = world_create(false);
		struct node *n = &w->n[0];
		struct skua_cmd cmd;

		new_completions(n, 2);
		cmd = create_cq_cmd(n);
		if (record)
			cmd.create_cq.dbr_addr = htole64(EXTRA);
		else
			cmd.create_cq.ring = list(EXTRA, 256);
		n->cqn = must(w, n, cmd);
		new_queues(n);
		n->qpn = must(w, n, create_qp_cmd(n));
		reconnect(w, n, &w->n[1]);
		unmap_extra(n);
		post(n, SKUA_WQE_NOP, SKUA_WQE_SIGNALED, 0, 0, 0, 0, 0);
		expect_event(w, n, SKUA_EVENT_CQ_ERR, n->cqn);
		expect_event(w, n, SKUA_EVENT_QP_FATAL, n->qpn);
		world_destroy(w);
	}
	(void)state;
}

/* WQEs that are flushed behind one with an error are none. */
static void errors_are_counted(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];

	post_recv(n, n->buf, 8);
	post(n, SKUA_WQE_NOP, SKUA_WQE_SIGNALED, 0, 0, 0, 0, 0);
	post(n, 0xff, SKUA_WQE_SIGNALED, 0, 0, 0, 0, 0);
	post(n, SKUA_WQE_NOP, SKUA_WQE_SIGNALED, 0, 0, 0, 0, 0);
	expect(w, n, SKUA_CQE_NOP, SKUA_CQE_SUCCESS);
	expect(w, n, SKUA_CQE_NOP, SKUA_CQE_LOC_QP_OP_ERR);
	for (int i = 0; i < 2; i++)
		assert_int_equal(await_cqe(w, n)->status, SKUA_CQE_WR_FLUSH_ERR);
	assert_int_equal(STAT(w, n, cqe_errors), 1);
}

static void destroying_a_qp_leaves_its_cqes(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint32_t destroyed;

	new_queues(n);
	destroyed = n->qpn = must(w, n, create_qp_cmd(n));
	reconnect(w, n, &w->n[1]);
	post(n, SKUA_WQE_NOP, SKUA_WQE_SIGNALED, 0, 0, 0, 0, 0);
	post(n, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, n->buf, 8, 0, 0, 0);	/* waits for a receive */
	settle(w);
	must(w, n, object_cmd(SKUA_CMD_DESTROY_QP, destroyed));
	assert_int_equal(le32toh(await_cqe(w, n)->qpn), destroyed);
	/* and what had not completed vanishes */
	pass(w, 100000000);
	expect_none(w, n);
}

/* Arming */

static void send_one(struct world *w, struct node *to, struct node *from, uint8_t flags)
{
	post_recv(to, to->buf, 8);
	post(from, SKUA_WQE_SEND, flags, from->buf, 8, 0, 0, 0);
	settle(w);
}

static void an_armed_cq_fires_once(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_comp_eqe *eqe;

	send_one(w, a, b, 0);			/* not armed */
	assert_null(poll_eq(a));
	poll_cq(a);
	for (uint32_t seq = 1; seq < 100; seq++) {
		arm(a, SKUA_CQ_ARM_NEXT, seq);
		settle(w);
		assert_null(poll_eq(a));
		for (int i = 0; i < 3; i++)
			send_one(w, a, b, 0);
		eqe = poll_eq(a);
		assert_non_null(eqe);
		assert_int_equal(le32toh(eqe->cqn), a->cqn);
		assert_null(poll_eq(a));
		/* That event is consumed now, but the CQ is not armed any more. */
		send_one(w, a, b, 0);
		assert_null(poll_eq(a));
		while (poll_cq(a))
			;
	}
}

static void a_cqe_that_was_there_fires_by_the_doorbell(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	send_one(w, a, b, 0);
	arm(a, SKUA_CQ_ARM_NEXT, 1);		/* at the index of that CQE */
	settle(w);
	assert_null(poll_eq(a));
	ring(a, SKUA_DB_CQ_ARM, a->cqn, a->cq_ci);
	settle(w);
	assert_non_null(poll_eq(a));
	/* Answered: it does not fire again. */
	ring(a, SKUA_DB_CQ_ARM, a->cqn, a->cq_ci);
	settle(w);
	assert_null(poll_eq(a));
	/* With all consumed there is nothing to fire for. */
	poll_cq(a);
	arm(a, SKUA_CQ_ARM_NEXT, 2);
	ring(a, SKUA_DB_CQ_ARM, a->cqn, a->cq_ci);
	settle(w);
	assert_null(poll_eq(a));
}

/* Who arms before polling, as some programs do, is not woken again for what woke it. */
static void what_gave_an_event_gives_no_other(void **state)
{
	static const enum skua_cq_arm_type types[] = { SKUA_CQ_ARM_NEXT, SKUA_CQ_ARM_SOLICITED };
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t seq = 1;

	arm(a, SKUA_CQ_ARM_NEXT, seq);
	send_one(w, a, b, SKUA_WQE_SOLICITED);
	assert_non_null(poll_eq(a));
	for (int i = 0; i < 10; i++) {
		arm(a, types[i % 2], ++seq);	/* at the index of that CQE */
		ring(a, SKUA_DB_CQ_ARM, a->cqn, a->cq_ci);
		settle(w);
		assert_null(poll_eq(a));
		assert_non_null(poll_cq(a));
		assert_null(poll_cq(a));
		send_one(w, a, b, SKUA_WQE_SOLICITED);
		assert_non_null(poll_eq(a));
		/* But for another that has come since, also if it came before the arming. */
		send_one(w, a, b, SKUA_WQE_SOLICITED);
		arm(a, types[i % 2], ++seq);
		ring(a, SKUA_DB_CQ_ARM, a->cqn, a->cq_ci);
		settle(w);
		assert_non_null(poll_eq(a));
		assert_non_null(poll_cq(a));
	}
}

static void without_the_event_index_the_doorbell_arms(void **state)
{
	struct world *w = world_create_with(false, ~(1ull << SKUA_F_EVENT_IDX));
	struct node *a = &w->n[0], *b = &w->n[1];

	(void)state;
	for (uint32_t seq = 1; seq < 20; seq++) {
		arm(a, SKUA_CQ_ARM_NEXT, seq);
		ring(a, SKUA_DB_CQ_ARM, a->cqn, a->cq_ci);
		settle(w);
		assert_null(poll_eq(a));
		send_one(w, a, b, 0);
		assert_non_null(poll_eq(a));
		while (poll_cq(a))
			;
		/* A CQE that was there before the arming. */
		send_one(w, a, b, 0);
		arm(a, SKUA_CQ_ARM_NEXT, ++seq);
		ring(a, SKUA_DB_CQ_ARM, a->cqn, a->cq_ci);
		settle(w);
		assert_non_null(poll_eq(a));
		poll_cq(a);
	}
	world_destroy(w);
}

static void solicited_only(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	arm(a, SKUA_CQ_ARM_SOLICITED, 1);
	send_one(w, a, b, 0);
	post(a, SKUA_WQE_NOP, SKUA_WQE_SIGNALED | SKUA_WQE_SOLICITED, 0, 0, 0, 0, 0);
	settle(w);
	assert_null(poll_eq(a));
	send_one(w, a, b, SKUA_WQE_SOLICITED);
	assert_non_null(poll_eq(a));
	while (poll_cq(a))
		;
	/* An error is as good, a flush too. */
	arm(a, SKUA_CQ_ARM_SOLICITED, 2);
	post_recv(a, a->buf, 8);
	must(w, a, state_cmd(a->qpn, SKUA_QPS_ERR));
	settle(w);
	assert_non_null(poll_eq(a));
}

/* A SOLICITED CQE before the armed index does not count, one behind it does. */
static void the_armed_index_counts(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	send_one(w, a, b, SKUA_WQE_SOLICITED);
	send_one(w, a, b, 0);
	poll_cq(a);
	arm(a, SKUA_CQ_ARM_SOLICITED, 1);
	ring(a, SKUA_DB_CQ_ARM, a->cqn, a->cq_ci);
	settle(w);
	assert_null(poll_eq(a));
	arm(a, SKUA_CQ_ARM_NEXT, 2);		/* replaces the arming before, which did not fire */
	ring(a, SKUA_DB_CQ_ARM, a->cqn, a->cq_ci);
	settle(w);
	assert_non_null(poll_eq(a));
	/* Of two CQEs, the first is before the armed index. */
	poll_cq(a);
	a->cq_ci++;
	arm(a, SKUA_CQ_ARM_NEXT, 3);
	a->cq_ci--;
	send_one(w, a, b, 0);
	assert_null(poll_eq(a));
	send_one(w, a, b, 0);
	assert_non_null(poll_eq(a));
}

static void a_later_arming_replaces_the_earlier(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	arm(a, SKUA_CQ_ARM_NEXT, 1);
	arm(a, SKUA_CQ_ARM_SOLICITED, 2);
	send_one(w, a, b, 0);
	assert_null(poll_eq(a));
	arm(a, SKUA_CQ_ARM_NONE, 3);
	send_one(w, a, b, SKUA_WQE_SOLICITED);
	assert_null(poll_eq(a));
}

/* Nor is anything written when it is destroyed: the host may read what was there. */
static void a_destroyed_cq_stays_as_it_was(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	size_t size = sizeof(struct skua_cqe) << LOG_CQ;
	uint8_t *ring = at(n, n->cq), *before = malloc(size);

	for (int i = 0; i < 3; i++)
		post(n, SKUA_WQE_NOP, SKUA_WQE_SIGNALED, 0, 0, 0, 0, 0);
	settle(w);
	must(w, n, object_cmd(SKUA_CMD_DESTROY_QP, n->qpn));
	memcpy(before, ring, size);
	must(w, n, object_cmd(SKUA_CMD_DESTROY_CQ, n->cqn));
	settle(w);
	assert_memory_equal(ring, before, size);
	for (int i = 0; i < 3; i++)
		assert_non_null(poll_cq(n));
	free(before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STEPPED(a_write_leaves_nothing_behind, "CQE-1 CQE-4 CQE-8 GEN-1 GEN-2 REG-7"),
		STEPPED(lengths_and_immediates, "CQE-8 ORD-6 GEN-1"),
		STEPPED(sq_ci_retires_blocks, "CQE-1 CQE-5"),
		STEPPED(small_rings_wrap_often, "GEN-3 GEN-4 CQ-2"),
		STEPPED(indices_wrap, "GEN-3 GEN-4"),
		STEPPED(errors_name_their_wqe, "CQE-3 CQE-5 RQE-4"),
		STEPPED(receives_are_retired_in_order, "CQE-6 RQE-2"),
		STEPPED(a_cqe_too_many_breaks_the_cq_and_its_qps,
			"CQ-2 CQ-3 CQ-4 ERR-9 ERR-10 ARM-6"),
		STEPPED(the_states_of_the_qps_of_a_broken_cq, "ERR-9"),
		STEPPED(the_other_cq_of_a_qp_is_written, "ERR-9"),
		{ "ERR-9 MEM-5: a_ring_that_cannot_be_reached_breaks_the_cq",
		  a_ring_that_cannot_be_reached_breaks_the_cq, NULL, NULL, NULL },
		STEPPED(a_destroyed_cq_stays_as_it_was, "CQ-4"),
		STEPPED(errors_are_counted, "STA-1"),
		STEPPED(destroying_a_qp_leaves_its_cqes, "CQ-5 QP-4"),
		STEPPED(an_armed_cq_fires_once, "ARM-1 ARM-4 ARM-5 EVT-1"),
		STEPPED(a_cqe_that_was_there_fires_by_the_doorbell, "ARM-2 ARM-4 ARM-5"),
		STEPPED(what_gave_an_event_gives_no_other, "ARM-4 ARM-5"),
		{ "ARM-3: without_the_event_index_the_doorbell_arms",
		  without_the_event_index_the_doorbell_arms, NULL, NULL, NULL },
		STEPPED(solicited_only, "ARM-4 ARM-7 CQE-8"),
		STEPPED(the_armed_index_counts, "ARM-4 ARM-8"),
		STEPPED(a_later_arming_replaces_the_earlier, "ARM-4 ARM-8"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
