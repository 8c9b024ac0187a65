/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A QP and its CQ whose rings are memory, for tests that post and poll by verbs' own structures. No
 * command creates them, so libibverbs is not needed; the device's side is that of fake.h.
 */
#ifndef SKUA_TEST_QUEUES_H
#define SKUA_TEST_QUEUES_H

#include "cmocka_all.h"

#include "../op.h"
#include "../skua.h"
#include "fake.h"

#define BLOCKS		16
#define MAX_WR		(BLOCKS / 2)	/* a WR takes up to two */
#define RQ_SIZE		4
#define CQ_SIZE		16
#define QPN		0x123456
#define FEATURES	(1 << SKUA_F_RC | 1 << SKUA_F_INVALIDATE | 1 << SKUA_F_ATOMIC | 1 << SKUA_F_MW)
#define ALL_OPS		(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | \
			 IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_WRITE | \
			 IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ | \
			 IBV_QP_EX_WITH_LOCAL_INV)

extern struct skua_qp qp;			/* of type RC, in RTS; all calls of ALL_OPS are declared */
extern struct skua_cq cq;			/* of qp, extended, with time stamps and flow tags */
extern struct fake_cq dev;			/* the device's end of cq */
extern struct skua_info_page info;		/* of cq: the device is alive */
extern uint64_t db_page[SKUA_PAGE_SIZE / 8];	/* of qp: the last doorbell at each offset */

/* Where a test has fake_sq_fetch() put a WQE, and that WQE's first segment. */
extern uint8_t wqe_copy[SKUA_WQE_MAX_BLOCKS * SKUA_WQE_BLOCK];
extern const struct skua_wqe_ctrl *const ctrl;

extern struct ibv_sge sges[2];			/* of the work requests of make_wr() */

/* Around each test: the queues are empty, no doorbell has rung, and the ring of the SQ is full of 0xee. */
int setup(void **state);
int teardown(void **state);

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* The QP is of another type from now on. */
void become(enum ibv_qp_type type, enum skua_peer peer, uint64_t send_ops);

/* A signaled work request with both SGEs, and with fields that check_wqe() knows. */
struct ibv_send_wr make_wr(enum ibv_wr_opcode opcode);

/* ibv_post_send(), which has to name the work request that it refuses. */
int post(struct ibv_send_wr *wr);

#define NUM_ROWS	7

/* The operations that both ways of posting have, and their WQEs. */
extern const struct row {
	enum ibv_wr_opcode opcode;
	uint8_t wqe;
	bool rdma;				/* has a remote address segment */
} rows[NUM_ROWS];

/* The WQE at block @index is what the work request of make_wr() for that row becomes. */
void check_wqe(unsigned int row, uint32_t index);

/* The device writes a CQE of qp. */
void complete(struct skua_cqe cqe);

#endif /* SKUA_TEST_QUEUES_H */
