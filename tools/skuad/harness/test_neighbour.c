// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a neighbour cannot do: packets from the peer's address that the peer has not sent, or has sent long ago,
 * arrive by the thousand while verified traffic runs (storm.h). And what a peer that lies can do: no more than IBTA
 * lets it, in bounded time and memory.
 *
 * SKUA_STORMS: seeds of each storm (8; with sanitizers 2, and no rate is judged); SKUA_STORM_SEED: the first of them
 * (1); SKUA_STORM_ROUNDS: rounds of traffic in each (15); SKUA_STORM_KINDS: those alone, by their names in storm.c with
 * commas between; SKUA_STORM_PPS: packets a virtual second to each end (1500 or 3000).
 */
#include <stdio.h>

#include "core/qp.h"
#include "harness/lossy.h"
#include "harness/storm.h"
#include "harness/verify.h"
#include "link/impair.h"
#include "nic/control.h"
#include "roce/repeat.h"
#include "roce/roce.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define MS		1000000ull
#define TIMEOUT		(4096ull << 14)		/* that rts_cmd() sets */
#define RETRIES		7u			/* the same */
#define ROUND_NS	(1000 * MS)		/* a round that takes longer hangs: its payload takes 1 ms */
/* Seeds, and how much of the rate without a storm they leave: of some a single late loss costs a third. */
#ifdef __SANITIZE_ADDRESS__			/* it takes ten times as long */
#define STORMS		2
#define LEAST_SHARE	0
#else
#define STORMS		8
#define LEAST_SHARE	0.8
#endif

static unsigned int number(const char *name, unsigned int otherwise)
{
	const char *text = getenv(name);

	return text ? (unsigned int)strtoul(text, NULL, 0) : otherwise;
}

static void find_qp(const void *info, void *arg)
{
	const struct skua_qp_info *qp = info;
	struct skua_qp_info *want = arg;

	if (qp->qpn == want->qpn)
		*want = *qp;
}

/* Storms */

static uint32_t chosen_kinds(uint32_t otherwise)
{
	const char *text = getenv("SKUA_STORM_KINDS");
	char names[512], *rest = names, *name;
	uint32_t kinds = 0;

	if (!text)
		return otherwise;
	snprintf(names, sizeof(names), "%s", text);
	while ((name = strsep(&rest, ","))) {
		unsigned int k = 0;

		while (k < STORM_KINDS && strcmp(name, storm_names[k]))
			k++;
		assert_true(k < STORM_KINDS || !*name);
		kinds |= *name ? 1u << k : 0;
	}
	return kinds;
}

static const struct line {
	const char *name;
	unsigned int pps;		/* of a storm, to each end */
	const char *const *rules;
} clean = { "clean line", 3000, (const char *const[]){ "rate=5G,dir=out", "delay=10us,dir=out", NULL } },
  lossy = { "lossy line", 3000, (const char *const[]){
	"rate=5G,dir=out", "drop=0.5%,dir=out", "duplicate=0.5%,dir=out", "reorder=0.5%,dir=out",
	"delay=10us,jitter=5us,dir=out", NULL } },
  /* Here a round takes long, so that much of a storm meets the same packets. */
  slow = { "slow line", 1500, (const char *const[]){
	"rate=200M,dir=out", "drop=2%,dir=out", "duplicate=1%,dir=out", "reorder=2%,by=2ms,dir=out",
	"delay=1ms,jitter=500us,dir=out", NULL } };

/* Who goes back N. Of a mixed pair, a neighbour can tell either that the other does not (REP-10). */
enum mode { SELECTIVE, GO_BACK_N, MIXED };
static const char *const mode_names[] = { "selective repeat", "go-back-N", "one end goes back N" };

struct run {
	struct storm *storm;
	uint64_t deadline;
};

static void turn(struct verify *v)
{
	struct run *run = v->arg;

	storm_turn(run->storm);
	if (engine_now(v->w->engines[0]) > run->deadline)
		fail_msg("%s: hangs", v->name);
}

static void set_line(struct world *w, const struct line *line, unsigned int seed)
{
	for (unsigned int i = 0; i < 2; i++) {
		const char *rules[IMPAIR_RULES];
		char text[32];
		unsigned int r = 0;

		for (; line->rules[r]; r++)
			rules[r] = line->rules[r];
		snprintf(text, sizeof(text), "seed=%u", 2 * seed + i);
		rules[r++] = text;
		rules[r] = NULL;
		impair(&w->n[i], rules);
	}
}

#define SAME(v, got, want) do {									\
	uint64_t got_ = (got), want_ = (want);							\
	if (got_ != want_)									\
		fail_msg("%s: %s is %llu, not %llu", (v)->name, #got,				\
			 (unsigned long long)got_, (unsigned long long)want_);			\
} while (0)

/* All has been carried out exactly once, and nothing is left of it. */
static void check_ends(struct verify *v, uint64_t rounds)
{
	for (int i = 0; i < 2; i++) {
		struct node *n = &v->w->n[i];

		SAME(v, STAT(v->w, n, rdma_rx_send), 2 * rounds);
		SAME(v, STAT(v->w, n, rdma_rx_write), 2 * rounds);
		/* A READ may be requested in parts. */
		SAME(v, STAT(v->w, n, rdma_tx_read), rounds);
		SAME(v, STAT(v->w, n, rdma_rx_atomic), 2 * rounds);
		SAME(v, n->dev->roce->held_bytes, 0);
		SAME(v, poll_cq(n) != NULL, 0);
	}
}

/* Packets of each kind of storm, of all seeds. */
static uint64_t arrived[STORM_KINDS];

/* Rounds of traffic in a storm. Returns the bytes in a nanosecond. */
static double weather(const struct line *line, enum mode mode, uint32_t kinds, unsigned int seed)
{
	unsigned int rounds = number("SKUA_STORM_ROUNDS", 15);
	struct world *w = world_create(false);
	struct run run = { 0 };
	char name[100];
	struct verify v = { .w = w, .name = name, .turn = turn, .arg = &run };
	uint64_t bytes = 0, start, took;

	snprintf(name, sizeof(name), "%s, seed %u, %s, %s", kinds ? "storm" : "calm", seed, line->name,
		 mode_names[mode]);
	w->n[0].dev->inject.go_back_n = mode == GO_BACK_N;
	w->n[1].dev->inject.go_back_n = mode != SELECTIVE;
	verify_begin(&v);
	set_line(w, line, seed);
	run.storm = storm_create(w, kinds, number("SKUA_STORM_PPS", line->pps), seed);
	start = engine_now(w->engines[0]);
	for (unsigned int round = 0; round < rounds; round++) {
		run.deadline = engine_now(w->engines[0]) + ROUND_NS;
		bytes += verify_round(&v, round);
	}
	took = engine_now(w->engines[0]) - start;
	for (int kind = 0; kind < STORM_KINDS; kind++)
		arrived[kind] += storm_arrived(run.storm)[kind];
	storm_destroy(run.storm);
	/* When it is over, all is as it was before. */
	run.storm = storm_create(w, 0, 1000, seed);
	run.deadline = engine_now(w->engines[0]) + ROUND_NS;
	set_line(w, &clean, seed);
	verify_round(&v, rounds);
	check_ends(&v, rounds + 1);
	storm_destroy(run.storm);
	world_destroy(w);
	return (double)bytes / (double)took;
}

/* The same without a storm; once for all tests. */
static double calm_weather(const struct line *line, enum mode mode, unsigned int seed)
{
	static struct { const struct line *line; enum mode mode; unsigned int seed; double rate; } known[256];
	size_t i = 0;

	while (i < ARRAY_SIZE(known) && known[i].line &&
	       (known[i].line != line || known[i].mode != mode || known[i].seed != seed))
		i++;
	if (i == ARRAY_SIZE(known))
		return weather(line, mode, 0, seed);
	if (!known[i].line) {
		known[i].rate = weather(line, mode, 0, seed);
		known[i].line = line;
		known[i].mode = mode;
		known[i].seed = seed;
	}
	return known[i].rate;
}

/* Over all seeds. @share: how much of the rate has to be left; 0: any. */
static void storms(const struct line *line, enum mode mode, uint32_t kinds, double share)
{
	unsigned int first = number("SKUA_STORM_SEED", 1), n = number("SKUA_STORMS", STORMS);
	double calm = 0, stormy = 0;

	kinds = chosen_kinds(kinds);
	memset(arrived, 0, sizeof(arrived));
	for (unsigned int seed = first; seed < first + n; seed++) {
		stormy += 1 / weather(line, mode, kinds, seed);
		if (share > 0)
			calm += 1 / calm_weather(line, mode, seed);
	}
	/* Nobody tells of loss where there is none, nor by frames of selective repeat where that is not used. */
	if (line == &clean)
		kinds &= ~(1u << STORM_REPLAY_NAK);
	if (line == &clean || mode != SELECTIVE)
		kinds &= ~(1u << STORM_REPLAY_FRAME);
	for (int kind = 0; kind < STORM_KINDS; kind++)
		if (kinds & 1u << kind && !arrived[kind])
			fail_msg("%s, %s: nothing came of kind %d", line->name, mode_names[mode], kind);
	if (share <= 0)
		return;
	print_message("%s, %s: %.0f%% of the rate\n", line->name, mode_names[mode], 100 * calm / stormy);
	if (calm / stormy < share)
		fail_msg("%s, %s, seeds %u to %u: %.0f%% of the rate, not %.0f%%", line->name, mode_names[mode], first,
			 first + n - 1, 100 * calm / stormy, 100 * share);
}

#define BIT(kind)	(1u << STORM_##kind)

/* A receiver that holds requests takes one ahead for its peer's (REP-5). */
#define FAIR		(STORM_ALL & ~BIT(AHEAD))
/* IBTA has a receiver answer a gap by a NAK, and a requester go back for it: that slows it. */
#define GAPS		(BIT(AHEAD) | BIT(FAR) | BIT(REPLAY_NAK))

/* The slow line has no share: READs that are asked for again are served again, and their responses fill it. */
static void everywhere(uint32_t selective, uint32_t go_back_n, double share)
{
	storms(&clean, SELECTIVE, selective, share);
	storms(&lossy, SELECTIVE, selective, share);
	storms(&slow, SELECTIVE, selective, 0);
	storms(&clean, GO_BACK_N, go_back_n, go_back_n & GAPS ? 0 : share);
	storms(&lossy, GO_BACK_N, go_back_n, go_back_n & GAPS ? 0 : share);
	storms(&slow, GO_BACK_N, go_back_n, 0);
}

static void forged_responses_do_nothing(void **state)
{
	uint32_t kinds = BIT(ACK) | BIT(NAK) | BIT(RNR) | BIT(READ_RESP) | BIT(ATOMIC_RESP) | BIT(WRONG_QPN);

	(void)state;
	everywhere(kinds, kinds, LEAST_SHARE);
}

static void forged_requests_do_nothing(void **state)
{
	uint32_t kinds = BIT(PAST_REQUEST) | BIT(PAST_READ) | BIT(PAST_ATOMIC) | BIT(AGAIN_REQUEST) | BIT(AGAIN_ATOMIC) |
			 BIT(WRONG_RKEY);

	(void)state;
	everywhere(kinds, kinds, LEAST_SHARE);
}

/* The responder knows the address and the length of the READ that has the PSN, and what part of it that PSN is. */
static void a_made_up_repeat_of_a_read_does_nothing(void **state)
{
	(void)state;
	everywhere(BIT(AGAIN_READ), BIT(AGAIN_READ), LEAST_SHARE);
}

static void requests_ahead_only_slow(void **state)
{
	(void)state;
	everywhere(BIT(FAR), BIT(FAR) | BIT(AHEAD), LEAST_SHARE);
}

static void forged_frames_only_slow(void **state)
{
	(void)state;
	everywhere(BIT(HELLO) | BIT(MISSING), BIT(HELLO) | BIT(MISSING), LEAST_SHARE);
	storms(&clean, MIXED, BIT(HELLO) | BIT(MISSING), LEAST_SHARE);
	storms(&lossy, MIXED, BIT(HELLO) | BIT(MISSING), 0);
	storms(&slow, MIXED, BIT(HELLO) | BIT(MISSING), 0);
}

static void replayed_packets_do_nothing(void **state)
{
	uint32_t kinds = BIT(REPLAY_REQUEST) | BIT(REPLAY_RESPONSE) | BIT(REPLAY_FRAME);

	(void)state;
	everywhere(kinds, kinds, LEAST_SHARE);
}

/* A responder sends one NAK for a gap (ROC-10): a second with the same PSN is a copy, and counts as no try. */
static void replayed_naks_only_slow(void **state)
{
	(void)state;
	everywhere(BIT(REPLAY_NAK), BIT(REPLAY_NAK), 0);
}

static void all_of_it_at_once(void **state)
{
	(void)state;
	everywhere(FAIR, STORM_ALL & ~GAPS, LEAST_SHARE);
	storms(&lossy, GO_BACK_N, STORM_ALL, 0);
	storms(&slow, GO_BACK_N, STORM_ALL, 0);
	storms(&slow, MIXED, FAIR, 0);
}

/* Lies of the peer itself */

/* Node b is deaf and mute; what it says is the test's. */
static void mute(struct node *b)
{
	IMPAIR(b, "drop=100%");
}

static void post_to(struct node *a, struct node *b, uint8_t opcode, uint32_t len)
{
	post(a, opcode, SKUA_WQE_SIGNALED, a->buf, len, b->buf, b->key, 0);
}

static void answer(struct node *a, const struct node *b, enum train_op op, uint8_t syndrome, uint32_t psn)
{
	struct train t = train_from(a, op, psn);

	t.syndrome = syndrome;
	arrive_only(a, b, t);
}

/*
 * A lie of @b to @a, told each @every ns, until the oldest WQE ends; in time. Returns the completion's status. The
 * time without progress that ROC-13 allows: four ACK timeouts for each try.
 */
#define PATIENCE	((RETRIES + 1) * 4 * TIMEOUT)
static uint8_t lie_until_the_end(struct world *w, void (*lie)(struct world *w, uint32_t turn), uint64_t every)
{
	struct node *a = &w->n[0];
	uint64_t start = engine_now(w->engines[0]);
	struct skua_cqe *cqe;

	settle(w);
	for (uint32_t i = 0; !(cqe = poll_cq(a)); i++) {
		if (lie)
			lie(w, i);
		pass(w, every);
		assert_true(engine_now(w->engines[0]) - start < PATIENCE);
	}
	return cqe->status;
}

/* After the end nothing is left. */
static void nothing_is_held(struct world *w)
{
	for (int i = 0; i < 2; i++) {
		must(w, &w->n[i], state_cmd(w->n[i].qpn, SKUA_QPS_RESET));
		assert_int_equal(w->n[i].dev->roce->held_bytes, 0);
	}
}

static void a_peer_that_never_answers_is_given_up(void **state)
{
	static const uint8_t opcodes[] = { SKUA_WQE_SEND, SKUA_WQE_WRITE, SKUA_WQE_READ };
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	for (size_t i = 0; i < 2 * ARRAY_SIZE(opcodes); i++) {
		uint64_t start, sent = STAT(w, a, rdma_tx_packets);

		if (i == ARRAY_SIZE(opcodes))
			a->dev->inject.go_back_n = true;
		mute(b);
		start = engine_now(w->engines[0]);
		post_to(a, b, opcodes[i % ARRAY_SIZE(opcodes)], 1 << 20);
		assert_int_equal(lie_until_the_end(w, NULL, MS), SKUA_CQE_RETRY_EXC_ERR);
		assert_true(engine_now(w->engines[0]) - start >= (RETRIES + 1) * TIMEOUT);
		/* Its 1024 packets not more than once each, though there was time for a hundred times as many. */
		assert_true(STAT(w, a, rdma_tx_packets) - sent < 1024);
		nothing_is_held(w);
		reconnect(w, a, b);
		reconnect(w, b, a);
	}
}

/* A WQE of 1 MiB of @a, of which it hears nothing but a lie each ms, ends so. */
static void ends_with(struct world *w, uint8_t opcode, void (*lie)(struct world *w, uint32_t turn), uint8_t status)
{
	mute(&w->n[1]);
	post_to(&w->n[0], &w->n[1], opcode, 1 << 20);
	assert_int_equal(lie_until_the_end(w, lie, MS), status);
	nothing_is_held(w);
}

/* Beyond what was sent, and from the past. */
static void ack_nonsense(struct world *w, uint32_t turn)
{
	struct node *a = &w->n[0], *b = &w->n[1];

	for (uint32_t d = 0; d < 4; d++) {
		answer(a, b, TRAIN_ACK, AETH_ACK, psn_add(FIRST_PSN, 1024 + (turn << d)));
		answer(a, b, TRAIN_ACK, AETH_ACK, psn_add(FIRST_PSN, -1 - (turn << d)));
		answer(a, b, TRAIN_ACK, AETH_NAK_SEQ, psn_add(FIRST_PSN, 1024 + (turn << d)));
		answer(a, b, TRAIN_ACK, AETH_NAK_OP, psn_add(FIRST_PSN, -1 - (turn << d)));
	}
}

static void acks_of_what_was_never_sent_are_none(void **state)
{
	ends_with(*state, SKUA_WQE_WRITE, ack_nonsense, SKUA_CQE_RETRY_EXC_ERR);
}

/* Of 64 packets; the responses never come. */
static void ack_half(struct world *w, uint32_t turn)
{
	answer(&w->n[0], &w->n[1], TRAIN_ACK, AETH_ACK, psn_add(FIRST_PSN, 32 + turn % 3));
}

static void acks_of_half_a_read_are_no_progress(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint64_t sent = STAT(w, a, rdma_tx_packets);

	mute(b);
	post_to(a, b, SKUA_WQE_READ, 65536);
	assert_int_equal(lie_until_the_end(w, ack_half, MS / 10), SKUA_CQE_RETRY_EXC_ERR);
	assert_true(STAT(w, a, rdma_tx_packets) - sent < 1000);
	nothing_is_held(w);
}

static void say_lost(struct world *w, uint32_t turn)
{
	(void)turn;
	answer(&w->n[0], &w->n[1], TRAIN_ACK, AETH_NAK_SEQ, FIRST_PSN);
}

static void endless_naks_end(void **state)
{
	ends_with(*state, SKUA_WQE_WRITE, say_lost, SKUA_CQE_RETRY_EXC_ERR);
}

static void say_not_ready(struct world *w, uint32_t turn)
{
	(void)turn;
	answer(&w->n[0], &w->n[1], TRAIN_ACK, AETH_RNR | 1, FIRST_PSN);
}

static void endless_rnr_naks_end(void **state)
{
	ends_with(*state, SKUA_WQE_SEND, say_not_ready, SKUA_CQE_RNR_RETRY_EXC_ERR);
}

static void say(struct node *to, const struct repeat_frame *f)
{
	uint8_t buf[REPEAT_FRAME];
	struct seglist frame = { .n = 1, .bytes = (uint32_t)repeat_build(buf, f) };

	frame.seg[0] = (struct seg){ buf, frame.bytes };
	skua_dev_rx_frame(to->dev, &frame);
}

static struct repeat_frame frame_of(const struct node *from, const struct node *to, enum repeat_type type)
{
	struct repeat_frame f = { .type = type, .dest_qpn = to->qpn, .path = { .vlan = SKUA_VLAN_NONE } };

	memcpy(f.path.smac, from->mac, 6);
	memcpy(f.path.dmac, to->mac, 6);
	memcpy(f.path.sgid, from->gid, 16);
	memcpy(f.path.dgid, to->gid, 16);
	return f;
}

/* All but the first is held, or every other one; that never changes. */
static void say_missing(struct world *w, uint32_t turn)
{
	struct repeat_frame f = frame_of(&w->n[1], &w->n[0], turn % 8 ? REPEAT_MISSING : REPEAT_HELLO);

	f.psn = FIRST_PSN;
	memset(f.held, turn & 1 ? 0x55 : 0xff, 8);
	say(&w->n[0], &f);
}

/* REP-7: a MISSING is no progress, and a packet goes again for a later one that is held only. */
static void a_peer_that_always_misses_the_same_is_given_up(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint64_t sent = STAT(w, a, rdma_tx_packets);

	mute(b);
	post_to(a, b, SKUA_WQE_WRITE, 1 << 20);
	assert_int_equal(lie_until_the_end(w, say_missing, MS / 10), SKUA_CQE_RETRY_EXC_ERR);
	assert_true(STAT(w, a, rdma_tx_packets) - sent < 20000);
	nothing_is_held(w);
}

/* All responses but the first of a READ, again and again. */
static void respond_late(struct world *w, uint32_t turn)
{
	struct node *a = &w->n[0], *b = &w->n[1];
	struct seglist payload = { .n = 1, .bytes = 1024, .seg = { { at(b, b->buf), 1024 } } };
	struct train t = train_from(a, TRAIN_READ_RESP, psn_add(FIRST_PSN, 1 + turn % 1000));
	struct repeat_frame hello = frame_of(b, a, REPEAT_HELLO);

	if (!turn)
		say(a, &hello);
	t.syndrome = AETH_ACK;
	t.first = t.last = false;
	t.payload = &payload;
	arrive_only(a, b, t);
}

static void a_peer_that_leaves_out_the_first_response_is_given_up(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint64_t sent = STAT(w, a, rdma_tx_packets);

	mute(b);
	post_to(a, b, SKUA_WQE_READ, 1 << 20);
	assert_int_equal(lie_until_the_end(w, respond_late, MS / 10), SKUA_CQE_RETRY_EXC_ERR);
	assert_true(a->dev->roce->held_bytes < REPEAT_WINDOW * 16384);
	assert_true(STAT(w, a, rdma_tx_packets) - sent < 20000);
	nothing_is_held(w);
}

/* What it acknowledges is gone, and the requester cannot know. */
static void ack_all(struct world *w, uint32_t turn)
{
	struct skua_qp_info qp = { .qpn = w->n[0].qpn };

	(void)turn;
	skua_dev_for_each_qp(w->n[0].dev, &(struct skua_walk){ 0 }, find_qp, &qp);
	for (uint32_t psn = qp.una_psn; psn != qp.sq_psn; psn = psn_add(psn, 1))
		answer(&w->n[0], &w->n[1], TRAIN_ACK, AETH_ACK, psn);
}

static void a_peer_that_acknowledges_all_and_holds_nothing_harms_itself(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	mute(b);
	for (int i = 0; i < 20; i++) {
		post_to(a, b, i & 1 ? SKUA_WQE_WRITE : SKUA_WQE_SEND, 1 << 20);
		assert_int_equal(lie_until_the_end(w, ack_all, MS / 10), SKUA_CQE_SUCCESS);
	}
	nothing_is_held(w);
}

/* Each packet of both directions comes twice, and that of the copies, too. */
static void a_peer_that_says_all_twice_is_understood(void **state)
{
	struct run run;
	struct verify v = { .turn = turn, .arg = &run };

	(void)state;
	for (int go_back_n = 0; go_back_n < 2; go_back_n++) {
		v.w = world_create(false);
		v.name = go_back_n ? "all twice, go-back-N" : "all twice, selective repeat";
		v.w->n[1].dev->inject.go_back_n = go_back_n;
		verify_begin(&v);
		for (int i = 0; i < 2; i++)
			IMPAIR(&v.w->n[i], "rate=5G,dir=out", "duplicate=100%,dir=out", "delay=10us,dir=out",
			       "duplicate=50%,dir=in", "drop=1%,dir=in");
		run.storm = storm_create(v.w, 0, 1000, 1);
		for (uint64_t round = 0; round < 20; round++) {
			run.deadline = engine_now(v.w->engines[0]) + ROUND_NS;
			verify_round(&v, round);
		}
		for (int i = 0; i < 2; i++)
			IMPAIR(&v.w->n[i], "delay=10us,dir=out");
		run.deadline += ROUND_NS;
		verify_round(&v, 20);
		check_ends(&v, 21);
		storm_destroy(run.storm);
		world_destroy(v.w);
	}
}

/* Anything near what is outstanding, as a peer may say it that makes no sense: each seed ends, well or not. */
static void lies_by_chance_end(void **state)
{
	unsigned int first = number("SKUA_STORM_SEED", 1), n = 20 * number("SKUA_STORMS", 3);

	(void)state;
	for (unsigned int seed = first; seed < first + n; seed++) {
		struct world *w = world_create(false);
		struct node *a = &w->n[0], *b = &w->n[1];
		uint64_t z = seed * 0x5851f42d4c957f2dull, start = engine_now(w->engines[0]);
		static const enum train_op ops[] = { TRAIN_ACK, TRAIN_ACK, TRAIN_READ_RESP, TRAIN_ATOMIC_RESP };
		int left = 6;

		a->dev->inject.go_back_n = seed & 1;
		mute(b);
		for (int i = 0; i < left; i++)
			post(a, i % 3 == 2 ? SKUA_WQE_READ : i % 3 ? SKUA_WQE_WRITE : SKUA_WQE_SEND,
			     SKUA_WQE_SIGNALED, a->buf, 20000, b->buf, b->key, 0);
		while (left) {
			struct skua_qp_info qp = { .qpn = a->qpn };
			struct seglist payload = { .n = 1, .bytes = 1024, .seg = { { at(b, b->buf), 1024 } } };
			struct train t;
			struct repeat_frame f = frame_of(b, a, z & 64 ? REPEAT_MISSING : REPEAT_HELLO);

			z = (z ^ z >> 27) * 0x94d049bb133111ebull + 1;
			skua_dev_for_each_qp(a->dev, &(struct skua_walk){ 0 }, find_qp, &qp);
			t = train_from(a, ops[z >> 40 & 3], psn_add(qp.una_psn, (z >> 20) % 70 - 5));
			t.syndrome = z >> 50 & 7 ? AETH_ACK : (uint8_t)(z >> 53);
			t.first = z >> 9 & 1;
			t.last = z >> 10 & 1;
			if (t.op == TRAIN_READ_RESP)
				t.payload = &payload;
			f.psn = psn_add(qp.una_psn, (z >> 30) % 16);
			memset(f.held, (int)(z >> 12), 8);
			if (z & 3)
				arrive(w, a, b, t);
			else
				say(a, &f);
			pass(w, MS / 4);
			while (left && poll_cq(a))
				left--;
			if (engine_now(w->engines[0]) - start > 6 * PATIENCE || a->dev->roce->held_bytes > 2 << 20)
				fail_msg("lies of seed %u: no end", seed);
		}
		nothing_is_held(w);
		world_destroy(w);
	}
}

#define ALONE(f, rules)	{ rules ": " #f, f, NULL, NULL, NULL }

int main(void)
{
	const struct CMUnitTest tests[] = {
		ALONE(forged_responses_do_nothing, "SEC-5 ROC-9 ROC-12 ROC-18"),
		ALONE(forged_requests_do_nothing, "SEC-5 ROC-10"),
		ALONE(a_made_up_repeat_of_a_read_does_nothing, "SEC-5 ROC-10 ROC-23"),
		ALONE(requests_ahead_only_slow, "SEC-5 ROC-10 REP-5 REP-11"),
		ALONE(forged_frames_only_slow, "REP-3 REP-4 REP-7 REP-8 REP-10"),
		ALONE(replayed_packets_do_nothing, "SEC-5 ROC-10 ROC-13"),
		ALONE(replayed_naks_only_slow, "SEC-5 ROC-10 ROC-13 REC-9"),
		ALONE(all_of_it_at_once, "SEC-5 ROC-10 REP-10"),
		STEPPED(a_peer_that_never_answers_is_given_up, "ROC-13 ROC-17"),
		STEPPED(acks_of_what_was_never_sent_are_none, "ROC-9 ROC-13"),
		STEPPED(acks_of_half_a_read_are_no_progress, "ROC-13 ROC-18"),
		STEPPED(endless_naks_end, "ROC-13 REC-9"),
		STEPPED(endless_rnr_naks_end, "ROC-12"),
		STEPPED(a_peer_that_always_misses_the_same_is_given_up, "REP-7 ROC-13 REC-1"),
		STEPPED(a_peer_that_leaves_out_the_first_response_is_given_up, "REP-9 ROC-13"),
		STEPPED(a_peer_that_acknowledges_all_and_holds_nothing_harms_itself, "ROC-9"),
		ALONE(a_peer_that_says_all_twice_is_understood, "ROC-10 REP-6"),
		ALONE(lies_by_chance_end, "ROC-13 REP-7 REP-9"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
