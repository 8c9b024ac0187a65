/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The one barrier that rdma-core has no name for. Publishing an index and then looking
 * whether the device wants to be told needs StoreLoad order; all of udma_*_barrier() order
 * less (on x86 they are barriers of the compiler only).
 */
#ifndef SKUA_BARRIER_H
#define SKUA_BARRIER_H

#include <util/udma_barrier.h>

/* All stores before it are visible to the device before any load behind it is done. */
static inline void skua_full_barrier(void)
{
#if defined(__x86_64__)
	/* Cheaper than mfence, and enough for memory that is not write combining. */
	asm volatile("lock; orl $0, (%%rsp)" ::: "memory", "cc");
#elif defined(__i386__)
	asm volatile("lock; orl $0, (%%esp)" ::: "memory", "cc");
#elif defined(__aarch64__)
	/* Outer shareable: the observer is a device. */
	asm volatile("dmb osh" ::: "memory");
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

#endif /* SKUA_BARRIER_H */
