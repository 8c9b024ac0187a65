// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Tag matching: SRQs with tags, operations on the list, and what completes them and the tags. */
#include "kernel.h"
#include "objects.h"
#include "../tm.h"

#define TM_FEATURES	(1ull << SKUA_F_TAG_MATCHING | 1ull << SKUA_F_SRQ | 1ull << SKUA_F_RC | 1ull << SKUA_F_UD)
#define TAGS		4
#define OPS		9	/* no power of two, as the ring has */
#define QPN		0x55

static uint64_t features;
static struct ibv_cq *cq;
static struct ibv_cq_ex *cq_ex;
static struct fake_cq dev;
static struct ibv_srq *srq;

static struct ibv_srq_init_attr_ex tm_attr(void)
{
	return (struct ibv_srq_init_attr_ex) {
		.attr = { .max_wr = 5, .max_sge = 1 }, .srq_type = IBV_SRQT_TM, .pd = &pd.ibv_pd, .cq = cq,
		.tm_cap = { .max_num_tags = TAGS, .max_ops = OPS },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
			     IBV_SRQ_INIT_ATTR_TM,
	};
}

static int setup_cq(void **state)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 64, .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_TM_INFO | IBV_WC_EX_WITH_CVLAN,
	};

	if (setup(state))
		return -1;
	features = ctx.caps.features;
	ctx.caps.features |= TM_FEATURES | 1ull << SKUA_F_RAW_PACKET | 1ull << SKUA_F_STRIP_CVLAN;
	cq_ex = skua_create_cq_ex(&ctx.vctx.context, &attr);
	assert_non_null(cq_ex);
	cq = ibv_cq_ex_to_cq(cq_ex);
	dev = device_of(cq);
	return 0;
}

static int teardown_cq(void **state)
{
	assert_int_equal(skua_destroy_cq(cq), 0);
	ctx.caps.features = features;
	return teardown(state);
}

static int setup_srq(void **state)
{
	struct ibv_srq_init_attr_ex attr;

	if (setup_cq(state))
		return -1;
	attr = tm_attr();
	srq = skua_create_srq_ex(&ctx.vctx.context, &attr);
	assert_non_null(srq);
	return 0;
}

static int teardown_srq(void **state)
{
	if (srq)
		assert_int_equal(skua_destroy_srq(srq), 0);
	return teardown_cq(state);
}

static struct ibv_sge buffer = { .addr = 0x1000, .length = 100, .lkey = 0x77 };

static struct ibv_ops_wr add_op(uint64_t recv_wr_id)
{
	return (struct ibv_ops_wr) {
		.wr_id = 900 + recv_wr_id, .opcode = IBV_WR_TAG_ADD,
		.tm.add = { .recv_wr_id = recv_wr_id, .sg_list = &buffer, .num_sge = 1,
			    .tag = 0x1122334455667788, .mask = 0xffff },
	};
}

static struct ibv_ops_wr del_op(uint32_t handle)
{
	return (struct ibv_ops_wr) { .wr_id = 800, .opcode = IBV_WR_TAG_DEL, .tm.handle = handle };
}

static struct ibv_ops_wr sync_op(int flags)
{
	return (struct ibv_ops_wr) { .wr_id = 700, .opcode = IBV_WR_TAG_SYNC, .flags = flags, .tm.unexpected_cnt = 41 };
}

/* It names the operation that it refuses, and no other. */
static int post(struct ibv_ops_wr *op)
{
	struct ibv_ops_wr *bad = NULL;
	int err = skua_post_srq_ops(srq, op, &bad);

	assert_ptr_equal(bad, err ? op : NULL);
	return err;
}

/* A tag for this wr_id; its handle. */
static uint32_t add(uint64_t recv_wr_id, int flags)
{
	struct ibv_ops_wr op = add_op(recv_wr_id);

	op.flags = flags;
	assert_int_equal(post(&op), 0);
	return op.tm.handle;
}

static int del(uint32_t handle)
{
	struct ibv_ops_wr op = del_op(handle);

	return post(&op);
}

static const struct skua_sq *ops_queue(void)
{
	return &to_skua_srq(srq)->tm->qp->sq;
}

/* The last operation, as the device finds it. */
static const struct skua_wqe_ctrl *last_op(void)
{
	return (void *)(ops_queue()->buf + ((ops_queue()->pi - 1) & ops_queue()->mask) * SKUA_WQE_BLOCK);
}

static const struct skua_wqe_tag *last_tag(void)
{
	return (void *)(last_op() + 1);
}

static void write_cqe(struct skua_cqe cqe)
{
	cqe.qp_handle = htole64((uintptr_t)to_skua_srq(srq));
	cqe.qpn = htole32(QPN);
	cqe.flags |= SKUA_CQE_FROM_SRQ;
	fake_cq_write(&dev, cqe);
}

/* The device completes the last operation, if it has to. */
static void complete_op(uint8_t opcode, uint8_t status)
{
	const struct skua_wqe_ctrl *op = last_op();

	if (op->flags & SKUA_WQE_SIGNALED || status)
		write_cqe((struct skua_cqe) { .opcode = opcode, .status = status, .cookie = op->cookie });
}

static void complete_tag(uint32_t handle, uint8_t flags, uint8_t status)
{
	write_cqe((struct skua_cqe) {
		.opcode = SKUA_CQE_TAG_RECV, .cookie = htole32(handle), .flags = flags, .status = status,
		.tag = htole64(0x8877665544332211), .app_ctx = htobe32(0xaabbccdd),
	});
}

static void receive(uint8_t opcode)
{
	struct ibv_recv_wr *bad, wr = { .wr_id = 60 };
	struct skua_srq *s = to_skua_srq(srq);

	assert_int_equal(skua_post_srq_recv(srq, &wr, &bad), 0);
	write_cqe((struct skua_cqe) {
		.opcode = opcode,
		.cookie = ((struct skua_rqe *)skua_srq_slot(s, s->pi - 1))->cookie,
	});
}

static struct ibv_wc poll_one(void)
{
	struct ibv_wc wc;

	memset(&wc, 0x55, sizeof(wc));
	assert_int_equal(skua_poll_cq(cq, 1, &wc), 1);
	return wc;
}

static void nothing_is_seen(void)
{
	struct ibv_poll_cq_attr attr = {};
	struct ibv_wc wc;

	assert_int_equal(skua_poll_cq(cq, 1, &wc), 0);
	assert_int_equal(ibv_start_poll(cq_ex, &attr), ENOENT);
}

/* TAG-1 TAG-2 */
static void test_the_kernel_learns_of_it(void **state)
{
	struct ibv_srq_init_attr_ex attr = tm_attr();

	attr.attr.max_wr = 0;
	attr.srq_context = &attr;
	srq = skua_create_srq_ex(&ctx.vctx.context, &attr);
	assert_non_null(srq);
	assert_int_equal(attr.attr.max_wr, 1);
	assert_ptr_equal(srq->srq_context, &attr);
	assert_int_equal(srq_req.srq_handle, (uintptr_t)to_skua_srq(srq));
	assert_int_equal(qp_init.qp_type, IBV_QPT_UD);
	assert_ptr_equal(qp_init.send_cq, cq);
	assert_ptr_equal(qp_init.recv_cq, cq);
	assert_ptr_equal(qp_init.srq, srq);
	assert_in_range(qp_init.cap.max_send_wr, OPS, 2 * OPS);
	assert_int_equal(qp_req.flags, SKUA_CREATE_QP_NO_RQ);
	assert_int_equal(qp_states, 1 << IBV_QPS_INIT | 1 << IBV_QPS_RTR | 1 << IBV_QPS_RTS);
	assert_int_equal(skua_destroy_srq(srq), 0);
	srq = NULL;
}

static void test_wrong_attributes(void **state)
{
	static const struct { uint32_t tags, ops, without, with; int err; } bad[] = {
		{ 0, OPS, 0, 0, EINVAL },
		{ SKUA_TM_MAX_TAGS + 1, OPS, 0, 0, EINVAL },
		{ TAGS, 0, 0, 0, EINVAL },
		{ TAGS, 257, 0, 0, EINVAL },
		{ TAGS, OPS, IBV_SRQ_INIT_ATTR_TM, 0, EINVAL },
		{ TAGS, OPS, IBV_SRQ_INIT_ATTR_CQ, 0, EINVAL },
		{ TAGS, OPS, IBV_SRQ_INIT_ATTR_PD, 0, EINVAL },
		{ TAGS, OPS, IBV_SRQ_INIT_ATTR_TYPE, 0, EOPNOTSUPP },
		{ TAGS, OPS, 0, IBV_SRQ_INIT_ATTR_XRCD, EOPNOTSUPP },
	};
	struct ibv_srq_init_attr_ex attr;

	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		attr = tm_attr();
		attr.tm_cap.max_num_tags = bad[i].tags;
		attr.tm_cap.max_ops = bad[i].ops;
		attr.comp_mask = (attr.comp_mask | bad[i].with) & ~bad[i].without;
		assert_null(skua_create_srq_ex(&ctx.vctx.context, &attr));
		assert_int_equal(errno, bad[i].err);
	}
	attr = tm_attr();
	attr.tm_cap.max_ops = 256;
	attr.tm_cap.max_num_tags = SKUA_TM_MAX_TAGS;
	srq = skua_create_srq_ex(&ctx.vctx.context, &attr);
	assert_non_null(srq);
	assert_int_equal(skua_destroy_srq(srq), 0);
	srq = NULL;
}

/* Whichever feature is missing. */
static void test_without_the_features(void **state)
{
	struct ibv_cq_init_attr_ex of_cq = { .cqe = 4, .wc_flags = IBV_WC_EX_WITH_TM_INFO };
	struct ibv_srq_init_attr_ex attr = tm_attr();

	for (unsigned int i = 0; i < 64; i++) {
		if (!(TM_FEATURES >> i & 1))
			continue;
		ctx.caps.features &= ~(1ull << i);
		assert_null(skua_create_srq_ex(&ctx.vctx.context, &attr));
		assert_int_equal(errno, EOPNOTSUPP);
		assert_null(skua_create_cq_ex(&ctx.vctx.context, &of_cq));
		assert_int_equal(errno, EOPNOTSUPP);
		ctx.caps.features |= 1ull << i;
	}
}

/* The teardown sees whether memory is left. */
static void test_a_refusal_of_the_kernel_leaves_nothing(void **state)
{
	struct ibv_srq_init_attr_ex attr;

	/* The SRQ, its QP, and three states of that. */
	for (unsigned int i = 1; i <= 5; i++) {
		attr = tm_attr();
		refused_command = i;
		assert_null(skua_create_srq_ex(&ctx.vctx.context, &attr));
		assert_int_equal(errno, EINVAL);
		assert_int_equal(refused_command, 0);
	}
}

/* TAG-3 TAG-4 TAG-6: each field of them. */
static void test_operations(void **state)
{
	const struct skua_wqe_tag *tag;
	struct ibv_ops_wr op = add_op(5);
	uint32_t handle;

	db_page[SKUA_DB_SQ / 8] = 0;
	assert_int_equal(post(&op), 0);
	assert_int_not_equal(db_page[SKUA_DB_SQ / 8], 0);
	handle = op.tm.handle;
	tag = last_tag();
	assert_int_equal(last_op()->opcode, SKUA_WQE_TAG_ADD);
	assert_int_equal(last_op()->flags, 0);
	assert_int_equal(last_op()->nblocks, 1);
	assert_int_equal(last_op()->num_sge, 0);
	assert_int_equal(le32toh(tag->handle), handle);
	assert_true((handle & SKUA_TAG_NUMBER) < TAGS);
	assert_int_equal(le64toh(tag->tag), 0x1122334455667788);
	assert_int_equal(le64toh(tag->mask), 0xffff);
	assert_int_equal(tag->flags | tag->unexpected | tag->rsvd, 0);
	assert_int_equal(le64toh(tag->sge.addr), 0x1000);
	assert_int_equal(le32toh(tag->sge.length), 100);
	assert_int_equal(le32toh(tag->sge.lkey), 0x77);

	op = add_op(6);
	op.flags = IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC;
	op.tm.unexpected_cnt = UINT32_MAX;
	op.tm.add.num_sge = 0;
	assert_int_equal(post(&op), 0);
	tag = last_tag();
	assert_int_equal(last_op()->flags, SKUA_WQE_SIGNALED);
	assert_int_equal(le32toh(tag->flags), SKUA_TAG_COUNT);
	assert_int_equal(le32toh(tag->unexpected), UINT32_MAX);
	assert_int_equal(tag->sge.length | tag->sge.lkey, 0);
	assert_int_not_equal(op.tm.handle, handle);

	/* The device always tells when a number is free. */
	assert_int_equal(del(handle), 0);
	assert_int_equal(last_op()->opcode, SKUA_WQE_TAG_DEL);
	assert_int_equal(last_op()->flags, SKUA_WQE_SIGNALED);
	assert_int_equal(le32toh(last_tag()->handle), handle);
	assert_true(last_tag()->tag == 0 && last_tag()->mask == 0);

	op = sync_op(IBV_OPS_TM_SYNC);
	assert_int_equal(post(&op), 0);
	assert_int_equal(last_op()->opcode, SKUA_WQE_TAG_SYNC);
	assert_int_equal(last_op()->flags, 0);
	assert_int_equal(last_tag()->handle, 0);
	assert_int_equal(le32toh(last_tag()->flags), SKUA_TAG_COUNT);
	assert_int_equal(le32toh(last_tag()->unexpected), 41);
	op = sync_op(0);
	assert_int_equal(post(&op), 0);
	assert_int_equal(last_tag()->flags | last_tag()->unexpected, 0);
}

static void test_operations_that_are_refused(void **state)
{
	struct ibv_srq_init_attr basic = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *other = skua_create_srq(&pd.ibv_pd, &basic);
	uint32_t pi, handle = add(1, 0);
	struct ibv_ops_wr op, list[3], *bad;

	pi = ops_queue()->pi;
	op = add_op(1);
	op.tm.add.num_sge = 2;
	assert_int_equal(post(&op), EINVAL);
	op.tm.add.num_sge = -1;
	assert_int_equal(post(&op), EINVAL);
	op = add_op(1);
	op.flags = 4;
	assert_int_equal(post(&op), EINVAL);
	op = add_op(1);
	op.opcode = IBV_WR_TAG_SYNC + 1;
	assert_int_equal(post(&op), EINVAL);
	assert_int_equal(del(handle + 1), EINVAL);		/* not in use */
	assert_int_equal(del(handle + TAGS), EINVAL);
	assert_int_equal(del(handle | 0xffff), EINVAL);
	assert_int_equal(del(handle ^ 0x10000), EINVAL);
	assert_int_equal(del(UINT32_MAX), EINVAL);
	assert_int_equal(ops_queue()->pi, pi);

	/* What stands before it is posted. */
	for (int i = 0; i < 3; i++) {
		list[i] = add_op(i);
		list[i].next = i < 2 ? &list[i + 1] : NULL;
	}
	list[1].opcode = 77;
	assert_int_equal(skua_post_srq_ops(srq, list, &bad), EINVAL);
	assert_ptr_equal(bad, &list[1]);
	assert_int_equal(ops_queue()->pi, pi + 1);
	assert_int_equal(ops_queue()->published, pi + 1);

	op = sync_op(0);
	assert_int_equal(skua_post_srq_ops(other, &op, &bad), EINVAL);
	assert_ptr_equal(bad, &op);
	assert_int_equal(skua_destroy_srq(other), 0);
}

/* Is there one number for another tag? It is used then, and free again. */
static bool one_is_free(void)
{
	struct ibv_ops_wr op = add_op(99);
	struct ibv_wc wc;
	int err = post(&op);

	if (err) {
		assert_int_equal(err, ENOMEM);
		return false;
	}
	complete_op(SKUA_CQE_TAG_ADD, 0);
	assert_int_equal(del(op.tm.handle), 0);
	complete_op(SKUA_CQE_TAG_DEL, 0);
	assert_int_equal(skua_poll_cq(cq, 1, &wc), 0);
	return true;
}

static uint32_t fill_list(void)
{
	uint32_t last = 0;

	for (uint64_t i = 0; i < TAGS; i++) {
		last = add(10 + i, 0);
		complete_op(SKUA_CQE_TAG_ADD, 0);
	}
	assert_false(one_is_free());
	return last;
}

/* TAG-8 TAG-11 TAG-14: when its last CQE was polled, and the handle is no good any more. */
static void test_a_number_is_free_after_the_last_cqe(void **state)
{
	uint32_t handle = fill_list(), again;

	complete_tag(handle, SKUA_CQE_TAG_MATCH, 0);
	assert_int_equal(poll_one().wr_id, 10 + TAGS - 1);
	assert_false(one_is_free());
	complete_tag(handle, SKUA_CQE_TAG_DATA, 0);
	assert_false(one_is_free());
	assert_int_equal(poll_one().wr_id, 10 + TAGS - 1);
	assert_int_equal(del(handle), EINVAL);
	assert_int_equal(del(handle + 0x10000), EINVAL);	/* that of the next, which is not there yet */
	assert_true(one_is_free());

	again = add(50, 0);
	assert_int_equal(again & SKUA_TAG_NUMBER, handle & SKUA_TAG_NUMBER);
	assert_int_not_equal(again, handle);
	complete_tag(again, SKUA_CQE_TAG_MATCH | SKUA_CQE_TAG_DATA, SKUA_CQE_TM_RNDV_INCOMPLETE);
	assert_int_equal(poll_one().wr_id, 50);
	assert_true(one_is_free());
	again = add(51, 0);
	complete_tag(again, 0, SKUA_CQE_WR_FLUSH_ERR);
	assert_int_equal(poll_one().wr_id, 51);
	assert_true(one_is_free());
}

/* TAG-3 TAG-4 */
static void test_a_number_is_free_after_its_operation(void **state)
{
	uint32_t handle = fill_list();
	struct ibv_ops_wr op;
	struct ibv_wc wc;

	/* A message was faster. */
	assert_int_equal(del(handle), 0);
	complete_op(SKUA_CQE_TAG_DEL, SKUA_CQE_TM_ERR);
	nothing_is_seen();
	op = del_op(handle);
	op.flags = IBV_OPS_SIGNALED;
	assert_int_equal(post(&op), 0);
	complete_op(SKUA_CQE_TAG_DEL, SKUA_CQE_TM_ERR);
	wc = poll_one();
	assert_int_equal(wc.wr_id, 800);
	assert_int_equal(wc.status, IBV_WC_TM_ERR);
	assert_int_equal(wc.opcode, IBV_WC_TM_DEL);
	assert_false(one_is_free());

	/* Twice, though it can succeed once only. */
	assert_int_equal(del(handle), 0);
	complete_op(SKUA_CQE_TAG_DEL, 0);
	assert_int_equal(del(handle), 0);
	complete_op(SKUA_CQE_TAG_DEL, 0);
	nothing_is_seen();
	assert_int_equal(del(handle), EINVAL);
	handle = add(5, 0);
	complete_op(SKUA_CQE_TAG_ADD, 0);
	assert_false(one_is_free());

	assert_int_equal(del(handle), 0);
	complete_op(SKUA_CQE_TAG_DEL, 0);
	nothing_is_seen();
	add(6, 0);
	complete_op(SKUA_CQE_TAG_ADD, SKUA_CQE_LOC_QP_OP_ERR);
	wc = poll_one();
	assert_int_equal(wc.wr_id, 906);
	assert_int_equal(wc.status, IBV_WC_LOC_QP_OP_ERR);
	assert_true(one_is_free());
}

/* CQE-5: the queue gets its blocks back, though the program asks for no completion. */
static void test_the_queue_of_operations(void **state)
{
	uint32_t max = ops_queue()->max_wr, from;
	struct ibv_ops_wr op;

	assert_int_equal(max, OPS);
	for (int round = 0; round < 5; round++) {
		from = ops_queue()->pi;
		for (uint32_t i = 0; i < max; i++) {
			op = sync_op(0);
			assert_int_equal(post(&op), 0);
			complete_op(SKUA_CQE_TAG_SYNC, 0);
		}
		assert_int_equal(post(&op), ENOMEM);
		assert_int_equal(ops_queue()->pi - from, max);
		nothing_is_seen();
		/* None of the last half is out that has no CQE. */
		for (uint32_t i = 0; i < (max + 1) / 2; i++) {
			op = sync_op(0);
			assert_int_equal(post(&op), 0);
			complete_op(SKUA_CQE_TAG_SYNC, 0);
		}
		nothing_is_seen();
		op = sync_op(IBV_OPS_SIGNALED);
		assert_int_equal(post(&op), 0);
		complete_op(SKUA_CQE_TAG_SYNC, 0);
		assert_int_equal(poll_one().wr_id, 700);
		/* And so there is room for all again. */
	}
}

/* Among others, it is as if it had not been there. */
static void test_cqes_that_nobody_asked_for(void **state)
{
	struct ibv_poll_cq_attr attr = {};
	uint32_t handles[TAGS];
	struct ibv_wc wc[8];

	for (int calls = 0; calls < 2; calls++) {
		for (int i = 0; i < TAGS; i++)
			handles[i] = add(10 + i, 0);
		assert_int_equal(del(handles[0]), 0);
		complete_op(SKUA_CQE_TAG_DEL, 0);
		complete_tag(handles[1], SKUA_CQE_TAG_MATCH | SKUA_CQE_TAG_DATA, 0);
		assert_int_equal(del(handles[2]), 0);
		complete_op(SKUA_CQE_TAG_DEL, 0);
		complete_tag(handles[3], SKUA_CQE_TAG_MATCH | SKUA_CQE_TAG_DATA, 0);
		assert_int_equal(del(handles[0]), 0);
		complete_op(SKUA_CQE_TAG_DEL, 0);
		if (!calls) {
			assert_int_equal(skua_poll_cq(cq, 1, wc), 1);
			assert_int_equal(wc[0].wr_id, 11);
			assert_int_equal(skua_poll_cq(cq, 8, wc), 1);
			assert_int_equal(wc[0].wr_id, 13);
		} else {
			assert_int_equal(ibv_start_poll(cq_ex, &attr), 0);
			assert_int_equal(cq_ex->wr_id, 11);
			assert_int_equal(ibv_next_poll(cq_ex), 0);
			assert_int_equal(cq_ex->wr_id, 13);
			assert_int_equal(ibv_next_poll(cq_ex), ENOENT);
			/* The current one stays. */
			assert_int_equal(cq_ex->wr_id, 13);
			assert_int_equal(ibv_wc_read_opcode(cq_ex), IBV_WC_TM_RECV);
			ibv_end_poll(cq_ex);
		}
		assert_int_equal(le32toh(dev.dbr->ci), dev.pi);
		nothing_is_seen();
	}
}

/* A device that dies shows at once, too, when only such CQEs were left. */
static void test_cqes_that_nobody_asked_for_of_a_dead_device(void **state)
{
	struct ibv_poll_cq_attr attr = {};
	struct ibv_wc wc;

	for (int calls = 0; calls < 2; calls++) {
		assert_int_equal(del(add(1, 0)), 0);
		complete_op(SKUA_CQE_TAG_DEL, 0);
		info.state = SKUA_INFO_DEAD;
		if (calls)
			assert_int_equal(ibv_start_poll(cq_ex, &attr), EIO);
		else
			assert_int_equal(skua_poll_cq(cq, 1, &wc), -1);
		info.state = SKUA_INFO_ALIVE;
	}
}

/* TAG-7 TAG-8 TAG-12 */
static void test_what_completions_tell(void **state)
{
	static const struct row {
		struct skua_cqe cqe;
		enum ibv_wc_opcode opcode;
		unsigned int flags;
		uint64_t tag;
		uint32_t priv;
	} rows[] = {
		{ { .opcode = SKUA_CQE_TAG_RECV, .flags = SKUA_CQE_TAG_MATCH | SKUA_CQE_TAG_DATA },
		  IBV_WC_TM_RECV, IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID, 0xf1e2d3c4b5a69788, 0x9abcdef1 },
		{ { .opcode = SKUA_CQE_TAG_RECV, .flags = SKUA_CQE_TAG_MATCH },
		  IBV_WC_TM_RECV, IBV_WC_TM_MATCH, 0xf1e2d3c4b5a69788, 0x9abcdef1 },
		{ { .opcode = SKUA_CQE_TAG_RECV, .flags = SKUA_CQE_TAG_DATA | SKUA_CQE_WITH_IMM },
		  IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID | IBV_WC_WITH_IMM, 0, 0 },
		{ { .opcode = SKUA_CQE_TAG_RECV, .flags = SKUA_CQE_TAG_MATCH | SKUA_CQE_TAG_DATA,
		    .status = SKUA_CQE_TM_RNDV_INCOMPLETE },
		  IBV_WC_TM_RECV, IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID, 0xf1e2d3c4b5a69788, 0x9abcdef1 },
		{ { .opcode = SKUA_CQE_TAG_UNEXPECTED }, IBV_WC_TM_RECV, 0, 0, 0 },
		{ { .opcode = SKUA_CQE_TAG_UNEXPECTED, .flags = SKUA_CQE_WITH_IMM },
		  IBV_WC_TM_RECV, IBV_WC_WITH_IMM, 0, 0 },
		{ { .opcode = SKUA_CQE_TAG_NONE }, IBV_WC_TM_NO_TAG, 0, 0, 0 },
		{ { .opcode = SKUA_CQE_RECV_WRITE_IMM, .flags = SKUA_CQE_WITH_IMM },
		  IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM, 0, 0 },
		{ { .opcode = SKUA_CQE_TAG_ADD, .flags = SKUA_CQE_TAG_SYNC_REQ },
		  IBV_WC_TM_ADD, IBV_WC_TM_SYNC_REQ, 0, 0 },
		{ { .opcode = SKUA_CQE_TAG_ADD }, IBV_WC_TM_ADD, 0, 0, 0 },
		{ { .opcode = SKUA_CQE_TAG_DEL }, IBV_WC_TM_DEL, 0, 0, 0 },
		{ { .opcode = SKUA_CQE_TAG_SYNC, .flags = SKUA_CQE_TAG_SYNC_REQ },
		  IBV_WC_TM_SYNC, IBV_WC_TM_SYNC_REQ, 0, 0 },
	};

	for (const struct row *row = rows; row < rows + sizeof(rows) / sizeof(rows[0]); row++)
		for (int calls = 0; calls < 2; calls++) {
			struct ibv_recv_wr *bad, recv = { .wr_id = 60 };
			struct ibv_ops_wr op = sync_op(IBV_OPS_SIGNALED);
			struct ibv_poll_cq_attr attr = {};
			struct skua_cqe cqe = row->cqe;
			struct ibv_wc_tm_info tm_info;
			struct ibv_wc wc;

			cqe.byte_len = htole32(300);
			cqe.imm_data = htobe32(0x12345678);
			if (cqe.opcode == SKUA_CQE_TAG_RECV) {
				cqe.cookie = htole32(add(60, 0));
				complete_op(SKUA_CQE_TAG_ADD, 0);
				cqe.tag = htole64(0xf1e2d3c4b5a69788);
				cqe.app_ctx = htobe32(0x9abcdef1);
			} else if (skua_cqe_is_tm_op(&cqe)) {
				op.wr_id = 60;
				assert_int_equal(post(&op), 0);
				cqe.cookie = last_op()->cookie;
			} else {
				assert_int_equal(skua_post_srq_recv(srq, &recv, &bad), 0);
			}
			write_cqe(cqe);
			if (!calls) {
				wc = poll_one();
				assert_int_equal(wc.wr_id, 60);
				assert_int_equal(wc.status, row->cqe.status);
				assert_int_equal(wc.opcode, row->opcode);
				assert_int_equal(wc.wc_flags, row->flags);
				assert_int_equal(wc.byte_len, 300);
				assert_int_equal(wc.qp_num, QPN);
				assert_int_equal(wc.src_qp, 0);
				assert_int_equal(wc.sl, 0);
				assert_int_equal(be32toh(wc.imm_data), 0x12345678);
			} else {
				assert_int_equal(ibv_start_poll(cq_ex, &attr), 0);
				assert_int_equal(cq_ex->wr_id, 60);
				assert_int_equal(cq_ex->status, row->cqe.status);
				assert_int_equal(ibv_wc_read_opcode(cq_ex), row->opcode);
				assert_int_equal(ibv_wc_read_wc_flags(cq_ex), row->flags);
				assert_int_equal(ibv_wc_read_byte_len(cq_ex), 300);
				assert_int_equal(ibv_wc_read_src_qp(cq_ex), 0);
				assert_int_equal(ibv_wc_read_sl(cq_ex), 0);
				assert_int_equal(ibv_wc_read_cvlan(cq_ex), 0);
				ibv_wc_read_tm_info(cq_ex, &tm_info);
				assert_int_equal(tm_info.tag, row->tag);
				assert_int_equal(tm_info.priv, row->priv);
				ibv_end_poll(cq_ex);
			}
			/* What the tag left. */
			if (cqe.opcode == SKUA_CQE_TAG_RECV && cqe.flags == SKUA_CQE_TAG_MATCH) {
				complete_tag(le32toh(cqe.cookie), SKUA_CQE_TAG_DATA, 0);
				poll_one();
			}
		}
	assert_int_equal(to_skua_srq(srq)->ci, to_skua_srq(srq)->pi);
}

static struct ibv_qp *receiver(void)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq, .srq = srq };

	return skua_create_qp(&pd.ibv_pd, &attr);
}

/* TAG-14: and the device does not wait for unexpected messages of which nobody was told. */
static void test_a_qp_goes(void **state)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct ibv_ops_wr op = sync_op(IBV_OPS_TM_SYNC);
	struct ibv_qp *qp = receiver();
	uint32_t a = add(1, IBV_OPS_SIGNALED), b;

	assert_non_null(qp);
	complete_op(SKUA_CQE_TAG_ADD, 0);
	receive(SKUA_CQE_TAG_UNEXPECTED);
	complete_tag(a, SKUA_CQE_TAG_MATCH, 0);
	receive(SKUA_CQE_TAG_NONE);
	receive(SKUA_CQE_RECV);
	receive(SKUA_CQE_TAG_UNEXPECTED);
	complete_tag(a, SKUA_CQE_TAG_DATA, 0);
	assert_int_equal(skua_modify_qp(qp, &reset, IBV_QP_STATE), 0);
	assert_int_equal(to_skua_srq(srq)->ci, 4);
	assert_int_equal(poll_one().opcode, IBV_WC_TM_ADD);
	assert_int_equal(poll_one().wc_flags, IBV_WC_TM_MATCH);
	assert_int_equal(poll_one().wc_flags, IBV_WC_TM_DATA_VALID);
	nothing_is_seen();
	assert_int_equal(post(&op), 0);
	assert_int_equal(le32toh(last_tag()->unexpected), 41 + 2);

	b = add(2, 0);
	receive(SKUA_CQE_TAG_UNEXPECTED);
	complete_tag(b, 0, SKUA_CQE_WR_FLUSH_ERR);
	assert_int_equal(skua_destroy_qp(qp), 0);
	assert_int_equal(to_skua_srq(srq)->ci, 5);
	assert_int_equal(poll_one().wr_id, 2);
	nothing_is_seen();
	assert_int_equal(post(&op), 0);
	assert_int_equal(le32toh(last_tag()->unexpected), 41 + 3);
	op = sync_op(0);
	assert_int_equal(post(&op), 0);
	assert_int_equal(last_tag()->unexpected, 0);
}

/* TAG-2 */
static void test_qps_that_may_have_it(void **state)
{
	struct ibv_qp_init_attr_ex ex = {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq, .srq = srq, .pd = &pd.ibv_pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, .cap = { .max_send_wr = 1 },
	};
	struct ibv_qp_init_attr attr = { .send_cq = cq, .recv_cq = cq, .srq = srq };
	static const enum ibv_qp_type types[] = { IBV_QPT_UD, IBV_QPT_UC };
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_SEND };
	struct ibv_qp *qp;

	ctx.caps.features |= 1 << SKUA_F_UC;
	for (unsigned int i = 0; i < 2; i++) {
		attr.qp_type = types[i];
		assert_null(skua_create_qp(&pd.ibv_pd, &attr));
		assert_int_equal(errno, EINVAL);
	}
	attr.qp_type = IBV_QPT_RC;
	attr.cap.max_send_wr = 1;
	assert_null(skua_create_qp(&pd.ibv_pd, &attr));
	assert_int_equal(errno, EINVAL);
	assert_null(skua_create_qp_ex(&ctx.vctx.context, &ex));
	assert_int_equal(errno, EINVAL);

	ex.cap.max_send_wr = 0;
	qp = skua_create_qp_ex(&ctx.vctx.context, &ex);
	assert_non_null(qp);
	assert_int_equal(qp_req.flags, SKUA_CREATE_QP_NO_SQ | SKUA_CREATE_QP_NO_RQ);
	qp->state = IBV_QPS_RTS;
	assert_int_equal(skua_post_send(qp, &wr, &bad), ENOMEM);
	assert_int_equal(skua_destroy_qp(qp), 0);
}

/* SRQ-11: it goes on as long as a QP has it. */
static void test_an_srq_in_use(void **state)
{
	struct ibv_qp *qp = receiver();
	uint32_t handle;

	answer = ENOMEM;
	assert_null(receiver());
	answer = 0;
	assert_int_equal(skua_destroy_srq(srq), EBUSY);
	handle = add(1, 0);
	assert_int_equal(del(handle), 0);
	assert_int_equal(skua_destroy_qp(qp), 0);
	refused_command = 1;		/* its own QP stays */
	assert_int_equal(skua_destroy_srq(srq), EINVAL);
	add(1, 0);
	refused_command = 2;		/* that went, and the SRQ stays */
	assert_int_equal(skua_destroy_srq(srq), EINVAL);
	assert_int_equal(del(handle), EINVAL);
	complete_op(SKUA_CQE_TAG_DEL, 0);
	nothing_is_seen();
}

/* TAG-14: nothing of it is left in the CQ. */
static void test_an_srq_goes_with_its_cqes(void **state)
{
	struct ibv_qp_cap cap = { .max_send_wr = 4, .max_recv_wr = 4 };
	struct ibv_qp *other = make_qp(cq, cq, &cap);

	other->qp_num = 0x66;
	complete_tag(add(1, 0), SKUA_CQE_TAG_MATCH, 0);
	add(2, IBV_OPS_SIGNALED);
	complete_op(SKUA_CQE_TAG_ADD, 0);
	complete(&dev, other, SKUA_CQE_SEND);
	receive(SKUA_CQE_TAG_UNEXPECTED);
	assert_int_equal(skua_destroy_srq(srq), 0);
	srq = NULL;
	assert_int_equal(poll_one().qp_num, 0x66);
	nothing_is_seen();
	assert_int_equal(skua_destroy_qp(other), 0);
}

#define T_CQ(f)		cmocka_unit_test_setup_teardown(f, setup_cq, teardown_cq)
#define T_SRQ(f)	cmocka_unit_test_setup_teardown(f, setup_srq, teardown_srq)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T_CQ(test_the_kernel_learns_of_it),
		T_CQ(test_wrong_attributes),
		T_CQ(test_without_the_features),
		T_CQ(test_a_refusal_of_the_kernel_leaves_nothing),
		T_SRQ(test_operations),
		T_SRQ(test_operations_that_are_refused),
		T_SRQ(test_a_number_is_free_after_the_last_cqe),
		T_SRQ(test_a_number_is_free_after_its_operation),
		T_SRQ(test_the_queue_of_operations),
		T_SRQ(test_cqes_that_nobody_asked_for),
		T_SRQ(test_cqes_that_nobody_asked_for_of_a_dead_device),
		T_SRQ(test_what_completions_tell),
		T_SRQ(test_a_qp_goes),
		T_SRQ(test_qps_that_may_have_it),
		T_SRQ(test_an_srq_in_use),
		T_SRQ(test_an_srq_goes_with_its_cqes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
