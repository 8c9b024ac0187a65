// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Theory of operation. A frame passes all rules, in their order, until one drops it. What is
 * drawn comes from one generator with a seed, so that the same frames suffer the same. Frames
 * that may not go on yet are held in a list by the time at which they may; a timer of the engine
 * lets them go. Frames keep their order unless a reorder rule takes one out of it: that one
 * waits longer, and no other waits for it.
 *
 * On the way out, a rate is the speed of the line: senders wait while it is busy. On the way in,
 * a queue in front of it holds some milliseconds, and what is more is lost.
 */
#include "link/impair.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/engine_priv.h"
#include "link/uplink.h"
#include "packet/packet.h"

#define HELD_MAX	(64u << 20)	/* bytes */
#define QUEUE_NS	10000000	/* the same, coming in */
#define AGAIN_NS	50000		/* when nobody takes a frame */

struct held {
	TAILQ_ENTRY(held) entry;
	uint64_t at;			/* may go on */
	enum impair_dir dir;
	bool packet;
	uint32_t len;
	uint8_t frame[];
};

struct impair {
	struct engine *engine;
	struct impair_config config;
	impair_emit *emit;
	void *owner;
	uint64_t random;
	struct timer timer;
	TAILQ_HEAD(held_list, held) held;
	uint64_t held_bytes;
	uint64_t last[2];		/* when the latest one that keeps the order may go on */
	unsigned int waiting[2];	/* of those that are held */
};

/* splitmix64 */
static uint64_t draw(struct impair *imp)
{
	uint64_t z = imp->random += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* Until a line of that direction is free again. */
static uint64_t queue_ns(const struct impair *imp, enum impair_dir dir)
{
	uint64_t now = engine_now(imp->engine), longest = 0;

	for (unsigned int r = 0; r < imp->config.n; r++) {
		uint64_t at = imp->config.rule[r].idle_at[dir];

		if (at > now && at - now > longest)
			longest = at - now;
	}
	return longest;
}

static bool hits(struct impair *imp, struct impair_rule *rule, enum impair_dir dir,
		 const struct roce_packet *pkt)
{
	uint64_t now = engine_now(imp->engine);
	bool hit;

	if (!rule->dir[dir])
		return false;
	if ((rule->has_qp || rule->has_opcode) && !pkt)
		return false;
	if (rule->has_qp &&
	    rule->qpn != ((uint32_t)pkt->bth[5] << 16 | (uint32_t)pkt->bth[6] << 8 | pkt->bth[7]))
		return false;
	if (rule->has_opcode && rule->opcode != pkt->bth[0])
		return false;
	if (rule->over && queue_ns(imp, dir) <= rule->over)
		return false;
	rule->matched++;
	if (now < rule->drop_until[dir])
		return true;
	hit = rule->every ? rule->matched % rule->every == 0 : draw(imp) >> 32 < rule->chance;
	if (hit && rule->action == IMPAIR_DROP)
		rule->drop_until[dir] = now + rule->time;
	return hit;
}

/* "Congestion experienced", if sender and receiver have said that they understand it. */
static bool mark_ecn(uint8_t *ip)
{
	uint32_t sum = 0;

	if (ip[0] >> 4 == 6) {
		if (!(ip[1] & 0x30))
			return false;
		ip[1] |= 0x30;
		return true;
	}
	if (!(ip[1] & 3))
		return false;
	ip[1] |= 3;
	memset(ip + 10, 0, 2);
	for (int i = 0; i < 20; i += 2)
		sum += (uint32_t)(ip[i] << 8 | ip[i + 1]);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = ~((sum & 0xffff) + (sum >> 16));
	ip[10] = (uint8_t)(sum >> 8);
	ip[11] = (uint8_t)sum;
	return true;
}

/* When a frame that comes to the line at @at has left it; UINT64_MAX: there is no room for it. */
static uint64_t pass_line(struct impair_rule *rule, enum impair_dir dir, uint64_t at, uint32_t len)
{
	uint64_t start = rule->idle_at[dir] > at ? rule->idle_at[dir] : at;

	if (dir == IMPAIR_IN && start - at > QUEUE_NS)
		return UINT64_MAX;
	rule->idle_at[dir] = start + len * 8000000000ull / rule->rate;
	return rule->idle_at[dir];
}

static void set_timer(struct impair *imp, uint64_t at)
{
	timer_set(&imp->engine->timers, &imp->timer, at);
}

/* Behind all that may go on before it, or with it. */
static void hold(struct impair *imp, enum impair_dir dir, bool packet, const uint8_t *frame,
		 uint32_t len, uint64_t at)
{
	struct held *h, *before;

	h = imp->held_bytes + len > HELD_MAX ? NULL : malloc(sizeof(*h) + len);
	if (!h) {
		imp->config.overflow++;
		return;
	}
	h->at = at;
	h->dir = dir;
	h->packet = packet;
	h->len = len;
	memcpy(h->frame, frame, len);
	TAILQ_FOREACH_REVERSE(before, &imp->held, held_list, entry)
		if (before->at <= at)
			break;
	if (before)
		TAILQ_INSERT_AFTER(&imp->held, before, h, entry);
	else
		TAILQ_INSERT_HEAD(&imp->held, h, entry);
	imp->held_bytes += len;
	imp->waiting[dir]++;
	if (TAILQ_FIRST(&imp->held) == h)
		set_timer(imp, at);
}

static void release(struct impair *imp, struct held *h)
{
	TAILQ_REMOVE(&imp->held, h, entry);
	imp->held_bytes -= h->len;
	imp->waiting[h->dir]--;
	free(h);
}

/* One at a time: timers take turns with others, and what is due at one time may be much. */
static void let_go(struct timer *timer)
{
	struct impair *imp = (struct impair *)(void *)((char *)timer - offsetof(struct impair, timer));
	uint64_t now = engine_now(imp->engine);
	bool full[2] = { false, false }, any = false;
	struct held *h, *next;

	/* What comes in may answer at once, and so add to the list: behind this one. */
	for (h = TAILQ_FIRST(&imp->held); h && h->at <= now && !any; h = next) {
		if (!full[h->dir])
			any = imp->emit(imp->owner, h->dir, h->packet, h->frame, h->len);
		full[h->dir] |= !any;
		next = TAILQ_NEXT(h, entry);
		if (any)
			release(imp, h);
	}
	h = TAILQ_FIRST(&imp->held);
	if (h)
		set_timer(imp, any || h->at > now ? h->at : now + AGAIN_NS);
}

/* A frame that has passed the rules may go on at @at. */
static void pass(struct impair *imp, enum impair_dir dir, bool packet, uint8_t *frame,
		 uint32_t len, uint64_t at)
{
	if (at > engine_now(imp->engine) || imp->waiting[dir] ||
	    !imp->emit(imp->owner, dir, packet, frame, len))
		hold(imp, dir, packet, frame, len, at);
}

void impair_frame(struct impair *imp, enum impair_dir dir, bool packet, const uint8_t *from,
		  uint32_t len)
{
	uint64_t at = engine_now(imp->engine), late = 0;
	uint8_t frame[UPLINK_FRAME_MAX];
	unsigned int copies = 1;
	struct roce_packet pkt;
	bool roce;

	if (len > sizeof(frame)) {
		imp->config.overflow++;
		return;
	}
	memcpy(frame, from, len);
	roce = roce_packet_open(&pkt, frame, len) && pkt.bth;
	for (unsigned int r = 0; r < imp->config.n; r++) {
		struct impair_rule *rule = &imp->config.rule[r];
		uint64_t bit;

		if (!hits(imp, rule, dir, roce ? &pkt : NULL))
			continue;
		rule->acted++;
		switch (rule->action) {
		case IMPAIR_DROP:
			return;
		case IMPAIR_DUPLICATE:
			copies++;
			break;
		case IMPAIR_CORRUPT:
			bit = 96 + draw(imp) % (8 * len - 96);
			frame[bit / 8] ^= (uint8_t)(1 << bit % 8);
			break;
		case IMPAIR_ECN:
			if (!roce || !mark_ecn(frame + (pkt.ip - frame)))
				rule->acted--;
			break;
		case IMPAIR_REORDER:
			late += rule->time;
			break;
		case IMPAIR_DELAY:
			at += rule->time;
			if (rule->jitter)
				at += draw(imp) % (2 * rule->jitter + 1);
			at -= rule->jitter < rule->time ? rule->jitter : rule->time;
			break;
		case IMPAIR_RATE:
			at = pass_line(rule, dir, at, len);
			if (at == UINT64_MAX) {
				imp->config.overflow++;
				return;
			}
			break;
		}
	}
	if (late) {
		at += late;
	} else {
		if (at < imp->last[dir])
			at = imp->last[dir];
		imp->last[dir] = at;
	}
	while (copies--) {
		if (late)
			hold(imp, dir, packet, frame, len, at);
		else
			pass(imp, dir, packet, frame, len, at);
	}
}

bool impair_has(const struct impair *imp, enum impair_dir dir)
{
	for (unsigned int r = 0; r < imp->config.n; r++)
		if (imp->config.rule[r].dir[dir])
			return true;
	return false;
}

bool impair_busy(const struct impair *imp)
{
	uint64_t now = engine_now(imp->engine);

	for (unsigned int r = 0; r < imp->config.n; r++)
		if (imp->config.rule[r].idle_at[IMPAIR_OUT] > now + IMPAIR_LINE_NS)
			return true;
	return imp->held_bytes > HELD_MAX / 2;
}

const struct impair_config *impair_config(const struct impair *imp)
{
	return &imp->config;
}

struct impair *impair_create(struct engine *engine, const struct impair_config *config,
			     impair_emit *emit, void *owner)
{
	struct impair *imp = calloc(1, sizeof(*imp));

	if (!imp)
		return NULL;
	imp->engine = engine;
	imp->config = *config;
	imp->emit = emit;
	imp->owner = owner;
	imp->random = config->seed;
	imp->timer.fire = let_go;
	TAILQ_INIT(&imp->held);
	return imp;
}

void impair_destroy(struct impair *imp)
{
	struct held *h;

	while ((h = TAILQ_FIRST(&imp->held))) {
		imp->emit(imp->owner, h->dir, h->packet, h->frame, h->len);
		release(imp, h);
	}
	/* A frame that came in may have been answered at once, and the answer sets the timer. */
	timer_cancel(&imp->engine->timers, &imp->timer);
	free(imp);
}
