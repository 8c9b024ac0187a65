// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Multicast: who receives what is sent to a group. Rules: Documentation/manual/datagrams.rst.
 */
#include <errno.h>
#include <stdlib.h>

#include "kselftest_harness.h"
#include "datagram.h"

#define GROUP_QPN 0xffffff

static const union ibv_gid groups[] = {
	{ .raw = { [10] = 0xff, [11] = 0xff, 239, 1, 2, 3 } },		/* ::ffff:239.1.2.3 */
	{ .raw = { 0xff, 0x0e, [13] = 0x12, 0x34, 0x56 } },		/* ff0e::12:3456 */
};

FIXTURE(mcast) {
	struct side s[2];
	struct ibv_ah *ah[2];
	union ibv_gid group;
	struct ibv_device_attr attr;
};

FIXTURE_VARIANT(mcast) {
	bool ipv6;
};

FIXTURE_VARIANT_ADD(mcast, ipv4) { .ipv6 = false };
FIXTURE_VARIANT_ADD(mcast, ipv6) { .ipv6 = true };

FIXTURE_SETUP(mcast)
{
	self->group = groups[variant->ipv6];
	ASSERT_EQ(0, ud_open(self->s));
	for (unsigned int i = 0; i < 2; i++) {
		ASSERT_EQ(0, side_use_gid(&self->s[i], variant->ipv6));
		self->ah[i] = ud_ah(&self->s[i], &self->group);
		ASSERT_NE(NULL, self->ah[i]);
	}
	ASSERT_EQ(0, ibv_query_device(self->s[1].context, &self->attr));
}

FIXTURE_TEARDOWN(mcast)
{
	for (unsigned int i = 0; i < 2; i++)
		EXPECT_EQ(0, ibv_destroy_ah(self->ah[i]));
	pair_close(self->s);
}

/* Whoever was sent to has it by now, if the group's member on the other side has. */
#define NOTHING(side) do {						\
	struct ibv_wc nothing_;						\
									\
	ASSERT_EQ(0, ibv_poll_cq((side)->cq, 1, &nothing_));		\
} while (0)

/* MCG-4 */
TEST_F(mcast, attached)
{
	struct side *a = &self->s[0], *b = &self->s[1];
	int64_t before = side_counter(b, "rdma_rx_mcast");

	pair_fill(a->mem, 100, 3);
	ASSERT_EQ(0, ud_recv(b, b->qp, 0, SLOT));
	ASSERT_EQ(0, ibv_attach_mcast(b->qp, &self->group, 0));
	WELL(ud_sends(a, self->ah[0], GROUP_QPN, 100));
	WELL(ud_arrives(b, b->qp, a, &self->group, 0, 100));
	ASSERT_EQ(before + 1, side_counter(b, "rdma_rx_mcast"));
	ASSERT_EQ(0, ibv_detach_mcast(b->qp, &self->group, 0));
}

/* One copy for each QP, also if it was attached twice; none for others. */
TEST_F(mcast, many_qps)
{
	enum { N = 4 };
	struct side *a = &self->s[0], *b = &self->s[1];
	struct ibv_qp *qps[N];
	bool seen[N] = {};
	struct ibv_wc wc;

	pair_fill(a->mem, 100, 4);
	ASSERT_EQ(0, ud_recv(b, b->qp, N, SLOT));
	for (unsigned int i = 0; i < N; i++) {
		qps[i] = ud_qp(b);
		ASSERT_NE(NULL, qps[i]);
		ASSERT_EQ(0, ud_recv(b, qps[i], i, SLOT));
		ASSERT_EQ(0, ud_recv(b, qps[i], i, SLOT));
		ASSERT_EQ(0, ibv_attach_mcast(qps[i], &self->group, 0));
	}
	ASSERT_EQ(0, ibv_attach_mcast(qps[1], &self->group, 0));
	WELL(ud_sends(a, self->ah[0], GROUP_QPN, 100));
	for (unsigned int i = 0; i < N; i++) {
		ASSERT_TRUE(side_wait(b, &wc, 5));
		ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
		ASSERT_GT(N, wc.wr_id);
		ASSERT_EQ(qps[wc.wr_id]->qp_num, wc.qp_num);
		ASSERT_FALSE(seen[wc.wr_id]);
		seen[wc.wr_id] = true;
		ASSERT_EQ(0, memcmp(ud_slot(b, wc.wr_id) + HEADER, a->mem, 100));
	}
	ASSERT_EQ(0, ibv_detach_mcast(qps[2], &self->group, 0));
	/* A QP that is destroyed is detached (MCG-2), though verbs want it said. */
	WELL(ud_sends(a, self->ah[0], GROUP_QPN, 100));
	for (unsigned int i = 0; i < N - 1; i++) {
		ASSERT_TRUE(side_wait(b, &wc, 5));
		ASSERT_NE(2, wc.wr_id);
	}
	NOTHING(b);
	for (unsigned int i = 0; i < N; i++) {
		if (i != 2)
			ASSERT_EQ(0, ibv_detach_mcast(qps[i], &self->group, 0));
		ASSERT_EQ(0, ibv_destroy_qp(qps[i]));
	}
}

/* MCG-5: the sender's own device has members, too, and the sender may be one. */
TEST_F(mcast, the_sender_too)
{
	struct side *a = &self->s[0], *b = &self->s[1];
	struct ibv_sge sge;
	struct ibv_send_wr wr = ud_wr(&sge, a, self->ah[0], GROUP_QPN, 100);
	struct ibv_wc wc;

	pair_fill(a->mem, 100, 5);
	ASSERT_EQ(0, ud_recv(a, a->qp, 0, SLOT));
	ASSERT_EQ(0, ud_recv(b, b->qp, 0, SLOT));
	ASSERT_EQ(0, ibv_attach_mcast(a->qp, &self->group, 0));
	ASSERT_EQ(0, ibv_attach_mcast(b->qp, &self->group, 0));
	ASSERT_EQ(0, side_post(a, &wr));
	WELL(ud_arrives(b, b->qp, a, &self->group, 0, 100));
	for (unsigned int i = 0; i < 2; i++) {
		ASSERT_TRUE(side_wait(a, &wc, 5));
		ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
		if (wc.opcode == IBV_WC_RECV)
			ASSERT_EQ(a->qp->qp_num, wc.src_qp);
	}
	WELL(wrong_header(ud_slot(a, 0), &a->gid, &self->group, 100, false));
	ASSERT_EQ(0, memcmp(ud_slot(a, 0) + HEADER, a->mem, 100));
	ASSERT_EQ(0, ibv_detach_mcast(a->qp, &self->group, 0));
	ASSERT_EQ(0, ibv_detach_mcast(b->qp, &self->group, 0));
}

TEST_F(mcast, another_group)
{
	struct side *a = &self->s[0], *b = &self->s[1];
	union ibv_gid other = self->group;
	struct ibv_qp *member = ud_qp(b);

	ASSERT_NE(NULL, member);
	/* The same MAC, as IPv4 has it: only the address tells them apart. */
	if (variant->ipv6)
		other.raw[5] ^= 1;
	else
		other.raw[12] ^= 1;
	ASSERT_EQ(0, ud_recv(b, b->qp, 0, SLOT));
	ASSERT_EQ(0, ud_recv(b, member, 1, SLOT));
	ASSERT_EQ(0, ibv_attach_mcast(b->qp, &other, 0));
	ASSERT_EQ(0, ibv_attach_mcast(member, &self->group, 0));
	WELL(ud_sends(a, self->ah[0], GROUP_QPN, 100));
	WELL(ud_arrives(b, member, a, &self->group, 1, 100));
	NOTHING(b);
	ASSERT_EQ(0, ibv_detach_mcast(b->qp, &other, 0));
	ASSERT_EQ(0, ibv_detach_mcast(member, &self->group, 0));
	ASSERT_EQ(0, ibv_destroy_qp(member));
}

TEST_F(mcast, wrong_arguments)
{
	struct side *b = &self->s[1];
	struct ibv_qp *rc = side_create_qp(b);
	union ibv_gid none = {};

	ASSERT_NE(NULL, rc);
	EXPECT_EQ(EINVAL, ibv_attach_mcast(b->qp, &b->gid, 0));
	EXPECT_EQ(EINVAL, ibv_attach_mcast(b->qp, &none, 0));
	EXPECT_EQ(EINVAL, ibv_attach_mcast(rc, &self->group, 0));
	EXPECT_EQ(EINVAL, ibv_detach_mcast(b->qp, &self->group, 0));
	EXPECT_EQ(EINVAL, ibv_detach_mcast(b->qp, &b->gid, 0));
	ASSERT_EQ(0, ibv_destroy_qp(rc));
}

/* One that is attached is busy for verbs; what a program leaves is taken away with it. */
TEST_F(mcast, still_attached)
{
	struct side *b = &self->s[1];

	ASSERT_EQ(0, ibv_attach_mcast(b->qp, &self->group, 0));
	ASSERT_EQ(EBUSY, ibv_destroy_qp(b->qp));
	ASSERT_EQ(0, ibv_detach_mcast(b->qp, &self->group, 0));
}

static union ibv_gid numbered(const union ibv_gid *group, uint32_t number)
{
	union ibv_gid gid = *group;

	gid.raw[14] = (uint8_t)(number >> 8);
	gid.raw[15] = (uint8_t)number;
	return gid;
}

/* MCG-2: as many as are announced, and no more. */
TEST_F(mcast, limits)
{
	uint32_t groups = (uint32_t)self->attr.max_mcast_grp;
	uint32_t members = (uint32_t)self->attr.max_mcast_qp_attach;
	struct side *a = &self->s[0], *b = &self->s[1];
	struct ibv_qp **qps = calloc(members + 1, sizeof(*qps));
	union ibv_gid gid;
	struct ibv_wc wc;

	pair_fill(a->mem, 100, 6);
	ASSERT_LT(0, groups);
	ASSERT_GT(65536, groups);
	ASSERT_LT(0, members);
	ASSERT_EQ(groups * members, self->attr.max_total_mcast_qp_attach);
	for (uint32_t i = 0; i <= groups; i++) {
		gid = numbered(&self->group, i);
		ASSERT_EQ(i < groups ? 0 : ENOMEM, ibv_attach_mcast(b->qp, &gid, 0));
	}
	for (uint32_t i = 0; i < 3; i++) {
		struct ibv_ah *ah;

		gid = numbered(&self->group, i * (groups - 1) / 2);
		ah = ud_ah(a, &gid);
		ASSERT_NE(NULL, ah);
		ASSERT_EQ(0, ud_recv(b, b->qp, i, SLOT));
		WELL(ud_sends(a, ah, GROUP_QPN, 100));
		WELL(ud_arrives(b, b->qp, a, &gid, i, 100));
		ASSERT_EQ(0, ibv_destroy_ah(ah));
	}
	for (uint32_t i = 0; i < groups; i++) {
		gid = numbered(&self->group, i);
		ASSERT_EQ(0, ibv_detach_mcast(b->qp, &gid, 0));
	}
	for (uint32_t i = 0; i <= members; i++) {
		qps[i] = ud_qp(b);
		ASSERT_NE(NULL, qps[i]);
		ASSERT_EQ(i < members ? 0 : ENOMEM, ibv_attach_mcast(qps[i], &self->group, 0));
	}
	/* A copy for each: here for the first, one in the middle and the last, which have a receive. */
	for (uint32_t i = 0; i < 3; i++)
		ASSERT_EQ(0, ud_recv(b, qps[i * (members - 1) / 2], i, SLOT));
	WELL(ud_sends(a, self->ah[0], GROUP_QPN, 100));
	for (uint32_t i = 0; i < 3; i++) {
		ASSERT_TRUE(side_wait(b, &wc, 5));
		ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
		ASSERT_GT(3, wc.wr_id);
		ASSERT_EQ(qps[wc.wr_id * (members - 1) / 2]->qp_num, wc.qp_num);
		ASSERT_EQ(0, memcmp(ud_slot(b, wc.wr_id) + HEADER, a->mem, 100));
		memset(ud_slot(b, wc.wr_id), 0, SLOT);
	}
	for (uint32_t i = 0; i <= members; i++) {
		if (i < members)
			ASSERT_EQ(0, ibv_detach_mcast(qps[i], &self->group, 0));
		ASSERT_EQ(0, ibv_destroy_qp(qps[i]));
	}
	free(qps);
}

TEST_HARNESS_MAIN
