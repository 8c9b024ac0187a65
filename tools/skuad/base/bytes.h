/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Numbers as bytes in network order. put*() return the place behind what they have written.
 */
#ifndef SKUAD_BASE_BYTES_H
#define SKUAD_BASE_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint8_t *put_bytes(uint8_t *p, const void *from, size_t len)
{
	memcpy(p, from, len);
	return p + len;
}

static inline uint8_t *put8(uint8_t *p, uint8_t v)
{
	*p = v;
	return p + 1;
}

static inline uint8_t *put16(uint8_t *p, uint16_t v)
{
	return put8(put8(p, (uint8_t)(v >> 8)), (uint8_t)v);
}

static inline uint8_t *put32(uint8_t *p, uint32_t v)
{
	return put16(put16(p, (uint16_t)(v >> 16)), (uint16_t)v);
}

static inline uint8_t *put64(uint8_t *p, uint64_t v)
{
	return put32(put32(p, (uint32_t)(v >> 32)), (uint32_t)v);
}

static inline uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t get24(const uint8_t *p)
{
	return (uint32_t)p[0] << 16 | get16(p + 1);
}

static inline uint32_t get32(const uint8_t *p)
{
	return (uint32_t)get16(p) << 16 | get16(p + 2);
}

static inline uint64_t get64(const uint8_t *p)
{
	return (uint64_t)get32(p) << 32 | get32(p + 4);
}

#endif /* SKUAD_BASE_BYTES_H */
