// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fast registration: regions that work requests fill, and that their owner or its peer invalidates.
 * The memory of a region is pages, or pieces of any alignment (IB_MR_TYPE_SG_GAPS).
 */
#include <linux/scatterlist.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include <skua/wqe.h>

#include "skua_selftest.h"

#define ST_FAST_OFFSET	100	/* where the memory begins in its first page */
#define ST_FAST_SIZE	(ST_FAST_PAGES * SZ_4K - ST_FAST_OFFSET)
#define ST_FAST_ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ)

#define ST_GAPS_STRIDE	(SZ_4K + 40)	/* from one piece to the next */
#define ST_GAPS_SHIFT	13		/* where the first begins */

/* Byte @at of piece @i, from the middle of the buffer on. */
static u32 st_fast_place(const struct ib_mr *mr, u32 i, u32 at)
{
	u32 up = ST_FAST_PAGES - 1 - i;

	if (mr->type == IB_MR_TYPE_SG_GAPS)
		return ST_HALF + up * ST_GAPS_STRIDE + ST_GAPS_SHIFT + at;
	return ST_HALF + up * SZ_4K + at;
}

/*
 * Pages or pieces in reverse: a device that took the first for the begin of them all would find
 * other memory.
 */
static int st_fast_map(struct st_side *side, struct ib_mr *mr)
{
	unsigned int offset = ST_FAST_OFFSET;
	struct scatterlist sg[ST_FAST_PAGES];
	int i;

	sg_init_table(sg, ST_FAST_PAGES);
	for (i = 0; i < ST_FAST_PAGES; i++) {
		sg_dma_address(&sg[i]) = side->dma + st_fast_place(mr, i, 0);
		sg_dma_len(&sg[i]) = SZ_4K;
	}
	return ib_map_mr_sg(mr, sg, ST_FAST_PAGES, &offset, SZ_4K);
}

static u8 *st_fast_byte(struct st_side *side, const struct ib_mr *mr, u32 at)
{
	at += ST_FAST_OFFSET;
	return side->buf + st_fast_place(mr, at / SZ_4K, at % SZ_4K);
}

/* Is the region as @flat? */
static bool st_fast_equal(struct st_side *side, const struct ib_mr *mr, const u8 *flat)
{
	u32 at;

	for (at = 0; at < ST_FAST_SIZE; at++)
		if (*st_fast_byte(side, mr, at) != flat[at])
			return false;
	return true;
}

static struct ib_reg_wr st_reg_wr(struct ib_mr *mr, int access)
{
	return (struct ib_reg_wr) {
		.wr = { .opcode = IB_WR_REG_MR }, .mr = mr, .key = mr->rkey, .access = access,
	};
}

int st_register(struct st_side *side, struct ib_mr *mr, int access)
{
	struct ib_reg_wr wr;
	int err;

	err = st_fast_map(side, mr);
	if (err != ST_FAST_PAGES)
		return -1;
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
	wr = st_reg_wr(mr, access);
	err = st_do(side, &wr.wr);
	return err || side->send.wc.opcode == IB_WC_REG_MR ? err : -1;
}

static int st_invalidate(struct st_side *side, u32 key)
{
	struct ib_send_wr wr = { .opcode = IB_WR_LOCAL_INV, .ex.invalidate_rkey = key };
	int err = st_do(side, &wr);

	return err || side->send.wc.opcode == IB_WC_LOCAL_INV ? err : -1;
}

/* From or to @length bytes of the region with @key, @at bytes behind its begin, as the peer. */
static int st_remote_at(struct st_side *side, struct ib_mr *mr, u32 key, enum ib_wr_opcode opcode,
			u64 at, u32 length)
{
	struct ib_sge sge = {
		.addr = side->dma, .length = length, .lkey = side->pd->local_dma_lkey,
	};
	struct ib_rdma_wr wr = {
		.wr = { .sg_list = &sge, .num_sge = 1, .opcode = opcode },
		.remote_addr = mr->iova + at, .rkey = key,
	};

	return st_do(side, &wr.wr);
}

/* The same with its first bytes. */
static int st_remote_part(struct st_side *side, struct ib_mr *mr, u32 key, enum ib_wr_opcode opcode,
			  u32 length)
{
	return st_remote_at(side, mr, key, opcode, 0, length);
}

/* From or to all of it. */
static int st_remote(struct st_side *side, struct ib_mr *mr, u32 key, enum ib_wr_opcode opcode)
{
	return st_remote_part(side, mr, key, opcode, ST_FAST_SIZE);
}

/* A SEND of nothing that invalidates @key at the peer, which receives it. */
static int st_send_inv(struct st_side *side, struct st_side *peer, u32 key)
{
	struct ib_send_wr wr = { .opcode = IB_WR_SEND_WITH_INV, .ex.invalidate_rkey = key };
	int err;

	err = st_post_recv(peer, 0, 64);
	if (err)
		return -1;
	err = st_do(side, &wr);
	return err || st_wait(peer, &peer->recv) ? err : -1;
}

static const char *st_cycle(struct st_side *a, struct st_side *b, struct ib_mr *mr, u8 seed)
{
	CHECK(!st_register(b, mr, ST_FAST_ACCESS));
	CHECK(mr->length == ST_FAST_SIZE);
	st_fill(a->buf, ST_FAST_SIZE, seed);
	CHECK(!st_remote(a, mr, mr->rkey, IB_WR_RDMA_WRITE));
	CHECK(st_fast_equal(b, mr, a->buf));
	memset(a->buf, 0, ST_FAST_SIZE);
	CHECK(!st_remote(a, mr, mr->rkey, IB_WR_RDMA_READ));
	CHECK(st_fast_equal(b, mr, a->buf));
	CHECK(*a->buf == seed);
	return NULL;
}

/* @mr is of @b, @other of nobody. What fails moves the QPs to ERR. */
static const char *st_cycles(struct st_side *side, struct ib_mr *mr)
{
	struct st_side *a = &side[0], *b = &side[1];
	const char *wrong;
	u32 old;
	int i;

	for (i = 0; i < 300; i++) {
		wrong = st_cycle(a, b, mr, i);
		if (wrong)
			return wrong;
		if (i & 1) {
			CHECK(!st_send_inv(a, b, mr->rkey));
			CHECK(b->recv.wc.status == IB_WC_SUCCESS);
			CHECK(b->recv.wc.wc_flags & IB_WC_WITH_INVALIDATE);
			CHECK(b->recv.wc.ex.invalidate_rkey == mr->rkey);
		} else {
			CHECK(!st_invalidate(b, mr->rkey));
		}
		/* The other side may have done so already. */
		if (i % 3 == 0)
			CHECK(!st_invalidate(b, mr->rkey));
	}
	/* The key before, and this one, now that it is free. */
	CHECK(!st_register(b, mr, ST_FAST_ACCESS));
	old = mr->rkey;
	CHECK(!st_invalidate(b, old));
	CHECK(st_remote(a, mr, old, IB_WR_RDMA_WRITE) == IB_WC_REM_ACCESS_ERR);
	CHECK(!st_reconnect(side));
	CHECK(!st_register(b, mr, ST_FAST_ACCESS));
	CHECK(st_remote(a, mr, old, IB_WR_RDMA_WRITE) == IB_WC_REM_ACCESS_ERR);
	CHECK(!st_reconnect(side));
	CHECK(!st_remote(a, mr, mr->rkey, IB_WR_RDMA_WRITE));
	return NULL;
}

/* @side writes from a region of its own, by its lkey. */
static int st_local(struct st_side *side, struct st_side *peer, struct ib_mr *mr)
{
	struct ib_sge sge = { .addr = mr->iova, .length = ST_FAST_SIZE, .lkey = mr->lkey };
	struct ib_rdma_wr wr = {
		.wr = { .sg_list = &sge, .num_sge = 1, .opcode = IB_WR_RDMA_WRITE },
		.remote_addr = peer->dma, .rkey = peer->pd->unsafe_global_rkey,
	};

	return st_do(side, &wr.wr);
}

/* A region that is registered is left alone by another registration, and by who may not end it. */
static const char *st_not_free(struct st_side *side, struct ib_mr *mr)
{
	struct st_side *a = &side[0], *b = &side[1];

	CHECK(!st_register(b, mr, IB_ACCESS_LOCAL_WRITE));
	st_fill(b->buf + ST_HALF, ST_FAST_PAGES * ST_GAPS_STRIDE, 3);
	CHECK(!st_local(b, a, mr));
	CHECK(st_fast_equal(b, mr, a->buf));
	CHECK(!st_send_inv(a, b, mr->rkey));
	CHECK(b->recv.wc.status == IB_WC_REM_INV_REQ_ERR);
	CHECK(!st_reconnect(side));
	CHECK(!st_local(b, a, mr));
	CHECK(st_register(b, mr, ST_FAST_ACCESS) == IB_WC_LOC_QP_OP_ERR);
	CHECK(!st_reconnect(side));
	/* The key that it did not get. */
	CHECK(st_local(b, a, mr) == IB_WC_LOC_PROT_ERR);
	CHECK(!st_reconnect(side));
	CHECK(st_invalidate(b, mr->rkey) == IB_WC_LOC_QP_OP_ERR);
	CHECK(!st_reconnect(side));
	ib_update_fast_reg_key(mr, mr->rkey - 1);
	CHECK(!st_local(b, a, mr));
	CHECK(!st_invalidate(b, mr->rkey));
	return NULL;
}

/* Rights that the peer was not given; regions that are no such ones, or another PD's. */
static const char *st_not_allowed(struct st_side *side, struct ib_mr *mr)
{
	struct st_side *a = &side[0], *b = &side[1];
	struct ib_mr *other;
	struct ib_pd *pd;
	int status = -1;

	CHECK(!st_register(b, mr, IB_ACCESS_REMOTE_READ));
	CHECK(!st_remote(a, mr, mr->rkey, IB_WR_RDMA_READ));
	CHECK(st_remote(a, mr, mr->rkey, IB_WR_RDMA_WRITE) == IB_WC_REM_ACCESS_ERR);
	CHECK(!st_reconnect(side));
	CHECK(!st_invalidate(b, mr->rkey));
	CHECK(st_invalidate(b, b->pd->unsafe_global_rkey) == IB_WC_LOC_QP_OP_ERR);
	CHECK(!st_reconnect(side));
	/* The right to write locally comes with that to write remotely. */
	CHECK(!st_register(b, mr, IB_ACCESS_REMOTE_WRITE));
	CHECK(!st_remote(a, mr, mr->rkey, IB_WR_RDMA_WRITE));
	CHECK(!st_invalidate(b, mr->rkey));

	pd = ib_alloc_pd(b->dev, 0);
	CHECK(!IS_ERR(pd));
	other = ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, ST_FAST_PAGES);
	if (!IS_ERR(other)) {
		status = st_register(b, other, ST_FAST_ACCESS);
		ib_dereg_mr(other);
	}
	ib_dealloc_pd(pd);
	CHECK(status == IB_WC_LOC_QP_OP_ERR);
	CHECK(!st_reconnect(side));
	return st_cycle(a, b, mr, 9);
}

/* A region for as many pages as there may be, and what is no such region. */
/* A region of @pages pages, which are the target's first two by turns, takes its peer's WRITEs. */
static const char *st_longest_list(struct st_side *side, struct ib_mr *mr, unsigned int pages)
{
	struct st_side *a = &side[0], *b = &side[1];
	struct ib_reg_wr reg;
	u32 last = pages - 1;

	CHECK(mr->length == (u64)pages * SZ_4K);
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
	reg = st_reg_wr(mr, ST_FAST_ACCESS);
	CHECK(!st_do(b, &reg.wr));
	memset(b->buf + ST_HALF, 0, 2 * SZ_4K);
	st_fill(a->buf, 64, 9);
	CHECK(!st_remote_at(a, mr, mr->rkey, IB_WR_RDMA_WRITE, 8, 64));
	CHECK(!memcmp(b->buf + ST_HALF + 8, a->buf, 64));
	CHECK(!st_remote_at(a, mr, mr->rkey, IB_WR_RDMA_WRITE, (u64)last * SZ_4K + SZ_4K - 64, 64));
	CHECK(!memcmp(b->buf + ST_HALF + (last & 1) * SZ_4K + SZ_4K - 64, a->buf, 64));
	CHECK(!st_invalidate(b, mr->rkey));
	return NULL;
}

static const char *st_sizes_of_lists(struct st_side *side, struct ib_mr *mr)
{
	struct ib_device *dev = side[1].dev;
	unsigned int most = dev->attrs.max_fast_reg_page_list_len, offset = 0;
	struct scatterlist *sg;
	struct ib_mr *other;
	const char *wrong;
	int mapped, bad, i;

	CHECK(most >= 1024);
	other = ib_alloc_mr(side[1].pd, mr->type, 0);
	CHECK(IS_ERR(other) && PTR_ERR(other) == -EINVAL);
	other = ib_alloc_mr(side[1].pd, mr->type, most + 1);
	CHECK(IS_ERR(other) && PTR_ERR(other) == -EINVAL);
	other = ib_alloc_mr(side[1].pd, IB_MR_TYPE_USER, most);
	CHECK(IS_ERR(other) && PTR_ERR(other) == -EOPNOTSUPP);

	sg = kvcalloc(most + 1, sizeof(*sg), GFP_KERNEL);
	CHECK(sg);
	sg_init_table(sg, most + 1);
	for (i = 0; i < most + 1; i++) {
		sg_dma_address(&sg[i]) = side[1].dma + ST_HALF + (i & 1) * SZ_4K;
		sg_dma_len(&sg[i]) = SZ_4K;
	}
	mapped = ib_map_mr_sg(mr, sg, most + 1, &offset, SZ_4K);
	wrong = mapped == most ? st_longest_list(side, mr, most) : "pages that were mapped";
	bad = ib_map_mr_sg(mr, sg, 1, &offset, SZ_2K);
	kvfree(sg);
	if (wrong)
		return wrong;
	/* Pieces have no page size. */
	CHECK(bad == (mr->type == IB_MR_TYPE_SG_GAPS ? 1 : -EINVAL));
	return NULL;
}

/* As many pieces of a few bytes as a list may have in a row; what is more is left to the caller. */
static const char *st_small_pieces(struct st_side *side, struct ib_mr *mr)
{
	struct st_side *a = &side[0], *b = &side[1];
	struct scatterlist sg[SKUA_PIECES_RUN];
	unsigned int offset = 2;
	struct ib_reg_wr reg;
	int i, mapped, empty;

	sg_init_table(sg, SKUA_PIECES_RUN);
	for (i = 0; i < SKUA_PIECES_RUN; i++) {
		sg_dma_address(&sg[i]) = b->dma + ST_HALF + i * 9 + 1;
		sg_dma_len(&sg[i]) = 4;
	}
	mapped = ib_map_mr_sg(mr, sg, SKUA_PIECES_RUN, &offset, SZ_4K);
	CHECK(mapped == SKUA_PIECES_RUN - 1);
	CHECK(!offset);
	CHECK(mr->length == mapped * 4 - 2);
	CHECK(mr->iova == sg_dma_address(&sg[0]) + 2);

	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
	reg = st_reg_wr(mr, ST_FAST_ACCESS);
	CHECK(!st_do(b, &reg.wr));
	memset(b->buf + ST_HALF, 0, SZ_4K);
	st_fill(a->buf, mr->length, 5);
	CHECK(!st_remote_part(a, mr, mr->rkey, IB_WR_RDMA_WRITE, mr->length));
	for (i = 0; i < mapped * 4 - 2; i++)
		CHECK(b->buf[ST_HALF + (i + 2) / 4 * 9 + 1 + (i + 2) % 4] == a->buf[i]);
	for (i = 0; i < mapped; i++)
		CHECK(!b->buf[ST_HALF + i * 9] && !b->buf[ST_HALF + i * 9 + 5]);
	CHECK(!st_invalidate(b, mr->rkey));

	sg_dma_len(&sg[1]) = 0;
	empty = ib_map_mr_sg(mr, sg, 2, NULL, SZ_4K);
	CHECK(empty == -EINVAL);
	offset = 4;
	CHECK(ib_map_mr_sg(mr, sg, 1, &offset, SZ_4K) == -EINVAL);
	return NULL;
}

/* Posted at once; only the last tells. */
static const char *st_chain(struct st_side *side, struct ib_mr *mr)
{
	struct st_side *a = &side[0], *b = &side[1];
	struct ib_send_wr inv = { .opcode = IB_WR_LOCAL_INV };
	struct ib_sge sge = { .length = ST_FAST_SIZE };
	struct ib_rdma_wr write = {
		.wr = { .sg_list = &sge, .num_sge = 1, .opcode = IB_WR_RDMA_WRITE, .next = &inv },
		.remote_addr = a->dma, .rkey = a->pd->unsafe_global_rkey,
	};
	struct ib_reg_wr reg;
	int i;

	for (i = 0; i < 50; i++) {
		CHECK(st_fast_map(b, mr) == ST_FAST_PAGES);
		ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
		reg = st_reg_wr(mr, IB_ACCESS_LOCAL_WRITE);
		reg.wr.next = &write.wr;
		sge.addr = mr->iova;
		sge.lkey = mr->lkey;
		inv.ex.invalidate_rkey = mr->rkey;
		inv.wr_cqe = &b->send.cqe;
		inv.send_flags = IB_SEND_SIGNALED;
		st_fill(b->buf + ST_HALF, ST_FAST_PAGES * ST_GAPS_STRIDE, i);
		reinit_completion(&b->send.done);
		CHECK(!ib_post_send(b->qp, &reg.wr, NULL));
		CHECK(st_wait(b, &b->send));
		CHECK(b->send.wc.status == IB_WC_SUCCESS);
		CHECK(b->send.wc.opcode == IB_WC_LOCAL_INV);
		CHECK(st_fast_equal(b, mr, a->buf));
	}
	/* In ERR they are flushed, and a drain waits for them. */
	ib_drain_qp(b->qp);
	CHECK(st_register(b, mr, ST_FAST_ACCESS) == IB_WC_WR_FLUSH_ERR);
	CHECK(st_invalidate(b, mr->rkey) == IB_WC_WR_FLUSH_ERR);
	reg.wr.next = NULL;
	CHECK(!ib_post_send(b->qp, &reg.wr, NULL));
	ib_drain_qp(b->qp);
	CHECK(!st_reconnect(side));
	return st_cycle(a, b, mr, 77);
}

/* Runs @test with a region of the second side. */
static const char *st_with_mr(struct st_side *side, enum ib_mr_type type, u32 most,
			      const char *(*test)(struct st_side *side, struct ib_mr *mr))
{
	struct ib_mr *mr;
	const char *wrong;

	if (!side[1].dev->ops.alloc_mr)
		return "no fast registration";
	mr = ib_alloc_mr(side[1].pd, type, most);
	if (IS_ERR(mr))
		return "ib_alloc_mr";
	wrong = test(side, mr);
	if (ib_dereg_mr(mr))
		return wrong ?: "ib_dereg_mr";
	return wrong;
}

/* The same with a region of pages, and with one of pieces. */
static const char *st_with_mrs(struct st_side *side, u32 most,
			       const char *(*test)(struct st_side *side, struct ib_mr *mr))
{
	return st_with_mr(side, IB_MR_TYPE_MEM_REG, most, test) ?:
	       st_with_mr(side, IB_MR_TYPE_SG_GAPS, most, test);
}

const char *st_fast(struct st_side *side)
{
	return st_with_mrs(side, ST_FAST_PAGES, st_cycles);
}

const char *st_fast_errors(struct st_side *side)
{
	return st_with_mrs(side, ST_FAST_PAGES, st_not_free) ?:
	       st_with_mrs(side, ST_FAST_PAGES, st_not_allowed);
}

const char *st_fast_lists(struct st_side *side)
{
	return st_with_mrs(side, side[1].dev->attrs.max_fast_reg_page_list_len, st_sizes_of_lists);
}

const char *st_fast_chain(struct st_side *side)
{
	return st_with_mrs(side, ST_FAST_PAGES, st_chain);
}

const char *st_fast_pieces(struct st_side *side)
{
	CHECK(side[1].dev->attrs.kernel_cap_flags & IBK_SG_GAPS_REG);
	return st_with_mr(side, IB_MR_TYPE_SG_GAPS, SKUA_PIECES_RUN, st_small_pieces);
}
