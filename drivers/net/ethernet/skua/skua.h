/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * skua.ko: the device, which is made of parts. Each part is a file, and has a header.
 *
 * Bring-up, in this order: registers (regs.c), command queue (cmdq.c), limits, event queues
 * (eq.c), netdev, the auxiliary device of RDMA (rdma.c), health (health.c). Letting go is the
 * reverse, ending in a reset. Both happen under the lock of the devlink instance (devlink.h).
 */
#ifndef SKUA_NIC_H
#define SKUA_NIC_H

#include <linux/idr.h>
#include <linux/notifier.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include <net/devlink.h>

#include <linux/skua/device.h>

#include "cmdq.h"
#include "debugfs.h"
#include "eq.h"
#include "health.h"
#include "port.h"
#include "reporter.h"

#define SKUA_NAME	"skua"

struct dma_pool;
struct skua_fault_watch;

/**
 * struct skua_nic - a device, as skua.ko sees it
 * @dev: what skua_ib sees of it
 * @regs: BAR0
 * @version: of the interface, major << 16 | minor
 * @clock_lock: held while the clock is read, which is two registers
 * @cmdq: command queue
 * @cmd_timeout: in which each command is answered, jiffies
 * @debugfs: what debugfs shows
 * @dbr_pool: doorbell records
 * @num_vectors: MSI-X vectors; the first is that of asynchronous events
 * @async_eq: asynchronous EQ
 * @fault_eq: EQ of page faults, with SKUA_F_ON_DEMAND
 * @fault_lock: held while @fault_watch is called
 * @fault_watch: who resolves page faults, or NULL
 * @comp_eqs: completion EQs, dev.num_comp_vectors of them
 * @cqs: struct skua_cq_watch by cqn
 * @qps: struct skua_obj_watch by qpn
 * @srqs: struct skua_obj_watch by srqn
 * @db_ids: groups of doorbell pages that are given out
 * @notifier: who is told of death
 * @health: life and death
 * @reporter: tells devlink of them
 * @port: the port
 * @rdma: auxiliary device, or NULL
 * @halted: its queues are gone, during a reset from outside, a sleep or a reload, or because the
 *	device could not be used after that; under devlink's lock
 * @expected: whoever halted it will bring it up; under devlink's lock
 * @shut_down: it stays dead; under devlink's lock
 *
 * It is the private part of the devlink instance.
 */
struct skua_nic {
	struct skua_dev dev;
	void __iomem *regs;
	u32 version;
	struct mutex clock_lock;	/* reads of the clock */
	struct skua_cmdq cmdq;
	unsigned long cmd_timeout;
	struct skua_debugfs debugfs;
	struct dma_pool *dbr_pool;
	unsigned int num_vectors;
	struct skua_eq async_eq;
	struct skua_eq fault_eq;
	struct mutex fault_lock;	/* the next */
	struct skua_fault_watch *fault_watch;
	struct skua_eq *comp_eqs;
	struct xarray cqs;
	struct xarray qps;
	struct xarray srqs;
	struct ida db_ids;
	struct blocking_notifier_head notifier;
	struct skua_nic_health health;
	struct skua_reporter reporter;
	struct skua_port port;
	struct skua_adev *rdma;
	bool halted;
	bool expected;
	bool shut_down;
};

static inline struct skua_nic *to_skua_nic(struct skua_dev *dev)
{
	return container_of(dev, struct skua_nic, dev);
}

static inline struct device *skua_nic_device(struct skua_nic *nic)
{
	return &nic->dev.pdev->dev;
}

/* main.c: works that may wait for commands. Each is cancelled before its device is freed. */
extern struct workqueue_struct *skua_wq;

/*
 * main.c, under devlink's lock: to its users the device dies, because of @why, and all that they
 * made goes, but the netdev stays; and the device is in use again after @after. Constants.
 */
void skua_halt(struct skua_nic *nic, const char *why);
int skua_go_on(struct skua_nic *nic, const char *after);

#endif /* SKUA_NIC_H */
