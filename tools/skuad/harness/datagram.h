/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The harness for UD: queue pairs, WQEs and packets of theirs.
 */
#ifndef SKUAD_HARNESS_DATAGRAM_H
#define SKUAD_HARNESS_DATAGRAM_H

#include "harness/harness.h"

#define QKEY	0x11223344u
#define GSI_QKEY 0x80010000u

/* A QP of @type (UD or GSI; privileged) in @to_state, used from now on. Returns the queues of
 * before. */
struct queues ud_queues(struct world *w, struct node *n, uint8_t type, uint8_t to_state);
/* From wherever it is: up to @to_state, with the indices of a QP that was reset. */
void ud_bring(struct world *w, struct node *n, uint32_t qkey, uint8_t to_state);

/* The way to the QP that the peer uses, with QKEY; or to a group. */
struct skua_wqe_ud ud_to(const struct node *peer);
struct skua_wqe_ud ud_to_group(const uint8_t *mgid);

/* A WQE of two blocks with up to one SGE; its cookie is its index. */
void post_ud(struct node *n, uint8_t opcode, uint8_t flags, uint64_t addr, uint32_t len,
	     struct skua_wqe_ud to, uint32_t imm);

/* An entry of the GID table. */
void set_gid(struct world *w, struct node *n, uint16_t index, const uint8_t *gid,
	     const uint8_t *mac, uint16_t vlan);

/* The next CQE has to be that of a good receive. */
struct skua_cqe *expect_datagram(struct world *w, struct node *n, uint32_t byte_len);

/* @num QPs join a group. They have no receive: a datagram for each is dropped, and counted. */
void ud_join(struct world *w, struct node *n, unsigned int num, const uint8_t *mgid);

/* A datagram of no payload for the node's QP. */
struct train datagram(struct node *n);

#endif /* SKUAD_HARNESS_DATAGRAM_H */
