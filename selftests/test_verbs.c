// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a NIC says of itself, and making and destroying many verbs objects.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
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
