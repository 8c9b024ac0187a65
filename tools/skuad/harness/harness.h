/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The host harness: two devices on a wire in this process, and for each a small driver that
 * brings it up by its registers and commands, as the manual has it. Tests build on it.
 *
 * Either the test turns the one engine itself (world_create(false)): each step is where the test
 * puts it, and the clock stands until it is moved. Or each device has an engine thread of its
 * own (world_create(true)), and the test waits. Everything here asserts by cmocka.
 *
 * SKUA_TESTS: a pattern of the names of the tests to run, with * and ?.
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

#include "base/copy.h"
#include "base/engine.h"
#include "nic/dev.h"
#include "packet/train.h"
#include "skua/cmd.h"
#include "skua/cqe.h"
#include "skua/doorbell.h"
#include "skua/eqe.h"
#include "skua/regs.h"
#include "skua/wqe.h"

#define MEM_SIZE	(16u << 20)		/* of host memory */
#define IOVA		0x100000000ull		/* where the device sees it */
#define EXTRA		0x900000000ull	/* more memory, that tests take away */
#define EXTRA_SIZE	(256u << 10)
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
	struct skua_dev *dev;		/* NULL: the test has destroyed it */
	struct engine *engine;
	bool threaded;
	uint8_t *mem, *extra;
	uint64_t used;			/* bytes of mem given away */
	unsigned int irqs[SKUA_NUM_VECTORS];
	void (*on_irq)(struct node *n, unsigned int vector);	/* if set; in the midst of the engine's step */
	unsigned int reads;		/* of BARs */
	uint64_t cmd_ring, cmd_cpl, cmd_dbr;
	uint32_t cmd_pi;
	uint32_t number, out_len, index; /* of the last command's completion */
	uint64_t features;		/* to accept of those offered */
	uint64_t eq, eq_dbr, aeq, aeq_dbr, cq, cq_dbr, sq, sq_dbr, rq, rq_dbr;
	uint64_t buf;			/* the memory region, with all rights */
	uint32_t pdn, eqn, aeqn, cqn, qpn, key, cq_ci, eq_ci, aeq_ci, sq_pi, rq_pi;
	uint32_t log_cq;		/* size of the CQ that is polled */
	uint8_t gid[16], mac[6];
	const char *link;
	bool persistent;		/* its memory survives a loss of power */
};

/* The QP that post() and post_recv() use; the CQ that poll_cq() polls. To be changed for others. */
struct queues {
	uint64_t sq, sq_dbr, rq, rq_dbr;
	uint32_t qpn, sq_pi, rq_pi;
};
struct completions {
	uint64_t cq, cq_dbr;
	uint32_t cqn, cq_ci, log_cq;
};

struct world {
	bool threaded;
	struct engine *engines[2];
	pthread_t threads[2];
	struct node n[2];
};

/* Both devices enabled, with ports, GIDs, queues, and an RC QP of each in RTS towards the other. */
struct world *world_create(bool threaded);
/* The same, with some features only (bits 1 << SKUA_F_*). */
struct world *world_create_with(bool threaded, uint64_t features);
/* The same, each device on a link of its own (link/spec.h), a's made first. */
struct world *world_create_on(bool threaded, const char *link_a, const char *link_b);
/* Not threaded or threaded; the hosts' memory is persistent. */
struct world *world_create_persistent(bool threaded);
/* Not threaded, with some features only; the QPs are privileged, so they may register memory. */
struct world *privileged_world(uint64_t features);
void world_destroy(struct world *w);

/* The thread of one of its engines ends, before the world does. */
void end_engine(struct world *w, int i);

/* All of the node once more, after a reset or whatever else; its QP is in RESET. */
void revive(struct world *w, struct node *n);

/* Setup and teardown of cmocka: *state is the world. */
int setup_stepped(void **state);
int setup_threaded(void **state);
int teardown(void **state);

/* Turn the engine until nothing is left to do; nothing where engines have threads. */
void settle(struct world *w);

/* Let time pass (stepped only), and settle. */
void pass(struct world *w, uint64_t ns);

/* The memory at EXTRA: taken away from the device, or given back, perhaps only for reading. */
void unmap_extra(struct node *n);
void map_extra(struct node *n, bool writable);

/* Host memory: some of it, from a page's start, zeroed; and where it is. */
uint64_t take(struct node *n, uint64_t size);
void *at(struct node *n, uint64_t iova);

void reg_write(struct node *n, uint32_t reg, uint32_t value);
uint32_t reg_read(struct node *n, uint32_t reg);

/* Store to doorbell page 0, and to another; or bytes of any length to a BAR. */
void ring(struct node *n, uint32_t offset, uint32_t number, uint32_t index);
void ring_page(struct node *n, uint32_t page, uint32_t offset, uint32_t number, uint32_t index);
void bar_write(struct node *n, unsigned int bar, uint64_t offset, const void *data, unsigned int len);
void bar_read(struct node *n, unsigned int bar, uint64_t offset, void *data, unsigned int len);

/* Run @fn(@arg) on the thread of the node's engine. */
void on_engine(struct node *n, void (*fn)(void *arg), void *arg);

/* Holds up the engine of a node with a thread of its own, from now on for NAP_MS. Join what it returns. */
#define NAP_MS	40
pthread_t begin_nap(struct node *n);
/* While this is on, naps do not end; and after that they last NAP_MS. */
void hold_naps(bool on);

/* Reset, command queue, enable: what comes before the first command. */
void bring_up(struct world *w, struct node *n);

/* A page list of contiguous memory: level 0 in 4 KiB pages, or one large page. */
struct skua_pagelist list(uint64_t iova, uint64_t size);

/* Issue a command and wait for it; returns its status, and leaves its number in n->number. */
int command(struct world *w, struct node *n, struct skua_cmd *cmd);
#define CMD(op, ...)	{ .hdr = { .opcode = htole16(op) }, __VA_ARGS__ }

/* It has to succeed; returns n->number. */
uint32_t must(struct world *w, struct node *n, struct skua_cmd cmd);

/* A command of @opcode that names an object; one with an output, which is returned. */
struct skua_cmd object_cmd(uint16_t opcode, uint32_t number);
void *query(struct world *w, struct node *n, struct skua_cmd cmd, uint32_t len);

/* A counter of struct skua_stats. */
#define STAT(w, n, name) \
	le64toh(((struct skua_stats *)query(w, n, (struct skua_cmd)CMD(SKUA_CMD_QUERY_STATS), \
					    sizeof(struct skua_stats)))->name)

/* The commands that created the queues of a node; a test changes one field and tries. */
struct skua_cmd create_eq_cmd(struct node *n);
struct skua_cmd create_cq_cmd(struct node *n);
/* What the process has from malloc() now. */
size_t allocated_bytes(void);

struct skua_cmd create_qp_cmd(struct node *n);
struct skua_cmd create_mr_cmd(struct node *n);	/* 4 KiB at n->buf */
struct skua_cmd free_mr_cmd(struct node *n, uint32_t capacity);	/* of type FAST */

/* QP qpn to INIT, RTR and RTS. */
struct skua_cmd init_cmd(uint32_t qpn);
struct skua_cmd rtr_cmd(uint32_t qpn, const struct node *peer, uint32_t peer_qpn);
struct skua_cmd rts_cmd(uint32_t qpn);
/* Any attributes, with their mask; the state alone. */
struct skua_cmd modify_cmd(uint32_t qpn, uint32_t mask, struct skua_qp_attr attr);
struct skua_cmd state_cmd(uint32_t qpn, uint8_t state);
int qp_state(struct world *w, struct node *n, uint32_t qpn);

/* New rings, records and indices to make a QP or CQ of, instead of those that are used now,
 * which are returned. use_*() goes back to them, or to and fro. */
struct queues new_queues(struct node *n);
struct queues use_queues(struct node *n, struct queues q);
struct completions new_completions(struct node *n, uint32_t log_cq);
struct completions use_completions(struct node *n, struct completions c);

/* The node's QP: after a reset once more from INIT to RTS, towards the peer's. */
void reconnect(struct world *w, struct node *n, struct node *peer);

/* A privileged QP of type ETH in RTS, used from now on, that receives the port's frames. Returns
 * the queues of before. */
struct queues eth_queues(struct world *w, struct node *n);

/* A raw packet QP of a program in RTS, beside the one that is used, which stays so. */
struct queues raw_qp(struct world *w, struct node *n);

/* A command that changes the port. */
struct skua_cmd port_cmd(uint32_t mask, uint32_t flags);

/* Post a WQE of one block with up to one SGE; its cookie is its index. */
void post(struct node *n, uint8_t opcode, uint8_t flags, uint64_t addr, uint32_t len,
	  uint64_t raddr, uint32_t rkey, uint32_t imm);
/* The same from a block that the caller wrote. */
void post_block(struct node *n, const void *block);
/* Blocks that make one WQE, published together. */
void post_blocks(struct node *n, const void *blocks, unsigned int nblocks);
void post_recv(struct node *n, uint64_t addr, uint32_t len);
/* One entry of 64 bytes. */
void post_rqe(struct node *n, const void *entry);

/* The next CQE, or NULL; await: in at most 20 s. */
struct skua_cqe *poll_cq(struct node *n);
struct skua_cqe *await_cqe(struct world *w, struct node *n);

/* The next CQE has to be this one. */
void expect(struct world *w, struct node *n, uint8_t opcode, uint8_t status);

/* No CQE may be there; the next one has to have this vendor_err, too. */
void expect_none(struct world *w, struct node *n);
void expect_vendor(struct world *w, struct node *n, uint8_t opcode, uint8_t status, uint8_t vendor);

/* Ask for an event of the CQ, from its consumer index on. */
void arm(struct node *n, uint32_t type, uint32_t seq);

/* The next event, or NULL. Those that are consumed are published at once. */
struct skua_comp_eqe *poll_eq(struct node *n);
struct skua_async_eqe *poll_aeq(struct node *n);
/* The next asynchronous event has to be this one; then none may be there. */
void expect_event(struct world *w, struct node *n, uint8_t type, uint32_t number);
void expect_no_event(struct world *w, struct node *n);

/* Packets that seem to come from the peer's QP: a train to begin from, and its arrival. */
struct train train_from(struct node *n, enum train_op op, uint32_t psn);
void arrive(struct world *w, struct node *n, const struct node *peer, struct train t);
void arrive_only(struct node *n, const struct node *peer, struct train t);	/* no settle() */
#define FIRST_PSN	0xfffffeu	/* of both directions, when a world is new */

/* A pattern over the start of the memory region, other for each seed. */
void fill(struct node *n, uint32_t len, uint32_t seed);

/* For the lists of tests: the name of each begins with the manual's rules that it checks. */
#define STEPPED(f, rules)	{ rules ": " #f, f, setup_stepped, teardown, NULL }
#define THREADED(f, rules)	{ rules ": " #f, f, setup_threaded, teardown, NULL }

#endif /* SKUAD_HARNESS_H */
