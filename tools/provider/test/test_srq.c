// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Shared receive queues: sizes, addresses, rings that take the place of others, and entries that complete in any
 * order.
 */
#include <pthread.h>
#include <sched.h>

#include "kernel.h"
#include "objects.h"

static struct ibv_srq *make(uint32_t max_wr, uint32_t max_sge, struct ibv_srq_attr *got)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = max_wr, .max_sge = max_sge } };
	struct ibv_srq *srq = skua_create_srq(&pd.ibv_pd, &attr);

	*got = attr.attr;
	return srq;
}

static int post(struct ibv_srq *srq, uint64_t wr_id)
{
	struct ibv_recv_wr *bad, wr = { .wr_id = wr_id };

	return skua_post_srq_recv(srq, &wr, &bad);
}

static int resize(struct ibv_srq *srq, uint32_t max_wr)
{
	struct ibv_srq_attr attr = { .max_wr = max_wr };

	return skua_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);
}

/* The cookie of the entry with this index, where the kernel was told that the ring is. */
static uint32_t cookie(uint64_t ring, uint32_t size, uint32_t index)
{
	uint64_t offset = (uint64_t)(index & (size - 1)) << srq_req.log_stride;
	const struct skua_rqe *rqe = (void *)(uintptr_t)(ring + offset);

	return le32toh(rqe->cookie);
}

static void test_the_kernel_learns_where_it_is(void **state)
{
	struct ibv_srq_attr attr;
	struct ibv_srq *srq = make(100, 3, &attr);

	assert_non_null(srq);
	assert_int_equal(attr.max_wr, 128);
	assert_in_range(attr.max_sge, 3, 30);
	assert_int_equal(srq_req.log_size, 7);
	assert_true(sizeof(struct skua_rqe) + attr.max_sge * sizeof(struct skua_sge) <= 1u << srq_req.log_stride);
	assert_int_equal(srq_req.buf_addr % 4096, 0);
	assert_int_equal(srq_req.dbr_addr % 64, 0);
	assert_int_equal(srq_req.srq_handle, (uintptr_t)to_skua_srq(srq));
	for (uint64_t i = 0; i < 128; i++)
		assert_int_equal(post(srq, i), 0);
	assert_int_equal(post(srq, 128), ENOMEM);
	assert_int_equal(le32toh(((struct skua_dbr *)(uintptr_t)srq_req.dbr_addr)->pi), 128);
	assert_int_equal(skua_destroy_srq(srq), 0);
}

/* No memory is taken for what the device does not have. */
static void test_limits(void **state)
{
	static const uint32_t wrs[] = { 0, 1025, 1u << 30, UINT32_MAX };
	struct ibv_srq_attr attr;
	struct ibv_srq *srq;

	for (unsigned int i = 0; i < 4; i++) {
		assert_null(make(wrs[i], 1, &attr));
		assert_int_equal(errno, EINVAL);
	}
	assert_null(make(1, 31, &attr));
	assert_int_equal(errno, EINVAL);
	srq = make(1024, 30, &attr);
	assert_non_null(srq);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(resize(srq, wrs[i]), EINVAL);
	answer = EBUSY;
	assert_int_equal(skua_destroy_srq(srq), EBUSY);
	answer = 0;
	assert_int_equal(skua_destroy_srq(srq), 0);
	ctx.caps.max_srq_wr = 0;
	assert_null(make(1, 1, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	ctx.caps.max_srq_wr = 1024;
	answer = ENOMEM;
	assert_null(make(1, 1, &attr));
	assert_int_equal(errno, ENOMEM);
}

/* One completion frees one slot, whosever it is, and the cookie of that entry. */
static void test_entries_complete_in_any_order(void **state)
{
	struct ibv_srq_attr attr;
	struct ibv_srq *srq = make(4, 1, &attr);

	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(post(srq, 100 + i), 0);
	for (uint32_t i = 4; i < 1000; i++) {
		uint32_t last = cookie(srq_req.buf_addr, 4, i - 1), other;

		/* The one that was posted last: those before it stay. */
		assert_int_equal(skua_srq_retire(to_skua_srq(srq), last), 100 + i - 1);
		assert_int_equal(post(srq, 100 + i), 0);
		assert_int_equal(post(srq, 0), ENOMEM);
		other = cookie(srq_req.buf_addr, 4, i);
		assert_int_equal(other, last);
	}
	assert_int_equal(skua_destroy_srq(srq), 0);
}

#define ENTRIES	1024
#define LEAVER	5

/* A thread that posts as soon as there is room, and what the device may overwrite of a CQ then. */
struct poster {
	struct ibv_srq *srq;
	const struct skua_cq_dbr *cq_dbr;
	bool tries;
	uint32_t cq_ci;
};

static void *post_when_there_is_room(void *arg)
{
	struct poster *poster = arg;

	while (post(poster->srq, 0))
		__atomic_store_n(&poster->tries, true, __ATOMIC_RELEASE);
	poster->cq_ci = le32toh(__atomic_load_n(&poster->cq_dbr->ci, __ATOMIC_ACQUIRE));
	return NULL;
}

/* The CQEs of a QP that goes leave a full CQ, and so their entries are free. */
static void a_qp_goes_while_another_thread_posts(void)
{
	static struct skua_cqe cqes[ENTRIES];
	struct skua_cq_dbr dbr = {};
	struct ibv_srq_attr attr;
	struct skua_cq cq = { .ring = { .cqes = cqes, .dbr = &dbr } };
	struct poster poster = { .srq = make(ENTRIES, 1, &attr), .cq_dbr = &dbr };
	pthread_t thread;

	skua_cq_set_size(&cq.ring, ENTRIES);
	skua_lock_init(&cq.lock, true);
	for (uint32_t i = 0; i < ENTRIES; i++) {
		assert_int_equal(post(poster.srq, i), 0);
		cqes[i] = (struct skua_cqe) {
			.qpn = htole32(LEAVER), .opcode = SKUA_CQE_RECV, .flags = SKUA_CQE_FROM_SRQ | SKUA_CQE_PHASE,
			.cookie = htole32(cookie(srq_req.buf_addr, ENTRIES, i)),
			.qp_handle = htole64((uintptr_t)to_skua_srq(poster.srq)),
		};
	}
	assert_int_equal(pthread_create(&thread, NULL, post_when_there_is_room, &poster), 0);
	while (!__atomic_load_n(&poster.tries, __ATOMIC_ACQUIRE))
		sched_yield();
	skua_cq_purge(&cq, LEAVER, to_skua_srq(poster.srq));
	pthread_join(thread, NULL);
	assert_int_equal(poster.cq_ci, ENTRIES);
	assert_int_equal(skua_destroy_srq(poster.srq), 0);
}

/* CQ-3, SRQ-7: whoever posts one of these entries finds a place for its CQE. Often, as it is a matter of moments. */
static void test_a_qp_that_goes_leaves_places_before_entries(void **state)
{
	for (unsigned int i = 0; i < 100; i++)
		a_qp_goes_while_another_thread_posts();
}

static void test_another_ring_has_the_entries(void **state)
{
	struct ibv_srq_attr attr;
	struct ibv_srq *srq = make(8, 1, &attr);
	uint32_t cookies[8];

	for (uint64_t i = 0; i < 8; i++)
		assert_int_equal(post(srq, i), 0);
	for (uint32_t i = 0; i < 3; i++)
		skua_srq_retire(to_skua_srq(srq), cookie(srq_req.buf_addr, 8, i));
	for (uint32_t i = 3; i < 8; i++)
		cookies[i] = cookie(srq_req.buf_addr, 8, i);
	assert_int_equal(resize(srq, 4), EINVAL);
	/* The kernel refuses: all is as it was. */
	answer = EFAULT;
	assert_int_equal(resize(srq, 20), EFAULT);
	answer = 0;
	for (uint32_t i = 3; i < 8; i++)
		assert_int_equal(cookie(srq_req.buf_addr, 8, i), cookies[i]);
	assert_int_equal(resize(srq, 20), 0);
	assert_int_equal(modify_srq_req.log_size, 5);
	assert_int_not_equal(modify_srq_req.buf_addr, srq_req.buf_addr);
	for (uint32_t i = 3; i < 8; i++)
		assert_int_equal(cookie(modify_srq_req.buf_addr, 32, i), cookies[i]);
	/* As many as it says now, each with a cookie of its own. */
	for (uint64_t i = 5; i < 32; i++)
		assert_int_equal(post(srq, 1000 + i), 0);
	assert_int_equal(post(srq, 0), ENOMEM);
	for (uint32_t i = 3; i < 3 + 32; i++)
		for (uint32_t j = 3; j < i; j++)
			assert_int_not_equal(cookie(modify_srq_req.buf_addr, 32, i),
					     cookie(modify_srq_req.buf_addr, 32, j));
	assert_int_equal(skua_srq_retire(to_skua_srq(srq), cookies[7]), 7);
	assert_int_equal(skua_srq_retire(to_skua_srq(srq), cookie(modify_srq_req.buf_addr, 32, 34)), 1031);
	assert_int_equal(skua_destroy_srq(srq), 0);
}

/* SRQ-12: a dead device takes nothing out of the ring, and posting asks no device. */
static void test_a_million_posts_to_a_dead_device(void **state)
{
	struct ibv_srq_attr attr;
	struct ibv_srq *srq = make(1024, 1, &attr);

	info.state = SKUA_INFO_DEAD;
	for (uint64_t i = 0; i < 1000000; i++)
		assert_int_equal(post(srq, i), i < 1024 ? 0 : ENOMEM);
	assert_int_equal(le32toh(((struct skua_dbr *)(uintptr_t)srq_req.dbr_addr)->pi), 1024);
	/* The entries are those that were posted first. */
	for (uint32_t i = 0; i < 1024; i++)
		assert_int_equal(skua_srq_retire(to_skua_srq(srq), cookie(srq_req.buf_addr, 1024, i)), i);
	assert_int_equal(skua_destroy_srq(srq), 0);
}

/* The limit alone is the kernel's. */
static void test_the_limit_takes_no_ring(void **state)
{
	struct ibv_srq_attr attr;
	struct ibv_srq *srq = make(8, 1, &attr);

	attr.srq_limit = 4;
	assert_int_equal(skua_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
	assert_int_equal(modify_srq_req.buf_addr, 0);
	answer = EINVAL;
	assert_int_equal(skua_modify_srq(srq, &attr, IBV_SRQ_LIMIT), EINVAL);
	answer = 0;
	assert_int_equal(skua_destroy_srq(srq), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_the_kernel_learns_where_it_is),
		T(test_limits),
		T(test_entries_complete_in_any_order),
		T(test_a_qp_that_goes_leaves_places_before_entries),
		T(test_another_ring_has_the_entries),
		T(test_a_million_posts_to_a_dead_device),
		T(test_the_limit_takes_no_ring),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
