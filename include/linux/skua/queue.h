/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Skua: the kernel's own send, receive and completion queues, as rings in memory: room, building
 * of WQEs, publishing, polling and arming. The netdev and the kernel's verbs share them.
 *
 * Indices run free in 32 bits. An SQ counts 64-byte blocks; a WQE may wrap at the ring's end,
 * which never cuts a 16-byte segment. Locking is the caller's: one writer for each queue at a
 * time. An SQ's ci may be advanced by another context than the one that posts.
 */
#ifndef LINUX_SKUA_QUEUE_H
#define LINUX_SKUA_QUEUE_H

#include <asm/barrier.h>
#include <linux/io.h>
#include <linux/string.h>

#include <linux/skua/device.h>
#include <skua/cqe.h>
#include <skua/doorbell.h>
#include <skua/wqe.h>

#ifndef CONFIG_64BIT
#error "a doorbell is one 64-bit store"
#endif

static inline void skua_db_ring(struct skua_dev *dev, u32 offset, u32 number, u32 index)
{
	/* writeq() orders all earlier stores to memory before the doorbell. */
	writeq(SKUA_DB(number, index), dev->db + offset);
}

/**
 * struct skua_sq - a send queue
 * @buf: the ring
 * @dbr: its record
 * @nblocks: of each WQE, by the slot of its first block; @blocks of them, the caller's
 * @blocks: of the ring, a power of two
 * @pi: index behind the last WQE built
 * @published: what the record says
 * @ci: blocks before it are free
 */
struct skua_sq {
	void *buf;
	struct skua_dbr *dbr;
	u8 *nblocks;
	u32 blocks;
	u32 pi;
	u32 published;
	u32 ci;
};

/**
 * struct skua_wqe_builder - a WQE being built at the SQ's pi
 * @sq: its queue
 * @ctrl: its control segment
 * @size: bytes so far
 */
struct skua_wqe_builder {
	struct skua_sq *sq;
	struct skua_wqe_ctrl *ctrl;
	u32 size;
};

/* Blocks that are free. */
static inline u32 skua_sq_room(const struct skua_sq *sq)
{
	/* Acquire: pairs with skua_sq_retire(); a free block's bookkeeping was read before. */
	return sq->blocks - (sq->pi - smp_load_acquire(&sq->ci));
}

/* Index behind the WQE that begins at @block. */
static inline u32 skua_sq_next(const struct skua_sq *sq, u32 block)
{
	return block + sq->nblocks[block & (sq->blocks - 1)];
}

/*
 * Does @cqe retire WQEs behind @ci that were posted, whole ones, of which the last is the one
 * whose cookie it has (RST-11)?
 */
static inline bool skua_sq_expects(const struct skua_sq *sq, u32 ci, const struct skua_cqe *cqe)
{
	u32 end = le32_to_cpu(cqe->sq_ci), block, next = ci;

	if (end - ci - 1 >= READ_ONCE(sq->pi) - ci)
		return false;
	do {
		block = next;
		next = skua_sq_next(sq, block);
	} while (next != block && next - ci < end - ci);
	return next == end && le32_to_cpu(cqe->cookie) == (block & (sq->blocks - 1));
}

/* Blocks before @ci are free again. */
static inline void skua_sq_retire(struct skua_sq *sq, u32 ci)
{
	/* Release: bookkeeping of these blocks was read before they are used again. */
	smp_store_release(&sq->ci, ci);
}

/* Slot of the block at pi: index of the bookkeeping of a WQE that begins there, and cookie. */
static inline u32 skua_sq_slot(const struct skua_sq *sq)
{
	return sq->pi & (sq->blocks - 1);
}

/* The next segment, whatever it will be. */
static inline void *skua_wqe_segment(struct skua_wqe_builder *wqe)
{
	size_t ring = (size_t)wqe->sq->blocks * SKUA_WQE_BLOCK;
	size_t at = ((size_t)wqe->sq->pi * SKUA_WQE_BLOCK + wqe->size) & (ring - 1);

	wqe->size += SKUA_WQE_SEG;
	return wqe->sq->buf + at;
}

/* The caller saw to the room for the whole WQE. */
static inline void skua_wqe_begin(struct skua_sq *sq, struct skua_wqe_builder *wqe, u8 opcode,
				  u8 flags)
{
	wqe->sq = sq;
	wqe->size = 0;
	wqe->ctrl = skua_wqe_segment(wqe);
	memset(wqe->ctrl, 0, sizeof(*wqe->ctrl));
	wqe->ctrl->opcode = opcode;
	wqe->ctrl->flags = flags;
	wqe->ctrl->cookie = cpu_to_le32(skua_sq_slot(sq));
}

static inline void skua_sge_set(struct skua_sge *sge, u64 addr, u32 length, u32 lkey)
{
	sge->addr = cpu_to_le64(addr);
	sge->length = cpu_to_le32(length);
	sge->lkey = cpu_to_le32(lkey);
}

static inline void skua_wqe_add_sge(struct skua_wqe_builder *wqe, u64 addr, u32 length, u32 lkey)
{
	skua_sge_set(skua_wqe_segment(wqe), addr, length, lkey);
	wqe->ctrl->num_sge++;
}

static inline void skua_wqe_end(struct skua_wqe_builder *wqe)
{
	struct skua_sq *sq = wqe->sq;

	wqe->ctrl->nblocks = DIV_ROUND_UP(wqe->size, SKUA_WQE_BLOCK);
	sq->nblocks[skua_sq_slot(sq)] = wqe->ctrl->nblocks;
	sq->pi += wqe->ctrl->nblocks;
}

/* Publish @pi in a record, @entries being written. */
static inline void skua_dbr_publish(struct skua_dbr *dbr, u32 pi)
{
	/* The device sees the entries before it sees the index behind them. */
	dma_wmb();
	WRITE_ONCE(dbr->pi, cpu_to_le32(pi));
}

/* The event-index rule (DBR-3): after publishing @new, is the doorbell to be rung? */
static inline bool skua_dbr_due(struct skua_dev *dev, struct skua_dbr *dbr, u32 new, u32 old)
{
	if (!skua_has(dev, SKUA_F_EVENT_IDX))
		return true;
	/*
	 * StoreLoad: pi is published before event is read. Pairs with the device's barrier
	 * between storing event and its last look at pi: one of the two sees the other.
	 */
	dma_mb();
	return SKUA_EVENT_DUE(new, le32_to_cpu(READ_ONCE(dbr->event)), old);
}

/* Publish all WQEs built so far, and tell the device if it wants to know. */
static inline void skua_sq_publish(struct skua_dev *dev, struct skua_sq *sq, u32 qpn)
{
	u32 old = sq->published;

	if (sq->pi == old)
		return;
	skua_dbr_publish(sq->dbr, sq->pi);
	sq->published = sq->pi;
	if (skua_dbr_due(dev, sq->dbr, sq->pi, old))
		skua_db_ring(dev, SKUA_DB_SQ, qpn, sq->pi);
}

/* After the device reset its side, before it looks at the record again (DBR-7). */
static inline void skua_sq_reset(struct skua_sq *sq)
{
	sq->pi = 0;
	sq->published = 0;
	sq->ci = 0;
	if (sq->dbr)
		WRITE_ONCE(sq->dbr->pi, 0);
}

/**
 * struct skua_rq - a receive queue
 * @buf: the ring
 * @dbr: its record; the device never asks to be rung
 * @size: entries, a power of two
 * @log_stride: bytes of an entry, log2
 * @pi: index behind the last entry written
 * @ci: index of the oldest entry that is not completed
 */
struct skua_rq {
	void *buf;
	struct skua_dbr *dbr;
	u32 size;
	u8 log_stride;
	u32 pi;
	u32 ci;
};

static inline u32 skua_rq_slot(const struct skua_rq *rq)
{
	return rq->pi & (rq->size - 1);
}

/* The entry at pi, empty. Its SGEs follow it. */
static inline struct skua_rqe *skua_rq_entry(struct skua_rq *rq)
{
	struct skua_rqe *rqe = rq->buf + ((size_t)skua_rq_slot(rq) << rq->log_stride);

	memset(rqe, 0, sizeof(*rqe));
	rqe->cookie = cpu_to_le32(skua_rq_slot(rq));
	return rqe;
}

static inline void skua_rqe_add_sge(struct skua_rqe *rqe, u64 addr, u32 length, u32 lkey)
{
	struct skua_sge *sges = (struct skua_sge *)(rqe + 1);

	skua_sge_set(&sges[rqe->num_sge++], addr, length, lkey);
}

/* Is @cqe that of the oldest entry (CQE-2, RST-11)? */
static inline bool skua_rq_expects(const struct skua_rq *rq, const struct skua_cqe *cqe)
{
	return rq->ci != READ_ONCE(rq->pi) &&
	       le32_to_cpu(cqe->cookie) == (rq->ci & (rq->size - 1));
}

static inline void skua_rq_reset(struct skua_rq *rq)
{
	rq->pi = 0;
	rq->ci = 0;
	if (rq->dbr)
		WRITE_ONCE(rq->dbr->pi, 0);
}

/**
 * struct skua_cq - a completion queue
 * @buf: the ring
 * @dbr: its record
 * @size: CQEs, a power of two
 * @ci: index of the next CQE
 * @arm_seq: sequence number of the last arming
 */
struct skua_cq {
	struct skua_cqe *buf;
	struct skua_cq_dbr *dbr;
	u32 size;
	u32 ci;
	u32 arm_seq;
};

/* The CQE at @index if the device has written it, else NULL. Its fields are not to be read yet. */
static inline struct skua_cqe *skua_cq_at(const struct skua_cq *cq, u32 index)
{
	struct skua_cqe *cqe = &cq->buf[index & (cq->size - 1)];
	u8 phase = index & cq->size ? 0 : SKUA_CQE_PHASE;

	return (READ_ONCE(cqe->flags) & SKUA_CQE_PHASE) == phase ? cqe : NULL;
}

/* The next CQE, or NULL. It is the caller's until skua_cq_publish(). */
static inline struct skua_cqe *skua_cq_peek(const struct skua_cq *cq)
{
	struct skua_cqe *cqe = skua_cq_at(cq, cq->ci);

	/* The rest of the CQE, and the payload it tells of, are read after the phase. */
	if (cqe)
		dma_rmb();
	return cqe;
}

/* All CQEs before ci may be overwritten. */
static inline void skua_cq_publish(struct skua_cq *cq)
{
	/* The CQEs are read before they are given back: LoadStore, which no weaker one orders. */
	dma_mb();
	WRITE_ONCE(cq->dbr->ci, cpu_to_le32(cq->ci));
}

/*
 * Copy the next CQE and give its place back. False if there is none.
 *
 * The place is free before whatever the CQE completes is taken off its queue: then others may post
 * at once, and a CQ that has a place for each outstanding work request never overflows.
 */
static inline bool skua_cq_take(struct skua_cq *cq, struct skua_cqe *cqe)
{
	const struct skua_cqe *next = skua_cq_peek(cq);

	if (!next)
		return false;
	*cqe = *next;
	cq->ci++;
	skua_cq_publish(cq);
	return true;
}

/* The index behind the newest CQE. Those before it may be read. */
static inline u32 skua_cq_end(const struct skua_cq *cq)
{
	u32 end = cq->ci;

	while (end - cq->ci < cq->size && skua_cq_at(cq, end))
		end++;
	/* All of a CQE is read after its phase. */
	dma_rmb();
	return end;
}

/*
 * Take out the CQEs before @end that @match, which is asked once for each. Others move towards the
 * newest, in order, so that the hole is at the oldest end and closed by advancing ci. A CQE that
 * moves takes on the phase of its new slot.
 */
static inline void skua_cq_remove(struct skua_cq *cq, u32 end,
				  bool (*match)(const struct skua_cqe *cqe, void *arg), void *arg)
{
	struct skua_cqe *from, *to;
	u32 keep = end;
	u32 i;

	for (i = end; i != cq->ci; ) {
		from = &cq->buf[--i & (cq->size - 1)];
		if (match(from, arg))
			continue;
		to = &cq->buf[--keep & (cq->size - 1)];
		if (to != from) {
			u8 phase = to->flags & SKUA_CQE_PHASE;

			*to = *from;
			to->flags = (to->flags & ~SKUA_CQE_PHASE) | phase;
		}
	}
	if (keep == cq->ci)
		return;
	cq->ci = keep;
	skua_cq_publish(cq);
}

/* Arm for the next event (ARM-1, ARM-2). True if a CQE is there already. */
static inline bool skua_cq_arm(struct skua_dev *dev, struct skua_cq *cq, u32 cqn,
			       enum skua_cq_arm_type type)
{
	cq->arm_seq = (cq->arm_seq + 1) & SKUA_CQ_ARM_SEQ_MASK;
	WRITE_ONCE(cq->dbr->arm, cpu_to_le64(SKUA_CQ_ARM(type, cq->arm_seq, cq->ci)));
	if (!skua_has(dev, SKUA_F_EVENT_IDX))
		skua_db_ring(dev, SKUA_DB_CQ_ARM, cqn, cq->ci);
	/*
	 * StoreLoad: the arm word is stored before the CQE is looked at. Pairs with the device's
	 * barrier between writing a CQE and reading the arm word.
	 */
	dma_mb();
	return skua_cq_at(cq, cq->ci);
}

#endif /* LINUX_SKUA_QUEUE_H */
