/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Two devices on a wire, and between them a pair of QPs that is ill-treated: work requests that
 * are good or nearly so, rings and records written over, memory and rights taken away, states
 * changed, pages on demand, time; and records, rings and payload that change between two fetches (race.h). Receives are
 * in RQs or SRQs, of XRC, too. To be included once, after fuzz.h.
 *
 * What must hold whatever happens: the engine comes to rest, and what is left to do then waits for
 * something that will come; every CQE is one of its QP; bytes that no right was given to are as
 * before; and the pair of QPs beside it, which the harness made, still moves data both ways.
 */
#ifndef SKUAD_FUZZ_TRAFFIC_H
#define SKUAD_FUZZ_TRAFFIC_H

#include "base/bytes.h"
#include "core/fault.h"
#include "core/mw.h"
#include "core/qp.h"
#include "fuzz/race.h"
#include "harness/datagram.h"
#include "harness/initiator.h"
#include "harness/paging.h"
#include "nic/control.h"
#include "roce/cnp.h"
#include "roce/dcqcn.h"
#include "roce/rc.h"

#define MAX_ROUNDS	200000
#define ARENA		(256u << 10)	/* at the start of the harness's region; all regions lie in it */
#define UNTOUCHED	0x5a
#define RIGHTS		(ALL_RIGHTS | SKUA_ACCESS_REMOTE_ATOMIC | SKUA_ACCESS_FLUSH_GLOBAL)

enum traffic_verb {
	POST, RECV, PATCH, RECORD, BELL, POLL, PASS, WORK, STEPS, MODIFY, MEMORY, REGION, LINK,
	RACE, PAGING, FAULT, SHARED, NUM_TRAFFIC_VERBS
};

#define DEMAND_PAGES	4	/* of K_DEMAND */

/* Keys that work requests and packets may name; windows begin as if they were bound to all of K_BIND. */
enum key {
	K_ALL, K_READ, K_EXTRA, K_FAST, K_PHYS, K_RESERVED, K_OTHER_PD, K_BIND, K_WINDOW_1, K_WINDOW_2, K_DM, K_DEMAND,
	K_NONE, NUM_KEYS
};

static const struct {
	uint64_t offset, length;	/* in the arena */
	uint32_t access;
	uint8_t type;
} regions[NUM_KEYS] = {
	[K_ALL] = { 0x3028, 0x5064, RIGHTS, SKUA_MR_REGULAR },
	[K_READ] = { 0x10000, 0x4000, SKUA_ACCESS_REMOTE_READ, SKUA_MR_REGULAR },
	[K_EXTRA] = { 0, EXTRA_SIZE, RIGHTS, SKUA_MR_REGULAR },		/* at EXTRA */
	[K_FAST] = { 0x20000, 0x6000, RIGHTS, SKUA_MR_FAST },
	[K_PHYS] = { 0, 0, RIGHTS, SKUA_MR_PHYS },
	[K_OTHER_PD] = { 0x28000, 0x1000, RIGHTS, SKUA_MR_REGULAR },
	[K_BIND] = { 0x30080, 0x2f00, SKUA_ACCESS_LOCAL_WRITE | SKUA_ACCESS_MW_BIND, SKUA_MR_REGULAR },
	[K_WINDOW_1] = { 0x30080, 0x2f00, 0, SKUA_MW_TYPE_1 },
	[K_WINDOW_2] = { 0x30080, 0x2f00, 0, SKUA_MW_TYPE_2 },
	[K_DM] = { 0x18, 0x3000, RIGHTS, SKUA_MR_DM },		/* in the DM */
	[K_DEMAND] = { 0x38000, DEMAND_PAGES * 4096, RIGHTS, SKUA_MR_REGULAR },
};

struct side {
	struct node *n;
	uint64_t sq, sq_dbr, rq, rq_dbr, cq, cq_dbr, list;
	uint32_t qpn, cqn, pdn, other_pdn, dmn, sq_pi, rq_pi, cq_ci;
	uint32_t key[NUM_KEYS];
	uint32_t srqn, xrcdn;
	uint8_t type;
	uint8_t mtu;			/* of its QP, as MODIFY_QP has it */
	struct fault_queue faults;
};

struct traffic {
	struct world *w;
	struct side side[2];
	uint8_t type, log_sq, log_rq, log_cq;
	bool srq;			/* receives are in SRQs */
	bool privileged;		/* may write anywhere, hence nothing is untouched */
	bool extra;
};

/* An SGE in a step. */
struct sge_code {
	uint8_t key, kind;
	uint16_t offset;
	uint32_t length;
};

/* Of a requester at rest: its indices and PSNs fit, and it waits for a timer or for nothing. */
static void check_requester(const struct skua_qp *qp)
{
	const struct roce_req *req = &rc_of(qp)->req;
	const struct sq *sq = &qp->sq;
	const struct send_wqe *una = sq->wqes ? sq_wqe(qp, sq->una) : NULL;

	CHECK(sq->tail - sq->una <= sq->wqe_mask + 1 && sq->nxt - sq->una <= sq->tail - sq->una);
	if (qp->state != SKUA_QPS_RTS || sq->una == sq->tail)
		return;
	CHECK(!una->npsn || (psn_diff(req->oldest_unacked_psn, una->psn) >= 0 &&
			     psn_diff(req->oldest_unacked_psn, una->psn) <= (int32_t)una->npsn));
	CHECK(psn_diff(sq->psn, req->oldest_unacked_psn) >= 0);
	CHECK(req->reads_outstanding <= qp->max_rd);
	if (sent_is_empty(&req->sent)) {
		CHECK(req->next_psn == req->oldest_unacked_psn);
		CHECK(pacer_paused(qp) || fault_is_waiting(qp, SKUA_PAGE_FAULT_REQUESTER));
		return;
	}
	/* Whatever is outstanding has a timer (ROC-17). */
	CHECK(rc_of(qp)->timer.pos);
	CHECK(TAILQ_FIRST(&req->sent.runs)->psn == req->oldest_unacked_psn);
}

static void check_qp(const struct skua_qp *qp)
{
	bool rc = qp->type == SKUA_QPT_RC || qp->type == SKUA_QPT_XRC_INI || qp->type == SKUA_QPT_XRC_TGT;
	bool connected = rc || qp->type == SKUA_QPT_UC, paused = connected && pacer_paused(qp);
	bool sends = !paused && !fault_is_waiting(qp, SKUA_PAGE_FAULT_REQUESTER);
	bool answers = !paused && !fault_is_waiting(qp, SKUA_PAGE_FAULT_RESPONDER);

	if (rc)
		check_requester(qp);
	/* Nobody answers: what was sent is complete. */
	else if (qp->state == SKUA_QPS_RTS || qp->state == SKUA_QPS_SQE)
		CHECK(qp->sq.una == qp->sq.tail || !sends);
	else
		CHECK(qp->sq.una == qp->sq.nxt);
	CHECK(!rc || !answers || (rc_of(qp)->resp.jobs_head == rc_of(qp)->resp.jobs_tail && !rc_of(qp)->resp.ack_due));
	CHECK(!connected || !cnp_is_due(qp));
	if (qp->state != SKUA_QPS_ERR)
		return;
	CHECK(qp->sq.una == qp->sq.tail && !(connected && conn_of(qp)->message.have_recv));
	CHECK(!qp->rq.size || (qp->in_err && qp->dev->err_timer.pos));
}

/* Each window that is bound is one of its MR's, and of its QP's if it is of type 2. */
static void check_windows(const struct skua_dev *dev)
{
	int64_t windows = 0, bound = 0;
	const struct skua_qp *qp;
	const struct mr *mr;
	const struct mw *mw;
	uint32_t at = 0;

	while ((mr = numtab_next(&dev->mrs, &at))) {
		windows += mr->windows;
		if (!mr_is_window(mr) || !mr->valid)
			continue;
		CHECK(mw_of(mr)->mr->windows && mw_of(mr)->mr->pages.addr == mr->pages.addr);
		bound += 1 + mr_is_type2_window(mr) * 1000;
	}
	for (at = 0; (qp = numtab_next(&dev->qps, &at)); )
		LIST_FOREACH(mw, &qp->windows, entry) {
			CHECK(mw->rec.valid && mw->qp == qp);
			bound -= 1000;
		}
	CHECK(bound == windows);
}

/* Let the engine work until it has come to rest. */
static void work(struct traffic *t)
{
	int i;

	for (i = 0; i < MAX_ROUNDS && engine_step(t->w->engines[0]); i++)
		;
	CHECK(i < MAX_ROUNDS);
	for (i = 0; i < 2; i++) {
		const struct skua_qp *qp;
		uint32_t at = 0;

		while ((qp = numtab_next(&t->w->n[i].dev->qps, &at)))
			check_qp(qp);
		check_windows(t->w->n[i].dev);
	}
}

static uint64_t base_of(const struct side *s, enum key key)
{
	return key == K_EXTRA ? EXTRA : key == K_DM ? 0 : s->n->buf + regions[key].offset;
}

static bool is_window(enum key key)
{
	return key == K_WINDOW_1 || key == K_WINDOW_2;
}

static void create_window(struct traffic *t, struct side *s, enum key key)
{
	struct skua_cmd cmd = CMD(SKUA_CMD_CREATE_MW, .create_mw = {
		.pdn = htole32(s->pdn), .type = regions[key].type });

	s->key[key] = command(t->w, s->n, &cmd) ? 0 : s->n->number;
}

/* All that there are with the features that were accepted. */
static uint32_t rights_of(const struct side *s)
{
	return ALL_RIGHTS | (s->n->features >> SKUA_F_ATOMIC & 1 ? SKUA_ACCESS_REMOTE_ATOMIC : 0) |
	       (s->n->features >> SKUA_F_FLUSH & 1 ? SKUA_ACCESS_FLUSH_GLOBAL : 0);
}

static void create_region(struct traffic *t, struct side *s, enum key key)
{
	struct skua_cmd cmd = create_mr_cmd(s->n);
	uint64_t base = base_of(s, key), length = regions[key].length;

	if (is_window(key)) {
		create_window(t, s, key);
		return;
	}
	cmd.create_mr.pdn = htole32(key == K_OTHER_PD ? s->other_pdn : s->pdn);
	cmd.create_mr.type = regions[key].type;
	cmd.create_mr.access = htole32(regions[key].access & (rights_of(s) | SKUA_ACCESS_MW_BIND));
	if (key == K_DM) {
		cmd.create_mr.dmn = htole32(s->dmn);
		cmd.create_mr.dm_offset = htole64(regions[key].offset);
	}
	cmd.create_mr.iova = htole64(length ? base : 0);
	cmd.create_mr.length = htole64(length);
	cmd.create_mr.pages = (struct skua_pagelist){ 0 };
	if (key == K_DEMAND) {
		cmd.create_mr.access |= htole32(SKUA_ACCESS_ON_DEMAND);
		cmd.create_mr.pages.log_page = 12;
	} else if (length && key != K_DM) {
		cmd.create_mr.pages = list(base & ~4095ull, (base & 4095) + length);
		cmd.create_mr.pages.offset = htole64(base & 4095);
	}
	if (cmd.create_mr.type == SKUA_MR_FAST && !(s->n->features & 1 << SKUA_F_INVALIDATE))
		cmd.create_mr.type = SKUA_MR_REGULAR;
	s->key[key] = command(t->w, s->n, &cmd) ? 0 : s->n->number;
}

static void create_dm(struct traffic *t, struct side *s)
{
	struct skua_cmd cmd = CMD(SKUA_CMD_ALLOC_DM, .alloc_dm = {
		.length = htole64(regions[K_DM].offset + regions[K_DM].length) });

	s->dmn = command(t->w, s->n, &cmd) ? 0 : s->n->number;
}

static const uint8_t group[16] = { [10] = 255, [11] = 255, 239, 1, 2, 3 };

static struct skua_cmd group_cmd(uint16_t opcode, uint32_t qpn)
{
	struct skua_cmd cmd = CMD(opcode, .mcast = { .qpn = htole32(qpn) });

	memcpy(cmd.mcast.mgid, group, 16);
	return cmd;
}

/* In the place of the RQ; an XRC_TGT QP finds it by its domain. */
static void create_srq(struct traffic *t, struct side *s)
{
	struct skua_cmd cmd = CMD(SKUA_CMD_CREATE_SRQ, .create_srq = {
		.pdn = htole32(s->pdn), .log_size = t->log_rq, .log_stride = 6, .srq_handle = htole64(QP_HANDLE),
		.dbr_addr = htole64(s->rq_dbr), .ring = list(s->rq, 64u << t->log_rq) });

	if (s->type == SKUA_QPT_XRC_TGT) {
		s->xrcdn = must(t->w, s->n, (struct skua_cmd)CMD(SKUA_CMD_CREATE_XRCD));
		cmd.create_srq.xrcdn = htole32(s->xrcdn);
		cmd.create_srq.cqn = htole32(s->cqn);
	}
	s->srqn = must(t->w, s->n, cmd);
}

static struct skua_cmd create_qp(const struct traffic *t, const struct side *s)
{
	struct skua_cmd cmd = create_qp_cmd(s->n);

	if (s->type == SKUA_QPT_XRC_TGT)
		return xrc_tgt_cmd(s->xrcdn);
	cmd.create_qp.log_rq_size = t->log_rq;
	cmd.create_qp.rq_dbr_addr = htole64(s->rq_dbr);
	cmd.create_qp.rq = list(s->rq, 64u << t->log_rq);
	cmd.create_qp.recv_cqn = htole32(s->cqn);
	if (s->type == SKUA_QPT_XRC_INI) {
		cmd = xrc_ini_cmd(s->n);
	} else if (t->srq) {
		cmd.create_qp.srqn = htole32(s->srqn);
		cmd.create_qp.log_rq_size = 0;
		cmd.create_qp.log_rq_stride = 0;
		cmd.create_qp.rq_dbr_addr = 0;
		cmd.create_qp.rq = (struct skua_pagelist){ 0 };
	}
	cmd.create_qp.type = s->type;
	cmd.create_qp.flags = htole32(t->privileged ? SKUA_QP_PRIVILEGED : 0);
	cmd.create_qp.pdn = htole32(s->pdn);
	cmd.create_qp.send_cqn = htole32(s->cqn);
	cmd.create_qp.log_sq_blocks = t->log_sq;
	cmd.create_qp.sq_dbr_addr = htole64(s->sq_dbr);
	cmd.create_qp.sq = list(s->sq, 64u << t->log_sq);
	return cmd;
}

static void create_side(struct traffic *t, struct side *s, struct node *n, uint8_t type)
{
	struct skua_cmd cq, port = port_cmd(SKUA_PORT_SET_MTU, 0);

	s->n = n;
	s->type = type;
	port.set_port.mtu = htole32(LIMIT_MTU);	/* every path MTU goes through */
	must(t->w, n, port);
	s->pdn = must(t->w, n, (struct skua_cmd)CMD(SKUA_CMD_CREATE_PD));
	s->other_pdn = must(t->w, n, (struct skua_cmd)CMD(SKUA_CMD_CREATE_PD));
	s->cq = take(n, 64u << t->log_cq);
	s->cq_dbr = take(n, 64);
	s->sq = take(n, 64u << t->log_sq);
	s->sq_dbr = take(n, 64);
	s->rq = take(n, 64u << t->log_rq);
	s->rq_dbr = take(n, 64);
	s->list = take(n, 4096);
	cq = create_cq_cmd(n);
	cq.create_cq.log_size = t->log_cq;
	cq.create_cq.dbr_addr = htole64(s->cq_dbr);
	cq.create_cq.ring = list(s->cq, 64u << t->log_cq);
	s->cqn = must(t->w, n, cq);
	if (t->srq)
		create_srq(t, s);
	s->qpn = must(t->w, n, create_qp(t, s));
	if (t->type == SKUA_QPT_UD)
		must(t->w, n, group_cmd(SKUA_CMD_ATTACH_MCAST, s->qpn));
	create_dm(t, s);
	fault_queue_create(t->w, n, &s->faults);
	for (enum key k = 0; k < K_NONE; k++)
		if (k != K_RESERVED)
			create_region(t, s, k);
	s->key[K_RESERVED] = RESERVED_LKEY;
	s->key[K_NONE] = 0x12345678;
	memset(at(n, n->buf), UNTOUCHED, ARENA);
}

static void connect_ud(struct traffic *t, struct side *s)
{
	s->mtu = 5;
	must(t->w, s->n, modify_cmd(s->qpn, SKUA_QP_ATTR_STATE | SKUA_QP_ATTR_PKEY_INDEX |
				    SKUA_QP_ATTR_QKEY, (struct skua_qp_attr){
				    .state = SKUA_QPS_INIT, .qkey = htole32(QKEY) }));
	must(t->w, s->n, state_cmd(s->qpn, SKUA_QPS_RTR));
	must(t->w, s->n, modify_cmd(s->qpn, SKUA_QP_ATTR_STATE | SKUA_QP_ATTR_SQ_PSN,
				    (struct skua_qp_attr){ .state = SKUA_QPS_RTS }));
}

/* Flows of a type that the step chooses to the QP: to all of the frames, and to some. */
static void connect_raw(struct traffic *t, struct side *s, const struct step *how)
{
	struct skua_cmd cmd = CMD(SKUA_CMD_CREATE_FLOW, .flow = {
		.qpn = htole32(s->qpn), .type = (uint8_t)(how->n[1] % 3) });

	must(t->w, s->n, cmd);
	cmd.flow.type = (uint8_t)((how->n[1] >> 4) % 3);
	cmd.flow.mask.dmac[0] = 1;
	must(t->w, s->n, cmd);
}

/* INIT to RTS, as far as it gets; @how: a step that chooses. */
static void connect_side(struct traffic *t, struct side *s, const struct side *peer,
			 const struct step *how)
{
	struct skua_cmd init = init_cmd(s->qpn), rtr = rtr_cmd(s->qpn, peer->n, peer->qpn);
	struct skua_cmd rts = rts_cmd(s->qpn), port = port_cmd(SKUA_PORT_SET_RX_QP, 0);

	if (t->type == SKUA_QPT_ETH) {
		for (uint8_t state = SKUA_QPS_INIT; state <= SKUA_QPS_RTS; state++)
			must(t->w, s->n, state_cmd(s->qpn, state));
		port.set_port.rx_qpn = htole32(s->qpn);
		if (t->privileged)
			must(t->w, s->n, port);
		else
			connect_raw(t, s, how);
		return;
	}
	if (t->type != SKUA_QPT_RC && t->type != SKUA_QPT_UC) {
		connect_ud(t, s);
		return;
	}
	s->mtu = 1 + ((s == &t->side[0] ? how->b : how->c) + 2) % 5;
	init.modify_qp.attr.access = htole32(rights_of(s) & ~(how->n[1] >> 28) & ~(uint32_t)SKUA_ACCESS_LOCAL_WRITE);
	rtr.modify_qp.attr.path_mtu = s->mtu;
	rtr.modify_qp.attr.max_dest_rd_atomic = htole16(4 - how->n[1] % 5);
	rts.modify_qp.attr.max_rd_atomic = htole16(4 - (how->n[1] >> 4) % 5);
	rts.modify_qp.attr.retry_cnt = 7 - (how->n[1] >> 8) % 8;
	rts.modify_qp.attr.rnr_retry = (how->n[1] >> 12) % 8;
	rts.modify_qp.attr.timeout = 14 - (how->n[1] >> 16) % 15;
	if (s->type == SKUA_QPT_XRC_INI)
		rtr.modify_qp.mask = xrc_ini_rtr_cmd(s->qpn, peer->n, peer->qpn).modify_qp.mask;
	if (s->type == SKUA_QPT_XRC_TGT)
		rts.modify_qp.mask = xrc_tgt_rts_cmd(s->qpn).modify_qp.mask;
	if (t->type == SKUA_QPT_UC) {
		rtr.modify_qp.mask &= ~htole32(SKUA_QP_ATTR_MAX_DEST_RD_ATOMIC | SKUA_QP_ATTR_MIN_RNR_TIMER);
		rts.modify_qp.mask = htole32(SKUA_QP_ATTR_STATE | SKUA_QP_ATTR_SQ_PSN);
	}
	must(t->w, s->n, init);
	must(t->w, s->n, rtr);
	must(t->w, s->n, rts);
}

/* What the first step asks for. */
static void traffic_create(struct traffic *t, const struct step *s)
{
	static const uint8_t types[8] = {
		SKUA_QPT_RC, SKUA_QPT_ETH, SKUA_QPT_UC, SKUA_QPT_ETH, SKUA_QPT_UD, SKUA_QPT_UC,
		SKUA_QPT_GSI, SKUA_QPT_UD,
	};
	uint8_t type = types[s->a >> 5];
	bool has_srq = type == SKUA_QPT_RC || type == SKUA_QPT_UC || type == SKUA_QPT_UD;
	bool xrc = type == SKUA_QPT_RC && s->n[0] >> 17 & 1;

	*t = (struct traffic){
		.type = type, .privileged = s->a & 8 || s->a >> 5 == 1 || type == SKUA_QPT_GSI,
		.log_sq = 8 - s->n[0] % 9, .log_rq = 6 - (s->n[0] >> 4) % 7,
		.log_cq = 8 - (s->n[0] >> 8) % 9, .extra = true,
		.srq = xrc || (has_srq && s->n[0] >> 16 & 1),
	};
	t->w = world_create_with(false, ~0ull ^ (s->a & 1 ? 1 << SKUA_F_EVENT_IDX : 0) ^
					(s->a & 2 ? 1 << SKUA_F_ATOMIC : 0) ^
					(s->a & 4 ? 1 << SKUA_F_INVALIDATE : 0));
	create_side(t, &t->side[0], &t->w->n[0], xrc ? SKUA_QPT_XRC_INI : type);
	create_side(t, &t->side[1], &t->w->n[1], xrc ? SKUA_QPT_XRC_TGT : type);
	/* A QP may be its own peer. */
	connect_side(t, &t->side[0], &t->side[xrc || !(s->a & 0x10)], s);
	connect_side(t, &t->side[1], &t->side[0], s);
}

static struct skua_sge decode_sge(const struct side *s, const struct sge_code *c)
{
	enum key key = c->key % NUM_KEYS;
	uint64_t addr = base_of(s, key) + c->offset;

	if (c->kind & 1)
		addr += regions[key].length;
	if (c->kind & 2)
		addr -= 2 * (uint64_t)c->offset;
	return (struct skua_sge){
		.addr = htole64(addr), .length = htole32(c->kind & 4 ? c->length : c->length % 0x8000),
		.lkey = htole32(s->key[key] ^ (c->kind >> 4)) };
}

static void ring_sq(struct side *s)
{
	host_store32(at(s->n, s->sq_dbr), s->sq_pi);
	ring(s->n, SKUA_DB_SQ, s->qpn, s->sq_pi);
}

/* To the peer, to the group, or nowhere. */
static struct skua_wqe_ud datagram_segment(const struct side *peer, const struct step *p)
{
	struct skua_wqe_ud ud = p->n[2] & 0x100 ? ud_to_group(group) : ud_to(peer->n);

	if (!(p->n[2] & 0x100))
		ud.dest_qpn = htole32(peer->qpn);
	if (p->n[2] & 0x200)
		ud.qkey = htole32(p->n[1]);
	if (p->n[2] & 0x400)
		((uint8_t *)&ud)[(p->n[2] >> 16 & 0xff) % sizeof(ud)] ^= p->n[2] >> 24;
	return ud;
}

/* A list of pieces: two bytes for each, length and place. The last one is as long as it takes, or not. */
static void put_pieces(const struct side *s, const struct step *p, struct skua_wqe_reg_mr *reg)
{
	uint32_t n = p->v[1] >> 16 & 7, left = p->v[1] & 0x7fff;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t length = i + 1 < n ? p->bytes[2 * i] * 4u : left;
		struct skua_piece piece = {
			.addr = htole64(s->n->buf + p->bytes[2 * i + 1] * 1021ull), .length = htole32(length),
		};

		left -= length;
		memcpy(at(s->n, s->list + i * sizeof(piece)), &piece, sizeof(piece));
	}
	reg->npages = htole32(n);
	reg->log_page = 0;
	reg->offset = 0;
}

/*
 * REG_MR: @v[0]: rights, and what is wrong; @v[1]: length and offset; bytes: pages of the arena, or with bit 18 of
 * @v[0] pieces. Who may do that may reach all memory anyway.
 */
static struct skua_wqe_reg_mr registration(const struct side *s, const struct step *p, enum key key)
{
	uint32_t length = p->v[1] & 0x7fff, offset = p->v[1] >> 16 & 0x1fff;
	uint32_t npages = (offset + length + 4095) / 4096 + (p->v[0] >> 8 & 1);
	struct skua_wqe_reg_mr reg = {
		.key = htole32(s->key[key] ^ (p->n[2] >> 24)), .access = htole32(p->v[0] & 0x1f),
		.iova = htole64(base_of(s, key)), .length = htole64(length), .offset = htole32(offset),
		.list = htole64(s->list + (p->v[0] >> 9 & 7)), .npages = htole32(npages),
		.log_page = (uint8_t)(12 + (p->v[0] >> 12 & 3)),
	};

	if (p->v[0] >> 16 & 1)
		reg.list = htole64(EXTRA + EXTRA_SIZE - 8);
	reg.rsvd[0] = p->v[0] >> 17 & 1;
	if (p->v[0] >> 18 & 1) {
		put_pieces(s, p, &reg);
		return reg;
	}
	for (unsigned int i = 0; i < sizeof(p->bytes); i++) {
		__le64 entry = htole64((s->n->buf + p->bytes[i] % 64 * 4096ull) | (p->bytes[i] < 128));

		memcpy(at(s->n, s->list + i * 8ull), &entry, sizeof(entry));
	}
	return reg;
}

/* BIND_MW of the key's window, or what is none: @v[0]: rights, MR, and what is wrong; @v[1]: length and where. */
static struct skua_wqe_bind_mw binding(struct side *s, const struct step *p, enum key key)
{
	enum key mr = (p->v[0] >> 8) % NUM_KEYS;
	struct skua_wqe_bind_mw bind = {
		.key = htole32(s->key[key] ^ (p->n[2] >> 24)), .mr_key = htole32(s->key[mr] ^ (p->v[0] >> 16 & 1)),
		.addr = htole64(base_of(s, mr) + (p->v[1] >> 16 & 0xffff)), .length = htole64(p->v[1] & 0xffff),
		.access = htole32(p->v[0] & 0x7f), .rsvd = p->v[0] >> 17 & 1,
	};

	if (is_window(key))
		s->key[key] ^= p->n[2] >> 24;
	return bind;
}

/*
 * What follows the control segment of a TSO. n[1]: mss, and bytes of headers, if not all; v[0]: whether IPv6, and a tag;
 * v[1]: a byte of the headers that is another, and how.
 */
static uint32_t put_tso(uint8_t *place, const struct step *p)
{
	static const uint8_t ipv4[] = { 8, 0, 0x45, 0, 0, 0, 0, 1, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2 };
	static const uint8_t ipv6[42] = { 0x86, 0xdd, 0x60, [8] = 6, [9] = 64, [10] = 0x20, [26] = 0x20 };
	static const uint8_t tag[] = { 0x81, 0, 0, 5 };
	static const uint8_t tcp[24] = { 0x12, 0x34, 0, 80, 0, 0, 0, 9, [12] = 0x60, [13] = 0x99, [20] = 1, 1, 1, 1 };
	uint8_t headers[256] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1 }, *end = headers + 12;
	struct skua_wqe_tso tso = { .mss = htole16((uint16_t)p->n[1]), .rsvd[5] = p->n[0] >> 31 };
	uint32_t len;

	if (p->v[0] & 2)
		end = put_bytes(end, tag, sizeof(tag));
	end = p->v[0] & 1 ? put_bytes(end, ipv6, sizeof(ipv6)) : put_bytes(end, ipv4, sizeof(ipv4));
	end = put_bytes(end, tcp, sizeof(tcp));
	headers[p->v[1] & 0x7f] ^= (uint8_t)(p->v[1] >> 8);
	len = p->n[1] >> 16 ? p->n[1] >> 16 & 0xff : (uint32_t)(end - headers);
	tso.hdr_len = htole16((uint16_t)len);
	memcpy(place, &tso, sizeof(tso));
	memcpy(place + sizeof(tso), headers, len);
	return (uint32_t)sizeof(tso) + (len + 15) / 16 * 16;
}

/*
 * @b: opcode; @c: flags; n[0]: SGEs, blocks too many, inline bytes, what is reserved; n[1] and
 * n[2]: remote address and key; bytes: SGEs or data.
 */
static void post_wqe(struct traffic *t, const struct step *p)
{
	struct side *s = &t->side[p->a & 1], *peer = &t->side[!(p->a & 1)];
	enum key rkey = p->n[2] % NUM_KEYS;
	uint8_t wqe[SKUA_WQE_MAX_BLOCKS * SKUA_WQE_BLOCK + 1024] = { 0 };
	struct skua_wqe_ctrl c = {
		.opcode = p->b % (SKUA_WQE_MASKED_FETCH_ADD + 1), .flags = p->c, .num_sge = p->n[0] % 32,
		.cookie = htole32(s->sq_pi), .imm_data = (uint32_t)p->v[0],
	};
	struct skua_wqe_masked_atomic r = {
		.raddr = htole64(base_of(peer, rkey) + p->n[1]), .rsvd = p->n[0] >> 31,
		.rkey = htole32(peer->key[rkey] ^ (p->n[2] >> 24)),
		.swap_add = htole64(p->v[0]), .compare = htole64(p->v[1]),
		.swap_add_mask = htole64(p->v[0]), .compare_mask = htole64(p->v[1]),
	};
	struct skua_wqe_xrc xrc = { .srqn = htole32(p->a & 16 ? p->n[1] : peer->srqn), .rsvd[3] = p->a >> 5 & 1 };
	uint32_t at_byte = sizeof(c), segment, blocks;

	if (c.opcode == SKUA_WQE_SEND_INV || c.opcode == SKUA_WQE_LOCAL_INV)
		c.inv_key = htole32((c.opcode == SKUA_WQE_SEND_INV ? peer : s)->key[rkey]);
	else if (c.opcode != SKUA_WQE_SEND_IMM && c.opcode != SKUA_WQE_WRITE_IMM && !(p->a & 4))
		c.imm_data = 0;
	if (c.opcode == SKUA_WQE_FLUSH) {
		r.rsvd = htole32((uint32_t)p->v[0] & 0x37);
		c.length = htole32((uint32_t)p->v[1]);
	}
	if (s->type == SKUA_QPT_XRC_INI && c.opcode != SKUA_WQE_NOP && c.opcode != SKUA_WQE_LOCAL_INV) {
		memcpy(wqe + at_byte, &xrc, sizeof(xrc));
		at_byte += sizeof(xrc);
	}
	segment = at_byte;
	if (c.opcode >= SKUA_WQE_MASKED_CMP_SWAP)
		at_byte += sizeof(r);
	else if ((c.opcode >= SKUA_WQE_WRITE && c.opcode <= SKUA_WQE_READ) || c.opcode >= SKUA_WQE_FLUSH)
		at_byte += sizeof(struct skua_wqe_rdma);
	else if (c.opcode >= SKUA_WQE_CMP_SWAP)
		at_byte += sizeof(struct skua_wqe_atomic);
	memcpy(wqe + segment, &r, at_byte - segment);
	if (c.opcode == SKUA_WQE_REG_MR) {
		struct skua_wqe_reg_mr reg = registration(s, p, rkey);

		memcpy(wqe + sizeof(c), &reg, sizeof(reg));
		at_byte = sizeof(c) + sizeof(reg);
	}
	if (c.opcode == SKUA_WQE_BIND_MW) {
		struct skua_wqe_bind_mw bind = binding(s, p, rkey);

		memcpy(wqe + sizeof(c), &bind, sizeof(bind));
		at_byte = sizeof(c) + sizeof(bind);
	}
	if (c.opcode == SKUA_WQE_TSO)
		at_byte = (uint32_t)sizeof(c) + put_tso(wqe + sizeof(c), p);
	if ((t->type == SKUA_QPT_UD || t->type == SKUA_QPT_GSI) && c.opcode != SKUA_WQE_NOP) {
		struct skua_wqe_ud ud = datagram_segment(peer, p);

		memcpy(wqe + sizeof(c), &ud, sizeof(ud));
		at_byte = sizeof(c) + sizeof(ud);
	}
	if (c.flags & SKUA_WQE_INLINE) {
		uint32_t len = p->n[0] >> 8 & 0x3ff;

		c.num_sge = p->a & 8 ? c.num_sge : 0;
		c.length = htole32(len);
		memcpy(wqe + at_byte, p->bytes, sizeof(p->bytes));
		at_byte += len;
	}
	for (unsigned int i = 0; i < c.num_sge; i++, at_byte += sizeof(struct skua_sge)) {
		struct skua_sge sge = decode_sge(s, (const struct sge_code *)p->bytes + i % 4);

		memcpy(wqe + at_byte, &sge, sizeof(sge));
	}
	blocks = (at_byte + SKUA_WQE_BLOCK - 1) / SKUA_WQE_BLOCK;
	c.nblocks = (uint8_t)(blocks + (p->n[0] >> 24 & 7));
	memcpy(wqe, &c, sizeof(c));
	for (unsigned int i = 0; i < blocks && i < SKUA_WQE_MAX_BLOCKS; i++, s->sq_pi++)
		memcpy(at(s->n, s->sq + (s->sq_pi & ((1u << t->log_sq) - 1)) * 64ull), wqe + i * 64, 64);
	if (!(p->a & 2))
		ring_sq(s);
}

static void post_rqe_step(struct traffic *t, const struct step *p)
{
	struct side *s = &t->side[p->a & 1];
	struct { struct skua_rqe r; struct skua_sge s[3]; } e = {
		.r = { .cookie = htole32(s->rq_pi), .num_sge = p->b % 5 } };

	e.r.rsvd[3] = p->c >> 7;
	for (int i = 0; i < 3; i++)
		e.s[i] = decode_sge(s, (const struct sge_code *)p->bytes + i);
	for (unsigned int i = 0; i <= p->n[0] % 8; i++, s->rq_pi++)
		memcpy(at(s->n, s->rq + (s->rq_pi & ((1u << t->log_rq) - 1)) * 64ull), &e, sizeof(e));
	host_store32(at(s->n, s->rq_dbr), s->rq_pi);
}

/* Bytes anywhere in the rings, or in what is sent. */
static void patch(struct traffic *t, const struct step *p)
{
	struct side *s = &t->side[p->a & 1];
	const struct { uint64_t at; uint64_t size; } places[] = {
		{ s->sq, 64u << t->log_sq }, { s->rq, 64u << t->log_rq },
		{ base_of(s, K_ALL), regions[K_ALL].length },
	};
	unsigned int i = p->b % 3;

	memcpy((uint8_t *)at(s->n, places[i].at) + p->n[0] % (places[i].size - 31), p->bytes, 32);
}

static void record(struct traffic *t, const struct step *p)
{
	struct side *s = &t->side[p->a & 1];

	switch (p->b % 6) {
	case 0:
		host_store32(at(s->n, s->sq_dbr), p->c & 1 ? p->n[0] : s->sq_pi + p->n[0]);
		break;
	case 1:
		host_store32(at(s->n, s->rq_dbr), p->c & 1 ? p->n[0] : s->rq_pi + p->n[0]);
		break;
	case 2:
		host_store32(at(s->n, s->cq_dbr), p->c & 1 ? p->n[0] : s->cq_ci + p->n[0]);
		break;
	case 3:
		memcpy((uint8_t *)at(s->n, s->cq_dbr) + 8, &p->v[0], 8);
		break;
	case 4:
		host_store32(at(s->n, s->n->eq_dbr), p->n[0]);
		break;
	case 5:
		host_store32((uint8_t *)at(s->n, s->sq_dbr) + 4, p->n[0]);
		break;
	}
}

static void bell(struct traffic *t, const struct step *p)
{
	struct side *s = &t->side[p->a & 1];
	const uint32_t numbers[] = { s->qpn, s->cqn, p->n[0], t->side[!(p->a & 1)].qpn };

	ring_page(s->n, p->n[1] % 2, p->b % 4 * 8, numbers[p->c % 4], p->n[2]);
}

/* Consume CQEs, all of them sound. */
static void poll_side(struct traffic *t, struct side *s, unsigned int most)
{
	for (unsigned int i = 0; i < most; i++) {
		uint64_t slot = s->cq_ci & ((1u << t->log_cq) - 1);
		const struct skua_cqe *cqe = at(s->n, s->cq + slot * sizeof(*cqe));

		if ((cqe->flags & SKUA_CQE_PHASE) == (s->cq_ci >> t->log_cq & 1))
			break;
		CHECK(le32toh(cqe->qpn) == s->qpn && le64toh(cqe->qp_handle) == QP_HANDLE);
		CHECK(cqe->status <= SKUA_CQE_GENERAL_ERR);
		CHECK((cqe->opcode & ~SKUA_CQE_OPCODE_RECV) <= SKUA_CQE_MASKED_FETCH_ADD);
		CHECK(cqe->status || !cqe->vendor_err);
		s->cq_ci++;
	}
	host_store32(at(s->n, s->cq_dbr), s->cq_ci);
}

static void reset_side(struct traffic *t, struct side *s)
{
	must(t->w, s->n, state_cmd(s->qpn, SKUA_QPS_RESET));
	host_store32(at(s->n, s->sq_dbr), 0);
	s->sq_pi = 0;
	if (t->srq)
		return;
	host_store32(at(s->n, s->rq_dbr), 0);
	s->rq_pi = 0;
}

static void modify(struct traffic *t, const struct step *p)
{
	struct side *s = &t->side[p->a & 1];
	struct skua_qp_attr attr = { .state = p->b % 8 };
	struct skua_cmd cmd;

	switch (p->c % 5) {
	case 0:		/* ERR, if it is not in RESET */
		cmd = state_cmd(s->qpn, SKUA_QPS_ERR);
		command(t->w, s->n, &cmd);
		break;
	case 1:
		reset_side(t, s);
		break;
	case 2:
	case 3:		/* to RTS once more, with its peer or alone */
		reset_side(t, s);
		connect_side(t, s, &t->side[!(p->a & 1)], p);
		if (p->c % 5 == 3)
			break;
		reset_side(t, &t->side[!(p->a & 1)]);
		connect_side(t, &t->side[!(p->a & 1)], s, p);
		break;
	case 4:
		memcpy(&attr, p->bytes, 28);
		cmd = modify_cmd(s->qpn, p->n[0], attr);
		if (p->n[0] & SKUA_QP_ATTR_AV)
			memcpy(&cmd.modify_qp.attr.av, p->v, 16);
		command(t->w, s->n, &cmd);
		break;
	}
}

static void set_extra(struct traffic *t, bool present, bool writable)
{
	for (int i = 0; i < 2; i++) {
		if (t->extra)
			unmap_extra(&t->w->n[i]);
		if (present)
			map_extra(&t->w->n[i], writable);
	}
	t->extra = present;
}

/* A region goes, or comes again. */
static void region(struct traffic *t, const struct step *p)
{
	struct side *s = &t->side[p->a & 1];
	enum key k = p->b % K_NONE;
	struct skua_cmd cmd = object_cmd(is_window(k) ? SKUA_CMD_DESTROY_MW : SKUA_CMD_DESTROY_MR, s->key[k]);

	if (k == K_RESERVED)
		return;
	command(t->w, s->n, &cmd);
	if (p->c & 1)
		create_region(t, s, k);
}

/*
 * UPDATE_PAGES of K_DEMAND, or of what is another kind. n[0]: the first page, how many, and whether there is a list;
 * bytes: of each entry, which page of the region it is, and whether it is there; @c: what is wrong.
 */
static void update_pages(struct traffic *t, const struct step *p)
{
	struct side *s = &t->side[p->a & 1];
	enum key key = p->b & 0x80 ? p->b % NUM_KEYS : K_DEMAND;
	uint64_t list_at = s->faults.list + (p->c >> 4 & 1);
	struct skua_cmd cmd = pages_cmd(s->key[key] ^ (p->c >> 7), p->n[0] & 7, p->n[0] >> 4 & 15,
					p->n[0] & 0x100 ? 0 : list_at);
	uint32_t bit = p->n[1] % 24;

	for (uint32_t i = 0; i < 16; i++) {
		uint64_t page = base_of(s, K_DEMAND) + p->bytes[i] / 4 % DEMAND_PAGES * 4096ull;
		__le64 entry = htole64(p->bytes[i] & 1 ? page | SKUA_PL_PRESENT | (p->bytes[i] & SKUA_PL_READ_ONLY) : 0);

		/* The bits that tell the pages of the region apart from others stay: else it may write them. */
		if (!i && p->c & 1)
			entry ^= htole64(1ull << (bit < 12 ? bit : bit + 28));
		memcpy(at(s->n, s->faults.list + i * sizeof(entry)), &entry, sizeof(entry));
	}
	command(t->w, s->n, &cmd);
}

/* The oldest page fault ends, if there is one. @b: how; @c: whether another token is named, and the entry is kept. */
static void end_fault(struct traffic *t, const struct step *p)
{
	struct side *s = &t->side[p->a & 1];
	const struct skua_fault_eqe *fault = fault_queue_next(s->n, &s->faults);
	struct skua_cmd cmd;

	if (!fault)
		return;
	CHECK(le32toh(fault->qpn) == s->qpn && le64toh(fault->handle) == QP_HANDLE);
	CHECK(fault->side <= SKUA_PAGE_FAULT_RESPONDER && fault->write <= 1 && fault->length);
	cmd = resume_cmd(*fault, p->b);
	if (p->c & 1)
		cmd.fault_resume.token ^= htole32(p->n[0]);
	command(t->w, s->n, &cmd);
	if (!(p->c & 2))
		fault_queue_free(s->n, &s->faults);
}

static void set_limit(struct traffic *t, const struct step *p)
{
	struct side *s = &t->side[p->a & 1];
	struct skua_cmd cmd = CMD(SKUA_CMD_MODIFY_SRQ, .modify_srq = {
		.srqn = htole32(s->srqn), .mask = htole32(p->b), .limit = htole32(p->n[0]) });

	command(t->w, s->n, &cmd);
}

/*
 * From now on the host races with the device. @b: how, and whether for records, rings and lists or for payload; @c: how
 * often; n[0]: after how many loads; v[0]: the value.
 */
static void start_race(struct traffic *t, const struct step *p)
{
	const struct side *s = &t->side[p->a & 1];
	uint64_t from = p->b & 4 ? base_of(s, K_ALL) : s->cq;
	uint64_t end = p->b & 4 ? from + regions[K_ALL].length : s->list + 4096;

	race_start(&(struct race){
		.mem = at(s->n, from), .size = end - from, .how = (p->b & 3) % NUM_RACE_HOWS, .value = p->v[0],
		.skip = p->n[0] % 256, .times = p->c % 16 });
}

static void traffic_play(struct traffic *t, const struct step *p)
{
	switch (p->verb % NUM_TRAFFIC_VERBS) {
	case POST:
		post_wqe(t, p);
		break;
	case RECV:
		post_rqe_step(t, p);
		break;
	case PATCH:
		patch(t, p);
		break;
	case RECORD:
		record(t, p);
		break;
	case BELL:
		bell(t, p);
		break;
	case POLL:
		poll_side(t, &t->side[p->a & 1], p->n[0] % 300);
		break;
	case PASS:
		engine_clock_advance(t->w->engines[0], p->n[0] * 1000ull);
		work(t);
		break;
	case WORK:
		work(t);
		break;
	case STEPS:
		for (uint32_t i = 0; i < p->n[0] % 16; i++)
			engine_step(t->w->engines[0]);
		break;
	case MODIFY:
		modify(t, p);
		break;
	case MEMORY:
		set_extra(t, p->a & 1, p->a & 2);
		break;
	case REGION:
		region(t, p);
		break;
	case LINK:
		skua_dev_set_link(t->w->n[p->a & 1].dev, p->b & 1);
		break;
	case RACE:
		start_race(t, p);
		break;
	case PAGING:
		update_pages(t, p);
		break;
	case FAULT:
		end_fault(t, p);
		break;
	case SHARED:
		set_limit(t, p);
		break;
	}
}

/* The bytes of [@from, @to) of the arena are as they were. */
static void check_gap(const struct side *s, uint64_t from, uint64_t to)
{
	const uint8_t *arena = at(s->n, s->n->buf);

	/* Each byte is as the one before it, and the first is as it was. */
	CHECK(arena[from] == UNTOUCHED && !memcmp(arena + from, arena + from + 1, to - from - 1));
}

/* No byte of the arena was written that no region gives the right to write. */
static void check_untouched(const struct side *s)
{
	uint64_t from = 0;

	for (enum key k = 0; k < NUM_KEYS; k++) {	/* they ascend */
		if (k == K_EXTRA || k == K_DM || !regions[k].length ||
		    !(regions[k].access & SKUA_ACCESS_LOCAL_WRITE))
			continue;
		check_gap(s, from, regions[k].offset);
		from = regions[k].offset + regions[k].length;
	}
	check_gap(s, from, ARENA);
}

/* The pair of QPs beside, both ways. */
static void check_neighbours(struct traffic *t)
{
	for (int i = 0; i < 2; i++) {
		struct node *a = &t->w->n[i], *b = &t->w->n[!i];
		uint64_t from = a->buf + ARENA, to = b->buf + 2 * ARENA;
		struct skua_cqe *cqe;

		memset(at(a, from), i + 1, 4096);
		post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, from, 4096, to, b->key, 0);
		work(t);
		cqe = poll_cq(a);
		CHECK(cqe && !cqe->status && cqe->opcode == SKUA_CQE_WRITE);
		CHECK(!memcmp(at(a, from), at(b, to), 4096));
		CHECK(!poll_cq(a));
	}
}

static void traffic_destroy(struct traffic *t)
{
	race_stop();
	work(t);
	skua_dev_set_link(t->w->n[0].dev, true);
	skua_dev_set_link(t->w->n[1].dev, true);
	for (int i = 0; i < 2; i++) {
		poll_side(t, &t->side[i], UINT32_MAX);
		must(t->w, t->side[i].n, object_cmd(SKUA_CMD_DESTROY_QP, t->side[i].qpn));
		if (t->srq)
			must(t->w, t->side[i].n, object_cmd(SKUA_CMD_DESTROY_SRQ, t->side[i].srqn));
		if (!t->privileged)
			check_untouched(&t->side[i]);
	}
	if (!t->privileged)
		check_neighbours(t);
	world_destroy(t->w);
}

/* Seeds: a configuration first; then what both sides do. */
#define SGE(key_, offset_, length_) \
	(key_), 0, (uint8_t)(offset_), (uint8_t)((offset_) >> 8), \
	(uint8_t)(length_), (uint8_t)((length_) >> 8), (uint8_t)((length_) >> 16), 0
#define WQE(opcode_, flags_, nsge, sge, ...) \
	{ .verb = POST, .b = opcode_, .c = flags_, .n[0] = nsge, .bytes = { sge }, __VA_ARGS__ }
#define RQE(side_, sge) \
	{ .verb = RECV, .a = side_, .b = 1, .n[0] = 7, .bytes = { sge } }
#define CONFIG(...)	{ .verb = 0, __VA_ARGS__ }
#define SRQ		(1u << 16)	/* n[0] of CONFIG */
#define XRC		(1u << 17)
/* The pages of K_DEMAND, and the end of a page fault. */
#define BRING(side_)	{ .verb = PAGING, .a = side_, .n[0] = DEMAND_PAGES << 4, .bytes = { 1, 5, 9, 13 } }
#define DROP(side_)	{ .verb = PAGING, .a = side_, .n[0] = DEMAND_PAGES << 4 | 0x100 }
#define RESUME(side_)	{ .verb = FAULT, .a = side_, .b = SKUA_PAGE_FAULT_RETRY }

#endif /* SKUAD_FUZZ_TRAFFIC_H */
