// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Sparse arrays: a tree of tables, each of which is charged to the page quota until its memory is freed. A table without
 * entries is taken out of the tree.
 */
#include <stdlib.h>

#include "core/device.h"
#include "core/sparse.h"

#define TABLE_COST	1024	/* to free one, as steps are charged */

struct sparse_table {
	union {
		uint64_t entry[SPARSE_SIZE];		/* level 0 */
		struct sparse_table *below[SPARSE_SIZE];
	};
	struct sparse_table *next_old;	/* that nothing refers to, either */
	uint16_t used;			/* entries that are not absent */
	uint8_t level;
};

/* Place of entry @i in a table of this level. */
static unsigned int slot(uint64_t i, unsigned int level)
{
	return i >> (SPARSE_LOG * level) & (SPARSE_SIZE - 1);
}

void sparse_init(struct sparse *s, uint64_t last)
{
	*s = (struct sparse){ .levels = 1 };
	while (last >>= SPARSE_LOG)
		s->levels++;
}

/* The table with entry @i, or NULL. */
static struct sparse_table *leaf_of(const struct sparse *s, uint64_t i)
{
	struct sparse_table *t = s->root;

	while (t && t->level)
		t = t->below[slot(i, t->level)];
	return t;
}

uint64_t sparse_get(const struct sparse *s, uint64_t i)
{
	const struct sparse_table *t = leaf_of(s, i);

	return t ? t->entry[slot(i, 0)] : 0;
}

void sparse_set(struct sparse *s, uint64_t i, uint64_t entry)
{
	struct sparse_table *t = leaf_of(s, i);
	uint64_t *at = &t->entry[slot(i, 0)];

	t->used = (uint16_t)(t->used + !!entry - !!*at);
	*at = entry;
}

static struct sparse_table *make_table(struct skua_dev *dev, unsigned int level)
{
	struct sparse_table *t;

	if (!pages_charge(dev, SPARSE_SIZE))
		return NULL;
	t = calloc(1, sizeof(*t));
	if (!t) {
		dev->pages_used -= SPARSE_SIZE;
		return NULL;
	}
	t->level = (uint8_t)level;
	return t;
}

/* All tables on the way to entry @i. */
static bool make_path(struct skua_dev *dev, struct sparse *s, uint64_t i)
{
	struct sparse_table **at = &s->root, *above = NULL;

	for (unsigned int level = s->levels; level-- > 0;) {
		if (!*at) {
			*at = make_table(dev, level);
			if (!*at)
				return false;
			if (above)
				above->used++;
		}
		above = *at;
		at = &above->below[slot(i, level)];
	}
	return true;
}

bool sparse_reserve(struct skua_dev *dev, struct sparse *s, uint64_t i, uint32_t n)
{
	if (make_path(dev, s, i) && make_path(dev, s, i + n - 1))
		return true;
	sparse_trim(dev, s, i, n);
	return false;
}

static void retire(struct skua_dev *dev, struct sparse_table *t)
{
	t->next_old = dev->old_tables;
	dev->old_tables = t;
}

/* Entries @first to @last of the subtree at *@at, which has them all; if @all, they are all of it. */
static void clear(struct skua_dev *dev, struct sparse_table **at, uint64_t first, uint64_t last, bool all)
{
	struct sparse_table *t = *at;
	uint64_t span, begin, end;

	if (!t)
		return;
	if (!all) {
		span = 1ull << (SPARSE_LOG * t->level);
		for (unsigned int i = slot(first, t->level); i <= slot(last, t->level); i++) {
			if (!t->level) {
				t->used = (uint16_t)(t->used - !!t->entry[i]);
				t->entry[i] = 0;
			} else if (t->below[i]) {
				begin = i == slot(first, t->level) ? first & (span - 1) : 0;
				end = i == slot(last, t->level) ? last & (span - 1) : span - 1;
				clear(dev, &t->below[i], begin, end, !begin && end == span - 1);
				t->used = (uint16_t)(t->used - !t->below[i]);
			}
		}
	}
	if (all || !t->used) {
		*at = NULL;
		retire(dev, t);
	}
}

void sparse_clear(struct skua_dev *dev, struct sparse *s, uint64_t first, uint64_t last)
{
	clear(dev, &s->root, first, last, false);
}

/* Take out the tables on the way to entry @i that have no entries. */
static void trim_path(struct skua_dev *dev, struct sparse *s, uint64_t i)
{
	if (!sparse_get(s, i))
		sparse_clear(dev, s, i, i);
}

void sparse_trim(struct skua_dev *dev, struct sparse *s, uint64_t i, uint32_t n)
{
	trim_path(dev, s, i);
	trim_path(dev, s, i + n - 1);
}

bool sparse_free_old(struct skua_dev *dev, int32_t *budget)
{
	struct sparse_table *t;

	while (*budget > 0 && (t = dev->old_tables)) {
		dev->old_tables = t->next_old;
		for (unsigned int i = 0; t->level && i < SPARSE_SIZE; i++)
			if (t->below[i])
				retire(dev, t->below[i]);
		free(t);
		dev->pages_used -= SPARSE_SIZE;
		*budget -= TABLE_COST;
	}
	return !dev->old_tables;
}
