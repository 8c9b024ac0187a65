// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Health: how the driver learns that the device is dead, and what follows.
 *
 * Whoever finds a sign of death (a command without answer, the event, FATAL in STATUS, nonsense
 * in a queue) calls skua_health_dead(), from any context. From that moment on commands fail at
 * once. A work then takes the device away from host memory, by a reset, or if even that does
 * not work by switching bus mastering off; only then do those wake up who wait for commands, and
 * may memory be freed, and only then do users of the device learn of its death, who complete in
 * software what it left undone. Creating fails on a dead device, destroying succeeds.
 *
 * A dead device stays dead until the driver is bound again, the function is reset from outside, or
 * devlink has it recovered or reloaded (main.c, reporter.c).
 */
#include "netdev.h"
#include "regs.h"
#include "skua.h"

#define SKUA_HEALTH_INTERVAL	(2 * HZ)
/*
 * A read that the bus does not answer in time reads all ones, too: a device in software may be
 * late, and a program can delay it by a flood of doorbells. A device that is gone stays gone.
 */
#define SKUA_HEALTH_MISSES	3	/* in a row */
#define SKUA_HEALTH_MISSED	HZ	/* until the next look */

enum skua_state skua_health_state(struct skua_nic *nic)
{
	/* Acquire: who sees that the device is dead sees the cause, too. */
	return atomic_read_acquire(&nic->health.state);
}

bool skua_dev_alive(struct skua_dev *dev)
{
	return skua_health_state(to_skua_nic(dev)) == SKUA_STATE_ALIVE;
}

void skua_dev_fail(struct skua_dev *dev, const char *why)
{
	skua_health_dead(to_skua_nic(dev), why);
}
EXPORT_SYMBOL_NS_GPL(skua_dev_fail, SKUA_NS);

void skua_queue_work(struct work_struct *work)
{
	queue_work(skua_wq, work);
}
EXPORT_SYMBOL_NS_GPL(skua_queue_work, SKUA_NS);

int skua_notifier_register(struct skua_dev *dev, struct notifier_block *nb)
{
	return blocking_notifier_chain_register(&to_skua_nic(dev)->notifier, nb);
}
EXPORT_SYMBOL_NS_GPL(skua_notifier_register, SKUA_NS);

void skua_notifier_unregister(struct skua_dev *dev, struct notifier_block *nb)
{
	blocking_notifier_chain_unregister(&to_skua_nic(dev)->notifier, nb);
}
EXPORT_SYMBOL_NS_GPL(skua_notifier_unregister, SKUA_NS);

void skua_health_dead(struct skua_nic *nic, const char *why)
{
	struct skua_nic_health *health = &nic->health;

	if (atomic_cmpxchg(&health->state, SKUA_STATE_ALIVE, SKUA_STATE_DYING) != SKUA_STATE_ALIVE)
		return;
	health->why = why;
	queue_work(skua_wq, &health->dead);
}

/* After this the device reaches no host memory (RST-4, RST-6). */
static void skua_health_fence(struct skua_nic *nic)
{
	if (!skua_regs_reset(nic))
		return;
	pci_clear_master(nic->dev.pdev);
}

static void skua_health_dead_work(struct work_struct *work)
{
	struct skua_nic_health *health = container_of(work, struct skua_nic_health, dead);
	struct skua_nic *nic = container_of(health, struct skua_nic, health);

	health->last_status = skua_regs_status(nic);
	health->last_code = skua_regs_health(nic);
	dev_err(skua_nic_device(nic), "device is dead: %s (status %#x, health: %s)\n", health->why,
		health->last_status, skua_health_name(health->last_code));
	skua_health_fence(nic);
	atomic_set_release(&health->state, SKUA_STATE_DEAD);
	complete_all(&health->fenced);
	skua_cmdq_abort(nic);
	skua_netdev_dead(nic);
	blocking_notifier_call_chain(&nic->notifier, SKUA_NOTICE_DEAD, NULL);
	skua_reporter_dead(nic);
}

void skua_health_wait_fenced(struct skua_nic *nic)
{
	wait_for_completion(&nic->health.fenced);
}

static void skua_health_poll_work(struct work_struct *work)
{
	struct skua_nic_health *health = container_of(work, struct skua_nic_health, poll.work);
	struct skua_nic *nic = container_of(health, struct skua_nic, health);
	u32 status = skua_regs_status(nic);

	health->misses = status == U32_MAX ? health->misses + 1 : 0;
	if (health->misses == SKUA_HEALTH_MISSES)
		skua_health_dead(nic, "it is gone from the bus");
	else if (!health->misses && status & SKUA_STATUS_FATAL)
		skua_health_dead(nic, "it is in the fatal state");
	else if (!health->misses && !(status & SKUA_STATUS_ENABLED))
		skua_health_dead(nic, "it was reset by someone else");
	if (skua_dev_alive(&nic->dev))
		queue_delayed_work(skua_wq, &health->poll,
				   health->misses ? SKUA_HEALTH_MISSED : SKUA_HEALTH_INTERVAL);
}

void skua_health_check(struct skua_nic *nic)
{
	mod_delayed_work(skua_wq, &nic->health.poll, 0);
}

void skua_health_init(struct skua_nic *nic)
{
	struct skua_nic_health *health = &nic->health;

	atomic_set(&health->state, SKUA_STATE_ALIVE);
	init_completion(&health->fenced);
	INIT_WORK(&health->dead, skua_health_dead_work);
	INIT_DELAYED_WORK(&health->poll, skua_health_poll_work);
}

void skua_health_start(struct skua_nic *nic)
{
	queue_delayed_work(skua_wq, &nic->health.poll, SKUA_HEALTH_INTERVAL);
}

void skua_health_stop(struct skua_nic *nic)
{
	cancel_delayed_work_sync(&nic->health.poll);
	flush_work(&nic->health.dead);
}

void skua_health_revive(struct skua_nic *nic)
{
	reinit_completion(&nic->health.fenced);
	nic->health.misses = 0;
	atomic_set(&nic->health.state, SKUA_STATE_ALIVE);
}

void skua_health_bury(struct skua_nic *nic)
{
	nic->health.why = "it cannot be brought up";
	nic->health.last_status = skua_regs_status(nic);
	nic->health.last_code = skua_regs_health(nic);
	atomic_set_release(&nic->health.state, SKUA_STATE_DEAD);
	complete_all(&nic->health.fenced);
}
