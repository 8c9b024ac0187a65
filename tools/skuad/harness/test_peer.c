// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A peer outside of the process, which is a socket of this test, with nothing but bytes: what a link does with what
 * comes from it, with what it does not take, and when it goes.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "core/device.h"
#include "harness/datagram.h"
#include "harness/links.h"
#include "harness/lossy.h"
#include "nic/control.h"
#include "packet/icrc.h"
#include "packet/packet.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define MS		1000000ull

/* This test as a peer. */
struct peer {
	struct world *w;
	int fd;
	struct sockaddr_un skuad;
	uint8_t buf[65536];
};

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
#define DATAGRAMS	100u

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
	static const struct pair pair = { "stream:listen:127.0.0.1:%u", "stream:127.0.0.1:%u" };
	struct world *w = world_on(&pair);
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

/* Engines that run in threads, and a socket that stays full: its peer takes nothing, and the sender waits. */
static struct peer full_socket(void)
{
	struct peer p = { .fd = peer_socket() };
	uint8_t frame[60] = { 0 };
	struct node *a;
	char link[300];

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
	return p;
}

static void still_full(struct peer *p)
{
	assert_in_range(STAT(p->w, &p->w->n[0], tx_frames), 20, 239);
	world_destroy(p->w);
	close(p->fd);
}

/* While its sender waits, others of the engine do not. Of many calls, as a busy machine may be late. */
static void a_full_socket_keeps_nobody_else_waiting(void **state)
{
	struct peer p = full_socket();
	int soon = 0;

	(void)state;
	for (int i = 0; i < 100; i++) {
		uint64_t start;

		usleep(100);
		start = real_ns();
		on_engine(&p.w->n[0], nothing, NULL);
		soon += real_ns() - start < MS / 2;
	}
	assert_true(soon >= 20);
	still_full(&p);
}

#define OFTEN	(MS / 20)

static struct {
	struct timer timer;
	struct engine *engine;
	uint64_t last;
	unsigned int soon;	/* how often it fired within half of the time between two looks */
} often;

static void fire_often(struct timer *timer)
{
	uint64_t now = engine_now(often.engine);

	if (now - often.last < MS / 2)
		__atomic_add_fetch(&often.soon, 1, __ATOMIC_RELAXED);
	often.last = now;
	timer_set(&often.engine->timers, timer, now + OFTEN);
}

static void start_timer(void *arg)
{
	often.engine = arg;
	often.timer.fire = fire_often;
	fire_often(&often.timer);
}

static void stop_timer(void *arg)
{
	(void)arg;
	timer_cancel(&often.engine->timers, &often.timer);
}

/*
 * Nor do timers: of two that fire within half a millisecond, the second did not wait for the engine's look at its
 * socket. Some of many, as a machine may be busy, or slow to wake.
 */
static void a_full_socket_keeps_no_timer_waiting(void **state)
{
	struct peer p = full_socket();

	(void)state;
	on_engine(&p.w->n[0], start_timer, p.w->engines[0]);
	for (int i = 0; i < 300 && __atomic_load_n(&often.soon, __ATOMIC_RELAXED) < 20; i++)
		usleep(100000);
	on_engine(&p.w->n[0], stop_timer, NULL);
	assert_true(often.soon >= 20);
	still_full(&p);
}

#define PEER(f, rules)	{ rules ": " #f, f, setup_peer, teardown_peer, NULL }

int main(void)
{
#define ALONE(f, rules)	{ rules ": " #f, f, NULL, NULL, NULL }
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_frames_ends_a_stream),
		ALONE(floods_from_outside_take_turns, "SEC-8 ETH-6"),
		ALONE(short_frames_from_outside_take_turns, "SEC-8"),
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
		ALONE(a_full_socket_keeps_no_timer_waiting, "SEC-8"),
		ALONE(a_peer_that_hears_nothing_is_cut_off, "ETH-2 SEC-8"),
		cmocka_unit_test(a_tcp_peer_that_dies_in_silence_is_found_out),
		PEER(without_a_peer_frames_are_lost_and_later_ones_are_not, "ETH-2"),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
