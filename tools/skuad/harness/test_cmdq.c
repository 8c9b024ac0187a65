// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The command queue: many commands at once, long ones, interrupts, rings that go away, and which of
 * two faults of a command counts. */

#include "harness/harness.h"

#define RING	(1 << LOG_CMD)
#define GONE	0x7000000000000000ull	/* no memory is there */
#define NOBODY	0xabcdef		/* no object has this number */

/* Into the ring, but not published yet. */
static void put(struct node *n, struct skua_cmd cmd, uint32_t id)
{
	cmd.hdr.id = htole32(id);
	memcpy(at(n, n->cmd_ring + (n->cmd_pi++ % RING) * sizeof(cmd)), &cmd, sizeof(cmd));
}

static void publish(struct node *n)
{
	host_store32(at(n, n->cmd_dbr), n->cmd_pi);
	ring(n, SKUA_DB_CMD, 0, n->cmd_pi);
}

/* The completion of the command at @index, or NULL while there is none. */
static struct skua_cmd_cpl *completion(struct node *n, uint32_t index)
{
	struct skua_cmd_cpl *cpl = at(n, n->cmd_cpl + (index % RING) * sizeof(*cpl));

	return (cpl->flags & SKUA_CMD_CPL_PHASE) == !(index / RING & 1) ? cpl : NULL;
}

static void many_at_once(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_cmd_cpl zero = { 0 };

	for (uint32_t round = 0; round < 20; round++) {
		uint32_t first = n->cmd_pi;

		for (uint32_t i = 0; i < RING; i++)
			put(n, (struct skua_cmd)CMD(i & 1 ? 0x7777 : SKUA_CMD_NOP), i < 4 ? 5 : round * 100 + i);
		publish(n);
		settle(w);
		for (uint32_t i = 0; i < RING; i++) {
			struct skua_cmd_cpl *cpl = completion(n, first + i);

			assert_non_null(cpl);
			assert_int_equal(le32toh(cpl->id), i < 4 ? 5 : round * 100 + i);
			assert_int_equal(cpl->status, i & 1 ? SKUA_CMD_BAD_OPCODE : SKUA_CMD_OK);
			assert_int_equal(cpl->number, 0);
			assert_int_equal(cpl->out_len, 0);
			assert_memory_equal(cpl->rsvd0, zero.rsvd0, sizeof(zero.rsvd0));
			assert_memory_equal(cpl->rsvd1, zero.rsvd1, sizeof(zero.rsvd1));
		}
	}
}

/* As many outstanding as the ring has entries, none of their completions consumed; what comes of one
 * more is the host's own loss. */
static void as_many_outstanding_as_entries(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint32_t first = n->cmd_pi;

	for (uint32_t i = 0; i < RING; i++) {
		put(n, (struct skua_cmd)CMD(SKUA_CMD_NOP), i);
		publish(n);
		settle(w);
	}
	for (uint32_t i = 0; i < RING; i++) {
		assert_non_null(completion(n, first + i));
		assert_int_equal(le32toh(completion(n, first + i)->id), i);
	}
	put(n, (struct skua_cmd)CMD(SKUA_CMD_NOP), 77);
	publish(n);
	settle(w);
	assert_null(completion(n, first));
	assert_int_equal(le32toh(completion(n, first + RING)->id), 77);
	assert_int_equal(reg_read(n, SKUA_REG_STATUS), SKUA_STATUS_READY | SKUA_STATUS_ENABLED);
}

/* The longest command there is: a region of as many pages as there may be, all of them one page. */
static struct skua_cmd long_command(struct node *n, uint64_t *lists)
{
	struct skua_cmd cmd = create_mr_cmd(n);
	uint64_t entry = n->buf | SKUA_PL_PRESENT;

	*lists = take(n, 3 * 4096);
	for (uint64_t table = *lists; table < *lists + 3 * 4096; table += 4096) {
		for (int i = 0; i < SKUA_PL_PER_PAGE; i++)
			((uint64_t *)at(n, table))[i] = htole64(entry);
		entry = table | SKUA_PL_PRESENT;
	}
	cmd.create_mr.length = htole64(SKUA_PL_MAX_PAGES * 4096ull);
	cmd.create_mr.pages = (struct skua_pagelist){ .npages = htole32(SKUA_PL_MAX_PAGES), .level = 3,
						      .log_page = 12, .addr[0] = htole64(entry) };
	return cmd;
}

/* In steps, between which traffic goes on; of a copy that the host cannot change any more. */
static void a_long_command(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	const struct skua_device_caps *caps = query(w, a, (struct skua_cmd)CMD(SKUA_CMD_QUERY_DEVICE), sizeof(*caps));
	unsigned int rounds = 0, most = caps->cmd_timeout * 1000;
	uint32_t index = a->cmd_pi;
	uint64_t lists;

	put(a, long_command(a, &lists), 1);
	publish(a);
	for (int i = 0; i < 3; i++)
		engine_step(w->engines[0]);
	memset(at(a, a->cmd_ring + (index % RING) * sizeof(struct skua_cmd)), 0xff, sizeof(struct skua_cmd));
	for (int i = 0; i < 10; i++) {
		struct skua_cqe *cqe = NULL;

		post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 64, b->buf, b->key, 0);
		for (int j = 0; j < 20 && !cqe; j++) {
			engine_step(w->engines[0]);
			cqe = poll_cq(a);
		}
		assert_non_null(cqe);
		assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
	}
	assert_null(completion(a, index));
	for (; !completion(a, index); rounds++)
		assert_true(engine_step(w->engines[0]));
	assert_int_equal(completion(a, index)->status, SKUA_CMD_OK);
	/* Within cmd_timeout, if rounds take a millisecond each. */
	assert_in_range(rounds, 1, most);
	/* The list was read: its pages are the host's again. */
	memset(at(a, lists), 0, 3 * 4096);
	post(b, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, b->buf, 64, a->buf + (63ull << 30),
	     le32toh(completion(a, index)->number), 0);
	expect(w, b, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
}

/* A reset in the middle of one: nothing is left of it. */
static void a_reset_in_a_long_command(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint64_t lists;

	for (int i = 0; i < 3; i++) {
		put(n, long_command(n, &lists), 1);
		publish(n);
		for (int j = 0; j < 5; j++)
			engine_step(w->engines[0]);
		reg_write(n, SKUA_REG_CONTROL, SKUA_CONTROL_RESET);
		revive(w, n);
	}
	/* The quota is free again: two of the largest fit. */
	must(w, n, long_command(n, &lists));
	must(w, n, long_command(n, &lists));
}

/* A list page whose memory goes away meanwhile: the command fails, and nothing is left. */
static void a_list_that_goes_away(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint32_t index = n->cmd_pi;
	uint64_t lists;
	struct skua_cmd cmd = long_command(n, &lists);

	memcpy(at(n, EXTRA), at(n, lists), 3 * 4096);
	for (int i = 1; i < 3; i++)
		for (int j = 0; j < SKUA_PL_PER_PAGE; j++)
			((uint64_t *)at(n, EXTRA + i * 4096u))[j] =
				htole64((EXTRA + (i - 1) * 4096u) | SKUA_PL_PRESENT);
	cmd.create_mr.pages.addr[0] = htole64((EXTRA + 8192) | SKUA_PL_PRESENT);
	put(n, cmd, 1);
	publish(n);
	for (int i = 0; i < 5; i++)
		engine_step(w->engines[0]);
	unmap_extra(n);
	settle(w);
	assert_int_equal(completion(n, index)->status, SKUA_CMD_BAD_ADDRESS);
	assert_int_equal(completion(n, index)->number, 0);
	must(w, n, long_command(n, &lists));
	must(w, n, long_command(n, &lists));
}

static void interrupts(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	unsigned int before = n->irqs[0];

	must(w, n, (struct skua_cmd)CMD(SKUA_CMD_NOP));
	assert_int_equal(n->irqs[0], before);
	must(w, n, (struct skua_cmd){ .hdr = { .opcode = htole16(SKUA_CMD_NOP),
					       .flags = htole16(SKUA_CMD_EVENT) } });
	assert_int_equal(n->irqs[0], before + 1);
	/* Refused ones too. */
	put(n, (struct skua_cmd){ .hdr = { .opcode = htole16(0x7777), .flags = htole16(SKUA_CMD_EVENT) } }, 0);
	publish(n);
	settle(w);
	assert_int_equal(n->irqs[0], before + 2);
}

/* Rings or record in memory that goes away. */
static void rings_that_go_away(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];

	for (int which = 0; which < 3; which++) {
		uint64_t where[3];

		revive(w, n);
		for (int i = 0; i < 3; i++)
			where[i] = i == which ? EXTRA : take(n, 4096);
		memset(at(n, EXTRA), 0, 4096);
		reg_write(n, SKUA_REG_CONTROL, SKUA_CONTROL_RESET);
		for (uint32_t i = 0; i < 3; i++) {
			reg_write(n, SKUA_REG_CMD_RING_LO + 8 * i, (uint32_t)where[i]);
			reg_write(n, SKUA_REG_CMD_RING_HI + 8 * i, (uint32_t)(where[i] >> 32));
		}
		reg_write(n, SKUA_REG_CMD_LOG_SIZE, 2);
		reg_write(n, SKUA_REG_CONTROL, SKUA_CONTROL_ENABLE);
		assert_int_equal(reg_read(n, SKUA_REG_STATUS), SKUA_STATUS_READY | SKUA_STATUS_ENABLED);
		settle(w);
		unmap_extra(n);
		if (which < 2) {
			struct skua_cmd nop = CMD(SKUA_CMD_NOP);

			if (which)
				memcpy(at(n, where[0]), &nop, sizeof(nop));
			host_store32(at(n, where[2]), 1);
		}
		ring(n, SKUA_DB_CMD, 0, 1);
		settle(w);
		assert_int_equal(reg_read(n, SKUA_REG_STATUS),
				 SKUA_STATUS_READY | SKUA_STATUS_ENABLED | SKUA_STATUS_FATAL);
		assert_int_equal(reg_read(n, SKUA_REG_HEALTH), SKUA_HEALTH_CMD_ADDRESS);
		map_extra(n, true);
	}
}

/*
 * Of several faults the first in the manual's order counts. Each column makes one, of all later
 * classes as well: what comes back is the first.
 */
enum fault_class { HEADER, RESERVED, OBJECT, RANGE, NUMBERS, ADDRESS, NUM_CLASSES };

static const int class_status[] = {
	SKUA_CMD_BAD_PARAM, SKUA_CMD_BAD_PARAM, SKUA_CMD_BAD_OBJECT, SKUA_CMD_BAD_PARAM,
	SKUA_CMD_NO_RESOURCE, SKUA_CMD_BAD_ADDRESS,
};

static void fault_eq(struct skua_cmd *c, int class)
{
	if (class == RANGE)
		c->create_eq.log_size = 30;
	else if (class == NUMBERS)
		c->create_eq.type = SKUA_EQ_ASYNC;
	else if (class == ADDRESS)
		c->create_eq.dbr_addr = htole64(GONE);
}

static void fault_cq(struct skua_cmd *c, int class)
{
	if (class == OBJECT)
		c->create_cq.eqn = htole32(NOBODY);
	else if (class == RANGE)
		c->create_cq.ring.npages = htole32(9);
	else if (class == ADDRESS)
		c->create_cq.dbr_addr = htole64(GONE);
}

static void fault_qp(struct skua_cmd *c, int class)
{
	if (class == OBJECT)
		c->create_qp.recv_cqn = htole32(NOBODY);
	else if (class == RANGE)
		c->create_qp.rq.level = 4;
	else if (class == ADDRESS)
		c->create_qp.sq_dbr_addr = htole64(GONE);
}

static void fault_mr(struct skua_cmd *c, int class)
{
	if (class == OBJECT)
		c->create_mr.pdn = htole32(NOBODY);
	else if (class == RANGE)
		c->create_mr.pages.offset = htole64(1ull << 40);
	else if (class == NUMBERS)
		c->create_mr.pages.npages = htole32(1);
	else if (class == ADDRESS)
		c->create_mr.pages.addr[0] = htole64(GONE | SKUA_PL_PRESENT);
}

static void the_first_fault_counts(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_cmd mr = create_mr_cmd(n), nop = CMD(SKUA_CMD_NOP);
	const struct {
		struct skua_cmd good;
		void (*fault)(struct skua_cmd *c, int class);
		uint32_t classes;		/* that it can have */
	} commands[] = {
		{ create_eq_cmd(n), fault_eq, 1 << HEADER | 1 << RESERVED | 1 << RANGE | 1 << NUMBERS |
					      1 << ADDRESS },
		{ create_cq_cmd(n), fault_cq, 1 << HEADER | 1 << RESERVED | 1 << OBJECT | 1 << RANGE |
					      1 << ADDRESS },
		{ create_qp_cmd(n), fault_qp, 1 << HEADER | 1 << RESERVED | 1 << OBJECT | 1 << RANGE |
					      1 << ADDRESS },
		{ mr, fault_mr, 1 << HEADER | 1 << RESERVED | 1 << OBJECT | 1 << RANGE | 1 << ADDRESS },
	};

	nop.hdr.opcode = htole16(0x7777);	/* before all others */
	nop.hdr.flags = htole16(8);
	assert_int_equal(command(w, n, &nop), SKUA_CMD_BAD_OPCODE);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		for (int first = 0; first < NUM_CLASSES; first++) {
			struct skua_cmd cmd = commands[i].good;

			if (!(commands[i].classes >> first & 1))
				continue;
			for (int class = first; class < NUM_CLASSES; class++) {
				if (class == HEADER)
					cmd.hdr.flags = htole16(8);
				else if (class == RESERVED)
					cmd.body[sizeof(cmd.body) - 1] = 1;
				else if (commands[i].classes >> class & 1)
					commands[i].fault(&cmd, class);
			}
			if (command(w, n, &cmd) != class_status[first])
				fail_msg("command 0x%x, class %d", le16toh(cmd.hdr.opcode), first);
		}
	}
	/* Range, then state, of MODIFY_QP. */
	{
		struct skua_cmd cmd = rts_cmd(n->qpn);

		cmd.modify_qp.attr.state = SKUA_QPS_INIT;	/* which cannot be, from RTS */
		assert_int_equal(command(w, n, &cmd), SKUA_CMD_BAD_STATE);
		cmd.modify_qp.attr.timeout = 99;
		assert_int_equal(command(w, n, &cmd), SKUA_CMD_BAD_PARAM);
		cmd.modify_qp.qpn = htole32(NOBODY);
		assert_int_equal(command(w, n, &cmd), SKUA_CMD_BAD_OBJECT);
	}
}

/* Where there is no queue, nothing of it is set; and objects whose numbers are of another kind. */
static void queues_that_are_not_there(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_cmd good = create_qp_cmd(n), bad;

	good.create_qp.sq = (struct skua_pagelist){ 0 };
	good.create_qp.rq = (struct skua_pagelist){ 0 };
	good.create_qp.log_sq_blocks = 0;
	good.create_qp.log_rq_size = 0;
	good.create_qp.log_rq_stride = 0;
	good.create_qp.sq_dbr_addr = 0;
	good.create_qp.rq_dbr_addr = 0;
	must(w, n, good);
#define REFUSED(...) do {						\
	bad = good;							\
	__VA_ARGS__;							\
	if (command(w, n, &bad) != SKUA_CMD_BAD_PARAM)			\
		fail_msg("%s", #__VA_ARGS__);				\
} while (0)
	REFUSED(bad.create_qp.log_sq_blocks = 1);
	REFUSED(bad.create_qp.log_rq_size = 1);
	REFUSED(bad.create_qp.log_rq_stride = 6);
	REFUSED(bad.create_qp.sq_dbr_addr = htole64(n->sq_dbr));
	REFUSED(bad.create_qp.rq_dbr_addr = htole64(n->rq_dbr));
	REFUSED(bad.create_qp.sq.log_page = 12);
	REFUSED(bad.create_qp.sq.offset = htole64(64));
	REFUSED(bad.create_qp.rq.level = 1);
	REFUSED(bad.create_qp.rq.addr[0] = htole64(n->rq | SKUA_PL_PRESENT));
	REFUSED(bad.create_qp.rq.rsvd = 1);
	/* A pdn is no cqn, even if another object has that number. */
	assert_int_equal(n->pdn, n->cqn);	/* both the first of their kind */
	assert_int_not_equal(n->qpn, n->pdn);
	bad = good;
	bad.create_qp.pdn = htole32(n->qpn);
	assert_int_equal(command(w, n, &bad), SKUA_CMD_BAD_OBJECT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STEPPED(many_at_once, "CMD-1 CMD-2 CMD-4 CMD-5 CMD-6 GEN-2"),
		STEPPED(as_many_outstanding_as_entries, "CMD-2"),
		STEPPED(a_long_command, "CMD-7 CMD-8 CMD-4 MEM-8 PL-7"),
		STEPPED(a_reset_in_a_long_command, "RST-1 PL-10"),
		STEPPED(a_list_that_goes_away, "CMD-12 PL-8 PL-10"),
		STEPPED(interrupts, "CMD-9"),
		STEPPED(rings_that_go_away, "CMD-10 RST-3"),
		STEPPED(the_first_fault_counts, "CMD-11"),
		STEPPED(queues_that_are_not_there, "QP-2 PL-6 OBJ-5 QP-1"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
