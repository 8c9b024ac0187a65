// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* An address that moves from one port of a wire to another, while trains to it are on their way. */
#include "core/device.h"
#include "harness/harness.h"

static void raise_irq(void *host, unsigned int vector)
{
	(void)host;
	(void)vector;
}

static const struct skua_host_ops host_ops = { .raise_irq = raise_irq };

static struct skua_dev *device(struct engine *engine, uint8_t number)
{
	struct skua_dev_config config = { .name = "m", .mac = { 2, 0, 0, 0, 0, number }, .link = "wire:m" };
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "CQE-5: payload_is_in_one_ring_at_a_time", payload_is_in_one_ring_at_a_time, NULL, NULL, NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
