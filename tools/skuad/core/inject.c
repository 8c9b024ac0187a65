// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What becomes of commands, registers and limits while a fault is injected.
 */
#include "core/inject.h"

#include "core/device.h"

bool inject_takes_command(struct skua_dev *dev)
{
	if (!dev->inject.commands)
		return false;
	dev->inject.commands--;
	return true;
}

/* A device that refuses to destroy an object has lost track of it: that is worse than this fault. */
static bool destroys(uint16_t opcode)
{
	switch (opcode) {
	case SKUA_CMD_DESTROY_EQ:
	case SKUA_CMD_DESTROY_PD:
	case SKUA_CMD_DESTROY_CQ:
	case SKUA_CMD_DESTROY_QP:
	case SKUA_CMD_DESTROY_MR:
	case SKUA_CMD_DETACH_MCAST:
		return true;
	default:
		return false;
	}
}

bool inject_fails_command(struct skua_dev *dev, uint16_t opcode)
{
	return dev->inject.error_in && !destroys(opcode) && !--dev->inject.error_in;
}

uint32_t inject_register(struct skua_dev *dev, uint64_t offset, uint32_t value)
{
	if (dev->inject.reads) {
		dev->inject.reads--;
		return UINT32_MAX;
	}
	switch (offset) {
	case SKUA_REG_SIGNATURE:
		return dev->inject.guise == SKUA_FAULT_OTHER_SIGNATURE ? ~value : value;
	case SKUA_REG_VERSION:
		return dev->inject.guise == SKUA_FAULT_OTHER_VERSION ?
			SKUA_VERSION(SKUA_VERSION_MAJOR + 1, 0) : value;
	case SKUA_REG_FEATURES_HI:
		return dev->inject.guise == SKUA_FAULT_NEW_FEATURES ? UINT32_MAX : value;
	default:
		return value;
	}
}

void inject_caps(const struct skua_dev *dev, struct skua_device_caps *caps)
{
	if (dev->inject.guise == SKUA_FAULT_NO_LIMITS)
		*caps = (struct skua_device_caps) { .cmd_timeout = caps->cmd_timeout };
	else if (dev->inject.guise == SKUA_FAULT_NO_MRS)
		caps->max_mr = 0;
}

void inject_reset(struct skua_dev *dev)
{
	dev->inject.gone = false;
	for (unsigned int i = 0; i < INJECT_STRAYS; i++)
		async_event_forget(dev, &dev->inject.stray[i]);
}
