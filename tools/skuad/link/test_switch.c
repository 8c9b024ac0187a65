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

/* A port whose trains cost the receiver a whole turn each. */
struct end {
	struct engine *engine;
	struct link_port *port;
	uint8_t mac[6];
	unsigned int trains;		/* received */
};

static void rx_train(void *owner, const struct train *t)
{
	struct end *e = owner;

	(void)t;
	e->trains++;
	e->engine->turn -= TURN_COST;
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

static enum port_result send_to(struct end *from, const struct end *to)
{
	struct roce_path path = { .vlan = SKUA_VLAN_NONE };
	struct train t = { .op = TRAIN_SEND, .first = true, .last = true, .npkts = 1, .pmtu = 1024, .path = &path };
	struct port_mark mark = { 0 };

	memcpy(path.smac, from->mac, 6);
	memcpy(path.dmac, to->mac, 6);
	return port_send_train(from->port, &t, &mark);
}

/* One of the senders keeps its ring full. What the others have sent is received all the same, and their fences end. */
static void a_full_ring_keeps_no_other_waiting(void **state)
{
	struct engine *near = engine_create(true), *far = engine_create(true);
	struct end receiver, sender[SENDERS];
	uint64_t ticket[SENDERS];

	(void)state;
	end_create(&receiver, near, 1);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "SEC-8: a_full_ring_keeps_no_other_waiting", a_full_ring_keeps_no_other_waiting, NULL, NULL, NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
