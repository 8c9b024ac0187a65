// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Pacing (manual: rate limits, and the rate of congestion control).
 *
 * A QP that has a rate sends a train, and then nothing until the train's bytes would have left at that rate. A QP that
 * was late may catch up with what its burst allows. Transports ask before they build a train, and tell what they sent.
 * A QP without any rate has no pacer, and pays for none.
 */
#include <stdlib.h>

#include "core/pacer.h"

#define LATE_NS		1000000		/* an engine that sleeps may wake so late */

static void wake(struct timer *timer)
{
	struct pacer *p = (void *)((char *)timer - offsetof(struct pacer, timer));

	qp_activate(p->qp);
}

static struct pacer *get(struct skua_qp *qp)
{
	struct pacer *p = qp->pacer ? qp->pacer : calloc(1, sizeof(*p));

	if (p && !qp->pacer) {
		p->qp = qp;
		p->timer.fire = wake;
		p->next_send_at = engine_now(qp->dev->engine);
		qp->pacer = p;
	}
	return p;
}

void pacer_free(struct skua_qp *qp)
{
	if (!qp->pacer)
		return;
	timer_cancel(&qp->dev->engine->timers, &qp->pacer->timer);
	free(qp->pacer);
	qp->pacer = NULL;
}

/* What it waits for may never come. */
static void put(struct skua_qp *qp)
{
	if (qp->pacer->limit || qp->pacer->congestion)
		return;
	if (pacer_paused(qp))
		qp_activate(qp);
	pacer_free(qp);
}

bool pacer_limit(struct skua_qp *qp, uint64_t rate, uint32_t burst)
{
	uint64_t now = engine_now(qp->dev->engine);
	struct pacer *p;

	if (!rate && !qp->pacer)
		return true;
	p = get(qp);
	if (!p)
		return false;
	p->limit = rate;
	p->burst = burst;
	/* The time until the next train was reckoned with the old limit. */
	if (p->next_send_at > now)
		p->next_send_at = now;
	if (pacer_paused(qp)) {
		timer_cancel(&qp->dev->engine->timers, &p->timer);
		qp_activate(qp);
	}
	put(qp);
	return true;
}

bool pacer_congestion(struct skua_qp *qp, uint64_t rate)
{
	struct pacer *p;

	if (!rate && !qp->pacer)
		return true;
	p = get(qp);
	if (!p)
		return false;
	p->congestion = rate;
	put(qp);
	return true;
}

/* How far a QP may be behind and catch up. */
static uint64_t catch_up_ns(const struct pacer *p, uint64_t rate)
{
	uint64_t ns;

	if (!p->burst)
		return LATE_NS;
	if (p->burst <= PACER_BURST)
		return 0;
	/* The train that is sent then is part of the burst. */
	ns = (uint64_t)(p->burst - PACER_BURST) * 8 * 1000000 / (rate / 1000);
	return p->congestion && ns > LATE_NS ? LATE_NS : ns;
}

void pacer_sent(struct skua_qp *qp, uint64_t bytes)
{
	uint64_t now = engine_now(qp->dev->engine), rate = pacer_rate(qp);
	struct pacer *p = qp->pacer;
	uint64_t late = catch_up_ns(p, rate);

	if (p->next_send_at + late < now)
		p->next_send_at = now - late;
	p->next_send_at += bytes * 8 * 1000000000 / rate;
}

bool pacer_waits(struct skua_qp *qp)
{
	struct pacer *p = qp->pacer;

	if (p->next_send_at <= engine_now(qp->dev->engine))
		return false;
	timer_set(&qp->dev->engine->timers, &p->timer, p->next_send_at);
	return true;
}
