// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* REG_MR with lists of pieces. */
#include "core/device.h"
#include "harness/harness.h"

#define REGION_IOVA	0x5000123ull
#define MOST		64		/* pieces, where it is not said otherwise */
#define FLAT		(2u << 20)	/* in the buffer of the peer: what the region is to be, and has been */

struct block {
	struct skua_wqe_ctrl ctrl;
	struct skua_wqe_reg_mr reg;
};

/* A list that is being made. */
struct pieces {
	struct node *n;
	uint64_t at;			/* DMA address of the list */
	uint32_t count;
	uint64_t length;
};

static int setup(void **state)
{
	*state = privileged_world(~0ull);
	return 0;
}

static struct skua_piece *piece(const struct pieces *p, uint32_t i)
{
	return (struct skua_piece *)at(p->n, p->at) + i;
}

static struct pieces no_pieces(struct node *n)
{
	return (struct pieces){ .n = n, .at = take(n, LIMIT_FAST_PIECES * sizeof(struct skua_piece)) };
}

static void add(struct pieces *p, uint64_t addr, uint32_t length)
{
	*piece(p, p->count++) = (struct skua_piece){ .addr = htole64(addr), .length = htole32(length) };
	p->length += length;
}

/* @count pieces with @length bytes each, which is odd as are the gaps between them. */
static struct pieces alike(struct node *n, uint32_t count, uint32_t length)
{
	struct pieces p = no_pieces(n);

	for (uint32_t i = 0; i < count; i++)
		add(&p, n->buf + 1 + i * (length + 33ull), length);
	return p;
}

static struct block reg_of(const struct pieces *p, uint32_t key)
{
	return (struct block){
		.ctrl = { .opcode = SKUA_WQE_REG_MR, .flags = SKUA_WQE_SIGNALED, .nblocks = 1,
			  .cookie = htole32(p->n->sq_pi) },
		.reg = { .key = htole32(key), .access = htole32(ALL_RIGHTS), .iova = htole64(REGION_IOVA),
			 .length = htole64(p->length), .list = htole64(p->at), .npages = htole32(p->count) },
	};
}

static void must_register(struct world *w, const struct pieces *p, uint32_t key)
{
	struct block k = reg_of(p, key);

	post_block(p->n, &k);
	expect(w, p->n, SKUA_CQE_REG_MR, SKUA_CQE_SUCCESS);
}

static uint32_t new_key(struct world *w, struct node *n, uint32_t pieces)
{
	return must(w, n, free_mr_cmd(n, SKUA_PIECE_ENTRIES * pieces));
}

static void invalidate(struct world *w, struct node *n, uint32_t key)
{
	post(n, SKUA_WQE_LOCAL_INV, SKUA_WQE_SIGNALED, 0, 0, 0, 0, key);
	expect(w, n, SKUA_CQE_LOCAL_INV, SKUA_CQE_SUCCESS);
}

/* Bytes of the region from @offset on, put together from its pieces as the host has them in @p. */
static void gather(const struct pieces *p, uint64_t offset, uint8_t *out, uint64_t len)
{
	for (uint32_t i = 0; len; i++) {
		uint64_t n = le32toh(piece(p, i)->length);

		if (offset >= n) {
			offset -= n;
			continue;
		}
		n -= offset;
		if (n > len)
			n = len;
		memcpy(out, (uint8_t *)at(p->n, le64toh(piece(p, i)->addr)) + offset, n);
		out += n;
		len -= n;
		offset = 0;
	}
}

/* b's region from @offset on is written, and read again, by a. */
static void use(struct world *w, const struct pieces *p, uint32_t key, uint64_t offset, uint32_t len)
{
	struct node *a = &w->n[0];
	uint8_t *got = test_malloc(len);

	fill(a, len, key + (uint32_t)offset);
	memset(at(a, a->buf + FLAT), 0, len);
	post(a, SKUA_WQE_WRITE, 0, a->buf, len, REGION_IOVA + offset, key, 0);
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf + FLAT, len, REGION_IOVA + offset, key, 0);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	gather(p, offset, got, len);
	assert_memory_equal(got, at(a, a->buf), len);
	assert_memory_equal(at(a, a->buf + FLAT), at(a, a->buf), len);
	test_free(got);
}

/* a does @opcode in vain, and both QPs are connected again. */
static void fails(struct world *w, uint8_t opcode, uint32_t key, uint64_t offset, uint32_t len, uint8_t status)
{
	struct node *a = &w->n[0], *b = &w->n[1];

	post(a, opcode, SKUA_WQE_SIGNALED, a->buf, len, REGION_IOVA + offset, key, 0);
	expect(w, a, opcode == SKUA_WQE_READ ? SKUA_CQE_READ : SKUA_CQE_WRITE, status);
	reconnect(w, a, b);
	reconnect(w, b, a);
	while (poll_aeq(b))
		;
}

static void no_use(struct world *w, uint8_t opcode, uint32_t key, uint64_t offset, uint32_t len)
{
	fails(w, opcode, key, offset, len, SKUA_CQE_REM_ACCESS_ERR);
}

static void out_of_reach(struct world *w, uint8_t opcode, uint32_t key, uint64_t offset, uint32_t len)
{
	fails(w, opcode, key, offset, len, SKUA_CQE_REM_OP_ERR);
}

static void pieces_of_any_alignment(void **state)
{
	struct world *w = *state;
	struct node *b = &w->n[1];
	uint32_t key = new_key(w, b, MOST);
	struct pieces p = no_pieces(b);
	uint8_t *host = at(b, b->buf);
	unsigned int seed = 1;

	for (uint32_t round = 0; round < 40; round++) {
		uint64_t where = b->buf, before = 0;

		p.count = 0;
		p.length = 0;
		for (uint32_t i = 0; i < 1 + round % SKUA_PIECES_RUN; i++) {
			uint32_t length = 1 + (uint32_t)rand_r(&seed) % (round & 1 ? 20000 : 9);

			where += 1 + (unsigned int)rand_r(&seed) % 100;
			add(&p, where, length);
			where += length;
		}
		key = (key & ~0xffu) | (round & 0xff);
		must_register(w, &p, key);
		memset(host, 0xa5, where - b->buf + 1);
		use(w, &p, key, 0, (uint32_t)p.length);
		/* What is between the pieces is as it was. */
		for (uint32_t i = 0; i < p.count; i++) {
			uint64_t from = le64toh(piece(&p, i)->addr) - b->buf;

			for (; before < from; before++)
				assert_int_equal(host[before], 0xa5);
			before += le32toh(piece(&p, i)->length);
		}
		assert_int_equal(host[before], 0xa5);
		invalidate(w, b, key);
		no_use(w, SKUA_WQE_WRITE, key, 0, 1);
	}
}

static void any_part_of_it(void **state)
{
	struct world *w = *state;
	struct node *b = &w->n[1];
	struct pieces p = alike(b, 40, 1001);
	uint32_t key = new_key(w, b, 40);

	must_register(w, &p, key);
	for (uint32_t i = 0; i < 40; i++) {
		use(w, &p, key, i * 1001, 1001);
		use(w, &p, key, i * 1001 + 1000, i < 39 ? 2 : 1);
		use(w, &p, key, i * 500, 20000);
	}
	use(w, &p, key, p.length - 1, 1);
	no_use(w, SKUA_WQE_WRITE, key, p.length - 1, 2);
	no_use(w, SKUA_WQE_READ, key, p.length - 1, 2);
	no_use(w, SKUA_WQE_READ, key, 0, (uint32_t)p.length + 1);
	no_use(w, SKUA_WQE_READ, key, p.length, 1);
	no_use(w, SKUA_WQE_WRITE, key, -1ull, 1);
	no_use(w, SKUA_WQE_WRITE, key, p.length + 1, 1);
	use(w, &p, key, 0, (uint32_t)p.length);
}

static void the_largest_list(void **state)
{
	struct world *w = *state;
	struct node *b = &w->n[1];
	struct skua_device_caps caps = *(struct skua_device_caps *)query(w, b,
		(struct skua_cmd)CMD(SKUA_CMD_QUERY_DEVICE), sizeof(caps));
	uint32_t most = le32toh(caps.max_fast_pieces), key = new_key(w, b, most);
	struct pieces p = alike(b, most, 256);

	assert_true(most >= 1024);
	assert_true(le32toh(caps.max_fast_pages) >= SKUA_PIECE_ENTRIES * most);
	must_register(w, &p, key);
	use(w, &p, key, 0, (uint32_t)p.length);
	no_use(w, SKUA_WQE_READ, key, p.length, 1);
}

/* Each page is a region of its own of what the device has mapped, and none is beside its neighbour. */
static void scatter_extra(struct node *n)
{
	unmap_extra(n);
	for (uint64_t i = 0; i < EXTRA_SIZE; i += 4096)
		assert_int_equal(skua_dev_mem_map(n->dev, EXTRA + i, 4096, n->extra + EXTRA_SIZE - 4096 - i, true), 0);
}

static uint8_t *scattered(struct node *n, uint64_t addr)
{
	uint64_t offset = addr - EXTRA;

	return n->extra + EXTRA_SIZE - 4096 - (offset & ~4095ull) + offset % 4096;
}

/* As many pieces as there may be for a number of bytes, and most of them in two pages. */
static struct pieces dense(struct node *n)
{
	struct pieces p = no_pieces(n);

	for (uint64_t i = 0; p.length < 200000; i++) {
		bool large = i % SKUA_PIECES_RUN == SKUA_PIECES_RUN - 1;

		add(&p, EXTRA + i % 60 * 4096 + 4095, large ? SKUA_PIECES_RUN_BYTES - 2 * (SKUA_PIECES_RUN - 1) : 2);
	}
	return p;
}

static void the_most_runs(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct pieces p = dense(b);
	uint32_t key = new_key(w, b, p.count);
	uint8_t *flat = at(a, a->buf);

	scatter_extra(b);
	must_register(w, &p, key);
	/* Pieces overlap, so what is read is what the last of them got. */
	for (uint64_t i = 0; i < EXTRA_SIZE; i++)
		b->extra[i] = (uint8_t)(i * 7 + i / 251);
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, (uint32_t)p.length, REGION_IOVA, key, 0);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	for (uint32_t i = 0; i < p.count; i++)
		for (uint32_t k = 0; k < le32toh(piece(&p, i)->length); k++)
			assert_int_equal(*flat++, *scattered(b, le64toh(piece(&p, i)->addr) + k));
	/* A WRITE of what is there changes nothing. */
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, (uint32_t)p.length, REGION_IOVA, key, 0);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	for (uint64_t i = 0; i < EXTRA_SIZE; i++)
		assert_int_equal(b->extra[i], (uint8_t)(i * 7 + i / 251));
}

/* The SGEs of the host itself: one of them may name such a region, whatever the others are. */
static void named_by_an_sge(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct pieces p = dense(a);
	uint32_t key = new_key(w, a, p.count), ours = a->key;

	scatter_extra(a);
	must_register(w, &p, key);
	a->key = key;
	post_recv(a, REGION_IOVA + 3, 100000);
	a->key = ours;
	post(b, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, b->buf, 100000, 0, 0, 0);
	expect(w, a, SKUA_CQE_RECV, SKUA_CQE_SUCCESS);
	expect(w, b, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	for (int i = 0; i < 2; i++) {
		struct { struct skua_wqe_ctrl ctrl; struct skua_wqe_rdma rdma; struct skua_sge sge[LIMIT_SGE]; } wqe = {
			.ctrl = { .opcode = SKUA_WQE_WRITE, .flags = SKUA_WQE_SIGNALED, .num_sge = LIMIT_SGE,
				  .nblocks = (sizeof(wqe) + SKUA_WQE_BLOCK - 1) / SKUA_WQE_BLOCK },
			.rdma = { .raddr = htole64(b->buf), .rkey = htole32(b->key) },
		};
		struct skua_cqe *cqe;

		for (int s = 0; s < LIMIT_SGE; s++)
			wqe.sge[s] = (struct skua_sge){ htole64(a->buf + s * 64), htole32(1), htole32(ours) };
		wqe.sge[9] = (struct skua_sge){ htole64(REGION_IOVA + 1), htole32(131072), htole32(key) };
		/* Several may be too many, but are no worse than that (FST-11). */
		for (int s = 0; i && s < LIMIT_SGE; s++)
			wqe.sge[s] = (struct skua_sge){ htole64(REGION_IOVA), htole32(3000), htole32(key) };
		post_blocks(a, &wqe, wqe.ctrl.nblocks);
		cqe = await_cqe(w, a);
		assert_int_equal(cqe->opcode, SKUA_CQE_WRITE);
		if (!i || cqe->status != SKUA_CQE_LOC_PROT_ERR || cqe->vendor_err != SKUA_VENDOR_ERR_UNREACHABLE)
			assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
	}
}

static void the_word_of_an_atomic(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct pieces p = no_pieces(b);
	uint32_t key = new_key(w, b, 3);
	struct block k;

	/* Bytes 0 to 7 are a word in one piece, 8 to 15 in two, 16 to 23 begin at an odd address. */
	add(&p, b->buf, 12);
	add(&p, b->buf + 64, 4);
	add(&p, b->buf + 129, 8);
	k = reg_of(&p, key);
	k.reg.iova = htole64(REGION_IOVA & ~7ull);
	k.reg.access |= htole32(SKUA_ACCESS_REMOTE_ATOMIC);
	post_block(b, &k);
	expect(w, b, SKUA_CQE_REG_MR, SKUA_CQE_SUCCESS);
	for (int i = 0; i < 3; i++) {
		struct { struct skua_wqe_ctrl ctrl; struct skua_wqe_atomic atomic; struct skua_sge sge; } wqe = {
			.ctrl = { .opcode = SKUA_WQE_FETCH_ADD, .flags = SKUA_WQE_SIGNALED, .num_sge = 1, .nblocks = 1 },
			.atomic = { .raddr = htole64((REGION_IOVA & ~7ull) + i * 8), .rkey = htole32(key),
				    .swap_add = htole64(5) },
			.sge = { htole64(a->buf), htole32(8), htole32(a->key) },
		};

		must(w, b, modify_cmd(b->qpn, SKUA_QP_ATTR_ACCESS, (struct skua_qp_attr){
			.access = htole32(SKUA_ACCESS_REMOTE_ATOMIC) }));
		post_block(a, &wqe);
		expect(w, a, SKUA_CQE_FETCH_ADD, i ? SKUA_CQE_REM_ACCESS_ERR : SKUA_CQE_SUCCESS);
		if (i) {
			reconnect(w, a, b);
			reconnect(w, b, a);
		}
	}
}

/* With pages, with pieces, and with pages once more. */
static void pages_take_turns(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct pieces p = alike(b, 3, 700);
	uint32_t key = new_key(w, b, 3);
	uint64_t page = take(b, 4096);

	for (uint32_t round = 0; round < 6; round++) {
		struct block k = reg_of(&p, key ^ round);

		if (round & 1) {
			must_register(w, &p, key ^ round);
			use(w, &p, key ^ round, 0, 2100);
			no_use(w, SKUA_WQE_WRITE, key ^ round, 2100, 1);
		} else {
			*(__le64 *)at(b, page) = htole64((b->buf & ~4095ull) | SKUA_PL_PRESENT);
			k.reg.list = htole64(page);
			k.reg.log_page = 12;
			k.reg.npages = htole32(1);
			k.reg.length = htole64(4000);
			k.reg.offset = htole32(7);
			post_block(b, &k);
			expect(w, b, SKUA_CQE_REG_MR, SKUA_CQE_SUCCESS);
			fill(a, 4000, round);
			post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 4000, REGION_IOVA, key ^ round, 0);
			expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
			assert_memory_equal(at(b, b->buf + 7), at(a, a->buf), 4000);
		}
		invalidate(w, b, key ^ round);
	}
}

/* An access finds out that a piece cannot be reached. */
static void pieces_out_of_reach(void **state)
{
	struct world *w = *state;
	struct node *b = &w->n[1];
	struct pieces p = no_pieces(b);
	uint32_t key = new_key(w, b, 3);

	add(&p, b->buf, 100);
	add(&p, EXTRA + EXTRA_SIZE - 50, 100);
	add(&p, b->buf + 500, 100);
	must_register(w, &p, key);
	use(w, &p, key, 0, 100);
	use(w, &p, key, 200, 100);
	out_of_reach(w, SKUA_WQE_WRITE, key, 150, 1);
	out_of_reach(w, SKUA_WQE_READ, key, 0, 300);
	unmap_extra(b);
	map_extra(b, false);
	out_of_reach(w, SKUA_WQE_WRITE, key, 100, 1);
}

/* A REG_MR that is no good, for which the region stays free. */
#define BAD(vendor, ...) do {								\
	struct world *w = privileged_world(~0ull);					\
	struct node *a = &w->n[0];							\
	struct pieces p = alike(a, 20, 301);						\
	uint32_t key = new_key(w, a, 20);						\
	struct block k = reg_of(&p, key);						\
	struct skua_cqe *cqe;								\
											\
	__VA_ARGS__;									\
	post_block(a, &k);								\
	cqe = await_cqe(w, a);								\
	if (cqe->opcode != SKUA_CQE_REG_MR || cqe->status != SKUA_CQE_LOC_QP_OP_ERR ||	\
	    cqe->vendor_err != SKUA_VENDOR_ERR_##vendor)				\
		fail_msg("%s: status %d, vendor_err %d", #__VA_ARGS__, cqe->status,	\
			 cqe->vendor_err);						\
	reconnect(w, a, &w->n[1]);							\
	a->key = key;									\
	post(a, SKUA_WQE_SEND, 0, REGION_IOVA, 8, 0, 0, 0);				\
	expect_vendor(w, a, SKUA_CQE_SEND, SKUA_CQE_LOC_PROT_ERR, SKUA_VENDOR_ERR_KEY_STALE); \
	world_destroy(w);								\
} while (0)

static void fields_that_may_not_be(void **state)
{
	(void)state;
	BAD(WQE_FORMAT, k.reg.offset = htole32(1));
	BAD(WQE_FORMAT, k.reg.npages = 0);
	BAD(WQE_FORMAT, k.reg.npages = 0, k.reg.length = 0);
	/* The device finds this before it looks for the MR. */
	BAD(WQE_FORMAT, k.reg.npages = 0, k.reg.key ^= htole32(0x100));
	BAD(WQE_FORMAT, k.reg.length = 0);
	BAD(WQE_FORMAT, k.reg.access |= htole32(SKUA_ACCESS_MW_BIND));
	BAD(WQE_FORMAT, k.reg.list = htole64(p.at + 4));
	BAD(WQE_FORMAT, k.reg.log_page = 1);
	BAD(WQE_FORMAT, k.reg.rsvd[6] = 1);
	BAD(WQE_FORMAT, k.reg.iova = htole64(-p.length + 1));
	BAD(BOUNDS, k.reg.npages = htole32(21));
	BAD(BOUNDS, k.reg.npages = htole32(1u << 31));
	BAD(BOUNDS, k.reg.npages = htole32(~0u), k.reg.list = htole64(0xdead0000));
	BAD(UNREACHABLE, k.reg.list = htole64(0xdead0000));
	BAD(UNREACHABLE, k.reg.list = htole64(EXTRA + EXTRA_SIZE - 19 * sizeof(struct skua_piece)));
	BAD(PRIVILEGE, new_queues(a), a->qpn = must(w, a, create_qp_cmd(a)), reconnect(w, a, &w->n[1]));
}

static void pieces_that_may_not_be(void **state)
{
	(void)state;
	BAD(WQE_FORMAT, piece(&p, 0)->rsvd = htole32(1));
	BAD(WQE_FORMAT, piece(&p, 19)->rsvd = htole32(1));
	BAD(WQE_FORMAT, piece(&p, 7)->length = 0, k.reg.length = htole64(p.length - 301));
	BAD(WQE_FORMAT, piece(&p, 7)->addr = htole64(-300ull));
	BAD(WQE_FORMAT, k.reg.length = htole64(p.length - 1));
	BAD(WQE_FORMAT, k.reg.length = htole64(p.length + 1));
	BAD(WQE_FORMAT, k.reg.npages = htole32(19));
	BAD(WQE_FORMAT, piece(&p, 0)->length = htole32(302));
	/* 16 in a row with 4095 bytes: the first of them, the last, and some in the middle. */
	BAD(WQE_FORMAT, p = alike(a, 16, 255), piece(&p, 0)->length = htole32(270), k = reg_of(&p, key),
	    k.reg.length = htole64(4095));
	BAD(WQE_FORMAT, p = alike(a, 17, 255), piece(&p, 0)->length = htole32(9999),
	    piece(&p, 16)->length = htole32(270), k = reg_of(&p, key), k.reg.length = htole64(9999 + 4095));
	BAD(WQE_FORMAT, p = alike(a, 19, 255), piece(&p, 0)->length = htole32(9999), piece(&p, 9)->length = htole32(270),
	    piece(&p, 18)->length = htole32(9999), k = reg_of(&p, key), k.reg.length = htole64(2 * 9999 + 4095 + 255));
}

/* What the rules just allow: 15 pieces of a byte, 16 that have 4096 together, and the last byte there is. */
static void pieces_that_may_be(void **state)
{
	struct world *w = *state;
	struct node *b = &w->n[1];
	uint32_t key = new_key(w, b, 33);
	struct pieces p = alike(b, SKUA_PIECES_RUN - 1, 1);

	must_register(w, &p, key);
	use(w, &p, key, 0, SKUA_PIECES_RUN - 1);
	invalidate(w, b, key);
	p = alike(b, 33, 256);
	must_register(w, &p, key);
	use(w, &p, key, 0, 33 * 256);
	invalidate(w, b, key);
	p = no_pieces(b);
	add(&p, b->buf, 10);
	add(&p, -20ull, 20);
	must_register(w, &p, key);
	use(w, &p, key, 0, 10);
	out_of_reach(w, SKUA_WQE_READ, key, 29, 1);
}

static void without_the_feature(void **state)
{
	static const unsigned int missing[] = { SKUA_F_SG_GAPS, SKUA_F_FAST_REG };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct world *w = privileged_world(~(1ull << missing[i]));
		struct node *a = &w->n[0];
		struct pieces p = alike(a, 3, 100);
		struct block k = reg_of(&p, i ? a->key : new_key(w, a, 3));
		uint32_t pieces = ((struct skua_device_caps *)query(w, a, (struct skua_cmd)CMD(SKUA_CMD_QUERY_DEVICE),
			sizeof(struct skua_device_caps)))->max_fast_pieces;

		post_block(a, &k);
		expect_vendor(w, a, SKUA_CQE_REG_MR, SKUA_CQE_LOC_QP_OP_ERR,
			      i ? SKUA_VENDOR_ERR_WQE_OPCODE : SKUA_VENDOR_ERR_WQE_FORMAT);
		if (!i)
			assert_int_equal(pieces, 0);
		world_destroy(w);
	}
}

/* A list of pieces is twice as long as one of pages: 64 KiB of lists a turn. */
static void lists_count_in_a_turn(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];
	struct pieces p = alike(a, LIMIT_FAST_PIECES, 256);
	uint32_t keys[16];

	for (int i = 0; i < 16; i++)
		keys[i] = new_key(w, a, LIMIT_FAST_PIECES);
	for (int i = 0; i < 16; i++) {
		struct block k = reg_of(&p, keys[i]);

		post_block(a, &k);
	}
	for (unsigned int done = 0, turns = 0, before = 0; done < 16; before = done) {
		engine_step(a->engine);
		while (poll_cq(a))
			done++;
		assert_true(done - before <= 2);
		assert_true(turns++ < 1000);
	}
}

#define TEST(f, rules)	{ rules ": " #f, f, setup, teardown, NULL }
#define TABLE(f, rules)	{ rules ": " #f, f, NULL, NULL, NULL }

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(pieces_of_any_alignment, "FST-8 FST-9 MEM-1"),
		TEST(any_part_of_it, "FST-8 MEM-1"),
		TEST(the_largest_list, "FST-8 LIM-1 LIM-4"),
		TEST(the_most_runs, "FST-10"),
		TEST(named_by_an_sge, "FST-10 FST-11"),
		TEST(the_word_of_an_atomic, "FST-11 ATM-3"),
		TEST(pages_take_turns, "FST-3 FST-8"),
		TEST(pieces_out_of_reach, "FST-6 FST-11"),
		TABLE(fields_that_may_not_be, "FST-7 FST-8 WQE-5"),
		TABLE(pieces_that_may_not_be, "FST-7 FST-8 FST-9 FST-10"),
		TEST(pieces_that_may_be, "FST-9 FST-10"),
		TABLE(without_the_feature, "FEA-2"),
		TEST(lists_count_in_a_turn, "SEC-8"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
