// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Atomics at the responder: a request is checked and queued. It is carried out when its response is to be sent, once;
 * what it fetched is remembered for a request that comes again.
 *
 * An ATOMIC WRITE is carried out when it arrives, as later WRITEs may be for the same word. Only its answer is queued.
 */
#include "base/copy.h"
#include "core/fault.h"
#include "roce/resp_ack.h"
#include "roce/resp_atomic.h"
#include "roce/resp_jobs.h"

/* Where the word is that the peer names, if it has the right @need. NULL: @err says why, enum skua_vendor_err. */
static uint64_t *word_at(struct skua_qp *qp, struct pd *pd, bool privileged, uint32_t need, uint32_t rkey,
			 uint64_t raddr, int *err)
{
	struct mem_access access = { pd, privileged, need, qp };
	struct seglist *dst = &qp->dev->engine->dst;

	dst->n = 0;
	dst->bytes = 0;
	*err = qp->access & need ?
	       mr_segs(qp->dev, &access, rkey, raddr, 8, dst) : SKUA_VENDOR_ERR_RIGHTS;
	/* An aligned address of a region may be no aligned word of memory, if the region does not begin at one. */
	if (!*err && ((uintptr_t)dst->seg[0].p % 8 || dst->seg[0].len < 8))
		*err = SKUA_VENDOR_ERR_BOUNDS;
	return *err ? NULL : (uint64_t *)dst->seg[0].p;
}

static uint64_t *atomic_target(struct skua_qp *qp, struct pd *pd, bool privileged, uint32_t rkey, uint64_t raddr,
			       int *err)
{
	return word_at(qp, pd, privileged, SKUA_ACCESS_REMOTE_ATOMIC, rkey, raddr, err);
}

void resp_rx_atomic(struct skua_qp *qp, const struct train *t)
{
	unsigned int feature = train_is_masked(t->op) ? SKUA_F_MASKED_ATOMIC : SKUA_F_ATOMIC;
	int err;

	if (conn_of(qp)->message.under_way || t->raddr % 8 || !dev_has(qp->dev, feature)) {
		resp_refuse_invalid(qp);
		return;
	}
	if (!resp_job_has_room(qp)) {
		resp_job_no_room(qp, t);
		return;
	}
	if (!atomic_target(qp, qp->pd, qp->privileged, t->rkey, t->raddr, &err)) {
		resp_wait_or_refuse(qp, err);
		return;
	}
	resp_job_add(qp, t);
}

/* The sums of the fields of @a and @b, whose most significant bits are @tops: no carry leaves its field (ATM-7). */
static uint64_t add_fields(uint64_t a, uint64_t b, uint64_t tops)
{
	return ((a & ~tops) + (b & ~tops)) ^ ((a ^ b) & tops);
}

/* What @job makes of a word that is @old: the same, if there is nothing to store. */
static uint64_t new_value(const struct read_job *job, uint64_t old)
{
	switch (job->op) {
	case TRAIN_FETCH_ADD:
		return old + job->swap_add;
	case TRAIN_MASKED_FETCH_ADD:
		return add_fields(old, job->swap_add, job->swap_add_mask);
	case TRAIN_CMP_SWAP:
		return old == job->compare ? job->swap_add : old;
	default:
		if ((old ^ job->compare) & job->compare_mask)
			return old;
		return (old & ~job->swap_add_mask) | (job->swap_add & job->swap_add_mask);
	}
}

/* Carry it out on memory, which is little endian, and which programs use at the same time. Returns the old value. */
static uint64_t do_atomic(uint64_t *p, const struct read_job *job)
{
	uint64_t old = __atomic_load_n(p, __ATOMIC_SEQ_CST), new;

	do {
		new = htole64(new_value(job, le64toh(old)));
		if (new == old)
			break;
	} while (!__atomic_compare_exchange_n(p, &old, new, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
	return le64toh(old);
}

bool resp_send_atomic(struct skua_qp *qp, struct read_job *job, int32_t *budget)
{
	struct roce_resp *resp = &rc_of(qp)->resp;
	struct train t = {
		.op = TRAIN_ATOMIC_RESP, .first = true, .last = true, .npkts = 1,
		.psn = job->psn, .syndrome = AETH_ACK, .msn = job->msn,
	};
	uint64_t *p;
	int err;

	if (!job->atomic_done) {
		struct served *s = resp_served_at(resp, job->served_index);

		p = atomic_target(qp, job->pd, job->privileged, job->rkey, job->raddr, &err);
		if (!p && err == SKUA_VENDOR_ERR_NOT_PRESENT && resp_job_wait(qp))
			return false;
		if (!p) {
			resp_jobs_drop(qp);
			qp->epsn = job->psn;
			resp_refuse_memory(qp, err);
			return true;
		}
		fault_over(qp, SKUA_PAGE_FAULT_RESPONDER);
		job->swap_add = do_atomic(p, job);
		job->atomic_done = true;
		s->value = job->swap_add;
		s->done = true;
		QP_STAT_INC(qp, rdma_rx_atomic);
	}
	t.swap_add = job->swap_add;
	if (!resp_transmit(qp, &t))
		return false;
	*budget -= 64;
	resp_job_over(resp, job);
	return true;
}

void resp_rx_atomic_write(struct skua_qp *qp, const struct train *t)
{
	uint64_t value, *p;
	struct seglist dst;
	int err;

	if (conn_of(qp)->message.under_way || t->raddr % 8 || t->msg_len != sizeof(value) || !t->payload ||
	    t->payload->bytes != sizeof(value) || !dev_has(qp->dev, SKUA_F_ATOMIC_WRITE)) {
		resp_refuse_invalid(qp);
		return;
	}
	if (!resp_job_has_room(qp)) {
		resp_job_no_room(qp, t);
		return;
	}
	p = word_at(qp, qp->pd, qp->privileged, SKUA_ACCESS_REMOTE_WRITE, t->rkey, t->raddr, &err);
	if (!p) {
		resp_wait_or_refuse(qp, err);
		return;
	}
	dst.n = 1;
	dst.bytes = sizeof(value);
	dst.seg[0] = (struct seg){ (uint8_t *)&value, sizeof(value) };
	copy_segs(&dst, t->payload);
	host_store64(p, le64toh(value));
	QP_STAT_INC(qp, rdma_rx_atomic_write);
	resp_job_add(qp, t);
}
