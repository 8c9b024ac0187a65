/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The list of tags of an SRQ, as the host knows it. The device has the list itself; here are the wr_ids of its
 * entries, and a QP of type UD, which no program knows, whose SQ brings operations to the device (TAG-2).
 *
 * Numbers and operations are changed under the SRQ's lock: by who posts operations, and by who polls the SRQ's CQ.
 * Operations and tags complete there, and into no other.
 */
#ifndef SKUA_TM_H
#define SKUA_TM_H

#include "skua.h"

/* Numbers of tags are the low half of a handle, so that there are as many at most. */
#define SKUA_TM_MAX_TAGS	(SKUA_TAG_NUMBER + 1u)

/* A number of a tag. What a program may still say of the tag before has another generation in its handle. */
struct skua_tm_tag {
	uint64_t wr_id;			/* of its receive */
	uint32_t next;			/* free: the next that is */
	uint16_t generation;
	bool used;			/* its last CQE was not polled */
};

/* An operation, by its cookie. */
struct skua_tm_op {
	uint32_t handle;
	bool asked;			/* the program asked for its completion */
};

struct skua_tm {
	struct skua_qp *qp;
	bool stopped;			/* the QP is destroyed */
	struct skua_tm_op *ops;
	uint32_t silent;		/* operations since the last one that has a CQE for certain */
	uint32_t lost;			/* unexpected messages whose QPs went before they were polled */
	uint32_t users;			/* QPs of the program that receive from the SRQ */
	uint32_t max_tags;
	uint32_t free;			/* a number that is, or max_tags */
	struct skua_tm_tag *tags;
};

/* A CQE of this chapter: of a tag, of an operation, or of a message that took an entry of such an SRQ. */
static inline bool skua_cqe_is_tm(const struct skua_cqe *cqe)
{
	return cqe->opcode > SKUA_CQE_RECV_WRITE_IMM;
}

static inline bool skua_cqe_is_tm_op(const struct skua_cqe *cqe)
{
	return cqe->opcode >= SKUA_CQE_TAG_ADD;
}

/* One that is no receive of a QP, and stays when the QP goes (TAG-14). */
static inline bool skua_cqe_is_of_list(const struct skua_cqe *cqe)
{
	return cqe->opcode == SKUA_CQE_TAG_RECV || skua_cqe_is_tm_op(cqe);
}

/*
 * The CQE of an unexpected message goes, of which the program is never told. The device has counted it, and waits
 * for who counts it, too. The lock is held.
 */
static inline void skua_tm_lose(struct skua_srq *srq)
{
	srq->tm->lost++;
}

/* tm.c */
/* Are these fine for a QP of a program? If it has an SRQ with tags, the device sends for it, so it has no SQ. */
bool skua_tm_takes_qp(const struct ibv_qp_init_attr *attr);
/* A QP of a program has this SRQ from now on, or no longer. It may be NULL, or without tags. */
void skua_tm_hold(struct ibv_srq *ibv_srq);
void skua_tm_put(struct ibv_srq *ibv_srq);
struct ibv_srq *skua_create_tm_srq(struct ibv_context *ibv_ctx, struct ibv_srq_init_attr_ex *attr);
/* Before the SRQ is destroyed: operations reach the device no more. 0 or an errno. */
int skua_tm_stop(struct skua_tm *tm);
/* When no CQE of the SRQ is left. @tm may be NULL. */
void skua_tm_delete(struct skua_tm *tm);

/* tm_ops.c */
void skua_tm_free_numbers(struct skua_tm *tm);
/* Consume the next CQE, of which @cqe may be a copy, if the program is not to see it. */
bool skua_tm_swallow(struct skua_cq *cq, const struct skua_cqe *cqe);
/* Consume the next CQE, of which @cqe may be a copy, and free what it completes. Returns the wr_id. */
uint64_t skua_tm_take(struct skua_cq *cq, const struct skua_cqe *cqe);

#endif /* SKUA_TM_H */
