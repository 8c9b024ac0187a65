// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory on demand: programs whose pages come and go while NICs use them.
 * Rules: Documentation/manual/on-demand.rst.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pair.h"
#include "rows.h"
#include "stuck.h"

#define SIZE		(1u << 20)	/* of each side's memory on demand */
#define RIGHTS		(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
			 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ON_DEMAND)
#define TEST_SECONDS	3		/* that races last */
#define ROUNDS		6u		/* of each kind */

/* Of rc_odp_caps; libibverbs has names for them, but not everywhere. */
#define SUPPORT_FLUSH		(1u << 6)
#define SUPPORT_ATOMIC_WRITE	(1u << 7)

FIXTURE(odp) {
	struct side s[2];
	uint8_t *mem[2];
	struct ibv_mr *mr[2];
	int fd[2];
};

FIXTURE_VARIANT(odp) {
	bool implicit;		/* the regions have all addresses */
	bool shared;		/* memory of a file, which pages that were dropped come back from */
};

FIXTURE_VARIANT_ADD(odp, explicit) { false, false };
FIXTURE_VARIANT_ADD(odp, implicit) { true, false };
FIXTURE_VARIANT_ADD(odp, explicit_shared) { false, true };
FIXTURE_VARIANT_ADD(odp, implicit_shared) { true, true };

static void *map(void *addr, size_t size, int fd)
{
	return mmap(addr, size, PROT_READ | PROT_WRITE,
		    (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED) | (addr ? MAP_FIXED : 0), fd, 0);
}

static struct ibv_mr *region(struct side *side, void *addr, size_t size, bool implicit)
{
	return implicit ? ibv_reg_mr(side->pd, NULL, SIZE_MAX, RIGHTS) : ibv_reg_mr(side->pd, addr, size, RIGHTS);
}

/* As pair_reconnect(), but a page may take its time: peers wait for as long as it takes (ODP-10). */
static int reconnect(struct side s[2])
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct ibv_wc wc;
	int err = 0;

	for (int i = 0; i < 2 && !err; i++)
		err = ibv_modify_qp(s[i].qp, &reset, IBV_QP_STATE);
	for (int i = 0; i < 2 && !err; i++) {
		while (ibv_poll_cq(s[i].cq, 1, &wc) > 0)
			;
		err = qp_to_init(s[i].qp, RIGHTS & ~IBV_ACCESS_ON_DEMAND) ?:
		      qp_to_rtr(s[i].qp, &s[i], &s[!i], s[!i].qp->qp_num) ?: qp_to_rts(s[i].qp, 17, 7, 7);
	}
	return err;
}

FIXTURE_SETUP(odp)
{
	ASSERT_EQ(0, pair_open(self->s));
	ASSERT_EQ(0, reconnect(self->s));
	for (int i = 0; i < 2; i++) {
		self->fd[i] = variant->shared ? memfd_create("odp", 0) : -1;
		if (variant->shared)
			ASSERT_EQ(0, ftruncate(self->fd[i], SIZE));
		self->mem[i] = map(NULL, SIZE, self->fd[i]);
		ASSERT_NE(MAP_FAILED, self->mem[i]);
		self->mr[i] = region(&self->s[i], self->mem[i], SIZE, variant->implicit);
		ASSERT_NE(NULL, self->mr[i]);
	}
}

FIXTURE_TEARDOWN(odp)
{
	for (int i = 0; i < 2; i++) {
		if (self->mr[i])
			EXPECT_EQ(0, ibv_dereg_mr(self->mr[i]));
		if (self->fd[i] >= 0)
			close(self->fd[i]);
	}
	EXPECT_TRUE(pair_transfer(self->s));
	pair_close(self->s);
}

/* Post one operation of the first side: 0 or an errno. */
static int post_op(struct side *a, enum ibv_wr_opcode opcode, void *from, uint32_t lkey, uint32_t len, void *to,
		   uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)from, len, lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = 7, .sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED,
	};

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)to;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)to;
		wr.wr.rdma.rkey = rkey;
	}
	return ibv_post_send(a->qp, &wr, &bad);
}

/* Its status; -1: it did not complete. */
static int do_op(struct side *a, enum ibv_wr_opcode opcode, void *from, uint32_t lkey, uint32_t len, void *to,
		 uint32_t rkey)
{
	struct ibv_wc wc;

	if (post_op(a, opcode, from, lkey, len, to, rkey) || !side_wait(a, &wc, 60))
		return -1;
	return wc.status;
}

#define OP(opcode, offset_a, len, offset_b)					\
	do_op(&self->s[0], opcode, self->mem[0] + (offset_a), self->mr[0]->lkey, len, \
	      self->mem[1] + (offset_b), self->mr[1]->rkey)
#define DONE(...)	ASSERT_EQ(IBV_WC_SUCCESS, OP(__VA_ARGS__))

static int recv_there(struct side *b, void *addr, uint32_t lkey, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)addr, len, lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = 8, .sg_list = &sge, .num_sge = 1 };

	return ibv_post_recv(b->qp, &wr, &bad);
}

/* Nobody has touched the memory of either before. */
TEST_F(odp, the_device_touches_first)
{
	int64_t faults = side_counter(&self->s[1], "page_faults");
	struct ibv_wc wc;

	DONE(IBV_WR_RDMA_WRITE, 0, 20000, 100);
	ASSERT_LT(faults, side_counter(&self->s[1], "page_faults"));
	for (int i = 0; i < 20000; i++)
		ASSERT_EQ(0, self->mem[1][100 + i]);
	pair_fill(self->mem[0], SIZE, 3);
	DONE(IBV_WR_RDMA_WRITE, 0, SIZE, 0);
	ASSERT_EQ(0, memcmp(self->mem[0], self->mem[1], SIZE));
	pair_fill(self->mem[1], SIZE, 4);
	DONE(IBV_WR_RDMA_READ, 0, SIZE, 0);
	ASSERT_EQ(0, memcmp(self->mem[0], self->mem[1], SIZE));
	ASSERT_EQ(0, recv_there(&self->s[1], self->mem[1] + 50000, self->mr[1]->lkey, 100000));
	pair_fill(self->mem[0], SIZE, 5);
	DONE(IBV_WR_SEND, 0, 100000, 0);
	ASSERT_TRUE(side_wait(&self->s[1], &wc, 20));
	ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
	ASSERT_EQ(100000, wc.byte_len);
	ASSERT_EQ(0, memcmp(self->mem[0], self->mem[1] + 50000, 100000));
}

/* Before each operation, the pages of both sides are gone. */
TEST_F(odp, pages_go_between_operations)
{
	for (uint32_t i = 0; i < 50; i++) {
		uint32_t len = 1 + i * 2011;
		struct ibv_wc wc;

		pair_fill(self->mem[0], SIZE, i);
		if (variant->shared)
			ASSERT_EQ(0, madvise(self->mem[0], SIZE, MADV_DONTNEED));
		ASSERT_EQ(0, madvise(self->mem[1], SIZE, MADV_DONTNEED));
		if (i & 1) {
			ASSERT_EQ(0, recv_there(&self->s[1], self->mem[1] + i, self->mr[1]->lkey, len));
			DONE(IBV_WR_SEND, 0, len, 0);
			ASSERT_TRUE(side_wait(&self->s[1], &wc, 20));
			ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
		} else {
			DONE(IBV_WR_RDMA_WRITE, 0, len, i);
		}
		ASSERT_EQ(0, memcmp(self->mem[0], self->mem[1] + i, len));
		pair_fill(self->mem[1], SIZE, i + 100);
		ASSERT_EQ(0, madvise(self->mem[0], SIZE, MADV_DONTNEED));
		if (variant->shared)
			ASSERT_EQ(0, madvise(self->mem[1], SIZE, MADV_DONTNEED));
		DONE(IBV_WR_RDMA_READ, i, len, 0);
		ASSERT_EQ(0, memcmp(self->mem[0] + i, self->mem[1], len));
	}
}

/* What was mapped before is not what the device finds, and is not what it writes to. */
TEST_F(odp, other_memory_at_the_same_place)
{
	uint8_t *other = map(NULL, SIZE, -1);

	ASSERT_NE(MAP_FAILED, other);
	memset(self->mem[0], 1, SIZE);
	DONE(IBV_WR_RDMA_WRITE, 0, SIZE, 0);
	/* The old pages live on at another place. */
	ASSERT_EQ(other, mremap(self->mem[1], SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, other));
	ASSERT_EQ(self->mem[1], map(self->mem[1], SIZE, -1));
	memset(self->mem[0], 2, SIZE);
	DONE(IBV_WR_RDMA_WRITE, 0, SIZE, 0);
	for (uint32_t i = 0; i < SIZE; i++) {
		ASSERT_EQ(2, self->mem[1][i]);
		ASSERT_EQ(1, other[i]);
	}
	/* With all addresses, they are still in reach. */
	ASSERT_EQ(variant->implicit ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR,
		  do_op(&self->s[0], IBV_WR_RDMA_READ, self->mem[0], self->mr[0]->lkey, SIZE, other, self->mr[1]->rkey));
	if (variant->implicit)
		ASSERT_EQ(0, memcmp(self->mem[0], other, SIZE));
	ASSERT_EQ(0, reconnect(self->s));
}

/* Memory that is not there, or that may not be used so, is an error of who uses it, and of nobody else. */
TEST_F(odp, memory_that_is_not_there)
{
	struct ibv_wc wc;

	DONE(IBV_WR_RDMA_WRITE, 0, SIZE, 0);
	ASSERT_EQ(0, munmap(self->mem[1] + 4096, 4096));
	ASSERT_EQ(IBV_WC_REM_ACCESS_ERR, OP(IBV_WR_RDMA_WRITE, 0, 12288, 0));
	ASSERT_EQ(0, reconnect(self->s));
	ASSERT_EQ(IBV_WC_REM_ACCESS_ERR, OP(IBV_WR_RDMA_READ, 0, 8, 4096));
	ASSERT_EQ(0, reconnect(self->s));
	ASSERT_EQ(IBV_WC_REM_ACCESS_ERR, OP(IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, 4096));
	ASSERT_EQ(0, reconnect(self->s));
	ASSERT_EQ(0, recv_there(&self->s[1], self->mem[1] + 4096, self->mr[1]->lkey, 8));
	ASSERT_EQ(IBV_WC_REM_OP_ERR, OP(IBV_WR_SEND, 0, 8, 0));
	ASSERT_TRUE(side_wait(&self->s[1], &wc, 20));
	ASSERT_EQ(IBV_WC_LOC_PROT_ERR, wc.status);
	ASSERT_EQ(0, reconnect(self->s));
	ASSERT_EQ(0, mprotect(self->mem[1], 4096, PROT_READ));
	ASSERT_EQ(IBV_WC_REM_ACCESS_ERR, OP(IBV_WR_RDMA_WRITE, 0, 8, 0));
	ASSERT_EQ(0, reconnect(self->s));
	DONE(IBV_WR_RDMA_READ, 0, 8, 0);
	ASSERT_EQ(0, mprotect(self->mem[1], 4096, PROT_NONE));
	ASSERT_EQ(IBV_WC_REM_ACCESS_ERR, OP(IBV_WR_RDMA_READ, 0, 8, 0));
	ASSERT_EQ(0, reconnect(self->s));
	ASSERT_EQ(0, munmap(self->mem[0] + 4096, 4096));
	ASSERT_EQ(IBV_WC_LOC_PROT_ERR, OP(IBV_WR_RDMA_WRITE, 4096, 8, 8192));
	ASSERT_EQ(0, reconnect(self->s));
	ASSERT_EQ(IBV_WC_LOC_PROT_ERR, OP(IBV_WR_RDMA_READ, 4096, 8, 8192));
	ASSERT_EQ(0, reconnect(self->s));
	DONE(IBV_WR_RDMA_WRITE, 8192, 4096, 8192);
}

TEST_F(odp, atomics)
{
	uint64_t *word = (uint64_t *)(self->mem[1] + 8192), *result = (uint64_t *)(self->mem[0] + 4096);

	for (uint64_t i = 0; i < 100; i++) {
		if (variant->shared)
			ASSERT_EQ(0, madvise(self->mem[1], SIZE, MADV_DONTNEED));
		ASSERT_EQ(0, madvise(self->mem[0], SIZE, MADV_DONTNEED));
		DONE(IBV_WR_ATOMIC_FETCH_AND_ADD, 4096, 8, 8192);
		ASSERT_EQ(i, *result);
	}
	ASSERT_EQ(100, *word);
}

struct race {
	uint8_t *mem[2];
	bool stop;
	unsigned int good;	/* operations that are done */
	unsigned int most;	/* steps while one is under way */
	void (*step)(struct race *race, unsigned int i);
	pthread_t thread;
};

/*
 * So many steps at most while an operation is under way: the pages of both sides have to be there for as long as a peer
 * waits after an RNR NAK, or nothing would get on.
 */
static void *race(void *arg)
{
	struct race *r = arg;
	unsigned int good = 0, taken = 0;

	for (unsigned int i = 0; !__atomic_load_n(&r->stop, __ATOMIC_RELAXED); usleep(300)) {
		if (good != __atomic_load_n(&r->good, __ATOMIC_RELAXED)) {
			good = __atomic_load_n(&r->good, __ATOMIC_RELAXED);
			taken = 0;
		}
		if (taken++ < r->most)
			r->step(r, i++);
	}
	return NULL;
}

/* All of these keep what the memory holds. */
static void drop_shared_pages(struct race *r, unsigned int i)
{
	madvise(r->mem[i & 1] + i * 40960ull % SIZE, 65536 < SIZE - i * 40960ull % SIZE ? 65536 : 4096, MADV_DONTNEED);
}

static void copy_on_write(struct race *r, unsigned int i)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
}

/* WRITEs and READs while the memory of both sides is in motion. */
static void race_with(struct __test_metadata *_metadata, FIXTURE_DATA(odp) *self,
		      void (*step)(struct race *race, unsigned int i), unsigned int most)
{
	struct race r = { .mem = { self->mem[0], self->mem[1] }, .step = step, .most = most };
	time_t end = time(NULL) + TEST_SECONDS;

	ASSERT_EQ(0, pthread_create(&r.thread, NULL, race, &r));
	for (uint32_t i = 0; time(NULL) < end || !r.good; i++) {
		uint32_t len = 1 + i * 7919 % 300000, at = i * 4099 % (SIZE - len);
		enum ibv_wr_opcode opcode = i % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;

		for (uint32_t j = 0; j < len; j++)
			self->mem[i % 2][at + j] = (uint8_t)(i + j);
		ASSERT_EQ(IBV_WC_SUCCESS, do_op(&self->s[0], opcode, self->mem[0] + at, self->mr[0]->lkey, len,
						self->mem[1] + at, self->mr[1]->rkey));
		ASSERT_EQ(0, memcmp(self->mem[0] + at, self->mem[1] + at, len));
		__atomic_add_fetch(&r.good, 1, __ATOMIC_RELAXED);
	}
	r.stop = true;
	pthread_join(r.thread, NULL);
	TH_LOG("%u operations", r.good);
}

/* Private pages do not come back when they were dropped. */
TEST_F(odp, pages_are_in_motion_under_traffic)
{
	if (variant->shared)
		race_with(_metadata, self, drop_shared_pages, 50);
	else
		race_with(_metadata, self, copy_on_write, 1);
}

/* Memory comes and goes under traffic, which may fail; what was not meant is not touched. */
struct canary {
	uint8_t *mem;
	bool stop;
	bool bad;
	unsigned int rounds;
};

static void *remap(void *arg)
{
	struct canary *c = arg;

	while (!__atomic_load_n(&c->stop, __ATOMIC_RELAXED)) {
		uint8_t *away = map(NULL, SIZE, -1);

		/* The pages that the device writes to go away; nobody may write to them then. */
		if (away == MAP_FAILED || mremap(c->mem, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, away) != away ||
		    map(c->mem, SIZE, -1) != c->mem)
			c->bad = true;
		memset(away, 0x5a, SIZE);
		usleep(1000);
		for (uint32_t i = 0; i < SIZE; i++)
			c->bad |= away[i] != 0x5a;
		munmap(away, SIZE);
		c->rounds++;
	}
	return NULL;
}

TEST_F(odp, memory_is_exchanged_under_traffic)
{
	struct canary c = { self->mem[1] };
	time_t end = time(NULL) + TEST_SECONDS;
	unsigned int good = 0;
	pthread_t thread;

	memset(self->mem[0], 0xc3, SIZE);
	ASSERT_EQ(0, pthread_create(&thread, NULL, remap, &c));
	while (time(NULL) < end || !good || !c.rounds) {
		int status = OP(IBV_WR_RDMA_WRITE, 0, SIZE, 0);

		/* In between, nothing is mapped there. */
		if (status == IBV_WC_REM_ACCESS_ERR) {
			ASSERT_EQ(0, reconnect(self->s));
			continue;
		}
		ASSERT_EQ(IBV_WC_SUCCESS, status);
		good++;
	}
	c.stop = true;
	pthread_join(thread, NULL);
	ASSERT_FALSE(c.bad);
	DONE(IBV_WR_RDMA_WRITE, 0, SIZE, 0);
	ASSERT_EQ(0, memcmp(self->mem[0], self->mem[1], SIZE));
	TH_LOG("%u WRITEs, %u exchanges", good, c.rounds);
}

/* The device sees the parent's pages, whoever writes first. Those of a file are the child's, too. */
TEST_F(odp, a_child_has_its_own)
{
	int status;
	pid_t pid;

	memset(self->mem[1], 1, SIZE);
	DONE(IBV_WR_RDMA_READ, 0, SIZE, 0);
	pid = fork();
	if (!pid) {
		memset(self->mem[1], 2, SIZE);
		pause();
		_exit(0);
	}
	usleep(100000);
	DONE(IBV_WR_RDMA_READ, 0, SIZE, 0);
	for (uint32_t i = 0; i < SIZE; i++)
		ASSERT_EQ(variant->shared ? 2 : 1, self->mem[0][i]);
	memset(self->mem[0], 3, SIZE);
	DONE(IBV_WR_RDMA_WRITE, 0, SIZE, 0);
	for (uint32_t i = 0; i < SIZE; i++)
		ASSERT_EQ(3, self->mem[1][i]);
	kill(pid, SIGKILL);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
}

/* A process dies while its pages come and go. */
TEST_F(odp, killed)
{
	for (unsigned int round = 0; round < 8; round++) {
		int status;
		pid_t pid = fork();

		ASSERT_LE(0, pid);
		if (!pid) {
			struct side s[2];
			uint8_t *mem = map(NULL, 2 * SIZE, -1);
			struct ibv_mr *a, *b;

			if (mem == MAP_FAILED || pair_open(s) || reconnect(s))
				_exit(1);
			a = region(&s[0], mem, SIZE, variant->implicit);
			b = region(&s[1], mem + SIZE, SIZE, variant->implicit);
			while (a && b && !do_op(&s[0], IBV_WR_RDMA_WRITE, mem, a->lkey, SIZE, mem + SIZE, b->rkey))
				madvise(mem, 2 * SIZE, MADV_DONTNEED);
			_exit(1);
		}
		usleep(300000 + round * 37000);
		ASSERT_EQ(0, kill(pid, SIGKILL));
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		ASSERT_TRUE(WIFSIGNALED(status));
		ASSERT_TRUE(pair_transfer(self->s));
	}
	DONE(IBV_WR_RDMA_WRITE, 0, SIZE, 0);
}

/* Regions and QPs end while page faults are outstanding. */
TEST_F(odp, they_end_while_pages_are_awaited)
{
	for (unsigned int i = 0; i < 60; i++) {
		struct ibv_mr *mr = region(&self->s[i & 1], self->mem[i & 1], SIZE, variant->implicit);
		struct ibv_wc wc;

		ASSERT_NE(NULL, mr);
		ASSERT_EQ(0, madvise(self->mem[0], SIZE, MADV_DONTNEED));
		ASSERT_EQ(0, madvise(self->mem[1], SIZE, MADV_DONTNEED));
		ASSERT_EQ(0, post_op(&self->s[0], i & 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, self->mem[0],
				     i & 1 ? self->mr[0]->lkey : mr->lkey, SIZE, self->mem[1],
				     i & 1 ? mr->rkey : self->mr[1]->rkey));
		usleep(i * 50);
		if (i % 3)
			ASSERT_EQ(0, ibv_dereg_mr(mr));
		if (i % 3 == 1)
			ASSERT_TRUE(side_wait(&self->s[0], &wc, 60));
		ASSERT_EQ(0, reconnect(self->s));
		if (!(i % 3))
			ASSERT_EQ(0, ibv_dereg_mr(mr));
	}
}

static int advise(struct ibv_pd *pd, enum ib_uverbs_advise_mr_advice advice, uint32_t flags, void *addr, uint32_t len,
		  uint32_t lkey)
{
	struct ibv_sge sge = { (uintptr_t)addr, len, lkey };

	return ibv_advise_mr(pd, advice, flags, &sge, 1);
}

/*
 * The kernel may take a page away at any time, to move it or to make a huge page of it. The next access is a page fault
 * then, so a few rounds may have one. Where a prefetch brings nothing in, each round has.
 */
TEST_F(odp, what_was_prefetched_does_not_fault)
{
	static const enum ib_uverbs_advise_mr_advice advices[] = {
		IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_ADVICE_PREFETCH,
		IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT,
	};

	for EACH(advice, advices) {
		bool write = *advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
		unsigned int without[2] = { 0, 0 };

		for (unsigned int round = 0; round < ROUNDS; round++) {
			int64_t faults[2];

			pair_fill(self->mem[0], SIZE, 9 + round);
			pair_fill(self->mem[1], SIZE, 9 + round);
			for (int i = 0; i < 2; i++) {
				ASSERT_EQ(0, advise(self->s[i].pd, *advice, IBV_ADVISE_MR_FLAG_FLUSH, self->mem[i],
						    SIZE, self->mr[i]->lkey));
				faults[i] = side_counter(&self->s[i], "page_faults");
			}
			/* Who only looked must not have to write. */
			DONE(write ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, 0, SIZE, 0);
			ASSERT_EQ(0, memcmp(self->mem[0], self->mem[1], SIZE));
			for (int i = 0; i < 2; i++) {
				without[i] += faults[i] == side_counter(&self->s[i], "page_faults");
				ASSERT_EQ(0, madvise(self->mem[i], SIZE, MADV_DONTNEED));
			}
		}
		ASSERT_LE(ROUNDS - 2, without[0]);
		if (write)
			ASSERT_LE(ROUNDS - 2, without[1]);
	}
	ASSERT_EQ(0, advise(self->s[0].pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, self->mem[0], SIZE, self->mr[0]->lkey));
	DONE(IBV_WR_RDMA_WRITE, 0, SIZE, 0);
}

/* The pages of a file, of which a private mapping has copies once they are written. */
TEST_F(odp, what_was_prefetched_to_read_is_copied_before_it_is_written)
{
	uint8_t *file, *zeros = map(NULL, SIZE, -1);
	int fd = memfd_create("prefetched", 0);

	ASSERT_NE(MAP_FAILED, zeros);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, ftruncate(fd, SIZE));
	file = map(NULL, SIZE, fd);
	ASSERT_NE(MAP_FAILED, file);
	ASSERT_EQ(self->mem[1],
		  mmap(self->mem[1], SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0));
	close(fd);
	ASSERT_EQ(0, advise(self->s[1].pd, IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH, self->mem[1], SIZE,
			    self->mr[1]->lkey));
	memset(self->mem[0], 5, SIZE);
	DONE(IBV_WR_RDMA_WRITE, 0, SIZE, 0);
	ASSERT_EQ(0, memcmp(self->mem[0], self->mem[1], SIZE));
	ASSERT_EQ(0, memcmp(zeros, file, SIZE));
	munmap(file, SIZE);
	munmap(zeros, SIZE);
}

TEST_F(odp, bad_advice)
{
	struct side *a = &self->s[0];
	struct ibv_pd *pd = ibv_alloc_pd(a->context);
	struct ibv_mr *fixed = ibv_reg_mr(a->pd, self->mem[0], SIZE, IBV_ACCESS_ON_DEMAND);
	void *hole = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct {
		const char *name;
		struct ibv_pd *pd;
		int advice, flags;
		void *addr;
		uint32_t len, lkey;
		int err;
	} rows[] = {
		{ "right", a->pd, 1, 1, self->mem[0], SIZE, self->mr[0]->lkey, 0 },
		{ "no bytes", a->pd, 1, 1, self->mem[0], 0, self->mr[0]->lkey, 0 },
		{ "an unknown advice", a->pd, 3, 1, self->mem[0], SIZE, self->mr[0]->lkey, EOPNOTSUPP },
		{ "unknown flags", a->pd, 1, 2, self->mem[0], SIZE, self->mr[0]->lkey, EINVAL },
		{ "an unknown key", a->pd, 1, 1, self->mem[0], SIZE, self->mr[0]->lkey ^ 1, ENOENT },
		{ "a region that is pinned", a->pd, 1, 1, a->mem, 4096, a->mr->lkey, ENOENT },
		{ "another PD", pd, 1, 1, self->mem[0], SIZE, self->mr[0]->lkey, EPERM },
		{ "to write what is only read", a->pd, 1, 1, self->mem[0], SIZE, fixed->lkey, EPERM },
		{ "to read it", a->pd, 0, 1, self->mem[0], SIZE, fixed->lkey, 0 },
		{ "past the end", a->pd, 1, 1, self->mem[0] + 1, SIZE, fixed->lkey, EPERM },
		{ "past the end, to read", a->pd, 0, 1, self->mem[0] + 1, SIZE, fixed->lkey, EFAULT },
		{ "no access", a->pd, 1, 1, hole, 4096, self->mr[0]->lkey, EFAULT },
		{ "no access, not at once", a->pd, 1, 0, hole, 4096, self->mr[0]->lkey,
		  variant->implicit ? 0 : EFAULT },
	};

	ASSERT_NE(NULL, pd);
	ASSERT_NE(NULL, fixed);
	for EACH(row, rows) {
		int err = advise(row->pd, row->advice, row->flags, row->addr, row->len, row->lkey);

		GAVE(row->err, err, row);
	}
	ASSERT_EQ(0, ibv_dereg_mr(fixed));
	ASSERT_EQ(0, ibv_dealloc_pd(pd));
}

#define PREFETCHED	(1ul << 30)	/* bytes, in each of: */
#define PREFETCHES	400

static void *map_much(void)
{
	return mmap(NULL, PREFETCHED, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

/* It takes minutes. */
static int prefetch_much(struct ibv_mr *mr, void *mem, uint32_t flags)
{
	struct ibv_sge sges[PREFETCHES];

	for (int i = 0; i < PREFETCHES; i++)
		sges[i] = (struct ibv_sge){ (uintptr_t)mem, PREFETCHED, mr->lkey };
	return ibv_advise_mr(mr->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, flags, sges, PREFETCHES);
}

/* A region ends at once, though much of it is still to be brought in. */
TEST_F(odp, a_long_prefetch_ends_with_its_region)
{
	void *mem = map_much();
	struct ibv_mr *mr;
	time_t start;

	ASSERT_NE(MAP_FAILED, mem);
	mr = region(&self->s[0], mem, PREFETCHED, variant->implicit);
	ASSERT_NE(NULL, mr);
	ASSERT_EQ(0, prefetch_much(mr, mem, 0));
	usleep(100000);
	start = time(NULL);
	ASSERT_EQ(0, ibv_dereg_mr(mr));
	ASSERT_GT(20, time(NULL) - start);
	ASSERT_EQ(0, munmap(mem, PREFETCHED));
}

/* More than the kernel does at a time of anything. */
TEST_F(odp, prefetches_keep_no_page_fault_waiting)
{
	struct ibv_mr *mr, *late;
	void *mem = map_much();
	time_t start;

	ASSERT_NE(MAP_FAILED, mem);
	mr = region(&self->s[0], mem, PREFETCHED, variant->implicit);
	ASSERT_NE(NULL, mr);
	for (int i = 0; i < 1100; i++)
		ASSERT_EQ(0, prefetch_much(mr, mem, 0));
	DONE(IBV_WR_RDMA_WRITE, 0, 20000, 100);
	/* Nor a region that ends before its turn comes. */
	late = region(&self->s[0], self->mem[0], SIZE, variant->implicit);
	ASSERT_NE(NULL, late);
	ASSERT_EQ(0, advise(late->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, self->mem[0], SIZE, late->lkey));
	start = time(NULL);
	ASSERT_EQ(0, ibv_dereg_mr(late));
	ASSERT_GT(20, time(NULL) - start);
	ASSERT_EQ(0, ibv_dereg_mr(mr));
	ASSERT_EQ(0, munmap(mem, PREFETCHED));
}

/* So does a program that waits for that. */
TEST_F(odp, a_long_prefetch_ends_with_its_program)
{
	pid_t pid = fork();
	time_t start;
	int status;

	ASSERT_LE(0, pid);
	if (!pid) {
		void *mem = map_much();
		struct side s[2];

		if (mem == MAP_FAILED || pair_open(s))
			_exit(1);
		prefetch_much(region(&s[0], mem, PREFETCHED, variant->implicit), mem, IBV_ADVISE_MR_FLAG_FLUSH);
		_exit(1);
	}
	sleep(2);
	start = time(NULL);
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_TRUE(WIFSIGNALED(status));
	ASSERT_GT(20, time(NULL) - start);
}

/* Of single pages far from each other; memory that is given back is given back by the device, too. */
TEST_F(odp, single_pages_here_and_there)
{
	enum { NUM = 200 };
	static uint8_t *pages[NUM];

	for (unsigned int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < NUM; i++) {
			struct ibv_mr *mr;

			pages[i] = mmap((void *)(0x200000000000 + i * 0x740001000), 4096, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
			ASSERT_NE(MAP_FAILED, pages[i]);
			mr = variant->implicit ? self->mr[1] : region(&self->s[1], pages[i], 4096, false);
			ASSERT_NE(NULL, mr);
			memset(self->mem[0], i + round, 4096);
			ASSERT_EQ(IBV_WC_SUCCESS, do_op(&self->s[0], IBV_WR_RDMA_WRITE, self->mem[0],
							self->mr[0]->lkey, 4096, pages[i], mr->rkey));
			if (!variant->implicit)
				ASSERT_EQ(0, ibv_dereg_mr(mr));
		}
		for (uint32_t i = 0; i < NUM; i++) {
			ASSERT_EQ((uint8_t)(i + round), pages[i][0]);
			ASSERT_EQ((uint8_t)(i + round), pages[i][4095]);
			ASSERT_EQ(0, munmap(pages[i], 4096));
		}
	}
}

TEST_F(odp, capabilities)
{
	struct ibv_device_attr_ex attr;
	const uint32_t connected = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
				   IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV;

	ASSERT_EQ(0, ibv_query_device_ex(self->s[0].context, NULL, &attr));
	ASSERT_EQ(IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT, attr.odp_caps.general_caps);
	ASSERT_EQ(connected | IBV_ODP_SUPPORT_RECV | SUPPORT_FLUSH | SUPPORT_ATOMIC_WRITE,
		  attr.odp_caps.per_transport_caps.rc_odp_caps);
	ASSERT_EQ(connected, attr.xrc_odp_caps);
	ASSERT_EQ(IBV_ODP_SUPPORT_SEND, attr.odp_caps.per_transport_caps.uc_odp_caps);
	ASSERT_EQ(IBV_ODP_SUPPORT_SEND, attr.odp_caps.per_transport_caps.ud_odp_caps);
}

#define STUCK	1100	/* more works than a queue of the kernel's runs at a time */

/* As many QPs, each of which sends from another page that does not come. */
static int send_stuck_pages(const struct stuck *stuck)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { .max_send_wr = 1, .max_send_sge = 1 } };
	static struct ibv_qp *qps[STUCK];
	struct side s[2];
	struct ibv_mr *mr;
	int err;

	err = pair_open(s);
	if (err)
		return err;
	mr = ibv_reg_mr(s[0].pd, stuck->mem, stuck->size, IBV_ACCESS_ON_DEMAND);
	init.send_cq = init.recv_cq = s[0].cq;
	for (unsigned int i = 0; i < STUCK && !err; i++) {
		qps[i] = ibv_create_qp(s[0].pd, &init);
		if (!mr || !qps[i])
			return errno;
		err = qp_to_init(qps[i], 0) ?: qp_to_rtr(qps[i], &s[0], &s[1], s[1].qp->qp_num) ?:
		      qp_to_rts(qps[i], 17, 7, 7);
	}
	/* From here on the program may wait whenever it maps memory. */
	for (unsigned int i = 0; i < STUCK && !err; i++) {
		struct ibv_sge sge = { (uintptr_t)stuck->mem + i * 4096, 8, mr->lkey };
		struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };

		err = ibv_post_send(qps[i], &wr, &bad);
	}
	return err;
}

/* A program waits for pages of its own only. */
TEST(pages_of_another_program_never_come)
{
	struct stuck stuck;
	struct side s[2];
	struct ibv_mr *mr;
	int fds[2], err;
	uint8_t *mem;
	pid_t pid;

	ASSERT_EQ(0, stuck_open(&stuck, STUCK * 4096));
	ASSERT_EQ(0, pipe(fds));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		err = send_stuck_pages(&stuck);
		err = write(fds[1], &err, sizeof(err)) < 0;
		pause();
		_exit(err);
	}
	EXPECT_EQ(sizeof(err), read(fds[0], &err, sizeof(err)));
	EXPECT_EQ(0, err);

	EXPECT_EQ(0, pair_open(s));
	mem = map(NULL, SIZE, -1);
	mr = region(&s[0], mem, SIZE, false);
	EXPECT_NE(NULL, mr);
	EXPECT_EQ(IBV_WC_SUCCESS, do_op(&s[0], IBV_WR_RDMA_WRITE, mem, mr->lkey, SIZE, s[1].mem, s[1].mr->rkey));
	EXPECT_EQ(0, ibv_dereg_mr(mr));
	munmap(mem, SIZE);

	stuck_give_up(&stuck);
	EXPECT_EQ(0, kill(pid, SIGKILL));
	EXPECT_EQ(pid, waitpid(pid, NULL, 0));
	stuck_close(&stuck);
	pair_close(s);
}

TEST_HARNESS_MAIN
