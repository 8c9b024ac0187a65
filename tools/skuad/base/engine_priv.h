/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The inside of an engine, for what runs on it.
 */
#ifndef SKUAD_BASE_ENGINE_PRIV_H
#define SKUAD_BASE_ENGINE_PRIV_H

#include <pthread.h>
#include <sys/queue.h>

#include "base/engine.h"
#include "base/seg.h"
#include "base/timer.h"

struct engine_request;

/* What an engine runs in its rounds: a device. Embedded in its owner. */
struct engine_client {
	TAILQ_ENTRY(engine_client) entry;
	bool (*run)(struct engine_client *client);	/* one round; true if anything was done */
	/* Must it be run again without waiting for a doorbell or a timer? */
	bool (*is_active)(const struct engine_client *client);
	bool (*is_blocked)(const struct engine_client *client);	/* the engine hears when it can go on */
};

struct engine {
	bool manual;			/* the clock */
	uint64_t now;			/* of this round; the manual clock itself */
	uint64_t spin_ns;		/* an idle queue is looked at for so long */
	struct timers timers;
	TAILQ_HEAD(, engine_client) clients;
	int epoll_fd, wake_fd;
	struct engine_fd wake;
	LIST_HEAD(, engine_fd) hot;
	int watched;			/* descriptors, wake among them */
	unsigned int num_hot;
	struct engine_fd *looking;	/* whose look() is being called */
	uint64_t look;			/* at the descriptors that are ready: how many before and with this one */
	bool running;			/* by lock */
	bool stop;			/* atomic */
	bool stopped;			/* atomic: it has run, and touches nothing any more */
	bool sleeping;			/* atomic: wake me by wake_fd */
	pthread_mutex_t lock;
	STAILQ_HEAD(, engine_request) requests;	/* by lock */
	uint64_t next_poll;		/* when to look at the sockets again */
	uint64_t looks_until;		/* until then, a stall is followed by one look at the sockets only */
	uint64_t next_tune;		/* when to look at the spin window again */
	long switches;			/* involuntary, at the last look */
	int load_fd;			/* /proc/loadavg; -1: not to be had */
	unsigned int cores;		/* that we may run on */

	int32_t turn;			/* what is left of the turn of what is run: bytes, or what counts as such */
	uint64_t taken;			/* all that other engines had sent by then has been taken: so far timers fire */
	uint64_t look_begun;		/* what they had sent by then is being taken */
	uint32_t look_number;		/* of that: clients note anew what has come */
	bool left;			/* some of it is left for the next round */

	/* Scratch of the step that is being done. */
	struct seglist src, dst;
	uint8_t bounce[SEG_MAX_BYTES];
};

/*
 * Each loop whose length a host or a peer decides takes from an account, and goes on in the next round when
 * that is used up. Accounts are in bytes of payload, or what takes as long.
 */
#define TURN_COST	65536		/* of a round of the engine, for all QPs of a device; and for what they receive of others */
#define STEP_COST	65536		/* of anything else that is done in steps */
#define LOOK_COST	64		/* a look at an object, at least */
#define COPY_COST	256		/* least cost, of a turn: a frame from outside; each receiver after the first */

/* Something of @bytes goes to one more receiver. */
static inline void engine_charge_copy(struct engine *engine, uint32_t bytes)
{
	engine->turn -= (int32_t)bytes + COPY_COST;
}

/* Fire timers that were due when all that has been taken had come. As timers_run(), with a turn of their own. */
bool engine_run_timers(struct engine *engine);

/* On the engine's thread, or while the engine does not run. */
void engine_join(struct engine *engine, struct engine_client *client);
void engine_leave(struct engine *engine, struct engine_client *client);

/* From any thread: wake up and look. Cheap while the engine is awake. */
void engine_kick(struct engine *engine);

#endif /* SKUAD_BASE_ENGINE_PRIV_H */
