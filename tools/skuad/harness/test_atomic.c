// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* CMP_SWAP and FETCH_ADD, masked or not: values, faults, and that each is carried out once. */
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>

#include "core/qp.h"
#include "harness/harness.h"
#include "roce/rc.h"
#include "roce/resp.h"

struct atomic_block {
	struct skua_wqe_ctrl ctrl;
	struct skua_wqe_atomic atomic;
	struct skua_sge sge;
};

struct masked_block {
	struct skua_wqe_ctrl ctrl;
	struct skua_wqe_masked_atomic atomic;
	struct skua_sge sge;
	uint8_t padding[48];
};

/* A masked atomic, and what it makes of a word. */
struct masked {
	uint8_t opcode;
	uint64_t old, swap_add, compare, swap_add_mask, compare_mask, new;
};

/* What each side adds to a word that both use. */
#define HOST_ADDS	1ull
#define DEVICE_ADDS	(1ull << 40)

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#define RIGHTS (ALL_RIGHTS | SKUA_ACCESS_REMOTE_ATOMIC)

/* A world whose regions and QPs allow atomics. */
static int setup_world(void **state, bool threaded)
{
	struct world *w = world_create(threaded);

	for (int i = 0; i < 2; i++) {
		struct node *n = &w->n[i];
		struct skua_cmd mr = create_mr_cmd(n);
		struct skua_cmd rights = CMD(SKUA_CMD_MODIFY_QP, .modify_qp = {
			.qpn = htole32(n->qpn), .mask = htole32(SKUA_QP_ATTR_ACCESS),
			.attr = { .access = htole32(RIGHTS & ~SKUA_ACCESS_LOCAL_WRITE) } });

		mr.create_mr.access = htole32(RIGHTS);
		assert_int_equal(command(w, n, &mr), SKUA_CMD_OK);
		n->key = n->number;
		assert_int_equal(command(w, n, &rights), SKUA_CMD_OK);
	}
	*state = w;
	return 0;
}

static int setup(void **state)
{
	return setup_world(state, false);
}

static int setup_atomic_threads(void **state)
{
	return setup_world(state, true);
}

static void post_masked(struct node *a, struct node *b, uint64_t to, uint64_t raddr, const struct masked *m)
{
	struct masked_block block = {
		.ctrl = { .opcode = m->opcode, .flags = SKUA_WQE_SIGNALED, .nblocks = 2, .num_sge = 1,
			  .cookie = htole32(a->sq_pi) },
		.atomic = { htole64(raddr), htole32(b->key), 0, htole64(m->swap_add), htole64(m->compare),
			    htole64(m->swap_add_mask), htole64(m->compare_mask) },
		.sge = { htole64(to), htole32(8), htole32(a->key) },
	};

	post_blocks(a, &block, 2);
}

/* The masks of masked atomics are those with which they do what the plain ones do. */
static void post_like_plain(struct node *a, struct node *b, uint64_t to, uint8_t opcode, uint64_t raddr,
			    uint64_t swap_add, uint64_t compare)
{
	uint64_t mask = opcode == SKUA_WQE_MASKED_CMP_SWAP ? ~0ull : 0;
	struct masked m = { opcode, 0, swap_add, compare, mask, mask, 0 };

	post_masked(a, b, to, raddr, &m);
}

static uint8_t cqe_of(uint8_t opcode)
{
	static const uint8_t of[] = {
		[SKUA_WQE_CMP_SWAP] = SKUA_CQE_CMP_SWAP, [SKUA_WQE_FETCH_ADD] = SKUA_CQE_FETCH_ADD,
		[SKUA_WQE_MASKED_CMP_SWAP] = SKUA_CQE_MASKED_CMP_SWAP,
		[SKUA_WQE_MASKED_FETCH_ADD] = SKUA_CQE_MASKED_FETCH_ADD,
	};

	return of[opcode];
}

/* What it fetches goes to @to. */
static void post_atomic_to(struct node *a, struct node *b, uint64_t to, uint8_t opcode, uint64_t raddr,
			   uint64_t swap_add, uint64_t compare)
{
	struct atomic_block block = {
		.ctrl = { .opcode = opcode, .flags = SKUA_WQE_SIGNALED, .nblocks = 1, .num_sge = 1,
			  .cookie = htole32(a->sq_pi) },
		.atomic = { htole64(raddr), htole32(b->key), 0, htole64(swap_add), htole64(compare) },
		.sge = { htole64(to), htole32(8), htole32(a->key) },
	};

	if (opcode >= SKUA_WQE_MASKED_CMP_SWAP)
		post_like_plain(a, b, to, opcode, raddr, swap_add, compare);
	else
		post_block(a, &block);
}

static void post_atomic(struct node *a, struct node *b, uint8_t opcode, uint64_t raddr,
			uint64_t swap_add, uint64_t compare)
{
	post_atomic_to(a, b, a->buf, opcode, raddr, swap_add, compare);
}

static uint64_t word(struct node *n, uint64_t iova)
{
	uint64_t v;

	memcpy(&v, at(n, iova), 8);
	return le64toh(v);
}

static void set_word(struct node *n, uint64_t iova, uint64_t v)
{
	v = htole64(v);
	memcpy(at(n, iova), &v, 8);
}

static void values(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	set_word(b, b->buf + 8, 100);
	post_atomic(a, b, SKUA_WQE_FETCH_ADD, b->buf + 8, 23, 0);
	expect(w, a, SKUA_CQE_FETCH_ADD, SKUA_CQE_SUCCESS);
	assert_int_equal(word(a, a->buf), 100);
	assert_int_equal(word(b, b->buf + 8), 123);
	post_atomic(a, b, SKUA_WQE_FETCH_ADD, b->buf + 8, ~0ull, 0);
	expect(w, a, SKUA_CQE_FETCH_ADD, SKUA_CQE_SUCCESS);
	assert_int_equal(word(b, b->buf + 8), 122);
	post_atomic(a, b, SKUA_WQE_CMP_SWAP, b->buf + 8, 0x1122334455667788, 122);
	expect(w, a, SKUA_CQE_CMP_SWAP, SKUA_CQE_SUCCESS);
	assert_int_equal(word(a, a->buf), 122);
	assert_true(word(b, b->buf + 8) == 0x1122334455667788);
	post_atomic(a, b, SKUA_WQE_CMP_SWAP, b->buf + 8, 1, 122);
	expect(w, a, SKUA_CQE_CMP_SWAP, SKUA_CQE_SUCCESS);
	assert_true(word(a, a->buf) == 0x1122334455667788);
	assert_true(word(b, b->buf + 8) == 0x1122334455667788);
}

/* The word of @to has the value that @m expects, and then the one that @m makes of it; the old one is fetched. */
static void expect_masked(struct world *w, struct node *from, struct node *to, const struct masked *m)
{
	set_word(to, to->buf + 8, m->old);
	set_word(from, from->buf + 64, ~m->old);
	post_masked(from, to, from->buf + 64, to->buf + 8, m);
	expect(w, from, cqe_of(m->opcode), SKUA_CQE_SUCCESS);
	assert_true(word(from, from->buf + 64) == m->old);
	assert_true(word(to, to->buf + 8) == m->new);
}

#define BYTES(b)	(0x0101010101010101ull * (b))

static void masked_values(void **state)
{
#define SWAP(...)	{ SKUA_WQE_MASKED_CMP_SWAP, __VA_ARGS__ }
#define ADD(...)	{ SKUA_WQE_MASKED_FETCH_ADD, __VA_ARGS__ }
	static const struct masked rows[] = {
		/* old, swap_add, compare, swap_add_mask, compare_mask, new */
		SWAP(122, BYTES(0x77), 122, ~0ull, ~0ull, BYTES(0x77)),
		SWAP(123, BYTES(0x77), 122, ~0ull, ~0ull, 123),
		SWAP(BYTES(0x55), BYTES(0xff), 0x1234567855555555, 0xffff0000ffff0000, 0xffffffff, 0xffff5555ffff5555),
		SWAP(BYTES(0x55), 0, BYTES(0x54), 0xff, BYTES(0xfe), 0x5555555555555500),
		SWAP(BYTES(0x55), 0, BYTES(0x55) ^ 1ull << 63, 0xff, 1ull << 63 | 1, BYTES(0x55)),
		SWAP(BYTES(0x55), BYTES(0xaa), ~0ull, 0xf0, 0, 0x55555555555555a5),	/* whatever it was */
		SWAP(BYTES(0x55), BYTES(0xaa), BYTES(0x55), 0, ~0ull, BYTES(0x55)),
		/* The manual's example. */
		ADD(0x000000010000ffff, 0x0000000000010001, 0, 0x0000000000008000, 0, 0x0000000100010000),
		ADD(0x00000000ffffffff, 1, 0, 0, 0, 0x0000000100000000),
		ADD(~0ull, 1, 0, 0, 0, 0),
		ADD(~0ull, 2, 0, 1ull << 63, 0, 1),
		ADD(0xff01ff01ff01ff01, BYTES(1), 0, BYTES(0x80), 0, 0x0002000200020002),
		ADD(0x7f7f7f7f7f7f7f7f, BYTES(1), 0, BYTES(0x80), 0, BYTES(0x80)),
		ADD(0xff00ff00ff00ff00, 0xffff0000ffff0000, 0, ~0ull, 0, 0x00ffff0000ffff00),	/* of single bits */
		ADD(BYTES(0x55), 0, 0, BYTES(0x80), 0, BYTES(0x55)),
	};
#undef SWAP
#undef ADD
	struct world *w = *state;

	for (size_t i = 0; i < 2 * ARRAY_SIZE(rows); i++)
		expect_masked(w, &w->n[i & 1], &w->n[!(i & 1)], &rows[i / 2]);
	assert_int_equal(STAT(w, &w->n[0], rdma_tx_atomic), ARRAY_SIZE(rows));
	assert_int_equal(STAT(w, &w->n[0], rdma_rx_atomic), ARRAY_SIZE(rows));
}

/* Bit by bit. */
static uint64_t sum_of_fields(uint64_t a, uint64_t b, uint64_t tops)
{
	uint64_t sum = 0, carry = 0;

	for (unsigned int i = 0; i < 64; i++) {
		uint64_t bits = (a >> i & 1) + (b >> i & 1) + carry;

		sum |= (bits & 1) << i;
		carry = tops >> i & 1 ? 0 : bits >> 1;
	}
	return sum;
}

static void masked_sums(void **state)
{
	struct world *w = *state;
	uint64_t r = 1;

	for (int i = 0; i < 500; i++) {
		struct masked m = { .opcode = SKUA_WQE_MASKED_FETCH_ADD };
		uint64_t *const random[] = { &m.old, &m.swap_add, &m.swap_add_mask };

		for (size_t k = 0; k < ARRAY_SIZE(random); k++) {
			r = r * 6364136223846793005 + 1442695040888963407;
			*random[k] = r ^ r >> 29;
		}
		/* Few fields, too. */
		if (i & 1)
			m.swap_add_mask &= m.swap_add_mask >> 21 & m.swap_add_mask << 17;
		m.new = sum_of_fields(m.old, m.swap_add, m.swap_add_mask);
		expect_masked(w, &w->n[0], &w->n[1], &m);
	}
}

static const uint8_t additions[] = { SKUA_WQE_FETCH_ADD, SKUA_WQE_MASKED_FETCH_ADD };

static void faults(void **state)
{
	static const struct { int64_t offset; uint32_t key; uint8_t status; } bad[] = {
		{ 4, 0, SKUA_CQE_REM_INV_REQ_ERR },		/* not aligned */
		{ 4096, 0, SKUA_CQE_REM_ACCESS_ERR },
		{ -8, 0, SKUA_CQE_REM_ACCESS_ERR },
		{ 0, 1, SKUA_CQE_REM_ACCESS_ERR },
	};

	for (size_t i = 0; i < 2 * ARRAY_SIZE(bad); i++) {
		uint8_t opcode = additions[i & 1];
		struct world *w;
		struct node *a, *b;

		setup(state);
		w = *state;
		a = &w->n[0];
		b = &w->n[1];
		b->key ^= bad[i / 2].key;
		post_atomic(a, b, opcode, b->buf + (uint64_t)bad[i / 2].offset, 1, 0);
		expect(w, a, cqe_of(opcode), bad[i / 2].status);
		world_destroy(w);
	}
}

/* Its address is a multiple of 8, but the region begins askew. */
static void a_word_in_two_pieces(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cmd mr = create_mr_cmd(b);

	mr.create_mr.access = htole32(RIGHTS);
	mr.create_mr.length = htole64(4096 - 4);
	mr.create_mr.pages.offset = htole64(4);
	b->key = must(w, b, mr);
	memset(at(b, b->buf), 0, 4096);
	post_atomic(a, b, SKUA_WQE_FETCH_ADD, le64toh(mr.create_mr.iova), 1, 0);
	expect(w, a, SKUA_CQE_FETCH_ADD, SKUA_CQE_REM_ACCESS_ERR);
	assert_int_equal(word(b, b->buf) + word(b, b->buf + 8), 0);
}

static void rights_are_needed(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(additions); i++) {
		struct world *w = world_create(false);	/* nobody gave the right */
		struct node *a = &w->n[0], *b = &w->n[1];

		set_word(b, b->buf, 5);
		post_atomic(a, b, additions[i], b->buf, 1, 0);
		expect(w, a, cqe_of(additions[i]), SKUA_CQE_REM_ACCESS_ERR);
		assert_int_equal(word(b, b->buf), 5);
		world_destroy(w);
	}
}

/* What cannot be stored here is not carried out there. */
static void a_bad_result_buffer_changes_nothing(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(additions); i++) {
		struct world *w;
		struct node *a, *b;

		setup(state);
		w = *state;
		a = &w->n[0];
		b = &w->n[1];
		set_word(b, b->buf, 5);
		a->key ^= 1;
		post_atomic(a, b, additions[i], b->buf, 1, 0);
		expect(w, a, cqe_of(additions[i]), SKUA_CQE_LOC_PROT_ERR);
		assert_int_equal(word(b, b->buf), 5);
		world_destroy(w);
	}
}

#define GROUPS	6u
#define ADDED	1000000u

/*
 * Each group of WQEs has a word of its own, and all groups count in another one. The result of each WQE shows which
 * were carried out before it.
 */
static void many_in_order(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint64_t count = b->buf, words = b->buf + 64, results = a->buf + 2048;

	set_word(b, count, 0);
	for (uint64_t round = 0; round < 50; round++) {
		memset(at(a, results), 0xee, 64 * GROUPS);
		for (uint64_t i = 0; i < GROUPS; i++) {
			uint64_t to = results + 64 * i, own = words + 8 * i, from = a->buf + 8 * i;

			set_word(a, from, 1000 * round + i);
			post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, from, 8, own, b->key, 0);
			for (uint64_t j = 0; j < 2; j++) {
				post_atomic_to(a, b, to + 16 * j, SKUA_WQE_FETCH_ADD, own, ADDED, 0);
				post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, to + 16 * j + 8, 8, own, b->key, 0);
			}
			post_atomic_to(a, b, to + 32, SKUA_WQE_FETCH_ADD, count, 1, 0);
			post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, to + 40, 8, count, b->key, 0);
		}
		for (uint64_t i = 0; i < 7 * GROUPS; i++)
			assert_int_equal(await_cqe(w, a)->status, SKUA_CQE_SUCCESS);
		for (uint64_t i = 0; i < GROUPS; i++) {
			uint64_t to = results + 64 * i, written = 1000 * round + i, counted = GROUPS * round + i;

			assert_int_equal(word(a, to), written);
			assert_int_equal(word(a, to + 8), written + ADDED);
			assert_int_equal(word(a, to + 16), written + ADDED);
			assert_int_equal(word(a, to + 24), written + 2 * ADDED);
			assert_int_equal(word(a, to + 32), counted);
			assert_int_equal(word(a, to + 40), counted + 1);
		}
	}
}

static uint64_t *word_in_use;

/* A processor of the host adds to the word, between the device's look at it and its store. */
static void add_on_store(int signal)
{
	(void)signal;
	mprotect(word_in_use, SKUA_PAGE_SIZE, PROT_READ | PROT_WRITE);
	__atomic_add_fetch(word_in_use, htole64(HOST_ADDS), __ATOMIC_SEQ_CST);
}

/* An atomic of the device on a word of @b, alone in its page, to which the host has just added. Returns what it fetched. */
static uint64_t atomic_amid_an_addition(struct world *w, uint8_t opcode, uint64_t swap_add, uint64_t compare)
{
	struct sigaction action = { .sa_handler = add_on_store }, before;
	struct node *a = &w->n[0], *b = &w->n[1];

	word_in_use = at(b, b->buf);
	assert_int_equal(sigaction(SIGSEGV, &action, &before), 0);
	assert_int_equal(mprotect(word_in_use, SKUA_PAGE_SIZE, PROT_READ), 0);
	post_atomic(a, b, opcode, b->buf, swap_add, compare);
	settle(w);
	mprotect(word_in_use, SKUA_PAGE_SIZE, PROT_READ | PROT_WRITE);
	sigaction(SIGSEGV, &before, NULL);
	assert_int_equal(await_cqe(w, a)->status, SKUA_CQE_SUCCESS);
	return word(a, a->buf);
}

static void amid_an_addition_of_the_host(void **state)
{
	struct world *w = *state;
	struct node *b = &w->n[1];

	set_word(b, b->buf, 5);
	assert_int_equal(atomic_amid_an_addition(w, SKUA_WQE_FETCH_ADD, DEVICE_ADDS, 0), 5 + HOST_ADDS);
	assert_true(word(b, b->buf) == 5 + HOST_ADDS + DEVICE_ADDS);
	/* It is not equal any more. */
	set_word(b, b->buf, 5);
	assert_int_equal(atomic_amid_an_addition(w, SKUA_WQE_CMP_SWAP, 9, 5), 5 + HOST_ADDS);
	assert_int_equal(word(b, b->buf), 5 + HOST_ADDS);
	set_word(b, b->buf, 5);
	assert_int_equal(atomic_amid_an_addition(w, SKUA_WQE_MASKED_FETCH_ADD, DEVICE_ADDS, 0), 5 + HOST_ADDS);
	assert_true(word(b, b->buf) == 5 + HOST_ADDS + DEVICE_ADDS);
	set_word(b, b->buf, 5);
	assert_int_equal(atomic_amid_an_addition(w, SKUA_WQE_MASKED_CMP_SWAP, 9, 5), 5 + HOST_ADDS);
	assert_int_equal(word(b, b->buf), 5 + HOST_ADDS);
}

#define DEVICE_TIMES	1000

/* A processor of the host, which uses the words at the same time as the device. */
struct processor {
	uint64_t *added, *swapped;
	uint64_t times, changes;	/* how often it added to each */
	int rounds;			/* of the device: it adds to @swapped once in each */
	bool stop;
};

static void *process(void *arg)
{
	struct processor *p = arg;
	int rounds = 0;

	while (!__atomic_load_n(&p->stop, __ATOMIC_RELAXED)) {
		__atomic_add_fetch(p->added, htole64(HOST_ADDS), __ATOMIC_RELAXED);
		__atomic_add_fetch(&p->times, 1, __ATOMIC_RELAXED);
		if (__atomic_load_n(&p->rounds, __ATOMIC_RELAXED) == rounds)
			continue;
		rounds = __atomic_load_n(&p->rounds, __ATOMIC_RELAXED);
		__atomic_add_fetch(p->swapped, htole64(HOST_ADDS), __ATOMIC_RELAXED);
		p->changes++;
	}
	return NULL;
}

static void beside_a_processor_of_the_host(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct processor host = { .added = at(b, b->buf), .swapped = at(b, b->buf + 64) };
	uint64_t swaps = 0, seen = 0;
	pthread_t thread;

	set_word(b, b->buf, 0);
	set_word(b, b->buf + 64, 0);
	assert_int_equal(pthread_create(&thread, NULL, process, &host), 0);
	while (!__atomic_load_n(&host.times, __ATOMIC_RELAXED))
		sched_yield();
	for (int i = 0; i < DEVICE_TIMES; i++) {
		/* Seldom enough for the device to meet a value that it has just been told. */
		__atomic_store_n(&host.rounds, i / 4, __ATOMIC_RELAXED);
		post_atomic(a, b, SKUA_WQE_FETCH_ADD, b->buf, DEVICE_ADDS, 0);
		expect(w, a, SKUA_CQE_FETCH_ADD, SKUA_CQE_SUCCESS);
		post_atomic(a, b, SKUA_WQE_CMP_SWAP, b->buf + 64, seen + DEVICE_ADDS, seen);
		expect(w, a, SKUA_CQE_CMP_SWAP, SKUA_CQE_SUCCESS);
		swaps += word(a, a->buf) == seen;
		seen = word(a, a->buf) == seen ? seen + DEVICE_ADDS : word(a, a->buf);
	}
	__atomic_store_n(&host.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_true(host.changes > 0 && swaps > 0);
	assert_true(word(b, b->buf) == DEVICE_TIMES * DEVICE_ADDS + host.times * HOST_ADDS);
	assert_true(word(b, b->buf + 64) == swaps * DEVICE_ADDS + host.changes * HOST_ADDS);
}

/* The peer did not hear the answer and asks again: it gets the same, and nothing is added. */
static void a_request_that_comes_again(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_qp *qp = numtab_get(&b->dev->qps, b->qpn);
	const struct roce_resp *resp = &rc_of(qp)->resp;
	struct train again = {
		.op = TRAIN_FETCH_ADD, .first = true, .last = true, .ack_req = true, .npkts = 1,
		.psn = 0xfffffe, .pmtu = 1024, .raddr = b->buf, .rkey = b->key, .swap_add = 1,
	};

	set_word(b, b->buf, 5);
	for (uint64_t i = 0; i < 4; i++) {
		post_atomic(a, b, SKUA_WQE_FETCH_ADD, b->buf, 1, 0);
		expect(w, a, SKUA_CQE_FETCH_ADD, SKUA_CQE_SUCCESS);
		assert_int_equal(word(a, a->buf), 5 + i);
	}
	for (int i = 0; i < 3; i++) {
		resp_rx(qp, &again);
		settle(w);
		assert_int_equal(word(b, b->buf), 9);
		assert_int_equal(resp->jobs[(resp->jobs_head - 1) % (2 * resp->jobs_size)].swap_add, 5);
	}
	/* While its answer waits for its turn, it is not answered again. */
	for (int i = 0; i < 3; i++)
		resp_rx(qp, &again);
	assert_int_equal(resp->jobs_again, 1);
	settle(w);
	assert_int_equal(word(b, b->buf), 9);
	/* One that is too old is forgotten, and not carried out either. */
	post_atomic(a, b, SKUA_WQE_FETCH_ADD, b->buf, 1, 0);
	expect(w, a, SKUA_CQE_FETCH_ADD, SKUA_CQE_SUCCESS);
	resp_rx(qp, &again);
	settle(w);
	assert_int_equal(word(b, b->buf), 10);
	assert_int_equal(qp_state(w, b, b->qpn), SKUA_QPS_RTS);
}

/* Among the last requests, in any order: each is answered with what it fetched. No other request has that answer. */
static void masked_requests_that_come_again(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_qp *qp = numtab_get(&b->dev->qps, b->qpn);
	const struct roce_resp *resp = &rc_of(qp)->resp;
	struct train again = {
		.op = TRAIN_MASKED_FETCH_ADD, .first = true, .last = true, .ack_req = true, .npkts = 1,
		.psn = 0xfffffe, .pmtu = 1024, .raddr = b->buf, .rkey = b->key, .swap_add = 1,
	};

	set_word(b, b->buf, 5);
	post_atomic(a, b, SKUA_WQE_MASKED_FETCH_ADD, b->buf, 1, 0);
	expect(w, a, SKUA_CQE_MASKED_FETCH_ADD, SKUA_CQE_SUCCESS);
	post_atomic(a, b, SKUA_WQE_MASKED_CMP_SWAP, b->buf, 5, 6);
	expect(w, a, SKUA_CQE_MASKED_CMP_SWAP, SKUA_CQE_SUCCESS);
	for (uint64_t i = 0; i < 4; i++) {
		again.op = i & 1 ? TRAIN_MASKED_CMP_SWAP : TRAIN_MASKED_FETCH_ADD;
		again.psn = psn_add(0xfffffe, i & 1);
		resp_rx(qp, &again);
		settle(w);
		assert_int_equal(word(b, b->buf), 5);
		assert_int_equal(resp->jobs[(resp->jobs_head - 1) % (2 * resp->jobs_size)].swap_add, 5 + (i & 1));
	}
	again.op = TRAIN_CMP_SWAP;
	resp_rx(qp, &again);
	assert_int_equal(resp->jobs_again, 0);
	assert_int_equal(STAT(w, b, rdma_rx_atomic), 2);
	assert_int_equal(qp_state(w, b, b->qpn), SKUA_QPS_RTS);
}

int main(void)
{
#define ATOMIC(f, rules) { rules ": " #f, f, setup, teardown, NULL }
	const struct CMUnitTest tests[] = {
		ATOMIC(values, "ATM-1"),
		ATOMIC(masked_values, "ATM-6 ATM-7"),
		ATOMIC(masked_sums, "ATM-7"),
		{ "ATM-3 ATM-8 MEM-3: faults", faults, NULL, NULL, NULL },
		{ "ATM-3 ATM-8 MEM-3: rights_are_needed", rights_are_needed, NULL, NULL, NULL },
		ATOMIC(a_word_in_two_pieces, "ATM-3"),
		{ "ATM-4 ATM-8: a_bad_result_buffer_changes_nothing", a_bad_result_buffer_changes_nothing, NULL, NULL,
		  NULL },
		ATOMIC(many_in_order, "ORD-1 ATM-5 ROC-8"),
		ATOMIC(amid_an_addition_of_the_host, "ATM-2 ATM-8"),
		{ "ATM-2: beside_a_processor_of_the_host", beside_a_processor_of_the_host, setup_atomic_threads, teardown,
		  NULL },
		ATOMIC(a_request_that_comes_again, "ATM-5 ROC-24"),
		ATOMIC(masked_requests_that_come_again, "ATM-5 ATM-8 ROC-23"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
