// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * RDMA FLUSH and ATOMIC WRITE between two NICs: what the device says of itself, rights, completions on
 * either way of posting, and each error.
 */
#include <string.h>
#include <sys/mman.h>

#include "kselftest_harness.h"

#define RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_FLUSH_GLOBAL)

#include "flush.h"

TEST_F(flush, the_device_says_what_it_can)
{
	struct ibv_device_attr_ex attr = {};

	ASSERT_EQ(0, ibv_query_device_ex(self->s[0].context, NULL, &attr));
	EXPECT_TRUE(attr.device_cap_flags_ex & CAP_FLUSH_GLOBAL);
	EXPECT_TRUE(attr.device_cap_flags_ex & CAP_ATOMIC_WRITE);
	/* A guest's memory need not persist. */
	EXPECT_FALSE(attr.device_cap_flags_ex & CAP_FLUSH_PERSISTENT);
}

TEST_F(flush, what_was_written_is_there)
{
	struct side *a = &self->s[0];

	for (int i = 0; i < 100; i++) {
		pair_fill(a->mem, 65536, (uint8_t)i);
		ibv_wr_start(self->ex);
		self->ex->wr_flags = 0;
		ibv_wr_rdma_write(self->ex, self->mr->rkey, TARGET);
		ibv_wr_set_sge(self->ex, a->mr->lkey, (uintptr_t)a->mem, 65536);
		self->ex->wr_flags = IBV_SEND_SIGNALED;
		ASSERT_EQ(0, ibv_wr_complete(self->ex));
		FLUSHES(self->mr->rkey, TARGET, 65536, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
		ASSERT_EQ(0, memcmp(a->mem, self->target, 65536));
	}
	EXPECT_GE(side_counter(a, "rdma_tx_flush"), 100);
	EXPECT_GE(side_counter(&self->s[1], "rdma_rx_flush"), 100);
}

TEST_F(flush, of_a_whole_region_needs_no_range)
{
	FLUSHES(self->mr->rkey, 0, 0, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR);
	FLUSHES(self->mr->rkey, ~0ULL, (size_t)-1, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR);
	FLUSHES(self->mr->rkey, TARGET, 0, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
}

TEST_F(flush, beyond_its_region_is_refused)
{
	BY_CALL(FLUSH(self->mr->rkey, TARGET, HALF + 1, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE), 0, IBV_WC_REM_ACCESS_ERR);
}

TEST_F(flush, with_a_wrong_key_is_refused)
{
	BY_CALL(FLUSH(self->mr->rkey ^ 0x100, 0, 0, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR), 0, IBV_WC_REM_ACCESS_ERR);
}

TEST_F(flush, needs_the_right_of_the_region)
{
	BY_CALL(FLUSH(self->s[1].mr->rkey, TARGET, 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE), 0, IBV_WC_REM_ACCESS_ERR);
}

TEST_F(flush, needs_the_right_of_the_qp)
{
	ASSERT_EQ(0, connect_with(self->s, OPS, RIGHTS & ~IBV_ACCESS_FLUSH_GLOBAL));
	self->ex = ibv_qp_to_qp_ex(self->s[0].qp);
	self->ex->wr_flags = IBV_SEND_SIGNALED;
	BY_CALL(FLUSH(self->mr->rkey, TARGET, 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE), 0, IBV_WC_REM_ACCESS_ERR);
}

/* Neither a region nor a QP gets that right; a QP is asked for it as a matter of course. */
TEST_F(flush, to_persistence_is_refused)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	ASSERT_EQ(0, connect_with(self->s, OPS, RIGHTS | IBV_ACCESS_FLUSH_PERSISTENT));
	ASSERT_EQ(0, ibv_query_qp(self->s[1].qp, &attr, IBV_QP_ACCESS_FLAGS, &init));
	EXPECT_EQ(IBV_ACCESS_FLUSH_GLOBAL,
		  attr.qp_access_flags & (IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT));
	EXPECT_EQ(NULL, ibv_reg_mr(self->s[1].pd, self->s[1].mem, 4096, RIGHTS | IBV_ACCESS_FLUSH_PERSISTENT));
	self->ex = ibv_qp_to_qp_ex(self->s[0].qp);
	self->ex->wr_flags = IBV_SEND_SIGNALED;
	BY_CALL(FLUSH(self->mr->rkey, TARGET, 8, IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE), 0, IBV_WC_REM_ACCESS_ERR);
}

/* Nothing of it is posted. */
TEST_F(flush, nonsense_is_refused)
{
	static const struct { size_t length; uint8_t type, level; } bad[] = {
		{ 8, 0, IBV_FLUSH_RANGE }, { 8, 4, IBV_FLUSH_RANGE }, { 8, 0x10, IBV_FLUSH_RANGE },
		{ 8, IBV_FLUSH_GLOBAL, 2 }, { 1ULL << 32, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE },
	};
	struct ibv_send_wr wr = { .opcode = IBV_WR_FLUSH, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_wc wc;

	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ibv_wr_start(self->ex);
		FLUSH(self->mr->rkey, TARGET, bad[i].length, bad[i].type, bad[i].level);
		EXPECT_EQ(EINVAL, ibv_wr_complete(self->ex));
	}
	/* ibv_post_send() has no place for placement, range and key. */
	wr.wr.rdma.remote_addr = TARGET;
	wr.wr.rdma.rkey = self->mr->rkey;
	EXPECT_EQ(EINVAL, side_post(&self->s[0], &wr));
	ASSERT_EQ(0, ibv_poll_cq(self->s[0].cq, 1, &wc));
	FLUSHES(self->mr->rkey, TARGET, 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
}

TEST_F(flush, calls_that_were_not_declared_are_not_there)
{
	ASSERT_EQ(0, connect_with(self->s, IBV_QP_EX_WITH_RDMA_WRITE, RIGHTS));
	self->ex = ibv_qp_to_qp_ex(self->s[0].qp);
	EXPECT_EQ(NULL, self->ex->wr_flush);
	EXPECT_EQ(NULL, self->ex->wr_atomic_write);
}

#define WRITES(address, value) BY_CALL(ibv_wr_atomic_write(self->ex, self->mr->rkey, address, value), \
				       IBV_WC_ATOMIC_WRITE, IBV_WC_SUCCESS)

TEST_F(flush, an_atomic_write_changes_eight_bytes)
{
	static const uint8_t word[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	uint8_t around[24];

	memset(around, 0xa5, sizeof(around));
	memcpy(self->target, around, sizeof(around));
	WRITES(TARGET + 8, word);
	memcpy(around + 8, word, sizeof(word));
	ASSERT_EQ(0, memcmp(self->target, around, sizeof(around)));
}

TEST_F(flush, an_atomic_write_by_ibv_post_send)
{
	struct side *a = &self->s[0];
	struct ibv_sge sge;
	struct ibv_send_wr wr = conn_wr(&sge, self->s, IBV_WR_ATOMIC_WRITE, 8);
	struct ibv_wc wc;
	uint64_t value = 0x1122334455667788;

	wr.wr.rdma.rkey = self->mr->rkey;
	pair_fill(a->mem, 8, 7);
	WELL(side_sends(a, &wr));
	ASSERT_EQ(0, memcmp(a->mem, self->target, 8));
	sge.addr = (uintptr_t)&value;
	wr.send_flags |= IBV_SEND_INLINE;
	WELL(side_sends(a, &wr));
	ASSERT_EQ(0, memcmp(&value, self->target, 8));
	/* Of another length. */
	sge.length = 4;
	ASSERT_EQ(0, side_post(a, &wr));
	ASSERT_TRUE(side_wait(a, &wc, 5));
	ASSERT_EQ(IBV_WC_LOC_LEN_ERR, wc.status);
}

TEST_F(flush, an_unaligned_atomic_write_is_refused)
{
	uint64_t value = 1;

	BY_CALL(ibv_wr_atomic_write(self->ex, self->mr->rkey, TARGET + 4, &value), 0, IBV_WC_REM_INV_REQ_ERR);
}

TEST_F(flush, an_atomic_write_needs_the_right_to_write)
{
	struct ibv_mr *mr = ibv_reg_mr(self->s[1].pd, self->s[1].mem, PAIR_MEM, IBV_ACCESS_LOCAL_WRITE);
	uint64_t value = 1;

	ASSERT_NE(NULL, mr);
	BY_CALL(ibv_wr_atomic_write(self->ex, mr->rkey, TARGET, &value), 0, IBV_WC_REM_ACCESS_ERR);
	ASSERT_EQ(0, ibv_dereg_mr(mr));
}

/* Nobody has touched these pages. A FLUSH needs none of them, an ATOMIC WRITE waits for its own. */
TEST_F(flush, memory_on_demand)
{
	const int kind = MAP_PRIVATE | MAP_ANONYMOUS;
	uint8_t *mem = mmap(NULL, PAIR_MEM, PROT_READ | PROT_WRITE, kind, -1, 0);
	struct ibv_mr *mr;

	ASSERT_NE(MAP_FAILED, mem);
	mr = ibv_reg_mr(self->s[1].pd, mem, PAIR_MEM, RIGHTS | IBV_ACCESS_ON_DEMAND);
	ASSERT_NE(NULL, mr);
	FLUSHES(mr->rkey, (uintptr_t)mem, PAIR_MEM, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
	for (uint64_t i = 1; i <= 20; i++) {
		ASSERT_EQ(0, madvise(mem, PAIR_MEM, MADV_DONTNEED));
		BY_CALL(ibv_wr_atomic_write(self->ex, mr->rkey, (uintptr_t)mem + 4096, &i), IBV_WC_ATOMIC_WRITE,
			IBV_WC_SUCCESS);
		FLUSHES(mr->rkey, 0, 0, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR);
		ASSERT_EQ(i, *(uint64_t *)(void *)(mem + 4096));
	}
	ASSERT_EQ(0, ibv_dereg_mr(mr));
	ASSERT_EQ(0, munmap(mem, PAIR_MEM));
}

/* As a log does it: data, their FLUSH, the word that tells of them, its FLUSH. */
TEST_F(flush, a_log_is_never_ahead_of_its_data)
{
	struct side *a = &self->s[0];
	struct ibv_wc wc;

	for (uint64_t i = 1; i <= 500; i++) {
		uint64_t *words = (uint64_t *)(void *)a->mem;

		for (int k = 0; k < 64; k++)
			words[k] = i;
		ibv_wr_start(self->ex);
		self->ex->wr_flags = 0;
		ibv_wr_rdma_write(self->ex, self->mr->rkey, TARGET + 4096);
		ibv_wr_set_sge(self->ex, a->mr->lkey, (uintptr_t)a->mem, 512);
		FLUSH(self->mr->rkey, TARGET + 4096, 512, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
		ibv_wr_atomic_write(self->ex, self->mr->rkey, TARGET, &i);
		self->ex->wr_flags = IBV_SEND_SIGNALED;
		FLUSH(self->mr->rkey, TARGET, 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
		ASSERT_EQ(0, ibv_wr_complete(self->ex));
		while (__atomic_load_n((uint64_t *)(void *)self->target, __ATOMIC_ACQUIRE) != i)
			;
		ASSERT_EQ(i, ((uint64_t *)(void *)(self->target + 4096))[63]);
		ASSERT_TRUE(side_wait(a, &wc, 5));
		ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
		ASSERT_EQ(IBV_WC_FLUSH, wc.opcode);
	}
}

TEST_HARNESS_MAIN
