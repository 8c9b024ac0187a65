// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * RC between two NICs: each operation, and each way in which one can fail, with the completion
 * on either side that the specification gives it.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "connection.h"

#define RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

FIXTURE(rc) {
	struct side s[2];
};

FIXTURE_SETUP(rc)
{
	ASSERT_EQ(0, pair_open(self->s));
}

FIXTURE_TEARDOWN(rc)
{
	pair_close(self->s);
}

TEST_F(rc, send) { EACH_SIZE(IBV_WR_SEND); }
TEST_F(rc, send_imm) { EACH_SIZE(IBV_WR_SEND_WITH_IMM); }
TEST_F(rc, write) { EACH_SIZE(IBV_WR_RDMA_WRITE); }
TEST_F(rc, write_imm) { EACH_SIZE(IBV_WR_RDMA_WRITE_WITH_IMM); }
TEST_F(rc, read) { EACH_SIZE(IBV_WR_RDMA_READ); }

TEST_F(rc, many_sges_gather_and_scatter)
{
	struct side *a = &self->s[0], *b = &self->s[1];
	struct ibv_sge from[PAIR_SGES], to[PAIR_SGES];
	struct ibv_send_wr wr = conn_wr(from, self->s, IBV_WR_SEND, 0);
	struct ibv_recv_wr *bad, recv = { .sg_list = to, .num_sge = PAIR_SGES };
	uint32_t out[] = { 100, 0, 3000, 900 }, in[] = { 2000, 1, 1999, 0 };
	struct ibv_wc wc;

	pair_fill(a->mem, 8192, 3);
	for (unsigned int i = 0, at = 0, to_at = 0; i < PAIR_SGES; i++) {
		from[i] = (struct ibv_sge){ (uintptr_t)a->mem + at, out[i], a->mr->lkey };
		to[i] = (struct ibv_sge){ (uintptr_t)b->mem + HALF + to_at, in[i], b->mr->lkey };
		at += out[i];
		to_at += in[i];
	}
	wr.num_sge = PAIR_SGES;
	ASSERT_EQ(0, ibv_post_recv(b->qp, &recv, &bad));
	ASSERT_EQ(0, side_post(a, &wr));
	ASSERT_TRUE(side_wait(b, &wc, 5));
	ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
	ASSERT_EQ(4000, wc.byte_len);
	ASSERT_EQ(0, memcmp(b->mem + HALF, a->mem, 4000));
}

TEST_F(rc, inline_data_are_taken_at_once)
{
	struct side *a = &self->s[0], *b = &self->s[1];
	uint8_t bytes[64], copy[64];
	struct ibv_sge sge;
	struct ibv_send_wr wr = conn_wr(&sge, self->s, IBV_WR_RDMA_WRITE, 64);
	struct ibv_wc wc;

	memset(bytes, 0x5a, sizeof(bytes));
	memcpy(copy, bytes, sizeof(copy));
	sge = (struct ibv_sge){ (uintptr_t)bytes, sizeof(bytes), 0 };	/* no key is looked at */
	wr.send_flags |= IBV_SEND_INLINE;
	ASSERT_EQ(0, side_post(a, &wr));
	memset(bytes, 0, sizeof(bytes));
	ASSERT_TRUE(side_wait(a, &wc, 5));
	ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
	ASSERT_EQ(0, memcmp(b->mem + HALF, copy, sizeof(copy)));
}

TEST_F(rc, only_signaled_sends_complete)
{
	struct side *a = &self->s[0];
	struct ibv_sge sge;
	struct ibv_send_wr wr = conn_wr(&sge, self->s, IBV_WR_RDMA_WRITE, 8);
	struct ibv_wc wc;

	for (int round = 0; round < 100; round++) {
		wr.send_flags = 0;
		for (int i = 0; i < PAIR_WRS - 1; i++)
			ASSERT_EQ(0, side_post(a, &wr));
		wr.send_flags = IBV_SEND_SIGNALED;
		wr.wr_id = 1000 + (uint64_t)round;
		ASSERT_EQ(0, side_post(a, &wr));
		ASSERT_TRUE(side_wait(a, &wc, 5));
		ASSERT_EQ(1000 + round, wc.wr_id);
	}
	ASSERT_EQ(0, ibv_poll_cq(a->cq, 1, &wc));
}

TEST_F(rc, a_full_queue_refuses_and_loses_nothing)
{
	struct side *b = &self->s[1];
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	unsigned int posted = 0;
	struct ibv_wc wc;

	ASSERT_EQ(0, ibv_query_qp(b->qp, &attr, IBV_QP_CAP, &init));
	ASSERT_GE(init.cap.max_recv_wr, PAIR_WRS);
	while (posted <= init.cap.max_recv_wr && !conn_recv(b, 64, posted))
		posted++;
	ASSERT_EQ(init.cap.max_recv_wr, posted);
	ASSERT_EQ(ENOMEM, conn_recv(b, 64, 0));
	attr.qp_state = IBV_QPS_ERR;
	ASSERT_EQ(0, ibv_modify_qp(b->qp, &attr, IBV_QP_STATE));
	for (unsigned int i = 0; i < posted; i++) {
		ASSERT_TRUE(side_wait(b, &wc, 5));
		ASSERT_EQ(IBV_WC_WR_FLUSH_ERR, wc.status);
		ASSERT_EQ(i, wc.wr_id);
	}
	ASSERT_EQ(0, ibv_poll_cq(b->cq, 1, &wc));
}

TEST_F(rc, too_many_sges_are_refused)
{
	struct side *a = &self->s[0];
	struct ibv_sge sge[64] = {};
	struct ibv_send_wr wr = conn_wr(sge, self->s, IBV_WR_SEND, 8);
	struct ibv_recv_wr *bad, recv = { .sg_list = sge, .num_sge = 64 };

	wr.num_sge = 64;
	ASSERT_EQ(EINVAL, side_post(a, &wr));
	ASSERT_EQ(EINVAL, ibv_post_recv(a->qp, &recv, &bad));
	ASSERT_EQ(&recv, bad);
}

/* A request that fails: what the requester's completion says; then its QP is in ERR. */
#define BAD(wr, expected) do {						\
	struct ibv_wc wc;						\
									\
	ASSERT_EQ(0, side_post(&self->s[0], wr));				\
	ASSERT_TRUE(side_wait(&self->s[0], &wc, 10));			\
	ASSERT_EQ(expected, wc.status) {				\
		TH_LOG("%s, vendor error %u", ibv_wc_status_str(wc.status), wc.vendor_err); \
	}								\
	ASSERT_EQ(77, wc.wr_id);					\
	ASSERT_EQ(IBV_QPS_ERR, qp_state(self->s[0].qp));		\
	ASSERT_EQ(0, side_post(&self->s[0], wr));				\
	ASSERT_TRUE(side_wait(&self->s[0], &wc, 5));			\
	ASSERT_EQ(IBV_WC_WR_FLUSH_ERR, wc.status);			\
} while (0)

TEST_F(rc, unknown_lkey)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = conn_wr(&sge, self->s, IBV_WR_RDMA_WRITE, 8);

	sge.lkey ^= 0x100;
	BAD(&wr, IBV_WC_LOC_PROT_ERR);
	ASSERT_EQ(IBV_QPS_RTS, qp_state(self->s[1].qp));
}

TEST_F(rc, lkey_of_another_pd)
{
	struct side *a = &self->s[0];
	struct ibv_pd *pd = ibv_alloc_pd(a->context);
	struct ibv_mr *mr;
	struct ibv_sge sge;
	struct ibv_send_wr wr = conn_wr(&sge, self->s, IBV_WR_RDMA_WRITE, 8);

	ASSERT_NE(NULL, pd);
	mr = ibv_reg_mr(pd, a->mem, PAIR_MEM, RIGHTS);
	ASSERT_NE(NULL, mr);
	sge.lkey = mr->lkey;
	BAD(&wr, IBV_WC_LOC_PROT_ERR);
	ASSERT_EQ(0, ibv_dereg_mr(mr));
	ASSERT_EQ(0, ibv_dealloc_pd(pd));
}

TEST_F(rc, local_buffer_out_of_bounds)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = conn_wr(&sge, self->s, IBV_WR_RDMA_WRITE, 8);

	sge.addr = (uintptr_t)self->s[0].mem + PAIR_MEM - 7;
	BAD(&wr, IBV_WC_LOC_PROT_ERR);
}

TEST_F(rc, read_into_memory_without_local_write)
{
	struct side *a = &self->s[0];
	struct ibv_mr *mr = ibv_reg_mr(a->pd, a->mem, PAIR_MEM, 0);
	struct ibv_sge sge;
	struct ibv_send_wr wr = conn_wr(&sge, self->s, IBV_WR_RDMA_READ, 8);

	ASSERT_NE(NULL, mr);
	sge.lkey = mr->lkey;
	BAD(&wr, IBV_WC_LOC_PROT_ERR);
	ASSERT_EQ(0, ibv_dereg_mr(mr));
}

/* The peer refuses: its QP goes to ERR with an event, and its memory is as it was. */
#define REFUSED(wr) do {						\
	struct side *b = &self->s[1];					\
	struct ibv_async_event event;					\
									\
	memset(b->mem, 0x11, PAIR_MEM);					\
	BAD(wr, IBV_WC_REM_ACCESS_ERR);					\
	for (size_t i = 0; i < PAIR_MEM; i++)				\
		ASSERT_EQ(0x11, b->mem[i]);				\
	ASSERT_EQ(IBV_QPS_ERR, qp_state(b->qp));			\
	ASSERT_EQ(0, ibv_get_async_event(b->context, &event));		\
	ASSERT_EQ(IBV_EVENT_QP_ACCESS_ERR, event.event_type);		\
	ASSERT_EQ(b->qp, event.element.qp);				\
	ibv_ack_async_event(&event);					\
} while (0)

TEST_F(rc, unknown_rkey)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = conn_wr(&sge, self->s, IBV_WR_RDMA_WRITE, 8);

	wr.wr.rdma.rkey ^= 0x100;
	REFUSED(&wr);
}

TEST_F(rc, rkey_of_another_variant)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = conn_wr(&sge, self->s, IBV_WR_RDMA_READ, 8);

	wr.wr.rdma.rkey ^= 0x1;
	REFUSED(&wr);
}

TEST_F(rc, rkey_of_another_pd)
{
	struct side *b = &self->s[1];
	struct ibv_pd *pd = ibv_alloc_pd(b->context);
	struct ibv_mr *mr;
	struct ibv_sge sge;
	struct ibv_send_wr wr = conn_wr(&sge, self->s, IBV_WR_RDMA_WRITE, 8);

	ASSERT_NE(NULL, pd);
	mr = ibv_reg_mr(pd, b->mem, PAIR_MEM, RIGHTS);
	ASSERT_NE(NULL, mr);
	wr.wr.rdma.rkey = mr->rkey;
	REFUSED(&wr);
	ASSERT_EQ(0, ibv_dereg_mr(mr));
	ASSERT_EQ(0, ibv_dealloc_pd(pd));
}

TEST_F(rc, rkey_after_dereg)
{
	struct side *b = &self->s[1];
	struct ibv_mr *mr = ibv_reg_mr(b->pd, b->mem, PAIR_MEM, RIGHTS);
	struct ibv_sge sge;
	struct ibv_send_wr wr = conn_wr(&sge, self->s, IBV_WR_RDMA_WRITE, 8);

	ASSERT_NE(NULL, mr);
	wr.wr.rdma.rkey = mr->rkey;
	ASSERT_EQ(0, ibv_dereg_mr(mr));
	REFUSED(&wr);
}

TEST_F(rc, remote_buffer_one_byte_out_of_bounds)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = conn_wr(&sge, self->s, IBV_WR_RDMA_WRITE, 4096);

	wr.wr.rdma.remote_addr = (uintptr_t)self->s[1].mem + PAIR_MEM - 4095;
	REFUSED(&wr);
}

TEST_F(rc, remote_buffer_that_wraps_around)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = conn_wr(&sge, self->s, IBV_WR_RDMA_READ, 4096);

	wr.wr.rdma.remote_addr = UINT64_MAX - 100;
	REFUSED(&wr);
}

TEST_F(rc, mr_without_remote_write)
{
	struct side *b = &self->s[1];
	struct ibv_mr *mr = ibv_reg_mr(b->pd, b->mem, PAIR_MEM, IBV_ACCESS_LOCAL_WRITE |
				       IBV_ACCESS_REMOTE_READ);
	struct ibv_sge sge;
	struct ibv_send_wr wr = conn_wr(&sge, self->s, IBV_WR_RDMA_WRITE, 8);

	ASSERT_NE(NULL, mr);
	wr.wr.rdma.rkey = mr->rkey;
	REFUSED(&wr);
	ASSERT_EQ(0, ibv_dereg_mr(mr));
}

TEST_F(rc, mr_without_remote_read)
{
	struct side *b = &self->s[1];
	struct ibv_mr *mr = ibv_reg_mr(b->pd, b->mem, PAIR_MEM, IBV_ACCESS_LOCAL_WRITE |
				       IBV_ACCESS_REMOTE_WRITE);
	struct ibv_sge sge;
	struct ibv_send_wr wr = conn_wr(&sge, self->s, IBV_WR_RDMA_READ, 8);

	ASSERT_NE(NULL, mr);
	wr.wr.rdma.rkey = mr->rkey;
	REFUSED(&wr);
	ASSERT_EQ(0, ibv_dereg_mr(mr));
}

TEST_F(rc, qp_without_remote_write)
{
	struct ibv_qp_attr attr = { .qp_access_flags = IBV_ACCESS_REMOTE_READ };
	struct ibv_sge sge;
	struct ibv_send_wr wr = conn_wr(&sge, self->s, IBV_WR_RDMA_WRITE, 8);

	ASSERT_EQ(0, ibv_modify_qp(self->s[1].qp, &attr, IBV_QP_ACCESS_FLAGS));
	REFUSED(&wr);
}

TEST_F(rc, message_longer_than_the_receive)
{
	struct side *b = &self->s[1];
	struct ibv_sge sge;
	struct ibv_send_wr wr = conn_wr(&sge, self->s, IBV_WR_SEND, 5000);
	struct ibv_wc wc;

	ASSERT_EQ(0, conn_recv(b, 4999, 5));
	BAD(&wr, IBV_WC_REM_INV_REQ_ERR);
	ASSERT_TRUE(side_wait(b, &wc, 5));
	ASSERT_EQ(IBV_WC_LOC_LEN_ERR, wc.status);
	ASSERT_EQ(5, wc.wr_id);
	ASSERT_EQ(IBV_QPS_ERR, qp_state(b->qp));
}

TEST_F(rc, receive_with_an_unknown_lkey)
{
	struct side *b = &self->s[1];
	struct ibv_sge sge, bad_sge = { (uintptr_t)b->mem, 64, b->mr->lkey ^ 0x100 };
	struct ibv_recv_wr *bad, recv = { .wr_id = 6, .sg_list = &bad_sge, .num_sge = 1 };
	struct ibv_send_wr wr = conn_wr(&sge, self->s, IBV_WR_SEND, 64);
	struct ibv_wc wc;

	ASSERT_EQ(0, ibv_post_recv(b->qp, &recv, &bad));
	BAD(&wr, IBV_WC_REM_OP_ERR);
	ASSERT_TRUE(side_wait(b, &wc, 5));
	ASSERT_EQ(IBV_WC_LOC_PROT_ERR, wc.status);
	ASSERT_EQ(6, wc.wr_id);
}

TEST_F(rc, receiver_never_ready)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = conn_wr(&sge, self->s, IBV_WR_SEND, 8);

	BAD(&wr, IBV_WC_RNR_RETRY_EXC_ERR);
	ASSERT_EQ(IBV_QPS_RTS, qp_state(self->s[1].qp));
}

TEST_F(rc, receiver_ready_late)
{
	struct side *a = &self->s[0], *b = &self->s[1];
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct ibv_sge sge;
	struct ibv_send_wr wr = conn_wr(&sge, self->s, IBV_WR_SEND, 3000);
	struct ibv_wc wc;

	ASSERT_EQ(0, ibv_modify_qp(a->qp, &attr, IBV_QP_STATE));
	ASSERT_EQ(0, qp_to_init(a->qp, 0));
	ASSERT_EQ(0, qp_to_rtr(a->qp, a, b, b->qp->qp_num));
	ASSERT_EQ(0, qp_to_rts(a->qp, 10, 3, 7));	/* for ever */
	pair_fill(a->mem, 3000, 9);
	ASSERT_EQ(0, side_post(a, &wr));
	usleep(50000);
	ASSERT_EQ(0, ibv_poll_cq(a->cq, 1, &wc));
	ASSERT_EQ(0, conn_recv(b, 3000, 1));
	ASSERT_TRUE(side_wait(a, &wc, 5));
	ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
	ASSERT_TRUE(side_wait(b, &wc, 5));
	ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
	ASSERT_EQ(0, memcmp(b->mem + HALF, a->mem, 3000));
}

TEST_F(rc, peer_that_does_not_answer)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct ibv_sge sge;
	struct ibv_send_wr wr = conn_wr(&sge, self->s, IBV_WR_RDMA_WRITE, 8);

	ASSERT_EQ(0, ibv_modify_qp(self->s[1].qp, &attr, IBV_QP_STATE));
	BAD(&wr, IBV_WC_RETRY_EXC_ERR);
}

TEST_F(rc, a_qp_works_again_after_reset)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = conn_wr(&sge, self->s, IBV_WR_RDMA_WRITE, 8);

	wr.wr.rdma.rkey ^= 0x100;
	REFUSED(&wr);
	ASSERT_EQ(0, pair_reconnect(self->s));
	EACH_SIZE(IBV_WR_SEND_WITH_IMM);
	EACH_SIZE(IBV_WR_RDMA_READ);
}

/* QPS-9: posting is refused at once where the state does not allow it. */
TEST_F(rc, no_sends_before_rts)
{
	struct side *a = &self->s[0];
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct ibv_sge sge;
	struct ibv_send_wr wr = conn_wr(&sge, self->s, IBV_WR_SEND, 8);

	ASSERT_EQ(0, ibv_modify_qp(a->qp, &attr, IBV_QP_STATE));
	ASSERT_EQ(EINVAL, side_post(a, &wr));
	ASSERT_EQ(EINVAL, conn_recv(a, 8, 0));
	ASSERT_EQ(0, qp_to_init(a->qp, 0));
	ASSERT_EQ(EINVAL, side_post(a, &wr));
	ASSERT_EQ(0, conn_recv(a, 8, 0));
}

/* QPS-10 QPS-11: what is posted in SQD waits, and the queue is drained with an event. */
TEST_F(rc, the_send_queue_is_drained)
{
	struct side *a = &self->s[0];
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
	struct ibv_async_event event;
	struct ibv_sge sge;
	struct ibv_send_wr wr = conn_wr(&sge, self->s, IBV_WR_RDMA_WRITE, 8);
	struct ibv_wc wc;

	ASSERT_EQ(0, ibv_modify_qp(a->qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
	ASSERT_EQ(0, ibv_get_async_event(a->context, &event));
	ASSERT_EQ(IBV_EVENT_SQ_DRAINED, event.event_type);
	ibv_ack_async_event(&event);
	ASSERT_EQ(IBV_QPS_SQD, qp_state(a->qp));
	ASSERT_EQ(0, side_post(a, &wr));
	ASSERT_EQ(0, ibv_poll_cq(a->cq, 1, &wc));
	attr.qp_state = IBV_QPS_RTS;
	ASSERT_EQ(0, ibv_modify_qp(a->qp, &attr, IBV_QP_STATE));
	ASSERT_TRUE(side_wait(a, &wc, 5));
	ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
}

static bool event_within(struct side *side, int milliseconds)
{
	struct pollfd pfd = { .fd = side->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	if (poll(&pfd, 1, milliseconds) != 1 || ibv_get_cq_event(side->channel, &cq, &context))
		return false;
	ibv_ack_cq_events(cq, 1);
	return cq == side->cq;
}

TEST_F(rc, an_armed_cq_gives_one_event)
{
	ASSERT_EQ(0, ibv_req_notify_cq(self->s[0].cq, 0));
	GOOD(IBV_WR_RDMA_WRITE, 8);
	GOOD(IBV_WR_RDMA_WRITE, 8);
	ASSERT_TRUE(event_within(&self->s[0], 5000));
	ASSERT_FALSE(event_within(&self->s[0], 200));
	/* Not armed: none. */
	GOOD(IBV_WR_RDMA_WRITE, 8);
	ASSERT_FALSE(event_within(&self->s[0], 200));
	for (int i = 0; i < 100; i++) {
		ASSERT_EQ(0, ibv_req_notify_cq(self->s[0].cq, 0));
		GOOD(IBV_WR_RDMA_WRITE, 8);
		ASSERT_TRUE(event_within(&self->s[0], 5000));
	}
}

TEST_F(rc, armed_for_solicited_only)
{
	struct side *a = &self->s[0], *b = &self->s[1];
	struct ibv_sge sge;
	struct ibv_send_wr wr = conn_wr(&sge, self->s, IBV_WR_SEND, 8);

	ASSERT_EQ(0, ibv_req_notify_cq(b->cq, 1));
	GOOD(IBV_WR_SEND, 8);
	ASSERT_FALSE(event_within(b, 200));
	wr.send_flags |= IBV_SEND_SOLICITED;
	ASSERT_EQ(0, conn_recv(b, 8, 0));
	ASSERT_EQ(0, side_post(a, &wr));
	ASSERT_TRUE(event_within(b, 5000));
	/* A failure counts as solicited. */
	ASSERT_EQ(0, ibv_req_notify_cq(a->cq, 1));
	wr.wr.rdma.rkey = 0;
	wr.opcode = IBV_WR_RDMA_WRITE;
	ASSERT_EQ(0, side_post(a, &wr));
	ASSERT_TRUE(event_within(a, 5000));
}

TEST_F(rc, query_tells_what_was_set)
{
	struct side *a = &self->s[0], *b = &self->s[1];
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	ASSERT_EQ(0, ibv_query_qp(a->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_TIMEOUT, &init));
	EXPECT_EQ(IBV_QPS_RTS, attr.qp_state);
	EXPECT_EQ(IBV_MTU_1024, attr.path_mtu);
	EXPECT_EQ(b->qp->qp_num, attr.dest_qp_num);
	EXPECT_EQ(0xfffff0, attr.rq_psn);
	EXPECT_EQ(0xfffff0, attr.sq_psn);
	EXPECT_EQ(10, attr.timeout);
	EXPECT_EQ(3, attr.retry_cnt);
	EXPECT_EQ(3, attr.rnr_retry);
	EXPECT_EQ(1, attr.min_rnr_timer);
	EXPECT_EQ(4, attr.max_rd_atomic);
	EXPECT_EQ(4, attr.max_dest_rd_atomic);
	EXPECT_EQ(0, memcmp(&attr.ah_attr.grh.dgid, &b->gid, 16));
	EXPECT_EQ(a->gid_index, attr.ah_attr.grh.sgid_index);
	EXPECT_EQ(IBV_QPT_RC, init.qp_type);
	EXPECT_EQ(a->cq, init.send_cq);
}

/* A QP takes the 20 bits that packets have. */
TEST_F(rc, a_flow_label_of_32_bits)
{
	struct side *a = &self->s[0], *b = &self->s[1];
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = b->qp->qp_num,
		.ah_attr = side_ah(a, &b->gid),
	};
	struct ibv_qp *qp = side_create_qp(a);
	struct ibv_qp_init_attr init;

	attr.ah_attr.grh.flow_label = 0xfff54321;
	ASSERT_NE(NULL, qp);
	ASSERT_EQ(0, qp_to_init(qp, 0));
	ASSERT_EQ(0, ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
	ASSERT_EQ(0, ibv_query_qp(qp, &attr, IBV_QP_AV, &init));
	EXPECT_EQ(0x54321, attr.ah_attr.grh.flow_label);
	ASSERT_EQ(0, ibv_destroy_qp(qp));
}

TEST_HARNESS_MAIN
