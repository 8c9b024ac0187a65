/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Talking to uverbs without libibverbs and without the provider, which would refuse nonsense before
 * the kernel sees it. Every function returns 0 or an errno.
 */
#ifndef SELFTESTS_RAW_H
#define SELFTESTS_RAW_H

#include <stddef.h>
#include <stdint.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/skua-abi.h>

/* A command of write(): its common part, then @drv_size bytes for the driver. */
int raw_write(int fd, unsigned int command, const void *core, size_t core_size, const void *drv,
	      size_t drv_size, size_t resp_size);

/* An extended command: sizes are multiples of 8. */
int raw_write_ex(int fd, unsigned int command, const void *core, size_t core_size, const void *drv,
		 size_t drv_size, void *resp, size_t resp_size);

/*
 * The same by ioctl(), as libibverbs sends those that are not methods of their own. In this way
 * bytes for the driver reach those that destroy, too.
 */
int raw_invoke(int fd, unsigned int command, const void *core, size_t core_size, const void *drv,
	       size_t drv_size, size_t resp_size);

/* A context of its own; the descriptor, or -errno. */
int raw_open(const char *device, struct skua_alloc_ucontext_resp *resp);

/* The copy between device memory and the program's; @req_size may differ from that of struct skua_dm_copy_req. */
int raw_dm_copy(int fd, uint32_t dm, const void *req, size_t req_size);

/* A file for the events of objects that name it; the descriptor, or -errno. */
int raw_alloc_async_event(int fd);

int raw_alloc_pd(int fd, uint32_t *handle);
int raw_dealloc_pd(int fd, uint32_t handle);
int raw_reg_mr(int fd, uint32_t pd, void *addr, uint64_t length, unsigned int access,
	       uint32_t *handle);
int raw_dereg_mr(int fd, uint32_t handle);
int raw_alloc_dm(int fd, uint64_t length, uint32_t *handle);
int raw_free_dm(int fd, uint32_t handle);
int raw_reg_dm_mr(int fd, uint32_t pd, uint32_t dm, uint32_t *handle);
/* Of one piece of memory. */
int raw_advise_mr(int fd, uint32_t pd, uint64_t advice, const struct ib_uverbs_sge *sge);
int raw_alloc_mw(int fd, uint32_t pd, uint8_t type, const void *drv, size_t drv_size, uint32_t *handle);
int raw_dealloc_mw(int fd, uint32_t handle);
int raw_open_xrcd(int fd, const void *drv, size_t drv_size, uint32_t *handle);
int raw_close_xrcd(int fd, uint32_t handle);

/* @req_size may differ from that of the structure. */
int raw_create_cq(int fd, unsigned int cqe, const struct skua_create_cq_req *req, size_t req_size,
		  uint32_t *handle);
int raw_resize_cq(int fd, uint32_t handle, unsigned int cqe, const struct skua_resize_cq_req *req, size_t req_size);
int raw_destroy_cq(int fd, uint32_t handle);

struct raw_qp {
	uint32_t pd, send_cq, recv_cq;
	struct ib_uverbs_create_qp cmd;		/* of it, what those above do not give */
};

int raw_create_qp(int fd, const struct raw_qp *qp, const struct skua_create_qp_req *req,
		  size_t req_size, uint32_t *handle);
int raw_destroy_qp(int fd, uint32_t handle);

int raw_create_srq(int fd, uint32_t pd, unsigned int max_wr, const struct skua_create_srq_req *req, size_t req_size,
		   uint32_t *handle);
int raw_modify_srq(int fd, const struct ib_uverbs_modify_srq *srq, const struct skua_modify_srq_req *req,
		   size_t req_size);
/* By the method, which knows a limit: its events go to the file @events, its answer to @resp. */
int raw_create_limited_srq(int fd, uint32_t pd, int events, uint32_t max_wr, uint32_t limit,
			   const struct skua_create_srq_req *req, void *resp, uint32_t *handle);
/* One with a CQ of its own. */
int raw_create_xsrq(int fd, const struct ib_uverbs_create_xsrq *srq, const struct skua_create_srq_req *req,
		    uint32_t *handle);
int raw_destroy_srq(int fd, uint32_t handle);

int raw_create_wq(int fd, const struct ib_uverbs_ex_create_wq *wq, const struct skua_create_wq_req *req,
		  size_t req_size, uint32_t *handle);
int raw_destroy_wq(int fd, uint32_t handle);
/* A table of one WQ. */
int raw_create_table(int fd, uint32_t wq, uint32_t *handle);
int raw_destroy_table(int fd, uint32_t handle);

/* Of frames to a MAC, that @qp receives. */
int raw_create_flow(int fd, uint32_t qp, uint32_t *handle);
int raw_destroy_flow(int fd, uint32_t handle);

#endif
