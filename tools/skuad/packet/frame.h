/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Ethernet frames as bytes: what the headers say, checksums, and the hash that spreads flows
 * (manual: Ethernet). A frame lies in one piece of our own memory, so that it does not change
 * while it is looked at.
 */
#ifndef SKUAD_PACKET_FRAME_H
#define SKUAD_PACKET_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAME_HEADER		14	/* bytes of the Ethernet header */
#define FRAME_OVERHEAD		18	/* and of a VLAN tag; the MTU counts neither */

struct frame_info {
	uint8_t ip;			/* 4, 6; 0: neither, or cut short: the rest says nothing */
	uint8_t proto;			/* TCP or UDP, if whole header and ports are there; else 0 */
	bool l3_ok;			/* the checksum of the IPv4 header is right */
	uint16_t addrs;			/* offset of the addresses, the source's first */
	uint16_t l4;			/* offset of the TCP or UDP header */
	uint16_t l4_len;		/* its bytes with those behind it, as IP says */
};

#define FRAME_TAG_AT		12	/* offset of a VLAN tag with its type */
#define FRAME_TAG		(FRAME_OVERHEAD - FRAME_HEADER)

/* It begins with a VLAN tag, and has the type behind that. */
bool frame_has_tag(const uint8_t *frame, size_t len);

/* @len is FRAME_HEADER at least. */
struct frame_info frame_parse(const uint8_t *frame, size_t len);

/* The checksum of TCP or UDP is there and right. */
bool frame_l4_ok(const uint8_t *frame, const struct frame_info *info);

/* Complete the checksum from @start on, at @start + @offset, which lie in the frame. */
void frame_fill_csum(uint8_t *frame, size_t len, size_t start, size_t offset);

/* Complete the checksums of an IPv4 header, and of TCP or UDP, of which nothing need be there yet. */
void frame_fill_csums(uint8_t *frame, size_t len);

struct frame_hash {
	uint32_t hash;			/* 0 where there is none */
	bool ports;			/* it covers a port */
};

/* Toeplitz's hash of those of @fields (SKUA_HASH_*) that the frame has, with a key of SKUA_RSS_KEY_LEN bytes. */
struct frame_hash frame_hash(const uint8_t *frame, const struct frame_info *info, uint32_t fields, const uint8_t *key);

#endif /* SKUAD_PACKET_FRAME_H */
