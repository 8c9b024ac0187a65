// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A type 0 header with two 64-bit BARs, and three capabilities: power management (D0 and
 * D3hot, nothing is lost on the way back), MSI-X, and PCI Express with function level reset.
 * There is no extended capability, no INTx, no expansion ROM.
 */
#include "pci/config_space.h"

#include <assert.h>
#include <linux/pci_regs.h>
#include <string.h>

#include "nic/dev.h"
#include "skua/regs.h"

#define DEVCTL		(CONFIG_CAP_EXP + PCI_EXP_DEVCTL)
#define DEVCTL_FLR_BYTE	(DEVCTL + 1)	/* with PCI_EXP_DEVCTL_BCR_FLR >> 8 */
#define PMCSR		(CONFIG_CAP_PM + PCI_PM_CTRL)

static_assert(CONFIG_CAP_PM + PCI_PM_SIZEOF <= CONFIG_CAP_MSIX, "capabilities overlap");
static_assert(CONFIG_CAP_MSIX + PCI_CAP_MSIX_SIZEOF <= CONFIG_CAP_EXP, "capabilities overlap");
static_assert(CONFIG_CAP_EXP + PCI_CAP_EXP_ENDPOINT_SIZEOF_V2 <= PCI_CFG_SPACE_SIZE, "too long");

/* A register of 1 to 4 bytes: its value, and which of its bits can be written. */
static const struct config_reg {
	uint16_t offset;
	uint8_t len;
	uint32_t value;
	uint32_t writable;
} config_regs[] = {
	{ PCI_VENDOR_ID, 2, SKUA_PCI_VENDOR_ID, 0 },
	{ PCI_DEVICE_ID, 2, SKUA_PCI_DEVICE_ID, 0 },
	{ PCI_COMMAND, 2, 0, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER | PCI_COMMAND_PARITY |
			     PCI_COMMAND_SERR | PCI_COMMAND_INTX_DISABLE },
	{ PCI_STATUS, 2, PCI_STATUS_CAP_LIST, 0 },
	{ PCI_REVISION_ID, 4, SKUA_PCI_CLASS << 8, 0 },
	{ PCI_CACHE_LINE_SIZE, 1, 0, 0xff },
	{ PCI_BASE_ADDRESS_0, 4, PCI_BASE_ADDRESS_MEM_TYPE_64, ~(SKUA_BAR_REGS_SIZE - 1u) },
	{ PCI_BASE_ADDRESS_1, 4, 0, 0xffffffff },
	{ PCI_BASE_ADDRESS_2, 4, PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH,
	  ~(DOORBELL_BAR_SIZE - 1) },
	{ PCI_BASE_ADDRESS_3, 4, 0, 0xffffffff },
	{ PCI_SUBSYSTEM_VENDOR_ID, 2, SKUA_PCI_VENDOR_ID, 0 },
	{ PCI_SUBSYSTEM_ID, 2, SKUA_PCI_DEVICE_ID, 0 },
	{ PCI_CAPABILITY_LIST, 1, CONFIG_CAP_PM, 0 },
	{ PCI_INTERRUPT_LINE, 1, 0, 0xff },

	{ CONFIG_CAP_PM + PCI_CAP_LIST_ID, 1, PCI_CAP_ID_PM, 0 },
	{ CONFIG_CAP_PM + PCI_CAP_LIST_NEXT, 1, CONFIG_CAP_MSIX, 0 },
	{ CONFIG_CAP_PM + PCI_PM_PMC, 2, 3, 0 },	/* version 3 of the specification */
	{ PMCSR, 2, PCI_PM_CTRL_NO_SOFT_RESET, PCI_PM_CTRL_STATE_MASK },

	{ CONFIG_CAP_MSIX + PCI_CAP_LIST_ID, 1, PCI_CAP_ID_MSIX, 0 },
	{ CONFIG_CAP_MSIX + PCI_CAP_LIST_NEXT, 1, CONFIG_CAP_EXP, 0 },
	{ CONFIG_CAP_MSIX + PCI_MSIX_FLAGS, 2, SKUA_NUM_VECTORS - 1,
	  PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL },
	{ CONFIG_CAP_MSIX + PCI_MSIX_TABLE, 4, SKUA_MSIX_TABLE_OFFSET | SKUA_BAR_REGS, 0 },
	{ CONFIG_CAP_MSIX + PCI_MSIX_PBA, 4, SKUA_MSIX_PBA_OFFSET | SKUA_BAR_REGS, 0 },

	{ CONFIG_CAP_EXP + PCI_CAP_LIST_ID, 1, PCI_CAP_ID_EXP, 0 },
	{ CONFIG_CAP_EXP + PCI_EXP_FLAGS, 2, 2 | PCI_EXP_TYPE_ENDPOINT << 4, 0 },
	{ CONFIG_CAP_EXP + PCI_EXP_DEVCAP, 4,
	  PCI_EXP_DEVCAP_RBER | PCI_EXP_DEVCAP_FLR | PCI_EXP_DEVCAP_EXT_TAG |
	  2 /* payloads of 512 bytes */, 0 },
	{ DEVCTL, 2, PCI_EXP_DEVCTL_RELAX_EN | PCI_EXP_DEVCTL_NOSNOOP_EN |
		     PCI_EXP_DEVCTL_READRQ_512B,
	  PCI_EXP_DEVCTL_CERE | PCI_EXP_DEVCTL_NFERE | PCI_EXP_DEVCTL_FERE |
	  PCI_EXP_DEVCTL_URRE | PCI_EXP_DEVCTL_RELAX_EN | PCI_EXP_DEVCTL_PAYLOAD |
	  PCI_EXP_DEVCTL_EXT_TAG | PCI_EXP_DEVCTL_NOSNOOP_EN | PCI_EXP_DEVCTL_READRQ },
	{ CONFIG_CAP_EXP + PCI_EXP_LNKCAP, 4, PCI_EXP_LNKCAP_SLS_16_0GB | 16 << 4, 0 },
	{ CONFIG_CAP_EXP + PCI_EXP_LNKCTL, 2, 0,
	  PCI_EXP_LNKCTL_RCB | PCI_EXP_LNKCTL_CCC | PCI_EXP_LNKCTL_ES },
	{ CONFIG_CAP_EXP + PCI_EXP_LNKSTA, 2, PCI_EXP_LNKSTA_CLS_16_0GB | 16 << 4, 0 },
	{ CONFIG_CAP_EXP + PCI_EXP_LNKCAP2, 4,
	  PCI_EXP_LNKCAP2_SLS_2_5GB | PCI_EXP_LNKCAP2_SLS_5_0GB | PCI_EXP_LNKCAP2_SLS_8_0GB |
	  PCI_EXP_LNKCAP2_SLS_16_0GB, 0 },
	{ CONFIG_CAP_EXP + PCI_EXP_LNKCTL2, 2, PCI_EXP_LNKCTL2_TLS_16_0GT, 0 },
};

static void put(uint8_t *p, uint32_t value, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		p[i] = value >> 8 * i;
}

static uint16_t reg16(const struct config_space *cs, size_t offset)
{
	return cs->reg[offset] | cs->reg[offset + 1] << 8;
}

void config_space_reset(struct config_space *cs)
{
	size_t i;

	memset(cs, 0, sizeof(*cs));
	for (i = 0; i < sizeof(config_regs) / sizeof(config_regs[0]); i++) {
		const struct config_reg *r = &config_regs[i];

		put(cs->reg + r->offset, r->value, r->len);
		put(cs->writable + r->offset, r->writable, r->len);
	}
}

void config_space_read(const struct config_space *cs, size_t offset, void *data, size_t len)
{
	memcpy(data, cs->reg + offset, len);
}

bool config_space_write(struct config_space *cs, size_t offset, const void *data, size_t len)
{
	uint8_t state = cs->reg[PMCSR] & PCI_PM_CTRL_STATE_MASK;
	const uint8_t *p = data;
	size_t i;

	for (i = 0; i < len; i++) {
		uint8_t w = cs->writable[offset + i];

		cs->reg[offset + i] = (cs->reg[offset + i] & ~w) | (p[i] & w);
	}
	/* A write of a state that the function does not have changes nothing. */
	switch (cs->reg[PMCSR] & PCI_PM_CTRL_STATE_MASK) {
	case 1:
	case 2:
		cs->reg[PMCSR] = (cs->reg[PMCSR] & ~PCI_PM_CTRL_STATE_MASK) | state;
		break;
	}
	/* The bit always reads as zero, hence is not in the mask. */
	return offset <= DEVCTL_FLR_BYTE && DEVCTL_FLR_BYTE < offset + len &&
	       p[DEVCTL_FLR_BYTE - offset] & PCI_EXP_DEVCTL_BCR_FLR >> 8;
}

bool config_space_powered(const struct config_space *cs)
{
	return !(cs->reg[PMCSR] & PCI_PM_CTRL_STATE_MASK);
}

bool config_space_bus_master(const struct config_space *cs)
{
	return reg16(cs, PCI_COMMAND) & PCI_COMMAND_MASTER && config_space_powered(cs);
}

bool config_space_msix_enabled(const struct config_space *cs)
{
	return reg16(cs, CONFIG_CAP_MSIX + PCI_MSIX_FLAGS) & PCI_MSIX_FLAGS_ENABLE;
}
