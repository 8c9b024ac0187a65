/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Skua: commands, each a typed function.
 *
 * All of them sleep until the device has answered, which it does within a few seconds; if not,
 * it is declared dead. On a dead device everything fails with -EIO, except what stops something:
 * destroying, leaving a multicast group, and the QP states RESET and ERR. These return when the
 * device is fenced, so that it will never again touch the object's memory.
 */
#ifndef LINUX_SKUA_COMMAND_H
#define LINUX_SKUA_COMMAND_H

#include <linux/types.h>

#include <skua/cmd.h>

struct skua_dev;

int skua_cmd_query_port(struct skua_dev *dev, struct skua_port_attr *attr);
int skua_cmd_query_stats(struct skua_dev *dev, struct skua_stats *stats);

/* @vlan: 802.1Q id, or SKUA_VLAN_NONE. */
int skua_cmd_set_gid(struct skua_dev *dev, u16 index, const u8 gid[16], const u8 mac[6], u16 vlan);
int skua_cmd_clear_gid(struct skua_dev *dev, u16 index);

int skua_cmd_create_pd(struct skua_dev *dev, u32 *pdn);
void skua_cmd_destroy_pd(struct skua_dev *dev, u32 pdn);

/**
 * struct skua_cq_params - a CQ to create
 * @vector: completion vector whose EQ its events go to
 * @log_size: CQEs, log2
 * @db_page: doorbell page that may arm it
 * @dbr: DMA address of its record
 * @ring: the ring
 */
struct skua_cq_params {
	unsigned int vector;
	u8 log_size;
	u32 db_page;
	dma_addr_t dbr;
	const struct skua_pagelist *ring;
};

int skua_cmd_create_cq(struct skua_dev *dev, const struct skua_cq_params *params, u32 *cqn);
/* @index: from which on CQEs are in @ring (CQ-6). */
int skua_cmd_resize_cq(struct skua_dev *dev, u32 cqn, u8 log_size, const struct skua_pagelist *ring,
		       u32 *index);
/* Events wait for @count CQEs, @period us at most. */
int skua_cmd_modify_cq(struct skua_dev *dev, u32 cqn, u16 count, u16 period);
void skua_cmd_destroy_cq(struct skua_dev *dev, u32 cqn);

/**
 * struct skua_qp_params - a QP to create
 * @type: enum skua_qp_type
 * @privileged: it may use the reserved lkey; for the kernel's own QPs only
 * @pdn: its PD
 * @send_cqn: CQ of the SQ
 * @recv_cqn: CQ of the RQ
 * @db_page: doorbell page that may ring it
 * @handle: returned in CQEs
 * @sq: the SQ; no pages, record or size: none
 * @sq_dbr: DMA address of its record
 * @log_sq_blocks: SQ: 64-byte blocks, log2
 * @log_rq_size: RQ: entries, log2
 * @log_rq_stride: RQ: bytes of an entry, log2
 * @rq: the RQ, likewise
 * @rq_dbr: DMA address of its record
 * @srqn: the SRQ instead of an RQ; 0: none
 * @xrcdn: SKUA_QPT_XRC_TGT: its XRC domain, beside which it has nothing; else 0
 */
struct skua_qp_params {
	enum skua_qp_type type;
	bool privileged;
	u32 pdn;
	u32 send_cqn;
	u32 recv_cqn;
	u32 db_page;
	u64 handle;
	const struct skua_pagelist *sq;
	dma_addr_t sq_dbr;
	u8 log_sq_blocks;
	u8 log_rq_size;
	u8 log_rq_stride;
	const struct skua_pagelist *rq;
	dma_addr_t rq_dbr;
	u32 srqn;
	u32 xrcdn;
};

int skua_cmd_create_qp(struct skua_dev *dev, const struct skua_qp_params *params, u32 *qpn);
/* @mask: SKUA_QP_ATTR_* */
int skua_cmd_modify_qp(struct skua_dev *dev, u32 qpn, u32 mask, const struct skua_qp_attr *attr);
int skua_cmd_query_qp(struct skua_dev *dev, u32 qpn, struct skua_qp_attr *attr);
void skua_cmd_destroy_qp(struct skua_dev *dev, u32 qpn);

/**
 * struct skua_srq_params - an SRQ to create
 * @privileged: its entries may use the reserved lkey; for the kernel's own only
 * @pdn: its PD
 * @log_size: entries, log2
 * @log_stride: bytes of an entry, log2
 * @handle: returned in CQEs
 * @dbr: DMA address of its record
 * @ring: the ring
 * @xrcdn: its XRC domain; 0: none
 * @cqn: CQ of its receives, if it has a domain or tags; else 0
 * @tags: that may be in its list; 0: it matches none
 */
struct skua_srq_params {
	bool privileged;
	u32 pdn;
	u8 log_size;
	u8 log_stride;
	u64 handle;
	dma_addr_t dbr;
	const struct skua_pagelist *ring;
	u32 xrcdn;
	u32 cqn;
	u32 tags;
};

int skua_cmd_create_srq(struct skua_dev *dev, const struct skua_srq_params *params, u32 *srqn);
/* @mask: SKUA_SRQ_SET_*. With SET_RING, entries that are not taken are in @ring, too (SRQ-10). */
int skua_cmd_modify_srq(struct skua_dev *dev, u32 srqn, u32 mask, u32 limit, u8 log_size,
			const struct skua_pagelist *ring);
int skua_cmd_query_srq(struct skua_dev *dev, u32 srqn, struct skua_srq_attr *attr);
void skua_cmd_destroy_srq(struct skua_dev *dev, u32 srqn);

int skua_cmd_create_xrcd(struct skua_dev *dev, u32 *xrcdn);
void skua_cmd_destroy_xrcd(struct skua_dev *dev, u32 xrcdn);

int skua_cmd_create_counter_set(struct skua_dev *dev, u32 *number);
/* No QP is bound to it. */
void skua_cmd_destroy_counter_set(struct skua_dev *dev, u32 number);
/* @number 0: what is counted in no other set. */
int skua_cmd_query_counter_set(struct skua_dev *dev, u32 number, struct skua_stats *stats);
int skua_cmd_bind_counter_set(struct skua_dev *dev, u32 qpn, u32 number);
/* From now on the QP counts in the function's own set. Succeeds on a dead device, too. */
int skua_cmd_unbind_counter_set(struct skua_dev *dev, u32 qpn);

/**
 * struct skua_mr_params - an MR to create, or what becomes of one
 * @type: enum skua_mr_type
 * @access: SKUA_ACCESS_*
 * @pdn: its PD
 * @iova: address of its first byte, as WQEs and peers give it
 * @length: bytes
 * @pages: its memory, NULL: none (SKUA_MR_PHYS, SKUA_MR_DM, or with @capacity). On demand: page
 *	size and offset
 * @capacity: SKUA_MR_FAST: pages that a registration may have, which gives it all the rest; else 0
 * @dmn: SKUA_MR_DM: its DM; else 0
 * @dm_offset: SKUA_MR_DM: of its first byte in the DM; else 0
 * @change: SKUA_MR_SET_*, for skua_cmd_modify_mr(), which ignores the rest
 */
struct skua_mr_params {
	enum skua_mr_type type;
	u32 access;
	u32 pdn;
	u64 iova;
	u64 length;
	const struct skua_pagelist *pages;
	u32 capacity;
	u32 dmn;
	u64 dm_offset;
	u32 change;
};

int skua_cmd_create_mr(struct skua_dev *dev, const struct skua_mr_params *params, u32 *key);
/* All that @params->change says, or nothing. -EBUSY: windows are bound to it. */
int skua_cmd_modify_mr(struct skua_dev *dev, u32 key, const struct skua_mr_params *params);
/* -EBUSY: windows are bound to it. Any variant of the key will do. */
int skua_cmd_destroy_mr(struct skua_dev *dev, u32 key);
/*
 * Nobody may use the MR any more. It does not wait for commands of other kinds. It is a fence, on a
 * dead device, too.
 */
void skua_cmd_invalidate_mr(struct skua_dev *dev, u32 key);

/*
 * Of an MR on demand: @count pages from @first on become what the entries at @list say, or absent.
 * None of the two waits for commands of other kinds. Dropping is a fence, on a dead device, too.
 */
int skua_cmd_set_pages(struct skua_dev *dev, u32 key, u64 first, u32 count, dma_addr_t list);
void skua_cmd_drop_pages(struct skua_dev *dev, u32 key, u64 first, u64 count);
/* The page fault is over. @ok: the access may be tried again; it fails otherwise. */
void skua_cmd_fault_resume(struct skua_dev *dev, u32 token, bool ok);

int skua_cmd_create_mw(struct skua_dev *dev, u32 pdn, enum skua_mw_type type, u32 *key);
/* Any variant of the key will do. */
void skua_cmd_destroy_mw(struct skua_dev *dev, u32 key);

int skua_cmd_alloc_dm(struct skua_dev *dev, u64 length, u8 log_align, u32 *dmn);
void skua_cmd_free_dm(struct skua_dev *dev, u32 dmn);
/* @len: at most SKUA_DM_COPY_MAX. */
int skua_cmd_dm_copy(struct skua_dev *dev, u32 dmn, enum skua_dm_direction direction, u64 offset,
		     dma_addr_t dma, u32 len);

/* UD: let a QP receive from a group, and no more. */
int skua_cmd_attach_mcast(struct skua_dev *dev, u32 qpn, const u8 mgid[16]);
int skua_cmd_detach_mcast(struct skua_dev *dev, u32 qpn, const u8 mgid[16]);

/**
 * struct skua_flow_params - a flow to create
 * @qpn: the QP that gets its frames; 0: they are spread
 * @rssn: by this RSS object; 0: they are not
 * @type: enum skua_flow_type
 * @priority: of those that match a frame, the lowest decides, then the oldest
 * @tag: what completions of its frames tell
 * @value: what a frame has in the bits of @mask; 0 in all others
 * @mask: bits that are compared
 */
struct skua_flow_params {
	u32 qpn;
	u32 rssn;
	enum skua_flow_type type;
	u16 priority;
	u32 tag;
	struct skua_flow_key value;
	struct skua_flow_key mask;
};

int skua_cmd_create_flow(struct skua_dev *dev, const struct skua_flow_params *params, u32 *number);
void skua_cmd_destroy_flow(struct skua_dev *dev, u32 number);

int skua_cmd_create_rss(struct skua_dev *dev, const struct skua_cmd_create_rss *rss, u32 *rssn);
void skua_cmd_destroy_rss(struct skua_dev *dev, u32 rssn);

#endif /* LINUX_SKUA_COMMAND_H */
