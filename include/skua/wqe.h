/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Skua hardware interface: work queue entries.
 * Manual: Documentation/manual/wqe.rst
 *
 * A send WQE is 1 to 16 blocks of 64 bytes: a control segment, then the segment that
 * its opcode needs, then SGEs or inline data. All segments are 16 bytes, so that the
 * end of the ring never cuts one. A receive WQE has the fixed stride of its queue.
 */
#ifndef SKUA_WQE_H
#define SKUA_WQE_H

#include "types.h"

#define SKUA_WQE_BLOCK		64
#define SKUA_WQE_MAX_BLOCKS	16
#define SKUA_WQE_SEG		16

enum skua_wqe_opcode {
	SKUA_WQE_NOP		= 0x01,
	SKUA_WQE_SEND		= 0x02,
	SKUA_WQE_SEND_IMM	= 0x03,
	SKUA_WQE_SEND_INV	= 0x04,
	SKUA_WQE_WRITE		= 0x05,	/* with struct skua_wqe_rdma */
	SKUA_WQE_WRITE_IMM	= 0x06,	/* with struct skua_wqe_rdma */
	SKUA_WQE_READ		= 0x07,	/* with struct skua_wqe_rdma */
	SKUA_WQE_LOCAL_INV	= 0x08,
	SKUA_WQE_CMP_SWAP	= 0x09,	/* with struct skua_wqe_atomic */
	SKUA_WQE_FETCH_ADD	= 0x0a,	/* with struct skua_wqe_atomic */
	SKUA_WQE_BIND_MW	= 0x0b,	/* with struct skua_wqe_bind_mw */
	SKUA_WQE_REG_MR		= 0x0c,	/* with struct skua_wqe_reg_mr; privileged */
	SKUA_WQE_FLUSH		= 0x0d,	/* with struct skua_wqe_rdma */
	SKUA_WQE_ATOMIC_WRITE	= 0x0e,	/* with struct skua_wqe_rdma */
	SKUA_WQE_TSO		= 0x0f,	/* with struct skua_wqe_tso; ETH */
	SKUA_WQE_TAG_ADD	= 0x10,	/* with struct skua_wqe_tag; UD with an SRQ with tags */
	SKUA_WQE_TAG_DEL	= 0x11,	/* with struct skua_wqe_tag; UD with an SRQ with tags */
	SKUA_WQE_TAG_SYNC	= 0x12,	/* with struct skua_wqe_tag; UD with an SRQ with tags */
	SKUA_WQE_MASKED_CMP_SWAP = 0x13,	/* with struct skua_wqe_masked_atomic */
	SKUA_WQE_MASKED_FETCH_ADD = 0x14,	/* with struct skua_wqe_masked_atomic */
	/* UD and GSI: SEND and SEND_IMM with struct skua_wqe_ud */
	/* XRC_INI: all that send, with struct skua_wqe_xrc before other segments */
};

#define SKUA_WQE_SIGNALED	0x01	/* write a CQE on success too */
#define SKUA_WQE_SOLICITED	0x02	/* set the solicited event bit at the peer */
#define SKUA_WQE_FENCE		0x04	/* wait for earlier READs and atomics */
#define SKUA_WQE_INLINE		0x08	/* data stands in the WQE, length bytes of it */
#define SKUA_WQE_L4_CSUM	0x10	/* ETH: fill in the checksum, see csum_start */
#define SKUA_WQE_IP_CSUM	0x20	/* ETH: fill in the checksums of IPv4, TCP and UDP */
#define SKUA_WQE_FLAGS		0x3f

struct skua_wqe_ctrl {
	__u8 opcode;		/* enum skua_wqe_opcode */
	__u8 flags;		/* SKUA_WQE_* */
	__u8 nblocks;		/* length of the WQE in 64-byte blocks, 1 to 16 */
	__u8 num_sge;		/* SGEs that follow; 0 when inline */
	__le32 cookie;		/* returned in the CQE */
	__le32 length;		/* inline: bytes of data; FLUSH: bytes at the peer; else 0 */
	union {
		__be32 imm_data;	/* as it goes on the wire */
		__le32 inv_key;		/* SEND_INV: rkey at the peer; LOCAL_INV: own key */
		struct {		/* ETH with SKUA_WQE_L4_CSUM, bytes */
			__le16 csum_start;
			__le16 csum_offset;
		};
	};
};

SKUA_ASSERT_SIZE(struct skua_wqe_ctrl, 16);
SKUA_ASSERT_OFFSET(struct skua_wqe_ctrl, cookie, 4);
SKUA_ASSERT_OFFSET(struct skua_wqe_ctrl, imm_data, 12);

struct skua_wqe_rdma {
	__le64 raddr;
	__le32 rkey;
	__le32 flush;		/* FLUSH: SKUA_FLUSH_*; else 0 */
};

SKUA_ASSERT_SIZE(struct skua_wqe_rdma, 16);

/* What a FLUSH asks for: bits as in IBTA's FETH. The placements are bits of flush_caps, too. */
#define SKUA_FLUSH_GLOBAL	0x01	/* globally visible */
#define SKUA_FLUSH_PERSISTENT	0x02	/* persistent */
#define SKUA_FLUSH_PLACEMENTS	0x03	/* at least one of them */
#define SKUA_FLUSH_MR		0x10	/* of the whole MR; else of a range */

/* In place of struct skua_wqe_rdma. The 8 bytes of SGEs that follow get the old value. */
struct skua_wqe_atomic {
	__le64 raddr;		/* a multiple of 8 */
	__le32 rkey;
	__le32 rsvd;
	__le64 swap_add;	/* CMP_SWAP: the new value; FETCH_ADD: what is added */
	__le64 compare;		/* CMP_SWAP; else 0 */
};

SKUA_ASSERT_SIZE(struct skua_wqe_atomic, 32);
SKUA_ASSERT_OFFSET(struct skua_wqe_atomic, swap_add, 16);

/* In place of struct skua_wqe_atomic, as which it begins. */
struct skua_wqe_masked_atomic {
	__le64 raddr;		/* a multiple of 8 */
	__le32 rkey;
	__le32 rsvd;
	__le64 swap_add;	/* CMP_SWAP: the new value; FETCH_ADD: what is added */
	__le64 compare;		/* CMP_SWAP; else 0, as its mask */
	__le64 swap_add_mask;	/* CMP_SWAP: bits that are stored; FETCH_ADD: top bits of fields */
	__le64 compare_mask;	/* bits that are compared */
};

SKUA_ASSERT_SIZE(struct skua_wqe_masked_atomic, 48);
SKUA_ASSERT_OFFSET(struct skua_wqe_masked_atomic, swap_add, 16);
SKUA_ASSERT_OFFSET(struct skua_wqe_masked_atomic, swap_add_mask, 32);

/* Address vector: the way to a peer. */
struct skua_av {
	__u8 dgid[16];		/* network order */
	__u8 dmac[6];
	__u8 sgid_index;
	__u8 hop_limit;
	__u8 traffic_class;
	__u8 sl;
	__le16 rsvd;
	__le32 flow_label;
};

SKUA_ASSERT_SIZE(struct skua_av, 32);
SKUA_ASSERT_OFFSET(struct skua_av, flow_label, 28);

#define SKUA_QKEY_OWN		0x80000000	/* a WQE's Q_Key with this bit: the QP's own */

/* The datagram segment, behind the control segment. */
struct skua_wqe_ud {
	struct skua_av av;
	__le32 dest_qpn;
	__le32 qkey;
	__le64 rsvd;
};

SKUA_ASSERT_SIZE(struct skua_wqe_ud, 48);
SKUA_ASSERT_OFFSET(struct skua_wqe_ud, dest_qpn, 32);

/* XRC_INI, behind the control segment of what sends. */
struct skua_wqe_xrc {
	__le32 srqn;		/* the peer's SRQ, 24 bits */
	__u8 rsvd[12];
};

SKUA_ASSERT_SIZE(struct skua_wqe_xrc, 16);

/*
 * REG_MR, behind the control segment: a free MR of type FAST gets this memory, these rights and
 * this key. The list is one range of 8-byte entries, as in a list page, or of pieces.
 */
struct skua_wqe_reg_mr {
	__le32 key;		/* index of the MR; the variant it gets */
	__le32 access;		/* SKUA_ACCESS_* */
	__le64 iova;		/* as in struct skua_cmd_create_mr */
	__le64 length;
	__le64 list;		/* DMA address of the list, a multiple of 8 */
	__le32 offset;		/* of the memory in its first page, bytes */
	__le32 npages;		/* entries of the list */
	__u8 log_page;		/* page size, log2 of bytes; 0: the entries are struct skua_piece */
	__u8 rsvd[7];
};

SKUA_ASSERT_SIZE(struct skua_wqe_reg_mr, 48);
SKUA_ASSERT_OFFSET(struct skua_wqe_reg_mr, iova, 8);
SKUA_ASSERT_OFFSET(struct skua_wqe_reg_mr, list, 24);
SKUA_ASSERT_OFFSET(struct skua_wqe_reg_mr, log_page, 40);

/* A piece of memory of any alignment and length. */
struct skua_piece {
	__le64 addr;		/* DMA address */
	__le32 length;		/* bytes, at least 1 */
	__le32 rsvd;
};

SKUA_ASSERT_SIZE(struct skua_piece, 16);

#define SKUA_PIECE_ENTRIES	2	/* of an MR's capacity that a piece takes */
/* So many pieces that follow each other have at least so many bytes together. */
#define SKUA_PIECES_RUN		16
#define SKUA_PIECES_RUN_BYTES	4096

/* BIND_MW, behind the control segment: a window gets this part of an MR, these rights and key. */
struct skua_wqe_bind_mw {
	__le32 key;		/* index of the window; the variant it gets */
	__le32 mr_key;		/* key of the MR */
	__le64 addr;		/* in the range of the MR's iova */
	__le64 length;		/* bytes; type 1: 0 unbinds it */
	__le32 access;		/* SKUA_ACCESS_REMOTE_*, SKUA_ACCESS_ZERO_BASED */
	__le32 rsvd;
};

SKUA_ASSERT_SIZE(struct skua_wqe_bind_mw, 32);
SKUA_ASSERT_OFFSET(struct skua_wqe_bind_mw, addr, 8);
SKUA_ASSERT_OFFSET(struct skua_wqe_bind_mw, access, 24);

#define SKUA_TSO_MAX_HEADER	138	/* Ethernet, a VLAN tag, IPv4 and TCP with all options */

/*
 * TSO, behind the control segment. The headers of the first frame follow, hdr_len bytes of them,
 * and zeros up to a multiple of 16 bytes; then the SGEs, of the payload.
 */
struct skua_wqe_tso {
	__le16 mss;		/* payload of a frame, bytes; the last may have less */
	__le16 hdr_len;		/* bytes */
	__u8 rsvd[12];
};

SKUA_ASSERT_SIZE(struct skua_wqe_tso, 16);
SKUA_ASSERT_OFFSET(struct skua_wqe_tso, hdr_len, 2);

struct skua_sge {
	__le64 addr;
	__le32 length;		/* bytes; 0 is 0 */
	__le32 lkey;
};

SKUA_ASSERT_SIZE(struct skua_sge, 16);

/* TAG_ADD, TAG_DEL and TAG_SYNC, behind the control segment. */
struct skua_wqe_tag {
	__le32 handle;		/* low 16 bits: number of the tag; SYNC: 0 */
	__le32 unexpected;	/* SKUA_TAG_COUNT: messages handled, ever; else 0 */
	__le64 tag;		/* ADD; else 0, as all that follows but flags */
	__le64 mask;		/* a message matches if its tag has these bits as in tag */
	__le32 flags;		/* SKUA_TAG_* */
	__le32 rsvd;
	struct skua_sge sge;	/* the buffer */
};

SKUA_ASSERT_SIZE(struct skua_wqe_tag, 48);
SKUA_ASSERT_OFFSET(struct skua_wqe_tag, tag, 8);
SKUA_ASSERT_OFFSET(struct skua_wqe_tag, flags, 24);
SKUA_ASSERT_OFFSET(struct skua_wqe_tag, sge, 32);

#define SKUA_TAG_COUNT		0x1		/* unexpected is valid */
#define SKUA_TAG_NUMBER		0xffff		/* of a handle: the number of the tag */

/* What a message to an SRQ with tags begins with, in network order. */
struct skua_tmh {
	__u8 opcode;		/* enum skua_tmh_opcode */
	__u8 rsvd[3];
	__be32 app_ctx;		/* returned in the CQE */
	__be64 tag;
};

SKUA_ASSERT_SIZE(struct skua_tmh, 16);
SKUA_ASSERT_OFFSET(struct skua_tmh, tag, 8);

enum skua_tmh_opcode {
	SKUA_TMH_NO_TAG	= 0,
	SKUA_TMH_RNDV	= 1,	/* struct skua_rvh follows */
	SKUA_TMH_FIN	= 2,	/* struct skua_rvh follows */
	SKUA_TMH_EAGER	= 3,	/* the payload follows */
};

/* Where the payload of a rendezvous is, in network order. */
struct skua_rvh {
	__be64 va;
	__be32 rkey;
	__be32 len;		/* bytes */
};

SKUA_ASSERT_SIZE(struct skua_rvh, 16);

#define SKUA_RNDV_MAX_HEADER	64	/* bytes of a RNDV message, at most */

/* Receive WQE: this, then num_sge SGEs. Stride 32 bytes to 1 KiB, a power of two. */
struct skua_rqe {
	__le32 cookie;
	__u8 num_sge;
	__u8 rsvd[11];
};

SKUA_ASSERT_SIZE(struct skua_rqe, 16);

#define SKUA_RQE_MIN_LOG_STRIDE	5
#define SKUA_RQE_MAX_LOG_STRIDE	10

#endif /* SKUA_WQE_H */
