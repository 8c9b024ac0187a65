// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Congestion control: marks become CNPs, CNPs slow their QP, it recovers, and those who share a line
 * share it fairly.
 */
#include "core/qp.h"
#include "harness/datagram.h"
#include "harness/lossy.h"
#include "link/impair.h"
#include "nic/control.h"
#include "roce/dcqcn.h"
#include "roce/rc.h"

#define US		1000ull
#define MS		1000000ull
#define LINE		100000000000ull		/* bits a second */
#define LEN		1024u

static struct skua_qp *qp_of(struct node *n)
{
	return numtab_get(&n->dev->qps, n->qpn);
}

static uint64_t rate_of(struct node *n)
{
	return dcqcn_rate(qp_of(n));
}

/* A packet for the node's QP, as from its peer's, with these ECN bits. */
static void marked_packet(struct node *n, const struct node *peer, uint8_t ecn, uint32_t psn, uint32_t len, bool uc)
{
	struct train t = train_from(n, TRAIN_WRITE, FIRST_PSN + psn);
	struct roce_path path = { .vlan = SKUA_VLAN_NONE, .traffic_class = 0x40 | ecn };
	struct seglist payload = { 1, len, { { at(n, n->buf + (1 << 20)), len } } };

	memcpy(path.sgid, peer->gid, 16);
	memcpy(path.dgid, n->gid, 16);
	memcpy(path.smac, peer->mac, 6);
	memcpy(path.dmac, n->mac, 6);
	t.path = &path;
	t.msg_len = len;
	if (len)
		t.payload = &payload;
	if (uc)
		t.transport = TRANSPORT_UC;
	arrive_only(n, peer, t);
}

static void packet(struct world *w, struct node *n, const struct node *peer, uint8_t ecn, uint32_t psn, uint32_t len,
		   bool uc)
{
	marked_packet(n, peer, ecn, psn, len, uc);
	settle(w);
}

static void cnp(struct world *w, struct node *n, const struct node *peer)
{
	struct train t = train_from(n, TRAIN_CNP, 0);

	t.transport = TRANSPORT_CNP;
	arrive(w, n, peer, t);
}

static void connections_can_be_marked(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];

	for (uint8_t ecn = 0; ecn < 4; ecn++) {
		struct skua_cmd rtr = rtr_cmd(a->qpn, &w->n[1], w->n[1].qpn);
		struct skua_qp_attr *attr;

		must(w, a, state_cmd(a->qpn, SKUA_QPS_RESET));
		must(w, a, init_cmd(a->qpn));
		rtr.modify_qp.attr.av.traffic_class = 0x60 | ecn;
		must(w, a, rtr);
		assert_int_equal(qp_of(a)->path.traffic_class, 0x60 | (ecn ? ecn : 2));
		attr = query(w, a, object_cmd(SKUA_CMD_QUERY_QP, a->qpn), sizeof(*attr));
		assert_int_equal(attr->av.traffic_class, 0x60 | ecn);
	}
}

/* Marks of 2 ms, at most one CNP each 50 us; without marks, or without payload, none. */
static void marks_become_few_cnps(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	for (int uc = 0; uc < 2; uc++) {
		uint64_t marked = STAT(w, b, rdma_rx_ecn_marked), sent = STAT(w, b, cnp_sent);
		uint32_t psn = 0;

		if (uc)
			both_uc(w);
		for (uint8_t ecn = 0; ecn < 3; ecn++)
			packet(w, b, a, ecn, psn++, LEN, uc);
		packet(w, b, a, ECN_CE, psn++, 0, uc);
		assert_int_equal(STAT(w, b, rdma_rx_ecn_marked), marked);
		assert_int_equal(STAT(w, b, cnp_sent), sent);
		assert_int_equal(rate_of(a), 0);
		for (int i = 0; i < 200; i++) {
			packet(w, b, a, ECN_CE, psn++, LEN, uc);
			assert_int_equal(STAT(w, b, cnp_sent) - sent, i / 5 + 1);
			pass(w, 10 * US);
		}
		assert_int_equal(STAT(w, b, rdma_rx_ecn_marked) - marked, 200);
		assert_int_equal(STAT(w, a, cnp_received), STAT(w, b, cnp_sent));
		assert_int_not_equal(rate_of(a), 0);
		assert_int_equal(STAT(w, b, rdma_rx_write), (uint64_t)(1 + uc) * 204);
	}
}

/* As packets on a wire, from the mark to the QP that is slowed; and READs, whose peer sends. */
static void marked_packets_slow_who_sends_them(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	IMPAIR(b, "ecn=every:1,dir=in");
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 100000, b->buf, b->key, 0);
	await_success(w, a);
	assert_int_equal(STAT(w, b, rdma_rx_ecn_marked), (100000 + 1023) / 1024);
	assert_int_not_equal(rate_of(a), 0);
	assert_int_equal(rate_of(b), 0);
	IMPAIR(a, "ecn=every:1,dir=in");
	pass(w, MS);
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, 100000, b->buf, b->key, 0);
	await_success(w, a);
	assert_int_not_equal(rate_of(b), 0);
}

/* No CNP is out of a QP that is gone. */
static void an_error_sends_no_cnp(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	/* One that waits for its turn, too. */
	marked_packet(b, a, ECN_CE, 0, LEN, false);
	must(w, b, state_cmd(b->qpn, SKUA_QPS_ERR));
	packet(w, b, a, ECN_CE, 1, LEN, false);
	assert_int_equal(STAT(w, b, cnp_sent), 0);
	assert_int_equal(STAT(w, b, rdma_rx_bad_qp), 1);
}

/* Forged, or to whom none belongs: each is counted under its cause, and slows nobody. */
static void cnps_that_are_dropped(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1], other = *b;
	struct train t = train_from(a, TRAIN_CNP, 0);
	struct queues rc;

	t.transport = TRANSPORT_CNP;
	t.dest_qpn ^= 0x5555;
	arrive(w, a, b, t);
	assert_int_equal(STAT(w, a, rdma_rx_bad_qp), 1);
	other.gid[15] ^= 1;
	cnp(w, a, &other);
	assert_int_equal(STAT(w, a, rdma_rx_bad_addr), 1);
	rc = ud_queues(w, a, SKUA_QPT_UD, SKUA_QPS_RTS);
	cnp(w, a, b);
	assert_int_equal(STAT(w, a, rdma_rx_bad_opcode), 1);
	use_queues(a, rc);
	must(w, a, state_cmd(a->qpn, SKUA_QPS_RESET));
	must(w, a, init_cmd(a->qpn));
	cnp(w, a, b);
	assert_int_equal(STAT(w, a, rdma_rx_bad_qp), 2);
	assert_int_equal(STAT(w, a, cnp_received), 0);
	assert_int_equal(rate_of(a), 0);
	/* Who only responds sends, too: responses. */
	must(w, a, rtr_cmd(a->qpn, b, b->qpn));
	cnp(w, a, b);
	assert_int_equal(STAT(w, a, cnp_received), 1);
	assert_int_not_equal(rate_of(a), 0);
	assert_int_equal(qp_state(w, a, a->qpn), SKUA_QPS_RTR);
}

static void each_cnp_halves_the_rate_at_first(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint64_t rate = LINE;

	for (int i = 0; i < 20; i++) {
		cnp(w, a, b);
		rate -= rate / 2;
		if (rate < 10000000)
			rate = 10000000;
		assert_int_equal(rate_of(a), rate);
		/* Too soon. */
		pass(w, 49 * US);
		cnp(w, a, b);
		assert_int_equal(rate_of(a), rate);
		pass(w, US);
	}
	assert_int_equal(STAT(w, a, cnp_received), 40);
}

/* Time passes, and is reckoned with. */
static void let(struct world *w, struct node *n, uint64_t ns)
{
	pass(w, ns);
	dcqcn_waits(qp_of(n));
}

/* Without CNPs, up to the speed of the port, where there is no rate any more. */
static void the_rate_recovers(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint64_t rate = LINE / 4;

	cnp(w, a, b);
	pass(w, 50 * US);
	cnp(w, a, b);
	/* Each millisecond by more than the one before; no byte was sent. */
	for (uint64_t i = 1; i <= 50; i++) {
		let(w, a, MS);
		rate += i * 5000000;
		assert_int_equal(rate_of(a), rate);
	}
	pass(w, 1000 * MS);
	assert_int_not_equal(rate_of(a), 0);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 8, b->buf, b->key, 0);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	assert_null(conn_of(qp_of(a))->dcqcn);
	cnp(w, a, b);
	assert_int_equal(rate_of(a), LINE / 2);
}

/* Once it has held: however many CNPs come, one of them counts in a millisecond, and for less. */
static void a_queue_lowers_the_rate_once(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint64_t before, low;

	for (int i = 0; i < 3; i++) {
		cnp(w, a, b);
		pass(w, 50 * US);
	}
	let(w, a, 20 * MS);
	for (int again = 0; again < 3; again++) {
		before = rate_of(a);
		cnp(w, a, b);
		low = rate_of(a);
		assert_in_range(low, before * 3 / 4, before * 9 / 10);
		for (int i = 0; i < 19; i++) {
			pass(w, 50 * US);
			cnp(w, a, b);
			cnp(w, a, b);
			assert_int_equal(rate_of(a), low);
		}
		let(w, a, 50 * US);
		assert_int_equal(rate_of(a), low + 5000000);
	}
}

/* CNPs that come seldom, as from threads that wake late, slow it all the same. */
static void slow_feedback_slows_too(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 100; i++) {
		cnp(w, &w->n[0], &w->n[1]);
		pass(w, 2500 * US);
	}
	assert_true(rate_of(&w->n[0]) < LINE / 20);
}

/* Bytes raise it, too, and both together fast. */
static void sent_bytes_raise_the_rate(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint64_t start = engine_now(w->engines[0]), took;

	for (int i = 0; i < 3; i++) {
		cnp(w, a, b);
		pass(w, 50 * US);
	}
	while (conn_of(qp_of(a))->dcqcn) {
		post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 1 << 20, b->buf, b->key, 0);
		await_success(w, a);
	}
	/* By time alone the 86 Gb/s that are missing then would take 185 ms. */
	took = engine_now(w->engines[0]) - start;
	assert_true(took < 150 * MS);
}

/* What goes out in a time is what the rate allows, for each service and for responses. */
static void no_faster_than_the_rate(void **state)
{
	enum { WRITE, READ, UC_WRITE, NUM };
	struct world *w = *state;

	for (int what = 0; what < NUM; what++) {
		struct node *a = &w->n[0], *b = &w->n[1];
		struct node *sender = what == READ ? b : a;
		uint64_t start, bytes, most = 0;
		struct skua_cqe *cqe;

		if (what == UC_WRITE)
			both_uc(w);
		fill(sender, 1 << 20, (uint32_t)what);
		for (int i = 0; i < 30; i++) {
			cnp(w, sender, sender == a ? b : a);
			pass(w, 50 * US);
		}
		cnp(w, sender, sender == a ? b : a);
		assert_int_equal(rate_of(sender), 10000000);
		bytes = STAT(w, sender, rdma_tx_bytes);
		start = engine_now(w->engines[0]);
		post(a, what == READ ? SKUA_WQE_READ : SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 1 << 20,
		     b->buf, b->key, 0);
		settle(w);
		for (int i = 0; !(cqe = poll_cq(a)); i++) {
			uint64_t now = engine_now(w->engines[0]), sent;

			sent = sender->dev->stats.rdma_tx_bytes - bytes;
			/* As the rate was at most, in that time and the millisecond before. */
			if (rate_of(sender) > most)
				most = rate_of(sender);
			assert_true(sent <= (now - start + MS) * most / 8000000000 + 8192);
			next_event(w);
			assert_true(i < 100000);
		}
		assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
		assert_true(engine_now(w->engines[0]) - start > MS);
		assert_memory_equal(at(a, a->buf), at(b, b->buf), 1 << 20);
		must(w, sender, state_cmd(sender->qpn, SKUA_QPS_RESET));
		assert_int_equal(rate_of(sender), 0);
		if (what == WRITE) {
			must(w, b, state_cmd(b->qpn, SKUA_QPS_RESET));
			reconnect(w, a, b);
			reconnect(w, b, a);
		}
	}
}

/* After a rest of 5 ms no more goes at once than a millisecond gives; and headers count, which are most of short
 * messages. */
static void what_goes_at_once(void **state)
{
	(void)state;
	for (int brief = 0; brief < 2; brief++) {
		struct world *w = world_create(false);
		struct node *a = &w->n[0], *b = &w->n[1];
		uint64_t bytes;

		for (int i = 0; i < 31; i++) {
			cnp(w, a, b);
			pass(w, 50 * US);
		}
		assert_in_range(rate_of(a), 10000000, 20000000);
		if (!brief)
			pass(w, 5 * MS);
		bytes = a->dev->stats.rdma_tx_bytes;
		for (int i = 0; i < (brief ? 240 : 1); i++)
			post(a, SKUA_WQE_WRITE, 0, a->buf, brief ? 8 : 1 << 20, b->buf, b->key, 0);
		settle(w);
		bytes = a->dev->stats.rdma_tx_bytes - bytes;
		assert_in_range(bytes, 1, rate_of(a) / 8000 + 4096 + 4 * 90);
		world_destroy(w);
	}
}

/* What is lost waits longer for its rate than the PTO. It is not late, so no probe passes the rate. */
static void lost_packets_wait_for_the_rate(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	const struct sent *sent = &rc_of(qp_of(a))->req.sent;
	unsigned int waits = 0;

	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 8, b->buf, b->key, 0);
	await_success(w, a);
	for (int i = 0; i < 30; i++) {
		cnp(w, a, b);
		pass(w, 50 * US);
	}
	assert_int_equal(rate_of(a), 10000000);
	IMPAIR(a, "drop=100%,dir=out");
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 32 * LEN, b->buf, b->key, 0);
	settle(w);
	assert_true(sent->npkts[SENT_IN_FLIGHT] > 1);
	impair(a, (const char *const[]){ NULL });
	while (!sent_is_empty(sent)) {
		uint32_t lost = sent->npkts[SENT_IN_FLIGHT] ? 0 : sent->npkts[SENT_LOST];

		next_event(w);
		/* A probe brings one packet, and its ACK comes at once. */
		if (lost > 1)
			assert_int_not_equal(sent->npkts[SENT_LOST], lost - 1);
		waits += lost > 1;
	}
	assert_true(waits);
	await_success(w, a);
}

/* A QP that waits for its rate, and is reset, destroyed, or fails. */
static void nothing_is_left_of_a_slow_qp(void **state)
{
	enum { TO_RESET, DESTROYED, TO_ERR, DEVICE_RESET, NUM };
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	for (int end = 0; end < NUM; end++) {
		unsigned int timers = w->engines[0]->timers.n;

		for (int i = 0; i < 20; i++) {
			cnp(w, a, b);
			pass(w, 50 * US);
		}
		post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 1 << 20, b->buf, b->key, 0);
		settle(w);
		assert_true(pacer_paused(qp_of(a)));
		if (end == DESTROYED) {
			must(w, a, object_cmd(SKUA_CMD_DESTROY_QP, a->qpn));
			pass(w, 100 * MS);
			new_queues(a);
			a->qpn = must(w, a, create_qp_cmd(a));
		} else if (end == DEVICE_RESET) {
			skua_dev_reset(a->dev);
			pass(w, 100 * MS);
			return;
		} else {
			must(w, a, state_cmd(a->qpn, end == TO_ERR ? SKUA_QPS_ERR : SKUA_QPS_RESET));
			pass(w, 100 * MS);
		}
		if (end == TO_ERR) {
			expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_WR_FLUSH_ERR);
			must(w, a, state_cmd(a->qpn, SKUA_QPS_RESET));
		}
		expect_none(w, a);
		assert_null(conn_of(qp_of(a))->dcqcn);
		assert_true(w->engines[0]->timers.n <= timers + 1);
		must(w, b, state_cmd(b->qpn, SKUA_QPS_RESET));
		reconnect(w, a, b);
		reconnect(w, b, a);
	}
}

/* As engines with the real clock have it: all that falls due in 50 us is done at once, and now and then
 * nobody gets a core for 2 ms. */
static void late_turn(struct world *w)
{
	uint64_t now = engine_now(w->engines[0]);

	pass(w, now / (7 * MS) != (now + 50 * US) / (7 * MS) ? 2 * MS : 50 * US);
}

/* QPs that send all they can through one line, perhaps the one a while after the other. */
struct contest {
	uint64_t line;			/* bits a second */
	const char *rate, *mark;	/* rules */
	unsigned int qps;
	bool late;
	uint64_t between, warm, ns;
	uint64_t lost;			/* frames */
	double used, even;
};

static void share_a_line(struct contest *c)
{
	struct load l = { .qps = c->qps, .opcode = SKUA_WQE_WRITE, .len = c->late ? 1 << 20 : 65536,
			  .turn = c->late ? late_turn : NULL };
	struct world *w = world_create(false);
	uint64_t before[LOAD_QPS], done = 0;

	if (!c->late)
		IMPAIR(&w->n[0], "rate=10G,dir=out", "delay=2us,dir=out");
	IMPAIR(&w->n[1], c->mark, c->rate, "delay=2us,dir=out");
	load_create(w, &l);
	for (unsigned int i = 1; i < l.qps; i++)
		load_run(w, &l, i, c->between);
	load_run(w, &l, l.qps, c->warm);
	memcpy(before, l.done, sizeof(before));
	load_run(w, &l, l.qps, c->ns);
	for (unsigned int i = 0; i < l.qps; i++)
		done += l.done[i] - before[i];
	c->used = (double)(done * l.len * 8) / ((double)c->line * (double)c->ns / 1e9);
	c->even = load_fairness(&l, before);
	c->lost = skua_dev_get_impair(w->n[1].dev)->overflow;
	print_message("%u QPs, %s %s: %.2f used, fairness %.3f, %llu packets lost\n", c->qps, c->rate, c->mark,
		      c->used, c->even, (unsigned long long)c->lost);
	world_destroy(w);
}

/* Headers take 6%. Who comes late gets his share, too. */
static void senders_share_a_line_fairly(void **state)
{
	static const struct {
		uint64_t line;
		const char *rate, *mark;
	} lines[] = {
		{ 100000000, "rate=100M,dir=in", "ecn=100%,over=500us,dir=in" },
		{ 1000000000, "rate=1G,dir=in", "ecn=100%,over=100us,dir=in" },
		{ 4000000000, "rate=4G,dir=in", "ecn=100%,over=50us,dir=in" },
	};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		for (unsigned int qps = 2; qps <= 8; qps *= 2) {
			for (int late = 0; late < 2; late++) {
				struct contest c = { lines[i].line, lines[i].rate, lines[i].mark, qps,
						     .between = late * 200 * MS, .ns = 500 * MS };

				c.warm = i ? 200 * MS : 500 * MS;
				share_a_line(&c);
				assert_true(c.used > 0.84);
				/* The first window is too much for eight QPs on the slowest. */
				assert_true(c.even > (i ? 0.9 : 0.75));
				assert_true(!i || !c.lost);
			}
		}
	}
}

static void late_engines_use_a_line_well(void **state)
{
	struct contest slow = { 1000000000, "rate=1G,dir=in", "ecn=100%,over=500us,dir=in", 2, .late = true,
				.warm = 60 * MS, .ns = 400 * MS };

	(void)state;
	share_a_line(&slow);
	assert_true(slow.used > 0.6);
	assert_true(slow.even > 0.9);
}

/* CNPs as fast as they can come, in the midst of everything: slow, and nothing else. */
static void forged_cnps_only_slow(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	fill(a, 200000, 3);
	post_recv(b, b->buf + (1 << 20), 100000);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 200000, b->buf, b->key, 0);
	post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 100000, 0, 0, 0);
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf + (1 << 20), 200000, b->buf, b->key, 0);
	cnp(w, a, b);
	cnp(w, b, a);
	for (int ended = 0, i = 0; ended < 3; i++) {
		struct skua_cqe *cqe;

		cnp(w, a, b);
		cnp(w, b, a);
		next_event(w);
		for (; (cqe = poll_cq(a)); ended++)
			assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
		assert_true(i < 100000);
	}
	expect(w, b, SKUA_CQE_RECV, SKUA_CQE_SUCCESS);
	assert_memory_equal(at(a, a->buf), at(b, b->buf), 200000);
	assert_memory_equal(at(a, a->buf), at(b, b->buf + (1 << 20)), 100000);
	assert_memory_equal(at(a, a->buf), at(a, a->buf + (1 << 20)), 200000);
	assert_int_equal(STAT(w, a, ack_timeouts), 0);
	assert_int_equal(qp_state(w, a, a->qpn), SKUA_QPS_RTS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STEPPED(connections_can_be_marked, "CNG-1"),
		STEPPED(marks_become_few_cnps, "CNG-2 CNG-3"),
		STEPPED(marked_packets_slow_who_sends_them, "CNG-2 CNG-3 CNG-6"),
		STEPPED(an_error_sends_no_cnp, "CNG-3"),
		STEPPED(cnps_that_are_dropped, "CNG-5"),
		STEPPED(each_cnp_halves_the_rate_at_first, "CNG-6"),
		STEPPED(the_rate_recovers, "CNG-7 CNG-8"),
		STEPPED(a_queue_lowers_the_rate_once, "CNG-6 CNG-7"),
		STEPPED(slow_feedback_slows_too, "CNG-6 CNG-7"),
		STEPPED(sent_bytes_raise_the_rate, "CNG-7 CNG-8"),
		STEPPED(no_faster_than_the_rate, "CNG-9"),
		{ "CNG-9: what_goes_at_once", what_goes_at_once, NULL, NULL, NULL },
		STEPPED(lost_packets_wait_for_the_rate, "REC-16 CNG-9"),
		STEPPED(nothing_is_left_of_a_slow_qp, "CNG-8"),
		STEPPED(forged_cnps_only_slow, "CNG-10"),
		{ "CNG-6 CNG-7: senders_share_a_line_fairly", senders_share_a_line_fairly, NULL, NULL,
		  NULL },
		{ "CNG-6 CNG-7: late_engines_use_a_line_well", late_engines_use_a_line_well, NULL, NULL, NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
