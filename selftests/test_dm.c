// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Device memory of a program: skua_1 has it, and its peer on skua_0 uses it.
 * Rules: Documentation/manual/device-memory.rst.
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

#define SIZE		200000u		/* of the DM; where the MR begins in it, and its length */
#define AT		5004u
#define LEN		150001u
#define REMOTE		(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define ALL		(IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE | REMOTE | IBV_ACCESS_FLUSH_GLOBAL)

FIXTURE(dm) {
	struct side s[2];
	struct ibv_dm *dm;	/* of skua_1 */
	struct ibv_mr *mr;	/* of a part of it */
	uint8_t *bytes;		/* what is to be in it */
};

static struct ibv_dm *alloc(struct ibv_context *context, size_t length)
{
	struct ibv_alloc_dm_attr attr = { .length = length, .log_align_req = 6 };

	return ibv_alloc_dm(context, &attr);
}

/* Both QPs allow all that there is. */
static int allow_all(struct side s[2])
{
	struct ibv_qp_attr attr = { .qp_access_flags = REMOTE | IBV_ACCESS_FLUSH_GLOBAL };

	return ibv_modify_qp(s[0].qp, &attr, IBV_QP_ACCESS_FLAGS) || ibv_modify_qp(s[1].qp, &attr, IBV_QP_ACCESS_FLAGS);
}

FIXTURE_SETUP(dm)
{
	ASSERT_EQ(0, pair_open(self->s));
	ASSERT_EQ(0, allow_all(self->s));
	self->dm = alloc(self->s[1].context, SIZE);
	ASSERT_NE(NULL, self->dm);
	self->mr = ibv_reg_dm_mr(self->s[1].pd, self->dm, AT, LEN, ALL);
	ASSERT_NE(NULL, self->mr);
	self->bytes = malloc(SIZE);
	ASSERT_NE(NULL, self->bytes);
	pair_fill(self->bytes, SIZE, 3);
}

FIXTURE_TEARDOWN(dm)
{
	EXPECT_EQ(0, ibv_dereg_mr(self->mr));
	EXPECT_EQ(0, ibv_free_dm(self->dm));
	EXPECT_EQ(0, pair_reconnect(self->s));
	EXPECT_TRUE(pair_transfer(self->s));
	pair_close(self->s);
	free(self->bytes);
}

static bool holds(struct ibv_dm *dm, uint32_t from, const uint8_t *bytes, uint32_t len)
{
	uint8_t *seen = malloc(len);
	bool same = seen && !ibv_memcpy_from_dm(seen, dm, from, len) && !memcmp(seen, bytes, len);

	free(seen);
	return same;
}

static bool is_zero(struct ibv_dm *dm, uint32_t len)
{
	uint8_t *zero = calloc(1, len);
	bool is = zero && holds(dm, 0, zero, len);

	free(zero);
	return is;
}

/* The status of an operation on the other's memory. */
static int remote(struct side *a, enum ibv_wr_opcode opcode, void *addr, uint32_t len, uint64_t raddr, uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)addr, len, a->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_wc wc;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = raddr;
		wr.wr.atomic.compare_add = 5;
		wr.wr.atomic.rkey = rkey;
	} else {
		wr.wr.rdma.remote_addr = raddr;
		wr.wr.rdma.rkey = rkey;
	}
	if (ibv_post_send(a->qp, &wr, &bad) || !side_wait(a, &wc, 20))
		return -1;
	return wc.status;
}

/* DM-1, LIM-1 */
TEST_F(dm, device_says_so)
{
	struct ibv_device_attr_ex attr;

	ASSERT_EQ(0, ibv_query_device_ex(self->s[1].context, NULL, &attr));
	ASSERT_LE(65536, attr.max_dm_size);
	ASSERT_TRUE(is_zero(self->dm, SIZE));
	ASSERT_EQ(NULL, self->mr->addr);
	ASSERT_EQ(LEN, self->mr->length);
	ASSERT_EQ(self->mr->lkey, self->mr->rkey);
}

/* DM-6: from and to any place of memory, in one piece of the command or many. */
TEST_F(dm, copied_to_and_fro)
{
	static const struct { uint32_t offset, len; } rows[] = {
		{ 0, SIZE }, { 4, 4 }, { SIZE - 4, 4 }, { 8, 65536 }, { 12, 65540 }, { 0, 32768 }, { 32764, 32776 }, { 100, 0 },
	};
	uint8_t *mem = self->s[1].mem;

	ASSERT_EQ(0, ibv_memcpy_to_dm(self->dm, 0, self->bytes, SIZE));
	for EACH(row, rows) {
		for (unsigned int shift = 0; shift < 9; shift++) {
			memcpy(mem + shift, self->bytes + SIZE - row->len, row->len);
			ASSERT_EQ(0, ibv_memcpy_to_dm(self->dm, row->offset, mem + shift, row->len));
			memcpy(self->bytes + row->offset, mem + shift, row->len);
			memset(mem, 0x5a, SIZE + 16);
			ASSERT_EQ(0, ibv_memcpy_from_dm(mem + shift, self->dm, row->offset, row->len));
			ASSERT_EQ(0, memcmp(mem + shift, self->bytes + row->offset, row->len));
			ASSERT_EQ(0x5a, mem[shift + row->len]);
			ASSERT_TRUE(!shift || mem[shift - 1] == 0x5a);
		}
		ASSERT_TRUE(holds(self->dm, 0, self->bytes, SIZE));
	}
}

/* DM-4, DM-5 */
TEST_F(dm, a_peer_writes_and_reads)
{
	struct side *a = &self->s[0];

	memcpy(a->mem, self->bytes, LEN);
	ASSERT_EQ(IBV_WC_SUCCESS, remote(a, IBV_WR_RDMA_WRITE, a->mem, LEN, 0, self->mr->rkey));
	ASSERT_TRUE(holds(self->dm, AT, self->bytes, LEN & ~3u));
	ASSERT_TRUE(is_zero(self->dm, AT));
	ASSERT_EQ(0, ibv_memcpy_to_dm(self->dm, 0, self->bytes, SIZE));
	ASSERT_EQ(IBV_WC_SUCCESS, remote(a, IBV_WR_RDMA_READ, a->mem + PAIR_MEM / 2, LEN - 3, 3, self->mr->rkey));
	ASSERT_EQ(0, memcmp(a->mem + PAIR_MEM / 2, self->bytes + AT + 3, LEN - 3));
}

/* DM-5: words, which the owner and the peer change in turn. */
TEST_F(dm, atomics)
{
	struct ibv_mr *mr = ibv_reg_dm_mr(self->s[1].pd, self->dm, 64, 64, ALL);
	struct side *a = &self->s[0];
	uint64_t word = 1000, *got = (uint64_t *)a->mem;

	ASSERT_NE(NULL, mr);
	ASSERT_EQ(0, ibv_memcpy_to_dm(self->dm, 72, &word, 8));
	for (uint64_t i = 0; i < 100; i++) {
		ASSERT_EQ(IBV_WC_SUCCESS, remote(a, IBV_WR_ATOMIC_FETCH_AND_ADD, got, 8, 8, mr->rkey));
		ASSERT_EQ(1000 + 6 * i, *got);
		ASSERT_EQ(0, ibv_memcpy_from_dm(&word, self->dm, 72, 8));
		ASSERT_EQ(1005 + 6 * i, word);
		word++;
		ASSERT_EQ(0, ibv_memcpy_to_dm(self->dm, 72, &word, 8));
	}
	*got = 77;
	ASSERT_EQ(IBV_WC_SUCCESS, remote(a, IBV_WR_ATOMIC_WRITE, got, 8, 8, mr->rkey));
	ASSERT_EQ(0, ibv_memcpy_from_dm(&word, self->dm, 72, 8));
	ASSERT_EQ(77, word);
	ASSERT_EQ(0, ibv_dereg_mr(mr));
}

/* DM-5: a FLUSH goes by calls only. */
TEST_F(dm, flush)
{
	struct side *a = &self->s[0];
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = a->cq, .recv_cq = a->cq, .qp_type = IBV_QPT_RC, .pd = a->pd,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_RDMA_WRITE,
	};
	struct ibv_qp *old = a->qp;
	struct ibv_qp_ex *qp;
	struct ibv_wc wc;

	a->qp = ibv_create_qp_ex(a->context, &attr);
	ASSERT_NE(NULL, a->qp);
	ASSERT_EQ(0, pair_reconnect(self->s));
	ASSERT_EQ(0, allow_all(self->s));
	qp = ibv_qp_to_qp_ex(a->qp);
	memcpy(a->mem, self->bytes, 4000);
	ibv_wr_start(qp);
	qp->wr_flags = 0;
	ibv_wr_rdma_write(qp, self->mr->rkey, 100);
	ibv_wr_set_sge(qp, a->mr->lkey, (uintptr_t)a->mem, 4000);
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_flush(qp, self->mr->rkey, 100, 4000, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
	ASSERT_EQ(0, ibv_wr_complete(qp));
	ASSERT_TRUE(side_wait(a, &wc, 20));
	ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
	ASSERT_EQ(IBV_WC_FLUSH, wc.opcode);
	ASSERT_TRUE(holds(self->dm, AT + 100, self->bytes, 4000));
	ASSERT_EQ(0, ibv_destroy_qp(a->qp));
	a->qp = old;
}

/* DM-5: what is sent, received, written and read lies in device memory at both ends. */
TEST_F(dm, local_work)
{
	struct side *a = &self->s[0], *b = &self->s[1];
	struct ibv_dm *dm = alloc(a->context, SIZE);
	struct ibv_mr *mr = ibv_reg_dm_mr(a->pd, dm, 0, SIZE, ALL);
	struct ibv_sge from = { 1, LEN - 1, mr->lkey }, to = { 0, LEN, self->mr->lkey };
	struct ibv_recv_wr *bad_recv, recv = { .sg_list = &to, .num_sge = 1 };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_wc wc;

	ASSERT_EQ(0, ibv_memcpy_to_dm(dm, 0, self->bytes, SIZE));
	ASSERT_EQ(0, ibv_post_recv(b->qp, &recv, &bad_recv));
	ASSERT_EQ(0, ibv_post_send(a->qp, &wr, &bad));
	ASSERT_TRUE(side_wait(b, &wc, 20));
	ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
	ASSERT_EQ(LEN - 1, wc.byte_len);
	ASSERT_TRUE(side_wait(a, &wc, 20));
	ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
	ASSERT_TRUE(holds(self->dm, AT, self->bytes + 1, LEN - 1));
	pair_fill(b->mem, SIZE, 9);
	from = (struct ibv_sge){ 4, SIZE - 4, mr->lkey };
	wr.opcode = IBV_WR_RDMA_READ;
	wr.wr.rdma.remote_addr = (uintptr_t)b->mem;
	wr.wr.rdma.rkey = b->mr->rkey;
	WELL(side_sends(a, &wr));
	ASSERT_TRUE(holds(dm, 4, b->mem, SIZE - 4));
	memset(b->mem, 0, SIZE);
	wr.opcode = IBV_WR_RDMA_WRITE;
	WELL(side_sends(a, &wr));
	ASSERT_TRUE(holds(dm, 4, b->mem, SIZE - 4));
	ASSERT_EQ(0, ibv_dereg_mr(mr));
	ASSERT_EQ(0, ibv_free_dm(dm));
}

/* DM-5: entries of an SRQ name device memory, too. */
TEST_F(dm, receives_of_an_srq)
{
	struct side *a = &self->s[0], *b = &self->s[1];
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 4, .max_sge = 2 } };
	struct ibv_qp_init_attr attr = { .send_cq = b->cq, .recv_cq = b->cq, .qp_type = IBV_QPT_RC, .cap.max_send_wr = 1 };
	struct ibv_sge to[2] = { { 0, 1000, self->mr->lkey }, { (uintptr_t)b->mem, 4000, b->mr->lkey } };
	struct ibv_recv_wr *bad, recv = { .sg_list = to, .num_sge = 2 };
	struct ibv_sge from = { (uintptr_t)a->mem, 3000, a->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_qp *old = b->qp;
	struct ibv_wc wc;

	attr.srq = ibv_create_srq(b->pd, &srq_attr);
	ASSERT_NE(NULL, attr.srq);
	b->qp = ibv_create_qp(b->pd, &attr);
	ASSERT_NE(NULL, b->qp);
	ASSERT_EQ(0, pair_reconnect(self->s));
	ASSERT_EQ(0, ibv_post_srq_recv(attr.srq, &recv, &bad));
	memcpy(a->mem, self->bytes, 3000);
	WELL(side_sends(a, &wr));
	ASSERT_TRUE(side_wait(b, &wc, 20));
	ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
	ASSERT_TRUE(holds(self->dm, AT, self->bytes, 1000));
	ASSERT_EQ(0, memcmp(b->mem, self->bytes + 1000, 2000));
	ASSERT_EQ(0, ibv_destroy_qp(b->qp));
	ASSERT_EQ(0, ibv_destroy_srq(attr.srq));
	b->qp = old;
}

/* DM-4: bounds and rights are those of the MR. */
TEST_F(dm, bounds_and_rights)
{
	struct side *a = &self->s[0], *b = &self->s[1];
	struct ibv_mr *to_read = ibv_reg_dm_mr(b->pd, self->dm, 0, SIZE, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_READ),
		      *none = ibv_reg_dm_mr(b->pd, self->dm, 0, SIZE, IBV_ACCESS_ZERO_BASED);
	const struct {
		struct ibv_mr *mr;
		enum ibv_wr_opcode opcode;
		uint64_t addr;
		uint32_t len;
	} rows[] = {
		{ self->mr, IBV_WR_RDMA_WRITE, LEN, 1 }, { self->mr, IBV_WR_RDMA_READ, 1, LEN },
		{ self->mr, IBV_WR_RDMA_READ, -1ull, 1 }, { self->mr, IBV_WR_RDMA_WRITE, (uintptr_t)b->mem, 8 },
		{ to_read, IBV_WR_RDMA_WRITE, 0, 8 }, { to_read, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8 },
		{ none, IBV_WR_RDMA_READ, 0, 8 }, { self->mr, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8 },
	};

	memset(a->mem, 0x77, PAIR_MEM / 2);
	for EACH(row, rows) {
		ASSERT_EQ(IBV_WC_REM_ACCESS_ERR, remote(a, row->opcode, a->mem, row->len, row->addr, row->mr->rkey));
		ASSERT_EQ(0, pair_reconnect(self->s));
		ASSERT_EQ(0, allow_all(self->s));
	}
	ASSERT_TRUE(is_zero(self->dm, SIZE));
	ASSERT_EQ(0, ibv_dereg_mr(to_read));
	ASSERT_EQ(0, ibv_dereg_mr(none));
}

/* DM-3, DM-4: MRs of one DM in several PDs. */
TEST_F(dm, busy_while_there_are_mrs)
{
	struct side *a = &self->s[0], *b = &self->s[1];
	struct ibv_pd *pd = ibv_alloc_pd(b->context);
	struct ibv_mr *mr = ibv_reg_dm_mr(pd, self->dm, 0, SIZE, ALL);
	uint32_t rkey = self->mr->rkey;

	ASSERT_NE(NULL, mr);
	ASSERT_EQ(EBUSY, ibv_free_dm(self->dm));
	ASSERT_EQ(0, ibv_dereg_mr(self->mr));
	ASSERT_EQ(EBUSY, ibv_free_dm(self->dm));
	/* Its key is good in its own PD only, and the key of the other is gone. */
	ASSERT_EQ(IBV_WC_REM_ACCESS_ERR, remote(a, IBV_WR_RDMA_WRITE, a->mem, 8, 0, mr->rkey));
	ASSERT_EQ(0, pair_reconnect(self->s));
	ASSERT_EQ(IBV_WC_REM_ACCESS_ERR, remote(a, IBV_WR_RDMA_WRITE, a->mem, 8, 0, rkey));
	ASSERT_EQ(0, pair_reconnect(self->s));
	ASSERT_EQ(0, ibv_dereg_mr(mr));
	ASSERT_EQ(0, ibv_dealloc_pd(pd));
	ASSERT_EQ(0, ibv_free_dm(self->dm));
	self->dm = alloc(b->context, SIZE);
	ASSERT_TRUE(is_zero(self->dm, SIZE));
	self->mr = ibv_reg_dm_mr(b->pd, self->dm, AT, LEN, ALL);
}

/* MW-7: no window is bound to it. */
TEST_F(dm, no_windows)
{
	struct side *b = &self->s[1];
	struct ibv_mw *mw = ibv_alloc_mw(b->pd, IBV_MW_TYPE_2);
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED,
		.bind_mw = { mw, mw->rkey, { self->mr, 0, 64, IBV_ACCESS_REMOTE_READ } },
	};
	struct ibv_wc wc;

	ASSERT_EQ(0, side_post(b, &wr));
	ASSERT_TRUE(side_wait(b, &wc, 20));
	ASSERT_EQ(IBV_WC_MW_BIND_ERR, wc.status);
	ASSERT_EQ(0, ibv_dealloc_mw(mw));
}

/* DM-2: to the last page, and all over again. */
TEST_F(dm, as_much_as_there_is)
{
	struct side *a = &self->s[1], *b = &self->s[0];
	struct ibv_context *context = b->context;
	struct ibv_device_attr_ex attr;
	static struct ibv_dm *dms[100000];
	unsigned int n = 0;

	memcpy(a->mem, self->bytes, 4096);
	ASSERT_EQ(0, ibv_query_device_ex(context, NULL, &attr));
	for (int round = 0; round < 2; round++) {
		struct ibv_dm *all = alloc(context, attr.max_dm_size);

		struct ibv_mr *mr;

		ASSERT_NE(NULL, all);
		ASSERT_EQ(NULL, alloc(context, 1));
		ASSERT_EQ(ENOMEM, errno);
		mr = ibv_reg_dm_mr(b->pd, all, 0, attr.max_dm_size, ALL);
		ASSERT_NE(NULL, mr);
		ASSERT_EQ(IBV_WC_SUCCESS, remote(a, IBV_WR_RDMA_WRITE, a->mem, 4096, attr.max_dm_size - 4096, mr->rkey));
		ASSERT_TRUE(holds(all, (uint32_t)attr.max_dm_size - 4096, self->bytes, 4096));
		ASSERT_EQ(0, ibv_dereg_mr(mr));
		ASSERT_EQ(0, ibv_free_dm(all));
		for (n = 0; n < 100000 && (dms[n] = alloc(context, 1)); n++)
			;
		ASSERT_EQ(attr.max_dm_size / 4096, n);
		ASSERT_EQ(ENOMEM, errno);
		while (n--)
			ASSERT_EQ(0, ibv_free_dm(dms[n]));
	}
}

/* Another context of the same file finds the same memory. */
TEST_F(dm, imported)
{
	struct ibv_context *context = ibv_import_device(dup(self->s[1].context->cmd_fd));
	struct ibv_dm *dm;

	ASSERT_NE(NULL, context);
	errno = 0;
	ASSERT_EQ(NULL, ibv_import_dm(context, self->dm->handle + 1000));
	ASSERT_EQ(ENOENT, errno);
	dm = ibv_import_dm(context, self->dm->handle);
	ASSERT_NE(NULL, dm);
	ASSERT_EQ(0, ibv_memcpy_to_dm(dm, 0, self->bytes, SIZE));
	ASSERT_TRUE(holds(self->dm, 0, self->bytes, SIZE));
	ASSERT_TRUE(holds(dm, 0, self->bytes, SIZE));
	ibv_unimport_dm(dm);
	ASSERT_EQ(0, ibv_close_device(context));
	ASSERT_TRUE(holds(self->dm, 0, self->bytes, SIZE));
}

/* All of it, with an MR, goes with a process, killed or not. */
TEST_F(dm, a_process_dies)
{
	struct ibv_device_attr_ex attr;

	ASSERT_EQ(0, ibv_query_device_ex(self->s[0].context, NULL, &attr));
	for (int i = 0; i < 4; i++) {
		int ready[2], status;
		char byte;
		pid_t pid;

		ASSERT_EQ(0, pipe(ready));
		pid = fork();
		if (!pid) {
			struct ibv_dm *dm;
			struct side side;
			bool good = !side_open(&side, "skua_0") && (dm = alloc(side.context, attr.max_dm_size));

			for (int j = 0; good && j < 10; j++)
				good = ibv_reg_dm_mr(side.pd, dm, 0, 64, ALL);
			if (!good || write(ready[1], "", 1) != 1)
				_exit(1);
			if (i & 1)
				pause();
			_exit(0);
		}
		close(ready[1]);
		ASSERT_EQ(1, read(ready[0], &byte, 1));
		close(ready[0]);
		if (i & 1)
			ASSERT_EQ(0, kill(pid, SIGKILL));
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		ASSERT_EQ(i & 1 ? SIGKILL : 0, status);
	}
	ASSERT_EQ(0, system("! dmesg | grep -E 'WARNING: |BUG: |skua.*refused'"));
}

TEST_HARNESS_MAIN
