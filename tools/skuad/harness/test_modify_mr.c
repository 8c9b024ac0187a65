// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* MODIFY_MR: MRs get another PD, other rights and other pages. That it is a fence, test_fences says. */
#include "core/qp.h"
#include "harness/harness.h"

#define LEN	20000u
#define OTHER	(1u << 20)	/* in b's buffer: where the MR is when its pages have changed */
#define LATER	(2u << 20)	/* in a's buffer: what comes back */
#define IOVA_2	0x7000000ull
#define REMOTE	(SKUA_ACCESS_REMOTE_WRITE | SKUA_ACCESS_REMOTE_READ)

/* An MR of @length bytes from @from on, odd as to where it begins. */
static struct skua_pagelist list_of(uint64_t from, uint64_t length)
{
	struct skua_pagelist pl = list(from & ~4095ull, (from & 4095) + length);

	pl.offset = htole64(from & 4095);
	return pl;
}

static struct skua_cmd region_cmd(struct node *n, uint32_t access)
{
	struct skua_cmd cmd = create_mr_cmd(n);

	cmd.create_mr.access = htole32(access);
	cmd.create_mr.iova = htole64(n->buf + 100);
	cmd.create_mr.length = htole64(LEN);
	cmd.create_mr.pages = list_of(n->buf + 100, LEN);
	return cmd;
}

static uint32_t region(struct world *w, struct node *n)
{
	return must(w, n, region_cmd(n, ALL_RIGHTS));
}

static struct skua_cmd modify(struct node *n, uint32_t key, uint32_t mask)
{
	return (struct skua_cmd)CMD(SKUA_CMD_MODIFY_MR, .modify_mr = {
		.key = htole32(key), .mask = htole32(mask), .pdn = htole32(n->pdn), .access = htole32(ALL_RIGHTS),
		.iova = htole64(IOVA_2), .length = htole64(LEN / 2), .pages = list_of(n->buf + OTHER + 300, LEN / 2) });
}

static int status_of(struct world *w, struct node *n, struct skua_cmd cmd)
{
	return command(w, n, &cmd);
}

/* a writes all of b's MR, and reads it again; it is @from in b's buffer. */
static void use(struct world *w, uint32_t key, uint64_t iova, uint32_t from, uint32_t len)
{
	struct node *a = &w->n[0], *b = &w->n[1];

	fill(a, len, key + from);
	memset(at(b, b->buf + from - 1), 0, len + 2);
	post(a, SKUA_WQE_WRITE, 0, a->buf, len, iova, key, 0);
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf + LATER, len, iova, key, 0);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	assert_memory_equal(at(a, a->buf + LATER), at(a, a->buf), len);
	assert_memory_equal(at(b, b->buf + from), at(a, a->buf), len);
	assert_int_equal(((uint8_t *)at(b, b->buf + from))[-1], 0);
	assert_int_equal(((uint8_t *)at(b, b->buf + from))[len], 0);
}

/* As it was made. */
static void use_first(struct world *w, uint32_t key)
{
	use(w, key, w->n[1].buf + 100, 100, LEN);
}

static void fails(struct world *w, uint8_t opcode, uint32_t key, uint64_t addr, uint32_t len, uint8_t status)
{
	struct node *a = &w->n[0], *b = &w->n[1];

	post(a, opcode, SKUA_WQE_SIGNALED, a->buf, len, addr, key, 0);
	expect(w, a, opcode == SKUA_WQE_READ ? SKUA_CQE_READ : SKUA_CQE_WRITE, status);
	reconnect(w, a, b);
	reconnect(w, b, a);
	while (poll_aeq(b))
		;
}

static void refused(struct world *w, uint8_t opcode, uint32_t key, uint64_t addr, uint32_t len)
{
	fails(w, opcode, key, addr, len, SKUA_CQE_REM_ACCESS_ERR);
}

static void other_pages(void **state)
{
	struct world *w = *state;
	struct node *b = &w->n[1];
	uint32_t key = region(w, b);
	uint64_t used = b->dev->pages_used;

	use_first(w, key);
	must(w, b, modify(b, key, SKUA_MR_SET_PAGES));
	use(w, key, IOVA_2, OTHER + 300, LEN / 2);
	assert_int_equal(b->dev->pages_used, used + 3 - 5);
	refused(w, SKUA_WQE_WRITE, key, b->buf + 100, 8);
	refused(w, SKUA_WQE_READ, key, IOVA_2 + LEN / 2, 1);
	/* The owner finds them there, too. */
	b->key = key;
	post(b, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, IOVA_2, 8, w->n[0].buf, w->n[0].key, 0);
	expect(w, b, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	post(b, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, b->buf + 100, 8, w->n[0].buf, w->n[0].key, 0);
	expect_vendor(w, b, SKUA_CQE_WRITE, SKUA_CQE_LOC_PROT_ERR, SKUA_VENDOR_ERR_BOUNDS);
}

static void other_rights(void **state)
{
	struct world *w = *state;
	struct node *b = &w->n[1];
	uint32_t key = region(w, b);
	struct skua_cmd cmd = modify(b, key, SKUA_MR_SET_ACCESS);

	cmd.modify_mr.access = htole32(SKUA_ACCESS_REMOTE_READ);
	must(w, b, cmd);
	refused(w, SKUA_WQE_WRITE, key, b->buf + 100, 8);
	post(&w->n[0], SKUA_WQE_READ, SKUA_WQE_SIGNALED, w->n[0].buf, LEN, b->buf + 100, key, 0);
	expect(w, &w->n[0], SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	cmd.modify_mr.access = 0;
	must(w, b, cmd);
	refused(w, SKUA_WQE_READ, key, b->buf + 100, 8);
	cmd.modify_mr.access = htole32(ALL_RIGHTS);
	must(w, b, cmd);
	use_first(w, key);
}

static void another_pd(void **state)
{
	struct world *w = *state;
	struct node *b = &w->n[1];
	uint32_t key = region(w, b), other = must(w, b, (struct skua_cmd)CMD(SKUA_CMD_CREATE_PD));
	struct skua_cmd cmd = modify(b, key, SKUA_MR_SET_PD);

	cmd.modify_mr.pdn = htole32(other);
	must(w, b, cmd);
	must(w, b, cmd);
	refused(w, SKUA_WQE_WRITE, key, b->buf + 100, 8);
	assert_int_equal(status_of(w, b, object_cmd(SKUA_CMD_DESTROY_PD, other)), SKUA_CMD_BUSY);
	cmd.modify_mr.pdn = htole32(b->pdn);
	must(w, b, cmd);
	use_first(w, key);
	must(w, b, object_cmd(SKUA_CMD_DESTROY_PD, other));
	/* Its first PD goes before it does. */
	other = must(w, b, (struct skua_cmd)CMD(SKUA_CMD_CREATE_PD));
	cmd = region_cmd(b, ALL_RIGHTS);
	cmd.create_mr.pdn = htole32(other);
	key = must(w, b, cmd);
	must(w, b, modify(b, key, SKUA_MR_SET_PD));
	must(w, b, object_cmd(SKUA_CMD_DESTROY_PD, other));
	use_first(w, key);
	must(w, b, object_cmd(SKUA_CMD_DESTROY_MR, key));
}

/* Whatever the mask names, and nothing of what it does not. */
static void what_the_mask_names(void **state)
{
	struct world *w = *state;
	struct node *b = &w->n[1];
	uint32_t other = must(w, b, (struct skua_cmd)CMD(SKUA_CMD_CREATE_PD));

	for (uint32_t mask = 0; mask <= SKUA_MR_SET_MASK; mask++) {
		struct skua_cmd first = region_cmd(b, REMOTE | SKUA_ACCESS_LOCAL_WRITE), cmd;
		const struct mr *mr;
		uint32_t key;

		first.create_mr.pdn = htole32(other);
		key = must(w, b, first);
		cmd = modify(b, key, mask);
		cmd.modify_mr.access = htole32(SKUA_ACCESS_REMOTE_READ);
		/* What is not named may be nonsense. */
		if (!(mask & SKUA_MR_SET_PD))
			cmd.modify_mr.pdn = htole32(0xffffff);
		if (!(mask & SKUA_MR_SET_ACCESS))
			cmd.modify_mr.access = htole32(~0u);
		if (!(mask & SKUA_MR_SET_PAGES))
			cmd.modify_mr.pages.level = 77;
		must(w, b, cmd);
		mr = numtab_get(&b->dev->mrs, key >> 8);
		assert_int_equal(mr->key, key);
		assert_int_equal(mr->pd->number, mask & SKUA_MR_SET_PD ? b->pdn : other);
		assert_int_equal(mr->access, mask & SKUA_MR_SET_ACCESS ? SKUA_ACCESS_REMOTE_READ : ALL_RIGHTS);
		assert_int_equal(mr->iova, mask & SKUA_MR_SET_PAGES ? IOVA_2 : b->buf + 100);
		assert_int_equal(mr->length, mask & SKUA_MR_SET_PAGES ? LEN / 2 : LEN);
		assert_int_equal(mr->pages.n, mask & SKUA_MR_SET_PAGES ? 3 : 5);
	}
}

/* To no bytes, and to some again. */
static void no_bytes(void **state)
{
	struct world *w = *state;
	struct node *b = &w->n[1];
	uint32_t key = region(w, b);
	uint64_t used = b->dev->pages_used;
	struct skua_cmd none = modify(b, key, SKUA_MR_SET_PAGES);

	none.modify_mr.length = 0;
	assert_int_equal(status_of(w, b, none), SKUA_CMD_BAD_PARAM);
	memset(&none.modify_mr.pages, 0, sizeof(none.modify_mr.pages));
	must(w, b, none);
	assert_int_equal(b->dev->pages_used, used - 5);
	refused(w, SKUA_WQE_READ, key, IOVA_2, 1);
	must(w, b, none);
	must(w, b, modify(b, key, SKUA_MR_SET_PAGES));
	use(w, key, IOVA_2, OTHER + 300, LEN / 2);
	must(w, b, object_cmd(SKUA_CMD_DESTROY_MR, key));
	assert_int_equal(b->dev->pages_used, used - 5);
}

/* One of the changes is no good: none is made, and nothing is kept. */
static void all_or_nothing(void **state)
{
	struct world *w = *state;
	struct node *b = &w->n[1];
	uint32_t key = region(w, b), other = must(w, b, (struct skua_cmd)CMD(SKUA_CMD_CREATE_PD));
	uint64_t used = b->dev->pages_used;

#define REFUSED_AS(code, change) do {							\
	struct skua_cmd c_ = modify(b, key, SKUA_MR_SET_MASK);				\
											\
	c_.modify_mr.pdn = htole32(other);						\
	c_.modify_mr.access = htole32(SKUA_ACCESS_LOCAL_WRITE);				\
	c_.modify_mr.change;								\
	assert_int_equal(command(w, b, &c_), SKUA_CMD_##code);				\
	use_first(w, key);								\
	assert_int_equal(b->dev->pages_used, used);					\
} while (0)
	REFUSED_AS(BAD_OBJECT, pdn = htole32(other + 1));
	REFUSED_AS(BAD_OBJECT, pdn = 0);
	REFUSED_AS(BAD_PARAM, mask = htole32(SKUA_MR_SET_MASK + 1));
	REFUSED_AS(BAD_PARAM, rsvd0[31] = 1);
	REFUSED_AS(BAD_PARAM, rsvd1[0] = 1);
	REFUSED_AS(BAD_PARAM, access = htole32(SKUA_ACCESS_REMOTE_WRITE));
	REFUSED_AS(BAD_PARAM, access = htole32(SKUA_ACCESS_ZERO_BASED));
	REFUSED_AS(BAD_PARAM, access = htole32(SKUA_ACCESS_FLUSH_PERSISTENT << 1));
	REFUSED_AS(BAD_PARAM, iova = htole64(~0ull));
	REFUSED_AS(BAD_PARAM, length = htole64(LIMIT_MR_SIZE + 1));
	REFUSED_AS(BAD_PARAM, length = htole64(LEN * 2));
	REFUSED_AS(BAD_PARAM, pages.npages = htole32(4));
	REFUSED_AS(BAD_PARAM, pages.level = 4);
	REFUSED_AS(BAD_PARAM, pages.addr[2] = htole64((b->buf + OTHER) | 3));
	REFUSED_AS(BAD_ADDRESS, pages.addr[2] = htole64((EXTRA + EXTRA_SIZE) | SKUA_PL_PRESENT));
	must(w, b, object_cmd(SKUA_CMD_DESTROY_PD, other));
}

static void regions_that_may_not_be(void **state)
{
	struct world *w = *state;
	struct node *b = &w->n[1];
	uint32_t key = region(w, b), gone = region(w, b), dmn;
	struct skua_cmd fast = region_cmd(b, ALL_RIGHTS);

	must(w, b, object_cmd(SKUA_CMD_DESTROY_MR, gone));
	fast.create_mr.type = SKUA_MR_FAST;
	dmn = must(w, b, (struct skua_cmd)CMD(SKUA_CMD_ALLOC_DM, .alloc_dm = { .length = htole64(LEN) }));
	const struct {
		uint32_t key;
		int status;
	} rows[] = {
		{ key ^ 1, SKUA_CMD_BAD_OBJECT }, { gone, SKUA_CMD_BAD_OBJECT }, { 0, SKUA_CMD_BAD_OBJECT },
		{ RESERVED_LKEY, SKUA_CMD_BAD_OBJECT },
		{ must(w, b, (struct skua_cmd)CMD(SKUA_CMD_CREATE_MW, .create_mw = {
			.pdn = htole32(b->pdn), .type = SKUA_MW_TYPE_1 })), SKUA_CMD_BAD_OBJECT },
		{ must(w, b, (struct skua_cmd)CMD(SKUA_CMD_CREATE_MR, .create_mr = {
			.pdn = htole32(b->pdn), .type = SKUA_MR_PHYS, .access = htole32(ALL_RIGHTS) })), SKUA_CMD_BAD_PARAM },
		{ must(w, b, fast), SKUA_CMD_BAD_PARAM },
		{ must(w, b, (struct skua_cmd)CMD(SKUA_CMD_CREATE_MR, .create_mr = {
			.pdn = htole32(b->pdn), .type = SKUA_MR_DM, .length = htole64(LEN), .dmn = htole32(dmn) })),
		  SKUA_CMD_BAD_PARAM },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (uint32_t mask = 0; mask <= SKUA_MR_SET_MASK; mask++)
			assert_int_equal(status_of(w, b, modify(b, rows[i].key, mask)), rows[i].status);
	use_first(w, key);
}

/* Pages are to be written only if the rights say so: those that the MR is to have. */
static void pages_that_cannot_be_written(void **state)
{
	struct world *w = *state;
	struct node *b = &w->n[1];
	uint32_t key = region(w, b);
	struct skua_cmd cmd = modify(b, key, SKUA_MR_SET_PAGES);

	unmap_extra(b);
	map_extra(b, false);
	cmd.modify_mr.pages = list_of(EXTRA, LEN / 2);
	cmd.modify_mr.access = htole32(SKUA_ACCESS_REMOTE_READ);
	assert_int_equal(status_of(w, b, cmd), SKUA_CMD_BAD_ADDRESS);
	use_first(w, key);
	cmd.modify_mr.mask = htole32(SKUA_MR_SET_PAGES | SKUA_MR_SET_ACCESS);
	must(w, b, cmd);
	post(&w->n[0], SKUA_WQE_READ, SKUA_WQE_SIGNALED, w->n[0].buf, 100, IOVA_2, key, 0);
	expect(w, &w->n[0], SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	/* The right alone does not make them so. */
	must(w, b, modify(b, key, SKUA_MR_SET_ACCESS));
	fails(w, SKUA_WQE_WRITE, key, IOVA_2, 8, SKUA_CQE_REM_OP_ERR);
	must(w, b, modify(b, key, SKUA_MR_SET_MASK));
	use(w, key, IOVA_2, OTHER + 300, LEN / 2);
}

static void new_pages_count_beside_the_old(void **state)
{
	struct world *w = *state;
	struct node *b = &w->n[1];
	uint32_t key = region(w, b);
	uint64_t used = b->dev->pages_used;

	b->dev->max_pages = used + 2;
	assert_int_equal(status_of(w, b, modify(b, key, SKUA_MR_SET_PAGES)), SKUA_CMD_NO_RESOURCE);
	assert_int_equal(b->dev->pages_used, used);
	use_first(w, key);
	b->dev->max_pages++;
	must(w, b, modify(b, key, SKUA_MR_SET_PAGES));
	assert_int_equal(b->dev->pages_used, used + 3 - 5);
}

struct bind_wqe {
	struct skua_wqe_ctrl ctrl;
	struct skua_wqe_bind_mw bind;
	uint8_t padding[16];
};

static void bind_window(struct world *w, struct node *n, uint32_t key, uint32_t mr, uint32_t length)
{
	struct bind_wqe k = {
		.ctrl = { .opcode = SKUA_WQE_BIND_MW, .flags = SKUA_WQE_SIGNALED, .nblocks = 1, .cookie = htole32(n->sq_pi) },
		.bind = { .key = htole32(key), .mr_key = htole32(mr), .addr = htole64(n->buf + 100),
			  .length = htole64(length), .access = htole32(SKUA_ACCESS_REMOTE_READ) },
	};

	post_block(n, &k);
	expect(w, n, SKUA_CQE_BIND_MW, SKUA_CQE_SUCCESS);
}

/* The list of a large MR: so many times the same page. */
static struct skua_cmd large(struct node *n, uint32_t key, uint32_t npages)
{
	struct skua_cmd cmd = modify(n, key, SKUA_MR_SET_PAGES);
	uint64_t top = take(n, 4096), leaf = take(n, 4096);

	for (int i = 0; i < 512; i++) {
		((uint64_t *)at(n, top))[i] = htole64(leaf | SKUA_PL_PRESENT);
		((uint64_t *)at(n, leaf))[i] = htole64((n->buf + OTHER) | SKUA_PL_PRESENT);
	}
	cmd.modify_mr.length = htole64(npages * 4096ull);
	cmd.modify_mr.pages = (struct skua_pagelist){ .npages = htole32(npages), .level = 2, .log_page = 12,
						      .addr = { htole64(top | SKUA_PL_PRESENT) } };
	return cmd;
}

static void issue(struct node *n, struct skua_cmd cmd)
{
	cmd.hdr.id = htole32(n->cmd_pi);
	memcpy(at(n, n->cmd_ring + (n->cmd_pi & ((1 << LOG_CMD) - 1)) * sizeof(cmd)), &cmd, sizeof(cmd));
	host_store32(&((struct skua_dbr *)at(n, n->cmd_dbr))->pi, ++n->cmd_pi);
	ring(n, SKUA_DB_CMD, 0, n->cmd_pi);
}

#define MANY	200000u		/* pages */

static void busy_while_windows_are_bound(void **state)
{
	struct world *w = *state;
	struct node *b = &w->n[1];
	uint32_t key = must(w, b, region_cmd(b, SKUA_ACCESS_LOCAL_WRITE | SKUA_ACCESS_MW_BIND));
	uint32_t mw = must(w, b, (struct skua_cmd)CMD(SKUA_CMD_CREATE_MW, .create_mw = {
		.pdn = htole32(b->pdn), .type = SKUA_MW_TYPE_1 }));
	uint64_t used = b->dev->pages_used;

	bind_window(w, b, mw, key, 64);
	for (uint32_t mask = 0; mask <= SKUA_MR_SET_MASK; mask++)
		assert_int_equal(status_of(w, b, modify(b, key, mask)), SKUA_CMD_BUSY);
	assert_int_equal(b->dev->pages_used, used);
	bind_window(w, b, mw, 0, 0);
	/* One is bound while the new list is read. */
	issue(b, large(b, key, MANY));
	engine_step(b->engine);
	engine_step(b->engine);
	assert_non_null(b->dev->cmdq.making);
	bind_window(w, b, mw, key, 64);
	settle(w);
	assert_int_equal(((struct skua_cmd_cpl *)at(b, b->cmd_cpl + ((b->cmd_pi - 1) % (1 << LOG_CMD)) *
						    sizeof(struct skua_cmd_cpl)))->status, SKUA_CMD_BUSY);
	assert_int_equal(b->dev->pages_used, used);
	bind_window(w, b, mw, 0, 0);
	must(w, b, modify(b, key, SKUA_MR_SET_MASK));
	use(w, key, IOVA_2, OTHER + 300, LEN / 2);
}

/* The old pages serve until the new ones are there. A reset may come at any step. */
static void in_steps(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = region(w, b), rounds = 0;

	fill(a, 100, 1);
	issue(b, large(b, key, MANY));
	for (; b->dev->cmdq.busy || !rounds; rounds++) {
		if (rounds == 3)
			post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 100, b->buf + 100, key, 0);
		engine_step(b->engine);
	}
	assert_true(rounds > MANY / 8192);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	assert_memory_equal(at(b, b->buf + 100), at(a, a->buf), 100);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 100, IOVA_2 + 4096ull * (MANY - 1), key, 0);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	assert_memory_equal(at(b, b->buf + OTHER), at(a, a->buf), 100);
	for (rounds = 1; rounds < 60; rounds += 8) {
		settle(w);
		key = region(w, b);
		issue(b, large(b, key, MANY));
		for (uint32_t i = 0; i < rounds; i++)
			engine_step(b->engine);
		reg_write(b, SKUA_REG_CONTROL, SKUA_CONTROL_RESET);
		while (reg_read(b, SKUA_REG_STATUS) != SKUA_STATUS_READY)
			engine_step(b->engine);
		assert_int_equal(b->dev->pages_used, 0);
		assert_int_equal(b->dev->pds.count, 0);
		b->used = 0;
		revive(w, b);
	}
}

static void without_the_feature(void **state)
{
	struct world *w = world_create_with(false, FEATURES_OFFERED & ~(1ull << SKUA_F_MR_MODIFY));
	struct node *b = &w->n[1];

	(void)state;
	assert_int_equal(status_of(w, b, modify(b, region(w, b), SKUA_MR_SET_MASK)), SKUA_CMD_BAD_OPCODE);
	world_destroy(w);
}

#define TABLE(f, rules)	{ rules ": " #f, f, NULL, NULL, NULL }

int main(void)
{
	const struct CMUnitTest tests[] = {
		STEPPED(other_pages, "MR-10 MEM-1"),
		STEPPED(other_rights, "MR-10 MEM-3"),
		STEPPED(another_pd, "MR-10 PD-1 OBJ-7"),
		STEPPED(what_the_mask_names, "MR-10"),
		STEPPED(no_bytes, "MR-10 MR-8 PL-10"),
		STEPPED(all_or_nothing, "MR-10 MR-2 MR-3 MR-9 PL-4 CMD-11 CMD-12"),
		STEPPED(regions_that_may_not_be, "MR-10 CMD-11"),
		STEPPED(pages_that_cannot_be_written, "MR-10 PL-8 MEM-5"),
		STEPPED(new_pages_count_beside_the_old, "MR-11 PL-10 CMD-12"),
		STEPPED(busy_while_windows_are_bound, "MW-8 CMD-12"),
		STEPPED(in_steps, "MR-10 MR-12 CMD-8 RST-1"),
		TABLE(without_the_feature, "FEA-2"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
