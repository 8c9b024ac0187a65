// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Packets that came before their time. They are copied and held. The QP gets them when all packets before them have
 * come, as if they had come only then. So no other file has to know of them, and memory is written in the order of the
 * message (MEM-11), also by atomics.
 *
 * There is a slot for each PSN of the window. A packet whose copy came another way stays in its slot until another PSN
 * needs the slot.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "roce/reorder.h"
#include "roce/roce.h"

struct held {
	struct train train;
	uint32_t bytes;			/* that are allocated: up to the first run of the payload, and its data */
	struct seglist payload;		/* of one run, so there is no room for others */
};

#define HELD_HEAD	offsetof(struct held, payload.seg[1])

struct reorder {
	unsigned int n;
	uint32_t end;			/* PSN behind the last of them */
	struct held *slot[REPEAT_WINDOW];
};

static struct held **slot_of(struct reorder *r, uint32_t psn)
{
	return &r->slot[psn % REPEAT_WINDOW];
}

static void slot_free(struct skua_dev *dev, struct reorder *r, struct held **slot)
{
	dev->roce->held_bytes -= (*slot)->bytes;
	r->n--;
	free(*slot);
	*slot = NULL;
}

static struct held *copy_of(const struct train *t)
{
	uint32_t len = t->payload ? t->payload->bytes : 0;
	struct held *h = malloc(HELD_HEAD + len);
	uint8_t *p;

	if (!h)
		return NULL;
	h->bytes = (uint32_t)HELD_HEAD + len;
	h->train = *t;
	h->train.path = NULL;
	h->train.ip = NULL;
	h->train.payload = NULL;
	if (!len)
		return h;
	h->train.payload = &h->payload;
	h->payload.n = 1;
	h->payload.bytes = len;
	p = (uint8_t *)h + HELD_HEAD;
	h->payload.seg[0] = (struct seg){ p, len };
	for (unsigned int i = 0; i < t->payload->n; i++) {
		memcpy(p, t->payload->seg[i].p, t->payload->seg[i].len);
		p += t->payload->seg[i].len;
	}
	return h;
}

bool reorder_hold(struct skua_dev *dev, struct reorder **rp, uint32_t expected,
		  const struct train *t)
{
	struct reorder *r = *rp;
	struct held **slot, *h;

	if (t->npkts != 1 || psn_diff(t->psn, expected) > REPEAT_WINDOW)
		return false;
	if (!r) {
		r = *rp = dev->roce->held_bytes < HELD_MAX ? calloc(1, sizeof(*r)) : NULL;
		if (!r)
			return false;
		dev->roce->held_bytes += sizeof(*r);
	}
	slot = slot_of(r, t->psn);
	if (*slot && (*slot)->train.psn == t->psn)
		return true;
	if (*slot)
		slot_free(dev, r, slot);
	h = dev->roce->held_bytes < HELD_MAX ? copy_of(t) : NULL;
	if (!h) {
		if (!r->n)
			reorder_free(dev, rp);
		return false;
	}
	*slot = h;
	dev->roce->held_bytes += h->bytes;
	if (!r->n++ || psn_diff(t->psn, r->end) >= 0)
		r->end = psn_add(t->psn, 1);
	return true;
}

bool reorder_has(const struct reorder *r, uint32_t psn)
{
	const struct held *h = r ? r->slot[psn % REPEAT_WINDOW] : NULL;

	return h && h->train.psn == psn;
}

uint32_t reorder_end(const struct reorder *r)
{
	return r->end;
}

struct train *reorder_take(struct skua_dev *dev, struct reorder **rp, uint32_t psn)
{
	struct reorder *r = *rp;
	struct held **slot, *h;

	if (!reorder_has(r, psn))
		return NULL;
	slot = slot_of(r, psn);
	h = *slot;
	*slot = NULL;
	dev->roce->held_bytes -= h->bytes;
	if (!--r->n)
		reorder_free(dev, rp);
	engine_charge_copy(dev->engine, h->train.payload ? h->payload.bytes : 0);
	return &h->train;
}

void reorder_free(struct skua_dev *dev, struct reorder **rp)
{
	struct reorder *r = *rp;

	if (r)
		dev->engine->turn -= (int32_t)r->n * LOOK_COST;
	for (int i = 0; r && r->n && i < REPEAT_WINDOW; i++)
		if (r->slot[i])
			slot_free(dev, r, &r->slot[i]);
	if (r)
		dev->roce->held_bytes -= sizeof(*r);
	free(r);
	*rp = NULL;
}
