// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * VLAN tags that raw packet QPs and WQs strip from what they receive.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "packet_fixture.h"
#include "rows.h"

#define TAG_AT	12u
#define TAG	4u		/* bytes, with the type */
#define STRIP	IBV_WQ_FLAGS_CVLAN_STRIPPING

static struct ibv_cq_ex *make_cq(struct side *s)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 16, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_CVLAN };

	return ibv_create_cq_ex(s->context, &attr);
}

static struct ibv_qp *make_qp(struct side *s, struct ibv_cq_ex *cq, uint32_t flags)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RAW_PACKET, .pd = s->pd, .create_flags = flags,
		.send_cq = ibv_cq_ex_to_cq(cq), .recv_cq = ibv_cq_ex_to_cq(cq),
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.cap = { .max_recv_wr = 4, .max_recv_sge = 1 },
	};

	return ibv_create_qp_ex(s->context, &attr);
}

static int set_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state, .port_num = 1 };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | (state == IBV_QPS_INIT ? IBV_QP_PORT : 0));
}

static struct ibv_wq *make_wq(struct side *s, struct ibv_cq_ex *cq, uint32_t flags)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 1, .pd = s->pd, .cq = ibv_cq_ex_to_cq(cq),
		.comp_mask = IBV_WQ_INIT_ATTR_FLAGS, .create_flags = flags,
	};

	return ibv_create_wq(s->context, &attr);
}

/* A QP that gives all frames to one WQ. */
static struct ibv_qp *make_spreading_qp(struct side *s, struct ibv_rwq_ind_table *table, uint32_t flags)
{
	uint8_t key[40] = { 1 };
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RAW_PACKET, .pd = s->pd, .rwq_ind_tbl = table, .create_flags = flags,
		.rx_hash_conf = { IBV_RX_HASH_FUNC_TOEPLITZ, sizeof(key), key, IBV_RX_HASH_DST_PORT_UDP },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH |
			     IBV_QP_INIT_ATTR_CREATE_FLAGS,
	};

	return ibv_create_qp_ex(s->context, &attr);
}

/* The next completion of @cq is the frame that @from sent: without its tag, which is @tag; or whole, if @tag is 0. */
static bool came(struct ibv_cq_ex *cq, const struct packet_qp *to, const struct packet_qp *from, uint16_t tag)
{
	const uint32_t cut = tag ? TAG : 0;
	struct ibv_poll_cq_attr attr = {};
	const uint8_t *got;
	int err = ENOENT;
	bool right;

	for (int i = 0; i < 20000 && err == ENOENT; i++) {
		err = ibv_start_poll(cq, &attr);
		if (err == ENOENT)
			usleep(1000);
	}
	if (err)
		return false;
	got = to->mem + cq->wr_id * SLOT;
	right = cq->status == IBV_WC_SUCCESS && ibv_wc_read_opcode(cq) == IBV_WC_RECV &&
		ibv_wc_read_byte_len(cq) == FRAME - cut && ibv_wc_read_cvlan(cq) == tag &&
		!memcmp(got, from->mem, TAG_AT) &&
		!memcmp(got + TAG_AT, from->mem + TAG_AT + cut, FRAME - TAG_AT - cut);
	ibv_end_poll(cq);
	return right;
}

/* ETH-18 ETH-19: any frame; also when the QP was in RESET. */
TEST_F(raw, a_qp_strips_tags)
{
	struct ibv_cq_ex *cq = make_cq(&self->s[1]);
	struct packet_qp to = self->b;
	struct ibv_flow *f;

	ASSERT_NE(NULL, cq);
	to.qp = make_qp(&self->s[1], cq, IBV_QP_CREATE_CVLAN_STRIPPING);
	ASSERT_NE(NULL, to.qp);
	f = flow(&to, to_mac(self->mac[1]));
	ASSERT_NE(NULL, f);
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, set_state(to.qp, IBV_QPS_INIT));
		ASSERT_EQ(0, set_state(to.qp, IBV_QPS_RTR));
		if (i)
			ASSERT_EQ(0, set_state(to.qp, IBV_QPS_RTS));
		ASSERT_EQ(0, post_recvs(&to, 3));
		make_udp(&self->a, self->mac[1], self->mac[0], 7000, 0xa007);
		ASSERT_TRUE(send_frame(&self->a, 0));
		ASSERT_TRUE(came(cq, &to, &self->a, 0xa007));
		make_udp(&self->a, self->mac[1], self->mac[0], 7000, 0);
		ASSERT_TRUE(send_frame(&self->a, 0));
		ASSERT_TRUE(came(cq, &to, &self->a, 0));
		/* A tag of 802.1ad stays. */
		memcpy(self->a.mem + TAG_AT, (uint8_t[TAG]){ 0x88, 0xa8, 0, 7 }, TAG);
		ASSERT_TRUE(send_frame(&self->a, 0));
		ASSERT_TRUE(came(cq, &to, &self->a, 0));
		ASSERT_EQ(0, set_state(to.qp, IBV_QPS_RESET));
	}
	EXPECT_EQ(0, ibv_destroy_flow(f));
	EXPECT_EQ(0, ibv_destroy_qp(to.qp));
	EXPECT_EQ(0, ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
}

/* What is said of the tags of a WQ, and whether it strips them then. */
static const struct wq_step {
	const char *name;
	struct ibv_wq_attr attr;
	int gives;
	bool strips;
} wq_steps[] = {
#define TO(state_, ...)	.attr_mask = IBV_WQ_ATTR_STATE __VA_ARGS__, .wq_state = IBV_WQS_##state_
#define AND_FLAGS	| IBV_WQ_ATTR_FLAGS
#define FLAGS		.attr_mask = IBV_WQ_ATTR_FLAGS
#define ON		.flags = STRIP, .flags_mask = STRIP
#define OFF		.flags_mask = STRIP
	{ "no flags", { TO(RDY) }, 0, false },
	{ "while it receives", { FLAGS, ON }, 0, true },
	{ "not in the mask", { FLAGS }, 0, true },
	{ "others than in the mask", { FLAGS, .flags = IBV_WQ_FLAGS_SCATTER_FCS }, 0, true },
	{ "no attribute", { .attr_mask = IBV_WQ_ATTR_CURR_STATE, .curr_wq_state = IBV_WQS_RDY, OFF }, 0, true },
	{ "other flags", { FLAGS, .flags_mask = IBV_WQ_FLAGS_SCATTER_FCS }, EOPNOTSUPP, true },
	{ "other flags, too", { FLAGS, .flags_mask = STRIP | IBV_WQ_FLAGS_PCI_WRITE_END_PADDING }, EOPNOTSUPP, true },
	{ "flags of no name", { FLAGS, .flags_mask = 1u << 20 }, EOPNOTSUPP, true },
	{ "in another state", { .attr_mask = IBV_WQ_ATTR_CURR_STATE AND_FLAGS, .curr_wq_state = IBV_WQS_ERR, OFF },
	  EINVAL, true },
	{ "off", { FLAGS, OFF }, 0, false },
	{ "off again", { FLAGS, OFF }, 0, false },
	{ "with the state that it has", { TO(RDY, AND_FLAGS), ON }, 0, true },
	{ "RESET keeps it", { TO(RESET) }, 0, true },
	{ "back from RESET", { TO(RDY) }, 0, true },
	{ "with RESET", { TO(RESET, AND_FLAGS), OFF }, 0, false },
	{ "in RESET", { FLAGS, ON }, 0, true },
	{ "back with another flag", { TO(RDY, AND_FLAGS), OFF }, 0, false },
	{ "with ERR", { TO(ERR, AND_FLAGS), ON }, 0, true },
	{ "in ERR", { FLAGS, OFF }, 0, false },
	{ "in ERR, on", { FLAGS, ON }, 0, true },
	{ "a state that cannot be", { TO(RDY, AND_FLAGS), OFF }, EINVAL, true },
	{ "from ERR to RESET", { TO(RESET) }, 0, true },
	{ "and to work again", { TO(RDY) }, 0, true },
};

/* ETH-18: a WQ strips tags as its flags say, whenever they are changed. */
TEST_F(raw, flags_of_a_wq)
{
	struct side *s = &self->s[1];
	struct ibv_cq_ex *cq = make_cq(s);
	struct ibv_wq *wq = make_wq(s, cq, 0);
	struct ibv_rwq_ind_table_init_attr table_attr = { .ind_tbl = &wq };
	struct ibv_rwq_ind_table *table = ibv_create_rwq_ind_table(s->context, &table_attr);
	struct packet_qp to = self->b;
	struct ibv_flow *f;

	ASSERT_TRUE(wq && table);
	to.qp = make_spreading_qp(s, table, 0);
	ASSERT_NE(NULL, to.qp);
	f = flow(&to, to_mac(self->mac[1]));
	ASSERT_NE(NULL, f);
	make_udp(&self->a, self->mac[1], self->mac[0], 7000, 0xa007);
	for EACH(step, wq_steps) {
		struct ibv_sge sge = { (uintptr_t)to.mem + SLOT, SLOT, to.mr->lkey };
		struct ibv_recv_wr *bad, wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 };
		struct ibv_wq_attr attr = step->attr;

		ASSERT_EQ(step->gives, ibv_modify_wq(wq, &attr)) {
			TH_LOG("%s", step->name);
		}
		if (wq->state != IBV_WQS_RDY)
			continue;
		ASSERT_EQ(0, ibv_post_wq_recv(wq, &wr, &bad));
		ASSERT_TRUE(send_frame(&self->a, 0));
		ASSERT_TRUE(came(cq, &to, &self->a, step->strips ? 0xa007 : 0)) {
			TH_LOG("%s", step->name);
		}
	}
	EXPECT_EQ(0, ibv_destroy_flow(f));
	EXPECT_EQ(0, ibv_destroy_qp(to.qp));
	EXPECT_EQ(0, ibv_destroy_rwq_ind_table(table));
	EXPECT_EQ(0, ibv_destroy_wq(wq));
	EXPECT_EQ(0, ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
}

/* ETH-18: a WQ may strip tags from the first frame on; the QP that spreads over it has no say. */
TEST_F(raw, a_wq_is_created_with_flags)
{
	const struct {
		const char *name;
		uint32_t flags;
		int gives;
	} rows[] = {
		{ "none", 0, 0 }, { "C-tags", STRIP, 0 }, { "FCS", IBV_WQ_FLAGS_SCATTER_FCS, EOPNOTSUPP },
		{ "delayed drops", IBV_WQ_FLAGS_DELAY_DROP, EOPNOTSUPP },
		{ "padding", IBV_WQ_FLAGS_PCI_WRITE_END_PADDING, EOPNOTSUPP },
		{ "C-tags and FCS", STRIP | IBV_WQ_FLAGS_SCATTER_FCS, EOPNOTSUPP },
		{ "no name", 1u << 20, EOPNOTSUPP },
	};
	struct side *s = &self->s[1];
	struct ibv_cq_ex *cq = make_cq(s);
	struct packet_qp to = self->b;

	ASSERT_NE(NULL, cq);
	for EACH(row, rows) {
		struct ibv_wq_attr ready = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY };
		struct ibv_sge sge = { (uintptr_t)to.mem + SLOT, SLOT, to.mr->lkey };
		struct ibv_recv_wr *bad, wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 };
		struct ibv_wq *wq = make_wq(s, cq, row->flags);
		struct ibv_rwq_ind_table_init_attr table_attr = { .ind_tbl = &wq };
		struct ibv_rwq_ind_table *table;
		struct ibv_flow *f;

		GAVE(row->gives, wq ? 0 : errno, row);
		if (!wq)
			continue;
		ASSERT_EQ(0, ibv_modify_wq(wq, &ready));
		ASSERT_EQ(0, ibv_post_wq_recv(wq, &wr, &bad));
		table = ibv_create_rwq_ind_table(s->context, &table_attr);
		ASSERT_NE(NULL, table);
		EXPECT_EQ(NULL, make_spreading_qp(s, table, IBV_QP_CREATE_CVLAN_STRIPPING));
		EXPECT_EQ(EOPNOTSUPP, errno);
		to.qp = make_spreading_qp(s, table, 0);
		ASSERT_NE(NULL, to.qp);
		f = flow(&to, to_mac(self->mac[1]));
		ASSERT_NE(NULL, f);
		make_udp(&self->a, self->mac[1], self->mac[0], 7000, 0xa007);
		ASSERT_TRUE(send_frame(&self->a, 0));
		EXPECT_TRUE(came(cq, &to, &self->a, row->flags ? 0xa007 : 0));
		EXPECT_EQ(0, ibv_destroy_flow(f));
		EXPECT_EQ(0, ibv_destroy_qp(to.qp));
		EXPECT_EQ(0, ibv_destroy_rwq_ind_table(table));
		EXPECT_EQ(0, ibv_destroy_wq(wq));
	}
	EXPECT_EQ(0, ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
}

TEST_HARNESS_MAIN
