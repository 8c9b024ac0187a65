/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Links that leave the process, for tests of them: worlds on such links, what goes over them, and sockets of the
 * test in place of a peer.
 */
#ifndef SKUAD_HARNESS_LINKS_H
#define SKUAD_HARNESS_LINKS_H

#include "harness/harness.h"

/* Where unix sockets are: a directory of the test program. Setup and teardown of its group. */
extern char dir[64];
int make_dir(void **state);
int remove_dir(void **state);

/* Both ends of a link; %s: a directory, %u: a port. */
struct pair {
	const char *a, *b;
};

/* One end: @text with dir, and a port of this process, in @out, which has room for them. */
void expand(char *out, const char *text);
/* A world that is not threaded, each device on one end of the link. */
struct world *world_on(const struct pair *pair);

/* The engine turns for a while. Sockets of this host take a moment. */
void turn(struct world *w);
/* The next CQE of the node, while its peer's host sleeps as well as ours: @opcode, and a success. */
void done(struct world *w, struct node *n, uint8_t opcode);

void set_mtu(struct world *w, struct node *n, uint32_t mtu);

/* A WRITE from the start of the memory region of @a to that of @b. */
void post_write(struct node *a, const struct node *b, uint32_t len);
/* WRITEs, READs and SENDs of several lengths, one at a time, and their data. */
void messages_of_all_kinds(struct world *w);
/* A frame of @n's netdev: to @dmac, of another protocol. */
void send_frame(struct node *n, const uint8_t *dmac, uint32_t len);

/* The MAC of a peer that is a socket of the test. */
extern const uint8_t stranger[6];
/* It connects to the listener dir/@name; or is bound to dir/peer, in place of one that was closed. Neither blocks. */
int stream_to(const char *name);
int peer_socket(void);

#endif /* SKUAD_HARNESS_LINKS_H */
