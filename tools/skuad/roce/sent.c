// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The table of sent packets. Runs come from a list of free ones that the device keeps, as a
 * message between two programs that wait for each other needs one each time.
 */
#include <stdlib.h>

#include "roce/roce.h"
#include "roce/sent.h"

void sent_init(struct sent *s)
{
	*s = (struct sent){ .runs = TAILQ_HEAD_INITIALIZER(s->runs) };
}

bool sent_reserve(struct skua_dev *dev, const struct sent *s)
{
	struct sent_run *run;

	/* A QP that has no run gets one in any case. So it never waits for QPs whose peers do not answer. */
	if ((sent_is_scarce(dev) && !sent_is_empty(s)) || sent_is_full(s))
		return false;
	if (!SLIST_EMPTY(&dev->roce->free_runs))
		return true;
	run = malloc(sizeof(*run));
	if (!run)
		return false;
	SLIST_INSERT_HEAD(&dev->roce->free_runs, run, free);
	return true;
}

bool sent_free_all(struct skua_dev *dev, int32_t *budget)
{
	struct sent_run *run;

	while (*budget > 0 && (run = SLIST_FIRST(&dev->roce->free_runs))) {
		*budget -= LOOK_COST;
		SLIST_REMOVE_HEAD(&dev->roce->free_runs, free);
		free(run);
	}
	return SLIST_EMPTY(&dev->roce->free_runs);
}

/* After sent_reserve(). */
static struct sent_run *take(struct skua_dev *dev, struct sent *s)
{
	struct sent_run *run = SLIST_FIRST(&dev->roce->free_runs);

	SLIST_REMOVE_HEAD(&dev->roce->free_runs, free);
	dev->roce->used_runs++;
	s->num_runs++;
	return run;
}

static void give_back(struct skua_dev *dev, struct sent *s, struct sent_run *run)
{
	s->num_retransmitted -= run->retransmitted;
	TAILQ_REMOVE(&s->runs, run, entry);
	dev->roce->used_runs--;
	s->num_runs--;
	SLIST_INSERT_HEAD(&dev->roce->free_runs, run, free);
}

void sent_charge(struct skua_dev *dev, const struct sent *s)
{
	dev->engine->turn -= (int32_t)s->num_runs * RUN_COST;
}

void sent_clear(struct skua_dev *dev, struct sent *s)
{
	struct sent_run *run;

	sent_charge(dev, s);
	while ((run = TAILQ_FIRST(&s->runs)))
		give_back(dev, s, run);
	for (int i = 0; i < SENT_STATES; i++)
		s->npkts[i] = 0;
}

void sent_add_run(struct skua_dev *dev, struct sent *s, uint32_t psn, uint32_t npkts,
		  bool response, uint64_t now)
{
	struct sent_run *run = take(dev, s);

	*run = (struct sent_run){
		.psn = psn, .npkts = npkts, .send_order = s->next_order, .sent_at = now,
		.first_sent_at = now, .response = response, .first = response, .last = response,
	};
	TAILQ_INSERT_TAIL(&s->runs, run, entry);
}

struct sent_run *sent_find(const struct sent *s, uint32_t psn)
{
	struct sent_run *run;

	TAILQ_FOREACH(run, &s->runs, entry)
		if (psn_add(psn, -run->psn) < run->npkts)
			return run;
	return NULL;
}

struct sent_run *sent_split(struct skua_dev *dev, struct sent *s, struct sent_run *run,
			    uint32_t npkts)
{
	struct sent_run *rest;

	if (!sent_reserve(dev, s))
		return NULL;
	rest = take(dev, s);
	*rest = *run;
	rest->psn = psn_add(run->psn, npkts);
	rest->npkts -= npkts;
	rest->send_order += npkts;
	rest->first = false;
	run->npkts = npkts;
	run->last = false;
	s->num_retransmitted += run->retransmitted;
	TAILQ_INSERT_AFTER(&s->runs, run, rest, entry);
	return rest;
}

/* Do the packets of @run continue those of @before in all that is kept of them? Then they may be one run. */
static bool continues(const struct sent_run *before, const struct sent_run *run)
{
	return before && before->state == run->state && before->send_order + before->npkts == run->send_order &&
	       before->sent_at == run->sent_at && before->first_sent_at == run->first_sent_at &&
	       before->response == run->response && !before->last && !run->first &&
	       before->retransmitted == run->retransmitted && before->was_lost == run->was_lost &&
	       before->accepted == run->accepted && before->is_partial == run->is_partial;
}

struct sent_run *sent_join(struct skua_dev *dev, struct sent *s, struct sent_run *run)
{
	struct sent_run *before = TAILQ_PREV(run, sent_runs, entry);

	if (!continues(before, run))
		return run;
	before->npkts += run->npkts;
	before->last = run->last;
	give_back(dev, s, run);
	return before;
}

void sent_set_state(struct sent *s, struct sent_run *run, enum sent_state state)
{
	s->npkts[run->state] -= run->npkts;
	s->npkts[state] += run->npkts;
	run->state = state;
}

/* Without memory for the rest, all of the run counts as sent: a probe finds out. */
struct sent_run *sent_again(struct skua_dev *dev, struct sent *s, struct sent_run *run,
			    uint32_t npkts, uint64_t now)
{
	struct sent_run *before = TAILQ_PREV(run, sent_runs, entry);

	if (npkts < run->npkts)
		sent_split(dev, s, run, npkts);
	run->was_lost |= run->state == SENT_LOST;
	sent_set_state(s, run, SENT_IN_FLIGHT);
	if (!run->response && run->was_lost && sent_goes_on(s, before, true, now)) {
		before->npkts += run->npkts;
		s->next_order += run->npkts;
		give_back(dev, s, run);
		return before;
	}
	s->num_retransmitted += !run->retransmitted;
	run->retransmitted = true;
	run->sent_at = now;
	run->send_order = s->next_order;
	s->next_order += run->npkts;
	return run;
}

void sent_remove(struct skua_dev *dev, struct sent *s, uint32_t npkts)
{
	struct sent_run *run = TAILQ_FIRST(&s->runs);

	s->npkts[run->state] -= npkts;
	if (npkts == run->npkts) {
		give_back(dev, s, run);
		return;
	}
	run->psn = psn_add(run->psn, npkts);
	run->npkts -= npkts;
	run->send_order += npkts;
	run->first = false;
}
