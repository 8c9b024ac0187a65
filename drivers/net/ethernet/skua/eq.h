/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * skua.ko: event queues.
 */
#ifndef SKUA_EQ_H
#define SKUA_EQ_H

#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include <linux/skua/memory.h>
#include <skua/doorbell.h>

struct devlink_fmsg;
struct skua_nic;

/**
 * struct skua_eq - an event queue
 * @nic: its device
 * @lock: completion EQ: held while events are taken out
 * @ring: the EQEs
 * @dbr: its record
 * @dbr_dma: the record's DMA address
 * @work: takes events out; not of a completion EQ
 * @eqn: its number
 * @size: entries, a power of two
 * @ci: index of the next EQE
 * @irq: Linux's number of its vector
 * @name: of the interrupt
 */
struct skua_eq {
	struct skua_nic *nic;
	spinlock_t lock;		/* see above */
	struct skua_mem ring;
	struct skua_eq_dbr *dbr;
	dma_addr_t dbr_dma;
	struct work_struct work;
	u32 eqn;
	u32 size;
	u32 ci;
	int irq;
	char name[32];
};

int skua_eqs_create(struct skua_nic *nic);
void skua_eqs_destroy(struct skua_nic *nic);
void skua_eqs_dump(struct skua_nic *nic, struct devlink_fmsg *fmsg);

#endif /* SKUA_EQ_H */
