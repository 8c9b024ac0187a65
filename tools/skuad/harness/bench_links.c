// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Trains as bytes: RC WRITEs between two devices on one thread, over sockets, with ICRC built at
 * one end and checked at the other, and the data placed. A line for each link, path MTU and
 * size: LINK PMTU SIZE BYTES/S, where a second is one of this thread's on a processor: what one
 * core does for both ends.
 *
 *   bench_links [LINK]
 */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "core/log.h"
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

int main(int argc, char **argv)
{
	static const struct { const char *name, *a, *b; } links[] = {
		{ "wire", "wire:a", "wire:a" },
		{ "stream-unix", "stream:listen:/tmp/skuad-bench-s", "stream:/tmp/skuad-bench-s" },
		{ "dgram-unix", "dgram:/tmp/skuad-bench-a:/tmp/skuad-bench-b",
		  "dgram:/tmp/skuad-bench-b:/tmp/skuad-bench-a" },
		{ "stream-inet", "stream:listen:127.0.0.1:47911", "stream:127.0.0.1:47911" },
		{ "dgram-inet", "dgram:127.0.0.1:47912:127.0.0.2:47912",
		  "dgram:127.0.0.2:47912:127.0.0.1:47912" },
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
	}
	return 0;
}
