// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* On-demand paging: its commands and what they refuse, the EQ of page faults, tables of pages and their quota. */
#include "core/odp.h"
#include "harness/demand.h"

/* A good command, changed in one way, has to be refused in one way. */
#define REFUSED(w, n, base, status, ...) do {				\
	struct skua_cmd cmd_ = base, *c = &cmd_;			\
	int got_;							\
									\
	__VA_ARGS__;							\
	got_ = command(w, n, c);					\
	if (got_ != (status))						\
		fail_msg("%s: status %d, not %d", #__VA_ARGS__, got_, status); \
} while (0)

/* Tokens end with the answer, with ERR, with RESET, and with the QP. */
static void tokens_end(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = create_region(w, a);
	struct skua_fault_eqe eqe;

	for (unsigned int i = 0; i < 4; i++) {
		post_key(a, SKUA_WQE_WRITE, key, MR_IOVA, 8, b->buf, b->key);
		eqe = expect_fault(w, a, SKUA_PAGE_FAULT_REQUESTER, false, MR_IOVA);
		REFUSED(w, a, resume_cmd(eqe, 0), SKUA_CMD_BAD_OBJECT, c->fault_resume.token ^= htole32(1u << 20));
		REFUSED(w, a, resume_cmd(eqe, 0), SKUA_CMD_BAD_OBJECT, c->fault_resume.token = 0);
		REFUSED(w, a, resume_cmd(eqe, 0), SKUA_CMD_BAD_PARAM, c->fault_resume.result = 2);
		REFUSED(w, a, resume_cmd(eqe, 0), SKUA_CMD_BAD_PARAM, c->fault_resume.rsvd[0] = 1);
		if (!i) {
			fail_fault(w, a, eqe);
			expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_LOC_PROT_ERR);
		} else if (i == 3) {
			must(w, a, object_cmd(SKUA_CMD_DESTROY_QP, a->qpn));
		} else {
			must(w, a, state_cmd(a->qpn, i == 1 ? SKUA_QPS_ERR : SKUA_QPS_RESET));
		}
		REFUSED(w, a, resume_cmd(eqe, 0), SKUA_CMD_BAD_OBJECT, (void)c);
		assert_int_equal(a->dev->faults.count, 0);
		if (i == 1)
			expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_WR_FLUSH_ERR);
		if (i < 3) {
			reconnect(w, a, b);
			reconnect(w, b, a);
		}
	}
}

/* Used from now on. Returns the queues of before. */
static struct queues another_qp(struct world *w, struct node *n, const struct node *peer)
{
	struct queues old = new_queues(n);

	n->qpn = must(w, n, create_qp_cmd(n));
	must(w, n, init_cmd(n->qpn));
	must(w, n, rtr_cmd(n->qpn, peer, peer->qpn));
	must(w, n, rts_cmd(n->qpn));
	return old;
}

/* Events without room wait in the device; a QP that ends takes its own along. */
static void the_eq_bounds_the_events(void **state)
{
	enum { NUM = 7 };
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = create_region(w, a), qpns[NUM], seen = 0;
	struct skua_fault_eqe eqe;

	for (unsigned int i = 0; i < NUM; i++) {
		another_qp(w, a, b);
		qpns[i] = a->qpn;
		post_key(a, SKUA_WQE_WRITE, key, MR_IOVA, 8, b->buf, b->key);
	}
	settle(w);
	assert_int_equal(a->dev->stats.page_faults, NUM);
	must(w, a, object_cmd(SKUA_CMD_DESTROY_QP, qpns[NUM - 1]));
	for (unsigned int i = 0; i < NUM - 1; i++) {
		eqe = expect_fault(w, a, SKUA_PAGE_FAULT_REQUESTER, false, MR_IOVA);
		for (unsigned int j = 0; j < NUM; j++)
			seen |= (qpns[j] == le32toh(eqe.qpn)) << j;
		fail_fault(w, a, eqe);
	}
	assert_int_equal(seen, (1u << (NUM - 1)) - 1);
	expect_no_fault(w, a);
}

/* The host takes the events, and answers none of them. */
static void events_find_room_without_a_command(void **state)
{
	enum { NUM = 7 };
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = create_region(w, a);

	for (unsigned int i = 0; i < NUM; i++) {
		another_qp(w, a, b);
		post_key(a, SKUA_WQE_WRITE, key, MR_IOVA, 8, b->buf, b->key);
	}
	for (unsigned int i = 0; i < NUM; i++) {
		expect_fault(w, a, SKUA_PAGE_FAULT_REQUESTER, false, MR_IOVA);
		pass(w, 10000000);
	}
	expect_no_fault(w, a);
}

/* The fault EQ is in memory that is taken away. Returns the key of a region without pages. */
static uint32_t take_fault_eq(struct world *w, struct node *a)
{
	struct skua_cmd cmd = create_eq_cmd(a);
	uint32_t key;

	cmd.create_eq.type = SKUA_EQ_FAULT;
	cmd.create_eq.log_size = LOG_FAULTS;
	cmd.create_eq.dbr_addr = htole64(take(a, 64));
	cmd.create_eq.ring = list(EXTRA, 64u << LOG_FAULTS);
	must(w, a, cmd);
	key = must(w, a, region_cmd(a));
	unmap_extra(a);
	return key;
}

/* And a WQE is posted that needs it. */
static void lose_fault_eq(struct world *w, struct node *a, const struct node *b)
{
	post_key(a, SKUA_WQE_WRITE, take_fault_eq(w, a), MR_IOVA, 8, b->buf, b->key);
}

/* Without memory for the events the device is dead, as without that of asynchronous events. */
static void an_eq_out_of_reach_is_fatal(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct queues old = another_qp(w, a, b);

	fill(a, 8, 1);
	lose_fault_eq(w, a, b);
	/* In the same round, and after that. */
	use_queues(a, old);
	post(a, SKUA_WQE_WRITE, 0, a->buf, 8, b->buf, b->key, 0);
	settle(w);
	assert_true(reg_read(a, SKUA_REG_STATUS) & SKUA_STATUS_FATAL);
	assert_int_equal(reg_read(a, SKUA_REG_HEALTH), SKUA_HEALTH_EQ_ADDRESS);
	expect_event(w, a, SKUA_EVENT_DEVICE_FATAL, SKUA_HEALTH_EQ_ADDRESS);
	expect_no_event(w, a);
	assert_int_equal(*(uint64_t *)at(b, b->buf), 0);
}

/* Nor does the QP itself send, although it owes a response. */
static void a_qp_sends_nothing_once_its_device_is_dead(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = take_fault_eq(w, a);

	post(b, SKUA_WQE_READ, SKUA_WQE_SIGNALED, b->buf, 8, a->buf, a->key, 0);
	engine_step(w->engines[0]);
	assert_int_equal(a->dev->stats.rdma_rx_packets, 1);
	assert_int_equal(a->dev->stats.rdma_tx_packets, 0);
	post_key(a, SKUA_WQE_WRITE, key, MR_IOVA, 8, b->buf, b->key);
	settle(w);
	assert_int_equal(reg_read(a, SKUA_REG_HEALTH), SKUA_HEALTH_EQ_ADDRESS);
	assert_int_equal(a->dev->stats.rdma_tx_packets, 0);
	assert_null(poll_cq(b));
}

/* More events wait than one step writes when the device dies: DEVICE_FATAL is the last that is written. */
static void no_event_comes_after_the_fatal_one(void **state)
{
	enum { LOG_EVENTS = 7, NUM = 100 };
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cmd cmd = create_eq_cmd(a);
	const struct skua_async_eqe *eqe;
	unsigned int n = 0;
	uint64_t events;

	must(w, a, object_cmd(SKUA_CMD_DESTROY_EQ, a->aeqn));
	for (unsigned int i = 0; i < NUM; i++) {
		another_qp(w, a, b);
		host_store32(at(a, a->sq_dbr), 1000000);
		ring(a, SKUA_DB_SQ, a->qpn, 0);
	}
	another_qp(w, a, b);
	events = take(a, 64u << LOG_EVENTS);
	eqe = at(a, events);
	cmd.create_eq.type = SKUA_EQ_ASYNC;
	cmd.create_eq.log_size = LOG_EVENTS;
	cmd.create_eq.dbr_addr = htole64(a->aeq_dbr);
	cmd.create_eq.ring = list(events, 64u << LOG_EVENTS);
	lose_fault_eq(w, a, b);
	must(w, a, cmd);
	settle(w);
	assert_int_equal(reg_read(a, SKUA_REG_HEALTH), SKUA_HEALTH_EQ_ADDRESS);
	while (eqe[n].flags & SKUA_EQE_PHASE)
		n++;
	assert_in_range(n, 2, NUM);
	assert_int_equal(eqe[n - 1].type, SKUA_EVENT_DEVICE_FATAL);
}

static void commands(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint64_t used;
	uint32_t key;

	REFUSED(w, n, region_cmd(n), SKUA_CMD_BAD_STATE, (void)c);
	key = create_region(w, n);
	/* One EQ of the type, which serves regions. */
	REFUSED(w, n, create_eq_cmd(n), SKUA_CMD_NO_RESOURCE, c->create_eq.type = SKUA_EQ_FAULT,
		c->create_eq.log_size = 0, c->create_eq.ring = list(take(n, 64), 64));
	REFUSED(w, n, object_cmd(SKUA_CMD_DESTROY_EQ, faults.eqn), SKUA_CMD_BUSY, (void)c);
	REFUSED(w, n, region_cmd(n), SKUA_CMD_BAD_OBJECT, c->create_mr.pdn = 0);
	REFUSED(w, n, region_cmd(n), SKUA_CMD_BAD_PARAM, c->create_mr.access |= htole32(SKUA_ACCESS_MW_BIND));
	REFUSED(w, n, region_cmd(n), SKUA_CMD_BAD_PARAM, c->create_mr.access |= htole32(0x80));
	REFUSED(w, n, region_cmd(n), SKUA_CMD_BAD_PARAM, c->create_mr.access ^= htole32(SKUA_ACCESS_LOCAL_WRITE));
	REFUSED(w, n, region_cmd(n), SKUA_CMD_BAD_PARAM, c->create_mr.type = SKUA_MR_FAST);
	REFUSED(w, n, region_cmd(n), SKUA_CMD_BAD_PARAM, c->create_mr.type = SKUA_MR_PHYS);
	REFUSED(w, n, region_cmd(n), SKUA_CMD_BAD_PARAM, c->create_mr.capacity = htole32(1));
	REFUSED(w, n, region_cmd(n), SKUA_CMD_BAD_PARAM, c->create_mr.length = htole64(LIMIT_MR_SIZE + 1));
	REFUSED(w, n, region_cmd(n), SKUA_CMD_BAD_PARAM, c->create_mr.iova = htole64(UINT64_MAX));
	REFUSED(w, n, region_cmd(n), SKUA_CMD_BAD_PARAM, c->create_mr.pages.log_page = 11);
	REFUSED(w, n, region_cmd(n), SKUA_CMD_BAD_PARAM, c->create_mr.pages.log_page = 31);
	REFUSED(w, n, region_cmd(n), SKUA_CMD_BAD_PARAM, c->create_mr.pages.offset = htole64(4096));
	REFUSED(w, n, region_cmd(n), SKUA_CMD_BAD_PARAM, c->create_mr.pages.npages = htole32(PAGES));
	REFUSED(w, n, region_cmd(n), SKUA_CMD_BAD_PARAM, c->create_mr.pages.level = 1);
	REFUSED(w, n, region_cmd(n), SKUA_CMD_BAD_PARAM, c->create_mr.pages.rsvd = htole16(1));
	REFUSED(w, n, region_cmd(n), SKUA_CMD_BAD_PARAM, c->create_mr.pages.addr[5] = htole64(n->buf | 1));
	/* All addresses begin at 0. */
	REFUSED(w, n, region_cmd(n), SKUA_CMD_BAD_PARAM, c->create_mr.length = 0, c->create_mr.iova = 0);
	REFUSED(w, n, region_cmd(n), SKUA_CMD_BAD_PARAM, c->create_mr.length = 0, c->create_mr.pages.offset = 0);

	give_pages(w, n, key, 0, PAGES, 0);
	((uint64_t *)at(n, faults.list))[1] = htole64(n->buf | SKUA_PL_PRESENT | 4);
	used = n->dev->pages_used;
	REFUSED(w, n, pages_cmd(key, 0, 1, 0), SKUA_CMD_BAD_OBJECT, c->update_pages.key ^= htole32(1));
	REFUSED(w, n, pages_cmd(key, 0, 1, 0), SKUA_CMD_BAD_OBJECT, c->update_pages.key ^= htole32(1u << 31));
	REFUSED(w, n, pages_cmd(n->key, 0, 1, 0), SKUA_CMD_BAD_OBJECT, (void)c);
	REFUSED(w, n, pages_cmd(key, 0, 1, 0), SKUA_CMD_BAD_PARAM, c->update_pages.rsvd0 = 1);
	REFUSED(w, n, pages_cmd(key, 0, 1, 0), SKUA_CMD_BAD_PARAM, c->update_pages.rsvd1[191] = 1);
	REFUSED(w, n, pages_cmd(key, 0, 0, 0), SKUA_CMD_BAD_PARAM, (void)c);
	REFUSED(w, n, pages_cmd(key, 0, PAGES + 1, 0), SKUA_CMD_BAD_PARAM, (void)c);
	REFUSED(w, n, pages_cmd(key, PAGES, 1, 0), SKUA_CMD_BAD_PARAM, (void)c);
	REFUSED(w, n, pages_cmd(key, 1, UINT64_MAX, 0), SKUA_CMD_BAD_PARAM, (void)c);
	REFUSED(w, n, pages_cmd(key, 0, 1, faults.list + 4), SKUA_CMD_BAD_PARAM, (void)c);
	REFUSED(w, n, pages_cmd(key, 0, 2, faults.list), SKUA_CMD_BAD_PARAM, (void)c);
	((uint64_t *)at(n, faults.list))[1] = htole64(n->buf | SKUA_PL_READ_ONLY);
	REFUSED(w, n, pages_cmd(key, 0, 2, faults.list), SKUA_CMD_BAD_PARAM, (void)c);
	REFUSED(w, n, pages_cmd(key, 0, 1, 0xdead0000), SKUA_CMD_BAD_ADDRESS, (void)c);
	/* Refused commands have changed nothing. */
	assert_int_equal(n->dev->pages_used, used);
	for (uint64_t i = 0; i < PAGES; i++)
		assert_int_equal(sparse_get(&odp_of(numtab_get(&n->dev->mrs, key >> 8))->pages, i),
				 region_page(n, i) | SKUA_PL_PRESENT);
	must(w, n, object_cmd(SKUA_CMD_DESTROY_MR, key));
	must(w, n, object_cmd(SKUA_CMD_DESTROY_EQ, faults.eqn));
}

/* Bounds and rights are those of any region, and are looked at first. */
static void bounds_and_rights(void **state)
{
	static const struct { int64_t offset; uint32_t len; uint32_t access; } bad[] = {
		{ -1, 2, RIGHTS }, { SIZE, 1, RIGHTS }, { SIZE - 1, 2, RIGHTS }, { 0, SIZE + 1, RIGHTS },
		{ 0, 8, SKUA_ACCESS_ON_DEMAND | SKUA_ACCESS_LOCAL_WRITE },
	};
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	fault_eq(w, b);
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct skua_cmd cmd = region_cmd(b);

		cmd.create_mr.access = htole32(bad[i].access);
		post(a, i & 1 ? SKUA_WQE_READ : SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, bad[i].len,
		     MR_IOVA + (uint64_t)bad[i].offset, must(w, b, cmd), 0);
		expect(w, a, i & 1 ? SKUA_CQE_READ : SKUA_CQE_WRITE, SKUA_CQE_REM_ACCESS_ERR);
		expect_event(w, b, SKUA_EVENT_QP_ACCESS_ERR, b->qpn);
		reconnect(w, a, b);
		reconnect(w, b, a);
	}
	expect_no_fault(w, b);
}

/* A region of all addresses, which has pages here and there. */
static void all_addresses(void **state)
{
	static const uint64_t places[] = { 0, 4096, 1ull << 21, 0x7fffdeadb000, 1ull << 63, UINT64_MAX - 4095 };
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cmd cmd = region_cmd(b);
	struct skua_fault_eqe eqe;
	uint64_t used;
	uint32_t key;

	fault_eq(w, b);
	used = b->dev->pages_used;
	cmd.create_mr.iova = 0;
	cmd.create_mr.length = 0;
	cmd.create_mr.pages.offset = 0;
	key = must(w, b, cmd);
	assert_int_equal(b->dev->pages_used, used);
	for (uint32_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		fill(a, 4096, i);
		post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 4096, places[i], key, 0);
		eqe = expect_fault(w, b, SKUA_PAGE_FAULT_RESPONDER, true, places[i]);
		*(uint64_t *)at(b, faults.list) = htole64((b->buf + i * 4096) | SKUA_PL_PRESENT);
		must(w, b, pages_cmd(key, places[i] >> 12, 1, faults.list));
		resume_fault(w, b, eqe);
		pass(w, RNR_NS);
		expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
		assert_memory_equal(at(a, a->buf), at(b, b->buf + i * 4096), 4096);
	}
	/* An access does not go on at address 0. */
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 8, UINT64_MAX - 3, key, 0);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_REM_ACCESS_ERR);
	assert_true(b->dev->pages_used > used);
	/* All of it at once, in one step. */
	drop_pages(w, b, key, 0, 1ull << 52);
	settle(w);
	assert_int_equal(b->dev->pages_used, used);
}

/* Tables count in the quota, until they are freed; without quota a page stays absent. */
static void tables_count_in_the_quota(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_cmd cmd = region_cmd(n);
	uint64_t used, max = n->dev->max_pages;
	uint32_t key;

	fault_eq(w, n);
	cmd.create_mr.length = htole64((1ull << 30) - 4096);
	key = must(w, n, cmd);
	used = n->dev->pages_used;
	give_pages(w, n, key, 0, 1, 0);
	/* Two levels of tables. */
	assert_int_equal(n->dev->pages_used, used + 2 * SPARSE_SIZE);
	give_pages(w, n, key, 1, 4, 0);
	assert_int_equal(n->dev->pages_used, used + 2 * SPARSE_SIZE);
	n->dev->max_pages = n->dev->pages_used + SPARSE_SIZE - 1;
	*(uint64_t *)at(n, faults.list) = htole64(n->buf | SKUA_PL_PRESENT);
	REFUSED(w, n, pages_cmd(key, 512, 1, faults.list), SKUA_CMD_NO_RESOURCE, (void)c);
	REFUSED(w, n, pages_cmd(key, 511, 2, faults.list), SKUA_CMD_NO_RESOURCE, (void)c);
	assert_int_equal(sparse_get(&odp_of(numtab_get(&n->dev->mrs, key >> 8))->pages, 511), 0);
	/* A table for one of two pages is of no use. */
	n->dev->max_pages = n->dev->pages_used + SPARSE_SIZE;
	REFUSED(w, n, pages_cmd(key, 1023, 2, faults.list), SKUA_CMD_NO_RESOURCE, (void)c);
	settle(w);
	assert_int_equal(n->dev->pages_used, used + 2 * SPARSE_SIZE);
	/* Entries that are absent need no table. */
	memset(at(n, faults.list), 0, 4096);
	n->dev->max_pages = max;
	must(w, n, pages_cmd(key, 512, 512, faults.list));
	settle(w);
	assert_int_equal(n->dev->pages_used, used + 2 * SPARSE_SIZE);
	drop_pages(w, n, key, 0, 4);
	settle(w);
	assert_int_equal(n->dev->pages_used, used + 2 * SPARSE_SIZE);
	drop_pages(w, n, key, 4, 1);
	settle(w);
	assert_int_equal(n->dev->pages_used, used);
	give_pages(w, n, key, 0, PAGES, 0);
	must(w, n, object_cmd(SKUA_CMD_DESTROY_MR, key));
	settle(w);
	assert_int_equal(n->dev->pages_used, used);
}

/* What was released is freed, if its quota is needed at once. */
static void released_tables_make_room(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_cmd cmd = region_cmd(n);
	uint32_t key;

	fault_eq(w, n);
	cmd.create_mr.length = htole64((1ull << 30) - 4096);
	key = must(w, n, cmd);
	give_pages(w, n, key, 0, 1, 0);
	n->dev->max_pages = n->dev->pages_used;
	sparse_clear(n->dev, &odp_of(numtab_get(&n->dev->mrs, key >> 8))->pages, 0, 0);
	assert_non_null(n->dev->old_tables);
	give_pages(w, n, key, 0, 1, 0);
	assert_int_equal(n->dev->pages_used, n->dev->max_pages);
	/* But no more than that. */
	drop_pages(w, n, key, 0, 1);
	settle(w);
	sparse_reserve(n->dev, &odp_of(numtab_get(&n->dev->mrs, key >> 8))->pages, 0, 1);
	sparse_trim(n->dev, &odp_of(numtab_get(&n->dev->mrs, key >> 8))->pages, 0, 1);
	assert_non_null(n->dev->old_tables);
	REFUSED(w, n, pages_cmd(key, 511, 2, faults.list), SKUA_CMD_NO_RESOURCE, (void)c);
}

/* Publish commands without waiting for them. */
static void begin(struct node *n, struct skua_cmd cmd)
{
	cmd.hdr.id = htole32(n->cmd_pi);
	memcpy(at(n, n->cmd_ring + (n->cmd_pi & ((1u << LOG_CMD) - 1)) * sizeof(cmd)), &cmd, sizeof(cmd));
	n->cmd_pi++;
	host_store32(&((struct skua_dbr *)at(n, n->cmd_dbr))->pi, n->cmd_pi);
	ring(n, SKUA_DB_CMD, 0, n->cmd_pi);
}

static const struct skua_cmd_cpl *completion(struct node *n, uint32_t i)
{
	return at(n, n->cmd_cpl + (i & ((1u << LOG_CMD) - 1)) * sizeof(struct skua_cmd_cpl));
}

/* Memory management of the host does not wait for a long page list, nor for commands that do. */
static void pages_do_not_wait_for_long_commands(void **state)
{
	const uint32_t npages = 100000;
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint64_t top = take(n, 4096), leaf = take(n, 4096);
	uint32_t key = create_region(w, n), first, steps = 0;
	struct skua_cmd large = create_mr_cmd(n);

	for (int i = 0; i < 512; i++) {
		((uint64_t *)at(n, top))[i] = htole64(leaf | SKUA_PL_PRESENT);
		((uint64_t *)at(n, leaf))[i] = htole64(n->buf | SKUA_PL_PRESENT);
	}
	large.create_mr.length = htole64(npages * 4096ull);
	large.create_mr.pages = (struct skua_pagelist){ .npages = htole32(npages), .level = 2, .log_page = 12,
							.addr = { htole64(top | SKUA_PL_PRESENT) } };
	give_pages(w, n, key, 0, PAGES, 0);
	settle(w);
	first = n->cmd_pi;
	begin(n, large);
	begin(n, large);
	engine_step(w->engines[0]);
	begin(n, (struct skua_cmd)CMD(SKUA_CMD_NOP));
	for (uint64_t i = 0; i < PAGES; i++)
		begin(n, pages_cmd(key, i, 1, 0));
	while (n->dev->cmdq.cpl_pi != first + PAGES) {
		assert_true(engine_step(w->engines[0]));
		steps++;
	}
	assert_true(steps < 2 * PAGES);
	for (uint32_t i = 0; i < PAGES; i++)
		assert_int_equal(le32toh(completion(n, first + i)->id), first + 3 + i);
	settle(w);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(le32toh(completion(n, first + PAGES + i)->id), first + i);
		assert_int_equal(completion(n, first + PAGES + i)->status, SKUA_CMD_OK);
	}
}

/* A reset with faults outstanding, and with pages, leaves nothing behind. */
static void a_reset(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = create_region(w, a);

	give_pages(w, a, key, 1, 3, 0);
	post_key(a, SKUA_WQE_WRITE, key, MR_IOVA, 8, b->buf, b->key);
	settle(w);
	a->used = 0;
	revive(w, a);
	assert_int_equal(a->dev->faults.count, 0);
	assert_int_equal(a->dev->num_odp_mrs, 0);
	assert_null(a->dev->old_tables);
	a->used = 8u << 20;
	create_region(w, a);
}

/* Its pages come and go by UPDATE_PAGES alone. */
static void it_is_not_modified(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_cmd cmd = CMD(SKUA_CMD_MODIFY_MR, .modify_mr = {
		.key = htole32(create_region(w, n)), .mask = htole32(SKUA_MR_SET_ACCESS),
		.access = htole32(SKUA_ACCESS_LOCAL_WRITE) });

	assert_int_equal(command(w, n, &cmd), SKUA_CMD_BAD_PARAM);
	cmd.modify_mr.mask = htole32(SKUA_MR_SET_PD);
	cmd.modify_mr.pdn = htole32(n->pdn);
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_BAD_PARAM);
	cmd.modify_mr.key = htole32(n->key);
	must(w, n, cmd);
	cmd.modify_mr.mask = htole32(SKUA_MR_SET_ACCESS);
	cmd.modify_mr.access = htole32(SKUA_ACCESS_LOCAL_WRITE | SKUA_ACCESS_ON_DEMAND);
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_BAD_PARAM);
}

/* Without the feature there is none of it. */
static void without_the_feature(void **state)
{
	struct world *w = world_create_with(false, ~(1ull << SKUA_F_ON_DEMAND));
	struct node *n = &w->n[0];

	(void)state;
	REFUSED(w, n, create_eq_cmd(n), SKUA_CMD_BAD_PARAM, c->create_eq.type = SKUA_EQ_FAULT,
		c->create_eq.log_size = 0, c->create_eq.dbr_addr = htole64(take(n, 64)),
		c->create_eq.ring = list(take(n, 64), 64));
	REFUSED(w, n, region_cmd(n), SKUA_CMD_BAD_PARAM, (void)c);
	REFUSED(w, n, pages_cmd(n->key, 0, 1, 0), SKUA_CMD_BAD_OPCODE, (void)c);
	REFUSED(w, n, resume_cmd((struct skua_fault_eqe){ 0 }, 0), SKUA_CMD_BAD_OPCODE, (void)c);
	world_destroy(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STEPPED(tokens_end, "ODP-12 ODP-13"),
		STEPPED(the_eq_bounds_the_events, "ODP-8 ODP-13"),
		STEPPED(events_find_room_without_a_command, "ODP-8"),
		STEPPED(an_eq_out_of_reach_is_fatal, "ODP-1 RST-3"),
		STEPPED(a_qp_sends_nothing_once_its_device_is_dead, "RST-3"),
		STEPPED(no_event_comes_after_the_fatal_one, "EVT-7 RST-3"),
		STEPPED(commands, "ODP-1 ODP-2 ODP-4 ODP-15 OBJ-7"),
		STEPPED(bounds_and_rights, "ODP-2 MEM-1"),
		STEPPED(all_addresses, "ODP-2 ODP-4"),
		STEPPED(tables_count_in_the_quota, "ODP-3"),
		STEPPED(released_tables_make_room, "ODP-3"),
		STEPPED(pages_do_not_wait_for_long_commands, "CMD-18"),
		STEPPED(a_reset, "RST-1 ODP-13"),
		STEPPED(it_is_not_modified, "MR-10"),
		{ "GRO-1 ODP-1: without_the_feature", without_the_feature, NULL, NULL, NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
