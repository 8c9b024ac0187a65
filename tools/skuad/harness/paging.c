// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "harness/paging.h"

void fault_queue_create(struct world *w, struct node *n, struct fault_queue *q)
{
	struct skua_cmd cmd = create_eq_cmd(n);

	q->eq = take(n, 64u << LOG_FAULTS);
	q->dbr = take(n, 64);
	q->list = take(n, 4096);
	q->ci = 0;
	cmd.create_eq.type = SKUA_EQ_FAULT;
	cmd.create_eq.log_size = LOG_FAULTS;
	cmd.create_eq.vector = htole16(2);
	cmd.create_eq.dbr_addr = htole64(q->dbr);
	cmd.create_eq.ring = list(q->eq, 64u << LOG_FAULTS);
	q->eqn = must(w, n, cmd);
}

const struct skua_fault_eqe *fault_queue_next(struct node *n, const struct fault_queue *q)
{
	const struct skua_fault_eqe *eqe = at(n, q->eq + (q->ci & ((1u << LOG_FAULTS) - 1)) * 64ull);

	return (eqe->flags & SKUA_EQE_PHASE) == (q->ci >> LOG_FAULTS & 1) ? NULL : eqe;
}

void fault_queue_free(struct node *n, struct fault_queue *q)
{
	host_store32(&((struct skua_eq_dbr *)at(n, q->dbr))->ci, ++q->ci);
}

struct skua_cmd pages_cmd(uint32_t key, uint64_t first, uint64_t count, uint64_t list_at)
{
	return (struct skua_cmd)CMD(SKUA_CMD_UPDATE_PAGES, .update_pages = {
		.key = htole32(key), .first = htole64(first), .count = htole64(count), .list = htole64(list_at) });
}

struct skua_cmd resume_cmd(struct skua_fault_eqe eqe, uint8_t result)
{
	return (struct skua_cmd)CMD(SKUA_CMD_FAULT_RESUME, .fault_resume = { .token = eqe.token, .result = result });
}
