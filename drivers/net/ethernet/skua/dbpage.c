// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Doorbell pages of contexts (DBP-5): each context owns those of one whole page of the CPU, so
 * that mapping them maps nobody else's. The first such group holds page 0 and is the kernel's.
 */
#include "skua.h"

#define SKUA_DB_GROUP	(SKUA_DB_PAGES_SIZE / SKUA_PAGE_SIZE)

int skua_db_pages_alloc(struct skua_dev *dev, struct skua_db_pages *pages)
{
	unsigned int groups = dev->limits.num_db_pages / SKUA_DB_GROUP;
	int group;

	if (groups < 2)
		return -ENOSPC;
	group = ida_alloc_range(&to_skua_nic(dev)->db_ids, 1, groups - 1, GFP_KERNEL);
	if (group < 0)
		return group;

	pages->index = group * SKUA_DB_GROUP;
	pages->phys = pci_resource_start(dev->pdev, SKUA_BAR_DOORBELL) +
		      (phys_addr_t)group * SKUA_DB_PAGES_SIZE;
	return 0;
}
EXPORT_SYMBOL_NS_GPL(skua_db_pages_alloc, SKUA_NS);

void skua_db_pages_free(struct skua_dev *dev, const struct skua_db_pages *pages)
{
	ida_free(&to_skua_nic(dev)->db_ids, pages->index / SKUA_DB_GROUP);
}
EXPORT_SYMBOL_NS_GPL(skua_db_pages_free, SKUA_NS);
