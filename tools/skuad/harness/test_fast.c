// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Fast registration: REG_MR, and the end of what it has registered. */
#include "core/device.h"
#include "harness/lossy.h"
#include "nic/control.h"

#define PAGES		5
#define OFFSET		100	/* of the memory in its first page */
#define SIZE		(PAGES * 4096 - OFFSET - 50)
#define REGION_IOVA	0x5000000ull
#define PROBE_NS	(4096ull << 14)	/* by then a packet without an ACK is retransmitted */
#define LATER		65536	/* in the buffer: what pages that are registered do not hold */

struct block {
	struct skua_wqe_ctrl ctrl;
	struct skua_wqe_reg_mr reg;
};

static_assert(sizeof(struct block) == SKUA_WQE_BLOCK, "a REG_MR takes one block");

static int setup(void **state)
{
	*state = privileged_world(~0ull);
	return 0;
}

/* Entry @i of a list. */
static __le64 *entry(struct node *n, uint64_t l, uint32_t i)
{
	return (__le64 *)at(n, l) + i;
}

/* Pages at the start of the buffer in reverse: their list. */
static uint64_t reversed(struct node *n)
{
	uint64_t l = take(n, 4096);

	for (uint32_t i = 0; i < PAGES; i++)
		*entry(n, l, i) = htole64((n->buf + (PAGES - 1 - i) * 4096ull) | SKUA_PL_PRESENT);
	return l;
}

static struct block reg_of(struct node *n, uint32_t key)
{
	return (struct block){
		.ctrl = { .opcode = SKUA_WQE_REG_MR, .flags = SKUA_WQE_SIGNALED, .nblocks = 1,
			  .cookie = htole32(n->sq_pi) },
		.reg = { .key = htole32(key), .access = htole32(ALL_RIGHTS), .iova = htole64(REGION_IOVA),
			 .length = htole64(SIZE), .list = htole64(reversed(n)), .offset = htole32(OFFSET),
			 .npages = htole32(PAGES), .log_page = 12 },
	};
}

static void must_register(struct world *w, struct node *n, struct block k)
{
	post_block(n, &k);
	expect(w, n, SKUA_CQE_REG_MR, SKUA_CQE_SUCCESS);
}

static void invalidate(struct world *w, struct node *n, uint32_t key, uint8_t vendor)
{
	post(n, SKUA_WQE_LOCAL_INV, SKUA_WQE_SIGNALED, 0, 0, 0, 0, key);
	expect_vendor(w, n, SKUA_CQE_LOCAL_INV, vendor ? SKUA_CQE_LOC_QP_OP_ERR : SKUA_CQE_SUCCESS, vendor);
}

/* Byte @i of the region, in the pages of reversed(). */
static uint8_t *byte(struct node *n, uint32_t i)
{
	i += OFFSET;
	return (uint8_t *)at(n, n->buf) + (PAGES - 1 - i / 4096) * 4096 + i % 4096;
}

static bool same(struct node *n, const uint8_t *flat)
{
	for (uint32_t i = 0; i < SIZE; i++)
		if (*byte(n, i) != flat[i])
			return false;
	return true;
}

/* All of b's region with @key is written, and read again, by a. */
static void use(struct world *w, uint32_t key)
{
	struct node *a = &w->n[0], *b = &w->n[1];

	fill(a, SIZE, key);
	memset(at(b, b->buf), 0, (size_t)PAGES * 4096);
	post(a, SKUA_WQE_WRITE, 0, a->buf, SIZE, REGION_IOVA, key, 0);
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf + LATER, SIZE, REGION_IOVA, key, 0);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	assert_true(same(b, at(a, a->buf)));
	assert_memory_equal(at(a, a->buf), at(a, a->buf + LATER), SIZE);
	/* What is in front of the region and behind it is as it was. */
	assert_int_equal(*(byte(b, 0) - 1), 0);
	assert_int_equal(*(byte(b, SIZE - 1) + 1), 0);
}

/* a WRITEs in vain, and both QPs are connected again. */
static void no_use(struct world *w, uint32_t key)
{
	struct node *a = &w->n[0], *b = &w->n[1];

	post(a, SKUA_WQE_WRITE, 0, a->buf, 8, REGION_IOVA, key, 0);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_REM_ACCESS_ERR);
	reconnect(w, a, b);
	reconnect(w, b, a);
	while (poll_aeq(b))
		;
}

static void registered_and_freed(void **state)
{
	struct world *w = *state;
	struct node *b = &w->n[1];
	uint32_t first = must(w, b, free_mr_cmd(b, PAGES));

	/* It is free, with whatever key. */
	no_use(w, first);
	for (uint32_t i = 0; i < 300; i++) {
		uint32_t key = (first & ~0xffu) | (uint8_t)(first + 1 + i);

		must_register(w, b, reg_of(b, key));
		use(w, key);
		invalidate(w, b, key, SKUA_VENDOR_ERR_NONE);
		if (i > 1)
			continue;
		no_use(w, key);
		must_register(w, b, reg_of(b, key + 1));
		no_use(w, key);
		use(w, key + 1);
		invalidate(w, b, key + 1, SKUA_VENDOR_ERR_NONE);
	}
}

/* What was registered is gone: all is as the last REG_MR says. */
static void another_registration(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = must(w, b, free_mr_cmd(b, PAGES));
	struct block k;

	must_register(w, b, reg_of(b, key));
	invalidate(w, b, key, SKUA_VENDOR_ERR_NONE);
	k = reg_of(b, key);
	k.reg.access = htole32(SKUA_ACCESS_REMOTE_READ);
	k.reg.iova = htole64(~0xfffull);
	k.reg.length = htole64(4096);
	k.reg.npages = htole32(1);
	k.reg.offset = 0;
	*entry(b, le64toh(k.reg.list), 0) = htole64((b->buf + LATER) | SKUA_PL_PRESENT);
	must_register(w, b, k);
	memset(at(b, b->buf + LATER), 7, 4096);
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, 4096, ~0xfffull, key, 0);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	assert_memory_equal(at(a, a->buf), at(b, b->buf + LATER), 4096);
	no_use(w, key);
}

/* Pages of 64 KiB, and a list as long as there may be. */
static void the_largest_list(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_device_caps caps = *(struct skua_device_caps *)query(w, b,
		(struct skua_cmd)CMD(SKUA_CMD_QUERY_DEVICE), sizeof(caps));
	uint32_t n = le32toh(caps.max_fast_pages), key = must(w, b, free_mr_cmd(b, n));
	uint64_t l = take(b, n * 8);
	struct block k = reg_of(b, key);

	assert_true(n >= 1024);
	assert_int_equal(command(w, b, &(struct skua_cmd[]){ free_mr_cmd(b, n + 1) }[0]), SKUA_CMD_BAD_PARAM);
	for (uint32_t i = 0; i < n; i++)
		*entry(b, l, i) = htole64(((b->buf + 0xffff) & ~0xffffull) | SKUA_PL_PRESENT);
	k.reg.list = htole64(l);
	k.reg.log_page = 16;
	k.reg.offset = 0;
	k.reg.npages = htole32(n);
	k.reg.length = htole64(n * 65536ull);
	must_register(w, b, k);
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, 64, REGION_IOVA + n * 65536ull - 64, key, 0);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, 64, REGION_IOVA + n * 65536ull - 63, key, 0);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_REM_ACCESS_ERR);
}

/* Registration takes nothing, and cannot fail for want of it. */
static void nothing_is_allocated(void **state)
{
	struct world *w = *state;
	struct node *b = &w->n[1];
	uint64_t before = b->dev->pages_used;
	uint32_t key = must(w, b, free_mr_cmd(b, 77));

	assert_int_equal(b->dev->pages_used, before + 77);
	b->dev->max_pages = b->dev->pages_used;
	must_register(w, b, reg_of(b, key));
	assert_int_equal(b->dev->pages_used, before + 77);
	assert_int_equal(command(w, b, &(struct skua_cmd[]){ free_mr_cmd(b, 1) }[0]), SKUA_CMD_NO_RESOURCE);
	must(w, b, object_cmd(SKUA_CMD_DESTROY_MR, key));
	assert_int_equal(b->dev->pages_used, before);
	must(w, b, free_mr_cmd(b, 77));
}

/* One that was made with pages has room for as many. */
static void made_with_pages(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cmd cmd = create_mr_cmd(b);
	struct block k;
	uint32_t key;

	cmd.create_mr.type = SKUA_MR_FAST;
	cmd.create_mr.length = htole64(PAGES * 4096ull);
	cmd.create_mr.pages = list(b->buf, PAGES * 4096ull);
	key = must(w, b, cmd);
	fill(a, 64, 5);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 64, b->buf + 4096, key, 0);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	assert_memory_equal(at(b, b->buf + 4096), at(a, a->buf), 64);
	invalidate(w, b, key, SKUA_VENDOR_ERR_NONE);
	must_register(w, b, reg_of(b, key));
	use(w, key);
	invalidate(w, b, key, SKUA_VENDOR_ERR_NONE);
	k = reg_of(b, key);
	k.reg.length = htole64(SIZE + 4096);
	k.reg.npages = htole32(PAGES + 1);
	post_block(b, &k);
	expect_vendor(w, b, SKUA_CQE_REG_MR, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_BOUNDS);
}

/* It waits for nothing before it, what is behind it finds the region; with FENCE it waits for READs. */
static void in_its_turn(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = must(w, a, free_mr_cmd(a, PAGES)), ours = a->key;
	uint64_t before = STAT(w, a, rdma_tx_packets);
	struct block k = reg_of(a, key);

	must(w, b, port_cmd(SKUA_PORT_SET_FLAGS, 0));
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, 64, b->buf, b->key, 0);
	post_block(a, &k);
	a->key = key;
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, REGION_IOVA, 64, b->buf + 4096, b->key, 0);
	settle(w);
	assert_int_equal(STAT(w, a, rdma_tx_packets) - before, 2);
	expect_none(w, a);
	must(w, b, port_cmd(SKUA_PORT_SET_FLAGS, SKUA_PORT_F_ENABLE | SKUA_PORT_F_ROCE));
	pass(w, 4096ull << 14);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	expect(w, a, SKUA_CQE_REG_MR, SKUA_CQE_SUCCESS);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	invalidate(w, a, key, SKUA_VENDOR_ERR_NONE);

	must(w, b, port_cmd(SKUA_PORT_SET_FLAGS, 0));
	a->key = ours;
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, 64, b->buf, b->key, 0);
	k.ctrl.flags |= SKUA_WQE_FENCE;
	/* The list is read when its turn comes. */
	*entry(a, le64toh(k.reg.list), 0) = 0;
	post_block(a, &k);
	settle(w);
	*entry(a, le64toh(k.reg.list), 0) = htole64(a->buf | SKUA_PL_PRESENT);
	must(w, b, port_cmd(SKUA_PORT_SET_FLAGS, SKUA_PORT_F_ENABLE | SKUA_PORT_F_ROCE));
	pass(w, 4096ull << 14);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	expect(w, a, SKUA_CQE_REG_MR, SKUA_CQE_SUCCESS);
}

/* What is wrong with it waits until all before it have completed. */
static void its_error_is_in_order(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct block k = reg_of(a, must(w, a, free_mr_cmd(a, PAGES)) ^ 0x100);

	must(w, b, port_cmd(SKUA_PORT_SET_FLAGS, 0));
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 64, b->buf, b->key, 0);
	post_block(a, &k);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 64, b->buf, b->key, 0);
	settle(w);
	expect_none(w, a);
	must(w, b, port_cmd(SKUA_PORT_SET_FLAGS, SKUA_PORT_F_ENABLE | SKUA_PORT_F_ROCE));
	pass(w, 4096ull << 14);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	expect_vendor(w, a, SKUA_CQE_REG_MR, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_KEY_UNKNOWN);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_WR_FLUSH_ERR);
}

/* An access finds out that a page cannot be reached. */
static void pages_out_of_reach(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];
	uint32_t key = must(w, a, free_mr_cmd(a, PAGES));
	struct block k = reg_of(a, key);

	*entry(a, le64toh(k.reg.list), 1) = htole64(0xdead0000 | SKUA_PL_PRESENT);
	must_register(w, a, k);
	a->key = key;
	post(a, SKUA_WQE_SEND, 0, REGION_IOVA, SIZE, 0, 0, 0);
	expect_vendor(w, a, SKUA_CQE_SEND, SKUA_CQE_LOC_PROT_ERR, SKUA_VENDOR_ERR_UNREACHABLE);
}

static uint32_t foreign_key(struct world *w, struct node *n)
{
	struct skua_cmd pd = CMD(SKUA_CMD_CREATE_PD), cmd = free_mr_cmd(n, PAGES);

	cmd.create_mr.pdn = htole32(must(w, n, pd));
	return must(w, n, cmd);
}

static uint32_t destroyed_key(struct world *w, struct node *n)
{
	uint32_t key = must(w, n, free_mr_cmd(n, PAGES));

	must(w, n, object_cmd(SKUA_CMD_DESTROY_MR, key));
	return key;
}

static uint32_t valid_key(struct world *w, struct node *n)
{
	uint32_t key = must(w, n, free_mr_cmd(n, PAGES));

	must_register(w, n, reg_of(n, key));
	return key;
}

/* A REG_MR that is no good, for which the region stays free. */
#define BAD(vendor, ...) do {								\
	struct world *w = privileged_world(~0ull);					\
	struct node *a = &w->n[0];							\
	uint32_t key = must(w, a, free_mr_cmd(a, PAGES));				\
	struct block k = reg_of(a, key);						\
	struct skua_cqe *cqe;								\
											\
	__VA_ARGS__;									\
	post_block(a, &k);								\
	cqe = await_cqe(w, a);								\
	if (cqe->opcode != SKUA_CQE_REG_MR || cqe->status != SKUA_CQE_LOC_QP_OP_ERR ||	\
	    cqe->vendor_err != SKUA_VENDOR_ERR_##vendor)				\
		fail_msg("%s: status %d, vendor_err %d", #__VA_ARGS__, cqe->status,	\
			 cqe->vendor_err);						\
	assert_int_equal(qp_state(w, a, a->qpn), SKUA_QPS_ERR);				\
	reconnect(w, a, &w->n[1]);							\
	a->key = key;									\
	post(a, SKUA_WQE_SEND, 0, REGION_IOVA, 8, 0, 0, 0);				\
	expect_vendor(w, a, SKUA_CQE_SEND, SKUA_CQE_LOC_PROT_ERR, SKUA_VENDOR_ERR_KEY_STALE); \
	world_destroy(w);								\
} while (0)

static void fields_that_may_not_be(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(((struct block *)NULL)->reg.rsvd); i++)
		BAD(WQE_FORMAT, k.reg.rsvd[i] = 1);
	BAD(WQE_FORMAT, k.ctrl.num_sge = 1);
	BAD(WQE_FORMAT, k.ctrl.length = htole32(1));
	BAD(WQE_FORMAT, k.ctrl.inv_key = htole32(key));
	BAD(WQE_FORMAT, k.ctrl.flags = SKUA_WQE_INLINE);
	BAD(WQE_FORMAT, k.reg.access = htole32(SKUA_ACCESS_MASK + 1));
	BAD(WQE_FORMAT, k.reg.access = htole32(SKUA_ACCESS_REMOTE_WRITE));
	BAD(WQE_FORMAT, k.reg.access = htole32(SKUA_ACCESS_REMOTE_ATOMIC));
	BAD(WQE_FORMAT, k.reg.length = 0);
	BAD(WQE_FORMAT, k.reg.length = 0, k.reg.npages = 0);
	BAD(WQE_FORMAT, k.reg.iova = htole64(-(uint64_t)SIZE + 1));
	BAD(WQE_FORMAT, k.reg.length = htole64(LIMIT_MR_SIZE + 1), k.reg.log_page = 30,
	    k.reg.npages = htole32((LIMIT_MR_SIZE >> 30) + 1));
	BAD(WQE_FORMAT, k.reg.length = htole64(PAGES * 4096 - OFFSET + 1));
	BAD(WQE_FORMAT, k.reg.npages = htole32(PAGES - 1));
	BAD(WQE_FORMAT, k.reg.npages = htole32(PAGES + 1));
	BAD(WQE_FORMAT, k.reg.offset = htole32(4096));
	BAD(WQE_FORMAT, k.reg.log_page = 11);
	BAD(WQE_FORMAT, k.reg.log_page = 31, k.reg.npages = htole32(1));
	BAD(WQE_FORMAT, k.reg.log_page = 0);
	BAD(WQE_FORMAT, k.reg.list = htole64(le64toh(k.reg.list) + 4));
}

static void keys_that_may_not_be(void **state)
{
	(void)state;
	BAD(KEY_UNKNOWN, k.reg.key ^= htole32(0x100));
	BAD(KEY_UNKNOWN, k.reg.key = htole32(RESERVED_LKEY));
	BAD(KEY_UNKNOWN, k.reg.key = htole32(destroyed_key(w, a)));
	BAD(PD, k.reg.key = htole32(foreign_key(w, a)));
	BAD(KEY_TYPE, k.reg.key = htole32(a->key));
	BAD(KEY_STATE, k.reg.key = htole32(valid_key(w, a)));
	BAD(KEY_STATE, k.reg.key = htole32(valid_key(w, a) ^ 1));
	BAD(BOUNDS, k.reg.npages = htole32(PAGES + 1), k.reg.length = htole64(SIZE + 4096));
	/* Of several, the first in the order of the checks. */
	BAD(KEY_UNKNOWN, k.reg.key = htole32(destroyed_key(w, a)), k.reg.npages = htole32(PAGES + 1),
	    k.reg.length = htole64(SIZE + 4096), k.reg.list = htole64(0xdead0000));
	BAD(PD, k.reg.key = htole32(foreign_key(w, a)), k.reg.list = htole64(0xdead0000));
	BAD(KEY_STATE, k.reg.key = htole32(valid_key(w, a)), k.reg.npages = htole32(PAGES + 1),
	    k.reg.length = htole64(SIZE + 4096));
	BAD(BOUNDS, k.reg.npages = htole32(PAGES + 1), k.reg.length = htole64(SIZE + 4096),
	    k.reg.list = htole64(0xdead0000));
}

static void lists_that_may_not_be(void **state)
{
	(void)state;
	BAD(UNREACHABLE, k.reg.list = htole64(0xdead0000));
	/* Its last entry is behind the end of memory. */
	BAD(UNREACHABLE, k.reg.list = htole64(EXTRA + EXTRA_SIZE - (PAGES - 1) * 8));
	BAD(WQE_FORMAT, *entry(a, le64toh(k.reg.list), 0) &= ~htole64(SKUA_PL_PRESENT));
	BAD(WQE_FORMAT, *entry(a, le64toh(k.reg.list), PAGES - 1) |= htole64(2));
	BAD(WQE_FORMAT, k.reg.log_page = 13, k.reg.npages = htole32(3), k.reg.length = htole64(3 * 8192 - OFFSET),
	    *entry(a, le64toh(k.reg.list), 2) = htole64((a->buf + 4096) | SKUA_PL_PRESENT),
	    *entry(a, le64toh(k.reg.list), 1) = htole64((a->buf & ~8191ull) | SKUA_PL_PRESENT),
	    *entry(a, le64toh(k.reg.list), 0) = htole64((a->buf & ~8191ull) | SKUA_PL_PRESENT));
}

/* A registration that failed leaves one that is valid alone. */
static void a_valid_region_is_left_alone(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = valid_key(w, b);
	struct block k = reg_of(b, key ^ 1);

	*entry(b, le64toh(k.reg.list), 0) = htole64((b->buf + LATER) | SKUA_PL_PRESENT);
	post_block(b, &k);
	expect_vendor(w, b, SKUA_CQE_REG_MR, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_KEY_STATE);
	reconnect(w, a, b);
	reconnect(w, b, a);
	use(w, key);
}

/* Its list has DMA addresses: who is not privileged could name any. */
static void without_privilege(void **state)
{
	struct world *w = world_create(false);
	struct node *a = &w->n[0];
	struct block k = reg_of(a, must(w, a, free_mr_cmd(a, PAGES)));

	(void)state;
	post_block(a, &k);
	expect_vendor(w, a, SKUA_CQE_REG_MR, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_PRIVILEGE);
	/* What there is to know of keys, it does not learn. */
	reconnect(w, a, &w->n[1]);
	k.reg.key ^= htole32(0x100);
	post_block(a, &k);
	expect_vendor(w, a, SKUA_CQE_REG_MR, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_PRIVILEGE);
	world_destroy(w);
}

static void without_the_feature(void **state)
{
	static const unsigned int missing[] = { SKUA_F_FAST_REG, SKUA_F_INVALIDATE };

	(void)state;
	for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++) {
		struct world *w = privileged_world(~(1ull << missing[i]));
		struct node *a = &w->n[0];
		struct skua_cmd cmd = free_mr_cmd(a, PAGES);
		struct block k = reg_of(a, a->key);

		assert_int_equal(command(w, a, &cmd), SKUA_CMD_BAD_PARAM);
		post_block(a, &k);
		expect_vendor(w, a, SKUA_CQE_REG_MR, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_OPCODE);
		if (missing[i] == SKUA_F_FAST_REG)
			assert_int_equal(((struct skua_device_caps *)query(w, a,
				(struct skua_cmd)CMD(SKUA_CMD_QUERY_DEVICE),
				sizeof(struct skua_device_caps)))->max_fast_pages, 0);
		world_destroy(w);
	}
}

static void free_regions_that_may_not_be(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];

#define REFUSED(...) do {								\
	struct skua_cmd cmd = free_mr_cmd(a, PAGES);					\
											\
	__VA_ARGS__;									\
	assert_int_equal(command(w, a, &cmd), SKUA_CMD_BAD_PARAM);			\
} while (0)
	REFUSED(cmd.create_mr.type = SKUA_MR_REGULAR);
	REFUSED(cmd.create_mr.type = SKUA_MR_PHYS);
	REFUSED(cmd.create_mr.access = htole32(SKUA_ACCESS_LOCAL_WRITE));
	REFUSED(cmd.create_mr.iova = htole64(1));
	REFUSED(cmd.create_mr.length = htole64(4096), cmd.create_mr.pages = list(a->buf, 4096));
	REFUSED(cmd.create_mr.length = htole64(4096));
	REFUSED(cmd.create_mr.pages = list(a->buf, 4096));
	REFUSED(cmd.create_mr.capacity = htole32(LIMIT_FAST_PAGES + 1));
	REFUSED(cmd.create_mr.capacity = htole32(~0u));
	REFUSED(cmd.create_mr.rsvd0[2] = 1);
#undef REFUSED
}

/* By its owner and by its peer, in whatever order, as long as the key is that of the last registration. */
static void invalidated_twice(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = must(w, b, free_mr_cmd(b, PAGES));

	invalidate(w, b, key, SKUA_VENDOR_ERR_NONE);
	must_register(w, b, reg_of(b, key));
	for (uint32_t i = 0; i < 6; i++) {
		if (i & 1) {
			invalidate(w, b, key, SKUA_VENDOR_ERR_NONE);
			continue;
		}
		post_recv(b, b->buf, 8);
		post(a, SKUA_WQE_SEND_INV, SKUA_WQE_SIGNALED, 0, 0, 0, 0, key);
		expect(w, b, SKUA_CQE_RECV, SKUA_CQE_SUCCESS);
		expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	}
	must_register(w, b, reg_of(b, key ^ 1));
	invalidate(w, b, key, SKUA_VENDOR_ERR_KEY_STALE);
	reconnect(w, a, b);
	reconnect(w, b, a);
	use(w, key ^ 1);
}

/* A region that had no remote right is none of the peer's business, valid or free. */
static void not_the_peers(void **state)
{
	static const uint32_t rights[] = { 0, SKUA_ACCESS_LOCAL_WRITE, SKUA_ACCESS_REMOTE_READ };

	(void)state;
	for (int round = 0; round < 7; round++) {
		struct world *w = privileged_world(~0ull);
		struct node *a = &w->n[0], *b = &w->n[1];
		uint32_t key = must(w, b, free_mr_cmd(b, PAGES));
		struct block k = reg_of(b, key);
		bool local = round < 5;

		/* 6: it was never registered. */
		if (round < 6) {
			k.reg.access = htole32(rights[round / 2]);
			must_register(w, b, k);
			if (round & 1)
				invalidate(w, b, key, SKUA_VENDOR_ERR_NONE);
		}
		local = round < 4 || round == 6;
		post_recv(b, b->buf, 8);
		post(a, SKUA_WQE_SEND_INV, SKUA_WQE_SIGNALED, 0, 0, 0, 0, key);
		if (local)
			expect_vendor(w, b, SKUA_CQE_RECV, SKUA_CQE_REM_INV_REQ_ERR, SKUA_VENDOR_ERR_RIGHTS);
		else
			expect(w, b, SKUA_CQE_RECV, SKUA_CQE_SUCCESS);
		/* It is as it was. */
		reconnect(w, b, a);
		b->key = key;
		post(b, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, REGION_IOVA, 8, 0, 0, 0);
		if (round & 1 || !local || round == 6)
			expect_vendor(w, b, SKUA_CQE_SEND, SKUA_CQE_LOC_PROT_ERR, SKUA_VENDOR_ERR_KEY_STALE);
		else
			settle(w);
		expect_none(w, b);
		world_destroy(w);
	}
}

/* The driver does not know which variant a region has; the list is not read any more. */
static void destroyed(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];
	uint32_t key = must(w, a, free_mr_cmd(a, PAGES));
	struct block k;

	must_register(w, a, reg_of(a, key ^ 0x55));
	must(w, a, object_cmd(SKUA_CMD_DESTROY_MR, key));
	a->key = key ^ 0x55;
	post(a, SKUA_WQE_SEND, 0, REGION_IOVA, 8, 0, 0, 0);
	expect_vendor(w, a, SKUA_CQE_SEND, SKUA_CQE_LOC_PROT_ERR, SKUA_VENDOR_ERR_KEY_UNKNOWN);
	reconnect(w, a, &w->n[1]);
	k = reg_of(a, key);
	k.reg.list = htole64(0xdead0000);
	post_block(a, &k);
	expect_vendor(w, a, SKUA_CQE_REG_MR, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_KEY_UNKNOWN);
}

/* Of the longest list, 16 of which go into more than one turn. */
static uint64_t long_list;

static void make_long_lists(struct world *w, struct node *a, uint32_t *keys)
{
	long_list = take(a, LIMIT_FAST_PAGES * 8);
	for (uint32_t i = 0; i < LIMIT_FAST_PAGES; i++)
		*entry(a, long_list, i) = htole64(a->buf | SKUA_PL_PRESENT);
	for (int i = 0; i < 16; i++)
		keys[i] = must(w, a, free_mr_cmd(a, LIMIT_FAST_PAGES));
}

static void post_long_lists(struct node *a, const uint32_t *keys)
{
	for (int i = 0; i < 16; i++) {
		struct block k = reg_of(a, keys[i]);

		k.reg.list = htole64(long_list);
		k.reg.offset = 0;
		k.reg.npages = htole32(LIMIT_FAST_PAGES);
		k.reg.length = htole64(LIMIT_FAST_PAGES * 4096ull);
		post_block(a, &k);
	}
}

/* @n WQEs complete, a few in each turn. */
static void must_take_turns(struct node *a, unsigned int n)
{
	for (unsigned int done = 0, turns = 0, before = 0; done < n; before = done) {
		engine_step(a->engine);
		while (poll_cq(a))
			done++;
		assert_true(done - before <= 4);
		assert_true(turns++ < 1000);
	}
}

/* A long list costs its QP as much of the turn as payload does: 64 KiB of lists a turn. */
static void lists_count_in_a_turn(void **state)
{
	struct world *w = *state;
	uint32_t keys[16];

	make_long_lists(w, &w->n[0], keys);
	post_long_lists(&w->n[0], keys);
	must_take_turns(&w->n[0], 16);
}

/* A region that was made with its memory, of many pages that are all the same one, and is free since. */
static uint32_t large_region(struct world *w, struct node *n, uint32_t npages)
{
	struct skua_cmd cmd = create_mr_cmd(n);
	uint64_t leaf = take(n, 4096), tables = take(n, 4096);
	uint32_t key;

	for (uint32_t i = 0; i < SKUA_PL_PER_PAGE; i++) {
		*entry(n, leaf, i) = htole64(n->buf | SKUA_PL_PRESENT);
		*entry(n, tables, i) = htole64(leaf | SKUA_PL_PRESENT);
	}
	cmd.create_mr.type = SKUA_MR_FAST;
	cmd.create_mr.length = htole64(npages * 4096ull);
	cmd.create_mr.pages = (struct skua_pagelist){ .npages = htole32(npages), .level = 2, .log_page = 12,
						      .addr = { htole64(tables | SKUA_PL_PRESENT) } };
	key = must(w, n, cmd);
	invalidate(w, n, key, SKUA_VENDOR_ERR_NONE);
	return key;
}

/* Its capacity is larger than a list may be. */
static void a_list_is_longer_than_the_longest(void **state)
{
	static const struct { uint8_t log_page; uint32_t npages; uint8_t vendor; } lists[] = {
		{ 12, LIMIT_FAST_PAGES, SKUA_VENDOR_ERR_NONE }, { 12, LIMIT_FAST_PAGES + 1, SKUA_VENDOR_ERR_BOUNDS },
		{ 0, LIMIT_FAST_PIECES + 1, SKUA_VENDOR_ERR_BOUNDS }, { 0, 65536, SKUA_VENDOR_ERR_BOUNDS },
	};
	struct world *w = *state;
	struct node *a = &w->n[0];
	uint32_t key = large_region(w, a, 131072);
	uint64_t l = take(a, 65536 * sizeof(struct skua_piece));

	for (uint32_t i = 0; i < LIMIT_FAST_PAGES + 1; i++)
		*entry(a, l, i) = htole64(a->buf | SKUA_PL_PRESENT);
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		struct block k = reg_of(a, key);

		if (!lists[i].log_page)
			for (uint32_t j = 0; j < lists[i].npages; j++)
				((struct skua_piece *)at(a, l))[j] = (struct skua_piece){ htole64(a->buf), htole32(4096), 0 };
		k.reg.list = htole64(l);
		k.reg.offset = 0;
		k.reg.log_page = lists[i].log_page;
		k.reg.npages = htole32(lists[i].npages);
		k.reg.length = htole64(lists[i].npages * 4096ull);
		post_block(a, &k);
		if (!lists[i].vendor) {
			expect(w, a, SKUA_CQE_REG_MR, SKUA_CQE_SUCCESS);
			invalidate(w, a, key, SKUA_VENDOR_ERR_NONE);
			continue;
		}
		expect_vendor(w, a, SKUA_CQE_REG_MR, SKUA_CQE_LOC_QP_OP_ERR, lists[i].vendor);
		reconnect(w, a, &w->n[1]);
	}
}

/* What a program says of a list is not believed: a REG_MR that is refused gives the turn nothing back. */
static void a_list_that_is_not_read_has_no_price(void **state)
{
	static const uint32_t lengths[] = { 0x0c000000, 0x14000000, 0xffffffff };

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct world *w = privileged_world(~0ull);
		struct node *a = &w->n[0];
		struct queues good = new_queues(a), bad;
		struct block k = reg_of(a, must(w, a, free_mr_cmd(a, PAGES)));
		uint32_t keys[16];

		a->qpn = must(w, a, create_qp_cmd(a));
		reconnect(w, a, &w->n[1]);
		make_long_lists(w, a, keys);
		bad = use_queues(a, good);
		post_long_lists(a, keys);
		use_queues(a, bad);
		k.reg.npages = htole32(lengths[i / 2]);
		k.reg.log_page = i & 1 ? 12 : 0;
		k.reg.offset = 0;
		k.reg.length = htole64(i & 1 ? lengths[i / 2] * 4096ull : 4096);
		post_block(a, &k);
		must_take_turns(a, 17);
		world_destroy(w);
	}
}

/* Packets are lost and sent again: none of them writes what the peer has invalidated behind them. */
static void under_loss(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = must(w, b, free_mr_cmd(b, PAGES));
	struct block k = reg_of(b, key);
	uint8_t free_pages[PAGES * 4096];

	IMPAIR(a, "seed=1", "drop=10%,dir=out", "duplicate=10%,dir=out");
	IMPAIR(b, "seed=2", "drop=10%,dir=out", "duplicate=10%,dir=out");
	memset(free_pages, 0x99, sizeof(free_pages));
	for (uint32_t i = 0; i < 300; i++) {
		struct skua_cqe *cqe;

		key = (key & ~0xffu) | (uint8_t)i;
		k.reg.key = htole32(key);
		post_recv(b, b->buf + LATER, 8);
		post_block(b, &k);
		assert_int_equal(await_success(w, b)->opcode, SKUA_CQE_REG_MR);
		fill(a, SIZE, i);
		post(a, SKUA_WQE_WRITE, 0, a->buf, SIZE, REGION_IOVA, key, 0);
		post(a, SKUA_WQE_SEND_INV, SKUA_WQE_SIGNALED, 0, 0, 0, 0, key);
		cqe = await_success(w, b);
		assert_true(cqe->flags & SKUA_CQE_WITH_INV);
		assert_int_equal(le32toh(cqe->inv_key), key);
		assert_true(same(b, at(a, a->buf)));
		memcpy(at(b, b->buf), free_pages, sizeof(free_pages));
		await_success(w, a);
		pass(w, 1000000);
		assert_memory_equal(at(b, b->buf), free_pages, sizeof(free_pages));
	}
	assert_true(STAT(w, a, retransmits) > 100);
}

/*
 * Each transmission reads the payload. When the ACK of a SEND is lost, and the peer invalidates the key of its payload
 * by the answer, the retransmitted SEND fails. The initiator of iSER takes the answer for the end of the SEND.
 */
static void invalidated_before_the_ack(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = must(w, a, free_mr_cmd(a, PAGES));

	a->key = key;
	must_register(w, a, reg_of(a, key));
	post_recv(a, a->buf + LATER, 8);
	post_recv(b, b->buf, 8);
	IMPAIR(a, "drop=every:1,opcode=0x11,dir=in");
	post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, REGION_IOVA, 8, 0, 0, 0);
	expect(w, b, SKUA_CQE_RECV, SKUA_CQE_SUCCESS);
	post(b, SKUA_WQE_SEND_INV, SKUA_WQE_SIGNALED, 0, 0, 0, 0, key);
	expect(w, a, SKUA_CQE_RECV, SKUA_CQE_SUCCESS);
	expect(w, b, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	pass(w, PROBE_NS);
	expect_vendor(w, a, SKUA_CQE_SEND, SKUA_CQE_LOC_PROT_ERR, SKUA_VENDOR_ERR_KEY_STALE);
	assert_int_equal(qp_state(w, a, a->qpn), SKUA_QPS_ERR);
	post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, REGION_IOVA, 8, 0, 0, 0);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_WR_FLUSH_ERR);
	/* Both QPs can be connected again. */
	IMPAIR(a, NULL);
	reconnect(w, a, b);
	reconnect(w, b, a);
	must_register(w, a, reg_of(a, key));
	post_recv(b, b->buf, 8);
	post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, REGION_IOVA, 8, 0, 0, 0);
	expect(w, b, SKUA_CQE_RECV, SKUA_CQE_SUCCESS);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
}

#define TEST(f, rules)	{ rules ": " #f, f, setup, teardown, NULL }
#define TABLE(f, rules)	{ rules ": " #f, f, NULL, NULL, NULL }

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(registered_and_freed, "FST-1 FST-3 MR-5 OBJ-3 MEM-2"),
		TEST(another_registration, "FST-3 FST-5 MEM-1"),
		TEST(the_largest_list, "FST-1 FST-5 LIM-1 LIM-4"),
		TEST(nothing_is_allocated, "FST-1 FST-4 PL-10"),
		TEST(made_with_pages, "FST-2"),
		TEST(in_its_turn, "ORD-9 ORD-3 FST-5"),
		TEST(its_error_is_in_order, "ORD-9 CQE-2"),
		TEST(pages_out_of_reach, "FST-6"),
		TABLE(fields_that_may_not_be, "WQE-5 WQE-6 FST-5"),
		TABLE(keys_that_may_not_be, "FST-7"),
		TABLE(lists_that_may_not_be, "FST-5 FST-7"),
		TEST(a_valid_region_is_left_alone, "FST-7"),
		TABLE(without_privilege, "FST-3 FST-7 SEC-1"),
		TABLE(without_the_feature, "FEA-2"),
		TEST(free_regions_that_may_not_be, "FST-1 LIM-1"),
		TEST(invalidated_twice, "MEM-7"),
		TABLE(not_the_peers, "MEM-17"),
		TEST(destroyed, "MR-6 FST-7 MEM-12"),
		TEST(lists_count_in_a_turn, "SEC-8"),
		TEST(a_list_is_longer_than_the_longest, "FST-2 FST-7 FST-8"),
		TABLE(a_list_that_is_not_read_has_no_price, "SEC-8"),
		TEST(under_loss, "ORD-5 MEM-12"),
		TEST(invalidated_before_the_ack, "MEM-9 ERR-1"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
