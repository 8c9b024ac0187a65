/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Host memory is made persistent by a thread of its own, because that takes as long as the medium likes.
 */
#ifndef SKUAD_CORE_PERSIST_H
#define SKUAD_CORE_PERSIST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct engine;
struct persist;
struct skua_qp;

#define PERSIST_RUNS	64

/* Memory of this process, in whole pages. */
struct persist_run {
	uintptr_t first, end;
};

/* Made by a QP, which waits for it. */
struct persist_job {
	STAILQ_ENTRY(persist_job) entry;
	struct skua_qp *qp;		/* NULL: it does not wait any more */
	enum { PERSIST_IDLE, PERSIST_QUEUED, PERSIST_RUNNING, PERSIST_OVER } state;	/* for the thread */
	bool started, done;		/* for the QP */
	int error;			/* when it is done: 0, or an errno */
	unsigned int n;
	struct persist_run run[PERSIST_RUNS];
};

/* For QPs of a device on @engine; the first job starts the thread. NULL: there is no memory. */
struct persist *persist_create(struct engine *engine);
/* No QP waits. It returns when the medium has done what it is doing. */
void persist_destroy(struct persist *p);

/* The rest is for the engine's thread. */

/* NULL: there is no memory. */
struct persist_job *persist_new(struct skua_qp *qp);
/* Memory for it. If there are many places, what is between them may be made persistent, too. */
void persist_add(struct persist_job *job, const void *at, uint64_t length);
/* If there is no thread, and none can be started, the job is done with that error. */
void persist_start(struct persist *p, struct persist_job *job);
/* The QP does not wait for it, and the job is gone. It may be started, or done. */
void persist_drop(struct persist *p, struct persist_job *job);
/* A job that is done, whose QP has to look at it; NULL: none is. */
struct persist_job *persist_next_done(struct persist *p);

#endif /* SKUAD_CORE_PERSIST_H */
