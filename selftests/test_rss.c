// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Receive side scaling: WQs, tables of them, and QPs that spread frames over them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kselftest_harness.h"
#include "packet_fixture.h"
#include "rows.h"

static uint8_t hash_key[40] = { 0x2c, 0xc6, 0x81, 0xd1, 0x5b, 0xdb, 0xf4, 0xf7, [39] = 0x2a };

/* Four WQs, each with receives, a table of them, and a QP that spreads frames over them. */
struct spread {
	struct ibv_cq *cq;
	struct ibv_wq *wq[4];
	struct ibv_rwq_ind_table *table;
	struct ibv_qp *qp;
};

static struct ibv_wq *make_wq(struct side *s, struct ibv_cq *cq)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = 8, .max_sge = 1, .pd = s->pd, .cq = cq,
	};

	return ibv_create_wq(s->context, &attr);
}

static int set_wq_state(struct ibv_wq *wq, enum ibv_wq_state state)
{
	struct ibv_wq_attr attr = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = state };

	return ibv_modify_wq(wq, &attr);
}

static struct ibv_qp *make_spreading_qp(struct side *s, struct ibv_rwq_ind_table *table, struct ibv_rx_hash_conf conf)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RAW_PACKET, .pd = s->pd, .rwq_ind_tbl = table, .rx_hash_conf = conf,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH,
	};

	return ibv_create_qp_ex(s->context, &attr);
}

static int spread_open(struct spread *spread, struct packet_qp *raw)
{
	struct ibv_rwq_ind_table_init_attr table_attr = { .log_ind_tbl_size = 2, .ind_tbl = spread->wq };
	struct side *s = raw->side;

	spread->cq = ibv_create_cq(s->context, 64, NULL, NULL, 0);
	for (int i = 0; i < 4; i++) {
		spread->wq[i] = make_wq(s, spread->cq);
		if (!spread->wq[i] || set_wq_state(spread->wq[i], IBV_WQS_RDY))
			return errno;
		for (int j = 0; j < 8; j++) {
			struct ibv_sge sge = { (uintptr_t)raw->mem + (1 + 8 * i + j) * SLOT, SLOT, raw->mr->lkey };
			struct ibv_recv_wr *bad, wr = { .wr_id = 1 + 8 * i + j, .sg_list = &sge, .num_sge = 1 };

			if (ibv_post_wq_recv(spread->wq[i], &wr, &bad))
				return errno;
		}
	}
	spread->table = ibv_create_rwq_ind_table(s->context, &table_attr);
	if (!spread->table)
		return errno;
	spread->qp = make_spreading_qp(s, spread->table, (struct ibv_rx_hash_conf){
		IBV_RX_HASH_FUNC_TOEPLITZ, 40, hash_key, IBV_RX_HASH_DST_PORT_UDP });
	return spread->qp ? 0 : errno;
}

static int spread_close(struct spread *spread)
{
	int err = ibv_destroy_qp(spread->qp) ?: ibv_destroy_rwq_ind_table(spread->table);

	for (int i = 0; i < 4 && !err; i++)
		err = ibv_destroy_wq(spread->wq[i]);
	return err ?: ibv_destroy_cq(spread->cq);
}

/* RAW-13 RAW-14: all frames of a port go to one WQ, and ports differ. Objects in use stay. */
TEST_F(raw, frames_are_spread)
{
	struct spread spread;
	struct ibv_flow *f;
	unsigned int got_some = 0;
	struct ibv_wc wc;

	ASSERT_EQ(0, spread_open(&spread, &self->b));
	{
		struct rule rule = to_mac(self->mac[1]);

		f = ibv_create_flow(spread.qp, &rule.attr);
	}
	ASSERT_NE(NULL, f);
	/* QPs are listed meanwhile, though this one has no number as they have. */
	ASSERT_EQ(0, system("rdma -d resource show qp >/dev/null"));
	for (uint16_t port = 7000; port < 7016; port++) {
		uint32_t wqn[2];

		make_udp(&self->a, self->mac[1], self->mac[0], port, 0);
		for (int i = 0; i < 2; i++) {
			struct packet_qp any = { .cq = spread.cq };

			ASSERT_TRUE(send_frame(&self->a, 0));
			ASSERT_TRUE(wait_wc(&any, &wc));
			ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
			ASSERT_EQ(FRAME, wc.byte_len);
			ASSERT_EQ(0, memcmp(self->b.mem + wc.wr_id * SLOT, self->a.mem, FRAME));
			wqn[i] = wc.qp_num;
			ASSERT_EQ(spread.wq[(wc.wr_id - 1) / 8]->wq_num, wc.qp_num);
			got_some |= 1u << (wc.wr_id - 1) / 8;
			if ((wc.wr_id & 7) == 0)
				break;		/* the last receive of this WQ */
			wqn[1] = wqn[i];
		}
		ASSERT_EQ(wqn[0], wqn[1]);
		if ((wc.wr_id & 7) == 0)
			break;
	}
	EXPECT_LT(1, __builtin_popcount(got_some));
	EXPECT_EQ(EBUSY, ibv_destroy_wq(spread.wq[0]));
	EXPECT_EQ(EBUSY, ibv_destroy_rwq_ind_table(spread.table));
	EXPECT_EQ(EBUSY, ibv_destroy_qp(spread.qp));
	EXPECT_EQ(0, ibv_destroy_flow(f));
	EXPECT_EQ(0, spread_close(&spread));
}

/* What verbs say of the states of a WQ. */
TEST_F(raw, states_of_a_wq)
{
	struct ibv_wq *wq = make_wq(&self->s[1], self->b.cq);
	struct ibv_wq_attr wrong = {
		.attr_mask = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE, .wq_state = IBV_WQS_ERR,
		.curr_wq_state = IBV_WQS_RESET,
	};
	struct ibv_recv_wr *bad, wr = { .wr_id = 3 };
	struct ibv_wc wc;

	ASSERT_NE(NULL, wq);
	EXPECT_EQ(EINVAL, ibv_post_wq_recv(wq, &wr, &bad));
	EXPECT_EQ(EINVAL, set_wq_state(wq, IBV_WQS_ERR));
	ASSERT_EQ(0, set_wq_state(wq, IBV_WQS_RDY));
	EXPECT_EQ(0, set_wq_state(wq, IBV_WQS_RDY));
	EXPECT_EQ(EINVAL, ibv_modify_wq(wq, &wrong));
	ASSERT_EQ(0, ibv_post_wq_recv(wq, &wr, &bad));
	ASSERT_EQ(0, set_wq_state(wq, IBV_WQS_ERR));
	ASSERT_TRUE(wait_wc(&self->b, &wc));
	EXPECT_EQ(IBV_WC_WR_FLUSH_ERR, wc.status);
	EXPECT_EQ(3, wc.wr_id);
	EXPECT_EQ(EINVAL, set_wq_state(wq, IBV_WQS_RDY));
	ASSERT_EQ(0, set_wq_state(wq, IBV_WQS_RESET));
	ASSERT_EQ(0, set_wq_state(wq, IBV_WQS_RDY));
	ASSERT_EQ(0, ibv_post_wq_recv(wq, &wr, &bad));
	EXPECT_EQ(0, ibv_destroy_wq(wq));
}

/* RAW-13: by the driver and the provider. */
TEST_F(raw, wrong_spreading)
{
	struct side *s = &self->s[1];
	struct ibv_wq_init_attr wq_attr = { .wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = s->pd, .cq = self->b.cq };
	struct ibv_wq *many[64];
	struct ibv_rwq_ind_table_init_attr table_attr = { .log_ind_tbl_size = 6, .ind_tbl = many };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_init_attr init;
	struct ibv_device_attr_ex caps;
	struct spread spread;
	const struct {
		const char *name;
		int gives;
		struct ibv_rx_hash_conf conf;
	} rows[] = {
		{ "a function that is not there", EOPNOTSUPP, { 2, 40, hash_key, 1 } },
		{ "no function", EOPNOTSUPP, { 0, 40, hash_key, 1 } },
		{ "a short key", EINVAL, { 1, 39, hash_key, 1 } },
		{ "no key", EINVAL, { 1, 0, NULL, 1 } },
		{ "inner headers", EOPNOTSUPP, { 1, 40, hash_key, 1 | IBV_RX_HASH_INNER } },
		{ "fields that do not exist", EOPNOTSUPP, { 1, 40, hash_key, 1ull << 40 } },
		{ "no fields", 0, { 1, 40, hash_key, 0 } },
	};

	ASSERT_EQ(0, ibv_query_device_ex(s->context, NULL, &caps));
	EXPECT_EQ(1u << IBV_QPT_RAW_PACKET, caps.rss_caps.supported_qpts);
	EXPECT_EQ(32, caps.rss_caps.max_rwq_indirection_table_size);
	EXPECT_EQ(IBV_RX_HASH_FUNC_TOEPLITZ, caps.rss_caps.rx_hash_function);
	EXPECT_EQ(0xff, caps.rss_caps.rx_hash_fields_mask);
	EXPECT_LT(0, caps.rss_caps.max_rwq_indirection_tables);
	EXPECT_LT(0, caps.max_wq_type_rq);
	ASSERT_EQ(0, spread_open(&spread, &self->b));
	for EACH(row, rows) {
		struct ibv_qp *qp;
		int seen;

		errno = 0;
		qp = make_spreading_qp(s, spread.table, row->conf);
		seen = qp ? ibv_destroy_qp(qp) : errno;
		GAVE(row->gives, seen, row);
	}
	for (int i = 0; i < 64; i++)
		many[i] = spread.wq[i % 4];
	EXPECT_EQ(NULL, ibv_create_rwq_ind_table(s->context, &table_attr));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(EOPNOTSUPP, ibv_modify_qp(spread.qp, &attr, IBV_QP_STATE | IBV_QP_PORT));
	EXPECT_EQ(EOPNOTSUPP, ibv_query_qp(spread.qp, &attr, IBV_QP_STATE, &init));
	wq_attr.max_wr = UINT32_MAX;
	EXPECT_EQ(NULL, ibv_create_wq(s->context, &wq_attr));
	EXPECT_EQ(EINVAL, errno);
	wq_attr.max_wr = 1;
	wq_attr.wq_type = 7;
	EXPECT_EQ(NULL, ibv_create_wq(s->context, &wq_attr));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(0, spread_close(&spread));
}

TEST_HARNESS_MAIN
