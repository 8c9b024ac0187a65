// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * From the bytes of one packet to a train of one: the way back of packet.c.
 *
 * Nothing of a packet is believed before its lengths fit together, and nothing of its
 * transport headers before the ICRC is right: so a packet that was corrupted on its way is
 * counted as that, whatever it seems to say. Whether it is for a QP here, and whether that QP
 * takes it, is for others to say.
 */
#include <string.h>

#include "base/bytes.h"
#include "packet/icrc.h"
#include "packet/packet.h"
#include "packet/wire.h"
#include "skua/cmd.h"

#define IPV4_FRAGMENT	0x3fff	/* more to come, or not the first */

static void map_ipv4(uint8_t *gid, const uint8_t *addr)
{
	memset(gid, 0, 10);
	memset(gid + 10, 0xff, 2);
	memcpy(gid + 12, addr, 4);
}

/* Both return the IP header's length, or 0 if it is none with UDP right behind it; and the bytes
 * of the UDP datagram, as IP says. */
static size_t open_ipv4(struct roce_path *path, const uint8_t *ip, size_t len, size_t *udp_len)
{
	if (len < IPV4_LEN || ip[0] != 0x45 || get16(ip + 6) & IPV4_FRAGMENT ||
	    ip[9] != IP_PROTO_UDP)
		return 0;
	path->traffic_class = ip[1];
	path->hop_limit = ip[8];
	path->flow_label = 0;
	map_ipv4(path->sgid, ip + 12);
	map_ipv4(path->dgid, ip + 16);
	*udp_len = get16(ip + 2) >= IPV4_LEN ? get16(ip + 2) - IPV4_LEN : 0;
	return IPV4_LEN;
}

static size_t open_ipv6(struct roce_path *path, const uint8_t *ip, size_t len, size_t *udp_len)
{
	/* IPv4 addresses come in IPv4 packets: else one might be forged as the other. */
	if (len < IPV6_LEN || ip[0] >> 4 != 6 || ip[6] != IP_PROTO_UDP ||
	    gid_is_ipv4(ip + 8) || gid_is_ipv4(ip + 24))
		return 0;
	path->traffic_class = get16(ip) >> 4 & 0xff;
	path->flow_label = get32(ip) & 0xfffff;
	path->hop_limit = ip[7];
	memcpy(path->sgid, ip + 8, 16);
	memcpy(path->dgid, ip + 24, 16);
	*udp_len = get16(ip + 4);
	return IPV6_LEN;
}

bool roce_packet_open(struct roce_packet *pkt, const uint8_t *frame, size_t len)
{
	struct roce_path *path = &pkt->path;
	size_t at = ETH_LEN, ip_len, udp_len;
	const uint8_t *udp;
	uint16_t type;

	if (len < ETH_LEN)
		return false;
	memcpy(path->dmac, frame, 6);
	memcpy(path->smac, frame + 6, 6);
	type = get16(frame + 12);
	path->vlan = SKUA_VLAN_NONE;
	path->sl = 0;
	if (type == ETH_TYPE_VLAN && len >= ETH_LEN + VLAN_LEN) {
		path->sl = frame[14] >> 5;
		path->vlan = get16(frame + 14) & 0xfff;
		type = get16(frame + 16);
		at += VLAN_LEN;
		/* Tagged for the sake of its priority only. */
		if (!path->vlan)
			path->vlan = SKUA_VLAN_NONE;
	}
	pkt->ip = frame + at;
	len -= at;
	if (type == ETH_TYPE_IPV4)
		ip_len = open_ipv4(path, pkt->ip, len, &udp_len);
	else if (type == ETH_TYPE_IPV6)
		ip_len = open_ipv6(path, pkt->ip, len, &udp_len);
	else
		return false;
	udp = pkt->ip + ip_len;
	if (!ip_len || len < ip_len + UDP_LEN || get16(udp + 2) != ROCE_UDP_PORT)
		return false;
	path->sport = get16(udp);
	/* What is behind the IP packet is padding of Ethernet's. */
	pkt->bth = NULL;
	if (get16(udp + 4) == udp_len && udp_len >= UDP_LEN + BTH_LEN + ROCE_ICRC_LEN &&
	    ip_len + udp_len <= len) {
		pkt->bth = udp + UDP_LEN;
		pkt->icrc = udp + udp_len - ROCE_ICRC_LEN;
	}
	return true;
}

static bool ipv4_checksum_good(const uint8_t *ip)
{
	uint32_t sum = 0;

	for (int i = 0; i < IPV4_LEN; i += 2)
		sum += get16(ip + i);
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16) == 0xffff;
}

static bool icrc_good(const struct roce_packet *pkt)
{
	uint32_t icrc = roce_icrc(pkt->ip, (size_t)(pkt->icrc - pkt->ip));

	for (int b = 0; b < ROCE_ICRC_LEN; b++)
		if (pkt->icrc[b] != (uint8_t)(icrc >> (8 * b)))
			return false;
	return true;
}

static void parse_ext(struct train *t, uint16_t ext, const uint8_t *p)
{
	if (ext & EXT_XRC) {
		t->srqn = get24(p + 1);
		p += 4;
	}
	if (ext & EXT_DETH) {
		t->qkey = get32(p);
		t->src_qpn = get24(p + 5);
		p += 8;
	}
	if (ext & EXT_FETH) {
		t->flush = p[3] & FETH_BITS;
		p += 4;
	}
	if (ext & (EXT_RETH | EXT_ATOMIC)) {
		t->raddr = get64(p);
		t->rkey = get32(p + 8);
		p += 12;
	}
	if (ext & EXT_RETH) {
		t->msg_len = get32(p);
		p += 4;
	}
	if (ext & EXT_ATOMIC) {
		t->swap_add = get64(p);
		t->compare = get64(p + 8);
		p += 16;
	}
	if (ext & EXT_MASKS) {
		t->swap_add_mask = get64(p);
		t->compare_mask = get64(p + 8);
	}
	if (ext & EXT_AETH) {
		t->syndrome = p[0];
		t->msn = get24(p + 1);
		p += 4;
	}
	if (ext & EXT_ATOMIC_ACK)
		t->swap_add = get64(p);
	if (ext & EXT_IMM)
		memcpy(&t->imm, p, 4);		/* stays in wire order */
	if (ext & EXT_IETH)
		t->imm = get32(p);
}

enum roce_fault roce_packet_parse(struct roce_packet *pkt)
{
	const uint8_t *bth = pkt->bth, *payload;
	const struct roce_opcode *opcode;
	struct train *t = &pkt->train;
	size_t left, head, pad;

	if (!bth)
		return ROCE_BAD_LENGTH;
	left = (size_t)(pkt->icrc - bth) - BTH_LEN;
	/* Headers are words, and payload is padded to them. */
	if (left % 4)
		return ROCE_BAD_LENGTH;
	if (pkt->ip[0] >> 4 == 4 && !ipv4_checksum_good(pkt->ip))
		return ROCE_BAD_HEADER;
	if (!icrc_good(pkt))
		return ROCE_BAD_ICRC;
	if (bth[1] & BTH_VERSION)
		return ROCE_BAD_HEADER;
	if (!roce_opcodes[bth[0]].known)
		return ROCE_BAD_OPCODE;
	if (get16(bth + 2) != PKEY_DEFAULT)
		return ROCE_BAD_PKEY;
	opcode = &roce_opcodes[bth[0]];
	head = opcode->ext_len;
	pad = bth[1] >> BTH_PAD_SHIFT & 3;
	if (left < head + pad || (!opcode->payload && left != head))
		return ROCE_BAD_LENGTH;
	left -= head + pad;
	if (left > ROCE_MAX_PAYLOAD)
		return ROCE_BAD_LENGTH;
	payload = bth + BTH_LEN + head;

	*t = train_blank;
	t->op = opcode->op;
	t->transport = opcode->transport;
	t->first = opcode->first;
	t->last = opcode->last;
	t->solicited = opcode->last && bth[1] & BTH_SE;
	t->ack_req = bth[8] & BTH_ACKREQ;
	t->dest_qpn = get24(bth + 5);
	t->psn = get24(bth + 9);
	t->npkts = 1;
	t->path = &pkt->path;
	t->ip = pkt->ip;
	parse_ext(t, opcode->ext, bth + BTH_LEN);
	if (left) {
		pkt->payload.n = 1;
		pkt->payload.bytes = (uint32_t)left;
		pkt->payload.seg[0] = (struct seg){ (uint8_t *)payload, (uint32_t)left };
		t->payload = &pkt->payload;
	}
	return ROCE_OK;
}
