// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * RDMA FLUSH to persistence, between two NICs with persistent=on: what the device says of itself, what librpma asks
 * for, and which memory cannot be made persistent.
 */
#include <string.h>

#include "kselftest_harness.h"

#define RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
		IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT)

#include "flush.h"

TEST_F(flush, the_device_says_what_it_can)
{
	struct ibv_device_attr_ex attr = {};

	ASSERT_EQ(0, ibv_query_device_ex(self->s[0].context, NULL, &attr));
	EXPECT_TRUE(attr.device_cap_flags_ex & CAP_FLUSH_GLOBAL);
	EXPECT_TRUE(attr.device_cap_flags_ex & CAP_FLUSH_PERSISTENT);
}

TEST_F(flush, what_was_written_persists)
{
	struct side *a = &self->s[0];
	struct ibv_wc wc;

	for (int i = 0; i < 200; i++) {
		uint8_t type = IBV_FLUSH_PERSISTENT | (i % 3 ? 0 : IBV_FLUSH_GLOBAL);

		pair_fill(a->mem, 9000, (uint8_t)i);
		ibv_wr_start(self->ex);
		self->ex->wr_flags = 0;
		ibv_wr_rdma_write(self->ex, self->mr->rkey, TARGET);
		ibv_wr_set_sge(self->ex, a->mr->lkey, (uintptr_t)a->mem, 9000);
		self->ex->wr_flags = IBV_SEND_SIGNALED;
		FLUSH(self->mr->rkey, TARGET, 9000, type, i & 1 ? IBV_FLUSH_MR : IBV_FLUSH_RANGE);
		ASSERT_EQ(0, ibv_wr_complete(self->ex));
		ASSERT_TRUE(side_wait(a, &wc, 5));
		ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
		ASSERT_EQ(IBV_WC_FLUSH, wc.opcode);
		ASSERT_EQ(0, memcmp(self->target, a->mem, 9000));
	}
}

TEST_F(flush, many_are_outstanding)
{
	struct ibv_wc wc;

	ibv_wr_start(self->ex);
	for (int i = 0; i < PAIR_WRS; i++)
		FLUSH(self->mr->rkey, TARGET + i * 64, 64, IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE);
	ASSERT_EQ(0, ibv_wr_complete(self->ex));
	for (int i = 0; i < PAIR_WRS; i++) {
		ASSERT_TRUE(side_wait(&self->s[0], &wc, 5));
		ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
	}
}

TEST_F(flush, a_flush_needs_the_right)
{
	struct ibv_mr *mr = ibv_reg_mr(self->s[1].pd, self->s[1].mem, PAIR_MEM, RIGHTS & ~IBV_ACCESS_FLUSH_PERSISTENT);

	ASSERT_NE(NULL, mr);
	FLUSHES(mr->rkey, TARGET, 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
	BY_CALL(FLUSH(mr->rkey, TARGET, 8, IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE), 0, IBV_WC_REM_ACCESS_ERR);
	ASSERT_EQ(0, ibv_dereg_mr(mr));
}

/* Pages that come and go, and memory of the device. */
TEST_F(flush, memory_that_cannot_persist)
{
	struct side *b = &self->s[1];
	struct ibv_alloc_dm_attr attr = { .length = 4096 };
	struct ibv_dm *dm = ibv_alloc_dm(b->context, &attr);

	EXPECT_EQ(NULL, ibv_reg_mr(b->pd, b->mem, 4096, RIGHTS | IBV_ACCESS_ON_DEMAND));
	EXPECT_EQ(EOPNOTSUPP, errno);
	ASSERT_NE(NULL, dm);
	EXPECT_EQ(NULL, ibv_reg_dm_mr(b->pd, dm, 0, 4096, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_FLUSH_PERSISTENT));
	EXPECT_EQ(EOPNOTSUPP, errno);
	ASSERT_EQ(0, ibv_free_dm(dm));
}

TEST_HARNESS_MAIN
