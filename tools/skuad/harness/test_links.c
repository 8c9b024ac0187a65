// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Links that leave the process: two devices with a socket between them. */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/qp.h"
#include "harness/datagram.h"
#include "harness/links.h"
#include "harness/lossy.h"
#include "nic/control.h"
#include "roce/rc.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define MS		1000000ull

/* Links of each kind. */
static const struct pair pairs[] = {
	{ "stream:listen:%s/s", "stream:%s/s" },
	{ "stream:listen:127.0.0.1:%u", "stream:127.0.0.1:%u" },
	{ "stream:listen:[::1]:%u", "stream:[::1]:%u" },
	{ "dgram:%s/a:%s/b", "dgram:%s/b:%s/a" },
	{ "dgram:127.0.0.1:%u:127.0.0.2:%u", "dgram:127.0.0.2:%u:127.0.0.1:%u" },
	{ "udp:127.0.0.1:%u:127.0.0.2:%u", "udp:127.0.0.2:%u:127.0.0.1:%u" },
};

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
		ALONE(few_packets_are_ahead_at_first, "ROC-19 CNG-11 CNG-12"),
		ALONE(few_responses_are_asked_for_at_first, "ROC-19 ROC-22"),
		ALONE(few_packets_are_ahead_of_a_slow_line, "ROC-19 CNG-14"),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
