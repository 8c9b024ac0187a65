// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Atomics, masked or not. RDS posts all of its atomics as masked ones.
 */
#include <linux/scatterlist.h>
#include <linux/sizes.h>

#include "skua_selftest.h"

#define ST_ATOMIC_ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_ATOMIC)

/**
 * struct st_atomic - an atomic, and what it makes of a word
 * @opcode: its opcode
 * @old: the word before
 * @new: the word after
 * @compare_add: as in struct ib_atomic_wr, like those that follow
 * @swap: what is stored
 * @compare_add_mask: bits that are compared, or top bits of fields
 * @swap_mask: bits that are stored
 */
struct st_atomic {
	enum ib_wr_opcode opcode;
	u64 old;
	u64 new;
	u64 compare_add;
	u64 swap;
	u64 compare_add_mask;
	u64 swap_mask;
};

static const struct st_atomic st_masked_add = {
	IB_WR_MASKED_ATOMIC_FETCH_AND_ADD, .compare_add = 1,
};

/* The words that peers may change are those from the middle of the buffer on. */
static __le64 *st_word(struct st_side *side)
{
	return (__le64 *)(side->buf + ST_HALF);
}

static struct ib_mr *st_words_mr(struct st_side *side)
{
	struct ib_mr *mr = ib_alloc_mr(side->pd, IB_MR_TYPE_MEM_REG, 1);
	struct ib_reg_wr wr = {
		.wr = { .opcode = IB_WR_REG_MR }, .mr = mr, .access = ST_ATOMIC_ACCESS,
	};
	struct scatterlist sg;

	if (IS_ERR(mr))
		return mr;
	sg_init_table(&sg, 1);
	sg_dma_address(&sg) = side->dma + ST_HALF;
	sg_dma_len(&sg) = SZ_4K;
	wr.key = mr->rkey;
	if (ib_map_mr_sg(mr, &sg, 1, NULL, SZ_4K) == 1 && !st_do(side, &wr.wr))
		return mr;
	ib_dereg_mr(mr);
	return ERR_PTR(-EIO);
}

static int st_grant_atomics(struct st_side *side)
{
	struct ib_qp_attr attr = { .qp_access_flags = IB_ACCESS_REMOTE_ATOMIC };

	return ib_modify_qp(side->qp, &attr, IB_QP_ACCESS_FLAGS);
}

/* What it fetches goes to the begin of the buffer. */
static struct ib_atomic_wr st_atomic_wr(struct st_side *side, struct ib_sge *sge,
					const struct st_atomic *op, u64 addr, u32 rkey)
{
	*sge = (struct ib_sge) {
		.addr = side->dma, .length = sizeof(u64), .lkey = side->pd->local_dma_lkey,
	};
	return (struct ib_atomic_wr) {
		.wr = { .opcode = op->opcode, .sg_list = sge, .num_sge = 1 },
		.remote_addr = addr, .rkey = rkey,
		.compare_add = op->compare_add, .compare_add_mask = op->compare_add_mask,
		.swap = op->swap, .swap_mask = op->swap_mask,
	};
}

/* The status of its completion, or -1. */
static int st_do_atomic(struct st_side *side, const struct st_atomic *op, u64 addr, u32 rkey)
{
	struct ib_sge sge;
	struct ib_atomic_wr wr = st_atomic_wr(side, &sge, op, addr, rkey);

	return st_do(side, &wr.wr);
}

static const char *st_atomic_value(struct st_side *a, struct st_side *b, const struct ib_mr *mr,
				   const struct st_atomic *op)
{
	static const enum ib_wc_opcode completions[] = {
		[IB_WR_ATOMIC_CMP_AND_SWP] = IB_WC_COMP_SWAP,
		[IB_WR_ATOMIC_FETCH_AND_ADD] = IB_WC_FETCH_ADD,
		[IB_WR_MASKED_ATOMIC_CMP_AND_SWP] = IB_WC_MASKED_COMP_SWAP,
		[IB_WR_MASKED_ATOMIC_FETCH_AND_ADD] = IB_WC_MASKED_FETCH_ADD,
	};

	*st_word(b) = cpu_to_le64(op->old);
	*(__le64 *)a->buf = cpu_to_le64(~op->old);
	CHECK(!st_do_atomic(a, op, mr->iova, mr->rkey));
	CHECK(a->send.wc.opcode == completions[op->opcode]);
	CHECK(*(__le64 *)a->buf == cpu_to_le64(op->old));
	CHECK(*st_word(b) == cpu_to_le64(op->new));
	return NULL;
}

static const char *st_atomic_values(struct st_side *side, struct ib_mr *const mr[2])
{
	static const struct st_atomic ops[] = {
		{ IB_WR_ATOMIC_FETCH_AND_ADD, 100, 123, .compare_add = 23 },
		{ IB_WR_ATOMIC_CMP_AND_SWP, 100, 7, .compare_add = 100, .swap = 7 },
		{ IB_WR_ATOMIC_CMP_AND_SWP, 100, 100, .compare_add = 101, .swap = 7 },
		/* As RDS posts those without masks. */
		{ IB_WR_MASKED_ATOMIC_FETCH_AND_ADD, 0xffffffff, 0x100000000, .compare_add = 1 },
		{ IB_WR_MASKED_ATOMIC_CMP_AND_SWP, 100, 7, 100, 7, ~0ULL, ~0ULL },
		{ IB_WR_MASKED_ATOMIC_CMP_AND_SWP, 100, 100, 101, 7, ~0ULL, ~0ULL },
		/* And with masks. */
		{ IB_WR_MASKED_ATOMIC_FETCH_AND_ADD, 0x000000010000ffff, 0x0000000100010000,
		  .compare_add = 0x10001, .compare_add_mask = 0x8000 },
		{ IB_WR_MASKED_ATOMIC_CMP_AND_SWP, 0x1122334455667788, 0x11223344556677ff,
		  .compare_add = 0x4488, .compare_add_mask = 0xff, .swap = ~0ULL,
		  .swap_mask = 0xff },
		{ IB_WR_MASKED_ATOMIC_CMP_AND_SWP, 0x1122334455667788, 0xee22334455667788,
		  .compare_add = 0x88, .compare_add_mask = 0xff, .swap = 0xeeULL << 56,
		  .swap_mask = 0xffULL << 56 },
	};
	const char *wrong = NULL;
	unsigned int i;

	for (i = 0; i < 2 * ARRAY_SIZE(ops) && !wrong; i++)
		wrong = st_atomic_value(&side[i & 1], &side[!(i & 1)], mr[!(i & 1)], &ops[i / 2]);
	return wrong;
}

/* What post_send refuses. */
static const char *st_bad_atomics(struct st_side *side)
{
	static const struct {
		int num_sge;
		int flags;
	} rows[] = {
		{ -1 }, { 0 }, { 2 }, { ST_SGES + 1 },
		{ 1, IB_SEND_INLINE }, { 1, IB_SEND_IP_CSUM },
	};
	static const enum ib_wr_opcode opcodes[] = {
		IB_WR_ATOMIC_CMP_AND_SWP, IB_WR_ATOMIC_FETCH_AND_ADD,
		IB_WR_MASKED_ATOMIC_CMP_AND_SWP, IB_WR_MASKED_ATOMIC_FETCH_AND_ADD,
	};
	struct ib_sge sge[ST_SGES + 1] = {};
	const struct ib_send_wr *bad;
	struct ib_qp *ud;
	unsigned int i;
	int err;

	for (i = 0; i < ARRAY_SIZE(rows) * ARRAY_SIZE(opcodes); i++) {
		struct st_atomic op = { opcodes[i % ARRAY_SIZE(opcodes)] };
		struct ib_atomic_wr wr = st_atomic_wr(side, sge, &op, 0, 0);

		wr.wr.num_sge = rows[i / ARRAY_SIZE(opcodes)].num_sge;
		wr.wr.send_flags = rows[i / ARRAY_SIZE(opcodes)].flags;
		bad = NULL;
		CHECK(ib_post_send(side->qp, &wr.wr, &bad) == -EINVAL);
		CHECK(bad == &wr.wr);
	}
	ud = st_ud_qp(side);
	CHECK(!IS_ERR(ud));
	for (i = 0, err = -EINVAL; i < ARRAY_SIZE(opcodes) && err == -EINVAL; i++) {
		struct st_atomic op = { opcodes[i] };
		struct ib_atomic_wr wr = st_atomic_wr(side, sge, &op, 0, 0);

		err = ib_post_send(ud, &wr.wr, &bad);
	}
	ib_destroy_qp(ud);
	CHECK(err == -EINVAL);
	return NULL;
}

/* What the devices refuse. The word stays as it was. */
static const char *st_refused_atomics(struct st_side *side, const struct ib_mr *mr)
{
	struct st_side *a = &side[0], *b = &side[1];
	u32 no_right = b->pd->unsafe_global_rkey;

	*st_word(b) = cpu_to_le64(5);
	CHECK(st_do_atomic(a, &st_masked_add, mr->iova + 4, mr->rkey) == IB_WC_REM_INV_REQ_ERR);
	CHECK(!st_reconnect(side));
	CHECK(!st_grant_atomics(b));
	CHECK(st_do_atomic(a, &st_masked_add, mr->iova, no_right) == IB_WC_REM_ACCESS_ERR);
	/* The QP's right is gone. */
	CHECK(!st_reconnect(side));
	CHECK(st_do_atomic(a, &st_masked_add, mr->iova, mr->rkey) == IB_WC_REM_ACCESS_ERR);
	CHECK(*st_word(b) == cpu_to_le64(5));
	return NULL;
}

/* As many as the queue takes, of a QP whose other WQEs are shorter. */
static const char *st_queues_of_atomics(struct st_side *side, const struct ib_mr *mr)
{
	struct ib_qp_cap cap = { .max_send_wr = ST_WRS, .max_send_sge = 1 };
	struct st_side *a = &side[0], *b = &side[1];
	unsigned int round, i;

	CHECK(!st_new_qp(side, a, a->cq, &cap));
	CHECK(!st_grant_atomics(b));
	*st_word(b) = 0;
	for (round = 1; round <= 10; round++) {
		for (i = 0; i < ST_WRS - 1; i++) {
			struct ib_sge sge;
			struct ib_atomic_wr wr = st_atomic_wr(a, &sge, &st_masked_add, mr->iova,
							      mr->rkey);

			CHECK(!ib_post_send(a->qp, &wr.wr, NULL));
		}
		CHECK(!st_do_atomic(a, &st_masked_add, mr->iova, mr->rkey));
		CHECK(*st_word(b) == cpu_to_le64(round * ST_WRS));
		CHECK(*(__le64 *)a->buf == cpu_to_le64(round * ST_WRS - 1));
	}
	return NULL;
}

static const char *st_with_words(struct st_side *side, struct ib_mr *const mr[2])
{
	const char *wrong;

	CHECK(!st_grant_atomics(&side[0]) && !st_grant_atomics(&side[1]));
	wrong = st_atomic_values(side, mr);
	wrong = wrong ?: st_bad_atomics(&side[0]);
	wrong = wrong ?: st_refused_atomics(side, mr[1]);
	return wrong ?: st_queues_of_atomics(side, mr[1]);
}

const char *st_atomics(struct st_side *side)
{
	const char *wrong = "no regions";
	struct ib_mr *mr[2];

	mr[0] = st_words_mr(&side[0]);
	if (IS_ERR(mr[0]))
		return wrong;
	mr[1] = st_words_mr(&side[1]);
	if (!IS_ERR(mr[1])) {
		wrong = st_with_words(side, mr);
		ib_dereg_mr(mr[1]);
	}
	ib_dereg_mr(mr[0]);
	return wrong;
}
