// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* FLUSH and ATOMIC WRITE: what they do, their rights and faults, and requests that come again. */
#include "core/qp.h"
#include "harness/harness.h"
#include "nic/control.h"
#include "roce/rc.h"

struct block {
	struct skua_wqe_ctrl ctrl;
	struct skua_wqe_rdma rdma;
	union {
		struct skua_sge sge[2];
		uint8_t bytes[32];
	};
};

#define RIGHTS	(ALL_RIGHTS | SKUA_ACCESS_FLUSH_GLOBAL)
#define MAX_RD	4	/* of the harness's QPs */

static void give_rights(struct world *w, struct node *n, uint32_t mr_rights, uint32_t qp_rights)
{
	struct skua_cmd mr = create_mr_cmd(n);

	mr.create_mr.access = htole32(mr_rights);
	n->key = must(w, n, mr);
	must(w, n, modify_cmd(n->qpn, SKUA_QP_ATTR_ACCESS,
			      (struct skua_qp_attr){ .access = htole32(qp_rights & ~SKUA_ACCESS_LOCAL_WRITE) }));
}

/* A world whose regions and QPs allow FLUSHes. */
static int setup(void **state)
{
	struct world *w = world_create(false);

	for (int i = 0; i < 2; i++)
		give_rights(w, &w->n[i], RIGHTS, RIGHTS);
	*state = w;
	return 0;
}

static struct skua_qp *qp_of(struct node *n)
{
	return numtab_get(&n->dev->qps, n->qpn);
}

static struct block flush(struct node *a, struct node *b, uint32_t what, uint64_t raddr, uint32_t length)
{
	return (struct block){
		.ctrl = { .opcode = SKUA_WQE_FLUSH, .flags = SKUA_WQE_SIGNALED, .nblocks = 1, .length = htole32(length),
			  .cookie = htole32(a->sq_pi) },
		.rdma = { htole64(raddr), htole32(b->key), htole32(what) },
	};
}

static struct block inline_word(struct node *a, struct node *b, uint64_t raddr, uint64_t value)
{
	struct block k = {
		.ctrl = { .opcode = SKUA_WQE_ATOMIC_WRITE, .flags = SKUA_WQE_SIGNALED | SKUA_WQE_INLINE, .nblocks = 1,
			  .length = htole32(8), .cookie = htole32(a->sq_pi) },
		.rdma = { htole64(raddr), htole32(b->key), 0 },
	};

	memcpy(k.bytes, &value, sizeof(value));
	return k;
}

static struct block sge_word(struct node *a, struct node *b, uint64_t raddr, uint64_t addr)
{
	return (struct block){
		.ctrl = { .opcode = SKUA_WQE_ATOMIC_WRITE, .flags = SKUA_WQE_SIGNALED, .nblocks = 1, .num_sge = 1,
			  .cookie = htole32(a->sq_pi) },
		.rdma = { htole64(raddr), htole32(b->key), 0 },
		.sge[0] = { htole64(addr), htole32(8), htole32(a->key) },
	};
}

static void post_flush(struct node *a, struct node *b, uint32_t what)
{
	struct block k = flush(a, b, what, b->buf, 4096);

	post_block(a, &k);
}

static void post_word(struct node *a, struct node *b, uint64_t raddr, uint64_t value)
{
	struct block k = inline_word(a, b, raddr, value);

	post_block(a, &k);
}

static uint64_t word(struct node *n, uint64_t iova)
{
	uint64_t v;

	memcpy(&v, at(n, iova), sizeof(v));
	return v;
}

static void mute(struct world *w, struct node *n)
{
	must(w, n, port_cmd(SKUA_PORT_SET_FLAGS, 0));
}

static void unmute(struct world *w, struct node *n)
{
	must(w, n, port_cmd(SKUA_PORT_SET_FLAGS, SKUA_PORT_F_ENABLE | SKUA_PORT_F_ROCE));
}

/* What was written before is there when the FLUSH completes. */
static void a_flush_of_what_was_written(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cqe *cqe;

	fill(a, 4096, 3);
	post(a, SKUA_WQE_WRITE, 0, a->buf, 4096, b->buf, b->key, 0);
	post_flush(a, b, SKUA_FLUSH_GLOBAL);
	cqe = await_cqe(w, a);
	assert_int_equal(cqe->opcode, SKUA_CQE_FLUSH);
	assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
	assert_int_equal(le32toh(cqe->byte_len), 0);
	assert_memory_equal(at(b, b->buf), at(a, a->buf), 4096);
	assert_int_equal(STAT(w, a, rdma_tx_flush), 1);
	assert_int_equal(STAT(w, b, rdma_rx_flush), 1);
}

/* Of the whole MR, whatever address and length are; of nothing; and of its last byte. */
static void ranges_and_whole_regions(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	const struct block good[] = {
		flush(a, b, SKUA_FLUSH_GLOBAL | SKUA_FLUSH_MR, 1, 0x7fffffff),
		flush(a, b, SKUA_FLUSH_GLOBAL | SKUA_FLUSH_MR, ~0ull, 0),
		flush(a, b, SKUA_FLUSH_GLOBAL, b->buf, 0),
		flush(a, b, SKUA_FLUSH_GLOBAL, b->buf + 4095, 1),
	};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		post_block(a, &good[i]);
		expect(w, a, SKUA_CQE_FLUSH, SKUA_CQE_SUCCESS);
	}
}

/* One request of @a in a world of its own. */
#define TRY(base, cqe_opcode, status_, vendor, ...) do {		\
	struct world *w;						\
	struct node *a, *b;						\
	struct block k;							\
	void *world_;							\
									\
	setup(&world_);							\
	w = world_;							\
	a = &w->n[0];							\
	b = &w->n[1];							\
	k = base;							\
	__VA_ARGS__;							\
	post_block(a, &k);						\
	expect_vendor(w, a, SKUA_CQE_##cqe_opcode, SKUA_CQE_##status_, SKUA_VENDOR_ERR_##vendor); \
	world_destroy(w);						\
} while (0)

#define GOOD_FLUSH	flush(a, b, SKUA_FLUSH_GLOBAL, b->buf, 64)
#define GOOD_WORD	inline_word(a, b, b->buf, 1)

static void formats_of_a_flush(void **state)
{
	(void)state;
	TRY(GOOD_FLUSH, FLUSH, LOC_QP_OP_ERR, WQE_FORMAT, k.rdma.flush = 0);
	TRY(GOOD_FLUSH, FLUSH, LOC_QP_OP_ERR, WQE_FORMAT, k.rdma.flush = htole32(SKUA_FLUSH_MR));
	TRY(GOOD_FLUSH, FLUSH, LOC_QP_OP_ERR, WQE_FORMAT, k.rdma.flush |= htole32(4));
	TRY(GOOD_FLUSH, FLUSH, LOC_QP_OP_ERR, WQE_FORMAT, k.rdma.flush |= htole32(0x20));
	TRY(GOOD_FLUSH, FLUSH, LOC_QP_OP_ERR, WQE_FORMAT, k.rdma.flush |= htole32(0x100));
	TRY(GOOD_FLUSH, FLUSH, LOC_QP_OP_ERR, WQE_FORMAT, k.ctrl.num_sge = 1);
	TRY(GOOD_FLUSH, FLUSH, LOC_QP_OP_ERR, WQE_FORMAT, k.ctrl.flags |= SKUA_WQE_INLINE);
	TRY(GOOD_FLUSH, FLUSH, LOC_QP_OP_ERR, WQE_FORMAT, k.ctrl.imm_data = 1);
	TRY(GOOD_FLUSH, FLUSH, LOC_LEN_ERR, MSG_TOO_LONG, k.ctrl.length = htole32(0x80000001));
}

static void formats_of_an_atomic_write(void **state)
{
	(void)state;
	TRY(GOOD_WORD, ATOMIC_WRITE, LOC_QP_OP_ERR, WQE_FORMAT, k.rdma.flush = htole32(1));
	TRY(GOOD_WORD, ATOMIC_WRITE, LOC_QP_OP_ERR, WQE_FORMAT, k.ctrl.imm_data = 1);
	TRY(GOOD_WORD, ATOMIC_WRITE, LOC_QP_OP_ERR, WQE_FORMAT, k.ctrl.num_sge = 1);
	TRY(GOOD_WORD, ATOMIC_WRITE, LOC_LEN_ERR, MSG_TOO_LONG, k.ctrl.length = htole32(7));
	TRY(GOOD_WORD, ATOMIC_WRITE, LOC_LEN_ERR, MSG_TOO_LONG, k.ctrl.length = htole32(16));
	TRY(sge_word(a, b, b->buf, a->buf), ATOMIC_WRITE, LOC_LEN_ERR, MSG_TOO_LONG, k.sge[0].length = htole32(4));
	TRY(sge_word(a, b, b->buf, a->buf), ATOMIC_WRITE, LOC_LEN_ERR, MSG_TOO_LONG, k.ctrl.num_sge = 0);
	TRY(sge_word(a, b, b->buf, a->buf), ATOMIC_WRITE, LOC_PROT_ERR, KEY_STALE, k.sge[0].lkey ^= htole32(1));
}

static void faults_of_a_flush(void **state)
{
	(void)state;
	TRY(GOOD_FLUSH, FLUSH, REM_ACCESS_ERR, PEER_NAK, k.rdma.rkey ^= htole32(1));
	TRY(GOOD_FLUSH, FLUSH, REM_ACCESS_ERR, PEER_NAK, k.rdma.flush |= htole32(SKUA_FLUSH_MR),
	    k.rdma.rkey ^= htole32(1));
	TRY(GOOD_FLUSH, FLUSH, REM_ACCESS_ERR, PEER_NAK, k.ctrl.length = htole32(4097));
	TRY(GOOD_FLUSH, FLUSH, REM_ACCESS_ERR, PEER_NAK, k.rdma.raddr = htole64(b->buf - 1));
	/* No MR here may have that right. */
	TRY(GOOD_FLUSH, FLUSH, REM_ACCESS_ERR, PEER_NAK, k.rdma.flush = htole32(SKUA_FLUSH_PERSISTENT));
	TRY(GOOD_FLUSH, FLUSH, REM_ACCESS_ERR, PEER_NAK, k.rdma.flush |= htole32(SKUA_FLUSH_PERSISTENT));
	TRY(GOOD_FLUSH, FLUSH, REM_ACCESS_ERR, PEER_NAK, give_rights(w, b, ALL_RIGHTS, RIGHTS),
	    k.rdma.rkey = htole32(b->key));
	TRY(GOOD_FLUSH, FLUSH, REM_ACCESS_ERR, PEER_NAK, give_rights(w, b, RIGHTS, ALL_RIGHTS),
	    k.rdma.rkey = htole32(b->key));
	TRY(GOOD_FLUSH, FLUSH, REM_ACCESS_ERR, PEER_NAK, k.rdma.rkey = htole32(0xffffff00));	/* the reserved lkey */
}

static void faults_of_an_atomic_write(void **state)
{
	(void)state;
	TRY(GOOD_WORD, ATOMIC_WRITE, REM_INV_REQ_ERR, PEER_NAK, k.rdma.raddr = htole64(b->buf + 4));
	TRY(GOOD_WORD, ATOMIC_WRITE, REM_ACCESS_ERR, PEER_NAK, k.rdma.raddr = htole64(b->buf + 4096));
	TRY(GOOD_WORD, ATOMIC_WRITE, REM_ACCESS_ERR, PEER_NAK, k.rdma.raddr = htole64(b->buf - 8));
	TRY(GOOD_WORD, ATOMIC_WRITE, REM_ACCESS_ERR, PEER_NAK, k.rdma.rkey ^= htole32(1));
	TRY(GOOD_WORD, ATOMIC_WRITE, REM_ACCESS_ERR, PEER_NAK,
	    give_rights(w, b, RIGHTS & ~SKUA_ACCESS_REMOTE_WRITE, RIGHTS), k.rdma.rkey = htole32(b->key));
	TRY(GOOD_WORD, ATOMIC_WRITE, REM_ACCESS_ERR, PEER_NAK,
	    give_rights(w, b, RIGHTS, RIGHTS & ~SKUA_ACCESS_REMOTE_WRITE), k.rdma.rkey = htole32(b->key));
}

/* Its address is a multiple of 8, but the region begins askew. */
static void a_word_in_two_pieces(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cmd mr = create_mr_cmd(b);

	mr.create_mr.length = htole64(4096 - 4);
	mr.create_mr.pages.offset = htole64(4);
	b->key = must(w, b, mr);
	post_word(a, b, le64toh(mr.create_mr.iova), 1);
	expect(w, a, SKUA_CQE_ATOMIC_WRITE, SKUA_CQE_REM_ACCESS_ERR);
	assert_int_equal(word(b, b->buf) + word(b, b->buf + 8), 0);
}

/* Bytes as they are in memory, and none beside them. */
static void values(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct block k = sge_word(a, b, b->buf + 16, a->buf + 3);

	memset(at(b, b->buf), 0xa5, 64);
	post_word(a, b, b->buf + 8, 0x1122334455667788);
	expect(w, a, SKUA_CQE_ATOMIC_WRITE, SKUA_CQE_SUCCESS);
	assert_true(word(b, b->buf + 8) == 0x1122334455667788);
	fill(a, 64, 9);
	post_block(a, &k);
	expect(w, a, SKUA_CQE_ATOMIC_WRITE, SKUA_CQE_SUCCESS);
	assert_memory_equal(at(b, b->buf + 16), at(a, a->buf + 3), 8);
	assert_true(word(b, b->buf) == 0xa5a5a5a5a5a5a5a5 && word(b, b->buf + 24) == 0xa5a5a5a5a5a5a5a5);
	assert_int_equal(STAT(w, a, rdma_tx_atomic_write), 2);
	assert_int_equal(STAT(w, b, rdma_rx_atomic_write), 2);
}

/* Two SGEs make one word, too. */
static void a_word_of_two_pieces(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct block k = sge_word(a, b, b->buf, a->buf);

	fill(a, 64, 9);
	k.ctrl.num_sge = 2;
	k.sge[0].length = htole32(3);
	k.sge[1] = (struct skua_sge){ htole64(a->buf + 32), htole32(5), htole32(a->key) };
	post_block(a, &k);
	expect(w, a, SKUA_CQE_ATOMIC_WRITE, SKUA_CQE_SUCCESS);
	assert_memory_equal(at(b, b->buf), at(a, a->buf), 3);
	assert_memory_equal(at(b, b->buf + 3), at(a, a->buf + 32), 5);
}

/* While READs before it still wait to be answered, the word of an ATOMIC WRITE is the later WRITE's in the end. */
static void later_writes_come_later(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	for (uint64_t i = 0; i < 20; i++) {
		uint64_t later = i << 32;

		memcpy(at(a, a->buf), &later, sizeof(later));
		post(a, SKUA_WQE_READ, 0, a->buf + 1024, 2048, b->buf + 1024, b->key, 0);
		post_word(a, b, b->buf, i);
		post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 8, b->buf, b->key, 0);
		expect(w, a, SKUA_CQE_ATOMIC_WRITE, SKUA_CQE_SUCCESS);
		expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
		assert_true(word(b, b->buf) == later);
	}
}

static void rights_of_features(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_cmd mr = create_mr_cmd(n);
	const struct skua_device_caps *caps;
	struct skua_qp_attr attr = { .access = htole32(SKUA_ACCESS_FLUSH_PERSISTENT) };
	struct skua_cmd modify = modify_cmd(n->qpn, SKUA_QP_ATTR_ACCESS, attr);

	caps = query(w, n, (struct skua_cmd)CMD(SKUA_CMD_QUERY_DEVICE), sizeof(*caps));
	assert_int_equal(le32toh(caps->flush_caps), SKUA_FLUSH_GLOBAL);
	mr.create_mr.access = htole32(RIGHTS | SKUA_ACCESS_FLUSH_PERSISTENT);
	assert_int_equal(command(w, n, &mr), SKUA_CMD_BAD_PARAM);
	assert_int_equal(command(w, n, &modify), SKUA_CMD_BAD_PARAM);
	/* By itself: it needs no other right. */
	mr.create_mr.access = htole32(SKUA_ACCESS_FLUSH_GLOBAL);
	assert_int_equal(command(w, n, &mr), SKUA_CMD_OK);
}

static void without_the_features(void **state)
{
	struct world *w = world_create_with(false, ~(1ull << SKUA_F_FLUSH | 1ull << SKUA_F_ATOMIC_WRITE));
	struct node *a = &w->n[0], *b = &w->n[1];
	const struct skua_device_caps *caps;
	struct skua_qp_attr attr = { .access = htole32(SKUA_ACCESS_FLUSH_GLOBAL) };
	struct skua_cmd modify = modify_cmd(a->qpn, SKUA_QP_ATTR_ACCESS, attr), mr = create_mr_cmd(a);

	(void)state;
	caps = query(w, a, (struct skua_cmd)CMD(SKUA_CMD_QUERY_DEVICE), sizeof(*caps));
	assert_int_equal(le32toh(caps->flush_caps), 0);
	mr.create_mr.access = htole32(SKUA_ACCESS_FLUSH_GLOBAL);
	assert_int_equal(command(w, a, &mr), SKUA_CMD_BAD_PARAM);
	assert_int_equal(command(w, a, &modify), SKUA_CMD_BAD_PARAM);
	post_flush(a, b, SKUA_FLUSH_GLOBAL);
	expect_vendor(w, a, SKUA_CQE_FLUSH, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_OPCODE);
	reconnect(w, a, b);
	post_word(a, b, b->buf, 1);
	expect_vendor(w, a, SKUA_CQE_ATOMIC_WRITE, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_OPCODE);
	world_destroy(w);
}

/* A request that seems to come from a, as @b sees it. */
static struct train request(struct node *b, enum train_op op, uint32_t psn)
{
	static uint64_t value = 7;
	static struct seglist payload = { .n = 1, .bytes = 8, .seg[0] = { (uint8_t *)&value, 8 } };
	struct train t = train_from(b, op, psn);

	t.msg_len = 8;
	if (op == TRAIN_FLUSH)
		t.flush = SKUA_FLUSH_GLOBAL;
	else if (op == TRAIN_ATOMIC_WRITE)
		t.payload = &payload;
	return t;
}

/* It has a PSN that a READ had, before the PSNs began anew: that READ is forgotten, and its repeat is answered. */
static void a_repeat_on_the_psn_of_a_read_of_long_ago(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_qp *qp = numtab_get(&b->dev->qps, b->qpn);
	struct train read = request(b, TRAIN_READ_REQ, FIRST_PSN);
	uint64_t packets;

	read.msg_len = 4096;
	arrive(w, b, a, read);
	assert_int_equal(STAT(w, b, access_nak_sent), 0);
	assert_int_equal(qp->epsn, psn_add(FIRST_PSN, 4));
	/* As if all but one of the PSNs had been used since. */
	qp->epsn = psn_add(FIRST_PSN, 3);
	rc_of(qp)->resp.accepted += (1u << 24) - 1;
	for (int i = 0; i < 2; i++) {
		packets = STAT(w, b, rdma_tx_packets);
		arrive(w, b, a, request(b, TRAIN_FLUSH, psn_add(FIRST_PSN, 3)));
		assert_int_equal(STAT(w, b, rdma_tx_packets) - packets, 1);
	}
}

static void a_repeat_without_the_feature(void **state)
{
	struct world *w = world_create_with(false, ~(1ull << SKUA_F_FLUSH));
	struct node *a = &w->n[0], *b = &w->n[1];
	uint64_t packets;

	(void)state;
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 8, b->buf, b->key, 0);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	packets = STAT(w, b, rdma_tx_packets);
	arrive(w, b, a, request(b, TRAIN_FLUSH, FIRST_PSN));
	assert_int_equal(STAT(w, b, rdma_tx_packets) - packets, 0);
	world_destroy(w);
}

#define REFUSED(train_op, features, ...) do {				\
	struct world *w = world_create_with(false, features);		\
	struct node *a = &w->n[0], *b = &w->n[1];			\
	struct seglist payload_ = { .n = 1, .bytes = 8 };		\
	uint8_t bytes_[16] = { 0 };					\
	struct train t;							\
									\
	give_rights(w, b, (features) >> SKUA_F_FLUSH & 1 ? RIGHTS : ALL_RIGHTS,	\
		    (features) >> SKUA_F_FLUSH & 1 ? RIGHTS : ALL_RIGHTS);	\
	t = request(b, train_op, FIRST_PSN);				\
	payload_.seg[0] = (struct seg){ bytes_, sizeof(bytes_) };	\
	(void)payload_;							\
	__VA_ARGS__;							\
	arrive(w, b, a, t);						\
	expect_event(w, b, SKUA_EVENT_QP_REQ_ERR, b->qpn);		\
	assert_int_equal(STAT(w, b, invalid_nak_sent), 1);		\
	world_destroy(w);						\
} while (0)

static void invalid_requests(void **state)
{
	(void)state;
	REFUSED(TRAIN_FLUSH, ~0ull, t.flush = 0);
	REFUSED(TRAIN_FLUSH, ~0ull, t.flush = SKUA_FLUSH_MR);
	REFUSED(TRAIN_FLUSH, ~0ull, t.flush |= 4);
	REFUSED(TRAIN_FLUSH, ~0ull, t.flush |= 0x20);
	REFUSED(TRAIN_FLUSH, ~(1ull << SKUA_F_FLUSH), (void)0);
	REFUSED(TRAIN_ATOMIC_WRITE, ~(1ull << SKUA_F_ATOMIC_WRITE), (void)0);
	REFUSED(TRAIN_ATOMIC_WRITE, ~0ull, t.raddr++);
	REFUSED(TRAIN_ATOMIC_WRITE, ~0ull, t.msg_len = 16);
	REFUSED(TRAIN_ATOMIC_WRITE, ~0ull, t.payload = NULL);
	REFUSED(TRAIN_ATOMIC_WRITE, ~0ull, payload_.bytes = 16, t.payload = &payload_);
	REFUSED(TRAIN_ATOMIC_WRITE, ~0ull, payload_.bytes = payload_.seg[0].len = 4, t.payload = &payload_);
}

static void amid_a_message(void **state)
{
	static const enum train_op ops[] = { TRAIN_FLUSH, TRAIN_ATOMIC_WRITE };

	for (int i = 0; i < 2; i++) {
		static uint8_t bytes[1024];
		struct seglist payload = { .n = 1, .bytes = sizeof(bytes), .seg[0] = { bytes, sizeof(bytes) } };
		struct world *w;
		struct train t;

		setup(state);
		w = *state;
		t = train_from(&w->n[1], TRAIN_WRITE, FIRST_PSN);
		t.last = false;
		t.msg_len = 2048;
		t.payload = &payload;
		arrive(w, &w->n[1], &w->n[0], t);
		arrive(w, &w->n[1], &w->n[0], request(&w->n[1], ops[i], FIRST_PSN + 1));
		expect_event(w, &w->n[1], SKUA_EVENT_QP_REQ_ERR, w->n[1].qpn);
		world_destroy(w);
	}
}

/* So many as READs and atomics may be, and not more, until one is answered. */
static void the_requester_counts_them(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint64_t before = STAT(w, a, rdma_tx_packets);

	mute(w, b);
	for (int i = 0; i < MAX_RD; i++) {
		post_flush(a, b, SKUA_FLUSH_GLOBAL);
		post_word(a, b, b->buf, 1);
	}
	settle(w);
	assert_int_equal(STAT(w, a, rdma_tx_packets) - before, MAX_RD);
	unmute(w, b);
	pass(w, 4096ull << 14);
	for (int i = 0; i < MAX_RD; i++) {
		expect(w, a, SKUA_CQE_FLUSH, SKUA_CQE_SUCCESS);
		expect(w, a, SKUA_CQE_ATOMIC_WRITE, SKUA_CQE_SUCCESS);
	}
}

static void none_may_be_outstanding(void **state)
{
	static const uint8_t opcodes[] = { SKUA_CQE_FLUSH, SKUA_CQE_ATOMIC_WRITE };

	for (int i = 0; i < 2; i++) {
		struct world *w;
		struct node *a, *b;

		setup(state);
		w = *state;
		a = &w->n[0];
		b = &w->n[1];
		qp_of(a)->max_rd = 0;
		if (i)
			post_word(a, b, b->buf, 1);
		else
			post_flush(a, b, SKUA_FLUSH_GLOBAL);
		expect_vendor(w, a, opcodes[i], SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_OPCODE);
		world_destroy(w);
	}
}

/* A fence waits for them, as for READs. */
static void a_fence_waits(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint64_t before = STAT(w, a, rdma_tx_packets);

	mute(w, b);
	post_flush(a, b, SKUA_FLUSH_GLOBAL);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_FENCE | SKUA_WQE_SIGNALED, a->buf, 8, b->buf, b->key, 0);
	settle(w);
	assert_int_equal(STAT(w, a, rdma_tx_packets) - before, 1);
	unmute(w, b);
	pass(w, 4096ull << 14);
	expect(w, a, SKUA_CQE_FLUSH, SKUA_CQE_SUCCESS);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
}

/*
 * Some requesters do not count FLUSHes. One that there is no room for is as if it was lost, and so is a READ behind
 * FLUSHes that take the room.
 */
static void more_than_there_is_room_for(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint64_t nak;

	for (uint32_t i = 0; i < MAX_RD + 2; i++)
		arrive_only(b, a, request(b, TRAIN_FLUSH, FIRST_PSN + i));
	assert_int_equal(qp_of(b)->epsn, psn_add(FIRST_PSN, MAX_RD));
	arrive_only(b, a, request(b, TRAIN_READ_REQ, FIRST_PSN + MAX_RD));
	assert_int_equal(qp_of(b)->epsn, psn_add(FIRST_PSN, MAX_RD));
	settle(w);
	assert_int_equal(qp_state(w, b, b->qpn), SKUA_QPS_RTS);
	nak = STAT(w, b, invalid_nak_sent);
	assert_int_equal(nak, 0);
	/* READs that take the room, too. */
	for (uint32_t i = 0; i < MAX_RD; i++)
		arrive_only(b, a, request(b, TRAIN_READ_REQ, FIRST_PSN + MAX_RD + i));
	arrive_only(b, a, request(b, TRAIN_FLUSH, FIRST_PSN + 2 * MAX_RD));
	assert_int_equal(qp_of(b)->epsn, psn_add(FIRST_PSN, 2 * MAX_RD));
	settle(w);
	arrive(w, b, a, request(b, TRAIN_FLUSH, FIRST_PSN + 2 * MAX_RD));
	assert_int_equal(qp_of(b)->epsn, psn_add(FIRST_PSN, 2 * MAX_RD + 1));
}

/* The peer has to count ATOMIC WRITEs; and there is no room at all where max_dest_rd_atomic is 0. */
static void more_than_the_peer_may_send(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	for (uint32_t i = 0; i < MAX_RD + 1; i++)
		arrive_only(b, a, request(b, TRAIN_ATOMIC_WRITE, FIRST_PSN + i));
	settle(w);
	expect_event(w, b, SKUA_EVENT_QP_REQ_ERR, b->qpn);
	reconnect(w, b, a);
	qp_of(b)->max_dest_rd = 0;
	arrive(w, b, a, request(b, TRAIN_FLUSH, FIRST_PSN));
	expect_event(w, b, SKUA_EVENT_QP_REQ_ERR, b->qpn);
}

/* The peer did not hear the answer: it gets another, and nothing is written again. */
static void requests_that_come_again(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct roce_resp *resp = &rc_of(qp_of(b))->resp;
	struct train other = request(b, TRAIN_ATOMIC_WRITE, FIRST_PSN);
	uint64_t packets;

	post_word(a, b, b->buf, 7);
	expect(w, a, SKUA_CQE_ATOMIC_WRITE, SKUA_CQE_SUCCESS);
	post_flush(a, b, SKUA_FLUSH_GLOBAL);
	expect(w, a, SKUA_CQE_FLUSH, SKUA_CQE_SUCCESS);
	memset(at(b, b->buf), 0, 8);
	packets = STAT(w, b, rdma_tx_packets);
	arrive(w, b, a, request(b, TRAIN_ATOMIC_WRITE, FIRST_PSN));
	arrive(w, b, a, request(b, TRAIN_FLUSH, FIRST_PSN + 1));
	assert_int_equal(STAT(w, b, rdma_tx_packets) - packets, 2);
	assert_int_equal(word(b, b->buf), 0);
	assert_int_equal(STAT(w, b, rdma_rx_atomic_write), 1);
	assert_int_equal(STAT(w, b, rdma_rx_flush), 1);
	/* While its answer waits for its turn, it is not answered again. */
	arrive_only(b, a, request(b, TRAIN_FLUSH, FIRST_PSN + 1));
	arrive_only(b, a, request(b, TRAIN_FLUSH, FIRST_PSN + 1));
	assert_int_equal(resp->jobs_again, 1);
	settle(w);
	/* What was no such request there, or of another key, or is too old, is dropped. */
	packets = STAT(w, b, rdma_tx_packets);
	other.rkey ^= 1;
	arrive(w, b, a, other);
	arrive(w, b, a, request(b, TRAIN_FLUSH, FIRST_PSN));
	arrive(w, b, a, request(b, TRAIN_ATOMIC_WRITE, FIRST_PSN + 1));
	assert_int_equal(STAT(w, b, rdma_tx_packets) - packets, 0);
	for (int i = 0; i < MAX_RD; i++)
		post_word(a, b, b->buf, 1);
	settle(w);
	packets = STAT(w, b, rdma_tx_packets);
	arrive(w, b, a, request(b, TRAIN_ATOMIC_WRITE, FIRST_PSN));
	assert_int_equal(STAT(w, b, rdma_tx_packets) - packets, 0);
	assert_int_equal(qp_state(w, b, b->qpn), SKUA_QPS_RTS);
}

/* A peer that does not count FLUSHes sends many, and hears none of the answers, nor that to what it sent before. */
static void many_flushes_that_come_again(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint64_t packets;

	arrive(w, b, a, request(b, TRAIN_ATOMIC_WRITE, FIRST_PSN));
	for (uint32_t i = 1; i < 4 * MAX_RD; i++)
		arrive(w, b, a, request(b, TRAIN_FLUSH, FIRST_PSN + i));
	packets = STAT(w, b, rdma_tx_packets);
	memset(at(b, b->buf), 0, 8);
	arrive(w, b, a, request(b, TRAIN_ATOMIC_WRITE, FIRST_PSN));
	for (uint32_t i = 1; i < 4 * MAX_RD; i++)
		arrive(w, b, a, request(b, TRAIN_FLUSH, FIRST_PSN + i));
	assert_int_equal(STAT(w, b, rdma_tx_packets) - packets, 4 * MAX_RD);
	assert_int_equal(word(b, b->buf), 0);
	assert_int_equal(STAT(w, b, rdma_rx_flush), 4 * MAX_RD - 1);
}

/* Only a response of no bytes is an answer to them; an ACK is none. */
static void responses_that_do_not_fit(void **state)
{
	static const enum train_op ops[] = { TRAIN_ATOMIC_RESP, TRAIN_READ_RESP, TRAIN_ACK };

	for (int i = 0; i < 6; i++) {
		static uint8_t bytes[8];
		struct seglist payload = { .n = 1, .bytes = 8, .seg[0] = { bytes, 8 } };
		struct world *w;
		struct node *a, *b;
		struct train t;

		setup(state);
		w = *state;
		a = &w->n[0];
		b = &w->n[1];
		mute(w, b);
		if (i % 2)
			post_word(a, b, b->buf, 1);
		else
			post_flush(a, b, SKUA_FLUSH_GLOBAL);
		settle(w);
		t = train_from(a, ops[i / 2], FIRST_PSN);
		t.syndrome = AETH_ACK;
		if (t.op == TRAIN_READ_RESP)
			t.payload = &payload;
		arrive(w, a, b, t);
		if (t.op == TRAIN_ACK)
			expect_none(w, a);
		else
			expect_vendor(w, a, i % 2 ? SKUA_CQE_ATOMIC_WRITE : SKUA_CQE_FLUSH, SKUA_CQE_BAD_RESP_ERR,
				      SKUA_VENDOR_ERR_PEER_RESPONSE);
		world_destroy(w);
	}
}

/* Requests and answers are lost in all ways: each ATOMIC WRITE is carried out once, in order. */
static void through_losses(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	for (uint64_t i = 1; i <= 60; i++) {
		struct node *silent = i % 3 ? i % 3 == 1 ? a : b : NULL;

		if (silent)
			mute(w, silent);
		post(a, SKUA_WQE_WRITE, 0, a->buf, 2000, b->buf + 1024, b->key, 0);
		post_flush(a, b, SKUA_FLUSH_GLOBAL);
		post_word(a, b, b->buf, i);
		post_flush(a, b, SKUA_FLUSH_GLOBAL | SKUA_FLUSH_MR);
		settle(w);
		if (silent)
			unmute(w, silent);
		pass(w, 4096ull << 14);
		expect(w, a, SKUA_CQE_FLUSH, SKUA_CQE_SUCCESS);
		expect(w, a, SKUA_CQE_ATOMIC_WRITE, SKUA_CQE_SUCCESS);
		expect(w, a, SKUA_CQE_FLUSH, SKUA_CQE_SUCCESS);
		assert_true(word(b, b->buf) == i);
	}
	assert_int_equal(STAT(w, b, rdma_rx_atomic_write), 60);
}

int main(void)
{
#define FLUSH(f, rules) { rules ": " #f, f, setup, teardown, NULL }
#define ALONE(f, rules) { rules ": " #f, f, NULL, NULL, NULL }
	const struct CMUnitTest tests[] = {
		FLUSH(a_flush_of_what_was_written, "FLU-1"),
		FLUSH(ranges_and_whole_regions, "FLU-2"),
		ALONE(formats_of_a_flush, "FLU-3"),
		ALONE(faults_of_a_flush, "FLU-2 FLU-4"),
		FLUSH(rights_of_features, "FLU-5 QPS-4"),
		FLUSH(more_than_there_is_room_for, "FLU-6"),
		FLUSH(more_than_the_peer_may_send, "FLU-6 ROC-8"),
		FLUSH(values, "FLU-7"),
		FLUSH(a_word_of_two_pieces, "FLU-7"),
		ALONE(formats_of_an_atomic_write, "FLU-7"),
		ALONE(faults_of_an_atomic_write, "FLU-8"),
		FLUSH(a_word_in_two_pieces, "FLU-8"),
		FLUSH(later_writes_come_later, "FLU-9"),
		ALONE(without_the_features, "FEA-2"),
		ALONE(a_repeat_without_the_feature, "FEA-2"),
		ALONE(invalid_requests, "FLU-3 FLU-8 FEA-2"),
		ALONE(amid_a_message, "FLU-3 FLU-8"),
		FLUSH(the_requester_counts_them, "FLU-10 ROC-8"),
		ALONE(none_may_be_outstanding, "FLU-10 WQE-6"),
		FLUSH(a_fence_waits, "ORD-3"),
		FLUSH(requests_that_come_again, "FLU-11 ROC-23 ROC-24"),
		FLUSH(a_repeat_on_the_psn_of_a_read_of_long_ago, "FLU-11 ROC-23"),
		FLUSH(many_flushes_that_come_again, "FLU-11 ROC-10"),
		ALONE(responses_that_do_not_fit, "FLU-10 ERR-1"),
		FLUSH(through_losses, "FLU-11"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
