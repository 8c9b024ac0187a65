/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The invariant CRC that ends a RoCEv2 packet.
 */
#ifndef SKUAD_PACKET_ICRC_H
#define SKUAD_PACKET_ICRC_H

#include <stddef.h>
#include <stdint.h>

#define ROCE_ICRC_LEN	4

/*
 * ICRC of the packet whose IPv4 or IPv6 header is at @ip; @len bytes reach to the end of the
 * pad, and hold at least that header, UDP's and BTH. It is stored little endian.
 */
uint32_t roce_icrc(const uint8_t *ip, size_t len);

#endif /* SKUAD_PACKET_ICRC_H */
