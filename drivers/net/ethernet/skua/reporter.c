// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * devlink's health reporter "fatal": it tells of the device's death, shows what is known of it, and
 * brings the device up anew, as a reset from outside does (main.c).
 *
 * devlink calls under its lock, and devlink_health_report() takes it. So death is reported by a
 * work of its own: that which carries death out (health.c) is waited for under that lock. The work
 * may remove the RDMA device, which waits for works of other subsystems, so it cannot run in
 * skua_wq, on which memory reclaim may depend.
 *
 * A device that is halted is not reported, however it died: it is being brought up by whoever
 * halted it.
 */
#include <linux/skua/command.h>

#include "compat.h"
#include "devlink.h"
#include "regs.h"
#include "skua.h"

/* A device that dies again so soon is left dead. */
#define SKUA_GRACE_MS	60000

static const char * const skua_state_names[] = {
	[SKUA_STATE_ALIVE]	= "alive",
	[SKUA_STATE_DYING]	= "dying",
	[SKUA_STATE_DEAD]	= "dead",
};

void skua_fmsg_nest_start(struct devlink_fmsg *fmsg, const char *name)
{
	devlink_fmsg_pair_nest_start(fmsg, name);
	devlink_fmsg_obj_nest_start(fmsg);
}

void skua_fmsg_nest_end(struct devlink_fmsg *fmsg)
{
	devlink_fmsg_obj_nest_end(fmsg);
	devlink_fmsg_pair_nest_end(fmsg);
}

void skua_fmsg_put_hex(struct devlink_fmsg *fmsg, const char *name, u32 value)
{
	char text[16];

	snprintf(text, sizeof(text), "%#x", value);
	devlink_fmsg_string_pair_put(fmsg, name, text);
}

static void skua_reporter_put_life(struct skua_nic *nic, struct devlink_fmsg *fmsg)
{
	const struct skua_nic_health *health = &nic->health;
	enum skua_state state = skua_health_state(nic);

	devlink_fmsg_string_pair_put(fmsg, "state", skua_state_names[state]);
	if (state != SKUA_STATE_DEAD)
		return;
	devlink_fmsg_string_pair_put(fmsg, "reason", health->why);
	skua_fmsg_put_hex(fmsg, "status_at_death", health->last_status);
	skua_fmsg_put_hex(fmsg, "health_at_death", health->last_code);
	devlink_fmsg_string_pair_put(fmsg, "cause_at_death", skua_health_name(health->last_code));
}

static int skua_reporter_diagnose(struct devlink_health_reporter *reporter,
				  struct devlink_fmsg *fmsg, struct netlink_ext_ack *extack)
{
	struct skua_nic *nic = devlink_health_reporter_priv(reporter);

	skua_reporter_put_life(nic, fmsg);
	skua_fmsg_put_hex(fmsg, "status", skua_regs_status(nic));
	return 0;
}

/* The device's counters. A dead device does not tell them any more. */
static void skua_reporter_put_stats(struct skua_nic *nic, struct devlink_fmsg *fmsg)
{
	struct skua_stats stats;

	if (skua_cmd_query_stats(&nic->dev, &stats))
		return;
	skua_fmsg_nest_start(fmsg, "counters");
#define SKUA_PUT_STAT(name) devlink_fmsg_u64_pair_put(fmsg, #name, le64_to_cpu(stats.name));
	SKUA_STATS(SKUA_PUT_STAT)
#undef SKUA_PUT_STAT
	skua_fmsg_nest_end(fmsg);
}

static int skua_reporter_dump(struct devlink_health_reporter *reporter, struct devlink_fmsg *fmsg,
			      void *context, struct netlink_ext_ack *extack)
{
	struct skua_nic *nic = devlink_health_reporter_priv(reporter);
	int err;

	skua_fmsg_nest_start(fmsg, "device");
	skua_reporter_put_life(nic, fmsg);
	skua_fmsg_nest_end(fmsg);
	skua_regs_dump(nic, fmsg);
	/* Without its queues, which are freed, if it could not be brought up. */
	if (nic->halted)
		return 0;
	err = skua_cmdq_dump(nic, fmsg);
	if (err)
		return err;
	skua_eqs_dump(nic, fmsg);
	skua_reporter_put_stats(nic, fmsg);
	return 0;
}

static int skua_reporter_recover(struct devlink_health_reporter *reporter, void *context,
				 struct netlink_ext_ack *extack)
{
	struct skua_nic *nic = devlink_health_reporter_priv(reporter);
	int err;

	if (nic->expected) {
		NL_SET_ERR_MSG_MOD(extack, "the device is being reset, or sleeps");
		return -EBUSY;
	}
	/* Somebody else was faster. */
	if (!nic->halted && skua_dev_alive(&nic->dev))
		return 0;
	skua_halt(nic, "it is about to be recovered");
	err = skua_go_on(nic, "recovery");
	if (err)
		NL_SET_ERR_MSG_MOD(extack, "the device cannot be brought up, see the kernel's log");
	return err;
}

static const struct devlink_health_reporter_ops skua_reporter_ops = {
	.name = "fatal",
	.recover = skua_reporter_recover,
	.dump = skua_reporter_dump,
	.diagnose = skua_reporter_diagnose,
#ifndef SKUA_OLD_REPORTER
	.default_graceful_period = SKUA_GRACE_MS,
#endif
};

static void skua_reporter_work(struct work_struct *work)
{
	struct skua_reporter *reporter = container_of(work, struct skua_reporter, report);
	struct skua_nic *nic = container_of(reporter, struct skua_nic, reporter);
	struct devlink *devlink = priv_to_devlink(nic);
	const char *why;

	devl_lock(devlink);
	why = !nic->halted && skua_health_state(nic) == SKUA_STATE_DEAD ? nic->health.why : NULL;
	devl_unlock(devlink);
	if (!why)
		return;
	devlink_health_report(reporter->health, why, NULL);

	/* A reset from outside may have come in between, and told devlink too early. */
	devl_lock(devlink);
	if (skua_dev_alive(&nic->dev))
		skua_reporter_update(nic);
	devl_unlock(devlink);
}

void skua_reporter_init(struct skua_nic *nic)
{
	INIT_WORK(&nic->reporter.report, skua_reporter_work);
	disable_work(&nic->reporter.report);
}

int skua_reporter_create(struct skua_nic *nic)
{
	struct devlink_health_reporter *health;

#ifdef SKUA_OLD_REPORTER
	health = devl_health_reporter_create(priv_to_devlink(nic), &skua_reporter_ops,
					     SKUA_GRACE_MS, nic);
#else
	health = devl_health_reporter_create(priv_to_devlink(nic), &skua_reporter_ops, nic);
#endif
	if (IS_ERR(health))
		return PTR_ERR(health);
	nic->reporter.health = health;
	return 0;
}

void skua_reporter_destroy(struct skua_nic *nic)
{
	devl_health_reporter_destroy(nic->reporter.health);
}

void skua_reporter_start(struct skua_nic *nic)
{
	enable_and_queue_work(system_long_wq, &nic->reporter.report);
}

void skua_reporter_stop(struct skua_nic *nic)
{
	disable_work_sync(&nic->reporter.report);
}

void skua_reporter_dead(struct skua_nic *nic)
{
	queue_work(system_long_wq, &nic->reporter.report);
}

void skua_reporter_update(struct skua_nic *nic)
{
	bool alive = skua_dev_alive(&nic->dev);

	devlink_health_reporter_state_update(nic->reporter.health,
					     alive ? DEVLINK_HEALTH_REPORTER_STATE_HEALTHY :
						     DEVLINK_HEALTH_REPORTER_STATE_ERROR);
}
