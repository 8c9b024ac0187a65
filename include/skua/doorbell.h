/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Skua hardware interface: doorbell pages (BAR2) and doorbell records (host memory).
 * Manual: Documentation/manual/doorbells.rst
 *
 * Indices run free in 32 bits; a ring's slot is the index modulo its size.
 */
#ifndef SKUA_DOORBELL_H
#define SKUA_DOORBELL_H

#include "types.h"

/*
 * Offsets in a doorbell page. Each doorbell is one 64-bit little-endian store,
 * the object's number in the low word and the index published in the high word.
 */
#define SKUA_DB_SQ		0x00	/* qpn, producer index in 64-byte blocks */
#define SKUA_DB_CQ_ARM		0x08	/* cqn, consumer index */
#define SKUA_DB_CMD		0x10	/* page 0 only: 0, producer index */

#define SKUA_DB(number, index)	((__u64)(__u32)(index) << 32 | (__u32)(number))

/*
 * Doorbell record of an SQ, an RQ and the command ring: one for each queue,
 * aligned to 64 bytes. The device never writes an RQ's.
 */
struct skua_dbr {
	__le32 pi;		/* host: producer index */
	__le32 event;		/* device: ring me when pi passes here */
	__u8 rsvd[56];
};

SKUA_ASSERT_SIZE(struct skua_dbr, 64);
SKUA_ASSERT_OFFSET(struct skua_dbr, event, 4);

/* Doorbell record of a CQ. The device only reads it. */
struct skua_cq_dbr {
	__le32 ci;		/* consumer index */
	__le32 rsvd0;
	__le64 arm;		/* SKUA_CQ_ARM(); stored in one piece */
	__u8 rsvd1[48];
};

SKUA_ASSERT_SIZE(struct skua_cq_dbr, 64);
SKUA_ASSERT_OFFSET(struct skua_cq_dbr, arm, 8);

/*
 * The arm word: the consumer index it was armed at in bits 31:0, a sequence number
 * that every arming increases in bits 61:32, what to wait for in bits 63:62.
 */
enum skua_cq_arm_type {
	SKUA_CQ_ARM_NONE	= 0,
	SKUA_CQ_ARM_SOLICITED	= 1,
	SKUA_CQ_ARM_NEXT	= 2,
};

#define SKUA_CQ_ARM_SEQ_MASK	0x3fffffffu
#define SKUA_CQ_ARM(type, seq, ci) \
	((__u64)(type) << 62 | (__u64)((seq) & SKUA_CQ_ARM_SEQ_MASK) << 32 | (__u32)(ci))
#define SKUA_CQ_ARM_GET_TYPE(arm)	((__u32)((__u64)(arm) >> 62))
#define SKUA_CQ_ARM_GET_SEQ(arm) \
	((__u32)((__u64)(arm) >> 32) & SKUA_CQ_ARM_SEQ_MASK)
#define SKUA_CQ_ARM_GET_CI(arm)		((__u32)(arm))

/* Doorbell record of an EQ. The device only reads it. */
struct skua_eq_dbr {
	__le32 ci;		/* consumer index, published before an EQE is acted on */
	__le32 event;		/* interrupt me when the producer passes here */
	__u8 rsvd[56];
};

SKUA_ASSERT_SIZE(struct skua_eq_dbr, 64);
SKUA_ASSERT_OFFSET(struct skua_eq_dbr, event, 4);

/*
 * The event-index rule: the publisher moved its index from @old to @new; does the
 * other side, whose event word reads @event, want to be told? Both sides use it.
 */
#define SKUA_EVENT_DUE(new, event, old) \
	((__u32)((__u32)(new) - (__u32)(event) - 1) < (__u32)((__u32)(new) - (__u32)(old)))

#endif /* SKUA_DOORBELL_H */
