// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* MACs of ports: what may be sent from them, who has them, and one that moves under traffic. */
#include "core/device.h"
#include "harness/datagram.h"
#include "harness/lossy.h"
#include "nic/control.h"

static void raise_irq(void *host, unsigned int vector)
{
	(void)host;
	(void)vector;
}

static const struct skua_host_ops host_ops = { .raise_irq = raise_irq };

static struct skua_dev *device(struct engine *engine, uint8_t number)
{
	struct skua_dev_config config = { .name = "m", .mac = { 2, 0, 0, 0, 0, number }, .link = "wire:t" };
	struct skua_dev *dev = skua_dev_create(engine, &config, &host_ops, NULL);

	assert_non_null(dev);
	return dev;
}

static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 9 }, nobody[6] = { 2, 0, 0, 0, 0, 10 };

/* A train to @mac, of the payload that @mark stands for. */
static enum port_result send_one(struct skua_dev *from, struct port_mark *mark)
{
	static uint8_t bytes[64];
	struct seglist payload = { .n = 1, .bytes = sizeof(bytes), .seg = { { bytes, sizeof(bytes) } } };
	struct roce_path path = { .vlan = SKUA_VLAN_NONE };
	struct train t = { .op = TRAIN_SEND, .first = true, .last = true, .npkts = 1, .pmtu = 1024,
			   .path = &path, .payload = &payload };

	memcpy(path.smac, from->mac, 6);
	memcpy(path.dmac, mac, 6);
	return port_send_train(from->port, &t, mark);
}

/* A completion waits for the one mark of its WQE: so all trains of that must be over when it says so. */
static void payload_is_in_one_ring_at_a_time(void **state)
{
	struct engine *near = engine_create(true), *far = engine_create(true);
	struct skua_dev *a = device(near, 1), *b = device(far, 2), *c = device(far, 3), *d = device(near, 4);
	struct port_mark mark = { 0 }, other = { 0 };

	(void)state;
	port_set_mac(b->port, mac);
	assert_int_equal(send_one(a, &mark), PORT_SENT);
	assert_int_equal(send_one(a, &mark), PORT_SENT);
	port_set_mac(b->port, nobody);
	port_set_mac(c->port, mac);
	assert_int_equal(send_one(a, &mark), PORT_BUSY);
	assert_false(port_passed(&mark));
	/* What else there is need not wait. */
	assert_int_equal(send_one(a, &other), PORT_SENT);
	assert_true(port_receive(b->port));
	assert_true(port_passed(&mark));
	assert_int_equal(send_one(a, &mark), PORT_SENT);
	assert_false(port_passed(&mark));
	/* A port of the same engine has done with it at once, the other has not. */
	port_set_mac(c->port, nobody);
	port_set_mac(d->port, mac);
	assert_int_equal(send_one(a, &mark), PORT_SENT);
	assert_false(port_passed(&mark));
	port_set_up(a->port, false);
	assert_int_equal(send_one(a, &mark), PORT_LOST);
	assert_false(port_passed(&mark));
	assert_true(port_receive(c->port));
	assert_true(port_passed(&mark));
	skua_dev_destroy(a);
	skua_dev_destroy(b);
	skua_dev_destroy(c);
	skua_dev_destroy(d);
	engine_destroy(near);
	engine_destroy(far);
}

static int set_mac(struct world *w, struct node *n, const uint8_t *to)
{
	struct skua_cmd cmd = port_cmd(SKUA_PORT_SET_MAC, 0);

	memcpy(cmd.set_port.mac, to, 6);
	return command(w, n, &cmd);
}

/* A frame of no known type, by the QP of type ETH. */
static void send_frame(struct world *w, struct node *n, const uint8_t *to, const uint8_t *from)
{
	uint8_t *p = at(n, n->buf);

	memset(p, 0, 60);
	memcpy(p, to, 6);
	memcpy(p + 6, from, 6);
	memcpy(p + 12, (uint8_t[2]){ 0x88, 0xb5 }, 2);
	post(n, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, n->buf, 60, 0, 0, 0);
	expect(w, n, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
}

static void a_pinned_port_keeps_its_mac(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0], *peer = &w->n[1];
	struct skua_cmd both = port_cmd(SKUA_PORT_SET_MAC | SKUA_PORT_SET_MTU, 0);

	assert_int_equal(set_mac(w, n, mac), SKUA_CMD_NOT_PERMITTED);
	assert_int_equal(set_mac(w, n, peer->mac), SKUA_CMD_NOT_PERMITTED);
	assert_int_equal(set_mac(w, n, n->mac), SKUA_CMD_OK);
	/* All of it or nothing. */
	memcpy(both.set_port.mac, mac, 6);
	both.set_port.mtu = htole32(4000);
	assert_int_equal(command(w, n, &both), SKUA_CMD_NOT_PERMITTED);
	assert_int_equal(n->dev->mtu, 1500);
	assert_memory_equal(n->dev->mac, n->mac, 6);
	port_allow_spoof(n->dev->port, true);
	assert_int_equal(set_mac(w, n, mac), SKUA_CMD_OK);
}

/* Frames, and packets by a GID entry of another MAC. */
static void a_pinned_port_sends_from_its_mac_alone(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct queues rc[2] = { eth_queues(w, a), eth_queues(w, b) };

	for (int i = 0; i < 4; i++)
		post_recv(b, b->buf + 4096 * (i + 1), 4096);
	send_frame(w, a, b->mac, b->mac);
	send_frame(w, a, b->mac, mac);
	send_frame(w, a, (uint8_t[6]){ 255, 255, 255, 255, 255, 255 }, mac);
	assert_int_equal(STAT(w, a, tx_spoofed), 3);
	assert_int_equal(STAT(w, a, tx_frames), 0);
	assert_null(poll_cq(b));
	send_frame(w, a, b->mac, a->mac);
	expect(w, b, SKUA_CQE_RECV, SKUA_CQE_SUCCESS);
	use_queues(a, rc[0]);
	use_queues(b, rc[1]);
	set_gid(w, a, 0, a->gid, mac, SKUA_VLAN_NONE);
	reconnect(w, a, b);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 3000, b->buf, b->key, 0);
	expect_none(w, a);
	assert_true(STAT(w, a, tx_spoofed) > 3);
	assert_int_equal(STAT(w, b, rdma_rx_packets), 0);
	port_allow_spoof(a->dev->port, true);
	pass(w, 4 * 4096ull << 14);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
}

/* One that is free to take any cannot have that of one that is pinned; then what others send still finds its way. */
static void the_mac_of_a_pinned_port_is_not_taken(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_dev *thief = device(w->engines[0], 3);

	port_allow_spoof(thief->port, true);
	port_set_mac(thief->port, b->mac);
	fill(a, 100, 1);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 100, b->buf, b->key, 0);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	assert_memory_equal(at(b, b->buf), at(a, a->buf), 100);
	skua_dev_destroy(thief);
	/* Nor is it by a port that was there before. */
	port_allow_spoof(a->dev->port, true);
	port_set_mac(a->dev->port, b->mac);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 100, b->buf, b->key, 0);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
}

#define PORTS		50u
#define FLOODS_A_STEP	(2 * TURN_COST / COPY_COST + 2 * PORTS)

/* Of this many more ports. */
static void create_others(struct world *w, struct skua_dev **others)
{
	for (unsigned int i = 0; i < PORTS; i++)
		others[i] = device(w->engines[0], (uint8_t)(i + 3));
}

static void destroy_others(struct skua_dev **others)
{
	for (unsigned int i = 0; i < PORTS; i++)
		skua_dev_destroy(others[i]);
}

/* What goes to all ports counts for each. */
static void floods_count_against_the_turn(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_dev *others[PORTS];
	uint8_t *p = at(n, n->buf);
	uint64_t before, sent = 0;

	create_others(w, others);
	eth_queues(w, n);
	memset(p, 0xff, 6);
	memcpy(p + 6, n->mac, 6);
	settle(w);
	for (int i = 0; i < 200; i++)
		post(n, SKUA_WQE_SEND, 0, n->buf, 60, 0, 0, 0);
	for (int steps = 0; steps < 10000 && sent < 200; steps++) {
		before = sent;
		engine_step(w->engines[0]);
		sent = n->dev->stats.tx_frames;
		assert_true((sent - before) * PORTS <= FLOODS_A_STEP);
	}
	assert_int_equal(sent, 200);
	destroy_others(others);
}

/* So does each packet of a message to an address that nobody has. */
static void messages_to_an_unknown_mac_count_against_the_turn(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0], *b = &w->n[1];
	struct skua_dev *others[PORTS];

	create_others(w, others);
	for (int uc = 0; uc < 2; uc++) {
		uint64_t first, before, sent;

		if (uc)
			both_uc(w);
		port_set_mac(b->dev->port, b->mac);
		for (int i = 0; i < 2; i++) {
			post(n, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, n->buf, 4096, b->buf, b->key, 0);
			expect(w, n, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
		}
		port_set_mac(b->dev->port, nobody);
		sent = first = n->dev->stats.rdma_tx_packets;
		post(n, SKUA_WQE_WRITE, 0, n->buf, 1 << 16, b->buf, b->key, 0);
		for (int steps = 0; steps < 1000; steps++) {
			before = sent;
			engine_step(w->engines[0]);
			sent = n->dev->stats.rdma_tx_packets;
			assert_true((sent - before) * PORTS <= FLOODS_A_STEP);
		}
		assert_int_equal(sent - first, 64);
	}
	destroy_others(others);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STEPPED(a_pinned_port_keeps_its_mac, "PRT-7 CMD-12 SEC-9"),
		STEPPED(a_pinned_port_sends_from_its_mac_alone, "PRT-7 SEC-9"),
		STEPPED(the_mac_of_a_pinned_port_is_not_taken, "SEC-9"),
		STEPPED(floods_count_against_the_turn, "SEC-8"),
		STEPPED(messages_to_an_unknown_mac_count_against_the_turn, "SEC-8"),
		{ "CQE-5: payload_is_in_one_ring_at_a_time", payload_is_in_one_ring_at_a_time, NULL, NULL, NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
