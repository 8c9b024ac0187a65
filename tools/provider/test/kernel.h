/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The kernel, for tests without one: kernel.c has doubles of the functions of libibverbs that call
 * it. They keep what the last call told the kernel, and return what the test wants as its answer.
 */
#ifndef SKUA_TEST_KERNEL_H
#define SKUA_TEST_KERNEL_H

#include "../skua.h"
#include "../skua-abi.h"

extern int answer;				/* to all commands: 0 or an errno */
/* 0, or: so many commands from now, of those that make, move or destroy QPs and SRQs, one is refused with EINVAL. */
extern unsigned int refused_command;
extern int dontfork;				/* ranges that are kept from children now */

extern struct skua_create_cq_req cq_req;	/* of creating a CQ */
extern struct skua_resize_cq_req resize_req;	/* of resizing a CQ */
extern struct skua_create_qp_req qp_req;	/* of creating a QP with queues */
extern struct ibv_qp_init_attr qp_init;		/* what verbs say of it */
extern unsigned int qp_states;			/* bits of the states that QPs were moved to since */
extern struct ibv_qp_init_attr_ex qp_attr;	/* of creating a QP without queues (XRC_RECV), or with flags */
extern struct skua_create_rss_qp_req rss_req;	/* of creating a QP that spreads over WQs */
extern struct skua_modify_qp_req modify_req;	/* of the extended command that modifies a QP */
extern int modify_mask;				/* its attribute mask */
extern uint32_t modify_rate;			/* its rate limit */
extern struct skua_create_wq_req wq_req;	/* of creating a WQ */
extern struct skua_create_srq_req srq_req;	/* of creating an SRQ, of XRC or not */
extern struct skua_modify_srq_req modify_srq_req;	/* of modifying an SRQ; zero if its ring stays */

#define DM_HANDLE	77			/* of all device memory */

extern struct ibv_alloc_dm_attr dm_attr;	/* of allocating device memory */
extern unsigned int dm_copies;			/* copies to and from device memory */

/* The last of them. */
extern struct dm_copy {
	struct ibv_context *context;
	uint32_t handle;
	struct skua_dm_copy_req req;
} dm_copy;

extern struct memcheck {			/* the memory that valgrind was told of last */
	const void *addr;
	size_t length;
} memcheck;

/* The arguments of registering a region of device memory. */
extern struct dm_mr_req {
	struct ibv_pd *pd;
	struct verbs_dm *dm;
	uint64_t offset;
	size_t length;
	unsigned int access;
} dm_mr_req;

/* The arguments of registering a region. */
extern struct mr_req {
	void *addr;
	size_t length;
	uint64_t hca_va;
	int access;
} mr_req;

/* The arguments of changing a region. */
extern struct rereg_req {
	struct verbs_mr *vmr;
	uint32_t flags;
	void *addr;
	size_t length;
	uint64_t hca_va;
	int access;
	struct ibv_pd *pd;
} rereg_req;

/* The arguments of registering a dma-buf. */
extern struct dmabuf_req {
	struct ibv_pd *pd;
	uint64_t offset, iova;
	size_t length;
	int fd, access;
} dmabuf_req;

/* The arguments of an advice on regions. */
extern struct advice_req {
	enum ibv_advise_mr_advice advice;
	uint32_t flags, num_sge;
	struct ibv_sge *sg_list;
} advice_req;

#endif /* SKUA_TEST_KERNEL_H */
