/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What those who build packets and those who take them apart share: packet.c and parse.c.
 */
#ifndef SKUAD_PACKET_WIRE_H
#define SKUAD_PACKET_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "packet/train.h"

#define ETH_TYPE_IPV4	0x0800
#define ETH_TYPE_IPV6	0x86dd
#define ETH_TYPE_VLAN	0x8100
#define IP_PROTO_UDP	17

#define ETH_LEN		14
#define VLAN_LEN	4
#define IPV4_LEN	20
#define IPV6_LEN	40
#define UDP_LEN		8
#define BTH_LEN		12

#define BTH_SE		0x80
#define BTH_PAD_SHIFT	4
#define BTH_VERSION	0x0f
#define BTH_ACKREQ	0x80
#define BTH_BECN	0x40
#define PKEY_DEFAULT	0xffff
#define FETH_BITS	0x3f	/* placement and selectivity; the others are reserved */

/* Headers behind the BTH. */
enum ext {
	EXT_RETH = 1, EXT_AETH = 2, EXT_IMM = 4, EXT_IETH = 8, EXT_ATOMIC = 16,
	EXT_ATOMIC_ACK = 32, EXT_DETH = 64, EXT_CNP = 128, EXT_FETH = 256, EXT_XRC = 512,
	EXT_MASKS = 1024,		/* with EXT_ATOMIC: both are a MaskedAtomicETH */
};

/* What a packet with a BTH opcode is. */
struct roce_opcode {
	bool known;
	uint8_t transport;		/* enum transport */
	enum train_op op;
	bool first, last;
	uint16_t ext;			/* headers behind the BTH */
	uint8_t ext_len;		/* their bytes */
	bool payload;			/* it may have some */
};

extern const struct roce_opcode roce_opcodes[256];

#endif /* SKUAD_PACKET_WIRE_H */
