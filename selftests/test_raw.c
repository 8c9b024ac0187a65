// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Raw packet QPs and flows of a program.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "packet_fixture.h"
#include "rows.h"

static const struct ibv_flow_eth_filter eth_ones = {
	{ 255, 255, 255, 255, 255, 255 }, { 255, 255, 255, 255, 255, 255 }, 0xffff, 0xffff,
};

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

/* Nothing is there after all that was sent before has come. */
static bool got_nothing(struct packet_qp *raw)
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
	EXPECT_EQ(IBV_RAW_PACKET_CAP_IP_CSUM | IBV_RAW_PACKET_CAP_CVLAN_STRIPPING, attr.raw_packet_caps);
	EXPECT_LE(65536, attr.tso_caps.max_tso);
	EXPECT_EQ(1u << IBV_QPT_RAW_PACKET, attr.tso_caps.supported_qpts);
	ASSERT_EQ(0, ibv_query_qp(self->a.qp, &qp, IBV_QP_STATE, &init));
	EXPECT_EQ(IBV_QPS_RTS, qp.qp_state);
	EXPECT_EQ(IBV_QPT_RAW_PACKET, init.qp_type);
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

/* RAW-3 RAW-4: a frame of each kind finds the QP whose specs it has. */
TEST_F(raw, specs)
{
	struct rule rules[4];
	struct packet_qp other;
	struct ibv_flow *f, *rest;

	ASSERT_EQ(0, packet_open(&other, &self->s[1]));
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
	packet_close(&other);
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
	struct packet_qp other;

	ASSERT_EQ(0, packet_open(&other, &self->s[1]));
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
	packet_close(&other);
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
	struct packet_qp other;
	struct ibv_flow *f;

	ASSERT_EQ(0, packet_open(&other, &self->s[0]));
	f = flow(&other, to_mac(group));
	ASSERT_NE(NULL, f);
	ASSERT_EQ(0, post_recvs(&other, 1));
	make_frame(&self->a, group, foreign);
	ASSERT_TRUE(send_frame(&self->a, 0));
	ASSERT_TRUE(got(&other, &self->a));
	EXPECT_EQ(0, ibv_destroy_flow(f));
	packet_close(&other);
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
	uint8_t mac[6] = { 2, 0x77 };
	unsigned int n = 0;

	/* Each has a MAC of its own. */
	while (mac[4] = (uint8_t)(n >> 8), mac[5] = (uint8_t)n,
	       n < 1024 && (f[n] = flow(&self->b, to_mac(mac))))
		n++;
	EXPECT_LT(15, n);
	EXPECT_LT(n, 1024);
	EXPECT_EQ(ENOMEM, errno);
	for (unsigned int i = 0; i < 3; i++) {
		unsigned int number = i * (n - 1) / 2;

		mac[4] = (uint8_t)(number >> 8);
		mac[5] = (uint8_t)number;
		make_frame(&self->a, mac, self->mac[0]);
		ASSERT_EQ(0, post_recvs(&self->b, 1));
		ASSERT_TRUE(send_frame(&self->a, 0));
		ASSERT_TRUE(got(&self->b, &self->a));
	}
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
		struct packet_qp raw;
		int seen[6];

		if (side_open(&own, ibv_get_device_name(s->context->device)) || packet_open(&raw, &own) ||
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
		struct packet_qp raw;

		if (side_open(&own, "skua_1") || packet_open(&raw, &own) || post_recvs(&raw, 8))
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

TEST_HARNESS_MAIN
