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
 * Writers of pi and of the ring hold the SQ's lock. wr_ci is written by who polls the CQ, often another
 * thread. So each has a cache line of its own, and posting looks at wr_ci only when what it saw there last
 * is used up.
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

#define SKUA_CACHE_ALIGNED	__attribute__((aligned(64)))

/* Of the WQE that begins at a block. */
struct skua_sq_slot {
	uint64_t wr_id;
	uint32_t wr_next;		/* number of the WR behind it */
};

struct skua_sq {
	char *buf;
	char *end;			/* behind the last block */
	struct skua_dbr *dbr;
	struct skua_sq_slot *slots;	/* cookies index them */
	uint32_t blocks;		/* of the ring, a power of two; 0: there is none */
	uint32_t mask;			/* blocks - 1 */
	uint32_t max_wr;		/* outstanding at a time */
	bool locked_is_full;		/* of skua_full_barrier() */

	/* The poster's */
	SKUA_CACHE_ALIGNED uint32_t pi;	/* behind the last WQE built */
	uint32_t published;		/* what the record says */
	uint32_t wr_pi;			/* WRs built */
	uint32_t wr_limit;		/* there is room before it, as of the last look at wr_ci */

	/* The poller's */
	SKUA_CACHE_ALIGNED uint32_t wr_ci;	/* WRs done */
};

static inline void skua_sq_set_ring(struct skua_sq *sq, void *buf, uint32_t blocks)
{
	sq->buf = buf;
	sq->end = sq->buf + (size_t)blocks * SKUA_WQE_BLOCK;
	sq->blocks = blocks;
	sq->mask = blocks - 1;
}

/* A WQE that is being built. */
struct skua_wqe {
	struct skua_wqe_ctrl *ctrl;
	char *next;			/* behind its last byte so far */
	uint32_t start;			/* index of its first block */
	uint32_t size;			/* bytes so far */
};

static inline uint32_t skua_wqe_blocks(uint32_t bytes)
{
	return (bytes + SKUA_WQE_BLOCK - 1) / SKUA_WQE_BLOCK;
}

/* Is there no room for a WR? */
static inline bool skua_sq_full(struct skua_sq *sq)
{
	/* Nobody posts beyond it. */
	if (likely(sq->wr_limit != sq->wr_pi))
		return false;
	/* Acquire: the slot of a WQE is read before the block is free. */
	sq->wr_limit = __atomic_load_n(&sq->wr_ci, __ATOMIC_ACQUIRE) + sq->max_wr;
	return sq->wr_limit == sq->wr_pi;
}

/*
 * All WRs up to that of @slot are done, which a CQE says that was polled and whose place in the CQ is
 * the device's again: what is posted then may complete into that.
 */
static inline void skua_sq_retire(struct skua_sq *sq, const struct skua_sq_slot *slot)
{
	__atomic_store_n(&sq->wr_ci, slot->wr_next, __ATOMIC_RELEASE);
}

/* Where data goes on. A block holds all segments before it, so that none of those wraps. */
static inline void *skua_sq_wrapped(const struct skua_sq *sq, char *place)
{
	return unlikely(place == sq->end) ? sq->buf : place;
}

/* A segment before the data. */
static inline void *skua_wqe_add_header(struct skua_wqe *wqe, uint32_t size)
{
	void *seg = wqe->next;

	wqe->next += size;
	wqe->size += size;
	return seg;
}

/* Begin a WQE at pi. The SQ is not full, and what is added is within the QP's limits. */
static inline void skua_wqe_begin(struct skua_sq *sq, struct skua_wqe *wqe, uint64_t wr_id,
				  uint8_t opcode, uint8_t flags)
{
	uint32_t cookie = sq->pi & sq->mask;
	struct skua_wqe_ctrl *ctrl = (void *)(sq->buf + (size_t)cookie * SKUA_WQE_BLOCK);

	ctrl->opcode = opcode;
	ctrl->flags = flags;
	ctrl->cookie = htole32(cookie);
	ctrl->inv_key = 0;
	*wqe = (struct skua_wqe) {
		.ctrl = ctrl, .next = (char *)(ctrl + 1), .start = sq->pi, .size = sizeof(*ctrl),
	};
	sq->slots[cookie] = (struct skua_sq_slot) { .wr_id = wr_id, .wr_next = ++sq->wr_pi };
}

static inline void skua_wqe_add_rdma(struct skua_wqe *wqe, uint64_t raddr, uint32_t rkey)
{
	struct skua_wqe_rdma *rdma = skua_wqe_add_header(wqe, sizeof(*rdma));

	rdma->raddr = htole64(raddr);
	rdma->rkey = htole32(rkey);
	rdma->flush = 0;
}

/* Bytes of the peer's memory, and what they are flushed for, SKUA_FLUSH_*. */
static inline void skua_wqe_add_flush(struct skua_wqe *wqe, uint64_t raddr, uint32_t rkey, uint32_t flush)
{
	struct skua_wqe_rdma *rdma = skua_wqe_add_header(wqe, sizeof(*rdma));

	rdma->raddr = htole64(raddr);
	rdma->rkey = htole32(rkey);
	rdma->flush = htole32(flush);
}

static inline void skua_wqe_add_atomic(struct skua_wqe *wqe, uint64_t raddr, uint32_t rkey,
				       uint64_t swap_add, uint64_t compare)
{
	struct skua_wqe_atomic *atomic = skua_wqe_add_header(wqe, sizeof(*atomic));

	atomic->raddr = htole64(raddr);
	atomic->rkey = htole32(rkey);
	atomic->rsvd = 0;
	atomic->swap_add = htole64(swap_add);
	atomic->compare = htole64(compare);
}

static inline struct skua_wqe_ud *skua_wqe_add_ud(struct skua_wqe *wqe)
{
	return skua_wqe_add_header(wqe, sizeof(struct skua_wqe_ud));
}

static inline struct skua_wqe_xrc *skua_wqe_add_xrc(struct skua_wqe *wqe)
{
	return skua_wqe_add_header(wqe, sizeof(struct skua_wqe_xrc));
}

static inline void skua_xrc_set(struct skua_wqe_xrc *xrc, uint32_t srqn)
{
	*xrc = (struct skua_wqe_xrc) { .srqn = htole32(srqn) };
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
	struct skua_sge *sge = skua_sq_wrapped(sq, wqe->next);

	skua_sge_set(sge, addr, length, lkey);
	wqe->next = (char *)(sge + 1);
	wqe->size += sizeof(*sge);
}

/* Copy inline data to @place. Returns the place behind it. */
static inline char *skua_sq_copy(const struct skua_sq *sq, char *place, const void *data, uint32_t length)
{
	uint32_t to_end = sq->end - place;

	if (!length)
		return place;		/* there may be no data */
	if (likely(length <= to_end)) {
		memcpy(place, data, length);
		return place + length;
	}
	memcpy(place, data, to_end);
	memcpy(sq->buf, (const char *)data + to_end, length - to_end);
	return sq->buf + (length - to_end);
}

/* What a frame is cut by: it is followed by @hdr_len bytes of headers, and a gap up to the next segment. */
static inline void skua_wqe_add_tso(const struct skua_sq *sq, struct skua_wqe *wqe, const void *hdr, uint16_t hdr_len,
				    uint16_t mss)
{
	uint32_t padded = (hdr_len + SKUA_WQE_SEG - 1u) / SKUA_WQE_SEG * SKUA_WQE_SEG;
	struct skua_wqe_tso *tso = skua_wqe_add_header(wqe, sizeof(*tso));

	*tso = (struct skua_wqe_tso) { .mss = htole16(mss), .hdr_len = htole16(hdr_len) };
	skua_sq_copy(sq, wqe->next, hdr, hdr_len);
	wqe->size += padded;
	wqe->next += padded;
	if (wqe->next > sq->end)
		wqe->next -= sq->end - sq->buf;
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
	uint32_t pi = sq->pi;

	if (pi == old)
		return false;
	skua_dbr_publish(sq->dbr, pi);
	sq->published = pi;
	if (!event_idx)
		return true;
	/* Pairs with the device's, between storing event and its last look at pi. */
	skua_full_barrier(sq->locked_is_full);
	return SKUA_EVENT_DUE(pi, skua_load_le32(&sq->dbr->event), old);
}

/* Forget the WQEs that were built and not published, which are those of WR @wr_pi and behind it. */
static inline void skua_sq_take_back(struct skua_sq *sq, uint32_t wr_pi)
{
	sq->pi = sq->published;
	sq->wr_pi = wr_pi;
}

/* After the device reset its side, and before it looks again: the event word is its own. */
static inline void skua_sq_reset(struct skua_sq *sq)
{
	sq->pi = 0;
	sq->published = 0;
	sq->wr_pi = 0;
	sq->wr_limit = 0;
	sq->wr_ci = 0;
	if (sq->blocks)
		skua_store_le32(&sq->dbr->pi, 0);
}

#endif /* SKUA_SQ_H */
