// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Counter sets: where QPs count, and what the function's counters make of it. */
#include "core/counter.h"
#include "harness/datagram.h"

#define LEN	3000u

static uint32_t new_set(struct world *w, struct node *n)
{
	return must(w, n, (struct skua_cmd)CMD(SKUA_CMD_CREATE_COUNTER_SET));
}

static struct skua_cmd bind_cmd(uint32_t qpn, uint32_t number)
{
	struct skua_cmd cmd = CMD(SKUA_CMD_BIND_COUNTER_SET, .bind_set = {
		.qpn = htole32(qpn), .number = htole32(number) });

	return cmd;
}

/* What a set counted; set 0 is the function's own. */
static struct skua_stats in_set(struct world *w, struct node *n, uint32_t number)
{
	struct skua_cmd cmd = object_cmd(SKUA_CMD_QUERY_COUNTER_SET, number);

	return *(struct skua_stats *)query(w, n, cmd, sizeof(struct skua_stats));
}

#define IN_SET(w, n, number, name)	le64toh(in_set(w, n, number).name)

/* A WRITE with immediate of two packets from one node to the other. */
static void traffic(struct world *w, struct node *from, struct node *to)
{
	post_recv(to, to->buf, 0);
	post(from, SKUA_WQE_WRITE_IMM, SKUA_WQE_SIGNALED, from->buf, LEN, to->buf, to->key, 1);
	expect(w, from, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	expect(w, to, SKUA_CQE_RECV_WRITE_IMM, SKUA_CQE_SUCCESS);
	settle(w);
}

static void a_qp_counts_where_it_is_bound(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t first = new_set(w, a), second = new_set(w, a), peer = new_set(w, b);
	uint64_t bytes;

	traffic(w, a, b);
	assert_int_equal(IN_SET(w, a, 0, rdma_tx_write), 1);
	assert_int_equal(IN_SET(w, a, first, rdma_tx_write), 0);

	must(w, a, bind_cmd(a->qpn, first));
	must(w, b, bind_cmd(b->qpn, peer));
	traffic(w, a, b);
	traffic(w, a, b);
	assert_int_equal(IN_SET(w, a, 0, rdma_tx_write), 1);
	assert_int_equal(IN_SET(w, a, first, rdma_tx_write), 2);
	assert_int_equal(IN_SET(w, a, first, rdma_tx_packets), 6);
	assert_int_equal(IN_SET(w, b, peer, rdma_rx_write), 2);
	assert_int_equal(IN_SET(w, b, peer, rdma_rx_packets), 6);
	bytes = IN_SET(w, a, first, rdma_tx_bytes);
	assert_true(bytes > 2 * LEN);
	assert_int_equal(IN_SET(w, b, peer, rdma_rx_bytes), bytes);
	/* What came back: two ACKs at least. */
	assert_int_equal(IN_SET(w, a, first, rdma_rx_packets), IN_SET(w, b, peer, rdma_tx_packets));

	must(w, a, bind_cmd(a->qpn, second));
	traffic(w, a, b);
	must(w, a, bind_cmd(a->qpn, 0));
	traffic(w, a, b);
	assert_int_equal(IN_SET(w, a, 0, rdma_tx_write), 2);
	assert_int_equal(IN_SET(w, a, first, rdma_tx_write), 2);
	assert_int_equal(IN_SET(w, a, second, rdma_tx_write), 1);
	assert_int_equal(STAT(w, a, rdma_tx_write), 5);
	assert_int_equal(STAT(w, b, rdma_rx_write), 5);
}

/* In each state, ERR too, from which a QP does not come without RESET. */
static void in_any_state(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t set = new_set(w, a);

	must(w, a, state_cmd(a->qpn, SKUA_QPS_ERR));
	must(w, a, bind_cmd(a->qpn, set));
	must(w, a, bind_cmd(a->qpn, 0));
	must(w, a, state_cmd(a->qpn, SKUA_QPS_RESET));
	must(w, b, state_cmd(b->qpn, SKUA_QPS_RESET));
	must(w, a, bind_cmd(a->qpn, set));
	reconnect(w, a, b);
	reconnect(w, b, a);
	traffic(w, a, b);
	assert_int_equal(IN_SET(w, a, set, rdma_tx_write), 1);
}

static void what_a_set_counted_stays(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t set = new_set(w, a);
	struct skua_cmd destroy = object_cmd(SKUA_CMD_DESTROY_COUNTER_SET, set);

	must(w, a, bind_cmd(a->qpn, set));
	traffic(w, a, b);
	assert_int_equal(command(w, a, &destroy), SKUA_CMD_BUSY);
	must(w, a, bind_cmd(a->qpn, 0));
	must(w, a, destroy);
	assert_int_equal(command(w, a, &destroy), SKUA_CMD_BAD_OBJECT);
	assert_int_equal(STAT(w, a, rdma_tx_write), 1);
	assert_int_equal(IN_SET(w, a, 0, rdma_tx_write), 0);
	traffic(w, a, b);
	assert_int_equal(STAT(w, a, rdma_tx_write), 2);

	/* A QP that goes is bound no longer. */
	set = new_set(w, a);
	must(w, a, bind_cmd(a->qpn, set));
	must(w, a, object_cmd(SKUA_CMD_DESTROY_QP, a->qpn));
	must(w, a, object_cmd(SKUA_CMD_DESTROY_COUNTER_SET, set));
}

static void reset_ends_them(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t set = new_set(w, a);
	struct skua_cmd cmd = object_cmd(SKUA_CMD_QUERY_COUNTER_SET, set);

	must(w, a, bind_cmd(a->qpn, set));
	traffic(w, a, b);
	must(w, a, bind_cmd(a->qpn, 0));
	must(w, a, object_cmd(SKUA_CMD_DESTROY_COUNTER_SET, set));
	set = new_set(w, a);
	must(w, a, bind_cmd(a->qpn, set));
	revive(w, a);
	assert_int_equal(STAT(w, a, rdma_tx_write), 0);
	assert_int_equal(command(w, a, &cmd), SKUA_CMD_BAD_OBJECT);
}

static void bad_numbers(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint32_t set = new_set(w, n);
	struct skua_cmd cmd = bind_cmd(n->qpn + 1, set);

	assert_int_equal(command(w, n, &cmd), SKUA_CMD_BAD_OBJECT);
	cmd = bind_cmd(n->qpn, set + 1);
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_BAD_OBJECT);
	cmd = bind_cmd(n->qpn, set);
	cmd.bind_set.rsvd[3] = 1;
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_BAD_PARAM);
	cmd = object_cmd(SKUA_CMD_DESTROY_COUNTER_SET, 0);
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_BAD_OBJECT);
	cmd = object_cmd(SKUA_CMD_QUERY_COUNTER_SET, set + 1);
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_BAD_OBJECT);
	/* No QP is bound to it: else it would be BUSY. */
	must(w, n, object_cmd(SKUA_CMD_DESTROY_COUNTER_SET, set));
}

static void the_limit_is_served(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_device_caps *caps = query(w, n, (struct skua_cmd)CMD(SKUA_CMD_QUERY_DEVICE), sizeof(*caps));
	struct skua_cmd cmd = CMD(SKUA_CMD_CREATE_COUNTER_SET);
	uint32_t max = le32toh(caps->max_counter_set);

	assert_int_not_equal(max, 0);
	for (uint32_t i = 0; i < max; i++)
		must(w, n, cmd);
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_NO_RESOURCE);
}

/* A datagram for a group counts for the function, whatever becomes of it at each QP. */
static void datagrams_for_a_group(void **state)
{
	static const uint8_t mgid[16] = { [10] = 255, [11] = 255, 239, 1, 2, 3 };
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cmd attach = CMD(SKUA_CMD_ATTACH_MCAST);
	uint32_t set = new_set(w, b);

	memcpy(attach.mcast.mgid, mgid, 16);
	/* One with a receive, one without, one with another Q_Key. */
	for (int i = 0; i < 3; i++) {
		ud_queues(w, b, SKUA_QPT_UD, SKUA_QPS_RTS);
		attach.mcast.qpn = htole32(b->qpn);
		must(w, b, attach);
		must(w, b, bind_cmd(b->qpn, set));
		if (i == 0)
			post_recv(b, b->buf, 4096);
		if (i == 2)
			must(w, b, modify_cmd(b->qpn, SKUA_QP_ATTR_QKEY, (struct skua_qp_attr){ .qkey = htole32(1) }));
	}
	ud_queues(w, a, SKUA_QPT_UD, SKUA_QPS_RTS);
	post_ud(a, SKUA_WQE_SEND, 0, a->buf, 8, ud_to_group(mgid), 0);
	expect(w, b, SKUA_CQE_RECV, SKUA_CQE_SUCCESS);
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t number = i ? set : 0;

		assert_int_equal(IN_SET(w, b, number, rdma_rx_packets), !i);
		assert_int_equal(IN_SET(w, b, number, rdma_rx_send), !i);
		assert_int_equal(IN_SET(w, b, number, rdma_rx_no_receive), !i);
		assert_int_equal(IN_SET(w, b, number, rdma_rx_bad_qkey), !i);
	}
}

static void without_the_feature_there_are_none(void **state)
{
	struct world *w = world_create_with(false, ~(1ull << SKUA_F_COUNTER_SET));
	struct node *n = &w->n[0];
	struct skua_device_caps *caps = query(w, n, (struct skua_cmd)CMD(SKUA_CMD_QUERY_DEVICE), sizeof(*caps));
	struct skua_cmd cmds[] = {
		CMD(SKUA_CMD_CREATE_COUNTER_SET), object_cmd(SKUA_CMD_DESTROY_COUNTER_SET, 1),
		object_cmd(SKUA_CMD_QUERY_COUNTER_SET, 0), bind_cmd(n->qpn, 0),
	};

	(void)state;
	assert_int_equal(caps->max_counter_set, 0);
	for (unsigned int i = 0; i < sizeof(cmds) / sizeof(cmds[0]); i++)
		assert_int_equal(command(w, n, &cmds[i]), SKUA_CMD_BAD_OPCODE);
	world_destroy(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STEPPED(a_qp_counts_where_it_is_bound, "STA-4 STA-5 STA-6"),
		STEPPED(in_any_state, "STA-4"),
		STEPPED(what_a_set_counted_stays, "STA-1 STA-5 STA-6"),
		STEPPED(reset_ends_them, "STA-1"),
		STEPPED(datagrams_for_a_group, "STA-5"),
		STEPPED(bad_numbers, "CMD-11 CMD-12"),
		STEPPED(the_limit_is_served, "LIM-1"),
		{ "FEA-2: without_the_feature_there_are_none", without_the_feature_there_are_none, NULL, NULL, NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
