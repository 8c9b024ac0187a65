/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * RoCEv2 packets as bytes: Ethernet to ICRC. The FCS is not part of them.
 */
#ifndef SKUAD_ROCE_PACKET_H
#define SKUAD_ROCE_PACKET_H

#include <stddef.h>
#include <stdint.h>

#include "roce/train.h"

#define ROCE_UDP_PORT	4791

/* Ethernet 14, VLAN 4, IPv6 40, UDP 8, BTH 12, RETH 16, ImmDt 4, 4096 bytes, ICRC 4; the 28
 * bytes of an AtomicETH stand alone. */
#define ROCE_MAX_PACKET	(14 + 4 + 40 + 8 + 12 + 16 + 4 + 4096 + 4)

/*
 * Write packet @i (0 to npkts - 1) of @t to @buf, of ROCE_MAX_PACKET bytes; the payload is
 * read from t->payload. Returns the packet's length in bytes.
 */
size_t roce_packet_build(uint8_t *buf, const struct train *t, uint32_t i);

/* Bytes of all packets of @t together, and of the longest one. */
uint64_t roce_train_bytes(const struct train *t, uint32_t *longest);

#endif /* SKUAD_ROCE_PACKET_H */
