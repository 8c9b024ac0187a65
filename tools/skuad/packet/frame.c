// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "packet/frame.h"

#include <endian.h>
#include <netinet/in.h>
#include <string.h>

#include "base/bytes.h"
#include "skua/cmd.h"

#define ETHERTYPE_IPV4	0x0800
#define ETHERTYPE_IPV6	0x86dd
#define ETHERTYPE_VLAN	0x8100

#define IPV4_HEADER	20
#define IPV6_HEADER	40
#define IPV4_FRAGMENT	0x3fff		/* more to come, or not the first */
#define TCP_HEADER	20
#define UDP_HEADER	8
#define TCP_CSUM	16		/* offset of the checksum in the header */
#define UDP_CSUM	6
#define IPV4_CSUM	10
#define IPV4_ADDRS	12
#define PORTS		4		/* bytes of both */

static uint16_t fold(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/*
 * The ones' complement sum, in the byte order of this machine: it is the same sum in either,
 * with its bytes swapped.
 */
static uint64_t sum(const uint8_t *p, size_t len)
{
	uint64_t sum = 0;
	uint8_t rest[4] = { 0 };
	uint32_t word;

	for (; len >= sizeof(word); p += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		sum += word;
	}
	memcpy(rest, p, len);
	memcpy(&word, rest, sizeof(word));
	return fold(sum + word);
}

static size_t addrs_len(const struct frame_info *info)
{
	return info->ip == 4 ? 8 : 32;
}

/* TCP or UDP of @len bytes stands at @l4. */
static void parse_l4(struct frame_info *info, uint8_t proto, size_t l4, size_t len)
{
	if (len < (proto == IPPROTO_TCP ? TCP_HEADER : UDP_HEADER) ||
	    (proto != IPPROTO_TCP && proto != IPPROTO_UDP))
		return;
	info->proto = proto;
	info->l4 = (uint16_t)l4;
	info->l4_len = (uint16_t)len;
}

static void parse_ipv4(struct frame_info *info, const uint8_t *frame, size_t at, size_t len)
{
	const uint8_t *ip = frame + at;
	size_t header, total;

	if (len - at < IPV4_HEADER || ip[0] >> 4 != 4)
		return;
	header = (ip[0] & 15) * 4u;
	total = get16(ip + 2);
	if (header < IPV4_HEADER || total < header || total > len - at)
		return;
	info->ip = 4;
	info->addrs = (uint16_t)(at + IPV4_ADDRS);
	info->l3_ok = sum(ip, header) == 0xffff;
	if (!(get16(ip + 6) & IPV4_FRAGMENT))
		parse_l4(info, ip[9], at + header, total - header);
}

static void parse_ipv6(struct frame_info *info, const uint8_t *frame, size_t at, size_t len)
{
	const uint8_t *ip = frame + at;

	if (len - at < IPV6_HEADER || ip[0] >> 4 != 6 || get16(ip + 4) > len - at - IPV6_HEADER)
		return;
	info->ip = 6;
	info->addrs = (uint16_t)(at + 8);
	parse_l4(info, ip[6], at + IPV6_HEADER, get16(ip + 4));
}

bool frame_has_tag(const uint8_t *frame, size_t len)
{
	return len >= FRAME_OVERHEAD && get16(frame + FRAME_TAG_AT) == ETHERTYPE_VLAN;
}

struct frame_info frame_parse(const uint8_t *frame, size_t len)
{
	size_t at = frame_has_tag(frame, len) ? FRAME_OVERHEAD : FRAME_HEADER;
	uint16_t type = get16(frame + at - 2);
	struct frame_info info = { 0 };

	if (type == ETHERTYPE_IPV4)
		parse_ipv4(&info, frame, at, len);
	else if (type == ETHERTYPE_IPV6)
		parse_ipv6(&info, frame, at, len);
	return info;
}

/* TCP, or UDP whose own length is that of IP. */
static bool has_l4(const uint8_t *frame, const struct frame_info *info)
{
	return info->proto && (info->proto != IPPROTO_UDP || get16(frame + info->l4 + 4) == info->l4_len);
}

/* The sum of TCP or UDP and of its pseudo header. */
static uint16_t l4_sum(const uint8_t *frame, const struct frame_info *info)
{
	return fold(sum(frame + info->addrs, addrs_len(info)) + htobe16(info->proto) + htobe16(info->l4_len) +
		    sum(frame + info->l4, info->l4_len));
}

bool frame_l4_ok(const uint8_t *frame, const struct frame_info *info)
{
	if (!has_l4(frame, info) || (info->proto == IPPROTO_UDP && !get16(frame + info->l4 + UDP_CSUM)))
		return false;
	return l4_sum(frame, info) == 0xffff;
}

void frame_fill_csum(uint8_t *frame, size_t len, size_t start, size_t offset)
{
	uint16_t csum = (uint16_t)~sum(frame + start, len - start);

	if (!csum)
		csum = 0xffff;
	memcpy(frame + start + offset, &csum, sizeof(csum));
}

void frame_fill_csums(uint8_t *frame, size_t len)
{
	const struct frame_info info = frame_parse(frame, len);
	uint8_t *ip, *place;
	uint16_t csum;

	if (info.ip == 4) {
		ip = frame + info.addrs - IPV4_ADDRS;
		memset(ip + IPV4_CSUM, 0, sizeof(csum));
		csum = (uint16_t)~sum(ip, (ip[0] & 15) * 4u);
		memcpy(ip + IPV4_CSUM, &csum, sizeof(csum));
	}
	if (!has_l4(frame, &info))
		return;
	place = frame + info.l4 + (info.proto == IPPROTO_TCP ? TCP_CSUM : UDP_CSUM);
	memset(place, 0, sizeof(csum));
	csum = (uint16_t)~l4_sum(frame, &info);
	if (!csum)
		csum = 0xffff;		/* 0 is none, to UDP */
	memcpy(place, &csum, sizeof(csum));
}

static uint32_t toeplitz(const uint8_t *p, size_t len, const uint8_t *key)
{
	uint32_t hash = 0;
	uint64_t window;

	for (size_t i = 0; i < len; i++) {
		memcpy(&window, key + i, sizeof(window));
		window = be64toh(window);
		for (unsigned int bit = 0; bit < 8; bit++)
			if (p[i] & 0x80 >> bit)
				hash ^= (uint32_t)(window >> (32 - bit));
	}
	return hash;
}

/* Those of the two at @p, of @len bytes each, that are wanted. */
static size_t take_pair(uint8_t *to, const uint8_t *p, size_t len, bool first, bool second)
{
	size_t n = 0;

	if (first) {
		memcpy(to, p, len);
		n = len;
	}
	if (second) {
		memcpy(to + n, p + len, len);
		n += len;
	}
	return n;
}

struct frame_hash frame_hash(const uint8_t *frame, const struct frame_info *info, uint32_t fields, const uint8_t *key)
{
	uint32_t src = info->ip == 4 ? SKUA_HASH_SRC_IPV4 : SKUA_HASH_SRC_IPV6;
	uint32_t src_port = info->proto == IPPROTO_TCP ? SKUA_HASH_SRC_PORT_TCP : SKUA_HASH_SRC_PORT_UDP;
	uint8_t padded[SKUA_RSS_KEY_LEN + 8] = { 0 };
	uint8_t bytes[2 * 16 + PORTS];
	struct frame_hash hash = { 0 };
	size_t addrs, n;

	if (!info->ip)
		return hash;
	/* A destination's bit is the one behind its source's. */
	n = addrs = take_pair(bytes, frame + info->addrs, addrs_len(info) / 2, fields & src, fields & src << 1);
	if (info->proto)
		n += take_pair(bytes + n, frame + info->l4, PORTS / 2, fields & src_port, fields & src_port << 1);
	/* Eight bytes of the key are read at a time, of which the last are not used. */
	memcpy(padded, key, SKUA_RSS_KEY_LEN);
	hash.hash = toeplitz(bytes, n, padded);
	hash.ports = n > addrs;
	return hash;
}
