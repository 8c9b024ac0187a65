// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "packet/tso.h"

#include <netinet/in.h>
#include <string.h>

#include "base/bytes.h"
#include "packet/frame.h"

#define ETHERTYPE_IPV4	0x0800
#define ETHERTYPE_IPV6	0x86dd
#define ETHERTYPE_VLAN	0x8100

#define IPV4_HEADER	20
#define IPV4_LENGTH	2
#define IPV4_ID		4
#define IPV4_FRAGMENT	0x3fff		/* more to come, or not the first */
#define IPV6_HEADER	40
#define IPV6_LENGTH	4
#define TCP_HEADER	20
#define TCP_SEQ		4
#define TCP_FLAGS	13
#define TCP_FIN		0x01
#define TCP_PSH		0x08
#define TCP_CWR		0x80

struct layout {
	size_t ip, tcp;			/* offsets; tcp 0: the headers are no good */
	bool v6;
};

/* The IP header of TCP at @ip, with @len bytes behind its first: how long it is; 0: it is no good. */
static size_t ip_header(const uint8_t *ip, size_t len, bool v6)
{
	size_t header = (ip[0] & 15) * 4u;

	if (v6)
		return len >= IPV6_HEADER && ip[0] >> 4 == 6 && ip[6] == IPPROTO_TCP ? IPV6_HEADER : 0;
	return len >= IPV4_HEADER && ip[0] >> 4 == 4 && header >= IPV4_HEADER && header <= len &&
	       !(get16(ip + 6) & IPV4_FRAGMENT) && ip[9] == IPPROTO_TCP ? header : 0;
}

static struct layout find_headers(const uint8_t *p, size_t len)
{
	static const struct layout bad;
	struct layout at = { .ip = FRAME_HEADER };
	uint16_t type;
	size_t header;

	if (len < FRAME_OVERHEAD + 1)
		return bad;
	type = get16(p + 12);
	if (type == ETHERTYPE_VLAN) {
		type = get16(p + 16);
		at.ip = FRAME_OVERHEAD;
	}
	if (type != ETHERTYPE_IPV4 && type != ETHERTYPE_IPV6)
		return bad;
	at.v6 = type == ETHERTYPE_IPV6;
	header = ip_header(p + at.ip, len - at.ip, at.v6);
	at.tcp = at.ip + header;
	if (!header || len - at.tcp < TCP_HEADER)
		return bad;
	header = (p[at.tcp + 12] >> 4) * 4u;
	return header >= TCP_HEADER && at.tcp + header == len ? at : bad;
}

bool tso_header_valid(const uint8_t *header, size_t len)
{
	return find_headers(header, len).tcp;
}

void tso_finish_frame(uint8_t *bytes, const uint8_t *header, size_t hdr_len, const struct tso_frame *frame)
{
	const struct layout at = find_headers(header, hdr_len);
	uint8_t *ip = bytes + at.ip, *tcp = bytes + at.tcp;

	memcpy(bytes, header, hdr_len);
	if (at.v6) {
		put16(ip + IPV6_LENGTH, (uint16_t)(hdr_len - at.ip - IPV6_HEADER + frame->length));
	} else {
		put16(ip + IPV4_LENGTH, (uint16_t)(hdr_len - at.ip + frame->length));
		put16(ip + IPV4_ID, (uint16_t)(get16(ip + IPV4_ID) + frame->index));
	}
	put32(tcp + TCP_SEQ, get32(tcp + TCP_SEQ) + frame->offset);
	if (frame->index)
		tcp[TCP_FLAGS] &= (uint8_t)~TCP_CWR;
	if (!frame->last)
		tcp[TCP_FLAGS] &= (uint8_t)~(TCP_FIN | TCP_PSH);
	frame_fill_csums(bytes, hdr_len + frame->length);
}
