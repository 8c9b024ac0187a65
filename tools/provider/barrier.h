/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Order and access of words that host and device share.
 *
 * rdma-core has no name for skua_full_barrier(): publishing an index and then looking whether
 * the device wants to be told needs StoreLoad order, and all of udma_*_barrier() order less
 * (on x86 they do not even order the processor's own stores and loads). Nor has it one for
 * skua_load_barrier(): udma_to_device_barrier() orders stores alone, on arm64 for one.
 */
#ifndef SKUA_BARRIER_H
#define SKUA_BARRIER_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __x86_64__
#include <cpuid.h>
#endif

#include <linux/types.h>
#include <util/compiler.h>
#include <util/udma_barrier.h>

#include "host.h"

/* Is this the signature of KVM, as CPUID has it? */
static inline bool skua_is_kvm(uint32_t ebx, uint32_t ecx, uint32_t edx)
{
	return ebx == 0x4b4d564b && ecx == 0x564b4d56 && edx == 0x4d;	/* "KVMKVMKVM" */
}

/*
 * Is a locked instruction, which costs a tenth of an mfence, a full barrier to the device as well? QEMU
 * makes a plain one of it where it emulates a guest of one processor, though the device is another
 * process. So it is only where KVM says that it runs the machine: then its processors are real.
 */
static inline bool skua_locked_is_full(void)
{
#if defined(__x86_64__)
	uint32_t eax, ebx, ecx, edx;

	__cpuid(1, eax, ebx, ecx, edx);
	if (!(ecx >> 31))
		return false;		/* no hypervisor that says who it is */
	__cpuid(0x40000000, eax, ebx, ecx, edx);
	return skua_is_kvm(ebx, ecx, edx);
#else
	return false;
#endif
}

/* All stores before it are visible to the device before any load behind it is done. */
static inline void skua_full_barrier(bool locked_is_full)
{
#if defined(__x86_64__)
	if (likely(locked_is_full))
		asm volatile("lock; orl $0, -64(%%rsp)" ::: "memory", "cc");
	else
		asm volatile("mfence" ::: "memory");
#elif defined(__aarch64__)
	/* Outer shareable: the observer is a device. */
	asm volatile("dmb osh" ::: "memory");
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/* All loads before it are done before any load behind it, and before the device sees any store behind it. */
static inline void skua_load_barrier(void)
{
#if defined(__x86_64__)
	/* The processor keeps that order. The lfence of udma_from_device_barrier() is for other memory. */
	asm volatile("" ::: "memory");
#elif defined(__aarch64__)
	asm volatile("dmb oshld" ::: "memory");
#else
	udma_from_device_barrier();
	__atomic_thread_fence(__ATOMIC_ACQ_REL);
#endif
}

/* A word that the other side may read or write at any time, in one piece. No order. */
static inline uint32_t skua_load_le32(const __le32 *word)
{
	return le32toh((__force __le32)__atomic_load_n((const __force uint32_t *)word,
						       __ATOMIC_RELAXED));
}

static inline void skua_store_le32(__le32 *word, uint32_t value)
{
	__atomic_store_n((__force uint32_t *)word, (__force uint32_t)htole32(value),
			 __ATOMIC_RELAXED);
}

static inline void skua_store_le64(__le64 *word, uint64_t value)
{
	__atomic_store_n((__force uint64_t *)word, (__force uint64_t)htole64(value),
			 __ATOMIC_RELAXED);
}

#endif /* SKUA_BARRIER_H */
