// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Work that can be posted and fails: by completion, and its QP goes to ERR. See bad.h. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "bad.h"

struct work_row {
	const char *name;
	void (*change)(struct side s[2], struct ibv_send_wr *wr);
	enum ibv_wr_opcode opcode;
	enum ibv_wc_status status;
	enum ibv_wc_status peer;		/* of the peer's receive; SUCCESS: it has none */
	enum ibv_event_type event;		/* of the peer; -1: none */
};

#define WORK(id, statement)						\
	static void id(struct side s[2], struct ibv_send_wr *wr)	\
	{								\
		struct ibv_sge *sge __attribute__((unused)) = wr->sg_list; \
									\
		statement;						\
	}
WORK(lkey_unknown, sge->lkey ^= 0x100)
WORK(lkey_variant, sge->lkey ^= 1)
WORK(lkey_zero, sge->lkey = 0)
WORK(lkey_all_ones, sge->lkey = UINT32_MAX)
WORK(lkey_of_the_peer, sge->lkey = s[1].mr->lkey)
WORK(second_lkey, wr->num_sge = 2; sge[1] = sge[0]; sge[1].lkey ^= 0x100)
WORK(starts_before, sge->addr = (uintptr_t)s[0].mem - 1)
WORK(ends_behind, sge->addr = (uintptr_t)s[0].mem + PAIR_MEM - sge->length + 1)
WORK(wraps, sge->addr = UINT64_MAX - 2)
WORK(four_gib, sge->length = UINT32_MAX)
WORK(rkey_unknown, wr->wr.rdma.rkey ^= 0x100)
WORK(rkey_variant, wr->wr.rdma.rkey ^= 1)
WORK(rkey_zero, wr->wr.rdma.rkey = 0)
WORK(rkey_of_its_own, wr->wr.rdma.rkey = s[0].mr->rkey)
WORK(remote_starts_before, wr->wr.rdma.remote_addr = (uintptr_t)s[1].mem - 1)
WORK(remote_ends_behind, wr->wr.rdma.remote_addr = (uintptr_t)s[1].mem + PAIR_MEM - sge->length + 1)
WORK(remote_wraps, wr->wr.rdma.remote_addr = UINT64_MAX - 2)
WORK(remote_zero, wr->wr.rdma.remote_addr = 0)
WORK(key_to_invalidate, wr->invalidate_rkey = s[0].mr->rkey; wr->num_sge = 0)
WORK(key_of_the_peer, wr->invalidate_rkey = s[1].mr->rkey)
WORK(too_long_for_receive, sge->length = 65)
WORK(atomic_of_4, sge->length = 4;
	wr->wr.atomic.remote_addr = (uintptr_t)s[1].mem;
	wr->wr.atomic.rkey = s[1].mr->rkey)
WORK(atomic_of_16, sge->length = 16;
	wr->wr.atomic.remote_addr = (uintptr_t)s[1].mem;
	wr->wr.atomic.rkey = s[1].mr->rkey)
WORK(atomic_odd, sge->length = 8;
	wr->wr.atomic.remote_addr = (uintptr_t)s[1].mem + 4;
	wr->wr.atomic.rkey = s[1].mr->rkey)
WORK(atomic_no_right, sge->length = 8;
	wr->wr.atomic.remote_addr = (uintptr_t)s[1].mem;
	wr->wr.atomic.rkey = s[1].mr->rkey)

#define NO_EVENT ((enum ibv_event_type)-1)
static const struct work_row work[] = {
#define LOCALLY(what, change, op) \
	{ what, change, op, IBV_WC_LOC_PROT_ERR, IBV_WC_SUCCESS, NO_EVENT }
	LOCALLY("lkey that nobody has", lkey_unknown, IBV_WR_RDMA_WRITE),
	LOCALLY("lkey of another variant", lkey_variant, IBV_WR_SEND),
	LOCALLY("lkey 0", lkey_zero, IBV_WR_RDMA_WRITE),
	LOCALLY("lkey of all ones", lkey_all_ones, IBV_WR_RDMA_WRITE),
	LOCALLY("lkey of the other NIC", lkey_of_the_peer, IBV_WR_RDMA_WRITE),
	LOCALLY("lkey of the second SGE", second_lkey, IBV_WR_RDMA_WRITE),
	LOCALLY("lkey of a READ", lkey_unknown, IBV_WR_RDMA_READ),
	LOCALLY("address in front of the MR", starts_before, IBV_WR_RDMA_WRITE),
	LOCALLY("end behind the MR", ends_behind, IBV_WR_RDMA_WRITE),
	LOCALLY("end behind the MR, of a READ", ends_behind, IBV_WR_RDMA_READ),
	LOCALLY("address that wraps", wraps, IBV_WR_SEND),
#undef LOCALLY
	{ "a message of 4 GiB", four_gib, IBV_WR_RDMA_WRITE, IBV_WC_LOC_LEN_ERR, IBV_WC_SUCCESS, NO_EVENT },
#define REMOTELY(what, change, op) \
	{ what, change, op, IBV_WC_REM_ACCESS_ERR, IBV_WC_SUCCESS, IBV_EVENT_QP_ACCESS_ERR }
	REMOTELY("rkey that nobody has", rkey_unknown, IBV_WR_RDMA_WRITE),
	REMOTELY("rkey of another variant", rkey_variant, IBV_WR_RDMA_READ),
	REMOTELY("rkey 0", rkey_zero, IBV_WR_RDMA_WRITE),
	REMOTELY("rkey of the own NIC", rkey_of_its_own, IBV_WR_RDMA_WRITE),
	REMOTELY("address in front of the peer's MR", remote_starts_before, IBV_WR_RDMA_WRITE),
	REMOTELY("end behind the peer's MR", remote_ends_behind, IBV_WR_RDMA_WRITE),
	REMOTELY("end behind the peer's MR, of a READ", remote_ends_behind, IBV_WR_RDMA_READ),
	REMOTELY("address that wraps there", remote_wraps, IBV_WR_RDMA_READ),
	REMOTELY("address 0 there", remote_zero, IBV_WR_RDMA_WRITE),
	REMOTELY("atomic without the right", atomic_no_right, IBV_WR_ATOMIC_FETCH_AND_ADD),
#undef REMOTELY
	{ "invalidate an MR that may not be", key_to_invalidate, IBV_WR_LOCAL_INV,
	  IBV_WC_LOC_QP_OP_ERR, IBV_WC_SUCCESS, NO_EVENT },
	{ "have the peer do so", key_of_the_peer, IBV_WR_SEND_WITH_INV,
	  IBV_WC_SUCCESS, IBV_WC_REM_INV_REQ_ERR, NO_EVENT },
	{ "a message longer than its receive", too_long_for_receive, IBV_WR_SEND,
	  IBV_WC_REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR, NO_EVENT },
	{ "atomic result of 4 bytes", atomic_of_4, IBV_WR_ATOMIC_FETCH_AND_ADD,
	  IBV_WC_LOC_LEN_ERR, IBV_WC_SUCCESS, NO_EVENT },
	{ "atomic result of 16 bytes", atomic_of_16, IBV_WR_ATOMIC_CMP_AND_SWP,
	  IBV_WC_LOC_LEN_ERR, IBV_WC_SUCCESS, NO_EVENT },
	{ "atomic at an odd address", atomic_odd, IBV_WR_ATOMIC_FETCH_AND_ADD,
	  IBV_WC_REM_INV_REQ_ERR, IBV_WC_SUCCESS, IBV_EVENT_QP_REQ_ERR },
};

static bool takes_receive(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_INV;
}

/* Peers may do all to the QPs. */
static int allow_atomics(struct side s[2])
{
	struct ibv_qp_attr attr = { .qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
				    IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC };

	return ibv_modify_qp(s[1].qp, &attr, IBV_QP_ACCESS_FLAGS);
}

/* The next event of a NIC, or NO_EVENT. */
static enum ibv_event_type next_event(struct side *s)
{
	struct ibv_async_event event;
	int flags = fcntl(s->context->async_fd, F_GETFL);

	fcntl(s->context->async_fd, F_SETFL, flags | O_NONBLOCK);
	for (unsigned int i = 0; i < 50; i++) {
		if (!ibv_get_async_event(s->context, &event)) {
			ibv_ack_async_event(&event);
			return event.event_type;
		}
		usleep(1000);
	}
	return NO_EVENT;
}

TEST_F(bad, work)
{
	struct side *a = &self->s[0], *b = &self->s[1];

	for EACH(row, work) {
		struct ibv_sge sge[2] = { { (uintptr_t)a->mem, 64, a->mr->lkey } };
		struct ibv_sge recv_sge = { (uintptr_t)b->mem, 64, b->mr->lkey };
		struct ibv_recv_wr *bad, recv = { .wr_id = 99, .sg_list = &recv_sge, .num_sge = 1 };
		struct ibv_send_wr wr = {
			.wr_id = 77, .sg_list = sge, .num_sge = 1, .opcode = row->opcode,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { (uintptr_t)b->mem, b->mr->rkey },
		};
		struct ibv_wc wc;

		ASSERT_EQ(0, allow_atomics(self->s));
		row->change(self->s, &wr);
		if (takes_receive(row->opcode))
			ASSERT_EQ(0, ibv_post_recv(b->qp, &recv, &bad));
		ASSERT_EQ(0, side_post(a, &wr));
		ASSERT_TRUE(side_wait(a, &wc, 10)) {
			TH_LOG("no completion: %s", row->name);
		}
		EXPECT_EQ(row->status, wc.status) {
			TH_LOG("%s: %s, %u", row->name, ibv_wc_status_str(wc.status), wc.vendor_err);
		}
		ASSERT_EQ(77, wc.wr_id);
		EXPECT_EQ(row->status ? IBV_QPS_ERR : IBV_QPS_RTS, qp_state(a->qp));
		if (row->peer != IBV_WC_SUCCESS) {
			ASSERT_TRUE(side_wait(b, &wc, 5));
			EXPECT_EQ(row->peer, wc.status) {
				TH_LOG("%s: %s", row->name, ibv_wc_status_str(wc.status));
			}
			ASSERT_EQ(99, wc.wr_id);
		}
		EXPECT_EQ(row->event, next_event(b)) {
			TH_LOG("%s", row->name);
		}
		ASSERT_EQ(0, pair_reconnect(self->s));
		ASSERT_EQ(0, ibv_poll_cq(a->cq, 1, &wc));
		ASSERT_EQ(0, ibv_poll_cq(b->cq, 1, &wc));
		ASSERT_TRUE(pair_transfer(self->s)) {
			TH_LOG("transfer after: %s", row->name);
		}
	}
	ASSERT_EQ(NO_EVENT, next_event(a));
	ASSERT_EQ(NO_EVENT, next_event(b));
}

TEST_HARNESS_MAIN
