// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * MRs of a program that change (ibv_rereg_mr): skua_1 has them, and its peer on skua_0 uses them.
 * Rules: MR-10 to MR-12 of Documentation/manual/objects.rst.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pair.h"
#include "rows.h"

#define LEN		50001u
#define TRANSLATION	IBV_REREG_MR_CHANGE_TRANSLATION
#define ACCESS		IBV_REREG_MR_CHANGE_ACCESS
#define PD		IBV_REREG_MR_CHANGE_PD
#define ALL		(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

FIXTURE(rereg) {
	struct side s[2];
	struct ibv_pd *pd;	/* another one of skua_1 */
	struct ibv_mr *mr;	/* of skua_1 */
	uint32_t key;
	uint8_t *first, *second;	/* where it is, and where it is to be */
};

FIXTURE_SETUP(rereg)
{
	ASSERT_EQ(0, pair_open(self->s));
	self->pd = ibv_alloc_pd(self->s[1].context);
	ASSERT_NE(NULL, self->pd);
	self->first = self->s[1].mem + 5000;
	self->second = self->s[1].mem + 200003;
	self->mr = ibv_reg_mr(self->s[1].pd, self->first, LEN, ALL);
	ASSERT_NE(NULL, self->mr);
	self->key = self->mr->rkey;
}

FIXTURE_TEARDOWN(rereg)
{
	EXPECT_EQ(self->key, self->mr->rkey);
	EXPECT_EQ(self->key, self->mr->lkey);
	EXPECT_EQ(0, ibv_dereg_mr(self->mr));
	EXPECT_EQ(0, ibv_dealloc_pd(self->pd));
	EXPECT_EQ(0, pair_reconnect(self->s));
	EXPECT_TRUE(pair_transfer(self->s));
	pair_close(self->s);
}

/* The status of an operation of the peer. */
static int remote(struct side *a, enum ibv_wr_opcode opcode, const void *there, uint32_t rkey, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)a->mem, len, a->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)there, rkey },
	};
	struct ibv_wc wc;

	if (ibv_post_send(a->qp, &wr, &bad) || !side_wait(a, &wc, 20))
		return -1;
	return wc.status;
}

/* All of it is written by the peer, and read again. */
static bool usable(struct side s[2], struct ibv_mr *mr, uint8_t *at)
{
	static uint8_t seed;
	struct side *a = &s[0];
	uint32_t len = (uint32_t)mr->length;
	uint8_t *copy = malloc(len);
	bool good;

	pair_fill(a->mem, len, ++seed);
	memcpy(copy, a->mem, len);
	memset(at, 0, len);
	good = mr->addr == at && remote(a, IBV_WR_RDMA_WRITE, at, mr->rkey, len) == IBV_WC_SUCCESS &&
	       !memcmp(at, copy, len);
	memset(a->mem, 0, len);
	good = good && remote(a, IBV_WR_RDMA_READ, at, mr->rkey, len) == IBV_WC_SUCCESS && !memcmp(a->mem, copy, len);
	free(copy);
	return good;
}

#define USABLE(at)	ASSERT_TRUE(usable(self->s, self->mr, at))
#define REFUSED(opcode, at) do {							\
	ASSERT_EQ(IBV_WC_REM_ACCESS_ERR, remote(&self->s[0], opcode, at, self->key, 8)); \
	ASSERT_EQ(0, pair_reconnect(self->s));						\
} while (0)

/* MR-10 */
TEST_F(rereg, other_memory)
{
	USABLE(self->first);
	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(0, ibv_rereg_mr(self->mr, TRANSLATION, NULL, self->second, LEN / 2, 0));
		USABLE(self->second);
		REFUSED(IBV_WR_RDMA_WRITE, self->first);
		REFUSED(IBV_WR_RDMA_READ, self->second + LEN / 2);
		ASSERT_EQ(0, ibv_rereg_mr(self->mr, TRANSLATION, NULL, self->first, LEN, 0));
		USABLE(self->first);
		REFUSED(IBV_WR_RDMA_READ, self->second);
	}
}

/* The memory of before may be unmapped, and nothing of it stays pinned. */
TEST_F(rereg, the_old_memory_goes)
{
	for (int i = 0; i < 100; i++) {
		uint8_t *mem = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		ASSERT_NE(MAP_FAILED, mem);
		ASSERT_EQ(0, ibv_rereg_mr(self->mr, TRANSLATION, NULL, mem, 1 << 20, 0));
		ASSERT_EQ(IBV_WC_SUCCESS, remote(&self->s[0], IBV_WR_RDMA_WRITE, mem + 100, self->key, 1000));
		ASSERT_EQ(0, memcmp(mem + 100, self->s[0].mem, 1000));
		ASSERT_EQ(0, ibv_rereg_mr(self->mr, TRANSLATION, NULL, self->first, LEN, 0));
		ASSERT_EQ(0, munmap(mem, 1 << 20));
	}
	USABLE(self->first);
}

/* MR-10 MEM-3 */
TEST_F(rereg, other_rights)
{
	ASSERT_EQ(0, ibv_rereg_mr(self->mr, ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_READ));
	REFUSED(IBV_WR_RDMA_WRITE, self->first);
	ASSERT_EQ(IBV_WC_SUCCESS, remote(&self->s[0], IBV_WR_RDMA_READ, self->first, self->key, 100));
	ASSERT_EQ(0, ibv_rereg_mr(self->mr, ACCESS, NULL, NULL, 0, 0));
	REFUSED(IBV_WR_RDMA_READ, self->first);
	ASSERT_EQ(0, ibv_rereg_mr(self->mr, ACCESS, NULL, NULL, 0, ALL));
	USABLE(self->first);
}

/* Memory that was pinned for reading may be shared, or not be there at all: it becomes this process's own. */
TEST_F(rereg, memory_that_may_be_written_now)
{
	uint8_t *mem = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *fixed = mmap(NULL, 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_EQ(0, ibv_rereg_mr(self->mr, TRANSLATION | ACCESS, NULL, mem + 7, 60000, IBV_ACCESS_REMOTE_READ));
	REFUSED(IBV_WR_RDMA_WRITE, mem + 7);
	ASSERT_EQ(0, ibv_rereg_mr(self->mr, ACCESS, NULL, NULL, 0, ALL));
	USABLE(mem + 7);
	/* Here it cannot be. */
	ASSERT_EQ(0, ibv_rereg_mr(self->mr, TRANSLATION | ACCESS, NULL, fixed, 65536, IBV_ACCESS_REMOTE_READ));
	ASSERT_EQ(IBV_REREG_MR_ERR_CMD, ibv_rereg_mr(self->mr, ACCESS, NULL, NULL, 0, ALL));
	ASSERT_EQ(EFAULT, errno);
	ASSERT_EQ(IBV_WC_SUCCESS, remote(&self->s[0], IBV_WR_RDMA_READ, fixed, self->key, 65536));
	REFUSED(IBV_WR_RDMA_WRITE, fixed);
	ASSERT_EQ(0, ibv_rereg_mr(self->mr, TRANSLATION | ACCESS, NULL, self->first, LEN, ALL));
	USABLE(self->first);
	/* The rights stay, and with them what memory has to be. */
	ASSERT_EQ(IBV_REREG_MR_ERR_CMD, ibv_rereg_mr(self->mr, TRANSLATION, NULL, fixed, 65536, 0));
	ASSERT_EQ(EFAULT, errno);
	munmap(mem, 65536);
	munmap(fixed, 65536);
}

/* MR-10 PD-1 OBJ-7 */
TEST_F(rereg, another_pd)
{
	ASSERT_EQ(0, ibv_rereg_mr(self->mr, PD, self->pd, NULL, 0, 0));
	ASSERT_EQ(self->pd, self->mr->pd);
	REFUSED(IBV_WR_RDMA_WRITE, self->first);
	ASSERT_EQ(EBUSY, ibv_dealloc_pd(self->pd));
	ASSERT_EQ(0, ibv_rereg_mr(self->mr, PD, self->s[1].pd, NULL, 0, 0));
	ASSERT_EQ(0, ibv_rereg_mr(self->mr, PD, self->s[1].pd, NULL, 0, 0));
	USABLE(self->first);
}

/* All that can be changed together. */
TEST_F(rereg, all_at_once)
{
	for (int flags = 1; flags <= IBV_REREG_MR_FLAGS_SUPPORTED; flags++) {
		struct ibv_pd *pd = flags & PD ? self->pd : NULL;

		ASSERT_EQ(0, ibv_rereg_mr(self->mr, flags, pd, flags & TRANSLATION ? self->second : NULL,
					  flags & TRANSLATION ? LEN : 0, flags & ACCESS ? IBV_ACCESS_REMOTE_READ : 0));
		if (flags & PD) {
			REFUSED(IBV_WR_RDMA_READ, flags & TRANSLATION ? self->second : self->first);
			ASSERT_EQ(0, ibv_rereg_mr(self->mr, PD, self->s[1].pd, NULL, 0, 0));
		}
		if (flags & ACCESS) {
			REFUSED(IBV_WR_RDMA_WRITE, flags & TRANSLATION ? self->second : self->first);
			ASSERT_EQ(0, ibv_rereg_mr(self->mr, ACCESS, NULL, NULL, 0, ALL));
		}
		USABLE(flags & TRANSLATION ? self->second : self->first);
		ASSERT_EQ(0, ibv_rereg_mr(self->mr, TRANSLATION, NULL, self->first, LEN, 0));
		USABLE(self->first);
	}
}

/* What is refused changes nothing. */
TEST_F(rereg, all_or_nothing)
{
	uint8_t *cut = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_device_attr attr;

	ASSERT_EQ(0, ibv_query_device(self->s[1].context, &attr));
	ASSERT_EQ(0, munmap(cut + 4096, 4096));
	const struct {
		const char *name;
		int flags;
		uint8_t *addr;
		size_t length;
		int access, result, err;
	} rows[] = {
		{ "nothing", 0, NULL, 0, 0, IBV_REREG_MR_ERR_CMD, EINVAL },
		{ "what there is not", 8, NULL, 0, 0, IBV_REREG_MR_ERR_INPUT, EINVAL },
		{ "no bytes", TRANSLATION, self->second, 0, 0, IBV_REREG_MR_ERR_INPUT, EINVAL },
		{ "NULL", TRANSLATION, NULL, 4096, 0, IBV_REREG_MR_ERR_INPUT, EINVAL },
		{ "a hole", TRANSLATION | PD | ACCESS, cut, 8192, ALL, IBV_REREG_MR_ERR_CMD, EFAULT },
		{ "above the limit", TRANSLATION | PD, self->second, attr.max_mr_size + 1, 0, IBV_REREG_MR_ERR_CMD, EINVAL },
		{ "up to the last address", TRANSLATION, (uint8_t *)-4096ul, 4096, 0, IBV_REREG_MR_ERR_CMD, EINVAL },
		{ "the kernel's memory", TRANSLATION, (uint8_t *)0xffff888000000000, 4096, 0, IBV_REREG_MR_ERR_CMD, EFAULT },
		{ "REMOTE_WRITE alone", ACCESS | PD, NULL, 0, IBV_ACCESS_REMOTE_WRITE, IBV_REREG_MR_ERR_CMD, EINVAL },
		{ "from 0", ACCESS | PD, NULL, 0, ALL | IBV_ACCESS_ZERO_BASED, IBV_REREG_MR_ERR_CMD, EOPNOTSUPP },
		{ "on demand", ACCESS | PD, NULL, 0, ALL | IBV_ACCESS_ON_DEMAND, IBV_REREG_MR_ERR_CMD, EOPNOTSUPP },
	};

	for EACH(row, rows) {
		errno = 0;
		EXPECT_EQ(row->result, ibv_rereg_mr(self->mr, row->flags, self->pd, row->addr, row->length, row->access)) {
			TH_LOG("%s", row->name);
		}
		EXPECT_EQ(row->err, errno) {
			TH_LOG("%s: %s", row->name, strerror(errno));
		}
		ASSERT_TRUE(usable(self->s, self->mr, self->first)) {
			TH_LOG("after: %s", row->name);
		}
	}
	munmap(cut, 4096);
}

/* MW-8: a window has what the MR had. */
TEST_F(rereg, busy_while_a_window_is_bound)
{
	struct side *b = &self->s[1];
	struct ibv_mw *mw = ibv_alloc_mw(b->pd, IBV_MW_TYPE_1);
	struct ibv_mr *mr = ibv_reg_mr(b->pd, self->first, LEN, ALL | IBV_ACCESS_MW_BIND);
	struct ibv_mw_bind bind = {
		.send_flags = IBV_SEND_SIGNALED, .bind_info = { mr, (uintptr_t)self->first, LEN, IBV_ACCESS_REMOTE_READ },
	};
	struct ibv_wc wc;

	ASSERT_EQ(0, ibv_bind_mw(b->qp, mw, &bind));
	ASSERT_TRUE(side_wait(b, &wc, 20));
	ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
	for (int flags = 1; flags <= IBV_REREG_MR_FLAGS_SUPPORTED; flags++) {
		ASSERT_EQ(IBV_REREG_MR_ERR_CMD, ibv_rereg_mr(mr, flags, self->pd, self->second, LEN, flags & ACCESS ? ALL : 0));
		ASSERT_EQ(EBUSY, errno);
	}
	ASSERT_EQ(IBV_WC_SUCCESS, remote(&self->s[0], IBV_WR_RDMA_READ, self->first, mw->rkey, LEN));
	ASSERT_EQ(0, ibv_dealloc_mw(mw));
	ASSERT_EQ(0, ibv_rereg_mr(mr, TRANSLATION, NULL, self->second, LEN, 0));
	ASSERT_TRUE(usable(self->s, mr, self->second));
	ASSERT_EQ(0, ibv_dereg_mr(mr));
}

/* DM-4: device memory has no other place. */
TEST_F(rereg, no_device_memory)
{
	struct ibv_alloc_dm_attr alloc = { .length = 4096 };
	struct ibv_dm *dm = ibv_alloc_dm(self->s[1].context, &alloc);
	struct ibv_mr *mr = ibv_reg_dm_mr(self->s[1].pd, dm, 0, 4096, ALL | IBV_ACCESS_ZERO_BASED);

	ASSERT_NE(NULL, mr);
	ASSERT_EQ(IBV_REREG_MR_ERR_CMD, ibv_rereg_mr(mr, ACCESS, NULL, NULL, 0, ALL));
	ASSERT_EQ(EINVAL, errno);
	ASSERT_EQ(IBV_REREG_MR_ERR_CMD, ibv_rereg_mr(mr, TRANSLATION, NULL, self->second, LEN, 0));
	ASSERT_EQ(EINVAL, errno);
	ASSERT_EQ(0, ibv_dereg_mr(mr));
	ASSERT_EQ(0, ibv_free_dm(dm));
}

/* Of an MR without bytes, too (MR-8). */
TEST_F(rereg, an_mr_of_no_bytes)
{
	struct ibv_mr *mr = ibv_reg_mr(self->s[1].pd, self->first, 0, 0);

	ASSERT_NE(NULL, mr);
	ASSERT_EQ(0, ibv_rereg_mr(mr, ACCESS, NULL, NULL, 0, ALL));
	ASSERT_EQ(0, ibv_rereg_mr(mr, TRANSLATION, NULL, self->second, LEN, 0));
	ASSERT_TRUE(usable(self->s, mr, self->second));
	ASSERT_EQ(0, ibv_dereg_mr(mr));
}

/* MR-12: what a peer still writes then, it writes elsewhere. */
TEST_F(rereg, memory_is_left_alone)
{
	struct side *a = &self->s[0];
	struct ibv_sge sge = { (uintptr_t)a->mem, LEN, a->mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)self->first, self->key },
	};
	/* The WRITEs of a round take 100 ms. */
	struct ibv_qp_rate_limit_attr limit = { .rate_limit = 64000 };
	uint8_t *canary = malloc(LEN);
	unsigned int under_way = 0;
	struct ibv_wc wc;

	memset(canary, 0xc5, LEN);
	memset(a->mem, 0x11, LEN);
	for (int i = 0; i < 50; i++) {
		ASSERT_EQ(0, ibv_modify_qp_rate_limit(a->qp, &limit));
		for (int j = 0; j < PAIR_WRS; j++)
			ASSERT_EQ(0, side_post(a, &wr));
		ASSERT_EQ(0, ibv_rereg_mr(self->mr, TRANSLATION, NULL, self->second, LEN, 0));
		memset(self->first, 0xc5, LEN);
		for (int j = 0; j < PAIR_WRS; j++) {
			ASSERT_TRUE(side_wait(a, &wc, 20));
			ASSERT_TRUE(wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_REM_ACCESS_ERR ||
				    wc.status == IBV_WC_WR_FLUSH_ERR);
		}
		under_way += wc.status != IBV_WC_SUCCESS;
		ASSERT_EQ(0, memcmp(self->first, canary, LEN));
		ASSERT_EQ(0, pair_reconnect(self->s));
		ASSERT_EQ(0, ibv_rereg_mr(self->mr, TRANSLATION, NULL, self->first, LEN, 0));
	}
	TH_LOG("a WRITE was under way in %u of 50 rounds", under_way);
	ASSERT_LT(0, under_way);
	free(canary);
	USABLE(self->first);
}

/* A child that shares the context finds other memory at an address than the parent has there. */
TEST_F(rereg, by_a_child)
{
	uint8_t *mem = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;
	pid_t pid;

	ASSERT_EQ(0, ibv_rereg_mr(self->mr, TRANSLATION | ACCESS, NULL, mem, 65536, IBV_ACCESS_REMOTE_READ));
	pid = fork();
	if (!pid) {
		bool right = ibv_rereg_mr(self->mr, ACCESS, NULL, NULL, 0, ALL) == IBV_REREG_MR_ERR_CMD && errno == EINVAL &&
			     !ibv_rereg_mr(self->mr, ACCESS, NULL, NULL, 0, 0);

		_exit(right ? 0 : 1);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_EQ(0, status);
	REFUSED(IBV_WR_RDMA_READ, mem);
	ASSERT_EQ(0, ibv_rereg_mr(self->mr, ACCESS, NULL, NULL, 0, ALL));
	USABLE(mem);
	ASSERT_EQ(0, ibv_rereg_mr(self->mr, TRANSLATION, NULL, self->first, LEN, 0));
	munmap(mem, 65536);
}

TEST_HARNESS_MAIN
