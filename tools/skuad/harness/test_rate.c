// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Rate limits of QPs: what leaves in a time is what the limit allows, for each service. And ECE. */
#include "core/pacer.h"
#include "harness/datagram.h"
#include "harness/lossy.h"
#include "nic/control.h"
#include "roce/arrival.h"
#include "roce/rc.h"

#define MS		1000000ull
#define S		1000000000ull
#define KBPS		100000u			/* of most limits: 12.5 bytes in a us */
#define MOMENTS		4096

static struct skua_qp *qp_of(const struct node *n)
{
	return numtab_get(&n->dev->qps, n->qpn);
}

static struct skua_cmd limit_cmd(const struct node *n, uint32_t kbps, uint32_t burst)
{
	return modify_cmd(n->qpn, SKUA_QP_ATTR_RATE_LIMIT, (struct skua_qp_attr){
		.rate_limit = htole32(kbps), .rate_burst = htole32(burst),
	});
}

/* Bytes that have left after each event, counted as RAT-2 says. */
struct record {
	struct node *sender;
	unsigned int n;
	struct { uint64_t at, bytes; } moment[MOMENTS];
};

static void note(struct record *r)
{
	const struct device_stats *s = &r->sender->dev->stats;

	assert_in_range(r->n, 0, MOMENTS - 1);
	r->moment[r->n].at = engine_now(r->sender->engine);
	r->moment[r->n++].bytes = s->rdma_tx_bytes + s->tx_bytes;
}

/* RAT-2, for each period between two moments. */
static void check(const struct record *r, uint64_t kbps, uint64_t over)
{
	for (unsigned int i = 0; i < r->n; i++)
		for (unsigned int j = i; j < r->n; j++) {
			uint64_t ns = r->moment[j].at - r->moment[i].at;
			uint64_t bytes = r->moment[j].bytes - r->moment[i].bytes;

			if (bytes > ns * kbps / 8000000 + over)
				fail_msg("%llu bytes in %llu ns", (unsigned long long)bytes,
					 (unsigned long long)ns);
		}
}

/* All that was posted is done; the time that took. */
static uint64_t finish(struct world *w, struct record *r, unsigned int cqes)
{
	struct node *a = &w->n[0];
	uint64_t start = engine_now(w->engines[0]);
	struct skua_cqe *cqe;

	note(r);
	settle(w);
	note(r);
	while (cqes) {
		cqe = poll_cq(a);
		if (cqe) {
			assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
			cqes--;
			continue;
		}
		next_event(w);
		note(r);
	}
	return engine_now(w->engines[0]) - start;
}

enum service { WRITE, SEND, READ, UC_WRITE, UD_SEND, FRAMES, NUM_SERVICES };

#define LEN	(256u << 10)
#define UNITS	120u			/* datagrams or frames */
#define UNIT	1024u

/* QPs of this service, instead of those of RC. */
static void use_service(struct world *w, enum service service)
{
	for (int i = 0; i < 2; i++) {
		if (service == UD_SEND)
			ud_queues(w, &w->n[i], SKUA_QPT_UD, SKUA_QPS_RTS);
		else if (service == FRAMES)
			eth_queues(w, &w->n[i]);
	}
	if (service == UC_WRITE)
		both_uc(w);
}

/* Post LEN bytes, or UNITS of UNIT bytes. Returns how many completions will come. */
static unsigned int send_all(struct world *w, enum service service)
{
	static const uint8_t opcodes[] = {
		[WRITE] = SKUA_WQE_WRITE, [SEND] = SKUA_WQE_SEND, [READ] = SKUA_WQE_READ, [UC_WRITE] = SKUA_WQE_WRITE,
	};
	struct node *a = &w->n[0], *b = &w->n[1];

	fill(a, LEN, service);
	if (service < UD_SEND) {
		if (service == SEND)
			post_recv(b, b->buf, LEN);
		post(a, opcodes[service], SKUA_WQE_SIGNALED, a->buf, LEN, b->buf, b->key, 0);
		return 1;
	}
	memcpy(at(a, a->buf), b->mac, 6);
	memcpy(at(a, a->buf + 6), a->mac, 6);
	for (unsigned int i = 0; i < UNITS; i++) {
		if (service == UD_SEND)
			post_ud(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, UNIT, ud_to(b), 0);
		else
			post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, UNIT, 0, 0, 0);
	}
	return UNITS;
}

/* As fast as the limit, and no faster: the wire of this process has no speed of its own. */
static void each_service_keeps_to_its_limit(void **state)
{
	(void)state;
	for (enum service service = 0; service < NUM_SERVICES; service++) {
		struct world *w = world_create(false);
		struct record r = { .sender = &w->n[service == READ] };
		unsigned int cqes;
		uint64_t took, bytes, fair;

		use_service(w, service);
		must(w, r.sender, limit_cmd(r.sender, KBPS, 0));
		pass(w, 10 * MS);
		cqes = send_all(w, service);
		took = finish(w, &r, cqes);
		bytes = r.moment[r.n - 1].bytes - r.moment[0].bytes;
		if (bytes < (service < UD_SEND ? LEN : UNITS * UNIT))
			fail_msg("service %u sent %llu bytes", service, (unsigned long long)bytes);
		/* A millisecond, and 4 KiB with the headers of so many packets. */
		check(&r, KBPS, KBPS / 8 + 4096 + 4 * 90);
		fair = bytes * 8000000 / KBPS;
		if (took < fair - 2 * MS || took > fair + fair / 50)
			fail_msg("service %u took %llu us, not %llu", service, (unsigned long long)took / 1000,
				 (unsigned long long)fair / 1000);
		world_destroy(w);
	}
}

/* Retransmissions are not for free. */
static void lost_packets_count(void **state)
{
	struct world *w = *state;
	struct record r = { .sender = &w->n[0] };
	unsigned int cqes;

	IMPAIR(&w->n[1], "drop=5%,dir=in");
	must(w, r.sender, limit_cmd(r.sender, KBPS, 0));
	cqes = send_all(w, WRITE);
	finish(w, &r, cqes);
	assert_true(STAT(w, r.sender, retransmits) > 0);
	/* Probes do not wait, but what follows does. */
	check(&r, KBPS, KBPS / 8 + 4096 + 4 * 90 + 8 * 1200);
	assert_memory_equal(at(r.sender, r.sender->buf), at(&w->n[1], w->n[1].buf), LEN);
}

/* The RNR timer of the peer is short, and it posts no receive. The limit holds, and READs of the peer are answered. */
static void tries_after_an_rnr_nak_wait(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct record r = { .sender = a };
	struct skua_cmd rts = rts_cmd(a->qpn);
	uint64_t start;

	rts.modify_qp.attr.rnr_retry = 7;
	must(w, a, state_cmd(a->qpn, SKUA_QPS_RESET));
	must(w, a, init_cmd(a->qpn));
	must(w, a, rtr_cmd(a->qpn, b, b->qpn));
	must(w, a, rts);
	must(w, b, modify_cmd(b->qpn, SKUA_QP_ATTR_MIN_RNR_TIMER, (struct skua_qp_attr){ .min_rnr_timer = 1 }));
	must(w, a, limit_cmd(a, KBPS, 0));
	start = engine_now(w->engines[0]);
	post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 1024, 0, 0, 0);
	note(&r);
	while (engine_now(w->engines[0]) < start + 10 * MS) {
		next_event(w);
		note(&r);
	}
	assert_true(STAT(w, a, rnr_nak_received) > 50);
	check(&r, KBPS, KBPS / 8 + 4096 + 4 * 90);
	start = engine_now(w->engines[0]);
	post(b, SKUA_WQE_READ, SKUA_WQE_SIGNALED, b->buf, 1024, a->buf, a->key, 0);
	await_success(w, b);
	assert_true(engine_now(w->engines[0]) - start < MS);
	post_recv(b, b->buf, 1024);
	await_success(w, a);
}

/* After a pause the burst leaves at once, and no more than that. */
static void a_burst_leaves_at_once(void **state)
{
	static const uint32_t bursts[] = { 1, 1500, 4096, 20000, 100000 };
	struct world *w = *state;
	struct node *a = &w->n[0];

	for (unsigned int i = 0; i < sizeof(bursts) / sizeof(bursts[0]); i++) {
		struct record r = { .sender = a };
		uint32_t most = bursts[i] > 1024 ? bursts[i] : 1024;
		uint64_t at_once;
		unsigned int cqes;

		must(w, a, limit_cmd(a, KBPS, bursts[i]));
		pass(w, S);
		cqes = send_all(w, WRITE);
		finish(w, &r, cqes);
		at_once = r.moment[1].bytes - r.moment[0].bytes;
		assert_in_range(at_once + 1024, most * 9 / 10, most + 1024 + (most / 1024 + 4) * 90);
		check(&r, KBPS, most + (most / 1024 + 4) * 90);
	}
}

/* Congestion control lowers the rate further, but never raises it above the limit. */
static void the_lower_rate_counts(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct train t = train_from(a, TRAIN_CNP, 0);

	t.transport = TRANSPORT_CNP;
	must(w, a, limit_cmd(a, 10000000, 0));
	assert_int_equal(pacer_rate(qp_of(a)), 10 * S);
	arrive(w, a, b, t);
	assert_int_equal(pacer_rate(qp_of(a)), 10 * S);
	for (int i = 0; i < 6; i++) {
		pass(w, 50000);
		arrive(w, a, b, t);
	}
	assert_in_range(pacer_rate(qp_of(a)), S / 2, S);
	must(w, a, limit_cmd(a, KBPS, 0));
	assert_int_equal(pacer_rate(qp_of(a)), KBPS * 1000ull);
	must(w, a, limit_cmd(a, 0, 0));
	assert_in_range(pacer_rate(qp_of(a)), S / 2, S);
	must(w, a, limit_cmd(a, 10000000, 0));
	/* The limit stays when congestion is over. */
	pass(w, S);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 8, b->buf, b->key, 0);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	assert_null(conn_of(qp_of(a))->dcqcn);
	assert_int_equal(pacer_rate(qp_of(a)), 10 * S);
}

/* A QP that waits does not wait as long as the old limit said. */
static void a_new_limit_counts_at_once(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];
	uint64_t start;

	must(w, a, limit_cmd(a, 1000, 0));
	send_all(w, WRITE);
	pass(w, 100 * MS);
	assert_null(poll_cq(a));
	start = engine_now(w->engines[0]);
	must(w, a, limit_cmd(a, 0, 0));
	await_success(w, a);
	assert_int_equal(engine_now(w->engines[0]), start);
	assert_null(qp_of(a)->pacer);

	must(w, a, limit_cmd(a, 1000, 0));
	send_all(w, WRITE);
	pass(w, 100 * MS);
	must(w, a, limit_cmd(a, KBPS, 0));
	start = engine_now(w->engines[0]);
	await_success(w, a);
	assert_true(engine_now(w->engines[0]) - start < 25 * MS);
}

/* The same of the rate of congestion control, when it ends. */
static void the_end_of_congestion_counts_at_once(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];
	struct skua_cqe *cqe;

	assert_true(pacer_congestion(qp_of(a), 1000000));
	send_all(w, WRITE);
	pass(w, 100 * MS);
	assert_null(poll_cq(a));
	assert_true(pacer_congestion(qp_of(a), 0));
	settle(w);
	cqe = poll_cq(a);
	assert_non_null(cqe);
	assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
	assert_null(qp_of(a)->pacer);
}

static void a_reset_ends_the_limit(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_qp_attr *attr;
	struct skua_cmd cmd = limit_cmd(a, KBPS, 9000);

	cmd.modify_qp.attr.rate_packet = htole16(1500);
	must(w, a, cmd);
	attr = query(w, a, object_cmd(SKUA_CMD_QUERY_QP, a->qpn), sizeof(*attr));
	assert_int_equal(le32toh(attr->rate_limit), KBPS);
	assert_int_equal(le32toh(attr->rate_burst), 9000);
	assert_int_equal(le16toh(attr->rate_packet), 1500);
	/* While it waits. */
	send_all(w, WRITE);
	settle(w);
	must(w, a, state_cmd(a->qpn, SKUA_QPS_RESET));
	assert_null(qp_of(a)->pacer);
	attr = query(w, a, object_cmd(SKUA_CMD_QUERY_QP, a->qpn), sizeof(*attr));
	assert_int_equal(attr->rate_limit, 0);
	assert_int_equal(attr->rate_burst, 0);
	assert_int_equal(attr->rate_packet, 0);
	must(w, b, state_cmd(b->qpn, SKUA_QPS_RESET));
	reconnect(w, a, b);
	reconnect(w, b, a);
	send_all(w, WRITE);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
}

/* Also on the way to RTS. */
static void bad_limits_are_refused(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_device_caps *caps = query(w, a, (struct skua_cmd)CMD(SKUA_CMD_QUERY_DEVICE), sizeof(*caps));
	uint32_t min = le32toh(caps->min_rate), max = le32toh(caps->max_rate);
	struct skua_cmd bad[] = {
		limit_cmd(a, min - 1, 0), limit_cmd(a, max + 1, 0), limit_cmd(a, 0, 1), limit_cmd(a, 0, 0),
	}, cmd;

	assert_in_range(min, 1, max);
	bad[3].modify_qp.attr.rate_packet = htole16(1);
	must(w, a, limit_cmd(a, min, UINT32_MAX));
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(command(w, a, &bad[i]), SKUA_CMD_BAD_PARAM);
	assert_int_equal(pacer_rate(qp_of(a)), min * 1000ull);
	must(w, a, limit_cmd(a, max, 0));
	assert_int_equal(pacer_rate(qp_of(a)), max * 1000ull);

	must(w, a, state_cmd(a->qpn, SKUA_QPS_RESET));
	must(w, a, init_cmd(a->qpn));
	must(w, a, rtr_cmd(a->qpn, b, b->qpn));
	cmd = rts_cmd(a->qpn);
	cmd.modify_qp.mask |= htole32(SKUA_QP_ATTR_RATE_LIMIT);
	cmd.modify_qp.attr.rate_limit = htole32(min - 1);
	assert_int_equal(command(w, a, &cmd), SKUA_CMD_BAD_PARAM);
	cmd.modify_qp.attr.rate_limit = htole32(KBPS);
	must(w, a, cmd);
	assert_int_equal(pacer_rate(qp_of(a)), KBPS * 1000ull);
}

static uint64_t cpu_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * S + (uint64_t)t.tv_nsec;
}

/* SEC-8: the price of a MISSING is that of a look at each run. So it may take a few times as long as a walk over all runs. */
static void tells_of_all_at_once(struct skua_qp *qp)
{
	struct roce_req *req = &rc_of(qp)->req;
	struct repeat_frame f = { .type = REPEAT_MISSING, .psn = psn_add(req->next_psn, UINT32_MAX) };
	uint64_t start = cpu_time(), walk;

	for (int i = 0; i < 8; i++)
		assert_null(sent_find(&req->sent, req->next_psn));
	walk = cpu_time() - start;
	start = cpu_time();
	arrival_missing(qp, &f);
	assert_true(req->sent.npkts[SENT_HELD]);
	assert_true(cpu_time() - start < 32 * walk);
}

/*
 * Each packet leaves alone, and nothing is acknowledged: what is kept of them is bounded, so that no frame of the peer
 * makes the device look at more. It goes on when something arrives.
 */
static void packets_that_leave_alone_are_so_many_at_most(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct sent *sent = &rc_of(qp_of(a))->req.sent;

	must(w, a, limit_cmd(a, PORT_MBPS * 1000, 1));
	IMPAIR(b, "drop=100%,dir=out");
	rc_of(qp_of(a))->req.congestion.window = 4 * SENT_RUNS_QP;
	fill(a, BUF_SIZE / 2, 3);
	for (int i = 0; i < 3; i++)
		post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, BUF_SIZE / 2, b->buf, b->key, 0);
	for (int us = 0; us < 20000 && sent->num_runs < SENT_RUNS_QP; us++)
		pass(w, 1000);
	assert_int_equal(sent->num_runs, SENT_RUNS_QP);
	pass(w, 10000);
	assert_int_equal(sent->num_runs, SENT_RUNS_QP);
	assert_false(qp_of(a)->sq.busy);
	tells_of_all_at_once(qp_of(a));
	assert_true(skua_dev_set_impair(b->dev, NULL));
	for (int i = 0; i < 3; i++)
		await_success(w, a);
	assert_int_equal(sent->num_runs, 0);
	assert_memory_equal(at(a, a->buf), at(b, b->buf), BUF_SIZE / 2);
}

static void without_the_features_there_are_none(void **state)
{
	struct world *w = world_create_with(false, ~(1ull << SKUA_F_RATE_LIMIT | 1ull << SKUA_F_ECE));
	struct node *a = &w->n[0];
	struct skua_device_caps *caps = query(w, a, (struct skua_cmd)CMD(SKUA_CMD_QUERY_DEVICE), sizeof(*caps));
	struct skua_cmd cmd = limit_cmd(a, KBPS, 0);
	const struct skua_qp_attr fields[] = {
		{ .rate_limit = 1 }, { .rate_burst = 1 }, { .rate_packet = 1 }, { .ece_options = 1 },
	};

	(void)state;
	assert_int_equal(caps->min_rate, 0);
	assert_int_equal(caps->max_rate, 0);
	assert_int_equal(caps->ece_options, 0);
	assert_int_equal(command(w, a, &cmd), SKUA_CMD_BAD_PARAM);
	for (unsigned int i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		cmd = modify_cmd(a->qpn, 0, fields[i]);
		assert_int_equal(command(w, a, &cmd), SKUA_CMD_BAD_PARAM);
	}
	must(w, a, modify_cmd(a->qpn, 0, (struct skua_qp_attr){ 0 }));
	must(w, a, state_cmd(a->qpn, SKUA_QPS_RESET));
	must(w, a, init_cmd(a->qpn));
	cmd = rtr_cmd(a->qpn, &w->n[1], w->n[1].qpn);
	cmd.modify_qp.mask |= htole32(SKUA_QP_ATTR_ECE);
	assert_int_equal(command(w, a, &cmd), SKUA_CMD_BAD_PARAM);
	world_destroy(w);
}

/* ECE-1, ECE-2: options that both have. */
static void options_that_the_device_has(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_device_caps *caps = query(w, a, (struct skua_cmd)CMD(SKUA_CMD_QUERY_DEVICE), sizeof(*caps));
	uint32_t options = le32toh(caps->ece_options);
	struct skua_qp_attr *attr;

	for (unsigned int bit = 0; bit < 32; bit++) {
		bool known = options >> bit & 1;
		struct skua_cmd rtr = rtr_cmd(a->qpn, b, b->qpn);

		must(w, a, state_cmd(a->qpn, SKUA_QPS_RESET));
		must(w, a, init_cmd(a->qpn));
		rtr.modify_qp.mask |= htole32(SKUA_QP_ATTR_ECE);
		rtr.modify_qp.attr.ece_options = htole32(1u << bit);
		assert_int_equal(command(w, a, &rtr), known ? SKUA_CMD_OK : SKUA_CMD_BAD_PARAM);
		attr = query(w, a, object_cmd(SKUA_CMD_QUERY_QP, a->qpn), sizeof(*attr));
		assert_int_equal(le32toh(attr->ece_options), known ? 1u << bit : 0);
		rtr.modify_qp.attr.ece_options = htole32(options);
		if (!known)
			must(w, a, rtr);
	}
}

/* The ACK of what came behind a READ waits for the responses. Meanwhile the device has nothing to do. */
static void an_ack_behind_paced_responses_sleeps(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	unsigned int paused = 0;

	must(w, b, limit_cmd(b, 1000, 0));
	post_recv(b, b->buf, 64);
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, 16384, b->buf, b->key, 0);
	post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 64, 0, 0, 0);
	for (unsigned int i = 0; i < 20; i++) {
		pass(w, MS);
		if (!pacer_paused(qp_of(b)))
			continue;
		paused++;
		assert_true(rc_of(qp_of(b))->resp.ack_due);
		assert_false(qp_of(b)->active);
	}
	assert_true(paused > 10);
	for (unsigned int i = 0; i < 300; i++)
		pass(w, MS);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
}

static void post_atomic_write(struct node *a, const struct node *b)
{
	struct {
		struct skua_wqe_ctrl ctrl;
		struct skua_wqe_rdma rdma;
		__le64 word[4];
	} k = {
		.ctrl = { .opcode = SKUA_WQE_ATOMIC_WRITE, .flags = SKUA_WQE_SIGNALED | SKUA_WQE_INLINE, .nblocks = 1,
			  .length = htole32(8) },
		.rdma = { .raddr = htole64(b->buf), .rkey = htole32(b->key) },
	};

	post_block(a, &k);
}

/* Their payload is part of a request. */
static void atomic_writes_keep_to_the_limit(void **state)
{
	struct world *w = *state;
	struct record r = { .sender = &w->n[0] };
	uint64_t took, fair;

	must(w, r.sender, limit_cmd(r.sender, 1000, 0));
	pass(w, 10 * MS);
	for (unsigned int i = 0; i < UNITS; i++)
		post_atomic_write(r.sender, &w->n[1]);
	took = finish(w, &r, UNITS);
	check(&r, 1000, 125 + 4096 + 90);
	fair = (r.moment[r.n - 1].bytes - r.moment[0].bytes) * 8000000 / 1000;
	assert_in_range(took, fair - 2 * MS, fair + fair / 50);
}

static void send_nothing(struct node *a, const struct node *b, uint8_t opcode)
{
	post(a, opcode, SKUA_WQE_SIGNALED, a->buf, 0, b->buf, b->key, 0);
}

/* The rate of the responder is used up by WRITEs of its own. */
static void answers_without_payload_do_not_wait(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	must(w, b, limit_cmd(b, 1000, 0));
	post(b, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, b->buf, 16384, a->buf, a->key, 0);
	settle(w);
	assert_true(pacer_paused(qp_of(b)));
	send_nothing(a, b, SKUA_WQE_READ);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	post_atomic_write(a, b);
	expect(w, a, SKUA_CQE_ATOMIC_WRITE, SKUA_CQE_SUCCESS);
	/* But what has payload does. */
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, 8, b->buf, b->key, 0);
	send_nothing(a, b, SKUA_WQE_READ);
	expect_none(w, a);
}

/* The line is busy for 1 ms, the rate of the responder is used up for 8 ms. No ACK and no probe wakes it in between. */
static void an_answer_without_payload_waits_for_the_line_alone(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	must(w, b, limit_cmd(b, 1000, 1024));
	IMPAIR(b, "rate=10M,dir=out");
	IMPAIR(a, "drop=every:2,dir=in");
	send_nothing(b, a, SKUA_WQE_WRITE);
	pass(w, MS);
	post(b, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, b->buf, 16384, a->buf, a->key, 0);
	settle(w);
	send_nothing(a, b, SKUA_WQE_READ);
	expect_none(w, a);
	assert_true(pacer_paused(qp_of(b)));
	for (int i = 0; i < 12; i++)
		pass(w, MS / 10);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
}

/* They wait for nothing but what was posted before them, and nothing waits because of them. */
static void messages_without_payload_do_not_wait(void **state)
{
	(void)state;
	for (int uc = 0; uc < 2; uc++) {
		struct world *w = world_create(false);
		struct node *a = &w->n[0], *b = &w->n[1];

		if (uc)
			both_uc(w);
		must(w, a, limit_cmd(a, 1000, 0));
		for (int i = 0; i < 100; i++)
			send_nothing(a, b, SKUA_WQE_WRITE);
		post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 1024, b->buf, b->key, 0);
		send_nothing(a, b, SKUA_WQE_WRITE);
		for (int i = 0; i < 102; i++)
			expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
		post_recv(b, b->buf, 64);
		send_nothing(a, b, SKUA_WQE_SEND);
		expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
		post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 8, b->buf, b->key, 0);
		send_nothing(a, b, SKUA_WQE_WRITE);
		expect_none(w, a);
		world_destroy(w);
	}
}

/* The request of a READ is lost. The WRITE behind it uses up the rate, and brings a NAK. */
static void lost_requests_without_payload_do_not_wait(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	must(w, a, limit_cmd(a, 1000, 0));
	IMPAIR(a, "drop=100%,dir=out");
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, 8, b->buf, b->key, 0);
	settle(w);
	assert_true(skua_dev_set_impair(a->dev, NULL));
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 1024, b->buf, b->key, 0);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	assert_true(pacer_waits(qp_of(a)));
}

/*
 * Of 8 responses the last one is lost, and all that the peer sends from then on. Meanwhile responses to the peer wait
 * for the rate, for a second.
 */
static void a_lost_response_beside_responses_that_wait(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct seglist payload = { 1, 1024, { { at(b, b->buf), 1024 } } };
	struct train t = train_from(a, TRAIN_READ_RESP, FIRST_PSN);
	unsigned int ms = 0;

	qp_of(a)->attr.retry_cnt = 1;
	must(w, a, limit_cmd(a, 1000, 0));
	post(b, SKUA_WQE_READ, SKUA_WQE_SIGNALED, b->buf, 128 * 1024, a->buf, a->key, 0);
	settle(w);
	IMPAIR(b, "drop=100%,dir=out");
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, 8 * 1024, b->buf, b->key, 0);
	settle(w);
	t.payload = &payload;
	for (uint32_t i = 0; i < 7; i++) {
		t.psn = psn_add(FIRST_PSN, i);
		t.first = !i;
		t.last = false;
		arrive(w, a, b, t);
	}
	for (; ms < 20; ms++)
		pass(w, MS);
	assert_true(rc_of(qp_of(a))->req.loss.probes >= 1);
	/* Each of the two timeouts, which may be four times as long. */
	for (; ms * MS < 2 * 4 * (4096ull << 14) && qp_of(a)->state == SKUA_QPS_RTS; ms++)
		pass(w, MS);
	assert_true(pacer_paused(qp_of(a)) || qp_of(a)->state == SKUA_QPS_ERR);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_RETRY_EXC_ERR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "RAT-2: each_service_keeps_to_its_limit", each_service_keeps_to_its_limit, NULL, NULL, NULL },
		STEPPED(lost_packets_count, "RAT-2"),
		STEPPED(tries_after_an_rnr_nak_wait, "RAT-2 CNG-9 ROC-12"),
		STEPPED(a_burst_leaves_at_once, "RAT-2"),
		STEPPED(the_lower_rate_counts, "RAT-3"),
		STEPPED(a_new_limit_counts_at_once, "RAT-4"),
		STEPPED(the_end_of_congestion_counts_at_once, "RAT-3"),
		STEPPED(a_reset_ends_the_limit, "RAT-4"),
		STEPPED(an_ack_behind_paced_responses_sleeps, "ROC-27"),
		STEPPED(atomic_writes_keep_to_the_limit, "RAT-2"),
		STEPPED(answers_without_payload_do_not_wait, "RAT-2 CNG-9"),
		STEPPED(an_answer_without_payload_waits_for_the_line_alone, "RAT-2 CNG-9"),
		{ "RAT-2 CNG-9: messages_without_payload_do_not_wait", messages_without_payload_do_not_wait,
		  NULL, NULL, NULL },
		STEPPED(lost_requests_without_payload_do_not_wait, "RAT-2 CNG-9"),
		STEPPED(a_lost_response_beside_responses_that_wait, "ROC-13 ROC-17 REC-16"),
		STEPPED(packets_that_leave_alone_are_so_many_at_most, "RAT-2 SEC-8"),
		STEPPED(bad_limits_are_refused, "RAT-1 LIM-1"),
		{ "RAT-1 ECE-1 FEA-2: without_the_features_there_are_none", without_the_features_there_are_none,
		  NULL, NULL, NULL },
		STEPPED(options_that_the_device_has, "ECE-1 ECE-2"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
