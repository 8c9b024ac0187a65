/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A region on demand, its pages, and the page faults of one node. For test_odp.c and test_odp_commands.c.
 */
#ifndef SKUAD_HARNESS_DEMAND_H
#define SKUAD_HARNESS_DEMAND_H

#include "harness/paging.h"

#define PAGES		5
#define OFFSET		104	/* of the region in its first page */
#define SIZE		(PAGES * 4096 - OFFSET - 50)
#define MR_IOVA		0x5000000ull
#define RNR_NS		700000	/* longer than the peer waits after an RNR NAK */
#define REMOTE		(SKUA_ACCESS_REMOTE_WRITE | SKUA_ACCESS_REMOTE_READ | SKUA_ACCESS_REMOTE_ATOMIC)
#define RIGHTS		(SKUA_ACCESS_LOCAL_WRITE | REMOTE | SKUA_ACCESS_ON_DEMAND)

/* Of one node. */
extern struct fault_queue faults;

void fault_eq(struct world *w, struct node *n);

/* The next page fault has to be this one; or none may be there. */
struct skua_fault_eqe expect_fault(struct world *w, struct node *n, uint8_t side, bool write, uint64_t addr);
void expect_no_fault(struct world *w, struct node *n);

/* The host has brought the pages, or cannot bring them. */
void resume_fault(struct world *w, struct node *n, struct skua_fault_eqe eqe);
void fail_fault(struct world *w, struct node *n, struct skua_fault_eqe eqe);

/* No pages, and all rights. create_region() makes the fault EQ, too. */
struct skua_cmd region_cmd(struct node *n);
uint32_t create_region(struct world *w, struct node *n);

/* Pages come and go. */
void give_pages(struct world *w, struct node *n, uint32_t key, uint64_t first, uint64_t count, uint64_t flags);
void drop_pages(struct world *w, struct node *n, uint32_t key, uint64_t first, uint64_t count);

/* Where page @i is: the pages lie in reverse. */
uint64_t region_page(struct node *n, uint64_t i);
/* Byte @i of the region. */
uint8_t *region_byte(struct node *n, uint32_t i);
void fill_region(struct node *n);
/* The region's bytes from @offset on have to be those that @peer has at @addr. */
void expect_same(struct node *n, uint32_t offset, struct node *peer, uint64_t addr, uint32_t len);

/* Post with this lkey. */
void post_key(struct node *n, uint8_t opcode, uint32_t lkey, uint64_t addr, uint32_t len, uint64_t raddr,
	      uint32_t rkey);

#endif /* SKUAD_HARNESS_DEMAND_H */
