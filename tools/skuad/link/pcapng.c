// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The blocks of a pcapng file. A block is type, length, body, length again; a body may end
 * in options: code, length, value, pad to 32 bits.
 */
#include "link/pcapng.h"

#include "base/bytes.h"

#include <string.h>

#define BLOCK_SHB		0x0a0d0d0au
#define BLOCK_IDB		1
#define BLOCK_ISB		5
#define BYTE_ORDER_MAGIC	0x1a2b3c4du
#define LINKTYPE_ETHERNET	1

#define OPT_END			0
#define SHB_USERAPPL		4
#define IF_NAME			2
#define IF_TSRESOL		9
#define IF_FCSLEN		13
#define EPB_FLAGS		2
#define EPB_DROPCOUNT		4
#define ISB_IFRECV		4
#define ISB_IFDROP		5

#define EPB_FLAG_INBOUND	1
#define EPB_FLAG_OUTBOUND	2

static uint8_t *native16(uint8_t *p, uint16_t v)
{
	return put_bytes(p, &v, 2);
}

static uint8_t *native32(uint8_t *p, uint32_t v)
{
	return put_bytes(p, &v, 4);
}

/* A time stamp is high word first, whatever the byte order. */
static uint8_t *put_time(uint8_t *p, uint64_t ns)
{
	return native32(native32(p, ns >> 32), ns);
}

static uint8_t *put_option(uint8_t *p, uint16_t code, const void *value, uint16_t len)
{
	p = native16(native16(p, code), len);
	p = put_bytes(p, value, len);
	while (len++ & 3)
		*p++ = 0;
	return p;
}

static uint8_t *block_begin(uint8_t *p, uint32_t type)
{
	return native32(native32(p, type), 0);
}

/* Closes the block that began at @block and ends, but for its length, at @p. */
static size_t block_end(uint8_t *block, uint8_t *p)
{
	uint32_t len = p + 4 - block;

	native32(block + 4, len);
	native32(p, len);
	return len;
}

size_t pcapng_head(uint8_t *buf, const char *name)
{
	static const uint8_t nanoseconds = 9, no_fcs = 0;
	static const uint8_t unknown_length[8] = {
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff
	};
	uint8_t *p, *idb;

	p = block_begin(buf, BLOCK_SHB);
	p = native32(p, BYTE_ORDER_MAGIC);
	p = native16(native16(p, 1), 0);
	p = put_bytes(p, unknown_length, 8);
	p = put_option(p, SHB_USERAPPL, "skuad", 5);
	p = put_option(p, OPT_END, "", 0);
	idb = buf + block_end(buf, p);

	p = block_begin(idb, BLOCK_IDB);
	p = native16(native16(p, LINKTYPE_ETHERNET), 0);
	p = native32(p, 0);	/* packets may be of any length */
	p = put_option(p, IF_NAME, name, strnlen(name, 64));
	p = put_option(p, IF_TSRESOL, &nanoseconds, 1);
	p = put_option(p, IF_FCSLEN, &no_fcs, 1);
	p = put_option(p, OPT_END, "", 0);
	return idb + block_end(idb, p) - buf;
}

size_t pcapng_packet(uint8_t *buf, bool out, uint64_t ns, uint32_t caplen, uint32_t len,
		     uint64_t lost)
{
	uint32_t flags = out ? EPB_FLAG_OUTBOUND : EPB_FLAG_INBOUND;
	uint8_t *p;

	p = block_begin(buf, PCAPNG_EPB);
	p = native32(p, 0);	/* the interface */
	p = put_time(p, ns);
	p = native32(native32(p, caplen), len);
	p += caplen;
	while (caplen++ & 3)
		*p++ = 0;
	p = put_option(p, EPB_FLAGS, &flags, 4);
	if (lost)
		p = put_option(p, EPB_DROPCOUNT, &lost, 8);
	p = put_option(p, OPT_END, "", 0);
	return block_end(buf, p);
}

size_t pcapng_stats(uint8_t *buf, uint64_t ns, uint64_t seen, uint64_t lost)
{
	uint8_t *p;

	p = block_begin(buf, BLOCK_ISB);
	p = native32(p, 0);
	p = put_time(p, ns);
	p = put_option(p, ISB_IFRECV, &seen, 8);
	p = put_option(p, ISB_IFDROP, &lost, 8);
	p = put_option(p, OPT_END, "", 0);
	return block_end(buf, p);
}
