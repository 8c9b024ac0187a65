// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Polling a completion queue: ibv_poll_cq(), and ibv_start_poll() to ibv_end_poll().
 *
 * A CQE brings the address of its QP and a cookie that finds the WR. A CQE's place in the CQ is the
 * device's again before the place of its WR is free: another thread may post at once, and a CQ
 * need not be larger than the queues that complete into it. So ibv_start_poll() copies its CQE.
 *
 * An empty CQ of a device that is gone is an error, so that a program which only spins here
 * learns of it.
 */
#include <errno.h>

#include <skua/cmd.h>

#include "skua.h"
#include "tm.h"

static_assert(SKUA_CQE_LOC_PROT_ERR == (int)IBV_WC_LOC_PROT_ERR &&
	      SKUA_CQE_WR_FLUSH_ERR == (int)IBV_WC_WR_FLUSH_ERR &&
	      SKUA_CQE_REM_OP_ERR == (int)IBV_WC_REM_OP_ERR &&
	      SKUA_CQE_RNR_RETRY_EXC_ERR == (int)IBV_WC_RNR_RETRY_EXC_ERR &&
	      SKUA_CQE_GENERAL_ERR == (int)IBV_WC_GENERAL_ERR,
	      "a CQE's status is verbs' status");

/* Of those that a verb posts. */
static const uint8_t skua_wc_opcodes[UINT8_MAX + 1] = {
	[SKUA_CQE_SEND] = IBV_WC_SEND,
	[SKUA_CQE_WRITE] = IBV_WC_RDMA_WRITE,
	[SKUA_CQE_READ] = IBV_WC_RDMA_READ,
	[SKUA_CQE_LOCAL_INV] = IBV_WC_LOCAL_INV,
	[SKUA_CQE_CMP_SWAP] = IBV_WC_COMP_SWAP,
	[SKUA_CQE_FETCH_ADD] = IBV_WC_FETCH_ADD,
	[SKUA_CQE_TSO] = IBV_WC_TSO,
	[SKUA_CQE_BIND_MW] = IBV_WC_BIND_MW,
	[SKUA_CQE_FLUSH] = IBV_WC_FLUSH,
	[SKUA_CQE_ATOMIC_WRITE] = IBV_WC_ATOMIC_WRITE,
	[SKUA_CQE_RECV] = IBV_WC_RECV,
	[SKUA_CQE_RECV_WRITE_IMM] = IBV_WC_RECV_RDMA_WITH_IMM,
	[SKUA_CQE_TAG_RECV] = IBV_WC_TM_RECV,
	[SKUA_CQE_TAG_UNEXPECTED] = IBV_WC_TM_RECV,	/* without IBV_WC_TM_MATCH */
	[SKUA_CQE_TAG_NONE] = IBV_WC_TM_NO_TAG,
	[SKUA_CQE_TAG_ADD] = IBV_WC_TM_ADD,
	[SKUA_CQE_TAG_DEL] = IBV_WC_TM_DEL,
	[SKUA_CQE_TAG_SYNC] = IBV_WC_TM_SYNC,
};

static inline enum ibv_wc_opcode skua_cqe_opcode(const struct skua_cqe *cqe)
{
	return skua_wc_opcodes[cqe->opcode];
}

/* Datagrams have a header, of which a CQE tells more. */
static inline bool skua_cqe_is_datagram(const struct skua_cqe *cqe)
{
	return cqe->ip_version;
}

/* Has it immediate data, or a key? */
static inline unsigned int skua_cqe_data_flags(const struct skua_cqe *cqe)
{
	static_assert(IBV_WC_WITH_INV == SKUA_CQE_WITH_INV && IBV_WC_WITH_IMM << 1 == SKUA_CQE_WITH_IMM,
		      "flags are near those of verbs");

	return (cqe->flags & SKUA_CQE_WITH_INV) | (cqe->flags & SKUA_CQE_WITH_IMM) >> 1;
}

/*
 * A frame that was received: are the checksums of IPv4 and of TCP or UDP right? In a CQE of tag matching the same bits
 * tell of tags.
 */
static inline unsigned int skua_cqe_rare_flags(const struct skua_cqe *cqe)
{
	const uint8_t both = SKUA_CQE_L3_CSUM_OK | SKUA_CQE_L4_CSUM_OK;
	const uint8_t of_tags = SKUA_CQE_TAG_SYNC_REQ | SKUA_CQE_TAG_MATCH | SKUA_CQE_TAG_DATA;

	static_assert(IBV_WC_TM_SYNC_REQ << 1 == SKUA_CQE_TAG_SYNC_REQ && IBV_WC_TM_MATCH << 1 == SKUA_CQE_TAG_MATCH &&
		      IBV_WC_TM_DATA_VALID << 1 == SKUA_CQE_TAG_DATA, "flags are in the order of verbs");

	if (skua_cqe_is_tm(cqe))
		return (cqe->flags & of_tags) >> 1;
	return (cqe->flags & both) == both ? IBV_WC_IP_CSUM_OK : 0;
}

/* In the CQE of a tag there stands something else. */
static inline uint32_t skua_cqe_src_qp(const struct skua_cqe *cqe)
{
	return skua_cqe_is_tm(cqe) ? 0 : le32toh(cqe->src_qpn);
}

/* Immediate data as it was on the wire; or the key, in the host's order. */
static inline __be32 skua_cqe_imm_data(const struct skua_cqe *cqe)
{
	if (cqe->flags & SKUA_CQE_WITH_INV)
		return (__force __be32)le32toh(cqe->inv_key);
	return cqe->imm_data;
}

/*
 * The SL of a datagram, which is the priority in its VLAN tag. One without a tag has none, and there stands what IBTA
 * (annex 17, 17.4.5.1) asks of a completion and verbs have no field for: the kind of header that it came with, 1 for IPv6
 * and 2 for IPv4, as mlx5 has it. UCX drops what says otherwise.
 */
static inline uint8_t skua_cqe_sl(const struct skua_cqe *cqe)
{
	uint16_t vlan = le16toh(cqe->vlan);

	if (vlan != SKUA_VLAN_NONE)
		return vlan >> 13;
	return cqe->ip_version == 4 ? 2 : 1;
}

/*
 * Consume the next CQE, of which @cqe may be a copy, and free what its WQE held. Nothing but a copy
 * is there afterwards. Each returns the wr_id.
 */
static inline uint64_t skua_cqe_take_send(struct skua_cq *cq, const struct skua_cqe *cqe)
{
	struct skua_qp *qp = (void *)(uintptr_t)le64toh(cqe->qp_handle);
	const struct skua_sq_slot *slot = &qp->sq.slots[le32toh(cqe->cookie) & qp->sq.mask];
	uint64_t wr_id = slot->wr_id;

	skua_cq_consume(&cq->ring);
	skua_sq_retire(&qp->sq, slot);
	return wr_id;
}

static inline uint64_t skua_cqe_take_recv(struct skua_cq *cq, const struct skua_cqe *cqe)
{
	struct skua_qp *qp = (void *)(uintptr_t)le64toh(cqe->qp_handle);
	uint64_t wr_id = qp->rq.wr_id[le32toh(cqe->cookie) & (qp->rq.size - 1)];

	skua_cq_consume(&cq->ring);
	skua_rq_retire(&qp->rq);
	return wr_id;
}

/* The CQE has the address of the SRQ instead of that of its QP. */
static inline uint64_t skua_cqe_take_shared(struct skua_cq *cq, const struct skua_cqe *cqe)
{
	struct skua_srq *srq = (void *)(uintptr_t)le64toh(cqe->qp_handle);
	uint32_t cookie = le32toh(cqe->cookie);

	if (unlikely(skua_cqe_is_tm(cqe)))
		return skua_tm_take(cq, cqe);
	skua_cq_consume(&cq->ring);
	return skua_srq_retire(srq, cookie);
}

static inline uint64_t skua_cqe_take(struct skua_cq *cq, const struct skua_cqe *cqe)
{
	if (!(cqe->opcode & SKUA_CQE_OPCODE_RECV))
		return skua_cqe_take_send(cq, cqe);
	if (cqe->flags & SKUA_CQE_FROM_SRQ)
		return skua_cqe_take_shared(cq, cqe);
	return skua_cqe_take_recv(cq, cqe);
}

/* What a completion of a send has. The rest of a struct ibv_wc tells of receives, and stays as it is. */
static inline void skua_cqe_to_send_wc(const struct skua_cqe *cqe, struct ibv_wc *wc)
{
	wc->status = cqe->status;
	wc->opcode = skua_cqe_opcode(cqe);
	wc->vendor_err = cqe->vendor_err;
	wc->byte_len = le32toh(cqe->byte_len);
	wc->qp_num = le32toh(cqe->qpn);
	wc->wc_flags = 0;
}

static inline void skua_cqe_to_wc(const struct skua_cqe *cqe, struct ibv_wc *wc)
{
	skua_cqe_to_send_wc(cqe, wc);
	wc->imm_data = skua_cqe_imm_data(cqe);
	wc->src_qp = le32toh(cqe->src_qpn);
	wc->wc_flags = skua_cqe_data_flags(cqe);
	wc->pkey_index = 0;
	wc->slid = 0;
	wc->sl = 0;
	wc->dlid_path_bits = 0;
	if (unlikely(skua_cqe_is_datagram(cqe))) {
		wc->wc_flags |= IBV_WC_GRH;
		wc->sl = skua_cqe_sl(cqe);
	}
}

/* Acquire: what the device wrote before it died is seen by who sees that it did. */
static inline bool skua_cq_is_dead(const struct skua_cq *cq)
{
	return __atomic_load_n(&cq->info->state, __ATOMIC_ACQUIRE) == SKUA_INFO_DEAD;
}

/* 0 if there is a next CQE; ENOENT: there is none; EIO: nor will there be. */
static inline int skua_cq_next(const struct skua_cq *cq, const struct skua_cqe **cqe)
{
	if (likely(skua_cq_peek(&cq->ring, cqe)))
		return 0;
	if (likely(!skua_cq_is_dead(cq)))
		return ENOENT;
	/* The last ones may have come after the first look. */
	return skua_cq_peek(&cq->ring, cqe) ? 0 : EIO;
}

/* The same, past those that the program does not see. */
static inline int skua_cq_next_seen(struct skua_cq *cq, const struct skua_cqe **cqe)
{
	int err;

	do
		err = skua_cq_next(cq, cqe);
	while (!err && unlikely(skua_cqe_is_tm(*cqe)) && skua_tm_swallow(cq, *cqe));
	return err;
}

/*
 * From the @n-th entry on, with the CQ's lock held, which is let go. It knows SRQs, tags and checksums,
 * which take so many registers that the path without them would be longer.
 */
#define SKUA_CQE_RARE	(SKUA_CQE_FROM_SRQ | SKUA_CQE_L4_CSUM_OK)

static __attribute__((noinline)) int skua_poll_rare(struct ibv_cq *ibv_cq, int num_entries,
						    struct ibv_wc *wc, int n)
{
	struct skua_cq *cq = to_skua_cq(ibv_cq);
	const struct skua_cqe *cqe;
	int err = 0;

	while (n < num_entries) {
		err = skua_cq_next_seen(cq, &cqe);
		if (err)
			break;
		skua_cqe_to_wc(cqe, wc);
		wc->src_qp = skua_cqe_src_qp(cqe);
		wc->wc_flags |= skua_cqe_rare_flags(cqe);
		wc->wr_id = skua_cqe_take(cq, cqe);
		n++;
		wc++;
	}
	skua_unlock(&cq->lock);

	return unlikely(!n && err == EIO) ? -1 : n;
}

int skua_poll_cq(struct ibv_cq *ibv_cq, int num_entries, struct ibv_wc *wc)
{
	struct skua_cq *cq = to_skua_cq(ibv_cq);
	const struct skua_cqe *cqe;
	int err = 0;
	int n;

	skua_lock(&cq->lock);
	for (n = 0; n < num_entries; n++, wc++) {
		err = skua_cq_next(cq, &cqe);
		if (err)
			break;
		if (!(cqe->opcode & SKUA_CQE_OPCODE_RECV)) {
			skua_cqe_to_send_wc(cqe, wc);
			wc->wr_id = skua_cqe_take_send(cq, cqe);
		} else if (likely(!(cqe->flags & SKUA_CQE_RARE))) {
			skua_cqe_to_wc(cqe, wc);
			wc->wr_id = skua_cqe_take_recv(cq, cqe);
		} else {
			return skua_poll_rare(ibv_cq, num_entries, wc, n);
		}
	}
	skua_unlock(&cq->lock);

	return unlikely(!n && err == EIO) ? -1 : n;
}

/* Make the next CQE the current one. Errors as of skua_cq_next(). */
static inline int skua_cq_advance(struct skua_cq *cq)
{
	const struct skua_cqe *cqe;
	int err;

	skua_lock(&cq->lock);
	err = skua_cq_next_seen(cq, &cqe);
	if (!err) {
		cq->current = *cqe;
		cq->vcq.cq_ex.wr_id = skua_cqe_take(cq, &cq->current);
		cq->vcq.cq_ex.status = cq->current.status;
	}
	skua_unlock(&cq->lock);
	return err;
}

/* Returns with poll_lock held if it returns 0. */
static int skua_start_poll(struct ibv_cq_ex *cq_ex, struct ibv_poll_cq_attr *attr)
{
	struct skua_cq *cq = to_skua_cq_ex(cq_ex);
	int err;

	if (unlikely(attr->comp_mask))
		return EINVAL;

	skua_lock(&cq->poll_lock);
	err = skua_cq_advance(cq);
	if (err)
		skua_unlock(&cq->poll_lock);
	return err;
}

static int skua_next_poll(struct ibv_cq_ex *cq_ex)
{
	return skua_cq_advance(to_skua_cq_ex(cq_ex));
}

static void skua_end_poll(struct ibv_cq_ex *cq_ex)
{
	skua_unlock(&to_skua_cq_ex(cq_ex)->poll_lock);
}

static enum ibv_wc_opcode skua_read_opcode(struct ibv_cq_ex *cq_ex)
{
	return skua_cqe_opcode(&to_skua_cq_ex(cq_ex)->current);
}

static uint32_t skua_read_vendor_err(struct ibv_cq_ex *cq_ex)
{
	return to_skua_cq_ex(cq_ex)->current.vendor_err;
}

static unsigned int skua_read_wc_flags(struct ibv_cq_ex *cq_ex)
{
	const struct skua_cqe *cqe = &to_skua_cq_ex(cq_ex)->current;

	return skua_cqe_data_flags(cqe) | skua_cqe_rare_flags(cqe) | (skua_cqe_is_datagram(cqe) ? IBV_WC_GRH : 0);
}

static uint32_t skua_read_byte_len(struct ibv_cq_ex *cq_ex)
{
	return le32toh(to_skua_cq_ex(cq_ex)->current.byte_len);
}

static __be32 skua_read_imm_data(struct ibv_cq_ex *cq_ex)
{
	return skua_cqe_imm_data(&to_skua_cq_ex(cq_ex)->current);
}

static uint32_t skua_read_qp_num(struct ibv_cq_ex *cq_ex)
{
	return le32toh(to_skua_cq_ex(cq_ex)->current.qpn);
}

static uint64_t skua_read_completion_ts(struct ibv_cq_ex *cq_ex)
{
	return le64toh(to_skua_cq_ex(cq_ex)->current.timestamp);
}

static uint64_t skua_read_completion_wallclock_ns(struct ibv_cq_ex *cq_ex)
{
	const struct skua_cq *cq = to_skua_cq_ex(cq_ex);

	return skua_wall_clock(cq->info, le64toh(cq->current.timestamp));
}

static uint32_t skua_read_src_qp(struct ibv_cq_ex *cq_ex)
{
	return skua_cqe_src_qp(&to_skua_cq_ex(cq_ex)->current);
}

static uint8_t skua_read_sl(struct ibv_cq_ex *cq_ex)
{
	const struct skua_cqe *cqe = &to_skua_cq_ex(cq_ex)->current;

	return skua_cqe_is_datagram(cqe) ? skua_cqe_sl(cqe) : 0;
}

/* The tag of the flow that the frame came by. */
static uint32_t skua_read_flow_tag(struct ibv_cq_ex *cq_ex)
{
	return le32toh(to_skua_cq_ex(cq_ex)->current.flow_tag);
}

/* The VLAN tag that was stripped from a frame, or the one that a datagram had; 0: none. */
static uint16_t skua_read_cvlan(struct ibv_cq_ex *cq_ex)
{
	const struct skua_cqe *cqe = &to_skua_cq_ex(cq_ex)->current;
	uint16_t vlan = le16toh(cqe->vlan);

	if (skua_cqe_is_tm(cqe) || (skua_cqe_is_datagram(cqe) && vlan == SKUA_VLAN_NONE))
		return 0;
	return vlan;
}

/* Of the message that a tag has matched, told once: when it has. */
static void skua_read_tm_info(struct ibv_cq_ex *cq_ex, struct ibv_wc_tm_info *info)
{
	const struct skua_cqe *cqe = &to_skua_cq_ex(cq_ex)->current;
	bool matched = cqe->opcode == SKUA_CQE_TAG_RECV && cqe->flags & SKUA_CQE_TAG_MATCH;

	*info = (struct ibv_wc_tm_info) {
		.tag = matched ? le64toh(cqe->tag) : 0,
		.priv = matched ? be32toh(cqe->app_ctx) : 0,
	};
}

/* What InfiniBand links have. */
static uint32_t skua_read_slid(struct ibv_cq_ex *cq_ex)
{
	return 0;
}

static uint8_t skua_read_dlid_path_bits(struct ibv_cq_ex *cq_ex)
{
	return 0;
}

void skua_cq_fill_ex_ops(struct ibv_cq_ex *cq_ex, uint64_t wc_flags)
{
	cq_ex->start_poll = skua_start_poll;
	cq_ex->next_poll = skua_next_poll;
	cq_ex->end_poll = skua_end_poll;
	cq_ex->read_opcode = skua_read_opcode;
	cq_ex->read_vendor_err = skua_read_vendor_err;
	cq_ex->read_wc_flags = skua_read_wc_flags;

	if (wc_flags & IBV_WC_EX_WITH_BYTE_LEN)
		cq_ex->read_byte_len = skua_read_byte_len;
	if (wc_flags & IBV_WC_EX_WITH_IMM)
		cq_ex->read_imm_data = skua_read_imm_data;
	if (wc_flags & IBV_WC_EX_WITH_QP_NUM)
		cq_ex->read_qp_num = skua_read_qp_num;
	if (wc_flags & IBV_WC_EX_WITH_SRC_QP)
		cq_ex->read_src_qp = skua_read_src_qp;
	if (wc_flags & IBV_WC_EX_WITH_SLID)
		cq_ex->read_slid = skua_read_slid;
	if (wc_flags & IBV_WC_EX_WITH_SL)
		cq_ex->read_sl = skua_read_sl;
	if (wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
		cq_ex->read_dlid_path_bits = skua_read_dlid_path_bits;
	if (wc_flags & IBV_WC_EX_WITH_FLOW_TAG)
		cq_ex->read_flow_tag = skua_read_flow_tag;
	if (wc_flags & IBV_WC_EX_WITH_CVLAN)
		cq_ex->read_cvlan = skua_read_cvlan;
	if (wc_flags & IBV_WC_EX_WITH_TM_INFO)
		cq_ex->read_tm_info = skua_read_tm_info;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		cq_ex->read_completion_ts = skua_read_completion_ts;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		cq_ex->read_completion_wallclock_ns = skua_read_completion_wallclock_ns;
}
