// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Theory of operation. A frame passes all rules, in their order, until one drops it. What is
 * drawn comes from one generator with a seed, so that the same frames suffer the same. Frames
 * that may not go on yet are held in lanes; a timer wakes the engine when the next one may. Frames keep their
 * order unless a reorder rule takes one out of it: that one waits longer, and no other waits for it.
 *
 * A device sends up to a turn's worth in each round of the engine, so the lanes let go of as much. With less they would
 * grow under load, and a delay would be longer than its rule says.
 *
 * A lane is a list in which frames only ever go to the end, and leave it in that order. However many a guest has
 * brought here, each takes the same time. One lane is for those that keep their order, and one for each reorder rule:
 * those that it holds back keep their order among themselves. When the rules change, all that are held go into the
 * lane of those that may go on at once.
 *
 * On the way out, a rate is the speed of the line: senders wait while it is busy. On the way in,
 * a queue in front of it holds some milliseconds, and what is more is lost; on the way out, that is so for what does
 * not wait.
 */
#include "link/impair.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/engine_priv.h"
#include "link/uplink.h"
#include "packet/packet.h"

#define HELD_MAX	(64u << 20)	/* bytes */
#define QUEUE_NS	10000000	/* of a line */
#define AGAIN_NS	50000		/* when nobody takes a frame */
#define REFUSALS_MAX	(QUEUE_NS / AGAIN_NS)

struct held {
	TAILQ_ENTRY(held) entry;
	uint64_t at;			/* may go on */
	bool packet;
	uint32_t len;
	uint8_t frame[];
};

struct lane {
	TAILQ_HEAD(held_list, held) held;
	uint64_t last;			/* when the latest that came here may go on */
};

enum {
	LANE_FREE,			/* the rules have changed: at once */
	LANE_ORDER,
	LANE_LATE,			/* of the first rule, if that is a reorder rule */
	NUM_LANES = LANE_LATE + IMPAIR_RULES,
};

struct impair {
	struct engine *engine;
	struct impair_config config;
	impair_emit *emit;
	void *owner;
	uint64_t random;
	struct timer timer;
	uint64_t held_bytes;
	struct way {
		struct lane lane[NUM_LANES];
		unsigned int waiting;	/* in all lanes */
		uint64_t again;		/* nobody took a frame: not before */
		unsigned int refusals;	/* in a row */
	} way[2];			/* enum impair_dir */
	enum impair_dir latest;		/* which way the latest that was held went */
};

/* splitmix64 */
static uint64_t draw(struct impair *imp)
{
	uint64_t z = imp->random += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* How long a frame that comes now waits for a line of that direction. */
static uint64_t queue_ns(const struct impair *imp, enum impair_dir dir)
{
	uint64_t now = engine_now(imp->engine), longest = 0;

	for (unsigned int r = 0; r < imp->config.n; r++) {
		uint64_t until = imp->config.rule[r].queued_until[dir];

		if (until > now && until - now > longest)
			longest = until - now;
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

static uint64_t line_ns(const struct impair_rule *rule, uint32_t len)
{
	return len * 8000000000ull / rule->rate;
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/*
 * A frame comes to the line at *@at. False: there is no room for it. Else *@at is when it has left the line.
 *
 * Earlier rules may delay frames on their way to the line. The line is idle until they arrive, and later frames arrive
 * as late. So the room is that of a queue that frames enter at *@undelayed: as soon as they come, or as soon as an
 * earlier line with such a queue has sent them.
 */
static bool pass_line(struct impair_rule *rule, enum impair_dir dir, uint64_t *undelayed, uint64_t *at, uint32_t len)
{
	uint64_t queued_until = later(rule->queued_until[dir], *undelayed);
	/* Short frames are not lost because a long one takes longer than that on a slow line. */
	uint64_t most = QUEUE_NS + (dir == IMPAIR_OUT ? line_ns(rule, UPLINK_FRAME_MAX) : 0);

	if (queued_until - *undelayed > most)
		return false;
	rule->queued_until[dir] = queued_until + line_ns(rule, len);
	rule->idle_at[dir] = later(rule->idle_at[dir], *at) + line_ns(rule, len);
	*undelayed = rule->queued_until[dir];
	*at = rule->idle_at[dir];
	return true;
}

/* The lane whose first frame goes on before those of the others; NULL: no frame is held. */
static struct lane *next_lane(struct way *way)
{
	struct lane *next = NULL;

	if (!TAILQ_EMPTY(&way->lane[LANE_FREE].held))
		return &way->lane[LANE_FREE];
	for (unsigned int i = LANE_ORDER; way->waiting && i < NUM_LANES; i++) {
		struct lane *lane = &way->lane[i];

		if (!TAILQ_EMPTY(&lane->held) &&
		    (!next || TAILQ_FIRST(&lane->held)->at < TAILQ_FIRST(&next->held)->at))
			next = lane;
	}
	return next;
}

/* When the next frame that goes this way is to be tried. */
static uint64_t due(struct way *way)
{
	const struct lane *lane = next_lane(way);
	uint64_t at;

	if (!lane)
		return TIMER_NEVER;
	at = lane == &way->lane[LANE_FREE] ? 0 : TAILQ_FIRST(&lane->held)->at;
	return at > way->again ? at : way->again;
}

static void set_timer(struct impair *imp)
{
	uint64_t out = due(&imp->way[IMPAIR_OUT]), in = due(&imp->way[IMPAIR_IN]);

	timer_set(&imp->engine->timers, &imp->timer, out < in ? out : in);
}

/* Behind all that are in this lane. */
static void hold(struct impair *imp, struct way *way, struct lane *lane, bool packet, const uint8_t *frame,
		 uint32_t len, uint64_t at)
{
	struct held *h;

	h = imp->held_bytes + len > HELD_MAX ? NULL : malloc(sizeof(*h) + len);
	if (!h) {
		imp->config.overflow++;
		return;
	}
	h->at = at;
	h->packet = packet;
	h->len = len;
	memcpy(h->frame, frame, len);
	TAILQ_INSERT_TAIL(&lane->held, h, entry);
	imp->held_bytes += len;
	way->waiting++;
	if (TAILQ_FIRST(&lane->held) == h)
		set_timer(imp);
}

static void release(struct impair *imp, struct way *way, struct lane *lane, struct held *h)
{
	TAILQ_REMOVE(&lane->held, h, entry);
	imp->held_bytes -= h->len;
	way->waiting--;
	free(h);
}

/* The frame that is due, of the direction that did not have its turn last if both have one. */
static void let_one_go(struct impair *imp, uint64_t now)
{
	enum impair_dir dir = imp->latest == IMPAIR_IN ? IMPAIR_OUT : IMPAIR_IN;
	struct lane *lane;
	struct way *way;
	struct held *h;

	if (due(&imp->way[dir]) > now)
		dir = imp->latest;
	imp->latest = dir;
	way = &imp->way[dir];
	lane = next_lane(way);
	h = TAILQ_FIRST(&lane->held);
	engine_charge_copy(imp->engine, h->len);
	/* What comes in may answer at once, and so add to the lanes: behind this one. */
	if (imp->emit(imp->owner, dir, h->packet, h->frame, h->len)) {
		way->refusals = 0;
		release(imp, way, lane, h);
	} else if (++way->refusals > REFUSALS_MAX && lane == &way->lane[LANE_FREE]) {
		/* The port is busy as long as there is one, and no rule says so any more. */
		release(imp, way, lane, h);
	} else {
		way->again = now + AGAIN_NS;
	}
}

bool impair_run(struct impair *imp)
{
	uint64_t now = engine_now(imp->engine);
	bool any = false;

	imp->engine->turn = TURN_COST;
	while (imp->engine->turn > 0 && (due(&imp->way[IMPAIR_OUT]) <= now || due(&imp->way[IMPAIR_IN]) <= now)) {
		let_one_go(imp, now);
		any = true;
	}
	if (any && (imp->way[IMPAIR_OUT].waiting || imp->way[IMPAIR_IN].waiting))
		set_timer(imp);
	return any;
}

/* The engine is awake now, and runs the ports next. */
static void wake(struct timer *timer)
{
	(void)timer;
}

/* A frame that has passed the rules may go on at @at. */
static void pass(struct impair *imp, enum impair_dir dir, bool packet, uint8_t *frame,
		 uint32_t len, uint64_t at)
{
	struct way *way = &imp->way[dir];

	if (at > engine_now(imp->engine) || way->waiting || !imp->emit(imp->owner, dir, packet, frame, len))
		hold(imp, way, &way->lane[LANE_ORDER], packet, frame, len, at);
}

void impair_frame(struct impair *imp, enum impair_dir dir, bool packet, const uint8_t *from,
		  uint32_t len)
{
	uint64_t at = engine_now(imp->engine), undelayed = at, late = 0, longest = 0;
	uint8_t frame[UPLINK_FRAME_MAX];
	unsigned int copies = 1, l = LANE_ORDER;
	struct roce_packet pkt;
	struct lane *lane;
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
			/* The longest: else others of the lane would wait for it. */
			if (rule->time >= longest) {
				longest = rule->time;
				l = LANE_LATE + r;
			}
			break;
		case IMPAIR_DELAY:
			at += rule->time;
			if (rule->jitter)
				at += draw(imp) % (2 * rule->jitter + 1);
			at -= rule->jitter < rule->time ? rule->jitter : rule->time;
			break;
		case IMPAIR_RATE:
			if (!pass_line(rule, dir, &undelayed, &at, len)) {
				imp->config.overflow++;
				return;
			}
			break;
		}
	}
	lane = &imp->way[dir].lane[l];
	at += late;
	if (at < lane->last)
		at = lane->last;
	lane->last = at;
	while (copies--) {
		if (l == LANE_ORDER)
			pass(imp, dir, packet, frame, len, at);
		else
			hold(imp, &imp->way[dir], lane, packet, frame, len, at);
	}
}

static bool has_rules(const struct impair *imp, enum impair_dir dir)
{
	for (unsigned int r = 0; r < imp->config.n; r++)
		if (imp->config.rule[r].dir[dir])
			return true;
	return false;
}

bool impair_has(const struct impair *imp, enum impair_dir dir)
{
	return imp->way[dir].waiting || has_rules(imp, dir);
}

bool impair_ends(const struct impair *imp)
{
	return imp->way[IMPAIR_OUT].waiting && !has_rules(imp, IMPAIR_OUT);
}

bool impair_busy(const struct impair *imp)
{
	uint64_t now = engine_now(imp->engine);

	for (unsigned int r = 0; r < imp->config.n; r++)
		if (imp->config.rule[r].queued_until[IMPAIR_OUT] > now + IMPAIR_LINE_NS)
			return true;
	return imp->held_bytes > HELD_MAX / 2 || impair_ends(imp);
}

const struct impair_config *impair_config(const struct impair *imp)
{
	return &imp->config;
}

void impair_set(struct impair *imp, const struct impair_config *config)
{
	imp->config = *config;
	imp->random = config->seed;
	for (unsigned int dir = 0; dir < 2; dir++) {
		struct lane *lane = imp->way[dir].lane;

		for (unsigned int i = LANE_ORDER; i < NUM_LANES; i++) {
			TAILQ_CONCAT(&lane[LANE_FREE].held, &lane[i].held, entry);
			lane[i].last = 0;
		}
		if (imp->way[dir].waiting)
			set_timer(imp);
	}
}

struct impair *impair_create(struct engine *engine, impair_emit *emit, void *owner)
{
	struct impair *imp = calloc(1, sizeof(*imp));

	if (!imp)
		return NULL;
	imp->engine = engine;
	imp->emit = emit;
	imp->owner = owner;
	imp->timer.fire = wake;
	for (unsigned int i = 0; i < 2 * NUM_LANES; i++)
		TAILQ_INIT(&imp->way[i % 2].lane[i / 2].held);
	return imp;
}

void impair_destroy(struct impair *imp)
{
	struct lane *lane;

	for (unsigned int dir = 0; dir < 2; dir++)
		while ((lane = next_lane(&imp->way[dir])))
			release(imp, &imp->way[dir], lane, TAILQ_FIRST(&lane->held));
	timer_cancel(&imp->engine->timers, &imp->timer);
	free(imp);
}
