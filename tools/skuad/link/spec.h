/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a link is told to be: the text behind "link=".
 *
 *   wire:NAME				a switch in this process
 *   stream:ADDR, stream:listen:ADDR	as QEMU's -netdev stream
 *   dgram:LOCAL:REMOTE			as QEMU's -netdev dgram
 *   udp:LOCAL:REMOTE			VXLAN, to another host
 *   tap:NAME				an interface of this host
 *
 * An address is the path of a unix socket, with a '/' and without ':', or a numeric host and a
 * port: 192.0.2.1:4000, [2001:db8::1]:4000.
 */
#ifndef SKUAD_LINK_SPEC_H
#define SKUAD_LINK_SPEC_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#define LINK_TEXT_MAX	300	/* bytes, NUL included: two paths and some */
#define LINK_NAME_MAX	32	/* of a wire */

enum link_kind { LINK_WIRE, LINK_STREAM, LINK_DGRAM, LINK_UDP, LINK_TAP };

struct link_addr {
	socklen_t len;
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
		struct sockaddr_un un;
	};
};

struct link_spec {
	enum link_kind kind;
	char name[LINK_NAME_MAX];	/* wire, tap */
	bool listen;			/* stream */
	struct link_addr local;		/* dgram, udp; stream that listens */
	struct link_addr remote;	/* dgram, udp; stream that connects */
};

/* False: @err, of @err_len bytes, says in a few words what is wrong. */
bool link_parse(struct link_spec *spec, const char *text, char *err, size_t err_len);

/* Does it make a unix socket with a file when it starts? Then @path is where. */
bool link_socket_path(const char *text, char path[static sizeof(((struct sockaddr_un *)NULL)->sun_path)]);

/* Does it make sockets, or connect them, while it serves? */
bool link_connects(const char *text);

#endif /* SKUAD_LINK_SPEC_H */
