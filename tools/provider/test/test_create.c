// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Making and destroying CQs and QPs, with the kernel replaced by doubles that keep what they
 * were told: sizes, addresses, capacities, and what becomes of CQEs of a QP that is gone.
 */
#include <time.h>
#include <unistd.h>

#include "cmocka_all.h"

#include <infiniband/cmd_ioctl.h>
#include <rdma/ib_user_ioctl_cmds.h>

#include "../skua.h"
#include "../skua-abi.h"
#include "fake.h"

static struct skua_device device = { .page_size = 4096 };
static struct skua_context ctx = {
	.caps = {
		.features = 1 << SKUA_F_EVENT_IDX | 1 << SKUA_F_RC | 1 << SKUA_F_INVALIDATE,
		.max_qp_wr = 256,
		.max_cqe = 1024,
		.max_inline = 512,
		.max_send_sge = 30,
		.max_recv_sge = 30,
		.max_srq_wr = 1024,
	},
	.event_idx = true,
};
static struct skua_info_page info;
static uint64_t db_page[SKUA_PAGE_SIZE / 8];
static struct skua_pd pd = { .users = 1 };

/* What the kernel was told, and what it answers. */
static struct skua_create_cq_req cq_req;
static struct skua_create_qp_req qp_req;
static int answer;
static int dontfork;			/* ranges kept from children */

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

static struct skua_resize_cq_req resize_req;

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
	qp->context = ibv_pd->context;
	qp->send_cq = attr->send_cq;
	qp->recv_cq = attr->recv_cq;
	qp->qp_num = 0x55;
	qp->state = IBV_QPS_RESET;
	return answer;
}

static struct ibv_qp_init_attr_ex qp_attr;

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

int ibv_cmd_open_qp(struct ibv_context *context, struct verbs_qp *qp, int vqp_sz, struct ibv_qp_open_attr *attr,
		    struct ibv_open_qp *cmd, size_t cmd_size, struct ib_uverbs_create_qp_resp *resp, size_t resp_size)
{
	qp->qp.context = context;
	qp->qp.qp_num = attr->qp_num;
	qp->qp.state = IBV_QPS_UNKNOWN;
	return answer;
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

static struct skua_create_wq_req wq_req;

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

static struct skua_create_rss_qp_req rss_req;

int ibv_cmd_create_qp_ex2(struct ibv_context *context, struct verbs_qp *qp, struct ibv_qp_init_attr_ex *attr,
			  struct ibv_create_qp_ex *cmd, size_t cmd_size, struct ib_uverbs_ex_create_qp_resp *resp,
			  size_t resp_size
#ifdef SKUA_CREATE_QP_EX2_DRIVER
			  , struct ibv_command_buffer *driver
#endif
			  )
{
	rss_req = ((struct skua_cmd_create_rss_qp *)cmd)->drv_payload;
	qp->qp.context = context;
	return answer;
}

int ibv_cmd_destroy_flow(struct ibv_flow *flow_id)
{
	return answer;
}

static struct skua_create_srq_req srq_req;

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

	assert_int_equal(cmd_size, sizeof(*req));
	srq_req = req->drv_payload;
	srq->srq.context = context;
	srq->srq_type = attr->srq_type;
	srq->cq = attr->cq;
	srq->srq_num = 0x77;
	return answer;
}

int ibv_cmd_destroy_srq(struct ibv_srq *srq)
{
	return answer;
}

int ibv_cmd_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int attr_mask, struct ibv_modify_srq *cmd,
		       size_t cmd_size)
{
	return answer;
}

int ibv_cmd_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, struct ibv_query_srq *cmd, size_t cmd_size)
{
	return answer;
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

int ibv_cmd_destroy_qp(struct ibv_qp *qp)
{
	return answer;
}

int ibv_cmd_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		      struct ibv_modify_qp *cmd, size_t cmd_size)
{
	return answer;
}

static struct skua_modify_qp_req modify_req;
static int modify_mask;			/* of the extended command */
static uint32_t modify_rate;

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

/* Of an import of a PD. */
int execute_ioctl(struct ibv_context *ibv_ctx, struct ibv_command_buffer *cmd)
{
	assert_int_equal(cmd->hdr.object_id, UVERBS_OBJECT_PD);
	assert_int_equal(cmd->hdr.method_id, SKUA_IB_METHOD_PD_QUERY);
	assert_int_equal(cmd->hdr.attrs[0].attr_id, SKUA_IB_ATTR_PD_QUERY_HANDLE);
	return cmd->hdr.attrs[0].data == 33 ? answer : ENOENT;
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

/* The last region that was asked for. */
static struct {
	void *addr;
	size_t length;
	uint64_t hca_va;
	int access;
} mr_req;

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

/* The last advice. */
static struct {
	enum ibv_advise_mr_advice advice;
	uint32_t flags, num_sge;
	struct ibv_sge *sg_list;
} advice_req;

int ibv_cmd_advise_mr(struct ibv_pd *ibv_pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *sg_list,
		      uint32_t num_sge)
{
	advice_req.advice = advice;
	advice_req.flags = flags;
	advice_req.sg_list = sg_list;
	advice_req.num_sge = num_sge;
	return answer;
}

static struct {
	struct verbs_mr *vmr;
	uint32_t flags;
	void *addr;
	size_t length;
	uint64_t hca_va;
	int access;
	struct ibv_pd *pd;
} rereg_req;

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
	return answer;
}

static struct {
	struct ibv_pd *pd;
	uint64_t offset, iova;
	size_t length;
	int fd, access;
} dmabuf_req;

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

static int setup(void **state)
{
	ctx.vctx.context.device = &device.vdev.device;
	info.state = SKUA_INFO_ALIVE;
	ctx.info = &info;
	ctx.db = db_page;
	pd.ibv_pd.context = &ctx.vctx.context;
	ctx.caps.features &= ~(1 << SKUA_F_UC | 1 << SKUA_F_UD);
	answer = 0;
	assert_int_equal(dontfork, 0);
	assert_int_equal(pd.users, 1);
	return 0;
}

static int teardown(void **state)
{
	return dontfork;
}

static struct ibv_cq *make_cq(int cqe)
{
	return skua_create_cq(&ctx.vctx.context, cqe, NULL, 0);
}

static struct ibv_qp *make_qp_of(enum ibv_qp_type type, struct ibv_cq *send_cq,
				 struct ibv_cq *recv_cq, struct ibv_qp_cap *cap)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = send_cq, .recv_cq = recv_cq, .cap = *cap, .qp_type = type,
	};
	struct ibv_qp *qp;

	qp = skua_create_qp(&pd.ibv_pd, &attr);
	*cap = attr.cap;
	/* As libibverbs does it. */
	if (qp)
		qp->qp_type = type;
	return qp;
}

static struct ibv_qp *make_qp(struct ibv_cq *send_cq, struct ibv_cq *recv_cq,
			      struct ibv_qp_cap *cap)
{
	return make_qp_of(IBV_QPT_RC, send_cq, recv_cq, cap);
}

static void test_cq_is_a_power_of_two(void **state)
{
	struct ibv_cq *cq = make_cq(100);

	assert_non_null(cq);
	assert_int_equal(cq->cqe, 128);
	assert_int_equal(cq_req.log_size, 7);
	assert_int_equal(cq_req.buf_addr % 4096, 0);
	assert_int_equal(cq_req.dbr_addr, cq_req.buf_addr + 128 * 64);
	assert_int_equal(skua_destroy_cq(cq), 0);
}

static void test_cq_limits(void **state)
{
	struct ibv_cq *cq;

	assert_null(make_cq(0));
	assert_int_equal(errno, EINVAL);
	assert_null(make_cq(-1));
	assert_null(make_cq(1025));
	assert_int_equal(errno, EINVAL);
	cq = make_cq(1024);
	assert_non_null(cq);
	skua_destroy_cq(cq);
	cq = make_cq(1);
	assert_int_equal(cq->cqe, 1);
	skua_destroy_cq(cq);
	answer = ENOMEM;
	assert_null(make_cq(10));
	assert_int_equal(errno, ENOMEM);
}

/* The record stays where the device knows it, and only the last ring is kept. */
static void test_cq_takes_another_ring(void **state)
{
	static const int wrong[] = { 0, -1, 1025, INT32_MAX };
	struct ibv_cq *cq = make_cq(16);
	uint64_t record = cq_req.dbr_addr;
	unsigned int i;

	for (i = 0; i < 4; i++)
		assert_int_equal(skua_resize_cq(cq, wrong[i]), EINVAL);
	/* Never less than a page of 64. */
	for (i = 0; i < 3; i++) {
		assert_int_equal(skua_resize_cq(cq, 1 + 31 * i), 0);
		assert_int_equal(resize_req.log_size, 6);
		assert_int_equal(resize_req.buf_addr % 4096, 0);
		assert_int_equal(cq->cqe, 64);
		assert_ptr_equal(to_skua_cq(cq)->ring.cqes, (void *)(uintptr_t)resize_req.buf_addr);
		assert_ptr_equal(to_skua_cq(cq)->ring.dbr, (void *)(uintptr_t)record);
		assert_int_equal(dontfork, 2);
	}
	answer = ENOMEM;
	assert_int_equal(skua_resize_cq(cq, 500), ENOMEM);
	assert_int_equal(to_skua_cq(cq)->ring.size, 64);
	assert_int_equal(dontfork, 2);
	answer = 0;
	assert_int_equal(skua_destroy_cq(cq), 0);
}

static void test_cq_ex_refuses_what_it_cannot(void **state)
{
	static const uint64_t not_served[] = {
		IBV_WC_EX_WITH_CVLAN, IBV_WC_EX_WITH_TM_INFO, 1ull << 40,
	};
	struct ibv_cq_init_attr_ex attr = { .cqe = 4, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_cq_ex *cq_ex;
	unsigned int i;

	cq_ex = skua_create_cq_ex(&ctx.vctx.context, &attr);
	assert_non_null(cq_ex);
	assert_null(cq_ex->read_completion_ts);
	assert_null(cq_ex->read_flow_tag);
	skua_destroy_cq(ibv_cq_ex_to_cq(cq_ex));

	for (i = 0; i < sizeof(not_served) / sizeof(not_served[0]); i++) {
		attr.wc_flags = not_served[i];
		errno = 0;
		assert_null(skua_create_cq_ex(&ctx.vctx.context, &attr));
		assert_int_equal(errno, EOPNOTSUPP);
	}
	attr.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_FLOW_TAG;
	attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
	attr.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN << 1;
	errno = 0;
	assert_null(skua_create_cq_ex(&ctx.vctx.context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	for (attr.flags = 0; attr.flags <= 3; attr.flags++) {
		cq_ex = skua_create_cq_ex(&ctx.vctx.context, &attr);
		assert_non_null(cq_ex);
		assert_non_null(cq_ex->read_completion_ts);
		assert_non_null(cq_ex->read_flow_tag);
		assert_null(cq_ex->read_byte_len);
		skua_destroy_cq(ibv_cq_ex_to_cq(cq_ex));
	}
}

/* WRs of the largest size are as many as of the smallest: what the kernel says is so for all. */
static void test_as_many_wrs_of_any_size(void **state)
{
	struct ibv_cq *cq = make_cq(16);
	uint32_t sge;

	for (sge = 1; sge <= 30; sge++) {
		struct ibv_qp_cap cap = {
			.max_send_wr = 256, .max_recv_wr = 256, .max_send_sge = sge,
			.max_recv_sge = sge, .max_inline_data = sge * 17,
		};
		struct ibv_qp *qp = make_qp(cq, cq, &cap);

		assert_non_null(qp);
		assert_int_equal(cap.max_send_wr, 256);
		assert_int_equal(cap.max_recv_wr, 256);
		skua_destroy_qp(qp);
	}
	skua_destroy_cq(cq);
}

/* Whatever is asked for: the rings hold it, in WRs of the largest size. */
static void holds_what_its_capacities_say(enum ibv_qp_type type, uint32_t header)
{
	struct ibv_cq *cq = make_cq(16);
	uint32_t sge, data, wr;

	for (sge = 0; sge <= 30; sge++)
		for (data = 0; data <= 512; data += 37)
			for (wr = 1; wr <= 200; wr = wr * 3 + 1) {
				struct ibv_qp_cap asked = {
					.max_send_wr = wr, .max_recv_wr = wr,
					.max_send_sge = sge, .max_recv_sge = sge,
					.max_inline_data = data,
				};
				struct ibv_qp_cap cap = asked;
				struct ibv_qp *qp = make_qp_of(type, cq, cq, &cap);
				uint32_t bytes, payload;

				assert_non_null(qp);
				assert_true(cap.max_send_wr >= wr && cap.max_recv_wr >= wr);
				assert_true(cap.max_send_sge >= sge && cap.max_send_sge <= 30);
				assert_true(cap.max_recv_sge >= sge && cap.max_recv_sge <= 30);
				assert_true(cap.max_inline_data >= data &&
					    cap.max_inline_data <= 512);
				payload = cap.max_send_sge * 16;
				if (payload < cap.max_inline_data)
					payload = cap.max_inline_data;
				bytes = skua_wqe_blocks(header + payload) * 64 * cap.max_send_wr;
				assert_true(bytes <= 64u << qp_req.log_sq_blocks);
				assert_int_equal(cap.max_recv_wr, 1u << qp_req.log_rq_size);
				assert_true(16 + 16 * cap.max_recv_sge <=
					    1u << qp_req.log_rq_stride);
				skua_destroy_qp(qp);
			}
	skua_destroy_cq(cq);
}

static void test_qp_holds_what_its_capacities_say(void **state)
{
	ctx.caps.features |= 1 << SKUA_F_UC | 1 << SKUA_F_UD;
	holds_what_its_capacities_say(IBV_QPT_RC, 32);
	holds_what_its_capacities_say(IBV_QPT_UC, 32);
	holds_what_its_capacities_say(IBV_QPT_UD, 64);
}

static void test_types_come_with_features(void **state)
{
	static const struct {
		enum ibv_qp_type type;
		uint64_t feature;
		enum skua_peer peer;
	} table[] = {
		{ IBV_QPT_UC, 1 << SKUA_F_UC, SKUA_PEER_CONNECTED },
		{ IBV_QPT_UD, 1 << SKUA_F_UD, SKUA_PEER_UD },
	};
	const uint64_t without = ctx.caps.features & ~(1 << SKUA_F_UC | 1 << SKUA_F_UD);
	struct ibv_qp_cap cap = { .max_send_wr = 4 };
	struct ibv_cq *cq = make_cq(16);
	struct ibv_qp *qp;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		ctx.caps.features = without | table[!i].feature;
		assert_null(make_qp_of(table[i].type, cq, cq, &cap));
		assert_int_equal(errno, EOPNOTSUPP);
		ctx.caps.features = without | table[i].feature;
		qp = make_qp_of(table[i].type, cq, cq, &cap);
		assert_non_null(qp);
		assert_int_equal(to_skua_qp(qp)->peer, table[i].peer);
		skua_destroy_qp(qp);
	}
	ctx.caps.features |= 1 << SKUA_F_UC | 1 << SKUA_F_UD;
	assert_null(make_qp_of(IBV_QPT_RAW_PACKET, cq, cq, &cap));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(make_qp_of(1, cq, cq, &cap));
	assert_int_equal(errno, EOPNOTSUPP);
	skua_destroy_cq(cq);
}

static void test_ah(void **state)
{
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = 1, .sl = 3,
		.grh = { .dgid.raw = "where it goes to", .flow_label = 0xfffabcde, .sgid_index = 2,
			 .hop_limit = 64, .traffic_class = 0x68 },
	};
	const struct skua_av av = {
		.dgid = "where it goes to", .dmac = "\2mac05", .sgid_index = 2, .hop_limit = 64,
		.traffic_class = 0x68, .sl = 3, .flow_label = htole32(0xabcde),
	};
	struct ibv_ah *ah = skua_create_ah(&pd.ibv_pd, &attr);

	assert_non_null(ah);
	assert_memory_equal(&to_skua_ah(ah)->av, &av, sizeof(av));
	answer = EBUSY;
	assert_int_equal(skua_destroy_ah(ah), EBUSY);
	answer = 0;
	assert_int_equal(skua_destroy_ah(ah), 0);
	answer = ENETUNREACH;
	assert_null(skua_create_ah(&pd.ibv_pd, &attr));
	assert_int_equal(errno, ENETUNREACH);
}

static void test_qp_tells_where_its_memory_is(void **state)
{
	struct ibv_qp_cap cap = {
		.max_send_wr = 64, .max_recv_wr = 10, .max_send_sge = 1, .max_recv_sge = 1,
	};
	struct ibv_cq *cq = make_cq(16);
	struct ibv_qp *qp = make_qp(cq, cq, &cap);

	assert_int_equal(qp_req.log_sq_blocks, 6);
	assert_int_equal(qp_req.log_rq_size, 4);
	assert_int_equal(qp_req.log_rq_stride, 5);
	assert_int_equal(qp_req.flags, 0);
	assert_int_equal(qp_req.qp_handle, (uintptr_t)to_skua_qp(qp));
	assert_int_equal(qp_req.sq_addr % 4096, 0);
	assert_int_equal(qp_req.rq_addr, qp_req.sq_addr + 64 * 64);
	assert_int_equal(qp_req.sq_dbr_addr, qp_req.rq_addr + 16 * 32);
	assert_int_equal(qp_req.rq_dbr_addr, qp_req.sq_dbr_addr + 64);
	skua_destroy_qp(qp);
	skua_destroy_cq(cq);
}

/* Entries and records begin where they may (PL-9, "Records"). */
static void test_a_small_qp_takes_a_page(void **state)
{
	struct ibv_cq *cq = make_cq(16);

	for (uint32_t sges = 1; sges <= 16; sges++) {
		struct ibv_qp_cap cap = {
			.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = sges,
		};
		struct ibv_qp *qp = make_qp(cq, cq, &cap);

		assert_int_equal(qp_req.rq_addr % (1u << qp_req.log_rq_stride), 0);
		assert_int_equal(qp_req.sq_dbr_addr % 64, 0);
		assert_int_equal(qp_req.rq_dbr_addr, qp_req.sq_dbr_addr + 64);
		assert_true(qp_req.rq_addr >= qp_req.sq_addr + 64);
		assert_true(qp_req.sq_dbr_addr >= qp_req.rq_addr + (1u << qp_req.log_rq_stride));
		assert_int_equal(qp_req.rq_dbr_addr / 4096, qp_req.sq_addr / 4096);
		skua_destroy_qp(qp);
	}
	skua_destroy_cq(cq);
}

static void test_qp_without_queues(void **state)
{
	struct ibv_qp_cap cap = { .max_send_wr = 0 };
	struct ibv_recv_wr rwr = {}, *bad_recv;
	struct ibv_send_wr wr = {}, *bad_send;
	struct ibv_cq *cq = make_cq(16);
	struct ibv_qp *qp = make_qp(cq, cq, &cap);

	assert_int_equal(qp_req.flags, SKUA_CREATE_QP_NO_SQ | SKUA_CREATE_QP_NO_RQ);
	assert_int_equal(qp_req.sq_addr | qp_req.rq_addr | qp_req.sq_dbr_addr |
			 qp_req.rq_dbr_addr, 0);
	assert_int_equal(qp_req.log_sq_blocks | qp_req.log_rq_size | qp_req.log_rq_stride, 0);
	qp->state = IBV_QPS_RTS;
	wr.opcode = IBV_WR_SEND;
	assert_int_equal(skua_post_send(qp, &wr, &bad_send), ENOMEM);
	assert_int_equal(skua_post_recv(qp, &rwr, &bad_recv), ENOMEM);
	skua_destroy_qp(qp);
	skua_destroy_cq(cq);
}

static void test_qp_limits(void **state)
{
	static const struct ibv_qp_cap bad[] = {
		{ .max_send_wr = 257 },
		{ .max_send_wr = 1, .max_send_sge = 31 },
		{ .max_send_wr = 1, .max_inline_data = 513 },
		{ .max_send_wr = UINT32_MAX },
		{ .max_recv_wr = 257 },
		{ .max_recv_wr = UINT32_MAX },
		{ .max_recv_wr = 1, .max_recv_sge = 31 },
		{ .max_recv_wr = 1, .max_recv_sge = UINT32_MAX },
	};
	struct ibv_cq *cq = make_cq(16);
	struct ibv_qp_cap cap;
	unsigned int i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cap = bad[i];
		assert_null(make_qp(cq, cq, &cap));
		assert_int_equal(errno, EINVAL);
	}
	cap = (struct ibv_qp_cap) { .max_send_wr = 1 };
	answer = ENOSPC;
	assert_null(make_qp(cq, cq, &cap));
	assert_int_equal(errno, ENOSPC);
	answer = 0;
	skua_destroy_cq(cq);
}

static unsigned int post_sends(struct ibv_qp *qp)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;
	unsigned int n = 0;

	while (!skua_post_send(qp, &wr, &bad))
		n++;
	return n;
}

static unsigned int post_sends_by_calls(struct ibv_qp *qp)
{
	struct ibv_qp_ex *qp_ex = &to_skua_qp(qp)->vqp.qp_ex;
	unsigned int n = 0;

	for (;; n++) {
		ibv_wr_start(qp_ex);
		ibv_wr_send(qp_ex);
		if (ibv_wr_complete(qp_ex))
			return n;
	}
}

static unsigned int post_recvs(struct ibv_qp *qp)
{
	struct ibv_recv_wr wr = {}, *bad;
	unsigned int n = 0;

	while (!skua_post_recv(qp, &wr, &bad))
		n++;
	return n;
}

/*
 * A program sizes its CQ by what it was told, and posts until there is no room: however small its
 * WRs, there are no more.
 */
static void test_a_qp_takes_no_more_than_it_said(void **state)
{
	struct ibv_cq *cq = make_cq(16);
	struct ibv_qp_init_attr_ex asked = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .pd = &pd.ibv_pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	uint32_t sge, max_qp_wr = ctx.caps.max_qp_wr;

	ctx.caps.max_qp_wr = 200;
	for (sge = 1; sge <= 30; sge++) {
		struct ibv_qp_init_attr_ex attr = asked;
		struct ibv_qp *qp;

		attr.cap = (struct ibv_qp_cap) {
			.max_send_wr = sge == 30 ? 200 : 10, .max_send_sge = sge,
			.max_recv_wr = sge == 30 ? 200 : 10, .max_recv_sge = 1,
		};
		qp = skua_create_qp_ex(&ctx.vctx.context, &attr);
		qp->state = IBV_QPS_RTS;
		assert_int_equal(post_recvs(qp), attr.cap.max_recv_wr);
		assert_int_equal(sge % 2 ? post_sends(qp) : post_sends_by_calls(qp),
				 attr.cap.max_send_wr);
		skua_destroy_qp(qp);
	}
	ctx.caps.max_qp_wr = max_qp_wr;
	skua_destroy_cq(cq);
}

#define XRC_FEATURES	(1 << SKUA_F_XRC | 1 << SKUA_F_SRQ | 1 << SKUA_F_RC)

/* XRC-5: the kernel learns no address of this process. */
static void test_an_xrc_recv_qp_has_no_queues(void **state)
{
	struct verbs_xrcd xrcd = {};
	struct ibv_cq *cq = make_cq(16);
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = &xrcd.xrcd,
		.send_cq = cq, .recv_cq = cq, .cap = { .max_send_wr = 3, .max_recv_wr = 5 },
	};
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct ibv_send_wr *bad_send, send = { .opcode = IBV_WR_SEND };
	struct ibv_recv_wr *bad_recv, recv = { .num_sge = 0 };
	uint64_t features = ctx.caps.features;
	struct ibv_qp *qp;

	assert_null(skua_create_qp_ex(&ctx.vctx.context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	ctx.caps.features |= XRC_FEATURES;
	attr.comp_mask = IBV_QP_INIT_ATTR_PD;
	assert_null(skua_create_qp_ex(&ctx.vctx.context, &attr));
	assert_int_equal(errno, EINVAL);
	attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
	qp = skua_create_qp_ex(&ctx.vctx.context, &attr);
	assert_non_null(qp);
	assert_null(qp_attr.send_cq);
	assert_null(qp_attr.recv_cq);
	assert_ptr_equal(qp_attr.xrcd, &xrcd.xrcd);
	assert_int_equal(attr.cap.max_send_wr, 0);
	assert_int_equal(attr.cap.max_recv_wr, 0);
	qp->state = IBV_QPS_RTS;
	assert_int_equal(skua_post_send(qp, &send, &bad_send), EINVAL);
	assert_int_not_equal(skua_post_recv(qp, &recv, &bad_recv), 0);
	assert_int_equal(skua_modify_qp(qp, &reset, IBV_QP_STATE), 0);
	assert_int_equal(skua_destroy_qp(qp), 0);
	answer = ENOMEM;
	assert_null(skua_create_qp_ex(&ctx.vctx.context, &attr));
	assert_int_equal(errno, ENOMEM);
	answer = 0;
	ctx.caps.features = features;
	skua_destroy_cq(cq);
}

static void test_a_qp_that_another_made(void **state)
{
	struct ibv_qp_open_attr attr = { .qp_num = 0x1234 };
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_SEND };
	struct ibv_qp *qp = skua_open_qp(&ctx.vctx.context, &attr);

	assert_non_null(qp);
	assert_int_equal(qp->qp_num, 0x1234);
	assert_int_equal(skua_post_send(qp, &wr, &bad), EINVAL);
	assert_int_equal(skua_destroy_qp(qp), 0);
	answer = EINVAL;
	assert_null(skua_open_qp(&ctx.vctx.context, &attr));
	assert_int_equal(errno, EINVAL);
	answer = 0;
}

static void test_a_domain_is_opened_and_closed(void **state)
{
	struct ibv_xrcd_init_attr attr = { 0 };
	struct ibv_xrcd *xrcd = skua_open_xrcd(&ctx.vctx.context, &attr);

	assert_non_null(xrcd);
	answer = EBUSY;
	assert_int_equal(skua_close_xrcd(xrcd), EBUSY);
	answer = 0;
	assert_int_equal(skua_close_xrcd(xrcd), 0);
	answer = EINVAL;
	assert_null(skua_open_xrcd(&ctx.vctx.context, &attr));
	assert_int_equal(errno, EINVAL);
	answer = 0;
}

/* However long an atomic is, there is room for as many WRs as the program was told. XRC-8 */
static void test_an_xrc_send_qp_takes_no_more_than_it_said(void **state)
{
	struct ibv_cq *cq = make_cq(16);
	uint64_t features = ctx.caps.features;
	struct ibv_qp_cap cap = { .max_send_wr = 16, .max_send_sge = 1, .max_recv_wr = 7 };
	struct ibv_sge sge = { .length = 8 };
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .sg_list = &sge, .num_sge = 1 };
	struct ibv_qp *qp;
	uint32_t i;

	assert_null(make_qp_of(IBV_QPT_XRC_SEND, cq, NULL, &cap));
	assert_int_equal(errno, EOPNOTSUPP);
	ctx.caps.features |= XRC_FEATURES | 1 << SKUA_F_ATOMIC;
	qp = make_qp_of(IBV_QPT_XRC_SEND, cq, NULL, &cap);
	assert_non_null(qp);
	assert_true(qp_req.flags & SKUA_CREATE_QP_NO_RQ);
	assert_int_equal(cap.max_recv_wr, 0);
	qp->state = IBV_QPS_RTS;
	for (i = 0; i < cap.max_send_wr; i++)
		assert_int_equal(skua_post_send(qp, &wr, &bad), 0);
	assert_int_equal(skua_post_send(qp, &wr, &bad), ENOMEM);
	assert_true(to_skua_qp(qp)->sq.pi <= to_skua_qp(qp)->sq.blocks);
	ctx.caps.features = features;
	skua_destroy_qp(qp);
	skua_destroy_cq(cq);
}

/* RAW-1: it sends frames, and nothing else. */
static void test_a_raw_packet_qp(void **state)
{
	struct ibv_cq *cq = make_cq(16);
	uint64_t features = ctx.caps.features;
	struct ibv_qp_cap cap = { .max_send_wr = 4, .max_send_sge = 1, .max_recv_wr = 7 };
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_SEND };
	struct ibv_qp *qp;

	assert_null(make_qp_of(IBV_QPT_RAW_PACKET, cq, NULL, &cap));
	assert_int_equal(errno, EOPNOTSUPP);
	ctx.caps.features |= 1 << SKUA_F_RAW_PACKET | 1 << SKUA_F_RC | 1 << SKUA_F_UD;
	qp = make_qp_of(IBV_QPT_RAW_PACKET, cq, NULL, &cap);
	assert_non_null(qp);
	assert_int_equal(qp_req.flags, 0);
	qp->state = IBV_QPS_RTS;
	assert_int_equal(skua_post_send(qp, &wr, &bad), 0);
	wr.opcode = IBV_WR_SEND_WITH_IMM;
	assert_int_equal(skua_post_send(qp, &wr, &bad), EINVAL);
	ctx.caps.features = features;
	skua_destroy_qp(qp);
	skua_destroy_cq(cq);
}

/* TSO-1: there is room for the headers that were asked for, in as many WRs as the program was told. */
static void test_a_raw_packet_qp_with_tso(void **state)
{
	static const uint16_t sizes[] = { 0, 1, 54, 138, 192, 65535 };
	uint64_t features = ctx.caps.features;
	struct ibv_cq *cq = make_cq(16);
	struct ibv_sge sges[30] = { { .length = 1 } };
	uint8_t headers[192] = { 0 };
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RAW_PACKET, .pd = &pd.ibv_pd, .send_cq = cq, .recv_cq = cq,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_MAX_TSO_HEADER,
	};
	struct ibv_qp *qp;
	unsigned int i;
	uint32_t n;

	ctx.caps.features |= 1 << SKUA_F_RAW_PACKET | 1 << SKUA_F_RC | 1 << SKUA_F_UD;
	attr.max_tso_header = 54;
	attr.cap.max_send_wr = 4;
	assert_null(skua_create_qp_ex(&ctx.vctx.context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	ctx.caps.features |= 1 << SKUA_F_TSO;
	attr.qp_type = IBV_QPT_UD;
	assert_null(skua_create_qp_ex(&ctx.vctx.context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	attr.qp_type = IBV_QPT_RAW_PACKET;
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_TSO, .sg_list = sges };

		attr.cap = (struct ibv_qp_cap) { .max_send_wr = 5, .max_send_sge = 3, .max_inline_data = 100 };
		attr.max_tso_header = sizes[i];
		qp = skua_create_qp_ex(&ctx.vctx.context, &attr);
		if (sizes[i] == 65535) {
			assert_null(qp);
			assert_int_equal(errno, EINVAL);
			continue;
		}
		assert_non_null(qp);
		assert_true(attr.cap.max_send_sge >= 3 && attr.cap.max_inline_data >= 100);
		qp->state = IBV_QPS_RTS;
		wr.num_sge = attr.cap.max_send_sge;
		wr.tso.hdr = headers;
		wr.tso.mss = 1;
		wr.tso.hdr_sz = sizes[i] + 1;
		assert_int_equal(skua_post_send(qp, &wr, &bad), EINVAL);
		wr.tso.hdr_sz = sizes[i];
		if (!sizes[i])
			assert_int_equal(skua_post_send(qp, &wr, &bad), EINVAL);
		for (n = 0; sizes[i] && n < attr.cap.max_send_wr; n++)
			assert_int_equal(skua_post_send(qp, &wr, &bad), 0);
		if (sizes[i])
			assert_int_equal(skua_post_send(qp, &wr, &bad), ENOMEM);
		assert_true(to_skua_qp(qp)->sq.pi <= to_skua_qp(qp)->sq.blocks);
		skua_destroy_qp(qp);
	}
	ctx.caps.features = features;
	skua_destroy_cq(cq);
}

static void test_flows_are_the_kernels(void **state)
{
	struct ibv_qp qp = { .context = &ctx.vctx.context };
	struct ibv_flow_attr attr = { .num_of_specs = 0 };
	struct ibv_flow *flow = skua_create_flow(&qp, &attr);

	assert_non_null(flow);
	answer = EBUSY;
	assert_int_equal(skua_destroy_flow(flow), EBUSY);
	answer = 0;
	assert_int_equal(skua_destroy_flow(flow), 0);
	answer = EPERM;
	assert_null(skua_create_flow(&qp, &attr));
	assert_int_equal(errno, EPERM);
	answer = 0;
}

/* A receive of a WQ completes as one of a QP. */
static void test_a_wq_receives(void **state)
{
	struct ibv_cq *cq = make_cq(16);
	struct ibv_wq_init_attr init = { .wq_type = IBV_WQT_RQ, .max_wr = 3, .max_sge = 2, .pd = &pd.ibv_pd, .cq = cq };
	struct ibv_wq_attr to_ready = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY };
	struct ibv_wq_attr to_reset = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RESET };
	struct ibv_recv_wr *bad, wr = { .wr_id = 0x55 };
	struct ibv_wq *wq = skua_create_wq(&ctx.vctx.context, &init);
	struct skua_cqe cqe = { .opcode = SKUA_CQE_RECV, .qpn = htole32(0x77) };
	struct ibv_wc wc;

	assert_non_null(wq);
	assert_int_equal(init.max_wr, 4);
	assert_int_equal(wq_req.log_rq_size, 2);
	assert_int_equal(wq->post_recv(wq, &wr, &bad), EINVAL);
	assert_int_equal(skua_modify_wq(wq, &to_ready), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(wq->post_recv(wq, &wr, &bad), 0);
	assert_int_equal(wq->post_recv(wq, &wr, &bad), ENOMEM);
	cqe.qp_handle = htole64(wq_req.wq_handle);
	cqe.flags = SKUA_CQE_PHASE;
	to_skua_cq(cq)->ring.cqes[0] = cqe;
	assert_int_equal(skua_poll_cq(cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 0x55);
	assert_int_equal(wq->post_recv(wq, &wr, &bad), 0);
	/* Nothing of it is left in RESET. */
	to_skua_cq(cq)->ring.cqes[1] = cqe;
	answer = EINVAL;
	assert_int_equal(skua_modify_wq(wq, &to_reset), EINVAL);
	answer = 0;
	assert_int_equal(skua_modify_wq(wq, &to_reset), 0);
	assert_int_equal(skua_poll_cq(cq, 1, &wc), 0);
	assert_int_equal(skua_modify_wq(wq, &to_ready), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(wq->post_recv(wq, &wr, &bad), 0);
	answer = EBUSY;
	assert_int_equal(skua_destroy_wq(wq), EBUSY);
	answer = 0;
	assert_int_equal(skua_destroy_wq(wq), 0);
	init.max_wr = 0;
	assert_null(skua_create_wq(&ctx.vctx.context, &init));
	init.max_wr = 1;
	init.max_sge = 31;
	assert_null(skua_create_wq(&ctx.vctx.context, &init));
	init.max_sge = 1;
	answer = ENOMEM;
	assert_null(skua_create_wq(&ctx.vctx.context, &init));
	assert_int_equal(errno, ENOMEM);
	answer = 0;
	skua_destroy_cq(cq);
}

static void test_a_qp_that_spreads(void **state)
{
	uint8_t key[40] = { 1, [39] = 2 };
	struct ibv_rwq_ind_table_init_attr table_attr = {};
	struct ibv_rwq_ind_table *table = skua_create_rwq_ind_table(&ctx.vctx.context, &table_attr);
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RAW_PACKET, .pd = &pd.ibv_pd, .rwq_ind_tbl = table,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH,
		.rx_hash_conf = { IBV_RX_HASH_FUNC_TOEPLITZ, 40, key, IBV_RX_HASH_SRC_IPV4 },
	};
	struct ibv_qp *qp;

	assert_non_null(table);
	qp = skua_create_qp_ex(&ctx.vctx.context, &attr);
	assert_non_null(qp);
	assert_memory_equal(rss_req.key, key, 40);
	assert_int_equal(rss_req.fields, IBV_RX_HASH_SRC_IPV4);
	assert_int_equal(rss_req.function, IBV_RX_HASH_FUNC_TOEPLITZ);
	assert_int_equal(rss_req.key_len, 40);
	assert_int_equal(skua_destroy_qp(qp), 0);
	attr.rx_hash_conf.rx_hash_key_len = 41;
	assert_null(skua_create_qp_ex(&ctx.vctx.context, &attr));
	assert_int_equal(errno, EINVAL);
	attr.rx_hash_conf.rx_hash_key_len = 40;
	attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE;
	assert_null(skua_create_qp_ex(&ctx.vctx.context, &attr));
	assert_int_equal(errno, EINVAL);
	attr.comp_mask |= IBV_QP_INIT_ATTR_RX_HASH;
	answer = EOPNOTSUPP;
	assert_null(skua_create_qp_ex(&ctx.vctx.context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(skua_create_rwq_ind_table(&ctx.vctx.context, &table_attr));
	assert_int_equal(skua_destroy_rwq_ind_table(table), EOPNOTSUPP);
	answer = 0;
	assert_int_equal(skua_destroy_rwq_ind_table(table), 0);
}

/* XRC-2, XRC-12: its CQEs go with it, and those of others stay. */
static void test_an_xrc_srq(void **state)
{
	struct verbs_xrcd xrcd = {};
	struct ibv_cq *cq = make_cq(16);
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 5, .max_sge = 2 }, .srq_type = IBV_SRQT_XRC, .pd = &pd.ibv_pd, .xrcd = &xrcd.xrcd,
		.cq = cq, .srq_context = &xrcd, .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
							     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
	};
	struct ibv_srq_init_attr basic = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct skua_cq_ring *ring = &to_skua_cq(cq)->ring;
	uint64_t features = ctx.caps.features;
	struct ibv_srq *srq, *other;
	const struct skua_cqe *cqe;
	uint32_t number, i;

	assert_null(skua_create_srq_ex(&ctx.vctx.context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	ctx.caps.features |= XRC_FEATURES;
	attr.comp_mask &= ~IBV_SRQ_INIT_ATTR_CQ;
	assert_null(skua_create_srq_ex(&ctx.vctx.context, &attr));
	assert_int_equal(errno, EINVAL);
	attr.comp_mask |= IBV_SRQ_INIT_ATTR_CQ;
	srq = skua_create_srq_ex(&ctx.vctx.context, &attr);
	assert_non_null(srq);
	assert_ptr_equal(srq->srq_context, &xrcd);
	assert_int_equal(attr.attr.max_wr, 8);
	assert_int_equal(srq_req.log_size, 3);
	assert_int_equal(srq_req.srq_handle, (uintptr_t)to_skua_srq(srq));
	assert_int_equal(skua_get_srq_num(srq, &number), 0);
	assert_int_equal(number, 0x77);
	other = skua_create_srq(&pd.ibv_pd, &basic);
	assert_int_equal(skua_get_srq_num(other, &number), EOPNOTSUPP);
	for (i = 0; i < 4; i++)
		*skua_cq_slot(ring, i) = (struct skua_cqe) {
			.opcode = SKUA_CQE_RECV, .qpn = htole32(9), .flags = SKUA_CQE_PHASE | SKUA_CQE_FROM_SRQ,
			.qp_handle = htole64(i % 2 ? (uintptr_t)to_skua_srq(srq) : (uintptr_t)to_skua_srq(other)),
		};
	assert_int_equal(skua_destroy_srq(srq), 0);
	for (i = 0; i < 2; i++) {
		assert_true(skua_cq_peek(ring, &cqe));
		assert_int_equal(le64toh(cqe->qp_handle), (uintptr_t)to_skua_srq(other));
		skua_cq_consume(ring);
	}
	assert_false(skua_cq_peek(ring, &cqe));
	ctx.caps.features = features;
	assert_int_equal(skua_destroy_srq(other), 0);
	skua_destroy_cq(cq);
}

static void test_qp_ex(void **state)
{
	struct ibv_cq *cq = make_cq(16);
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .pd = &pd.ibv_pd,
		.cap = { .max_send_wr = 3, .max_send_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
	};
	struct ibv_qp *qp;

	qp = skua_create_qp_ex(&ctx.vctx.context, &attr);
	assert_non_null(qp);
	assert_int_equal(attr.cap.max_send_wr, 4);
	assert_true(to_skua_qp(qp)->vqp.comp_mask & VERBS_QP_EX);
	skua_destroy_qp(qp);

	attr.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP;
	assert_null(skua_create_qp_ex(&ctx.vctx.context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
	attr.create_flags = IBV_QP_CREATE_SCATTER_FCS;
	assert_null(skua_create_qp_ex(&ctx.vctx.context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	attr.comp_mask = IBV_QP_INIT_ATTR_PD;
	attr.qp_type = IBV_QPT_UD;
	assert_null(skua_create_qp_ex(&ctx.vctx.context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	skua_destroy_cq(cq);
}

/* The device's end of a CQ that the provider made. */
static struct fake_cq device_of(struct ibv_cq *ibv_cq)
{
	struct skua_cq_ring *ring = &to_skua_cq(ibv_cq)->ring;

	return (struct fake_cq) { .cqes = ring->cqes, .dbr = ring->dbr, .size = ring->size };
}

static void complete(struct fake_cq *dev, struct ibv_qp *qp, uint8_t opcode)
{
	fake_cq_write(dev, (struct skua_cqe) {
		.qp_handle = htole64((uintptr_t)to_skua_qp(qp)),
		.qpn = htole32(qp->qp_num),
		.opcode = opcode,
	});
}

static void test_destroy_takes_the_cqes_along(void **state)
{
	struct ibv_qp_cap cap = { .max_send_wr = 8, .max_recv_wr = 8 };
	struct ibv_cq *send_cq = make_cq(8), *recv_cq = make_cq(8);
	struct fake_cq send_dev = device_of(send_cq), recv_dev = device_of(recv_cq);
	struct ibv_qp *gone = make_qp(send_cq, recv_cq, &cap);
	struct ibv_qp *stays = make_qp(send_cq, recv_cq, &cap);
	struct ibv_wc wc[8];

	stays->qp_num = 0x66;
	complete(&send_dev, gone, SKUA_CQE_SEND);
	complete(&send_dev, stays, SKUA_CQE_SEND);
	complete(&send_dev, gone, SKUA_CQE_SEND);
	complete(&recv_dev, gone, SKUA_CQE_RECV);
	complete(&recv_dev, stays, SKUA_CQE_RECV);

	assert_int_equal(skua_destroy_qp(gone), 0);
	assert_int_equal(skua_poll_cq(send_cq, 8, wc), 1);
	assert_int_equal(wc[0].qp_num, 0x66);
	assert_int_equal(skua_poll_cq(recv_cq, 8, wc), 1);
	assert_int_equal(wc[0].qp_num, 0x66);
	skua_destroy_qp(stays);
	skua_destroy_cq(send_cq);
	skua_destroy_cq(recv_cq);
}

static void test_destroy_that_fails_takes_nothing(void **state)
{
	struct ibv_qp_cap cap = { .max_send_wr = 8 };
	struct ibv_cq *cq = make_cq(8);
	struct fake_cq dev = device_of(cq);
	struct ibv_qp *qp = make_qp(cq, cq, &cap);
	struct ibv_wc wc;

	complete(&dev, qp, SKUA_CQE_SEND);
	answer = EBUSY;
	assert_int_equal(skua_destroy_qp(qp), EBUSY);
	assert_int_equal(skua_destroy_cq(cq), EBUSY);
	answer = 0;
	assert_int_equal(skua_poll_cq(cq, 1, &wc), 1);
	skua_destroy_qp(qp);
	skua_destroy_cq(cq);
}

static void test_reset_begins_anew(void **state)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct ibv_qp_cap cap = { .max_send_wr = 8, .max_recv_wr = 8 };
	struct ibv_cq *cq = make_cq(8);
	struct fake_cq dev = device_of(cq);
	struct ibv_qp *qp = make_qp(cq, cq, &cap);
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad_send;
	struct ibv_recv_wr rwr = {}, *bad_recv;
	struct ibv_wc wc;

	qp->state = IBV_QPS_RTS;
	assert_int_equal(skua_post_send(qp, &wr, &bad_send), 0);
	assert_int_equal(skua_post_recv(qp, &rwr, &bad_recv), 0);
	complete(&dev, qp, SKUA_CQE_SEND);
	assert_int_equal(skua_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	assert_int_equal(skua_poll_cq(cq, 1, &wc), 0);
	assert_int_equal(to_skua_qp(qp)->sq.dbr->pi, 0);
	assert_int_equal(to_skua_qp(qp)->rq.dbr->pi, 0);
	assert_int_equal(skua_post_send(qp, &wr, &bad_send), 0);
	assert_int_equal(le32toh(to_skua_qp(qp)->sq.dbr->pi), 1);
	skua_destroy_qp(qp);
	skua_destroy_cq(cq);
}

static void test_query_tells_the_real_capacities(void **state)
{
	struct ibv_qp_cap cap = { .max_send_wr = 5, .max_inline_data = 100 };
	struct ibv_qp_init_attr init = {};
	struct ibv_cq *cq = make_cq(8);
	struct ibv_qp *qp = make_qp(cq, cq, &cap);
	struct ibv_qp_attr attr = {};

	assert_int_equal(skua_query_qp(qp, &attr, IBV_QP_CAP, &init), 0);
	assert_memory_equal(&init.cap, &cap, sizeof(cap));
	assert_memory_equal(&attr.cap, &cap, sizeof(cap));
	skua_destroy_qp(qp);
	skua_destroy_cq(cq);
}

/* RAT-1: the extended command brings them. */
static void test_rates_are_the_kernels_to_judge(void **state)
{
	struct ibv_qp_rate_limit_attr limit = { .rate_limit = 5000, .max_burst_sz = 9000, .typical_pkt_sz = 1500 };
	struct ibv_qp_attr attr = { .rate_limit = 7000, .qp_state = IBV_QPS_RTS };
	struct ibv_qp_cap cap = { .max_send_wr = 8 };
	struct ibv_cq *cq = make_cq(8);
	struct ibv_qp *qp = make_qp(cq, cq, &cap);

	assert_int_equal(skua_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_RATE_LIMIT), 0);
	assert_int_equal(modify_mask, IBV_QP_STATE | IBV_QP_RATE_LIMIT);
	assert_int_equal(modify_rate, 7000);
	assert_int_equal(modify_req.rate_burst, 0);
	assert_int_equal(skua_modify_qp_rate_limit(qp, &limit), 0);
	assert_int_equal(modify_mask, IBV_QP_RATE_LIMIT);
	assert_int_equal(modify_rate, 5000);
	assert_int_equal(modify_req.rate_burst, 9000);
	assert_int_equal(modify_req.rate_packet, 1500);
	assert_int_equal(modify_req.ece_options, 0);
	answer = EINVAL;
	assert_int_equal(skua_modify_qp_rate_limit(qp, &limit), EINVAL);
	answer = 0;
	modify_mask = 0;
	limit.comp_mask = 1;
	assert_int_equal(skua_modify_qp_rate_limit(qp, &limit), EINVAL);
	assert_int_equal(modify_mask, 0);
	skua_destroy_qp(qp);
	skua_destroy_cq(cq);
}

/* MEM-11 */
static void test_payload_comes_in_order(void **state)
{
	static const enum ibv_wr_opcode with[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_SEND_WITH_INV,
		IBV_WR_RDMA_READ,
	};
	static const enum ibv_wr_opcode without[] = { IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_LOCAL_INV, IBV_WR_TSO, 1000 };
	struct ibv_qp_cap cap = { .max_send_wr = 8 };
	struct ibv_cq *cq = make_cq(8);
	struct ibv_qp *qp = make_qp(cq, cq, &cap);
	size_t i;

	for (i = 0; i < sizeof(with) / sizeof(with[0]); i++)
		assert_int_equal(skua_query_qp_data_in_order(qp, with[i], 1), IBV_QUERY_QP_DATA_IN_ORDER_WHOLE_MSG);
	for (i = 0; i < sizeof(without) / sizeof(without[0]); i++)
		assert_int_equal(skua_query_qp_data_in_order(qp, without[i], 1), 0);
	skua_destroy_qp(qp);
	skua_destroy_cq(cq);
}

static void to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	modify_mask = 0;
	memset(&modify_req, 0, sizeof(modify_req));
	assert_int_equal(skua_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	qp->state = state;
}

/* ECE-1: of what both have the kernel is told, on the way to RTR. */
static void test_peers_agree_on_options(void **state)
{
	struct ibv_ece ece = { .vendor_id = SKUA_PCI_VENDOR_ID, .options = 6 };
	struct ibv_qp_cap cap = { .max_send_wr = 8 };
	uint64_t features = ctx.caps.features;
	struct ibv_cq *cq = make_cq(8);
	struct ibv_qp *qp = make_qp(cq, cq, &cap), *ud;

	assert_int_equal(skua_query_ece(qp, &ece), EOPNOTSUPP);
	assert_int_equal(skua_set_ece(qp, &ece), EOPNOTSUPP);
	ctx.caps.features |= 1 << SKUA_F_ECE | 1 << SKUA_F_UD;
	ctx.caps.ece_options = 5;
	ud = make_qp_of(IBV_QPT_UD, cq, cq, &cap);
	assert_int_equal(skua_query_ece(ud, &ece), EOPNOTSUPP);
	assert_int_equal(skua_set_ece(ud, &ece), EOPNOTSUPP);
	skua_destroy_qp(ud);

	/* Nobody has agreed on anything. */
	assert_int_equal(skua_query_ece(qp, &ece), 0);
	assert_int_equal(ece.vendor_id, SKUA_PCI_VENDOR_ID);
	assert_int_equal(ece.options, 5);
	to_state(qp, IBV_QPS_RTR);
	assert_int_equal(modify_req.ece_options, 0);
	assert_int_equal(skua_set_ece(qp, &ece), EINVAL);
	to_state(qp, IBV_QPS_RESET);
	to_state(qp, IBV_QPS_INIT);
	ece.options = 6;
	assert_int_equal(skua_set_ece(qp, &ece), 0);
	assert_int_equal(ece.options, 4);
	ece = (struct ibv_ece) { .vendor_id = 1, .options = 1 };
	assert_int_equal(skua_set_ece(qp, &ece), EINVAL);
	ece = (struct ibv_ece) { .vendor_id = SKUA_PCI_VENDOR_ID, .options = 1, .comp_mask = 1 };
	assert_int_equal(skua_set_ece(qp, &ece), EINVAL);
	assert_int_equal(skua_query_ece(qp, &ece), 0);
	assert_int_equal(ece.options, 4);
	to_state(qp, IBV_QPS_RTR);
	assert_int_equal(modify_mask, IBV_QP_STATE);
	assert_int_equal(modify_req.ece_options, 4);
	to_state(qp, IBV_QPS_RTS);
	assert_int_equal(modify_mask, 0);
	to_state(qp, IBV_QPS_RESET);
	assert_int_equal(skua_query_ece(qp, &ece), 0);
	assert_int_equal(ece.options, 5);
	to_state(qp, IBV_QPS_RTR);
	assert_int_equal(modify_req.ece_options, 0);
	ctx.caps.ece_options = 0;
	ctx.caps.features = features;
	skua_destroy_qp(qp);
	skua_destroy_cq(cq);
}

/*
 * A thread destroys a QP while it holds one of its completions: there is no lock to wait for, what
 * it holds stays as it is, and it goes on with those of others.
 */
static void destroy_between_start_and_end(bool single)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 4, .wc_flags = IBV_WC_STANDARD_FLAGS, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = single ? IBV_CREATE_CQ_ATTR_SINGLE_THREADED : 0,
	};
	struct ibv_cq_ex *cq_ex = skua_create_cq_ex(&ctx.vctx.context, &attr);
	struct ibv_cq *cq = ibv_cq_ex_to_cq(cq_ex);
	struct ibv_qp_cap cap = { .max_send_wr = 8 };
	struct ibv_poll_cq_attr poll = {};
	struct fake_cq dev = device_of(cq);
	struct ibv_qp *gone = make_qp(cq, cq, &cap);
	struct ibv_qp *stays = make_qp(cq, cq, &cap);

	stays->qp_num = 0x66;
	complete(&dev, gone, SKUA_CQE_WRITE);
	complete(&dev, gone, SKUA_CQE_SEND);
	complete(&dev, stays, SKUA_CQE_READ);
	assert_int_equal(ibv_start_poll(cq_ex, &poll), 0);
	assert_int_equal(skua_destroy_qp(gone), 0);
	assert_int_equal(ibv_wc_read_opcode(cq_ex), IBV_WC_RDMA_WRITE);
	assert_int_equal(ibv_wc_read_qp_num(cq_ex), 0x55);
	assert_int_equal(ibv_next_poll(cq_ex), 0);
	assert_int_equal(ibv_wc_read_opcode(cq_ex), IBV_WC_RDMA_READ);
	assert_int_equal(ibv_next_poll(cq_ex), ENOENT);
	ibv_end_poll(cq_ex);
	assert_int_equal(le32toh(dev.dbr->ci), 3);
	assert_int_equal(ibv_start_poll(cq_ex, &poll), ENOENT);
	skua_destroy_qp(stays);
	skua_destroy_cq(cq);
}

static void test_destroy_between_start_and_end_of_polling(void **state)
{
	destroy_between_start_and_end(false);
	destroy_between_start_and_end(true);
}

/*
 * Each thread destroys a QP of both CQs while it polls one of them: neither waits for what the other
 * holds until it is done.
 */
static struct ibv_cq_ex *crossed[2];
static struct ibv_qp *crossed_qp[2];
static pthread_barrier_t both_poll;

static void *destroy_across(void *arg)
{
	struct ibv_poll_cq_attr poll = {};
	uintptr_t i = (uintptr_t)arg;

	assert_int_equal(ibv_start_poll(crossed[i], &poll), 0);
	pthread_barrier_wait(&both_poll);
	assert_int_equal(skua_destroy_qp(crossed_qp[i]), 0);
	pthread_barrier_wait(&both_poll);
	ibv_end_poll(crossed[i]);
	return NULL;
}

static void test_destroys_across_cqs_that_are_polled(void **state)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 4, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_qp_cap cap = { .max_send_wr = 8, .max_recv_wr = 8 };
	struct timespec end;
	pthread_t thread[2];
	uintptr_t i;

	pthread_barrier_init(&both_poll, NULL, 2);
	for (i = 0; i < 2; i++)
		crossed[i] = skua_create_cq_ex(&ctx.vctx.context, &attr);
	for (i = 0; i < 2; i++) {
		struct fake_cq dev = device_of(ibv_cq_ex_to_cq(crossed[i]));

		crossed_qp[i] = make_qp(ibv_cq_ex_to_cq(crossed[i]), ibv_cq_ex_to_cq(crossed[!i]), &cap);
		complete(&dev, crossed_qp[i], SKUA_CQE_SEND);
	}
	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, destroy_across, (void *)i), 0);
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += 20;
	for (i = 0; i < 2; i++)
		if (pthread_timedjoin_np(thread[i], NULL, &end)) {
			print_error("they wait for each other\n");
			_exit(1);	/* what they use cannot be freed */
		}
	for (i = 0; i < 2; i++)
		skua_destroy_cq(ibv_cq_ex_to_cq(crossed[i]));
	pthread_barrier_destroy(&both_poll);
}

/* Parent domains */

static struct ibv_pd *make_domain(struct ibv_pd *of, struct ibv_td *td)
{
	struct ibv_parent_domain_init_attr attr = { .pd = of, .td = td };

	return skua_alloc_parent_domain(&ctx.vctx.context, &attr);
}

static void test_a_parent_domain_is_its_pd(void **state)
{
	struct ibv_pd *real = skua_alloc_pd(&ctx.vctx.context);
	struct ibv_pd *domain = make_domain(real, NULL);

	assert_int_equal(domain->handle, 33);
	errno = 0;
	assert_int_equal(skua_dealloc_pd(real), EBUSY);
	assert_int_equal(errno, EBUSY);		/* as when the kernel refuses */
	assert_int_equal(skua_dealloc_pd(domain), 0);
	assert_int_equal(skua_dealloc_pd(real), 0);
}

static void test_parent_domains_that_cannot_be(void **state)
{
	struct ibv_context other = {};
	struct ibv_td strange_td = { .context = &other };
	struct ibv_pd *domain = make_domain(&pd.ibv_pd, NULL);
	struct ibv_parent_domain_init_attr unknown = { .pd = &pd.ibv_pd, .comp_mask = 1 << 9 };
	struct ibv_parent_domain_init_attr half = {
		.pd = &pd.ibv_pd, .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS,
	};
	struct ibv_td_init_attr td_attr = { .comp_mask = 1 };

	assert_null(make_domain(NULL, NULL));
	assert_int_equal(errno, EINVAL);
	assert_null(make_domain(domain, NULL));
	assert_int_equal(errno, EINVAL);
	assert_null(make_domain(&pd.ibv_pd, &strange_td));
	assert_int_equal(errno, EINVAL);
	assert_null(skua_alloc_parent_domain(&ctx.vctx.context, &half));
	assert_int_equal(errno, EINVAL);
	assert_null(skua_alloc_parent_domain(&ctx.vctx.context, &unknown));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(skua_alloc_td(&ctx.vctx.context, &td_attr));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(skua_dealloc_pd(domain), 0);
}

/* Queues of a thread domain are used while somebody holds their locks: nobody looks at them. */
static void test_a_thread_domain_drops_locks(void **state)
{
	struct ibv_td_init_attr td_attr = {};
	struct ibv_td *td = skua_alloc_td(&ctx.vctx.context, &td_attr);
	struct ibv_pd *domain = make_domain(&pd.ibv_pd, td);
	struct ibv_cq_init_attr_ex cq_attr = {
		.cqe = 4, .wc_flags = IBV_WC_STANDARD_FLAGS, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
		.parent_domain = domain,
	};
	struct ibv_cq_ex *cq_ex = skua_create_cq_ex(&ctx.vctx.context, &cq_attr);
	struct ibv_cq *cq = ibv_cq_ex_to_cq(cq_ex);
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8 },
	};
	struct ibv_qp *qp = skua_create_qp(domain, &attr);
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad_send;
	struct ibv_recv_wr rwr = {}, *bad_recv;
	struct ibv_wc wc;

	errno = 0;
	assert_int_equal(skua_dealloc_td(td), EBUSY);
	assert_int_equal(errno, EBUSY);
	assert_int_equal(skua_dealloc_pd(domain), EBUSY);
	to_skua_qp(qp)->sq_lock.held = true;
	to_skua_qp(qp)->rq_lock.held = true;
	to_skua_cq(cq)->lock.held = true;
	qp->state = IBV_QPS_RTS;
	assert_int_equal(skua_post_send(qp, &wr, &bad_send), 0);
	assert_int_equal(skua_post_recv(qp, &rwr, &bad_recv), 0);
	assert_int_equal(skua_poll_cq(cq, 1, &wc), 0);
	assert_int_equal(skua_destroy_qp(qp), 0);
	assert_int_equal(skua_destroy_cq(cq), 0);
	assert_int_equal(skua_dealloc_pd(domain), 0);
	assert_int_equal(skua_dealloc_td(td), 0);

	/* Others have them. */
	cq = make_cq(4);
	assert_true(to_skua_cq(cq)->lock.needed);
	attr.send_cq = cq;
	attr.recv_cq = cq;
	qp = skua_create_qp(&pd.ibv_pd, &attr);
	assert_true(to_skua_qp(qp)->sq_lock.needed && to_skua_qp(qp)->rq_lock.needed);
	skua_destroy_qp(qp);
	skua_destroy_cq(cq);
}

static struct ibv_cq_ex *make_cq_of(struct ibv_pd *domain)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = domain,
	};

	return skua_create_cq_ex(&ctx.vctx.context, &attr);
}

static void test_a_cq_takes_a_parent_domain_only(void **state)
{
	struct ibv_context other = {};
	struct skua_pd strange = { .ibv_pd.context = &other, .contained = &pd, .users = 1 };

	assert_null(make_cq_of(NULL));
	assert_int_equal(errno, EINVAL);
	assert_null(make_cq_of(&pd.ibv_pd));
	assert_int_equal(errno, EINVAL);
	assert_null(make_cq_of(&strange.ibv_pd));
	assert_int_equal(errno, EINVAL);
}

/* So nobody frees what it needs: the thread domain, and the allocator. */
static void test_a_cq_holds_its_parent_domain(void **state)
{
	struct ibv_td_init_attr td_attr = {};
	struct ibv_td *td = skua_alloc_td(&ctx.vctx.context, &td_attr);
	struct ibv_pd *domain = make_domain(&pd.ibv_pd, td);
	struct ibv_cq_ex *cq_ex = make_cq_of(domain);

	assert_int_equal(skua_dealloc_pd(domain), EBUSY);
	assert_int_equal(skua_dealloc_td(td), EBUSY);
	assert_int_equal(skua_destroy_cq(ibv_cq_ex_to_cq(cq_ex)), 0);
	answer = ENOMEM;
	assert_null(make_cq_of(domain));
	answer = 0;
	assert_int_equal(skua_dealloc_pd(domain), 0);
	assert_int_equal(skua_dealloc_td(td), 0);
}

static void test_pds_that_cannot_be_imported(void **state)
{
	assert_null(skua_import_pd(&ctx.vctx.context, 34));
	assert_int_equal(errno, ENOENT);
}

/* ibv_unimport_pd() cannot fail, so what is made with the PD keeps it. */
static void test_unimported_pds_live_as_long_as_their_qps(void **state)
{
	struct ibv_pd *imported = skua_import_pd(&ctx.vctx.context, 33);
	struct ibv_pd *domain = make_domain(imported, NULL);
	struct ibv_cq *cq = make_cq(16);
	struct ibv_qp_init_attr attr = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC };
	struct ibv_qp *qp = skua_create_qp(imported, &attr), *qp_of_domain;

	attr.cap.max_recv_wr = 4;
	qp_of_domain = skua_create_qp(domain, &attr);
	assert_int_equal(skua_dealloc_pd(imported), EBUSY);
	skua_unimport_pd(imported);
	skua_unimport_pd(domain);
	assert_int_equal(skua_destroy_qp(qp), 0);
	assert_int_equal(skua_destroy_qp(qp_of_domain), 0);
	skua_destroy_cq(cq);
}

static unsigned int allocated, freed;
static void *allocation;

static void *domain_alloc(struct ibv_pd *domain, void *context, size_t size, size_t alignment,
			  uint64_t resource_type)
{
	assert_ptr_equal(context, &allocated);
	assert_int_equal(size % alignment, 0);
	assert_int_equal(alignment, 4096);
	allocated++;
	if (allocation == IBV_ALLOCATOR_USE_DEFAULT || !allocation)
		return allocation;
	allocation = aligned_alloc(alignment, size);
	memset(allocation, 0xff, size);
	return allocation;
}

static void domain_free(struct ibv_pd *domain, void *context, void *addr, uint64_t resource_type)
{
	assert_ptr_equal(addr, allocation);
	free(addr);
	freed++;
}

static void test_allocators_of_a_parent_domain(void **state)
{
	struct ibv_parent_domain_init_attr attr = {
		.pd = &pd.ibv_pd, .alloc = domain_alloc, .free = domain_free, .pd_context = &allocated,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
	};
	struct ibv_pd *domain = skua_alloc_parent_domain(&ctx.vctx.context, &attr);
	struct ibv_cq *cq = make_cq(16);
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = { .max_send_wr = 8 },
	};
	struct ibv_cq_ex *cq_ex;
	struct ibv_qp *qp;

	allocation = &allocated;		/* its own */
	qp = skua_create_qp(domain, &init);
	assert_non_null(qp);
	assert_int_equal(qp_req.sq_addr, (uintptr_t)allocation);
	assert_int_equal(to_skua_qp(qp)->sq.dbr->pi, 0);
	assert_int_equal(skua_destroy_qp(qp), 0);
	assert_int_equal(allocated, 1);
	assert_int_equal(freed, 1);

	allocation = &allocated;
	cq_ex = make_cq_of(domain);
	assert_int_equal(cq_req.buf_addr, (uintptr_t)allocation);
	assert_int_equal(skua_destroy_cq(ibv_cq_ex_to_cq(cq_ex)), 0);
	assert_int_equal(allocated, 2);
	assert_int_equal(freed, 2);

	allocation = NULL;
	assert_null(skua_create_qp(domain, &init));
	assert_int_equal(errno, ENOMEM);
	assert_null(make_cq_of(domain));
	assert_int_equal(errno, ENOMEM);

	allocation = IBV_ALLOCATOR_USE_DEFAULT;
	qp = skua_create_qp(domain, &init);
	assert_non_null(qp);
	assert_int_equal(skua_destroy_qp(qp), 0);
	assert_int_equal(freed, 2);
	assert_int_equal(skua_dealloc_pd(domain), 0);
	skua_destroy_cq(cq);
}

/* The heap gives what others have left; a CQE of theirs would be one of ours. */
static void test_rings_begin_empty(void **state)
{
	for (int i = 0; i < 8; i++) {
		struct ibv_cq *cq = make_cq(1000);
		struct skua_buf *buf = &to_skua_cq(cq)->buf;
		uint8_t *bytes = buf->addr;

		assert_int_equal((uintptr_t)bytes % 4096, 0);
		assert_int_equal(buf->size % 4096, 0);
		for (size_t at = 0; at < buf->size; at++)
			assert_int_equal(bytes[at], 0);
		memset(bytes, 0xff, buf->size);
		skua_destroy_cq(cq);
	}
}

/* What a region may be is the kernel's to say: windows may be asked for, and no bytes at all. */
static void test_every_region_is_the_kernels_to_judge(void **state)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |
			   IBV_ACCESS_RELAXED_ORDERING;
	struct ibv_mr *mr = skua_reg_mr(&pd.ibv_pd, &info, 0, 0x1234, access);

	assert_non_null(mr);
	assert_ptr_equal(mr_req.addr, &info);
	assert_int_equal(mr_req.length, 0);
	assert_int_equal(mr_req.hca_va, 0x1234);
	assert_int_equal(mr_req.access, access);
	answer = EBUSY;
	assert_int_equal(skua_dereg_mr(verbs_get_mr(mr)), EBUSY);
	answer = 0;
	assert_int_equal(skua_dereg_mr(verbs_get_mr(mr)), 0);

	answer = EINVAL;
	assert_null(skua_reg_mr(&pd.ibv_pd, NULL, 1, 0, 0));
	assert_int_equal(errno, EINVAL);
}

/* A dma-buf's, too: what there is of a descriptor, only the kernel knows. */
static void test_a_dmabuf_is_the_kernels_to_judge(void **state)
{
	struct ibv_mr *mr = skua_reg_dmabuf_mr(&pd.ibv_pd, 0x3100, 0x5000, 0x7100, 9, IBV_ACCESS_LOCAL_WRITE);

	assert_non_null(mr);
	assert_int_equal(verbs_get_mr(mr)->mr_type, IBV_MR_TYPE_DMABUF_MR);
	assert_ptr_equal(dmabuf_req.pd, &pd.ibv_pd);
	assert_int_equal(dmabuf_req.offset, 0x3100);
	assert_int_equal(dmabuf_req.length, 0x5000);
	assert_int_equal(dmabuf_req.iova, 0x7100);
	assert_int_equal(dmabuf_req.fd, 9);
	assert_int_equal(dmabuf_req.access, IBV_ACCESS_LOCAL_WRITE);
	assert_int_equal(skua_dereg_mr(verbs_get_mr(mr)), 0);
	answer = EBADF;
	assert_null(skua_reg_dmabuf_mr(&pd.ibv_pd, 0, 0, 0, -1, 0));
	assert_int_equal(errno, EBADF);
	assert_int_equal(dmabuf_req.fd, -1);
	answer = 0;
}

/* So is what becomes of one. Its address is the program's. */
static void test_regions_change(void **state)
{
	struct ibv_mr *mr = skua_reg_mr(&pd.ibv_pd, &info, 8, 0x1234, 0);

	assert_int_equal(skua_rereg_mr(verbs_get_mr(mr), 7, &pd.ibv_pd, db_page, 64, IBV_ACCESS_REMOTE_READ), 0);
	assert_ptr_equal(rereg_req.vmr, verbs_get_mr(mr));
	assert_int_equal(rereg_req.flags, 7);
	assert_ptr_equal(rereg_req.addr, db_page);
	assert_int_equal(rereg_req.hca_va, (uintptr_t)db_page);
	assert_int_equal(rereg_req.length, 64);
	assert_int_equal(rereg_req.access, IBV_ACCESS_REMOTE_READ);
	assert_ptr_equal(rereg_req.pd, &pd.ibv_pd);
	answer = EBUSY;
	assert_int_equal(skua_rereg_mr(verbs_get_mr(mr), 2, NULL, NULL, 0, 0), EBUSY);
	answer = 0;
	assert_int_equal(skua_dereg_mr(verbs_get_mr(mr)), 0);
}

/* So are all addresses on demand, and what is known of them before. */
static void test_memory_on_demand_is_the_kernels(void **state)
{
	struct ibv_mr *mr = skua_reg_mr(&pd.ibv_pd, NULL, SIZE_MAX, 0, IBV_ACCESS_ON_DEMAND);
	struct ibv_sge sge[3];

	assert_non_null(mr);
	assert_null(mr_req.addr);
	assert_true(mr_req.length == SIZE_MAX);
	assert_int_equal(mr_req.access, IBV_ACCESS_ON_DEMAND);
	assert_int_equal(skua_dereg_mr(verbs_get_mr(mr)), 0);

	assert_int_equal(skua_advise_mr(&pd.ibv_pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH, sge, 3), 0);
	assert_int_equal(advice_req.advice, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE);
	assert_int_equal(advice_req.flags, IBV_ADVISE_MR_FLAG_FLUSH);
	assert_ptr_equal(advice_req.sg_list, sge);
	assert_int_equal(advice_req.num_sge, 3);
	answer = EPERM;
	assert_int_equal(skua_advise_mr(&pd.ibv_pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, sge, 1), EPERM);
	answer = 0;
}

static void test_notify_rings_over_a_cqe(void **state)
{
	struct ibv_qp_cap cap = { .max_send_wr = 8 };
	struct ibv_cq *cq = make_cq(8);
	struct fake_cq dev = device_of(cq);
	struct ibv_qp *qp = make_qp(cq, cq, &cap);

	memset(db_page, 0, sizeof(db_page));
	assert_int_equal(skua_req_notify_cq(cq, 0), 0);
	assert_int_equal(db_page[SKUA_DB_CQ_ARM / 8], 0);
	complete(&dev, qp, SKUA_CQE_SEND);
	assert_true(fake_cq_evaluate(&dev));
	skua_cq_event(cq);
	assert_int_equal(skua_req_notify_cq(cq, 1), 0);
	assert_int_equal(le64toh(db_page[SKUA_DB_CQ_ARM / 8]), SKUA_DB(7, 0));
	skua_destroy_qp(qp);
	skua_destroy_cq(cq);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_cq_is_a_power_of_two),
		T(test_cq_limits),
		T(test_cq_takes_another_ring),
		T(test_cq_ex_refuses_what_it_cannot),
		T(test_as_many_wrs_of_any_size),
		T(test_qp_holds_what_its_capacities_say),
		T(test_types_come_with_features),
		T(test_ah),
		T(test_qp_tells_where_its_memory_is),
		T(test_a_small_qp_takes_a_page),
		T(test_qp_without_queues),
		T(test_qp_limits),
		T(test_a_qp_takes_no_more_than_it_said),
		T(test_an_xrc_recv_qp_has_no_queues),
		T(test_a_qp_that_another_made),
		T(test_a_domain_is_opened_and_closed),
		T(test_an_xrc_send_qp_takes_no_more_than_it_said),
		T(test_a_raw_packet_qp),
		T(test_a_raw_packet_qp_with_tso),
		T(test_flows_are_the_kernels),
		T(test_a_wq_receives),
		T(test_a_qp_that_spreads),
		T(test_an_xrc_srq),
		T(test_qp_ex),
		T(test_destroy_takes_the_cqes_along),
		T(test_destroy_that_fails_takes_nothing),
		T(test_reset_begins_anew),
		T(test_query_tells_the_real_capacities),
		T(test_rates_are_the_kernels_to_judge),
		T(test_peers_agree_on_options),
		T(test_payload_comes_in_order),
		T(test_destroy_between_start_and_end_of_polling),
		T(test_destroys_across_cqs_that_are_polled),
		T(test_a_parent_domain_is_its_pd),
		T(test_parent_domains_that_cannot_be),
		T(test_a_thread_domain_drops_locks),
		T(test_a_cq_takes_a_parent_domain_only),
		T(test_a_cq_holds_its_parent_domain),
		T(test_pds_that_cannot_be_imported),
		T(test_unimported_pds_live_as_long_as_their_qps),
		T(test_allocators_of_a_parent_domain),
		T(test_rings_begin_empty),
		T(test_every_region_is_the_kernels_to_judge),
		T(test_a_dmabuf_is_the_kernels_to_judge),
		T(test_regions_change),
		T(test_memory_on_demand_is_the_kernels),
		T(test_notify_rings_over_a_cqe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
