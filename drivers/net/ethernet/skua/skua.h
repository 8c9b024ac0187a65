/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * skua.ko: the device and its parts. Each part is a file; what others may call of it is here.
 *
 * Bring-up, in this order: registers (regs.c), command queue (cmdq.c), limits, event queues
 * (eq.c), netdev, the auxiliary device of RDMA (rdma.c), health (health.c). Letting go is the
 * reverse, ending in a reset.
 */
#ifndef SKUA_NIC_H
#define SKUA_NIC_H

#include <linux/completion.h>
#include <linux/idr.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include <linux/skua/device.h>
#include <linux/skua/memory.h>
#include <skua/cmd.h>
#include <skua/doorbell.h>
#include <skua/eqe.h>

#define SKUA_NAME	"skua"

struct dma_pool;
struct skua_cmd_slot;

/**
 * struct skua_cmdq - the command queue
 * @lock: all below
 * @ring: struct skua_cmd
 * @cpl: struct skua_cmd_cpl
 * @out: output buffers, one for each slot
 * @dbr: its record
 * @dbr_dma: the record's DMA address
 * @slots: who waits for the command in each slot of the ring
 * @free: woken when a slot is free, or the device dead
 * @log_size: entries of both rings, log2
 * @mask: entries - 1
 * @pi: index of the next command
 * @ci: index of the next completion
 * @dead: nothing more is published
 */
struct skua_cmdq {
	spinlock_t lock;		/* see above */
	struct skua_mem ring;
	struct skua_mem cpl;
	struct skua_mem out;
	struct skua_dbr *dbr;
	dma_addr_t dbr_dma;
	struct skua_cmd_slot *slots;
	wait_queue_head_t free;
	u8 log_size;
	u32 mask;
	u32 pi;
	u32 ci;
	bool dead;
};

/**
 * struct skua_eq - an event queue
 * @nic: its device
 * @lock: completion EQ: held while events are taken out
 * @ring: the EQEs
 * @dbr: its record
 * @dbr_dma: the record's DMA address
 * @work: asynchronous EQ: takes events out
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

enum skua_state {
	SKUA_STATE_ALIVE,
	SKUA_STATE_DYING,	/* declared dead; may still reach host memory */
	SKUA_STATE_DEAD,	/* was reset or cut off: host memory is safe */
};

/**
 * struct skua_nic_health - life and death of the device
 * @state: enum skua_state; only ever grows, unless the device is brought up anew
 * @why: cause of death
 * @fenced: completed when the device can no longer reach host memory
 * @dead: carries death out
 * @poll: looks at STATUS now and then
 * @misses: looks in a row that were not answered; @poll's
 */
struct skua_nic_health {
	atomic_t state;
	const char *why;
	struct completion fenced;
	struct work_struct dead;
	struct delayed_work poll;
	unsigned int misses;
};

/**
 * struct skua_port - the port's settings that several write
 * @lock: the flags, the order of the commands that set them, and the netdev's carrier
 * @flags: SKUA_PORT_F_* as the device has them
 */
struct skua_port {
	struct mutex lock;		/* see above */
	u32 flags;
};

/**
 * struct skua_nic - a device, as skua.ko sees it
 * @dev: what skua_ib sees of it
 * @regs: BAR0
 * @cmdq: command queue
 * @cmd_timeout: in which each command is answered, jiffies
 * @dbr_pool: doorbell records
 * @num_vectors: MSI-X vectors; the first is that of asynchronous events
 * @async_eq: asynchronous EQ
 * @comp_eqs: completion EQs, dev.num_comp_vectors of them
 * @cqs: struct skua_cq_watch by cqn
 * @qps: struct skua_qp_watch by qpn
 * @db_ids: groups of doorbell pages that are given out
 * @notifier: who is told of death
 * @health: life and death
 * @port: the port
 * @rdma: auxiliary device, or NULL
 * @halted: during a reset from outside or a sleep, or the device could not be used after that
 */
struct skua_nic {
	struct skua_dev dev;
	void __iomem *regs;
	struct skua_cmdq cmdq;
	unsigned long cmd_timeout;
	struct dma_pool *dbr_pool;
	unsigned int num_vectors;
	struct skua_eq async_eq;
	struct skua_eq *comp_eqs;
	struct xarray cqs;
	struct xarray qps;
	struct ida db_ids;
	struct blocking_notifier_head notifier;
	struct skua_nic_health health;
	struct skua_port port;
	struct skua_adev *rdma;
	bool halted;
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

/* regs.c: 0 or an errno; each error was reported. All may sleep. */
int skua_regs_identify(struct skua_nic *nic);
int skua_regs_reset(struct skua_nic *nic);
int skua_regs_negotiate(struct skua_nic *nic);
int skua_regs_enable(struct skua_nic *nic);
u32 skua_regs_status(struct skua_nic *nic);
const char *skua_regs_health(struct skua_nic *nic);

/* cmdq.c */
struct skua_cmd_result {
	u32 number;
	u32 out_len;
};

int skua_cmdq_init(struct skua_nic *nic);
void skua_cmdq_destroy(struct skua_nic *nic);
/*
 * Carry out @cmd, its id, flags and output filled in here. @out: where @out_size bytes of output
 * go, those zeroed that the device did not write; NULL: none. @result may be NULL. May sleep.
 */
int skua_cmdq_exec(struct skua_nic *nic, struct skua_cmd *cmd, void *out, u32 out_size,
		   struct skua_cmd_result *result);
/* Fail all that wait, now and later. The device reaches no memory any more. */
void skua_cmdq_abort(struct skua_nic *nic);

/* cmd.c: commands of skua.ko alone */
int skua_cmd_query_device(struct skua_nic *nic, struct skua_limits *limits);
int skua_cmd_set_port(struct skua_nic *nic, const struct skua_cmd_set_port *set);
int skua_cmd_set_rss(struct skua_nic *nic, const struct skua_cmd_set_rss *rss);
int skua_cmd_create_eq(struct skua_nic *nic, const struct skua_cmd_create_eq *create, u32 *eqn);
void skua_cmd_destroy_eq(struct skua_nic *nic, u32 eqn);

/* eq.c */
int skua_eqs_create(struct skua_nic *nic);
void skua_eqs_destroy(struct skua_nic *nic);

/* event.c */
void skua_event_comp(struct skua_nic *nic, u32 cqn);
void skua_event_async(struct skua_nic *nic, const struct skua_async_eqe *eqe);

/* port.c */
int skua_port_update_flags(struct skua_nic *nic, u32 mask, u32 flags);
int skua_port_set_mac(struct skua_nic *nic, const u8 *mac);
/* At once, or, on error, not at all. */
int skua_port_set_receiver(struct skua_nic *nic, u32 mtu, const u8 *mac, u32 qpn);

/* health.c */

/* False from the moment of death on, when the device may still reach host memory. */
bool skua_dev_alive(struct skua_dev *dev);
void skua_health_init(struct skua_nic *nic);
void skua_health_start(struct skua_nic *nic);
void skua_health_stop(struct skua_nic *nic);
/* The device is dead, because of @why (a constant). Any context; only the first call counts. */
void skua_health_dead(struct skua_nic *nic, const char *why);
/* Look at STATUS soon. Any context. */
void skua_health_check(struct skua_nic *nic);
/* Wait until a dead device no longer reaches host memory. Bounded. */
void skua_health_wait_fenced(struct skua_nic *nic);
/* A dead device that nobody uses any more is about to be brought up. */
void skua_health_revive(struct skua_nic *nic);
/* That did not work, and all was undone. */
void skua_health_bury(struct skua_nic *nic);

/* rdma.c */
int skua_rdma_add(struct skua_nic *nic);
void skua_rdma_remove(struct skua_nic *nic);

/* netdev.c */
int skua_netdev_create(struct skua_nic *nic);
void skua_netdev_destroy(struct skua_nic *nic);
/* The link's state may have changed. May sleep. */
void skua_netdev_link_changed(struct skua_nic *nic);
/* The device is dead: nothing will be sent or received any more. */
void skua_netdev_dead(struct skua_nic *nic);
/* Take the netdev off a dead device; it stays as it is, without a link. May sleep. */
void skua_netdev_detach(struct skua_nic *nic);
/* The device was brought up anew: go on where detaching ended. May sleep. */
int skua_netdev_attach(struct skua_nic *nic);

#endif /* SKUA_NIC_H */
