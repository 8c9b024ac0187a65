// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The switch: how ports on different engines share the turn of the one that receives from them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/engine_priv.h"
#include "link/port.h"
#include "packet/packet.h"
#include "skua/cmd.h"

#define SENDERS	3u

/* A port, and what a train costs its receiver besides the copy. */
struct end {
	struct engine *engine;
	struct link_port *port;
	uint8_t mac[6];
	unsigned int trains;		/* received */
	int32_t cost;
};

static void rx_train(void *owner, const struct train *t)
{
	struct end *e = owner;

	(void)t;
	e->trains++;
	e->engine->turn -= e->cost;
}

static void rx_frame(void *owner, const struct seglist *frame)
{
	(void)owner;
	(void)frame;
}

static void tx_refused(void *owner, uint32_t n)
{
	(void)owner;
	(void)n;
	fail();
}

static const struct port_ops ops = { .rx_train = rx_train, .rx_frame = rx_frame, .tx_refused = tx_refused };

static void end_create(struct end *e, struct engine *engine, uint8_t number)
{
	*e = (struct end){ .engine = engine, .mac = { 2, [5] = number } };
	e->port = port_create(engine, "wire:t", &ops, e);
	assert_non_null(e->port);
	port_set_mac(e->port, e->mac);
}

static uint8_t bytes[TURN_COST];

/* A train with @len bytes. */
static enum port_result send_bytes(struct end *from, const struct end *to, uint32_t len)
{
	static struct seglist payload;
	struct roce_path path = { .vlan = SKUA_VLAN_NONE };
	struct train t = { .op = TRAIN_SEND, .first = true, .last = true, .npkts = 1, .pmtu = 1024, .path = &path,
			   .payload = &payload };
	struct port_mark mark = { 0 };

	payload = (struct seglist){ .n = 1, .bytes = len, .seg[0] = { bytes, len } };

	memcpy(path.smac, from->mac, 6);
	memcpy(path.dmac, to->mac, 6);
	return port_send_train(from->port, &t, &mark);
}

static enum port_result send_to(struct end *from, const struct end *to)
{
	return send_bytes(from, to, 0);
}

/* One of the senders keeps its ring full. What the others have sent is received all the same, and their fences end. */
static void a_full_ring_keeps_no_other_waiting(void **state)
{
	struct engine *near = engine_create(true), *far = engine_create(true);
	struct end receiver, sender[SENDERS];
	uint64_t ticket[SENDERS];

	(void)state;
	end_create(&receiver, near, 1);
	receiver.cost = TURN_COST;
	for (uint8_t i = 0; i < SENDERS; i++)
		end_create(&sender[i], far, i + 2);
	for (unsigned int busy = 0; busy < SENDERS; busy++) {
		for (unsigned int i = 0; i < SENDERS; i++) {
			if (i != busy)
				assert_int_equal(send_to(&sender[i], &receiver), PORT_SENT);
			ticket[i] = port_ticket(sender[i].port);
		}
		for (unsigned int round = 0; round < 2 * SENDERS; round++) {
			unsigned int before = receiver.trains;

			while (send_to(&sender[busy], &receiver) == PORT_SENT)
				;
			assert_true(port_receive(receiver.port));
			assert_int_equal(receiver.trains - before, 1);
		}
		for (unsigned int i = 0; i < SENDERS; i++)
			assert_true(i == busy || port_drained(sender[i].port, ticket[i]));
		while (port_receive(receiver.port))
			;
	}
	for (unsigned int i = 0; i < SENDERS; i++)
		port_destroy(sender[i].port);
	port_destroy(receiver.port);
	engine_destroy(near);
	engine_destroy(far);
}

/* What is copied to the receiver takes from its engine's turn, however many rings are full. */
static void a_round_receives_a_turn(void **state)
{
	static const struct { uint32_t len; unsigned int trains; } rows[] = {
		{ TURN_COST, 1 }, { TURN_COST / 4, 4 }, { 0, TURN_COST / COPY_COST },
	};
	struct engine *near = engine_create(true), *far = engine_create(true);
	struct end receiver, sender[2 * SENDERS];

	(void)state;
	end_create(&receiver, near, 1);
	for (uint8_t i = 0; i < 2 * SENDERS; i++)
		end_create(&sender[i], far, i + 2);
	for (unsigned int row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		for (unsigned int i = 0; i < 2 * SENDERS; i++)
			while (send_bytes(&sender[i], &receiver, rows[row].len) == PORT_SENT)
				;
		receiver.trains = 0;
		assert_true(port_receive(receiver.port));
		assert_in_range(receiver.trains, rows[row].trains - 1, rows[row].trains + 1);
		while (port_receive(receiver.port))
			;
	}
	for (unsigned int i = 0; i < 2 * SENDERS; i++)
		port_destroy(sender[i].port);
	port_destroy(receiver.port);
	engine_destroy(near);
	engine_destroy(far);
}

/* A timer that was due when the rings were full, and a receiver as a client of its engine. */
struct late {
	struct timer timer;
	struct engine_client client;
	struct end receiver;
	unsigned int trains;		/* received before the timer fired */
};

static bool run_late(struct engine_client *client)
{
	struct late *l = (void *)((char *)client - offsetof(struct late, client));

	return port_receive(l->receiver.port);
}

static bool never(const struct engine_client *client)
{
	(void)client;
	return false;
}

static void fire_late(struct timer *timer)
{
	struct late *l = (void *)timer;

	l->trains = l->receiver.trains;
	engine_stop(l->receiver.engine);
}

/* They take many rounds, in each of which the engine looks at its timers, too. */
static void what_lies_in_rings_is_taken_before_timers_fire(void **state)
{
	struct engine *near = engine_create(false), *far = engine_create(true);
	struct late l = { .timer.fire = fire_late, .client = { .run = run_late, .is_active = never, .is_blocked = never } };
	struct end sender[SENDERS];
	unsigned int sent = 0;

	(void)state;
	end_create(&l.receiver, near, 1);
	l.receiver.cost = TURN_COST;
	for (uint8_t i = 0; i < SENDERS; i++) {
		end_create(&sender[i], far, i + 2);
		while (send_to(&sender[i], &l.receiver) == PORT_SENT)
			sent++;
	}
	engine_join(near, &l.client);
	timer_set(&near->timers, &l.timer, 1);
	engine_run(near);
	assert_int_equal(l.trains, sent);
	engine_leave(near, &l.client);
	for (unsigned int i = 0; i < SENDERS; i++)
		port_destroy(sender[i].port);
	port_destroy(l.receiver.port);
	engine_destroy(near);
	engine_destroy(far);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "SEC-8: a_full_ring_keeps_no_other_waiting", a_full_ring_keeps_no_other_waiting, NULL, NULL, NULL },
		{ "SEC-8: a_round_receives_a_turn", a_round_receives_a_turn, NULL, NULL, NULL },
		cmocka_unit_test(what_lies_in_rings_is_taken_before_timers_fire),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
