// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completions of a world, compared with what was posted: exactly once, in order, with the
 * payload, and nothing else written.
 */
#include "core/qp.h"
#include "harness/sim.h"

static const char *status_name(uint8_t status)
{
	static const char *const names[] = {
		[SKUA_CQE_LOC_LEN_ERR] = "loc-len", [SKUA_CQE_LOC_QP_OP_ERR] = "loc-qp-op",
		[SKUA_CQE_LOC_PROT_ERR] = "loc-prot", [SKUA_CQE_WR_FLUSH_ERR] = "flush",
		[SKUA_CQE_BAD_RESP_ERR] = "bad-resp", [SKUA_CQE_LOC_ACCESS_ERR] = "loc-access",
		[SKUA_CQE_REM_INV_REQ_ERR] = "rem-inv-req", [SKUA_CQE_REM_ACCESS_ERR] = "rem-access",
		[SKUA_CQE_REM_OP_ERR] = "rem-op", [SKUA_CQE_RETRY_EXC_ERR] = "retry-exc",
		[SKUA_CQE_RNR_RETRY_EXC_ERR] = "rnr-exc", [SKUA_CQE_REM_ABORT_ERR] = "rem-abort",
	};

	return status < sizeof(names) / sizeof(names[0]) && names[status] ? names[status] : "status";
}

static uint8_t *region_at(struct sim *s, unsigned int node, int region)
{
	const struct sim_region *r = &s->node[node].region[region];

	sim_odp_touch(s, node, r->offset, r->len);
	return sim_arena(node) + r->offset;
}

/* What stands in a region now has to be what belongs there, and has to stay. */
static bool whole(struct sim *s, unsigned int node, int region, uint32_t len)
{
	struct sim_region *r = &s->node[node].region[region];

	if (r->expect == SIM_PARTIAL)
		r->expect = SIM_WHOLE;
	return !memcmp(region_at(s, node, region), sim_pattern() + r->content, len);
}

static uint64_t word_at(struct sim *s, unsigned int node, int region)
{
	uint64_t v;

	memcpy(&v, region_at(s, node, region), 8);
	return le64toh(v);
}

/* A message that was completed with success. */
static void verify(struct sim *s, unsigned int q, unsigned int side, unsigned int k)
{
	struct sim_side *sd = &s->qp[q].side[side];
	const struct sim_msg *m = &sd->msg[k];
	uint64_t value;

	if (m->receive >= 0)
		sd->sends_done = (unsigned int)m->receive + 1;
	if (sim_is_atomic(m->opcode)) {
		value = word_at(s, side, m->target);
		if (m->shared)
			s->node[!side].shared_done++;
		else if (value != m->old)
			sim_fail(s, "atomic-value", "QP %u %c message %u fetched 0x%llx, not 0x%llx", q,
				 'a' + side, k, (unsigned long long)value, (unsigned long long)m->old);
		return;
	}
	/* Nobody tells the sender of UC what came. */
	if (m->target >= 0 && s->qp[q].type == SKUA_QPT_RC &&
	    !whole(s, m->opcode == SKUA_WQE_READ ? side : !side, m->target, m->len))
		sim_fail(s, m->opcode == SKUA_WQE_READ ? "read-data" : "write-data",
			 "QP %u %c message %u of %u bytes", q, 'a' + side, k, m->len);
}

/* Without an error of its own: the responder of this end found a fault in the peer's requests. */
static const char *flush_cause(const struct sim *s, unsigned int side, const char *otherwise)
{
	return s->w->n[side].dev->stats.invalid_nak_sent ? status_name(SKUA_CQE_REM_INV_REQ_ERR) :
	       otherwise;
}

static void judge(struct sim *s, unsigned int q, unsigned int side, unsigned int k,
		  const struct skua_cqe *cqe)
{
	const struct sim_side *sd = &s->qp[q].side[side];
	bool fault = !s->qp[q].disturbed;
	const char *kind = status_name(cqe->status);

	if (cqe->status == SKUA_CQE_WR_FLUSH_ERR)
		kind = flush_cause(s, side, kind);
	if (cqe->status == SKUA_CQE_RETRY_EXC_ERR)
		fault = !sd->may_give_up && !s->qp[q].disturbed && !sim_is_off(s, SIM_CHECK_RETRY);
	else if (cqe->status == SKUA_CQE_RNR_RETRY_EXC_ERR)
		fault = !sd->may_starve && !s->qp[q].disturbed;
	s->qp[q].disturbed = true;
	if (fault)
		sim_fail(s, kind, "QP %u %c message %u of %u bytes: status %u, "
			 "vendor_err %u", q, 'a' + side, k, sd->msg[k].len, cqe->status, cqe->vendor_err);
}

static uint8_t cqe_opcode(uint8_t wqe)
{
	static const uint8_t of[] = {
		[SKUA_WQE_SEND] = SKUA_CQE_SEND, [SKUA_WQE_SEND_IMM] = SKUA_CQE_SEND,
		[SKUA_WQE_WRITE] = SKUA_CQE_WRITE, [SKUA_WQE_WRITE_IMM] = SKUA_CQE_WRITE,
		[SKUA_WQE_READ] = SKUA_CQE_READ, [SKUA_WQE_CMP_SWAP] = SKUA_CQE_CMP_SWAP,
		[SKUA_WQE_FETCH_ADD] = SKUA_CQE_FETCH_ADD, [SKUA_WQE_FLUSH] = SKUA_CQE_FLUSH,
		[SKUA_WQE_ATOMIC_WRITE] = SKUA_CQE_ATOMIC_WRITE, [SKUA_WQE_MASKED_CMP_SWAP] = SKUA_CQE_MASKED_CMP_SWAP,
		[SKUA_WQE_MASKED_FETCH_ADD] = SKUA_CQE_MASKED_FETCH_ADD,
	};

	return of[wqe];
}

static void send_done(struct sim *s, unsigned int q, unsigned int side, const struct skua_cqe *cqe)
{
	struct sim_side *sd = &s->qp[q].side[side];
	unsigned int k = le32toh(cqe->cookie), first = sd->completed;
	bool success = cqe->status == SKUA_CQE_SUCCESS;
	uint64_t since, bytes = 0;

	/* Those that register for messages are told of if they are flushed; so is their message. */
	if (sd->fast && (cqe->opcode == SKUA_CQE_LOCAL_INV || cqe->opcode == SKUA_CQE_REG_MR)) {
		if (cqe->status != SKUA_CQE_WR_FLUSH_ERR || k < sd->completed || k >= sd->posted)
			sim_fail(s, "registration", "QP %u %c message %u, after %u of %u: opcode %u, status %u, "
				 "vendor_err %u", q, 'a' + side, k, sd->completed, sd->posted, cqe->opcode,
				 cqe->status, cqe->vendor_err);
		return;
	}
	if (k < sd->completed || k >= sd->posted || (sd->failed && k != sd->completed) ||
	    (success && !(sd->msg[k].flags & SKUA_WQE_SIGNALED)) ||
	    cqe->opcode != cqe_opcode(sd->msg[k].opcode)) {
		sim_fail(s, "order", "QP %u %c completes message %u (opcode %u, status %u), after %u of %u",
			 q, 'a' + side, k, cqe->opcode, cqe->status, sd->completed, sd->posted);
		return;
	}
	if (sd->failed) {
		if (cqe->status != SKUA_CQE_WR_FLUSH_ERR)
			sim_fail(s, "not-flushed", "QP %u %c message %u after an error: status %u", q,
				 'a' + side, k, cqe->status);
		sd->completed++;
		return;
	}
	since = sd->msg[first].posted_at > sd->last_progress ? sd->msg[first].posted_at :
		sd->last_progress;
	for (; sd->completed < k + success; sd->completed++) {
		if (sd->completed < k && sd->msg[sd->completed].flags & SKUA_WQE_SIGNALED)
			sim_fail(s, "order", "QP %u %c completes message %u, but not %u", q, 'a' + side,
				 k, sd->completed);
		bytes += sd->msg[sd->completed].len;
		verify(s, q, side, sd->completed);
	}
	sd->last_progress = sim_now(s);
	if (!success) {
		sd->failed = true;
		sd->completed = k + 1;
		judge(s, q, side, k, cqe);
		return;
	}
	if (s->qp[q].type == SKUA_QPT_RC)
		sim_check_fair(s, q, side, sim_now(s) - since, bytes, k + 1 - first);
}

static void uc_received(struct sim *s, unsigned int q, unsigned int side, unsigned int k,
			const struct skua_cqe *cqe)
{
	const struct sim_side *peer = &s->qp[q].side[!side];
	uint32_t imm = be32toh(cqe->imm_data);
	unsigned int i = imm & 0x7fff;
	const struct sim_msg *m = i < peer->posted ? &peer->msg[i] : NULL;
	bool good = m && m->imm == imm && le32toh(cqe->byte_len) == m->len;

	/* A receive is posted before its message is known, so it has a region in any case. */
	if (good && m->opcode == SKUA_WQE_SEND_IMM)
		good = !memcmp(region_at(s, side, s->qp[q].side[side].recv[k].region),
			       sim_pattern() + m->content, m->len);
	if (!good)
		sim_fail(s, "uc-data", "QP %u %c receive %u: imm 0x%x, %u bytes", q, 'a' + side, k, imm,
			 le32toh(cqe->byte_len));
}

/* Receive @k of a side, which goes to @region. */
static void rc_received(struct sim *s, unsigned int q, unsigned int side, unsigned int k, int region,
			const struct skua_cqe *cqe)
{
	const struct sim_side *sd = &s->qp[q].side[side];
	const struct sim_msg *m = &s->qp[q].side[!side].msg[sd->recv[k].msg];
	bool write = m->opcode == SKUA_WQE_WRITE_IMM, imm = write || m->opcode == SKUA_WQE_SEND_IMM;

	if ((unsigned int)sd->recv[k].msg >= s->qp[q].side[!side].posted) {
		sim_fail(s, "twice", "QP %u %c receive %u completes before its SEND is posted", q,
			 'a' + side, k);
		return;
	}
	if (cqe->opcode != (write ? SKUA_CQE_RECV_WRITE_IMM : SKUA_CQE_RECV) ||
	    le32toh(cqe->byte_len) != m->len || !(cqe->flags & SKUA_CQE_WITH_IMM) == imm ||
	    (imm && be32toh(cqe->imm_data) != m->imm))
		sim_fail(s, "receive", "QP %u %c receive %u: opcode 0x%x, %u bytes, not %u", q, 'a' + side,
			 k, cqe->opcode, le32toh(cqe->byte_len), m->len);
	else if (!whole(s, side, write ? m->target : region, m->len))
		sim_fail(s, "receive-data", "QP %u %c receive %u of %u bytes", q, 'a' + side, k, m->len);
}

/* The error of a receive is a fault unless its QP turns out to have failed for a good reason. */
static void recv_done(struct sim *s, unsigned int q, unsigned int side, const struct skua_cqe *cqe)
{
	struct sim_side *sd = &s->qp[q].side[side];
	unsigned int k = le32toh(cqe->cookie);
	bool success = cqe->status == SKUA_CQE_SUCCESS;

	if (sd->srq || k != sd->recvs_done || k >= sd->recvs_posted || (success && sd->recv_failed)) {
		sim_fail(s, "receive-order", "QP %u %c completes receive %u (status %u), after %u of %u", q,
			 'a' + side, k, cqe->status, sd->recvs_done, sd->recvs_posted);
		return;
	}
	sd->recvs_done++;
	sd->recv_failed = !success;
	if (!success)
		return;
	s->qp[q].side[!side].last_progress = sim_now(s);
	if (s->qp[q].type == SKUA_QPT_UC)
		uc_received(s, q, side, k, cqe);
	else
		rc_received(s, q, side, k, sd->recv[k].region, cqe);
}

/* Of an entry of an SRQ: each has one CQE, in any order, of any side that uses the SRQ. */
static void entry_done(struct sim *s, unsigned int q, unsigned int side, const struct skua_cqe *cqe)
{
	struct sim_side *sd = &s->qp[q].side[side];
	struct sim_srq *srq = &s->node[side].srq;
	unsigned int entry = le32toh(cqe->cookie), k = sd->recvs_done;
	bool success = cqe->status == SKUA_CQE_SUCCESS;

	if (!sd->srq || entry >= srq->posted || srq->done[entry] || sd->recv_failed || (success && k >= sd->nrecvs)) {
		sim_fail(s, "entry", "QP %u %c completes entry %u (status %u), after %u of %u, and %u receives of %u",
			 q, 'a' + side, entry, cqe->status, srq->num_done, srq->posted, k, sd->nrecvs);
		return;
	}
	srq->done[entry] = true;
	srq->num_done++;
	sd->recv_failed = !success;
	if (!success)
		return;
	sd->recvs_done++;
	s->qp[q].side[!side].last_progress = sim_now(s);
	s->node[side].region[srq->region[entry]].content = s->qp[q].side[!side].msg[sd->recv[k].msg].content;
	rc_received(s, q, side, k, srq->region[entry], cqe);
}

static void after_poll(struct sim *s)
{
	for (unsigned int q = 0; q < s->nqps; q++) {
		for (unsigned int side = 0; side < 2 && s->qp[q].on; side++) {
			struct sim_side *sd = &s->qp[q].side[side], *peer = &s->qp[q].side[!side];

			if (s->qp[q].type == SKUA_QPT_RC && peer->recvs_done < sd->sends_done)
				sim_fail(s, "no-receive", "QP %u %c: receive %u did not complete, but its SEND",
					 q, 'a' + side, sd->sends_done - 1);
			if (sd->recv_failed && !s->qp[q].disturbed)
				sim_fail(s, flush_cause(s, side, "receive-status"),
					 "QP %u %c: receive %u has an error", q, 'a' + side,
					 sd->recvs_done - 1);
		}
	}
}

/* The handle is that of the SRQ. */
static unsigned int user_of_srq(const struct sim *s, unsigned int side, const struct skua_cqe *cqe)
{
	for (unsigned int q = 0; q < s->nqps && le64toh(cqe->qp_handle) == SIM_SRQ_HANDLE; q++)
		if (s->qp[q].on && s->qp[q].side[side].q.qpn == le32toh(cqe->qpn))
			return q;
	return SIM_QPS;
}

static void done(struct sim *s, unsigned int side, const struct skua_cqe *cqe)
{
	bool shared = cqe->flags & SKUA_CQE_FROM_SRQ;
	unsigned int q = shared ? user_of_srq(s, side, cqe) : (unsigned int)le64toh(cqe->qp_handle);

	if (q >= s->nqps || !s->qp[q].on || s->qp[q].side[side].gone)
		sim_fail(s, "ghost", "node %c: a completion of QP %u, which is gone", 'a' + side, q);
	else if (shared)
		entry_done(s, q, side, cqe);
	else if (cqe->opcode & SKUA_CQE_OPCODE_RECV)
		recv_done(s, q, side, cqe);
	else
		send_done(s, q, side, cqe);
}

bool sim_poll(struct sim *s)
{
	struct skua_cqe *cqe;
	bool any = false;

	for (unsigned int side = 0; side < 2; side++) {
		for (; (cqe = poll_cq(&s->w->n[side])); any = true)
			done(s, side, cqe);
	}
	if (any)
		after_poll(s);
	return any;
}

/* The word that the messages of a side change: its value is that after so many of them, where all
 * that were completed are among these. */
static void check_word(struct sim *s, unsigned int q, unsigned int side)
{
	const struct sim_side *sd = &s->qp[q].side[side];
	uint64_t value = word_at(s, !side, s->node[!side].word[q]), v = 0;
	bool good = false;

	for (unsigned int k = 0; k <= sd->posted; k++) {
		const struct sim_msg *m = &sd->msg[k];

		good |= k >= (sd->failed || sd->gone ? 0 : sd->completed) && v == value;
		if (k == sd->posted || m->shared)
			continue;
		if (sim_is_atomic(m->opcode) || m->opcode == SKUA_WQE_ATOMIC_WRITE)
			v = m->new;
	}
	if (!good)
		sim_fail(s, "atomic-count", "QP %u %c: the word of its atomics is 0x%llx", q, 'a' + side,
			 (unsigned long long)value);
}

static void check_shared(struct sim *s, unsigned int node)
{
	uint64_t value = word_at(s, node, s->node[node].shared_word), open = 0;

	for (unsigned int q = 0; q < s->nqps; q++) {
		const struct sim_side *sd = &s->qp[q].side[!node];

		/* Of those that failed, were flushed or went with their QP, some may have been done. */
		for (unsigned int k = s->qp[q].disturbed ? 0 : sd->completed; k < sd->posted; k++)
			open += sd->msg[k].shared;
	}
	if (value < s->node[node].shared_done || value > s->node[node].shared_done + open)
		sim_fail(s, "atomic-count", "node %c: the word of all atomics is %llu, and %llu were completed",
			 'a' + node, (unsigned long long)value,
			 (unsigned long long)s->node[node].shared_done);
}

static void check_region(struct sim *s, unsigned int node, const struct sim_region *r)
{
	const uint8_t *p = sim_arena(node) + r->offset, *want = sim_pattern() + r->content;

	if (r->expect == SIM_ANY || !memcmp(p, want, r->len))
		return;
	for (uint32_t i = 0; i < r->len; i++) {
		if (p[i] != want[i] && (r->expect == SIM_WHOLE || p[i] != SIM_GUARD_BYTE)) {
			sim_fail(s, "stray-write", "node %c: byte %u of %u at 0x%x", 'a' + node, i, r->len,
				 r->offset);
			return;
		}
	}
}

static void check_guard(struct sim *s, unsigned int node, uint32_t from, uint32_t to)
{
	const uint8_t *p = sim_arena(node);

	/* Each byte is the same as the next. */
	if (p[from] == SIM_GUARD_BYTE && !memcmp(p + from, p + from + 1, to - from - 1))
		return;
	for (uint32_t i = from; i < to; i++) {
		if (p[i] != SIM_GUARD_BYTE) {
			sim_fail(s, "guard", "node %c: a byte outside of all targets at 0x%x", 'a' + node, i);
			return;
		}
	}
}

void sim_check_memory(struct sim *s)
{
	for (unsigned int node = 0; node < 2; node++) {
		uint32_t from = 0;

		sim_odp_touch(s, node, 0, s->node[node].used);
		for (uint32_t i = 0; i < s->node[node].nregions; i++) {
			const struct sim_region *r = &s->node[node].region[i];

			check_guard(s, node, from, r->offset);
			check_region(s, node, r);
			from = r->offset + r->len;
		}
		check_guard(s, node, from, s->node[node].used);
		check_shared(s, node);
		for (unsigned int q = 0; q < s->nqps; q++)
			if (s->qp[q].on && s->qp[q].type == SKUA_QPT_RC)
				check_word(s, q, !node);
	}
}
