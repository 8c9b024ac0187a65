// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Packets that are malformed, cut short, for somebody else, stale, or forged, as bytes: each kind is
 * dropped or answered as the manual says, counted under its cause, and changes nothing else.
 *
 * After each batch of a kind (forge.c), the memory of both hosts, the QPs and all counters have to be
 * what they were, but for what the kind's row says; then good messages go over all QPs.
 *
 * SKUA_FORGED: how many packets, in all.
 */
#include <stdio.h>
#include <sys/mman.h>

#include "harness/forge.h"
#include "harness/initiator.h"
#include "nic/control.h"
#include "roce/roce.h"

#define ENDS		30	/* at least so many for a batch, of a kind that ends a connection, */
#define SHARE		1000	/* and this part: they cost as much more */
#define MAX_BATCH	(1 << 14)
#define MAX_QPS		16

static const uint8_t addresses[2][16] = {
	{ 0x20, 1, 0x0d, 0xb8, [15] = 1 }, { 0x20, 1, 0x0d, 0xb8, [15] = 2 } };

/* All that may not change. */
struct image {
	struct device_stats stats;
	struct skua_qp_info qps[MAX_QPS];
	unsigned int nqps;
	uint64_t held_bytes;
	uint8_t *mem, *extra;
};

static struct image before[2];		/* of peer and victim */
static uint8_t *room;			/* FORGE_ROOM bytes, behind which nothing may be read */
static uint64_t sent;

/* The scene */

/* To these queues, or back. */
static void use_pair(struct scene *s, struct queues *q)
{
	q[0] = use_queues(s->peer, q[0]);
	q[1] = use_queues(s->victim, q[1]);
}

static void new_pair(struct scene *s, struct queues *q, uint8_t type)
{
	for (int i = 0; i < 2; i++) {
		struct node *n = &s->w->n[i];
		struct skua_cmd cmd;

		q[i] = new_queues(n);
		cmd = create_qp_cmd(n);
		cmd.create_qp.type = type;
		n->qpn = must(s->w, n, cmd);
	}
}

static void to_rtr(struct scene *s, struct node *n, const struct node *peer, enum target target)
{
	struct skua_cmd rtr = rtr_cmd(n->qpn, peer, peer->qpn);

	if (target == UC)
		rtr.modify_qp.mask = htole32(SKUA_QP_ATTR_STATE | SKUA_QP_ATTR_AV | SKUA_QP_ATTR_PATH_MTU |
					     SKUA_QP_ATTR_DEST_QPN | SKUA_QP_ATTR_RQ_PSN);
	if (target == RC_IPV6) {
		rtr.modify_qp.attr.av.sgid_index = 1;
		memcpy(rtr.modify_qp.attr.av.dgid, addresses[peer == s->victim], 16);
	}
	must(s->w, n, rtr);
}

static void to_rts(struct scene *s, struct node *n, enum target target)
{
	struct skua_cmd rts = rts_cmd(n->qpn);

	if (target == UC)
		rts.modify_qp.mask = htole32(SKUA_QP_ATTR_STATE | SKUA_QP_ATTR_SQ_PSN);
	must(s->w, n, rts);
}

static void create_pair(struct scene *s, enum target target)
{
	new_pair(s, s->pairs[target], target == UC ? SKUA_QPT_UC : SKUA_QPT_RC);
	for (int i = 0; i < 2; i++) {
		must(s->w, &s->w->n[i], init_cmd(s->w->n[i].qpn));
		to_rtr(s, &s->w->n[i], &s->w->n[!i], target);
		to_rts(s, &s->w->n[i], target);
	}
}

static void connect_xrc(struct scene *s)
{
	struct node *a = s->peer, *b = s->victim;

	must(s->w, a, init_cmd(a->qpn));
	must(s->w, a, xrc_ini_rtr_cmd(a->qpn, b, b->qpn));
	must(s->w, a, rts_cmd(a->qpn));
	must(s->w, b, init_cmd(b->qpn));
	must(s->w, b, rtr_cmd(b->qpn, a, a->qpn));
	must(s->w, b, xrc_tgt_rts_cmd(b->qpn));
}

static void reconnect_xrc(struct scene *s)
{
	struct node *a = s->peer;

	must(s->w, a, state_cmd(a->qpn, SKUA_QPS_RESET));
	host_store32(at(a, a->sq_dbr), 0);
	a->sq_pi = 0;
	must(s->w, s->victim, state_cmd(s->victim->qpn, SKUA_QPS_RESET));
	connect_xrc(s);
}

/* post_recv() of the victim fills the SRQ. */
static void create_xrc(struct scene *s)
{
	struct queues *q = s->pairs[XRC];
	struct node *a = s->peer, *b = s->victim;
	struct skua_cmd xrcd = CMD(SKUA_CMD_CREATE_XRCD), srq;
	uint32_t xrcdn = must(s->w, b, xrcd);

	q[0] = new_queues(a);
	q[1] = new_queues(b);
	srq = (struct skua_cmd)CMD(SKUA_CMD_CREATE_SRQ, .create_srq = {
		.pdn = htole32(b->pdn), .log_size = LOG_RQ, .log_stride = 6, .srq_handle = htole64(QP_HANDLE),
		.dbr_addr = htole64(b->rq_dbr), .ring = list(b->rq, 64u << LOG_RQ) });
	s->foreign_srqn = must(s->w, b, srq);
	srq.create_srq.xrcdn = htole32(xrcdn);
	srq.create_srq.cqn = htole32(b->cqn);
	s->srqn = must(s->w, b, srq);
	b->qpn = must(s->w, b, xrc_tgt_cmd(xrcdn));
	a->qpn = must(s->w, a, xrc_ini_cmd(a));
	connect_xrc(s);
}

static void note_target(struct scene *s, enum target target, uint32_t qpn)
{
	struct skua_qp *qp = numtab_get(&s->victim->dev->qps, qpn);
	struct roce_path *path = &s->path[target];

	s->qp[target] = qp;
	*path = (struct roce_path){ .vlan = SKUA_VLAN_NONE, .hop_limit = 64, .sport = 0xc123 };
	memcpy(path->smac, s->peer->mac, 6);
	memcpy(path->dmac, s->victim->mac, 6);
	memcpy(path->sgid, target == RC_IPV6 ? addresses[0] : s->peer->gid, 16);
	memcpy(path->dgid, target == RC_IPV6 ? addresses[1] : s->victim->gid, 16);
}

static void create_datagrams(struct scene *s)
{
	struct skua_cmd attach = CMD(SKUA_CMD_ATTACH_MCAST);

	for (int i = 0; i < 2; i++)
		s->pairs[UD][i] = ud_queues(s->w, &s->w->n[i], SKUA_QPT_UD, SKUA_QPS_RTS);
	attach.mcast.qpn = htole32(s->victim->qpn);
	memcpy(attach.mcast.mgid, s->group, 16);
	must(s->w, s->victim, attach);
	note_target(s, UD, s->victim->qpn);
	use_pair(s, s->pairs[UD]);
}

/* A QP with requests that nobody answers while the clock stands. */
static void create_busy(struct scene *s)
{
	struct node *n = s->victim;

	new_pair(s, s->busy, SKUA_QPT_RC);
	must(s->w, n, init_cmd(n->qpn));
	to_rtr(s, n, s->peer, RC_BUSY);
	to_rts(s, n, RC_BUSY);
	note_target(s, RC_BUSY, n->qpn);
	post(n, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, n->buf + 100000, 3000, s->peer->buf + 100000,
	     s->peer->key, 0);
	post(n, SKUA_WQE_READ, SKUA_WQE_SIGNALED, n->buf + 200000, 3000, s->peer->buf + 200000,
	     s->peer->key, 0);
	settle(s->w);
	use_pair(s, s->busy);
}

static void create_keys(struct scene *s)
{
	struct node *n = s->victim;
	struct skua_cmd mr = create_mr_cmd(n), pd = CMD(SKUA_CMD_CREATE_PD);

	mr.create_mr.access = htole32(SKUA_ACCESS_LOCAL_WRITE);
	s->local_key = must(s->w, n, mr);
	mr.create_mr.access = htole32(ALL_RIGHTS);
	s->stale_key = must(s->w, n, mr);
	must(s->w, n, object_cmd(SKUA_CMD_DESTROY_MR, s->stale_key));
	mr.create_mr.iova = htole64(n->buf + 8192);
	mr.create_mr.pages = list(n->buf + 8192, 4096);
	s->other_key = must(s->w, n, mr);
	mr = create_mr_cmd(n);
	mr.create_mr.pdn = htole32(must(s->w, n, pd));
	s->foreign_key = must(s->w, n, mr);
}

static struct scene *create_scene(void)
{
	struct scene *s = calloc(1, sizeof(*s));
	struct world *w = world_create(false);
	struct node *n = &w->n[1];
	struct queues apart[2];

	s->w = w;
	s->peer = &w->n[0];
	s->victim = n;
	s->random = 0x9e3779b97f4a7c15ull;
	memcpy(s->second_address, (uint8_t[16]){ [10] = 255, [11] = 255, 192, 0, 2, 77 }, 16);
	memcpy(s->group, (uint8_t[16]){ [10] = 255, [11] = 255, 239, 1, 2, 3 }, 16);
	room = mmap(NULL, FORGE_ROOM + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_int_equal(mprotect(room + FORGE_ROOM, 4096, PROT_NONE), 0);
	s->peer->dev->inject.go_back_n = true;		/* packets ahead are not held, then */
	for (int i = 0; i < 2; i++)
		set_gid(w, &w->n[i], 1, addresses[i], w->n[i].mac, SKUA_VLAN_NONE);
	set_gid(w, n, 2, s->second_address, n->mac, SKUA_VLAN_NONE);
	create_keys(s);
	note_target(s, RC_IPV4, n->qpn);
	for (int i = 0; i < 2; i++)
		s->pairs[RC_IPV4][i] = use_queues(&w->n[i], (struct queues){ 0 });
	create_pair(s, RC_IPV6);
	note_target(s, RC_IPV6, n->qpn);
	use_pair(s, s->pairs[RC_IPV6]);
	create_pair(s, UC);
	note_target(s, UC, n->qpn);
	use_pair(s, s->pairs[UC]);
	create_datagrams(s);
	create_xrc(s);
	note_target(s, XRC, n->qpn);
	use_pair(s, s->pairs[XRC]);
	create_busy(s);
	new_pair(s, apart, SKUA_QPT_RC);
	must(w, n, init_cmd(n->qpn));
	note_target(s, RC_INIT, n->qpn);
	use_pair(s, apart);
	new_pair(s, apart, SKUA_QPT_RC);
	must(w, n, init_cmd(n->qpn));
	to_rtr(s, n, s->peer, RC_RTR);
	note_target(s, RC_RTR, n->qpn);
	use_pair(s, apart);
	apart[1] = eth_queues(w, n);
	note_target(s, ETH, n->qpn);
	use_queues(n, apart[1]);
	for (int i = 0; i < 2; i++) {
		before[i].mem = malloc(MEM_SIZE);
		before[i].extra = malloc(EXTRA_SIZE);
	}
	return s;
}

static void destroy_scene(struct scene *s)
{
	for (int i = 0; i < 2; i++) {
		free(before[i].mem);
		free(before[i].extra);
	}
	munmap(room, FORGE_ROOM + 4096);
	world_destroy(s->w);
	free(s);
}

/* What there is, and what has become of it */

static void note_qp(const void *info, void *arg)
{
	struct image *image = arg;
	struct skua_qp_info qp;

	memcpy(&qp, info, sizeof(qp));
	/* UC-2: the next message may have any PSN. */
	if (qp.type == SKUA_QPT_UC)
		qp.rq_psn = 0;
	assert_true(image->nqps < MAX_QPS);
	image->qps[image->nqps++] = qp;
}

static void take_image(const struct node *n, struct image *image)
{
	image->stats = n->dev->stats;
	image->held_bytes = n->dev->roce->held_bytes;
	image->nqps = 0;
	memset(image->qps, 0, sizeof(image->qps));
	skua_dev_for_each_qp(n->dev, &(struct skua_walk){ 0 }, note_qp, image);
}

static void take_images(struct scene *s)
{
	for (int i = 0; i < 2; i++) {
		take_image(&s->w->n[i], &before[i]);
		memcpy(before[i].mem, s->w->n[i].mem, MEM_SIZE);
		memcpy(before[i].extra, s->w->n[i].extra, EXTRA_SIZE);
	}
}

static void add(struct device_stats *stats, size_t counter, uint64_t n)
{
	*(uint64_t *)((uint8_t *)stats + counter) += n;
}

#define SAME(kind, got, want) do {								\
	if ((got) != (want))									\
		fail_msg("%s: %s is %llu, not %llu", (kind)->name, #got,			\
			 (unsigned long long)(got), (unsigned long long)(want));		\
} while (0)

static void check_stats(const struct kind *kind, const struct device_stats *got,
			const struct device_stats *want)
{
#define CHECK_STAT(name) SAME(kind, got->name, want->name);
	SKUA_STATS(CHECK_STAT)
#undef CHECK_STAT
}

static void check_qp(const struct kind *kind, const struct skua_qp_info *got,
		     const struct skua_qp_info *want)
{
	SAME(kind, got->qpn, want->qpn);
	SAME(kind, got->state, want->state);
	SAME(kind, got->sq_psn, want->sq_psn);
	SAME(kind, got->una_psn, want->una_psn);
	SAME(kind, got->rq_psn, want->rq_psn);
	SAME(kind, got->retries, want->retries);
	SAME(kind, got->rnr_retries, want->rnr_retries);
	SAME(kind, got->waiting, want->waiting);
}

static void check_image(struct scene *s, const struct kind *kind, int i, const struct device_stats *want)
{
	const struct node *n = &s->w->n[i];
	struct image now;

	take_image(n, &now);
	check_stats(kind, &now.stats, want);
	SAME(kind, now.held_bytes, before[i].held_bytes);
	SAME(kind, now.nqps, before[i].nqps);
	for (unsigned int q = 0; q < now.nqps; q++)
		check_qp(kind, &now.qps[q], &before[i].qps[q]);
	if (memcmp(before[i].mem, n->mem, MEM_SIZE) || memcmp(before[i].extra, n->extra, EXTRA_SIZE))
		fail_msg("%s: memory of %s has changed", kind->name, i ? "the victim" : "its peer");
}

/* What was sent is counted in packets; that its bytes were is another test's. */
static void check_images(struct scene *s, const struct kind *kind, struct device_stats *want)
{
	struct device_stats peer = before[0].stats;

	want->rdma_tx_bytes = s->victim->dev->stats.rdma_tx_bytes;
	peer.rdma_rx_packets += want->rdma_tx_packets - before[1].stats.rdma_tx_packets;
	peer.rdma_rx_bytes += want->rdma_tx_bytes - before[1].stats.rdma_tx_bytes;
	/* The question whether it offers selective repeat, which it does not know. */
	peer.rx_no_buffer = s->peer->dev->stats.rx_no_buffer;
	check_image(s, kind, 1, want);
	check_image(s, kind, 0, &peer);
}

/* A SEND or a READ for the SRQ. */
static void post_xrc(struct scene *s, uint8_t opcode, uint64_t addr, uint32_t len, uint64_t raddr)
{
	struct node *n = s->peer;
	struct {
		struct skua_wqe_ctrl c;
		struct skua_wqe_xrc x;
		struct skua_wqe_rdma r;
		struct skua_sge s;
	} w = {
		.c = { opcode, SKUA_WQE_SIGNALED, 1, 1, htole32(n->sq_pi) }, .x.srqn = htole32(s->srqn),
		.r = { htole64(raddr), htole32(s->victim->key), 0 },
		.s = { htole64(addr), htole32(len), htole32(n->key) },
	};

	if (opcode == SKUA_WQE_SEND)
		memcpy(&w.r, &w.s, sizeof(w.s));
	post_block(n, &w);
}

/* Good messages over all pairs, one way and the other. */
static void transfer_over(struct scene *s, enum target target, struct node *from, struct node *to)
{
	uint32_t len = 1 + (uint32_t)forge_random(s) % FORGE_PMTU, behind = target == UD ? SKUA_UD_HEADER : 0;

	fill(from, len, (uint32_t)forge_random(s));
	post_recv(to, to->buf + 8192, 2048);
	if (target == UD)
		post_ud(from, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, from->buf, len, ud_to(to), 0);
	else if (target == XRC)
		post_xrc(s, SKUA_WQE_SEND, from->buf, len, 0);
	else
		post(from, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, from->buf, len, 0, 0, 0);
	expect(s->w, from, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	expect(s->w, to, SKUA_CQE_RECV, SKUA_CQE_SUCCESS);
	assert_memory_equal(at(to, to->buf + 8192 + behind), at(from, from->buf), len);
	if (target == UC || target == UD)
		return;
	if (target == XRC)
		post_xrc(s, SKUA_WQE_READ, from->buf + 16384, len, to->buf + 8192);
	else
		post(from, SKUA_WQE_READ, SKUA_WQE_SIGNALED, from->buf + 16384, len, to->buf + 8192, to->key, 0);
	expect(s->w, from, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	assert_memory_equal(at(from, from->buf + 16384), at(from, from->buf), len);
}

static void transfer(struct scene *s)
{
	for (enum target target = 0; target < NUM_PAIRS; target++) {
		use_pair(s, s->pairs[target]);
		transfer_over(s, target, s->peer, s->victim);
		if (target != XRC)
			transfer_over(s, target, s->victim, s->peer);
		use_pair(s, s->pairs[target]);
	}
	for (int i = 0; i < 2; i++) {
		expect_none(s->w, &s->w->n[i]);
		expect_no_event(s->w, &s->w->n[i]);
	}
}

/* Forging */

static void arrive_bytes(struct scene *s, const struct forge *f)
{
	struct seglist frame;

	frame.n = 1;
	frame.bytes = f->len;
	frame.seg[0] = (struct seg){ room + FORGE_ROOM - f->len, f->len };
	memcpy(frame.seg[0].p, f->frame, f->len);
	skua_dev_rx_frame(s->victim->dev, &frame);
	settle(s->w);
	sent++;
}

static void forge_one(struct scene *s, const struct kind *kind, struct forge *f, struct device_stats *want)
{
	f->s = s;
	kind->forge(f);
	if (!f->host) {
		want->rdma_rx_packets++;
		want->rdma_rx_bytes += f->len;
	}
	if (kind->cause != NO_CAUSE)
		add(want, kind->cause, 1);
	want->rdma_tx_packets += f->answered;
	arrive_bytes(s, f);
}

static void batch(struct scene *s, const struct kind *kind, uint64_t n)
{
	struct device_stats want;
	static struct forge f;

	take_images(s);
	want = before[1].stats;
	/* ROC-10: one of a gap, however much comes behind it. */
	want.seq_nak_sent += kind->one_nak;
	want.rdma_tx_packets += kind->one_nak;
	while (n--)
		forge_one(s, kind, &f, &want);
	check_images(s, kind, &want);
	transfer(s);
}

/* One that the QP does not outlive; nothing but its event and its state is new. */
static void one_that_ends(struct scene *s, const struct kind *kind)
{
	struct node *n = s->victim;
	struct queues *q = s->pairs[kind->target];
	struct device_stats want;
	static struct forge f;

	take_images(s);
	want = before[1].stats;
	want.rdma_tx_packets++;
	want.events++;
	forge_one(s, kind, &f, &want);
	want.interrupts = n->dev->stats.interrupts;
	assert_int_equal(s->qp[kind->target]->state, SKUA_QPS_ERR);
	for (unsigned int i = 0; i < before[1].nqps; i++)
		if (before[1].qps[i].qpn == s->qp[kind->target]->number)
			before[1].qps[i].state = SKUA_QPS_ERR;
	memcpy(before[1].mem + (n->aeq - IOVA), at(n, n->aeq), 4096);
	check_images(s, kind, &want);
	use_pair(s, q);
	expect_event(s->w, n, kind->event, n->qpn);
	if (kind->target == XRC) {
		reconnect_xrc(s);
	} else {
		reconnect(s->w, n, s->peer);
		reconnect(s->w, s->peer, n);
	}
	use_pair(s, q);
}

/* What was outstanding all the time is sent again, and answered. */
static void finish_busy(struct scene *s)
{
	struct node *n = s->victim;

	use_pair(s, s->busy);
	fill(n, 4096, 5);
	memcpy(at(n, n->buf + 100000), at(n, n->buf), 3000);
	fill(s->peer, 4096, 9);
	memcpy(at(s->peer, s->peer->buf + 200000), at(s->peer, s->peer->buf), 3000);
	must(s->w, s->peer, init_cmd(s->peer->qpn));
	to_rtr(s, s->peer, n, RC_BUSY);
	to_rts(s, s->peer, RC_BUSY);
	pass(s->w, 4096ull << 14);
	expect(s->w, n, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	expect(s->w, n, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	assert_memory_equal(at(s->peer, s->peer->buf + 100000), at(n, n->buf + 100000), 3000);
	assert_memory_equal(at(n, n->buf + 200000), at(s->peer, s->peer->buf + 200000), 3000);
	use_pair(s, s->busy);
}

static void forged_packets(void **state)
{
	const char *text = getenv("SKUA_FORGED");
	uint64_t total = text ? strtoull(text, NULL, 0) : 50000, each = total / forge_num_kinds + 1;
	struct scene *s = create_scene();

	(void)state;
	if (each > MAX_BATCH)
		each = MAX_BATCH;
	transfer(s);
	for (; sent < total; s->odd = !s->odd)
		for (size_t k = 0; k < forge_num_kinds; k++) {
			if (!forge_kinds[k].event)
				batch(s, &forge_kinds[k], each);
			for (uint64_t i = 0; forge_kinds[k].event && i < ENDS + each / SHARE; i++)
				one_that_ends(s, &forge_kinds[k]);
		}
	finish_busy(s);
	transfer(s);
	print_message("%llu packets of %zu kinds\n", (unsigned long long)sent, forge_num_kinds);
	destroy_scene(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "ERR-2 ERR-3 ERR-4 ROC-2 ROC-4 ROC-5 ROC-10 ROC-16 REP-2 UC-5 XRC-5 XRC-11: forged_packets", forged_packets,
		  NULL, NULL, NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
