// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Every row of the manual's tables of errors: what the requester's WQE and the responder's receive
 * complete with, the NAK between them, the asynchronous event, and the states of the QPs afterwards.
 */
#include "harness/datagram.h"
#include "harness/errors.h"

#define NO_CQE		0xff
#define NAK(name)	offsetof(struct skua_stats, name)
#define NO_NAK		0

static uint64_t counter(struct world *w, struct node *n, size_t offset)
{
	uint8_t *stats = query(w, n, (struct skua_cmd)CMD(SKUA_CMD_QUERY_STATS),
			       sizeof(struct skua_stats));
	__le64 value;

	memcpy(&value, stats + offset, sizeof(value));
	return le64toh(value);
}

static uint64_t naks(struct world *w, struct node *n)
{
	return counter(w, n, NAK(access_nak_sent)) + counter(w, n, NAK(invalid_nak_sent)) +
	       counter(w, n, NAK(op_nak_sent));
}

/* A region of 4 KiB of the node, and its QP, that allow atomics too. */
static void allow_atomics(struct world *w, struct node *n)
{
	struct skua_cmd mr = create_mr_cmd(n);
	uint32_t rights = ALL_RIGHTS | SKUA_ACCESS_REMOTE_ATOMIC;

	mr.create_mr.access = htole32(rights);
	n->key = must(w, n, mr);
	must(w, n, modify_cmd(n->qpn, SKUA_QP_ATTR_ACCESS,
			      (struct skua_qp_attr){ .access = htole32(rights & ~1u) }));
}

struct row {
	const char *what;
	void (*prepare)(struct world *w, struct node *a, struct node *b, struct message *m);
	struct message message;
	uint8_t status, vendor;		/* of the WQE of a */
	uint8_t recv;			/* status of the receive of b, or NO_CQE */
	size_t nak;			/* counter of the NAK that b sends, or NO_NAK */
	uint8_t event;			/* at b; 0: none */
};

static void check_row(const struct row *row)
{
	struct world *w = world_create(false);
	struct node *a = &w->n[0], *b = &w->n[1];
	struct message m = row->message;
	struct skua_cqe *cqe;

	m.addr = a->buf;
	m.raddr = b->buf;
	if (m.opcode >= SKUA_WQE_CMP_SWAP)
		allow_atomics(w, b);
	if (row->prepare)
		row->prepare(w, a, b, &m);
	if (m.recv_len)
		post_recv(b, b->buf, m.recv_len);
	post_message(a, b, &m);
	post(a, SKUA_WQE_NOP, 0, 0, 0, 0, 0, 0);
	cqe = await_cqe(w, a);
	if (cqe->status != row->status || cqe->vendor_err != row->vendor)
		fail_msg("%s: status %d, vendor_err %d", row->what, cqe->status, cqe->vendor_err);
	expect(w, a, SKUA_CQE_NOP, SKUA_CQE_WR_FLUSH_ERR);
	expect_none(w, a);
	assert_int_equal(qp_state(w, a, a->qpn), SKUA_QPS_ERR);
	expect_no_event(w, a);		/* the WQE says it */

	cqe = poll_cq(b);
	if (row->recv == NO_CQE ? cqe != NULL : !cqe || cqe->status != row->recv)
		fail_msg("%s: receive %d", row->what, cqe ? cqe->status : -1);
	if (cqe)
		assert_int_equal(cqe->opcode, SKUA_CQE_RECV);
	expect_none(w, b);
	if (naks(w, b) != (row->nak != NO_NAK) || (row->nak && counter(w, b, row->nak) != 1))
		fail_msg("%s: not that NAK", row->what);
	if (row->event)
		expect_event(w, b, row->event, b->qpn);
	expect_no_event(w, b);
	if (qp_state(w, b, b->qpn) != (row->nak ? SKUA_QPS_ERR : SKUA_QPS_RTS))
		fail_msg("%s: state of the responder", row->what);
	world_destroy(w);
}

#define CHECK_ROWS(rows) do {						\
	for (size_t i_ = 0; i_ < sizeof(rows) / sizeof(rows[0]); i_++)	\
		check_row(&(rows)[i_]);					\
} while (0)

/* The faults of the table, each made by one of these. */

#define PREPARE(name) \
	static void name(struct world *w __attribute__((unused)), struct node *a __attribute__((unused)), \
			 struct node *b __attribute__((unused)), struct message *m __attribute__((unused)))

static void new_region(struct world *w, struct node *n, uint8_t type, uint32_t access)
{
	struct skua_cmd cmd = create_mr_cmd(n);

	cmd.create_mr.type = type;
	cmd.create_mr.access = htole32(access);
	if (type == SKUA_MR_PHYS) {
		cmd.create_mr.iova = 0;
		cmd.create_mr.length = 0;
		cmd.create_mr.pages = (struct skua_pagelist){ 0 };
	}
	n->key = must(w, n, cmd);
}

PREPARE(unknown_key) { b->key ^= 0x100; }
PREPARE(stale_variant) { b->key ^= 1; }
PREPARE(destroyed) { must(w, b, object_cmd(SKUA_CMD_DESTROY_MR, b->key)); }
PREPARE(behind_the_end) { m->raddr = b->buf + BUF_SIZE - m->len + 1; }
PREPARE(before_the_start) { m->raddr = b->buf - 1; }
PREPARE(wrapping) { m->raddr = ~0ull - 2; }
PREPARE(only_local_rights) { new_region(w, b, SKUA_MR_REGULAR, SKUA_ACCESS_LOCAL_WRITE); }
PREPARE(physical) { new_region(w, b, SKUA_MR_PHYS, ALL_RIGHTS); }

PREPARE(no_rights_of_the_qp)
{
	must(w, b, modify_cmd(b->qpn, SKUA_QP_ATTR_ACCESS, (struct skua_qp_attr){ .access = 0 }));
}

PREPARE(another_pd)
{
	struct skua_cmd pd = CMD(SKUA_CMD_CREATE_PD), cmd = create_mr_cmd(b);

	cmd.create_mr.pdn = htole32(must(w, b, pd));
	b->key = must(w, b, cmd);
}

PREPARE(invalidated)
{
	new_region(w, b, SKUA_MR_FAST, ALL_RIGHTS);
	post(b, SKUA_WQE_LOCAL_INV, SKUA_WQE_SIGNALED, 0, 0, 0, 0, b->key);
	expect(w, b, SKUA_CQE_LOCAL_INV, SKUA_CQE_SUCCESS);
}

PREPARE(memory_of_the_region_is_gone)
{
	struct skua_cmd cmd = create_mr_cmd(b);

	cmd.create_mr.access = htole32(ALL_RIGHTS | SKUA_ACCESS_REMOTE_ATOMIC);
	cmd.create_mr.pages = list(EXTRA, 4096);
	b->key = must(w, b, cmd);
	unmap_extra(b);
}

PREPARE(empty)
{
	struct skua_cmd cmd = create_mr_cmd(b);

	cmd.create_mr.length = 0;
	cmd.create_mr.pages = (struct skua_pagelist){ 0 };
	b->key = must(w, b, cmd);
}

#define REFUSED_ACCESS SKUA_CQE_REM_ACCESS_ERR, SKUA_VENDOR_ERR_PEER_NAK, SKUA_CQE_WR_FLUSH_ERR, \
		NAK(access_nak_sent), SKUA_EVENT_QP_ACCESS_ERR
#define REFUSED_IMM SKUA_CQE_REM_ACCESS_ERR, SKUA_VENDOR_ERR_PEER_NAK, SKUA_CQE_LOC_ACCESS_ERR, \
		NAK(access_nak_sent), 0

static void bad_keys_bounds_and_rights(void **state)
{
#define EACH(what, prepare)						\
	{ what, prepare, { SKUA_WQE_WRITE, .len = 3000, .recv_len = 8 }, REFUSED_ACCESS }, \
	{ what, prepare, { SKUA_WQE_READ, .len = 3000, .recv_len = 8 }, REFUSED_ACCESS }, \
	{ what, prepare, { SKUA_WQE_WRITE_IMM, .len = 8, .recv_len = 8 }, REFUSED_IMM }, \
	{ what, prepare, { SKUA_WQE_FETCH_ADD, .len = 8, .recv_len = 8 }, REFUSED_ACCESS }, \
	{ what, prepare, { SKUA_WQE_MASKED_CMP_SWAP, .len = 8, .recv_len = 8 }, REFUSED_ACCESS }
	static const struct row rows[] = {
		EACH("unknown key", unknown_key),
		{ "first packet", unknown_key, { SKUA_WQE_WRITE_IMM, .len = 5000, .recv_len = 8 }, REFUSED_ACCESS },
		{ "no receive", unknown_key, { SKUA_WQE_WRITE_IMM, .len = 8 }, SKUA_CQE_REM_ACCESS_ERR,
		  SKUA_VENDOR_ERR_PEER_NAK, NO_CQE, NAK(access_nak_sent), SKUA_EVENT_QP_ACCESS_ERR },
		EACH("variant", stale_variant),
		EACH("destroyed", destroyed),
		EACH("another PD", another_pd),
		EACH("rights of the MR", only_local_rights),
		EACH("rights of the QP", no_rights_of_the_qp),
		EACH("type PHYS", physical),
		EACH("length 0", empty),
		EACH("invalidated", invalidated),
		{ "end", behind_the_end, { SKUA_WQE_WRITE, .len = 3000, .recv_len = 8 }, REFUSED_ACCESS },
		{ "start", before_the_start, { SKUA_WQE_WRITE, .len = 3000, .recv_len = 8 }, REFUSED_ACCESS },
		{ "start", before_the_start, { SKUA_WQE_READ, .len = 1, .recv_len = 8 }, REFUSED_ACCESS },
		{ "wrap", wrapping, { SKUA_WQE_READ, .len = 3000, .recv_len = 8 }, REFUSED_ACCESS },
		{ "wrap", wrapping, { SKUA_WQE_WRITE, .len = 3000, .recv_len = 8 }, REFUSED_ACCESS },
	};
#undef EACH
	(void)state;
	CHECK_ROWS(rows);
}

/* Nothing of a WRITE whose end is out of bounds is written, and none of length 0 is refused. */
static void a_message_is_checked_as_a_whole(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint64_t end = b->buf + BUF_SIZE;

	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 0, 0x1234, 0, 0);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, 0, ~0ull, 0, 0);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	fill(a, 200000, 1);
	memset(at(b, end - 199999), 0, 199999);
	post(a, SKUA_WQE_WRITE, 0, a->buf, 200000, end - 199999, b->key, 0);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_REM_ACCESS_ERR);
	for (uint32_t i = 1; i < 200000; i++)
		assert_int_equal(*(uint8_t *)at(b, end - i), 0);
}

static void entry(struct node *b, uint8_t num_sge, uint8_t rsvd, uint32_t key, uint64_t addr)
{
	struct { struct skua_rqe r; struct skua_sge s[3]; } rqe = {
		{ .cookie = htole32(b->rq_pi), .num_sge = num_sge, .rsvd[3] = rsvd },
		{ { htole64(addr), htole32(4096), htole32(key) } } };

	post_rqe(b, &rqe);
}

PREPARE(sges_beyond_the_stride) { entry(b, 4, 0, b->key, b->buf); }
PREPARE(more_sges_than_any) { entry(b, 31, 0, b->key, b->buf); }
PREPARE(reserved_bytes) { entry(b, 1, 1, b->key, b->buf); }
PREPARE(receive_with_a_bad_key) { entry(b, 1, 0, b->key ^ 0x100, b->buf); }
PREPARE(receive_out_of_bounds) { entry(b, 1, 0, b->key, b->buf + BUF_SIZE - 4095); }
PREPARE(receive_with_the_reserved_lkey) { entry(b, 1, 0, 0xffffff00, b->buf); }

PREPARE(receive_without_the_right)
{
	struct skua_cmd cmd = create_mr_cmd(b);

	cmd.create_mr.access = htole32(SKUA_ACCESS_REMOTE_READ);
	entry(b, 1, 0, must(w, b, cmd), b->buf);
}

PREPARE(receive_whose_memory_is_gone)
{
	struct skua_cmd cmd = create_mr_cmd(b);

	cmd.create_mr.pages = list(EXTRA, 4096);
	entry(b, 1, 0, must(w, b, cmd), b->buf);
	unmap_extra(b);
}

/* A QP of b whose RQ lies in memory that goes away; its record, where @record. */
static void lose_rq(struct world *w, struct node *a, struct node *b, bool record)
{
	struct skua_cmd cmd;

	new_queues(b);
	cmd = create_qp_cmd(b);
	if (record)
		cmd.create_qp.rq_dbr_addr = htole64(EXTRA);
	else
		cmd.create_qp.rq = list(EXTRA, 64u << LOG_RQ);
	if (record)
		b->rq_dbr = EXTRA;
	else
		b->rq = EXTRA;
	b->qpn = must(w, b, cmd);
	reconnect(w, b, a);
	reconnect(w, a, b);
	post_recv(b, b->buf, 4096);
	unmap_extra(b);
}

PREPARE(rq_is_gone) { lose_rq(w, a, b, false); }
PREPARE(record_of_the_rq_is_gone) { lose_rq(w, a, b, true); }
PREPARE(rq_overrun) { host_store32(at(b, b->rq_dbr), (1 << LOG_RQ) + 1); }

static void receives(void **state)
{
#define BAD_RECV(what, prepare, recv) \
	{ what, prepare, { SKUA_WQE_SEND, .len = 4096 }, SKUA_CQE_REM_OP_ERR, SKUA_VENDOR_ERR_PEER_NAK, \
	  recv, NAK(op_nak_sent), 0 }
#define BAD_RQ(what, prepare) \
	{ what, prepare, { SKUA_WQE_SEND, .len = 8 }, SKUA_CQE_REM_OP_ERR, SKUA_VENDOR_ERR_PEER_NAK, NO_CQE, \
	  NAK(op_nak_sent), SKUA_EVENT_QP_FATAL }
	static const struct row rows[] = {
		{ "too long", NULL, { SKUA_WQE_SEND, .len = 9, .recv_len = 8 }, SKUA_CQE_REM_INV_REQ_ERR,
		  SKUA_VENDOR_ERR_PEER_NAK, SKUA_CQE_LOC_LEN_ERR, NAK(invalid_nak_sent), 0 },
		{ "long and too long", NULL, { SKUA_WQE_SEND, .len = 200000, .recv_len = 100000 },
		  SKUA_CQE_REM_INV_REQ_ERR, SKUA_VENDOR_ERR_PEER_NAK, SKUA_CQE_LOC_LEN_ERR,
		  NAK(invalid_nak_sent), 0 },
		BAD_RECV("stride", sges_beyond_the_stride, SKUA_CQE_LOC_QP_OP_ERR),
		BAD_RECV("SGEs", more_sges_than_any, SKUA_CQE_LOC_QP_OP_ERR),
		BAD_RECV("reserved", reserved_bytes, SKUA_CQE_LOC_QP_OP_ERR),
		BAD_RECV("key", receive_with_a_bad_key, SKUA_CQE_LOC_PROT_ERR),
		BAD_RECV("bounds", receive_out_of_bounds, SKUA_CQE_LOC_PROT_ERR),
		BAD_RECV("privilege", receive_with_the_reserved_lkey, SKUA_CQE_LOC_PROT_ERR),
		BAD_RECV("right", receive_without_the_right, SKUA_CQE_LOC_PROT_ERR),
		BAD_RECV("memory", receive_whose_memory_is_gone, SKUA_CQE_LOC_PROT_ERR),
		BAD_RQ("RQ gone", rq_is_gone),
		BAD_RQ("record gone", record_of_the_rq_is_gone),
		BAD_RQ("overrun", rq_overrun),
	};

	(void)state;
	CHECK_ROWS(rows);
}

/* An immediate takes a receive, bad SGEs or not; its memory is not touched. */
static void an_immediate_needs_none_of_the_receives_memory(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	entry(b, 0, 0, 0, 0);
	entry(b, 1, 0, b->key ^ 0x100, 0);
	post(a, SKUA_WQE_WRITE_IMM, 0, a->buf, 5000, b->buf, b->key, 1);
	post(a, SKUA_WQE_WRITE_IMM, 0, a->buf, 5000, b->buf, b->key, 2);
	for (uint32_t i = 1; i <= 2; i++) {
		struct skua_cqe *cqe = await_cqe(w, b);

		assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
		assert_int_equal(cqe->opcode, SKUA_CQE_RECV_WRITE_IMM);
		assert_int_equal(cqe->imm_data, i);
	}
	/* Without one it waits, as a SEND does. */
	post(a, SKUA_WQE_WRITE_IMM, SKUA_WQE_SIGNALED, a->buf, 5000, b->buf, b->key, 3);
	expect_none(w, a);
	assert_int_equal(STAT(w, b, rnr_nak_sent), 1);
	entry(b, 0, 0, 0, 0);
	pass(w, 1000000);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	expect(w, b, SKUA_CQE_RECV_WRITE_IMM, SKUA_CQE_SUCCESS);
}

PREPARE(key_of_nobody) { m->inv_key = b->key ^ 0x100; }
PREPARE(key_of_a_regular_region) { m->inv_key = b->key; }

PREPARE(key_of_another_pd)
{
	struct skua_cmd pd = CMD(SKUA_CMD_CREATE_PD), cmd = create_mr_cmd(b);

	cmd.create_mr.type = SKUA_MR_FAST;
	cmd.create_mr.pdn = htole32(must(w, b, pd));
	m->inv_key = must(w, b, cmd);
}

PREPARE(variant_of_a_fast_region)
{
	uint32_t key = b->key;

	new_region(w, b, SKUA_MR_FAST, ALL_RIGHTS);
	m->inv_key = b->key ^ 1;
	b->key = key;
}

PREPARE(key_without_remote_rights)
{
	uint32_t key = b->key;

	new_region(w, b, SKUA_MR_FAST, SKUA_ACCESS_LOCAL_WRITE);
	m->inv_key = b->key;
	b->key = key;
}

/* The receive tells, and the peer's WQE succeeds; what the peer sends behind it is for nobody. */
static void check_invalidation(void (*prepare)(struct world *w, struct node *a, struct node *b, struct message *m),
			       uint8_t vendor)
{
	struct message m = { SKUA_WQE_SEND_INV, .len = 100 };
	struct world *w = world_create(false);
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cqe *cqe;

	m.addr = a->buf;
	prepare(w, a, b, &m);
	fill(a, 100, 1);
	post_recv(b, b->buf, 100);
	post_recv(b, b->buf, 100);
	post_message(a, b, &m);
	post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 8, 0, 0, 0);
	expect_vendor(w, b, SKUA_CQE_RECV, SKUA_CQE_REM_INV_REQ_ERR, vendor);
	expect(w, b, SKUA_CQE_RECV, SKUA_CQE_WR_FLUSH_ERR);
	expect_none(w, b);
	expect_no_event(w, b);
	assert_memory_equal(at(a, a->buf), at(b, b->buf), 100);
	assert_int_equal(qp_state(w, b, b->qpn), SKUA_QPS_ERR);
	assert_int_equal(naks(w, b), 0);
	expect_none(w, a);
	assert_int_equal(qp_state(w, a, a->qpn), SKUA_QPS_RTS);
	for (int i = 0; i < 1000 && qp_state(w, a, a->qpn) == SKUA_QPS_RTS; i++)
		pass(w, 100000000);
	/* It is the second SEND that fails: the first was acknowledged. */
	cqe = await_cqe(w, a);
	assert_int_equal(cqe->status, SKUA_CQE_RETRY_EXC_ERR);
	assert_int_equal(le32toh(cqe->cookie), a->sq_pi - 1);
	world_destroy(w);
}

static void invalidations_that_may_not_be(void **state)
{
	(void)state;
	check_invalidation(key_of_nobody, SKUA_VENDOR_ERR_KEY_UNKNOWN);
	check_invalidation(key_of_a_regular_region, SKUA_VENDOR_ERR_KEY_TYPE);
	check_invalidation(key_of_another_pd, SKUA_VENDOR_ERR_PD);
	check_invalidation(variant_of_a_fast_region, SKUA_VENDOR_ERR_KEY_STALE);
	check_invalidation(key_without_remote_rights, SKUA_VENDOR_ERR_RIGHTS);
}

static void memory_that_went_away(void **state)
{
#define GONE(opcode, bytes) \
	{ #opcode, memory_of_the_region_is_gone, { opcode, .len = bytes, .recv_len = 8 }, SKUA_CQE_REM_OP_ERR, \
	  SKUA_VENDOR_ERR_PEER_NAK, SKUA_CQE_WR_FLUSH_ERR, NAK(op_nak_sent), SKUA_EVENT_QP_FATAL }
	static const struct row rows[] = {
		GONE(SKUA_WQE_WRITE, 100), GONE(SKUA_WQE_READ, 100), GONE(SKUA_WQE_FETCH_ADD, 8),
		GONE(SKUA_WQE_CMP_SWAP, 8), GONE(SKUA_WQE_MASKED_CMP_SWAP, 8),
	};

	(void)state;
	CHECK_ROWS(rows);
}

/* What is wrong at home never reaches the peer. */
PREPARE(own_key) { a->key ^= 0x100; }
PREPARE(own_bounds) { m->addr = a->buf + BUF_SIZE - m->len + 1; }

PREPARE(own_right)
{
	struct skua_cmd cmd = create_mr_cmd(a);

	cmd.create_mr.access = htole32(SKUA_ACCESS_REMOTE_READ);
	a->key = must(w, a, cmd);
}

PREPARE(own_memory)
{
	struct skua_cmd cmd = create_mr_cmd(a);

	cmd.create_mr.pages = list(EXTRA, 4096);
	a->key = must(w, a, cmd);
	unmap_extra(a);
}

PREPARE(no_reads_allowed)
{
	struct skua_cmd rts = rts_cmd(a->qpn);

	rts.modify_qp.attr.max_rd_atomic = 0;
	restart(w, a, rtr_cmd(a->qpn, b, b->qpn), rts);
}

PREPARE(an_unknown_key_to_invalidate) { m->inv_key = a->key ^ 0x100; }
PREPARE(a_regular_region_to_invalidate) { m->inv_key = a->key; }

static void faults_at_home(void **state)
{
#define LOCAL(what, prepare, opcode, bytes, status, vendor) \
	{ what, prepare, { opcode, .len = bytes }, status, vendor, NO_CQE, NO_NAK, 0 }
	static const struct row rows[] = {
		LOCAL("key", own_key, SKUA_WQE_WRITE, 8, SKUA_CQE_LOC_PROT_ERR,
		      SKUA_VENDOR_ERR_KEY_UNKNOWN),
		LOCAL("key", own_key, SKUA_WQE_READ, 8, SKUA_CQE_LOC_PROT_ERR,
		      SKUA_VENDOR_ERR_KEY_UNKNOWN),
		LOCAL("key", own_key, SKUA_WQE_CMP_SWAP, 8, SKUA_CQE_LOC_PROT_ERR,
		      SKUA_VENDOR_ERR_KEY_UNKNOWN),
		LOCAL("bounds", own_bounds, SKUA_WQE_READ, 5000, SKUA_CQE_LOC_PROT_ERR,
		      SKUA_VENDOR_ERR_BOUNDS),
		LOCAL("bounds", own_bounds, SKUA_WQE_WRITE, 5000, SKUA_CQE_LOC_PROT_ERR,
		      SKUA_VENDOR_ERR_BOUNDS),
		LOCAL("right", own_right, SKUA_WQE_READ, 8, SKUA_CQE_LOC_PROT_ERR,
		      SKUA_VENDOR_ERR_RIGHTS),
		LOCAL("right", own_right, SKUA_WQE_FETCH_ADD, 8, SKUA_CQE_LOC_PROT_ERR,
		      SKUA_VENDOR_ERR_RIGHTS),
		LOCAL("right", own_right, SKUA_WQE_MASKED_FETCH_ADD, 8, SKUA_CQE_LOC_PROT_ERR,
		      SKUA_VENDOR_ERR_RIGHTS),
		LOCAL("memory", own_memory, SKUA_WQE_WRITE, 8, SKUA_CQE_LOC_PROT_ERR,
		      SKUA_VENDOR_ERR_UNREACHABLE),
		LOCAL("memory", own_memory, SKUA_WQE_READ, 8, SKUA_CQE_LOC_PROT_ERR,
		      SKUA_VENDOR_ERR_UNREACHABLE),
		LOCAL("memory", own_memory, SKUA_WQE_FETCH_ADD, 8, SKUA_CQE_LOC_PROT_ERR,
		      SKUA_VENDOR_ERR_UNREACHABLE),
		LOCAL("max_rd_atomic", no_reads_allowed, SKUA_WQE_READ, 8, SKUA_CQE_LOC_QP_OP_ERR,
		      SKUA_VENDOR_ERR_WQE_OPCODE),
		LOCAL("max_rd_atomic", no_reads_allowed, SKUA_WQE_CMP_SWAP, 8, SKUA_CQE_LOC_QP_OP_ERR,
		      SKUA_VENDOR_ERR_WQE_OPCODE),
		LOCAL("max_rd_atomic", no_reads_allowed, SKUA_WQE_MASKED_CMP_SWAP, 8, SKUA_CQE_LOC_QP_OP_ERR,
		      SKUA_VENDOR_ERR_WQE_OPCODE),
		LOCAL("length", NULL, SKUA_WQE_FETCH_ADD, 4, SKUA_CQE_LOC_LEN_ERR,
		      SKUA_VENDOR_ERR_MSG_TOO_LONG),
		LOCAL("length", NULL, SKUA_WQE_READ, 0x80000001, SKUA_CQE_LOC_LEN_ERR,
		      SKUA_VENDOR_ERR_MSG_TOO_LONG),
		LOCAL("opcode", NULL, 0x3f, 0, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_OPCODE),
		LOCAL("invalidate", an_unknown_key_to_invalidate, SKUA_WQE_LOCAL_INV, 0,
		      SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_KEY_UNKNOWN),
		LOCAL("invalidate", a_regular_region_to_invalidate, SKUA_WQE_LOCAL_INV, 0,
		      SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_KEY_TYPE),
	};

	(void)state;
	CHECK_ROWS(rows);
}

/* Requests that no good peer sends: trains as if from it. */

static void requests_that_are_invalid(void **state)
{
	enum { IDLE, IN_SEND, IN_WRITE };
	static const struct {
		int before;
		enum train_op op;
		uint32_t len, msg_len, pmtu;
		bool first, last;
	} rows[] = {
		/* out of sequence */
		{ IDLE, TRAIN_SEND, 1024, 0, 1024, false, false },
		{ IDLE, TRAIN_SEND, 8, 0, 1024, false, true },
		{ IDLE, TRAIN_WRITE, 8, 8, 1024, false, true },
		{ IN_SEND, TRAIN_SEND, 8, 0, 1024, true, true },
		{ IN_SEND, TRAIN_WRITE, 8, 8, 1024, true, true },
		{ IN_SEND, TRAIN_WRITE, 8, 8, 1024, false, true },
		{ IN_SEND, TRAIN_READ_REQ, 0, 8, 1024, true, true },
		{ IN_SEND, TRAIN_FETCH_ADD, 0, 0, 1024, true, true },
		{ IN_WRITE, TRAIN_SEND, 8, 0, 1024, true, true },
		{ IN_WRITE, TRAIN_SEND, 8, 0, 1024, false, true },
		{ IN_WRITE, TRAIN_READ_REQ, 0, 8, 1024, true, true },
		{ IN_WRITE, TRAIN_CMP_SWAP, 0, 0, 1024, true, true },
		{ IN_WRITE, TRAIN_MASKED_CMP_SWAP, 0, 0, 1024, true, true },
		/* wrong lengths */
		{ IDLE, TRAIN_SEND, 1000, 0, 1024, true, false },
		{ IDLE, TRAIN_SEND, 1025, 0, 1024, true, false },
		{ IDLE, TRAIN_SEND, 1025, 0, 1024, true, true },
		{ IDLE, TRAIN_SEND, 1024, 0, 512, true, true },		/* two packets */
		{ IDLE, TRAIN_WRITE, 8, 9, 1024, true, true },
		{ IDLE, TRAIN_WRITE, 8, 7, 1024, true, true },
		{ IDLE, TRAIN_WRITE, 8, 0x80000001, 1024, true, true },
		{ IDLE, TRAIN_READ_REQ, 0, 0x80000001, 1024, true, true },
		{ IN_SEND, TRAIN_SEND, 0, 0, 1024, false, true },
		{ IN_SEND, TRAIN_SEND, 1023, 0, 1024, false, false },
		{ IN_WRITE, TRAIN_WRITE, 0, 0, 1024, false, true },
		{ IN_WRITE, TRAIN_WRITE, 1024, 0, 1024, false, false },	/* longer than announced */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world *w = world_create(false);
		struct node *a = &w->n[0], *b = &w->n[1];
		struct train t = train_from(b, rows[i].op, FIRST_PSN);

		post_recv(b, b->buf, 4096);
		if (rows[i].before != IDLE) {
			struct train first = train_from(b, rows[i].before == IN_SEND ? TRAIN_SEND : TRAIN_WRITE,
							FIRST_PSN);

			first = with_payload(first, 1024, true, false);
			first.msg_len = 2000;
			arrive(w, b, a, first);
			t.psn = (FIRST_PSN + 1) & PSN_MASK;
			assert_int_equal(qp_state(w, b, b->qpn), SKUA_QPS_RTS);
		}
		t = with_payload(t, rows[i].len, rows[i].first, rows[i].last);
		t.msg_len = rows[i].msg_len;
		t.pmtu = rows[i].pmtu;
		if (t.pmtu == 512)
			t.npkts = 2;
		arrive(w, b, a, t);
		if (counter(w, b, NAK(invalid_nak_sent)) != 1 || naks(w, b) != 1)
			fail_msg("row %zu", i);
		expect_event(w, b, SKUA_EVENT_QP_REQ_ERR, b->qpn);
		expect_no_event(w, b);
		assert_int_equal(qp_state(w, b, b->qpn), SKUA_QPS_ERR);
		expect(w, b, SKUA_CQE_RECV, SKUA_CQE_WR_FLUSH_ERR);
		expect_none(w, b);
		world_destroy(w);
	}
}

/* A feature that b has not accepted: its peer's requests are invalid. */
static void features_that_were_not_accepted(void **state)
{
	static const struct { enum train_op op; uint32_t feature; } rows[] = {
		{ TRAIN_FETCH_ADD, SKUA_F_ATOMIC }, { TRAIN_CMP_SWAP, SKUA_F_ATOMIC },
		{ TRAIN_SEND_INV, SKUA_F_INVALIDATE }, { TRAIN_MASKED_CMP_SWAP, SKUA_F_MASKED_ATOMIC },
		{ TRAIN_MASKED_FETCH_ADD, SKUA_F_MASKED_ATOMIC }, { TRAIN_MASKED_FETCH_ADD, SKUA_F_ATOMIC },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world *w = world_create_with(false, ~(1ull << rows[i].feature));
		struct node *a = &w->n[0], *b = &w->n[1];

		post_recv(b, b->buf, 4096);
		arrive(w, b, a, train_from(b, rows[i].op, FIRST_PSN));
		assert_int_equal(counter(w, b, NAK(invalid_nak_sent)), 1);
		expect_event(w, b, SKUA_EVENT_QP_REQ_ERR, b->qpn);
		expect(w, b, SKUA_CQE_RECV, SKUA_CQE_WR_FLUSH_ERR);
		world_destroy(w);
	}
}

static void atomics_that_are_not_aligned(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct message m = { SKUA_WQE_FETCH_ADD, 8, a->buf, b->buf + 4, 0, 0 };

	allow_atomics(w, b);
	post_message(a, b, &m);
	expect_vendor(w, a, SKUA_CQE_FETCH_ADD, SKUA_CQE_REM_INV_REQ_ERR, SKUA_VENDOR_ERR_PEER_NAK);
	expect_event(w, b, SKUA_EVENT_QP_REQ_ERR, b->qpn);
}

/* The first is served, the second is one too many, the rest is flushed. */
static void reads_and_atomics_above_the_limit(void **state)
{
	static const uint8_t opcodes[] = { SKUA_WQE_READ, SKUA_WQE_FETCH_ADD, SKUA_WQE_MASKED_FETCH_ADD };

	(void)state;
	for (size_t i = 0; i < sizeof(opcodes); i++) {
		struct world *w = world_create(false);
		struct node *a = &w->n[0], *b = &w->n[1];
		struct message m = { opcodes[i], 8, a->buf, b->buf, 0, 0 };
		uint32_t blocks = opcodes[i] == SKUA_WQE_MASKED_FETCH_ADD ? 2 : 1;
		struct skua_cmd rtr = rtr_cmd(b->qpn, a, a->qpn);

		rtr.modify_qp.attr.max_dest_rd_atomic = htole16(2);
		restart(w, b, rtr, rts_cmd(b->qpn));
		allow_atomics(w, b);
		for (int j = 0; j < 4; j++)
			post_message(a, b, &m);
		/* The first two succeed, and have asked for no CQE. */
		for (uint32_t j = 2; j < 4; j++) {
			struct skua_cqe *cqe = await_cqe(w, a);

			assert_int_equal(cqe->status, j == 2 ? SKUA_CQE_REM_INV_REQ_ERR :
							       SKUA_CQE_WR_FLUSH_ERR);
			assert_int_equal(le32toh(cqe->cookie), j * blocks);
		}
		expect_event(w, b, SKUA_EVENT_QP_REQ_ERR, b->qpn);
		world_destroy(w);
	}
}

/* What is dropped changes nothing but a counter. */
static void packets_that_are_dropped(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct roce_path path = { .vlan = SKUA_VLAN_NONE, .hop_limit = 64 };
	struct train t = with_payload(train_from(b, TRAIN_WRITE, FIRST_PSN), 64, true, true), bad;
	uint64_t bad_qp = STAT(w, b, rdma_rx_bad_qp), bad_addr = STAT(w, b, rdma_rx_bad_addr);
	struct queues old;

	memset(at(b, b->buf), 0x33, 64);
	memcpy(path.sgid, a->gid, 16);
	memcpy(path.dgid, b->gid, 16);
	memcpy(path.dmac, b->mac, 6);
	set_gid(w, b, 1, b->gid, b->mac, 7);
	path.dgid[15]++;
	set_gid(w, b, 2, path.dgid, b->mac, SKUA_VLAN_NONE);
	path.dgid[15]--;
	bad = t;
	bad.dest_qpn ^= 0x100;
	arrive(w, b, a, bad);			/* no such QP */
	path.sgid[15]++;
	bad = t;
	bad.path = &path;
	arrive(w, b, a, bad);			/* a wrong source */
	path.sgid[15]--;
	path.dgid[15]++;
	arrive(w, b, a, bad);			/* another of its GIDs than the QP's */
	path.dgid[15]--;
	path.vlan = 7;
	arrive(w, b, a, bad);			/* another VLAN */
	old = eth_queues(w, b);
	t.dest_qpn = use_queues(b, old).qpn;
	arrive(w, b, a, t);			/* of type ETH */
	assert_int_equal(STAT(w, b, rdma_rx_bad_qp) - bad_qp, 2);
	assert_int_equal(STAT(w, b, rdma_rx_bad_addr) - bad_addr, 3);
	assert_int_equal(*(uint8_t *)at(b, b->buf), 0x33);
	expect_no_event(w, b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TABLE(bad_keys_bounds_and_rights, "CQE-3 MEM-1 MEM-3 PD-1 ERR-5 MR-4 MR-5 MR-6 MR-8 ERR-1 ERR-2 ORD-7"),
		STEPPED(a_message_is_checked_as_a_whole, "ERR-4 MEM-1"),
		TABLE(receives, "RQE-1 RQE-3 RQE-4 ERR-2 ERR-8"),
		STEPPED(an_immediate_needs_none_of_the_receives_memory, "ERR-5"),
		TABLE(invalidations_that_may_not_be, "ERR-6 MEM-7 MEM-17"),
		TABLE(memory_that_went_away, "MEM-5 ERR-2"),
		TABLE(faults_at_home, "WQE-6 WQE-9 ERR-1 MEM-7 ATM-1 ATM-4"),
		TABLE(requests_that_are_invalid, "ERR-2 ROC-6"),
		TABLE(features_that_were_not_accepted, "FEA-2 ATM-10"),
		STEPPED(atomics_that_are_not_aligned, "ATM-3"),
		TABLE(reads_and_atomics_above_the_limit, "ROC-8 ERR-1 ATM-5"),
		STEPPED(packets_that_are_dropped, "ERR-3 SEC-5 ROC-16"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
