// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Theory of operation
 *
 * The close() of a descriptor may take as long as its sender likes. That of a TCP socket waits for the peer
 * (SO_LINGER), and that of a file on a FUSE file system waits for the client's own server. Whoever unmaps or closes a
 * memory file last frees all of its pages in one step, which takes some 100 ms for each GiB. An engine serves other
 * guests, too, so it leaves such things to a thread.
 *
 * Each device has a thread of its own, and so has each link by unix sockets. With one thread for all of them, one
 * descriptor of a hostile client would keep the memory of all other guests from being freed.
 *
 * Jobs are done in their order. Their number is bounded, because an owner whose closer is full neither reads from its
 * client or peer nor accepts another one. So who sends descriptors which cannot be closed waits for itself alone.
 *
 * A file is unmapped piece by piece. The kernel has a lock of the process's memory map meanwhile, for which an engine
 * waits that maps another file.
 *
 * The first job starts the thread. skuad gives up its rights when its devices are there, and a thread that started
 * before that would keep them.
 */
#include "base/closer.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/farewell.h"

/*
 * When it is full. With 256 devices, and as many files in use as mem_guard.c has room for, the process stays below the
 * 65,530 mappings that Linux allows it by default.
 */
#define FULL_FDS	128
#define FULL_FILES	128

#define STEP_BYTES	(4ull << 20)

/* At the end of the device the thread has a second. */
#define END_TRIES	10000
#define END_TRY_US	100

struct job {
	uint8_t *base;			/* NULL: a descriptor */
	uint64_t size, page;		/* bytes */
	int fd;
	bool is_connection;
};

struct closer {
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock;		/* of all below; the counters are atomic, and are read without it, too */
	pthread_cond_t wake;		/* there is a job, or stop */
	bool stop;
	bool over, abandoned;		/* the thread has ended; it frees all of this when it ends */
	unsigned int first, n;
	unsigned int num_fds, num_files;
	uint64_t bytes;
	unsigned int max_jobs;
	struct job jobs[];
};

static void unmap(const struct job *job)
{
	/* Of a huge page, all or nothing. */
	uint64_t step = job->page > STEP_BYTES ? job->page : STEP_BYTES;

	for (uint64_t at = 0; at < job->size; at += step)
		munmap(job->base + at, job->size - at < step ? job->size - at : step);
}

static void do_job(const struct job *job)
{
	if (job->base) {
		unmap(job);
		return;
	}
	if (job->is_connection)
		farewell(job->fd);
	close(job->fd);
}

/* @sign is 1 or -1. */
static void count(struct closer *c, const struct job *job, int sign)
{
	if (job->base) {
		__atomic_fetch_add(&c->num_files, (unsigned int)sign, __ATOMIC_RELAXED);
		__atomic_fetch_add(&c->bytes, (uint64_t)sign * job->size, __ATOMIC_RELAXED);
	} else {
		__atomic_fetch_add(&c->num_fds, (unsigned int)sign, __ATOMIC_RELAXED);
	}
}

static void closer_free(struct closer *c)
{
	pthread_cond_destroy(&c->wake);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

static void *run(void *arg)
{
	struct closer *c = arg;
	bool abandoned;

	pthread_mutex_lock(&c->lock);
	while (c->n || !c->stop) {
		struct job job;

		if (!c->n) {
			pthread_cond_wait(&c->wake, &c->lock);
			continue;
		}
		job = c->jobs[c->first];
		pthread_mutex_unlock(&c->lock);
		do_job(&job);
		pthread_mutex_lock(&c->lock);
		c->first = (c->first + 1) % c->max_jobs;
		c->n--;
		count(c, &job, -1);
	}
	c->over = true;
	abandoned = c->abandoned;
	pthread_mutex_unlock(&c->lock);
	if (abandoned)
		closer_free(c);
	return NULL;
}

/* Signals are for other threads. */
static bool start_thread(struct closer *c)
{
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	c->has_thread = !pthread_create(&c->thread, NULL, run, c);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return c->has_thread;
}

static void add(struct closer *c, const struct job *job)
{
	/* Without a thread, the caller has to wait for what it does. */
	if (!c->has_thread && !start_thread(c)) {
		do_job(job);
		return;
	}
	pthread_mutex_lock(&c->lock);
	assert(c->n < c->max_jobs);
	c->jobs[(c->first + c->n++) % c->max_jobs] = *job;
	count(c, job, 1);
	pthread_cond_signal(&c->wake);
	pthread_mutex_unlock(&c->lock);
}

struct closer *closer_create(unsigned int room)
{
	unsigned int max_jobs = FULL_FDS + FULL_FILES + room;
	struct closer *c = calloc(1, sizeof(*c) + max_jobs * sizeof(c->jobs[0]));

	if (!c)
		return NULL;
	c->max_jobs = max_jobs;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->wake, NULL);
	return c;
}

/* False: the thread waits for something of the client's, or has much memory to free, and is left alone with it. */
static bool join(struct closer *c)
{
	bool over;

	for (unsigned int i = 0; i < END_TRIES; i++) {
		if (!pthread_tryjoin_np(c->thread, NULL))
			return true;
		usleep(END_TRY_US);
	}
	pthread_mutex_lock(&c->lock);
	over = c->over;
	c->abandoned = !over;
	if (!over)
		pthread_detach(c->thread);
	pthread_mutex_unlock(&c->lock);
	if (over)
		pthread_join(c->thread, NULL);
	return over;
}

void closer_destroy(struct closer *c)
{
	pthread_mutex_lock(&c->lock);
	c->stop = true;
	pthread_cond_signal(&c->wake);
	pthread_mutex_unlock(&c->lock);
	if (!c->has_thread || join(c))
		closer_free(c);
}

void closer_fd(struct closer *c, int fd)
{
	add(c, &(struct job){ .fd = fd });
}

void closer_connection(struct closer *c, int fd)
{
	shutdown(fd, SHUT_RDWR);
	add(c, &(struct job){ .fd = fd, .is_connection = true });
}

void closer_unmap(struct closer *c, void *base, uint64_t size, uint64_t page)
{
	add(c, &(struct job){ .base = base, .size = size, .page = page });
}

bool closer_is_full(const struct closer *c)
{
	return __atomic_load_n(&c->num_fds, __ATOMIC_RELAXED) >= FULL_FDS ||
	       __atomic_load_n(&c->num_files, __ATOMIC_RELAXED) >= FULL_FILES;
}

uint64_t closer_bytes(const struct closer *c)
{
	return __atomic_load_n(&c->bytes, __ATOMIC_RELAXED);
}
