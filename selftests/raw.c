// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include "raw.h"

int raw_write(int fd, unsigned int command, const void *core, size_t core_size, const void *drv,
	      size_t drv_size, size_t resp_size)
{
	struct ib_uverbs_cmd_hdr *hdr;
	size_t size = sizeof(*hdr) + core_size + drv_size;
	int err = 0;

	hdr = malloc(size);
	if (!hdr)
		return ENOMEM;
	hdr->command = command;
	hdr->in_words = (uint16_t)(size / 4);
	hdr->out_words = (uint16_t)(resp_size / 4);
	memcpy(hdr + 1, core, core_size);
	if (drv_size)
		memcpy((char *)(hdr + 1) + core_size, drv, drv_size);
	if (write(fd, hdr, size) != (ssize_t)size)
		err = errno;
	free(hdr);
	return err;
}

int raw_write_ex(int fd, unsigned int command, const void *core, size_t core_size, const void *drv,
		 size_t drv_size, void *resp, size_t resp_size)
{
	const struct ib_uverbs_ex_cmd_hdr ex = {
		.response = (uintptr_t)resp, .provider_in_words = (uint16_t)(drv_size / 8),
	};
	struct ib_uverbs_cmd_hdr *hdr;
	size_t size = sizeof(*hdr) + sizeof(ex) + core_size + drv_size;
	uint8_t *to;
	int err = 0;

	hdr = malloc(size);
	if (!hdr)
		return ENOMEM;
	hdr->command = command | IB_USER_VERBS_CMD_FLAG_EXTENDED;
	hdr->in_words = (uint16_t)(core_size / 8);
	hdr->out_words = (uint16_t)(resp_size / 8);
	to = mempcpy(hdr + 1, &ex, sizeof(ex));
	to = mempcpy(to, core, core_size);
	if (drv_size)
		memcpy(to, drv, drv_size);
	if (write(fd, hdr, size) != (ssize_t)size)
		err = errno;
	free(hdr);
	return err;
}

static struct ib_uverbs_attr raw_in(uint16_t id, const void *data, size_t size)
{
	struct ib_uverbs_attr attr = {
		.attr_id = id, .len = (uint16_t)size, .flags = UVERBS_ATTR_F_MANDATORY,
	};

	if (size <= sizeof(attr.data))
		memcpy(&attr.data, data, size);
	else
		attr.data = (uintptr_t)data;
	return attr;
}

static struct ib_uverbs_attr raw_out(uint16_t id, void *data, size_t size)
{
	return (struct ib_uverbs_attr){
		.attr_id = id, .len = (uint16_t)size, .flags = UVERBS_ATTR_F_MANDATORY, .data = (uintptr_t)data,
	};
}

static struct ib_uverbs_attr raw_handle(uint16_t id, uint32_t handle)
{
	return (struct ib_uverbs_attr){ .attr_id = id, .flags = UVERBS_ATTR_F_MANDATORY, .data = handle };
}

#define RAW_ATTRS	12	/* of a call, at most */

/* The kernel tells new handles in the attributes, which are the caller's then. */
static int raw_call(int fd, uint16_t object, uint16_t method, struct ib_uverbs_attr *attrs, unsigned int n)
{
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attrs[RAW_ATTRS];
	} call = { .hdr = { .object_id = object, .method_id = method, .num_attrs = (uint16_t)n } };

	call.hdr.length = (uint16_t)(sizeof(call.hdr) + n * sizeof(*attrs));
	memcpy(call.attrs, attrs, n * sizeof(*attrs));
	if (ioctl(fd, RDMA_VERBS_IOCTL, &call))
		return errno;
	memcpy(attrs, call.attrs, n * sizeof(*attrs));
	return 0;
}

int raw_invoke(int fd, unsigned int command, const void *core, size_t core_size, const void *drv,
	       size_t drv_size, size_t resp_size)
{
	uint64_t number = command, resp[16];
	struct ib_uverbs_attr attrs[RAW_ATTRS] = {
		raw_in(UVERBS_ATTR_WRITE_CMD, &number, sizeof(number)),
		raw_in(UVERBS_ATTR_CORE_IN, core, core_size),
	};
	unsigned int n = 2;

	if (resp_size)
		attrs[n++] = raw_out(UVERBS_ATTR_CORE_OUT, resp, resp_size);
	if (drv_size)
		attrs[n++] = raw_in(UVERBS_ATTR_UHW_IN, drv, drv_size);
	return raw_call(fd, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE, attrs, n);
}

int raw_dm_copy(int fd, uint32_t dm, const void *req, size_t req_size)
{
	struct ib_uverbs_attr attrs[] = {
		raw_handle(SKUA_IB_ATTR_DM_COPY_HANDLE, dm), raw_in(SKUA_IB_ATTR_DM_COPY_REQ, req, req_size),
	};

	return raw_call(fd, UVERBS_OBJECT_DM, SKUA_IB_METHOD_DM_COPY, attrs, 2);
}

int raw_alloc_async_event(int fd)
{
	struct ib_uverbs_attr attr = raw_handle(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, 0);
	int err = raw_call(fd, UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC, &attr, 1);

	return err ? -err : (int)attr.data;
}

int raw_create_limited_srq(int fd, uint32_t pd, int events, uint32_t max_wr, uint32_t limit,
			   const struct skua_create_srq_req *req, void *resp, uint32_t *handle)
{
	const uint64_t type = IB_UVERBS_SRQT_BASIC, user_handle = 7;
	const uint32_t max_sge = 1;
	uint32_t made[2];
	struct ib_uverbs_attr attrs[] = {
		raw_handle(UVERBS_ATTR_CREATE_SRQ_HANDLE, 0), raw_handle(UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, pd),
		raw_in(UVERBS_ATTR_CREATE_SRQ_TYPE, &type, sizeof(type)),
		raw_in(UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, &user_handle, sizeof(user_handle)),
		raw_in(UVERBS_ATTR_CREATE_SRQ_MAX_WR, &max_wr, sizeof(max_wr)),
		raw_in(UVERBS_ATTR_CREATE_SRQ_MAX_SGE, &max_sge, sizeof(max_sge)),
		raw_in(UVERBS_ATTR_CREATE_SRQ_LIMIT, &limit, sizeof(limit)),
		raw_handle(UVERBS_ATTR_CREATE_SRQ_EVENT_FD, (uint32_t)events),
		raw_out(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, &made[0], sizeof(made[0])),
		raw_out(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, &made[1], sizeof(made[1])),
		raw_in(UVERBS_ATTR_UHW_IN, req, sizeof(*req)),
		raw_out(UVERBS_ATTR_UHW_OUT, resp, sizeof(struct skua_create_srq_resp)),
	};

	int err = raw_call(fd, UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE, attrs, RAW_ATTRS);

	*handle = (uint32_t)attrs[0].data;
	return err;
}

int raw_alloc_dm(int fd, uint64_t length, uint32_t *handle)
{
	uint32_t alignment = 0;
	struct ib_uverbs_attr attrs[] = {
		raw_handle(UVERBS_ATTR_ALLOC_DM_HANDLE, 0),
		raw_in(UVERBS_ATTR_ALLOC_DM_LENGTH, &length, sizeof(length)),
		raw_in(UVERBS_ATTR_ALLOC_DM_ALIGNMENT, &alignment, sizeof(alignment)),
	};
	int err = raw_call(fd, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC, attrs, 3);

	*handle = (uint32_t)attrs[0].data;
	return err;
}

int raw_free_dm(int fd, uint32_t handle)
{
	struct ib_uverbs_attr attr = raw_handle(UVERBS_ATTR_FREE_DM_HANDLE, handle);

	return raw_call(fd, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_FREE, &attr, 1);
}

int raw_reg_dm_mr(int fd, uint32_t pd, uint32_t dm, uint32_t *handle)
{
	const uint64_t offset = 0, length = 64, access = IBV_ACCESS_ZERO_BASED;
	uint32_t lkey, rkey;
	struct ib_uverbs_attr attrs[] = {
		raw_handle(UVERBS_ATTR_REG_DM_MR_HANDLE, 0), raw_handle(UVERBS_ATTR_REG_DM_MR_PD_HANDLE, pd),
		raw_handle(UVERBS_ATTR_REG_DM_MR_DM_HANDLE, dm),
		raw_in(UVERBS_ATTR_REG_DM_MR_OFFSET, &offset, sizeof(offset)),
		raw_in(UVERBS_ATTR_REG_DM_MR_LENGTH, &length, sizeof(length)),
		raw_in(UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS, &access, sizeof(access)),
		raw_out(UVERBS_ATTR_REG_DM_MR_RESP_LKEY, &lkey, sizeof(lkey)),
		raw_out(UVERBS_ATTR_REG_DM_MR_RESP_RKEY, &rkey, sizeof(rkey)),
	};
	int err = raw_call(fd, UVERBS_OBJECT_MR, UVERBS_METHOD_DM_MR_REG, attrs, 8);

	*handle = (uint32_t)attrs[0].data;
	return err;
}

int raw_advise_mr(int fd, uint32_t pd, uint64_t advice, const struct ib_uverbs_sge *sge)
{
	const uint64_t flags = 0;
	struct ib_uverbs_attr attrs[] = {
		raw_handle(UVERBS_ATTR_ADVISE_MR_PD_HANDLE, pd),
		raw_in(UVERBS_ATTR_ADVISE_MR_ADVICE, &advice, sizeof(advice)),
		raw_in(UVERBS_ATTR_ADVISE_MR_FLAGS, &flags, sizeof(flags)),
		raw_in(UVERBS_ATTR_ADVISE_MR_SGE_LIST, sge, sizeof(*sge)),
	};

	return raw_call(fd, UVERBS_OBJECT_MR, UVERBS_METHOD_ADVISE_MR, attrs, 4);
}

/* What the driver adds to a response comes behind it. */
#define RAW_RESP(common, driver) struct { struct common core; struct driver drv; }

int raw_open(const char *device, struct skua_alloc_ucontext_resp *drv)
{
	RAW_RESP(ib_uverbs_get_context_resp, skua_alloc_ucontext_resp) resp = {};
	struct ib_uverbs_get_context cmd = { .response = (uintptr_t)&resp };
	struct ibv_device **list = ibv_get_device_list(NULL);
	char path[300] = "";
	int fd, err;

	for (struct ibv_device **d = list; d && *d; d++)
		if (!strcmp(ibv_get_device_name(*d), device))
			snprintf(path, sizeof(path), "/dev/infiniband/%s", (*d)->dev_name);
	ibv_free_device_list(list);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = raw_write(fd, IB_USER_VERBS_CMD_GET_CONTEXT, &cmd, sizeof(cmd), NULL, 0, sizeof(resp));
	if (err) {
		close(fd);
		return -err;
	}
	if (drv)
		*drv = resp.drv;
	return fd;
}

int raw_alloc_pd(int fd, uint32_t *handle)
{
	RAW_RESP(ib_uverbs_alloc_pd_resp, skua_alloc_pd_resp) resp = {};
	struct ib_uverbs_alloc_pd cmd = { .response = (uintptr_t)&resp };
	int err = raw_write(fd, IB_USER_VERBS_CMD_ALLOC_PD, &cmd, sizeof(cmd), NULL, 0, sizeof(resp));

	*handle = resp.core.pd_handle;
	return err;
}

int raw_dealloc_pd(int fd, uint32_t handle)
{
	struct ib_uverbs_dealloc_pd cmd = { .pd_handle = handle };

	return raw_write(fd, IB_USER_VERBS_CMD_DEALLOC_PD, &cmd, sizeof(cmd), NULL, 0, 0);
}

int raw_reg_mr(int fd, uint32_t pd, void *addr, uint64_t length, unsigned int access,
	       uint32_t *handle)
{
	struct ib_uverbs_reg_mr_resp resp = {};
	struct ib_uverbs_reg_mr cmd = {
		.response = (uintptr_t)&resp, .start = (uintptr_t)addr, .length = length,
		.hca_va = (uintptr_t)addr, .pd_handle = pd, .access_flags = access,
	};
	int err = raw_write(fd, IB_USER_VERBS_CMD_REG_MR, &cmd, sizeof(cmd), NULL, 0, sizeof(resp));

	*handle = resp.mr_handle;
	return err;
}

int raw_dereg_mr(int fd, uint32_t handle)
{
	struct ib_uverbs_dereg_mr cmd = { .mr_handle = handle };

	return raw_write(fd, IB_USER_VERBS_CMD_DEREG_MR, &cmd, sizeof(cmd), NULL, 0, 0);
}

int raw_alloc_mw(int fd, uint32_t pd, uint8_t type, const void *drv, size_t drv_size, uint32_t *handle)
{
	struct ib_uverbs_alloc_mw_resp resp = {};
	struct ib_uverbs_alloc_mw cmd = { .response = (uintptr_t)&resp, .pd_handle = pd, .mw_type = type };
	int err = raw_write(fd, IB_USER_VERBS_CMD_ALLOC_MW, &cmd, sizeof(cmd), drv, drv_size, sizeof(resp));

	*handle = resp.mw_handle;
	return err;
}

int raw_dealloc_mw(int fd, uint32_t handle)
{
	struct ib_uverbs_dealloc_mw cmd = { .mw_handle = handle };

	return raw_write(fd, IB_USER_VERBS_CMD_DEALLOC_MW, &cmd, sizeof(cmd), NULL, 0, 0);
}

int raw_open_xrcd(int fd, const void *drv, size_t drv_size, uint32_t *handle)
{
	struct ib_uverbs_open_xrcd_resp resp = {};
	struct ib_uverbs_open_xrcd cmd = { .response = (uintptr_t)&resp, .fd = UINT32_MAX, .oflags = O_CREAT };
	int err = raw_write(fd, IB_USER_VERBS_CMD_OPEN_XRCD, &cmd, sizeof(cmd), drv, drv_size, sizeof(resp));

	*handle = resp.xrcd_handle;
	return err;
}

int raw_close_xrcd(int fd, uint32_t handle)
{
	struct ib_uverbs_close_xrcd cmd = { .xrcd_handle = handle };

	return raw_write(fd, IB_USER_VERBS_CMD_CLOSE_XRCD, &cmd, sizeof(cmd), NULL, 0, 0);
}

int raw_create_cq(int fd, unsigned int cqe, const struct skua_create_cq_req *req, size_t req_size,
		  uint32_t *handle)
{
	RAW_RESP(ib_uverbs_create_cq_resp, skua_create_cq_resp) resp = {};
	struct ib_uverbs_create_cq cmd = {
		.response = (uintptr_t)&resp, .cqe = cqe, .comp_channel = -1,
	};
	int err = raw_write(fd, IB_USER_VERBS_CMD_CREATE_CQ, &cmd, sizeof(cmd), req, req_size,
			    sizeof(resp));

	*handle = resp.core.cq_handle;
	return err;
}

int raw_resize_cq(int fd, uint32_t handle, unsigned int cqe, const struct skua_resize_cq_req *req, size_t req_size)
{
	RAW_RESP(ib_uverbs_resize_cq_resp, skua_resize_cq_resp) resp;
	struct ib_uverbs_resize_cq cmd = { .response = (uintptr_t)&resp, .cq_handle = handle, .cqe = cqe };

	return raw_write(fd, IB_USER_VERBS_CMD_RESIZE_CQ, &cmd, sizeof(cmd), req, req_size, sizeof(resp));
}

int raw_destroy_cq(int fd, uint32_t handle)
{
	struct ib_uverbs_destroy_cq_resp resp;
	struct ib_uverbs_destroy_cq cmd = { .response = (uintptr_t)&resp, .cq_handle = handle };

	return raw_write(fd, IB_USER_VERBS_CMD_DESTROY_CQ, &cmd, sizeof(cmd), NULL, 0, sizeof(resp));
}

int raw_create_qp(int fd, const struct raw_qp *qp, const struct skua_create_qp_req *req,
		  size_t req_size, uint32_t *handle)
{
	RAW_RESP(ib_uverbs_create_qp_resp, skua_create_qp_resp) resp = {};
	struct ib_uverbs_create_qp cmd = qp->cmd;
	int err;

	cmd.response = (uintptr_t)&resp;
	cmd.pd_handle = qp->pd;
	cmd.send_cq_handle = qp->send_cq;
	cmd.recv_cq_handle = qp->recv_cq;
	err = raw_write(fd, IB_USER_VERBS_CMD_CREATE_QP, &cmd, sizeof(cmd), req, req_size,
			sizeof(resp));
	*handle = resp.core.qp_handle;
	return err;
}

int raw_destroy_qp(int fd, uint32_t handle)
{
	struct ib_uverbs_destroy_qp_resp resp;
	struct ib_uverbs_destroy_qp cmd = { .response = (uintptr_t)&resp, .qp_handle = handle };

	return raw_write(fd, IB_USER_VERBS_CMD_DESTROY_QP, &cmd, sizeof(cmd), NULL, 0, sizeof(resp));
}

int raw_create_srq(int fd, uint32_t pd, unsigned int max_wr, const struct skua_create_srq_req *req, size_t req_size,
		   uint32_t *handle)
{
	RAW_RESP(ib_uverbs_create_srq_resp, skua_create_srq_resp) resp = {};
	struct ib_uverbs_create_srq cmd = {
		.response = (uintptr_t)&resp, .pd_handle = pd, .max_wr = max_wr, .max_sge = 1,
	};
	int err = raw_write(fd, IB_USER_VERBS_CMD_CREATE_SRQ, &cmd, sizeof(cmd), req, req_size, sizeof(resp));

	*handle = resp.core.srq_handle;
	return err;
}

int raw_modify_srq(int fd, const struct ib_uverbs_modify_srq *srq, const struct skua_modify_srq_req *req,
		   size_t req_size)
{
	return raw_write(fd, IB_USER_VERBS_CMD_MODIFY_SRQ, srq, sizeof(*srq), req, req_size, 0);
}

int raw_create_xsrq(int fd, const struct ib_uverbs_create_xsrq *srq, const struct skua_create_srq_req *req,
		    uint32_t *handle)
{
	RAW_RESP(ib_uverbs_create_srq_resp, skua_create_srq_resp) resp = {};
	struct ib_uverbs_create_xsrq cmd = *srq;
	int err;

	cmd.response = (uintptr_t)&resp;
	err = raw_write(fd, IB_USER_VERBS_CMD_CREATE_XSRQ, &cmd, sizeof(cmd), req, sizeof(*req), sizeof(resp));
	*handle = resp.core.srq_handle;
	return err;
}

int raw_destroy_srq(int fd, uint32_t handle)
{
	struct ib_uverbs_destroy_srq_resp resp;
	struct ib_uverbs_destroy_srq cmd = { .response = (uintptr_t)&resp, .srq_handle = handle };

	return raw_write(fd, IB_USER_VERBS_CMD_DESTROY_SRQ, &cmd, sizeof(cmd), NULL, 0, sizeof(resp));
}

int raw_create_wq(int fd, const struct ib_uverbs_ex_create_wq *wq, const struct skua_create_wq_req *req,
		  size_t req_size, uint32_t *handle)
{
	struct ib_uverbs_ex_create_wq_resp resp = {};
	int err = raw_write_ex(fd, IB_USER_VERBS_EX_CMD_CREATE_WQ, wq, sizeof(*wq), req, req_size, &resp, sizeof(resp));

	*handle = resp.wq_handle;
	return err;
}

int raw_destroy_wq(int fd, uint32_t handle)
{
	struct ib_uverbs_ex_destroy_wq cmd = { .wq_handle = handle };
	struct ib_uverbs_ex_destroy_wq_resp resp;

	return raw_write_ex(fd, IB_USER_VERBS_EX_CMD_DESTROY_WQ, &cmd, sizeof(cmd), NULL, 0, &resp, sizeof(resp));
}

int raw_create_table(int fd, uint32_t wq, uint32_t *handle)
{
	/* To the end of eight bytes the kernel takes zeroes. */
	const struct { struct ib_uverbs_ex_create_rwq_ind_table core; uint32_t wq, none; } cmd = { .wq = wq };
	struct ib_uverbs_ex_create_rwq_ind_table_resp resp = {};
	int err = raw_write_ex(fd, IB_USER_VERBS_EX_CMD_CREATE_RWQ_IND_TBL, &cmd, sizeof(cmd), NULL, 0, &resp,
			       sizeof(resp));

	*handle = resp.ind_tbl_handle;
	return err;
}

int raw_destroy_table(int fd, uint32_t handle)
{
	struct ib_uverbs_ex_destroy_rwq_ind_table cmd = { .ind_tbl_handle = handle };

	return raw_write_ex(fd, IB_USER_VERBS_EX_CMD_DESTROY_RWQ_IND_TBL, &cmd, sizeof(cmd), NULL, 0, NULL, 0);
}

int raw_create_flow(int fd, uint32_t qp, uint32_t *handle)
{
	const struct { struct ib_uverbs_create_flow core; struct ib_uverbs_flow_spec_eth eth; } cmd = {
		.core = {
			.qp_handle = qp,
			.flow_attr = {
				.type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(cmd.eth), .num_of_specs = 1, .port = 1,
			},
		},
		.eth = {
			.type = IBV_FLOW_SPEC_ETH, .size = sizeof(cmd.eth), .val.dst_mac = { 2, 0, 0, 0, 0, 9 },
			.mask.dst_mac = { 255, 255, 255, 255, 255, 255 },
		},
	};
	struct ib_uverbs_create_flow_resp resp = {};
	int err = raw_write_ex(fd, IB_USER_VERBS_EX_CMD_CREATE_FLOW, &cmd, sizeof(cmd), NULL, 0, &resp, sizeof(resp));

	*handle = resp.flow_handle;
	return err;
}

int raw_destroy_flow(int fd, uint32_t handle)
{
	struct ib_uverbs_destroy_flow cmd = { .flow_handle = handle };

	return raw_write_ex(fd, IB_USER_VERBS_EX_CMD_DESTROY_FLOW, &cmd, sizeof(cmd), NULL, 0, NULL, 0);
}
