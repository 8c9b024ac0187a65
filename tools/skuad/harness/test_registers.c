// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Registers, features, bring-up and reset. */
#include "base/numtab.h"
#include "core/device.h"
#include "harness/harness.h"

static void the_signature_and_version_are_the_manuals(void **state)
{
	struct node *n = &((struct world *)*state)->n[0];

	assert_int_equal(reg_read(n, SKUA_REG_SIGNATURE), SKUA_SIGNATURE);
	assert_int_equal(reg_read(n, SKUA_REG_VERSION) >> 16, SKUA_VERSION_MAJOR);
}

static void accesses_of_other_widths_do_nothing(void **state)
{
	struct node *n = &((struct world *)*state)->n[0];
	uint32_t before = reg_read(n, SKUA_REG_ACCEPTED_LO);
	uint8_t bytes[8], read[8];

	memset(bytes, 0xff, sizeof(bytes));
	for (unsigned int len = 1; len <= 8; len++) {
		for (unsigned int offset = 0; offset < 8; offset++) {
			if (len == 4 && offset % 4 == 0)
				continue;
			skua_dev_bar_write(n->dev, SKUA_BAR_REGS, SKUA_REG_CONTROL + offset, bytes, len);
			skua_dev_bar_write(n->dev, SKUA_BAR_REGS, SKUA_REG_ACCEPTED_LO + offset, bytes, len);
			memset(read, 0, sizeof(read));
			skua_dev_bar_read(n->dev, SKUA_BAR_REGS, SKUA_REG_SIGNATURE + offset, read, len);
			assert_memory_equal(read, bytes, len);
		}
	}
	assert_int_equal(reg_read(n, SKUA_REG_STATUS), SKUA_STATUS_READY | SKUA_STATUS_ENABLED);
	assert_int_equal(reg_read(n, SKUA_REG_ACCEPTED_LO), before);
}

static void every_other_offset_reads_zero_and_takes_anything(void **state)
{
	struct node *n = &((struct world *)*state)->n[0];

	for (uint32_t offset = 0x100; offset < 0x1000; offset += 4) {
		reg_write(n, offset, 0xffffffff);
		assert_int_equal(reg_read(n, offset), 0);
	}
	assert_int_equal(reg_read(n, SKUA_REG_STATUS), SKUA_STATUS_READY | SKUA_STATUS_ENABLED);
}

/* A command ring that is bad makes the device FATAL, and a reset mends it. */
static void bad_rings_are_fatal_until_reset(void **state)
{
	static const struct { uint32_t reg, value, health; } bad[] = {
		{ SKUA_REG_CMD_RING_HI, 0x7fffffff, SKUA_HEALTH_CMD_ADDRESS },	/* nothing is there */
		{ SKUA_REG_CMD_CPL_HI, 0x7fffffff, SKUA_HEALTH_CMD_ADDRESS },
		{ SKUA_REG_CMD_DBR_HI, 0x7fffffff, SKUA_HEALTH_CMD_ADDRESS },
		{ SKUA_REG_CMD_RING_LO, (uint32_t)IOVA + 8, SKUA_HEALTH_CMD_ADDRESS },
		{ SKUA_REG_CMD_CPL_LO, (uint32_t)IOVA + 0x2008, SKUA_HEALTH_CMD_ADDRESS },
		{ SKUA_REG_CMD_DBR_LO, (uint32_t)IOVA + 0x4020, SKUA_HEALTH_CMD_ADDRESS },
		/* It can be read, but not written. */
		{ SKUA_REG_CMD_CPL_HI, (uint32_t)(EXTRA >> 32), SKUA_HEALTH_CMD_ADDRESS },
		{ SKUA_REG_CMD_LOG_SIZE, 31, SKUA_HEALTH_CMD_SIZE },
		{ SKUA_REG_CMD_LOG_SIZE, LIMIT_LOG_CMD + 1, SKUA_HEALTH_CMD_SIZE },
		{ SKUA_REG_ACCEPTED_HI, 0x80000000, SKUA_HEALTH_FEATURES },
	};
	struct world *w = *state;
	struct node *n = &w->n[0];

	unmap_extra(n);
	map_extra(n, false);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		n->used = 0;
		n->cmd_pi = 0;
		memset(n->mem, 0, 1 << 20);
		reg_write(n, SKUA_REG_CONTROL, SKUA_CONTROL_RESET);
		settle(w);
		reg_write(n, SKUA_REG_CMD_RING_LO, (uint32_t)IOVA);
		reg_write(n, SKUA_REG_CMD_RING_HI, (uint32_t)(IOVA >> 32));
		reg_write(n, SKUA_REG_CMD_CPL_LO, (uint32_t)IOVA + 0x2000);
		reg_write(n, SKUA_REG_CMD_CPL_HI, (uint32_t)(IOVA >> 32));
		reg_write(n, SKUA_REG_CMD_DBR_LO, (uint32_t)IOVA + 0x4000);
		reg_write(n, SKUA_REG_CMD_DBR_HI, (uint32_t)(IOVA >> 32));
		reg_write(n, SKUA_REG_CMD_LOG_SIZE, LOG_CMD);
		reg_write(n, bad[i].reg, bad[i].value);
		reg_write(n, SKUA_REG_CONTROL, SKUA_CONTROL_ENABLE);
		settle(w);
		assert_int_equal(reg_read(n, SKUA_REG_STATUS) & (SKUA_STATUS_ENABLED | SKUA_STATUS_FATAL),
				 SKUA_STATUS_FATAL);
		assert_int_equal(reg_read(n, SKUA_REG_HEALTH), bad[i].health);
	}
	n->used = 0;
	n->cmd_pi = 0;
	memset(n->mem, 0, 1 << 20);
	bring_up(w, n);
}

/* Rings are contiguous in DMA addresses. An IOMMU of the guest may take each of their pages from elsewhere. */
static void rings_of_pages_that_lie_apart(void **state)
{
	enum { LOG = 7, N = 1 << LOG, RING = N * sizeof(struct skua_cmd), CPL = N * sizeof(struct skua_cmd_cpl),
	       PAGES = (RING + CPL) / 4096 };
	const struct skua_cmd nop = CMD(SKUA_CMD_NOP);
	struct world *w = *state;
	struct node *n = &w->n[0];

	unmap_extra(n);
	for (unsigned int i = 0; i < PAGES; i++)
		assert_int_equal(skua_dev_mem_map(n->dev, EXTRA + i * 4096, 4096, n->extra + (PAGES - 1 - i) * 4096,
						  true), 0);
	memset(n->extra, 0, EXTRA_SIZE);
	memset(n->mem, 0, 4096);
	reg_write(n, SKUA_REG_CONTROL, SKUA_CONTROL_RESET);
	settle(w);
	reg_write(n, SKUA_REG_CMD_RING_LO, (uint32_t)EXTRA);
	reg_write(n, SKUA_REG_CMD_RING_HI, (uint32_t)(EXTRA >> 32));
	reg_write(n, SKUA_REG_CMD_CPL_LO, (uint32_t)(EXTRA + RING));
	reg_write(n, SKUA_REG_CMD_CPL_HI, (uint32_t)(EXTRA >> 32));
	reg_write(n, SKUA_REG_CMD_DBR_LO, (uint32_t)IOVA);
	reg_write(n, SKUA_REG_CMD_DBR_HI, (uint32_t)(IOVA >> 32));
	reg_write(n, SKUA_REG_CMD_LOG_SIZE, LOG);
	reg_write(n, SKUA_REG_CONTROL, SKUA_CONTROL_ENABLE);
	settle(w);
	assert_int_equal(reg_read(n, SKUA_REG_STATUS), SKUA_STATUS_READY | SKUA_STATUS_ENABLED);
	for (unsigned int i = 0; i < N; i++) {
		unsigned int page = i * sizeof(nop) / 4096, offset = i * sizeof(nop) % 4096;

		memcpy(n->extra + (PAGES - 1 - page) * 4096 + offset, &nop, sizeof(nop));
	}
	host_store32(n->mem, N);
	ring(n, SKUA_DB_CMD, 0, N);
	settle(w);
	for (unsigned int i = 0; i < N; i++) {
		unsigned int at = RING + i * sizeof(struct skua_cmd_cpl), page = at / 4096;
		const struct skua_cmd_cpl *cpl = (const void *)(n->extra + (PAGES - 1 - page) * 4096 + at % 4096);

		assert_int_equal(cpl->status, SKUA_CMD_OK);
		assert_true(cpl->flags & SKUA_CMD_CPL_PHASE);
	}
	skua_dev_mem_unmap_all(n->dev);
	assert_int_equal(skua_dev_mem_map(n->dev, IOVA, MEM_SIZE, n->mem, true), 0);
	map_extra(n, true);
}

/* From ENABLED on, before there is an EQ or a vector. */
static void the_first_command_is_served_at_once(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_device_caps *caps;

	n->used = 0;
	n->cmd_pi = 0;
	memset(n->mem, 0, 1 << 20);
	bring_up(w, n);
	caps = query(w, n, (struct skua_cmd)CMD(SKUA_CMD_QUERY_DEVICE), sizeof(*caps));
	assert_int_equal(caps->num_ports, 1);
}

static void a_published_index_above_the_ring_is_fatal(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];

	host_store32(&((struct skua_dbr *)at(n, n->cmd_dbr))->pi, n->cmd_pi + (1 << LOG_CMD) + 1);
	ring(n, SKUA_DB_CMD, 0, 0);
	settle(w);
	assert_true(reg_read(n, SKUA_REG_STATUS) & SKUA_STATUS_FATAL);
	assert_int_equal(reg_read(n, SKUA_REG_HEALTH), SKUA_HEALTH_CMD_OVERRUN);
}

static void a_reset_ends_everything_and_the_peer_goes_on(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cmd cmd = CMD(SKUA_CMD_QUERY_QP, .object = { .number = htole32(a->qpn) });

	post(b, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, b->buf, 1 << 20, a->buf, a->key, 0);
	a->used = 0;
	a->cmd_pi = 0;
	memset(a->mem, 0, 1 << 20);
	bring_up(w, a);
	cmd.hdr.out_addr = htole64(take(a, sizeof(struct skua_qp_attr)));
	cmd.hdr.out_len = htole32(sizeof(struct skua_qp_attr));
	assert_int_equal(command(w, a, &cmd), SKUA_CMD_BAD_OBJECT);
	for (int i = 0; i < 9; i++)
		pass(w, 4096ull << 14);
	expect(w, b, SKUA_CQE_WRITE, SKUA_CQE_RETRY_EXC_ERR);
}

/* Of QPs that have sent and received, and of regions: it is all given back. Freed numbers rest in
 * their tables for a while, and these move when they have grown; from then on memory is flat. */
static void resets_keep_no_memory(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	size_t before = 0;

	for (int i = 0; i < 2 * NUMTAB_REST; i++) {
		if (i == NUMTAB_REST + NUMTAB_REST / 4)
			before = allocated_bytes();
		fill(b, 4096, i);
		post_recv(b, b->buf, 4096);
		post_recv(a, a->buf, 4096);
		reconnect(w, a, b);
		reconnect(w, b, a);
		post(b, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, b->buf, 4096, a->buf, a->key, 0);
		post(b, SKUA_WQE_READ, SKUA_WQE_SIGNALED, b->buf, 4096, a->buf, a->key, 0);
		post(b, SKUA_WQE_SEND, 0, b->buf, 64, 0, 0, 0);
		if (i % 2)
			settle(w);
		reg_write(a, SKUA_REG_CONTROL, SKUA_CONTROL_RESET);
		revive(w, a);
		settle(w);
		reg_write(b, SKUA_REG_CONTROL, SKUA_CONTROL_RESET);
		revive(w, b);
	}
	assert_int_equal(allocated_bytes(), before);
}

static void without_bus_mastering_no_memory_is_touched(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	skua_dev_set_bus_master(a->dev, false);
	memset(at(a, a->buf), 0x11, 4096);
	fill(b, 4096, 3);
	post(b, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, b->buf, 4096, a->buf, a->key, 0);
	settle(w);
	for (int i = 0; i < 4096; i++)
		assert_int_equal(((uint8_t *)at(a, a->buf))[i], 0x11);
}

static void the_clock_goes_on(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint64_t before, after;

	before = reg_read(n, SKUA_REG_CLOCK_LO);
	before |= (uint64_t)reg_read(n, SKUA_REG_CLOCK_HI) << 32;
	pass(w, 10000000);
	after = reg_read(n, SKUA_REG_CLOCK_LO);
	after |= (uint64_t)reg_read(n, SKUA_REG_CLOCK_HI) << 32;
	assert_true(after > before);
	/* The upper half is that of the moment in which the lower was read. */
	pass(w, 5000000000);
	assert_int_equal(reg_read(n, SKUA_REG_CLOCK_HI), after >> 32);
	reg_read(n, SKUA_REG_CLOCK_LO);
	assert_true(reg_read(n, SKUA_REG_CLOCK_HI) > after >> 32);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STEPPED(the_signature_and_version_are_the_manuals, "INI-1"),
		STEPPED(accesses_of_other_widths_do_nothing, "REG-1"),
		STEPPED(every_other_offset_reads_zero_and_takes_anything, "REG-2"),
		STEPPED(bad_rings_are_fatal_until_reset, "INI-3 INI-4 INI-5 REG-6"),
		STEPPED(rings_of_pages_that_lie_apart, "INI-4 INI-5"),
		STEPPED(the_first_command_is_served_at_once, "INI-6"),
		STEPPED(a_published_index_above_the_ring_is_fatal, "CMD-3 RST-3"),
		STEPPED(a_reset_ends_everything_and_the_peer_goes_on, "RST-1 RST-2 SEC-8"),
		STEPPED(resets_keep_no_memory, "RST-1 RST-2"),
		STEPPED(without_bus_mastering_no_memory_is_touched, "RST-7 MEM-4"),
		STEPPED(the_clock_goes_on, "REG-3 REG-7"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
