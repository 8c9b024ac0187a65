// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a program sees whose device is taken away or dies (Documentation/user/driver.rst):
 * whoever waits wakes up, whoever polls gets an error, verbs fail, destroying works, and memory
 * that was mapped may be touched. A reset makes it work again for those who open it anew.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "datagram.h"
#include "dmabuf.h"
#include "kselftest_harness.h"
#include "pair.h"

#define SECONDS 10	/* in which everybody knows */

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY), ok;

	if (fd < 0)
		return -1;
	ok = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return ok ? 0 : -1;
}

/* A function level reset of the first NIC. */
static int reset_function(void)
{
	return write_file("/sys/class/net/skua0/device/reset", "1");
}

static bool readable(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, SECONDS * 1000) == 1;
}

FIXTURE(removal) {
	struct side sides[2];
};

FIXTURE_VARIANT(removal) {
	const char *fault;	/* as skuactl knows it; NULL: the function is reset, and RDMA goes */
	bool by_command;	/* shows at the next command */
};

FIXTURE_VARIANT_ADD(removal, reset) { NULL, false };
FIXTURE_VARIANT_ADD(removal, fatal) { "fatal", false };
FIXTURE_VARIANT_ADD(removal, gone) { "gone", false };
FIXTURE_VARIANT_ADD(removal, command_timeout) { "command-timeout", true };

FIXTURE_SETUP(removal)
{
	ASSERT_EQ(0, pair_open(self->sides));
}

FIXTURE_TEARDOWN(removal)
{
	pair_close(self->sides);
	if (variant->fault)
		EXPECT_EQ(0, reset_function());
}

static int take_away(const FIXTURE_VARIANT(removal) *variant, struct side *side)
{
	char command[100];

	if (!variant->fault)
		return reset_function();
	if (nic_stays_dead())
		return -1;
	snprintf(command, sizeof(command), "skuactl inject skua0 %s", variant->fault);
	if (system(command))
		return -1;
	if (!variant->by_command)
		return 0;
	/* The one that is never answered may be another thread's; then so is the next of ours. */
	for (time_t end = time(NULL) + SECONDS; time(NULL) < end; ) {
		struct ibv_pd *pd = ibv_alloc_pd(side->context);

		if (!pd)
			return errno == EIO ? 0 : -1;
		ibv_dealloc_pd(pd);
	}
	return -1;
}

/* Also after the test of before: opening and connecting is half of the fixture. */
static void check_that_it_works(struct __test_metadata *_metadata, struct side sides[2])
{
	struct ibv_sge sge = { (uintptr_t)sides[0].mem, 64, sides[0].mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)sides[1].mem, sides[1].mr->rkey },
	};
	struct ibv_wc wc;

	memset(sides[0].mem, 0x5a, 64);
	ASSERT_EQ(0, ibv_post_send(sides[0].qp, &wr, &bad));
	ASSERT_TRUE(side_wait(&sides[0], &wc, SECONDS));
	ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
	ASSERT_EQ(0, memcmp(sides[0].mem, sides[1].mem, 64));
}

/* RST-6: whoever polls or waits is told, here and below. */
TEST_F(removal, who_polls_gets_an_error)
{
	struct side *s = &self->sides[0];
	struct ibv_wc wc;
	time_t end;
	int n;

	check_that_it_works(_metadata, self->sides);
	EXPECT_EQ(0, ibv_poll_cq(s->cq, 1, &wc));
	ASSERT_EQ(0, take_away(variant, s));
	for (end = time(NULL) + SECONDS; !(n = ibv_poll_cq(s->cq, 1, &wc)) && time(NULL) < end; )
		;
	EXPECT_LT(n, 0);
	/* The peer is alive. */
	EXPECT_EQ(0, ibv_poll_cq(self->sides[1].cq, 1, &wc));
}

TEST_F(removal, who_waits_for_a_completion_wakes_up)
{
	struct side *s = &self->sides[0];
	struct ibv_wc wc;

	ASSERT_EQ(0, ibv_req_notify_cq(s->cq, 0));
	ASSERT_EQ(0, take_away(variant, s));
	EXPECT_TRUE(readable(s->channel->fd));
	EXPECT_LT(ibv_poll_cq(s->cq, 1, &wc), 0);
}

TEST_F(removal, the_event_device_fatal_comes)
{
	struct side *s = &self->sides[0];
	struct ibv_async_event event = {};

	ASSERT_EQ(0, take_away(variant, s));
	do {
		ASSERT_TRUE(readable(s->context->async_fd));
		ASSERT_EQ(0, ibv_get_async_event(s->context, &event));
		ibv_ack_async_event(&event);
	} while (event.event_type != IBV_EVENT_DEVICE_FATAL);
}

TEST_F(removal, verbs_fail_and_destroying_works)
{
	struct side *s = &self->sides[0];
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_device_attr device;
	struct ibv_recv_wr *bad_recv, recv = {};
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_SEND };
	struct ibv_qp *qp = side_create_qp(s);
	struct ibv_wc wc;

	ASSERT_NE(NULL, qp);
	ASSERT_EQ(0, take_away(variant, s));
	for (int i = 0; i < SECONDS * 10 && !ibv_poll_cq(s->cq, 1, &wc); i++)
		usleep(100000);
	errno = 0;
	EXPECT_EQ(NULL, ibv_alloc_pd(s->context));
	EXPECT_EQ(EIO, errno);
	errno = 0;
	EXPECT_EQ(NULL, ibv_reg_mr(s->pd, s->mem, 4096, 0));
	EXPECT_EQ(EIO, errno);
	errno = 0;
	EXPECT_EQ(NULL, ibv_create_cq(s->context, 16, NULL, NULL, 0));
	EXPECT_EQ(EIO, errno);
	/* What needs no device works as long as there is an RDMA device. */
	EXPECT_EQ(variant->fault ? 0 : EIO, ibv_query_device(s->context, &device));
	EXPECT_EQ(variant->fault ? 0 : EIO, ibv_modify_qp(s->qp, &attr, IBV_QP_STATE));
	/* The doorbell page is one that nobody reads. */
	EXPECT_EQ(0, ibv_post_recv(s->qp, &recv, &bad_recv));
	EXPECT_EQ(0, ibv_post_send(s->qp, &wr, &bad));
	EXPECT_EQ(0, ibv_req_notify_cq(s->cq, 0));
	EXPECT_EQ(0, ibv_destroy_qp(qp));
}

/* MW-8: nothing is busy any more. */
TEST_F(removal, windows_and_their_mr_can_be_destroyed)
{
	struct side *s = &self->sides[0];
	struct ibv_mr *mr = ibv_reg_mr(s->pd, s->mem, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw[2];
	struct ibv_wc wc;

	ASSERT_NE(NULL, mr);
	for (int i = 0; i < 2; i++) {
		struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED };

		mw[i] = ibv_alloc_mw(s->pd, i ? IBV_MW_TYPE_2 : IBV_MW_TYPE_1);
		ASSERT_NE(NULL, mw[i]);
		wr.bind_mw.mw = mw[i];
		wr.bind_mw.rkey = mw[i]->rkey;
		wr.bind_mw.bind_info = (struct ibv_mw_bind_info){ mr, (uintptr_t)s->mem, 64, IBV_ACCESS_REMOTE_READ };
		ASSERT_EQ(0, ibv_post_send(s->qp, &wr, &bad));
		ASSERT_TRUE(side_wait(s, &wc, SECONDS));
		ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
	}
	ASSERT_EQ(EBUSY, ibv_dereg_mr(mr));
	ASSERT_EQ(0, take_away(variant, s));
	for (int i = 0; i < SECONDS * 10 && !ibv_poll_cq(s->cq, 1, &wc); i++)
		usleep(100000);
	errno = 0;
	EXPECT_EQ(NULL, ibv_alloc_mw(s->pd, IBV_MW_TYPE_1));
	EXPECT_EQ(EIO, errno);
	EXPECT_EQ(0, ibv_dereg_mr(mr));
	for (int i = 0; i < 2; i++)
		EXPECT_EQ(0, ibv_dealloc_mw(mw[i]));
}

/* RST-9: an MR of a device that is dead does not change any more. */
TEST_F(removal, mrs_do_not_change)
{
	struct side *s = &self->sides[0];
	struct ibv_mr *mr = ibv_reg_mr(s->pd, s->mem, 4096, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_wc wc;

	ASSERT_NE(NULL, mr);
	ASSERT_EQ(0, take_away(variant, s));
	for (int i = 0; i < SECONDS * 10 && !ibv_poll_cq(s->cq, 1, &wc); i++)
		usleep(100000);
	for (int flags = 1; flags <= IBV_REREG_MR_FLAGS_SUPPORTED; flags++) {
		errno = 0;
		EXPECT_EQ(IBV_REREG_MR_ERR_CMD, ibv_rereg_mr(mr, flags, s->pd, s->mem + 8192, 4096, 0));
		EXPECT_EQ(EIO, errno);
	}
	EXPECT_EQ(0, ibv_dereg_mr(mr));
}

/* RST-9: an exporter takes its buffers back from a device that dies, and from one that is dead. It is not held up. */
TEST_F(removal, a_dmabuf_is_taken_back)
{
	struct side *s = &self->sides[0];
	struct ibv_mr *mr[2];
	struct ibv_wc wc;
	int fd[2];

	for (int i = 0; i < 2; i++) {
		fd[i] = export_buffer(1 << 20, 0, 0);
		ASSERT_LE(0, fd[i]);
		mr[i] = ibv_reg_dmabuf_mr(s->pd, 0, 1 << 20, 0, fd[i], IBV_ACCESS_LOCAL_WRITE);
		ASSERT_NE(NULL, mr[i]);
	}
	ASSERT_EQ(0, take_away(variant, s));
	EXPECT_EQ(0, take_back(fd[0]));
	for (int i = 0; i < SECONDS * 10 && !ibv_poll_cq(s->cq, 1, &wc); i++)
		usleep(100000);
	EXPECT_EQ(0, take_back(fd[1]));
	EXPECT_EQ(0, exported().mapped);
	for (int i = 0; i < 2; i++) {
		EXPECT_EQ(0, ibv_dereg_mr(mr[i]));
		close(fd[i]);
	}
	EXPECT_TRUE(none_exported());
}

/* RST-9 DM-3: memory of a device that is dead can be freed, and no more. */
TEST_F(removal, device_memory_can_be_freed)
{
	struct side *s = &self->sides[0];
	struct ibv_alloc_dm_attr alloc = { .length = 100000 };
	struct ibv_dm *dm = ibv_alloc_dm(s->context, &alloc);
	struct ibv_mr *mr;
	struct ibv_wc wc;

	ASSERT_NE(NULL, dm);
	mr = ibv_reg_dm_mr(s->pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED);
	ASSERT_NE(NULL, mr);
	ASSERT_EQ(0, ibv_memcpy_to_dm(dm, 0, s->mem, 100000));
	ASSERT_EQ(EBUSY, ibv_free_dm(dm));
	ASSERT_EQ(0, take_away(variant, s));
	for (int i = 0; i < SECONDS * 10 && !ibv_poll_cq(s->cq, 1, &wc); i++)
		usleep(100000);
	EXPECT_EQ(EIO, ibv_memcpy_to_dm(dm, 0, s->mem, 100000));
	EXPECT_EQ(EIO, ibv_memcpy_from_dm(s->mem, dm, 0, 64));
	errno = 0;
	EXPECT_EQ(NULL, ibv_alloc_dm(s->context, &alloc));
	EXPECT_EQ(EIO, errno);
	errno = 0;
	EXPECT_EQ(NULL, ibv_reg_dm_mr(s->pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED));
	EXPECT_EQ(EIO, errno);
	EXPECT_EQ(0, ibv_dereg_mr(mr));
	EXPECT_EQ(0, ibv_free_dm(dm));
}

/* RST-9 XRC-1: what a domain holds together goes one after the other. */
TEST_F(removal, an_xrc_domain_is_taken_apart)
{
	struct side *s = &self->sides[0];
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT,
	};
	struct ibv_srq_init_attr_ex srq_attr = {
		.attr = { .max_wr = 4, .max_sge = 1 }, .srq_type = IBV_SRQT_XRC, .pd = s->pd, .cq = s->cq,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
			     IBV_SRQ_INIT_ATTR_CQ,
	};
	struct ibv_qp_init_attr_ex recv_attr = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD,
	};
	struct ibv_qp_init_attr_ex send_attr = {
		.qp_type = IBV_QPT_XRC_SEND, .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = s->pd, .send_cq = s->cq,
		.cap = { .max_send_wr = 4, .max_send_sge = 1 },
	};
	struct ibv_recv_wr *bad, recv = {};
	struct ibv_qp *qp, *send_qp;
	struct ibv_srq *srq;
	struct ibv_wc wc;

	srq_attr.xrcd = recv_attr.xrcd = ibv_open_xrcd(s->context, &domain);
	ASSERT_NE(NULL, srq_attr.xrcd);
	srq = ibv_create_srq_ex(s->context, &srq_attr);
	qp = ibv_create_qp_ex(s->context, &recv_attr);
	send_qp = ibv_create_qp_ex(s->context, &send_attr);
	ASSERT_TRUE(srq && qp && send_qp);
	ASSERT_EQ(0, ibv_post_srq_recv(srq, &recv, &bad));
	ASSERT_EQ(0, take_away(variant, s));
	for (int i = 0; i < SECONDS * 10 && !ibv_poll_cq(s->cq, 1, &wc); i++)
		usleep(100000);
	EXPECT_EQ(NULL, ibv_create_qp_ex(s->context, &recv_attr));
	EXPECT_EQ(NULL, ibv_open_xrcd(s->context, &domain));
	EXPECT_EQ(0, ibv_destroy_qp(send_qp));
	EXPECT_EQ(0, ibv_destroy_qp(qp));
	EXPECT_EQ(0, ibv_destroy_srq(srq));
	EXPECT_EQ(0, ibv_close_xrcd(srq_attr.xrcd));
}

/* RST-9 RAW-11: the device that had the flow is gone, or has forgotten it. */
TEST_F(removal, a_flow_and_wqs_are_taken_apart)
{
	struct side *s = &self->sides[0];
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
	} rule = {
		{ .size = sizeof(rule), .num_of_specs = 1, .port = 1 },
		{ IBV_FLOW_SPEC_ETH, sizeof(rule.eth), { .dst_mac = { 2, 0, 0, 0, 0, 9 } }, { .dst_mac = { 255 } } },
	};
	struct ibv_wq_init_attr wq_attr = { .wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 1, .pd = s->pd, .cq = s->cq };
	struct ibv_wq_attr ready = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY };
	struct ibv_wq *wq = ibv_create_wq(s->context, &wq_attr);
	struct ibv_rwq_ind_table_init_attr table_attr = { .ind_tbl = &wq };
	uint8_t key[40] = {};
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RAW_PACKET, .pd = s->pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH,
		.rx_hash_conf = { IBV_RX_HASH_FUNC_TOEPLITZ, 40, key, IBV_RX_HASH_SRC_IPV4 },
	};
	struct ibv_qp *raw = side_create_qp_of(s, IBV_QPT_RAW_PACKET), *spread;
	struct ibv_flow *flow[2];
	struct ibv_wc wc;

	ASSERT_TRUE(wq && raw);
	ASSERT_EQ(0, ibv_modify_wq(wq, &ready));
	attr.rwq_ind_tbl = ibv_create_rwq_ind_table(s->context, &table_attr);
	ASSERT_NE(NULL, attr.rwq_ind_tbl);
	spread = ibv_create_qp_ex(s->context, &attr);
	ASSERT_NE(NULL, spread);
	flow[0] = ibv_create_flow(raw, &rule.attr);
	flow[1] = ibv_create_flow(spread, &rule.attr);
	ASSERT_TRUE(flow[0] && flow[1]);
	ASSERT_EQ(0, take_away(variant, s));
	for (int i = 0; i < SECONDS * 10 && !ibv_poll_cq(s->cq, 1, &wc); i++)
		usleep(100000);
	EXPECT_EQ(NULL, ibv_create_flow(raw, &rule.attr));
	EXPECT_EQ(NULL, ibv_create_wq(s->context, &wq_attr));
	EXPECT_EQ(0, ibv_destroy_flow(flow[0]));
	EXPECT_EQ(0, ibv_destroy_flow(flow[1]));
	EXPECT_EQ(0, ibv_destroy_qp(raw));
	EXPECT_EQ(0, ibv_destroy_qp(spread));
	EXPECT_EQ(0, ibv_destroy_rwq_ind_table(attr.rwq_ind_tbl));
	EXPECT_EQ(0, ibv_destroy_wq(wq));
}

static struct ibv_qp *qp_in_a_group(struct side *s, const union ibv_gid *group)
{
	struct ibv_qp *qp = side_create_qp_of(s, IBV_QPT_UD);

	return qp && !qp_ud_to_rts(qp, 0x11111111) && !ibv_attach_mcast(qp, group, 0) ? qp : NULL;
}

static const union ibv_gid group = { .raw = { [10] = 0xff, [11] = 0xff, 239, 1, 2, 3 } };

static bool is_dead(struct side *s)
{
	struct ibv_wc wc;

	for (int i = 0; i < SECONDS * 10; i++) {
		if (ibv_poll_cq(s->cq, 1, &wc) < 0)
			return true;
		usleep(100000);
	}
	return false;
}

/* RST-9: here and below. */
TEST_F(removal, a_group_is_left)
{
	struct side *s = &self->sides[0];
	struct ibv_qp *qp = qp_in_a_group(s, &group);

	ASSERT_NE(NULL, qp);
	ASSERT_EQ(0, take_away(variant, s));
	ASSERT_TRUE(is_dead(s));
	/* After a reset the device is not there to be asked. */
	EXPECT_EQ(variant->fault ? 0 : EIO, ibv_detach_mcast(qp, &group, 0));
	EXPECT_EQ(0, ibv_destroy_qp(qp));
}

/* SRQ-12: nothing takes the receives of an SRQ any more, and nothing has to be there to post them: they fill the SRQ. */
TEST_F(removal, a_million_posts_to_an_srq)
{
	struct side *s = &self->sides[0];
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 1000, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(s->pd, &attr);
	struct ibv_recv_wr *bad, recv = {};
	unsigned int posted = 0, refused = 0;

	ASSERT_NE(NULL, srq);
	ASSERT_EQ(0, ibv_post_srq_recv(srq, &recv, &bad));
	ASSERT_EQ(0, take_away(variant, s));
	ASSERT_TRUE(is_dead(s));
	for (int i = 0; i < 1000000; i++) {
		int err = ibv_post_srq_recv(srq, &recv, &bad);

		posted += !err;
		refused += err == ENOMEM && bad == &recv;
	}
	EXPECT_EQ(attr.attr.max_wr - 1, posted);
	EXPECT_EQ(1000000, posted + refused);
	EXPECT_EQ(0, ibv_destroy_srq(srq));
}

/* QPs of all programs, as the kernel counts them. */
static int count_qps(void)
{
	FILE *file = popen("rdma resource show qp link skua_0 | grep -c 'type UD'", "r");
	int n = -1;

	if (!file)
		return -1;
	if (fscanf(file, "%d", &n) != 1)
		n = -1;
	pclose(file);
	return n;
}

/* A program that ends without leaving its groups leaves nothing else behind. */
TEST_F(removal, a_group_is_left_by_the_kernel)
{
	int said[2], before, status;
	struct side own;
	char ready;
	pid_t pid;

	before = count_qps();
	ASSERT_LE(0, before);
	ASSERT_EQ(0, pipe(said));
	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		ready = !side_open(&own, "skua_0") && qp_in_a_group(&own, &group);
		if (write(said[1], &ready, 1) == 1)
			pause();
		_exit(1);
	}
	ASSERT_EQ(1, read(said[0], &ready, 1));
	ASSERT_EQ(1, ready);
	ASSERT_EQ(0, take_away(variant, &self->sides[0]));
	ASSERT_TRUE(is_dead(&self->sides[0]));
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	close(said[0]);
	close(said[1]);
	/* After a reset there is a new device. */
	EXPECT_EQ(before, count_qps());
}

/* RST-12: whatever consumers in the kernel do, a program has one event of each CQ. */
TEST_F(removal, a_cq_has_one_event)
{
	struct side *s = &self->sides[0];
	unsigned int events = 0;
	struct ibv_cq *cq;
	void *context;

	ASSERT_EQ(0, fcntl(s->channel->fd, F_SETFL, O_NONBLOCK));
	ASSERT_EQ(0, take_away(variant, s));
	ASSERT_TRUE(is_dead(s));
	usleep(300000);
	while (events < 10 && !ibv_get_cq_event(s->channel, &cq, &context))
		events++;
	if (events)
		ibv_ack_cq_events(s->cq, events);
	/* After a reset the CQ is gone, with its events. */
	EXPECT_EQ(variant->fault ? 1 : events, events);
	EXPECT_GE(1, events);
}

TEST_F(removal, the_peer_gets_a_retry_error)
{
	struct side *s = &self->sides[1];
	struct ibv_sge sge = { (uintptr_t)s->mem, 64, s->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)self->sides[0].mem, self->sides[0].mr->rkey },
	};
	struct ibv_wc wc;

	ASSERT_EQ(0, take_away(variant, &self->sides[0]));
	ASSERT_EQ(0, ibv_post_send(s->qp, &wr, &bad));
	ASSERT_TRUE(side_wait(s, &wc, 60));
	EXPECT_EQ(IBV_WC_RETRY_EXC_ERR, wc.status);
}

/* A child of fork has the same context; it must not be left behind either. */
TEST_F(removal, a_child_learns_of_it)
{
	struct side *s = &self->sides[0];
	struct ibv_wc wc;
	int status;
	pid_t pid = fork();

	ASSERT_GE(pid, 0);
	if (!pid) {
		for (int i = 0; i < SECONDS * 10; i++) {
			if (ibv_poll_cq(s->cq, 1, &wc) < 0)
				_exit(0);
			usleep(100000);
		}
		_exit(1);
	}
	ASSERT_EQ(0, take_away(variant, s));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFEXITED(status) && !WEXITSTATUS(status));
}

/* Verbs and the reset at once, on many threads: whatever comes of it, nothing hangs. */
static void *verbs_in_a_loop(void *data)
{
	struct side *s = data;

	for (int i = 0; i < 100000; i++) {
		struct ibv_pd *pd = ibv_alloc_pd(s->context);
		struct ibv_mr *mr = pd ? ibv_reg_mr(pd, s->mem, 1 << 20, IBV_ACCESS_LOCAL_WRITE) : NULL;
		struct ibv_cq *cq = ibv_create_cq(s->context, 64, NULL, NULL, 0);
		struct ibv_qp *qp = side_create_qp(s);
		bool gone = !qp;

		if (qp)
			ibv_destroy_qp(qp);
		if (cq)
			ibv_destroy_cq(cq);
		if (mr)
			ibv_dereg_mr(mr);
		if (pd)
			ibv_dealloc_pd(pd);
		if (gone)
			return s;
	}
	return NULL;
}

TEST_F(removal, in_the_middle_of_verbs)
{
	pthread_t threads[4];
	void *gone;

	for (int i = 0; i < 4; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, verbs_in_a_loop, &self->sides[0]));
	usleep(200000);
	ASSERT_EQ(0, take_away(variant, &self->sides[0]));
	for (int i = 0; i < 4; i++) {
		ASSERT_EQ(0, pthread_join(threads[i], &gone));
		EXPECT_NE(NULL, gone);
	}
}

/* A device that lives is reset, while programs and consumers in the kernel use it, and both have members of groups. */

#define HOLD "/sys/kernel/debug/skua_selftest/hold"

/* What the consumer in the kernel (kernel/hold.c) has transferred, or -1 if its state is not this one. */
static long transferred(const char *state)
{
	char text[100] = "", format[50];
	FILE *file = fopen(HOLD, "r");
	long n = -1, wrong = 0;

	if (!file)
		return -1;
	snprintf(format, sizeof(format), "%s transfers %%ld flushed %%*d wrong %%ld", state);
	if (!fgets(text, sizeof(text), file) || sscanf(text, format, &n, &wrong) != 2 || wrong)
		n = -1;
	fclose(file);
	return n;
}

FIXTURE(living) {
	struct side sides[2];
	struct ibv_qp *members[2];
	struct ibv_ah *ah;
	pthread_t thread;
	unsigned long done;		/* of the program's transfers; read and written by __atomic */
};

FIXTURE_VARIANT(living) {
	const char *reset;
};

FIXTURE_VARIANT_ADD(living, function) { "echo 1 >/sys/class/net/skua0/device/reset" };
FIXTURE_VARIANT_ADD(living, reload) {
	"at=$(readlink -f /sys/class/net/skua0/device) && nsenter --net=/proc/1/ns/net devlink dev reload pci/${at##*/}"
};

FIXTURE_SETUP(living)
{
	/* A network namespace has a /sys of its own, without what was mounted there. */
	if (mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL))
		ASSERT_EQ(EBUSY, errno);
	ASSERT_EQ(0, system("modprobe skua_selftest"));
	ASSERT_EQ(0, pair_open(self->sides));
	for (int i = 0; i < 2; i++) {
		self->members[i] = qp_in_a_group(&self->sides[i], &group);
		ASSERT_NE(NULL, self->members[i]);
	}
	self->ah = ud_ah(&self->sides[1], &group);
	ASSERT_NE(NULL, self->ah);
}

FIXTURE_TEARDOWN(living)
{
	/* The peer's device was not reset. */
	EXPECT_EQ(0, ibv_detach_mcast(self->members[1], &group, 0));
	EXPECT_EQ(EIO, ibv_detach_mcast(self->members[0], &group, 0));
	EXPECT_EQ(0, ibv_destroy_ah(self->ah));
	for (int i = 0; i < 2; i++)
		EXPECT_EQ(0, ibv_destroy_qp(self->members[i]));
	pair_close(self->sides);
	EXPECT_EQ(0, system("rmmod skua_selftest"));
}

/* WRITEs of the device that is reset, and datagrams of the other to the group. It ends when the device is gone. */
static void *transfers_in_a_loop(void *data)
{
	FIXTURE_DATA(living) *self = data;
	struct side *a = &self->sides[0], *b = &self->sides[1];
	struct ibv_sge sge[2] = {
		{ (uintptr_t)a->mem, 4096, a->mr->lkey }, { (uintptr_t)b->mem + 8192, 64, b->mr->lkey },
	};
	struct ibv_send_wr *bad, write = {
		.sg_list = &sge[0], .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)b->mem, b->mr->rkey },
	}, datagram = {
		.sg_list = &sge[1], .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { self->ah, 0xffffff, 0x11111111 },
	};
	struct ibv_recv_wr *bad_recv, recv = { .sg_list = &sge[0], .num_sge = 1 };
	struct ibv_wc wc;
	int n = 0;

	while (n >= 0) {
		if (ibv_post_recv(self->members[0], &recv, &bad_recv) || ibv_post_send(a->qp, &write, &bad) ||
		    ibv_post_send(self->members[1], &datagram, &bad))
			return NULL;
		/* The WRITE, and the datagram that came. */
		for (int left = 2; n >= 0 && left; left -= n > 0)
			n = ibv_poll_cq(a->cq, 1, &wc);
		while (n > 0 && ibv_poll_cq(b->cq, 1, &wc) == 1)
			;
		__atomic_add_fetch(&self->done, n > 0, __ATOMIC_RELAXED);
	}
	return self;
}

TEST_F(living, is_reset_under_traffic)
{
	struct side sides[2];
	void *ended;

	ASSERT_EQ(0, write_file(HOLD, "workqueue"));
	ASSERT_EQ(0, pthread_create(&self->thread, NULL, transfers_in_a_loop, self));
	for (time_t end = time(NULL) + SECONDS; time(NULL) < end; usleep(10000))
		if (transferred("running") > 100 && __atomic_load_n(&self->done, __ATOMIC_RELAXED) > 100)
			break;
	EXPECT_LT(100, __atomic_load_n(&self->done, __ATOMIC_RELAXED));
	EXPECT_LT(100, transferred("running"));
	ASSERT_EQ(0, system(variant->reset));
	EXPECT_LT(100, transferred("released"));
	ASSERT_EQ(0, pthread_join(self->thread, &ended));
	EXPECT_NE(NULL, ended);
	ASSERT_EQ(0, pair_open(sides));
	check_that_it_works(_metadata, sides);
	pair_close(sides);
}

/* A RESET that the device refuses leaves driver and device where they were. */
TEST(a_reset_is_refused)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct side sides[2];
	int err = 0;

	ASSERT_EQ(0, pair_open(sides));
	/* The command that is refused may be somebody else's; then so is the next of ours. */
	for (int i = 0; i < 10 && !err; i++) {
		ASSERT_EQ(0, pair_reconnect(sides));
		ASSERT_EQ(0, system("skuactl inject skua0 command-error"));
		err = ibv_modify_qp(sides[0].qp, &attr, IBV_QP_STATE);
	}
	EXPECT_EQ(ENOMEM, err);
	EXPECT_EQ(IBV_QPS_RTS, qp_state(sides[0].qp));
	attr.qp_state = IBV_QPS_RTS;
	EXPECT_EQ(0, ibv_modify_qp(sides[0].qp, &attr, IBV_QP_STATE));
	EXPECT_TRUE(pair_transfer(sides));
	pair_close(sides);
}

TEST_F(removal, and_all_works_again)
{
	check_that_it_works(_metadata, self->sides);
}

TEST_HARNESS_MAIN
