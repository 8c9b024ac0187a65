/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A context and a PD, and the objects that tests create in them, with the kernel of kernel.h. */
#ifndef SKUA_TEST_OBJECTS_H
#define SKUA_TEST_OBJECTS_H

#include "cmocka_all.h"

#include "../skua.h"
#include "fake.h"

extern struct skua_context ctx;			/* of a device that is alive, with RC */
extern struct skua_pd pd;			/* of ctx */
extern struct skua_info_page info;		/* of ctx */
extern uint64_t db_page[SKUA_PAGE_SIZE / 8];	/* of ctx: the last doorbell at each offset */

/*
 * Around each test. The kernel answers 0 again, and UC and UD are no features again; a test undoes
 * any other change. A test fails if memory stays kept from children, or pd in use.
 */
int setup(void **state);
int teardown(void **state);

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

struct ibv_cq *make_cq(int cqe);

/* A QP of pd, or NULL and errno. @cap becomes what the provider says. make_qp(): of type RC. */
struct ibv_qp *make_qp_of(enum ibv_qp_type type, struct ibv_cq *send_cq, struct ibv_cq *recv_cq,
			  struct ibv_qp_cap *cap);
struct ibv_qp *make_qp(struct ibv_cq *send_cq, struct ibv_cq *recv_cq, struct ibv_qp_cap *cap);

/* The device's end of a CQ that the provider made. */
struct fake_cq device_of(struct ibv_cq *ibv_cq);

/* The device writes a CQE of @qp. */
void complete(struct fake_cq *dev, struct ibv_qp *qp, uint8_t opcode);

#endif /* SKUA_TEST_OBJECTS_H */
