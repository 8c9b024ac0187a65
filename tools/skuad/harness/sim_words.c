// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The names of a world's parts, and a world in words.
 */
#include "harness/sim.h"

static const char *const names[] = {
#define SIM_NAME(name, text) [SIM_##name] = text,
	SIM_PARTS(SIM_NAME)
#undef SIM_NAME
};

const char *sim_part_name(enum sim_part part)
{
	return names[part];
}

static bool parse_one(struct sim_off *off, const char *word)
{
	unsigned int qp;
	char rest;

	if (sscanf(word, "salt%u%c", &off->salt, &rest) == 1)
		return true;

	for (unsigned int i = 0; i < SIM_NUM_PARTS; i++) {
		if (!strcmp(word, names[i])) {
			off->parts |= 1ull << i;
			return true;
		}
	}
	if (sscanf(word, "qp%u%c", &qp, &rest) != 1 || qp >= SIM_QPS)
		return false;
	off->qps |= 1ull << qp;
	return true;
}

bool sim_off_parse(struct sim_off *off, const char *text)
{
	char *copy = strdup(text), *rest = copy, *word;
	bool good = true;

	*off = (struct sim_off){ 0 };
	while (good && (word = strsep(&rest, ",")))
		good = !*word || parse_one(off, word);
	free(copy);
	return good;
}

void sim_off_print(FILE *out, struct sim_off off)
{
	const char *comma = "";

	for (unsigned int i = 0; i < SIM_NUM_PARTS; i++) {
		if (off.parts >> i & 1) {
			fprintf(out, "%s%s", comma, names[i]);
			comma = ",";
		}
	}
	for (unsigned int i = 0; i < SIM_QPS; i++) {
		if (off.qps >> i & 1) {
			fprintf(out, "%sqp%u", comma, i);
			comma = ",";
		}
	}
	if (off.salt)
		fprintf(out, "%ssalt%u", comma, off.salt);
}

static void say_time(FILE *out, uint64_t ns)
{
	if (ns < SIM_MS)
		fprintf(out, "%.1f us", (double)ns / 1e3);
	else if (ns < SIM_S)
		fprintf(out, "%.1f ms", (double)ns / 1e6);
	else
		fprintf(out, "%.2f s", (double)ns / 1e9);
}

static void say_chance(FILE *out, const char *what, uint32_t ppm)
{
	if (ppm)
		fprintf(out, ", %.2f%% %s", ppm / 1e4, what);
}

static void say_line(FILE *out, const struct sim *s, unsigned int i)
{
	const struct sim_line *l = &s->line[i];

	fprintf(out, "  line from %c%s: ", 'a' + i, l->far ? ", at the receiver" : "");
	if (l->rate)
		fprintf(out, "%.0f Mb/s%s", (double)l->rate / 1e6,
			l->in ? " before the receiver, with a queue of 10 ms" : "");
	else
		fprintf(out, "no limit");
	fprintf(out, ", delay ");
	say_time(out, l->delay);
	fprintf(out, " +- ");
	say_time(out, l->jitter);
	say_chance(out, "lost", l->loss);
	say_chance(out, "corrupt", l->corrupt);
	say_chance(out, "duplicated", l->duplicate);
	say_chance(out, "ECN-marked", l->ecn);
	say_chance(out, "reordered", l->reorder);
	if (l->reorder) {
		fprintf(out, " by ");
		say_time(out, l->reorder_by);
	}
	fprintf(out, "%s\n", s->go_back_n[i] ? "; this node has no selective repeat" : "");
}

static void say_odp(FILE *out, const struct sim *s, unsigned int i)
{
	const struct sim_odp *o = &s->node[i].odp;

	if (!o->on)
		return;
	fprintf(out, "  the memory of node %c is on demand: a page fault takes ", 'a' + i);
	say_time(out, o->takes);
	fprintf(out, " and brings up to %u pages", o->most);
	if (o->evictions) {
		fprintf(out, "; pages go %u times, every ", o->evictions);
		say_time(out, o->evicts_every);
	}
	if (o->refused)
		fprintf(out, "; page fault %u is refused", o->refused);
	fprintf(out, "%s\n", o->frees_early ? "; the EQ has room before the pages are there" : "");
}

static void say_event(FILE *out, const struct sim_event *e)
{
	static const char *const kills[] = { "is reset", "goes to ERR", "is destroyed",
					     "'s node deregisters its memory" };

	fprintf(out, "  at ");
	say_time(out, e->at);
	if (e->kind == SIM_EV_KILL) {
		fprintf(out, " QP %u of node %c %s\n", e->qp, 'a' + e->node, kills[e->kill]);
		return;
	}
	fprintf(out, e->kind == SIM_EV_BURST ? " all from node %c is lost for " :
		     e->kind == SIM_EV_LINK ? " the link of node %c is down for " :
		     " the engine pauses for ", 'a' + e->node);
	say_time(out, e->length);
	if (e->kind == SIM_EV_PAUSE && e->rounds)
		fprintf(out, ", after %u rounds of work", e->rounds);
	fprintf(out, "\n");
}

static void say_side(FILE *out, const struct sim_qp *qp, unsigned int side)
{
	static const char *const ops[] = {
		[SKUA_WQE_SEND] = "SEND", [SKUA_WQE_SEND_IMM] = "SEND_IMM",
		[SKUA_WQE_WRITE] = "WRITE", [SKUA_WQE_WRITE_IMM] = "WRITE_IMM",
		[SKUA_WQE_READ] = "READ", [SKUA_WQE_CMP_SWAP] = "CMP_SWAP",
		[SKUA_WQE_FETCH_ADD] = "FETCH_ADD", [SKUA_WQE_FLUSH] = "FLUSH",
		[SKUA_WQE_ATOMIC_WRITE] = "ATOMIC_WRITE", [SKUA_WQE_MASKED_CMP_SWAP] = "MASKED_CMP_SWAP",
		[SKUA_WQE_MASKED_FETCH_ADD] = "MASKED_FETCH_ADD",
	};
	const struct sim_side *sd = &qp->side[side];

	fprintf(out, "    %c: timeout %u (", 'a' + side, sd->timeout);
	say_time(out, sim_timeout(sd));
	fprintf(out, "), retry_cnt %u, rnr_retry %u, min_rnr_timer %u (", sd->retry_cnt,
		sd->rnr_retry, sd->min_rnr_timer);
	say_time(out, sim_rnr_ns(sd->min_rnr_timer));
	fprintf(out, "), max_rd %u, PSN 0x%x, depth %u, %u receives at a time", sd->max_rd, sd->psn,
		sd->depth, sd->recv_depth);
	if (sd->late) {
		fprintf(out, " each later by ");
		say_time(out, sd->late);
	}
	fprintf(out, "%s%s%s%s\n       ", sd->fast ? ", registers memory for each message" : "",
		sd->srq ? ", receives from an SRQ" : "", sd->may_give_up ? ", may end in RETRY_EXC" : "",
		sd->may_starve ? ", may end in RNR_RETRY_EXC" : "");
	for (unsigned int i = 0; i < sd->nmsgs && i < 40; i++) {
		const struct sim_msg *m = &sd->msg[i];

		fprintf(out, " %s%s%s %u%s", i == sd->posted ? "| " : "", ops[m->opcode],
			m->flags & SKUA_WQE_FENCE ? " fenced" : "", m->len,
			m->flags & SKUA_WQE_SIGNALED ? "," : "~");
	}
	fprintf(out, "%s (%u of them, %u posted, %u complete)\n", sd->nmsgs > 40 ? " ..." : "",
		sd->nmsgs, sd->posted, sd->completed);
}

void sim_describe(FILE *out, const struct sim *s)
{
	unsigned int on = 0;

	for (unsigned int i = 0; i < s->nqps; i++)
		on += s->qp[i].on;
	fprintf(out, "world %llu: %u QPs; round trip up to ", (unsigned long long)s->seed, on);
	say_time(out, s->rtt);
	fprintf(out, "%s%s\n", s->calm ? ", calm" : "", s->crowded ? ", crowded" : "");
	for (unsigned int i = 0; i < 2; i++)
		say_line(out, s, i);
	for (unsigned int i = 0; i < 2; i++)
		say_odp(out, s, i);
	for (unsigned int i = 0; i < s->nevents; i++)
		say_event(out, &s->event[i]);
	for (unsigned int i = 0; i < s->nqps; i++) {
		if (!s->qp[i].on)
			continue;
		fprintf(out, "  QP %u: %s, PMTU %u%s\n", i, s->qp[i].xrc ? "XRC" : s->qp[i].type == SKUA_QPT_RC ? "RC" : "UC",
			sim_pmtu(&s->qp[i]), s->qp[i].disturbed ? ", disturbed" : "");
		for (unsigned int side = 0; side < 2; side++)
			say_side(out, &s->qp[i], side);
	}
}
