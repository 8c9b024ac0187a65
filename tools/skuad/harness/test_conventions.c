// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What holds for all queues and counters: where they may lie, what must be read, and how. */
#include "core/device.h"
#include "harness/harness.h"
#include "nic/control.h"

/* Memory of two kinds: @far, from where EXTRA lies, or like all the rest. */
static uint64_t take_of(struct node *n, bool far, uint64_t *extra, uint64_t size)
{
	uint64_t at = *extra;

	if (!far)
		return take(n, size);
	*extra += (size + 4095) & ~4095ull;
	assert_true(*extra <= EXTRA + EXTRA_SIZE);
	return at;
}

/* An EQ, a CQ and a QP that is its own peer; each bit of @far is the kind of a ring or record. */
static void create_apart(struct world *w, struct node *n, unsigned int far)
{
	uint64_t extra = EXTRA;

#define TAKE(bit, size) take_of(n, far >> (bit) & 1, &extra, size)
	memset(n->extra, 0, EXTRA_SIZE);
	n->eq = TAKE(0, 16 * 16);
	n->eq_dbr = TAKE(1, 64);
	n->eq_ci = 0;
	n->eqn = must(w, n, create_eq_cmd(n));
	use_completions(n, (struct completions){
		.cq = TAKE(2, 64u << LOG_CQ), .cq_dbr = TAKE(3, 64), .log_cq = LOG_CQ });
	n->cqn = must(w, n, create_cq_cmd(n));
	use_queues(n, (struct queues){
		.sq = TAKE(4, 64u << LOG_SQ), .sq_dbr = TAKE(5, 64),
		.rq = TAKE(6, 64u << LOG_RQ), .rq_dbr = TAKE(7, 64) });
	n->qpn = must(w, n, create_qp_cmd(n));
	reconnect(w, n, n);
#undef TAKE
}

static void each_ring_and_record_lies_where_it_likes(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];

	for (unsigned int far = 0; far < 1 << 8; far++) {
		uint64_t used = n->used;

		create_apart(w, n, far);
		fill(n, 3000, far);
		arm(n, SKUA_CQ_ARM_NEXT, 1);
		post_recv(n, n->buf + 4096, 3000);
		post(n, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, n->buf, 3000, 0, 0, 0);
		expect(w, n, SKUA_CQE_RECV, SKUA_CQE_SUCCESS);
		expect(w, n, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
		assert_memory_equal(at(n, n->buf + 4096), at(n, n->buf), 3000);
		assert_non_null(poll_eq(n));
		must(w, n, object_cmd(SKUA_CMD_DESTROY_QP, n->qpn));
		must(w, n, object_cmd(SKUA_CMD_DESTROY_CQ, n->cqn));
		must(w, n, object_cmd(SKUA_CMD_DESTROY_EQ, n->eqn));
		memset(n->mem + used, 0, n->used - used);
		n->used = used;
	}
	expect_no_event(w, n);
}

/* The same of the command queue. */
static void the_command_queue_lies_where_it_likes(void **state)
{
	static const uint32_t regs[] = { SKUA_REG_CMD_RING_LO, SKUA_REG_CMD_CPL_LO, SKUA_REG_CMD_DBR_LO };
	static const uint32_t sizes[] = { sizeof(struct skua_cmd) << LOG_CMD,
					  sizeof(struct skua_cmd_cpl) << LOG_CMD, 64 };
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint64_t *where[] = { &n->cmd_ring, &n->cmd_cpl, &n->cmd_dbr };

	for (unsigned int far = 0; far < 1 << 3; far++) {
		uint64_t extra = EXTRA;

		memset(n->extra, 0, EXTRA_SIZE);
		reg_write(n, SKUA_REG_CONTROL, SKUA_CONTROL_RESET);
		for (unsigned int i = 0; i < 3; i++) {
			*where[i] = take_of(n, far >> i & 1, &extra, sizes[i]);
			reg_write(n, regs[i], (uint32_t)*where[i]);
			reg_write(n, regs[i] + 4, (uint32_t)(*where[i] >> 32));
		}
		reg_write(n, SKUA_REG_CMD_LOG_SIZE, LOG_CMD);
		reg_write(n, SKUA_REG_CONTROL, SKUA_CONTROL_ENABLE);
		n->cmd_pi = 0;
		for (int i = 0; i < 3 << LOG_CMD; i++)
			must(w, n, (struct skua_cmd)CMD(SKUA_CMD_NOP));
	}
}

/* Commands, work of all kinds, polling, arming, events: registers are not read for it. */
static void no_register_is_read(void **state)
{
	static const uint8_t opcodes[] = { SKUA_WQE_SEND, SKUA_WQE_WRITE, SKUA_WQE_READ };
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	unsigned int before = a->reads, events = 0;

	for (uint32_t i = 0; i < 3u << LOG_SQ; i++) {
		uint8_t opcode = opcodes[i % 3];

		arm(a, SKUA_CQ_ARM_NEXT, i + 1);
		if (opcode == SKUA_WQE_SEND)
			post_recv(b, b->buf + 8192, 64);
		post(a, opcode, SKUA_WQE_SIGNALED, a->buf, 64, b->buf, b->key, 0);
		assert_int_equal(await_cqe(w, a)->status, SKUA_CQE_SUCCESS);
		if (opcode == SKUA_WQE_SEND)
			assert_int_equal(await_cqe(w, b)->status, SKUA_CQE_SUCCESS);
		while (poll_eq(a))
			events++;
		must(w, a, create_mr_cmd(a));
		must(w, a, object_cmd(SKUA_CMD_DESTROY_MR, a->number));
	}
	assert_int_equal(events, 3u << LOG_SQ);
	assert_int_equal(a->reads, before);
	reg_read(a, SKUA_REG_STATUS);
	assert_int_equal(a->reads, before + 1);
}

static void set_counter(void *arg)
{
	((struct node *)arg)->dev->stats.rdma_tx_bytes = 0xfffffffful;
}

static void get_counters(void *arg)
{
	struct { struct node *n; uint64_t values[sizeof(struct skua_stats) / 8]; } *call = arg;

	skua_dev_get_stats(call->n->dev, call->values);
}

/*
 * A counter under traffic passes from its lower half to its upper one, again and again. It only grows, and by far less
 * than another upper half. The engine's thread counts and answers, so this finds halves that are from different moments
 * of that thread, and no store that another thread would see in pieces.
 */
static void counters_are_read_in_one_piece(void **state)
{
	struct { struct node *n; uint64_t values[sizeof(struct skua_stats) / 8]; } call;
	const size_t tx_bytes = offsetof(struct skua_stats, rdma_tx_bytes) / 8;
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	const uint64_t most = 1 << 30;	/* of one WRITE, however often it is sent again */

	call.n = a;
	for (int round = 0; round < 200; round++) {
		uint64_t last, now;

		on_engine(a, set_counter, a);
		last = 0xffffffff;
		post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 65536, b->buf, b->key, 0);
		do {
			now = STAT(w, a, rdma_tx_bytes);
			assert_in_range(now, last, 0xffffffff + most);
			on_engine(a, get_counters, &call);
			assert_in_range(call.values[tx_bytes], now, 0xffffffff + most);
			last = call.values[tx_bytes];
		} while (!poll_cq(a));
		assert_true(STAT(w, a, rdma_tx_bytes) > 0xffffffff + 65536ull);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STEPPED(each_ring_and_record_lies_where_it_likes, "GRO-6"),
		STEPPED(the_command_queue_lies_where_it_likes, "GRO-6"),
		STEPPED(no_register_is_read, "GEN-9"),
		THREADED(counters_are_read_in_one_piece, "STA-2"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
