// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Extended reliable connections: an XRC_INI QP of node a, an XRC_TGT QP of node b, and two homes there: SRQs of the same
 * domain, each with a PD, a memory region and a CQ of its own.
 */
#include "core/device.h"
#include "harness/harness.h"
#include "harness/lossy.h"
#include "harness/storm.h"
#include "harness/initiator.h"

#define HOMES		2
#define SRQ_HANDLE(i)	(0x5125125000ull + (i))
#define MTU		1024u
#define RIGHTS		(SKUA_ACCESS_REMOTE_WRITE | SKUA_ACCESS_REMOTE_READ | SKUA_ACCESS_REMOTE_ATOMIC)
#define HOME_SIZE	(1u << 20)

struct home {
	uint32_t pdn, key, srqn;
	struct queues rq;
	struct completions cq;
	uint64_t mem;
};

struct conn {
	struct world *w;
	struct node *a, *b;
	uint32_t xrcdn, target;
	struct home home[HOMES];
};

static struct skua_cmd create_srq_cmd(struct conn *c, int i)
{
	struct home *h = &c->home[i];
	struct skua_cmd cmd = CMD(SKUA_CMD_CREATE_SRQ, .create_srq = {
		.pdn = htole32(h->pdn), .log_size = LOG_RQ, .log_stride = 6, .srq_handle = htole64(SRQ_HANDLE(i)),
		.dbr_addr = htole64(h->rq.rq_dbr), .xrcdn = htole32(c->xrcdn), .cqn = htole32(h->cq.cqn),
		.ring = list(h->rq.rq, 64u << LOG_RQ) });

	return cmd;
}

/* Its objects, in rings that are empty. */
static void create_home(struct conn *c, int i)
{
	struct node *b = c->b;
	struct home *h = &c->home[i];
	struct skua_cmd pd = CMD(SKUA_CMD_CREATE_PD), mr;
	struct completions cq;

	h->pdn = must(c->w, b, pd);
	cq = use_completions(b, h->cq);
	b->cqn = must(c->w, b, create_cq_cmd(b));
	h->cq = use_completions(b, cq);
	mr = create_mr_cmd(b);
	mr.create_mr.pdn = htole32(h->pdn);
	mr.create_mr.access = htole32(SKUA_ACCESS_LOCAL_WRITE | RIGHTS);
	mr.create_mr.iova = htole64(h->mem);
	mr.create_mr.length = htole64(HOME_SIZE);
	mr.create_mr.pages = list(h->mem, HOME_SIZE);
	h->key = must(c->w, b, mr);
	h->srqn = must(c->w, b, create_srq_cmd(c, i));
}

static void make_home(struct conn *c, int i)
{
	struct home *h = &c->home[i];

	h->rq = use_queues(c->b, new_queues(c->b));
	h->cq = use_completions(c->b, new_completions(c->b, LOG_CQ));
	h->mem = c->b->buf + i * HOME_SIZE;
	create_home(c, i);
}

static struct skua_cmd target_init(const struct conn *c)
{
	struct skua_cmd cmd = init_cmd(c->target);

	cmd.modify_qp.attr.access = htole32(RIGHTS);
	return cmd;
}

static void connect(struct conn *c)
{
	must(c->w, c->a, init_cmd(c->a->qpn));
	must(c->w, c->a, xrc_ini_rtr_cmd(c->a->qpn, c->b, c->target));
	must(c->w, c->a, rts_cmd(c->a->qpn));
	must(c->w, c->b, target_init(c));
	must(c->w, c->b, rtr_cmd(c->target, c->a, c->a->qpn));
	must(c->w, c->b, xrc_tgt_rts_cmd(c->target));
}

static void disconnect(struct conn *c)
{
	must(c->w, c->a, state_cmd(c->a->qpn, SKUA_QPS_RESET));
	host_store32(at(c->a, c->a->sq_dbr), 0);
	c->a->sq_pi = 0;
	must(c->w, c->b, state_cmd(c->target, SKUA_QPS_RESET));
}

static struct conn *conn_create(void)
{
	struct conn *c = calloc(1, sizeof(*c));
	struct skua_cmd xrcd = CMD(SKUA_CMD_CREATE_XRCD);

	c->w = world_create(false);
	c->a = &c->w->n[0];
	c->b = &c->w->n[1];
	c->xrcdn = must(c->w, c->b, xrcd);
	for (int i = 0; i < HOMES; i++)
		make_home(c, i);
	c->target = must(c->w, c->b, xrc_tgt_cmd(c->xrcdn));
	new_queues(c->a);
	c->a->qpn = must(c->w, c->a, xrc_ini_cmd(c->a));
	connect(c);
	fill(c->a, HOME_SIZE, 1);
	return c;
}

static int setup(void **state)
{
	*state = conn_create();
	return 0;
}

static int end(void **state)
{
	struct conn *c = *state;

	world_destroy(c->w);
	free(c);
	return 0;
}

static void use(struct conn *c, struct home *h)
{
	struct queues rq = use_queues(c->b, h->rq);
	struct completions cq = use_completions(c->b, h->cq);

	h->rq = rq;
	h->cq = cq;
}

/* Where the entry with this cookie goes. */
static uint64_t place(const struct home *h, uint32_t cookie)
{
	return h->mem + HOME_SIZE / 2 + cookie * 4096ull;
}

static void post_entries(struct conn *c, int i, uint32_t count)
{
	struct home *h = &c->home[i];
	uint32_t key = c->b->key;

	use(c, h);
	c->b->key = h->key;
	while (count--)
		post_recv(c->b, place(h, c->b->rq_pi), 4096);
	c->b->key = key;
	use(c, h);
}

/* The next CQE of a home. */
static struct skua_cqe *next_cqe(struct conn *c, int i)
{
	struct skua_cqe *cqe;

	settle(c->w);
	use(c, &c->home[i]);
	cqe = poll_cq(c->b);
	use(c, &c->home[i]);
	return cqe;
}

static void expect_received(struct conn *c, int i, uint32_t cookie, uint8_t status)
{
	struct skua_cqe *cqe = next_cqe(c, i);

	assert_non_null(cqe);
	assert_int_equal(cqe->opcode & 0x80, SKUA_CQE_RECV & 0x80);
	assert_int_equal(cqe->status, status);
	assert_int_equal(le32toh(cqe->cookie), cookie);
	assert_int_equal(le32toh(cqe->qpn), c->target);
	assert_int_equal(le64toh(cqe->qp_handle), SRQ_HANDLE(i));
	assert_int_equal(cqe->flags & SKUA_CQE_FROM_SRQ, SKUA_CQE_FROM_SRQ);
}

static void expect_nothing(struct conn *c)
{
	for (int i = 0; i < HOMES; i++)
		assert_null(next_cqe(c, i));
}

/* A request for an SRQ, that names memory of a home's with its key, if it names some. */
static void request(struct conn *c, uint8_t opcode, uint32_t srqn, const struct home *h, uint32_t len)
{
	struct {
		struct skua_wqe_ctrl c;
		struct skua_wqe_xrc x;
		struct skua_wqe_rdma r;
		struct skua_sge s;
		uint8_t rest[64];
	} w = {
		.c = { opcode, SKUA_WQE_SIGNALED, 1, len > 0, htole32(c->a->sq_pi) },
		.x.srqn = htole32(srqn), .r = { htole64(h->mem), htole32(h->key), 0 },
	};
	struct skua_sge sge = { htole64(c->a->buf), htole32(len), htole32(c->a->key) };

	if (opcode == SKUA_WQE_CMP_SWAP || opcode == SKUA_WQE_FETCH_ADD) {
		w.c.nblocks = 2;
		w.s = (struct skua_sge){ htole64(2), 0, 0 };
		memcpy(w.rest, &sge, sizeof(sge));
	} else if (opcode >= SKUA_WQE_WRITE && opcode <= SKUA_WQE_READ) {
		w.s = sge;
	} else {
		memcpy(&w.r, &sge, sizeof(sge));
	}
	post_blocks(c->a, &w, w.c.nblocks);
	settle(c->w);
}

static void send(struct conn *c, int i, uint32_t len)
{
	request(c, SKUA_WQE_SEND, c->home[i].srqn, &c->home[i], len);
}

static void expect_sent(struct conn *c, uint8_t status)
{
	struct skua_cqe *cqe = await_cqe(c->w, c->a);

	assert_int_equal(cqe->status, status);
}

static void goes_on(struct conn *c)
{
	disconnect(c);
	connect(c);
	for (int i = 0; i < HOMES; i++) {
		request(c, SKUA_WQE_WRITE, c->home[i].srqn, &c->home[i], 3000);
		expect_sent(c, SKUA_CQE_SUCCESS);
	}
}

/* A packet for the target that the peer did not send. */
static struct train packet(const struct conn *c, enum train_op op, uint32_t psn, uint32_t srqn)
{
	struct train t = train_from(c->b, op, psn);

	t.transport = TRANSPORT_XRC;
	t.dest_qpn = c->target;
	t.srqn = srqn;
	return t;
}

/* The first packet of a longer SEND; it takes an entry. */
static void begin_message(struct conn *c, int i)
{
	struct seglist payload = { 1, MTU, { { at(c->a, c->a->buf), MTU } } };
	struct train t = packet(c, TRAIN_SEND, FIRST_PSN, c->home[i].srqn);

	t.payload = &payload;
	t.last = false;
	t.ack_req = false;
	arrive(c->w, c->b, c->a, t);
}

/* And its last. */
static void end_message(struct conn *c, uint32_t srqn)
{
	struct seglist payload = { 1, 100, { { (uint8_t *)at(c->a, c->a->buf) + MTU, 100 } } };
	struct train t = packet(c, TRAIN_SEND, FIRST_PSN + 1, srqn);

	t.payload = &payload;
	t.first = false;
	arrive(c->w, c->b, c->a, t);
}

static void queues_that_may_be(void **state)
{
	struct conn *c = *state;
	struct world *w = c->w;
	struct node *b = c->b;
	struct skua_cmd cmd;

	new_queues(b);
#define TRY(status_, good, ...) do {					\
	cmd = good;							\
	__VA_ARGS__;							\
	assert_int_equal(command(w, b, &cmd), status_);			\
} while (0)
	TRY(SKUA_CMD_BAD_PARAM, xrc_ini_cmd(b), cmd.create_qp.recv_cqn = htole32(b->cqn));
	TRY(SKUA_CMD_BAD_PARAM, xrc_ini_cmd(b), cmd.create_qp.rq = list(b->rq, 64u << LOG_RQ);
	    cmd.create_qp.log_rq_size = LOG_RQ; cmd.create_qp.log_rq_stride = 6;
	    cmd.create_qp.rq_dbr_addr = htole64(b->rq_dbr));
	TRY(SKUA_CMD_BAD_PARAM, xrc_ini_cmd(b), cmd.create_qp.srqn = htole32(c->home[0].srqn));
	TRY(SKUA_CMD_BAD_PARAM, xrc_ini_cmd(b), cmd.create_qp.xrcdn = htole32(c->xrcdn));
	TRY(SKUA_CMD_BAD_OBJECT, xrc_ini_cmd(b), cmd.create_qp.send_cqn = 0);
	TRY(SKUA_CMD_BAD_OBJECT, xrc_ini_cmd(b), cmd.create_qp.pdn = 0);
	TRY(SKUA_CMD_BAD_PARAM, create_qp_cmd(b), cmd.create_qp.xrcdn = htole32(c->xrcdn));
	TRY(SKUA_CMD_BAD_OBJECT, create_qp_cmd(b), cmd.create_qp.recv_cqn = 0);
	TRY(SKUA_CMD_BAD_OBJECT, xrc_tgt_cmd(c->xrcdn), cmd.create_qp.xrcdn = htole32(c->xrcdn + 1));
	TRY(SKUA_CMD_BAD_OBJECT, xrc_tgt_cmd(c->xrcdn), cmd.create_qp.xrcdn = 0);
	TRY(SKUA_CMD_BAD_PARAM, xrc_tgt_cmd(c->xrcdn), cmd.create_qp.pdn = htole32(b->pdn));
	TRY(SKUA_CMD_BAD_PARAM, xrc_tgt_cmd(c->xrcdn), cmd.create_qp.send_cqn = htole32(b->cqn));
	TRY(SKUA_CMD_BAD_PARAM, xrc_tgt_cmd(c->xrcdn), cmd.create_qp.recv_cqn = htole32(b->cqn));
	TRY(SKUA_CMD_BAD_PARAM, xrc_tgt_cmd(c->xrcdn), cmd.create_qp.flags = htole32(SKUA_QP_PRIVILEGED));
	TRY(SKUA_CMD_BAD_PARAM, xrc_tgt_cmd(c->xrcdn), cmd.create_qp.db_page = htole32(1));
	TRY(SKUA_CMD_BAD_PARAM, xrc_tgt_cmd(c->xrcdn), cmd.create_qp.srqn = htole32(c->home[0].srqn));
	TRY(SKUA_CMD_BAD_PARAM, xrc_tgt_cmd(c->xrcdn), cmd.create_qp.sq = list(b->sq, 64u << LOG_SQ);
	    cmd.create_qp.log_sq_blocks = LOG_SQ; cmd.create_qp.sq_dbr_addr = htole64(b->sq_dbr));
	/* Nor does a QP have an XRC SRQ. */
	cmd = xrc_ini_cmd(b);
	cmd.create_qp.type = SKUA_QPT_RC;
	cmd.create_qp.recv_cqn = htole32(b->cqn);
	cmd.create_qp.srqn = htole32(c->home[0].srqn);
	assert_int_equal(command(w, b, &cmd), SKUA_CMD_BAD_PARAM);
}

static void bad_srqs(void **state)
{
	struct conn *c = *state;
	struct world *w = c->w;
	struct node *b = c->b;
	struct skua_cmd cmd;

	TRY(SKUA_CMD_BAD_PARAM, create_srq_cmd(c, 0), cmd.create_srq.xrcdn = 0);
	TRY(SKUA_CMD_BAD_OBJECT, create_srq_cmd(c, 0), cmd.create_srq.xrcdn = htole32(c->xrcdn + 1));
	TRY(SKUA_CMD_BAD_OBJECT, create_srq_cmd(c, 0), cmd.create_srq.cqn = 0);
	TRY(SKUA_CMD_BAD_OBJECT, create_srq_cmd(c, 0), cmd.create_srq.cqn = htole32(c->home[1].cq.cqn + 1));
}

static void without_the_feature_there_are_none(void **state)
{
	static const uint64_t without[] = { SKUA_F_XRC, SKUA_F_SRQ };

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		struct world *w = world_create_with(false, ~(1ull << without[i]));
		struct node *b = &w->n[1];
		struct conn c = { .w = w, .b = b, .xrcdn = 1 };
		struct skua_device_caps *caps = query(w, b, (struct skua_cmd)CMD(SKUA_CMD_QUERY_DEVICE), sizeof(*caps));
		struct skua_cmd cmd = CMD(SKUA_CMD_CREATE_XRCD);

		assert_int_equal(caps->max_xrcd, 0);
		new_queues(b);
		assert_int_equal(command(w, b, &cmd), SKUA_CMD_BAD_OPCODE);
		cmd = object_cmd(SKUA_CMD_DESTROY_XRCD, 1);
		assert_int_equal(command(w, b, &cmd), SKUA_CMD_BAD_OPCODE);
		TRY(SKUA_CMD_BAD_PARAM, xrc_tgt_cmd(c.xrcdn), (void)cmd);
		TRY(SKUA_CMD_BAD_OBJECT, xrc_ini_cmd(b), (void)cmd);
		TRY(SKUA_CMD_BAD_PARAM, xrc_ini_cmd(b), cmd.create_qp.recv_cqn = htole32(b->cqn));
		world_destroy(w);
	}
}

static void what_is_used_is_busy(void **state)
{
	struct conn *c = *state;
	struct world *w = c->w;
	struct node *b = c->b;
	struct skua_cmd xrcd = object_cmd(SKUA_CMD_DESTROY_XRCD, c->xrcdn), cq, pd;

	must(w, b, object_cmd(SKUA_CMD_DESTROY_QP, c->target));
	for (int i = 0; i < HOMES; i++) {
		cq = object_cmd(SKUA_CMD_DESTROY_CQ, c->home[i].cq.cqn);
		pd = object_cmd(SKUA_CMD_DESTROY_PD, c->home[i].pdn);
		assert_int_equal(command(w, b, &xrcd), SKUA_CMD_BUSY);
		assert_int_equal(command(w, b, &cq), SKUA_CMD_BUSY);
		assert_int_equal(command(w, b, &pd), SKUA_CMD_BUSY);
		must(w, b, object_cmd(SKUA_CMD_DESTROY_SRQ, c->home[i].srqn));
		must(w, b, cq);
		must(w, b, object_cmd(SKUA_CMD_DESTROY_MR, c->home[i].key));
		must(w, b, pd);
	}
	c->target = must(w, b, xrc_tgt_cmd(c->xrcdn));
	assert_int_equal(command(w, b, &xrcd), SKUA_CMD_BUSY);
	must(w, b, object_cmd(SKUA_CMD_DESTROY_QP, c->target));
	must(w, b, xrcd);
	assert_int_equal(command(w, b, &xrcd), SKUA_CMD_BAD_OBJECT);
}

static void the_limit_is_served(void **state)
{
	struct conn *c = *state;
	struct skua_device_caps *caps = query(c->w, c->b, (struct skua_cmd)CMD(SKUA_CMD_QUERY_DEVICE), sizeof(*caps));
	uint32_t max = le32toh(caps->max_xrcd);
	struct skua_cmd cmd = CMD(SKUA_CMD_CREATE_XRCD);

	for (uint32_t i = 1; i < max; i++)
		must(c->w, c->b, cmd);
	assert_int_equal(command(c->w, c->b, &cmd), SKUA_CMD_NO_RESOURCE);
}

/* Each attribute that @cmd gives is needed; none of @foreign may be given. */
static void needs_all(struct conn *c, struct node *n, struct skua_cmd cmd, uint32_t foreign)
{
	uint32_t mask = le32toh(cmd.modify_qp.mask);

	for (uint32_t bit = 1; bit & SKUA_QP_ATTR_MASK; bit <<= 1) {
		struct skua_cmd other = cmd;

		if (bit == SKUA_QP_ATTR_STATE || !(bit & (mask | foreign)))
			continue;
		other.modify_qp.mask = htole32(mask ^ bit);
		assert_int_equal(command(c->w, n, &other), SKUA_CMD_BAD_PARAM);
	}
	must(c->w, n, cmd);
}

#define FOREIGN		(SKUA_QP_ATTR_QKEY | SKUA_QP_ATTR_SQD_EVENT)

static void transitions_of_an_initiator(void **state)
{
	struct conn *c = *state;
	const uint32_t responder = SKUA_QP_ATTR_MAX_DEST_RD_ATOMIC | SKUA_QP_ATTR_MIN_RNR_TIMER;

	must(c->w, c->a, state_cmd(c->a->qpn, SKUA_QPS_RESET));
	needs_all(c, c->a, init_cmd(c->a->qpn), FOREIGN);
	needs_all(c, c->a, xrc_ini_rtr_cmd(c->a->qpn, c->b, c->target), FOREIGN | responder);
	needs_all(c, c->a, rts_cmd(c->a->qpn), FOREIGN | responder);
	needs_all(c, c->a, state_cmd(c->a->qpn, SKUA_QPS_RTS), FOREIGN | responder);
	needs_all(c, c->a, state_cmd(c->a->qpn, SKUA_QPS_SQD), responder);
	settle(c->w);
	needs_all(c, c->a, state_cmd(c->a->qpn, SKUA_QPS_SQD), FOREIGN | responder);
	needs_all(c, c->a, state_cmd(c->a->qpn, SKUA_QPS_RTS), FOREIGN | responder);
	needs_all(c, c->a, state_cmd(c->a->qpn, SKUA_QPS_ERR), FOREIGN);
}

static void transitions_of_a_target(void **state)
{
	struct conn *c = *state;
	const uint32_t requester = SKUA_QP_ATTR_RETRY_CNT | SKUA_QP_ATTR_RNR_RETRY | SKUA_QP_ATTR_MAX_RD_ATOMIC;
	struct skua_cmd cmd = state_cmd(c->target, SKUA_QPS_SQD);

	must(c->w, c->b, state_cmd(c->target, SKUA_QPS_RESET));
	needs_all(c, c->b, target_init(c), FOREIGN);
	needs_all(c, c->b, rtr_cmd(c->target, c->a, c->a->qpn), FOREIGN | requester);
	needs_all(c, c->b, xrc_tgt_rts_cmd(c->target), FOREIGN | requester);
	needs_all(c, c->b, state_cmd(c->target, SKUA_QPS_RTS), FOREIGN | requester);
	assert_int_equal(command(c->w, c->b, &cmd), SKUA_CMD_BAD_STATE);
	needs_all(c, c->b, state_cmd(c->target, SKUA_QPS_ERR), FOREIGN);
}

static void messages_choose_their_srq(void **state)
{
	struct conn *c = *state;

	for (int i = 0; i < HOMES; i++)
		post_entries(c, i, 4);
	for (uint32_t k = 0; k < 4; k++)
		for (int i = 0; i < HOMES; i++) {
			uint32_t len = 1 + 900 * k;

			send(c, i, len);
			expect_sent(c, SKUA_CQE_SUCCESS);
			expect_received(c, i, k, SKUA_CQE_SUCCESS);
			assert_memory_equal(at(c->b, place(&c->home[i], k)), at(c->a, c->a->buf), len);
			expect_nothing(c);
		}
}

static void each_request_names_an_srq(void **state)
{
	struct conn *c = *state;

	for (int i = 0; i < HOMES; i++) {
		struct home *h = &c->home[i];
		uint64_t *word = at(c->b, h->mem);

		request(c, SKUA_WQE_WRITE, h->srqn, h, 5000);
		expect_sent(c, SKUA_CQE_SUCCESS);
		assert_memory_equal(word, at(c->a, c->a->buf), 5000);
		post_entries(c, i, 1);
		request(c, SKUA_WQE_WRITE_IMM, h->srqn, h, 5000);
		expect_sent(c, SKUA_CQE_SUCCESS);
		expect_received(c, i, 0, SKUA_CQE_SUCCESS);
		*word = htole64(40);
		request(c, SKUA_WQE_FETCH_ADD, h->srqn, h, 8);
		expect_sent(c, SKUA_CQE_SUCCESS);
		assert_int_equal(le64toh(*word), 42);
		memset(word, 0x40 + i, 5000);
		request(c, SKUA_WQE_READ, h->srqn, h, 5000);
		expect_sent(c, SKUA_CQE_SUCCESS);
		assert_memory_equal(word, at(c->a, c->a->buf), 5000);
	}
}

/* Of another home of the same domain. */
static void keys_are_those_of_its_pd(void **state)
{
	static const uint8_t opcodes[] = { SKUA_WQE_WRITE, SKUA_WQE_READ, SKUA_WQE_FETCH_ADD };
	struct conn *c = *state;
	uint8_t *word = at(c->b, c->home[1].mem);

	for (unsigned int k = 0; k < sizeof(opcodes); k++) {
		memset(word, 0x77, 8);
		request(c, opcodes[k], c->home[0].srqn, &c->home[1], 8);
		expect_sent(c, SKUA_CQE_REM_ACCESS_ERR);
		expect_event(c->w, c->b, SKUA_EVENT_QP_ACCESS_ERR, c->target);
		expect_no_event(c->w, c->b);
		for (int i = 0; i < 8; i++)
			assert_int_equal(word[i], 0x77);
		goes_on(c);
	}
}

static void an_entry_has_keys_of_the_srq(void **state)
{
	struct conn *c = *state;
	struct home *h = &c->home[0];
	uint32_t key = c->b->key;

	use(c, h);
	c->b->key = c->home[1].key;
	post_recv(c->b, c->home[1].mem, 4096);
	c->b->key = key;
	use(c, h);
	send(c, 0, 100);
	expect_sent(c, SKUA_CQE_REM_OP_ERR);
	expect_received(c, 0, 0, SKUA_CQE_LOC_PROT_ERR);
}

static void the_target_grants_rights(void **state)
{
	struct conn *c = *state;
	struct skua_qp_attr none = { 0 };

	must(c->w, c->b, modify_cmd(c->target, SKUA_QP_ATTR_ACCESS, none));
	request(c, SKUA_WQE_WRITE, c->home[0].srqn, &c->home[0], 8);
	expect_sent(c, SKUA_CQE_REM_ACCESS_ERR);
}

/* An SRQ of another domain, one of none, and none at all. */
static void an_srq_that_is_not_of_the_domain_is_refused(void **state)
{
	struct conn *c = *state;
	struct skua_cmd xrcd = CMD(SKUA_CMD_CREATE_XRCD), srq;
	uint32_t bad[3] = { 0 };

	srq = create_srq_cmd(c, 0);
	srq.create_srq.xrcdn = htole32(must(c->w, c->b, xrcd));
	bad[0] = must(c->w, c->b, srq);
	srq.create_srq.xrcdn = 0;
	srq.create_srq.cqn = 0;
	bad[1] = must(c->w, c->b, srq);
	post_entries(c, 0, 2);
	for (int i = 0; i < 3; i++) {
		static const uint8_t opcodes[] = { SKUA_WQE_SEND, SKUA_WQE_WRITE, SKUA_WQE_READ, SKUA_WQE_CMP_SWAP };

		for (unsigned int k = 0; k < sizeof(opcodes); k++) {
			request(c, opcodes[k], bad[i], &c->home[0], 8);
			expect_sent(c, SKUA_CQE_REM_INV_REQ_ERR);
			expect_event(c->w, c->b, SKUA_EVENT_QP_ACCESS_ERR, c->target);
			expect_no_event(c->w, c->b);
			assert_int_equal(qp_state(c->w, c->b, c->target), SKUA_QPS_ERR);
			goes_on(c);
		}
	}
	expect_nothing(c);
}

static void packets_of_a_message_name_one_srq(void **state)
{
	struct conn *c = *state;

	for (int i = 0; i < HOMES; i++)
		post_entries(c, i, 2);
	begin_message(c, 0);
	end_message(c, c->home[1].srqn);
	expect_event(c->w, c->b, SKUA_EVENT_QP_REQ_ERR, c->target);
	expect_no_event(c->w, c->b);
	expect_received(c, 0, 0, SKUA_CQE_WR_FLUSH_ERR);
	expect_nothing(c);
	goes_on(c);
}

/* A READ for the other SRQ comes between; so do its responses while the message is under way. */
static void reads_have_srqs_of_their_own(void **state)
{
	struct conn *c = *state;

	post_entries(c, 1, 1);
	memset(at(c->b, c->home[0].mem), 0x33, 65536);
	request(c, SKUA_WQE_READ, c->home[0].srqn, &c->home[0], 65536);
	send(c, 1, 3000);
	request(c, SKUA_WQE_READ, c->home[0].srqn, &c->home[0], 65536);
	for (int i = 0; i < 3; i++)
		expect_sent(c, SKUA_CQE_SUCCESS);
	expect_received(c, 1, 0, SKUA_CQE_SUCCESS);
	assert_memory_equal(at(c->a, c->a->buf), at(c->b, c->home[0].mem), 65536);
}

/* What comes before it is answered is for the other SRQ. */
static void a_read_is_answered_with_memory_of_its_own_srq(void **state)
{
	struct conn *c = *state;
	struct train read = packet(c, TRAIN_READ_REQ, FIRST_PSN, c->home[0].srqn);
	struct train write = packet(c, TRAIN_WRITE, FIRST_PSN + 3, c->home[1].srqn);
	struct train atomic = packet(c, TRAIN_FETCH_ADD, FIRST_PSN + 4, c->home[0].srqn);
	uint64_t sent = STAT(c->w, c->b, rdma_tx_packets);

	read.rkey = atomic.rkey = c->home[0].key;
	read.raddr = atomic.raddr = c->home[0].mem;
	read.msg_len = 3000;
	arrive_only(c->b, c->a, read);
	arrive_only(c->b, c->a, write);
	arrive_only(c->b, c->a, atomic);
	write.psn = psn_add(write.psn, 2);
	arrive(c->w, c->b, c->a, write);
	assert_int_equal(qp_state(c->w, c->b, c->target), SKUA_QPS_RTS);
	assert_int_equal(STAT(c->w, c->b, rdma_tx_packets), sent + 5);
}

static void a_repeated_read_of_an_srq_that_went_is_dropped(void **state)
{
	struct conn *c = *state;
	struct train t = packet(c, TRAIN_READ_REQ, FIRST_PSN, c->home[1].srqn);
	uint64_t sent;

	request(c, SKUA_WQE_READ, c->home[1].srqn, &c->home[1], 3000);
	expect_sent(c, SKUA_CQE_SUCCESS);
	t.rkey = c->home[1].key;
	t.raddr = c->home[1].mem;
	t.msg_len = 3000;
	sent = STAT(c->w, c->b, rdma_tx_packets);
	arrive(c->w, c->b, c->a, t);
	assert_int_equal(STAT(c->w, c->b, rdma_tx_packets), sent + 3);
	must(c->w, c->b, object_cmd(SKUA_CMD_DESTROY_SRQ, c->home[1].srqn));
	arrive(c->w, c->b, c->a, t);
	assert_int_equal(STAT(c->w, c->b, rdma_tx_packets), sent + 3);
	assert_int_equal(qp_state(c->w, c->b, c->target), SKUA_QPS_RTS);
}

static void an_empty_one_is_waited_for(void **state)
{
	struct conn *c = *state;

	send(c, 1, 100);
	expect_nothing(c);
	post_entries(c, 1, 1);
	pass(c->w, 10000000);
	expect_received(c, 1, 0, SKUA_CQE_SUCCESS);
	expect_sent(c, SKUA_CQE_SUCCESS);
	assert_int_equal(STAT(c->w, c->b, rnr_nak_sent), 1);
}

static void a_target_in_error_flushes_what_it_took(void **state)
{
	struct conn *c = *state;

	post_entries(c, 0, 2);
	begin_message(c, 0);
	must(c->w, c->b, state_cmd(c->target, SKUA_QPS_ERR));
	expect_received(c, 0, 0, SKUA_CQE_WR_FLUSH_ERR);
	expect_no_event(c->w, c->b);
	expect_nothing(c);
}

static void what_a_target_took_comes_back(void **state)
{
	struct conn *c = *state;

	post_entries(c, 0, 2);
	begin_message(c, 0);
	disconnect(c);
	connect(c);
	for (uint32_t k = 0; k < 2; k++) {
		send(c, 0, 2000);
		expect_sent(c, SKUA_CQE_SUCCESS);
		expect_received(c, 0, k, SKUA_CQE_SUCCESS);
	}
}

static void a_target_may_go_in_a_message(void **state)
{
	struct conn *c = *state;

	post_entries(c, 0, 1);
	begin_message(c, 0);
	must(c->w, c->b, object_cmd(SKUA_CMD_DESTROY_QP, c->target));
	c->target = must(c->w, c->b, xrc_tgt_cmd(c->xrcdn));
	disconnect(c);
	connect(c);
	send(c, 0, 2000);
	expect_sent(c, SKUA_CQE_SUCCESS);
	expect_received(c, 0, 0, SKUA_CQE_SUCCESS);
}

static void an_srq_goes_in_a_message(void **state)
{
	struct conn *c = *state;

	post_entries(c, 0, 2);
	begin_message(c, 0);
	must(c->w, c->b, object_cmd(SKUA_CMD_DESTROY_SRQ, c->home[0].srqn));
	expect_nothing(c);
	assert_int_equal(qp_state(c->w, c->b, c->target), SKUA_QPS_RTS);
	end_message(c, c->home[0].srqn);
	expect_event(c->w, c->b, SKUA_EVENT_QP_ACCESS_ERR, c->target);
	expect_nothing(c);
	c->home[0].srqn = c->home[1].srqn;
	c->home[0].key = c->home[1].key;
	c->home[0].mem = c->home[1].mem;
	goes_on(c);
}

/* The target is in error already, and has nothing of the SRQ's to flush. */
static void an_srq_goes_before_a_flush(void **state)
{
	struct conn *c = *state;

	post_entries(c, 0, 1);
	begin_message(c, 0);
	must(c->w, c->b, object_cmd(SKUA_CMD_DESTROY_SRQ, c->home[0].srqn));
	must(c->w, c->b, object_cmd(SKUA_CMD_DESTROY_CQ, c->home[0].cq.cqn));
	must(c->w, c->b, state_cmd(c->target, SKUA_QPS_ERR));
	expect_nothing(c);
	expect_no_event(c->w, c->b);
}

/* A window of type 1 to the memory of a home, bound by an RC QP of its PD. Returns the key. */
static uint32_t bind_window(struct conn *c, struct home *h)
{
	struct { struct skua_wqe_ctrl c; struct skua_wqe_bind_mw bind; uint8_t pad[16]; } wqe = {
		.c = { .opcode = SKUA_WQE_BIND_MW, .flags = SKUA_WQE_SIGNALED, .nblocks = 1 },
		.bind = { .addr = htole64(h->mem), .length = htole64(HOME_SIZE),
			  .access = htole32(SKUA_ACCESS_REMOTE_READ) } };
	struct skua_cmd mr = create_mr_cmd(c->b), qp, mw = CMD(SKUA_CMD_CREATE_MW, .create_mw = {
		.pdn = htole32(h->pdn), .type = SKUA_MW_TYPE_1 });
	struct node *b = c->b;
	struct queues old = new_queues(b);
	uint32_t key = must(c->w, b, mw);

	mr.create_mr.pdn = htole32(h->pdn);
	mr.create_mr.access = htole32(SKUA_ACCESS_MW_BIND);
	mr.create_mr.iova = htole64(h->mem);
	mr.create_mr.length = htole64(HOME_SIZE);
	mr.create_mr.pages = list(h->mem, HOME_SIZE);
	wqe.bind.mr_key = htole32(must(c->w, b, mr));
	wqe.bind.key = htole32(key);
	qp = create_qp_cmd(b);
	qp.create_qp.pdn = htole32(h->pdn);
	b->qpn = must(c->w, b, qp);
	must(c->w, b, init_cmd(b->qpn));
	must(c->w, b, rtr_cmd(b->qpn, c->a, c->a->qpn));
	must(c->w, b, rts_cmd(b->qpn));
	post_block(b, &wqe);
	expect(c->w, b, SKUA_CQE_BIND_MW, SKUA_CQE_SUCCESS);
	use_queues(b, old);
	return key;
}

/* A READ is accepted, and its SRQ, and the PD of that, go before it is answered. */
static void goes_before_an_answer(struct conn *c, uint32_t key)
{
	struct home *h = &c->home[0];
	struct train t = packet(c, TRAIN_READ_REQ, FIRST_PSN, h->srqn);
	struct skua_cmd destroy = object_cmd(SKUA_CMD_DESTROY_SRQ, h->srqn);

	t.rkey = key;
	t.raddr = h->mem;
	t.msg_len = HOME_SIZE;
	/* A megabyte takes more than the turn in which the command comes. */
	arrive_only(c->b, c->a, t);
	must(c->w, c->b, destroy);
	settle(c->w);
	assert_int_equal(qp_state(c->w, c->b, c->target), SKUA_QPS_ERR);
	expect_event(c->w, c->b, SKUA_EVENT_QP_ACCESS_ERR, c->target);
}

static void an_srq_goes_before_an_answer(void **state)
{
	struct conn *c = *state;

	goes_before_an_answer(c, c->home[0].key);
}

static void an_srq_goes_before_an_answer_from_a_window(void **state)
{
	struct conn *c = *state;

	goes_before_an_answer(c, bind_window(c, &c->home[0]));
}

/* One more connection of the same kind: the queues of its INI QP, and its TGT QP. */
struct other {
	struct queues queues;
	uint32_t target;
};

/* The connection that is used, and @other, change places. */
static void swap(struct conn *c, struct other *other)
{
	struct other used = { use_queues(c->a, other->queues), c->target };

	c->target = other->target;
	*other = used;
}

static struct other connect_another(struct conn *c)
{
	struct other first = { new_queues(c->a), c->target };

	c->a->qpn = must(c->w, c->a, xrc_ini_cmd(c->a));
	c->target = must(c->w, c->b, xrc_tgt_cmd(c->xrcdn));
	connect(c);
	swap(c, &first);
	return first;
}

static void a_cq_in_error_stops_who_completes_into_it(void **state)
{
	struct conn *c = *state;
	struct other others[2] = { connect_another(c), connect_another(c) };
	struct home *h = &c->home[0];
	struct skua_cmd cq, srq;

	/* A CQ of two. */
	use(c, h);
	new_completions(c->b, 1);
	cq = create_cq_cmd(c->b);
	c->b->cqn = must(c->w, c->b, cq);
	use(c, h);
	must(c->w, c->b, object_cmd(SKUA_CMD_DESTROY_SRQ, h->srqn));
	srq = create_srq_cmd(c, 0);
	h->srqn = must(c->w, c->b, srq);
	post_entries(c, 0, 4);
	post_entries(c, 1, 4);
	for (int i = 0; i < 3; i++) {
		send(c, 0, 100);
		expect_sent(c, SKUA_CQE_SUCCESS);
	}
	expect_event(c->w, c->b, SKUA_EVENT_CQ_ERR, h->cq.cqn);
	expect_event(c->w, c->b, SKUA_EVENT_QP_FATAL, c->target);
	/* Others go on, until they would complete into it. */
	swap(c, &others[0]);
	send(c, 1, 100);
	expect_sent(c, SKUA_CQE_SUCCESS);
	expect_received(c, 1, 0, SKUA_CQE_SUCCESS);
	swap(c, &others[0]);
	swap(c, &others[1]);
	assert_int_equal(qp_state(c->w, c->b, c->target), SKUA_QPS_RTS);
	send(c, 0, 100);
	settle(c->w);
	expect_event(c->w, c->b, SKUA_EVENT_QP_FATAL, c->target);
	assert_int_equal(qp_state(c->w, c->b, c->target), SKUA_QPS_ERR);
	swap(c, &others[1]);
	disconnect(c);
	connect(c);
	send(c, 1, 100);
	expect_sent(c, SKUA_CQE_SUCCESS);
	expect_received(c, 1, 1, SKUA_CQE_SUCCESS);
}

static void bad_segments(void **state)
{
	struct conn *c = *state;

	request(c, SKUA_WQE_SEND, 0x1000000, &c->home[0], 8);
	expect_vendor(c->w, c->a, SKUA_CQE_SEND, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_FORMAT);
	for (int i = 0; i < 12; i++) {
		struct { struct skua_wqe_ctrl c; struct skua_wqe_xrc x; uint8_t rest[32]; } w = {
			.c = { SKUA_WQE_SEND, SKUA_WQE_SIGNALED, 1 }, .x.srqn = htole32(c->home[0].srqn) };

		disconnect(c);
		connect(c);
		w.x.rsvd[i] = 1;
		post_block(c->a, &w);
		expect_vendor(c->w, c->a, SKUA_CQE_SEND, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_FORMAT);
	}
}

static void what_sends_nothing_has_no_segment(void **state)
{
	struct conn *c = *state;
	struct { struct skua_wqe_ctrl c; uint8_t rest[48]; } w = { .c = { SKUA_WQE_NOP, SKUA_WQE_SIGNALED, 1 } };

	memset(w.rest, 0xff, sizeof(w.rest));
	post_block(c->a, &w);
	expect_sent(c, SKUA_CQE_SUCCESS);
}

static void masked_atomics_are_not_for_xrc(void **state)
{
	struct conn *c = *state;

	for (uint8_t opcode = SKUA_WQE_MASKED_CMP_SWAP; opcode <= SKUA_WQE_MASKED_FETCH_ADD; opcode++) {
		struct { struct skua_wqe_ctrl c; uint8_t rest[112]; } w = { .c = { opcode, 0, 2 } };
		uint8_t cqe = opcode == SKUA_WQE_MASKED_CMP_SWAP ? SKUA_CQE_MASKED_CMP_SWAP :
								   SKUA_CQE_MASKED_FETCH_ADD;

		post_blocks(c->a, &w, 2);
		expect_vendor(c->w, c->a, cqe, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_OPCODE);
		goes_on(c);
	}
}

static void neither_end_takes_what_is_for_the_other(void **state)
{
	struct conn *c = *state;
	uint64_t before = STAT(c->w, c->b, rdma_rx_bad_opcode);
	struct train ack = packet(c, TRAIN_ACK, FIRST_PSN, 0), request_ = packet(c, TRAIN_WRITE, FIRST_PSN, 0);
	struct train rc = packet(c, TRAIN_WRITE, FIRST_PSN, c->home[0].srqn);

	arrive(c->w, c->b, c->a, ack);
	rc.transport = TRANSPORT_RC;
	arrive(c->w, c->b, c->a, rc);
	assert_int_equal(STAT(c->w, c->b, rdma_rx_bad_opcode), before + 2);
	assert_int_equal(qp_state(c->w, c->b, c->target), SKUA_QPS_RTS);
	before = STAT(c->w, c->a, rdma_rx_bad_opcode);
	request_.dest_qpn = c->a->qpn;
	request_.npkts = 3;
	arrive(c->w, c->a, c->b, request_);
	assert_int_equal(STAT(c->w, c->a, rdma_rx_bad_opcode), before + 3);
	assert_int_equal(qp_state(c->w, c->a, c->a->qpn), SKUA_QPS_RTS);
	goes_on(c);
}

/* Loss, and packets that come early, for both SRQs in turns; perhaps in a storm. */
static void over_a_bad_line(struct conn *c, struct storm *storm)
{
	static const uint8_t opcodes[] = { SKUA_WQE_SEND, SKUA_WQE_WRITE, SKUA_WQE_READ, SKUA_WQE_WRITE_IMM };
	uint32_t taken[HOMES] = { 0 };
	struct skua_cqe *cqe;

	/* A hello first, where there is one. */
	request(c, SKUA_WQE_WRITE, c->home[0].srqn, &c->home[0], 100000);
	expect_sent(c, SKUA_CQE_SUCCESS);
	IMPAIR(c->a, "drop=10%", "delay=10us", "seed=1");
	IMPAIR(c->b, "drop=10%", "delay=10us", "seed=2");
	for (unsigned int k = 0; k < 200; k++) {
		struct home *h = &c->home[k / 3 % HOMES];
		uint8_t opcode = opcodes[k % 4];
		uint32_t len = 1 + k * 331 % 4096;

		fill(c->a, len, k);
		if (opcode == SKUA_WQE_READ)
			memset(at(c->b, h->mem), (int)k, len);
		if (k % 2 == 0 || opcode == SKUA_WQE_WRITE_IMM)
			post_entries(c, k / 3 % HOMES, opcode == SKUA_WQE_SEND || opcode == SKUA_WQE_WRITE_IMM);
		request(c, opcode, h->srqn, h, len);
		for (int i = 0; i < 100000 && !(cqe = poll_cq(c->a)); i++) {
			if (storm)
				storm_turn(storm);
			else
				next_event(c->w);
		}
		assert_non_null(cqe);
		assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
		if (opcode == SKUA_WQE_SEND || opcode == SKUA_WQE_WRITE_IMM)
			expect_received(c, k / 3 % HOMES, taken[k / 3 % HOMES]++, SKUA_CQE_SUCCESS);
		if (opcode == SKUA_WQE_SEND)
			assert_memory_equal(at(c->b, place(h, taken[k / 3 % HOMES] - 1)), at(c->a, c->a->buf), len);
		else
			assert_memory_equal(at(c->b, h->mem), at(c->a, c->a->buf), len);
		if (taken[k / 3 % HOMES] == 1u << LOG_RQ)
			break;
	}
	assert_true(STAT(c->w, c->a, retransmits) > 10);
}

static void it_recovers_by_selective_repeat(void **state)
{
	struct conn *c = *state;

	over_a_bad_line(c, NULL);
	/* Frames of selective repeat are for it, too. */
	assert_int_equal(STAT(c->w, c->a, rdma_rx_bad_opcode), 0);
	assert_int_equal(STAT(c->w, c->b, seq_nak_sent), 0);
}

static void it_recovers_by_going_back(void **state)
{
	struct conn *c = *state;

	for (int i = 0; i < 2; i++)
		c->w->n[i].dev->inject.go_back_n = true;
	over_a_bad_line(c, NULL);
	assert_int_equal(STAT(c->w, c->a, rdma_rx_bad_opcode), 0);
	assert_true(STAT(c->w, c->b, seq_nak_sent) > 0);
}

/* Neither end takes what a stranger sends, but for a request ahead, which a receiver holds (REP-5). */
static void a_storm_does_nothing(void **state)
{
	struct conn *c = *state;
	uint32_t kinds = STORM_ALL & ~(1u << STORM_AHEAD);
	struct storm *storm = storm_create(c->w, kinds, 3000, 1);

	storm_use_xrc(storm, c->home[0].srqn);
	c->b->qpn = c->target;
	c->b->key = c->home[0].key;
	over_a_bad_line(c, storm);
	for (int kind = 0; kind < STORM_REPLAY_NAK; kind++)
		assert_true(!(kinds >> kind & 1) || storm_arrived(storm)[kind]);
	assert_int_equal(qp_state(c->w, c->b, c->target), SKUA_QPS_RTS);
	storm_destroy(storm);
}

/* All of it goes and comes again, while requests for it are under way. */
static void renew_home(struct conn *c, int i)
{
	struct node *b = c->b;
	struct home *h = &c->home[i];

	must(c->w, b, object_cmd(SKUA_CMD_DESTROY_SRQ, h->srqn));
	must(c->w, b, object_cmd(SKUA_CMD_DESTROY_CQ, h->cq.cqn));
	must(c->w, b, object_cmd(SKUA_CMD_DESTROY_MR, h->key));
	must(c->w, b, object_cmd(SKUA_CMD_DESTROY_PD, h->pdn));
	memset(at(b, h->rq.rq_dbr), 0, sizeof(struct skua_dbr));
	memset(at(b, h->cq.cq_dbr), 0, sizeof(struct skua_cq_dbr));
	memset(at(b, h->cq.cq), 0, 64u << LOG_CQ);
	h->rq.rq_pi = 0;
	h->cq.cq_ci = 0;
	create_home(c, i);
}

static void anything(struct conn *c, uint32_t random, unsigned int *left)
{
	static const uint8_t opcodes[] = {
		SKUA_WQE_SEND, SKUA_WQE_SEND_IMM, SKUA_WQE_WRITE, SKUA_WQE_READ, SKUA_WQE_FETCH_ADD,
	};
	int i = random >> 8 & 1, j = random >> 9 & 1;
	uint8_t opcode = opcodes[(random >> 12) % sizeof(opcodes)];

	switch (random % 16) {
	case 0:
		renew_home(c, i);
		left[i] = 1u << LOG_RQ;
		break;
	case 1:
		disconnect(c);
		connect(c);
		break;
	case 2:
		must(c->w, c->b, object_cmd(SKUA_CMD_DESTROY_QP, c->target));
		c->target = must(c->w, c->b, xrc_tgt_cmd(c->xrcdn));
		break;
	case 3:
		pass(c->w, random >> 8);
		break;
	case 4:
	case 5:
		if (!left[i])
			break;
		left[i]--;
		post_entries(c, i, 1);
		break;
	default:
		/* Now and then for the key of the other, or for an SRQ that was never there. */
		request(c, opcode, c->home[random % 64 == 6 ? !i : i].srqn ^ (random % 64 == 7), &c->home[i],
			opcode == SKUA_WQE_FETCH_ADD ? 8 : (random >> 16) % 4096);
	}
	while (poll_cq(c->a))
		;
	for (j = 0; j < HOMES; j++)
		while (next_cqe(c, j))
			left[j]++;
}

/* Nothing of what is gone is used: AddressSanitizer tells. */
static void homes_come_and_go(void **state)
{
	static const char *const none[] = { NULL };

	(void)state;
	for (uint32_t seed = 1; seed < 30; seed++) {
		struct conn *c = conn_create();
		unsigned int left[HOMES] = { 1u << LOG_RQ, 1u << LOG_RQ };
		uint32_t random = seed * 2654435761u;

		if (seed % 3) {
			IMPAIR(c->a, "drop=5%,dir=out", "duplicate=5%,dir=out");
			IMPAIR(c->b, "drop=5%,dir=out", "reorder=5%,by=20us,dir=out");
		}
		for (int i = 0; i < 400; i++) {
			random ^= random << 13;
			random ^= random >> 17;
			random ^= random << 5;
			anything(c, random, left);
			if (qp_state(c->w, c->a, c->a->qpn) == SKUA_QPS_ERR || random % 16 == 2) {
				disconnect(c);
				connect(c);
			}
		}
		impair(c->a, none);
		impair(c->b, none);
		goes_on(c);
		world_destroy(c->w);
		free(c);
	}
}

int main(void)
{
#define XRC(f, rules)	{ rules ": " #f, f, setup, end, NULL }
	const struct CMUnitTest tests[] = {
		XRC(queues_that_may_be, "XRC-3 XRC-4 XRC-5 CMD-11 QP-1"),
		XRC(bad_srqs, "XRC-2 CMD-11"),
		{ "FEA-2: without_the_feature_there_are_none", without_the_feature_there_are_none, NULL, NULL, NULL },
		{ "XRC-14: homes_come_and_go", homes_come_and_go, NULL, NULL, NULL },
		XRC(what_is_used_is_busy, "XRC-1 XRC-2 OBJ-7"),
		XRC(the_limit_is_served, "LIM-1 CMD-14"),
		XRC(transitions_of_an_initiator, "XRC-6"),
		XRC(transitions_of_a_target, "XRC-6"),
		XRC(messages_choose_their_srq, "XRC-10 XRC-12"),
		XRC(each_request_names_an_srq, "XRC-8 XRC-10"),
		XRC(keys_are_those_of_its_pd, "XRC-10 XRC-16"),
		XRC(an_entry_has_keys_of_the_srq, "XRC-10"),
		XRC(the_target_grants_rights, "XRC-10"),
		XRC(an_srq_that_is_not_of_the_domain_is_refused, "XRC-11"),
		XRC(packets_of_a_message_name_one_srq, "XRC-11 XRC-13"),
		XRC(reads_have_srqs_of_their_own, "XRC-10"),
		XRC(a_read_is_answered_with_memory_of_its_own_srq, "XRC-10"),
		XRC(a_repeated_read_of_an_srq_that_went_is_dropped, "XRC-11"),
		XRC(an_empty_one_is_waited_for, "XRC-10"),
		XRC(a_target_in_error_flushes_what_it_took, "XRC-13"),
		XRC(what_a_target_took_comes_back, "XRC-12 SRQ-7"),
		XRC(a_target_may_go_in_a_message, "XRC-12 SRQ-7"),
		XRC(an_srq_goes_in_a_message, "XRC-14"),
		XRC(an_srq_goes_before_a_flush, "XRC-14"),
		XRC(an_srq_goes_before_an_answer, "XRC-14"),
		XRC(an_srq_goes_before_an_answer_from_a_window, "XRC-14 MW-2"),
		XRC(a_cq_in_error_stops_who_completes_into_it, "XRC-15"),
		XRC(bad_segments, "XRC-8 WQE-6"),
		XRC(what_sends_nothing_has_no_segment, "XRC-8"),
		XRC(masked_atomics_are_not_for_xrc, "XRC-8 ATM-8"),
		XRC(neither_end_takes_what_is_for_the_other, "XRC-4 XRC-5"),
		XRC(it_recovers_by_selective_repeat, "XRC-7 REP-5"),
		XRC(it_recovers_by_going_back, "XRC-7 ROC-10"),
		XRC(a_storm_does_nothing, "XRC-7 SEC-5 ROC-10"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
