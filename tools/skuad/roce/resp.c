// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The responder of RC.
 *
 * Theory of operation. Trains are taken in the order of their PSNs: what comes too early is
 * answered with one NAK and dropped until the gap is filled; what comes again is acknowledged
 * again, READs are carried out again, atomics are answered with what they fetched the first
 * time. From a peer that offers selective repeat, what comes too early is held instead, and the
 * peer told what is missing. What is owed to the peer is noted, and sent when the
 * QP has its turn: responses of READs and atomics first, in order, then one ACK or NAK for all that came.
 * So many messages of one turn of the peer are answered by one ACK.
 *
 * A fault is told to the peer, completes the receive it touched, and puts the QP in ERR.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/copy.h"
#include "roce/rc.h"
#include "roce/roce.h"

/* Early packets behind a new gap until the peer is told again, as its kPacketThreshold is met then;
 * and between two frames that tell of the same gaps. */
#define TELL_SOON	2
#define TELL_EVERY	8

/* What the quota counts for each READ or atomic that there is room for, in blocks of 64 bytes (PL-10). */
#define RD_COST	4
static_assert(2 * sizeof(struct read_job) + sizeof(struct served) <= 64 * RD_COST, "cost of a READ");

static struct read_job *job_at(const struct roce_resp *resp, uint32_t i)
{
	return &resp->reads[i & (2 * resp->rd_size - 1)];
}

/* What is remembered of the READ or atomic that was the @i-th. */
static struct served *served_at(const struct roce_resp *resp, uint32_t i)
{
	return &resp->served[i & (resp->rd_size - 1)];
}

static void free_reads(struct skua_qp *qp)
{
	struct roce_resp *resp = &rc_of(qp)->resp;

	free(resp->reads);
	free(resp->served);
	qp->dev->pages_used -= RD_COST * resp->rd_size;
	resp->rd_size = 0;
}

/* What is there goes to where there is more room. */
static void move_reads(struct roce_resp *to, const struct roce_resp *from)
{
	for (uint32_t i = from->reads_tail; i != from->reads_head; i++)
		*job_at(to, i) = *job_at(from, i);
	for (uint32_t i = 1; i <= from->rd_size && i <= from->nserved; i++)
		*served_at(to, from->nserved - i) = *served_at(from, from->nserved - i);
}

int roce_resp_reserve(struct skua_qp *qp, uint32_t max_dest_rd)
{
	struct roce_resp *resp = &rc_of(qp)->resp, larger = *resp;

	/* A power of two, as indices run free. */
	larger.rd_size = max_dest_rd ? 1 : 0;
	while (larger.rd_size < max_dest_rd)
		larger.rd_size *= 2;
	if (larger.rd_size <= resp->rd_size)
		return SKUA_CMD_OK;
	if (!pages_charge(qp->dev, RD_COST * larger.rd_size))
		return SKUA_CMD_NO_RESOURCE;
	larger.reads = calloc(2 * larger.rd_size, sizeof(*larger.reads));
	larger.served = calloc(larger.rd_size, sizeof(*larger.served));
	if (!larger.reads || !larger.served) {
		free(larger.reads);
		free(larger.served);
		qp->dev->pages_used -= RD_COST * larger.rd_size;
		return SKUA_CMD_NO_RESOURCE;
	}
	move_reads(&larger, resp);
	free_reads(qp);
	*resp = larger;
	return SKUA_CMD_OK;
}

static void drop_held(struct skua_qp *qp, struct held_recv *held)
{
	STAILQ_REMOVE_HEAD(&rc_of(qp)->resp.held, entry);
	qp->dev->roce->held_bytes -= sizeof(*held);
	free(held);
}

void roce_resp_reset(struct skua_qp *qp)
{
	struct roce_resp *resp = &rc_of(qp)->resp;
	struct held_recv *held;

	free_reads(qp);
	reorder_free(qp->dev, &resp->early);
	while ((held = STAILQ_FIRST(&resp->held)))
		drop_held(qp, held);
	*resp = (struct roce_resp){ .held = STAILQ_HEAD_INITIALIZER(resp->held) };
	conn_of(qp)->message = (struct message){ 0 };
}

void roce_resp_stop(struct skua_qp *qp)
{
	struct roce_resp *resp = &rc_of(qp)->resp;

	resp->reads_tail = resp->reads_head;
	resp->reads_new = 0;
	resp->reads_again = 0;
}

static bool is_nak(uint8_t syndrome)
{
	return AETH_TYPE(syndrome) != 0;
}

/* Owe the peer @syndrome, if a NAK for @psn. A NAK that is owed is not overtaken by ACKs. */
static void owe(struct skua_qp *qp, uint8_t syndrome, uint32_t psn)
{
	struct roce_resp *resp = &rc_of(qp)->resp;

	if (resp->ack_due && is_nak(resp->syndrome) && !is_nak(syndrome))
		return;
	resp->ack_due = true;
	resp->syndrome = syndrome;
	resp->nak_psn = psn;
	qp_activate(qp);
}

/* Owe the peer an ACK of all that is in order when it is sent. */
static void owe_ack(struct skua_qp *qp)
{
	owe(qp, AETH_ACK, 0);
}

bool roce_resp_holds(const struct skua_qp *qp)
{
	return !STAILQ_EMPTY(&rc_of(qp)->resp.held);
}

/* There are never more than the RQ has entries: none comes back to the host before its CQE. Packets that other QPs hold
 * leave room for as much again, because a CQE cannot be dropped. */
static void hold(struct skua_qp *qp, const struct skua_cqe *cqe, uint64_t ticket)
{
	struct held_recv *held = qp->dev->roce->held_bytes < 2 * HELD_MAX ? malloc(sizeof(*held)) : NULL;

	if (!held) {
		qp_fatal(qp);
		return;
	}
	qp->dev->roce->held_bytes += sizeof(*held);
	held->cqe = *cqe;
	held->ticket = ticket;
	STAILQ_INSERT_TAIL(&rc_of(qp)->resp.held, held, entry);
	qp_activate(qp);
}

/* In order, as far as the trains are over. */
static bool release_held(struct skua_qp *qp, int32_t *budget)
{
	struct held_recv *held;
	bool any = false;

	while (*budget > 0 && (held = STAILQ_FIRST(&rc_of(qp)->resp.held)) &&
	       port_drained(qp->dev->port, held->ticket)) {
		*budget -= MESSAGE_COST;
		qp_complete_recv(qp, &held->cqe);
		drop_held(qp, held);
		any = true;
	}
	return any;
}

/* In order behind those that are held. */
static void complete_recv(struct skua_qp *qp, struct skua_cqe *cqe)
{
	if (roce_resp_holds(qp))
		hold(qp, cqe, 0);
	else
		qp_complete_recv(qp, cqe);
}

static void fail_recv(struct skua_qp *qp, uint8_t status, uint8_t vendor_err)
{
	struct skua_cqe cqe = {
		.opcode = SKUA_CQE_RECV, .status = status, .vendor_err = vendor_err,
	};
	struct message *msg = &conn_of(qp)->message;

	if (!msg->have_recv || rc_of(qp)->resp.from_held)
		return;
	message_use_recv(msg, &cqe);
	complete_recv(qp, &cqe);
}

/*
 * The request at epsn is refused. @event tells of it where no completion does; else 0. One that was held may
 * have been anybody's, who guessed a PSN that was to come: it is dropped, and what the peer sends
 * for it decides.
 */
static void refuse(struct skua_qp *qp, uint8_t syndrome, uint8_t event)
{
	if (rc_of(qp)->resp.from_held)
		return;
	if (syndrome == AETH_NAK_ACCESS)
		STAT_INC(qp->dev, access_nak_sent);
	else if (syndrome == AETH_NAK_INV_REQ)
		STAT_INC(qp->dev, invalid_nak_sent);
	else
		STAT_INC(qp->dev, op_nak_sent);
	owe(qp, syndrome, qp->epsn);
	if (event)
		qp_error(qp, event);
	else
		qp_to_err(qp);
}

static void invalid(struct skua_qp *qp)
{
	refuse(qp, AETH_NAK_INV_REQ, SKUA_EVENT_QP_REQ_ERR);
}

/* Memory of ours that the peer named: @err is enum skua_vendor_err. */
static void bad_memory(struct skua_qp *qp, int err)
{
	if (err == SKUA_VENDOR_ERR_UNREACHABLE)
		refuse(qp, AETH_NAK_OP, SKUA_EVENT_QP_FATAL);
	else
		refuse(qp, AETH_NAK_ACCESS, SKUA_EVENT_QP_ACCESS_ERR);
}

/* A receive for a message that begins, or a WRITE with immediate that ends. */
static bool get_recv(struct skua_qp *qp)
{
	struct roce_resp *resp = &rc_of(qp)->resp;
	uint8_t err;

	switch (message_get_recv(qp, &conn_of(qp)->message, &err)) {
	case RQ_OK:
		return true;
	case RQ_EMPTY:
		if (!resp->nak_sent) {
			STAT_INC(qp->dev, rnr_nak_sent);
			owe(qp, AETH_RNR | qp->attr.min_rnr_timer, qp->epsn);
		}
		resp->nak_sent = true;
		return false;
	case RQ_BAD:
		fail_recv(qp, SKUA_CQE_LOC_QP_OP_ERR, err);
		refuse(qp, AETH_NAK_OP, 0);
		return false;
	default:
		refuse(qp, AETH_NAK_OP, SKUA_EVENT_QP_FATAL);
		return false;
	}
}

/*
 * A WRITE may not write its memory. The receive of the packet that has the immediate says so; any other packet takes
 * none.
 */
static void bad_write(struct skua_qp *qp, const struct train *t, int err)
{
	struct message *msg = &conn_of(qp)->message;
	bool imm = t->op == TRAIN_WRITE_IMM && t->last && !(t->first && t->npkts > 1);
	uint8_t bad;

	if (imm && !msg->have_recv && qp_peek_recv(qp, &msg->recv, &bad) == RQ_OK) {
		rq_take(&qp->rq);
		msg->have_recv = true;
	}
	if (!imm || !msg->have_recv || err == SKUA_VENDOR_ERR_UNREACHABLE) {
		bad_memory(qp, err);
		return;
	}
	fail_recv(qp, SKUA_CQE_LOC_ACCESS_ERR, (uint8_t)err);
	refuse(qp, AETH_NAK_ACCESS, 0);
}

/*
 * The region is invalid, but trains of any QP may still refer to it, and the CQE says that none
 * does: false if it may be written now.
 */
static bool hold_invalidation(struct skua_qp *qp, struct skua_cqe *cqe)
{
	uint64_t ticket = port_ticket(qp->dev->port);

	if (port_drained(qp->dev->port, ticket))
		return false;
	hold(qp, cqe, ticket);
	return true;
}

/* A message has come whole. */
static void finish(struct skua_qp *qp, const struct train *t)
{
	struct roce_resp *resp = &rc_of(qp)->resp;
	struct message *msg = &conn_of(qp)->message;
	struct skua_cqe cqe;

	message_end(qp, msg, t);
	resp->msn = psn_add(resp->msn, 1);
	if (!msg->have_recv)
		return;
	message_complete(msg, t, &cqe);
	if (t->op != TRAIN_SEND_INV || !hold_invalidation(qp, &cqe))
		complete_recv(qp, &cqe);
}

/* A message with a fault. */
static void refuse_message(struct skua_qp *qp, const struct train *t, enum message_fault fault)
{
	uint8_t err = conn_of(qp)->message.vendor_err;

	switch (fault) {
	case MESSAGE_TOO_LONG:
		fail_recv(qp, SKUA_CQE_LOC_LEN_ERR, SKUA_VENDOR_ERR_MSG_TOO_LONG);
		refuse(qp, AETH_NAK_INV_REQ, 0);
		break;
	case MESSAGE_BAD_RECV:
		fail_recv(qp, SKUA_CQE_LOC_PROT_ERR, err);
		refuse(qp, AETH_NAK_OP, 0);
		break;
	case MESSAGE_BAD_MEMORY:
		bad_write(qp, t, err);
		break;
	default:
		invalid(qp);
	}
}

static bool begin(struct skua_qp *qp, const struct train *t)
{
	enum message_fault fault;

	if (message_is_send(t->op))
		return get_recv(qp);
	fault = message_begin_write(qp, &conn_of(qp)->message, t);
	if (fault)
		refuse_message(qp, t, fault);
	return !fault;
}

/*
 * The key that a SEND would invalidate may not be: its receive says so, and its peer's WQE completes with success
 * (IBTA's responder class J), but nothing comes after it.
 */
static bool invalidate(struct skua_qp *qp, const struct train *t)
{
	int err = mr_invalidate(qp->dev, qp->pd, t->imm);

	if (!err)
		return true;
	if (rc_of(qp)->resp.from_held)
		return false;
	fail_recv(qp, SKUA_CQE_REM_INV_REQ_ERR, (uint8_t)err);
	qp->epsn = psn_add(qp->epsn, t->npkts);
	rc_of(qp)->resp.msn = psn_add(rc_of(qp)->resp.msn, 1);
	owe_ack(qp);
	qp_to_err(qp);
	return false;
}

/* Packets of a SEND or WRITE, the next that are expected. */
static void rx_payload(struct skua_qp *qp, const struct train *t)
{
	struct roce_resp *resp = &rc_of(qp)->resp;
	struct message *msg = &conn_of(qp)->message;
	struct seglist *dst = &qp->dev->engine->dst;
	uint32_t bytes = t->payload ? t->payload->bytes : 0;
	enum message_fault fault;

	if (!message_fits(qp, msg, t) || t->first == msg->under_way ||
	    (t->op == TRAIN_SEND_INV && t->last && !dev_has(qp->dev, SKUA_F_INVALIDATE))) {
		invalid(qp);
		return;
	}
	if (t->first && !begin(qp, t))
		return;
	/* The immediate needs a receive: without one nothing of this train has come. */
	if (t->op == TRAIN_WRITE_IMM && t->last && !get_recv(qp))
		return;
	fault = message_place(qp, msg, t, dst);
	if (fault) {
		refuse_message(qp, t, fault);
		return;
	}
	if (bytes)
		copy_segs(dst, t->payload);
	if (t->op == TRAIN_SEND_INV && t->last && !invalidate(qp, t))
		return;
	resp->nak_sent = false;
	msg->offset += bytes;
	qp->epsn = psn_add(qp->epsn, t->npkts);
	if (t->last)
		finish(qp, t);
	if (t->ack_req)
		owe_ack(qp);
}

static void fill_job(struct skua_qp *qp, struct read_job *job, const struct train *t)
{
	*job = (struct read_job){
		.psn = t->psn, .npkts = qp_packets(qp, t->msg_len), .rkey = t->rkey,
		.raddr = t->raddr, .length = t->msg_len, .msn = rc_of(qp)->resp.msn, .op = t->op,
		.swap_add = t->swap_add, .compare = t->compare,
	};
	qp_activate(qp);
}

/* A new READ or atomic is accepted, and remembered. */
static void queue_read(struct skua_qp *qp, const struct train *t)
{
	struct roce_resp *resp = &rc_of(qp)->resp;
	struct read_job *job;

	resp->msn = psn_add(resp->msn, 1);
	resp->nak_sent = false;
	job = job_at(resp, resp->reads_head++);
	fill_job(qp, job, t);
	job->served = resp->nserved++;
	resp->reads_new++;
	qp->epsn = psn_add(qp->epsn, job->npkts);
	*served_at(resp, job->served) = (struct served){
		.op = t->op, .psn = t->psn, .npkts = job->npkts, .rkey = t->rkey,
		.raddr = t->raddr, .length = t->msg_len,
	};
}

/*
 * Are all of the @npkts responses from @psn on still to be sent, the first time or again? Then a request for
 * them adds nothing. It must not be answered before the first: its peer would think that
 * the READ or atomic is over, and send more new ones than there is room for.
 */
static bool is_queued(const struct roce_resp *resp, uint32_t psn, uint32_t npkts)
{
	for (uint32_t i = resp->reads_tail; i != resp->reads_head; i++) {
		const struct read_job *job = job_at(resp, i);
		uint32_t from = psn_add(job->psn, job->sent), at = psn_add(psn, -from);

		if (at < job->npkts - job->sent && npkts <= job->npkts - job->sent - at)
			return true;
	}
	return false;
}

/*
 * One that came again: before all new ones, and before others that came again and have later responses to send. The
 * peer has no use for those without it. There may be as many of them as of new ones; more are asked for again.
 */
static void queue_again(struct skua_qp *qp, const struct train *t, uint64_t value)
{
	struct roce_resp *resp = &rc_of(qp)->resp;
	struct read_job *job, *next;
	uint32_t at;

	if (resp->reads_again >= qp->max_dest_rd)
		return;
	resp->reads_again++;
	for (at = --resp->reads_tail; at + 1 != resp->reads_head; at++) {
		next = job_at(resp, at + 1);
		if (!next->duplicate || psn_diff(psn_add(next->psn, next->sent), t->psn) > 0)
			break;
		*job_at(resp, at) = *next;
	}
	job = job_at(resp, at);
	fill_job(qp, job, t);
	job->duplicate = true;
	job->done = true;
	job->swap_add = value;
}

static void job_over(struct roce_resp *resp, const struct read_job *job)
{
	if (job->duplicate)
		resp->reads_again--;
	else
		resp->reads_new--;
	resp->reads_tail++;
}

static int check_read(struct skua_qp *qp, uint32_t rkey, uint64_t raddr, uint32_t len)
{
	struct mem_access access = { qp->pd, qp->privileged, SKUA_ACCESS_REMOTE_READ };

	if (!(qp->access & SKUA_ACCESS_REMOTE_READ))
		return SKUA_VENDOR_ERR_RIGHTS;
	return len ? mr_check(qp->dev, &access, rkey, raddr, len) : SKUA_VENDOR_ERR_NONE;
}

static void rx_read(struct skua_qp *qp, const struct train *t)
{
	struct roce_resp *resp = &rc_of(qp)->resp;
	struct message *msg = &conn_of(qp)->message;
	int err;

	if (msg->under_way || t->msg_len > LIMIT_MSG || resp->reads_new >= qp->max_dest_rd) {
		invalid(qp);
		return;
	}
	err = check_read(qp, t->rkey, t->raddr, t->msg_len);
	if (err) {
		bad_memory(qp, err);
		return;
	}
	STAT_INC(qp->dev, rdma_rx_read);
	queue_read(qp, t);
}

static bool is_atomic(enum train_op op)
{
	return op == TRAIN_CMP_SWAP || op == TRAIN_FETCH_ADD;
}

/* Where the 8 bytes of an atomic are: NULL with @err, enum skua_vendor_err. */
static uint64_t *atomic_target(struct skua_qp *qp, uint32_t rkey, uint64_t raddr, int *err)
{
	struct mem_access access = { qp->pd, qp->privileged, SKUA_ACCESS_REMOTE_ATOMIC };
	struct seglist *dst = &qp->dev->engine->dst;

	dst->n = 0;
	dst->bytes = 0;
	*err = qp->access & SKUA_ACCESS_REMOTE_ATOMIC ?
	       mr_segs(qp->dev, &access, rkey, raddr, 8, dst) : SKUA_VENDOR_ERR_RIGHTS;
	/* An aligned word of a region may lie across pages where the region begins askew. */
	if (!*err && ((uintptr_t)dst->seg[0].p % 8 || dst->seg[0].len < 8))
		*err = SKUA_VENDOR_ERR_BOUNDS;
	return *err ? NULL : (uint64_t *)dst->seg[0].p;
}

static void rx_atomic(struct skua_qp *qp, const struct train *t)
{
	struct roce_resp *resp = &rc_of(qp)->resp;
	struct message *msg = &conn_of(qp)->message;
	int err;

	if (msg->under_way || t->raddr % 8 || !dev_has(qp->dev, SKUA_F_ATOMIC) ||
	    resp->reads_new >= qp->max_dest_rd) {
		invalid(qp);
		return;
	}
	if (!atomic_target(qp, t->rkey, t->raddr, &err)) {
		bad_memory(qp, err);
		return;
	}
	queue_read(qp, t);
}

/* What is remembered of the READ or atomic that takes the PSN of @t, or NULL. */
static const struct served *find_served(const struct skua_qp *qp, const struct train *t)
{
	const struct roce_resp *resp = &rc_of(qp)->resp;

	for (uint32_t i = 1; i <= qp->max_dest_rd && i <= resp->nserved; i++) {
		const struct served *s = served_at(resp, resp->nserved - i);

		if (psn_add(t->psn, -s->psn) < s->npkts)
			return s->op == t->op && s->rkey == t->rkey ? s : NULL;
	}
	return NULL;
}

/* An atomic that came again: carried out already, it is answered as it was. */
static void replay_atomic(struct skua_qp *qp, const struct train *t)
{
	const struct served *s = find_served(qp, t);

	if (s && s->done && !is_queued(&rc_of(qp)->resp, t->psn, 1))
		queue_again(qp, t, s->value);
}

/* The READ with this PSN, if it has responses still to be sent for the first time. */
static struct read_job *job_of(const struct roce_resp *resp, uint32_t psn)
{
	for (uint32_t i = resp->reads_tail; i != resp->reads_head; i++) {
		struct read_job *job = job_at(resp, i);

		if (!job->duplicate && psn_add(psn, -job->psn) < job->npkts)
			return job;
	}
	return NULL;
}

/*
 * @t asks for responses of @job again. If some of them come yet, none may be sent besides: with
 * those the peer would think that the READ is over, and send more new ones than there is room for.
 */
static void restart(struct skua_qp *qp, struct read_job *job, const struct train *t)
{
	uint32_t sent = psn_add(job->psn, job->sent), served = job->served;
	uint32_t end = psn_add(t->psn, qp_packets(qp, t->msg_len));

	if (psn_diff(end, sent) <= 0) {
		queue_again(qp, t, 0);
	} else if (psn_diff(t->psn, sent) < 0 && end == psn_add(job->psn, job->npkts)) {
		fill_job(qp, job, t);
		job->served = served;
	}
}

/* Does it ask for a part of that READ, in whole packets, with the PSN and the address that they have? */
static bool is_part_of(const struct skua_qp *qp, const struct train *t, const struct served *s)
{
	uint64_t offset = (uint64_t)psn_add(t->psn, -s->psn) << qp->log_pmtu;
	uint64_t end = offset + t->msg_len;

	return t->raddr == s->raddr + offset && (t->msg_len || !s->length) &&
	       (end == s->length || (end < s->length && !(end & (qp->pmtu - 1))));
}

/* A READ that came again is carried out again, if it asks for what it may still have. */
static void replay_read(struct skua_qp *qp, const struct train *t)
{
	const struct served *s = find_served(qp, t);
	struct read_job *job;

	if (!s || !is_part_of(qp, t, s) || check_read(qp, t->rkey, t->raddr, t->msg_len))
		return;
	if (is_queued(&rc_of(qp)->resp, t->psn, qp_packets(qp, t->msg_len)))
		return;
	job = job_of(&rc_of(qp)->resp, t->psn);
	if (job)
		restart(qp, job, t);
	else
		queue_again(qp, t, 0);
}

/* Returns the old value; memory is little endian, and programs use it at the same time. */
static uint64_t do_atomic(uint64_t *p, const struct read_job *job)
{
	uint64_t old = __atomic_load_n(p, __ATOMIC_SEQ_CST), new;

	do {
		if (job->op == TRAIN_FETCH_ADD)
			new = le64toh(old) + job->swap_add;
		else if (le64toh(old) == job->compare)
			new = job->swap_add;
		else
			break;
	} while (!__atomic_compare_exchange_n(p, &old, htole64(new), false, __ATOMIC_SEQ_CST,
					      __ATOMIC_SEQ_CST));
	return le64toh(old);
}

/* The bytes of @src behind the first @skip. */
static void seglist_behind(struct seglist *dst, const struct seglist *src, uint32_t skip)
{
	dst->n = 0;
	dst->bytes = src->bytes - skip;
	for (unsigned int i = 0; i < src->n; i++) {
		struct seg seg = src->seg[i];

		if (skip >= seg.len) {
			skip -= seg.len;
			continue;
		}
		dst->seg[dst->n++] = (struct seg){ seg.p + skip, seg.len - skip };
		skip = 0;
	}
}

/* The peer sent a packet again in vain. */
static void tell_duplicate(struct skua_qp *qp)
{
	if (!repeat_offered(qp))
		return;
	rc_of(qp)->resp.duplicate = true;
	rc_of(qp)->resp.missing_due = true;
	qp_activate(qp);
}

/* @t begins before what is expected: its peer did not hear us. */
static void rx_duplicate(struct skua_qp *qp, const struct train *t)
{
	uint32_t behind = (uint32_t)psn_diff(qp->epsn, t->psn);
	struct seglist rest;
	struct train tail = *t;

	STAT_INC(qp->dev, duplicates);
	if (is_atomic(t->op)) {
		replay_atomic(qp, t);
		return;
	}
	if (t->op == TRAIN_READ_REQ) {
		replay_read(qp, t);
		return;
	}
	if (t->npkts <= behind) {
		if (t->ack_req)
			owe_ack(qp);
		if (behind <= REPEAT_WINDOW)
			tell_duplicate(qp);
		return;
	}
	/* Its later packets are new. */
	tail.first = false;
	tail.psn = qp->epsn;
	tail.npkts -= behind;
	if (t->payload && behind * t->pmtu <= t->payload->bytes) {
		seglist_behind(&rest, t->payload, behind * t->pmtu);
		tail.payload = &rest;
	}
	rx_payload(qp, &tail);
}

/* Tell the peer what is missing: of a new gap at once, of old ones now and then, as frames may
 * be lost. */
static void owe_missing(struct skua_qp *qp, bool now)
{
	struct roce_resp *resp = &rc_of(qp)->resp;

	if (now)
		resp->untold = 0;
	else if (++resp->untold != TELL_SOON && resp->untold < TELL_EVERY)
		return;
	else if (resp->untold == TELL_EVERY)
		resp->untold = 0;
	resp->missing_due = true;
	qp_activate(qp);
}

/* Something before @t is missing. */
static void rx_early(struct skua_qp *qp, const struct train *t)
{
	struct roce_resp *resp = &rc_of(qp)->resp;
	uint32_t end = reorder_empty(resp->early) ? qp->epsn : reorder_end(resp->early);

	STAT_INC(qp->dev, out_of_order);
	if (resp->nak_sent)
		return;
	if (reorder_has(resp->early, t->psn)) {
		tell_duplicate(qp);
		return;
	}
	if (repeat_agreed(qp)) {
		/* A peer with selective repeat finds out by itself what there is no place for. */
		if (psn_diff(t->psn, qp->epsn) > REPEAT_WINDOW)
			return;
		if (reorder_hold(qp->dev, &resp->early, qp->epsn, t)) {
			owe_missing(qp, psn_diff(t->psn, end) > 0);
			return;
		}
	}
	/* What there was no place for is missing, as if it were lost. */
	if (!reorder_empty(resp->early))
		return;
	STAT_INC(qp->dev, seq_nak_sent);
	owe(qp, AETH_NAK_SEQ, qp->epsn);
	resp->nak_sent = true;
}

static void rx(struct skua_qp *qp, const struct train *t);

/* A packet that was held has its turn. If it is refused, all is as if it had not come. */
static void rx_one_held(struct skua_qp *qp, const struct train *t)
{
	struct roce_resp *resp = &rc_of(qp)->resp;
	struct message *msg = &conn_of(qp)->message;
	const enum train_op op = msg->op;
	const bool in_message = msg->under_way, have_recv = msg->have_recv;
	const uint32_t offset = msg->offset, rkey = msg->rkey, length = msg->length;
	const uint32_t epsn = qp->epsn, rq_ci = qp->rq.ci;
	const uint64_t raddr = msg->raddr;

	resp->from_held = true;
	rx(qp, t);
	resp->from_held = false;
	if (qp->epsn != epsn)
		return;
	msg->op = op;
	msg->under_way = in_message;
	msg->have_recv = have_recv;
	msg->offset = offset;
	msg->raddr = raddr;
	msg->rkey = rkey;
	msg->length = length;
	qp->rq.ci = rq_ci;
}

/* A gap was filled: what was held behind it comes now. */
static void rx_held(struct skua_qp *qp)
{
	struct roce_resp *resp = &rc_of(qp)->resp;
	struct train *t;

	while ((t = reorder_take(qp->dev, &resp->early, qp->epsn))) {
		rx_one_held(qp, t);
		free(t);
		/* Refused, perhaps for now: the peer comes back to it, and to what is behind it. */
		if (resp->nak_sent || !qp_can_receive(qp)) {
			reorder_free(qp->dev, &resp->early);
			return;
		}
	}
	if (reorder_empty(resp->early))
		return;
	if (psn_diff(qp->epsn, reorder_end(resp->early)) >= 0)
		reorder_free(qp->dev, &resp->early);	/* it came in a train besides */
	else
		owe_missing(qp, true);
}

static void rx(struct skua_qp *qp, const struct train *t)
{
	struct roce_resp *resp = &rc_of(qp)->resp;
	uint32_t epsn = qp->epsn;
	int32_t ahead = psn_diff(t->psn, epsn);

	if (ahead > 0) {
		rx_early(qp, t);
	} else if (ahead < 0) {
		rx_duplicate(qp, t);
	} else if (t->op == TRAIN_READ_REQ) {
		rx_read(qp, t);
	} else if (is_atomic(t->op)) {
		rx_atomic(qp, t);
	} else {
		/* The peer has come back to what was refused: it may be refused again. */
		resp->nak_sent = false;
		rx_payload(qp, t);
	}
	if (qp->epsn != epsn)
		qp_established(qp);
}

void roce_resp_rx(struct skua_qp *qp, const struct train *t)
{
	uint32_t epsn = qp->epsn;

	rx(qp, t);
	if (reorder_empty(rc_of(qp)->resp.early))
		return;
	if (qp->epsn != epsn)
		rx_held(qp);
	else if (t->ack_req)
		owe_missing(qp, true);
}

static bool transmit(struct skua_qp *qp, struct train *t)
{
	struct port_mark mark = { 0 };

	return roce_send(qp, t, &mark) != PORT_BUSY;
}

/* A train of responses. False: no room on the wire, or not yet. */
static bool send_response(struct skua_qp *qp, struct read_job *job, int32_t *budget)
{
	struct mem_access access = { qp->pd, qp->privileged, SKUA_ACCESS_REMOTE_READ };
	struct roce_resp *resp = &rc_of(qp)->resp;
	struct seglist *src = &qp->dev->engine->src;
	uint32_t offset = job->sent * qp->pmtu, len = job->length - offset;
	uint32_t n = job->npkts - job->sent, max = qp_burst(qp) >> qp->log_pmtu;
	struct train t = train_blank;
	int err = 0;

	if (qp_must_wait(qp))
		return false;
	if (n > max) {
		n = max;
		len = n * qp->pmtu;
	}
	src->n = 0;
	src->bytes = 0;
	if (len)
		err = mr_segs(qp->dev, &access, job->rkey, job->raddr + offset, len, src);
	if (err && job->duplicate) {
		/* A READ that came again and may not be any more is not answered. */
		job_over(resp, job);
		return true;
	}
	if (err) {
		roce_resp_stop(qp);
		qp->epsn = psn_add(job->psn, job->sent);
		bad_memory(qp, err);
		return true;
	}
	t.op = TRAIN_READ_RESP;
	t.syndrome = AETH_ACK;
	t.msn = job->msn;
	t.psn = psn_add(job->psn, job->sent);
	t.npkts = n;
	t.first = job->sent == 0;
	t.last = job->sent + n == job->npkts;
	t.payload = len ? src : NULL;
	if (!transmit(qp, &t))
		return false;
	*budget -= (int32_t)len + 64;
	job->sent += n;
	if (t.last)
		job_over(resp, job);
	return true;
}

/* Carry an atomic out, once, and answer it. False: no room on the wire. */
static bool send_atomic_response(struct skua_qp *qp, struct read_job *job, int32_t *budget)
{
	struct roce_resp *resp = &rc_of(qp)->resp;
	struct train t = {
		.op = TRAIN_ATOMIC_RESP, .first = true, .last = true, .npkts = 1,
		.psn = job->psn, .syndrome = AETH_ACK, .msn = job->msn,
	};
	uint64_t *p;
	int err;

	if (!job->done) {
		struct served *s = served_at(resp, job->served);

		p = atomic_target(qp, job->rkey, job->raddr, &err);
		if (!p) {
			roce_resp_stop(qp);
			qp->epsn = job->psn;
			bad_memory(qp, err);
			return true;
		}
		job->swap_add = do_atomic(p, job);
		job->done = true;
		s->value = job->swap_add;
		s->done = true;
		STAT_INC(qp->dev, rdma_rx_atomic);
	}
	t.swap_add = job->swap_add;
	if (!transmit(qp, &t))
		return false;
	*budget -= 64;
	job_over(resp, job);
	return true;
}

static bool send_owed(struct skua_qp *qp)
{
	struct roce_resp *resp = &rc_of(qp)->resp;
	struct train t = train_blank;

	t.op = TRAIN_ACK;
	t.first = t.last = true;
	t.npkts = 1;
	t.psn = resp->nak_psn;
	t.syndrome = resp->syndrome;
	t.msn = resp->msn;

	/* Since it became due held packets may have been taken, or the request of a NAK may have come again. */
	if (!is_nak(resp->syndrome) || resp->nak_psn != qp->epsn) {
		t.syndrome = AETH_ACK;
		t.psn = psn_add(qp->epsn, PSN_MASK);
	}
	if (!transmit(qp, &t))
		return false;
	resp->ack_due = false;
	return true;
}

static bool send_missing(struct skua_qp *qp)
{
	struct roce_resp *resp = &rc_of(qp)->resp;
	struct repeat_frame f = {
		.type = REPEAT_MISSING, .path = qp->path, .dest_qpn = qp->dest_qpn,
		.psn = qp->epsn, .duplicate = resp->duplicate,
	};

	for (uint32_t i = 0; resp->early && i < REPEAT_WINDOW; i++)
		if (reorder_has(resp->early, psn_add(qp->epsn, i + 1)))
			f.held[i / 8] |= (uint8_t)(1 << i % 8);
	if ((resp->early || resp->duplicate) && !repeat_send(qp->dev, &f))
		return false;
	resp->missing_due = false;
	resp->duplicate = false;
	return true;
}

/* What is missing is told before an ACK: with the ACK alone, what is held behind it would seem to be lost. */
bool roce_resp_run(struct skua_qp *qp, int32_t *budget)
{
	struct roce_resp *resp = &rc_of(qp)->resp;
	bool any = release_held(qp, budget);

	if (resp->missing_due && !rc_of(qp)->missing_last)
		any |= send_missing(qp);
	while (roce_resp_responds(qp)) {
		struct read_job *job = job_at(resp, resp->reads_tail);

		if (*budget <= 0 || !(is_atomic(job->op) ? send_atomic_response(qp, job, budget) :
				      send_response(qp, job, budget)))
			return any;
		any = true;
	}
	if (resp->missing_due)
		any |= send_missing(qp);
	if (resp->ack_due)
		any |= send_owed(qp);
	return any;
}

void roce_resp_retire(struct skua_qp *qp)
{
	if (qp_can_receive(qp) && rc_of(qp)->resp.ack_due && !roce_resp_responds(qp))
		send_owed(qp);
}

bool roce_resp_responds(const struct skua_qp *qp)
{
	return rc_of(qp)->resp.reads_tail != rc_of(qp)->resp.reads_head;
}

bool roce_resp_pending(const struct skua_qp *qp)
{
	const struct roce_resp *resp = &rc_of(qp)->resp;

	return resp->ack_due || resp->missing_due || roce_resp_holds(qp) ||
	       (roce_resp_responds(qp) && !dcqcn_paused(qp));
}

void roce_resp_flush(struct skua_qp *qp)
{
	fail_recv(qp, SKUA_CQE_WR_FLUSH_ERR, SKUA_VENDOR_ERR_NONE);
}
