/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * skua.ko: what the driver asked of its device, for whoever looks into debugfs.
 */
#ifndef SKUA_DEBUGFS_H
#define SKUA_DEBUGFS_H

#include <linux/spinlock.h>
#include <linux/types.h>

struct dentry;
struct skua_cmd_record;
struct skua_nic;

#define SKUA_DEBUGFS_OPCODES	256	/* all that there are lie below */

/**
 * struct skua_cmd_count - the commands of one opcode
 * @number: that ended
 * @failed: those of them whose status was not SKUA_CMD_OK, or that were not answered
 * @us: how long all of them took
 * @longest_us: how long the longest took
 */
struct skua_cmd_count {
	u64 number;
	u64 failed;
	u64 us;
	u64 longest_us;
};

/**
 * struct skua_debugfs - a device's directory in debugfs, and what is shown there
 * @dir: skua/DEVICE
 * @lock: the rest
 * @counts: by opcode, since the driver was bound
 */
struct skua_debugfs {
	struct dentry *dir;
	spinlock_t lock;		/* counts */
	struct skua_cmd_count counts[SKUA_DEBUGFS_OPCODES];
};

/* The module's directory. */
void skua_debugfs_init(void);
void skua_debugfs_exit(void);

/* That of a device, before its first command, and after its last. */
void skua_debugfs_create(struct skua_nic *nic);
void skua_debugfs_destroy(struct skua_nic *nic);

/* A command ended. */
void skua_debugfs_count(struct skua_nic *nic, const struct skua_cmd_record *record);

#endif /* SKUA_DEBUGFS_H */
