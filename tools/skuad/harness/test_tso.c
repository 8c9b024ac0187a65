// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* TCP that the device cuts into frames, and checksums whose place it finds. */
#include <netinet/in.h>
#include <stdio.h>

#include "base/bytes.h"
#include "core/qp.h"
#include "harness/harness.h"
#include "link/impair.h"
#include "nic/control.h"

#define ETH_MTU		1500u
#define MS		1000000ull
#define SLOTS		64u		/* of the memory region, for one received frame each */
#define SLOT		16384u
#define DATA		(2u << 20)	/* where the payload begins in the memory region */
#define DATA_LEN	(1u << 20)
#define MAX_FRAMES	1024u

/* Ethernet, perhaps a tag, IP perhaps with options, and TCP perhaps with options. */
struct headers {
	uint8_t bytes[144];
	uint32_t len, ip, tcp;
	bool v6;
};

#define FIN	0x01
#define PSH	0x08
#define ACK	0x10
#define CWR	0x80
#define SEQ	0xfffff800u
#define ID	0xfffe

/* Lengths and checksums in them are nonsense. */
static struct headers make_headers(const uint8_t *to, const uint8_t *from, bool tag, bool v6, uint32_t ip_options,
				   uint32_t tcp_options)
{
	struct headers h = { .ip = tag ? 18 : 14, .v6 = v6 };
	uint8_t *p = h.bytes;

	p = put_bytes(put_bytes(p, to, 6), from, 6);
	if (tag)
		p = put16(put16(p, 0x8100), 0xa00c);
	p = put16(p, v6 ? 0x86dd : 0x0800);
	if (v6) {
		p = put16(put32(p, 0x6e123456), 0x5a5a);
		p = put8(put8(p, IPPROTO_TCP), 61);
		for (uint8_t i = 0; i < 32; i++)
			p = put8(p, (uint8_t)(0x20 + i * 7));
	} else {
		p = put16(put8(put8(p, (uint8_t)(0x45 + ip_options / 4)), 0x28), 0x5a5a);
		p = put16(put16(p, ID), 0x4000);
		p = put16(put8(put8(p, 61), IPPROTO_TCP), 0x1234);
		p = put32(put32(p, 0xc0000201), 0xc6336402);
		for (uint32_t i = 0; i < ip_options; i++)
			p = put8(p, 1);
	}
	h.tcp = (uint32_t)(p - h.bytes);
	p = put32(put32(put16(put16(p, 4711), 80), SEQ), 0x01020304);
	p = put8(put8(p, (uint8_t)(0x50 + tcp_options * 4)), FIN | PSH | ACK | CWR);
	p = put16(put16(put16(p, 501), 0x4321), 0x0007);
	for (uint32_t i = 0; i < tcp_options; i++)
		p = put8(p, 1);
	h.len = (uint32_t)(p - h.bytes);
	return h;
}

static struct headers plain(const struct node *from, const struct node *to)
{
	return make_headers(to->mac, from->mac, false, false, 0, 12);
}

/* The sum by RFC 1071 of @len bytes, to be added to others. */
static uint32_t sum16(const uint8_t *p, uint32_t len)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < len; i++)
		sum += (uint32_t)p[i] << (i & 1 ? 0 : 8);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static uint16_t folded(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* The checksum is right, or both of them. */
static void assert_sums(const uint8_t *p, uint32_t len, uint32_t ip, uint32_t l4, uint8_t proto, bool v6)
{
	uint32_t addrs = v6 ? ip + 8 : ip + 12;

	if (!v6)
		assert_int_equal(sum16(p + ip, l4 - ip), 0xffff);
	assert_int_equal(folded(sum16(p + addrs, v6 ? 32 : 8) + proto + (len - l4) + sum16(p + l4, len - l4)), 0xffff);
}

/* A WQE with this payload, in one piece or more. */
struct wqe {
	union {
		struct skua_wqe_ctrl c;
		uint8_t bytes[1024];
	};
	uint32_t sges;		/* where they begin */
};

static struct wqe make_wqe(const struct node *n, const struct headers *h, uint32_t mss, uint32_t payload,
			   uint32_t pieces)
{
	const struct skua_wqe_tso tso = { .mss = htole16((uint16_t)mss), .hdr_len = htole16((uint16_t)h->len) };
	struct wqe wqe = { .c = { .opcode = SKUA_WQE_TSO, .flags = SKUA_WQE_SIGNALED, .num_sge = (uint8_t)pieces } };
	uint32_t off = 0, len;

	memcpy(wqe.bytes + 16, &tso, sizeof(tso));
	memcpy(wqe.bytes + 32, h->bytes, h->len);
	wqe.sges = 32 + (h->len + 15) / 16 * 16;
	for (uint32_t i = 0; i < pieces; i++, off += len) {
		struct skua_sge sge;

		len = i == pieces - 1 ? payload - off : payload / pieces / 2;
		sge = (struct skua_sge){ htole64(n->buf + DATA + off), htole32(len), htole32(n->key) };
		memcpy(wqe.bytes + wqe.sges + i * 16, &sge, sizeof(sge));
	}
	wqe.c.nblocks = (uint8_t)((wqe.sges + pieces * 16 + 63) / 64);
	return wqe;
}

static void fill_data(struct node *n, uint32_t seed)
{
	uint8_t *p = at(n, n->buf + DATA);

	for (uint32_t i = 0; i < DATA_LEN; i++)
		p[i] = (uint8_t)((i * 2654435761u + seed) >> 13);
}

/* What has been received: each frame, in order. */
static struct {
	uint8_t bytes[9018];
	uint32_t len;
	uint8_t flags;
} got[MAX_FRAMES];
static unsigned int num_got;

static void take_frames(struct node *n)
{
	struct skua_cqe *cqe;

	while ((cqe = poll_cq(n))) {
		assert_int_equal(cqe->opcode, SKUA_CQE_RECV);
		assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
		assert_in_range(num_got, 0, MAX_FRAMES - 1);
		got[num_got].len = le32toh(cqe->byte_len);
		got[num_got].flags = cqe->flags;
		memcpy(got[num_got++].bytes, at(n, n->buf + le32toh(cqe->cookie) % SLOTS * (uint64_t)SLOT),
		       le32toh(cqe->byte_len));
		post_recv(n, n->buf + n->rq_pi % SLOTS * (uint64_t)SLOT, SLOT);
	}
}

/* All that there is to receive comes. */
static void receive(struct world *w, struct node *n)
{
	num_got = 0;
	while (engine_step(w->engines[0]))
		take_frames(n);
	take_frames(n);
}

static void receives(struct node *n)
{
	for (unsigned int i = 0; i < SLOTS - 1; i++)
		post_recv(n, n->buf + n->rq_pi % SLOTS * (uint64_t)SLOT, SLOT);
}

static void post_wqe(struct node *n, const struct wqe *wqe)
{
	post_blocks(n, wqe->bytes, wqe->c.nblocks);
}

/* a posts it, and b receives all that comes of it. */
static void exchange(struct world *w, const struct wqe *wqe)
{
	post_wqe(&w->n[0], wqe);
	receive(w, &w->n[1]);
}

/* a sends, b receives what comes to its port. */
static void both_eth(struct world *w)
{
	eth_queues(w, &w->n[0]);
	eth_queues(w, &w->n[1]);
	receives(&w->n[1]);
	must(w, &w->n[1], port_cmd(SKUA_PORT_SET_FLAGS, SKUA_PORT_F_ENABLE | SKUA_PORT_F_PROMISC));
	fill_data(&w->n[0], 1);
}

static void set_mtu(struct world *w, struct node *n, uint32_t mtu)
{
	struct skua_cmd cmd = port_cmd(SKUA_PORT_SET_MTU, 0);

	cmd.set_port.mtu = htole32(mtu);
	must(w, n, cmd);
}

/* Frames @first and on of @got are those of a TSO that begin there, by TSO-3 and TSO-4. */
static void assert_cut(struct node *from, const struct headers *h, uint32_t mss, uint32_t payload)
{
	const uint8_t *data = at(from, from->buf + DATA);
	uint32_t frames = payload ? (payload - 1) / mss + 1 : 1;

	assert_int_equal(num_got, frames);
	for (uint32_t i = 0; i < frames; i++) {
		uint32_t len = i == frames - 1 ? payload - i * mss : mss;
		const uint8_t *p = got[i].bytes;
		uint8_t want[144];

		assert_int_equal(got[i].len, h->len + len);
		memcpy(want, h->bytes, h->len);
		if (h->v6) {
			put16(want + h->ip + 4, (uint16_t)(h->len - h->ip - 40 + len));
		} else {
			put16(want + h->ip + 2, (uint16_t)(h->len - h->ip + len));
			put16(want + h->ip + 4, (uint16_t)(ID + i));
			memcpy(want + h->ip + 10, p + h->ip + 10, 2);
		}
		put32(want + h->tcp + 4, SEQ + i * mss);
		want[h->tcp + 13] = (uint8_t)(ACK | (i ? 0 : CWR) | (i == frames - 1 ? FIN | PSH : 0));
		memcpy(want + h->tcp + 16, p + h->tcp + 16, 2);
		assert_memory_equal(p, want, h->len);
		assert_memory_equal(p + h->len, data + i * mss, len);
		assert_sums(p, got[i].len, h->ip, h->tcp, IPPROTO_TCP, h->v6);
		assert_int_equal(got[i].flags & (SKUA_CQE_L3_CSUM_OK | SKUA_CQE_L4_CSUM_OK),
				 SKUA_CQE_L4_CSUM_OK | (h->v6 ? 0 : SKUA_CQE_L3_CSUM_OK));
	}
}

/* It is sent, received, and compared. */
static void cut(struct world *w, const struct headers *h, uint32_t mss, uint32_t payload, uint32_t pieces)
{
	struct node *a = &w->n[0];
	struct wqe wqe = make_wqe(a, h, mss, payload, pieces);

	exchange(w, &wqe);
	expect(w, a, SKUA_CQE_TSO, SKUA_CQE_SUCCESS);
	assert_cut(a, h, mss, payload);
}

static void frames_are_cut(void **state)
{
	static const uint32_t mss[] = { 1, 7, 536, 1440 - 60 };
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	both_eth(w);
	for (unsigned int kind = 0; kind < 16; kind++) {
		struct headers h = make_headers(b->mac, a->mac, kind & 1, kind & 2, kind & 2 ? 0 : (kind & 4) * 10,
						kind & 8 ? 40 : 0);

		for (unsigned int i = 0; i < 4; i++) {
			uint32_t n = mss[i];
			const uint32_t lens[] = { 0, 1, n - 1, n, n + 1, 3 * n, 5 * n + n / 2 };

			for (unsigned int j = 0; j < 7; j++)
				cut(w, &h, n, lens[j], 1 + (kind + j) % 3);
		}
	}
}

/* All pieces that a WQE may have, odd ones and empty ones; and one that ends at the end of the ring. */
static void payload_of_pieces(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct headers h = plain(a, b);
	struct wqe wqe;
	uint32_t len = 0;

	both_eth(w);
	wqe = make_wqe(a, &h, 101, 0, 30);
	for (uint32_t i = 0; i < 30; i++) {
		uint32_t piece = i % 7 == 3 ? 0 : 1 + i * 11;
		struct skua_sge sge = { htole64(a->buf + DATA + len), htole32(piece), htole32(a->key) };

		memcpy(wqe.bytes + wqe.sges + i * 16, &sge, sizeof(sge));
		len += piece;
	}
	for (unsigned int i = 0; i < 100; i++) {
		exchange(w, &wqe);
		expect(w, a, SKUA_CQE_TSO, SKUA_CQE_SUCCESS);
		assert_cut(a, &h, 101, len);
	}
}

static void jumbo_frames(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct headers h = plain(a, b);

	both_eth(w);
	set_mtu(w, a, 9000);
	set_mtu(w, b, 9000);
	cut(w, &h, 9018 - h.len, 65535, 2);
}

static void as_much_as_there_may_be(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct headers h = plain(a, b);
	struct skua_device_caps *caps = query(w, a, (struct skua_cmd)CMD(SKUA_CMD_QUERY_DEVICE), sizeof(*caps));
	uint32_t max = le32toh(caps->max_tso);
	struct wqe wqe;

	assert_in_range(max, 65536, DATA_LEN - 1);
	both_eth(w);
	cut(w, &h, 1448, max, 1);
	wqe = make_wqe(a, &h, 1448, max + 1, 2);
	exchange(w, &wqe);
	assert_int_equal(num_got, 0);
	expect_vendor(w, a, SKUA_CQE_TSO, SKUA_CQE_LOC_LEN_ERR, SKUA_VENDOR_ERR_MSG_TOO_LONG);
}

static void frames_longer_than_the_mtu(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct headers h = plain(a, b);
	uint32_t fits = ETH_MTU + 18 - h.len;
	struct wqe wqe;

	both_eth(w);
	cut(w, &h, fits, 2 * fits, 1);
	/* The longest frame counts, not mss. */
	cut(w, &h, 65535, fits, 1);
	wqe = make_wqe(a, &h, fits + 1, 2 * fits, 1);
	exchange(w, &wqe);
	assert_int_equal(num_got, 0);
	expect_vendor(w, a, SKUA_CQE_TSO, SKUA_CQE_LOC_LEN_ERR, SKUA_VENDOR_ERR_MSG_TOO_LONG);
	assert_int_equal(qp_state(w, a, a->qpn), SKUA_QPS_ERR);
}

/* No such WQE is sent in part. */
static void refused(struct wqe (*spoil)(const struct node *n, struct headers h), uint8_t vendor)
{
	struct world *w = world_create(false);
	struct node *a = &w->n[0], *b = &w->n[1];
	struct wqe wqe;

	both_eth(w);
	wqe = spoil(a, plain(a, b));
	exchange(w, &wqe);
	assert_int_equal(num_got, 0);
	expect_vendor(w, a, SKUA_CQE_TSO, SKUA_CQE_LOC_QP_OP_ERR, vendor);
	assert_int_equal(qp_state(w, a, a->qpn), SKUA_QPS_ERR);
	world_destroy(w);
}

#define WITH_HEADER(name, ...)						\
static struct wqe name(const struct node *n, struct headers h)		\
{									\
	__VA_ARGS__;							\
	return make_wqe(n, &h, 1448, 4000, 1);				\
}
#define WITH_WQE(name, ...)						\
static struct wqe name(const struct node *n, struct headers h)		\
{									\
	struct wqe wqe = make_wqe(n, &h, 1448, 4000, 1);		\
									\
	__VA_ARGS__;							\
	return wqe;							\
}

WITH_HEADER(no_header, h.len = 0)
WITH_HEADER(a_short_frame, h.len = 13)
WITH_HEADER(a_type_and_no_more, h.len = 15)
WITH_HEADER(a_cut_header, h.len--)
WITH_HEADER(a_header_without_options, h.len = h.tcp + 20)
WITH_HEADER(a_byte_behind_tcp, h.len++)
WITH_HEADER(an_ip_header_alone, h.len = h.tcp)
WITH_HEADER(another_type, h.bytes[13] = 6)
WITH_HEADER(another_ip_version, h.bytes[14] = 0x65)
WITH_HEADER(a_short_ip_header, h.bytes[14] = 0x44)
WITH_HEADER(a_long_ip_header, h.bytes[14] = 0x4f)
WITH_HEADER(udp, h.bytes[23] = IPPROTO_UDP)
WITH_HEADER(a_first_fragment, h.bytes[20] = 0x20)
WITH_HEADER(a_last_fragment, h.bytes[21] = 1)
WITH_HEADER(a_short_tcp_header, h.bytes[h.tcp + 12] = 0x40; h.len = h.tcp + 16)
WITH_HEADER(two_tags, h = make_headers(h.bytes, h.bytes + 6, true, false, 0, 0); h.bytes[16] = 0x81; h.bytes[17] = 0)
WITH_HEADER(another_tag, h = make_headers(h.bytes, h.bytes + 6, true, false, 0, 0); h.bytes[12] = 0x88;
	    h.bytes[13] = 0xa8)
WITH_HEADER(ipv6_extension, h = make_headers(h.bytes, h.bytes + 6, false, true, 0, 0); h.bytes[20] = 0)
WITH_HEADER(another_ipv6_version, h = make_headers(h.bytes, h.bytes + 6, false, true, 0, 0); h.bytes[14] = 0x40)
WITH_HEADER(ipv6_cut_short, h = make_headers(h.bytes, h.bytes + 6, false, true, 0, 0); h.len = 50)
WITH_WQE(no_mss, wqe.bytes[16] = wqe.bytes[17] = 0)
WITH_WQE(inline_data, wqe.c.flags |= SKUA_WQE_INLINE; wqe.c.num_sge = 0; wqe.c.length = htole32(16))
WITH_WQE(inline_without_data, wqe.c.flags |= SKUA_WQE_INLINE; wqe.c.num_sge = 0)
WITH_WQE(a_length, wqe.c.length = htole32(1))
WITH_WQE(a_checksum, wqe.c.flags |= SKUA_WQE_L4_CSUM)
WITH_WQE(a_place_of_a_checksum, wqe.c.csum_start = htole16(34))
WITH_WQE(a_fence, wqe.c.flags |= SKUA_WQE_FENCE)
WITH_WQE(an_unknown_flag, wqe.c.flags |= 0x40)
WITH_WQE(solicited, wqe.c.flags |= SKUA_WQE_SOLICITED)
WITH_WQE(a_reserved_byte, wqe.bytes[20] = 1)
WITH_WQE(the_last_reserved_byte, wqe.bytes[31] = 1)
WITH_WQE(no_room_for_the_header, wqe.c.nblocks = 1; wqe.c.num_sge = 0)
WITH_WQE(no_room_for_sges, wqe.c.num_sge = 3)
WITH_WQE(a_long_header, wqe.bytes[19] = 0xff)
WITH_WQE(more_sges, wqe.c.num_sge = 31; wqe.c.nblocks = 16)

static void bad_wqes(void **state)
{
	static struct wqe (*const bad[])(const struct node *n, struct headers h) = {
		no_header, a_short_frame, a_type_and_no_more, a_cut_header, a_header_without_options, a_byte_behind_tcp,
		an_ip_header_alone, another_type, another_ip_version, a_short_ip_header, a_long_ip_header, udp,
		a_first_fragment, a_last_fragment, a_short_tcp_header, two_tags, another_tag, ipv6_extension,
		another_ipv6_version, ipv6_cut_short, no_mss, inline_data, inline_without_data, a_length, a_checksum,
		a_place_of_a_checksum, a_fence, an_unknown_flag, solicited, a_reserved_byte, the_last_reserved_byte,
		no_room_for_the_header, no_room_for_sges, a_long_header,
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		refused(bad[i], SKUA_VENDOR_ERR_WQE_FORMAT);
	refused(more_sges, SKUA_VENDOR_ERR_SGE_COUNT);
}

static void other_types_of_qps_have_none(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];
	struct headers h = plain(a, &w->n[1]);
	struct wqe wqe = make_wqe(a, &h, 100, 100, 1);

	post_wqe(a, &wqe);
	expect_vendor(w, a, SKUA_CQE_TSO, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_OPCODE);
}

static void without_the_feature_there_is_none(void **state)
{
	struct world *w = world_create_with(false, ~(1ull << SKUA_F_TSO));
	struct node *a = &w->n[0];
	struct headers h = plain(a, &w->n[1]);
	struct wqe wqe = make_wqe(a, &h, 100, 100, 1);
	struct skua_device_caps *caps;

	(void)state;
	both_eth(w);
	caps = query(w, a, (struct skua_cmd)CMD(SKUA_CMD_QUERY_DEVICE), sizeof(*caps));
	assert_int_equal(le32toh(caps->max_tso), 0);
	post_wqe(a, &wqe);
	expect_vendor(w, a, SKUA_CQE_TSO, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_OPCODE);
	world_destroy(w);
}

/* The first frames were sent when it turns out that the last has no memory. */
static void memory_of_a_later_frame(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct headers h = plain(a, b);
	struct wqe wqe;

	both_eth(w);
	wqe = make_wqe(a, &h, 1000, 3000, 2);
	wqe.bytes[wqe.sges + 16 + 13] ^= 1;	/* its lkey */
	exchange(w, &wqe);
	assert_int_equal(num_got, 0);		/* 750 bytes of the first frame are there */
	expect_vendor(w, a, SKUA_CQE_TSO, SKUA_CQE_LOC_PROT_ERR, SKUA_VENDOR_ERR_KEY_UNKNOWN);
	eth_queues(w, a);
	wqe = make_wqe(a, &h, 250, 3000, 2);
	wqe.bytes[wqe.sges + 16 + 13] ^= 1;
	exchange(w, &wqe);
	assert_int_equal(num_got, 3);
	expect_vendor(w, a, SKUA_CQE_TSO, SKUA_CQE_LOC_PROT_ERR, SKUA_VENDOR_ERR_KEY_UNKNOWN);
	assert_int_equal(qp_state(w, a, a->qpn), SKUA_QPS_ERR);
}

/* A program's has no privilege either. */
static void payload_is_the_programs_own(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct headers h = plain(a, b);
	struct wqe wqe;

	both_eth(w);
	use_queues(a, raw_qp(w, a));
	cut(w, &h, 1448, 20000, 2);
	wqe = make_wqe(a, &h, 1448, 20000, 1);
	memcpy(wqe.bytes + wqe.sges + 12, &(uint32_t){ htole32(0xffffff00) }, 4);
	exchange(w, &wqe);
	assert_int_equal(num_got, 0);
	expect_vendor(w, a, SKUA_CQE_TSO, SKUA_CQE_LOC_PROT_ERR, SKUA_VENDOR_ERR_PRIVILEGE);
}

/* A CQE comes when the last frame was sent, if it is wanted; counters count frames. */
static void a_wqe_completes_once(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct headers h = plain(a, b);
	struct skua_cqe *cqe;
	struct wqe wqe;

	both_eth(w);
	wqe = make_wqe(a, &h, 1000, 9500, 1);
	wqe.c.flags = 0;
	exchange(w, &wqe);
	assert_int_equal(num_got, 10);
	expect_none(w, a);
	wqe.c.flags = SKUA_WQE_SIGNALED;
	wqe.c.cookie = htole32(0x1234);
	exchange(w, &wqe);
	cqe = await_cqe(w, a);
	assert_int_equal(cqe->opcode, SKUA_CQE_TSO);
	assert_int_equal(le32toh(cqe->cookie), 0x1234);
	assert_int_equal(le32toh(cqe->sq_ci), 2 * wqe.c.nblocks);
	assert_int_equal(le32toh(cqe->byte_len), 0);
	expect_none(w, a);
	assert_int_equal(STAT(w, a, tx_frames), 20);
	assert_int_equal(STAT(w, a, tx_bytes), 2 * (9500 + 10 * h.len));
}

/* All that was posted is sent. The most frames that went out in one round. */
static uint64_t most_in_a_round(struct world *w, struct node *from, struct node *to)
{
	uint64_t most = 0, before;
	bool any;

	num_got = 0;
	do {
		before = from->dev->stats.tx_frames;
		any = engine_step(w->engines[0]);
		take_frames(to);
		if (from->dev->stats.tx_frames - before > most)
			most = from->dev->stats.tx_frames - before;
	} while (any);
	return most;
}

/* Frames of others go between those of a long one, and no round sends more than its share. */
static void it_takes_turns(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct headers h = plain(a, b);
	struct queues other;
	struct wqe wqe;

	both_eth(w);
	other = eth_queues(w, a);
	wqe = make_wqe(a, &h, 1300, 200 * 1300, 1);
	post_wqe(a, &wqe);
	other = use_queues(a, other);
	wqe = make_wqe(a, &h, 999, 999, 1);
	post_wqe(a, &wqe);
	use_queues(a, other);
	assert_in_range(most_in_a_round(w, a, b), 40, 65536 / 1300 + 1);
	assert_int_equal(num_got, 201);
	expect(w, a, SKUA_CQE_TSO, SKUA_CQE_SUCCESS);
	expect(w, a, SKUA_CQE_TSO, SKUA_CQE_SUCCESS);
	for (unsigned int i = 0; i < num_got; i++)
		if (got[i].len == h.len + 999)
			assert_in_range(i, 0, 110);
	/* One byte each: there is a least that a frame costs. */
	wqe = make_wqe(a, &h, 1, 1000, 1);
	post_wqe(a, &wqe);
	assert_in_range(most_in_a_round(w, a, b), 200, 256);
	expect(w, a, SKUA_CQE_TSO, SKUA_CQE_SUCCESS);
}

/* It is in the midst of its frames when the QP goes to ERR. */
static void an_error_ends_it(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct headers h = plain(a, b);
	struct wqe wqe;

	both_eth(w);
	wqe = make_wqe(a, &h, 1000, 200000, 1);
	post_wqe(a, &wqe);
	post_wqe(a, &wqe);
	num_got = 0;
	do {
		engine_step(w->engines[0]);
		take_frames(b);
	} while (!num_got);
	must(w, a, state_cmd(a->qpn, SKUA_QPS_ERR));
	settle(w);
	take_frames(b);
	assert_in_range(num_got, 1, 199);
	expect(w, a, SKUA_CQE_TSO, SKUA_CQE_WR_FLUSH_ERR);
	expect(w, a, SKUA_CQE_TSO, SKUA_CQE_WR_FLUSH_ERR);
	/* A WQE of the QP's next life begins with its first frame. */
	must(w, a, state_cmd(a->qpn, SKUA_QPS_RESET));
	a->sq_pi = a->rq_pi = 0;
	memset(at(a, a->sq_dbr), 0, 64);
	for (uint8_t s = SKUA_QPS_INIT; s <= SKUA_QPS_RTS; s++)
		must(w, a, state_cmd(a->qpn, s));
	cut(w, &h, 1000, 5000, 1);
}

static void without_a_port_frames_go_nowhere(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct headers h = plain(a, b);
	struct wqe wqe;

	both_eth(w);
	must(w, a, port_cmd(SKUA_PORT_SET_FLAGS, 0));
	wqe = make_wqe(a, &h, 1000, 5000, 1);
	exchange(w, &wqe);
	assert_int_equal(num_got, 0);
	expect(w, a, SKUA_CQE_TSO, SKUA_CQE_SUCCESS);
	assert_int_equal(STAT(w, a, tx_frames), 0);
}

static void each_frame_has_to_be_from_the_ports_mac(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct headers h = plain(a, b);
	struct wqe wqe;

	both_eth(w);
	h.bytes[11] ^= 0x40;
	wqe = make_wqe(a, &h, 1000, 4500, 1);
	exchange(w, &wqe);
	assert_int_equal(num_got, 0);
	expect(w, a, SKUA_CQE_TSO, SKUA_CQE_SUCCESS);
	assert_int_equal(STAT(w, a, tx_spoofed), 5);
}

/* The line of the node takes a frame now and then. */
static void slow_line(struct node *n)
{
	struct impair_config config = { 0 };
	char err[100];

	assert_true(impair_parse(&config, "rate=10M,dir=out", err, sizeof(err)));
	assert_true(skua_dev_set_impair(n->dev, &config));
}

static void a_slow_line(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct headers h = plain(a, b);
	struct wqe wqe;

	both_eth(w);
	slow_line(a);
	wqe = make_wqe(a, &h, 1400, 28000, 1);
	exchange(w, &wqe);
	for (int i = 0; i < 100; i++) {
		pass(w, MS);
		take_frames(b);
	}
	expect(w, a, SKUA_CQE_TSO, SKUA_CQE_SUCCESS);
	assert_cut(a, &h, 1400, 28000);
}

static void each_frame_loops_back_once(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct headers h = make_headers((const uint8_t[6]){ 1, 0, 94, 0, 0, 1 }, a->mac, false, false, 0, 0);
	struct skua_cmd flow = CMD(SKUA_CMD_CREATE_FLOW, .flow = { .type = SKUA_FLOW_NORMAL });
	struct queues from, to;
	struct wqe wqe;

	both_eth(w);
	from = raw_qp(w, a);
	to = raw_qp(w, a);
	flow.flow.qpn = htole32(to.qpn);
	flow.flow.value.dmac[0] = 1;
	flow.flow.mask.dmac[0] = 0xff;
	must(w, a, flow);
	use_queues(a, to);
	receives(a);
	to = use_queues(a, from);
	slow_line(a);
	wqe = make_wqe(a, &h, 1400, 28000, 1);
	wqe.c.flags = 0;
	post_wqe(a, &wqe);
	for (int i = 0; i < 100; i++)
		pass(w, MS);
	use_queues(a, to);
	num_got = 0;
	take_frames(a);
	assert_cut(a, &h, 1400, 28000);
	num_got = 0;
	take_frames(b);
	assert_cut(a, &h, 1400, 28000);
}

/* Checksums whose place the device finds */

static void send_csum(struct node *n, uint8_t flags, uint32_t len)
{
	struct { struct skua_wqe_ctrl c; struct skua_sge s[3]; } wqe = {
		.c = { .opcode = SKUA_WQE_SEND, .flags = flags | SKUA_WQE_SIGNALED, .nblocks = 1, .num_sge = 1 },
		.s[0] = { htole64(n->buf + DATA), htole32(len), htole32(n->key) } };

	post_block(n, &wqe);
}

/* a sends the frame that is there, and b receives it. */
static void exchange_csum(struct world *w, uint32_t len)
{
	send_csum(&w->n[0], SKUA_WQE_IP_CSUM, len);
	receive(w, &w->n[1]);
}

/* A frame of @proto with @len bytes behind its IP header, which hold nonsense where checksums are. */
static uint32_t make_frame(struct node *n, struct headers h, uint8_t proto, uint32_t len)
{
	uint8_t *p = at(n, n->buf + DATA);
	uint32_t total = h.tcp + len;

	fill_data(n, len);
	memcpy(p, h.bytes, proto == IPPROTO_TCP && len >= h.len - h.tcp ? h.len : h.tcp);
	if (h.v6) {
		put16(p + h.ip + 4, (uint16_t)len);
		p[h.ip + 6] = proto;
	} else {
		put16(p + h.ip + 2, (uint16_t)(total - h.ip));
		p[h.ip + 9] = proto;
	}
	if (proto == IPPROTO_UDP)
		put16(p + h.tcp + 4, (uint16_t)len);
	return total;
}

static void checksums_are_found(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	both_eth(w);
	for (unsigned int kind = 0; kind < 16; kind++) {
		struct headers h = make_headers(b->mac, a->mac, kind & 1, kind & 2, kind & 2 ? 0 : (kind & 4) * 10, 0);
		uint8_t proto = kind & 8 ? IPPROTO_UDP : IPPROTO_TCP;

		for (uint32_t len = 20; len < 120; len++) {
			uint32_t total = make_frame(a, h, proto, len), place = h.tcp + (kind & 8 ? 6 : 16);
			uint8_t *p = at(a, a->buf + DATA), before[256];

			memcpy(before, p, total);
			exchange_csum(w, total);
			expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
			assert_memory_equal(p, before, total);
			assert_int_equal(num_got, 1);
			assert_int_equal(got[0].len, total);
			assert_sums(got[0].bytes, total, h.ip, h.tcp, proto, h.v6);
			assert_int_equal(!!(got[0].flags & SKUA_CQE_L4_CSUM_OK), 1);
			assert_int_equal(!!(got[0].flags & SKUA_CQE_L3_CSUM_OK), !h.v6);
			memcpy(before + place, got[0].bytes + place, 2);
			if (!h.v6)
				memcpy(before + h.ip + 10, got[0].bytes + h.ip + 10, 2);
			assert_memory_equal(got[0].bytes, before, total);
		}
	}
}

/* A sum of 0 would say that there is none. */
static void no_checksum_of_zero(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct headers h = plain(a, b);
	uint32_t total;
	uint8_t *p = at(a, a->buf + DATA);

	both_eth(w);
	total = make_frame(a, h, IPPROTO_UDP, 30);
	exchange_csum(w, total);
	/* With this in the place of two bytes that were zero, all sums to 0xffff. */
	memset(p + h.tcp + 8, 0, 2);
	exchange_csum(w, total);
	memcpy(p + h.tcp + 8, got[0].bytes + h.tcp + 6, 2);
	exchange_csum(w, total);
	assert_int_equal(get16(got[0].bytes + h.tcp + 6), 0xffff);
	assert_int_equal(!!(got[0].flags & SKUA_CQE_L4_CSUM_OK), 1);
}

/* Frames with nothing to be filled in stay as they are, in whole or in part. */
static void where_there_is_no_checksum(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct headers v4 = plain(a, b), v6 = make_headers(b->mac, a->mac, false, true, 0, 0);
	uint8_t *p = at(a, a->buf + DATA);

	both_eth(w);
	for (unsigned int i = 0; i < 9; i++) {
		uint32_t total = make_frame(a, i < 2 ? v6 : v4, IPPROTO_UDP, 60);
		bool l3 = i >= 2 && i < 7;
		uint8_t want[256];

		switch (i) {
		case 0: p[v6.ip + 6] = 0; break;			/* an extension header */
		case 1: p[v6.tcp + 5] ^= 1; break;			/* UDP says another length */
		case 2: p[v4.ip + 9] = IPPROTO_ICMP; break;
		case 3: p[v4.ip + 6] = 0x20; break;			/* a first fragment, */
		case 4: p[v4.ip + 7] = 9; break;			/* and the last */
		case 5: p[v4.tcp + 5] ^= 1; break;
		case 6: put16(p + v4.ip + 2, 20 + 7); break;		/* no whole header of UDP */
		case 7: put16(p + v4.ip + 2, 500); break;		/* more than there is */
		case 8: p[13] = 6; break;				/* not IP */
		}
		memcpy(want, p, total);
		exchange_csum(w, total);
		expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
		assert_int_equal(num_got, 1);
		if (l3) {
			assert_int_equal(sum16(got[0].bytes + v4.ip, 20), 0xffff);
			memcpy(want + v4.ip + 10, got[0].bytes + v4.ip + 10, 2);
		}
		assert_memory_equal(got[0].bytes, want, total);
	}
}

static void bad_checksum_flags(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		struct world *w = i == 2 ? world_create_with(false, ~(1ull << SKUA_F_IP_CSUM)) : world_create(false);
		struct skua_wqe_ctrl nop[4] = { { .opcode = SKUA_WQE_NOP, .nblocks = 1, .flags = SKUA_WQE_IP_CSUM } };
		struct node *a = &w->n[0], *b = &w->n[1];

		if (i != 3)
			both_eth(w);
		make_frame(a, plain(a, b), IPPROTO_UDP, 60);
		if (i == 0)
			send_csum(a, SKUA_WQE_IP_CSUM | SKUA_WQE_L4_CSUM, 94);
		else if (i == 1)
			post_block(a, nop);
		else
			send_csum(a, SKUA_WQE_IP_CSUM, 94);	/* without the feature; by RC */
		expect_vendor(w, a, i == 1 ? SKUA_CQE_NOP : SKUA_CQE_SEND, SKUA_CQE_LOC_QP_OP_ERR,
			      SKUA_VENDOR_ERR_WQE_FORMAT);
		world_destroy(w);
	}
}

/* It has no effect, and does no harm: the checksums are there anyway. */
static void a_cut_frame_may_ask_for_checksums(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct headers h = plain(a, b);
	struct wqe wqe;

	both_eth(w);
	wqe = make_wqe(a, &h, 1000, 3000, 1);
	wqe.c.flags |= SKUA_WQE_IP_CSUM;
	exchange(w, &wqe);
	expect(w, a, SKUA_CQE_TSO, SKUA_CQE_SUCCESS);
	assert_cut(a, &h, 1000, 3000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STEPPED(frames_are_cut, "TSO-1 TSO-3 TSO-4"),
		STEPPED(payload_of_pieces, "TSO-2 TSO-3"),
		STEPPED(jumbo_frames, "TSO-3 TSO-5"),
		STEPPED(as_much_as_there_may_be, "TSO-5 LIM-1"),
		STEPPED(frames_longer_than_the_mtu, "TSO-5 ETH-4"),
		STEPPED(bad_wqes, "TSO-1 TSO-2 WQE-5 WQE-6"),
		STEPPED(other_types_of_qps_have_none, "WQE-6"),
		STEPPED(without_the_feature_there_is_none, "FEA-2"),
		STEPPED(memory_of_a_later_frame, "TSO-6 WQE-7"),
		STEPPED(payload_is_the_programs_own, "TSO-2 RAW-1 SEC-3"),
		STEPPED(a_wqe_completes_once, "TSO-6 CQE-1"),
		STEPPED(it_takes_turns, "TSO-6 SEC-8"),
		STEPPED(an_error_ends_it, "TSO-6 ERR-1"),
		STEPPED(without_a_port_frames_go_nowhere, "TSO-6 ETH-3"),
		STEPPED(each_frame_has_to_be_from_the_ports_mac, "TSO-6 PRT-7"),
		STEPPED(a_slow_line, "TSO-6"),
		STEPPED(each_frame_loops_back_once, "TSO-6 RAW-9"),
		STEPPED(checksums_are_found, "ETH-17"),
		STEPPED(no_checksum_of_zero, "ETH-17"),
		STEPPED(where_there_is_no_checksum, "ETH-17"),
		STEPPED(bad_checksum_flags, "ETH-17 WQE-5 WQE-6 FEA-2"),
		STEPPED(a_cut_frame_may_ask_for_checksums, "TSO-2"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
