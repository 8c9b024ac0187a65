// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What `rdma resource show` tells of objects besides what the core knows: with -dd the driver's
 * details, with -r the attributes of a QP or an SRQ as the device has them (struct skua_qp_attr,
 * struct skua_srq_attr). The core asks no driver for details of PDs and contexts.
 */
#include <rdma/rdma_netlink.h>
#include <rdma/restrack.h>

#include <linux/skua/command.h>

#include "cq.h"
#include "mr.h"
#include "qp.h"
#include "restrack.h"
#include "skua_ib.h"
#include "srq.h"

/**
 * struct skua_ib_detail - a detail of an object
 * @name: of the detail
 * @value: unless it is text
 * @text: or NULL
 */
struct skua_ib_detail {
	const char *name;
	u32 value;
	const char *text;
};

static int skua_ib_put_detail(struct sk_buff *msg, const struct skua_ib_detail *detail)
{
	if (detail->text)
		return rdma_nl_put_driver_string(msg, detail->name, detail->text);
	return rdma_nl_put_driver_u32(msg, detail->name, detail->value);
}

static int skua_ib_put_details(struct sk_buff *msg, const struct skua_ib_detail *details,
			       unsigned int count)
{
	struct nlattr *table;

	table = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	if (!table)
		return -EMSGSIZE;
	while (count--) {
		if (skua_ib_put_detail(msg, details++)) {
			nla_nest_cancel(msg, table);
			return -EMSGSIZE;
		}
	}
	nla_nest_end(msg, table);
	return 0;
}

int skua_ib_fill_res_qp_entry(struct sk_buff *msg, struct ib_qp *ibqp)
{
	const struct skua_ib_qp *qp = to_skua_ib_qp(ibqp);
	const struct ib_qp_cap *cap = &qp->cap;
	const struct skua_ib_detail details[] = {
		{ "send_cqn", qp->send_cqn },
		{ "recv_cqn", qp->recv_cqn },
		{ "max_send_wr", cap->max_send_wr },
		{ "max_recv_wr", cap->max_recv_wr },
		{ "max_send_sge", cap->max_send_sge },
		{ "max_recv_sge", cap->max_recv_sge },
		{ "max_inline", cap->max_inline_data },
	};

	return skua_ib_put_details(msg, details, ARRAY_SIZE(details));
}

int skua_ib_fill_res_qp_entry_raw(struct sk_buff *msg, struct ib_qp *ibqp)
{
	u32 qpn = to_skua_ib_qp(ibqp)->watch.number;
	struct skua_qp_attr attr;
	int err;

	err = skua_cmd_query_qp(to_skua_dev(ibqp->device), qpn, &attr);
	if (err)
		return err;
	return nla_put(msg, RDMA_NLDEV_ATTR_RES_RAW, sizeof(attr), &attr);
}

int skua_ib_fill_res_cq_entry(struct sk_buff *msg, struct ib_cq *ibcq)
{
	const struct skua_ib_detail details[] = {
		{ "cqn", to_skua_ib_cq(ibcq)->watch.cqn },
	};

	return skua_ib_put_details(msg, details, ARRAY_SIZE(details));
}

static const char *skua_ib_mr_kind(const struct skua_ib_mr *mr)
{
	switch (mr->ibmr.type) {
	case IB_MR_TYPE_USER:
		if (mr->odp)
			return "on-demand";
		return mr->is_dmabuf ? "dma-buf" : "pinned";
	case IB_MR_TYPE_DM:
		return "device-memory";
	case IB_MR_TYPE_DMA:
		return "all-memory";
	default:
		return "fast-registration";
	}
}

int skua_ib_fill_res_mr_entry(struct sk_buff *msg, struct ib_mr *ibmr)
{
	const struct skua_ib_mr *mr = to_skua_ib_mr(ibmr);
	const struct skua_ib_detail details[] = {
		{ "kind", .text = skua_ib_mr_kind(mr) },
		{ "pinned_pages", READ_ONCE(mr->pinned_pages) },
		{ "max_fast_entries", mr->capacity },
	};

	return skua_ib_put_details(msg, details, ARRAY_SIZE(details));
}

int skua_ib_fill_res_srq_entry(struct sk_buff *msg, struct ib_srq *ibsrq)
{
	const struct skua_ib_srq *srq = to_skua_ib_srq(ibsrq);
	const struct skua_ib_detail details[] = {
		{ "srqn", srq->watch.number },
		{ "max_wr", srq->max_wr },
		{ "max_sge", srq->max_sge },
	};

	return skua_ib_put_details(msg, details, ARRAY_SIZE(details));
}

int skua_ib_fill_res_srq_entry_raw(struct sk_buff *msg, struct ib_srq *ibsrq)
{
	u32 srqn = to_skua_ib_srq(ibsrq)->watch.number;
	struct skua_srq_attr attr;
	int err;

	err = skua_cmd_query_srq(to_skua_dev(ibsrq->device), srqn, &attr);
	if (err)
		return err;
	return nla_put(msg, RDMA_NLDEV_ATTR_RES_RAW, sizeof(attr), &attr);
}
