// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * debugfs/skua/DEVICE/commands: how many commands of each opcode the device was given, how many it
 * refused, and how long it took. So one sees what a verb costs, and which commands it is made of.
 *
 * All that can go wrong with debugfs is that there are no files: nothing depends on it.
 */
#include <linux/debugfs.h>
#include <linux/pci.h>
#include <linux/seq_file.h>

#include "debugfs.h"
#include "skua.h"

static struct dentry *skua_debugfs_root;

void skua_debugfs_count(struct skua_nic *nic, const struct skua_cmd_record *record)
{
	struct skua_debugfs *debugfs = &nic->debugfs;
	struct skua_cmd_count *count;

	if (WARN_ON_ONCE(record->opcode >= SKUA_DEBUGFS_OPCODES))
		return;
	count = &debugfs->counts[record->opcode];
	spin_lock(&debugfs->lock);
	count->number++;
	if (!record->answered || record->status != SKUA_CMD_OK)
		count->failed++;
	count->us += record->us;
	count->longest_us = max_t(u64, count->longest_us, record->us);
	spin_unlock(&debugfs->lock);
}

static int skua_commands_show(struct seq_file *file, void *unused)
{
	struct skua_nic *nic = file->private;
	struct skua_debugfs *debugfs = &nic->debugfs;
	struct skua_cmd_count count;
	u32 opcode;

	seq_puts(file, "opcode     number     failed         us longest_us\n");
	for (opcode = 0; opcode < SKUA_DEBUGFS_OPCODES; opcode++) {
		spin_lock(&debugfs->lock);
		count = debugfs->counts[opcode];
		spin_unlock(&debugfs->lock);
		if (count.number)
			seq_printf(file, "0x%04x %10llu %10llu %10llu %10llu\n", opcode,
				   count.number, count.failed, count.us, count.longest_us);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(skua_commands);

void skua_debugfs_create(struct skua_nic *nic)
{
	struct skua_debugfs *debugfs = &nic->debugfs;

	spin_lock_init(&debugfs->lock);
	debugfs->dir = debugfs_create_dir(pci_name(nic->dev.pdev), skua_debugfs_root);
	debugfs_create_file("commands", 0400, debugfs->dir, nic, &skua_commands_fops);
}

/* Whoever reads is waited for. */
void skua_debugfs_destroy(struct skua_nic *nic)
{
	debugfs_remove_recursive(nic->debugfs.dir);
}

void skua_debugfs_init(void)
{
	skua_debugfs_root = debugfs_create_dir(SKUA_NAME, NULL);
}

void skua_debugfs_exit(void)
{
	debugfs_remove_recursive(skua_debugfs_root);
}
