// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Doorbells and doorbell records: who may ring, what a ring means, and the event index. */
#include <signal.h>
#include <sys/mman.h>

#include "harness/harness.h"

#define WITHOUT_EVENT_IDX	(1 << SKUA_F_ETHERNET | 1 << SKUA_F_RC | 1 << SKUA_F_INVALIDATE)

static void write_block(struct node *n, uint32_t index)
{
	struct { struct skua_wqe_ctrl c; uint8_t rest[48]; } nop = {
		.c = { .opcode = SKUA_WQE_NOP, .flags = SKUA_WQE_SIGNALED, .nblocks = 1,
		       .cookie = htole32(index) } };

	memcpy(at(n, n->sq + (index & ((1 << LOG_SQ) - 1)) * 64ull), &nop, sizeof(nop));
}

/* Publish a NOP, and do not ring. */
static void publish(struct node *n)
{
	write_block(n, n->sq_pi++);
	host_store32(at(n, n->sq_dbr), n->sq_pi);
}

static uint32_t sq_event(struct node *n)
{
	return host_load32(&((struct skua_dbr *)at(n, n->sq_dbr))->event);
}

/* A record, alone in its page, and the index that is published when the device stores to it. */
static struct {
	struct skua_dbr *dbr;
	uint32_t pi;
} on_store;

static void publish_on_store(int signal)
{
	(void)signal;
	mprotect(on_store.dbr, SKUA_PAGE_SIZE, PROT_READ | PROT_WRITE);
	host_store32(&on_store.dbr->pi, on_store.pi);
}

/* Ring for nothing. When the device asks for the doorbell before it sleeps, its store faults, and @pi is published: after
 * its last look at the index, and before it has asked. */
static void publish_while_it_falls_asleep(struct world *w, struct node *n, uint64_t record, uint32_t pi, uint32_t doorbell,
					  uint32_t number)
{
	struct sigaction action = { .sa_handler = publish_on_store }, before;

	on_store.dbr = at(n, record);
	on_store.pi = pi;
	assert_int_equal(sigaction(SIGSEGV, &action, &before), 0);
	assert_int_equal(mprotect(on_store.dbr, SKUA_PAGE_SIZE, PROT_READ), 0);
	ring(n, doorbell, number, pi - 1);
	settle(w);
	mprotect(on_store.dbr, SKUA_PAGE_SIZE, PROT_READ | PROT_WRITE);
	sigaction(SIGSEGV, &before, NULL);
	assert_int_equal(host_load32(&on_store.dbr->pi), pi);
}

static void only_aligned_stores_of_64_bits_to_known_offsets_ring(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint64_t before, value = htole64(SKUA_DB(n->qpn, 1));
	static const struct { uint32_t offset, len; } bad[] = {
		{ SKUA_DB_SQ, 1 }, { SKUA_DB_SQ, 2 }, { SKUA_DB_SQ, 4 }, { SKUA_DB_SQ + 4, 4 },
		{ 0x18, 8 }, { 0x20, 8 }, { 0xff8, 8 }, { SKUA_PAGE_SIZE + SKUA_DB_CMD, 8 },
	};

	settle(w);
	publish(n);
	before = STAT(w, n, bad_doorbells);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		bar_write(n, SKUA_BAR_DOORBELL, bad[i].offset, &value, bad[i].len);
	expect_none(w, n);
	assert_int_equal(STAT(w, n, bad_doorbells) - before, sizeof(bad) / sizeof(bad[0]));
	bar_write(n, SKUA_BAR_DOORBELL, SKUA_DB_SQ, &value, 8);
	expect(w, n, SKUA_CQE_NOP, SKUA_CQE_SUCCESS);
}

static void doorbell_pages_read_zero(void **state)
{
	struct node *n = &((struct world *)*state)->n[0];
	uint64_t value;

	for (uint32_t offset = 0; offset < 3 * SKUA_PAGE_SIZE; offset += 8) {
		value = ~0ull;
		bar_read(n, SKUA_BAR_DOORBELL, offset, &value, 8);
		assert_int_equal(value, 0);
	}
}

static void a_queue_is_rung_from_its_own_page_only(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_cmd cmd;
	uint64_t before;

	new_queues(n);
	cmd = create_qp_cmd(n);
	cmd.create_qp.db_page = htole32(3);
	n->qpn = must(w, n, cmd);
	reconnect(w, n, &w->n[1]);
	settle(w);
	before = STAT(w, n, bad_doorbells);
	publish(n);
	ring_page(n, 0, SKUA_DB_SQ, n->qpn, n->sq_pi);
	ring_page(n, 4, SKUA_DB_SQ, n->qpn, n->sq_pi);
	ring_page(n, 3, SKUA_DB_SQ, n->qpn ^ 1, n->sq_pi);
	ring_page(n, 3, SKUA_DB_CQ_ARM, n->cqn, 0);	/* bound to page 0 */
	ring_page(n, 3, SKUA_DB_CQ_ARM, 0xabcdef, 0);
	expect_none(w, n);
	assert_int_equal(STAT(w, n, bad_doorbells) - before, 5);
	ring_page(n, 3, SKUA_DB_SQ, n->qpn, n->sq_pi);
	expect(w, n, SKUA_CQE_NOP, SKUA_CQE_SUCCESS);
}

/* The index of a doorbell is a hint; the record decides. */
static void the_record_decides(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	static const uint32_t hints[] = { 0, 1, 7, 0x80000000, 0xffffffff };

	settle(w);
	for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++) {
		write_block(n, n->sq_pi);
		ring(n, SKUA_DB_SQ, n->qpn, hints[i]);
		expect_none(w, n);
		publish(n);
		ring(n, SKUA_DB_SQ, n->qpn, hints[i]);
		expect(w, n, SKUA_CQE_NOP, SKUA_CQE_SUCCESS);
		expect_none(w, n);
	}
}

static void rings_that_nobody_asked_for_do_no_harm(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];

	for (int i = 0; i < 100; i++) {
		ring(n, SKUA_DB_SQ, n->qpn, n->sq_pi);
		ring(n, SKUA_DB_CQ_ARM, n->cqn, n->cq_ci);
		ring(n, SKUA_DB_CMD, 0, n->cmd_pi);
		settle(w);
	}
	expect_none(w, n);
	assert_int_equal(n->irqs[1], 0);
	assert_int_equal(qp_state(w, n, n->qpn), SKUA_QPS_RTS);
}

/* What the rule of the event index says, for every place that the event may have. */
static void event_due_is_the_manuals(void **state)
{
	static const uint32_t starts[] = { 0, 5, 0x7ffffffe, 0xfffffffd };

	(void)state;
	for (size_t s = 0; s < sizeof(starts) / sizeof(starts[0]); s++) {
		uint32_t old = starts[s];

		for (uint32_t n = 1; n < 5; n++) {
			for (int32_t e = -6; e < 10; e++) {
				bool in = e >= 0 && e < (int32_t)n;

				assert_int_equal(SKUA_EVENT_DUE(old + n, old + (uint32_t)e, old), in);
			}
		}
	}
}

static void an_idle_queue_asks_for_its_doorbell(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];

	for (int i = 0; i < 600; i++) {
		uint32_t many = 1 + (uint32_t)i % 3;

		settle(w);
		assert_int_equal(sq_event(n), n->sq_pi);
		/* Behind the event one ring stands for all; and once awake it needs none. */
		for (uint32_t j = 0; j < many; j++)
			publish(n);
		ring(n, SKUA_DB_SQ, n->qpn, n->sq_pi);
		publish(n);
		for (uint32_t j = 0; j < many + 1; j++)
			expect(w, n, SKUA_CQE_NOP, SKUA_CQE_SUCCESS);
		expect_none(w, n);
	}
}

/* The host sees that it need not ring, and the device that there is more. */
static void what_is_published_while_it_falls_asleep_is_taken(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_cmd nop = CMD(SKUA_CMD_NOP);
	uint32_t slot = n->cmd_pi & ((1 << LOG_CMD) - 1);

	settle(w);
	write_block(n, n->sq_pi++);
	publish_while_it_falls_asleep(w, n, n->sq_dbr, n->sq_pi, SKUA_DB_SQ, n->qpn);
	expect(w, n, SKUA_CQE_NOP, SKUA_CQE_SUCCESS);
	assert_int_equal(sq_event(n), n->sq_pi);

	memcpy(at(n, n->cmd_ring + slot * sizeof(nop)), &nop, sizeof(nop));
	n->cmd_pi++;
	publish_while_it_falls_asleep(w, n, n->cmd_dbr, n->cmd_pi, SKUA_DB_CMD, 0);
	assert_int_equal(host_load32(&((struct skua_dbr *)at(n, n->cmd_dbr))->event), n->cmd_pi);
}

/* The same while a WRITE is outstanding, whose peer does not answer: the window has room, so the WQE is taken at once. */
static void what_is_published_behind_others_is_taken(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0], *peer = &w->n[1];

	must(w, peer, port_cmd(SKUA_PORT_SET_FLAGS, 0));
	post(n, SKUA_WQE_WRITE, 0, n->buf, 8, peer->buf, peer->key, 0);
	settle(w);
	assert_int_equal(sq_event(n), n->sq_pi);
	write_block(n, n->sq_pi++);
	publish_while_it_falls_asleep(w, n, n->sq_dbr, n->sq_pi, SKUA_DB_SQ, n->qpn);
	expect_none(w, n);
	assert_int_equal(sq_event(n), n->sq_pi);
}

static void without_the_feature_every_publish_rings_and_event_is_left_alone(void **state)
{
	struct world *w = world_create_with(false, WITHOUT_EVENT_IDX);
	struct node *n = &w->n[0];
	struct skua_dbr *sq = at(n, n->sq_dbr), *cmds = at(n, n->cmd_dbr);

	(void)state;
	sq->event = 0x12345678;
	cmds->event = 0x12345678;
	for (int i = 0; i < 300; i++) {
		publish(n);
		ring(n, SKUA_DB_SQ, n->qpn, n->sq_pi);
		expect(w, n, SKUA_CQE_NOP, SKUA_CQE_SUCCESS);
	}
	reconnect(w, n, &w->n[1]);
	assert_int_equal(sq->event, 0x12345678);
	assert_int_equal(cmds->event, 0x12345678);
	world_destroy(w);
}

static void a_reset_of_the_queue_begins_at_zero(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];

	for (int i = 0; i < 5; i++)
		post(n, SKUA_WQE_NOP, SKUA_WQE_SIGNALED, 0, 0, 0, 0, 0);
	for (int i = 0; i < 5; i++)
		expect(w, n, SKUA_CQE_NOP, SKUA_CQE_SUCCESS);
	assert_int_equal(sq_event(n), 5);
	must(w, n, state_cmd(n->qpn, SKUA_QPS_RESET));
	assert_int_equal(sq_event(n), 0);
	/* pi is still 5: in RESET nobody looks. */
	ring(n, SKUA_DB_SQ, n->qpn, 5);
	expect_none(w, n);
	reconnect(w, n, &w->n[1]);
	expect_none(w, n);
	post(n, SKUA_WQE_NOP, SKUA_WQE_SIGNALED, 0, 0, 0, 0, 0);
	expect(w, n, SKUA_CQE_NOP, SKUA_CQE_SUCCESS);
	/* The RQ as well: of two receives and of one, each is flushed. */
	for (int receives = 2; receives > 0; receives--) {
		for (int i = 0; i < receives; i++)
			post_recv(n, n->buf, 8);
		must(w, n, state_cmd(n->qpn, SKUA_QPS_ERR));
		for (int i = 0; i < receives; i++)
			expect(w, n, SKUA_CQE_RECV, SKUA_CQE_WR_FLUSH_ERR);
		reconnect(w, n, &w->n[1]);
	}
	expect_no_event(w, n);
}

static void what_was_published_before_rts_counts_then(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0], *peer = &w->n[1];

	new_queues(n);
	n->qpn = must(w, n, create_qp_cmd(n));
	publish(n);
	ring(n, SKUA_DB_SQ, n->qpn, n->sq_pi);
	must(w, n, init_cmd(n->qpn));
	ring(n, SKUA_DB_SQ, n->qpn, n->sq_pi);
	expect_none(w, n);
	must(w, n, rtr_cmd(n->qpn, peer, peer->qpn));
	ring(n, SKUA_DB_SQ, n->qpn, n->sq_pi);
	expect_none(w, n);
	must(w, n, rts_cmd(n->qpn));
	expect(w, n, SKUA_CQE_NOP, SKUA_CQE_SUCCESS);
}

/* In ERR what is posted is flushed: the SQ when rung, the RQ by itself within 10 ms. */
static void in_err_both_queues_are_looked_at(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];

	/* Before ERR, when a receive is needed. */
	for (int i = 0; i < 2; i++) {
		post_recv(n, n->buf, 8);
		post(&w->n[1], SKUA_WQE_SEND, 0, w->n[1].buf, 8, 0, 0, 0);
		expect(w, n, SKUA_CQE_RECV, SKUA_CQE_SUCCESS);
	}
	post_recv(n, n->buf, 8);
	must(w, n, state_cmd(n->qpn, SKUA_QPS_ERR));
	expect(w, n, SKUA_CQE_RECV, SKUA_CQE_WR_FLUSH_ERR);	/* on entering */
	for (int i = 0; i < 50; i++) {
		settle(w);
		post_recv(n, n->buf, 8);
		expect_none(w, n);
		if (i & 1)
			post(n, SKUA_WQE_NOP, 0, 0, 0, 0, 0, 0);
		else
			pass(w, 10000000);
		settle(w);
		for (int j = 0; j < 1 + (i & 1); j++)
			assert_int_equal(await_cqe(w, n)->status, SKUA_CQE_WR_FLUSH_ERR);
	}
	expect_none(w, n);
}

static void garbage_in_event_words_is_not_read(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_dbr *dbr = at(n, n->sq_dbr);
	struct skua_cmd nop = CMD(SKUA_CMD_NOP);

	for (uint32_t i = 0; i < 100; i++) {
		host_store32(&dbr->event, i * 0x9e3779b1u);
		host_store32(&((struct skua_dbr *)at(n, n->cmd_dbr))->event, i * 0x9e3779b1u);
		publish(n);
		ring(n, SKUA_DB_SQ, n->qpn, n->sq_pi);
		expect(w, n, SKUA_CQE_NOP, SKUA_CQE_SUCCESS);
		must(w, n, nop);
	}
}

/* Every value that a record may hold instead of an index: an overrun at worst. */
static void garbage_in_records_ends_in_an_overrun_of_that_queue(void **state)
{
	static const uint32_t bad[] = { 0xffffffff, 0x80000000, (1 << LOG_SQ) + 1, 0xdeadbeef };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		for (int rq = 0; rq < 2; rq++) {
			struct world *w = world_create(false);
			struct node *n = &w->n[0], *peer = &w->n[1];

			settle(w);
			host_store32(at(n, rq ? n->rq_dbr : n->sq_dbr), bad[i]);
			ring(n, SKUA_DB_SQ, n->qpn, 0);
			if (rq)
				post(peer, SKUA_WQE_SEND, 0, peer->buf, 8, 0, 0, 0);
			expect_event(w, n, SKUA_EVENT_QP_FATAL, n->qpn);
			assert_int_equal(qp_state(w, n, n->qpn), SKUA_QPS_ERR);
			expect_none(w, n);
			assert_int_equal(reg_read(n, SKUA_REG_STATUS), SKUA_STATUS_READY | SKUA_STATUS_ENABLED);
			world_destroy(w);
		}
	}
}

/* What is posted later is not looked at, though the index is good again. */
static void an_rq_that_was_overrun_is_left_alone(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0], *peer = &w->n[1];

	settle(w);
	host_store32(at(n, n->rq_dbr), 0x80000000);
	post(peer, SKUA_WQE_SEND, 0, peer->buf, 8, 0, 0, 0);
	expect_event(w, n, SKUA_EVENT_QP_FATAL, n->qpn);
	post_recv(n, n->buf, 8);
	for (int i = 0; i < 3; i++)
		pass(w, 10000000);
	expect_none(w, n);
}

/* The other queue is flushed, and the bad one is left alone until RESET. */
static void the_other_queue_of_an_overrun_is_flushed(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];

	settle(w);
	post_recv(n, n->buf, 8);
	host_store32(at(n, n->sq_dbr), 0x80000000);
	ring(n, SKUA_DB_SQ, n->qpn, 0);
	expect(w, n, SKUA_CQE_RECV, SKUA_CQE_WR_FLUSH_ERR);
	host_store32(at(n, n->sq_dbr), 0);
	for (int i = 0; i < 3; i++) {
		publish(n);
		ring(n, SKUA_DB_SQ, n->qpn, 0);
		pass(w, 10000000);
	}
	expect_none(w, n);
	reconnect(w, n, &w->n[1]);
	post(n, SKUA_WQE_NOP, SKUA_WQE_SIGNALED, 0, 0, 0, 0, 0);
	expect(w, n, SKUA_CQE_NOP, SKUA_CQE_SUCCESS);
}

/* The words of the host stay the host's: of an SQ and of the command ring pi, of other records all. */
static void the_device_writes_no_record_but_its_event_words(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint64_t records[] = { a->rq_dbr, a->cq_dbr, a->eq_dbr, a->aeq_dbr };
	uint64_t with_event[] = { a->sq_dbr, a->cmd_dbr };
	struct train bad = train_from(a, TRAIN_WRITE, FIRST_PSN + 40);
	uint8_t before[4][64];

	for (int i = 0; i < 4; i++)
		memset((uint8_t *)at(a, records[i]) + 16, 0xa5, 48);
	for (int i = 0; i < 2; i++)
		memset((uint8_t *)at(a, with_event[i]) + 8, 0xa5, 56);
	for (int i = 0; i < 40; i++) {
		post_recv(a, a->buf, 64);
		arm(a, SKUA_CQ_ARM_NEXT, (uint32_t)i + 1);
		for (int j = 0; j < 4; j++)
			memcpy(before[j], at(a, records[j]), 64);
		post(b, SKUA_WQE_SEND, 0, b->buf, 64, 0, 0, 0);
		post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, 64, b->buf, b->key, 0);
		must(w, a, (struct skua_cmd)CMD(SKUA_CMD_NOP));
		if (i == 39) {		/* an asynchronous event, and a flush */
			bad.raddr = 0;
			bad.msg_len = 8;
			arrive(w, a, b, bad);
		}
		settle(w);
		for (int j = 0; j < 4; j++)
			assert_memory_equal(at(a, records[j]), before[j], 64);
		assert_int_equal(host_load32(at(a, a->sq_dbr)), a->sq_pi);
		assert_int_equal(host_load32(at(a, a->cmd_dbr)), a->cmd_pi);
		assert_non_null(poll_cq(a));
		while (poll_cq(a))
			;
		assert_non_null(poll_eq(a));
	}
	expect_event(w, a, SKUA_EVENT_QP_ACCESS_ERR, a->qpn);
	for (int i = 0; i < 2; i++)
		for (int j = 8; j < 64; j++)
			assert_int_equal(((uint8_t *)at(a, with_event[i]))[j], 0xa5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STEPPED(only_aligned_stores_of_64_bits_to_known_offsets_ring, "DBP-1 DBP-2"),
		STEPPED(doorbell_pages_read_zero, "DBP-1"),
		STEPPED(a_queue_is_rung_from_its_own_page_only, "DBP-2 SEC-2"),
		STEPPED(the_record_decides, "DBP-3"),
		STEPPED(rings_that_nobody_asked_for_do_no_harm, "DBP-4"),
		{ "DBR-5: event_due_is_the_manuals", event_due_is_the_manuals, NULL, NULL, NULL },
		STEPPED(an_idle_queue_asks_for_its_doorbell, "DBR-1 DBR-6"),
		STEPPED(what_is_published_while_it_falls_asleep_is_taken, "DBR-6"),
		STEPPED(what_is_published_behind_others_is_taken, "DBR-6"),
		{ "DBR-4 FEA-2: without_the_feature_every_publish_rings_and_event_is_left_alone",
		  without_the_feature_every_publish_rings_and_event_is_left_alone, NULL, NULL, NULL },
		STEPPED(a_reset_of_the_queue_begins_at_zero, "DBR-7"),
		STEPPED(what_was_published_before_rts_counts_then, "DBR-8"),
		STEPPED(in_err_both_queues_are_looked_at, "DBR-9 DBR-10 ORD-7"),
		STEPPED(garbage_in_event_words_is_not_read, "DBR-12"),
		{ "DBR-11 SEC-6 ERR-8 RST-5: garbage_in_records_ends_in_an_overrun_of_that_queue",
		  garbage_in_records_ends_in_an_overrun_of_that_queue, NULL, NULL, NULL },
		STEPPED(an_rq_that_was_overrun_is_left_alone, "ERR-8 DBR-11"),
		STEPPED(the_other_queue_of_an_overrun_is_flushed, "ERR-8"),
		STEPPED(the_device_writes_no_record_but_its_event_words, "DBR-1 DBR-2"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
