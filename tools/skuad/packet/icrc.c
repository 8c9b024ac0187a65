// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * ICRC: the CRC-32 of zlib over 8 bytes of ones (where InfiniBand has its local route
 * header) and the packet from the IP header through the pad, with those fields as ones that
 * switches and routers may change. (IBTA RoCEv2 annex, A17.3.3.)
 */
#include "packet/icrc.h"

#include <string.h>

#include <libdeflate.h>

#define LRH_LEN		8
#define UDP_LEN		8
#define BTH_LEN		12
#define IPV4_MAX_LEN	60
#define IPV6_LEN	40

uint32_t roce_icrc(const uint8_t *ip, size_t len)
{
	uint8_t head[LRH_LEN + IPV4_MAX_LEN + UDP_LEN + BTH_LEN];
	uint8_t *h = head + LRH_LEN;
	size_t ip_len = ip[0] >> 4 == 4 ? (ip[0] & 0xfu) * 4 : IPV6_LEN;
	size_t masked = ip_len + UDP_LEN + BTH_LEN;
	uint32_t crc;

	memset(head, 0xff, LRH_LEN);
	/* A length that the compiler knows takes a few moves. */
	if (len >= sizeof(head) - LRH_LEN)
		memcpy(h, ip, sizeof(head) - LRH_LEN);
	else
		memcpy(h, ip, masked);
	if (ip[0] >> 4 == 4) {
		h[1] = 0xff;			/* TOS */
		h[8] = 0xff;			/* TTL */
		memset(h + 10, 0xff, 2);	/* header checksum */
	} else {
		h[0] |= 0x0f;			/* traffic class and flow label */
		memset(h + 1, 0xff, 3);
		h[7] = 0xff;			/* hop limit */
	}
	memset(h + ip_len + 6, 0xff, 2);	/* UDP checksum */
	h[ip_len + UDP_LEN + 4] = 0xff;		/* FECN, BECN and reserved bits */

	crc = libdeflate_crc32(0, head, LRH_LEN + masked);
	return libdeflate_crc32(crc, ip + masked, len - masked);
}
