/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a device needs of who hosts it, and what both may say at any time. The rest of that is in nic/dev.h.
 */
#ifndef SKUAD_CORE_HOST_H
#define SKUAD_CORE_HOST_H

#include <stdbool.h>
#include <stdint.h>

struct skua_dev;

#define SKUA_NUM_VECTORS	64

/* What the device needs from its host. */
struct skua_host_ops {
	/* Raise MSI-X vector @vector (below SKUA_NUM_VECTORS). Never blocks. */
	void (*raise_irq)(void *host, unsigned int vector);
};

/* The device plays dead (STATUS.FATAL) for the cause @health, enum skua_health. */
void skua_dev_fail(struct skua_dev *dev, uint32_t health);

/* Do doorbells flood in that bring no work? Then it does not depend on doorbells. */
bool skua_dev_is_flooded(const struct skua_dev *dev);

#endif /* SKUAD_CORE_HOST_H */
