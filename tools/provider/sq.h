/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A send queue as a ring in memory: room, building of WQEs, publishing. Knows nothing of
 * verbs, so that tests run it against a device of their own.
 *
 * pi counts blocks of 64 bytes and runs free. A WQE begins at pi; it grows segment by
 * segment and may wrap: a segment has 16 bytes and the ring is a multiple of 64, so the
 * ring's end never cuts one. Inline data is a string of bytes that the end may cut.
 *
 * Room is counted in WRs: a program sizes its CQ by the max_send_wr that it was told, so the SQ
 * takes no more, however small they are. A WR within the QP's limits takes at most
 * blocks / max_wr blocks, so where there is room for a WR there is room for its WQE.
 *
 * Writers of pi and of the ring hold the SQ's lock. wr_ci is written by who polls the CQ.
 */
#ifndef SKUA_SQ_H
#define SKUA_SQ_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <skua/doorbell.h>
#include <skua/wqe.h>

#include "barrier.h"

/* Of the WQE that begins at a block. */
struct skua_sq_slot {
	uint64_t wr_id;
	uint32_t wr_next;		/* number of the WR behind it */
};

struct skua_sq {
	void *buf;
	struct skua_dbr *dbr;
	struct skua_sq_slot *slots;	/* cookies index them */
	uint32_t blocks;		/* of the ring, a power of two; 0: there is none */
	uint32_t max_wr;		/* outstanding at a time */
	uint32_t pi;			/* behind the last WQE built */
	uint32_t published;		/* what the record says */
	uint32_t wr_pi;			/* WRs built */
	uint32_t wr_published;
	uint32_t wr_ci;			/* WRs done */
};

/* A WQE that is being built. */
struct skua_wqe {
	struct skua_wqe_ctrl *ctrl;
	uint32_t start;			/* index of its first block */
	uint32_t size;			/* bytes so far */
};

static inline uint32_t skua_wqe_blocks(uint32_t bytes)
{
	return (bytes + SKUA_WQE_BLOCK - 1) / SKUA_WQE_BLOCK;
}

/* Is there no room for a WR? */
static inline bool skua_sq_full(const struct skua_sq *sq)
{
	/* Acquire: the slot of a WQE is read before the block is free. */
	return sq->wr_pi - __atomic_load_n(&sq->wr_ci, __ATOMIC_ACQUIRE) >= sq->max_wr;
}

/*
 * All WRs up to that of @slot are done, which a CQE says that was polled and whose place in the CQ is
 * the device's again: what is posted then may complete into that.
 */
static inline void skua_sq_retire(struct skua_sq *sq, const struct skua_sq_slot *slot)
{
	__atomic_store_n(&sq->wr_ci, slot->wr_next, __ATOMIC_RELEASE);
}

/* Bytes from the beginning of the ring to byte @offset of the WQE. */
static inline size_t skua_wqe_place(const struct skua_sq *sq, const struct skua_wqe *wqe,
				    uint32_t offset)
{
	size_t ring = (size_t)sq->blocks * SKUA_WQE_BLOCK;

	return ((size_t)wqe->start * SKUA_WQE_BLOCK + offset) & (ring - 1);
}

static inline void *skua_wqe_next_seg(const struct skua_sq *sq, struct skua_wqe *wqe)
{
	void *seg = (char *)sq->buf + skua_wqe_place(sq, wqe, wqe->size);

	wqe->size += SKUA_WQE_SEG;
	return seg;
}

/* Begin a WQE at pi. The SQ is not full, and what is added is within the QP's limits. */
static inline void skua_wqe_begin(struct skua_sq *sq, struct skua_wqe *wqe, uint64_t wr_id,
				  uint8_t opcode, uint8_t flags)
{
	uint32_t cookie = sq->pi & (sq->blocks - 1);
	struct skua_wqe_ctrl *ctrl;

	wqe->start = sq->pi;
	wqe->size = 0;
	ctrl = skua_wqe_next_seg(sq, wqe);
	ctrl->opcode = opcode;
	ctrl->flags = flags;
	ctrl->cookie = htole32(cookie);
	ctrl->inv_key = 0;
	wqe->ctrl = ctrl;
	sq->slots[cookie] = (struct skua_sq_slot) { .wr_id = wr_id, .wr_next = ++sq->wr_pi };
}

static inline void skua_wqe_add_rdma(struct skua_sq *sq, struct skua_wqe *wqe, uint64_t raddr,
				     uint32_t rkey)
{
	struct skua_wqe_rdma *rdma = skua_wqe_next_seg(sq, wqe);

	rdma->raddr = htole64(raddr);
	rdma->rkey = htole32(rkey);
	rdma->rsvd = 0;
}

static inline void skua_wqe_add_atomic(struct skua_sq *sq, struct skua_wqe *wqe, uint64_t raddr,
				       uint32_t rkey, uint64_t swap_add, uint64_t compare)
{
	struct skua_wqe_atomic *atomic = skua_wqe_next_seg(sq, wqe);

	/* Two segments, always in one block. */
	skua_wqe_next_seg(sq, wqe);
	atomic->raddr = htole64(raddr);
	atomic->rkey = htole32(rkey);
	atomic->rsvd = 0;
	atomic->swap_add = htole64(swap_add);
	atomic->compare = htole64(compare);
}

/* Three segments, always in one block with the control segment. */
static inline struct skua_wqe_ud *skua_wqe_add_ud(struct skua_sq *sq, struct skua_wqe *wqe)
{
	struct skua_wqe_ud *ud = skua_wqe_next_seg(sq, wqe);

	wqe->size += sizeof(*ud) - SKUA_WQE_SEG;
	return ud;
}

static inline void skua_ud_set(struct skua_wqe_ud *ud, const struct skua_av *av, uint32_t dest_qpn,
			       uint32_t qkey)
{
	ud->av = *av;
	ud->dest_qpn = htole32(dest_qpn);
	/* One with its top bit means the QP's own, in verbs and in WQEs. */
	ud->qkey = htole32(qkey);
	ud->rsvd = 0;
}

static inline void skua_sge_set(struct skua_sge *sge, uint64_t addr, uint32_t length,
				uint32_t lkey)
{
	sge->addr = htole64(addr);
	sge->length = htole32(length);
	sge->lkey = htole32(lkey);
}

static inline void skua_wqe_add_sge(struct skua_sq *sq, struct skua_wqe *wqe, uint64_t addr,
				    uint32_t length, uint32_t lkey)
{
	skua_sge_set(skua_wqe_next_seg(sq, wqe), addr, length, lkey);
}

static inline void skua_wqe_add_inline(struct skua_sq *sq, struct skua_wqe *wqe,
				       const void *data, uint32_t length)
{
	size_t place = skua_wqe_place(sq, wqe, wqe->size);
	size_t to_end = (size_t)sq->blocks * SKUA_WQE_BLOCK - place;
	size_t first = length < to_end ? length : to_end;

	if (!length)
		return;
	memcpy((char *)sq->buf + place, data, first);
	if (first < length)
		memcpy(sq->buf, (const char *)data + first, length - first);
	wqe->size += length;
}

/* The WQE is as long as it is now: @num_sge SGEs or @length bytes of inline data. */
static inline void skua_wqe_end(struct skua_sq *sq, const struct skua_wqe *wqe, uint8_t num_sge,
				uint32_t length)
{
	uint32_t blocks = skua_wqe_blocks(wqe->size);

	wqe->ctrl->nblocks = blocks;
	wqe->ctrl->num_sge = num_sge;
	wqe->ctrl->length = htole32(length);
	sq->pi = wqe->start + blocks;
}

/* Publish @pi in a record. */
static inline void skua_dbr_publish(struct skua_dbr *dbr, uint32_t pi)
{
	/* The device sees the WQEs before it sees the index behind them. */
	udma_to_device_barrier();
	skua_store_le32(&dbr->pi, pi);
}

/* Publish all WQEs built so far. Returns whether the caller is to ring SKUA_DB_SQ. */
static inline bool skua_sq_publish(struct skua_sq *sq, bool event_idx)
{
	uint32_t old = sq->published;
	uint32_t event;

	if (sq->pi == old)
		return false;
	skua_dbr_publish(sq->dbr, sq->pi);
	sq->published = sq->pi;
	sq->wr_published = sq->wr_pi;
	if (!event_idx)
		return true;
	/* Pairs with the device's, between storing event and its last look at pi. */
	skua_full_barrier();
	event = skua_load_le32(&sq->dbr->event);
	return SKUA_EVENT_DUE(sq->pi, event, old);
}

/* Forget the WQEs that were built and not published. */
static inline void skua_sq_take_back(struct skua_sq *sq)
{
	sq->pi = sq->published;
	sq->wr_pi = sq->wr_published;
}

/* After the device reset its side, and before it looks again: the event word is its own. */
static inline void skua_sq_reset(struct skua_sq *sq)
{
	sq->pi = 0;
	sq->published = 0;
	sq->wr_pi = 0;
	sq->wr_published = 0;
	sq->wr_ci = 0;
	if (sq->blocks)
		skua_store_le32(&sq->dbr->pi, 0);
}

#endif /* SKUA_SQ_H */
