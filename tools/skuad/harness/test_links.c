// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Links that leave the process: two devices with a socket between them, or one device and a
 * peer that is this test, with nothing but bytes.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/closer.h"
#include "core/qp.h"
#include "harness/datagram.h"
#include "harness/lossy.h"
#include "harness/slow.h"
#include "nic/control.h"
#include "packet/icrc.h"
#include "packet/packet.h"
#include "roce/rc.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define MS		1000000ull

static char dir[64];

/* Both ends of a link; %s: a directory, %u: a port. */
static const struct pair {
	const char *a, *b;
} pairs[] = {
	{ "stream:listen:%s/s", "stream:%s/s" },
	{ "stream:listen:127.0.0.1:%u", "stream:127.0.0.1:%u" },
	{ "stream:listen:[::1]:%u", "stream:[::1]:%u" },
	{ "dgram:%s/a:%s/b", "dgram:%s/b:%s/a" },
	{ "dgram:127.0.0.1:%u:127.0.0.2:%u", "dgram:127.0.0.2:%u:127.0.0.1:%u" },
	{ "udp:127.0.0.1:%u:127.0.0.2:%u", "udp:127.0.0.2:%u:127.0.0.1:%u" },
};

static void expand(char *out, const char *text)
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

/* Sockets of this host take a moment. */
static void turn(struct world *w)
{
	for (int i = 0; i < 20; i++) {
		settle(w);
		usleep(50);
	}
	settle(w);
}

static struct world *world_on(const struct pair *pair)
{
	static char a[300], b[300];
	struct world *w;

	expand(a, pair->a);
	expand(b, pair->b);
	w = world_create_on(false, a, b);
	turn(w);
	return w;
}

static void set_mtu(struct world *w, struct node *n, uint32_t mtu)
{
	struct skua_cmd port = port_cmd(SKUA_PORT_SET_MTU, 0);

	port.set_port.mtu = htole32(mtu);
	must(w, n, port);
}

static void connect_mtu(struct world *w, struct node *n, const struct node *peer, uint8_t path_mtu)
{
	struct skua_cmd rtr = rtr_cmd(n->qpn, peer, peer->qpn), init = init_cmd(n->qpn);

	must(w, n, state_cmd(n->qpn, SKUA_QPS_RESET));
	host_store32(at(n, n->sq_dbr), 0);
	host_store32(at(n, n->rq_dbr), 0);
	n->sq_pi = 0;
	n->rq_pi = 0;
	init.modify_qp.attr.access = htole32(le32toh(init.modify_qp.attr.access) |
					     SKUA_ACCESS_REMOTE_ATOMIC);
	must(w, n, init);
	rtr.modify_qp.attr.path_mtu = path_mtu;
	must(w, n, rtr);
	must(w, n, rts_cmd(n->qpn));
}

/* The next CQE of the node, while its peer's host sleeps as well as ours. */
static void done(struct world *w, struct node *n, uint8_t opcode)
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

static void messages_of_all_kinds(struct world *w)
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

static void data_arrive_over_every_link_at_every_pmtu(void **state)
{
	(void)state;
	for (size_t p = 0; p < ARRAY_SIZE(pairs); p++) {
		struct world *w = world_on(&pairs[p]);
		struct node *a = &w->n[0], *b = &w->n[1];

		for (uint8_t mtu = 1; mtu <= 5; mtu++) {
			set_mtu(w, a, 4200);
			set_mtu(w, b, 4200);
			connect_mtu(w, a, b, mtu);
			connect_mtu(w, b, a, mtu);
			messages_of_all_kinds(w);
		}
		assert_int_equal(STAT(w, a, rdma_rx_bad_packet), 0);
		assert_int_equal(STAT(w, a, rdma_rx_bad_icrc), 0);
		assert_int_equal(STAT(w, b, rdma_rx_bad_qp), 0);
		assert_int_equal(STAT(w, b, rdma_rx_bad_addr), 0);
		assert_int_equal(STAT(w, b, retransmits), 0);
		assert_int_equal(STAT(w, a, rdma_rx_packets), STAT(w, b, rdma_tx_packets));
		assert_int_equal(STAT(w, a, rdma_rx_bytes), STAT(w, b, rdma_tx_bytes));
		world_destroy(w);
	}
}

/* To one and to a group, both ways; nobody hears anything twice. */
static void datagrams_arrive_over_every_link(void **state)
{
	static const uint8_t group[16] = { [10] = 255, [11] = 255, 239, 1, 2, 3 };

	(void)state;
	for (size_t p = 0; p < ARRAY_SIZE(pairs); p++) {
		struct world *w = world_on(&pairs[p]);

		for (int i = 0; i < 2; i++) {
			struct node *n = &w->n[i];
			struct skua_cmd attach = CMD(SKUA_CMD_ATTACH_MCAST);

			set_mtu(w, n, 4200);
			ud_queues(w, n, SKUA_QPT_UD, SKUA_QPS_RTS);
			attach.mcast.qpn = htole32(n->qpn);
			memcpy(attach.mcast.mgid, group, 16);
			must(w, n, attach);
		}
		for (uint32_t i = 0; i < 12; i++) {
			struct node *from = &w->n[i % 2], *to = &w->n[!(i % 2)];
			uint32_t len = i * 372;
			bool all = i % 4 < 2;

			fill(from, len, i);
			post_recv(to, to->buf + 8192, 8192);
			if (all)
				post_recv(from, from->buf + 8192, 8192);
			post_ud(from, SKUA_WQE_SEND, 0, from->buf, len, all ? ud_to_group(group) : ud_to(to), 0);
			done(w, to, SKUA_CQE_RECV);
			assert_memory_equal(at(to, to->buf + 8192 + SKUA_UD_HEADER), at(from, from->buf), len);
			if (all)
				done(w, from, SKUA_CQE_RECV);
		}
		turn(w);
		for (int i = 0; i < 2; i++) {
			assert_null(poll_cq(&w->n[i]));
			assert_int_equal(STAT(w, &w->n[i], rdma_rx_no_receive), 0);
			assert_int_equal(STAT(w, &w->n[i], rdma_rx_mcast), 6);
		}
		world_destroy(w);
	}
}

/* Copies that one step may make: a turn of the link, a turn of each node, and one datagram more of each. */
#define MEMBERS		200u
#define DATAGRAMS	100u
#define COPIES_A_STEP	(3 * (TURN_COST / COPY_COST + MEMBERS))

/* Nothing is lost, and what came behind it arrives whole. */
static void a_flood_to_a_group_takes_turns(void **state)
{
	static const uint8_t group[16] = { [10] = 255, [11] = 255, 239, 1, 2, 3 };

	(void)state;
	for (size_t p = 0; p < ARRAY_SIZE(pairs); p++) {
		struct world *w = world_on(&pairs[p]);
		struct node *a = &w->n[0], *b = &w->n[1];
		uint64_t before, now = 0;
		struct queues rc;

		ud_join(w, b, MEMBERS, group);
		rc = ud_queues(w, a, SKUA_QPT_UD, SKUA_QPS_RTS);
		for (unsigned int i = 0; i < DATAGRAMS; i++)
			post_ud(a, SKUA_WQE_SEND, 0, a->buf, 64, ud_to_group(group), 0);
		use_queues(a, rc);
		fill(a, 1 << 16, (uint32_t)p);
		post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 1 << 16, b->buf, b->key, 0);
		for (int i = 0; i < 20000 && now < DATAGRAMS * MEMBERS; i++) {
			before = now;
			if (!engine_step(w->engines[0]))
				usleep(50);
			now = b->dev->stats.rdma_rx_no_receive;
			assert_true(now - before <= COPIES_A_STEP);
		}
		assert_int_equal(now, DATAGRAMS * MEMBERS);
		done(w, a, SKUA_CQE_WRITE);
		assert_memory_equal(at(b, b->buf), at(a, a->buf), 1 << 16);
		assert_int_equal(STAT(w, b, rdma_rx_no_receive), now);
		world_destroy(w);
	}
}

/* A peer that is cut off, and a device that goes, while frames wait for a turn. */
static void a_link_goes_in_the_midst_of_a_flood(void **state)
{
	static const uint8_t group[16] = { [10] = 255, [11] = 255, 239, 1, 2, 3 };

	(void)state;
	for (size_t p = 0; p < ARRAY_SIZE(pairs); p++) {
		struct world *w = world_on(&pairs[p]);
		struct node *a = &w->n[0], *b = &w->n[1];

		ud_join(w, b, MEMBERS, group);
		ud_queues(w, a, SKUA_QPT_UD, SKUA_QPS_RTS);
		for (unsigned int i = 0; i < DATAGRAMS; i++)
			post_ud(a, SKUA_WQE_SEND, 0, a->buf, 64, ud_to_group(group), 0);
		for (int i = 0; i < 20000 && !b->dev->stats.rdma_rx_no_receive; i++)
			engine_step(w->engines[0]);
		assert_in_range(b->dev->stats.rdma_rx_no_receive, 1, DATAGRAMS * MEMBERS - 1);
		skua_dev_destroy(w->n[p % 2].dev);
		w->n[p % 2].dev = NULL;
		settle(w);
		world_destroy(w);
	}
}

/* Two engines that sleep and are woken, a full socket between them now and then. */
static void two_engines_talk_over_a_socket(void **state)
{
	static const size_t which[] = { 0, 1, 3 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(which); i++) {
		struct world *w;
		struct node *a, *b;
		char link_a[300], link_b[300];

		expand(link_a, pairs[which[i]].a);
		expand(link_b, pairs[which[i]].b);
		w = world_create_on(true, link_a, link_b);
		a = &w->n[0];
		b = &w->n[1];
		fill(a, 2 << 20, (uint32_t)i);
		for (int round = 0; round < 10; round++) {
			for (int k = 0; k < 8; k++) {
				post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 1 << 16, b->buf,
				     b->key, 0);
				post(b, SKUA_WQE_READ, SKUA_WQE_SIGNALED, b->buf + (2 << 20), 1 << 16,
				     a->buf + (1 << 20), a->key, 0);
			}
			for (int k = 0; k < 8; k++) {
				expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
				expect(w, b, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
			}
			usleep(2000);
		}
		assert_memory_equal(at(b, b->buf), at(a, a->buf), 1 << 16);
		assert_memory_equal(at(b, b->buf + (2 << 20)), at(a, a->buf + (1 << 20)), 1 << 16);
		world_destroy(w);
	}
}

/* A frame of @n's netdev: to @dmac, of another protocol. */
static void send_frame(struct node *n, const uint8_t *dmac, uint32_t len)
{
	uint8_t *p = at(n, n->buf);

	fill(n, len, len);
	memcpy(p, dmac, 6);
	memcpy(p + 6, n->mac, 6);
	memcpy(p + 12, (uint8_t[]){ 0x88, 0xb5 }, 2);
	post(n, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, n->buf, len, 0, 0, 0);
}

static void frames_arrive_over_every_link(void **state)
{
	(void)state;
	for (size_t p = 0; p < ARRAY_SIZE(pairs); p++) {
		struct world *w = world_on(&pairs[p]);
		struct node *a = &w->n[0], *b = &w->n[1];

		set_mtu(w, a, 9000);
		set_mtu(w, b, 9000);
		eth_queues(w, a);
		eth_queues(w, b);
		for (uint32_t len = 60; len <= 9014; len += 597) {
			post_recv(b, b->buf, 16384);
			send_frame(a, b->mac, len);
			done(w, a, SKUA_CQE_SEND);
			done(w, b, SKUA_CQE_RECV);
			assert_memory_equal(at(a, a->buf), at(b, b->buf), len);
		}
		assert_int_equal(STAT(w, b, rx_frames), STAT(w, a, tx_frames));
		world_destroy(w);
	}
}

/* The end that connects may be there first. */
static void a_stream_waits_for_its_listener(void **state)
{
	static const struct pair late = { "stream:%s/late", "stream:listen:%s/late" };
	struct world *w = world_on(&late);
	struct node *a = &w->n[0], *b = &w->n[1];

	(void)state;
	fill(a, 5000, 1);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 5000, b->buf, b->key, 0);
	settle(w);
	assert_null(poll_cq(a));
	for (int i = 0; i < 15; i++)	/* ACK timeout: 67 ms */
		pass(w, 70 * MS);
	done(w, a, SKUA_CQE_WRITE);
	assert_memory_equal(at(b, b->buf), at(a, a->buf), 5000);
	world_destroy(w);
}

/* QEMU joins its -netdev stream and its -netdev dgram by a hub: from one to the other, through us. */
static void qemus_netdevs_are_peers(void **state)
{
	static const struct pair pair = { "stream:listen:%s/s", "dgram:%s/b:%s/a" };
	char stream[300], dgram[600];
	struct world *w;
	int status;
	pid_t pid;

	(void)state;
	if (system("command -v qemu-system-x86_64 >/dev/null"))
		skip();
	snprintf(stream, sizeof(stream), "stream,id=s,server=off,addr.type=unix,addr.path=%s/s", dir);
	snprintf(dgram, sizeof(dgram), "dgram,id=d,local.type=unix,local.path=%s/a,"
		 "remote.type=unix,remote.path=%s/b", dir, dir);
	w = world_on(&pair);
	pid = fork();
	if (!pid) {
		execlp("qemu-system-x86_64", "qemu-system-x86_64", "-M", "none", "-nodefaults",
		       "-display", "none", "-monitor", "none", "-netdev", stream, "-netdev", dgram,
		       "-netdev", "hubport,id=h0,hubid=0,netdev=s",
		       "-netdev", "hubport,id=h1,hubid=0,netdev=d", (char *)NULL);
		_exit(127);
	}
	set_mtu(w, &w->n[0], 4200);
	set_mtu(w, &w->n[1], 4200);
	connect_mtu(w, &w->n[0], &w->n[1], 5);
	connect_mtu(w, &w->n[1], &w->n[0], 5);
	messages_of_all_kinds(w);
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	kill(pid, SIGTERM);
	waitpid(pid, &status, 0);
	world_destroy(w);
}

/* Packets that are on their way. */
static uint32_t ahead(struct node *n)
{
	const struct skua_qp *qp = numtab_get(&n->dev->qps, n->qpn);

	return psn_add(rc_of(qp)->req.next_psn, -rc_of(qp)->req.oldest_unacked_psn);
}

static void post_write(struct node *a, const struct node *b, uint32_t len)
{
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, len, b->buf, b->key, 0);
}

/* Before anything is known of who is behind the link. */
static void few_packets_are_ahead_at_first(void **state)
{
	struct world *w = world_on(&pairs[3]);
	struct node *a = &w->n[0], *b = &w->n[1];

	(void)state;
	IMPAIR(a, "delay=1ms,dir=in");
	post_write(a, b, 1 << 20);
	turn(w);
	assert_int_equal(ahead(a), 128);
	assert_true(skua_dev_set_impair(a->dev, NULL));
	done(w, a, SKUA_CQE_WRITE);
	for (int i = 0; i < 3; i++) {
		post_write(a, b, 1 << 20);
		done(w, a, SKUA_CQE_WRITE);
	}
	/* More, as they are acknowledged. */
	IMPAIR(a, "drop=100%,dir=in");
	post_write(a, b, 1 << 20);
	turn(w);
	assert_in_range(ahead(a), 129, 1024);
	world_destroy(w);
}

/* The responses that READs ask for are in flight. A long READ is requested in parts that the window allows. */
static void few_responses_are_asked_for_at_first(void **state)
{
	struct world *w = world_on(&pairs[3]);
	struct node *a = &w->n[0], *b = &w->n[1];
	struct roce_req *req = &rc_of(numtab_get(&a->dev->qps, a->qpn))->req;

	(void)state;
	IMPAIR(a, "delay=1ms,dir=in");
	for (int i = 0; i < 4; i++)
		post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, 50 << 10, b->buf, b->key, 0);
	turn(w);
	assert_int_equal(ahead(a), 100);
	assert_true(skua_dev_set_impair(a->dev, NULL));
	for (int i = 0; i < 4; i++)
		done(w, a, SKUA_CQE_READ);
	/* More, as they arrive. */
	IMPAIR(a, "delay=1ms,dir=in");
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, 2 << 20, b->buf, b->key, 0);
	turn(w);
	assert_int_equal(ahead(a), req->congestion.window);
	assert_in_range(ahead(a), 129, 1023);
	assert_true(skua_dev_set_impair(a->dev, NULL));
	done(w, a, SKUA_CQE_READ);
	/* A part is never longer than 1024 packets. */
	req->congestion.window = 4096;
	IMPAIR(a, "drop=100%,dir=in");
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, 2 << 20, b->buf, b->key, 0);
	turn(w);
	assert_int_equal(ahead(a), 2048);
	assert_int_equal(req->reads_outstanding, 2);
	world_destroy(w);
}

/* What takes so much longer than it could waits in the queue of a line. */
static void few_packets_are_ahead_of_a_slow_line(void **state)
{
	struct world *w = world_on(&pairs[3]);
	struct node *a = &w->n[0], *b = &w->n[1];
	int left = 10;

	(void)state;
	IMPAIR(b, "rate=100M,dir=in", "delay=12ms,dir=out");
	for (int i = 0; i < 4; i++)
		post_write(a, b, 128 << 10);
	while (left) {
		const struct skua_cqe *cqe = poll_cq(a);

		pass(w, MS);
		if (!cqe)
			continue;
		assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
		post_write(a, b, 128 << 10);
		if (--left < 5)
			assert_in_range(ahead(a), 1, 300);
	}
	assert_int_equal(STAT(w, a, ack_timeouts), 0);
	world_destroy(w);
}

/* This test as a peer. */
struct peer {
	struct world *w;
	int fd;
	struct sockaddr_un skuad;
	uint8_t buf[65536];
};

static int stream_to(const char *name)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s", dir, name);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

static void what_is_not_frames_ends_a_stream(void **state)
{
	static const struct pair pair = { "stream:listen:%s/x", "stream:%s/x" };
	static const uint8_t garbage[] = { 0xff, 0xff, 0xff, 0xff, 1, 2, 3 };
	struct world *w = world_on(&pair);
	struct node *a = &w->n[0], *b = &w->n[1];
	char byte;
	int fd;

	(void)state;
	/* It has a peer: a second one waits. */
	fd = stream_to("x");
	assert_int_equal(write(fd, garbage, sizeof(garbage)), sizeof(garbage));
	turn(w);
	assert_int_equal(read(fd, &byte, 1), -1);
	assert_int_equal(errno, EAGAIN);
	messages_of_all_kinds(w);
	/* The first one goes, the second is served, and cut off; the first finds back. */
	skua_dev_destroy(b->dev);
	b->dev = NULL;
	turn(w);
	assert_int_equal(read(fd, &byte, 1), 0);
	close(fd);
	/* A frame in pieces of one byte is a frame; one of no length does no harm. */
	fd = stream_to("x");
	for (int i = 0; i < 4; i++)
		assert_int_equal(write(fd, "", 1), 1);
	for (int i = 0; i < 64; i++) {
		static const uint8_t frame[64] = { 0, 0, 0, 60, 255, 255, 255, 255, 255, 255,
						   2, 0, 0, 0, 0, 9, 0x88, 0xb5 };

		assert_int_equal(write(fd, frame + i, 1), 1);
		settle(w);
	}
	turn(w);
	assert_int_equal(STAT(w, a, rx_no_buffer) + STAT(w, a, rx_dropped), 1);
	close(fd);
	turn(w);
	world_destroy(w);
}

static void raise_irq(void *host, unsigned int vector)
{
	(void)host;
	(void)vector;
}

#define PORTS		50u
#define FRAMES		2000u
/* Of the link, and of each of the PORTS and two more devices; and one frame more of each. */
#define FLOODS_A_STEP	((PORTS + 3) * (TURN_COST / (COPY_COST + 60) + PORTS + 2))

/* What comes from outside for all ports counts for each. */
static void floods_from_outside_take_turns(void **state)
{
	static const struct pair pair = { "stream:listen:%s/f", "stream:listen:%s/f" };
	static const uint8_t frame[64] = { 0, 0, 0, 60, 255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 9, 0x88, 0xb5 };
	static const struct skua_host_ops ops = { .raise_irq = raise_irq };
	static uint8_t frames[FRAMES * sizeof(frame)];
	struct world *w = world_on(&pair);
	struct skua_dev *others[PORTS];
	uint64_t before, now = 0;
	char link[300];
	int fd = stream_to("f");

	(void)state;
	expand(link, pair.a);
	for (unsigned int i = 0; i < PORTS; i++) {
		struct skua_dev_config config = { .name = "m", .mac = { 2, 1, [5] = (uint8_t)i }, .link = link };

		others[i] = skua_dev_create(w->engines[0], &config, &ops, NULL);
		assert_non_null(others[i]);
	}
	turn(w);
	for (unsigned int i = 0; i < FRAMES; i++)
		memcpy(frames + i * sizeof(frame), frame, sizeof(frame));
	assert_int_equal(write(fd, frames, sizeof(frames)), sizeof(frames));
	while (now < FRAMES) {
		before = now;
		assert_true(engine_step(w->engines[0]));
		now = w->n[0].dev->stats.rx_no_buffer;
		assert_true((now - before) * (PORTS + 2) <= FLOODS_A_STEP);
	}
	assert_int_equal(now, FRAMES);
	close(fd);
	turn(w);
	for (unsigned int i = 0; i < PORTS; i++)
		skua_dev_destroy(others[i]);
	world_destroy(w);
}

/* Of the link, and of each of the two devices on it; and one frame more of each. */
#define RECEIVED_A_STEP	(3 * (TURN_COST / COPY_COST + 1))

/* Short frames for one port count, too, and those that are too short to be frames. */
static void short_frames_from_outside_take_turns(void **state)
{
	static const struct pair pair = { "stream:listen:%s/f", "stream:listen:%s/f" };
	static uint8_t frames[FRAMES][64];
	struct world *w = world_on(&pair);
	struct node *a = &w->n[0];
	struct skua_dev_info info;
	uint64_t before, now = 0;
	int fd = stream_to("f");

	(void)state;
	turn(w);
	for (unsigned int i = 0; i < FRAMES; i++) {
		frames[i][3] = 60;
		memcpy(frames[i] + 4, a->mac, 6);
		memcpy(frames[i] + 10, (uint8_t[]){ 2, 0, 0, 0, 0, 9, 0x88, 0xb5 }, 8);
	}
	assert_int_equal(write(fd, frames, sizeof(frames)), sizeof(frames));
	while (now < FRAMES) {
		before = now;
		assert_true(engine_step(w->engines[0]));
		now = a->dev->stats.rx_no_buffer;
		assert_true(now - before <= RECEIVED_A_STEP);
	}
	assert_int_equal(now, FRAMES);
	memset(frames, 0, sizeof(frames));
	assert_int_equal(write(fd, frames, sizeof(frames)), sizeof(frames));
	for (now = 0; now < sizeof(frames) / 4; now = info.link_rx_lost) {
		before = now;
		assert_true(engine_step(w->engines[0]));
		skua_dev_get_info(a->dev, &info);
		assert_true(info.link_rx_lost - before <= RECEIVED_A_STEP);
	}
	close(fd);
	turn(w);
	world_destroy(w);
}

/* In place of one that was closed. */
static int peer_socket(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/peer", dir);
	unlink(addr.sun_path);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

/* Both devices on one link, and the test is behind it: a switch with three ports. */
static struct peer *peer_create(void)
{
	static const struct pair pair = { "dgram:%s/skuad:%s/peer", "dgram:%s/skuad:%s/peer" };
	struct peer *p = calloc(1, sizeof(*p));
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	p->fd = peer_socket();
	p->w = world_on(&pair);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/skuad", dir);
	p->skuad = addr;
	return p;
}

static int setup_peer(void **state)
{
	*state = peer_create();
	return 0;
}

static int teardown_peer(void **state)
{
	struct peer *p = *state;

	world_destroy(p->w);
	close(p->fd);
	free(p);
	return 0;
}

/* Bytes of the next frame that the peer sees; 0: none. */
static size_t hear(struct peer *p)
{
	ssize_t n;

	settle(p->w);
	n = recv(p->fd, p->buf, sizeof(p->buf), 0);
	return n < 0 ? 0 : (size_t)n;
}

static void say(struct peer *p, const void *frame, size_t len)
{
	assert_int_equal(sendto(p->fd, frame, len, 0, (struct sockaddr *)&p->skuad, sizeof(p->skuad)),
			 len);
	settle(p->w);
}

static const uint8_t broadcast[6] = { 255, 255, 255, 255, 255, 255 };
static const uint8_t stranger[6] = { 2, 9, 9, 9, 9, 9 };

static void a_switch_learns_and_floods(void **state)
{
	struct peer *p = *state;
	struct world *w = p->w;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint8_t frame[60] = { 0 };

	eth_queues(w, a);
	eth_queues(w, b);
	for (int i = 0; i < 8; i++)
		post_recv(b, b->buf + 65536, 2048);
	/* Known: to one port only. Groups: to all others. */
	send_frame(a, b->mac, 60);
	done(w, b, SKUA_CQE_RECV);
	assert_int_equal(hear(p), 0);
	send_frame(a, broadcast, 60);
	done(w, b, SKUA_CQE_RECV);
	assert_int_equal(hear(p), 60);
	/* An address that is not known: everywhere; b does not want it. Then it is heard of. */
	send_frame(a, stranger, 60);
	expect_none(w, b);
	assert_int_equal(hear(p), 60);
	memcpy(frame, b->mac, 6);
	memcpy(frame + 6, stranger, 6);
	say(p, frame, sizeof(frame));
	done(w, b, SKUA_CQE_RECV);
	assert_int_equal(STAT(w, a, rx_no_buffer) + STAT(w, a, rx_dropped), 0);
	send_frame(b, stranger, 60);
	done(w, b, SKUA_CQE_SEND);
	assert_int_equal(hear(p), 60);
	/* From outside to who is outside: not in here. */
	memcpy(frame, stranger, 6);
	memcpy(frame + 6, (uint8_t[]){ 2, 9, 9, 9, 9, 8 }, 6);
	say(p, frame, sizeof(frame));
	expect_none(w, b);
	/* Nobody takes a device's address away from it. */
	memcpy(frame, broadcast, 6);
	memcpy(frame + 6, b->mac, 6);
	say(p, frame, sizeof(frame));
	done(w, b, SKUA_CQE_RECV);
	send_frame(a, b->mac, 60);
	done(w, b, SKUA_CQE_RECV);
	assert_int_equal(hear(p), 0);
}

/* A WRITE of @len bytes to b that seems to come from a, as bytes. */
static size_t packet(struct peer *p, uint8_t *buf, uint32_t len, uint32_t psn)
{
	struct node *a = &p->w->n[0], *b = &p->w->n[1];
	struct train t = train_from(b, TRAIN_WRITE, psn);
	struct roce_path path = { .vlan = SKUA_VLAN_NONE, .hop_limit = 64, .sport = 0xc000 };
	static uint8_t data[4096];
	struct seglist payload = { 1, len, { { data, len } } };

	memset(data, 0x77, sizeof(data));
	memcpy(path.sgid, a->gid, 16);
	memcpy(path.dgid, b->gid, 16);
	memcpy(path.smac, stranger, 6);
	memcpy(path.dmac, b->mac, 6);
	t.path = &path;
	t.msg_len = len;
	t.payload = len ? &payload : NULL;
	return roce_packet_build(buf, &t, 0);
}

static void a_packet_from_outside_is_carried_out(void **state)
{
	struct peer *p = *state;
	struct world *w = p->w;
	struct node *b = &w->n[1];
	uint8_t buf[ROCE_MAX_PACKET];
	struct roce_packet pkt;
	size_t len;

	memset(at(b, b->buf), 0, 200);
	say(p, buf, packet(p, buf, 100, FIRST_PSN));
	assert_int_equal(*(uint8_t *)at(b, b->buf + 99), 0x77);
	assert_int_equal(*(uint8_t *)at(b, b->buf + 100), 0);
	assert_int_equal(STAT(w, b, rdma_rx_packets), 1);
	assert_int_equal(STAT(w, b, rdma_rx_write), 1);
	/* The answer goes to a's MAC, which the AV of b's QP has. */
	len = packet(p, buf, 0, FIRST_PSN + 1);
	memcpy(buf + 6, stranger, 6);
	say(p, buf, len);
	assert_int_equal(STAT(w, b, rdma_rx_write), 2);
	assert_false(roce_packet_open(&pkt, p->buf, hear(p)));
}

static void seal(uint8_t *buf, size_t len)
{
	uint32_t icrc = htole32(roce_icrc(buf + 14, len - 18));

	memcpy(buf + len - 4, &icrc, 4);
}

/* A packet with a fault of each kind: counted as that, and nothing else changes. */
static void faulty_packets_change_only_their_counter(void **state)
{
	static const char *const causes[] = { "icrc", "opcode", "pkey", "packet", "qp", "addr" };
	struct peer *p = *state;
	struct world *w = p->w;
	struct node *b = &w->n[1];
	uint8_t buf[ROCE_MAX_PACKET], *bth = buf + 14 + 20 + 8;

	memset(at(b, b->buf), 0, 4096);
	for (size_t c = 0; c < ARRAY_SIZE(causes); c++) {
		struct skua_stats before, now;
		size_t len = packet(p, buf, 64, FIRST_PSN);

		before = *(struct skua_stats *)query(w, b, (struct skua_cmd)CMD(SKUA_CMD_QUERY_STATS),
						     sizeof(before));
		before.rdma_rx_packets = htole64(le64toh(before.rdma_rx_packets) + 1);
		before.rdma_rx_bytes = htole64(le64toh(before.rdma_rx_bytes) + len);
		before.commands = htole64(le64toh(before.commands) + 1);
		switch (c) {
		case 0:
			buf[len - 5] ^= 4;
			before.rdma_rx_bad_icrc = htole64(le64toh(before.rdma_rx_bad_icrc) + 1);
			break;
		case 1:
			bth[0] = 0x64;
			seal(buf, len);
			before.rdma_rx_bad_opcode = htole64(le64toh(before.rdma_rx_bad_opcode) + 1);
			break;
		case 2:
			bth[3] = 0xfe;
			seal(buf, len);
			before.rdma_rx_bad_pkey = htole64(le64toh(before.rdma_rx_bad_pkey) + 1);
			break;
		case 3:
			bth[1] |= 3;
			seal(buf, len);
			before.rdma_rx_bad_packet = htole64(le64toh(before.rdma_rx_bad_packet) + 1);
			break;
		case 4:
			bth[6] ^= 1;
			seal(buf, len);
			before.rdma_rx_bad_qp = htole64(le64toh(before.rdma_rx_bad_qp) + 1);
			break;
		case 5:
			buf[14 + 15] ^= 8;		/* source, and the checksum with it */
			buf[14 + 11] ^= 8;
			for (int i = 0; i < 0xffff; i++) {
				uint32_t sum = 0;

				buf[14 + 10] = (uint8_t)(i >> 8);
				buf[14 + 11] = (uint8_t)i;
				for (int j = 0; j < 20; j += 2)
					sum += (uint32_t)(buf[14 + j] << 8 | buf[15 + j]);
				sum = (sum & 0xffff) + (sum >> 16);
				if ((sum & 0xffff) + (sum >> 16) == 0xffff)
					break;
			}
			seal(buf, len);
			before.rdma_rx_bad_addr = htole64(le64toh(before.rdma_rx_bad_addr) + 1);
			break;
		}
		say(p, buf, len);
		now = *(struct skua_stats *)query(w, b, (struct skua_cmd)CMD(SKUA_CMD_QUERY_STATS),
						  sizeof(now));
		if (memcmp(&before, &now, sizeof(now)))
			fail_msg("%s: other counters changed", causes[c]);
		assert_int_equal(hear(p), 0);
	}
	assert_int_equal(*(uint8_t *)at(b, b->buf), 0);
	/* The QP is as it was: the packet without fault is the next expected. */
	say(p, buf, packet(p, buf, 64, FIRST_PSN));
	assert_int_equal(*(uint8_t *)at(b, b->buf), 0x77);
	assert_int_equal(STAT(w, b, rdma_rx_write), 1);
}

/* What port 4791 gets for an address that is not a GID is the host's (ETH-9). */
static void packets_of_others_are_frames(void **state)
{
	struct peer *p = *state;
	struct world *w = p->w;
	struct node *b = &w->n[1];
	uint8_t buf[ROCE_MAX_PACKET];
	size_t len = packet(p, buf, 64, FIRST_PSN);

	eth_queues(w, b);
	post_recv(b, b->buf + 8192, 2048);
	buf[14 + 19] ^= 0x40;
	say(p, buf, len);
	done(w, b, SKUA_CQE_RECV);
	assert_int_equal(STAT(w, b, rdma_rx_packets), 0);
	assert_memory_equal(at(b, b->buf + 8192), buf, len);
}

static uint64_t link_tx_lost(const struct node *n)
{
	struct skua_dev_info info;

	skua_dev_get_info(n->dev, &info);
	return info.link_tx_lost;
}

#define LONG_FRAMES	240

/* More than the socket takes, while the peer takes nothing. */
static void send_long_frames(struct world *w, struct node *n, const uint8_t *dmac)
{
	set_mtu(w, n, 9000);
	eth_queues(w, n);
	for (int i = 0; i < LONG_FRAMES; i++)
		send_frame(n, dmac, 9014);
	for (int i = 0; i < 100; i++)
		engine_step(w->engines[0]);
	/* There is nothing to do meanwhile. */
	assert_false(engine_step(w->engines[0]));
}

static unsigned int hear_all(struct peer *p, unsigned int most)
{
	unsigned int frames = 0;

	for (int i = 0; i < 1000 && frames < most; i++)
		while (hear(p))
			frames++;
	return frames;
}

/* The peer takes nothing: its sender waits, and nothing is lost. */
static void a_full_socket_is_waited_for(void **state)
{
	struct peer *p = *state;
	struct world *w = p->w;
	struct node *a = &w->n[0];
	uint8_t frame[60] = { 0 };

	memcpy(frame, a->mac, 6);
	memcpy(frame + 6, stranger, 6);
	say(p, frame, sizeof(frame));
	send_long_frames(w, a, stranger);
	assert_in_range(STAT(w, a, tx_frames), 20, LONG_FRAMES - 1);
	assert_int_equal(hear_all(p, LONG_FRAMES), LONG_FRAMES);
	assert_int_equal(STAT(w, a, tx_frames), LONG_FRAMES);
}

/* The peer has said nothing yet. Between NICs that are known, frames do not wait for it. */
static void a_full_socket_is_waited_for_before_the_peer_is_known(void **state)
{
	struct peer *p = *state;
	struct world *w = p->w;
	struct node *a = &w->n[0], *b = &w->n[1];

	send_long_frames(w, a, stranger);
	assert_in_range(STAT(w, a, tx_frames), 20, LONG_FRAMES - 1);
	eth_queues(w, b);
	send_frame(b, a->mac, 60);
	done(w, b, SKUA_CQE_SEND);
	assert_int_equal(STAT(w, a, rx_no_buffer), 1);
	assert_int_equal(hear_all(p, LONG_FRAMES), LONG_FRAMES);
	assert_int_equal(STAT(w, a, tx_frames), LONG_FRAMES);
	assert_int_equal(link_tx_lost(a), 0);
}

static void datagrams_wait_for_a_full_socket_before_the_peer_is_known(void **state)
{
	struct peer *p = *state;
	struct world *w = p->w;
	struct node *a = &w->n[0];
	struct skua_wqe_ud to = ud_to(&w->n[1]);

	set_mtu(w, a, 4200);
	ud_queues(w, a, SKUA_QPT_UD, SKUA_QPS_RTS);
	memcpy(to.av.dmac, stranger, 6);
	for (unsigned int i = 0; i < DATAGRAMS; i++)
		post_ud(a, SKUA_WQE_SEND, 0, a->buf, 4096, to, 0);
	for (int i = 0; i < 100; i++)
		engine_step(w->engines[0]);
	assert_in_range(STAT(w, a, rdma_tx_send), 20, DATAGRAMS - 1);
	assert_int_equal(hear_all(p, DATAGRAMS), DATAGRAMS);
	assert_int_equal(link_tx_lost(a), 0);
}

/* Others on the wire hear them at once. What the peer misses is counted. */
static void frames_for_a_group_do_not_wait_for_a_full_socket(void **state)
{
	struct peer *p = *state;
	struct world *w = p->w;
	struct node *a = &w->n[0], *b = &w->n[1];
	unsigned int frames;

	set_mtu(w, b, 9000);
	eth_queues(w, b);
	send_long_frames(w, a, broadcast);
	assert_int_equal(STAT(w, a, tx_frames), LONG_FRAMES);
	assert_int_equal(STAT(w, b, rx_no_buffer), LONG_FRAMES);
	frames = hear_all(p, LONG_FRAMES);
	assert_in_range(frames, 20, LONG_FRAMES - 1);
	assert_int_equal(frames + link_tx_lost(a), LONG_FRAMES);
}

/* Nor do packets for it, of a port with a rule that does nothing to them. */
static void an_impaired_port_does_not_wait_for_a_full_socket_to_reach_a_group(void **state)
{
	static const uint8_t group[16] = { [10] = 255, [11] = 255, 239, 1, 2, 3 };
	struct peer *p = *state;
	struct world *w = p->w;
	struct node *a = &w->n[0], *b = &w->n[1];
	unsigned int heard;

	IMPAIR(a, "drop=100%,opcode=0xff,dir=out");
	set_mtu(w, a, 4200);
	set_mtu(w, b, 4200);
	ud_join(w, b, 1, group);
	ud_queues(w, a, SKUA_QPT_UD, SKUA_QPS_RTS);
	for (unsigned int i = 0; i < DATAGRAMS; i++)
		post_ud(a, SKUA_WQE_SEND, 0, a->buf, 4096, ud_to_group(group), 0);
	for (int i = 0; i < 100; i++)
		engine_step(w->engines[0]);
	assert_int_equal(STAT(w, b, rdma_rx_no_receive), DATAGRAMS);
	heard = hear_all(p, DATAGRAMS);
	assert_in_range(heard, 20, DATAGRAMS - 1);
	assert_int_equal(heard + link_tx_lost(a), DATAGRAMS);
}

/* The other port has filled it. */
static void an_impaired_port_does_not_wait_for_a_full_socket_to_reach_a_port(void **state)
{
	struct peer *p = *state;
	struct world *w = p->w;
	struct node *a = &w->n[0], *b = &w->n[1];

	IMPAIR(a, "drop=100%,opcode=0xff,dir=out");
	send_long_frames(w, b, stranger);
	fill(a, 1 << 20, 1);
	post_write(a, b, 1 << 20);
	done(w, a, SKUA_CQE_WRITE);
	assert_memory_equal(at(b, b->buf), at(a, a->buf), 1 << 20);
	assert_in_range(STAT(w, b, tx_frames), 20, LONG_FRAMES - 1);
}

static void without_a_peer_frames_are_lost_and_later_ones_are_not(void **state)
{
	struct peer *p = *state;
	struct world *w = p->w;
	struct node *a = &w->n[0];

	eth_queues(w, a);
	send_frame(a, stranger, 60);
	done(w, a, SKUA_CQE_SEND);
	assert_int_equal(hear(p), 60);
	close(p->fd);
	send_frame(a, stranger, 61);
	done(w, a, SKUA_CQE_SEND);
	settle(w);
	assert_int_equal(link_tx_lost(a), 1);
	p->fd = peer_socket();
	send_frame(a, stranger, 62);
	done(w, a, SKUA_CQE_SEND);
	assert_int_equal(hear(p), 62);
	assert_int_equal(hear(p), 0);
}

/* It goes at once, or when its sender has long been waiting; another is there in its place. */
static void a_full_socket_that_goes_is_not_waited_for(void **state)
{
	struct peer *p = *state;
	struct world *w = p->w;
	struct node *a = &w->n[0];
	uint8_t frame[60] = { 0 };

	memcpy(frame, a->mac, 6);
	memcpy(frame + 6, stranger, 6);
	say(p, frame, sizeof(frame));
	eth_queues(w, a);
	for (int steps = 1; steps < 200; steps *= 5) {
		for (int i = 0; i < 40; i++)
			send_frame(a, stranger, 60);
		for (int i = 0; i < steps; i++)
			engine_step(w->engines[0]);
		close(p->fd);
		settle(w);
		p->fd = peer_socket();
		send_frame(a, stranger, 61);
		assert_int_equal(hear(p), 61);
		assert_int_equal(hear(p), 0);
		while (poll_cq(a))
			;
	}
}

/* A peer that will never take anything has gone, though it stays connected. */
static void a_peer_that_hears_nothing_is_cut_off(void **state)
{
	static const struct pair pair = { "stream:listen:%s/x", "stream:listen:%s/x" };
	struct world *w = world_on(&pair);
	struct node *a = &w->n[0];
	int fd = stream_to("x");
	struct skua_dev_info info;
	char byte;

	(void)state;
	turn(w);
	assert_int_equal(shutdown(fd, SHUT_RD), 0);
	eth_queues(w, a);
	send_frame(a, stranger, 60);
	for (int i = 0; i < 100; i++)
		engine_step(w->engines[0]);
	assert_false(engine_step(w->engines[0]));
	skua_dev_get_info(a->dev, &info);
	assert_false(info.link_peer);
	assert_int_equal(info.link_tx_lost, 1);
	close(fd);
	/* Another one is served. */
	fd = stream_to("x");
	turn(w);
	send_frame(a, stranger, 60);
	settle(w);
	assert_int_equal(read(fd, &byte, 1), 1);
	close(fd);
	turn(w);
	world_destroy(w);
}

static int option(int fd, int level, int name)
{
	socklen_t len = sizeof(int);
	int value;

	return getsockopt(fd, level, name, &value, &len) ? -1 : value;
}

/* The kernel finds it out at both ends, which are in this process, within some ten seconds. */
static void a_tcp_peer_that_dies_in_silence_is_found_out(void **state)
{
	struct world *w = world_on(&pairs[1]);
	unsigned int ends = 0;

	(void)state;
	for (int fd = 0; fd < 1024; fd++) {
		if (option(fd, SOL_SOCKET, SO_PROTOCOL) != IPPROTO_TCP || option(fd, SOL_SOCKET, SO_ACCEPTCONN))
			continue;
		ends++;
		assert_int_equal(option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
		assert_in_range(option(fd, IPPROTO_TCP, TCP_KEEPIDLE) +
				option(fd, IPPROTO_TCP, TCP_KEEPINTVL) * option(fd, IPPROTO_TCP, TCP_KEEPCNT), 1, 15);
	}
	assert_int_equal(ends, 2);
	world_destroy(w);
}

static void nothing(void *arg)
{
	(void)arg;
}

static uint64_t real_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* While its sender waits, others of the engine do not. Of many calls, as a busy machine may be late. */
static void a_full_socket_keeps_nobody_else_waiting(void **state)
{
	struct peer p = { .fd = peer_socket() };
	uint8_t frame[60] = { 0 };
	struct node *a;
	char link[300];
	int soon = 0;

	(void)state;
	expand(link, "dgram:%s/skuad:%s/peer");
	p.w = world_create_on(true, link, "wire:t");
	p.skuad.sun_family = AF_UNIX;
	snprintf(p.skuad.sun_path, sizeof(p.skuad.sun_path), "%s/skuad", dir);
	a = &p.w->n[0];
	memcpy(frame, a->mac, 6);
	memcpy(frame + 6, stranger, 6);
	say(&p, frame, sizeof(frame));
	set_mtu(p.w, a, 9000);
	eth_queues(p.w, a);
	send_frame(a, stranger, 9014);
	for (int i = 1; i < 240; i++)
		post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 9014, 0, 0, 0);
	usleep(10000);
	for (int i = 0; i < 100; i++) {
		uint64_t start;

		usleep(100);
		start = real_ns();
		on_engine(a, nothing, NULL);
		soon += real_ns() - start < MS / 2;
	}
	assert_in_range(STAT(p.w, a, tx_frames), 20, 239);
	assert_true(soon >= 20);
	world_destroy(p.w);
	close(p.fd);
}

/* Sends @len bytes with @n descriptors, to @to unless it is NULL. False: there is no room. */
static bool send_fds(int c, const struct sockaddr_un *to, const void *bytes, size_t len, const int *fds, unsigned int n)
{
	union {
		struct cmsghdr hdr;
		char bytes[CMSG_SPACE(CLOSER_MSG_FDS * sizeof(int))];
	} control = { .hdr = { CMSG_LEN(n * sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct iovec iov = { (void *)bytes, len };
	struct msghdr msg = {
		.msg_name = (void *)to, .msg_namelen = to ? sizeof(*to) : 0, .msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = CMSG_SPACE(n * sizeof(int)),
	};

	memcpy(CMSG_DATA(&control.hdr), fds, n * sizeof(int));
	return sendmsg(c, &msg, MSG_DONTWAIT) == (ssize_t)len;
}

/* A frame for @n behind its length, which datagrams do not have. */
struct short_frame {
	uint8_t len[4], frame[60];
};

static struct short_frame frame_to(const struct node *n)
{
	struct short_frame f = { .len = { [3] = sizeof(f.frame) } };

	memcpy(f.frame, n->mac, 6);
	memcpy(f.frame + 6, stranger, 6);
	return f;
}

static uint64_t frames_received(struct world *w)
{
	return STAT(w, &w->n[0], rx_no_buffer) + STAT(w, &w->n[0], rx_dropped);
}

/* A unix link of each kind, and this test as its peer. */
static const struct pair unix_links[] = {
	{ "dgram:%s/skuad:%s/peer", "dgram:%s/skuad:%s/peer" },
	{ "stream:listen:%s/x", "stream:listen:%s/x" },
};

struct unix_peer {
	struct world *w;
	bool stream;
	int fd;
	struct sockaddr_un addr;	/* of a dgram link */
};

static struct unix_peer unix_peer(unsigned int kind)
{
	struct unix_peer p = { .stream = kind == 1, .addr = { .sun_family = AF_UNIX } };

	snprintf(p.addr.sun_path, sizeof(p.addr.sun_path), "%s/skuad", dir);
	if (!p.stream)
		p.fd = peer_socket();
	p.w = world_on(&unix_links[kind]);
	if (p.stream)
		p.fd = stream_to("x");
	turn(p.w);
	return p;
}

static bool say_with_fds(struct unix_peer *p, const int *fds, unsigned int n)
{
	struct short_frame f = frame_to(&p->w->n[0]);

	return p->stream ? send_fds(p->fd, NULL, &f, sizeof(f), fds, n) :
			   send_fds(p->fd, &p->addr, f.frame, sizeof(f.frame), fds, n);
}

/* Who sends one with a frame fills no table of ours: it is closed, as its end tells. */
static void descriptors_from_a_peer_are_not_kept(void **state)
{
	(void)state;
	for (unsigned int kind = 0; kind < ARRAY_SIZE(unix_links); kind++) {
		struct unix_peer p = unix_peer(kind);
		int ends[2];
		char byte;

		assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
		for (int i = 0; i < 20; i++) {
			assert_true(say_with_fds(&p, &ends[1], 1));
			settle(p.w);
		}
		close(ends[1]);
		assert_int_equal(read(ends[0], &byte, 1), 0);
		close(ends[0]);
		/* The frames themselves came. */
		assert_int_equal(frames_received(p.w), 20);
		world_destroy(p.w);
		close(p.fd);
	}
}

/* Ways in which one comes, and how many frames with it. */

static unsigned int comes_with_a_frame(struct unix_peer *p, int fd)
{
	assert_true(say_with_fds(p, &fd, 1));
	return 1;
}

static unsigned int comes_with_many(struct unix_peer *p, int fd)
{
	int fds[CLOSER_MSG_FDS];

	for (unsigned int i = 0; i < CLOSER_MSG_FDS; i++)
		fds[i] = i < CLOSER_MSG_FDS - 1 ? p->fd : fd;
	assert_true(say_with_fds(p, fds, CLOSER_MSG_FDS));
	return 1;
}

static unsigned int comes_before_many(struct unix_peer *p, int fd)
{
	int fds[CLOSER_MSG_FDS];

	for (unsigned int i = 0; i < CLOSER_MSG_FDS; i++)
		fds[i] = i ? p->fd : fd;
	assert_true(say_with_fds(p, fds, CLOSER_MSG_FDS));
	return 1;
}

/* A stream is cut off before that is read. */
static unsigned int comes_behind_garbage(struct unix_peer *p, int fd)
{
	static uint8_t garbage[100000];

	memset(garbage, 0xff, sizeof(garbage));
	assert_int_equal(write(p->fd, garbage, sizeof(garbage)), sizeof(garbage));
	assert_true(send_fds(p->fd, NULL, "", 1, &fd, 1));
	return 0;
}

/* That takes as long as its sender likes, and others have the same engine. */
static void a_descriptor_that_is_slow_to_close_does_not_stop_a_link(void **state)
{
	static const struct {
		unsigned int kind;
		unsigned int (*comes)(struct unix_peer *p, int fd);
	} ways[] = {
		{ 0, comes_with_a_frame }, { 0, comes_with_many },
		{ 1, comes_with_a_frame }, { 1, comes_with_many }, { 1, comes_behind_garbage },
	};

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(ways); i++) {
		struct unix_peer p = unix_peer(ways[i].kind);
		unsigned int frames;
		struct slow s;

		slow_start(&s);
		frames = ways[i].comes(&p, s.fd);
		close(s.fd);
		turn(p.w);
		assert_int_equal(frames_received(p.w), frames);
		slow_end(&s);
		world_destroy(p.w);
		close(p.fd);
	}
}

static void a_link_ends_before_a_descriptor_that_is_slow_to_close(void **state)
{
	(void)state;
	for (unsigned int kind = 0; kind < ARRAY_SIZE(unix_links); kind++) {
		struct unix_peer p = unix_peer(kind);
		struct slow s;

		slow_start(&s);
		comes_with_a_frame(&p, s.fd);
		close(s.fd);
		/* Nobody has read it. */
		world_destroy(p.w);
		slow_end(&s);
		close(p.fd);
	}
}

/* Its connection waits in the listener, because there is a peer already. */
static void a_link_ends_before_one_that_a_waiting_peer_has_sent(void **state)
{
	struct unix_peer p = unix_peer(1);
	int waiting = stream_to("x");
	struct slow s;

	(void)state;
	slow_start(&s);
	assert_true(send_fds(waiting, NULL, "", 1, &s.fd, 1));
	close(s.fd);
	turn(p.w);
	world_destroy(p.w);
	slow_end(&s);
	close(waiting);
	close(p.fd);
}

/* A process may have so many. What its sender gets meanwhile may be slower, but it arrives. */
static void descriptors_that_come_faster_than_a_link_closes_them_wait(void **state)
{
	(void)state;
	for (unsigned int kind = 0; kind < ARRAY_SIZE(unix_links); kind++) {
		struct unix_peer p = unix_peer(kind);
		struct node *a = &p.w->n[0];
		unsigned int n = 1, heard = 0;
		uint8_t buf[65536];
		struct slow s;
		ssize_t len;

		set_mtu(p.w, a, 9000);
		eth_queues(p.w, a);
		slow_start(&s);
		comes_with_a_frame(&p, s.fd);
		close(s.fd);
		settle(p.w);
		while (n < 2000 && say_with_fds(&p, &p.fd, 1)) {
			settle(p.w);
			n++;
		}
		assert_in_range(frames_received(p.w), 64, 256);
		assert_true(frames_received(p.w) < n);
		/* There is nothing to do until it looks again. */
		assert_false(engine_step(p.w->engines[0]));
		pass(p.w, MS);
		assert_false(engine_step(p.w->engines[0]));
		for (int i = 0; i < 100; i++)
			send_frame(a, stranger, 9014);
		settle(p.w);
		slow_end(&s);
		for (int i = 0; i < 1000 && (frames_received(p.w) < n || heard < 100 * 9014); i++) {
			pass(p.w, MS);
			turn(p.w);
			while ((len = recv(p.fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
				heard += (unsigned int)len;
		}
		assert_int_equal(frames_received(p.w), n);
		assert_int_equal(heard, 100 * (9014 + (p.stream ? 4 : 0)));
		world_destroy(p.w);
		close(p.fd);
	}
}

/* Bytes that the peer of a stream finds in its socket. */
static unsigned int read_all(int fd)
{
	static uint8_t buf[65536];
	unsigned int bytes = 0;
	ssize_t n;

	while ((n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
		bytes += (unsigned int)n;
	return bytes;
}

/* The peer only reads from then on, or has sent one frame that waits. Nothing but room in the socket wakes the link. */
static void a_stream_whose_closer_was_full_goes_on_sending(void **state)
{
	(void)state;
	for (unsigned int waiting = 0; waiting < 2; waiting++) {
		struct unix_peer p = unix_peer(1);
		struct node *a = &p.w->n[0];
		unsigned int heard;
		struct slow s;

		set_mtu(p.w, a, 9000);
		eth_queues(p.w, a);
		slow_start(&s);
		comes_before_many(&p, s.fd);
		close(s.fd);
		settle(p.w);
		/* Not so soon after each other that the link is looked at without being ready. */
		pass(p.w, MS);
		if (waiting)
			comes_with_a_frame(&p, p.fd);
		settle(p.w);
		for (int i = 0; i < 100; i++)
			send_frame(a, stranger, 9014);
		settle(p.w);
		pass(p.w, MS / 2);
		/* The socket has room again, but not for all that waits: the link looks, and rests. */
		heard = read_all(p.fd);
		settle(p.w);
		pass(p.w, 2 * MS);
		slow_end(&s);
		for (int i = 0; i < 1000 && heard < 100 * 9018; i++) {
			pass(p.w, MS);
			heard += read_all(p.fd);
		}
		assert_int_equal(heard, 100 * 9018);
		assert_int_equal(frames_received(p.w), 1 + waiting);
		world_destroy(p.w);
		close(p.fd);
	}
}

/* Others of the process need some. And those that find no room are closed by the kernel, on the engine's thread. */
static void descriptors_that_wait_for_a_link_do_not_fill_the_table(void **state)
{
	struct unix_peer p = unix_peer(0);
	struct rlimit all, few;
	int next = dup(p.fd);
	struct slow s;

	(void)state;
	slow_start(&s);
	for (unsigned int i = 0; i < 10; i++)
		comes_with_many(&p, p.fd);
	comes_with_many(&p, s.fd);
	close(s.fd);
	close(next);
	assert_return_code(getrlimit(RLIMIT_NOFILE, &all), errno);
	few = (struct rlimit){ (rlim_t)next + 1500, all.rlim_max };
	assert_return_code(setrlimit(RLIMIT_NOFILE, &few), errno);
	for (int i = 0; i < 1000 && frames_received(p.w) < 11; i++) {
		pass(p.w, MS);
		usleep(100);
	}
	assert_int_equal(frames_received(p.w), 11);
	assert_return_code(setrlimit(RLIMIT_NOFILE, &all), errno);
	slow_end(&s);
	world_destroy(p.w);
	close(p.fd);
}

/* A listener that cannot accept stays readable: it is not looked at all the time, and later it accepts. */
static void without_descriptors_a_listener_rests(void **state)
{
	static const struct pair pair = { "stream:listen:%s/s", "stream:listen:%s/s" };
	struct world *w = world_on(&pair);
	struct rlimit all, few;
	struct port_link_stats stats;
	int fd = stream_to("s");

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
	few = (struct rlimit){ 0, all.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	engine_step(w->engines[0]);
	for (int i = 0; i < 10; i++)
		assert_false(engine_step(w->engines[0]));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
	assert_true(port_link_stats(w->n[0].dev->port, &stats) && !stats.peer);
	pass(w, 1000 * MS);
	turn(w);
	assert_true(port_link_stats(w->n[0].dev->port, &stats) && stats.peer);
	close(fd);
	turn(w);
	world_destroy(w);
}

static int make_dir(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/skuad-links-XXXXXX");
	return !mkdtemp(dir);
}

static int remove_dir(void **state)
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

#define PEER(f, rules)	{ rules ": " #f, f, setup_peer, teardown_peer, NULL }

int main(void)
{
#define ALONE(f, rules)	{ rules ": " #f, f, NULL, NULL, NULL }
	const struct CMUnitTest tests[] = {
		{ "ROC-1 ROC-6: data_arrive_over_every_link_at_every_pmtu",
		  data_arrive_over_every_link_at_every_pmtu, NULL, NULL, NULL },
		{ "UD-7 MCG-4 MCG-5: datagrams_arrive_over_every_link", datagrams_arrive_over_every_link,
		  NULL, NULL, NULL },
		ALONE(a_flood_to_a_group_takes_turns, "SEC-8 MCG-4 UD-7"),
		ALONE(a_link_goes_in_the_midst_of_a_flood, "SEC-8"),
		cmocka_unit_test(two_engines_talk_over_a_socket),
		cmocka_unit_test(frames_arrive_over_every_link),
		cmocka_unit_test(qemus_netdevs_are_peers),
		cmocka_unit_test(a_stream_waits_for_its_listener),
		cmocka_unit_test(what_is_not_frames_ends_a_stream),
		ALONE(floods_from_outside_take_turns, "SEC-8 ETH-6"),
		ALONE(short_frames_from_outside_take_turns, "SEC-8"),
		ALONE(few_packets_are_ahead_at_first, "ROC-19 CNG-11 CNG-12"),
		ALONE(few_responses_are_asked_for_at_first, "ROC-19 ROC-22"),
		ALONE(few_packets_are_ahead_of_a_slow_line, "ROC-19 CNG-14"),
		PEER(a_switch_learns_and_floods, "ETH-6"),
		PEER(a_packet_from_outside_is_carried_out, "ROC-1 ROC-2 ROC-5"),
		PEER(faulty_packets_change_only_their_counter, "ERR-3 ROC-5 SEC-5"),
		PEER(packets_of_others_are_frames, "ETH-9"),
		PEER(a_full_socket_is_waited_for, "ETH-2"),
		PEER(a_full_socket_is_waited_for_before_the_peer_is_known, "ETH-2"),
		PEER(datagrams_wait_for_a_full_socket_before_the_peer_is_known, "UD-4"),
		PEER(frames_for_a_group_do_not_wait_for_a_full_socket, "ETH-2 ETH-6"),
		PEER(an_impaired_port_does_not_wait_for_a_full_socket_to_reach_a_group, "MCG-4 UD-7"),
		PEER(an_impaired_port_does_not_wait_for_a_full_socket_to_reach_a_port, "ROC-1"),
		PEER(a_full_socket_that_goes_is_not_waited_for, "ETH-2"),
		ALONE(a_full_socket_keeps_nobody_else_waiting, "ETH-2 SEC-8"),
		ALONE(a_peer_that_hears_nothing_is_cut_off, "ETH-2 SEC-8"),
		cmocka_unit_test(a_tcp_peer_that_dies_in_silence_is_found_out),
		PEER(without_a_peer_frames_are_lost_and_later_ones_are_not, "ETH-2"),
		ALONE(descriptors_from_a_peer_are_not_kept, "SEC-8"),
		ALONE(a_descriptor_that_is_slow_to_close_does_not_stop_a_link, "SEC-8"),
		ALONE(a_link_ends_before_a_descriptor_that_is_slow_to_close, "SEC-8"),
		ALONE(a_link_ends_before_one_that_a_waiting_peer_has_sent, "SEC-8"),
		ALONE(descriptors_that_come_faster_than_a_link_closes_them_wait, "SEC-8"),
		ALONE(a_stream_whose_closer_was_full_goes_on_sending, "SEC-8"),
		ALONE(descriptors_that_wait_for_a_link_do_not_fill_the_table, "SEC-8"),
		ALONE(without_descriptors_a_listener_rests, "SEC-8"),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
