// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "harness/links.h"

#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define MS		1000000ull

char dir[64];

int make_dir(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/skuad-links-XXXXXX");
	return !mkdtemp(dir);
}

int remove_dir(void **state)
{
	static const char *const left[] = { "peer", "a", "b", "s", "x", "late", "skuad" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(left); i++) {
		char path[128];

		snprintf(path, sizeof(path), "%s/%s", dir, left[i]);
		unlink(path);
	}
	return rmdir(dir);
}

void expand(char *out, const char *text)
{
	unsigned int port = 20000 + (unsigned int)getpid() % 20000;
	size_t len = 0;

	for (; *text; text++) {
		if (*text != '%') {
			out[len++] = *text;
			continue;
		}
		len += (size_t)(*++text == 's' ? sprintf(out + len, "%s", dir) :
				sprintf(out + len, "%u", port));
	}
	out[len] = '\0';
}

void turn(struct world *w)
{
	for (int i = 0; i < 20; i++) {
		settle(w);
		usleep(50);
	}
	settle(w);
}

struct world *world_on(const struct pair *pair)
{
	static char a[300], b[300];
	struct world *w;

	expand(a, pair->a);
	expand(b, pair->b);
	w = world_create_on(false, a, b);
	turn(w);
	return w;
}

void set_mtu(struct world *w, struct node *n, uint32_t mtu)
{
	struct skua_cmd port = port_cmd(SKUA_PORT_SET_MTU, 0);

	port.set_port.mtu = htole32(mtu);
	must(w, n, port);
}

void done(struct world *w, struct node *n, uint8_t opcode)
{
	struct skua_cqe *cqe = NULL;

	for (int i = 0; i < 20000 && !cqe; i++) {
		settle(w);
		cqe = poll_cq(n);
		if (!cqe)
			usleep(100);
		/* What was lost on its way is sent again. */
		if (i % 1000 == 999)
			pass(w, 70 * MS);
	}
	assert_non_null(cqe);
	assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
	assert_int_equal(cqe->opcode, opcode);
}

void post_write(struct node *a, const struct node *b, uint32_t len)
{
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, len, b->buf, b->key, 0);
}

void messages_of_all_kinds(struct world *w)
{
	static const uint32_t sizes[] = { 1, 257, 4096, 100001 };
	struct node *a = &w->n[0], *b = &w->n[1];

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		uint32_t len = sizes[i];

		fill(a, len, len);
		memset(at(b, b->buf), 0, len + 8);
		post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, len, b->buf + 3, b->key, 0);
		done(w, a, SKUA_CQE_WRITE);
		assert_memory_equal(at(b, b->buf + 3), at(a, a->buf), len);
		memset(at(a, a->buf), 0, len);
		post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, len, b->buf + 3, b->key, 0);
		done(w, a, SKUA_CQE_READ);
		assert_memory_equal(at(b, b->buf + 3), at(a, a->buf), len);
		fill(b, len, 3);
		post_recv(a, a->buf, 2u << 20);
		post(b, SKUA_WQE_SEND_IMM, SKUA_WQE_SIGNALED, b->buf, len, 0, 0, 7);
		done(w, a, SKUA_CQE_RECV);
		done(w, b, SKUA_CQE_SEND);
		assert_memory_equal(at(b, b->buf), at(a, a->buf), len);
	}
}

void send_frame(struct node *n, const uint8_t *dmac, uint32_t len)
{
	uint8_t *p = at(n, n->buf);

	fill(n, len, len);
	memcpy(p, dmac, 6);
	memcpy(p + 6, n->mac, 6);
	memcpy(p + 12, (uint8_t[]){ 0x88, 0xb5 }, 2);
	post(n, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, n->buf, len, 0, 0, 0);
}

const uint8_t stranger[6] = { 2, 9, 9, 9, 9, 9 };

int stream_to(const char *name)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s", dir, name);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

int peer_socket(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/peer", dir);
	unlink(addr.sun_path);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}
