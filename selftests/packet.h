/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Raw packet QPs, the frames that they send and the flows that they take. Rules: Documentation/manual/raw.rst.
 */
#ifndef SKUA_SELFTEST_PACKET_H
#define SKUA_SELFTEST_PACKET_H

#include "pair.h"

#define SLOT	2048u		/* for a received frame; frames to send are in the first one */
#define SLOTS	64u
#define FRAME	100u

/* A raw packet QP with a CQ and memory of its own. */
struct packet_qp {
	struct side *side;
	uint8_t *mem;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	unsigned int posted;
};

/* A flow as a program gives it: the specs stand behind the attributes. */
struct rule {
	struct ibv_flow_attr attr;
	uint8_t specs[256];
	size_t size;
};

/* A QP of @side in RTS. 0 or an errno; in any case packet_close() gives all of it back. */
int packet_open(struct packet_qp *raw, struct side *side);
void packet_close(struct packet_qp *raw);
/* The GUID has the MAC in it. */
int read_mac(const struct side *side, uint8_t *mac);
/* A rule for port 1, without a spec. */
struct rule rule_of(enum ibv_flow_attr_type type, uint16_t priority);
void add_spec(struct rule *rule, const void *spec, size_t size);
void add_eth(struct rule *rule, struct ibv_flow_eth_filter val, struct ibv_flow_eth_filter mask);
/* All frames to a MAC. */
struct rule to_mac(const uint8_t *mac);
/* NULL with errno if it is refused. */
struct ibv_flow *flow(struct packet_qp *raw, struct rule rule);
/* In the first slot, for a local experiment (type 0x88b5). Returns it. */
uint8_t *make_frame(struct packet_qp *raw, const uint8_t *dst, const uint8_t *src);
/* UDP over IPv4 to a port, behind a VLAN tag if @tag is not 0; the rest says nothing. */
void make_udp(struct packet_qp *raw, const uint8_t *dst, const uint8_t *src, uint16_t port, uint16_t tag);
/* Of one slot each. 0 or an errno. */
int post_recvs(struct packet_qp *raw, unsigned int count);
/* The next completion; false after 20 s without one. */
bool wait_wc(struct packet_qp *raw, struct ibv_wc *wc);
/* The frame in the first slot; false: it could not be sent. */
bool send_frame(struct packet_qp *raw, unsigned int flags);
/* It received what @from has in its first slot. */
bool got(struct packet_qp *raw, struct packet_qp *from);
/* The sum of an IPv4 header, or of TCP or UDP behind it with the pseudo header: 0xffff if it is right. */
uint32_t ip_sum(const uint8_t *ip, bool l4);

#endif
