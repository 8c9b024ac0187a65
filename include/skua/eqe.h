/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Skua hardware interface: event queue entries.
 * Manual: Documentation/manual/events.rst
 */
#ifndef SKUA_EQE_H
#define SKUA_EQE_H

#include "types.h"

#define SKUA_EQE_PHASE		0x01	/* toggles with every pass; 1 in the first */

/* Completion event, 16 bytes. The last 8 bytes are stored last, in one piece. */
struct skua_comp_eqe {
	__le64 rsvd0;
	__le32 cqn;
	__u8 rsvd1[3];
	__u8 flags;		/* SKUA_EQE_PHASE */
};

SKUA_ASSERT_SIZE(struct skua_comp_eqe, 16);
SKUA_ASSERT_OFFSET(struct skua_comp_eqe, flags, 15);

enum skua_event_type {
	SKUA_EVENT_DEVICE_FATAL	 = 0x01,	/* number: enum skua_health */
	SKUA_EVENT_PORT_UP	 = 0x02,	/* number: the port */
	SKUA_EVENT_PORT_DOWN	 = 0x03,
	SKUA_EVENT_CQ_ERR	 = 0x10,	/* number: cqn */
	SKUA_EVENT_QP_FATAL	 = 0x20,	/* number: qpn */
	SKUA_EVENT_QP_REQ_ERR	 = 0x21,
	SKUA_EVENT_QP_ACCESS_ERR = 0x22,
	SKUA_EVENT_COMM_EST	 = 0x23,
	SKUA_EVENT_SQ_DRAINED	 = 0x24,
	SKUA_EVENT_LAST_WQE_REACHED = 0x25,
	SKUA_EVENT_SRQ_ERR	 = 0x30,	/* number: srqn */
	SKUA_EVENT_SRQ_LIMIT	 = 0x31,
};

/* Asynchronous event, 64 bytes. The last 8 bytes are stored last, in one piece. */
struct skua_async_eqe {
	__u8 type;		/* enum skua_event_type */
	__u8 rsvd0[3];
	__le32 number;		/* of the object, as the type says */
	__le64 handle;		/* cq_handle, qp_handle or srq_handle of the object */
	__le64 timestamp;	/* device clock */
	__u8 rsvd1[39];
	__u8 flags;		/* SKUA_EQE_PHASE */
};

SKUA_ASSERT_SIZE(struct skua_async_eqe, 64);
SKUA_ASSERT_OFFSET(struct skua_async_eqe, handle, 8);
SKUA_ASSERT_OFFSET(struct skua_async_eqe, flags, 63);

enum skua_page_fault_side {
	SKUA_PAGE_FAULT_REQUESTER	= 0,
	SKUA_PAGE_FAULT_RESPONDER	= 1,
};

/* Page fault, 64 bytes. The last 8 bytes are stored last, in one piece. */
struct skua_fault_eqe {
	__u8 side;		/* enum skua_page_fault_side */
	__u8 write;		/* 1: the page is to be written */
	__u8 rsvd0[2];
	__le32 qpn;
	__le64 handle;		/* qp_handle */
	__le64 timestamp;	/* device clock */
	__le64 addr;		/* the first byte that cannot be reached, as WQE or peer gives it */
	__le64 length;		/* bytes from there on that the SGE or the message still needs */
	__le32 token;		/* for FAULT_RESUME */
	__le32 key;		/* of the MR, as WQE or peer gives it */
	__u8 rsvd1[15];
	__u8 flags;		/* SKUA_EQE_PHASE */
};

SKUA_ASSERT_SIZE(struct skua_fault_eqe, 64);
SKUA_ASSERT_OFFSET(struct skua_fault_eqe, addr, 24);
SKUA_ASSERT_OFFSET(struct skua_fault_eqe, token, 40);
SKUA_ASSERT_OFFSET(struct skua_fault_eqe, flags, 63);

#endif /* SKUA_EQE_H */
