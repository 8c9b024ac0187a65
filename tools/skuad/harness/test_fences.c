// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Taking memory away under traffic, one way after the other, on either side of the wire, with both
 * devices on one engine and on two. Once the device says that it is done, not a byte of that
 * memory is written, and none that is changed there is read. After a reset the device is good as
 * new; the peer gets its error, and goes on with it.
 */
#include <sys/mman.h>
#include <time.h>

#include "core/device.h"
#include "harness/harness.h"
#include "roce/roce.h"

#define OLD	0x11	/* what all memory holds at first */
#define CANARY	0x77	/* what the host of the victim stores when its memory is its own again */
#define BYTES	100000u
#define DEPTH	24
#define QUARTER	(BUF_SIZE / 4)

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){ 0, ms * 1000000 }, NULL);
}

/* A QP that gives up after a tenth of a second. */
static void impatient(struct world *w, struct node *n)
{
	struct skua_qp_attr attr = { .timeout = 8, .retry_cnt = 2 };
	struct skua_cmd cmd = modify_cmd(n->qpn, SKUA_QP_ATTR_TIMEOUT | SKUA_QP_ATTR_RETRY_CNT, attr);

	must(w, n, state_cmd(n->qpn, SKUA_QPS_SQD));
	while (command(w, n, &cmd) != SKUA_CMD_OK)
		;
	must(w, n, state_cmd(n->qpn, SKUA_QPS_RTS));
}

/* WRITEs from the first quarter of a to the second of b, READs from the third of b to the fourth
 * of a, and SENDs from the first of a to the fourth of b. */
static void traffic(struct node *a, struct node *b, int n)
{
	for (int i = 0; i < n; i++) {
		switch (i % 3) {
		case 0:
			post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, BYTES, b->buf + QUARTER, b->key, 0);
			break;
		case 1:
			post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf + 3 * QUARTER, BYTES,
			     b->buf + 2 * QUARTER, b->key, 0);
			break;
		default:
			post_recv(b, b->buf + 3 * QUARTER, BYTES);
			post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, BYTES, 0, 0, 0);
		}
	}
}

static void do_reset(void *n)
{
	skua_dev_reset(((struct node *)n)->dev);
}

static void bus_master_off(void *n)
{
	skua_dev_set_bus_master(((struct node *)n)->dev, false);
}

static void bus_master_on(void *n)
{
	skua_dev_set_bus_master(((struct node *)n)->dev, true);
}

static void unmap_all(void *n)
{
	skua_dev_mem_unmap_all(((struct node *)n)->dev);
}

static void unmap_region(void *arg)
{
	assert_int_equal(skua_dev_mem_unmap(((struct node *)arg)->dev, IOVA, MEM_SIZE), 0);
}

static void map_region(void *arg)
{
	struct node *n = arg;

	assert_int_equal(skua_dev_mem_map(n->dev, IOVA, MEM_SIZE, n->mem, true), 0);
}

static void map_again(void *arg)
{
	struct node *n = arg;

	map_region(n);
	assert_int_equal(skua_dev_mem_map(n->dev, EXTRA, EXTRA_SIZE, n->extra, true), 0);
}

/* The ways. */
static void destroy_mr(struct world *w, struct node *n)
{
	must(w, n, object_cmd(SKUA_CMD_DESTROY_MR, n->key));
}

/* The region gets, as @mask says, another PD, no rights, or no bytes. */
static void modify_mr(struct world *w, struct node *n, uint32_t mask, uint32_t pdn)
{
	must(w, n, (struct skua_cmd)CMD(SKUA_CMD_MODIFY_MR, .modify_mr = {
		.key = htole32(n->key), .mask = htole32(mask), .pdn = htole32(pdn) }));
}

static void change_pd(struct world *w, struct node *n)
{
	modify_mr(w, n, SKUA_MR_SET_PD, must(w, n, (struct skua_cmd)CMD(SKUA_CMD_CREATE_PD)));
}

static void change_rights(struct world *w, struct node *n)
{
	modify_mr(w, n, SKUA_MR_SET_ACCESS, 0);
}

static void change_pages(struct world *w, struct node *n)
{
	modify_mr(w, n, SKUA_MR_SET_PAGES, 0);
}

static void revoke_mr(struct world *w, struct node *n)
{
	must(w, n, object_cmd(SKUA_CMD_INVALIDATE_MR, n->key));
}

static void destroy_qp(struct world *w, struct node *n)
{
	must(w, n, object_cmd(SKUA_CMD_DESTROY_QP, n->qpn));
}

static void reset_qp(struct world *w, struct node *n)
{
	must(w, n, state_cmd(n->qpn, SKUA_QPS_RESET));
}

static void register_reset(struct world *w, struct node *n)
{
	(void)w;
	reg_write(n, SKUA_REG_CONTROL, SKUA_CONTROL_RESET);
	assert_int_equal(reg_read(n, SKUA_REG_STATUS), SKUA_STATUS_READY);
}

static void function_reset(struct world *w, struct node *n)
{
	(void)w;
	on_engine(n, do_reset, n);
}

static void bus_mastering(struct world *w, struct node *n)
{
	(void)w;
	on_engine(n, bus_master_off, n);
}

static void unmap(struct world *w, struct node *n)
{
	(void)w;
	on_engine(n, unmap_all, n);
}

static void unmap_one(struct world *w, struct node *n)
{
	(void)w;
	on_engine(n, unmap_region, n);
}

static const struct way {
	const char *name;
	void (*take)(struct world *w, struct node *n);
	void (*give_back)(void *n);	/* before the reset that brings the device back */
	bool everything;		/* rings too */
} ways[] = {
	{ "DESTROY_MR", destroy_mr, NULL, false },
	{ "DESTROY_QP", destroy_qp, NULL, false },
	{ "RESET of the QP", reset_qp, NULL, false },
	{ "RESET", register_reset, NULL, true },
	{ "FLR", function_reset, NULL, true },
	{ "bus mastering", bus_mastering, bus_master_on, true },
	{ "unmap", unmap, map_again, true },
	{ "unmap of a region", unmap_one, map_region, true },
};

/* Those that are not for regions of type FAST. */
static const struct way changes[] = {
	{ "MODIFY_MR, the PD", change_pd, NULL, false },
	{ "MODIFY_MR, the pages", change_pages, NULL, false },
	{ "INVALIDATE_MR", revoke_mr, NULL, false },
};

static bool all(const uint8_t *p, size_t len, uint8_t value)
{
	return p[0] == value && !memcmp(p, p + 1, len - 1);
}

/* Time enough for whatever is still on its way. */
static void linger(struct world *w)
{
	if (w->threaded)
		sleep_ms(2);
	else
		settle(w);
}

static void steps(struct world *w, int n)
{
	if (w->threaded)
		for (volatile int i = 0; i < n * 1000; i++)
			;
	else
		for (int i = 0; i < n; i++)
			engine_step(w->engines[0]);
}

/* Both ends go to RTS once more, and their traffic is right. */
static void they_go_on(struct world *w, struct node *victim, struct node *other)
{
	struct node *n[2] = { victim, other };

	while (poll_cq(other))
		;
	reconnect(w, victim, other);
	reconnect(w, other, victim);
	while (poll_cq(other))
		;
	for (int i = 0; i < 2; i++) {
		fill(n[i], BYTES, 7);
		post(n[i], SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, n[i]->buf, BYTES, n[!i]->buf + QUARTER,
		     n[!i]->key, 0);
		expect(w, n[i], SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
		assert_memory_equal(at(n[!i], n[!i]->buf + QUARTER), at(n[i], n[i]->buf), BYTES);
	}
}

static void take_away(const struct way *way, bool threaded, int victim_is, int round)
{
	struct world *w = world_create(threaded);
	struct node *a = &w->n[0], *b = &w->n[1], *victim = &w->n[victim_is], *other = &w->n[!victim_is];
	/* What the device may not touch: from the rings on, or the region alone. */
	uint8_t *own;
	size_t size;
	int status = SKUA_CQE_SUCCESS;

	/* All of it will be written: a page fault for each 4 KiB would take most of the time. */
	for (int i = 0; i < 2; i++)
		(void)madvise(w->n[i].mem, MEM_SIZE, MADV_HUGEPAGE);
	memset(at(a, a->buf), OLD, BUF_SIZE);
	memset(at(b, b->buf), OLD, BUF_SIZE);
	impatient(w, a);
	traffic(a, b, DEPTH);
	steps(w, round);
	way->take(w, victim);
	own = way->everything ? victim->mem : at(victim, victim->buf);
	size = way->everything ? MEM_SIZE : BUF_SIZE;
	memset(own, CANARY, size);
	linger(w);
	if (!all(own, size, CANARY))
		fail_msg("%s of %d, round %d: memory was written", way->name, victim_is, round);
	/* The requester learns of it by an error, or by nothing where it is the victim. */
	for (int i = 0; victim == b && i < DEPTH && status == SKUA_CQE_SUCCESS; i++) {
		struct skua_cqe *cqe = threaded ? await_cqe(w, a) : poll_cq(a);

		for (int j = 0; !cqe && j < 20; j++) {
			pass(w, 4096 << 13);
			cqe = poll_cq(a);
		}
		assert_non_null(cqe);
		status = cqe->status;
	}
	if (status != SKUA_CQE_SUCCESS)
		assert_true(status == SKUA_CQE_RETRY_EXC_ERR || status == SKUA_CQE_REM_ACCESS_ERR ||
			    status == SKUA_CQE_REM_OP_ERR);
	if (memchr(at(other, other->buf), CANARY, BUF_SIZE))
		fail_msg("%s of %d, round %d: memory was read", way->name, victim_is, round);
	if (way->everything) {
		if (way->give_back)
			on_engine(victim, way->give_back, victim);
		revive(w, victim);
		they_go_on(w, victim, other);
	}
	world_destroy(w);
}

static void go_way(const struct way *way, bool threaded, int rounds)
{
	for (int victim = 0; victim < 2; victim++)
		for (int round = 0; round < rounds; round++)
			take_away(way, threaded, victim, threaded ? round * 40 : round);
}

static void each_way(bool threaded, int rounds)
{
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		go_way(&ways[i], threaded, rounds);
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		go_way(&changes[i], threaded, rounds);
}

#ifndef __SANITIZE_THREAD__
static void one_engine(void **state)
{
	(void)state;
	each_way(false, 16);
}
#endif

static void two_engines(void **state)
{
	(void)state;
	each_way(true, 6);
}

/* A region of type FAST that the QPs of @n use, for reading by peers. */
static uint32_t fast_region(struct world *w, struct node *n)
{
	struct skua_cmd cmd = create_mr_cmd(n);

	cmd.create_mr.type = SKUA_MR_FAST;
	cmd.create_mr.length = htole64(BUF_SIZE);
	cmd.create_mr.pages = list(n->buf, BUF_SIZE);
	return must(w, n, cmd);
}

/*
 * a READs from b; then b's region is invalidated, by b itself or by a SEND of a, on another QP.
 * When b is told that, it changes the memory: a must not see it.
 */
static void invalidate(bool threaded, bool remote, int round)
{
	struct world *w = world_create(threaded);
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = b->key, fast = fast_region(w, b);
	struct queues reader[2];
	struct skua_cqe *cqe;

	memset(at(b, b->buf), OLD, BUF_SIZE);
	b->key = fast;
	for (int i = 0; i < DEPTH; i++)
		post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, BYTES * 2, b->buf, b->key, 0);
	/* A second pair of QPs. */
	reader[0] = new_queues(a);
	reader[1] = new_queues(b);
	a->qpn = must(w, a, create_qp_cmd(a));
	b->qpn = must(w, b, create_qp_cmd(b));
	reconnect(w, a, b);
	reconnect(w, b, a);
	b->key = key;
	for (int i = 0; i < 4; i++)
		post_recv(b, b->buf + 3 * QUARTER, 64);
	steps(w, round);
	if (remote) {
		for (int i = 0; i < 4; i++)
			post(a, i == 1 ? SKUA_WQE_SEND_INV : SKUA_WQE_SEND, 0, 0, 0, 0, 0, i == 1 ? fast : 0);
		/* In order, the one that waits and those behind it. */
		for (uint32_t i = 0; i < 2; i++) {
			cqe = await_cqe(w, b);
			assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
			assert_int_equal(le32toh(cqe->cookie), i);
			assert_int_equal(!!(cqe->flags & SKUA_CQE_WITH_INV), i == 1);
		}
		assert_int_equal(le32toh(cqe->inv_key), fast);
	} else {
		post(b, SKUA_WQE_LOCAL_INV, SKUA_WQE_SIGNALED, 0, 0, 0, 0, fast);
		expect(w, b, SKUA_CQE_LOCAL_INV, SKUA_CQE_SUCCESS);
	}
	memset(at(b, b->buf), CANARY, 3 * QUARTER);
	linger(w);
	for (uint32_t i = 2; remote && i < 4; i++)
		assert_int_equal(le32toh(await_cqe(w, b)->cookie), i);
	/* The rest of the READs was refused. */
	for (int i = 0; i < DEPTH; i++) {
		cqe = await_cqe(w, a);
		if (cqe->status != SKUA_CQE_SUCCESS)
			break;
	}
	assert_true(cqe->status == SKUA_CQE_SUCCESS || cqe->status == SKUA_CQE_REM_ACCESS_ERR);
	if (memchr(at(a, a->buf), CANARY, QUARTER))
		fail_msg("round %d: invalid memory was read", round);
	(void)reader;
	world_destroy(w);
}

static void invalidated_by_itself(void **state)
{
	(void)state;
	for (int round = 0; round < 12; round++) {
		invalidate(false, false, round);
		invalidate(true, false, round * 20);
	}
}

static void invalidated_by_the_peer(void **state)
{
	(void)state;
	for (int round = 0; round < 12; round++) {
		invalidate(false, true, round);
		invalidate(true, true, round * 20);
	}
}

/*
 * The same with nothing left to chance: a's engine sleeps while a READ response of b lies in the ring
 * to it, which refers to b's memory. b's command has to wait for it.
 */
struct arrival {
	struct node *n, *peer;
	struct train t;
};

static void let_arrive(void *arg)
{
	struct arrival *a = arg;

	arrive_only(a->n, a->peer, a->t);
}

static void invalidate_by_send(struct world *w, struct node *b)
{
	struct arrival send = { b, &w->n[0], train_from(b, TRAIN_SEND_INV, FIRST_PSN + 59) };

	struct arrival behind = { b, &w->n[0], train_from(b, TRAIN_SEND, FIRST_PSN + 60) };
	struct skua_cqe *cqe;

	send.t.imm = b->key;
	post_recv(b, b->buf + 3 * QUARTER, 64);
	post_recv(b, b->buf + 3 * QUARTER, 64);
	on_engine(b, let_arrive, &send);
	on_engine(b, let_arrive, &behind);
	/* What comes behind waits for it. */
	cqe = await_cqe(w, b);
	assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
	assert_true(cqe->flags & SKUA_CQE_WITH_INV);
	expect(w, b, SKUA_CQE_RECV, SKUA_CQE_SUCCESS);
}

/* From RESET or from the beginning, to RTS. */
static void bring_to_rts(struct world *w, struct node *n, const struct node *peer)
{
	must(w, n, init_cmd(n->qpn));
	must(w, n, rtr_cmd(n->qpn, peer, peer->qpn));
	must(w, n, rts_cmd(n->qpn));
}

static void hold_much(void *arg)
{
	struct node *n = arg;

	n->dev->roce->held_bytes += HELD_MAX;
}

static void hold_less(void *arg)
{
	struct node *n = arg;

	n->dev->roce->held_bytes -= HELD_MAX;
}

/*
 * A QP with an SRQ is reset while its CQEs wait: they never come, and the SRQ has its entries again. @full: there is no
 * memory for CQEs that wait, so the first is lost and the QP is in error.
 */
static void reset_with_srq(struct world *w, struct node *b, bool full)
{
	struct node *a = &w->n[0];
	struct arrival first = { .n = b, .peer = a }, second = first;
	struct skua_cmd srq, qp;
	uint32_t seen = 0;

	new_queues(b);
	srq = (struct skua_cmd)CMD(SKUA_CMD_CREATE_SRQ, .create_srq = {
		.pdn = htole32(b->pdn), .log_size = LOG_RQ, .log_stride = 6,
		.dbr_addr = htole64(b->rq_dbr), .ring = list(b->rq, 64u << LOG_RQ) });
	qp = create_qp_cmd(b);
	qp.create_qp.srqn = htole32(must(w, b, srq));
	qp.create_qp.log_rq_size = 0;
	qp.create_qp.log_rq_stride = 0;
	qp.create_qp.rq_dbr_addr = 0;
	qp.create_qp.rq = (struct skua_pagelist){ 0 };
	b->qpn = must(w, b, qp);
	bring_to_rts(w, b, a);
	post_recv(b, b->buf + 3 * QUARTER, 64);
	post_recv(b, b->buf + 3 * QUARTER, 64);
	first.t = train_from(b, TRAIN_SEND_INV, FIRST_PSN);
	first.t.imm = b->key;
	second.t = train_from(b, TRAIN_SEND, FIRST_PSN + 1);
	for (int i = 0; full && i < 2; i++)
		on_engine(b, hold_much, b);
	on_engine(b, let_arrive, &first);
	on_engine(b, let_arrive, &second);
	for (int i = 0; full && i < 2; i++)
		on_engine(b, hold_less, b);
	assert_null(poll_cq(b));
	assert_int_equal(qp_state(w, b, b->qpn), full ? SKUA_QPS_ERR : SKUA_QPS_RTS);
	hold_naps(false);
	must(w, b, state_cmd(b->qpn, SKUA_QPS_RESET));
	bring_to_rts(w, b, a);
	for (uint32_t i = 0; i < 2; i++) {
		struct skua_cqe *cqe;

		first.t = train_from(b, TRAIN_SEND, FIRST_PSN + i);
		on_engine(b, let_arrive, &first);
		cqe = await_cqe(w, b);
		assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
		assert_false(cqe->flags & SKUA_CQE_WITH_INV);
		seen |= 1u << le32toh(cqe->cookie);
	}
	assert_int_equal(seen, 3);
	assert_null(poll_cq(b));
}

static void reset_behind_invalidation(struct world *w, struct node *b)
{
	reset_with_srq(w, b, false);
}

static void reset_without_memory(struct world *w, struct node *b)
{
	reset_with_srq(w, b, true);
}

/*
 * The same with an RQ of its own. The first CQE is lost for want of memory, so its receive is the oldest that is left:
 * both are flushed, in order.
 */
static void flush_without_memory(struct world *w, struct node *b)
{
	struct node *a = &w->n[0];
	struct arrival send = { .n = b, .peer = a };

	new_queues(b);
	b->qpn = must(w, b, create_qp_cmd(b));
	bring_to_rts(w, b, a);
	post_recv(b, b->buf + 3 * QUARTER, 64);
	post_recv(b, b->buf + 3 * QUARTER, 64);
	send.t = train_from(b, TRAIN_SEND_INV, FIRST_PSN);
	send.t.imm = b->key;
	for (int i = 0; i < 2; i++)
		on_engine(b, hold_much, b);
	on_engine(b, let_arrive, &send);
	for (int i = 0; i < 2; i++)
		on_engine(b, hold_less, b);
	hold_naps(false);
	for (uint32_t i = 0; i < 2; i++) {
		struct skua_cqe *cqe = await_cqe(w, b);

		assert_int_equal(cqe->status, SKUA_CQE_WR_FLUSH_ERR);
		assert_int_equal(le32toh(cqe->cookie), i);
	}
	assert_null(poll_cq(b));
	/* It waits for the trains, of which the flush says nothing. */
	must(w, b, state_cmd(b->qpn, SKUA_QPS_RESET));
}

/* An SRQ of the domain, with two entries. */
static uint32_t xrc_srq(struct world *w, struct node *n, uint32_t xrcdn, uint64_t handle)
{
	struct skua_cmd cmd;
	uint32_t srqn;

	new_queues(n);
	cmd = (struct skua_cmd)CMD(SKUA_CMD_CREATE_SRQ, .create_srq = {
		.pdn = htole32(n->pdn), .log_size = LOG_RQ, .log_stride = 6, .srq_handle = htole64(handle),
		.xrcdn = htole32(xrcdn), .cqn = htole32(n->cqn), .dbr_addr = htole64(n->rq_dbr),
		.ring = list(n->rq, 64u << LOG_RQ) });
	srqn = must(w, n, cmd);
	post_recv(n, n->buf + 3 * QUARTER, 64);
	post_recv(n, n->buf + 3 * QUARTER, 64);
	return srqn;
}

static void bring_target_to_rts(struct world *w, struct node *n, const struct node *peer)
{
	struct skua_cmd rts = rts_cmd(n->qpn);

	rts.modify_qp.mask = htole32(SKUA_QP_ATTR_STATE | SKUA_QP_ATTR_TIMEOUT | SKUA_QP_ATTR_SQ_PSN);
	must(w, n, init_cmd(n->qpn));
	must(w, n, rtr_cmd(n->qpn, peer, peer->qpn));
	must(w, n, rts);
}

/* XRC-14: of the CQEs of a QP that wait, those for an SRQ that is destroyed never come, and the others do. */
static void destroy_srq_behind_invalidation(struct world *w, struct node *b)
{
	struct node *a = &w->n[0];
	uint32_t xrcdn = must(w, b, (struct skua_cmd)CMD(SKUA_CMD_CREATE_XRCD));
	const uint32_t srqn[] = { xrc_srq(w, b, xrcdn, 100), xrc_srq(w, b, xrcdn, 101) };
	struct skua_cqe *cqe;

	b->qpn = must(w, b, (struct skua_cmd)CMD(SKUA_CMD_CREATE_QP, .create_qp = {
		.type = SKUA_QPT_XRC_TGT, .xrcdn = htole32(xrcdn) }));
	bring_target_to_rts(w, b, a);
	for (uint32_t i = 0; i < 4; i++) {
		struct arrival send = { b, a, train_from(b, i ? TRAIN_SEND : TRAIN_SEND_INV, FIRST_PSN + i) };

		send.t.transport = TRANSPORT_XRC;
		send.t.srqn = srqn[i % 2];
		send.t.imm = b->key;
		on_engine(b, let_arrive, &send);
	}
	assert_null(poll_cq(b));
	must(w, b, object_cmd(SKUA_CMD_DESTROY_SRQ, srqn[0]));
	hold_naps(false);
	for (uint32_t i = 0; i < 2; i++) {
		cqe = await_cqe(w, b);
		assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
		assert_int_equal(le64toh(cqe->qp_handle), 101);
		assert_int_equal(le32toh(cqe->cookie), i);
	}
	assert_null(poll_cq(b));
	/* Nobody was told of the invalidation. */
	must(w, b, object_cmd(SKUA_CMD_DESTROY_MR, b->key));
}

/* Other QPs hold all the packets that came too early for which there is room: no reason to fail this one. */
static void invalidate_beside_much_that_is_held(struct world *w, struct node *b)
{
	on_engine(b, hold_much, b);
	invalidate_by_send(w, b);
	on_engine(b, hold_less, b);
}

static void invalidate_locally(struct world *w, struct node *b)
{
	post(b, SKUA_WQE_LOCAL_INV, SKUA_WQE_SIGNALED, 0, 0, 0, 0, b->key);
	expect(w, b, SKUA_CQE_LOCAL_INV, SKUA_CQE_SUCCESS);
}

/* Bind the window with @key to all of the buffer, or unbind it. */
static void bind_window(struct world *w, struct node *n, uint32_t key, uint32_t mr_key, uint64_t length)
{
	struct {
		struct skua_wqe_ctrl ctrl;
		struct skua_wqe_bind_mw bind;
		uint8_t padding[16];
	} k = {
		.ctrl = { .opcode = SKUA_WQE_BIND_MW, .flags = SKUA_WQE_SIGNALED, .nblocks = 1,
			  .cookie = htole32(n->sq_pi) },
		.bind = { .key = htole32(key), .mr_key = htole32(mr_key), .addr = htole64(n->buf),
			  .length = htole64(length), .access = htole32(SKUA_ACCESS_REMOTE_READ) },
	};

	post_block(n, &k);
	expect(w, n, SKUA_CQE_BIND_MW, SKUA_CQE_SUCCESS);
}

static uint32_t window(struct world *w, struct node *n, uint8_t type)
{
	struct skua_cmd mr = create_mr_cmd(n);
	uint32_t key;

	mr.create_mr.access = htole32(SKUA_ACCESS_MW_BIND);
	mr.create_mr.length = htole64(BUF_SIZE);
	mr.create_mr.pages = list(n->buf, BUF_SIZE);
	key = must(w, n, (struct skua_cmd)CMD(SKUA_CMD_CREATE_MW, .create_mw = {
		.pdn = htole32(n->pdn), .type = type }));
	bind_window(w, n, key, must(w, n, mr), BUF_SIZE);
	return key;
}

static uint32_t window_1(struct world *w, struct node *n)
{
	return window(w, n, SKUA_MW_TYPE_1);
}

static uint32_t window_2(struct world *w, struct node *n)
{
	return window(w, n, SKUA_MW_TYPE_2);
}

static void unbind(struct world *w, struct node *n)
{
	bind_window(w, n, n->key, 0, 0);
}

static void destroy_mw(struct world *w, struct node *n)
{
	must(w, n, object_cmd(SKUA_CMD_DESTROY_MW, n->key));
}

/* A region on demand with all of the buffer's pages. */
static uint32_t region_on_demand(struct world *w, struct node *n)
{
	struct skua_cmd eq = create_eq_cmd(n), mr = create_mr_cmd(n);
	uint64_t pages = take(n, 4096);
	uint32_t key;

	eq.create_eq.type = SKUA_EQ_FAULT;
	eq.create_eq.log_size = 0;
	eq.create_eq.dbr_addr = htole64(take(n, 64));
	eq.create_eq.ring = list(take(n, 64), 64);
	must(w, n, eq);
	mr.create_mr.access |= htole32(SKUA_ACCESS_ON_DEMAND);
	mr.create_mr.length = htole64(BUF_SIZE);
	mr.create_mr.pages = (struct skua_pagelist){ .log_page = 12 };
	key = must(w, n, mr);
	for (uint64_t first = 0; first < BUF_SIZE / 4096; first += SKUA_UPDATE_PAGES_MAX) {
		for (uint64_t i = 0; i < SKUA_UPDATE_PAGES_MAX; i++)
			((uint64_t *)at(n, pages))[i] = htole64((n->buf + (first + i) * 4096) | SKUA_PL_PRESENT);
		must(w, n, (struct skua_cmd)CMD(SKUA_CMD_UPDATE_PAGES, .update_pages = { .key = htole32(key),
			.first = htole64(first), .count = htole64(SKUA_UPDATE_PAGES_MAX), .list = htole64(pages) }));
	}
	return key;
}

static void drop_pages(struct world *w, struct node *n)
{
	must(w, n, (struct skua_cmd)CMD(SKUA_CMD_UPDATE_PAGES, .update_pages = { .key = htole32(n->key),
		.count = htole64(BUF_SIZE / 4096) }));
}

static void response_under_way(const char *name, uint32_t (*key)(struct world *w, struct node *n),
			       void (*way)(struct world *w, struct node *n))
{
	struct world *w = world_create(true);
	struct node *a = &w->n[0], *b = &w->n[1];
	struct arrival read = { b, a, train_from(b, TRAIN_READ_REQ, FIRST_PSN) };
	pthread_t thread;

	memset(at(a, a->buf), OLD, BUF_SIZE);
	memset(at(b, b->buf), OLD, BUF_SIZE);
	b->key = key(w, b);
	/* a has asked; b did not hear it yet. */
	must(w, b, port_cmd(SKUA_PORT_SET_FLAGS, 0));
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, 60000, b->buf, b->key, 0);
	sleep_ms(5);
	must(w, b, port_cmd(SKUA_PORT_SET_FLAGS, SKUA_PORT_F_ENABLE | SKUA_PORT_F_ROCE));
	thread = begin_nap(a);
	read.t.rkey = b->key;
	read.t.raddr = b->buf;
	read.t.msg_len = 60000;
	on_engine(b, let_arrive, &read);
	sleep_ms(5);
	way(w, b);
	memset(at(b, b->buf), CANARY, BUF_SIZE);
	pthread_join(thread, NULL);
	assert_int_equal(await_cqe(w, a)->status, SKUA_CQE_SUCCESS);
	if (memchr(at(a, a->buf), CANARY, 60000))
		fail_msg("%s: memory was read", name);
	world_destroy(w);
}

static void a_response_that_is_under_way(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		response_under_way(ways[i].name, fast_region, ways[i].take);
	response_under_way("LOCAL_INV", fast_region, invalidate_locally);
	response_under_way("SEND with invalidate", fast_region, invalidate_by_send);
	response_under_way("SEND with invalidate, without room", fast_region, invalidate_beside_much_that_is_held);
	/* They let the nap end, before what waits for that. */
	hold_naps(true);
	response_under_way("SEND with invalidate, then RESET", fast_region, reset_behind_invalidation);
	hold_naps(true);
	response_under_way("SEND with invalidate, without memory, then RESET", fast_region, reset_without_memory);
	hold_naps(true);
	response_under_way("SEND with invalidate, without memory, then the flush", fast_region, flush_without_memory);
	hold_naps(true);
	response_under_way("SEND with invalidate, then DESTROY_SRQ", fast_region, destroy_srq_behind_invalidation);
}

/* The same for memory that windows give access to. */
static void a_response_through_a_window(void **state)
{
	(void)state;
	response_under_way("BIND_MW", window_1, unbind);
	response_under_way("DESTROY_MW", window_1, destroy_mw);
	response_under_way("DESTROY_MW", window_2, destroy_mw);
	response_under_way("LOCAL_INV", window_2, invalidate_locally);
	response_under_way("SEND with invalidate", window_2, invalidate_by_send);
	response_under_way("RESET of the QP", window_2, reset_qp);
	response_under_way("DESTROY_QP", window_2, destroy_qp);
}

static uint32_t whole_region(struct world *w, struct node *n)
{
	(void)w;
	return n->key;
}

/* The new pages are there, and the trains from the old ones are waited for. */
static void reset_behind_change(struct world *w, struct node *n)
{
	struct skua_cmd cmd = CMD(SKUA_CMD_MODIFY_MR, .modify_mr = {
		.key = htole32(n->key), .mask = htole32(SKUA_MR_SET_PAGES), .iova = htole64(n->buf),
		.length = htole64(4096), .pages = list(n->buf + QUARTER, 4096) });

	memcpy(at(n, n->cmd_ring + n->cmd_pi % (1 << LOG_CMD) * sizeof(cmd)), &cmd, sizeof(cmd));
	host_store32(&((struct skua_dbr *)at(n, n->cmd_dbr))->pi, ++n->cmd_pi);
	ring(n, SKUA_DB_CMD, 0, n->cmd_pi);
	sleep_ms(5);
	register_reset(w, n);
}

static void a_response_of_a_region_that_changes(void **state)
{
	(void)state;
	response_under_way("MODIFY_MR, then RESET", whole_region, reset_behind_change);
	response_under_way("MODIFY_MR, the PD", whole_region, change_pd);
	response_under_way("MODIFY_MR, the rights", whole_region, change_rights);
	response_under_way("MODIFY_MR, the pages", whole_region, change_pages);
	response_under_way("INVALIDATE_MR", whole_region, revoke_mr);
}

/* Pages that become absent. */
static void a_response_of_pages_that_go(void **state)
{
	(void)state;
	response_under_way("UPDATE_PAGES", region_on_demand, drop_pages);
}

/* A QP that ends while the CQE of an invalidation waits: it comes, and then the flush. */
static void the_error_of_a_qp_with_an_invalidation(void **state)
{
	(void)state;
	for (int round = 0; round < 10; round++) {
		struct world *w = world_create(true);
		struct node *a = &w->n[0], *b = &w->n[1];
		uint32_t fast = fast_region(w, b), next = 0;

		for (int i = 0; i < 8; i++)
			post_recv(b, b->buf, 64);
		for (int i = 0; i < 4; i++)
			post(a, SKUA_WQE_READ, 0, a->buf, BYTES, b->buf, fast, 0);
		post(a, SKUA_WQE_SEND_INV, 0, 0, 0, 0, 0, fast);
		post(a, SKUA_WQE_SEND, 0, 0, 0, 0, 0, 0);
		steps(w, round * 30);
		must(w, b, state_cmd(b->qpn, SKUA_QPS_ERR));
		while (next < 8)
			assert_int_equal(le32toh(await_cqe(w, b)->cookie), next++);
		world_destroy(w);
	}
}

int main(void)
{
#define TEST(f, rules) { rules ": " #f, f, NULL, NULL, NULL }
	const struct CMUnitTest tests[] = {
#ifndef __SANITIZE_THREAD__	/* one thread does it all */
		TEST(one_engine, "MR-12 MR-15 MEM-12 MEM-13 MEM-14 MEM-16 RST-1 RST-2 RST-7 QPS-7 INI-2"),
#endif
		TEST(two_engines, "MEM-12 MEM-13 MEM-14 MEM-16 RST-1 RST-2 RST-7 QPS-7 SEC-8"),
		TEST(invalidated_by_itself, "ORD-4 MEM-12 MR-5"),
		TEST(invalidated_by_the_peer, "ORD-5 MEM-12 CQE-2"),
		TEST(a_response_that_is_under_way, "MEM-12 MEM-13 CQE-1 CQE-2 CQE-6 ORD-4 ORD-5 MR-5 PL-11 QPS-7 SRQ-5 "
		     "SRQ-7 XRC-14"),
		TEST(a_response_through_a_window, "MEM-12 MW-9 MW-10 MW-11 ORD-4 ORD-5"),
		TEST(a_response_of_a_region_that_changes, "MR-12 MR-15 MEM-12 RST-1"),
		TEST(a_response_of_pages_that_go, "ODP-6 MEM-12"),
		TEST(the_error_of_a_qp_with_an_invalidation, "ORD-5 ORD-7"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
