/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What happens when the file behind a mapping of guest memory loses its pages: that guest
 * loses its device, and nobody else notices.
 */
#ifndef SKUAD_PCI_MEM_GUARD_H
#define SKUAD_PCI_MEM_GUARD_H

#include <stdbool.h>
#include <stddef.h>

/* One for each owner of mappings. */
struct mem_guard {
	int fd;		/* an eventfd: readable once a mapping was lost */
};

int mem_guard_init(struct mem_guard *g);
void mem_guard_destroy(struct mem_guard *g);	/* without mappings */

/* Guards [@base, @base + @size), a whole mapping. 0, or -ENOSPC: too many in this process. */
int mem_guard_add(struct mem_guard *g, void *base, size_t size);
/* No thread touches the mapping any more. */
void mem_guard_del(void *base);

/* Whether a mapping was lost since the last call. */
bool mem_guard_tripped(struct mem_guard *g);

#endif /* SKUAD_PCI_MEM_GUARD_H */
