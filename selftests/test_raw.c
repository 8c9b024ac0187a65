// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Raw packet QPs and flows of a program, beside an RC connection that has to work on.
 * Rules: Documentation/manual/raw.rst.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pair.h"
#include "rows.h"

#define SLOT	2048u		/* for a received frame; frames to send are in the first one */
#define SLOTS	64u
#define FRAME	100u

/* A raw packet QP with a CQ and memory of its own. */
struct raw {
	struct side *side;
	uint8_t *mem;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	unsigned int posted;
};

FIXTURE(raw) {
	struct side s[2];
	struct raw a, b;	/* of skua_0 and skua_1 */
	uint8_t mac[2][6];
};

static int raw_open_qp(struct raw *raw, struct side *side)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.cap = { .max_send_wr = PAIR_WRS, .max_recv_wr = PAIR_WRS, .max_send_sge = PAIR_SGES,
			 .max_recv_sge = PAIR_SGES, .max_inline_data = FRAME },
	};
	struct ibv_qp_attr attr = { .port_num = 1 };

	*raw = (struct raw){
		.side = side, .mem = calloc(SLOTS + 1, SLOT), .cq = ibv_create_cq(side->context, 64, NULL, NULL, 0),
	};
	raw->mr = ibv_reg_mr(side->pd, raw->mem, (SLOTS + 1) * SLOT, IBV_ACCESS_LOCAL_WRITE);
	if (!raw->cq || !raw->mr)
		return errno;
	init.send_cq = init.recv_cq = raw->cq;
	raw->qp = ibv_create_qp(side->pd, &init);
	if (!raw->qp)
		return errno;
	attr.qp_state = IBV_QPS_INIT;
	if (ibv_modify_qp(raw->qp, &attr, IBV_QP_STATE | IBV_QP_PORT))
		return errno;
	attr.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(raw->qp, &attr, IBV_QP_STATE))
		return errno;
	attr.qp_state = IBV_QPS_RTS;
	return ibv_modify_qp(raw->qp, &attr, IBV_QP_STATE);
}

static void raw_close_qp(struct raw *raw)
{
	if (raw->qp)
		ibv_destroy_qp(raw->qp);
	if (raw->mr)
		ibv_dereg_mr(raw->mr);
	if (raw->cq)
		ibv_destroy_cq(raw->cq);
	free(raw->mem);
}

/* The GUID has the MAC in it. */
static int read_mac(const struct side *side, uint8_t *mac)
{
	struct ibv_device_attr attr;
	uint8_t guid[8];

	if (ibv_query_device(side->context, &attr))
		return -1;
	memcpy(guid, &attr.node_guid, sizeof(guid));
	memcpy(mac, guid, 3);
	memcpy(mac + 3, guid + 5, 3);
	mac[0] ^= 2;
	return 0;
}

FIXTURE_SETUP(raw)
{
	ASSERT_EQ(0, pair_open(self->s));
	for (int i = 0; i < 2; i++)
		ASSERT_EQ(0, read_mac(&self->s[i], self->mac[i]));
	ASSERT_EQ(0, raw_open_qp(&self->a, &self->s[0]));
	ASSERT_EQ(0, raw_open_qp(&self->b, &self->s[1]));
}

FIXTURE_TEARDOWN(raw)
{
	raw_close_qp(&self->a);
	raw_close_qp(&self->b);
	EXPECT_TRUE(pair_transfer(self->s));
	pair_close(self->s);
}

static const struct ibv_flow_eth_filter eth_ones = {
	{ 255, 255, 255, 255, 255, 255 }, { 255, 255, 255, 255, 255, 255 }, 0xffff, 0xffff,
};

/* A flow as a program gives it: the specs stand behind the attributes. */
struct rule {
	struct ibv_flow_attr attr;
	uint8_t specs[256];
	size_t size;
};

static struct rule rule_of(enum ibv_flow_attr_type type, uint16_t priority)
{
	return (struct rule){ .attr = { .type = type, .size = sizeof(struct ibv_flow_attr), .priority = priority,
					.port = 1 } };
}

static void add_spec(struct rule *rule, const void *spec, size_t size)
{
	memcpy(rule->specs + rule->size, spec, size);
	rule->size += size;
	rule->attr.size += size;
	rule->attr.num_of_specs++;
}

static void add_eth(struct rule *rule, struct ibv_flow_eth_filter val, struct ibv_flow_eth_filter mask)
{
	struct ibv_flow_spec_eth spec = { IBV_FLOW_SPEC_ETH, sizeof(spec), val, mask };

	add_spec(rule, &spec, sizeof(spec));
}

static void add_ports(struct rule *rule, enum ibv_flow_spec_type type, uint16_t dst_port)
{
	struct ibv_flow_spec_tcp_udp spec = {
		type, sizeof(spec), { .dst_port = htons(dst_port) }, { .dst_port = dst_port ? 0xffff : 0 } };

	add_spec(rule, &spec, sizeof(spec));
}

static void add_ipv4(struct rule *rule, struct ibv_flow_ipv4_ext_filter val, struct ibv_flow_ipv4_ext_filter mask)
{
	struct ibv_flow_spec_ipv4_ext spec = { IBV_FLOW_SPEC_IPV4_EXT, sizeof(spec), val, mask };

	add_spec(rule, &spec, sizeof(spec));
}

/* All frames to a MAC. */
static struct rule to_mac(const uint8_t *mac)
{
	struct rule rule = rule_of(IBV_FLOW_ATTR_NORMAL, 0);
	struct ibv_flow_eth_filter val = {}, mask = {};

	memcpy(val.dst_mac, mac, 6);
	memset(mask.dst_mac, 0xff, 6);
	add_eth(&rule, val, mask);
	return rule;
}

static struct ibv_flow *flow(struct raw *raw, struct rule rule)
{
	return ibv_create_flow(raw->qp, &rule.attr);
}

static uint8_t *make_frame(struct raw *raw, const uint8_t *dst, const uint8_t *src)
{
	uint8_t *p = raw->mem;

	pair_fill(p, FRAME, 3);
	memcpy(p, dst, 6);
	memcpy(p + 6, src, 6);
	memcpy(p + 12, (uint8_t[2]){ 0x88, 0xb5 }, 2);
	return p;
}

/* UDP over IPv4 to a port, behind a VLAN tag if @tag is not 0; the rest says nothing. */
static void make_udp(struct raw *raw, const uint8_t *dst, const uint8_t *src, uint16_t port, uint16_t tag)
{
	uint8_t ip[28] = { 0x45, 0, 0, 86, 0, 0, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, 1, 198, 51, 100, 2, 0x12, 0x34,
			   port >> 8, port & 0xff, 0, 66 };
	uint8_t *p = make_frame(raw, dst, src) + 12;

	if (tag) {
		memcpy(p, (uint8_t[4]){ 0x81, 0, tag >> 8, tag & 0xff }, 4);
		p += 4;
	}
	memcpy(p, (uint8_t[2]){ 8, 0 }, 2);
	memcpy(p + 2, ip, sizeof(ip));
}

static int post_recvs(struct raw *raw, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		uint64_t slot = 1 + raw->posted++ % SLOTS;
		struct ibv_sge sge = { (uintptr_t)raw->mem + slot * SLOT, SLOT, raw->mr->lkey };
		struct ibv_recv_wr *bad, wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 };

		if (ibv_post_recv(raw->qp, &wr, &bad))
			return errno;
	}
	return 0;
}

static bool wait_wc(struct raw *raw, struct ibv_wc *wc)
{
	for (int i = 0; i < 20000; i++) {
		int n = ibv_poll_cq(raw->cq, 1, wc);

		if (n)
			return n > 0;
		usleep(1000);
	}
	return false;
}

/* The frame in the first slot; false: it could not be sent. */
static bool send_frame(struct raw *raw, unsigned int flags)
{
	struct ibv_sge sge[] = {
		{ (uintptr_t)raw->mem, 13, raw->mr->lkey },
		{ (uintptr_t)raw->mem + 13, FRAME - 13, raw->mr->lkey },
	};
	struct ibv_send_wr *bad, wr = {
		.wr_id = 99, .sg_list = sge, .num_sge = 2, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED | flags,
	};
	struct ibv_wc wc;

	return !ibv_post_send(raw->qp, &wr, &bad) && wait_wc(raw, &wc) && wc.status == IBV_WC_SUCCESS &&
	       wc.wr_id == 99 && wc.opcode == IBV_WC_SEND;
}

/* It received what @from has in its first slot. */
static bool got(struct raw *raw, struct raw *from)
{
	struct ibv_wc wc;

	return wait_wc(raw, &wc) && wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV &&
	       wc.byte_len == FRAME && wc.qp_num == raw->qp->qp_num && !(wc.wc_flags & IBV_WC_GRH) &&
	       !memcmp(raw->mem + wc.wr_id * SLOT, from->mem, FRAME);
}

/* Nothing is there after all that was sent before has come. */
static bool got_nothing(struct raw *raw)
{
	struct ibv_wc wc;

	usleep(20000);
	return !ibv_poll_cq(raw->cq, 1, &wc);
}

/* RAW-1 RAW-5: with SGEs and inline. */
TEST_F(raw, frames_arrive)
{
	struct ibv_flow *f = flow(&self->b, to_mac(self->mac[1]));

	ASSERT_NE(NULL, f);
	ASSERT_EQ(0, post_recvs(&self->b, 3));
	make_frame(&self->a, self->mac[1], self->mac[0]);
	ASSERT_TRUE(send_frame(&self->a, 0));
	ASSERT_TRUE(got(&self->b, &self->a));
	ASSERT_TRUE(send_frame(&self->a, IBV_SEND_INLINE));
	ASSERT_TRUE(got(&self->b, &self->a));
	ASSERT_EQ(0, ibv_destroy_flow(f));
	ASSERT_TRUE(send_frame(&self->a, 0));
	ASSERT_TRUE(got_nothing(&self->b));
}

/* RAW-1: by calls, and with a CQ that is polled by calls. */
TEST_F(raw, frames_by_calls)
{
	struct side *s = &self->s[1];
	struct ibv_cq_init_attr_ex cq_attr = {
		.cqe = 8, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS, .flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN,
		.wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_FLOW_TAG,
	};
	struct ibv_flow_spec_action_tag tag = { IBV_FLOW_SPEC_ACTION_TAG, sizeof(tag), 0xfedcba98 };
	struct rule tagged;
	struct ibv_flow *f_tagged;
	struct ibv_cq_ex *cq = ibv_create_cq_ex(s->context, &cq_attr);
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RAW_PACKET, .pd = s->pd, .send_ops_flags = IBV_QP_EX_WITH_SEND,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.cap = { .max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_poll_cq_attr poll = {};
	struct ibv_sge sge = { (uintptr_t)self->b.mem + SLOT, SLOT, self->b.mr->lkey };
	struct ibv_recv_wr *bad_recv, recv = { .wr_id = 8, .sg_list = &sge, .num_sge = 1 };
	struct ibv_flow *f = flow(&self->a, to_mac(self->mac[0]));
	struct ibv_qp_ex *qpx;
	struct ibv_qp *qp;
	int err = ENOENT;

	ASSERT_TRUE(cq && f);
	init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(cq);
	qp = ibv_create_qp_ex(s->context, &init);
	ASSERT_NE(NULL, qp);
	ASSERT_EQ(0, ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT));
	for (attr.qp_state = IBV_QPS_RTR; attr.qp_state <= IBV_QPS_RTS; attr.qp_state++)
		ASSERT_EQ(0, ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	ASSERT_EQ(0, post_recvs(&self->a, 1));
	make_frame(&self->b, self->mac[0], self->mac[1]);
	qpx = ibv_qp_to_qp_ex(qp);
	ibv_wr_start(qpx);
	qpx->wr_id = 7;
	qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(qpx);
	ibv_wr_set_sge(qpx, self->b.mr->lkey, (uintptr_t)self->b.mem, FRAME);
	ASSERT_EQ(0, ibv_wr_complete(qpx));
	ASSERT_TRUE(got(&self->a, &self->b));
	for (int i = 0; i < 20000 && err == ENOENT; i++) {
		err = ibv_start_poll(cq, &poll);
		usleep(1000);
	}
	ASSERT_EQ(0, err);
	EXPECT_EQ(IBV_WC_SUCCESS, cq->status);
	EXPECT_EQ(7, cq->wr_id);
	EXPECT_EQ(IBV_WC_SEND, ibv_wc_read_opcode(cq));
	EXPECT_EQ(0, ibv_wc_read_wc_flags(cq));
	ibv_end_poll(cq);
	/* RAW-16: and what is received tells the tag of its flow. */
	tagged = to_mac(self->mac[1]);
	add_spec(&tagged, &tag, sizeof(tag));
	f_tagged = ibv_create_flow(qp, &tagged.attr);
	ASSERT_NE(NULL, f_tagged) {
		TH_LOG("%s", strerror(errno));
	}
	ASSERT_EQ(0, ibv_post_recv(qp, &recv, &bad_recv));
	make_frame(&self->a, self->mac[1], self->mac[0]);
	ASSERT_TRUE(send_frame(&self->a, 0));
	err = ENOENT;
	for (int i = 0; i < 20000 && err == ENOENT; i++) {
		err = ibv_start_poll(cq, &poll);
		usleep(1000);
	}
	ASSERT_EQ(0, err);
	EXPECT_EQ(IBV_WC_SUCCESS, cq->status);
	EXPECT_EQ(IBV_WC_RECV, ibv_wc_read_opcode(cq));
	EXPECT_EQ(0xfedcba98, ibv_wc_read_flow_tag(cq));
	ibv_end_poll(cq);
	EXPECT_EQ(0, ibv_destroy_flow(f_tagged));
	EXPECT_EQ(0, ibv_destroy_flow(f));
	EXPECT_EQ(0, ibv_destroy_qp(qp));
	EXPECT_EQ(0, ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
}

/* What a QP tells of itself. */
TEST_F(raw, capabilities)
{
	struct ibv_device_attr_ex attr;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr qp;

	ASSERT_EQ(0, ibv_query_device_ex(self->s[0].context, NULL, &attr));
	EXPECT_NE(0, attr.orig_attr.device_cap_flags & IBV_DEVICE_MANAGED_FLOW_STEERING);
	EXPECT_LT(0, attr.orig_attr.max_raw_ethy_qp);
	EXPECT_NE(0, attr.orig_attr.device_cap_flags & IBV_DEVICE_RAW_IP_CSUM);
	EXPECT_EQ(0, attr.orig_attr.device_cap_flags & IBV_DEVICE_UD_IP_CSUM);
	EXPECT_EQ(IBV_RAW_PACKET_CAP_IP_CSUM, attr.raw_packet_caps);
	EXPECT_LE(65536, attr.tso_caps.max_tso);
	EXPECT_EQ(1u << IBV_QPT_RAW_PACKET, attr.tso_caps.supported_qpts);
	ASSERT_EQ(0, ibv_query_qp(self->a.qp, &qp, IBV_QP_STATE, &init));
	EXPECT_EQ(IBV_QPS_RTS, qp.qp_state);
	EXPECT_EQ(IBV_QPT_RAW_PACKET, init.qp_type);
}

static uint32_t sum16(const uint8_t *p, size_t len)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < len; i++)
		sum += (uint32_t)p[i] << (i & 1 ? 0 : 8);
	return sum;
}

/* The sum of an IPv4 header, or of TCP or UDP behind it with the pseudo header: 0xffff if it is right. */
static uint32_t ip_sum(const uint8_t *ip, bool l4)
{
	uint32_t len = (ip[2] << 8 | ip[3]) - 20, sum;

	sum = l4 ? sum16(ip + 12, 8) + ip[9] + len + sum16(ip + 20, len) : sum16(ip, 20);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* ETH-12 ETH-17: checksums are filled in where that is asked for, and the receiver is told if they are right. */
TEST_F(raw, checksums)
{
	struct ibv_flow *f = flow(&self->b, to_mac(self->mac[1]));
	struct ibv_wc wc;

	ASSERT_NE(NULL, f);
	ASSERT_EQ(0, post_recvs(&self->b, 8));
	make_udp(&self->a, self->mac[1], self->mac[0], 7000, 0);
	for (int i = 0; i < 4; i++) {
		const uint8_t *p;

		ASSERT_TRUE(send_frame(&self->a, (i & 1 ? IBV_SEND_IP_CSUM : 0) | (i & 2 ? IBV_SEND_INLINE : 0)));
		ASSERT_TRUE(wait_wc(&self->b, &wc));
		ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
		ASSERT_EQ(FRAME, wc.byte_len);
		EXPECT_EQ(i & 1 ? IBV_WC_IP_CSUM_OK : 0, wc.wc_flags);
		p = self->b.mem + wc.wr_id * SLOT;
		if (i & 1) {
			EXPECT_EQ(0xffff, ip_sum(p + 14, false));
			EXPECT_EQ(0xffff, ip_sum(p + 14, true));
			EXPECT_EQ(0, memcmp(p + 42, self->a.mem + 42, FRAME - 42));
		} else {
			EXPECT_EQ(0, memcmp(p, self->a.mem, FRAME));
		}
	}
	EXPECT_EQ(0, ibv_destroy_flow(f));
}

#define TSO_HEADERS	66u
#define TSO_MSS		1000u
#define TSO_FULL	12u		/* frames with as much */
#define TSO_PAYLOAD	(TSO_FULL * TSO_MSS + 1)

/* A raw packet QP whose WRs may be cut, in RTS; it completes to the CQ of @raw. */
static struct ibv_qp *open_tso_qp(struct raw *raw, uint16_t headers)
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

/* RAW-3 RAW-4: a frame of each kind finds the QP whose specs it has. */
TEST_F(raw, specs)
{
	struct rule rules[4];
	struct raw other;
	struct ibv_flow *f, *rest;

	ASSERT_EQ(0, raw_open_qp(&other, &self->s[1]));
	for (int i = 0; i < 4; i++)
		rules[i] = rule_of(IBV_FLOW_ATTR_NORMAL, 0);
	add_eth(&rules[0], (struct ibv_flow_eth_filter){ .vlan_tag = htons(0xac0c), .ether_type = htons(0x800) },
		(struct ibv_flow_eth_filter){ .vlan_tag = 0xffff, .ether_type = 0xffff });
	add_ipv4(&rules[1], (struct ibv_flow_ipv4_ext_filter){ .dst_ip = inet_addr("198.51.100.2"), .proto = 17,
							       .ttl = 64, .flags = 2 },
		 (struct ibv_flow_ipv4_ext_filter){ .dst_ip = 0xffffffff, .proto = 0xff, .ttl = 0xff, .flags = 2 });
	add_ports(&rules[2], IBV_FLOW_SPEC_UDP, 7000);
	/* Bits that are not compared may have any value. */
	add_eth(&rules[3], eth_ones, (struct ibv_flow_eth_filter){ .ether_type = htons(0x800) });
	add_ipv4(&rules[3], (struct ibv_flow_ipv4_ext_filter){ .src_ip = inet_addr("192.0.2.77") },
		 (struct ibv_flow_ipv4_ext_filter){ .src_ip = inet_addr("255.255.255.0") });
	add_ports(&rules[3], IBV_FLOW_SPEC_UDP, 0);
	rest = flow(&other, rule_of(IBV_FLOW_ATTR_ALL_DEFAULT, 0));
	ASSERT_NE(NULL, rest);
	for (int i = 0; i < 4; i++) {
		f = flow(&self->b, rules[i]);
		ASSERT_NE(NULL, f) {
			TH_LOG("rule %d: %s", i, strerror(errno));
		}
		ASSERT_EQ(0, post_recvs(&self->b, 1));
		ASSERT_EQ(0, post_recvs(&other, 2));
		make_udp(&self->a, self->mac[1], self->mac[0], 7000, i ? 0 : 0xac0c);
		ASSERT_TRUE(send_frame(&self->a, 0));
		ASSERT_TRUE(got(&self->b, &self->a)) {
			TH_LOG("rule %d", i);
		}
		/* One bit is another. */
		if (!i)
			self->a.mem[15] ^= 1;
		else
			self->a.mem[i == 1 ? 33 : i == 2 ? 37 : 28] ^= 1;
		ASSERT_TRUE(send_frame(&self->a, 0));
		ASSERT_TRUE(got(&other, &self->a)) {
			TH_LOG("rule %d, another bit", i);
		}
		ASSERT_EQ(0, ibv_destroy_flow(f));
	}
	EXPECT_EQ(0, ibv_destroy_flow(rest));
	raw_close_qp(&other);
}

/* RAW-3: IPv6 and TCP. */
TEST_F(raw, specs_of_ipv6)
{
	static const uint8_t headers[62] = { 0x86, 0xdd, 0x6e, 0xb1, 0x23, 0x45, 0, 46, 6, 62, [10] = 0x20, [11] = 1,
					     [26] = 0x20, [27] = 2, [43] = 9, [44] = 0x1b, [45] = 0x58 };
	struct ibv_flow_spec_ipv6 spec = {
		IBV_FLOW_SPEC_IPV6, sizeof(spec),
		{ { 0x20, 1 }, { 0x20, 2 }, htonl(0x12345), 6, 0xeb, 62 },
		{ { 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255 },
		  { 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255 },
		  htonl(0xfffff), 0xff, 0xff, 0xff },
	};
	struct rule rule = rule_of(IBV_FLOW_ATTR_NORMAL, 0);
	struct ibv_flow *f;

	add_spec(&rule, &spec, sizeof(spec));
	add_ports(&rule, IBV_FLOW_SPEC_TCP, 7000);
	f = flow(&self->b, rule);
	ASSERT_NE(NULL, f) {
		TH_LOG("%s", strerror(errno));
	}
	ASSERT_EQ(0, post_recvs(&self->b, 4));
	memcpy(make_frame(&self->a, self->mac[1], self->mac[0]) + 12, headers, sizeof(headers));
	ASSERT_TRUE(send_frame(&self->a, 0));
	ASSERT_TRUE(got(&self->b, &self->a));
	for (int i = 0; i < 3; i++) {
		static const unsigned int at[] = { 17, 21, 57 };

		self->a.mem[at[i]] ^= 1;
		ASSERT_TRUE(send_frame(&self->a, 0));
		ASSERT_TRUE(got_nothing(&self->b)) {
			TH_LOG("byte %u", at[i]);
		}
		self->a.mem[at[i]] ^= 1;
	}
	EXPECT_EQ(0, ibv_destroy_flow(f));
}

/* RAW-7: priorities; and multicast by default. */
TEST_F(raw, order)
{
	static const uint8_t group[6] = { 1, 0x50, 0x56, 0x19, 0x20, 0xa7 };
	struct rule late = to_mac(self->mac[1]);
	struct ibv_flow *first, *last, *mc;
	struct raw other;

	ASSERT_EQ(0, raw_open_qp(&other, &self->s[1]));
	late.attr.priority = 1;
	last = flow(&other, late);
	first = flow(&self->b, to_mac(self->mac[1]));
	mc = flow(&other, rule_of(IBV_FLOW_ATTR_MC_DEFAULT, 0));
	ASSERT_TRUE(first && last && mc);
	ASSERT_EQ(0, post_recvs(&self->b, 4));
	ASSERT_EQ(0, post_recvs(&other, 4));
	make_frame(&self->a, self->mac[1], self->mac[0]);
	ASSERT_TRUE(send_frame(&self->a, 0));
	ASSERT_TRUE(got(&self->b, &self->a));
	ASSERT_EQ(0, ibv_destroy_flow(first));
	ASSERT_TRUE(send_frame(&self->a, 0));
	ASSERT_TRUE(got(&other, &self->a));
	ASSERT_EQ(0, ibv_destroy_flow(last));
	ASSERT_TRUE(send_frame(&self->a, 0));
	make_frame(&self->a, group, self->mac[0]);
	ASSERT_TRUE(send_frame(&self->a, 0));
	ASSERT_TRUE(got(&other, &self->a));
	ASSERT_TRUE(got_nothing(&other));
	ASSERT_TRUE(got_nothing(&self->b));
	EXPECT_EQ(0, ibv_destroy_flow(mc));
	raw_close_qp(&other);
}

/* RAW-8: the RC connection is seen, and does not notice. */
TEST_F(raw, sniffer)
{
	struct ibv_flow *f = flow(&self->b, rule_of(IBV_FLOW_ATTR_SNIFFER, 0));
	struct ibv_wc wc;

	ASSERT_NE(NULL, f);
	ASSERT_EQ(0, post_recvs(&self->b, PAIR_WRS));
	ASSERT_TRUE(pair_transfer(self->s));
	/* A WRITE, a READ and a SEND at least. */
	for (int i = 0; i < 3; i++) {
		ASSERT_TRUE(wait_wc(&self->b, &wc));
		ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
		ASSERT_LT(57, wc.byte_len);
	}
	EXPECT_EQ(0, ibv_destroy_flow(f));
}

/* RAW-9: to a QP of the same NIC, from any MAC. */
TEST_F(raw, loop_back)
{
	static const uint8_t group[6] = { 1, 0x50, 0x56, 0x19, 0x20, 0xa7 };
	static const uint8_t foreign[6] = { 0x24, 0x8a, 7, 0xa5, 0x28, 0xc8 };
	struct raw other;
	struct ibv_flow *f;

	ASSERT_EQ(0, raw_open_qp(&other, &self->s[0]));
	f = flow(&other, to_mac(group));
	ASSERT_NE(NULL, f);
	ASSERT_EQ(0, post_recvs(&other, 1));
	make_frame(&self->a, group, foreign);
	ASSERT_TRUE(send_frame(&self->a, 0));
	ASSERT_TRUE(got(&other, &self->a));
	EXPECT_EQ(0, ibv_destroy_flow(f));
	raw_close_qp(&other);
}

/* RAW-11: in RESET, and after that. A QP with flows is in use. */
TEST_F(raw, flows_stay_in_reset)
{
	struct ibv_flow *f = flow(&self->b, to_mac(self->mac[1]));
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET, .port_num = 1 };

	ASSERT_NE(NULL, f);
	ASSERT_EQ(EBUSY, ibv_destroy_qp(self->b.qp));
	ASSERT_EQ(0, ibv_modify_qp(self->b.qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_INIT;
	ASSERT_EQ(0, ibv_modify_qp(self->b.qp, &attr, IBV_QP_STATE | IBV_QP_PORT));
	attr.qp_state = IBV_QPS_RTR;
	ASSERT_EQ(0, ibv_modify_qp(self->b.qp, &attr, IBV_QP_STATE));
	ASSERT_EQ(0, post_recvs(&self->b, 1));
	make_frame(&self->a, self->mac[1], self->mac[0]);
	ASSERT_TRUE(send_frame(&self->a, 0));
	ASSERT_TRUE(got(&self->b, &self->a));
	EXPECT_EQ(0, ibv_destroy_flow(f));
}

/* errno of the creation of a flow; one that was made goes at once. */
static int flow_errno(struct ibv_qp *qp, struct rule *rule)
{
	struct ibv_flow *f;

	errno = 0;
	f = ibv_create_flow(qp, &rule->attr);
	return f ? ibv_destroy_flow(f) : errno;
}

static void two_of_ethernet(struct rule *rule)
{
	add_eth(rule, (struct ibv_flow_eth_filter){}, eth_ones);
}

static void two_of_ip(struct rule *rule)
{
	struct ibv_flow_spec_ipv6 spec = { IBV_FLOW_SPEC_IPV6, sizeof(spec) };

	add_ipv4(rule, (struct ibv_flow_ipv4_ext_filter){}, (struct ibv_flow_ipv4_ext_filter){ .proto = 1 });
	add_spec(rule, &spec, sizeof(spec));
}

static void an_inner_spec(struct rule *rule)
{
	((struct ibv_flow_spec_eth *)rule->specs)->type |= IBV_FLOW_SPEC_INNER;
}

static void a_tunnel(struct rule *rule)
{
	struct ibv_flow_spec_tunnel spec = { IBV_FLOW_SPEC_VXLAN_TUNNEL, sizeof(spec), { htonl(1) }, { htonl(0xff) } };

	add_spec(rule, &spec, sizeof(spec));
}

static void two_tags_of_flows(struct rule *rule)
{
	struct ibv_flow_spec_action_tag spec = { IBV_FLOW_SPEC_ACTION_TAG, sizeof(spec), 5 };

	add_spec(rule, &spec, sizeof(spec));
	add_spec(rule, &spec, sizeof(spec));
}

static void a_drop(struct rule *rule)
{
	struct ibv_flow_spec_action_drop spec = { IBV_FLOW_SPEC_ACTION_DROP, sizeof(spec) };

	add_spec(rule, &spec, sizeof(spec));
}

static void a_reserved_flag_of_ipv4(struct rule *rule)
{
	add_ipv4(rule, (struct ibv_flow_ipv4_ext_filter){}, (struct ibv_flow_ipv4_ext_filter){ .flags = 1 });
}

static void a_long_flow_label(struct rule *rule)
{
	struct ibv_flow_spec_ipv6 spec = { IBV_FLOW_SPEC_IPV6, sizeof(spec), {}, { .flow_label = htonl(0x100000) } };

	add_spec(rule, &spec, sizeof(spec));
}

static void another_type(struct rule *rule)
{
	rule->attr.type = IBV_FLOW_ATTR_SNIFFER + 1;
}

static void a_sniffer_with_specs(struct rule *rule)
{
	rule->attr.type = IBV_FLOW_ATTR_SNIFFER;
}

static void a_default_with_specs(struct rule *rule)
{
	rule->attr.type = IBV_FLOW_ATTR_ALL_DEFAULT;
}

static void without_trap(struct rule *rule)
{
	rule->attr.flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP;
}

static void of_what_is_sent(struct rule *rule)
{
	rule->attr.flags = IBV_FLOW_ATTR_FLAGS_EGRESS;
}

static void flags_that_do_not_exist(struct rule *rule)
{
	rule->attr.flags = 1u << 20;
}

static void port_0(struct rule *rule)
{
	rule->attr.port = 0;
}

static void port_2(struct rule *rule)
{
	rule->attr.port = 2;
}

static void nothing_wrong(struct rule *rule)
{
}

static const struct {
	const char *name;
	int gives;
	void (*spoil)(struct rule *rule);
} bad_flows[] = {
	{ "nothing wrong", 0, nothing_wrong },
	{ "two headers of Ethernet", EINVAL, two_of_ethernet },
	{ "two headers of IP", EINVAL, two_of_ip },
	{ "an inner header", EOPNOTSUPP, an_inner_spec },
	{ "a tunnel", EOPNOTSUPP, a_tunnel },
	{ "two tags", EINVAL, two_tags_of_flows },
	{ "a drop", EOPNOTSUPP, a_drop },
	{ "a reserved flag of IPv4", EOPNOTSUPP, a_reserved_flag_of_ipv4 },
	{ "a flow label of 21 bits", EINVAL, a_long_flow_label },
	{ "a type that does not exist", EINVAL, another_type },
	{ "a sniffer with specs", EINVAL, a_sniffer_with_specs },
	{ "a default flow with specs", EINVAL, a_default_with_specs },
	{ "a flow that goes on", EOPNOTSUPP, without_trap },
	{ "a flow of what is sent", EOPNOTSUPP, of_what_is_sent },
	{ "flags that do not exist", EINVAL, flags_that_do_not_exist },
	{ "port 0", EINVAL, port_0 },
	{ "port 2", EINVAL, port_2 },
};

/* RAW-6: by the driver, which knows of nothing else. */
TEST_F(raw, flows_that_are_refused)
{
	for EACH(row, bad_flows) {
		struct rule rule = to_mac(self->mac[1]);

		row->spoil(&rule);
		GAVE(row->gives, flow_errno(self->b.qp, &rule), row);
	}
}

/* RAW-5: QPs of other types have no flows, and raw packet QPs no SRQ. */
TEST_F(raw, wrong_qps)
{
	struct ibv_srq_init_attr srq_attr = { .attr = { 4, 1 } };
	struct ibv_srq *srq = ibv_create_srq(self->s[0].pd, &srq_attr);
	struct ibv_qp *ud = side_create_qp_of(&self->s[0], IBV_QPT_UD);
	struct rule rule = to_mac(self->mac[0]);
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RAW_PACKET, .send_cq = self->a.cq, .recv_cq = self->a.cq, .srq = srq,
		.cap = { 1, 0, 1, 0, 0 },
	};

	ASSERT_TRUE(srq && ud);
	EXPECT_EQ(EOPNOTSUPP, flow_errno(ud, &rule));
	EXPECT_EQ(EINVAL, flow_errno(self->s[0].qp, &rule));
	EXPECT_EQ(NULL, ibv_create_qp(self->s[0].pd, &init));
	EXPECT_EQ(EOPNOTSUPP, errno);
	/* Without receives there is nothing to steer to. */
	init.srq = NULL;
	init.cap.max_recv_wr = 0;
	{
		struct ibv_qp *qp = ibv_create_qp(self->s[0].pd, &init);

		ASSERT_NE(NULL, qp);
		EXPECT_EQ(EINVAL, flow_errno(qp, &rule));
		EXPECT_EQ(0, ibv_destroy_qp(qp));
	}
	EXPECT_EQ(0, ibv_destroy_qp(ud));
	EXPECT_EQ(0, ibv_destroy_srq(srq));
}

/* LIM-1 RAW-5: as many as there are, and no more; what a process leaves is given back. */
TEST_F(raw, as_many_as_there_are)
{
	struct ibv_flow *f[1024];
	unsigned int n = 0;

	while (n < 1024 && (f[n] = flow(&self->b, to_mac(self->mac[1]))))
		n++;
	EXPECT_LT(15, n);
	EXPECT_LT(n, 1024);
	EXPECT_EQ(ENOMEM, errno);
	while (n--)
		ASSERT_EQ(0, ibv_destroy_flow(f[n]));
	f[0] = flow(&self->b, to_mac(self->mac[1]));
	ASSERT_NE(NULL, f[0]);
	EXPECT_EQ(0, ibv_destroy_flow(f[0]));
}

/* Take one capability from this process for good. */
static int drop_capability(unsigned int capability)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data))
		return errno;
	data[0].effective &= ~(1u << capability);
	data[0].permitted &= ~(1u << capability);
	return syscall(SYS_capset, &head, data) ? errno : 0;
}

/* In a process of its own, which has lost a capability: the errno of each kind of flow, and of a QP. */
static int errnos_without(struct side *s, const uint8_t *mac, unsigned int capability,
			  int gives[6])
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RAW_PACKET, .cap = { 1, 1, 1, 1, 0 } };
	int status, pipes[2];
	pid_t pid;

	if (pipe(pipes))
		return -1;
	pid = fork();
	if (!pid) {
		struct rule rules[] = {
			to_mac(mac), rule_of(IBV_FLOW_ATTR_NORMAL, 0), rule_of(IBV_FLOW_ATTR_ALL_DEFAULT, 0),
			rule_of(IBV_FLOW_ATTR_MC_DEFAULT, 0), rule_of(IBV_FLOW_ATTR_SNIFFER, 0),
		};
		struct side own;
		struct raw raw;
		int seen[6];

		if (side_open(&own, ibv_get_device_name(s->context->device)) || raw_open_qp(&raw, &own) ||
		    drop_capability(capability))
			_exit(1);
		for (int i = 0; i < 5; i++)
			seen[i] = flow_errno(raw.qp, &rules[i]);
		init.send_cq = init.recv_cq = raw.cq;
		errno = 0;
		seen[5] = ibv_create_qp(own.pd, &init) ? 0 : errno;
		_exit(write(pipes[1], seen, sizeof(seen)) != sizeof(seen));
	}
	close(pipes[1]);
	status = read(pipes[0], gives, 6 * sizeof(int)) == 6 * sizeof(int);
	close(pipes[0]);
	waitpid(pid, NULL, 0);
	return status ? 0 : -1;
}

/* RAW-12: whoever takes all administers the network. */
TEST_F(raw, capabilities_of_the_process)
{
	int gives[6];

	ASSERT_EQ(0, errnos_without(&self->s[0], self->mac[0], CAP_NET_ADMIN, gives));
	EXPECT_EQ(0, gives[0]);
	for (int i = 1; i < 5; i++)
		EXPECT_EQ(EPERM, gives[i]);
	EXPECT_EQ(0, gives[5]);
	ASSERT_EQ(0, errnos_without(&self->s[0], self->mac[0], CAP_NET_RAW, gives));
	for (int i = 0; i < 6; i++)
		EXPECT_EQ(EPERM, gives[i]);
}

/* RAW-11: of a process that is killed nothing stays: not even the one flow that takes all. */
TEST_F(raw, a_killed_process)
{
	struct ibv_flow *f[200];
	char ready;
	int pipes[2];
	pid_t pid;

	ASSERT_EQ(0, pipe(pipes));
	pid = fork();
	if (!pid) {
		struct side own;
		struct raw raw;

		if (side_open(&own, "skua_1") || raw_open_qp(&raw, &own) || post_recvs(&raw, 8))
			_exit(1);
		for (int i = 0; i < 100; i++)
			if (!flow(&raw, to_mac(self->mac[1])))
				_exit(1);
		if (!flow(&raw, rule_of(IBV_FLOW_ATTR_ALL_DEFAULT, 0)) ||
		    !flow(&raw, rule_of(IBV_FLOW_ATTR_SNIFFER, 0)) || write(pipes[1], "r", 1) != 1)
			_exit(1);
		pause();
	}
	close(pipes[1]);
	ASSERT_EQ(1, read(pipes[0], &ready, 1));
	close(pipes[0]);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	for (int i = 0; i < 200; i++) {
		f[i] = flow(&self->b, to_mac(self->mac[1]));
		ASSERT_NE(NULL, f[i]);
	}
	ASSERT_EQ(0, post_recvs(&self->b, 1));
	make_frame(&self->a, self->mac[1], self->mac[0]);
	ASSERT_TRUE(send_frame(&self->a, 0));
	ASSERT_TRUE(got(&self->b, &self->a));
	for (int i = 0; i < 200; i++)
		ASSERT_EQ(0, ibv_destroy_flow(f[i]));
}

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

static int spread_open(struct spread *spread, struct raw *raw)
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
	for (uint16_t port = 7000; port < 7016; port++) {
		uint32_t wqn[2];

		make_udp(&self->a, self->mac[1], self->mac[0], port, 0);
		for (int i = 0; i < 2; i++) {
			struct raw any = { .cq = spread.cq };

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
	struct ibv_wq_attr flags = { .attr_mask = IBV_WQ_ATTR_FLAGS, .flags_mask = IBV_WQ_FLAGS_CVLAN_STRIPPING };
	struct ibv_recv_wr *bad, wr = { .wr_id = 3 };
	struct ibv_wc wc;

	ASSERT_NE(NULL, wq);
	EXPECT_EQ(EINVAL, ibv_post_wq_recv(wq, &wr, &bad));
	EXPECT_EQ(EINVAL, set_wq_state(wq, IBV_WQS_ERR));
	ASSERT_EQ(0, set_wq_state(wq, IBV_WQS_RDY));
	EXPECT_EQ(0, set_wq_state(wq, IBV_WQS_RDY));
	EXPECT_EQ(EINVAL, ibv_modify_wq(wq, &wrong));
	EXPECT_EQ(EOPNOTSUPP, ibv_modify_wq(wq, &flags));
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
	wq_attr.create_flags = IBV_WQ_FLAGS_SCATTER_FCS;
	wq_attr.comp_mask = IBV_WQ_INIT_ATTR_FLAGS;
	EXPECT_EQ(NULL, ibv_create_wq(s->context, &wq_attr));
	EXPECT_EQ(EOPNOTSUPP, errno);
	wq_attr.comp_mask = wq_attr.create_flags = 0;
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
