// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "link/spec.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is left of the text, and where to say what is wrong with it. */
struct text {
	const char *at;
	char *err;
	size_t err_len;
};

static bool bad(struct text *t, const char *what)
{
	snprintf(t->err, t->err_len, "%s", what);
	return false;
}

/* The part up to the next ':' or the end, which is skipped. False: none, or too long. */
static bool part(struct text *t, char *buf, size_t size)
{
	size_t len = strcspn(t->at, ":");

	if (!len || len >= size)
		return false;
	memcpy(buf, t->at, len);
	buf[len] = '\0';
	t->at += len + (t->at[len] == ':');
	return true;
}

static bool parse_unix(struct text *t, struct link_addr *addr)
{
	addr->un.sun_family = AF_UNIX;
	addr->len = sizeof(addr->un);
	if (!part(t, addr->un.sun_path, sizeof(addr->un.sun_path)))
		return bad(t, "the path of a socket is too long");
	return true;
}

static bool parse_inet(struct text *t, struct link_addr *addr)
{
	bool v6 = *t->at == '[';
	char host[64], digits[6];
	const char *end;
	unsigned long port;

	if (v6) {
		end = strchr(t->at, ']');
		if (!end || end[1] != ':' || (size_t)(end - t->at) > sizeof(host))
			return bad(t, "want [IPV6]:PORT");
		memcpy(host, t->at + 1, (size_t)(end - t->at) - 1);
		host[end - t->at - 1] = '\0';
		t->at = end + 2;
	} else if (!part(t, host, sizeof(host))) {
		return bad(t, "an address is missing");
	}
	if (!part(t, digits, sizeof(digits)) || strspn(digits, "0123456789") != strlen(digits))
		return bad(t, "want a port after the host");
	port = strtoul(digits, NULL, 10);
	if (!port || port > 65535)
		return bad(t, "a port must be 1 to 65535");
	if (v6) {
		addr->len = sizeof(addr->in6);
		addr->in6.sin6_family = AF_INET6;
		addr->in6.sin6_port = htons((uint16_t)port);
		return inet_pton(AF_INET6, host, &addr->in6.sin6_addr) == 1 ||
		       bad(t, "not a numeric IPv6 address");
	}
	addr->len = sizeof(addr->in);
	addr->in.sin_family = AF_INET;
	addr->in.sin_port = htons((uint16_t)port);
	return inet_pton(AF_INET, host, &addr->in.sin_addr) == 1 ||
	       bad(t, "not a path or a numeric IPv4 address");
}

static bool parse_addr(struct text *t, struct link_addr *addr)
{
	return memchr(t->at, '/', strcspn(t->at, ":")) ? parse_unix(t, addr) : parse_inet(t, addr);
}

static bool parse_pair(struct text *t, struct link_spec *spec)
{
	if (!parse_addr(t, &spec->local) || !parse_addr(t, &spec->remote))
		return false;
	return spec->local.sa.sa_family == spec->remote.sa.sa_family ||
	       bad(t, "both addresses must be of the same kind");
}

static bool parse_wire(struct text *t, struct link_spec *spec)
{
	return (part(t, spec->name, sizeof(spec->name)) &&
		strspn(spec->name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789_.-") == strlen(spec->name)) ||
	       bad(t, "want wire:NAME with letters, digits, '_', '.', '-'");
}

static bool parse_stream(struct text *t, struct link_spec *spec)
{
	spec->listen = !strncmp(t->at, "listen:", 7);
	if (spec->listen)
		t->at += 7;
	return parse_addr(t, spec->listen ? &spec->local : &spec->remote);
}

static bool parse_udp(struct text *t, struct link_spec *spec)
{
	if (!parse_pair(t, spec))
		return false;
	return spec->local.sa.sa_family != AF_UNIX || bad(t, "udp: takes hosts, not paths");
}

static bool parse_tap(struct text *t, struct link_spec *spec)
{
	return part(t, spec->name, IFNAMSIZ) || bad(t, "want tap:NAME with up to 15 characters");
}

bool link_parse(struct link_spec *spec, const char *text, char *err, size_t err_len)
{
	static const struct {
		const char *prefix;
		enum link_kind kind;
		bool (*parse)(struct text *t, struct link_spec *spec);
	} kinds[] = {
		{ "wire:", LINK_WIRE, parse_wire },
		{ "stream:", LINK_STREAM, parse_stream },
		{ "dgram:", LINK_DGRAM, parse_pair },
		{ "udp:", LINK_UDP, parse_udp },
		{ "tap:", LINK_TAP, parse_tap },
	};
	struct text t = { text, err, err_len };

	memset(spec, 0, sizeof(*spec));
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		size_t len = strlen(kinds[i].prefix);

		if (strncmp(text, kinds[i].prefix, len))
			continue;
		spec->kind = kinds[i].kind;
		t.at = text + len;
		return kinds[i].parse(&t, spec) && (!*t.at || bad(&t, "there is unexpected text at the end"));
	}
	return bad(&t, "want wire:, stream:, dgram:, udp: or tap:");
}

bool link_socket_path(const char *text, char path[static sizeof(((struct sockaddr_un *)NULL)->sun_path)])
{
	struct link_spec spec;
	char err[64];

	if (!link_parse(&spec, text, err, sizeof(err)) || spec.local.sa.sa_family != AF_UNIX)
		return false;
	memcpy(path, spec.local.un.sun_path, sizeof(spec.local.un.sun_path));
	return true;
}

bool link_connects(const char *text)
{
	struct link_spec spec;
	char err[64];

	return link_parse(&spec, text, err, sizeof(err)) &&
	       ((spec.kind == LINK_STREAM && !spec.listen) ||
		(spec.kind == LINK_DGRAM && spec.local.sa.sa_family == AF_UNIX));
}
