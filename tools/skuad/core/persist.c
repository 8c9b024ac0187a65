// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Theory of operation
 *
 * Guest memory is mapped from files, so msync() makes it persistent, as far as the file's medium is. It blocks, and
 * engines must not. So jobs go through a queue to a thread, and come back in a list, of which the engine is told by a
 * kick. The thread knows addresses only. It does not touch the memory, so a guest may unmap it at any time: what is
 * not mapped any more is nobody's to keep, and msync() passes over it.
 *
 * The first job starts the thread. skuad gives up its rights when its devices are there, and a thread that started
 * before that would keep them.
 *
 * A QP has one job at a time. If it ends before its job, the job is taken out of the queue; the one that the thread is
 * at, it frees itself. So there are no more jobs than QPs, and one.
 */
#include "core/persist.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/engine_priv.h"

#define PAGE	4096u

STAILQ_HEAD(persist_jobs, persist_job);

struct persist {
	struct engine *engine;
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock;		/* of all below, and of state and qp of jobs that were started */
	pthread_cond_t wake;		/* there is a job, or stop */
	bool stop;
	struct persist_jobs queued, over;
	unsigned int num_over;		/* atomic: read without the lock, too */
};

struct persist_job *persist_new(struct skua_qp *qp)
{
	struct persist_job *job = calloc(1, sizeof(*job));

	if (job)
		job->qp = qp;
	return job;
}

void persist_add(struct persist_job *job, const void *at, uint64_t length)
{
	struct persist_run new = {
		.first = (uintptr_t)at & ~(uintptr_t)(PAGE - 1),
		.end = ((uintptr_t)at + length + PAGE - 1) & ~(uintptr_t)(PAGE - 1),
	};
	struct persist_run *last = &job->run[job->n ? job->n - 1 : 0];

	if (job->n < PERSIST_RUNS && !(job->n && new.first <= last->end && new.end >= last->first)) {
		job->run[job->n++] = new;
		return;
	}
	if (last->first > new.first)
		last->first = new.first;
	if (last->end < new.end)
		last->end = new.end;
}

/* 0, or an errno. */
static int make_persistent(const struct persist_job *job)
{
	for (unsigned int i = 0; i < job->n; i++) {
		const struct persist_run *run = &job->run[i];

		/* ENOMEM: some of it is not mapped. The rest was written. */
		if (msync((void *)run->first, run->end - run->first, MS_SYNC) && errno != ENOMEM)
			return errno;
	}
	return 0;
}

/* Once the lock is free, the job may be gone. */
static void hand_back(struct persist *p, struct persist_job *job)
{
	if (!job->qp) {
		free(job);
		return;
	}
	job->state = PERSIST_OVER;
	STAILQ_INSERT_TAIL(&p->over, job, entry);
	__atomic_store_n(&p->num_over, p->num_over + 1, __ATOMIC_RELEASE);
}

static void *run(void *arg)
{
	struct persist *p = arg;
	struct persist_job *job;
	int error;

	pthread_mutex_lock(&p->lock);
	while (!p->stop) {
		job = STAILQ_FIRST(&p->queued);
		if (!job) {
			pthread_cond_wait(&p->wake, &p->lock);
			continue;
		}
		STAILQ_REMOVE_HEAD(&p->queued, entry);
		job->state = PERSIST_RUNNING;
		pthread_mutex_unlock(&p->lock);
		error = make_persistent(job);
		pthread_mutex_lock(&p->lock);
		job->error = error;
		hand_back(p, job);
		engine_kick(p->engine);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* Signals are for other threads. */
static int start_thread(struct persist *p)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&p->thread, NULL, run, p);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return err;
}

struct persist *persist_create(struct engine *engine)
{
	struct persist *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->engine = engine;
	STAILQ_INIT(&p->queued);
	STAILQ_INIT(&p->over);
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->wake, NULL);
	return p;
}

void persist_destroy(struct persist *p)
{
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
	if (p->has_thread)
		pthread_join(p->thread, NULL);
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

void persist_start(struct persist *p, struct persist_job *job)
{
	job->started = true;
	job->error = p->has_thread ? 0 : start_thread(p);
	pthread_mutex_lock(&p->lock);
	if (job->error) {
		hand_back(p, job);
		engine_kick(p->engine);
	} else {
		p->has_thread = true;
		job->state = PERSIST_QUEUED;
		STAILQ_INSERT_TAIL(&p->queued, job, entry);
		pthread_cond_signal(&p->wake);
	}
	pthread_mutex_unlock(&p->lock);
}

void persist_drop(struct persist *p, struct persist_job *job)
{
	pthread_mutex_lock(&p->lock);
	job->qp = NULL;
	if (job->state == PERSIST_QUEUED)
		STAILQ_REMOVE(&p->queued, job, persist_job, entry);
	if (job->state == PERSIST_OVER) {
		STAILQ_REMOVE(&p->over, job, persist_job, entry);
		__atomic_store_n(&p->num_over, p->num_over - 1, __ATOMIC_RELEASE);
	}
	if (job->state != PERSIST_RUNNING)
		free(job);
	pthread_mutex_unlock(&p->lock);
}

struct persist_job *persist_next_done(struct persist *p)
{
	struct persist_job *job;

	if (!__atomic_load_n(&p->num_over, __ATOMIC_ACQUIRE))
		return NULL;
	pthread_mutex_lock(&p->lock);
	job = STAILQ_FIRST(&p->over);
	STAILQ_REMOVE_HEAD(&p->over, entry);
	__atomic_store_n(&p->num_over, p->num_over - 1, __ATOMIC_RELEASE);
	job->state = PERSIST_IDLE;
	pthread_mutex_unlock(&p->lock);
	job->done = true;
	return job;
}
