// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "harness/matching.h"

#include "harness/datagram.h"

#define CTX	0xc0ffee01u

struct skua_cmd tags_srq_cmd(struct node *n, uint32_t count)
{
	struct skua_cmd cmd = CMD(SKUA_CMD_CREATE_SRQ, .create_srq = {
		.pdn = htole32(n->pdn), .log_size = LOG_RQ, .log_stride = 6, .srq_handle = htole64(SRQ_HANDLE),
		.dbr_addr = htole64(n->rq_dbr), .cqn = htole32(n->cqn), .tags = htole32(count),
		.ring = list(n->rq, 64u << LOG_RQ) });

	return cmd;
}

struct skua_cmd tags_user_cmd(const struct tags *t, uint8_t type)
{
	struct skua_cmd cmd = create_qp_cmd(t->b);

	cmd.create_qp.type = type;
	cmd.create_qp.srqn = htole32(t->srqn);
	cmd.create_qp.log_rq_size = 0;
	cmd.create_qp.log_rq_stride = 0;
	cmd.create_qp.rq_dbr_addr = 0;
	cmd.create_qp.rq = (struct skua_pagelist){ 0 };
	if (type == SKUA_QPT_RC) {
		cmd.create_qp.log_sq_blocks = 0;
		cmd.create_qp.sq_dbr_addr = 0;
		cmd.create_qp.sq = (struct skua_pagelist){ 0 };
	}
	return cmd;
}

void tags_connect(struct tags *t)
{
	must(t->w, t->a, init_cmd(t->a->qpn));
	must(t->w, t->a, rtr_cmd(t->a->qpn, t->b, t->qpn));
	must(t->w, t->a, rts_cmd(t->a->qpn));
	must(t->w, t->b, init_cmd(t->qpn));
	must(t->w, t->b, rtr_cmd(t->qpn, t->a, t->a->qpn));
	must(t->w, t->b, rts_cmd(t->qpn));
}

int tags_setup(void **state)
{
	struct tags *t = calloc(1, sizeof(*t));

	t->w = world_create(false);
	t->a = &t->w->n[0];
	t->b = &t->w->n[1];
	new_queues(t->b);
	t->srqn = must(t->w, t->b, tags_srq_cmd(t->b, TAGS));
	t->qpn = must(t->w, t->b, tags_user_cmd(t, SKUA_QPT_RC));
	t->b->qpn = must(t->w, t->b, tags_user_cmd(t, SKUA_QPT_UD));
	ud_bring(t->w, t->b, QKEY, SKUA_QPS_RTS);
	new_queues(t->a);
	t->a->qpn = must(t->w, t->a, create_qp_cmd(t->a));
	tags_connect(t);
	fill(t->a, BUF_SIZE, 3);
	*state = t;
	return 0;
}

int tags_teardown(void **state)
{
	struct tags *t = *state;

	world_destroy(t->w);
	free(t);
	return 0;
}

uint64_t tag_buffer(const struct tags *t, uint32_t number)
{
	return t->b->buf + number * SLOT;
}

void tag_operation(struct tags *t, uint8_t opcode, uint8_t flags, struct skua_wqe_tag op)
{
	struct {
		struct skua_wqe_ctrl c;
		struct skua_wqe_tag op;
	} w = { { opcode, flags, 1, 0, htole32(t->b->sq_pi), 0, { 0 } }, op };

	post_block(t->b, &w);
	settle(t->w);
}

struct skua_wqe_tag tag_of(const struct tags *t, uint32_t handle, uint64_t tag, uint64_t mask, uint32_t len)
{
	return (struct skua_wqe_tag){
		.handle = htole32(handle), .tag = htole64(tag), .mask = htole64(mask),
		.sge = { htole64(tag_buffer(t, handle & SKUA_TAG_NUMBER)), htole32(len), htole32(t->b->key) },
	};
}

void tag_add(struct tags *t, uint32_t handle, uint64_t tag, uint64_t mask, uint32_t len)
{
	tag_operation(t, SKUA_WQE_TAG_ADD, 0, tag_of(t, handle, tag, mask, len));
}

void tag_sync(struct tags *t, uint32_t count)
{
	tag_operation(t, SKUA_WQE_TAG_SYNC, SKUA_WQE_SIGNALED,
		      (struct skua_wqe_tag){ .unexpected = htole32(count), .flags = htole32(SKUA_TAG_COUNT) });
}

void tag_del(struct tags *t, uint32_t handle)
{
	tag_operation(t, SKUA_WQE_TAG_DEL, SKUA_WQE_SIGNALED, (struct skua_wqe_tag){ .handle = htole32(handle) });
}

void expect_tag_op(struct tags *t, uint8_t opcode, uint8_t status, uint8_t flags)
{
	struct skua_cqe *cqe = await_cqe(t->w, t->b);

	assert_int_equal(cqe->opcode, opcode);
	assert_int_equal(cqe->status, status);
	assert_int_equal(cqe->flags & ~SKUA_CQE_PHASE, SKUA_CQE_FROM_SRQ | flags);
	assert_int_equal(le64toh(cqe->qp_handle), SRQ_HANDLE);
	assert_int_equal(le32toh(cqe->qpn), t->b->qpn);
	assert_int_equal(le32toh(cqe->sq_ci), le32toh(cqe->cookie) + 1);
}

void tag_header(struct tags *t, uint64_t offset, uint8_t opcode, uint64_t tag)
{
	struct skua_tmh tmh = { .opcode = opcode, .app_ctx = htobe32(CTX), .tag = htobe64(tag) };

	memcpy(at(t->a, t->a->buf + offset), &tmh, sizeof(tmh));
}

void tag_send(struct tags *t, uint8_t opcode, uint64_t tag, uint32_t len)
{
	tag_header(t, 0, opcode, tag);
	post(t->a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, t->a->buf, len, 0, 0, 0);
	settle(t->w);
}

void tag_request(struct tags *t, uint64_t tag, uint64_t offset, uint32_t len, uint32_t bytes)
{
	struct skua_rvh rvh = { htobe64(t->a->buf + offset), htobe32(t->a->key), htobe32(len) };

	memcpy(at(t->a, t->a->buf + sizeof(struct skua_tmh)), &rvh, sizeof(rvh));
	tag_send(t, SKUA_TMH_RNDV, tag, bytes);
}

struct skua_cqe *expect_tag_recv(struct tags *t, uint8_t opcode, uint8_t status, uint8_t flags, uint32_t cookie)
{
	struct skua_cqe *cqe = await_cqe(t->w, t->b);

	assert_int_equal(cqe->opcode, opcode);
	assert_int_equal(cqe->status, status);
	assert_int_equal(cqe->flags & ~SKUA_CQE_PHASE, SKUA_CQE_FROM_SRQ | flags);
	assert_int_equal(le64toh(cqe->qp_handle), SRQ_HANDLE);
	assert_int_equal(le32toh(cqe->qpn), t->qpn);
	assert_int_equal(le32toh(cqe->cookie), cookie);
	assert_int_equal(cqe->sq_ci, 0);
	return cqe;
}

void expect_tag(struct tags *t, uint8_t flags, uint32_t handle, uint64_t tag, uint32_t len)
{
	struct skua_cqe *cqe = expect_tag_recv(t, SKUA_CQE_TAG_RECV, SKUA_CQE_SUCCESS, flags, handle);

	assert_int_equal(le64toh(cqe->tag), tag);
	assert_int_equal(be32toh(cqe->app_ctx), CTX);
	if (flags & SKUA_CQE_TAG_DATA)
		assert_int_equal(le32toh(cqe->byte_len), len);
}

void expect_tag_data(struct tags *t, uint32_t number, uint64_t offset, uint32_t len)
{
	assert_memory_equal(at(t->b, tag_buffer(t, number)), at(t->a, t->a->buf + offset), len);
}

void tag_sent(struct tags *t)
{
	expect(t->w, t->a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
}

void tag_packet(struct tags *t, uint32_t psn, bool first, bool last, uint32_t len)
{
	struct seglist payload = { 1, len, { { at(t->a, t->a->buf + (first ? 0 : MTU)), len } } };
	struct train p = train_from(t->b, TRAIN_SEND, psn);

	p.dest_qpn = t->qpn;
	p.first = first;
	p.last = last;
	p.payload = &payload;
	p.ack_req = last;
	arrive(t->w, t->b, t->a, p);
}
