// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Posting and polling through verbs' own structures, against a device of memory. Built with
 * the headers of an rdma-core tree; libibverbs itself is not needed.
 */
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>

#include "cmocka_all.h"

#include <skua/cmd.h>

#include "../mw.h"
#include "../op.h"
#include "../skua.h"
#include "fake.h"

#define BLOCKS		16
#define MAX_WR		(BLOCKS / 2)	/* a WR takes up to two */
#define RQ_SIZE		4
#define CQ_SIZE		16
#define QPN		0x123456
#define FEATURES	(1 << SKUA_F_RC | 1 << SKUA_F_INVALIDATE | 1 << SKUA_F_ATOMIC | 1 << SKUA_F_MW)
#define ALL_OPS		(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | \
			 IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_WRITE | \
			 IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ | \
			 IBV_QP_EX_WITH_LOCAL_INV)

static struct skua_qp qp;
static struct skua_cq cq;
static struct fake_cq dev;
static struct skua_info_page info;
static uint64_t db_page[SKUA_PAGE_SIZE / 8];
static uint8_t wqe_copy[SKUA_WQE_MAX_BLOCKS * SKUA_WQE_BLOCK];
static const struct skua_wqe_ctrl *ctrl = (void *)wqe_copy;

static struct ibv_sge sges[2] = {
	{ .addr = 0x10000, .length = 100, .lkey = 0x11 },
	{ .addr = 0x20000, .length = 200, .lkey = 0x22 },
};

static int setup(void **state)
{
	memset(&qp, 0, sizeof(qp));
	memset(&cq, 0, sizeof(cq));
	memset(db_page, 0, sizeof(db_page));
	info.state = SKUA_INFO_ALIVE;

	fake_sq_init(&qp.sq, BLOCKS);
	memset(qp.sq.buf, 0xee, BLOCKS * SKUA_WQE_BLOCK);	/* WQEs of before */
	fake_rq_init(&qp.rq, RQ_SIZE, 6);
	fake_cq_init(&dev, &cq.ring, CQ_SIZE);
	skua_lock_init(&qp.sq_lock, true);
	skua_lock_init(&qp.rq_lock, true);
	skua_lock_init(&cq.lock, true);
	skua_lock_init(&cq.arm_lock, true);
	skua_lock_init(&cq.poll_lock, true);
	cq.info = &info;
	qp.db = db_page;
	qp.event_idx = true;
	qp.opcodes = skua_op_mask(1 << SKUA_F_RC | 1 << SKUA_F_INVALIDATE, IBV_QPT_RC);
	qp.sq.max_wr = MAX_WR;
	qp.max_send_sge = 4;
	qp.max_inline = 64;
	qp.max_recv_sge = 3;
	qp.vqp.qp.qp_num = QPN;
	qp.vqp.qp.state = IBV_QPS_RTS;
	assert_true(skua_qp_fill_wr_ops(&qp, ALL_OPS));
	skua_cq_fill_ex_ops(&cq.vcq.cq_ex,
			    IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_FLOW_TAG);
	return 0;
}

static int teardown(void **state)
{
	fake_cq_free(&cq.ring);
	fake_rq_free(&qp.rq);
	fake_sq_free(&qp.sq);
	return 0;
}

static struct ibv_send_wr make_wr(enum ibv_wr_opcode opcode)
{
	struct ibv_send_wr wr = {
		.wr_id = 0xfeed,
		.sg_list = sges,
		.num_sge = opcode == IBV_WR_LOCAL_INV ? 0 : 2,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
	};

	switch (opcode) {
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_LOCAL_INV:
		wr.invalidate_rkey = 0x77;
		break;
	case IBV_WR_SEND_WITH_IMM:
		wr.imm_data = htobe32(0x12345678);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		wr.imm_data = htobe32(0x12345678);
		/* fallthrough */
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_READ:
		wr.wr.rdma.remote_addr = 0x8877665544332211;
		wr.wr.rdma.rkey = 0x99;
		break;
	default:
		break;
	}
	return wr;
}

static int post(struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;
	int err;

	err = skua_post_send(&qp.vqp.qp, wr, &bad);
	assert_int_equal(err != 0, bad != NULL);
	return err;
}

static const struct {
	enum ibv_wr_opcode opcode;
	uint8_t wqe;
	bool rdma;
} rows[] = {
	{ IBV_WR_SEND, SKUA_WQE_SEND, false },
	{ IBV_WR_SEND_WITH_IMM, SKUA_WQE_SEND_IMM, false },
	{ IBV_WR_SEND_WITH_INV, SKUA_WQE_SEND_INV, false },
	{ IBV_WR_RDMA_WRITE, SKUA_WQE_WRITE, true },
	{ IBV_WR_RDMA_WRITE_WITH_IMM, SKUA_WQE_WRITE_IMM, true },
	{ IBV_WR_RDMA_READ, SKUA_WQE_READ, true },
	{ IBV_WR_LOCAL_INV, SKUA_WQE_LOCAL_INV, false },
};

#define NUM_ROWS	(sizeof(rows) / sizeof(rows[0]))

static void check_wqe(unsigned int row, uint32_t index)
{
	struct ibv_send_wr wr = make_wr(rows[row].opcode);
	const struct skua_wqe_rdma *rdma = (void *)(ctrl + 1);
	const struct skua_sge *sge = (void *)(ctrl + 1 + rows[row].rdma);
	int i;

	fake_sq_fetch(&qp.sq, index, wqe_copy);
	assert_int_equal(ctrl->opcode, rows[row].wqe);
	assert_int_equal(ctrl->flags, SKUA_WQE_SIGNALED);
	assert_int_equal(ctrl->num_sge, wr.num_sge);
	assert_int_equal(ctrl->length, 0);
	assert_int_equal(qp.sq.slots[le32toh(ctrl->cookie)].wr_id, 0xfeed);
	switch (rows[row].opcode) {
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_LOCAL_INV:
		assert_int_equal(le32toh(ctrl->inv_key), 0x77);
		break;
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		assert_int_equal(be32toh(ctrl->imm_data), 0x12345678);
		break;
	default:
		assert_int_equal(ctrl->inv_key, 0);
	}
	if (rows[row].rdma) {
		assert_int_equal(le64toh(rdma->raddr), 0x8877665544332211);
		assert_int_equal(le32toh(rdma->rkey), 0x99);
		assert_int_equal(rdma->flush, 0);
	}
	for (i = 0; i < wr.num_sge; i++) {
		assert_int_equal(le64toh(sge[i].addr), sges[i].addr);
		assert_int_equal(le32toh(sge[i].length), sges[i].length);
		assert_int_equal(le32toh(sge[i].lkey), sges[i].lkey);
	}
}

static void test_each_opcode_becomes_its_wqe(void **state)
{
	unsigned int i;

	for (i = 0; i < NUM_ROWS; i++) {
		struct ibv_send_wr wr = make_wr(rows[i].opcode);
		uint32_t index = qp.sq.pi;

		assert_int_equal(post(&wr), 0);
		check_wqe(i, index);
		assert_int_equal(le32toh(qp.sq.dbr->pi), index + 1);
	}
}

static void test_flags(void **state)
{
	struct ibv_send_wr wr = make_wr(IBV_WR_SEND);

	wr.send_flags = IBV_SEND_FENCE | IBV_SEND_SOLICITED;
	assert_int_equal(post(&wr), 0);
	fake_sq_fetch(&qp.sq, 0, wqe_copy);
	assert_int_equal(ctrl->flags, SKUA_WQE_FENCE | SKUA_WQE_SOLICITED);

	qp.sq_sig = SKUA_WQE_SIGNALED;
	wr.send_flags = 0;
	assert_int_equal(post(&wr), 0);
	fake_sq_fetch(&qp.sq, 1, wqe_copy);
	assert_int_equal(ctrl->flags, SKUA_WQE_SIGNALED);
}

static void test_inline_is_gathered(void **state)
{
	struct ibv_sge pieces[3] = {
		{ .addr = (uintptr_t)"abc", .length = 3 },
		{ .addr = 0, .length = 0 },
		{ .addr = (uintptr_t)"defgh", .length = 5 },
	};
	struct ibv_send_wr wr = make_wr(IBV_WR_RDMA_WRITE);

	wr.sg_list = pieces;
	wr.num_sge = 3;
	wr.send_flags = IBV_SEND_INLINE;
	assert_int_equal(post(&wr), 0);
	fake_sq_fetch(&qp.sq, 0, wqe_copy);
	assert_int_equal(ctrl->flags, SKUA_WQE_INLINE);
	assert_int_equal(ctrl->num_sge, 0);
	assert_int_equal(le32toh(ctrl->length), 8);
	assert_memory_equal(wqe_copy + 32, "abcdefgh", 8);
}

static void test_refused_wrs(void **state)
{
	static char big[65];
	struct ibv_sge many[5] = {};
	struct ibv_sge one = { .addr = (uintptr_t)big, .length = sizeof(big) };
	struct ibv_sge huge[2] = { { .length = UINT32_MAX }, { .length = 2 } };
	struct ibv_send_wr wr;

	wr = make_wr(IBV_WR_ATOMIC_CMP_AND_SWP);
	assert_int_equal(post(&wr), EINVAL);
	wr = make_wr(1000);
	assert_int_equal(post(&wr), EINVAL);
	wr = make_wr(IBV_WR_SEND);
	wr.sg_list = many;
	wr.num_sge = 5;
	assert_int_equal(post(&wr), EINVAL);
	wr.num_sge = -1;
	assert_int_equal(post(&wr), EINVAL);
	wr.sg_list = &one;
	wr.num_sge = 1;
	wr.send_flags = IBV_SEND_INLINE;
	assert_int_equal(post(&wr), EINVAL);
	wr.sg_list = huge;
	wr.num_sge = 2;
	assert_int_equal(post(&wr), EINVAL);
	one.length = 1;
	wr.sg_list = &one;
	wr.num_sge = 1;
	wr.opcode = IBV_WR_RDMA_READ;
	assert_int_equal(post(&wr), EINVAL);
	wr.opcode = IBV_WR_SEND;
	wr.num_sge = -1;
	assert_int_equal(post(&wr), EINVAL);
	wr.sg_list = many;
	wr.num_sge = 5;
	assert_int_equal(post(&wr), EINVAL);

	assert_int_equal(qp.sq.pi, 0);
	assert_int_equal(qp.sq.dbr->pi, 0);
}

static void test_opcode_without_its_feature_is_refused(void **state)
{
	struct ibv_send_wr wr = make_wr(IBV_WR_LOCAL_INV);

	qp.opcodes = skua_op_mask(1 << SKUA_F_RC, IBV_QPT_RC);
	assert_int_equal(post(&wr), EINVAL);
	wr = make_wr(IBV_WR_SEND);
	assert_int_equal(post(&wr), 0);
	assert_false(skua_qp_fill_wr_ops(&qp, IBV_QP_EX_WITH_LOCAL_INV));
	assert_true(skua_qp_fill_wr_ops(&qp, IBV_QP_EX_WITH_SEND));
	assert_false(skua_qp_fill_wr_ops(&qp, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO));
}

static void test_states(void **state)
{
	struct ibv_recv_wr rwr = { .sg_list = sges, .num_sge = 1 }, *bad;
	struct ibv_send_wr wr = make_wr(IBV_WR_SEND);
	static const struct {
		enum ibv_qp_state state;
		int send, recv;
	} table[] = {
		{ IBV_QPS_RESET, EINVAL, EINVAL },
		{ IBV_QPS_INIT, EINVAL, 0 },
		{ IBV_QPS_RTR, EINVAL, 0 },
		{ IBV_QPS_RTS, 0, 0 },
		{ IBV_QPS_ERR, 0, 0 },
	};
	unsigned int i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		qp.vqp.qp.state = table[i].state;
		assert_int_equal(post(&wr), table[i].send);
		assert_int_equal(skua_post_recv(&qp.vqp.qp, &rwr, &bad), table[i].recv);
		qp.vqp.qp_ex.wr_start(&qp.vqp.qp_ex);
		assert_int_equal(qp.vqp.qp_ex.wr_complete(&qp.vqp.qp_ex), table[i].send);
	}
}

/* Fills the queue: what fits is published, with one doorbell; the rest is pointed at. */
static void test_full_queue(void **state)
{
	struct ibv_send_wr wr[MAX_WR + 2], *bad = NULL;
	unsigned int i;

	for (i = 0; i < MAX_WR + 2; i++) {
		wr[i] = make_wr(IBV_WR_SEND);
		wr[i].next = i < MAX_WR + 1 ? &wr[i + 1] : NULL;
	}
	assert_int_equal(skua_post_send(&qp.vqp.qp, wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[MAX_WR]);
	assert_int_equal(le32toh(qp.sq.dbr->pi), MAX_WR);
	assert_int_equal(le64toh(db_page[SKUA_DB_SQ / 8]), SKUA_DB(QPN, MAX_WR));
}

static void test_doorbell_only_if_asked_for(void **state)
{
	struct ibv_send_wr wr = make_wr(IBV_WR_SEND);

	qp.sq.dbr->event = htole32(5);
	assert_int_equal(post(&wr), 0);
	assert_int_equal(db_page[SKUA_DB_SQ / 8], 0);
	qp.event_idx = false;
	assert_int_equal(post(&wr), 0);
	assert_int_equal(le64toh(db_page[SKUA_DB_SQ / 8]), SKUA_DB(QPN, 2));
}

static void test_post_recv(void **state)
{
	struct ibv_recv_wr wr[RQ_SIZE + 1], *bad = NULL;
	const struct skua_rqe *rqe = (void *)((char *)qp.rq.buf + 64);
	const struct skua_sge *sge = (void *)(rqe + 1);
	unsigned int i;

	for (i = 0; i < RQ_SIZE + 1; i++)
		wr[i] = (struct ibv_recv_wr) {
			.wr_id = i, .sg_list = sges, .num_sge = 2,
			.next = i < RQ_SIZE ? &wr[i + 1] : NULL,
		};
	assert_int_equal(skua_post_recv(&qp.vqp.qp, wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[RQ_SIZE]);
	assert_int_equal(le32toh(qp.rq.dbr->pi), RQ_SIZE);
	assert_int_equal(le32toh(rqe->cookie), 1);
	assert_int_equal(rqe->num_sge, 2);
	assert_int_equal(le64toh(sge[1].addr), sges[1].addr);
	assert_int_equal(db_page[SKUA_DB_SQ / 8], 0);

	wr[0].next = NULL;
	wr[0].num_sge = 4;
	assert_int_equal(skua_post_recv(&qp.vqp.qp, wr, &bad), EINVAL);
	assert_ptr_equal(bad, wr);
}

static void complete(struct skua_cqe cqe)
{
	cqe.qp_handle = htole64((uintptr_t)&qp);
	cqe.qpn = htole32(QPN);
	fake_cq_write(&dev, cqe);
}

static void test_poll_send(void **state)
{
	struct ibv_send_wr wr = make_wr(IBV_WR_RDMA_READ);
	struct ibv_wc wc[4];

	assert_int_equal(post(&wr), 0);
	wr.wr_id = 0xbeef;
	assert_int_equal(post(&wr), 0);
	assert_int_equal(skua_poll_cq(&cq.vcq.cq, 4, wc), 0);

	complete((struct skua_cqe) {
		.cookie = htole32(1), .byte_len = htole32(300), .sq_ci = htole32(2),
		.opcode = SKUA_CQE_READ,
	});
	assert_int_equal(skua_poll_cq(&cq.vcq.cq, 4, wc), 1);
	assert_int_equal(wc[0].wr_id, 0xbeef);
	assert_int_equal(wc[0].status, IBV_WC_SUCCESS);
	assert_int_equal(wc[0].opcode, IBV_WC_RDMA_READ);
	assert_int_equal(wc[0].byte_len, 300);
	assert_int_equal(wc[0].qp_num, QPN);
	assert_int_equal(wc[0].wc_flags, 0);
	assert_int_equal(qp.sq.wr_ci, 2);
	assert_int_equal(le32toh(cq.ring.dbr->ci), 1);
}

static void test_poll_recv(void **state)
{
	struct ibv_recv_wr wr = { .wr_id = 0xcafe, .sg_list = sges, .num_sge = 1 }, *bad;
	struct ibv_wc wc[2];

	assert_int_equal(skua_post_recv(&qp.vqp.qp, &wr, &bad), 0);
	wr.wr_id = 0xbeef;
	assert_int_equal(skua_post_recv(&qp.vqp.qp, &wr, &bad), 0);
	complete((struct skua_cqe) {
		.cookie = htole32(0), .opcode = SKUA_CQE_RECV_WRITE_IMM,
		.imm_data = htobe32(0x12345678), .flags = SKUA_CQE_WITH_IMM,
	});
	complete((struct skua_cqe) {
		.cookie = htole32(1), .opcode = SKUA_CQE_RECV,
		.inv_key = htole32(0x77), .flags = SKUA_CQE_WITH_INV,
	});
	assert_int_equal(skua_poll_cq(&cq.vcq.cq, 2, wc), 2);
	assert_int_equal(wc[0].wr_id, 0xcafe);
	assert_int_equal(wc[0].opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(wc[0].wc_flags, IBV_WC_WITH_IMM);
	assert_int_equal(be32toh(wc[0].imm_data), 0x12345678);
	assert_int_equal(wc[1].wr_id, 0xbeef);
	assert_int_equal(wc[1].opcode, IBV_WC_RECV);
	assert_int_equal(wc[1].wc_flags, IBV_WC_WITH_INV);
	assert_int_equal(wc[1].invalidated_rkey, 0x77);
	assert_int_equal(qp.rq.ci, 2);
}

/* A QP of a device with windows. */
static void with_windows(uint64_t more)
{
	uint32_t opcodes = skua_op_mask(1 << SKUA_F_RC | 1 << SKUA_F_MW | more, IBV_QPT_RC);

	qp.opcodes = opcodes & ~SKUA_RARE_OPS;
	qp.rare_opcodes = opcodes & SKUA_RARE_OPS;
	qp.atomics = more >> SKUA_F_ATOMIC & 1;
	assert_true(skua_qp_fill_wr_ops(&qp, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_BIND_MW));
}

static struct ibv_mr window_mr = { .lkey = 0x1111, .rkey = 0x2222 };
static struct ibv_mw window = { .rkey = 0x5678ff, .type = IBV_MW_TYPE_2 };

static int post_bind(struct ibv_mw_bind_info part, bool by_calls)
{
	struct ibv_send_wr wr = {
		.wr_id = 0xfeed, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED,
		.sg_list = sges, .num_sge = 2,		/* of no meaning */
		.bind_mw = { &window, ibv_inc_rkey(window.rkey), part },
	};
	struct ibv_qp_ex *ex = &qp.vqp.qp_ex;

	if (!by_calls)
		return post(&wr);
	ex->wr_start(ex);
	ex->wr_id = 0xfeed;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ex->wr_bind_mw(ex, &window, ibv_inc_rkey(window.rkey), &part);
	return ex->wr_complete(ex);
}

/* MW-5: right to left, the segment of BIND_MW. */
static void test_a_window_is_bound(void **state)
{
	const struct skua_wqe_bind_mw *bind = (void *)(ctrl + 1);
	struct ibv_mw_bind_info part = {
		.mr = &window_mr, .addr = 0x8877665544332211, .length = 0x123456789a,
		.mw_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED,
	};
	uint32_t rights = SKUA_ACCESS_REMOTE_WRITE | SKUA_ACCESS_REMOTE_READ | SKUA_ACCESS_ZERO_BASED;

	for (unsigned int i = 0; i < 4; i++) {
		with_windows(i & 2 ? 1 << SKUA_F_ATOMIC : 0);
		assert_int_equal(post_bind(part, i & 1), 0);
		assert_int_equal(fake_sq_fetch(&qp.sq, i, wqe_copy), 1);
		assert_int_equal(ctrl->opcode, SKUA_WQE_BIND_MW);
		assert_int_equal(ctrl->flags, SKUA_WQE_SIGNALED);
		assert_int_equal(ctrl->num_sge, 0);
		assert_int_equal(ctrl->length, 0);
		assert_int_equal(ctrl->inv_key, 0);
		assert_int_equal(le32toh(bind->key), 0x567800);
		assert_int_equal(le32toh(bind->mr_key), 0x1111);
		assert_int_equal(le64toh(bind->addr), part.addr);
		assert_int_equal(le64toh(bind->length), part.length);
		assert_int_equal(le32toh(bind->access), rights | (i & 2 ? SKUA_ACCESS_REMOTE_ATOMIC : 0));
		assert_int_equal(bind->rsvd, 0);
		assert_int_equal(qp.sq.slots[le32toh(ctrl->cookie)].wr_id, 0xfeed);
		assert_int_equal(le32toh(qp.sq.dbr->pi), i + 1);
	}
	/* To nothing, with an MR or without. */
	part.length = 0;
	for (unsigned int i = 0; i < 4; i++) {
		part.mr = i & 2 ? &window_mr : NULL;
		assert_int_equal(post_bind(part, i & 1), 0);
		fake_sq_fetch(&qp.sq, 4 + i, wqe_copy);
		assert_int_equal(bind->mr_key, 0);
		assert_int_equal(bind->length, 0);
	}
}

static void test_binds_that_are_refused(void **state)
{
	struct ibv_mw_bind_info part = { .mr = &window_mr, .addr = 5, .length = 6 };

	assert_int_equal(post_bind(part, false), EINVAL);	/* without the feature */
	with_windows(0);
	for (unsigned int i = 0; i < 2; i++) {
		part.mw_access_flags = IBV_ACCESS_ON_DEMAND;
		assert_int_equal(post_bind(part, i), EINVAL);
		part.mw_access_flags = 0;
		part.mr = NULL;
		assert_int_equal(post_bind(part, i), EINVAL);
		part.mr = &window_mr;
	}
	assert_int_equal(qp.sq.pi, 0);
	for (unsigned int i = 0; i < MAX_WR; i++)
		assert_int_equal(post_bind(part, i & 1), 0);
	assert_int_equal(post_bind(part, false), ENOMEM);
	assert_int_equal(post_bind(part, true), ENOMEM);
}

/* MW-4: each gets another key, which is the window's even if the bind is flushed. */
static void test_type_1_gets_its_next_key(void **state)
{
	struct ibv_mw mw = { .rkey = 0x5678fe, .type = IBV_MW_TYPE_1 };
	struct ibv_mw_bind bind = {
		.wr_id = 3, .send_flags = IBV_SEND_SIGNALED,
		.bind_info = { .mr = &window_mr, .addr = 1, .length = 2, .mw_access_flags = IBV_ACCESS_REMOTE_READ },
	};
	const struct skua_wqe_bind_mw *seg = (void *)(ctrl + 1);
	struct ibv_wc wc;

	with_windows(0);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(skua_bind_mw(&qp.vqp.qp, &mw, &bind), 0);
		assert_int_equal(mw.rkey, 0x567800 | (uint8_t)(0xff + i));
		fake_sq_fetch(&qp.sq, i, wqe_copy);
		assert_int_equal(le32toh(seg->key), mw.rkey);
	}
	bind.bind_info.mw_access_flags = IBV_ACCESS_ON_DEMAND;
	errno = 0;
	assert_int_equal(skua_bind_mw(&qp.vqp.qp, &mw, &bind), EINVAL);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(mw.rkey, 0x567801);
	complete((struct skua_cqe) { .sq_ci = htole32(1), .opcode = SKUA_CQE_BIND_MW });
	assert_int_equal(skua_poll_cq(&cq.vcq.cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 3);
	assert_int_equal(wc.opcode, IBV_WC_BIND_MW);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	complete((struct skua_cqe) {
		.sq_ci = htole32(2), .cookie = htole32(1), .opcode = SKUA_CQE_BIND_MW, .status = SKUA_CQE_MW_BIND_ERR,
	});
	assert_int_equal(skua_poll_cq(&cq.vcq.cq, 1, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_MW_BIND_ERR);
}

/* libibverbs' part, which fails as it is told. */
static int mw_cmd_err;

int ibv_cmd_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type, struct ibv_mw *mw, struct ibv_alloc_mw *cmd,
		     size_t cmd_size, struct ib_uverbs_alloc_mw_resp *resp, size_t resp_size)
{
	mw->type = type;
	mw->rkey = 0x99;
	return mw_cmd_err;
}

int ibv_cmd_dealloc_mw(struct ibv_mw *mw)
{
	return mw_cmd_err;
}

static void test_a_window_is_made_or_not(void **state)
{
	struct ibv_mw *mw;

	mw_cmd_err = ENOMEM;
	errno = 0;
	assert_null(skua_alloc_mw(NULL, IBV_MW_TYPE_2));
	assert_int_equal(errno, ENOMEM);
	mw_cmd_err = 0;
	mw = skua_alloc_mw(NULL, IBV_MW_TYPE_2);
	assert_non_null(mw);
	assert_int_equal(mw->type, IBV_MW_TYPE_2);
	assert_int_equal(mw->rkey, 0x99);
	mw_cmd_err = EBUSY;
	assert_int_equal(skua_dealloc_mw(mw), EBUSY);
	mw_cmd_err = 0;
	assert_int_equal(skua_dealloc_mw(mw), 0);
}

static void test_poll_error(void **state)
{
	struct ibv_send_wr wr = make_wr(IBV_WR_SEND);
	struct ibv_wc wc;

	assert_int_equal(post(&wr), 0);
	complete((struct skua_cqe) {
		.sq_ci = htole32(1), .opcode = SKUA_CQE_SEND,
		.status = SKUA_CQE_RNR_RETRY_EXC_ERR,
		.vendor_err = SKUA_VENDOR_ERR_PEER_NAK,
	});
	assert_int_equal(skua_poll_cq(&cq.vcq.cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 0xfeed);
	assert_int_equal(wc.status, IBV_WC_RNR_RETRY_EXC_ERR);
	assert_int_equal(wc.vendor_err, SKUA_VENDOR_ERR_PEER_NAK);
}

static void test_dead_device_shows_when_the_cq_is_empty(void **state)
{
	struct ibv_poll_cq_attr attr = {};
	struct ibv_wc wc;

	complete((struct skua_cqe) { .opcode = SKUA_CQE_SEND });
	info.state = SKUA_INFO_DEAD;
	assert_int_equal(skua_poll_cq(&cq.vcq.cq, 1, &wc), 1);
	assert_int_equal(skua_poll_cq(&cq.vcq.cq, 1, &wc), -1);
	assert_int_equal(ibv_start_poll(&cq.vcq.cq_ex, &attr), EIO);
	assert_int_equal(ibv_start_poll(&cq.vcq.cq_ex, &attr), EIO);
}

/*
 * The device writes its last CQE and dies after the CQ was found empty, and before the information
 * page is read: that page cannot be read at first, and the handler of the fault is the device.
 */
static struct skua_info_page *late_info;

static void die_late(int signal)
{
	assert_int_equal(mprotect(late_info, SKUA_PAGE_SIZE, PROT_READ | PROT_WRITE), 0);
	complete((struct skua_cqe) { .opcode = SKUA_CQE_SEND });
	late_info->state = SKUA_INFO_DEAD;
}

static void the_last_cqe_is_found(int (*poll)(void))
{
	const struct sigaction action = { .sa_handler = die_late };
	struct sigaction old;

	late_info = mmap(NULL, SKUA_PAGE_SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(late_info != MAP_FAILED);
	cq.info = late_info;
	sigaction(SIGSEGV, &action, &old);
	assert_int_equal(poll(), 1);
	sigaction(SIGSEGV, &old, NULL);
	assert_int_equal(poll(), -1);
	munmap(late_info, SKUA_PAGE_SIZE);
}

static int poll_one(void)
{
	struct ibv_wc wc;

	return skua_poll_cq(&cq.vcq.cq, 1, &wc);
}

static int poll_one_by_calls(void)
{
	struct ibv_poll_cq_attr attr = {};
	int err = ibv_start_poll(&cq.vcq.cq_ex, &attr);

	if (!err)
		ibv_end_poll(&cq.vcq.cq_ex);
	return !err ? 1 : err == ENOENT ? 0 : -1;
}

static void test_the_last_cqe_of_a_dying_device_is_found(void **state)
{
	the_last_cqe_is_found(poll_one);
	the_last_cqe_is_found(poll_one_by_calls);
}

static void test_extended_poll(void **state)
{
	struct ibv_cq_ex *cq_ex = &cq.vcq.cq_ex;
	struct ibv_poll_cq_attr attr = {};
	struct ibv_send_wr wr = make_wr(IBV_WR_SEND);

	assert_int_equal(ibv_start_poll(cq_ex, &attr), ENOENT);
	assert_int_equal(post(&wr), 0);
	complete((struct skua_cqe) {
		.opcode = SKUA_CQE_SEND, .sq_ci = htole32(1), .timestamp = htole64(1ull << 40),
	});
	complete((struct skua_cqe) {
		.opcode = SKUA_CQE_RECV, .byte_len = htole32(5), .imm_data = htobe32(9),
		/* CQE-7: a number that is not known is passed on, and decides nothing. */
		.flags = SKUA_CQE_WITH_IMM, .status = SKUA_CQE_LOC_LEN_ERR, .vendor_err = 250,
	});

	assert_int_equal(ibv_start_poll(cq_ex, &attr), 0);
	assert_int_equal(cq_ex->wr_id, 0xfeed);
	assert_int_equal(cq_ex->status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_wc_read_opcode(cq_ex), IBV_WC_SEND);
	assert_int_equal(ibv_wc_read_qp_num(cq_ex), QPN);
	assert_true(ibv_wc_read_completion_ts(cq_ex) == 1ull << 40);
	assert_int_equal(ibv_next_poll(cq_ex), 0);
	assert_int_equal(cq_ex->status, IBV_WC_LOC_LEN_ERR);
	assert_int_equal(ibv_wc_read_opcode(cq_ex), IBV_WC_RECV);
	assert_int_equal(ibv_wc_read_byte_len(cq_ex), 5);
	assert_int_equal(ibv_wc_read_wc_flags(cq_ex), IBV_WC_WITH_IMM);
	assert_int_equal(be32toh(ibv_wc_read_imm_data(cq_ex)), 9);
	assert_int_equal(ibv_wc_read_vendor_err(cq_ex), 250);
	assert_int_equal(ibv_next_poll(cq_ex), ENOENT);
	assert_int_equal(ibv_wc_read_byte_len(cq_ex), 5);
	ibv_end_poll(cq_ex);
	assert_int_equal(le32toh(cq.ring.dbr->ci), 2);
}

/*
 * CQ-3: a CQ as large as the SQ never overflows, though a thread posts as soon as there is room,
 * and what it posts completes at once.
 */
#define POSTED	100000

static void *post_and_complete(void *arg)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED }, *bad;
	bool *overflow = arg;
	uint32_t i, at;

	for (i = 0; i < POSTED; i++) {
		at = qp.sq.pi;
		while (skua_post_send(&qp.vqp.qp, &wr, &bad))
			sched_yield();
		if (dev.pi - le32toh(__atomic_load_n(&dev.dbr->ci, __ATOMIC_ACQUIRE)) >= dev.size) {
			__atomic_store_n(overflow, true, __ATOMIC_RELEASE);
			break;
		}
		complete((struct skua_cqe) {
			.opcode = SKUA_CQE_SEND, .cookie = htole32(at & (BLOCKS - 1)),
			.sq_ci = htole32(qp.sq.pi),
		});
	}
	return NULL;
}

static uint32_t poll_some(void)
{
	struct ibv_wc wc[MAX_WR];
	int n = skua_poll_cq(&cq.vcq.cq, MAX_WR, wc);

	assert_true(n >= 0);
	return n;
}

static uint32_t poll_some_by_calls(void)
{
	struct ibv_poll_cq_attr attr = {};
	struct ibv_cq_ex *cq_ex = &cq.vcq.cq_ex;
	uint32_t n = 0;

	if (ibv_start_poll(cq_ex, &attr))
		return 0;
	do
		n++;
	while (!ibv_next_poll(cq_ex));
	ibv_end_poll(cq_ex);
	return n;
}

static void posting_never_overruns_the_cq(uint32_t (*poll)(void))
{
	bool overflow = false;
	pthread_t thread;
	uint32_t n = 0;

	dev.size = MAX_WR;
	skua_cq_set_size(&cq.ring, MAX_WR);
	assert_int_equal(pthread_create(&thread, NULL, post_and_complete, &overflow), 0);
	while (n < POSTED && !__atomic_load_n(&overflow, __ATOMIC_ACQUIRE))
		n += poll();
	pthread_join(thread, NULL);
	assert_false(overflow);
}

static void test_posting_never_overruns_the_cq(void **state)
{
	posting_never_overruns_the_cq(poll_some);
}

static void test_posting_never_overruns_an_extended_cq(void **state)
{
	posting_never_overruns_the_cq(poll_some_by_calls);
}

/* What is posted between ibv_start_poll() and ibv_end_poll() may complete at once, too. */
static void test_posting_while_polling(void **state)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED };
	const struct skua_cqe cqe = { .opcode = SKUA_CQE_SEND };
	struct ibv_poll_cq_attr attr = {};
	unsigned int i;

	dev.size = MAX_WR;
	skua_cq_set_size(&cq.ring, MAX_WR);
	for (i = 0; i < MAX_WR; i++) {
		assert_int_equal(post(&wr), 0);
		complete(cqe);
	}
	assert_int_equal(ibv_start_poll(&cq.vcq.cq_ex, &attr), 0);
	assert_int_equal(post(&wr), 0);
	complete(cqe);			/* asserts that there is room */
	ibv_end_poll(&cq.vcq.cq_ex);
}

static void wr_by_call(unsigned int row)
{
	struct ibv_send_wr wr = make_wr(rows[row].opcode);
	struct ibv_qp_ex *qp_ex = &qp.vqp.qp_ex;

	qp_ex->wr_id = wr.wr_id;
	qp_ex->wr_flags = wr.send_flags;
	switch (rows[row].opcode) {
	case IBV_WR_SEND:
		ibv_wr_send(qp_ex);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(qp_ex, wr.imm_data);
		break;
	case IBV_WR_SEND_WITH_INV:
		ibv_wr_send_inv(qp_ex, wr.invalidate_rkey);
		break;
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(qp_ex, wr.wr.rdma.rkey, wr.wr.rdma.remote_addr);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(qp_ex, wr.wr.rdma.rkey, wr.wr.rdma.remote_addr,
				      wr.imm_data);
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(qp_ex, wr.wr.rdma.rkey, wr.wr.rdma.remote_addr);
		break;
	default:
		ibv_wr_local_inv(qp_ex, wr.invalidate_rkey);
		return;
	}
	ibv_wr_set_sge_list(qp_ex, wr.num_sge, wr.sg_list);
}

static void test_wr_calls_build_the_same_wqes(void **state)
{
	unsigned int i;

	ibv_wr_start(&qp.vqp.qp_ex);
	for (i = 0; i < NUM_ROWS; i++)
		wr_by_call(i);
	assert_int_equal(qp.sq.dbr->pi, 0);
	assert_int_equal(ibv_wr_complete(&qp.vqp.qp_ex), 0);
	assert_int_equal(le32toh(qp.sq.dbr->pi), NUM_ROWS);
	assert_int_equal(le64toh(db_page[SKUA_DB_SQ / 8]), SKUA_DB(QPN, NUM_ROWS));
	for (i = 0; i < NUM_ROWS; i++)
		check_wqe(i, i);
}

static void check_atomic(uint32_t index, uint8_t opcode, uint64_t swap_add, uint64_t compare)
{
	const struct skua_wqe_atomic *atomic = (void *)(ctrl + 1);
	const struct skua_sge *sge = (void *)(atomic + 1);

	fake_sq_fetch(&qp.sq, index, wqe_copy);
	assert_int_equal(ctrl->opcode, opcode);
	assert_int_equal(ctrl->num_sge, 1);
	assert_int_equal(ctrl->inv_key, 0);
	assert_int_equal(le64toh(atomic->raddr), 0x8877665544332210);
	assert_int_equal(le32toh(atomic->rkey), 0x99);
	assert_int_equal(atomic->rsvd, 0);
	assert_int_equal(le64toh(atomic->swap_add), swap_add);
	assert_int_equal(le64toh(atomic->compare), compare);
	assert_int_equal(le64toh(sge->addr), sges[0].addr);
}

/* ATM-1 GEN-2: what is added, swapped and compared, by either way of posting. */
static void test_atomic_wqes(void **state)
{
	struct ibv_qp_ex *qp_ex = &qp.vqp.qp_ex;
	struct ibv_send_wr wr = make_wr(IBV_WR_ATOMIC_CMP_AND_SWP);

	qp.opcodes = skua_op_mask(FEATURES, IBV_QPT_RC);
	assert_true(skua_qp_fill_wr_ops(&qp, ALL_OPS | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
					IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD));
	wr.num_sge = 1;
	wr.wr.atomic.remote_addr = 0x8877665544332210;
	wr.wr.atomic.rkey = 0x99;
	wr.wr.atomic.compare_add = 5;
	wr.wr.atomic.swap = 6;
	assert_int_equal(post(&wr), 0);
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	assert_int_equal(post(&wr), 0);

	ibv_wr_start(qp_ex);
	ibv_wr_atomic_cmp_swp(qp_ex, 0x99, 0x8877665544332210, 5, 6);
	ibv_wr_set_sge_list(qp_ex, 1, sges);
	ibv_wr_atomic_fetch_add(qp_ex, 0x99, 0x8877665544332210, 5);
	ibv_wr_set_sge_list(qp_ex, 1, sges);
	assert_int_equal(ibv_wr_complete(qp_ex), 0);
	for (uint32_t index = 0; index < 4; index += 2) {
		check_atomic(index, SKUA_WQE_CMP_SWAP, 6, 5);
		check_atomic(index + 1, SKUA_WQE_FETCH_ADD, 5, 0);
	}
}

#define FLUSH_FEATURES	(FEATURES | 1 << SKUA_F_FLUSH | 1 << SKUA_F_ATOMIC_WRITE)

/* A QP whose program has declared both calls. */
static struct ibv_qp_ex *flushing(void)
{
	qp.opcodes = skua_op_mask(FLUSH_FEATURES, IBV_QPT_RC);
	assert_true(skua_qp_fill_wr_ops(&qp, ALL_OPS | IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_ATOMIC_WRITE));
	return &qp.vqp.qp_ex;
}

/* FLU-3: placement, selectivity and range. */
static void test_flush_wqes(void **state)
{
	static const struct {
		size_t length;
		uint8_t type, level;
		uint32_t flush, sent_length;
	} table[] = {
		{ 4096, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE, SKUA_FLUSH_GLOBAL, 4096 },
		{ UINT32_MAX, IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE, SKUA_FLUSH_PERSISTENT, UINT32_MAX },
		{ SIZE_MAX, IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT, IBV_FLUSH_MR, SKUA_FLUSH_PLACEMENTS | SKUA_FLUSH_MR, 0 },
	};
	const struct skua_wqe_rdma *rdma = (void *)(ctrl + 1);
	struct ibv_qp_ex *qp_ex = flushing();

	for (uint32_t i = 0; i < 3; i++) {
		ibv_wr_start(qp_ex);
		ibv_wr_flush(qp_ex, 0x99, 0x8877665544332210, table[i].length, table[i].type, table[i].level);
		assert_int_equal(ibv_wr_complete(qp_ex), 0);
		fake_sq_fetch(&qp.sq, i, wqe_copy);
		assert_int_equal(ctrl->opcode, SKUA_WQE_FLUSH);
		assert_int_equal(ctrl->nblocks, 1);
		assert_int_equal(ctrl->num_sge, 0);
		assert_int_equal(ctrl->inv_key, 0);
		assert_int_equal(le32toh(ctrl->length), table[i].sent_length);
		assert_int_equal(le64toh(rdma->raddr), 0x8877665544332210);
		assert_int_equal(le32toh(rdma->rkey), 0x99);
		assert_int_equal(le32toh(rdma->flush), table[i].flush);
	}
}

/* What no WQE can say; and ibv_post_send(), whose work request cannot say it. */
static void test_flushes_that_are_refused(void **state)
{
	static const struct { size_t length; uint8_t type, level; } bad[] = {
		{ 8, 0, IBV_FLUSH_RANGE }, { 8, 4, IBV_FLUSH_RANGE }, { 8, IBV_FLUSH_GLOBAL | 0x10, IBV_FLUSH_RANGE },
		{ 8, IBV_FLUSH_GLOBAL, 2 }, { 1ull << 32, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE },
	};
	struct ibv_send_wr wr = make_wr(IBV_WR_FLUSH);
	struct ibv_qp_ex *qp_ex = flushing();

	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ibv_wr_start(qp_ex);
		ibv_wr_flush(qp_ex, 1, 2, bad[i].length, bad[i].type, bad[i].level);
		assert_int_equal(ibv_wr_complete(qp_ex), EINVAL);
	}
	assert_int_equal(post(&wr), EINVAL);
	assert_int_equal(qp.sq.pi, 0);
}

/* FLU-7: the word stands in the WQE, or in an SGE. */
static void test_atomic_write_wqes(void **state)
{
	const struct skua_wqe_rdma *rdma = (void *)(ctrl + 1);
	struct ibv_send_wr wr = make_wr(IBV_WR_ATOMIC_WRITE);
	struct ibv_qp_ex *qp_ex = flushing();

	qp_ex->wr_flags = 0;
	ibv_wr_start(qp_ex);
	ibv_wr_atomic_write(qp_ex, 0x99, 0x8877665544332210, "abcdefgh");
	assert_int_equal(ibv_wr_complete(qp_ex), 0);
	fake_sq_fetch(&qp.sq, 0, wqe_copy);
	assert_int_equal(ctrl->opcode, SKUA_WQE_ATOMIC_WRITE);
	assert_int_equal(ctrl->nblocks, 1);
	assert_int_equal(ctrl->flags, SKUA_WQE_INLINE);
	assert_int_equal(le32toh(ctrl->length), 8);
	assert_int_equal(le64toh(rdma->raddr), 0x8877665544332210);
	assert_int_equal(le32toh(rdma->rkey), 0x99);
	assert_int_equal(rdma->flush, 0);
	assert_memory_equal(rdma + 1, "abcdefgh", 8);

	wr.num_sge = 1;
	assert_int_equal(post(&wr), 0);
	fake_sq_fetch(&qp.sq, 1, wqe_copy);
	assert_int_equal(ctrl->opcode, SKUA_WQE_ATOMIC_WRITE);
	assert_int_equal(ctrl->num_sge, 1);
	assert_int_equal(le64toh(((struct skua_sge *)(rdma + 1))->addr), sges[0].addr);
}

/* It has its data already. */
static void test_atomic_write_takes_no_data_behind_it(void **state)
{
	struct ibv_qp_ex *qp_ex = flushing();

	ibv_wr_start(qp_ex);
	ibv_wr_atomic_write(qp_ex, 1, 2, "abcdefgh");
	ibv_wr_set_sge(qp_ex, 1, 2, 3);
	assert_int_equal(ibv_wr_complete(qp_ex), EINVAL);
	ibv_wr_start(qp_ex);
	ibv_wr_atomic_write(qp_ex, 1, 2, "abcdefgh");
	ibv_wr_set_inline_data(qp_ex, (char *)"abcdefgh", 8);
	assert_int_equal(ibv_wr_complete(qp_ex), EINVAL);
	ibv_wr_start(qp_ex);
	ibv_wr_flush(qp_ex, 1, 2, 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
	ibv_wr_set_sge(qp_ex, 1, 2, 3);
	assert_int_equal(ibv_wr_complete(qp_ex), EINVAL);
	assert_int_equal(qp.sq.pi, 0);
}

static void test_poll_flush(void **state)
{
	static const struct { uint8_t cqe; enum ibv_wc_opcode wc; } table[] = {
		{ SKUA_CQE_FLUSH, IBV_WC_FLUSH }, { SKUA_CQE_ATOMIC_WRITE, IBV_WC_ATOMIC_WRITE },
	};
	struct ibv_qp_ex *qp_ex = flushing();
	struct ibv_wc wc;

	for (int i = 0; i < 2; i++) {
		ibv_wr_start(qp_ex);
		ibv_wr_flush(qp_ex, 1, 2, 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
		assert_int_equal(ibv_wr_complete(qp_ex), 0);
		complete((struct skua_cqe) { .opcode = table[i].cqe, .cookie = htole32(i) });
		assert_int_equal(skua_poll_cq(&cq.vcq.cq, 1, &wc), 1);
		assert_int_equal(wc.opcode, table[i].wc);
	}
}

/* GEN-2: without the features no QP has them. */
static void test_flush_without_its_features(void **state)
{
	assert_null(qp.vqp.qp_ex.wr_flush);
	assert_null(qp.vqp.qp_ex.wr_atomic_write);
	qp.opcodes = skua_op_mask(FEATURES, IBV_QPT_RC);
	assert_false(skua_qp_fill_wr_ops(&qp, IBV_QP_EX_WITH_FLUSH));
	assert_false(skua_qp_fill_wr_ops(&qp, IBV_QP_EX_WITH_ATOMIC_WRITE));
	qp.opcodes = skua_op_mask(FLUSH_FEATURES, IBV_QPT_UC);
	assert_false(skua_qp_fill_wr_ops(&qp, IBV_QP_EX_WITH_FLUSH));
	assert_false(skua_qp_fill_wr_ops(&qp, IBV_QP_EX_WITH_ATOMIC_WRITE));
}

static void test_wr_inline(void **state)
{
	struct ibv_data_buf bufs[2] = { { "abc", 3 }, { "defgh", 5 } };
	struct ibv_qp_ex *qp_ex = &qp.vqp.qp_ex;

	qp_ex->wr_flags = 0;
	ibv_wr_start(qp_ex);
	ibv_wr_send(qp_ex);
	ibv_wr_set_inline_data_list(qp_ex, 2, bufs);
	ibv_wr_rdma_write(qp_ex, 1, 2);
	ibv_wr_set_inline_data(qp_ex, "xyz", 3);
	assert_int_equal(ibv_wr_complete(qp_ex), 0);

	fake_sq_fetch(&qp.sq, 0, wqe_copy);
	assert_int_equal(ctrl->flags, SKUA_WQE_INLINE);
	assert_int_equal(le32toh(ctrl->length), 8);
	assert_memory_equal(wqe_copy + 16, "abcdefgh", 8);
	fake_sq_fetch(&qp.sq, 1, wqe_copy);
	assert_int_equal(le32toh(ctrl->length), 3);
	assert_memory_equal(wqe_copy + 32, "xyz", 3);
}

static void test_wr_errors_take_all_back(void **state)
{
	struct ibv_qp_ex *qp_ex = &qp.vqp.qp_ex;
	struct ibv_sge many[5] = {};
	static char big[65];
	unsigned int i;

	ibv_wr_start(qp_ex);
	ibv_wr_send(qp_ex);
	ibv_wr_send(qp_ex);
	ibv_wr_set_sge_list(qp_ex, 5, many);
	ibv_wr_send(qp_ex);
	assert_int_equal(ibv_wr_complete(qp_ex), EINVAL);
	assert_int_equal(qp.sq.pi, 0);

	ibv_wr_start(qp_ex);
	ibv_wr_send(qp_ex);
	ibv_wr_set_inline_data(qp_ex, big, sizeof(big));
	assert_int_equal(ibv_wr_complete(qp_ex), EINVAL);

	ibv_wr_start(qp_ex);
	ibv_wr_rdma_read(qp_ex, 1, 2);
	ibv_wr_set_inline_data(qp_ex, big, 1);
	assert_int_equal(ibv_wr_complete(qp_ex), EINVAL);

	qp.opcodes = skua_op_mask(FEATURES, IBV_QPT_RC);
	assert_true(skua_qp_fill_wr_ops(&qp, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD));
	ibv_wr_start(qp_ex);
	ibv_wr_atomic_fetch_add(qp_ex, 1, 2, 3);
	ibv_wr_set_inline_data(qp_ex, big, 8);
	assert_int_equal(ibv_wr_complete(qp_ex), EINVAL);

	ibv_wr_start(qp_ex);
	ibv_wr_local_inv(qp_ex, 1);
	ibv_wr_set_sge(qp_ex, 1, 2, 3);
	assert_int_equal(ibv_wr_complete(qp_ex), EINVAL);

	ibv_wr_start(qp_ex);
	for (i = 0; i < MAX_WR + 1; i++)
		ibv_wr_send(qp_ex);
	assert_int_equal(ibv_wr_complete(qp_ex), ENOMEM);

	ibv_wr_start(qp_ex);
	ibv_wr_send(qp_ex);
	ibv_wr_abort(qp_ex);

	assert_int_equal(qp.sq.pi, 0);
	assert_int_equal(qp.sq.wr_pi, 0);
	assert_int_equal(qp.sq.dbr->pi, 0);
	assert_int_equal(db_page[SKUA_DB_SQ / 8], 0);
}

/* A WQE larger than the QP's would reach into one in flight. */
static void test_wr_data_set_twice_is_no_larger(void **state)
{
	struct ibv_qp_ex *qp_ex = &qp.vqp.qp_ex;
	struct ibv_sge many[4] = {};

	ibv_wr_start(qp_ex);
	ibv_wr_rdma_write(qp_ex, 1, 2);
	ibv_wr_set_sge_list(qp_ex, 4, many);
	ibv_wr_set_sge_list(qp_ex, 2, sges);
	assert_int_equal(ibv_wr_complete(qp_ex), 0);
	assert_int_equal(qp.sq.pi, 1);
	fake_sq_fetch(&qp.sq, 0, wqe_copy);
	assert_int_equal(ctrl->num_sge, 2);
	assert_memory_equal(&((struct skua_sge *)(ctrl + 2))->addr, &sges[0].addr, 8);

	qp.opcodes = skua_op_mask(FEATURES, IBV_QPT_RC);
	assert_true(skua_qp_fill_wr_ops(&qp, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD));
	ibv_wr_start(qp_ex);
	ibv_wr_atomic_fetch_add(qp_ex, 1, 2, 3);
	ibv_wr_set_sge_list(qp_ex, 2, sges);
	assert_int_equal(ibv_wr_complete(qp_ex), EINVAL);
}

/* Datagrams */

static struct skua_ah ah = {
	.av = { .dgid = "somewhere", .dmac = "\2here", .sgid_index = 3, .hop_limit = 64, .sl = 5 },
};

/* The QP is of another type from now on. */
static void become(enum ibv_qp_type type, enum skua_peer peer, uint64_t send_ops)
{
	struct ibv_qp base = qp.vqp.qp;

	memset(&qp.vqp, 0, sizeof(qp.vqp));
	qp.vqp.qp = base;
	qp.peer = peer;
	qp.opcodes = skua_op_mask(FEATURES, type);
	assert_true(skua_qp_fill_wr_ops(&qp, send_ops));
}

static void become_ud(void)
{
	become(IBV_QPT_UD, SKUA_PEER_UD, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM);
}

static struct ibv_send_wr make_datagram(enum ibv_wr_opcode opcode)
{
	struct ibv_send_wr wr = make_wr(opcode);

	wr.wr.ud.ah = &ah.ibv_ah;
	wr.wr.ud.remote_qpn = 0xabcdef;
	wr.wr.ud.remote_qkey = 0x80010203;
	return wr;
}

/* The address in front of the data, in the first block, whole. Returns where the data is. */
static const void *check_datagram(uint32_t index, uint8_t opcode)
{
	const struct skua_wqe_ud *ud = (void *)(ctrl + 1);

	fake_sq_fetch(&qp.sq, index, wqe_copy);
	assert_int_equal(ctrl->opcode, opcode);
	assert_memory_equal(&ud->av, &ah.av, sizeof(ah.av));
	assert_int_equal(le32toh(ud->dest_qpn), 0xabcdef);
	assert_int_equal(le32toh(ud->qkey), 0x80010203);
	assert_int_equal(ud->rsvd, 0);
	return ud + 1;
}

static void check_datagram_sges(uint32_t index, uint8_t opcode)
{
	const struct skua_sge *sge = check_datagram(index, opcode);

	assert_int_equal(ctrl->nblocks, 2);
	assert_int_equal(ctrl->num_sge, 2);
	assert_int_equal(le64toh(sge[0].addr), sges[0].addr);
	assert_int_equal(le32toh(sge[1].lkey), sges[1].lkey);
}

static void test_datagram_wqes(void **state)
{
	struct ibv_send_wr wr = make_datagram(IBV_WR_SEND);
	struct ibv_sge sge = { .addr = (uintptr_t)"abcdefgh", .length = 8 };

	become_ud();
	assert_int_equal(post(&wr), 0);
	check_datagram_sges(0, SKUA_WQE_SEND);
	wr = make_datagram(IBV_WR_SEND_WITH_IMM);
	assert_int_equal(post(&wr), 0);
	check_datagram_sges(2, SKUA_WQE_SEND_IMM);
	assert_int_equal(be32toh(ctrl->imm_data), 0x12345678);

	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.send_flags = IBV_SEND_INLINE;
	assert_int_equal(post(&wr), 0);
	assert_memory_equal(check_datagram(4, SKUA_WQE_SEND_IMM), "abcdefgh", 8);
	assert_int_equal(le32toh(ctrl->length), 8);
	assert_int_equal(ctrl->nblocks, 2);

	wr.num_sge = 0;
	assert_int_equal(post(&wr), 0);
	check_datagram(6, SKUA_WQE_SEND_IMM);
	assert_int_equal(ctrl->nblocks, 1);
}

/* Address and data may be set in either order. */
static void test_datagrams_by_calls(void **state)
{
	struct ibv_qp_ex *qp_ex = &qp.vqp.qp_ex;

	become_ud();
	ibv_wr_start(qp_ex);
	ibv_wr_send(qp_ex);
	ibv_wr_set_ud_addr(qp_ex, &ah.ibv_ah, 0xabcdef, 0x80010203);
	ibv_wr_set_sge_list(qp_ex, 2, sges);
	ibv_wr_send_imm(qp_ex, htobe32(7));
	ibv_wr_set_sge_list(qp_ex, 2, sges);
	ibv_wr_set_ud_addr(qp_ex, &ah.ibv_ah, 0xabcdef, 0x80010203);
	ibv_wr_send(qp_ex);
	ibv_wr_set_inline_data(qp_ex, "xyz", 3);
	ibv_wr_set_ud_addr(qp_ex, &ah.ibv_ah, 0xabcdef, 0x80010203);
	assert_int_equal(ibv_wr_complete(qp_ex), 0);
	check_datagram_sges(0, SKUA_WQE_SEND);
	check_datagram_sges(2, SKUA_WQE_SEND_IMM);
	assert_memory_equal(check_datagram(4, SKUA_WQE_SEND), "xyz", 3);
}

/* What stood in the ring before is no address: one that was not set is zero, which is refused. */
static void test_datagram_without_an_address(void **state)
{
	static const struct skua_wqe_ud none;
	struct ibv_qp_ex *qp_ex = &qp.vqp.qp_ex;

	become_ud();
	memset(qp.sq.buf, 0xee, BLOCKS * SKUA_WQE_BLOCK);
	ibv_wr_start(qp_ex);
	ibv_wr_send(qp_ex);
	assert_int_equal(ibv_wr_complete(qp_ex), 0);
	fake_sq_fetch(&qp.sq, 0, wqe_copy);
	assert_memory_equal(ctrl + 1, &none, sizeof(none));
}

/* XRC */

#define SRQN	0xabcdef

static void become_xrc(void)
{
	become(IBV_QPT_XRC_SEND, SKUA_PEER_XRC, ALL_OPS | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD);
}

/* The SRQ stands in front of all other segments. Returns what is behind it. */
static const void *check_xrc(uint32_t index, uint8_t opcode)
{
	static const struct skua_wqe_xrc zero;
	const struct skua_wqe_xrc *xrc = (void *)(ctrl + 1);

	fake_sq_fetch(&qp.sq, index, wqe_copy);
	assert_int_equal(ctrl->opcode, opcode);
	assert_int_equal(le32toh(xrc->srqn), SRQN);
	assert_memory_equal(xrc->rsvd, zero.rsvd, sizeof(zero.rsvd));
	return xrc + 1;
}

/* XRC-8 */
static void test_xrc_wqes_name_an_srq(void **state)
{
	struct ibv_send_wr wr = make_wr(IBV_WR_SEND);
	const struct skua_wqe_rdma *rdma;
	const struct skua_wqe_atomic *atomic;
	const struct skua_sge *sge;

	become_xrc();
	wr.qp_type.xrc.remote_srqn = SRQN;
	assert_int_equal(post(&wr), 0);
	sge = check_xrc(0, SKUA_WQE_SEND);
	assert_int_equal(le64toh(sge[0].addr), sges[0].addr);
	assert_int_equal(le32toh(sge[1].lkey), sges[1].lkey);
	assert_int_equal(ctrl->nblocks, 1);
	wr = make_wr(IBV_WR_RDMA_WRITE);
	wr.qp_type.xrc.remote_srqn = SRQN;
	assert_int_equal(post(&wr), 0);
	rdma = check_xrc(1, SKUA_WQE_WRITE);
	assert_int_equal(le32toh(rdma->rkey), 0x99);
	assert_int_equal(ctrl->nblocks, 2);
	wr = (struct ibv_send_wr) { .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .sg_list = sges, .num_sge = 1,
				    .qp_type.xrc.remote_srqn = SRQN, .wr.atomic.rkey = 0x98, .wr.atomic.compare_add = 5 };
	assert_int_equal(post(&wr), 0);
	atomic = check_xrc(3, SKUA_WQE_FETCH_ADD);
	assert_int_equal(le32toh(atomic->rkey), 0x98);
	assert_int_equal(le64toh(atomic->swap_add), 5);
	assert_int_equal(ctrl->nblocks, 2);
	/* Nothing is sent, so nobody is named. */
	wr = make_wr(IBV_WR_LOCAL_INV);
	assert_int_equal(post(&wr), 0);
	fake_sq_fetch(&qp.sq, 5, wqe_copy);
	assert_int_equal(ctrl->opcode, SKUA_WQE_LOCAL_INV);
	assert_int_equal(ctrl->nblocks, 1);
	assert_int_equal(wqe_copy[sizeof(*ctrl)], 0xee);
}

/* The SRQ and the data may be set in either order. */
static void test_xrc_by_calls(void **state)
{
	struct ibv_qp_ex *qp_ex = &qp.vqp.qp_ex;
	const struct skua_wqe_rdma *rdma;

	become_xrc();
	ibv_wr_start(qp_ex);
	ibv_wr_rdma_read(qp_ex, 0x99, 0x1122);
	ibv_wr_set_xrc_srqn(qp_ex, SRQN);
	ibv_wr_set_sge_list(qp_ex, 1, sges);
	ibv_wr_send(qp_ex);
	ibv_wr_set_inline_data(qp_ex, "xyz", 3);
	ibv_wr_set_xrc_srqn(qp_ex, SRQN);
	ibv_wr_local_inv(qp_ex, 0x77);
	ibv_wr_set_xrc_srqn(qp_ex, SRQN);
	assert_int_equal(ibv_wr_complete(qp_ex), 0);
	rdma = check_xrc(0, SKUA_WQE_READ);
	assert_int_equal(le64toh(rdma->raddr), 0x1122);
	assert_memory_equal(check_xrc(1, SKUA_WQE_SEND), "xyz", 3);
	fake_sq_fetch(&qp.sq, 2, wqe_copy);
	assert_int_equal(ctrl->opcode, SKUA_WQE_LOCAL_INV);
	assert_int_equal(le32toh(ctrl->inv_key), 0x77);
	assert_int_equal(ctrl->nblocks, 1);
	assert_int_equal(wqe_copy[sizeof(*ctrl)], 0xee);
}

/* What stood in the ring before names no SRQ. */
static void test_xrc_without_an_srq(void **state)
{
	static const struct skua_wqe_xrc none;
	struct ibv_qp_ex *qp_ex = &qp.vqp.qp_ex;

	become_xrc();
	ibv_wr_start(qp_ex);
	ibv_wr_send(qp_ex);
	assert_int_equal(ibv_wr_complete(qp_ex), 0);
	fake_sq_fetch(&qp.sq, 0, wqe_copy);
	assert_memory_equal(ctrl + 1, &none, sizeof(none));
}

static void test_each_type_has_its_opcodes(void **state)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		bool uc, ud;
	} table[] = {
		{ IBV_WR_SEND, true, true },
		{ IBV_WR_SEND_WITH_IMM, true, true },
		{ IBV_WR_SEND_WITH_INV, false, false },
		{ IBV_WR_RDMA_WRITE, true, false },
		{ IBV_WR_RDMA_WRITE_WITH_IMM, true, false },
		{ IBV_WR_RDMA_READ, false, false },
		{ IBV_WR_ATOMIC_CMP_AND_SWP, false, false },
		{ IBV_WR_ATOMIC_FETCH_AND_ADD, false, false },
		{ IBV_WR_LOCAL_INV, true, false },
		{ IBV_WR_BIND_MW, true, false },
	};
	unsigned int i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		uint32_t bit = 1u << table[i].opcode;

		assert_true(skua_op_mask(FEATURES, IBV_QPT_RC) & bit);
		assert_true(skua_op_mask(FEATURES, IBV_QPT_XRC_SEND) & bit);
		assert_false(skua_op_mask(FEATURES, IBV_QPT_XRC_RECV) & bit);
		assert_int_equal(!!(skua_op_mask(FEATURES, IBV_QPT_UC) & bit), table[i].uc);
		assert_int_equal(!!(skua_op_mask(FEATURES, IBV_QPT_UD) & bit), table[i].ud);
	}
	become_ud();
	assert_false(skua_qp_fill_wr_ops(&qp, IBV_QP_EX_WITH_RDMA_WRITE));
}

/* A call that was not declared is none: of a UD QP it would write beyond its WQE. */
static void test_only_declared_calls_are_set(void **state)
{
	const struct ibv_qp_ex *qp_ex = &qp.vqp.qp_ex;

	assert_null(qp_ex->wr_atomic_cmp_swp);
	assert_null(qp_ex->wr_atomic_fetch_add);
	assert_null(qp_ex->wr_set_ud_addr);
	assert_null(qp_ex->wr_set_xrc_srqn);
	assert_non_null(qp_ex->wr_rdma_read);
	assert_non_null(qp_ex->wr_local_inv);

	become_ud();
	assert_non_null(qp_ex->wr_send);
	assert_non_null(qp_ex->wr_send_imm);
	assert_non_null(qp_ex->wr_set_ud_addr);
	assert_null(qp_ex->wr_send_inv);
	assert_null(qp_ex->wr_local_inv);
	assert_null(qp_ex->wr_rdma_write);
	assert_null(qp_ex->wr_rdma_write_imm);
	assert_null(qp_ex->wr_rdma_read);
	assert_null(qp_ex->wr_atomic_cmp_swp);
	assert_null(qp_ex->wr_atomic_fetch_add);
}

/* Ticks of 4 ns, and of a third of one, near the moment that the page names and far from it. */
static void test_wall_clock(void **state)
{
	static const uint64_t then = 1ull << 40, ns = 1700000000ull * 1000000000;
	struct skua_info_page page = { .sequence = 2, .cycles = then, .ns = ns, .mult = 4u << 20, .shift = 20 };

	assert_int_equal(skua_wall_clock(&page, then), ns);
	assert_int_equal(skua_wall_clock(&page, then + 1), ns + 4);
	assert_int_equal(skua_wall_clock(&page, then - 1), ns - 4);
	assert_int_equal(skua_wall_clock(&page, then + (1ull << 45)), ns + (4ull << 45));
	assert_int_equal(skua_wall_clock(&page, 0), ns - 4 * then);
	page.shift = 31;
	page.mult = (1u << 31) / 3 + 1;
	assert_int_equal(skua_wall_clock(&page, then + 3), ns + 1);
	assert_int_equal(skua_wall_clock(&page, then + 3000000), ns + 1000000);
	assert_in_range(skua_wall_clock(&page, then + (3ull << 40)), ns + (1ull << 40), ns + (1ull << 40) + 1024);
}

static void test_poll_datagram(void **state)
{
	struct ibv_recv_wr wr = { .sg_list = sges, .num_sge = 1 }, *bad;
	struct skua_cqe cqe = {
		.opcode = SKUA_CQE_RECV, .byte_len = htole32(140), .src_qpn = htole32(0x654321),
		.vlan = htole16(5 << 13 | 100), .ip_version = 4, .flags = SKUA_CQE_WITH_IMM,
	};
	struct ibv_cq_ex *cq_ex = &cq.vcq.cq_ex;
	struct ibv_poll_cq_attr attr = {};
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 4; i++)
		assert_int_equal(skua_post_recv(&qp.vqp.qp, &wr, &bad), 0);
	complete(cqe);
	assert_int_equal(skua_poll_cq(&cq.vcq.cq, 1, &wc), 1);
	assert_int_equal(wc.src_qp, 0x654321);
	assert_int_equal(wc.wc_flags, IBV_WC_GRH | IBV_WC_WITH_IMM);
	assert_int_equal(wc.sl, 5);
	assert_int_equal(wc.byte_len, 140);

	complete(cqe);
	cqe.vlan = htole16(SKUA_VLAN_NONE);
	complete(cqe);
	assert_int_equal(ibv_start_poll(cq_ex, &attr), 0);
	assert_int_equal(ibv_wc_read_src_qp(cq_ex), 0x654321);
	assert_int_equal(ibv_wc_read_wc_flags(cq_ex), IBV_WC_GRH | IBV_WC_WITH_IMM);
	assert_int_equal(ibv_wc_read_sl(cq_ex), 5);
	assert_int_equal(ibv_wc_read_slid(cq_ex), 0);
	assert_int_equal(ibv_wc_read_dlid_path_bits(cq_ex), 0);
	assert_int_equal(ibv_next_poll(cq_ex), 0);
	assert_int_equal(ibv_wc_read_sl(cq_ex), 2);
	ibv_end_poll(cq_ex);
	cqe.ip_version = 6;
	complete(cqe);
	assert_int_equal(skua_poll_cq(&cq.vcq.cq, 1, &wc), 1);
	assert_int_equal(wc.sl, 1);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#define TSO_HEADER	138

static struct ibv_qp_ex *become_raw(void)
{
	qp.rare_opcodes = skua_op_mask(1 << SKUA_F_TSO, IBV_QPT_RAW_PACKET) & SKUA_RARE_OPS;
	qp.max_tso_header = TSO_HEADER;
	become(IBV_QPT_RAW_PACKET, SKUA_PEER_RAW, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO);
	return &qp.vqp.qp_ex;
}

static void check_tso(uint32_t index, const uint8_t *headers, uint16_t len)
{
	const struct skua_wqe_tso *tso = (void *)(ctrl + 1);
	const struct skua_sge *sge = (void *)((uint8_t *)(tso + 1) + (len + 15) / 16 * 16);
	uint32_t i;

	i = fake_sq_fetch(&qp.sq, index, wqe_copy);
	assert_int_equal(i, skua_wqe_blocks(32 + (len + 15) / 16 * 16 + 32));
	assert_int_equal(qp.sq.pi, index + i);
	assert_int_equal(ctrl->opcode, SKUA_WQE_TSO);
	assert_int_equal(ctrl->flags, SKUA_WQE_SIGNALED);
	assert_int_equal(ctrl->num_sge, 2);
	assert_int_equal(ctrl->length, 0);
	assert_int_equal(ctrl->inv_key, 0);
	assert_int_equal(le16toh(tso->mss), 1448);
	assert_int_equal(le16toh(tso->hdr_len), len);
	for (i = 0; i < sizeof(tso->rsvd); i++)
		assert_int_equal(tso->rsvd[i], 0);
	assert_memory_equal(tso + 1, headers, len);
	for (i = 0; i < 2; i++) {
		assert_int_equal(le64toh(sge[i].addr), sges[i].addr);
		assert_int_equal(le32toh(sge[i].length), sges[i].length);
		assert_int_equal(le32toh(sge[i].lkey), sges[i].lkey);
	}
}

/* TSO-1 TSO-2: headers of each length, wherever the ring ends; by both ways of posting. */
static void test_tso_wqes(void **state)
{
	struct ibv_qp_ex *qp_ex = become_raw();
	struct ibv_send_wr wr = make_wr(IBV_WR_TSO);
	uint8_t headers[TSO_HEADER];
	struct ibv_wc wc;
	uint32_t start, i;

	for (i = 0; i < TSO_HEADER; i++)
		headers[i] = i * 7 + 1;
	wr.tso.hdr = headers;
	wr.tso.mss = 1448;
	for (start = 0; start < BLOCKS; start++)
		for (i = 1; i <= TSO_HEADER; i++) {
			skua_sq_reset(&qp.sq);
			qp.sq.pi = qp.sq.published = start;
			wr.tso.hdr_sz = i;
			assert_int_equal(post(&wr), 0);
			check_tso(start, headers, i);

			skua_sq_reset(&qp.sq);
			qp.sq.pi = qp.sq.published = start;
			qp_ex->wr_flags = IBV_SEND_SIGNALED;
			ibv_wr_start(qp_ex);
			ibv_wr_send_tso(qp_ex, headers, i, 1448);
			ibv_wr_set_sge(qp_ex, 1, 2, 3);		/* is replaced */
			ibv_wr_set_sge_list(qp_ex, 2, sges);
			assert_int_equal(ibv_wr_complete(qp_ex), 0);
			check_tso(start, headers, i);
		}
	complete((struct skua_cqe) { .cookie = htole32(BLOCKS - 1), .sq_ci = htole32(qp.sq.pi), .opcode = SKUA_CQE_TSO });
	assert_int_equal(skua_poll_cq(&cq.vcq.cq, 1, &wc), 1);
	assert_int_equal(wc.opcode, IBV_WC_TSO);
}

/* TSO-1 TSO-2: what a program can see itself. */
static void test_tso_that_is_refused(void **state)
{
	static const struct { uint16_t hdr_sz, mss; int num_sge; unsigned int flags; } bad[] = {
		{ 0, 1448, 2, 0 }, { TSO_HEADER + 1, 1448, 2, 0 }, { 54, 0, 2, 0 }, { 54, 1448, 5, 0 },
		{ 54, 1448, 2, IBV_SEND_INLINE },
	};
	struct ibv_qp_ex *qp_ex = become_raw();
	uint8_t headers[TSO_HEADER + 1] = { 0 };
	struct ibv_send_wr wr = make_wr(IBV_WR_TSO);
	unsigned int i;

	wr.tso.hdr = headers;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		wr.tso.hdr_sz = bad[i].hdr_sz;
		wr.tso.mss = bad[i].mss;
		wr.num_sge = bad[i].num_sge;
		wr.send_flags = bad[i].flags;
		assert_int_equal(post(&wr), EINVAL);
		if (i > 2)
			continue;
		ibv_wr_start(qp_ex);
		ibv_wr_send_tso(qp_ex, headers, bad[i].hdr_sz, bad[i].mss);
		assert_int_equal(ibv_wr_complete(qp_ex), EINVAL);
	}
	ibv_wr_start(qp_ex);
	ibv_wr_send_tso(qp_ex, headers, 54, 1448);
	ibv_wr_set_inline_data(qp_ex, headers, 8);
	assert_int_equal(ibv_wr_complete(qp_ex), EINVAL);
	wr.tso.hdr_sz = 54;
	wr.tso.mss = 1448;
	wr.num_sge = 2;
	wr.send_flags = 0;
	qp.max_tso_header = 0;		/* not asked for */
	assert_int_equal(post(&wr), EINVAL);
	qp.max_tso_header = TSO_HEADER;
	qp.rare_opcodes = 0;		/* the device has none */
	assert_int_equal(post(&wr), EINVAL);
	wr.opcode = IBV_WR_DRIVER1;
	assert_int_equal(post(&wr), EINVAL);
	assert_int_equal(qp.sq.pi, 0);
	for (i = 0; i < 5; i++) {
		static const enum ibv_qp_type types[] = {
			IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND, IBV_QPT_RAW_PACKET
		};

		assert_int_equal(!!(skua_op_mask(~0ull, types[i]) & 1u << IBV_WR_TSO), i == 4);
	}
}

/* ETH-17: of frames; other types of QPs know nothing of the flag. */
static void test_checksums_are_asked_for(void **state)
{
	struct ibv_send_wr wr = make_wr(IBV_WR_SEND);
	struct ibv_qp_ex *qp_ex;
	unsigned int i;

	wr.send_flags |= IBV_SEND_IP_CSUM;
	assert_int_equal(post(&wr), 0);
	fake_sq_fetch(&qp.sq, 0, wqe_copy);
	assert_int_equal(ctrl->flags, SKUA_WQE_SIGNALED);
	qp_ex = become_raw();
	for (i = 0; i < 2; i++) {
		wr.send_flags = IBV_SEND_SIGNALED | (i ? IBV_SEND_IP_CSUM : 0);
		assert_int_equal(post(&wr), 0);
		fake_sq_fetch(&qp.sq, qp.sq.pi - 1, wqe_copy);
		assert_int_equal(ctrl->opcode, SKUA_WQE_SEND);
		assert_int_equal(ctrl->flags, SKUA_WQE_SIGNALED | (i ? SKUA_WQE_IP_CSUM : 0));
		assert_int_equal(le64toh(((struct skua_sge *)(ctrl + 1))->addr), sges[0].addr);
		qp_ex->wr_flags = wr.send_flags;
		ibv_wr_start(qp_ex);
		ibv_wr_send(qp_ex);
		ibv_wr_set_sge_list(qp_ex, 2, sges);
		assert_int_equal(ibv_wr_complete(qp_ex), 0);
		fake_sq_fetch(&qp.sq, qp.sq.pi - 1, wqe_copy);
		assert_int_equal(ctrl->opcode, SKUA_WQE_SEND);
		assert_int_equal(ctrl->flags, SKUA_WQE_SIGNALED | (i ? SKUA_WQE_IP_CSUM : 0));
		assert_int_equal(le64toh(((struct skua_sge *)(ctrl + 1))->addr), sges[0].addr);
	}
}

/* ETH-12: verbs have one flag for both checksums. */
static void test_checksums_of_a_received_frame(void **state)
{
	static const uint8_t flags[] = { 0, SKUA_CQE_L3_CSUM_OK, SKUA_CQE_L4_CSUM_OK, SKUA_CQE_L4_HASH,
					 SKUA_CQE_L3_CSUM_OK | SKUA_CQE_L4_CSUM_OK };
	struct ibv_recv_wr wr = { .sg_list = sges, .num_sge = 1 }, *bad;
	struct ibv_cq_ex *cq_ex = &cq.vcq.cq_ex;
	struct ibv_poll_cq_attr attr = {};
	struct ibv_wc wc;
	unsigned int i;

	for (i = 0; i < sizeof(flags); i++) {
		unsigned int want = i == 4 ? IBV_WC_IP_CSUM_OK : 0;

		assert_int_equal(skua_post_recv(&qp.vqp.qp, &wr, &bad), 0);
		complete((struct skua_cqe) { .opcode = SKUA_CQE_RECV, .flags = flags[i] });
		assert_int_equal(skua_poll_cq(&cq.vcq.cq, 1, &wc), 1);
		assert_int_equal(wc.wc_flags, want);
		assert_int_equal(skua_post_recv(&qp.vqp.qp, &wr, &bad), 0);
		complete((struct skua_cqe) { .opcode = SKUA_CQE_RECV, .flags = flags[i], .flow_tag = htole32(0xfedcba98) });
		assert_int_equal(ibv_start_poll(cq_ex, &attr), 0);
		assert_int_equal(ibv_wc_read_wc_flags(cq_ex), want);
		assert_int_equal(ibv_wc_read_flow_tag(cq_ex), 0xfedcba98);	/* RAW-16 */
		ibv_end_poll(cq_ex);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_each_opcode_becomes_its_wqe),
		T(test_flags),
		T(test_inline_is_gathered),
		T(test_refused_wrs),
		T(test_opcode_without_its_feature_is_refused),
		T(test_a_window_is_bound),
		T(test_binds_that_are_refused),
		T(test_type_1_gets_its_next_key),
		T(test_a_window_is_made_or_not),
		T(test_states),
		T(test_full_queue),
		T(test_doorbell_only_if_asked_for),
		T(test_post_recv),
		T(test_poll_send),
		T(test_poll_recv),
		T(test_poll_error),
		T(test_dead_device_shows_when_the_cq_is_empty),
		T(test_the_last_cqe_of_a_dying_device_is_found),
		T(test_extended_poll),
		T(test_posting_never_overruns_the_cq),
		T(test_posting_never_overruns_an_extended_cq),
		T(test_posting_while_polling),
		T(test_wr_calls_build_the_same_wqes),
		T(test_atomic_wqes),
		T(test_flush_wqes),
		T(test_flushes_that_are_refused),
		T(test_atomic_write_wqes),
		T(test_atomic_write_takes_no_data_behind_it),
		T(test_poll_flush),
		T(test_flush_without_its_features),
		T(test_wr_inline),
		T(test_wr_errors_take_all_back),
		T(test_wr_data_set_twice_is_no_larger),
		T(test_datagram_wqes),
		T(test_datagrams_by_calls),
		T(test_datagram_without_an_address),
		T(test_xrc_wqes_name_an_srq),
		T(test_xrc_by_calls),
		T(test_xrc_without_an_srq),
		T(test_each_type_has_its_opcodes),
		T(test_only_declared_calls_are_set),
		T(test_wall_clock),
		T(test_poll_datagram),
		T(test_tso_wqes),
		T(test_tso_that_is_refused),
		T(test_checksums_are_asked_for),
		T(test_checksums_of_a_received_frame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
