/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The harness for tag matching: node b has an SRQ with tags, a UD QP that carries the operations on its list, and an RC
 * QP whose peer is an ordinary QP of node a. All of b's CQEs of this go to the CQ that poll_cq() polls.
 */
#ifndef SKUAD_HARNESS_MATCHING_H
#define SKUAD_HARNESS_MATCHING_H

#include "harness/harness.h"

#define SRQ_HANDLE	0x7a97a97a9ull
#define TAGS		8u
#define MTU		1024u
#define ALL		(~0ull)
#define SLOT		65536ull	/* of b's memory, for each tag */
#define BOTH		(SKUA_CQE_TAG_MATCH | SKUA_CQE_TAG_DATA)

struct tags {
	struct world *w;
	struct node *a, *b;		/* post() of b: the operations; of a: the peer */
	uint32_t srqn, qpn;		/* the RC QP of b */
};

/* Setup and teardown of cmocka: *state is a struct tags. */
int tags_setup(void **state);
int tags_teardown(void **state);

struct skua_cmd tags_srq_cmd(struct node *n, uint32_t count);
/* A QP of b's that names the SRQ. */
struct skua_cmd tags_user_cmd(const struct tags *t, uint8_t type);
/* The RC QP and its peer, from RESET to RTS. */
void tags_connect(struct tags *t);

/* Where the payload for a tag goes. */
uint64_t tag_buffer(const struct tags *t, uint32_t number);
struct skua_wqe_tag tag_of(const struct tags *t, uint32_t handle, uint64_t tag, uint64_t mask, uint32_t len);

/* Operations on the list, and the CQE of one. tag_add() asks for none. */
void tag_operation(struct tags *t, uint8_t opcode, uint8_t flags, struct skua_wqe_tag op);
void tag_add(struct tags *t, uint32_t handle, uint64_t tag, uint64_t mask, uint32_t len);
void tag_sync(struct tags *t, uint32_t count);
void tag_del(struct tags *t, uint32_t handle);
void expect_tag_op(struct tags *t, uint8_t opcode, uint8_t status, uint8_t flags);

/* A message of a's memory from @offset on, that begins with a header. */
void tag_header(struct tags *t, uint64_t offset, uint8_t opcode, uint64_t tag);
/* It is sent, from a's first byte on; and what came of that. */
void tag_send(struct tags *t, uint8_t opcode, uint64_t tag, uint32_t len);
void tag_sent(struct tags *t);
/* A request for a rendezvous with what is at a's @offset, @len bytes of it. */
void tag_request(struct tags *t, uint64_t tag, uint64_t offset, uint32_t len, uint32_t bytes);
/* A packet that the peer did not send, from a's first byte on, or from one behind that; its payload is @len bytes. */
void tag_packet(struct tags *t, uint32_t psn, bool first, bool last, uint32_t len);

/* The CQE of a receive; of a success with a tag, which stands in it; and the payload of that. */
struct skua_cqe *expect_tag_recv(struct tags *t, uint8_t opcode, uint8_t status, uint8_t flags, uint32_t cookie);
void expect_tag(struct tags *t, uint8_t flags, uint32_t handle, uint64_t tag, uint32_t len);
void expect_tag_data(struct tags *t, uint32_t number, uint64_t offset, uint32_t len);

#endif /* SKUAD_HARNESS_MATCHING_H */
