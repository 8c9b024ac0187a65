// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Send queues: from the host's ring to the window of WQEs under way, and back as completions
 * (manual: WQEs, doorbell records).
 *
 * A WQE is copied once, to a ring of our own, in one piece; it is checked and used there until it
 * completes. That ring has room for all blocks of a full window: the host's of a smaller queue are as
 * many, since blocks are not published again before the WQE in them has completed.
 */
#include <stdlib.h>
#include <string.h>

#include "base/copy.h"
#include "core/mw.h"
#include "core/odp.h"
#include "core/qp.h"
#include "core/tags.h"
#include "packet/tso.h"

#define WINDOW		256u		/* WQEs without completion, at most */
#define SHADOW_MAX	(WINDOW * SKUA_WQE_MAX_BLOCKS)	/* blocks that a full window can hold */
#define WQE_TAIL	(SKUA_WQE_MAX_BLOCKS * SKUA_WQE_BLOCK)

#define RC_ONLY	(1u << SKUA_QPT_RC)
#define XRC	(1u << SKUA_QPT_XRC_INI)
#define RC	(RC_ONLY | XRC)
#define UC	(1u << SKUA_QPT_UC)
#define UD_ONLY	(1u << SKUA_QPT_UD)
#define UD	(UD_ONLY | 1u << SKUA_QPT_GSI)
#define ETH	(1u << SKUA_QPT_ETH)

#define INVALIDATE	(1ull << SKUA_F_INVALIDATE)
#define ATOMIC		(1ull << SKUA_F_ATOMIC)
#define MASKED_ATOMIC	(1ull << SKUA_F_MASKED_ATOMIC)
#define MW		(1ull << SKUA_F_MW)
#define FAST_REG	(1ull << SKUA_F_FAST_REG)
#define FLUSH		(1ull << SKUA_F_FLUSH)
#define ATOMIC_WRITE	(1ull << SKUA_F_ATOMIC_WRITE)
#define TSO		(1ull << SKUA_F_TSO)
#define TAG_MATCHING	(1ull << SKUA_F_TAG_MATCHING)

struct wqe_format {
	uint16_t types;		/* of QPs that know it */
	uint64_t features;	/* that it needs besides */
	bool rdma;		/* has struct skua_wqe_rdma */
	bool atomic;		/* has struct skua_wqe_atomic */
	bool masked;		/* has struct skua_wqe_masked_atomic instead */
	bool compare;		/* uses compare, and its mask */
	bool reg;		/* has struct skua_wqe_reg_mr */
	bool bind;		/* has struct skua_wqe_bind_mw */
	bool tso;		/* has struct skua_wqe_tso, and headers */
	bool tag;		/* has struct skua_wqe_tag */
	bool flush;		/* uses length and flush for what it asks of the peer */
	bool word;		/* its payload is one word, too */
	bool local;		/* sends nothing */
	bool payload;		/* may have SGEs or, where nothing comes back, inline data */
	bool response;		/* its SGEs are written by the peer's response */
	bool imm;		/* uses imm_data or inv_key */
	uint8_t cqe;		/* enum skua_cqe_opcode */
};

static const struct wqe_format formats[] = {
	[SKUA_WQE_NOP]	     = { RC | UC | UD | ETH, .local = true, .cqe = SKUA_CQE_NOP },
	[SKUA_WQE_SEND]	     = { RC | UC | UD | ETH, .payload = true, .cqe = SKUA_CQE_SEND },
	[SKUA_WQE_SEND_IMM]  = { RC | UC | UD, .payload = true, .imm = true, .cqe = SKUA_CQE_SEND },
	[SKUA_WQE_SEND_INV]  = { RC, INVALIDATE, .payload = true, .imm = true, .cqe = SKUA_CQE_SEND },
	[SKUA_WQE_WRITE]     = { RC | UC, .payload = true, .rdma = true, .cqe = SKUA_CQE_WRITE },
	[SKUA_WQE_WRITE_IMM] = { RC | UC, .payload = true, .rdma = true, .imm = true,
				 .cqe = SKUA_CQE_WRITE },
	[SKUA_WQE_READ]	     = { RC, .payload = true, .rdma = true, .response = true,
				 .cqe = SKUA_CQE_READ },
	[SKUA_WQE_LOCAL_INV] = { RC | UC, INVALIDATE, .local = true, .imm = true, .cqe = SKUA_CQE_LOCAL_INV },
	[SKUA_WQE_CMP_SWAP]  = { RC, ATOMIC, .payload = true, .atomic = true, .compare = true, .response = true,
				 .cqe = SKUA_CQE_CMP_SWAP },
	[SKUA_WQE_FETCH_ADD] = { RC, ATOMIC, .payload = true, .atomic = true, .response = true,
				 .cqe = SKUA_CQE_FETCH_ADD },
	[SKUA_WQE_BIND_MW]   = { RC | UC, MW, .local = true, .bind = true, .cqe = SKUA_CQE_BIND_MW },
	[SKUA_WQE_REG_MR]    = { RC | UC, FAST_REG, .local = true, .reg = true, .cqe = SKUA_CQE_REG_MR },
	[SKUA_WQE_FLUSH]     = { RC_ONLY, FLUSH, .rdma = true, .flush = true, .cqe = SKUA_CQE_FLUSH },
	[SKUA_WQE_ATOMIC_WRITE] = { RC_ONLY, ATOMIC_WRITE, .payload = true, .rdma = true, .word = true,
				    .cqe = SKUA_CQE_ATOMIC_WRITE },
	[SKUA_WQE_TSO]	     = { ETH, TSO, .payload = true, .tso = true, .cqe = SKUA_CQE_TSO },
	[SKUA_WQE_TAG_ADD]   = { UD_ONLY, TAG_MATCHING, .local = true, .tag = true, .cqe = SKUA_CQE_TAG_ADD },
	[SKUA_WQE_TAG_DEL]   = { UD_ONLY, TAG_MATCHING, .local = true, .tag = true, .cqe = SKUA_CQE_TAG_DEL },
	[SKUA_WQE_TAG_SYNC]  = { UD_ONLY, TAG_MATCHING, .local = true, .tag = true, .cqe = SKUA_CQE_TAG_SYNC },
	[SKUA_WQE_MASKED_CMP_SWAP] = { RC_ONLY, MASKED_ATOMIC, .payload = true, .atomic = true, .masked = true,
				       .compare = true, .response = true, .cqe = SKUA_CQE_MASKED_CMP_SWAP },
	[SKUA_WQE_MASKED_FETCH_ADD] = { RC_ONLY, MASKED_ATOMIC, .payload = true, .atomic = true, .masked = true,
					.response = true, .cqe = SKUA_CQE_MASKED_FETCH_ADD },
};

static const struct wqe_format *format_of(uint8_t opcode)
{
	static const struct wqe_format unknown = { .cqe = SKUA_CQE_NOP };

	return opcode < sizeof(formats) / sizeof(formats[0]) && formats[opcode].types ? &formats[opcode] : &unknown;
}

void sq_reset(struct sq *sq)
{
	sq->dead = false;
	sq->ci = 0;
	sq->done = 0;
	sq->shadow_at = 0;
	sq->una = 0;
	sq->nxt = 0;
	sq->nxt_pkt = 0;
	sq->tail = 0;
	sq->psn = 0;
	sq->busy = false;
	sq->waits = false;
}

static struct skua_dbr *sq_record(struct skua_qp *qp)
{
	return mem_ref_at(&qp->dev->mem, &qp->sq.dbr, sizeof(struct skua_dbr), true);
}

static void sq_dead(struct skua_qp *qp)
{
	qp->sq.dead = true;
	qp_fatal(qp);
}

static bool copy_blocks(struct skua_qp *qp, uint32_t index, uint32_t n, uint8_t *dst)
{
	for (uint32_t i = 0; i < n; i++) {
		uint64_t offset = (uint64_t)((index + i) & (qp->sq.size - 1)) * SKUA_WQE_BLOCK;
		const uint8_t *p = pages_at(&qp->sq.ring, &qp->dev->mem, offset, SKUA_WQE_BLOCK,
					    false);

		if (!p)
			return false;
		copy_from_host(dst + (size_t)i * SKUA_WQE_BLOCK, p, SKUA_WQE_BLOCK);
	}
	return true;
}

static void fault(struct send_wqe *wqe, uint8_t status, uint8_t vendor_err)
{
	wqe->status = status;
	wqe->vendor_err = vendor_err;
}

/* SGEs to host order in place; the sum of their lengths. */
static uint64_t read_sges(uint8_t *p, unsigned int n)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < n; i++) {
		struct skua_sge in;
		struct sge out;

		memcpy(&in, p + i * sizeof(in), sizeof(in));
		out.addr = le64toh(in.addr);
		out.length = le32toh(in.length);
		out.lkey = le32toh(in.lkey);
		memcpy(p + i * sizeof(in), &out, sizeof(out));
		sum += out.length;
	}
	return sum;
}

/* Flags, fields and lengths that do not go together (manual: WQE-5, WQE-6). */
static bool bad_format(const struct skua_qp *qp, const struct wqe_format *f,
		       const struct skua_wqe_ctrl *c, uint32_t head)
{
	uint32_t room = c->nblocks * (uint32_t)SKUA_WQE_BLOCK - head;

	if (c->flags & SKUA_WQE_L4_CSUM &&
	    (qp->type != SKUA_QPT_ETH || !f->payload || f->tso || !dev_has(qp->dev, SKUA_F_ETH_CSUM)))
		return true;
	if (c->flags & SKUA_WQE_IP_CSUM &&
	    (qp->type != SKUA_QPT_ETH || !f->payload || c->flags & SKUA_WQE_L4_CSUM ||
	     !dev_has(qp->dev, SKUA_F_IP_CSUM)))
		return true;
	if (c->flags & ~SKUA_WQE_FLAGS ||
	    (c->imm_data && !f->imm && !(c->flags & SKUA_WQE_L4_CSUM)))
		return true;
	if (qp->type == SKUA_QPT_ETH && c->flags & (SKUA_WQE_SOLICITED | SKUA_WQE_FENCE))
		return true;
	if (c->flags & SKUA_WQE_INLINE)
		return !f->payload || f->response || f->tso || c->num_sge ||
		       le32toh(c->length) > room;
	return (c->length && !f->flush) || (c->num_sge && !f->payload) ||
	       c->num_sge * sizeof(struct skua_sge) > room;
}

/* The segment of a WQE that sends nothing, if it has one: at @p, in the first block. False: it is no good. */
static bool read_local(const struct skua_qp *qp, struct send_wqe *wqe, const struct wqe_format *f, const uint8_t *p)
{
	if (f->reg) {
		wqe->reg = (const struct skua_wqe_reg_mr *)(const void *)p;
		return mr_reg_valid(qp->dev, wqe->reg);
	}
	if (f->bind) {
		wqe->bind = (const struct skua_wqe_bind_mw *)(const void *)p;
		return mw_bind_valid(qp->dev, wqe->bind);
	}
	if (f->tag) {
		wqe->tag_op = (const struct skua_wqe_tag *)(const void *)p;
		return tag_op_valid(wqe->opcode, wqe->tag_op);
	}
	return true;
}

/* The segment that says to whom the WQE goes, if the QP's type has one, at @p. False: it is no good. */
static bool parse_peer(const struct skua_qp *qp, struct send_wqe *wqe, const uint8_t *p, uint32_t *head)
{
	static const struct skua_wqe_xrc zero;
	struct skua_wqe_xrc xrc;

	if (UD >> qp->type & 1) {
		wqe->ud = (const struct skua_wqe_ud *)(const void *)p;
		*head += sizeof(*wqe->ud);
		return av_valid(&wqe->ud->av) && !wqe->ud->rsvd;
	}
	memcpy(&xrc, p, sizeof(xrc));
	*head += sizeof(xrc);
	wqe->srqn = le32toh(xrc.srqn);
	return wqe->srqn <= NUMTAB_MASK && !memcmp(xrc.rsvd, zero.rsvd, sizeof(zero.rsvd));
}

/* The segment of a TSO and the headers behind it, at @p; @room bytes are left of the WQE. False: they are no good. */
static bool parse_tso(struct send_wqe *wqe, const uint8_t *p, uint32_t room, uint32_t *head)
{
	static const struct skua_wqe_tso zero;
	struct skua_wqe_tso tso;
	uint32_t padded;

	memcpy(&tso, p, sizeof(tso));
	wqe->mss = le16toh(tso.mss);
	wqe->hdr_len = le16toh(tso.hdr_len);
	wqe->header = p + sizeof(tso);
	padded = (wqe->hdr_len + SKUA_WQE_SEG - 1u) / SKUA_WQE_SEG * SKUA_WQE_SEG;
	*head += (uint32_t)sizeof(tso) + padded;
	return wqe->mss && !memcmp(tso.rsvd, zero.rsvd, sizeof(zero.rsvd)) && sizeof(tso) + padded <= room &&
	       tso_header_valid(wqe->header, wqe->hdr_len);
}

/* The rest of a WQE whose control segment is @c and whose blocks stand at @p. */
static void parse(struct skua_qp *qp, struct send_wqe *wqe, const struct skua_wqe_ctrl *c,
		  uint8_t *p)
{
	const struct wqe_format *f = format_of(c->opcode);
	struct skua_wqe_masked_atomic r = { 0 };
	uint32_t head = sizeof(*c);
	uint64_t length;

	if (!(f->types >> qp->type & 1) || f->features & ~qp->dev->features || (f->tag && !tags_of(qp))) {
		fault(wqe, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_OPCODE);
		return;
	}
	if ((UD | XRC) >> qp->type & 1 && f->payload && !parse_peer(qp, wqe, p + head, &head)) {
		fault(wqe, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_FORMAT);
		return;
	}
	/* The segments begin alike. */
	if (f->rdma || f->atomic) {
		uint32_t len = f->masked ? sizeof(r) :
			       f->atomic ? sizeof(struct skua_wqe_atomic) : sizeof(struct skua_wqe_rdma);

		memcpy(&r, p + head, len);
		if (f->masked)
			wqe->masked = (const struct skua_wqe_masked_atomic *)(const void *)(p + head);
		head += len;
	} else if (f->local && !read_local(qp, wqe, f, p + head)) {
		fault(wqe, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_FORMAT);
		return;
	}
	if (f->tso && !parse_tso(wqe, p + head, c->nblocks * (uint32_t)SKUA_WQE_BLOCK - head, &head)) {
		fault(wqe, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_FORMAT);
		return;
	}
	if (!(f->flush ? flush_valid(le32toh(r.rsvd)) : !r.rsvd) ||
	    ((r.compare || r.compare_mask) && !f->compare) || bad_format(qp, f, c, head)) {
		fault(wqe, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_FORMAT);
		return;
	}
	length = c->flags & SKUA_WQE_INLINE ? le32toh(c->length) : 0;
	if (c->num_sge > LIMIT_SGE || length > LIMIT_INLINE) {
		fault(wqe, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_SGE_COUNT);
		return;
	}
	wqe->local = f->local;
	wqe->raddr = le64toh(r.raddr);
	wqe->rkey = le32toh(r.rkey);
	wqe->swap_add = le64toh(r.swap_add);
	wqe->compare = le64toh(r.compare);
	wqe->data = p + head;
	length += f->flush ? le32toh(c->length) : read_sges(p + head, c->num_sge);
	if (length > (f->tso ? LIMIT_TSO : LIMIT_MSG) || ((f->atomic || f->word) && length != 8))
		fault(wqe, SKUA_CQE_LOC_LEN_ERR, SKUA_VENDOR_ERR_MSG_TOO_LONG);
	if (f->flush) {
		wqe->flush = (uint8_t)le32toh(r.rsvd);
		wqe->flush_length = (uint32_t)length;
	} else {
		wqe->length = (uint32_t)length;
	}
	if (c->opcode == SKUA_WQE_SEND_INV || c->opcode == SKUA_WQE_LOCAL_INV)
		wqe->imm = le32toh(c->inv_key);
	else
		wqe->imm = c->imm_data;
	if (c->flags & SKUA_WQE_L4_CSUM) {
		wqe->csum_start = le16toh(c->csum_start);
		wqe->csum_offset = le16toh(c->csum_offset);
	}
}

/*
 * Blocks published and not fetched; 0 when the queue is empty, or is no good any more. Blocks
 * whose WQEs have not completed are the device's: publishing over them is an overrun, or a host
 * could change in the shadow what has been checked there.
 */
static uint32_t sq_available(struct skua_qp *qp)
{
	struct skua_dbr *dbr;
	uint32_t pi;

	if (!qp->sq.size || qp->sq.dead)
		return 0;
	dbr = sq_record(qp);
	if (!dbr) {
		sq_dead(qp);
		return 0;
	}
	pi = host_load32(&dbr->pi);
	if (pi - qp->sq.done > qp->sq.size || pi - qp->sq.ci > qp->sq.size) {
		sq_dead(qp);
		return 0;
	}
	return pi - qp->sq.ci;
}

uint32_t sq_published(struct skua_qp *qp)
{
	return qp->sq.ci + sq_available(qp);
}

/* Many QPs are connected and never send: what the window takes is made with the first WQE. */
static bool sq_open_window(struct sq *sq)
{
	sq->shadow = malloc((size_t)sq->shadow_size * SKUA_WQE_BLOCK + WQE_TAIL);
	sq->wqes = calloc((size_t)sq->wqe_mask + 1, sizeof(*sq->wqes));
	if (sq->shadow && sq->wqes)
		return true;
	free(sq->shadow);
	free(sq->wqes);
	sq->shadow = NULL;
	sq->wqes = NULL;
	return false;
}

bool sq_charge(struct skua_dev *dev, struct sq *sq, uint32_t blocks)
{
	uint32_t wqes = blocks < WINDOW ? blocks : WINDOW;

	if (blocks > SHADOW_MAX)
		blocks = SHADOW_MAX;
	if (!pages_charge(dev, blocks))
		return false;
	sq->shadow_size = blocks;
	sq->wqe_mask = wqes - 1;
	return true;
}

bool sq_fetch(struct skua_qp *qp)
{
	struct sq *sq = &qp->sq;
	struct tag *tag = NULL;
	struct skua_wqe_ctrl c;
	struct send_wqe *wqe;
	uint32_t n = 0;
	uint8_t *p;

	if (sq->tail - sq->una > sq->wqe_mask)
		return false;
	if (sq->size)
		n = sq_available(qp);
	else
		tag = tags_to_ask(qp);
	if (!n && !tag)
		return false;
	if (!sq->wqes && !sq_open_window(sq)) {
		sq_dead(qp);
		return false;
	}
	if (tag)
		return tags_fetch(qp, tag);
	p = sq->shadow + (size_t)(sq->shadow_at & (sq->shadow_size - 1)) * SKUA_WQE_BLOCK;
	if (!copy_blocks(qp, sq->ci, 1, p)) {
		sq_dead(qp);
		return false;
	}
	memcpy(&c, p, sizeof(c));
	wqe = sq_wqe(qp, sq->tail);
	*wqe = send_wqe_blank;
	wqe->opcode = c.opcode;
	wqe->flags = c.flags;
	wqe->num_sge = c.num_sge;
	wqe->cookie = le32toh(c.cookie);
	if (c.nblocks < 1 || c.nblocks > SKUA_WQE_MAX_BLOCKS || c.nblocks > n) {
		/* Where the next one begins is not known: this one is all that was published. */
		sq->ci += n;
		sq->shadow_at++;
		fault(wqe, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_FORMAT);
	} else {
		if (!copy_blocks(qp, sq->ci + 1, c.nblocks - 1u, p + SKUA_WQE_BLOCK)) {
			sq_dead(qp);
			return false;
		}
		sq->ci += c.nblocks;
		sq->shadow_at += c.nblocks;
		parse(qp, wqe, &c, p);
	}
	wqe->sq_ci = sq->ci;
	sq->tail++;
	return true;
}

void sq_complete(struct skua_qp *qp, const struct send_wqe *wqe, uint8_t status,
		 uint8_t vendor_err)
{
	const struct wqe_format *f = format_of(wqe->opcode);
	struct skua_cqe cqe = {
		.qp_handle = htole64(qp->handle),
		.cookie = htole32(wqe->cookie),
		.sq_ci = htole32(wqe->sq_ci),
		.qpn = htole32(qp->number),
		.opcode = f->cqe,
		.status = status,
		.vendor_err = vendor_err,
	};

	if (!qp->sq.size) {
		tags_completed(qp, wqe, status, vendor_err);
		return;
	}
	qp->sq.done = wqe->sq_ci;
	if (f->tag && wqe->tag_gone && status == SKUA_CQE_SUCCESS)
		cqe.status = SKUA_CQE_TM_ERR;
	if (cqe.status == SKUA_CQE_SUCCESS && !(wqe->flags & SKUA_WQE_SIGNALED))
		return;
	if (f->tag && tags_of(qp)) {
		cqe.flags = wqe->tag_flags;
		qp_fill_recv(qp, &cqe);
	}
	if (wqe->opcode == SKUA_WQE_READ)
		cqe.byte_len = htole32(wqe->length);
	if (!cq_post(qp->dev, qp->scq, &cqe))
		qp_fatal(qp);
}

/* The requests of a QP without an SQ are for buffers of its SRQ. */
static struct mem_access own_memory(const struct skua_qp *qp, uint32_t need)
{
	if (!qp->sq.size)
		return (struct mem_access){ qp->rq.pd, qp->rq.privileged, need, NULL };
	return (struct mem_access){ qp->pd, qp->privileged, need, NULL };
}

int sq_payload(struct skua_qp *qp, const struct send_wqe *wqe, uint32_t offset, uint32_t len,
	       uint32_t need, struct seglist *segs)
{
	struct mem_access access = own_memory(qp, need);

	if (!len)
		return SKUA_VENDOR_ERR_NONE;	/* no run of no bytes */
	if (wqe->flags & SKUA_WQE_INLINE) {
		segs->seg[segs->n++] = (struct seg){ (uint8_t *)(uintptr_t)wqe->data + offset, len };
		segs->bytes += len;
		return SKUA_VENDOR_ERR_NONE;
	}
	for (unsigned int i = 0; i < wqe->num_sge && len; i++) {
		struct sge sge;
		uint32_t n;
		int err;

		memcpy(&sge, wqe->data + i * sizeof(sge), sizeof(sge));
		if (offset >= sge.length) {
			offset -= sge.length;
			continue;
		}
		n = sge.length - offset < len ? sge.length - offset : len;
		err = mr_segs(qp->dev, &access, sge.lkey, sge.addr + offset, n, segs);
		if (err == SKUA_VENDOR_ERR_NOT_PRESENT)
			odp_miss_up_to(qp->dev, sge.addr + sge.length);
		if (err)
			return err;
		len -= n;
		offset = 0;
	}
	return SKUA_VENDOR_ERR_NONE;
}

int sq_check(struct skua_qp *qp, const struct send_wqe *wqe, uint32_t need)
{
	struct mem_access access = own_memory(qp, need);
	uint32_t looks = LOOKS_AHEAD;
	int err = SKUA_VENDOR_ERR_NONE;

	for (unsigned int i = 0; i < wqe->num_sge && !err; i++) {
		struct sge sge;

		memcpy(&sge, wqe->data + i * sizeof(sge), sizeof(sge));
		if (sge.length)
			err = mr_check_present(qp->dev, &access, sge.lkey, sge.addr, sge.length, &looks);
	}
	qp->dev->engine->turn -= (int32_t)(LOOKS_AHEAD - looks) * PAGE_COST;
	return err;
}

bool sq_flush(struct skua_qp *qp, int32_t *budget)
{
	bool any = false;

	while (*budget > 0 && sq_fetch(qp)) {
		*budget -= MESSAGE_COST;
		sq_complete(qp, sq_wqe(qp, qp->sq.una), SKUA_CQE_WR_FLUSH_ERR,
			    SKUA_VENDOR_ERR_NONE);
		qp->sq.una++;
		any = true;
	}
	qp->sq.nxt = qp->sq.una;
	return any;
}

bool sq_ask_doorbell(struct skua_qp *qp)
{
	struct skua_dbr *dbr;

	if (!qp->sq.size || qp->sq.dead)
		return true;
	dbr = sq_record(qp);
	if (!dbr) {
		sq_dead(qp);
		return false;	/* it is to be flushed */
	}
	if (dev_has(qp->dev, SKUA_F_EVENT_IDX))
		host_store32(&dbr->event, qp->sq.ci);
	host_full_barrier();
	if (host_load32(&dbr->pi) == qp->sq.ci)
		return true;
	if (qp->state != SKUA_QPS_RTS)
		return qp->state < SKUA_QPS_RTS || qp->state == SKUA_QPS_SQD;
	/* An answer or a timer brings it back: until then it can take no more, or a WQE waits already. */
	return qp->sq.tail - qp->sq.una > qp->sq.wqe_mask || qp->sq.nxt != qp->sq.tail || qp->sq.waits;
}
