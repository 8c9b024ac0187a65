// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The clock of a world: work until there is nothing to do but wait, look at everything, and go to
 * the next point of time at which something happens.
 */
#include <fcntl.h>
#include <unistd.h>

#include "core/qp.h"
#include "harness/sim.h"
#include "harness/work.h"
#include "link/capture.h"
#include "link/impair.h"
#include "nic/control.h"

#define STEPS_AT_ONCE	20000		/* without time passing */
#define PACKETS_MOST	1200000ull	/* no world needs a tenth of that */
#define DRAIN_NS	(100 * SIM_MS)	/* longer than any packet is on its way */
#define HANG_NS		(5 * SIM_S)	/* who may hang is not waited for any longer */
#define RULE_LEN	IMPAIR_TEXT

__attribute__((format(printf, 2, 3)))
static void rule(struct impair_config *c, const char *fmt, ...)
{
	char text[RULE_LEN], err[100];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (!impair_parse(c, text, err, sizeof(err)))
		fail_msg("%s", err);
}

static void chance(struct impair_config *c, const char *what, uint32_t ppm, const char *dir)
{
	if (ppm)
		rule(c, "%s=%u.%04u%%,dir=%s", what, ppm / 10000, ppm % 10000, dir);
}

static bool in_burst(const struct sim *s, unsigned int node)
{
	for (unsigned int i = 0; i < s->nevents; i++) {
		const struct sim_event *e = &s->event[i];

		if (e->kind == SIM_EV_BURST && e->begun && !e->over && e->node == node)
			return true;
	}
	return false;
}

/* The rules of the line from a node, at one end. */
static void line_rules(const struct sim *s, unsigned int from, struct impair_config *c, bool in)
{
	const struct sim_line *l = &s->line[from];
	const char *dir = in ? "in" : "out";

	if (in == l->far) {
		if (in_burst(s, from))
			rule(c, "drop=100%%,dir=%s", dir);
		chance(c, "drop", l->loss, dir);
		chance(c, "duplicate", l->duplicate, dir);
		chance(c, "corrupt", l->corrupt, dir);
		chance(c, "ecn", l->ecn, dir);
	}
	if (in == l->far && l->reorder)
		rule(c, "reorder=%u.%04u%%,by=%lluns,dir=%s", l->reorder / 10000, l->reorder % 10000,
		     (unsigned long long)l->reorder_by, dir);
	if (in == l->in && l->rate)
		rule(c, "rate=%lluK,dir=%s", (unsigned long long)l->rate / 1000, dir);
	if (in == l->far && l->delay)
		rule(c, "delay=%lluns,jitter=%lluns,dir=%s", (unsigned long long)l->delay,
		     (unsigned long long)l->jitter, dir);
}

static void set_impairments(struct sim *s, unsigned int node)
{
	struct impair_config c = {
		.seed = (s->seed * 100 + s->off.salt) * 1000 + 2 * s->impaired++ + node,
	};

	line_rules(s, node, &c, false);
	line_rules(s, !node, &c, true);
	assert_true(skua_dev_set_impair(s->w->n[node].dev, &c));
}

/* Where the line from a node loses packets. */
static unsigned int losing_node(const struct sim *s, unsigned int from)
{
	return s->line[from].far ? !from : from;
}

/* The engine stands still. */
static void pause_now(struct sim *s)
{
	engine_clock_advance(s->w->engines[0], s->pause);
	s->pause = 0;
	s->paused = true;
}

static void begin(struct sim *s, struct sim_event *e)
{
	e->begun = true;
	switch (e->kind) {
	case SIM_EV_BURST:
		set_impairments(s, losing_node(s, e->node));
		break;
	case SIM_EV_LINK:
		skua_dev_set_link(s->w->n[e->node].dev, false);
		break;
	case SIM_EV_PAUSE:
		e->over = true;
		s->pause += e->length;
		s->rounds = e->rounds;
		if (!s->rounds)
			pause_now(s);
		break;
	case SIM_EV_KILL:
		e->over = true;
		sim_kill(s, e);
		break;
	}
}

static void end(struct sim *s, struct sim_event *e)
{
	e->over = true;
	if (e->kind == SIM_EV_BURST)
		set_impairments(s, losing_node(s, e->node));
	else
		skua_dev_set_link(s->w->n[e->node].dev, true);
}

static uint64_t next_event_at(const struct sim *s)
{
	uint64_t next = TIMER_NEVER;

	for (unsigned int i = 0; i < s->nevents; i++) {
		const struct sim_event *e = &s->event[i];
		uint64_t at = e->begun ? e->at + e->length : e->at;

		if (!e->over && at < next)
			next = at;
	}
	return next;
}

/* True if anything happened. */
static bool run_events(struct sim *s)
{
	bool any = false;

	for (unsigned int i = 0; i < s->nevents; i++) {
		struct sim_event *e = &s->event[i];

		if (!e->over && e->begun && sim_now(s) >= e->at + e->length) {
			end(s, e);
			any = true;
		} else if (!e->begun && sim_now(s) >= e->at) {
			begin(s, e);
			any = true;
		}
	}
	return any;
}

/* As engine_step(), but without a look at sockets: there are none. After a pause, as engine_run(). */
static bool step(struct sim *s)
{
	struct engine *engine = s->w->engines[0];
	uint64_t before = work_done();
	bool any = false;

	for (unsigned int i = 0; i < 2; i++)
		any |= skua_dev_run(s->w->n[i].dev);
	engine->turn = TURN_COST;
	if (!any || s->paused)
		any |= timers_run(&engine->timers, engine->now, &engine->turn);
	s->paused = false;
	if (any && s->pause && !--s->rounds) {
		pause_now(s);
		s->resumed_at = engine_now(engine);
	}
	if (work_done() - before > work_most)
		sim_fail(s, "long", "a round of %llu", (unsigned long long)(work_done() - before));
	return any;
}

/* Until there is nothing to do at this point of time. */
static void work(struct sim *s)
{
	unsigned int steps = 0;
	bool any;

	do {
		while (step(s)) {
			if (++steps > STEPS_AT_ONCE) {
				sim_fail(s, "storm", "no end of work at one point of time");
				return;
			}
		}
		if (sim_poll(s) && sim_failed(s))
			return;
		any = run_events(s);
		any |= sim_post(s);
		any |= sim_odp_run(s);
	} while (any && !sim_failed(s));
}

/* When a device that has work will find room on its line: it is polled until then, and sets no timer. */
static uint64_t room_at(const struct sim *s)
{
	uint64_t now = engine_now(s->w->engines[0]), next = TIMER_NEVER;

	for (int i = 0; i < 2; i++) {
		const struct skua_dev *dev = s->w->n[i].dev;
		const struct impair_config *config = skua_dev_active(dev) ? skua_dev_get_impair(dev) : NULL;

		for (unsigned int r = 0; config && r < config->n; r++) {
			uint64_t at = config->rule[r].queued_until[IMPAIR_OUT];

			if (at > now + IMPAIR_LINE_NS && at - IMPAIR_LINE_NS < next)
				next = at - IMPAIR_LINE_NS;
		}
	}
	return next;
}

static bool advance(struct sim *s, uint64_t to)
{
	uint64_t next = timers_next(&s->w->engines[0]->timers), now = sim_now(s), room = room_at(s);
	uint64_t odp = sim_odp_next(s);

	if (room < next)
		next = room;
	if (odp < to)
		to = odp;
	if (next != TIMER_NEVER)
		next = next > s->epoch ? next - s->epoch : 0;
	if (to < next)
		next = to;
	if (next == TIMER_NEVER)
		return false;
	if (next > now)
		engine_clock_advance(s->w->engines[0], next - now);
	return true;
}

static uint64_t packets(const struct sim *s)
{
	return s->w->n[0].dev->stats.rdma_tx_packets + s->w->n[1].dev->stats.rdma_tx_packets;
}

static void live(struct sim *s)
{
	for (;;) {
		uint64_t post, event;

		work(s);
		s->done_at = sim_now(s);
		if (sim_failed(s) || sim_all_done(s))
			return;
		sim_check_devices(s);
		sim_check_amplified(s);
		if (packets(s) > PACKETS_MOST)
			sim_fail(s, "flood", "%llu packets, and no end", (unsigned long long)packets(s));
		post = sim_next_post(s);
		event = next_event_at(s);
		if (sim_failed(s) || (sim_now(s) > HANG_NS + 4 * s->outage && sim_only_hangers(s)))
			return;
		if (advance(s, post < event ? post : event))
			continue;
		if (!sim_only_hangers(s))
			sim_fail(s, "hang", "work is outstanding, and nothing will ever happen");
		return;
	}
}

/* What is still on its way arrives. */
static void drain(struct sim *s)
{
	uint64_t until = sim_now(s) + DRAIN_NS;

	while (sim_now(s) < until && !sim_failed(s)) {
		work(s);
		advance(s, until);
	}
	work(s);
}

static void finish(struct sim *s)
{
	sim_check_totals(s);
	for (unsigned int i = 0; i < 2; i++)
		assert_true(skua_dev_set_impair(s->w->n[i].dev, NULL));
	work(s);
	sim_check_memory(s);
	sim_teardown(s);
	/* The timer that looks at QPs in ERR fires once more. */
	engine_clock_advance(s->w->engines[0], DRAIN_NS);
	while (step(s))
		;
	sim_check_left(s);
}

static struct capture *begin_capture(struct sim *s, const char *path)
{
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644) : -1;
	struct capture *cap = fd >= 0 ? capture_open(fd, skua_dev_name(s->w->n[0].dev)) : NULL;

	if (cap)
		skua_dev_set_capture(s->w->n[0].dev, cap);
	return cap;
}

static void end_capture(struct sim *s, struct capture *cap)
{
	uint64_t written, missed;

	if (!cap)
		return;
	skua_dev_set_capture(s->w->n[0].dev, NULL);
	capture_close(cap, &written, &missed);
}

void sim_run(struct sim *s, const char *pcap)
{
	struct capture *cap;

	sim_build(s);
	cap = begin_capture(s, pcap);
	for (unsigned int i = 0; i < 2; i++)
		set_impairments(s, i);
	live(s);
	if (!sim_failed(s))
		drain(s);
	if (!sim_failed(s))
		finish(s);
	end_capture(s, cap);
	world_destroy(s->w);
	s->w = NULL;
}
