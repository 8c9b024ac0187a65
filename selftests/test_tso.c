// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * TCP segmentation offload: long frames of a raw packet QP that the device cuts.
 */
#include <errno.h>
#include <string.h>

#include "kselftest_harness.h"
#include "packet_fixture.h"
#include "rows.h"

#define TSO_HEADERS	66u
#define TSO_MSS		1000u
#define TSO_FULL	12u		/* frames with as much */
#define TSO_PAYLOAD	(TSO_FULL * TSO_MSS + 1)

/* A raw packet QP whose WRs may be cut, in RTS; it completes to the CQ of @raw. */
static struct ibv_qp *open_tso_qp(struct packet_qp *raw, uint16_t headers)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RAW_PACKET, .pd = raw->side->pd, .send_cq = raw->cq, .recv_cq = raw->cq,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO, .max_tso_header = headers,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | IBV_QP_INIT_ATTR_MAX_TSO_HEADER,
		.cap = { .max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 3, .max_recv_sge = 1 },
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp *qp = ibv_create_qp_ex(raw->side->context, &init);

	if (!qp || ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT))
		return NULL;
	for (attr.qp_state = IBV_QPS_RTR; attr.qp_state <= IBV_QPS_RTS; attr.qp_state++)
		if (ibv_modify_qp(qp, &attr, IBV_QP_STATE))
			return NULL;
	return qp;
}

/* TCP over IPv4 with options, with PSH and ACK, sequence number 1000 and identification 7. */
static void make_tcp(uint8_t *p, const uint8_t *dst, const uint8_t *src)
{
	static const uint8_t headers[TSO_HEADERS - 12] = {
		8, 0, 0x45, 0, 0xee, 0xee, 0, 7, 0x40, 0, 64, 6, 0xee, 0xee, 192, 0, 2, 1, 198, 51, 100, 2,
		0x12, 0x34, 0x1b, 0x58, 0, 0, 0x03, 0xe8, 0, 0, 0, 9, 0x80, 0x18, 1, 0xff, 0xee, 0xee, 0, 0,
		1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8,
	};

	memcpy(p, dst, 6);
	memcpy(p + 6, src, 6);
	memcpy(p + 12, headers, sizeof(headers));
}

/* TSO-3 TSO-4: by WRs and by calls. */
TEST_F(raw, segments)
{
	struct ibv_flow *f = flow(&self->b, to_mac(self->mac[1]));
	struct ibv_qp *qp = open_tso_qp(&self->a, TSO_HEADERS);
	uint8_t *data = self->a.mem + SLOT, headers[TSO_HEADERS];
	struct ibv_sge sge[] = {
		{ (uintptr_t)data, 777, self->a.mr->lkey },
		{ (uintptr_t)data + 777, TSO_PAYLOAD - 777, self->a.mr->lkey },
	};
	struct ibv_send_wr *bad, wr = {
		.wr_id = 5, .sg_list = sge, .num_sge = 2, .opcode = IBV_WR_TSO, .send_flags = IBV_SEND_SIGNALED,
		.tso = { headers, TSO_HEADERS, TSO_MSS },
	};
	struct ibv_qp_ex *qpx;
	struct ibv_wc wc;

	ASSERT_TRUE(f && qp);
	make_tcp(headers, self->mac[1], self->mac[0]);
	pair_fill(data, TSO_PAYLOAD, 5);
	qpx = ibv_qp_to_qp_ex(qp);
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, post_recvs(&self->b, TSO_FULL + 1));
		if (!i) {
			ASSERT_EQ(0, ibv_post_send(qp, &wr, &bad));
		} else {
			ibv_wr_start(qpx);
			qpx->wr_id = 5;
			qpx->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_IP_CSUM;
			ibv_wr_send_tso(qpx, headers, TSO_HEADERS, TSO_MSS);
			ibv_wr_set_sge_list(qpx, 2, sge);
			ASSERT_EQ(0, ibv_wr_complete(qpx));
		}
		ASSERT_TRUE(wait_wc(&self->a, &wc));
		EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
		EXPECT_EQ(IBV_WC_TSO, wc.opcode);
		EXPECT_EQ(5, wc.wr_id);
		for (uint32_t k = 0; k <= TSO_FULL; k++) {
			uint32_t len = k < TSO_FULL ? TSO_MSS : 1;
			const uint8_t *p;

			ASSERT_TRUE(wait_wc(&self->b, &wc));
			ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
			ASSERT_EQ(TSO_HEADERS + len, wc.byte_len);
			EXPECT_EQ(IBV_WC_IP_CSUM_OK, wc.wc_flags);
			p = self->b.mem + wc.wr_id * SLOT;
			EXPECT_EQ(0, memcmp(p, headers, 16));
			EXPECT_EQ(TSO_HEADERS - 14 + len, p[16] << 8 | p[17]);
			EXPECT_EQ(7 + k, p[18] << 8 | p[19]);
			EXPECT_EQ(1000 + k * TSO_MSS, (uint32_t)p[38] << 24 | p[39] << 16 | p[40] << 8 | p[41]);
			EXPECT_EQ(k < TSO_FULL ? 0x10 : 0x18, p[47]);
			EXPECT_EQ(0xffff, ip_sum(p + 14, false));
			EXPECT_EQ(0xffff, ip_sum(p + 14, true));
			EXPECT_EQ(0, memcmp(p + TSO_HEADERS, data + k * TSO_MSS, len));
		}
	}
	EXPECT_EQ(0, ibv_destroy_qp(qp));
	EXPECT_EQ(0, ibv_destroy_flow(f));
}

/* TSO-1 TSO-5: what the provider refuses, and what the device does. */
TEST_F(raw, wrong_segments)
{
	static const struct {
		const char *name;
		int gives;			/* errno; 0: the device completes it with */
		enum ibv_wc_status status;
		uint16_t hdr_sz, mss;
		unsigned int flags;
		uint32_t length;
		int at;				/* byte of the headers that is another, */
		uint8_t byte;			/* and what it is; at 0: none */
	} rows[] = {
		{ "no headers", EINVAL, 0, 0, TSO_MSS, 0, 5000, 0, 0 },
		{ "headers longer than asked for", EINVAL, 0, TSO_HEADERS + 1, TSO_MSS, 0, 5000, 0, 0 },
		{ "no segment size", EINVAL, 0, TSO_HEADERS, 0, 0, 5000, 0, 0 },
		{ "inline", EINVAL, 0, TSO_HEADERS, TSO_MSS, IBV_SEND_INLINE, 50, 0, 0 },
		{ "headers cut short", 0, IBV_WC_LOC_QP_OP_ERR, TSO_HEADERS - 1, TSO_MSS, 0, 5000, 0, 0 },
		{ "UDP", 0, IBV_WC_LOC_QP_OP_ERR, TSO_HEADERS, TSO_MSS, 0, 5000, 23, 17 },
		{ "no IP", 0, IBV_WC_LOC_QP_OP_ERR, TSO_HEADERS, TSO_MSS, 0, 5000, 13, 6 },
		{ "a frame longer than the MTU", 0, IBV_WC_LOC_LEN_ERR, TSO_HEADERS, 9001, 0, 10000, 0, 0 },
		{ "no memory", 0, IBV_WC_LOC_PROT_ERR, TSO_HEADERS, TSO_MSS, 0, 150000, 0, 0 },
		{ "one byte", 0, IBV_WC_SUCCESS, TSO_HEADERS, TSO_MSS, 0, 1, 0, 0 },
	};
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_UD, .pd = self->a.side->pd, .send_cq = self->a.cq, .recv_cq = self->a.cq,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_MAX_TSO_HEADER, .max_tso_header = 54,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	for EACH(row, rows) {
		struct ibv_qp *qp = open_tso_qp(&self->a, TSO_HEADERS);
		struct ibv_sge sge = { (uintptr_t)self->a.mem, row->length, self->a.mr->lkey };
		uint8_t headers[TSO_HEADERS + 1] = {};
		struct ibv_send_wr *bad, wr = {
			.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_TSO,
			.send_flags = IBV_SEND_SIGNALED | row->flags, .tso = { headers, row->hdr_sz, row->mss },
		};
		struct ibv_wc wc;

		ASSERT_NE(NULL, qp);
		make_tcp(headers, self->mac[1], self->mac[0]);
		if (row->at)
			headers[row->at] = row->byte;
		GAVE(row->gives, ibv_post_send(qp, &wr, &bad), row);
		if (!row->gives) {
			ASSERT_TRUE(wait_wc(&self->a, &wc));
			GAVE((int)row->status, (int)wc.status, row);
		}
		ASSERT_EQ(0, ibv_destroy_qp(qp));
	}
	EXPECT_EQ(NULL, ibv_create_qp_ex(self->a.side->context, &init));
	EXPECT_EQ(EOPNOTSUPP, errno);
}

TEST_HARNESS_MAIN
