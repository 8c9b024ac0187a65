// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A context and a PD, and what tests create in them. */
#include "kernel.h"
#include "objects.h"

static struct skua_device device = { .page_size = 4096 };

struct skua_context ctx = {
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
struct skua_pd pd = { .users = 1 };
struct skua_info_page info;
uint64_t db_page[SKUA_PAGE_SIZE / 8];

int setup(void **state)
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

int teardown(void **state)
{
	return dontfork || pd.users != 1;
}

struct ibv_cq *make_cq(int cqe)
{
	return skua_create_cq(&ctx.vctx.context, cqe, NULL, 0);
}

struct ibv_qp *make_qp_of(enum ibv_qp_type type, struct ibv_cq *send_cq, struct ibv_cq *recv_cq,
			  struct ibv_qp_cap *cap)
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

struct ibv_qp *make_qp(struct ibv_cq *send_cq, struct ibv_cq *recv_cq, struct ibv_qp_cap *cap)
{
	return make_qp_of(IBV_QPT_RC, send_cq, recv_cq, cap);
}

struct fake_cq device_of(struct ibv_cq *ibv_cq)
{
	struct skua_cq_ring *ring = &to_skua_cq(ibv_cq)->ring;

	return (struct fake_cq) { .cqes = ring->cqes, .dbr = ring->dbr, .size = ring->size };
}

void complete(struct fake_cq *dev, struct ibv_qp *qp, uint8_t opcode)
{
	fake_cq_write(dev, (struct skua_cqe) {
		.qp_handle = htole64((uintptr_t)to_skua_qp(qp)),
		.qpn = htole32(qp->qp_num),
		.opcode = opcode,
	});
}
