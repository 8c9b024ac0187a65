/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * SENDs to an SRQ with tags, at the responder of RC.
 */
#ifndef SKUAD_ROCE_RESP_TAG_H
#define SKUAD_ROCE_RESP_TAG_H

#include "roce/message.h"

struct seglist;

/* @t begins a SEND: find out what it is. True: a tag has matched, whose buffer is its receive. It stays in the list. */
bool resp_tag_begin(struct skua_qp *qp, struct message *msg, const struct train *t);
/* What of @t is to be placed: @t, or *@part, whose payload is @rest. */
const struct train *resp_tag_part(const struct message *msg, const struct train *t, struct train *part,
				  struct seglist *rest);
/* @t, which begins the message, was accepted: the tag is the message's, or it is unexpected. */
void resp_tag_take(struct skua_qp *qp, struct message *msg, const struct train *t);
/* The message of a tag has come whole, with @t. */
void resp_tag_end(struct skua_qp *qp, struct message *msg, const struct train *t);
/* The message of a tag has failed. */
void resp_tag_fail(struct skua_qp *qp, struct message *msg, uint8_t status, uint8_t vendor_err);

#endif /* SKUAD_ROCE_RESP_TAG_H */
