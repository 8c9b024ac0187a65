// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Rings of CQs and QPs as buffer attributes, which Linux 7.2 has: user memory or a dma-buf, apart from the addresses in
 * the driver's part, which point to decoys here. libibverbs does not use them yet.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include "kselftest_harness.h"
#include "dmabuf.h"
#include "pair.h"
#include "raw.h"
#include "rows.h"

#include <skua/cqe.h>
#include <skua/doorbell.h>
#include <skua/wqe.h>

#define PAGE		4096u
/* Numbers that the headers of an older kernel lack. */
#define CQ_BUF_UMEM	12
#define QP_BUF_UMEM	15
#define QP_RQ_BUF_UMEM	16
#define QP_SQ_BUF_UMEM	17
#define TYPE_DMABUF	0
#define TYPE_VA		1

struct buffer_desc {
	uint32_t type;
	int32_t fd;
	uint32_t flags, optional_flags;
	uint64_t addr, length;
};

struct call {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attrs[16];
};

static void add(struct call *call, uint16_t id, const void *data, uint16_t len, bool out)
{
	struct ib_uverbs_attr *attr = &call->attrs[call->hdr.num_attrs++];

	*attr = (struct ib_uverbs_attr){ .attr_id = id, .len = len, .flags = UVERBS_ATTR_F_MANDATORY };
	if (len <= sizeof(attr->data) && !out)
		memcpy(&attr->data, data, len);
	else
		attr->data = (uintptr_t)data;
}

static void add_object(struct call *call, uint16_t id, uint32_t handle)
{
	call->attrs[call->hdr.num_attrs++] = (struct ib_uverbs_attr){
		.attr_id = id, .flags = UVERBS_ATTR_F_MANDATORY, .data = handle,
	};
}

static int run(int fd, struct call *call)
{
	call->hdr.length = (uint16_t)(sizeof(call->hdr) + call->hdr.num_attrs * sizeof(call->attrs[0]));
	return ioctl(fd, RDMA_VERBS_IOCTL, call) ? errno : 0;
}

FIXTURE(buffers) {
	struct side s[2];
	int fd;
	uint32_t pd;
	uint8_t *mem;		/* pages: CQ, SQ, RQ, records, and a decoy of each ring */
	uint32_t cq;
};

FIXTURE_SETUP(buffers)
{
	ASSERT_EQ(0, pair_open(self->s));
	self->fd = raw_open("skua_0", NULL);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, raw_alloc_pd(self->fd, &self->pd));
	self->mem = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->mem);
}

FIXTURE_TEARDOWN(buffers)
{
	EXPECT_EQ(0, raw_dealloc_pd(self->fd, self->pd));
	EXPECT_EQ(0, close(self->fd));
	munmap(self->mem, 8 * PAGE);
	EXPECT_TRUE(pair_transfer(self->s));
	pair_close(self->s);
}

#define PLACE(page)	((uintptr_t)self->mem + (page) * PAGE)
#define VA(page)	((struct buffer_desc){ .type = TYPE_VA, .addr = PLACE(page), .length = PAGE })
#define RECORDS		PLACE(3)

static int create_cq(int fd, const struct skua_create_cq_req *req, const struct buffer_desc *buffer, uint32_t *handle)
{
	struct call call = { .hdr = { .object_id = UVERBS_OBJECT_CQ, .method_id = UVERBS_METHOD_CQ_CREATE } };
	const uint32_t cqe = 64, zero = 0;
	const uint64_t user_handle = 7;
	struct skua_create_cq_resp resp;
	uint32_t made;
	int err;

	add_object(&call, UVERBS_ATTR_CREATE_CQ_HANDLE, 0);
	add(&call, UVERBS_ATTR_CREATE_CQ_CQE, &cqe, sizeof(cqe), false);
	add(&call, UVERBS_ATTR_CREATE_CQ_USER_HANDLE, &user_handle, sizeof(user_handle), false);
	add(&call, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, &zero, sizeof(zero), false);
	add(&call, UVERBS_ATTR_CREATE_CQ_RESP_CQE, &made, sizeof(made), true);
	add(&call, UVERBS_ATTR_UHW_IN, req, sizeof(*req), false);
	add(&call, UVERBS_ATTR_UHW_OUT, &resp, sizeof(resp), true);
	if (buffer)
		add(&call, CQ_BUF_UMEM, buffer, sizeof(*buffer), false);
	err = run(fd, &call);
	*handle = (uint32_t)call.attrs[0].data;
	return err;
}

/* @combined: one buffer for both. */
static int create_qp(int fd, uint32_t pd, uint32_t cq, const struct skua_create_qp_req *req,
		     const struct buffer_desc *sq, const struct buffer_desc *rq, const struct buffer_desc *combined,
		     uint32_t *handle)
{
	struct call call = { .hdr = { .object_id = UVERBS_OBJECT_QP, .method_id = UVERBS_METHOD_QP_CREATE } };
	struct ib_uverbs_qp_cap cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 }, made;
	const uint64_t user_handle = 7, type = IB_UVERBS_QPT_RC;
	struct skua_create_qp_resp resp;
	const uint32_t flags = 0;
	uint32_t qpn;
	int err;

	add_object(&call, UVERBS_ATTR_CREATE_QP_HANDLE, 0);
	add_object(&call, UVERBS_ATTR_CREATE_QP_PD_HANDLE, pd);
	add_object(&call, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, cq);
	add_object(&call, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, cq);
	add(&call, UVERBS_ATTR_CREATE_QP_USER_HANDLE, &user_handle, sizeof(user_handle), false);
	add(&call, UVERBS_ATTR_CREATE_QP_CAP, &cap, sizeof(cap), false);
	add(&call, UVERBS_ATTR_CREATE_QP_TYPE, &type, sizeof(type), false);
	add(&call, UVERBS_ATTR_CREATE_QP_FLAGS, &flags, sizeof(flags), false);
	add(&call, UVERBS_ATTR_CREATE_QP_RESP_CAP, &made, sizeof(made), true);
	add(&call, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, &qpn, sizeof(qpn), true);
	add(&call, UVERBS_ATTR_UHW_IN, req, sizeof(*req), false);
	add(&call, UVERBS_ATTR_UHW_OUT, &resp, sizeof(resp), true);
	if (sq)
		add(&call, QP_SQ_BUF_UMEM, sq, sizeof(*sq), false);
	if (rq)
		add(&call, QP_RQ_BUF_UMEM, rq, sizeof(*rq), false);
	if (combined)
		add(&call, QP_BUF_UMEM, combined, sizeof(*combined), false);
	err = run(fd, &call);
	*handle = (uint32_t)call.attrs[0].data;
	return err;
}

static int to_state(int fd, uint32_t qp, enum ibv_qp_state state)
{
	struct ib_uverbs_modify_qp cmd = { .qp_handle = qp, .attr_mask = IBV_QP_STATE, .qp_state = (uint8_t)state };

	if (state == IBV_QPS_INIT) {
		cmd.attr_mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
		cmd.port_num = 1;
	}
	return raw_write(fd, IB_USER_VERBS_CMD_MODIFY_QP, &cmd, sizeof(cmd), NULL, 0, 0);
}

/* A CQE of the first pass that is there within some seconds. */
static bool await(const volatile struct skua_cqe *cqe)
{
	for (int i = 0; i < 20000 && !(cqe->flags & SKUA_CQE_PHASE); i++)
		usleep(1000);
	return cqe->flags & SKUA_CQE_PHASE;
}

/*
 * What stands in the buffers @buf of SQ and RQ is flushed, into that of the CQ; nobody looks at the decoys. @mem is where
 * the program sees the buffers: CQ, SQ and RQ, a page each.
 */
static void flush_by(struct __test_metadata *_metadata, FIXTURE_DATA(buffers) *self, const struct buffer_desc buf[3],
		     uint8_t *mem)
{
	struct skua_create_cq_req cq_req = { .buf_addr = PLACE(4), .dbr_addr = RECORDS, .log_size = 6 };
	struct skua_create_qp_req qp_req = {
		.sq_addr = PLACE(5), .rq_addr = PLACE(6), .sq_dbr_addr = RECORDS + 64, .rq_dbr_addr = RECORDS + 128,
		.qp_handle = 99, .log_sq_blocks = 6, .log_rq_size = 6, .log_rq_stride = 6,
	};
	struct skua_cqe *cqes = (void *)mem;
	struct skua_wqe_ctrl *wqe = (void *)(mem + PAGE);
	struct skua_rqe *rqe = (void *)(mem + 2 * PAGE);
	struct skua_dbr *dbrs = (void *)RECORDS;
	static const uint8_t zero[3 * PAGE];
	uint32_t cq, qp;

	ASSERT_EQ(0, create_cq(self->fd, &cq_req, &buf[0], &cq));
	ASSERT_EQ(0, create_qp(self->fd, self->pd, cq, &qp_req, &buf[1], &buf[2], NULL, &qp));
	ASSERT_EQ(0, to_state(self->fd, qp, IBV_QPS_INIT));
	*wqe = (struct skua_wqe_ctrl){ .opcode = SKUA_WQE_NOP, .nblocks = 1, .cookie = 0x1111 };
	*rqe = (struct skua_rqe){ .cookie = 0x2222 };
	__atomic_store_n(&dbrs[1].pi, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&dbrs[2].pi, 1, __ATOMIC_RELEASE);
	ASSERT_EQ(0, to_state(self->fd, qp, IBV_QPS_ERR));
	ASSERT_TRUE(await(&cqes[0]));
	ASSERT_TRUE(await(&cqes[1]));
	EXPECT_EQ(0x3333, cqes[0].cookie + cqes[1].cookie);
	EXPECT_EQ(SKUA_CQE_WR_FLUSH_ERR, cqes[0].status);
	EXPECT_EQ(SKUA_CQE_WR_FLUSH_ERR, cqes[1].status);
	EXPECT_EQ(99, cqes[0].qp_handle);
	EXPECT_EQ(0, memcmp((void *)PLACE(4), zero, sizeof(zero)));
	EXPECT_EQ(0, raw_destroy_qp(self->fd, qp));
	EXPECT_EQ(0, raw_destroy_cq(self->fd, cq));
}

TEST_F(buffers, rings)
{
	const struct buffer_desc buf[] = { VA(0), VA(1), VA(2) };

	flush_by(_metadata, self, buf, self->mem);
}

/* Of one dma-buf. */
TEST_F(buffers, rings_of_a_dma_buf)
{
	const int fd = export_buffer(3 * PAGE, 0, 0);
	struct buffer_desc buf[3];
	uint8_t *mem;

	ASSERT_LE(0, fd);
	mem = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, mem);
	for (int i = 0; i < 3; i++)
		buf[i] = (struct buffer_desc){ .type = TYPE_DMABUF, .fd = fd, .addr = i * PAGE, .length = PAGE };
	flush_by(_metadata, self, buf, mem);
	ASSERT_EQ(0, munmap(mem, 3 * PAGE));
	ASSERT_EQ(0, close(fd));
	EXPECT_TRUE(none_exported());
}

TEST_F(buffers, bad_cqs)
{
	const struct skua_create_cq_req req = { .buf_addr = PLACE(4), .dbr_addr = RECORDS, .log_size = 6 };
	const struct {
		const char *name;
		struct buffer_desc buffer;
		int err;
	} rows[] = {
		{ "right", VA(0), 0 },
		{ "a CQE too short", { .type = TYPE_VA, .addr = PLACE(0), .length = PAGE - 64 }, EINVAL },
		{ "a page too long", { .type = TYPE_VA, .addr = PLACE(0), .length = 2 * PAGE }, EINVAL },
		{ "not aligned", { .type = TYPE_VA, .addr = PLACE(0) + 32, .length = PAGE }, EINVAL },
		{ "no memory", { .type = TYPE_VA, .addr = PAGE, .length = PAGE }, EFAULT },
		{ "of no type", { .type = 77, .addr = PLACE(0), .length = PAGE }, EINVAL },
		{ "of unknown flags", { .type = TYPE_VA, .flags = 1, .addr = PLACE(0), .length = PAGE }, EINVAL },
		{ "no dma-buf", { .type = TYPE_DMABUF, .fd = -1, .length = PAGE }, EBADF },
	};
	uint32_t cq;

	for EACH(row, rows) {
		int err = create_cq(self->fd, &req, &row->buffer, &cq);

		if (!err)
			ASSERT_EQ(0, raw_destroy_cq(self->fd, cq));
		GAVE(row->err, err, row);
	}
}

TEST_F(buffers, bad_qps)
{
	const struct skua_create_cq_req cq_req = { .buf_addr = PLACE(0), .dbr_addr = RECORDS, .log_size = 6 };
	const struct skua_create_qp_req both = {
		.sq_addr = PLACE(5), .rq_addr = PLACE(6), .sq_dbr_addr = RECORDS + 64, .rq_dbr_addr = RECORDS + 128,
		.log_sq_blocks = 6, .log_rq_size = 6, .log_rq_stride = 6,
	}, none = { .flags = SKUA_CREATE_QP_NO_SQ | SKUA_CREATE_QP_NO_RQ };
	const struct buffer_desc right = VA(1), other = VA(2);
	const struct buffer_desc odd = { .type = TYPE_VA, .addr = PLACE(1) + 32, .length = PAGE };
	const struct buffer_desc small = { .type = TYPE_VA, .addr = PLACE(1), .length = PAGE - 64 };
	const struct {
		const char *name;
		const struct skua_create_qp_req *req;
		const struct buffer_desc *sq, *rq, *combined;
		int err;
	} rows[] = {
		{ "right", &both, &right, &other, NULL, 0 },
		{ "the SQ only", &both, &right, NULL, NULL, 0 },
		{ "the RQ only", &both, NULL, &right, NULL, 0 },
		{ "an SQ that is not aligned", &both, &odd, &other, NULL, EINVAL },
		{ "an RQ that is not aligned", &both, &right, &odd, NULL, EINVAL },
		{ "a short SQ", &both, &small, &other, NULL, EINVAL },
		{ "a short RQ", &both, &right, &small, NULL, EINVAL },
		{ "an SQ that there is not", &none, &right, NULL, NULL, EINVAL },
		{ "an RQ that there is not", &none, NULL, &right, NULL, EINVAL },
		{ "one buffer for both", &both, NULL, NULL, &right, EOPNOTSUPP },
	};
	uint32_t cq, qp;

	ASSERT_EQ(0, create_cq(self->fd, &cq_req, NULL, &cq));
	for EACH(row, rows) {
		int err = create_qp(self->fd, self->pd, cq, row->req, row->sq, row->rq, row->combined, &qp);

		if (!err)
			ASSERT_EQ(0, raw_destroy_qp(self->fd, qp));
		GAVE(row->err, err, row);
	}
	EXPECT_EQ(0, raw_destroy_cq(self->fd, cq));
}

/* Of a dma-buf; its exporter gets it back. */
TEST_F(buffers, dma_bufs)
{
	const struct skua_create_cq_req req = { .dbr_addr = RECORDS, .log_size = 6 };
	struct buffer_desc buffer = { .type = TYPE_DMABUF, .fd = export_buffer(4 * PAGE, 0, 0), .addr = PAGE, .length = PAGE };
	uint32_t cq;

	ASSERT_LE(0, buffer.fd);
	ASSERT_EQ(0, create_cq(self->fd, &req, &buffer, &cq));
	EXPECT_EQ(0, raw_destroy_cq(self->fd, cq));
	buffer.addr = PAGE + 8;
	EXPECT_EQ(EINVAL, create_cq(self->fd, &req, &buffer, &cq));
	buffer.addr = 4 * PAGE;
	EXPECT_EQ(EINVAL, create_cq(self->fd, &req, &buffer, &cq));
	EXPECT_EQ(0, close(buffer.fd));
	EXPECT_TRUE(none_exported());
}

TEST_HARNESS_MAIN
