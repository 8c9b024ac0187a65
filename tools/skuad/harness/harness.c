// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <malloc.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "core/device.h"
#include "harness/harness.h"
#include "link/port.h"

#ifdef __SANITIZE_ADDRESS__
size_t __sanitizer_get_current_allocated_bytes(void);	/* of the sanitizer's allocator */
#endif

size_t allocated_bytes(void)
{
#ifdef __SANITIZE_ADDRESS__
	return __sanitizer_get_current_allocated_bytes();
#else
	return mallinfo2().uordblks + mallinfo2().hblkhd;
#endif
}

#define WAIT_SECONDS	20

static void __attribute__((constructor)) choose_tests(void)
{
	cmocka_set_test_filter(getenv("SKUA_TESTS"));
}

static void raise_irq(void *host, unsigned int vector)
{
	struct node *n = host;

	__atomic_add_fetch(&n->irqs[vector], 1, __ATOMIC_RELAXED);
	if (n->on_irq)
		n->on_irq(n, vector);
}

static const struct skua_host_ops ops = { raise_irq };

uint64_t take(struct node *n, uint64_t size)
{
	uint64_t at = n->used;

	n->used += (size + 4095) & ~4095ull;
	assert_true(n->used <= MEM_SIZE);
	return IOVA + at;
}

void *at(struct node *n, uint64_t iova)
{
	return iova >= EXTRA ? n->extra + (iova - EXTRA) : n->mem + (iova - IOVA);
}

/* One access to a BAR, on the thread that owns the device. */
struct access {
	struct node *n;
	unsigned int bar;
	uint64_t offset;
	void *data;
	unsigned int len;
	bool write;
};

static void access_bar(void *arg)
{
	struct access *a = arg;

	if (a->write)
		skua_dev_bar_write(a->n->dev, a->bar, a->offset, a->data, a->len);
	else
		skua_dev_bar_read(a->n->dev, a->bar, a->offset, a->data, a->len);
}

void on_engine(struct node *n, void (*fn)(void *arg), void *arg)
{
	if (n->threaded)
		engine_call(n->engine, fn, arg);
	else
		fn(arg);
}

static int asleep, held;	/* atomic */

static void sleep_for_ms(long ms)
{
	nanosleep(&(struct timespec){ 0, ms * 1000000L }, NULL);
}

static void nap(void *n)
{
	(void)n;
	__atomic_store_n(&asleep, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&held, __ATOMIC_SEQ_CST))
		sleep_for_ms(1);
	sleep_for_ms(NAP_MS);
}

void hold_naps(bool on)
{
	__atomic_store_n(&held, on, __ATOMIC_SEQ_CST);
}

static void *let_nap(void *n)
{
	on_engine(n, nap, n);
	return NULL;
}

pthread_t begin_nap(struct node *n)
{
	pthread_t thread;

	__atomic_store_n(&asleep, 0, __ATOMIC_SEQ_CST);
	assert_int_equal(pthread_create(&thread, NULL, let_nap, n), 0);
	while (!__atomic_load_n(&asleep, __ATOMIC_SEQ_CST))
		;
	return thread;
}

void bar_write(struct node *n, unsigned int bar, uint64_t offset, const void *data, unsigned int len)
{
	uint8_t copy[16];
	struct access a = { n, bar, offset, copy, len, true };

	memcpy(copy, data, len);
	on_engine(n, access_bar, &a);
}

void bar_read(struct node *n, unsigned int bar, uint64_t offset, void *data, unsigned int len)
{
	struct access a = { n, bar, offset, data, len, false };

	n->reads++;
	on_engine(n, access_bar, &a);
}

void reg_write(struct node *n, uint32_t reg, uint32_t value)
{
	uint32_t v = htole32(value);

	bar_write(n, SKUA_BAR_REGS, reg, &v, 4);
}

uint32_t reg_read(struct node *n, uint32_t reg)
{
	uint32_t v;

	bar_read(n, SKUA_BAR_REGS, reg, &v, 4);
	return le32toh(v);
}

void ring_page(struct node *n, uint32_t page, uint32_t offset, uint32_t number, uint32_t index)
{
	uint64_t v = htole64(SKUA_DB(number, index));

	bar_write(n, SKUA_BAR_DOORBELL, (uint64_t)page * SKUA_PAGE_SIZE + offset, &v, 8);
}

void ring(struct node *n, uint32_t offset, uint32_t number, uint32_t index)
{
	ring_page(n, 0, offset, number, index);
}

static uint64_t packets_sent(const struct world *w)
{
	uint64_t sum = 0;

	for (int i = 0; i < 2; i++)
		if (w->n[i].dev)
			sum += w->n[i].dev->stats.rdma_tx_packets;
	return sum;
}

/* A step that says that there was nothing to do has sent nothing: else its engine might sleep. */
void settle(struct world *w)
{
	uint64_t before;

	if (w->threaded)
		return;
	for (int i = 0; i < 100000; i++) {
		before = packets_sent(w);
		if (engine_step(w->engines[0]))
			continue;
		assert_int_equal(packets_sent(w), before);
		return;
	}
}

void pass(struct world *w, uint64_t ns)
{
	engine_clock_advance(w->engines[0], ns);
	settle(w);
}

static time_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

static void do_unmap(void *arg)
{
	struct node *n = arg;

	assert_int_equal(skua_dev_mem_unmap(n->dev, EXTRA, EXTRA_SIZE), 0);
}

void unmap_extra(struct node *n)
{
	on_engine(n, do_unmap, n);
}

static void do_map(void *arg)
{
	struct node *n = arg;

	assert_int_equal(skua_dev_mem_map(n->dev, EXTRA, EXTRA_SIZE, n->extra, true), 0);
}

static void do_map_for_reading(void *arg)
{
	struct node *n = arg;

	assert_int_equal(skua_dev_mem_map(n->dev, EXTRA, EXTRA_SIZE, n->extra, false), 0);
}

void map_extra(struct node *n, bool writable)
{
	on_engine(n, writable ? do_map : do_map_for_reading, n);
}

struct skua_pagelist list(uint64_t iova, uint64_t size)
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

/* The flags of an entry that the device hands over: the last byte of its last word (GEN-5). */
static uint8_t flags_of(const void *entry, size_t size)
{
	return (uint8_t)(host_load64((const uint8_t *)entry + size - 8) >> 56);
}

int command(struct world *w, struct node *n, struct skua_cmd *cmd)
{
	uint32_t slot = n->cmd_pi & ((1 << LOG_CMD) - 1);
	struct skua_cmd_cpl *cpl = at(n, n->cmd_cpl + slot * sizeof(*cpl));
	uint8_t phase = n->cmd_pi >> LOG_CMD & 1 ? 0 : SKUA_CMD_CPL_PHASE;
	time_t end = now() + WAIT_SECONDS;

	cmd->hdr.id = htole32(n->cmd_pi);
	memcpy(at(n, n->cmd_ring + slot * sizeof(*cmd)), cmd, sizeof(*cmd));
	n->cmd_pi++;
	host_store32(&((struct skua_dbr *)at(n, n->cmd_dbr))->pi, n->cmd_pi);
	ring(n, SKUA_DB_CMD, 0, n->cmd_pi);
	settle(w);
	while (n->threaded && flags_of(cpl, sizeof(*cpl)) != phase)
		assert_true(now() < end);
	assert_int_equal(flags_of(cpl, sizeof(*cpl)), phase);
	assert_int_equal(le32toh(cpl->id), n->cmd_pi - 1);
	n->number = le32toh(cpl->number);
	n->out_len = le32toh(cpl->out_len);
	n->index = le32toh(cpl->index);
	return cpl->status;
}

uint32_t must(struct world *w, struct node *n, struct skua_cmd cmd)
{
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_OK);
	return n->number;
}

struct skua_cmd object_cmd(uint16_t opcode, uint32_t number)
{
	struct skua_cmd cmd = CMD(opcode, .object = { .number = htole32(number) });

	return cmd;
}

void *query(struct world *w, struct node *n, struct skua_cmd cmd, uint32_t len)
{
	uint64_t used = n->used;

	cmd.hdr.out_addr = htole64(take(n, len));
	cmd.hdr.out_len = htole32(len);
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_OK);
	n->used = used;		/* the answer is good until the next take() */
	return at(n, le64toh(cmd.hdr.out_addr));
}

void bring_up(struct world *w, struct node *n)
{
	time_t end = now() + WAIT_SECONDS;

	reg_write(n, SKUA_REG_CONTROL, SKUA_CONTROL_RESET);
	settle(w);
	while (!reg_read(n, SKUA_REG_STATUS) && now() < end)
		;
	assert_int_equal(reg_read(n, SKUA_REG_STATUS), SKUA_STATUS_READY);
	n->cmd_ring = take(n, sizeof(struct skua_cmd) << LOG_CMD);
	n->cmd_cpl = take(n, sizeof(struct skua_cmd_cpl) << LOG_CMD);
	n->cmd_dbr = take(n, sizeof(struct skua_dbr));
	reg_write(n, SKUA_REG_ACCEPTED_LO, reg_read(n, SKUA_REG_FEATURES_LO) & (uint32_t)n->features);
	reg_write(n, SKUA_REG_ACCEPTED_HI, reg_read(n, SKUA_REG_FEATURES_HI) & (uint32_t)(n->features >> 32));
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

struct skua_cmd create_eq_cmd(struct node *n)
{
	struct skua_cmd cmd = CMD(SKUA_CMD_CREATE_EQ, .create_eq = {
		.log_size = 4, .vector = htole16(1), .dbr_addr = htole64(n->eq_dbr),
		.ring = list(n->eq, 16 * 16) });

	return cmd;
}

struct skua_cmd create_cq_cmd(struct node *n)
{
	struct skua_cmd cmd = CMD(SKUA_CMD_CREATE_CQ, .create_cq = {
		.eqn = htole32(n->eqn), .log_size = (uint8_t)n->log_cq,
		.cq_handle = htole64(CQ_HANDLE), .dbr_addr = htole64(n->cq_dbr),
		.ring = list(n->cq, 64u << n->log_cq) });

	return cmd;
}

struct skua_cmd create_qp_cmd(struct node *n)
{
	struct skua_cmd cmd = CMD(SKUA_CMD_CREATE_QP, .create_qp = {
		.type = SKUA_QPT_RC, .pdn = htole32(n->pdn), .send_cqn = htole32(n->cqn),
		.recv_cqn = htole32(n->cqn), .log_sq_blocks = LOG_SQ, .log_rq_size = LOG_RQ,
		.log_rq_stride = 6, .qp_handle = htole64(QP_HANDLE),
		.sq_dbr_addr = htole64(n->sq_dbr), .rq_dbr_addr = htole64(n->rq_dbr),
		.sq = list(n->sq, 64u << LOG_SQ), .rq = list(n->rq, 64u << LOG_RQ) });

	return cmd;
}

struct skua_cmd free_mr_cmd(struct node *n, uint32_t capacity)
{
	return (struct skua_cmd)CMD(SKUA_CMD_CREATE_MR, .create_mr = {
		.pdn = htole32(n->pdn), .type = SKUA_MR_FAST, .capacity = htole32(capacity) });
}

struct skua_cmd create_mr_cmd(struct node *n)
{
	struct skua_cmd cmd = CMD(SKUA_CMD_CREATE_MR, .create_mr = {
		.pdn = htole32(n->pdn), .iova = htole64(n->buf), .length = htole64(4096),
		.access = htole32(ALL_RIGHTS), .pages = list(n->buf, 4096) });

	return cmd;
}

/* All of the region's memory in pages of 4 KiB, by a list of two levels. */
static void create_region(struct world *w, struct node *n)
{
	struct skua_cmd mr = create_mr_cmd(n);
	uint64_t top = take(n, 4096), leaf = take(n, 8192);

	mr.create_mr.length = htole64(BUF_SIZE);
	mr.create_mr.pages = (struct skua_pagelist){
		.npages = htole32(1024), .level = 2, .log_page = 12,
		.addr[0] = htole64(top | SKUA_PL_PRESENT) };
	for (uint64_t i = 0; i < 2; i++)
		((uint64_t *)at(n, top))[i] = htole64((leaf + i * 4096) | SKUA_PL_PRESENT);
	for (uint64_t i = 0; i < 1024; i++)
		((uint64_t *)at(n, leaf))[i] = htole64((n->buf + i * 4096) | SKUA_PL_PRESENT);
	assert_int_equal(command(w, n, &mr), SKUA_CMD_OK);
	n->key = n->number;
}

struct queues use_queues(struct node *n, struct queues q)
{
	struct queues old = { n->sq, n->sq_dbr, n->rq, n->rq_dbr, n->qpn, n->sq_pi, n->rq_pi };

	n->sq = q.sq;
	n->sq_dbr = q.sq_dbr;
	n->rq = q.rq;
	n->rq_dbr = q.rq_dbr;
	n->qpn = q.qpn;
	n->sq_pi = q.sq_pi;
	n->rq_pi = q.rq_pi;
	return old;
}

struct queues new_queues(struct node *n)
{
	struct queues q = { .sq = take(n, 64u << LOG_SQ), .sq_dbr = take(n, 64),
			    .rq = take(n, 64u << LOG_RQ), .rq_dbr = take(n, 64) };

	return use_queues(n, q);
}

struct completions use_completions(struct node *n, struct completions c)
{
	struct completions old = { n->cq, n->cq_dbr, n->cqn, n->cq_ci, n->log_cq };

	n->cq = c.cq;
	n->cq_dbr = c.cq_dbr;
	n->cqn = c.cqn;
	n->cq_ci = c.cq_ci;
	n->log_cq = c.log_cq;
	return old;
}

struct completions new_completions(struct node *n, uint32_t log_cq)
{
	struct completions c = { .cq = take(n, 64u << log_cq), .cq_dbr = take(n, 64),
				 .log_cq = log_cq };

	return use_completions(n, c);
}

static void create_queues(struct world *w, struct node *n)
{
	struct skua_cmd cmd, pd = CMD(SKUA_CMD_CREATE_PD);

	n->buf = IOVA + MEM_SIZE - BUF_SIZE;
	n->eq = take(n, 4096);
	n->eq_dbr = take(n, 64);
	cmd = create_eq_cmd(n);
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_OK);
	n->eqn = n->number;
	n->aeq = take(n, 4096);
	n->aeq_dbr = take(n, 64);
	cmd = create_eq_cmd(n);
	cmd.create_eq.type = SKUA_EQ_ASYNC;
	cmd.create_eq.vector = 0;
	cmd.create_eq.dbr_addr = htole64(n->aeq_dbr);
	cmd.create_eq.ring = list(n->aeq, 16 * 64);
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_OK);
	n->aeqn = n->number;
	assert_int_equal(command(w, n, &pd), SKUA_CMD_OK);
	n->pdn = n->number;
	new_completions(n, LOG_CQ);
	n->cqn = must(w, n, create_cq_cmd(n));
	new_queues(n);
	if (n->features & 1 << SKUA_F_RC)
		n->qpn = must(w, n, create_qp_cmd(n));
	create_region(w, n);
}

struct skua_cmd init_cmd(uint32_t qpn)
{
	struct skua_cmd cmd = CMD(SKUA_CMD_MODIFY_QP, .modify_qp = { .qpn = htole32(qpn),
		.mask = htole32(SKUA_QP_ATTR_STATE | SKUA_QP_ATTR_PKEY_INDEX | SKUA_QP_ATTR_ACCESS),
		.attr = { .state = SKUA_QPS_INIT, .access = htole32(ALL_RIGHTS & ~SKUA_ACCESS_LOCAL_WRITE) } });

	return cmd;
}

struct skua_cmd rtr_cmd(uint32_t qpn, const struct node *peer, uint32_t peer_qpn)
{
	struct skua_cmd cmd = CMD(SKUA_CMD_MODIFY_QP, .modify_qp = { .qpn = htole32(qpn),
		.mask = htole32(SKUA_QP_ATTR_STATE | SKUA_QP_ATTR_AV | SKUA_QP_ATTR_PATH_MTU |
				SKUA_QP_ATTR_DEST_QPN | SKUA_QP_ATTR_RQ_PSN |
				SKUA_QP_ATTR_MAX_DEST_RD_ATOMIC | SKUA_QP_ATTR_MIN_RNR_TIMER),
		.attr = { .state = SKUA_QPS_RTR, .path_mtu = 3, .dest_qpn = htole32(peer_qpn),
			  .rq_psn = htole32(0xfffffe), .max_dest_rd_atomic = htole16(4),
			  .min_rnr_timer = 12 } });

	memcpy(cmd.modify_qp.attr.av.dgid, peer->gid, 16);
	memcpy(cmd.modify_qp.attr.av.dmac, peer->mac, 6);
	return cmd;
}

struct skua_cmd rts_cmd(uint32_t qpn)
{
	struct skua_cmd cmd = CMD(SKUA_CMD_MODIFY_QP, .modify_qp = { .qpn = htole32(qpn),
		.mask = htole32(SKUA_QP_ATTR_STATE | SKUA_QP_ATTR_TIMEOUT | SKUA_QP_ATTR_RETRY_CNT |
				SKUA_QP_ATTR_RNR_RETRY | SKUA_QP_ATTR_SQ_PSN |
				SKUA_QP_ATTR_MAX_RD_ATOMIC),
		.attr = { .state = SKUA_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 2,
			  .sq_psn = htole32(0xfffffe), .max_rd_atomic = htole16(4) } });

	return cmd;
}

struct skua_cmd modify_cmd(uint32_t qpn, uint32_t mask, struct skua_qp_attr attr)
{
	struct skua_cmd cmd = CMD(SKUA_CMD_MODIFY_QP, .modify_qp = {
		.qpn = htole32(qpn), .mask = htole32(mask), .attr = attr });

	return cmd;
}

struct skua_cmd state_cmd(uint32_t qpn, uint8_t state)
{
	return modify_cmd(qpn, SKUA_QP_ATTR_STATE, (struct skua_qp_attr){ .state = state });
}

int qp_state(struct world *w, struct node *n, uint32_t qpn)
{
	struct skua_qp_attr *attr = query(w, n, object_cmd(SKUA_CMD_QUERY_QP, qpn), sizeof(*attr));

	return attr->state;
}

static void connect_to(struct world *w, struct node *n, const struct node *peer)
{
	must(w, n, init_cmd(n->qpn));
	must(w, n, rtr_cmd(n->qpn, peer, peer->qpn));
	must(w, n, rts_cmd(n->qpn));
}

/* DBR-7: the host's indices are 0 again, too. */
void reconnect(struct world *w, struct node *n, struct node *peer)
{
	must(w, n, state_cmd(n->qpn, SKUA_QPS_RESET));
	host_store32(at(n, n->sq_dbr), 0);
	host_store32(at(n, n->rq_dbr), 0);
	n->sq_pi = 0;
	n->rq_pi = 0;
	connect_to(w, n, peer);
}

struct skua_cmd port_cmd(uint32_t mask, uint32_t flags)
{
	struct skua_cmd cmd = CMD(SKUA_CMD_SET_PORT, .set_port = {
		.mask = htole32(mask), .flags = htole32(flags) });

	cmd.hdr.port = 1;
	return cmd;
}

struct queues eth_queues(struct world *w, struct node *n)
{
	struct queues old = new_queues(n);
	struct skua_cmd cmd = create_qp_cmd(n), port = port_cmd(SKUA_PORT_SET_RX_QP, 0);

	cmd.create_qp.type = SKUA_QPT_ETH;
	cmd.create_qp.flags = htole32(SKUA_QP_PRIVILEGED);
	n->qpn = must(w, n, cmd);
	for (uint8_t state = SKUA_QPS_INIT; state <= SKUA_QPS_RTS; state++)
		must(w, n, state_cmd(n->qpn, state));
	port.set_port.rx_qpn = htole32(n->qpn);
	must(w, n, port);
	return old;
}

struct queues raw_qp(struct world *w, struct node *n)
{
	struct queues old = new_queues(n);
	struct skua_cmd cmd = create_qp_cmd(n);

	cmd.create_qp.type = SKUA_QPT_ETH;
	n->qpn = must(w, n, cmd);
	for (uint8_t state = SKUA_QPS_INIT; state <= SKUA_QPS_RTS; state++)
		must(w, n, state_cmd(n->qpn, state));
	return use_queues(n, old);
}

static void enable_port(struct world *w, struct node *n)
{
	struct skua_cmd port = port_cmd(SKUA_PORT_SET_FLAGS, SKUA_PORT_F_ENABLE | SKUA_PORT_F_ROCE);
	struct skua_cmd gid = CMD(SKUA_CMD_SET_GID, .set_gid = { .vlan = htole16(SKUA_VLAN_NONE) });

	memcpy(gid.set_gid.mac, n->mac, 6);
	memcpy(gid.set_gid.gid, n->gid, 16);
	gid.hdr.port = 1;
	must(w, n, port);
	must(w, n, gid);
}

static void create_device(struct node *n)
{
	struct skua_dev_config config = {
		.name = n->mac[5] == 1 ? "a" : "b", .link = n->link, .persistent = n->persistent,
	};

	memcpy(config.mac, n->mac, 6);
	n->dev = skua_dev_create(n->engine, &config, &ops, n);
	if (!n->dev || skua_dev_mem_map(n->dev, IOVA, MEM_SIZE, n->mem, true) ||
	    skua_dev_mem_map(n->dev, EXTRA, EXTRA_SIZE, n->extra, true))
		abort();
	skua_dev_set_bus_master(n->dev, true);
}

#define GUARD	4096		/* at either end: who leaves host memory is seen */

static void *map_memory(size_t size)
{
	uint8_t *p = mmap(NULL, size + 2 * GUARD, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(mprotect(p + GUARD, size, PROT_READ | PROT_WRITE), 0);
	return p + GUARD;
}

static void unmap_memory(uint8_t *p, size_t size)
{
	munmap(p - GUARD, size + 2 * GUARD);
}

static void *run_engine(void *engine)
{
	engine_run(engine);
	return NULL;
}

static struct world *create(bool threaded, uint64_t features, const char *link_a,
			    const char *link_b, bool persistent)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->threaded = threaded;
	for (int i = 0; i <= threaded; i++) {
		w->engines[i] = engine_create(!threaded);
		assert_non_null(w->engines[i]);
	}
	for (uint8_t i = 0; i < 2; i++) {
		struct node *n = &w->n[i];

		n->engine = w->engines[threaded ? i : 0];
		n->threaded = threaded;
		n->features = features;
		n->link = i ? link_b : link_a;
		n->persistent = persistent;
		memcpy(n->mac, (uint8_t[6]){ 2, 0, 0, 0, 0, i + 1 }, 6);
		memcpy(n->gid, (uint8_t[16]){ [10] = 255, [11] = 255, 192, 0, 2, i + 1 }, 16);
		n->mem = map_memory(MEM_SIZE);
		n->extra = map_memory(EXTRA_SIZE);
		create_device(n);
	}
	for (int i = 0; i < 2 && threaded; i++)
		assert_int_equal(pthread_create(&w->threads[i], NULL, run_engine, w->engines[i]), 0);
	for (int i = 0; i < 2; i++) {
		bring_up(w, &w->n[i]);
		enable_port(w, &w->n[i]);
		create_queues(w, &w->n[i]);
	}
	for (int i = 0; i < 2 && features & 1 << SKUA_F_RC; i++)
		connect_to(w, &w->n[i], &w->n[!i]);
	return w;
}

struct world *world_create(bool threaded)
{
	return world_create_with(threaded, ~0ull);
}

struct world *world_create_with(bool threaded, uint64_t features)
{
	return create(threaded, features, "wire:t", "wire:t", false);
}

struct world *world_create_on(bool threaded, const char *link_a, const char *link_b)
{
	return create(threaded, ~0ull, link_a, link_b, false);
}

struct world *world_create_persistent(bool threaded)
{
	return create(threaded, ~0ull, "wire:t", "wire:t", true);
}

void revive(struct world *w, struct node *n)
{
	memset(n->mem, 0, MEM_SIZE);
	n->used = 0;
	n->cmd_pi = 0;
	n->eq_ci = 0;
	n->aeq_ci = 0;
	bring_up(w, n);
	enable_port(w, n);
	create_queues(w, n);
}

void end_engine(struct world *w, int i)
{
	if (!w->threads[i])
		return;
	engine_stop(w->engines[i]);
	pthread_join(w->threads[i], NULL);
	w->threads[i] = 0;
}

struct world *privileged_world(uint64_t features)
{
	struct world *w = world_create_with(false, features);

	for (int i = 0; i < 2; i++) {
		struct node *n = &w->n[i];
		struct skua_cmd cmd;

		new_queues(n);
		cmd = create_qp_cmd(n);
		cmd.create_qp.flags = htole32(SKUA_QP_PRIVILEGED);
		n->qpn = must(w, n, cmd);
	}
	for (int i = 0; i < 2; i++)
		reconnect(w, &w->n[i], &w->n[!i]);
	return w;
}

void world_destroy(struct world *w)
{
	for (int i = 0; i < 2 && w->threaded; i++)
		end_engine(w, i);
	for (int i = 0; i < 2; i++)
		if (w->n[i].dev)
			skua_dev_destroy(w->n[i].dev);
	for (int i = 0; i <= w->threaded; i++)
		engine_destroy(w->engines[i]);
	for (int i = 0; i < 2; i++) {
		unmap_memory(w->n[i].mem, MEM_SIZE);
		unmap_memory(w->n[i].extra, EXTRA_SIZE);
	}
	free(w);
}

int setup_stepped(void **state)
{
	*state = world_create(false);
	return 0;
}

int setup_threaded(void **state)
{
	*state = world_create(true);
	return 0;
}

int teardown(void **state)
{
	world_destroy(*state);
	return 0;
}

void post(struct node *n, uint8_t opcode, uint8_t flags, uint64_t addr, uint32_t len,
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
	post_block(n, &wqe);
}

void post_blocks(struct node *n, const void *blocks, unsigned int nblocks)
{
	struct skua_dbr *dbr = at(n, n->sq_dbr);
	uint32_t old = n->sq_pi;

	for (unsigned int i = 0; i < nblocks; i++, n->sq_pi++)
		memcpy(at(n, n->sq + (n->sq_pi & ((1 << LOG_SQ) - 1)) * 64ull),
		       (const uint8_t *)blocks + i * 64, 64);
	host_store32(&dbr->pi, n->sq_pi);
	host_full_barrier();
	if (!(n->features & 1 << SKUA_F_EVENT_IDX) ||
	    SKUA_EVENT_DUE(n->sq_pi, host_load32(&dbr->event), old))
		ring(n, SKUA_DB_SQ, n->qpn, n->sq_pi);
}

void post_block(struct node *n, const void *block)
{
	post_blocks(n, block, 1);
}

void post_recv(struct node *n, uint64_t addr, uint32_t len)
{
	struct { struct skua_rqe r; struct skua_sge s[3]; } wqe = {
		{ .cookie = htole32(n->rq_pi), .num_sge = 1 },
		{ { htole64(addr), htole32(len), htole32(n->key) } } };

	post_rqe(n, &wqe);
}

void post_rqe(struct node *n, const void *entry)
{
	memcpy(at(n, n->rq + (n->rq_pi & ((1 << LOG_RQ) - 1)) * 64ull), entry, 64);
	n->rq_pi++;
	host_store32(&((struct skua_dbr *)at(n, n->rq_dbr))->pi, n->rq_pi);
}

struct skua_cqe *poll_cq(struct node *n)
{
	struct skua_cqe *cqe = at(n, n->cq + (n->cq_ci & ((1u << n->log_cq) - 1)) * 64ull);

	if ((flags_of(cqe, sizeof(*cqe)) & SKUA_CQE_PHASE) == (n->cq_ci >> n->log_cq & 1))
		return NULL;
	n->cq_ci++;
	host_store32(at(n, n->cq_dbr), n->cq_ci);
	return cqe;
}

struct skua_cqe *await_cqe(struct world *w, struct node *n)
{
	time_t end = now() + WAIT_SECONDS;
	struct skua_cqe *cqe;

	settle(w);
	do {
		cqe = poll_cq(n);
	} while (!cqe && w->threaded && now() < end);
	assert_non_null(cqe);
	return cqe;
}

void expect(struct world *w, struct node *n, uint8_t opcode, uint8_t status)
{
	struct skua_cqe *cqe = await_cqe(w, n);

	assert_int_equal(cqe->status, status);
	assert_int_equal(cqe->opcode, opcode);
	assert_int_equal(le64toh(cqe->qp_handle), QP_HANDLE);
}

void expect_none(struct world *w, struct node *n)
{
	settle(w);
	assert_null(poll_cq(n));
}

void expect_vendor(struct world *w, struct node *n, uint8_t opcode, uint8_t status, uint8_t vendor)
{
	struct skua_cqe *cqe = await_cqe(w, n);

	assert_int_equal(cqe->status, status);
	assert_int_equal(cqe->opcode, opcode);
	assert_int_equal(cqe->vendor_err, vendor);
}

void arm(struct node *n, uint32_t type, uint32_t seq)
{
	__atomic_store_n(&((struct skua_cq_dbr *)at(n, n->cq_dbr))->arm,
			 htole64(SKUA_CQ_ARM(type, seq, n->cq_ci)), __ATOMIC_SEQ_CST);
}

struct skua_comp_eqe *poll_eq(struct node *n)
{
	struct skua_comp_eqe *eqe = at(n, n->eq + (n->eq_ci & 15) * 16ull);

	if ((flags_of(eqe, sizeof(*eqe)) & SKUA_EQE_PHASE) == (n->eq_ci >> 4 & 1))
		return NULL;
	n->eq_ci++;
	host_store32(&((struct skua_eq_dbr *)at(n, n->eq_dbr))->ci, n->eq_ci);
	return eqe;
}

struct skua_async_eqe *poll_aeq(struct node *n)
{
	struct skua_async_eqe *eqe = at(n, n->aeq + (n->aeq_ci & 15) * 64ull);

	if ((flags_of(eqe, sizeof(*eqe)) & SKUA_EQE_PHASE) == (n->aeq_ci >> 4 & 1))
		return NULL;
	n->aeq_ci++;
	host_store32(&((struct skua_eq_dbr *)at(n, n->aeq_dbr))->ci, n->aeq_ci);
	return eqe;
}

void expect_event(struct world *w, struct node *n, uint8_t type, uint32_t number)
{
	struct skua_async_eqe *eqe;

	settle(w);
	eqe = poll_aeq(n);
	assert_non_null(eqe);
	assert_int_equal(eqe->type, type);
	assert_int_equal(le32toh(eqe->number), number);
}

void expect_no_event(struct world *w, struct node *n)
{
	struct skua_async_eqe *eqe;

	settle(w);
	eqe = poll_aeq(n);
	if (eqe)
		fail_msg("event 0x%x of %u", eqe->type, le32toh(eqe->number));
}

struct train train_from(struct node *n, enum train_op op, uint32_t psn)
{
	return (struct train){
		.op = op, .first = true, .last = true, .ack_req = true, .npkts = 1,
		.psn = psn & PSN_MASK, .pmtu = 1024, .dest_qpn = n->qpn, .rkey = n->key,
		.raddr = n->buf,
	};
}

void arrive_only(struct node *n, const struct node *peer, struct train t)
{
	struct roce_path path = { .vlan = SKUA_VLAN_NONE, .hop_limit = 64, .sport = 0xc000 };

	memcpy(path.sgid, peer->gid, 16);
	memcpy(path.dgid, n->gid, 16);
	memcpy(path.smac, peer->mac, 6);
	memcpy(path.dmac, n->mac, 6);
	if (!t.path)
		t.path = &path;
	n->dev->port_ops->rx_train(n->dev, &t);
}

void arrive(struct world *w, struct node *n, const struct node *peer, struct train t)
{
	arrive_only(n, peer, t);
	settle(w);
}

void fill(struct node *n, uint32_t len, uint32_t seed)
{
	uint8_t *p = at(n, n->buf);

	for (uint32_t i = 0; i < len; i++)
		p[i] = (uint8_t)(i * 7 + (i >> 8) + seed);
}
