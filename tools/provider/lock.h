/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The lock of a queue: one place to say that a queue needs none. A thread domain or a
 * single-threaded CQ promises that one thread at a time uses it.
 *
 * It spins, as that of pthreads, but in line: a post takes one, and so does its poll.
 */
#ifndef SKUA_LOCK_H
#define SKUA_LOCK_H

#include <stdbool.h>

#include <util/compiler.h>

struct skua_lock {
	bool held;
	bool needed;
};

static inline void skua_lock_init(struct skua_lock *lock, bool needed)
{
	*lock = (struct skua_lock) { .needed = needed };
}

static __attribute__((noinline, unused)) void skua_lock_contended(struct skua_lock *lock)
{
	do
		/* Loads do not take the cache line from its holder. */
		while (__atomic_load_n(&lock->held, __ATOMIC_RELAXED)) {
#ifdef __x86_64__
			__builtin_ia32_pause();
#endif
		}
	while (__atomic_exchange_n(&lock->held, true, __ATOMIC_ACQUIRE));
}

static inline void skua_lock(struct skua_lock *lock)
{
	if (likely(lock->needed) && unlikely(__atomic_exchange_n(&lock->held, true, __ATOMIC_ACQUIRE)))
		skua_lock_contended(lock);
}

static inline void skua_unlock(struct skua_lock *lock)
{
	if (likely(lock->needed))
		__atomic_store_n(&lock->held, false, __ATOMIC_RELEASE);
}

#endif /* SKUA_LOCK_H */
