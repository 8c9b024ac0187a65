/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Datagrams between two NICs: what test_ud and test_mcast share. */
#ifndef SELFTESTS_DATAGRAM_H
#define SELFTESTS_DATAGRAM_H

#include <string.h>

#include "pair.h"

#define QKEY		0x11223344
#define HEADER		40		/* bytes in front of the payload */
#define MTU		1024		/* the longest payload, as the lab's links are */
#define SLOT		(HEADER + MTU)
#define TARGET		(PAIR_MEM / 2)	/* sources below, receives from here on, a slot each */
#define STRIDE		2048		/* from slot to slot: what is between is never written */
#define UNTOUCHED	0xee		/* a slot that waits */
#define HOPS		33
#define CLASS		0x68
#define LABEL		0x54321

/* A UD QP in RTS. */
static inline struct ibv_qp *ud_qp(struct side *side)
{
	struct ibv_qp *qp = side_create_qp_of(side, IBV_QPT_UD);

	if (qp && qp_ud_to_rts(qp, QKEY)) {
		ibv_destroy_qp(qp);
		qp = NULL;
	}
	return qp;
}

/* Both NICs, each with a UD QP in RTS. */
static inline int ud_open(struct side s[2])
{
	int err = pair_open_of(s, IBV_QPT_UD);

	for (unsigned int i = 0; !err && i < 2; i++)
		err = qp_ud_to_rts(s[i].qp, QKEY);
	return err;
}

/* The way from a side to a GID. */
static inline struct ibv_ah *ud_ah(struct side *side, const union ibv_gid *dgid)
{
	struct ibv_ah_attr attr = side_ah(side, dgid);

	attr.grh.hop_limit = HOPS;
	attr.grh.traffic_class = CLASS;
	/* UCX sets the bits that no packet has, too. */
	attr.grh.flow_label = 0xfff00000 | LABEL;
	return ibv_create_ah(side->pd, &attr);
}

/* @size bytes from the beginning of the side's memory. */
static inline struct ibv_send_wr ud_wr(struct ibv_sge *sge, struct side *side, struct ibv_ah *ah,
				       uint32_t qpn, uint32_t size)
{
	*sge = (struct ibv_sge){ (uintptr_t)side->mem, size, side->mr->lkey };
	return (struct ibv_send_wr){
		.wr_id = 77, .sg_list = sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED, .imm_data = 0x12345678,
		.wr.ud = { .ah = ah, .remote_qpn = qpn, .remote_qkey = QKEY },
	};
}

/* Send them, and see that this completes well: NULL, or what went wrong. */
static inline const char *ud_sends(struct side *side, struct ibv_ah *ah, uint32_t qpn, uint32_t size)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = ud_wr(&sge, side, ah, qpn, size);

	return side_sends(side, &wr);
}

static inline uint8_t *ud_slot(struct side *side, unsigned int slot)
{
	return side->mem + TARGET + slot * STRIDE;
}

static inline int ud_recv(struct side *side, struct ibv_qp *qp, unsigned int slot, uint32_t size)
{
	struct ibv_sge sge = { (uintptr_t)ud_slot(side, slot), size, side->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 };

	memset(ud_slot(side, slot), UNTOUCHED, STRIDE);
	return ibv_post_recv(qp, &wr, &bad);
}

static inline unsigned int be16_at(const uint8_t *at)
{
	return at[0] << 8 | at[1];
}

/* IPv4's checksum over its header, its own field included, is 0. */
static inline bool ipv4_sum_is_right(const uint8_t *header)
{
	uint32_t sum = 0;

	for (unsigned int i = 0; i < 20; i += 2)
		sum += be16_at(header + i);
	sum = (sum & 0xffff) + (sum >> 16);
	return ((sum & 0xffff) + (sum >> 16)) == 0xffff;
}

static inline bool ipv6_addr(const union ibv_gid *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return memcmp(gid->raw, mapped, sizeof(mapped));
}

/* UD-7: NULL, or which field of the header in front of a datagram of @size bytes is wrong. */
static inline const char *wrong_header(const uint8_t *at, const union ibv_gid *from,
				       const union ibv_gid *to, uint32_t size, bool imm)
{
	static const uint8_t zero[20];
	/* UDP, BTH, DETH, payload and its padding, ICRC */
	unsigned int length = 8 + 12 + 8 + (imm ? 4 : 0) + ((size + 3) & ~3u) + 4;
	const uint8_t *ip = at + 20;

	if (ipv6_addr(to))
		return be16_at(at) != (0x6000 | CLASS << 4 | LABEL >> 16) ? "version or class" :
		       be16_at(at + 2) != (LABEL & 0xffff) ? "flow label" :
		       be16_at(at + 4) != length ? "length" :
		       at[6] != 17 ? "next header" :
		       at[7] != HOPS ? "hop limit" :
		       memcmp(at + 8, from, 16) ? "source" :
		       memcmp(at + 24, to, 16) ? "destination" : NULL;
	return memcmp(at, zero, sizeof(zero)) ? "not zero in front of IPv4" :
	       ip[0] != 0x45 ? "version" :
	       ip[1] != CLASS ? "TOS" :
	       be16_at(ip + 2) != 20 + length ? "length" :
	       be16_at(ip + 6) != 0x4000 ? "fragment" :
	       ip[8] != HOPS ? "TTL" :
	       ip[9] != 17 ? "protocol" :
	       !ipv4_sum_is_right(ip) ? "checksum" :
	       memcmp(ip + 12, from->raw + 12, 4) ? "source" :
	       memcmp(ip + 16, to->raw + 12, 4) ? "destination" : NULL;
}

/*
 * The next completion of a side is a QP's receive of a datagram, which is in its slot: what the sender's
 * memory begins with, and nothing behind it. NULL, or what is wrong.
 */
static inline const char *ud_arrives(struct side *to, struct ibv_qp *qp, struct side *from,
				     const union ibv_gid *dgid, unsigned int slot, uint32_t size)
{
	uint8_t *at = ud_slot(to, slot);
	struct ibv_wc wc;

	if (!side_wait(to, &wc, 5))
		return "no completion of the receive";
	return wc.status != IBV_WC_SUCCESS ? ibv_wc_status_str(wc.status) :
	       wc.opcode != IBV_WC_RECV ? "opcode of the receive" :
	       wc.wr_id != slot ? "wr_id of the receive" :
	       wc.qp_num != qp->qp_num ? "QP of the receive" :
	       wc.src_qp != from->qp->qp_num ? "source QP" :
	       wc.byte_len != HEADER + size ? "byte_len" :
	       wc.wc_flags != IBV_WC_GRH ? "flags of the receive" :
	       wc.sl != (ipv6_addr(dgid) ? 1 : 2) ? "kind of header" :
	       memcmp(at + HEADER, from->mem, size) ? "data" :
	       at[HEADER + size] != UNTOUCHED ? "data behind the end" :
	       wrong_header(at, &from->gid, dgid, size, false);
}

#endif
