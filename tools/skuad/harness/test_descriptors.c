// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Descriptors at links: those that the peer of a unix link hands over, which is a socket of this test, and a process
 * that has no more of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/closer.h"
#include "core/device.h"
#include "harness/links.h"
#include "harness/slow.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define MS		1000000ull

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
		/* What waited comes once the thread of the closer has made room, which may be later. */
		for (int i = 0; i < 1000 && frames_received(p.w) < 1 + waiting; i++) {
			pass(p.w, MS);
			turn(p.w);
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

int main(void)
{
#define ALONE(f, rules)	{ rules ": " #f, f, NULL, NULL, NULL }
	const struct CMUnitTest tests[] = {
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
