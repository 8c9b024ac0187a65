// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Links of UDP datagrams, and a peer that is this test: frames of one length may pass through the
 * kernel together, and each is a datagram of its own.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness/harness.h"
#include "nic/control.h"

#define VXLAN_LEN	8
#define FRAMES_MAX	200

static const uint8_t stranger[6] = { 2, 9, 9, 9, 9, 9 };
static const uint8_t vxlan[VXLAN_LEN] = { 0x08, 0, 0, 0, 0, 0, 1, 0 };

static struct peer {
	struct world *w;
	int fd;
	bool vxlan;
	unsigned int messages, frames;
	uint8_t buf[65536];
} peer;

static struct sockaddr_in address(const char *ip)
{
	struct sockaddr_in in = { .sin_family = AF_INET };

	in.sin_port = htons((uint16_t)(20000 + getpid() % 20000));
	in.sin_addr.s_addr = inet_addr(ip);
	return in;
}

/* Both devices behind one link of @kind, and the test's socket at its end. */
static struct peer *start(const char *kind)
{
	struct sockaddr_in own = address("127.0.0.2"), other = address("127.0.0.1");
	unsigned int port = ntohs(own.sin_port);
	struct skua_cmd mtu = port_cmd(SKUA_PORT_SET_MTU, 0);
	int bytes = 4 << 20;
	char link[100];

	peer = (struct peer){ .vxlan = !strcmp(kind, "udp") };
	snprintf(link, sizeof(link), "%s:127.0.0.1:%u:127.0.0.2:%u", kind, port, port);
	peer.fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	assert_int_equal(setsockopt(peer.fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)), 0);
	assert_int_equal(bind(peer.fd, (struct sockaddr *)&own, sizeof(own)), 0);
	assert_int_equal(connect(peer.fd, (struct sockaddr *)&other, sizeof(other)), 0);
	peer.w = world_create_on(false, link, link);
	for (int i = 0; i < 2; i++) {
		mtu.set_port.mtu = htole32(9000);
		must(peer.w, &peer.w->n[i], mtu);
		eth_queues(peer.w, &peer.w->n[i]);
	}
	return &peer;
}

static void stop(struct peer *p)
{
	close(p->fd);
	world_destroy(p->w);
}

/* Frame @i of those that are sent: from a to nobody here. */
static void send_frame(struct node *a, unsigned int i, uint32_t len)
{
	uint64_t addr = a->buf + i * 9216;
	uint8_t *p = at(a, addr);

	memset(p, (int)i, len);
	memcpy(p, stranger, 6);
	memcpy(p + 6, a->mac, 6);
	memcpy(p + 12, (uint8_t[]){ 0x88, 0xb5 }, 2);
	post(a, SKUA_WQE_SEND, 0, addr, len, 0, 0, 0);
}

/* The next datagram at the peer is frame @i. */
static void heard(struct peer *p, const uint8_t *bytes, size_t len, const uint32_t *lens)
{
	unsigned int i = p->frames++;

	if (p->vxlan) {
		assert_memory_equal(bytes, vxlan, VXLAN_LEN);
		bytes += VXLAN_LEN;
		len -= VXLAN_LEN;
	}
	assert_int_equal(len, lens[i]);
	assert_memory_equal(bytes, stranger, 6);
	for (size_t at = 14; at < len; at++)
		assert_int_equal(bytes[at], i % 100);
}

/* All that has come, in messages of one datagram or many. */
static void hear(struct peer *p, const uint32_t *lens)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { p->buf, sizeof(p->buf) };
	struct msghdr hdr = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control };
	ssize_t len;

	settle(p->w);
	for (;;) {
		struct cmsghdr *cmsg;
		int each = 0;

		hdr.msg_controllen = sizeof(control);
		len = recvmsg(p->fd, &hdr, 0);
		if (len < 0)
			return;
		cmsg = CMSG_FIRSTHDR(&hdr);
		if (cmsg)
			memcpy(&each, CMSG_DATA(cmsg), sizeof(each));
		for (ssize_t done = 0, part; done < len; done += part) {
			part = each && each < len - done ? each : len - done;
			heard(p, p->buf + done, (size_t)part, lens);
		}
		p->messages++;
	}
}

static uint64_t lost(struct peer *p)
{
	struct skua_dev_info info;

	skua_dev_get_info(p->w->n[0].dev, &info);
	return info.link_tx_lost;
}

/* The middle of a message, its end, and others. */
static const uint32_t lens[] = { 1098, 1082, 1082, 1082, 1082, 1082, 300, 300, 60, 61, 61, 8000, 60, 60 };
#define N	(sizeof(lens) / sizeof(lens[0]))

static void each_frame_is_a_datagram(void **state)
{
	static const char *const kinds[] = { "dgram", "udp" };
	int on = 1;

	(void)state;
	for (int kind = 0; kind < 2; kind++) {
		for (int together = 0; together < 2; together++) {
			struct peer *p = start(kinds[kind]);

			if (together)
				assert_int_equal(setsockopt(p->fd, SOL_UDP, UDP_GRO, &on, sizeof(on)), 0);
			for (unsigned int i = 0; i < N; i++)
				send_frame(&p->w->n[0], i, lens[i]);
			hear(p, lens);
			assert_int_equal(p->frames, N);
			/* 1098, 1082 five times and 300, 300 and 60, 61 twice, 8000 and 60, 60. */
			assert_int_equal(p->messages, together ? 6 : N);
			assert_int_equal(lost(p), 0);
			stop(p);
		}
	}
}

/* As many as the kernel takes at once, and as many bytes. */
static void a_run_has_its_bounds(void **state)
{
	static const struct { uint32_t len, messages; } sizes[] = { { 60, 20 }, { 4154, 30 }, { 9014, 60 } };
	uint32_t same[FRAMES_MAX];
	int on = 1;

	(void)state;
	for (int size = 0; size < 3; size++) {
		struct peer *p = start("dgram");

		assert_int_equal(setsockopt(p->fd, SOL_UDP, UDP_GRO, &on, sizeof(on)), 0);
		for (unsigned int i = 0; i < FRAMES_MAX; i++)
			same[i] = sizes[size].len;
		for (unsigned int i = 0; i < FRAMES_MAX; i++) {
			send_frame(&p->w->n[0], i % 100, same[i]);
			if (i % 100 == 99)
				hear(p, same);
		}
		assert_int_equal(p->frames, FRAMES_MAX);
		assert_in_range(p->messages, 1, sizes[size].messages);
		assert_int_equal(lost(p), 0);
		stop(p);
	}
}

/* Datagrams that go out as one message, of @len bytes but for the last. */
static void say_run(struct peer *p, uint8_t *bytes, size_t total, uint16_t len)
{
	union {
		struct cmsghdr hdr;
		char bytes[CMSG_SPACE(sizeof(len))];
	} control = {
		.hdr = { .cmsg_level = SOL_UDP, .cmsg_type = UDP_SEGMENT, .cmsg_len = CMSG_LEN(sizeof(len)) },
	};
	struct iovec iov = { bytes, total };
	struct msghdr hdr = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
			      .msg_controllen = sizeof(control) };

	memcpy(CMSG_DATA(&control.hdr), &len, sizeof(len));
	assert_int_equal(sendmsg(p->fd, &hdr, 0), total);
	settle(p->w);
}

/* Whatever came together with it: a datagram is good or not. */
static void datagrams_that_come_together_are_frames(void **state)
{
	static const char *const kinds[] = { "dgram", "udp" };
	enum { EACH = 120, LAST = 70 };

	(void)state;
	for (int kind = 0; kind < 2; kind++) {
		struct peer *p = start(kinds[kind]);
		struct node *b = &p->w->n[1];
		uint8_t bytes[5 * EACH + LAST];
		struct skua_dev_info info;
		uint32_t head = p->vxlan ? VXLAN_LEN : 0;

		for (int i = 0; i < 6; i++) {
			uint8_t *frame = bytes + i * EACH;

			memset(frame, i, i < 5 ? EACH : LAST);
			memcpy(frame, vxlan, head);
			memcpy(frame + head, b->mac, 6);
			memcpy(frame + head + 6, stranger, 6);
			memcpy(frame + head + 12, (uint8_t[]){ 0x88, 0xb5 }, 2);
			post_recv(b, b->buf + (uint64_t)i * 4096, 2048);
		}
		bytes[2 * EACH] ^= 0x08;	/* the VNI is not valid, or the frame not for b */
		say_run(p, bytes, sizeof(bytes), EACH);
		for (int i = 0; i < 6; i++) {
			struct skua_cqe *cqe;
			uint32_t len = (i < 5 ? EACH : LAST) - head;
			const uint8_t *at_b;

			if (i == 2)
				continue;
			cqe = poll_cq(b);
			assert_non_null(cqe);
			assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
			assert_int_equal(le32toh(cqe->byte_len), len);
			at_b = at(b, b->buf + (uint64_t)(i > 2 ? i - 1 : i) * 4096);
			assert_int_equal(at_b[14], i);
			assert_int_equal(at_b[len - 1], i);
		}
		assert_null(poll_cq(b));
		skua_dev_get_info(b->dev, &info);
		assert_int_equal(info.link_rx_lost, p->vxlan);
		/* One without a byte is none, and does no harm. */
		assert_int_equal(send(p->fd, bytes, 0, 0), 0);
		say_run(p, bytes, LAST, EACH);
		assert_non_null(poll_cq(b));
		skua_dev_get_info(b->dev, &info);
		assert_int_equal(info.link_rx_lost, 1 + p->vxlan);
		stop(p);
	}
}

/* The loopback of a network of its own, with another MTU. Returns the network of before. */
static int own_network(int mtu)
{
	int before = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), fd;
	struct ifreq lo = { .ifr_name = "lo" };

	assert_true(before >= 0);
	assert_int_equal(unshare(CLONE_NEWNET), 0);
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	lo.ifr_mtu = mtu;
	assert_int_equal(ioctl(fd, SIOCSIFMTU, &lo), 0);
	lo.ifr_flags = IFF_UP;
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &lo), 0);
	close(fd);
	return before;
}

/* The kernel takes no runs of what goes in fragments. */
static void frames_longer_than_the_mtu_go_singly(void **state)
{
	static const uint32_t mixed[] = { 60, 60, 3000, 3000, 3000, 1500, 1500, 1400, 1400, 9014, 9014, 60, 60 };
	enum { COUNT = sizeof(mixed) / sizeof(mixed[0]) };
	int before = own_network(1500), on = 1;
	struct peer *p = start("dgram");

	(void)state;
	assert_int_equal(setsockopt(p->fd, SOL_UDP, UDP_GRO, &on, sizeof(on)), 0);
	for (unsigned int i = 0; i < COUNT; i++)
		send_frame(&p->w->n[0], i, mixed[i]);
	hear(p, mixed);
	assert_int_equal(p->frames, COUNT);
	/* Those that fit go together still: 60 and 60 twice, 1400 and 1400. */
	assert_int_equal(p->messages, COUNT - 3);
	assert_int_equal(lost(p), 0);
	stop(p);
	assert_int_equal(setns(before, CLONE_NEWNET), 0);
	close(before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_frame_is_a_datagram),
		cmocka_unit_test(a_run_has_its_bounds),
		cmocka_unit_test(datagrams_that_come_together_are_frames),
		cmocka_unit_test(frames_longer_than_the_mtu_go_singly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
