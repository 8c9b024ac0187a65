// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * WQEs that say who is meant: the address of a datagram, the SRQ of XRC. And what QPs of each type
 * may post.
 */
#include <skua/cmd.h>

#include "queues.h"

/* Datagrams */

static struct skua_ah ah = {
	.av = { .dgid = "somewhere", .dmac = "\2here", .sgid_index = 3, .hop_limit = 64, .sl = 5 },
};

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
	assert_int_equal(ibv_wc_read_cvlan(cq_ex), 5 << 13 | 100);
	assert_int_equal(ibv_wc_read_slid(cq_ex), 0);
	assert_int_equal(ibv_wc_read_dlid_path_bits(cq_ex), 0);
	assert_int_equal(ibv_next_poll(cq_ex), 0);
	assert_int_equal(ibv_wc_read_sl(cq_ex), 2);
	assert_int_equal(ibv_wc_read_cvlan(cq_ex), 0);
	ibv_end_poll(cq_ex);
	cqe.ip_version = 6;
	complete(cqe);
	assert_int_equal(skua_poll_cq(&cq.vcq.cq, 1, &wc), 1);
	assert_int_equal(wc.sl, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_datagram_wqes),
		T(test_datagrams_by_calls),
		T(test_datagram_without_an_address),
		T(test_xrc_wqes_name_an_srq),
		T(test_xrc_by_calls),
		T(test_xrc_without_an_srq),
		T(test_each_type_has_its_opcodes),
		T(test_only_declared_calls_are_set),
		T(test_poll_datagram),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
