/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The host harness: two devices on a wire in this process, and for each a small driver that
 * brings it up by its registers and commands, as the manual has it. Tests build on it.
 *
 * Either the test turns the one engine itself (world_create(false)): each step is where the test
 * puts it, and the clock stands until it is moved. Or each device has an engine thread of its
 * own (world_create(true)), and the test waits. Everything here asserts by cmocka.
 */
#ifndef SKUAD_HARNESS_H
#define SKUAD_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "core/copy.h"
#include "core/dev.h"
#include "core/engine.h"
#include "skua/cmd.h"
#include "skua/cqe.h"
#include "skua/doorbell.h"
#include "skua/eqe.h"
#include "skua/regs.h"
#include "skua/wqe.h"

#define MEM_SIZE	(16u << 20)		/* of host memory */
#define IOVA		0x100000000ull		/* where the device sees it */
#define BUF_SIZE	(4u << 20)		/* of the one memory region */
#define LOG_CMD		4
#define LOG_CQ		8
#define LOG_SQ		8
#define LOG_RQ		6

#define QP_HANDLE	42
#define CQ_HANDLE	7
#define ALL_RIGHTS	(SKUA_ACCESS_LOCAL_WRITE | SKUA_ACCESS_REMOTE_WRITE | \
			 SKUA_ACCESS_REMOTE_READ)

/* One device and its host. Addresses are DMA addresses. */
struct node {
	struct skua_dev *dev;
	struct engine *engine;
	bool threaded;
	uint8_t *mem;
	uint64_t used;			/* bytes of mem given away */
	unsigned int irqs[SKUA_NUM_VECTORS];
	uint64_t cmd_ring, cmd_cpl, cmd_dbr;
	uint32_t cmd_pi;
	uint32_t number;		/* of the last command's completion */
	uint64_t eq, eq_dbr, aeq, aeq_dbr, cq, cq_dbr, sq, sq_dbr, rq, rq_dbr;
	uint64_t buf;			/* the memory region, with all rights */
	uint32_t pdn, eqn, aeqn, cqn, qpn, key, cq_ci, aeq_ci, sq_pi, rq_pi;
	uint8_t gid[16], mac[6];
};

struct world {
	bool threaded;
	struct engine *engines[2];
	pthread_t threads[2];
	struct node n[2];
};

/* Both devices enabled, with ports, GIDs, queues, and an RC QP of each in RTS towards the other. */
struct world *world_create(bool threaded);
void world_destroy(struct world *w);

/* Setup and teardown of cmocka: *state is the world. */
int setup_stepped(void **state);
int setup_threaded(void **state);
int teardown(void **state);

/* Turn the engine until nothing is left to do; nothing where engines have threads. */
void settle(struct world *w);

/* Let time pass (stepped only), and settle. */
void pass(struct world *w, uint64_t ns);

/* Host memory: some of it, from a page's start, zeroed; and where it is. */
uint64_t take(struct node *n, uint64_t size);
void *at(struct node *n, uint64_t iova);

void reg_write(struct node *n, uint32_t reg, uint32_t value);
uint32_t reg_read(struct node *n, uint32_t reg);

/* Store to doorbell page 0. */
void ring(struct node *n, uint32_t offset, uint32_t number, uint32_t index);

/* Reset, command queue, enable: what comes before the first command. */
void bring_up(struct world *w, struct node *n);

/* A page list of contiguous memory: level 0 in 4 KiB pages, or one large page. */
struct skua_pagelist list(uint64_t iova, uint64_t size);

/* Issue a command and wait for it; returns its status, and leaves its number in n->number. */
int command(struct world *w, struct node *n, struct skua_cmd *cmd);
#define CMD(op, ...)	{ .hdr = { .opcode = htole16(op) }, __VA_ARGS__ }

/* The commands that node_create_queues() gives; a test changes one field and tries. */
struct skua_cmd create_eq_cmd(struct node *n);
struct skua_cmd create_cq_cmd(struct node *n);
struct skua_cmd create_qp_cmd(struct node *n);
struct skua_cmd create_mr_cmd(struct node *n);	/* 4 KiB at n->buf */

/* QP qpn to INIT, RTR and RTS. */
struct skua_cmd init_cmd(uint32_t qpn);
struct skua_cmd rtr_cmd(uint32_t qpn, const struct node *peer, uint32_t peer_qpn);
struct skua_cmd rts_cmd(uint32_t qpn);
int qp_state(struct world *w, struct node *n, uint32_t qpn);

/* Post a WQE of one block with up to one SGE; its cookie is its index. */
void post(struct node *n, uint8_t opcode, uint8_t flags, uint64_t addr, uint32_t len,
	  uint64_t raddr, uint32_t rkey, uint32_t imm);
/* The same from a block that the caller wrote. */
void post_block(struct node *n, const void *block);
void post_recv(struct node *n, uint64_t addr, uint32_t len);

/* The next CQE, or NULL; await: in at most 20 s. */
struct skua_cqe *poll_cq(struct node *n);
struct skua_cqe *await_cqe(struct world *w, struct node *n);

/* The next CQE has to be this one. */
void expect(struct world *w, struct node *n, uint8_t opcode, uint8_t status);

/* The next asynchronous event, or NULL. */
struct skua_async_eqe *poll_aeq(struct node *n);

/* A pattern over the start of the memory region, other for each seed. */
void fill(struct node *n, uint32_t len, uint32_t seed);

/* For the lists of tests: the name of each begins with the manual's rules that it checks. */
#define STEPPED(f, rules)	{ rules ": " #f, f, setup_stepped, teardown, NULL }
#define THREADED(f, rules)	{ rules ": " #f, f, setup_threaded, teardown, NULL }

#endif /* SKUAD_HARNESS_H */
