// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Each limit that a NIC reports: at the limit it works, and is used; one above fails cleanly.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pair.h"
#include "raw.h"

#define MAX_INLINE	512	/* what every device has (LIM-4) */

FIXTURE(limits) {
	struct side s[2];
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
};

FIXTURE_SETUP(limits)
{
	ASSERT_EQ(0, pair_open(self->s));
	ASSERT_EQ(0, ibv_query_device(self->s[0].context, &self->attr));
	ASSERT_EQ(0, ibv_query_port(self->s[0].context, 1, &self->port));
}

FIXTURE_TEARDOWN(limits)
{
	pair_close(self->s);
}

TEST_F(limits, are_plausible)
{
	struct ibv_device_attr *attr = &self->attr;

	EXPECT_GE(attr->max_qp, 65536);
	EXPECT_GE(attr->max_cq, 1000);
	EXPECT_GE(attr->max_mr, 1000000);
	EXPECT_GE(attr->max_pd, 1000);
	EXPECT_GE(attr->max_sge, 30);
	EXPECT_EQ(16, attr->max_sge_rd);	/* more would make regions of the NFS client small */
	EXPECT_GE(attr->max_mr_size, 1ull << 30);
	EXPECT_GE(self->port.max_msg_sz, 1u << 30);
	EXPECT_EQ(12, attr->local_ca_ack_delay);	/* ROC-9 */
}

/* Queues */

static struct ibv_qp *make_qp(struct side *s, struct ibv_qp_cap *cap)
{
	struct ibv_qp_init_attr init = {
		.send_cq = s->cq, .recv_cq = s->cq, .qp_type = IBV_QPT_RC, .cap = *cap,
	};
	struct ibv_qp *qp;

	errno = 0;
	qp = ibv_create_qp(s->pd, &init);
	*cap = init.cap;
	return qp;
}

/* One limit at its value, and what the QP then says it can is not above what the NIC says it can. */
#define QP_LIMIT(field, limit) do {					\
	struct ibv_qp_cap cap = { 1, 1, 1, 1, 0 };			\
	struct ibv_qp *qp;						\
									\
	cap.field = limit;						\
	qp = make_qp(&self->s[0], &cap);				\
	ASSERT_NE(NULL, qp) {						\
		TH_LOG("%s %u: %s", #field, cap.field, strerror(errno)); \
	}								\
	EXPECT_EQ(limit, cap.field);					\
	EXPECT_GE(self->attr.max_qp_wr, cap.max_send_wr);		\
	EXPECT_GE(self->attr.max_qp_wr, cap.max_recv_wr);		\
	EXPECT_GE(self->attr.max_sge, cap.max_send_sge);		\
	EXPECT_GE(self->attr.max_sge, cap.max_recv_sge);		\
	EXPECT_GE(MAX_INLINE, cap.max_inline_data);			\
	ASSERT_EQ(0, ibv_destroy_qp(qp));				\
	cap = (struct ibv_qp_cap){ 1, 1, 1, 1, 0 };			\
	cap.field = (limit) + 1;					\
	ASSERT_EQ(NULL, make_qp(&self->s[0], &cap));			\
	ASSERT_EQ(EINVAL, errno);					\
	ASSERT_TRUE(pair_transfer(self->s));				\
} while (0)

TEST_F(limits, max_qp_wr_send) { QP_LIMIT(max_send_wr, self->attr.max_qp_wr); }
TEST_F(limits, max_qp_wr_receive) { QP_LIMIT(max_recv_wr, self->attr.max_qp_wr); }
TEST_F(limits, max_sge_send) { QP_LIMIT(max_send_sge, self->attr.max_sge); }
TEST_F(limits, max_sge_receive) { QP_LIMIT(max_recv_sge, self->attr.max_sge); }
TEST_F(limits, max_inline) { QP_LIMIT(max_inline_data, MAX_INLINE); }

/* What rounding adds to the caps of a QP of any shape stays below the limits, too. */
TEST_F(limits, caps_of_a_qp_are_within_those_of_the_nic)
{
	const unsigned int wr = self->attr.max_qp_wr;

	for (unsigned int sge = 1; sge <= self->attr.max_sge; sge++) {
		struct ibv_qp_cap cap = { wr - 1, wr - 1, sge, sge, sge * 16 };
		struct ibv_qp *qp = make_qp(&self->s[0], &cap);

		ASSERT_NE(NULL, qp);
		EXPECT_TRUE(cap.max_send_wr >= wr - 1 && cap.max_send_wr <= wr);
		EXPECT_TRUE(cap.max_recv_wr >= wr - 1 && cap.max_recv_wr <= wr);
		EXPECT_TRUE(cap.max_send_sge >= sge && cap.max_send_sge <= self->attr.max_sge);
		EXPECT_TRUE(cap.max_recv_sge >= sge && cap.max_recv_sge <= self->attr.max_sge);
		ASSERT_EQ(0, ibv_destroy_qp(qp));
	}
}

/* Replace the pair's QPs by some with these caps, connected, and its CQs by some that hold all. */
static int with_caps(struct side s[2], const struct ibv_qp_cap *cap)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct ibv_qp_cap given = *cap;

		ibv_destroy_qp(s[i].qp);
		ibv_destroy_cq(s[i].cq);
		s[i].qp = NULL;
		s[i].cq = ibv_create_cq(s[i].context, 2 * (cap->max_send_wr + cap->max_recv_wr) + 64,
					NULL, NULL, 0);
		if (!s[i].cq)
			return -errno;
		s[i].qp = make_qp(&s[i], &given);
		if (!s[i].qp)
			return -errno;
	}
	return pair_reconnect(s);
}

static void fill(uint8_t *bytes, size_t size, unsigned int seed)
{
	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(seed + i * 7 + (i >> 8) * 3);
}

/* All WRs that a QP may have, each with as many SGEs as it may have; then one more does not fit. */
TEST_F(limits, all_limits_at_once)
{
	const uint32_t wrs = self->attr.max_qp_wr, sges = self->attr.max_sge;
	struct side *a = &self->s[0], *b = &self->s[1];
	struct ibv_qp_cap cap = { wrs, wrs, sges, sges, MAX_INLINE };
	struct ibv_sge sge[sges], recv_sge[sges];
	struct ibv_send_wr *bad, wr = { .sg_list = sge, .num_sge = sges, .opcode = IBV_WR_SEND };
	struct ibv_recv_wr *bad_recv, recv = { .sg_list = recv_sge, .num_sge = sges };
	struct ibv_wc wc;

	ASSERT_EQ(0, with_caps(self->s, &cap));
	fill(a->mem, wrs + sges, 1);
	for (uint32_t i = 0; i < wrs; i++) {
		recv.wr_id = i;
		for (uint32_t j = 0; j < sges; j++)
			recv_sge[j] = (struct ibv_sge){ (uintptr_t)b->mem + (i * sges + j), 1,
							b->mr->lkey };
		ASSERT_EQ(0, ibv_post_recv(b->qp, &recv, &bad_recv));
	}
	ASSERT_EQ(ENOMEM, ibv_post_recv(b->qp, &recv, &bad_recv));
	for (uint32_t i = 0; i < wrs; i++) {
		wr.wr_id = i;
		wr.send_flags = i == wrs - 1 ? IBV_SEND_SIGNALED : 0;
		for (uint32_t j = 0; j < sges; j++)
			sge[j] = (struct ibv_sge){ (uintptr_t)a->mem + i + j, 1, a->mr->lkey };
		ASSERT_EQ(0, ibv_post_send(a->qp, &wr, &bad));
	}
	ASSERT_TRUE(side_wait(a, &wc, 20));
	ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
	ASSERT_EQ(wrs - 1, wc.wr_id);
	for (uint32_t i = 0; i < wrs; i++) {
		ASSERT_TRUE(side_wait(b, &wc, 5));
		ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
		ASSERT_EQ(i, wc.wr_id);
		ASSERT_EQ(sges, wc.byte_len);
		ASSERT_EQ(0, memcmp(b->mem + (size_t)i * sges, a->mem + i, sges));
	}
	ASSERT_TRUE(pair_transfer(self->s));
}

/* A send queue that nothing takes from holds as many as it says, whatever they are made of. */
TEST_F(limits, a_send_queue_holds_all_that_it_says)
{
	struct side *a = &self->s[0];
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	static struct ibv_sge sge[30];

	for (unsigned int n = 1; n <= 30; n += 29) {
		struct ibv_qp_cap cap = { 100, 1, n, 1, n * 16 };
		struct ibv_send_wr *bad, wr = {
			.sg_list = sge, .num_sge = n, .opcode = IBV_WR_RDMA_WRITE,
			.wr.rdma = { (uintptr_t)self->s[1].mem, self->s[1].mr->rkey },
		};
		struct ibv_qp_init_attr init;
		struct ibv_wc wc;

		ASSERT_EQ(0, with_caps(self->s, &cap));
		ASSERT_EQ(0, ibv_query_qp(a->qp, &attr, IBV_QP_CAP, &init));
		ASSERT_GE(init.cap.max_send_wr, 100);
		ASSERT_EQ(attr.cap.max_send_wr, init.cap.max_send_wr);
		ASSERT_EQ(0, ibv_modify_qp(self->s[1].qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_RESET },
					   IBV_QP_STATE));
		/* The peer does not answer, so that nothing completes for a while. */
		for (uint32_t i = 0; i < init.cap.max_send_wr; i++)
			ASSERT_EQ(0, ibv_post_send(a->qp, &wr, &bad));
		ASSERT_TRUE(side_wait(a, &wc, 20));
		ASSERT_EQ(IBV_WC_RETRY_EXC_ERR, wc.status);
		for (uint32_t i = 1; i < init.cap.max_send_wr; i++) {
			ASSERT_TRUE(side_wait(a, &wc, 5));
			ASSERT_EQ(IBV_WC_WR_FLUSH_ERR, wc.status);
		}
	}
	ASSERT_EQ(0, pair_reconnect(self->s));
	ASSERT_TRUE(pair_transfer(self->s));
}

TEST_F(limits, inline_to_the_last_byte)
{
	struct side *a = &self->s[0], *b = &self->s[1];
	struct ibv_qp_cap cap = { 16, 16, 30, 1, MAX_INLINE };
	static uint8_t bytes[MAX_INLINE + 1];
	struct ibv_sge sge[30];
	struct ibv_send_wr *bad, wr = {
		.sg_list = sge, .num_sge = 30, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE,
		.wr.rdma = { (uintptr_t)b->mem, b->mr->rkey },
	};
	struct ibv_wc wc;

	ASSERT_EQ(0, with_caps(self->s, &cap));
	for (unsigned int round = 0; round < 100; round++) {
		fill(bytes, sizeof(bytes), round);
		memset(b->mem, 0, MAX_INLINE + 1);
		for (unsigned int i = 0; i < 30; i++)
			sge[i] = (struct ibv_sge){ (uintptr_t)bytes + i * 17, i < 29 ? 17 : 19, 0 };
		ASSERT_EQ(0, ibv_post_send(a->qp, &wr, &bad));
		ASSERT_TRUE(side_wait(a, &wc, 5));
		ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
		ASSERT_EQ(0, memcmp(b->mem, bytes, MAX_INLINE));
		ASSERT_EQ(0, b->mem[MAX_INLINE]);
	}
	sge[29].length++;
	ASSERT_EQ(EINVAL, ibv_post_send(a->qp, &wr, &bad));
	ASSERT_TRUE(pair_transfer(self->s));
}

TEST_F(limits, max_cqe)
{
	struct side pair[2] = { self->s[0], self->s[1] }, *s = &pair[0];

	s->cq = ibv_create_cq(s->context, self->attr.max_cqe, NULL, NULL, 0);
	ASSERT_NE(NULL, s->cq);
	ASSERT_EQ(s->cq->cqe, self->attr.max_cqe);
	s->qp = side_create_qp(s);
	ASSERT_NE(NULL, s->qp);
	ASSERT_EQ(0, pair_reconnect(pair));
	/* Some pages of the ring. */
	for (unsigned int i = 0; i < 200; i++)
		ASSERT_TRUE(pair_transfer(pair));
	ASSERT_EQ(0, ibv_destroy_qp(s->qp));
	ASSERT_EQ(0, ibv_destroy_cq(s->cq));
	ASSERT_EQ(NULL, ibv_create_cq(s->context, self->attr.max_cqe + 1, NULL, NULL, 0));
	ASSERT_EQ(EINVAL, errno);
	ASSERT_EQ(0, pair_reconnect(self->s));
	ASSERT_TRUE(pair_transfer(self->s));
}

/* READs outstanding: as many as the limit says are served, in order; more cannot be agreed on. */
TEST_F(limits, max_rd_atomic)
{
	struct side *a = &self->s[0], *b = &self->s[1];
	const unsigned int max = self->attr.max_qp_rd_atom, n = 4 * max;
	struct ibv_qp_cap cap = { n, 16, 1, 1, 0 };
	struct ibv_sge sge;
	struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ };
	struct ibv_wc wc;

	ASSERT_EQ(max, self->attr.max_qp_init_rd_atom);
	ASSERT_EQ(0, with_caps(self->s, &cap));
	for (unsigned int i = 0; i < 2; i++) {
		ASSERT_EQ(0, ibv_modify_qp(self->s[i].qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_RESET },
					   IBV_QP_STATE));
		ASSERT_EQ(0, qp_to_init(self->s[i].qp, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE));
		ASSERT_EQ(0, qp_to_rtr_deep(self->s[i].qp, &self->s[i], &self->s[!i],
					    self->s[!i].qp->qp_num, max));
		ASSERT_EQ(0, qp_to_rts_deep(self->s[i].qp, 10, 3, 3, max));
	}
	fill(b->mem, n * 100, 5);
	for (unsigned int i = 0; i < n; i++) {
		sge = (struct ibv_sge){ (uintptr_t)a->mem + i * 100, 100, a->mr->lkey };
		wr.wr.rdma.remote_addr = (uintptr_t)b->mem + i * 100;
		wr.wr.rdma.rkey = b->mr->rkey;
		wr.send_flags = i == n - 1 ? IBV_SEND_SIGNALED : 0;
		ASSERT_EQ(0, ibv_post_send(a->qp, &wr, &bad));
	}
	ASSERT_TRUE(side_wait(a, &wc, 10));
	ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
	ASSERT_EQ(0, memcmp(a->mem, b->mem, n * 100));
	ASSERT_TRUE(pair_transfer(self->s));
}

/* Numbers of objects: raw commands, since libibverbs would need memory for each */

#define RAW_MEM (8 << 20)	/* the ring of all; behind it, a record for each */

static uint8_t *raw_mem(void)
{
	return mmap(NULL, RAW_MEM, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

/* Of what a NIC has, the fixture and the NIC's Ethernet function have some. */
#define OTHERS 65

/* A loaded machine takes its time for some 100,000 commands. */
#define COUNT_SECONDS 400

enum kind { PD, CQ, QP, MR, MW };

/* The other side writes by a window to memory of this one. NULL, or what went wrong. */
static const char *use_a_window(struct side s[2])
{
	struct side *a = &s[0], *b = &s[1];
	struct ibv_mr *mr = ibv_reg_mr(a->pd, a->mem, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = ibv_alloc_mw(a->pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = { mr, (uintptr_t)a->mem, 4096, IBV_ACCESS_REMOTE_WRITE },
	};
	struct ibv_sge sge = { (uintptr_t)b->mem, 100, b->mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma.remote_addr = (uintptr_t)a->mem,
	};
	struct ibv_wc wc;
	bool well;

	if (!mr || !mw)
		return "no window, or no MR of it";
	memset(a->mem, 0, 100);
	fill(b->mem, 100, mw->rkey);
	well = !ibv_bind_mw(a->qp, mw, &bind) && side_wait(a, &wc, 20) && wc.status == IBV_WC_SUCCESS;
	wr.wr.rdma.rkey = mw->rkey;
	well = well && !side_sends(b, &wr) && !memcmp(a->mem, b->mem, 100);
	if (ibv_dealloc_mw(mw) || ibv_dereg_mr(mr))
		return "the window stays, or its MR";
	return well ? NULL : "no WRITE by the window";
}

/* A transfer by one more object of a kind. NULL, or what went wrong. */
static const char *use_one_more(struct side s[2], enum kind kind)
{
	struct side pair[2] = { s[0], s[1] }, *a = &pair[0];
	bool well;

	if (kind == MW)
		return use_a_window(s);
	if (kind == PD && !(a->pd = ibv_alloc_pd(a->context)))
		return "no PD";
	if (kind == CQ && !(a->cq = ibv_create_cq(a->context, 4 * PAIR_WRS, NULL, NULL, 0)))
		return "no CQ";
	if ((kind == PD || kind == MR) &&
	    !(a->mr = ibv_reg_mr(a->pd, a->mem, PAIR_MEM, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)))
		return "no MR";
	if (kind != MR && !(a->qp = side_create_qp(a)))
		return "no QP";
	well = !pair_reconnect(pair) && pair_transfer(pair);
	if (kind != MR && ibv_destroy_qp(a->qp))
		return "the QP stays";
	if ((kind == PD || kind == MR) && ibv_dereg_mr(a->mr))
		return "the MR stays";
	if (kind == CQ && ibv_destroy_cq(a->cq))
		return "the CQ stays";
	if (kind == PD && ibv_dealloc_pd(a->pd))
		return "the PD stays";
	if (!well)
		return "no transfer";
	return pair_reconnect(s) ? "the pair cannot be connected again" : NULL;
}

/* What an eighth of the objects may take longer when the others are there: less than a search through all makes it. */
#define SLOWER	6

/*
 * Create until it is refused, which is by ENOMEM and not before the limit. The last eighth is made about as fast as
 * the first. Then an object is used in the place of the first, of one in the middle and of the last.
 */
#define COUNT(limit, kind, create, destroy) do {			\
	uint32_t *handles = calloc((size_t)(limit) + 1, sizeof(*handles)); \
	int64_t begin = now_ns(), first = 0, last = 0;			\
	uint32_t n;							\
	int err = 0;							\
									\
	ASSERT_NE(NULL, handles);					\
	for (n = 0; n <= (limit) && !err; n += !err) {			\
		uint32_t i = n, *handle __attribute__((unused)) = &handles[i]; \
									\
		if (n == (limit) / 8)					\
			first = now_ns() - begin;			\
		if (n == (limit) - (limit) / 8)				\
			last = now_ns();				\
		err = create;						\
	}								\
	last = now_ns() - last;						\
	EXPECT_GE(SLOWER * first, last) {				\
		TH_LOG("%u of %u took %.3f s, the last %.3f s", (limit) / 8, limit, first / 1e9, last / 1e9); \
	}								\
	EXPECT_EQ(ENOMEM, err);						\
	EXPECT_TRUE(n <= (limit) && n + OTHERS >= (limit)) {		\
		TH_LOG("%u of %u", n, limit);				\
	}								\
	ASSERT_TRUE(pair_transfer(self->s));				\
	for (uint32_t j = 0; j < 3; j++) {				\
		uint32_t i = j * (n - 1) / 2, *handle = &handles[i];	\
									\
		{							\
			uint32_t handle = handles[i];			\
									\
			ASSERT_EQ(0, destroy);				\
		}							\
		WELL(use_one_more(self->s, kind));			\
		ASSERT_EQ(0, create);					\
	}								\
	while (n--) {							\
		uint32_t handle = handles[n];				\
									\
		ASSERT_EQ(0, destroy);					\
	}								\
	free(handles);							\
	ASSERT_TRUE(pair_transfer(self->s));				\
} while (0)

TEST_F_TIMEOUT(limits, max_pd, COUNT_SECONDS)
{
	int fd = raw_open("skua_0", NULL);

	ASSERT_GE(fd, 0);
	COUNT(self->attr.max_pd, PD, raw_alloc_pd(fd, handle), raw_dealloc_pd(fd, handle));
	close(fd);
}

TEST_F_TIMEOUT(limits, max_cq, COUNT_SECONDS)
{
	int fd = raw_open("skua_0", NULL);
	uint8_t *mem = raw_mem();
	struct skua_create_cq_req req = { .buf_addr = (uintptr_t)mem };

	ASSERT_GE(fd, 0);
	COUNT(self->attr.max_cq, CQ,
	      (req.dbr_addr = (uintptr_t)mem + 4096 + i * 64,
	       raw_create_cq(fd, 1, &req, sizeof(req), handle)),
	      raw_destroy_cq(fd, handle));
	close(fd);
	ASSERT_EQ(0, munmap(mem, RAW_MEM));
}

TEST_F_TIMEOUT(limits, max_qp, COUNT_SECONDS)
{
	int fd = raw_open("skua_0", NULL);
	uint8_t *mem = raw_mem();
	struct skua_create_cq_req cq_req = { (uintptr_t)mem, (uintptr_t)mem + 64 };
	struct skua_create_qp_req req = { .sq_addr = (uintptr_t)mem, .flags = SKUA_CREATE_QP_NO_RQ };
	struct raw_qp qp = { .cmd = { .qp_type = IBV_QPT_RC } };

	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, raw_alloc_pd(fd, &qp.pd));
	ASSERT_EQ(0, raw_create_cq(fd, 1, &cq_req, sizeof(cq_req), &qp.send_cq));
	qp.recv_cq = qp.send_cq;
	COUNT(self->attr.max_qp, QP,
	      (req.sq_dbr_addr = (uintptr_t)mem + 4096 + i * 64,
	       raw_create_qp(fd, &qp, &req, sizeof(req), handle)),
	      raw_destroy_qp(fd, handle));
	close(fd);
	ASSERT_EQ(0, munmap(mem, RAW_MEM));
}

TEST_F_TIMEOUT(limits, max_mr, COUNT_SECONDS)
{
	int fd = raw_open("skua_0", NULL);
	uint8_t *mem = raw_mem();
	uint32_t pd;

	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, raw_alloc_pd(fd, &pd));
	COUNT(self->attr.max_mr, MR, raw_reg_mr(fd, pd, mem, 4096, IBV_ACCESS_LOCAL_WRITE, handle),
	      raw_dereg_mr(fd, handle));
	close(fd);
	ASSERT_EQ(0, munmap(mem, RAW_MEM));
}

TEST_F_TIMEOUT(limits, max_mw, COUNT_SECONDS)
{
	int fd = raw_open("skua_0", NULL);
	uint32_t pd;

	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, raw_alloc_pd(fd, &pd));
	COUNT(self->attr.max_mw, MW, raw_alloc_mw(fd, pd, IBV_MW_TYPE_1, NULL, 0, handle), raw_dealloc_mw(fd, handle));
	close(fd);
}

/* A message to a QP that receives by an SRQ. NULL, or what went wrong. */
static const char *receive_by(struct side s[2], struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = s[0].cq, .recv_cq = s[0].cq, .srq = srq, .qp_type = IBV_QPT_RC, .cap = { 1, 0, 1, 0, 0 },
	};
	struct side pair[2] = { s[0], s[1] };
	struct ibv_sge from = { (uintptr_t)s[1].mem, 100, s[1].mr->lkey }, to = { (uintptr_t)s[0].mem, 100, s[0].mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_recv_wr *bad_recv, recv = { .sg_list = &to, .num_sge = 1 };
	struct ibv_wc sent, received;
	bool well;

	pair[0].qp = ibv_create_qp(s[0].pd, &init);
	if (!pair[0].qp)
		return "no QP";
	memset(s[0].mem, 0, 100);
	fill(s[1].mem, 100, pair[0].qp->qp_num);
	well = !pair_reconnect(pair) && !ibv_post_srq_recv(srq, &recv, &bad_recv) &&
	       !ibv_post_send(s[1].qp, &wr, &bad) && side_wait(&s[1], &sent, 20) && side_wait(&s[0], &received, 20) &&
	       sent.status == IBV_WC_SUCCESS && received.status == IBV_WC_SUCCESS && received.byte_len == 100 &&
	       !memcmp(s[0].mem, s[1].mem, 100);
	if (ibv_destroy_qp(pair[0].qp))
		return "the QP stays";
	return well ? NULL : "no message";
}

/* SRQs, of which libibverbs can have all. */
TEST_F_TIMEOUT(limits, max_srq, COUNT_SECONDS)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 1, .max_sge = 1 } };
	const uint32_t max = (uint32_t)self->attr.max_srq;
	struct ibv_srq **srqs = calloc(max + 1, sizeof(*srqs));
	uint32_t n = 0;

	ASSERT_LE(16384, max);
	errno = 0;
	while (n <= max && (srqs[n] = ibv_create_srq(self->s[0].pd, &init)))
		n++;
	EXPECT_EQ(ENOMEM, errno);
	ASSERT_EQ(max, n);
	for (uint32_t j = 0; j < 3; j++)
		WELL(receive_by(self->s, srqs[j * (n - 1) / 2]));
	while (n--)
		ASSERT_EQ(0, ibv_destroy_srq(srqs[n]));
	free(srqs);
	ASSERT_EQ(0, pair_reconnect(self->s));
	ASSERT_TRUE(pair_transfer(self->s));
}

/* The largest SRQ, each of whose receives has as many pieces as it may have, takes a message by each. */
TEST_F_TIMEOUT(limits, max_srq_wr, COUNT_SECONDS)
{
	const uint32_t wrs = self->attr.max_srq_wr, sges = self->attr.max_srq_sge, size = 4 * sges;
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = wrs, .max_sge = sges } };
	struct ibv_srq *srq = ibv_create_srq(self->s[0].pd, &srq_init);
	struct ibv_qp_init_attr init = {
		.send_cq = self->s[0].cq, .recv_cq = self->s[0].cq, .srq = srq, .qp_type = IBV_QPT_RC,
		.cap = { 1, 0, 1, 0, 0 },
	};
	struct side pair[2] = { self->s[0], self->s[1] };
	struct ibv_sge from = { (uintptr_t)pair[1].mem, size, pair[1].mr->lkey }, to[sges];
	struct ibv_send_wr *bad, wr = {
		.sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_recv_wr *bad_recv, recv = { .sg_list = to, .num_sge = (int)sges };
	struct ibv_wc wc;

	ASSERT_NE(NULL, srq);
	for (uint32_t i = 0; i < sges; i++)
		to[i] = (struct ibv_sge){ (uintptr_t)pair[0].mem + 8 * i, 4, pair[0].mr->lkey };
	while (recv.wr_id <= wrs && !(errno = ibv_post_srq_recv(srq, &recv, &bad_recv)))
		recv.wr_id++;
	EXPECT_EQ(ENOMEM, errno);
	ASSERT_EQ(wrs, recv.wr_id);
	ASSERT_NE(NULL, pair[0].qp = ibv_create_qp(pair[0].pd, &init));
	ASSERT_EQ(0, pair_reconnect(pair));
	for (uint32_t n = 0; n < wrs; n++) {
		fill(pair[1].mem, size, n);
		ASSERT_EQ(0, ibv_post_send(pair[1].qp, &wr, &bad));
		ASSERT_TRUE(side_wait(&pair[1], &wc, 20));
		ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
		ASSERT_TRUE(side_wait(&pair[0], &wc, 20));
		ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
		ASSERT_EQ(n, wc.wr_id);
		ASSERT_EQ(size, wc.byte_len);
		for (uint32_t i = 0; i < sges; i++)
			ASSERT_EQ(0, memcmp(pair[0].mem + 8 * i, pair[1].mem + 4 * i, 4));
	}
	ASSERT_EQ(0, ibv_destroy_qp(pair[0].qp));
	ASSERT_EQ(0, ibv_destroy_srq(srq));
	ASSERT_EQ(0, pair_reconnect(self->s));
	ASSERT_TRUE(pair_transfer(self->s));
}

/* DBP-5: a program has doorbell pages of its own, which it gives back. Here come more than the NIC has pages. */
TEST_F(limits, programs_come_and_go)
{
	struct side s[2];

	for (unsigned int i = 0; i < 4100; i++) {
		struct ibv_context *context = ibv_open_device(self->s[0].context->device);

		ASSERT_NE(NULL, context);
		ASSERT_EQ(0, ibv_close_device(context));
	}
	ASSERT_EQ(0, pair_open(s));
	EXPECT_TRUE(pair_transfer(s));
	EXPECT_TRUE(pair_transfer(self->s));
	pair_close(s);
}

TEST_HARNESS_MAIN
