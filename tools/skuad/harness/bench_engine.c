// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The engine alone: RC messages between two devices of one engine, posted and polled by the
 * thread that turns it. One line for each operation and size: OPERATION SIZE BYTES/S.
 */
#include <stdio.h>
#include <time.h>

#include "harness/harness.h"

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
	uint32_t done = 0;

	for (int i = 0; i < BATCH; i++) {
		if (send && i < BATCH)
			post_recv(b, b->buf, size);
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
		while (send && poll_cq(b))
			;
	}
}

int main(void)
{
	static const char *const operations[] = { "write", "read", "send" };
	static const uint32_t sizes[] = { 8, 4096, 65536, 1 << 20 };

	for (size_t i = 0; i < 3; i++) {
		for (size_t j = 0; j < 4; j++) {
			struct world *w = world_create(false);
			uint64_t messages = 0;
			double start = seconds(), end;

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
