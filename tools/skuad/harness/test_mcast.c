// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Multicast: groups and their limits, what is delivered to whom, and what is dropped. */
#include "core/device.h"
#include "harness/datagram.h"
#include "packet/packet.h"

#define HEADER	SKUA_UD_HEADER

static const uint8_t group4[16] = { [10] = 255, [11] = 255, 239, 129, 2, 3 };
static const uint8_t group6[16] = { 0xff, 0x0e, [12] = 1, 2, 3, 4 };
static const uint8_t *const groups[] = { group4, group6 };

static int setup_mcast(bool threaded, void **state)
{
	struct world *w = world_create(threaded);
	static const uint8_t gid[16] = { 0x20, 1, 0xd, 0xb8, [15] = 1 };

	for (int i = 0; i < 2; i++) {
		ud_queues(w, &w->n[i], SKUA_QPT_UD, SKUA_QPS_RTS);
		set_gid(w, &w->n[i], 1, gid, w->n[i].mac, SKUA_VLAN_NONE);
	}
	*state = w;
	return 0;
}

static int setup_one_engine(void **state)
{
	return setup_mcast(false, state);
}

static int setup_two_engines(void **state)
{
	return setup_mcast(true, state);
}

static struct skua_cmd mcast_cmd(uint16_t opcode, uint32_t qpn, const uint8_t *mgid)
{
	struct skua_cmd cmd = CMD(opcode, .mcast = { .qpn = htole32(qpn) });

	memcpy(cmd.mcast.mgid, mgid, 16);
	return cmd;
}

static int attach(struct world *w, struct node *n, uint32_t qpn, const uint8_t *mgid)
{
	struct skua_cmd cmd = mcast_cmd(SKUA_CMD_ATTACH_MCAST, qpn, mgid);

	return command(w, n, &cmd);
}

static int detach(struct world *w, struct node *n, uint32_t qpn, const uint8_t *mgid)
{
	struct skua_cmd cmd = mcast_cmd(SKUA_CMD_DETACH_MCAST, qpn, mgid);

	return command(w, n, &cmd);
}

static struct skua_wqe_ud to_group(const uint8_t *mgid)
{
	struct skua_wqe_ud to = ud_to_group(mgid);

	to.av.sgid_index = mgid == group6;
	return to;
}

static void attaching(void **state)
{
	static const uint8_t not_groups[][16] = {
		{ 0 }, { 0xfe, 0x80, [15] = 1 }, { [10] = 255, [11] = 255, 192, 0, 2, 1 },
		{ [10] = 255, [11] = 255, 223, 255, 255, 255 }, { [10] = 255, [11] = 255, 240 },
		{ [11] = 255, 239, 1, 1, 1 },
	};
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint32_t qpn = n->qpn;
	struct skua_cmd cmd;

	for (size_t i = 0; i < sizeof(not_groups) / 16; i++) {
		assert_int_equal(attach(w, n, qpn, not_groups[i]), SKUA_CMD_BAD_PARAM);
		assert_int_equal(detach(w, n, qpn, not_groups[i]), SKUA_CMD_BAD_PARAM);
	}
	assert_int_equal(attach(w, n, qpn ^ 1, group4), SKUA_CMD_BAD_OBJECT);
	assert_int_equal(detach(w, n, qpn, group4), SKUA_CMD_BAD_OBJECT);
	cmd = mcast_cmd(SKUA_CMD_ATTACH_MCAST, qpn, group4);
	cmd.mcast.rsvd0 = 1;
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_BAD_PARAM);
	cmd.mcast.rsvd0 = 0;
	cmd.mcast.rsvd1[199] = 1;
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_BAD_PARAM);
	/* Twice is once. */
	assert_int_equal(attach(w, n, qpn, group4), SKUA_CMD_OK);
	assert_int_equal(attach(w, n, qpn, group4), SKUA_CMD_OK);
	assert_int_equal(attach(w, n, qpn, group6), SKUA_CMD_OK);
	assert_int_equal(detach(w, n, qpn, group4), SKUA_CMD_OK);
	assert_int_equal(detach(w, n, qpn, group4), SKUA_CMD_BAD_OBJECT);
	assert_int_equal(detach(w, n, qpn, group6), SKUA_CMD_OK);
	/* Other types may not; any state may. */
	ud_queues(w, n, SKUA_QPT_GSI, SKUA_QPS_INIT);
	assert_int_equal(attach(w, n, 1, group4), SKUA_CMD_BAD_PARAM);
	new_queues(n);
	assert_int_equal(attach(w, n, must(w, n, create_qp_cmd(n)), group4), SKUA_CMD_BAD_PARAM);
	for (uint8_t s = SKUA_QPS_RESET; s <= SKUA_QPS_SQD; s++) {
		ud_queues(w, n, SKUA_QPT_UD, s);
		assert_int_equal(attach(w, n, n->qpn, group4), SKUA_CMD_OK);
	}
}

static void the_feature_is_needed(void **state)
{
	struct world *w = world_create_with(false, ~(1ull << SKUA_F_UD));
	struct node *n = &w->n[0];
	struct skua_device_caps *caps;

	(void)state;
	assert_int_equal(attach(w, n, n->qpn, group4), SKUA_CMD_BAD_OPCODE);
	assert_int_equal(detach(w, n, n->qpn, group4), SKUA_CMD_BAD_OPCODE);
	caps = query(w, n, (struct skua_cmd)CMD(SKUA_CMD_QUERY_DEVICE), sizeof(*caps));
	assert_int_equal(caps->max_mcast_groups, 0);
	world_destroy(w);
}

/* As many as the limits say, and not one more; destroying makes room. */
static void limits(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_device_caps caps, *p = query(w, n, (struct skua_cmd)CMD(SKUA_CMD_QUERY_DEVICE),
						 sizeof(*p));
	struct skua_cmd bare = create_qp_cmd(n);
	uint32_t first = n->qpn, last = 0, qpns[2];
	uint8_t mgid[16];

	caps = *p;
	bare.create_qp = (struct skua_cmd_create_qp){
		.type = SKUA_QPT_UD, .pdn = htole32(n->pdn), .send_cqn = htole32(n->cqn),
		.recv_cqn = htole32(n->cqn) };
	memcpy(mgid, group6, 16);
	for (uint32_t i = 0; i < le32toh(caps.max_mcast_groups); i++) {
		memcpy(mgid + 12, &i, 4);
		assert_int_equal(attach(w, n, first, mgid), SKUA_CMD_OK);
	}
	mgid[11]++;
	assert_int_equal(attach(w, n, first, mgid), SKUA_CMD_NO_RESOURCE);
	mgid[11]--;
	for (uint32_t i = 1; i < le32toh(caps.max_mcast_qps); i++) {
		last = must(w, n, bare);
		assert_int_equal(attach(w, n, last, mgid), SKUA_CMD_OK);
	}
	qpns[0] = must(w, n, bare);
	assert_int_equal(attach(w, n, qpns[0], mgid), SKUA_CMD_NO_RESOURCE);
	/* Again is no more. */
	assert_int_equal(attach(w, n, last, mgid), SKUA_CMD_OK);
	must(w, n, object_cmd(SKUA_CMD_DESTROY_QP, last));
	assert_int_equal(attach(w, n, qpns[0], mgid), SKUA_CMD_OK);
	/* With its QP go all groups but the one that has others. */
	must(w, n, object_cmd(SKUA_CMD_DESTROY_QP, first));
	for (uint32_t i = 1; i < le32toh(caps.max_mcast_groups); i++) {
		memcpy(mgid + 8, &i, 4);
		assert_int_equal(attach(w, n, qpns[0], mgid), SKUA_CMD_OK);
	}
	mgid[4]++;
	assert_int_equal(attach(w, n, qpns[0], mgid), SKUA_CMD_NO_RESOURCE);
	/* And all of them with the device. */
	revive(w, n);
	ud_queues(w, n, SKUA_QPT_UD, SKUA_QPS_RESET);
	assert_int_equal(attach(w, n, n->qpn, mgid), SKUA_CMD_OK);
}

/* Every QP of the group gets a copy, those of the sender's device and the sender itself too. */
static void everybody_gets_a_copy(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct queues other;

	for (size_t g = 0; g < 2; g++) {
		const uint8_t *mgid = groups[g];
		uint64_t a_mcast = STAT(w, a, rdma_rx_mcast), b_mcast = STAT(w, b, rdma_rx_mcast);
		uint64_t tx = STAT(w, a, rdma_tx_packets);

		other = ud_queues(w, b, SKUA_QPT_UD, SKUA_QPS_RTR);
		assert_int_equal(attach(w, b, b->qpn, mgid), SKUA_CMD_OK);
		post_recv(b, b->buf, 4096);
		other = use_queues(b, other);
		assert_int_equal(attach(w, b, b->qpn, mgid), SKUA_CMD_OK);
		post_recv(b, b->buf + 4096, 4096);
		assert_int_equal(attach(w, a, a->qpn, mgid), SKUA_CMD_OK);
		post_recv(a, a->buf + 4096, 4096);
		fill(a, 777, (uint32_t)g);
		post_ud(a, SKUA_WQE_SEND_IMM, 0, a->buf, 777, to_group(mgid), htobe32(9));
		for (int i = 0; i < 2; i++) {
			struct skua_cqe *cqe = expect_datagram(w, b, HEADER + 777);

			assert_int_equal(le32toh(cqe->src_qpn), a->qpn);
			assert_memory_equal(cqe->smac, a->mac, 6);
			assert_int_equal(cqe->ip_version, g ? 6 : 4);
			assert_int_equal(cqe->imm_data, htobe32(9));
			assert_memory_equal(at(b, b->buf + 4096 * (uint64_t)i + HEADER), at(a, a->buf), 777);
		}
		assert_int_equal(le32toh(expect_datagram(w, a, HEADER + 777)->qpn), a->qpn);
		assert_memory_equal(at(a, a->buf + 4096 + HEADER), at(a, a->buf), 777);
		/* The header's destination is the group. */
		assert_memory_equal((uint8_t *)at(b, b->buf) + (g ? 24 : 36), mgid + (g ? 0 : 12), g ? 16 : 4);
		expect_none(w, a);
		expect_none(w, b);
		assert_int_equal(STAT(w, a, rdma_rx_mcast) - a_mcast, 1);
		assert_int_equal(STAT(w, b, rdma_rx_mcast) - b_mcast, 1);
		assert_int_equal(STAT(w, a, rdma_tx_packets) - tx, 1);
		assert_int_equal(detach(w, b, other.qpn, mgid), SKUA_CMD_OK);
		assert_int_equal(detach(w, b, b->qpn, mgid), SKUA_CMD_OK);
		assert_int_equal(detach(w, a, a->qpn, mgid), SKUA_CMD_OK);
	}
}

/* Each copy has its own fate. */
static void each_qp_for_itself(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_wqe_ud to = to_group(group4);
	struct queues q[5];

	for (int i = 0; i < 5; i++) {
		ud_queues(w, b, SKUA_QPT_UD, i == 3 ? SKUA_QPS_INIT : SKUA_QPS_RTS);
		assert_int_equal(attach(w, b, b->qpn, group4), SKUA_CMD_OK);
		if (i == 0)
			must(w, b, modify_cmd(b->qpn, SKUA_QP_ATTR_QKEY,
					      (struct skua_qp_attr){ .qkey = htole32(1) }));
		if (i != 1)
			post_recv(b, i == 4 ? b->buf + BUF_SIZE : b->buf, 4096);
		q[i] = new_queues(b);
	}
	post_ud(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 8, to, 0);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	for (int i = 0; i < 2; i++) {
		struct skua_cqe *cqe = await_cqe(w, b);
		bool good = cqe->status == SKUA_CQE_SUCCESS;

		assert_int_equal(le32toh(cqe->qpn), q[good ? 2 : 4].qpn);
	}
	expect_none(w, b);
	assert_int_equal(STAT(w, b, rdma_rx_bad_qkey), 1);
	assert_int_equal(STAT(w, b, rdma_rx_no_receive), 1);
	assert_int_equal(STAT(w, b, rdma_rx_bad_qp), 1);
	assert_int_equal(STAT(w, b, rdma_rx_mcast), 1);
	/* RESET leaves it in the group, DESTROY does not. */
	use_queues(b, q[2]);
	ud_bring(w, b, QKEY, SKUA_QPS_RTS);
	post_recv(b, b->buf, 4096);
	post_ud(a, SKUA_WQE_SEND, 0, a->buf, 8, to, 0);
	expect_datagram(w, b, HEADER + 8);
	for (int i = 0; i < 5; i++)
		must(w, b, object_cmd(SKUA_CMD_DESTROY_QP, q[i].qpn));
	post_ud(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 8, to, 0);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	assert_int_equal(STAT(w, b, rdma_rx_mcast), 2);
}

/* A packet from a's host, as bytes. */
static void send_packet(struct node *a, const struct train *t, int flip)
{
	uint8_t *p = at(a, a->buf + 65536);
	size_t len = roce_packet_build(p, t, 0);

	if (flip)
		p[len - 1] ^= 1;
	post(a, SKUA_WQE_SEND, 0, a->buf + 65536, (uint32_t)len, 0, 0, 0);
}

static void what_is_rdma(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_wqe_ud to = to_group(group4);
	struct roce_path path = { .vlan = SKUA_VLAN_NONE, .hop_limit = 1, .sport = 0xc000 };
	struct train t = datagram(b);
	struct queues udq;
	uint64_t frames;

	memcpy(path.sgid, a->gid, 16);
	memcpy(path.dgid, group4, 16);
	memcpy(path.smac, a->mac, 6);
	memcpy(path.dmac, to.av.dmac, 6);
	t.dest_qpn = 0xffffff;
	t.path = &path;
	eth_queues(w, a);
	udq = eth_queues(w, b);
	for (int i = 0; i < 20; i++)
		post_recv(b, b->buf + 8192, 4096);

	/* Without members it is a frame as any other. */
	send_packet(a, &t, 0);
	assert_int_equal(await_cqe(w, b)->status, SKUA_CQE_SUCCESS);
	assert_int_equal(STAT(w, b, rx_frames), 1);
	assert_int_equal(attach(w, b, udq.qpn, group4), SKUA_CMD_OK);
	frames = STAT(w, b, rx_frames);
	udq = use_queues(b, udq);
	post_recv(b, b->buf, 4096);
	udq = use_queues(b, udq);
	send_packet(a, &t, 0);
	expect_datagram(w, b, HEADER);
	expect_none(w, b);

	/* Another group's MAC, a VLAN that no entry has: the host's. */
	path.dmac[5]++;
	send_packet(a, &t, 0);
	assert_true(le32toh(await_cqe(w, b)->byte_len) >= 60);
	path.dmac[5]--;
	path.dmac[3] |= 0x80;
	send_packet(a, &t, 0);
	await_cqe(w, b);
	path.dmac[3] &= 0x7f;
	path.vlan = 9;
	send_packet(a, &t, 0);
	await_cqe(w, b);
	path.vlan = SKUA_VLAN_NONE;
	memcpy(path.dmac, b->mac, 6);		/* the group's address, but to b alone */
	send_packet(a, &t, 0);
	await_cqe(w, b);
	assert_int_equal(STAT(w, b, rx_frames) - frames, 4);
	assert_int_equal(STAT(w, b, rdma_rx_mcast), 1);
	memcpy(path.dmac, to.av.dmac, 6);

	/* RDMA's, and dropped for what is wrong with them. */
	send_packet(a, &t, 1);
	settle(w);
	assert_int_equal(STAT(w, b, rdma_rx_bad_icrc), 1);
	t.dest_qpn = udq.qpn;			/* a QP's own number */
	send_packet(a, &t, 0);
	settle(w);				/* before the next one takes its place */
	assert_int_equal(STAT(w, b, rdma_rx_bad_packet), 1);
	t.dest_qpn = 0xffffff;
	t.transport = TRANSPORT_RC;
	send_packet(a, &t, 0);
	settle(w);
	assert_int_equal(STAT(w, b, rdma_rx_bad_packet), 2);
	expect_none(w, b);
	assert_int_equal(STAT(w, b, rx_frames) - frames, 4);
	assert_int_equal(STAT(w, b, rdma_rx_mcast), 1);
	assert_int_equal(STAT(w, b, rdma_tx_packets), 0);

	/* In the VLAN of an entry; and with PORT_F_ROCE off it is the host's again. */
	set_gid(w, b, 7, b->gid, b->mac, 9);
	path.vlan = 9;
	t.transport = TRANSPORT_UD;
	send_packet(a, &t, 0);
	settle(w);
	assert_int_equal(STAT(w, b, rdma_rx_no_receive), 1);
	must(w, b, port_cmd(SKUA_PORT_SET_FLAGS, SKUA_PORT_F_ENABLE));
	send_packet(a, &t, 0);
	await_cqe(w, b);
}

/* Nothing goes out while the port is off, nor to oneself. */
static void a_port_that_is_off(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];

	assert_int_equal(attach(w, a, a->qpn, group4), SKUA_CMD_OK);
	post_recv(a, a->buf, 4096);
	must(w, a, port_cmd(SKUA_PORT_SET_FLAGS, SKUA_PORT_F_ROCE));
	post_ud(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 8, to_group(group4), 0);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	expect_none(w, a);
	assert_int_equal(STAT(w, a, rdma_rx_mcast), 0);
}

/* From one engine to the other and back, while QPs come and go. */
static void between_engines(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct queues fixed = { 0 };

	for (int i = 0; i < 2; i++)
		assert_int_equal(attach(w, &w->n[i], w->n[i].qpn, group6), SKUA_CMD_OK);
	for (uint32_t i = 0; i < 500; i++) {
		struct node *from = &w->n[i & 1];

		fill(from, 600, i);
		post_recv(a, a->buf + 4096, 4096);
		post_recv(b, b->buf + 4096, 4096);
		post_ud(from, SKUA_WQE_SEND, 0, from->buf, 600, to_group(group6), 0);
		for (int j = 0; j < 2; j++) {
			expect_datagram(w, &w->n[j], HEADER + 600);
			assert_memory_equal(at(&w->n[j], w->n[j].buf + 4096 + HEADER),
					    at(from, from->buf), 600);
		}
		if (i % 50)
			continue;
		fixed = ud_queues(w, b, SKUA_QPT_UD, SKUA_QPS_RTS);
		assert_int_equal(attach(w, b, b->qpn, group6), SKUA_CMD_OK);
		must(w, b, object_cmd(SKUA_CMD_DESTROY_QP, b->qpn));
		use_queues(b, fixed);
	}
}

#define ONE(f, rules)	{ rules ": " #f, f, setup_one_engine, teardown, NULL }
#define TWO(f, rules)	{ rules ": " #f, f, setup_two_engines, teardown, NULL }

/* Copies that one step of the engine may make: a turn of each node, and one datagram more. */
#define MEMBERS		200u
#define COPIES_A_STEP	(2 * TURN_COST / COPY_COST + 2 * MEMBERS)

/* Each member is served in the sender's turn, and counts. A neighbour has its own meanwhile. */
static void copies_count_against_the_turn(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint64_t before, now, total = 0;

	ud_join(w, a, MEMBERS, group4);
	settle(w);
	for (int i = 0; i < 100; i++)
		post_ud(a, SKUA_WQE_SEND, 0, a->buf, 64, to_group(group4), 0);
	for (int steps = 0; steps < 10000 && total < 100 * MEMBERS; steps++) {
		before = a->dev->stats.rdma_rx_no_receive;
		if (steps == 10)
			post_ud(b, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, b->buf, 64, ud_to(a), 0);
		engine_step(w->engines[0]);
		now = a->dev->stats.rdma_rx_no_receive;
		assert_true(now - before <= COPIES_A_STEP);
		total += now - before;
		if (steps == 12)
			assert_non_null(poll_cq(b));
	}
	assert_true(total >= 100 * MEMBERS);
}

/* So does what comes from another engine. */
static void copies_from_another_engine_count_against_the_turn(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint64_t before, now = 0;

	ud_join(w, b, MEMBERS, group4);
	end_engine(w, 1);
	for (int i = 0; i < 32; i++)
		post_ud(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 64, to_group(group4), 0);
	for (int i = 0; i < 32; i++)
		expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	while (now < 32 * MEMBERS) {
		before = now;
		assert_true(engine_step(w->engines[1]));
		now = b->dev->stats.rdma_rx_no_receive;
		assert_true(now - before <= TURN_COST / COPY_COST + MEMBERS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ONE(attaching, "MCG-1 CMD-11"),
		{ "FEA-2: the_feature_is_needed", the_feature_is_needed, NULL, NULL, NULL },
		ONE(limits, "MCG-2 LIM-1"),
		ONE(everybody_gets_a_copy, "MCG-4 MCG-5 UD-1"),
		ONE(each_qp_for_itself, "MCG-2 MCG-4 UD-6"),
		ONE(what_is_rdma, "MCG-3 MCG-4 ETH-9 ROC-16"),
		ONE(a_port_that_is_off, "MCG-5 UD-4"),
		ONE(copies_count_against_the_turn, "SEC-8 MCG-4"),
		TWO(copies_from_another_engine_count_against_the_turn, "SEC-8 MCG-4"),
		TWO(between_engines, "MCG-4 MCG-5"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
