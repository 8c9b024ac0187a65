/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A completion queue as a ring in memory: looking, consuming, removing a QP's CQEs, arming.
 * Knows nothing of verbs, so that tests run it against a device of their own.
 *
 * A CQE is there when its phase is that of the host's pass: 1 in the first pass over the
 * zeroed ring, then toggling. The device never reads CQEs back and never overwrites one at
 * or behind the published ci, so what lies between is the host's to rearrange.
 *
 * All but arming is done under the CQ's lock. Arming has a lock of its own, which it needs even
 * where one thread alone polls: another may take the CQ's events.
 */
#ifndef SKUA_CQ_RING_H
#define SKUA_CQ_RING_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>

#include <skua/cqe.h>
#include <skua/doorbell.h>

#include "barrier.h"

static_assert(SKUA_CQE_PHASE == 1, "a phase is a truth value");

struct skua_cq_ring {
	struct skua_cqe *cqes;
	struct skua_cq_dbr *dbr;
	uint32_t size;			/* CQEs, a power of two */
	uint32_t mask;			/* size - 1 */
	bool locked_is_full;		/* of skua_full_barrier() */
	uint32_t ci;			/* as published */

	uint32_t arm_seq;
	uint32_t armed_ci;		/* at the last arming */
	enum skua_cq_arm_type armed;	/* since the last event that the program took */
};

static inline void skua_cq_set_size(struct skua_cq_ring *ring, uint32_t size)
{
	ring->size = size;
	ring->mask = size - 1;
}

static inline struct skua_cqe *skua_cq_slot(const struct skua_cq_ring *ring, uint32_t index)
{
	return &ring->cqes[index & ring->mask];
}

/* Has the device written @cqe, which is at index @index? */
static inline bool skua_cq_has(const struct skua_cq_ring *ring, uint32_t index,
			       const struct skua_cqe *cqe)
{
	uint8_t flags = __atomic_load_n(&cqe->flags, __ATOMIC_RELAXED);

	return (flags & SKUA_CQE_PHASE) == !(index & ring->size);
}

/* Is there a next CQE? *@cqe stays the caller's until it is consumed. */
static inline bool skua_cq_peek(const struct skua_cq_ring *ring, const struct skua_cqe **cqe)
{
	*cqe = skua_cq_slot(ring, ring->ci);
	if (!skua_cq_has(ring, ring->ci, *cqe))
		return false;
	/* The rest of the CQE, and the payload, are read after the phase. */
	skua_load_barrier();
	return true;
}

/* All CQEs before @ci were read, and are the device's again. */
static inline void skua_cq_publish(struct skua_cq_ring *ring, uint32_t ci)
{
	/* Who arms reads it without the lock. */
	__atomic_store_n(&ring->ci, ci, __ATOMIC_RELAXED);
	/* They are read before they may be overwritten. */
	skua_load_barrier();
	skua_store_le32(&ring->dbr->ci, ci);
}

static inline void skua_cq_consume(struct skua_cq_ring *ring)
{
	skua_cq_publish(ring, ring->ci + 1);
}

/*
 * Remove the CQEs that @goes says, which is asked once of each, and of which the device writes no more.
 * Others move towards the newest, in order, so that the hole is on the consumed side and is closed by
 * advancing ci; a CQE that moves takes on the phase of its new slot.
 */
static inline void skua_cq_remove(struct skua_cq_ring *ring, bool (*goes)(const struct skua_cqe *cqe, const void *arg),
				  const void *arg)
{
	uint32_t end = ring->ci;
	uint32_t from, to;

	while (end - ring->ci < ring->size && skua_cq_has(ring, end, skua_cq_slot(ring, end)))
		end++;
	skua_load_barrier();

	for (from = to = end; from != ring->ci; ) {
		struct skua_cqe *cqe = skua_cq_slot(ring, --from);
		struct skua_cqe *slot;
		uint8_t phase;

		if (goes(cqe, arg))
			continue;
		slot = skua_cq_slot(ring, --to);
		if (slot == cqe)
			continue;
		phase = slot->flags & SKUA_CQE_PHASE;
		*slot = *cqe;
		slot->flags = (slot->flags & ~SKUA_CQE_PHASE) | phase;
	}
	/* What moved is in its place before the device may write there, in its next pass. */
	udma_to_device_barrier();
	skua_cq_publish(ring, to);
}

static inline uint8_t skua_cq_phase(const struct skua_cq_ring *ring, uint32_t index)
{
	return index & ring->size ? 0 : SKUA_CQE_PHASE;
}

/* @to, whose memory is zero, is to take the place of @ring: none of its CQEs is there (CQ-6). */
static inline void skua_cq_prepare(const struct skua_cq_ring *ring, struct skua_cq_ring *to)
{
	uint32_t i;

	for (i = ring->ci; i != ring->ci + to->size; i++)
		skua_cq_slot(to, i)->flags = skua_cq_phase(to, i) ^ SKUA_CQE_PHASE;
}

/* From @index on the device writes to @to: take along what was written before and is not consumed. */
static inline void skua_cq_move(struct skua_cq_ring *ring, const struct skua_cq_ring *to, uint32_t index)
{
	uint32_t i;

	skua_load_barrier();
	for (i = ring->ci; i != index; i++) {
		struct skua_cqe *cqe = skua_cq_slot(to, i);

		*cqe = *skua_cq_slot(ring, i);
		cqe->flags = (cqe->flags & ~SKUA_CQE_PHASE) | skua_cq_phase(to, i);
	}
	ring->cqes = to->cqes;
	skua_cq_set_size(ring, to->size);
}

/*
 * Ask for an event. A request for the next CQE stays one until the event is taken, whatever
 * is asked for meanwhile. Returns whether the caller is to ring SKUA_DB_CQ_ARM with *@ci.
 */
static inline bool skua_cq_arm(struct skua_cq_ring *ring, bool solicited, bool event_idx,
			       uint32_t *ci)
{
	enum skua_cq_arm_type type = solicited ? SKUA_CQ_ARM_SOLICITED : SKUA_CQ_ARM_NEXT;

	if (ring->armed > type)
		type = ring->armed;
	ring->armed = type;
	ring->arm_seq = (ring->arm_seq + 1) & SKUA_CQ_ARM_SEQ_MASK;
	*ci = __atomic_load_n(&ring->ci, __ATOMIC_RELAXED);
	ring->armed_ci = *ci;
	skua_store_le64(&ring->dbr->arm, SKUA_CQ_ARM(type, ring->arm_seq, *ci));
	if (!event_idx)
		return true;
	/* Pairs with the device's, between writing a CQE and reading arm. */
	skua_full_barrier(ring->locked_is_full);
	return skua_cq_has(ring, *ci, skua_cq_slot(ring, *ci));
}

/*
 * The program took an event. It may be that of an earlier arming: the program polled the CQE and armed again
 * while the event waited in its channel. The last arming is used up if there has been a CQE since (ARM-8).
 */
static inline void skua_cq_disarm(struct skua_cq_ring *ring)
{
	bool there = skua_cq_has(ring, ring->armed_ci, skua_cq_slot(ring, ring->armed_ci));

	/* Who polls may have consumed it, and the device have written over it, before the slot was read. */
	skua_load_barrier();
	if (there || __atomic_load_n(&ring->ci, __ATOMIC_RELAXED) != ring->armed_ci)
		ring->armed = SKUA_CQ_ARM_NONE;
}

#endif /* SKUA_CQ_RING_H */
