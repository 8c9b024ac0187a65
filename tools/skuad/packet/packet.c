// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * From a train to the bytes of one of its packets: Ethernet, perhaps a VLAN tag, IPv4 or
 * IPv6, UDP, BTH, the headers of the opcode, payload, pad, ICRC. All integers are big endian
 * but the ICRC.
 *
 * Lengths stand in the IP and UDP headers and are covered by the ICRC, so the transport part
 * is written first, behind the room that the headers below it will take.
 */
#include "packet/packet.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"
#include "packet/icrc.h"
#include "packet/wire.h"
#include "skua/cmd.h"
#include "skua/cqe.h"

#define BTH_MIGREQ	0x40	/* as hardware sends it; some refuses 0 */
#define IPV4_DF		0x4000

enum place { FIRST, MIDDLE, LAST, ONLY, NUM_PLACES };

/* By kind of message and place in it: the BTH opcode, of RC; the transport's bits come on top. */
static const uint8_t bth_opcodes[TRAIN_NUM_OPS][NUM_PLACES] = {
	[TRAIN_SEND]	  = { 0x00, 0x01, 0x02, 0x04 },
	[TRAIN_SEND_IMM]  = { 0x00, 0x01, 0x03, 0x05 },
	[TRAIN_SEND_INV]  = { 0x00, 0x01, 0x16, 0x17 },
	[TRAIN_WRITE]	  = { 0x06, 0x07, 0x08, 0x0a },
	[TRAIN_WRITE_IMM] = { 0x06, 0x07, 0x09, 0x0b },
	[TRAIN_READ_REQ]  = { 0x0c, 0x0c, 0x0c, 0x0c },
	[TRAIN_READ_RESP] = { 0x0d, 0x0e, 0x0f, 0x10 },
	[TRAIN_ACK]	  = { 0x11, 0x11, 0x11, 0x11 },
	[TRAIN_CMP_SWAP]  = { [ONLY] = 0x13 },
	[TRAIN_FETCH_ADD] = { [ONLY] = 0x14 },
	[TRAIN_ATOMIC_RESP] = { [ONLY] = 0x12 },
	[TRAIN_CNP]	  = { [ONLY] = 0x01 },
	[TRAIN_FLUSH]	  = { [ONLY] = 0x1c },
	[TRAIN_ATOMIC_WRITE] = { [ONLY] = 0x1d },
	[TRAIN_MASKED_CMP_SWAP]  = { [ONLY] = 0xd3 },
	[TRAIN_MASKED_FETCH_ADD] = { [ONLY] = 0xd4 },
};

#define HAS_PAYLOAD	true

/* Headers, and their bytes. */
#define EXT(e) \
	(e), ((e) & EXT_RETH ? 16 : 0) + ((e) & EXT_AETH ? 4 : 0) + ((e) & EXT_IMM ? 4 : 0) + \
	     ((e) & EXT_IETH ? 4 : 0) + ((e) & EXT_ATOMIC ? 28 : 0) + \
	     ((e) & EXT_ATOMIC_ACK ? 8 : 0) + ((e) & EXT_DETH ? 8 : 0) + ((e) & EXT_CNP ? 16 : 0) + \
	     ((e) & EXT_FETH ? 4 : 0) + ((e) & EXT_XRC ? 4 : 0) + ((e) & EXT_MASKS ? 16 : 0)

/* Packets in the middle do not say what the last one will be: they are those of the plain kind. */
const struct roce_opcode roce_opcodes[256] = {
	[0x00] = { true, TRANSPORT_RC, TRAIN_SEND, true, false, EXT(0), HAS_PAYLOAD },
	[0x01] = { true, TRANSPORT_RC, TRAIN_SEND, false, false, EXT(0), HAS_PAYLOAD },
	[0x02] = { true, TRANSPORT_RC, TRAIN_SEND, false, true, EXT(0), HAS_PAYLOAD },
	[0x03] = { true, TRANSPORT_RC, TRAIN_SEND_IMM, false, true, EXT(EXT_IMM), HAS_PAYLOAD },
	[0x04] = { true, TRANSPORT_RC, TRAIN_SEND, true, true, EXT(0), HAS_PAYLOAD },
	[0x05] = { true, TRANSPORT_RC, TRAIN_SEND_IMM, true, true, EXT(EXT_IMM), HAS_PAYLOAD },
	[0x06] = { true, TRANSPORT_RC, TRAIN_WRITE, true, false, EXT(EXT_RETH), HAS_PAYLOAD },
	[0x07] = { true, TRANSPORT_RC, TRAIN_WRITE, false, false, EXT(0), HAS_PAYLOAD },
	[0x08] = { true, TRANSPORT_RC, TRAIN_WRITE, false, true, EXT(0), HAS_PAYLOAD },
	[0x09] = { true, TRANSPORT_RC, TRAIN_WRITE_IMM, false, true, EXT(EXT_IMM), HAS_PAYLOAD },
	[0x0a] = { true, TRANSPORT_RC, TRAIN_WRITE, true, true, EXT(EXT_RETH), HAS_PAYLOAD },
	[0x0b] = { true, TRANSPORT_RC, TRAIN_WRITE_IMM, true, true, EXT(EXT_RETH | EXT_IMM), HAS_PAYLOAD },
	[0x0c] = { true, TRANSPORT_RC, TRAIN_READ_REQ, true, true, EXT(EXT_RETH), false },
	[0x0d] = { true, TRANSPORT_RC, TRAIN_READ_RESP, true, false, EXT(EXT_AETH), HAS_PAYLOAD },
	[0x0e] = { true, TRANSPORT_RC, TRAIN_READ_RESP, false, false, EXT(0), HAS_PAYLOAD },
	[0x0f] = { true, TRANSPORT_RC, TRAIN_READ_RESP, false, true, EXT(EXT_AETH), HAS_PAYLOAD },
	[0x10] = { true, TRANSPORT_RC, TRAIN_READ_RESP, true, true, EXT(EXT_AETH), HAS_PAYLOAD },
	[0x11] = { true, TRANSPORT_RC, TRAIN_ACK, true, true, EXT(EXT_AETH), false },
	[0x12] = { true, TRANSPORT_RC, TRAIN_ATOMIC_RESP, true, true, EXT(EXT_AETH | EXT_ATOMIC_ACK), false },
	[0x13] = { true, TRANSPORT_RC, TRAIN_CMP_SWAP, true, true, EXT(EXT_ATOMIC), false },
	[0x14] = { true, TRANSPORT_RC, TRAIN_FETCH_ADD, true, true, EXT(EXT_ATOMIC), false },
	[0x16] = { true, TRANSPORT_RC, TRAIN_SEND_INV, false, true, EXT(EXT_IETH), HAS_PAYLOAD },
	[0x17] = { true, TRANSPORT_RC, TRAIN_SEND_INV, true, true, EXT(EXT_IETH), HAS_PAYLOAD },
	[0x1c] = { true, TRANSPORT_RC, TRAIN_FLUSH, true, true, EXT(EXT_FETH | EXT_RETH), false },
	[0x1d] = { true, TRANSPORT_RC, TRAIN_ATOMIC_WRITE, true, true, EXT(EXT_RETH), HAS_PAYLOAD },
	[0x20] = { true, TRANSPORT_UC, TRAIN_SEND, true, false, EXT(0), HAS_PAYLOAD },
	[0x21] = { true, TRANSPORT_UC, TRAIN_SEND, false, false, EXT(0), HAS_PAYLOAD },
	[0x22] = { true, TRANSPORT_UC, TRAIN_SEND, false, true, EXT(0), HAS_PAYLOAD },
	[0x23] = { true, TRANSPORT_UC, TRAIN_SEND_IMM, false, true, EXT(EXT_IMM), HAS_PAYLOAD },
	[0x24] = { true, TRANSPORT_UC, TRAIN_SEND, true, true, EXT(0), HAS_PAYLOAD },
	[0x25] = { true, TRANSPORT_UC, TRAIN_SEND_IMM, true, true, EXT(EXT_IMM), HAS_PAYLOAD },
	[0x26] = { true, TRANSPORT_UC, TRAIN_WRITE, true, false, EXT(EXT_RETH), HAS_PAYLOAD },
	[0x27] = { true, TRANSPORT_UC, TRAIN_WRITE, false, false, EXT(0), HAS_PAYLOAD },
	[0x28] = { true, TRANSPORT_UC, TRAIN_WRITE, false, true, EXT(0), HAS_PAYLOAD },
	[0x29] = { true, TRANSPORT_UC, TRAIN_WRITE_IMM, false, true, EXT(EXT_IMM), HAS_PAYLOAD },
	[0x2a] = { true, TRANSPORT_UC, TRAIN_WRITE, true, true, EXT(EXT_RETH), HAS_PAYLOAD },
	[0x2b] = { true, TRANSPORT_UC, TRAIN_WRITE_IMM, true, true, EXT(EXT_RETH | EXT_IMM), HAS_PAYLOAD },
	[0x64] = { true, TRANSPORT_UD, TRAIN_SEND, true, true, EXT(EXT_DETH), HAS_PAYLOAD },
	[0x65] = { true, TRANSPORT_UD, TRAIN_SEND_IMM, true, true, EXT(EXT_DETH | EXT_IMM), HAS_PAYLOAD },
	[0x81] = { true, TRANSPORT_CNP, TRAIN_CNP, true, true, EXT(EXT_CNP), false },
	[0xa0] = { true, TRANSPORT_XRC, TRAIN_SEND, true, false, EXT(EXT_XRC), HAS_PAYLOAD },
	[0xa1] = { true, TRANSPORT_XRC, TRAIN_SEND, false, false, EXT(EXT_XRC), HAS_PAYLOAD },
	[0xa2] = { true, TRANSPORT_XRC, TRAIN_SEND, false, true, EXT(EXT_XRC), HAS_PAYLOAD },
	[0xa3] = { true, TRANSPORT_XRC, TRAIN_SEND_IMM, false, true, EXT(EXT_XRC | EXT_IMM), HAS_PAYLOAD },
	[0xa4] = { true, TRANSPORT_XRC, TRAIN_SEND, true, true, EXT(EXT_XRC), HAS_PAYLOAD },
	[0xa5] = { true, TRANSPORT_XRC, TRAIN_SEND_IMM, true, true, EXT(EXT_XRC | EXT_IMM), HAS_PAYLOAD },
	[0xa6] = { true, TRANSPORT_XRC, TRAIN_WRITE, true, false, EXT(EXT_XRC | EXT_RETH), HAS_PAYLOAD },
	[0xa7] = { true, TRANSPORT_XRC, TRAIN_WRITE, false, false, EXT(EXT_XRC), HAS_PAYLOAD },
	[0xa8] = { true, TRANSPORT_XRC, TRAIN_WRITE, false, true, EXT(EXT_XRC), HAS_PAYLOAD },
	[0xa9] = { true, TRANSPORT_XRC, TRAIN_WRITE_IMM, false, true, EXT(EXT_XRC | EXT_IMM), HAS_PAYLOAD },
	[0xaa] = { true, TRANSPORT_XRC, TRAIN_WRITE, true, true, EXT(EXT_XRC | EXT_RETH), HAS_PAYLOAD },
	[0xab] = { true, TRANSPORT_XRC, TRAIN_WRITE_IMM, true, true, EXT(EXT_XRC | EXT_RETH | EXT_IMM), HAS_PAYLOAD },
	[0xac] = { true, TRANSPORT_XRC, TRAIN_READ_REQ, true, true, EXT(EXT_XRC | EXT_RETH), false },
	[0xad] = { true, TRANSPORT_XRC, TRAIN_READ_RESP, true, false, EXT(EXT_AETH), HAS_PAYLOAD },
	[0xae] = { true, TRANSPORT_XRC, TRAIN_READ_RESP, false, false, EXT(0), HAS_PAYLOAD },
	[0xaf] = { true, TRANSPORT_XRC, TRAIN_READ_RESP, false, true, EXT(EXT_AETH), HAS_PAYLOAD },
	[0xb0] = { true, TRANSPORT_XRC, TRAIN_READ_RESP, true, true, EXT(EXT_AETH), HAS_PAYLOAD },
	[0xb1] = { true, TRANSPORT_XRC, TRAIN_ACK, true, true, EXT(EXT_AETH), false },
	[0xb2] = { true, TRANSPORT_XRC, TRAIN_ATOMIC_RESP, true, true, EXT(EXT_AETH | EXT_ATOMIC_ACK), false },
	[0xb3] = { true, TRANSPORT_XRC, TRAIN_CMP_SWAP, true, true, EXT(EXT_XRC | EXT_ATOMIC), false },
	[0xb4] = { true, TRANSPORT_XRC, TRAIN_FETCH_ADD, true, true, EXT(EXT_XRC | EXT_ATOMIC), false },
	[0xb6] = { true, TRANSPORT_XRC, TRAIN_SEND_INV, false, true, EXT(EXT_XRC | EXT_IETH), HAS_PAYLOAD },
	[0xb7] = { true, TRANSPORT_XRC, TRAIN_SEND_INV, true, true, EXT(EXT_XRC | EXT_IETH), HAS_PAYLOAD },
	[0xd3] = { true, TRANSPORT_RC, TRAIN_MASKED_CMP_SWAP, true, true, EXT(EXT_ATOMIC | EXT_MASKS), false },
	[0xd4] = { true, TRANSPORT_RC, TRAIN_MASKED_FETCH_ADD, true, true, EXT(EXT_ATOMIC | EXT_MASKS), false },
};

const struct train train_blank;

static uint8_t *put_zeros(uint8_t *p, size_t len)
{
	memset(p, 0, len);
	return p + len;
}

/* Bytes of packet @i's payload. */
static uint32_t payload_len(const struct train *t, uint32_t i)
{
	uint64_t start = (uint64_t)i * t->pmtu;

	if (!t->payload || start >= t->payload->bytes)
		return 0;
	return t->payload->bytes - start < t->pmtu ? t->payload->bytes - start : t->pmtu;
}

/* Of packet @i: its place in the message. */
static enum place place_of(const struct train *t, uint32_t i)
{
	bool first = t->first && i == 0;
	bool last = t->last && i == t->npkts - 1;

	return first ? last ? ONLY : FIRST : last ? LAST : MIDDLE;
}

static uint8_t opcode_of(const struct train *t, uint32_t i)
{
	return (uint8_t)(t->transport | bth_opcodes[t->op][place_of(t, i)]);
}

/* What stands between BTH and ICRC. */
static inline uint32_t transport_len(const struct train *t, uint32_t i)
{
	return roce_opcodes[opcode_of(t, i)].ext_len + ((payload_len(t, i) + 3) & ~3u);
}

/* The rest: what all packets that take this path have. */
static uint32_t path_len(const struct roce_path *path)
{
	uint32_t ip = gid_is_ipv4(path->sgid) ? IPV4_LEN : IPV6_LEN;
	uint32_t vlan = path->vlan == SKUA_VLAN_NONE ? 0 : 4;

	return 14 + vlan + ip + UDP_LEN + BTH_LEN + ROCE_ICRC_LEN;
}

uint64_t roce_train_bytes(const struct train *t, uint32_t *longest)
{
	uint32_t path = path_len(t->path), first = transport_len(t, 0), last;

	*longest = path + first;
	if (t->npkts == 1)
		return path + first;
	last = transport_len(t, t->npkts - 1);
	if (last > first)
		*longest = path + last;
	/* Packets in the middle are all alike, and have no header that those at the ends lack. */
	return t->npkts * (uint64_t)path + first + last +
	       (t->npkts - 2) * (uint64_t)transport_len(t, 1);
}

/* @len bytes of @list from @offset on. */
static uint8_t *put_payload(uint8_t *p, const struct seglist *list, uint64_t offset,
			    uint32_t len)
{
	for (unsigned int s = 0; len && s < list->n; s++) {
		uint32_t run = list->seg[s].len;

		if (offset >= run) {
			offset -= run;
			continue;
		}
		run -= offset;
		if (run > len)
			run = len;
		p = put_bytes(p, list->seg[s].p + offset, run);
		offset = 0;
		len -= run;
	}
	return put_zeros(p, len);	/* a list shorter than it says: still whole packets */
}

static uint8_t *put_bth(uint8_t *p, const struct train *t, uint32_t i, uint8_t opcode,
			uint32_t pad)
{
	bool last = i == t->npkts - 1;

	p = put8(p, opcode);
	p = put8(p, (last && t->last && t->solicited ? BTH_SE : 0) | BTH_MIGREQ |
		    pad << BTH_PAD_SHIFT);
	p = put16(p, PKEY_DEFAULT);
	p = put32(p, (t->op == TRAIN_CNP ? (uint32_t)BTH_BECN << 24 : 0) | (t->dest_qpn & 0xffffff));
	return put32(p, (last && t->ack_req ? (uint32_t)BTH_ACKREQ << 24 : 0) |
			psn_add(t->psn, i));
}

/* BTH to the pad. */
static uint8_t *put_transport(uint8_t *p, const struct train *t, uint32_t i)
{
	uint8_t opcode = opcode_of(t, i);
	uint16_t ext = roce_opcodes[opcode].ext;
	uint32_t len = payload_len(t, i);
	uint32_t pad = -len & 3;

	p = put_bth(p, t, i, opcode, pad);
	if (ext & EXT_XRC)
		p = put32(p, t->srqn & 0xffffff);
	if (ext & EXT_DETH) {
		p = put32(p, t->qkey);
		p = put32(p, t->src_qpn & 0xffffff);
	}
	if (ext & EXT_FETH)
		p = put32(p, t->flush);
	if (ext & EXT_RETH) {
		p = put64(p, t->raddr);
		p = put32(p, t->rkey);
		p = put32(p, t->msg_len);
	}
	if (ext & EXT_ATOMIC) {
		p = put64(p, t->raddr);
		p = put32(p, t->rkey);
		p = put64(p, t->swap_add);
		p = put64(p, t->compare);
	}
	if (ext & EXT_MASKS) {
		p = put64(p, t->swap_add_mask);
		p = put64(p, t->compare_mask);
	}
	if (ext & EXT_AETH)
		p = put32(p, (uint32_t)t->syndrome << 24 | (t->msn & 0xffffff));
	if (ext & EXT_ATOMIC_ACK)
		p = put64(p, t->swap_add);
	if (ext & EXT_IMM)
		p = put_bytes(p, &t->imm, 4);	/* in wire order already */
	if (ext & EXT_IETH)
		p = put32(p, t->imm);
	if (ext & EXT_CNP)
		p = put_zeros(p, 16);
	if (len)
		p = put_payload(p, t->payload, (uint64_t)i * t->pmtu, len);
	return put_zeros(p, pad);
}

static uint8_t *put_ethernet(uint8_t *p, const struct roce_path *path, bool ipv4)
{
	p = put_bytes(p, path->dmac, 6);
	p = put_bytes(p, path->smac, 6);
	if (path->vlan != SKUA_VLAN_NONE) {
		p = put16(p, ETH_TYPE_VLAN);
		p = put16(p, (path->sl & 7) << 13 | (path->vlan & 0xfff));
	}
	return put16(p, ipv4 ? ETH_TYPE_IPV4 : ETH_TYPE_IPV6);
}

static uint16_t ipv4_checksum(const uint8_t *ip)
{
	uint32_t sum = 0;

	for (int i = 0; i < IPV4_LEN; i += 2)
		sum += ip[i] << 8 | ip[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

static uint8_t *put_ipv4(uint8_t *ip, const struct roce_path *path, size_t udp_len)
{
	uint8_t *p = ip;

	p = put8(p, 0x45);
	p = put8(p, path->traffic_class);
	p = put16(p, IPV4_LEN + udp_len);
	p = put16(p, 0);		/* ID: of no use where DF is set, RFC 6864 */
	p = put16(p, IPV4_DF);
	p = put8(p, path->hop_limit);
	p = put8(p, IP_PROTO_UDP);
	p = put16(p, 0);
	p = put_bytes(p, path->sgid + 12, 4);
	p = put_bytes(p, path->dgid + 12, 4);
	put16(ip + 10, ipv4_checksum(ip));
	return p;
}

static uint8_t *put_ipv6(uint8_t *p, const struct roce_path *path, size_t udp_len)
{
	p = put32(p, 6u << 28 | (uint32_t)path->traffic_class << 20 |
		     (path->flow_label & 0xfffff));
	p = put16(p, udp_len);
	p = put8(p, IP_PROTO_UDP);
	p = put8(p, path->hop_limit);
	p = put_bytes(p, path->sgid, 16);
	return put_bytes(p, path->dgid, 16);
}

static uint8_t *put_udp(uint8_t *p, const struct roce_path *path, size_t udp_len)
{
	p = put16(p, path->sport);
	p = put16(p, ROCE_UDP_PORT);
	p = put16(p, udp_len);
	return put16(p, 0);		/* no checksum: the ICRC does its work */
}

void roce_ud_header(uint8_t *header, const struct train *t)
{
	bool ipv4 = gid_is_ipv4(t->path->sgid);
	uint32_t ip_len = ipv4 ? IPV4_LEN : IPV6_LEN;
	uint8_t *ip = put_zeros(header, SKUA_UD_HEADER - ip_len);
	size_t udp_len = UDP_LEN + BTH_LEN + transport_len(t, 0) + ROCE_ICRC_LEN;

	if (t->ip)
		memcpy(ip, t->ip, ip_len);
	else if (ipv4)
		put_ipv4(ip, t->path, udp_len);
	else
		put_ipv6(ip, t->path, udp_len);
}

size_t roce_packet_build(uint8_t *buf, const struct train *t, uint32_t i)
{
	const struct roce_path *path = t->path;
	bool ipv4 = gid_is_ipv4(path->sgid);
	uint8_t *ip, *udp, *bth, *end;
	size_t udp_len;
	uint32_t icrc;

	assert(t->op < TRAIN_NUM_OPS && i < t->npkts && t->pmtu <= 4096);

	ip = put_ethernet(buf, path, ipv4);
	udp = ip + (ipv4 ? IPV4_LEN : IPV6_LEN);
	bth = udp + UDP_LEN;
	end = put_transport(bth, t, i);

	udp_len = end - udp + ROCE_ICRC_LEN;
	if (ipv4)
		put_ipv4(ip, path, udp_len);
	else
		put_ipv6(ip, path, udp_len);
	put_udp(udp, path, udp_len);

	icrc = roce_icrc(ip, end - ip);
	for (int b = 0; b < ROCE_ICRC_LEN; b++)
		end = put8(end, icrc >> (8 * b));
	return end - buf;
}
