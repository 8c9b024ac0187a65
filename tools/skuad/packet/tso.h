/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * TCP payload that is cut into frames: the headers of each frame are made of those of the first (manual: Ethernet).
 */
#ifndef SKUAD_PACKET_TSO_H
#define SKUAD_PACKET_TSO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Are these @len bytes the headers of a frame of TCP, and nothing else? Lengths and checksums in them do not count. */
bool tso_header_valid(const uint8_t *header, size_t len);

/* One of the frames that a TSO is cut into. */
struct tso_frame {
	uint32_t index;			/* 0: the first */
	uint32_t offset;		/* of its payload in that of all */
	uint32_t length;		/* bytes of payload */
	bool last;
};

/* Make @hdr_len bytes of @header, which are valid, to those of @frame, whose payload is behind them in @bytes. */
void tso_finish_frame(uint8_t *bytes, const uint8_t *header, size_t hdr_len, const struct tso_frame *frame);

#endif /* SKUAD_PACKET_TSO_H */
