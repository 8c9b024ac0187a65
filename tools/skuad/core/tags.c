// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tag matching (manual: tag matching).
 *
 * The list of an SRQ has its tags in the order in which they were added. Those that are not active are at its end. A
 * message that matches a tag is the QP's affair from then on, and the tag goes to a list of this QP.
 *
 * A rendezvous is a READ of the QP, and a SEND when that has completed. Such a QP has no SQ, so they go into its window from
 * here, and the requester treats them as it does all others.
 */
#include <stdlib.h>
#include <string.h>

#include "core/tags.h"
#include "core/transport.h"

#define TAG_COST	8	/* a comparison, of a turn */

static_assert(sizeof(struct tag) <= 64 * TAG_BLOCKS, "memory of a tag");

struct tag_list *tags_create(uint32_t size)
{
	struct tag_list *list = calloc(1, sizeof(*list) + size * sizeof(list->tags[0]));

	if (list) {
		list->size = size;
		TAILQ_INIT(&list->listed);
	}
	return list;
}

bool tag_op_valid(uint8_t opcode, const struct skua_wqe_tag *op)
{
	struct skua_wqe_tag may = { .handle = op->handle, .flags = op->flags & htole32(SKUA_TAG_COUNT) };

	if (op->flags)
		may.unexpected = op->unexpected;
	if (opcode == SKUA_WQE_TAG_ADD) {
		may.tag = op->tag;
		may.mask = op->mask;
		may.sge = op->sge;
	} else if (opcode == SKUA_WQE_TAG_SYNC) {
		may.handle = 0;
	}
	return !memcmp(op, &may, sizeof(may));
}

static bool in_step(const struct tag_list *list)
{
	return list->handled == list->unexpected && !list->under_way;
}

static int add(struct tag_list *list, const struct skua_wqe_tag *op)
{
	uint32_t handle = le32toh(op->handle), number = handle & SKUA_TAG_NUMBER;
	struct tag *tag = &list->tags[number];

	if (number >= list->size)
		return SKUA_VENDOR_ERR_BOUNDS;
	if (tag->state != TAG_FREE)
		return SKUA_VENDOR_ERR_KEY_STATE;
	*tag = (struct tag){
		.state = TAG_LISTED, .handle = handle, .tag = le64toh(op->tag), .mask = le64toh(op->mask),
		.sge = { le64toh(op->sge.addr), le32toh(op->sge.length), le32toh(op->sge.lkey) },
	};
	TAILQ_INSERT_TAIL(&list->listed, tag, entry);
	if (!in_step(list) && !list->inactive)
		list->inactive = tag;
	return SKUA_VENDOR_ERR_NONE;
}

/* False: it is not in the list any more. */
static bool del(struct tag_list *list, uint32_t handle)
{
	uint32_t number = handle & SKUA_TAG_NUMBER;
	struct tag *tag = &list->tags[number];

	if (number >= list->size || tag->state != TAG_LISTED || tag->handle != handle)
		return false;
	if (tag == list->inactive)
		list->inactive = TAILQ_NEXT(tag, entry);
	TAILQ_REMOVE(&list->listed, tag, entry);
	tag->state = TAG_FREE;
	return true;
}

int tags_run(struct skua_qp *qp, struct send_wqe *wqe)
{
	struct tag_list *list = tags_of(qp);
	int err = SKUA_VENDOR_ERR_NONE;

	if (wqe->tag_op->flags) {
		list->handled = le32toh(wqe->tag_op->unexpected);
		if (in_step(list))
			list->inactive = NULL;
	}
	if (wqe->opcode == SKUA_WQE_TAG_ADD)
		err = add(list, wqe->tag_op);
	else if (wqe->opcode == SKUA_WQE_TAG_DEL)
		wqe->tag_gone = !del(list, le32toh(wqe->tag_op->handle));
	wqe->tag_flags = in_step(list) ? 0 : SKUA_CQE_TAG_SYNC_REQ;
	return err;
}

struct tag *tags_match(struct skua_qp *qp, uint64_t tag)
{
	struct tag_list *list = tags_of(qp);
	struct tag *at;

	TAILQ_FOREACH(at, &list->listed, entry) {
		if (at == list->inactive)
			return NULL;
		qp->dev->engine->turn -= TAG_COST;
		if (!((tag ^ at->tag) & at->mask))
			return at;
	}
	return NULL;
}

void tag_take(struct skua_qp *qp, struct tag *tag)
{
	TAILQ_REMOVE(&tags_of(qp)->listed, tag, entry);
	TAILQ_INSERT_TAIL(&qp->matched, tag, entry);
	tag->state = TAG_MATCHED;
}

void tag_post(struct skua_qp *qp, const struct tag *tag, struct skua_cqe *cqe)
{
	cqe->opcode = SKUA_CQE_TAG_RECV;
	cqe->cookie = htole32(tag->handle);
	cqe->tag = htole64(be64toh(tag->tmh.tag));
	cqe->app_ctx = tag->tmh.app_ctx;
	qp_complete_recv(qp, cqe);
}

void tag_end(struct skua_qp *qp, struct tag *tag, struct skua_cqe *cqe)
{
	TAILQ_REMOVE(&qp->matched, tag, entry);
	tag->state = TAG_FREE;
	tag_post(qp, tag, cqe);
}

void tag_rendezvous(struct skua_qp *qp, struct tag *tag)
{
	tag->rndv = true;
	qp_activate(qp);
}

/* Those that were asked for stand in front, and a message that is under way behind. */
struct tag *tags_to_ask(const struct skua_qp *qp)
{
	struct tag *tag;

	TAILQ_FOREACH(tag, &qp->matched, entry)
		if (!tag->asked)
			return tag->rndv ? tag : NULL;
	return NULL;
}

/* A WQE of our own at the end of the window, and its data in the place of one of the host's. */
static struct send_wqe *new_wqe(struct skua_qp *qp, uint8_t opcode, const void *data, size_t len)
{
	struct sq *sq = &qp->sq;
	struct send_wqe *wqe = sq_wqe(qp, sq->tail);
	uint8_t *block = sq->shadow + (size_t)(sq->tail & sq->wqe_mask) * SKUA_WQE_BLOCK;

	memcpy(block, data, len);
	*wqe = send_wqe_blank;
	wqe->opcode = opcode;
	wqe->data = block;
	sq->tail++;
	return wqe;
}

bool tags_fetch(struct skua_qp *qp, struct tag *tag)
{
	struct sge sge = { tag->sge.addr, be32toh(tag->rvh.len), tag->sge.lkey };
	struct send_wqe *wqe;

	/* The last place is for the FIN of the oldest READ. */
	if (qp->sq.tail - qp->sq.una >= qp->sq.wqe_mask)
		return false;
	wqe = new_wqe(qp, SKUA_WQE_READ, &sge, sizeof(sge));
	wqe->length = sge.length;
	wqe->num_sge = 1;
	wqe->raddr = be64toh(tag->rvh.va);
	wqe->rkey = be32toh(tag->rvh.rkey);
	wqe->rndv = tag;
	tag->asked = true;
	return true;
}

/* The READ has brought the payload: the peer may have its memory back. */
static void send_fin(struct skua_qp *qp, const struct tag *tag)
{
	struct {
		struct skua_tmh tmh;
		struct skua_rvh rvh;
	} fin = { tag->tmh, tag->rvh };
	struct send_wqe *wqe;

	fin.tmh.opcode = SKUA_TMH_FIN;
	wqe = new_wqe(qp, SKUA_WQE_SEND, &fin, sizeof(fin));
	wqe->length = sizeof(fin);
	wqe->flags = SKUA_WQE_INLINE;
	qp_activate(qp);
}

void tags_completed(struct skua_qp *qp, const struct send_wqe *wqe, uint8_t status, uint8_t vendor_err)
{
	struct skua_cqe cqe = {
		.status = status, .vendor_err = vendor_err, .byte_len = htole32(wqe->length),
		.flags = status ? 0 : SKUA_CQE_TAG_DATA,
	};

	if (!wqe->rndv) {
		if (status && status != SKUA_CQE_WR_FLUSH_ERR)
			qp_fatal(qp);	/* a FIN has no CQE that could tell */
		return;
	}
	if (!status)
		send_fin(qp, wqe->rndv);
	tag_end(qp, wqe->rndv, &cqe);
}

bool tags_flush(struct skua_qp *qp, int32_t *budget)
{
	bool any = false;
	struct tag *tag;

	while (*budget > 0 && (tag = TAILQ_FIRST(&qp->matched))) {
		*budget -= MESSAGE_COST;
		tag_end(qp, tag, &(struct skua_cqe){ .status = SKUA_CQE_WR_FLUSH_ERR });
		any = true;
	}
	return any;
}
