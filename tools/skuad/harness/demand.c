// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "harness/demand.h"

struct fault_queue faults;

void fault_eq(struct world *w, struct node *n)
{
	fault_queue_create(w, n, &faults);
}

static const struct skua_fault_eqe *next_fault(struct node *n)
{
	const struct skua_fault_eqe *eqe = fault_queue_next(n, &faults);

	if (eqe)
		fault_queue_free(n, &faults);
	return eqe;
}

struct skua_fault_eqe expect_fault(struct world *w, struct node *n, uint8_t side, bool write, uint64_t addr)
{
	const struct skua_fault_eqe *eqe;

	settle(w);
	eqe = next_fault(n);
	assert_non_null(eqe);
	assert_int_equal(eqe->side, side);
	assert_int_equal(eqe->write, write);
	assert_int_equal(le64toh(eqe->addr), addr);
	return *eqe;
}

void expect_no_fault(struct world *w, struct node *n)
{
	settle(w);
	assert_null(next_fault(n));
}

struct skua_cmd region_cmd(struct node *n)
{
	return (struct skua_cmd)CMD(SKUA_CMD_CREATE_MR, .create_mr = {
		.pdn = htole32(n->pdn), .access = htole32(RIGHTS), .iova = htole64(MR_IOVA), .length = htole64(SIZE),
		.pages = { .log_page = 12, .offset = htole64(OFFSET) } });
}

uint32_t create_region(struct world *w, struct node *n)
{
	fault_eq(w, n);
	return must(w, n, region_cmd(n));
}

uint64_t region_page(struct node *n, uint64_t i)
{
	return n->buf + (PAGES - 1 - i) * 4096;
}

void give_pages(struct world *w, struct node *n, uint32_t key, uint64_t first, uint64_t count, uint64_t flags)
{
	for (uint64_t i = 0; i < count; i++)
		((uint64_t *)at(n, faults.list))[i] = htole64(region_page(n, first + i) | SKUA_PL_PRESENT | flags);
	must(w, n, pages_cmd(key, first, count, faults.list));
}

void drop_pages(struct world *w, struct node *n, uint32_t key, uint64_t first, uint64_t count)
{
	must(w, n, pages_cmd(key, first, count, 0));
}

void resume_fault(struct world *w, struct node *n, struct skua_fault_eqe eqe)
{
	must(w, n, resume_cmd(eqe, SKUA_PAGE_FAULT_RETRY));
}

void fail_fault(struct world *w, struct node *n, struct skua_fault_eqe eqe)
{
	must(w, n, resume_cmd(eqe, SKUA_PAGE_FAULT_FAIL));
}

uint8_t *region_byte(struct node *n, uint32_t i)
{
	i += OFFSET;
	return (uint8_t *)at(n, region_page(n, i / 4096)) + i % 4096;
}

void expect_same(struct node *n, uint32_t offset, struct node *peer, uint64_t addr, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		assert_int_equal(*region_byte(n, offset + i), ((uint8_t *)at(peer, addr))[i]);
}

void fill_region(struct node *n)
{
	for (uint32_t i = 0; i < SIZE; i++)
		*region_byte(n, i) = (uint8_t)(i * 7 + i / 256);
}

void post_key(struct node *n, uint8_t opcode, uint32_t lkey, uint64_t addr, uint32_t len, uint64_t raddr,
	      uint32_t rkey)
{
	uint32_t key = n->key;

	n->key = lkey;
	post(n, opcode, SKUA_WQE_SIGNALED, addr, len, raddr, rkey, 0);
	n->key = key;
}
