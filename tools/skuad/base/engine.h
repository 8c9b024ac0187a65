/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An engine is one thread that owns devices: it polls their queues while there is work,
 * sleeps until a socket or a timer has some, and serves their sockets in between.
 */
#ifndef SKUAD_BASE_ENGINE_H
#define SKUAD_BASE_ENGINE_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/timer.h"

struct engine;

/* A file descriptor that an engine watches. Embedded in its owner, who sets one of the callbacks. */
struct engine_fd {
	int fd;
	/* Called on the engine's thread when @fd is ready or hung up; must not block. */
	void (*ready)(struct engine_fd *efd);
	/* The same; but may be called when @fd is not ready, too. Was there anything to do? */
	bool (*look)(struct engine_fd *efd);

	/* The engine's own. */
	int events;
	bool hot;			/* looked at without being asked */
	unsigned int misses;		/* looks that found nothing, if hot */
	uint64_t heard;			/* when it was ready last, if not */
	uint64_t served;		/* in which look, if not */
	LIST_ENTRY(engine_fd) entry;	/* of those that are hot */
	struct engine *engine;		/* of one that rests */
	struct timer rest;		/* until its end */
	int rest_events;		/* from then on */
};

/* Watch for reading, or forget. On the engine's thread, or while the engine does not run. After
 * engine_fd_del() returns, no callback is called again. 0 or a negative errno. */
int engine_fd_add(struct engine *engine, struct engine_fd *efd);
void engine_fd_del(struct engine *engine, struct engine_fd *efd);
/* Watch for POLLIN, POLLOUT, both, or for now nothing. Less never fails. It ends a rest, unless it fails. */
int engine_fd_watch(struct engine *engine, struct engine_fd *efd, int events);
/*
 * It is not watched for so long: then what has come meanwhile is served at once. From then on it is watched for what it
 * was watched for before.
 */
void engine_fd_rest(struct engine *engine, struct engine_fd *efd, uint64_t ns);

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

#endif /* SKUAD_BASE_ENGINE_H */
