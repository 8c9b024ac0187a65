// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* CQs and address handles of wrong arguments, wrong queries, and verbs that there are not. See bad.h. */
#include <errno.h>
#include <string.h>

#include "kselftest_harness.h"
#include "bad.h"

/* Completion queues */

TEST_F(bad, create_cq)
{
	const int max = self->attr.max_cqe, vectors = self->s[0].context->num_comp_vectors;
	const struct {
		const char *name;
		int cqe, vector, err;
	} rows[] = {
		{ "no entries", 0, 0, EINVAL },
		{ "less than none", -1, 0, EINVAL },
		{ "as few as can be", INT32_MIN, 0, EINVAL },
		{ "one too many", max + 1, 0, EINVAL },
		{ "as many as can be said", INT32_MAX, 0, EINVAL },
		{ "a vector too high", 1, vectors, EINVAL },
		{ "a vector below 0", 1, -1, EINVAL },
		{ "the last vector", 1, vectors - 1, 0 },
	};

	for EACH(row, rows)
		GAVE(row->err, MADE(ibv_create_cq(self->s[0].context, row->cqe, NULL, NULL, row->vector),
				    ibv_destroy_cq), row);
}

TEST_F(bad, create_cq_ex)
{
	const struct {
		const char *name;
		struct ibv_cq_init_attr_ex attr;
		int err;
	} rows[] = {
		{ "no entries", { .cqe = 0 }, EINVAL },
		{ "one too many", { .cqe = self->attr.max_cqe + 1 }, EINVAL },
		{ "as many as can be said", { .cqe = UINT32_MAX }, EINVAL },
		{ "a vector too high", { .cqe = 1, .comp_vector = 1000 }, EINVAL },
		{ "the next flag", { .cqe = 1, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
					.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN << 1 }, EOPNOTSUPP },
		{ "unknown flag", { .cqe = 1, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
				    .flags = 1u << 20 }, EOPNOTSUPP },
		{ "unknown field of completions", { .cqe = 1, .wc_flags = 1ull << 40 }, EOPNOTSUPP },
		{ "unknown attribute", { .cqe = 1, .comp_mask = 1u << 20 }, EOPNOTSUPP },
	};

	for EACH(row, rows) {
		struct ibv_cq_init_attr_ex attr = row->attr;

		GAVE(row->err, MADE(ibv_cq_ex_to_cq(ibv_create_cq_ex(self->s[0].context, &attr)),
				    ibv_destroy_cq), row);
	}
}

/* Address handles */

#define AH(id, ...) static void id(struct ibv_ah_attr *ah) { __VA_ARGS__; }
AH(ah_right)
AH(ah_group, ah->grh.dgid = (union ibv_gid){ .raw = { [10] = 0xff, [11] = 0xff, 239, 1, 2, 3 } })
AH(ah_local, ah->is_global = 0)
AH(ah_port_0, ah->port_num = 0)
AH(ah_port_2, ah->port_num = 2)
AH(ah_empty_gid, ah->grh.sgid_index = 200)
AH(ah_high_gid, ah->grh.sgid_index = 255)
AH(ah_zero_gid, memset(&ah->grh.dgid, 0, 16))
AH(ah_zero_ipv4, memset(&ah->grh.dgid.raw[12], 0, 4))
AH(ah_ipv6, ah->grh.dgid = (union ibv_gid){ .raw = { 0x20, 0x01, 0x0d, 0xb8, [15] = 2 } })
AH(ah_ipv6_group, ah->grh.dgid = (union ibv_gid){ .raw = { 0xff, 0x0e, [15] = 2 } })
AH(ah_nowhere, ah->grh.dgid.raw[12] = 198)
AH(ah_sl_8, ah->sl = 8)

TEST_F(bad, create_ah)
{
	static const struct {
		const char *name;
		void (*change)(struct ibv_ah_attr *ah);
		int err;
	} rows[] = {
		{ "right", ah_right, 0 },
		{ "a group", ah_group, 0 },
		{ "no GRH", ah_local, EINVAL },
		{ "port 0", ah_port_0, EINVAL },
		{ "port 2", ah_port_2, EINVAL },
		{ "empty GID", ah_empty_gid, ENODATA },
		{ "GID at the end", ah_high_gid, ENODATA },
		{ "nobody's GID", ah_zero_gid, EINVAL },
		{ "nobody's IPv4 address", ah_zero_ipv4, ENODEV },
		{ "IPv6, from IPv4", ah_ipv6, EINVAL },
		{ "a group of IPv6, from IPv4", ah_ipv6_group, EINVAL },
		{ "no way there", ah_nowhere, ETIMEDOUT },
		{ "service level 8", ah_sl_8, EINVAL },
	};

	for EACH(row, rows) {
		struct ibv_ah_attr attr = side_ah(&self->s[0], &self->s[1].gid);

		row->change(&attr);
		GAVE(row->err, MADE(ibv_create_ah(self->s[0].pd, &attr), ibv_destroy_ah), row);
	}
}

/* What an AH was made of, the kernel refuses to lose before it. */
TEST_F(bad, pd_with_an_ah)
{
	struct side *s = &self->s[0];
	struct ibv_ah_attr attr = side_ah(&self->s[0], &self->s[1].gid);
	struct ibv_pd *pd = ibv_alloc_pd(s->context);
	struct ibv_ah *ah = ibv_create_ah(pd, &attr);

	ASSERT_NE(NULL, ah);
	ASSERT_EQ(EBUSY, ibv_dealloc_pd(pd));
	ASSERT_EQ(0, ibv_destroy_ah(ah));
	ASSERT_EQ(0, ibv_dealloc_pd(pd));
	ASSERT_TRUE(pair_transfer(self->s));
}

/* Queries, and verbs that there are not */

TEST_F(bad, queries)
{
	struct ibv_context *c = self->s[0].context;
	struct ibv_port_attr port;
	struct ibv_gid_entry entry;
	union ibv_gid gid;
	__be16 pkey;

	EXPECT_EQ(EINVAL, ibv_query_port(c, 0, &port));
	EXPECT_EQ(EINVAL, ibv_query_port(c, 2, &port));
	EXPECT_EQ(EINVAL, ibv_query_port(c, 255, &port));
	ASSERT_EQ(0, ibv_query_port(c, 1, &port));
	EXPECT_EQ(0, ibv_query_gid(c, 1, port.gid_tbl_len - 1, &gid));
	EXPECT_EQ(-1, ibv_query_gid(c, 1, port.gid_tbl_len, &gid));
	EXPECT_EQ(-1, ibv_query_gid(c, 1, -1, &gid));
	EXPECT_EQ(-1, ibv_query_gid(c, 2, 0, &gid));
	EXPECT_EQ(ENODATA, ibv_query_gid_ex(c, 1, port.gid_tbl_len - 1, &entry, 0));
	EXPECT_EQ(EINVAL, ibv_query_gid_ex(c, 1, port.gid_tbl_len, &entry, 0));
	EXPECT_EQ(EINVAL, ibv_query_gid_ex(c, 2, 0, &entry, 0));
	EXPECT_EQ(EINVAL, ibv_query_gid_ex(c, 1, 0, &entry, 1));
	EXPECT_EQ(1, port.pkey_tbl_len);
	EXPECT_EQ(0, ibv_query_pkey(c, 1, 0, &pkey));
	EXPECT_EQ(0xffff, be16toh(pkey));
	EXPECT_EQ(-1, ibv_query_pkey(c, 1, 1, &pkey));
	EXPECT_EQ(-1, ibv_query_pkey(c, 1, -1, &pkey));
	ASSERT_TRUE(pair_transfer(self->s));
}

TEST_F(bad, capabilities_that_there_are_not)
{
	struct ibv_device_attr_ex attr;

	ASSERT_EQ(0, ibv_query_device_ex(self->s[0].context, NULL, &attr));
	EXPECT_EQ(0, attr.orig_attr.max_raw_ipv6_qp);
	EXPECT_EQ(0, attr.orig_attr.device_cap_flags &
		  (IBV_DEVICE_RESIZE_MAX_WR | IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_AUTO_PATH_MIG));
}

TEST_F(bad, destroy_what_is_in_use)
{
	struct side *s = &self->s[0];

	EXPECT_EQ(EBUSY, ibv_destroy_cq(s->cq));
	ASSERT_TRUE(pair_transfer(self->s));
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(s->pd));
	ASSERT_TRUE(pair_transfer(self->s));
	EXPECT_EQ(EBUSY, ibv_destroy_comp_channel(s->channel));
	ASSERT_TRUE(pair_transfer(self->s));
}

TEST_HARNESS_MAIN
