// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Raw uverbs commands with handles that they cannot have: of objects that never were, that are no more, that are of
 * another kind, or that are another process's. After each, this process transfers data over a pair of QPs that the
 * provider made. With the right handle, each command reaches the driver: so it is the handle that is refused.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pair.h"
#include "raw.h"
#include "rows.h"

enum kind { PD, CQ, QP, MR, MW, SRQ, XRCD, DM, WQ, TABLE, FLOW, KINDS };

#define MEM (64 * 1024)		/* queues; the last page: records */

/* One opening of the device, and an object of each kind in it. */
struct opening {
	int fd;
	uint8_t *mem;
	uint32_t handles[KINDS];
	uint32_t target, target_qpn;	/* a QP of the domain */
};

static uint64_t page(const struct opening *o, unsigned int n)
{
	return (uintptr_t)o->mem + n * 4096;
}

static uint64_t record(const struct opening *o, unsigned int n)
{
	return (uintptr_t)o->mem + MEM - 4096 + n * 64;
}

/* The calls: each has one handle from its caller. Where it takes others, too, they are right. */

static int create_ah(struct opening *o, uint32_t pd)
{
	struct { struct ib_uverbs_create_ah_resp core; struct skua_create_ah_resp drv; } resp;
	/* A group needs no way to be found. */
	struct ib_uverbs_create_ah cmd = {
		.response = (uintptr_t)&resp, .pd_handle = pd,
		.attr = { .is_global = 1, .port_num = 1,
			  .grh = { .dgid = { [10] = 0xff, [11] = 0xff, 239, 1, 2, 3 }, .sgid_index = 1 } },
	};

	return raw_write(o->fd, IB_USER_VERBS_CMD_CREATE_AH, &cmd, sizeof(cmd), NULL, 0, sizeof(resp));
}

static int dealloc_pd(struct opening *o, uint32_t pd) { return raw_dealloc_pd(o->fd, pd); }

static int reg_mr(struct opening *o, uint32_t pd)
{
	uint32_t mr;

	return raw_reg_mr(o->fd, pd, o->mem, 4096, 0, &mr);
}

static int rereg_mr_to(struct opening *o, uint32_t mr, uint32_t pd)
{
	struct ib_uverbs_rereg_mr_resp resp;
	struct ib_uverbs_rereg_mr cmd = {
		.response = (uintptr_t)&resp, .mr_handle = mr, .flags = IBV_REREG_MR_CHANGE_PD, .pd_handle = pd,
	};

	return raw_write(o->fd, IB_USER_VERBS_CMD_REREG_MR, &cmd, sizeof(cmd), NULL, 0, sizeof(resp));
}

static int rereg_mr(struct opening *o, uint32_t mr) { return rereg_mr_to(o, mr, o->handles[PD]); }
static int rereg_mr_pd(struct opening *o, uint32_t pd) { return rereg_mr_to(o, o->handles[MR], pd); }
static int dereg_mr(struct opening *o, uint32_t mr) { return raw_dereg_mr(o->fd, mr); }

static int advise_mr(struct opening *o, uint32_t pd)
{
	const struct ib_uverbs_sge sge = { (uintptr_t)o->mem, 4096, 0 };

	/* No such advice: the driver says so. */
	return raw_advise_mr(o->fd, pd, 99, &sge);
}

static int alloc_mw(struct opening *o, uint32_t pd)
{
	uint32_t mw;

	return raw_alloc_mw(o->fd, pd, IBV_MW_TYPE_1, NULL, 0, &mw);
}

static int dealloc_mw(struct opening *o, uint32_t mw) { return raw_dealloc_mw(o->fd, mw); }

static int reg_dm_mr(struct opening *o, uint32_t dm)
{
	uint32_t mr;

	return raw_reg_dm_mr(o->fd, o->handles[PD], dm, &mr);
}

static int reg_dm_mr_pd(struct opening *o, uint32_t pd)
{
	uint32_t mr;

	return raw_reg_dm_mr(o->fd, pd, o->handles[DM], &mr);
}

static int dm_copy(struct opening *o, uint32_t dm)
{
	const struct skua_dm_copy_req req = { (uintptr_t)o->mem, 0, 64, SKUA_DM_COPY_TO_DM, 0 };

	return raw_dm_copy(o->fd, dm, &req, sizeof(req));
}

static int free_dm(struct opening *o, uint32_t dm) { return raw_free_dm(o->fd, dm); }

static int resize_cq(struct opening *o, uint32_t cq)
{
	const struct skua_resize_cq_req req = { page(o, 5), 1, 0 };

	return raw_resize_cq(o->fd, cq, 2, &req, sizeof(req));
}

static int modify_cq(struct opening *o, uint32_t cq)
{
	const struct ib_uverbs_ex_modify_cq cmd = {
		.cq_handle = cq, .attr_mask = IBV_CQ_ATTR_MODERATE, .attr = { 1, 1 },
	};

	return raw_write_ex(o->fd, IB_USER_VERBS_EX_CMD_MODIFY_CQ, &cmd, sizeof(cmd), NULL, 0, NULL, 0);
}

static int destroy_cq(struct opening *o, uint32_t cq) { return raw_destroy_cq(o->fd, cq); }

static const struct skua_create_qp_req no_queues = { .flags = SKUA_CREATE_QP_NO_SQ | SKUA_CREATE_QP_NO_RQ };

static int create_qp_with(struct opening *o, struct raw_qp qp)
{
	uint32_t handle;

	if (!qp.cmd.qp_type)
		qp.cmd.qp_type = IBV_QPT_RC;
	return raw_create_qp(o->fd, &qp, &no_queues, sizeof(no_queues), &handle);
}

static int create_qp(struct opening *o, uint32_t pd)
{
	return create_qp_with(o, (struct raw_qp){ pd, o->handles[CQ], o->handles[CQ] });
}

static int create_qp_send_cq(struct opening *o, uint32_t cq)
{
	return create_qp_with(o, (struct raw_qp){ o->handles[PD], cq, o->handles[CQ] });
}

static int create_qp_recv_cq(struct opening *o, uint32_t cq)
{
	return create_qp_with(o, (struct raw_qp){ o->handles[PD], o->handles[CQ], cq });
}

static int create_qp_srq(struct opening *o, uint32_t srq)
{
	return create_qp_with(o, (struct raw_qp){
		o->handles[PD], o->handles[CQ], o->handles[CQ], { .is_srq = 1, .srq_handle = srq },
	});
}

/* Targets have neither PD nor CQs: where a PD's handle stands otherwise, the domain's does. */
static int create_qp_xrcd(struct opening *o, uint32_t xrcd)
{
	return create_qp_with(o, (struct raw_qp){ .pd = xrcd, .cmd.qp_type = IBV_QPT_XRC_RECV });
}

static int open_qp(struct opening *o, uint32_t xrcd)
{
	struct ib_uverbs_create_qp_resp resp;
	struct ib_uverbs_open_qp cmd = {
		.response = (uintptr_t)&resp, .pd_handle = xrcd, .qpn = o->target_qpn, .qp_type = IBV_QPT_XRC_RECV,
	};

	return raw_write(o->fd, IB_USER_VERBS_CMD_OPEN_QP, &cmd, sizeof(cmd), NULL, 0, sizeof(resp));
}

static int modify_qp(struct opening *o, uint32_t qp)
{
	struct ib_uverbs_modify_qp cmd = { .attr_mask = IBV_QP_STATE, .qp_state = IBV_QPS_RESET, .qp_handle = qp };

	return raw_write(o->fd, IB_USER_VERBS_CMD_MODIFY_QP, &cmd, sizeof(cmd), NULL, 0, 0);
}

static int query_qp(struct opening *o, uint32_t qp)
{
	struct ib_uverbs_query_qp_resp resp;
	struct ib_uverbs_query_qp cmd = { .response = (uintptr_t)&resp, .qp_handle = qp };

	return raw_write(o->fd, IB_USER_VERBS_CMD_QUERY_QP, &cmd, sizeof(cmd), NULL, 0, sizeof(resp));
}

static int destroy_qp(struct opening *o, uint32_t qp) { return raw_destroy_qp(o->fd, qp); }

static int create_srq(struct opening *o, uint32_t pd)
{
	const struct skua_create_srq_req req = {
		.buf_addr = page(o, 6), .dbr_addr = record(o, 6), .log_size = 4, .log_stride = 5,
	};
	uint32_t srq;

	return raw_create_srq(o->fd, pd, 16, &req, sizeof(req), &srq);
}

static int create_xrc_srq_with(struct opening *o, uint32_t pd, uint32_t cq, uint32_t xrcd)
{
	const struct skua_create_srq_req req = {
		.buf_addr = page(o, 7), .dbr_addr = record(o, 7), .log_size = 4, .log_stride = 5,
	};
	const struct ib_uverbs_create_xsrq srq = {
		.srq_type = IBV_SRQT_XRC, .pd_handle = pd, .cq_handle = cq, .xrcd_handle = xrcd, .max_wr = 16,
		.max_sge = 1,
	};
	uint32_t handle;

	return raw_create_xsrq(o->fd, &srq, &req, &handle);
}

static int create_xrc_srq(struct opening *o, uint32_t xrcd)
{
	return create_xrc_srq_with(o, o->handles[PD], o->handles[CQ], xrcd);
}

static int create_xrc_srq_pd(struct opening *o, uint32_t pd)
{
	return create_xrc_srq_with(o, pd, o->handles[CQ], o->handles[XRCD]);
}

static int create_xrc_srq_cq(struct opening *o, uint32_t cq)
{
	return create_xrc_srq_with(o, o->handles[PD], cq, o->handles[XRCD]);
}

static int modify_srq(struct opening *o, uint32_t srq)
{
	const struct ib_uverbs_modify_srq cmd = { .srq_handle = srq, .attr_mask = IBV_SRQ_LIMIT, .srq_limit = 1 };

	return raw_modify_srq(o->fd, &cmd, NULL, 0);
}

static int query_srq(struct opening *o, uint32_t srq)
{
	struct ib_uverbs_query_srq_resp resp;
	struct ib_uverbs_query_srq cmd = { .response = (uintptr_t)&resp, .srq_handle = srq };

	return raw_write(o->fd, IB_USER_VERBS_CMD_QUERY_SRQ, &cmd, sizeof(cmd), NULL, 0, sizeof(resp));
}

static int destroy_srq(struct opening *o, uint32_t srq) { return raw_destroy_srq(o->fd, srq); }
static int close_xrcd(struct opening *o, uint32_t xrcd) { return raw_close_xrcd(o->fd, xrcd); }

static int create_wq_with(struct opening *o, uint32_t pd, uint32_t cq, uint32_t *handle)
{
	const struct skua_create_wq_req req = {
		.rq_addr = page(o, 8), .rq_dbr_addr = record(o, 8), .log_rq_size = 4, .log_rq_stride = 5,
	};
	const struct ib_uverbs_ex_create_wq wq = {
		.wq_type = IBV_WQT_RQ, .pd_handle = pd, .cq_handle = cq, .max_wr = 16, .max_sge = 1,
	};

	return raw_create_wq(o->fd, &wq, &req, sizeof(req), handle);
}

static int create_wq(struct opening *o, uint32_t pd)
{
	uint32_t wq;

	return create_wq_with(o, pd, o->handles[CQ], &wq);
}

static int create_wq_cq(struct opening *o, uint32_t cq)
{
	uint32_t wq;

	return create_wq_with(o, o->handles[PD], cq, &wq);
}

static int modify_wq(struct opening *o, uint32_t wq)
{
	const struct ib_uverbs_ex_modify_wq cmd = {
		.attr_mask = IBV_WQ_ATTR_STATE, .wq_handle = wq, .wq_state = IBV_WQS_RDY,
	};

	return raw_write_ex(o->fd, IB_USER_VERBS_EX_CMD_MODIFY_WQ, &cmd, sizeof(cmd), NULL, 0, NULL, 0);
}

static int destroy_wq(struct opening *o, uint32_t wq) { return raw_destroy_wq(o->fd, wq); }

static int create_table(struct opening *o, uint32_t wq)
{
	uint32_t table;

	return raw_create_table(o->fd, wq, &table);
}

static int destroy_table(struct opening *o, uint32_t table) { return raw_destroy_table(o->fd, table); }

static int create_rss_qp_with(struct opening *o, uint32_t pd, uint32_t table)
{
	const struct skua_create_rss_qp_req req = {
		.fields = IBV_RX_HASH_SRC_IPV4, .function = IBV_RX_HASH_FUNC_TOEPLITZ, .key_len = sizeof(req.key),
	};
	const struct ib_uverbs_ex_create_qp cmd = {
		.pd_handle = pd, .qp_type = IBV_QPT_RAW_PACKET, .comp_mask = IB_UVERBS_CREATE_QP_MASK_IND_TABLE,
		.rwq_ind_tbl_handle = table,
	};
	struct ib_uverbs_ex_create_qp_resp resp;

	return raw_write_ex(o->fd, IB_USER_VERBS_EX_CMD_CREATE_QP, &cmd, sizeof(cmd), &req, sizeof(req), &resp,
			    sizeof(resp));
}

static int create_rss_qp(struct opening *o, uint32_t table) { return create_rss_qp_with(o, o->handles[PD], table); }
static int create_rss_qp_pd(struct opening *o, uint32_t pd) { return create_rss_qp_with(o, pd, o->handles[TABLE]); }

static int create_flow(struct opening *o, uint32_t qp)
{
	uint32_t flow;

	return raw_create_flow(o->fd, qp, &flow);
}

static int destroy_flow(struct opening *o, uint32_t flow) { return raw_destroy_flow(o->fd, flow); }

static const struct row {
	const char *name;
	int (*call)(struct opening *o, uint32_t handle);
	enum kind takes;
	int err;			/* with the right handle: others use the object, or there is no such advice */
} rows[] = {
	{ "create_ah", create_ah, PD },
	{ "reg_mr", reg_mr, PD },
	{ "rereg_mr", rereg_mr, MR },
	{ "rereg_mr, PD", rereg_mr_pd, PD },
	{ "dereg_mr", dereg_mr, MR },
	{ "advise_mr", advise_mr, PD, EOPNOTSUPP },
	{ "alloc_mw", alloc_mw, PD },
	{ "dealloc_mw", dealloc_mw, MW },
	{ "reg_dm_mr", reg_dm_mr, DM },
	{ "reg_dm_mr, PD", reg_dm_mr_pd, PD },
	{ "dm_copy", dm_copy, DM },
	{ "free_dm", free_dm, DM },
	{ "resize_cq", resize_cq, CQ },
	{ "modify_cq", modify_cq, CQ },
	{ "destroy_cq", destroy_cq, CQ, EBUSY },
	{ "create_qp", create_qp, PD },
	{ "create_qp, send CQ", create_qp_send_cq, CQ },
	{ "create_qp, receive CQ", create_qp_recv_cq, CQ },
	{ "create_qp, SRQ", create_qp_srq, SRQ },
	{ "create_qp, XRC domain", create_qp_xrcd, XRCD },
	{ "open_qp", open_qp, XRCD },
	{ "modify_qp", modify_qp, QP },
	{ "query_qp", query_qp, QP },
	{ "destroy_qp", destroy_qp, QP, EBUSY },
	{ "create_srq", create_srq, PD },
	{ "create_srq of XRC", create_xrc_srq, XRCD },
	{ "create_srq of XRC, PD", create_xrc_srq_pd, PD },
	{ "create_srq of XRC, CQ", create_xrc_srq_cq, CQ },
	{ "modify_srq", modify_srq, SRQ },
	{ "query_srq", query_srq, SRQ },
	{ "destroy_srq", destroy_srq, SRQ },
	{ "close_xrcd", close_xrcd, XRCD, EBUSY },
	{ "create_wq", create_wq, PD },
	{ "create_wq, CQ", create_wq_cq, CQ },
	{ "modify_wq", modify_wq, WQ },
	{ "destroy_wq", destroy_wq, WQ, EBUSY },
	{ "create_rwq_ind_table", create_table, WQ },
	{ "destroy_rwq_ind_table", destroy_table, TABLE },
	{ "create_qp, table", create_rss_qp, TABLE },
	{ "create_qp with a table, PD", create_rss_qp_pd, PD },
	{ "create_flow", create_flow, QP },
	{ "destroy_flow", destroy_flow, FLOW },
	{ "dealloc_pd", dealloc_pd, PD, EBUSY },
};

/* Others open it by its number. */
static int create_target(struct opening *o)
{
	struct { struct ib_uverbs_create_qp_resp core; struct skua_create_qp_resp drv; } resp = {};
	struct ib_uverbs_create_qp cmd = {
		.response = (uintptr_t)&resp, .pd_handle = o->handles[XRCD], .qp_type = IBV_QPT_XRC_RECV,
	};
	int err = raw_write(o->fd, IB_USER_VERBS_CMD_CREATE_QP, &cmd, sizeof(cmd), &no_queues, sizeof(no_queues),
			    sizeof(resp));

	o->target = resp.core.qp_handle;
	o->target_qpn = resp.core.qpn;
	return err;
}

/* One that receives frames. */
static int create_raw_qp(struct opening *o)
{
	const struct skua_create_qp_req req = {
		.rq_addr = page(o, 1), .rq_dbr_addr = record(o, 1), .log_rq_size = 4, .log_rq_stride = 5,
		.flags = SKUA_CREATE_QP_NO_SQ,
	};
	const struct raw_qp qp = {
		o->handles[PD], o->handles[CQ], o->handles[CQ],
		{ .max_recv_wr = 16, .max_recv_sge = 1, .qp_type = IBV_QPT_RAW_PACKET },
	};

	return raw_create_qp(o->fd, &qp, &req, sizeof(req), &o->handles[QP]);
}

static int make_objects(struct opening *o)
{
	const struct skua_create_cq_req cq = { page(o, 0), record(o, 0), 4, 0 };
	const struct skua_create_srq_req srq = {
		.buf_addr = page(o, 2), .dbr_addr = record(o, 2), .log_size = 4, .log_stride = 5,
	};
	uint32_t *h = o->handles;

	return raw_alloc_pd(o->fd, &h[PD]) ?: raw_create_cq(o->fd, 16, &cq, sizeof(cq), &h[CQ]) ?:
	       raw_reg_mr(o->fd, h[PD], o->mem, 4096, 0, &h[MR]) ?:
	       raw_alloc_mw(o->fd, h[PD], IBV_MW_TYPE_1, NULL, 0, &h[MW]) ?:
	       raw_create_srq(o->fd, h[PD], 16, &srq, sizeof(srq), &h[SRQ]) ?:
	       raw_open_xrcd(o->fd, NULL, 0, &h[XRCD]) ?: create_target(o) ?: raw_alloc_dm(o->fd, 64, &h[DM]) ?:
	       create_wq_with(o, h[PD], h[CQ], &h[WQ]) ?: raw_create_table(o->fd, h[WQ], &h[TABLE]) ?:
	       create_raw_qp(o) ?: raw_create_flow(o->fd, h[QP], &h[FLOW]);
}

/* 0 or an errno. The first @skipped numbers of handles are those of other PDs. */
static int opening_open(struct opening *o, unsigned int skipped)
{
	uint32_t pd;
	int err = 0;

	o->fd = raw_open("skua_0", NULL);
	if (o->fd < 0)
		return -o->fd;
	o->mem = mmap(NULL, MEM, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (o->mem == MAP_FAILED)
		return errno;
	while (skipped-- && !err)
		err = raw_alloc_pd(o->fd, &pd);
	return err ? err : make_objects(o);
}

/* The kernel destroys what is in it. */
static void opening_close(struct opening *o)
{
	close(o->fd);
	munmap(o->mem, MEM);
}

static int destroy_objects(struct opening *o)
{
	uint32_t *h = o->handles;

	return raw_destroy_flow(o->fd, h[FLOW]) ?: raw_destroy_qp(o->fd, h[QP]) ?: raw_destroy_table(o->fd, h[TABLE]) ?:
	       raw_destroy_wq(o->fd, h[WQ]) ?: raw_free_dm(o->fd, h[DM]) ?: raw_destroy_srq(o->fd, h[SRQ]) ?:
	       raw_destroy_qp(o->fd, o->target) ?: raw_close_xrcd(o->fd, h[XRCD]) ?: raw_dealloc_mw(o->fd, h[MW]) ?:
	       raw_dereg_mr(o->fd, h[MR]) ?: raw_destroy_cq(o->fd, h[CQ]) ?: raw_dealloc_pd(o->fd, h[PD]);
}

FIXTURE(handles) {
	struct side s[2];
	struct opening o;
};

FIXTURE_SETUP(handles)
{
	ASSERT_EQ(0, pair_open(self->s));
	ASSERT_EQ(0, opening_open(&self->o, 0));
}

FIXTURE_TEARDOWN(handles)
{
	opening_close(&self->o);
	pair_close(self->s);
}

/* ENOENT: there is none. EINVAL: it is of another kind; or it is to be an XRC domain, for which the core says no more. */
static bool no_such_object(int err)
{
	return err == ENOENT || err == EINVAL;
}

#define NO_OBJECT(handle, row) do {						\
	uint32_t handle_ = (handle);						\
	int err_ = (row)->call(&self->o, handle_);				\
										\
	EXPECT_TRUE(no_such_object(err_)) {					\
		TH_LOG("%s %u: %s", (row)->name, handle_, strerror(err_));	\
	}									\
	ASSERT_TRUE(pair_transfer(self->s));					\
} while (0)

TEST_F(handles, right)
{
	for EACH(row, rows) {
		struct opening o;

		ASSERT_EQ(0, opening_open(&o, 0));
		GAVE(row->err, row->call(&o, o.handles[row->takes]), row);
		opening_close(&o);
	}
}

TEST_F(handles, of_nothing)
{
	static const uint32_t wrong[] = { 12345, 0x7fffffff, 0x80000000, UINT32_MAX };

	for EACH(row, rows)
		for EACH(handle, wrong)
			NO_OBJECT(*handle, row);
}

TEST_F(handles, of_another_kind)
{
	for EACH(row, rows)
		for (int kind = 0; kind < KINDS; kind++)
			if (kind != (int)row->takes)
				NO_OBJECT(self->o.handles[kind], row);
}

TEST_F(handles, that_are_stale)
{
	struct opening gone = self->o;

	ASSERT_EQ(0, make_objects(&gone));
	ASSERT_EQ(0, destroy_objects(&gone));
	for EACH(row, rows)
		NO_OBJECT(gone.handles[row->takes], row);
}

/*
 * Another process, with an opening of its own, reaches nothing of ours by our handles. These are larger than those of
 * its own objects, which the calls take besides.
 */
TEST_F(handles, of_another_process)
{
	struct opening ours;
	int status;
	pid_t pid;

	ASSERT_EQ(0, opening_open(&ours, 64));
	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		struct opening o;

		if (opening_open(&o, 0))
			_exit(255);
		for EACH(row, rows)
			if (!no_such_object(row->call(&o, ours.handles[row->takes])))
				_exit(1 + (int)(row - rows));
		_exit(0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_TRUE(WIFEXITED(status));
	ASSERT_EQ(0, WEXITSTATUS(status)) {
		TH_LOG("row %d", WEXITSTATUS(status));
	}
	ASSERT_TRUE(pair_transfer(self->s));
	ASSERT_EQ(0, destroy_objects(&ours));
	opening_close(&ours);
}

TEST_HARNESS_MAIN
