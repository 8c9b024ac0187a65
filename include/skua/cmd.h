/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Skua hardware interface: the command queue and its commands.
 * Manual: Documentation/manual/commands.rst
 *
 * A command is a struct skua_cmd in the command ring; its completion, a struct
 * skua_cmd_cpl, comes in the completion ring of the same size, in any order. Fields
 * named rsvd are zero; the device refuses a command in which one is not.
 */
#ifndef SKUA_CMD_H
#define SKUA_CMD_H

#include "pagelist.h"
#include "types.h"
#include "wqe.h"

enum skua_cmd_opcode {
	SKUA_CMD_NOP		= 0x0001,
	SKUA_CMD_QUERY_DEVICE	= 0x0002,	/* out: struct skua_device_caps */
	SKUA_CMD_QUERY_PORT	= 0x0003,	/* out: struct skua_port_attr */
	SKUA_CMD_SET_PORT	= 0x0004,
	SKUA_CMD_QUERY_STATS	= 0x0005,	/* out: struct skua_stats */
	SKUA_CMD_SET_GID	= 0x0006,
	SKUA_CMD_SET_RSS	= 0x0007,
	SKUA_CMD_CREATE_EQ	= 0x0010,
	SKUA_CMD_DESTROY_EQ	= 0x0011,
	SKUA_CMD_CREATE_PD	= 0x0020,
	SKUA_CMD_DESTROY_PD	= 0x0021,
	SKUA_CMD_CREATE_CQ	= 0x0030,
	SKUA_CMD_DESTROY_CQ	= 0x0031,
	SKUA_CMD_RESIZE_CQ	= 0x0032,
	SKUA_CMD_MODIFY_CQ	= 0x0033,
	SKUA_CMD_CREATE_QP	= 0x0040,
	SKUA_CMD_MODIFY_QP	= 0x0041,
	SKUA_CMD_QUERY_QP	= 0x0042,	/* out: struct skua_qp_attr */
	SKUA_CMD_DESTROY_QP	= 0x0043,
	SKUA_CMD_CREATE_MR	= 0x0050,
	SKUA_CMD_DESTROY_MR	= 0x0051,
	SKUA_CMD_MODIFY_MR	= 0x0052,
	SKUA_CMD_INVALIDATE_MR	= 0x0053,
	SKUA_CMD_UPDATE_PAGES	= 0x0054,
	SKUA_CMD_FAULT_RESUME	= 0x0055,
	SKUA_CMD_CREATE_MW	= 0x0058,
	SKUA_CMD_DESTROY_MW	= 0x0059,
	SKUA_CMD_ATTACH_MCAST	= 0x0060,
	SKUA_CMD_DETACH_MCAST	= 0x0061,
	SKUA_CMD_CREATE_SRQ	= 0x0070,
	SKUA_CMD_MODIFY_SRQ	= 0x0071,
	SKUA_CMD_QUERY_SRQ	= 0x0072,	/* out: struct skua_srq_attr */
	SKUA_CMD_DESTROY_SRQ	= 0x0073,
	SKUA_CMD_CREATE_XRCD	= 0x0078,
	SKUA_CMD_DESTROY_XRCD	= 0x0079,
	SKUA_CMD_ALLOC_DM	= 0x0080,
	SKUA_CMD_FREE_DM	= 0x0081,
	SKUA_CMD_DM_COPY	= 0x0082,
	SKUA_CMD_CREATE_FLOW	= 0x0090,
	SKUA_CMD_DESTROY_FLOW	= 0x0091,
	SKUA_CMD_CREATE_RSS	= 0x0092,
	SKUA_CMD_DESTROY_RSS	= 0x0093,
	SKUA_CMD_CREATE_COUNTER_SET	= 0x00a0,
	SKUA_CMD_DESTROY_COUNTER_SET	= 0x00a1,
	SKUA_CMD_QUERY_COUNTER_SET	= 0x00a2,	/* out: struct skua_stats */
	SKUA_CMD_BIND_COUNTER_SET	= 0x00a3,
};

enum skua_cmd_status {
	SKUA_CMD_OK		= 0,
	SKUA_CMD_BAD_OPCODE	= 1,	/* unknown, or of a feature not accepted */
	SKUA_CMD_BAD_PARAM	= 2,	/* a field out of range, or a reserved one set */
	SKUA_CMD_BAD_OBJECT	= 3,	/* no such object */
	SKUA_CMD_BUSY		= 4,	/* the object is in use */
	SKUA_CMD_NO_RESOURCE	= 5,	/* a limit or the quota is reached */
	SKUA_CMD_BAD_STATE	= 6,	/* not in this state */
	SKUA_CMD_BAD_ADDRESS	= 7,	/* host memory that cannot be reached */
	SKUA_CMD_INTERNAL	= 8,	/* the device's own fault */
	SKUA_CMD_NOT_PERMITTED	= 9,	/* whoever runs the device does not allow it */
};

#define SKUA_CMD_EVENT		0x0001	/* raise vector 0 when completed */

struct skua_cmd_hdr {
	__le16 opcode;		/* enum skua_cmd_opcode */
	__le16 flags;		/* SKUA_CMD_EVENT */
	__le32 id;		/* of the host's choosing, returned */
	__le16 function;	/* 0 */
	__u8 port;		/* 1, or 0 where no port is meant */
	__u8 rsvd0;
	__le32 out_len;		/* bytes of the output buffer */
	__le64 out_addr;	/* DMA address of the output buffer, 0: none */
	__le64 rsvd1;
};

SKUA_ASSERT_SIZE(struct skua_cmd_hdr, 32);
SKUA_ASSERT_OFFSET(struct skua_cmd_hdr, out_addr, 16);

/* CREATE_*: the completion's number. DESTROY_*, INVALIDATE_MR and QUERY_QP take it here. */
struct skua_cmd_object {
	__le32 number;
	__u8 rsvd[220];
};

SKUA_ASSERT_SIZE(struct skua_cmd_object, 224);

/* SET_PORT: what the mask names is set. */
#define SKUA_PORT_SET_FLAGS	0x1
#define SKUA_PORT_SET_MTU	0x2
#define SKUA_PORT_SET_MAC	0x4
#define SKUA_PORT_SET_RX_QP	0x8
#define SKUA_PORT_SET_MASK	0xf

#define SKUA_PORT_F_ENABLE	0x1	/* frames go in and out */
#define SKUA_PORT_F_PROMISC	0x2	/* all frames to the ETH queue pair */
#define SKUA_PORT_F_ALLMULTI	0x4	/* all multicast frames, too */
#define SKUA_PORT_F_ROCE	0x8	/* UDP port 4791 to a programmed GID: RDMA's */
#define SKUA_PORT_F_MASK	0xf

struct skua_cmd_set_port {
	__le32 mask;		/* SKUA_PORT_SET_* */
	__le32 flags;		/* SKUA_PORT_F_* */
	__le32 mtu;		/* the netdev's, bytes */
	__le32 rx_qpn;		/* ETH queue pair that receives; 0: none */
	__u8 mac[6];
	__u8 rsvd[202];
};

SKUA_ASSERT_SIZE(struct skua_cmd_set_port, 224);
SKUA_ASSERT_OFFSET(struct skua_cmd_set_port, mac, 16);

#define SKUA_VLAN_NONE		0xffff

struct skua_cmd_set_gid {
	__u8 gid[16];		/* network order; zero: clear the entry */
	__u8 mac[6];		/* source MAC of frames that use it */
	__le16 vlan;		/* 802.1Q id, or SKUA_VLAN_NONE */
	__le16 index;
	__u8 rsvd[198];
};

SKUA_ASSERT_SIZE(struct skua_cmd_set_gid, 224);
SKUA_ASSERT_OFFSET(struct skua_cmd_set_gid, index, 24);

/* SET_RSS: hash and table that spread received frames over ETH queue pairs. */
#define SKUA_RSS_KEY_LEN	40
#define SKUA_RSS_MAX_LOG	5

struct skua_cmd_set_rss {
	__u8 log_size;		/* entries of the table, log2 */
	__u8 rsvd0[7];
	__u8 key[40];		/* of the Toeplitz hash */
	__le32 qpn[32];		/* the table; 0: the port's rx_qpn */
	__u8 rsvd1[48];
};

SKUA_ASSERT_SIZE(struct skua_cmd_set_rss, 224);
SKUA_ASSERT_OFFSET(struct skua_cmd_set_rss, qpn, 48);

enum skua_eq_type {
	SKUA_EQ_COMP	= 0,	/* struct skua_comp_eqe */
	SKUA_EQ_ASYNC	= 1,	/* struct skua_async_eqe; one at most */
	SKUA_EQ_FAULT	= 2,	/* struct skua_fault_eqe; one at most */
};

struct skua_cmd_create_eq {
	__u8 type;		/* enum skua_eq_type */
	__u8 log_size;		/* entries, log2 */
	__le16 vector;		/* MSI-X vector */
	__le32 rsvd0;
	__le64 dbr_addr;	/* struct skua_eq_dbr */
	__u8 rsvd1[48];
	struct skua_pagelist ring;
	__u8 rsvd2[96];
};

SKUA_ASSERT_SIZE(struct skua_cmd_create_eq, 224);
SKUA_ASSERT_OFFSET(struct skua_cmd_create_eq, ring, 64);

struct skua_cmd_create_cq {
	__le32 eqn;		/* completion EQ that its events go to */
	__u8 log_size;		/* CQEs, log2 */
	__u8 rsvd0[3];
	__le32 db_page;		/* doorbell page that may arm it */
	__le32 rsvd1;
	__le64 cq_handle;	/* returned in asynchronous events */
	__le64 dbr_addr;	/* struct skua_cq_dbr */
	__u8 rsvd2[32];
	struct skua_pagelist ring;
	__u8 rsvd3[96];
};

SKUA_ASSERT_SIZE(struct skua_cmd_create_cq, 224);
SKUA_ASSERT_OFFSET(struct skua_cmd_create_cq, cq_handle, 16);
SKUA_ASSERT_OFFSET(struct skua_cmd_create_cq, ring, 64);

/* RESIZE_CQ: the completion says from which index on CQEs are in the new ring. */
struct skua_cmd_resize_cq {
	__le32 cqn;
	__u8 log_size;		/* of the new ring: CQEs, log2 */
	__u8 rsvd0[59];
	struct skua_pagelist ring;
	__u8 rsvd1[96];
};

SKUA_ASSERT_SIZE(struct skua_cmd_resize_cq, 224);
SKUA_ASSERT_OFFSET(struct skua_cmd_resize_cq, ring, 64);

/* MODIFY_CQ: how long events may wait for more CQEs. Both 0: they do not wait. */
struct skua_cmd_modify_cq {
	__le32 cqn;
	__le16 count;		/* CQEs that do not wait for more */
	__le16 period;		/* microseconds that a CQE waits at most */
	__u8 rsvd[216];
};

SKUA_ASSERT_SIZE(struct skua_cmd_modify_cq, 224);

enum skua_qp_type {
	SKUA_QPT_RC	= 1,
	SKUA_QPT_UC	= 2,
	SKUA_QPT_UD	= 3,
	SKUA_QPT_GSI	= 4,	/* QP 1: management datagrams; privileged, one at most */
	SKUA_QPT_XRC_INI = 5,	/* requests to SRQs of an XRC domain */
	SKUA_QPT_XRC_TGT = 6,	/* the responder of such requests */
	SKUA_QPT_ETH	= 8,	/* Ethernet frames; a program's if not privileged */
};

#define SKUA_QP_PRIVILEGED	0x1	/* may use the reserved lkey */
#define SKUA_QP_FLAGS		0x1

struct skua_cmd_create_qp {
	__le32 pdn;
	__u8 type;		/* enum skua_qp_type */
	__u8 log_sq_blocks;	/* SQ: 64-byte blocks, log2 */
	__u8 log_rq_size;	/* RQ: entries, log2 */
	__u8 log_rq_stride;	/* RQ: bytes of an entry, log2 */
	__le32 send_cqn;
	__le32 recv_cqn;
	__le32 flags;		/* SKUA_QP_* */
	__le32 db_page;		/* doorbell page that may ring it */
	__le64 qp_handle;	/* returned in CQEs and asynchronous events */
	__le64 sq_dbr_addr;	/* struct skua_dbr */
	__le64 rq_dbr_addr;	/* struct skua_dbr */
	__le32 srqn;		/* where receives come from; 0: the RQ */
	__le32 xrcdn;		/* SKUA_QPT_XRC_TGT: its XRC domain; else 0 */
	__u8 rsvd0[8];
	struct skua_pagelist sq;	/* npages 0: there is no SQ */
	struct skua_pagelist rq;	/* npages 0: there is no RQ */
	__u8 rsvd1[32];
};

SKUA_ASSERT_SIZE(struct skua_cmd_create_qp, 224);
SKUA_ASSERT_OFFSET(struct skua_cmd_create_qp, qp_handle, 24);
SKUA_ASSERT_OFFSET(struct skua_cmd_create_qp, xrcdn, 52);
SKUA_ASSERT_OFFSET(struct skua_cmd_create_qp, sq, 64);
SKUA_ASSERT_OFFSET(struct skua_cmd_create_qp, rq, 128);

/* The numbers of IBTA's and Linux's QP states. */
enum skua_qp_state {
	SKUA_QPS_RESET	= 0,
	SKUA_QPS_INIT	= 1,
	SKUA_QPS_RTR	= 2,
	SKUA_QPS_RTS	= 3,
	SKUA_QPS_SQD	= 4,
	SKUA_QPS_SQE	= 5,
	SKUA_QPS_ERR	= 6,
};

/* Access rights of MRs, windows and QPs (the latter two: remote ones), with verbs' numbers. */
#define SKUA_ACCESS_LOCAL_WRITE		0x1
#define SKUA_ACCESS_REMOTE_WRITE	0x2
#define SKUA_ACCESS_REMOTE_READ		0x4
#define SKUA_ACCESS_REMOTE_ATOMIC	0x8
#define SKUA_ACCESS_MW_BIND		0x10	/* MRs: windows may be bound */
#define SKUA_ACCESS_ZERO_BASED		0x20	/* windows: addresses begin at 0 */
#define SKUA_ACCESS_ON_DEMAND		0x40	/* MRs: pages come and go by UPDATE_PAGES */
#define SKUA_ACCESS_FLUSH_GLOBAL	0x100
#define SKUA_ACCESS_FLUSH_PERSISTENT	0x200
#define SKUA_ACCESS_MASK		0x37f

/* MODIFY_QP: fields of struct skua_qp_attr that are given. */
#define SKUA_QP_ATTR_STATE		0x000001
#define SKUA_QP_ATTR_CUR_STATE		0x000002
#define SKUA_QP_ATTR_ACCESS		0x000004
#define SKUA_QP_ATTR_AV			0x000008
#define SKUA_QP_ATTR_PATH_MTU		0x000010
#define SKUA_QP_ATTR_TIMEOUT		0x000020
#define SKUA_QP_ATTR_RETRY_CNT		0x000040
#define SKUA_QP_ATTR_RNR_RETRY		0x000080
#define SKUA_QP_ATTR_RQ_PSN		0x000100
#define SKUA_QP_ATTR_SQ_PSN		0x000200
#define SKUA_QP_ATTR_MAX_RD_ATOMIC	0x000400	/* as initiator */
#define SKUA_QP_ATTR_MAX_DEST_RD_ATOMIC	0x000800	/* as responder */
#define SKUA_QP_ATTR_MIN_RNR_TIMER	0x001000
#define SKUA_QP_ATTR_DEST_QPN		0x002000
#define SKUA_QP_ATTR_PKEY_INDEX		0x004000
#define SKUA_QP_ATTR_SQD_EVENT		0x008000	/* RTS to SQD: raise SQ_DRAINED; no field */
#define SKUA_QP_ATTR_QKEY		0x010000
#define SKUA_QP_ATTR_RATE_LIMIT		0x040000	/* and rate_burst, rate_packet */
#define SKUA_QP_ATTR_ECE		0x080000
#define SKUA_QP_ATTR_STRIP_CVLAN	0x100000
#define SKUA_QP_ATTR_MASK		0x1dffff

struct skua_qp_attr {
	__u8 state;		/* enum skua_qp_state */
	__u8 cur_state;
	__u8 path_mtu;		/* 1 to 5: 256 to 4096 bytes */
	__u8 timeout;		/* 4.096 us << timeout; 0: none */
	__u8 retry_cnt;		/* 0 to 7 */
	__u8 rnr_retry;		/* 0 to 7; 7: for ever */
	__u8 min_rnr_timer;	/* IBTA's code, 0 to 31 */
	__u8 sq_draining;	/* query only: in SQD, and not drained yet */
	__le32 access;		/* SKUA_ACCESS_REMOTE_* */
	__le32 dest_qpn;
	__le32 rq_psn;
	__le32 sq_psn;
	__le16 max_rd_atomic;
	__le16 max_dest_rd_atomic;
	__le16 pkey_index;	/* 0 */
	__le16 rsvd0;
	__le32 qkey;
	__le32 rate_limit;	/* kb/s; 0: none */
	__le32 rate_burst;	/* bytes that may exceed it; 0: the device decides */
	__le16 rate_packet;	/* typical bytes of a packet, a hint; 0: none */
	__le16 rsvd1;
	__le32 ece_options;	/* of the peer; query: those in use */
	__u8 strip_cvlan;	/* ETH: 1: from received frames; 0: not */
	__u8 rsvd2[11];
	struct skua_av av;
	__u8 rsvd3[32];
};

SKUA_ASSERT_SIZE(struct skua_qp_attr, 128);
SKUA_ASSERT_OFFSET(struct skua_qp_attr, access, 8);
SKUA_ASSERT_OFFSET(struct skua_qp_attr, max_rd_atomic, 24);
SKUA_ASSERT_OFFSET(struct skua_qp_attr, qkey, 32);
SKUA_ASSERT_OFFSET(struct skua_qp_attr, ece_options, 48);
SKUA_ASSERT_OFFSET(struct skua_qp_attr, strip_cvlan, 52);
SKUA_ASSERT_OFFSET(struct skua_qp_attr, av, 64);

struct skua_cmd_modify_qp {
	__le32 qpn;
	__le32 mask;		/* SKUA_QP_ATTR_* */
	__u8 rsvd0[24];
	struct skua_qp_attr attr;
	__u8 rsvd1[64];
};

SKUA_ASSERT_SIZE(struct skua_cmd_modify_qp, 224);
SKUA_ASSERT_OFFSET(struct skua_cmd_modify_qp, attr, 32);

enum skua_mr_type {
	SKUA_MR_REGULAR	= 0,	/* pages, valid until destroyed */
	SKUA_MR_PHYS	= 1,	/* all DMA addresses; only for privileged QPs */
	SKUA_MR_FAST	= 2,	/* pages; work requests register and invalidate it */
	SKUA_MR_DM	= 3,	/* device memory */
};

struct skua_cmd_create_mr {
	__le32 pdn;
	__le32 access;		/* SKUA_ACCESS_* */
	__u8 type;		/* enum skua_mr_type */
	__u8 rsvd0[3];
	__le32 capacity;	/* SKUA_MR_FAST: a free MR for REG_MR of so many pages; else 0 */
	__le64 iova;		/* address of the first byte, as WQEs give it */
	__le64 length;		/* bytes; with SKUA_ACCESS_ON_DEMAND, 0 stands for 2^64 */
	__le64 dm_offset;	/* SKUA_MR_DM: of the first byte in its DM; else 0 */
	__le32 dmn;		/* SKUA_MR_DM: its DM; else 0 */
	__u8 rsvd1[20];
	struct skua_pagelist pages;	/* with SKUA_ACCESS_ON_DEMAND: log_page and offset only */
	__u8 rsvd2[96];
};

SKUA_ASSERT_SIZE(struct skua_cmd_create_mr, 224);
SKUA_ASSERT_OFFSET(struct skua_cmd_create_mr, capacity, 12);
SKUA_ASSERT_OFFSET(struct skua_cmd_create_mr, iova, 16);
SKUA_ASSERT_OFFSET(struct skua_cmd_create_mr, dmn, 40);
SKUA_ASSERT_OFFSET(struct skua_cmd_create_mr, pages, 64);

/* MODIFY_MR: what the mask names is changed. */
#define SKUA_MR_SET_PD		0x1
#define SKUA_MR_SET_ACCESS	0x2
#define SKUA_MR_SET_PAGES	0x4	/* iova, length and pages */
#define SKUA_MR_SET_MASK	0x7

struct skua_cmd_modify_mr {
	__le32 key;
	__le32 mask;		/* SKUA_MR_SET_* */
	__le32 pdn;
	__le32 access;		/* SKUA_ACCESS_* */
	__le64 iova;
	__le64 length;
	__u8 rsvd0[32];
	struct skua_pagelist pages;
	__u8 rsvd1[96];
};

SKUA_ASSERT_SIZE(struct skua_cmd_modify_mr, 224);
SKUA_ASSERT_OFFSET(struct skua_cmd_modify_mr, iova, 16);
SKUA_ASSERT_OFFSET(struct skua_cmd_modify_mr, pages, 64);

/* UPDATE_PAGES: pages of an MR with SKUA_ACCESS_ON_DEMAND become present, or absent. */
#define SKUA_UPDATE_PAGES_MAX	512	/* that one command makes present */

struct skua_cmd_update_pages {
	__le32 key;
	__le32 rsvd0;
	__le64 first;		/* page of the MR, counted from 0 */
	__le64 count;		/* pages */
	__le64 list;		/* DMA address of their page-list entries; 0: they become absent */
	__u8 rsvd1[192];
};

SKUA_ASSERT_SIZE(struct skua_cmd_update_pages, 224);
SKUA_ASSERT_OFFSET(struct skua_cmd_update_pages, list, 24);

enum skua_page_fault_result {
	SKUA_PAGE_FAULT_RETRY	= 0,	/* the pages may be there now: the device looks again */
	SKUA_PAGE_FAULT_FAIL	= 1,	/* the address cannot be made present */
};

/* FAULT_RESUME: ends the page fault that has the token. */
struct skua_cmd_fault_resume {
	__le32 token;
	__u8 result;		/* enum skua_page_fault_result */
	__u8 rsvd[219];
};

SKUA_ASSERT_SIZE(struct skua_cmd_fault_resume, 224);

enum skua_mw_type {
	SKUA_MW_TYPE_1	= 1,	/* serves its PD; bound anew, or unbound, by BIND_MW */
	SKUA_MW_TYPE_2	= 2,	/* serves the QP that bound it, until it is invalidated (2B) */
};

struct skua_cmd_create_mw {
	__le32 pdn;
	__u8 type;		/* enum skua_mw_type */
	__u8 rsvd[219];
};

SKUA_ASSERT_SIZE(struct skua_cmd_create_mw, 224);

/* ATTACH_MCAST, DETACH_MCAST. */
struct skua_cmd_mcast {
	__le32 qpn;
	__le32 rsvd0;
	__u8 mgid[16];		/* network order */
	__u8 rsvd1[200];
};

SKUA_ASSERT_SIZE(struct skua_cmd_mcast, 224);
SKUA_ASSERT_OFFSET(struct skua_cmd_mcast, mgid, 8);

#define SKUA_SRQ_PRIVILEGED	0x1	/* may use the reserved lkey */
#define SKUA_SRQ_FLAGS		0x1

struct skua_cmd_create_srq {
	__le32 pdn;
	__u8 log_size;		/* entries, log2 */
	__u8 log_stride;	/* bytes of an entry, log2 */
	__u8 rsvd0[2];
	__le32 flags;		/* SKUA_SRQ_* */
	__le32 limit;		/* as of MODIFY_SRQ */
	__le64 srq_handle;	/* returned in CQEs and asynchronous events */
	__le64 dbr_addr;	/* struct skua_dbr */
	__le32 xrcdn;		/* its XRC domain; 0: it is for the QPs that name it */
	__le32 cqn;		/* with xrcdn or tags: CQ of its receives; else 0 */
	__le32 tags;		/* that may be in its list; 0: it matches none */
	__u8 rsvd1[20];
	struct skua_pagelist ring;
	__u8 rsvd2[96];
};

SKUA_ASSERT_SIZE(struct skua_cmd_create_srq, 224);
SKUA_ASSERT_OFFSET(struct skua_cmd_create_srq, srq_handle, 16);
SKUA_ASSERT_OFFSET(struct skua_cmd_create_srq, xrcdn, 32);
SKUA_ASSERT_OFFSET(struct skua_cmd_create_srq, ring, 64);

/* MODIFY_SRQ: what the mask names is changed. */
#define SKUA_SRQ_SET_LIMIT	0x1
#define SKUA_SRQ_SET_RING	0x2
#define SKUA_SRQ_SET_MASK	0x3

struct skua_cmd_modify_srq {
	__le32 srqn;
	__le32 mask;		/* SKUA_SRQ_SET_* */
	__le32 limit;		/* entries left at which SRQ_LIMIT is raised; 0: never */
	__u8 log_size;		/* of the new ring: entries, log2 */
	__u8 rsvd0[51];
	struct skua_pagelist ring;
	__u8 rsvd1[96];
};

SKUA_ASSERT_SIZE(struct skua_cmd_modify_srq, 224);
SKUA_ASSERT_OFFSET(struct skua_cmd_modify_srq, ring, 64);

#define SKUA_DM_MAX_LOG_ALIGN	12

struct skua_cmd_alloc_dm {
	__le64 length;		/* bytes */
	__u8 log_align;		/* of the first byte, log2 */
	__u8 rsvd[215];
};

SKUA_ASSERT_SIZE(struct skua_cmd_alloc_dm, 224);

enum skua_dm_direction {
	SKUA_DM_FROM_HOST	= 0,	/* host memory to device memory */
	SKUA_DM_TO_HOST		= 1,
};

#define SKUA_DM_COPY_MAX	65536	/* bytes of a DM_COPY */
#define SKUA_DM_COPY_UNIT	4	/* its offset and length are multiples of it */

struct skua_cmd_dm_copy {
	__le32 dmn;
	__le32 length;		/* bytes */
	__le64 offset;		/* of the first byte in the DM */
	__le64 addr;		/* DMA address of the first byte in host memory */
	__u8 direction;		/* enum skua_dm_direction */
	__u8 rsvd[199];
};

SKUA_ASSERT_SIZE(struct skua_cmd_dm_copy, 224);
SKUA_ASSERT_OFFSET(struct skua_cmd_dm_copy, direction, 24);

enum skua_flow_type {
	SKUA_FLOW_NORMAL	= 0,	/* before the port and the default flows */
	SKUA_FLOW_DEFAULT	= 1,	/* before the port */
	SKUA_FLOW_SNIFFER	= 2,	/* copies */
};

/* Headers that a frame has. */
#define SKUA_FLOW_VLAN		0x01
#define SKUA_FLOW_IPV4		0x02
#define SKUA_FLOW_IPV6		0x04
#define SKUA_FLOW_TCP		0x08
#define SKUA_FLOW_UDP		0x10
#define SKUA_FLOW_HEADERS	0x1f

/* Flags of an IPv4 header. */
#define SKUA_FLOW_DONT_FRAGMENT	0x2
#define SKUA_FLOW_MORE_FRAGMENTS 0x4
#define SKUA_FLOW_IP_FLAGS	0x6

/* What flows compare of a frame; what it does not have is zero. */
struct skua_flow_key {
	__u8 dmac[6];
	__u8 smac[6];
	__be16 ether_type;	/* behind a VLAN tag, if there is one */
	__be16 vlan;		/* of the tag: priority, DEI and id */
	__u8 src_ip[16];	/* IPv4: the first 4 bytes */
	__u8 dst_ip[16];
	__be32 flow_label;	/* IPv6: 20 bits */
	__u8 proto;		/* IPv4: protocol; IPv6: the first next header */
	__u8 tos;		/* IPv6: traffic class */
	__u8 ttl;		/* IPv6: hop limit */
	__u8 ip_flags;		/* IPv4: SKUA_FLOW_IP_FLAGS */
	__be16 src_port;	/* TCP, UDP */
	__be16 dst_port;
	__u8 headers;		/* SKUA_FLOW_HEADERS */
	__u8 rsvd[3];
};

SKUA_ASSERT_SIZE(struct skua_flow_key, 64);
SKUA_ASSERT_OFFSET(struct skua_flow_key, src_ip, 16);
SKUA_ASSERT_OFFSET(struct skua_flow_key, flow_label, 48);
SKUA_ASSERT_OFFSET(struct skua_flow_key, src_port, 56);

/* CREATE_FLOW: frames whose bits of the mask have this value go to a QP, or are spread. */
struct skua_cmd_create_flow {
	__le32 qpn;		/* of type ETH, with an RQ; 0: spread by */
	__u8 type;		/* enum skua_flow_type */
	__u8 rsvd0;
	__le16 priority;	/* of those that match, the lowest decides, then the oldest */
	__le32 rssn;		/* an RSS object; 0: to qpn */
	__le32 tag;		/* flow_tag of CQEs */
	__u8 rsvd1[48];
	struct skua_flow_key value;
	struct skua_flow_key mask;
	__u8 rsvd2[32];
};

SKUA_ASSERT_SIZE(struct skua_cmd_create_flow, 224);
SKUA_ASSERT_OFFSET(struct skua_cmd_create_flow, value, 64);

/* Fields of a frame that a hash covers. */
#define SKUA_HASH_SRC_IPV4	0x01
#define SKUA_HASH_DST_IPV4	0x02
#define SKUA_HASH_SRC_IPV6	0x04
#define SKUA_HASH_DST_IPV6	0x08
#define SKUA_HASH_SRC_PORT_TCP	0x10
#define SKUA_HASH_DST_PORT_TCP	0x20
#define SKUA_HASH_SRC_PORT_UDP	0x40
#define SKUA_HASH_DST_PORT_UDP	0x80
#define SKUA_HASH_MASK		0xff

/* CREATE_RSS: frames of flows are spread over QPs of type ETH. */
struct skua_cmd_create_rss {
	__u8 log_size;		/* entries of the table, log2 */
	__u8 rsvd0[3];
	__le32 fields;		/* SKUA_HASH_* */
	__u8 key[40];		/* of the Toeplitz hash */
	__le32 qpn[32];		/* the table */
	__u8 rsvd1[48];
};

SKUA_ASSERT_SIZE(struct skua_cmd_create_rss, 224);
SKUA_ASSERT_OFFSET(struct skua_cmd_create_rss, qpn, 48);

/* BIND_COUNTER_SET: where a QP counts from now on. */
struct skua_cmd_bind_counter_set {
	__le32 qpn;
	__le32 number;		/* of the counter set; 0: the function's own */
	__u8 rsvd[216];
};

SKUA_ASSERT_SIZE(struct skua_cmd_bind_counter_set, 224);

struct skua_cmd {
	struct skua_cmd_hdr hdr;
	union {
		struct skua_cmd_object object;
		struct skua_cmd_set_port set_port;
		struct skua_cmd_set_gid set_gid;
		struct skua_cmd_set_rss set_rss;
		struct skua_cmd_create_eq create_eq;
		struct skua_cmd_create_cq create_cq;
		struct skua_cmd_resize_cq resize_cq;
		struct skua_cmd_modify_cq modify_cq;
		struct skua_cmd_create_qp create_qp;
		struct skua_cmd_modify_qp modify_qp;
		struct skua_cmd_create_mr create_mr;
		struct skua_cmd_modify_mr modify_mr;
		struct skua_cmd_update_pages update_pages;
		struct skua_cmd_fault_resume fault_resume;
		struct skua_cmd_create_mw create_mw;
		struct skua_cmd_mcast mcast;
		struct skua_cmd_create_srq create_srq;
		struct skua_cmd_modify_srq modify_srq;
		struct skua_cmd_alloc_dm alloc_dm;
		struct skua_cmd_dm_copy dm_copy;
		struct skua_cmd_create_flow flow;
		struct skua_cmd_create_rss rss;
		struct skua_cmd_bind_counter_set bind_set;
		__u8 body[224];
	};
};

SKUA_ASSERT_SIZE(struct skua_cmd, 256);

#define SKUA_CMD_CPL_PHASE	0x01	/* toggles with every pass; 1 in the first */

/* The last 8 bytes are stored last, in one piece. */
struct skua_cmd_cpl {
	__le32 id;		/* of the command */
	__le32 number;		/* CREATE_*, ALLOC_DM: number of the object, or the key */
	__le32 out_len;		/* bytes written to the output buffer */
	__le32 index;		/* RESIZE_CQ */
	__u8 rsvd0[40];
	__u8 rsvd1[6];
	__u8 status;		/* enum skua_cmd_status */
	__u8 flags;		/* SKUA_CMD_CPL_PHASE */
};

SKUA_ASSERT_SIZE(struct skua_cmd_cpl, 64);
SKUA_ASSERT_OFFSET(struct skua_cmd_cpl, flags, 63);

/* QUERY_DEVICE. Each limit is one that the device serves. */
struct skua_device_caps {
	__u8 guid[8];			/* EUI-64, network order */
	__le64 max_mr_size;		/* bytes, at pages of 4 KiB */
	__le64 max_pages;		/* quota: page-list entries, SQ blocks, and more: PL-10 */
	__le32 clock_khz;		/* CLOCK and timestamps */
	__le32 fw_version;		/* major << 16 | minor */
	__le32 max_eq;
	__le32 max_pd;
	__le32 max_cq;
	__le32 max_qp;
	__le32 max_mr;
	__le32 max_cqe;			/* of a CQ */
	__le32 max_sq_blocks;		/* of an SQ, 64 bytes each */
	__le32 max_rq_entries;		/* of an RQ */
	__le32 max_eqe;			/* of an EQ */
	__le32 num_db_pages;		/* in BAR2 */
	__le32 reserved_lkey;		/* DMA addresses, for privileged QPs */
	__le32 max_msg_size;		/* bytes */
	__le16 max_send_sge;
	__le16 max_recv_sge;
	__le16 max_inline;		/* bytes */
	__le16 max_rd_atomic;		/* per QP, each direction */
	__le16 gid_table_len;
	__le16 pkey_table_len;
	__u8 num_ports;
	__u8 cmd_timeout;		/* seconds within which every command is answered */
	__le16 rsvd0;
	__le32 max_mcast_groups;
	__le32 max_mcast_qps;		/* attached to one group */
	__le32 max_fast_pages;		/* of a REG_MR; 0 without SKUA_F_FAST_REG */
	__le32 max_srq;			/* 0 without SKUA_F_SRQ, as the next */
	__le32 max_srq_entries;		/* of an SRQ */
	__le32 max_mw;			/* 0 without SKUA_F_MW */
	__le32 flush_caps;		/* placements: SKUA_FLUSH_*; 0 without SKUA_F_FLUSH */
	__le32 max_xrcd;		/* 0 without SKUA_F_XRC */
	__le64 max_dm;			/* bytes; 0 without SKUA_F_DM */
	__le32 max_flow;		/* 0 without SKUA_F_RAW_PACKET, as the next */
	__le32 max_sniffer;		/* of them, flows that are sniffers */
	__le32 max_rss;			/* RSS objects; 0 without SKUA_F_RAW_PACKET */
	__le32 max_counter_set;		/* 0 without SKUA_F_COUNTER_SET */
	__le32 max_fast_pieces;		/* of a REG_MR; 0 without SKUA_F_SG_GAPS */
	__le32 min_rate;		/* kb/s; 0 without SKUA_F_RATE_LIMIT, as the next */
	__le32 max_rate;
	__le32 ece_options;		/* that the device has; 0 without SKUA_F_ECE */
	__le32 max_tso;			/* bytes of payload; 0 without SKUA_F_TSO */
	__le32 max_tags;		/* of an SRQ; 0 without SKUA_F_TAG_MATCHING */
	__u8 rsvd1[16];
};

SKUA_ASSERT_SIZE(struct skua_device_caps, 192);
SKUA_ASSERT_OFFSET(struct skua_device_caps, clock_khz, 24);
SKUA_ASSERT_OFFSET(struct skua_device_caps, max_send_sge, 80);
SKUA_ASSERT_OFFSET(struct skua_device_caps, max_mcast_groups, 96);
SKUA_ASSERT_OFFSET(struct skua_device_caps, max_fast_pages, 104);
SKUA_ASSERT_OFFSET(struct skua_device_caps, max_mw, 116);
SKUA_ASSERT_OFFSET(struct skua_device_caps, max_dm, 128);
SKUA_ASSERT_OFFSET(struct skua_device_caps, max_fast_pieces, 152);

/* QUERY_SRQ. */
struct skua_srq_attr {
	__le32 limit;			/* 0: not set, or raised since */
	__u8 log_size;			/* entries, log2 */
	__u8 error;
	__u8 rsvd0[58];
};

SKUA_ASSERT_SIZE(struct skua_srq_attr, 64);

/* QUERY_PORT. */
struct skua_port_attr {
	__u8 link_up;
	__u8 rsvd0[3];
	__le32 max_mtu;			/* the largest MTU of the netdev, bytes */
	__le32 mtu;			/* as set by SET_PORT */
	__le32 flags;			/* SKUA_PORT_F_* */
	__le32 speed_mbps;
	__le32 rx_qpn;
	__u8 mac[6];			/* in use */
	__u8 perm_mac[6];
	__u8 rsvd1[28];
};

SKUA_ASSERT_SIZE(struct skua_port_attr, 64);
SKUA_ASSERT_OFFSET(struct skua_port_attr, mac, 24);

/* QUERY_STATS: counters since reset. The names are the manual's and skuactl's. */
#define SKUA_STATS(X) \
	X(tx_frames) X(tx_bytes) X(rx_frames) X(rx_bytes) X(rx_no_buffer) X(rx_dropped) \
	X(rdma_tx_packets) X(rdma_tx_bytes) X(rdma_rx_packets) X(rdma_rx_bytes) \
	X(rdma_tx_send) X(rdma_tx_write) X(rdma_tx_read) \
	X(rdma_rx_send) X(rdma_rx_write) X(rdma_rx_read) \
	X(rnr_nak_sent) X(rnr_nak_received) X(seq_nak_sent) X(seq_nak_received) \
	X(access_nak_sent) X(invalid_nak_sent) X(op_nak_sent) \
	X(ack_timeouts) X(retransmits) X(duplicates) X(out_of_order) \
	X(rdma_rx_bad_qp) X(rdma_rx_bad_packet) X(bad_doorbells) X(bad_commands) \
	X(commands) X(cqe_errors) X(cq_overflows) X(events) X(interrupts) \
	X(rdma_tx_atomic) X(rdma_rx_atomic) \
	X(rdma_rx_bad_icrc) X(rdma_rx_bad_opcode) X(rdma_rx_bad_pkey) X(rdma_rx_bad_addr) \
	X(rdma_rx_bad_qkey) X(rdma_rx_no_receive) X(rdma_rx_incomplete) X(rdma_rx_mcast) \
	X(rdma_rx_ecn_marked) X(cnp_sent) X(cnp_received) X(tx_spoofed) \
	X(rdma_tx_flush) X(rdma_rx_flush) X(rdma_tx_atomic_write) X(rdma_rx_atomic_write) \
	X(page_faults)

struct skua_stats {
#define SKUA_STATS_FIELD(name) __le64 name;
	SKUA_STATS(SKUA_STATS_FIELD)
#undef SKUA_STATS_FIELD
	__le64 rsvd[9];
};

SKUA_ASSERT_SIZE(struct skua_stats, 512);

#endif /* SKUA_CMD_H */
