/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * RoCEv2 packets as bytes: Ethernet to ICRC. The FCS is not part of them. Built from trains
 * in packet.c, taken apart in parse.c.
 */
#ifndef SKUAD_PACKET_PACKET_H
#define SKUAD_PACKET_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "packet/train.h"

#define ROCE_UDP_PORT	4791
#define ROCE_MAX_PAYLOAD	4096

/* Ethernet 14, VLAN 4, IPv6 40, UDP 8, BTH 12, XRCETH 4, RETH 16, ImmDt 4, 4096 bytes, ICRC 4; the 44
 * bytes of a MaskedAtomicETH have no payload behind them. */
#define ROCE_MAX_PACKET	(14 + 4 + 40 + 8 + 12 + 4 + 16 + 4 + ROCE_MAX_PAYLOAD + 4)

/*
 * Write packet @i (0 to npkts - 1) of @t to @buf, of ROCE_MAX_PACKET bytes; the payload is
 * read from t->payload. Returns the packet's length in bytes.
 */
size_t roce_packet_build(uint8_t *buf, const struct train *t, uint32_t i);

/* Bytes of all packets of @t together, and of the longest one. */
uint64_t roce_train_bytes(const struct train *t, uint32_t *longest);

/* The SKUA_UD_HEADER bytes in front of a received datagram (manual: UD-7). */
void roce_ud_header(uint8_t *header, const struct train *t);

/* A packet as it came: its bytes belong to the caller, and are not copied. */
struct roce_packet {
	struct roce_path path;
	const uint8_t *ip, *bth;	/* bth: NULL, if lengths do not fit */
	const uint8_t *icrc;		/* its last 4 bytes */
	struct train train;		/* of one; pmtu is 0, no packet says it */
	struct seglist payload;
};

/* What is wrong with a packet. */
enum roce_fault {
	ROCE_OK,
	ROCE_BAD_LENGTH,	/* cut short, too long, or its lengths and pad do not fit */
	ROCE_BAD_ICRC,
	ROCE_BAD_HEADER,	/* version, or IPv4 header checksum */
	ROCE_BAD_OPCODE,	/* unknown */
	ROCE_BAD_PKEY,
};

/*
 * Is the frame of @len bytes RoCEv2: IP without options, not a fragment, UDP to port 4791? Fills
 * in pkt->path, ip, bth and icrc only.
 */
bool roce_packet_open(struct roce_packet *pkt, const uint8_t *frame, size_t len);

/* The rest of a packet that was opened. pkt->train refers to path and payload of @pkt, and the
 * payload to the frame. Reads nothing but the frame, writes nothing but @pkt. */
enum roce_fault roce_packet_parse(struct roce_packet *pkt);

#endif /* SKUAD_PACKET_PACKET_H */
