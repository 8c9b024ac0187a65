// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * No step of the engine is long (harness/work.h), whatever programs, drivers and peers do: what is done for many
 * objects takes many steps. Each test makes work of one kind that grows with what a host asks for.
 */
#include <errno.h>

#include "core/srq.h"
#include "harness/datagram.h"
#include "harness/lossy.h"
#include "harness/work.h"
#include "nic/control.h"
#include "roce/rc.h"
#include "roce/repeat.h"
#include "roce/reorder.h"
#include "roce/roce.h"

#define MANY	8192u
#define MS	1000000ull

/* So many QPs on the same rings, in INIT; with a receive queue or without one. */
static void create_many(struct world *w, struct node *n, bool with_rq, uint32_t *qpns)
{
	struct skua_cmd cmd = create_qp_cmd(n);

	cmd.create_qp.log_sq_blocks = 0;
	cmd.create_qp.log_rq_size = 0;
	cmd.create_qp.sq = list(n->sq, 64);
	cmd.create_qp.rq = list(n->rq, 64);
	if (!with_rq) {
		cmd.create_qp.rq = (struct skua_pagelist){ 0 };
		cmd.create_qp.log_rq_stride = 0;
		cmd.create_qp.rq_dbr_addr = 0;
	}
	for (uint32_t i = 0; i < MANY; i++) {
		qpns[i] = must(w, n, cmd);
		must(w, n, init_cmd(qpns[i]));
	}
}

static unsigned int steps(struct world *w)
{
	unsigned int n = 0;

	while (engine_step(w->engines[0]))
		n++;
	return n;
}

/*
 * A round that does more than it may ends the test (harness/work.h). Where work is counted, a little is. Builds without
 * ASan do not count: in them no test here finds a step that is long.
 */
static void work_is_counted(void **state)
{
	struct world *w = *state;
	uint64_t before = work_done();

	must(w, &w->n[0], (struct skua_cmd)CMD(SKUA_CMD_NOP));
#ifdef __SANITIZE_ADDRESS__
	assert_in_range(work_done() - before, 10, work_most / 10);
#else
	assert_int_equal(work_done(), before);
#endif
}

/* A program that consumes each flushed CQE at once, and posts again. */
static struct {
	bool sq;
	unsigned int left;
} eager;

static void post_again(struct node *n, unsigned int vector)
{
	if (vector != 1)
		return;
	while (poll_eq(n))
		host_store32(&((struct skua_eq_dbr *)at(n, n->eq_dbr))->event, n->eq_ci);
	while (poll_cq(n)) {
		if (!eager.left)
			continue;
		eager.left--;
		if (eager.sq)
			host_store32(at(n, n->sq_dbr), ++n->sq_pi);
		else
			host_store32(at(n, n->rq_dbr), ++n->rq_pi);
	}
	arm(n, SKUA_CQ_ARM_NEXT, n->cq_ci);
}

static void flush_without_end(struct world *w, struct node *n, bool sq)
{
	eager.sq = sq;
	eager.left = 100000;
	for (int i = 0; i < 16; i++) {
		post(n, SKUA_WQE_NOP, SKUA_WQE_SIGNALED, 0, 0, 0, 0, 0);
		post_recv(n, n->buf, 64);
	}
	arm(n, SKUA_CQ_ARM_NEXT, 0x3fffffff);
	n->on_irq = post_again;
	must(w, n, state_cmd(n->qpn, SKUA_QPS_ERR));
	steps(w);
	n->on_irq = NULL;
	assert_int_equal(eager.left, 0);
	assert_int_equal(qp_state(w, n, n->qpn), SKUA_QPS_ERR);
	expect_none(w, n);
}

static void flushing_a_send_queue_takes_turns(void **state)
{
	struct world *w = *state;

	flush_without_end(w, &w->n[0], true);
}

static void flushing_a_receive_queue_takes_turns(void **state)
{
	struct world *w = *state;

	flush_without_end(w, &w->n[0], false);
}

#define LOG_LONG	13

/* All that was published when the command came is flushed before it completes. */
static void leaving_sqe_takes_steps(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_wqe_ctrl nop = { .opcode = SKUA_WQE_NOP, .nblocks = 1 };
	struct skua_cmd cmd;
	uint32_t flushed = 0;
	struct skua_cqe *cqe;

	new_completions(n, LOG_LONG + 1);
	n->cq = n->buf + (1u << 20);
	n->cqn = must(w, n, create_cq_cmd(n));
	new_queues(n);
	cmd = create_qp_cmd(n);
	cmd.create_qp.type = SKUA_QPT_UD;
	cmd.create_qp.log_sq_blocks = LOG_LONG;
	cmd.create_qp.sq = list(n->buf, 64u << LOG_LONG);
	n->qpn = must(w, n, cmd);
	ud_bring(w, n, QKEY, SKUA_QPS_RTS);
	for (uint64_t i = 0; i < 1u << LOG_LONG; i++) {
		memcpy(at(n, n->buf + i * 64), &nop, sizeof(nop));
		nop.cookie = htole32((uint32_t)i);
	}
	*(uint8_t *)at(n, n->buf) = 0xff;
	host_store32(at(n, n->sq_dbr), 1);
	ring(n, SKUA_DB_SQ, n->qpn, 1);
	expect(w, n, SKUA_CQE_NOP, SKUA_CQE_LOC_QP_OP_ERR);
	host_store32(at(n, n->sq_dbr), 1u << LOG_LONG);
	must(w, n, state_cmd(n->qpn, SKUA_QPS_RTS));
	while ((cqe = poll_cq(n))) {
		assert_int_equal(cqe->status, SKUA_CQE_WR_FLUSH_ERR);
		flushed++;
	}
	assert_int_equal(flushed, (1u << LOG_LONG) - 1);
	assert_int_equal(qp_state(w, n, n->qpn), SKUA_QPS_RTS);
}

/* The QP of a CQ that has overflown learns it at once, and all others soon. */
static void a_cq_fails_in_steps(void **state)
{
	static uint32_t qpns[MANY];
	struct world *w = *state;
	struct node *n = &w->n[0];

	create_many(w, n, true, qpns);
	skua_dev_inject(n->dev, SKUA_FAULT_CQ_ERROR, n->cqn);
	assert_true(steps(w) > MANY / 256);
	for (uint32_t i = 0; i < MANY; i++)
		assert_int_equal(((struct skua_qp *)numtab_get(&n->dev->qps, qpns[i]))->state, SKUA_QPS_ERR);
	assert_int_equal(qp_state(w, n, n->qpn), SKUA_QPS_ERR);
}

/* They take turns, and what is posted to any of them is flushed. */
static void many_qps_in_err_are_looked_at_in_turn(void **state)
{
	static uint32_t qpns[MANY];
	struct world *w = *state;
	struct node *n = &w->n[0];
	const struct skua_qp *qp;
	unsigned int looks;

	new_completions(n, 14);
	n->cq = n->buf;
	n->cqn = must(w, n, create_cq_cmd(n));
	create_many(w, n, true, qpns);
	for (uint32_t i = 0; i < MANY; i++)
		must(w, n, state_cmd(qpns[i], SKUA_QPS_ERR));
	settle(w);
	expect_none(w, n);
	/* They share a record: something is posted to each. */
	post_recv(n, n->buf, 64);
	for (unsigned int ms = 0; ms < MANY / 200 + 10; ms++) {
		looks = 0;
		engine_clock_advance(w->engines[0], MS);
		assert_false(timers_next(&w->engines[0]->timers) > engine_now(w->engines[0]) + 10 * MS);
		timers_run(&w->engines[0]->timers, engine_now(w->engines[0]), &(int32_t){ TURN_COST });
		TAILQ_FOREACH(qp, &n->dev->active, active_entry)
			looks++;
		assert_true(looks <= 256);
		settle(w);
	}
	for (uint32_t i = 0; i < MANY; i++)
		expect(w, n, SKUA_CQE_RECV, SKUA_CQE_WR_FLUSH_ERR);
	expect_none(w, n);
}

/* Where nothing can be posted that would not be rung, nothing is looked at. */
static void qps_in_err_without_a_receive_queue_are_left_alone(void **state)
{
	static uint32_t qpns[MANY];
	struct world *w = *state;
	struct node *n = &w->n[0];

	create_many(w, n, false, qpns);
	for (uint32_t i = 0; i < MANY; i++)
		must(w, n, state_cmd(qpns[i], SKUA_QPS_ERR));
	settle(w);
	assert_int_equal(timers_next(&w->engines[0]->timers), TIMER_NEVER);
}

static void a_reset_takes_steps(void **state)
{
	static uint32_t qpns[MANY];
	struct world *w = *state;
	struct node *n = &w->n[0];
	unsigned int rounds = 0;
	uint64_t before;

	create_many(w, n, true, qpns);
	/* However often the driver asks for it: the server hands over so many messages in a step. */
	before = work_done();
	for (int i = 0; i < 64; i++)
		reg_write(n, SKUA_REG_CONTROL, SKUA_CONTROL_RESET);
	work_check(before);
	assert_int_equal(reg_read(n, SKUA_REG_STATUS), 0);
	assert_int_equal(reg_read(n, SKUA_REG_CONTROL), SKUA_CONTROL_RESET);
	/* Until then nothing is taken. */
	reg_write(n, SKUA_REG_CMD_LOG_SIZE, 3);
	assert_int_equal(reg_read(n, SKUA_REG_CMD_LOG_SIZE), 0);
	while (reg_read(n, SKUA_REG_STATUS) != SKUA_STATUS_READY) {
		assert_true(engine_step(w->engines[0]));
		rounds++;
	}
	assert_true(rounds > 10);
	assert_int_equal(reg_read(n, SKUA_REG_CONTROL), 0);
	assert_int_equal(n->dev->qps.count + n->dev->cqs.count + n->dev->eqs.count + n->dev->mrs.count +
			 n->dev->pds.count, 0);
	n->used = 0;
	revive(w, n);
}

/* Large pages over many small regions of host memory. */
static void a_page_list_of_many_regions_takes_steps(void **state)
{
	const uint64_t base = 1ull << 40, page = 32u << 20;
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_cmd cmd = create_mr_cmd(n);

	for (uint64_t i = 0; i < page / 4096; i++)
		assert_int_equal(skua_dev_mem_map(n->dev, base + i * 4096, 4096, n->extra, true), 0);
	cmd.create_mr.length = htole64(6 * page);
	cmd.create_mr.pages = (struct skua_pagelist){ .npages = htole32(6), .log_page = 25 };
	for (int i = 0; i < 6; i++)
		cmd.create_mr.pages.addr[i] = htole64(base | SKUA_PL_PRESENT);
	must(w, n, cmd);
	/* One hole in the midst. */
	assert_int_equal(skua_dev_mem_unmap(n->dev, base + page / 2, 4096), 0);
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_BAD_ADDRESS);
	for (uint64_t i = 0; i < page / 4096; i++)
		assert_int_equal(skua_dev_mem_unmap(n->dev, base + i * 4096, 4096), i == page / 8192 ? -ENOENT : 0);
}

/* A command that nobody waits for. */
static void begin(struct node *n, struct skua_cmd cmd)
{
	cmd.hdr.id = htole32(n->cmd_pi);
	memcpy(at(n, n->cmd_ring + (n->cmd_pi & ((1 << LOG_CMD) - 1)) * sizeof(cmd)), &cmd, sizeof(cmd));
	host_store32(&((struct skua_dbr *)at(n, n->cmd_dbr))->pi, ++n->cmd_pi);
	ring(n, SKUA_DB_CMD, 0, n->cmd_pi);
}

/* CREATE_MR of @npages small pages, up to 2^18. */
static struct skua_cmd large_mr_cmd(struct node *n, uint32_t npages)
{
	struct skua_cmd cmd = create_mr_cmd(n);
	uint64_t top = take(n, 4096), leaf = take(n, 4096);

	for (int i = 0; i < 512; i++) {
		((uint64_t *)at(n, top))[i] = htole64(leaf | SKUA_PL_PRESENT);
		((uint64_t *)at(n, leaf))[i] = htole64(n->buf | SKUA_PL_PRESENT);
	}
	cmd.create_mr.length = htole64(npages * 4096ull);
	cmd.create_mr.pages = (struct skua_pagelist){ .npages = htole32(npages), .level = 2, .log_page = 12,
						      .addr = { htole64(top | SKUA_PL_PRESENT) } };
	return cmd;
}

/* After the command, before the next one. */
static void the_pages_of_a_region_are_freed_in_steps(void **state)
{
	const uint32_t npages = 7 * PAGES_FREE_STEP + 5;
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint64_t used = n->dev->pages_used;

	begin(n, object_cmd(SKUA_CMD_DESTROY_MR, must(w, n, large_mr_cmd(n, npages))));
	begin(n, (struct skua_cmd)CMD(SKUA_CMD_NOP));
	while (!n->dev->old_pages)
		assert_true(engine_step(w->engines[0]));
	assert_int_equal(n->dev->old_pages->n, npages);
	assert_int_equal(n->dev->pages_used, used);
	/* What is left over goes with the first part. */
	for (uint32_t left = 7; left-- > 0;) {
		assert_int_equal(n->dev->cmdq.cpl_pi, n->cmd_pi - 1);
		assert_true(engine_step(w->engines[0]));
		assert_int_equal(n->dev->old_pages ? n->dev->old_pages->n : 0, left * PAGES_FREE_STEP);
	}
	settle(w);
	assert_int_equal(n->dev->cmdq.cpl_pi, n->cmd_pi);
}

/* Those of smaller regions, and those of larger ones. */
static void a_reset_frees_pages_in_steps(void **state)
{
	static const uint32_t npages[] = { PAGES_FREE_STEP / 2, 4 * PAGES_FREE_STEP };
	struct world *w = *state;
	struct node *n = &w->n[0];
	unsigned int pages_in_all = 0, rounds = 0;

	for (int i = 0; i < 2; i++) {
		struct skua_cmd cmd = large_mr_cmd(n, npages[i]);

		for (int j = 0; j < 16; j++) {
			must(w, n, cmd);
			pages_in_all += npages[i];
		}
	}
	reg_write(n, SKUA_REG_CONTROL, SKUA_CONTROL_RESET);
	for (; reg_read(n, SKUA_REG_STATUS) != SKUA_STATUS_READY; rounds++)
		assert_true(engine_step(w->engines[0]));
	/* The last part of a step may be a whole one. */
	assert_true(rounds >= pages_in_all / PAGES_FREE_STEP / 2);
	assert_null(n->dev->old_pages);
	n->used = 0;
	revive(w, n);
}

static uint32_t make_srq(struct world *w, struct node *n)
{
	struct skua_cmd cmd = CMD(SKUA_CMD_CREATE_SRQ, .create_srq = {
		.pdn = htole32(n->pdn), .log_size = LOG_RQ, .log_stride = 6,
		.dbr_addr = htole64(n->rq_dbr), .ring = list(n->rq, 64u << LOG_RQ) });

	return must(w, n, cmd);
}

/* As if so many QPs had taken an entry each, and had gone. */
static struct srq *give_back(struct node *n, uint32_t srqn)
{
	static const struct recv_wqe wqe = { .num_sge = 1 };
	struct srq *srq = numtab_get(&n->dev->srqs, srqn);

	for (uint32_t i = 0; i < MANY; i++)
		srq_return(srq, &wqe);
	assert_int_equal(srq->num_returned, MANY);
	return srq;
}

static void entries_that_came_back_go_in_steps(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint32_t srqn = make_srq(w, n);
	struct srq *srq = give_back(n, srqn);
	unsigned int rounds = 0;

	begin(n, object_cmd(SKUA_CMD_DESTROY_SRQ, srqn));
	for (; numtab_get(&n->dev->srqs, srqn); rounds++) {
		assert_true(srq->num_returned || !rounds);
		assert_true(engine_step(w->engines[0]));
	}
	assert_true(rounds > MANY / 256);
	/* So they do at a reset. */
	give_back(n, make_srq(w, n));
	reg_write(n, SKUA_REG_CONTROL, SKUA_CONTROL_RESET);
	for (rounds = 0; reg_read(n, SKUA_REG_STATUS) != SKUA_STATUS_READY; rounds++)
		assert_true(engine_step(w->engines[0]));
	assert_true(rounds > MANY / 256);
	n->used = 0;
	revive(w, n);
}

/* The longest ring that there may be, of the smallest pages; a reset in the midst of it leaves nothing behind. */
static void a_long_ring_takes_steps(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint64_t top = take(n, 4096), leaf = take(n, 4096);
	struct skua_cmd cmd = create_cq_cmd(n);

	for (int i = 0; i < 512; i++) {
		((uint64_t *)at(n, top))[i] = htole64(leaf | SKUA_PL_PRESENT);
		((uint64_t *)at(n, leaf))[i] = htole64((n->buf + (uint64_t)i * 4096) | SKUA_PL_PRESENT);
	}
	cmd.create_cq.log_size = LIMIT_LOG_CQE;
	cmd.create_cq.ring = (struct skua_pagelist){ .npages = htole32(64u << (LIMIT_LOG_CQE - 12)), .level = 2,
						     .log_page = 12, .addr = { htole64(top | SKUA_PL_PRESENT) } };
	must(w, n, cmd);
	must(w, n, object_cmd(SKUA_CMD_DESTROY_CQ, n->number));
	begin(n, cmd);
	engine_step(w->engines[0]);
	assert_non_null(n->dev->cmdq.making);
	n->used = 0;
	revive(w, n);
	assert_null(n->dev->cmdq.making);
}

/* Events that found no room are written as fast as turns allow, once there is some. */
static void events_that_waited_take_turns(void **state)
{
	static uint32_t qpns[MANY];
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_cmd cmd = create_eq_cmd(n);
	const unsigned int log = 12;
	uint64_t ring_at = IOVA + (8u << 20);

	must(w, n, object_cmd(SKUA_CMD_DESTROY_EQ, n->aeqn));
	create_many(w, n, false, qpns);
	assert_true(n->used < 8u << 20);
	cmd.create_eq.type = SKUA_EQ_ASYNC;
	cmd.create_eq.log_size = log;
	cmd.create_eq.dbr_addr = htole64(n->aeq_dbr);
	cmd.create_eq.ring = list(ring_at, 64u << log);
	host_store32(at(n, n->aeq_dbr), 0);
	must(w, n, cmd);
	skua_dev_inject(n->dev, SKUA_FAULT_CQ_ERROR, n->cqn);
	steps(w);
	assert_int_equal(n->dev->async_eq->pi, 1u << log);
	host_store32(at(n, n->aeq_dbr), 1u << log);
	must(w, n, (struct skua_cmd)CMD(SKUA_CMD_NOP));
	steps(w);
	assert_int_equal(n->dev->async_eq->pi, 2u << log);
	host_store32(at(n, n->aeq_dbr), 2u << log);
	must(w, n, (struct skua_cmd)CMD(SKUA_CMD_NOP));
	steps(w);
	/* One of each QP, and the CQ's. */
	assert_int_equal(n->dev->async_eq->pi, MANY + 2);
}

static unsigned int fired;

static void fire(struct timer *timer)
{
	(void)timer;
	fired++;
}

static void timers_of_one_time_fire_in_turns(void **state)
{
	static struct timer timers[1000];
	struct timers t = { 0 };

	(void)state;
	fired = 0;
	for (int i = 0; i < 1000; i++) {
		timers[i] = (struct timer){ .fire = fire };
		timer_set(&t, &timers[i], 5);
	}
	assert_false(timers_run(&t, 4, &(int32_t){ TURN_COST }));
	assert_true(timers_run(&t, 5, &(int32_t){ TURN_COST }));
	assert_in_range(fired, 1, 100);
	while (timers_run(&t, 5, &(int32_t){ TURN_COST }))
		;
	assert_int_equal(fired, 1000);
	timers_free(&t);
}

static int32_t budget;

static void fire_at_cost(struct timer *timer)
{
	fire(timer);
	budget -= TURN_COST / 2;
}

static void timers_that_cost_more_are_fewer(void **state)
{
	static struct timer timers[10];
	struct timers t = { 0 };

	(void)state;
	fired = 0;
	for (int i = 0; i < 10; i++) {
		timers[i] = (struct timer){ .fire = fire_at_cost };
		timer_set(&t, &timers[i], 5);
	}
	for (unsigned int n = 2; n <= 10; n += 2) {
		budget = TURN_COST;
		assert_true(timers_run(&t, 5, &budget));
		assert_int_equal(fired, n);
	}
	timers_free(&t);
}

static void see(const void *info, void *arg)
{
	const struct skua_qp_info *qp = info;
	uint32_t **next = arg;

	*(*next)++ = qp->qpn;
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* @n QPs are there all the time, and others came or went; @seen to @end were listed. */
static void each_is_listed_once(const uint32_t *qpns, size_t n, uint32_t *seen, const uint32_t *end)
{
	qsort(seen, (size_t)(end - seen), sizeof(*seen), by_number);
	for (size_t i = 0; i < n; i++)
		assert_non_null(bsearch(&qpns[i], seen, (size_t)(end - seen), sizeof(*seen), by_number));
	for (const uint32_t *p = seen + 1; p < end; p++)
		assert_true(p[0] != p[-1]);
}

/* As skuactl has it, while others go. */
static void objects_are_listed_in_steps(void **state)
{
	static uint32_t qpns[MANY], seen[2 * MANY];
	struct skua_walk walk = { 0 };
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint32_t *next = seen, gone = 0;
	unsigned int rounds = 0;
	uint64_t before;
	bool more;

	create_many(w, n, false, qpns);
	do {
		before = work_done();
		more = skua_dev_for_each_qp(n->dev, &walk, see, &next);
		work_check(before);
		rounds++;
		for (int i = 0; i < 40 && gone < MANY / 2; i++)
			must(w, n, object_cmd(SKUA_CMD_DESTROY_QP, qpns[gone++]));
	} while (more);
	assert_true(rounds > 10);
	each_is_listed_once(qpns + gone, MANY - gone, seen, next);
}

/* The table has grown, and objects move as others come: that does not make a list longer than a little. */
static void objects_are_listed_while_they_move(void **state)
{
	static uint32_t qpns[MANY], seen[2 * MANY];
	struct skua_walk walk = { 0 };
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint32_t *next = seen;
	uint64_t before;
	bool more = true;

	create_many(w, n, false, qpns);
	while (!n->dev->qps.old)
		must(w, n, create_qp_cmd(n));
	for (unsigned int rounds = 0; more; rounds++) {
		assert_true(rounds < 60);
		before = work_done();
		more = skua_dev_for_each_qp(n->dev, &walk, see, &next);
		work_check(before);
		must(w, n, object_cmd(SKUA_CMD_DESTROY_QP, must(w, n, create_qp_cmd(n))));
	}
	each_is_listed_once(qpns, MANY, seen, next);
}

/* A program on another processor that writes to its records and rings what it likes, whenever it likes. */
struct hostile {
	struct node mine;		/* its own indices */
	bool stop, greedy;
	uint64_t seed;
};

static uint32_t draw(struct hostile *h)
{
	h->seed = h->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(h->seed >> 33);
}

static void write_anything(struct hostile *h)
{
	struct node *n = &h->mine;
	uint32_t r = draw(h);
	void *dbr = at(n, r & 1 ? n->sq_dbr : n->rq_dbr);

	switch (r / 2 % 8) {
	case 0:
		__atomic_store_n((uint64_t *)at(n, (r & 1 ? n->sq : n->rq) + draw(h) % (64 * 8) * 8),
				 draw(h) % 256 ? 0 : draw(h), __ATOMIC_RELAXED);
		break;
	case 1:
		host_store32(dbr, draw(h) % 4096 ? host_load32(dbr) - 1 : draw(h));
		break;
	case 2:
		__atomic_store_n(&((struct skua_cq_dbr *)at(n, n->cq_dbr))->arm,
				 htole64(SKUA_CQ_ARM(SKUA_CQ_ARM_NEXT, draw(h), 0)), __ATOMIC_RELAXED);
		break;
	case 3:
		host_store32(at(n, n->cq_dbr), host_load32(at(n, n->cq_dbr)) + draw(h) % 32);
		break;
	default:
		host_store32(dbr, host_load32(dbr) + draw(h) % 8);
	}
}

/* Half of the time it does all that it can to have more flushed. */
static void *be_hostile(void *arg)
{
	struct hostile *h = arg;
	struct node *n = &h->mine;

	while (!__atomic_load_n(&h->stop, __ATOMIC_RELAXED)) {
		if (!h->greedy)
			write_anything(h);
		else if (poll_cq(n))
			host_store32(at(n, n->rq_dbr), ++n->rq_pi);
	}
	return NULL;
}

/* Whatever comes of it is the program's own affair: no step is long, the device lives, and so does its neighbour. */
static void a_hostile_program_makes_no_step_long(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0], *peer = &w->n[1];
	struct eq *eq = numtab_get(&n->dev->eqs, n->eqn);
	struct hostile h = { .seed = 1 };
	pthread_t thread;

	for (int round = 0; round < 60; round++) {
		h.stop = false;
		h.greedy = round % 2;
		for (int i = 0; i < 32; i++)
			post_recv(n, n->buf, 4096);
		h.mine = *n;
		assert_int_equal(pthread_create(&thread, NULL, be_hostile, &h), 0);
		for (int i = 0; i < 300; i++) {
			ring(n, SKUA_DB_SQ, n->qpn, 0);
			engine_step(w->engines[0]);
			if (i == 100)
				must(w, n, state_cmd(n->qpn, SKUA_QPS_ERR));
			if (i % 32 == 0)
				engine_clock_advance(w->engines[0], 10 * MS);
		}
		__atomic_store_n(&h.stop, true, __ATOMIC_RELAXED);
		assert_int_equal(pthread_join(thread, NULL), 0);
		/* All anew. */
		must(w, n, object_cmd(SKUA_CMD_DESTROY_QP, n->qpn));
		must(w, n, object_cmd(SKUA_CMD_DESTROY_CQ, n->cqn));
		memset(at(n, n->cq), 0, 64u << LOG_CQ);
		memset(at(n, n->cq_dbr), 0, sizeof(struct skua_cq_dbr));
		n->cq_ci = 0;
		/* The driver goes on consuming events. */
		host_store32(&((struct skua_eq_dbr *)at(n, n->eq_dbr))->ci, (uint32_t)eq->pi);
		n->cqn = must(w, n, create_cq_cmd(n));
		n->qpn = must(w, n, create_qp_cmd(n));
		reconnect(w, n, peer);
		reconnect(w, peer, n);
		assert_int_equal(reg_read(n, SKUA_REG_STATUS), SKUA_STATUS_READY | SKUA_STATUS_ENABLED);
	}
	post(n, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, n->buf, 4096, peer->buf, peer->key, 0);
	expect(w, n, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
}

/* So many windows of type 2, bound by the node's QP. */
static void bind_many(struct world *w, struct node *n, uint32_t windows)
{
	struct skua_cmd mr = create_mr_cmd(n);
	struct {
		struct skua_wqe_ctrl ctrl;
		struct skua_wqe_bind_mw bind;
		uint8_t padding[16];
	} k = {
		.ctrl = { .opcode = SKUA_WQE_BIND_MW, .flags = SKUA_WQE_SIGNALED, .nblocks = 1 },
		.bind = { .addr = htole64(n->buf), .length = htole64(8), .access = htole32(SKUA_ACCESS_REMOTE_READ) },
	};

	mr.create_mr.access = htole32(SKUA_ACCESS_MW_BIND);
	k.bind.mr_key = htole32(must(w, n, mr));
	for (uint32_t i = 0; i < windows; i++) {
		k.ctrl.cookie = htole32(n->sq_pi);
		k.bind.key = htole32(must(w, n, (struct skua_cmd)CMD(SKUA_CMD_CREATE_MW, .create_mw = {
			.pdn = htole32(n->pdn), .type = SKUA_MW_TYPE_2 })));
		post_block(n, &k);
		expect(w, n, SKUA_CQE_BIND_MW, SKUA_CQE_SUCCESS);
	}
}

/* RESET, DESTROY_QP, and a reset of the device in the midst of the latter. */
static void the_windows_of_a_qp_are_freed_in_steps(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];

	for (int way = 0; way < 3; way++) {
		struct skua_qp *qp = numtab_get(&n->dev->qps, n->qpn);
		struct skua_cmd cmd = way ? object_cmd(SKUA_CMD_DESTROY_QP, n->qpn) : state_cmd(n->qpn, SKUA_QPS_RESET);

		bind_many(w, n, MANY);
		if (!way) {
			/* The state that it was in is looked at once. */
			cmd.modify_qp.mask |= htole32(SKUA_QP_ATTR_CUR_STATE);
			cmd.modify_qp.attr.cur_state = SKUA_QPS_RTS;
		}
		begin(n, cmd);
		for (int i = 0; i < 4; i++)
			engine_step(w->engines[0]);
		assert_false(LIST_EMPTY(&qp->windows));
		if (way < 2) {
			assert_true(steps(w) > MANY / 1024);
			must(w, n, (struct skua_cmd)CMD(SKUA_CMD_NOP));
		} else {
			reg_write(n, SKUA_REG_CONTROL, SKUA_CONTROL_RESET);
			steps(w);
			assert_int_equal(n->dev->num_mws, 0);
			n->used = 0;
			revive(w, n);
		}
		if (!way) {
			assert_true(LIST_EMPTY(&qp->windows));
			reconnect(w, n, &w->n[1]);
		} else if (way == 1) {
			new_queues(n);
			n->qpn = must(w, n, create_qp_cmd(n));
			reconnect(w, n, &w->n[1]);
		}
	}
}

/* A raw packet QP beside the node's, with a CQ of its own, and receives. */
static uint32_t receiving_qp(struct world *w, struct node *n)
{
	struct completions old_cq = new_completions(n, LOG_CQ);
	struct queues old = new_queues(n);
	struct skua_cmd cmd;
	uint32_t qpn;

	n->cqn = must(w, n, create_cq_cmd(n));
	cmd = create_qp_cmd(n);
	cmd.create_qp.type = SKUA_QPT_ETH;
	n->qpn = qpn = must(w, n, cmd);
	for (uint8_t state = SKUA_QPS_INIT; state <= SKUA_QPS_RTR; state++)
		must(w, n, state_cmd(qpn, state));
	for (int i = 0; i < 1 << LOG_RQ; i++)
		post_recv(n, n->buf, 9018);
	use_queues(n, old);
	use_completions(n, old_cq);
	return qpn;
}

static void flow_to(struct world *w, struct node *n, uint32_t qpn, uint8_t type, uint8_t dmac)
{
	struct skua_cmd cmd = CMD(SKUA_CMD_CREATE_FLOW, .flow = {
		.qpn = htole32(qpn), .type = type, .value.dmac[5] = dmac, .mask.dmac[5] = dmac });

	must(w, n, cmd);
}

/* Each frame is compared with all flows, and of each packet of a train there are as many copies as there can be. */
static void flows_and_sniffers_make_no_step_long(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t qpn = receiving_qp(w, b);

	for (unsigned int i = 0; i < LIMIT_SNIFFER; i++)
		flow_to(w, b, receiving_qp(w, b), SKUA_FLOW_SNIFFER, 0);
	for (unsigned int i = LIMIT_SNIFFER; i < LIMIT_FLOW; i++)
		flow_to(w, b, qpn, SKUA_FLOW_NORMAL, 0x80);
	must(w, a, state_cmd(a->qpn, SKUA_QPS_RESET));
	must(w, b, state_cmd(b->qpn, SKUA_QPS_RESET));
	for (int i = 0; i < 2; i++) {
		struct node *n = &w->n[i], *peer = &w->n[!i];
		struct skua_cmd rtr = rtr_cmd(n->qpn, peer, peer->qpn);

		rtr.modify_qp.attr.path_mtu = 1;
		must(w, n, init_cmd(n->qpn));
		must(w, n, rtr);
		must(w, n, rts_cmd(n->qpn));
	}
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 1 << 20, b->buf, b->key, 0);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	eth_queues(w, a);
	memcpy(at(a, a->buf), b->mac, 6);
	memcpy((uint8_t *)at(a, a->buf) + 6, a->mac, 6);
	for (int i = 0; i < 60; i++)
		post(a, SKUA_WQE_SEND, 0, a->buf, 60, 0, 0, 0);
	post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 60, 0, 0, 0);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
}

/* The node's QP attaches to as many groups as there can be. They differ in the bytes at @at. */
static void join_all(struct world *w, struct node *n, unsigned int at)
{
	struct skua_cmd cmd = CMD(SKUA_CMD_ATTACH_MCAST, .mcast = {
		.qpn = htole32(n->qpn), .mgid = { 0xff, 0x0e, [15] = 1 } });

	for (uint32_t i = 0; i < LIMIT_MCAST_GROUPS; i++) {
		memcpy(cmd.mcast.mgid + at, &i, sizeof(i));
		must(w, n, cmd);
	}
}

#define LAST_BYTES	12
#define OTHER_BYTES	4

/* DESTROY_QP, and a reset of the device. */
static void groups_are_left_in_steps(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint64_t before;

	ud_queues(w, n, SKUA_QPT_UD, SKUA_QPS_RESET);
	join_all(w, n, LAST_BYTES);
	begin(n, object_cmd(SKUA_CMD_DESTROY_QP, n->qpn));
	while (n->dev->mcast.groups == LIMIT_MCAST_GROUPS)
		assert_true(engine_step(w->engines[0]));
	assert_int_not_equal(n->dev->mcast.groups, 0);
	must(w, n, (struct skua_cmd)CMD(SKUA_CMD_NOP));
	assert_int_equal(n->dev->mcast.groups, 0);
	for (int i = 0; i < 32; i++) {
		ud_queues(w, n, SKUA_QPT_UD, SKUA_QPS_RESET);
		join_all(w, n, LAST_BYTES);
	}
	before = work_done();
	reg_write(n, SKUA_REG_CONTROL, SKUA_CONTROL_RESET);
	work_check(before);
	steps(w);
	assert_int_equal(n->dev->mcast.groups, 0);
	assert_int_equal(reg_read(n, SKUA_REG_STATUS), SKUA_STATUS_READY);
	n->used = 0;
	revive(w, n);
}

/* All groups have the same MAC and are in one bucket. Two QPs send to the group that is found last: as much as one turn
 * would allow if lookups were free. */
static void groups_that_look_alike_make_no_step_long(void **state)
{
	static const uint8_t gid[16] = { 0x20, 1, 0xd, 0xb8, [15] = 1 }, mgid[16] = { 0xff, 0x0e, [15] = 1 };
	struct skua_wqe_ud to = ud_to_group(mgid);
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct queues other;

	set_gid(w, n, 1, gid, n->mac, SKUA_VLAN_NONE);
	to.av.sgid_index = 1;
	ud_queues(w, n, SKUA_QPT_UD, SKUA_QPS_RTS);
	join_all(w, n, OTHER_BYTES);
	other = ud_queues(w, n, SKUA_QPT_UD, SKUA_QPS_RTS);
	for (int q = 0; q < 2; q++) {
		for (int i = 0; i < 125; i++)
			post_ud(n, SKUA_WQE_SEND, i == 124 ? SKUA_WQE_SIGNALED : 0, 0, 0, to, 0);
		other = use_queues(n, other);
	}
	assert_true(steps(w) > 100);
	for (int q = 0; q < 2; q++)
		expect(w, n, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	assert_int_equal(STAT(w, n, rdma_rx_mcast), 250);
}

#define LOADED	32

/* As if the QP had sent each packet at another time. */
static void add_runs(struct node *n, uint32_t qpn)
{
	struct sent *sent = &rc_of(numtab_get(&n->dev->qps, qpn))->req.sent;

	for (uint32_t i = 0; i < SENT_RUNS_QP; i++) {
		assert_true(sent_reserve(n->dev, sent));
		sent_add(n->dev, sent, i, 1, true, 0);
	}
}

/* As if in each direction one packet had been lost. */
static void hold_packets(struct node *n, uint32_t qpn)
{
	struct rc_qp *rc = rc_of(numtab_get(&n->dev->qps, qpn));

	for (uint32_t i = 1; i <= REPEAT_WINDOW; i++) {
		struct train t = { .psn = i, .npkts = 1 };

		assert_true(reorder_hold(n->dev, &rc->req.early_responses, 0, &t));
		assert_true(reorder_hold(n->dev, &rc->resp.early_requests, 0, &t));
	}
}

static void load_qps(struct world *w, struct node *n, void (*load)(struct node *n, uint32_t qpn))
{
	for (int i = 0; i < LOADED; i++) {
		uint32_t qpn = must(w, n, create_qp_cmd(n));

		must(w, n, init_cmd(qpn));
		load(n, qpn);
	}
}

/* Because they are flushed, or by a reset of the device. */
static void what_qps_keep_of_packets_is_freed_in_steps(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];

	for (int way = 0; way < 4; way++) {
		uint64_t before;

		load_qps(w, n, way & 1 ? add_runs : hold_packets);
		if (way & 2) {
			skua_dev_inject(n->dev, SKUA_FAULT_CQ_ERROR, n->cqn);
			assert_true(steps(w) >= LOADED / 2);
		}
		before = work_done();
		reg_write(n, SKUA_REG_CONTROL, SKUA_CONTROL_RESET);
		work_check(before);
		assert_true(steps(w) >= LOADED / 2 || way & 2);
		assert_int_equal(n->dev->roce->used_runs, 0);
		assert_int_equal(n->dev->roce->held_bytes, 0);
		n->used = 0;
		revive(w, n);
	}
}

/* Packets that are freed may take all of a turn. The receives are flushed in the next one. */
static void a_flush_of_packets_goes_on_with_receives(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];

	hold_packets(n, n->qpn);
	post_recv(n, n->buf, 64);
	must(w, n, state_cmd(n->qpn, SKUA_QPS_ERR));
	steps(w);
	assert_non_null(poll_cq(n));
}

#define LONGEST_PMTU	4096u
#define GAP_PACKETS	(REPEAT_WINDOW + 3)	/* the first is missing, and two come after those that can be held */

/* A WRITE or a READ whose first packet is lost; the data go to @n. */
struct gap {
	struct world *w;
	struct node *n, *from;
	bool read;
	uint32_t psn;			/* of the first packet */
};

static struct rc_qp *rc_of_node(struct node *n)
{
	return rc_of(numtab_get(&n->dev->qps, n->qpn));
}

/* How many packets have been placed? */
static uint32_t placed(const struct gap *g)
{
	const struct rc_qp *rc = rc_of_node(g->n);

	return psn_add(g->read ? rc->req.oldest_unacked_psn : rc->conn.qp.epsn, -g->psn);
}

static void packet_arrives(const struct gap *g, uint32_t i)
{
	struct train t = train_from(g->n, g->read ? TRAIN_READ_RESP : TRAIN_WRITE, g->psn + i);
	uint8_t *data = (uint8_t *)at(g->from, g->from->buf) + i * LONGEST_PMTU;
	struct seglist payload = { 1, LONGEST_PMTU, { { data, LONGEST_PMTU } } };

	t.pmtu = LONGEST_PMTU;
	t.payload = &payload;
	t.msg_len = GAP_PACKETS * LONGEST_PMTU;
	t.first = !i;
	t.last = i + 1 == GAP_PACKETS;
	t.ack_req = t.last;
	t.syndrome = AETH_ACK;
	arrive_only(g->n, g->from, t);
}

/* All packets that can be held are held. No packet of the first node comes through. */
static struct gap hold_all(struct world *w, bool read)
{
	struct repeat_frame hello = { .type = REPEAT_HELLO };
	struct node *a = &w->n[0], *b = &w->n[1];
	struct gap g = { .w = w, .n = read ? a : b, .from = read ? b : a, .read = read };

	for (int i = 0; i < 2; i++)
		reconnect(w, &w->n[i], &w->n[!i]);
	use_path_mtu(w, 5);
	for (int i = 0; i < 2; i++) {
		memcpy(hello.path.smac, w->n[!i].mac, sizeof(hello.path.smac));
		repeat_hello(w->n[i].dev, &hello);
	}
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 8, b->buf, b->key, 0);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	g.psn = rc_of_node(a)->req.next_psn;
	rc_of_node(a)->req.congestion.window = 2 * GAP_PACKETS;
	IMPAIR(a, "drop=100%,dir=out");
	fill(g.from, GAP_PACKETS * LONGEST_PMTU, 5);
	post(a, read ? SKUA_WQE_READ : SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, GAP_PACKETS * LONGEST_PMTU,
	     b->buf, b->key, 0);
	steps(w);
	for (uint32_t i = 1; i <= REPEAT_WINDOW; i++)
		packet_arrives(&g, i);
	steps(w);
	/* What comes now may answer the retransmission of the first packet. */
	pass(w, MS / 10);
	return g;
}

/* The first packet arrives, and @behind ones after those that are held. No call places more than a turn's worth. */
static void close_gap(const struct gap *g, uint32_t behind)
{
	uint64_t before = work_done();

	packet_arrives(g, 0);
	for (uint32_t i = 0; i < behind; i++)
		packet_arrives(g, REPEAT_WINDOW + 1 + i);
	work_check(before);
	assert_in_range(placed(g), 1, 2 * TURN_COST / LONGEST_PMTU);
}

/* What comes meanwhile does not overtake them, and the peer takes none of them for lost. */
static void packets_that_were_held_are_placed_in_steps(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	for (int i = 0; i < 4; i++) {
		bool read = i & 1;
		struct gap g = hold_all(w, read);
		uint64_t before = STAT(w, a, retransmits);
		uint32_t behind = i & 2, n;

		close_gap(&g, behind);
		do {
			n = placed(&g);
			engine_step(w->engines[0]);
			assert_in_range(placed(&g) - n, 1, TURN_COST / LONGEST_PMTU + 1);
		} while (placed(&g) < REPEAT_WINDOW + 1 + behind);
		for (n = placed(&g); n < GAP_PACKETS; n++)
			packet_arrives(&g, n);
		expect(w, a, read ? SKUA_CQE_READ : SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
		assert_memory_equal(at(a, a->buf), at(b, b->buf), GAP_PACKETS * LONGEST_PMTU);
		assert_int_equal(STAT(w, a, retransmits), before);
		assert_int_equal(g.n->dev->roce->held_bytes, 0);
		assert_true(skua_dev_set_impair(a->dev, NULL));
	}
}

/* The QP ends before all of them are placed. */
static void a_qp_ends_between_packets_that_were_held(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 4; i++) {
		struct gap g = hold_all(w, i & 1);

		close_gap(&g, 0);
		assert_int_not_equal(g.n->dev->roce->held_bytes, 0);
		must(w, g.n, state_cmd(g.n->qpn, i & 2 ? SKUA_QPS_RESET : SKUA_QPS_ERR));
		steps(w);
		assert_int_equal(g.n->dev->roce->held_bytes, 0);
		assert_true(skua_dev_set_impair(w->n[0].dev, NULL));
		while (poll_cq(&w->n[0]))
			;
	}
}

/* A READ of @npkts packets of 1 KiB, or what brings the answer of an atomic to the start of the buffer. */
static void post_request(struct node *a, struct node *b, uint8_t opcode, uint32_t npkts, uint64_t to)
{
	struct {
		struct skua_wqe_ctrl ctrl;
		struct skua_wqe_atomic atomic;
		struct skua_sge sge;
	} k = {
		.ctrl = { .opcode = opcode, .flags = SKUA_WQE_SIGNALED, .nblocks = 1, .num_sge = 1,
			  .cookie = htole32(a->sq_pi) },
		.atomic = { .raddr = htole64(b->buf), .rkey = htole32(b->key) },
		.sge = { htole64(to), htole32(8), htole32(a->key) },
	};

	if (opcode == SKUA_WQE_READ)
		post(a, opcode, SKUA_WQE_SIGNALED, to, npkts * 1024, b->buf, b->key, 0);
	else
		post_block(a, &k);
}

/* A response by reference, as a QP of the same engine sends it: the list of its payload is scratch of the engine. */
static void response_by_reference(struct node *a, struct node *b, uint32_t psn, uint32_t i, bool last)
{
	struct train t = train_from(a, TRAIN_READ_RESP, psn + i);
	struct seglist *src = &a->dev->engine->src;

	src->n = 1;
	src->bytes = 1024;
	src->seg[0] = (struct seg){ (uint8_t *)at(b, b->buf) + i * 1024, 1024 };
	t.payload = src;
	t.first = !i;
	t.last = last;
	t.syndrome = AETH_ACK;
	arrive_only(a, b, t);
}

/*
 * The turn ends before the response of an atomic that was held. So it is placed when the response behind it comes. The
 * payload of that one stays as it was sent.
 */
static void a_held_atomic_does_not_touch_what_comes_behind_it(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t psn = rc_of_node(a)->req.next_psn;
	uint64_t to = a->buf + 8192;
	struct train t = train_from(a, TRAIN_ATOMIC_RESP, psn + 2);

	fill(b, 4096, 5);
	IMPAIR(a, "drop=100%,dir=out");
	rc_of_node(a)->req.congestion.window = 16;
	post_request(a, b, SKUA_WQE_READ, 2, to);
	post_request(a, b, SKUA_WQE_FETCH_ADD, 1, a->buf);
	post_request(a, b, SKUA_WQE_READ, 1, to + 2048);
	steps(w);
	t.swap_add = 37;
	arrive_only(a, b, t);
	response_by_reference(a, b, psn, 1, true);
	a->engine->turn = COPY_COST;
	response_by_reference(a, b, psn, 0, false);
	assert_int_equal(rc_of_node(a)->req.oldest_unacked_psn, psn_add(psn, 2));
	assert_int_not_equal(a->dev->roce->held_bytes, 0);
	a->engine->turn = TURN_COST;
	response_by_reference(a, b, psn, 3, true);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	expect(w, a, SKUA_CQE_FETCH_ADD, SKUA_CQE_SUCCESS);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	assert_int_equal(le64toh(*(uint64_t *)at(a, a->buf)), 37);
	assert_memory_equal(at(a, to), at(b, b->buf), 2048);
	assert_memory_equal(at(a, to + 2048), (uint8_t *)at(b, b->buf) + 3 * 1024, 1024);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(work_is_counted, setup_stepped, teardown),
		STEPPED(flushing_a_send_queue_takes_turns, "ERR-1"),
		STEPPED(flushing_a_receive_queue_takes_turns, "DBR-10"),
		STEPPED(leaving_sqe_takes_steps, "QPS-12"),
		STEPPED(a_cq_fails_in_steps, "ERR-9"),
		STEPPED(many_qps_in_err_are_looked_at_in_turn, "DBR-10"),
		STEPPED(qps_in_err_without_a_receive_queue_are_left_alone, "DBR-10"),
		STEPPED(a_reset_takes_steps, "REG-6 RST-1 RST-2"),
		STEPPED(a_page_list_of_many_regions_takes_steps, "CMD-8"),
		STEPPED(the_pages_of_a_region_are_freed_in_steps, "CMD-8"),
		STEPPED(a_reset_frees_pages_in_steps, "RST-1 RST-2"),
		STEPPED(a_long_ring_takes_steps, "CMD-8"),
		STEPPED(entries_that_came_back_go_in_steps, "CMD-8 SRQ-7"),
		STEPPED(events_that_waited_take_turns, "EVT-5"),
		STEPPED(timers_of_one_time_fire_in_turns, "ROC-13"),
		STEPPED(timers_that_cost_more_are_fewer, "ROC-13"),
		STEPPED(objects_are_listed_in_steps, "CMD-8"),
		STEPPED(objects_are_listed_while_they_move, "CMD-8"),
		STEPPED(the_windows_of_a_qp_are_freed_in_steps, "MW-10 CMD-8 RST-1"),
		STEPPED(groups_are_left_in_steps, "CMD-8 RST-1 SEC-8"),
		STEPPED(groups_that_look_alike_make_no_step_long, "MCG-3 SEC-8"),
		STEPPED(what_qps_keep_of_packets_is_freed_in_steps, "RST-1 ERR-1 SEC-8"),
		STEPPED(a_flush_of_packets_goes_on_with_receives, "ERR-1"),
		STEPPED(packets_that_were_held_are_placed_in_steps, "REP-6 REP-14 REC-17 SEC-8"),
		STEPPED(a_qp_ends_between_packets_that_were_held, "ERR-1"),
		STEPPED(a_held_atomic_does_not_touch_what_comes_behind_it, "REC-17"),
		STEPPED(a_hostile_program_makes_no_step_long, "RST-5"),
		STEPPED(flows_and_sniffers_make_no_step_long, "RAW-7 RAW-8"),
	};

	work_most = WORK_OF_STEPS;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
