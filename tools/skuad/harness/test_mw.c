// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Memory windows: BIND_MW, what peers may do through a window, and how it ends. */
#include "core/mw.h"
#include "core/qp.h"
#include "harness/datagram.h"
#include "harness/lossy.h"
#include "nic/control.h"

#define PAGES		5
#define OFFSET		100	/* of the MR in its first page */
#define SIZE		(PAGES * 4096 - OFFSET - 50)
#define MR_IOVA		0x5000000ull
#define AT		3000	/* of the window in the MR */
#define LEN		9001
#define LATER		65536	/* in the buffer, behind the MR */
#define REMOTE		(SKUA_ACCESS_REMOTE_WRITE | SKUA_ACCESS_REMOTE_READ)
#define LOCAL		(SKUA_ACCESS_LOCAL_WRITE | SKUA_ACCESS_MW_BIND)
#define UC_RTR		(SKUA_QP_ATTR_STATE | SKUA_QP_ATTR_AV | SKUA_QP_ATTR_PATH_MTU | \
			 SKUA_QP_ATTR_DEST_QPN | SKUA_QP_ATTR_RQ_PSN)
#define UC_RTS		(SKUA_QP_ATTR_STATE | SKUA_QP_ATTR_SQ_PSN)

struct block {
	struct skua_wqe_ctrl ctrl;
	struct skua_wqe_bind_mw bind;
	uint8_t padding[16];
};

static_assert(sizeof(struct block) == SKUA_WQE_BLOCK, "a BIND_MW takes one block");

static const uint8_t both_types[] = { SKUA_MW_TYPE_1, SKUA_MW_TYPE_2 };

static struct skua_cmd mw_cmd(uint32_t pdn, uint8_t type)
{
	return (struct skua_cmd)CMD(SKUA_CMD_CREATE_MW, .create_mw = { .pdn = htole32(pdn), .type = type });
}

static uint32_t window(struct world *w, struct node *n, uint8_t type)
{
	return must(w, n, mw_cmd(n->pdn, type));
}

/* Pages at the start of the buffer in reverse. It grants nothing to peers by itself. */
static struct skua_cmd region_cmd(struct node *n, uint32_t access)
{
	struct skua_cmd cmd = create_mr_cmd(n);

	cmd.create_mr.access = htole32(access);
	cmd.create_mr.iova = htole64(MR_IOVA);
	cmd.create_mr.length = htole64(SIZE);
	cmd.create_mr.pages = (struct skua_pagelist){ .log_page = 12, .npages = htole32(PAGES), .offset = htole64(OFFSET) };
	for (uint64_t i = 0; i < PAGES; i++)
		cmd.create_mr.pages.addr[i] = htole64((n->buf + (PAGES - 1 - i) * 4096) | SKUA_PL_PRESENT);
	return cmd;
}

static uint32_t region(struct world *w, struct node *n)
{
	return must(w, n, region_cmd(n, LOCAL));
}

/* Byte @i of the window, in the memory of region_cmd(). */
static uint8_t *byte(struct node *n, uint32_t i)
{
	i += OFFSET + AT;
	return (uint8_t *)at(n, n->buf) + (PAGES - 1 - i / 4096) * 4096 + i % 4096;
}

static struct block bind_of(struct node *n, uint32_t key, uint32_t mr_key)
{
	return (struct block){
		.ctrl = { .opcode = SKUA_WQE_BIND_MW, .flags = SKUA_WQE_SIGNALED, .nblocks = 1,
			  .cookie = htole32(n->sq_pi) },
		.bind = { .key = htole32(key), .mr_key = htole32(mr_key), .addr = htole64(MR_IOVA + AT),
			  .length = htole64(LEN), .access = htole32(REMOTE) },
	};
}

static void must_bind(struct world *w, struct node *n, struct block k)
{
	post_block(n, &k);
	expect(w, n, SKUA_CQE_BIND_MW, SKUA_CQE_SUCCESS);
}

static struct block unbind_of(struct node *n, uint32_t key)
{
	struct block k = bind_of(n, key, 0);

	k.bind.addr = 0;
	k.bind.length = 0;
	k.bind.access = 0;
	return k;
}

/* The end of a window: LOCAL_INV, or BIND_MW of no bytes. */
static void end(struct world *w, struct node *n, uint8_t type, uint32_t key)
{
	if (type == SKUA_MW_TYPE_1) {
		must_bind(w, n, unbind_of(n, key ^ 1));
		return;
	}
	post(n, SKUA_WQE_LOCAL_INV, SKUA_WQE_SIGNALED, 0, 0, 0, 0, key);
	expect(w, n, SKUA_CQE_LOCAL_INV, SKUA_CQE_SUCCESS);
}

/* All of b's window is written, and read again, by a. */
static void use(struct world *w, uint32_t key, uint64_t addr)
{
	struct node *a = &w->n[0], *b = &w->n[1];

	fill(a, LEN, key);
	memset(at(b, b->buf), 0, (size_t)PAGES * 4096);
	post(a, SKUA_WQE_WRITE, 0, a->buf, LEN, addr, key, 0);
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf + LATER, LEN, addr, key, 0);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	for (uint32_t i = 0; i < LEN; i++)
		assert_int_equal(*byte(b, i), ((uint8_t *)at(a, a->buf))[i]);
	assert_memory_equal(at(a, a->buf), at(a, a->buf + LATER), LEN);
	assert_int_equal(*(byte(b, 0) - 1), 0);
	assert_int_equal(*(byte(b, LEN - 1) + 1), 0);
}

/* Of both ends, which keep what type 2 windows serve: an error of the peer does not reset them. */
static void connect_again(struct world *w)
{
	struct node *a = &w->n[0], *b = &w->n[1];

	reconnect(w, a, b);
	reconnect(w, b, a);
	while (poll_aeq(b))
		;
}

/* a's request with the key is refused; both QPs are connected again. */
static void refused(struct world *w, uint8_t opcode, uint32_t key, uint64_t addr, uint32_t len)
{
	struct node *a = &w->n[0];

	post(a, opcode, SKUA_WQE_SIGNALED, a->buf, len, addr, key, 0);
	expect(w, a, opcode == SKUA_WQE_READ ? SKUA_CQE_READ : SKUA_CQE_WRITE, SKUA_CQE_REM_ACCESS_ERR);
	connect_again(w);
}

static void no_use(struct world *w, uint32_t key)
{
	refused(w, SKUA_WQE_WRITE, key, MR_IOVA + AT, 8);
	refused(w, SKUA_WQE_READ, key, MR_IOVA + AT, 8);
}

static void bound_and_ended(void **state)
{
	struct world *w = *state;
	struct node *b = &w->n[1];
	uint32_t mr = region(w, b);

	for (int t = 0; t < 2; t++) {
		uint32_t first = window(w, b, both_types[t]);

		no_use(w, first);
		for (uint32_t i = 0; i < 300; i++) {
			uint32_t key = (first & ~0xffu) | (uint8_t)(first + 1 + i);

			must_bind(w, b, bind_of(b, key, mr));
			use(w, key, MR_IOVA + AT);
			if (i == 1)
				no_use(w, key - 1);
			if (i != 1 || t == 0)
				end(w, b, both_types[t], key);
			if (i < 2)
				no_use(w, key);
		}
		no_use(w, mr);
	}
}

/* Type 1 is bound to another part in one step. */
static void bound_anew(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t mr = region(w, b), key = window(w, b, SKUA_MW_TYPE_1);
	struct block k;

	must_bind(w, b, bind_of(b, key, mr));
	use(w, key, MR_IOVA + AT);
	k = bind_of(b, key ^ 1, mr);
	k.bind.addr = htole64(MR_IOVA);
	k.bind.length = htole64(16);
	k.bind.access = htole32(SKUA_ACCESS_REMOTE_READ);
	must_bind(w, b, k);
	no_use(w, key);
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, 16, MR_IOVA, key ^ 1, 0);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	refused(w, SKUA_WQE_READ, key ^ 1, MR_IOVA, 17);
	refused(w, SKUA_WQE_WRITE, key ^ 1, MR_IOVA, 8);
	/* It counts once for its MR. */
	assert_int_equal(command(w, b, &(struct skua_cmd[]){ object_cmd(SKUA_CMD_DESTROY_MR, mr) }[0]), SKUA_CMD_BUSY);
	must_bind(w, b, unbind_of(b, key));
	must(w, b, object_cmd(SKUA_CMD_DESTROY_MR, mr));
	/* To no bytes again, and again. */
	must_bind(w, b, unbind_of(b, key));
	must_bind(w, b, unbind_of(b, key));
}

static void bounds_and_rights(void **state)
{
	static const struct {
		uint32_t access;
		uint8_t opcode;
	} none[] = {
		{ 0, SKUA_WQE_READ }, { 0, SKUA_WQE_WRITE },
		{ SKUA_ACCESS_REMOTE_READ, SKUA_WQE_WRITE }, { SKUA_ACCESS_REMOTE_WRITE, SKUA_WQE_READ },
	};
	struct world *w = *state;
	struct node *b = &w->n[1];
	uint32_t mr = region(w, b);

	for (int t = 0; t < 2; t++) {
		uint32_t key = window(w, b, both_types[t]);
		struct block k = bind_of(b, key, mr);

		must_bind(w, b, k);
		refused(w, SKUA_WQE_READ, key, MR_IOVA + AT - 1, 1);
		/* RESET has freed one of type 2. */
		must_bind(w, b, k);
		refused(w, SKUA_WQE_WRITE, key, MR_IOVA + AT + LEN, 1);
		must_bind(w, b, k);
		refused(w, SKUA_WQE_WRITE, key, MR_IOVA + AT + LEN - 8, 9);
		must_bind(w, b, k);
		refused(w, SKUA_WQE_READ, key, MR_IOVA + AT, LEN + 1);
		for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
			k.bind.access = htole32(none[i].access);
			must_bind(w, b, k);
			refused(w, none[i].opcode, key, MR_IOVA + AT, 8);
		}
	}
}

/* A right of the window is not one of the QP. */
static void the_qp_has_to_have_the_right(void **state)
{
	struct world *w = *state;
	struct node *b = &w->n[1];
	uint32_t mr = region(w, b), key = window(w, b, SKUA_MW_TYPE_1);
	struct skua_qp_attr attr = { .access = htole32(SKUA_ACCESS_REMOTE_READ) };

	must_bind(w, b, bind_of(b, key, mr));
	must(w, b, modify_cmd(b->qpn, SKUA_QP_ATTR_ACCESS, attr));
	refused(w, SKUA_WQE_WRITE, key, MR_IOVA + AT, 8);
}

/* Words of a window are those of its MR. */
static void atomics(void **state)
{
	struct {
		struct skua_wqe_ctrl ctrl;
		struct skua_wqe_atomic atomic;
		struct skua_sge sge;
	} add = { .ctrl = { .opcode = SKUA_WQE_FETCH_ADD, .flags = SKUA_WQE_SIGNALED, .nblocks = 1, .num_sge = 1 } };
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_qp_attr attr = { .access = htole32(REMOTE | SKUA_ACCESS_REMOTE_ATOMIC) };
	uint32_t key = window(w, b, SKUA_MW_TYPE_2), mr;
	struct skua_cmd cmd = region_cmd(b, LOCAL);
	struct block k;

	cmd.create_mr.pages.offset = 0;
	mr = must(w, b, cmd);
	k = bind_of(b, key, mr);
	for (int granted = 1; granted >= 0; granted--) {
		must(w, b, modify_cmd(b->qpn, SKUA_QP_ATTR_ACCESS, attr));
		k.bind.access = htole32(granted ? SKUA_ACCESS_REMOTE_ATOMIC : REMOTE);
		must_bind(w, b, k);
		memset(byte(b, 0) - OFFSET, 0, 8);
		add.atomic = (struct skua_wqe_atomic){ .raddr = htole64(MR_IOVA + AT), .rkey = htole32(key),
						       .swap_add = htole64(5) };
		add.sge = (struct skua_sge){ htole64(a->buf), htole32(8), htole32(a->key) };
		post_block(a, &add);
		expect(w, a, SKUA_CQE_FETCH_ADD, granted ? SKUA_CQE_SUCCESS : SKUA_CQE_REM_ACCESS_ERR);
		assert_int_equal(*(byte(b, 0) - OFFSET), granted ? 5 : 0);
		connect_again(w);
	}
}

static void zero_based(void **state)
{
	struct world *w = *state;
	struct node *b = &w->n[1];
	uint32_t mr = region(w, b), key = window(w, b, SKUA_MW_TYPE_2);
	struct block k = bind_of(b, key, mr);

	k.bind.access |= htole32(SKUA_ACCESS_ZERO_BASED);
	must_bind(w, b, k);
	use(w, key, 0);
	refused(w, SKUA_WQE_WRITE, key, MR_IOVA + AT, 1);
	must_bind(w, b, k);
	refused(w, SKUA_WQE_READ, key, 0, LEN + 1);
	must_bind(w, b, k);
	refused(w, SKUA_WQE_READ, key, ~0ull, 1);
}

/* The host itself never uses the key: not in a SEND, not in a receive, not for what a READ brings. */
static void no_lkey(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t mr = region(w, b), ours = b->key, key;

	for (int t = 0; t < 2; t++) {
		key = window(w, b, both_types[t]);
		for (int use_of = 0; use_of < 3; use_of++) {
			must_bind(w, b, bind_of(b, key, mr));
			b->key = key;
			if (use_of == 0) {
				post(b, SKUA_WQE_SEND, 0, MR_IOVA + AT, 8, 0, 0, 0);
				expect_vendor(w, b, SKUA_CQE_SEND, SKUA_CQE_LOC_PROT_ERR, SKUA_VENDOR_ERR_KEY_TYPE);
			} else if (use_of == 1) {
				post(b, SKUA_WQE_READ, 0, MR_IOVA + AT, 8, a->buf, a->key, 0);
				expect_vendor(w, b, SKUA_CQE_READ, SKUA_CQE_LOC_PROT_ERR, SKUA_VENDOR_ERR_KEY_TYPE);
			} else {
				post_recv(b, MR_IOVA + AT, 8);
				post(a, SKUA_WQE_SEND, 0, a->buf, 8, 0, 0, 0);
				expect(w, a, SKUA_CQE_SEND, SKUA_CQE_REM_OP_ERR);
				expect_vendor(w, b, SKUA_CQE_RECV, SKUA_CQE_LOC_PROT_ERR, SKUA_VENDOR_ERR_KEY_TYPE);
			}
			b->key = ours;
			connect_again(w);
		}
	}
}

/* Another pair of QPs in the same PDs; returns the first one. */
static void second_pair(struct world *w, struct queues *first)
{
	for (int i = 0; i < 2; i++) {
		first[i] = new_queues(&w->n[i]);
		w->n[i].qpn = must(w, &w->n[i], create_qp_cmd(&w->n[i]));
	}
	connect_again(w);
}

static void switch_pairs(struct world *w, struct queues *other)
{
	for (int i = 0; i < 2; i++)
		other[i] = use_queues(&w->n[i], other[i]);
}

/* Type 1 serves all QPs of its PD, type 2 the one that bound it. */
static void other_qps(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t mr = region(w, b), one = window(w, b, SKUA_MW_TYPE_1), two = window(w, b, SKUA_MW_TYPE_2);
	struct queues other[2];

	must_bind(w, b, bind_of(b, one, mr));
	must_bind(w, b, bind_of(b, two, mr));
	second_pair(w, other);
	use(w, one, MR_IOVA + AT);
	no_use(w, two);
	/* Nor may another QP end it, or its peer. */
	post(b, SKUA_WQE_LOCAL_INV, 0, 0, 0, 0, 0, two);
	expect_vendor(w, b, SKUA_CQE_LOCAL_INV, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_PD);
	connect_again(w);
	post_recv(b, b->buf + LATER, 8);
	post(a, SKUA_WQE_SEND_INV, SKUA_WQE_SIGNALED, 0, 0, 0, 0, two);
	expect_vendor(w, b, SKUA_CQE_RECV, SKUA_CQE_REM_INV_REQ_ERR, SKUA_VENDOR_ERR_PD);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	connect_again(w);
	/* It unbinds one of type 1 by binding it. */
	must_bind(w, b, unbind_of(b, one));
	switch_pairs(w, other);
	use(w, two, MR_IOVA + AT);
	no_use(w, one);
}

static void of_another_pd(void **state)
{
	struct world *w = *state;
	struct node *b = &w->n[1];
	uint32_t pdn = b->pdn, mr = region(w, b);
	struct queues other[2];

	for (int t = 0; t < 2; t++) {
		uint32_t key = window(w, b, both_types[t]);

		must_bind(w, b, bind_of(b, key, mr));
		b->pdn = must(w, b, (struct skua_cmd)CMD(SKUA_CMD_CREATE_PD));
		second_pair(w, other);
		b->pdn = pdn;
		no_use(w, key);
		switch_pairs(w, other);
		use(w, key, MR_IOVA + AT);
	}
}

static void invalidated_by_the_peer(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t mr = region(w, b), key = window(w, b, SKUA_MW_TYPE_2);

	for (uint32_t i = 0; i < 3; i++, key = (key & ~0xffu) | (uint8_t)(key + 1)) {
		struct skua_cqe *cqe;

		must_bind(w, b, bind_of(b, key, mr));
		use(w, key, MR_IOVA + AT);
		/* Twice: both ends may do it. */
		for (int j = 0; j < 2; j++) {
			post_recv(b, b->buf + LATER, 8);
			post(a, SKUA_WQE_SEND_INV, 0, 0, 0, 0, 0, key);
			cqe = await_cqe(w, b);
			assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
			assert_int_equal(le32toh(cqe->inv_key), key);
		}
		end(w, b, SKUA_MW_TYPE_2, key);
	}
	no_use(w, key - 1);
}

/* Keys that LOCAL_INV and peers may not end; the window stays bound. */
static void not_invalidated(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t mr = region(w, b), one = window(w, b, SKUA_MW_TYPE_1), two = window(w, b, SKUA_MW_TYPE_2);
	const struct {
		uint32_t key;
		uint8_t vendor, of_peer;
		uint32_t access;
	} bad[] = {
		{ one, SKUA_VENDOR_ERR_KEY_TYPE, SKUA_VENDOR_ERR_KEY_TYPE, REMOTE },
		{ two ^ 1, SKUA_VENDOR_ERR_KEY_STALE, SKUA_VENDOR_ERR_KEY_STALE, REMOTE },
		{ two, SKUA_VENDOR_ERR_NONE, SKUA_VENDOR_ERR_RIGHTS, 0 },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct block k = bind_of(b, two, mr);

		k.bind.access = htole32(bad[i].access);
		must_bind(w, b, bind_of(b, one, mr));
		must_bind(w, b, k);
		post_recv(b, b->buf + LATER, 8);
		post(a, SKUA_WQE_SEND_INV, 0, 0, 0, 0, 0, bad[i].key);
		expect_vendor(w, b, SKUA_CQE_RECV, SKUA_CQE_REM_INV_REQ_ERR, bad[i].of_peer);
		assert_int_equal(command(w, b, &(struct skua_cmd[]){ object_cmd(SKUA_CMD_DESTROY_MR, mr) }[0]), SKUA_CMD_BUSY);
		connect_again(w);
		use(w, one, MR_IOVA + AT);
		must_bind(w, b, k);
		post(b, SKUA_WQE_LOCAL_INV, SKUA_WQE_SIGNALED, 0, 0, 0, 0, bad[i].key);
		expect_vendor(w, b, SKUA_CQE_LOCAL_INV, bad[i].vendor ? SKUA_CQE_LOC_QP_OP_ERR : SKUA_CQE_SUCCESS,
			      bad[i].vendor);
		connect_again(w);
	}
}

/* An MR with windows is neither destroyed nor invalidated, whatever binds them. */
static void the_mr_of_a_window(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cmd cmd = region_cmd(b, LOCAL | SKUA_ACCESS_REMOTE_READ), destroy;
	uint32_t one = window(w, b, SKUA_MW_TYPE_1), two = window(w, b, SKUA_MW_TYPE_2), mr;

	cmd.create_mr.type = SKUA_MR_FAST;
	mr = must(w, b, cmd);
	destroy = object_cmd(SKUA_CMD_DESTROY_MR, mr);
	must_bind(w, b, bind_of(b, one, mr));
	must_bind(w, b, bind_of(b, two, mr));
	assert_int_equal(command(w, b, &destroy), SKUA_CMD_BUSY);
	end(w, b, SKUA_MW_TYPE_2, two);
	assert_int_equal(command(w, b, &destroy), SKUA_CMD_BUSY);
	post(b, SKUA_WQE_LOCAL_INV, 0, 0, 0, 0, 0, mr);
	expect_vendor(w, b, SKUA_CQE_LOCAL_INV, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_KEY_STATE);
	connect_again(w);
	post_recv(b, b->buf + LATER, 8);
	post(a, SKUA_WQE_SEND_INV, 0, 0, 0, 0, 0, mr);
	expect_vendor(w, b, SKUA_CQE_RECV, SKUA_CQE_REM_INV_REQ_ERR, SKUA_VENDOR_ERR_KEY_STATE);
	connect_again(w);
	use(w, one, MR_IOVA + AT);
	must_bind(w, b, unbind_of(b, one));
	post(b, SKUA_WQE_LOCAL_INV, SKUA_WQE_SIGNALED, 0, 0, 0, 0, mr);
	expect(w, b, SKUA_CQE_LOCAL_INV, SKUA_CQE_SUCCESS);
	must(w, b, destroy);
}

/* RESET and destruction of a QP free windows of type 2; ERR does not, and those of type 1 stay. */
static void the_qp_of_a_window(void **state)
{
	for (int destroy = 0; destroy < 2; destroy++) {
		struct world *w = world_create(false);
		struct node *b = &w->n[1];
		uint32_t mr = region(w, b), keys[3], one = window(w, b, SKUA_MW_TYPE_1);
		struct skua_cmd cmd = object_cmd(SKUA_CMD_DESTROY_MR, mr);
		struct queues other[2];

		must_bind(w, b, bind_of(b, one, mr));
		for (int i = 0; i < 3; i++) {
			keys[i] = window(w, b, SKUA_MW_TYPE_2);
			must_bind(w, b, bind_of(b, keys[i], mr));
		}
		must(w, b, object_cmd(SKUA_CMD_DESTROY_MW, keys[1]));
		must(w, b, state_cmd(b->qpn, SKUA_QPS_ERR));
		assert_int_equal(((struct mr *)numtab_get(&b->dev->mrs, mr >> 8))->windows, 3);
		must(w, b, destroy ? object_cmd(SKUA_CMD_DESTROY_QP, b->qpn) : state_cmd(b->qpn, SKUA_QPS_RESET));
		assert_int_equal(command(w, b, &cmd), SKUA_CMD_BUSY);
		second_pair(w, other);
		use(w, one, MR_IOVA + AT);
		no_use(w, keys[0]);
		/* It is free: another QP may bind it. */
		must_bind(w, b, bind_of(b, keys[2], mr));
		use(w, keys[2], MR_IOVA + AT);
		must(w, b, object_cmd(SKUA_CMD_DESTROY_MW, one));
		end(w, b, SKUA_MW_TYPE_2, keys[2]);
		must(w, b, cmd);
		world_destroy(w);
	}
	(void)state;
}

/* Whatever variant it has; bound or not. */
static void destroyed(void **state)
{
	struct world *w = *state;
	struct node *b = &w->n[1];
	uint32_t mr = region(w, b);
	struct skua_cmd pd = CMD(SKUA_CMD_CREATE_PD);

	for (int i = 0; i < 4; i++) {
		uint32_t key = window(w, b, both_types[i / 2]);
		struct skua_cmd destroy = object_cmd(SKUA_CMD_DESTROY_MW, key);
		struct block k = bind_of(b, key ^ 0x55, mr);

		if (i & 1)
			must_bind(w, b, k);
		/* It is no MR, and an MR is no window. */
		assert_int_equal(command(w, b, &(struct skua_cmd[]){ object_cmd(SKUA_CMD_DESTROY_MR, key) }[0]),
				 SKUA_CMD_BAD_OBJECT);
		assert_int_equal(command(w, b, &(struct skua_cmd[]){ object_cmd(SKUA_CMD_DESTROY_MW, mr) }[0]),
				 SKUA_CMD_BAD_OBJECT);
		must(w, b, destroy);
		assert_int_equal(command(w, b, &destroy), SKUA_CMD_BAD_OBJECT);
		no_use(w, key ^ 0x55);
		post_block(b, &k);
		expect_vendor(w, b, SKUA_CQE_BIND_MW, SKUA_CQE_MW_BIND_ERR, SKUA_VENDOR_ERR_KEY_UNKNOWN);
		connect_again(w);
	}
	must(w, b, object_cmd(SKUA_CMD_DESTROY_MR, mr));
	pd = object_cmd(SKUA_CMD_DESTROY_PD, must(w, b, pd));
	mr = must(w, b, mw_cmd(le32toh(pd.object.number), SKUA_MW_TYPE_1));
	assert_int_equal(command(w, b, &pd), SKUA_CMD_BUSY);
	must(w, b, object_cmd(SKUA_CMD_DESTROY_MW, mr));
	must(w, b, pd);
}

static uint32_t in_another_pd(struct world *w, struct node *n, struct skua_cmd cmd)
{
	__le32 pdn = htole32(must(w, n, (struct skua_cmd)CMD(SKUA_CMD_CREATE_PD)));

	/* In both bodies it is the first field. */
	memcpy(cmd.body, &pdn, sizeof(pdn));
	return must(w, n, cmd);
}

static uint32_t destroyed_key(struct world *w, struct node *n, struct skua_cmd cmd, uint16_t opcode)
{
	uint32_t key = must(w, n, cmd);

	must(w, n, object_cmd(opcode, key));
	return key;
}

static uint32_t bound_key(struct world *w, struct node *n, uint32_t mr)
{
	uint32_t key = window(w, n, SKUA_MW_TYPE_2);

	must_bind(w, n, bind_of(n, key, mr));
	return key;
}

static uint32_t phys_key(struct world *w, struct node *n)
{
	return must(w, n, (struct skua_cmd)CMD(SKUA_CMD_CREATE_MR, .create_mr = {
		.pdn = htole32(n->pdn), .type = SKUA_MR_PHYS, .access = htole32(LOCAL) }));
}

static uint32_t freed_key(struct world *w, struct node *n)
{
	struct skua_cmd cmd = region_cmd(n, LOCAL);
	uint32_t key;

	cmd.create_mr.type = SKUA_MR_FAST;
	key = must(w, n, cmd);
	post(n, SKUA_WQE_LOCAL_INV, SKUA_WQE_SIGNALED, 0, 0, 0, 0, key);
	expect(w, n, SKUA_CQE_LOCAL_INV, SKUA_CQE_SUCCESS);
	return key;
}

static uint32_t empty_key(struct world *w, struct node *n)
{
	struct skua_cmd cmd = region_cmd(n, LOCAL);

	cmd.create_mr.length = 0;
	memset(&cmd.create_mr.pages, 0, sizeof(cmd.create_mr.pages));
	return must(w, n, cmd);
}

/* A BIND_MW that is no good, after which the window is as before, bound to another MR if it is of type 1. */
#define BAD_OF(mw_type, cqe_status, vendor, ...) do {					\
	struct world *w = world_create(false);						\
	struct node *a = &w->n[1];							\
	uint32_t mr = region(w, a), old = region(w, a), key = window(w, a, mw_type);	\
	bool bound = (mw_type) == SKUA_MW_TYPE_1;					\
	struct block k;									\
	struct skua_cqe *cqe;								\
											\
	if (bound)									\
		must_bind(w, a, bind_of(a, key, old));					\
	k = bind_of(a, key ^ 1, mr);							\
	__VA_ARGS__;									\
	k.ctrl.cookie = htole32(a->sq_pi);						\
	post_block(a, &k);								\
	cqe = await_cqe(w, a);								\
	if (cqe->opcode != SKUA_CQE_BIND_MW || cqe->status != SKUA_CQE_##cqe_status ||	\
	    cqe->vendor_err != SKUA_VENDOR_ERR_##vendor)				\
		fail_msg("%s: opcode %d, status %d, vendor_err %d", #__VA_ARGS__, cqe->opcode, \
			 cqe->status, cqe->vendor_err);					\
	assert_int_equal(qp_state(w, a, a->qpn), SKUA_QPS_ERR);				\
	connect_again(w);								\
	if (bound)									\
		use(w, key, MR_IOVA + AT);						\
	else										\
		no_use(w, key ^ 1);							\
	world_destroy(w);								\
} while (0)
#define BAD(vendor, ...) do {								\
	BAD_OF(SKUA_MW_TYPE_1, MW_BIND_ERR, vendor, __VA_ARGS__);			\
	BAD_OF(SKUA_MW_TYPE_2, MW_BIND_ERR, vendor, __VA_ARGS__);			\
} while (0)
#define MALFORMED(...)	BAD_OF(SKUA_MW_TYPE_1, LOC_QP_OP_ERR, WQE_FORMAT, __VA_ARGS__)

static void fields_that_may_not_be(void **state)
{
	(void)state;
	MALFORMED(k.bind.rsvd = htole32(1));
	MALFORMED(k.ctrl.num_sge = 1);
	MALFORMED(k.ctrl.length = htole32(1));
	MALFORMED(k.ctrl.inv_key = htole32(key));
	MALFORMED(k.ctrl.flags |= SKUA_WQE_INLINE);
	MALFORMED(k.bind.access = htole32(REMOTE | SKUA_ACCESS_LOCAL_WRITE));
	MALFORMED(k.bind.access = htole32(REMOTE | SKUA_ACCESS_MW_BIND));
	MALFORMED(k.bind.access = htole32(SKUA_ACCESS_MASK + 1));
}

static void windows_that_may_not_be(void **state)
{
	(void)state;
	BAD(KEY_UNKNOWN, k.bind.key ^= htole32(0x100));
	BAD(KEY_UNKNOWN, k.bind.key = htole32(RESERVED_LKEY));
	BAD(KEY_UNKNOWN, k.bind.key = htole32(destroyed_key(w, a, mw_cmd(a->pdn, 1), SKUA_CMD_DESTROY_MW)));
	BAD(PD, k.bind.key = htole32(in_another_pd(w, a, mw_cmd(0, SKUA_MW_TYPE_1))));
	BAD(KEY_TYPE, k.bind.key = htole32(a->key));
	BAD_OF(SKUA_MW_TYPE_2, MW_BIND_ERR, KEY_STATE, k.bind.key = htole32(bound_key(w, a, mr) ^ 1));
	BAD_OF(SKUA_MW_TYPE_1, MW_BIND_ERR, RIGHTS, k.bind.access = htole32(REMOTE | SKUA_ACCESS_ZERO_BASED));
	BAD_OF(SKUA_MW_TYPE_2, MW_BIND_ERR, BOUNDS, k.bind.length = 0);
	/* Of several, the first in the order of the checks. */
	BAD(PD, k.bind.key = htole32(in_another_pd(w, a, mw_cmd(0, SKUA_MW_TYPE_1))), k.bind.mr_key = 0);
	BAD_OF(SKUA_MW_TYPE_2, MW_BIND_ERR, KEY_STATE, k.bind.key = htole32(bound_key(w, a, mr)), k.bind.length = 0);
}

static void regions_that_may_not_be(void **state)
{
	(void)state;
	BAD(KEY_UNKNOWN, k.bind.mr_key ^= htole32(0x100));
	BAD(KEY_UNKNOWN, k.bind.mr_key = htole32(RESERVED_LKEY));
	BAD(KEY_UNKNOWN, k.bind.mr_key =
	    htole32(destroyed_key(w, a, region_cmd(a, LOCAL), SKUA_CMD_DESTROY_MR)));
	BAD(KEY_STALE, k.bind.mr_key ^= htole32(1));
	BAD(KEY_STALE, k.bind.mr_key = htole32(freed_key(w, a)));
	BAD(PD, k.bind.mr_key = htole32(in_another_pd(w, a, region_cmd(a, LOCAL))));
	BAD(KEY_TYPE, k.bind.mr_key = htole32(phys_key(w, a)));
	BAD(KEY_TYPE, k.bind.mr_key = htole32(bound_key(w, a, mr)));
	BAD(RIGHTS, k.bind.mr_key = htole32(must(w, a, region_cmd(a, ALL_RIGHTS))));
	BAD(RIGHTS, k.bind.mr_key = htole32(must(w, a, region_cmd(a, SKUA_ACCESS_MW_BIND))));
	BAD(RIGHTS, k.bind.mr_key = htole32(must(w, a, region_cmd(a, SKUA_ACCESS_MW_BIND))),
	    k.bind.access = htole32(SKUA_ACCESS_REMOTE_ATOMIC));
	BAD(BOUNDS, k.bind.addr = htole64(MR_IOVA - 1));
	BAD(BOUNDS, k.bind.addr = htole64(MR_IOVA + SIZE - LEN + 1));
	BAD(BOUNDS, k.bind.addr = htole64(MR_IOVA + SIZE + 1), k.bind.length = htole64(1));
	BAD(BOUNDS, k.bind.length = htole64(~0ull));
	BAD(BOUNDS, k.bind.mr_key = htole32(empty_key(w, a)), k.bind.addr = htole64(MR_IOVA),
	    k.bind.length = htole64(1));
	BAD(PD, k.bind.mr_key = htole32(in_another_pd(w, a, region_cmd(a, 0))), k.bind.length = htole64(~0ull));
	BAD(RIGHTS, k.bind.mr_key = htole32(must(w, a, region_cmd(a, 0))), k.bind.length = htole64(~0ull));
}

/* To read, a window needs no right of the MR but that to be bound. It may be as long as the MR. */
static void of_an_mr_that_may_not_be_written(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t mr = must(w, b, region_cmd(b, SKUA_ACCESS_MW_BIND)), key = window(w, b, SKUA_MW_TYPE_1);
	struct block k = bind_of(b, key, mr);

	k.bind.access = htole32(SKUA_ACCESS_REMOTE_READ);
	k.bind.addr = htole64(MR_IOVA);
	k.bind.length = htole64(SIZE);
	must_bind(w, b, k);
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, SIZE, MR_IOVA, key, 0);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
}

/* Fields of the commands. */
static void commands_that_may_not_be(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_cmd cmd = mw_cmd(n->pdn, 0), mr = create_mr_cmd(n);

	for (int type = 0; type < 256; type++) {
		cmd.create_mw.type = (uint8_t)type;
		assert_int_equal(command(w, n, &cmd), type == 1 || type == 2 ? SKUA_CMD_OK : SKUA_CMD_BAD_PARAM);
	}
	cmd = mw_cmd(n->pdn, SKUA_MW_TYPE_1);
	for (size_t i = 0; i < sizeof(cmd.create_mw.rsvd); i++) {
		cmd.create_mw.rsvd[i] = 1;
		assert_int_equal(command(w, n, &cmd), SKUA_CMD_BAD_PARAM);
		cmd.create_mw.rsvd[i] = 0;
	}
	cmd = mw_cmd(n->pdn + 1, SKUA_MW_TYPE_1);
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_BAD_OBJECT);
	mr.create_mr.access = htole32(SKUA_ACCESS_ZERO_BASED);
	assert_int_equal(command(w, n, &mr), SKUA_CMD_BAD_PARAM);
	assert_int_equal(command(w, n, &(struct skua_cmd[]){ modify_cmd(n->qpn, SKUA_QP_ATTR_ACCESS,
			 (struct skua_qp_attr){ .access = htole32(SKUA_ACCESS_MW_BIND) }) }[0]), SKUA_CMD_BAD_PARAM);
}

static void without_the_feature(void **state)
{
	struct world *w = world_create_with(false, ~(1ull << SKUA_F_MW));
	struct node *n = &w->n[0];
	struct skua_cmd cmd = mw_cmd(n->pdn, SKUA_MW_TYPE_1), mr = create_mr_cmd(n);
	struct block k = bind_of(n, n->key, n->key);

	(void)state;
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_BAD_OPCODE);
	cmd = object_cmd(SKUA_CMD_DESTROY_MW, n->key);
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_BAD_OPCODE);
	mr.create_mr.access = htole32(LOCAL);
	assert_int_equal(command(w, n, &mr), SKUA_CMD_BAD_PARAM);
	post_block(n, &k);
	expect_vendor(w, n, SKUA_CQE_BIND_MW, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_OPCODE);
	assert_int_equal(((struct skua_device_caps *)query(w, n, (struct skua_cmd)CMD(SKUA_CMD_QUERY_DEVICE),
							   sizeof(struct skua_device_caps)))->max_mw, 0);
	world_destroy(w);

	w = world_create_with(false, ~(1ull << SKUA_F_ATOMIC));
	n = &w->n[0];
	k = bind_of(n, window(w, n, SKUA_MW_TYPE_1), region(w, n));
	k.bind.access = htole32(SKUA_ACCESS_REMOTE_ATOMIC);
	post_block(n, &k);
	expect_vendor(w, n, SKUA_CQE_BIND_MW, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_FORMAT);
	world_destroy(w);
}

/* As many as there may be, beside as many MRs; then none of either. */
static void as_many_as_there_may_be(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_device_caps caps = *(struct skua_device_caps *)query(w, n,
		(struct skua_cmd)CMD(SKUA_CMD_QUERY_DEVICE), sizeof(caps));
	struct skua_cmd mw = mw_cmd(n->pdn, SKUA_MW_TYPE_2), mr = create_mr_cmd(n);
	uint32_t key = 0;

	mr.create_mr.access = 0;
	mr.create_mr.length = 0;
	memset(&mr.create_mr.pages, 0, sizeof(mr.create_mr.pages));
	for (uint32_t i = 0; i < le32toh(caps.max_mw); i++)
		key = must(w, n, mw);
	assert_int_equal(command(w, n, &mw), SKUA_CMD_NO_RESOURCE);
	for (uint32_t i = 1; i < le32toh(caps.max_mr); i++)
		must(w, n, mr);
	assert_int_equal(command(w, n, &mr), SKUA_CMD_NO_RESOURCE);
	must(w, n, object_cmd(SKUA_CMD_DESTROY_MW, key));
	assert_int_equal(command(w, n, &mr), SKUA_CMD_NO_RESOURCE);
	must(w, n, mw);
}

/* It waits for nothing before it, what is behind it finds the window; its error waits for all before it. */
static void in_its_turn(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t mr = region(w, a), key = window(w, a, SKUA_MW_TYPE_2);
	struct block k = bind_of(a, key, mr);

	must(w, b, port_cmd(SKUA_PORT_SET_FLAGS, 0));
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf + LATER, 64, b->buf, b->key, 0);
	post_block(a, &k);
	settle(w);
	expect_none(w, a);
	assert_int_equal(((struct mr *)numtab_get(&a->dev->mrs, mr >> 8))->windows, 1);
	k.ctrl.cookie = htole32(a->sq_pi);
	post_block(a, &k);
	settle(w);
	expect_none(w, a);
	must(w, b, port_cmd(SKUA_PORT_SET_FLAGS, SKUA_PORT_F_ENABLE | SKUA_PORT_F_ROCE));
	pass(w, 4096ull << 14);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	expect(w, a, SKUA_CQE_BIND_MW, SKUA_CQE_SUCCESS);
	expect_vendor(w, a, SKUA_CQE_BIND_MW, SKUA_CQE_MW_BIND_ERR, SKUA_VENDOR_ERR_KEY_STATE);
}

/* A QP of UC takes the place of each node's. */
static void use_uc(struct world *w)
{
	for (int i = 0; i < 2; i++) {
		struct node *n = &w->n[i];
		struct skua_cmd cmd;

		new_queues(n);
		cmd = create_qp_cmd(n);
		cmd.create_qp.type = SKUA_QPT_UC;
		cmd.create_qp.flags = htole32(SKUA_QP_PRIVILEGED);
		n->qpn = must(w, n, cmd);
	}
	for (int i = 0; i < 2; i++) {
		struct node *n = &w->n[i];
		struct skua_cmd rtr = rtr_cmd(n->qpn, &w->n[!i], w->n[!i].qpn), rts = rts_cmd(n->qpn);

		rtr.modify_qp.mask = htole32(UC_RTR);
		rts.modify_qp.mask = htole32(UC_RTS);
		must(w, n, init_cmd(n->qpn));
		must(w, n, rtr);
		must(w, n, rts);
	}
}

static void uc_write(struct world *w, uint32_t key, uint8_t value, bool placed)
{
	struct node *a = &w->n[0], *b = &w->n[1];

	memset(at(a, a->buf), value, LEN);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, LEN, MR_IOVA + AT, key, 0);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	settle(w);
	assert_int_equal(*byte(b, 0) == value, placed);
	assert_int_equal(*byte(b, LEN - 1) == value, placed);
}

static void on_uc(void **state)
{
	struct world *w = *state;
	struct node *b = &w->n[1];
	uint32_t mr = region(w, b);

	use_uc(w);
	for (int t = 0; t < 2; t++) {
		uint32_t key = window(w, b, both_types[t]);
		struct block k = bind_of(b, key, 0);

		must_bind(w, b, bind_of(b, key, mr));
		uc_write(w, key, (uint8_t)(t + 1), true);
		end(w, b, both_types[t], key);
		uc_write(w, key, (uint8_t)(t + 11), false);
		/* A bad one leads to SQE. */
		post_block(b, &k);
		expect_vendor(w, b, SKUA_CQE_BIND_MW, SKUA_CQE_MW_BIND_ERR, SKUA_VENDOR_ERR_KEY_UNKNOWN);
		assert_int_equal(qp_state(w, b, b->qpn), SKUA_QPS_SQE);
		must(w, b, state_cmd(b->qpn, SKUA_QPS_RTS));
	}
}

/* Fast registration serves UC as it does RC. */
static void registration_on_uc(void **state)
{
	struct world *w = *state;
	struct node *b = &w->n[1];
	uint32_t key = must(w, b, (struct skua_cmd)CMD(SKUA_CMD_CREATE_MR, .create_mr = {
		.pdn = htole32(b->pdn), .type = SKUA_MR_FAST, .capacity = htole32(PAGES) }));
	uint64_t l = take(b, 4096);
	struct {
		struct skua_wqe_ctrl ctrl;
		struct skua_wqe_reg_mr reg;
	} k = {
		.ctrl = { .opcode = SKUA_WQE_REG_MR, .flags = SKUA_WQE_SIGNALED, .nblocks = 1 },
		.reg = { .key = htole32(key), .access = htole32(ALL_RIGHTS), .iova = htole64(MR_IOVA),
			 .length = htole64(SIZE), .list = htole64(l), .offset = htole32(OFFSET),
			 .npages = htole32(PAGES), .log_page = 12 },
	};

	use_uc(w);
	for (uint64_t i = 0; i < PAGES; i++)
		((__le64 *)at(b, l))[i] = htole64((b->buf + (PAGES - 1 - i) * 4096) | SKUA_PL_PRESENT);
	for (uint8_t i = 0; i < 3; i++) {
		k.ctrl.cookie = htole32(b->sq_pi);
		post_block(b, &k);
		expect(w, b, SKUA_CQE_REG_MR, SKUA_CQE_SUCCESS);
		uc_write(w, key, (uint8_t)(i + 1), true);
		post(b, SKUA_WQE_LOCAL_INV, SKUA_WQE_SIGNALED, 0, 0, 0, 0, key);
		expect(w, b, SKUA_CQE_LOCAL_INV, SKUA_CQE_SUCCESS);
		uc_write(w, key, (uint8_t)(i + 11), false);
	}
	/* It is free. */
	post(b, SKUA_WQE_LOCAL_INV, 0, 0, 0, 0, 0, key ^ 1);
	expect_vendor(w, b, SKUA_CQE_LOCAL_INV, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_KEY_STALE);
}

/* Datagrams have no windows. */
static void not_on_ud(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct block k = bind_of(n, window(w, n, SKUA_MW_TYPE_1), region(w, n));

	ud_queues(w, n, SKUA_QPT_UD, SKUA_QPS_RTS);
	k.ctrl.cookie = htole32(n->sq_pi);
	post_block(n, &k);
	expect_vendor(w, n, SKUA_CQE_BIND_MW, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_OPCODE);
}

/* skuactl shows windows beside MRs. */
static void shown(void *arg_info, void *arg)
{
	const struct skua_mr_info *info = arg_info;
	uint32_t *seen = arg;

	if (info->window) {
		seen[info->window] = info->key;
		assert_int_equal(info->valid, info->window == SKUA_MW_TYPE_2);
		assert_int_equal(info->pages, 0);
	}
}

static void are_shown(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint32_t seen[3] = { 0 }, one = window(w, n, SKUA_MW_TYPE_1), two = window(w, n, SKUA_MW_TYPE_2);
	struct skua_walk walk = { 0 };

	must_bind(w, n, bind_of(n, two, region(w, n)));
	while (skua_dev_for_each_mr(n->dev, &walk, (skua_info_fn *)shown, seen))
		;
	assert_int_equal(seen[1], one);
	assert_int_equal(seen[2], two);
}

/* With all of them bound, a reset ends them in whatever order it finds them. */
static void a_reset_ends_all(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	for (int i = 0; i < 200; i++)
		must_bind(w, b, bind_of(b, window(w, b, both_types[i & 1]), region(w, b)));
	reg_write(b, SKUA_REG_CONTROL, SKUA_CONTROL_RESET);
	while (reg_read(b, SKUA_REG_STATUS) != SKUA_STATUS_READY)
		engine_step(b->engine);
	assert_int_equal(b->dev->mrs.count, 0);
	assert_int_equal(b->dev->num_mws, 0);
	b->used = 0;
	revive(w, b);
	reconnect(w, a, b);
	reconnect(w, b, a);
	must_bind(w, b, bind_of(b, window(w, b, SKUA_MW_TYPE_1), region(w, b)));
}

/* Packets are lost and sent again: none of them writes what the peer has invalidated behind them. */
static void under_loss(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t mr = region(w, b), key = window(w, b, SKUA_MW_TYPE_2);

	IMPAIR(a, "seed=1", "drop=10%,dir=out", "duplicate=10%,dir=out");
	IMPAIR(b, "seed=2", "drop=10%,dir=out", "duplicate=10%,dir=out");
	for (uint32_t i = 0; i < 200; i++) {
		struct block k;

		key = (key & ~0xffu) | (uint8_t)i;
		k = bind_of(b, key, mr);
		post_recv(b, b->buf + LATER, 8);
		post_block(b, &k);
		assert_int_equal(await_success(w, b)->opcode, SKUA_CQE_BIND_MW);
		fill(a, LEN, i);
		post(a, SKUA_WQE_WRITE, 0, a->buf, LEN, MR_IOVA + AT, key, 0);
		post(a, SKUA_WQE_SEND_INV, SKUA_WQE_SIGNALED, 0, 0, 0, 0, key);
		assert_int_equal(le32toh(await_success(w, b)->inv_key), key);
		for (uint32_t j = 0; j < LEN; j++)
			assert_int_equal(*byte(b, j), ((uint8_t *)at(a, a->buf))[j]);
		memset(at(b, b->buf), 0x99, (size_t)PAGES * 4096);
		await_success(w, a);
		pass(w, 1000000);
		for (uint32_t j = 0; j < PAGES * 4096; j++)
			assert_int_equal(((uint8_t *)at(b, b->buf))[j], 0x99);
	}
	assert_true(STAT(w, a, retransmits) > 50);
}

#define TABLE(f, rules)	{ rules ": " #f, f, NULL, NULL, NULL }

int main(void)
{
	const struct CMUnitTest tests[] = {
		STEPPED(bound_and_ended, "MW-2 MW-3 MW-4 MW-5 MEM-1 OBJ-3"),
		STEPPED(bound_anew, "MW-2 MW-5 MW-8"),
		STEPPED(bounds_and_rights, "MW-5 MEM-1 MEM-2 MEM-3"),
		STEPPED(the_qp_has_to_have_the_right, "MW-5 MEM-3"),
		STEPPED(atomics, "MW-5 ATM-3"),
		STEPPED(zero_based, "MW-5"),
		STEPPED(no_lkey, "MW-1 MEM-2"),
		STEPPED(other_qps, "MW-2 MW-3 MEM-7"),
		STEPPED(of_another_pd, "MW-1 MEM-1 MEM-2"),
		STEPPED(invalidated_by_the_peer, "MW-3 MEM-7"),
		STEPPED(not_invalidated, "MW-3 MEM-7 MEM-17"),
		STEPPED(the_mr_of_a_window, "MW-6 MW-8 MEM-7"),
		TABLE(the_qp_of_a_window, "MW-3 MW-10 OBJ-7"),
		STEPPED(destroyed, "MW-11 OBJ-7 MEM-12"),
		TABLE(fields_that_may_not_be, "WQE-5 WQE-6"),
		TABLE(windows_that_may_not_be, "MW-7"),
		TABLE(regions_that_may_not_be, "MW-6 MW-7"),
		STEPPED(of_an_mr_that_may_not_be_written, "MW-6"),
		STEPPED(commands_that_may_not_be, "MW-1 MR-9"),
		TABLE(without_the_feature, "FEA-2"),
		STEPPED(as_many_as_there_may_be, "LIM-1 OBJ-6"),
		STEPPED(in_its_turn, "MW-9 CQE-2"),
		STEPPED(on_uc, "MW-2 MW-3 QPS-12"),
		STEPPED(registration_on_uc, "FST-3 ORD-4"),
		STEPPED(not_on_ud, "WQE-6"),
		STEPPED(are_shown, "MW-1"),
		STEPPED(a_reset_ends_all, "RST-1"),
		STEPPED(under_loss, "MW-3 ORD-5"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
