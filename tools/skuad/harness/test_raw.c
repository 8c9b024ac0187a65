// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Raw packet QPs, and flows: what they compare, in which order, and what they leave to others. */
#include "core/device.h"
#include "harness/lossy.h"
#include "harness/raw.h"
#include "link/impair.h"
#include "nic/control.h"
#include "packet/packet.h"

#define MS		1000000ull

static uint32_t default_flow(struct world *w, struct node *n, uint32_t qpn)
{
	return must(w, n, flow_cmd(qpn, SKUA_FLOW_DEFAULT));
}

static uint32_t sniffer(struct world *w, struct node *n, uint32_t qpn)
{
	return must(w, n, flow_cmd(qpn, SKUA_FLOW_SNIFFER));
}

static const void *slot(struct node *n, const struct skua_cqe *cqe)
{
	return at(n, n->buf + (1 + le32toh(cqe->cookie) % 200) * (uint64_t)SLOT);
}

static void frames_go_from_program_to_program(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct queues from = raw_qp(w, a), to = with_receives(b, raw_qp(w, b), 3);
	static const uint32_t lens[] = { 14, 60, 1518 };

	must(w, b, mac_flow(to.qpn, b->mac));
	for (unsigned int i = 0; i < 3; i++) {
		const uint8_t *p = make_frame(a, b->mac, a->mac, lens[i]);

		send_from(w, a, &from, lens[i]);
		assert_memory_equal(slot(b, expect_by(w, b, to, lens[i])), p, lens[i]);
	}
	assert_int_equal(STAT(w, a, tx_frames), 3);
	assert_int_equal(STAT(w, b, rx_frames), 3);
}

static void it_has_no_privilege(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];
	struct queues q = raw_qp(w, a), old = use_queues(a, q);
	struct { struct skua_wqe_ctrl c; struct skua_sge s[3]; } wqe = {
		.c = { .opcode = SKUA_WQE_SEND, .nblocks = 1, .num_sge = 1 },
		.s[0] = { htole64(a->buf), htole32(FRAME), htole32(0xffffff00) } };

	make_frame(a, w->n[1].mac, a->mac, FRAME);
	post_block(a, &wqe);
	expect_vendor(w, a, SKUA_CQE_SEND, SKUA_CQE_LOC_PROT_ERR, SKUA_VENDOR_ERR_PRIVILEGE);
	assert_int_equal(qp_state(w, a, a->qpn), SKUA_QPS_ERR);
	use_queues(a, old);
}

/* Whoever pins a port pins its programs, too. */
static void a_pinned_port_sends_from_its_mac_only(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct queues from = raw_qp(w, a), to = with_receives(b, raw_qp(w, b), 2);

	must(w, b, mac_flow(to.qpn, b->mac));
	make_frame(a, b->mac, nobody, FRAME);
	send_from(w, a, &from, FRAME);
	expect_none(w, b);
	assert_int_equal(STAT(w, a, tx_spoofed), 1);
	port_allow_spoof(a->dev->port, true);
	send_from(w, a, &from, FRAME);
	expect_by(w, b, to, FRAME);
}

static void without_the_feature_there_is_none(void **state)
{
	struct world *w = world_create_with(false, ~(1ull << SKUA_F_RAW_PACKET));
	struct node *n = &w->n[0];
	struct skua_cmd cmd = create_qp_cmd(n), flow = mac_flow(n->qpn, n->mac);

	(void)state;
	cmd.create_qp.type = SKUA_QPT_ETH;
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_BAD_PARAM);
	assert_int_equal(command(w, n, &flow), SKUA_CMD_BAD_OPCODE);
	flow = object_cmd(SKUA_CMD_DESTROY_FLOW, 2);
	assert_int_equal(command(w, n, &flow), SKUA_CMD_BAD_OPCODE);
	assert_int_equal(le32toh(((struct skua_device_caps *)
				  query(w, n, (struct skua_cmd)CMD(SKUA_CMD_QUERY_DEVICE),
					sizeof(struct skua_device_caps)))->max_flow), 0);
	world_destroy(w);
}

/* GSI QPs are nobody's but the driver's. */
static void other_types_stay_privileged(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_cmd cmd = create_qp_cmd(n);

	cmd.create_qp.type = SKUA_QPT_GSI;
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_BAD_PARAM);
}

/* A flow to a QP, and one that takes what it leaves: each with a receive. */
struct fork {
	struct queues from, to, rest;
};

static struct fork make_fork(struct world *w)
{
	struct node *b = &w->n[1];
	struct fork f = {
		raw_qp(w, &w->n[0]), with_receives(b, raw_qp(w, b), 1), with_receives(b, raw_qp(w, b), 1),
	};

	must(w, b, flow_cmd(f.rest.qpn, SKUA_FLOW_DEFAULT));
	return f;
}

/* Does this flow take the frame? */
static bool takes(struct world *w, struct fork *f, struct skua_cmd cmd, unsigned int frame)
{
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cqe *cqe;
	uint32_t number;
	bool taken;

	cmd.flow.qpn = htole32(f->to.qpn);
	number = must(w, b, cmd);
	memcpy(at(a, a->buf), raw_frames[frame].bytes, raw_frames[frame].len);
	send_from(w, a, &f->from, raw_frames[frame].len);
	cqe = await_cqe(w, b);
	assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
	taken = le32toh(cqe->qpn) == f->to.qpn;
	if (taken)
		f->to = with_receives(b, f->to, 1);
	else
		f->rest = with_receives(b, f->rest, 1);
	must(w, b, object_cmd(SKUA_CMD_DESTROY_FLOW, number));
	return taken;
}

/* Each byte of each frame decides by itself. */
static void each_field_is_compared(void **state)
{
	const uint8_t *bits = (const void *)&raw_key_bits;
	struct world *w = *state;
	struct fork fork = make_fork(w);

	for (unsigned int f = 0; f < num_raw_frames; f++)
		for (unsigned int i = 0; i < sizeof(raw_key_bits); i++) {
			struct skua_cmd cmd = flow_cmd(0, SKUA_FLOW_NORMAL);
			uint8_t *value = (uint8_t *)&cmd.flow.value + i, *mask = (uint8_t *)&cmd.flow.mask + i;
			uint8_t bit = (uint8_t)(bits[i] & -bits[i]);

			if (!bits[i])
				continue;
			*mask = bits[i];
			*value = ((const uint8_t *)&raw_frames[f].key)[i];
			if (!takes(w, &fork, cmd, f))
				fail_msg("%s: byte %u", raw_frames[f].name, i);
			*value ^= bit;
			if (takes(w, &fork, cmd, f))
				fail_msg("%s: byte %u, although it differs", raw_frames[f].name, i);
			*mask ^= bit;
			*value &= *mask;
			if (!takes(w, &fork, cmd, f))
				fail_msg("%s: byte %u, which differs where nothing is compared", raw_frames[f].name, i);
		}
}

static void whole_keys_are_compared(void **state)
{
	struct world *w = *state;
	struct fork fork = make_fork(w);

	for (unsigned int f = 0; f < num_raw_frames; f++) {
		struct skua_cmd cmd = flow_cmd(0, SKUA_FLOW_NORMAL);

		cmd.flow.value = raw_frames[f].key;
		cmd.flow.mask = raw_key_bits;
		for (unsigned int g = 0; g < num_raw_frames; g++)
			if (takes(w, &fork, cmd, g) == !!memcmp(&raw_frames[f].key, &raw_frames[g].key,
								sizeof(raw_frames[f].key)))
				fail_msg("%s: %s", raw_frames[f].name, raw_frames[g].name);
		cmd.flow.value = cmd.flow.mask = (struct skua_flow_key){ 0 };
		assert_true(takes(w, &fork, cmd, f));
	}
}

static void flows_that_are_refused(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct queues q = raw_qp(w, n);
	struct skua_cmd good = mac_flow(q.qpn, n->mac), no_rq = create_qp_cmd(n), cmd;
	const uint8_t *bits = (const void *)&raw_key_bits;

#define REFUSED(status, ...) do {					\
	cmd = good;							\
	__VA_ARGS__;							\
	assert_int_equal(command(w, n, &cmd), status);			\
} while (0)
	REFUSED(SKUA_CMD_BAD_PARAM, cmd.flow.qpn = 0);
	REFUSED(SKUA_CMD_BAD_OBJECT, cmd.flow.qpn = htole32(q.qpn ^ 0x800000));
	REFUSED(SKUA_CMD_BAD_PARAM, cmd.flow.qpn = htole32(n->qpn));	/* RC */
	no_rq.create_qp.type = SKUA_QPT_ETH;
	no_rq.create_qp.rq = (struct skua_pagelist){ 0 };
	no_rq.create_qp.log_rq_size = no_rq.create_qp.log_rq_stride = 0;
	no_rq.create_qp.rq_dbr_addr = 0;
	must(w, n, no_rq);
	REFUSED(SKUA_CMD_BAD_PARAM, cmd.flow.qpn = htole32(n->number));
	REFUSED(SKUA_CMD_BAD_PARAM, cmd.flow.type = SKUA_FLOW_SNIFFER + 1);
	REFUSED(SKUA_CMD_BAD_PARAM, cmd.flow.type = 0xff);
	REFUSED(SKUA_CMD_BAD_PARAM, cmd.hdr.port = 1);
	for (unsigned int i = 5; i < sizeof(cmd.flow); i++) {
		bool rsvd = i == 5 || (i >= 16 && i < 64) || i >= 192;
		uint8_t *at = (uint8_t *)&cmd.flow + i;

		if (rsvd)
			REFUSED(SKUA_CMD_BAD_PARAM, *at = 1);
		else if (i >= 70 && i < 128)
			REFUSED(SKUA_CMD_BAD_PARAM, *at = 1);	/* a value that is not compared */
		else if (i >= 128 && bits[i - 128] != 0xff)
			REFUSED(SKUA_CMD_BAD_PARAM, *at = 0x80);
	}
	REFUSED(SKUA_CMD_BAD_OBJECT, cmd = object_cmd(SKUA_CMD_DESTROY_FLOW, 0));
	REFUSED(SKUA_CMD_OK, (void)cmd);
	REFUSED(SKUA_CMD_OK, cmd = object_cmd(SKUA_CMD_DESTROY_FLOW, n->number));
	REFUSED(SKUA_CMD_BAD_OBJECT, cmd = object_cmd(SKUA_CMD_DESTROY_FLOW, le32toh(cmd.object.number)));
	REFUSED(SKUA_CMD_OK, cmd.flow.mask = raw_key_bits, memset(&cmd.flow.value, 0, sizeof(cmd.flow.value)));
#undef REFUSED
}

static void an_srq_is_refused(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint64_t ring = take(n, 64 * 64), dbr = take(n, 64);
	struct skua_cmd srq = CMD(SKUA_CMD_CREATE_SRQ, .create_srq = {
		.pdn = htole32(n->pdn), .log_size = 6, .log_stride = 6, .dbr_addr = htole64(dbr),
		.ring = list(ring, 64 * 64) });
	struct skua_cmd cmd = create_qp_cmd(n);

	cmd.create_qp.srqn = htole32(must(w, n, srq));
	cmd.create_qp.type = SKUA_QPT_ETH;
	cmd.create_qp.rq = (struct skua_pagelist){ 0 };
	cmd.create_qp.log_rq_size = cmd.create_qp.log_rq_stride = 0;
	cmd.create_qp.rq_dbr_addr = 0;
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_BAD_PARAM);
	cmd.create_qp.srqn = 0;
	must(w, n, cmd);
}

/* All of them serve: the last one decides. */
static void as_many_flows_as_there_are(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct queues from = raw_qp(w, a), to = with_receives(b, raw_qp(w, b), 1);
	struct skua_device_caps *caps = query(w, b, (struct skua_cmd)CMD(SKUA_CMD_QUERY_DEVICE), sizeof(*caps));
	struct skua_cmd cmd = mac_flow(to.qpn, nobody);
	uint32_t max = le32toh(caps->max_flow), number;

	assert_in_range(max, 1, 65536);
	for (uint32_t i = 1; i < max; i++)
		must(w, b, cmd);
	number = must(w, b, mac_flow(to.qpn, b->mac));
	assert_int_equal(command(w, b, &cmd), SKUA_CMD_NO_RESOURCE);
	send_to(w, a, &from, b->mac);
	expect_by(w, b, to, FRAME);
	must(w, b, object_cmd(SKUA_CMD_DESTROY_FLOW, number));
	must(w, b, cmd);
}

static void as_many_sniffers_as_there_are(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct queues from = raw_qp(w, a), to = with_receives(b, raw_qp(w, b), 40);
	struct skua_device_caps *caps = query(w, b, (struct skua_cmd)CMD(SKUA_CMD_QUERY_DEVICE), sizeof(*caps));
	struct skua_cmd cmd = flow_cmd(to.qpn, SKUA_FLOW_SNIFFER);
	uint32_t max = le32toh(caps->max_sniffer);

	assert_in_range(max, 1, 40);
	for (uint32_t i = 0; i < max; i++)
		sniffer(w, b, to.qpn);
	assert_int_equal(command(w, b, &cmd), SKUA_CMD_NO_RESOURCE);
	send_to(w, a, &from, b->mac);
	for (uint32_t i = 0; i < max; i++)
		expect_by(w, b, to, FRAME);
	must(w, b, object_cmd(SKUA_CMD_DESTROY_QP, to.qpn));
	to = raw_qp(w, b);
	sniffer(w, b, to.qpn);
}

static void rdma_comes_before_flows(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct queues from = raw_qp(w, a), to = with_receives(b, raw_qp(w, b), 2);
	struct roce_path path = { .vlan = SKUA_VLAN_NONE, .sport = 0xc000, .hop_limit = 64 };
	struct train t = { .op = TRAIN_SEND, .first = true, .last = true, .npkts = 1, .dest_qpn = b->qpn,
			   .psn = FIRST_PSN, .path = &path, .pmtu = 1024 };
	uint32_t len;

	memcpy(path.smac, a->mac, 6);
	memcpy(path.dmac, b->mac, 6);
	memcpy(path.sgid, a->gid, 16);
	memcpy(path.dgid, b->gid, 16);
	default_flow(w, b, to.qpn);
	must(w, b, mac_flow(to.qpn, b->mac));
	len = (uint32_t)roce_packet_build(at(a, a->buf), &t, 0);
	post_recv(b, b->buf, 64);
	send_from(w, a, &from, len);
	expect(w, b, SKUA_CQE_RECV, SKUA_CQE_SUCCESS);
	expect_none(w, b);
	/* To an address that is no GID of ours: a frame like all others. */
	path.dgid[15]++;
	len = (uint32_t)roce_packet_build(at(a, a->buf), &t, 0);
	send_from(w, a, &from, len);
	expect_by(w, b, to, len);
}

/* Created in an order that is not the one in which they decide: each is asked when those before it are gone. */
static void flows_decide_in_order(void **state)
{
	static const struct { uint8_t type; uint16_t priority; } flows[] = {
		{ SKUA_FLOW_DEFAULT, 0 }, { SKUA_FLOW_NORMAL, 7 }, { SKUA_FLOW_NORMAL, 0 }, { SKUA_FLOW_DEFAULT, 9 },
		{ SKUA_FLOW_NORMAL, 7 }, { SKUA_FLOW_NORMAL, 0xffff }, { SKUA_FLOW_DEFAULT, 0 },
	};
	static const unsigned int order[] = { 2, 1, 4, 5, 0, 6, 3 };
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct queues from = raw_qp(w, a), to[7], port;
	uint32_t number[7];

	for (unsigned int i = 0; i < 7; i++) {
		struct skua_cmd cmd;

		to[i] = with_receives(b, raw_qp(w, b), 2);
		cmd = flow_cmd(to[i].qpn, flows[i].type);
		cmd.flow.priority = htole16(flows[i].priority);
		number[i] = must(w, b, cmd);
	}
	eth_queues(w, b);
	for (unsigned int i = 0; i < 7; i++) {
		send_to(w, a, &from, b->mac);
		expect_by(w, b, to[order[i]], FRAME);
		expect_none(w, b);
		must(w, b, object_cmd(SKUA_CMD_DESTROY_FLOW, number[order[i]]));
	}
	post_recv(b, b->buf, SLOT);
	send_to(w, a, &from, b->mac);
	port = (struct queues){ .qpn = b->qpn };
	expect_by(w, b, port, FRAME);
}

static void other_mac_than_the_ports(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct queues from = raw_qp(w, a), to = with_receives(b, raw_qp(w, b), 3);
	uint32_t number = must(w, b, mac_flow(to.qpn, nobody));

	send_to(w, a, &from, nobody);
	expect_by(w, b, to, FRAME);
	must(w, b, mac_flow(to.qpn, group));
	send_to(w, a, &from, group);
	expect_by(w, b, to, FRAME);
	must(w, b, object_cmd(SKUA_CMD_DESTROY_FLOW, number));
	send_to(w, a, &from, nobody);
	expect_none(w, b);
}

/* A target that cannot take it: nobody else gets it. */
static void no_second_choice(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct queues from = raw_qp(w, a), to = raw_qp(w, b), other = with_receives(b, raw_qp(w, b), 4);

	eth_queues(w, b);
	post_recv(b, b->buf, SLOT);
	must(w, b, mac_flow(to.qpn, b->mac));
	must(w, b, mac_flow(other.qpn, b->mac));
	default_flow(w, b, other.qpn);
	send_to(w, a, &from, b->mac);
	assert_int_equal(STAT(w, b, rx_no_buffer), 1);
	expect_none(w, b);
	to = with_receives(b, to, 1);
	must(w, b, state_cmd(to.qpn, SKUA_QPS_ERR));
	settle(w);
	expect(w, b, SKUA_CQE_RECV, SKUA_CQE_WR_FLUSH_ERR);
	send_to(w, a, &from, b->mac);
	assert_int_equal(STAT(w, b, rx_no_buffer), 2);
	expect_none(w, b);
}

static void flows_need_a_port(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct queues from = raw_qp(w, a), to = with_receives(b, raw_qp(w, b), 4);

	must(w, b, mac_flow(to.qpn, b->mac));
	sniffer(w, b, to.qpn);
	must(w, b, port_cmd(SKUA_PORT_SET_FLAGS, 0));
	send_to(w, a, &from, b->mac);
	expect_none(w, b);
	must(w, b, port_cmd(SKUA_PORT_SET_FLAGS, SKUA_PORT_F_ENABLE));
	skua_dev_set_link(b->dev, false);
	send_to(w, a, &from, b->mac);
	expect_none(w, b);
	skua_dev_set_link(b->dev, true);
	send_to(w, a, &from, b->mac);
	expect_by(w, b, to, FRAME);
	expect_by(w, b, to, FRAME);
	expect_none(w, b);
}

static int set_mtu(struct world *w, struct node *n, uint32_t mtu)
{
	struct skua_cmd cmd = port_cmd(SKUA_PORT_SET_MTU, 0);

	cmd.set_port.mtu = htole32(mtu);
	return command(w, n, &cmd);
}

static void longer_than_the_mtu(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct queues from = raw_qp(w, a), to = with_receives(b, raw_qp(w, b), 4);

	must(w, b, mac_flow(to.qpn, b->mac));
	sniffer(w, b, to.qpn);
	assert_int_equal(set_mtu(w, a, 9000), SKUA_CMD_OK);
	make_frame(a, b->mac, a->mac, 1519);
	send_from(w, a, &from, 1519);
	expect_none(w, b);
	assert_int_equal(STAT(w, b, rx_dropped), 1);
	make_frame(a, b->mac, a->mac, 1518);
	send_from(w, a, &from, 1518);
	expect_by(w, b, to, 1518);
	expect_by(w, b, to, 1518);
}

static void sniffers_get_copies(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct queues from = raw_qp(w, a), one = with_receives(b, raw_qp(w, b), 4), two = with_receives(b, raw_qp(w, b), 4);
	struct skua_cmd cmd = mac_flow(two.qpn, nobody);
	struct queues to;
	uint32_t number;

	eth_queues(w, b);
	post_recv(b, b->buf, SLOT);
	post_recv(b, b->buf, SLOT);
	to = (struct queues){ .qpn = b->qpn };
	number = sniffer(w, b, one.qpn);
	sniffer(w, b, two.qpn);
	cmd.flow.type = SKUA_FLOW_SNIFFER;
	must(w, b, cmd);
	send_to(w, a, &from, b->mac);
	expect_by(w, b, one, FRAME);
	expect_by(w, b, two, FRAME);
	expect_by(w, b, to, FRAME);
	expect_none(w, b);
	assert_int_equal(STAT(w, b, rx_frames), 3);
	must(w, b, object_cmd(SKUA_CMD_DESTROY_FLOW, number));
	send_to(w, a, &from, b->mac);
	expect_by(w, b, two, FRAME);
	expect_by(w, b, to, FRAME);
	expect_none(w, b);
	/* One that matches gets a copy of what nobody takes, too. */
	send_to(w, a, &from, nobody);
	expect_by(w, b, two, FRAME);
	expect_by(w, b, two, FRAME);
	expect_none(w, b);
}

/* A WRITE of three packets is seen packet by packet, and arrives; without sniffers nobody sees it. */
static void sniffers_see_rdma(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct queues to = with_receives(b, raw_qp(w, b), 8);
	uint64_t there = b->buf + 100 * (uint64_t)SLOT;
	uint32_t number = sniffer(w, b, to.qpn);
	struct roce_packet pkt;
	const uint8_t *p;

	fill(a, 2500, 5);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 2500, there, b->key, 0);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	assert_memory_equal(at(b, there), at(a, a->buf), 2500);
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t len = i < 2 ? 1024 : 2500 - 2048;
		struct skua_cqe *cqe = await_cqe(w, b);

		p = slot(b, cqe);
		assert_int_equal(le32toh(cqe->qpn), to.qpn);
		assert_true(roce_packet_open(&pkt, p, le32toh(cqe->byte_len)));
		assert_int_equal(roce_packet_parse(&pkt), ROCE_OK);
		assert_int_equal(pkt.train.dest_qpn, b->qpn);
		assert_int_equal(pkt.train.psn, (FIRST_PSN + i) & 0xffffff);
		assert_int_equal(pkt.payload.bytes, len);
		assert_memory_equal(pkt.payload.seg[0].p, (uint8_t *)at(a, a->buf) + i * 1024, len);
	}
	must(w, b, object_cmd(SKUA_CMD_DESTROY_FLOW, number));
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 2500, there, b->key, 0);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	expect_none(w, b);
}

/* Only messages that take a receive have the bit: nobody is told of a WRITE. */
static void the_solicited_bit(void **state)
{
	static const struct { uint8_t opcode; bool solicited; } rows[] = {
		{ SKUA_WQE_SEND, true }, { SKUA_WQE_WRITE_IMM, true }, { SKUA_WQE_WRITE, false },
	};
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct queues to = with_receives(b, raw_qp(w, b), 8);

	sniffer(w, b, to.qpn);
	for (int uc = 0; uc < 2; uc++) {
		if (uc)
			both_uc(w);
		post_recv(b, b->buf, 64);
		post_recv(b, b->buf, 64);
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			struct skua_cqe *cqe;
			struct roce_packet pkt;

			post(a, rows[i].opcode, SKUA_WQE_SOLICITED, a->buf, 8, b->buf, b->key, 0);
			cqe = await_cqe(w, b);
			assert_int_equal(le32toh(cqe->qpn), to.qpn);
			assert_true(roce_packet_open(&pkt, slot(b, cqe), le32toh(cqe->byte_len)));
			assert_int_equal(roce_packet_parse(&pkt), ROCE_OK);
			assert_int_equal(pkt.train.solicited, rows[i].solicited);
			if (rows[i].solicited)
				assert_int_equal(le32toh(await_cqe(w, b)->qpn), b->qpn);
		}
		expect_none(w, b);
	}
}

static void frames_loop_back(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct queues from = raw_qp(w, a), to = with_receives(a, raw_qp(w, a), 4), there = with_receives(b, raw_qp(w, b), 4);
	const uint8_t *p;

	must(w, a, mac_flow(to.qpn, group));
	must(w, b, mac_flow(there.qpn, group));
	p = make_frame(a, group, a->mac, FRAME);
	send_from(w, a, &from, FRAME);
	assert_memory_equal(slot(a, expect_by(w, a, to, FRAME)), p, FRAME);
	expect_by(w, b, there, FRAME);
	/* Not from there to the other, which sends nothing. */
	expect_none(w, b);
	/* Foreign MACs matter on the wire, where the port is pinned. */
	make_frame(a, group, nobody, FRAME);
	send_from(w, a, &from, FRAME);
	expect_by(w, a, to, FRAME);
	expect_none(w, b);
	assert_int_equal(STAT(w, a, tx_spoofed), 1);
}

/* Neither the sender nor what is not asked for, but the flow behind it. */
static void who_gets_no_frame_back(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];
	struct queues from = with_receives(a, raw_qp(w, a), 4), to = with_receives(a, raw_qp(w, a), 9), rdma;
	uint32_t number, own = must(w, a, mac_flow(from.qpn, group));

	rdma = eth_queues(w, a);
	post_recv(a, a->buf, SLOT);
	sniffer(w, a, to.qpn);
	default_flow(w, a, to.qpn);
	send_to(w, a, &from, group);
	send_to(w, a, &from, a->mac);
	expect_none(w, a);
	number = must(w, a, mac_flow(to.qpn, group));
	send_to(w, a, &from, group);
	expect_by(w, a, to, FRAME);
	expect_none(w, a);
	must(w, a, object_cmd(SKUA_CMD_DESTROY_FLOW, number));
	must(w, a, object_cmd(SKUA_CMD_DESTROY_FLOW, own));
	/* What the network stack sends: nothing of it. */
	must(w, a, mac_flow(to.qpn, group));
	make_frame(a, group, a->mac, FRAME);
	post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, FRAME, 0, 0, 0);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	expect_none(w, a);
	use_queues(a, rdma);
}

/* What looks like RDMA of the function is a frame there. */
static void no_rdma_to_oneself(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];
	struct queues from = raw_qp(w, a), to = with_receives(a, raw_qp(w, a), 1);
	struct roce_path path = { .vlan = SKUA_VLAN_NONE, .sport = 0xc000, .hop_limit = 64 };
	struct train t = { .op = TRAIN_SEND, .first = true, .last = true, .npkts = 1, .dest_qpn = a->qpn,
			   .psn = FIRST_PSN, .path = &path, .pmtu = 1024 };
	uint32_t len;

	memcpy(path.smac, a->mac, 6);
	memcpy(path.dmac, a->mac, 6);
	memcpy(path.sgid, w->n[1].gid, 16);
	memcpy(path.dgid, a->gid, 16);
	must(w, a, mac_flow(to.qpn, a->mac));
	post_recv(a, a->buf, 64);
	len = (uint32_t)roce_packet_build(at(a, a->buf), &t, 0);
	send_from(w, a, &from, len);
	expect_by(w, a, to, len);
	expect_none(w, a);
	assert_int_equal(STAT(w, a, rdma_rx_packets), 0);
}

static void nothing_loops_without_a_port(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];
	struct queues from = raw_qp(w, a), to = with_receives(a, raw_qp(w, a), 3);

	must(w, a, mac_flow(to.qpn, group));
	must(w, a, port_cmd(SKUA_PORT_SET_FLAGS, 0));
	send_to(w, a, &from, group);
	must(w, a, port_cmd(SKUA_PORT_SET_FLAGS, SKUA_PORT_F_ENABLE));
	skua_dev_set_link(a->dev, false);
	send_to(w, a, &from, group);
	expect_none(w, a);
	skua_dev_set_link(a->dev, true);
	send_to(w, a, &from, group);
	expect_by(w, a, to, FRAME);
	expect_none(w, a);
}

/* However often a frame is refused by a line that is busy. */
static void a_frame_loops_once(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];
	struct queues from = raw_qp(w, a), to = with_receives(a, raw_qp(w, a), 60);
	struct impair_config config = { 0 };
	char err[100];

	must(w, a, mac_flow(to.qpn, group));
	assert_true(impair_parse(&config, "rate=10M,dir=out", err, sizeof(err)));
	assert_true(skua_dev_set_impair(a->dev, &config));
	make_frame(a, group, a->mac, 1500);
	for (int i = 0; i < 20; i++)
		send_from(w, a, &from, 1500);
	for (int i = 0; i < 100; i++)
		pass(w, MS);
	assert_int_equal(STAT(w, a, tx_frames), 20);
	for (int i = 0; i < 20; i++)
		expect_by(w, a, to, 1500);
	expect_none(w, a);
}

static void no_hash_by_a_flow(void **state)
{
	struct skua_cmd rss = CMD(SKUA_CMD_SET_RSS, .set_rss = { .key = { [0 ... 39] = 0x6d } });
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct queues from = raw_qp(w, a), to = with_receives(b, raw_qp(w, b), 1);
	struct skua_cqe *cqe;

	rss.hdr.port = 1;
	must(w, b, rss);
	must(w, b, mac_flow(to.qpn, raw_frames[4].bytes));
	memcpy(at(a, a->buf), raw_frames[4].bytes, raw_frames[4].len);
	send_from(w, a, &from, raw_frames[4].len);
	cqe = expect_by(w, b, to, raw_frames[4].len);
	assert_int_equal(cqe->rss_hash, 0);
	assert_int_equal(cqe->flags & SKUA_CQE_L4_HASH, 0);
}

/* ETH-12 holds, too. */
static void checksums_are_verified(void **state)
{
	static const uint8_t good[] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17,
		0xf6, 0xcd, 192, 0, 2, 1, 192, 0, 2, 2, 0x12, 0x34, 0x56, 0x78, 0, 8, 0x13, 0x2e };
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct queues from = raw_qp(w, a), to = with_receives(b, raw_qp(w, b), 2);
	struct skua_cqe *cqe;

	must(w, b, mac_flow(to.qpn, b->mac));
	memcpy(at(a, a->buf), good, sizeof(good));
	send_from(w, a, &from, sizeof(good));
	cqe = expect_by(w, b, to, sizeof(good));
	assert_int_equal(cqe->flags & (SKUA_CQE_L3_CSUM_OK | SKUA_CQE_L4_CSUM_OK), SKUA_CQE_L3_CSUM_OK | SKUA_CQE_L4_CSUM_OK);
	((uint8_t *)at(a, a->buf))[41] ^= 1;
	send_from(w, a, &from, sizeof(good));
	cqe = expect_by(w, b, to, sizeof(good));
	assert_int_equal(cqe->flags & (SKUA_CQE_L3_CSUM_OK | SKUA_CQE_L4_CSUM_OK), SKUA_CQE_L3_CSUM_OK);
}

static void flows_live_as_long_as_their_qp(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct queues from = raw_qp(w, a), to = with_receives(b, raw_qp(w, b), 1), port;
	struct skua_cmd cmd;
	uint32_t number = must(w, b, mac_flow(to.qpn, b->mac)), sniffing = sniffer(w, b, to.qpn);

	eth_queues(w, b);
	port = (struct queues){ .qpn = b->qpn };
	post_recv(b, b->buf, SLOT);
	must(w, b, object_cmd(SKUA_CMD_DESTROY_FLOW, sniffing));
	must(w, b, state_cmd(to.qpn, SKUA_QPS_RESET));
	send_to(w, a, &from, b->mac);
	expect_none(w, b);
	assert_int_equal(STAT(w, b, rx_no_buffer), 1);
	for (uint8_t s = SKUA_QPS_INIT; s <= SKUA_QPS_RTR; s++)
		must(w, b, state_cmd(to.qpn, s));
	send_to(w, a, &from, b->mac);
	expect_by(w, b, to, FRAME);
	sniffing = sniffer(w, b, to.qpn);
	must(w, b, object_cmd(SKUA_CMD_DESTROY_QP, to.qpn));
	send_to(w, a, &from, b->mac);
	expect_by(w, b, port, FRAME);
	cmd = object_cmd(SKUA_CMD_DESTROY_FLOW, number);
	assert_int_equal(command(w, b, &cmd), SKUA_CMD_BAD_OBJECT);
	cmd = object_cmd(SKUA_CMD_DESTROY_FLOW, sniffing);
	assert_int_equal(command(w, b, &cmd), SKUA_CMD_BAD_OBJECT);
}

static void reset_ends_them(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct queues from = raw_qp(w, a), to = raw_qp(w, b);
	struct skua_cmd cmd;
	uint32_t number;

	number = must(w, b, mac_flow(to.qpn, b->mac));
	default_flow(w, b, to.qpn);
	sniffer(w, b, to.qpn);
	revive(w, b);
	cmd = object_cmd(SKUA_CMD_DESTROY_FLOW, number);
	assert_int_equal(command(w, b, &cmd), SKUA_CMD_BAD_OBJECT);
	eth_queues(w, b);
	post_recv(b, b->buf, SLOT);
	send_to(w, a, &from, b->mac);
	expect(w, b, SKUA_CQE_RECV, SKUA_CQE_SUCCESS);
	expect_none(w, b);
}

/* Of the flow that the frame came by: to a QP, spread, copied, by default, looped back. */
static void completions_have_the_tag_of_the_flow(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct queues from = raw_qp(w, a), to = with_receives(b, raw_qp(w, b), 8);
	struct queues here = with_receives(a, raw_qp(w, a), 2);
	struct skua_cmd rss = CMD(SKUA_CMD_CREATE_RSS), cmd;
	uint32_t normal;

	cmd = mac_flow(to.qpn, b->mac);
	cmd.flow.tag = htole32(0xffffffff);
	normal = must(w, b, cmd);
	send_to(w, a, &from, b->mac);
	assert_int_equal(le32toh(expect_by(w, b, to, FRAME)->flow_tag), 0xffffffff);
	must(w, b, object_cmd(SKUA_CMD_DESTROY_FLOW, normal));
	rss.rss.qpn[0] = htole32(to.qpn);
	cmd.flow.qpn = 0;
	cmd.flow.rssn = htole32(must(w, b, rss));
	cmd.flow.tag = htole32(7);
	normal = must(w, b, cmd);
	send_to(w, a, &from, b->mac);
	assert_int_equal(le32toh(expect_by(w, b, to, FRAME)->flow_tag), 7);
	must(w, b, object_cmd(SKUA_CMD_DESTROY_FLOW, normal));
	cmd = flow_cmd(to.qpn, SKUA_FLOW_SNIFFER);
	cmd.flow.tag = htole32(8);
	normal = must(w, b, cmd);
	cmd.flow.type = SKUA_FLOW_DEFAULT;
	cmd.flow.tag = htole32(9);
	must(w, b, cmd);
	send_to(w, a, &from, b->mac);
	assert_int_equal(le32toh(expect_by(w, b, to, FRAME)->flow_tag), 8);
	assert_int_equal(le32toh(expect_by(w, b, to, FRAME)->flow_tag), 9);
	must(w, b, object_cmd(SKUA_CMD_DESTROY_FLOW, normal));
	must(w, b, mac_flow(to.qpn, b->mac));
	send_to(w, a, &from, b->mac);
	assert_int_equal(expect_by(w, b, to, FRAME)->flow_tag, 0);
	cmd = mac_flow(here.qpn, group);
	cmd.flow.tag = htole32(10);
	must(w, a, cmd);
	send_to(w, a, &from, group);
	assert_int_equal(le32toh(expect_by(w, a, here, FRAME)->flow_tag), 10);
}

static void no_irq(void *host, unsigned int vector)
{
	(void)host;
	(void)vector;
}

/* A third device sends to b, and a has a flow for b's MAC. */
static void what_is_a_neighbours_stays_so(void **state)
{
	static const struct skua_host_ops ops = { .raise_irq = no_irq };
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_dev_config config = { .name = "c", .mac = { 2, 0, 0, 0, 0, 3 }, .link = "wire:t" };
	struct skua_dev *c = skua_dev_create(a->engine, &config, &ops, NULL);
	struct queues thief = with_receives(a, raw_qp(w, a), 4), owner = with_receives(b, raw_qp(w, b), 4);
	uint8_t frame[60] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 3, 0x88, 0xb5 };
	struct seglist bytes = { .n = 1, .bytes = sizeof(frame), .seg = { { frame, sizeof(frame) } } };

	must(w, a, mac_flow(thief.qpn, b->mac));
	sniffer(w, a, thief.qpn);
	default_flow(w, a, thief.qpn);
	must(w, b, mac_flow(owner.qpn, b->mac));
	assert_int_equal(port_send_frame(c->port, &bytes), PORT_SENT);
	settle(w);
	expect_by(w, b, owner, sizeof(frame));
	expect_none(w, a);
	skua_dev_destroy(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STEPPED(frames_go_from_program_to_program, "RAW-1 RAW-5 RAW-7"),
		STEPPED(it_has_no_privilege, "RAW-1 SEC-1 SEC-3"),
		STEPPED(a_pinned_port_sends_from_its_mac_only, "RAW-2 PRT-7"),
		STEPPED(without_the_feature_there_is_none, "FEA-2 QP-3"),
		STEPPED(other_types_stay_privileged, "QP-3"),
		STEPPED(each_field_is_compared, "RAW-3 RAW-4"),
		STEPPED(whole_keys_are_compared, "RAW-3 RAW-4"),
		STEPPED(flows_that_are_refused, "RAW-5 RAW-6 CMD-11"),
		STEPPED(an_srq_is_refused, "RAW-1"),
		STEPPED(as_many_flows_as_there_are, "RAW-5 LIM-1"),
		STEPPED(as_many_sniffers_as_there_are, "RAW-5 RAW-8 LIM-1"),
		STEPPED(rdma_comes_before_flows, "RAW-7 ETH-9"),
		STEPPED(flows_decide_in_order, "RAW-7 ETH-7"),
		STEPPED(other_mac_than_the_ports, "RAW-7"),
		STEPPED(no_second_choice, "RAW-7"),
		STEPPED(flows_need_a_port, "RAW-7 RAW-8"),
		STEPPED(longer_than_the_mtu, "RAW-7 ETH-11"),
		STEPPED(sniffers_get_copies, "RAW-8"),
		STEPPED(sniffers_see_rdma, "RAW-8"),
		STEPPED(the_solicited_bit, "ORD-6"),
		STEPPED(frames_loop_back, "RAW-9 ETH-6"),
		STEPPED(who_gets_no_frame_back, "RAW-8 RAW-9 ETH-6"),
		STEPPED(no_rdma_to_oneself, "RAW-9"),
		STEPPED(nothing_loops_without_a_port, "RAW-9 ETH-3"),
		STEPPED(a_frame_loops_once, "RAW-9"),
		STEPPED(no_hash_by_a_flow, "RAW-10"),
		STEPPED(checksums_are_verified, "RAW-1 ETH-12"),
		STEPPED(flows_live_as_long_as_their_qp, "RAW-11"),
		STEPPED(completions_have_the_tag_of_the_flow, "RAW-16"),
		STEPPED(reset_ends_them, "RAW-11 RST-1"),
		STEPPED(what_is_a_neighbours_stays_so, "RAW-12 SEC-9"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
