// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "harness/raw.h"

const uint8_t nobody[6] = { 2, 0, 0, 0, 0, 0x77 }, group[6] = { 1, 0x50, 0x56, 0x19, 0x20, 0xa7 };

struct queues with_receives(struct node *n, struct queues q, unsigned int count)
{
	struct queues old = use_queues(n, q);

	for (unsigned int i = 0; i < count; i++)
		post_recv(n, n->buf + (1 + n->rq_pi % 200) * (uint64_t)SLOT, SLOT);
	return use_queues(n, old);
}

struct skua_cmd flow_cmd(uint32_t qpn, uint8_t type)
{
	return (struct skua_cmd)CMD(SKUA_CMD_CREATE_FLOW, .flow = { .qpn = htole32(qpn), .type = type });
}

struct skua_cmd mac_flow(uint32_t qpn, const uint8_t *dmac)
{
	struct skua_cmd cmd = flow_cmd(qpn, SKUA_FLOW_NORMAL);

	memcpy(cmd.flow.value.dmac, dmac, 6);
	memset(cmd.flow.mask.dmac, 0xff, 6);
	return cmd;
}

uint8_t *make_frame(struct node *n, const uint8_t *to, const uint8_t *from, uint32_t len)
{
	uint8_t *p = at(n, n->buf);

	fill(n, len, len);
	memcpy(p, to, 6);
	memcpy(p + 6, from, 6);
	memcpy(p + 12, (uint8_t[2]){ 0x88, 0xb5 }, 2);
	return p;
}

void send_from(struct world *w, struct node *n, struct queues *q, uint32_t len)
{
	struct queues old = use_queues(n, *q);

	post(n, SKUA_WQE_SEND, 0, n->buf, len, 0, 0, 0);
	*q = use_queues(n, old);
	settle(w);
}

void send_to(struct world *w, struct node *n, struct queues *q, const uint8_t *to)
{
	make_frame(n, to, n->mac, FRAME);
	send_from(w, n, q, FRAME);
}

struct skua_cqe *expect_by(struct world *w, struct node *n, struct queues q, uint32_t len)
{
	struct skua_cqe *cqe = await_cqe(w, n);

	assert_int_equal(cqe->opcode, SKUA_CQE_RECV);
	assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
	assert_int_equal(le32toh(cqe->qpn), q.qpn);
	assert_int_equal(le32toh(cqe->byte_len), len);
	return cqe;
}

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define BE16(v)		__builtin_bswap16(v)
#define BE32(v)		__builtin_bswap32(v)
#else
#define BE16(v)		(v)
#define BE32(v)		(v)
#endif
#define ETH(type)	2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, (type) >> 8, (type) & 0xff
#define TAG		0xac, 0x0c
#define PORTS		0x12, 0x34, 0x56, 0x78
#define UDP		PORTS, 0, 12, 0, 0, 1, 2, 3, 4
#define TCP		PORTS, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0xff, 0xff, 0, 0, 0, 0
#define IPV4(len, flags, offset, proto) \
	0x45, 0xb8, 0, len, 0, 0, flags, offset, 63, proto, 0, 0, 192, 0, 2, 1, 198, 51, 100, 2
#define SRC6		0xa0, 0xa1, 0, 0, 0, 0, 0, 0, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9
#define DST6		0xb0, 0xb1, 0, 0, 0, 0, 0, 0, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9
#define IPV6(len, next)	0x6e, 0xb1, 0x23, 0x45, 0, len, next, 62, SRC6, DST6
#define KEY_MACS	.dmac = { 2, 0, 0, 0, 0, 2 }, .smac = { 2, 0, 0, 0, 0, 1 }
#define KEY_IPV4(number, flags) \
	.src_ip = { 192, 0, 2, 1 }, .dst_ip = { 198, 51, 100, 2 }, .tos = 0xb8, .ttl = 63, .proto = number, \
	.ip_flags = flags
#define KEY_IPV6(number) \
	.src_ip = { SRC6 }, .dst_ip = { DST6 }, .tos = 0xeb, .ttl = 62, .proto = number, \
	.flow_label = BE32(0x12345)
#define KEY_PORTS	.src_port = BE16(0x1234), .dst_port = BE16(0x5678)
#define DF		SKUA_FLOW_DONT_FRAGMENT
#define MF		SKUA_FLOW_MORE_FRAGMENTS

const struct raw_frame raw_frames[] = {
	{ "of no known type", 60, { ETH(0x88b5) }, { KEY_MACS, .ether_type = BE16(0x88b5) } },
	{ "with a tag", 60, { ETH(0x8100), TAG, 0x88, 0xb5 },
	  { KEY_MACS, .ether_type = BE16(0x88b5), .vlan = BE16(0xac0c), .headers = SKUA_FLOW_VLAN } },
	{ "with two tags", 60, { ETH(0x8100), TAG, 0x81, 0, 0, 1, 8, 0, IPV4(32, 0, 0, 17), UDP },
	  { KEY_MACS, .ether_type = BE16(0x8100), .vlan = BE16(0xac0c), .headers = SKUA_FLOW_VLAN } },
	{ "that ends in its tag", 16, { ETH(0x8100), TAG }, { KEY_MACS, .ether_type = BE16(0x8100) } },
	{ "IPv4, UDP", 60, { ETH(0x800), IPV4(32, 0x40, 0, 17), UDP },
	  { KEY_MACS, .ether_type = BE16(0x800), KEY_IPV4(17, DF), KEY_PORTS,
	    .headers = SKUA_FLOW_IPV4 | SKUA_FLOW_UDP } },
	{ "IPv4, TCP, with a tag", 60, { ETH(0x8100), TAG, 8, 0, IPV4(40, 0, 0, 6), TCP },
	  { KEY_MACS, .ether_type = BE16(0x800), .vlan = BE16(0xac0c), KEY_IPV4(6, 0), KEY_PORTS,
	    .headers = SKUA_FLOW_VLAN | SKUA_FLOW_IPV4 | SKUA_FLOW_TCP } },
	{ "IPv4, first fragment", 60, { ETH(0x800), IPV4(32, 0x20, 0, 17), UDP },
	  { KEY_MACS, .ether_type = BE16(0x800), KEY_IPV4(17, MF), .headers = SKUA_FLOW_IPV4 } },
	{ "IPv4, last fragment", 60, { ETH(0x800), IPV4(32, 0, 9, 17), UDP },
	  { KEY_MACS, .ether_type = BE16(0x800), KEY_IPV4(17, 0), .headers = SKUA_FLOW_IPV4 } },
	{ "IPv4, neither TCP nor UDP", 60, { ETH(0x800), IPV4(32, 0, 0, 132), UDP },
	  { KEY_MACS, .ether_type = BE16(0x800), KEY_IPV4(132, 0), .headers = SKUA_FLOW_IPV4 } },
	{ "IPv4, with options", 60, { ETH(0x800), 0x46, 0xb8, 0, 40, 0, 0, 0, 0, 63, 17, 0, 0, 192, 0, 2, 1, 198, 51, 100, 2,
	  1, 1, 1, 1, UDP },
	  { KEY_MACS, .ether_type = BE16(0x800), KEY_IPV4(17, 0), KEY_PORTS,
	    .headers = SKUA_FLOW_IPV4 | SKUA_FLOW_UDP } },
	{ "IPv4, which says more than there is", 60, { ETH(0x800), IPV4(250, 0, 0, 17), UDP },
	  { KEY_MACS, .ether_type = BE16(0x800), KEY_IPV4(17, 0), KEY_PORTS,
	    .headers = SKUA_FLOW_IPV4 | SKUA_FLOW_UDP } },
	{ "IPv4, without its ports", 37, { ETH(0x800), IPV4(32, 0, 0, 6), PORTS },
	  { KEY_MACS, .ether_type = BE16(0x800), KEY_IPV4(6, 0), .headers = SKUA_FLOW_IPV4 } },
	{ "IPv4, cut short", 33, { ETH(0x800), IPV4(32, 0, 0, 17) }, { KEY_MACS, .ether_type = BE16(0x800) } },
	{ "IPv4, options cut short", 60, { ETH(0x800), 0x4f, 0 }, { KEY_MACS, .ether_type = BE16(0x800) } },
	{ "IPv4, too short a header", 60, { ETH(0x800), 0x44, 0 }, { KEY_MACS, .ether_type = BE16(0x800) } },
	{ "IPv4, another version", 60, { ETH(0x800), 0x55, 0 }, { KEY_MACS, .ether_type = BE16(0x800) } },
	{ "IPv6, UDP", 80, { ETH(0x86dd), IPV6(12, 17), UDP },
	  { KEY_MACS, .ether_type = BE16(0x86dd), KEY_IPV6(17), KEY_PORTS,
	    .headers = SKUA_FLOW_IPV6 | SKUA_FLOW_UDP } },
	{ "IPv6, TCP, with a tag", 80, { ETH(0x8100), TAG, 0x86, 0xdd, IPV6(99, 6), TCP },
	  { KEY_MACS, .ether_type = BE16(0x86dd), .vlan = BE16(0xac0c), KEY_IPV6(6), KEY_PORTS,
	    .headers = SKUA_FLOW_VLAN | SKUA_FLOW_IPV6 | SKUA_FLOW_TCP } },
	{ "IPv6, an extension header", 80, { ETH(0x86dd), IPV6(20, 0), 17, 0, 0, 0, 0, 0, 0, 0, UDP },
	  { KEY_MACS, .ether_type = BE16(0x86dd), KEY_IPV6(0), .headers = SKUA_FLOW_IPV6 } },
	{ "IPv6, cut short", 53, { ETH(0x86dd), IPV6(12, 17) }, { KEY_MACS, .ether_type = BE16(0x86dd) } },
	{ "IPv6, another version", 80, { ETH(0x86dd), 0x50 }, { KEY_MACS, .ether_type = BE16(0x86dd) } },
};

const unsigned int num_raw_frames = sizeof(raw_frames) / sizeof(raw_frames[0]);

const struct skua_flow_key raw_key_bits = {
	.dmac = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff }, .smac = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff },
	.ether_type = 0xffff, .vlan = 0xffff,
	.src_ip = { 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255 },
	.dst_ip = { 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255 },
	.flow_label = BE32(0xfffff), .proto = 0xff, .tos = 0xff, .ttl = 0xff, .ip_flags = SKUA_FLOW_IP_FLAGS,
	.src_port = 0xffff, .dst_port = 0xffff, .headers = SKUA_FLOW_HEADERS,
};
