// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Making and destroying verbs objects: what a NIC says of itself is so, one more than it says
 * fails cleanly, and bad arguments get the errno that other drivers give.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pair.h"

FIXTURE(verbs) {
	struct side s;
	struct ibv_device_attr attr;
};

FIXTURE_SETUP(verbs)
{
	ASSERT_EQ(0, side_open(&self->s, "skua_0"));
	ASSERT_EQ(0, ibv_query_device(self->s.context, &self->attr));
}

FIXTURE_TEARDOWN(verbs)
{
	side_close(&self->s);
}

TEST_F(verbs, device_says_what_it_is)
{
	struct ibv_port_attr port;

	EXPECT_EQ(IBV_TRANSPORT_IB, self->s.context->device->transport_type);
	EXPECT_EQ(IBV_NODE_CA, self->s.context->device->node_type);
	EXPECT_NE(0, self->attr.node_guid);
	EXPECT_EQ(1, self->attr.phys_port_cnt);
	EXPECT_NE('\0', self->attr.fw_ver[0]);
	ASSERT_EQ(0, ibv_query_port(self->s.context, 1, &port));
	EXPECT_EQ(IBV_PORT_ACTIVE, port.state);
	EXPECT_EQ(IBV_LINK_LAYER_ETHERNET, port.link_layer);
	EXPECT_EQ(IBV_MTU_1024, port.active_mtu);
	EXPECT_EQ(EINVAL, ibv_query_port(self->s.context, 0, &port));
	EXPECT_EQ(EINVAL, ibv_query_port(self->s.context, 2, &port));
}

static struct ibv_qp *make_qp(struct side *s, const struct ibv_qp_cap *cap, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.send_cq = s->cq, .recv_cq = s->cq, .qp_type = type, .cap = *cap,
	};

	errno = 0;
	return ibv_create_qp(s->pd, &init);
}

/* A QP with one limit at its value works, with one above it does not. */
#define QP_LIMIT(field, limit) do {					\
	struct ibv_qp_cap cap = { 1, 1, 1, 1, 0 };			\
	struct ibv_qp *qp;						\
									\
	cap.field = limit;						\
	qp = make_qp(&self->s, &cap, IBV_QPT_RC);			\
	ASSERT_NE(NULL, qp) {						\
		TH_LOG("%s %u: %s", #field, cap.field, strerror(errno)); \
	}								\
	ASSERT_EQ(0, ibv_destroy_qp(qp));				\
	cap.field = (limit) + 1;					\
	ASSERT_EQ(NULL, make_qp(&self->s, &cap, IBV_QPT_RC));		\
	ASSERT_EQ(EINVAL, errno);					\
} while (0)

TEST_F(verbs, max_qp_wr_send) { QP_LIMIT(max_send_wr, self->attr.max_qp_wr); }
TEST_F(verbs, max_qp_wr_receive) { QP_LIMIT(max_recv_wr, self->attr.max_qp_wr); }
TEST_F(verbs, max_sge_send) { QP_LIMIT(max_send_sge, self->attr.max_sge); }
TEST_F(verbs, max_sge_receive) { QP_LIMIT(max_recv_sge, self->attr.max_sge); }

TEST_F(verbs, all_qp_limits_at_once)
{
	struct ibv_qp_cap cap = {
		.max_send_wr = self->attr.max_qp_wr, .max_recv_wr = self->attr.max_qp_wr,
		.max_send_sge = self->attr.max_sge, .max_recv_sge = self->attr.max_sge,
	};
	struct ibv_qp *qp = make_qp(&self->s, &cap, IBV_QPT_RC);

	ASSERT_NE(NULL, qp);
	ASSERT_EQ(0, ibv_destroy_qp(qp));
}

TEST_F(verbs, max_cqe)
{
	struct ibv_cq *cq = ibv_create_cq(self->s.context, self->attr.max_cqe, NULL, NULL, 0);

	ASSERT_NE(NULL, cq);
	ASSERT_GE(cq->cqe, self->attr.max_cqe);
	ASSERT_EQ(0, ibv_destroy_cq(cq));
	ASSERT_EQ(NULL, ibv_create_cq(self->s.context, self->attr.max_cqe + 1, NULL, NULL, 0));
	ASSERT_EQ(EINVAL, errno);
}

TEST_F(verbs, bad_cqs)
{
	ASSERT_EQ(NULL, ibv_create_cq(self->s.context, 0, NULL, NULL, 0));
	ASSERT_EQ(EINVAL, errno);
	ASSERT_EQ(NULL, ibv_create_cq(self->s.context, 1, NULL, NULL,
				      self->s.context->num_comp_vectors));
	ASSERT_EQ(EINVAL, errno);
	for (int i = 0; i < self->s.context->num_comp_vectors; i++) {
		struct ibv_cq *cq = ibv_create_cq(self->s.context, 1, NULL, NULL, i);

		ASSERT_NE(NULL, cq);
		ASSERT_EQ(0, ibv_destroy_cq(cq));
	}
}

TEST_F(verbs, qp_types_that_it_does_not_have)
{
	static const enum ibv_qp_type types[] = {
		IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_RAW_PACKET, IBV_QPT_XRC_SEND, IBV_QPT_DRIVER,
	};
	struct ibv_qp_cap cap = { 1, 1, 1, 1, 0 };

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		ASSERT_EQ(NULL, make_qp(&self->s, &cap, types[i]));
		ASSERT_EQ(EOPNOTSUPP, errno);
	}
}

TEST_F(verbs, objects_in_use_stay)
{
	struct ibv_qp_cap cap = { 1, 1, 1, 1, 0 };
	struct ibv_qp *qp = make_qp(&self->s, &cap, IBV_QPT_RC);

	ASSERT_NE(NULL, qp);
	ASSERT_EQ(EBUSY, ibv_destroy_cq(self->s.cq));
	ASSERT_EQ(EBUSY, ibv_dealloc_pd(self->s.pd));
	ASSERT_EQ(0, ibv_destroy_qp(qp));
}

TEST_F(verbs, memory_that_cannot_be_registered)
{
	const unsigned int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	void *read_only = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *gone = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_EQ(0, munmap((char *)gone + 4096, 4096));
	ASSERT_EQ(NULL, ibv_reg_mr(self->s.pd, gone, 8192, all));
	EXPECT_EQ(EFAULT, errno);
	ASSERT_EQ(NULL, ibv_reg_mr(self->s.pd, read_only, 4096, all));
	EXPECT_EQ(EFAULT, errno);
	/* Remote rights to write need the local one. */
	ASSERT_EQ(NULL, ibv_reg_mr(self->s.pd, self->s.mem, 4096, IBV_ACCESS_REMOTE_WRITE));
	EXPECT_EQ(EINVAL, errno);
	ASSERT_EQ(NULL, ibv_reg_mr(self->s.pd, self->s.mem, SIZE_MAX, all));
	/* Bits that do not matter are taken. */
	{
		struct ibv_mr *mr = ibv_reg_mr(self->s.pd, self->s.mem, 4096,
					       all | IBV_ACCESS_RELAXED_ORDERING);

		ASSERT_NE(NULL, mr);
		ASSERT_EQ(0, ibv_dereg_mr(mr));
	}
}

TEST_F(verbs, many_memory_regions)
{
	enum { N = 2000 };
	static struct ibv_mr *mrs[N];

	for (int i = 0; i < N; i++) {
		mrs[i] = ibv_reg_mr(self->s.pd, self->s.mem + i, 4096 + (size_t)i * 100,
				    IBV_ACCESS_LOCAL_WRITE);
		ASSERT_NE(NULL, mrs[i]);
		for (int j = i > 50 ? i - 50 : 0; j < i; j++)
			ASSERT_NE(mrs[j]->lkey, mrs[i]->lkey);
	}
	for (int i = 0; i < N; i++)
		ASSERT_EQ(0, ibv_dereg_mr(mrs[i]));
}

TEST_F(verbs, qps_up_to_a_thousand)
{
	enum { N = 1000 };
	static struct ibv_qp *qps[N];
	struct ibv_qp_cap cap = { 4, 4, 1, 1, 0 };

	ASSERT_GE(self->attr.max_qp, N);
	for (int i = 0; i < N; i++) {
		qps[i] = make_qp(&self->s, &cap, IBV_QPT_RC);
		ASSERT_NE(NULL, qps[i]);
	}
	for (int i = 0; i < N; i++)
		ASSERT_EQ(0, ibv_destroy_qp(qps[i]));
}

/* What a transition lacks, has too much of, or gets wrong: one row each, from RESET to INIT. */
TEST_F(verbs, bad_transitions)
{
	const int init_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	const struct {
		struct ibv_qp_attr attr;
		int mask;
	} rows[] = {
		{ { .qp_state = IBV_QPS_INIT, .port_num = 1 }, IBV_QP_STATE },
		{ { .qp_state = IBV_QPS_INIT, .port_num = 0 }, init_mask },
		{ { .qp_state = IBV_QPS_INIT, .port_num = 2 }, init_mask },
		{ { .qp_state = IBV_QPS_INIT, .port_num = 1, .pkey_index = 1 }, init_mask },
		{ { .qp_state = IBV_QPS_INIT, .port_num = 1 }, init_mask | IBV_QP_RQ_PSN },
		{ { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = 1 << 16 }, init_mask },
		{ { .qp_state = IBV_QPS_RTR, .port_num = 1 }, init_mask },
		{ { .qp_state = IBV_QPS_RTS }, IBV_QP_STATE },
		{ { .qp_state = IBV_QPS_SQD }, IBV_QP_STATE },
	};
	struct ibv_qp_cap cap = { 1, 1, 1, 1, 0 };
	struct ibv_qp *qp = make_qp(&self->s, &cap, IBV_QPT_RC);

	ASSERT_NE(NULL, qp);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ibv_qp_attr attr = rows[i].attr;
		struct ibv_qp_init_attr init;
		int err = ibv_modify_qp(qp, &attr, rows[i].mask);

		EXPECT_TRUE(err == EINVAL || err == EOPNOTSUPP) {
			TH_LOG("row %zu: %d", i, err);
		}
		ASSERT_EQ(0, ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
		ASSERT_EQ(IBV_QPS_RESET, attr.qp_state);
	}
	ASSERT_EQ(0, qp_to_init(qp, 0));
	ASSERT_EQ(0, ibv_destroy_qp(qp));
}

TEST_F(verbs, bad_addresses)
{
	struct ibv_qp_cap cap = { 1, 1, 1, 1, 0 };
	struct ibv_qp *qp = make_qp(&self->s, &cap, IBV_QPT_RC);
	struct side peer = self->s;

	ASSERT_NE(NULL, qp);
	ASSERT_EQ(0, qp_to_init(qp, 0));
	self->s.gid_index = 200;			/* empty */
	ASSERT_NE(0, qp_to_rtr(qp, &self->s, &peer, qp->qp_num));
	self->s.gid_index = peer.gid_index;
	peer.gid.raw[15] = 77;				/* nobody answers to 192.0.2.77 */
	ASSERT_NE(0, qp_to_rtr(qp, &self->s, &peer, qp->qp_num));
	ASSERT_EQ(0, ibv_destroy_qp(qp));
}

/* The pages of a context can be mapped at their offsets and no others, and not otherwise. */
TEST_F(verbs, bad_mmap_offsets)
{
	int fd = self->s.context->cmd_fd, writable = 0;

	for (off_t page = 16; page < 64; page++)
		ASSERT_EQ(MAP_FAILED, mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, page * 4096));
	ASSERT_EQ(MAP_FAILED, mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, (off_t)1 << 40));
	/* No private or larger map of any page, and one that can be written: that of doorbells. */
	for (off_t page = 0; page < 16; page++) {
		void *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, page * 4096);

		writable += map != MAP_FAILED;
		ASSERT_EQ(MAP_FAILED, mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd,
					   page * 4096));
		ASSERT_EQ(MAP_FAILED, mmap(NULL, 16384, PROT_READ, MAP_SHARED, fd, page * 4096));
	}
	ASSERT_EQ(1, writable);
}

/* Processes that end in the middle of it leave nothing that hinders the next. */
TEST_F(verbs, killed_processes)
{
	for (int i = 0; i < 20; i++) {
		int status;
		pid_t pid = fork();

		ASSERT_GE(pid, 0);
		if (!pid) {
			struct side s[2];
			struct ibv_sge sge;
			struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = 1,
							.opcode = IBV_WR_RDMA_WRITE };

			if (pair_open(s))
				_exit(1);
			sge = (struct ibv_sge){ (uintptr_t)s[0].mem, 1 << 20, s[0].mr->lkey };
			wr.wr.rdma.remote_addr = (uintptr_t)s[1].mem;
			wr.wr.rdma.rkey = s[1].mr->rkey;
			for (int j = 0; j < PAIR_WRS; j++)
				ibv_post_send(s[0].qp, &wr, &bad);
			raise(SIGKILL);
		}
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		ASSERT_TRUE(WIFSIGNALED(status));
	}
}

TEST_HARNESS_MAIN
