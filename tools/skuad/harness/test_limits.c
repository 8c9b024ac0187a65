// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Every limit that QUERY_DEVICE and QUERY_PORT report: what is at the limit works, one above it is
 * refused as the manual says; and the quota, which bounds what a host can make the device keep.
 */
#include <sys/mman.h>

#include "core/device.h"
#include "harness/lossy.h"
#include "roce/rc.h"
#include "roce/repeat.h"
#include "roce/roce.h"

static const struct skua_device_caps *caps(struct world *w, struct node *n)
{
	return query(w, n, (struct skua_cmd)CMD(SKUA_CMD_QUERY_DEVICE),
		     sizeof(struct skua_device_caps));
}

/* A list of @npages pages that are all the same one, by list pages that are few. */
static struct skua_pagelist same_page(struct node *n, uint64_t page, uint64_t npages)
{
	struct skua_pagelist pl = { .npages = htole32((uint32_t)npages), .log_page = 12 };
	uint64_t entry = page | SKUA_PL_PRESENT;

	for (uint64_t reach = 1; reach < npages || !pl.level; reach *= SKUA_PL_PER_PAGE, pl.level++) {
		uint64_t table = take(n, 4096);

		for (int i = 0; i < SKUA_PL_PER_PAGE; i++)
			((uint64_t *)at(n, table))[i] = htole64(entry);
		entry = table | SKUA_PL_PRESENT;
	}
	pl.addr[0] = htole64(entry);
	return pl;
}

#define STATUS(w, n, cmd_)	({ struct skua_cmd c_ = cmd_; command(w, n, &c_); })

/* Creates by @cmd until it is refused; returns how many there are then. */
static uint32_t create_all(struct world *w, struct node *n, struct skua_cmd cmd, uint32_t there)
{
	int status;

	for (; !(status = command(w, n, &cmd)); there++)
		;
	assert_int_equal(status, SKUA_CMD_NO_RESOURCE);
	return there;
}

static void numbers_of_pds_and_regions(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint32_t pds = le32toh(caps(w, n)->max_pd), mrs = le32toh(caps(w, n)->max_mr);

	assert_int_equal(create_all(w, n, (struct skua_cmd)CMD(SKUA_CMD_CREATE_PD), 1), pds);
	assert_int_equal(create_all(w, n, create_mr_cmd(n), 1), mrs);
	must(w, n, object_cmd(SKUA_CMD_DESTROY_MR, n->key));
	must(w, n, create_mr_cmd(n));
}

static void numbers_of_eqs_and_cqs(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint32_t eqs = le32toh(caps(w, n)->max_eq), cqs = le32toh(caps(w, n)->max_cq);
	struct skua_cmd eq = create_eq_cmd(n), cq = create_cq_cmd(n);
	uint32_t large;

	/* Small and large: an EQ serves as many CQs as it has entries. */
	eq.create_eq.log_size = 2;
	eq.create_eq.ring = list(n->eq, 4 * 16);
	cq.create_cq.eqn = htole32(must(w, n, eq));
	assert_int_equal(create_all(w, n, cq, 0), 4);
	eq.create_eq.log_size = 17;
	eq.create_eq.ring = same_page(n, n->eq, (131072 * 16) / 4096);
	assert_int_equal(le32toh(caps(w, n)->max_eqe), 131072);
	large = must(w, n, eq);
	cq.create_cq.eqn = htole32(large);
	assert_int_equal(create_all(w, n, cq, 5), cqs);
	eq.create_eq.log_size = 18;
	eq.create_eq.ring = same_page(n, n->eq, (262144 * 16) / 4096);
	assert_int_equal(STATUS(w, n, eq), SKUA_CMD_BAD_PARAM);
	eq = create_eq_cmd(n);
	assert_int_equal(create_all(w, n, eq, 4), eqs);
}

/* Without queues, and then with an SQ and an RQ of one entry. */
static void number_of_qps(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint32_t qps = le32toh(caps(w, n)->max_qp);
	struct skua_cmd cmd = create_qp_cmd(n);

	cmd.create_qp.log_sq_blocks = 0;
	cmd.create_qp.sq = list(n->sq, 64);
	cmd.create_qp.log_rq_size = 0;
	cmd.create_qp.rq = list(n->rq, 64);
	assert_int_equal(create_all(w, n, cmd, 1), qps);
	must(w, n, object_cmd(SKUA_CMD_DESTROY_QP, n->qpn));
	n->qpn = must(w, n, cmd);
}

static struct skua_cmd with_reads(struct skua_cmd cmd, uint16_t reads)
{
	cmd.modify_qp.attr.max_dest_rd_atomic = htole16(reads);
	return cmd;
}

/* Connected ones, each with a READ of its peer's at a time, take less than 2 KiB each. */
static void memory_of_many_qps(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0], *peer = &w->n[1];
	uint32_t qps = le32toh(caps(w, n)->max_qp) - 1;
	struct skua_cmd cmd = create_qp_cmd(n);
	size_t before = allocated_bytes();

	for (uint32_t i = 0; i < qps; i++) {
		uint32_t qpn = must(w, n, cmd);

		must(w, n, init_cmd(qpn));
		must(w, n, with_reads(rtr_cmd(qpn, peer, peer->qpn), 1));
		must(w, n, rts_cmd(qpn));
	}
	assert_in_range((allocated_bytes() - before) / qps, 256, 2048);
}

static void sizes_of_queues(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint32_t cqe = le32toh(caps(w, n)->max_cqe), blocks = le32toh(caps(w, n)->max_sq_blocks);
	uint32_t entries = le32toh(caps(w, n)->max_rq_entries);
	struct skua_cmd cq = create_cq_cmd(n), qp = create_qp_cmd(n);

	for (int above = 0; above < 2; above++) {
		int status = above ? SKUA_CMD_BAD_PARAM : SKUA_CMD_OK;

		cq.create_cq.log_size = (uint8_t)(__builtin_ctz(cqe) + above);
		cq.create_cq.ring = same_page(n, n->cq, ((uint64_t)cqe << above) * 64 / 4096);
		assert_int_equal(STATUS(w, n, cq), status);
		qp = create_qp_cmd(n);
		qp.create_qp.log_sq_blocks = (uint8_t)(__builtin_ctz(blocks) + above);
		qp.create_qp.sq = same_page(n, n->sq, ((uint64_t)blocks << above) * 64 / 4096);
		assert_int_equal(STATUS(w, n, qp), status);
		qp = create_qp_cmd(n);
		qp.create_qp.log_rq_size = (uint8_t)(__builtin_ctz(entries) + above);
		qp.create_qp.log_rq_stride = 10;
		qp.create_qp.rq = same_page(n, n->rq, ((uint64_t)entries << above) * 1024 / 4096);
		assert_int_equal(STATUS(w, n, qp), status);
	}
	for (uint8_t stride = 4; stride <= 11; stride++) {
		qp = create_qp_cmd(n);
		qp.create_qp.log_rq_size = 0;
		qp.create_qp.log_rq_stride = stride;
		qp.create_qp.rq = list(n->rq, 1ull << stride);
		assert_int_equal(STATUS(w, n, qp), stride < 5 || stride > 10 ? SKUA_CMD_BAD_PARAM :
								       SKUA_CMD_OK);
	}
}

/* An SQ of the largest size works through its whole ring, which is longer than the window. */
static void the_largest_sq_works(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint32_t blocks = le32toh(caps(w, n)->max_sq_blocks);
	struct { struct skua_wqe_ctrl c; uint8_t rest[48]; } nop = {
		.c = { .opcode = SKUA_WQE_NOP, .nblocks = 1, .flags = SKUA_WQE_SIGNALED } };
	struct skua_cmd cmd;

	new_queues(n);
	for (int i = 0; i < 64; i++)
		memcpy(at(n, n->sq + (uint64_t)i * 64), &nop, sizeof(nop));
	cmd = create_qp_cmd(n);
	cmd.create_qp.log_sq_blocks = (uint8_t)__builtin_ctz(blocks);
	cmd.create_qp.sq = same_page(n, n->sq, (uint64_t)blocks * 64 / 4096);
	n->qpn = must(w, n, cmd);
	reconnect(w, n, &w->n[1]);
	for (uint32_t done = 0; done < 2 * blocks;) {
		uint32_t step = 1 << LOG_CQ;

		n->sq_pi += step;
		host_store32(at(n, n->sq_dbr), n->sq_pi);
		ring(n, SKUA_DB_SQ, n->qpn, n->sq_pi);
		settle(w);
		for (uint32_t i = 0; i < step; i++)
			assert_int_equal(le32toh(poll_cq(n)->sq_ci), ++done);
	}
}

static int region_of(struct world *w, struct node *n, uint64_t pages)
{
	uint64_t used = n->used;
	struct skua_cmd cmd = create_mr_cmd(n);
	int status;

	cmd.create_mr.iova = 0;
	cmd.create_mr.length = htole64(pages * 4096);
	cmd.create_mr.pages = same_page(n, n->buf, pages);
	status = command(w, n, &cmd);
	n->used = used;
	return status;
}

#define HUGE_PAGE	(1ull << 30)
#define HUGE_IOVA	(1ull << 40)

static struct skua_cmd huge_region(struct node *n, uint64_t size)
{
	struct skua_cmd cmd = create_mr_cmd(n);

	cmd.create_mr.iova = 0;
	cmd.create_mr.length = htole64(size);
	cmd.create_mr.pages = same_page(n, HUGE_IOVA, (size - 1) / HUGE_PAGE + 1);
	cmd.create_mr.pages.log_page = 30;
	return cmd;
}

/* Regions of the fewest pages that they can have, all of them one page. */
static void the_largest_region(struct world *w, struct node *n)
{
	uint64_t size = le64toh(caps(w, n)->max_mr_size), used = n->used;
	void *page = mmap(NULL, HUGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_ptr_not_equal(page, MAP_FAILED);
	assert_int_equal(skua_dev_mem_map(n->dev, HUGE_IOVA, HUGE_PAGE, page, true), 0);
	must(w, n, object_cmd(SKUA_CMD_DESTROY_MR, must(w, n, huge_region(n, size))));
	n->used = used;
	assert_int_equal(STATUS(w, n, huge_region(n, size + 1)), SKUA_CMD_BAD_PARAM);
	n->used = used;
	assert_int_equal(skua_dev_mem_unmap(n->dev, HUGE_IOVA, HUGE_PAGE), 0);
	assert_int_equal(munmap(page, HUGE_PAGE), 0);
}

/* Few pages, of many pieces each: no more are looked up than a command has time for. */
static void pieces_of_large_pages(void **state)
{
	const uint32_t pieces = 2048, piece = HUGE_PAGE / pieces, most = SKUA_PL_MAX_PAGES / pieces;
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint64_t used = n->used;
	void *memory = mmap(NULL, piece, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	for (uint64_t i = 0; i < pieces; i++)
		assert_int_equal(skua_dev_mem_map(n->dev, HUGE_IOVA + i * piece, piece, memory, true), 0);
	must(w, n, object_cmd(SKUA_CMD_DESTROY_MR, must(w, n, huge_region(n, most * HUGE_PAGE))));
	n->used = used;
	assert_int_equal(STATUS(w, n, huge_region(n, most * HUGE_PAGE + 1)), SKUA_CMD_NO_RESOURCE);
	n->used = used;
	for (uint64_t i = 0; i < pieces; i++)
		assert_int_equal(skua_dev_mem_unmap(n->dev, HUGE_IOVA + i * piece, piece), 0);
	assert_int_equal(munmap(memory, piece), 0);
}

static void sizes_of_regions_and_the_quota(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint64_t quota = le64toh(caps(w, n)->max_pages), most = SKUA_PL_MAX_PAGES;
	uint32_t key;

	the_largest_region(w, n);
	assert_int_equal(region_of(w, n, most + 1), SKUA_CMD_BAD_PARAM);
	assert_int_equal(region_of(w, n, most), SKUA_CMD_OK);
	key = n->number;
	assert_true(quota >= 2 * most);
	/* By halves, to the last entry; then not one more, for whatever object. */
	for (uint64_t pages = most; pages; pages /= 2)
		while (region_of(w, n, pages) == SKUA_CMD_OK)
			;
	assert_int_equal(STATUS(w, n, create_mr_cmd(n)), SKUA_CMD_NO_RESOURCE);
	assert_int_equal(STATUS(w, n, create_cq_cmd(n)), SKUA_CMD_NO_RESOURCE);
	assert_int_equal(STATUS(w, n, create_qp_cmd(n)), SKUA_CMD_NO_RESOURCE);
	/* What is destroyed is given back. */
	must(w, n, object_cmd(SKUA_CMD_DESTROY_MR, key));
	must(w, n, create_mr_cmd(n));
	must(w, n, create_cq_cmd(n));
	must(w, n, create_qp_cmd(n));
}

/* A queue in one page of 1 GiB costs as much as what the device keeps of it. */
static void the_quota_bounds_what_queues_cost(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint64_t quota = le64toh(caps(w, n)->max_pages);
	struct skua_cmd cmd = create_qp_cmd(n);

	cmd.create_qp.log_sq_blocks = 16;
	cmd.create_qp.sq = list(IOVA, 4 << 20);
	assert_true(create_all(w, n, cmd, 0) <= quota / 4096);
}

/* What is kept of a peer's READs is as large as their number may be, and given back. */
static void the_quota_bounds_what_reads_cost(void **state)
{
	static const uint16_t reads[][2] = { { 0, 0 }, { 1, 4 }, { 3, 16 }, { 16, 64 }, { 17, 128 }, { 128, 512 } };
	struct world *w = *state;
	struct node *n = &w->n[0], *peer = &w->n[1];
	uint64_t used;

	must(w, n, state_cmd(n->qpn, SKUA_QPS_RESET));
	used = n->dev->pages_used;
	for (size_t i = 0; i < sizeof(reads) / sizeof(reads[0]); i++) {
		must(w, n, init_cmd(n->qpn));
		must(w, n, with_reads(rtr_cmd(n->qpn, peer, peer->qpn), reads[i][0]));
		assert_int_equal(n->dev->pages_used - used, reads[i][1]);
		must(w, n, state_cmd(n->qpn, SKUA_QPS_RESET));
		assert_int_equal(n->dev->pages_used, used);
	}
	must(w, n, init_cmd(n->qpn));
	n->dev->max_pages = used + 63;
	assert_int_equal(STATUS(w, n, with_reads(rtr_cmd(n->qpn, peer, peer->qpn), 16)), SKUA_CMD_NO_RESOURCE);
	assert_int_equal(qp_state(w, n, n->qpn), SKUA_QPS_INIT);
	assert_int_equal(n->dev->pages_used, used);
	n->dev->max_pages++;
	must(w, n, with_reads(rtr_cmd(n->qpn, peer, peer->qpn), 16));
	must(w, n, object_cmd(SKUA_CMD_DESTROY_QP, n->qpn));
	assert_true(n->dev->pages_used < used);
}

/* In SQD, while READs of the peer are under way. */
static void more_reads_later(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	const struct skua_qp_attr sqd = { .state = SKUA_QPS_SQD },
		more = { .state = SKUA_QPS_SQD, .max_dest_rd_atomic = htole16(64) };

	must(w, b, modify_cmd(b->qpn, SKUA_QP_ATTR_STATE, sqd));
	fill(b, 40000, 3);
	for (int i = 0; i < 4; i++)
		post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf + 10000 * i, 10000, b->buf + 10000 * i, b->key, 0);
	/* The responses wait for the line. */
	IMPAIR(b, "rate=10M,dir=out");
	expect_none(w, a);
	must(w, b, modify_cmd(b->qpn, SKUA_QP_ATTR_STATE | SKUA_QP_ATTR_MAX_DEST_RD_ATOMIC, more));
	expect_none(w, a);
	for (int i = 0; i < 400; i++)
		next_event(w);
	for (int i = 0; i < 4; i++)
		expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	assert_memory_equal(at(a, a->buf), at(b, b->buf), 40000);
}

/* Packets that came early, and tables of them. */
static void what_is_held_is_bounded(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0], *peer = &w->n[1];
	struct skua_cmd cmd = create_qp_cmd(n);
	struct repeat_frame hello = { .type = REPEAT_HELLO, .path = { .vlan = SKUA_VLAN_NONE } };
	unsigned int qps = 0;
	uint64_t most = 0;

	memcpy(hello.path.smac, peer->mac, 6);
	memcpy(hello.path.dmac, n->mac, 6);
	repeat_hello(n->dev, &hello);
	cmd.create_qp.log_sq_blocks = 0;
	cmd.create_qp.sq = list(n->sq, 64);
	cmd.create_qp.log_rq_size = 0;
	cmd.create_qp.rq = list(n->rq, 64);
	for (; qps < 10000; qps++) {
		uint64_t held = n->dev->roce->held_bytes, pages;

		n->qpn = must(w, n, cmd);
		must(w, n, init_cmd(n->qpn));
		must(w, n, with_reads(rtr_cmd(n->qpn, peer, peer->qpn), 0));
		pages = n->dev->pages_used;
		arrive_only(n, peer, train_from(n, TRAIN_SEND, psn_add(FIRST_PSN, 1)));
		assert_int_equal(n->dev->pages_used, pages);
		if (n->dev->roce->held_bytes == held)
			break;
		most = n->dev->roce->held_bytes;
	}
	/* Of each QP the table alone takes 4 KiB. */
	assert_true(qps < HELD_MAX / 4096);
	assert_in_range(most, HELD_MAX - 8192, HELD_MAX + 8192);
	skua_dev_reset(n->dev);
	settle(w);
	assert_int_equal(n->dev->roce->held_bytes, 0);
}

/* A QP of the node's queues waits for all that the window lets it send. Its peer never answers. */
static uint32_t wait_for_nobody(struct world *w, struct node *n, const struct node *peer)
{
	uint32_t before = n->dev->roce->used_runs, qpn = must(w, n, create_qp_cmd(n));
	struct skua_cmd rts = rts_cmd(qpn);
	uint64_t pages;

	rts.modify_qp.attr.max_rd_atomic = htole16(128);
	must(w, n, init_cmd(qpn));
	must(w, n, rtr_cmd(qpn, peer, peer->qpn ^ 1));
	must(w, n, rts);
	pages = n->dev->pages_used;
	ring(n, SKUA_DB_SQ, qpn, n->sq_pi);
	settle(w);
	assert_int_equal(n->dev->pages_used, pages);
	return n->dev->roce->used_runs - before;
}

static void a_qp_in_error_holds_nothing(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0], *peer = &w->n[1];
	struct repeat_frame hello = { .type = REPEAT_HELLO, .path = { .vlan = SKUA_VLAN_NONE } };

	memcpy(hello.path.smac, peer->mac, 6);
	memcpy(hello.path.dmac, n->mac, 6);
	repeat_hello(n->dev, &hello);
	arrive_only(n, peer, train_from(n, TRAIN_SEND, psn_add(FIRST_PSN, 1)));
	assert_true(n->dev->roce->held_bytes);
	must(w, n, state_cmd(n->qpn, SKUA_QPS_ERR));
	settle(w);
	assert_int_equal(n->dev->roce->held_bytes, 0);
}

/* Then what others send is slower, and goes on: no QP waits for another's peer. */
static void what_is_kept_of_sent_packets_is_bounded(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct queues own = new_queues(a);
	struct skua_cqe *cqe;

	for (int i = 0; i < 256; i++)
		post(a, SKUA_WQE_READ, 0, a->buf, 8, b->buf, b->key, 0);
	while (a->dev->roce->used_runs < SENT_RUNS_MAX)
		assert_in_range(wait_for_nobody(w, a, b), 100, 128);
	assert_int_equal(wait_for_nobody(w, a, b), 1);
	assert_int_equal(wait_for_nobody(w, a, b), 1);
	use_queues(a, own);
	fill(a, 1 << 20, 1);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 1 << 20, b->buf, b->key, 0);
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf + (1 << 20), 1 << 20, b->buf, b->key, 0);
	for (int i = 0; i < 2; i++) {
		cqe = poll_cq(a);
		for (int ms = 0; !cqe && ms < 20; ms++) {
			pass(w, 1000000);
			cqe = poll_cq(a);
		}
		assert_non_null(cqe);
		assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
	}
	assert_memory_equal(at(a, a->buf + (1 << 20)), at(a, a->buf), 1 << 20);
	assert_int_equal(STAT(w, a, ack_timeouts), 0);
	skua_dev_reset(a->dev);
	settle(w);
	assert_int_equal(a->dev->roce->used_runs, 0);
}

/* A message that is under way has asked for no ACK yet: a probe asks, and it goes on. */
static void a_message_goes_on_when_others_use_up_what_is_kept(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	const struct roce_req *req;

	use_path_mtu(w, 5);
	req = &rc_of(numtab_get(&a->dev->qps, a->qpn))->req;
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 8, b->buf, b->key, 0);
	settle(w);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	/* Its timer has nothing left to do. */
	pass(w, 1000000000);
	assert_false(rc_of(numtab_get(&a->dev->qps, a->qpn))->timer.pos);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 1 << 20, b->buf, b->key, 0);
	while (!req->npkts_since_ack_req || req_is_asked(req))
		assert_true(engine_step(w->engines[0]));
	a->dev->roce->used_runs += SENT_RUNS_MAX;
	for (int ms = 0; ms < 20 && req->next_psn != req->oldest_unacked_psn; ms++)
		pass(w, 1000000);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	a->dev->roce->used_runs -= SENT_RUNS_MAX;
	assert_int_equal(a->dev->roce->used_runs, 0);
}

/* SGEs and inline data */

struct large {
	struct skua_wqe_ctrl ctrl;
	union {
		struct skua_sge sge[63];
		uint8_t bytes[1008];
	};
};

static void sges(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t max = le16toh(caps(w, a)->max_send_sge), max_recv = le16toh(caps(w, b)->max_recv_sge);
	struct { struct skua_rqe rqe; struct skua_sge sge[63]; } recv = { .rqe.num_sge = (uint8_t)max_recv };
	struct large wqe = { .ctrl = { .opcode = SKUA_WQE_SEND, .flags = SKUA_WQE_SIGNALED,
				       .num_sge = (uint8_t)max, .nblocks = 16 } };
	struct skua_cmd cmd;
	uint8_t *from = at(a, a->buf), *to = at(b, b->buf);

	new_queues(b);
	cmd = create_qp_cmd(b);
	cmd.create_qp.log_rq_stride = 10;
	cmd.create_qp.log_rq_size = 2;
	b->qpn = must(w, b, cmd);
	reconnect(w, b, a);
	reconnect(w, a, b);
	fill(a, 1 << 20, 5);
	/* Odd lengths and places, the pieces of both sides at odds with each other, some empty. */
	for (uint32_t i = 0; i < 63; i++) {
		wqe.sge[i] = (struct skua_sge){ htole64(a->buf + i * 9001), htole32(i * 37), htole32(a->key) };
		recv.sge[i] = (struct skua_sge){ htole64(b->buf + i * 8003), htole32(i % 3 ? 805 : 0),
						 htole32(b->key) };
	}
	memcpy(at(b, b->rq), &recv, sizeof(recv));
	host_store32(at(b, b->rq_dbr), 1);
	post_blocks(a, &wqe, 16);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	assert_int_equal(le32toh(await_cqe(w, b)->byte_len), 37 * (max * (max - 1) / 2));
	for (uint32_t i = 0, j = 0, done = 0; i < max; i++) {
		for (uint32_t k = 0; k < i * 37; k++, done++) {
			while (!le32toh(recv.sge[j].length) || done == le32toh(recv.sge[j].length)) {
				j++;
				done = 0;
			}
			assert_int_equal(to[j * 8003 + done], from[i * 9001 + k]);
		}
	}
	/* One more on either side. */
	recv.rqe.num_sge++;
	memcpy(at(b, b->rq + 1024), &recv, sizeof(recv));
	host_store32(at(b, b->rq_dbr), 2);
	post_blocks(a, &wqe, 16);
	expect_vendor(w, b, SKUA_CQE_RECV, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_SGE_COUNT);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_REM_OP_ERR);
	reconnect(w, a, b);
	wqe.ctrl.num_sge++;
	post_blocks(a, &wqe, 16);
	expect_vendor(w, a, SKUA_CQE_SEND, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_SGE_COUNT);
}

static void inline_data(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t max = le16toh(caps(w, a)->max_inline);
	struct large wqe = { .ctrl = { .opcode = SKUA_WQE_SEND, .nblocks = 16,
				       .flags = SKUA_WQE_SIGNALED | SKUA_WQE_INLINE } };

	for (uint32_t i = 0; i < sizeof(wqe.bytes); i++)
		wqe.bytes[i] = (uint8_t)(i * 11);
	for (uint32_t len = 0; len <= max + 1; len = len < 3 ? len + 1 : len < max ? max : max + 1) {
		post_recv(b, b->buf, 4096);
		wqe.ctrl.length = htole32(len);
		/* It wraps around the end of the ring, too: 16 blocks at a time, and one. */
		post(a, SKUA_WQE_NOP, 0, 0, 0, 0, 0, 0);
		post_blocks(a, &wqe, 16);
		if (len > max) {
			expect_vendor(w, a, SKUA_CQE_SEND, SKUA_CQE_LOC_QP_OP_ERR,
				      SKUA_VENDOR_ERR_SGE_COUNT);
			return;
		}
		expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
		assert_int_equal(le32toh(await_cqe(w, b)->byte_len), len);
		assert_memory_equal(at(b, b->buf), wqe.bytes, len);
	}
}

/* The source of inline data may be changed at once: what waits in the device is its copy. */
static void inline_data_is_copied(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct large wqe = { .ctrl = { .opcode = SKUA_WQE_SEND, .nblocks = 8, .length = htole32(400),
				       .flags = SKUA_WQE_SIGNALED | SKUA_WQE_INLINE } };

	memset(wqe.bytes, 0x3c, sizeof(wqe.bytes));
	post_blocks(a, &wqe, 8);
	settle(w);
	memset(at(a, a->sq), 0xff, 8 * 64);
	post_recv(b, b->buf, 400);
	pass(w, 1000000);
	expect(w, b, SKUA_CQE_RECV, SKUA_CQE_SUCCESS);
	for (int i = 0; i < 400; i++)
		assert_int_equal(((uint8_t *)at(b, b->buf))[i], 0x3c);
}

/* The longest message, in memory that is one page again and again. */
static void the_longest_message(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t max = le32toh(caps(w, a)->max_msg_size);

	for (int i = 0; i < 2; i++) {
		struct node *n = &w->n[i];
		struct skua_cmd cmd = create_mr_cmd(n);

		cmd.create_mr.length = htole64((uint64_t)max + 4096);
		cmd.create_mr.pages = same_page(n, n->buf, max / 4096 + 1);
		n->key = must(w, n, cmd);
	}
	memset(at(a, a->buf), 0x5e, 4096);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, max, b->buf, b->key, 0);
	for (int i = 0; i < 100 && STAT(w, a, rdma_tx_write) == 0; i++)
		settle(w);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	assert_int_equal(((uint8_t *)at(b, b->buf))[4095], 0x5e);
	assert_int_equal(STAT(w, b, rdma_rx_packets), max / 1024);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, max + 1, b->buf, b->key, 0);
	expect_vendor(w, a, SKUA_CQE_WRITE, SKUA_CQE_LOC_LEN_ERR, SKUA_VENDOR_ERR_MSG_TOO_LONG);
}

/* As many READs as both sides have agreed on are under way at once. */
static void reads_outstanding(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint16_t max = le16toh(caps(w, a)->max_rd_atomic);
	struct skua_cmd rtr = rtr_cmd(b->qpn, a, a->qpn), rts = rts_cmd(a->qpn);

	rtr.modify_qp.attr.max_dest_rd_atomic = htole16(max);
	rts.modify_qp.attr.max_rd_atomic = htole16(max);
	must(w, b, state_cmd(b->qpn, SKUA_QPS_RESET));
	must(w, b, init_cmd(b->qpn));
	must(w, b, rtr);
	must(w, b, rts_cmd(b->qpn));
	must(w, a, state_cmd(a->qpn, SKUA_QPS_RESET));
	must(w, a, init_cmd(a->qpn));
	must(w, a, rtr_cmd(a->qpn, b, b->qpn));
	must(w, a, rts);
	must(w, b, port_cmd(SKUA_PORT_SET_FLAGS, 0));
	for (int i = 0; i < max + 10; i++)
		post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, 8, b->buf, b->key, 0);
	settle(w);
	assert_int_equal(STAT(w, a, rdma_tx_packets), max);
	must(w, b, port_cmd(SKUA_PORT_SET_FLAGS, SKUA_PORT_F_ENABLE | SKUA_PORT_F_ROCE));
	pass(w, 4096ull << 14);
	for (uint32_t i = 0; i < max + 10u; i++)
		assert_int_equal(await_cqe(w, a)->status, SKUA_CQE_SUCCESS);
}

static void doorbell_pages(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint32_t pages = le32toh(caps(w, n)->num_db_pages);
	struct skua_cmd cmd;

	new_queues(n);
	cmd = create_qp_cmd(n);
	cmd.create_qp.db_page = htole32(pages);
	assert_int_equal(STATUS(w, n, cmd), SKUA_CMD_BAD_PARAM);
	cmd.create_qp.db_page = htole32(pages - 1);
	n->qpn = must(w, n, cmd);
	reconnect(w, n, &w->n[1]);
	post(n, SKUA_WQE_NOP, SKUA_WQE_SIGNALED, 0, 0, 0, 0, 0);
	settle(w);
	ring_page(n, pages - 1, SKUA_DB_SQ, n->qpn, n->sq_pi);
	expect(w, n, SKUA_CQE_NOP, SKUA_CQE_SUCCESS);
	cmd = create_cq_cmd(n);
	cmd.create_cq.db_page = htole32(pages);
	assert_int_equal(STATUS(w, n, cmd), SKUA_CMD_BAD_PARAM);
}

static void the_gid_table(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint16_t entries = le16toh(caps(w, n)->gid_table_len);
	struct skua_cmd cmd = CMD(SKUA_CMD_SET_GID, .set_gid = {
		.gid = { 0xfe, 0x80, [15] = 1 }, .mac = { 2, 0, 0, 0, 0, 1 },
		.vlan = htole16(SKUA_VLAN_NONE), .index = htole16((uint16_t)(entries - 1)) });

	cmd.hdr.port = 1;
	assert_int_equal(STATUS(w, n, cmd), SKUA_CMD_OK);
	cmd.set_gid.index = htole16(entries);
	assert_int_equal(STATUS(w, n, cmd), SKUA_CMD_BAD_PARAM);
}

/* What every device has, and what does not change while it runs. */
static void the_least_and_the_constant(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_device_caps first = *caps(w, n), zero = { 0 };

	assert_true(le16toh(first.max_send_sge) >= 30 && le16toh(first.max_recv_sge) >= 30);
	assert_true(le16toh(first.max_inline) >= 512 && le16toh(first.max_rd_atomic) >= 1);
	assert_true(le16toh(first.gid_table_len) >= 2 && le32toh(first.max_eq) >= 2);
	assert_true(reg_read(n, SKUA_REG_CMD_MAX_LOG) >= 1);
	assert_int_equal(first.num_ports, 1);
	assert_int_equal(le16toh(first.pkey_table_len), 1);
	assert_int_equal(first.rsvd0, 0);
	assert_memory_equal(first.rsvd1, zero.rsvd1, sizeof(zero.rsvd1));
	/* The EUI-64 of the MAC. */
	assert_memory_equal(first.guid, ((uint8_t[8]){ n->mac[0] ^ 2, n->mac[1], n->mac[2], 0xff, 0xfe,
						       n->mac[3], n->mac[4], n->mac[5] }), 8);
	must(w, n, create_mr_cmd(n));
	must(w, n, create_qp_cmd(n));
	assert_memory_equal(caps(w, n), &first, sizeof(first));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STEPPED(numbers_of_pds_and_regions, "LIM-1 CMD-14 OBJ-6"),
		STEPPED(numbers_of_eqs_and_cqs, "LIM-1 CMD-14 EQ-2 EQ-3 CQ-1"),
		STEPPED(number_of_qps, "LIM-1 CMD-14"),
		cmocka_unit_test_setup_teardown(memory_of_many_qps, setup_stepped, teardown),
		STEPPED(sizes_of_queues, "LIM-1 LIM-3 CMD-14 CQ-1 EQ-2 PL-2 PL-3"),
		STEPPED(the_largest_sq_works, "LIM-1 GEN-3 WQE-1"),
		STEPPED(sizes_of_regions_and_the_quota, "LIM-1 MR-2 PL-10 PL-2 PL-3 CMD-12"),
		STEPPED(pieces_of_large_pages, "PL-8 CMD-7 CMD-12"),
		STEPPED(the_quota_bounds_what_queues_cost, "PL-10 SEC-8"),
		STEPPED(the_quota_bounds_what_reads_cost, "PL-10 CMD-12 SEC-8"),
		STEPPED(more_reads_later, "QPS-1 ROC-8"),
		STEPPED(what_is_kept_of_sent_packets_is_bounded, "PL-11"),
		STEPPED(a_message_goes_on_when_others_use_up_what_is_kept, "PL-11 ROC-17"),
		STEPPED(a_qp_in_error_holds_nothing, "PL-11"),
		STEPPED(what_is_held_is_bounded, "SEC-8 REP-5 PL-11"),
		STEPPED(sges, "LIM-1 LIM-4 WQE-4 WQE-6 RQE-1 RQE-3"),
		STEPPED(inline_data, "LIM-1 LIM-3 WQE-3 WQE-6"),
		STEPPED(inline_data_is_copied, "WQE-3 WQE-1 MEM-8"),
		STEPPED(the_longest_message, "LIM-1 WQE-4 ROC-7"),
		STEPPED(reads_outstanding, "LIM-1 ROC-8"),
		STEPPED(doorbell_pages, "LIM-1 DBP-2"),
		STEPPED(the_gid_table, "LIM-1 GID-2"),
		STEPPED(the_least_and_the_constant, "LIM-2 LIM-3 LIM-4 GEN-2"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
