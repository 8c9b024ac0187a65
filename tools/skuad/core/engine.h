/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An engine is one thread that owns devices: it polls their queues while there is work,
 * sleeps in epoll when there is none, and serves their sockets in between.
 */
#ifndef SKUAD_CORE_ENGINE_H
#define SKUAD_CORE_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

struct engine;

/* A file descriptor that an engine watches, for reading at least. Embedded in its owner. */
struct engine_fd {
	int fd;
	/* Called on the engine's thread when @fd is ready or hung up; must not block. */
	void (*ready)(struct engine_fd *efd);
};

/* Watch or forget. On the engine's thread, or while the engine does not run. After
 * engine_fd_del() returns, ready() is not called again. 0 or a negative errno. */
int engine_fd_add(struct engine *engine, struct engine_fd *efd);
void engine_fd_del(struct engine *engine, struct engine_fd *efd);
/* Watch it for writing, too; or not any more. */
void engine_fd_write(struct engine *engine, struct engine_fd *efd, bool on);

/*
 * An engine with the real clock, or with a manual one that stands still until
 * engine_clock_advance() (harness). NULL with errno set.
 */
struct engine *engine_create(bool manual_clock);
void engine_destroy(struct engine *engine);	/* stopped, without devices */

/* Run on the calling thread until engine_stop(), which any thread may call. */
void engine_run(struct engine *engine);
void engine_stop(struct engine *engine);

/*
 * Run @fn(@arg) on the engine's thread and wait until it has returned. From a thread that
 * is not an engine's; an engine that does not run calls it at once.
 */
void engine_call(struct engine *engine, void (*fn)(void *arg), void *arg);

/* One round of work without sleeping, for the harness. True if anything was done. */
bool engine_step(struct engine *engine);

/* Nanoseconds; the only source of time. */
uint64_t engine_now(struct engine *engine);
void engine_clock_advance(struct engine *engine, uint64_t ns);

#endif /* SKUAD_CORE_ENGINE_H */
