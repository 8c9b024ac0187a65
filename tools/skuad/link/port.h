/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A port on a wire, of a device, and the switch between the ports of a wire.
 *
 * Ports are made before engines run and live as long as their device. Sending is done on the
 * thread of the sender's engine. A port on the same engine takes a train at once: when
 * port_send_train() returns, its payload has been copied. For a port on another engine the
 * train waits in a ring, and its payload is referred to until port_passed() or port_drained() says otherwise.
 */
#ifndef SKUAD_LINK_PORT_H
#define SKUAD_LINK_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/seg.h"
#include "packet/train.h"

struct capture;
struct engine;
struct impair_config;
struct link_port;

enum port_result {
	PORT_SENT,
	PORT_BUSY,	/* no room: try again */
	PORT_LOST,	/* nobody there, no room, or the link is down */
};

/* What the owner of a port does, on its engine's thread. */
struct port_ops {
	void (*rx_train)(void *owner, const struct train *t);
	void (*rx_frame)(void *owner, const struct seglist *frame);
	/* So many frames or packets were dropped: they came from a MAC that is not the port's. */
	void (*tx_refused)(void *owner, uint32_t n);
};

/* Attach @owner, which runs on @engine, to the wire that @link names (link/spec.h). Those that leave this process
 * belong to one engine (EXDEV). NULL with errno set; what is wrong with the link is logged. */
struct link_port *port_create(struct engine *engine, const char *link, const struct port_ops *ops, void *owner);
void port_destroy(struct link_port *port);
/* Others than before, from now on. On its engine's thread. */
void port_set_ops(struct link_port *port, const struct port_ops *ops);

/* The addresses by which others find it, and whether it carries anything. Any thread may read
 * them. */
void port_set_mac(struct link_port *port, const uint8_t *mac);
void port_set_up(struct link_port *port, bool up);
bool port_is_up(const struct link_port *port);

/* May its device send from other MACs than port_set_mac() gave? Else they are lost. Before engines run. */
void port_allow_spoof(struct link_port *port, bool on);
bool port_may_spoof(const struct link_port *port);

struct capture *port_set_capture(struct link_port *port, struct capture *cap);

/* What frames suffer from now on; NULL, or without rules: nothing. False: no memory. */
bool port_set_impair(struct link_port *port, const struct impair_config *config);
/* What they suffer, with counts; NULL: nothing. */
const struct impair_config *port_impair(const struct link_port *port);

/* How far the ring is that the last train of some payload went into; zero: none did. */
struct port_mark {
	const struct port_ring *ring;
	uint32_t head;
};

/* @mark is of the trains with this payload before, and tells of this one, too. While one of them is on its way to
 * another engine, none goes to a port elsewhere: PORT_BUSY. */
enum port_result port_send_train(struct link_port *port, const struct train *t,
				 struct port_mark *mark);

/* The trains are over: nothing refers to their payload any more. */
bool port_passed(const struct port_mark *mark);

/* An Ethernet frame without FCS; to one port, or to all others. The payload is copied. */
enum port_result port_send_frame(struct link_port *port, const struct seglist *frame);

/* Take what other engines' ports have sent to this one, and send on what waits for company. True
 * if anything was taken. */
bool port_receive(struct link_port *port);

/* What became of frames on the link that leaves this process; of all devices on it. False: it does
 * not leave. */
struct port_link_stats {
	bool peer;			/* there is somebody, as far as one can know */
	uint64_t tx_lost, rx_lost;	/* frames: nobody there, too long, not taken; not understood */
};
bool port_link_stats(const struct link_port *port, struct port_link_stats *stats);

/* Packets to this address had better go one by one: they pass a line here, where those of many are mixed, or they go
 * to all ports, which takes long. */
bool port_is_slow(const struct link_port *port, const uint8_t *dmac);

/* Nothing can be sent until the engine hears so: whoever is busy need not try meanwhile. */
bool port_is_blocked(const struct link_port *port);

/*
 * To take memory away: take a ticket after nothing new can refer to it; when the port has
 * drained up to the ticket, no train that was sent before refers to memory of its device any
 * more. What is sent later does not prolong the wait.
 */
uint64_t port_ticket(const struct link_port *port);
bool port_drained(const struct link_port *port, uint64_t ticket);

#endif /* SKUAD_LINK_PORT_H */
