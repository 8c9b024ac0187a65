// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The command queue.
 *
 * Theory of operation: a command goes into the entry of the ring at the producer index. Whoever
 * waits for it has a slot until the result is read. There are as many slots as entries, so
 * neither ring can be overrun, and one of the last commands is always complete; that frees the
 * entries before its own, even if a slow command was there (CMD-4). Completions come in any order
 * and are told apart by their id, which names the slot. The waiters take them in, each also those
 * of others: first without a pause, then with longer and longer ones. No interrupt is asked for,
 * since a device takes no longer for nearly all commands than an interrupt and a change of tasks
 * would, and setting up a connection is a handful of commands one after the other.
 *
 * Some slots are reserved for commands that take memory from the device, or give it back: the
 * kernel's memory management and exporters of dma-bufs wait for these, so they must not wait until
 * others are answered.
 *
 * Outputs go to a buffer of the slot, never to the caller's memory: should the device not
 * answer, the caller may leave as soon as the device is declared dead.
 *
 * A command that is not answered in time ends the device (health.c); death in turn ends all
 * waits. So a waiter waits without limit of its own, and can never be left behind.
 */
#include <linux/dma-mapping.h>
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/slab.h>

#include <linux/skua/queue.h>

#include "skua.h"

#define SKUA_CMDQ_LOG_SIZE	6	/* less if the device wants less */
#define SKUA_CMDQ_RESERVED	16	/* slots for urgent commands; a quarter of few */
#define SKUA_CMDQ_OUT_SIZE	512	/* the largest output */
#define SKUA_CMDQ_SPIN_US	100	/* a waiter looks so long without a pause */
#define SKUA_CMDQ_SLEEP_US	10	/* the first pause */
#define SKUA_CMDQ_SLEEP_MAX_US	1000	/* the longest */

static_assert(sizeof(struct skua_stats) <= SKUA_CMDQ_OUT_SIZE);
static_assert(sizeof(struct skua_device_caps) <= SKUA_CMDQ_OUT_SIZE);

/**
 * struct skua_cmd_slot - a command, and who waits for it
 * @busy: taken, until the waiter has read the result
 * @waiting: the device has not answered yet; once it is false the rest stays as it is
 * @id: of the command: index of the slot, and a count above it
 * @opcode: of the command
 * @start: when it was published
 * @err: 0 or an errno, instead of an answer
 * @status: enum skua_cmd_status
 * @result: what the device returned
 */
struct skua_cmd_slot {
	bool busy;
	bool waiting;
	u32 id;
	u16 opcode;
	ktime_t start;
	int err;
	u8 status;
	struct skua_cmd_result result;
};

/* What a status means to callers. Programs can cause all of them but the last: no messages. */
static const int skua_cmd_errno[] = {
	[SKUA_CMD_OK]		= 0,
	[SKUA_CMD_BAD_OPCODE]	= -EOPNOTSUPP,
	[SKUA_CMD_BAD_PARAM]	= -EINVAL,
	[SKUA_CMD_BAD_OBJECT]	= -EINVAL,
	[SKUA_CMD_BUSY]		= -EBUSY,
	[SKUA_CMD_NO_RESOURCE]	= -ENOMEM,
	[SKUA_CMD_BAD_STATE]	= -EINVAL,
	[SKUA_CMD_BAD_ADDRESS]	= -EFAULT,
	[SKUA_CMD_INTERNAL]	= -EIO,
	[SKUA_CMD_NOT_PERMITTED] = -EPERM,
};

int skua_cmdq_init(struct skua_nic *nic)
{
	struct skua_cmdq *cmdq = &nic->cmdq;
	u32 size = BIT(SKUA_CMDQ_LOG_SIZE);
	int err;

	memset(cmdq, 0, sizeof(*cmdq));
	spin_lock_init(&cmdq->lock);
	init_waitqueue_head(&cmdq->free);
	cmdq->log_size = SKUA_CMDQ_LOG_SIZE;
	cmdq->mask = size - 1;

	cmdq->slots = kcalloc(size, sizeof(*cmdq->slots), GFP_KERNEL);
	if (!cmdq->slots)
		return -ENOMEM;
	err = skua_mem_alloc(&nic->dev, &cmdq->ring, size * sizeof(struct skua_cmd));
	if (err)
		goto err_slots;
	err = skua_mem_alloc(&nic->dev, &cmdq->cpl, size * sizeof(struct skua_cmd_cpl));
	if (err)
		goto err_ring;
	err = skua_mem_alloc(&nic->dev, &cmdq->out, size * SKUA_CMDQ_OUT_SIZE);
	if (err)
		goto err_cpl;
	cmdq->dbr = skua_dbr_alloc(&nic->dev, &cmdq->dbr_dma);
	if (!cmdq->dbr) {
		err = -ENOMEM;
		goto err_out;
	}
	return 0;

err_out:
	skua_mem_free(&nic->dev, &cmdq->out);
err_cpl:
	skua_mem_free(&nic->dev, &cmdq->cpl);
err_ring:
	skua_mem_free(&nic->dev, &cmdq->ring);
err_slots:
	kfree(cmdq->slots);
	return err;
}

void skua_cmdq_destroy(struct skua_nic *nic)
{
	struct skua_cmdq *cmdq = &nic->cmdq;

	skua_dbr_free(&nic->dev, cmdq->dbr, cmdq->dbr_dma);
	skua_mem_free(&nic->dev, &cmdq->out);
	skua_mem_free(&nic->dev, &cmdq->cpl);
	skua_mem_free(&nic->dev, &cmdq->ring);
	kfree(cmdq->slots);
}

static bool skua_cmd_is_urgent(const struct skua_cmd *cmd)
{
	u16 opcode = le16_to_cpu(cmd->hdr.opcode);

	return opcode == SKUA_CMD_INVALIDATE_MR || opcode == SKUA_CMD_UPDATE_PAGES ||
	       opcode == SKUA_CMD_FAULT_RESUME;
}

/* A slot for @cmd, or NULL. */
static struct skua_cmd_slot *skua_cmd_slot_get(struct skua_cmdq *cmdq, const struct skua_cmd *cmd)
{
	u32 size = cmdq->mask + 1;
	u32 reserved = skua_cmd_is_urgent(cmd) ? 0 : min_t(u32, SKUA_CMDQ_RESERVED, size / 4);
	u32 i = cmdq->pi & cmdq->mask;

	lockdep_assert_held(&cmdq->lock);
	if (cmdq->busy >= size - reserved)
		return NULL;
	while (cmdq->slots[i].busy)
		i = (i + 1) & cmdq->mask;
	cmdq->busy++;
	return &cmdq->slots[i];
}

/*
 * Put @cmd in the ring and tell the device. Returns its slot, ERR_PTR(-EAGAIN) if there is none
 * free, or ERR_PTR(-EIO) if the device is dead.
 */
static struct skua_cmd_slot *skua_cmdq_publish(struct skua_nic *nic, const struct skua_cmd *cmd,
					       u32 out_size)
{
	struct skua_cmdq *cmdq = &nic->cmdq;
	struct skua_cmd_slot *slot;
	struct skua_cmd *entry;
	u32 index;

	spin_lock(&cmdq->lock);
	slot = cmdq->dead ? ERR_PTR(-EIO) : skua_cmd_slot_get(cmdq, cmd);
	if (!slot)
		slot = ERR_PTR(-EAGAIN);
	if (IS_ERR(slot))
		goto out;

	index = slot - cmdq->slots;
	slot->busy = true;
	slot->waiting = true;
	/* Its index, and above that how often it was used. */
	slot->id = (slot->id & ~cmdq->mask) + cmdq->mask + 1 + index;
	slot->opcode = le16_to_cpu(cmd->hdr.opcode);
	slot->start = ktime_get();
	slot->err = 0;

	entry = cmdq->ring.va + (cmdq->pi & cmdq->mask) * sizeof(*entry);
	memcpy(entry, cmd, sizeof(*entry));
	entry->hdr.id = cpu_to_le32(slot->id);
	if (out_size) {
		entry->hdr.out_len = cpu_to_le32(out_size);
		entry->hdr.out_addr = cpu_to_le64(cmdq->out.dma + index * SKUA_CMDQ_OUT_SIZE);
	}

	cmdq->pi++;
	skua_dbr_publish(cmdq->dbr, cmdq->pi);
	if (skua_dbr_due(&nic->dev, cmdq->dbr, cmdq->pi, cmdq->pi - 1))
		skua_db_ring(&nic->dev, SKUA_DB_CMD, 0, cmdq->pi);
out:
	spin_unlock(&cmdq->lock);
	return slot;
}

/* The completion at ci, NULL if it has not come yet. */
static struct skua_cmd_cpl *skua_cmdq_next(struct skua_cmdq *cmdq)
{
	u32 ci = READ_ONCE(cmdq->ci);	/* without the lock, it is a hint */
	struct skua_cmd_cpl *cpl = cmdq->cpl.va + (ci & cmdq->mask) * sizeof(*cpl);
	u8 phase = ci & (cmdq->mask + 1) ? 0 : SKUA_CMD_CPL_PHASE;

	if ((READ_ONCE(cpl->flags) & SKUA_CMD_CPL_PHASE) != phase)
		return NULL;
	/* The rest of it, and the output, are read after the phase. */
	dma_rmb();
	return cpl;
}

static void skua_cmd_slot_end(struct skua_cmd_slot *slot)
{
	/* Pairs with skua_cmdq_wait(): the waiter sees the rest of the slot. */
	smp_store_release(&slot->waiting, false);
}

static void skua_cmdq_complete(struct skua_nic *nic)
{
	struct skua_cmdq *cmdq = &nic->cmdq;
	struct skua_cmd_slot *slot;
	struct skua_cmd_cpl *cpl;
	u32 id;

	spin_lock(&cmdq->lock);
	while (!cmdq->dead && (cpl = skua_cmdq_next(cmdq))) {
		WRITE_ONCE(cmdq->ci, cmdq->ci + 1);
		id = le32_to_cpu(cpl->id);
		slot = &cmdq->slots[id & cmdq->mask];
		if (!slot->waiting || slot->id != id) {
			skua_health_dead(nic, "it completed a command that is not outstanding");
			break;
		}
		slot->status = cpl->status;
		slot->result.number = le32_to_cpu(cpl->number);
		slot->result.out_len = le32_to_cpu(cpl->out_len);
		slot->result.index = le32_to_cpu(cpl->index);
		skua_cmd_slot_end(slot);
	}
	spin_unlock(&cmdq->lock);
}

void skua_cmdq_abort(struct skua_nic *nic)
{
	struct skua_cmdq *cmdq = &nic->cmdq;
	u32 i;

	spin_lock(&cmdq->lock);
	cmdq->dead = true;
	for (i = 0; i <= cmdq->mask; i++) {
		struct skua_cmd_slot *slot = &cmdq->slots[i];

		if (!slot->waiting)
			continue;
		slot->err = -EIO;
		skua_cmd_slot_end(slot);
	}
	spin_unlock(&cmdq->lock);
	wake_up_all(&cmdq->free);
}

static void skua_cmdq_wait(struct skua_nic *nic, struct skua_cmd_slot *slot)
{
	ktime_t spin = ktime_add_us(ktime_get(), SKUA_CMDQ_SPIN_US);
	unsigned long end = jiffies + nic->cmd_timeout;
	unsigned int us = SKUA_CMDQ_SLEEP_US;

	for (;;) {
		/* Asked before the last look, which may come late. */
		bool late = time_after(jiffies, end);

		if (skua_cmdq_next(&nic->cmdq))
			skua_cmdq_complete(nic);
		/* Pairs with skua_cmd_slot_end(). */
		if (!smp_load_acquire(&slot->waiting))
			return;
		/* The wait goes on until the device is fenced, see skua_cmdq_abort(). */
		if (late)
			skua_health_dead(nic, "a command was not answered in time");
		if (ktime_before(ktime_get(), spin)) {
			cpu_relax();
			cond_resched();
		} else {
			usleep_range(us, 2 * us);
			us = min(2 * us, SKUA_CMDQ_SLEEP_MAX_US);
		}
	}
}

static struct skua_cmd_record skua_cmd_slot_record(const struct skua_cmd_slot *slot)
{
	return (struct skua_cmd_record) {
		.us = ktime_us_delta(ktime_get(), slot->start),
		.id = slot->id,
		.opcode = slot->opcode,
		.answered = !slot->waiting && !slot->err,
		.status = slot->status,
	};
}

/* Read the result and give the slot back. */
static int skua_cmdq_finish(struct skua_nic *nic, struct skua_cmd_slot *slot, void *out,
			    u32 out_size, struct skua_cmd_result *result)
{
	const struct skua_cmd_record record = skua_cmd_slot_record(slot);
	struct skua_cmdq *cmdq = &nic->cmdq;
	u32 index = slot - cmdq->slots;
	int err = slot->err;

	if (!err)
		err = slot->status < ARRAY_SIZE(skua_cmd_errno) ? skua_cmd_errno[slot->status] :
								  -EIO;
	if (!err && out) {
		u32 len = min(out_size, slot->result.out_len);

		memset(out, 0, out_size);
		memcpy(out, cmdq->out.va + index * SKUA_CMDQ_OUT_SIZE, len);
	}
	if (!err && result)
		*result = slot->result;

	skua_debugfs_count(nic, &record);
	spin_lock(&cmdq->lock);
	cmdq->last[cmdq->ended++ % SKUA_CMDQ_LAST] = record;
	slot->busy = false;
	cmdq->busy--;
	spin_unlock(&cmdq->lock);
	wake_up(&cmdq->free);
	return err;
}

int skua_cmdq_exec(struct skua_nic *nic, struct skua_cmd *cmd, void *out, u32 out_size,
		   struct skua_cmd_result *result)
{
	struct skua_cmd_slot *slot;

	might_sleep();
	if (!skua_dev_alive(&nic->dev))
		return -EIO;
	if (WARN_ON_ONCE(out_size > SKUA_CMDQ_OUT_SIZE))
		return -EINVAL;

	wait_event(nic->cmdq.free,
		   (slot = skua_cmdq_publish(nic, cmd, out_size)) != ERR_PTR(-EAGAIN));
	if (IS_ERR(slot))
		return PTR_ERR(slot);
	skua_cmdq_wait(nic, slot);
	return skua_cmdq_finish(nic, slot, out, out_size, result);
}

/* For a dump, which cannot be written under the lock. */
struct skua_cmdq_picture {
	u32 pi;
	u32 ci;
	u32 num_outstanding;
	u32 num_last;
	struct skua_cmd_record outstanding[BIT(SKUA_CMDQ_LOG_SIZE)];
	struct skua_cmd_record last[SKUA_CMDQ_LAST];
};

static void skua_cmdq_picture(struct skua_cmdq *cmdq, struct skua_cmdq_picture *picture)
{
	u32 i;

	spin_lock(&cmdq->lock);
	picture->pi = cmdq->pi;
	picture->ci = cmdq->ci;
	for (i = 0; i <= cmdq->mask; i++)
		if (cmdq->slots[i].busy)
			picture->outstanding[picture->num_outstanding++] =
				skua_cmd_slot_record(&cmdq->slots[i]);
	for (i = cmdq->ended - min_t(u32, cmdq->ended, SKUA_CMDQ_LAST); i != cmdq->ended; i++)
		picture->last[picture->num_last++] = cmdq->last[i % SKUA_CMDQ_LAST];
	spin_unlock(&cmdq->lock);
}

static void skua_cmd_records_dump(struct devlink_fmsg *fmsg, const char *name,
				  const struct skua_cmd_record *record, u32 num)
{
	devlink_fmsg_arr_pair_nest_start(fmsg, name);
	for (; num--; record++) {
		devlink_fmsg_obj_nest_start(fmsg);
		skua_fmsg_put_hex(fmsg, "opcode", record->opcode);
		skua_fmsg_put_hex(fmsg, "id", record->id);
		devlink_fmsg_u64_pair_put(fmsg, "us", record->us);
		devlink_fmsg_bool_pair_put(fmsg, "answered", record->answered);
		if (record->answered)
			devlink_fmsg_u8_pair_put(fmsg, "status", record->status);
		devlink_fmsg_obj_nest_end(fmsg);
	}
	devlink_fmsg_arr_pair_nest_end(fmsg);
}

int skua_cmdq_dump(struct skua_nic *nic, struct devlink_fmsg *fmsg)
{
	struct skua_cmdq_picture *picture;

	picture = kzalloc(sizeof(*picture), GFP_KERNEL);
	if (!picture)
		return -ENOMEM;
	skua_cmdq_picture(&nic->cmdq, picture);
	skua_fmsg_nest_start(fmsg, "commands");
	devlink_fmsg_u32_pair_put(fmsg, "size", nic->cmdq.mask + 1);
	devlink_fmsg_u32_pair_put(fmsg, "producer_index", picture->pi);
	devlink_fmsg_u32_pair_put(fmsg, "consumer_index", picture->ci);
	skua_cmd_records_dump(fmsg, "outstanding", picture->outstanding, picture->num_outstanding);
	skua_cmd_records_dump(fmsg, "last", picture->last, picture->num_last);
	skua_fmsg_nest_end(fmsg);
	kfree(picture);
	return 0;
}
