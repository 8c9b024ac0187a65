// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Completion queues that change: another ring takes the place of the first, and events wait for more CQEs. */
#include "core/device.h"
#include "harness/harness.h"

#define US	1000ull

/* A ring of so many CQEs, none of which is there for a host that has consumed those before its index. */
static uint64_t empty_ring(struct node *n, uint32_t log_size)
{
	uint64_t ring = take(n, 64ull << log_size);
	struct skua_cqe *cqes = at(n, ring);
	uint32_t size = 1u << log_size;

	for (uint32_t i = n->cq_ci; i != n->cq_ci + size; i++)
		cqes[i & (size - 1)].flags = i & size ? SKUA_CQE_PHASE : 0;
	return ring;
}

static struct skua_cmd resize_cmd(struct node *n, uint64_t ring, uint32_t log_size)
{
	struct skua_cmd cmd = CMD(SKUA_CMD_RESIZE_CQ, .resize_cq = {
		.cqn = htole32(n->cqn), .log_size = (uint8_t)log_size, .ring = list(ring, 64ull << log_size) });

	return cmd;
}

/* As the manual tells hosts to do it (CQ-6). */
static void resize(struct world *w, struct node *n, uint32_t log_size)
{
	uint64_t ring = empty_ring(n, log_size);
	struct skua_cqe *from = at(n, n->cq), *to = at(n, ring);
	uint32_t size = 1u << log_size, old = 1u << n->log_cq;

	must(w, n, resize_cmd(n, ring, log_size));
	for (uint32_t i = n->cq_ci; i != n->index; i++) {
		struct skua_cqe *cqe = &to[i & (size - 1)];

		*cqe = from[i & (old - 1)];
		cqe->flags &= (uint8_t)~SKUA_CQE_PHASE;
		cqe->flags |= i & size ? 0 : SKUA_CQE_PHASE;
	}
	memset(from, 0xff, 64ull << n->log_cq);
	n->cq = ring;
	n->log_cq = log_size;
}

static void nops(struct node *n, uint32_t count)
{
	while (count--)
		post(n, SKUA_WQE_NOP, SKUA_WQE_SIGNALED, 0, 0, 0, 0, 0);
}

static void expect_nops(struct world *w, struct node *n, uint32_t *next, uint32_t count)
{
	while (count--)
		assert_int_equal(le32toh(await_cqe(w, n)->cookie), (*next)++);
}

/* At every index of both rings, with CQEs in the old one and with none, to larger and smaller ones. */
static void another_ring_goes_on(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint32_t next = 0;

	for (uint32_t round = 0; round < 200; round++) {
		uint32_t left = round % 5;

		nops(n, left + round % 3);
		expect_nops(w, n, &next, round % 3);
		settle(w);
		resize(w, n, 3 + round % 4);
		assert_int_equal(n->index, n->cq_ci + left);
		/* As many as it holds, and they go round. */
		nops(n, (1u << n->log_cq) - left);
		expect_nops(w, n, &next, 1u << n->log_cq);
		nops(n, 1u << n->log_cq);
		expect_nops(w, n, &next, 1u << n->log_cq);
		expect_none(w, n);
		expect_no_event(w, n);
	}
}

/* Of two engines, the CQEs go on to come while the ring changes. */
static void another_ring_under_traffic(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint32_t next = 0;

	for (uint32_t round = 0; round < 100; round++) {
		nops(n, 30);
		resize(w, n, 5 + round % 3);
		nops(n, 2);
		expect_nops(w, n, &next, 32);
	}
}

static void the_new_ring_overflows_at_its_own_size(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint32_t next = 0;

	resize(w, n, 2);
	nops(n, 4);
	settle(w);
	expect_no_event(w, n);
	nops(n, 1);
	settle(w);
	expect_event(w, n, SKUA_EVENT_CQ_ERR, n->cqn);
	expect_event(w, n, SKUA_EVENT_QP_FATAL, n->qpn);
	expect_nops(w, n, &next, 4);
}

static void rings_that_cannot_be(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint64_t used = n->dev->pages_used;
	uint64_t good_ring = empty_ring(n, 3);
	struct skua_cmd cmd, good = resize_cmd(n, good_ring, 3);
	uint32_t next = 0;

	nops(n, 9);
	settle(w);
#define TRY(status_, ...) do {						\
	cmd = good;							\
	__VA_ARGS__;							\
	assert_int_equal(command(w, n, &cmd), status_);			\
	assert_int_equal(n->dev->pages_used, used);			\
} while (0)
	TRY(SKUA_CMD_BAD_STATE, );
	TRY(SKUA_CMD_BAD_OBJECT, cmd.resize_cq.cqn = htole32(n->cqn + 1));
	TRY(SKUA_CMD_BAD_PARAM, cmd.resize_cq.log_size = LIMIT_LOG_CQE + 1);
	TRY(SKUA_CMD_BAD_PARAM, cmd.resize_cq.rsvd0[58] = 1);
	TRY(SKUA_CMD_BAD_PARAM, cmd.resize_cq.ring.offset = htole64(8));
	/* The state comes before the quota and the list. */
	TRY(SKUA_CMD_BAD_STATE, cmd.resize_cq.ring = list(IOVA + MEM_SIZE, 512));
	n->dev->max_pages = used;
	TRY(SKUA_CMD_BAD_STATE, );
	TRY(SKUA_CMD_NO_RESOURCE, cmd = resize_cmd(n, good_ring, 4));
	n->dev->max_pages = SKUA_DEV_MAX_PAGES;
	TRY(SKUA_CMD_BAD_ADDRESS, cmd = resize_cmd(n, IOVA + MEM_SIZE, 4));
	/* What the host claims to have consumed was never there. */
	host_store32(at(n, n->cq_dbr), 100);
	TRY(SKUA_CMD_BAD_STATE, );
	host_store32(at(n, n->cq_dbr), 1);
	next = 1;
	n->cq_ci = 1;
	must(w, n, good);
	n->cq = good_ring;
	assert_int_equal(n->index, 9);
	n->log_cq = 3;
	n->cq_ci = 9;
	host_store32(at(n, n->cq_dbr), 9);
	next = 9;
	nops(n, 8);
	expect_nops(w, n, &next, 8);
	nops(n, 9);
	settle(w);
	expect_event(w, n, SKUA_EVENT_CQ_ERR, n->cqn);
	good = resize_cmd(n, empty_ring(n, 6), 6);
	used = n->dev->pages_used;
	TRY(SKUA_CMD_BAD_STATE, );
	TRY(SKUA_CMD_BAD_STATE, cmd.resize_cq.ring = list(IOVA + MEM_SIZE, 4096));
#undef TRY
}

static void moderate(struct world *w, struct node *n, uint16_t count, uint16_t period)
{
	struct skua_cmd cmd = CMD(SKUA_CMD_MODIFY_CQ, .modify_cq = {
		.cqn = htole32(n->cqn), .count = htole16(count), .period = htole16(period) });

	must(w, n, cmd);
	settle(w);
}

static bool fired(struct world *w, struct node *n)
{
	settle(w);
	return poll_eq(n);
}

static void events_wait_for_as_many(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];

	moderate(w, n, 4, 1000);
	for (uint32_t seq = 1; seq < 50; seq++) {
		arm(n, SKUA_CQ_ARM_NEXT, seq);
		nops(n, 3);
		assert_false(fired(w, n));
		nops(n, 1);
		assert_true(fired(w, n));
		while (poll_cq(n))
			;
		/* What comes while it is not armed does not count, once it is consumed. */
		nops(n, seq % 7);
		settle(w);
		while (poll_cq(n))
			;
	}
}

/* A host that arms late rings, and its event waits: that doorbell was not for nothing. */
static void a_doorbell_for_an_event_that_waits(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];

	moderate(w, n, 4, 1000);
	nops(n, 1);
	settle(w);
	arm(n, SKUA_CQ_ARM_NEXT, 1);
	for (int i = 0; i < 3; i++) {
		ring(n, SKUA_DB_CQ_ARM, n->cqn, n->cq_ci);
		assert_false(fired(w, n));
	}
	assert_int_equal(n->dev->flood.doorbells, 0);
	pass(w, 1000 * US);
	assert_true(fired(w, n));
	/* Answered: this one is. */
	ring(n, SKUA_DB_CQ_ARM, n->cqn, n->cq_ci);
	assert_false(fired(w, n));
	assert_int_equal(n->dev->flood.doorbells, 1);
}

static void events_wait_no_longer_than_that(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];

	moderate(w, n, 100, 50);
	for (uint32_t seq = 1; seq < 50; seq++) {
		arm(n, SKUA_CQ_ARM_NEXT, seq);
		pass(w, 200 * US);
		assert_false(fired(w, n));
		nops(n, 1);
		assert_false(fired(w, n));
		pass(w, 30 * US);
		/* From the first on. */
		nops(n, 1);
		assert_false(fired(w, n));
		pass(w, 19 * US);
		assert_false(fired(w, n));
		pass(w, 1 * US);
		assert_true(fired(w, n));
		pass(w, 200 * US);
		assert_false(fired(w, n));
		while (poll_cq(n))
			;
	}
	/* Nobody waits: no timer runs. */
	nops(n, 10);
	settle(w);
	pass(w, 200 * US);
	assert_false(fired(w, n));
}

/* One CQE, for which an event waits so many us. */
static void waits(struct world *w, struct node *n, unsigned int us)
{
	nops(n, 1);
	assert_false(fired(w, n));
	pass(w, (us - 1) * US);
	assert_false(fired(w, n));
	pass(w, 1 * US);
	assert_true(fired(w, n));
	assert_non_null(poll_cq(n));
}

/* The host polls what an event waits for, and arms anew: the next event waits as long as any, for its own CQEs. */
static void an_event_that_nobody_needs_any_more(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint32_t seq = 0;

	moderate(w, n, 100, 50);
	for (unsigned int us = 0; us < 100; us += 10) {
		arm(n, SKUA_CQ_ARM_NEXT, ++seq);
		nops(n, 1);
		assert_false(fired(w, n));
		assert_non_null(poll_cq(n));
		arm(n, SKUA_CQ_ARM_NEXT, ++seq);
		pass(w, us * US);
		assert_false(fired(w, n));
		waits(w, n, 50);
	}
}

/* Nobody waits for the event any more, so that it does not come, when another period is set for the next. */
static void the_old_period_of_an_event_that_does_not_come(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0], *peer = &w->n[1];

	moderate(w, n, 100, 1000);
	post_recv(n, n->buf, 8);
	arm(n, SKUA_CQ_ARM_NEXT, 1);
	nops(n, 1);
	assert_false(fired(w, n));
	arm(n, SKUA_CQ_ARM_SOLICITED, 2);
	moderate(w, n, 100, 50);
	assert_false(fired(w, n));
	post(peer, SKUA_WQE_SEND, SKUA_WQE_SOLICITED, peer->buf, 8, 0, 0, 0);
	assert_false(fired(w, n));
	pass(w, 49 * US);
	assert_false(fired(w, n));
	pass(w, 1 * US);
	assert_true(fired(w, n));
}

/* One that the host has consumed hurries no event that comes later. */
static void errors_of_before(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];

	moderate(w, n, 100, 50);
	post_recv(n, n->buf, 8);
	must(w, n, state_cmd(n->qpn, SKUA_QPS_ERR));
	settle(w);
	assert_int_equal(poll_cq(n)->status, SKUA_CQE_WR_FLUSH_ERR);
	reconnect(w, n, &w->n[1]);
	arm(n, SKUA_CQ_ARM_NEXT, 1);
	waits(w, n, 50);
}

static void errors_do_not_wait(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];

	moderate(w, n, 100, 1000);
	arm(n, SKUA_CQ_ARM_SOLICITED, 1);
	post_recv(n, n->buf, 8);
	assert_false(fired(w, n));
	must(w, n, state_cmd(n->qpn, SKUA_QPS_ERR));
	assert_true(fired(w, n));
}

/* What waits when the numbers change is told, and then others hold. */
static void other_numbers_hold_at_once(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	static const uint16_t none[][2] = { { 0, 0 }, { 1, 100 }, { 0, 100 }, { 100, 0 } };
	uint32_t seq = 0;

	for (unsigned int i = 0; i < 4; i++) {
		moderate(w, n, 10, 1000);
		arm(n, SKUA_CQ_ARM_NEXT, ++seq);
		nops(n, 1);
		assert_false(fired(w, n));
		moderate(w, n, none[i][0], none[i][1]);
		assert_true(fired(w, n));
		poll_cq(n);
		arm(n, SKUA_CQ_ARM_NEXT, ++seq);
		nops(n, 1);
		assert_true(fired(w, n));
		poll_cq(n);
	}
	/* From none to some: one that comes now waits. */
	moderate(w, n, 2, 1000);
	arm(n, SKUA_CQ_ARM_NEXT, ++seq);
	nops(n, 1);
	assert_false(fired(w, n));
}

static void a_cq_goes_while_an_event_waits(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_cmd cmd = CMD(SKUA_CMD_MODIFY_CQ);

	moderate(w, n, 10, 1000);
	arm(n, SKUA_CQ_ARM_NEXT, 1);
	nops(n, 1);
	assert_false(fired(w, n));
	must(w, n, object_cmd(SKUA_CMD_DESTROY_QP, n->qpn));
	must(w, n, object_cmd(SKUA_CMD_DESTROY_CQ, n->cqn));
	pass(w, 2000 * US);
	assert_false(fired(w, n));
	cmd.modify_cq.cqn = htole32(n->cqn);
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_BAD_OBJECT);
	cmd.modify_cq.rsvd[100] = 1;
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_BAD_PARAM);
}

static void without_the_features_there_is_neither(void **state)
{
	struct world *w = world_create_with(false, ~(1ull << SKUA_F_CQ_RESIZE | 1ull << SKUA_F_CQ_MODER));
	struct node *n = &w->n[0];
	struct skua_cmd resize = resize_cmd(n, empty_ring(n, 3), 3), modify = CMD(SKUA_CMD_MODIFY_CQ);

	(void)state;
	assert_int_equal(command(w, n, &resize), SKUA_CMD_BAD_OPCODE);
	modify.modify_cq.cqn = htole32(n->cqn);
	assert_int_equal(command(w, n, &modify), SKUA_CMD_BAD_OPCODE);
	world_destroy(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STEPPED(another_ring_goes_on, "CQ-6"),
		THREADED(another_ring_under_traffic, "CQ-6"),
		STEPPED(the_new_ring_overflows_at_its_own_size, "CQ-6 CQ-3"),
		STEPPED(rings_that_cannot_be, "CQ-6 CMD-11 CMD-12"),
		STEPPED(events_wait_for_as_many, "CQ-7"),
		STEPPED(a_doorbell_for_an_event_that_waits, "CQ-7"),
		STEPPED(events_wait_no_longer_than_that, "CQ-7"),
		STEPPED(an_event_that_nobody_needs_any_more, "CQ-7"),
		STEPPED(the_old_period_of_an_event_that_does_not_come, "CQ-7"),
		STEPPED(errors_of_before, "CQ-7"),
		STEPPED(errors_do_not_wait, "CQ-7"),
		STEPPED(other_numbers_hold_at_once, "CQ-7"),
		STEPPED(a_cq_goes_while_an_event_waits, "CQ-7"),
		{ "FEA-2: without_the_features_there_is_neither", without_the_features_there_is_neither, NULL, NULL,
		  NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
