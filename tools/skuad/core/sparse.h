/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Sparse arrays of page-list entries: the pages of MRs on demand. What is absent is 0, and takes no memory where
 * SPARSE_SIZE neighbours are absent.
 */
#ifndef SKUAD_CORE_SPARSE_H
#define SKUAD_CORE_SPARSE_H

#include <stdbool.h>
#include <stdint.h>

#define SPARSE_LOG	9
#define SPARSE_SIZE	(1u << SPARSE_LOG)	/* entries of a table; its cost in the page quota, too */

struct skua_dev;
struct sparse_table;

struct sparse {
	struct sparse_table *root;	/* NULL: all are absent */
	uint8_t levels;			/* of tables */
};

/* An array of entries 0 to @last, all absent. */
void sparse_init(struct sparse *s, uint64_t last);

/* The entry with index @i, which is not behind the last. */
uint64_t sparse_get(const struct sparse *s, uint64_t i);

/*
 * Make sure that sparse_set() finds memory for @n entries from @i on, SPARSE_SIZE at most. False: there is none, or the
 * device's page quota is used up.
 */
bool sparse_reserve(struct skua_dev *dev, struct sparse *s, uint64_t i, uint32_t n);
/* Undo sparse_reserve() as far as the entries are absent. */
void sparse_trim(struct skua_dev *dev, struct sparse *s, uint64_t i, uint32_t n);
/* After sparse_reserve(). */
void sparse_set(struct sparse *s, uint64_t i, uint64_t entry);

/* The entries from @first to @last become absent. Takes a bounded time: what was there is freed by sparse_free_old(). */
void sparse_clear(struct skua_dev *dev, struct sparse *s, uint64_t first, uint64_t last);

/* Free tables that nothing refers to, as far as the @budget lasts. True when none is left. */
bool sparse_free_old(struct skua_dev *dev, int32_t *budget);

#endif /* SKUAD_CORE_SPARSE_H */
