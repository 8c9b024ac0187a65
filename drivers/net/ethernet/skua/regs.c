// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Registers: is it a Skua that this driver knows, reset, features, and the start of commands
 * (the manual's rules INI-1 to INI-6). Nothing else reads or writes a register.
 */
#include <linux/delay.h>
#include <linux/iopoll.h>

#include "regs.h"
#include "skua.h"

/* The device promises a second for each; a loaded emulator gets some more. */
#define SKUA_RESET_TIMEOUT_US	5000000
#define SKUA_ENABLE_TIMEOUT_US	5000000
#define SKUA_POLL_US		100

#define SKUA_GONE		U32_MAX	/* reads of a device that is not there */

/* Features that this driver knows how to use. */
#define SKUA_FEATURES_KNOWN	(BIT_ULL(SKUA_F_EVENT_IDX) | BIT_ULL(SKUA_F_ETHERNET) | \
				 BIT_ULL(SKUA_F_RC) | BIT_ULL(SKUA_F_INVALIDATE) | \
				 SKUA_ATOMICS | BIT_ULL(SKUA_F_ETH_CSUM) | \
				 BIT_ULL(SKUA_F_ETH_RSS) | BIT_ULL(SKUA_F_UC) | \
				 BIT_ULL(SKUA_F_UD) | BIT_ULL(SKUA_F_SRQ) | \
				 BIT_ULL(SKUA_F_XRC) | BIT_ULL(SKUA_F_MW) | \
				 BIT_ULL(SKUA_F_FAST_REG) | BIT_ULL(SKUA_F_SG_GAPS) | \
				 BIT_ULL(SKUA_F_MR_MODIFY) | BIT_ULL(SKUA_F_DM) | \
				 BIT_ULL(SKUA_F_FLUSH) | BIT_ULL(SKUA_F_ATOMIC_WRITE) | \
				 BIT_ULL(SKUA_F_CQ_RESIZE) | BIT_ULL(SKUA_F_CQ_MODER) | \
				 BIT_ULL(SKUA_F_RAW_PACKET) | BIT_ULL(SKUA_F_COUNTER_SET) | \
				 BIT_ULL(SKUA_F_RATE_LIMIT) | BIT_ULL(SKUA_F_ECE) | \
				 BIT_ULL(SKUA_F_MR_REVOKE) | BIT_ULL(SKUA_F_TSO) | \
				 BIT_ULL(SKUA_F_IP_CSUM) | BIT_ULL(SKUA_F_TAG_MATCHING) | \
				 BIT_ULL(SKUA_F_STRIP_CVLAN) | SKUA_ON_DEMAND)

/* Where a word of the device is one of the host (ATM-1). */
#define SKUA_ATOMICS		(IS_ENABLED(CONFIG_CPU_BIG_ENDIAN) ? 0 : \
				 BIT_ULL(SKUA_F_ATOMIC) | BIT_ULL(SKUA_F_MASKED_ATOMIC))

/* Where the kernel tells of pages that come and go. */
#define SKUA_ON_DEMAND		(IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING) ? \
				 BIT_ULL(SKUA_F_ON_DEMAND) : 0)

static const char * const skua_health_names[] = {
	[SKUA_HEALTH_OK]		= "no cause given",
	[SKUA_HEALTH_FEATURES]		= "a feature was accepted that is not offered",
	[SKUA_HEALTH_CMD_SIZE]		= "size of the command ring",
	[SKUA_HEALTH_CMD_ADDRESS]	= "command ring or record out of reach",
	[SKUA_HEALTH_CMD_OVERRUN]	= "more commands than the ring holds",
	[SKUA_HEALTH_EQ_ADDRESS]	= "event queue out of reach",
	[SKUA_HEALTH_INTERNAL]		= "the device's own fault",
	[SKUA_HEALTH_INJECTED]		= "fault asked for by a test",
};

static u32 skua_read(struct skua_nic *nic, u32 reg)
{
	return readl(nic->regs + reg);
}

static void skua_write(struct skua_nic *nic, u32 reg, u32 value)
{
	writel(value, nic->regs + reg);
}

static u64 skua_read64(struct skua_nic *nic, u32 reg_lo)
{
	u32 lo = skua_read(nic, reg_lo);

	return (u64)skua_read(nic, reg_lo + 4) << 32 | lo;
}

static void skua_write64(struct skua_nic *nic, u32 reg_lo, u64 value)
{
	skua_write(nic, reg_lo, lower_32_bits(value));
	skua_write(nic, reg_lo + 4, upper_32_bits(value));
}

/* False: it was not answered, or the half that is all ones is another at the next look. */
static bool skua_try_clock(struct skua_nic *nic, u64 *clock)
{
	*clock = skua_read64(nic, SKUA_REG_CLOCK_LO);
	return lower_32_bits(*clock) != SKUA_GONE && upper_32_bits(*clock) != SKUA_GONE;
}

int skua_read_clock(struct skua_dev *dev, u64 *clock)
{
	struct skua_nic *nic = to_skua_nic(dev);
	bool read;

	if (!skua_dev_alive(dev))
		return -EIO;
	mutex_lock(&nic->clock_lock);
	read = skua_try_clock(nic, clock) || skua_try_clock(nic, clock);
	mutex_unlock(&nic->clock_lock);
	return read ? 0 : -EIO;
}
EXPORT_SYMBOL_NS_GPL(skua_read_clock, SKUA_NS);

u32 skua_regs_status(struct skua_nic *nic)
{
	return skua_read(nic, SKUA_REG_STATUS);
}

u32 skua_regs_health(struct skua_nic *nic)
{
	return skua_read(nic, SKUA_REG_HEALTH);
}

const char *skua_health_name(u32 code)
{
	return code < ARRAY_SIZE(skua_health_names) ? skua_health_names[code] : "unknown cause";
}

/* Reading any of them has no effect. */
void skua_regs_dump(struct skua_nic *nic, struct devlink_fmsg *fmsg)
{
	static const struct {
		const char *name;
		u32 reg;
	} regs[] = {
		{ "signature", SKUA_REG_SIGNATURE },
		{ "version", SKUA_REG_VERSION },
		{ "status", SKUA_REG_STATUS },
		{ "health", SKUA_REG_HEALTH },
		{ "features_lo", SKUA_REG_FEATURES_LO },
		{ "features_hi", SKUA_REG_FEATURES_HI },
		{ "accepted_lo", SKUA_REG_ACCEPTED_LO },
		{ "accepted_hi", SKUA_REG_ACCEPTED_HI },
		{ "cmd_log_size", SKUA_REG_CMD_LOG_SIZE },
		{ "cmd_max_log", SKUA_REG_CMD_MAX_LOG },
	};
	unsigned int i;

	skua_fmsg_nest_start(fmsg, "registers");
	for (i = 0; i < ARRAY_SIZE(regs); i++)
		skua_fmsg_put_hex(fmsg, regs[i].name, skua_read(nic, regs[i].reg));
	skua_fmsg_nest_end(fmsg);
}

int skua_regs_identify(struct skua_nic *nic)
{
	struct device *device = skua_nic_device(nic);
	u32 signature = skua_read(nic, SKUA_REG_SIGNATURE);
	u32 version;

	if (signature != SKUA_SIGNATURE) {
		dev_err(device, "signature is %#x, not %#x: not a Skua\n", signature,
			SKUA_SIGNATURE);
		return -ENODEV;
	}
	version = skua_read(nic, SKUA_REG_VERSION);
	if (SKUA_VERSION_GET_MAJOR(version) != SKUA_VERSION_MAJOR) {
		dev_err(device, "interface version is %u.%u, this driver knows %u only\n",
			SKUA_VERSION_GET_MAJOR(version), version & 0xffff, SKUA_VERSION_MAJOR);
		return -ENODEV;
	}
	nic->version = version;
	return 0;
}

int skua_regs_reset(struct skua_nic *nic)
{
	u32 status;
	int err;

	skua_write(nic, SKUA_REG_CONTROL, SKUA_CONTROL_RESET);
	err = read_poll_timeout(skua_regs_status, status, status & SKUA_STATUS_READY,
				SKUA_POLL_US, SKUA_RESET_TIMEOUT_US, false, nic);
	if (err)
		dev_err(skua_nic_device(nic), "reset does not end, status %#x\n", status);
	/* A device that is there never reads so, not even during a reset (RST-2). */
	else if (status == SKUA_GONE)
		err = -ENODEV;
	return err;
}

int skua_regs_negotiate(struct skua_nic *nic)
{
	u64 offered = skua_read64(nic, SKUA_REG_FEATURES_LO);

	nic->dev.features = offered & SKUA_FEATURES_KNOWN;
	if (!skua_has(&nic->dev, SKUA_F_ETHERNET)) {
		dev_err(skua_nic_device(nic), "features %#llx lack Ethernet, bit %u\n", offered,
			SKUA_F_ETHERNET);
		return -ENODEV;
	}
	skua_write64(nic, SKUA_REG_ACCEPTED_LO, nic->dev.features);
	return 0;
}

/* The command ring's size is decided here, within what the device takes. */
int skua_regs_enable(struct skua_nic *nic)
{
	struct skua_cmdq *cmdq = &nic->cmdq;
	u32 max_log = skua_read(nic, SKUA_REG_CMD_MAX_LOG);
	u32 status;
	int err;

	if (cmdq->log_size > max_log) {
		cmdq->log_size = max_log;
		cmdq->mask = BIT(max_log) - 1;
	}
	skua_write64(nic, SKUA_REG_CMD_RING_LO, cmdq->ring.dma);
	skua_write64(nic, SKUA_REG_CMD_CPL_LO, cmdq->cpl.dma);
	skua_write64(nic, SKUA_REG_CMD_DBR_LO, cmdq->dbr_dma);
	skua_write(nic, SKUA_REG_CMD_LOG_SIZE, cmdq->log_size);
	skua_write(nic, SKUA_REG_CONTROL, SKUA_CONTROL_ENABLE);

	err = read_poll_timeout(skua_regs_status, status,
				status & (SKUA_STATUS_ENABLED | SKUA_STATUS_FATAL),
				SKUA_POLL_US, SKUA_ENABLE_TIMEOUT_US, false, nic);
	if (!err && status & SKUA_STATUS_FATAL)
		err = -EIO;
	if (err)
		dev_err(skua_nic_device(nic), "cannot be enabled, status %#x: %s\n", status,
			skua_health_name(skua_regs_health(nic)));
	return err;
}
