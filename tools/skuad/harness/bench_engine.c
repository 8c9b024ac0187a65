// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The engine alone: messages of RC, and datagrams of UD, between two devices of one engine, posted
 * and polled by the thread that turns it. One line for each operation and size: OPERATION SIZE BYTES/S.
 */
#include <stdio.h>
#include <time.h>

#include "harness/datagram.h"

#define SECONDS	0.3
#define BATCH	64		/* WQEs between two turns of the engine */

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void batch(struct world *w, const char *operation, uint32_t size)
{
	struct node *a = &w->n[0], *b = &w->n[1];
	bool read = !strcmp(operation, "read"), send = !strcmp(operation, "send");
	bool ud = !strcmp(operation, "ud");
	uint32_t done = 0;

	for (int i = 0; i < BATCH; i++) {
		if (send || ud)
			post_recv(b, b->buf, size + SKUA_UD_HEADER);
		if (ud)
			post_ud(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, size, ud_to(b), 0);
		else
			post(a, read ? SKUA_WQE_READ : send ? SKUA_WQE_SEND : SKUA_WQE_WRITE,
			     SKUA_WQE_SIGNALED, a->buf, size, b->buf, b->key, 0);
	}
	while (done < BATCH) {
		struct skua_cqe *cqe;

		engine_step(w->engines[0]);
		while ((cqe = poll_cq(a))) {
			if (cqe->status != SKUA_CQE_SUCCESS)
				abort();
			done++;
		}
		while ((send || ud) && poll_cq(b))
			;
	}
}

/* Both nodes use UD QPs, and datagrams may be as long as they can be. */
static void use_datagrams(struct world *w)
{
	struct skua_cmd mtu = port_cmd(SKUA_PORT_SET_MTU, 0);

	mtu.set_port.mtu = htole32(9000);
	for (int i = 0; i < 2; i++) {
		must(w, &w->n[i], mtu);
		ud_queues(w, &w->n[i], SKUA_QPT_UD, SKUA_QPS_RTS);
	}
}

int main(void)
{
	static const char *const operations[] = { "write", "read", "send", "ud" };
	static const uint32_t sizes[] = { 8, 4096, 65536, 1 << 20 };

	for (size_t i = 0; i < 4; i++) {
		bool ud = !strcmp(operations[i], "ud");

		for (size_t j = 0; j < (ud ? 2 : 4); j++) {
			struct world *w = world_create(false);
			uint64_t messages = 0;
			double start, end;

			if (ud)
				use_datagrams(w);
			start = seconds();
			do {
				batch(w, operations[i], sizes[j]);
				messages += BATCH;
				end = seconds();
			} while (end - start < SECONDS);
			printf("%s %u %.0f\n", operations[i], sizes[j],
			       (double)messages * sizes[j] / (end - start));
			world_destroy(w);
		}
	}
	return 0;
}
