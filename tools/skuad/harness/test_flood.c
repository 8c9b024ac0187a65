// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Doorbells that bring no work, of a program that rings all the time: what other programs publish is found without
 * their doorbells, which never arrive here, as if they were behind the others for ever.
 */
#include "core/qp.h"
#include "harness/harness.h"

#define FLOOD		100		/* doorbells at a time */
#define LOOK_NS		20000ull
#define FLOOD_END_NS	10000000ull
#define LOOK_QPS	16
#define MANY		(10 * LOOK_QPS)

enum ring { BAD_PAGE, BAD_QP, BAD_WIDTH, NO_WORK, NO_EVENT, RINGS };

/* As many doorbells as a flood has, at least. */
static void flood(struct node *n, enum ring kind, uint32_t qpn)
{
	uint64_t value = 0;

	for (int i = 0; i < FLOOD; i++) {
		switch (kind) {
		case BAD_PAGE:
			ring_page(n, 5, SKUA_DB_SQ, qpn, 1);
			break;
		case BAD_QP:
			ring(n, SKUA_DB_SQ, qpn ^ 1, 1);
			break;
		case BAD_WIDTH:
			bar_write(n, SKUA_BAR_DOORBELL, SKUA_DB_SQ, &value, 4);
			break;
		case NO_WORK:
			ring(n, SKUA_DB_SQ, qpn, 1);
			break;
		default:
			ring(n, SKUA_DB_CQ_ARM, n->cqn, 1);
		}
	}
}

/* Publish a request, and do not ring, even if asked to. */
static void publish(struct node *n, const struct node *peer, uint8_t opcode)
{
	struct { struct skua_wqe_ctrl c; struct skua_wqe_rdma r; struct skua_sge sge; uint8_t rest[16]; } wqe = {
		.c = { .opcode = opcode, .flags = SKUA_WQE_SIGNALED, .nblocks = 1 } };

	if (opcode == SKUA_WQE_WRITE) {
		wqe.c.num_sge = 1;
		wqe.r = (struct skua_wqe_rdma){ .raddr = htole64(peer->buf), .rkey = htole32(peer->key) };
		wqe.sge = (struct skua_sge){ htole64(n->buf), htole32(8), htole32(n->key) };
	}
	memcpy(at(n, n->sq + (n->sq_pi++ & ((1 << LOG_SQ) - 1)) * 64ull), &wqe, sizeof(wqe));
	host_store32(at(n, n->sq_dbr), n->sq_pi);
}

/* Work that is rung for. */
static void work(struct world *w, struct node *n)
{
	publish(n, NULL, SKUA_WQE_NOP);
	ring(n, SKUA_DB_SQ, n->qpn, n->sq_pi);
	expect(w, n, SKUA_CQE_NOP, SKUA_CQE_SUCCESS);
}

static bool asks(struct world *w, struct node *n)
{
	settle(w);
	return host_load32(&((struct skua_dbr *)at(n, n->sq_dbr))->event) == n->sq_pi;
}

static unsigned int timers(struct world *w)
{
	return w->engines[0]->timers.n;
}

/* One more QP in RTS, used from now on; returns the queues of before. */
static struct queues one_more(struct world *w, struct node *n)
{
	struct queues before = new_queues(n);

	n->qpn = must(w, n, create_qp_cmd(n));
	reconnect(w, n, &w->n[1]);
	return before;
}

static void what_is_published_is_found_without_doorbells(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0], *peer = &w->n[1];
	struct queues first = one_more(w, n);
	uint32_t other = n->qpn;

	use_queues(n, first);
	for (enum ring kind = 0; kind < RINGS; kind++) {
		assert_true(asks(w, n));
		for (int i = 0; i < 1000; i++) {
			flood(n, kind, other);
			publish(n, peer, i % 2 ? SKUA_WQE_WRITE : SKUA_WQE_NOP);
			pass(w, LOOK_NS);
			expect(w, n, i % 2 ? SKUA_CQE_WRITE : SKUA_CQE_NOP, SKUA_CQE_SUCCESS);
			assert_false(asks(w, n));
		}
		pass(w, FLOOD_END_NS);
		pass(w, LOOK_NS);
	}
}

static void commands_are_carried_out_without_doorbells(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_cmd nop = CMD(SKUA_CMD_NOP);
	uint64_t before = STAT(w, n, commands);

	for (uint32_t i = 0; i < 100; i++) {
		flood(n, BAD_PAGE, n->qpn);
		memcpy(at(n, n->cmd_ring + (n->cmd_pi & ((1 << LOG_CMD) - 1)) * sizeof(nop)), &nop, sizeof(nop));
		host_store32(&((struct skua_dbr *)at(n, n->cmd_dbr))->pi, ++n->cmd_pi);
		pass(w, LOOK_NS);
	}
	assert_int_equal(STAT(w, n, commands) - before, 101);
}

/* A program may ring its own QP without cause before it has work, and beside it. */
static void rings_of_its_own_change_nothing(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];

	flood(n, BAD_PAGE, n->qpn);
	work(w, n);
	for (int i = 0; i < 100; i++) {
		flood(n, NO_WORK, n->qpn);
		assert_false(asks(w, n));
		publish(n, NULL, SKUA_WQE_NOP);
		pass(w, LOOK_NS);
		expect(w, n, SKUA_CQE_NOP, SKUA_CQE_SUCCESS);
	}
}

static void it_ends_with_the_flood(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	unsigned int before = timers(w);

	for (int i = 0; i < 3; i++) {
		flood(n, BAD_PAGE, n->qpn);
		work(w, n);
		assert_false(asks(w, n));
		assert_int_equal(timers(w), before + 1);
		pass(w, FLOOD_END_NS - 1);
		assert_false(asks(w, n));
		pass(w, LOOK_NS);
		assert_true(asks(w, n));
		assert_int_equal(timers(w), before);
		publish(n, NULL, SKUA_WQE_NOP);
		pass(w, 1000000000);
		expect_none(w, n);
		ring(n, SKUA_DB_SQ, n->qpn, n->sq_pi);
		expect(w, n, SKUA_CQE_NOP, SKUA_CQE_SUCCESS);
		assert_true(asks(w, n));
	}
}

/* Some doorbells too many do not make a flood. */
static void few_are_no_flood(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];

	for (int i = 0; i < 100; i++) {
		for (int j = 0; j < 15; j++)
			ring_page(n, 5, SKUA_DB_SQ, n->qpn, 1);
		work(w, n);
		assert_true(asks(w, n));
		pass(w, 1000000);
	}
}

/* They take turns: one look does not grow with their number, and none is left out. */
static void many_take_turns(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct queues all[MANY];
	unsigned int done = 0, looks = 0;

	for (int i = 0; i < MANY; i++) {
		one_more(w, n);
		all[i] = use_queues(n, (struct queues){ 0 });
		use_queues(n, all[i]);
	}
	flood(n, BAD_PAGE, n->qpn);
	for (int i = 0; i < MANY; i++) {
		use_queues(n, all[i]);
		publish(n, NULL, SKUA_WQE_NOP);
	}
	for (; done < MANY && looks < 4 * MANY / LOOK_QPS; looks++) {
		pass(w, LOOK_NS);
		for (int i = 0; poll_cq(n); i++, done++)
			assert_true(i < 2 * LOOK_QPS);
	}
	assert_int_equal(done, MANY);
}

static void destroy(struct world *w, struct node *n)
{
	must(w, n, object_cmd(SKUA_CMD_DESTROY_QP, n->qpn));
}

static void to_err(struct world *w, struct node *n)
{
	must(w, n, state_cmd(n->qpn, SKUA_QPS_ERR));
	publish(n, NULL, SKUA_WQE_NOP);
	ring(n, SKUA_DB_SQ, n->qpn, n->sq_pi);
	expect(w, n, SKUA_CQE_NOP, SKUA_CQE_WR_FLUSH_ERR);
}

static void to_reset(struct world *w, struct node *n)
{
	must(w, n, state_cmd(n->qpn, SKUA_QPS_RESET));
	publish(n, NULL, SKUA_WQE_NOP);
}

static void reset_device(struct world *w, struct node *n)
{
	(void)w;
	reg_write(n, SKUA_REG_CONTROL, SKUA_CONTROL_RESET);
}

static void remove_memory(struct world *w, struct node *n)
{
	(void)w;
	skua_dev_mem_unmap_all(n->dev);
}

static void what_is_looked_at_may_go(void **state)
{
	static void (*const ways[])(struct world *w, struct node *n) = {
		destroy, to_err, to_reset, reset_device, remove_memory };

	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct world *w = world_create(false);
		struct node *n = &w->n[0];

		flood(n, BAD_PAGE, n->qpn);
		work(w, n);
		assert_false(asks(w, n));
		ways[i](w, n);
		for (int j = 0; j < 10; j++)
			pass(w, LOOK_NS);
		pass(w, FLOOD_END_NS);
		expect_none(w, n);
		world_destroy(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STEPPED(what_is_published_is_found_without_doorbells, "DBP-7 DBR-6"),
		STEPPED(commands_are_carried_out_without_doorbells, "DBP-7 DBR-6"),
		STEPPED(rings_of_its_own_change_nothing, "DBP-7"),
		STEPPED(it_ends_with_the_flood, "DBP-7 DBR-6"),
		STEPPED(few_are_no_flood, "DBP-7"),
		STEPPED(many_take_turns, "DBP-7"),
		{ "DBP-7: what_is_looked_at_may_go", what_is_looked_at_may_go, NULL, NULL, NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
