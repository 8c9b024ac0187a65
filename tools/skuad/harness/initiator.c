// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "harness/initiator.h"

struct skua_cmd xrc_ini_cmd(struct node *n)
{
	struct skua_cmd cmd = create_qp_cmd(n);

	cmd.create_qp.type = SKUA_QPT_XRC_INI;
	cmd.create_qp.recv_cqn = 0;
	cmd.create_qp.log_rq_size = 0;
	cmd.create_qp.log_rq_stride = 0;
	cmd.create_qp.rq_dbr_addr = 0;
	cmd.create_qp.rq = (struct skua_pagelist){ 0 };
	return cmd;
}

struct skua_cmd xrc_tgt_cmd(uint32_t xrcdn)
{
	struct skua_cmd cmd = CMD(SKUA_CMD_CREATE_QP, .create_qp = {
		.type = SKUA_QPT_XRC_TGT, .xrcdn = htole32(xrcdn), .qp_handle = htole64(QP_HANDLE) });

	return cmd;
}

struct skua_cmd xrc_ini_rtr_cmd(uint32_t qpn, const struct node *peer, uint32_t target)
{
	struct skua_cmd cmd = rtr_cmd(qpn, peer, target);

	cmd.modify_qp.mask &= htole32(~(uint32_t)(SKUA_QP_ATTR_MAX_DEST_RD_ATOMIC | SKUA_QP_ATTR_MIN_RNR_TIMER));
	return cmd;
}

struct skua_cmd xrc_tgt_rts_cmd(uint32_t qpn)
{
	struct skua_cmd cmd = rts_cmd(qpn);

	cmd.modify_qp.mask = htole32(SKUA_QP_ATTR_STATE | SKUA_QP_ATTR_TIMEOUT | SKUA_QP_ATTR_SQ_PSN);
	return cmd;
}
