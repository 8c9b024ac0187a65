// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * SENDs to an SRQ with tags (manual: tag matching).
 *
 * The first packet of a message has its header, and decides. A tag that matches leaves the list when this packet is
 * accepted, not before: it may find a page that is not present, and come again.
 */
#include "base/copy.h"
#include "core/tags.h"
#include "roce/resp_tag.h"

/* What a message begins with: our copy, since the memory may be another guest's. */
struct headers {
	struct skua_tmh tmh;
	struct skua_rvh rvh;
};

static_assert(sizeof(struct headers) == 32, "no gap between the headers");

/* As many bytes of them as the packet has. */
static uint32_t read_headers(struct headers *h, const struct seglist *payload)
{
	uint32_t len = 0;

	for (unsigned int i = 0; payload && i < payload->n && len < sizeof(*h); i++) {
		uint32_t n = payload->seg[i].len, room = (uint32_t)sizeof(*h) - len;

		if (n > room)
			n = room;
		copy_from_host((uint8_t *)h + len, payload->seg[i].p, n);
		len += n;
	}
	return len;
}

/* The payload of a rendezvous does not fit in the buffer, so that the host has to carry on with it. */
static bool too_long(const struct tag *tag, const struct skua_rvh *rvh)
{
	return be32toh(rvh->len) > tag->sge.length || be32toh(rvh->len) > LIMIT_MSG;
}

static enum message_kind kind_of(const struct headers *h, uint32_t len, const struct train *t)
{
	if (len >= sizeof(h->tmh) && h->tmh.opcode == SKUA_TMH_EAGER)
		return MESSAGE_EAGER;
	if (len < sizeof(*h) || h->tmh.opcode != SKUA_TMH_RNDV)
		return MESSAGE_NO_TAG;
	return t->last && t->payload->bytes <= SKUA_RNDV_MAX_HEADER ? MESSAGE_RNDV : MESSAGE_UNEXPECTED;
}

bool resp_tag_begin(struct skua_qp *qp, struct message *msg, const struct train *t)
{
	struct headers h = { 0 };
	struct tag *tag = NULL;

	msg->tag = NULL;
	msg->kind = kind_of(&h, read_headers(&h, t->payload), t);
	if (msg->kind >= MESSAGE_EAGER)
		tag = tags_match(qp, be64toh(h.tmh.tag));
	if (!tag && msg->kind >= MESSAGE_EAGER)
		msg->kind = MESSAGE_UNEXPECTED;
	if (!tag || !message_make_room(qp, msg))
		return false;
	if (msg->kind == MESSAGE_RNDV && too_long(tag, &h.rvh))
		msg->kind = MESSAGE_RNDV_INCOMPLETE;
	tag->tmh = h.tmh;
	tag->rvh = h.rvh;
	msg->tag = tag;
	msg->have_recv = true;
	*msg->recv = (struct recv_wqe){
		.cookie = tag->handle, .num_sge = 1, .length = tag->sge.length, .sge = { tag->sge },
	};
	return true;
}

const struct train *resp_tag_part(const struct message *msg, const struct train *t, struct train *part,
				  struct seglist *rest)
{
	if (!msg->tag || !t->first || msg->kind == MESSAGE_RNDV_INCOMPLETE)
		return t;
	*part = *t;
	part->payload = NULL;
	if (msg->kind == MESSAGE_EAGER) {
		seglist_behind(rest, t->payload, sizeof(struct skua_tmh));
		part->payload = rest;
	}
	return part;
}

void resp_tag_take(struct skua_qp *qp, struct message *msg, const struct train *t)
{
	if (msg->tag) {
		tag_take(qp, msg->tag);
		if (!t->last)
			tag_post(qp, msg->tag, &(struct skua_cqe){ .flags = SKUA_CQE_TAG_MATCH });
	} else if (msg->kind == MESSAGE_UNEXPECTED && !t->last) {
		msg->list = tags_of(qp);
		msg->list->under_way++;
	}
}

void resp_tag_end(struct skua_qp *qp, struct message *msg, const struct train *t)
{
	struct tag *tag = msg->tag;
	struct skua_cqe cqe;

	message_complete(msg, t, &cqe);
	msg->tag = NULL;
	if (t->first)
		cqe.flags |= SKUA_CQE_TAG_MATCH;
	if (msg->kind == MESSAGE_RNDV) {
		tag_rendezvous(qp, tag);
		tag_post(qp, tag, &cqe);
		return;
	}
	if (msg->kind == MESSAGE_RNDV_INCOMPLETE)
		cqe.status = SKUA_CQE_TM_RNDV_INCOMPLETE;
	cqe.flags |= SKUA_CQE_TAG_DATA;
	tag_end(qp, tag, &cqe);
}

void resp_tag_fail(struct skua_qp *qp, struct message *msg, uint8_t status, uint8_t vendor_err)
{
	struct skua_cqe cqe = { .status = status, .vendor_err = vendor_err };

	if (msg->tag->state == TAG_LISTED) {
		tag_take(qp, msg->tag);
		cqe.flags = SKUA_CQE_TAG_MATCH;
	}
	tag_end(qp, msg->tag, &cqe);
	msg->tag = NULL;
	msg->have_recv = false;
}
