// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Wrong memory regions, and wrong mappings of a context's pages. See bad.h. */
#include <errno.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "bad.h"
#include "raw.h"

#define ALL_ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/* Memory regions */

TEST_F(bad, reg_mr)
{
	struct side *s = &self->s[0];
	void *read_only = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *cut = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *no_access = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct {
		const char *name;
		void *addr;
		size_t length;
		int access, err;
	} rows[] = {
		{ "no byte", s->mem, 0, ALL_ACCESS, 0 },
		{ "no byte at NULL", NULL, 0, ALL_ACCESS, 0 },
		{ "no byte within a page", s->mem + 100, 0, 0, 0 },
		{ "one byte", s->mem, 1, ALL_ACCESS, 0 },
		{ "above the limit", s->mem, self->attr.max_mr_size + 1, ALL_ACCESS, EINVAL },
		{ "around the end of all addresses", s->mem, SIZE_MAX, ALL_ACCESS, EINVAL },
		{ "up to the last address", (void *)-4096ul, 4096, ALL_ACCESS, EINVAL },
		{ "the kernel's memory", (void *)0xffff888000000000, 4096, ALL_ACCESS, EFAULT },
		{ "nothing at NULL", NULL, 4096, ALL_ACCESS, EFAULT },
		{ "a hole at the end", cut, 8192, ALL_ACCESS, EFAULT },
		{ "a hole", cut + 4096, 4096, ALL_ACCESS, EFAULT },
		{ "read-only memory, to be written", read_only, 4096, ALL_ACCESS, EFAULT },
		{ "memory without access", no_access, 4096, 0, EFAULT },
		{ "REMOTE_WRITE alone", s->mem, 4096, IBV_ACCESS_REMOTE_WRITE, EINVAL },
		{ "REMOTE_ATOMIC alone", s->mem, 4096, IBV_ACCESS_REMOTE_ATOMIC, EINVAL },
		{ "windows to be bound", s->mem, 4096, ALL_ACCESS | IBV_ACCESS_MW_BIND, 0 },
		{ "from 0", s->mem, 4096, ALL_ACCESS | IBV_ACCESS_ZERO_BASED, EOPNOTSUPP },
		{ "on demand", s->mem, 4096, ALL_ACCESS | IBV_ACCESS_ON_DEMAND, 0 },
		{ "no byte on demand", s->mem, 0, ALL_ACCESS | IBV_ACCESS_ON_DEMAND, 0 },
		{ "a hole on demand", cut + 4096, 4096, ALL_ACCESS | IBV_ACCESS_ON_DEMAND, 0 },
		{ "all memory on demand", NULL, SIZE_MAX, ALL_ACCESS | IBV_ACCESS_ON_DEMAND, 0 },
		{ "all memory from some address on", s->mem, SIZE_MAX, ALL_ACCESS | IBV_ACCESS_ON_DEMAND, EINVAL },
		{ "above the limit, on demand", s->mem, self->attr.max_mr_size + 1, ALL_ACCESS | IBV_ACCESS_ON_DEMAND,
		  EINVAL },
		{ "on demand up to the last address", (void *)-4096ul, 4096, ALL_ACCESS | IBV_ACCESS_ON_DEMAND, EINVAL },
		{ "on demand, for windows", s->mem, 4096, ALL_ACCESS | IBV_ACCESS_MW_BIND | IBV_ACCESS_ON_DEMAND,
		  EOPNOTSUPP },
		{ "to be flushed", s->mem, 4096, ALL_ACCESS | IBV_ACCESS_FLUSH_GLOBAL, 0 },
		{ "to persist", s->mem, 4096, ALL_ACCESS | IBV_ACCESS_FLUSH_PERSISTENT, EOPNOTSUPP },
		{ "an optional hint", s->mem, 4096, ALL_ACCESS | IBV_ACCESS_RELAXED_ORDERING, 0 },
	};

	ASSERT_EQ(0, munmap(cut + 4096, 4096));
	for EACH(row, rows)
		GAVE(row->err, MADE(ibv_reg_mr(s->pd, row->addr, row->length, row->access),
				    ibv_dereg_mr), row);
}

TEST_F(bad, reg_mr_iova)
{
	struct side *s = &self->s[0];
	const struct {
		const char *name;
		uint64_t iova;
		size_t length;
		int access, err;
	} rows[] = {
		{ "0", 0, 8192, 0, 0 },
		{ "up to the last address", -8192ull, 8192, 0, 0 },
		{ "past the last address", -4096ull, 8192, 0, EINVAL },
		{ "another place in the page", 1, 8192, 0, EINVAL },
		{ "all memory from some address on", 0, SIZE_MAX, IBV_ACCESS_ON_DEMAND, EINVAL },
	};

	for EACH(row, rows)
		GAVE(row->err, MADE(ibv_reg_mr_iova(s->pd, s->mem, row->length, row->iova,
						    ALL_ACCESS | row->access), ibv_dereg_mr), row);
}

/* Device memory */

TEST_F(bad, alloc_dm)
{
	struct ibv_context *context = self->s[0].context;
	struct ibv_device_attr_ex attr;
	size_t most;

	ASSERT_EQ(0, ibv_query_device_ex(context, NULL, &attr));
	most = attr.max_dm_size;
	const struct {
		const char *name;
		struct ibv_alloc_dm_attr attr;
		int err;
	} rows[] = {
		{ "one byte", { 1, 0, 0 }, 0 },
		{ "all that there is", { most, 12, 0 }, 0 },
		{ "no byte", { 0, 0, 0 }, EINVAL },
		{ "above the limit", { most + 1, 0, 0 }, EINVAL },
		{ "2^32 bytes more than one", { (1ull << 32) + 1, 0, 0 }, EINVAL },
		{ "as much as can be said", { SIZE_MAX, 0, 0 }, EINVAL },
		{ "aligned to 4096 bytes", { 64, 12, 0 }, 0 },
		{ "aligned to 8192 bytes", { 64, 13, 0 }, EINVAL },
		{ "aligned to 2^256 bytes", { 64, 256, 0 }, EINVAL },
		{ "comp_mask", { 64, 0, 1 }, EOPNOTSUPP },
	};

	for EACH(row, rows) {
		struct ibv_alloc_dm_attr alloc = row->attr;

		GAVE(row->err, MADE(ibv_alloc_dm(context, &alloc), ibv_free_dm), row);
	}
}

#define DM_SIZE 20000

TEST_F(bad, reg_dm_mr)
{
	const unsigned int zero = IBV_ACCESS_ZERO_BASED, all = zero | ALL_ACCESS;
	struct ibv_alloc_dm_attr alloc = { .length = DM_SIZE };
	struct side *s = &self->s[0];
	struct ibv_dm *dm = ibv_alloc_dm(s->context, &alloc);
	const struct {
		const char *name;
		uint64_t offset;
		size_t length;
		unsigned int access;
		int err;
	} rows[] = {
		{ "all", 0, DM_SIZE, all, 0 },
		{ "one byte at any place", 4097, 1, all, 0 },
		{ "no byte", 0, 0, all, 0 },
		{ "no byte at the end", DM_SIZE, 0, all, 0 },
		{ "one more than there is", 0, DM_SIZE + 1, all, EINVAL },
		{ "past the end", 1, DM_SIZE, all, EINVAL },
		{ "behind the end", DM_SIZE + 1, 0, all, EINVAL },
		{ "around the end of all numbers", UINT64_MAX, 2, all, EINVAL },
		{ "as long as can be said", 4, SIZE_MAX, all, EINVAL },
		{ "not from 0", 0, 64, ALL_ACCESS, EINVAL },
		{ "nothing at all", 0, 64, 0, EINVAL },
		{ "read only", 0, 64, zero, 0 },
		{ "REMOTE_WRITE alone", 0, 64, zero | IBV_ACCESS_REMOTE_WRITE, EINVAL },
		{ "REMOTE_ATOMIC alone", 0, 64, zero | IBV_ACCESS_REMOTE_ATOMIC, EINVAL },
		{ "windows to be bound", 0, 64, all | IBV_ACCESS_MW_BIND, EOPNOTSUPP },
		{ "on demand", 0, 64, all | IBV_ACCESS_ON_DEMAND, EOPNOTSUPP },
		{ "huge pages", 0, 64, all | IBV_ACCESS_HUGETLB, EOPNOTSUPP },
		{ "to be flushed", 0, 64, all | IBV_ACCESS_FLUSH_GLOBAL, 0 },
		{ "to persist", 0, 64, all | IBV_ACCESS_FLUSH_PERSISTENT, EOPNOTSUPP },
		{ "an optional hint", 0, 64, all | IBV_ACCESS_RELAXED_ORDERING, 0 },
	};

	ASSERT_NE(NULL, dm);
	for EACH(row, rows)
		GAVE(row->err, MADE(ibv_reg_dm_mr(s->pd, dm, row->offset, row->length, row->access),
				    ibv_dereg_mr), row);
	ASSERT_EQ(0, ibv_free_dm(dm));
}

TEST_F(bad, memcpy_dm)
{
	struct ibv_alloc_dm_attr alloc = { .length = DM_SIZE };
	struct side *s = &self->s[0];
	struct ibv_dm *dm = ibv_alloc_dm(s->context, &alloc);
	uint8_t *read_only = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *cut = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct {
		const char *name;
		uint64_t offset;
		uint8_t *addr;
		size_t length;
		int to, from;
	} rows[] = {
		{ "all", 0, s->mem, DM_SIZE, 0, 0 },
		{ "from any place of memory", 4, s->mem + 1, 8, 0, 0 },
		{ "no byte", 8, s->mem, 0, 0, 0 },
		{ "no byte at NULL", 8, NULL, 0, 0, 0 },
		{ "no byte at the end", DM_SIZE, s->mem, 0, 0, 0 },
		{ "an odd offset", 1, s->mem, 8, EINVAL, EINVAL },
		{ "an odd length", 0, s->mem, 6, EINVAL, EINVAL },
		{ "past the end", 4, s->mem, DM_SIZE, EINVAL, EINVAL },
		{ "behind the end", DM_SIZE + 4, s->mem, 0, EINVAL, EINVAL },
		{ "around the end of all numbers", -4ull, s->mem, 8, EINVAL, EINVAL },
		{ "as long as can be said", 8, s->mem, -4ull, EINVAL, EINVAL },
		{ "NULL", 0, NULL, 8, EFAULT, EFAULT },
		{ "the kernel's memory", 0, (uint8_t *)0xffff888000000000, 8, EFAULT, EFAULT },
		{ "a hole", 0, cut + 4096 - 4, 8, EFAULT, EFAULT },
		{ "read-only memory", 0, read_only, 8, 0, EFAULT },
	};

	ASSERT_NE(NULL, dm);
	ASSERT_EQ(0, munmap(cut + 4096, 4096));
	for EACH(row, rows) {
		GAVE(row->to, ibv_memcpy_to_dm(dm, row->offset, row->addr, row->length), row);
		GAVE(row->from, ibv_memcpy_from_dm(row->addr, dm, row->offset, row->length), row);
	}
	ASSERT_EQ(0, ibv_free_dm(dm));
	ASSERT_EQ(0, munmap(read_only, 4096));
	ASSERT_EQ(0, munmap(cut, 4096));
}

/* MR-8: of a region without bytes, nothing can be read or written, by its owner or the peer. */
TEST_F(bad, access_to_no_byte)
{
	struct side *a = &self->s[0], *b = &self->s[1];
	struct ibv_mr *own = ibv_reg_mr(a->pd, a->mem, 0, ALL_ACCESS);
	struct ibv_mr *peers = ibv_reg_mr(b->pd, b->mem, 0, ALL_ACCESS);

	ASSERT_NE(NULL, own);
	ASSERT_NE(NULL, peers);
	const struct {
		const char *name;
		uint32_t length, lkey, rkey, opcode, status;
	} rows[] = {
		{ "WRITE of no byte", 0, own->lkey, peers->rkey, IBV_WR_RDMA_WRITE, IBV_WC_SUCCESS },
		{ "READ of no byte", 0, own->lkey, peers->rkey, IBV_WR_RDMA_READ, IBV_WC_SUCCESS },
		{ "from there", 1, own->lkey, b->mr->rkey, IBV_WR_RDMA_WRITE, IBV_WC_LOC_PROT_ERR },
		{ "into it", 1, own->lkey, b->mr->rkey, IBV_WR_RDMA_READ, IBV_WC_LOC_PROT_ERR },
		{ "WRITE to the peer's", 1, a->mr->lkey, peers->rkey, IBV_WR_RDMA_WRITE,
		  IBV_WC_REM_ACCESS_ERR },
		{ "READ of the peer's", 1, a->mr->lkey, peers->rkey, IBV_WR_RDMA_READ,
		  IBV_WC_REM_ACCESS_ERR },
	};

	for EACH(row, rows) {
		struct ibv_sge sge = { (uintptr_t)a->mem, row->length, row->lkey };
		struct ibv_send_wr wr = {
			.sg_list = &sge, .num_sge = 1, .opcode = row->opcode,
			.send_flags = IBV_SEND_SIGNALED, .wr.rdma = { (uintptr_t)b->mem, row->rkey },
		};
		struct ibv_wc wc;

		ASSERT_EQ(0, side_post(a, &wr));
		ASSERT_TRUE(side_wait(a, &wc, 10));
		EXPECT_EQ(row->status, wc.status) {
			TH_LOG("%s: %s", row->name, ibv_wc_status_str(wc.status));
		}
		ASSERT_EQ(0, pair_reconnect(self->s));
	}
	ASSERT_EQ(0, ibv_dereg_mr(own));
	ASSERT_EQ(0, ibv_dereg_mr(peers));
	ASSERT_TRUE(pair_transfer(self->s));
}

/* DBP-5 SEC-1: mappings of a context's pages */

TEST_F(bad, mmap)
{
	struct skua_alloc_ucontext_resp resp;
	int fd = raw_open("skua_0", &resp);
	const int read_write = PROT_READ | PROT_WRITE;

	ASSERT_GE(fd, 0);
	const off_t db = resp.db_page_key, info = resp.info_page_key;
	const struct {
		const char *name;
		off_t offset;
		size_t size;
		int prot, flags, err;
	} rows[] = {
		{ "doorbells for writing", db, 4096, PROT_WRITE, MAP_SHARED, 0 },
		{ "information for reading", info, 4096, PROT_READ, MAP_SHARED, 0 },
		{ "information for writing", info, 4096, read_write, MAP_SHARED, EPERM },
		{ "information for writing alone", info, 4096, PROT_WRITE, MAP_SHARED, EPERM },
		{ "information as code", info, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, 0 },
		{ "doorbells as code", db, 4096, PROT_WRITE | PROT_EXEC, MAP_SHARED, 0 },
		{ "two pages of doorbells", db, 8192, PROT_WRITE, MAP_SHARED, EINVAL },
		{ "two pages of information", info, 8192, PROT_READ, MAP_SHARED, EINVAL },
		{ "private doorbells", db, 4096, read_write, MAP_PRIVATE, EINVAL },
		{ "private information", info, 4096, PROT_READ, MAP_PRIVATE, EINVAL },
		{ "private information, written to", info, 4096, read_write, MAP_PRIVATE, EINVAL },
		{ "behind both", (db > info ? db : info) + 4096, 4096, PROT_READ, MAP_SHARED, EINVAL },
		{ "far behind", 1l << 40, 4096, PROT_READ, MAP_SHARED, EINVAL },
		{ "as far as can be", INT64_MAX & ~4095l, 4096, PROT_READ, MAP_SHARED, EINVAL },
		{ "within a page", db + 8, 4096, PROT_WRITE, MAP_SHARED, EINVAL },
	};

	for EACH(row, rows) {
		void *map = mmap(NULL, row->size, row->prot, row->flags, fd, row->offset);

		GAVE(row->err, map == MAP_FAILED ? errno : 0, row);
		if (map != MAP_FAILED)
			ASSERT_EQ(0, munmap(map, row->size));
	}
	close(fd);
}

TEST_F(bad, mapped_pages_keep_their_protection)
{
	struct skua_alloc_ucontext_resp resp;
	int fd = raw_open("skua_0", &resp);
	void *db, *info;

	ASSERT_GE(fd, 0);
	db = mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, fd, resp.db_page_key);
	info = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, resp.info_page_key);
	ASSERT_NE(MAP_FAILED, db);
	ASSERT_NE(MAP_FAILED, info);
	EXPECT_EQ(-1, mprotect(info, 4096, PROT_READ | PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(MAP_FAILED, mremap(db, 4096, 8192, MREMAP_MAYMOVE));
	EXPECT_EQ(MAP_FAILED, mremap(info, 4096, 8192, MREMAP_MAYMOVE));
	EXPECT_EQ(SKUA_INFO_ALIVE, ((const struct skua_info_page *)info)->state);
	close(fd);
	/* The pages live as long as they are mapped. */
	EXPECT_EQ(SKUA_INFO_ALIVE, ((const struct skua_info_page *)info)->state);
	ASSERT_EQ(0, munmap(db, 4096));
	ASSERT_EQ(0, munmap(info, 4096));
	ASSERT_TRUE(pair_transfer(self->s));
}

/* A doorbell of another's queue, and nonsense, are ignored. */
TEST_F(bad, doorbells)
{
	struct skua_alloc_ucontext_resp resp;
	int fd = raw_open("skua_0", &resp), status;
	volatile uint64_t *db;
	pid_t pid;

	ASSERT_GE(fd, 0);
	db = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, resp.db_page_key);
	ASSERT_NE(MAP_FAILED, db);
	for (unsigned int i = 0; i < 512; i++)
		db[i] = (uint64_t)0x7fffffff << 32 | self->s[0].qp->qp_num;
	((volatile uint8_t *)db)[3] = 0xff;
	((volatile uint32_t *)db)[0] = self->s[0].qp->qp_num;
	EXPECT_EQ(0, db[0]);
	ASSERT_TRUE(pair_transfer(self->s));
	/* A child inherits the page, and rings it while it ends. */
	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		for (unsigned int i = 0; i < 512; i++)
			db[i] = (uint64_t)i << 32 | self->s[0].qp->qp_num;
		_exit(0);
	}
	ASSERT_TRUE(pair_transfer(self->s));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_TRUE(WIFEXITED(status));
	ASSERT_TRUE(pair_transfer(self->s));
	ASSERT_EQ(0, munmap((void *)db, 4096));
	close(fd);
	ASSERT_TRUE(pair_transfer(self->s));
}

TEST_HARNESS_MAIN
