// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The in-process switch: devices whose links name the same wire hear each other.
 *
 * A port knows its peers by their MAC addresses. Between devices of one engine a train is a
 * function call, and its payload goes from guest to guest in one copy. Between engines there
 * is a ring for each pair of ports and direction, with one producer and one consumer; the
 * consumer moves on only when it has done with a train, which is how the producer knows
 * that its memory is not referred to any more.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/copy.h"
#include "core/engine_priv.h"
#include "link/capture.h"
#include "link/port.h"

#define RING_SIZE	64
#define WIRE_PREFIX	"wire:"

struct ring_slot {
	uint64_t seq;			/* the producer's; of all that its port sent */
	struct train train;
	struct roce_path path;
	uint8_t *frame;			/* not NULL: an Ethernet frame instead */
	struct seglist payload;
};

/* From one port to another on a different engine. head and tail run free. */
struct port_ring {
	uint32_t head;			/* producer's */
	uint32_t tail;			/* consumer's */
	struct link_port *from, *to;
	struct port_ring *next_out, *next_in;
	struct ring_slot slot[RING_SIZE];
};

struct wire {
	char *name;
	struct link_port *ports;
	struct wire *next;
};

struct link_port {
	struct skua_dev *dev;
	struct engine *engine;
	struct wire *wire;
	struct link_port *next;		/* on the wire */
	uint64_t seq;			/* of the last train or frame that went into a ring */
	uint64_t mac;			/* atomic */
	bool up;			/* atomic */
	struct capture *capture;
	struct port_ring *out, *in;
};

static struct wire *wires;		/* changes only while no engine runs */

static uint64_t mac_key(const uint8_t *mac)
{
	uint64_t key = 0;

	memcpy(&key, mac, 6);
	return key;
}

static uint64_t wall_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static struct wire *wire_get(const char *name)
{
	struct wire *w;

	for (w = wires; w; w = w->next)
		if (!strcmp(w->name, name))
			return w;
	w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->name = strdup(name);
	w->next = wires;
	wires = w;
	return w;
}

static void wire_put(struct wire *wire)
{
	struct wire **link = &wires;

	if (wire->ports)
		return;
	while (*link != wire)
		link = &(*link)->next;
	*link = wire->next;
	free(wire->name);
	free(wire);
}

static bool ring_create(struct link_port *from, struct link_port *to)
{
	struct port_ring *ring = calloc(1, sizeof(*ring));

	if (!ring)
		return false;
	ring->from = from;
	ring->to = to;
	ring->next_out = from->out;
	from->out = ring;
	ring->next_in = to->in;
	to->in = ring;
	return true;
}

struct link_port *port_create(struct skua_dev *dev, struct engine *engine, const char *link)
{
	struct link_port *port, *peer;

	if (strncmp(link, WIRE_PREFIX, strlen(WIRE_PREFIX)) || !link[strlen(WIRE_PREFIX)]) {
		errno = EINVAL;
		return NULL;
	}
	port = calloc(1, sizeof(*port));
	if (!port)
		return NULL;
	port->dev = dev;
	port->engine = engine;
	port->up = true;
	port->wire = wire_get(link + strlen(WIRE_PREFIX));
	if (!port->wire) {
		free(port);
		return NULL;
	}
	port->next = port->wire->ports;
	port->wire->ports = port;
	for (peer = port->next; peer; peer = peer->next) {
		if (peer->engine == engine)
			continue;
		if (!ring_create(port, peer) || !ring_create(peer, port)) {
			port_destroy(port);
			errno = ENOMEM;
			return NULL;
		}
	}
	return port;
}

static void slot_free(struct ring_slot *slot)
{
	free(slot->frame);
	slot->frame = NULL;
}

static void ring_destroy(struct port_ring *ring)
{
	struct port_ring **link;

	for (link = &ring->from->out; *link != ring; link = &(*link)->next_out)
		;
	*link = ring->next_out;
	for (link = &ring->to->in; *link != ring; link = &(*link)->next_in)
		;
	*link = ring->next_in;
	for (; ring->tail != ring->head; ring->tail++)
		slot_free(&ring->slot[ring->tail % RING_SIZE]);
	free(ring);
}

void port_destroy(struct link_port *port)
{
	struct link_port **link = &port->wire->ports;

	while (port->out)
		ring_destroy(port->out);
	while (port->in)
		ring_destroy(port->in);
	while (*link != port)
		link = &(*link)->next;
	*link = port->next;
	wire_put(port->wire);
	free(port);
}

void port_set_mac(struct link_port *port, const uint8_t *mac)
{
	__atomic_store_n(&port->mac, mac_key(mac), __ATOMIC_RELEASE);
}

void port_set_up(struct link_port *port, bool up)
{
	__atomic_store_n(&port->up, up, __ATOMIC_RELEASE);
}

bool port_is_up(const struct link_port *port)
{
	return __atomic_load_n(&port->up, __ATOMIC_ACQUIRE);
}

struct capture *port_set_capture(struct link_port *port, struct capture *cap)
{
	struct capture *old = port->capture;

	port->capture = cap;
	return old;
}

static struct link_port *find(const struct link_port *port, const uint8_t *mac)
{
	uint64_t key = mac_key(mac);

	for (struct link_port *p = port->wire->ports; p; p = p->next)
		if (__atomic_load_n(&p->mac, __ATOMIC_ACQUIRE) == key)
			return p;
	return NULL;
}

static struct port_ring *ring_to(const struct link_port *from, const struct link_port *to)
{
	struct port_ring *ring = from->out;

	while (ring->to != to)
		ring = ring->next_out;
	return ring;
}

static struct ring_slot *ring_slot(struct port_ring *ring)
{
	if (ring->head - __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) == RING_SIZE)
		return NULL;
	return &ring->slot[ring->head % RING_SIZE];
}

static void ring_publish(struct port_ring *ring)
{
	ring->slot[ring->head % RING_SIZE].seq = ++ring->from->seq;
	__atomic_store_n(&ring->head, ring->head + 1, __ATOMIC_RELEASE);
	engine_kick(ring->to->engine);
}

/* A captured payload must not change between the capture and the delivery: copy it. */
static void settle_payload(struct engine *engine, struct train *t, struct seglist *copy)
{
	if (!t->payload || !t->payload->bytes)
		return;
	copy->n = 1;
	copy->bytes = t->payload->bytes;
	copy->seg[0] = (struct seg){ engine->bounce, t->payload->bytes };
	copy_segs(copy, t->payload);
	t->payload = copy;
}

static void deliver_train(struct link_port *to, struct train *t, bool settled)
{
	struct seglist copy;

	if (to->capture) {
		if (!settled)
			settle_payload(to->engine, t, &copy);
		capture_train(to->capture, false, wall_ns(), t);
	}
	skua_dev_rx_train(to->dev, t);
}

enum port_result port_send_train(struct link_port *port, const struct train *train,
				 struct port_mark *mark)
{
	struct link_port *to = find(port, train->path->dmac);
	struct train t = *train;
	struct port_ring *ring;
	struct ring_slot *slot;
	struct seglist copy;
	bool settled = false;

	mark->ring = NULL;
	if (!to || !port_is_up(port) || !port_is_up(to))
		return PORT_LOST;
	if (to->engine != port->engine) {
		ring = ring_to(port, to);
		slot = ring_slot(ring);
		if (!slot)
			return PORT_BUSY;
		slot->train = t;
		slot->path = *t.path;
		slot->train.path = &slot->path;
		if (t.payload) {
			slot->payload.n = t.payload->n;
			slot->payload.bytes = t.payload->bytes;
			memcpy(slot->payload.seg, t.payload->seg,
			       t.payload->n * sizeof(*t.payload->seg));
			slot->train.payload = &slot->payload;
		}
		if (port->capture)
			capture_train(port->capture, true, wall_ns(), &t);
		*mark = (struct port_mark){ ring, ring->head };
		ring_publish(ring);
		return PORT_SENT;
	}
	if (port->capture) {
		settle_payload(port->engine, &t, &copy);
		settled = true;
		capture_train(port->capture, true, wall_ns(), &t);
	}
	deliver_train(to, &t, settled);
	return PORT_SENT;
}

bool port_passed(const struct port_mark *mark)
{
	return !mark->ring ||
	       (int32_t)(__atomic_load_n(&mark->ring->tail, __ATOMIC_ACQUIRE) - mark->head) > 0;
}

uint64_t port_ticket(const struct link_port *port)
{
	return port->seq;
}

bool port_drained(const struct link_port *port, uint64_t ticket)
{
	for (const struct port_ring *r = port->out; r; r = r->next_out) {
		uint32_t tail = __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE);

		if (tail != r->head && r->slot[tail % RING_SIZE].seq <= ticket)
			return false;
	}
	return true;
}

static void deliver_frame(struct link_port *to, const struct seglist *frame)
{
	if (!port_is_up(to))
		return;
	if (to->capture)
		capture_frame(to->capture, false, wall_ns(), frame);
	skua_dev_rx_frame(to->dev, frame);
}

static enum port_result send_frame_to(struct link_port *port, struct link_port *to,
				      const struct seglist *frame)
{
	struct port_ring *ring;
	struct ring_slot *slot;

	if (to->engine == port->engine) {
		deliver_frame(to, frame);
		return PORT_SENT;
	}
	ring = ring_to(port, to);
	slot = ring_slot(ring);
	if (!slot)
		return PORT_BUSY;
	slot->frame = malloc(frame->bytes);
	if (!slot->frame)
		return PORT_LOST;
	slot->payload.n = 1;
	slot->payload.bytes = frame->bytes;
	slot->payload.seg[0] = (struct seg){ slot->frame, frame->bytes };
	copy_segs(&slot->payload, frame);
	ring_publish(ring);
	return PORT_SENT;
}

/* @frame lies in one piece of our own memory: its Ethernet header is read here. */
enum port_result port_send_frame(struct link_port *port, const struct seglist *frame)
{
	const uint8_t *dmac = frame->seg[0].p;
	struct link_port *to = dmac[0] & 1 ? NULL : find(port, dmac);

	if (!port_is_up(port))
		return PORT_LOST;
	if (port->capture)
		capture_frame(port->capture, true, wall_ns(), frame);
	if (to)
		return to == port ? PORT_SENT : send_frame_to(port, to, frame);
	/* Groups and strangers: everybody hears it; who has no room misses it. */
	for (to = port->wire->ports; to; to = to->next)
		if (to != port)
			send_frame_to(port, to, frame);
	return PORT_SENT;
}

static bool receive_from(struct port_ring *ring)
{
	struct link_port *to = ring->to;
	bool any = false;

	while (__atomic_load_n(&ring->head, __ATOMIC_ACQUIRE) != ring->tail) {
		struct ring_slot *slot = &ring->slot[ring->tail % RING_SIZE];

		if (slot->frame)
			deliver_frame(to, &slot->payload);
		else if (port_is_up(to))
			deliver_train(to, &slot->train, false);
		slot_free(slot);
		__atomic_store_n(&ring->tail, ring->tail + 1, __ATOMIC_RELEASE);
		any = true;
	}
	return any;
}

bool port_receive(struct link_port *port)
{
	bool any = false;

	for (struct port_ring *ring = port->in; ring; ring = ring->next_in)
		any |= receive_from(ring);
	return any;
}
