/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The harness for memory on demand: fault EQs, and the commands that bring pages and end page faults.
 */
#ifndef SKUAD_HARNESS_PAGING_H
#define SKUAD_HARNESS_PAGING_H

#include "harness/harness.h"

#define LOG_FAULTS	2	/* entries of a fault EQ, log2 */

/* A fault EQ, and memory for a list of pages. */
struct fault_queue {
	uint64_t eq, dbr, list;
	uint32_t eqn, ci;
};

void fault_queue_create(struct world *w, struct node *n, struct fault_queue *q);
/* Its next event, or NULL; and room for another event in the place of that one. */
const struct skua_fault_eqe *fault_queue_next(struct node *n, const struct fault_queue *q);
void fault_queue_free(struct node *n, struct fault_queue *q);

struct skua_cmd pages_cmd(uint32_t key, uint64_t first, uint64_t count, uint64_t list_at);
struct skua_cmd resume_cmd(struct skua_fault_eqe eqe, uint8_t result);

#endif /* SKUAD_HARNESS_PAGING_H */
