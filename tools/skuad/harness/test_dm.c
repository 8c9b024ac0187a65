// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Device memory: DMs, copies between them and the host, and what QPs and peers do by MRs of type DM. */
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>

#include "core/dm.h"
#include "core/qp.h"
#include "harness/harness.h"
#include "nic/control.h"

#define SIZE	20000u		/* of a DM, and where an MR begins in it, and its length */
#define AT	1000u
#define LEN	9001u
#define RIGHTS	(ALL_RIGHTS | SKUA_ACCESS_REMOTE_ATOMIC | SKUA_ACCESS_FLUSH_GLOBAL)
#define LATER	(1u << 20)	/* in the buffer, behind what is sent */

static struct skua_cmd alloc_cmd(uint64_t length, uint8_t log_align)
{
	return (struct skua_cmd)CMD(SKUA_CMD_ALLOC_DM, .alloc_dm = {
		.length = htole64(length), .log_align = log_align });
}

static uint32_t alloc(struct world *w, struct node *n, uint64_t length)
{
	return must(w, n, alloc_cmd(length, 0));
}

static struct skua_cmd copy_cmd(uint32_t dmn, uint8_t direction, uint64_t offset, uint64_t addr, uint32_t length)
{
	return (struct skua_cmd)CMD(SKUA_CMD_DM_COPY, .dm_copy = {
		.dmn = htole32(dmn), .direction = direction, .offset = htole64(offset), .addr = htole64(addr),
		.length = htole32(length) });
}

static struct skua_cmd mr_cmd(struct node *n, uint32_t dmn, uint64_t offset, uint64_t length, uint32_t access)
{
	return (struct skua_cmd)CMD(SKUA_CMD_CREATE_MR, .create_mr = {
		.pdn = htole32(n->pdn), .type = SKUA_MR_DM, .access = htole32(access), .length = htole64(length),
		.dmn = htole32(dmn), .dm_offset = htole64(offset) });
}

static int status_of(struct world *w, struct node *n, struct skua_cmd cmd)
{
	return command(w, n, &cmd);
}

/* All bytes of a DM, as the host gets them. */
static const uint8_t *content(struct world *w, struct node *n, uint32_t dmn, uint32_t size)
{
	static uint8_t bytes[1 << 20];

	assert_in_range(size, 1, sizeof(bytes));
	for (uint32_t i = 0, len; i < size; i += len) {
		len = size - i < SKUA_DM_COPY_MAX ? size - i : SKUA_DM_COPY_MAX;
		must(w, n, copy_cmd(dmn, SKUA_DM_TO_HOST, i, n->buf + LATER, len));
		memcpy(bytes + i, at(n, n->buf + LATER), len);
	}
	return bytes;
}

static bool is_zero(const uint8_t *p, uint32_t size)
{
	for (uint32_t i = 0; i < size; i++)
		if (p[i])
			return false;
	return true;
}

/* Fill @size bytes of it from the buffer. */
static void write_dm(struct world *w, struct node *n, uint32_t dmn, uint32_t size, uint32_t seed)
{
	fill(n, SKUA_DM_COPY_MAX, seed);
	for (uint32_t i = 0, len; i < size; i += len) {
		len = size - i < SKUA_DM_COPY_MAX ? size - i : SKUA_DM_COPY_MAX;
		must(w, n, copy_cmd(dmn, SKUA_DM_FROM_HOST, i, n->buf, len));
	}
}

/* Whatever another one of the same size held. */
static void is_zero_when_new(void **state)
{
	static const uint32_t sizes[] = { 4, 4096, 300000, LIMIT_DM };
	struct world *w = *state;
	struct node *n = &w->n[0];

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (int again = 0; again < 3; again++) {
			uint32_t dmn = alloc(w, n, sizes[i]);

			assert_true(is_zero(content(w, n, dmn, sizes[i]), sizes[i]));
			write_dm(w, n, dmn, sizes[i], 7);
			assert_false(is_zero(content(w, n, dmn, sizes[i]), sizes[i]));
			must(w, n, object_cmd(SKUA_CMD_FREE_DM, dmn));
			assert_int_equal(status_of(w, n, object_cmd(SKUA_CMD_FREE_DM, dmn)), SKUA_CMD_BAD_OBJECT);
		}
}

static void sizes_and_alignments(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	const struct skua_device_caps *caps = query(w, n, (struct skua_cmd)CMD(SKUA_CMD_QUERY_DEVICE), sizeof(*caps));
	uint64_t most = le64toh(caps->max_dm);

	assert_int_equal(most, LIMIT_DM);
	assert_int_equal(status_of(w, n, alloc_cmd(0, 0)), SKUA_CMD_BAD_PARAM);
	assert_int_equal(status_of(w, n, alloc_cmd(most + 1, 0)), SKUA_CMD_BAD_PARAM);
	assert_int_equal(status_of(w, n, alloc_cmd(~0ull, 0)), SKUA_CMD_BAD_PARAM);
	assert_int_equal(status_of(w, n, alloc_cmd(64, SKUA_DM_MAX_LOG_ALIGN + 1)), SKUA_CMD_BAD_PARAM);
	for (uint8_t align = 0; align <= SKUA_DM_MAX_LOG_ALIGN; align++) {
		const struct dm *dm = numtab_get(&n->dev->dms, must(w, n, alloc_cmd(1, align)));

		assert_int_equal((uintptr_t)dm->mem & ((1u << align) - 1), 0);
	}
	assert_int_equal(n->dev->pages_used, w->n[1].dev->pages_used);
}

/* In pieces, and what is left in one, in whatever order pieces are freed. */
static void as_much_as_there_is(void **state)
{
	enum { PIECES = 16, PIECE = LIMIT_DM / PIECES };
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint32_t dmn[PIECES];

	must(w, n, object_cmd(SKUA_CMD_FREE_DM, alloc(w, n, LIMIT_DM)));
	for (int i = 0; i < PIECES; i++)
		dmn[i] = alloc(w, n, i & 1 ? PIECE : PIECE - 4095);
	assert_int_equal(status_of(w, n, alloc_cmd(1, 0)), SKUA_CMD_NO_RESOURCE);
	for (int i = 0; i < PIECES; i += 2)
		must(w, n, object_cmd(SKUA_CMD_FREE_DM, dmn[i]));
	assert_int_equal(status_of(w, n, alloc_cmd(LIMIT_DM / 2 + 1, 0)), SKUA_CMD_NO_RESOURCE);
	dmn[0] = alloc(w, n, LIMIT_DM / 2);
	assert_int_equal(status_of(w, n, alloc_cmd(1, 0)), SKUA_CMD_NO_RESOURCE);
	must(w, n, object_cmd(SKUA_CMD_FREE_DM, dmn[0]));
	for (int i = 1; i < PIECES; i += 2)
		must(w, n, object_cmd(SKUA_CMD_FREE_DM, dmn[i]));
	/* The most DMs that there can be. */
	for (unsigned int i = 0; i < LIMIT_DM / 4096; i++)
		alloc(w, n, 1);
	assert_int_equal(status_of(w, n, alloc_cmd(1, 0)), SKUA_CMD_NO_RESOURCE);
}

/* From and to places of all kinds, as in an array of bytes. The host's memory lies in two pieces. */
static void copied_to_and_fro(void **state)
{
	static uint8_t shadow[LIMIT_DM / 4];
	struct world *w = *state;
	struct node *n = &w->n[0];
	const uint64_t middle = EXTRA + EXTRA_SIZE;
	uint32_t dmn = alloc(w, n, sizeof(shadow)), seed = 1;
	uint8_t *second = at(n, n->buf);

	assert_int_equal(skua_dev_mem_map(n->dev, middle, SKUA_DM_COPY_MAX, second, true), 0);
	memset(shadow, 0, sizeof(shadow));
	for (int i = 0; i < 300; i++) {
		uint32_t len = (seed % (i % 3 ? 1000 : SKUA_DM_COPY_MAX) + 4) & ~3u, offset, before;
		uint64_t addr;

		seed = seed * 1664525 + 1013904223;
		len = i % 50 ? len : SKUA_DM_COPY_MAX;
		offset = (seed >> 8) % (sizeof(shadow) - len + 1) & ~3u;
		/* Over the boundary, and at any byte. */
		before = seed % (len + 1);
		addr = middle - before;
		for (uint32_t j = 0; j < len; j++)
			(j < before ? n->extra + EXTRA_SIZE - before : second - before)[j] = (uint8_t)(seed + j * 7 + j / 255);
		must(w, n, copy_cmd(dmn, SKUA_DM_FROM_HOST, offset, addr, len));
		for (uint32_t j = 0; j < len; j++)
			shadow[offset + j] = (uint8_t)(seed + j * 7 + j / 255);
		memset(n->extra + EXTRA_SIZE - before, 0, before);
		memset(second, 0, len - before);
		must(w, n, copy_cmd(dmn, SKUA_DM_TO_HOST, offset, addr, len));
		assert_memory_equal(n->extra + EXTRA_SIZE - before, shadow + offset, before);
		assert_memory_equal(second, shadow + offset + before, len - before);
	}
	assert_int_equal(skua_dev_mem_unmap(n->dev, middle, SKUA_DM_COPY_MAX), 0);
}

static void others_stay(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint32_t one = alloc(w, n, SIZE), two = alloc(w, n, SIZE);

	write_dm(w, n, one, SIZE, 1);
	write_dm(w, n, two, SIZE, 2);
	fill(n, SIZE, 1);
	assert_memory_equal(content(w, n, one, SIZE), at(n, n->buf), SIZE);
	must(w, n, object_cmd(SKUA_CMD_FREE_DM, one));
	fill(n, SIZE, 2);
	assert_memory_equal(content(w, n, two, SIZE), at(n, n->buf), SIZE);
}

static void copies_that_may_not_be(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint32_t dmn = alloc(w, n, SIZE - 2), old = alloc(w, n, 8);
	const struct {
		uint32_t dmn;
		uint8_t direction;
		uint64_t offset, addr;
		uint32_t length;
		int status;
	} rows[] = {
		{ old, 0, 0, n->buf, 8, SKUA_CMD_BAD_OBJECT },
		{ 0, 0, 0, n->buf, 8, SKUA_CMD_BAD_OBJECT },
		{ old, 0, 1, n->buf, 8, SKUA_CMD_BAD_OBJECT },
		{ dmn, 2, 0, n->buf, 8, SKUA_CMD_BAD_PARAM },
		{ dmn, 0, 0, n->buf, 0, SKUA_CMD_BAD_PARAM },
		{ dmn, 0, 2, n->buf, 8, SKUA_CMD_BAD_PARAM },
		{ dmn, 0, 0, n->buf, 6, SKUA_CMD_BAD_PARAM },
		{ dmn, 0, SIZE - 4, n->buf, 4, SKUA_CMD_BAD_PARAM },
		{ dmn, 0, 0, n->buf, SIZE, SKUA_CMD_BAD_PARAM },
		{ dmn, 1, SIZE, n->buf, 4, SKUA_CMD_BAD_PARAM },
		{ dmn, 1, ~3ull, n->buf, 8, SKUA_CMD_BAD_PARAM },
		{ dmn, 0, 0, EXTRA + EXTRA_SIZE - 4, 8, SKUA_CMD_BAD_ADDRESS },
		{ dmn, 1, 0, EXTRA + EXTRA_SIZE - 4, 8, SKUA_CMD_BAD_ADDRESS },
		{ dmn, 0, 0, 0, 8, SKUA_CMD_BAD_ADDRESS },
		{ dmn, 0, 0, HOSTMEM_END, 8, SKUA_CMD_BAD_ADDRESS },
		{ dmn, 0, 0, ~3ull, 8, SKUA_CMD_BAD_ADDRESS },
		{ dmn, 0, 1, 0, 8, SKUA_CMD_BAD_PARAM },
	};
	uint32_t large = alloc(w, n, 2 * SKUA_DM_COPY_MAX);

	must(w, n, object_cmd(SKUA_CMD_FREE_DM, old));
	memset(n->extra, 0x55, EXTRA_SIZE);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (status_of(w, n, copy_cmd(rows[i].dmn, rows[i].direction, rows[i].offset, rows[i].addr,
					     rows[i].length)) != rows[i].status)
			fail_msg("row %zu", i);
	assert_int_equal(status_of(w, n, copy_cmd(large, 0, 0, n->buf, SKUA_DM_COPY_MAX + 4)), SKUA_CMD_BAD_PARAM);
	must(w, n, copy_cmd(large, 0, 0, n->buf, SKUA_DM_COPY_MAX));
	/* Memory that may not be written is a source only. */
	unmap_extra(n);
	map_extra(n, false);
	assert_int_equal(status_of(w, n, copy_cmd(dmn, SKUA_DM_TO_HOST, 0, EXTRA, 8)), SKUA_CMD_BAD_ADDRESS);
	assert_true(is_zero(content(w, n, dmn, SIZE - 4), SIZE - 4));
	assert_int_equal(n->extra[EXTRA_SIZE - 1], 0x55);
	assert_int_equal(n->extra[0], 0x55);
	must(w, n, copy_cmd(dmn, SKUA_DM_FROM_HOST, 0, EXTRA, 8));
	assert_int_equal(content(w, n, dmn, 8)[7], 0x55);
}

static void fields_that_are_reserved(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint32_t dmn = alloc(w, n, SIZE);
	struct skua_cmd rows[] = {
		alloc_cmd(8, 0), object_cmd(SKUA_CMD_FREE_DM, dmn), copy_cmd(dmn, 0, 0, n->buf, 8),
		mr_cmd(n, dmn, 0, 8, 0), create_mr_cmd(n), create_mr_cmd(n),
	};

	rows[0].alloc_dm.rsvd[0] = 1;
	rows[1].object.rsvd[219] = 1;
	rows[2].dm_copy.rsvd[0] = 1;
	rows[3].create_mr.rsvd1[0] = 1;
	rows[4].create_mr.dmn = htole32(dmn);
	rows[5].create_mr.dm_offset = htole64(8);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (command(w, n, &rows[i]) != SKUA_CMD_BAD_PARAM)
			fail_msg("row %zu", i);
	must(w, n, object_cmd(SKUA_CMD_FREE_DM, dmn));
}

static void regions_that_may_not_be(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint32_t dmn = alloc(w, n, SIZE);
	struct skua_cmd cmd = mr_cmd(n, dmn, 0, SIZE, RIGHTS);

#define REFUSED_AS(code, change) do {						\
	struct skua_cmd c_ = cmd;						\
										\
	c_.create_mr.change;							\
	assert_int_equal(command(w, n, &c_), SKUA_CMD_##code);			\
} while (0)
	REFUSED_AS(BAD_OBJECT, dmn = htole32(dmn + 1));
	REFUSED_AS(BAD_OBJECT, dmn = 0);
	REFUSED_AS(BAD_OBJECT, pdn = 0);
	REFUSED_AS(BAD_PARAM, iova = htole64(1));
	REFUSED_AS(BAD_PARAM, pages = list(n->buf, SIZE));
	REFUSED_AS(BAD_PARAM, capacity = htole32(1));
	REFUSED_AS(BAD_PARAM, access = htole32(SKUA_ACCESS_MW_BIND));
	REFUSED_AS(BAD_PARAM, access = htole32(SKUA_ACCESS_ZERO_BASED));
	REFUSED_AS(BAD_PARAM, access = htole32(SKUA_ACCESS_REMOTE_WRITE));
	REFUSED_AS(BAD_PARAM, dm_offset = htole64(1));
	REFUSED_AS(BAD_PARAM, dm_offset = htole64(SIZE + 1));
	REFUSED_AS(BAD_PARAM, dm_offset = htole64(~0ull));
	REFUSED_AS(BAD_PARAM, length = htole64(SIZE + 1));
	REFUSED_AS(BAD_PARAM, length = htole64(~0ull));
	/* Nothing holds the DM. */
	must(w, n, object_cmd(SKUA_CMD_FREE_DM, dmn));
}

/* FREE_DM while MRs of it are there; in another PD, over other parts, and of no bytes. */
static void a_dm_with_regions_is_busy(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint32_t dmn = alloc(w, n, SIZE), key[3];
	struct skua_cmd cmd = mr_cmd(n, dmn, 0, SIZE, RIGHTS);

	key[0] = must(w, n, cmd);
	cmd.create_mr.pdn = htole32(must(w, n, (struct skua_cmd)CMD(SKUA_CMD_CREATE_PD)));
	key[1] = must(w, n, cmd);
	key[2] = must(w, n, mr_cmd(n, dmn, SIZE, 0, 0));
	for (int i = 0; i < 3; i++) {
		assert_int_equal(status_of(w, n, object_cmd(SKUA_CMD_FREE_DM, dmn)), SKUA_CMD_BUSY);
		must(w, n, object_cmd(SKUA_CMD_DESTROY_MR, key[i]));
	}
	must(w, n, object_cmd(SKUA_CMD_FREE_DM, dmn));
	assert_int_equal(status_of(w, n, cmd), SKUA_CMD_BAD_OBJECT);
}

/* The QPs of both nodes allow all that there is. */
static void allow_all(struct world *w)
{
	for (int i = 0; i < 2; i++)
		must(w, &w->n[i], modify_cmd(w->n[i].qpn, SKUA_QP_ATTR_ACCESS,
					     (struct skua_qp_attr){ .access = htole32(RIGHTS & ~SKUA_ACCESS_LOCAL_WRITE) }));
}

static void written_and_read_by_peers(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t dmn = alloc(w, b, SIZE), key = must(w, b, mr_cmd(b, dmn, AT, LEN, RIGHTS));
	const uint8_t *bytes;

	fill(a, LEN, 3);
	post(a, SKUA_WQE_WRITE, 0, a->buf, LEN, 0, key, 0);
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf + LATER, LEN, 0, key, 0);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	assert_memory_equal(at(a, a->buf + LATER), at(a, a->buf), LEN);
	bytes = content(w, b, dmn, SIZE);
	assert_true(is_zero(bytes, AT));
	assert_memory_equal(bytes + AT, at(a, a->buf), LEN);
	assert_true(is_zero(bytes + AT + LEN, SIZE - AT - LEN));
	/* What the host puts there is what peers find. */
	write_dm(w, b, dmn, SIZE, 9);
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf + LATER, 100, 20, key, 0);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	fill(b, SIZE, 9);
	assert_memory_equal(at(a, a->buf + LATER), (uint8_t *)at(b, b->buf) + AT + 20, 100);
}

/* As SGEs of SENDs, receives, WRITEs and READs; between device memory and device memory. */
static void used_by_local_work(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t dmn[2], host[2] = { a->key, b->key };

	for (int i = 0; i < 2; i++) {
		struct node *n = &w->n[i];

		dmn[i] = alloc(w, n, SIZE);
		n->key = must(w, n, mr_cmd(n, dmn[i], AT, LEN, SKUA_ACCESS_LOCAL_WRITE));
	}
	write_dm(w, a, dmn[0], SIZE, 5);
	post_recv(b, 1, LEN - 1);
	post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, 0, LEN - 1, 0, 0, 0);
	expect(w, b, SKUA_CQE_RECV, SKUA_CQE_SUCCESS);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	fill(a, SIZE, 5);
	assert_memory_equal(content(w, b, dmn[1], SIZE) + AT + 1, (uint8_t *)at(a, a->buf) + AT, LEN - 1);
	assert_int_equal(content(w, b, dmn[1], SIZE)[AT + LEN], 0);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, 100, 5000, b->buf, host[1], 0);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	assert_memory_equal(at(b, b->buf), (uint8_t *)at(a, a->buf) + AT + 100, 5000);
	fill(b, LEN, 6);
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, 0, LEN, b->buf, host[1], 0);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	assert_memory_equal(content(w, a, dmn[0], SIZE) + AT, at(b, b->buf), LEN);
	/* Only with the right is it written. */
	a->key = must(w, a, mr_cmd(a, dmn[0], 0, SIZE, 0));
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, 0, 8, b->buf, host[1], 0);
	expect_vendor(w, a, SKUA_CQE_READ, SKUA_CQE_LOC_PROT_ERR, SKUA_VENDOR_ERR_RIGHTS);
}

struct atomic_wqe {
	struct skua_wqe_ctrl ctrl;
	struct skua_wqe_atomic atomic;
	struct skua_sge sge;
};

struct rdma_wqe {
	struct skua_wqe_ctrl ctrl;
	struct skua_wqe_rdma rdma;
	struct skua_sge sge;
	uint8_t padding[16];
};

static uint64_t fetch_add(struct world *w, struct node *a, uint32_t key, uint64_t addr, uint64_t add, uint8_t status)
{
	struct atomic_wqe k = {
		.ctrl = { .opcode = SKUA_WQE_FETCH_ADD, .flags = SKUA_WQE_SIGNALED, .nblocks = 1, .num_sge = 1,
			  .cookie = htole32(a->sq_pi) },
		.atomic = { .raddr = htole64(addr), .rkey = htole32(key), .swap_add = htole64(add) },
		.sge = { htole64(a->buf), htole32(8), htole32(a->key) },
	};

	post_block(a, &k);
	expect(w, a, SKUA_CQE_FETCH_ADD, status);
	return le64toh(*(uint64_t *)at(a, a->buf));
}

static void write_word(struct world *w, struct node *a, uint32_t key, uint64_t addr, uint64_t value)
{
	struct rdma_wqe k = {
		.ctrl = { .opcode = SKUA_WQE_ATOMIC_WRITE, .flags = SKUA_WQE_SIGNALED, .nblocks = 1, .num_sge = 1,
			  .cookie = htole32(a->sq_pi) },
		.rdma = { .raddr = htole64(addr), .rkey = htole32(key) },
		.sge = { htole64(a->buf), htole32(8), htole32(a->key) },
	};

	*(uint64_t *)at(a, a->buf) = htole64(value);
	post_block(a, &k);
	expect(w, a, SKUA_CQE_ATOMIC_WRITE, SKUA_CQE_SUCCESS);
}

static void flush(struct world *w, struct node *a, uint32_t key, uint32_t length)
{
	struct rdma_wqe k = {
		.ctrl = { .opcode = SKUA_WQE_FLUSH, .flags = SKUA_WQE_SIGNALED, .nblocks = 1, .length = htole32(length),
			  .cookie = htole32(a->sq_pi) },
		.rdma = { .rkey = htole32(key), .flush = htole32(SKUA_FLUSH_GLOBAL) },
	};

	post_block(a, &k);
	expect(w, a, SKUA_CQE_FLUSH, SKUA_CQE_SUCCESS);
}

/* Words that the host, by copies, and peers change in turn. An address is aligned if the word is. */
static void words(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t dmn = alloc(w, b, SIZE), key = must(w, b, mr_cmd(b, dmn, 64, 64, RIGHTS));

	allow_all(w);
	*(uint64_t *)at(b, b->buf) = htole64(1000);
	must(w, b, copy_cmd(dmn, SKUA_DM_FROM_HOST, 72, b->buf, 8));
	assert_int_equal(fetch_add(w, a, key, 8, 5, SKUA_CQE_SUCCESS), 1000);
	assert_int_equal(fetch_add(w, a, key, 8, 7, SKUA_CQE_SUCCESS), 1005);
	assert_int_equal(content(w, b, dmn, SIZE)[72], 1012 % 256);
	write_word(w, a, key, 8, 77);
	flush(w, a, key, 64);
	assert_int_equal(content(w, b, dmn, SIZE)[72], 77);
	assert_int_equal(content(w, b, dmn, SIZE)[73], 0);
	key = must(w, b, mr_cmd(b, dmn, 68, 64, RIGHTS));
	fetch_add(w, a, key, 0, 1, SKUA_CQE_REM_ACCESS_ERR);
	assert_int_equal(content(w, b, dmn, SIZE)[72], 77);
}

static void bounds_and_rights(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t dmn = alloc(w, b, SIZE), all = must(w, b, mr_cmd(b, dmn, AT, LEN, RIGHTS));
	uint32_t empty = must(w, b, mr_cmd(b, dmn, 0, 0, RIGHTS));
	struct skua_cmd foreign = mr_cmd(b, dmn, 0, SIZE, RIGHTS);
	const struct {
		uint32_t key;
		uint8_t opcode;
		uint64_t addr;
		uint32_t len;
	} rows[] = {
		{ all, SKUA_WQE_WRITE, 1, LEN }, { all, SKUA_WQE_READ, 0, LEN + 1 }, { all, SKUA_WQE_READ, ~0ull, 1 },
		{ all, SKUA_WQE_WRITE, AT + LEN, 1 }, { all, SKUA_WQE_READ, b->buf, 1 }, { all, SKUA_WQE_READ, HOSTMEM_END, 1 },
		{ empty, SKUA_WQE_READ, 0, 1 },
		{ must(w, b, mr_cmd(b, dmn, 0, SIZE, SKUA_ACCESS_REMOTE_READ)), SKUA_WQE_WRITE, 0, 8 },
		{ must(w, b, mr_cmd(b, dmn, 0, SIZE, SKUA_ACCESS_LOCAL_WRITE | SKUA_ACCESS_REMOTE_WRITE)), SKUA_WQE_READ, 0, 8 },
		{ (foreign.create_mr.pdn = htole32(must(w, b, (struct skua_cmd)CMD(SKUA_CMD_CREATE_PD))),
		   must(w, b, foreign)), SKUA_WQE_READ, 0, 8 },
		{ all ^ 1, SKUA_WQE_READ, 0, 8 },
	};

	fill(a, LEN + 1, 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		post(a, rows[i].opcode, SKUA_WQE_SIGNALED, a->buf, rows[i].len, rows[i].addr, rows[i].key, 0);
		expect(w, a, rows[i].opcode == SKUA_WQE_READ ? SKUA_CQE_READ : SKUA_CQE_WRITE, SKUA_CQE_REM_ACCESS_ERR);
		reconnect(w, a, b);
		reconnect(w, b, a);
		while (poll_aeq(b))
			;
	}
	/* All packets of a WRITE but the last may be placed before it is refused: it goes out of bounds as a whole. */
	assert_true(is_zero(content(w, b, dmn, SIZE), SIZE));
}

/* Its key ends like that of any MR, and is invalidated by nobody. */
static void keys_end(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t dmn = alloc(w, b, SIZE), key = must(w, b, mr_cmd(b, dmn, 0, SIZE, RIGHTS));

	post(b, SKUA_WQE_LOCAL_INV, SKUA_WQE_SIGNALED, 0, 0, 0, 0, key);
	expect_vendor(w, b, SKUA_CQE_LOCAL_INV, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_KEY_TYPE);
	reconnect(w, b, a);
	reconnect(w, a, b);
	must(w, b, object_cmd(SKUA_CMD_DESTROY_MR, key));
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 8, 0, key, 0);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_REM_ACCESS_ERR);
	assert_true(is_zero(content(w, b, dmn, SIZE), SIZE));
}

/* The device has no memory to lend to windows, whatever an MR of it is named for. */
static void no_window_is_bound(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint32_t key = must(w, n, mr_cmd(n, alloc(w, n, SIZE), 0, SIZE, RIGHTS));
	struct {
		struct skua_wqe_ctrl ctrl;
		struct skua_wqe_bind_mw bind;
		uint8_t padding[16];
	} k = {
		.ctrl = { .opcode = SKUA_WQE_BIND_MW, .flags = SKUA_WQE_SIGNALED, .nblocks = 1 },
		.bind = { .mr_key = htole32(key), .length = htole64(8), .access = htole32(SKUA_ACCESS_REMOTE_READ) },
	};

	k.bind.key = htole32(must(w, n, (struct skua_cmd)CMD(SKUA_CMD_CREATE_MW, .create_mw = {
		.pdn = htole32(n->pdn), .type = SKUA_MW_TYPE_1 })));
	post_block(n, &k);
	expect_vendor(w, n, SKUA_CQE_BIND_MW, SKUA_CQE_MW_BIND_ERR, SKUA_VENDOR_ERR_KEY_TYPE);
}

static void without_the_feature(void **state)
{
	struct world *w = world_create_with(false, FEATURES_OFFERED & ~(1ull << SKUA_F_DM));
	struct node *n = &w->n[0];
	const struct skua_device_caps *caps = query(w, n, (struct skua_cmd)CMD(SKUA_CMD_QUERY_DEVICE), sizeof(*caps));

	(void)state;
	assert_int_equal(caps->max_dm, 0);
	assert_int_equal(status_of(w, n, alloc_cmd(8, 0)), SKUA_CMD_BAD_OPCODE);
	assert_int_equal(status_of(w, n, object_cmd(SKUA_CMD_FREE_DM, 1)), SKUA_CMD_BAD_OPCODE);
	assert_int_equal(status_of(w, n, copy_cmd(1, 0, 0, n->buf, 8)), SKUA_CMD_BAD_OPCODE);
	assert_int_equal(status_of(w, n, mr_cmd(n, 1, 0, 8, 0)), SKUA_CMD_BAD_PARAM);
	world_destroy(w);
}

static void reset(struct world *w, struct node *n, struct node *peer)
{
	reg_write(n, SKUA_REG_CONTROL, SKUA_CONTROL_RESET);
	while (reg_read(n, SKUA_REG_STATUS) != SKUA_STATUS_READY)
		engine_step(n->engine);
	assert_int_equal(n->dev->dms.count, 0);
	assert_int_equal(n->dev->dm_used, 0);
	n->used = 0;
	revive(w, n);
	reconnect(w, n, peer);
	reconnect(w, peer, n);
}

/* With MRs or without. */
static void a_reset_ends_all(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t dmn[40];

	for (int i = 0; i < 40; i++) {
		dmn[i] = alloc(w, b, LIMIT_DM / 40 & ~4095u);
		write_dm(w, b, dmn[i], 4096, 1);
		if (i & 1)
			must(w, b, mr_cmd(b, dmn[i], 0, 8, RIGHTS));
	}
	reset(w, b, a);
	for (int i = 0; i < 40; i++)
		assert_int_equal(status_of(w, b, copy_cmd(dmn[i], SKUA_DM_TO_HOST, 0, b->buf, 4)), SKUA_CMD_BAD_OBJECT);
	dmn[0] = alloc(w, b, LIMIT_DM);
	assert_true(is_zero(content(w, b, dmn[0], LIMIT_DM), LIMIT_DM));
}

#define WORDS	(SKUA_DM_COPY_MAX / 8)
#define TURNS	500u

/* A program that changes the words which are copied from, and looks at those which are copied to. */
static struct {
	uint64_t *from, *to;
	uint64_t word;
	unsigned int turns, torn;
} program;

static bool is_whole(uint64_t word)
{
	return !word || word == ~0ull;
}

static void let_program_run_after(long us)
{
	const struct itimerval timer = { .it_value = { 0, us } };

	setitimer(ITIMER_REAL, &timer, NULL);
}

/* Its turn comes between any two instructions of the device, so the test needs no second processor. */
static void program_runs(int signal)
{
	(void)signal;
	program.word = ~program.word;
	for (unsigned int i = 0; i < WORDS; i++) {
		__atomic_store_n(&program.from[i], program.word, __ATOMIC_RELAXED);
		program.torn += !is_whole(__atomic_load_n(&program.to[i], __ATOMIC_RELAXED));
	}
	if (__atomic_add_fetch(&program.turns, 1, __ATOMIC_RELAXED) < TURNS)
		let_program_run_after(50);
}

/* What is copied lies behind @border where nobody may read, until the copy tries to. */
static struct {
	uint8_t *border;
	const uint64_t *word;
	volatile uint64_t seen;		/* the word of the DM, then */
} fault;

static void on_fault(int signal)
{
	(void)signal;
	fault.seen = __atomic_load_n(fault.word, __ATOMIC_RELAXED);
	mprotect(fault.border, 4096, PROT_READ | PROT_WRITE);
}

/* Half of a word of the DM lies in one region, the other half in the next one. */
static void a_word_from_two_regions_is_stored_once(void **state)
{
	const uint64_t there = EXTRA + EXTRA_SIZE;
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint8_t *pages = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sigaction action = { .sa_handler = on_fault }, before;
	uint32_t dmn = alloc(w, n, SIZE);
	const struct dm *dm = numtab_get(&n->dev->dms, dmn);

	memset(pages, 0xff, 3 * 4096);
	assert_int_equal(skua_dev_mem_map(n->dev, there, 4096, pages, true), 0);
	assert_int_equal(skua_dev_mem_map(n->dev, there + 4096, 4096, pages + 2 * 4096, true), 0);
	assert_int_equal(sigaction(SIGSEGV, &action, &before), 0);
	fault.border = pages + 2 * 4096;
	fault.word = (const uint64_t *)(const void *)(dm->mem + 8);
	fault.seen = 1;
	assert_int_equal(mprotect(fault.border, 4096, PROT_NONE), 0);
	must(w, n, copy_cmd(dmn, SKUA_DM_FROM_HOST, 4, there + 4096 - 8, 24));
	assert_int_equal(fault.seen, 0);
	assert_int_equal(*fault.word, ~0ull);
	sigaction(SIGSEGV, &before, NULL);
	assert_int_equal(skua_dev_mem_unmap(n->dev, there, 4096), 0);
	assert_int_equal(skua_dev_mem_unmap(n->dev, there + 4096, 4096), 0);
	munmap(pages, 3 * 4096);
}

static void no_word_is_torn(void **state)
{
	struct sigaction action = { .sa_handler = program_runs, .sa_flags = SA_RESTART }, before;
	struct world *w = *state;
	struct node *n = &w->n[0];
	const uint64_t *got = at(n, n->buf + LATER);
	uint32_t dmn = alloc(w, n, SKUA_DM_COPY_MAX), filled[2];
	unsigned int mixed = 0;

	program.from = at(n, n->buf);
	program.to = at(n, n->buf + 2 * LATER);
	program.turns = program.torn = 0;
	for (int i = 0; i < 2; i++) {
		filled[i] = alloc(w, n, SKUA_DM_COPY_MAX);
		memset(program.from, i ? 0xff : 0, SKUA_DM_COPY_MAX);
		must(w, n, copy_cmd(filled[i], SKUA_DM_FROM_HOST, 0, n->buf, SKUA_DM_COPY_MAX));
	}
	assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
	let_program_run_after(50);
	for (int i = 0; __atomic_load_n(&program.turns, __ATOMIC_RELAXED) < TURNS && i < 2000; i++) {
		must(w, n, copy_cmd(dmn, SKUA_DM_FROM_HOST, 0, n->buf, SKUA_DM_COPY_MAX));
		must(w, n, copy_cmd(dmn, SKUA_DM_TO_HOST, 0, n->buf + LATER, SKUA_DM_COPY_MAX));
		for (unsigned int j = 0; j < WORDS; j++)
			mixed += !is_whole(got[j]);
		must(w, n, copy_cmd(filled[i & 1], SKUA_DM_TO_HOST, 0, n->buf + 2 * LATER, SKUA_DM_COPY_MAX));
	}
	let_program_run_after(0);	/* never */
	sigaction(SIGALRM, &before, NULL);
	assert_true(program.turns);
	assert_int_equal(mixed, 0);
	assert_int_equal(program.torn, 0);
}

/* Its pages are given back some at a time; a reset may come in the midst. */
static void freed_in_steps(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];

	for (int with_reset = 0; with_reset < 2; with_reset++) {
		uint32_t dmn = alloc(w, n, LIMIT_DM);
		struct skua_cmd cmd = object_cmd(SKUA_CMD_FREE_DM, dmn);
		unsigned int steps = 0;

		write_dm(w, n, dmn, LIMIT_DM, 1);
		memcpy(at(n, n->cmd_ring + (n->cmd_pi & ((1 << LOG_CMD) - 1)) * sizeof(cmd)), &cmd, sizeof(cmd));
		host_store32(&((struct skua_dbr *)at(n, n->cmd_dbr))->pi, ++n->cmd_pi);
		ring(n, SKUA_DB_CMD, 0, n->cmd_pi);
		for (; n->dev->dms.count && !(with_reset && steps == 2); steps++)
			engine_step(n->engine);
		if (with_reset) {
			assert_in_range(n->dev->dm_used, 1, LIMIT_DM - 1);
			reset(w, n, &w->n[1]);
		} else {
			assert_in_range(steps, 4, 8);
			assert_int_equal(n->dev->dm_used, 0);
			settle(w);
			must(w, n, (struct skua_cmd)CMD(SKUA_CMD_NOP));
		}
	}
}

/* DESTROY_MR and FREE_DM while a peer, whose engine is held up, reads: it gets what was there, or is refused. */
static void freed_under_a_read(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	for (int i = 0; i < 20; i++) {
		uint32_t dmn = alloc(w, b, SIZE), key = must(w, b, mr_cmd(b, dmn, 0, SIZE, RIGHTS));
		struct skua_cqe *cqe;
		pthread_t thread;

		write_dm(w, b, dmn, SIZE, 3);
		fill(b, SIZE, 3);
		memset(at(a, a->buf), 0, SIZE);
		for (int j = 0; j < 4; j++)
			post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, SIZE, 0, key, 0);
		thread = begin_nap(a);
		must(w, b, object_cmd(SKUA_CMD_DESTROY_MR, key));
		must(w, b, object_cmd(SKUA_CMD_FREE_DM, dmn));
		pthread_join(thread, NULL);
		for (int j = 0; j < 4; j++) {
			cqe = await_cqe(w, a);
			if (cqe->status == SKUA_CQE_SUCCESS)
				assert_memory_equal(at(a, a->buf), at(b, b->buf), SIZE);
			else if (cqe->status != SKUA_CQE_WR_FLUSH_ERR)
				assert_int_equal(cqe->status, SKUA_CQE_REM_ACCESS_ERR);
		}
		reconnect(w, a, b);
		reconnect(w, b, a);
		while (poll_aeq(b))
			;
	}
}

static void shown(const void *arg_info, void *arg)
{
	const struct skua_mr_info *info = arg_info;
	struct skua_mr_info *seen = arg;

	if (!info->window && info->type == SKUA_MR_DM)
		*seen = *info;
}

static void are_shown(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint32_t key = must(w, n, mr_cmd(n, alloc(w, n, SIZE), AT, LEN, RIGHTS));
	struct skua_mr_info seen = { 0 };
	struct skua_walk walk = { 0 };

	while (skua_dev_for_each_mr(n->dev, &walk, shown, &seen))
		;
	assert_int_equal(seen.key, key);
	assert_int_equal(seen.iova, 0);
	assert_int_equal(seen.length, LEN);
	assert_int_equal(seen.pages, 0);
	assert_int_equal(seen.page_size, 0);
}

#define TABLE(f, rules)	{ rules ": " #f, f, NULL, NULL, NULL }

int main(void)
{
	const struct CMUnitTest tests[] = {
		STEPPED(is_zero_when_new, "DM-1 DM-3 CMD-13"),
		STEPPED(sizes_and_alignments, "DM-1 DM-2 CMD-14 LIM-1"),
		STEPPED(as_much_as_there_is, "DM-2 LIM-1 OBJ-6"),
		STEPPED(copied_to_and_fro, "DM-6 DM-7"),
		STEPPED(others_stay, "DM-3 DM-6"),
		STEPPED(copies_that_may_not_be, "DM-6 CMD-11 CMD-12"),
		STEPPED(fields_that_are_reserved, "DM-4 CMD-11 GEN-2"),
		STEPPED(regions_that_may_not_be, "DM-4 MR-3 MR-9 CMD-11 CMD-12"),
		STEPPED(a_dm_with_regions_is_busy, "DM-3 DM-4 MR-8 OBJ-7"),
		STEPPED(written_and_read_by_peers, "DM-4 DM-5 DM-7"),
		STEPPED(used_by_local_work, "DM-5 MEM-3"),
		STEPPED(words, "DM-5 DM-7 ATM-3"),
		STEPPED(bounds_and_rights, "DM-4 DM-5 MR-8 MEM-1 MEM-2 MEM-3"),
		STEPPED(keys_end, "DM-5 MEM-7 MR-6"),
		STEPPED(no_window_is_bound, "DM-5 MW-6 MW-7"),
		TABLE(without_the_feature, "FEA-2"),
		STEPPED(a_reset_ends_all, "DM-1 DM-8 RST-1"),
		STEPPED(freed_in_steps, "DM-3 DM-8 CMD-8"),
		STEPPED(no_word_is_torn, "DM-7"),
		STEPPED(a_word_from_two_regions_is_stored_once, "DM-7"),
		THREADED(freed_under_a_read, "DM-3 MEM-12"),
		STEPPED(are_shown, "DM-4"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
