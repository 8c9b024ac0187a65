/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The device's side of the rings, as the manual has it and in as few lines as possible:
 * takes WQEs out of an SQ, writes CQEs with their phase, evaluates arming.
 */
#ifndef SKUA_TEST_FAKE_H
#define SKUA_TEST_FAKE_H

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cq_ring.h"
#include "rq.h"
#include "sq.h"

struct fake_cq {
	struct skua_cqe *cqes;
	const struct skua_cq_dbr *dbr;
	uint32_t size;
	uint32_t pi;
	uint32_t next;			/* behind the last CQE */
	uint32_t solicited;		/* behind the last one solicited or in error */
	uint32_t fired;			/* sequence of the last arming that fired */
	bool news, solicited_news;	/* one, a solicited one, since it fired */
};

static inline void *fake_zalloc(size_t align, size_t size)
{
	void *p = aligned_alloc(align, (size + align - 1) / align * align);

	assert(p);
	memset(p, 0, size);
	return p;
}

static inline void fake_sq_init(struct skua_sq *sq, uint32_t blocks)
{
	*sq = (struct skua_sq) {
		.dbr = fake_zalloc(64, sizeof(struct skua_dbr)),
		.slots = calloc(blocks, sizeof(struct skua_sq_slot)),
		.max_wr = blocks,
	};
	skua_sq_set_ring(sq, fake_zalloc(64, (size_t)blocks * SKUA_WQE_BLOCK), blocks);
}

static inline void fake_sq_free(struct skua_sq *sq)
{
	free(sq->buf);
	free(sq->dbr);
	free(sq->slots);
}

/* Copy the WQE at block @index, as the device does. Returns its blocks. */
static inline uint32_t fake_sq_fetch(const struct skua_sq *sq, uint32_t index, uint8_t *wqe)
{
	const uint8_t *buf = (void *)sq->buf;
	uint32_t i, blocks;

	blocks = buf[(size_t)(index & (sq->blocks - 1)) * SKUA_WQE_BLOCK +
		     offsetof(struct skua_wqe_ctrl, nblocks)];
	assert(blocks >= 1 && blocks <= SKUA_WQE_MAX_BLOCKS);
	for (i = 0; i < blocks; i++)
		memcpy(wqe + i * SKUA_WQE_BLOCK,
		       buf + (size_t)((index + i) & (sq->blocks - 1)) * SKUA_WQE_BLOCK,
		       SKUA_WQE_BLOCK);
	return blocks;
}

static inline void fake_rq_init(struct skua_rq *rq, uint32_t size, uint32_t log_stride)
{
	*rq = (struct skua_rq) {
		.buf = fake_zalloc(64, (size_t)size << log_stride),
		.dbr = fake_zalloc(64, sizeof(struct skua_dbr)),
		.wr_id = calloc(size, sizeof(uint64_t)),
		.size = size,
		.max_wr = size,
		.log_stride = log_stride,
	};
}

static inline void fake_rq_free(struct skua_rq *rq)
{
	free(rq->buf);
	free(rq->dbr);
	free(rq->wr_id);
}

static inline void fake_cq_init(struct fake_cq *dev, struct skua_cq_ring *ring, uint32_t size)
{
	*ring = (struct skua_cq_ring) {
		.cqes = fake_zalloc(64, size * sizeof(struct skua_cqe)),
		.dbr = fake_zalloc(64, sizeof(struct skua_cq_dbr)),
	};
	skua_cq_set_size(ring, size);
	*dev = (struct fake_cq) { .cqes = ring->cqes, .dbr = ring->dbr, .size = size };
}

static inline void fake_cq_free(struct skua_cq_ring *ring)
{
	free(ring->cqes);
	free(ring->dbr);
}

/* Write a CQE, its last 8 bytes last. The ring must have room: overflow is not for here. */
static inline void fake_cq_write(struct fake_cq *dev, struct skua_cqe cqe)
{
	struct skua_cqe *slot = &dev->cqes[dev->pi & (dev->size - 1)];
	uint32_t ci = le32toh(__atomic_load_n(&dev->dbr->ci, __ATOMIC_ACQUIRE));
	uint64_t last;

	assert(dev->pi - ci < dev->size);
	cqe.flags &= ~SKUA_CQE_PHASE;
	if (!(dev->pi & dev->size))
		cqe.flags |= SKUA_CQE_PHASE;
	memcpy(slot, &cqe, sizeof(cqe) - sizeof(last));
	memcpy(&last, &cqe.qpn, sizeof(last));
	__atomic_store_n((uint64_t *)&slot->qpn, last, __ATOMIC_RELEASE);
	dev->pi++;
	dev->next = dev->pi;
	dev->news = true;
	if (cqe.status || cqe.flags & SKUA_CQE_SOLICITED) {
		dev->solicited = dev->pi;
		dev->solicited_news = true;
	}
}

/* Evaluate the CQ (ARM-4): is an event raised? The caller did the full barrier. */
static inline bool fake_cq_evaluate(struct fake_cq *dev)
{
	uint64_t arm = le64toh(__atomic_load_n(&dev->dbr->arm, __ATOMIC_RELAXED));
	uint32_t seq = SKUA_CQ_ARM_GET_SEQ(arm);
	uint32_t behind;
	bool news;

	switch (SKUA_CQ_ARM_GET_TYPE(arm)) {
	case SKUA_CQ_ARM_NEXT:
		behind = dev->next;
		news = dev->news;
		break;
	case SKUA_CQ_ARM_SOLICITED:
		behind = dev->solicited;
		news = dev->solicited_news;
		break;
	default:
		return false;
	}
	if (seq == dev->fired || !news || (int32_t)(behind - SKUA_CQ_ARM_GET_CI(arm)) <= 0)
		return false;
	dev->fired = seq;
	dev->news = dev->solicited_news = false;
	return true;
}

#endif /* SKUA_TEST_FAKE_H */
