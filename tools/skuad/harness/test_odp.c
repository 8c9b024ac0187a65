// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* On-demand paging: regions without pages, page faults on either side, and what the host makes of them. */
#include "core/odp.h"
#include "core/srq.h"
#include "harness/datagram.h"
#include "harness/lossy.h"
#include "nic/control.h"

#define PAGES		5
#define OFFSET		104	/* of the region in its first page */
#define SIZE		(PAGES * 4096 - OFFSET - 50)
#define MR_IOVA		0x5000000ull
#define LATER		65536	/* in the buffer, behind the region */
#define LOG_FAULTS	2	/* entries of the fault EQ, log2 */
#define RNR_NS		700000	/* longer than the peer waits after an RNR NAK */
#define REMOTE		(SKUA_ACCESS_REMOTE_WRITE | SKUA_ACCESS_REMOTE_READ | SKUA_ACCESS_REMOTE_ATOMIC)
#define RIGHTS		(SKUA_ACCESS_LOCAL_WRITE | REMOTE | SKUA_ACCESS_ON_DEMAND)

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

/* The fault EQ of one node, and memory for a list of pages. */
static struct {
	uint64_t eq, dbr, list;
	uint32_t eqn, ci;
} faults;

static void fault_eq(struct world *w, struct node *n)
{
	struct skua_cmd cmd = create_eq_cmd(n);

	faults.eq = take(n, 64u << LOG_FAULTS);
	faults.dbr = take(n, 64);
	faults.list = take(n, 4096);
	faults.ci = 0;
	cmd.create_eq.type = SKUA_EQ_FAULT;
	cmd.create_eq.log_size = LOG_FAULTS;
	cmd.create_eq.vector = htole16(2);
	cmd.create_eq.dbr_addr = htole64(faults.dbr);
	cmd.create_eq.ring = list(faults.eq, 64u << LOG_FAULTS);
	faults.eqn = must(w, n, cmd);
}

static struct skua_fault_eqe *next_fault(struct node *n)
{
	struct skua_fault_eqe *eqe = at(n, faults.eq + (faults.ci & ((1u << LOG_FAULTS) - 1)) * 64ull);

	if ((eqe->flags & SKUA_EQE_PHASE) == (faults.ci >> LOG_FAULTS & 1))
		return NULL;
	faults.ci++;
	host_store32(&((struct skua_eq_dbr *)at(n, faults.dbr))->ci, faults.ci);
	return eqe;
}

static struct skua_fault_eqe expect_fault(struct world *w, struct node *n, uint8_t side, bool write, uint64_t addr)
{
	struct skua_fault_eqe *eqe;

	settle(w);
	eqe = next_fault(n);
	assert_non_null(eqe);
	assert_int_equal(eqe->side, side);
	assert_int_equal(eqe->write, write);
	assert_int_equal(le64toh(eqe->addr), addr);
	return *eqe;
}

static void expect_no_fault(struct world *w, struct node *n)
{
	settle(w);
	assert_null(next_fault(n));
}

/* No pages, and all rights. */
static struct skua_cmd region_cmd(struct node *n)
{
	return (struct skua_cmd)CMD(SKUA_CMD_CREATE_MR, .create_mr = {
		.pdn = htole32(n->pdn), .access = htole32(RIGHTS), .iova = htole64(MR_IOVA), .length = htole64(SIZE),
		.pages = { .log_page = 12, .offset = htole64(OFFSET) } });
}

static uint32_t region(struct world *w, struct node *n)
{
	fault_eq(w, n);
	return must(w, n, region_cmd(n));
}

static struct skua_cmd pages_cmd(uint32_t key, uint64_t first, uint64_t count, uint64_t list_at)
{
	return (struct skua_cmd)CMD(SKUA_CMD_UPDATE_PAGES, .update_pages = {
		.key = htole32(key), .first = htole64(first), .count = htole64(count), .list = htole64(list_at) });
}

/* Where page @i is: the pages lie in reverse. */
static uint64_t page(struct node *n, uint64_t i)
{
	return n->buf + (PAGES - 1 - i) * 4096;
}

static void give(struct world *w, struct node *n, uint32_t key, uint64_t first, uint64_t count, uint64_t flags)
{
	for (uint64_t i = 0; i < count; i++)
		((uint64_t *)at(n, faults.list))[i] = htole64(page(n, first + i) | SKUA_PL_PRESENT | flags);
	must(w, n, pages_cmd(key, first, count, faults.list));
}

static void drop(struct world *w, struct node *n, uint32_t key, uint64_t first, uint64_t count)
{
	must(w, n, pages_cmd(key, first, count, 0));
}

static struct skua_cmd resume_cmd(struct skua_fault_eqe eqe, uint8_t result)
{
	return (struct skua_cmd)CMD(SKUA_CMD_FAULT_RESUME, .fault_resume = { .token = eqe.token, .result = result });
}

static void resume(struct world *w, struct node *n, struct skua_fault_eqe eqe)
{
	must(w, n, resume_cmd(eqe, SKUA_PAGE_FAULT_RETRY));
}

static void fail_fault(struct world *w, struct node *n, struct skua_fault_eqe eqe)
{
	must(w, n, resume_cmd(eqe, SKUA_PAGE_FAULT_FAIL));
}

/* Byte @i of the region. */
static uint8_t *byte(struct node *n, uint32_t i)
{
	i += OFFSET;
	return (uint8_t *)at(n, page(n, i / 4096)) + i % 4096;
}

/* The region's bytes from @offset on, as @peer has them at @addr. */
static void same(struct node *n, uint32_t offset, struct node *peer, uint64_t addr, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		assert_int_equal(*byte(n, offset + i), ((uint8_t *)at(peer, addr))[i]);
}

static void fill_region(struct node *n)
{
	for (uint32_t i = 0; i < SIZE; i++)
		*byte(n, i) = (uint8_t)(i * 7 + i / 256);
}

/* Post with this lkey. */
static void post_key(struct node *n, uint8_t opcode, uint32_t lkey, uint64_t addr, uint32_t len, uint64_t raddr,
		     uint32_t rkey)
{
	uint32_t key = n->key;

	n->key = lkey;
	post(n, opcode, SKUA_WQE_SIGNALED, addr, len, raddr, rkey, 0);
	n->key = key;
}

static void post_recv_key(struct node *n, uint32_t lkey, uint64_t addr, uint32_t len)
{
	uint32_t key = n->key;

	n->key = lkey;
	post_recv(n, addr, len);
	n->key = key;
}

static struct skua_qp *qp_of(struct node *n)
{
	return numtab_get(&n->dev->qps, n->qpn);
}

/* Payload that is not there: the event says what is missing, and the SQ goes on from there. */
static void a_requester_waits_for_its_payload(void **state)
{
	static const uint8_t opcodes[] = { SKUA_WQE_SEND, SKUA_WQE_WRITE };
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = region(w, a);

	fill_region(a);
	for (unsigned int i = 0; i < 2; i++) {
		struct skua_fault_eqe eqe;

		memset(at(b, b->buf), 0, SIZE);
		post_recv(b, b->buf, SIZE);
		post_key(a, opcodes[i], key, MR_IOVA + 7, SIZE - 7, b->buf, b->key);
		eqe = expect_fault(w, a, SKUA_PAGE_FAULT_REQUESTER, false, MR_IOVA + 7);
		assert_int_equal(le32toh(eqe.qpn), a->qpn);
		assert_int_equal(le64toh(eqe.handle), QP_HANDLE);
		assert_int_equal(le32toh(eqe.key), key);
		assert_int_equal(le64toh(eqe.length), SIZE - 7);
		give(w, a, key, 0, 2, SKUA_PL_READ_ONLY);
		expect_none(w, a);
		resume(w, a, eqe);
		/* One packet may have been held up because a part of it is on the next page. */
		eqe = expect_fault(w, a, SKUA_PAGE_FAULT_REQUESTER, false, MR_IOVA + 2 * 4096 - OFFSET);
		give(w, a, key, 2, PAGES - 2, SKUA_PL_READ_ONLY);
		resume(w, a, eqe);
		settle(w);
		expect(w, a, i ? SKUA_CQE_WRITE : SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
		same(a, 7, b, b->buf, SIZE - 7);
		drop(w, a, key, 0, PAGES);
	}
	expect_no_fault(w, a);
	assert_int_equal(STAT(w, a, page_faults), 4);
	assert_int_equal(STAT(w, b, rnr_nak_sent), 0);
}

/* Nothing else waits: not the responder, and not another QP. */
static void only_the_sq_waits(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = region(w, a);
	struct skua_fault_eqe eqe;

	post_key(a, SKUA_WQE_WRITE, key, MR_IOVA, 8, b->buf, b->key);
	eqe = expect_fault(w, a, SKUA_PAGE_FAULT_REQUESTER, false, MR_IOVA);
	post(b, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, b->buf, 4096, a->buf, a->key, 0);
	expect(w, b, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	/* A host that takes its time costs no retries, and the device no time. */
	pass(w, 60ull * 1000000000);
	assert_int_equal(qp_state(w, a, a->qpn), SKUA_QPS_RTS);
	expect_no_fault(w, a);
	give(w, a, key, 0, 1, 0);
	resume(w, a, eqe);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
}

static void a_responder_asks_the_peer_to_wait(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = region(w, b);
	struct skua_fault_eqe eqe;

	fill(a, SIZE, 1);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, SIZE - 9, MR_IOVA + 9, key, 0);
	eqe = expect_fault(w, b, SKUA_PAGE_FAULT_RESPONDER, true, MR_IOVA + 9);
	assert_int_equal(le32toh(eqe.qpn), b->qpn);
	assert_int_equal(le64toh(eqe.length), SIZE - 9);
	assert_int_equal(STAT(w, b, rnr_nak_sent), 1);
	/* The peer asks again before the host has answered: there is no second event. */
	pass(w, RNR_NS);
	assert_int_equal(STAT(w, b, rnr_nak_sent), 2);
	expect_no_fault(w, b);
	give(w, b, key, 0, 3, 0);
	resume(w, b, eqe);
	pass(w, RNR_NS);
	eqe = expect_fault(w, b, SKUA_PAGE_FAULT_RESPONDER, true, MR_IOVA + 3 * 4096 - OFFSET);
	give(w, b, key, 3, 2, 0);
	resume(w, b, eqe);
	pass(w, RNR_NS);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	same(b, 9, a, a->buf, SIZE - 9);
}

/* A page that may only be read is missing for who writes. */
static void a_read_only_page_is_missing_for_a_write(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = region(w, b);
	struct skua_fault_eqe eqe;

	give(w, b, key, 0, PAGES, SKUA_PL_READ_ONLY);
	fill_region(b);
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, SIZE, MR_IOVA, key, 0);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	same(b, 0, a, a->buf, SIZE);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf + LATER, 8, MR_IOVA, key, 0);
	eqe = expect_fault(w, b, SKUA_PAGE_FAULT_RESPONDER, true, MR_IOVA);
	same(b, 0, a, a->buf, 8);
	give(w, b, key, 0, 1, 0);
	resume(w, b, eqe);
	pass(w, RNR_NS);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	same(b, 0, a, a->buf + LATER, 8);
}

/* The receive is neither lost nor taken twice. */
static void a_receive_is_kept(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = region(w, b), len = SIZE;
	struct skua_fault_eqe eqe;

	fill(a, SIZE, 2);
	post_recv_key(b, key, MR_IOVA, SIZE);
	post_recv(b, b->buf + LATER, SIZE);
	post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, len, 0, 0, 0);
	post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, len, 0, 0, 0);
	for (uint64_t i = 0; i < PAGES; i++) {
		eqe = expect_fault(w, b, SKUA_PAGE_FAULT_RESPONDER, true, i ? MR_IOVA + i * 4096 - OFFSET : MR_IOVA);
		assert_int_equal(le64toh(eqe.length), MR_IOVA + SIZE - le64toh(eqe.addr));
		give(w, b, key, i, 1, 0);
		resume(w, b, eqe);
		pass(w, RNR_NS);
	}
	for (uint32_t i = 0; i < 2; i++) {
		struct skua_cqe *cqe = await_cqe(w, b);

		assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
		assert_int_equal(le32toh(cqe->cookie), i);
		assert_int_equal(le32toh(cqe->byte_len), len);
		expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	}
	same(b, 0, a, a->buf, SIZE);
	assert_memory_equal(at(b, b->buf + LATER), at(a, a->buf), SIZE);
}

/* The same for a WRITE with immediate, whose receive is taken by its last packet. */
static void the_receive_of_an_immediate_is_kept(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = region(w, b);
	struct skua_fault_eqe eqe;

	fill(a, SIZE, 3);
	give(w, b, key, 0, PAGES - 1, 0);
	post_recv(b, b->buf + LATER, 0);
	post_recv(b, b->buf + LATER, 0);
	for (uint32_t i = 0; i < 2; i++) {
		struct skua_cqe *cqe;

		post(a, SKUA_WQE_WRITE_IMM, SKUA_WQE_SIGNALED, a->buf, SIZE, MR_IOVA, key, 0x77);
		if (!i) {
			eqe = expect_fault(w, b, SKUA_PAGE_FAULT_RESPONDER, true, MR_IOVA + (PAGES - 1) * 4096 - OFFSET);
			give(w, b, key, PAGES - 1, 1, 0);
			resume(w, b, eqe);
			pass(w, RNR_NS);
		}
		expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
		cqe = await_cqe(w, b);
		assert_int_equal(le32toh(cqe->cookie), i);
		assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
	}
	same(b, 0, a, a->buf, SIZE);
}

/* An entry of an SRQ goes back to its head. */
static void an_entry_of_an_srq_goes_back(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = region(w, b), cookies = 0;
	struct skua_fault_eqe eqe;
	struct skua_cmd srq, qp;

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
	must(w, b, init_cmd(b->qpn));
	must(w, b, rtr_cmd(b->qpn, a, a->qpn));
	must(w, b, rts_cmd(b->qpn));
	reconnect(w, a, b);
	post_recv_key(b, key, MR_IOVA, SIZE);
	post_recv(b, b->buf + LATER, SIZE);
	post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 100, 0, 0, 0);
	eqe = expect_fault(w, b, SKUA_PAGE_FAULT_RESPONDER, true, MR_IOVA);
	/* It is free for others. */
	assert_int_equal(((struct srq *)numtab_get(&b->dev->srqs, le32toh(qp.create_qp.srqn)))->num_returned, 1);
	give(w, b, key, 0, 1, 0);
	resume(w, b, eqe);
	pass(w, RNR_NS);
	post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 100, 0, 0, 0);
	for (uint32_t i = 0; i < 2; i++) {
		struct skua_cqe *cqe;

		expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
		cqe = await_cqe(w, b);
		assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
		cookies |= 1u << le32toh(cqe->cookie);
	}
	assert_int_equal(cookies, 3);
	same(b, 0, a, a->buf, 100);
}

/* The place of a READ is asked for before its request. */
static void the_place_of_a_read_comes_first(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = region(w, a);
	struct skua_fault_eqe eqe;

	fill(b, SIZE, 4);
	post_key(a, SKUA_WQE_READ, key, MR_IOVA, SIZE, b->buf, b->key);
	eqe = expect_fault(w, a, SKUA_PAGE_FAULT_REQUESTER, true, MR_IOVA);
	assert_int_equal(le64toh(eqe.length), SIZE);
	assert_int_equal(STAT(w, b, rdma_rx_read), 0);
	give(w, a, key, 0, PAGES, 0);
	resume(w, a, eqe);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	same(a, 0, b, b->buf, SIZE);
}

/* It goes while the response is on its way: that is dropped, and asked for again. */
static void a_response_without_a_place_is_asked_for_again(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = region(w, a);
	struct skua_fault_eqe eqe;

	fill(b, SIZE, 5);
	give(w, a, key, 0, PAGES, 0);
	must(w, b, port_cmd(SKUA_PORT_SET_FLAGS, 0));
	post_key(a, SKUA_WQE_READ, key, MR_IOVA, SIZE, b->buf, b->key);
	settle(w);
	drop(w, a, key, 0, PAGES);
	must(w, b, port_cmd(SKUA_PORT_SET_FLAGS, SKUA_PORT_F_ENABLE | SKUA_PORT_F_ROCE));
	pass(w, 100000000);
	eqe = expect_fault(w, a, SKUA_PAGE_FAULT_REQUESTER, true, MR_IOVA);
	for (unsigned int i = 0; i < 200; i++)
		pass(w, 300000000);
	assert_int_equal(qp_state(w, a, a->qpn), SKUA_QPS_RTS);
	expect_no_fault(w, a);
	give(w, a, key, 0, PAGES, 0);
	resume(w, a, eqe);
	pass(w, 1000000);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	same(a, 0, b, b->buf, SIZE);
}

/* Genuine: packet @i of a READ of @npkts packets of @from's buffer. */
static void respond(struct node *to, struct node *from, uint32_t i, uint32_t npkts)
{
	struct seglist payload = { 1, 1024, { { (uint8_t *)at(from, from->buf) + i * 1024, 1024 } } };
	struct train t = train_from(to, TRAIN_READ_RESP, FIRST_PSN + i);

	t.payload = &payload;
	t.first = !i;
	t.last = i + 1 == npkts;
	arrive_only(to, from, t);
}

/* It has come early, and was held. When its turn comes, its page is gone. What is behind it is still held. */
static void a_held_response_without_a_place_is_asked_for_again(void **state)
{
	enum { NPKTS = 12, IN_PAGE = 4 };
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = region(w, a), begin = 4096 - OFFSET;
	struct skua_fault_eqe eqe;
	uint64_t packets;

	fill(b, NPKTS * 1024, 7);
	give(w, a, key, 0, PAGES, 0);
	IMPAIR(b, "drop=100%,dir=out");
	post_key(a, SKUA_WQE_READ, key, MR_IOVA + begin, NPKTS * 1024, b->buf, b->key);
	settle(w);
	for (uint32_t i = IN_PAGE; i < NPKTS; i++)
		respond(a, b, i, NPKTS);
	drop(w, a, key, 2, 1);
	for (uint32_t i = 0; i < IN_PAGE; i++)
		respond(a, b, i, NPKTS);
	eqe = expect_fault(w, a, SKUA_PAGE_FAULT_REQUESTER, true, MR_IOVA + begin + 4096);
	assert_true(skua_dev_set_impair(b->dev, NULL));
	give(w, a, key, 2, 1, 0);
	packets = STAT(w, a, rdma_rx_packets);
	resume(w, a, eqe);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	same(a, begin, b, b->buf, NPKTS * 1024);
	assert_int_equal(STAT(w, a, rdma_rx_packets) - packets, 1);
}

static void a_read_of_missing_pages(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = region(w, b);
	struct skua_fault_eqe eqe;

	fill_region(b);
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, SIZE, MR_IOVA, key, 0);
	eqe = expect_fault(w, b, SKUA_PAGE_FAULT_RESPONDER, false, MR_IOVA);
	assert_int_equal(le64toh(eqe.length), SIZE);
	assert_int_equal(STAT(w, b, rnr_nak_sent), 1);
	pass(w, RNR_NS);
	assert_int_equal(STAT(w, b, rnr_nak_sent), 2);
	give(w, b, key, 0, PAGES, 0);
	resume(w, b, eqe);
	pass(w, RNR_NS);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	same(b, 0, a, a->buf, SIZE);
}

/* The pages of a READ go when it was accepted: the responses wait, and so does all that is behind them. */
static void pages_go_in_the_midst_of_a_read(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = region(w, b);
	struct skua_fault_eqe eqe;

	fill_region(b);
	fill(a, 8, 6);
	give(w, b, key, 0, PAGES, 0);
	arrive_only(b, a, (struct train){ .op = TRAIN_READ_REQ, .first = true, .last = true, .ack_req = true, .npkts = 1,
					  .psn = FIRST_PSN, .pmtu = 1024, .dest_qpn = b->qpn, .rkey = key,
					  .raddr = MR_IOVA, .msg_len = SIZE });
	sparse_clear(b->dev, &odp_of(numtab_get(&b->dev->mrs, key >> 8))->pages, 0, PAGES - 1);
	/* The same request, that was lost so far for all that a knows. */
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf + LATER, SIZE, MR_IOVA, key, 0);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 8, b->buf + LATER, b->key, 0);
	eqe = expect_fault(w, b, SKUA_PAGE_FAULT_RESPONDER, false, MR_IOVA);
	/* The peer is asked to wait, whenever it asks. */
	assert_int_equal(STAT(w, b, rnr_nak_sent), 1);
	pass(w, RNR_NS);
	assert_int_equal(STAT(w, b, rnr_nak_sent), 2);
	assert_int_equal(STAT(w, a, ack_timeouts), 0);
	expect_none(w, a);
	assert_false(qp_of(b)->active);
	give(w, b, key, 0, PAGES, 0);
	resume(w, b, eqe);
	pass(w, 100000000);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	same(b, 0, a, a->buf + LATER, SIZE);
}

static void post_atomic(struct node *a, uint32_t lkey, uint64_t addr, uint64_t raddr, uint32_t rkey)
{
	struct {
		struct skua_wqe_ctrl ctrl;
		struct skua_wqe_atomic atomic;
		struct skua_sge sge;
	} k = {
		.ctrl = { .opcode = SKUA_WQE_FETCH_ADD, .flags = SKUA_WQE_SIGNALED, .nblocks = 1, .num_sge = 1,
			  .cookie = htole32(a->sq_pi) },
		.atomic = { .raddr = htole64(raddr), .rkey = htole32(rkey), .swap_add = htole64(5) },
		.sge = { htole64(addr), htole32(8), htole32(lkey) },
	};

	static_assert(sizeof(k) == SKUA_WQE_BLOCK, "an atomic takes one block");
	post_block(a, &k);
}

static void allow_atomics(struct world *w, struct node *n)
{
	must(w, n, modify_cmd(n->qpn, SKUA_QP_ATTR_ACCESS, (struct skua_qp_attr){ .access = htole32(REMOTE) }));
}

/* It is carried out once, however often a page is missing. */
static void an_atomic(void **state)
{
	const uint64_t at_word = MR_IOVA + 4096 - OFFSET;
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = region(w, b);
	struct skua_fault_eqe eqe;
	uint64_t *word = at(b, page(b, 1));

	allow_atomics(w, b);
	*word = htole64(37);
	post_atomic(a, a->key, a->buf, at_word, key);
	eqe = expect_fault(w, b, SKUA_PAGE_FAULT_RESPONDER, true, at_word);
	assert_int_equal(le64toh(eqe.length), 8);
	give(w, b, key, 1, 1, 0);
	resume(w, b, eqe);
	pass(w, RNR_NS);
	expect(w, a, SKUA_CQE_FETCH_ADD, SKUA_CQE_SUCCESS);
	assert_int_equal(le64toh(*word), 42);
	assert_int_equal(le64toh(*(uint64_t *)at(a, a->buf)), 37);
}

static void the_place_of_an_atomics_result(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = region(w, a);
	uint64_t *word = at(b, b->buf);
	struct skua_cmd other = create_mr_cmd(b);
	struct skua_fault_eqe eqe;

	allow_atomics(w, b);
	other.create_mr.access = htole32(SKUA_ACCESS_LOCAL_WRITE | REMOTE);
	b->key = must(w, b, other);
	*word = htole64(37);
	post_atomic(a, key, MR_IOVA, b->buf, b->key);
	eqe = expect_fault(w, a, SKUA_PAGE_FAULT_REQUESTER, true, MR_IOVA);
	assert_int_equal(le64toh(*word), 37);
	give(w, a, key, 0, 1, 0);
	/* It goes again while the result is on its way. */
	must(w, b, port_cmd(SKUA_PORT_SET_FLAGS, 0));
	resume(w, a, eqe);
	settle(w);
	drop(w, a, key, 0, 1);
	must(w, b, port_cmd(SKUA_PORT_SET_FLAGS, SKUA_PORT_F_ENABLE | SKUA_PORT_F_ROCE));
	pass(w, 100000000);
	eqe = expect_fault(w, a, SKUA_PAGE_FAULT_REQUESTER, true, MR_IOVA);
	assert_int_equal(le64toh(*word), 42);
	give(w, a, key, 0, 1, 0);
	resume(w, a, eqe);
	pass(w, 1000000);
	expect(w, a, SKUA_CQE_FETCH_ADD, SKUA_CQE_SUCCESS);
	assert_int_equal(le64toh(*word), 42);
	assert_int_equal(*byte(a, 0), 37);
}

/* Only bounds and rights matter: what is not there was not written. */
static void a_flush_needs_no_pages(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cmd cmd = region_cmd(b);
	uint32_t key, len[] = { SIZE, SIZE + 1 };

	fault_eq(w, b);
	cmd.create_mr.access |= htole32(SKUA_ACCESS_FLUSH_GLOBAL);
	key = must(w, b, cmd);
	must(w, b, modify_cmd(b->qpn, SKUA_QP_ATTR_ACCESS, (struct skua_qp_attr){
		.access = htole32(REMOTE | SKUA_ACCESS_FLUSH_GLOBAL) }));
	for (unsigned int i = 0; i < 2; i++) {
		struct {
			struct skua_wqe_ctrl ctrl;
			struct skua_wqe_rdma rdma;
			uint8_t padding[32];
		} k = {
			.ctrl = { .opcode = SKUA_WQE_FLUSH, .flags = SKUA_WQE_SIGNALED, .nblocks = 1,
				  .cookie = htole32(a->sq_pi), .length = htole32(len[i]) },
			.rdma = { .raddr = htole64(MR_IOVA), .rkey = htole32(key), .flush = htole32(SKUA_FLUSH_GLOBAL) },
		};

		post_block(a, &k);
		expect(w, a, SKUA_CQE_FLUSH, i ? SKUA_CQE_REM_ACCESS_ERR : SKUA_CQE_SUCCESS);
	}
	expect_no_fault(w, b);
}

static void datagrams(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = region(w, a), node_key = a->key;
	struct skua_fault_eqe eqe;

	ud_queues(w, a, SKUA_QPT_UD, SKUA_QPS_RTS);
	ud_queues(w, b, SKUA_QPT_UD, SKUA_QPS_RTS);
	fill_region(a);
	post_recv(b, b->buf, 1000);
	a->key = key;
	post_ud(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, MR_IOVA, 500, ud_to(b), 0);
	a->key = node_key;
	eqe = expect_fault(w, a, SKUA_PAGE_FAULT_REQUESTER, false, MR_IOVA);
	expect_none(w, b);
	give(w, a, key, 0, 1, 0);
	resume(w, a, eqe);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	expect_datagram(w, b, SKUA_UD_HEADER + 500);
	same(a, 0, b, b->buf + SKUA_UD_HEADER, 500);
	/* A receive without its page: the datagram is lost, the receive is not. */
	drop(w, a, key, 0, 1);
	post_recv_key(a, key, MR_IOVA, 1000);
	post_ud(b, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, b->buf, 500, ud_to(a), 0);
	eqe = expect_fault(w, a, SKUA_PAGE_FAULT_RESPONDER, true, MR_IOVA);
	expect(w, b, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	expect_none(w, a);
	assert_int_equal(STAT(w, a, rdma_rx_no_receive), 1);
	give(w, a, key, 0, 1, 0);
	resume(w, a, eqe);
	post_ud(b, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, b->buf, 500, ud_to(a), 0);
	expect(w, b, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	expect_datagram(w, a, SKUA_UD_HEADER + 500);
	same(a, SKUA_UD_HEADER, b, b->buf, 500);
}

/* The host cannot bring the page: the access ends as one that may not be. */
static void a_requesters_fault_fails(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = region(w, a);

	for (unsigned int i = 0; i < 2; i++) {
		post_key(a, i ? SKUA_WQE_READ : SKUA_WQE_WRITE, key, MR_IOVA, 8, b->buf, b->key);
		fail_fault(w, a, expect_fault(w, a, SKUA_PAGE_FAULT_REQUESTER, i, MR_IOVA));
		expect_vendor(w, a, i ? SKUA_CQE_READ : SKUA_CQE_WRITE, SKUA_CQE_LOC_PROT_ERR,
			      SKUA_VENDOR_ERR_NOT_PRESENT);
		assert_int_equal(qp_state(w, a, a->qpn), SKUA_QPS_ERR);
		expect_no_fault(w, a);
		reconnect(w, a, b);
		reconnect(w, b, a);
	}
}

static void a_responders_fault_fails(void **state)
{
	static const uint8_t opcodes[] = { SKUA_WQE_WRITE, SKUA_WQE_READ };
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = region(w, b);

	for (unsigned int i = 0; i < 2; i++) {
		post(a, opcodes[i], SKUA_WQE_SIGNALED, a->buf, 8, MR_IOVA, key, 0);
		fail_fault(w, b, expect_fault(w, b, SKUA_PAGE_FAULT_RESPONDER, !i, MR_IOVA));
		pass(w, RNR_NS);
		expect(w, a, i ? SKUA_CQE_READ : SKUA_CQE_WRITE, SKUA_CQE_REM_ACCESS_ERR);
		expect_event(w, b, SKUA_EVENT_QP_ACCESS_ERR, b->qpn);
		reconnect(w, a, b);
		reconnect(w, b, a);
	}
	/* Of a receive, it is the receive that fails. */
	post_recv_key(b, key, MR_IOVA, 8);
	post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 8, 0, 0, 0);
	fail_fault(w, b, expect_fault(w, b, SKUA_PAGE_FAULT_RESPONDER, true, MR_IOVA));
	pass(w, RNR_NS);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_REM_OP_ERR);
	expect_vendor(w, b, SKUA_CQE_RECV, SKUA_CQE_LOC_PROT_ERR, SKUA_VENDOR_ERR_NOT_PRESENT);
}

/* A failure is one of its page only, and of that time. */
static void a_failure_is_not_remembered(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = region(w, a);
	struct skua_fault_eqe eqe;

	post_key(a, SKUA_WQE_WRITE, key, MR_IOVA, 8, b->buf, b->key);
	eqe = expect_fault(w, a, SKUA_PAGE_FAULT_REQUESTER, false, MR_IOVA);
	give(w, a, key, 0, 1, 0);
	fail_fault(w, a, eqe);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	/* The page that was there in the end goes away again. */
	drop(w, a, key, 0, 1);
	post_key(a, SKUA_WQE_WRITE, key, MR_IOVA, 8, b->buf, b->key);
	eqe = expect_fault(w, a, SKUA_PAGE_FAULT_REQUESTER, false, MR_IOVA);
	give(w, a, key, 0, 1, 0);
	resume(w, a, eqe);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	/* Of two pages that are missing, the second can be had. */
	drop(w, a, key, 0, 1);
	post_key(a, SKUA_WQE_WRITE, key, MR_IOVA, 4096, b->buf, b->key);
	eqe = expect_fault(w, a, SKUA_PAGE_FAULT_REQUESTER, false, MR_IOVA);
	give(w, a, key, 0, 1, 0);
	fail_fault(w, a, eqe);
	eqe = expect_fault(w, a, SKUA_PAGE_FAULT_REQUESTER, false, MR_IOVA + 4096 - OFFSET);
	give(w, a, key, 1, 1, 0);
	resume(w, a, eqe);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
}

/* The same of a request of the peer. */
static void a_failure_of_a_request_is_not_remembered(void **state)
{
	static const uint8_t opcodes[] = { SKUA_WQE_WRITE, SKUA_WQE_READ };
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = region(w, b);
	struct skua_fault_eqe eqe;

	for (unsigned int i = 0; i < 2; i++) {
		for (unsigned int round = 0; round < 2; round++) {
			post(a, opcodes[i], SKUA_WQE_SIGNALED, a->buf, 8, MR_IOVA, key, 0);
			eqe = expect_fault(w, b, SKUA_PAGE_FAULT_RESPONDER, !i, MR_IOVA);
			give(w, b, key, 0, 1, 0);
			fail_fault(w, b, eqe);
			pass(w, RNR_NS);
			expect(w, a, i ? SKUA_CQE_READ : SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
			drop(w, b, key, 0, 1);
		}
	}
}

/* The same of the place of a response. */
static void a_failure_of_a_response_is_not_remembered(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = region(w, a);
	struct skua_fault_eqe eqe;

	give(w, a, key, 0, 1, 0);
	must(w, b, port_cmd(SKUA_PORT_SET_FLAGS, 0));
	post_key(a, SKUA_WQE_READ, key, MR_IOVA, 8, b->buf, b->key);
	settle(w);
	drop(w, a, key, 0, 1);
	must(w, b, port_cmd(SKUA_PORT_SET_FLAGS, SKUA_PORT_F_ENABLE | SKUA_PORT_F_ROCE));
	pass(w, 100000000);
	eqe = expect_fault(w, a, SKUA_PAGE_FAULT_REQUESTER, true, MR_IOVA);
	give(w, a, key, 0, 1, 0);
	fail_fault(w, a, eqe);
	pass(w, 1000000);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	drop(w, a, key, 0, 1);
	post_key(a, SKUA_WQE_READ, key, MR_IOVA, 8, b->buf, b->key);
	expect_fault(w, a, SKUA_PAGE_FAULT_REQUESTER, true, MR_IOVA);
}

/* The same of a READ and an atomic whose page goes when they have been accepted. */
static void a_failure_of_a_job_is_not_remembered(void **state)
{
	static const enum train_op ops[] = { TRAIN_READ_REQ, TRAIN_FETCH_ADD };
	const uint64_t addr = MR_IOVA + 4096 - OFFSET;
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = region(w, b);
	struct skua_fault_eqe eqe;

	allow_atomics(w, b);
	for (uint32_t i = 0; i < 2; i++) {
		struct train t = train_from(b, ops[i], FIRST_PSN + i);

		t.rkey = key;
		t.raddr = addr;
		t.msg_len = 8;
		give(w, b, key, 1, 1, 0);
		arrive_only(b, a, t);
		sparse_clear(b->dev, &odp_of(numtab_get(&b->dev->mrs, key >> 8))->pages, 0, PAGES - 1);
		eqe = expect_fault(w, b, SKUA_PAGE_FAULT_RESPONDER, i, addr);
		give(w, b, key, 1, 1, 0);
		fail_fault(w, b, eqe);
		expect_no_fault(w, b);
		/* The next one finds no page. */
		drop(w, b, key, 1, 1);
		t.psn = psn_add(t.psn, 1);
		arrive_only(b, a, t);
		resume(w, b, expect_fault(w, b, SKUA_PAGE_FAULT_RESPONDER, i, addr));
	}
	assert_int_equal(qp_state(w, b, b->qpn), SKUA_QPS_RTS);
}

/* The same of datagrams, on either side. */
static void a_failure_of_a_datagram_is_not_remembered(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = region(w, a), node_key = a->key;
	struct skua_fault_eqe eqe;

	ud_queues(w, a, SKUA_QPT_UD, SKUA_QPS_RTS);
	ud_queues(w, b, SKUA_QPT_UD, SKUA_QPS_RTS);
	for (unsigned int i = 0; i < 2; i++) {
		post_recv(b, b->buf, 1000);
		a->key = key;
		post_ud(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, MR_IOVA, 500, ud_to(b), 0);
		a->key = node_key;
		eqe = expect_fault(w, a, SKUA_PAGE_FAULT_REQUESTER, false, MR_IOVA);
		give(w, a, key, 0, 1, 0);
		fail_fault(w, a, eqe);
		expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
		expect_datagram(w, b, SKUA_UD_HEADER + 500);
		drop(w, a, key, 0, 1);
	}
	for (unsigned int i = 0; i < 2; i++) {
		post_recv_key(a, key, MR_IOVA, 1000);
		post_ud(b, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, b->buf, 500, ud_to(a), 0);
		eqe = expect_fault(w, a, SKUA_PAGE_FAULT_RESPONDER, true, MR_IOVA);
		expect(w, b, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
		give(w, a, key, 0, 1, 0);
		fail_fault(w, a, eqe);
		post_ud(b, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, b->buf, 500, ud_to(a), 0);
		expect(w, b, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
		expect_datagram(w, a, SKUA_UD_HEADER + 500);
		drop(w, a, key, 0, 1);
	}
}

/* Tokens end with the answer, with ERR, with RESET, and with the QP. */
static void tokens_end(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = region(w, a);
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

/* Events without room wait in the device; a QP that ends takes its own along. */
static void the_eq_bounds_the_events(void **state)
{
	enum { NUM = 7 };
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = region(w, a), qpns[NUM], seen = 0;
	struct skua_fault_eqe eqe;

	for (unsigned int i = 0; i < NUM; i++) {
		struct skua_cmd cmd;

		new_queues(a);
		cmd = create_qp_cmd(a);
		qpns[i] = a->qpn = must(w, a, cmd);
		must(w, a, init_cmd(a->qpn));
		must(w, a, rtr_cmd(a->qpn, b, b->qpn));
		must(w, a, rts_cmd(a->qpn));
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

/* Without memory for the events the device is dead, as without that of asynchronous events. */
static void an_eq_out_of_reach_is_fatal(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cmd cmd = create_eq_cmd(a);
	uint32_t key;

	cmd.create_eq.type = SKUA_EQ_FAULT;
	cmd.create_eq.log_size = LOG_FAULTS;
	cmd.create_eq.dbr_addr = htole64(take(a, 64));
	cmd.create_eq.ring = list(EXTRA, 64u << LOG_FAULTS);
	must(w, a, cmd);
	key = must(w, a, region_cmd(a));
	unmap_extra(a);
	post_key(a, SKUA_WQE_WRITE, key, MR_IOVA, 8, b->buf, b->key);
	settle(w);
	assert_true(reg_read(a, SKUA_REG_STATUS) & SKUA_STATUS_FATAL);
	assert_int_equal(reg_read(a, SKUA_REG_HEALTH), SKUA_HEALTH_EQ_ADDRESS);
}

static void commands(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint64_t used;
	uint32_t key;

	REFUSED(w, n, region_cmd(n), SKUA_CMD_BAD_STATE, (void)c);
	key = region(w, n);
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

	give(w, n, key, 0, PAGES, 0);
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
				 page(n, i) | SKUA_PL_PRESENT);
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
		resume(w, b, eqe);
		pass(w, RNR_NS);
		expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
		assert_memory_equal(at(a, a->buf), at(b, b->buf + i * 4096), 4096);
	}
	/* An access does not go on at address 0. */
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 8, UINT64_MAX - 3, key, 0);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_REM_ACCESS_ERR);
	assert_true(b->dev->pages_used > used);
	/* All of it at once, in one step. */
	drop(w, b, key, 0, 1ull << 52);
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
	give(w, n, key, 0, 1, 0);
	/* Two levels of tables. */
	assert_int_equal(n->dev->pages_used, used + 2 * SPARSE_SIZE);
	give(w, n, key, 1, 4, 0);
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
	drop(w, n, key, 0, 4);
	settle(w);
	assert_int_equal(n->dev->pages_used, used + 2 * SPARSE_SIZE);
	drop(w, n, key, 4, 1);
	settle(w);
	assert_int_equal(n->dev->pages_used, used);
	give(w, n, key, 0, PAGES, 0);
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
	give(w, n, key, 0, 1, 0);
	n->dev->max_pages = n->dev->pages_used;
	sparse_clear(n->dev, &odp_of(numtab_get(&n->dev->mrs, key >> 8))->pages, 0, 0);
	assert_non_null(n->dev->old_tables);
	give(w, n, key, 0, 1, 0);
	assert_int_equal(n->dev->pages_used, n->dev->max_pages);
	/* But no more than that. */
	drop(w, n, key, 0, 1);
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
	uint32_t key = region(w, n), first, steps = 0;
	struct skua_cmd large = create_mr_cmd(n);

	for (int i = 0; i < 512; i++) {
		((uint64_t *)at(n, top))[i] = htole64(leaf | SKUA_PL_PRESENT);
		((uint64_t *)at(n, leaf))[i] = htole64(n->buf | SKUA_PL_PRESENT);
	}
	large.create_mr.length = htole64(npages * 4096ull);
	large.create_mr.pages = (struct skua_pagelist){ .npages = htole32(npages), .level = 2, .log_page = 12,
							.addr = { htole64(top | SKUA_PL_PRESENT) } };
	give(w, n, key, 0, PAGES, 0);
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
	uint32_t key = region(w, a);

	give(w, a, key, 1, 3, 0);
	post_key(a, SKUA_WQE_WRITE, key, MR_IOVA, 8, b->buf, b->key);
	settle(w);
	a->used = 0;
	revive(w, a);
	assert_int_equal(a->dev->faults.count, 0);
	assert_int_equal(a->dev->num_odp_mrs, 0);
	assert_null(a->dev->old_tables);
	a->used = 8u << 20;
	region(w, a);
}

/* Its pages come and go by UPDATE_PAGES alone. */
static void it_is_not_modified(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_cmd cmd = CMD(SKUA_CMD_MODIFY_MR, .modify_mr = {
		.key = htole32(region(w, n)), .mask = htole32(SKUA_MR_SET_ACCESS),
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
		STEPPED(a_requester_waits_for_its_payload, "ODP-5 ODP-7 ODP-8 ODP-9 ODP-12"),
		STEPPED(only_the_sq_waits, "ODP-9 ODP-14"),
		STEPPED(a_responder_asks_the_peer_to_wait, "ODP-8 ODP-10"),
		STEPPED(a_read_only_page_is_missing_for_a_write, "ODP-5"),
		STEPPED(a_receive_is_kept, "ODP-10"),
		STEPPED(the_receive_of_an_immediate_is_kept, "ODP-10"),
		STEPPED(an_entry_of_an_srq_goes_back, "ODP-10"),
		STEPPED(the_place_of_a_read_comes_first, "ODP-9"),
		STEPPED(a_response_without_a_place_is_asked_for_again, "ODP-9 ODP-14"),
		STEPPED(a_held_response_without_a_place_is_asked_for_again, "ODP-9"),
		STEPPED(a_read_of_missing_pages, "ODP-10"),
		STEPPED(pages_go_in_the_midst_of_a_read, "ODP-10"),
		STEPPED(an_atomic, "ODP-10"),
		STEPPED(the_place_of_an_atomics_result, "ODP-9"),
		STEPPED(a_flush_needs_no_pages, "ODP-15"),
		STEPPED(datagrams, "ODP-11"),
		STEPPED(a_requesters_fault_fails, "ODP-12"),
		STEPPED(a_responders_fault_fails, "ODP-12"),
		STEPPED(a_failure_is_not_remembered, "ODP-12"),
		STEPPED(a_failure_of_a_request_is_not_remembered, "ODP-12"),
		STEPPED(a_failure_of_a_response_is_not_remembered, "ODP-12"),
		STEPPED(a_failure_of_a_job_is_not_remembered, "ODP-12"),
		STEPPED(a_failure_of_a_datagram_is_not_remembered, "ODP-11 ODP-12"),
		STEPPED(tokens_end, "ODP-12 ODP-13"),
		STEPPED(the_eq_bounds_the_events, "ODP-8 ODP-13"),
		STEPPED(an_eq_out_of_reach_is_fatal, "ODP-1"),
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
