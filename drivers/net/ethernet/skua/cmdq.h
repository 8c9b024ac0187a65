/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * skua.ko: the command queue.
 */
#ifndef SKUA_CMDQ_H
#define SKUA_CMDQ_H

#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>

#include <linux/skua/memory.h>
#include <skua/cmd.h>
#include <skua/doorbell.h>

struct devlink_fmsg;
struct skua_cmd_slot;
struct skua_nic;

#define SKUA_CMDQ_LAST		32	/* commands that are remembered */

/**
 * struct skua_cmd_record - a command that is outstanding, or was
 * @us: how long it took, or has taken
 * @id: of the command
 * @opcode: of the command
 * @answered: by the device
 * @status: that the device answered with, enum skua_cmd_status
 */
struct skua_cmd_record {
	s64 us;
	u32 id;
	u16 opcode;
	bool answered;
	u8 status;
};

/**
 * struct skua_cmdq - the command queue
 * @lock: all below
 * @ring: struct skua_cmd
 * @cpl: struct skua_cmd_cpl
 * @out: output buffers, one for each slot
 * @dbr: its record
 * @dbr_dma: the record's DMA address
 * @slots: who waits for commands, as many as the ring has entries
 * @busy: slots that are taken
 * @free: woken when a slot is free, or the device dead
 * @log_size: entries of both rings, log2
 * @mask: entries - 1
 * @pi: index of the next command
 * @ci: index of the next completion
 * @ended: commands whose result was read
 * @last: the last ones of these, each at its number modulo the length
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
	u32 busy;
	wait_queue_head_t free;
	u8 log_size;
	u32 mask;
	u32 pi;
	u32 ci;
	u32 ended;
	struct skua_cmd_record last[SKUA_CMDQ_LAST];
	bool dead;
};

struct skua_cmd_result {
	u32 number;
	u32 out_len;
	u32 index;
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
/* What is outstanding, and the last commands. */
int skua_cmdq_dump(struct skua_nic *nic, struct devlink_fmsg *fmsg);

#endif /* SKUA_CMDQ_H */
