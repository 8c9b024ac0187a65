// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Commands, each a typed function: the only place where command bodies are filled in.
 */
#include <linux/etherdevice.h>

#include "cmd.h"
#include "skua.h"

static void skua_cmd_begin(struct skua_cmd *cmd, enum skua_cmd_opcode opcode)
{
	memset(cmd, 0, sizeof(*cmd));
	cmd->hdr.opcode = cpu_to_le16(opcode);
}

static void skua_cmd_begin_port(struct skua_cmd *cmd, enum skua_cmd_opcode opcode)
{
	skua_cmd_begin(cmd, opcode);
	cmd->hdr.port = 1;
}

static int skua_cmd_query(struct skua_nic *nic, struct skua_cmd *cmd, void *out, u32 size)
{
	return skua_cmdq_exec(nic, cmd, out, size, NULL);
}

static int skua_cmd_create(struct skua_nic *nic, struct skua_cmd *cmd, u32 *number)
{
	struct skua_cmd_result result;
	int err;

	err = skua_cmdq_exec(nic, cmd, NULL, 0, &result);
	if (!err)
		*number = result.number;
	return err;
}

/* A device that has lost track of its objects is taken out of service, and cut off from memory. */
static void skua_cmd_give_up(struct skua_nic *nic, const char *why)
{
	skua_health_dead(nic, why);
	skua_health_wait_fenced(nic);
}

/*
 * Destroying does not fail, and the object's memory is safe when this returns 0. -EBUSY: a program
 * still uses the object in a way that the kernel does not see.
 */
static int skua_cmd_try_destroy(struct skua_nic *nic, enum skua_cmd_opcode opcode, u32 number)
{
	struct skua_cmd cmd;
	int err;

	skua_cmd_begin(&cmd, opcode);
	cmd.object.number = cpu_to_le32(number);
	err = skua_cmdq_exec(nic, &cmd, NULL, 0, NULL);
	if (err && err != -EBUSY)
		skua_cmd_give_up(nic, "it refused to destroy an object");
	return err == -EBUSY ? err : 0;
}

/* The same for an object whose users the kernel knows. */
static void skua_cmd_destroy(struct skua_nic *nic, enum skua_cmd_opcode opcode, u32 number)
{
	if (skua_cmd_try_destroy(nic, opcode, number))
		skua_cmd_give_up(nic, "it refused to destroy an object");
}

/*
 * What stops something without destroying it may be refused. But it succeeds on a dead device,
 * once that is fenced; and a device that fails to do it is dead.
 */
static int skua_cmd_stop(struct skua_nic *nic, struct skua_cmd *cmd)
{
	int err = skua_cmdq_exec(nic, cmd, NULL, 0, NULL);

	if (err != -EIO)
		return err;
	skua_cmd_give_up(nic, "it failed to stop what it was asked to");
	return 0;
}

int skua_cmd_query_device(struct skua_nic *nic, struct skua_limits *limits)
{
	struct skua_device_caps caps;
	struct skua_cmd cmd;
	int err;

	skua_cmd_begin(&cmd, SKUA_CMD_QUERY_DEVICE);
	err = skua_cmd_query(nic, &cmd, &caps, sizeof(caps));
	if (err)
		return err;

	memcpy(limits->guid, caps.guid, sizeof(limits->guid));
	limits->max_mr_size = le64_to_cpu(caps.max_mr_size);
	limits->max_pages = le64_to_cpu(caps.max_pages);
	limits->clock_khz = le32_to_cpu(caps.clock_khz);
	limits->fw_version = le32_to_cpu(caps.fw_version);
	limits->max_eq = le32_to_cpu(caps.max_eq);
	limits->max_pd = le32_to_cpu(caps.max_pd);
	limits->max_cq = le32_to_cpu(caps.max_cq);
	limits->max_qp = le32_to_cpu(caps.max_qp);
	limits->max_mr = le32_to_cpu(caps.max_mr);
	limits->max_cqe = le32_to_cpu(caps.max_cqe);
	limits->max_sq_blocks = le32_to_cpu(caps.max_sq_blocks);
	limits->max_rq_entries = le32_to_cpu(caps.max_rq_entries);
	limits->max_eqe = le32_to_cpu(caps.max_eqe);
	limits->num_db_pages = le32_to_cpu(caps.num_db_pages);
	limits->reserved_lkey = le32_to_cpu(caps.reserved_lkey);
	limits->max_msg_size = le32_to_cpu(caps.max_msg_size);
	limits->max_mcast_groups = le32_to_cpu(caps.max_mcast_groups);
	limits->max_mcast_qps = le32_to_cpu(caps.max_mcast_qps);
	limits->max_fast_pages = le32_to_cpu(caps.max_fast_pages);
	limits->max_fast_pieces = le32_to_cpu(caps.max_fast_pieces);
	limits->max_mw = le32_to_cpu(caps.max_mw);
	limits->max_srq = le32_to_cpu(caps.max_srq);
	limits->max_srq_entries = le32_to_cpu(caps.max_srq_entries);
	limits->flush_caps = le32_to_cpu(caps.flush_caps);
	limits->max_xrcd = le32_to_cpu(caps.max_xrcd);
	limits->max_dm = le64_to_cpu(caps.max_dm);
	limits->max_flow = le32_to_cpu(caps.max_flow);
	limits->max_rss = le32_to_cpu(caps.max_rss);
	limits->max_counter_set = le32_to_cpu(caps.max_counter_set);
	limits->min_rate = le32_to_cpu(caps.min_rate);
	limits->max_rate = le32_to_cpu(caps.max_rate);
	limits->ece_options = le32_to_cpu(caps.ece_options);
	limits->max_tso = le32_to_cpu(caps.max_tso);
	limits->max_tags = le32_to_cpu(caps.max_tags);
	limits->max_send_sge = le16_to_cpu(caps.max_send_sge);
	limits->max_recv_sge = le16_to_cpu(caps.max_recv_sge);
	limits->max_inline = le16_to_cpu(caps.max_inline);
	limits->max_rd_atomic = le16_to_cpu(caps.max_rd_atomic);
	limits->gid_table_len = le16_to_cpu(caps.gid_table_len);
	limits->pkey_table_len = le16_to_cpu(caps.pkey_table_len);
	limits->num_ports = caps.num_ports;
	limits->cmd_timeout = caps.cmd_timeout;
	return 0;
}

int skua_cmd_query_port(struct skua_dev *dev, struct skua_port_attr *attr)
{
	struct skua_cmd cmd;

	skua_cmd_begin_port(&cmd, SKUA_CMD_QUERY_PORT);
	return skua_cmd_query(to_skua_nic(dev), &cmd, attr, sizeof(*attr));
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_query_port, SKUA_NS);

int skua_cmd_set_port(struct skua_nic *nic, const struct skua_cmd_set_port *set)
{
	struct skua_cmd cmd;

	skua_cmd_begin_port(&cmd, SKUA_CMD_SET_PORT);
	cmd.set_port = *set;
	return skua_cmdq_exec(nic, &cmd, NULL, 0, NULL);
}

int skua_cmd_set_rss(struct skua_nic *nic, const struct skua_cmd_set_rss *rss)
{
	struct skua_cmd cmd;

	skua_cmd_begin_port(&cmd, SKUA_CMD_SET_RSS);
	cmd.set_rss = *rss;
	return skua_cmdq_exec(nic, &cmd, NULL, 0, NULL);
}

int skua_cmd_query_stats(struct skua_dev *dev, struct skua_stats *stats)
{
	struct skua_cmd cmd;

	skua_cmd_begin(&cmd, SKUA_CMD_QUERY_STATS);
	return skua_cmd_query(to_skua_nic(dev), &cmd, stats, sizeof(*stats));
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_query_stats, SKUA_NS);

int skua_cmd_set_gid(struct skua_dev *dev, u16 index, const u8 gid[16], const u8 mac[6], u16 vlan)
{
	struct skua_cmd cmd;

	skua_cmd_begin_port(&cmd, SKUA_CMD_SET_GID);
	memcpy(cmd.set_gid.gid, gid, sizeof(cmd.set_gid.gid));
	ether_addr_copy(cmd.set_gid.mac, mac);
	cmd.set_gid.vlan = cpu_to_le16(vlan);
	cmd.set_gid.index = cpu_to_le16(index);
	return skua_cmdq_exec(to_skua_nic(dev), &cmd, NULL, 0, NULL);
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_set_gid, SKUA_NS);

int skua_cmd_clear_gid(struct skua_dev *dev, u16 index)
{
	struct skua_cmd cmd;

	skua_cmd_begin_port(&cmd, SKUA_CMD_SET_GID);
	cmd.set_gid.index = cpu_to_le16(index);
	return skua_cmdq_exec(to_skua_nic(dev), &cmd, NULL, 0, NULL);
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_clear_gid, SKUA_NS);

int skua_cmd_create_eq(struct skua_nic *nic, const struct skua_cmd_create_eq *create, u32 *eqn)
{
	struct skua_cmd cmd;

	skua_cmd_begin(&cmd, SKUA_CMD_CREATE_EQ);
	cmd.create_eq = *create;
	return skua_cmd_create(nic, &cmd, eqn);
}

void skua_cmd_destroy_eq(struct skua_nic *nic, u32 eqn)
{
	skua_cmd_destroy(nic, SKUA_CMD_DESTROY_EQ, eqn);
}

int skua_cmd_create_pd(struct skua_dev *dev, u32 *pdn)
{
	struct skua_cmd cmd;

	skua_cmd_begin(&cmd, SKUA_CMD_CREATE_PD);
	return skua_cmd_create(to_skua_nic(dev), &cmd, pdn);
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_create_pd, SKUA_NS);

void skua_cmd_destroy_pd(struct skua_dev *dev, u32 pdn)
{
	skua_cmd_destroy(to_skua_nic(dev), SKUA_CMD_DESTROY_PD, pdn);
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_destroy_pd, SKUA_NS);

int skua_cmd_create_cq(struct skua_dev *dev, const struct skua_cq_params *params, u32 *cqn)
{
	struct skua_nic *nic = to_skua_nic(dev);
	struct skua_cmd cmd;

	skua_cmd_begin(&cmd, SKUA_CMD_CREATE_CQ);
	cmd.create_cq.eqn = cpu_to_le32(nic->comp_eqs[params->vector].eqn);
	cmd.create_cq.log_size = params->log_size;
	cmd.create_cq.db_page = cpu_to_le32(params->db_page);
	cmd.create_cq.dbr_addr = cpu_to_le64(params->dbr);
	cmd.create_cq.ring = *params->ring;
	return skua_cmd_create(nic, &cmd, cqn);
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_create_cq, SKUA_NS);

int skua_cmd_resize_cq(struct skua_dev *dev, u32 cqn, u8 log_size, const struct skua_pagelist *ring,
		       u32 *index)
{
	struct skua_cmd_result result;
	struct skua_cmd cmd;
	int err;

	skua_cmd_begin(&cmd, SKUA_CMD_RESIZE_CQ);
	cmd.resize_cq.cqn = cpu_to_le32(cqn);
	cmd.resize_cq.log_size = log_size;
	cmd.resize_cq.ring = *ring;
	err = skua_cmdq_exec(to_skua_nic(dev), &cmd, NULL, 0, &result);
	if (!err)
		*index = result.index;
	return err;
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_resize_cq, SKUA_NS);

int skua_cmd_modify_cq(struct skua_dev *dev, u32 cqn, u16 count, u16 period)
{
	struct skua_cmd cmd;

	skua_cmd_begin(&cmd, SKUA_CMD_MODIFY_CQ);
	cmd.modify_cq.cqn = cpu_to_le32(cqn);
	cmd.modify_cq.count = cpu_to_le16(count);
	cmd.modify_cq.period = cpu_to_le16(period);
	return skua_cmdq_exec(to_skua_nic(dev), &cmd, NULL, 0, NULL);
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_modify_cq, SKUA_NS);

void skua_cmd_destroy_cq(struct skua_dev *dev, u32 cqn)
{
	skua_cmd_destroy(to_skua_nic(dev), SKUA_CMD_DESTROY_CQ, cqn);
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_destroy_cq, SKUA_NS);

int skua_cmd_create_qp(struct skua_dev *dev, const struct skua_qp_params *params, u32 *qpn)
{
	struct skua_cmd_create_qp *create;
	struct skua_cmd cmd;

	skua_cmd_begin(&cmd, SKUA_CMD_CREATE_QP);
	create = &cmd.create_qp;
	create->pdn = cpu_to_le32(params->pdn);
	create->type = params->type;
	create->send_cqn = cpu_to_le32(params->send_cqn);
	create->recv_cqn = cpu_to_le32(params->recv_cqn);
	create->flags = cpu_to_le32(params->privileged ? SKUA_QP_PRIVILEGED : 0);
	create->db_page = cpu_to_le32(params->db_page);
	create->qp_handle = cpu_to_le64(params->handle);
	create->log_sq_blocks = params->log_sq_blocks;
	create->sq_dbr_addr = cpu_to_le64(params->sq_dbr);
	create->sq = *params->sq;
	create->log_rq_size = params->log_rq_size;
	create->log_rq_stride = params->log_rq_stride;
	create->rq_dbr_addr = cpu_to_le64(params->rq_dbr);
	create->rq = *params->rq;
	create->srqn = cpu_to_le32(params->srqn);
	create->xrcdn = cpu_to_le32(params->xrcdn);
	return skua_cmd_create(to_skua_nic(dev), &cmd, qpn);
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_create_qp, SKUA_NS);

int skua_cmd_modify_qp(struct skua_dev *dev, u32 qpn, u32 mask, const struct skua_qp_attr *attr)
{
	struct skua_cmd cmd;

	skua_cmd_begin(&cmd, SKUA_CMD_MODIFY_QP);
	cmd.modify_qp.qpn = cpu_to_le32(qpn);
	cmd.modify_qp.mask = cpu_to_le32(mask);
	cmd.modify_qp.attr = *attr;
	if (mask & SKUA_QP_ATTR_STATE &&
	    (attr->state == SKUA_QPS_RESET || attr->state == SKUA_QPS_ERR))
		return skua_cmd_stop(to_skua_nic(dev), &cmd);
	return skua_cmdq_exec(to_skua_nic(dev), &cmd, NULL, 0, NULL);
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_modify_qp, SKUA_NS);

int skua_cmd_query_qp(struct skua_dev *dev, u32 qpn, struct skua_qp_attr *attr)
{
	struct skua_cmd cmd;

	skua_cmd_begin(&cmd, SKUA_CMD_QUERY_QP);
	cmd.object.number = cpu_to_le32(qpn);
	return skua_cmd_query(to_skua_nic(dev), &cmd, attr, sizeof(*attr));
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_query_qp, SKUA_NS);

void skua_cmd_destroy_qp(struct skua_dev *dev, u32 qpn)
{
	skua_cmd_destroy(to_skua_nic(dev), SKUA_CMD_DESTROY_QP, qpn);
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_destroy_qp, SKUA_NS);

int skua_cmd_create_srq(struct skua_dev *dev, const struct skua_srq_params *params, u32 *srqn)
{
	struct skua_cmd cmd;

	skua_cmd_begin(&cmd, SKUA_CMD_CREATE_SRQ);
	cmd.create_srq.pdn = cpu_to_le32(params->pdn);
	cmd.create_srq.log_size = params->log_size;
	cmd.create_srq.log_stride = params->log_stride;
	cmd.create_srq.flags = cpu_to_le32(params->privileged ? SKUA_SRQ_PRIVILEGED : 0);
	cmd.create_srq.srq_handle = cpu_to_le64(params->handle);
	cmd.create_srq.dbr_addr = cpu_to_le64(params->dbr);
	cmd.create_srq.xrcdn = cpu_to_le32(params->xrcdn);
	cmd.create_srq.cqn = cpu_to_le32(params->cqn);
	cmd.create_srq.tags = cpu_to_le32(params->tags);
	cmd.create_srq.ring = *params->ring;
	return skua_cmd_create(to_skua_nic(dev), &cmd, srqn);
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_create_srq, SKUA_NS);

int skua_cmd_modify_srq(struct skua_dev *dev, u32 srqn, u32 mask, u32 limit, u8 log_size,
			const struct skua_pagelist *ring)
{
	struct skua_cmd cmd;

	skua_cmd_begin(&cmd, SKUA_CMD_MODIFY_SRQ);
	cmd.modify_srq.srqn = cpu_to_le32(srqn);
	cmd.modify_srq.mask = cpu_to_le32(mask);
	cmd.modify_srq.limit = cpu_to_le32(limit);
	if (mask & SKUA_SRQ_SET_RING) {
		cmd.modify_srq.log_size = log_size;
		cmd.modify_srq.ring = *ring;
	}
	return skua_cmdq_exec(to_skua_nic(dev), &cmd, NULL, 0, NULL);
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_modify_srq, SKUA_NS);

int skua_cmd_query_srq(struct skua_dev *dev, u32 srqn, struct skua_srq_attr *attr)
{
	struct skua_cmd cmd;

	skua_cmd_begin(&cmd, SKUA_CMD_QUERY_SRQ);
	cmd.object.number = cpu_to_le32(srqn);
	return skua_cmd_query(to_skua_nic(dev), &cmd, attr, sizeof(*attr));
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_query_srq, SKUA_NS);

void skua_cmd_destroy_srq(struct skua_dev *dev, u32 srqn)
{
	skua_cmd_destroy(to_skua_nic(dev), SKUA_CMD_DESTROY_SRQ, srqn);
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_destroy_srq, SKUA_NS);

int skua_cmd_create_xrcd(struct skua_dev *dev, u32 *xrcdn)
{
	struct skua_cmd cmd;

	skua_cmd_begin(&cmd, SKUA_CMD_CREATE_XRCD);
	return skua_cmd_create(to_skua_nic(dev), &cmd, xrcdn);
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_create_xrcd, SKUA_NS);

void skua_cmd_destroy_xrcd(struct skua_dev *dev, u32 xrcdn)
{
	skua_cmd_destroy(to_skua_nic(dev), SKUA_CMD_DESTROY_XRCD, xrcdn);
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_destroy_xrcd, SKUA_NS);

int skua_cmd_create_mr(struct skua_dev *dev, const struct skua_mr_params *params, u32 *key)
{
	struct skua_cmd cmd;

	skua_cmd_begin(&cmd, SKUA_CMD_CREATE_MR);
	cmd.create_mr.pdn = cpu_to_le32(params->pdn);
	cmd.create_mr.access = cpu_to_le32(params->access);
	cmd.create_mr.type = params->type;
	cmd.create_mr.capacity = cpu_to_le32(params->capacity);
	cmd.create_mr.iova = cpu_to_le64(params->iova);
	cmd.create_mr.length = cpu_to_le64(params->length);
	cmd.create_mr.dmn = cpu_to_le32(params->dmn);
	cmd.create_mr.dm_offset = cpu_to_le64(params->dm_offset);
	if (params->pages)
		cmd.create_mr.pages = *params->pages;
	return skua_cmd_create(to_skua_nic(dev), &cmd, key);
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_create_mr, SKUA_NS);

int skua_cmd_modify_mr(struct skua_dev *dev, u32 key, const struct skua_mr_params *params)
{
	struct skua_cmd cmd;

	skua_cmd_begin(&cmd, SKUA_CMD_MODIFY_MR);
	cmd.modify_mr.key = cpu_to_le32(key);
	cmd.modify_mr.mask = cpu_to_le32(params->change);
	cmd.modify_mr.pdn = cpu_to_le32(params->pdn);
	cmd.modify_mr.access = cpu_to_le32(params->access);
	cmd.modify_mr.iova = cpu_to_le64(params->iova);
	cmd.modify_mr.length = cpu_to_le64(params->length);
	if (params->pages)
		cmd.modify_mr.pages = *params->pages;
	return skua_cmdq_exec(to_skua_nic(dev), &cmd, NULL, 0, NULL);
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_modify_mr, SKUA_NS);

int skua_cmd_destroy_mr(struct skua_dev *dev, u32 key)
{
	return skua_cmd_try_destroy(to_skua_nic(dev), SKUA_CMD_DESTROY_MR, key);
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_destroy_mr, SKUA_NS);

void skua_cmd_invalidate_mr(struct skua_dev *dev, u32 key)
{
	struct skua_cmd cmd;

	skua_cmd_begin(&cmd, SKUA_CMD_INVALIDATE_MR);
	cmd.object.number = cpu_to_le32(key);
	if (skua_cmdq_exec(to_skua_nic(dev), &cmd, NULL, 0, NULL))
		skua_cmd_give_up(to_skua_nic(dev), "it refused to revoke a memory region");
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_invalidate_mr, SKUA_NS);

int skua_cmd_set_pages(struct skua_dev *dev, u32 key, u64 first, u32 count, dma_addr_t list)
{
	struct skua_cmd cmd;

	skua_cmd_begin(&cmd, SKUA_CMD_UPDATE_PAGES);
	cmd.update_pages.key = cpu_to_le32(key);
	cmd.update_pages.first = cpu_to_le64(first);
	cmd.update_pages.count = cpu_to_le64(count);
	cmd.update_pages.list = cpu_to_le64(list);
	return skua_cmdq_exec(to_skua_nic(dev), &cmd, NULL, 0, NULL);
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_set_pages, SKUA_NS);

void skua_cmd_drop_pages(struct skua_dev *dev, u32 key, u64 first, u64 count)
{
	struct skua_cmd cmd;

	skua_cmd_begin(&cmd, SKUA_CMD_UPDATE_PAGES);
	cmd.update_pages.key = cpu_to_le32(key);
	cmd.update_pages.first = cpu_to_le64(first);
	cmd.update_pages.count = cpu_to_le64(count);
	if (skua_cmdq_exec(to_skua_nic(dev), &cmd, NULL, 0, NULL))
		skua_cmd_give_up(to_skua_nic(dev), "it refused to give pages back");
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_drop_pages, SKUA_NS);

void skua_cmd_fault_resume(struct skua_dev *dev, u32 token, bool ok)
{
	struct skua_cmd cmd;

	skua_cmd_begin(&cmd, SKUA_CMD_FAULT_RESUME);
	cmd.fault_resume.token = cpu_to_le32(token);
	cmd.fault_resume.result = ok ? SKUA_PAGE_FAULT_RETRY : SKUA_PAGE_FAULT_FAIL;
	/* The QP may have ended the fault meanwhile (ODP-13). */
	skua_cmdq_exec(to_skua_nic(dev), &cmd, NULL, 0, NULL);
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_fault_resume, SKUA_NS);

int skua_cmd_create_mw(struct skua_dev *dev, u32 pdn, enum skua_mw_type type, u32 *key)
{
	struct skua_cmd cmd;

	skua_cmd_begin(&cmd, SKUA_CMD_CREATE_MW);
	cmd.create_mw.pdn = cpu_to_le32(pdn);
	cmd.create_mw.type = type;
	return skua_cmd_create(to_skua_nic(dev), &cmd, key);
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_create_mw, SKUA_NS);

void skua_cmd_destroy_mw(struct skua_dev *dev, u32 key)
{
	skua_cmd_destroy(to_skua_nic(dev), SKUA_CMD_DESTROY_MW, key);
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_destroy_mw, SKUA_NS);

int skua_cmd_alloc_dm(struct skua_dev *dev, u64 length, u8 log_align, u32 *dmn)
{
	struct skua_cmd cmd;

	skua_cmd_begin(&cmd, SKUA_CMD_ALLOC_DM);
	cmd.alloc_dm.length = cpu_to_le64(length);
	cmd.alloc_dm.log_align = log_align;
	return skua_cmd_create(to_skua_nic(dev), &cmd, dmn);
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_alloc_dm, SKUA_NS);

void skua_cmd_free_dm(struct skua_dev *dev, u32 dmn)
{
	skua_cmd_destroy(to_skua_nic(dev), SKUA_CMD_FREE_DM, dmn);
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_free_dm, SKUA_NS);

int skua_cmd_dm_copy(struct skua_dev *dev, u32 dmn, enum skua_dm_direction direction, u64 offset,
		     dma_addr_t dma, u32 len)
{
	struct skua_cmd cmd;

	skua_cmd_begin(&cmd, SKUA_CMD_DM_COPY);
	cmd.dm_copy.dmn = cpu_to_le32(dmn);
	cmd.dm_copy.length = cpu_to_le32(len);
	cmd.dm_copy.offset = cpu_to_le64(offset);
	cmd.dm_copy.addr = cpu_to_le64(dma);
	cmd.dm_copy.direction = direction;
	return skua_cmdq_exec(to_skua_nic(dev), &cmd, NULL, 0, NULL);
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_dm_copy, SKUA_NS);

static void skua_cmd_begin_mcast(struct skua_cmd *cmd, enum skua_cmd_opcode opcode, u32 qpn,
				 const u8 mgid[16])
{
	skua_cmd_begin(cmd, opcode);
	cmd->mcast.qpn = cpu_to_le32(qpn);
	memcpy(cmd->mcast.mgid, mgid, sizeof(cmd->mcast.mgid));
}

int skua_cmd_attach_mcast(struct skua_dev *dev, u32 qpn, const u8 mgid[16])
{
	struct skua_cmd cmd;

	skua_cmd_begin_mcast(&cmd, SKUA_CMD_ATTACH_MCAST, qpn, mgid);
	return skua_cmdq_exec(to_skua_nic(dev), &cmd, NULL, 0, NULL);
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_attach_mcast, SKUA_NS);

int skua_cmd_detach_mcast(struct skua_dev *dev, u32 qpn, const u8 mgid[16])
{
	struct skua_cmd cmd;

	skua_cmd_begin_mcast(&cmd, SKUA_CMD_DETACH_MCAST, qpn, mgid);
	return skua_cmd_stop(to_skua_nic(dev), &cmd);
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_detach_mcast, SKUA_NS);

int skua_cmd_create_counter_set(struct skua_dev *dev, u32 *number)
{
	struct skua_cmd cmd;

	skua_cmd_begin(&cmd, SKUA_CMD_CREATE_COUNTER_SET);
	return skua_cmd_create(to_skua_nic(dev), &cmd, number);
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_create_counter_set, SKUA_NS);

void skua_cmd_destroy_counter_set(struct skua_dev *dev, u32 number)
{
	skua_cmd_destroy(to_skua_nic(dev), SKUA_CMD_DESTROY_COUNTER_SET, number);
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_destroy_counter_set, SKUA_NS);

int skua_cmd_query_counter_set(struct skua_dev *dev, u32 number, struct skua_stats *stats)
{
	struct skua_cmd cmd;

	skua_cmd_begin(&cmd, SKUA_CMD_QUERY_COUNTER_SET);
	cmd.object.number = cpu_to_le32(number);
	return skua_cmd_query(to_skua_nic(dev), &cmd, stats, sizeof(*stats));
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_query_counter_set, SKUA_NS);

static void skua_cmd_begin_bind(struct skua_cmd *cmd, u32 qpn, u32 number)
{
	skua_cmd_begin(cmd, SKUA_CMD_BIND_COUNTER_SET);
	cmd->bind_set.qpn = cpu_to_le32(qpn);
	cmd->bind_set.number = cpu_to_le32(number);
}

int skua_cmd_bind_counter_set(struct skua_dev *dev, u32 qpn, u32 number)
{
	struct skua_cmd cmd;

	skua_cmd_begin_bind(&cmd, qpn, number);
	return skua_cmdq_exec(to_skua_nic(dev), &cmd, NULL, 0, NULL);
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_bind_counter_set, SKUA_NS);

int skua_cmd_unbind_counter_set(struct skua_dev *dev, u32 qpn)
{
	struct skua_cmd cmd;

	skua_cmd_begin_bind(&cmd, qpn, 0);
	return skua_cmd_stop(to_skua_nic(dev), &cmd);
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_unbind_counter_set, SKUA_NS);

int skua_cmd_create_flow(struct skua_dev *dev, const struct skua_flow_params *params, u32 *number)
{
	struct skua_cmd cmd;

	skua_cmd_begin(&cmd, SKUA_CMD_CREATE_FLOW);
	cmd.flow.qpn = cpu_to_le32(params->qpn);
	cmd.flow.rssn = cpu_to_le32(params->rssn);
	cmd.flow.type = params->type;
	cmd.flow.priority = cpu_to_le16(params->priority);
	cmd.flow.tag = cpu_to_le32(params->tag);
	cmd.flow.value = params->value;
	cmd.flow.mask = params->mask;
	return skua_cmd_create(to_skua_nic(dev), &cmd, number);
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_create_flow, SKUA_NS);

void skua_cmd_destroy_flow(struct skua_dev *dev, u32 number)
{
	skua_cmd_destroy(to_skua_nic(dev), SKUA_CMD_DESTROY_FLOW, number);
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_destroy_flow, SKUA_NS);

int skua_cmd_create_rss(struct skua_dev *dev, const struct skua_cmd_create_rss *rss, u32 *rssn)
{
	struct skua_cmd cmd;

	skua_cmd_begin(&cmd, SKUA_CMD_CREATE_RSS);
	cmd.rss = *rss;
	return skua_cmd_create(to_skua_nic(dev), &cmd, rssn);
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_create_rss, SKUA_NS);

void skua_cmd_destroy_rss(struct skua_dev *dev, u32 rssn)
{
	skua_cmd_destroy(to_skua_nic(dev), SKUA_CMD_DESTROY_RSS, rssn);
}
EXPORT_SYMBOL_NS_GPL(skua_cmd_destroy_rss, SKUA_NS);
