// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tag matching in random worlds: beside a model of the list, in a storm of packets and operations, and under loss.
 */
#include "core/srq.h"
#include "core/tags.h"
#include "harness/lossy.h"
#include "harness/matching.h"
#include "roce/conn.h"

/* Under loss each message completes its tag once, with its data, and each rendezvous has its FIN. */
static void exactly_once_under_loss(void **state)
{
	struct tags *t = *state;

	IMPAIR(t->a, "drop=10%,dir=in");
	IMPAIR(t->b, "drop=10%,dir=in");
	for (uint32_t i = 0; i < 300; i++) {
		uint32_t number = i % TAGS, handle = i << 16 | number, len = 1 + i * 37 % 4000;

		tag_add(t, handle, i, ALL, 4096);
		if (i % 3) {
			tag_send(t, SKUA_TMH_EAGER, i, 16 + len);
			await_success(t->w, t->a);
		} else {
			post_recv(t->a, t->a->buf + SLOT, 64);
			tag_request(t, i, 16, len, 32);
			/* The FIN may come before the ACK. */
			assert_int_equal(await_success(t->w, t->a)->opcode + await_success(t->w, t->a)->opcode,
					 SKUA_CQE_SEND + SKUA_CQE_RECV);
		}
		for (uint8_t flags = 0; !(flags & SKUA_CQE_TAG_DATA);) {
			struct skua_cqe *cqe = await_success(t->w, t->b);

			assert_int_equal(cqe->opcode, SKUA_CQE_TAG_RECV);
			assert_int_equal(le32toh(cqe->cookie), handle);
			assert_int_equal(cqe->flags & flags & BOTH, 0);
			flags |= cqe->flags & BOTH;
			assert_true(flags & SKUA_CQE_TAG_MATCH);
			if (flags & SKUA_CQE_TAG_DATA)
				assert_int_equal(le32toh(cqe->byte_len), len);
		}
		expect_tag_data(t, number, 16, len);
	}
	assert_true(STAT(t->w, t->a, retransmits) > 10 && STAT(t->w, t->b, retransmits) > 5);
}

/* What the list should be, kept by other means than the device's: an array in the order of the list. */
struct model {
	struct model_tag {
		uint32_t handle, len;
		uint64_t tag, mask;
		bool active;
	} tag[TAGS];
	uint32_t n, generation, unexpected, handled, entries;
	bool used[TAGS];
	uint64_t random;
};

static uint32_t draw(struct model *m, uint32_t below)
{
	m->random = m->random * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(m->random >> 33) % below;
}

static void model_remove(struct model *m, uint32_t i)
{
	m->used[m->tag[i].handle & SKUA_TAG_NUMBER] = false;
	memmove(&m->tag[i], &m->tag[i + 1], (TAGS - 1 - i) * sizeof(m->tag[0]));
	m->n--;
}

static void model_add(struct tags *t, struct model *m)
{
	struct model_tag *tag = &m->tag[m->n];
	uint32_t number = 0;

	if (m->n == TAGS)
		return;
	while (m->used[number])
		number++;
	*tag = (struct model_tag){
		.handle = ++m->generation << 16 | number, .len = draw(m, 2) ? 200 : 6000, .tag = draw(m, 6),
		.mask = (const uint64_t[]){ ALL, 1, 0 }[draw(m, 3)], .active = m->handled == m->unexpected,
	};
	tag_add(t, tag->handle, tag->tag, tag->mask, tag->len);
	m->used[number] = true;
	m->n++;
}

static void model_del(struct tags *t, struct model *m)
{
	uint32_t i = draw(m, TAGS), handle = i < m->n ? m->tag[i].handle : (m->generation + 1) << 16 | i;

	tag_del(t, handle);
	expect_tag_op(t, SKUA_CQE_TAG_DEL, i < m->n ? SKUA_CQE_SUCCESS : SKUA_CQE_TM_ERR,
		      m->handled == m->unexpected ? 0 : SKUA_CQE_TAG_SYNC_REQ);
	if (i < m->n)
		model_remove(m, i);
}

static void model_sync(struct tags *t, struct model *m)
{
	m->handled = draw(m, 3) ? m->unexpected : m->handled;
	tag_sync(t, m->handled);
	for (uint32_t i = 0; i < m->n && m->handled == m->unexpected; i++)
		m->tag[i].active = true;
	expect_tag_op(t, SKUA_CQE_TAG_SYNC, SKUA_CQE_SUCCESS, m->handled == m->unexpected ? 0 : SKUA_CQE_TAG_SYNC_REQ);
}

/* The index of the tag that a message should find; or that there is none: n. */
static uint32_t model_match(const struct model *m, uint64_t tag)
{
	uint32_t i = 0;

	while (i < m->n && !(m->tag[i].active && !((tag ^ m->tag[i].tag) & m->tag[i].mask)))
		i++;
	return i;
}

static void model_send(struct tags *t, struct model *m)
{
	uint64_t tag = draw(m, 6);
	uint32_t i = model_match(m, tag), room = i < m->n ? m->tag[i].len : 6000, len = draw(m, room + 1);
	uint8_t opcode = (const uint8_t[]){ SKUA_TMH_EAGER, SKUA_TMH_RNDV, SKUA_TMH_NO_TAG }[draw(m, 3)];
	uint32_t handle = i < m->n ? m->tag[i].handle : 0, cookie = m->entries;

	if (opcode == SKUA_TMH_NO_TAG || i == m->n) {
		m->entries++;
		m->unexpected += opcode != SKUA_TMH_NO_TAG;
		post_recv(t->b, t->b->buf + TAGS * SLOT, 8192);
	} else {
		model_remove(m, i);
	}
	if (opcode == SKUA_TMH_RNDV) {
		if (m->entries == cookie)
			post_recv(t->a, t->a->buf + BUF_SIZE - 64, 64);
		tag_request(t, tag, 4096, len, 48);
	} else {
		tag_send(t, opcode, tag, 16 + len);
	}
	tag_sent(t);
	if (m->entries != cookie) {
		expect_tag_recv(t, opcode == SKUA_TMH_NO_TAG ? SKUA_CQE_TAG_NONE : SKUA_CQE_TAG_UNEXPECTED,
				SKUA_CQE_SUCCESS, 0, cookie);
		return;
	}
	if (opcode == SKUA_TMH_RNDV) {
		expect_tag(t, SKUA_CQE_TAG_MATCH, handle, tag, 0);
		expect_tag(t, SKUA_CQE_TAG_DATA, handle, tag, len);
		expect(t->w, t->a, SKUA_CQE_RECV, SKUA_CQE_SUCCESS);
	} else {
		expect_tag(t, BOTH, handle, tag, len);
	}
	expect_tag_data(t, handle & SKUA_TAG_NUMBER, opcode == SKUA_TMH_RNDV ? 4096 : 16, len);
}

static void a_model_of_the_list_agrees(void **state)
{
	struct tags *t = *state;
	struct model m = { .random = 1 };

	for (int i = 0; i < 20000; i++) {
		switch (draw(&m, 8)) {
		case 0:
			model_del(t, &m);
			break;
		case 1:
			model_sync(t, &m);
			break;
		case 2:
		case 3:
		case 4:
			model_send(t, &m);
			break;
		default:
			model_add(t, &m);
		}
		expect_none(t->w, t->b);
	}
	assert_true(m.unexpected > 500 && m.generation > 3000);
}

/* The same without order: which numbers are in use, as CQEs tell. */
struct storm {
	bool used[TAGS];
	uint32_t handle[TAGS];		/* of those that are */
	uint32_t added[1u << LOG_SQ];	/* by cookie: the handle of a TAG_ADD or TAG_DEL */
	uint32_t completed, failed, operations;
};

static void storm_free(struct storm *s, uint32_t handle)
{
	uint32_t number = handle & SKUA_TAG_NUMBER;

	assert_true(number < TAGS && s->used[number] && s->handle[number] == handle);
	s->used[number] = false;
}

static void storm_poll(struct tags *t, struct storm *s)
{
	struct skua_cqe *cqe;

	while ((cqe = poll_cq(t->b))) {
		uint32_t handle = le32toh(cqe->cookie);

		assert_int_equal(le64toh(cqe->qp_handle), SRQ_HANDLE);
		if (cqe->opcode == SKUA_CQE_TAG_RECV) {
			assert_true(s->used[handle & SKUA_TAG_NUMBER] && s->handle[handle & SKUA_TAG_NUMBER] == handle);
			if (!cqe->status && !(cqe->flags & SKUA_CQE_TAG_DATA))
				continue;
			s->completed++;
			s->failed += cqe->status && cqe->status != SKUA_CQE_TM_RNDV_INCOMPLETE;
			storm_free(s, handle);
		} else if (cqe->opcode >= SKUA_CQE_TAG_ADD) {
			s->operations++;
			handle = s->added[le32toh(cqe->cookie) & ((1u << LOG_SQ) - 1)];
			if ((cqe->opcode == SKUA_CQE_TAG_DEL && !cqe->status) ||
			    (cqe->opcode == SKUA_CQE_TAG_ADD && cqe->status))
				storm_free(s, handle);
		}
	}
	while (poll_cq(t->a))
		;
}

static void storm_operation(struct tags *t, struct storm *s, struct model *m)
{
	uint32_t number = draw(m, TAGS), handle = ++m->generation << 16 | number;
	struct skua_wqe_tag op = tag_of(t, handle, draw(m, 3), draw(m, 4) ? 1 : 0, 1 + draw(m, 4000));
	uint8_t opcode = SKUA_WQE_TAG_ADD;

	if (s->used[number]) {
		opcode = SKUA_WQE_TAG_DEL;
		op = (struct skua_wqe_tag){ .handle = htole32(s->handle[number]) };
	} else {
		s->used[number] = true;
		s->handle[number] = handle;
	}
	if (!draw(m, 3)) {
		op.flags = htole32(SKUA_TAG_COUNT);
		op.unexpected = htole32(tags_of(numtab_get(&t->b->dev->qps, t->b->qpn))->unexpected - !draw(m, 8));
	}
	if (opcode == SKUA_WQE_TAG_ADD && !draw(m, 30))
		op.rsvd = 1;
	s->added[t->b->sq_pi & ((1u << LOG_SQ) - 1)] = le32toh(op.handle);
	tag_operation(t, opcode, SKUA_WQE_SIGNALED, op);
	if (qp_state(t->w, t->b, t->b->qpn) == SKUA_QPS_SQE)
		must(t->w, t->b, state_cmd(t->b->qpn, SKUA_QPS_RTS));
}

/* The next packet of a message, or one that should not come. */
static void storm_packet(struct tags *t, struct model *m, bool *under_way)
{
	struct skua_qp *qp = numtab_get(&t->b->dev->qps, t->qpn);
	struct skua_rvh rvh = { htobe64(t->a->buf + draw(m, 8192)), htobe32(t->a->key + (draw(m, 20) ? 0 : 256)),
				htobe32(draw(m, 4000)) };
	bool first = draw(m, 30) ? !*under_way : *under_way, last = draw(m, 3);

	tag_header(t, 0, (uint8_t)draw(m, 5), draw(m, 3));
	memcpy(at(t->a, t->a->buf + 16), &rvh, sizeof(rvh));
	tag_packet(t, qp->epsn + !draw(m, 20), first, last, last ? draw(m, 2) ? 32 : draw(m, MTU) : MTU);
	*under_way = conn_of(qp)->message.under_way;
}

static void storm_restart(struct tags *t)
{
	must(t->w, t->b, state_cmd(t->qpn, SKUA_QPS_RESET));
	must(t->w, t->a, state_cmd(t->a->qpn, SKUA_QPS_RESET));
	t->a->rq_pi = 0;
	host_store32(at(t->a, t->a->rq_dbr), 0);
	tags_connect(t);
}

/* Each tag that was added ends once, whatever comes and whenever the QP goes. */
static void each_tag_ends_once_in_a_storm(void **state)
{
	struct tags *t = *state;
	struct storm s = { 0 };
	struct model m = { .random = 7 };
	bool under_way = false;

	for (int i = 0; i < 20000; i++) {
		if (draw(&m, 3)) {
			storm_packet(t, &m, &under_way);
		} else {
			storm_operation(t, &s, &m);
		}
		if (!draw(&m, 3) && t->a->rq_pi - ((struct skua_qp *)numtab_get(&t->a->dev->qps, t->a->qpn))->rq.ci < 32)
			post_recv(t->a, t->a->buf + SLOT, 64);
		if (draw(&m, 3) && t->b->rq_pi -
		    ((struct skua_qp *)numtab_get(&t->b->dev->qps, t->qpn))->rq.srq->rq.ci < 32)
			post_recv(t->b, t->b->buf + TAGS * SLOT, 4096);
		if (!draw(&m, 200))
			pass(t->w, 100000000);
		if (qp_state(t->w, t->b, t->qpn) != SKUA_QPS_RTS || !draw(&m, 100)) {
			storm_restart(t);
			under_way = false;
		}
		storm_poll(t, &s);
	}
	must(t->w, t->b, object_cmd(SKUA_CMD_DESTROY_QP, t->qpn));
	storm_poll(t, &s);
	for (uint32_t i = 0; i < TAGS; i++)
		assert_int_equal(tags_of(numtab_get(&t->b->dev->qps, t->b->qpn))->tags[i].state,
				 s.used[i] ? TAG_LISTED : TAG_FREE);
	assert_true(s.completed > 500 && s.failed > 50 && s.operations > 3000);
}

#define TEST(f, rules)	{ rules ": " #f, f, tags_setup, tags_teardown, NULL }

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(exactly_once_under_loss, "TAG-8 TAG-10"),
		TEST(a_model_of_the_list_agrees, "TAG-5 TAG-6"),
		TEST(each_tag_ends_once_in_a_storm, "TAG-8 TAG-14"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
