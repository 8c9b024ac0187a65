// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What is taken away under traffic: regions, mappings, processes. The peer's work fails as the
 * specification says, and whoever gets the memory next finds nobody writing to it.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pair.h"

#define SIZE	(1u << 20)
#define ROUNDS	30
#define PATIENCE (20 * ROUNDS)	/* where each time all was done before anything was taken away */
#define ALL	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

FIXTURE(teardown) {
	struct side s[2];
	uint8_t *target;
	struct ibv_mr *mr;		/* over target, which the peer may write to */
};

static void *fresh(void *where)
{
	return mmap(where, SIZE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | (where ? MAP_FIXED : 0), -1, 0);
}

FIXTURE_SETUP(teardown)
{
	ASSERT_EQ(0, pair_open(self->s));
	self->target = fresh(NULL);
	ASSERT_NE(MAP_FAILED, self->target);
	self->mr = ibv_reg_mr(self->s[1].pd, self->target, SIZE, ALL);
	ASSERT_NE(NULL, self->mr);
	srand((unsigned int)time(NULL));
}

FIXTURE_TEARDOWN(teardown)
{
	if (self->mr)
		ibv_dereg_mr(self->mr);
	munmap(self->target, SIZE);
	pair_close(self->s);
}

/* Work that keeps the peer busy for some milliseconds. */
static int post_some(struct side *a, enum ibv_wr_opcode opcode, uint64_t addr, uint32_t rkey,
		     uint32_t lkey, void *local)
{
	struct ibv_sge sge = { (uintptr_t)local, SIZE, lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { addr, rkey },
	};
	int err = 0;

	for (unsigned int i = 0; i < PAIR_WRS && !err; i++)
		err = ibv_post_send(a->qp, &wr, &bad);
	return err;
}

/* Some succeed, then one fails as it should, the rest is flushed. */
static enum ibv_wc_status outcome(struct side *a, unsigned int *succeeded)
{
	enum ibv_wc_status status = IBV_WC_SUCCESS;
	struct ibv_wc wc;

	*succeeded = 0;
	for (unsigned int i = 0; i < PAIR_WRS; i++) {
		if (!side_wait(a, &wc, 10))
			return IBV_WC_GENERAL_ERR;
		if (wc.status == IBV_WC_SUCCESS && status == IBV_WC_SUCCESS)
			++*succeeded;
		else if (status == IBV_WC_SUCCESS)
			status = wc.status;
		else if (wc.status != IBV_WC_WR_FLUSH_ERR)
			return IBV_WC_GENERAL_ERR;
	}
	return status;
}

/* Has anybody written to memory that should be ours alone? */
static bool untouched(const uint8_t *mem, size_t size, uint8_t canary)
{
	for (size_t i = 0; i < size; i++)
		if (mem[i] != canary)
			return false;
	return true;
}

static void random_pause(unsigned int microseconds)
{
	usleep((useconds_t)rand() % microseconds);
}

static void drain_events(struct side *s)
{
	struct ibv_async_event event;

	if (!ibv_get_async_event(s->context, &event))
		ibv_ack_async_event(&event);
}

/* From the moment at which dereg_mr returns nobody touches the memory. */
#define DEREG(opcode) do {						\
	unsigned int early = 0;						\
									\
	for (unsigned int i = 0; i < ROUNDS || (!early && i < PATIENCE); i++) { \
		struct side *a = &self->s[0], *b = &self->s[1];		\
		enum ibv_wc_status status;				\
		unsigned int succeeded;					\
									\
		memset(a->mem, 0x11, SIZE);				\
		ASSERT_EQ(0, post_some(a, opcode, (uintptr_t)self->target, self->mr->rkey, \
				       a->mr->lkey, a->mem));		\
		if (i < ROUNDS)						\
			random_pause(3000 >> i % 12);			\
		ASSERT_EQ(0, ibv_dereg_mr(self->mr));			\
		memset(self->target, 0xc5, SIZE);			\
		status = outcome(a, &succeeded);			\
		ASSERT_TRUE(untouched(self->target, SIZE, 0xc5));	\
		if (succeeded < PAIR_WRS) {				\
			ASSERT_EQ(IBV_WC_REM_ACCESS_ERR, status);	\
			drain_events(b);				\
			early++;					\
		}							\
		self->mr = ibv_reg_mr(b->pd, self->target, SIZE, ALL);	\
		ASSERT_NE(NULL, self->mr);				\
		ASSERT_EQ(0, pair_reconnect(self->s));			\
		ASSERT_TRUE(pair_transfer(self->s));			\
	}								\
	/* Or nothing was tested. */					\
	EXPECT_LT(0, early);						\
} while (0)

TEST_F(teardown, dereg_of_what_the_peer_writes_to) { DEREG(IBV_WR_RDMA_WRITE); }
TEST_F(teardown, dereg_of_what_the_peer_reads) { DEREG(IBV_WR_RDMA_READ); }

TEST_F(teardown, dereg_of_what_its_own_work_uses)
{
	unsigned int early = 0;

	for (unsigned int i = 0; i < ROUNDS || (!early && i < PATIENCE); i++) {
		struct side *a = &self->s[0], *b = &self->s[1];
		void *local = fresh(NULL);
		struct ibv_mr *mr = ibv_reg_mr(a->pd, local, SIZE, ALL);
		enum ibv_wc_status status;
		unsigned int succeeded;

		ASSERT_NE(NULL, mr);
		ASSERT_EQ(0, post_some(a, IBV_WR_RDMA_READ, (uintptr_t)b->mem, b->mr->rkey, mr->lkey,
				       local));
		if (i < ROUNDS)
			random_pause(3000 >> i % 12);
		ASSERT_EQ(0, ibv_dereg_mr(mr));
		memset(local, 0xc5, SIZE);
		status = outcome(a, &succeeded);
		ASSERT_TRUE(untouched(local, SIZE, 0xc5));
		if (succeeded < PAIR_WRS) {
			ASSERT_EQ(IBV_WC_LOC_PROT_ERR, status);
			early++;
		}
		ASSERT_EQ(0, munmap(local, SIZE));
		ASSERT_EQ(0, pair_reconnect(self->s));
		ASSERT_TRUE(pair_transfer(self->s));
	}
	EXPECT_LT(0, early);
}

/* What is registered stays, though unmapped; what is mapped there next is not it. */
TEST_F(teardown, munmap_of_what_the_peer_writes_to)
{
	struct side *a = &self->s[0];
	unsigned int succeeded;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		memset(a->mem, 0x11, SIZE);
		ASSERT_EQ(0, post_some(a, IBV_WR_RDMA_WRITE, (uintptr_t)self->target, self->mr->rkey,
				       a->mr->lkey, a->mem));
		random_pause(2000);
		ASSERT_EQ(self->target, fresh(self->target));
		memset(self->target, 0xc5, SIZE);
		ASSERT_EQ(IBV_WC_SUCCESS, outcome(a, &succeeded));
		ASSERT_EQ(PAIR_WRS, succeeded);
		ASSERT_TRUE(untouched(self->target, SIZE, 0xc5));
		ASSERT_EQ(0, ibv_dereg_mr(self->mr));
		self->mr = ibv_reg_mr(self->s[1].pd, self->target, SIZE, ALL);
		ASSERT_NE(NULL, self->mr);
	}
	ASSERT_TRUE(pair_transfer(self->s));
}

/* The QP that receives is destroyed: its CQEs and its memory are free when that returns. */
TEST_F(teardown, destroy_of_a_qp_under_writes)
{
	for (unsigned int i = 0; i < ROUNDS; i++) {
		struct side *a = &self->s[0], *b = &self->s[1];
		unsigned int succeeded;
		enum ibv_wc_status status;

		ASSERT_EQ(0, post_some(a, IBV_WR_RDMA_WRITE, (uintptr_t)self->target, self->mr->rkey,
				       a->mr->lkey, a->mem));
		random_pause(2000);
		ASSERT_EQ(0, ibv_destroy_qp(b->qp));
		memset(self->target, 0xc5, SIZE);
		status = outcome(a, &succeeded);
		ASSERT_TRUE(untouched(self->target, SIZE, 0xc5));
		ASSERT_TRUE(succeeded == PAIR_WRS || status == IBV_WC_RETRY_EXC_ERR);
		b->qp = side_create_qp(b);
		ASSERT_NE(NULL, b->qp);
		ASSERT_EQ(0, pair_reconnect(self->s));
		ASSERT_TRUE(pair_transfer(self->s));
	}
}

/* What two processes tell each other to connect. */
struct end {
	union ibv_gid gid;
	uint64_t addr;
	uint32_t qpn, rkey;
};

static bool connect_to(struct side *s, const struct end *end)
{
	struct side peer = { .gid = end->gid };

	return !qp_to_init(s->qp, ALL) && !qp_to_rtr(s->qp, s, &peer, end->qpn) &&
	       !qp_to_rts(s->qp, 10, 3, 3);
}

static bool tell(int fd, const struct side *s)
{
	struct end end = { s->gid, (uintptr_t)s->mem, s->qp->qp_num, s->mr->rkey };

	return write(fd, &end, sizeof(end)) == sizeof(end);
}

static bool hear(int fd, struct end *end)
{
	return read(fd, end, sizeof(*end)) == sizeof(*end);
}

/* A process whose memory the peer writes to. It waits to be killed. */
static void victim(int in, int out)
{
	struct side s;
	struct end peer;

	if (side_open(&s, "skua_1"))
		_exit(1);
	s.qp = side_create_qp(&s);
	if (!s.qp || !tell(out, &s) || !hear(in, &peer) || !connect_to(&s, &peer) || !tell(out, &s))
		_exit(2);
	for (;;)
		pause();
}

/* To get the pages that the victim had. In the debug kernel one round of that takes ten seconds and more. */
#define GRAB (256u << 20)

TEST_F_TIMEOUT(teardown, kill_of_a_process_that_is_written_to, 600)
{
	uint8_t *grab = mmap(NULL, GRAB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct side *a = &self->s[0];

	ASSERT_NE(MAP_FAILED, grab);
	memset(a->mem, 0x11, SIZE);
	for (unsigned int i = 0; i < 10; i++) {
		struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
		int up[2], down[2], status;
		unsigned int succeeded;
		struct end end;
		pid_t pid;

		ASSERT_EQ(0, pipe(up));
		ASSERT_EQ(0, pipe(down));
		pid = fork();
		ASSERT_GE(pid, 0);
		if (!pid)
			victim(down[0], up[1]);
		ASSERT_TRUE(hear(up[0], &end));
		ASSERT_EQ(0, ibv_modify_qp(a->qp, &reset, IBV_QP_STATE));
		ASSERT_TRUE(connect_to(a, &end));
		ASSERT_TRUE(tell(down[1], a));
		ASSERT_TRUE(hear(up[0], &end));		/* it is connected, too */
		ASSERT_EQ(0, post_some(a, IBV_WR_RDMA_WRITE, end.addr, end.rkey, a->mr->lkey, a->mem));
		random_pause(2000);
		ASSERT_EQ(0, kill(pid, SIGKILL));
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		memset(grab, 0xc5, GRAB);
		outcome(a, &succeeded);
		ASSERT_TRUE(untouched(grab, GRAB, 0xc5));
		ASSERT_EQ(0, madvise(grab, GRAB, MADV_DONTNEED));
		close(up[0]); close(up[1]); close(down[0]); close(down[1]);
	}
	ASSERT_EQ(0, munmap(grab, GRAB));
	ASSERT_EQ(0, pair_reconnect(self->s));
	ASSERT_TRUE(pair_transfer(self->s));
}

/* Processes with all kinds of traffic are killed, while another one's data stay right. */
TEST_F_TIMEOUT(teardown, kill_of_rdma_traffic, 600)
{
	for (unsigned int i = 0; i < 10; i++) {
		pid_t pids[2];
		int status;

		for (unsigned int j = 0; j < 2; j++) {
			pids[j] = fork();
			ASSERT_GE(pids[j], 0);
			if (!pids[j]) {
				execlp("rdma_traffic", "rdma_traffic", "-Q", "-n", "1000000", "skua_0",
				       "skua_1", NULL);
				_exit(1);
			}
		}
		for (unsigned int j = 0; j < 50; j++) {
			ASSERT_TRUE(pair_transfer(self->s));
			random_pause(10000);
		}
		for (unsigned int j = 0; j < 2; j++) {
			ASSERT_EQ(0, kill(pids[j], SIGKILL));
			ASSERT_EQ(pids[j], waitpid(pids[j], &status, 0));
			/* It had not ended by itself. */
			ASSERT_TRUE(WIFSIGNALED(status));
		}
		ASSERT_TRUE(pair_transfer(self->s));
	}
}

TEST_HARNESS_MAIN
