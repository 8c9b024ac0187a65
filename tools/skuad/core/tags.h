/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Tag matching: the list of an SRQ with tags, and the rendezvous that its QPs carry out (manual: tag matching).
 */
#ifndef SKUAD_CORE_TAGS_H
#define SKUAD_CORE_TAGS_H

#include "core/srq.h"

#define LIMIT_TAGS	256u	/* of an SRQ: each of many held messages may be compared with all of them */
#define TAG_BLOCKS	2u	/* what the quota counts for each, in blocks of 64 bytes */
#define RNDV_WINDOW	16u	/* READs and FINs under way of a QP */

enum tag_state {
	TAG_FREE,
	TAG_LISTED,
	TAG_MATCHED,			/* by a message whose last CQE was not written */
};

struct tag {
	TAILQ_ENTRY(tag) entry;		/* of the SRQ's list, or matched: of its QP's */
	enum tag_state state;
	uint32_t handle;
	uint64_t tag, mask;
	struct sge sge;
	struct skua_tmh tmh;		/* of the message that has matched */
	struct skua_rvh rvh;		/* of a rendezvous */
	bool rndv;			/* matched, and a READ brings the payload: */
	bool asked;			/* that is in the QP's window */
};

struct tag_list {
	uint32_t size;
	struct tag_queue listed;
	struct tag *inactive;		/* the first that is not active (TAG-6); NULL: all are */
	uint32_t unexpected;		/* messages, ever */
	uint32_t handled;		/* of these, as the host has said */
	uint32_t under_way;		/* unexpected messages that have begun, and are not counted yet */
	struct tag tags[];
};

/* Those of a QP's SRQ; NULL: it has none. Each message asks. */
static inline struct tag_list *tags_of(const struct skua_qp *qp)
{
	return qp->rq.srq ? qp->rq.srq->tags : NULL;
}

/* NULL: no memory. */
struct tag_list *tags_create(uint32_t size);

/* Are the fields of a tag operation, by themselves, as they may be? */
bool tag_op_valid(uint8_t opcode, const struct skua_wqe_tag *op);
/* Carry it out; enum skua_vendor_err. What its CQE says besides is in the WQE. */
int tags_run(struct skua_qp *qp, struct send_wqe *wqe);

/* The first active tag that a message of the QP with this tag matches, or NULL. It stays in the list. */
struct tag *tags_match(struct skua_qp *qp, uint64_t tag);
/* A message of the QP gets it. */
void tag_take(struct skua_qp *qp, struct tag *tag);
/* Write a CQE of a tag that was taken. @cqe says what came of it, but not which tag it is. */
void tag_post(struct skua_qp *qp, const struct tag *tag, struct skua_cqe *cqe);
/* The same, and it was the last one. */
void tag_end(struct skua_qp *qp, struct tag *tag, struct skua_cqe *cqe);
/* The payload of a tag that was taken is to be read from where the message says. */
void tag_rendezvous(struct skua_qp *qp, struct tag *tag);

/* The next tag whose rendezvous is to begin, or NULL. */
struct tag *tags_to_ask(const struct skua_qp *qp);
/* Put its READ in the window. False: there is no room. */
bool tags_fetch(struct skua_qp *qp, struct tag *tag);
/* A WQE of our own has ended. The FIN of a READ that has brought its payload goes into the window. */
void tags_completed(struct skua_qp *qp, const struct send_wqe *wqe, uint8_t status, uint8_t vendor_err);
/* No message and no READ of the QP goes on: flush what its messages have matched, as sq_flush(). */
bool tags_flush(struct skua_qp *qp, int32_t *budget);

#endif /* SKUAD_CORE_TAGS_H */
