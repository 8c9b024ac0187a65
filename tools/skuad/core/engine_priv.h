/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The inside of an engine, for core/ and link/.
 */
#ifndef SKUAD_CORE_ENGINE_PRIV_H
#define SKUAD_CORE_ENGINE_PRIV_H

#include <pthread.h>
#include <sys/queue.h>

#include "core/engine.h"
#include "core/seg.h"
#include "core/timer.h"

struct skua_dev;
struct engine_request;

struct engine {
	bool manual;			/* the clock */
	uint64_t now;			/* of this round; the manual clock itself */
	uint64_t spin_ns;		/* an idle queue is looked at for so long */
	struct timers timers;
	TAILQ_HEAD(, skua_dev) devices;
	int epoll_fd, wake_fd;
	struct engine_fd wake;
	LIST_HEAD(, engine_fd) hot;
	unsigned int num_hot;
	struct engine_fd *looking;	/* whose look() is being called */
	bool running;			/* by lock */
	bool stop;			/* atomic */
	bool stopped;			/* atomic: it has run, and touches nothing any more */
	bool sleeping;			/* atomic: wake me by wake_fd */
	pthread_mutex_t lock;
	STAILQ_HEAD(, engine_request) requests;	/* by lock */
	uint64_t next_poll;		/* when to look at the sockets again */
	uint64_t next_tune;		/* when to look at the spin window again */
	long switches;			/* involuntary, at the last look */
	int load_fd;			/* /proc/loadavg; -1: not to be had */
	unsigned int cores;		/* that we may run on */

	/* Scratch of the step that is being done. */
	struct seglist src, dst;
	uint8_t bounce[SEG_MAX_BYTES];
};

/* From any thread: wake up and look. Cheap while the engine is awake. */
void engine_kick(struct engine *engine);

#endif /* SKUAD_CORE_ENGINE_PRIV_H */
