// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A QP and its CQ in memory, and what tests post to them and find there. */
#include "queues.h"

struct skua_qp qp;
struct skua_cq cq;
struct fake_cq dev;
struct skua_info_page info;
uint64_t db_page[SKUA_PAGE_SIZE / 8];
uint8_t wqe_copy[SKUA_WQE_MAX_BLOCKS * SKUA_WQE_BLOCK];
const struct skua_wqe_ctrl *const ctrl = (void *)wqe_copy;

struct ibv_sge sges[2] = {
	{ .addr = 0x10000, .length = 100, .lkey = 0x11 },
	{ .addr = 0x20000, .length = 200, .lkey = 0x22 },
};

int setup(void **state)
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
			    IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_FLOW_TAG |
			    IBV_WC_EX_WITH_CVLAN);
	return 0;
}

int teardown(void **state)
{
	fake_cq_free(&cq.ring);
	fake_rq_free(&qp.rq);
	fake_sq_free(&qp.sq);
	return 0;
}

struct ibv_send_wr make_wr(enum ibv_wr_opcode opcode)
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

int post(struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;
	int err;

	err = skua_post_send(&qp.vqp.qp, wr, &bad);
	assert_int_equal(err != 0, bad != NULL);
	return err;
}

const struct row rows[NUM_ROWS] = {
	{ IBV_WR_SEND, SKUA_WQE_SEND, false },
	{ IBV_WR_SEND_WITH_IMM, SKUA_WQE_SEND_IMM, false },
	{ IBV_WR_SEND_WITH_INV, SKUA_WQE_SEND_INV, false },
	{ IBV_WR_RDMA_WRITE, SKUA_WQE_WRITE, true },
	{ IBV_WR_RDMA_WRITE_WITH_IMM, SKUA_WQE_WRITE_IMM, true },
	{ IBV_WR_RDMA_READ, SKUA_WQE_READ, true },
	{ IBV_WR_LOCAL_INV, SKUA_WQE_LOCAL_INV, false },
};

void check_wqe(unsigned int row, uint32_t index)
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

void complete(struct skua_cqe cqe)
{
	cqe.qp_handle = htole64((uintptr_t)&qp);
	cqe.qpn = htole32(QPN);
	fake_cq_write(&dev, cqe);
}

void become(enum ibv_qp_type type, enum skua_peer peer, uint64_t send_ops)
{
	struct ibv_qp base = qp.vqp.qp;

	memset(&qp.vqp, 0, sizeof(qp.vqp));
	qp.vqp.qp = base;
	qp.peer = peer;
	qp.opcodes = skua_op_mask(FEATURES, type);
	assert_true(skua_qp_fill_wr_ops(&qp, send_ops));
}
