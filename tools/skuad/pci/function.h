/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The PCI function around a device: configuration space, BARs and MSI-X, as regions in the
 * sense of VFIO. On the engine's thread.
 */
#ifndef SKUAD_PCI_FUNCTION_H
#define SKUAD_PCI_FUNCTION_H

#include <linux/vfio.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pci/config_space.h"
#include "pci/msix.h"

struct skua_dev;

#define FUNCTION_NUM_REGIONS	VFIO_PCI_NUM_REGIONS

struct function {
	struct skua_dev *dev;
	struct config_space config;
	struct msix msix;
	_Atomic bool bus_master;	/* as the device was told last */
};

/* @dev may be set later, before any other call. */
void function_init(struct function *fn);
void function_destroy(struct function *fn);

/* As after power-on: bus mastering off, the device reset. The eventfds of MSI-X stay. */
void function_reset(struct function *fn);

/* A region's size in bytes, 0 if there is none with this index. */
uint64_t function_region_size(unsigned int region);

/* @len bytes within a region; for a BAR, 1, 2, 4 or 8. */
void function_read(struct function *fn, unsigned int region, uint64_t offset, void *data,
		   size_t len);
void function_write(struct function *fn, unsigned int region, uint64_t offset,
		    const void *data, size_t len);

/* Raise an MSI-X vector below SKUA_NUM_VECTORS, if the function may. Any thread. */
void function_raise(struct function *fn, unsigned int vector);

#endif /* SKUAD_PCI_FUNCTION_H */
