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

/*
 * A device that refuses to give back an object or pages has lost track of them: that is worse than this fault. Without
 * FAULT_RESUME a QP waits for ever, and a driver has nobody to tell of its failure.
 */
static bool gives_back(const struct skua_cmd *cmd)
{
	switch (le16toh(cmd->hdr.opcode)) {
	case SKUA_CMD_DESTROY_EQ:
	case SKUA_CMD_DESTROY_PD:
	case SKUA_CMD_DESTROY_CQ:
	case SKUA_CMD_DESTROY_QP:
	case SKUA_CMD_DESTROY_MR:
	case SKUA_CMD_INVALIDATE_MR:
	case SKUA_CMD_FAULT_RESUME:
	case SKUA_CMD_DESTROY_MW:
	case SKUA_CMD_DETACH_MCAST:
	case SKUA_CMD_DESTROY_SRQ:
	case SKUA_CMD_DESTROY_XRCD:
	case SKUA_CMD_FREE_DM:
	case SKUA_CMD_DESTROY_FLOW:
	case SKUA_CMD_DESTROY_RSS:
	case SKUA_CMD_DESTROY_COUNTER_SET:
		return true;
	case SKUA_CMD_UPDATE_PAGES:
		return !cmd->update_pages.list;
	default:
		return false;
	}
}

bool inject_fails_command(struct skua_dev *dev, const struct skua_cmd *cmd)
{
	return dev->inject.error_in && !gives_back(cmd) && !--dev->inject.error_in;
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
