// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Frames of RAW_PACKET: TSO, checksums, and VLAN tags. */
#include <skua/cmd.h>

#include "queues.h"

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

/* ETH-19: the tag is read as it was, whatever it is, and 0 is none. */
static void test_tags_of_received_frames(void **state)
{
	static const uint16_t tags[] = { 0, 1, 0xa007, SKUA_VLAN_NONE };
	struct ibv_recv_wr wr = { .sg_list = sges, .num_sge = 1 }, *bad;
	struct ibv_cq_ex *cq_ex = &cq.vcq.cq_ex;
	struct ibv_poll_cq_attr attr = {};
	unsigned int i;

	for (i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
		assert_int_equal(skua_post_recv(&qp.vqp.qp, &wr, &bad), 0);
		complete((struct skua_cqe) { .opcode = SKUA_CQE_RECV, .vlan = htole16(tags[i]) });
		assert_int_equal(ibv_start_poll(cq_ex, &attr), 0);
		assert_int_equal(ibv_wc_read_cvlan(cq_ex), tags[i]);
		assert_int_equal(ibv_wc_read_sl(cq_ex), 0);
		assert_int_equal(ibv_wc_read_wc_flags(cq_ex), 0);
		ibv_end_poll(cq_ex);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_tso_wqes),
		T(test_tso_that_is_refused),
		T(test_checksums_are_asked_for),
		T(test_checksums_of_a_received_frame),
		T(test_tags_of_received_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
