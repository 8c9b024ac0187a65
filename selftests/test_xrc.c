// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Extended reliable connections: a QP of skua_0 sends to SRQs of skua_1, in this process and in others.
 * Rules: Documentation/manual/xrc.rst.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "xrc.h"

#define SRQS		2
#define WRS		16
#define SLOT		8192u
#define HALF		(PAIR_MEM / 2)	/* of skua_1: targets of peers below, of receives above */
#define RIGHTS		(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* Memory of skua_1, with a PD of its own, and an SRQ there with a CQ of its own. */
struct home {
	struct side side;
	struct ibv_srq *srq;
	uint32_t srqn;
};

static struct ibv_xrcd *open_domain(struct ibv_context *context, int fd)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = fd, .oflags = O_CREAT,
	};

	return ibv_open_xrcd(context, &attr);
}

/* 0 or an errno. */
static int make_srq(struct home *home, struct ibv_xrcd *xrcd)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = WRS, .max_sge = 1 }, .srq_type = IBV_SRQT_XRC, .pd = home->side.pd,
		.xrcd = xrcd, .cq = home->side.cq,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
			     IBV_SRQ_INIT_ATTR_CQ,
	};

	home->srq = ibv_create_srq_ex(home->side.context, &attr);
	return home->srq ? ibv_get_srq_num(home->srq, &home->srqn) : errno;
}

static struct ibv_qp *make_target(struct ibv_context *context, struct ibv_xrcd *xrcd)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd,
	};

	return ibv_create_qp_ex(context, &attr);
}

static int connect_target(struct ibv_qp *qp, struct side *b, struct side *a, uint32_t initiator)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .timeout = 14, .sq_psn = 0xfffff0 };
	int err = qp_to_init(qp, RIGHTS);

	err = err ? err : qp_to_rtr(qp, b, a, initiator);
	return err ? err : ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN);
}

FIXTURE(xrc) {
	struct side a;
	struct home home[SRQS];
	int file;
	struct ibv_xrcd *xrcd[SRQS];	/* each home has opened it by the file */
	struct ibv_qp *initiator, *target;
	uint64_t posted;		/* wr_ids */
};

FIXTURE_SETUP(xrc)
{
	char name[] = "/tmp/xrcdXXXXXX";

	self->file = mkstemp(name);
	ASSERT_LE(0, self->file);
	unlink(name);
	ASSERT_EQ(0, side_open(&self->a, "skua_0"));
	for (int i = 0; i < SRQS; i++) {
		ASSERT_EQ(0, side_open(&self->home[i].side, "skua_1"));
		self->xrcd[i] = open_domain(self->home[i].side.context, self->file);
		ASSERT_NE(NULL, self->xrcd[i]);
		ASSERT_EQ(0, make_srq(&self->home[i], self->xrcd[i]));
	}
	self->initiator = make_initiator(&self->a);
	ASSERT_NE(NULL, self->initiator);
	self->target = make_target(self->home[0].side.context, self->xrcd[0]);
	ASSERT_NE(NULL, self->target);
	ASSERT_EQ(0, connect_initiator(self->initiator, &self->a, &self->home[0].side, self->target->qp_num));
	ASSERT_EQ(0, connect_target(self->target, &self->home[0].side, &self->a, self->initiator->qp_num));
	pair_fill(self->a.mem, PAIR_MEM, 3);
}

FIXTURE_TEARDOWN(xrc)
{
	EXPECT_EQ(0, ibv_destroy_qp(self->initiator));
	if (self->target)
		EXPECT_EQ(0, ibv_destroy_qp(self->target));
	for (int i = 0; i < SRQS; i++) {
		if (self->home[i].srq)
			EXPECT_EQ(0, ibv_destroy_srq(self->home[i].srq));
		EXPECT_EQ(0, ibv_close_xrcd(self->xrcd[i]));
		side_close(&self->home[i].side);
	}
	side_close(&self->a);
	close(self->file);
}

/* Both QPs once more from RESET to RTS. */
#define RECONNECT() do {						\
	struct ibv_qp_attr reset_ = { .qp_state = IBV_QPS_RESET };	\
									\
	ASSERT_EQ(0, ibv_modify_qp(self->initiator, &reset_, IBV_QP_STATE)); \
	ASSERT_EQ(0, ibv_modify_qp(self->target, &reset_, IBV_QP_STATE)); \
	ASSERT_EQ(0, connect_initiator(self->initiator, &self->a, &self->home[0].side, \
				       self->target->qp_num));		\
	ASSERT_EQ(0, connect_target(self->target, &self->home[0].side, &self->a, \
				    self->initiator->qp_num));		\
} while (0)

static uint8_t *place(struct home *home, uint64_t wr_id)
{
	return home->side.mem + HALF + wr_id % 64 * SLOT;
}

static int post_recv(struct home *home, uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)place(home, wr_id), SLOT, home->side.mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };

	return ibv_post_srq_recv(home->srq, &wr, &bad);
}

/* A request for an SRQ of home's, of bytes at its memory's start if it names memory. */
static struct ibv_send_wr request(struct side *a, struct ibv_sge *sge, enum ibv_wr_opcode opcode,
				  const struct home *home, uint32_t size)
{
	bool atomic = opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	struct ibv_send_wr wr = {
		.wr_id = 5, .sg_list = sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED,
		.imm_data = htobe32(0x12345678), .qp_type.xrc.remote_srqn = home->srqn,
	};

	*sge = (struct ibv_sge){ (uintptr_t)a->mem, size, a->mr->lkey };
	if (atomic) {
		wr.wr.atomic.remote_addr = (uintptr_t)home->side.mem;
		wr.wr.atomic.rkey = home->side.mr->rkey;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)home->side.mem;
		wr.wr.rdma.rkey = home->side.mr->rkey;
	}
	return wr;
}

/* Post one; the status of its completion, or -1. */
static int carry_out(struct side *a, struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	if (ibv_post_send(qp, wr, &bad) || !side_wait(a, &wc, 20) || wc.wr_id != wr->wr_id || wc.qp_num != qp->qp_num)
		return -1;
	return wc.status;
}

#define REQUEST(status, opcode, home, size) do {			\
	struct ibv_sge sge_;						\
	struct ibv_send_wr wr_ = request(&self->a, &sge_, opcode, home, size); \
									\
	ASSERT_EQ(status, carry_out(&self->a, self->initiator, &wr_));	\
} while (0)

/* A SEND to the SRQ of home @i arrives there. */
#define SEND(i, size) do {						\
	struct home *home_ = &self->home[i];				\
	struct ibv_wc wc_;						\
									\
	ASSERT_EQ(0, post_recv(home_, self->posted));			\
	REQUEST(IBV_WC_SUCCESS, IBV_WR_SEND, home_, size);		\
	ASSERT_TRUE(side_wait(&home_->side, &wc_, 20));			\
	ASSERT_EQ(IBV_WC_SUCCESS, wc_.status);				\
	ASSERT_EQ(IBV_WC_RECV, wc_.opcode);				\
	ASSERT_EQ(self->posted, wc_.wr_id);				\
	ASSERT_EQ(self->target->qp_num, wc_.qp_num);			\
	ASSERT_EQ((uint32_t)(size), wc_.byte_len);			\
	ASSERT_EQ(0, memcmp(place(home_, self->posted), self->a.mem, size)); \
	self->posted++;							\
} while (0)

/* The next asynchronous event of home @i is of the target. */
#define EVENT(i, type) do {						\
	struct ibv_context *context_ = self->home[i].side.context;	\
	struct pollfd fd_ = { .fd = context_->async_fd, .events = POLLIN }; \
	struct ibv_async_event event_;					\
									\
	ASSERT_EQ(1, poll(&fd_, 1, 20000));				\
	ASSERT_EQ(0, ibv_get_async_event(context_, &event_));		\
	ibv_ack_async_event(&event_);					\
	ASSERT_EQ(type, event_.event_type);				\
	ASSERT_EQ(self->target, event_.element.qp);			\
} while (0)

TEST_F(xrc, the_device_tells_of_it)
{
	struct ibv_device_attr attr;

	ASSERT_EQ(0, ibv_query_device(self->a.context, &attr));
	ASSERT_TRUE(attr.device_cap_flags & IBV_DEVICE_XRC);
}

/* XRC-1 LIM-1: as many domains as there are, and no more; messages arrive by the first ones. */
TEST_F(xrc, as_many_as_there_are)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT,
	};
	static struct ibv_xrcd *xrcds[100000];
	unsigned int n = 0;

	while (n < 100000 && (xrcds[n] = ibv_open_xrcd(self->home[0].side.context, &attr)))
		n++;
	EXPECT_EQ(ENOMEM, errno);
	EXPECT_LE(1000, n);
	EXPECT_GT(100000, n);
	for (unsigned int i = 0; i < SRQS; i++)
		SEND(i, 1000);
	while (n--)
		ASSERT_EQ(0, ibv_close_xrcd(xrcds[n]));
	SEND(0, 1000);
}

/* XRC-2, XRC-10, XRC-12: each message arrives where it is to. */
TEST_F(xrc, messages_choose_their_srq)
{
	ASSERT_NE(self->home[0].srqn, self->home[1].srqn);
	for (unsigned int i = 0; i < 5 * WRS; i++)
		SEND(i % 3 % SRQS, 1 + i * 97 % SLOT);
}

TEST_F(xrc, send_with_immediate)
{
	struct home *home = &self->home[1];
	struct ibv_wc wc;

	ASSERT_EQ(0, post_recv(home, 1));
	REQUEST(IBV_WC_SUCCESS, IBV_WR_SEND_WITH_IMM, home, 5000);
	ASSERT_TRUE(side_wait(&home->side, &wc, 20));
	ASSERT_EQ(IBV_WC_WITH_IMM, wc.wc_flags);
	ASSERT_EQ(htobe32(0x12345678), wc.imm_data);
	ASSERT_EQ(0, memcmp(place(home, 1), self->a.mem, 5000));
}

TEST_F(xrc, write)
{
	for (int i = 0; i < SRQS; i++) {
		REQUEST(IBV_WC_SUCCESS, IBV_WR_RDMA_WRITE, &self->home[i], 100000);
		ASSERT_EQ(0, memcmp(self->home[i].side.mem, self->a.mem, 100000));
	}
}

TEST_F(xrc, write_with_immediate)
{
	struct home *home = &self->home[1];
	struct ibv_wc wc;

	ASSERT_EQ(0, post_recv(home, 1));
	REQUEST(IBV_WC_SUCCESS, IBV_WR_RDMA_WRITE_WITH_IMM, home, 5000);
	ASSERT_TRUE(side_wait(&home->side, &wc, 20));
	ASSERT_EQ(IBV_WC_RECV_RDMA_WITH_IMM, wc.opcode);
	ASSERT_EQ(1, wc.wr_id);
	ASSERT_EQ(5000, wc.byte_len);
	ASSERT_EQ(0, memcmp(home->side.mem, self->a.mem, 5000));
}

TEST_F(xrc, read)
{
	for (int i = 0; i < SRQS; i++) {
		pair_fill(self->home[i].side.mem, 100000, 40 + i);
		REQUEST(IBV_WC_SUCCESS, IBV_WR_RDMA_READ, &self->home[i], 100000);
		ASSERT_EQ(0, memcmp(self->home[i].side.mem, self->a.mem, 100000));
	}
}

TEST_F(xrc, atomics)
{
	struct home *home = &self->home[1];
	uint64_t *word = (uint64_t *)home->side.mem;
	struct ibv_mr *mr = ibv_reg_mr(home->side.pd, word, 8, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
	struct ibv_sge sge;
	struct ibv_send_wr wr = request(&self->a, &sge, IBV_WR_ATOMIC_FETCH_AND_ADD, home, 8);

	ASSERT_NE(NULL, mr);
	*word = 40;
	wr.wr.atomic.rkey = mr->rkey;
	wr.wr.atomic.compare_add = 2;
	ASSERT_EQ(IBV_WC_SUCCESS, carry_out(&self->a, self->initiator, &wr));
	ASSERT_EQ(42, *word);
	ASSERT_EQ(40, *(uint64_t *)self->a.mem);
	wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	wr.wr.atomic.compare_add = 42;
	wr.wr.atomic.swap = 7;
	ASSERT_EQ(IBV_WC_SUCCESS, carry_out(&self->a, self->initiator, &wr));
	ASSERT_EQ(7, *word);
	ASSERT_EQ(42, *(uint64_t *)self->a.mem);
	ASSERT_EQ(0, ibv_dereg_mr(mr));
}

TEST_F(xrc, inline_data)
{
	struct home *home = &self->home[1];
	struct ibv_sge sge;
	struct ibv_send_wr wr = request(&self->a, &sge, IBV_WR_RDMA_WRITE, home, 64);

	wr.send_flags |= IBV_SEND_INLINE;
	sge.lkey = 0;
	ASSERT_EQ(IBV_WC_SUCCESS, carry_out(&self->a, self->initiator, &wr));
	ASSERT_EQ(0, memcmp(home->side.mem, self->a.mem, 64));
}

TEST_F(xrc, by_calls)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_SEND, .pd = self->a.pd, .send_cq = self->a.cq,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE, .cap = { .max_send_wr = 4, .max_send_sge = 1 },
	};
	struct home *home = &self->home[1];
	struct ibv_qp_ex *qp_ex;
	struct ibv_wc wc;

	ASSERT_EQ(0, ibv_destroy_qp(self->initiator));
	self->initiator = ibv_create_qp_ex(self->a.context, &attr);
	ASSERT_NE(NULL, self->initiator);
	RECONNECT();
	qp_ex = ibv_qp_to_qp_ex(self->initiator);
	ibv_wr_start(qp_ex);
	qp_ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(qp_ex, home->side.mr->rkey, (uintptr_t)home->side.mem);
	ibv_wr_set_sge(qp_ex, self->a.mr->lkey, (uintptr_t)self->a.mem, 5000);
	ibv_wr_set_xrc_srqn(qp_ex, home->srqn);
	ASSERT_EQ(0, ibv_wr_complete(qp_ex));
	ASSERT_TRUE(side_wait(&self->a, &wc, 20));
	ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
	ASSERT_EQ(0, memcmp(home->side.mem, self->a.mem, 5000));
}

/* Who sends to an empty SRQ waits until there is a receive. */
TEST_F(xrc, an_empty_srq_is_waited_for)
{
	struct home *home = &self->home[0];
	struct ibv_sge sge;
	struct ibv_send_wr *bad, wr = request(&self->a, &sge, IBV_WR_SEND, home, 100);
	struct ibv_wc wc;

	ASSERT_EQ(0, ibv_post_send(self->initiator, &wr, &bad));
	ASSERT_FALSE(side_wait(&self->a, &wc, 1));
	ASSERT_EQ(0, post_recv(home, 9));
	ASSERT_TRUE(side_wait(&self->a, &wc, 20));
	ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
	ASSERT_TRUE(side_wait(&home->side, &wc, 20));
	ASSERT_EQ(9, wc.wr_id);
}

/* XRC-10, XRC-16: memory of one process is out of reach for messages to another. */
TEST_F(xrc, keys_are_those_of_the_srq)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = request(&self->a, &sge, IBV_WR_RDMA_WRITE, &self->home[0], 100);

	wr.qp_type.xrc.remote_srqn = self->home[1].srqn;
	memset(self->home[0].side.mem, 0x55, 100);
	ASSERT_EQ(IBV_WC_REM_ACCESS_ERR, carry_out(&self->a, self->initiator, &wr));
	EVENT(0, IBV_EVENT_QP_ACCESS_ERR);
	for (int i = 0; i < 100; i++)
		ASSERT_EQ(0x55, self->home[0].side.mem[i]);
	RECONNECT();
	SEND(0, 1000);
}

/* XRC-11 */
TEST_F(xrc, an_srq_of_another_domain_is_refused)
{
	struct home stranger;
	struct ibv_xrcd *xrcd;

	ASSERT_EQ(0, side_open(&stranger.side, "skua_1"));
	xrcd = open_domain(stranger.side.context, -1);
	ASSERT_NE(NULL, xrcd);
	ASSERT_EQ(0, make_srq(&stranger, xrcd));
	ASSERT_EQ(0, post_recv(&stranger, 1));
	REQUEST(IBV_WC_REM_INV_REQ_ERR, IBV_WR_SEND, &stranger, 100);
	EVENT(0, IBV_EVENT_QP_ACCESS_ERR);
	ASSERT_EQ(IBV_QPS_ERR, qp_state(self->target));
	RECONNECT();
	SEND(1, 1000);
	ASSERT_EQ(0, ibv_destroy_srq(stranger.srq));
	ASSERT_EQ(0, ibv_close_xrcd(xrcd));
	side_close(&stranger.side);
}

TEST_F(xrc, a_basic_srq_is_refused)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(self->home[0].side.pd, &attr);
	uint32_t number;

	ASSERT_NE(NULL, srq);
	ASSERT_NE(0, ibv_get_srq_num(srq, &number));
	ASSERT_EQ(0, ibv_destroy_srq(srq));
}

/* XRC-1, XRC-2 */
TEST_F(xrc, what_is_used_is_busy)
{
	ASSERT_EQ(EBUSY, ibv_close_xrcd(self->xrcd[0]));
	ASSERT_EQ(EBUSY, ibv_destroy_cq(self->home[1].side.cq));
	SEND(1, 100);
}

/* XRC-14: completions that nobody has polled go with the SRQ. */
TEST_F(xrc, an_srq_goes_with_its_completions)
{
	struct ibv_wc wc;

	for (uint64_t i = 0; i < 4; i++) {
		ASSERT_EQ(0, post_recv(&self->home[1], i));
		REQUEST(IBV_WC_SUCCESS, IBV_WR_SEND, &self->home[1], 100);
	}
	ASSERT_EQ(0, ibv_destroy_srq(self->home[1].srq));
	self->home[1].srq = NULL;
	ASSERT_EQ(0, ibv_poll_cq(self->home[1].side.cq, 1, &wc));
	SEND(0, 1000);
	REQUEST(IBV_WC_REM_INV_REQ_ERR, IBV_WR_SEND, &self->home[1], 100);
	EVENT(0, IBV_EVENT_QP_ACCESS_ERR);
	RECONNECT();
	SEND(0, 1000);
}

/* XRC-14: long messages are under way each time, of which the QPs forget what they have taken. */
TEST_F(xrc, an_srq_is_destroyed_under_traffic)
{
	/* 5 ms for the SENDs of a round. */
	struct ibv_qp_rate_limit_attr slow = { .rate_limit = 200000 };
	unsigned int under_way = 0;

	for (int round = 0; round < 20; round++) {
		struct home *home = &self->home[1];
		struct ibv_sge sge;
		struct ibv_send_wr *bad, wr = request(&self->a, &sge, round % 2 ? IBV_WR_RDMA_READ : IBV_WR_SEND,
						      home, round % 2 ? HALF : SLOT);
		struct ibv_wc wc;

		ASSERT_EQ(0, ibv_modify_qp_rate_limit(self->initiator, &slow));
		for (uint64_t i = 0; i < WRS; i++)
			ASSERT_EQ(0, post_recv(home, i));
		for (int i = 0; i < WRS - 1; i++)
			ASSERT_EQ(0, ibv_post_send(self->initiator, &wr, &bad));
		usleep(round * 50);
		ASSERT_EQ(0, ibv_destroy_srq(home->srq));
		home->srq = NULL;
		ASSERT_EQ(0, ibv_poll_cq(home->side.cq, 1, &wc));
		for (int i = 0; i < WRS - 1; i++) {
			ASSERT_TRUE(side_wait(&self->a, &wc, 20));
			/* READs that were accepted, but not answered yet. */
			ASSERT_TRUE(wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_REM_INV_REQ_ERR ||
				    (round % 2 && wc.status == IBV_WC_REM_ACCESS_ERR) ||
				    wc.status == IBV_WC_WR_FLUSH_ERR) {
				TH_LOG("status %d in round %d, completion %d", wc.status, round, i);
			}
		}
		under_way += wc.status != IBV_WC_SUCCESS;
		RECONNECT();
		SEND(0, 1000);
		ASSERT_EQ(0, make_srq(home, self->xrcd[1]));
		SEND(1, 1000);
	}
	TH_LOG("messages were under way in %u of 20 rounds", under_way);
	ASSERT_LT(0, under_way);
}

/* What another process of the test does, and the pipes that it and the parent talk by. */
struct other {
	pid_t pid;
	int to, from;
};

/* In the child: its numbers to the parent, the peer's from there. */
static bool say(int fd, uint32_t number)
{
	return write(fd, &number, sizeof(number)) == sizeof(number);
}

static bool hear(int fd, uint32_t *number)
{
	return read(fd, number, sizeof(*number)) == sizeof(*number);
}

static struct other start_other(void (*run)(int to, int from, int file, uint32_t arg), int file, uint32_t arg)
{
	int down[2], up[2];
	struct other other = { .pid = -1 };

	if (pipe(down) || pipe(up))
		return other;
	other.pid = fork();
	if (!other.pid) {
		close(down[1]);
		close(up[0]);
		run(up[1], down[0], file, arg);
		_exit(1);
	}
	close(down[0]);
	close(up[1]);
	other.to = down[1];
	other.from = up[0];
	return other;
}

static bool end_other(struct other *other, int signal)
{
	int status;

	if (signal)
		kill(other->pid, signal);
	close(other->to);
	close(other->from);
	if (waitpid(other->pid, &status, 0) != other->pid)
		return false;
	return signal ? WIFSIGNALED(status) : WIFEXITED(status) && !WEXITSTATUS(status);
}

/* An SRQ in the domain of the file; says its number, what it receives, and ends when it is told to. */
static void receive(int to, int from, int file, uint32_t arg)
{
	struct home home = { 0 };
	struct ibv_xrcd *xrcd;
	struct ibv_wc wc;
	uint32_t number;

	if (side_open(&home.side, "skua_1"))
		_exit(2);
	xrcd = open_domain(home.side.context, file);
	if (!xrcd || make_srq(&home, xrcd))
		_exit(3);
	for (uint64_t i = 0; i < WRS; i++)
		if (post_recv(&home, i))
			_exit(4);
	if (!say(to, home.srqn) || !hear(from, &number))
		_exit(5);
	while (number--) {
		if (!side_wait(&home.side, &wc, 20) || wc.status || wc.qp_num != arg)
			_exit(6);
		pair_fill(home.side.mem, SLOT, 3);
		if (memcmp(place(&home, wc.wr_id), home.side.mem, wc.byte_len) || !say(to, wc.byte_len))
			_exit(7);
	}
	hear(from, &number);
	_exit(0);
}

/* XRC-1, XRC-12: a process that has the file has the domain. */
TEST_F(xrc, another_process_receives)
{
	struct other other = start_other(receive, self->file, self->target->qp_num);
	struct home home = self->home[0];
	uint32_t size;

	ASSERT_TRUE(hear(other.from, &home.srqn));
	ASSERT_TRUE(say(other.to, 3));
	for (uint32_t i = 1; i <= 3; i++) {
		REQUEST(IBV_WC_SUCCESS, IBV_WR_SEND, &home, i * 2000);
		SEND(i % 2, 100);
		ASSERT_TRUE(hear(other.from, &size));
		ASSERT_EQ(i * 2000, size);
	}
	ASSERT_TRUE(end_other(&other, 0));
	SEND(0, 100);
}

/* XRC-14: the connection ends, and can be made anew for those who are left. */
TEST_F(xrc, another_process_dies)
{
	for (int round = 0; round < 5; round++) {
		struct other other = start_other(receive, self->file, self->target->qp_num);
		struct home home = self->home[0];
		struct ibv_send_wr *bad, wr;
		struct ibv_sge sge;
		struct ibv_wc wc;

		ASSERT_TRUE(hear(other.from, &home.srqn));
		wr = request(&self->a, &sge, IBV_WR_SEND, &home, SLOT);
		for (int i = 0; i < WRS - 1; i++)
			ASSERT_EQ(0, ibv_post_send(self->initiator, &wr, &bad));
		ASSERT_TRUE(end_other(&other, SIGKILL));
		for (int i = 0; i < WRS - 1; i++)
			ASSERT_TRUE(side_wait(&self->a, &wc, 20));
		/* It may have died before the first message, or after the last. */
		RECONNECT();
		REQUEST(IBV_WC_REM_INV_REQ_ERR, IBV_WR_SEND, &home, 100);
		RECONNECT();
		SEND(round % 2, 1000);
	}
}

/* A QP in the domain of the file for the peer @initiator. */
static void make_and_leave(int to, int from, int file, uint32_t initiator)
{
	struct side a, b;
	struct ibv_xrcd *xrcd;
	struct ibv_qp *target;
	uint32_t go;

	if (side_open(&a, "skua_0") || side_open(&b, "skua_1"))
		_exit(2);
	xrcd = open_domain(b.context, file);
	target = xrcd ? make_target(b.context, xrcd) : NULL;
	if (!target || connect_target(target, &b, &a, initiator))
		_exit(3);
	if (!say(to, target->qp_num))
		_exit(4);
	hear(from, &go);
	_exit(0);
}

/* XRC-5: who opened it keeps it. */
TEST_F(xrc, a_target_outlives_its_maker)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_type = IBV_QPT_XRC_RECV, .xrcd = self->xrcd[1],
	};
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct other other;

	ASSERT_EQ(0, ibv_destroy_qp(self->target));
	self->target = NULL;
	other = start_other(make_and_leave, self->file, self->initiator->qp_num);
	ASSERT_TRUE(hear(other.from, &attr.qp_num));
	self->target = ibv_open_qp(self->home[1].side.context, &attr);
	ASSERT_NE(NULL, self->target);
	ASSERT_EQ(attr.qp_num, self->target->qp_num);
	ASSERT_EQ(0, ibv_modify_qp(self->initiator, &reset, IBV_QP_STATE));
	ASSERT_EQ(0, connect_initiator(self->initiator, &self->a, &self->home[0].side, attr.qp_num));
	SEND(0, 1000);
	ASSERT_TRUE(end_other(&other, 0));
	for (unsigned int i = 0; i < WRS; i++)
		SEND(i % 2, 1000);
	/* After its last user nobody finds it. */
	ASSERT_EQ(0, ibv_destroy_qp(self->target));
	self->target = NULL;
	ASSERT_EQ(NULL, ibv_open_qp(self->home[1].side.context, &attr));
}

/* XRC-4, XRC-5: what has no queue takes no work. */
TEST_F(xrc, neither_end_takes_what_it_has_no_queue_for)
{
	struct ibv_recv_wr *bad_recv, recv = { .wr_id = 1 };
	struct ibv_sge sge;
	struct ibv_send_wr *bad, wr = request(&self->a, &sge, IBV_WR_SEND, &self->home[0], 100);

	ASSERT_NE(0, ibv_post_send(self->target, &wr, &bad));
	ASSERT_EQ(&wr, bad);
	ASSERT_NE(0, ibv_post_recv(self->target, &recv, &bad_recv));
	ASSERT_EQ(&recv, bad_recv);
	ASSERT_NE(0, ibv_post_recv(self->initiator, &recv, &bad_recv));
	ASSERT_EQ(&recv, bad_recv);
	SEND(0, 100);
}

TEST_HARNESS_MAIN
