// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Extended reliable connections: domains, and QPs of type XRC_RECV, which have no queues here. SRQs of a domain are in
 * srq.c, and QPs of type XRC_SEND in qp.c.
 */
#include <errno.h>
#include <stdlib.h>

#include "skua.h"
#include "skua-abi.h"

struct ibv_xrcd *skua_open_xrcd(struct ibv_context *ibv_ctx, struct ibv_xrcd_init_attr *attr)
{
	struct ib_uverbs_open_xrcd_resp resp = {};
	struct ibv_open_xrcd cmd = {};
	struct verbs_xrcd *xrcd;
	int err;

	xrcd = calloc(1, sizeof(*xrcd));
	if (!xrcd)
		return NULL;
	err = ibv_cmd_open_xrcd(ibv_ctx, xrcd, sizeof(*xrcd), attr, &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (err) {
		free(xrcd);
		errno = err;
		return NULL;
	}
	return &xrcd->xrcd;
}

int skua_close_xrcd(struct ibv_xrcd *ibv_xrcd)
{
	struct verbs_xrcd *xrcd = container_of(ibv_xrcd, struct verbs_xrcd, xrcd);
	int err;

	err = ibv_cmd_close_xrcd(xrcd);
	if (err)
		return err;
	free(xrcd);
	return 0;
}

/* Others may use it after this process, so neither the kernel nor the device learns an address here. */
struct ibv_qp *skua_create_xrc_recv_qp(struct ibv_context *ibv_ctx, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp_init_attr_ex made = {
		.qp_context = attr->qp_context, .qp_type = attr->qp_type,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = attr->xrcd,
	};
	struct skua_context *ctx = to_skua_context(ibv_ctx);
	struct ib_uverbs_create_qp_resp resp = {};
	struct ibv_create_qp cmd = {};
	struct skua_qp *qp;
	int err;

	if (!skua_has_xrc(ctx)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	qp = skua_qp_new();
	if (!qp)
		return NULL;
	skua_qp_init_locks(qp, true);
	err = ibv_cmd_create_qp_ex(ibv_ctx, &qp->vqp, &made, &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (err) {
		free(qp);
		errno = err;
		return NULL;
	}
	attr->cap = qp->cap;
	return &qp->vqp.qp;
}

struct ibv_qp *skua_open_qp(struct ibv_context *ibv_ctx, struct ibv_qp_open_attr *attr)
{
	struct ib_uverbs_create_qp_resp resp = {};
	struct ibv_open_qp cmd = {};
	struct skua_qp *qp;
	int err;

	qp = skua_qp_new();
	if (!qp)
		return NULL;
	skua_qp_init_locks(qp, true);
	err = ibv_cmd_open_qp(ibv_ctx, &qp->vqp, sizeof(qp->vqp), attr, &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (err) {
		free(qp);
		errno = err;
		return NULL;
	}
	return &qp->vqp.qp;
}
