// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The hosts of nodes whose memory is on demand: they bring the pages that the device asks for, refuse some, and take
 * others away.
 */
#include "harness/sim.h"

#define PAGE		4096u
#define ARENA_PAGES	(SIM_ARENA / PAGE)
#define AWAY_BYTE	0xa7		/* where a page is away */
#define EVICT_MOST	16u		/* pages at a time, if not all */

static struct arena {
	uint8_t *saved;			/* what stood in the pages that are away */
	bool away[ARENA_PAGES];
} arenas[2];

static void page_out(unsigned int node, uint32_t page)
{
	uint8_t *at = sim_arena(node) + page * PAGE;
	struct arena *a = &arenas[node];

	if (a->away[page])
		return;
	memcpy(a->saved + page * PAGE, at, PAGE);
	memset(at, AWAY_BYTE, PAGE);
	a->away[page] = true;
}

static void page_in(struct sim *s, unsigned int node, uint32_t page)
{
	uint8_t *at = sim_arena(node) + page * PAGE;
	struct arena *a = &arenas[node];

	if (!a->away[page])
		return;
	if (at[0] != AWAY_BYTE || memcmp(at, at + 1, PAGE - 1))
		sim_fail(s, "absent-page", "node %c: the device has written to page %u, which it has not", 'a' + node, page);
	memcpy(at, a->saved + page * PAGE, PAGE);
	a->away[page] = false;
}

void sim_odp_touch(struct sim *s, unsigned int node, uint32_t offset, uint32_t len)
{
	if (!s->node[node].odp.on || !len)
		return;
	for (uint32_t page = offset / PAGE; page <= (offset + len - 1) / PAGE; page++)
		page_in(s, node, page);
}

/* Pages of an MR become absent. */
static void drop(struct sim *s, unsigned int node, uint32_t key, uint32_t first, uint32_t count)
{
	must(s->w, &s->w->n[node], pages_cmd(key, first, count, 0));
	for (uint32_t i = 0; i < count && key == s->node[node].dst_key; i++)
		page_out(node, first + i);
}

static uint32_t pages_in_use(const struct sim_node *sn)
{
	return (sn->used + PAGE - 1) / PAGE;
}

void sim_odp_create(struct sim *s, unsigned int node)
{
	struct sim_odp *o = &s->node[node].odp;
	struct arena *a = &arenas[node];

	if (!o->on)
		return;
	if (!a->saved)
		a->saved = malloc(SIM_ARENA);
	assert_non_null(a->saved);
	memset(a->away, false, sizeof(a->away));
	for (uint32_t page = 0; page < pages_in_use(&s->node[node]); page++)
		page_out(node, page);
	o->next_eviction = o->evicts_every;
}

static struct sim_side *side_of(struct sim *s, unsigned int node, const struct skua_fault_eqe *fault)
{
	uint64_t q = le64toh(fault->handle);

	return q < s->nqps && s->qp[q].on && s->qp[q].side[node].q.qpn == le32toh(fault->qpn) ? &s->qp[q].side[node] : NULL;
}

/* More page faults than twice the pages of all messages, and some for each QP when pages went, have no reason. */
static unsigned int most_faults(const struct sim *s, const struct sim_odp *o)
{
	unsigned int pages = 0;

	for (unsigned int q = 0; q < s->nqps; q++)
		for (unsigned int side = 0; side < 2; side++)
			for (unsigned int k = 0; k < s->qp[q].side[side].nmsgs; k++)
				pages += s->qp[q].side[side].msg[k].len / PAGE + 2;
	return 2 * pages + 4 * o->evicted * s->nqps + 64;
}

static void begin(struct sim *s, unsigned int node, const struct skua_fault_eqe *fault)
{
	struct sim_odp *o = &s->node[node].odp;
	struct sim_side *sd = side_of(s, node, fault);

	if (!sd) {
		sim_fail(s, "fault-ghost", "node %c: a page fault of QP %u, which is none", 'a' + node, le32toh(fault->qpn));
		return;
	}
	o->fault = *fault;
	o->until = sim_now(s) + o->takes;
	o->faults++;
	sd->page_faults++;
	if (o->faults > most_faults(s, o))
		sim_fail(s, "fault-storm", "node %c: %u page faults", 'a' + node, o->faults);
	if (o->frees_early)
		fault_queue_free(&s->w->n[node], &o->q);
}

/* The pages of the page fault, or the first of them. */
static void bring(struct sim *s, unsigned int node)
{
	struct sim_odp *o = &s->node[node].odp;
	struct node *n = &s->w->n[node];
	uint32_t key = le32toh(o->fault.key);
	bool arena = key == s->node[node].dst_key;
	uint64_t base = arena ? SIM_DST_IOVA : SIM_SRC_IOVA, size = arena ? SIM_ARENA : SIM_PATTERN;
	uint64_t offset = le64toh(o->fault.addr) - base, length = le64toh(o->fault.length), flags = SKUA_PL_PRESENT;
	uint32_t first = (uint32_t)(offset / PAGE), count;
	uint64_t *entries = at(n, o->q.list);

	if ((!arena && key != s->node[node].src_key) || offset >= size || !length || length > size - offset) {
		sim_fail(s, "fault-range", "node %c: a page fault at 0x%llx, %llu bytes, key 0x%x", 'a' + node,
			 (unsigned long long)le64toh(o->fault.addr), (unsigned long long)length, key);
		return;
	}
	if (arena && s->node[node].deregistered)
		return;
	count = (uint32_t)((offset + length - 1) / PAGE) - first + 1;
	if (count > o->most)
		count = o->most;
	if (!arena || (!o->fault.write && sim_random(&o->random) % 3 == 0))
		flags |= SKUA_PL_READ_ONLY;
	for (uint32_t i = 0; i < count; i++) {
		if (arena)
			page_in(s, node, first + i);
		entries[i] = htole64((base + (uint64_t)(first + i) * PAGE) | flags);
	}
	must(s->w, n, pages_cmd(key, first, count, o->q.list));
}

/* A page fault of a QP that is in error or gone is over (ODP-13). */
static void resume(struct sim *s, unsigned int node, uint8_t result)
{
	struct sim_odp *o = &s->node[node].odp;
	struct sim_side *sd = side_of(s, node, &o->fault);
	struct skua_cmd cmd = resume_cmd(o->fault, result);
	bool over = !sd->qp || sd->qp->state == SKUA_QPS_ERR || sd->qp->state == SKUA_QPS_RESET;
	int status = command(s->w, &s->w->n[node], &cmd);

	sd->resumed += o->fault.side == SKUA_PAGE_FAULT_REQUESTER;
	if (over ? status != SKUA_CMD_BAD_OBJECT : status)
		sim_fail(s, "fault-resume", "node %c: the end of a page fault of QP %u: status %d", 'a' + node,
			 le32toh(o->fault.qpn), status);
}

static void serve(struct sim *s, unsigned int node)
{
	struct sim_odp *o = &s->node[node].odp;

	if (o->faults == o->refused) {
		s->qp[le64toh(o->fault.handle)].disturbed = true;
		resume(s, node, SKUA_PAGE_FAULT_FAIL);
	} else {
		bring(s, node);
		resume(s, node, SKUA_PAGE_FAULT_RETRY);
	}
	o->until = 0;
	if (!o->frees_early)
		fault_queue_free(&s->w->n[node], &o->q);
}

static void evict(struct sim *s, unsigned int node)
{
	struct sim_node *sn = &s->node[node];
	struct sim_odp *o = &sn->odp;
	bool arena = sim_random(&o->random) % 4 > 0, all = sim_random(&o->random) % 4 == 0;
	uint32_t pages = arena ? pages_in_use(sn) : SIM_PATTERN / PAGE, first = 0;

	o->evicted++;
	o->next_eviction = sim_now(s) + o->evicts_every;
	if (arena && sn->deregistered)
		return;
	if (!all) {
		first = (uint32_t)(sim_random(&o->random) % pages);
		pages = pages - first < EVICT_MOST ? pages - first : EVICT_MOST;
	}
	drop(s, node, arena ? sn->dst_key : sn->src_key, first, pages);
}

static bool run_node(struct sim *s, unsigned int node)
{
	struct sim_odp *o = &s->node[node].odp;
	const struct skua_fault_eqe *fault;

	if (o->until && sim_now(s) >= o->until) {
		serve(s, node);
		return true;
	}
	if (!o->until && (fault = fault_queue_next(&s->w->n[node], &o->q))) {
		begin(s, node, fault);
		return true;
	}
	if (o->evicted < o->evictions && sim_now(s) >= o->next_eviction) {
		evict(s, node);
		return true;
	}
	return false;
}

bool sim_odp_run(struct sim *s)
{
	bool any = false;

	for (unsigned int node = 0; node < 2; node++)
		any |= s->node[node].odp.on && run_node(s, node);
	return any;
}

uint64_t sim_odp_next(const struct sim *s)
{
	uint64_t next = TIMER_NEVER;

	for (unsigned int node = 0; node < 2; node++) {
		const struct sim_odp *o = &s->node[node].odp;

		if (o->on && o->until && o->until < next)
			next = o->until;
		if (o->on && o->evicted < o->evictions && o->next_eviction < next)
			next = o->next_eviction;
	}
	return next;
}

void sim_odp_destroy(struct sim *s)
{
	for (unsigned int node = 0; node < 2; node++) {
		struct sim_node *sn = &s->node[node];

		if (!sn->odp.on)
			continue;
		must(s->w, &s->w->n[node], pages_cmd(sn->src_key, 0, SIM_PATTERN / PAGE, 0));
		if (!sn->deregistered)
			must(s->w, &s->w->n[node], pages_cmd(sn->dst_key, 0, ARENA_PAGES, 0));
	}
}
