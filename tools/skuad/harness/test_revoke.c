// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* INVALIDATE_MR: the owner of the memory revokes an MR. That it is a fence, test_fences says, too. */
#include "core/mw.h"
#include "core/qp.h"
#include "harness/harness.h"

#define LEN	20000u
#define AT	100u		/* of the MR in b's buffer */
#define REMOTE	(SKUA_ACCESS_REMOTE_WRITE | SKUA_ACCESS_REMOTE_READ)
#define RIGHTS	(ALL_RIGHTS | SKUA_ACCESS_REMOTE_ATOMIC | SKUA_ACCESS_MW_BIND)
#define MANY	200000u		/* pages of a large MR */

static struct skua_cmd region_cmd(struct node *n, uint32_t access)
{
	struct skua_cmd cmd = create_mr_cmd(n);

	cmd.create_mr.access = htole32(access);
	cmd.create_mr.iova = htole64(n->buf + AT);
	cmd.create_mr.length = htole64(LEN);
	cmd.create_mr.pages = list(n->buf, AT + LEN);
	cmd.create_mr.pages.offset = htole64(AT);
	return cmd;
}

static uint32_t region(struct world *w, struct node *n)
{
	return must(w, n, region_cmd(n, RIGHTS));
}

static int revoke(struct world *w, struct node *n, uint32_t key)
{
	struct skua_cmd cmd = object_cmd(SKUA_CMD_INVALIDATE_MR, key);

	return command(w, n, &cmd);
}

static void revoked(struct world *w, struct node *n, uint32_t key)
{
	assert_int_equal(revoke(w, n, key), SKUA_CMD_OK);
}

/* a writes all of b's MR, and reads it again. */
static void use(struct world *w, uint32_t key)
{
	struct node *a = &w->n[0], *b = &w->n[1];

	fill(a, LEN, key);
	post(a, SKUA_WQE_WRITE, 0, a->buf, LEN, b->buf + AT, key, 0);
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf + (1u << 20), LEN, b->buf + AT, key, 0);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	assert_memory_equal(at(b, b->buf + AT), at(a, a->buf), LEN);
	assert_memory_equal(at(a, a->buf + (1u << 20)), at(a, a->buf), LEN);
}

static void again(struct world *w)
{
	struct node *a = &w->n[0], *b = &w->n[1];

	while (poll_cq(a) || poll_cq(b))
		;
	reconnect(w, a, b);
	reconnect(w, b, a);
	while (poll_aeq(b) || poll_aeq(a))
		;
}

/* An operation of a on b's memory, which has the bytes of before afterwards. */
static void refused(struct world *w, uint8_t opcode, uint32_t key, uint64_t addr)
{
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cqe *cqe;

	memset(at(b, b->buf), 0x5a, 2 * LEN);
	memset(at(a, a->buf), 0xa5, 64);
	post(a, opcode, SKUA_WQE_SIGNALED, a->buf, 8, addr, key, 0);
	cqe = await_cqe(w, a);
	assert_non_null(cqe);
	assert_int_equal(cqe->status, SKUA_CQE_REM_ACCESS_ERR);
	for (uint32_t i = 0; i < 2 * LEN; i++)
		assert_int_equal(((uint8_t *)at(b, b->buf))[i], 0x5a);
	for (int i = 0; i < 64; i++)
		assert_int_equal(((uint8_t *)at(a, a->buf))[i], 0xa5);
	again(w);
}

static void peers_are_refused(void **state)
{
	struct world *w = *state;
	struct node *b = &w->n[1];
	uint32_t key = region(w, b), other = region(w, b);

	use(w, key);
	revoked(w, b, key);
	refused(w, SKUA_WQE_WRITE, key, b->buf + AT);
	refused(w, SKUA_WQE_READ, key, b->buf + AT);
	refused(w, SKUA_WQE_WRITE, key, b->buf + AT + LEN - 8);
	/* Another MR of the same memory is not concerned. */
	use(w, other);
}

/* SGEs of all kinds. */
static void the_host_is_refused(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	const uint8_t ops[][2] = { { SKUA_WQE_SEND, SKUA_CQE_SEND }, { SKUA_WQE_WRITE, SKUA_CQE_WRITE },
				   { SKUA_WQE_READ, SKUA_CQE_READ } };
	uint32_t key = region(w, b), own = b->key;

	revoked(w, b, key);
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		b->key = key;
		post(b, ops[i][0], SKUA_WQE_SIGNALED, b->buf + AT, 8, a->buf, a->key, 0);
		expect_vendor(w, b, ops[i][1], SKUA_CQE_LOC_PROT_ERR, SKUA_VENDOR_ERR_KEY_STALE);
		b->key = own;
		again(w);
	}
	/* A receive. */
	b->key = key;
	post_recv(b, b->buf + AT, 64);
	b->key = own;
	post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 8, 0, 0, 0);
	expect_vendor(w, b, SKUA_CQE_RECV, SKUA_CQE_LOC_PROT_ERR, SKUA_VENDOR_ERR_KEY_STALE);
	again(w);
}

/* It counts as before, until it is destroyed. Once more changes nothing. */
static void until_it_is_destroyed(void **state)
{
	struct world *w = *state;
	struct node *b = &w->n[1];
	uint32_t pdn = must(w, b, (struct skua_cmd)CMD(SKUA_CMD_CREATE_PD)), key;
	struct skua_cmd cmd = region_cmd(b, RIGHTS), pd = object_cmd(SKUA_CMD_DESTROY_PD, pdn);
	uint64_t used = b->dev->pages_used;

	cmd.create_mr.pdn = htole32(pdn);
	key = must(w, b, cmd);
	for (int i = 0; i < 3; i++) {
		revoked(w, b, key);
		assert_int_equal(b->dev->pages_used, used + 5);
		assert_int_equal(command(w, b, &pd), SKUA_CMD_BUSY);
	}
	refused(w, SKUA_WQE_READ, key, b->buf + AT);
	must(w, b, object_cmd(SKUA_CMD_DESTROY_MR, key));
	assert_int_equal(b->dev->pages_used, used);
	must(w, b, pd);
	assert_int_equal(revoke(w, b, key), SKUA_CMD_BAD_OBJECT);
}

static struct skua_cmd modify_cmd_of(struct node *n, uint32_t key, uint32_t mask)
{
	return (struct skua_cmd)CMD(SKUA_CMD_MODIFY_MR, .modify_mr = {
		.key = htole32(key), .mask = htole32(mask), .pdn = htole32(n->pdn), .access = htole32(RIGHTS),
		.iova = htole64(n->buf), .length = htole64(LEN), .pages = list(n->buf, LEN) });
}

static void it_is_not_modified(void **state)
{
	struct world *w = *state;
	struct node *b = &w->n[1];
	uint32_t key = region(w, b);
	uint64_t used = b->dev->pages_used;

	revoked(w, b, key);
	/* Not even for want of quota. */
	b->dev->max_pages = used;
	for (uint32_t mask = 0; mask <= SKUA_MR_SET_MASK; mask++) {
		struct skua_cmd cmd = modify_cmd_of(b, key, mask);

		assert_int_equal(command(w, b, &cmd), SKUA_CMD_BAD_STATE);
	}
	assert_int_equal(b->dev->pages_used, used);
	refused(w, SKUA_WQE_WRITE, key, b->buf + AT);
}

struct bind_wqe {
	struct skua_wqe_ctrl ctrl;
	struct skua_wqe_bind_mw bind;
	uint8_t padding[16];
};

static void bind_window(struct node *n, uint32_t key, uint32_t mr, uint64_t length)
{
	struct bind_wqe k = {
		.ctrl = { .opcode = SKUA_WQE_BIND_MW, .flags = SKUA_WQE_SIGNALED, .nblocks = 1, .cookie = htole32(n->sq_pi) },
		.bind = { .key = htole32(key), .mr_key = htole32(mr), .addr = htole64(n->buf + AT),
			  .length = htole64(length), .access = htole32(REMOTE) },
	};

	post_block(n, &k);
}

static uint32_t bound(struct world *w, struct node *n, uint8_t type, uint32_t mr)
{
	uint32_t key = must(w, n, (struct skua_cmd)CMD(SKUA_CMD_CREATE_MW, .create_mw = {
		.pdn = htole32(n->pdn), .type = type }));

	bind_window(n, key, mr, LEN);
	expect(w, n, SKUA_CQE_BIND_MW, SKUA_CQE_SUCCESS);
	return key;
}

static void windows_are_cut(void **state)
{
	struct world *w = *state;
	struct node *b = &w->n[1];

	for (uint8_t type = SKUA_MW_TYPE_1; type <= SKUA_MW_TYPE_2; type++) {
		uint32_t key = region(w, b), other = region(w, b), mw = bound(w, b, type, key);
		uint32_t sound = bound(w, b, type, other);
		struct skua_cmd destroy = object_cmd(SKUA_CMD_DESTROY_MR, key);

		use(w, mw);
		revoked(w, b, key);
		use(w, sound);
		/* It is of no use, but it is bound. */
		assert_int_equal(command(w, b, &destroy), SKUA_CMD_BUSY);
		refused(w, SKUA_WQE_WRITE, mw, b->buf + AT);
		if (type == SKUA_MW_TYPE_1) {
			refused(w, SKUA_WQE_READ, mw, b->buf + AT);
			bind_window(b, mw, other, LEN);
			expect(w, b, SKUA_CQE_BIND_MW, SKUA_CQE_SUCCESS);
			use(w, mw);
		}
		must(w, b, object_cmd(SKUA_CMD_DESTROY_MW, mw));
		must(w, b, destroy);
		must(w, b, object_cmd(SKUA_CMD_DESTROY_MW, sound));
		must(w, b, object_cmd(SKUA_CMD_DESTROY_MR, other));
	}
}

/* Which fault it is: as with the MR itself, before the PD is looked at. */
static void what_a_window_finds(void **state)
{
	struct world *w = *state;
	struct node *b = &w->n[1];
	uint32_t key = region(w, b), mw = bound(w, b, SKUA_MW_TYPE_1, key);
	uint32_t pdn = must(w, b, (struct skua_cmd)CMD(SKUA_CMD_CREATE_PD));
	struct skua_qp *qp = numtab_get(&b->dev->qps, b->qpn);
	struct mem_access access = { .pd = qp->pd, .need = SKUA_ACCESS_REMOTE_READ, .qp = qp };

	assert_int_equal(mr_check(b->dev, &access, mw, b->buf + AT, 8), SKUA_VENDOR_ERR_NONE);
	revoked(w, b, key);
	assert_int_equal(mr_check(b->dev, &access, key, b->buf + AT, 8), SKUA_VENDOR_ERR_KEY_STALE);
	assert_int_equal(mr_check(b->dev, &access, mw, b->buf + AT, 8), SKUA_VENDOR_ERR_KEY_STALE);
	access.pd = numtab_get(&b->dev->pds, pdn);
	assert_int_equal(mr_check(b->dev, &access, key, b->buf + AT, 8), SKUA_VENDOR_ERR_KEY_STALE);
	assert_int_equal(mr_check(b->dev, &access, mw, b->buf + AT, 8), SKUA_VENDOR_ERR_KEY_STALE);
	/* Nothing is bound to it any more. */
	bind_window(b, mw, key, 8);
	expect_vendor(w, b, SKUA_CQE_BIND_MW, SKUA_CQE_MW_BIND_ERR, SKUA_VENDOR_ERR_KEY_STALE);
}

static void regions_that_may_not_be(void **state)
{
	struct world *w = *state;
	struct node *b = &w->n[1];
	uint32_t key = region(w, b), gone = region(w, b), dmn;
	struct skua_cmd fast = region_cmd(b, ALL_RIGHTS), bad = object_cmd(SKUA_CMD_INVALIDATE_MR, key);

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
		assert_int_equal(revoke(w, b, rows[i].key), rows[i].status);
	bad.object.rsvd[0] = 1;
	assert_int_equal(command(w, b, &bad), SKUA_CMD_BAD_PARAM);
	bad.object.rsvd[0] = 0;
	bad.hdr.port = 1;
	assert_int_equal(command(w, b, &bad), SKUA_CMD_BAD_PARAM);
	use(w, key);
}

/* What takes its pages is UPDATE_PAGES. */
static void pages_on_demand(void **state)
{
	struct world *w = *state;
	struct node *b = &w->n[1];
	struct skua_cmd eq = create_eq_cmd(b), mr = create_mr_cmd(b);

	eq.create_eq.type = SKUA_EQ_FAULT;
	eq.create_eq.log_size = 0;
	eq.create_eq.dbr_addr = htole64(take(b, 64));
	eq.create_eq.ring = list(take(b, 64), 64);
	must(w, b, eq);
	mr.create_mr.access |= htole32(SKUA_ACCESS_ON_DEMAND);
	mr.create_mr.pages = (struct skua_pagelist){ .log_page = 12 };
	assert_int_equal(revoke(w, b, must(w, b, mr)), SKUA_CMD_BAD_PARAM);
}

/* No bytes, but a key. */
static void an_mr_of_no_bytes(void **state)
{
	struct world *w = *state;
	struct node *b = &w->n[1];
	struct skua_cmd cmd = region_cmd(b, RIGHTS);
	struct skua_qp *qp = numtab_get(&b->dev->qps, b->qpn);
	struct mem_access access = { .pd = qp->pd, .need = SKUA_ACCESS_REMOTE_READ, .qp = qp };
	uint32_t key;

	cmd.create_mr.length = 0;
	memset(&cmd.create_mr.pages, 0, sizeof(cmd.create_mr.pages));
	key = must(w, b, cmd);
	assert_int_equal(mr_check_key(b->dev, &access, key), SKUA_VENDOR_ERR_NONE);
	revoked(w, b, key);
	assert_int_equal(mr_check_key(b->dev, &access, key), SKUA_VENDOR_ERR_KEY_STALE);
	must(w, b, object_cmd(SKUA_CMD_DESTROY_MR, key));
}

static void begin(struct node *n, struct skua_cmd cmd)
{
	cmd.hdr.id = htole32(n->cmd_pi);
	memcpy(at(n, n->cmd_ring + (n->cmd_pi & ((1u << LOG_CMD) - 1)) * sizeof(cmd)), &cmd, sizeof(cmd));
	n->cmd_pi++;
	host_store32(&((struct skua_dbr *)at(n, n->cmd_dbr))->pi, n->cmd_pi);
	ring(n, SKUA_DB_CMD, 0, n->cmd_pi);
}

static struct skua_cmd_cpl *completion(struct node *n, uint32_t i)
{
	return at(n, n->cmd_cpl + (i & ((1u << LOG_CMD) - 1)) * sizeof(struct skua_cmd_cpl));
}

/* The list of a large MR: so many times the same page. */
static struct skua_pagelist large_list(struct node *n)
{
	uint64_t top = take(n, 4096), leaf = take(n, 4096);

	for (int i = 0; i < 512; i++) {
		((uint64_t *)at(n, top))[i] = htole64(leaf | SKUA_PL_PRESENT);
		((uint64_t *)at(n, leaf))[i] = htole64(n->buf | SKUA_PL_PRESENT);
	}
	return (struct skua_pagelist){ .npages = htole32(MANY), .level = 2, .log_page = 12,
				       .addr = { htole64(top | SKUA_PL_PRESENT) } };
}

static struct skua_cmd large_cmd(struct node *n)
{
	struct skua_cmd cmd = create_mr_cmd(n);

	cmd.create_mr.length = htole64(MANY * 4096ull);
	cmd.create_mr.pages = large_list(n);
	return cmd;
}

/* One step for any size, and before a long command ends. */
static void it_does_not_wait(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_cmd large = large_cmd(n);
	uint32_t key = must(w, n, large), first, steps = 0;
	uint64_t used = n->dev->pages_used;

	settle(w);
	first = n->cmd_pi;
	begin(n, large);
	begin(n, large);
	engine_step(w->engines[0]);
	begin(n, (struct skua_cmd)CMD(SKUA_CMD_NOP));
	begin(n, object_cmd(SKUA_CMD_INVALIDATE_MR, key));
	for (; n->dev->cmdq.cpl_pi == first; steps++)
		assert_true(engine_step(w->engines[0]));
	assert_in_range(steps, 1, 2);
	assert_int_equal(le32toh(completion(n, first)->id), first + 3);
	assert_int_equal(completion(n, first)->status, SKUA_CMD_OK);
	assert_null(n->dev->old_pages);
	settle(w);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(le32toh(completion(n, first + 1 + i)->id), first + i);
	assert_int_equal(n->dev->pages_used, used + 2 * MANY);
}

/* It is revoked while MODIFY_MR reads the list of other pages, or while DESTROY_MR ends. */
static void in_the_midst_of_another_command(void **state)
{
	struct world *w = *state;
	struct node *b = &w->n[1];
	uint32_t key = region(w, b), first;
	struct skua_cmd cmd = modify_cmd_of(b, key, SKUA_MR_SET_PAGES);
	uint64_t used = b->dev->pages_used;

	cmd.modify_mr.length = htole64(MANY * 4096ull);
	cmd.modify_mr.pages = large_list(b);
	settle(w);
	first = b->cmd_pi;
	begin(b, cmd);
	engine_step(b->engine);
	engine_step(b->engine);
	assert_non_null(b->dev->cmdq.making);
	begin(b, object_cmd(SKUA_CMD_INVALIDATE_MR, key));
	settle(w);
	assert_int_equal(le32toh(completion(b, first)->id), first + 1);
	assert_int_equal(completion(b, first)->status, SKUA_CMD_OK);
	assert_int_equal(le32toh(completion(b, first + 1)->id), first);
	assert_int_equal(completion(b, first + 1)->status, SKUA_CMD_BAD_STATE);
	assert_int_equal(b->dev->pages_used, used);
	refused(w, SKUA_WQE_WRITE, key, b->buf + AT);
	/* In any order with its destruction. */
	for (uint32_t i = 0; i < 2; i++) {
		key = region(w, b);
		first = b->cmd_pi;
		begin(b, object_cmd(i ? SKUA_CMD_DESTROY_MR : SKUA_CMD_INVALIDATE_MR, key));
		if (i)
			settle(w);
		begin(b, object_cmd(i ? SKUA_CMD_INVALIDATE_MR : SKUA_CMD_DESTROY_MR, key));
		settle(w);
		assert_int_equal(completion(b, first)->status, SKUA_CMD_OK);
		assert_int_equal(completion(b, first + 1)->status, i ? SKUA_CMD_BAD_OBJECT : SKUA_CMD_OK);
	}
}

/* A message that goes on: some of its packets have been placed, and no other is. */
static void in_the_midst_of_a_message(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	for (uint32_t rounds = 0; rounds < 12; rounds++) {
		struct skua_cmd cmd = create_mr_cmd(b);
		uint32_t key;

		cmd.create_mr.access = htole32(ALL_RIGHTS);
		cmd.create_mr.length = htole64(BUF_SIZE);
		cmd.create_mr.pages = list(b->buf, BUF_SIZE);
		key = must(w, b, cmd);
		memset(at(a, a->buf), 1, BUF_SIZE);
		memset(at(b, b->buf), 3, BUF_SIZE);
		post(a, rounds % 2 ? SKUA_WQE_WRITE : SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, BUF_SIZE, b->buf, key, 0);
		for (uint32_t i = 0; i < rounds; i++)
			engine_step(a->engine);
		revoked(w, b, key);
		memset(at(b, b->buf), 2, BUF_SIZE);
		settle(w);
		if (rounds % 2)
			assert_null(memchr(at(b, b->buf), 1, BUF_SIZE));
		else
			assert_null(memchr(at(a, a->buf), 2, BUF_SIZE));
		again(w);
		must(w, b, object_cmd(SKUA_CMD_DESTROY_MR, key));
	}
}

static void without_the_feature(void **state)
{
	struct world *w = world_create_with(false, FEATURES_OFFERED & ~(1ull << SKUA_F_MR_REVOKE));
	struct node *b = &w->n[1];
	uint32_t key = region(w, b);

	(void)state;
	assert_int_equal(revoke(w, b, key), SKUA_CMD_BAD_OPCODE);
	use(w, key);
	world_destroy(w);
}

/* And with nothing else that commands of MRs belong to. */
static void the_feature_alone(void **state)
{
	struct world *w = world_create_with(false, 1ull << SKUA_F_MR_REVOKE | 1ull << SKUA_F_RC | 1ull << SKUA_F_EVENT_IDX |
						   1ull << SKUA_F_ETHERNET);
	struct node *b = &w->n[1];
	uint32_t key = must(w, b, region_cmd(b, ALL_RIGHTS));

	(void)state;
	use(w, key);
	revoked(w, b, key);
	refused(w, SKUA_WQE_WRITE, key, b->buf + AT);
	world_destroy(w);
}

#define TABLE(f, rules)	{ rules ": " #f, f, NULL, NULL, NULL }

int main(void)
{
	const struct CMUnitTest tests[] = {
		STEPPED(peers_are_refused, "MR-14 MEM-1"),
		STEPPED(the_host_is_refused, "MR-14 MEM-14"),
		STEPPED(until_it_is_destroyed, "MR-13 MR-14 PL-10 OBJ-7"),
		STEPPED(it_is_not_modified, "MR-14 CMD-11 CMD-12"),
		STEPPED(windows_are_cut, "MR-14 MW-8"),
		STEPPED(what_a_window_finds, "MR-14 MEM-2 MW-7"),
		STEPPED(regions_that_may_not_be, "MR-13 CMD-11"),
		STEPPED(pages_on_demand, "MR-13"),
		STEPPED(an_mr_of_no_bytes, "MR-14 MR-8"),
		STEPPED(it_does_not_wait, "MR-13 MR-15 CMD-18"),
		STEPPED(in_the_midst_of_another_command, "MR-14 CMD-12 CMD-18"),
		STEPPED(in_the_midst_of_a_message, "MR-15 MEM-12"),
		TABLE(without_the_feature, "FEA-2"),
		TABLE(the_feature_alone, "GRO-1"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
