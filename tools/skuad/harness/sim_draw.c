// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A world from a seed. Every part has a random stream of its own (stream()), so a part that is
 * switched off changes nothing in the others.
 */
#include "harness/sim.h"

#define GUARD		64		/* bytes between regions */
#define SIZE_LATE	2048u		/* messages once the budget of bytes is used up */
#define UC_MOST		8192u
#define PAUSE_ROUNDS	16		/* of work, within which a pause comes */

/* splitmix64 */
uint64_t sim_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static uint64_t stream(const struct sim *s, unsigned int a, unsigned int b, unsigned int c)
{
	uint64_t state = s->seed ^ 0x5b4eull << 48;

	state = sim_random(&state) + a;
	state = sim_random(&state) + b;
	state = sim_random(&state) + c;
	sim_random(&state);
	return state;
}

enum {
	STREAM_QPS = 1, STREAM_LINE, STREAM_EVENTS, STREAM_QP, STREAM_SIDE, STREAM_MSG, STREAM_SIZE, STREAM_FAST,
	STREAM_SRQ, STREAM_FLUSH, STREAM_ODP, STREAM_MASKED,
};

static uint64_t below(uint64_t *r, uint64_t n)
{
	return sim_random(r) % n;
}

static bool percent(uint64_t *r, unsigned int p)
{
	return below(r, 100) < p;
}

/* Each power of two is as likely as the others. 0 < @lo <= @hi. */
static uint64_t skewed(uint64_t *r, uint64_t lo, uint64_t hi)
{
	unsigned int from = 63 - (unsigned int)__builtin_clzll(lo);
	unsigned int to = 63 - (unsigned int)__builtin_clzll(hi);
	uint64_t base = 1ull << (from + below(r, to - from + 1));
	uint64_t v = base + below(r, base);

	return v < lo ? lo : v > hi ? hi : v;
}

/* Drawn in any case; 0 if the part is off or does not come. */
static uint64_t maybe(struct sim *s, uint64_t *r, enum sim_part part, unsigned int chance,
		      uint64_t lo, uint64_t hi)
{
	bool comes = percent(r, chance);
	uint64_t v = skewed(r, lo, hi);

	return comes && !sim_is_off(s, part) ? v : 0;
}

static void draw_line(struct sim *s, unsigned int i)
{
	struct sim_line *l = &s->line[i];
	uint64_t r;
	bool in, far;

	/* Both directions are alike in most worlds. */
	r = stream(s, STREAM_LINE, 9, 0);
	r = stream(s, STREAM_LINE, percent(&r, 60) ? 0 : i, 1);
	l->rate = maybe(s, &r, SIM_RATE, s->bulk ? 60 : 75, 10000000, 10000000000);
	in = percent(&r, 15);
	l->in = in && !sim_is_off(s, SIM_INRATE);
	far = percent(&r, s->bulk ? 60 : 40);
	l->far = far && !sim_is_off(s, SIM_FAR);
	l->delay = maybe(s, &r, SIM_DELAY, 65, SIM_US, 10 * SIM_MS);
	l->jitter = maybe(s, &r, SIM_JITTER, 30, SIM_US, 5 * SIM_MS);
	if (l->jitter > l->delay)
		l->jitter = l->delay;
	l->loss = (uint32_t)maybe(s, &r, SIM_LOSS, s->bulk ? 65 : 50, 100, 200000);
	l->reorder = (uint32_t)maybe(s, &r, SIM_REORDER, 20, 500, 100000);
	l->reorder_by = skewed(&r, 5 * SIM_US, 3 * SIM_MS);
	l->duplicate = (uint32_t)maybe(s, &r, SIM_DUPLICATE, 20, 500, 50000);
	l->corrupt = (uint32_t)maybe(s, &r, SIM_CORRUPT, 20, 500, 30000);
	l->ecn = (uint32_t)maybe(s, &r, SIM_ECN, 12, 1000, 300000);
	/* Trains pass a perfect line as they are, and are not cut into packets. */
	r = stream(s, STREAM_LINE, i, 2);
	if (percent(&r, 12))
		*l = (struct sim_line){ 0 };
}

static void add_event(struct sim *s, struct sim_event e, enum sim_part part)
{
	if (!sim_is_off(s, part) && s->nevents < SIM_EVENTS)
		s->event[s->nevents++] = e;
}

static void draw_events(struct sim *s)
{
	static const struct {
		enum sim_event_kind kind;
		enum sim_part part;
		unsigned int chance;
		uint64_t lo, hi;
	} kinds[] = {
		{ SIM_EV_BURST, SIM_BURST, 18, 50 * SIM_US, 500 * SIM_MS },
		{ SIM_EV_PAUSE, SIM_PAUSE, 12, SIM_MS, 3 * SIM_S },
		{ SIM_EV_LINK, SIM_LINK, 10, 100 * SIM_US, 2 * SIM_S },
		{ SIM_EV_KILL, SIM_KILL, 8, 1, 1 },
	};

	for (unsigned int k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		uint64_t r = stream(s, STREAM_EVENTS, k, 0);
		unsigned int n = percent(&r, kinds[k].chance) ? 1 + (unsigned int)below(&r, 2) : 0;

		for (unsigned int i = 0; i < n; i++) {
			struct sim_event e = { .kind = kinds[k].kind };

			e.at = skewed(&r, 20 * SIM_US, 500 * SIM_MS);
			e.length = skewed(&r, kinds[k].lo, kinds[k].hi);
			e.rounds = (unsigned int)(e.length % PAUSE_ROUNDS);
			e.node = (unsigned int)below(&r, 2);
			e.qp = (unsigned int)below(&r, s->nqps);
			e.kill = (enum sim_kill)(percent(&r, 10) ? SIM_KILL_MR : below(&r, 3));
			add_event(s, e, kinds[k].part);
		}
	}
}

static int new_region(struct sim_node *n, uint32_t len, uint32_t content, bool aligned, uint64_t *r)
{
	if (n->nregions == n->cap) {
		n->cap = n->cap ? 2 * n->cap : 64;
		n->region = realloc(n->region, n->cap * sizeof(*n->region));
		assert_non_null(n->region);
	}
	n->used += GUARD + (aligned ? 0 : (uint32_t)below(r, 8));
	if (aligned)
		n->used = (n->used + 7) & ~7u;
	n->region[n->nregions] = (struct sim_region){ .offset = n->used, .len = len,
						      .content = content };
	n->used += len;
	return (int)n->nregions++;
}

/* The opcodes of a side; some sides have only one. */
static uint8_t draw_opcode(uint64_t *r, uint64_t side_random, bool uc)
{
	static const uint8_t rc_ops[] = {
		SKUA_WQE_SEND, SKUA_WQE_SEND_IMM, SKUA_WQE_WRITE, SKUA_WQE_WRITE_IMM,
		SKUA_WQE_READ, SKUA_WQE_CMP_SWAP, SKUA_WQE_FETCH_ADD, SKUA_WQE_READ,
	};
	static const uint8_t uc_ops[] = { SKUA_WQE_SEND_IMM, SKUA_WQE_WRITE, SKUA_WQE_WRITE_IMM };
	uint64_t one = sim_random(&side_random);
	uint64_t pick = sim_random(r);

	if (one % 3 == 0)
		pick = one >> 8;
	return uc ? uc_ops[pick % 3] : rc_ops[pick % 8];
}

/* Some sides, not of XRC, FLUSH, and write the word of their atomics, in place of some READs and atomics. */
static uint8_t draw_flush(const struct sim *s, unsigned int i, unsigned int side, unsigned int k, uint8_t opcode)
{
	uint64_t sides = stream(s, STREAM_FLUSH, i, side), r = stream(s, STREAM_FLUSH, i * 2 + side, 1 + k);

	if (s->qp[i].xrc || !percent(&sides, 25) || opcode < SKUA_WQE_READ || percent(&r, 40))
		return opcode;
	return percent(&r, 50) ? SKUA_WQE_FLUSH : SKUA_WQE_ATOMIC_WRITE;
}

/* Some sides, not of XRC, have masked atomics in place of some others. */
static uint8_t draw_masked(const struct sim *s, unsigned int i, unsigned int side, unsigned int k, uint8_t opcode)
{
	uint64_t sides = stream(s, STREAM_MASKED, i, side), r = stream(s, STREAM_MASKED, i * 2 + side, 1 + k);

	if (s->qp[i].xrc || !percent(&sides, 50) || !sim_is_atomic(opcode) || percent(&r, 40))
		return opcode;
	return opcode == SKUA_WQE_CMP_SWAP ? SKUA_WQE_MASKED_CMP_SWAP : SKUA_WQE_MASKED_FETCH_ADD;
}

static bool op_is_off(const struct sim *s, uint8_t op)
{
	switch (op) {
	case SKUA_WQE_SEND_IMM:
		return sim_is_off(s, SIM_SEND) || sim_is_off(s, SIM_IMM);
	case SKUA_WQE_SEND:
		return sim_is_off(s, SIM_SEND);
	case SKUA_WQE_WRITE_IMM:
		return sim_is_off(s, SIM_WRITE) || sim_is_off(s, SIM_IMM);
	case SKUA_WQE_WRITE:
		return sim_is_off(s, SIM_WRITE);
	case SKUA_WQE_READ:
		return sim_is_off(s, SIM_READ);
	case SKUA_WQE_FLUSH:
		return sim_is_off(s, SIM_FLUSH);
	case SKUA_WQE_ATOMIC_WRITE:
		return sim_is_off(s, SIM_FLUSH) || sim_is_off(s, SIM_FENCE);
	default:
		return sim_is_off(s, SIM_ATOMIC);
	}
}

static uint32_t draw_size(struct sim *s, uint64_t *r, const struct sim_qp *qp)
{
	uint32_t pmtu = sim_pmtu(qp), len, most = 1 << 20;
	unsigned int kind = (unsigned int)below(r, 100);

	if (s->bulk && kind % 8 < 5)
		len = (uint32_t)skewed(r, 16384, 1 << 20);
	else if (kind < 30)
		len = (uint32_t)below(r, 65);
	else if (kind < 60)
		len = (uint32_t)below(r, 6) * pmtu + (uint32_t)below(r, 3) - 1;
	else if (kind < 92)
		len = (uint32_t)skewed(r, 64, 65536);
	else
		len = (uint32_t)skewed(r, 65536, 1 << 20);
	if (len > 1 << 20)
		len = 0;			/* 0 * pmtu - 1 */
	if (qp->type == SKUA_QPT_UC)
		most = UC_MOST;
	if (sim_is_off(s, SIM_BIG) && most > 8 * pmtu)
		most = 8 * pmtu;
	if (sim_is_off(s, SIM_MIDDLE))
		most = pmtu;
	if (len > s->bytes && most > SIZE_LATE)
		most = SIZE_LATE;
	if (len > most)
		len = most;
	s->bytes -= len < s->bytes ? len : s->bytes;
	return len;
}

/* Fields of bytes, whose sums are those of bytes; and what is compared and stored, in any bits. */
static void mask_atomic(struct sim_msg *m, bool swap, bool hit, uint64_t *r)
{
	if (swap) {
		m->swap_add_mask = sim_random(r);
		m->compare_mask = sim_random(r) | 1;
		m->compare = m->old ^ (sim_random(r) & ~m->compare_mask) ^ !hit;
		m->new = hit ? m->old ^ ((m->old ^ m->swap_add) & m->swap_add_mask) : m->old;
		return;
	}
	m->swap_add_mask = 0x8080808080808080;
	if (m->shared)
		m->swap_add_mask = 0;
	for (unsigned int shift = 0; shift < 64; shift += 8)
		((uint8_t *)&m->new)[shift / 8] = (uint8_t)((m->old >> shift) + (m->swap_add >> shift));
	m->new = le64toh(m->new);
}

static void draw_atomic(struct sim *s, unsigned int i, unsigned int side, struct sim_msg *m,
			uint64_t *value, uint64_t *r)
{
	bool swap = m->opcode == SKUA_WQE_CMP_SWAP || m->opcode == SKUA_WQE_MASKED_CMP_SWAP, hit = percent(r, 60);
	uint64_t v = sim_random(r);

	(void)i;
	m->len = 8;
	m->shared = percent(r, 20) && !swap;
	m->swap_add = m->shared ? 1 : v;
	m->old = *value;
	m->compare = !swap ? 0 : hit ? *value : v ^ 1;
	m->target = new_region(&s->node[side], 8, 0, true, r);
	s->node[side].region[m->target].expect = SIM_ANY;
	m->new = !swap ? *value + v : hit ? v : *value;
	if (m->opcode >= SKUA_WQE_MASKED_CMP_SWAP)
		mask_atomic(m, swap, hit, r);
	if (!m->shared)
		*value = m->new;
}

/* Behind a fence: atomics of before may be carried out later. */
static void draw_word(struct sim_msg *m, uint64_t *value)
{
	m->len = 8;
	m->flags |= SKUA_WQE_FENCE;
	memcpy(value, sim_pattern() + m->content, sizeof(*value));
	m->new = *value = le64toh(*value);
}

static void draw_target(struct sim *s, struct sim_qp *qp, unsigned int side, unsigned int n,
			uint64_t *r)
{
	struct sim_side *peer = &qp->side[!side];
	struct sim_msg *m = &qp->side[side].msg[n];
	struct sim_msg *before = n ? m - 1 : NULL;
	bool takes_receive = m->opcode == SKUA_WQE_SEND || m->opcode == SKUA_WQE_SEND_IMM ||
			     m->opcode == SKUA_WQE_WRITE_IMM;
	bool depends = percent(r, 35) && !sim_is_off(s, SIM_DEPENDS) && qp->type == SKUA_QPT_RC &&
		       before && before->len;

	if (m->opcode == SKUA_WQE_READ) {
		/* What was written just before must be read, without a fence. */
		if (depends && before->opcode == SKUA_WQE_WRITE) {
			m->source = before->target;
			m->content = before->content;
			m->len = before->len;
		}
		m->target = new_region(&s->node[side], m->len, m->content, false, r);
		return;
	}
	/* What was just read may be sent, behind a fence. */
	if (depends && before->opcode == SKUA_WQE_READ && !sim_is_off(s, SIM_FENCE)) {
		m->flags |= SKUA_WQE_FENCE;
		m->flags &= (uint8_t)~SKUA_WQE_INLINE;
		m->source = before->target;
		m->content = before->content;
		if (m->len > before->len)
			m->len = before->len;
	}
	if (m->opcode == SKUA_WQE_WRITE || m->opcode == SKUA_WQE_WRITE_IMM)
		m->target = new_region(&s->node[!side], m->len, m->content, false, r);
	if (takes_receive) {
		bool write = m->opcode == SKUA_WQE_WRITE_IMM;
		uint32_t room = qp->type == SKUA_QPT_UC ? UC_MOST : m->len;

		m->receive = (int)peer->nrecvs;
		peer->recv[peer->nrecvs].msg = (int)n;
		peer->recv[peer->nrecvs].region = -1;
		/* An entry of an SRQ has its region before anybody knows who takes it. */
		if (!peer->srq && (!write || qp->type == SKUA_QPT_UC)) {
			int region = new_region(&s->node[!side], room, m->content, false, r);

			if (qp->type == SKUA_QPT_UC)
				s->node[!side].region[region].expect = SIM_ANY;
			peer->recv[peer->nrecvs].region = region;
		}
		peer->nrecvs++;
	}
}

/* Enough of them have a completion of their own that the queue never fills without one. */
static void draw_signals(struct sim *s, struct sim_side *side)
{
	for (unsigned int i = 0; i < side->nmsgs; i++)
		if (i % side->depth == side->depth - 1 || i == side->nmsgs - 1 ||
		    sim_is_off(s, SIM_UNSIGNALED))
			side->msg[i].flags |= SKUA_WQE_SIGNALED;
}

static void draw_messages(struct sim *s, unsigned int i, unsigned int side, unsigned int n)
{
	struct sim_qp *qp = &s->qp[i];
	struct sim_side *sd = &qp->side[side];
	uint64_t side_random = stream(s, STREAM_SIDE, i, 2 + side), value = 0, r;
	uint64_t sizes = stream(s, STREAM_SIZE, i, side);

	sd->msg = calloc(n ? n : 1, sizeof(*sd->msg));
	assert_non_null(sd->msg);
	for (unsigned int k = 0; k < n; k++) {
		struct sim_msg m = { .source = -1, .target = -1, .receive = -1 };

		r = stream(s, STREAM_MSG, i * 2 + side, k);
		m.opcode = draw_flush(s, i, side, k, draw_opcode(&r, side_random, qp->type == SKUA_QPT_UC));
		m.opcode = draw_masked(s, i, side, k, m.opcode);
		m.len = draw_size(s, &sizes, qp);
		if (qp->side[!side].srq && m.opcode <= SKUA_WQE_SEND_IMM && m.len > SIM_SRQ_MOST)
			m.len = SIM_SRQ_MOST;
		if (m.opcode == SKUA_WQE_FLUSH)
			m.len = 0;
		m.content = (uint32_t)below(&r, SIM_PATTERN - (1 << 20));
		if (percent(&r, 60))
			m.flags |= SKUA_WQE_SIGNALED;
		if (percent(&r, 10) && !sim_is_off(s, SIM_FENCE))
			m.flags |= SKUA_WQE_FENCE;
		if (percent(&r, 10))
			m.flags |= SKUA_WQE_SOLICITED;
		if (percent(&r, 30) && m.len <= 32 && !sim_is_off(s, SIM_INLINE) &&
		    m.opcode <= SKUA_WQE_WRITE_IMM)
			m.flags |= SKUA_WQE_INLINE;
		m.imm = m.opcode == SKUA_WQE_SEND_IMM || m.opcode == SKUA_WQE_WRITE_IMM ?
			i << 16 | side << 15 | sd->nmsgs : 0;
		if (op_is_off(s, m.opcode) || (sim_is_off(s, SIM_HALF) && k >= n / 2) ||
		    (sim_is_off(s, SIM_MOST) && k >= 3))
			continue;
		sd->msg[sd->nmsgs++] = m;
		if (sim_is_atomic(m.opcode))
			draw_atomic(s, i, side, &sd->msg[sd->nmsgs - 1], &value, &r);
		else if (m.opcode == SKUA_WQE_ATOMIC_WRITE)
			draw_word(&sd->msg[sd->nmsgs - 1], &value);
		else if (m.opcode != SKUA_WQE_FLUSH)
			draw_target(s, qp, side, sd->nmsgs - 1, &r);
	}
	draw_signals(s, sd);
}

/* One end of a QP at most can be the target. What receives in another way, or has an SRQ of its own, is none. */
static void draw_xrc(struct sim *s, struct sim_qp *qp, unsigned int side)
{
	struct sim_side *sd = &qp->side[side];

	if (qp->xrc || (s->node[side].srq.xrc && side && qp->side[0].srq))
		sd->srq = false;
	if (sd->srq && s->node[side].srq.xrc) {
		qp->xrc = true;
		qp->target = side;
	}
	if (qp->xrc)
		qp->side[0].fast = qp->side[1].fast = false;
}

static void draw_side(struct sim *s, unsigned int i, unsigned int side)
{
	struct sim_qp *qp = &s->qp[i];
	struct sim_side *sd = &qp->side[side];
	uint64_t r = stream(s, STREAM_SIDE, i, side), fast = stream(s, STREAM_FAST, i, side);
	uint64_t of_node = stream(s, STREAM_SRQ, SIM_QPS + 1, side), srq = stream(s, STREAM_SRQ, i, side);
	bool late;

	sd->retry_cnt = percent(&r, 70) ? 7 : (uint8_t)below(&r, 8);
	sd->rnr_retry = percent(&r, 70) ? 7 : (uint8_t)below(&r, 8);
	sd->min_rnr_timer = (uint8_t)(percent(&r, 80) ? 1 + below(&r, 18) : below(&r, 32));
	sd->max_rd = (uint16_t)skewed(&r, 1, 16);
	sd->max_dest_rd = sd->max_rd;
	sd->depth = (unsigned int)skewed(&r, 1, 32);
	sd->recv_depth = (unsigned int)skewed(&r, 1, 32);
	sd->start = percent(&r, 50) ? 0 : skewed(&r, 1, 20 * SIM_MS);
	sd->think = percent(&r, 75) ? 0 : skewed(&r, SIM_US, 2 * SIM_MS);
	late = percent(&r, 15);
	sd->late = skewed(&r, SIM_US, 50 * SIM_MS);
	if (sd->late > 50 * sim_rnr_ns(sd->min_rnr_timer))
		sd->late = 50 * sim_rnr_ns(sd->min_rnr_timer);
	if (!late || sim_is_off(s, SIM_LATE))
		sd->late = 0;
	sd->psn = percent(&r, 30) ? 0xfffff0 + (uint32_t)below(&r, 16) : (uint32_t)below(&r, 1 << 24);
	/* Fast registration names the memory itself, and so takes no part in what is on demand. */
	sd->fast = percent(&fast, 15) && qp->type == SKUA_QPT_RC && !s->node[side].odp.on && !sim_is_off(s, SIM_FAST);
	sd->srq = percent(&of_node, 15) && percent(&srq, 60) && qp->type == SKUA_QPT_RC && qp->on && !sim_is_off(s, SIM_SRQ) &&
		  s->node[side].srq.sides < SIM_SRQ_SIDES;
	draw_xrc(s, qp, side);
	s->node[side].srq.sides += sd->srq;
	/* Chosen by sim_reckon(), which knows the round trip: so many steps above the least. */
	sd->timeout = (uint8_t)(percent(&r, 8) ? 100 : percent(&r, 8) ? 200 : below(&r, 3));
	if (sim_is_off(s, SIM_THINK))
		sd->think = sd->start = 0;
	if (sim_is_off(s, SIM_DEPTH))
		sd->depth = 1;
	if (sim_is_off(s, SIM_WRAP))
		sd->psn = 0x100 + side;
}

static void draw_qps(struct sim *s)
{
	uint64_t r = stream(s, STREAM_QPS, 0, 0);
	unsigned int kind = (unsigned int)below(&r, 100);

	s->nqps = 1 + (unsigned int)(kind < 50 ? below(&r, 2) : kind < 80 ? 2 + below(&r, 6) :
				     kind < 96 ? 8 + below(&r, 16) : 24 + below(&r, 40));
	s->bytes = skewed(&r, 32 << 10, percent(&r, 10) ? 4 << 20 : 512 << 10);
	s->bulk = percent(&r, 25);
	if (s->bulk) {
		s->nqps = 1 + (unsigned int)below(&r, 4);
		s->bytes = skewed(&r, 512 << 10, 8 << 20);
	}
	s->go_back_n[0] = percent(&r, 25);
	s->go_back_n[1] = percent(&r, 60) ? s->go_back_n[0] : percent(&r, 50);
	if (sim_is_off(s, SIM_GBN_A))
		s->go_back_n[0] = false;
	if (sim_is_off(s, SIM_GBN_B))
		s->go_back_n[1] = false;
}

static void draw_qp(struct sim *s, unsigned int i)
{
	struct sim_qp *qp = &s->qp[i];
	uint64_t r = stream(s, STREAM_QP, i, 0);
	unsigned int most = s->bulk ? 16 : 200 / s->nqps, n;

	qp->type = percent(&r, 6) && i ? SKUA_QPT_UC : SKUA_QPT_RC;
	qp->path_mtu = (uint8_t)(1 + below(&r, 5));
	if (sim_is_off(s, SIM_PMTU))
		qp->path_mtu = 3;
	qp->on = !(s->off.qps >> i & 1) && !(qp->type == SKUA_QPT_UC && sim_is_off(s, SIM_UC));
	if (most > SIM_MSGS)
		most = SIM_MSGS;
	if (most < 3)
		most = 3;
	for (unsigned int side = 0; side < 2; side++) {
		struct sim_node *peer = &s->node[!side];

		draw_side(s, i, side);
		peer->word[i] = new_region(peer, 8, 0, true, &r);
		peer->region[peer->word[i]].expect = SIM_ANY;
	}
	for (unsigned int side = 0; side < 2; side++) {
		n = (unsigned int)skewed(&r, 1, most);
		if (percent(&r, 15) || sim_is_off(s, side ? SIM_BACK : SIM_FORTH) || !qp->on || (qp->xrc && side == qp->target))
			n = 0;
		draw_messages(s, i, side, n);
	}
	/* Neither end has more READs under way than the other takes. */
	for (unsigned int side = 0; side < 2; side++)
		qp->side[!side].max_dest_rd = qp->side[side].max_rd;
}

/* A QP that goes while it has an entry, perhaps. */
static void draw_kill_of_user(struct sim *s, unsigned int node, uint64_t *r)
{
	struct sim_event e = {
		.kind = SIM_EV_KILL, .at = skewed(r, 20 * SIM_US, 50 * SIM_MS), .length = 1, .node = node,
		.qp = (unsigned int)below(r, s->nqps), .kill = (enum sim_kill)below(r, 3),
	};

	while (!s->qp[e.qp].side[node].srq)
		e.qp = (e.qp + 1) % s->nqps;
	if (percent(r, 60))
		add_event(s, e, SIM_KILL);
}

/* An entry for each receive of its sides, and one for each side that it may flush. */
static void draw_srq(struct sim *s, unsigned int node)
{
	struct sim_srq *srq = &s->node[node].srq;
	uint64_t r = stream(s, STREAM_SRQ, SIM_QPS, node);

	if (!srq->sides)
		return;
	draw_kill_of_user(s, node, &r);
	srq->nentries = srq->sides;
	for (unsigned int i = 0; i < s->nqps; i++)
		if (s->qp[i].side[node].srq)
			srq->nentries += s->qp[i].side[node].nrecvs;
	srq->depth = srq->sides + (unsigned int)skewed(&r, 1, 32);
	srq->region = calloc(srq->nentries, sizeof(*srq->region));
	srq->done = calloc(srq->nentries, sizeof(*srq->done));
	assert_true(srq->region && srq->done);
	for (unsigned int i = 0; i < srq->nentries; i++) {
		srq->region[i] = new_region(&s->node[node], SIM_SRQ_MOST, 0, false, &r);
		s->node[node].region[srq->region[i]].expect = SIM_ANY;
	}
}

static void draw_odp(struct sim *s, unsigned int node)
{
	uint64_t r = stream(s, STREAM_ODP, 0, node);
	struct sim_odp *o = &s->node[node].odp;

	o->on = percent(&r, 15) && !sim_is_off(s, SIM_ODP);
	o->takes = skewed(&r, SIM_US, 5 * SIM_MS);
	/* A peer without selective repeat sends its window again for each page: long messages get many pages at a time. */
	o->most = percent(&r, 30) ? 1 : (unsigned int)skewed(&r, 2, SKUA_UPDATE_PAGES_MAX);
	if (s->bulk)
		o->most = SKUA_UPDATE_PAGES_MAX;
	o->frees_early = percent(&r, 50);
	o->evicts_every = skewed(&r, 20 * SIM_US, 20 * SIM_MS);
	o->evictions = (unsigned int)maybe(s, &r, SIM_EVICT, 70, 1, 100);
	o->refused = (unsigned int)maybe(s, &r, SIM_REFUSE, 10, 1, 20);
	o->random = sim_random(&r);
}

void sim_draw(struct sim *s, uint64_t seed, struct sim_off off)
{
	uint64_t none = 0, r;

	memset(s, 0, sizeof(*s));
	s->seed = seed;
	s->off = off;
	draw_qps(s);
	for (unsigned int i = 0; i < 2; i++) {
		draw_line(s, i);
		draw_odp(s, i);
		r = stream(s, STREAM_SRQ, SIM_QPS + 2, i);
		s->node[i].srq.xrc = percent(&r, 40) && !sim_is_off(s, SIM_XRC);
		s->node[i].shared_word = new_region(&s->node[i], 8, 0, true, &none);
		s->node[i].region[0].expect = SIM_ANY;
	}
	draw_events(s);
	for (unsigned int i = 0; i < s->nqps; i++)
		draw_qp(s, i);
	for (unsigned int i = 0; i < 2; i++) {
		draw_srq(s, i);
		s->node[i].used += GUARD;
		assert_true(s->node[i].used <= SIM_ARENA);
	}
	sim_reckon(s);
}

void sim_free(struct sim *s)
{
	for (unsigned int i = 0; i < SIM_QPS; i++)
		for (unsigned int side = 0; side < 2; side++)
			free(s->qp[i].side[side].msg);
	for (unsigned int i = 0; i < 2; i++) {
		free(s->node[i].region);
		free(s->node[i].srq.region);
		free(s->node[i].srq.done);
	}
}
