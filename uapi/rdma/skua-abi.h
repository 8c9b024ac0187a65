/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-2-Clause) */
/*
 * What skua_ib.ko and the rdma-core provider say to each other.
 *
 * Queue buffers and doorbell records are user memory, registered by address; each is
 * laid out as the hardware interface says (include/skua/, the programming manual).
 */
#ifndef SKUA_ABI_USER_H
#define SKUA_ABI_USER_H

#include <linux/types.h>

#define SKUA_ABI_VERSION	1

struct skua_alloc_ucontext_resp {
	__aligned_u64 features;		/* accepted by the driver, bits SKUA_F_* */
	__aligned_u64 db_page_key;	/* mmap offset of the doorbell page(s) */
	__aligned_u64 info_page_key;	/* mmap offset of struct skua_info_page */
	__u32 db_page_size;		/* bytes to map at db_page_key */
	__u32 info_page_size;		/* bytes to map at info_page_key */
	__u32 max_qp_wr;		/* in an SQ, or an RQ, whatever they are made of */
	__u32 max_cqe;
	__u32 max_inline;		/* bytes */
	__u16 max_send_sge;
	__u16 max_recv_sge;
	__u32 comp_mask;		/* nothing yet */
	__u32 max_srq_wr;		/* 0: there are no SRQs */
	__u32 ece_options;		/* that the device has */
	__u32 max_tso;			/* bytes of payload; 0: there is no TSO */
};

/* What another process that has the descriptor asks for: struct skua_alloc_ucontext_resp. */
enum skua_ib_query_context_attrs {
	SKUA_IB_ATTR_QUERY_CONTEXT_RESP = 1 << 12,	/* UVERBS_ID_NS_SHIFT */
};

/* Rate limits of QPs; all 0: there are none. */
struct skua_query_device_resp {
	__u32 min_rate;			/* kb/s */
	__u32 max_rate;
	__u32 rate_qpts;		/* bits of QP types that have them */
	__u32 comp_mask;		/* nothing yet */
};

struct skua_alloc_pd_resp {
	__u32 pdn;
	__u32 reserved;
};

/* Who imports a PD learns whether it is there. */
enum skua_ib_pd_methods {
	SKUA_IB_METHOD_PD_QUERY = 1 << 12,	/* UVERBS_ID_NS_SHIFT */
};

enum skua_ib_pd_query_attrs {
	SKUA_IB_ATTR_PD_QUERY_HANDLE = 1 << 12,
};

struct skua_create_cq_req {
	__aligned_u64 buf_addr;		/* CQEs */
	__aligned_u64 dbr_addr;		/* struct skua_cq_dbr */
	__u32 log_size;			/* CQEs, log2 */
	__u32 comp_mask;		/* 0 */
};

struct skua_create_cq_resp {
	__u32 cqn;
	__u32 comp_mask;
};

/* The ring that takes the place of the one before. */
struct skua_resize_cq_req {
	__aligned_u64 buf_addr;		/* CQEs, none of which is there */
	__u32 log_size;			/* CQEs, log2 */
	__u32 comp_mask;		/* 0 */
};

struct skua_resize_cq_resp {
	__u32 index;			/* from which on CQEs are in it */
	__u32 comp_mask;
};

struct skua_create_qp_req {
	__aligned_u64 sq_addr;		/* send WQEs */
	__aligned_u64 rq_addr;		/* receive WQEs */
	__aligned_u64 sq_dbr_addr;	/* struct skua_dbr */
	__aligned_u64 rq_dbr_addr;	/* struct skua_dbr */
	__aligned_u64 qp_handle;	/* returned in CQEs */
	__u8 log_sq_blocks;		/* 64-byte blocks, log2 */
	__u8 log_rq_size;		/* entries, log2 */
	__u8 log_rq_stride;		/* bytes of an entry, log2 */
	__u8 flags;			/* enum skua_create_qp_flags */
	__u32 comp_mask;		/* 0 */
};

enum skua_create_qp_flags {
	SKUA_CREATE_QP_NO_SQ	= 1 << 0,
	SKUA_CREATE_QP_NO_RQ	= 1 << 1,
};

struct skua_create_qp_resp {
	__u32 qpn;
	__u32 comp_mask;
};

/* Behind IBV_QP_RATE_LIMIT, or when options were agreed on. It need not be there otherwise. */
struct skua_modify_qp_req {
	__u32 rate_burst;		/* bytes that may exceed the limit; 0: the device decides */
	__u16 rate_packet;		/* typical bytes of a packet; 0: not known */
	__u16 reserved;
	__u32 ece_options;		/* to RTR: that the QP uses */
	__u32 comp_mask;		/* 0 */
};

/* A WQ: the RQ of a raw packet QP without an SQ. */
struct skua_create_wq_req {
	__aligned_u64 rq_addr;		/* receive WQEs */
	__aligned_u64 rq_dbr_addr;	/* struct skua_dbr */
	__aligned_u64 wq_handle;	/* returned in CQEs */
	__u8 log_rq_size;		/* entries, log2 */
	__u8 log_rq_stride;		/* bytes of an entry, log2 */
	__u16 reserved;
	__u32 comp_mask;		/* 0 */
};

/* A QP with an indirection table, instead of struct skua_create_qp_req. */
struct skua_create_rss_qp_req {
	__aligned_u64 fields;		/* of verbs' enum ibv_rx_hash_fields */
	__u8 function;			/* of verbs' enum ibv_rx_hash_function_flags */
	__u8 key_len;			/* bytes of the key */
	__u16 reserved;
	__u32 comp_mask;		/* 0 */
	__u8 key[40];
};

struct skua_create_srq_req {
	__aligned_u64 buf_addr;		/* receive WQEs */
	__aligned_u64 dbr_addr;		/* struct skua_dbr */
	__aligned_u64 srq_handle;	/* returned in CQEs */
	__u8 log_size;			/* entries, log2 */
	__u8 log_stride;		/* bytes of an entry, log2 */
	__u8 reserved[2];
	__u32 comp_mask;		/* 0 */
};

struct skua_create_srq_resp {
	__u32 srqn;
	__u32 comp_mask;
};

/* With IBV_SRQ_MAX_WR: the ring that takes the place of the one before; entries are copied. */
struct skua_modify_srq_req {
	__aligned_u64 buf_addr;
	__u32 log_size;
	__u32 comp_mask;		/* 0 */
};

/* What the kernel found on the way to the destination of an AH. */
struct skua_create_ah_resp {
	__u8 dmac[6];
	__u8 reserved[2];
};

/* A disassociated context may read zeroes where the page was: that must not look alive. */
enum skua_info_state {
	SKUA_INFO_DEAD	= 0,	/* no completion will ever come again */
	SKUA_INFO_ALIVE	= 1,
};

/*
 * Read-only page that every context maps. It outlives the device. It brings together the device's
 * clock, with which CQEs are stamped, and the wall clock: @ns is the time at @cycles, and a tick is
 * @mult >> @shift nanoseconds. This is renewed each second.
 */
struct skua_info_page {
	__u32 state;		/* enum skua_info_state */
	__u32 clock_khz;	/* of CQE timestamps */
	__u32 sequence;		/* odd while what follows changes; 0: it is not known yet */
	__u32 shift;
	__aligned_u64 cycles;
	__aligned_u64 ns;	/* since 1970 */
	__u32 mult;
	__u32 reserved;
};

enum skua_ib_device_methods {
	SKUA_IB_METHOD_QUERY_CLOCK = 1 << 12,	/* UVERBS_ID_NS_SHIFT */
};

enum skua_ib_query_clock_attrs {
	SKUA_IB_ATTR_QUERY_CLOCK_RESP_CYCLES = 1 << 12,
};

enum skua_ib_dm_methods {
	SKUA_IB_METHOD_DM_COPY = 1 << 12,	/* UVERBS_ID_NS_SHIFT */
};

enum skua_ib_dm_copy_attrs {
	SKUA_IB_ATTR_DM_COPY_HANDLE = 1 << 12,
	SKUA_IB_ATTR_DM_COPY_REQ,		/* struct skua_dm_copy_req */
};

enum skua_dm_copy_direction {
	SKUA_DM_COPY_TO_DM	= 0,
	SKUA_DM_COPY_FROM_DM	= 1,
};

struct skua_dm_copy_req {
	__aligned_u64 addr;		/* in the program's memory */
	__aligned_u64 offset;		/* in the DM; a multiple of 4, as the next */
	__aligned_u64 length;		/* bytes; 0: nothing is copied */
	__u32 direction;		/* enum skua_dm_copy_direction */
	__u32 comp_mask;		/* 0 */
};

#endif /* SKUA_ABI_USER_H */
