// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The rate of an RC or UC QP: DCQCN (manual: congestion control).
 *
 * Theory of operation. A receiver of marked packets sends CNPs (cnp.c). The first CNP gives the sender's QP a rate.
 * Each further CNP lowers the rate; time and sent bytes raise it. When the rate has come near the speed of the port,
 * the QP has no rate any more, and pays nothing for all this.
 *
 * In silicon the rate rises each 55 us or so. Here the thread of a peer, or the thread that plays the line, may wake a
 * millisecond late, and CNPs come so far apart. A QP whose rate had recovered by then would never become slow. So time
 * counts in milliseconds, for cuts and for rises. What one queue has marked comes back as many CNPs. If each of them
 * were a cut, the line would be idle when the queue is empty.
 *
 * DCQCN goes back fast to the rate before a cut, and looks for more only then. On a line that is slow for its port, the
 * next cut comes before that is over, so a QP that came late never gets its share. Here a QP looks for more at once, by
 * little at first, and by more each time.
 *
 * Nothing ticks: what time has done to the rate is computed when the rate is asked for, so an idle QP costs nothing
 * either. The pacer (core/pacer.c) makes a QP wait that has something to send.
 */
#include <stdlib.h>

#include "packet/packet.h"
#include "roce/dcqcn.h"

#define CNP_NS		50000		/* between cuts of a rate that never rose */
#define PERIOD_NS	1000000		/* between cuts of a rate that rose; between rises by time */
#define PERIOD_BYTES	10000000	/* between rises by bytes */
#define RISE_BPS	5000000ull	/* each rise adds so much more than the one before */
#define LEAST_BPS	10000000ull
#define LINE_BPS	(PORT_MBPS * 1000000ull)
#define LOG_ALPHA	16		/* alpha is a fraction of 2^16 */
#define LOG_GAIN	4

struct dcqcn {
	uint64_t rate;			/* bits a second */
	uint32_t alpha;
	bool never_rose;		/* the rate is still on its way down from the speed of the port */
	uint64_t lowered_at;
	uint64_t period_at;		/* time has been taken into account up to here */
	uint64_t bytes_since_rise;	/* sent since the last rise by bytes */
	uint32_t rises;			/* since the rate was lowered */
};

static void end(struct skua_qp *qp)
{
	pacer_congestion(qp, 0);
	free(conn_of(qp)->dcqcn);
	conn_of(qp)->dcqcn = NULL;
}

void dcqcn_reset(struct skua_qp *qp)
{
	conn_of(qp)->cnp_due = false;
	if (conn_of(qp)->dcqcn)
		end(qp);
}

static void rise(struct dcqcn *c)
{
	c->rate += ++c->rises * RISE_BPS;
	c->never_rose = false;
}

static bool is_over(const struct dcqcn *c)
{
	return c->rate >= LINE_BPS - LINE_BPS / 64;
}

/* The rate, after all rises by time up to @now; NULL: the QP has none, or has none any more. */
static struct dcqcn *reckon(struct skua_qp *qp, uint64_t now)
{
	struct dcqcn *c = conn_of(qp)->dcqcn;

	if (!c)
		return NULL;
	while (now - c->period_at >= PERIOD_NS && !is_over(c)) {
		c->period_at += PERIOD_NS;
		if (!c->never_rose)
			c->alpha -= c->alpha >> LOG_GAIN;
		rise(c);
	}
	if (is_over(c))
		end(qp);
	else
		pacer_congestion(qp, c->rate);
	return conn_of(qp)->dcqcn;
}

/* The QP gets a rate. Until now it has sent at the speed of the port. */
static struct dcqcn *begin(struct skua_qp *qp, uint64_t now)
{
	struct dcqcn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	if (!pacer_congestion(qp, LINE_BPS)) {
		free(c);
		return NULL;
	}
	c->rate = LINE_BPS;
	c->alpha = 1u << LOG_ALPHA;
	c->never_rose = true;
	c->lowered_at = now - CNP_NS;
	conn_of(qp)->dcqcn = c;
	return c;
}

void dcqcn_cnp(struct skua_qp *qp)
{
	uint64_t now = engine_now(qp->dev->engine);
	struct dcqcn *c = reckon(qp, now);

	QP_STAT_INC(qp, cnp_received);
	if (!c)
		c = begin(qp, now);
	if (!c || now - c->lowered_at < (c->never_rose ? CNP_NS : PERIOD_NS))
		return;
	c->rate -= c->rate * c->alpha >> (LOG_ALPHA + 1);
	if (c->rate < LEAST_BPS)
		c->rate = LEAST_BPS;
	c->alpha += ((1u << LOG_ALPHA) - c->alpha) >> LOG_GAIN;
	c->lowered_at = c->period_at = now;
	c->rises = 0;
	c->bytes_since_rise = 0;
	pacer_congestion(qp, c->rate);
}

void dcqcn_sent(struct skua_qp *qp, const struct train *t)
{
	struct dcqcn *c = conn_of(qp)->dcqcn;
	uint32_t longest;
	uint64_t bytes = roce_train_bytes(t, &longest);

	pacer_sent(qp, bytes);
	if (!c)
		return;
	c->bytes_since_rise += bytes;
	if (c->bytes_since_rise < PERIOD_BYTES)
		return;
	c->bytes_since_rise -= PERIOD_BYTES;
	rise(c);
	pacer_congestion(qp, c->rate);
}

bool dcqcn_waits(struct skua_qp *qp)
{
	reckon(qp, engine_now(qp->dev->engine));
	return qp->pacer && pacer_waits(qp);
}

uint64_t dcqcn_rate(const struct skua_qp *qp)
{
	return conn_of(qp)->dcqcn ? conn_of(qp)->dcqcn->rate : 0;
}
