/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Skua: the device as skua.ko offers it to skua_ib.ko.
 *
 * skua.ko owns the PCI function, commands, event queues and the netdev. For RDMA it makes an
 * auxiliary device "skua.rdma", whose driver may use all of include/linux/skua/ from its probe
 * to its remove. The symbols are in the namespace SKUA.
 */
#ifndef LINUX_SKUA_DEVICE_H
#define LINUX_SKUA_DEVICE_H

#include <linux/auxiliary_bus.h>
#include <linux/bits.h>
#include <linux/netdevice.h>
#include <linux/pci.h>
#include <linux/types.h>

#include <linux/skua/compat.h>
#include <skua/regs.h>

struct notifier_block;

#define SKUA_ADEV_RDMA	"rdma"

/**
 * struct skua_limits - struct skua_device_caps in the CPU's byte order
 * @guid: EUI-64
 * @max_mr_size: bytes of an MR
 * @max_pages: page-list entries of all MRs and queues together
 * @clock_khz: rate of the clock and of timestamps
 * @fw_version: major << 16 | minor
 * @max_eq: EQs
 * @max_pd: PDs
 * @max_cq: CQs; no more than one completion EQ can serve
 * @max_qp: QPs
 * @max_mr: MRs
 * @max_cqe: CQEs of a CQ
 * @max_sq_blocks: 64-byte blocks of an SQ
 * @max_rq_entries: entries of an RQ
 * @max_eqe: entries of an EQ
 * @num_db_pages: doorbell pages, page 0 included
 * @reserved_lkey: lkey for DMA addresses, for privileged QPs
 * @max_msg_size: bytes of a message
 * @max_mcast_groups: multicast groups with QPs
 * @max_mcast_qps: QPs of a group
 * @max_fast_pages: pages of a fast registration
 * @max_fast_pieces: pieces of one with a list of these
 * @max_mw: memory windows
 * @max_srq: SRQs
 * @max_srq_entries: entries of an SRQ
 * @flush_caps: placements that a FLUSH may ask for, SKUA_FLUSH_*
 * @max_xrcd: XRC domains
 * @max_dm: bytes of device memory
 * @max_flow: flows
 * @max_rss: RSS objects
 * @max_counter_set: counter sets
 * @min_rate: kb/s of a rate limit, at least
 * @max_rate: kb/s of a rate limit, at most
 * @ece_options: that the device has
 * @max_tso: bytes of payload of a TSO
 * @max_tags: tags of an SRQ
 * @max_send_sge: SGEs of a send WQE
 * @max_recv_sge: SGEs of a receive WQE
 * @max_inline: bytes of inline data
 * @max_rd_atomic: READs of a QP, in each direction
 * @gid_table_len: entries of the GID table
 * @pkey_table_len: entries of the P_Key table
 * @num_ports: ports
 * @cmd_timeout: seconds within which each command is answered
 */
struct skua_limits {
	u8 guid[8];
	u64 max_mr_size;
	u64 max_pages;
	u64 max_dm;
	u32 clock_khz;
	u32 fw_version;
	u32 max_eq;
	u32 max_pd;
	u32 max_cq;
	u32 max_qp;
	u32 max_mr;
	u32 max_cqe;
	u32 max_sq_blocks;
	u32 max_rq_entries;
	u32 max_eqe;
	u32 num_db_pages;
	u32 reserved_lkey;
	u32 max_msg_size;
	u32 max_mcast_groups;
	u32 max_mcast_qps;
	u32 max_fast_pages;
	u32 max_fast_pieces;
	u32 max_mw;
	u32 max_srq;
	u32 max_srq_entries;
	u32 flush_caps;
	u32 max_xrcd;
	u32 max_flow;
	u32 max_rss;
	u32 max_counter_set;
	u32 min_rate;
	u32 max_rate;
	u32 ece_options;
	u32 max_tso;
	u32 max_tags;
	u16 max_send_sge;
	u16 max_recv_sge;
	u16 max_inline;
	u16 max_rd_atomic;
	u16 gid_table_len;
	u16 pkey_table_len;
	u8 num_ports;
	u8 cmd_timeout;
};

/**
 * struct skua_dev - what users of a device know of it; constant while they run
 * @pdev: the PCI function; its device is the one for DMA
 * @netdev: the port's interface
 * @db: doorbell page 0, the kernel's
 * @features: accepted ones, bits SKUA_F_*
 * @limits: as the device reports
 * @num_comp_vectors: completion vectors, each with an EQ
 */
struct skua_dev {
	struct pci_dev *pdev;
	struct net_device *netdev;
	void __iomem *db;
	u64 features;
	struct skua_limits limits;
	unsigned int num_comp_vectors;
};

/**
 * struct skua_adev - the auxiliary device that skua_ib binds to
 * @adev: as the auxiliary bus knows it
 * @dev: the device behind it, which outlives it
 */
struct skua_adev {
	struct auxiliary_device adev;
	struct skua_dev *dev;
};

static inline struct skua_adev *to_skua_adev(struct auxiliary_device *adev)
{
	return container_of(adev, struct skua_adev, adev);
}

static inline struct device *skua_dma_dev(const struct skua_dev *dev)
{
	return &dev->pdev->dev;
}

static inline bool skua_has(const struct skua_dev *dev, unsigned int feature)
{
	return dev->features & BIT_ULL(feature);
}

/* The clock of CQE timestamps, limits.clock_khz. May sleep. -EIO: the device does not answer. */
int skua_read_clock(struct skua_dev *dev, u64 *clock);

/**
 * enum skua_notice - what users of a device are told, in process context
 * @SKUA_NOTICE_DEAD: the device is dead; it no longer reaches host memory
 */
enum skua_notice {
	SKUA_NOTICE_DEAD,
};

int skua_notifier_register(struct skua_dev *dev, struct notifier_block *nb);
/* After return @nb is not running and will not be called again. */
void skua_notifier_unregister(struct skua_dev *dev, struct notifier_block *nb);

/* The device is dead, because of @why, a constant: it did what it cannot have done. Any context. */
void skua_dev_fail(struct skua_dev *dev, const char *why);

/* Do @work soon. Memory reclaim may wait for it, so it must not wait for memory. Any context. */
void skua_queue_work(struct work_struct *work);

/* RoCEv2 packets to a programmed GID are RDMA's from now on, or the host's. May sleep. */
int skua_port_set_roce(struct skua_dev *dev, bool on);

/**
 * struct skua_db_pages - doorbell pages of a context
 * @index: number of the first, as CREATE_CQ and CREATE_QP take it
 * @phys: physical address of the first, aligned to PAGE_SIZE
 *
 * A context owns all doorbell pages of one page of the CPU: SKUA_DB_PAGES_SIZE bytes.
 */
struct skua_db_pages {
	u32 index;
	phys_addr_t phys;
};

#define SKUA_DB_PAGES_SIZE	PAGE_SIZE

/* May sleep. -ENOSPC when all are given out. */
int skua_db_pages_alloc(struct skua_dev *dev, struct skua_db_pages *pages);
void skua_db_pages_free(struct skua_dev *dev, const struct skua_db_pages *pages);

#endif /* LINUX_SKUA_DEVICE_H */
