/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Skua hardware interface: completion queue entries.
 * Manual: Documentation/manual/cqe.rst
 */
#ifndef SKUA_CQE_H
#define SKUA_CQE_H

#include "types.h"

enum skua_cqe_opcode {
	SKUA_CQE_SEND		= 0x00,
	SKUA_CQE_WRITE		= 0x01,
	SKUA_CQE_READ		= 0x02,
	SKUA_CQE_LOCAL_INV	= 0x03,
	SKUA_CQE_NOP		= 0x04,
	SKUA_CQE_CMP_SWAP	= 0x05,
	SKUA_CQE_FETCH_ADD	= 0x06,
	SKUA_CQE_BIND_MW	= 0x07,
	SKUA_CQE_REG_MR		= 0x08,
	SKUA_CQE_FLUSH		= 0x09,
	SKUA_CQE_ATOMIC_WRITE	= 0x0a,
	SKUA_CQE_TSO		= 0x0b,
	SKUA_CQE_MASKED_CMP_SWAP = 0x0c,
	SKUA_CQE_MASKED_FETCH_ADD = 0x0d,
	SKUA_CQE_RECV		= 0x80,	/* bit 7: the receive side */
	SKUA_CQE_RECV_WRITE_IMM	= 0x81,
	SKUA_CQE_TAG_RECV	= 0x82,	/* of a tag: the cookie is its handle */
	SKUA_CQE_TAG_UNEXPECTED	= 0x83,	/* a receive: no tag matched the message */
	SKUA_CQE_TAG_NONE	= 0x84,	/* a receive: the message has no tag */
	SKUA_CQE_TAG_ADD	= 0x85,	/* these are completions of an SQ's WQEs */
	SKUA_CQE_TAG_DEL	= 0x86,
	SKUA_CQE_TAG_SYNC	= 0x87,
};

#define SKUA_CQE_OPCODE_RECV	0x80

#define SKUA_UD_HEADER		40	/* bytes in front of a received datagram: its IP header */

/* The numbers of IBTA's and Linux's work completion status. */
enum skua_cqe_status {
	SKUA_CQE_SUCCESS	= 0,
	SKUA_CQE_LOC_LEN_ERR	= 1,
	SKUA_CQE_LOC_QP_OP_ERR	= 2,
	SKUA_CQE_LOC_PROT_ERR	= 4,
	SKUA_CQE_WR_FLUSH_ERR	= 5,
	SKUA_CQE_MW_BIND_ERR	= 6,
	SKUA_CQE_BAD_RESP_ERR	= 7,
	SKUA_CQE_LOC_ACCESS_ERR	= 8,
	SKUA_CQE_REM_INV_REQ_ERR = 9,
	SKUA_CQE_REM_ACCESS_ERR	= 10,
	SKUA_CQE_REM_OP_ERR	= 11,
	SKUA_CQE_RETRY_EXC_ERR	= 12,
	SKUA_CQE_RNR_RETRY_EXC_ERR = 13,
	SKUA_CQE_REM_ABORT_ERR	= 16,
	SKUA_CQE_FATAL_ERR	= 19,
	SKUA_CQE_GENERAL_ERR	= 21,
	SKUA_CQE_TM_ERR		= 22,	/* TAG_DEL: the tag is not in the list any more */
	SKUA_CQE_TM_RNDV_INCOMPLETE = 23, /* the buffer holds the request, not its payload */
};

/* Finer causes of an error, for people; a program looks at status alone. */
enum skua_vendor_err {
	SKUA_VENDOR_ERR_NONE		= 0,
	SKUA_VENDOR_ERR_KEY_UNKNOWN	= 1,	/* no MR or window has this key index */
	SKUA_VENDOR_ERR_KEY_STALE	= 2,	/* wrong variant, or the MR or window is free */
	SKUA_VENDOR_ERR_PD		= 3,	/* of another PD, or a window of another QP */
	SKUA_VENDOR_ERR_BOUNDS		= 4,	/* outside the MR */
	SKUA_VENDOR_ERR_RIGHTS		= 5,	/* MR or QP lacks the access right */
	SKUA_VENDOR_ERR_WQE_FORMAT	= 6,	/* length, flags or reserved fields of the WQE */
	SKUA_VENDOR_ERR_WQE_OPCODE	= 7,	/* unknown, or not for this QP or its features */
	SKUA_VENDOR_ERR_SGE_COUNT	= 8,	/* more SGEs, or inline data, than allowed */
	SKUA_VENDOR_ERR_MSG_TOO_LONG	= 9,	/* above max_msg_size, MTU, or the receive */
	SKUA_VENDOR_ERR_UNREACHABLE	= 10,	/* host memory cannot be reached */
	SKUA_VENDOR_ERR_PEER_NAK	= 11,	/* the peer refused; status says how */
	SKUA_VENDOR_ERR_TIMEOUT		= 12,	/* no answer, retries used up */
	SKUA_VENDOR_ERR_OVERRUN		= 13,	/* published index beyond the ring */
	SKUA_VENDOR_ERR_CQ_OVERFLOW	= 14,	/* a CQ of this QP is in error */
	SKUA_VENDOR_ERR_PRIVILEGE	= 15,	/* needs a privileged QP */
	SKUA_VENDOR_ERR_KEY_TYPE	= 16,	/* an MR or window of the wrong kind */
	SKUA_VENDOR_ERR_PEER_REQUEST	= 17,	/* an invalid request of the peer */
	SKUA_VENDOR_ERR_PEER_RESPONSE	= 18,	/* a response that does not fit its request */
	SKUA_VENDOR_ERR_NO_PATH		= 19,	/* the GID entry of the AV is empty */
	SKUA_VENDOR_ERR_NOT_PRESENT	= 20,	/* a page on demand that the host could not bring */
	SKUA_VENDOR_ERR_KEY_STATE	= 21,	/* an MR or window in use that may not be */
};

#define SKUA_CQE_PHASE		0x01	/* toggles with every pass; 1 in the first */
#define SKUA_CQE_SOLICITED	0x02
#define SKUA_CQE_WITH_IMM	0x04
#define SKUA_CQE_WITH_INV	0x08
#define SKUA_CQE_FROM_SRQ	0x10
#define SKUA_CQE_L3_CSUM_OK	0x20	/* ETH */
#define SKUA_CQE_L4_CSUM_OK	0x40	/* ETH */
#define SKUA_CQE_L4_HASH	0x80	/* ETH: rss_hash covers ports */
#define SKUA_CQE_TAG_SYNC_REQ	0x20	/* TAG_ADD, _DEL, _SYNC: messages are not counted yet */
#define SKUA_CQE_TAG_MATCH	0x40	/* TAG_RECV: a message has matched */
#define SKUA_CQE_TAG_DATA	0x80	/* TAG_RECV: all of its data is there */

/*
 * On error only qp_handle, qpn, cookie, sq_ci, opcode, status, vendor_err and flags
 * mean something. The last 8 bytes are stored last, in one piece.
 */
struct skua_cqe {
	__le64 qp_handle;	/* as given to CREATE_QP */
	__le64 timestamp;	/* device clock */
	__le32 cookie;		/* of the WQE */
	__le32 byte_len;	/* received, or read */
	union {
		__be32 imm_data;	/* WITH_IMM */
		__le32 inv_key;		/* WITH_INV: the key that was invalidated */
		__le32 rss_hash;	/* ETH receive, 0: none */
	};
	__le32 sq_ci;		/* send side: the SQ's consumer index behind this WQE */
	union {
		struct {		/* receives of UD and GSI; else 0, but for vlan */
			__le32 src_qpn;
			__u8 smac[6];	/* MAC that it came from */
			__le16 vlan;	/* id, priority; or SKUA_VLAN_NONE. ETH: tag, or 0 */
			__u8 ip_version;	/* 4 or 6 */
			__u8 rsvd0[3];
		};
		struct {		/* TAG_RECV */
			__le64 tag;	/* of the message */
			__be32 app_ctx;	/* of its header, as on the wire */
			__u8 rsvd2[4];
		};
	};
	__le32 flow_tag;	/* receives of ETH by a flow: the flow's tag; else 0 */
	__u8 rsvd1[4];
	__le32 qpn;
	__u8 opcode;		/* enum skua_cqe_opcode */
	__u8 status;		/* enum skua_cqe_status */
	__u8 vendor_err;	/* enum skua_vendor_err */
	__u8 flags;		/* SKUA_CQE_*; holds the phase */
};

SKUA_ASSERT_SIZE(struct skua_cqe, 64);
SKUA_ASSERT_OFFSET(struct skua_cqe, cookie, 16);
SKUA_ASSERT_OFFSET(struct skua_cqe, imm_data, 24);
SKUA_ASSERT_OFFSET(struct skua_cqe, smac, 36);
SKUA_ASSERT_OFFSET(struct skua_cqe, flow_tag, 48);
SKUA_ASSERT_OFFSET(struct skua_cqe, qpn, 56);
SKUA_ASSERT_OFFSET(struct skua_cqe, flags, 63);

#endif /* SKUA_CQE_H */
