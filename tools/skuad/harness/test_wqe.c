// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* WQEs that are wrong, one fault each: status and vendor_err of the CQE, and a QP in ERR. */
#include "harness/harness.h"

struct block {
	struct skua_wqe_ctrl ctrl;
	union {
		struct {
			struct skua_wqe_rdma rdma;
			struct skua_sge rdma_sge[2];
		};
		struct {
			struct skua_wqe_atomic atomic;
			struct skua_sge atomic_sge;
		};
		struct skua_sge sge[3];
		uint8_t bytes[48];
	};
};

static struct block good_write(struct node *a, struct node *b)
{
	struct block block = {
		.ctrl = { .opcode = SKUA_WQE_WRITE, .nblocks = 1, .num_sge = 1, .cookie = htole32(5) },
		.rdma = { htole64(b->buf), htole32(b->key), 0 },
		.rdma_sge[0] = { htole64(a->buf), htole32(64), htole32(a->key) },
	};

	return block;
}

static struct block good_send(struct node *a)
{
	struct block block = {
		.ctrl = { .opcode = SKUA_WQE_SEND, .nblocks = 1, .num_sge = 1, .cookie = htole32(5) },
		.sge[0] = { htole64(a->buf), htole32(64), htole32(a->key) },
	};

	return block;
}

static struct block good_fetch_add(struct node *a, struct node *b)
{
	struct block block = {
		.ctrl = { .opcode = SKUA_WQE_FETCH_ADD, .nblocks = 1, .num_sge = 1, .cookie = htole32(5) },
		.atomic = { .raddr = htole64(b->buf), .rkey = htole32(b->key), .swap_add = htole64(1) },
		.atomic_sge = { htole64(a->buf), htole32(8), htole32(a->key) },
	};

	return block;
}

/* Post one bad WQE in a world of its own. */
#define BAD(...)	BAD_IN(world_create(false), __VA_ARGS__)
#define BAD_IN(...)	BAD_WITH(cqe->opcode, __VA_ARGS__)
#define BAD_WITH(opcode_, world_, base, status_, vendor, ...) do {	\
	struct world *w = world_;					\
	struct node *a = &w->n[0], *b = &w->n[1];			\
	struct block block_ = base, *k = &block_;			\
	struct skua_cqe *cqe;						\
									\
	post_recv(b, b->buf, BUF_SIZE);					\
	__VA_ARGS__;							\
	post_block(a, k);						\
	cqe = await_cqe(w, a);						\
	if (cqe->status != (status_) || cqe->vendor_err != (vendor))	\
		fail_msg("%s: status %d, vendor_err %d", #__VA_ARGS__, cqe->status, cqe->vendor_err); \
	assert_int_equal(cqe->opcode, opcode_);				\
	assert_int_equal(le32toh(cqe->cookie), 5);			\
	assert_int_equal(qp_state(w, a, a->qpn), SKUA_QPS_ERR);		\
	world_destroy(w);						\
} while (0)

static void formats(void **state)
{
	(void)state;
	BAD(good_write(a, b), SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_FORMAT, k->ctrl.nblocks = 0);
	BAD(good_write(a, b), SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_FORMAT, k->ctrl.nblocks = 17);
	BAD(good_write(a, b), SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_FORMAT, k->ctrl.nblocks = 2);
	BAD(good_write(a, b), SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_FORMAT, k->ctrl.flags = 0x20);
	BAD(good_write(a, b), SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_FORMAT, k->ctrl.flags = 0x40);
	BAD(good_write(a, b), SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_FORMAT, k->ctrl.flags = 0x80);
	BAD(good_write(a, b), SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_FORMAT, k->rdma.flush = 1);
	BAD(good_write(a, b), SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_FORMAT, k->ctrl.length = 1);
	BAD(good_write(a, b), SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_FORMAT, k->ctrl.num_sge = 3);
	BAD(good_write(a, b), SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_FORMAT, k->ctrl.imm_data = 1);
	BAD(good_send(a), SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_FORMAT,
	    k->ctrl.flags = SKUA_WQE_INLINE, k->ctrl.length = htole32(8));	/* and an SGE */
	BAD(good_write(a, b), SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_FORMAT,
	    k->ctrl.opcode = SKUA_WQE_READ, k->ctrl.flags = SKUA_WQE_INLINE, k->ctrl.num_sge = 0,
	    k->ctrl.length = htole32(8));
	BAD(good_send(a), SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_FORMAT, k->ctrl.opcode = SKUA_WQE_NOP);
	BAD(good_fetch_add(a, b), SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_FORMAT, k->atomic.rsvd = 1);
	BAD(good_fetch_add(a, b), SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_FORMAT, k->atomic.compare = 1);
}

struct masked_block {
	struct skua_wqe_ctrl ctrl;
	struct skua_wqe_masked_atomic atomic;
	struct skua_sge sge[4];
};

/* A bad masked atomic in a world of its own, which has no features of @without. */
#define BAD_MASKED(opcode_, without, status, vendor, ...) do {		\
	struct world *w = world_create_with(false, ~(without));		\
	struct node *a = &w->n[0], *b = &w->n[1];			\
	struct masked_block block_ = {					\
		.ctrl = { .opcode = SKUA_WQE_MASKED_##opcode_, .nblocks = 2, .num_sge = 1 }, \
		.atomic = { .raddr = htole64(b->buf), .rkey = htole32(b->key) }, \
		.sge = { { htole64(a->buf), htole32(8), htole32(a->key) },	\
			 { htole64(a->buf), htole32(8), htole32(a->key) } } }, *k = &block_; \
									\
	__VA_ARGS__;							\
	post_blocks(a, k, 2);						\
	expect_vendor(w, a, SKUA_CQE_MASKED_##opcode_, SKUA_CQE_##status, SKUA_VENDOR_ERR_##vendor); \
	assert_int_equal(qp_state(w, a, a->qpn), SKUA_QPS_ERR);		\
	world_destroy(w);						\
} while (0)

static void masked_atomics(void **state)
{
	(void)state;
	BAD_MASKED(CMP_SWAP, 0ull, LOC_QP_OP_ERR, WQE_FORMAT, k->atomic.rsvd = htole32(1));
	BAD_MASKED(CMP_SWAP, 0ull, LOC_QP_OP_ERR, WQE_FORMAT, k->ctrl.imm_data = 1);
	BAD_MASKED(CMP_SWAP, 0ull, LOC_QP_OP_ERR, WQE_FORMAT, k->ctrl.nblocks = 1);	/* no room for the SGE */
	BAD_MASKED(CMP_SWAP, 0ull, LOC_QP_OP_ERR, WQE_FORMAT, k->ctrl.flags = SKUA_WQE_INLINE, k->ctrl.num_sge = 0,
		   k->ctrl.length = htole32(8));
	BAD_MASKED(FETCH_ADD, 0ull, LOC_QP_OP_ERR, WQE_FORMAT, k->atomic.compare = htole64(1));
	BAD_MASKED(FETCH_ADD, 0ull, LOC_QP_OP_ERR, WQE_FORMAT, k->atomic.compare_mask = htole64(1));
	BAD_MASKED(FETCH_ADD, 0ull, LOC_LEN_ERR, MSG_TOO_LONG, k->ctrl.num_sge = 0);
	BAD_MASKED(FETCH_ADD, 0ull, LOC_LEN_ERR, MSG_TOO_LONG, k->ctrl.num_sge = 2);
	BAD_MASKED(CMP_SWAP, 0ull, LOC_LEN_ERR, MSG_TOO_LONG, k->sge[0].length = htole32(4));
	BAD_MASKED(CMP_SWAP, 1ull << SKUA_F_MASKED_ATOMIC, LOC_QP_OP_ERR, WQE_OPCODE, (void)0);
	BAD_MASKED(FETCH_ADD, 1ull << SKUA_F_MASKED_ATOMIC, LOC_QP_OP_ERR, WQE_OPCODE, (void)0);
	BAD_MASKED(FETCH_ADD, 1ull << SKUA_F_ATOMIC, LOC_QP_OP_ERR, WQE_OPCODE, (void)0);
}

static void opcodes(void **state)
{
	static const uint8_t unknown[] = { 0, SKUA_WQE_MASKED_FETCH_ADD + 1, 0x40, 0xff };

	(void)state;
	for (size_t i = 0; i < sizeof(unknown); i++)
		BAD_WITH(SKUA_CQE_NOP, world_create(false), good_send(a), SKUA_CQE_LOC_QP_OP_ERR,
			 SKUA_VENDOR_ERR_WQE_OPCODE, k->ctrl.opcode = unknown[i]);
	/* One of another type of QP. */
	BAD_WITH(SKUA_CQE_TSO, world_create(false), good_send(a), SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_OPCODE,
		 k->ctrl.opcode = SKUA_WQE_TSO);
}

/* What the QP may not do is found before the SGEs of the WQE are looked at. */
static void requests_of_a_qp_that_may_have_none(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct block k = good_write(a, b);
	struct skua_cmd rts = rts_cmd(a->qpn);

	rts.modify_qp.attr.max_rd_atomic = 0;
	must(w, a, state_cmd(a->qpn, SKUA_QPS_RESET));
	must(w, a, init_cmd(a->qpn));
	must(w, a, rtr_cmd(a->qpn, b, b->qpn));
	must(w, a, rts);
	k.ctrl.opcode = SKUA_WQE_READ;
	k.rdma_sge[0].lkey = 0;
	post_block(a, &k);
	expect_vendor(w, a, SKUA_CQE_READ, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_OPCODE);
}

#define WITHOUT(feature)	world_create_with(false, ~(1ull << (feature)))

static void opcodes_of_features(void **state)
{
	(void)state;
	BAD_IN(WITHOUT(SKUA_F_ATOMIC), good_write(a, b), SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_OPCODE,
	       k->ctrl.opcode = SKUA_WQE_CMP_SWAP);
	BAD_IN(WITHOUT(SKUA_F_ATOMIC), good_write(a, b), SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_OPCODE,
	       k->ctrl.opcode = SKUA_WQE_FETCH_ADD);
	BAD_IN(WITHOUT(SKUA_F_INVALIDATE), good_send(a), SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_OPCODE,
	       k->ctrl.opcode = SKUA_WQE_SEND_INV);
	BAD_IN(WITHOUT(SKUA_F_INVALIDATE), good_send(a), SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_OPCODE,
	       k->ctrl.opcode = SKUA_WQE_LOCAL_INV);
}

static void sizes(void **state)
{
	(void)state;
	BAD(good_send(a), SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_FORMAT, k->ctrl.num_sge = 31);
	BAD(good_send(a), SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_FORMAT, k->ctrl.num_sge = 4);
	BAD(good_send(a), SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_FORMAT, k->ctrl.num_sge = 0,
	    k->ctrl.flags = SKUA_WQE_INLINE, k->ctrl.length = htole32(~0u));
	BAD(good_send(a), SKUA_CQE_LOC_LEN_ERR, SKUA_VENDOR_ERR_MSG_TOO_LONG,
	    k->sge[0].length = htole32(0x80000001));
}

/* Their keys are not looked at. */
static void sges_of_no_length(void **state)
{
	static const uint8_t opcodes[] = { SKUA_WQE_WRITE, SKUA_WQE_READ };
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	for (size_t i = 0; i < sizeof(opcodes); i++) {
		struct block block = good_write(a, b);

		block.ctrl.opcode = opcodes[i];
		block.ctrl.flags = SKUA_WQE_SIGNALED;
		block.ctrl.num_sge = 2;
		block.rdma_sge[1] = block.rdma_sge[0];
		block.rdma_sge[0] = (struct skua_sge){ .addr = ~0ull, .lkey = 0xdeadbeef };
		post_block(a, &block);
		assert_int_equal(await_cqe(w, a)->status, SKUA_CQE_SUCCESS);
	}
}

static uint32_t empty_region(struct world *w, struct node *n)
{
	struct skua_cmd cmd = create_mr_cmd(n);

	cmd.create_mr.length = 0;
	cmd.create_mr.pages = (struct skua_pagelist){ 0 };
	return must(w, n, cmd);
}

static void keys(void **state)
{
	(void)state;
	BAD(good_send(a), SKUA_CQE_LOC_PROT_ERR, SKUA_VENDOR_ERR_KEY_UNKNOWN,
	    k->sge[0].lkey ^= htole32(0x100));
	BAD(good_send(a), SKUA_CQE_LOC_PROT_ERR, SKUA_VENDOR_ERR_BOUNDS,
	    k->sge[0].length = htole32(BUF_SIZE + 1));
	BAD(good_send(a), SKUA_CQE_LOC_PROT_ERR, SKUA_VENDOR_ERR_BOUNDS,
	    k->sge[0].addr = htole64(~0ull));
	BAD(good_send(a), SKUA_CQE_LOC_PROT_ERR, SKUA_VENDOR_ERR_BOUNDS,
	    k->sge[0].addr = htole64(a->buf - 1));
	BAD(good_send(a), SKUA_CQE_LOC_PROT_ERR, SKUA_VENDOR_ERR_BOUNDS,
	    k->sge[0].lkey = htole32(empty_region(w, a)), k->sge[0].length = htole32(1));
}

/* A region of @type with @access, in the QP's PD or in one of its own. */
static uint32_t region(struct world *w, struct node *n, uint8_t type, uint32_t access, bool of_qp)
{
	struct skua_cmd cmd = create_mr_cmd(n), pd = CMD(SKUA_CMD_CREATE_PD);

	cmd.create_mr.type = type;
	cmd.create_mr.access = htole32(access);
	if (type == SKUA_MR_PHYS) {
		cmd.create_mr.iova = 0;
		cmd.create_mr.length = 0;
		cmd.create_mr.pages = (struct skua_pagelist){ 0 };
	}
	if (!of_qp)
		cmd.create_mr.pdn = htole32(must(w, n, pd));
	return must(w, n, cmd);
}

/* Of two faults of a key the first is told. The SGE of a READ has to be writable. */
static void the_order_of_faults(void **state)
{
	(void)state;
	BAD(good_send(a), SKUA_CQE_LOC_PROT_ERR, SKUA_VENDOR_ERR_KEY_STALE,
	    k->sge[0].lkey = htole32(region(w, a, SKUA_MR_REGULAR, ALL_RIGHTS, false) ^ 1));
	BAD(good_write(a, b), SKUA_CQE_LOC_PROT_ERR, SKUA_VENDOR_ERR_PD, k->ctrl.opcode = SKUA_WQE_READ,
	    k->rdma_sge[0].lkey = htole32(region(w, a, SKUA_MR_PHYS, 0, false)));
	BAD(good_write(a, b), SKUA_CQE_LOC_PROT_ERR, SKUA_VENDOR_ERR_PRIVILEGE, k->ctrl.opcode = SKUA_WQE_READ,
	    k->rdma_sge[0].lkey = htole32(region(w, a, SKUA_MR_PHYS, 0, true)));
	BAD(good_write(a, b), SKUA_CQE_LOC_PROT_ERR, SKUA_VENDOR_ERR_RIGHTS, k->ctrl.opcode = SKUA_WQE_READ,
	    k->rdma_sge[0].addr = 0, k->rdma_sge[0].lkey = htole32(region(w, a, SKUA_MR_REGULAR, 0, true)));
}

static uint32_t reserved_lkey(struct world *w, struct node *n)
{
	uint64_t out = take(n, sizeof(struct skua_device_caps));
	struct skua_cmd cmd = CMD(SKUA_CMD_QUERY_DEVICE);

	cmd.hdr.out_addr = htole64(out);
	cmd.hdr.out_len = htole32(sizeof(struct skua_device_caps));
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_OK);
	return ((struct skua_device_caps *)at(n, out))->reserved_lkey;
}

/* An unprivileged QP gets nothing by the reserved lkey, and no peer does. */
static void the_reserved_lkey(void **state)
{
	struct world *world = *state;
	struct node *n = &world->n[0];

	BAD(good_send(a), SKUA_CQE_LOC_PROT_ERR, SKUA_VENDOR_ERR_PRIVILEGE, k->sge[0].lkey = reserved_lkey(w, a));
	post(n, SKUA_WQE_WRITE, 0, n->buf, 8, IOVA, le32toh(reserved_lkey(world, &world->n[1])), 0);
	expect(world, n, SKUA_CQE_WRITE, SKUA_CQE_REM_ACCESS_ERR);
}

/* It is no rkey, for a peer of a privileged QP either. */
static void the_reserved_lkey_of_a_privileged_qp(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cmd cmd;

	new_queues(b);
	cmd = create_qp_cmd(b);
	cmd.create_qp.flags = htole32(SKUA_QP_PRIVILEGED);
	b->qpn = must(w, b, cmd);
	reconnect(w, b, a);
	reconnect(w, a, b);
	post(b, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, b->buf, 8, a->buf, a->key, 0);
	expect(w, b, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	post(a, SKUA_WQE_WRITE, 0, a->buf, 8, b->buf, le32toh(reserved_lkey(w, b)), 0);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_REM_ACCESS_ERR);
}

/* A QP of each node with a CQ and a page of its own, in RTS towards the other. */
struct bystander {
	struct queues queues;
	struct completions completions;
	uint64_t page;
	uint32_t key;
};

/* The queues that are used, instead of those of the bystanders, or these again. */
static void change_sides(struct world *w, struct bystander *others)
{
	for (int i = 0; i < 2; i++) {
		others[i].queues = use_queues(&w->n[i], others[i].queues);
		others[i].completions = use_completions(&w->n[i], others[i].completions);
	}
}

static void create_bystanders(struct world *w, struct bystander *others)
{
	for (int i = 0; i < 2; i++) {
		struct node *n = &w->n[i];
		struct skua_cmd mr = create_mr_cmd(n);

		others[i].page = take(n, 4096);
		mr.create_mr.pages = list(others[i].page, 4096);
		others[i].key = must(w, n, mr);
		others[i].completions = new_completions(n, LOG_CQ);
		n->cqn = must(w, n, create_cq_cmd(n));
		others[i].queues = new_queues(n);
		n->qpn = must(w, n, create_qp_cmd(n));
	}
	for (int i = 0; i < 2; i++)
		reconnect(w, &w->n[i], &w->n[!i]);
	change_sides(w, others);
}

static void bystanders_go_on(struct world *w, struct bystander *others)
{
	uint32_t key[2] = { w->n[0].key, w->n[1].key };

	change_sides(w, others);
	for (int i = 0; i < 2; i++) {
		memset(at(&w->n[i], others[i].page), i + 1, 4096);
		w->n[i].key = others[i].key;
	}
	for (int i = 0; i < 2; i++) {
		struct node *n = &w->n[i], *peer = &w->n[!i];

		post_recv(peer, peer->buf, 2048);
		post(n, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, n->buf + 2048, 2048, 0, 0, 0);
		expect(w, n, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
		expect(w, peer, SKUA_CQE_RECV, SKUA_CQE_SUCCESS);
		assert_memory_equal(at(peer, others[!i].page), at(n, others[i].page + 2048), 2048);
	}
	for (int i = 0; i < 2; i++) {
		expect_none(w, &w->n[i]);
		w->n[i].key = key[i];
	}
	change_sides(w, others);
}

/*
 * Bytes at random in a ring: whatever comes of it, the device goes on, and so does the peer. Memory in no region stays as
 * it is, and another QP between them carries messages.
 */
static void noise(void **state)
{
	static uint8_t outside[EXTRA_SIZE];
	uint32_t seed = 12345;

	(void)state;
	memset(outside, 0x5a, sizeof(outside));
	for (int round = 0; round < 300; round++) {
		struct world *w = world_create(false);
		struct node *a = &w->n[0];
		struct skua_cmd nop = CMD(SKUA_CMD_NOP);
		struct bystander others[2];
		struct block block;

		create_bystanders(w, others);
		for (int i = 0; i < 2; i++)
			memset(w->n[i].extra, 0x5a, EXTRA_SIZE);
		for (int i = 0; i < 20; i++) {
			uint8_t *bytes = (uint8_t *)&block;

			for (size_t j = 0; j < sizeof(block); j++) {
				seed = seed * 1664525 + 1013904223;
				bytes[j] = (uint8_t)(seed >> 24);
			}
			/* Half are nearly good: only then the deeper checks are reached. */
			if (round & 1) {
				block.ctrl.opcode &= 0xf;
				block.ctrl.nblocks = 1;
				block.ctrl.flags &= 0xf;
				block.ctrl.num_sge &= 3;
				block.rdma.rkey = htole32(w->n[1].key);
				block.sge[0].lkey = htole32(a->key);
				block.rdma_sge[0].lkey = htole32(a->key);
			}
			post_block(a, &block);
		}
		pass(w, 1000000);
		assert_int_equal(command(w, a, &nop), SKUA_CMD_OK);
		assert_int_equal(command(w, &w->n[1], &nop), SKUA_CMD_OK);
		for (int i = 0; i < 2; i++)
			assert_int_equal(memcmp(w->n[i].extra, outside, EXTRA_SIZE), 0);
		bystanders_go_on(w, others);
		world_destroy(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "WQE-1 WQE-3 WQE-5 WQE-6 GEN-2: formats", formats, NULL, NULL, NULL },
		{ "WQE-6 ATM-1 ATM-7 ATM-8 FEA-2: masked_atomics", masked_atomics, NULL, NULL, NULL },
		{ "WQE-6: opcodes", opcodes, NULL, NULL, NULL },
		STEPPED(requests_of_a_qp_that_may_have_none, "WQE-6 FLU-10"),
		{ "WQE-6 FEA-2: opcodes_of_features", opcodes_of_features, NULL, NULL, NULL },
		{ "WQE-4 WQE-6: sizes", sizes, NULL, NULL, NULL },
		STEPPED(sges_of_no_length, "WQE-4"),
		{ "WQE-6 MEM-1 MEM-2 MR-8: keys", keys, NULL, NULL, NULL },
		{ "MEM-2: the_order_of_faults", the_order_of_faults, NULL, NULL, NULL },
		STEPPED(the_reserved_lkey, "SEC-3 MR-7"),
		STEPPED(the_reserved_lkey_of_a_privileged_qp, "MR-7"),
		{ "GEN-7 SEC-8 RST-5: noise", noise, NULL, NULL, NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
