// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Event queues: order, merging, events that find no room, interrupts, EQs that go away, FATAL. */
#include "core/device.h"
#include "harness/harness.h"
#include "nic/control.h"

#define ENTRIES 16	/* of both EQs of a node */

/* The EQE at @index, consumed or not; NULL while there is none. */
static struct skua_async_eqe *async_at(struct node *n, uint32_t index)
{
	struct skua_async_eqe *eqe = at(n, n->aeq + (index % ENTRIES) * 64ull);

	return (eqe->flags & SKUA_EQE_PHASE) == !(index / ENTRIES & 1) ? eqe : NULL;
}

static struct skua_comp_eqe *comp_at(struct node *n, uint32_t index)
{
	struct skua_comp_eqe *eqe = at(n, n->eq + (index % ENTRIES) * 16ull);

	return (eqe->flags & SKUA_EQE_PHASE) == !(index / ENTRIES & 1) ? eqe : NULL;
}

static void consume(struct node *n, uint64_t dbr, uint32_t ci)
{
	host_store32(&((struct skua_eq_dbr *)at(n, dbr))->ci, ci);
}

/* A new QP whose SQ overruns: one event, QP_FATAL with @handle. Returns its number. */
static uint32_t fatal_qp(struct world *w, struct node *n, uint64_t handle)
{
	struct queues old = new_queues(n), mine;
	struct skua_cmd cmd = create_qp_cmd(n);

	cmd.create_qp.qp_handle = htole64(handle);
	n->qpn = must(w, n, cmd);
	reconnect(w, n, &w->n[1]);
	host_store32(at(n, n->sq_dbr), 1000000);
	ring(n, SKUA_DB_SQ, n->qpn, 0);
	settle(w);
	mine = use_queues(n, old);
	return mine.qpn;
}

static void port_link(struct node *n, bool up)
{
	skua_dev_set_link(n->dev, up);
}

static void what_finds_no_room_waits(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint32_t qpns[20], cqn;

	for (uint64_t i = 0; i < 20; i++)
		qpns[i] = fatal_qp(w, n, 1000 + i);
	for (uint32_t i = 0; i < ENTRIES; i++) {
		struct skua_async_eqe *eqe = async_at(n, i);

		assert_non_null(eqe);
		assert_int_equal(eqe->type, SKUA_EVENT_QP_FATAL);
		assert_int_equal(le32toh(eqe->number), qpns[i]);
		assert_int_equal(le64toh(eqe->handle), 1000 + i);
		assert_int_equal(le64toh(eqe->timestamp), engine_now(w->engines[0]));
	}
	assert_null(async_at(n, ENTRIES));	/* nothing is overwritten */
	/* One that waits is dropped with its object; what stands in the EQ stays. */
	must(w, n, object_cmd(SKUA_CMD_DESTROY_QP, qpns[0]));
	must(w, n, object_cmd(SKUA_CMD_DESTROY_QP, qpns[17]));
	new_completions(n, 2);
	cqn = must(w, n, create_cq_cmd(n));
	assert_int_equal(skua_dev_inject(n->dev, SKUA_FAULT_CQ_ERROR, cqn), 0);
	settle(w);
	must(w, n, object_cmd(SKUA_CMD_DESTROY_CQ, cqn));
	assert_int_equal(le32toh(async_at(n, 0)->number), qpns[0]);
	/* Room for two, and the device looks with the next command; then for all. */
	consume(n, n->aeq_dbr, 2);
	must(w, n, (struct skua_cmd)CMD(SKUA_CMD_NOP));
	assert_int_equal(le32toh(async_at(n, ENTRIES)->number), qpns[16]);
	assert_int_equal(le32toh(async_at(n, ENTRIES + 1)->number), qpns[18]);
	assert_null(async_at(n, ENTRIES + 2));
	consume(n, n->aeq_dbr, 10);
	must(w, n, (struct skua_cmd)CMD(SKUA_CMD_NOP));
	assert_int_equal(le32toh(async_at(n, ENTRIES + 2)->number), qpns[19]);
	assert_null(async_at(n, ENTRIES + 3));
}

/* Of port events that wait the last one counts. */
static void port_events_that_wait(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];

	port_link(n, false);
	expect_event(w, n, SKUA_EVENT_PORT_DOWN, 1);
	port_link(n, true);
	expect_event(w, n, SKUA_EVENT_PORT_UP, 1);
	port_link(n, true);
	expect_no_event(w, n);
	for (uint64_t i = 0; i < ENTRIES; i++)
		fatal_qp(w, n, i);
	port_link(n, false);
	port_link(n, true);
	port_link(n, false);
	port_link(n, true);
	consume(n, n->aeq_dbr, n->aeq_ci + ENTRIES);
	must(w, n, (struct skua_cmd)CMD(SKUA_CMD_NOP));
	n->aeq_ci += ENTRIES;
	expect_event(w, n, SKUA_EVENT_PORT_UP, 1);
	expect_no_event(w, n);
	/* A reset ends what waits. */
	must(w, n, object_cmd(SKUA_CMD_DESTROY_EQ, n->aeqn));
	port_link(n, false);
	port_link(n, true);
	revive(w, n);
	expect_no_event(w, n);
}

/* Without the asynchronous EQ events wait for the next one. */
static void events_outlive_the_eq(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_cmd cmd = create_eq_cmd(n);

	must(w, n, object_cmd(SKUA_CMD_DESTROY_EQ, n->aeqn));
	fatal_qp(w, n, 5);
	port_link(n, false);
	memset(at(n, n->aeq), 0, 4096);
	expect_no_event(w, n);
	n->aeq_ci = 0;
	consume(n, n->aeq_dbr, 0);
	cmd.create_eq.type = SKUA_EQ_ASYNC;
	cmd.create_eq.dbr_addr = htole64(n->aeq_dbr);
	cmd.create_eq.ring = list(n->aeq, ENTRIES * 64);
	must(w, n, cmd);
	settle(w);
	assert_int_equal(async_at(n, 0)->type, SKUA_EVENT_QP_FATAL);
	assert_int_equal(async_at(n, 1)->type, SKUA_EVENT_PORT_DOWN);
}

static void complete_one(struct world *w, struct node *n)
{
	post(n, SKUA_WQE_NOP, SKUA_WQE_SIGNALED, 0, 0, 0, 0, 0);
	settle(w);
	assert_non_null(poll_cq(n));
}

/* One EQE of a CQ at a time: what fires before it is consumed is merged into it. */
static void events_of_a_cq_are_merged(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];

	for (uint32_t seq = 1; seq < 40; seq++) {
		arm(n, SKUA_CQ_ARM_NEXT, seq);
		complete_one(w, n);
	}
	assert_non_null(comp_at(n, 0));
	assert_null(comp_at(n, 1));
	/* The merged armings count as answered. */
	consume(n, n->eq_dbr, 1);
	complete_one(w, n);
	assert_null(comp_at(n, 1));
	/* From here on one each, twice around the EQ. */
	for (uint32_t i = 1; i < 2 * ENTRIES; i++) {
		arm(n, SKUA_CQ_ARM_NEXT, 100 + i);
		complete_one(w, n);
		assert_non_null(comp_at(n, i));
		assert_int_equal(le32toh(comp_at(n, i)->cqn), n->cqn);
		assert_int_equal(comp_at(n, i)->rsvd0, 0);
		consume(n, n->eq_dbr, i + 1);
	}
}

/* A CQ of its own for the node's QP, which is new, too: it fires, and its EQE is that with this @index. */
static void fire_another(struct world *w, struct node *n, uint32_t index)
{
	new_completions(n, 2);
	n->cqn = must(w, n, create_cq_cmd(n));
	new_queues(n);
	n->qpn = must(w, n, create_qp_cmd(n));
	reconnect(w, n, &w->n[1]);
	arm(n, SKUA_CQ_ARM_NEXT, 1);
	complete_one(w, n);
	assert_int_equal(le32toh(comp_at(n, index)->cqn), n->cqn);
}

/* An EQ with one entry for each of its CQs: all fire, and all find room. */
static void a_full_eq_has_room_for_all(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_cmd cmd;
	uint32_t seen = 0;

	for (uint32_t i = 1; i < ENTRIES; i++)
		fire_another(w, n, seen++);
	cmd = create_cq_cmd(n);
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_NO_RESOURCE);
	/* A destroyed CQ leaves its EQE, in the place of another's, until the host has consumed it. */
	must(w, n, object_cmd(SKUA_CMD_DESTROY_QP, n->qpn));
	must(w, n, object_cmd(SKUA_CMD_DESTROY_CQ, n->cqn));
	assert_int_equal(le32toh(comp_at(n, seen - 1)->cqn), n->cqn);
	cmd = create_cq_cmd(n);
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_NO_RESOURCE);
	consume(n, n->eq_dbr, seen - 1);
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_NO_RESOURCE);
	consume(n, n->eq_dbr, seen);
	fire_another(w, n, seen);
}

/* Of a CQ that was idle meanwhile: how many EQEs those of others are does not matter. */
static void an_event_after_very_many(void **state)
{
	static const uint64_t many[] = { 1ull << 31, 3ull << 30, 1ull << 32 };
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct eq *eq = numtab_get(&n->dev->eqs, n->eqn);

	for (uint32_t i = 0; i < sizeof(many) / sizeof(many[0]); i++) {
		arm(n, SKUA_CQ_ARM_NEXT, 1 + i);
		complete_one(w, n);
		assert_non_null(comp_at(n, i));
		/* The index in the ring stays the same. */
		eq->pi += many[i];
		consume(n, n->eq_dbr, (uint32_t)eq->pi);
	}
}

/* The vector is raised when the host asked for it, by its event word. */
static void interrupts_by_the_event_word(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_eq_dbr *dbr = at(n, n->eq_dbr);
	unsigned int raised = n->irqs[1];

	/* event behind the index: nothing is raised, while EQEs come and are consumed. */
	host_store32(&dbr->event, (uint32_t)-1);
	for (uint32_t i = 0; i < 20; i++) {
		arm(n, SKUA_CQ_ARM_NEXT, 1 + i);
		complete_one(w, n);
		assert_non_null(comp_at(n, i));
		consume(n, n->eq_dbr, i + 1);
	}
	assert_int_equal(n->irqs[1], raised);
	/* The host asks for the next one; for one only. */
	host_store32(&dbr->event, 20);
	for (uint32_t i = 20; i < 24; i++) {
		arm(n, SKUA_CQ_ARM_NEXT, 1 + i);
		complete_one(w, n);
		consume(n, n->eq_dbr, i + 1);
	}
	assert_int_equal(n->irqs[1], raised + 1);
	assert_int_equal(STAT(w, n, interrupts), raised + 1);
	assert_int_equal(STAT(w, n, events), 24);
}

static void without_the_event_index_each_interrupts(void **state)
{
	struct world *w = world_create_with(false, ~(1ull << SKUA_F_EVENT_IDX));
	struct node *n = &w->n[0];

	(void)state;
	host_store32(&((struct skua_eq_dbr *)at(n, n->eq_dbr))->event, (uint32_t)-1);
	for (uint32_t i = 0; i < 5; i++) {
		arm(n, SKUA_CQ_ARM_NEXT, 1 + i);
		complete_one(w, n);
		consume(n, n->eq_dbr, i + 1);
		assert_int_equal(n->irqs[1], i + 1);
	}
	world_destroy(w);
}

/* A completion EQ that goes away: its CQs are of no use, and the device goes on. */
static void a_completion_eq_that_goes_away(void **state)
{
	(void)state;
	for (int record = 0; record < 2; record++) {
		struct world *w = world_create(false);
		struct node *n = &w->n[0];
		struct skua_cmd cmd = create_eq_cmd(n);

		if (record)
			cmd.create_eq.dbr_addr = htole64(EXTRA);
		else
			cmd.create_eq.ring = list(EXTRA, 256);
		n->eqn = must(w, n, cmd);
		new_completions(n, 2);
		n->cqn = must(w, n, create_cq_cmd(n));
		new_queues(n);
		n->qpn = must(w, n, create_qp_cmd(n));
		reconnect(w, n, &w->n[1]);
		unmap_extra(n);
		arm(n, SKUA_CQ_ARM_NEXT, 1);
		complete_one(w, n);
		expect_event(w, n, SKUA_EVENT_CQ_ERR, n->cqn);
		expect_event(w, n, SKUA_EVENT_QP_FATAL, n->qpn);
		expect_no_event(w, n);
		assert_int_equal(reg_read(n, SKUA_REG_STATUS), SKUA_STATUS_READY | SKUA_STATUS_ENABLED);
		world_destroy(w);
	}
}

/* The asynchronous one: the device is dead, for that cause. */
static void the_asynchronous_eq_goes_away(void **state)
{
	(void)state;
	for (int record = 0; record < 2; record++) {
		struct world *w = world_create(false);
		struct node *n = &w->n[0];
		struct skua_cmd cmd = create_eq_cmd(n);

		must(w, n, object_cmd(SKUA_CMD_DESTROY_EQ, n->aeqn));
		cmd.create_eq.type = SKUA_EQ_ASYNC;
		cmd.create_eq.dbr_addr = htole64(record ? EXTRA : n->aeq_dbr);
		cmd.create_eq.ring = list(record ? n->aeq : EXTRA, ENTRIES * 64);
		must(w, n, cmd);
		unmap_extra(n);
		/* An event is due, which cannot be told. */
		host_store32(at(n, n->sq_dbr), 1000000);
		ring(n, SKUA_DB_SQ, n->qpn, 0);
		settle(w);
		assert_int_equal(reg_read(n, SKUA_REG_STATUS),
				 SKUA_STATUS_READY | SKUA_STATUS_ENABLED | SKUA_STATUS_FATAL);
		assert_int_equal(reg_read(n, SKUA_REG_HEALTH), SKUA_HEALTH_EQ_ADDRESS);
		/* The first cause stays. */
		skua_dev_fail(n->dev, SKUA_HEALTH_INJECTED);
		assert_int_equal(reg_read(n, SKUA_REG_HEALTH), SKUA_HEALTH_EQ_ADDRESS);
		world_destroy(w);
	}
}

/* FATAL: the event is the last thing that is written; commands, doorbells and packets do nothing. */
static void a_dead_device(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0], *b = &w->n[1];
	struct skua_cmd caps = CMD(SKUA_CMD_QUERY_DEVICE);
	unsigned int raised = n->irqs[0];
	uint8_t *image = malloc(MEM_SIZE);

	/* A command, and an arming, that the device knows of but has not seen. */
	post(n, SKUA_WQE_NOP, SKUA_WQE_SIGNALED, 0, 0, 0, 0, 0);
	settle(w);
	caps.hdr.out_addr = htole64(take(n, 64));
	caps.hdr.out_len = htole32(64);
	memcpy(at(n, n->cmd_ring + (n->cmd_pi & ((1 << LOG_CMD) - 1)) * sizeof(caps)), &caps, sizeof(caps));
	host_store32(at(n, n->cmd_dbr), n->cmd_pi + 1);
	ring(n, SKUA_DB_CMD, 0, n->cmd_pi + 1);
	skua_dev_fail(n->dev, SKUA_HEALTH_INJECTED);
	expect_event(w, n, SKUA_EVENT_DEVICE_FATAL, SKUA_HEALTH_INJECTED);
	assert_int_equal(n->irqs[0], raised + 1);
	assert_int_equal(*(uint64_t *)at(n, le64toh(caps.hdr.out_addr)), 0);
	arm(n, SKUA_CQ_ARM_NEXT, 1);
	ring(n, SKUA_DB_CQ_ARM, n->cqn, n->cq_ci);
	assert_null(poll_eq(n));
	post(n, SKUA_WQE_NOP, SKUA_WQE_SIGNALED, 0, 0, 0, 0, 0);
	ring(n, SKUA_DB_SQ, n->qpn, n->sq_pi);
	host_store32(at(n, n->cmd_dbr), n->cmd_pi + 1);
	ring(n, SKUA_DB_CMD, 0, n->cmd_pi + 1);
	memcpy(image, n->mem, MEM_SIZE);
	post(b, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, b->buf, 64, n->buf, n->key, 0);
	port_link(n, false);
	skua_dev_fail(n->dev, SKUA_HEALTH_INTERNAL);
	for (int i = 0; i < 9; i++)
		pass(w, 4096ull << 14);
	assert_memory_equal(image, n->mem, MEM_SIZE);
	expect(w, b, SKUA_CQE_WRITE, SKUA_CQE_RETRY_EXC_ERR);
	/* Nor do registers take anything but a reset. */
	reg_write(n, SKUA_REG_ACCEPTED_LO, 0);
	reg_write(n, SKUA_REG_CONTROL, SKUA_CONTROL_ENABLE);
	assert_int_equal(reg_read(n, SKUA_REG_STATUS),
			 SKUA_STATUS_READY | SKUA_STATUS_ENABLED | SKUA_STATUS_FATAL);
	assert_int_equal(reg_read(n, SKUA_REG_HEALTH), SKUA_HEALTH_INJECTED);
	port_link(n, true);
	revive(w, n);
	assert_int_equal(reg_read(n, SKUA_REG_HEALTH), SKUA_HEALTH_OK);
	free(image);
}

/* Of events that wait none is written before that of the death, nor after it. */
static void a_dead_device_with_events_that_wait(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];

	for (uint64_t i = 0; i < ENTRIES + 2; i++)
		fatal_qp(w, n, i);
	n->aeq_ci = ENTRIES;
	consume(n, n->aeq_dbr, n->aeq_ci);
	skua_dev_fail(n->dev, SKUA_HEALTH_INJECTED);
	expect_event(w, n, SKUA_EVENT_DEVICE_FATAL, SKUA_HEALTH_INJECTED);
	expect_no_event(w, n);
}

/* While the link is down nothing comes through, and timers run. */
static void a_link_that_is_down(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cmd cmd = CMD(SKUA_CMD_QUERY_PORT);

	cmd.hdr.port = 1;
	for (int end = 0; end < 2; end++) {
		port_link(&w->n[end], false);
		expect_event(w, &w->n[end], SKUA_EVENT_PORT_DOWN, 1);
		assert_int_equal(((struct skua_port_attr *)query(w, &w->n[end], cmd, 64))->link_up, 0);
		post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 64, b->buf, b->key, 0);
		settle(w);
		pass(w, 4096ull << 14);
		expect_none(w, a);
		assert_int_equal(STAT(w, b, rdma_rx_write), end);	/* none since the link is down */
		port_link(&w->n[end], true);
		pass(w, 4096ull << 14);
		expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
		expect_event(w, &w->n[end], SKUA_EVENT_PORT_UP, 1);
	}
	assert_int_equal(STAT(w, a, ack_timeouts), 4);
}

int main(void)
{
#define OWN(f, rules) { rules ": " #f, f, NULL, NULL, NULL }
	const struct CMUnitTest tests[] = {
		STEPPED(what_finds_no_room_waits, "EVT-5 EVT-6 EQE-1 EQE-2"),
		STEPPED(port_events_that_wait, "EVT-7 PRT-5 RST-1"),
		STEPPED(events_outlive_the_eq, "EQ-4 EVT-5 EQE-2"),
		STEPPED(events_of_a_cq_are_merged, "EVT-2 EVT-3 EVT-1 EQE-1 GEN-4"),
		STEPPED(a_full_eq_has_room_for_all, "EQ-3 EVT-2 EVT-4"),
		STEPPED(an_event_after_very_many, "EVT-2"),
		STEPPED(interrupts_by_the_event_word, "EVT-9 EVT-10 EVT-11"),
		OWN(without_the_event_index_each_interrupts, "EVT-9"),
		OWN(a_completion_eq_that_goes_away, "EVT-8 ERR-9 RST-5"),
		OWN(the_asynchronous_eq_goes_away, "EVT-8 RST-3"),
		STEPPED(a_dead_device_with_events_that_wait, "EVT-7 RST-3"),
		STEPPED(a_dead_device, "RST-3 EVT-7 RST-1 REG-5"),
		STEPPED(a_link_that_is_down, "PRT-5 ROC-13"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
