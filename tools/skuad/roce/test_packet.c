// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Packets built from trains, compared byte by byte with those of an independent
 * implementation (test_packet_vectors.py).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "roce/icrc.h"
#include "roce/packet.h"
#include "roce/test_packet_vectors.h"
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
		.op = k->op, .first = true, .last = true, .solicited = k->solicited,
		.ack_req = k->ack_req, .syndrome = k->syndrome, .dest_qpn = 0x123456,
		.psn = PSN, .npkts = k->npkts, .pmtu = 256, .msn = k->msn, .imm = k->inv,
		.rkey = 0xcafe0042, .raddr = 0x1122334455667788, .msg_len = k->msg_len,
		.path = k->v6 ? &path6 : &path4, .payload = k->bytes ? payload : NULL,
	};

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
	struct kind k = { "", TRAIN_WRITE_IMM, 4096, 1, 0, .v6 = true };
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_is_as_scapy_builds_it),
		cmocka_unit_test(every_vector_is_tried),
		cmocka_unit_test(a_message_may_be_cut_into_trains_anywhere),
		cmocka_unit_test(solicited_stands_only_in_the_last_packet_of_a_message),
		cmocka_unit_test(largest_packet_fits),
		cmocka_unit_test(icrc_holds_whatever_routers_change),
	};

	for (size_t k = 0; k < sizeof(message); k++)
		message[k] = 7 * k + 3;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
