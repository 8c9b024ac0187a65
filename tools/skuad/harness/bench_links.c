// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Trains as bytes: RC WRITEs between two devices on one thread, over sockets, with ICRC built at
 * one end and checked at the other, and the data placed. A line for each link, path MTU and
 * size: LINK PMTU SIZE BYTES/S, where a second is one of this thread's on a processor: what one
 * core does for both ends.
 *
 * After unix sockets a line for each path MTU: LINK-bare PMTU - BYTES/S, what the same sockets carry
 * in frames of the same length, by the same calls, without a NIC that makes them or looks at them.
 *
 *   bench_links [LINK]
 */
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "harness/harness.h"

#define SECONDS	1.0
#define BATCH	16

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void prepare(struct world *w, struct node *n, struct node *peer, uint8_t path_mtu)
{
	struct skua_cmd port = port_cmd(SKUA_PORT_SET_MTU, 0), rtr = rtr_cmd(n->qpn, peer, peer->qpn);

	port.set_port.mtu = htole32(4200);
	must(w, n, port);
	must(w, n, state_cmd(n->qpn, SKUA_QPS_RESET));
	host_store32(at(n, n->sq_dbr), 0);
	host_store32(at(n, n->rq_dbr), 0);
	n->sq_pi = 0;
	n->rq_pi = 0;
	must(w, n, init_cmd(n->qpn));
	rtr.modify_qp.attr.path_mtu = path_mtu;
	must(w, n, rtr);
	must(w, n, rts_cmd(n->qpn));
}

static void batch(struct world *w, uint32_t size)
{
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cqe *cqe;
	int done = 0;

	for (int i = 0; i < BATCH; i++)
		post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, size, b->buf, b->key, 0);
	while (done < BATCH) {
		engine_step(w->engines[0]);
		while ((cqe = poll_cq(a))) {
			if (cqe->status != SKUA_CQE_SUCCESS)
				abort();
			done++;
		}
	}
}

/* Bytes of a packet in the middle of a message: Ethernet, IPv4, UDP, BTH, ICRC. */
#define HEADERS		(14 + 20 + 8 + 12 + 4)
#define TRAIN		65536		/* bytes of payload */
#define QUEUE		11		/* datagrams that fit into a socket's queue */

static uint8_t tx_bytes[TRAIN + TRAIN / 1024 * (4 + HEADERS)], rx_bytes[2 * sizeof(tx_bytes)];

static void stream_pair(int fd[2])
{
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd))
		abort();
}

/* A train, each frame behind its length; the bytes of payload. */
static uint32_t stream_turn(const int fd[2], uint32_t mtu)
{
	ssize_t len = TRAIN / mtu * (4 + HEADERS + mtu);

	if (send(fd[0], tx_bytes, (size_t)len, MSG_DONTWAIT) != len)
		abort();
	while (len > 0)
		len -= recv(fd[1], rx_bytes, sizeof(rx_bytes), MSG_DONTWAIT);
	return TRAIN;
}

/* Connected one way only, as links are: a pair would have no bound for its queue. */
static void dgram_pair(int fd[2])
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX, .sun_path = "/tmp/skuad-bench-bare" };
	int bytes = 4 << 20;

	for (int i = 0; i < 2; i++)
		fd[i] = socket(AF_UNIX, SOCK_DGRAM, 0);
	unlink(addr.sun_path);
	if (setsockopt(fd[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)) ||
	    bind(fd[1], (struct sockaddr *)&addr, sizeof(addr)) ||
	    connect(fd[0], (struct sockaddr *)&addr, sizeof(addr)))
		abort();
	unlink(addr.sun_path);
}

static uint32_t dgram_turn(const int fd[2], uint32_t mtu)
{
	struct mmsghdr tx[QUEUE], rx[2 * QUEUE];
	struct iovec from[QUEUE], to[2 * QUEUE];
	int n;

	for (int i = 0; i < QUEUE; i++) {
		from[i] = (struct iovec){ tx_bytes + i * 4096, mtu + HEADERS };
		tx[i] = (struct mmsghdr){ .msg_hdr = { .msg_iov = &from[i], .msg_iovlen = 1 } };
	}
	for (int i = 0; i < 2 * QUEUE; i++) {
		to[i] = (struct iovec){ rx_bytes + i * 5000, 5000 };
		rx[i] = (struct mmsghdr){ .msg_hdr = { .msg_iov = &to[i], .msg_iovlen = 1 } };
	}
	n = sendmmsg(fd[0], tx, QUEUE, MSG_DONTWAIT);
	if (n <= 0 || recvmmsg(fd[1], rx, 2 * QUEUE, MSG_DONTWAIT, NULL) != n)
		abort();
	return (uint32_t)n * mtu;
}

struct bare {
	void (*pair)(int fd[2]);
	uint32_t (*turn)(const int fd[2], uint32_t mtu);
};

static const struct bare bare_stream = { stream_pair, stream_turn };
static const struct bare bare_dgram = { dgram_pair, dgram_turn };

static void run_bare(const struct bare *bare, const char *link, uint32_t mtu)
{
	double start = seconds(), end;
	uint64_t bytes = 0;
	int fd[2];

	bare->pair(fd);
	do {
		for (int i = 0; i < BATCH; i++)
			bytes += bare->turn(fd, mtu);
		end = seconds();
	} while (end - start < SECONDS);
	close(fd[0]);
	close(fd[1]);
	printf("%s-bare %u - %.0f\n", link, mtu, (double)bytes / (end - start));
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name, *a, *b;
		const struct bare *bare;
	} links[] = {
		{ "wire", "wire:a", "wire:a", NULL },
		{ "stream-unix", "stream:listen:/tmp/skuad-bench-s", "stream:/tmp/skuad-bench-s",
		  &bare_stream },
		{ "dgram-unix", "dgram:/tmp/skuad-bench-a:/tmp/skuad-bench-b",
		  "dgram:/tmp/skuad-bench-b:/tmp/skuad-bench-a", &bare_dgram },
		{ "stream-inet", "stream:listen:127.0.0.1:47911", "stream:127.0.0.1:47911", NULL },
		{ "dgram-inet", "dgram:127.0.0.1:47912:127.0.0.2:47912",
		  "dgram:127.0.0.2:47912:127.0.0.1:47912", NULL },
	};
	static const uint32_t sizes[] = { 4096, 65536, 1 << 20 };
	static const struct { uint8_t code; uint32_t bytes; } mtus[] = { { 3, 1024 }, { 5, 4096 } };

	log_set_level(LOG_LEVEL_ERR);
	for (size_t l = 0; l < 5; l++) {
		if (argc > 1 && strcmp(argv[1], links[l].name))
			continue;
		for (size_t m = 0; m < 2; m++) {
			for (size_t s = 0; s < 3; s++) {
				struct world *w = world_create_on(false, links[l].a, links[l].b);
				uint64_t messages = 0;
				double start, end;

				for (int i = 0; i < 20; i++, usleep(100))
					settle(w);
				prepare(w, &w->n[0], &w->n[1], mtus[m].code);
				prepare(w, &w->n[1], &w->n[0], mtus[m].code);
				start = seconds();
				do {
					batch(w, sizes[s]);
					messages += BATCH;
					end = seconds();
				} while (end - start < SECONDS);
				printf("%s %u %u %.0f\n", links[l].name, mtus[m].bytes, sizes[s],
				       (double)messages * sizes[s] / (end - start));
				fflush(stdout);
				world_destroy(w);
			}
		}
		for (size_t m = 0; links[l].bare && m < 2; m++)
			run_bare(links[l].bare, links[l].name, mtus[m].bytes);
	}
	return 0;
}
