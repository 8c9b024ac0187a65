// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Many threads: each with queues of its own, made without locks (thread domains, single-threaded CQs), or
 * all on the same queues, whose locks then have to hold.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pair.h"

#define THREADS	4
#define WRITES	5000
#define SLOT	4096u

FIXTURE(threads) {
	struct side s[2];
};

FIXTURE_SETUP(threads)
{
	ASSERT_EQ(0, pair_open(self->s));
}

FIXTURE_TEARDOWN(threads)
{
	pair_close(self->s);
}

/* Objects of one thread: @s are the fixture's but for what is made for it. */
struct worker {
	pthread_t thread;
	struct side s[2];
	struct ibv_td *td[2];
	struct ibv_pd *domain[2];
	struct ibv_cq_ex *cq_ex[2];
	uint8_t *from, *to;
	const char *wrong;
};

static int worker_open_side(struct worker *w, unsigned int i, bool extended)
{
	struct ibv_td_init_attr td_attr = {};
	struct ibv_parent_domain_init_attr attr = { .pd = w->s[i].pd };
	struct ibv_cq_init_attr_ex cq_attr = {
		.cqe = 4 * PAIR_WRS, .wc_flags = IBV_WC_STANDARD_FLAGS,
		.comp_mask = extended ? IBV_CQ_INIT_ATTR_MASK_PD : IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED,
	};

	w->td[i] = ibv_alloc_td(w->s[i].context, &td_attr);
	if (!w->td[i])
		return errno;
	attr.td = w->td[i];
	w->domain[i] = ibv_alloc_parent_domain(w->s[i].context, &attr);
	if (!w->domain[i])
		return errno;
	cq_attr.parent_domain = w->domain[i];
	w->cq_ex[i] = ibv_create_cq_ex(w->s[i].context, &cq_attr);
	if (!w->cq_ex[i])
		return errno;
	w->s[i].cq = ibv_cq_ex_to_cq(w->cq_ex[i]);
	w->s[i].pd = w->domain[i];
	w->s[i].qp = side_create_qp(&w->s[i]);
	return w->s[i].qp ? 0 : errno;
}

static int worker_close_side(struct worker *w, unsigned int i)
{
	int err;

	/* What is in use stays. */
	if (ibv_dealloc_td(w->td[i]) != EBUSY || ibv_dealloc_pd(w->domain[i]) != EBUSY)
		return EINVAL;
	err = ibv_destroy_qp(w->s[i].qp);
	if (!err)
		err = ibv_destroy_cq(w->s[i].cq);
	if (!err)
		err = ibv_dealloc_pd(w->domain[i]);
	return err ? err : ibv_dealloc_td(w->td[i]);
}

static const char *one_write(struct worker *w, unsigned int n)
{
	struct side *a = &w->s[0], *b = &w->s[1];
	struct ibv_sge sge = { (uintptr_t)w->from, 1 + n % SLOT, a->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = n, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)w->to, b->mr->rkey },
	};
	struct ibv_wc wc;

	for (unsigned int i = 0; i < sge.length; i++)
		w->from[i] = (uint8_t)(n + i);
	if (ibv_post_send(a->qp, &wr, &bad))
		return "post";
	if (!side_wait(a, &wc, 10))
		return "no completion";
	if (wc.status != IBV_WC_SUCCESS || wc.wr_id != n)
		return "status";
	return memcmp(w->from, w->to, sge.length) ? "data" : NULL;
}

static void *write_alone(void *arg)
{
	struct worker *w = arg;

	for (unsigned int i = 0; i < WRITES && !w->wrong; i++)
		w->wrong = one_write(w, i);
	return NULL;
}

static void run_alone(struct __test_metadata *_metadata, struct side s[2], bool extended)
{
	static struct worker workers[THREADS];

	for (unsigned int i = 0; i < THREADS; i++) {
		struct worker *w = &workers[i];

		*w = (struct worker){ .from = s[0].mem + i * SLOT, .to = s[1].mem + i * SLOT };
		memcpy(w->s, s, sizeof(w->s));
		for (unsigned int j = 0; j < 2; j++)
			ASSERT_EQ(0, worker_open_side(w, j, extended));
		ASSERT_EQ(0, pair_reconnect(w->s));
	}
	for (unsigned int i = 0; i < THREADS; i++)
		ASSERT_EQ(0, pthread_create(&workers[i].thread, NULL, write_alone, &workers[i]));
	for (unsigned int i = 0; i < THREADS; i++) {
		ASSERT_EQ(0, pthread_join(workers[i].thread, NULL));
		ASSERT_EQ(NULL, workers[i].wrong) {
			TH_LOG("%s", workers[i].wrong);
		}
		for (unsigned int j = 0; j < 2; j++)
			ASSERT_EQ(0, worker_close_side(&workers[i], j));
	}
	ASSERT_TRUE(pair_transfer(s));
}

TEST_F_TIMEOUT(threads, each_with_a_thread_domain_and_single_threaded_cqs, 60)
{
	run_alone(_metadata, self->s, false);
}

TEST_F_TIMEOUT(threads, each_with_all_in_a_thread_domain, 60)
{
	run_alone(_metadata, self->s, true);
}

/* A region may be made with a parent domain, too, and is one of its PD. */
TEST_F(threads, a_region_of_a_parent_domain)
{
	struct side *a = &self->s[0];
	struct ibv_parent_domain_init_attr attr = { .pd = a->pd };
	struct ibv_pd *domain = ibv_alloc_parent_domain(a->context, &attr);
	struct ibv_mr *mr, *old = a->mr;

	ASSERT_NE(NULL, domain);
	mr = ibv_reg_mr(domain, a->mem, PAIR_MEM, IBV_ACCESS_LOCAL_WRITE);
	ASSERT_NE(NULL, mr);
	a->mr = mr;
	ASSERT_TRUE(pair_transfer(self->s));
	a->mr = old;
	ASSERT_EQ(0, ibv_dereg_mr(mr));
	ASSERT_EQ(EBUSY, ibv_dealloc_pd(a->pd));
	ASSERT_EQ(0, ibv_dealloc_pd(domain));
}

/* All on the same queues */

static struct side *shared;		/* both */
static unsigned int posted, completed;
static bool seen[THREADS * WRITES];

/* False: a completion in error, or one that was there before. */
static bool poll_together(struct side *a)
{
	struct ibv_wc wc[3];
	int n = ibv_poll_cq(a->cq, 3, wc);

	for (int i = 0; i < n; i++) {
		if (wc[i].status || __atomic_exchange_n(&seen[wc[i].wr_id], true, __ATOMIC_RELAXED))
			return false;
		__atomic_fetch_add(&completed, 1, __ATOMIC_RELAXED);
	}
	return true;
}

static void *write_together(void *arg)
{
	struct side *a = &shared[0];
	struct ibv_sge sge = { (uintptr_t)a->mem, 64, a->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)shared[1].mem, shared[1].mr->rkey },
	};

	while (__atomic_load_n(&completed, __ATOMIC_RELAXED) < THREADS * WRITES) {
		wr.wr_id = __atomic_fetch_add(&posted, 1, __ATOMIC_RELAXED);
		/* If it is full: make room. */
		while (wr.wr_id < THREADS * WRITES && ibv_post_send(a->qp, &wr, &bad))
			if (!poll_together(a))
				return "completion";
		if (!poll_together(a))
			return "completion";
	}
	return NULL;
}

TEST_F_TIMEOUT(threads, all_on_one_qp_and_cq, 60)
{
	pthread_t threads[THREADS];

	shared = self->s;
	for (unsigned int i = 0; i < THREADS; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, write_together, NULL));
	for (unsigned int i = 0; i < THREADS; i++) {
		void *wrong;

		ASSERT_EQ(0, pthread_join(threads[i], &wrong));
		ASSERT_EQ(NULL, wrong);
	}
	ASSERT_EQ(THREADS * WRITES, completed);
	ASSERT_TRUE(pair_transfer(self->s));
}

/* Commands of many threads */

#define MANY	100	/* more than the driver's command queue has entries */

static void *command_after_command(void *arg)
{
	struct side *s = arg;

	for (unsigned int i = 0; i < 20; i++) {
		struct ibv_pd *pd = ibv_alloc_pd(s->context);

		if (!pd || ibv_dealloc_pd(pd))
			return "command";
	}
	return NULL;
}

/* CMD-2: the driver has no more outstanding than the queue has entries: none is lost, or answered by
 * the completion of another. */
TEST_F_TIMEOUT(threads, more_commands_at_once_than_entries, 60)
{
	pthread_t threads[MANY];

	for (unsigned int i = 0; i < MANY; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, command_after_command, &self->s[0]));
	for (unsigned int i = 0; i < MANY; i++) {
		void *wrong;

		ASSERT_EQ(0, pthread_join(threads[i], &wrong));
		ASSERT_EQ(NULL, wrong);
	}
	ASSERT_TRUE(pair_transfer(self->s));
}

/* Of a QP that two threads change, one to RESET and one to INIT. */
struct changer {
	pthread_t thread;
	pthread_barrier_t *both;
	struct ibv_qp *qp;
	enum ibv_qp_state state;
};

#define CHANGES	3000

static void *change_state(void *arg)
{
	struct changer *c = arg;
	struct ibv_qp_attr attr = { .qp_state = c->state, .port_num = 1 };
	int mask = IBV_QP_STATE;

	if (c->state == IBV_QPS_INIT)
		mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	for (int i = 0; i < CHANGES; i++) {
		pthread_barrier_wait(c->both);
		/* The other may have been faster, which a change may not allow. */
		ibv_modify_qp(c->qp, &attr, mask);
		pthread_barrier_wait(c->both);
		pthread_barrier_wait(c->both);
	}
	return NULL;
}

/* Changes of a QP come one after the other: driver and device do not differ in which was the last. */
TEST_F(threads, changes_of_one_qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	struct changer c[2] = { { .state = IBV_QPS_RESET }, { .state = IBV_QPS_INIT } };
	struct ibv_qp *qp = side_create_qp(&self->s[0]);
	unsigned int differ = 0, inits = 0;
	pthread_barrier_t both;

	ASSERT_NE(NULL, qp);
	ASSERT_EQ(0, pthread_barrier_init(&both, NULL, 3));
	for (unsigned int i = 0; i < 2; i++) {
		c[i].qp = qp;
		c[i].both = &both;
		ASSERT_EQ(0, pthread_create(&c[i].thread, NULL, change_state, &c[i]));
	}
	for (int i = 0; i < CHANGES; i++) {
		pthread_barrier_wait(&both);
		pthread_barrier_wait(&both);
		/* The device tells the state. The driver takes INIT without attributes from INIT only. */
		if (qp_state(qp) == IBV_QPS_INIT) {
			inits++;
			differ += ibv_modify_qp(qp, &attr, IBV_QP_STATE) != 0;
		}
		pthread_barrier_wait(&both);
	}
	for (unsigned int i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_join(c[i].thread, NULL));
	EXPECT_EQ(0, differ);
	EXPECT_LT(0, inits);
	EXPECT_EQ(0, ibv_destroy_qp(qp));
}

TEST_HARNESS_MAIN
