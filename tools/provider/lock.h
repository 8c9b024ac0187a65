/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The lock of a queue: one place to say that a queue needs none. A thread domain or a
 * single-threaded CQ promises that one thread at a time uses it.
 */
#ifndef SKUA_LOCK_H
#define SKUA_LOCK_H

#include <pthread.h>
#include <stdbool.h>

struct skua_lock {
	pthread_spinlock_t spin;
	bool needed;
};

static inline int skua_lock_init(struct skua_lock *lock, bool needed)
{
	lock->needed = needed;
	return pthread_spin_init(&lock->spin, PTHREAD_PROCESS_PRIVATE);
}

static inline void skua_lock_destroy(struct skua_lock *lock)
{
	pthread_spin_destroy(&lock->spin);
}

static inline void skua_lock(struct skua_lock *lock)
{
	if (lock->needed)
		pthread_spin_lock(&lock->spin);
}

static inline void skua_unlock(struct skua_lock *lock)
{
	if (lock->needed)
		pthread_spin_unlock(&lock->spin);
}

#endif /* SKUA_LOCK_H */
