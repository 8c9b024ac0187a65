// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "harness/lossy.h"

#include <stdio.h>

#include "core/device.h"
#include "link/impair.h"
#include "nic/control.h"

#define LOAD_DEPTH	4

struct rules {
	struct node *n;
	struct impair_config config;
};

static void set_rules(void *arg)
{
	struct rules *r = arg;

	assert_true(skua_dev_set_impair(r->n->dev, &r->config));
}

void impair(struct node *n, const char *const *rules)
{
	struct rules r = { .n = n };
	char err[100];

	for (; *rules; rules++)
		if (!impair_parse(&r.config, *rules, err, sizeof(err)))
			fail_msg("%s", err);
	on_engine(n, set_rules, &r);
}

void both_uc(struct world *w)
{
	const uint32_t rtr_mask = SKUA_QP_ATTR_STATE | SKUA_QP_ATTR_AV | SKUA_QP_ATTR_PATH_MTU |
				  SKUA_QP_ATTR_DEST_QPN | SKUA_QP_ATTR_RQ_PSN;

	for (int i = 0; i < 2; i++) {
		struct node *n = &w->n[i];
		struct skua_cmd create;

		new_queues(n);
		create = create_qp_cmd(n);
		create.create_qp.type = SKUA_QPT_UC;
		n->qpn = must(w, n, create);
	}
	for (int i = 0; i < 2; i++) {
		struct node *n = &w->n[i];
		struct skua_cmd rtr = rtr_cmd(n->qpn, &w->n[!i], w->n[!i].qpn);
		struct skua_cmd rts = rts_cmd(n->qpn);

		rtr.modify_qp.mask = htole32(rtr_mask);
		rts.modify_qp.mask = htole32(SKUA_QP_ATTR_STATE | SKUA_QP_ATTR_SQ_PSN);
		must(w, n, init_cmd(n->qpn));
		must(w, n, rtr);
		must(w, n, rts);
	}
}

struct skua_cqe *await_success(struct world *w, struct node *n)
{
	struct skua_cqe *cqe;

	settle(w);
	while (!(cqe = poll_cq(n)))
		next_event(w);
	assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
	return cqe;
}

void next_event(struct world *w)
{
	struct engine *engine = w->engines[0];
	uint64_t next;

	while (engine_step(engine))
		;
	next = timers_next(&engine->timers);
	if (next != TIMER_NEVER && next > engine_now(engine))
		engine_clock_advance(engine, next - engine_now(engine));
	while (engine_step(engine))
		;
}

static void connect(struct world *w, struct node *n, struct node *peer, const struct load *l)
{
	struct skua_cmd rts = rts_cmd(n->qpn);

	must(w, n, state_cmd(n->qpn, SKUA_QPS_RESET));
	must(w, n, init_cmd(n->qpn));
	must(w, n, rtr_cmd(n->qpn, peer, peer->qpn));
	rts.modify_qp.attr.timeout = l->timeout;
	rts.modify_qp.attr.retry_cnt = l->retry_cnt;
	must(w, n, rts);
}

void load_create(struct world *w, struct load *l)
{
	struct node *a = &w->n[0], *b = &w->n[1];

	if (!l->turn)
		l->turn = next_event;
	if (!l->timeout) {
		l->timeout = 14;
		l->retry_cnt = 7;
	}
	for (unsigned int i = 0; i < l->qps; i++) {
		if (i) {
			new_queues(a);
			new_queues(b);
			a->qpn = must(w, a, create_qp_cmd(a));
			b->qpn = must(w, b, create_qp_cmd(b));
		}
		connect(w, a, b, l);
		connect(w, b, a, l);
		l->q[i] = use_queues(a, (struct queues){ 0 });
		use_queues(a, l->q[i]);
	}
}

static void keep_busy(struct world *w, struct load *l, unsigned int i)
{
	struct node *a = &w->n[0], *b = &w->n[1];
	struct queues other = use_queues(a, l->q[i]);

	for (; l->posted[i] - l->done[i] < LOAD_DEPTH; l->posted[i]++)
		post(a, l->opcode, SKUA_WQE_SIGNALED, a->buf, l->len, b->buf, b->key, 0);
	l->q[i] = use_queues(a, other);
}

void load_run(struct world *w, struct load *l, unsigned int active, uint64_t ns)
{
	uint64_t end = engine_now(w->engines[0]) + ns;
	struct skua_cqe *cqe;

	while (engine_now(w->engines[0]) < end) {
		for (unsigned int i = 0; i < active; i++)
			keep_busy(w, l, i);
		l->turn(w);
		while ((cqe = poll_cq(&w->n[0]))) {
			unsigned int i = 0;

			assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
			while (l->q[i].qpn != le32toh(cqe->qpn))
				i++;
			l->done[i]++;
		}
	}
}

double load_fairness(const struct load *l, const uint64_t *before)
{
	double sum = 0, squares = 0;

	for (unsigned int i = 0; i < l->qps; i++) {
		double done = (double)(l->done[i] - before[i]);

		sum += done;
		squares += done * done;
	}
	return sum * sum / (l->qps * squares);
}

static void connect_mtu(struct world *w, struct node *n, struct node *peer, uint8_t path_mtu,
			uint16_t max_rd)
{
	struct skua_cmd port = port_cmd(SKUA_PORT_SET_MTU, 0);
	struct skua_cmd rtr = rtr_cmd(n->qpn, peer, peer->qpn), rts = rts_cmd(n->qpn);

	port.set_port.mtu = htole32(4200);
	must(w, n, port);
	must(w, n, state_cmd(n->qpn, SKUA_QPS_RESET));
	must(w, n, init_cmd(n->qpn));
	rtr.modify_qp.attr.path_mtu = path_mtu;
	if (max_rd) {
		rtr.modify_qp.attr.max_dest_rd_atomic = htole16(max_rd);
		rts.modify_qp.attr.max_rd_atomic = htole16(max_rd);
	}
	must(w, n, rtr);
	must(w, n, rts);
}

void use_path_mtu(struct world *w, uint8_t path_mtu)
{
	connect_mtu(w, &w->n[0], &w->n[1], path_mtu, 0);
	connect_mtu(w, &w->n[1], &w->n[0], path_mtu, 0);
}

/* Streams */

struct node *stream_sender(const struct stream *s)
{
	return &s->w->n[s->opcode == SKUA_WQE_READ];
}

struct node *stream_receiver(const struct stream *s)
{
	return &s->w->n[s->opcode != SKUA_WQE_READ];
}

void stream_create(struct stream *s)
{
	s->w = world_create(false);
	assert_in_range(s->depth, 1, STREAM_DEPTH);
	assert_true(s->depth * (uint64_t)s->len <= BUF_SIZE);
	for (int i = 0; i < 2; i++)
		connect_mtu(s->w, &s->w->n[i], &s->w->n[!i], s->path_mtu, (uint16_t)s->depth);
	stream_receiver(s)->dev->inject.go_back_n = s->go_back_n;
}

void stream_destroy(struct stream *s)
{
	world_destroy(s->w);
}

static void stream_post(struct stream *s, uint64_t count)
{
	struct node *a = &s->w->n[0], *b = &s->w->n[1];

	/* A receive for each message that may be outstanding: no RNR NAK. */
	for (; s->opcode == SKUA_WQE_SEND && s->receives < s->received + s->depth; s->receives++)
		post_recv(b, b->buf + s->receives % s->depth * s->len, s->len);
	for (; s->posted < count && s->posted - s->done < s->depth; s->posted++) {
		uint64_t at_slot = s->posted % s->depth * s->len;

		/* A responder must have posted the receive before the request comes. */
		if (s->opcode == SKUA_WQE_SEND && s->posted == s->receives)
			break;
		post(a, s->opcode, SKUA_WQE_SIGNALED, a->buf + at_slot, s->len, b->buf + at_slot, b->key, 0);
	}
}

static uint64_t stream_poll(struct stream *s)
{
	struct skua_cqe *cqe;
	uint64_t any = 0;

	for (; (cqe = poll_cq(&s->w->n[0])); any++, s->done++)
		s->failed |= cqe->status != SKUA_CQE_SUCCESS;
	for (; (cqe = poll_cq(&s->w->n[1])); any++, s->received++)
		s->failed |= cqe->status != SKUA_CQE_SUCCESS;
	return any;
}

void stream_step(struct stream *s, uint64_t count)
{
	struct engine *engine = s->w->engines[0];
	uint64_t now = engine_now(engine), any;

	stream_post(s, count);
	settle(s->w);
	any = stream_poll(s);
	if (any)
		return;
	next_event(s->w);
	any = stream_poll(s);
	/* Timers that have no deadline: nothing will ever move. */
	s->idle = any || engine_now(engine) != now ? 0 : s->idle + 1;
	s->failed |= s->idle > 10;
}

/* Goodput */

#define WARM_UP	64		/* messages */

double goodput(const struct goodput *g)
{
	struct stream s = { .opcode = g->opcode, .path_mtu = g->path_mtu, .go_back_n = g->go_back_n,
			    .len = g->len ? g->len : GOODPUT_SIZE };
	uint64_t count = g->total / s.len, start, took;
	char drop[32], seeds[2][32];

	s.depth = (1 << 20) / s.len < STREAM_DEPTH ? (1 << 20) / s.len : STREAM_DEPTH;
	stream_create(&s);
	snprintf(drop, sizeof(drop), "drop=%s%%,dir=out", g->loss);
	for (unsigned int i = 0; i < 2; i++) {
		snprintf(seeds[i], sizeof(seeds[i]), "seed=%u", 2 * g->seed + i);
		/* The rate comes first: a packet that is lost has taken its time on the line. */
		IMPAIR(&s.w->n[i], "rate=5G,dir=out", drop, "delay=5us,dir=out", seeds[i]);
	}
	/* In the middle of a stream: its first and last losses cost more, and are few. */
	while (s.done < WARM_UP && !s.failed)
		stream_step(&s, UINT64_MAX);
	start = engine_now(s.w->engines[0]);
	for (uint64_t i = 1; s.done < WARM_UP + count && !s.failed; i++) {
		stream_step(&s, UINT64_MAX);
		if (g->pause && i % g->pause == 0)
			engine_clock_advance(s.w->engines[0], PAUSE_NS);
	}
	took = engine_now(s.w->engines[0]) - start;
	stream_destroy(&s);
	return s.failed ? 0 : (double)(count * s.len) * 1e9 / (double)took;
}

/* The line of a long stream. All of its rules are the sender's, so that those of the receiver may change. */
static void long_stream(struct stream *s, const struct goodput *g)
{
	*s = (struct stream){ .opcode = g->opcode, .path_mtu = g->path_mtu, .go_back_n = g->go_back_n,
			      .len = LONG_SIZE, .depth = STREAM_DEPTH };
	stream_create(s);
	IMPAIR(stream_sender(s), "rate=5G,dir=out", "delay=100us,dir=out", "delay=100us,dir=in");
}

#define WARM_NS		30000000ull	/* until the window has grown */
#define STEADY_NS	10000000ull

/* Messages completed until the clock says @end. */
static uint64_t run_until(struct stream *s, uint64_t end)
{
	uint64_t before = s->done;

	while (engine_now(s->w->engines[0]) < end && !s->failed)
		stream_step(s, UINT64_MAX);
	return s->done - before;
}

#define BURST_WATCHED	(100 * LONG_ROUND_TRIP)
#define BURST_MESSAGES	8192

/*
 * From completion times, ns after the loss: the beginning of the last round trip in which less than 90 percent
 * of @rate came. One message less is allowed, since messages complete as a whole.
 */
static double last_slow_round_trip(const uint64_t *at, size_t n, double rate)
{
	double least = 0.9 * rate * (double)LONG_ROUND_TRIP - 1, slow = 0;

	for (uint64_t t = 0; t + LONG_ROUND_TRIP <= BURST_WATCHED; t += LONG_ROUND_TRIP / 20) {
		size_t came = 0;

		for (size_t i = 0; i < n; i++)
			came += at[i] >= t && at[i] < t + LONG_ROUND_TRIP;
		if ((double)came < least)
			slow = (double)t / (double)LONG_ROUND_TRIP;
	}
	return slow;
}

/* The next @packets that come to the receiver are lost. */
static void lose(struct stream *s, unsigned int packets)
{
	IMPAIR(stream_receiver(s), "drop=100%,dir=in");
	while (skua_dev_get_impair(stream_receiver(s)->dev)->rule[0].acted < packets && !s->failed)
		stream_step(s, UINT64_MAX);
	assert_true(skua_dev_set_impair(stream_receiver(s)->dev, NULL));
}

double burst_recovery(const struct goodput *g, unsigned int packets)
{
	static uint64_t at[BURST_MESSAGES];
	struct stream s;
	struct engine *engine;
	uint64_t start, done;
	double rate, trips;
	size_t n = 0;

	long_stream(&s, g);
	engine = s.w->engines[0];
	/* Selective repeat is agreed on when the first packet is lost (REP-3). */
	run_until(&s, engine_now(engine) + LONG_ROUND_TRIP);
	lose(&s, 1);
	run_until(&s, engine_now(engine) + WARM_NS + g->seed * 7000);
	rate = (double)run_until(&s, engine_now(engine) + STEADY_NS) / (double)STEADY_NS;
	lose(&s, packets);
	start = engine_now(engine);
	while (engine_now(engine) < start + BURST_WATCHED && !s.failed) {
		for (done = s.done, stream_step(&s, UINT64_MAX); done < s.done && n < BURST_MESSAGES; done++)
			at[n++] = engine_now(engine) - start;
	}
	trips = last_slow_round_trip(at, n, rate);
	if (s.failed || trips * LONG_ROUND_TRIP + 2 * LONG_ROUND_TRIP > BURST_WATCHED)
		trips = -1;
	stream_destroy(&s);
	return trips;
}

double reordered_share(const struct goodput *g, const char *percent, double *twice)
{
	double rate[2] = { 0 };

	for (int reordered = 0; reordered < 2; reordered++) {
		uint64_t count = g->total / LONG_SIZE, sent, needed, start;
		char rule[64], seed[32];
		struct stream s;

		long_stream(&s, g);
		if (reordered) {
			snprintf(rule, sizeof(rule), "reorder=%s%%,by=300us,dir=in", percent);
			snprintf(seed, sizeof(seed), "seed=%u", g->seed);
			IMPAIR(stream_receiver(&s), rule, seed);
		}
		sent = STAT(s.w, stream_sender(&s), rdma_tx_packets);
		start = engine_now(s.w->engines[0]);
		while (s.done < count && !s.failed)
			stream_step(&s, count);
		rate[reordered] = s.failed ? 0 : (double)count / (double)(engine_now(s.w->engines[0]) - start);
		sent = STAT(s.w, stream_sender(&s), rdma_tx_packets) - sent;
		needed = count * (LONG_SIZE >> (7 + g->path_mtu));
		*twice = (double)sent / (double)needed - 1;
		stream_destroy(&s);
	}
	return rate[0] > 0 ? rate[1] / rate[0] : 0;
}
