/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A train: consecutive packets of one message, the unit in which transport and links
 * work. A train of one is a packet. It is cut into packets, with headers and ICRC, only
 * where bytes are needed (captures, wires that leave the process).
 */
#ifndef SKUAD_PACKET_TRAIN_H
#define SKUAD_PACKET_TRAIN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/seg.h"

#define PSN_MASK	0xffffffu

/* What kind of message its packets belong to; with first and last it gives the opcode. */
enum train_op {
	TRAIN_SEND,
	TRAIN_SEND_IMM,
	TRAIN_SEND_INV,
	TRAIN_WRITE,
	TRAIN_WRITE_IMM,
	TRAIN_READ_REQ,
	TRAIN_READ_RESP,
	TRAIN_ACK,
	TRAIN_CMP_SWAP,
	TRAIN_FETCH_ADD,
	TRAIN_ATOMIC_RESP,
	TRAIN_FLUSH,
	TRAIN_ATOMIC_WRITE,
	TRAIN_MASKED_CMP_SWAP,
	TRAIN_MASKED_FETCH_ADD,
	TRAIN_CNP,
	TRAIN_NUM_OPS,
};

/* The transport service, as the upper bits of the opcode say it. */
enum transport {
	TRANSPORT_RC = 0x00,
	TRANSPORT_UC = 0x20,
	TRANSPORT_UD = 0x60,
	TRANSPORT_CNP = 0x80,		/* of its only packet, for connected QPs */
	TRANSPORT_XRC = 0xa0,
};

/* What a requester gets; all others go to the responder. */
static inline bool train_is_response(enum train_op op)
{
	return op == TRAIN_READ_RESP || op == TRAIN_ACK || op == TRAIN_ATOMIC_RESP;
}

/* AETH syndromes: type in bits 7:5, value below. */
#define AETH_ACK		0x1f	/* without credits */
#define AETH_RNR		0x20	/* | timer code */
#define AETH_NAK_SEQ		0x60
#define AETH_NAK_INV_REQ	0x61
#define AETH_NAK_ACCESS		0x62
#define AETH_NAK_OP		0x63
#define AETH_TYPE(syndrome)	((syndrome) & 0xe0)

/* Bits of the traffic class: who sends understands marks; and such a mark. */
#define ECN_MASK		3
#define ECN_ECT0		2
#define ECN_CE			3

/* Where packets come from and go to; all that Ethernet, IP and UDP headers need. */
struct roce_path {
	uint8_t smac[6], dmac[6];
	uint8_t sgid[16], dgid[16];	/* IPv6, or IPv4 mapped: then both are */
	uint16_t vlan;			/* SKUA_VLAN_NONE: untagged */
	uint16_t sport;			/* UDP source port */
	uint32_t flow_label;
	uint8_t sl;			/* PCP of a VLAN tag */
	uint8_t traffic_class;		/* TOS or TC, ECN included */
	uint8_t hop_limit;
};

/* Is the GID an IPv4 address mapped to IPv6? */
static inline bool gid_is_ipv4(const uint8_t *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid, mapped, sizeof(mapped));
}

struct train {
	enum train_op op;
	enum transport transport;
	bool first, last;	/* holds the first, the last packet of its message */
	bool solicited;		/* SE of the last packet */
	bool ack_req;		/* AckReq of the last packet */
	uint8_t syndrome;	/* ACK; READ_RESP, ATOMIC_RESP */
	uint8_t flush;		/* FLUSH: FETH, SKUA_FLUSH_* */
	uint32_t dest_qpn;
	uint32_t src_qpn;	/* on the wire of UD only: DETH */
	union {
		uint32_t qkey;	/* UD: DETH */
		uint32_t srqn;	/* XRC requests: XRCETH */
	};
	uint32_t psn;		/* of its first packet */
	uint32_t npkts;		/* packets in it; READ_REQ and ACK: 1 */
	uint32_t pmtu;		/* bytes; every packet but a last one is full */
	uint32_t msn;		/* ACK, READ_RESP, ATOMIC_RESP */
	uint32_t imm;		/* immediate as on the wire, or the rkey to invalidate */
	uint32_t rkey;		/* WRITE*, READ_REQ, FLUSH, ATOMIC_WRITE: RETH, where first; atomics */
	uint64_t raddr;
	uint32_t msg_len;	/* RETH: bytes of the whole message */
	uint64_t swap_add;	/* atomics: AtomicETH; ATOMIC_RESP: the old value */
	uint64_t compare;
	uint64_t swap_add_mask, compare_mask;	/* masked atomics */
	const struct roce_path *path;
	const struct seglist *payload;	/* of these packets; NULL: none */
	const uint8_t *ip;	/* its IP header as it came; NULL: as the path gives it */
};

/*
 * All zero, to begin with. It is copied where trains are made by the million: gcc clears as much
 * by "rep stos", which takes longer to start than the copy takes.
 */
extern const struct train train_blank;

/*
 * Are all of its packets full with @pmtu bytes, but for the last of a message, which has a byte at least if it is not
 * the only one?
 */
static inline bool train_is_full(const struct train *t, uint32_t pmtu)
{
	uint32_t full = t->npkts * pmtu, bytes = t->payload ? t->payload->bytes : 0;

	if (!t->last || bytes > full)
		return bytes == full;
	return bytes > full - pmtu || (t->first && t->npkts == 1);
}

/* The distance from @b to @a on the circle of PSNs, -2^23 to 2^23 - 1. */
static inline int32_t psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

static inline uint32_t psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & PSN_MASK;
}

#endif /* SKUAD_PACKET_TRAIN_H */
