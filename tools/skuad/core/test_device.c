// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The device end to end, without a guest: two devices on a wire, brought up by their
 * registers and commands as a driver does it, and RC messages between them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "core/copy.h"
#include "core/dev.h"
#include "core/engine.h"
#include "skua/cmd.h"
#include "skua/cqe.h"
#include "skua/doorbell.h"
#include "skua/eqe.h"
#include "skua/regs.h"
#include "skua/wqe.h"

#define MEM_SIZE	(16u << 20)
#define IOVA		0x100000000ull
#define LOG_CMD		4
#define LOG_CQ		8
#define LOG_SQ		8
#define LOG_RQ		6

/* One device and its host. */
struct node {
	struct skua_dev *dev;
	uint8_t *mem;
	uint64_t used;
	unsigned int irqs[SKUA_NUM_VECTORS];
	uint64_t cmd_ring, cmd_cpl, cmd_dbr;
	uint32_t cmd_pi;
	uint32_t number;		/* of the last command's completion */
	uint64_t eq, eq_dbr, aeq, aeq_dbr, cq, cq_dbr, sq, sq_dbr, rq, rq_dbr, buf;
	uint32_t pdn, eqn, cqn, qpn, key, cq_ci, sq_pi, rq_pi;
	uint8_t gid[16];
};

struct world {
	struct engine *engine;
	struct node n[2];
};

static void raise_irq(void *host, unsigned int vector)
{
	((struct node *)host)->irqs[vector]++;
}

static const struct skua_host_ops ops = { raise_irq };

static uint64_t take(struct node *n, uint64_t size)
{
	uint64_t at = n->used;

	n->used += (size + 4095) & ~4095ull;
	assert_true(n->used <= MEM_SIZE);
	return IOVA + at;
}

static void *at(struct node *n, uint64_t iova)
{
	return n->mem + (iova - IOVA);
}

static void reg_write(struct node *n, uint32_t reg, uint32_t value)
{
	uint32_t v = htole32(value);

	skua_dev_bar_write(n->dev, SKUA_BAR_REGS, reg, &v, 4);
}

static uint32_t reg_read(struct node *n, uint32_t reg)
{
	uint32_t v;

	skua_dev_bar_read(n->dev, SKUA_BAR_REGS, reg, &v, 4);
	return le32toh(v);
}

static void ring(struct node *n, uint32_t offset, uint32_t number, uint32_t index)
{
	uint64_t v = htole64(SKUA_DB(number, index));

	skua_dev_bar_write(n->dev, SKUA_BAR_DOORBELL, offset, &v, 8);
}

static void settle(struct world *w)
{
	for (int i = 0; i < 100000 && engine_step(w->engine); i++)
		;
}

static struct skua_pagelist list(uint64_t iova, uint64_t size)
{
	struct skua_pagelist pl = { .npages = htole32(1), .log_page = 12 };

	while (1ull << pl.log_page < size)
		pl.log_page++;
	/* One page, aligned or not: inline 4 KiB pages where it is short. */
	if (size <= 6 * 4096) {
		pl.log_page = 12;
		pl.npages = htole32((uint32_t)((size + 4095) / 4096));
		for (uint32_t i = 0; i < le32toh(pl.npages); i++)
			pl.addr[i] = htole64((iova + i * 4096) | SKUA_PL_PRESENT);
		return pl;
	}
	pl.offset = htole64(iova & ((1ull << pl.log_page) - 1));
	pl.addr[0] = htole64((iova & ~((1ull << pl.log_page) - 1)) | SKUA_PL_PRESENT);
	if ((iova & ((1ull << pl.log_page) - 1)) + size > 1ull << pl.log_page)
		abort();
	return pl;
}

static int command(struct world *w, struct node *n, struct skua_cmd *cmd)
{
	uint32_t slot = n->cmd_pi & ((1 << LOG_CMD) - 1);
	struct skua_cmd_cpl *cpl = at(n, n->cmd_cpl + slot * sizeof(*cpl));

	cmd->hdr.id = htole32(n->cmd_pi);
	memcpy(at(n, n->cmd_ring + slot * sizeof(*cmd)), cmd, sizeof(*cmd));
	n->cmd_pi++;
	host_store32(&((struct skua_dbr *)at(n, n->cmd_dbr))->pi, n->cmd_pi);
	ring(n, SKUA_DB_CMD, 0, n->cmd_pi);
	settle(w);
	assert_int_equal(le32toh(cpl->id), n->cmd_pi - 1);
	assert_int_equal(cpl->flags, ((n->cmd_pi - 1) >> LOG_CMD & 1) ? 0 : SKUA_CMD_CPL_PHASE);
	n->number = le32toh(cpl->number);
	return cpl->status;
}

#define CMD(op, ...)	{ .hdr = { .opcode = htole16(op) }, __VA_ARGS__ }

static void bring_up(struct world *w, struct node *n)
{
	reg_write(n, SKUA_REG_CONTROL, SKUA_CONTROL_RESET);
	assert_int_equal(reg_read(n, SKUA_REG_STATUS), SKUA_STATUS_READY);
	n->cmd_ring = take(n, sizeof(struct skua_cmd) << LOG_CMD);
	n->cmd_cpl = take(n, sizeof(struct skua_cmd_cpl) << LOG_CMD);
	n->cmd_dbr = take(n, sizeof(struct skua_dbr));
	reg_write(n, SKUA_REG_ACCEPTED_LO, reg_read(n, SKUA_REG_FEATURES_LO));
	reg_write(n, SKUA_REG_CMD_RING_LO, (uint32_t)n->cmd_ring);
	reg_write(n, SKUA_REG_CMD_RING_HI, (uint32_t)(n->cmd_ring >> 32));
	reg_write(n, SKUA_REG_CMD_CPL_LO, (uint32_t)n->cmd_cpl);
	reg_write(n, SKUA_REG_CMD_CPL_HI, (uint32_t)(n->cmd_cpl >> 32));
	reg_write(n, SKUA_REG_CMD_DBR_LO, (uint32_t)n->cmd_dbr);
	reg_write(n, SKUA_REG_CMD_DBR_HI, (uint32_t)(n->cmd_dbr >> 32));
	reg_write(n, SKUA_REG_CMD_LOG_SIZE, LOG_CMD);
	reg_write(n, SKUA_REG_CONTROL, SKUA_CONTROL_ENABLE);
	assert_int_equal(reg_read(n, SKUA_REG_STATUS), SKUA_STATUS_READY | SKUA_STATUS_ENABLED);
	settle(w);
}

static void create_queues(struct world *w, struct node *n)
{
	struct skua_cmd eq = CMD(SKUA_CMD_CREATE_EQ, .create_eq = { .log_size = 4, .vector = htole16(1) });
	struct skua_cmd pd = CMD(SKUA_CMD_CREATE_PD);
	struct skua_cmd cq = CMD(SKUA_CMD_CREATE_CQ, .create_cq = { .log_size = LOG_CQ, .cq_handle = htole64(7) });
	struct skua_cmd qp = CMD(SKUA_CMD_CREATE_QP, .create_qp = { .type = SKUA_QPT_RC });
	struct skua_cmd mr = CMD(SKUA_CMD_CREATE_MR, .create_mr = { .access = htole32(7) });

	n->eq = take(n, 4096);
	n->eq_dbr = take(n, 64);
	eq.create_eq.dbr_addr = htole64(n->eq_dbr);
	eq.create_eq.ring = list(n->eq, 16 * 16);
	assert_int_equal(command(w, n, &eq), SKUA_CMD_OK);
	n->eqn = n->number;
	assert_int_equal(command(w, n, &pd), SKUA_CMD_OK);
	n->pdn = n->number;
	n->cq = take(n, 64u << LOG_CQ);
	n->cq_dbr = take(n, 64);
	cq.create_cq.eqn = htole32(n->eqn);
	cq.create_cq.dbr_addr = htole64(n->cq_dbr);
	cq.create_cq.ring = list(n->cq, 64u << LOG_CQ);
	assert_int_equal(command(w, n, &cq), SKUA_CMD_OK);
	n->cqn = n->number;
	n->sq = take(n, 64u << LOG_SQ);
	n->sq_dbr = take(n, 64);
	n->rq = take(n, 64u << LOG_RQ);
	n->rq_dbr = take(n, 64);
	qp.create_qp.pdn = htole32(n->pdn);
	qp.create_qp.send_cqn = htole32(n->cqn);
	qp.create_qp.recv_cqn = htole32(n->cqn);
	qp.create_qp.log_sq_blocks = LOG_SQ;
	qp.create_qp.log_rq_size = LOG_RQ;
	qp.create_qp.log_rq_stride = 6;
	qp.create_qp.qp_handle = htole64(42);
	qp.create_qp.sq_dbr_addr = htole64(n->sq_dbr);
	qp.create_qp.rq_dbr_addr = htole64(n->rq_dbr);
	qp.create_qp.sq = list(n->sq, 64u << LOG_SQ);
	qp.create_qp.rq = list(n->rq, 64u << LOG_RQ);
	assert_int_equal(command(w, n, &qp), SKUA_CMD_OK);
	n->qpn = n->number;
	/* All of the memory is one region of pages of 4 KiB, by a list of two levels. */
	n->buf = IOVA + (8u << 20);
	mr.create_mr.pdn = htole32(n->pdn);
	mr.create_mr.iova = htole64(n->buf);
	mr.create_mr.length = htole64(4u << 20);
	mr.create_mr.pages.npages = htole32(1024);
	mr.create_mr.pages.level = 2;
	mr.create_mr.pages.log_page = 12;
	uint64_t top = take(n, 4096), leaf = take(n, 8192);
	mr.create_mr.pages.addr[0] = htole64(top | SKUA_PL_PRESENT);
	for (int i = 0; i < 2; i++)
		((uint64_t *)at(n, top))[i] = htole64((leaf + (uint64_t)i * 4096) | SKUA_PL_PRESENT);
	for (int i = 0; i < 1024; i++)
		((uint64_t *)at(n, leaf))[i] = htole64((n->buf + (uint64_t)i * 4096) | SKUA_PL_PRESENT);
	assert_int_equal(command(w, n, &mr), SKUA_CMD_OK);
	n->key = n->number;
}

static void connect_to(struct world *w, struct node *n, struct node *peer, const uint8_t *dmac)
{
	struct skua_cmd init = CMD(SKUA_CMD_MODIFY_QP, .modify_qp = { .qpn = htole32(n->qpn),
		.mask = htole32(SKUA_QP_ATTR_STATE | SKUA_QP_ATTR_PKEY_INDEX | SKUA_QP_ATTR_ACCESS),
		.attr = { .state = SKUA_QPS_INIT, .access = htole32(7) } });
	struct skua_cmd rtr = CMD(SKUA_CMD_MODIFY_QP, .modify_qp = { .qpn = htole32(n->qpn),
		.mask = htole32(SKUA_QP_ATTR_STATE | SKUA_QP_ATTR_AV | SKUA_QP_ATTR_PATH_MTU |
				SKUA_QP_ATTR_DEST_QPN | SKUA_QP_ATTR_RQ_PSN |
				SKUA_QP_ATTR_MAX_DEST_RD_ATOMIC | SKUA_QP_ATTR_MIN_RNR_TIMER),
		.attr = { .state = SKUA_QPS_RTR, .path_mtu = 3, .dest_qpn = htole32(peer->qpn),
			  .rq_psn = htole32(0xfffffe), .max_dest_rd_atomic = htole16(4),
			  .min_rnr_timer = 12 } });
	struct skua_cmd rts = CMD(SKUA_CMD_MODIFY_QP, .modify_qp = { .qpn = htole32(n->qpn),
		.mask = htole32(SKUA_QP_ATTR_STATE | SKUA_QP_ATTR_TIMEOUT | SKUA_QP_ATTR_RETRY_CNT |
				SKUA_QP_ATTR_RNR_RETRY | SKUA_QP_ATTR_SQ_PSN |
				SKUA_QP_ATTR_MAX_RD_ATOMIC),
		.attr = { .state = SKUA_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 2,
			  .sq_psn = htole32(0xfffffe), .max_rd_atomic = htole16(4) } });

	memcpy(rtr.modify_qp.attr.av.dgid, peer->gid, 16);
	memcpy(rtr.modify_qp.attr.av.dmac, dmac, 6);
	assert_int_equal(command(w, n, &init), SKUA_CMD_OK);
	assert_int_equal(command(w, n, &rtr), SKUA_CMD_OK);
	assert_int_equal(command(w, n, &rts), SKUA_CMD_OK);
}

static int setup(void **state)
{
	static const uint8_t macs[2][6] = { { 2, 0, 0, 0, 0, 1 }, { 2, 0, 0, 0, 0, 2 } };
	struct world *w = calloc(1, sizeof(*w));

	w->engine = engine_create(true);
	for (int i = 0; i < 2; i++) {
		struct node *n = &w->n[i];
		struct skua_dev_config config = { .name = i ? "b" : "a", .link = "wire:t" };
		struct skua_cmd port = CMD(SKUA_CMD_SET_PORT, .set_port = {
			.mask = htole32(SKUA_PORT_SET_FLAGS),
			.flags = htole32(SKUA_PORT_F_ENABLE | SKUA_PORT_F_ROCE) });
		struct skua_cmd gid = CMD(SKUA_CMD_SET_GID, .set_gid = {
			.vlan = htole16(SKUA_VLAN_NONE),
			.gid = { [10] = 255, [11] = 255, 192, 0, 2, (uint8_t)(i + 1) } });

		memcpy(config.mac, macs[i], 6);
		memcpy(gid.set_gid.mac, macs[i], 6);
		memcpy(n->gid, gid.set_gid.gid, 16);
		n->mem = mmap(NULL, MEM_SIZE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		n->dev = skua_dev_create(w->engine, &config, &ops, n);
		assert_int_equal(skua_dev_mem_map(n->dev, IOVA, MEM_SIZE, n->mem, true), 0);
		skua_dev_set_bus_master(n->dev, true);
		bring_up(w, n);
		port.hdr.port = 1;
		gid.hdr.port = 1;
		assert_int_equal(command(w, n, &port), SKUA_CMD_OK);
		assert_int_equal(command(w, n, &gid), SKUA_CMD_OK);
		create_queues(w, n);
	}
	connect_to(w, &w->n[0], &w->n[1], macs[1]);
	connect_to(w, &w->n[1], &w->n[0], macs[0]);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 2; i++) {
		skua_dev_destroy(w->n[i].dev);
		munmap(w->n[i].mem, MEM_SIZE);
	}
	engine_destroy(w->engine);
	free(w);
	return 0;
}

/* Post a WQE of one block with up to one SGE. */
static void post(struct node *n, uint8_t opcode, uint8_t flags, uint64_t addr, uint32_t len,
		 uint64_t raddr, uint32_t rkey, uint32_t imm)
{
	struct { struct skua_wqe_ctrl c; struct skua_wqe_rdma r; struct skua_sge s[2]; } wqe = {
		.c = { .opcode = opcode, .flags = flags, .nblocks = 1, .num_sge = len > 0,
		       .cookie = htole32(n->sq_pi), .imm_data = imm } };
	bool rdma = opcode >= SKUA_WQE_WRITE && opcode <= SKUA_WQE_READ;
	struct skua_sge sge = { htole64(addr), htole32(len), htole32(n->key) };

	wqe.r = (struct skua_wqe_rdma){ htole64(raddr), htole32(rkey), 0 };
	wqe.s[0] = sge;
	if (!rdma)
		memcpy(&wqe.r, &sge, sizeof(sge));
	memcpy(at(n, n->sq + (n->sq_pi & ((1 << LOG_SQ) - 1)) * 64ull), &wqe, 64);
	n->sq_pi++;
	host_store32(&((struct skua_dbr *)at(n, n->sq_dbr))->pi, n->sq_pi);
	ring(n, SKUA_DB_SQ, n->qpn, n->sq_pi);
}

static void post_recv(struct node *n, uint64_t addr, uint32_t len)
{
	struct { struct skua_rqe r; struct skua_sge s; } wqe = {
		{ .cookie = htole32(n->rq_pi), .num_sge = 1 },
		{ htole64(addr), htole32(len), htole32(n->key) } };

	memcpy(at(n, n->rq + (n->rq_pi & ((1 << LOG_RQ) - 1)) * 64ull), &wqe, sizeof(wqe));
	n->rq_pi++;
	host_store32(&((struct skua_dbr *)at(n, n->rq_dbr))->pi, n->rq_pi);
}

static struct skua_cqe *poll(struct node *n)
{
	struct skua_cqe *cqe = at(n, n->cq + (n->cq_ci & ((1 << LOG_CQ) - 1)) * 64ull);

	if ((cqe->flags & SKUA_CQE_PHASE) == (n->cq_ci >> LOG_CQ & 1))
		return NULL;
	n->cq_ci++;
	host_store32(at(n, n->cq_dbr), n->cq_ci);
	return cqe;
}

static void expect(struct node *n, uint8_t opcode, uint8_t status)
{
	struct skua_cqe *cqe = poll(n);

	assert_non_null(cqe);
	assert_int_equal(cqe->status, status);
	assert_int_equal(cqe->opcode, opcode);
	assert_int_equal(le64toh(cqe->qp_handle), 42);
}

static void fill(struct node *n, uint32_t len)
{
	uint8_t *p = at(n, n->buf);

	for (uint32_t i = 0; i < len; i++)
		p[i] = (uint8_t)(i * 7 + (i >> 8) + len);
}

static const uint32_t sizes[] = { 1, 8, 63, 64, 1023, 1024, 1025, 65536, 65537, 1048577 };

#define FOR_SIZES(len) \
	for (unsigned int s_ = 0; s_ < sizeof(sizes) / sizeof(sizes[0]) && (len = sizes[s_]); s_++)

static void write_moves_bytes(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t len;

	FOR_SIZES(len) {
		fill(a, len);
		memset(at(b, b->buf), 0, len + 8);
		post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, len, b->buf + 3, b->key, 0);
		settle(w);
		expect(a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
		assert_memory_equal(at(b, b->buf + 3), at(a, a->buf), len);
		assert_null(poll(b));
	}
}

static void read_moves_bytes(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t len;

	FOR_SIZES(len) {
		fill(b, len);
		post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf + 5, len, b->buf, b->key, 0);
		settle(w);
		expect(a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
		assert_memory_equal(at(a, a->buf + 5), at(b, b->buf), len);
	}
}

static void send_meets_receive(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cqe *cqe;
	uint32_t len;

	FOR_SIZES(len) {
		fill(a, len);
		post_recv(b, b->buf, 2u << 20);
		post(a, SKUA_WQE_SEND_IMM, SKUA_WQE_SIGNALED, a->buf, len, 0, 0, 0x01020304);
		settle(w);
		expect(a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
		cqe = poll(b);
		assert_non_null(cqe);
		assert_int_equal(le32toh(cqe->byte_len), len);
		assert_int_equal(cqe->imm_data, 0x01020304);
		assert_memory_equal(at(b, b->buf), at(a, a->buf), len);
	}
}

static void many_messages_keep_their_order(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	for (int round = 0; round < 40; round++) {
		for (int i = 0; i < 40; i++)
			post(a, i % 3 ? SKUA_WQE_WRITE : SKUA_WQE_READ, SKUA_WQE_SIGNALED,
			     a->buf + 4096, 3000, b->buf, b->key, 0);
		settle(w);
		for (int i = 0; i < 40; i++) {
			struct skua_cqe *cqe = poll(a);

			assert_non_null(cqe);
			assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
			assert_int_equal(le32toh(cqe->cookie), round * 40 + i);
		}
	}
}

static void send_without_receive_waits_and_gives_up(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 8, 0, 0, 0);
	settle(w);
	assert_null(poll(a));
	post_recv(b, b->buf, 8);
	engine_clock_advance(w->engine, 1000000);
	settle(w);
	expect(a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	expect(b, SKUA_CQE_RECV, SKUA_CQE_SUCCESS);

	post(a, SKUA_WQE_SEND, 0, a->buf, 8, 0, 0, 0);
	post(a, SKUA_WQE_WRITE, 0, a->buf, 8, b->buf, b->key, 0);
	for (int i = 0; i < 2; i++) {	/* rnr_retry */
		settle(w);
		assert_null(poll(a));
		engine_clock_advance(w->engine, 1000000);
	}
	settle(w);
	expect(a, SKUA_CQE_SEND, SKUA_CQE_RNR_RETRY_EXC_ERR);
	expect(a, SKUA_CQE_WRITE, SKUA_CQE_WR_FLUSH_ERR);
}

static void bad_rkey_is_refused(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	post_recv(b, b->buf, 8);
	post(a, SKUA_WQE_WRITE, 0, a->buf, 8, b->buf, b->key ^ 1, 0);
	post(a, SKUA_WQE_WRITE, 0, a->buf, 8, b->buf, b->key, 0);
	settle(w);
	expect(a, SKUA_CQE_WRITE, SKUA_CQE_REM_ACCESS_ERR);
	expect(a, SKUA_CQE_WRITE, SKUA_CQE_WR_FLUSH_ERR);
	expect(b, SKUA_CQE_RECV, SKUA_CQE_WR_FLUSH_ERR);
	assert_null(poll(a));
	assert_null(poll(b));
}

static void read_out_of_bounds_is_refused(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	post(a, SKUA_WQE_WRITE, 0, a->buf, 8, b->buf, b->key, 0);
	post(a, SKUA_WQE_READ, 0, a->buf, 8, b->buf + (4u << 20) - 7, b->key, 0);
	settle(w);
	expect(a, SKUA_CQE_READ, SKUA_CQE_REM_ACCESS_ERR);
}

static void own_bad_lkey_is_a_protection_error(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 8, b->buf, b->key, 0);
	post(a, SKUA_WQE_WRITE, 0, a->buf + (4u << 20), 8, b->buf, b->key, 0);
	settle(w);
	expect(a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	expect(a, SKUA_CQE_WRITE, SKUA_CQE_LOC_PROT_ERR);
}

static void lost_peer_ends_in_retry_exceeded(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	skua_dev_reset(b->dev);
	post(a, SKUA_WQE_WRITE, 0, a->buf, 8, b->buf, b->key, 0);
	for (int i = 0; i < 7; i++) {
		settle(w);
		assert_null(poll(a));
		engine_clock_advance(w->engine, 4096ull << 14);
	}
	settle(w);
	engine_clock_advance(w->engine, 4096ull << 14);
	settle(w);
	expect(a, SKUA_CQE_WRITE, SKUA_CQE_RETRY_EXC_ERR);
}

static void arming_gives_one_event(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cq_dbr *dbr = at(a, a->cq_dbr);

	__atomic_store_n(&dbr->arm, htole64(SKUA_CQ_ARM(SKUA_CQ_ARM_NEXT, 1, a->cq_ci)),
			 __ATOMIC_SEQ_CST);
	for (int i = 0; i < 3; i++)
		post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 8, b->buf, b->key, 0);
	settle(w);
	assert_int_equal(a->irqs[1], 1);
}

static void overrun_index_kills_only_its_qp(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];
	struct skua_cmd query = CMD(SKUA_CMD_NOP);

	host_store32(at(a, a->sq_dbr), a->sq_pi + (1 << LOG_SQ) + 1);
	ring(a, SKUA_DB_SQ, a->qpn, 0);
	settle(w);
	assert_null(poll(a));
	assert_int_equal(command(w, a, &query), SKUA_CMD_OK);
}

static void publishing_over_work_under_way_is_an_overrun(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	/* No receive: the SEND stays in the queue, and its block is not the host's. */
	post(a, SKUA_WQE_SEND, 0, a->buf, 8, 0, 0, 0);
	settle(w);
	for (int i = 0; i < 1 << LOG_SQ; i++)
		post(a, SKUA_WQE_NOP, 0, 0, 0, 0, 0, 0);
	post_recv(b, b->buf, 8);
	engine_clock_advance(w->engine, 1000000);
	settle(w);
	expect(a, SKUA_CQE_SEND, SKUA_CQE_WR_FLUSH_ERR);
	assert_null(poll(a));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(write_moves_bytes),
		TEST(read_moves_bytes),
		TEST(send_meets_receive),
		TEST(many_messages_keep_their_order),
		TEST(send_without_receive_waits_and_gives_up),
		TEST(bad_rkey_is_refused),
		TEST(read_out_of_bounds_is_refused),
		TEST(own_bad_lkey_is_a_protection_error),
		TEST(lost_peer_ends_in_retry_exceeded),
		TEST(arming_gives_one_event),
		TEST(overrun_index_kills_only_its_qp),
		TEST(publishing_over_work_under_way_is_an_overrun),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
