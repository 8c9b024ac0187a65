/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * QPs that FLUSH, for a program of kselftest_harness.h that has defined RIGHTS: what the second side gives the first.
 */
#ifndef SKUA_SELFTEST_FLUSH_H
#define SKUA_SELFTEST_FLUSH_H

#include <errno.h>

#include "connection.h"

#define OPS (IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_ATOMIC_WRITE)

/* Of query_device_ex(); libibverbs has names for them, but not everywhere. */
#define CAP_FLUSH_GLOBAL	(1ULL << 38)
#define CAP_FLUSH_PERSISTENT	(1ULL << 39)
#define CAP_ATOMIC_WRITE	(1ULL << 40)

FIXTURE(flush) {
	struct side s[2];
	struct ibv_mr *mr;		/* of the second side, where what the first asks for is allowed */
	struct ibv_qp_ex *ex;		/* of the first side */
	uint8_t *target;
};

/* The side's QP anew, with calls for these operations, and connected with whatever rights it gives. */
static int connect_with(struct side s[2], uint64_t ops, unsigned int rights)
{
	int err = 0;

	for (int i = 0; i < 2; i++) {
		struct ibv_qp_init_attr_ex init = {
			.send_cq = s[i].cq, .recv_cq = s[i].cq, .pd = s[i].pd, .qp_type = IBV_QPT_RC,
			.cap = { PAIR_WRS, PAIR_WRS, 2, 2, 64 },
			.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, .send_ops_flags = ops,
		};

		if (s[i].qp)
			ibv_destroy_qp(s[i].qp);
		s[i].qp = ibv_create_qp_ex(s[i].context, &init);
		if (!s[i].qp)
			return errno;
	}
	for (int i = 0; !err && i < 2; i++) {
		err = qp_to_init(s[i].qp, rights & ~IBV_ACCESS_LOCAL_WRITE);
		if (!err)
			err = qp_to_rtr(s[i].qp, &s[i], &s[!i], s[!i].qp->qp_num);
		if (!err)
			err = qp_to_rts(s[i].qp, 10, 3, 7);
	}
	return err;
}

FIXTURE_SETUP(flush)
{
	struct side *b = &self->s[1];

	ASSERT_EQ(0, pair_open(self->s));
	ASSERT_EQ(0, connect_with(self->s, OPS, RIGHTS));
	self->mr = ibv_reg_mr(b->pd, b->mem, PAIR_MEM, RIGHTS);
	ASSERT_NE(NULL, self->mr);
	self->ex = ibv_qp_to_qp_ex(self->s[0].qp);
	self->ex->wr_flags = IBV_SEND_SIGNALED;
	self->target = b->mem + HALF;
}

FIXTURE_TEARDOWN(flush)
{
	ibv_dereg_mr(self->mr);
	pair_close(self->s);
}

/* Post what @call does, which completes with @opcode and @status. */
#define BY_CALL(call, opcode_, status_) do {				\
	struct ibv_wc wc_;						\
									\
	ibv_wr_start(self->ex);						\
	self->ex->wr_id = 99;						\
	call;								\
	ASSERT_EQ(0, ibv_wr_complete(self->ex));			\
	ASSERT_TRUE(side_wait(&self->s[0], &wc_, 5));			\
	ASSERT_EQ(status_, wc_.status);					\
	ASSERT_EQ(99, wc_.wr_id);					\
	if (!wc_.status)						\
		ASSERT_EQ(opcode_, wc_.opcode);				\
} while (0)

#define TARGET		((uintptr_t)self->target)
#define FLUSH(rkey, address, length, type, level)	ibv_wr_flush(self->ex, rkey, address, length, type, level)
#define FLUSHES(...)	BY_CALL(FLUSH(__VA_ARGS__), IBV_WC_FLUSH, IBV_WC_SUCCESS)

#endif /* SKUA_SELFTEST_FLUSH_H */
