/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The configuration space of the function: 4 KiB of registers, of which some bits can be
 * written. It only keeps them; function.c does what they ask for.
 */
#ifndef SKUAD_PCI_CONFIG_SPACE_H
#define SKUAD_PCI_CONFIG_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "skua/regs.h"

#define CONFIG_SPACE_SIZE	4096
#define DOORBELL_PAGES		4096
#define DOORBELL_BAR_SIZE	((uint32_t)DOORBELL_PAGES * SKUA_PAGE_SIZE)

/* Where the capabilities are. */
#define CONFIG_CAP_PM		0x40
#define CONFIG_CAP_MSIX		0x50
#define CONFIG_CAP_EXP		0x60

struct config_space {
	uint8_t reg[CONFIG_SPACE_SIZE];
	uint8_t writable[CONFIG_SPACE_SIZE];	/* the bits that a write changes */
};

/* The state after power-on, which is the state after every reset, too. */
void config_space_reset(struct config_space *cs);

/* [@offset, @offset + @len) lies in the space. */
void config_space_read(const struct config_space *cs, size_t offset, void *data, size_t len);
/* True if the write asked for a function level reset. */
bool config_space_write(struct config_space *cs, size_t offset, const void *data, size_t len);

/* In D0, the only state in which the function has memory space and masters the bus. */
bool config_space_powered(const struct config_space *cs);
bool config_space_bus_master(const struct config_space *cs);	/* and powered */
bool config_space_msix_enabled(const struct config_space *cs);

#endif /* SKUAD_PCI_CONFIG_SPACE_H */
