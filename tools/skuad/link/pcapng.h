/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The blocks of a pcapng file, in the byte order of this machine. Each function writes one
 * whole block to @buf and returns its length in bytes.
 * (draft-ietf-opsawg-pcapng)
 */
#ifndef SKUAD_LINK_PCAPNG_H
#define SKUAD_LINK_PCAPNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PCAPNG_EPB		6	/* type of an enhanced packet block */

/* Room for each kind of block, but for the packet in a packet block and its pad. */
#define PCAPNG_HEAD_MAX		256	/* section header and interface description */
#define PCAPNG_EPB_HEAD		28	/* before the packet */
#define PCAPNG_EPB_TAIL		32	/* at most, behind packet and pad */
#define PCAPNG_STATS_MAX	80

/* Section header block and the description of its only interface, Ethernet. */
size_t pcapng_head(uint8_t *buf, const char *name);

/*
 * The packet of @caplen bytes is already in its place, @buf + PCAPNG_EPB_HEAD; it was @len
 * bytes long. @lost: packets lost since the packet before.
 */
size_t pcapng_packet(uint8_t *buf, bool out, uint64_t ns, uint32_t caplen, uint32_t len,
		     uint64_t lost);

/* Interface statistics: @seen by the port, of them @lost to the reader. */
size_t pcapng_stats(uint8_t *buf, uint64_t ns, uint64_t seen, uint64_t lost);

#endif /* SKUAD_LINK_PCAPNG_H */
