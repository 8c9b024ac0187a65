// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What ibv_query_device_ex() says, and whether it is so. Other tests have the fields of their features: odp_caps and
 * xrc_odp_caps test_odp, rss_caps test_rss, cq_mod_caps test_cq, max_dm_size test_dm, packet_pacing_caps test_rate,
 * tm_caps test_tags, raw_packet_caps test_raw.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pair.h"
#include "rows.h"

FIXTURE(capabilities) {
	struct side s[2];
	struct ibv_device_attr_ex ex;
	struct ibv_device_attr attr;
};

FIXTURE_SETUP(capabilities)
{
	ASSERT_EQ(0, pair_open(self->s));
	ASSERT_EQ(0, ibv_query_device_ex(self->s[0].context, NULL, &self->ex));
	ASSERT_EQ(0, ibv_query_device(self->s[0].context, &self->attr));
}

FIXTURE_TEARDOWN(capabilities)
{
	EXPECT_TRUE(pair_transfer(self->s));
	pair_close(self->s);
}

TEST_F(capabilities, identity)
{
	struct ibv_device_attr other;

	ASSERT_EQ(0, ibv_query_device(self->s[1].context, &other));
	EXPECT_EQ(0x1af4, self->attr.vendor_id);
	EXPECT_NE(0, self->attr.vendor_part_id);
	EXPECT_EQ(self->attr.node_guid, self->attr.sys_image_guid);
	EXPECT_NE(self->attr.node_guid, other.node_guid);
	EXPECT_STREQ(self->attr.fw_ver, self->ex.orig_attr.fw_ver);
	EXPECT_EQ(1, self->attr.phys_port_cnt);
	EXPECT_EQ(1, self->ex.phys_port_cnt_ex);
	EXPECT_EQ(self->attr.device_cap_flags, (uint32_t)self->ex.device_cap_flags_ex);
}

/* Each of them, there or not: what another test shows, or what has no place in RoCEv2 and in this NIC. */
TEST_F(capabilities, flags)
{
	const unsigned int there = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_PORT_ACTIVE_EVENT |
		IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_MEM_WINDOW |
		IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_XRC |
		IBV_DEVICE_MANAGED_FLOW_STEERING;
	const unsigned int not_there = IBV_DEVICE_RESIZE_MAX_WR | IBV_DEVICE_BAD_PKEY_CNTR | IBV_DEVICE_BAD_QKEY_CNTR |
		IBV_DEVICE_RAW_MULTI | IBV_DEVICE_AUTO_PATH_MIG | IBV_DEVICE_CHANGE_PHY_PORT |
		IBV_DEVICE_UD_AV_PORT_ENFORCE | IBV_DEVICE_SHUTDOWN_PORT | IBV_DEVICE_INIT_TYPE |
		IBV_DEVICE_N_NOTIFY_CQ | IBV_DEVICE_UD_IP_CSUM | IBV_DEVICE_MEM_WINDOW_TYPE_2A;

	EXPECT_EQ(there, self->attr.device_cap_flags & there);
	EXPECT_EQ(0, self->attr.device_cap_flags & not_there);
}

/* Of what there is not. */
TEST_F(capabilities, none)
{
	static const struct ibv_pci_atomic_caps no_atomics;

	EXPECT_EQ(0, self->ex.comp_mask);
	EXPECT_EQ(0, memcmp(&no_atomics, &self->ex.pci_atomic_caps, sizeof(no_atomics)));
	EXPECT_EQ(0, self->attr.max_ee + self->attr.max_rdd + self->attr.max_ee_rd_atom + self->attr.max_ee_init_rd_atom +
		  self->attr.max_raw_ipv6_qp + self->attr.max_fmr + self->attr.max_map_per_fmr);
}

static uint64_t raw_clock(struct ibv_context *context)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };

	return ibv_query_rt_values_ex(context, &values) ? 0 : values.raw_clock.tv_nsec;
}

/* Ticks of the clock in a while. A machine that is busy reads the clocks late, so there is a margin. */
TEST_F(capabilities, clock)
{
	struct timespec a, b;
	uint64_t from, to;
	double ms;

	EXPECT_EQ(UINT64_MAX, self->ex.completion_timestamp_mask);
	clock_gettime(CLOCK_MONOTONIC, &a);
	from = raw_clock(self->s[0].context);
	usleep(500000);
	to = raw_clock(self->s[0].context);
	clock_gettime(CLOCK_MONOTONIC, &b);
	ms = (b.tv_sec - a.tv_sec) * 1e3 + (b.tv_nsec - a.tv_nsec) / 1e6;
	EXPECT_LT(ms * self->ex.hca_core_clock / 2, (double)(to - from));
	EXPECT_GT(ms * self->ex.hca_core_clock * 1.1, (double)(to - from));
}

/* A READ with as many SGEs as there may be. */
TEST_F(capabilities, sges_of_a_read)
{
	struct side *a = &self->s[0], *b = &self->s[1];
	struct ibv_qp_init_attr init = {
		.send_cq = a->cq, .recv_cq = a->cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_send_sge = self->attr.max_sge_rd },
	};
	struct ibv_sge sge[64];
	struct ibv_send_wr wr = {
		.sg_list = sge, .num_sge = self->attr.max_sge_rd, .opcode = IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED, .wr.rdma = { (uintptr_t)b->mem, b->mr->rkey },
	};
	struct ibv_qp *old = a->qp;

	ASSERT_LE(self->attr.max_sge_rd, self->attr.max_sge);
	ASSERT_LE(self->attr.max_sge_rd, 64);
	a->qp = ibv_create_qp(a->pd, &init);
	ASSERT_NE(NULL, a->qp);
	ASSERT_EQ(0, pair_reconnect(self->s));
	pair_fill(b->mem, 64 * self->attr.max_sge_rd, 7);
	for (int i = 0; i < self->attr.max_sge_rd; i++)
		sge[i] = (struct ibv_sge){ (uintptr_t)a->mem + 64 * i, 64, a->mr->lkey };
	WELL(side_sends(a, &wr));
	EXPECT_EQ(0, memcmp(a->mem, b->mem, 64 * self->attr.max_sge_rd));
	EXPECT_EQ(0, ibv_destroy_qp(a->qp));
	a->qp = old;
	ASSERT_EQ(0, pair_reconnect(self->s));
}

/* Memory as near to the top of the address space as there is room, with the hint that no device needs to follow. */
TEST_F(capabilities, a_region_at_the_top)
{
	const size_t len = 64 << 10;
	struct side *a = &self->s[0], *b = &self->s[1];
	uintptr_t at = (1ul << 47) - 4096 - len;
	struct ibv_sge sge = { .length = len };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)b->mem, b->mr->rkey },
	};
	struct ibv_mr *mr;
	void *mem;

	do {
		mem = mmap((void *)at, len, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		at -= len;
	} while (mem == MAP_FAILED && at > 1ul << 46);
	ASSERT_NE(MAP_FAILED, mem);
	ASSERT_LT(1ul << 46, (uintptr_t)mem);
	mr = ibv_reg_mr(a->pd, mem, len, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);
	ASSERT_NE(NULL, mr);
	sge.addr = (uintptr_t)mem;
	sge.lkey = mr->lkey;
	pair_fill(b->mem, len, 11);
	WELL(side_sends(a, &wr));
	EXPECT_EQ(0, memcmp(mem, b->mem, len));
	EXPECT_EQ(0, ibv_dereg_mr(mr));
	EXPECT_EQ(0, munmap(mem, len));
}

/* MEM-11: on x86, whose loads the processor keeps in order. */
TEST_F(capabilities, data_in_order)
{
	struct ibv_qp *qp = self->s[0].qp;
	const uint32_t all = IBV_QUERY_QP_DATA_IN_ORDER_WHOLE_MSG | IBV_QUERY_QP_DATA_IN_ORDER_ALIGNED_128_BYTES;
	static const enum ibv_wr_opcode ops[] = { IBV_WR_RDMA_WRITE, IBV_WR_SEND, IBV_WR_RDMA_READ };

	for EACH(op, ops) {
		EXPECT_EQ(1, ibv_query_qp_data_in_order(qp, *op, 0));
		EXPECT_EQ(all, ibv_query_qp_data_in_order(qp, *op, IBV_QUERY_QP_DATA_IN_ORDER_RETURN_CAPS));
		EXPECT_EQ(0, ibv_query_qp_data_in_order(qp, *op, 1u << 31));
	}
	EXPECT_EQ(0, ibv_query_qp_data_in_order(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, 0));
}

/* As fast as it can: a program polls somewhere in a message, and finds all that comes before. */
TEST_F(capabilities, poll_in_a_message)
{
	const uint32_t len = 100000, polled = 60000;
	struct side *a = &self->s[0], *b = &self->s[1];
	struct ibv_sge sge = { (uintptr_t)a->mem, len, a->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)b->mem, b->mr->rkey },
	};
	struct ibv_wc wc;

	memset(b->mem, 0, len);
	for (unsigned int round = 1; round < 200; round++) {
		uint32_t old = 0;

		memset(a->mem, round, len);
		ASSERT_EQ(0, ibv_post_send(a->qp, &wr, &bad));
		while (__atomic_load_n(&b->mem[polled], __ATOMIC_ACQUIRE) != round)
			;
		for (uint32_t i = 0; i < polled; i++)
			old += __atomic_load_n(&b->mem[i], __ATOMIC_RELAXED) != round;
		ASSERT_EQ(0, old);
		ASSERT_TRUE(side_wait(a, &wc, 20));
		ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
	}
}

TEST_HARNESS_MAIN
