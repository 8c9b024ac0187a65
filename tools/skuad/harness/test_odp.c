// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* On-demand paging: regions without pages, page faults on either side, and what the host makes of them. */
#include "core/odp.h"
#include "core/srq.h"
#include "harness/datagram.h"
#include "harness/demand.h"
#include "harness/lossy.h"
#include "nic/control.h"
#include "roce/repeat.h"

#define LATER		65536	/* in the buffer, behind the region */

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
	uint32_t key = create_region(w, a);

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
		give_pages(w, a, key, 0, 2, SKUA_PL_READ_ONLY);
		expect_none(w, a);
		resume_fault(w, a, eqe);
		/* One packet may have been held up because a part of it is on the next page. */
		eqe = expect_fault(w, a, SKUA_PAGE_FAULT_REQUESTER, false, MR_IOVA + 2 * 4096 - OFFSET);
		give_pages(w, a, key, 2, PAGES - 2, SKUA_PL_READ_ONLY);
		resume_fault(w, a, eqe);
		settle(w);
		expect(w, a, i ? SKUA_CQE_WRITE : SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
		expect_same(a, 7, b, b->buf, SIZE - 7);
		drop_pages(w, a, key, 0, PAGES);
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
	uint32_t key = create_region(w, a);
	struct skua_fault_eqe eqe;

	post_key(a, SKUA_WQE_WRITE, key, MR_IOVA, 8, b->buf, b->key);
	eqe = expect_fault(w, a, SKUA_PAGE_FAULT_REQUESTER, false, MR_IOVA);
	post(b, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, b->buf, 4096, a->buf, a->key, 0);
	expect(w, b, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	/* A host that takes its time costs no retries, and the device no time. */
	pass(w, 60ull * 1000000000);
	assert_int_equal(qp_state(w, a, a->qpn), SKUA_QPS_RTS);
	expect_no_fault(w, a);
	give_pages(w, a, key, 0, 1, 0);
	resume_fault(w, a, eqe);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
}

static void a_responder_asks_the_peer_to_wait(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = create_region(w, b);
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
	give_pages(w, b, key, 0, 3, 0);
	resume_fault(w, b, eqe);
	pass(w, RNR_NS);
	eqe = expect_fault(w, b, SKUA_PAGE_FAULT_RESPONDER, true, MR_IOVA + 3 * 4096 - OFFSET);
	give_pages(w, b, key, 3, 2, 0);
	resume_fault(w, b, eqe);
	pass(w, RNR_NS);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	expect_same(b, 9, a, a->buf, SIZE - 9);
}

/* A page that may only be read is missing for who writes. */
static void a_read_only_page_is_missing_for_a_write(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = create_region(w, b);
	struct skua_fault_eqe eqe;

	give_pages(w, b, key, 0, PAGES, SKUA_PL_READ_ONLY);
	fill_region(b);
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, SIZE, MR_IOVA, key, 0);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	expect_same(b, 0, a, a->buf, SIZE);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf + LATER, 8, MR_IOVA, key, 0);
	eqe = expect_fault(w, b, SKUA_PAGE_FAULT_RESPONDER, true, MR_IOVA);
	expect_same(b, 0, a, a->buf, 8);
	give_pages(w, b, key, 0, 1, 0);
	resume_fault(w, b, eqe);
	pass(w, RNR_NS);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	expect_same(b, 0, a, a->buf + LATER, 8);
}

/* What the message does not need is not asked for, and the region need not have it. */
static void a_receive_may_be_longer_than_its_region(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = create_region(w, b);
	struct skua_fault_eqe eqe;

	fill(a, 100, 2);
	post_recv_key(b, key, MR_IOVA, 2 * SIZE);
	post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 100, 0, 0, 0);
	eqe = expect_fault(w, b, SKUA_PAGE_FAULT_RESPONDER, true, MR_IOVA);
	assert_int_equal(le64toh(eqe.length), SIZE);
	give_pages(w, b, key, 0, 1, 0);
	resume_fault(w, b, eqe);
	pass(w, RNR_NS);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	expect(w, b, SKUA_CQE_RECV, SKUA_CQE_SUCCESS);
	expect_same(b, 0, a, a->buf, 100);
}

/* The receive is neither lost nor taken twice. */
static void a_receive_is_kept(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = create_region(w, b), len = SIZE;
	struct skua_fault_eqe eqe;

	fill(a, SIZE, 2);
	post_recv_key(b, key, MR_IOVA, SIZE);
	post_recv(b, b->buf + LATER, SIZE);
	post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, len, 0, 0, 0);
	post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, len, 0, 0, 0);
	for (uint64_t i = 0; i < PAGES; i++) {
		eqe = expect_fault(w, b, SKUA_PAGE_FAULT_RESPONDER, true, i ? MR_IOVA + i * 4096 - OFFSET : MR_IOVA);
		assert_int_equal(le64toh(eqe.length), MR_IOVA + SIZE - le64toh(eqe.addr));
		give_pages(w, b, key, i, 1, 0);
		resume_fault(w, b, eqe);
		pass(w, RNR_NS);
	}
	for (uint32_t i = 0; i < 2; i++) {
		struct skua_cqe *cqe = await_cqe(w, b);

		assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
		assert_int_equal(le32toh(cqe->cookie), i);
		assert_int_equal(le32toh(cqe->byte_len), len);
		expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	}
	expect_same(b, 0, a, a->buf, SIZE);
	assert_memory_equal(at(b, b->buf + LATER), at(a, a->buf), SIZE);
}

/* The same for a WRITE with immediate, whose receive is taken by its last packet. */
static void the_receive_of_an_immediate_is_kept(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = create_region(w, b);
	struct skua_fault_eqe eqe;

	fill(a, SIZE, 3);
	give_pages(w, b, key, 0, PAGES - 1, 0);
	post_recv(b, b->buf + LATER, 0);
	post_recv(b, b->buf + LATER, 0);
	for (uint32_t i = 0; i < 2; i++) {
		struct skua_cqe *cqe;

		post(a, SKUA_WQE_WRITE_IMM, SKUA_WQE_SIGNALED, a->buf, SIZE, MR_IOVA, key, 0x77);
		if (!i) {
			eqe = expect_fault(w, b, SKUA_PAGE_FAULT_RESPONDER, true, MR_IOVA + (PAGES - 1) * 4096 - OFFSET);
			give_pages(w, b, key, PAGES - 1, 1, 0);
			resume_fault(w, b, eqe);
			pass(w, RNR_NS);
		}
		expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
		cqe = await_cqe(w, b);
		assert_int_equal(le32toh(cqe->cookie), i);
		assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
	}
	expect_same(b, 0, a, a->buf, SIZE);
}

/* An entry of an SRQ goes back to its head. */
static void an_entry_of_an_srq_goes_back(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = create_region(w, b), cookies = 0;
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
	give_pages(w, b, key, 0, 1, 0);
	resume_fault(w, b, eqe);
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
	expect_same(b, 0, a, a->buf, 100);
}

/* The place of a READ is asked for before its request. */
static void the_place_of_a_read_comes_first(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = create_region(w, a);
	struct skua_fault_eqe eqe;

	fill(b, SIZE, 4);
	post_key(a, SKUA_WQE_READ, key, MR_IOVA, SIZE, b->buf, b->key);
	eqe = expect_fault(w, a, SKUA_PAGE_FAULT_REQUESTER, true, MR_IOVA);
	assert_int_equal(le64toh(eqe.length), SIZE);
	assert_int_equal(STAT(w, b, rdma_rx_read), 0);
	give_pages(w, a, key, 0, PAGES, 0);
	resume_fault(w, a, eqe);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	expect_same(a, 0, b, b->buf, SIZE);
}

/* So many pages are looked at before, of all SGEs together: the last one of this READ is found missing by its response. */
static void so_much_of_a_read_is_looked_at_before(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct { struct skua_wqe_ctrl c; struct skua_wqe_rdma r; struct skua_sge s[LIMIT_SGE]; } wqe = {
		.c = { .opcode = SKUA_WQE_READ, .nblocks = sizeof(wqe) / SKUA_WQE_BLOCK, .num_sge = LIMIT_SGE },
		.r = { htole64(b->buf), htole32(b->key), 0 },
	};
	struct skua_cmd cmd = region_cmd(a);
	uint64_t list, each = 35 * 4096, end = (LIMIT_SGE - 1) * each + 2048;
	uint32_t key;

	fault_eq(w, a);
	cmd.create_mr.length = htole64(2048 * 4096);
	cmd.create_mr.pages.offset = 0;
	key = must(w, a, cmd);
	list = take(a, 4096);
	for (int i = 0; i < 512; i++)
		((__le64 *)at(a, list))[i] = htole64(a->buf | SKUA_PL_PRESENT);
	must(w, a, pages_cmd(key, 0, 512, list));
	must(w, a, pages_cmd(key, 512, (end + 4095) / 4096 - 512, list));
	/* Each begins within a page, so that all but the last touch LOOKS_AHEAD pages. */
	for (int i = 0; i < LIMIT_SGE; i++)
		wqe.s[i] = (struct skua_sge){ htole64(MR_IOVA + 2048 + i * each), htole32((uint32_t)each), htole32(key) };
	wqe.s[LIMIT_SGE - 1].addr = htole64(MR_IOVA + 2000 * 4096);
	wqe.s[LIMIT_SGE - 1].length = htole32(8);
	IMPAIR(b, "drop=100%,dir=out");
	post_blocks(a, &wqe, wqe.c.nblocks);
	expect_no_fault(w, a);
	assert_int_equal(STAT(w, b, rdma_rx_read), 1);
	assert_true(skua_dev_set_impair(b->dev, NULL));
	pass(w, 500000000);
	expect_fault(w, a, SKUA_PAGE_FAULT_REQUESTER, true, MR_IOVA + 2000 * 4096);
}

/* It goes while the response is on its way: that is dropped, and asked for again. */
static void a_response_without_a_place_is_asked_for_again(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = create_region(w, a);
	struct skua_fault_eqe eqe;

	fill(b, SIZE, 5);
	give_pages(w, a, key, 0, PAGES, 0);
	must(w, b, port_cmd(SKUA_PORT_SET_FLAGS, 0));
	post_key(a, SKUA_WQE_READ, key, MR_IOVA, SIZE, b->buf, b->key);
	settle(w);
	drop_pages(w, a, key, 0, PAGES);
	must(w, b, port_cmd(SKUA_PORT_SET_FLAGS, SKUA_PORT_F_ENABLE | SKUA_PORT_F_ROCE));
	pass(w, 100000000);
	eqe = expect_fault(w, a, SKUA_PAGE_FAULT_REQUESTER, true, MR_IOVA);
	for (unsigned int i = 0; i < 200; i++)
		pass(w, 300000000);
	assert_int_equal(qp_state(w, a, a->qpn), SKUA_QPS_RTS);
	expect_no_fault(w, a);
	give_pages(w, a, key, 0, PAGES, 0);
	resume_fault(w, a, eqe);
	pass(w, 1000000);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	expect_same(a, 0, b, b->buf, SIZE);
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

/* The same when the request was sent alone, after an RNR NAK: the probe timeout need not pass. */
static void a_response_after_an_rnr_nak_is_asked_for_at_once(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct train nak = train_from(a, TRAIN_ACK, FIRST_PSN);
	uint32_t key = create_region(w, a);
	struct skua_fault_eqe eqe;

	nak.syndrome = AETH_RNR | 1;
	fill(b, 1024, 9);
	give_pages(w, a, key, 0, PAGES, 0);
	IMPAIR(b, "drop=100%,dir=out");
	post_key(a, SKUA_WQE_READ, key, MR_IOVA, 1024, b->buf, b->key);
	settle(w);
	arrive_only(a, b, nak);
	pass(w, 10000);
	assert_int_equal(STAT(w, a, retransmits), 1);
	drop_pages(w, a, key, 0, PAGES);
	respond(a, b, 0, 1);
	eqe = expect_fault(w, a, SKUA_PAGE_FAULT_REQUESTER, true, MR_IOVA);
	assert_true(skua_dev_set_impair(b->dev, NULL));
	give_pages(w, a, key, 0, PAGES, 0);
	resume_fault(w, a, eqe);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	expect_same(a, 0, b, b->buf, 1024);
}

/* It has come early, and was held. When its turn comes, its page is gone. What is behind it is still held. */
static void a_held_response_without_a_place_is_asked_for_again(void **state)
{
	enum { NPKTS = 12, IN_PAGE = 4 };
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = create_region(w, a), begin = 4096 - OFFSET;
	struct skua_fault_eqe eqe;
	uint64_t packets;

	fill(b, NPKTS * 1024, 7);
	give_pages(w, a, key, 0, PAGES, 0);
	IMPAIR(b, "drop=100%,dir=out");
	post_key(a, SKUA_WQE_READ, key, MR_IOVA + begin, NPKTS * 1024, b->buf, b->key);
	settle(w);
	for (uint32_t i = IN_PAGE; i < NPKTS; i++)
		respond(a, b, i, NPKTS);
	drop_pages(w, a, key, 2, 1);
	for (uint32_t i = 0; i < IN_PAGE; i++)
		respond(a, b, i, NPKTS);
	eqe = expect_fault(w, a, SKUA_PAGE_FAULT_REQUESTER, true, MR_IOVA + begin + 4096);
	assert_true(skua_dev_set_impair(b->dev, NULL));
	give_pages(w, a, key, 2, 1, 0);
	packets = STAT(w, a, rdma_rx_packets);
	resume_fault(w, a, eqe);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	expect_same(a, begin, b, b->buf, NPKTS * 1024);
	assert_int_equal(STAT(w, a, rdma_rx_packets) - packets, 1);
}

/*
 * Three READs of 8 bytes. The place of the first is gone when its response comes. The second response is lost, and the
 * third is held, so the first two will count as lost. That waits for the host: until then the device sleeps, and then
 * both are asked for at once.
 */
static void losses_of_a_requester_wait_for_the_host(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = create_region(w, a), begin = 4096 - OFFSET - 8;
	struct repeat_frame hello = { .type = REPEAT_HELLO };
	struct skua_fault_eqe eqe;

	memcpy(hello.path.smac, b->mac, sizeof(hello.path.smac));
	repeat_hello(a->dev, &hello);
	fill(b, 24, 8);
	give_pages(w, a, key, 0, PAGES, 0);
	IMPAIR(b, "delay=1ms,dir=out");
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf + LATER, 8, b->buf + LATER, b->key, 0);
	await_success(w, a);
	IMPAIR(b, "drop=100%,dir=out");
	for (uint32_t i = 0; i < 3; i++)
		post_key(a, SKUA_WQE_READ, key, MR_IOVA + begin + 8 * i, 8, b->buf + 8 * i, b->key);
	settle(w);
	pass(w, 1000000);
	drop_pages(w, a, key, 0, 1);
	for (uint32_t i = 0; i < 3; i += 2) {
		struct seglist payload = { 1, 8, { { at(b, b->buf + 8 * i), 8 } } };
		struct train t = train_from(a, TRAIN_READ_RESP, FIRST_PSN + 1 + i);

		t.payload = &payload;
		arrive_only(a, b, t);
	}
	eqe = expect_fault(w, a, SKUA_PAGE_FAULT_REQUESTER, true, MR_IOVA + begin);
	engine_clock_advance(w->engines[0], 250000);
	for (unsigned int steps = 0; engine_step(w->engines[0]); steps++)
		assert_in_range(steps, 0, 10);
	assert_true(timers_next(&w->engines[0]->timers) > engine_now(w->engines[0]));
	assert_int_equal(STAT(w, a, retransmits), 0);
	give_pages(w, a, key, 0, 1, 0);
	resume_fault(w, a, eqe);
	assert_int_equal(STAT(w, a, retransmits), 2);
	assert_true(skua_dev_set_impair(b->dev, NULL));
	for (int i = 0; i < 3; i++)
		await_success(w, a);
	expect_same(a, begin, b, b->buf, 24);
}

static void a_read_of_missing_pages(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = create_region(w, b);
	struct skua_fault_eqe eqe;

	fill_region(b);
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, SIZE, MR_IOVA, key, 0);
	eqe = expect_fault(w, b, SKUA_PAGE_FAULT_RESPONDER, false, MR_IOVA);
	assert_int_equal(le64toh(eqe.length), SIZE);
	assert_int_equal(STAT(w, b, rnr_nak_sent), 1);
	pass(w, RNR_NS);
	assert_int_equal(STAT(w, b, rnr_nak_sent), 2);
	give_pages(w, b, key, 0, PAGES, 0);
	resume_fault(w, b, eqe);
	pass(w, RNR_NS);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	expect_same(b, 0, a, a->buf, SIZE);
}

/* The pages of a READ go when it was accepted: the responses wait, and so does all that is behind them. */
/* The NAKs by which b asks the peer to wait, as its QP's own counter set has them. */
static uint64_t waits_of(struct world *w, struct node *b, uint32_t set)
{
	const struct skua_stats *stats = query(w, b, object_cmd(SKUA_CMD_QUERY_COUNTER_SET, set), sizeof(*stats));

	return le64toh(stats->rnr_nak_sent);
}

static void pages_go_in_the_midst_of_a_read(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t set = must(w, b, (struct skua_cmd)CMD(SKUA_CMD_CREATE_COUNTER_SET));
	uint32_t key = create_region(w, b);
	struct skua_fault_eqe eqe;

	must(w, b, (struct skua_cmd)CMD(SKUA_CMD_BIND_COUNTER_SET, .bind_set = {
		.qpn = htole32(b->qpn), .number = htole32(set) }));
	fill_region(b);
	fill(a, 8, 6);
	give_pages(w, b, key, 0, PAGES, 0);
	arrive_only(b, a, (struct train){ .op = TRAIN_READ_REQ, .first = true, .last = true, .ack_req = true, .npkts = 1,
					  .psn = FIRST_PSN, .pmtu = 1024, .dest_qpn = b->qpn, .rkey = key,
					  .raddr = MR_IOVA, .msg_len = SIZE });
	sparse_clear(b->dev, &odp_of(numtab_get(&b->dev->mrs, key >> 8))->pages, 0, PAGES - 1);
	/* The same request, that was lost so far for all that a knows. */
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf + LATER, SIZE, MR_IOVA, key, 0);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 8, b->buf + LATER, b->key, 0);
	eqe = expect_fault(w, b, SKUA_PAGE_FAULT_RESPONDER, false, MR_IOVA);
	/* The peer is asked to wait, whenever it asks. */
	assert_int_equal(waits_of(w, b, set), 1);
	pass(w, RNR_NS);
	assert_int_equal(waits_of(w, b, set), 2);
	assert_int_equal(STAT(w, b, rnr_nak_sent), 2);
	assert_int_equal(STAT(w, a, ack_timeouts), 0);
	expect_none(w, a);
	assert_false(qp_of(b)->active);
	give_pages(w, b, key, 0, PAGES, 0);
	resume_fault(w, b, eqe);
	pass(w, 100000000);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	expect_same(b, 0, a, a->buf + LATER, SIZE);
}

/* A request of its own fails while a READ of its peer is half answered. Then the pages of the READ go. */
static void a_qp_in_err_asks_for_no_pages(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = create_region(w, b);

	give_pages(w, b, key, 0, PAGES, 0);
	IMPAIR(b, "rate=1M,dir=out");
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, SIZE, MR_IOVA, key, 0);
	settle(w);
	post_key(b, SKUA_WQE_WRITE, b->key ^ 1, b->buf, 8, a->buf, a->key);
	expect(w, b, SKUA_CQE_WRITE, SKUA_CQE_LOC_PROT_ERR);
	drop_pages(w, b, key, 0, PAGES);
	for (int i = 0; i < 10; i++)
		next_event(w);
	expect_no_fault(w, b);
	assert_int_equal(STAT(w, b, page_faults), 0);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_REM_ACCESS_ERR);
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
	uint32_t key = create_region(w, b);
	struct skua_fault_eqe eqe;
	uint64_t *word = at(b, region_page(b, 1));

	allow_atomics(w, b);
	*word = htole64(37);
	post_atomic(a, a->key, a->buf, at_word, key);
	eqe = expect_fault(w, b, SKUA_PAGE_FAULT_RESPONDER, true, at_word);
	assert_int_equal(le64toh(eqe.length), 8);
	give_pages(w, b, key, 1, 1, 0);
	resume_fault(w, b, eqe);
	pass(w, RNR_NS);
	expect(w, a, SKUA_CQE_FETCH_ADD, SKUA_CQE_SUCCESS);
	assert_int_equal(le64toh(*word), 42);
	assert_int_equal(le64toh(*(uint64_t *)at(a, a->buf)), 37);
}

static void the_place_of_an_atomics_result(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = create_region(w, a);
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
	give_pages(w, a, key, 0, 1, 0);
	/* It goes again while the result is on its way. */
	must(w, b, port_cmd(SKUA_PORT_SET_FLAGS, 0));
	resume_fault(w, a, eqe);
	settle(w);
	drop_pages(w, a, key, 0, 1);
	must(w, b, port_cmd(SKUA_PORT_SET_FLAGS, SKUA_PORT_F_ENABLE | SKUA_PORT_F_ROCE));
	pass(w, 100000000);
	eqe = expect_fault(w, a, SKUA_PAGE_FAULT_REQUESTER, true, MR_IOVA);
	assert_int_equal(le64toh(*word), 42);
	give_pages(w, a, key, 0, 1, 0);
	resume_fault(w, a, eqe);
	pass(w, 1000000);
	expect(w, a, SKUA_CQE_FETCH_ADD, SKUA_CQE_SUCCESS);
	assert_int_equal(le64toh(*word), 42);
	assert_int_equal(*region_byte(a, 0), 37);
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
	uint32_t key = create_region(w, a), node_key = a->key;
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
	give_pages(w, a, key, 0, 1, 0);
	resume_fault(w, a, eqe);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	expect_datagram(w, b, SKUA_UD_HEADER + 500);
	expect_same(a, 0, b, b->buf + SKUA_UD_HEADER, 500);
	/* A receive without its page: the datagram is lost, the receive is not. */
	drop_pages(w, a, key, 0, 1);
	post_recv_key(a, key, MR_IOVA, 1000);
	post_ud(b, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, b->buf, 500, ud_to(a), 0);
	eqe = expect_fault(w, a, SKUA_PAGE_FAULT_RESPONDER, true, MR_IOVA);
	expect(w, b, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	expect_none(w, a);
	assert_int_equal(STAT(w, a, rdma_rx_no_receive), 1);
	give_pages(w, a, key, 0, 1, 0);
	resume_fault(w, a, eqe);
	post_ud(b, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, b->buf, 500, ud_to(a), 0);
	expect(w, b, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	expect_datagram(w, a, SKUA_UD_HEADER + 500);
	expect_same(a, SKUA_UD_HEADER, b, b->buf, 500);
}

/* The host cannot bring the page: the access ends as one that may not be. */
static void a_requesters_fault_fails(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = create_region(w, a);

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
	uint32_t key = create_region(w, b);

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
	uint32_t key = create_region(w, a);
	struct skua_fault_eqe eqe;

	post_key(a, SKUA_WQE_WRITE, key, MR_IOVA, 8, b->buf, b->key);
	eqe = expect_fault(w, a, SKUA_PAGE_FAULT_REQUESTER, false, MR_IOVA);
	give_pages(w, a, key, 0, 1, 0);
	fail_fault(w, a, eqe);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	/* The page that was there in the end goes away again. */
	drop_pages(w, a, key, 0, 1);
	post_key(a, SKUA_WQE_WRITE, key, MR_IOVA, 8, b->buf, b->key);
	eqe = expect_fault(w, a, SKUA_PAGE_FAULT_REQUESTER, false, MR_IOVA);
	give_pages(w, a, key, 0, 1, 0);
	resume_fault(w, a, eqe);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	/* Of two pages that are missing, the second can be had. */
	drop_pages(w, a, key, 0, 1);
	post_key(a, SKUA_WQE_WRITE, key, MR_IOVA, 4096, b->buf, b->key);
	eqe = expect_fault(w, a, SKUA_PAGE_FAULT_REQUESTER, false, MR_IOVA);
	give_pages(w, a, key, 0, 1, 0);
	fail_fault(w, a, eqe);
	eqe = expect_fault(w, a, SKUA_PAGE_FAULT_REQUESTER, false, MR_IOVA + 4096 - OFFSET);
	give_pages(w, a, key, 1, 1, 0);
	resume_fault(w, a, eqe);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
}

/* The same of a request of the peer. */
static void a_failure_of_a_request_is_not_remembered(void **state)
{
	static const uint8_t opcodes[] = { SKUA_WQE_WRITE, SKUA_WQE_READ };
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = create_region(w, b);
	struct skua_fault_eqe eqe;

	for (unsigned int i = 0; i < 2; i++) {
		for (unsigned int round = 0; round < 2; round++) {
			post(a, opcodes[i], SKUA_WQE_SIGNALED, a->buf, 8, MR_IOVA, key, 0);
			eqe = expect_fault(w, b, SKUA_PAGE_FAULT_RESPONDER, !i, MR_IOVA);
			give_pages(w, b, key, 0, 1, 0);
			fail_fault(w, b, eqe);
			pass(w, RNR_NS);
			expect(w, a, i ? SKUA_CQE_READ : SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
			drop_pages(w, b, key, 0, 1);
		}
	}
}

/* The same of the place of a response. */
static void a_failure_of_a_response_is_not_remembered(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = create_region(w, a);
	struct skua_fault_eqe eqe;

	give_pages(w, a, key, 0, 1, 0);
	must(w, b, port_cmd(SKUA_PORT_SET_FLAGS, 0));
	post_key(a, SKUA_WQE_READ, key, MR_IOVA, 8, b->buf, b->key);
	settle(w);
	drop_pages(w, a, key, 0, 1);
	must(w, b, port_cmd(SKUA_PORT_SET_FLAGS, SKUA_PORT_F_ENABLE | SKUA_PORT_F_ROCE));
	pass(w, 100000000);
	eqe = expect_fault(w, a, SKUA_PAGE_FAULT_REQUESTER, true, MR_IOVA);
	give_pages(w, a, key, 0, 1, 0);
	fail_fault(w, a, eqe);
	pass(w, 1000000);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	drop_pages(w, a, key, 0, 1);
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
	uint32_t key = create_region(w, b);
	struct skua_fault_eqe eqe;

	allow_atomics(w, b);
	for (uint32_t i = 0; i < 2; i++) {
		struct train t = train_from(b, ops[i], FIRST_PSN + i);

		t.rkey = key;
		t.raddr = addr;
		t.msg_len = 8;
		give_pages(w, b, key, 1, 1, 0);
		arrive_only(b, a, t);
		sparse_clear(b->dev, &odp_of(numtab_get(&b->dev->mrs, key >> 8))->pages, 0, PAGES - 1);
		eqe = expect_fault(w, b, SKUA_PAGE_FAULT_RESPONDER, i, addr);
		give_pages(w, b, key, 1, 1, 0);
		fail_fault(w, b, eqe);
		expect_no_fault(w, b);
		/* The next one finds no page. */
		drop_pages(w, b, key, 1, 1);
		t.psn = psn_add(t.psn, 1);
		arrive_only(b, a, t);
		resume_fault(w, b, expect_fault(w, b, SKUA_PAGE_FAULT_RESPONDER, i, addr));
	}
	assert_int_equal(qp_state(w, b, b->qpn), SKUA_QPS_RTS);
}

/* The same of datagrams, on either side. */
static void a_failure_of_a_datagram_is_not_remembered(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = create_region(w, a), node_key = a->key;
	struct skua_fault_eqe eqe;

	ud_queues(w, a, SKUA_QPT_UD, SKUA_QPS_RTS);
	ud_queues(w, b, SKUA_QPT_UD, SKUA_QPS_RTS);
	for (unsigned int i = 0; i < 2; i++) {
		post_recv(b, b->buf, 1000);
		a->key = key;
		post_ud(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, MR_IOVA, 500, ud_to(b), 0);
		a->key = node_key;
		eqe = expect_fault(w, a, SKUA_PAGE_FAULT_REQUESTER, false, MR_IOVA);
		give_pages(w, a, key, 0, 1, 0);
		fail_fault(w, a, eqe);
		expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
		expect_datagram(w, b, SKUA_UD_HEADER + 500);
		drop_pages(w, a, key, 0, 1);
	}
	for (unsigned int i = 0; i < 2; i++) {
		post_recv_key(a, key, MR_IOVA, 1000);
		post_ud(b, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, b->buf, 500, ud_to(a), 0);
		eqe = expect_fault(w, a, SKUA_PAGE_FAULT_RESPONDER, true, MR_IOVA);
		expect(w, b, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
		give_pages(w, a, key, 0, 1, 0);
		fail_fault(w, a, eqe);
		post_ud(b, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, b->buf, 500, ud_to(a), 0);
		expect(w, b, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
		expect_datagram(w, a, SKUA_UD_HEADER + 500);
		drop_pages(w, a, key, 0, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STEPPED(a_requester_waits_for_its_payload, "ODP-5 ODP-7 ODP-8 ODP-9 ODP-12"),
		STEPPED(only_the_sq_waits, "ODP-9 ODP-14"),
		STEPPED(a_responder_asks_the_peer_to_wait, "ODP-8 ODP-10"),
		STEPPED(a_read_only_page_is_missing_for_a_write, "ODP-5"),
		STEPPED(a_receive_may_be_longer_than_its_region, "ODP-7"),
		STEPPED(a_receive_is_kept, "ODP-10"),
		STEPPED(the_receive_of_an_immediate_is_kept, "ODP-10"),
		STEPPED(an_entry_of_an_srq_goes_back, "ODP-10"),
		STEPPED(the_place_of_a_read_comes_first, "ODP-9"),
		STEPPED(so_much_of_a_read_is_looked_at_before, "ODP-9 SEC-8"),
		STEPPED(a_response_without_a_place_is_asked_for_again, "ODP-9 ODP-14"),
		STEPPED(a_response_after_an_rnr_nak_is_asked_for_at_once, "ODP-9 ROC-12"),
		STEPPED(a_held_response_without_a_place_is_asked_for_again, "ODP-9"),
		STEPPED(losses_of_a_requester_wait_for_the_host, "ODP-9 ODP-14 SEC-8"),
		STEPPED(a_read_of_missing_pages, "ODP-10"),
		STEPPED(pages_go_in_the_midst_of_a_read, "ODP-10 STA-5"),
		STEPPED(a_qp_in_err_asks_for_no_pages, "ODP-13"),
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
