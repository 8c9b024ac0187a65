// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* States of QPs: every transition with every attribute, what each attribute may be, and SQD. */
#include "core/device.h"
#include "harness/datagram.h"

#define BIT_STATE	SKUA_QP_ATTR_STATE
#define INIT_NEEDS	(SKUA_QP_ATTR_PKEY_INDEX | SKUA_QP_ATTR_ACCESS)
#define RTR_NEEDS	(SKUA_QP_ATTR_AV | SKUA_QP_ATTR_PATH_MTU | SKUA_QP_ATTR_DEST_QPN | \
			 SKUA_QP_ATTR_RQ_PSN | SKUA_QP_ATTR_MAX_DEST_RD_ATOMIC | \
			 SKUA_QP_ATTR_MIN_RNR_TIMER)
#define RTS_NEEDS	(SKUA_QP_ATTR_TIMEOUT | SKUA_QP_ATTR_RETRY_CNT | SKUA_QP_ATTR_RNR_RETRY | \
			 SKUA_QP_ATTR_SQ_PSN | SKUA_QP_ATTR_MAX_RD_ATOMIC)

struct transition {
	uint8_t from, to;
	uint32_t needs, may;
};

/* The manual's table; to RESET and ERR stands below. */
static const struct transition rc[] = {
	{ SKUA_QPS_RESET, SKUA_QPS_INIT, INIT_NEEDS, 0 },
	{ SKUA_QPS_INIT, SKUA_QPS_INIT, 0, INIT_NEEDS },
	{ SKUA_QPS_INIT, SKUA_QPS_RTR, RTR_NEEDS, INIT_NEEDS },
	{ SKUA_QPS_RTR, SKUA_QPS_RTS, RTS_NEEDS, SKUA_QP_ATTR_ACCESS | SKUA_QP_ATTR_MIN_RNR_TIMER },
	{ SKUA_QPS_RTS, SKUA_QPS_RTS, 0, SKUA_QP_ATTR_ACCESS | SKUA_QP_ATTR_MIN_RNR_TIMER },
	{ SKUA_QPS_RTS, SKUA_QPS_SQD, 0, SKUA_QP_ATTR_SQD_EVENT },
	{ SKUA_QPS_SQD, SKUA_QPS_SQD, 0, SKUA_QP_ATTR_PKEY_INDEX | SKUA_QP_ATTR_ACCESS |
	  SKUA_QP_ATTR_AV | SKUA_QP_ATTR_TIMEOUT | SKUA_QP_ATTR_RETRY_CNT | SKUA_QP_ATTR_RNR_RETRY |
	  SKUA_QP_ATTR_MIN_RNR_TIMER | SKUA_QP_ATTR_MAX_RD_ATOMIC | SKUA_QP_ATTR_MAX_DEST_RD_ATOMIC },
	{ SKUA_QPS_SQD, SKUA_QPS_RTS, 0, SKUA_QP_ATTR_ACCESS | SKUA_QP_ATTR_MIN_RNR_TIMER },
};

#define UC_RTR_NEEDS	(SKUA_QP_ATTR_AV | SKUA_QP_ATTR_PATH_MTU | SKUA_QP_ATTR_DEST_QPN | \
			 SKUA_QP_ATTR_RQ_PSN)

static const struct transition uc[] = {
	{ SKUA_QPS_RESET, SKUA_QPS_INIT, INIT_NEEDS, 0 },
	{ SKUA_QPS_INIT, SKUA_QPS_INIT, 0, INIT_NEEDS },
	{ SKUA_QPS_INIT, SKUA_QPS_RTR, UC_RTR_NEEDS, INIT_NEEDS },
	{ SKUA_QPS_RTR, SKUA_QPS_RTS, SKUA_QP_ATTR_SQ_PSN, SKUA_QP_ATTR_ACCESS },
	{ SKUA_QPS_RTS, SKUA_QPS_RTS, 0, SKUA_QP_ATTR_ACCESS },
	{ SKUA_QPS_RTS, SKUA_QPS_SQD, 0, SKUA_QP_ATTR_SQD_EVENT },
	{ SKUA_QPS_SQD, SKUA_QPS_SQD, 0, INIT_NEEDS | SKUA_QP_ATTR_AV },
	{ SKUA_QPS_SQD, SKUA_QPS_RTS, 0, SKUA_QP_ATTR_ACCESS },
	{ SKUA_QPS_SQE, SKUA_QPS_RTS, 0, SKUA_QP_ATTR_ACCESS },
};

#define UD_NEEDS	(SKUA_QP_ATTR_PKEY_INDEX | SKUA_QP_ATTR_QKEY)

static const struct transition ud[] = {
	{ SKUA_QPS_RESET, SKUA_QPS_INIT, UD_NEEDS, 0 },
	{ SKUA_QPS_INIT, SKUA_QPS_INIT, 0, UD_NEEDS },
	{ SKUA_QPS_INIT, SKUA_QPS_RTR, 0, UD_NEEDS },
	{ SKUA_QPS_RTR, SKUA_QPS_RTS, SKUA_QP_ATTR_SQ_PSN, SKUA_QP_ATTR_QKEY },
	{ SKUA_QPS_RTS, SKUA_QPS_RTS, 0, SKUA_QP_ATTR_QKEY },
	{ SKUA_QPS_RTS, SKUA_QPS_SQD, 0, SKUA_QP_ATTR_SQD_EVENT },
	{ SKUA_QPS_SQD, SKUA_QPS_SQD, 0, UD_NEEDS },
	{ SKUA_QPS_SQD, SKUA_QPS_RTS, 0, SKUA_QP_ATTR_QKEY },
	{ SKUA_QPS_SQE, SKUA_QPS_RTS, 0, SKUA_QP_ATTR_QKEY },
};

static const struct transition eth[] = {
	{ SKUA_QPS_RESET, SKUA_QPS_INIT, 0, 0 },
	{ SKUA_QPS_INIT, SKUA_QPS_RTR, 0, SKUA_QP_ATTR_STRIP_CVLAN },
	{ SKUA_QPS_RTR, SKUA_QPS_RTR, SKUA_QP_ATTR_STRIP_CVLAN, 0 },
	{ SKUA_QPS_RTR, SKUA_QPS_RTS, 0, SKUA_QP_ATTR_STRIP_CVLAN },
	{ SKUA_QPS_RTS, SKUA_QPS_RTS, 0, SKUA_QP_ATTR_STRIP_CVLAN },
};

#define TABLE(t, ...)	{ t, sizeof(t) / sizeof((t)[0]), __VA_ARGS__ }

static const struct service {
	const struct transition *table;
	size_t n;
	bool sqd, sqe;			/* it has this state */
} services[] = {
	[SKUA_QPT_RC] = TABLE(rc, true, false),
	[SKUA_QPT_UC] = TABLE(uc, true, true),
	[SKUA_QPT_UD] = TABLE(ud, true, true),
	[SKUA_QPT_GSI] = TABLE(ud, true, true),
	[SKUA_QPT_ETH] = TABLE(eth, false, false),
};

static const struct transition *look_up(uint8_t type, uint8_t from, uint8_t to)
{
	static const struct transition end;
	const struct transition *t = services[type].table;

	if (to == SKUA_QPS_RESET || (to == SKUA_QPS_ERR && from != SKUA_QPS_RESET))
		return &end;
	for (size_t n = services[type].n; n; n--, t++)
		if (t->from == from && t->to == to)
			return t;
	return NULL;
}

/* Good values of all attributes at once. */
static struct skua_qp_attr good(const struct node *peer)
{
	struct skua_qp_attr attr = rtr_cmd(0, peer, peer->qpn).modify_qp.attr;

	attr.timeout = 14;
	attr.retry_cnt = 7;
	attr.max_rd_atomic = htole16(4);
	return attr;
}

static int change(struct world *w, struct node *n, uint32_t qpn, uint32_t mask, uint8_t from, uint8_t to)
{
	struct skua_qp_attr attr = good(&w->n[1]);
	struct skua_cmd cmd;

	attr.state = to;
	attr.cur_state = from;
	cmd = modify_cmd(qpn, mask, attr);
	return command(w, n, &cmd);
}

/* A WQE that leads from RTS to SQE. */
static void post_bad(struct world *w, struct node *n)
{
	host_store32(at(n, n->sq_dbr), 0);
	n->sq_pi = 0;
	post(n, 0xff, 0, 0, 0, 0, 0, 0);
	expect(w, n, SKUA_CQE_NOP, SKUA_CQE_LOC_QP_OP_ERR);
}

/* From wherever it is, by the shortest way. */
static void bring(struct world *w, struct node *n, uint32_t qpn, uint8_t type, uint8_t state)
{
	static const uint8_t ways[7][5] = {
		[SKUA_QPS_INIT] = { SKUA_QPS_INIT }, [SKUA_QPS_RTR] = { SKUA_QPS_INIT, SKUA_QPS_RTR },
		[SKUA_QPS_RTS] = { SKUA_QPS_INIT, SKUA_QPS_RTR, SKUA_QPS_RTS },
		[SKUA_QPS_SQD] = { SKUA_QPS_INIT, SKUA_QPS_RTR, SKUA_QPS_RTS, SKUA_QPS_SQD },
		[SKUA_QPS_SQE] = { SKUA_QPS_INIT, SKUA_QPS_RTR, SKUA_QPS_RTS },
		[SKUA_QPS_ERR] = { SKUA_QPS_INIT, SKUA_QPS_ERR },
	};
	uint8_t from = SKUA_QPS_RESET;

	must(w, n, state_cmd(qpn, SKUA_QPS_RESET));
	host_store32(at(n, n->sq_dbr), 0);
	for (const uint8_t *to = ways[state]; *to; from = *to++) {
		const struct transition *t = look_up(type, from, *to);

		assert_int_equal(change(w, n, qpn, t->needs | BIT_STATE, from, *to), SKUA_CMD_OK);
	}
	if (state == SKUA_QPS_SQE)
		post_bad(w, n);
}

/* What the transition may have besides what it needs. */
static uint32_t may_have(const struct transition *t)
{
	uint32_t may = t->may | SKUA_QP_ATTR_CUR_STATE;

	if (t->to == SKUA_QPS_RTS)
		may |= SKUA_QP_ATTR_RATE_LIMIT;
	if (t->to == SKUA_QPS_RTR && t->needs & SKUA_QP_ATTR_AV)
		may |= SKUA_QP_ATTR_ECE;
	return may;
}

static void every_transition(struct world *w, struct node *n, uint32_t qpn, uint8_t type)
{
	static const uint8_t states[] = { SKUA_QPS_RESET, SKUA_QPS_INIT, SKUA_QPS_RTR, SKUA_QPS_RTS,
					  SKUA_QPS_SQD, SKUA_QPS_SQE, SKUA_QPS_ERR };

	for (size_t i = 0; i < sizeof(states); i++) {
		uint8_t from = states[i];

		if ((from == SKUA_QPS_SQD && !services[type].sqd) ||
		    (from == SKUA_QPS_SQE && !services[type].sqe))
			continue;
		for (uint8_t to = 0; to < 9; to++) {
			const struct transition *t = look_up(type, from, to);
			uint32_t mask = (t ? t->needs : 0) | BIT_STATE;

			bring(w, n, qpn, type, from);
			if (change(w, n, qpn, mask, from, to) != (t ? SKUA_CMD_OK : SKUA_CMD_BAD_STATE))
				fail_msg("from %u to %u", from, to);
			assert_int_equal(qp_state(w, n, qpn), t ? to : from);
			for (uint32_t bit = 2; t && bit < 0x200000; bit <<= 1) {
				bool fine = may_have(t) & bit;

				bring(w, n, qpn, type, from);
				if (change(w, n, qpn, mask ^ bit, from, to) !=
				    (fine ? SKUA_CMD_OK : SKUA_CMD_BAD_PARAM))
					fail_msg("from %u to %u, attribute 0x%x", from, to, bit);
				assert_int_equal(qp_state(w, n, qpn), fine ? to : from);
			}
			/* Not the state that the caller believes in. */
			bring(w, n, qpn, type, from);
			assert_int_equal(change(w, n, qpn, mask | SKUA_QP_ATTR_CUR_STATE, from ^ 1, to),
					 SKUA_CMD_BAD_STATE);
		}
	}
}

static void transitions_of_rc(void **state)
{
	struct world *w = *state;

	every_transition(w, &w->n[0], w->n[0].qpn, SKUA_QPT_RC);
}

static void transitions_of_eth(void **state)
{
	struct world *w = *state;

	eth_queues(w, &w->n[0]);
	every_transition(w, &w->n[0], w->n[0].qpn, SKUA_QPT_ETH);
}

static void transitions_of_uc(void **state)
{
	struct world *w = *state;
	struct skua_cmd cmd;

	new_queues(&w->n[0]);
	cmd = create_qp_cmd(&w->n[0]);
	cmd.create_qp.type = SKUA_QPT_UC;
	w->n[0].qpn = must(w, &w->n[0], cmd);
	every_transition(w, &w->n[0], w->n[0].qpn, SKUA_QPT_UC);
}

static void transitions_of_ud(void **state)
{
	struct world *w = *state;

	for (uint8_t type = SKUA_QPT_UD; type <= SKUA_QPT_GSI; type++) {
		ud_queues(w, &w->n[0], type, SKUA_QPS_RESET);
		every_transition(w, &w->n[0], w->n[0].qpn, type);
	}
}

/* From a state to itself: RESET and ERR are entered by name only. */
static void without_state_a_qp_stays(void **state)
{
	static const uint8_t states[] = { SKUA_QPS_RESET, SKUA_QPS_ERR };
	static const uint32_t masks[] = { 0, SKUA_QP_ATTR_CUR_STATE };
	struct world *w = *state;
	struct node *n = &w->n[0];

	for (size_t i = 0; i < sizeof(states); i++) {
		for (size_t m = 0; m < 2; m++) {
			struct skua_cmd cmd = modify_cmd(n->qpn, masks[m], (struct skua_qp_attr){ .cur_state = states[i] });

			must(w, n, state_cmd(n->qpn, SKUA_QPS_RESET));
			if (states[i] == SKUA_QPS_ERR) {
				must(w, n, init_cmd(n->qpn));
				must(w, n, state_cmd(n->qpn, SKUA_QPS_ERR));
			}
			assert_int_equal(command(w, n, &cmd), SKUA_CMD_BAD_PARAM);
			must(w, n, state_cmd(n->qpn, states[i]));
		}
	}
}

/* One attribute wrong, of a transition that takes it. */
static void values(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_cmd ipv6 = CMD(SKUA_CMD_SET_GID, .set_gid = {
		.gid = { 0xfe, 0x80, [15] = 1 }, .mac = { 2, 0, 0, 0, 0, 1 },
		.vlan = htole16(SKUA_VLAN_NONE), .index = htole16(5) });

	ipv6.hdr.port = 1;
	must(w, n, ipv6);
#define WRONG(...) WRONG_(__VA_ARGS__)
#define WRONG_(from, to, needs, ...) do {				\
	struct skua_qp_attr attr_ = good(&w->n[1]), *a = &attr_;		\
	struct skua_cmd cmd_;						\
									\
	bring(w, n, n->qpn, SKUA_QPT_RC, from);				\
	a->state = to;							\
	__VA_ARGS__;							\
	cmd_ = modify_cmd(n->qpn, (needs) | BIT_STATE, *a);		\
	if (command(w, n, &cmd_) != SKUA_CMD_BAD_PARAM)			\
		fail_msg("%s", #__VA_ARGS__);				\
	assert_int_equal(qp_state(w, n, n->qpn), from);			\
} while (0)
#define TO_INIT SKUA_QPS_RESET, SKUA_QPS_INIT, INIT_NEEDS
#define TO_RTR	SKUA_QPS_INIT, SKUA_QPS_RTR, RTR_NEEDS
#define TO_RTS	SKUA_QPS_RTR, SKUA_QPS_RTS, RTS_NEEDS
	WRONG(TO_INIT, a->pkey_index = htole16(1));
	WRONG(TO_INIT, a->access = htole32(SKUA_ACCESS_LOCAL_WRITE));
	WRONG(TO_INIT, a->access = htole32(0x10));
	WRONG(TO_INIT, a->sq_draining = 1);
	WRONG(TO_INIT, a->rsvd0 = 1);
	WRONG(TO_INIT, a->rsvd1 = 1);
	WRONG(TO_INIT, a->av.rsvd = 1);
	WRONG(TO_INIT, a->rsvd2[10] = 1);
	WRONG(TO_INIT, a->rsvd3[31] = 1);
	WRONG(TO_RTR, a->path_mtu = 0);
	WRONG(TO_RTR, a->path_mtu = 6);
	WRONG(TO_RTR, a->min_rnr_timer = 32);
	WRONG(TO_RTR, a->rq_psn = htole32(1 << 24));
	WRONG(TO_RTR, a->dest_qpn = htole32(1 << 24));
	WRONG(TO_RTR, a->max_dest_rd_atomic = htole16(129));
	WRONG(TO_RTR, a->av.sgid_index = 1);		/* empty */
	WRONG(TO_RTR, a->av.sgid_index = 1, a->av.dgid[10] = 0);
	WRONG(TO_RTR, a->av.sgid_index = 255);
	WRONG(TO_RTR, a->av.sgid_index = 5);		/* IPv6, and the peer is not */
	WRONG(TO_RTR, memset(a->av.dgid, 0, 16));
	WRONG(TO_RTR, a->av.sgid_index = 5, memset(a->av.dgid, 0, 16));
	WRONG(TO_RTR, a->av.dgid[10] = 0);		/* IPv6, and we are not */
	WRONG(TO_RTR, memset(a->av.dmac, 0, 6));
	WRONG(TO_RTR, a->av.dmac[0] |= 1);
	WRONG(TO_RTR, a->av.sl = 8);
	WRONG(TO_RTR, a->av.flow_label = htole32(1 << 20));
	WRONG(TO_RTS, a->timeout = 32);
	WRONG(TO_RTS, a->retry_cnt = 8);
	WRONG(TO_RTS, a->rnr_retry = 8);
	WRONG(TO_RTS, a->sq_psn = htole32(1 << 24));
	WRONG(TO_RTS, a->max_rd_atomic = htole16(129));
}

static void rights_of_a_feature_that_was_not_accepted(void **state)
{
	struct world *w = world_create_with(false, ~(1ull << SKUA_F_ATOMIC));
	struct node *n = &w->n[0];
	struct skua_cmd cmd = modify_cmd(n->qpn, SKUA_QP_ATTR_ACCESS, (struct skua_qp_attr){
		.access = htole32(SKUA_ACCESS_REMOTE_ATOMIC) });

	(void)state;
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_BAD_PARAM);
	world_destroy(w);
}

/* What was given comes back, and RESET forgets it. */
static void attributes_in_force(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0], *b = &w->n[1];
	struct skua_qp_attr *attr, zero = { 0 };

	post(n, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, n->buf, 5000, b->buf, b->key, 0);
	expect(w, n, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	attr = query(w, n, object_cmd(SKUA_CMD_QUERY_QP, n->qpn), sizeof(*attr));
	assert_int_equal(attr->state, SKUA_QPS_RTS);
	assert_int_equal(attr->cur_state, SKUA_QPS_RTS);
	assert_int_equal(attr->sq_draining, 0);
	assert_int_equal(attr->path_mtu, 3);
	assert_int_equal(attr->timeout, 14);
	assert_int_equal(attr->retry_cnt, 7);
	assert_int_equal(attr->rnr_retry, 2);
	assert_int_equal(attr->min_rnr_timer, 12);
	assert_int_equal(le32toh(attr->dest_qpn), b->qpn);
	assert_int_equal(le32toh(attr->sq_psn), (FIRST_PSN + 5) & PSN_MASK);
	assert_int_equal(le32toh(attr->rq_psn), FIRST_PSN);
	assert_int_equal(le16toh(attr->max_rd_atomic), 4);
	assert_int_equal(le16toh(attr->max_dest_rd_atomic), 4);
	assert_memory_equal(attr->av.dgid, b->gid, 16);
	must(w, n, state_cmd(n->qpn, SKUA_QPS_RESET));
	attr = query(w, n, object_cmd(SKUA_CMD_QUERY_QP, n->qpn), sizeof(*attr));
	assert_memory_equal(attr, &zero, sizeof(zero));
}

/* SQD */

static uint8_t sq_draining(struct world *w, struct node *n)
{
	struct skua_qp_attr *attr = query(w, n, object_cmd(SKUA_CMD_QUERY_QP, n->qpn), sizeof(*attr));

	return attr->sq_draining;
}

static struct skua_cmd to_sqd(struct node *n)
{
	return modify_cmd(n->qpn, SKUA_QP_ATTR_STATE | SKUA_QP_ATTR_SQD_EVENT,
			  (struct skua_qp_attr){ .state = SKUA_QPS_SQD });
}

static void the_queue_is_drained(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cmd cmd;

	post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 8, 0, 0, 0);	/* waits for a receive */
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 8, b->buf, b->key, 0);
	settle(w);
	must(w, a, to_sqd(a));
	post(a, SKUA_WQE_NOP, SKUA_WQE_SIGNALED, 0, 0, 0, 0, 0);		/* not begun */
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 8, b->buf, b->key, 0);
	pass(w, 1000000);
	expect_none(w, a);
	expect_no_event(w, a);
	assert_int_equal(sq_draining(w, a), 1);
	for (uint8_t to = SKUA_QPS_RTS; to <= SKUA_QPS_SQD; to++) {
		cmd = state_cmd(a->qpn, to);
		assert_int_equal(command(w, a, &cmd), SKUA_CMD_BAD_STATE);
	}
	post_recv(b, b->buf, 8);
	pass(w, 1000000);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	expect_none(w, a);
	expect_event(w, a, SKUA_EVENT_SQ_DRAINED, a->qpn);
	expect_no_event(w, a);
	assert_int_equal(sq_draining(w, a), 0);
	/* The responder runs, and what is posted is received. */
	post_recv(a, a->buf, 8);
	post(b, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, b->buf, 8, 0, 0, 0);
	expect(w, a, SKUA_CQE_RECV, SKUA_CQE_SUCCESS);
	must(w, a, modify_cmd(a->qpn, SKUA_QP_ATTR_TIMEOUT | SKUA_QP_ATTR_MAX_DEST_RD_ATOMIC,
			      (struct skua_qp_attr){ .timeout = 3, .max_dest_rd_atomic = htole16(9) }));
	pass(w, 100000000);
	expect_none(w, a);
	must(w, a, state_cmd(a->qpn, SKUA_QPS_RTS));
	expect(w, a, SKUA_CQE_NOP, SKUA_CQE_SUCCESS);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	expect_no_event(w, a);
	/* The ring is looked at, and rung, as before. */
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 8, b->buf, b->key, 0);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
}

/* Nothing under way: drained at once. Without the wish there is no event. */
static void an_idle_queue_is_drained_at_once(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];

	for (int i = 0; i < 3; i++) {
		must(w, a, to_sqd(a));
		expect_event(w, a, SKUA_EVENT_SQ_DRAINED, a->qpn);
		assert_int_equal(sq_draining(w, a), 0);
		must(w, a, state_cmd(a->qpn, SKUA_QPS_RTS));
	}
	must(w, a, state_cmd(a->qpn, SKUA_QPS_SQD));
	assert_int_equal(sq_draining(w, a), 0);
	expect_no_event(w, a);
}

/* A message that was begun is sent to its end, and no other. */
static void a_message_under_way_is_ended(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	fill(a, 2 << 20, 3);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 2 << 20, b->buf, b->key, 0);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 8, b->buf, b->key, 0);
	engine_step(w->engines[0]);
	assert_null(poll_cq(a));
	must(w, a, to_sqd(a));
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	assert_memory_equal(at(a, a->buf), at(b, b->buf), 2 << 20);
	expect_none(w, a);
	expect_event(w, a, SKUA_EVENT_SQ_DRAINED, a->qpn);
	must(w, a, state_cmd(a->qpn, SKUA_QPS_RTS));
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
}

/* What is lost while it drains is sent again. */
static void losses_are_repaired_while_it_drains(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	must(w, b, port_cmd(SKUA_PORT_SET_FLAGS, 0));
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 8, b->buf, b->key, 0);
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, 8, b->buf, b->key, 0);
	settle(w);
	must(w, a, to_sqd(a));
	must(w, b, port_cmd(SKUA_PORT_SET_FLAGS, SKUA_PORT_F_ENABLE | SKUA_PORT_F_ROCE));
	expect_no_event(w, a);
	pass(w, 4096ull << 14);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	expect_event(w, a, SKUA_EVENT_SQ_DRAINED, a->qpn);
}

static void from_sqd_to_err(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];

	post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 8, 0, 0, 0);
	settle(w);
	must(w, a, to_sqd(a));
	post(a, SKUA_WQE_NOP, SKUA_WQE_SIGNALED, 0, 0, 0, 0, 0);
	settle(w);
	must(w, a, state_cmd(a->qpn, SKUA_QPS_ERR));
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_WR_FLUSH_ERR);
	expect(w, a, SKUA_CQE_NOP, SKUA_CQE_WR_FLUSH_ERR);
	assert_int_equal(sq_draining(w, a), 0);
	expect_no_event(w, a);
}

static void a_fault_while_it_drains(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];

	post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 8, 0, 0, 0);
	settle(w);
	must(w, a, to_sqd(a));
	post(a, SKUA_WQE_NOP, SKUA_WQE_SIGNALED, 0, 0, 0, 0, 0);
	for (int i = 0; i < 3; i++)
		pass(w, 1000000);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_RNR_RETRY_EXC_ERR);
	expect(w, a, SKUA_CQE_NOP, SKUA_CQE_WR_FLUSH_ERR);
	expect_no_event(w, a);
}

static void from_sqd_to_reset(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 8, 0, 0, 0);
	settle(w);
	must(w, a, to_sqd(a));
	reconnect(w, a, b);
	reconnect(w, b, a);
	expect_none(w, a);
	expect_no_event(w, a);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 8, b->buf, b->key, 0);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
}

/* Until the completion is there, and no step longer. */
static void change_state(struct world *w, struct node *n, struct skua_cmd cmd)
{
	uint32_t slot = n->cmd_pi & ((1 << LOG_CMD) - 1);
	const struct skua_cmd_cpl *cpl = at(n, n->cmd_cpl + slot * sizeof(*cpl));
	uint8_t before = cpl->flags;

	settle(w);
	cmd.hdr.id = htole32(n->cmd_pi);
	memcpy(at(n, n->cmd_ring + slot * sizeof(cmd)), &cmd, sizeof(cmd));
	host_store32(&((struct skua_dbr *)at(n, n->cmd_dbr))->pi, ++n->cmd_pi);
	ring(n, SKUA_DB_CMD, 0, n->cmd_pi);
	while (cpl->flags == before)
		assert_true(engine_step(n->engine));
	assert_int_equal(cpl->status, SKUA_CMD_OK);
}

/* What comes behind the completion of MODIFY_QP meets the new state: a packet, or a WQE. */
static void a_change_has_taken_effect_when_it_completes(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	const struct device_stats *stats = &b->dev->stats;

	post_recv(b, b->buf, 64);
	change_state(w, b, state_cmd(b->qpn, SKUA_QPS_ERR));
	arrive_only(b, a, train_from(b, TRAIN_SEND, FIRST_PSN));
	assert_int_equal(stats->rdma_rx_bad_qp, 1);
	expect(w, b, SKUA_CQE_RECV, SKUA_CQE_WR_FLUSH_ERR);
	reconnect(w, b, a);
	post_recv(b, b->buf, 64);
	change_state(w, b, state_cmd(b->qpn, SKUA_QPS_RESET));
	arrive_only(b, a, train_from(b, TRAIN_SEND, FIRST_PSN));
	change_state(w, b, init_cmd(b->qpn));
	arrive_only(b, a, train_from(b, TRAIN_SEND, FIRST_PSN));
	assert_int_equal(stats->rdma_rx_bad_qp, 3);
	change_state(w, b, rtr_cmd(b->qpn, a, a->qpn));
	arrive_only(b, a, train_from(b, TRAIN_SEND, FIRST_PSN));
	assert_int_equal(stats->rdma_rx_bad_qp, 3);
	expect(w, b, SKUA_CQE_RECV, SKUA_CQE_SUCCESS);
	reconnect(w, b, a);

	memset(at(b, b->buf), 0, 8);
	memset(at(a, a->buf), 1, 8);
	change_state(w, a, to_sqd(a));
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 8, b->buf, b->key, 0);
	expect_none(w, a);
	change_state(w, a, state_cmd(a->qpn, SKUA_QPS_RTS));
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	assert_memory_equal(at(b, b->buf), at(a, a->buf), 8);
	change_state(w, a, state_cmd(a->qpn, SKUA_QPS_ERR));
	memset(at(a, a->buf), 2, 8);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 8, b->buf, b->key, 0);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_WR_FLUSH_ERR);
	assert_int_equal(*(uint8_t *)at(b, b->buf), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STEPPED(transitions_of_rc, "QPS-1 QPS-3"),
		STEPPED(transitions_of_uc, "QPS-1 QPS-3 QPS-12"),
		STEPPED(transitions_of_ud, "QPS-1 QPS-3 QPS-12"),
		STEPPED(transitions_of_eth, "QPS-2 QPS-3"),
		STEPPED(without_state_a_qp_stays, "QPS-1 QPS-3"),
		STEPPED(values, "QPS-4 GEN-2"),
		{ "FEA-2: rights_of_a_feature_that_was_not_accepted",
		  rights_of_a_feature_that_was_not_accepted, NULL, NULL, NULL },
		STEPPED(attributes_in_force, "QP-6 QPS-7"),
		STEPPED(the_queue_is_drained, "QPS-10 QPS-11 QPS-3"),
		STEPPED(an_idle_queue_is_drained_at_once, "QPS-11"),
		STEPPED(a_message_under_way_is_ended, "QPS-10 QPS-11"),
		STEPPED(losses_are_repaired_while_it_drains, "QPS-10 QPS-11"),
		STEPPED(from_sqd_to_err, "QPS-11 ORD-7"),
		STEPPED(a_fault_while_it_drains, "QPS-11"),
		STEPPED(from_sqd_to_reset, "QPS-7"),
		STEPPED(a_change_has_taken_effect_when_it_completes, "QPS-6"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
