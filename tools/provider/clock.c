// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The device's clock in terms of the wall clock, by what the kernel writes into the information page. */
#include "skua.h"

/* So many ticks in nanoseconds: what is above the shift and what is below it, so that no product overflows. */
static uint64_t skua_ticks_to_ns(uint64_t ticks, uint32_t mult, uint32_t shift)
{
	uint64_t low = ticks & (((uint64_t)1 << shift) - 1);

	return (ticks >> shift) * mult + (low * mult >> shift);
}

uint64_t skua_wall_clock(const struct skua_info_page *info, uint64_t cycles)
{
	uint64_t then, ns;
	uint32_t sequence, mult, shift;

	do {
		sequence = __atomic_load_n(&info->sequence, __ATOMIC_ACQUIRE);
		then = __atomic_load_n(&info->cycles, __ATOMIC_RELAXED);
		ns = __atomic_load_n(&info->ns, __ATOMIC_RELAXED);
		mult = __atomic_load_n(&info->mult, __ATOMIC_RELAXED);
		shift = __atomic_load_n(&info->shift, __ATOMIC_RELAXED);
		/* They are read before the sequence is read again. */
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while (sequence & 1 || __atomic_load_n(&info->sequence, __ATOMIC_RELAXED) != sequence);
	if (cycles >= then)
		return ns + skua_ticks_to_ns(cycles - then, mult, shift);
	return ns - skua_ticks_to_ns(then - cycles, mult, shift);
}
