// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The kernel, replaced: doubles of what the provider calls of libibverbs. They check the sizes of
 * commands, and keep what the kernel was told (kernel.h).
 */
#include "cmocka_all.h"

#include <infiniband/cmd_ioctl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <valgrind/memcheck.h>

#include "../skua.h"
#include "../skua-abi.h"
#include "kernel.h"

int answer;
unsigned int refused_command;
int dontfork;
struct skua_create_cq_req cq_req;
struct skua_resize_cq_req resize_req;
struct skua_create_qp_req qp_req;
struct ibv_qp_init_attr qp_init;
unsigned int qp_states;
struct ibv_qp_init_attr_ex qp_attr;
struct skua_create_rss_qp_req rss_req;
struct skua_modify_qp_req modify_req;
int modify_mask;
uint32_t modify_rate;
struct skua_create_wq_req wq_req;
struct skua_create_srq_req srq_req;
struct skua_modify_srq_req modify_srq_req;
struct ibv_alloc_dm_attr dm_attr;
unsigned int dm_copies;
struct dm_copy dm_copy;
struct memcheck memcheck;

void memcheck_defined(const void *addr, size_t length)
{
	memcheck.addr = addr;
	memcheck.length = length;
}
struct dm_mr_req dm_mr_req;
struct mr_req mr_req;
struct rereg_req rereg_req;
struct dmabuf_req dmabuf_req;
struct advice_req advice_req;

/* Of the commands that make, move or destroy QPs and SRQs. */
static int reply(void)
{
	return refused_command && !--refused_command ? EINVAL : answer;
}

int ibv_dontfork_range(void *base, size_t size)
{
	assert_int_equal((uintptr_t)base % 4096, 0);
	dontfork++;
	return 0;
}

int ibv_dofork_range(void *base, size_t size)
{
	dontfork--;
	return 0;
}

int ibv_cmd_create_cq(struct ibv_context *context, int cqe, struct ibv_comp_channel *channel,
		      int comp_vector, struct ibv_cq *cq, struct ibv_create_cq *cmd,
		      size_t cmd_size, struct ib_uverbs_create_cq_resp *resp, size_t resp_size)
{
	struct skua_cmd_create_cq *req = (void *)cmd;
	struct skua_cmd_create_cq_resp *out = (void *)resp;

	assert_int_equal(cmd_size, sizeof(*req));
	cq_req = req->drv_payload;
	out->cqn = 7;
	cq->context = context;
	return answer;
}

int ibv_cmd_resize_cq(struct ibv_cq *cq, int cqe, struct ibv_resize_cq *cmd, size_t cmd_size,
		      struct ib_uverbs_resize_cq_resp *resp, size_t resp_size)
{
	struct skua_cmd_resize_cq_resp *out = (void *)resp;

	assert_int_equal(cmd_size, sizeof(struct skua_cmd_resize_cq));
	assert_int_equal(resp_size, sizeof(*out));
	resize_req = ((struct skua_cmd_resize_cq *)cmd)->drv_payload;
	if (!answer)
		cq->cqe = cqe;
	return answer;
}

int ibv_cmd_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr, struct ibv_modify_cq *cmd,
		      size_t cmd_size)
{
	return answer;
}

int ibv_cmd_destroy_cq(struct ibv_cq *cq)
{
	return answer;
}

int ibv_cmd_create_qp(struct ibv_pd *ibv_pd, struct ibv_qp *qp, struct ibv_qp_init_attr *attr,
		      struct ibv_create_qp *cmd, size_t cmd_size,
		      struct ib_uverbs_create_qp_resp *resp, size_t resp_size)
{
	struct skua_cmd_create_qp *req = (void *)cmd;

	assert_int_equal(cmd_size, sizeof(*req));
	qp_req = req->drv_payload;
	qp_init = *attr;
	qp_states = 0;
	qp->context = ibv_pd->context;
	qp->send_cq = attr->send_cq;
	qp->recv_cq = attr->recv_cq;
	qp->srq = attr->srq;
	qp->qp_num = 0x55;
	qp->state = IBV_QPS_RESET;
	return reply();
}

int ibv_cmd_create_qp_ex(struct ibv_context *context, struct verbs_qp *qp, struct ibv_qp_init_attr_ex *attr,
			 struct ibv_create_qp *cmd, size_t cmd_size, struct ib_uverbs_create_qp_resp *resp,
			 size_t resp_size)
{
	assert_int_equal(cmd_size, sizeof(*cmd));
	qp_attr = *attr;
	qp->qp.context = context;
	qp->qp.qp_num = 0x56;
	qp->qp.state = IBV_QPS_RESET;
	return answer;
}

int ibv_cmd_create_qp_ex2(struct ibv_context *context, struct verbs_qp *qp, struct ibv_qp_init_attr_ex *attr,
			  struct ibv_create_qp_ex *cmd, size_t cmd_size, struct ib_uverbs_ex_create_qp_resp *resp,
			  size_t resp_size
#ifdef SKUA_CREATE_QP_EX2_DRIVER
			  , struct ibv_command_buffer *driver
#endif
			  )
{
	qp_attr = *attr;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_IND_TABLE)
		rss_req = ((struct skua_cmd_create_rss_qp *)cmd)->drv_payload;
	else
		qp_req = ((struct skua_cmd_create_qp_ex *)cmd)->drv_payload;
	qp->qp.context = context;
	qp->qp.send_cq = attr->send_cq;
	qp->qp.recv_cq = attr->recv_cq;
	/* Numbers of these objects are not those of QPs, and may be equal to them. */
	qp->qp.qp_num = 0x55;
	return answer;
}

int ibv_cmd_open_qp(struct ibv_context *context, struct verbs_qp *qp, int vqp_sz, struct ibv_qp_open_attr *attr,
		    struct ibv_open_qp *cmd, size_t cmd_size, struct ib_uverbs_create_qp_resp *resp, size_t resp_size)
{
	qp->qp.context = context;
	qp->qp.qp_num = attr->qp_num;
	qp->qp.state = IBV_QPS_UNKNOWN;
	return answer;
}

int ibv_cmd_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		      struct ibv_modify_qp *cmd, size_t cmd_size)
{
	if (attr_mask & IBV_QP_STATE)
		qp_states |= 1u << attr->qp_state;
	return reply();
}

int ibv_cmd_modify_qp_ex(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask, struct ibv_modify_qp_ex *cmd,
			 size_t cmd_size, struct ib_uverbs_ex_modify_qp_resp *resp, size_t resp_size)
{
	assert_int_equal(cmd_size, sizeof(struct skua_cmd_modify_qp_ex));
	modify_req = ((struct skua_cmd_modify_qp_ex *)cmd)->drv_payload;
	modify_mask = attr_mask;
	modify_rate = attr->rate_limit;
	return answer;
}

int ibv_cmd_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		     struct ibv_qp_init_attr *init_attr, struct ibv_query_qp *cmd,
		     size_t cmd_size)
{
	return answer;
}

int ibv_cmd_destroy_qp(struct ibv_qp *qp)
{
	return reply();
}

int ibv_cmd_open_xrcd(struct ibv_context *context, struct verbs_xrcd *xrcd, int vxrcd_size,
		      struct ibv_xrcd_init_attr *attr, struct ibv_open_xrcd *cmd, size_t cmd_size,
		      struct ib_uverbs_open_xrcd_resp *resp, size_t resp_size)
{
	xrcd->xrcd.context = context;
	return answer;
}

int ibv_cmd_close_xrcd(struct verbs_xrcd *xrcd)
{
	return answer;
}

int ibv_cmd_create_flow(struct ibv_qp *qp, struct ibv_flow *flow_id, struct ibv_flow_attr *flow_attr, void *ucmd,
			size_t ucmd_size)
{
	assert_int_equal(ucmd_size, 0);
	flow_id->context = qp->context;
	return answer;
}

int ibv_cmd_destroy_flow(struct ibv_flow *flow_id)
{
	return answer;
}

int ibv_cmd_create_wq(struct ibv_context *context, struct ibv_wq_init_attr *attr, struct ibv_wq *wq,
		      struct ibv_create_wq *cmd, size_t cmd_size, struct ib_uverbs_ex_create_wq_resp *resp,
		      size_t resp_size)
{
	wq_req = ((struct skua_cmd_create_wq *)cmd)->drv_payload;
	wq->context = context;
	wq->cq = attr->cq;
	wq->wq_num = 0x77;
	return answer;
}

int ibv_cmd_modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *attr, struct ibv_modify_wq *cmd, size_t cmd_size)
{
	if (!answer)
		wq->state = attr->wq_state;
	return answer;
}

int ibv_cmd_destroy_wq(struct ibv_wq *wq)
{
	return answer;
}

int ibv_cmd_create_rwq_ind_table(struct ibv_context *context, struct ibv_rwq_ind_table_init_attr *attr,
				 struct ibv_rwq_ind_table *table, struct ib_uverbs_ex_create_rwq_ind_table_resp *resp,
				 size_t resp_size)
{
	return answer;
}

int ibv_cmd_destroy_rwq_ind_table(struct ibv_rwq_ind_table *table)
{
	return answer;
}

int ibv_cmd_create_srq(struct ibv_pd *ibv_pd, struct ibv_srq *srq, struct ibv_srq_init_attr *attr,
		       struct ibv_create_srq *cmd, size_t cmd_size, struct ib_uverbs_create_srq_resp *resp,
		       size_t resp_size)
{
	struct skua_cmd_create_srq *req = (void *)cmd;

	assert_int_equal(cmd_size, sizeof(*req));
	srq_req = req->drv_payload;
	srq->context = ibv_pd->context;
	return answer;
}

int ibv_cmd_create_srq_ex(struct ibv_context *context, struct verbs_srq *srq, struct ibv_srq_init_attr_ex *attr,
			  struct ibv_create_xsrq *cmd, size_t cmd_size, struct ib_uverbs_create_srq_resp *resp,
			  size_t resp_size)
{
	struct skua_cmd_create_xsrq *req = (void *)cmd;

	/* SRQs of the basic type have a command of their own. */
	assert_int_not_equal(attr->srq_type, IBV_SRQT_BASIC);
	assert_int_equal(cmd_size, sizeof(*req));
	srq_req = req->drv_payload;
	srq->srq.context = context;
	srq->srq_type = attr->srq_type;
	srq->cq = attr->cq;
	srq->srq_num = 0x77;
	return reply();
}

int ibv_cmd_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int attr_mask, struct ibv_modify_srq *cmd,
		       size_t cmd_size)
{
	memset(&modify_srq_req, 0, sizeof(modify_srq_req));
	if (cmd_size == sizeof(struct skua_cmd_modify_srq))
		modify_srq_req = ((struct skua_cmd_modify_srq *)cmd)->drv_payload;
	return answer;
}

int ibv_cmd_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, struct ibv_query_srq *cmd, size_t cmd_size)
{
	return answer;
}

int ibv_cmd_destroy_srq(struct ibv_srq *srq)
{
	return reply();
}

int ibv_cmd_create_ah(struct ibv_pd *ibv_pd, struct ibv_ah *ah, struct ibv_ah_attr *attr,
		      struct ib_uverbs_create_ah_resp *resp, size_t resp_size)
{
	struct skua_cmd_create_ah_resp *out = (void *)resp;

	assert_int_equal(resp_size, sizeof(*out));
	memcpy(out->dmac, "\2mac05", 6);
	ah->context = ibv_pd->context;
	return answer;
}

int ibv_cmd_destroy_ah(struct ibv_ah *ah)
{
	return answer;
}

int ibv_cmd_alloc_pd(struct ibv_context *context, struct ibv_pd *ibv_pd, struct ibv_alloc_pd *cmd,
		     size_t cmd_size, struct ib_uverbs_alloc_pd_resp *resp, size_t resp_size)
{
	ibv_pd->context = context;
	ibv_pd->handle = 33;
	return answer;
}

int ibv_cmd_dealloc_pd(struct ibv_pd *ibv_pd)
{
	return answer;
}

int ibv_cmd_alloc_dm(struct ibv_context *context, const struct ibv_alloc_dm_attr *attr, struct verbs_dm *dm,
		     struct ibv_command_buffer *link)
{
	assert_null(link);
	dm_attr = *attr;
	dm->handle = DM_HANDLE;
	dm->dm.handle = DM_HANDLE;
	dm->dm.context = context;
	return answer;
}

int ibv_cmd_free_dm(struct verbs_dm *dm)
{
	assert_int_equal(dm->handle, DM_HANDLE);
	return answer;
}

/* A copy to or from device memory. */
static int copy_dm(struct ibv_context *context, struct ibv_command_buffer *cmd)
{
	const struct ib_uverbs_attr *attrs = cmd->hdr.attrs;

	assert_int_equal(cmd->hdr.method_id, SKUA_IB_METHOD_DM_COPY);
	assert_int_equal(cmd->next_attr - attrs, 2);
	assert_int_equal(attrs[0].attr_id, SKUA_IB_ATTR_DM_COPY_HANDLE);
	assert_int_equal(attrs[1].attr_id, SKUA_IB_ATTR_DM_COPY_REQ);
	assert_int_equal(attrs[1].len, sizeof(dm_copy.req));
	dm_copies++;
	dm_copy.context = context;
	dm_copy.handle = (uint32_t)attrs[0].data;
	memcpy(&dm_copy.req, (void *)(uintptr_t)attrs[1].data, sizeof(dm_copy.req));
	return answer;
}

/* Of an import of a PD. */
static int query_pd(struct ibv_command_buffer *cmd)
{
	assert_int_equal(cmd->hdr.object_id, UVERBS_OBJECT_PD);
	assert_int_equal(cmd->hdr.method_id, SKUA_IB_METHOD_PD_QUERY);
	assert_int_equal(cmd->hdr.attrs[0].attr_id, SKUA_IB_ATTR_PD_QUERY_HANDLE);
	return cmd->hdr.attrs[0].data == 33 ? answer : ENOENT;
}

int execute_ioctl(struct ibv_context *context, struct ibv_command_buffer *cmd)
{
	return cmd->hdr.object_id == UVERBS_OBJECT_DM ? copy_dm(context, cmd) : query_pd(cmd);
}

int ibv_cmd_reg_mr(struct ibv_pd *ibv_pd, void *addr, size_t length, uint64_t hca_va, int access,
		   struct verbs_mr *vmr, struct ibv_reg_mr *cmd, size_t cmd_size,
		   struct ib_uverbs_reg_mr_resp *resp, size_t resp_size)
{
	mr_req.addr = addr;
	mr_req.length = length;
	mr_req.hca_va = hca_va;
	mr_req.access = access;
	return answer;
}

int ibv_cmd_rereg_mr(struct verbs_mr *vmr, uint32_t flags, void *addr, size_t length, uint64_t hca_va, int access,
		     struct ibv_pd *ibv_pd, struct ibv_rereg_mr *cmd, size_t cmd_sz, struct ib_uverbs_rereg_mr_resp *resp,
		     size_t resp_sz)
{
	assert_int_equal(cmd_sz, sizeof(*cmd));
	assert_int_equal(resp_sz, sizeof(*resp));
	rereg_req.vmr = vmr;
	rereg_req.flags = flags;
	rereg_req.addr = addr;
	rereg_req.length = length;
	rereg_req.hca_va = hca_va;
	rereg_req.access = access;
	rereg_req.pd = ibv_pd;
	return answer;
}

int ibv_cmd_reg_dm_mr(struct ibv_pd *ibv_pd, struct verbs_dm *dm, uint64_t offset, size_t length,
		      unsigned int access, struct verbs_mr *vmr, struct ibv_command_buffer *link)
{
	assert_null(link);
	dm_mr_req.pd = ibv_pd;
	dm_mr_req.dm = dm;
	dm_mr_req.offset = offset;
	dm_mr_req.length = length;
	dm_mr_req.access = access;
	return answer;
}

int ibv_cmd_reg_dmabuf_mr(struct ibv_pd *ibv_pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access,
			  struct verbs_mr *vmr, struct ibv_command_buffer *driver)
{
	assert_null(driver);
	dmabuf_req.pd = ibv_pd;
	dmabuf_req.offset = offset;
	dmabuf_req.length = length;
	dmabuf_req.iova = iova;
	dmabuf_req.fd = fd;
	dmabuf_req.access = access;
	vmr->mr_type = IBV_MR_TYPE_DMABUF_MR;
	return answer;
}

int ibv_cmd_dereg_mr(struct verbs_mr *vmr)
{
	return answer;
}

int ibv_cmd_query_mr(struct ibv_pd *ibv_pd, struct verbs_mr *vmr, uint32_t mr_handle)
{
	return answer;
}

int ibv_cmd_advise_mr(struct ibv_pd *ibv_pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *sg_list,
		      uint32_t num_sge)
{
	advice_req.advice = advice;
	advice_req.flags = flags;
	advice_req.sg_list = sg_list;
	advice_req.num_sge = num_sge;
	return answer;
}
