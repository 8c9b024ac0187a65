// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The switch: devices whose links are the same text hear each other, and, where the link leaves
 * this process, what is behind its one uplink.
 *
 * A device is known by its port's MAC, and may send from no other, unless it may spoof; then the MAC of a
 * port that may not is still that port's. Other addresses, those behind the uplink among them, are
 * learned from what comes from there. What is for a group, or for nobody that is known, goes to
 * all.
 *
 * Between devices of one engine a train is a function call, and its payload goes from guest to
 * guest in one copy. Between engines there is a ring for each pair of ports and direction,
 * with one producer and one consumer; the consumer moves on only when it has done with a train,
 * which is how the producer knows that its memory is not referred to any more. Devices with an
 * uplink are all of its engine, so that it needs no ring; trains are cut into packets for it,
 * and for the way to an address that is not known.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/copy.h"
#include "base/engine_priv.h"
#include "base/log.h"
#include "link/capture.h"
#include "link/impair.h"
#include "link/mactab.h"
#include "link/port.h"
#include "link/uplink.h"
#include "packet/packet.h"

#define RING_SIZE	64
#define SHORT_FRAME	160		/* bytes: control of one protocol or another */
#define UPLINK_NUMBER	0xffff		/* in the table of addresses */
#define NS_PER_S	1000000000u

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
	uint32_t tail;			/* consumer's, as the rest but for the slots */
	uint32_t look;			/* in which look_end was noted, by the engine's number */
	uint32_t look_end;
	struct link_port *from, *to;
	struct port_ring *next_out, *next_in;
	struct ring_slot slot[RING_SIZE];
};

struct wire {
	char *name;
	struct link_port *ports;
	struct uplink *uplink;		/* NULL: it does not leave this process */
	struct mactab macs;
	uint16_t last_number;		/* given to a port */
	struct wire *next;
};

struct link_port {
	const struct port_ops *ops;
	void *owner;
	struct engine *engine;
	struct wire *wire;
	struct link_port *next;		/* on the wire */
	uint16_t number;		/* in the table of addresses, from 1 */
	uint64_t seq;			/* of the last train or frame that went into a ring */
	uint64_t mac;			/* atomic */
	bool spoof;			/* it may send from others */
	bool up;			/* atomic */
	struct capture *capture;
	struct impair *impair;		/* NULL: nothing has ever happened to frames */
	bool impaired[2];		/* enum impair_dir: as is_impaired() has found */
	struct port_ring *out, *in;
};

static struct wire *wires;		/* changes only while no engine runs */

/* In two parts: a load of eight bytes would wait for the stores of six. */
static uint64_t mac_key(const uint8_t *mac)
{
	uint32_t head;
	uint16_t tail;

	memcpy(&head, mac, sizeof(head));
	memcpy(&tail, mac + sizeof(head), sizeof(tail));
	return (uint64_t)tail << 32 | head;
}

/* Captures of an engine with a manual clock show that clock. */
static uint64_t wall_ns(const struct link_port *port)
{
	struct timespec ts;

	if (port->engine->manual)
		return engine_now(port->engine);
	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static struct wire *wire_find(const char *name)
{
	struct wire *w = wires;

	while (w && strcmp(w->name, name))
		w = w->next;
	return w;
}

static void wire_free(struct wire *wire)
{
	if (wire->uplink)
		uplink_close(wire->uplink);
	free(wire->name);
	free(wire);
}

/* NULL with errno set, and the reason in the log. */
static struct wire *wire_create(struct engine *engine, const char *link)
{
	struct wire *w = calloc(1, sizeof(*w));
	struct link_spec spec;
	char err[64];

	if (!w)
		return NULL;
	w->name = strdup(link);
	if (!link_parse(&spec, link, err, sizeof(err))) {
		log_err(NULL, "bad link '%.60s': %s", link, err);
		wire_free(w);
		errno = EINVAL;
		return NULL;
	}
	if (spec.kind != LINK_WIRE) {
		w->uplink = uplink_open(engine, w, &spec, w->name);
		if (!w->uplink) {
			int error = errno;

			log_err(NULL, "link %s: %s", link, strerror(error));
			wire_free(w);
			errno = error;
			return NULL;
		}
	}
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
	wire_free(wire);
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

struct link_port *port_create(struct engine *engine, const char *link, const struct port_ops *ops, void *owner)
{
	struct link_port *port, *peer;

	port = calloc(1, sizeof(*port));
	if (!port)
		return NULL;
	port->ops = ops;
	port->owner = owner;
	port->engine = engine;
	port->up = true;
	port->wire = wire_find(link);
	if (!port->wire)
		port->wire = wire_create(engine, link);
	if (!port->wire) {
		free(port);
		return NULL;
	}
	if (port->wire->uplink && port->wire->uplink->engine != engine) {
		free(port);
		errno = EXDEV;
		return NULL;
	}
	port->number = ++port->wire->last_number;
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

	port_set_up(port, false);
	/* What was held back has nowhere to go any more. */
	if (port->impair)
		impair_destroy(port->impair);
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

void port_set_ops(struct link_port *port, const struct port_ops *ops)
{
	port->ops = ops;
}

void port_set_mac(struct link_port *port, const uint8_t *mac)
{
	__atomic_store_n(&port->mac, mac_key(mac), __ATOMIC_RELEASE);
}

void port_allow_spoof(struct link_port *port, bool on)
{
	port->spoof = on;
}

bool port_may_spoof(const struct link_port *port)
{
	return port->spoof;
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

/* Where an address is: a port, the uplink, or not known. */
struct place {
	struct link_port *port;
	bool uplink;
};

static uint32_t seconds(struct engine *engine)
{
	return (uint32_t)(engine_now(engine) / NS_PER_S);
}

static struct place find(const struct wire *wire, const uint8_t *mac, uint32_t now)
{
	struct link_port *p, *taken = NULL;
	uint64_t key = mac_key(mac);
	uint16_t number;

	for (p = wire->ports; p; p = p->next) {
		if (__atomic_load_n(&p->mac, __ATOMIC_ACQUIRE) != key)
			continue;
		if (!p->spoof)
			return (struct place){ .port = p };
		taken = p;
	}
	if (taken)
		return (struct place){ .port = taken };
	number = mactab_find(&wire->macs, mac, now);
	if (number == UPLINK_NUMBER)
		return (struct place){ .uplink = true };
	for (p = wire->ports; number && p && p->number != number; p = p->next)
		;
	return (struct place){ .port = number ? p : NULL };
}

/* @n frames or packets come from @mac through the port. It need not be the port's own, if that is allowed: then it is
 * learned. */
static bool may_send(struct link_port *port, const uint8_t *mac, uint32_t n)
{
	if (mac_key(mac) == __atomic_load_n(&port->mac, __ATOMIC_RELAXED))
		return true;
	if (port->spoof)
		mactab_learn(&port->wire->macs, mac, port->number, seconds(port->engine));
	else
		port->ops->tx_refused(port->owner, n);
	return port->spoof;
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

/* A captured payload must not change between the capture and the delivery: @t is @train with a copy of it. */
static void settle_payload(struct engine *engine, const struct train *train, struct train *t,
			   struct seglist *copy)
{
	*t = *train;
	if (!t->payload || !t->payload->bytes)
		return;
	copy->n = 1;
	copy->bytes = t->payload->bytes;
	copy->seg[0] = (struct seg){ engine->bounce, t->payload->bytes };
	copy_segs(copy, t->payload);
	t->payload = copy;
}

/* Do frames of this direction go to the impairments? Not any more, when they have no rules and hold nothing. */
static bool is_impaired(struct link_port *port, enum impair_dir dir)
{
	if (port->impaired[dir])
		port->impaired[dir] = impair_has(port->impair, dir);
	return port->impaired[dir];
}

/* Its packets, one by one. */
static void impair_train(struct link_port *port, enum impair_dir dir, const struct train *t)
{
	uint8_t buf[ROCE_MAX_PACKET];

	for (uint32_t i = 0; i < t->npkts; i++)
		impair_frame(port->impair, dir, true, buf, (uint32_t)roce_packet_build(buf, t, i));
}

static void deliver_train(struct link_port *to, const struct train *t, bool settled)
{
	struct seglist copy;
	struct train own;

	if (is_impaired(to, IMPAIR_IN)) {
		impair_train(to, IMPAIR_IN, t);
		return;
	}
	if (to->capture) {
		if (!settled) {
			settle_payload(to->engine, t, &own, &copy);
			t = &own;
		}
		capture_train(to->capture, false, wall_ns(to), t);
	}
	to->ops->rx_train(to->owner, t);
}

/* To a port on another engine: by reference. */
static enum port_result send_by_ring(struct link_port *port, struct link_port *to,
				     const struct train *t, struct port_mark *mark)
{
	struct port_ring *ring = ring_to(port, to);
	struct ring_slot *slot = ring_slot(ring);

	/* A mark tells of one ring: the address may have moved since the train before. */
	if (!slot || (mark->ring != ring && !port_passed(mark)))
		return PORT_BUSY;
	slot->train = *t;
	slot->path = *t->path;
	slot->train.path = &slot->path;
	if (t->payload) {
		slot->payload.n = t->payload->n;
		slot->payload.bytes = t->payload->bytes;
		memcpy(slot->payload.seg, t->payload->seg,
		       t->payload->n * sizeof(*t->payload->seg));
		slot->train.payload = &slot->payload;
	}
	if (port->capture)
		capture_train(port->capture, true, wall_ns(port), t);
	*mark = (struct port_mark){ ring, ring->head };
	ring_publish(ring);
	return PORT_SENT;
}

/*
 * May @bytes for @dmac go everywhere now, lengths of the uplink included? What is for one receiver waits for room on
 * the uplink, as if that were the way to it. What is for a group does not: a peer that takes nothing would keep it from
 * the other ports.
 */
static bool may_flood(struct link_port *port, const uint8_t *dmac, uint64_t bytes)
{
	struct uplink *up = port->wire->uplink;

	return dmac[0] & 1 || !up || !up->carrier || uplink_has_room(up, bytes);
}

static uint64_t bytes_on_uplink(const struct train *t)
{
	uint32_t longest;

	return roce_train_bytes(t, &longest) + t->npkts * (uint64_t)UPLINK_LEN;
}

static void flood(struct link_port *port, const struct seglist *frame);

/* Nobody knows where its receiver is: its packets go everywhere. */
static enum port_result flood_train(struct link_port *port, const struct train *t)
{
	uint8_t buf[ROCE_MAX_PACKET];
	struct seglist frame;

	if (!may_flood(port, t->path->dmac, bytes_on_uplink(t)))
		return PORT_BUSY;
	frame.n = 1;
	for (uint32_t i = 0; i < t->npkts; i++) {
		frame.bytes = (uint32_t)roce_packet_build(buf, t, i);
		frame.seg[0] = (struct seg){ buf, frame.bytes };
		flood(port, &frame);
	}
	return PORT_SENT;
}

static enum port_result send_to(struct link_port *port, struct place to, const struct train *t,
				bool settled)
{
	if (to.uplink)
		return uplink_send_train(port->wire->uplink, t);
	if (!to.port)
		return flood_train(port, t);
	if (!port_is_up(to.port))
		return PORT_LOST;
	deliver_train(to.port, t, settled);
	return PORT_SENT;
}

/* Is there room on the uplink now, if @t needs some? A packet that nobody takes would keep those behind it waiting. */
static bool has_room(struct link_port *port, struct place to, const struct train *t)
{
	if (to.uplink)
		return uplink_has_room(port->wire->uplink, bytes_on_uplink(t));
	return to.port || may_flood(port, t->path->dmac, bytes_on_uplink(t));
}

static enum port_result send_impaired(struct link_port *port, struct place to, const struct train *t)
{
	if (impair_busy(port->impair) || !has_room(port, to, t))
		return PORT_BUSY;
	impair_train(port, IMPAIR_OUT, t);
	return PORT_SENT;
}

enum port_result port_send_train(struct link_port *port, const struct train *train,
				 struct port_mark *mark)
{
	struct place to = find(port->wire, train->path->dmac, seconds(port->engine));
	enum port_result r;
	struct seglist copy;
	struct train t;
	uint64_t ns;

	if (!port_is_up(port) || !may_send(port, train->path->smac, train->npkts))
		return PORT_LOST;
	if (is_impaired(port, IMPAIR_OUT))
		return send_impaired(port, to, train);
	if (to.port && to.port->engine != port->engine)
		return port_is_up(to.port) ? send_by_ring(port, to.port, train, mark) : PORT_LOST;
	if (!port->capture)
		return send_to(port, to, train, false);
	settle_payload(port->engine, train, &t, &copy);
	ns = wall_ns(port);
	r = send_to(port, to, &t, true);
	if (r != PORT_BUSY)
		capture_train(port->capture, true, ns, &t);
	return r;
}

/* Nobody takes anything out of this ring any more, or reads what is in it. */
static bool is_abandoned(const struct port_ring *ring)
{
	return __atomic_load_n(&ring->to->engine->stopped, __ATOMIC_ACQUIRE);
}

bool port_passed(const struct port_mark *mark)
{
	return !mark->ring ||
	       (int32_t)(__atomic_load_n(&mark->ring->tail, __ATOMIC_ACQUIRE) - mark->head) > 0 ||
	       is_abandoned(mark->ring);
}

uint64_t port_ticket(const struct link_port *port)
{
	return port->seq;
}

bool port_drained(const struct link_port *port, uint64_t ticket)
{
	for (const struct port_ring *r = port->out; r; r = r->next_out) {
		uint32_t tail = __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE);

		if (tail != r->head && r->slot[tail % RING_SIZE].seq <= ticket && !is_abandoned(r))
			return false;
	}
	return true;
}

/* It has come through. */
static void deliver_now(struct link_port *to, const struct seglist *frame)
{
	if (!port_is_up(to))
		return;
	if (to->capture)
		capture_frame(to->capture, false, wall_ns(to), frame);
	to->ops->rx_frame(to->owner, frame);
}

static void deliver_frame(struct link_port *to, const struct seglist *frame)
{
	if (is_impaired(to, IMPAIR_IN))
		impair_frame(to->impair, IMPAIR_IN, false, frame->seg[0].p, frame->bytes);
	else
		deliver_now(to, frame);
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

/*
 * Everybody hears it but who sent it; who has no room misses it. The uplink is first: what others answer at once would
 * take its room.
 */
static void flood(struct link_port *port, const struct seglist *frame)
{
	struct uplink *up = port->wire->uplink;

	if (up && uplink_send_frame(up, frame) == PORT_BUSY)
		up->stats.tx_lost++;
	for (struct link_port *to = port->wire->ports; to; to = to->next)
		if (to != port) {
			engine_charge_copy(port->engine, frame->bytes);
			send_frame_to(port, to, frame);
		}
}

/* @packet: it is RDMA's, and may be for the port itself (ROC-14). */
static enum port_result route_frame(struct link_port *port, const struct seglist *frame,
				    bool packet)
{
	const uint8_t *dmac = frame->seg[0].p;
	struct place to = { 0 };

	if (!(dmac[0] & 1))
		to = find(port->wire, dmac, seconds(port->engine));
	if (to.uplink)
		return uplink_send_frame(port->wire->uplink, frame);
	if (to.port)
		return to.port == port && !packet ? PORT_SENT :
		       send_frame_to(port, to.port, frame);
	if (!may_flood(port, dmac, frame->bytes + UPLINK_LEN))
		return PORT_BUSY;
	flood(port, frame);
	return PORT_SENT;
}

/* On to the wire. */
static enum port_result send_frame(struct link_port *port, const struct seglist *frame, bool packet)
{
	uint64_t ns = port->capture ? wall_ns(port) : 0;
	enum port_result r;

	if (!port_is_up(port))
		return PORT_LOST;
	r = route_frame(port, frame, packet);
	if (port->capture && r != PORT_BUSY)
		capture_frame(port->capture, true, ns, frame);
	return r;
}

/* @frame lies in one piece of our own memory: its Ethernet header is read here. */
enum port_result port_send_frame(struct link_port *port, const struct seglist *frame)
{
	if (!port_is_up(port) || !may_send(port, (const uint8_t *)frame->seg[0].p + 6, 1))
		return PORT_LOST;
	if (!is_impaired(port, IMPAIR_OUT))
		return send_frame(port, frame, false);
	/* A line that is busy has no end of those who wait for it: short frames are not kept out. */
	if ((frame->bytes > SHORT_FRAME || impair_ends(port->impair)) && impair_busy(port->impair))
		return PORT_BUSY;
	impair_frame(port->impair, IMPAIR_OUT, false, frame->seg[0].p, frame->bytes);
	return PORT_SENT;
}

/* What impairments have done with, goes on. */
static bool impair_done(void *owner, enum impair_dir dir, bool packet, uint8_t *bytes, uint32_t len)
{
	struct link_port *port = owner;
	struct seglist frame;

	frame.n = 1;
	frame.bytes = len;
	frame.seg[0] = (struct seg){ bytes, len };
	if (dir == IMPAIR_OUT)
		return send_frame(port, &frame, packet) != PORT_BUSY;
	deliver_now(port, &frame);
	return true;
}

bool port_set_impair(struct link_port *port, const struct impair_config *config)
{
	static const struct impair_config none;

	if (!port->impair && config && config->n) {
		port->impair = impair_create(port->engine, impair_done, port);
		if (!port->impair)
			return false;
	}
	if (port->impair) {
		impair_set(port->impair, config ? config : &none);
		port->impaired[IMPAIR_OUT] = port->impaired[IMPAIR_IN] = true;
	}
	return true;
}

const struct impair_config *port_impair(const struct link_port *port)
{
	const struct impair_config *config = port->impair ? impair_config(port->impair) : NULL;

	return config && config->n ? config : NULL;
}

void uplink_received(struct uplink *up, uint8_t *bytes, uint32_t len)
{
	struct wire *wire = up->wire;
	uint32_t now = seconds(up->engine);
	struct place to = { 0 };
	struct seglist frame;

	/* Peers may send frames as short as they like. */
	up->engine->turn -= COPY_COST;
	if (len < 14 || len > UPLINK_FRAME_MAX) {
		up->stats.rx_lost++;
		return;
	}
	frame.n = 1;
	frame.bytes = len;
	frame.seg[0] = (struct seg){ bytes, len };
	up->stats.rx_frames++;
	up->stats.rx_bytes += len;
	mactab_learn(&wire->macs, bytes + 6, UPLINK_NUMBER, now);
	if (!(bytes[0] & 1))
		to = find(wire, bytes, now);
	if (to.port) {
		deliver_frame(to.port, &frame);
		return;
	}
	/* What is known to be on that side has no business here. */
	for (to.port = to.uplink ? NULL : wire->ports; to.port; to.port = to.port->next) {
		engine_charge_copy(up->engine, len);
		deliver_frame(to.port, &frame);
	}
}

bool port_link_stats(const struct link_port *port, struct port_link_stats *stats)
{
	const struct uplink *up = port->wire->uplink;

	if (!up)
		return false;
	*stats = (struct port_link_stats){ up->carrier, up->stats.tx_lost, up->stats.rx_lost };
	return true;
}

bool port_is_slow(const struct link_port *port, const uint8_t *dmac)
{
	struct place to = find(port->wire, dmac, seconds(port->engine));

	return port->impaired[IMPAIR_OUT] || (!to.port && !to.uplink);
}

bool port_is_blocked(const struct link_port *port)
{
	return port->wire->uplink && port->wire->uplink->blocked;
}

/* What is there now, as far as the turn lasts: a producer that goes on would hold us up for ever. */
static bool receive_from(struct port_ring *ring, uint32_t head)
{
	struct link_port *to = ring->to;
	bool any = false;

	while (ring->tail != head && to->engine->turn > 0) {
		struct ring_slot *slot = &ring->slot[ring->tail % RING_SIZE];
		const struct seglist *payload = slot->frame ? &slot->payload : slot->train.payload;

		engine_charge_copy(to->engine, payload ? payload->bytes : 0);
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

/* Is there still something in the ring that had come when the engine began to take what had come? */
static bool is_left(const struct port_ring *ring)
{
	return (int32_t)(ring->look_end - ring->tail) > 0;
}

/* Those behind @ring are first in the next round, and @ring is the last. */
static void begin_behind(struct link_port *port, struct port_ring *ring)
{
	struct port_ring **end = &port->in;

	while (*end)
		end = &(*end)->next_in;
	*end = port->in;
	port->in = ring->next_in;
	ring->next_in = NULL;
}

bool port_receive(struct link_port *port)
{
	bool any = port->impair && impair_run(port->impair);
	struct engine *engine = port->engine;
	struct port_ring *full = NULL;

	engine->turn = TURN_COST;
	if (port->wire->uplink) {
		any |= uplink_run(port->wire->uplink);
		any |= uplink_take(port->wire->uplink);
	}
	for (struct port_ring *ring = port->in; ring; ring = ring->next_in) {
		uint32_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);

		if (ring->look != engine->look_number) {
			ring->look = engine->look_number;
			ring->look_end = head;
		}
		if (engine->turn > 0) {
			any |= receive_from(ring, head);
			if (engine->turn <= 0)
				full = ring;
		}
		engine->left |= is_left(ring);
	}
	/* One that uses up every turn must not keep the others waiting for ever. */
	if (full)
		begin_behind(port, full);
	return any;
}
