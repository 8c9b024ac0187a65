// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Programs that fork while they transfer: the child's memory is its own, what the parent registered stays
 * where it is, and a child that ends takes nothing of the parent's along.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pair.h"

#define CHILDREN 10

FIXTURE(fork) {
	struct side s[2];
};

FIXTURE_VARIANT(fork) {
	bool init;
};

/* As most programs do it, and as those that know of fork do. */
FIXTURE_VARIANT_ADD(fork, plain) { .init = false };
FIXTURE_VARIANT_ADD(fork, after_fork_init) { .init = true };

FIXTURE_SETUP(fork)
{
	if (variant->init)
		ASSERT_EQ(0, ibv_fork_init());
	ASSERT_EQ(0, pair_open(self->s));
}

FIXTURE_TEARDOWN(fork)
{
	pair_close(self->s);
}

static void transfers(struct __test_metadata *_metadata, struct side s[2], unsigned int n)
{
	while (n--)
		ASSERT_TRUE(pair_transfer(s));
}

/* Ends with the status that says that nothing went wrong. */
static void reap(struct __test_metadata *_metadata, pid_t pid)
{
	int status;

	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_TRUE(WIFEXITED(status));
	ASSERT_EQ(0, WEXITSTATUS(status));
}

TEST_F(fork, linux_copies_what_is_registered)
{
	EXPECT_EQ(IBV_FORK_UNNEEDED, ibv_is_fork_initialized());
}

TEST_F(fork, a_child_that_ends_at_once)
{
	for (unsigned int i = 0; i < CHILDREN; i++) {
		pid_t pid = fork();

		ASSERT_GE(pid, 0);
		if (!pid)
			_exit(0);
		transfers(_metadata, self->s, 20);
		reap(_metadata, pid);
		transfers(_metadata, self->s, 20);
	}
}

TEST_F(fork, a_child_that_is_another_program)
{
	for (unsigned int i = 0; i < CHILDREN; i++) {
		pid_t pid = fork();

		ASSERT_GE(pid, 0);
		if (!pid) {
			execl("/bin/true", "true", NULL);
			_exit(1);
		}
		transfers(_metadata, self->s, 20);
		reap(_metadata, pid);
	}
	transfers(_metadata, self->s, 20);
}

/* The child writes to all of its copy, and lives while the parent transfers. */
TEST_F(fork, a_child_that_writes_to_its_memory)
{
	int stop[2];
	char byte;
	pid_t pid;

	ASSERT_EQ(0, pipe(stop));
	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		close(stop[1]);
		for (unsigned int i = 0; i < 2; i++)
			memset(self->s[i].mem, 0xee, PAIR_MEM);
		if (read(stop[0], &byte, 1) != 0)
			_exit(2);
		for (unsigned int i = 0; i < 2; i++)
			for (size_t j = 0; j < PAIR_MEM; j++)
				if (self->s[i].mem[j] != 0xee)
					_exit(3);
		_exit(0);
	}
	close(stop[0]);
	transfers(_metadata, self->s, 200);
	close(stop[1]);
	reap(_metadata, pid);
	transfers(_metadata, self->s, 20);
}

/* The parent writes first, which is what makes pages be copied. */
TEST_F(fork, children_while_the_parent_writes)
{
	pid_t pids[CHILDREN];
	int stop[2];
	char byte;

	ASSERT_EQ(0, pipe(stop));
	for (unsigned int i = 0; i < CHILDREN; i++) {
		pids[i] = fork();
		ASSERT_GE(pids[i], 0);
		if (!pids[i]) {
			close(stop[1]);
			_exit(read(stop[0], &byte, 1) != 0);
		}
		for (unsigned int j = 0; j < 2; j++)
			memset(self->s[j].mem, (int)i, PAIR_MEM);
		transfers(_metadata, self->s, 20);
	}
	close(stop[1]);
	for (unsigned int i = 0; i < CHILDREN; i++)
		reap(_metadata, pids[i]);
	transfers(_metadata, self->s, 20);
}

/* A child opens the NICs itself, while its parent goes on. */
TEST_F(fork, a_child_with_queues_of_its_own)
{
	pid_t pid = fork();

	ASSERT_GE(pid, 0);
	if (!pid) {
		struct side s[2];

		if (pair_open(s))
			_exit(1);
		for (unsigned int i = 0; i < 100; i++)
			if (!pair_transfer(s))
				_exit(2);
		pair_close(s);
		_exit(0);
	}
	transfers(_metadata, self->s, 100);
	reap(_metadata, pid);
}

/*
 * The context is shared: a child may register memory of its own in it. The region outlives the
 * child, with its pages.
 */
TEST_F(fork, memory_of_a_child_in_the_context_of_its_parent)
{
	struct side *a = &self->s[0], *b = &self->s[1];
	struct { uint64_t addr; uint32_t rkey, err; } told = {};
	int up[2], down[2];
	struct ibv_sge sge = { (uintptr_t)a->mem, 4096, a->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_wc wc;
	char byte;
	pid_t pid;

	ASSERT_EQ(0, pipe(up));
	ASSERT_EQ(0, pipe(down));
	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		void *mem = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		struct ibv_mr *mr;

		close(down[1]);
		memset(mem, 0x5c, 4096);
		mr = ibv_reg_mr(b->pd, mem, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
		told.addr = (uintptr_t)mem;
		told.rkey = mr ? mr->rkey : 0;
		told.err = mr ? 0 : errno;
		if (write(up[1], &told, sizeof(told)) != sizeof(told))
			_exit(1);
		_exit(read(down[0], &byte, 1) != 0);
	}
	ASSERT_EQ(sizeof(told), read(up[0], &told, sizeof(told)));
	ASSERT_EQ(0, told.err);
	wr.wr.rdma.remote_addr = told.addr;
	wr.wr.rdma.rkey = told.rkey;
	for (unsigned int i = 0; i < 2; i++) {
		memset(a->mem, 0, 4096);
		ASSERT_EQ(0, ibv_post_send(a->qp, &wr, &bad));
		ASSERT_TRUE(side_wait(a, &wc, 5));
		ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
		for (unsigned int j = 0; j < 4096; j++)
			ASSERT_EQ(0x5c, a->mem[j]);
		if (!i) {
			close(down[1]);
			reap(_metadata, pid);
		}
	}
	transfers(_metadata, self->s, 20);
	/* Its PD cannot go: nobody can deregister the region but by closing the context. */
	self->s[1].pd = NULL;
}

TEST_HARNESS_MAIN
