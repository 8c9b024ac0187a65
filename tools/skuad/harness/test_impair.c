// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Impairments, and what RC makes of them: with a clock that stands until it is moved, each
 * rule alone, and then all together under verified traffic.
 */
#include <stdio.h>

#include "core/device.h"
#include "harness/harness.h"
#include "link/impair.h"
#include "nic/control.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define US		1000ull
#define MS		1000000ull

/* Rules for a node, one a string up to NULL. */
static void impair(struct node *n, const char *const *rules)
{
	struct impair_config config = { 0 };
	char err[100];

	for (; *rules; rules++)
		if (!impair_parse(&config, *rules, err, sizeof(err)))
			fail_msg("%s", err);
	assert_true(skua_dev_set_impair(n->dev, &config));
}

#define IMPAIR(n, ...)	impair(n, (const char *const[]){ __VA_ARGS__, NULL })

static const struct impair_rule *rule(struct node *n, unsigned int i)
{
	return &skua_dev_get_impair(n->dev)->rule[i];
}

static void post_write(struct node *a, struct node *b, uint32_t len)
{
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, len, b->buf, b->key, 0);
}

/* Wait for a CQE as long as it takes, in steps of @step. */
static struct skua_cqe *after(struct world *w, struct node *n, uint64_t step)
{
	struct skua_cqe *cqe = NULL;

	settle(w);
	for (int i = 0; i < 100000 && !(cqe = poll_cq(n)); i++)
		pass(w, step);
	assert_non_null(cqe);
	assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
	return cqe;
}

static void rules_that_are_refused(void **state)
{
	static const char *const bad[] = {
		"", "drop", "drop=", "drop=1", "drop=101%", "drop=-1%", "drop=every:0", "drop=every:",
		"drop=1%,drop=1%", "delay=1", "delay=1h", "jitter=1ms", "by=1ms", "rate=0", "rate=5T",
		"drop=1%,dir=up", "drop=1%,qp=16777216", "drop=1%,opcode=256", "qp=1", "seed=x",
		"drop=1%,by=1ms", "for=1ms", "for=1ms,drop=1%", "drop=1%,for=5", "delay=1ms,for=1ms",
		"drop=1%,over=1ms", "ecn=1%,over=5", "fun=1%", "drop=1%,,dir=in",
		"drop=1%,dir=out,dir=in", "qp=1,drop=1%,qp=2", "drop=1%,opcode=1,opcode=1", "delay=1ms,jitter=1us,jitter=1ms",
		"drop=1%,for=1ms,for=2ms", "reorder=1%,by=1ms,by=2ms", "ecn=1%,over=1us,over=2us",
	};
	struct impair_config config = { 0 };
	char err[100];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (impair_parse(&config, bad[i], err, sizeof(err)))
			fail_msg("taken: '%s'", bad[i]);
	assert_int_equal(config.n, 0);
	for (int i = 0; i < IMPAIR_RULES; i++)
		assert_true(impair_parse(&config, "drop=0.5%,dir=in,qp=0x11,opcode=4", err, sizeof(err)));
	assert_false(impair_parse(&config, "drop=1%", err, sizeof(err)));
	assert_true(config.rule[0].has_qp && config.rule[0].qpn == 17);
	assert_true(config.rule[0].dir[IMPAIR_IN] && !config.rule[0].dir[IMPAIR_OUT]);
	assert_int_equal(config.rule[0].chance, 21474836);
}

static void every_nth_packet_is_dropped_and_sent_again(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	a->dev->inject.go_back_n = b->dev->inject.go_back_n = true;
	IMPAIR(a, "drop=every:13,dir=out");
	fill(a, 100 * 1024, 1);
	post_write(a, b, 100 * 1024);
	after(w, a, MS);
	assert_memory_equal(at(a, a->buf), at(b, b->buf), 100 * 1024);
	assert_true(rule(a, 0)->matched >= 107);
	assert_int_equal(rule(a, 0)->acted, rule(a, 0)->matched / 13);
	assert_int_equal(STAT(w, b, rdma_rx_packets), rule(a, 0)->matched - rule(a, 0)->acted);
	assert_true(STAT(w, a, retransmits) >= 8);
}

/* Every fourth packet begins 5 ms in which all are lost, in its direction; then the count goes on. */
static void an_outage_loses_all_for_a_time(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	IMPAIR(a, "drop=every:4,for=5ms,dir=out");
	for (int i = 0; i < 3; i++) {
		post_write(a, b, 8);
		settle(w);
	}
	assert_int_equal(STAT(w, b, rdma_rx_packets), 3);
	for (int i = 0; i < 10; i++) {
		post_write(a, b, 8);
		settle(w);
	}
	assert_int_equal(rule(a, 0)->acted, rule(a, 0)->matched - 3);
	assert_int_equal(STAT(w, b, rdma_rx_packets), 3);
	pass(w, 4900 * US);
	assert_int_equal(STAT(w, b, rdma_rx_packets), 3);
	pass(w, 200 * US);
	for (int i = 0; i < 13; i++)
		after(w, a, MS);
	assert_true(rule(a, 0)->acted < rule(a, 0)->matched - 3);
}

static void a_rule_is_for_an_opcode_a_qp_or_a_direction(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	char qp[40], other[40];

	snprintf(qp, sizeof(qp), "drop=every:3,qp=%u", b->qpn);
	snprintf(other, sizeof(other), "drop=100%%,qp=%u", b->qpn ^ 1);
	IMPAIR(a, "drop=100%,opcode=0x0c", "drop=100%,opcode=0x0a,dir=in", other, qp,
	       "drop=every:2,opcode=0x11,dir=in");
	for (int i = 0; i < 6; i++) {
		post_write(a, b, 8);
		after(w, a, MS);
	}
	assert_int_equal(rule(a, 0)->matched, 0);
	assert_int_equal(rule(a, 1)->matched, 0);
	assert_int_equal(rule(a, 2)->matched, 0);
	assert_true(rule(a, 3)->matched > 6 && rule(a, 3)->acted == rule(a, 3)->matched / 3);
	assert_true(rule(a, 4)->matched > 6 && rule(a, 4)->acted == rule(a, 4)->matched / 2);
}

static void corrupted_packets_are_seen_and_sent_again(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	IMPAIR(a, "corrupt=every:7", "seed=5");
	fill(a, 200 * 1024, 3);
	post_write(a, b, 200 * 1024);
	after(w, a, MS);
	assert_memory_equal(at(a, a->buf), at(b, b->buf), 200 * 1024);
	assert_true(STAT(w, b, rdma_rx_bad_icrc) > 10);
	/* A bit of the length, of an address or of a masked field is none of the ICRC's. */
	assert_in_range(STAT(w, b, rdma_rx_bad_icrc) + STAT(w, b, rdma_rx_bad_packet),
			rule(a, 0)->acted / 2, rule(a, 0)->acted);
}

static void delay_keeps_the_order_and_rate_makes_it_long(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	int steps = 0;

	IMPAIR(b, "delay=3ms,jitter=1ms,dir=in");
	post_write(a, b, 64 * 1024);
	settle(w);
	pass(w, 1900 * US);
	assert_int_equal(STAT(w, b, rdma_rx_packets), 0);
	pass(w, 2200 * US);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	assert_int_equal(STAT(w, b, out_of_order), 0);

	/* 10 Mbit/s, 20 KiB: some 17 ms. */
	IMPAIR(b, "drop=0%");
	IMPAIR(a, "rate=10M,dir=out");
	post_write(a, b, 20 * 1024);
	settle(w);
	while (!poll_cq(a)) {
		pass(w, MS);
		assert_true(++steps < 100);
	}
	assert_in_range(steps, 16, 40);
}

/* As a switch does: what finds a long queue, and nothing else. 1024 bytes take some 9 us of the line. */
static void ecn_marks_what_waits_for_the_line(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	IMPAIR(b, "ecn=100%,over=100us,dir=in", "rate=1G,dir=in");
	for (int i = 0; i < 5; i++) {
		post_write(a, b, 1024);
		after(w, a, 10 * US);
	}
	assert_int_equal(STAT(w, b, rdma_rx_ecn_marked), 0);
	post_write(a, b, 40 * 1024);
	after(w, a, 10 * US);
	assert_in_range(STAT(w, b, rdma_rx_ecn_marked), 27, 29);
	assert_int_equal(rule(b, 0)->acted, STAT(w, b, rdma_rx_ecn_marked));
}

static void reordered_packets_are_overtaken(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	IMPAIR(a, "reorder=every:5,by=50us,dir=out", "rate=1G");
	fill(a, 60 * 1024, 9);
	post_write(a, b, 60 * 1024);
	after(w, a, 10 * US);
	assert_memory_equal(at(a, a->buf), at(b, b->buf), 60 * 1024);
	assert_true(STAT(w, b, out_of_order) > 0);
	assert_true(rule(a, 0)->acted > 10);
}

static void duplicates_do_no_harm(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	IMPAIR(a, "duplicate=100%");
	IMPAIR(b, "duplicate=100%");
	for (int i = 0; i < 20; i++) {
		post_recv(b, b->buf, 4096);
		post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 3000, 0, 0, 0);
		after(w, a, MS);
		after(w, b, MS);
	}
	settle(w);
	assert_null(poll_cq(a));
	assert_null(poll_cq(b));
	assert_true(STAT(w, b, duplicates) >= 60);
}

static void the_same_seed_gives_the_same_losses(void **state)
{
	uint64_t acted[3];

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct world *w = world_create(false);

		IMPAIR(&w->n[0], "drop=5%", i == 2 ? "seed=2" : "seed=1");
		post_write(&w->n[0], &w->n[1], 1 << 20);
		after(w, &w->n[0], MS);
		acted[i] = rule(&w->n[0], 0)->acted << 32 | rule(&w->n[0], 0)->matched;
		world_destroy(w);
	}
	assert_int_equal(acted[0], acted[1]);
	assert_int_not_equal(acted[0], acted[2]);
}

static void what_was_held_goes_on_when_rules_end(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	IMPAIR(a, "delay=10s");
	post_write(a, b, 8);
	expect_none(w, a);
	assert_true(skua_dev_set_impair(a->dev, NULL));
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	assert_null(skua_dev_get_impair(a->dev));
	/* And a device may go while something is held. */
	IMPAIR(a, "delay=10s");
	IMPAIR(b, "delay=10s");
	post_write(a, b, 8);
	settle(w);
}

/* Messages of all kinds, verified, while everything happens to their packets. */
static void verify(struct world *w, uint64_t step, int rounds)
{
	struct node *a = &w->n[0], *b = &w->n[1];

	for (int i = 0; i < rounds; i++) {
		uint32_t len = 1 + (uint32_t)i * 7919 % 200000;

		fill(a, len, (uint32_t)i);
		memset(at(b, b->buf), 0, len);
		post_write(a, b, len);
		after(w, a, step);
		assert_memory_equal(at(a, a->buf), at(b, b->buf), len);
		memset(at(a, a->buf), 0, len);
		post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, len, b->buf, b->key, 0);
		after(w, a, step);
		assert_memory_equal(at(a, a->buf), at(b, b->buf), len);
		fill(b, len, (uint32_t)i + 1);
		post_recv(a, a->buf, 1 << 20);
		post(b, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, b->buf, len, 0, 0, 0);
		after(w, b, step);
		after(w, a, step);
		assert_memory_equal(at(a, a->buf), at(b, b->buf), len);
	}
}

#define ALL	"drop=0.5%", "duplicate=1%", "corrupt=0.5%", "reorder=1%", "delay=20us,jitter=10us"

static void nothing_is_corrupted_whatever_happens(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	IMPAIR(a, ALL, "seed=1");
	IMPAIR(b, ALL, "seed=2");
	verify(w, 50 * US, 40);
	assert_true(STAT(w, a, retransmits) > 0);
	assert_true(STAT(w, b, rdma_rx_bad_icrc) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_that_are_refused),
		STEPPED(every_nth_packet_is_dropped_and_sent_again, "ROC-10 ROC-13"),
		STEPPED(an_outage_loses_all_for_a_time, "ROC-13"),
		STEPPED(a_rule_is_for_an_opcode_a_qp_or_a_direction, "ROC-13"),
		STEPPED(corrupted_packets_are_seen_and_sent_again, "ROC-5 ROC-13"),
		STEPPED(delay_keeps_the_order_and_rate_makes_it_long, "ROC-13"),
		STEPPED(ecn_marks_what_waits_for_the_line, "CNG-2"),
		STEPPED(reordered_packets_are_overtaken, "ROC-10"),
		STEPPED(duplicates_do_no_harm, "ROC-10"),
		cmocka_unit_test(the_same_seed_gives_the_same_losses),
		STEPPED(what_was_held_goes_on_when_rules_end, "ROC-13"),
		STEPPED(nothing_is_corrupted_whatever_happens, "ROC-5 ROC-10 ROC-13"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
