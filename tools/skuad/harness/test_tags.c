// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tag matching, rule by rule: which SRQs and QPs there may be, the operations on the list, what a message finds there,
 * and the rendezvous. What random operations and packets do, and loss, is test_tag_worlds.c.
 */
#include "core/tags.h"
#include "harness/datagram.h"
#include "harness/lossy.h"
#include "harness/matching.h"
#include "nic/control.h"

static void recreate_srq(struct tags *t, uint32_t count, int status)
{
	struct skua_cmd cmd = tags_srq_cmd(t->b, count);

	assert_int_equal(command(t->w, t->b, &cmd), status);
}

static void srqs_that_may_be(void **state)
{
	struct tags *t = *state;
	struct skua_cmd xrcd = CMD(SKUA_CMD_CREATE_XRCD), cmd;
	uint32_t xrcdn = must(t->w, t->b, xrcd);

	new_queues(t->b);
	recreate_srq(t, LIMIT_TAGS + 1, SKUA_CMD_BAD_PARAM);
	recreate_srq(t, LIMIT_TAGS, SKUA_CMD_OK);
	cmd = tags_srq_cmd(t->b, TAGS);
	cmd.create_srq.cqn = 0;
	assert_int_equal(command(t->w, t->b, &cmd), SKUA_CMD_BAD_OBJECT);
	cmd = tags_srq_cmd(t->b, TAGS);
	cmd.create_srq.xrcdn = htole32(xrcdn);
	assert_int_equal(command(t->w, t->b, &cmd), SKUA_CMD_BAD_PARAM);
	cmd = tags_srq_cmd(t->b, 0);
	assert_int_equal(command(t->w, t->b, &cmd), SKUA_CMD_BAD_PARAM);
	cmd = object_cmd(SKUA_CMD_DESTROY_CQ, t->b->cqn);
	assert_int_equal(command(t->w, t->b, &cmd), SKUA_CMD_BUSY);
}

static void qps_that_may_be(void **state)
{
	struct tags *t = *state;
	struct skua_cmd pd = CMD(SKUA_CMD_CREATE_PD), cmd;
	uint32_t pdn = must(t->w, t->b, pd), cqn;
	struct completions own = new_completions(t->b, LOG_CQ);

	cqn = must(t->w, t->b, create_cq_cmd(t->b));
	use_completions(t->b, own);
#define TRY(type_, status_, ...) do {					\
	new_queues(t->b);						\
	cmd = tags_user_cmd(t, SKUA_QPT_##type_);				\
	__VA_ARGS__;							\
	assert_int_equal(command(t->w, t->b, &cmd), status_);		\
} while (0)
	TRY(RC, SKUA_CMD_OK, );
	TRY(RC, SKUA_CMD_OK, cmd.create_qp.pdn = htole32(pdn));
	TRY(RC, SKUA_CMD_BAD_PARAM, cmd.create_qp.recv_cqn = htole32(cqn));
	TRY(RC, SKUA_CMD_BAD_PARAM, cmd.create_qp.sq = list(t->b->sq, 64u << LOG_SQ); cmd.create_qp.log_sq_blocks = LOG_SQ;
	    cmd.create_qp.sq_dbr_addr = htole64(t->b->sq_dbr));
	TRY(UD, SKUA_CMD_OK, );
	TRY(UD, SKUA_CMD_BAD_PARAM, cmd.create_qp.pdn = htole32(pdn));
	TRY(UD, SKUA_CMD_BAD_PARAM, cmd.create_qp.recv_cqn = htole32(cqn));
	TRY(UD, SKUA_CMD_BAD_PARAM, cmd.create_qp.send_cqn = htole32(cqn));
	TRY(UC, SKUA_CMD_BAD_PARAM, );
	cmd = object_cmd(SKUA_CMD_DESTROY_SRQ, t->srqn);
	assert_int_equal(command(t->w, t->b, &cmd), SKUA_CMD_BUSY);
#undef TRY
}

static void memory_of_tags_counts(void **state)
{
	struct tags *t = *state;
	uint64_t before;
	uint32_t srqn;

	new_queues(t->b);
	srqn = must(t->w, t->b, tags_srq_cmd(t->b, 1));
	before = t->b->dev->pages_used;
	must(t->w, t->b, object_cmd(SKUA_CMD_DESTROY_SRQ, srqn));
	srqn = must(t->w, t->b, tags_srq_cmd(t->b, 201));
	assert_int_equal(t->b->dev->pages_used - before, 200 * 128 / 64);
	must(t->w, t->b, object_cmd(SKUA_CMD_DESTROY_SRQ, srqn));
	t->b->dev->max_pages = t->b->dev->pages_used + 200;
	recreate_srq(t, 200, SKUA_CMD_NO_RESOURCE);
	recreate_srq(t, 50, SKUA_CMD_OK);
}

/* Nothing of a list is there without the feature. */
static void only_if_accepted(void **state)
{
	struct world *w = world_create_with(false, FEATURES_OFFERED & ~(1ull << SKUA_F_TAG_MATCHING));
	struct node *b = &w->n[1];
	struct skua_device_caps *caps;
	struct skua_cmd cmd;
	struct tags t = { .w = w, .a = &w->n[0], .b = b };

	(void)state;
	caps = query(w, b, (struct skua_cmd)CMD(SKUA_CMD_QUERY_DEVICE), sizeof(*caps));
	assert_int_equal(caps->max_tags, 0);
	new_queues(b);
	cmd = tags_srq_cmd(b, TAGS);
	assert_int_equal(command(w, b, &cmd), SKUA_CMD_BAD_PARAM);
	ud_queues(w, b, SKUA_QPT_UD, SKUA_QPS_RTS);
	tag_add(&t, 1, 1, ALL, 100);
	expect_vendor(w, b, SKUA_CQE_TAG_ADD, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_OPCODE);
	world_destroy(w);
}

static void an_srq_without_tags_has_no_list(void **state)
{
	struct tags *t = *state;

	ud_queues(t->w, t->b, SKUA_QPT_UD, SKUA_QPS_RTS);
	tag_add(t, 1, 1, ALL, 100);
	expect_vendor(t->w, t->b, SKUA_CQE_TAG_ADD, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_OPCODE);
}

static void limit_is_told(void **state)
{
	struct tags *t = *state;
	struct skua_device_caps *caps =
		query(t->w, t->b, (struct skua_cmd)CMD(SKUA_CMD_QUERY_DEVICE), sizeof(*caps));

	assert_int_equal(le32toh(caps->max_tags), LIMIT_TAGS);
}

static void messages_find_their_tags(void **state)
{
	struct tags *t = *state;

	tag_add(t, 0x30001, 0x11, ALL, 1000);
	tag_add(t, 0x50002, 0x22, ALL, 1000);
	for (uint32_t n = 2; n; n--) {
		tag_send(t, SKUA_TMH_EAGER, n * 0x11, 16 + 500);
		tag_sent(t);
		expect_tag(t, BOTH, n == 2 ? 0x50002 : 0x30001, n * 0x11, 500);
		expect_tag_data(t, n, 16, 500);
	}
	expect_none(t->w, t->b);
	assert_int_equal(STAT(t->w, t->b, rdma_rx_send), 2);
}

/* What is behind a message is not written. */
static void no_more_than_the_payload_is_placed(void **state)
{
	struct tags *t = *state;
	static const uint8_t zero[64];

	memset(at(t->b, tag_buffer(t, 1)), 0, 4096);
	tag_add(t, 1, 0x11, ALL, 4096);
	tag_send(t, SKUA_TMH_EAGER, 0x11, 16 + 100);
	expect_tag(t, BOTH, 1, 0x11, 100);
	expect_tag_data(t, 1, 16, 100);
	assert_memory_equal(at(t->b, tag_buffer(t, 1) + 100), zero, sizeof(zero));
}

static void a_message_of_a_header_alone(void **state)
{
	struct tags *t = *state;

	tag_add(t, 1, 0x11, ALL, 0);
	tag_send(t, SKUA_TMH_EAGER, 0x11, 16);
	expect_tag(t, BOTH, 1, 0x11, 0);
}

static void masks_say_what_is_compared(void **state)
{
	struct tags *t = *state;

	tag_add(t, 1, 0xab00, 0xff00, 1000);
	tag_add(t, 2, 0xff00, 0, 1000);
	tag_send(t, SKUA_TMH_EAGER, 0x12cd, 116);
	expect_tag(t, BOTH, 2, 0x12cd, 100);
	post_recv(t->b, t->b->buf + 8 * SLOT, 4096);
	tag_send(t, SKUA_TMH_EAGER, 0xab000000000012cdull, 116);
	tag_send(t, SKUA_TMH_EAGER, 0x120000000000abcdull, 116);
	expect_tag_recv(t, SKUA_CQE_TAG_UNEXPECTED, SKUA_CQE_SUCCESS, 0, 0);
	expect_tag(t, BOTH, 1, 0x120000000000abcdull, 100);
}

static void the_first_that_matches_is_taken(void **state)
{
	struct tags *t = *state;

	tag_add(t, 3, 5, ALL, 1000);
	tag_add(t, 1, 5, 0xf, 1000);
	tag_add(t, 2, 5, ALL, 1000);
	for (int i = 0; i < 3; i++) {
		tag_send(t, SKUA_TMH_EAGER, 5, 116);
		expect_tag(t, BOTH, (uint32_t)(const uint8_t[]){ 3, 1, 2 }[i], 5, 100);
	}
}

static void numbers_are_in_use_once(void **state)
{
	struct tags *t = *state;

	tag_add(t, 1, 5, ALL, 1000);
	tag_send(t, SKUA_TMH_EAGER, 5, 116);
	expect_tag(t, BOTH, 1, 5, 100);
	tag_add(t, 0x20001, 6, ALL, 1000);		/* free again */
	expect_none(t->w, t->b);
	tag_add(t, 0x30001, 7, ALL, 1000);
	expect_tag_op(t, SKUA_CQE_TAG_ADD, SKUA_CQE_LOC_QP_OP_ERR, 0);
	assert_int_equal(qp_state(t->w, t->b, t->b->qpn), SKUA_QPS_SQE);
	/* The list is as it was. */
	tag_send(t, SKUA_TMH_EAGER, 6, 116);
	expect_tag(t, BOTH, 0x20001, 6, 100);
}

static void numbers_above_those_of_the_srq(void **state)
{
	struct tags *t = *state;

	tag_add(t, TAGS - 1, 5, ALL, 1000);
	tag_add(t, TAGS, 5, ALL, 1000);
	expect_vendor(t->w, t->b, SKUA_CQE_TAG_ADD, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_BOUNDS);
}

static void fields_that_must_be_zero(void **state)
{
	struct tags *t = *state;
	struct skua_wqe_tag ops[] = {
		tag_of(t, 1, 1, 1, 1), tag_of(t, 1, 1, 1, 1), tag_of(t, 1, 1, 1, 1),
		{ .handle = htole32(1), .tag = 1 }, { .handle = htole32(1), .mask = 1 },
		{ .handle = htole32(1), .sge.length = 1 }, { .handle = htole32(1), .unexpected = 1 },
		{ .handle = htole32(1) }, { .tag = 1 }, { .flags = htole32(2) },
	};

	ops[0].rsvd = 1;
	ops[1].flags = htole32(2);
	ops[2].unexpected = 1;
	for (unsigned int i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		uint8_t opcode = i < 3 ? SKUA_WQE_TAG_ADD : i < 7 ? SKUA_WQE_TAG_DEL : SKUA_WQE_TAG_SYNC;

		tag_operation(t, opcode, 0, ops[i]);
		expect_vendor(t->w, t->b, (uint8_t)(opcode - SKUA_WQE_TAG_ADD + SKUA_CQE_TAG_ADD),
			      SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_FORMAT);
		must(t->w, t->b, state_cmd(t->b->qpn, SKUA_QPS_RTS));
	}
}

static void tags_are_taken_out_once(void **state)
{
	struct tags *t = *state;

	tag_add(t, 0x10001, 5, ALL, 1000);
	tag_del(t, 0x20001);		/* another one of this number */
	expect_tag_op(t, SKUA_CQE_TAG_DEL, SKUA_CQE_TM_ERR, 0);
	tag_del(t, 0xffff);
	expect_tag_op(t, SKUA_CQE_TAG_DEL, SKUA_CQE_TM_ERR, 0);
	tag_del(t, 0x10001);
	expect_tag_op(t, SKUA_CQE_TAG_DEL, SKUA_CQE_SUCCESS, 0);
	tag_del(t, 0x10001);
	expect_tag_op(t, SKUA_CQE_TAG_DEL, SKUA_CQE_TM_ERR, 0);
	assert_int_equal(qp_state(t->w, t->b, t->b->qpn), SKUA_QPS_RTS);
	/* It matches nothing any more, and its number is free. */
	post_recv(t->b, t->b->buf, 4096);
	tag_send(t, SKUA_TMH_EAGER, 5, 116);
	expect_tag_recv(t, SKUA_CQE_TAG_UNEXPECTED, SKUA_CQE_SUCCESS, 0, 0);
	tag_sync(t, 1);
	expect_tag_op(t, SKUA_CQE_TAG_SYNC, SKUA_CQE_SUCCESS, 0);
	tag_add(t, 0x30001, 5, ALL, 1000);
	tag_send(t, SKUA_TMH_EAGER, 5, 116);
	expect_tag(t, BOTH, 0x30001, 5, 100);
	tag_del(t, 0x30001);
	expect_tag_op(t, SKUA_CQE_TAG_DEL, SKUA_CQE_TM_ERR, 0);
}

/* After an unexpected message, tags wait until the host has said that it knows of it. */
static void tags_are_not_active_before_the_host_has_counted(void **state)
{
	struct tags *t = *state;

	for (int i = 0; i < 4; i++)
		post_recv(t->b, t->b->buf + (uint32_t)i * 4096, 4096);
	tag_add(t, 1, 1, ALL, 1000);
	tag_send(t, SKUA_TMH_EAGER, 9, 116);
	expect_tag_recv(t, SKUA_CQE_TAG_UNEXPECTED, SKUA_CQE_SUCCESS, 0, 0);
	tag_operation(t, SKUA_WQE_TAG_ADD, SKUA_WQE_SIGNALED, tag_of(t, 2, 2, ALL, 1000));
	expect_tag_op(t, SKUA_CQE_TAG_ADD, SKUA_CQE_SUCCESS, SKUA_CQE_TAG_SYNC_REQ);
	tag_add(t, 3, 3, ALL, 1000);
	tag_send(t, SKUA_TMH_EAGER, 2, 116);	/* not active */
	expect_tag_recv(t, SKUA_CQE_TAG_UNEXPECTED, SKUA_CQE_SUCCESS, 0, 1);
	tag_send(t, SKUA_TMH_EAGER, 1, 116);	/* active still */
	expect_tag(t, BOTH, 1, 1, 100);
	tag_sync(t, 1);			/* there are two */
	expect_tag_op(t, SKUA_CQE_TAG_SYNC, SKUA_CQE_SUCCESS, SKUA_CQE_TAG_SYNC_REQ);
	tag_send(t, SKUA_TMH_EAGER, 3, 116);
	expect_tag_recv(t, SKUA_CQE_TAG_UNEXPECTED, SKUA_CQE_SUCCESS, 0, 2);
	tag_del(t, 2);				/* the first that was not active */
	expect_tag_op(t, SKUA_CQE_TAG_DEL, SKUA_CQE_SUCCESS, SKUA_CQE_TAG_SYNC_REQ);
	tag_send(t, SKUA_TMH_EAGER, 3, 116);
	expect_tag_recv(t, SKUA_CQE_TAG_UNEXPECTED, SKUA_CQE_SUCCESS, 0, 3);
	tag_sync(t, 4);
	expect_tag_op(t, SKUA_CQE_TAG_SYNC, SKUA_CQE_SUCCESS, 0);
	tag_send(t, SKUA_TMH_EAGER, 3, 116);
	expect_tag(t, BOTH, 3, 3, 100);
	tag_add(t, 4, 4, ALL, 1000);
	tag_send(t, SKUA_TMH_EAGER, 4, 116);
	expect_tag(t, BOTH, 4, 4, 100);
}

/* What is added meanwhile could have taken it, and must not take the next. */
static void tags_are_not_active_while_an_unexpected_message_comes(void **state)
{
	struct tags *t = *state;

	post_recv(t->b, t->b->buf + 8 * SLOT, 4096);
	post_recv(t->b, t->b->buf + 8 * SLOT, 4096);
	tag_header(t, 0, SKUA_TMH_EAGER, 5);
	tag_packet(t, FIRST_PSN, true, false, MTU);
	tag_operation(t, SKUA_WQE_TAG_ADD, SKUA_WQE_SIGNALED, tag_of(t, 1, 5, ALL, 1000));
	expect_tag_op(t, SKUA_CQE_TAG_ADD, SKUA_CQE_SUCCESS, SKUA_CQE_TAG_SYNC_REQ);
	tag_sync(t, 0);
	expect_tag_op(t, SKUA_CQE_TAG_SYNC, SKUA_CQE_SUCCESS, SKUA_CQE_TAG_SYNC_REQ);
	tag_packet(t, FIRST_PSN + 1, false, true, 300);
	expect_tag_recv(t, SKUA_CQE_TAG_UNEXPECTED, SKUA_CQE_SUCCESS, 0, 0);
	tag_packet(t, FIRST_PSN + 2, true, true, 116);
	expect_tag_recv(t, SKUA_CQE_TAG_UNEXPECTED, SKUA_CQE_SUCCESS, 0, 1);
	tag_sync(t, 2);
	expect_tag_op(t, SKUA_CQE_TAG_SYNC, SKUA_CQE_SUCCESS, 0);
	tag_packet(t, FIRST_PSN + 3, true, true, 116);
	expect_tag(t, BOTH, 1, 5, 100);
}

/* Nobody can handle what no CQE tells of. */
static void an_unexpected_message_that_ends_half_way(void **state)
{
	struct tags *t = *state;

	post_recv(t->b, t->b->buf + 8 * SLOT, 4096);
	tag_header(t, 0, SKUA_TMH_EAGER, 5);
	tag_packet(t, FIRST_PSN, true, false, MTU);
	must(t->w, t->b, state_cmd(t->qpn, SKUA_QPS_ERR));
	expect_tag_recv(t, SKUA_CQE_RECV, SKUA_CQE_WR_FLUSH_ERR, 0, 0);
	tag_sync(t, 0);
	expect_tag_op(t, SKUA_CQE_TAG_SYNC, SKUA_CQE_SUCCESS, 0);
}

static void messages_without_a_tag(void **state)
{
	struct tags *t = *state;
	static const struct {
		uint8_t opcode;
		uint32_t len;
	} no_tag[] = { { SKUA_TMH_NO_TAG, 200 }, { SKUA_TMH_FIN, 32 }, { 4, 200 }, { 255, 200 }, { SKUA_TMH_EAGER, 15 },
		       { SKUA_TMH_EAGER, 0 }, { SKUA_TMH_RNDV, 31 } };

	tag_add(t, 1, 0, 0, 1000);			/* matches all that could */
	for (uint32_t i = 0; i < sizeof(no_tag) / sizeof(no_tag[0]); i++) {
		struct skua_cqe *cqe;

		post_recv(t->b, t->b->buf + 8 * SLOT, 4096);
		tag_send(t, no_tag[i].opcode, 5, no_tag[i].len);
		cqe = expect_tag_recv(t, SKUA_CQE_TAG_NONE, SKUA_CQE_SUCCESS, 0, i);
		assert_int_equal(le32toh(cqe->byte_len), no_tag[i].len);
		assert_int_equal(cqe->tag, 0);
		assert_memory_equal(at(t->b, t->b->buf + 8 * SLOT), at(t->a, t->a->buf), no_tag[i].len);
	}
	/* None of them is unexpected. */
	tag_sync(t, 0);
	expect_tag_op(t, SKUA_CQE_TAG_SYNC, SKUA_CQE_SUCCESS, 0);
	tag_send(t, SKUA_TMH_EAGER, 5, 116);
	expect_tag(t, BOTH, 1, 5, 100);
}

static void a_write_with_immediate_takes_an_entry(void **state)
{
	struct tags *t = *state;

	tag_add(t, 1, 0, 0, 1000);
	post_recv(t->b, t->b->buf, 4096);
	post(t->a, SKUA_WQE_WRITE_IMM, SKUA_WQE_SIGNALED, t->a->buf, 100, t->b->buf, t->b->key, 7);
	expect_tag_recv(t, SKUA_CQE_RECV_WRITE_IMM, SKUA_CQE_SUCCESS, SKUA_CQE_WITH_IMM, 0);
}

static void immediate_data_and_solicited(void **state)
{
	struct tags *t = *state;
	struct skua_cqe *cqe;

	tag_add(t, 1, 5, ALL, 1000);
	tag_header(t, 0, SKUA_TMH_EAGER, 5);
	post(t->a, SKUA_WQE_SEND_IMM, SKUA_WQE_SOLICITED, t->a->buf, 116, 0, 0, 0x1234);
	cqe = expect_tag_recv(t, SKUA_CQE_TAG_RECV, SKUA_CQE_SUCCESS, BOTH | SKUA_CQE_WITH_IMM | SKUA_CQE_SOLICITED, 1);
	assert_int_equal(cqe->imm_data, 0x1234);
}

static void a_send_with_invalidate_is_refused(void **state)
{
	struct tags *t = *state;

	tag_add(t, 1, 5, ALL, 1000);
	tag_header(t, 0, SKUA_TMH_EAGER, 5);
	post(t->a, SKUA_WQE_SEND_INV, SKUA_WQE_SIGNALED, t->a->buf, 116, 0, 0, htole32(t->b->key));
	expect(t->w, t->a, SKUA_CQE_SEND, SKUA_CQE_REM_INV_REQ_ERR);
	assert_int_equal(qp_state(t->w, t->b, t->qpn), SKUA_QPS_ERR);
	expect_none(t->w, t->b);
	tag_del(t, 1);
	expect_tag_op(t, SKUA_CQE_TAG_DEL, SKUA_CQE_SUCCESS, 0);
}

static void a_message_in_pieces_completes_twice(void **state)
{
	struct tags *t = *state;

	tag_add(t, 1, 5, ALL, 4096);
	tag_header(t, 0, SKUA_TMH_EAGER, 5);
	tag_packet(t, FIRST_PSN, true, false, MTU);
	expect_tag(t, SKUA_CQE_TAG_MATCH, 1, 5, 0);
	expect_none(t->w, t->b);
	tag_add(t, 2, 5, ALL, 4096);
	tag_del(t, 1);			/* it has matched */
	expect_tag_op(t, SKUA_CQE_TAG_DEL, SKUA_CQE_TM_ERR, 0);
	tag_packet(t, FIRST_PSN + 1, false, true, 300);
	expect_tag(t, SKUA_CQE_TAG_DATA, 1, 5, MTU - 16 + 300);
	expect_tag_data(t, 1, 16, MTU - 16 + 300);
	/* A packet that comes again changes nothing. */
	tag_packet(t, FIRST_PSN, true, false, MTU);
	expect_none(t->w, t->b);
}

/* A packet that comes early is looked at in its turn. */
static void an_early_message_matches_in_its_turn(void **state)
{
	struct tags *t = *state;

	tag_add(t, 1, 5, ALL, 4096);
	tag_add(t, 2, 5, ALL, 4096);
	tag_header(t, 0, SKUA_TMH_EAGER, 5);
	tag_packet(t, FIRST_PSN + 1, true, true, 116);
	expect_none(t->w, t->b);
	tag_packet(t, FIRST_PSN, true, true, 216);
	expect_tag(t, BOTH, 1, 5, 200);
	expect_tag(t, BOTH, 2, 5, 100);
}

static void longer_than_the_buffer(void **state)
{
	struct tags *t = *state;

	tag_add(t, 1, 5, ALL, 99);
	tag_send(t, SKUA_TMH_EAGER, 5, 116);
	expect_tag_recv(t, SKUA_CQE_TAG_RECV, SKUA_CQE_LOC_LEN_ERR, SKUA_CQE_TAG_MATCH, 1);
	expect(t->w, t->a, SKUA_CQE_SEND, SKUA_CQE_REM_INV_REQ_ERR);
	assert_int_equal(qp_state(t->w, t->b, t->qpn), SKUA_QPS_ERR);
	tag_add(t, 0x10001, 5, ALL, 99);	/* the number is free */
	expect_none(t->w, t->b);
}

static void a_buffer_that_may_not_be_written(void **state)
{
	struct tags *t = *state;
	struct skua_wqe_tag op = tag_of(t, 1, 5, ALL, 1000);

	op.sge.lkey = htole32(t->b->key + 0x100);
	tag_operation(t, SKUA_WQE_TAG_ADD, 0, op);
	tag_send(t, SKUA_TMH_EAGER, 5, 116);
	expect_tag_recv(t, SKUA_CQE_TAG_RECV, SKUA_CQE_LOC_PROT_ERR, SKUA_CQE_TAG_MATCH, 1);
	expect(t->w, t->a, SKUA_CQE_SEND, SKUA_CQE_REM_OP_ERR);
}

static void without_an_entry_the_peer_waits(void **state)
{
	struct tags *t = *state;

	tag_send(t, SKUA_TMH_EAGER, 5, 116);
	expect_none(t->w, t->b);
	assert_int_equal(STAT(t->w, t->b, rnr_nak_sent), 1);
	/* It is compared again when it comes again. */
	tag_add(t, 1, 5, ALL, 1000);
	await_success(t->w, t->a);
	expect_tag(t, BOTH, 1, 5, 100);
}

static void a_rendezvous(void **state)
{
	struct tags *t = *state;
	struct skua_tmh tmh;

	tag_add(t, 1, 5, ALL, 60000);
	post_recv(t->a, t->a->buf + SLOT, 64);
	tag_request(t, 5, 4096, 50000, 48);
	tag_sent(t);
	expect_tag(t, SKUA_CQE_TAG_MATCH, 1, 5, 0);
	expect_tag(t, SKUA_CQE_TAG_DATA, 1, 5, 50000);
	expect_tag_data(t, 1, 4096, 50000);
	/* Its FIN has the headers of the request. */
	assert_int_equal(le32toh(await_cqe(t->w, t->a)->byte_len), 32);
	memcpy(&tmh, at(t->a, t->a->buf), sizeof(tmh));
	tmh.opcode = SKUA_TMH_FIN;
	assert_memory_equal(at(t->a, t->a->buf + SLOT), &tmh, sizeof(tmh));
	assert_memory_equal(at(t->a, t->a->buf + SLOT + 16), at(t->a, t->a->buf + 16), 16);
	expect_none(t->w, t->a);
	expect_none(t->w, t->b);
	tag_add(t, 0x10001, 5, ALL, 100);
	expect_none(t->w, t->b);
}

/* The peer is told when its memory was read, not before. */
static void no_fin_before_the_payload(void **state)
{
	struct tags *t = *state;
	struct skua_rvh rvh = { htobe64(t->a->buf), htobe32(t->a->key), htobe32(5000) };

	tag_add(t, 1, 5, ALL, 5000);
	post_recv(t->a, t->a->buf + SLOT, 64);
	memcpy(at(t->a, t->a->buf + 16), &rvh, sizeof(rvh));
	tag_header(t, 0, SKUA_TMH_RNDV, 5);
	IMPAIR(t->a, "drop=100%,dir=out");
	tag_packet(t, FIRST_PSN, true, true, 32);
	expect_tag(t, SKUA_CQE_TAG_MATCH, 1, 5, 0);
	pass(t->w, 1000000);
	expect_none(t->w, t->b);
	expect_none(t->w, t->a);
	assert_true(skua_dev_set_impair(t->a->dev, NULL));
	assert_int_equal(await_success(t->w, t->b)->flags & BOTH, SKUA_CQE_TAG_DATA);
	assert_int_equal(await_success(t->w, t->a)->opcode, SKUA_CQE_RECV);
}

/* Buffers are looked up in the PD of the SRQ, whatever that of the QP is. */
static void a_qp_of_another_pd(void **state)
{
	struct tags *t = *state;
	struct skua_cmd pd = CMD(SKUA_CMD_CREATE_PD), cmd;
	uint32_t pdn = must(t->w, t->b, pd);

	must(t->w, t->b, object_cmd(SKUA_CMD_DESTROY_QP, t->qpn));
	cmd = tags_user_cmd(t, SKUA_QPT_RC);
	cmd.create_qp.pdn = htole32(pdn);
	t->qpn = must(t->w, t->b, cmd);
	must(t->w, t->a, state_cmd(t->a->qpn, SKUA_QPS_RESET));
	tags_connect(t);
	tag_add(t, 1, 5, ALL, 5000);
	tag_add(t, 2, 5, ALL, 5000);
	post_recv(t->a, t->a->buf + SLOT, 64);
	tag_send(t, SKUA_TMH_EAGER, 5, 116);
	expect_tag(t, BOTH, 1, 5, 100);
	tag_request(t, 5, 4096, 3000, 48);
	expect_tag(t, SKUA_CQE_TAG_MATCH, 2, 5, 0);
	expect_tag(t, SKUA_CQE_TAG_DATA, 2, 5, 3000);
	expect_tag_data(t, 2, 4096, 3000);
}

/* The peer has no receive for it at once. */
static void a_fin_that_waits(void **state)
{
	struct tags *t = *state;

	tag_add(t, 1, 5, ALL, 5000);
	tag_request(t, 5, 4096, 3000, 48);
	tag_sent(t);
	expect_tag(t, SKUA_CQE_TAG_MATCH, 1, 5, 0);
	expect_tag(t, SKUA_CQE_TAG_DATA, 1, 5, 3000);
	expect_none(t->w, t->a);
	post_recv(t->a, t->a->buf + SLOT, 64);
	assert_int_equal(await_success(t->w, t->a)->opcode, SKUA_CQE_RECV);
	assert_true(STAT(t->w, t->a, rnr_nak_sent) > 0);
}

static void a_rendezvous_of_nothing(void **state)
{
	struct tags *t = *state;

	tag_add(t, 1, 5, ALL, 0);
	post_recv(t->a, t->a->buf + SLOT, 64);
	tag_request(t, 5, 4096, 0, 32);
	tag_sent(t);
	expect_tag(t, SKUA_CQE_TAG_MATCH, 1, 5, 0);
	expect_tag(t, SKUA_CQE_TAG_DATA, 1, 5, 0);
	expect(t->w, t->a, SKUA_CQE_RECV, SKUA_CQE_SUCCESS);
}

#define MANY	(3 * RNDV_WINDOW)

/* More than the window has room for; each tag is used once. */
static void many_rendezvous(void **state)
{
	struct tags *t = *state;
	struct skua_cmd rts;

	must(t->w, t->b, state_cmd(t->qpn, SKUA_QPS_RESET));
	must(t->w, t->a, state_cmd(t->a->qpn, SKUA_QPS_RESET));
	t->a->sq_pi = 0;
	host_store32(at(t->a, t->a->sq_dbr), 0);
	must(t->w, t->b, object_cmd(SKUA_CMD_DESTROY_QP, t->qpn));
	must(t->w, t->b, object_cmd(SKUA_CMD_DESTROY_QP, t->b->qpn));
	must(t->w, t->b, object_cmd(SKUA_CMD_DESTROY_SRQ, t->srqn));
	new_queues(t->b);
	t->srqn = must(t->w, t->b, tags_srq_cmd(t->b, MANY));
	t->qpn = must(t->w, t->b, tags_user_cmd(t, SKUA_QPT_RC));
	t->b->qpn = must(t->w, t->b, tags_user_cmd(t, SKUA_QPT_UD));
	ud_bring(t->w, t->b, QKEY, SKUA_QPS_RTS);
	must(t->w, t->b, init_cmd(t->qpn));
	must(t->w, t->b, rtr_cmd(t->qpn, t->a, t->a->qpn));	/* no READ before RTS */
	must(t->w, t->a, init_cmd(t->a->qpn));
	rts = rtr_cmd(t->a->qpn, t->b, t->qpn);
	rts.modify_qp.attr.max_dest_rd_atomic = htole16(2 * RNDV_WINDOW);
	must(t->w, t->a, rts);
	must(t->w, t->a, rts_cmd(t->a->qpn));
	for (uint32_t i = 0; i < MANY; i++) {
		tag_add(t, i, i, ALL, 5000);
		post_recv(t->a, t->a->buf + SLOT, 64);
	}
	for (uint32_t i = 0; i < MANY; i++) {
		tag_request(t, i, 4096 + i * 64, 5000, 48);
		tag_sent(t);
		expect_tag(t, SKUA_CQE_TAG_MATCH, i, i, 0);
	}
	expect_none(t->w, t->b);
	IMPAIR(t->a, "delay=1ms,dir=out");
	rts = rts_cmd(t->qpn);
	rts.modify_qp.attr.max_rd_atomic = htole16(2 * RNDV_WINDOW);
	must(t->w, t->b, rts);
	for (uint32_t i = 0; i < MANY; i++) {
		await_success(t->w, t->b);
		expect_tag_data(t, i, 4096 + i * 64, 5000);
		assert_int_equal(await_success(t->w, t->a)->opcode, SKUA_CQE_RECV);
	}
	expect_none(t->w, t->b);
}

static void requests_that_are_too_long_are_unexpected(void **state)
{
	struct tags *t = *state;

	tag_add(t, 1, 5, ALL, 60000);
	for (uint32_t i = 0; i < 2; i++) {
		post_recv(t->b, t->b->buf + 8 * SLOT, 4096);
		tag_request(t, 5, 4096, 5000, i ? 2 * MTU : SKUA_RNDV_MAX_HEADER + 1);
		expect_tag_recv(t, SKUA_CQE_TAG_UNEXPECTED, SKUA_CQE_SUCCESS, 0, i);
	}
	tag_request(t, 5, 4096, 5000, SKUA_RNDV_MAX_HEADER);
	expect_tag(t, SKUA_CQE_TAG_MATCH, 1, 5, 0);
}

static void the_host_carries_on_if_the_buffer_is_too_short(void **state)
{
	struct tags *t = *state;
	struct skua_cqe *cqe;

	tag_add(t, 1, 5, ALL, 4999);
	tag_request(t, 5, 4096, 5000, 48);
	tag_sent(t);
	cqe = expect_tag_recv(t, SKUA_CQE_TAG_RECV, SKUA_CQE_TM_RNDV_INCOMPLETE, BOTH, 1);
	assert_int_equal(le32toh(cqe->byte_len), 48);
	assert_int_equal(le64toh(cqe->tag), 5);
	expect_tag_data(t, 1, 0, 48);
	assert_int_equal(qp_state(t->w, t->b, t->qpn), SKUA_QPS_RTS);
	pass(t->w, 1000000000);
	expect_none(t->w, t->b);
	assert_int_equal(STAT(t->w, t->b, rdma_tx_read), 0);
	/* Nor is more read than a message may have. */
	tag_add(t, 0x10001, 5, ALL, UINT32_MAX);
	tag_request(t, 5, 4096, LIMIT_MSG + 1, 48);
	expect_tag_recv(t, SKUA_CQE_TAG_RECV, SKUA_CQE_TM_RNDV_INCOMPLETE, BOTH, 0x10001);
}

static void a_read_that_the_peer_refuses(void **state)
{
	struct tags *t = *state;
	struct skua_rvh rvh = { htobe64(t->a->buf), htobe32(t->a->key + 0x100), htobe32(100) };

	tag_add(t, 1, 5, ALL, 4999);
	memcpy(at(t->a, t->a->buf + 16), &rvh, sizeof(rvh));
	tag_send(t, SKUA_TMH_RNDV, 5, 32);
	expect_tag(t, SKUA_CQE_TAG_MATCH, 1, 5, 0);
	expect_tag_recv(t, SKUA_CQE_TAG_RECV, SKUA_CQE_REM_ACCESS_ERR, 0, 1);
	assert_int_equal(qp_state(t->w, t->b, t->qpn), SKUA_QPS_ERR);
	expect_none(t->w, t->b);
	tag_add(t, 0x10001, 5, ALL, 100);
	expect_none(t->w, t->b);
}

/* The peer has no receive for the FIN. */
static void a_fin_that_fails(void **state)
{
	struct tags *t = *state;

	tag_add(t, 1, 5, ALL, 4999);
	tag_request(t, 5, 4096, 100, 32);
	expect_tag(t, SKUA_CQE_TAG_MATCH, 1, 5, 0);
	expect_tag(t, SKUA_CQE_TAG_DATA, 1, 5, 100);
	must(t->w, t->a, state_cmd(t->a->qpn, SKUA_QPS_RESET));
	for (int i = 0; i < 1000 && qp_state(t->w, t->b, t->qpn) != SKUA_QPS_ERR; i++)
		pass(t->w, 100000000);
	assert_int_equal(qp_state(t->w, t->b, t->qpn), SKUA_QPS_ERR);
	expect_none(t->w, t->b);
	assert_int_equal(poll_aeq(t->b)->type, SKUA_EVENT_QP_FATAL);
}

/* A message under way, a rendezvous whose READ is not answered, and one that has not begun. */
static void leave_unfinished(struct tags *t)
{
	IMPAIR(t->b, "drop=100%,dir=out");
	for (uint32_t i = 0; i < RNDV_WINDOW / 2 + 1 && i + 1 < TAGS; i++) {
		struct skua_rvh rvh = { htobe64(t->a->buf), htobe32(t->a->key), htobe32(5000) };

		tag_add(t, i, i, ALL, 5000);
		memcpy(at(t->a, t->a->buf + 16), &rvh, sizeof(rvh));
		tag_header(t, 0, SKUA_TMH_RNDV, i);
		tag_packet(t, FIRST_PSN + i, true, true, 32);
		expect_tag(t, SKUA_CQE_TAG_MATCH, i, i, 0);
	}
	tag_add(t, TAGS - 1, 5, ALL, 4096);
	tag_header(t, 0, SKUA_TMH_EAGER, 5);
	tag_packet(t, FIRST_PSN + TAGS - 1, true, false, MTU);
	expect_tag(t, SKUA_CQE_TAG_MATCH, TAGS - 1, 5, 0);
	expect_none(t->w, t->b);
}

static void expect_flushed(struct tags *t, uint8_t status)
{
	uint32_t seen = 0;

	for (uint32_t i = 0; i < TAGS; i++) {
		struct skua_cqe *cqe = await_cqe(t->w, t->b);
		uint32_t handle = le32toh(cqe->cookie);

		assert_int_equal(cqe->opcode, SKUA_CQE_TAG_RECV);
		assert_int_equal(cqe->status, status);
		assert_true(handle < TAGS && !(seen >> handle & 1));
		seen |= 1u << handle;
	}
	expect_none(t->w, t->b);
	for (uint32_t i = 0; i < TAGS; i++)	/* the numbers are free */
		tag_add(t, 0x10000 | i, i, ALL, 4096);
	expect_none(t->w, t->b);
}

static void error_completes_what_has_matched(void **state)
{
	struct tags *t = *state;

	leave_unfinished(t);
	must(t->w, t->b, state_cmd(t->qpn, SKUA_QPS_ERR));
	expect_flushed(t, SKUA_CQE_WR_FLUSH_ERR);
	must(t->w, t->b, state_cmd(t->qpn, SKUA_QPS_RESET));
	expect_none(t->w, t->b);
}

static void reset_completes_what_has_matched(void **state)
{
	struct tags *t = *state;

	leave_unfinished(t);
	must(t->w, t->b, state_cmd(t->qpn, SKUA_QPS_RESET));
	expect_flushed(t, SKUA_CQE_WR_FLUSH_ERR);
	/* And the QP goes on. */
	assert_true(skua_dev_set_impair(t->b->dev, NULL));
	must(t->w, t->a, state_cmd(t->a->qpn, SKUA_QPS_RESET));
	tags_connect(t);
	tag_send(t, SKUA_TMH_EAGER, 3, 116);
	expect_tag(t, BOTH, 0x10003, 3, 100);
	post_recv(t->b, t->b->buf + TAGS * SLOT, 4096);
	tag_send(t, SKUA_TMH_EAGER, 99, 116);
	expect_tag_recv(t, SKUA_CQE_TAG_UNEXPECTED, SKUA_CQE_SUCCESS, 0, 0);
}

static void destruction_completes_what_has_matched(void **state)
{
	struct tags *t = *state;

	leave_unfinished(t);
	must(t->w, t->b, object_cmd(SKUA_CMD_DESTROY_QP, t->qpn));
	expect_flushed(t, SKUA_CQE_WR_FLUSH_ERR);
	must(t->w, t->b, object_cmd(SKUA_CMD_DESTROY_QP, t->b->qpn));
	must(t->w, t->b, object_cmd(SKUA_CMD_DESTROY_SRQ, t->srqn));
	expect_none(t->w, t->b);
}

/* Nothing is written after a reset, and all memory comes back. */
static void a_reset_of_the_device_forgets_all(void **state)
{
	struct tags *t = *state;

	leave_unfinished(t);
	revive(t->w, t->b);
	expect_none(t->w, t->b);
}

static void datagrams_take_no_entries(void **state)
{
	struct tags *t = *state;
	struct train d = datagram(t->b);

	d.qkey = QKEY;
	post_recv(t->b, t->b->buf, 4096);
	arrive(t->w, t->b, t->a, d);
	expect_none(t->w, t->b);
	assert_int_equal(STAT(t->w, t->b, rdma_rx_no_receive), 1);
}

#define TEST(f, rules)	{ rules ": " #f, f, tags_setup, tags_teardown, NULL }

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(srqs_that_may_be, "TAG-1"),
		TEST(memory_of_tags_counts, "TAG-1 PL-10"),
		TEST(limit_is_told, "LIM-1"),
		{ "FEA-2: only_if_accepted", only_if_accepted, NULL, NULL, NULL },
		TEST(qps_that_may_be, "TAG-2"),
		TEST(datagrams_take_no_entries, "TAG-2"),
		TEST(an_srq_without_tags_has_no_list, "TAG-3"),
		TEST(numbers_are_in_use_once, "TAG-3"),
		TEST(numbers_above_those_of_the_srq, "TAG-3"),
		TEST(fields_that_must_be_zero, "WQE-5 TAG-3"),
		TEST(tags_are_taken_out_once, "TAG-4 TAG-7"),
		TEST(masks_say_what_is_compared, "TAG-5"),
		TEST(the_first_that_matches_is_taken, "TAG-5"),
		TEST(tags_are_not_active_before_the_host_has_counted, "TAG-6 TAG-7"),
		TEST(an_unexpected_message_that_ends_half_way, "TAG-6"),
		TEST(tags_are_not_active_while_an_unexpected_message_comes, "TAG-6"),
		TEST(messages_find_their_tags, "TAG-8 TAG-9"),
		TEST(no_more_than_the_payload_is_placed, "TAG-9"),
		TEST(a_message_of_a_header_alone, "TAG-9"),
		TEST(a_message_in_pieces_completes_twice, "TAG-4 TAG-8 TAG-9"),
		TEST(an_early_message_matches_in_its_turn, "TAG-8"),
		TEST(immediate_data_and_solicited, "TAG-9"),
		TEST(without_an_entry_the_peer_waits, "TAG-12"),
		TEST(a_rendezvous, "TAG-10"),
		TEST(no_fin_before_the_payload, "TAG-10"),
		TEST(a_qp_of_another_pd, "TAG-3 SRQ-2"),
		TEST(a_fin_that_waits, "TAG-10"),
		TEST(a_rendezvous_of_nothing, "TAG-10"),
		TEST(many_rendezvous, "TAG-10"),
		TEST(a_read_that_the_peer_refuses, "TAG-10"),
		TEST(a_fin_that_fails, "TAG-10"),
		TEST(requests_that_are_too_long_are_unexpected, "TAG-8"),
		TEST(the_host_carries_on_if_the_buffer_is_too_short, "TAG-11"),
		TEST(messages_without_a_tag, "TAG-12"),
		TEST(a_write_with_immediate_takes_an_entry, "TAG-12"),
		TEST(a_send_with_invalidate_is_refused, "TAG-12"),
		TEST(longer_than_the_buffer, "TAG-13"),
		TEST(a_buffer_that_may_not_be_written, "TAG-13"),
		TEST(error_completes_what_has_matched, "TAG-14"),
		TEST(reset_completes_what_has_matched, "TAG-14"),
		TEST(destruction_completes_what_has_matched, "TAG-14"),
		TEST(a_reset_of_the_device_forgets_all, "RST-1 TAG-14"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
