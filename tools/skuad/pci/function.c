// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Three regions: BAR0 with the registers and the MSI-X structures, BAR2 with the doorbells,
 * and configuration space. Writes to the latter are where bus mastering, power states, the
 * MSI-X enable bit and function level reset come from. In D3hot there is no memory space:
 * reads give all ones, writes are lost.
 */
#include "pci/function.h"

#include <string.h>

#include "nic/dev.h"
#include "skua/regs.h"

/* A window in BAR0. */
struct window {
	uint64_t offset, size;
};

static const struct window msix_table = { SKUA_MSIX_TABLE_OFFSET, MSIX_TABLE_SIZE };
static const struct window msix_pba = { SKUA_MSIX_PBA_OFFSET, MSIX_PBA_SIZE };

/* Accesses are at most 8 bytes; one that sticks out of the window is none to it. */
static bool within(const struct window *w, uint64_t offset, size_t len)
{
	return offset >= w->offset && offset + len <= w->offset + w->size;
}

void function_init(struct function *fn)
{
	fn->dev = NULL;
	fn->bus_master = false;
	config_space_reset(&fn->config);
	msix_init(&fn->msix);
}

void function_destroy(struct function *fn)
{
	msix_destroy(&fn->msix);
}

static void set_bus_master(struct function *fn, bool on)
{
	if (fn->bus_master == on)
		return;
	fn->bus_master = on;
	skua_dev_set_bus_master(fn->dev, on);
}

void function_reset(struct function *fn)
{
	config_space_reset(&fn->config);
	set_bus_master(fn, false);
	msix_reset(&fn->msix);
	skua_dev_reset(fn->dev);
}

static void config_read(struct function *fn, uint64_t offset, void *data, size_t len)
{
	config_space_read(&fn->config, offset, data, len);
}

static void config_write(struct function *fn, uint64_t offset, const void *data, size_t len)
{
	if (config_space_write(&fn->config, offset, data, len)) {
		function_reset(fn);
		return;
	}
	msix_enable(&fn->msix, config_space_msix_enabled(&fn->config));
	set_bus_master(fn, config_space_bus_master(&fn->config));
}

static void regs_read(struct function *fn, uint64_t offset, void *data, size_t len)
{
	if (!config_space_powered(&fn->config))
		memset(data, 0xff, len);
	else if (within(&msix_table, offset, len))
		msix_table_read(&fn->msix, offset - msix_table.offset, data, len);
	else if (within(&msix_pba, offset, len))
		msix_pba_read(&fn->msix, offset - msix_pba.offset, data, len);
	else
		skua_dev_bar_read(fn->dev, SKUA_BAR_REGS, offset, data, len);
}

static void regs_write(struct function *fn, uint64_t offset, const void *data, size_t len)
{
	if (!config_space_powered(&fn->config))
		return;
	if (within(&msix_table, offset, len))
		msix_table_write(&fn->msix, offset - msix_table.offset, data, len);
	else if (!within(&msix_pba, offset, len))
		skua_dev_bar_write(fn->dev, SKUA_BAR_REGS, offset, data, len);
}

static void doorbell_read(struct function *fn, uint64_t offset, void *data, size_t len)
{
	if (config_space_powered(&fn->config))
		skua_dev_bar_read(fn->dev, SKUA_BAR_DOORBELL, offset, data, len);
	else
		memset(data, 0xff, len);
}

static void doorbell_write(struct function *fn, uint64_t offset, const void *data, size_t len)
{
	if (config_space_powered(&fn->config))
		skua_dev_bar_write(fn->dev, SKUA_BAR_DOORBELL, offset, data, len);
}

static const struct region {
	uint64_t size;
	void (*read)(struct function *fn, uint64_t offset, void *data, size_t len);
	void (*write)(struct function *fn, uint64_t offset, const void *data, size_t len);
} regions[FUNCTION_NUM_REGIONS] = {
	[VFIO_PCI_BAR0_REGION_INDEX + SKUA_BAR_REGS] = {
		SKUA_BAR_REGS_SIZE, regs_read, regs_write },
	[VFIO_PCI_BAR0_REGION_INDEX + SKUA_BAR_DOORBELL] = {
		DOORBELL_BAR_SIZE, doorbell_read, doorbell_write },
	[VFIO_PCI_CONFIG_REGION_INDEX] = {
		CONFIG_SPACE_SIZE, config_read, config_write },
};

uint64_t function_region_size(unsigned int region)
{
	return region < FUNCTION_NUM_REGIONS ? regions[region].size : 0;
}

void function_read(struct function *fn, unsigned int region, uint64_t offset, void *data,
		   size_t len)
{
	regions[region].read(fn, offset, data, len);
}

void function_write(struct function *fn, unsigned int region, uint64_t offset,
		    const void *data, size_t len)
{
	regions[region].write(fn, offset, data, len);
}

/* A message of MSI-X is a write to memory: without bus mastering there is none. */
void function_raise(struct function *fn, unsigned int vector)
{
	if (fn->bus_master)
		msix_raise(&fn->msix, vector);
}
