// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The command queue, registers and doorbells of one device, and what commands point to: page
 * lists, contexts, objects by number.
 *
 * Commands begin as good ones, of objects that are there, and are changed in up to four places;
 * page-list tables and all other host memory are written over; memory and bus mastering come and
 * go; commands are published singly and many at once, and carried out step by step or to their
 * end. Afterwards the device works after a reset and holds nothing back, and its neighbour has
 * not noticed anything.
 */
#include "core/device.h"
#include "fuzz/fuzz.h"
#include "fuzz/race.h"
#include "harness/datagram.h"
#include "nic/control.h"

#define MAX_ROUNDS	200000
#define SCRATCH		(256u << 10)	/* where rings and regions of new objects lie */
#define TABLES		8		/* pages of page-list entries */
#define KEPT		16		/* objects of a kind that are remembered */

enum verb {
	COMMAND, TABLE, STORE, BAR_WRITE, BAR_READ, BELL, PUBLISH, WORK, PASS, MASTER, MEMORY,
	AGAIN, POST, LINK, FAIL, RACE, NUM_VERBS
};

enum kind { EQ, PD, CQ, QP, MR, SRQ, MW, XRCD, DM, FLOW, SPREAD, COUNTER_SET, NUM_KINDS };

enum template {
	NOP, QUERY_DEVICE, QUERY_PORT, SET_PORT, QUERY_STATS, SET_GID, SET_RSS, CREATE_EQ,
	CREATE_ASYNC_EQ, DESTROY_EQ, CREATE_PD, DESTROY_PD, CREATE_CQ, DESTROY_CQ, CREATE_RC,
	CREATE_ETH, TO_INIT, TO_RTR, TO_RTS, TO_ERR, TO_RESET, QUERY_QP, DESTROY_QP, CREATE_MR, CREATE_MR_1,
	CREATE_MR_2, CREATE_MR_3, CREATE_MR_LARGE, CREATE_MR_PHYS, CREATE_MR_FAST, DESTROY_MR,
	UNKNOWN, CREATE_UC, CREATE_UD, CREATE_GSI, UC_TO_RTR, UC_TO_RTS, UD_TO_INIT, TO_STATE, ATTACH, DETACH,
	CREATE_SRQ, MODIFY_SRQ, QUERY_SRQ, DESTROY_SRQ, CREATE_RC_SRQ, CREATE_UD_SRQ,
	RESIZE_CQ, MODIFY_CQ, CREATE_MW, DESTROY_MW,
	CREATE_TAG_SRQ, CREATE_RC_TAGS,
	CREATE_XRCD, DESTROY_XRCD, CREATE_XRC_SRQ, CREATE_XRC_INI, CREATE_XRC_TGT, XRC_TGT_TO_RTS,
	ALLOC_DM, FREE_DM, COPY_DM, CREATE_MR_DM, MODIFY_MR, MODIFY_MR_1, MODIFY_MR_2, CREATE_RAW, CREATE_FLOW, DESTROY_FLOW,
	CREATE_RSS, DESTROY_RSS, CREATE_SPREAD_FLOW,
	CREATE_COUNTER_SET, DESTROY_COUNTER_SET, QUERY_COUNTER_SET, BIND_COUNTER_SET,
	CREATE_FAULT_EQ, CREATE_MR_ODP, UPDATE_PAGES, FAULT_RESUME, INVALIDATE_MR, NUM_TEMPLATES
};

struct patch {
	uint8_t where;		/* word of the command */
	uint8_t how;
	uint16_t rsvd;
	uint32_t value;
};

struct host {
	struct world *w;
	struct node *n;
	uint64_t scratch, tables;
	struct { uint32_t number[KEPT]; unsigned int n; } kept[NUM_KINDS];
	uint32_t seen;		/* completions looked at */
	enum kind making[1 << LOG_CMD];	/* by slot of the ring: what a command makes */
	bool master, extra;
};

static void work(struct host *h)
{
	int i;

	for (i = 0; i < MAX_ROUNDS && engine_step(h->n->engine); i++)
		;
	CHECK(i < MAX_ROUNDS);
}

static uint32_t number(struct host *h, enum kind kind, const struct step *s)
{
	unsigned int n = h->kept[kind].n;

	return s->b % (n + 1u) < n ? h->kept[kind].number[s->b % (n + 1u)] : s->n[0];
}

/* Pages of 4 KiB in the scratch area, by a list of @level; the tables hold what they hold. */
static struct skua_pagelist tables(struct host *h, uint8_t level, uint32_t npages)
{
	return (struct skua_pagelist){
		.npages = htole32(npages), .level = level, .log_page = 12,
		.addr[0] = htole64((h->tables + (level - 1u) * 4096) | SKUA_PL_PRESENT) };
}

static struct skua_cmd mr_cmd(struct host *h, const struct step *s, uint8_t level)
{
	struct skua_cmd cmd = create_mr_cmd(h->n);

	cmd.create_mr.pdn = htole32(number(h, PD, s));
	if (!level)
		return cmd;
	cmd.create_mr.length = htole64(s->n[1] % 600 * 4096ull + 4096);
	cmd.create_mr.pages = tables(h, level, s->n[1] % 600 + 1);
	return cmd;
}

/* Any of the changes, to pages of its own or to those of a list of @level. */
static struct skua_cmd modify_mr_cmd(struct host *h, const struct step *s, uint8_t level)
{
	struct skua_cmd create = mr_cmd(h, s, level);
	const struct skua_cmd_create_mr *mr = &create.create_mr;

	return (struct skua_cmd)CMD(SKUA_CMD_MODIFY_MR, .modify_mr = {
		.key = htole32(number(h, MR, s)), .mask = htole32(s->n[2] % 8), .pdn = htole32(number(h, PD, s)),
		.access = htole32(s->n[0] % 16), .iova = mr->iova, .length = mr->length, .pages = mr->pages });
}

static struct skua_cmd large_mr_cmd(struct host *h, const struct step *s)
{
	struct skua_cmd cmd = mr_cmd(h, s, 0);

	cmd.create_mr.length = htole64(EXTRA_SIZE);
	cmd.create_mr.pages = list(EXTRA, EXTRA_SIZE);
	return cmd;
}

static struct skua_cmd qp_cmd(struct host *h, const struct step *s, uint8_t type)
{
	struct skua_cmd cmd = create_qp_cmd(h->n);

	cmd.create_qp.type = type;
	cmd.create_qp.flags = htole32(type == SKUA_QPT_ETH || type == SKUA_QPT_GSI ? SKUA_QP_PRIVILEGED : 0);
	cmd.create_qp.pdn = htole32(number(h, PD, s));
	cmd.create_qp.send_cqn = cmd.create_qp.recv_cqn = htole32(number(h, CQ, s));
	cmd.create_qp.sq = list(h->scratch, 64u << LOG_SQ);
	cmd.create_qp.rq = list(h->scratch + (64u << LOG_SQ), 64u << LOG_RQ);
	cmd.create_qp.sq_dbr_addr = htole64(h->scratch + SCRATCH - 4096);
	cmd.create_qp.rq_dbr_addr = htole64(h->scratch + SCRATCH - 4096 + 64);
	return cmd;
}

static struct skua_cmd cq_cmd(struct host *h, const struct step *s)
{
	struct skua_cmd cmd = create_cq_cmd(h->n);

	cmd.create_cq.eqn = htole32(number(h, EQ, s));
	cmd.create_cq.ring = list(h->scratch + SCRATCH / 2, 64u << LOG_CQ);
	cmd.create_cq.dbr_addr = htole64(h->scratch + SCRATCH - 4096 + 128);
	return cmd;
}

static struct skua_cmd eq_cmd(struct host *h, uint8_t type)
{
	struct skua_cmd cmd = create_eq_cmd(h->n);

	cmd.create_eq.type = type;
	cmd.create_eq.ring = list(h->scratch + SCRATCH / 4, 64 * 16);
	cmd.create_eq.dbr_addr = htole64(h->scratch + SCRATCH - 4096 + 192);
	return cmd;
}

static struct skua_cmd output_cmd(struct host *h, uint16_t opcode, uint8_t port)
{
	struct skua_cmd cmd = CMD(opcode);

	cmd.hdr.port = port;
	cmd.hdr.out_addr = htole64(h->scratch);
	cmd.hdr.out_len = htole32(512);
	return cmd;
}

static struct skua_cmd gid_cmd(struct host *h)
{
	struct skua_cmd cmd = CMD(SKUA_CMD_SET_GID, .set_gid = { .vlan = htole16(SKUA_VLAN_NONE) });

	cmd.hdr.port = 1;
	memcpy(cmd.set_gid.gid, h->n->gid, 16);
	memcpy(cmd.set_gid.mac, h->n->mac, 6);
	return cmd;
}

static struct skua_cmd rss_cmd(struct host *h, const struct step *s)
{
	struct skua_cmd cmd = CMD(SKUA_CMD_SET_RSS, .set_rss = { .log_size = s->n[0] % 6 });

	cmd.hdr.port = 1;
	for (unsigned int i = 0; i < 1u << s->n[0] % 6; i++)
		cmd.set_rss.qpn[i] = htole32(number(h, QP, s));
	return cmd;
}

/* The command that RC has, with what UC takes of it. */
static struct skua_cmd uc_cmd(struct skua_cmd cmd)
{
	const uint32_t takes = SKUA_QP_ATTR_STATE | SKUA_QP_ATTR_AV | SKUA_QP_ATTR_PATH_MTU |
			       SKUA_QP_ATTR_DEST_QPN | SKUA_QP_ATTR_RQ_PSN | SKUA_QP_ATTR_SQ_PSN;

	cmd.modify_qp.mask &= htole32(takes);
	return cmd;
}

static struct skua_cmd group_cmd(struct host *h, const struct step *s, uint16_t opcode)
{
	struct skua_cmd cmd = CMD(opcode, .mcast = { .qpn = htole32(number(h, QP, s)) });

	cmd.mcast.mgid[0] = 0xff;
	cmd.mcast.mgid[15] = s->n[1] % 4;
	return cmd;
}

/* Its ring is the RQ of the QPs made here. */
static struct skua_cmd srq_cmd(struct host *h, const struct step *s)
{
	struct skua_cmd cmd = CMD(SKUA_CMD_CREATE_SRQ, .create_srq = {
		.pdn = htole32(number(h, PD, s)), .log_size = LOG_RQ, .log_stride = 6,
		.limit = htole32(s->n[1] % 4), .dbr_addr = htole64(h->scratch + SCRATCH - 4096 + 64),
		.ring = list(h->scratch + (64u << LOG_SQ), 64u << LOG_RQ) });

	return cmd;
}

static struct skua_cmd resize_cq_cmd(struct host *h, const struct step *s)
{
	struct skua_cmd cmd = CMD(SKUA_CMD_RESIZE_CQ, .resize_cq = {
		.cqn = htole32(number(h, CQ, s)), .log_size = (uint8_t)(s->n[1] % 6),
		.ring = list(h->scratch, 64u << s->n[1] % 6) });

	return cmd;
}

static struct skua_cmd modify_cq_cmd(struct host *h, const struct step *s)
{
	struct skua_cmd cmd = CMD(SKUA_CMD_MODIFY_CQ, .modify_cq = {
		.cqn = htole32(number(h, CQ, s)), .count = htole16(s->n[1] % 8), .period = htole16(s->n[2]) });

	return cmd;
}

static struct skua_cmd modify_srq_cmd(struct host *h, const struct step *s)
{
	struct skua_cmd cmd = CMD(SKUA_CMD_MODIFY_SRQ, .modify_srq = {
		.srqn = htole32(number(h, SRQ, s)), .mask = htole32(s->n[1] % 4), .limit = htole32(s->n[2] % 4) });

	if (s->n[1] % 4 & SKUA_SRQ_SET_RING) {
		cmd.modify_srq.log_size = LOG_RQ;
		cmd.modify_srq.ring = list(h->scratch + SCRATCH / 2, 64u << LOG_RQ);
	}
	return cmd;
}

/* A QP with an SRQ instead of its RQ. */
static struct skua_cmd srq_user_cmd(struct host *h, const struct step *s, uint8_t type)
{
	struct skua_cmd cmd = qp_cmd(h, s, type);

	cmd.create_qp.srqn = htole32(number(h, SRQ, s));
	cmd.create_qp.log_rq_size = cmd.create_qp.log_rq_stride = 0;
	cmd.create_qp.rq_dbr_addr = 0;
	cmd.create_qp.rq = (struct skua_pagelist){ 0 };
	return cmd;
}

static struct skua_cmd tag_srq_cmd(struct host *h, const struct step *s)
{
	struct skua_cmd cmd = srq_cmd(h, s);

	cmd.create_srq.tags = htole32(s->n[2] % 2048);
	cmd.create_srq.cqn = htole32(number(h, CQ, s));
	return cmd;
}

/* A QP that receives for one: without an SQ. */
static struct skua_cmd tag_user_cmd(struct host *h, const struct step *s)
{
	struct skua_cmd cmd = srq_user_cmd(h, s, SKUA_QPT_RC);

	cmd.create_qp.log_sq_blocks = 0;
	cmd.create_qp.sq_dbr_addr = 0;
	cmd.create_qp.sq = (struct skua_pagelist){ 0 };
	return cmd;
}

static struct skua_cmd xrc_srq_cmd(struct host *h, const struct step *s)
{
	struct skua_cmd cmd = srq_cmd(h, s);

	cmd.create_srq.xrcdn = htole32(number(h, XRCD, s));
	cmd.create_srq.cqn = htole32(number(h, CQ, s));
	return cmd;
}

static struct skua_cmd xrc_qp_cmd(struct host *h, const struct step *s, uint8_t type)
{
	struct skua_cmd cmd = srq_user_cmd(h, s, type);

	cmd.create_qp.srqn = 0;
	cmd.create_qp.recv_cqn = 0;
	if (type == SKUA_QPT_XRC_TGT)
		cmd.create_qp = (struct skua_cmd_create_qp){ .type = type, .xrcdn = htole32(number(h, XRCD, s)) };
	return cmd;
}

static struct skua_cmd target_rts_cmd(struct host *h, const struct step *s)
{
	struct skua_cmd cmd = rts_cmd(number(h, QP, s));

	cmd.modify_qp.mask &= htole32(SKUA_QP_ATTR_STATE | SKUA_QP_ATTR_TIMEOUT | SKUA_QP_ATTR_SQ_PSN);
	return cmd;
}

/* To a MAC that has bits of the step's numbers, or to any. */
static struct skua_cmd flow_cmd(struct host *h, const struct step *s)
{
	struct skua_cmd cmd = CMD(SKUA_CMD_CREATE_FLOW, .flow = {
		.qpn = htole32(number(h, QP, s)), .type = (uint8_t)(s->n[0] % 3), .priority = htole16((uint16_t)s->n[1]) });

	cmd.flow.mask.dmac[5] = (uint8_t)s->n[2];
	cmd.flow.value.dmac[5] = cmd.flow.mask.dmac[5] & 2;
	return cmd;
}

static struct skua_cmd rss_object_cmd(struct host *h, const struct step *s)
{
	struct skua_cmd cmd = CMD(SKUA_CMD_CREATE_RSS, .rss = {
		.log_size = (uint8_t)(s->n[1] % 6), .fields = htole32(s->n[2] & SKUA_HASH_MASK) });

	for (unsigned int i = 0; i < 1u << cmd.rss.log_size; i++)
		cmd.rss.qpn[i] = htole32(number(h, QP, s));
	return cmd;
}

/* The command before it is changed; *kind: what it makes, if it does. */
static struct skua_cmd make(struct host *h, const struct step *s, enum kind *kind)
{
	const struct node *peer = &h->w->n[1];
	struct skua_cmd cmd = CMD(SKUA_CMD_NOP);

	*kind = NUM_KINDS;
	switch (s->a % NUM_TEMPLATES) {
	case QUERY_DEVICE:
		return output_cmd(h, SKUA_CMD_QUERY_DEVICE, 0);
	case QUERY_PORT:
		return output_cmd(h, SKUA_CMD_QUERY_PORT, 1);
	case SET_PORT:
		cmd = port_cmd(s->n[0] % 16, s->n[1] % 16);
		cmd.set_port.rx_qpn = htole32(number(h, QP, s));
		cmd.set_port.mtu = htole32(1500);
		cmd.set_port.mac[0] = 2;
		return cmd;
	case QUERY_STATS:
		return output_cmd(h, SKUA_CMD_QUERY_STATS, 0);
	case SET_GID:
		return gid_cmd(h);
	case SET_RSS:
		return rss_cmd(h, s);
	case CREATE_EQ:
	case CREATE_ASYNC_EQ:
		*kind = EQ;
		return eq_cmd(h, s->a % NUM_TEMPLATES == CREATE_EQ ? SKUA_EQ_COMP : SKUA_EQ_ASYNC);
	case CREATE_FAULT_EQ:
		*kind = EQ;
		return eq_cmd(h, SKUA_EQ_FAULT);
	case DESTROY_EQ:
		return object_cmd(SKUA_CMD_DESTROY_EQ, number(h, EQ, s));
	case CREATE_PD:
		*kind = PD;
		cmd.hdr.opcode = htole16(SKUA_CMD_CREATE_PD);
		return cmd;
	case DESTROY_PD:
		return object_cmd(SKUA_CMD_DESTROY_PD, number(h, PD, s));
	case CREATE_CQ:
		*kind = CQ;
		return cq_cmd(h, s);
	case DESTROY_CQ:
		return object_cmd(SKUA_CMD_DESTROY_CQ, number(h, CQ, s));
	case CREATE_RC:
	case CREATE_ETH:
		*kind = QP;
		return qp_cmd(h, s, s->a % NUM_TEMPLATES == CREATE_RC ? SKUA_QPT_RC : SKUA_QPT_ETH);
	case TO_INIT:
		return init_cmd(number(h, QP, s));
	case TO_RTR:
		return rtr_cmd(number(h, QP, s), peer, peer->qpn);
	case TO_RTS:
		return rts_cmd(number(h, QP, s));
	case TO_ERR:
		return state_cmd(number(h, QP, s), SKUA_QPS_ERR);
	case TO_RESET:
		return state_cmd(number(h, QP, s), SKUA_QPS_RESET);
	case QUERY_QP:
		cmd = output_cmd(h, SKUA_CMD_QUERY_QP, 0);
		cmd.object.number = htole32(number(h, QP, s));
		return cmd;
	case DESTROY_QP:
		return object_cmd(SKUA_CMD_DESTROY_QP, number(h, QP, s));
	case CREATE_MR:
	case CREATE_MR_1:
	case CREATE_MR_2:
	case CREATE_MR_3:
		*kind = MR;
		return mr_cmd(h, s, s->a % NUM_TEMPLATES - CREATE_MR);
	case CREATE_MR_LARGE:
		*kind = MR;
		return large_mr_cmd(h, s);
	case CREATE_MR_PHYS:
		*kind = MR;
		cmd = mr_cmd(h, s, 0);
		cmd.create_mr = (struct skua_cmd_create_mr){
			.pdn = cmd.create_mr.pdn, .type = SKUA_MR_PHYS,
			.access = htole32(ALL_RIGHTS) };
		return cmd;
	case CREATE_MR_FAST:
		*kind = MR;
		cmd = mr_cmd(h, s, 0);
		if (s->n[1])
			cmd.create_mr = (struct skua_cmd_create_mr){
				.pdn = cmd.create_mr.pdn, .capacity = htole32(s->n[1]) };
		cmd.create_mr.type = SKUA_MR_FAST;
		return cmd;
	case CREATE_MR_ODP:
		*kind = MR;
		cmd = mr_cmd(h, s, 0);
		cmd.create_mr.access |= htole32(SKUA_ACCESS_ON_DEMAND);
		cmd.create_mr.pages = (struct skua_pagelist){ .log_page = 12 };
		if (s->n[1] & 1)
			cmd.create_mr.iova = cmd.create_mr.length = 0;
		return cmd;
	case UPDATE_PAGES:
		cmd.hdr.opcode = htole16(SKUA_CMD_UPDATE_PAGES);
		cmd.update_pages.key = htole32(number(h, MR, s));
		cmd.update_pages.first = htole64((uint64_t)s->v[0] << (s->n[0] % 64));
		cmd.update_pages.count = htole64(1 + s->n[1]);
		cmd.update_pages.list = htole64(s->n[0] & 64 ? h->tables : 0);
		return cmd;
	case FAULT_RESUME:
		cmd.hdr.opcode = htole16(SKUA_CMD_FAULT_RESUME);
		cmd.fault_resume.token = htole32(s->v[0] % 16);
		cmd.fault_resume.result = s->n[1] & 1;
		return cmd;
	case DESTROY_MR:
		return object_cmd(SKUA_CMD_DESTROY_MR, number(h, MR, s));
	case INVALIDATE_MR:
		return object_cmd(SKUA_CMD_INVALIDATE_MR, number(h, MR, s));
	case CREATE_UC:
	case CREATE_UD:
	case CREATE_GSI:
		*kind = QP;
		return qp_cmd(h, s, (uint8_t)(s->a % NUM_TEMPLATES - CREATE_UC + SKUA_QPT_UC));
	case UC_TO_RTR:
		return uc_cmd(rtr_cmd(number(h, QP, s), peer, peer->qpn));
	case UC_TO_RTS:
		return uc_cmd(rts_cmd(number(h, QP, s)));
	case UD_TO_INIT:
		return modify_cmd(number(h, QP, s), SKUA_QP_ATTR_STATE | SKUA_QP_ATTR_PKEY_INDEX |
				  SKUA_QP_ATTR_QKEY, (struct skua_qp_attr){ .state = SKUA_QPS_INIT });
	case TO_STATE:
		return state_cmd(number(h, QP, s), s->n[1] % 8);
	case ATTACH:
		return group_cmd(h, s, SKUA_CMD_ATTACH_MCAST);
	case DETACH:
		return group_cmd(h, s, SKUA_CMD_DETACH_MCAST);
	case CREATE_SRQ:
		*kind = SRQ;
		return srq_cmd(h, s);
	case MODIFY_SRQ:
		return modify_srq_cmd(h, s);
	case QUERY_SRQ:
		cmd = output_cmd(h, SKUA_CMD_QUERY_SRQ, 0);
		cmd.object.number = htole32(number(h, SRQ, s));
		return cmd;
	case DESTROY_SRQ:
		return object_cmd(SKUA_CMD_DESTROY_SRQ, number(h, SRQ, s));
	case CREATE_RC_SRQ:
	case CREATE_UD_SRQ:
		*kind = QP;
		return srq_user_cmd(h, s, s->a % NUM_TEMPLATES == CREATE_RC_SRQ ? SKUA_QPT_RC : SKUA_QPT_UD);
	case CREATE_TAG_SRQ:
		*kind = SRQ;
		return tag_srq_cmd(h, s);
	case CREATE_RC_TAGS:
		*kind = QP;
		return tag_user_cmd(h, s);
	case RESIZE_CQ:
		return resize_cq_cmd(h, s);
	case MODIFY_CQ:
		return modify_cq_cmd(h, s);
	case CREATE_MW:
		*kind = MW;
		cmd.hdr.opcode = htole16(SKUA_CMD_CREATE_MW);
		cmd.create_mw.pdn = htole32(number(h, PD, s));
		cmd.create_mw.type = s->n[1] % 4;
		return cmd;
	case DESTROY_MW:
		return object_cmd(SKUA_CMD_DESTROY_MW, number(h, MW, s));
	case CREATE_XRCD:
		*kind = XRCD;
		cmd.hdr.opcode = htole16(SKUA_CMD_CREATE_XRCD);
		return cmd;
	case DESTROY_XRCD:
		return object_cmd(SKUA_CMD_DESTROY_XRCD, number(h, XRCD, s));
	case CREATE_COUNTER_SET:
		*kind = COUNTER_SET;
		cmd.hdr.opcode = htole16(SKUA_CMD_CREATE_COUNTER_SET);
		return cmd;
	case DESTROY_COUNTER_SET:
		return object_cmd(SKUA_CMD_DESTROY_COUNTER_SET, number(h, COUNTER_SET, s));
	case QUERY_COUNTER_SET:
		cmd = output_cmd(h, SKUA_CMD_QUERY_COUNTER_SET, 0);
		cmd.object.number = htole32(number(h, COUNTER_SET, s));
		return cmd;
	case BIND_COUNTER_SET:
		cmd.hdr.opcode = htole16(SKUA_CMD_BIND_COUNTER_SET);
		cmd.bind_set.qpn = htole32(number(h, QP, s));
		cmd.bind_set.number = htole32(s->n[1] % 2 ? number(h, COUNTER_SET, s) : 0);
		return cmd;
	case CREATE_XRC_SRQ:
		*kind = SRQ;
		return xrc_srq_cmd(h, s);
	case CREATE_XRC_INI:
	case CREATE_XRC_TGT:
		*kind = QP;
		return xrc_qp_cmd(h, s, (uint8_t)(s->a % NUM_TEMPLATES - CREATE_XRC_INI + SKUA_QPT_XRC_INI));
	case XRC_TGT_TO_RTS:
		return target_rts_cmd(h, s);
	case ALLOC_DM:
		*kind = DM;
		return (struct skua_cmd)CMD(SKUA_CMD_ALLOC_DM, .alloc_dm = {
			.length = htole64(s->n[1] % (LIMIT_DM + 2)), .log_align = s->n[2] % 14 });
	case FREE_DM:
		return object_cmd(SKUA_CMD_FREE_DM, number(h, DM, s));
	case COPY_DM:
		return (struct skua_cmd)CMD(SKUA_CMD_DM_COPY, .dm_copy = {
			.dmn = htole32(number(h, DM, s)), .direction = s->c >> 4 & 1, .offset = htole64(s->n[1]),
			.length = htole32(s->n[2]), .addr = htole64(h->scratch + s->n[0] % SCRATCH) });
	case MODIFY_MR:
	case MODIFY_MR_1:
	case MODIFY_MR_2:
		return modify_mr_cmd(h, s, s->a % NUM_TEMPLATES - MODIFY_MR);
	case CREATE_MR_DM:
		*kind = MR;
		return (struct skua_cmd)CMD(SKUA_CMD_CREATE_MR, .create_mr = {
			.pdn = htole32(number(h, PD, s)), .type = SKUA_MR_DM, .access = htole32(ALL_RIGHTS),
			.dmn = htole32(number(h, DM, s)), .dm_offset = htole64(s->n[1]), .length = htole64(s->n[2]) });
	case CREATE_RAW:
		*kind = QP;
		cmd = qp_cmd(h, s, SKUA_QPT_ETH);
		cmd.create_qp.flags = 0;
		return cmd;
	case CREATE_FLOW:
		*kind = FLOW;
		return flow_cmd(h, s);
	case DESTROY_FLOW:
		return object_cmd(SKUA_CMD_DESTROY_FLOW, number(h, FLOW, s));
	case CREATE_RSS:
		*kind = SPREAD;
		return rss_object_cmd(h, s);
	case DESTROY_RSS:
		return object_cmd(SKUA_CMD_DESTROY_RSS, number(h, SPREAD, s));
	case CREATE_SPREAD_FLOW:
		*kind = FLOW;
		cmd = flow_cmd(h, s);
		cmd.flow.qpn = 0;
		cmd.flow.rssn = htole32(number(h, SPREAD, s));
		return cmd;
	case UNKNOWN:
		cmd.hdr.opcode = htole16((uint16_t)s->n[0]);
		return cmd;
	default:
		return cmd;
	}
}

/* Addresses that mean something, by number. */
static uint64_t place(struct host *h, uint32_t i)
{
	const uint64_t places[] = {
		h->scratch, h->tables, h->n->cq, h->n->sq, h->n->buf, EXTRA, h->n->cmd_ring,
		IOVA + MEM_SIZE, EXTRA + EXTRA_SIZE - 4096, 0, UINT64_MAX - 4095, 1ull << 63,
	};

	return places[i % 12];
}

static void change(struct host *h, struct skua_cmd *cmd, const struct patch *p)
{
	uint8_t *at = (uint8_t *)cmd + p->where % 64 * 4;
	uint64_t addr;
	uint32_t word;

	memcpy(&word, at, 4);
	switch (p->how % 8) {
	case 1:
		word = p->value;
		break;
	case 2:
		word ^= p->value;
		break;
	case 3:
		word += p->value;
		break;
	case 4:		/* an address, with flags */
		addr = place(h, p->value) + (p->value >> 8);
		memcpy(at, &addr, p->where % 64 == 63 ? 4 : 8);
		return;
	case 5:
		word = number(h, p->value % NUM_KINDS, &(struct step){ .b = (uint8_t)(p->value >> 8) });
		break;
	default:
		return;
	}
	memcpy(at, &word, 4);
}

/* Numbers of objects that were made since the last look. */
static void look(struct host *h)
{
	struct node *n = h->n;

	for (; h->seen != n->cmd_pi; h->seen++) {
		uint32_t slot = h->seen % (1 << LOG_CMD);
		struct skua_cmd_cpl *cpl = at(n, n->cmd_cpl + slot * sizeof(*cpl));
		uint8_t phase = h->seen >> LOG_CMD & 1 ? 0 : SKUA_CMD_CPL_PHASE;
		enum kind kind;

		if ((cpl->flags & SKUA_CMD_CPL_PHASE) != phase)
			return;
		/* Urgent commands overtake others. */
		kind = h->making[le32toh(cpl->id) % (1 << LOG_CMD)];
		CHECK(cpl->status <= SKUA_CMD_NOT_PERMITTED || h->master == false);
		if (cpl->status || kind == NUM_KINDS || h->kept[kind].n == KEPT)
			continue;
		h->kept[kind].number[h->kept[kind].n++] = le32toh(cpl->number);
	}
}

static void publish(struct host *h)
{
	struct node *n = h->n;

	host_store32(&((struct skua_dbr *)at(n, n->cmd_dbr))->pi, n->cmd_pi);
	ring(n, SKUA_DB_CMD, 0, n->cmd_pi);
}

/* @c bit 0: published at once; bits 1 and 2: and carried out to the end, or for some steps. */
static void issue(struct host *h, const struct step *s)
{
	const struct patch *p = (const struct patch *)s->bytes;
	struct node *n = h->n;
	enum kind kind;
	struct skua_cmd cmd = make(h, s, &kind);

	for (int i = 0; i < 4; i++)
		change(h, &cmd, &p[i]);
	cmd.hdr.flags ^= htole16(s->c >> 7);
	cmd.hdr.id = htole32(n->cmd_pi);
	h->making[n->cmd_pi % (1 << LOG_CMD)] = kind;
	memcpy(at(n, n->cmd_ring + n->cmd_pi % (1 << LOG_CMD) * sizeof(cmd)), &cmd, sizeof(cmd));
	n->cmd_pi++;
	if (s->c & 1)
		return;
	publish(h);
	if (s->c & 2) {
		for (int i = 0; i < s->c >> 2; i++)
			engine_step(n->engine);
		return;
	}
	work(h);
	look(h);
}

/* Entries of a page-list table: pages of the scratch area, tables, or what the step says. */
static void fill_table(struct host *h, const struct step *s)
{
	uint64_t *table = at(h->n, h->tables + s->a % TABLES * 4096);
	uint32_t from = s->n[0] % 512, n = s->n[1] % 513;
	uint64_t base = s->b < 12 ? place(h, s->b) : s->v[0];

	for (uint32_t i = 0; i < n && from + i < 512; i++)
		table[from + i] = htole64((base + (uint64_t)i * s->n[2]) |
					  (s->c ? s->c : SKUA_PL_PRESENT));
}

/* As after power-on, with all that a driver makes first. */
static void again(struct host *h)
{
	struct node *n = h->n;

	race_stop();
	n->used = h->scratch - IOVA + SCRATCH + TABLES * 4096;
	n->cmd_pi = 0;
	memset(at(n, IOVA), 0, n->used + 4 * 4096);
	skua_dev_reset(n->dev);
	work(h);
	CHECK(!n->dev->pages_used && !n->dev->eqs.count && !n->dev->pds.count &&
	      !n->dev->cqs.count && !n->dev->qps.count && !n->dev->mrs.count &&
	      !n->dev->srqs.count && !n->dev->xrcds.count && !n->dev->mcast.groups && !n->dev->num_mws &&
	      !n->dev->dms.count && !n->dev->dm_used && !n->dev->counter_sets.count);
	memset(h->kept, 0, sizeof(h->kept));
	h->seen = 0;
	bring_up(h->w, n);
	for (uint8_t i = 0; i < 4; i++) {
		static const uint8_t first[] = { CREATE_EQ, CREATE_PD, CREATE_CQ, CREATE_RC };
		struct step s = { .a = first[i] };

		issue(h, &s);
	}
	CHECK(h->kept[QP].n == 1);
}

static void set_memory(struct host *h, bool extra, bool writable)
{
	if (h->extra)
		unmap_extra(h->n);
	h->extra = extra;
	if (extra)
		map_extra(h->n, writable);
}

static void set_master(struct host *h, bool on)
{
	h->master = on;
	skua_dev_set_bus_master(h->n->dev, on);
}

/* From now on the host races with the device. @b: how; @c: how often; n[0]: after how many loads; v[0]: the value. */
static void start_race(struct host *h, const struct step *s)
{
	race_start(&(struct race){
		.mem = at(h->n, IOVA), .size = h->n->used, .how = s->b % NUM_RACE_HOWS, .value = s->v[0],
		.skip = s->n[0] % 256, .times = s->c % 16 });
}

static void play(struct host *h, const struct step *s)
{
	struct node *n = h->n;
	uint8_t bytes[8];

	switch (s->verb % NUM_VERBS) {
	case COMMAND:
		issue(h, s);
		break;
	case TABLE:
		fill_table(h, s);
		break;
	case STORE:
		memcpy((uint8_t *)at(n, IOVA) + s->n[0] % (n->used - 32), s->bytes, 32);
		break;
	case BAR_WRITE:
		bar_write(n, s->a % 4, s->n[0] % (64 << 10), s->v, 1u << s->b % 4);
		break;
	case BAR_READ:
		bar_read(n, s->a % 4, s->n[0] % (64 << 10), bytes, 1u << s->b % 4);
		break;
	case BELL:
		ring_page(n, s->n[0] % 3, s->a % 4 * 8, number(h, s->c % NUM_KINDS, s), s->n[1]);
		break;
	case PUBLISH:
		n->cmd_pi += s->n[0];
		publish(h);
		n->cmd_pi -= s->n[0];
		break;
	case WORK:
		work(h);
		look(h);
		break;
	case PASS:
		engine_clock_advance(n->engine, s->n[0] * 1000ull);
		break;
	case MASTER:
		set_master(h, s->a & 1);
		break;
	case MEMORY:
		set_memory(h, s->a & 1, s->a & 2);
		break;
	case AGAIN:
		set_master(h, true);
		again(h);
		break;
	case POST:	/* on the ring of the QPs made here */
		memcpy(at(n, h->scratch + s->n[0] % 16 * 64), s->v, 48);
		host_store32(at(n, h->scratch + SCRATCH - 4096), s->n[1] % 18);
		break;
	case LINK:
		skua_dev_set_link(n->dev, s->a & 1);
		break;
	case FAIL:
		skua_dev_fail(n->dev, s->a);
		break;
	case RACE:
		start_race(h, s);
		break;
	}
}

static void fuzz_run(const struct step *steps, unsigned int n)
{
	struct world *w = world_create(false);
	struct host h = { .w = w, .n = &w->n[0], .master = true, .extra = true };
	struct node *peer = &w->n[1];

	/* Rings of the first objects come behind what stays where it is. */
	h.n->used = 0;
	h.scratch = take(h.n, SCRATCH);
	h.tables = take(h.n, TABLES * 4096);
	again(&h);
	for (unsigned int i = 0; i < n; i++) {
		race_step();
		play(&h, &steps[i]);
	}
	work(&h);
	set_memory(&h, true, true);
	set_master(&h, true);
	again(&h);
	must(w, peer, (struct skua_cmd)CMD(SKUA_CMD_NOP));
	world_destroy(w);
}

#define DO(template_, ...)	{ .verb = COMMAND, .a = template_, __VA_ARGS__ }
#define PAGES(table_, place_) \
	{ .verb = TABLE, .a = table_, .b = place_, .n = { 0, 512, 4096 } }

static void fuzz_seeds(void)
{
	FUZZ_SEED("queries", DO(NOP), DO(QUERY_DEVICE), DO(QUERY_PORT), DO(QUERY_STATS), DO(SET_GID),
		  DO(SET_PORT, .n = { 15, 9 }), DO(QUERY_QP), DO(UNKNOWN, .n = { 0x1234 }));
	FUZZ_SEED("objects", DO(CREATE_EQ), DO(CREATE_ASYNC_EQ), DO(CREATE_PD), DO(CREATE_CQ),
		  DO(CREATE_MR), DO(CREATE_ETH), DO(SET_RSS, .b = 1, .n = { 2 }), DO(DESTROY_QP),
		  DO(DESTROY_MR), DO(DESTROY_CQ), DO(DESTROY_PD), DO(DESTROY_EQ), DO(DESTROY_EQ, .b = 1));
	FUZZ_SEED("states", DO(TO_INIT), DO(SET_GID), DO(TO_RTR), DO(TO_RTS), DO(TO_RTS), DO(TO_ERR),
		  DO(TO_RESET), DO(QUERY_QP), DO(TO_INIT), DO(TO_INIT), DO(DESTROY_QP));
	FUZZ_SEED("services", DO(SET_GID), DO(CREATE_UC), DO(TO_INIT, .b = 1), DO(UC_TO_RTR, .b = 1),
		  DO(UC_TO_RTS, .b = 1), DO(TO_STATE, .b = 1, .n[1] = SKUA_QPS_SQD), DO(CREATE_UD),
		  DO(UD_TO_INIT, .b = 2), DO(TO_STATE, .b = 2, .n[1] = 2), DO(UC_TO_RTS, .b = 2),
		  DO(ATTACH, .b = 2), DO(ATTACH, .b = 2, .n[1] = 1), DO(DETACH, .b = 2), DO(CREATE_GSI),
		  DO(CREATE_GSI), DO(DESTROY_QP, .b = 2), DO(DESTROY_QP, .b = 3), DO(CREATE_GSI));
	FUZZ_SEED("shared", DO(SET_GID), DO(CREATE_SRQ, .n = { 0, 2 }), DO(CREATE_RC_SRQ), DO(CREATE_UD_SRQ),
		  DO(TO_INIT, .b = 1), DO(TO_RTR, .b = 1), DO(MODIFY_SRQ, .n = { 0, 3, 1 }), DO(QUERY_SRQ),
		  DO(DESTROY_SRQ), DO(TO_ERR, .b = 1), DO(DESTROY_QP, .b = 1), DO(DESTROY_QP, .b = 2), DO(DESTROY_SRQ));
	FUZZ_SEED("tags", DO(SET_GID), DO(CREATE_TAG_SRQ, .n = { 0, 0, 100 }), DO(CREATE_RC_TAGS), DO(CREATE_UD_SRQ),
		  DO(TO_INIT, .b = 1), DO(TO_RTR, .b = 1), DO(TO_RTS, .b = 1), DO(UD_TO_INIT, .b = 2),
		  DO(TO_STATE, .b = 2, .n[1] = 2), DO(UC_TO_RTS, .b = 2), DO(DESTROY_CQ), DO(DESTROY_SRQ), DO(TO_ERR, .b = 1),
		  DO(DESTROY_QP, .b = 1), DO(DESTROY_QP, .b = 2), DO(DESTROY_SRQ), DO(CREATE_TAG_SRQ, .n = { 0, 0, 2000 }));
	FUZZ_SEED("windows", DO(CREATE_MW, .n[1] = 1), DO(CREATE_MW, .n[1] = 2), DO(CREATE_MW), DO(DESTROY_PD),
		  DO(DESTROY_MW), DO(DESTROY_MW), DO(DESTROY_MW, .b = 1), DO(CREATE_MW, .n[1] = 1), { .verb = AGAIN });
	FUZZ_SEED("on demand", DO(CREATE_FAULT_EQ), PAGES(0, 0), DO(CREATE_MR_ODP), DO(UPDATE_PAGES, .b = 1, .n = { 64 }),
		  DO(UPDATE_PAGES, .b = 1), DO(CREATE_MR_ODP, .n[1] = 1), DO(UPDATE_PAGES, .b = 2, .n = { 64 + 51 }, .v[0] = 1),
		  DO(FAULT_RESUME, .v[0] = 2), DO(UPDATE_PAGES, .b = 2, .n = { 0, 65535 }), DO(DESTROY_EQ, .b = 2),
		  DO(DESTROY_MR, .b = 1), DO(DESTROY_MR, .b = 2), DO(DESTROY_EQ, .b = 2));
	FUZZ_SEED("domains", DO(SET_GID), DO(CREATE_XRCD), DO(CREATE_XRC_SRQ), DO(CREATE_XRC_TGT), DO(CREATE_XRC_INI),
		  DO(TO_INIT, .b = 1), DO(TO_RTR, .b = 1), DO(XRC_TGT_TO_RTS, .b = 1), DO(TO_INIT, .b = 2),
		  DO(DESTROY_XRCD), DO(DESTROY_SRQ), DO(DESTROY_QP, .b = 1), DO(DESTROY_QP, .b = 2), DO(DESTROY_XRCD));
	FUZZ_SEED("changes", PAGES(0, 0), PAGES(1, 1), DO(CREATE_MR), DO(CREATE_PD), DO(MODIFY_MR, .n = { 1, 0, 7 }),
		  DO(MODIFY_MR_1, .n = { 15, 300, 6 }), DO(MODIFY_MR_2, .c = 2 + 4, .n = { 0, 599, 4 }), DO(CREATE_MR_FAST),
		  DO(MODIFY_MR, .b = 1, .n = { 1, 0, 1 }), DO(MODIFY_MR, .n = { 1, 0, 1 }), DO(DESTROY_MR), DO(MODIFY_MR));
	FUZZ_SEED("revocation", PAGES(0, 0), PAGES(1, 1), DO(CREATE_MR), DO(MODIFY_MR_1, .n = { 15, 300, 4 }), DO(INVALIDATE_MR),
		  DO(INVALIDATE_MR), DO(MODIFY_MR, .n = { 1, 0, 7 }), DO(CREATE_MR_FAST), DO(INVALIDATE_MR, .b = 1),
		  DO(DESTROY_MR), DO(INVALIDATE_MR));
	FUZZ_SEED("device-memory", DO(ALLOC_DM, .n[1] = 70000), DO(ALLOC_DM, .n[1] = LIMIT_DM), DO(ALLOC_DM, .n[1] = 5),
		  DO(COPY_DM, .n = { 1, 4, 65536 }), DO(COPY_DM, .c = 16, .n = { 0, 69996, 4 }),
		  DO(CREATE_MR_DM, .n = { 0, 8, 69992 }), DO(FREE_DM), DO(DESTROY_MR), DO(FREE_DM), DO(FREE_DM, .b = 1),
		  DO(ALLOC_DM, .n[1] = LIMIT_DM), DO(FREE_DM, .c = 2 + 4, .b = 2), { .verb = AGAIN });
	FUZZ_SEED("counters", DO(CREATE_COUNTER_SET), DO(BIND_COUNTER_SET, .n[1] = 1), DO(QUERY_COUNTER_SET), DO(QUERY_STATS),
		  DO(DESTROY_COUNTER_SET), DO(BIND_COUNTER_SET), DO(DESTROY_COUNTER_SET), DO(CREATE_COUNTER_SET),
		  DO(BIND_COUNTER_SET, .n[1] = 1), { .verb = AGAIN });
	FUZZ_SEED("flows", DO(CREATE_RAW), DO(CREATE_FLOW, .b = 1), DO(CREATE_FLOW, .b = 1, .n = { 2 }), DO(TO_STATE, .b = 1),
		  DO(CREATE_FLOW, .b = 1, .n = { 1, 7, 255 }), DO(DESTROY_FLOW, .b = 1), DO(DESTROY_QP, .b = 1),
		  DO(DESTROY_FLOW), { .verb = AGAIN });
	FUZZ_SEED("spread flows", DO(CREATE_RAW), DO(CREATE_RSS, .b = 1, .n = { 0, 2, 255 }), DO(CREATE_SPREAD_FLOW),
		  DO(DESTROY_RSS), DO(DESTROY_QP, .b = 1), DO(DESTROY_FLOW), DO(DESTROY_RSS), { .verb = AGAIN });
	FUZZ_SEED("lists", PAGES(0, 0), PAGES(1, 1), PAGES(2, 1), DO(CREATE_MR_1, .n[1] = 3),
		  DO(CREATE_MR_2, .n[1] = 5), DO(CREATE_MR_3, .n[1] = 599), DO(CREATE_MR_LARGE),
		  DO(CREATE_MR_PHYS), DO(CREATE_MR_FAST), DO(CREATE_MR_FAST, .n[1] = 600), DO(DESTROY_MR), DO(DESTROY_MR, .b = 1));
	/* A long list, and what happens while it is read. */
	FUZZ_SEED("loading", PAGES(0, 0), PAGES(1, 1), PAGES(2, 1),
		  DO(CREATE_MR_3, .c = 2, .n[1] = 599), { .verb = WORK },
		  DO(CREATE_MR_2, .c = 2 + 4, .n[1] = 599), { .verb = MASTER }, { .verb = WORK },
		  { .verb = MASTER, .a = 1 }, { .verb = AGAIN },
		  DO(CREATE_MR_3, .c = 2 + 4, .n[1] = 500), { .verb = AGAIN });
	FUZZ_SEED("memory", DO(CREATE_MR_LARGE), { .verb = MEMORY }, DO(CREATE_MR_LARGE),
		  { .verb = MEMORY, .a = 1 }, DO(CREATE_MR_LARGE), { .verb = MEMORY, .a = 3 });
	FUZZ_SEED("many", DO(NOP, .c = 1), DO(CREATE_PD, .c = 1), DO(CREATE_PD, .c = 0x81), DO(NOP),
		  { .verb = PUBLISH, .n = { 17 } }, { .verb = WORK }, { .verb = AGAIN }, DO(NOP));
	FUZZ_SEED("traffic", DO(SET_GID), DO(SET_PORT, .n = { 1, 9 }), DO(CREATE_ASYNC_EQ), DO(TO_INIT),
		  DO(TO_RTR), DO(TO_RTS), { .verb = POST, .n = { 0, 1 }, .v[0] = 0x10101 },
		  { .verb = BELL }, { .verb = WORK }, { .verb = POST, .n = { 1, 2 }, .v[0] = 0x10102 },
		  { .verb = BELL }, DO(TO_ERR), { .verb = PASS, .n = { 20000 } }, DO(DESTROY_QP));
	/* Commands, records and lists that are not the same when they are loaded once more. */
	FUZZ_SEED("races", PAGES(0, 0), PAGES(1, 1), PAGES(2, 1), { .verb = RACE, .b = RACE_SET, .c = 15, .v[0] = UINT64_MAX },
		  DO(CREATE_MR_3, .n[1] = 599), DO(CREATE_MR_1, .n[1] = 3), DO(CREATE_PD), DO(QUERY_DEVICE), { .verb = AGAIN },
		  { .verb = RACE, .b = RACE_ADD, .c = 15, .v[0] = 1 }, DO(CREATE_PD, .c = 1), DO(CREATE_PD), DO(NOP),
		  { .verb = AGAIN });
	FUZZ_SEED("bars", { .verb = BAR_READ, .b = 2, .n = { 8 } }, { .verb = BAR_READ, .a = 2, .b = 3 },
		  { .verb = BAR_WRITE, .b = 2, .n = { SKUA_REG_CONTROL }, .v[0] = SKUA_CONTROL_RESET },
		  { .verb = BAR_WRITE, .b = 2, .n = { SKUA_REG_CMD_LOG_SIZE }, .v[0] = 11 },
		  { .verb = BAR_WRITE, .b = 2, .n = { SKUA_REG_CONTROL }, .v[0] = SKUA_CONTROL_ENABLE },
		  { .verb = BAR_READ, .b = 2, .n = { SKUA_REG_CLOCK_LO } }, { .verb = AGAIN },
		  { .verb = BELL, .a = 1, .c = CQ }, { .verb = LINK }, { .verb = FAIL, .a = 7 },
		  { .verb = LINK, .a = 1 });
}
