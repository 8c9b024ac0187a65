// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "harness/verify.h"

#include <sched.h>

#include "harness/lossy.h"

/* Each quarter of the region has one purpose; a message has the slot of its kind in it. */
#define SLOTS		7
#define SLOT		(128u << 10)
#define MAX_LEN		100000u
#define AREA(k)		((k) * (1u << 20))	/* 0: sources, 1: WRITEs, 2: READs, 3: receives */
#define WORD		(AREA(3) + 8 * SLOT - 64)
#define RIGHTS		(ALL_RIGHTS | SKUA_ACCESS_REMOTE_ATOMIC)

static uint64_t at_slot(const struct node *n, unsigned int area, unsigned int slot)
{
	return n->buf + AREA(area) + slot * SLOT;
}

static uint64_t word(struct node *n, uint64_t iova)
{
	uint64_t v;

	memcpy(&v, at(n, iova), 8);
	return le64toh(v);
}

void verify_begin(struct verify *v)
{
	struct world *w = v->w;

	for (int i = 0; i < 2; i++) {
		struct node *n = &w->n[i];
		struct skua_cmd mr = create_mr_cmd(n);
		uint64_t top = take(n, 4096), leaf = take(n, 8192);

		for (uint64_t p = 0; p < 2; p++)
			((uint64_t *)at(n, top))[p] = htole64((leaf + p * 4096) | SKUA_PL_PRESENT);
		for (uint64_t p = 0; p < 1024; p++)
			((uint64_t *)at(n, leaf))[p] = htole64((n->buf + p * 4096) | SKUA_PL_PRESENT);
		mr.create_mr.access = htole32(RIGHTS);
		mr.create_mr.length = htole64(BUF_SIZE);
		mr.create_mr.pages = (struct skua_pagelist){
			.npages = htole32(1024), .level = 2, .log_page = 12,
			.addr[0] = htole64(top | SKUA_PL_PRESENT) };
		n->key = must(w, n, mr);
		must(w, n, modify_cmd(n->qpn, SKUA_QP_ATTR_ACCESS, (struct skua_qp_attr){
			.access = htole32(RIGHTS & ~SKUA_ACCESS_LOCAL_WRITE) }));
	}
}

static void post_atomic(struct node *n, struct node *peer, unsigned int slot, bool swap,
			uint64_t value, uint64_t compare)
{
	struct {
		struct skua_wqe_ctrl ctrl;
		struct skua_wqe_atomic atomic;
		struct skua_sge sge;
	} block = {
		.ctrl = { .opcode = swap ? SKUA_WQE_CMP_SWAP : SKUA_WQE_FETCH_ADD,
			  .flags = SKUA_WQE_SIGNALED, .nblocks = 1, .num_sge = 1 },
		.atomic = { htole64(peer->buf + WORD + 8 * swap), htole32(peer->key), 0,
			    htole64(value), htole64(compare) },
		.sge = { htole64(at_slot(n, 2, slot)), htole32(8), htole32(n->key) },
	};

	post_block(n, &block);
}

static void post_kind(struct node *n, struct node *peer, unsigned int kind, uint32_t len,
		      uint64_t round)
{
	uint64_t from = at_slot(n, 0, kind);

	switch (kind) {
	case 0:
	case 4:
		post(n, kind ? SKUA_WQE_WRITE_IMM : SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, from, len,
		     at_slot(peer, 1, kind), peer->key, kind ? 77 : 0);
		break;
	case 1:
		post(n, SKUA_WQE_READ, SKUA_WQE_SIGNALED, at_slot(n, 2, kind), len,
		     at_slot(peer, 0, kind), peer->key, 0);
		break;
	case 2:
	case 3:
		post(n, kind == 2 ? SKUA_WQE_SEND : SKUA_WQE_SEND_IMM, SKUA_WQE_SIGNALED, from, len,
		     0, 0, kind == 2 ? 0 : 88);
		break;
	case 5:
		post_atomic(n, peer, kind, false, 3, 0);
		break;
	default:
		post_atomic(n, peer, kind, true, round + 1, round);
	}
}

static void check_word(const struct verify *v, uint64_t got, uint64_t want)
{
	if (got != want)
		fail_msg("%s: an atomic fetched %llu, not %llu", v->name, (unsigned long long)got,
			 (unsigned long long)want);
}

static void check_bytes(const struct verify *v, unsigned int kind, const uint8_t *got, const uint8_t *want,
			uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		if (got[i] != want[i])
			fail_msg("%s: kind %u, byte %u of %u is wrong", v->name, kind, i, len);
}

static void check_kind(struct verify *v, struct node *n, struct node *peer, unsigned int kind, uint32_t len,
		       uint64_t round)
{
	static const uint8_t area[] = { 1, 2, 3, 3, 1 };

	if (kind == 5)
		check_word(v, word(n, at_slot(n, 2, kind)), 3 * round);
	else if (kind == 6)
		check_word(v, word(n, at_slot(n, 2, kind)), round);
	else if (kind == 1)
		check_bytes(v, kind, at(n, at_slot(n, 2, kind)), at(peer, at_slot(peer, 0, kind)), len);
	else
		check_bytes(v, kind, at(peer, at_slot(peer, area[kind], kind)), at(n, at_slot(n, 0, kind)),
			    len);
}

static void wait_for(struct verify *v, int count)
{
	struct world *w = v->w;
	struct skua_cqe *cqe;

	while (count) {
		for (int i = 0; i < 2; i++)
			for (; (cqe = poll_cq(&w->n[i])); count--)
				if (cqe->status != SKUA_CQE_SUCCESS)
					fail_msg("%s: opcode %u of node %d ended with status %u, %u", v->name,
						 cqe->opcode, i, cqe->status, cqe->vendor_err);
		if (!count)
			break;
		if (v->turn)
			v->turn(v);
		else if (w->threaded)
			sched_yield();
		else
			next_event(w);
	}
}

uint64_t verify_round(struct verify *v, uint64_t round)
{
	struct world *w = v->w;
	uint32_t len[2][SLOTS];
	uint64_t bytes = 0, z = round * 0x9e3779b97f4a7c15u;

	for (int i = 0; i < 2; i++) {
		struct node *n = &w->n[i];

		for (unsigned int k = 0; k < SLOTS; k++) {
			uint64_t *p = at(n, at_slot(n, 0, k));

			z = (z ^ z >> 27) * 0x94d049bb133111ebu + k;
			len[i][k] = 1 + (uint32_t)(z >> 33) % MAX_LEN;
			/* A READ that was repeated may be served once more when it is complete: what it
			 * reads stays as it is, and its target begins anew. */
			for (uint32_t b = 0; b < (k != 1 ? len[i][k] : round ? 0 : MAX_LEN); b += 8)
				*p++ = z += 0x9e3779b97f4a7c15u;
		}
		memset(at(n, at_slot(n, 2, 1)), 0xee, MAX_LEN);
	}
	for (unsigned int k = 2; k <= 4; k++)
		for (int i = 0; i < 2; i++)
			post_recv(&w->n[i], at_slot(&w->n[i], 3, k), MAX_LEN);
	for (int i = 0; i < 2; i++)
		for (unsigned int k = 0; k < SLOTS; k++) {
			/* Receives are taken in the order in which they were posted. */
			static const uint8_t order[3][SLOTS] = {
				{ 0, 1, 2, 3, 4, 5, 6 }, { 5, 2, 1, 6, 3, 0, 4 },
				{ 2, 0, 3, 5, 1, 4, 6 },
			};
			unsigned int kind = order[round % 3][k];

			post_kind(&w->n[i], &w->n[!i], kind, len[kind == 1 ? !i : i][kind], round);
			bytes += len[i][kind];
		}
	wait_for(v, 2 * (SLOTS + 3));
	for (int i = 0; i < 2; i++)
		for (unsigned int k = 0; k < SLOTS; k++)
			check_kind(v, &w->n[i], &w->n[!i], k, len[k == 1 ? !i : i][k], round);
	return bytes;
}
