// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Theory of operation
 *
 * The close() of a descriptor may take as long as its sender likes. That of a TCP socket waits for the peer
 * (SO_LINGER), and that of a file on a FUSE file system waits for the client's own server. Whoever unmaps or closes a
 * memory file last frees all of its pages in one step, which takes some 100 ms for each GiB. An engine serves other
 * guests, too, so it leaves such things to a thread.
 *
 * Each device has two threads of its own, one that closes descriptors and one that unmaps files. A link by unix sockets
 * needs only the former. With one thread for all devices, one descriptor of a hostile client would keep the memory of
 * all other guests from being freed. With one thread for a device, it would keep that of its own guest, which may be
 * most of the machine's, also after the guest has left.
 *
 * Each thread does its jobs in their order. Their number is bounded, because an owner whose closer is full neither
 * reads from its client or peer nor accepts another one. So who sends descriptors which cannot be closed waits for
 * itself alone.
 *
 * A file is unmapped piece by piece. The kernel has a lock of the process's memory map meanwhile, for which an engine
 * waits that maps another file.
 *
 * The first job of a thread starts it. skuad gives up its rights when its devices are there, and a thread that started
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

/* At the end of the device its threads have a second. Shorter steps add up to more: each may take a millisecond. */
#define END_TRIES	1000
#define END_TRY_US	1000

struct job {
	uint8_t *base;			/* NULL: a descriptor */
	uint64_t size, page;		/* bytes */
	int fd;
	bool is_connection;
};

/* A thread and what it has to do. */
struct worker {
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock;		/* of all below; the counters are atomic, and are read without it, too */
	pthread_cond_t wake;		/* there is a job, or stop */
	bool stop;
	bool over, abandoned;		/* the thread has ended; it frees all of this when it ends */
	unsigned int first;
	unsigned int n;			/* counter: the job that is being done is one of them */
	uint64_t bytes;			/* counter */
	unsigned int max_jobs;
	struct job jobs[];
};

struct closer {
	struct worker *fds, *files;
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
static void count(struct worker *w, const struct job *job, int sign)
{
	__atomic_fetch_add(&w->n, (unsigned int)sign, __ATOMIC_RELAXED);
	__atomic_fetch_add(&w->bytes, (uint64_t)sign * job->size, __ATOMIC_RELAXED);
}

static void worker_free(struct worker *w)
{
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

static void *run(void *arg)
{
	struct worker *w = arg;
	bool abandoned;

	pthread_mutex_lock(&w->lock);
	while (w->n || !w->stop) {
		struct job job;

		if (!w->n) {
			pthread_cond_wait(&w->wake, &w->lock);
			continue;
		}
		job = w->jobs[w->first];
		pthread_mutex_unlock(&w->lock);
		do_job(&job);
		pthread_mutex_lock(&w->lock);
		w->first = (w->first + 1) % w->max_jobs;
		count(w, &job, -1);
	}
	w->over = true;
	abandoned = w->abandoned;
	pthread_mutex_unlock(&w->lock);
	if (abandoned)
		worker_free(w);
	return NULL;
}

/* Signals are for other threads. */
static bool start_thread(struct worker *w)
{
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	w->has_thread = !pthread_create(&w->thread, NULL, run, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return w->has_thread;
}

static void add(struct worker *w, const struct job *job)
{
	/* Without a thread, the caller has to wait for what it does. */
	if (!w->has_thread && !start_thread(w)) {
		do_job(job);
		return;
	}
	pthread_mutex_lock(&w->lock);
	assert(w->n < w->max_jobs);
	w->jobs[(w->first + w->n) % w->max_jobs] = *job;
	count(w, job, 1);
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
}

/* NULL: there is no memory. */
static struct worker *worker_create(unsigned int max_jobs)
{
	struct worker *w = calloc(1, sizeof(*w) + max_jobs * sizeof(w->jobs[0]));

	if (!w)
		return NULL;
	w->max_jobs = max_jobs;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->wake, NULL);
	return w;
}

/*
 * *@tries are left. False: the thread waits for something of the client's, or has much memory to free, and is left
 * alone with it.
 */
static bool join(struct worker *w, unsigned int *tries)
{
	bool over;

	for (; *tries; --*tries) {
		if (!pthread_tryjoin_np(w->thread, NULL))
			return true;
		usleep(END_TRY_US);
	}
	pthread_mutex_lock(&w->lock);
	over = w->over;
	w->abandoned = !over;
	if (!over)
		pthread_detach(w->thread);
	pthread_mutex_unlock(&w->lock);
	if (over)
		pthread_join(w->thread, NULL);
	return over;
}

/* It ends when it has done its jobs. */
static void worker_stop(struct worker *w)
{
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
}

static void worker_destroy(struct worker *w, unsigned int *tries)
{
	if (!w->has_thread || join(w, tries))
		worker_free(w);
}

struct closer *closer_create(unsigned int room)
{
	struct closer *c = malloc(sizeof(*c));

	if (!c)
		return NULL;
	c->fds = worker_create(FULL_FDS + room);
	c->files = worker_create(FULL_FILES + room);
	if (c->fds && c->files)
		return c;
	if (c->fds)
		worker_free(c->fds);
	if (c->files)
		worker_free(c->files);
	free(c);
	return NULL;
}

void closer_destroy(struct closer *c)
{
	unsigned int tries = END_TRIES;

	worker_stop(c->fds);
	worker_stop(c->files);
	worker_destroy(c->files, &tries);
	worker_destroy(c->fds, &tries);
	free(c);
}

void closer_fd(struct closer *c, int fd)
{
	add(c->fds, &(struct job){ .fd = fd });
}

void closer_connection(struct closer *c, int fd)
{
	shutdown(fd, SHUT_RDWR);
	add(c->fds, &(struct job){ .fd = fd, .is_connection = true });
}

void closer_unmap(struct closer *c, void *base, uint64_t size, uint64_t page)
{
	add(c->files, &(struct job){ .base = base, .size = size, .page = page });
}

bool closer_is_full(const struct closer *c)
{
	return __atomic_load_n(&c->fds->n, __ATOMIC_RELAXED) >= FULL_FDS ||
	       __atomic_load_n(&c->files->n, __ATOMIC_RELAXED) >= FULL_FILES;
}

uint64_t closer_bytes(const struct closer *c)
{
	return __atomic_load_n(&c->files->bytes, __ATOMIC_RELAXED);
}
