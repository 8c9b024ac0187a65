// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Raw uverbs commands with wrong arguments: the driver's part of them too short, too long or not
 * zero, queues and records that cannot be, responses that cannot be written. (Handles: test_bad_handles.c.) After
 * each, this process transfers data over a pair of QPs that the provider made.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pair.h"
#include "raw.h"
#include "rows.h"

FIXTURE(commands) {
	struct side s[2];
	int fd;
	struct skua_alloc_ucontext_resp limits;
	uint8_t *mem;			/* queues; the last page: records */
	uint32_t pd, cq;
};

#define RAW_MEM (1 << 20)
#define RECORDS ((uintptr_t)self->mem + RAW_MEM - 4096)

FIXTURE_SETUP(commands)
{
	struct skua_create_cq_req req;

	ASSERT_EQ(0, pair_open(self->s));
	self->fd = raw_open("skua_0", &self->limits);
	ASSERT_GE(self->fd, 0);
	self->mem = mmap(NULL, RAW_MEM, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->mem);
	ASSERT_EQ(0, raw_alloc_pd(self->fd, &self->pd));
	req = (struct skua_create_cq_req){ (uintptr_t)self->mem, RECORDS };
	ASSERT_EQ(0, raw_create_cq(self->fd, 1, &req, sizeof(req), &self->cq));
}

FIXTURE_TEARDOWN(commands)
{
	EXPECT_EQ(0, raw_destroy_cq(self->fd, self->cq));
	EXPECT_EQ(0, raw_dealloc_pd(self->fd, self->pd));
	close(self->fd);
	pair_close(self->s);
}

TEST_F(commands, create_cq)
{
	const uintptr_t ring = (uintptr_t)self->mem + 4096, dbr = RECORDS + 64;
	const uintptr_t hole = (uintptr_t)mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const uintptr_t fixed = (uintptr_t)mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const size_t whole = sizeof(struct skua_create_cq_req);
	const struct {
		const char *name;
		struct { struct skua_create_cq_req req; uint64_t tail; } in;
		size_t size;
		unsigned int cqe;
		int err;
	} rows[] = {
		{ "right", { { ring, dbr, 4, 0 } }, whole, 16, 0 },
		{ "with a longer, empty tail", { { ring, dbr, 4, 0 } }, whole + 8, 16, 0 },
		{ "with a tail", { { ring, dbr, 4, 0 }, 1 }, whole + 8, 16, EOPNOTSUPP },
		{ "too short", { { ring, dbr, 4, 0 } }, whole - 4, 16, EINVAL },
		{ "empty", { { ring, dbr, 4, 0 } }, 0, 16, EINVAL },
		{ "comp_mask", { { ring, dbr, 4, 1 } }, whole, 16, EOPNOTSUPP },
		{ "more entries than the ring", { { ring, dbr, 4, 0 } }, whole, 17, EINVAL },
		{ "no entries", { { ring, dbr, 4, 0 } }, whole, 0, EINVAL },
		{ "as many as can be said", { { ring, dbr, 4, 0 } }, whole, UINT32_MAX, EINVAL },
		{ "a ring of 2^21", { { ring, dbr, 21, 0 } }, whole, 1, EINVAL },
		{ "a ring of 2^31", { { ring, dbr, 31, 0 } }, whole, 1, EINVAL },
		{ "a ring of 2^32", { { ring, dbr, 32, 0 } }, whole, 1, EINVAL },
		{ "a ring of 2^(2^32 - 1)", { { ring, dbr, UINT32_MAX, 0 } }, whole, 1, EINVAL },
		{ "a ring that is not aligned", { { ring + 32, dbr, 4, 0 } }, whole, 16, EINVAL },
		{ "a ring at NULL", { { 0, dbr, 4, 0 } }, whole, 16, EFAULT },
		{ "a ring without access", { { hole, dbr, 4, 0 } }, whole, 16, EFAULT },
		{ "a ring that is read-only", { { fixed, dbr, 4, 0 } }, whole, 16, EFAULT },
		{ "a ring that ends in a hole", { { fixed - 1024, dbr, 5, 0 } }, whole, 16, EFAULT },
		{ "a ring around the end", { { -64ull, dbr, 4, 0 } }, whole, 16, EINVAL },
		{ "a ring of the kernel", { { 0xffff888000000000, dbr, 4, 0 } }, whole, 16, EFAULT },
		{ "a record that is not aligned", { { ring, dbr + 8, 4, 0 } }, whole, 16, EINVAL },
		{ "a record at NULL", { { ring, 0, 4, 0 } }, whole, 16, EFAULT },
		{ "a record without access", { { ring, hole, 4, 0 } }, whole, 16, EFAULT },
		{ "a record that is read-only", { { ring, fixed, 4, 0 } }, whole, 16, EFAULT },
		{ "a record of the kernel", { { ring, 0xffff888000000000, 4, 0 } }, whole, 16, EFAULT },
	};

	for EACH(row, rows) {
		uint32_t handle;
		int err = raw_create_cq(self->fd, row->cqe, &row->in.req, row->size, &handle);

		GAVE(row->err, err, row);
		if (!err)
			ASSERT_EQ(0, raw_destroy_cq(self->fd, handle));
	}
}

TEST_F(commands, create_cq_with_flags)
{
	const struct skua_create_cq_req req = { (uintptr_t)self->mem + 4096, RECORDS + 64, 4, 0 };
	const struct {
		const char *name;
		uint32_t flags;
		int err;
	} rows[] = {
		{ "none", 0, 0 },
		{ "stamps", IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION, 0 },
		{ "overruns", IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN, 0 },
		{ "both", IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION | IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN, 0 },
		{ "one more", 4, EOPNOTSUPP },
		{ "the last", 1u << 31, EOPNOTSUPP },
	};

	for EACH(row, rows) {
		const struct ib_uverbs_ex_create_cq cmd = { .cqe = 16, .comp_channel = -1, .flags = row->flags };
		struct ib_uverbs_ex_create_cq_resp resp = {};
		int err = raw_write_ex(self->fd, IB_USER_VERBS_EX_CMD_CREATE_CQ, &cmd, sizeof(cmd), &req, sizeof(req),
				       &resp, sizeof(resp));

		GAVE(row->err, err, row);
		if (!err)
			ASSERT_EQ(0, raw_destroy_cq(self->fd, resp.base.cq_handle));
	}
}

TEST_F(commands, create_qp)
{
	const uintptr_t sq = (uintptr_t)self->mem + 4096, rq = sq + 4096, dbr = RECORDS + 64;
	const uintptr_t hole = (uintptr_t)mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const size_t whole = sizeof(struct skua_create_qp_req);
#define QP(...) { .sq_addr = sq, .rq_addr = rq, .sq_dbr_addr = dbr, .rq_dbr_addr = dbr + 64,	\
		  .qp_handle = 1, .log_sq_blocks = 4, .log_rq_size = 4, .log_rq_stride = 5, __VA_ARGS__ }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
	const struct {
		const char *name;
		struct { struct skua_create_qp_req req; uint64_t tail; } in;
		size_t size;
		int err;
	} rows[] = {
		{ "right", { QP() }, whole, 0 },
		{ "with a longer, empty tail", { QP() }, whole + 8, 0 },
		{ "with a tail", { QP(), 1 }, whole + 8, EOPNOTSUPP },
		{ "too short", { QP() }, whole - 4, EINVAL },
		{ "empty", { QP() }, 0, EINVAL },
		{ "comp_mask", { QP(.comp_mask = 1) }, whole, EOPNOTSUPP },
		{ "unknown flag", { QP(.flags = 4) }, whole, EINVAL },
		{ "all flags", { QP(.flags = 255) }, whole, EINVAL },
		{ "no SQ, but an address", { QP(.flags = SKUA_CREATE_QP_NO_SQ) }, whole, EINVAL },
		{ "no RQ, but an address", { QP(.flags = SKUA_CREATE_QP_NO_RQ) }, whole, EINVAL },
		{ "an SQ too large", { QP(.log_sq_blocks = 19) }, whole, EINVAL },
		{ "an SQ of 2^32", { QP(.log_sq_blocks = 32) }, whole, EINVAL },
		{ "an SQ of 2^255", { QP(.log_sq_blocks = 255) }, whole, EINVAL },
		{ "an RQ too large", { QP(.log_rq_size = 16) }, whole, EINVAL },
		{ "an RQ of 2^255", { QP(.log_rq_size = 255) }, whole, EINVAL },
		{ "receives too small", { QP(.log_rq_stride = 4) }, whole, EINVAL },
		{ "receives too large", { QP(.log_rq_stride = 11) }, whole, EINVAL },
		{ "receives of 2^255", { QP(.log_rq_stride = 255) }, whole, EINVAL },
		{ "an SQ that is not aligned", { QP(.sq_addr = sq + 16) }, whole, EINVAL },
		{ "an RQ that is not aligned", { QP(.rq_addr = rq + 16) }, whole, EINVAL },
		{ "an SQ without access", { QP(.sq_addr = hole) }, whole, EFAULT },
		{ "an RQ without access", { QP(.rq_addr = hole) }, whole, EFAULT },
		{ "an SQ around the end", { QP(.sq_addr = -64ull) }, whole, EINVAL },
		{ "an SQ record that is not aligned", { QP(.sq_dbr_addr = dbr + 4) }, whole, EINVAL },
		{ "an RQ record that is not aligned", { QP(.rq_dbr_addr = dbr + 4) }, whole, EINVAL },
		{ "an SQ record without access", { QP(.sq_dbr_addr = hole) }, whole, EFAULT },
		{ "an RQ record without access", { QP(.rq_dbr_addr = hole) }, whole, EFAULT },
	};
#pragma GCC diagnostic pop

	for EACH(row, rows) {
		struct raw_qp qp = {
			.pd = self->pd, .send_cq = self->cq, .recv_cq = self->cq,
			.cmd = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
				 .max_recv_sge = 1, .qp_type = IBV_QPT_RC },
		};
		uint32_t handle;
		int err = raw_create_qp(self->fd, &qp, &row->in.req, row->size, &handle);

		GAVE(row->err, err, row);
		if (!err)
			ASSERT_EQ(0, raw_destroy_qp(self->fd, handle));
	}
}

/* What the common part of the command says; the driver's is right. */
TEST_F(commands, create_qp_common)
{
	const struct skua_create_qp_req req = {
		.flags = SKUA_CREATE_QP_NO_SQ | SKUA_CREATE_QP_NO_RQ,
	};
	const struct {
		const char *name;
		struct ib_uverbs_create_qp cmd;
		int err;
	} rows[] = {
		{ "too many sends", { .max_send_wr = 1 << 20, .qp_type = IBV_QPT_RC }, EINVAL },
		{ "too many receives", { .max_recv_wr = UINT32_MAX, .qp_type = IBV_QPT_RC }, EINVAL },
		{ "too many SGEs", { .max_send_sge = 31, .qp_type = IBV_QPT_RC }, EINVAL },
		{ "too many receive SGEs", { .max_recv_sge = 31, .qp_type = IBV_QPT_RC }, EINVAL },
		{ "too much inline", { .max_inline_data = 513, .qp_type = IBV_QPT_RC }, EINVAL },
		{ "too many SGEs of UD", { .max_send_sge = 31, .qp_type = IBV_QPT_UD }, EINVAL },
		{ "type 1 is the kernel's", { .qp_type = 1 }, EINVAL },
		{ "too many SGEs of raw packets", { .max_send_sge = 31, .qp_type = IBV_QPT_RAW_PACKET }, EINVAL },
		{ "type 0 is the kernel's", { .qp_type = 0 }, EINVAL },
		{ "type 200", { .qp_type = 200 }, EINVAL },
		{ "an SRQ that is not there", { .qp_type = IBV_QPT_RC, .is_srq = 1 }, EINVAL },
	};

	for EACH(row, rows) {
		struct raw_qp qp = { self->pd, self->cq, self->cq, row->cmd };
		uint32_t handle;

		GAVE(row->err, raw_create_qp(self->fd, &qp, &req, sizeof(req), &handle), row);
	}
}

/* For the rows below: memory that a queue or a record cannot be in. */
#define NOWHERE ((uintptr_t)mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
#define READ_ONLY ((uintptr_t)mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
#define OF_THE_KERNEL 0xffff888000000000

TEST_F(commands, resize_cq)
{
	const uintptr_t ring = (uintptr_t)self->mem + 8192, hole = NOWHERE, fixed = READ_ONLY;
	const size_t whole = sizeof(struct skua_resize_cq_req);
	const struct {
		const char *name;
		struct { struct skua_resize_cq_req req; uint64_t tail; } in;
		size_t size;
		unsigned int cqe;
		int err;
	} rows[] = {
		{ "right", { { ring, 4, 0 } }, whole, 16, 0 },
		{ "with a longer, empty tail", { { ring, 4, 0 } }, whole + 8, 16, 0 },
		{ "with a tail", { { ring, 4, 0 }, 1 }, whole + 8, 16, EOPNOTSUPP },
		{ "too short", { { ring, 4, 0 } }, whole - 4, 16, EINVAL },
		{ "empty", { { ring, 4, 0 } }, 0, 16, EINVAL },
		{ "comp_mask", { { ring, 4, 1 } }, whole, 16, EOPNOTSUPP },
		{ "more entries than the ring", { { ring, 4, 0 } }, whole, 17, EINVAL },
		{ "no entries", { { ring, 4, 0 } }, whole, 0, EINVAL },
		{ "as many as can be said", { { ring, 4, 0 } }, whole, UINT32_MAX, EINVAL },
		{ "a ring of 2^21", { { ring, 21, 0 } }, whole, 1, EINVAL },
		{ "a ring of 2^31", { { ring, 31, 0 } }, whole, 1, EINVAL },
		{ "a ring of 2^32", { { ring, 32, 0 } }, whole, 1, EINVAL },
		{ "a ring of 2^(2^32 - 1)", { { ring, UINT32_MAX, 0 } }, whole, 1, EINVAL },
		{ "a ring that is not aligned", { { ring + 32, 4, 0 } }, whole, 16, EINVAL },
		{ "a ring at NULL", { { 0, 4, 0 } }, whole, 16, EFAULT },
		{ "a ring without access", { { hole, 4, 0 } }, whole, 16, EFAULT },
		{ "a ring that is read-only", { { fixed, 4, 0 } }, whole, 16, EFAULT },
		{ "a ring around the end", { { -64ull, 4, 0 } }, whole, 16, EINVAL },
		{ "a ring of the kernel", { { OF_THE_KERNEL, 4, 0 } }, whole, 16, EFAULT },
	};

	for EACH(row, rows)
		GAVE(row->err, raw_resize_cq(self->fd, self->cq, row->cqe, &row->in.req, row->size), row);
}

TEST_F(commands, create_srq)
{
	const uintptr_t ring = (uintptr_t)self->mem + 8192, dbr = RECORDS + 128, hole = NOWHERE, fixed = READ_ONLY;
	const size_t whole = sizeof(struct skua_create_srq_req);
#define SRQ(...) { .buf_addr = ring, .dbr_addr = dbr, .log_size = 4, .log_stride = 5, __VA_ARGS__ }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
	const struct {
		const char *name;
		struct { struct skua_create_srq_req req; uint64_t tail; } in;
		size_t size;
		unsigned int max_wr;
		int err;
	} rows[] = {
		{ "right", { SRQ() }, whole, 16, 0 },
		{ "with a longer, empty tail", { SRQ() }, whole + 8, 16, 0 },
		{ "with a tail", { SRQ(), 1 }, whole + 8, 16, EOPNOTSUPP },
		{ "too short", { SRQ() }, whole - 4, 16, EINVAL },
		{ "empty", { SRQ() }, 0, 16, EINVAL },
		{ "comp_mask", { SRQ(.comp_mask = 1) }, whole, 16, EOPNOTSUPP },
		{ "reserved", { SRQ(.reserved = { 1 }) }, whole, 16, EINVAL },
		{ "reserved, at the end", { SRQ(.reserved = { 0, 1 }) }, whole, 16, EINVAL },
		{ "more entries than the ring", { SRQ() }, whole, 17, EINVAL },
		{ "no entries", { SRQ() }, whole, 0, EINVAL },
		{ "as many as can be said", { SRQ() }, whole, UINT32_MAX, EINVAL },
		{ "a ring of 2^16", { SRQ(.log_size = 16) }, whole, 1, EINVAL },
		{ "a ring of 2^32", { SRQ(.log_size = 32) }, whole, 1, EINVAL },
		{ "a ring of 2^255", { SRQ(.log_size = 255) }, whole, 1, EINVAL },
		{ "entries too small", { SRQ(.log_stride = 4) }, whole, 16, EINVAL },
		{ "entries too large", { SRQ(.log_stride = 11) }, whole, 16, EINVAL },
		{ "entries of 2^255", { SRQ(.log_stride = 255) }, whole, 16, EINVAL },
		{ "a ring that is not aligned", { SRQ(.buf_addr = ring + 16) }, whole, 16, EINVAL },
		{ "a ring at NULL", { SRQ(.buf_addr = 0) }, whole, 16, EFAULT },
		{ "a ring without access", { SRQ(.buf_addr = hole) }, whole, 16, EFAULT },
		{ "a ring that is read-only", { SRQ(.buf_addr = fixed) }, whole, 16, EFAULT },
		{ "a ring around the end", { SRQ(.buf_addr = -64ull) }, whole, 16, EINVAL },
		{ "a ring of the kernel", { SRQ(.buf_addr = OF_THE_KERNEL) }, whole, 16, EFAULT },
		{ "a record that is not aligned", { SRQ(.dbr_addr = dbr + 4) }, whole, 16, EINVAL },
		{ "a record at NULL", { SRQ(.dbr_addr = 0) }, whole, 16, EFAULT },
		{ "a record without access", { SRQ(.dbr_addr = hole) }, whole, 16, EFAULT },
		{ "a record that is read-only", { SRQ(.dbr_addr = fixed) }, whole, 16, EFAULT },
		{ "a record of the kernel", { SRQ(.dbr_addr = OF_THE_KERNEL) }, whole, 16, EFAULT },
	};
#pragma GCC diagnostic pop

	for EACH(row, rows) {
		uint32_t handle;
		int err = raw_create_srq(self->fd, self->pd, row->max_wr, &row->in.req, row->size, &handle);

		GAVE(row->err, err, row);
		if (!err)
			ASSERT_EQ(0, raw_destroy_srq(self->fd, handle));
	}
}

/* An event of an SRQ that is not made would stay in the list of its events, and the kernel frees it with the SRQ. */
TEST_F(commands, create_srq_without_an_event)
{
	struct skua_create_srq_req req = {
		.buf_addr = (uintptr_t)self->mem + 8192, .dbr_addr = RECORDS + 128, .log_size = 4, .log_stride = 5,
	};
	struct pollfd events = { .fd = raw_alloc_async_event(self->fd), .events = POLLIN };
	struct skua_create_srq_resp resp;
	uint32_t handle;

	ASSERT_LE(0, events.fd);
#define CREATE(limit, resp) \
	raw_create_limited_srq(self->fd, self->pd, events.fd, 16, limit, &req, (void *)(resp), &handle)
	for (int i = 0; i < 100; i++) {
		ASSERT_EQ(EFAULT, CREATE(16, NOWHERE));
		ASSERT_EQ(0, poll(&events, 1, 0));
	}
	ASSERT_EQ(EINVAL, CREATE(17, &resp));
	ASSERT_EQ(0, CREATE(16, &resp));
	ASSERT_EQ(0, poll(&events, 1, 100));
	ASSERT_EQ(0, raw_destroy_srq(self->fd, handle));
	close(events.fd);
}

/* The ring that takes the place of another; and the limit alone, with which there is none. */
TEST_F(commands, modify_srq)
{
	const uintptr_t ring = (uintptr_t)self->mem + 12288, hole = NOWHERE, fixed = READ_ONLY;
	const struct skua_create_srq_req made = {
		.buf_addr = (uintptr_t)self->mem + 8192, .dbr_addr = RECORDS + 128, .log_size = 4, .log_stride = 5,
	};
	const size_t whole = sizeof(struct skua_modify_srq_req);
	const uint32_t resize = IBV_SRQ_MAX_WR, limit = IBV_SRQ_LIMIT;
	const struct {
		const char *name;
		struct { struct skua_modify_srq_req req; uint64_t tail; } in;
		size_t size;
		uint32_t mask, max_wr, limit;
		int err;
	} rows[] = {
		{ "right", { { ring, 4, 0 } }, whole, resize, 16, 0, 0 },
		{ "with a longer, empty tail", { { ring, 4, 0 } }, whole + 8, resize, 16, 0, 0 },
		{ "with a tail", { { ring, 4, 0 }, 1 }, whole + 8, resize, 16, 0, EOPNOTSUPP },
		{ "too short", { { ring, 4, 0 } }, whole - 4, resize, 16, 0, EINVAL },
		{ "empty", { { ring, 4, 0 } }, 0, resize, 16, 0, EINVAL },
		{ "comp_mask", { { ring, 4, 1 } }, whole, resize, 16, 0, EOPNOTSUPP },
		{ "more entries than the ring", { { ring, 4, 0 } }, whole, resize, 17, 0, EINVAL },
		{ "no entries", { { ring, 4, 0 } }, whole, resize, 0, 0, EINVAL },
		{ "as many as can be said", { { ring, 4, 0 } }, whole, resize, UINT32_MAX, 0, EINVAL },
		{ "a ring of 2^16", { { ring, 16, 0 } }, whole, resize, 1, 0, EINVAL },
		{ "a ring of 2^32", { { ring, 32, 0 } }, whole, resize, 1, 0, EINVAL },
		{ "a ring of 2^(2^32 - 1)", { { ring, UINT32_MAX, 0 } }, whole, resize, 1, 0, EINVAL },
		{ "a ring that is not aligned", { { ring + 16, 4, 0 } }, whole, resize, 16, 0, EINVAL },
		{ "a ring at NULL", { { 0, 4, 0 } }, whole, resize, 16, 0, EFAULT },
		{ "a ring without access", { { hole, 4, 0 } }, whole, resize, 16, 0, EFAULT },
		{ "a ring that is read-only", { { fixed, 4, 0 } }, whole, resize, 16, 0, EFAULT },
		{ "a ring around the end", { { -64ull, 4, 0 } }, whole, resize, 16, 0, EINVAL },
		{ "a ring of the kernel", { { OF_THE_KERNEL, 4, 0 } }, whole, resize, 16, 0, EFAULT },
		{ "a limit", { { 0, 0, 0 } }, 0, limit, 0, 1, 0 },
		{ "a limit, with zeroes", { { 0, 0, 0 } }, whole, limit, 0, 1, 0 },
		{ "a limit, with a ring", { { ring, 4, 0 } }, whole, limit, 0, 1, EOPNOTSUPP },
		{ "a limit above the size", { { 0, 0, 0 } }, 0, limit, 0, 17, EINVAL },
		{ "a limit above the size to be", { { ring, 3, 0 } }, whole, resize | limit, 8, 9, EINVAL },
		{ "something else", { { 0, 0, 0 } }, 0, 4, 16, 0, EINVAL },
	};
	uint32_t handle;

	ASSERT_EQ(0, raw_create_srq(self->fd, self->pd, 16, &made, sizeof(made), &handle));
	for EACH(row, rows) {
		const struct ib_uverbs_modify_srq cmd = { handle, row->mask, row->max_wr, row->limit };

		GAVE(row->err, raw_modify_srq(self->fd, &cmd, &row->in.req, row->size), row);
	}
	ASSERT_EQ(0, raw_destroy_srq(self->fd, handle));
}

TEST_F(commands, create_wq)
{
	const uintptr_t ring = (uintptr_t)self->mem + 8192, dbr = RECORDS + 128, hole = NOWHERE, fixed = READ_ONLY;
	const size_t whole = sizeof(struct skua_create_wq_req);
#define WQ(...) { .rq_addr = ring, .rq_dbr_addr = dbr, .log_rq_size = 4, .log_rq_stride = 5, __VA_ARGS__ }
#define OF(...) { .wq_type = IBV_WQT_RQ, .max_wr = 16, .max_sge = 1, __VA_ARGS__ }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
	const struct {
		const char *name;
		struct { struct skua_create_wq_req req; uint64_t tail; } in;
		size_t size;
		struct ib_uverbs_ex_create_wq wq;
		int err;
	} rows[] = {
		{ "right", { WQ() }, whole, OF(), 0 },
		{ "with a longer, empty tail", { WQ() }, whole + 8, OF(), 0 },
		{ "with a tail", { WQ(), 1 }, whole + 8, OF(), EOPNOTSUPP },
		{ "too short", { WQ() }, whole - 8, OF(), EINVAL },
		{ "empty", { WQ() }, 0, OF(), EINVAL },
		{ "comp_mask", { WQ(.comp_mask = 1) }, whole, OF(), EOPNOTSUPP },
		{ "reserved", { WQ(.reserved = 1) }, whole, OF(), EINVAL },
		{ "a ring of 2^16", { WQ(.log_rq_size = 16) }, whole, OF(), EINVAL },
		{ "a ring of 2^255", { WQ(.log_rq_size = 255) }, whole, OF(), EINVAL },
		{ "entries too small", { WQ(.log_rq_stride = 4) }, whole, OF(), EINVAL },
		{ "entries too large", { WQ(.log_rq_stride = 11) }, whole, OF(), EINVAL },
		{ "entries of 2^255", { WQ(.log_rq_stride = 255) }, whole, OF(), EINVAL },
		{ "a ring that is not aligned", { WQ(.rq_addr = ring + 16) }, whole, OF(), EINVAL },
		{ "a ring at NULL", { WQ(.rq_addr = 0) }, whole, OF(), EFAULT },
		{ "a ring without access", { WQ(.rq_addr = hole) }, whole, OF(), EFAULT },
		{ "a ring that is read-only", { WQ(.rq_addr = fixed) }, whole, OF(), EFAULT },
		{ "a ring around the end", { WQ(.rq_addr = -64ull) }, whole, OF(), EINVAL },
		{ "a ring of the kernel", { WQ(.rq_addr = OF_THE_KERNEL) }, whole, OF(), EFAULT },
		{ "a record that is not aligned", { WQ(.rq_dbr_addr = dbr + 4) }, whole, OF(), EINVAL },
		{ "a record at NULL", { WQ(.rq_dbr_addr = 0) }, whole, OF(), EFAULT },
		{ "a record without access", { WQ(.rq_dbr_addr = hole) }, whole, OF(), EFAULT },
		{ "a record that is read-only", { WQ(.rq_dbr_addr = fixed) }, whole, OF(), EFAULT },
		{ "a record of the kernel", { WQ(.rq_dbr_addr = OF_THE_KERNEL) }, whole, OF(), EFAULT },
		{ "no entries", { WQ() }, whole, OF(.max_wr = 0), EINVAL },
		{ "as many as can be said", { WQ() }, whole, OF(.max_wr = UINT32_MAX), EINVAL },
		{ "too many SGEs", { WQ() }, whole, OF(.max_sge = 31), EINVAL },
		{ "no such type", { WQ() }, whole, OF(.wq_type = 1), EINVAL },
		{ "that strips tags", { WQ() }, whole, OF(.create_flags = IBV_WQ_FLAGS_CVLAN_STRIPPING), 0 },
		{ "other flags", { WQ() }, whole, OF(.create_flags = IBV_WQ_FLAGS_SCATTER_FCS), EOPNOTSUPP },
		{ "a flag without a name", { WQ() }, whole, OF(.create_flags = 1u << 31), EOPNOTSUPP },
	};
#pragma GCC diagnostic pop

	for EACH(row, rows) {
		struct ib_uverbs_ex_create_wq wq = row->wq;
		uint32_t handle;
		int err;

		wq.pd_handle = self->pd;
		wq.cq_handle = self->cq;
		err = raw_create_wq(self->fd, &wq, &row->in.req, row->size, &handle);
		GAVE(row->err, err, row);
		if (!err)
			ASSERT_EQ(0, raw_destroy_wq(self->fd, handle));
	}
}

/* With flags, which the provider looks at, too. */
TEST_F(commands, create_qp_with_flags)
{
	const struct {
		const char *name;
		enum ibv_qp_type type;
		uint32_t flags;
		int err;
	} rows[] = {
		{ "none", IBV_QPT_RAW_PACKET, 0, 0 },
		{ "that strips tags", IBV_QPT_RAW_PACKET, IBV_QP_CREATE_CVLAN_STRIPPING, 0 },
		{ "other flags", IBV_QPT_RAW_PACKET, IBV_QP_CREATE_SCATTER_FCS, EOPNOTSUPP },
		{ "others, too", IBV_QPT_RAW_PACKET, IBV_QP_CREATE_CVLAN_STRIPPING | IBV_QP_CREATE_PCI_WRITE_END_PADDING,
		  EOPNOTSUPP },
		{ "of RC", IBV_QPT_RC, IBV_QP_CREATE_CVLAN_STRIPPING, EOPNOTSUPP },
		{ "of UD", IBV_QPT_UD, IBV_QP_CREATE_CVLAN_STRIPPING, EOPNOTSUPP },
	};
	const struct skua_create_qp_req req = {
		.rq_addr = (uintptr_t)self->mem + 8192, .rq_dbr_addr = RECORDS + 128, .log_rq_size = 4, .log_rq_stride = 5,
		.flags = SKUA_CREATE_QP_NO_SQ,
	};

	for EACH(row, rows) {
		const struct ib_uverbs_ex_create_qp cmd = {
			.pd_handle = self->pd, .send_cq_handle = self->cq, .recv_cq_handle = self->cq, .max_recv_wr = 16,
			.max_recv_sge = 1, .qp_type = row->type, .create_flags = row->flags,
		};
		struct { struct ib_uverbs_ex_create_qp_resp core; struct skua_create_qp_resp drv; } resp = {};
		int err = raw_write_ex(self->fd, IB_USER_VERBS_EX_CMD_CREATE_QP, &cmd, sizeof(cmd), &req, sizeof(req), &resp,
				       sizeof(resp.core));

		GAVE(row->err, err, row);
		if (!err)
			ASSERT_EQ(0, raw_destroy_qp(self->fd, resp.core.base.qp_handle));
	}
}

#define TAGS_SRQ(tags) {						\
		.srq_type = IBV_SRQT_TM, .pd_handle = self->pd, .cq_handle = self->cq, .max_wr = 16, .max_sge = 1, \
		.max_num_tags = (tags),					\
	}

#define SRQ_REQ {							\
		.buf_addr = (uintptr_t)self->mem + 8192, .dbr_addr = RECORDS + 128, .log_size = 4, \
		.log_stride = 5,					\
	}

/* TAG-1 */
TEST_F(commands, create_srq_with_tags)
{
	const struct skua_create_srq_req req = SRQ_REQ;
	struct ibv_device_attr_ex device;
	const struct {
		const char *name;
		uint32_t tags;
		int err;
	} rows[] = {
		{ "one", 1, 0 },
		{ "none", 0, EINVAL },
		{ "65537", 65537, EINVAL },
		{ "as many as can be said", UINT32_MAX, EINVAL },
	};
	struct ib_uverbs_create_xsrq srq;
	uint32_t handle;

	for EACH(row, rows) {
		srq = (struct ib_uverbs_create_xsrq)TAGS_SRQ(row->tags);
		GAVE(row->err, raw_create_xsrq(self->fd, &srq, &req, &handle), row);
		if (!row->err)
			ASSERT_EQ(0, raw_destroy_srq(self->fd, handle));
	}
	ASSERT_EQ(0, ibv_query_device_ex(self->s[0].context, NULL, &device));
	srq = (struct ib_uverbs_create_xsrq)TAGS_SRQ(device.tm_caps.max_num_tags + 1);
	ASSERT_EQ(EINVAL, raw_create_xsrq(self->fd, &srq, &req, &handle));
	srq = (struct ib_uverbs_create_xsrq)TAGS_SRQ(1);
	srq.cq_handle = 999;
	ASSERT_NE(0, raw_create_xsrq(self->fd, &srq, &req, &handle));
}

/* TAG-2 */
TEST_F(commands, create_qp_with_tags)
{
	const struct ib_uverbs_create_xsrq srq = TAGS_SRQ(4);
	const struct skua_create_srq_req srq_req = SRQ_REQ;
	const struct skua_create_cq_req cq_req = { (uintptr_t)self->mem + 12288, RECORDS + 192 };
	const struct skua_create_qp_req none = { .flags = SKUA_CREATE_QP_NO_SQ | SKUA_CREATE_QP_NO_RQ };
	const struct skua_create_qp_req has_sq = {
		.sq_addr = (uintptr_t)self->mem + 16384, .sq_dbr_addr = RECORDS + 256, .log_sq_blocks = 4,
		.flags = SKUA_CREATE_QP_NO_RQ,
	};
	uint32_t pd = 0, cq = 0, tags = 0, handle;

	ASSERT_EQ(0, raw_alloc_pd(self->fd, &pd));
	ASSERT_EQ(0, raw_create_cq(self->fd, 1, &cq_req, sizeof(cq_req), &cq));
	ASSERT_EQ(0, raw_create_xsrq(self->fd, &srq, &srq_req, &tags));
	const struct {
		const char *name;
		uint32_t pd, send_cq, recv_cq;
		enum ibv_qp_type type;
		const struct skua_create_qp_req *req;
		uint32_t max_send_wr;
		int err;
	} rows[] = {
		{ "a receiver", self->pd, self->cq, self->cq, IBV_QPT_RC, &none, 0, 0 },
		{ "a receiver of another PD", pd, self->cq, self->cq, IBV_QPT_RC, &none, 0, 0 },
		{ "a receiver that sends", self->pd, self->cq, self->cq, IBV_QPT_RC, &has_sq, 1, EINVAL },
		{ "a receiver that may send", self->pd, self->cq, self->cq, IBV_QPT_RC, &none, 1, EINVAL },
		{ "a receiver with an SQ", self->pd, self->cq, self->cq, IBV_QPT_RC, &has_sq, 0, EINVAL },
		{ "a receiver with another CQ", self->pd, self->cq, cq, IBV_QPT_RC, &none, 0, EINVAL },
		{ "the carrier", self->pd, self->cq, self->cq, IBV_QPT_UD, &has_sq, 8, 0 },
		{ "a carrier of another PD", pd, self->cq, self->cq, IBV_QPT_UD, &has_sq, 8, EINVAL },
		{ "a carrier with another CQ", self->pd, cq, self->cq, IBV_QPT_UD, &has_sq, 8, EINVAL },
		{ "a carrier with another receive CQ", self->pd, self->cq, cq, IBV_QPT_UD, &has_sq, 8, EINVAL },
		{ "UC", self->pd, self->cq, self->cq, IBV_QPT_UC, &none, 0, EINVAL },
	};

	for EACH(row, rows) {
		struct raw_qp qp = {
			row->pd, row->send_cq, row->recv_cq, {
				.qp_type = row->type, .is_srq = 1, .srq_handle = tags, .max_send_wr = row->max_send_wr,
			},
		};

		GAVE(row->err, raw_create_qp(self->fd, &qp, row->req, sizeof(*row->req), &handle), row);
		if (!row->err)
			ASSERT_EQ(0, raw_destroy_qp(self->fd, handle));
	}
	ASSERT_EQ(0, raw_destroy_srq(self->fd, tags));
	ASSERT_EQ(0, raw_destroy_cq(self->fd, cq));
	ASSERT_EQ(0, raw_dealloc_pd(self->fd, pd));
}

/* Commands to which the driver adds nothing take nothing either, but zeroes. */
static int alloc_pd_with(int fd, uint32_t pd, const uint64_t *drv, size_t size)
{
	uint32_t resp[16];
	struct ib_uverbs_alloc_pd cmd = { .response = (uintptr_t)resp };
	int err = raw_write(fd, IB_USER_VERBS_CMD_ALLOC_PD, &cmd, sizeof(cmd), drv, size, sizeof(resp));

	return err ? err : raw_dealloc_pd(fd, resp[0]);
}

static int reg_mr_with(int fd, uint32_t pd, const uint64_t *drv, size_t size)
{
	static uint8_t page[8192];
	uint32_t resp[16];
	struct ib_uverbs_reg_mr cmd = {
		.response = (uintptr_t)resp, .start = (uintptr_t)page, .hca_va = (uintptr_t)page,
		.length = sizeof(page), .pd_handle = pd,
	};
	int err = raw_write(fd, IB_USER_VERBS_CMD_REG_MR, &cmd, sizeof(cmd), drv, size, sizeof(resp));

	return err ? err : raw_dereg_mr(fd, resp[0]);
}

static int create_ah_with(int fd, uint32_t pd, const uint64_t *drv, size_t size)
{
	struct { struct ib_uverbs_create_ah_resp core; uint64_t drv[2]; } resp;
	/* A group needs no way to be found. */
	struct ib_uverbs_create_ah cmd = {
		.response = (uintptr_t)&resp, .pd_handle = pd,
		.attr = { .is_global = 1, .port_num = 1,
			  .grh = { .dgid = { [10] = 0xff, [11] = 0xff, 239, 1, 2, 3 }, .sgid_index = 1 } },
	};
	struct ib_uverbs_destroy_ah destroy;
	int err = raw_write(fd, IB_USER_VERBS_CMD_CREATE_AH, &cmd, sizeof(cmd), drv, size, sizeof(resp));

	if (err)
		return err;
	destroy.ah_handle = resp.core.ah_handle;
	return raw_write(fd, IB_USER_VERBS_CMD_DESTROY_AH, &destroy, sizeof(destroy), NULL, 0, 0);
}

static int alloc_mw_with(int fd, uint32_t pd, const uint64_t *drv, size_t size)
{
	uint32_t mw;
	int err = raw_alloc_mw(fd, pd, IBV_MW_TYPE_1, drv, size, &mw);

	return err ? err : raw_dealloc_mw(fd, mw);
}

static int open_xrcd_with(int fd, uint32_t pd, const uint64_t *drv, size_t size)
{
	uint32_t xrcd;
	int err = raw_open_xrcd(fd, drv, size, &xrcd);

	return err ? err : raw_close_xrcd(fd, xrcd);
}

static int get_context_with(int fd, uint32_t pd, const uint64_t *drv, size_t size)
{
	struct { struct ib_uverbs_get_context_resp core; uint64_t drv[16]; } resp;
	struct ib_uverbs_get_context cmd = { .response = (uintptr_t)&resp };
	char path[64], name[300];
	ssize_t n;
	int err;

	/* Another opening of the same file. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, name, sizeof(name) - 1);
	name[n < 0 ? 0 : n] = 0;
	fd = open(name, O_RDWR);
	err = raw_write(fd, IB_USER_VERBS_CMD_GET_CONTEXT, &cmd, sizeof(cmd), drv, size, sizeof(resp));
	close(fd);
	return err;
}

TEST_F(commands, udata_of_commands_that_have_none)
{
	static const struct {
		const char *name;
		int (*call)(int fd, uint32_t pd, const uint64_t *drv, size_t size);
	} rows[] = {
		{ "alloc_pd", alloc_pd_with },
		{ "reg_mr", reg_mr_with },
		{ "create_ah", create_ah_with },
		{ "alloc_mw", alloc_mw_with },
		{ "open_xrcd", open_xrcd_with },
		{ "get_context", get_context_with },
	};
	static const uint64_t zero[4], some[4] = { 0, 0, 0, 1 };

	for EACH(row, rows) {
		GAVE(0, row->call(self->fd, self->pd, NULL, 0), row);
		GAVE(0, row->call(self->fd, self->pd, zero, sizeof(zero)), row);
		GAVE(EOPNOTSUPP, row->call(self->fd, self->pd, some, sizeof(some)), row);
	}
}

TEST_F(commands, modify_qp_with_udata)
{
	struct skua_create_qp_req req = { .flags = SKUA_CREATE_QP_NO_SQ | SKUA_CREATE_QP_NO_RQ };
	struct raw_qp qp = { self->pd, self->cq, self->cq, { .qp_type = IBV_QPT_RC } };
	struct ib_uverbs_modify_qp cmd = { .attr_mask = IBV_QP_STATE, .qp_state = IBV_QPS_RESET };
	const struct {
		const char *name;
		uint64_t drv[2];
		int err;
	} rows[] = {
		{ "nothing", {}, 0 }, { "something", { 1 }, EOPNOTSUPP }, { "at the end", { 0, 1 }, EOPNOTSUPP },
	};

	/* By this command the core passes nothing on: what is Skua's comes by the extended one. */
	ASSERT_EQ(0, raw_create_qp(self->fd, &qp, &req, sizeof(req), &cmd.qp_handle));
	for EACH(row, rows)
		GAVE(row->err, raw_write(self->fd, IB_USER_VERBS_CMD_MODIFY_QP, &cmd, sizeof(cmd),
					 row->drv, sizeof(row->drv), 0), row);
	ASSERT_EQ(0, raw_destroy_qp(self->fd, cmd.qp_handle));
}

/*
 * Those that destroy ignore what they do not know, since the core destroys with the udata of a creation what it cannot
 * announce. Of flows, tables and windows it hands nothing on to the driver.
 */
TEST_F(commands, udata_of_commands_that_destroy)
{
	struct skua_create_qp_req qp_req = { .flags = SKUA_CREATE_QP_NO_SQ | SKUA_CREATE_QP_NO_RQ };
	struct skua_create_cq_req cq_req = { (uintptr_t)self->mem + 4096, RECORDS + 64, 4, 0 };
	struct raw_qp qp = { self->pd, self->cq, self->cq, { .qp_type = IBV_QPT_RC } };
	struct ib_uverbs_destroy_qp destroy_qp = {};
	struct ib_uverbs_destroy_cq destroy_cq = {};
	struct ib_uverbs_dealloc_pd dealloc_pd;
	struct ib_uverbs_dereg_mr dereg_mr;
	const struct skua_create_srq_req srq_req = SRQ_REQ;
	const struct skua_create_wq_req wq_req = {
		.rq_addr = (uintptr_t)self->mem + 12288, .rq_dbr_addr = RECORDS + 192, .log_rq_size = 4,
		.log_rq_stride = 5,
	};
	const struct ib_uverbs_ex_create_wq wq = {
		.wq_type = IBV_WQT_RQ, .pd_handle = self->pd, .cq_handle = self->cq, .max_wr = 16, .max_sge = 1,
	};
	struct ib_uverbs_destroy_srq destroy_srq = {};
	struct ib_uverbs_close_xrcd close_xrcd;
	struct ib_uverbs_ex_destroy_wq destroy_wq = {};
	const struct {
		const char *name;
		unsigned int command;
		const void *core;
		size_t core_size, resp_size;
	} rows[] = {
		{ "destroy_qp", IB_USER_VERBS_CMD_DESTROY_QP, &destroy_qp, sizeof(destroy_qp),
		  sizeof(struct ib_uverbs_destroy_qp_resp) },
		{ "destroy_cq", IB_USER_VERBS_CMD_DESTROY_CQ, &destroy_cq, sizeof(destroy_cq),
		  sizeof(struct ib_uverbs_destroy_cq_resp) },
		{ "dereg_mr", IB_USER_VERBS_CMD_DEREG_MR, &dereg_mr, sizeof(dereg_mr), 0 },
		{ "dealloc_pd", IB_USER_VERBS_CMD_DEALLOC_PD, &dealloc_pd, sizeof(dealloc_pd), 0 },
		{ "destroy_srq", IB_USER_VERBS_CMD_DESTROY_SRQ, &destroy_srq, sizeof(destroy_srq),
		  sizeof(struct ib_uverbs_destroy_srq_resp) },
		{ "close_xrcd", IB_USER_VERBS_CMD_CLOSE_XRCD, &close_xrcd, sizeof(close_xrcd), 0 },
		{ "destroy_wq", IB_USER_VERBS_EX_CMD_DESTROY_WQ | IB_USER_VERBS_CMD_FLAG_EXTENDED, &destroy_wq,
		  sizeof(destroy_wq), sizeof(struct ib_uverbs_ex_destroy_wq_resp) },
	};
	static const uint64_t some[2] = { 0, 1 };

	ASSERT_EQ(0, raw_create_qp(self->fd, &qp, &qp_req, sizeof(qp_req), &destroy_qp.qp_handle));
	ASSERT_EQ(0, raw_create_cq(self->fd, 16, &cq_req, sizeof(cq_req), &destroy_cq.cq_handle));
	ASSERT_EQ(0, raw_alloc_pd(self->fd, &dealloc_pd.pd_handle));
	ASSERT_EQ(0, raw_reg_mr(self->fd, dealloc_pd.pd_handle, self->mem, 4096, 0, &dereg_mr.mr_handle));
	ASSERT_EQ(0, raw_create_srq(self->fd, self->pd, 16, &srq_req, sizeof(srq_req), &destroy_srq.srq_handle));
	ASSERT_EQ(0, raw_open_xrcd(self->fd, NULL, 0, &close_xrcd.xrcd_handle));
	ASSERT_EQ(0, raw_create_wq(self->fd, &wq, &wq_req, sizeof(wq_req), &destroy_wq.wq_handle));
	for EACH(row, rows)
		GAVE(0, raw_invoke(self->fd, row->command, row->core, row->core_size, some, sizeof(some),
				   row->resp_size), row);
}

/* A response may be short of the driver's part, or longer; not where it cannot be written. */
TEST_F(commands, responses)
{
	struct skua_create_cq_req req = { (uintptr_t)self->mem + 4096, RECORDS + 64, 4, 0 };
	uint32_t resp[16];
	struct ib_uverbs_create_cq cmd = {
		.response = (uintptr_t)resp, .cqe = 16, .comp_channel = -1,
	};
	const struct {
		const char *name;
		uint64_t response;
		size_t size;
		int err;
	} rows[] = {
		{ "nothing for the driver", (uintptr_t)resp, 8, 0 },
		{ "a part for the driver", (uintptr_t)resp, 12, 0 },
		{ "all", (uintptr_t)resp, 16, 0 },
		{ "more", (uintptr_t)resp, 64, 0 },
		{ "less than the common part", (uintptr_t)resp, 4, ENOSPC },
		{ "none", (uintptr_t)resp, 0, ENOSPC },
		{ "at NULL", 0, 16, EFAULT },
		{ "in the kernel", 0xffff888000000000, 16, EFAULT },
		{ "in read-only memory", (uintptr_t)"literal", 16, EFAULT },
	};

	for EACH(row, rows) {
		int err;

		memset(resp, 0xff, sizeof(resp));
		cmd.response = row->response;
		err = raw_write(self->fd, IB_USER_VERBS_CMD_CREATE_CQ, &cmd, sizeof(cmd), &req,
				sizeof(req), row->size);
		GAVE(row->err, err, row);
		for (unsigned int i = err ? 0 : (unsigned int)row->size / 4; i < 16; i++)
			ASSERT_EQ(UINT32_MAX, resp[i]);
		if (err)
			continue;
		for (unsigned int i = 4; i < row->size / 4; i++)
			ASSERT_EQ(0, resp[i]);
		ASSERT_EQ(0, raw_destroy_cq(self->fd, resp[0]));
	}
}

/* An object that cannot be told to the program is not kept: or the limit would be reached. */
TEST_F(commands, failed_creations_leak_nothing)
{
	struct ib_uverbs_alloc_pd pd = { .response = 8 };
	struct skua_create_cq_req req = { (uintptr_t)self->mem + 4096, RECORDS + 64, 0, 0 };
	struct ib_uverbs_create_cq cq = { .response = 8, .cqe = 1, .comp_channel = -1 };

	for (unsigned int i = 0; i < 300; i++) {
		ASSERT_EQ(EFAULT, raw_write(self->fd, IB_USER_VERBS_CMD_ALLOC_PD, &pd, sizeof(pd), NULL,
					    0, 64));
		ASSERT_EQ(EFAULT, raw_write(self->fd, IB_USER_VERBS_CMD_CREATE_CQ, &cq, sizeof(cq),
					    &req, sizeof(req), 64));
	}
	ASSERT_TRUE(pair_transfer(self->s));
}

/*
 * The driver has made it and answered, and then the core cannot write its own part. A new object has the lowest handle
 * that is free, so whether it is gone is known.
 */
TEST_F(commands, what_a_program_is_not_told_of_goes)
{
	const struct skua_create_qp_req qp_req = { .flags = SKUA_CREATE_QP_NO_SQ | SKUA_CREATE_QP_NO_RQ };
	const struct skua_create_cq_req cq_req = { (uintptr_t)self->mem + 4096, RECORDS + 64, 4, 0 };
	const struct skua_create_srq_req srq_req = SRQ_REQ;
	const struct skua_create_wq_req wq_req = {
		.rq_addr = (uintptr_t)self->mem + 12288, .rq_dbr_addr = RECORDS + 192, .log_rq_size = 4,
		.log_rq_stride = 5,
	};
	const struct ib_uverbs_create_cq cq = { .response = 8, .cqe = 16, .comp_channel = -1 };
	const struct ib_uverbs_create_srq srq = {
		.response = 8, .pd_handle = self->pd, .max_wr = 16, .max_sge = 1,
	};
	const struct ib_uverbs_create_qp qp = {
		.response = 8, .pd_handle = self->pd, .send_cq_handle = self->cq, .recv_cq_handle = self->cq,
		.qp_type = IBV_QPT_RC,
	};
	const struct ib_uverbs_ex_create_wq wq = {
		.wq_type = IBV_WQT_RQ, .pd_handle = self->pd, .cq_handle = self->cq, .max_wr = 16, .max_sge = 1,
	};
	struct ib_uverbs_ex_destroy_wq destroy_wq = {};
	uint32_t handle;

	ASSERT_EQ(0, raw_alloc_pd(self->fd, &handle));
	ASSERT_EQ(0, raw_dealloc_pd(self->fd, handle));
	ASSERT_EQ(EFAULT, raw_write(self->fd, IB_USER_VERBS_CMD_CREATE_CQ, &cq, sizeof(cq), &cq_req, sizeof(cq_req),
				    sizeof(struct ib_uverbs_create_cq_resp)));
	EXPECT_NE(0, raw_destroy_cq(self->fd, handle));
	ASSERT_EQ(EFAULT, raw_write(self->fd, IB_USER_VERBS_CMD_CREATE_SRQ, &srq, sizeof(srq), &srq_req,
				    sizeof(srq_req), sizeof(struct ib_uverbs_create_srq_resp)));
	EXPECT_NE(0, raw_destroy_srq(self->fd, handle));
	ASSERT_EQ(EFAULT, raw_write(self->fd, IB_USER_VERBS_CMD_CREATE_QP, &qp, sizeof(qp), &qp_req, sizeof(qp_req),
				    sizeof(struct ib_uverbs_create_qp_resp)));
	EXPECT_NE(0, raw_destroy_qp(self->fd, handle));
	ASSERT_EQ(EFAULT, raw_write_ex(self->fd, IB_USER_VERBS_EX_CMD_CREATE_WQ, &wq, sizeof(wq), &wq_req,
				       sizeof(wq_req), (void *)8, sizeof(struct ib_uverbs_ex_create_wq_resp)));
	destroy_wq.wq_handle = handle;
	EXPECT_NE(0, raw_invoke(self->fd, IB_USER_VERBS_EX_CMD_DESTROY_WQ | IB_USER_VERBS_CMD_FLAG_EXTENDED, &destroy_wq,
				sizeof(destroy_wq), NULL, 0, sizeof(struct ib_uverbs_ex_destroy_wq_resp)));
}

TEST_F(commands, alloc_mw)
{
	static const struct {
		const char *name;
		uint8_t type;
		uint64_t drv;
		size_t size;
		int err;
	} rows[] = {
		{ "type 1", 1, 0, 0, 0 },
		{ "type 2", 2, 0, 0, 0 },
		{ "with an empty tail", 2, 0, 8, 0 },
		{ "with a tail", 2, 1, 8, EOPNOTSUPP },
		{ "no type", 0, 0, 0, EINVAL },
		{ "type 3", 3, 0, 0, EINVAL },
		{ "type 255", 255, 0, 0, EINVAL },
	};

	for EACH(row, rows) {
		uint32_t handle;
		int err = raw_alloc_mw(self->fd, self->pd, row->type, &row->drv, row->size, &handle);

		GAVE(row->err, err, row);
		if (!err)
			ASSERT_EQ(0, raw_dealloc_mw(self->fd, handle));
	}
}

/* DM-6: what the provider never asks for. */
TEST_F(commands, dm_copy)
{
	struct ibv_context *context = self->s[0].context;
	struct ibv_alloc_dm_attr alloc = { .length = 64 };
	struct ibv_dm *dm = ibv_alloc_dm(context, &alloc);
	const uint64_t mem = (uintptr_t)self->mem;
	const size_t whole = sizeof(struct skua_dm_copy_req);
	const struct {
		const char *name;
		struct { struct skua_dm_copy_req req; uint64_t tail; } in;
		size_t size;
		int err;
	} rows[] = {
		{ "right", { { mem, 0, 64, SKUA_DM_COPY_TO_DM, 0 } }, whole, 0 },
		{ "back", { { mem, 0, 64, SKUA_DM_COPY_FROM_DM, 0 } }, whole, 0 },
		{ "no direction", { { mem, 0, 64, 2, 0 } }, whole, EINVAL },
		{ "a direction far off", { { mem, 0, 64, 0x100, 0 } }, whole, EINVAL },
		{ "comp_mask", { { mem, 0, 64, 0, 1 } }, whole, EOPNOTSUPP },
		{ "with a longer, empty tail", { { mem, 0, 64, 0, 0 } }, whole + 8, 0 },
		{ "with a tail", { { mem, 0, 64, 0, 0 }, 1 }, whole + 8, EOPNOTSUPP },
		{ "too short", { { mem, 0, 64, 0, 0 } }, whole - 4, EINVAL },
		{ "empty", { { mem, 0, 64, 0, 0 } }, 0, EINVAL },
	};
	const struct { const char *name; } other = { "of another context" }, none = { "of no DM" };

	ASSERT_NE(NULL, dm);
	for EACH(row, rows)
		GAVE(row->err, raw_dm_copy(context->cmd_fd, dm->handle, &row->in, row->size), row);
	GAVE(ENOENT, raw_dm_copy(self->fd, dm->handle, &rows[0].in, whole), &other);
	GAVE(ENOENT, raw_dm_copy(context->cmd_fd, dm->handle + 1000, &rows[0].in, whole), &none);
	ASSERT_EQ(0, ibv_free_dm(dm));
}

/* What the kernel would do for programs of other devices, on the queues of its own. */
TEST_F(commands, data_path_by_system_calls)
{
	const struct {
		const char *name;
		unsigned int command;
	} rows[] = {
		{ "poll_cq", IB_USER_VERBS_CMD_POLL_CQ },
		{ "req_notify_cq", IB_USER_VERBS_CMD_REQ_NOTIFY_CQ },
		{ "post_send", IB_USER_VERBS_CMD_POST_SEND },
		{ "post_recv", IB_USER_VERBS_CMD_POST_RECV },
		{ "peek_cq", IB_USER_VERBS_CMD_PEEK_CQ },
		{ "query_mr", IB_USER_VERBS_CMD_QUERY_MR },
	};
	uint32_t resp[64];
	struct { uint64_t response; uint32_t handle, words[15]; } cmd = {
		.response = (uintptr_t)resp, .handle = self->cq, .words = { 1 },
	};

	for EACH(row, rows)
		GAVE(EOPNOTSUPP, raw_write(self->fd, row->command, &cmd, sizeof(cmd), NULL, 0,
					   sizeof(resp)), row);
}

TEST_F(commands, malformed_commands)
{
	uint32_t resp[64];
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_alloc_pd cmd;
	} command = { .hdr = { IB_USER_VERBS_CMD_ALLOC_PD, sizeof(command) / 4, 16 } };
	const struct {
		const char *name;
		struct ib_uverbs_cmd_hdr hdr;
		size_t size;
		int err;
	} rows[] = {
		{ "nothing", command.hdr, 0, EINVAL },
		{ "half a header", command.hdr, 4, EINVAL },
		{ "a header", command.hdr, 8, EINVAL },
		{ "shorter than it says", command.hdr, sizeof(command) - 4, EINVAL },
		{ "longer than it says", { IB_USER_VERBS_CMD_ALLOC_PD, 3, 16 }, sizeof(command), EINVAL },
		{ "no such command", { 99, sizeof(command) / 4, 16 }, sizeof(command), EOPNOTSUPP },
		{ "a second context", { IB_USER_VERBS_CMD_GET_CONTEXT, sizeof(command) / 4, 64 },
		  sizeof(command), EINVAL },
	};

	command.cmd.response = (uintptr_t)resp;
	for EACH(row, rows) {
		command.hdr = row->hdr;
		GAVE(row->err, write(self->fd, &command, row->size) < 0 ? errno : 0, row);
	}
}

TEST_HARNESS_MAIN
