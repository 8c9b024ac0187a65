// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The hosts of a world: their objects, and what they post.
 *
 * All payload stands in one pattern, which both devices may only read, so a message costs no
 * filling, and what a READ returns never changes. Each message has another place in it. What
 * devices write goes to an arena of each node, which is filled with SIM_GUARD_BYTE before.
 * Pattern and arenas are kept from world to world.
 */
#include <sys/mman.h>

#include "core/srq.h"
#include "harness/initiator.h"
#include "harness/sim.h"
#include "nic/control.h"

const uint8_t *sim_pattern(void)
{
	static uint8_t *pattern;
	uint64_t r = 1;

	if (!pattern) {
		pattern = mmap(NULL, SIM_PATTERN, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert_ptr_not_equal(pattern, MAP_FAILED);
		for (uint32_t i = 0; i < SIM_PATTERN; i += 8) {
			uint64_t v = sim_random(&r);

			memcpy(pattern + i, &v, 8);
		}
		mprotect(pattern, SIM_PATTERN, PROT_READ);
	}
	return pattern;
}

uint8_t *sim_arena(unsigned int node)
{
	static uint8_t *arena[2];

	if (!arena[node]) {
		arena[node] = mmap(NULL, SIM_ARENA, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert_ptr_not_equal(arena[node], MAP_FAILED);
	}
	return arena[node];
}

static uint32_t create_mr(struct world *w, struct node *n, uint64_t iova, uint64_t size,
			  uint32_t access, bool on_demand)
{
	struct skua_cmd mr = create_mr_cmd(n);

	mr.create_mr.iova = htole64(iova);
	mr.create_mr.length = htole64(size);
	mr.create_mr.access = htole32(access);
	mr.create_mr.pages = list(iova, size);
	if (on_demand) {
		mr.create_mr.access |= htole32(SKUA_ACCESS_ON_DEMAND);
		mr.create_mr.pages = (struct skua_pagelist){ .log_page = 12 };
	}
	return must(w, n, mr);
}

/* What a registration lists: a page, or pieces. */
#define PIECES		3
#define LIST_SIZE	(PIECES * sizeof(struct skua_piece))

/* Made at the start, and kept. */
static void create_fast_mr(struct sim *s, struct node *n, struct sim_side *sd)
{
	struct skua_cmd mr = CMD(SKUA_CMD_CREATE_MR, .create_mr = {
		.pdn = htole32(n->pdn), .type = SKUA_MR_FAST, .capacity = htole32(PIECES * SKUA_PIECE_ENTRIES) });

	sd->fast_key = must(s->w, n, mr);
	sd->fast_lists = take(n, SIM_MSGS * LIST_SIZE);
}

#define DST_RIGHTS	(ALL_RIGHTS | SKUA_ACCESS_REMOTE_ATOMIC | SKUA_ACCESS_FLUSH_GLOBAL)

static void build_node(struct sim *s, unsigned int i)
{
	struct node *n = &s->w->n[i];
	struct sim_node *sn = &s->node[i];
	struct skua_cmd port = port_cmd(SKUA_PORT_SET_MTU, 0);
	unsigned int log_cq = 6, cqes = 0;

	memset(sim_arena(i), SIM_GUARD_BYTE, sn->used);
	/* Read-only for the device: a write to the pattern would fail. */
	assert_int_equal(skua_dev_mem_map(n->dev, SIM_SRC_IOVA, SIM_PATTERN,
					  (void *)(uintptr_t)sim_pattern(), false), 0);
	assert_int_equal(skua_dev_mem_map(n->dev, SIM_DST_IOVA, SIM_ARENA, sim_arena(i), true), 0);
	for (unsigned int q = 0; q < s->nqps; q++) {
		struct sim_side *sd = &s->qp[q].side[i];
		uint64_t zero = 0;

		cqes += sd->nmsgs * (sd->fast ? 3 : 1) + sd->nrecvs + 2;
		memcpy(sim_arena(i) + sn->region[sn->word[q]].offset, &zero, 8);
	}
	memset(sim_arena(i) + sn->region[sn->shared_word].offset, 0, 8);
	while (1u << log_cq < cqes)
		log_cq++;
	/* One page for a ring: aligned to its size. */
	n->used = (n->used + (64ull << log_cq) - 1) & ~((64ull << log_cq) - 1);
	new_completions(n, log_cq);
	n->cqn = must(s->w, n, create_cq_cmd(n));
	port.set_port.mtu = htole32(4200);
	must(s->w, n, port);
	if (sn->odp.on)
		fault_queue_create(s->w, n, &sn->odp.q);
	sn->src_key = create_mr(s->w, n, SIM_SRC_IOVA, SIM_PATTERN, SKUA_ACCESS_REMOTE_READ, sn->odp.on);
	sn->dst_key = create_mr(s->w, n, SIM_DST_IOVA, SIM_ARENA, DST_RIGHTS, sn->odp.on);
	sim_odp_create(s, i);
	for (unsigned int q = 0; q < s->nqps; q++)
		if (s->qp[q].on && s->qp[q].side[i].fast)
			create_fast_mr(s, n, &s->qp[q].side[i]);
	n->dev->inject.go_back_n = s->go_back_n[i];
	sn->pages_before = n->dev->pages_used;
}

static void create_srq(struct sim *s, unsigned int side)
{
	struct node *n = &s->w->n[side];
	struct sim_srq *srq = &s->node[side].srq;
	struct skua_cmd cmd = CMD(SKUA_CMD_CREATE_SRQ, .create_srq = {
		.pdn = htole32(n->pdn), .log_size = LOG_RQ, .log_stride = 6, .srq_handle = htole64(SIM_SRQ_HANDLE) });

	new_queues(n);
	cmd.create_srq.dbr_addr = htole64(n->rq_dbr);
	cmd.create_srq.ring = list(n->rq, 64u << LOG_RQ);
	if (srq->xrc) {
		srq->xrcdn = must(s->w, n, (struct skua_cmd)CMD(SKUA_CMD_CREATE_XRCD));
		cmd.create_srq.xrcdn = htole32(srq->xrcdn);
		cmd.create_srq.cqn = htole32(n->cqn);
	}
	srq->srqn = must(s->w, n, cmd);
	n->rq_pi = 0;
	srq->q = use_queues(n, (struct queues){ 0 });
}

static void create_qp(struct sim *s, unsigned int q, unsigned int side)
{
	struct node *n = &s->w->n[side];
	struct sim_side *sd = &s->qp[q].side[side];
	struct skua_cmd cmd;

	new_queues(n);
	cmd = create_qp_cmd(n);
	cmd.create_qp.type = s->qp[q].type;
	cmd.create_qp.flags = htole32(sd->fast ? SKUA_QP_PRIVILEGED : 0);
	if (s->qp[q].xrc) {
		cmd = sd->srq ? xrc_tgt_cmd(s->node[side].srq.xrcdn) : xrc_ini_cmd(n);
	} else if (sd->srq) {
		cmd.create_qp.srqn = htole32(s->node[side].srq.srqn);
		cmd.create_qp.log_rq_size = 0;
		cmd.create_qp.log_rq_stride = 0;
		cmd.create_qp.rq_dbr_addr = 0;
		cmd.create_qp.rq = (struct skua_pagelist){ 0 };
	}
	cmd.create_qp.qp_handle = htole64(q);
	n->qpn = must(s->w, n, cmd);
	n->sq_pi = n->rq_pi = 0;
	sd->q = use_queues(n, (struct queues){ 0 });
	sd->qp = numtab_get(&n->dev->qps, sd->q.qpn);
}

static void connect_qp(struct sim *s, unsigned int q, unsigned int side)
{
	struct node *n = &s->w->n[side];
	const struct sim_side *sd = &s->qp[q].side[side], *peer = &s->qp[q].side[!side];
	struct skua_cmd init = init_cmd(sd->q.qpn);
	struct skua_cmd rtr = rtr_cmd(sd->q.qpn, &s->w->n[!side], peer->q.qpn);
	struct skua_cmd rts = rts_cmd(sd->q.qpn);

	init.modify_qp.attr.access = htole32(DST_RIGHTS & ~SKUA_ACCESS_LOCAL_WRITE);
	rtr.modify_qp.attr.path_mtu = s->qp[q].path_mtu;
	rtr.modify_qp.attr.rq_psn = htole32(peer->psn);
	rtr.modify_qp.attr.max_dest_rd_atomic = htole16(sd->max_dest_rd);
	rtr.modify_qp.attr.min_rnr_timer = sd->min_rnr_timer;
	rts.modify_qp.attr.timeout = sd->timeout;
	rts.modify_qp.attr.retry_cnt = sd->retry_cnt;
	rts.modify_qp.attr.rnr_retry = sd->rnr_retry;
	rts.modify_qp.attr.sq_psn = htole32(sd->psn);
	rts.modify_qp.attr.max_rd_atomic = htole16(sd->max_rd);
	if (sim_is_initiator(&s->qp[q], side))
		rtr.modify_qp.mask = xrc_ini_rtr_cmd(sd->q.qpn, &s->w->n[!side], peer->q.qpn).modify_qp.mask;
	else if (s->qp[q].xrc)
		rts.modify_qp.mask = xrc_tgt_rts_cmd(sd->q.qpn).modify_qp.mask;
	if (s->qp[q].type == SKUA_QPT_UC) {
		const uint32_t rc_rtr = SKUA_QP_ATTR_MAX_DEST_RD_ATOMIC | SKUA_QP_ATTR_MIN_RNR_TIMER;

		init.modify_qp.attr.access = htole32(SKUA_ACCESS_REMOTE_WRITE);
		rtr.modify_qp.mask &= htole32(~rc_rtr);
		rtr.modify_qp.attr.max_dest_rd_atomic = 0;
		rtr.modify_qp.attr.min_rnr_timer = 0;
		rts = modify_cmd(sd->q.qpn, SKUA_QP_ATTR_STATE | SKUA_QP_ATTR_SQ_PSN,
				 (struct skua_qp_attr){ .state = SKUA_QPS_RTS,
							.sq_psn = htole32(sd->psn) });
	}
	must(s->w, n, init);
	must(s->w, n, rtr);
	must(s->w, n, rts);
}

void sim_build(struct sim *s)
{
	s->w = world_create(false);
	for (unsigned int i = 0; i < 2; i++) {
		/* Numbers by chance would make two runs of a world differ. */
		s->w->n[i].dev->qps.opaque = false;
		s->w->n[i].dev->mrs.opaque = false;
		build_node(s, i);
		if (s->node[i].srq.sides)
			create_srq(s, i);
	}
	for (unsigned int q = 0; q < s->nqps; q++) {
		if (!s->qp[q].on)
			continue;
		for (unsigned int side = 0; side < 2; side++)
			create_qp(s, q, side);
		for (unsigned int side = 0; side < 2; side++)
			connect_qp(s, q, side);
	}
	s->epoch = engine_now(s->w->engines[0]);
	s->base_timers = s->w->engines[0]->timers.n;
}

static uint64_t region_iova(const struct sim *s, unsigned int node, int region)
{
	return SIM_DST_IOVA + s->node[node].region[region].offset;
}

static struct skua_sge sge(uint64_t addr, uint32_t len, uint32_t key)
{
	return (struct skua_sge){ htole64(addr), htole32(len), htole32(key) };
}

static int local_region(const struct sim_msg *m)
{
	return m->opcode >= SKUA_WQE_READ ? m->target : m->source;
}

static uint32_t local_key(const struct sim *s, unsigned int q, unsigned int side, int region)
{
	if (s->qp[q].side[side].fast)
		return s->qp[q].side[side].fast_key;
	return region >= 0 ? s->node[side].dst_key : s->node[side].src_key;
}

/* The SGEs of a message at @p, two for longer ones; or its bytes. */
static void put_data(struct sim *s, unsigned int q, unsigned int side, const struct sim_msg *m,
		     struct skua_wqe_ctrl *c, void *p, bool two)
{
	int region = local_region(m);
	uint64_t addr = region >= 0 ? region_iova(s, side, region) : SIM_SRC_IOVA + m->content;
	uint32_t key = local_key(s, q, side, region);
	struct skua_sge list_of[2] = { sge(addr, m->len, key) };
	uint32_t first = m->len / 3;

	if (m->flags & SKUA_WQE_INLINE) {
		c->length = htole32(m->len);
		memcpy(p, sim_pattern() + m->content, m->len);
		return;
	}
	c->num_sge = m->len > 0;
	if (two && first) {
		list_of[0] = sge(addr, first, key);
		list_of[1] = sge(addr + first, m->len - first, key);
		c->num_sge = 2;
	}
	memcpy(p, list_of, c->num_sge * sizeof(list_of[0]));
}

static void put_remote(const struct sim *s, unsigned int q, unsigned int side,
		       const struct sim_msg *m, struct skua_wqe_rdma *r)
{
	const struct sim_node *peer = &s->node[!side];
	int region = m->opcode == SKUA_WQE_READ ? m->source : m->target;

	if (m->opcode > SKUA_WQE_READ)
		region = m->shared ? peer->shared_word : peer->word[q];
	r->raddr = htole64(region >= 0 ? region_iova(s, !side, region) : SIM_SRC_IOVA + m->content);
	r->rkey = htole32(region >= 0 ? peer->dst_key : peer->src_key);
}

/* The @length bytes at @iova in pieces, as message @k has them. */
static void put_pieces(struct node *n, uint64_t list_at, uint64_t iova, uint32_t length, unsigned int k)
{
	struct skua_piece *piece = at(n, list_at);
	uint32_t first = 1 + k * 1021 % 9000, second = 1 + k * 4093 % 70000;

	piece[0] = (struct skua_piece){ .addr = htole64(iova), .length = htole32(first) };
	piece[1] = (struct skua_piece){ .addr = htole64(iova + first), .length = htole32(second) };
	piece[2] = (struct skua_piece){ .addr = htole64(iova + first + second),
					.length = htole32(length - first - second) };
}

/*
 * What the message before had registered ends, and this one's memory is registered, with another key: all that it is
 * in is one page, or every other time some pieces.
 */
static void post_registration(struct sim *s, unsigned int side, struct sim_side *sd, const struct sim_msg *m)
{
	struct node *n = &s->w->n[side];
	bool arena = local_region(m) >= 0;
	uint64_t iova = arena ? SIM_DST_IOVA : SIM_SRC_IOVA, list_at = sd->fast_lists + sd->posted * LIST_SIZE;
	struct { struct skua_wqe_ctrl c; union { struct skua_wqe_reg_mr r; uint8_t rest[48]; }; } wqe = {
		.c = { .opcode = SKUA_WQE_LOCAL_INV, .nblocks = 1, .cookie = htole32(sd->posted),
		       .inv_key = htole32(sd->fast_key) } };

	post_block(n, &wqe);
	sd->fast_key = (sd->fast_key & ~0xffu) | ((sd->fast_key + 1) & 0xff);
	*(__le64 *)at(n, list_at) = htole64(iova | SKUA_PL_PRESENT);
	wqe.c.opcode = SKUA_WQE_REG_MR;
	wqe.c.inv_key = 0;
	wqe.r = (struct skua_wqe_reg_mr){
		.key = htole32(sd->fast_key), .access = htole32(arena ? SKUA_ACCESS_LOCAL_WRITE : 0),
		.iova = htole64(iova), .length = htole64(arena ? SIM_ARENA : SIM_PATTERN),
		.list = htole64(list_at), .npages = htole32(1), .log_page = arena ? 24 : 22,
	};
	if (sd->posted & 1) {
		put_pieces(n, list_at, iova, (uint32_t)le64toh(wqe.r.length), sd->posted);
		wqe.r.npages = htole32(PIECES);
		wqe.r.log_page = 0;
	}
	post_block(n, &wqe);
}

/* To the SRQ of the peer: with a segment behind the first, a WQE may need two blocks. */
static void post_xrc(struct node *n, uint32_t srqn, const uint8_t *wqe)
{
	struct skua_wqe_xrc xrc = { .srqn = htole32(srqn) };
	uint8_t blocks[2 * SKUA_WQE_BLOCK] = { 0 };
	const size_t head = sizeof(struct skua_wqe_ctrl);

	memcpy(blocks, wqe, head);
	memcpy(blocks + head, &xrc, sizeof(xrc));
	memcpy(blocks + head + sizeof(xrc), wqe + head, SKUA_WQE_BLOCK - head);
	((struct skua_wqe_ctrl *)blocks)->nblocks = 2;
	post_blocks(n, blocks, 2);
}

static void post_msg(struct sim *s, unsigned int q, unsigned int side)
{
	struct node *n = &s->w->n[side];
	struct sim_side *sd = &s->qp[q].side[side];
	struct sim_msg *m = &sd->msg[sd->posted];
	union {
		uint8_t bytes[2 * SKUA_WQE_BLOCK];
		struct { struct skua_wqe_ctrl c; struct skua_sge data[3]; } send;
		struct { struct skua_wqe_ctrl c; struct skua_wqe_rdma r; struct skua_sge data[2]; } rdma;
		struct { struct skua_wqe_ctrl c; struct skua_wqe_atomic a; struct skua_sge data; } atomic;
		struct { struct skua_wqe_ctrl c; struct skua_wqe_masked_atomic a; struct skua_sge data; } masked;
	} wqe = { { 0 } };

	use_queues(n, sd->q);
	if (sd->fast)
		post_registration(s, side, sd, m);
	wqe.send.c.opcode = m->opcode;
	wqe.send.c.flags = m->flags;
	wqe.send.c.nblocks = 1;
	wqe.send.c.cookie = htole32(sd->posted);
	wqe.send.c.imm_data = htobe32(m->imm);
	if (m->opcode >= SKUA_WQE_WRITE)
		put_remote(s, q, side, m, &wqe.rdma.r);
	if (m->opcode == SKUA_WQE_FLUSH) {
		wqe.rdma.c.length = htole32(8);
		wqe.rdma.r.flush = htole32(SKUA_FLUSH_GLOBAL | (sd->posted % 2 ? SKUA_FLUSH_MR : 0));
	} else if (sim_is_atomic(m->opcode)) {
		bool masked = m->opcode >= SKUA_WQE_MASKED_CMP_SWAP;

		/* Both begin alike. */
		wqe.masked.a.swap_add = htole64(m->swap_add);
		wqe.masked.a.compare = htole64(m->compare);
		if (masked) {
			wqe.masked.c.nblocks = 2;
			wqe.masked.a.swap_add_mask = htole64(m->swap_add_mask);
			wqe.masked.a.compare_mask = htole64(m->compare_mask);
		}
		put_data(s, q, side, m, &wqe.send.c, masked ? &wqe.masked.data : &wqe.atomic.data, false);
	} else if (m->opcode >= SKUA_WQE_WRITE) {
		put_data(s, q, side, m, &wqe.send.c, wqe.rdma.data, true);
	} else {
		put_data(s, q, side, m, &wqe.send.c, wqe.send.data, true);
	}
	m->posted_at = sim_now(s);
	if (sd->posted == sd->completed)
		sd->last_progress = m->posted_at;
	sd->posted++;
	s->needed += 2 + 2 * (m->len / sim_pmtu(&s->qp[q]) + 1);
	if (s->qp[q].xrc)
		post_xrc(n, s->node[!side].srq.srqn, wqe.bytes);
	else
		post_blocks(n, &wqe, wqe.send.c.nblocks);
	sd->q = use_queues(n, (struct queues){ 0 });
}

static void post_receive(struct sim *s, unsigned int q, unsigned int side)
{
	struct node *n = &s->w->n[side];
	struct sim_side *sd = &s->qp[q].side[side];
	int region = sd->recv[sd->recvs_posted].region;
	struct { struct skua_rqe r; struct skua_sge data[3]; } rqe = {
		.r.cookie = htole32(sd->recvs_posted) };

	if (region >= 0 && s->node[side].region[region].len) {
		rqe.r.num_sge = 1;
		rqe.data[0] = sge(region_iova(s, side, region), s->node[side].region[region].len,
				  s->node[side].dst_key);
	}
	sd->recvs_posted++;
	use_queues(n, sd->q);
	post_rqe(n, &rqe);
	sd->q = use_queues(n, (struct queues){ 0 });
}

static void post_entries(struct sim *s, unsigned int side)
{
	struct node *n = &s->w->n[side];
	struct sim_srq *srq = &s->node[side].srq;

	for (; srq->posted < srq->nentries && srq->posted - srq->num_done < srq->depth; srq->posted++) {
		struct { struct skua_rqe r; struct skua_sge data[3]; } rqe = {
			.r = { .cookie = htole32(srq->posted), .num_sge = 1 },
			.data[0] = sge(region_iova(s, side, srq->region[srq->posted]), SIM_SRQ_MOST,
				       s->node[side].dst_key),
		};

		use_queues(n, srq->q);
		post_rqe(n, &rqe);
		srq->q = use_queues(n, (struct queues){ 0 });
	}
}

static bool recv_due(const struct sim_side *sd)
{
	return !sd->srq && !sd->gone && !sd->stopped && !sd->failed && !sd->recv_failed &&
	       sd->recvs_posted < sd->nrecvs &&
	       sd->recvs_posted - sd->recvs_done < sd->recv_depth;
}

static bool send_due(const struct sim_side *sd)
{
	return !sd->gone && !sd->stopped && !sd->failed && sd->posted < sd->nmsgs &&
	       sd->posted - sd->completed < sd->depth;
}

static bool post_side(struct sim *s, unsigned int q, unsigned int side, bool recvs)
{
	struct sim_side *sd = &s->qp[q].side[side];
	uint64_t now = sim_now(s);
	bool any = false;

	if (recvs) {
		for (; recv_due(sd) && now >= sd->next_recv; any = true) {
			post_receive(s, q, side);
			sd->next_recv = now + sd->late;
		}
		return any;
	}
	for (; send_due(sd) && now >= sd->next_post; any = true) {
		post_msg(s, q, side);
		if (sd->think)
			sd->next_post = now + sd->think;
	}
	return any;
}

bool sim_post(struct sim *s)
{
	bool any = false;

	for (unsigned int side = 0; side < 2; side++)
		post_entries(s, side);
	/* Receives first: then no sender has more outstanding than there are, if the depths allow. */
	for (unsigned int recvs = 2; recvs--; )
		for (unsigned int q = 0; q < s->nqps; q++)
			for (unsigned int side = 0; side < 2 && s->qp[q].on; side++)
				any |= post_side(s, q, side, recvs);
	return any;
}

uint64_t sim_next_post(const struct sim *s)
{
	uint64_t next = TIMER_NEVER;

	for (unsigned int q = 0; q < s->nqps; q++) {
		for (unsigned int side = 0; side < 2 && s->qp[q].on; side++) {
			const struct sim_side *sd = &s->qp[q].side[side];

			if (recv_due(sd) && sd->next_recv < next)
				next = sd->next_recv;
			if (send_due(sd) && sd->next_post < next)
				next = sd->next_post;
		}
	}
	return next;
}

void sim_kill(struct sim *s, const struct sim_event *e)
{
	struct node *n = &s->w->n[e->node];
	struct sim_side *sd = &s->qp[e->qp].side[e->node];

	if (e->kill == SIM_KILL_MR) {
		if (s->node[e->node].deregistered)
			return;
		s->node[e->node].deregistered = true;
		for (unsigned int q = 0; q < s->nqps; q++)
			s->qp[q].disturbed = true;
		must(s->w, n, object_cmd(SKUA_CMD_DESTROY_MR, s->node[e->node].dst_key));
		return;
	}
	if (!s->qp[e->qp].on || sd->gone)
		return;
	s->qp[e->qp].disturbed = true;
	if (e->kill == SIM_KILL_ERR) {
		must(s->w, n, state_cmd(sd->q.qpn, SKUA_QPS_ERR));
		sd->stopped = true;
		return;
	}
	if (e->kill == SIM_KILL_RESET) {
		must(s->w, n, state_cmd(sd->q.qpn, SKUA_QPS_RESET));
	} else {
		must(s->w, n, object_cmd(SKUA_CMD_DESTROY_QP, sd->q.qpn));
		sd->qp = NULL;
	}
	/* What had completed before is taken; nothing may come after it. */
	sim_poll(s);
	sd->gone = true;
}

/* What was taken and did not complete has come back (SRQ-7). */
static void destroy_srq(struct sim *s, unsigned int side)
{
	struct node *n = &s->w->n[side];
	const struct sim_srq *srq = &s->node[side].srq;
	const struct srq *of_device = numtab_get(&n->dev->srqs, srq->srqn);
	unsigned int left = of_device->num_returned + srq->posted - of_device->rq.ci;

	if (left != srq->posted - srq->num_done)
		sim_fail(s, "srq-left", "node %c: its SRQ has %u entries, of %u that were posted and %u that completed",
			 'a' + side, left, srq->posted, srq->num_done);
	must(s->w, n, object_cmd(SKUA_CMD_DESTROY_SRQ, srq->srqn));
	if (srq->xrc)
		must(s->w, n, object_cmd(SKUA_CMD_DESTROY_XRCD, srq->xrcdn));
}

void sim_teardown(struct sim *s)
{
	for (unsigned int q = 0; q < s->nqps; q++) {
		for (unsigned int side = 0; side < 2 && s->qp[q].on; side++) {
			struct sim_side *sd = &s->qp[q].side[side];

			if (sd->qp)
				must(s->w, &s->w->n[side],
				     object_cmd(SKUA_CMD_DESTROY_QP, sd->q.qpn));
			sd->qp = NULL;
		}
	}
	/* The host counts what it has not polled yet. */
	sim_poll(s);
	sim_odp_destroy(s);
	for (unsigned int side = 0; side < 2; side++)
		if (s->node[side].srq.sides)
			destroy_srq(s, side);
}
