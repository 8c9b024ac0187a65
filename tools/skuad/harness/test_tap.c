// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A TAP interface as a link. Making one needs a privilege, so here it is one end of a socket pair, which keeps the
 * borders of frames as a TAP does; the test has the other end.
 */
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/device.h"
#include "harness/harness.h"

#define LINK		"tap:t0"
#define PORTS		50u
#define FRAME_MAX	9014u
#define FRAME_USUAL	1514u
#define FRAMES_A_LOOK	64u

static int pair[2];
static char asked_for[IFNAMSIZ];

/* In place of libc's: who opens the TAP device gets one end of the pair. */
int open(const char *path, int flags, ...)
{
	mode_t mode;
	va_list ap;

	va_start(ap, flags);
	mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	if (!strcmp(path, "/dev/net/tun"))
		return fcntl(pair[0], F_DUPFD_CLOEXEC, 0);
	return openat(AT_FDCWD, path, flags, mode);
}

int ioctl(int fd, unsigned long request, ...)
{
	struct ifreq *ifr;
	va_list ap;

	va_start(ap, request);
	ifr = va_arg(ap, void *);
	va_end(ap);
	if (request != TUNSETIFF)
		return (int)syscall(SYS_ioctl, fd, request, ifr);
	strcpy(asked_for, ifr->ifr_name);
	return ifr->ifr_flags == (IFF_TAP | IFF_NO_PI) ? 0 : -1;
}

static int tap_setup(void **state)
{
	int bytes = 256 << 10;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(setsockopt(pair[i], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)), 0);
	*state = world_create_on(false, LINK, LINK);
	settle(*state);
	assert_string_equal(asked_for, "t0");
	return 0;
}

static int tap_teardown(void **state)
{
	world_destroy(*state);
	close(pair[0]);
	close(pair[1]);
	return 0;
}

static void raise_irq(void *host, unsigned int vector)
{
	(void)host;
	(void)vector;
}

/* @count broadcast frames of @len bytes come, as fast as the socket takes them. Returns the most that one step took. */
static uint64_t most_in_a_step(struct world *w, uint64_t count, size_t len)
{
	static const uint8_t head[] = { 255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 9, 0x88, 0xb5 };
	uint64_t *received = &w->n[0].dev->stats.rx_no_buffer, first = *received, sent = 0, most = 0;
	uint8_t frame[FRAME_MAX] = { 0 };

	memcpy(frame, head, sizeof(head));
	while (*received - first < count) {
		uint64_t before = *received;

		while (sent < count && send(pair[1], frame, len, 0) > 0)
			sent++;
		assert_true(engine_step(w->engines[0]));
		if (*received - before > most)
			most = *received - before;
	}
	return most;
}

static void frames_come_some_at_a_time(void **state)
{
	uint64_t most = most_in_a_step(*state, 1000, 60);

	assert_in_range(most, 2, FRAMES_A_LOOK);
}

/* A frame to 52 ports takes as long as 52 frames. */
static void a_flood_takes_turns(void **state)
{
	static const struct skua_host_ops ops = { .raise_irq = raise_irq };
	struct skua_dev *others[PORTS];
	struct world *w = *state;

	for (unsigned int i = 0; i < PORTS; i++) {
		struct skua_dev_config config = { .name = "m", .mac = { 2, 1, [5] = (uint8_t)i }, .link = LINK };

		others[i] = skua_dev_create(w->engines[0], &config, &ops, NULL);
		assert_non_null(others[i]);
	}
	settle(w);
	assert_in_range(most_in_a_step(w, 100, FRAME_USUAL), 1, 2);
	for (unsigned int i = 0; i < PORTS; i++)
		skua_dev_destroy(others[i]);
}

#define FRAMES		200u

static const uint8_t stranger[6] = { 2, 9, 9, 9, 9, 9 };

static void send_frame(struct node *n, uint32_t i)
{
	uint64_t addr = n->buf + i * 9216ull;
	uint8_t *p = at(n, addr);

	memcpy(p, stranger, 6);
	memcpy(p + 6, n->mac, 6);
	memcpy(p + 12, (uint8_t[]){ 0x88, 0xb5 }, 2);
	memcpy(p + 14, &i, 4);
	post(n, SKUA_WQE_SEND, 0, addr, FRAME_MAX, 0, 0, 0);
}

/* More frames than the interface takes now. */
static void send_frames(struct world *w, struct node *a)
{
	struct skua_cmd mtu = port_cmd(SKUA_PORT_SET_MTU, 0);

	mtu.set_port.mtu = htole32(9000);
	must(w, a, mtu);
	eth_queues(w, a);
	for (uint32_t i = 0; i < FRAMES; i++)
		send_frame(a, i);
	for (int i = 0; i < 100; i++)
		engine_step(w->engines[0]);
	assert_in_range(a->dev->stats.tx_frames, 10, FRAMES - 1);
	/* There is nothing to do meanwhile. */
	assert_false(engine_step(w->engines[0]));
}

/* What the interface does not take now it takes later, in order and whole. */
static void what_does_not_fit_waits(void **state)
{
	uint8_t frame[FRAME_MAX + 1] = { 0 };
	struct world *w = *state;
	struct node *a = &w->n[0];
	uint32_t heard = 0;

	send_frames(w, a);
	for (int i = 0; i < 1000 && heard < FRAMES; i++) {
		while (recv(pair[1], frame, sizeof(frame), 0) == FRAME_MAX)
			assert_memory_equal(frame + 14, &(uint32_t){ heard++ }, 4);
		settle(w);
	}
	assert_int_equal(heard, FRAMES);
	assert_int_equal(a->dev->stats.tx_frames, FRAMES);
}

/* As when the interface is deleted, while frames wait for it: they are lost, and the engine has nothing to do. */
static void an_interface_that_goes_ends_the_link(void **state)
{
	struct port_link_stats stats;
	struct world *w = *state;
	struct node *a = &w->n[0];

	send_frames(w, a);
	assert_true(port_link_stats(a->dev->port, &stats) && stats.peer);
	assert_true(port_is_blocked(a->dev->port));
	close(pair[1]);
	settle(w);
	assert_false(engine_step(w->engines[0]));
	assert_true(port_link_stats(a->dev->port, &stats) && !stats.peer);
	assert_false(port_is_blocked(a->dev->port));
	/* Those that waited, and all that came later. */
	assert_true(stats.tx_lost > FRAMES - a->dev->stats.tx_frames);
	pair[1] = dup(pair[0]);
}

int main(void)
{
#define TAP(f, rules)	{ rules #f, f, tap_setup, tap_teardown, NULL }
	const struct CMUnitTest tests[] = {
		TAP(frames_come_some_at_a_time, "SEC-8: "),
		TAP(a_flood_takes_turns, "SEC-8: "),
		TAP(what_does_not_fit_waits, "ETH-2: "),
		TAP(an_interface_that_goes_ends_the_link, "SEC-8: "),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
