// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory windows of a program: skua_1 binds them, and its peer on skua_0 uses them.
 * Rules: Documentation/manual/windows.rst.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pair.h"
#include "rows.h"

#define AT		5000u		/* of windows in the MR, and their length */
#define LEN		20001u
#define REMOTE		(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

FIXTURE(mw) {
	struct side s[2];
	struct ibv_mr *mr;	/* of skua_1, over all of its memory; it grants nothing by itself */
};

FIXTURE_VARIANT(mw) {
	enum ibv_mw_type type;
};

FIXTURE_VARIANT_ADD(mw, type_1) { IBV_MW_TYPE_1 };
FIXTURE_VARIANT_ADD(mw, type_2) { IBV_MW_TYPE_2 };

static struct ibv_mr *bindable(struct side *b)
{
	return ibv_reg_mr(b->pd, b->mem, PAIR_MEM, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
}

FIXTURE_SETUP(mw)
{
	ASSERT_EQ(0, pair_open(self->s));
	self->mr = bindable(&self->s[1]);
	ASSERT_NE(NULL, self->mr);
	pair_fill(self->s[0].mem, LEN, 7);
}

FIXTURE_TEARDOWN(mw)
{
	if (self->mr)
		EXPECT_EQ(0, ibv_dereg_mr(self->mr));
	EXPECT_TRUE(pair_transfer(self->s));
	pair_close(self->s);
}

static struct ibv_mw_bind_info part_of(struct ibv_mr *mr, unsigned int access)
{
	return (struct ibv_mw_bind_info){ mr, (uintptr_t)mr->addr + AT, LEN, access };
}

/* Post the bind that the window's type takes; its key is in the window then. 0 or an errno. */
static int post_bind(struct ibv_qp *qp, struct ibv_mw *mw, const struct ibv_mw_bind_info *info)
{
	struct ibv_mw_bind bind = { .wr_id = 5, .send_flags = IBV_SEND_SIGNALED, .bind_info = *info };
	struct ibv_send_wr *bad, wr = {
		.wr_id = 5, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED,
		.bind_mw = { mw, ibv_inc_rkey(mw->rkey), *info },
	};
	int err;

	if (mw->type == IBV_MW_TYPE_1)
		return ibv_bind_mw(qp, mw, &bind);
	err = ibv_post_send(qp, &wr, &bad);
	if (!err)
		mw->rkey = wr.bind_mw.rkey;
	return err;
}

/* The status of a bind. */
static int bind(struct side *b, struct ibv_mw *mw, struct ibv_mw_bind_info info)
{
	struct ibv_wc wc;

	if (post_bind(b->qp, mw, &info) || !side_wait(b, &wc, 20) || wc.wr_id != 5)
		return -1;
	return wc.status == IBV_WC_SUCCESS && wc.opcode != IBV_WC_BIND_MW ? -2 : wc.status;
}

/* The status of an operation of the first side on the memory of the other. */
static int access_by(struct side *a, struct ibv_qp *qp, enum ibv_wr_opcode opcode, uint64_t addr, uint32_t rkey,
		     uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)a->mem + (opcode == IBV_WR_RDMA_READ ? PAIR_MEM / 2 : 0), len, a->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { addr, rkey },
	};
	struct ibv_wc wc;

	if (ibv_post_send(qp, &wr, &bad) || !side_wait(a, &wc, 20))
		return -1;
	return wc.status;
}

/* All of the window is written, and read again, and nothing else. */
static bool usable(struct side s[2], uint64_t addr, uint32_t rkey)
{
	struct side *a = &s[0], *b = &s[1];

	memset(b->mem, 0, LEN + 2 * AT);
	memset(a->mem + PAIR_MEM / 2, 0, LEN);
	return access_by(a, a->qp, IBV_WR_RDMA_WRITE, addr, rkey, LEN) == IBV_WC_SUCCESS &&
	       access_by(a, a->qp, IBV_WR_RDMA_READ, addr, rkey, LEN) == IBV_WC_SUCCESS &&
	       !memcmp(b->mem + AT, a->mem, LEN) && !memcmp(a->mem + PAIR_MEM / 2, a->mem, LEN) &&
	       !b->mem[AT - 1] && !b->mem[AT + LEN];
}

#define MINE		((uintptr_t)self->s[1].mem + AT)
#define USABLE(rkey)	ASSERT_TRUE(usable(self->s, MINE, rkey))

/* The peer is refused, and both connect again. */
#define REFUSED(opcode, addr, rkey, len) do {				\
	ASSERT_EQ(IBV_WC_REM_ACCESS_ERR,				\
		  access_by(&self->s[0], self->s[0].qp, opcode, addr, rkey, len)); \
	ASSERT_EQ(0, pair_reconnect(self->s));				\
} while (0)

#define BOUND(mw, info)	ASSERT_EQ(IBV_WC_SUCCESS, bind(&self->s[1], mw, info))

static struct ibv_mw_bind_info nothing(void)
{
	return (struct ibv_mw_bind_info){ 0 };
}

/* LOCAL_INV of a key: its status. */
static int local_inv(struct side *b, uint32_t rkey)
{
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED, .invalidate_rkey = rkey,
	};
	struct ibv_wc wc;

	if (ibv_post_send(b->qp, &wr, &bad) || !side_wait(b, &wc, 20))
		return -1;
	return wc.status == IBV_WC_SUCCESS && wc.opcode != IBV_WC_LOCAL_INV ? -2 : wc.status;
}

/* What ends a window of its type. */
static int unbind(struct side *b, struct ibv_mw *mw)
{
	return mw->type == IBV_MW_TYPE_1 ? bind(b, mw, nothing()) : local_inv(b, mw->rkey);
}

TEST_F(mw, device_says_so)
{
	struct ibv_device_attr attr;

	ASSERT_EQ(0, ibv_query_device(self->s[1].context, &attr));
	ASSERT_LE(1000, attr.max_mw);
	ASSERT_TRUE(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW);
	ASSERT_TRUE(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B);
	ASSERT_FALSE(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2A);
}

/* MW-2, MW-3, MW-4: more often than there are variants of a key. */
TEST_F(mw, bound_and_unbound)
{
	struct ibv_mw *mw = ibv_alloc_mw(self->s[1].pd, variant->type);
	uint32_t before;

	ASSERT_NE(NULL, mw);
	REFUSED(IBV_WR_RDMA_WRITE, MINE, mw->rkey, 8);
	for (unsigned int i = 0; i < 300; i++) {
		before = mw->rkey;
		BOUND(mw, part_of(self->mr, REMOTE));
		ASSERT_NE(before, mw->rkey);
		ASSERT_EQ(before & ~0xffu, mw->rkey & ~0xffu);
		if (i % 50) {
			ASSERT_EQ(IBV_WC_SUCCESS, access_by(&self->s[0], self->s[0].qp, IBV_WR_RDMA_WRITE, MINE,
							    mw->rkey, 8));
		} else {
			USABLE(mw->rkey);
		}
		before = mw->rkey;
		ASSERT_EQ(IBV_WC_SUCCESS, unbind(&self->s[1], mw));
	}
	REFUSED(IBV_WR_RDMA_READ, MINE, before, 8);
	REFUSED(IBV_WR_RDMA_WRITE, MINE, self->mr->rkey, 8);
	ASSERT_EQ(0, ibv_dealloc_mw(mw));
}

/* MW-5: bounds, rights, and addresses from 0 on. */
TEST_F(mw, bounds_and_rights)
{
	struct ibv_mw *mw = ibv_alloc_mw(self->s[1].pd, variant->type);
	const struct {
		unsigned int access;
		enum ibv_wr_opcode opcode;
		int64_t from;
		uint32_t len;
	} bad[] = {
		{ REMOTE, IBV_WR_RDMA_WRITE, -1, 8 }, { REMOTE, IBV_WR_RDMA_WRITE, LEN - 7, 8 },
		{ REMOTE, IBV_WR_RDMA_READ, -1, 1 }, { REMOTE, IBV_WR_RDMA_READ, 0, LEN + 1 },
		{ IBV_ACCESS_REMOTE_READ, IBV_WR_RDMA_WRITE, 0, 8 },
		{ IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_READ, 0, 8 },
		{ 0, IBV_WR_RDMA_READ, 0, 8 }, { IBV_ACCESS_LOCAL_WRITE, IBV_WR_RDMA_WRITE, 0, 8 },
	};

	for EACH(row, bad) {
		BOUND(mw, part_of(self->mr, row->access));
		REFUSED(row->opcode, MINE + row->from, mw->rkey, row->len);
	}
	ASSERT_EQ(IBV_WC_SUCCESS, unbind(&self->s[1], mw));
	if (variant->type == IBV_MW_TYPE_2) {
		BOUND(mw, part_of(self->mr, REMOTE | IBV_ACCESS_ZERO_BASED));
		ASSERT_TRUE(usable(self->s, 0, mw->rkey));
		REFUSED(IBV_WR_RDMA_READ, MINE, mw->rkey, 1);
	} else {
		struct ibv_mw_bind_info info = part_of(self->mr, REMOTE | IBV_ACCESS_ZERO_BASED);

		ASSERT_EQ(IBV_WC_MW_BIND_ERR, bind(&self->s[1], mw, info));
		ASSERT_EQ(0, pair_reconnect(self->s));
	}
	ASSERT_EQ(0, ibv_dealloc_mw(mw));
}

/* A bind that is no good. libibverbs refuses one of type 1 to an MR of another PD; the device finds all others. */
static bool is_bad(struct side s[2], struct ibv_mw *mw, struct ibv_mw_bind_info info)
{
	if (mw->type == IBV_MW_TYPE_1 && mw->pd != info.mr->pd)
		return post_bind(s[1].qp, mw, &info) == EPERM;
	return bind(&s[1], mw, info) == IBV_WC_MW_BIND_ERR && !pair_reconnect(s);
}

/* MW-7, and what libibverbs and libskua refuse; then it is bound well. */
TEST_F(mw, bad_binds)
{
	struct side *b = &self->s[1];
	struct ibv_mw *mw = ibv_alloc_mw(b->pd, variant->type), *other;
	struct ibv_pd *pd = ibv_alloc_pd(b->context);
	struct ibv_mr *read_only = ibv_reg_mr(b->pd, b->mem, PAIR_MEM, IBV_ACCESS_MW_BIND),
		      *foreign = ibv_reg_mr(pd, b->mem, PAIR_MEM, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	const struct {
		const char *name;
		struct ibv_mw_bind_info info;
	} rows[] = {
		{ "an MR without the right", part_of(b->mr, REMOTE) },
		{ "to write to what is not to be written", part_of(read_only, REMOTE) },
		{ "an MR of another PD", part_of(foreign, REMOTE) },
		{ "in front of the MR", { self->mr, (uintptr_t)b->mem - 1, 8, REMOTE } },
		{ "behind the MR", { self->mr, (uintptr_t)b->mem + PAIR_MEM - 7, 8, REMOTE } },
		{ "longer than all memory", { self->mr, (uintptr_t)b->mem, UINT64_MAX, REMOTE } },
	};
	struct ibv_mw_bind_info info = part_of(self->mr, REMOTE);

	for EACH(row, rows) {
		ASSERT_TRUE(is_bad(self->s, mw, row->info)) {
			TH_LOG("%s", row->name);
		}
	}
	other = ibv_alloc_mw(pd, variant->type);
	ASSERT_TRUE(is_bad(self->s, other, info));
	ASSERT_EQ(0, ibv_dealloc_mw(other));

	info.mw_access_flags |= IBV_ACCESS_ON_DEMAND;
	ASSERT_EQ(EINVAL, post_bind(b->qp, mw, &info));
	info = part_of(self->mr, REMOTE);
	info.mr = NULL;
	ASSERT_EQ(EINVAL, post_bind(b->qp, mw, &info));
	BOUND(mw, part_of(self->mr, REMOTE));
	USABLE(mw->rkey);
	/* To read, no more is needed. */
	ASSERT_EQ(IBV_WC_SUCCESS, unbind(b, mw));
	BOUND(mw, part_of(read_only, IBV_ACCESS_REMOTE_READ));
	ASSERT_EQ(IBV_WC_SUCCESS, access_by(&self->s[0], self->s[0].qp, IBV_WR_RDMA_READ, MINE, mw->rkey, LEN));
	ASSERT_EQ(0, ibv_dealloc_mw(mw));
	ASSERT_EQ(0, ibv_dereg_mr(read_only));
	ASSERT_EQ(0, ibv_dereg_mr(foreign));
	ASSERT_EQ(0, ibv_dealloc_pd(pd));
}

/* MW-8, MW-11 */
TEST_F(mw, the_mr_is_busy)
{
	struct side *b = &self->s[1];
	struct ibv_mw *mw[3];

	for (int i = 0; i < 3; i++) {
		mw[i] = ibv_alloc_mw(b->pd, variant->type);
		ASSERT_NE(NULL, mw[i]);
		BOUND(mw[i], part_of(self->mr, REMOTE));
	}
	ASSERT_EQ(EBUSY, ibv_dereg_mr(self->mr));
	ASSERT_EQ(IBV_WC_SUCCESS, unbind(b, mw[0]));
	ASSERT_EQ(0, ibv_dealloc_mw(mw[1]));
	ASSERT_EQ(EBUSY, ibv_dereg_mr(self->mr));
	USABLE(mw[2]->rkey);
	ASSERT_EQ(IBV_WC_SUCCESS, unbind(b, mw[2]));
	ASSERT_EQ(0, ibv_dereg_mr(self->mr));
	self->mr = NULL;
	REFUSED(IBV_WR_RDMA_WRITE, MINE, mw[2]->rkey, 8);
	ASSERT_EQ(0, ibv_dealloc_mw(mw[0]));
	ASSERT_EQ(0, ibv_dealloc_mw(mw[2]));
}

/* MW-11: a window may go while it is bound. */
TEST_F(mw, a_window_goes)
{
	struct ibv_mw *mw = ibv_alloc_mw(self->s[1].pd, variant->type);
	uint32_t rkey;

	BOUND(mw, part_of(self->mr, REMOTE));
	rkey = mw->rkey;
	USABLE(rkey);
	ASSERT_EQ(0, ibv_dealloc_mw(mw));
	REFUSED(IBV_WR_RDMA_WRITE, MINE, rkey, 8);
}

/* MW-2, MW-3, MW-10: other QPs of the PD, and what becomes of windows when their QP is reset or goes. */
TEST_F(mw, the_qp_of_a_window)
{
	struct side *a = &self->s[0], *b = &self->s[1];
	bool shared = variant->type == IBV_MW_TYPE_1;
	struct ibv_mw *mw = ibv_alloc_mw(b->pd, variant->type);

	for (int destroy = 0; destroy < 2; destroy++) {
		struct ibv_qp *first[2] = { a->qp, b->qp };

		BOUND(mw, part_of(self->mr, REMOTE));
		a->qp = side_create_qp(a);
		b->qp = side_create_qp(b);
		ASSERT_EQ(0, pair_reconnect(self->s));
		if (shared) {
			USABLE(mw->rkey);
		} else {
			REFUSED(IBV_WR_RDMA_WRITE, MINE, mw->rkey, 8);
		}
		ASSERT_EQ(EBUSY, ibv_dereg_mr(self->mr));
		if (!shared)
			ASSERT_EQ(IBV_WC_LOC_QP_OP_ERR, local_inv(b, mw->rkey));
		ASSERT_EQ(0, pair_reconnect(self->s));
		if (destroy) {
			ASSERT_EQ(0, ibv_destroy_qp(first[0]));
			ASSERT_EQ(0, ibv_destroy_qp(first[1]));
		} else {
			ASSERT_EQ(0, ibv_destroy_qp(a->qp));
			ASSERT_EQ(0, ibv_destroy_qp(b->qp));
			a->qp = first[0];
			b->qp = first[1];
			USABLE(mw->rkey);
			ASSERT_EQ(0, pair_reconnect(self->s));
		}
		if (shared) {
			USABLE(mw->rkey);
			ASSERT_EQ(EBUSY, ibv_dereg_mr(self->mr));
			ASSERT_EQ(IBV_WC_SUCCESS, unbind(b, mw));
		} else {
			REFUSED(IBV_WR_RDMA_WRITE, MINE, mw->rkey, 8);
		}
		ASSERT_EQ(0, ibv_dereg_mr(self->mr));
		self->mr = bindable(b);
		ASSERT_NE(NULL, self->mr);
	}
	ASSERT_EQ(0, ibv_dealloc_mw(mw));
}

/* MW-1: programs cannot use it themselves. */
TEST_F(mw, no_lkey)
{
	struct side *b = &self->s[1];
	struct ibv_mw *mw = ibv_alloc_mw(b->pd, variant->type);
	struct ibv_sge sge = { MINE, 8, 0 };
	struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };
	struct ibv_wc wc;

	BOUND(mw, part_of(self->mr, REMOTE));
	sge.lkey = mw->rkey;
	ASSERT_EQ(0, ibv_post_send(b->qp, &wr, &bad));
	ASSERT_TRUE(side_wait(b, &wc, 20));
	ASSERT_EQ(IBV_WC_LOC_PROT_ERR, wc.status);
	ASSERT_EQ(0, pair_reconnect(self->s));
	ASSERT_EQ(0, ibv_dealloc_mw(mw));
}

/* MEM-7: the peer ends what is of type 2, and only that. */
TEST_F(mw, send_with_invalidate)
{
	struct side *a = &self->s[0], *b = &self->s[1];
	struct ibv_mw *mw = ibv_alloc_mw(b->pd, variant->type);
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_SEND_WITH_INV, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_recv_wr *bad_recv, recv = { 0 };
	struct ibv_wc wc;

	for (int i = 0; i < 2; i++) {
		BOUND(mw, part_of(self->mr, REMOTE));
		USABLE(mw->rkey);
		wr.invalidate_rkey = mw->rkey;
		ASSERT_EQ(0, ibv_post_recv(b->qp, &recv, &bad_recv));
		ASSERT_EQ(0, ibv_post_send(a->qp, &wr, &bad));
		ASSERT_TRUE(side_wait(a, &wc, 20));
		ASSERT_TRUE(side_wait(b, &wc, 20));
		if (variant->type == IBV_MW_TYPE_1) {
			ASSERT_EQ(IBV_WC_REM_INV_REQ_ERR, wc.status);
			ASSERT_EQ(0, pair_reconnect(self->s));
			USABLE(mw->rkey);
			continue;
		}
		ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
		ASSERT_TRUE(wc.wc_flags & IBV_WC_WITH_INV);
		ASSERT_EQ(mw->rkey, wc.invalidated_rkey);
		/* It may be bound again. */
	}
	ASSERT_EQ(0, ibv_dealloc_mw(mw));
}

/* After a bind that was flushed, or failed, the window serves as before. */
TEST_F(mw, a_flushed_bind)
{
	struct side *b = &self->s[1];
	struct ibv_mw *mw = ibv_alloc_mw(b->pd, variant->type);
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };

	ASSERT_EQ(0, ibv_modify_qp(b->qp, &error, IBV_QP_STATE));
	for (int i = 0; i < 3; i++)
		ASSERT_EQ(IBV_WC_WR_FLUSH_ERR, bind(b, mw, part_of(self->mr, REMOTE)));
	ASSERT_EQ(0, pair_reconnect(self->s));
	BOUND(mw, part_of(self->mr, REMOTE));
	USABLE(mw->rkey);
	ASSERT_EQ(0, ibv_dealloc_mw(mw));
}

/* Posting by calls; what is not asked for, and a bad one, is refused. */
TEST_F(mw, posted_by_calls)
{
	struct side *b = &self->s[1];
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = b->cq, .recv_cq = b->cq, .qp_type = IBV_QPT_RC, .pd = b->pd,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_LOCAL_INV |
				  IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ,
	};
	struct ibv_mw_bind_info info = part_of(self->mr, REMOTE);
	struct ibv_mw *mw = ibv_alloc_mw(b->pd, variant->type);
	struct ibv_qp *old = b->qp;
	struct ibv_qp_ex *qp;
	struct ibv_wc wc;

	b->qp = ibv_create_qp_ex(b->context, &attr);
	ASSERT_NE(NULL, b->qp);
	ASSERT_EQ(0, pair_reconnect(self->s));
	qp = ibv_qp_to_qp_ex(b->qp);
	ibv_wr_start(qp);
	qp->wr_id = 9;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_bind_mw(qp, mw, ibv_inc_rkey(mw->rkey), &info);
	ASSERT_EQ(0, ibv_wr_complete(qp));
	ASSERT_TRUE(side_wait(b, &wc, 20));
	ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
	ASSERT_EQ(9, wc.wr_id);
	ASSERT_EQ(IBV_WC_BIND_MW, wc.opcode);
	mw->rkey = ibv_inc_rkey(mw->rkey);
	USABLE(mw->rkey);
	info.mw_access_flags |= IBV_ACCESS_ON_DEMAND;
	ibv_wr_start(qp);
	ibv_wr_bind_mw(qp, mw, mw->rkey, &info);
	ASSERT_EQ(EINVAL, ibv_wr_complete(qp));
	USABLE(mw->rkey);
	ASSERT_EQ(0, ibv_dealloc_mw(mw));
	ASSERT_EQ(0, ibv_destroy_qp(b->qp));
	b->qp = old;
	ASSERT_EQ(0, pair_reconnect(self->s));
}

/* In whatever order a process leaves its objects, killed or not, all of them end. */
TEST_F(mw, a_process_dies)
{
	for (int i = 0; i < 4; i++) {
		struct side s[2];
		int ready[2], status;
		char byte;
		pid_t pid;

		ASSERT_EQ(0, pipe(ready));
		pid = fork();
		if (!pid) {
			struct ibv_mw *mw[20];
			struct ibv_mr *mr;
			bool good = !pair_open(s);

			/* The MR is made before the windows, or after them. */
			mr = i & 1 ? bindable(&s[1]) : NULL;
			for (int j = 0; good && j < 20; j++) {
				mw[j] = ibv_alloc_mw(s[1].pd, variant->type);
				good = mw[j];
			}
			mr = mr ? mr : bindable(&s[1]);
			for (int j = 0; good && j < 20; j++)
				good = bind(&s[1], mw[j], part_of(mr, REMOTE)) == IBV_WC_SUCCESS;
			if (!good || write(ready[1], "", 1) != 1)
				_exit(1);
			if (i & 2)
				pause();
			_exit(0);
		}
		close(ready[1]);
		ASSERT_EQ(1, read(ready[0], &byte, 1));
		close(ready[0]);
		if (i & 2)
			ASSERT_EQ(0, kill(pid, SIGKILL));
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		ASSERT_EQ(i & 2 ? SIGKILL : 0, status);
	}
	ASSERT_EQ(0, system("! dmesg | grep -E 'WARNING: |BUG: |skua.*refused'"));
}

TEST(there_are_two_types)
{
	static const int wrong[] = { 0, 3, 255 };
	struct side side;

	ASSERT_EQ(0, side_open(&side, "skua_1"));
	for EACH(type, wrong) {
		errno = 0;
		ASSERT_EQ(NULL, ibv_alloc_mw(side.pd, *type));
		ASSERT_EQ(EINVAL, errno);
	}
	side_close(&side);
}

TEST_HARNESS_MAIN
