// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Headers, checksums and hashes of frames, as bytes. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "packet/frame.h"
#include "skua/cmd.h"

/* Key and results of Microsoft's verification suite of the hash. */
static const uint8_t key[SKUA_RSS_KEY_LEN] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
	0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
	0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
	0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

/* Frames are made here: a frame of @len bytes, with @data bytes behind its TCP or UDP header. */
struct frame {
	uint8_t b[256];
	size_t len, ip, l4;
};

static struct frame ethernet(unsigned int type, bool vlan)
{
	struct frame f = { .len = vlan ? 18 : 14 };

	if (vlan) {
		put16(f.b + 12, 0x8100);
		put16(f.b + 14, 0xa000 | 7);
	}
	put16(f.b + f.len - 2, type);
	f.ip = f.len;
	return f;
}

static void add_l4(struct frame *f, uint8_t proto, unsigned int sport, unsigned int dport, size_t data)
{
	size_t len = (proto == 6 ? 20 : 8) + data;

	f->l4 = f->len;
	put16(f->b + f->l4, sport);
	put16(f->b + f->l4 + 2, dport);
	if (proto == 17)
		put16(f->b + f->l4 + 4, (unsigned int)len);
	else
		f->b[f->l4 + 12] = 0x50;
	for (size_t i = len - data; i < len; i++)
		f->b[f->l4 + i] = (uint8_t)(i * 37 + 1);
	f->len += len;
}

static struct frame ipv4(bool vlan, uint8_t proto, const char *src, unsigned int sport,
			 const char *dst, unsigned int dport, size_t data)
{
	struct frame f = ethernet(0x0800, vlan);
	uint8_t *ip = f.b + f.ip;

	f.len += 20;
	add_l4(&f, proto, sport, dport, data);
	ip[0] = 0x45;
	put16(ip + 2, (unsigned int)(f.len - f.ip));
	ip[8] = 64;
	ip[9] = proto;
	assert_int_equal(inet_pton(AF_INET, src, ip + 12), 1);
	assert_int_equal(inet_pton(AF_INET, dst, ip + 16), 1);
	frame_fill_csum(f.b, f.ip + 20, f.ip, 10);
	return f;
}

static struct frame ipv6(bool vlan, uint8_t proto, const char *src, unsigned int sport,
			 const char *dst, unsigned int dport, size_t data)
{
	struct frame f = ethernet(0x86dd, vlan);
	uint8_t *ip = f.b + f.ip;

	f.len += 40;
	add_l4(&f, proto, sport, dport, data);
	ip[0] = 0x60;
	put16(ip + 4, (unsigned int)(f.len - f.ip - 40));
	ip[6] = proto;
	assert_int_equal(inet_pton(AF_INET6, src, ip + 8), 1);
	assert_int_equal(inet_pton(AF_INET6, dst, ip + 24), 1);
	return f;
}

/* The checksum, added up byte by byte, unlike frame.c. */
static void add_csum(struct frame *f)
{
	bool v6 = f->b[f->ip] >> 4 == 6, udp = f->b[f->ip + (v6 ? 6 : 9)] == 17;
	size_t len = f->len - f->l4, at = f->l4 + (udp ? 6 : 16);
	const uint8_t *addrs = f->b + f->ip + (v6 ? 8 : 12);
	uint32_t sum = (udp ? 17 : 6) + (uint32_t)len;

	put16(f->b + at, 0);
	for (size_t i = 0; i < (v6 ? 32u : 8u); i++)
		sum += (uint32_t)addrs[i] << (i & 1 ? 0 : 8);
	for (size_t i = 0; i < len; i++)
		sum += (uint32_t)f->b[f->l4 + i] << (i & 1 ? 0 : 8);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	put16(f->b + at, ~sum & 0xffff);
}

static bool l4_ok(const struct frame *f)
{
	struct frame_info info = frame_parse(f->b, f->len);

	return frame_l4_ok(f->b, &info);
}

static uint32_t hash(const struct frame *f)
{
	struct frame_info info = frame_parse(f->b, f->len);

	return frame_hash(f->b, &info, SKUA_HASH_MASK, key).hash;
}

static void hash_of_ports(void **state)
{
	struct frame f;

	(void)state;
	f = ipv4(false, 6, "66.9.149.187", 2794, "161.142.100.80", 1766, 3);
	assert_int_equal(hash(&f), 0x51ccc178);
	f = ipv4(true, 17, "199.92.111.2", 14230, "65.69.140.83", 4739, 0);
	assert_int_equal(hash(&f), 0xc626b0ea);
	f = ipv6(false, 6, "3ffe:2501:200:1fff::7", 2794, "3ffe:2501:200:3::1", 1766, 0);
	assert_int_equal(hash(&f), 0x40207d3d);
}

static void hash_of_addresses(void **state)
{
	struct frame f;

	(void)state;
	f = ipv4(false, 1, "66.9.149.187", 2794, "161.142.100.80", 1766, 3);
	assert_int_equal(hash(&f), 0x323e8fc2);
	f = ipv6(true, 58, "3ffe:2501:200:1fff::7", 2794, "3ffe:2501:200:3::1", 1766, 0);
	assert_int_equal(hash(&f), 0x2cc18cd5);
	/* Fragments, the first and a later one. */
	f = ipv4(false, 17, "199.92.111.2", 14230, "65.69.140.83", 4739, 0);
	put16(f.b + f.ip + 6, 0x2000);
	assert_int_equal(hash(&f), 0xd718262a);
	put16(f.b + f.ip + 6, 100);
	assert_int_equal(hash(&f), 0xd718262a);
	put16(f.b + f.ip + 6, 0x4000);		/* do not fragment */
	assert_int_equal(hash(&f), 0xc626b0ea);
}

static void no_hash(void **state)
{
	struct frame f = ethernet(0x0806, false);

	(void)state;
	f.len = 42;
	assert_int_equal(hash(&f), 0);
	/* IPv4 and IPv6 whose headers, or what their lengths promise, are cut short. */
	f = ipv4(false, 6, "66.9.149.187", 2794, "161.142.100.80", 1766, 3);
	for (size_t len = 14; len < f.len; len++)
		assert_int_equal(frame_parse(f.b, len).ip, 0);
	f = ipv6(true, 17, "3ffe::7", 2794, "3ffe::1", 1766, 3);
	for (size_t len = 14; len < f.len; len++)
		assert_int_equal(frame_parse(f.b, len).ip, 0);
	/* A second tag, a wrong version, a header of fewer bytes than there are. */
	put16(f.b + 16, 0x8100);
	assert_int_equal(hash(&f), 0);
	f = ipv4(false, 6, "66.9.149.187", 2794, "161.142.100.80", 1766, 3);
	f.b[f.ip] = 0x65;
	assert_int_equal(hash(&f), 0);
	f.b[f.ip] = 0x44;
	assert_int_equal(hash(&f), 0);
	f.b[f.ip] = 0x4f;
	put16(f.b + f.ip + 2, 24);
	assert_int_equal(hash(&f), 0);
}

/* Every length to both sides of a word, over both protocols and both versions of IP. */
static void right_checksums(void **state)
{
	(void)state;
	for (size_t data = 0; data < 40; data++) {
		for (unsigned int how = 0; how < 8; how++) {
			uint8_t proto = how & 1 ? 6 : 17;
			bool vlan = how & 2;
			struct frame f = how & 4 ?
				ipv6(vlan, proto, "2001:db8::1", 1, "2001:db8::fffe", 65535, data) :
				ipv4(vlan, proto, "192.0.2.1", 1, "255.254.253.252", 65535, data);

			add_csum(&f);
			assert_true(l4_ok(&f));
			assert_int_equal(frame_parse(f.b, f.len).l3_ok, !(how & 4));
			/* Padding behind the packet is not part of it. */
			f.b[f.len++] = 1;
			assert_true(l4_ok(&f));
			f.b[f.l4 + 1] ^= 4;
			assert_false(l4_ok(&f));
			f.b[f.ip + (how & 4 ? 4u : 2u)] ^= 0x80;	/* a length beyond the frame */
			assert_false(l4_ok(&f));
		}
	}
}

static void what_is_not_vouched_for(void **state)
{
	struct frame f = ipv4(false, 17, "192.0.2.1", 1, "192.0.2.2", 2, 4);

	(void)state;
	assert_false(l4_ok(&f));		/* UDP without a checksum */
	add_csum(&f);
	put16(f.b + f.ip + 6, 0x2000);		/* a fragment, and then the IPv4 header is wrong */
	assert_false(l4_ok(&f));
	assert_false(frame_parse(f.b, f.len).l3_ok);
	put16(f.b + f.ip + 6, 0);
	assert_true(l4_ok(&f));
	put16(f.b + f.l4 + 4, 11);		/* UDP and IP of two minds */
	add_csum(&f);
	assert_false(l4_ok(&f));
	f = ipv6(false, 0, "2001:db8::1", 1, "2001:db8::2", 2, 8);
	assert_false(l4_ok(&f));		/* an extension header */
	f = ipv4(false, 6, "192.0.2.1", 1, "192.0.2.2", 2, 0);
	add_csum(&f);
	put16(f.b + f.ip + 2, 39);		/* a TCP header that is cut short */
	assert_false(l4_ok(&f));
}

static void filling_in(void **state)
{
	static const uint8_t zeros[4];
	struct frame f = ipv6(false, 17, "2001:db8::1", 1, "2001:db8::2", 2, 5), whole;
	uint32_t pseudo = 17 + 13;

	(void)state;
	for (unsigned int i = 0; i < 32; i++)
		pseudo += (uint32_t)f.b[f.ip + 8 + i] << (i & 1 ? 0 : 8);
	whole = f;
	add_csum(&whole);
	put16(f.b + f.l4 + 6, (pseudo & 0xffff) + (pseudo >> 16));
	frame_fill_csum(f.b, f.len, f.l4, 6);
	assert_memory_equal(f.b, whole.b, f.len);
	/* What would be 0 is 0xffff: here the sum of 0xffff. */
	memset(f.b, 0, sizeof(f.b));
	put16(f.b + 4, 0xffff);
	frame_fill_csum(f.b, 6, 3, 1);
	assert_int_equal(f.b[4], 0xff);
	assert_int_equal(f.b[5], 0xff);
	assert_memory_equal(f.b, zeros, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "ETH-14: hash_of_ports", hash_of_ports, NULL, NULL, NULL },
		{ "ETH-14: hash_of_addresses", hash_of_addresses, NULL, NULL, NULL },
		{ "ETH-14: no_hash", no_hash, NULL, NULL, NULL },
		{ "ETH-12: right_checksums", right_checksums, NULL, NULL, NULL },
		{ "ETH-12: what_is_not_vouched_for", what_is_not_vouched_for, NULL, NULL, NULL },
		{ "ETH-5: filling_in", filling_in, NULL, NULL, NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
