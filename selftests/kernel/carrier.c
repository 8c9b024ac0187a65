// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Who is about to say that the first NIC has a link is held up just before, while the NIC dies. A
 * driver that sets the carrier under a lock lets nobody pass meanwhile, and nothing that was asked
 * before the NIC's death is said after it.
 */
#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/kprobes.h>
#include <linux/netdevice.h>
#include <linux/ptrace.h>

#include "skua_selftest.h"

#define ST_CARRIER_MS	15000		/* of it at most; the kernel complains after 20 s */

enum st_carrier {
	ST_CARRIER_IDLE,
	ST_CARRIER_ARMED,		/* the next who sets the carrier is held up */
	ST_CARRIER_HELD,		/* somebody is */
	ST_CARRIER_PASSED,		/* another took the carrier away meanwhile */
};

static const char *const st_carrier_names[] = { "idle", "armed", "held", "passed" };
static atomic_t st_carrier = ATOMIC_INIT(ST_CARRIER_IDLE);
static bool st_carrier_probed;
static const struct device *st_carrier_nic;

static bool st_carrier_is_ours(struct pt_regs *regs)
{
	const struct net_device *netdev = (void *)regs_get_kernel_argument(regs, 0);

	return netdev->dev.parent == st_carrier_nic;
}

static int st_carrier_on(struct kprobe *probe, struct pt_regs *regs)
{
	unsigned int ms;

	if (!st_carrier_is_ours(regs) ||
	    atomic_cmpxchg(&st_carrier, ST_CARRIER_ARMED, ST_CARRIER_HELD) != ST_CARRIER_ARMED)
		return 0;
	/* Nobody may sleep here. */
	for (ms = 0; ms < ST_CARRIER_MS && atomic_read(&st_carrier) != ST_CARRIER_IDLE; ms++)
		mdelay(1);
	return 0;
}

static int st_carrier_off(struct kprobe *probe, struct pt_regs *regs)
{
	if (st_carrier_is_ours(regs))
		atomic_cmpxchg(&st_carrier, ST_CARRIER_HELD, ST_CARRIER_PASSED);
	return 0;
}

static struct kprobe st_carrier_probe_on = {
	.symbol_name = "netif_carrier_on",
	.pre_handler = st_carrier_on,
};

static struct kprobe st_carrier_probe_off = {
	.symbol_name = "netif_carrier_off",
	.pre_handler = st_carrier_off,
};

int st_carrier_hold(struct ib_device *dev)
{
	int err;

	if (st_carrier_probed)
		return -EBUSY;
	st_carrier_nic = dev->dev.parent;
	err = register_kprobe(&st_carrier_probe_off);
	if (err)
		return err;
	err = register_kprobe(&st_carrier_probe_on);
	if (err) {
		unregister_kprobe(&st_carrier_probe_off);
		return err;
	}
	st_carrier_probed = true;
	atomic_set(&st_carrier, ST_CARRIER_ARMED);
	return 0;
}

void st_carrier_end(void)
{
	if (!st_carrier_probed)
		return;
	atomic_set(&st_carrier, ST_CARRIER_IDLE);
	unregister_kprobe(&st_carrier_probe_on);
	unregister_kprobe(&st_carrier_probe_off);
	/* A probe can be registered again, but not with what it found the last time. */
	st_carrier_probe_on.addr = NULL;
	st_carrier_probe_on.flags = 0;
	st_carrier_probe_off.addr = NULL;
	st_carrier_probe_off.flags = 0;
	st_carrier_probed = false;
}

const char *st_carrier_tell(void)
{
	return st_carrier_names[atomic_read(&st_carrier)];
}
