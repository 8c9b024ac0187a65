// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Packets built from trains, compared byte by byte with those of an independent
 * implementation (test_packet_vectors.py), and taken apart again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "packet/icrc.h"
#include "packet/packet.h"
#include "packet/test_packet_vectors.h"
#include "skua/cmd.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define PSN		0xfffffeu
#define IMM		"\1\2\3\4"

static const struct roce_path path4 = {
	.smac = { 0x52, 0x54, 0, 0, 0, 1 }, .dmac = { 0x52, 0x54, 0, 0, 0, 2 },
	.sgid = { [10] = 0xff, 0xff, 192, 0, 2, 1 }, .dgid = { [10] = 0xff, 0xff, 192, 0, 2, 2 },
	.vlan = SKUA_VLAN_NONE, .sport = 0xc123, .traffic_class = 0x22, .hop_limit = 64,
};

static const struct roce_path path6 = {
	.smac = { 0x52, 0x54, 0, 0, 0, 1 }, .dmac = { 0x52, 0x54, 0, 0, 0, 2 },
	.sgid = { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 }, .dgid = { 0x20, 0x01, 0x0d, 0xb8, [15] = 2 },
	.vlan = 100, .sl = 5, .sport = 0xc123, .flow_label = 0xabcde, .traffic_class = 0x0a,
	.hop_limit = 1,
};

/* A message of @bytes as @npkts packets of which @index is the one meant. */
struct kind {
	const char *name;
	enum train_op op;
	uint32_t bytes, npkts, index;
	bool solicited, ack_req;
	uint8_t syndrome;
	uint32_t msn, msg_len;
	const char *imm;
	uint32_t inv;
	bool v6;
	enum transport transport;
	uint32_t qkey, src_qpn, srqn;
	uint8_t flush;
};

static const struct kind kinds[] = {
	{ "send_first", TRAIN_SEND, 517, 3, 0, .solicited = true, .ack_req = true },
	{ "send_middle", TRAIN_SEND, 517, 3, 1, .solicited = true, .ack_req = true },
	{ "send_last", TRAIN_SEND, 517, 3, 2, .solicited = true, .ack_req = true },
	{ "send_first", TRAIN_SEND_IMM, 517, 3, 0, .imm = IMM },
	{ "send_middle", TRAIN_SEND_INV, 517, 3, 1, .inv = 1 },
	{ "send_last_imm", TRAIN_SEND_IMM, 517, 3, 2, .solicited = true, .ack_req = true,
	  .imm = IMM },
	{ "send_only", TRAIN_SEND, 6, 1, 0, .ack_req = true },
	{ "send_only_empty", TRAIN_SEND, 0, 1, .index = 0 },
	{ "send_only_imm", TRAIN_SEND_IMM, 7, 1, 0, .solicited = true, .imm = IMM },
	{ "send_last_inv", TRAIN_SEND_INV, 517, 3, 2, .solicited = true, .ack_req = true,
	  .inv = 0xbeef0017 },
	{ "send_only_inv", TRAIN_SEND_INV, 8, 1, 0, .inv = 0xbeef0017 },
	{ "write_first", TRAIN_WRITE, 517, 3, 0, .ack_req = true, .msg_len = 517 },
	{ "write_middle", TRAIN_WRITE, 517, 3, 1, .ack_req = true, .msg_len = 517 },
	{ "write_last", TRAIN_WRITE, 517, 3, 2, .ack_req = true, .msg_len = 517 },
	{ "write_first", TRAIN_WRITE_IMM, 517, 3, 0, .msg_len = 517, .imm = IMM },
	{ "write_last_imm", TRAIN_WRITE_IMM, 517, 3, 2, .solicited = true, .ack_req = true,
	  .msg_len = 517, .imm = IMM },
	{ "write_only", TRAIN_WRITE, 1, 1, 0, .ack_req = true, .msg_len = 1 },
	{ "write_only_imm", TRAIN_WRITE_IMM, 0, 1, 0, .ack_req = true, .imm = IMM },
	{ "read_request", TRAIN_READ_REQ, 0, 1, 0, .ack_req = true, .msg_len = 517 },
	{ "read_response_first", TRAIN_READ_RESP, 517, 3, 0, .syndrome = AETH_ACK,
	  .msn = 0x10203 },
	{ "read_response_middle", TRAIN_READ_RESP, 517, 3, 1, .syndrome = AETH_ACK,
	  .msn = 0x10203 },
	{ "read_response_last", TRAIN_READ_RESP, 517, 3, 2, .syndrome = AETH_ACK,
	  .msn = 0x10203 },
	{ "read_response_only", TRAIN_READ_RESP, 9, 1, 0, .syndrome = AETH_ACK,
	  .msn = 0x10203 },
	{ "ack", TRAIN_ACK, 0, 1, 0, .syndrome = AETH_ACK, .msn = 0xffffff },
	{ "rnr_nak", TRAIN_ACK, 0, 1, 0, .syndrome = AETH_RNR | 12, .msn = 1 },
	{ "sequence_nak", TRAIN_ACK, 0, 1, 0, .syndrome = AETH_NAK_SEQ, .msn = 1 },
	{ "v6_write_only_imm", TRAIN_WRITE_IMM, 3, 1, 0, .solicited = true, .ack_req = true,
	  .msg_len = 3, .imm = IMM, .v6 = true },
	{ "uc_send_first", TRAIN_SEND, 517, 3, 0, .transport = TRANSPORT_UC },
	{ "uc_send_middle", TRAIN_SEND_IMM, 517, 3, 1, .imm = IMM, .transport = TRANSPORT_UC },
	{ "uc_send_last", TRAIN_SEND, 517, 3, 2, .transport = TRANSPORT_UC },
	{ "uc_send_last_imm", TRAIN_SEND_IMM, 517, 3, 2, .solicited = true, .imm = IMM,
	  .transport = TRANSPORT_UC },
	{ "uc_send_only", TRAIN_SEND, 6, 1, 0, .transport = TRANSPORT_UC },
	{ "uc_send_only_imm", TRAIN_SEND_IMM, 7, 1, 0, .solicited = true, .imm = IMM,
	  .transport = TRANSPORT_UC },
	{ "uc_write_first", TRAIN_WRITE, 517, 3, 0, .msg_len = 517, .transport = TRANSPORT_UC },
	{ "uc_write_middle", TRAIN_WRITE, 517, 3, 1, .msg_len = 517, .transport = TRANSPORT_UC },
	{ "uc_write_last", TRAIN_WRITE, 517, 3, 2, .msg_len = 517, .transport = TRANSPORT_UC },
	{ "uc_write_last_imm", TRAIN_WRITE_IMM, 517, 3, 2, .solicited = true, .msg_len = 517,
	  .imm = IMM, .transport = TRANSPORT_UC },
	{ "uc_write_only", TRAIN_WRITE, 1, 1, 0, .msg_len = 1, .transport = TRANSPORT_UC },
	{ "uc_write_only_imm", TRAIN_WRITE_IMM, 0, 1, 0, .imm = IMM, .transport = TRANSPORT_UC },
	{ "ud_send", TRAIN_SEND, 256, 1, 0, .transport = TRANSPORT_UD, .qkey = 0x80010000,
	  .src_qpn = 0x10203 },
	{ "ud_send_empty", TRAIN_SEND, 0, 1, 0, .transport = TRANSPORT_UD, .qkey = 0x80010000,
	  .src_qpn = 0x10203 },
	{ "ud_send_imm", TRAIN_SEND_IMM, 5, 1, 0, .solicited = true, .imm = IMM,
	  .transport = TRANSPORT_UD, .qkey = 0x11, .src_qpn = 1 },
	{ "v6_ud_send_imm", TRAIN_SEND_IMM, 5, 1, 0, .solicited = true, .imm = IMM, .v6 = true,
	  .transport = TRANSPORT_UD, .qkey = 0x11, .src_qpn = 1 },
	{ "flush", TRAIN_FLUSH, 0, 1, 0, .ack_req = true, .msg_len = 517, .flush = 0x11 },
	{ "atomic_write", TRAIN_ATOMIC_WRITE, 8, 1, 0, .ack_req = true, .msg_len = 8 },
#define XRC	.transport = TRANSPORT_XRC, .srqn = 0xabcdef
	{ "xrc_send_first", TRAIN_SEND, 517, 3, 0, XRC },
	{ "xrc_send_middle", TRAIN_SEND_IMM, 517, 3, 1, .imm = IMM, XRC },
	{ "xrc_send_last", TRAIN_SEND, 517, 3, 2, XRC },
	{ "xrc_send_last_imm", TRAIN_SEND_IMM, 517, 3, 2, .solicited = true, .imm = IMM, XRC },
	{ "xrc_send_only", TRAIN_SEND, 6, 1, 0, XRC },
	{ "xrc_send_only_imm", TRAIN_SEND_IMM, 7, 1, 0, .solicited = true, .imm = IMM, XRC },
	{ "xrc_send_last_inv", TRAIN_SEND_INV, 517, 3, 2, .solicited = true, .ack_req = true,
	  .inv = 0xbeef0017, XRC },
	{ "xrc_send_only_inv", TRAIN_SEND_INV, 8, 1, 0, .inv = 0xbeef0017, XRC },
	{ "xrc_write_first", TRAIN_WRITE, 517, 3, 0, .msg_len = 517, XRC },
	{ "xrc_write_middle", TRAIN_WRITE, 517, 3, 1, .msg_len = 517, XRC },
	{ "xrc_write_last", TRAIN_WRITE, 517, 3, 2, .msg_len = 517, XRC },
	{ "xrc_write_last_imm", TRAIN_WRITE_IMM, 517, 3, 2, .solicited = true, .msg_len = 517,
	  .imm = IMM, XRC },
	{ "xrc_write_only", TRAIN_WRITE, 1, 1, 0, .msg_len = 1, XRC },
	{ "xrc_write_only_imm", TRAIN_WRITE_IMM, 0, 1, 0, .imm = IMM, XRC },
	{ "xrc_read_request", TRAIN_READ_REQ, 0, 1, 0, .ack_req = true, .msg_len = 517, XRC },
	{ "xrc_read_response_first", TRAIN_READ_RESP, 517, 3, 0, .syndrome = AETH_ACK,
	  .msn = 0x10203, XRC },
	{ "xrc_read_response_middle", TRAIN_READ_RESP, 517, 3, 1, .syndrome = AETH_ACK,
	  .msn = 0x10203, XRC },
	{ "xrc_read_response_last", TRAIN_READ_RESP, 517, 3, 2, .syndrome = AETH_ACK,
	  .msn = 0x10203, XRC },
	{ "xrc_read_response_only", TRAIN_READ_RESP, 9, 1, 0, .syndrome = AETH_ACK,
	  .msn = 0x10203, XRC },
	{ "xrc_ack", TRAIN_ACK, 0, 1, 0, .syndrome = AETH_ACK, .msn = 0xffffff, XRC },
	{ "v6_xrc_write_only_imm", TRAIN_WRITE_IMM, 3, 1, 0, .solicited = true, .ack_req = true,
	  .msg_len = 3, .imm = IMM, .v6 = true, XRC },
	{ "v6_ack", TRAIN_ACK, 0, 1, 0, .syndrome = AETH_ACK, .msn = 2, .v6 = true },
};

static uint8_t message[65536];

/* The whole message, in runs of 100 bytes, which no packet's payload fits. */
static void make_payload(struct seglist *list, uint32_t bytes)
{
	list->n = 0;
	list->bytes = bytes;
	for (uint32_t at = 0; at < bytes; at += 100) {
		uint32_t len = bytes - at < 100 ? bytes - at : 100;

		list->seg[list->n++] = (struct seg){ message + at, len };
	}
}

static struct train make_train(const struct kind *k, const struct seglist *payload)
{
	struct train t = {
		.op = k->op, .transport = k->transport, .qkey = k->qkey, .src_qpn = k->src_qpn,
		.first = true, .last = true, .solicited = k->solicited,
		.ack_req = k->ack_req, .syndrome = k->syndrome, .flush = k->flush, .dest_qpn = 0x123456,
		.psn = PSN, .npkts = k->npkts, .pmtu = 256, .msn = k->msn, .imm = k->inv,
		.rkey = 0xcafe0042, .raddr = 0x1122334455667788, .msg_len = k->msg_len,
		.path = k->v6 ? &path6 : &path4, .payload = k->bytes ? payload : NULL,
	};

	if (k->srqn)
		t.srqn = k->srqn;
	if (k->imm)
		memcpy(&t.imm, k->imm, 4);
	return t;
}

static size_t golden(const char *name, uint8_t *buf)
{
	size_t len = 0;

	for (size_t v = 0; v < ARRAY_SIZE(vectors); v++) {
		const char *hex = vectors[v].hex;

		if (strcmp(vectors[v].name, name))
			continue;
		for (; hex[2 * len]; len++)
			assert_int_equal(sscanf(hex + 2 * len, "%2hhx", &buf[len]), 1);
		return len;
	}
	fail_msg("no vector %s", name);
	return 0;
}

static void assert_packet(const char *name, const uint8_t *packet, size_t len)
{
	uint8_t want[ROCE_MAX_PACKET];
	size_t want_len = golden(name, want);

	if (len != want_len || memcmp(packet, want, len))
		print_message("%s differs\n", name);
	assert_int_equal(len, want_len);
	assert_memory_equal(packet, want, len);
}

static void every_kind_is_as_scapy_builds_it(void **state)
{
	uint8_t buf[ROCE_MAX_PACKET];
	struct seglist payload;
	struct train t;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		make_payload(&payload, kinds[i].bytes);
		t = make_train(&kinds[i], &payload);
		assert_packet(kinds[i].name, buf, roce_packet_build(buf, &t, kinds[i].index));
	}
}

static void every_vector_is_tried(void **state)
{
	(void)state;
	for (size_t v = 0; v < ARRAY_SIZE(vectors); v++) {
		size_t i = 0;

		while (i < ARRAY_SIZE(kinds) && strcmp(kinds[i].name, vectors[v].name))
			i++;
		assert_true(i < ARRAY_SIZE(kinds));
	}
}

/* One message as three trains of one gives the packets of one train of three. */
static void a_message_may_be_cut_into_trains_anywhere(void **state)
{
	static const char *const names[] = { "send_first", "send_middle", "send_last" };
	uint8_t buf[ROCE_MAX_PACKET];
	struct seglist payload;
	struct train t;

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		make_payload(&payload, 517);
		t = make_train(&kinds[0], &payload);
		payload.n = 1;
		payload.bytes = i < 2 ? 256 : 5;
		payload.seg[0] = (struct seg){ message + 256 * i, payload.bytes };
		t.first = i == 0;
		t.last = t.ack_req = i == 2;
		t.psn = psn_add(PSN, i);
		t.npkts = 1;
		assert_packet(names[i], buf, roce_packet_build(buf, &t, 0));
	}
}

/* The last packet of a train that does not end its message may ask for an ACK, but has no
 * solicited event. */
static void solicited_stands_only_in_the_last_packet_of_a_message(void **state)
{
	uint8_t buf[ROCE_MAX_PACKET];
	struct seglist payload;
	struct train t;

	(void)state;
	make_payload(&payload, 512);
	t = make_train(&kinds[0], &payload);
	t.last = false;
	t.npkts = 2;
	roce_packet_build(buf, &t, 1);
	assert_int_equal(buf[42], 0x01);
	assert_int_equal(buf[43] & 0x80, 0);
	assert_int_equal(buf[50] & 0x80, 0x80);
}

static void largest_packet_fits(void **state)
{
	uint8_t *buf = test_malloc(ROCE_MAX_PACKET);
	struct seglist payload = { 1, 4096, { { message, 4096 } } };
	struct kind k = { "", TRAIN_WRITE_IMM, 4096, 1, 0, .v6 = true, XRC };
	struct train t = make_train(&k, &payload);

	(void)state;
	t.pmtu = 4096;
	assert_int_equal(roce_packet_build(buf, &t, 0), ROCE_MAX_PACKET);
	test_free(buf);
}

/* What a router changes on the way: TOS, TTL, header checksum; traffic class, flow label,
 * hop limit; FECN and BECN. */
static void icrc_holds_whatever_routers_change(void **state)
{
	static const int fields4[] = { 1, 8, 10, 11, 26, 27, 32 };
	static const int fields6[] = { 1, 2, 3, 7, 46, 47, 52 };
	uint8_t buf[ROCE_MAX_PACKET];
	uint32_t icrc;
	size_t len;

	(void)state;
	len = golden("send_only", buf) - 14 - 4;
	icrc = roce_icrc(buf + 14, len);
	for (size_t i = 0; i < ARRAY_SIZE(fields4); i++)
		buf[14 + fields4[i]] ^= 0x5a;
	assert_int_equal(roce_icrc(buf + 14, len), icrc);
	buf[14 + 12] ^= 1;	/* the source address is not such a field */
	assert_int_not_equal(roce_icrc(buf + 14, len), icrc);

	len = golden("v6_ack", buf) - 18 - 4;
	icrc = roce_icrc(buf + 18, len);
	for (size_t i = 0; i < ARRAY_SIZE(fields6); i++)
		buf[18 + fields6[i]] ^= 0x5a;
	assert_int_equal(roce_icrc(buf + 18, len), icrc);
	buf[18 + 23] ^= 1;
	assert_int_not_equal(roce_icrc(buf + 18, len), icrc);
}

/* Parsing. @len bytes in memory of just that size, so that nothing behind them is read. */
static enum roce_fault parse(struct roce_packet *pkt, const uint8_t *bytes, size_t len, bool *roce)
{
	static uint8_t *frame;		/* the packet's payload is in it */
	enum roce_fault fault = ROCE_OK;

	free(frame);
	frame = malloc(len + !len);
	assert_non_null(frame);
	memcpy(frame, bytes, len);
	*roce = roce_packet_open(pkt, frame, len);
	if (*roce)
		fault = roce_packet_parse(pkt);
	return fault;
}

static enum roce_fault fault_of(const uint8_t *bytes, size_t len)
{
	struct roce_packet pkt;
	bool roce;
	enum roce_fault fault = parse(&pkt, bytes, len, &roce);

	assert_true(roce);
	return fault;
}

/* Make the ICRC right again, after something was changed. The packet begins without VLAN. */
static void seal(uint8_t *buf, size_t len)
{
	uint32_t icrc = roce_icrc(buf + 14, len - 18);

	for (int i = 0; i < 4; i++)
		buf[len - 4 + i] = icrc >> (8 * i);
}

static void what_is_parsed_builds_the_same_packet(void **state)
{
	uint8_t want[ROCE_MAX_PACKET], buf[ROCE_MAX_PACKET];
	struct roce_packet pkt;
	bool roce;

	(void)state;
	for (size_t v = 0; v < ARRAY_SIZE(vectors); v++) {
		size_t len = golden(vectors[v].name, want);

		assert_int_equal(parse(&pkt, want, len, &roce), ROCE_OK);
		assert_true(roce);
		pkt.train.pmtu = 256;
		assert_packet(vectors[v].name, buf, roce_packet_build(buf, &pkt.train, 0));
	}
}

static void atomics_are_parsed_as_they_are_built(void **state)
{
	static const enum train_op ops[] = { TRAIN_CMP_SWAP, TRAIN_FETCH_ADD, TRAIN_ATOMIC_RESP };
	uint8_t buf[ROCE_MAX_PACKET];
	struct roce_packet pkt;
	bool roce;

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_SIZE(ops); i++) {
		struct kind k = { "", ops[i / 2], 0, 1, 0, .ack_req = true, .syndrome = 0x1f, .msn = 9 };
		struct kind xrc = { "", ops[i / 2], 0, 1, 0, .ack_req = true, .syndrome = 0x1f, .msn = 9, XRC };
		struct train t = make_train(i % 2 ? &xrc : &k, NULL);
		bool answer = ops[i / 2] == TRAIN_ATOMIC_RESP;

		t.swap_add = 0x0102030405060708;
		t.compare = 0x1112131415161718;
		assert_int_equal(parse(&pkt, buf, roce_packet_build(buf, &t, 0), &roce), ROCE_OK);
		assert_int_equal(pkt.train.op, ops[i / 2]);
		assert_int_equal(pkt.train.transport, t.transport);
		assert_int_equal(pkt.train.srqn, answer ? 0 : t.srqn);
		assert_int_equal(pkt.train.swap_add, t.swap_add);
		assert_int_equal(pkt.train.compare, answer ? 0 : t.compare);
		assert_int_equal(pkt.train.raddr, answer ? 0 : t.raddr);
		assert_int_equal(pkt.train.rkey, answer ? 0 : t.rkey);
		assert_int_equal(pkt.train.msn, answer ? 9 : 0);
	}
}

static void masked_atomics_are_as_the_manual_says(void **state)
{
	static const enum train_op ops[] = { TRAIN_MASKED_CMP_SWAP, TRAIN_MASKED_FETCH_ADD };
	static const uint8_t want[] = {
		0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0xca, 0xfe, 0, 0x42,	/* address, rkey */
		1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,			/* swap_add, compare */
		17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32,		/* their masks */
	};
	uint8_t buf[ROCE_MAX_PACKET], *bth = buf + 14 + 20 + 8;
	struct roce_packet pkt;
	bool roce;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		struct kind k = { "", ops[i], 0, 1, 0, .ack_req = true };
		struct train t = make_train(&k, NULL);
		size_t len;

		t.raddr = 0x1122334455667788;
		t.rkey = 0xcafe0042;
		t.swap_add = 0x0102030405060708;
		t.compare = 0x090a0b0c0d0e0f10;
		t.swap_add_mask = 0x1112131415161718;
		t.compare_mask = 0x191a1b1c1d1e1f20;
		len = roce_packet_build(buf, &t, 0);
		assert_int_equal(len, 14 + 20 + 8 + 12 + sizeof(want) + 4);
		assert_int_equal(bth[0], 0xd3 + i);
		assert_memory_equal(bth + 12, want, sizeof(want));
		assert_int_equal(parse(&pkt, buf, len, &roce), ROCE_OK);
		assert_int_equal(pkt.train.op, ops[i]);
		assert_int_equal(pkt.train.transport, TRANSPORT_RC);
		assert_null(pkt.train.payload);
		assert_int_equal(pkt.train.raddr, t.raddr);
		assert_int_equal(pkt.train.rkey, t.rkey);
		assert_int_equal(pkt.train.swap_add, t.swap_add);
		assert_int_equal(pkt.train.compare, t.compare);
		assert_int_equal(pkt.train.swap_add_mask, t.swap_add_mask);
		assert_int_equal(pkt.train.compare_mask, t.compare_mask);
	}
}

/* Those that later versions of IBTA may use. */
static void reserved_bits_of_a_flush_are_not_looked_at(void **state)
{
	uint8_t buf[ROCE_MAX_PACKET], *feth = buf + 14 + 20 + 8 + 12;
	size_t len = golden("flush", buf);
	struct roce_packet pkt;
	bool roce;

	(void)state;
	memset(feth, 0xff, 3);
	feth[3] |= 0xc0;
	seal(buf, len);
	assert_int_equal(parse(&pkt, buf, len, &roce), ROCE_OK);
	assert_int_equal(pkt.train.op, TRAIN_FLUSH);
	assert_int_equal(pkt.train.flush, 0x11);
}

static void a_cnp_is_as_the_manual_says(void **state)
{
	static const uint8_t bth[] = { 0x81, 0x40, 0xff, 0xff, 0x40, 0x12, 0x34, 0x56, [27] = 0 };
	struct train t = {
		.op = TRAIN_CNP, .transport = TRANSPORT_CNP, .first = true, .last = true,
		.npkts = 1, .dest_qpn = 0x123456, .path = &path4,
	};
	uint8_t buf[ROCE_MAX_PACKET];
	struct roce_packet pkt;
	size_t len = roce_packet_build(buf, &t, 0);
	uint32_t longest;
	bool roce;

	(void)state;
	assert_int_equal(len, 14 + 20 + 8 + sizeof(bth) + 4);
	assert_int_equal(roce_train_bytes(&t, &longest), len);
	assert_memory_equal(buf + 14 + 20 + 8, bth, sizeof(bth));
	assert_int_equal(parse(&pkt, buf, len, &roce), ROCE_OK);
	assert_int_equal(pkt.train.op, TRAIN_CNP);
	assert_int_equal(pkt.train.dest_qpn, 0x123456);
	assert_null(pkt.train.payload);
}

static void no_packet_cut_short_is_good(void **state)
{
	uint8_t want[ROCE_MAX_PACKET];
	struct roce_packet pkt;
	bool roce;

	(void)state;
	for (size_t v = 0; v < ARRAY_SIZE(vectors); v++) {
		size_t len = golden(vectors[v].name, want);

		for (size_t cut = 0; cut < len; cut++)
			assert_true(parse(&pkt, want, cut, &roce) == ROCE_BAD_LENGTH || !roce);
		/* But Ethernet may have padded it. */
		assert_int_equal(parse(&pkt, want, len + 10, &roce), ROCE_OK);
	}
}

/* One bit at a time: what is not seen is what the ICRC leaves out. */
static void no_flipped_bit_passes_but_in_masked_fields(void **state)
{
	static const int masked[] = { 14 + 1, 14 + 8, 14 + 10, 14 + 11, 14 + 26, 14 + 27, 14 + 32 };
	uint8_t want[ROCE_MAX_PACKET];
	size_t len = golden("write_only", want);
	struct roce_packet pkt;
	bool roce;

	(void)state;
	for (size_t bit = 12 * 8; bit < 8 * len; bit++) {
		bool may_pass = false;

		for (size_t m = 0; m < ARRAY_SIZE(masked); m++)
			may_pass |= bit / 8 == (size_t)masked[m];
		want[bit / 8] ^= 1 << bit % 8;
		if (parse(&pkt, want, len, &roce) == ROCE_OK && roce) {
			assert_true(may_pass);
			assert_int_equal(pkt.train.dest_qpn, 0x123456);
			assert_int_equal(pkt.train.psn, PSN);
			assert_int_equal(pkt.train.payload->bytes, 1);
		}
		want[bit / 8] ^= 1 << bit % 8;
	}
}

static void each_fault_has_its_cause(void **state)
{
	uint8_t buf[ROCE_MAX_PACKET], *bth = buf + 14 + 20 + 8;
	size_t len;

	(void)state;
	len = golden("send_only", buf);
	buf[len - 1] ^= 1;
	assert_int_equal(fault_of(buf, len), ROCE_BAD_ICRC);
	golden("send_only", buf);
	buf[14 + 10] ^= 1;			/* IPv4 header checksum, not in the ICRC */
	assert_int_equal(fault_of(buf, len), ROCE_BAD_HEADER);
	golden("send_only", buf);
	bth[1] |= 1;				/* version */
	seal(buf, len);
	assert_int_equal(fault_of(buf, len), ROCE_BAD_HEADER);
	for (unsigned int opcode = 0; opcode < 256; opcode++) {
		if ((opcode <= 0x17 && opcode != 0x15) || (opcode >= 0x20 && opcode <= 0x2b) ||
		    (opcode >= 0xa0 && opcode <= 0xb7 && opcode != 0xb5) || opcode == 0x1c || opcode == 0x1d ||
		    opcode == 0x64 || opcode == 0x65 || opcode == 0x81 || opcode == 0xd3 || opcode == 0xd4)
			continue;
		golden("send_only", buf);
		bth[0] = opcode;
		seal(buf, len);
		assert_int_equal(fault_of(buf, len), ROCE_BAD_OPCODE);
	}
	golden("send_only", buf);
	bth[2] = 0x7f;
	seal(buf, len);
	assert_int_equal(fault_of(buf, len), ROCE_BAD_PKEY);
	golden("send_only", buf);
	buf[14 + 20 + 5] += 4;			/* UDP says more than IP */
	assert_int_equal(fault_of(buf, len), ROCE_BAD_LENGTH);
	/* Opcodes that have no payload, with some; and headers that do not fit. */
	golden("send_only", buf);
	bth[0] = 0x11;
	bth[1] &= ~0x30;
	seal(buf, len);
	assert_int_equal(fault_of(buf, len), ROCE_BAD_LENGTH);
	bth[0] = 0x0a;
	seal(buf, len);
	assert_int_equal(fault_of(buf, len), ROCE_BAD_LENGTH);
	len = golden("send_only_empty", buf);
	bth[1] |= 0x10;				/* a pad of nothing */
	seal(buf, len);
	assert_int_equal(fault_of(buf, len), ROCE_BAD_LENGTH);
}

static void other_frames_are_not_roce(void **state)
{
	uint8_t buf[ROCE_MAX_PACKET];
	struct roce_packet pkt;
	size_t len;

	(void)state;
	len = golden("send_only", buf);
	buf[14 + 20 + 3] ^= 1;			/* another UDP port */
	assert_false(roce_packet_open(&pkt, buf, len));
	golden("send_only", buf);
	buf[14] = 0x46;				/* options */
	assert_false(roce_packet_open(&pkt, buf, len));
	golden("send_only", buf);
	buf[14 + 6] |= 0x20;			/* a fragment */
	assert_false(roce_packet_open(&pkt, buf, len));
	golden("send_only", buf);
	buf[14 + 9] = 6;			/* TCP */
	assert_false(roce_packet_open(&pkt, buf, len));
	len = golden("v6_ack", buf);
	buf[18 + 6] = 0;			/* an extension header */
	assert_false(roce_packet_open(&pkt, buf, len));
	golden("v6_ack", buf);
	memset(buf + 18 + 8, 0, 10);		/* an IPv4 address where none may be */
	memset(buf + 18 + 18, 0xff, 2);
	assert_false(roce_packet_open(&pkt, buf, len));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "GID-1 ROC-1 ROC-2 ROC-3 ROC-4 ROC-6 FLU-12 XRC-9: every_kind_is_as_scapy_builds_it",
		  every_kind_is_as_scapy_builds_it, NULL, NULL, NULL },
		cmocka_unit_test(every_vector_is_tried),
		cmocka_unit_test(a_message_may_be_cut_into_trains_anywhere),
		cmocka_unit_test(solicited_stands_only_in_the_last_packet_of_a_message),
		cmocka_unit_test(largest_packet_fits),
		{ "ROC-5: icrc_holds_whatever_routers_change", icrc_holds_whatever_routers_change,
		  NULL, NULL, NULL },
		cmocka_unit_test(what_is_parsed_builds_the_same_packet),
		cmocka_unit_test(atomics_are_parsed_as_they_are_built),
		{ "ATM-9: masked_atomics_are_as_the_manual_says", masked_atomics_are_as_the_manual_says, NULL, NULL, NULL },
		{ "FLU-12: reserved_bits_of_a_flush_are_not_looked_at", reserved_bits_of_a_flush_are_not_looked_at,
		  NULL, NULL, NULL },
		{ "CNG-4: a_cnp_is_as_the_manual_says", a_cnp_is_as_the_manual_says, NULL, NULL, NULL },
		cmocka_unit_test(no_packet_cut_short_is_good),
		cmocka_unit_test(no_flipped_bit_passes_but_in_masked_fields),
		{ "ROC-1 ROC-2 ROC-5: each_fault_has_its_cause", each_fault_has_its_cause, NULL, NULL, NULL },
		cmocka_unit_test(other_frames_are_not_roce),
	};

	for (size_t k = 0; k < sizeof(message); k++)
		message[k] = 7 * k + 3;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
