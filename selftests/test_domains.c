// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Parent domains: their allocators have the rings and records of all queues, and their thread domains do without locks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kselftest_harness.h"
#include "pair.h"

#define BLOCKS	32

/* What an allocator was asked for. */
struct heap {
	struct ibv_pd *pd;		/* whose it is */
	struct { void *addr; size_t size; } live[BLOCKS];
	unsigned int allocs, frees, wrong;
	unsigned int fail_at;		/* this allocation fails, counted from 1; 0: none does */
	bool use_default;
	size_t shift;			/* bytes by which its blocks are not aligned */
};

static void *heap_alloc(struct ibv_pd *pd, void *context, size_t size, size_t alignment, uint64_t type)
{
	struct heap *heap = context;

	heap->wrong += pd != heap->pd || !size || !alignment || alignment & (alignment - 1);
	heap->allocs++;
	if (heap->use_default)
		return IBV_ALLOCATOR_USE_DEFAULT;
	if (heap->allocs == heap->fail_at)
		return NULL;
	for (unsigned int i = 0; i < BLOCKS; i++) {
		if (heap->live[i].addr)
			continue;
		/* Not zero, and shared: neither is promised. */
		void *block = mmap(NULL, size + alignment, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

		if (block == MAP_FAILED)
			break;
		memset(block, 0xff, size + alignment);
		heap->live[i].addr = (char *)block + heap->shift;
		heap->live[i].size = size + alignment;
		return heap->live[i].addr;
	}
	heap->wrong++;
	return NULL;
}

static void heap_free(struct ibv_pd *pd, void *context, void *addr, uint64_t type)
{
	struct heap *heap = context;

	heap->wrong += pd != heap->pd;
	heap->frees++;
	for (unsigned int i = 0; i < BLOCKS; i++)
		if (addr && heap->live[i].addr == addr) {
			munmap((char *)addr - heap->shift, heap->live[i].size);
			heap->live[i].addr = NULL;
			return;
		}
	heap->wrong++;
}

static unsigned int living(const struct heap *heap)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < BLOCKS; i++)
		n += !!heap->live[i].addr;
	return n;
}

FIXTURE(domains) {
	struct side s[2];		/* the fixture's own */
	struct heap heap[2];
	struct ibv_td *td[2];
	struct ibv_pd *domain[2];
};

static struct ibv_pd *make_domain(struct side *side, struct ibv_td *td, struct heap *heap)
{
	struct ibv_parent_domain_init_attr attr = {
		.pd = side->pd, .td = td, .alloc = heap_alloc, .free = heap_free, .pd_context = heap,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
	};

	heap->pd = ibv_alloc_parent_domain(side->context, &attr);
	return heap->pd;
}

FIXTURE_SETUP(domains)
{
	struct ibv_td_init_attr td_attr = {};

	memset(self->heap, 0, sizeof(self->heap));
	ASSERT_EQ(0, pair_open(self->s));
	for (int i = 0; i < 2; i++) {
		self->td[i] = ibv_alloc_td(self->s[i].context, &td_attr);
		ASSERT_NE(NULL, self->td[i]);
		self->domain[i] = make_domain(&self->s[i], self->td[i], &self->heap[i]);
		ASSERT_NE(NULL, self->domain[i]);
	}
}

/* Nothing is left, and no callback was called wrongly. */
FIXTURE_TEARDOWN(domains)
{
	for (int i = 0; i < 2; i++) {
		EXPECT_EQ(0, living(&self->heap[i]));
		EXPECT_EQ(0, self->heap[i].wrong);
		EXPECT_EQ(0, ibv_dealloc_pd(self->domain[i]));
		EXPECT_EQ(0, ibv_dealloc_td(self->td[i]));
	}
	EXPECT_TRUE(pair_transfer(self->s));
	pair_close(self->s);
}

static struct ibv_cq *make_cq(struct side *side, struct ibv_pd *domain)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 2 * PAIR_WRS, .channel = side->channel, .wc_flags = IBV_WC_STANDARD_FLAGS,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = domain,
	};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(side->context, &attr);

	return cq ? ibv_cq_ex_to_cq(cq) : NULL;
}

/* QPs, CQs, and a CQ that is resized: traffic goes through memory of the allocators only. */
TEST_F(domains, connections)
{
	struct side s[2];

	memcpy(s, self->s, sizeof(s));
	for (int i = 0; i < 2; i++) {
		struct heap *heap = &self->heap[i];

		s[i].pd = self->domain[i];
		s[i].cq = make_cq(&s[i], self->domain[i]);
		ASSERT_NE(NULL, s[i].cq);
		EXPECT_EQ(1, living(heap));
		ASSERT_EQ(0, ibv_req_notify_cq(s[i].cq, 0));
		s[i].qp = side_create_qp(&s[i]);
		ASSERT_NE(NULL, s[i].qp);
		EXPECT_EQ(2, living(heap));
		ASSERT_EQ(0, ibv_resize_cq(s[i].cq, 16 * PAIR_WRS));
		EXPECT_EQ(3, heap->allocs);
		EXPECT_EQ(EBUSY, ibv_dealloc_pd(self->domain[i]));
		EXPECT_EQ(EBUSY, ibv_dealloc_td(self->td[i]));
	}
	ASSERT_EQ(0, pair_reconnect(s));
	for (int i = 0; i < 20; i++)
		ASSERT_TRUE(pair_transfer(s));
	for (int i = 0; i < 2; i++) {
		EXPECT_EQ(0, ibv_destroy_qp(s[i].qp));
		EXPECT_EQ(0, ibv_destroy_cq(s[i].cq));
		EXPECT_EQ(self->heap[i].allocs, self->heap[i].frees);
	}
	ASSERT_EQ(0, pair_reconnect(self->s));
}

/* An SRQ, and another ring of it. */
TEST_F(domains, srq)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = PAIR_WRS, .max_sge = 1 } };
	struct ibv_srq_attr more = { .max_wr = 8 * PAIR_WRS };
	struct heap *heap = &self->heap[0];
	struct side *a = &self->s[0];
	struct ibv_sge sge = { (uintptr_t)a->mem, 64, a->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };
	struct ibv_srq *srq = ibv_create_srq(self->domain[0], &attr);

	ASSERT_NE(NULL, srq);
	EXPECT_LT(0, living(heap));
	for (int i = 0; i < PAIR_WRS; i++)
		ASSERT_EQ(0, ibv_post_srq_recv(srq, &wr, &bad));
	ASSERT_EQ(0, ibv_modify_srq(srq, &more, IBV_SRQ_MAX_WR));
	for (int i = 0; i < 7 * PAIR_WRS; i++)
		ASSERT_EQ(0, ibv_post_srq_recv(srq, &wr, &bad));
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(self->domain[0]));
	EXPECT_EQ(0, ibv_destroy_srq(srq));
	EXPECT_EQ(heap->allocs, heap->frees);
}

TEST_F(domains, wq)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = PAIR_WRS, .max_sge = 1, .pd = self->domain[0], .cq = self->s[0].cq,
	};
	struct ibv_wq *wq = ibv_create_wq(self->s[0].context, &attr);

	ASSERT_NE(NULL, wq);
	EXPECT_EQ(1, living(&self->heap[0]));
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(self->domain[0]));
	EXPECT_EQ(0, ibv_destroy_wq(wq));
}

/* What cannot be had: no object, an errno that says so, and nothing left. */
TEST_F(domains, allocations_that_fail)
{
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = PAIR_WRS, .max_sge = 1 } };
	struct heap *heap = &self->heap[0];
	struct side s = self->s[0];
	struct ibv_srq *srq;

	s.pd = self->domain[0];
	heap->fail_at = 1;
	EXPECT_EQ(NULL, make_cq(&s, self->domain[0]));
	EXPECT_EQ(ENOMEM, errno);
	heap->allocs = 0;
	EXPECT_EQ(NULL, side_create_qp(&s));
	EXPECT_EQ(ENOMEM, errno);
	/* The first, then the second, and so on until none fails. */
	for (unsigned int i = 1;; i++) {
		heap->allocs = heap->frees = 0;
		heap->fail_at = i;
		srq = ibv_create_srq(self->domain[0], &srq_attr);
		if (srq)
			break;
		EXPECT_EQ(ENOMEM, errno);
		EXPECT_EQ(i - 1, heap->frees);
		ASSERT_LT(i, 10);
	}
	EXPECT_EQ(0, ibv_destroy_srq(srq));
	/* A ring that would take the place of the old one. */
	heap->fail_at = 0;
	s.cq = make_cq(&s, self->domain[0]);
	ASSERT_NE(NULL, s.cq);
	heap->fail_at = heap->allocs + 1;
	EXPECT_EQ(ENOMEM, ibv_resize_cq(s.cq, 16 * PAIR_WRS));
	EXPECT_EQ(0, ibv_destroy_cq(s.cq));
}

/* Memory at addresses of no use is the kernel's to refuse, and goes back. */
TEST_F(domains, blocks_that_are_not_aligned)
{
	struct side s = self->s[0];

	s.pd = self->domain[0];
	self->heap[0].shift = 8;
	EXPECT_EQ(NULL, side_create_qp(&s));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(NULL, make_cq(&s, self->domain[0]));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(2, self->heap[0].allocs);
	EXPECT_EQ(2, self->heap[0].frees);
}

/* It is asked each time, and has nothing to free. */
TEST_F(domains, allocators_that_do_not_want_to)
{
	struct side s = self->s[0];
	struct heap *heap = &self->heap[0];

	heap->use_default = true;
	s.pd = self->domain[0];
	s.cq = make_cq(&s, self->domain[0]);
	ASSERT_NE(NULL, s.cq);
	s.qp = side_create_qp(&s);
	ASSERT_NE(NULL, s.qp);
	EXPECT_EQ(2, heap->allocs);
	EXPECT_EQ(0, ibv_destroy_qp(s.qp));
	EXPECT_EQ(0, ibv_destroy_cq(s.cq));
	EXPECT_EQ(0, heap->frees);
}

TEST_F(domains, wrong_use)
{
	struct ibv_context *context = self->s[0].context;
	struct ibv_parent_domain_init_attr rows[] = {
		{},
		{ .pd = self->domain[0] },
		{ .pd = self->s[1].pd },
		{ .pd = self->s[0].pd, .td = self->td[1] },
		{ .pd = self->s[0].pd, .alloc = heap_alloc, .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS },
		{ .pd = self->s[0].pd, .free = heap_free, .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS },
		{ .pd = self->s[0].pd, .comp_mask = 1 << 30 },
	};
	struct ibv_td_init_attr td_attr = { .comp_mask = 1 };

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		errno = 0;
		EXPECT_EQ(NULL, ibv_alloc_parent_domain(context, &rows[i]));
		EXPECT_EQ(rows[i].comp_mask == 1 << 30 ? EOPNOTSUPP : EINVAL, errno);
	}
	EXPECT_EQ(NULL, ibv_alloc_td(context, &td_attr));
	EXPECT_EQ(EOPNOTSUPP, errno);
	/* A CQ has no PD. */
	EXPECT_EQ(NULL, make_cq(&self->s[0], self->s[0].pd));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(NULL, make_cq(&self->s[0], self->domain[1]));
	EXPECT_EQ(EINVAL, errno);
	/* The PD in it is in use. */
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(self->s[0].pd));
}

TEST_HARNESS_MAIN
