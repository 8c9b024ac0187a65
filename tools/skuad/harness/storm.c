// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "harness/storm.h"

#include <fcntl.h>

#include "core/qp.h"
#include "harness/lossy.h"
#include "link/capture.h"
#include "nic/control.h"
#include "packet/packet.h"
#include "roce/repeat.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define POOL		4096u		/* packets remembered for replays, a power of two */
#define RECENT		64u
#define FRAME_MAX	2048u
#define PMTU		1024u
#define SLICE_NS	2000000ull	/* what was captured is replayed from the end of its slice on */

const char *const storm_names[STORM_KINDS] = {
	"past-request", "past-read", "past-atomic", "again-request", "again-read", "again-atomic", "ahead", "far",
	"wrong-rkey", "wrong-qpn", "ack", "nak", "rnr", "read-resp", "atomic-resp", "hello", "missing",
	"replay-request", "replay-response", "replay-nak", "replay-frame",
};

struct seen {
	uint8_t to;			/* index of the node */
	uint16_t len;
	uint8_t frame[FRAME_MAX];
};

/* Replays are of one kind each, from the last POOL packets of it before this slice. */
struct pool {
	uint32_t n, known;		/* run free: all, and those before this slice */
	struct seen seen[2 * POOL];
};

struct storm {
	struct world *w;
	enum storm_kind kinds[STORM_KINDS];
	unsigned int nkinds;
	enum transport transport;
	uint32_t srqn;
	uint64_t mean_ns, next_at, slice_at, random;
	struct capture *capture;	/* of node 0's port; NULL: nothing is replayed */
	struct pool *pools[STORM_KINDS];
	uint64_t arrived[STORM_KINDS];
};

static uint64_t draw(struct storm *s)
{
	uint64_t z = s->random += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static uint32_t below(struct storm *s, uint32_t n)
{
	return (uint32_t)(draw(s) % n);
}

/* Captured packets */

/* STORM_KINDS: it is not kept. */
static enum storm_kind kind_of(uint8_t *frame, uint32_t len)
{
	struct roce_packet pkt;

	if (repeat_is_frame(frame, len))
		return STORM_REPLAY_FRAME;
	if (!roce_packet_open(&pkt, frame, len) || roce_packet_parse(&pkt) != ROCE_OK || pkt.train.op == TRAIN_CNP)
		return STORM_KINDS;
	if (!train_is_response(pkt.train.op))
		return STORM_REPLAY_REQUEST;
	return pkt.train.op == TRAIN_ACK && AETH_TYPE(pkt.train.syndrome) ? STORM_REPLAY_NAK :
	       STORM_REPLAY_RESPONSE;
}

static void keep(struct storm *s, uint8_t *frame, uint32_t len)
{
	enum storm_kind kind = len <= FRAME_MAX ? kind_of(frame, len) : STORM_KINDS;
	struct pool *pool = kind < STORM_KINDS ? s->pools[kind] : NULL;
	struct seen *seen;

	if (!pool)
		return;
	assert_true(pool->n - pool->known < POOL);
	seen = &pool->seen[pool->n++ % (2 * POOL)];
	seen->to = !memcmp(frame, s->w->n[1].mac, 6);
	seen->len = (uint16_t)len;
	memcpy(seen->frame, frame, len);
}

/*
 * The linker puts these in the place of capture_frame() and capture_train(), for all who call those. A storm's own
 * capture is not written: it would be ended, read and begun anew in each slice.
 */
static struct storm *listener;

void __wrap_capture_frame(struct capture *cap, bool out, uint64_t ns, const struct seglist *frame);
void __wrap_capture_train(struct capture *cap, bool out, uint64_t ns, const struct train *t);
void __real_capture_frame(struct capture *cap, bool out, uint64_t ns, const struct seglist *frame);
void __real_capture_train(struct capture *cap, bool out, uint64_t ns, const struct train *t);

void __wrap_capture_frame(struct capture *cap, bool out, uint64_t ns, const struct seglist *frame)
{
	uint8_t bytes[FRAME_MAX];
	uint32_t len = 0;

	if (!listener || cap != listener->capture) {
		__real_capture_frame(cap, out, ns, frame);
		return;
	}
	if (frame->bytes > FRAME_MAX)
		return;
	for (unsigned int i = 0; i < frame->n; i++) {
		memcpy(bytes + len, frame->seg[i].p, frame->seg[i].len);
		len += frame->seg[i].len;
	}
	keep(listener, bytes, len);
}

void __wrap_capture_train(struct capture *cap, bool out, uint64_t ns, const struct train *t)
{
	uint8_t bytes[ROCE_MAX_PACKET];

	if (!listener || cap != listener->capture) {
		__real_capture_train(cap, out, ns, t);
		return;
	}
	for (uint32_t i = 0; i < t->npkts; i++) {
		uint32_t len = roce_packet_build(bytes, t, i);

		keep(listener, bytes, len);
	}
}

static void open_capture(struct storm *s)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_null(listener);
	s->capture = capture_open(fd, "storm");
	assert_non_null(s->capture);
	skua_dev_set_capture(s->w->n[0].dev, s->capture);
	listener = s;
}

static void close_capture(struct storm *s)
{
	uint64_t written, lost;

	listener = NULL;
	skua_dev_set_capture(s->w->n[0].dev, NULL);
	capture_close(s->capture, &written, &lost);
}

/* Both ends */

static void find_qp(const void *info, void *arg)
{
	const struct skua_qp_info *qp = info;
	struct skua_qp_info *want = arg;

	if (qp->qpn == want->qpn)
		*want = *qp;
}

static struct skua_qp_info info_of(const struct node *n)
{
	struct skua_qp_info qp = { .qpn = n->qpn };

	skua_dev_for_each_qp(n->dev, &(struct skua_walk){ 0 }, find_qp, &qp);
	return qp;
}

/* Near by, or anywhere in a half of the circle less what may be outstanding. */
static uint32_t distance(struct storm *s)
{
	return 1 + below(s, below(s, 2) ? 16 : below(s, 2) ? 1024 : 1 << 22);
}

/* Forged packets. @n is the victim, @peer the one that the packet claims to come from. */

static uint8_t noise[8192];

static void load(struct storm *s, struct train *t, struct seglist *payload)
{
	uint32_t len = t->last ? below(s, PMTU + 1) : PMTU;

	if (!noise[0])
		memset(noise, 0xbd, sizeof(noise));
	payload->n = 1;
	payload->bytes = len;
	payload->seg[0] = (struct seg){ noise + below(s, sizeof(noise) - PMTU), len };
	t->payload = len ? payload : NULL;
	t->msg_len = t->first && !t->last ? PMTU * (1 + below(s, 100)) : len;
}

/* For @n's QP. */
static struct train begin(const struct storm *s, struct node *n, enum train_op op, uint32_t psn)
{
	struct train t = train_from(n, op, psn);

	t.transport = s->transport;
	t.srqn = s->srqn;
	return t;
}

/* @packets: at most so many responses to a READ. */
static void request(struct storm *s, struct node *n, const struct node *peer, enum train_op op, uint32_t psn,
		    uint32_t wrong_key, uint32_t packets)
{
	struct train t = begin(s, n, op, psn);
	struct seglist payload;

	t.ack_req = below(s, 2);
	t.rkey = n->key ^ wrong_key;
	t.raddr = n->buf + 8 * below(s, BUF_SIZE / 16);
	t.imm = op == TRAIN_SEND_INV ? n->key : (uint32_t)draw(s);
	t.swap_add = draw(s);
	t.compare = draw(s) & 1;
	t.swap_add_mask = draw(s);
	t.compare_mask = draw(s) & 1;
	if (op <= TRAIN_WRITE_IMM) {
		t.first = below(s, 2);
		t.last = below(s, 2);
		load(s, &t, &payload);
	} else if (op == TRAIN_ATOMIC_WRITE) {
		load(s, &t, &payload);
		t.payload = &payload;
		t.msg_len = payload.bytes = payload.seg[0].len = 8;
	} else {
		t.flush = SKUA_FLUSH_GLOBAL | (draw(s) & SKUA_FLUSH_MR);
		t.msg_len = below(s, (packets < 200 ? packets : 200) * PMTU + 1);
	}
	arrive_only(n, peer, t);
}

static enum train_op payload_op(struct storm *s)
{
	return below(s, TRAIN_WRITE_IMM + 1);
}

static enum train_op atomic_op(struct storm *s)
{
	static const enum train_op ops[] = { TRAIN_CMP_SWAP, TRAIN_FETCH_ADD, TRAIN_FLUSH, TRAIN_ATOMIC_WRITE,
					     TRAIN_MASKED_CMP_SWAP, TRAIN_MASKED_FETCH_ADD };

	return ops[below(s, s->transport == TRANSPORT_XRC ? 2 : ARRAY_SIZE(ops))];	/* XRC has the first two */
}

static enum train_op any_op(struct storm *s)
{
	return below(s, 3) ? payload_op(s) : below(s, 2) ? TRAIN_READ_REQ : atomic_op(s);
}

/* Of the requests that came: one that is not acknowledged yet, if there is any; else an older one. */
static uint32_t carried_out(struct storm *s, const struct skua_qp_info *peer, const struct skua_qp_info *victim)
{
	int32_t n = psn_diff(victim->rq_psn, peer->una_psn);

	return psn_add(victim->rq_psn, -1 - below(s, n > 0 ? (uint32_t)n : 16));
}

static void response(struct storm *s, struct node *n, const struct node *peer, enum storm_kind kind, uint32_t psn)
{
	static const enum train_op ops[STORM_KINDS] = {
		[STORM_ACK] = TRAIN_ACK, [STORM_NAK] = TRAIN_ACK, [STORM_RNR] = TRAIN_ACK,
		[STORM_READ_RESP] = TRAIN_READ_RESP, [STORM_ATOMIC_RESP] = TRAIN_ATOMIC_RESP };
	static const uint8_t naks[] = { AETH_NAK_SEQ, AETH_NAK_INV_REQ, AETH_NAK_ACCESS, AETH_NAK_OP, 0x64, 0x7f };
	struct train t = begin(s, n, ops[kind], psn);
	struct seglist payload;

	t.syndrome = kind == STORM_NAK ? naks[below(s, ARRAY_SIZE(naks))] :
		     kind == STORM_RNR ? (uint8_t)(AETH_RNR | below(s, 32)) : AETH_ACK;
	t.msn = (uint32_t)draw(s) & PSN_MASK;
	t.swap_add = draw(s);
	if (kind == STORM_READ_RESP) {
		t.first = below(s, 2);
		t.last = below(s, 2);
		load(s, &t, &payload);
	}
	arrive_only(n, peer, t);
}

static void frame(struct storm *s, struct node *n, const struct node *peer, enum storm_kind kind,
		  const struct skua_qp_info *qp)
{
	struct repeat_frame f = { .type = kind == STORM_HELLO ? REPEAT_HELLO : REPEAT_MISSING,
				  .answer = below(s, 2), .dest_qpn = n->qpn, .path = { .vlan = SKUA_VLAN_NONE } };
	uint32_t outstanding = psn_add(qp->sq_psn, -qp->una_psn), map = below(s, 4);
	uint8_t buf[REPEAT_FRAME];
	struct seglist bytes = { .n = 1 };

	memcpy(f.path.smac, peer->mac, 6);
	memcpy(f.path.dmac, n->mac, 6);
	memcpy(f.path.sgid, peer->gid, 16);
	memcpy(f.path.dgid, n->gid, 16);
	if (kind == STORM_HELLO && below(s, 2))
		f.path.smac[5] ^= (uint8_t)(1 + below(s, 255));
	switch (below(s, 4)) {
	case 0:
		f.psn = qp->una_psn;
		break;
	case 1:
		f.psn = (uint32_t)draw(s) & PSN_MASK;
		break;
	default:
		f.psn = psn_add(qp->una_psn, below(s, outstanding + 2 * REPEAT_WINDOW) - REPEAT_WINDOW);
	}
	memset(f.held, map ? 0xff : 0, sizeof(f.held));
	for (size_t i = 0; map > 1 && i < sizeof(f.held); i++)
		f.held[i] = (uint8_t)draw(s);
	/* The last one that is held decides whether the frame is taken. */
	if (map == 3)
		memset(f.held + below(s, sizeof(f.held)), 0, 1);
	if (below(s, 2))
		for (uint32_t i = outstanding; i < REPEAT_WINDOW; i++)
			f.held[i / 8] &= (uint8_t)~(1 << i % 8);
	bytes.bytes = (uint32_t)repeat_build(buf, &f);
	bytes.seg[0] = (struct seg){ buf, bytes.bytes };
	skua_dev_rx_frame(n->dev, &bytes);
}

static bool replay(struct storm *s, enum storm_kind kind)
{
	struct pool *pool = s->pools[kind];
	uint32_t known = pool->known < POOL ? pool->known : POOL, among = below(s, 2) && known > RECENT ? RECENT : known;
	struct seglist bytes = { .n = 1 };
	const struct seen *seen;

	if (!known)
		return false;
	seen = &pool->seen[(pool->known - 1 - below(s, among)) % (2 * POOL)];
	bytes.bytes = seen->len;
	bytes.seg[0] = (struct seg){ (uint8_t *)seen->frame, seen->len };
	skua_dev_rx_frame(s->w->n[seen->to].dev, &bytes);
	return true;
}

static void forge(struct storm *s, enum storm_kind kind, struct node *n, const struct node *peer)
{
	struct skua_qp_info qp = info_of(n), other = info_of(peer);
	uint32_t before = distance(s), past = psn_add(other.una_psn, -before), wrong_key = 1 + (uint32_t)draw(s) % 0xfffffff;
	uint32_t far = psn_add(qp.rq_psn, REPEAT_WINDOW + distance(s));
	struct node stranger = *n;

	switch (kind) {
	case STORM_PAST_REQUEST:
		request(s, n, peer, payload_op(s), past, 0, before);
		break;
	case STORM_PAST_READ:
		request(s, n, peer, TRAIN_READ_REQ, past, 0, before);
		break;
	case STORM_PAST_ATOMIC:
		request(s, n, peer, atomic_op(s), past, 0, before);
		break;
	case STORM_AGAIN_REQUEST:
		request(s, n, peer, payload_op(s), carried_out(s, &other, &qp), 0, 200);
		break;
	case STORM_AGAIN_READ:
		request(s, n, peer, TRAIN_READ_REQ, carried_out(s, &other, &qp), 0, 200);
		break;
	case STORM_AGAIN_ATOMIC:
		request(s, n, peer, atomic_op(s), carried_out(s, &other, &qp), 0, 200);
		break;
	case STORM_AHEAD:
		request(s, n, peer, any_op(s), psn_add(qp.rq_psn, 1 + below(s, REPEAT_WINDOW)), 0, 200);
		break;
	case STORM_FAR:
		request(s, n, peer, any_op(s), far, 0, 200);
		break;
	case STORM_WRONG_RKEY:
		request(s, n, peer, any_op(s), below(s, 2) ? past : carried_out(s, &other, &qp), wrong_key,
			200);
		break;
	case STORM_WRONG_QPN:
		stranger.qpn = (n->qpn ^ (1 + below(s, PSN_MASK))) & PSN_MASK;
		request(s, &stranger, peer, any_op(s), qp.rq_psn, 0, 200);
		break;
	case STORM_ACK:
	case STORM_NAK:
	case STORM_RNR:
	case STORM_READ_RESP:
	case STORM_ATOMIC_RESP:
		response(s, n, peer, kind, below(s, 2) ? psn_add(qp.una_psn, -distance(s)) :
						       psn_add(qp.sq_psn, distance(s) - 1));
		break;
	default:
		frame(s, n, peer, kind, &qp);
	}
}

static void arrive_one(struct storm *s, int to)
{
	enum storm_kind kind = s->kinds[below(s, s->nkinds)];

	if (kind < STORM_REPLAY_REQUEST)
		forge(s, kind, &s->w->n[to], &s->w->n[!to]);
	else if (!replay(s, kind))
		return;
	s->arrived[kind]++;
}

/* Time */

void storm_turn(struct storm *s)
{
	struct engine *engine = s->w->engines[0];
	uint64_t next, now;

	while (engine_step(engine))
		;
	next = timers_next(&engine->timers);
	now = engine_now(engine);
	if (next > s->next_at)
		next = s->next_at;
	if (next > now)
		engine_clock_advance(engine, next - now);
	now = engine_now(engine);
	if (s->capture && now >= s->slice_at) {
		for (unsigned int k = STORM_REPLAY_REQUEST; k < STORM_KINDS; k++)
			if (s->pools[k])
				s->pools[k]->known = s->pools[k]->n;
		s->slice_at = now + SLICE_NS;
	}
	if (now < s->next_at)
		return;
	for (int to = 0; s->nkinds && to < 2; to++)
		arrive_one(s, to);
	s->next_at = now + 1 + draw(s) % (2 * s->mean_ns);
}

struct storm *storm_create(struct world *w, uint32_t kinds, unsigned int pps, unsigned int seed)
{
	struct storm *s = calloc(1, sizeof(*s));
	uint64_t now = engine_now(w->engines[0]);

	assert_non_null(s);
	s->w = w;
	s->mean_ns = 1000000000 / pps;
	s->random = seed * 0x5851f42d4c957f2dull;
	s->next_at = now + s->mean_ns;
	s->slice_at = now + SLICE_NS;
	for (unsigned int k = 0; k < STORM_KINDS; k++) {
		if (!(kinds >> k & 1))
			continue;
		s->kinds[s->nkinds++] = k;
		if (k < STORM_REPLAY_REQUEST)
			continue;
		s->pools[k] = malloc(sizeof(*s->pools[k]));
		assert_non_null(s->pools[k]);
		s->pools[k]->n = 0;
		s->pools[k]->known = 0;
		if (!s->capture)
			open_capture(s);
	}
	return s;
}

void storm_use_xrc(struct storm *s, uint32_t srqn)
{
	s->transport = TRANSPORT_XRC;
	s->srqn = srqn;
}

void storm_destroy(struct storm *s)
{
	if (s->capture)
		close_capture(s);
	for (unsigned int k = 0; k < STORM_KINDS; k++)
		free(s->pools[k]);
	free(s);
}

const uint64_t *storm_arrived(const struct storm *s)
{
	return s->arrived;
}
