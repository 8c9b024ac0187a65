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

static struct ib_uverbs_attr raw_attr(uint16_t id, const void *data, size_t size)
{
	struct ib_uverbs_attr attr = { .attr_id = id, .len = (uint16_t)size };

	/* What fits in the field stands in it. */
	if (size <= sizeof(attr.data) && id != UVERBS_ATTR_CORE_OUT)
		memcpy(&attr.data, data, size);
	else
		attr.data = (uintptr_t)data;
	return attr;
}

struct raw_call {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attrs[4];
};

static int raw_call(int fd, struct raw_call *call, unsigned int attrs)
{
	call->hdr.num_attrs = (uint16_t)attrs;
	call->hdr.length = (uint16_t)(sizeof(call->hdr) + attrs * sizeof(call->attrs[0]));
	return ioctl(fd, RDMA_VERBS_IOCTL, call) ? errno : 0;
}

int raw_invoke(int fd, unsigned int command, const void *core, size_t core_size, const void *drv,
	       size_t drv_size, size_t resp_size)
{
	uint64_t number = command, resp[16];
	struct raw_call call = {
		.hdr = { .object_id = UVERBS_OBJECT_DEVICE, .method_id = UVERBS_METHOD_INVOKE_WRITE },
	};
	unsigned int n = 0;

	call.attrs[n++] = raw_attr(UVERBS_ATTR_WRITE_CMD, &number, sizeof(number));
	call.attrs[n++] = raw_attr(UVERBS_ATTR_CORE_IN, core, core_size);
	if (resp_size)
		call.attrs[n++] = raw_attr(UVERBS_ATTR_CORE_OUT, resp, resp_size);
	if (drv_size)
		call.attrs[n++] = raw_attr(UVERBS_ATTR_UHW_IN, drv, drv_size);
	return raw_call(fd, &call, n);
}

int raw_dm_copy(int fd, uint32_t dm, const void *req, size_t req_size)
{
	struct raw_call call = {
		.hdr = { .object_id = UVERBS_OBJECT_DM, .method_id = SKUA_IB_METHOD_DM_COPY },
		.attrs[0] = { .attr_id = SKUA_IB_ATTR_DM_COPY_HANDLE, .flags = UVERBS_ATTR_F_MANDATORY, .data = dm },
		.attrs[1] = raw_attr(SKUA_IB_ATTR_DM_COPY_REQ, req, req_size),
	};

	call.attrs[1].flags = UVERBS_ATTR_F_MANDATORY;
	return raw_call(fd, &call, 2);
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
