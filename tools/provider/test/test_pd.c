// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* PDs: parent domains, thread domains, allocators, PDs of other processes, and what each holds. */
#include "kernel.h"
#include "objects.h"

static struct ibv_pd *make_domain(struct ibv_pd *of, struct ibv_td *td)
{
	struct ibv_parent_domain_init_attr attr = { .pd = of, .td = td };

	return skua_alloc_parent_domain(&ctx.vctx.context, &attr);
}

static void test_a_parent_domain_is_its_pd(void **state)
{
	struct ibv_pd *real = skua_alloc_pd(&ctx.vctx.context);
	struct ibv_pd *domain = make_domain(real, NULL);

	assert_int_equal(domain->handle, 33);
	errno = 0;
	assert_int_equal(skua_dealloc_pd(real), EBUSY);
	assert_int_equal(errno, EBUSY);		/* as when the kernel refuses */
	assert_int_equal(skua_dealloc_pd(domain), 0);
	assert_int_equal(skua_dealloc_pd(real), 0);
}

static void test_parent_domains_that_cannot_be(void **state)
{
	struct ibv_context other = {};
	struct ibv_td strange_td = { .context = &other };
	struct ibv_pd *domain = make_domain(&pd.ibv_pd, NULL);
	struct ibv_parent_domain_init_attr unknown = { .pd = &pd.ibv_pd, .comp_mask = 1 << 9 };
	struct ibv_parent_domain_init_attr half = {
		.pd = &pd.ibv_pd, .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS,
	};
	struct ibv_td_init_attr td_attr = { .comp_mask = 1 };

	assert_null(make_domain(NULL, NULL));
	assert_int_equal(errno, EINVAL);
	assert_null(make_domain(domain, NULL));
	assert_int_equal(errno, EINVAL);
	assert_null(make_domain(&pd.ibv_pd, &strange_td));
	assert_int_equal(errno, EINVAL);
	assert_null(skua_alloc_parent_domain(&ctx.vctx.context, &half));
	assert_int_equal(errno, EINVAL);
	assert_null(skua_alloc_parent_domain(&ctx.vctx.context, &unknown));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(skua_alloc_td(&ctx.vctx.context, &td_attr));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(skua_dealloc_pd(domain), 0);
}

/* Queues of a thread domain are used while somebody holds their locks: nobody looks at them. */
static void test_a_thread_domain_drops_locks(void **state)
{
	struct ibv_td_init_attr td_attr = {};
	struct ibv_td *td = skua_alloc_td(&ctx.vctx.context, &td_attr);
	struct ibv_pd *domain = make_domain(&pd.ibv_pd, td);
	struct ibv_cq_init_attr_ex cq_attr = {
		.cqe = 4, .wc_flags = IBV_WC_STANDARD_FLAGS, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
		.parent_domain = domain,
	};
	struct ibv_cq_ex *cq_ex = skua_create_cq_ex(&ctx.vctx.context, &cq_attr);
	struct ibv_cq *cq = ibv_cq_ex_to_cq(cq_ex);
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8 },
	};
	struct ibv_qp *qp = skua_create_qp(domain, &attr);
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad_send;
	struct ibv_recv_wr rwr = {}, *bad_recv;
	struct ibv_wc wc;

	errno = 0;
	assert_int_equal(skua_dealloc_td(td), EBUSY);
	assert_int_equal(errno, EBUSY);
	assert_int_equal(skua_dealloc_pd(domain), EBUSY);
	to_skua_qp(qp)->sq_lock.held = true;
	to_skua_qp(qp)->rq_lock.held = true;
	to_skua_cq(cq)->lock.held = true;
	qp->state = IBV_QPS_RTS;
	assert_int_equal(skua_post_send(qp, &wr, &bad_send), 0);
	assert_int_equal(skua_post_recv(qp, &rwr, &bad_recv), 0);
	assert_int_equal(skua_poll_cq(cq, 1, &wc), 0);
	assert_int_equal(skua_destroy_qp(qp), 0);
	assert_int_equal(skua_destroy_cq(cq), 0);
	assert_int_equal(skua_dealloc_pd(domain), 0);
	assert_int_equal(skua_dealloc_td(td), 0);

	/* Others have them. */
	cq = make_cq(4);
	assert_true(to_skua_cq(cq)->lock.needed);
	attr.send_cq = cq;
	attr.recv_cq = cq;
	qp = skua_create_qp(&pd.ibv_pd, &attr);
	assert_true(to_skua_qp(qp)->sq_lock.needed && to_skua_qp(qp)->rq_lock.needed);
	skua_destroy_qp(qp);
	skua_destroy_cq(cq);
}

static struct ibv_cq_ex *make_cq_of(struct ibv_pd *domain)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = domain,
	};

	return skua_create_cq_ex(&ctx.vctx.context, &attr);
}

static void test_a_cq_takes_a_parent_domain_only(void **state)
{
	struct ibv_context other = {};
	struct skua_pd strange = { .ibv_pd.context = &other, .contained = &pd, .users = 1 };

	assert_null(make_cq_of(NULL));
	assert_int_equal(errno, EINVAL);
	assert_null(make_cq_of(&pd.ibv_pd));
	assert_int_equal(errno, EINVAL);
	assert_null(make_cq_of(&strange.ibv_pd));
	assert_int_equal(errno, EINVAL);
}

/* So nobody frees what it needs: the thread domain, and the allocator. */
static void test_a_cq_holds_its_parent_domain(void **state)
{
	struct ibv_td_init_attr td_attr = {};
	struct ibv_td *td = skua_alloc_td(&ctx.vctx.context, &td_attr);
	struct ibv_pd *domain = make_domain(&pd.ibv_pd, td);
	struct ibv_cq_ex *cq_ex = make_cq_of(domain);

	assert_int_equal(skua_dealloc_pd(domain), EBUSY);
	assert_int_equal(skua_dealloc_td(td), EBUSY);
	assert_int_equal(skua_destroy_cq(ibv_cq_ex_to_cq(cq_ex)), 0);
	answer = ENOMEM;
	assert_null(make_cq_of(domain));
	answer = 0;
	assert_int_equal(skua_dealloc_pd(domain), 0);
	assert_int_equal(skua_dealloc_td(td), 0);
}

static void test_pds_that_cannot_be_imported(void **state)
{
	assert_null(skua_import_pd(&ctx.vctx.context, 34));
	assert_int_equal(errno, ENOENT);
}

/* ibv_unimport_pd() cannot fail, so what is made with the PD keeps it. */
static void test_unimported_pds_live_as_long_as_their_qps(void **state)
{
	struct ibv_pd *imported = skua_import_pd(&ctx.vctx.context, 33);
	struct ibv_pd *domain = make_domain(imported, NULL);
	struct ibv_cq *cq = make_cq(16);
	struct ibv_qp_init_attr attr = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC };
	struct ibv_qp *qp = skua_create_qp(imported, &attr), *qp_of_domain;

	attr.cap.max_recv_wr = 4;
	qp_of_domain = skua_create_qp(domain, &attr);
	assert_int_equal(skua_dealloc_pd(imported), EBUSY);
	skua_unimport_pd(imported);
	skua_unimport_pd(domain);
	assert_int_equal(skua_destroy_qp(qp), 0);
	assert_int_equal(skua_destroy_qp(qp_of_domain), 0);
	skua_destroy_cq(cq);
}

static unsigned int allocated, freed;
static void *allocation;

static void *domain_alloc(struct ibv_pd *domain, void *context, size_t size, size_t alignment,
			  uint64_t resource_type)
{
	assert_ptr_equal(context, &allocated);
	assert_int_equal(size % alignment, 0);
	assert_int_equal(alignment, 4096);
	allocated++;
	if (allocation == IBV_ALLOCATOR_USE_DEFAULT || !allocation)
		return allocation;
	allocation = aligned_alloc(alignment, size);
	memset(allocation, 0xff, size);
	return allocation;
}

static void domain_free(struct ibv_pd *domain, void *context, void *addr, uint64_t resource_type)
{
	assert_ptr_equal(addr, allocation);
	free(addr);
	freed++;
}

static void test_allocators_of_a_parent_domain(void **state)
{
	struct ibv_parent_domain_init_attr attr = {
		.pd = &pd.ibv_pd, .alloc = domain_alloc, .free = domain_free, .pd_context = &allocated,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
	};
	struct ibv_pd *domain = skua_alloc_parent_domain(&ctx.vctx.context, &attr);
	struct ibv_cq *cq = make_cq(16);
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = { .max_send_wr = 8 },
	};
	struct ibv_cq_ex *cq_ex;
	struct ibv_qp *qp;

	allocation = &allocated;		/* its own */
	qp = skua_create_qp(domain, &init);
	assert_non_null(qp);
	assert_int_equal(qp_req.sq_addr, (uintptr_t)allocation);
	assert_int_equal(to_skua_qp(qp)->sq.dbr->pi, 0);
	assert_int_equal(skua_destroy_qp(qp), 0);
	assert_int_equal(allocated, 1);
	assert_int_equal(freed, 1);

	allocation = &allocated;
	cq_ex = make_cq_of(domain);
	assert_int_equal(cq_req.buf_addr, (uintptr_t)allocation);
	assert_int_equal(skua_destroy_cq(ibv_cq_ex_to_cq(cq_ex)), 0);
	assert_int_equal(allocated, 2);
	assert_int_equal(freed, 2);

	allocation = NULL;
	assert_null(skua_create_qp(domain, &init));
	assert_int_equal(errno, ENOMEM);
	assert_null(make_cq_of(domain));
	assert_int_equal(errno, ENOMEM);

	allocation = IBV_ALLOCATOR_USE_DEFAULT;
	qp = skua_create_qp(domain, &init);
	assert_non_null(qp);
	assert_int_equal(skua_destroy_qp(qp), 0);
	assert_int_equal(freed, 2);
	assert_int_equal(skua_dealloc_pd(domain), 0);
	skua_destroy_cq(cq);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_a_parent_domain_is_its_pd),
		T(test_parent_domains_that_cannot_be),
		T(test_a_thread_domain_drops_locks),
		T(test_a_cq_takes_a_parent_domain_only),
		T(test_a_cq_holds_its_parent_domain),
		T(test_pds_that_cannot_be_imported),
		T(test_unimported_pds_live_as_long_as_their_qps),
		T(test_allocators_of_a_parent_domain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
