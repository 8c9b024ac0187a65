// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Compiled for many machines, and never run: test_arch.sh looks at the instructions. */
#include "cq_ring.h"
#include "host.h"
#include "sq.h"

#ifdef HAS_ATOMICS
static_assert(!!(SKUA_HOST_FEATURES >> SKUA_F_ATOMIC & 1) == HAS_ATOMICS, "atomics");
#endif

void consume(struct skua_cq_ring *ring);
bool publish(struct skua_sq *sq);
bool arm(struct skua_cq_ring *ring, uint32_t *ci);

void consume(struct skua_cq_ring *ring)
{
	skua_cq_consume(ring);
}

bool publish(struct skua_sq *sq)
{
	return skua_sq_publish(sq, true);
}

bool arm(struct skua_cq_ring *ring, uint32_t *ci)
{
	return skua_cq_arm(ring, false, true, ci);
}
