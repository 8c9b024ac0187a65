// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* ETH QPs: frames out and in, what becomes of bad ones, checksums, and spreading. */
#include <unistd.h>

#include "harness/datagram.h"
#include "nic/control.h"
#include "packet/packet.h"

#define ETH_MTU	1500
#define SLOT	16384u		/* of the memory region, for one received frame */

/* A frame in the first slot of @n: @len bytes of a pattern from @from to @to, of no known type. */
static uint8_t *make_frame(struct node *n, const uint8_t *to, const uint8_t *from, uint32_t len)
{
	uint8_t *p = at(n, n->buf);

	fill(n, len, len);
	memcpy(p, to, 6);
	memcpy(p + 6, from, 6);
	memcpy(p + 12, (uint8_t[2]){ 0x88, 0xb5 }, 2);
	return p;
}

/* UDP over IPv4 from port @sport to the peer's address and @dport, without a checksum. */
static uint8_t *make_udp(struct node *n, const struct node *peer, uint16_t sport, uint16_t dport,
			 uint16_t len)
{
	uint8_t *p = make_frame(n, peer->mac, n->mac, len);
	uint8_t headers[30] = { 8, 0, 0x45, 0, (uint8_t)((len - 14) >> 8), (uint8_t)(len - 14), 0, 0,
		0, 0, 64, 17, 0, 0, 192, 0, 2, n->mac[5], 192, 0, 2, peer->mac[5],
		(uint8_t)(sport >> 8), (uint8_t)sport, (uint8_t)(dport >> 8), (uint8_t)dport,
		(uint8_t)((len - 34) >> 8), (uint8_t)(len - 34), 0, 0 };

	memcpy(p + 12, headers, sizeof(headers));
	return p;
}

static void send_frame(struct node *n, uint32_t len)
{
	post(n, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, n->buf, len, 0, 0, 0);
}

static void send_csum(struct node *n, uint32_t len, uint16_t start, uint16_t offset)
{
	struct { struct skua_wqe_ctrl c; struct skua_sge s[3]; } wqe = {
		.c = { .opcode = SKUA_WQE_SEND, .flags = SKUA_WQE_SIGNALED | SKUA_WQE_L4_CSUM,
		       .nblocks = 1, .num_sge = 1, .csum_start = htole16(start),
		       .csum_offset = htole16(offset) },
		.s[0] = { htole64(n->buf), htole32(len), htole32(n->key) } };

	post_block(n, &wqe);
}

/* Receives in slots 1 and up. */
static void post_slots(struct node *n, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		post_recv(n, n->buf + (1 + n->rq_pi % 200) * (uint64_t)SLOT, SLOT);
}

static const uint8_t *slot(struct node *n, const struct skua_cqe *cqe)
{
	return at(n, n->buf + (1 + le32toh(cqe->cookie) % 200) * (uint64_t)SLOT);
}

/* The next CQE is a frame that was received, and is @p. */
static struct skua_cqe *expect_frame(struct world *w, struct node *n, const uint8_t *p, uint32_t len)
{
	struct skua_cqe *cqe = await_cqe(w, n);

	assert_int_equal(cqe->opcode, SKUA_CQE_RECV);
	assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
	assert_int_equal(le32toh(cqe->byte_len), len);
	assert_memory_equal(slot(n, cqe), p, len);
	return cqe;
}

static void expect_sent(struct world *w, struct node *n)
{
	expect(w, n, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
}

static void set_port(struct world *w, struct node *n, uint32_t flags)
{
	must(w, n, port_cmd(SKUA_PORT_SET_FLAGS, flags));
}

static int set_mtu(struct world *w, struct node *n, uint32_t mtu)
{
	struct skua_cmd cmd = port_cmd(SKUA_PORT_SET_MTU, 0);

	cmd.set_port.mtu = htole32(mtu);
	return command(w, n, &cmd);
}

static int set_rx_qp(struct world *w, struct node *n, uint32_t qpn)
{
	struct skua_cmd cmd = port_cmd(SKUA_PORT_SET_RX_QP, 0);

	cmd.set_port.rx_qpn = htole32(qpn);
	return command(w, n, &cmd);
}

/* Both nodes with an ETH QP that sends and receives. */
static void both_eth(struct world *w)
{
	eth_queues(w, &w->n[0]);
	eth_queues(w, &w->n[1]);
}

static void frames_arrive_as_they_were_sent(void **state)
{
	static const uint32_t lens[] = { 14, 15, 59, 60, 64, 511, 1514, ETH_MTU + 18 };
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint64_t bytes = 0;

	both_eth(w);
	post_slots(b, 8);
	for (unsigned int i = 0; i < 8; i++) {
		uint8_t *p = make_frame(a, b->mac, a->mac, lens[i]);
		struct skua_cqe *cqe;

		if (i & 1)
			memcpy(p + 12, (uint8_t[4]){ 0x81, 0, 0xf0, 5 }, lens[i] >= 16 ? 4 : 2);
		send_frame(a, lens[i]);
		expect_sent(w, a);
		cqe = expect_frame(w, b, p, lens[i]);
		assert_int_equal(le32toh(cqe->qpn), b->qpn);
		assert_int_equal(le32toh(cqe->cookie), i);
		bytes += lens[i];
	}
	assert_int_equal(STAT(w, a, tx_frames), 8);
	assert_int_equal(STAT(w, a, tx_bytes), bytes);
	assert_int_equal(STAT(w, b, rx_frames), 8);
	assert_int_equal(STAT(w, b, rx_bytes), bytes);
	assert_int_equal(STAT(w, b, rx_no_buffer) + STAT(w, b, rx_dropped), 0);
}

/* In 30 pieces of odd lengths, some of them empty; and inline. */
static void frames_of_pieces(void **state)
{
	struct { struct skua_wqe_ctrl c; struct skua_sge s[31]; } wqe = {
		.c = { .opcode = SKUA_WQE_SEND, .flags = SKUA_WQE_SIGNALED, .nblocks = 8, .num_sge = 30 } };
	struct { struct skua_wqe_ctrl c; uint8_t data[112]; } in = {
		.c = { .opcode = SKUA_WQE_SEND, .flags = SKUA_WQE_SIGNALED | SKUA_WQE_INLINE,
		       .nblocks = 2, .length = htole32(101) } };
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	const uint8_t *p = make_frame(a, b->mac, a->mac, 1500);
	uint32_t len = 0;

	both_eth(w);
	post_slots(b, 2);
	for (uint32_t i = 0; i < 30; i++) {
		uint32_t piece = i % 7 == 3 ? 0 : 1 + i * 3;

		wqe.s[i] = (struct skua_sge){ htole64(a->buf + len), htole32(piece), htole32(a->key) };
		len += piece;
	}
	post_blocks(a, &wqe, 8);
	expect_sent(w, a);
	expect_frame(w, b, p, len);
	memcpy(in.data, p, 101);
	post_blocks(a, &in, 2);
	expect_sent(w, a);
	expect_frame(w, b, p, 101);
}

static void set_link(void *arg)
{
	struct node *n = arg;

	skua_dev_set_link(n->dev, !((const struct skua_port_attr *)at(n, n->buf))->link_up);
}

/* The other state of the link, by what the port says now. */
static void flip_link(struct world *w, struct node *n)
{
	struct skua_cmd cmd = CMD(SKUA_CMD_QUERY_PORT);

	cmd.hdr.port = 1;
	memcpy(at(n, n->buf), query(w, n, cmd, 64), 64);
	on_engine(n, set_link, n);
	settle(w);
}

static void without_a_wire_frames_go_nowhere(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	both_eth(w);
	post_slots(b, 4);
	set_port(w, a, 0);
	make_frame(a, b->mac, a->mac, 100);
	send_frame(a, 100);
	expect_sent(w, a);
	set_port(w, a, SKUA_PORT_F_ENABLE);
	flip_link(w, a);
	make_frame(a, b->mac, a->mac, 100);
	send_frame(a, 100);
	expect_sent(w, a);
	assert_int_equal(STAT(w, a, tx_frames), 0);
	assert_int_equal(STAT(w, a, tx_bytes), 0);
	flip_link(w, a);
	flip_link(w, b);
	make_frame(a, b->mac, a->mac, 100);
	send_frame(a, 100);
	expect_sent(w, a);
	expect_none(w, b);
	flip_link(w, b);
	set_port(w, b, 0);
	send_frame(a, 100);
	expect_sent(w, a);
	expect_none(w, b);
	assert_int_equal(STAT(w, b, rx_dropped) + STAT(w, b, rx_no_buffer), 0);
	/* And all is well again; those that nobody took were sent. */
	set_port(w, b, SKUA_PORT_F_ENABLE);
	send_frame(a, 100);
	expect_sent(w, a);
	expect_frame(w, b, at(a, a->buf), 100);
	assert_int_equal(STAT(w, a, tx_frames), 3);
}

static void the_link_tells_of_its_changes(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];

	flip_link(w, a);
	expect_event(w, a, SKUA_EVENT_PORT_DOWN, 1);
	flip_link(w, a);
	expect_event(w, a, SKUA_EVENT_PORT_UP, 1);
	expect_no_event(w, a);
}

static void a_frame_of_a_bad_length_is_an_error(void **state)
{
	static const uint32_t bad[] = { 0, 13, ETH_MTU + 19, 9018, 65536, 1 << 20 };

	(void)state;
	for (unsigned int i = 0; i < 6; i++) {
		struct world *w = world_create(false);
		struct node *a = &w->n[0], *b = &w->n[1];

		both_eth(w);
		post_slots(b, 1);
		send_frame(a, bad[i]);
		expect_vendor(w, a, SKUA_CQE_SEND, SKUA_CQE_LOC_LEN_ERR, SKUA_VENDOR_ERR_MSG_TOO_LONG);
		assert_int_equal(qp_state(w, a, a->qpn), SKUA_QPS_ERR);
		expect_none(w, b);
		world_destroy(w);
	}
}

static void jumbo_frames(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	const uint8_t *p;

	both_eth(w);
	assert_int_equal(set_mtu(w, a, 9001), SKUA_CMD_BAD_PARAM);
	assert_int_equal(set_mtu(w, a, 67), SKUA_CMD_BAD_PARAM);
	assert_int_equal(set_mtu(w, a, 9000), SKUA_CMD_OK);
	post_slots(b, 2);
	p = make_frame(a, b->mac, a->mac, 9018);
	send_frame(a, 9018);
	expect_sent(w, a);
	send_frame(a, ETH_MTU + 19);
	expect_sent(w, a);
	/* The receiver's own MTU is what counts for it. */
	expect_none(w, b);
	assert_int_equal(STAT(w, b, rx_dropped), 2);
	assert_int_equal(set_mtu(w, b, 9000), SKUA_CMD_OK);
	send_frame(a, 9018);
	expect_sent(w, a);
	expect_frame(w, b, p, 9018);
}

/* As the manual's sum says, over the bytes as they came. */
static bool sum_is_right(const uint8_t *p, uint32_t len)
{
	uint32_t sum = 17 + len - 34;

	for (uint32_t i = 26; i < len; i++)
		sum += (uint32_t)p[i] << (i & 1 ? 0 : 8);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff;
}

static void put_pseudo_sum(uint8_t *p, uint32_t len)
{
	uint32_t sum = 17 + len - 34;

	for (uint32_t i = 26; i < 34; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	p[40] = (uint8_t)(sum >> 8);
	p[41] = (uint8_t)sum;
}

static void checksums_are_filled_in_and_checked(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	both_eth(w);
	post_slots(b, 60);
	for (uint16_t len = 42; len < 100; len++) {
		uint8_t *p = make_udp(a, b, len, 9, len), before[100];
		struct skua_cqe *cqe;

		put_pseudo_sum(p, len);
		memcpy(before, p, len);
		send_csum(a, len, 34, 6);
		expect_sent(w, a);
		assert_memory_equal(p, before, len);
		cqe = await_cqe(w, b);
		assert_int_equal(le32toh(cqe->byte_len), len);
		assert_true(sum_is_right(slot(b, cqe), len));
		assert_int_equal(cqe->flags & SKUA_CQE_L4_CSUM_OK, SKUA_CQE_L4_CSUM_OK);
		assert_int_equal(cqe->flags & SKUA_CQE_L3_CSUM_OK, 0);
		assert_memory_equal(slot(b, cqe), before, 40);
		assert_memory_equal(slot(b, cqe) + 42, before + 42, len - 42);
	}
	/* A checksum that is wrong arrives as it is, and is not vouched for. */
	make_udp(a, b, 1, 9, 77)[41] = 1;
	send_frame(a, 77);
	expect_sent(w, a);
	assert_int_equal(expect_frame(w, b, at(a, a->buf), 77)->flags & SKUA_CQE_L4_CSUM_OK, 0);
}

static void the_checksum_of_the_ipv4_header(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint8_t *p;

	both_eth(w);
	post_slots(b, 2);
	p = make_udp(a, b, 1, 9, 60);
	memcpy(p + 24, (uint8_t[2]){ 0xf6, 0xbb }, 2);
	for (int good = 1; good >= 0; good--, p[24]++) {
		send_frame(a, 60);
		expect_sent(w, a);
		assert_int_equal(!!(expect_frame(w, b, p, 60)->flags & SKUA_CQE_L3_CSUM_OK), good);
	}
}

static void a_bad_place_of_the_checksum_is_an_error(void **state)
{
	static const struct { uint16_t start, offset; } bad[] = {
		{ 99, 0 }, { 34, 65 }, { 100, 0 }, { 65535, 65535 }, { 65534, 2 }, { 0, 99 },
	};

	(void)state;
	for (unsigned int i = 0; i < 6; i++) {
		struct world *w = world_create(false);
		struct node *a = &w->n[0], *b = &w->n[1];

		both_eth(w);
		post_slots(b, 2);
		make_frame(a, b->mac, a->mac, 100);
		send_csum(a, 100, 98, 0);
		expect_sent(w, a);
		expect(w, b, SKUA_CQE_RECV, SKUA_CQE_SUCCESS);
		send_csum(a, 100, bad[i].start, bad[i].offset);
		expect_vendor(w, a, SKUA_CQE_SEND, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_FORMAT);
		assert_int_equal(qp_state(w, a, a->qpn), SKUA_QPS_ERR);
		expect_none(w, b);
		world_destroy(w);
	}
}

static void the_checksum_is_for_frames_only(void **state)
{
	struct skua_wqe_ctrl wqe[4] = { { .opcode = SKUA_WQE_NOP, .nblocks = 1,
					  .flags = SKUA_WQE_SIGNALED | SKUA_WQE_L4_CSUM } };

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct world *w = world_create(false);
		struct node *a = &w->n[0];

		if (i)
			eth_queues(w, a);
		if (i == 2)	/* no flag, but a place */
			post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 100, 0, 0, 34);
		else if (i)
			post_block(a, wqe);
		else
			send_csum(a, 100, 34, 6);
		expect_vendor(w, a, i == 1 ? SKUA_CQE_NOP : SKUA_CQE_SEND, SKUA_CQE_LOC_QP_OP_ERR,
			      SKUA_VENDOR_ERR_WQE_FORMAT);
		world_destroy(w);
	}
}

static void frames_have_no_fence(void **state)
{
	static const uint8_t flags[] = { SKUA_WQE_FENCE, SKUA_WQE_SOLICITED };

	(void)state;
	for (size_t i = 0; i < sizeof(flags); i++) {
		struct world *w = world_create(false);
		struct node *a = &w->n[0];

		eth_queues(w, a);
		post(a, SKUA_WQE_SEND, flags[i], a->buf, 100, 0, 0, 0);
		expect_vendor(w, a, SKUA_CQE_SEND, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_FORMAT);
		world_destroy(w);
	}
}

/* Without the features there is neither the flag, nor the command, nor a word about frames. */
static void features_that_were_not_accepted(void **state)
{
	struct world *w = world_create_with(false, 1 << SKUA_F_EVENT_IDX | 1 << SKUA_F_ETHERNET | 1 << SKUA_F_RC);
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cmd rss = CMD(SKUA_CMD_SET_RSS);
	struct skua_cqe *cqe;
	uint8_t *p;

	(void)state;
	both_eth(w);
	post_slots(b, 1);
	p = make_udp(a, b, 1, 9, 60);
	memcpy(p + 24, (uint8_t[2]){ 0xf6, 0xbb }, 2);
	send_frame(a, 60);
	expect_sent(w, a);
	cqe = expect_frame(w, b, p, 60);
	assert_int_equal(cqe->flags, SKUA_CQE_PHASE);
	assert_int_equal(cqe->rss_hash, 0);
	rss.hdr.port = 1;
	assert_int_equal(command(w, b, &rss), SKUA_CMD_BAD_OPCODE);
	send_csum(a, 60, 34, 6);
	expect_vendor(w, a, SKUA_CQE_SEND, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_FORMAT);
	world_destroy(w);
}

static void a_sender_does_not_hear_itself(void **state)
{
	static const uint8_t broadcast[6] = { 255, 255, 255, 255, 255, 255 }, group[6] = { 1, 0, 94, 0, 0, 1 };
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	both_eth(w);
	post_slots(a, 4);
	post_slots(b, 4);
	set_port(w, a, SKUA_PORT_F_ENABLE | SKUA_PORT_F_PROMISC);
	make_frame(a, broadcast, a->mac, 60);
	send_frame(a, 60);
	expect_sent(w, a);
	expect_frame(w, b, at(a, a->buf), 60);
	make_frame(a, group, a->mac, 60);
	send_frame(a, 60);
	expect_sent(w, a);
	expect_frame(w, b, at(a, a->buf), 60);
	make_frame(a, a->mac, a->mac, 60);
	send_frame(a, 60);
	expect_sent(w, a);
	expect_none(w, a);
	assert_int_equal(STAT(w, a, rx_frames), 0);
	assert_int_equal(STAT(w, a, tx_frames), 3);
}

static void frames_for_others(void **state)
{
	static const uint8_t other[6] = { 2, 0, 0, 0, 0, 99 };
	static const uint8_t groups[][6] = { { 255, 255, 255, 255, 255, 255 }, { 0x33, 0x33, 0, 0, 0, 1 } };
	static const uint32_t flags[] = { 0, SKUA_PORT_F_ALLMULTI };
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	both_eth(w);
	post_slots(b, 6);
	for (unsigned int i = 0; i < 4; i++) {
		set_port(w, b, SKUA_PORT_F_ENABLE | flags[i / 2]);
		make_frame(a, groups[i % 2], a->mac, 60);
		send_frame(a, 60);
		expect_sent(w, a);
		expect_frame(w, b, at(a, a->buf), 60);
	}
	set_port(w, b, SKUA_PORT_F_ENABLE);
	make_frame(a, other, a->mac, 60);
	send_frame(a, 60);
	expect_sent(w, a);
	expect_none(w, b);
	set_port(w, b, SKUA_PORT_F_ENABLE | SKUA_PORT_F_PROMISC);
	send_frame(a, 60);
	expect_sent(w, a);
	expect_frame(w, b, at(a, a->buf), 60);
	assert_int_equal(STAT(w, b, rx_frames), 5);
	assert_int_equal(STAT(w, b, rx_dropped) + STAT(w, b, rx_no_buffer), 0);
}

/* What looks like RDMA and comes as bytes is no frame of the host's, unless it is not for RDMA. */
static void port_4791_is_rdmas(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint8_t *p;

	both_eth(w);
	post_slots(b, 8);
	make_udp(a, b, 9, 4791, 100);
	send_frame(a, 100);
	expect_sent(w, a);
	set_port(w, b, SKUA_PORT_F_ENABLE | SKUA_PORT_F_ROCE | SKUA_PORT_F_PROMISC);
	send_frame(a, 100);
	expect_sent(w, a);
	expect_none(w, b);
	assert_int_equal(STAT(w, b, rdma_rx_packets), 2);
	assert_int_equal(STAT(w, b, rdma_rx_bytes), 200);
	assert_int_equal(STAT(w, b, rdma_rx_bad_packet), 2);
	assert_int_equal(STAT(w, b, rx_frames), 0);
	/* Another port, address, VLAN, MAC, protocol; or no RDMA at all. */
	for (int i = 0; i < 6; i++) {
		p = make_udp(a, b, 9, i == 0 ? 4790 : 4791, 100);
		if (i == 1)
			p[33]++;
		if (i == 2) {
			memmove(p + 16, p + 12, 84);
			memcpy(p + 12, (uint8_t[4]){ 0x81, 0, 0, 1 }, 4);
			p[21] -= 4;
			p[43] -= 4;
		}
		if (i == 3)
			p[5] = 77;
		if (i == 4)
			p[23] = 6;
		if (i == 5)
			set_port(w, b, SKUA_PORT_F_ENABLE);
		send_frame(a, 100);
		expect_sent(w, a);
		expect_frame(w, b, p, 100);
	}
	assert_int_equal(STAT(w, b, rdma_rx_packets), 2);
}

/* The next CQE is a frame that is a packet for QP @qpn, with the first bytes of @payload behind those of before. */
static void expect_packet(struct world *w, struct node *n, uint32_t qpn, const uint8_t *payload, uint32_t len)
{
	struct skua_cqe *cqe = await_cqe(w, n);
	struct roce_packet pkt;

	assert_int_equal(cqe->opcode, SKUA_CQE_RECV);
	assert_int_equal(le32toh(cqe->qpn), n->qpn);
	assert_true(roce_packet_open(&pkt, slot(n, cqe), le32toh(cqe->byte_len)));
	assert_int_equal(roce_packet_parse(&pkt), ROCE_OK);
	assert_int_equal(pkt.train.dest_qpn, qpn);
	assert_int_equal(pkt.payload.bytes, len);
	assert_memory_equal(pkt.payload.seg[0].p, payload, len);
}

static void send_datagram(struct world *w, struct node *n, struct skua_wqe_ud to)
{
	post_ud(n, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, n->buf, 100, to, 0);
	expect_sent(w, n);
}

/* What a neighbour in the same process sends is no different from what comes as bytes. */
static void packets_that_are_not_rdmas(void **state)
{
	static const uint8_t no_gid[16];
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t rc = b->qpn;
	struct skua_wqe_ud to;

	eth_queues(w, b);
	post_slots(b, 8);
	fill(a, 2500, 3);
	/* The port is not RDMA's: each packet of a message is a frame. */
	set_port(w, b, SKUA_PORT_F_ENABLE);
	post(a, SKUA_WQE_WRITE, 0, a->buf, 2500, b->buf, b->key, 0);
	settle(w);
	for (uint32_t i = 0; i < 3; i++)
		expect_packet(w, b, rc, (uint8_t *)at(a, a->buf) + i * 1024, i < 2 ? 1024 : 452);
	ud_queues(w, a, SKUA_QPT_UD, SKUA_QPS_RTS);
	to = ud_to(b);
	to.dest_qpn = htole32(77);
	/* Its address is not a GID. */
	set_port(w, b, SKUA_PORT_F_ENABLE | SKUA_PORT_F_ROCE);
	set_gid(w, b, 0, no_gid, no_gid, 0);
	send_datagram(w, a, to);
	expect_packet(w, b, 77, at(a, a->buf), 100);
	assert_int_equal(STAT(w, b, rdma_rx_packets), 0);
	/* It is RDMA's, whose QP there is not. */
	set_gid(w, b, 0, b->gid, b->mac, SKUA_VLAN_NONE);
	send_datagram(w, a, to);
	expect_none(w, b);
	assert_int_equal(STAT(w, b, rdma_rx_bad_qp), 1);
	/* A port that is off counts nothing. */
	set_port(w, b, 0);
	send_datagram(w, a, to);
	expect_none(w, b);
	assert_int_equal(STAT(w, b, rx_frames), 4);
	assert_int_equal(STAT(w, b, rdma_rx_packets), 1);
	assert_int_equal(STAT(w, b, rx_dropped), 0);
}

static void without_a_receive_frames_are_counted(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	eth_queues(w, a);
	make_frame(a, b->mac, a->mac, 60);
	send_frame(a, 60);
	expect_sent(w, a);
	assert_int_equal(STAT(w, b, rx_no_buffer), 1);	/* no QP */
	eth_queues(w, b);
	send_frame(a, 60);
	expect_sent(w, a);
	assert_int_equal(STAT(w, b, rx_no_buffer), 2);	/* no receive */
	post_slots(b, 1);
	must(w, b, state_cmd(b->qpn, SKUA_QPS_ERR));
	expect(w, b, SKUA_CQE_RECV, SKUA_CQE_WR_FLUSH_ERR);
	post_slots(b, 1);
	send_frame(a, 60);
	expect_sent(w, a);
	assert_int_equal(STAT(w, b, rx_no_buffer), 3);	/* not in this state */
	assert_int_equal(STAT(w, b, rx_dropped) + STAT(w, b, rx_frames), 0);
}

static void a_receive_that_is_too_small_stays(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	both_eth(w);
	post_recv(b, b->buf + SLOT, 99);
	make_frame(a, b->mac, a->mac, 100);
	send_frame(a, 100);
	expect_sent(w, a);
	expect_none(w, b);
	assert_int_equal(STAT(w, b, rx_dropped), 1);
	send_frame(a, 99);
	expect_sent(w, a);
	expect_frame(w, b, at(a, a->buf), 99);
}

static void a_bad_receive_is_an_error(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct world *w = world_create(false);
		struct node *a = &w->n[0], *b = &w->n[1];
		struct { struct skua_rqe r; struct skua_sge s[3]; } rqe = { .r.num_sge = 1 };

		both_eth(w);
		rqe.s[0] = (struct skua_sge){ htole64(b->buf + SLOT), htole32(SLOT), htole32(b->key + (i == 0)) };
		rqe.r.rsvd[3] = (uint8_t)i;
		post_rqe(b, &rqe);
		make_udp(a, b, 1, 2, 60);
		send_frame(a, 60);
		expect_sent(w, a);
		expect(w, b, SKUA_CQE_RECV, i ? SKUA_CQE_LOC_QP_OP_ERR : SKUA_CQE_LOC_PROT_ERR);
		assert_int_equal(qp_state(w, b, b->qpn), SKUA_QPS_ERR);
		assert_int_equal(STAT(w, b, rx_dropped), 1);
		assert_int_equal(STAT(w, b, rx_frames), 0);
		world_destroy(w);
	}
}

/* The commands of the port that name QPs. */
static void receivers_are_eth_qps_with_an_rq(void **state)
{
	struct world *w = *state;
	struct node *b = &w->n[1];
	uint32_t rc = b->qpn;
	struct skua_cmd create, rss = CMD(SKUA_CMD_SET_RSS);
	uint32_t no_rq;

	eth_queues(w, b);
	create = create_qp_cmd(b);
	create.create_qp.type = SKUA_QPT_ETH;
	create.create_qp.flags = htole32(SKUA_QP_PRIVILEGED);
	create.create_qp.log_rq_size = create.create_qp.log_rq_stride = 0;
	create.create_qp.rq_dbr_addr = 0;
	create.create_qp.rq = (struct skua_pagelist){ 0 };
	no_rq = must(w, b, create);
	rss.hdr.port = 1;
	for (int i = 0; i < 2; i++) {
		uint32_t log = i ? 5 : 0;

		rss.set_rss.log_size = (uint8_t)log;
		rss.set_rss.qpn[(1 << log) - 1] = htole32(rc);
		assert_int_equal(command(w, b, &rss), SKUA_CMD_BAD_PARAM);
		rss.set_rss.qpn[(1 << log) - 1] = htole32(no_rq);
		assert_int_equal(command(w, b, &rss), SKUA_CMD_BAD_PARAM);
		rss.set_rss.qpn[(1 << log) - 1] = htole32(b->qpn + 1);
		assert_int_equal(command(w, b, &rss), SKUA_CMD_BAD_OBJECT);
		rss.set_rss.qpn[(1 << log) - 1] = htole32(b->qpn);
		assert_int_equal(command(w, b, &rss), SKUA_CMD_OK);
	}
	rss.set_rss.log_size = 4;	/* an entry behind the table */
	assert_int_equal(command(w, b, &rss), SKUA_CMD_BAD_PARAM);
	rss.set_rss.log_size = 6;
	assert_int_equal(command(w, b, &rss), SKUA_CMD_BAD_PARAM);
	rss.set_rss.log_size = 5;
	rss.set_rss.rsvd0[2] = 1;
	assert_int_equal(command(w, b, &rss), SKUA_CMD_BAD_PARAM);
	rss.set_rss.rsvd0[2] = 0;
	rss.set_rss.rsvd1[47] = 1;
	assert_int_equal(command(w, b, &rss), SKUA_CMD_BAD_PARAM);
	assert_int_equal(set_rx_qp(w, b, rc), SKUA_CMD_BAD_PARAM);
	assert_int_equal(set_rx_qp(w, b, no_rq), SKUA_CMD_BAD_PARAM);
	assert_int_equal(set_rx_qp(w, b, 1), SKUA_CMD_BAD_OBJECT);
	assert_int_equal(set_rx_qp(w, b, 0), SKUA_CMD_OK);
	assert_int_equal(set_rx_qp(w, b, b->qpn), SKUA_CMD_OK);
}

#define NUM_QPS	3

/* @num ETH QPs of @n with @count receives each; the last made is the port's own. */
static void spread(struct world *w, struct node *n, struct queues *qps, unsigned int num, unsigned int count)
{
	struct skua_cmd rss = CMD(SKUA_CMD_SET_RSS, .set_rss = { .log_size = 5 });

	for (unsigned int i = 0; i < num; i++) {
		eth_queues(w, n);
		post_slots(n, count);
		qps[i] = use_queues(n, (struct queues){ 0 });
		use_queues(n, qps[i]);
	}
	/* Of the last QP only frames without a hash. */
	for (unsigned int i = 0; i < 32; i++)
		rss.set_rss.qpn[i] = htole32(qps[i % (num - 1)].qpn);
	for (unsigned int i = 0; i < sizeof(rss.set_rss.key); i++)
		rss.set_rss.key[i] = (uint8_t)(i * 91 + 17);
	rss.hdr.port = 1;
	must(w, n, rss);
}

/* Each entry of the table has a QP of its own, so each bit of the index decides. */
static void flows_are_spread_and_stay_together(void **state)
{
	enum { ENTRIES = 32, FLOWS = 128 };
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct queues qps[ENTRIES + 1];
	unsigned int seen[ENTRIES] = { 0 };
	uint32_t hashes[FLOWS];
	struct skua_cqe *cqe;

	eth_queues(w, a);
	spread(w, b, qps, ENTRIES + 1, 64);
	for (uint16_t i = 0; i < 2 * FLOWS; i++) {
		uint8_t *p = make_udp(a, b, 1000 + i % FLOWS, 9, 60);
		uint32_t hash;

		send_frame(a, 60);
		expect_sent(w, a);
		cqe = await_cqe(w, b);
		assert_memory_equal(slot(b, cqe), p, 60);
		hash = le32toh(cqe->rss_hash);
		assert_int_equal(cqe->flags & SKUA_CQE_L4_HASH, SKUA_CQE_L4_HASH);
		assert_int_equal(le32toh(cqe->qpn), qps[hash % ENTRIES].qpn);
		seen[hash % ENTRIES]++;
		if (i >= FLOWS)
			assert_int_equal(hash, hashes[i % FLOWS]);
		hashes[i % FLOWS] = hash;
	}
	for (unsigned int i = 0; i < ENTRIES; i++)
		assert_true(seen[i]);
	/* Without ports, and without anything to hash. */
	make_udp(a, b, 1, 9, 60)[23] = 1;
	send_frame(a, 60);
	expect_sent(w, a);
	assert_int_equal(await_cqe(w, b)->flags & SKUA_CQE_L4_HASH, 0);
	make_frame(a, b->mac, a->mac, 60);
	send_frame(a, 60);
	expect_sent(w, a);
	cqe = expect_frame(w, b, at(a, a->buf), 60);
	assert_int_equal(le32toh(cqe->qpn), qps[ENTRIES].qpn);
	assert_int_equal(cqe->rss_hash, 0);
	assert_int_equal(cqe->flags & SKUA_CQE_L4_HASH, 0);
}

/* A QP without receives does not borrow from others; one that is gone leaves its flows to rx_qpn. */
static void qps_do_not_disturb_each_other(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cmd query_port = CMD(SKUA_CMD_QUERY_PORT);
	struct queues qps[NUM_QPS];
	struct skua_port_attr *attr;
	unsigned int lost;

	query_port.hdr.port = 1;
	eth_queues(w, a);
	spread(w, b, qps, NUM_QPS, 40);
	must(w, b, object_cmd(SKUA_CMD_DESTROY_QP, qps[0].qpn));
	must(w, b, state_cmd(qps[1].qpn, SKUA_QPS_RESET));
	for (uint16_t i = 0; i < 40; i++) {
		make_udp(a, b, i, 9, 60);
		send_frame(a, 60);
		expect_sent(w, a);
		settle(w);
	}
	lost = (unsigned int)STAT(w, b, rx_no_buffer);
	assert_true(lost > 5 && lost < 35);
	for (unsigned int i = lost; i < 40; i++)
		assert_int_equal(le32toh(await_cqe(w, b)->qpn), qps[2].qpn);
	expect_none(w, b);
	must(w, b, object_cmd(SKUA_CMD_DESTROY_QP, qps[2].qpn));
	attr = query(w, b, query_port, sizeof(*attr));
	assert_int_equal(attr->rx_qpn, 0);
	make_frame(a, b->mac, a->mac, 60);
	send_frame(a, 60);
	expect_sent(w, a);
	assert_int_equal(STAT(w, b, rx_no_buffer), lost + 1);
}

/* Between two engines, many more than there are receives: none is torn, none comes late. */
static void frames_between_engines(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t last = 0, got = 0, sent = 0;
	time_t end = time(NULL) + 20;
	struct skua_cqe *cqe;

	both_eth(w);
	post_slots(b, 40);
	while (got < 3000 && time(NULL) < end) {
		uint8_t *p = make_frame(a, b->mac, a->mac, 1000);

		sent++;
		memset(p + 14, (int)sent, 986);
		memcpy(p + 14, &sent, 4);
		send_frame(a, 1000);
		expect_sent(w, a);
		while ((cqe = poll_cq(b))) {
			const uint8_t *q = slot(b, cqe);
			uint32_t n;

			memcpy(&n, q + 14, 4);
			assert_true(n > last);
			for (int i = 18; i < 1000; i++)
				assert_int_equal(q[i], n & 255);
			last = n;
			got++;
			post_slots(b, 1);
		}
	}
	assert_true(got >= 3000);
}

static pthread_barrier_t held;

static void hold_engine(void *arg)
{
	(void)arg;
	pthread_barrier_wait(&held);
	pthread_barrier_wait(&held);
}

static void *hold(void *node)
{
	on_engine(node, hold_engine, NULL);
	return NULL;
}

/* What waits for room on the wire when the QP goes to ERR is flushed, as all behind it. */
static void to_err_while_the_wire_is_full(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	const unsigned int n = 100;
	unsigned int done = 0, flushed = 0;
	pthread_t thread;

	eth_queues(w, a);
	eth_queues(w, b);
	make_frame(a, b->mac, a->mac, 100);
	pthread_barrier_init(&held, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, hold, b), 0);
	pthread_barrier_wait(&held);
	for (unsigned int i = 0; i < n; i++)
		send_frame(a, 100);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	done++;
	usleep(10000);			/* until nobody takes any more */
	must(w, a, state_cmd(a->qpn, SKUA_QPS_ERR));
	for (; done < n; done++) {
		struct skua_cqe *cqe = await_cqe(w, a);

		if (flushed)
			assert_int_equal(cqe->status, SKUA_CQE_WR_FLUSH_ERR);
		flushed += cqe->status == SKUA_CQE_WR_FLUSH_ERR;
	}
	assert_true(flushed);
	pthread_barrier_wait(&held);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&held);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STEPPED(frames_arrive_as_they_were_sent, "ETH-1 ETH-2 ETH-7 STA-1"),
		THREADED(frames_between_engines, "ETH-7"),
		THREADED(to_err_while_the_wire_is_full, "ORD-7"),
		STEPPED(frames_of_pieces, "ETH-1"),
		STEPPED(without_a_wire_frames_go_nowhere, "ETH-3 ETH-8 PRT-5"),
		STEPPED(the_link_tells_of_its_changes, "PRT-5"),
		{ "ETH-4 WQE-6: a_frame_of_a_bad_length_is_an_error", a_frame_of_a_bad_length_is_an_error,
		  NULL, NULL, NULL },
		STEPPED(jumbo_frames, "ETH-11 PRT-2 PRT-4"),
		STEPPED(checksums_are_filled_in_and_checked, "ETH-5 ETH-12"),
		STEPPED(the_checksum_of_the_ipv4_header, "ETH-12"),
		{ "ETH-5 WQE-6: a_bad_place_of_the_checksum_is_an_error", a_bad_place_of_the_checksum_is_an_error,
		  NULL, NULL, NULL },
		{ "WQE-5: frames_have_no_fence", frames_have_no_fence, NULL, NULL, NULL },
		{ "ETH-5 WQE-5: the_checksum_is_for_frames_only", the_checksum_is_for_frames_only, NULL, NULL, NULL },
		{ "FEA-2 ETH-5 ETH-12: features_that_were_not_accepted", features_that_were_not_accepted,
		  NULL, NULL, NULL },
		STEPPED(a_sender_does_not_hear_itself, "ETH-6"),
		STEPPED(frames_for_others, "ETH-8"),
		STEPPED(port_4791_is_rdmas, "ETH-9"),
		STEPPED(packets_that_are_not_rdmas, "ETH-9 ETH-8"),
		STEPPED(without_a_receive_frames_are_counted, "ETH-10"),
		STEPPED(a_receive_that_is_too_small_stays, "ETH-10"),
		{ "ETH-10 RQE-4: a_bad_receive_is_an_error", a_bad_receive_is_an_error, NULL, NULL, NULL },
		STEPPED(receivers_are_eth_qps_with_an_rq, "ETH-13 PRT-2"),
		STEPPED(flows_are_spread_and_stay_together, "ETH-13 ETH-15"),
		STEPPED(qps_do_not_disturb_each_other, "ETH-10 ETH-16 QP-5"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
