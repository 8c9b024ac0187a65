// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What stock programs demand of a device, or rely on, with the program that does. Demands of the kernel's protocols are
 * in kernel/consumers.c. Other tests check that the numbers are true (test_limits); these check that they suffice.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "connection.h"

FIXTURE(consumers) {
	struct side s[2];
	struct ibv_device_attr attr;
};

FIXTURE_SETUP(consumers)
{
	ASSERT_EQ(0, pair_open(self->s));
	ASSERT_EQ(0, ibv_query_device(self->s[0].context, &self->attr));
}

FIXTURE_TEARDOWN(consumers)
{
	pair_close(self->s);
}

/* A file of the device in sysfs, without the end of its line; empty if there is none. */
static const char *said(const struct side *side, const char *file)
{
	static char text[128];
	char path[256];
	ssize_t n = 0;
	int fd;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/%s", ibv_get_device_name(side->context->device), file);
	fd = open(path, O_RDONLY);
	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return text;
}

/* UCX posts 4,096 receives of UD, and the NFS server 3,600; SMC creates CQs of 32,766, Ceph of 30,000. */
TEST_F(consumers, large_queues)
{
	struct ibv_qp_init_attr init = {
		.send_cq = self->s[0].cq, .recv_cq = self->s[0].cq, .qp_type = IBV_QPT_RC,
		.cap = { 8192, 8192, 6, 5, 0 },
	};
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = 4096, .max_sge = 5 } };
	struct ibv_cq *cq = ibv_create_cq(self->s[0].context, 65535, NULL, NULL, 0);
	struct ibv_srq *srq = ibv_create_srq(self->s[0].pd, &srq_init);
	struct ibv_qp *qp = ibv_create_qp(self->s[0].pd, &init);

	EXPECT_GE(self->attr.max_qp_wr, 8192);
	EXPECT_GE(self->attr.max_cqe, 65536);
	EXPECT_GE(self->attr.max_srq_wr, 4096);
	EXPECT_GE(self->attr.max_srq_sge, 5);
	EXPECT_GE(self->attr.max_srq, self->s[0].context->num_comp_vectors);
	ASSERT_NE(NULL, cq);
	ASSERT_NE(NULL, srq);
	ASSERT_NE(NULL, qp);
	EXPECT_GE(cq->cqe, 65535);
	EXPECT_GE(srq_init.attr.max_wr, 4096);
	EXPECT_GE(init.cap.max_send_wr, 8192);
	EXPECT_GE(init.cap.max_recv_wr, 8192);
	EXPECT_EQ(0, ibv_destroy_qp(qp));
	EXPECT_EQ(0, ibv_destroy_srq(srq));
	EXPECT_EQ(0, ibv_destroy_cq(cq));
}

/* nvmet sizes its QPs by the larger of max_sge_rd and max_sge; above 16, the NFS client registers more. */
TEST_F(consumers, sges)
{
	EXPECT_EQ(30, self->attr.max_sge);
	EXPECT_EQ(16, self->attr.max_sge_rd);
}

/* The CM's requests have 8 bits for these, and 9p asks for none. */
TEST_F(consumers, reads_outstanding)
{
	static const uint8_t depths[] = { 0, 1, 32 };

	EXPECT_GE(self->attr.max_qp_rd_atom, 32);
	EXPECT_GE(self->attr.max_qp_init_rd_atom, 32);
	for (unsigned int i = 0; i < sizeof(depths); i++) {
		struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };

		for (int k = 0; k < 2; k++) {
			struct side *s = &self->s[k], *peer = &self->s[!k];

			ASSERT_EQ(0, ibv_modify_qp(s->qp, &reset, IBV_QP_STATE));
			ASSERT_EQ(0, qp_to_init(s->qp, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ));
			ASSERT_EQ(0, qp_to_rtr_deep(s->qp, s, peer, peer->qp->qp_num, depths[i]));
			ASSERT_EQ(0, qp_to_rts_deep(s->qp, 10, 3, 3, depths[i]));
		}
		GOOD(IBV_WR_RDMA_WRITE, 100);
		if (depths[i])
			GOOD(IBV_WR_RDMA_READ, 100);
	}
}

/* UCX wants atomics of the HCA; SPDK takes vendor 0 and 0xffffff for rdma_rxe. */
TEST_F(consumers, who_it_is)
{
	EXPECT_EQ(IBV_ATOMIC_HCA, self->attr.atomic_cap);
	EXPECT_NE(0, self->attr.vendor_id);
	EXPECT_NE(0xffffff, self->attr.vendor_id);
	EXPECT_EQ(IBV_NODE_CA, self->s[0].context->device->node_type);
	EXPECT_GT(self->attr.max_mr_size, 1ull << 30);
}

/* The protocols of the kernel find their PD by the GUID. */
TEST_F(consumers, guids_differ)
{
	EXPECT_NE(0, ibv_get_device_guid(self->s[0].context->device));
	EXPECT_NE(ibv_get_device_guid(self->s[0].context->device), ibv_get_device_guid(self->s[1].context->device));
}

/* SRP, SMC, and by default Ceph and libfabric's datagrams use GID 0. */
TEST_F(consumers, gid_0_is_filled)
{
	static const union ibv_gid none;

	for (int i = 0; i < 2; i++) {
		union ibv_gid gid;

		ASSERT_EQ(0, ibv_query_gid(self->s[i].context, 1, 0, &gid));
		EXPECT_NE(0, memcmp(&gid, &none, sizeof(gid)));
	}
}

/* libfabric finds out by trying; UCX asks for 64, and perftest for 236. */
TEST_F(consumers, inline_data)
{
	struct ibv_qp_init_attr init = {
		.send_cq = self->s[0].cq, .recv_cq = self->s[0].cq, .qp_type = IBV_QPT_RC, .cap = { 384, 384, 4, 4, 256 },
	};
	struct ibv_qp *qp = ibv_create_qp(self->s[0].pd, &init);

	ASSERT_NE(NULL, qp);
	EXPECT_GE(init.cap.max_inline_data, 256);
	EXPECT_EQ(0, ibv_destroy_qp(qp));
}

/* NFS, SMB and 9p connect so: a packet that finds receives posted must not be told to wait. */
TEST_F(consumers, no_rnr_while_receives_are_posted)
{
	enum { ROUNDS = 3000 };
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	int64_t naks = side_counter(&self->s[1], "rnr_nak_sent");
	struct side *a = &self->s[0], *b = &self->s[1];
	struct ibv_sge sge;
	struct ibv_send_wr wr = conn_wr(&sge, self->s, IBV_WR_SEND, 1000);
	struct ibv_wc wc;

	for (int i = 0; i < 2; i++)
		ASSERT_EQ(0, ibv_modify_qp(self->s[i].qp, &reset, IBV_QP_STATE));
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, qp_to_init(self->s[i].qp, 0));
		ASSERT_EQ(0, qp_to_rtr(self->s[i].qp, &self->s[i], &self->s[!i], self->s[!i].qp->qp_num));
		ASSERT_EQ(0, qp_to_rts(self->s[i].qp, 14, 7, 0));
	}
	for (int i = 0; i < PAIR_WRS; i++)
		ASSERT_EQ(0, conn_recv(b, 1000, i));
	/* As fast as receives are posted, and never faster. */
	for (int i = 0; i < PAIR_WRS; i++)
		ASSERT_EQ(0, side_post(a, &wr));
	for (int i = 0; i < ROUNDS; i++) {
		ASSERT_TRUE(side_wait(b, &wc, 5));
		ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
		ASSERT_EQ(0, conn_recv(b, 1000, i));
		ASSERT_TRUE(side_wait(a, &wc, 5));
		ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
		ASSERT_EQ(0, side_post(a, &wr));
	}
	EXPECT_EQ(naks, side_counter(b, "rnr_nak_sent"));
}

/* UCX flushes so, and srpt ends so. */
TEST_F(consumers, a_write_of_nothing)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED };

	WELL(side_sends(&self->s[0], &wr));
	GOOD(IBV_WR_RDMA_WRITE, 100);
}

/* What is posted in ERR is flushed: programs wait for that when they drain. */
TEST_F(consumers, posting_in_err_flushes)
{
	struct ibv_qp_attr err = { .qp_state = IBV_QPS_ERR };
	struct ibv_sge sge;
	struct ibv_send_wr wr = conn_wr(&sge, self->s, IBV_WR_SEND, 100);
	struct ibv_wc wc;

	ASSERT_EQ(0, ibv_modify_qp(self->s[0].qp, &err, IBV_QP_STATE));
	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(0, side_post(&self->s[0], &wr));
		ASSERT_EQ(0, conn_recv(&self->s[0], 100, 5));
		for (int k = 0; k < 2; k++) {
			ASSERT_TRUE(side_wait(&self->s[0], &wc, 5));
			ASSERT_EQ(IBV_WC_WR_FLUSH_ERR, wc.status);
		}
	}
}

/* NCCL, SPDK and perftest set RELAXED_ORDERING by default; NCCL also REMOTE_ATOMIC. */
TEST_F(consumers, optional_access)
{
	static const int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			       IBV_ACCESS_REMOTE_ATOMIC;
	static const int optional[] = { IBV_ACCESS_RELAXED_ORDERING, 1 << 21, 1 << 29, IBV_ACCESS_OPTIONAL_RANGE };

	for (unsigned int i = 0; i < sizeof(optional) / sizeof(optional[0]); i++) {
		struct ibv_mr *mr = ibv_reg_mr(self->s[0].pd, self->s[0].mem, 4096, all | optional[i]);

		ASSERT_NE(NULL, mr);
		ASSERT_EQ(0, ibv_dereg_mr(mr));
	}
}

/* So programs find out whether the verb is there: UCX, NCCL and libfabric take EBADF alone for yes. */
TEST_F(consumers, the_probe_for_dma_bufs)
{
	static const struct { uint64_t offset, iova; size_t length; int access; } asked[] = {
		{ 0, 0, 0, 0 }, { 0, 0, 4096, 0 }, { 1ull << 60, 0, 1, 0 }, { 0, 0, 1, IBV_ACCESS_LOCAL_WRITE },
		/* All rights that the kernel lets programs ask for here. */
		{ 0, 0, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			      IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_RELAXED_ORDERING },
	};

	for (unsigned int i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		errno = 0;
		EXPECT_EQ(NULL, ibv_reg_dmabuf_mr(self->s[0].pd, asked[i].offset, asked[i].length, asked[i].iova, -1,
						  asked[i].access));
		EXPECT_EQ(EBADF, errno);
	}
}

TEST_F(consumers, query_qp_tells_the_true_caps)
{
	struct ibv_qp_init_attr init = {
		.send_cq = self->s[0].cq, .recv_cq = self->s[0].cq, .qp_type = IBV_QPT_RC, .cap = { 33, 17, 3, 2, 44 },
	}, queried = {};
	struct ibv_qp *qp = ibv_create_qp(self->s[0].pd, &init);
	struct ibv_qp_attr attr;

	ASSERT_NE(NULL, qp);
	ASSERT_EQ(0, ibv_query_qp(qp, &attr, IBV_QP_CAP, &queried));
	EXPECT_EQ(0, memcmp(&init.cap, &attr.cap, sizeof(attr.cap)));
	EXPECT_EQ(0, memcmp(&init.cap, &queried.cap, sizeof(queried.cap)));
	EXPECT_GE(attr.cap.max_send_wr, 33);
	EXPECT_GE(attr.cap.max_recv_wr, 17);
	EXPECT_GE(attr.cap.max_inline_data, 44);
	EXPECT_EQ(0, ibv_destroy_qp(qp));
}

/* An address of the same host leads to its own NIC. */
TEST_F(consumers, a_nic_reaches_itself)
{
	struct side *a = &self->s[0], other = *a, same[2];
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct ibv_qp *own = a->qp;

	other.qp = side_create_qp(a);
	ASSERT_NE(NULL, other.qp);
	ASSERT_EQ(0, ibv_modify_qp(own, &reset, IBV_QP_STATE));
	ASSERT_EQ(0, qp_to_init(own, IBV_ACCESS_REMOTE_WRITE));
	ASSERT_EQ(0, qp_to_init(other.qp, IBV_ACCESS_REMOTE_WRITE));
	ASSERT_EQ(0, qp_to_rtr(own, a, a, other.qp->qp_num));
	ASSERT_EQ(0, qp_to_rtr(other.qp, a, a, own->qp_num));
	ASSERT_EQ(0, qp_to_rts(own, 10, 3, 3));
	ASSERT_EQ(0, qp_to_rts(other.qp, 10, 3, 3));
	same[0] = *a;
	same[1] = other;
	WELL(pair_message(same, IBV_WR_RDMA_WRITE, a->mem, a->mem + HALF, 5000));
	ASSERT_EQ(0, ibv_destroy_qp(other.qp));
}

/* node_exporter fails as a whole if it cannot read one of these. */
TEST_F(consumers, what_node_exporter_reads)
{
	float gigabits;
	int lanes;

	EXPECT_NE('\0', *said(&self->s[0], "fw_ver"));
	EXPECT_STREQ("Ethernet", said(&self->s[0], "ports/1/link_layer"));
	EXPECT_STREQ("4: ACTIVE", said(&self->s[0], "ports/1/state"));
	EXPECT_STREQ("5: LinkUp", said(&self->s[0], "ports/1/phys_state"));
	ASSERT_EQ(2, sscanf(said(&self->s[0], "ports/1/rate"), "%f Gb/sec (%dX", &gigabits, &lanes));
	EXPECT_GT(gigabits, 0);
	EXPECT_GT(lanes, 0);
}

/* It knows hardware counters by these names only. */
TEST_F(consumers, counters_by_their_usual_names)
{
	static const char *const names[] = {
		"out_of_sequence", "packet_seq_err", "rnr_nak_retry_err", "local_ack_timeout_err", "duplicate_request",
		"np_cnp_sent", "rp_cnp_handled", "rx_icrc_encapsulated",
	};

	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		EXPECT_LE(0, side_counter(&self->s[0], names[i])) {
			TH_LOG("no %s", names[i]);
		}
	}
}

/* rdmamap, of Kubernetes, and NCCL: the parent is the PCI device, and each GID has its type and interface. */
TEST_F(consumers, what_programs_find_in_sysfs)
{
	EXPECT_NE('\0', *said(&self->s[0], "device/vendor"));
	EXPECT_NE('\0', *said(&self->s[0], "ports/1/gid_attrs/types/0"));
	EXPECT_NE('\0', *said(&self->s[0], "ports/1/gid_attrs/ndevs/0"));
}

TEST_HARNESS_MAIN
