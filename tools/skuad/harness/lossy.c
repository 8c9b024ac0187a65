// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "harness/lossy.h"

#include <stdio.h>

#include "core/device.h"
#include "ctl/control.h"
#include "link/impair.h"

#define DEPTH	16
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

void next_event(struct world *w)
{
	struct engine *engine = w->engines[0];
	uint64_t next;

	while (engine_step(engine))
		;
	next = timers_next(&engine->timers);
	if (next != TIMER_NEVER && next > engine_now(engine))
		engine_clock_advance(engine, next - engine_now(engine));
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

static void connect_mtu(struct world *w, struct node *n, struct node *peer, uint8_t path_mtu)
{
	struct skua_cmd port = port_cmd(SKUA_PORT_SET_MTU, 0);
	struct skua_cmd rtr = rtr_cmd(n->qpn, peer, peer->qpn);

	port.set_port.mtu = htole32(4200);
	must(w, n, port);
	must(w, n, state_cmd(n->qpn, SKUA_QPS_RESET));
	must(w, n, init_cmd(n->qpn));
	rtr.modify_qp.attr.path_mtu = path_mtu;
	must(w, n, rtr);
	must(w, n, rts_cmd(n->qpn));
}

void use_path_mtu(struct world *w, uint8_t path_mtu)
{
	connect_mtu(w, &w->n[0], &w->n[1], path_mtu);
	connect_mtu(w, &w->n[1], &w->n[0], path_mtu);
}

static double writes(struct world *w, uint64_t count)
{
	struct node *a = &w->n[0], *b = &w->n[1];
	uint64_t start = engine_now(w->engines[0]), posted = 0, done = 0;
	struct skua_cqe *cqe;

	for (;;) {
		for (; posted < count && posted - done < DEPTH; posted++)
			post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, GOODPUT_SIZE,
			     b->buf + posted % DEPTH * GOODPUT_SIZE, b->key, 0);
		settle(w);
		for (; (cqe = poll_cq(a)); done++)
			assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
		if (done == count)
			break;
		if (posted == count || posted - done == DEPTH)
			next_event(w);
	}
	return (double)(count * GOODPUT_SIZE) * 1e9 / (double)(engine_now(w->engines[0]) - start);
}

double goodput(uint64_t total, uint8_t path_mtu, const char *loss, unsigned int seed,
	       bool go_back_n)
{
	struct world *w = world_create(false);
	char drop[32], seeds[2][32];
	double rate;

	use_path_mtu(w, path_mtu);
	w->n[1].dev->inject.go_back_n = go_back_n;
	snprintf(drop, sizeof(drop), "drop=%s%%,dir=out", loss);
	for (unsigned int i = 0; i < 2; i++) {
		snprintf(seeds[i], sizeof(seeds[i]), "seed=%u", 2 * seed + i);
		IMPAIR(&w->n[i], drop, "rate=5G,dir=out", "delay=5us,dir=out", seeds[i]);
	}
	rate = writes(w, total / GOODPUT_SIZE);
	world_destroy(w);
	return rate;
}
